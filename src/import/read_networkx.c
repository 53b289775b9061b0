/* read_networkx.c: networkx node-link JSON, in its spellings: `links` or `edges`; an edge as
 * source/target, "0"/"1", from/to or a pair; a node known by its `id`, else its `name`, else its
 * index; sizes as cost_ram, out_cost or size, costs as cost_cpu, duration or cost; `backward`
 * becomes the phase; `graph.order` the order. */
#include "import/input.h"
#include "import/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct reader {
    remat_ctx *ctx;
    rm_dag dag;
    rm_names index_of; /* by key_of() its id */
} reader;

/* Integers and strings are different keys, as in Python: "i7", "sseven". In scratch. */
static remat_status key_of(reader *r, const rm_json *id, rm_place place, const char **out)
{
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, id->kind == RM_JSON_INTEGER ? id->integer : 0);
    if (id->kind != RM_JSON_INTEGER && id->kind != RM_JSON_STRING)
        return rm_bad(r->ctx, place, "a node is known by an integer or a string");
    const char *text = id->kind == RM_JSON_INTEGER ? number : id->string;
    char *key = rm_scratch(r->ctx, strlen(text) + 2, 1);
    if (!key) return REMAT_E_MEMORY;
    key[0] = id->kind == RM_JSON_INTEGER ? 'i' : 's';
    memcpy(key + 1, text, strlen(text) + 1);
    *out = key;
    return REMAT_OK;
}

static remat_status get_number(remat_ctx *ctx, const rm_json *object, size_t index,
                               const char *const *keys, int64_t *out)
{
    for (; *keys; keys++) {
        const rm_json *x = rm_json_get(object, *keys);
        if (!x) continue;
        if (!rm_json_whole(x, out) || *out < 0)
            return rm_bad(ctx, (rm_place){"nodes", index, *keys, RM_NO_ITEM},
                          "must be a whole number that is not negative");
        return REMAT_OK;
    }
    return REMAT_OK;
}

static remat_status read_node(reader *r, const rm_json *object, size_t index)
{
    static const char *const sizes[] = {"cost_ram", "out_cost", "size", NULL}, *const costs[] = {
                                                                                   "cost_cpu",
                                                                                   "duration",
                                                                                   "cost", NULL};
    remat_ctx *ctx = r->ctx;
    rm_place place = {"nodes", index, NULL, RM_NO_ITEM};
    rm_dag_node *node = &r->dag.nodes[index];
    *node = (rm_dag_node){.size = REMAT_ABSENT, .cost = REMAT_ABSENT};
    TRY(rm_check_object(ctx, object, place));
    TRY(get_number(ctx, object, index, sizes, &node->size));
    TRY(get_number(ctx, object, index, costs, &node->cost));
    if (node->size == REMAT_ABSENT)
        return rm_bad(ctx, place, "has no size: cost_ram, out_cost or size");
    place.key = "backward";
    const rm_json *backward = rm_json_get(object, place.key);
    bool is_backward = false;
    TRY(rm_get_bool(ctx, object, place, &is_backward));
    if (backward) node->phase = is_backward ? REMAT_BACKWARD : REMAT_FORWARD;

    const rm_json *id = rm_json_get(object, "id"), *name = rm_json_get(object, "name");
    const rm_json position = {.kind = RM_JSON_INTEGER, .integer = (int64_t)index};
    const char *key = "";
    place.key = id ? "id" : "name";
    TRY(key_of(r, id ? id : name ? name : &position, place, &key));
    if (rm_names_find(&r->index_of, key) != REMAT_NONE)
        return rm_bad(ctx, place, "is the key of an earlier node too");
    TRY(rm_names_add(ctx, &r->index_of, key, (uint32_t)index));
    node->name = name && name->kind == RM_JSON_STRING ? name->string : key + 1;
    return REMAT_OK;
}

static remat_status find_node(reader *r, const rm_json *id, rm_place place, uint32_t *out)
{
    const char *key = "";
    const rm_mark mark = rm_scratch_mark(r->ctx);
    TRY(key_of(r, id, place, &key));
    *out = rm_names_find(&r->index_of, key);
    if (*out == REMAT_NONE) return rm_bad(r->ctx, place, "there is no node '%.60s'", key + 1);
    rm_scratch_release(r->ctx, mark);
    return REMAT_OK;
}

static remat_status read_edge(reader *r, const rm_json *edge, const char *list, size_t index)
{
    static const char *const spellings[][2] = {{"source", "target"}, {"0", "1"}, {"from", "to"}};
    rm_dag_edge *out = &r->dag.edges[index];
    rm_place place = {list, index, NULL, RM_NO_ITEM};
    if (edge->kind == RM_JSON_ARRAY && edge->n >= 2) {
        TRY(find_node(r, &edge->items[0], place, &out->from));
        return find_node(r, &edge->items[1], place, &out->to);
    }
    for (size_t i = 0; i < RM_LEN(spellings); i++) {
        const rm_json *from = rm_json_get(edge, spellings[i][0]),
                      *to = rm_json_get(edge, spellings[i][1]);
        if (!from || !to) continue;
        TRY((place.key = spellings[i][0], find_node(r, from, place, &out->from)));
        return place.key = spellings[i][1], find_node(r, to, place, &out->to);
    }
    return rm_bad(r->ctx, place, "must have source and target, \"0\" and \"1\", or from and to");
}

static remat_status read_order(reader *r, const rm_json *order)
{
    uint32_t *list;
    uint8_t *seen;
    rm_place place = {.key = "graph.order", .item = RM_NO_ITEM};
    if (order->kind != RM_JSON_ARRAY || order->n != r->dag.n_nodes)
        return rm_bad(r->ctx, place, "must list each of the %zu nodes once", r->dag.n_nodes);
    TRY(RM_SCRATCH(r->ctx, list, r->dag.n_nodes));
    TRY(RM_SCRATCH(r->ctx, seen, r->dag.n_nodes));
    for (size_t i = 0; i < r->dag.n_nodes; i++) {
        place.item = i;
        TRY(find_node(r, &order->items[i], place, &list[i]));
        if (seen[list[i]]++) return rm_bad(r->ctx, place, "lists a node twice");
    }
    r->dag.order = list;
    return REMAT_OK;
}

static remat_status read_all(reader *r, const rm_json *root, remat_builder *b)
{
    remat_ctx *ctx = r->ctx;
    const rm_json *nodes, *edges, *graph = rm_json_get(root, "graph");
    rm_place place = {.key = "nodes", .item = RM_NO_ITEM};
    bool directed = true;
    TRY((place.key = "directed", rm_get_bool(ctx, root, place, &directed)));
    if (!directed) return rm_bad(ctx, place, "must be true");
    place.key = "nodes";
    TRY(rm_get_array(ctx, root, place, &nodes));
    place.key = rm_json_get(root, "links") ? "links" : "edges";
    TRY(rm_get_array(ctx, root, place, &edges));
    r->dag.n_nodes = nodes->n;
    r->dag.n_edges = edges->n;
    TRY(RM_SCRATCH(ctx, r->dag.nodes, r->dag.n_nodes));
    TRY(RM_SCRATCH(ctx, r->dag.edges, r->dag.n_edges));
    for (size_t i = 0; i < r->dag.n_nodes; i++) TRY(read_node(r, &nodes->items[i], i));
    for (size_t i = 0; i < r->dag.n_edges; i++) TRY(read_edge(r, &edges->items[i], place.key, i));
    const rm_json *order = rm_json_get(graph, "order"), *name = rm_json_get(graph, "name");
    if (order) TRY(read_order(r, order));
    if (name && name->kind == RM_JSON_STRING) b->name = rm_builder_text(b, name->string);
    b->cost_unit = rm_builder_text(b, "given");
    return rm_dag_build(ctx, &r->dag, b);
}

remat_status rm_read_networkx(remat_ctx *ctx, const remat_input *input, remat_builder *b)
{
    reader r = {.ctx = ctx};
    return read_all(&r, input->json, b);
}
