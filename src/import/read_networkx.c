/* read_networkx.c: networkx node-link JSON, in its spellings:
 *   - `links` or `edges`;
 *   - an edge as source/target, "0"/"1", from/to or a pair;
 *   - a node known by its `id`, else its `name`, else its index;
 *   - sizes as cost_ram, out_cost or size, costs as cost_cpu, duration or cost;
 *   - `backward` becomes the phase, `graph.order` the order.
 * Costs may be measured times, as reals. They are all multiplied by the same power of ten, the
 * least that makes them whole, as far as 12 digits go, and rounded. One warning says so.
 * Cost: O(bytes), and what dag.c takes. */
#include "import/input.h"
#include "import/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_DIGITS = 12 }; /* of a cost that was not whole */

typedef struct decimal { /* digits * 10^exponent; digits REMAT_ABSENT: none */
    int64_t digits, exponent;
} decimal;

typedef struct reader {
    remat_ctx *ctx;
    rm_dag dag;
    decimal *costs;    /* by node */
    rm_names index_of; /* by the key of an id */
} reader;

/* The key of an id, in scratch: "i7", "sseven". Integers and strings are different, as in Python.
 */
static remat_status key_of(reader *r, const rm_json *id, rm_place place, const char **out)
{
    char number[24];
    const bool is_number = id->kind == RM_JSON_INTEGER;
    if (!is_number && id->kind != RM_JSON_STRING)
        return rm_bad(r->ctx, place, "a node is known by an integer or a string");
    if (is_number) snprintf(number, sizeof number, "%" PRId64, id->integer);
    const char *text = is_number ? number : id->string;
    char *key = rm_scratch(r->ctx, strlen(text) + 2, 1);
    if (!key) return REMAT_E_MEMORY;
    key[0] = is_number ? 'i' : 's';
    memcpy(key + 1, text, strlen(text) + 1);
    *out = key;
    return REMAT_OK;
}

/* The first of `keys` that is there, or NULL. `keys` ends with NULL. */
static const char *key_that_is_there(const rm_fields *f, const char *const *keys)
{
    while (*keys && !rm_json_get(f->object, *keys)) keys++;
    return *keys;
}

static remat_status get_size(const rm_fields *f, int64_t *out)
{
    static const char *const keys[] = {"cost_ram", "out_cost", "size", NULL};
    const char *key = key_that_is_there(f, keys);
    if (!key) return rm_bad(f->ctx, f->place, "has no size: cost_ram, out_cost or size");
    if (!rm_json_whole(rm_json_get(f->object, key), out) || *out < 0)
        return rm_bad(f->ctx, rm_place_of(f, key), "must be a whole number that is not negative");
    return REMAT_OK;
}

static remat_status get_cost(const rm_fields *f, decimal *out)
{
    static const char *const keys[] = {"cost_cpu", "duration", "cost", NULL};
    const char *key = key_that_is_there(f, keys);
    *out = (decimal){REMAT_ABSENT, 0};
    if (!key) return REMAT_OK;
    if (!rm_json_decimal(rm_json_get(f->object, key), &out->digits, &out->exponent) ||
        out->digits < 0)
        return rm_bad(f->ctx, rm_place_of(f, key), "must be a number that is not negative");
    return REMAT_OK;
}

/* How many digits stand in front of the point. */
static int64_t digits_before_point(decimal x)
{
    int64_t n = x.exponent;
    for (int64_t rest = x.digits; rest > 0; rest /= 10) n++;
    return n;
}

/* By which power of ten all costs are multiplied. */
static int64_t power_of_costs(const reader *r)
{
    int64_t power = 0, longest = 0;
    for (size_t i = 0; i < r->dag.n_nodes; i++) {
        const decimal x = r->costs[i];
        if (x.digits <= 0) continue;
        if (-x.exponent > power) power = -x.exponent;
        if (digits_before_point(x) > longest) longest = digits_before_point(x);
    }
    if (power > MOST_DIGITS - longest) power = MOST_DIGITS - longest;
    return power > 0 ? power : 0;
}

/* digits * 10^exponent, rounded. False: it passes 64 bits. */
static bool round_decimal(decimal x, int64_t *out)
{
    int64_t last = 0; /* digit that was dropped */
    for (; x.exponent > 0 && x.digits; x.exponent--)
        if (rm_mul_overflows(x.digits, (int64_t)10, &x.digits)) return false;
    for (; x.exponent < 0 && (x.digits || last); x.exponent++) {
        last = x.digits % 10;
        x.digits /= 10;
    }
    *out = x.digits + (last >= 5);
    return true;
}

static remat_status set_costs(reader *r)
{
    const int64_t power = power_of_costs(r);
    bool is_rounded = false;
    for (size_t i = 0; i < r->dag.n_nodes; i++) {
        decimal x = r->costs[i];
        if (x.digits == REMAT_ABSENT) continue;
        x.exponent += power;
        is_rounded = is_rounded || (x.exponent < 0 && x.digits);
        if (!round_decimal(x, &r->dag.nodes[i].cost))
            return rm_bad(r->ctx, (rm_place){"nodes", i, NULL, RM_NO_ITEM},
                          "its cost needs over 64 bits");
    }
    if (power > 0 || is_rounded)
        rm_warn(r->ctx, "costs are not whole numbers: they are multiplied by 10^%d%s", (int)power,
                is_rounded ? " and rounded" : "");
    return REMAT_OK;
}

static remat_status read_name(reader *r, const rm_fields *f, uint32_t index)
{
    const rm_json *id = rm_json_get(f->object, "id"), *name = rm_json_get(f->object, "name");
    const rm_json position = {.kind = RM_JSON_INTEGER, .integer = index};
    const rm_json *known_by = id;
    const rm_place place = rm_place_of(f, id ? "id" : "name");
    const char *key = "";
    if (!id) known_by = name ? name : &position;
    TRY(key_of(r, known_by, place, &key));
    if (rm_names_find(&r->index_of, key) != REMAT_NONE)
        return rm_bad(r->ctx, place, "is the key of an earlier node too");
    TRY(rm_names_add(r->ctx, &r->index_of, key, index));
    const bool is_text = name && name->kind == RM_JSON_STRING;
    r->dag.nodes[index].name = is_text ? name->string : key + 1;
    return REMAT_OK;
}

static remat_status read_node(reader *r, const rm_json *object, uint32_t index)
{
    const rm_fields f = {r->ctx, object, {"nodes", index, NULL, RM_NO_ITEM}};
    rm_dag_node *node = &r->dag.nodes[index];
    bool is_backward = false;
    *node = (rm_dag_node){.size = REMAT_ABSENT, .cost = REMAT_ABSENT};
    TRY(rm_check_object(r->ctx, object, f.place));
    TRY(get_size(&f, &node->size));
    TRY(get_cost(&f, &r->costs[index]));
    TRY(rm_get_bool(&f, "backward", &is_backward));
    if (rm_json_get(object, "backward")) node->phase = is_backward ? REMAT_BACKWARD : REMAT_FORWARD;
    return read_name(r, &f, index);
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
        place.key = spellings[i][0];
        TRY(find_node(r, from, place, &out->from));
        place.key = spellings[i][1];
        return find_node(r, to, place, &out->to);
    }
    return rm_bad(r->ctx, place, "must have source and target, \"0\" and \"1\", or from and to");
}

static remat_status read_order(reader *r, const rm_json *order)
{
    uint32_t *list;
    bool *seen;
    rm_place place = {.key = "graph.order", .item = RM_NO_ITEM};
    if (order->kind != RM_JSON_ARRAY || order->n != r->dag.n_nodes)
        return rm_bad(r->ctx, place, "must list each of the %zu nodes once", r->dag.n_nodes);
    TRY(RM_SCRATCH(r->ctx, list, r->dag.n_nodes));
    TRY(RM_SCRATCH(r->ctx, seen, r->dag.n_nodes));
    for (size_t i = 0; i < r->dag.n_nodes; i++) {
        place.item = i;
        TRY(find_node(r, &order->items[i], place, &list[i]));
        if (seen[list[i]]) return rm_bad(r->ctx, place, "lists a node twice");
        seen[list[i]] = true;
    }
    r->dag.order = list;
    return REMAT_OK;
}

remat_status rm_read_networkx(remat_ctx *ctx, const remat_input *input, remat_builder *b)
{
    reader r = {.ctx = ctx};
    const rm_fields f = rm_root_fields(ctx, input);
    const rm_json *nodes, *edges, *graph = rm_json_get(f.object, "graph");
    const char *links = rm_json_get(f.object, "links") ? "links" : "edges";
    bool directed = true;
    TRY(rm_get_bool(&f, "directed", &directed));
    if (!directed) return rm_bad(ctx, rm_place_of(&f, "directed"), "must be true");
    TRY(rm_get_array(&f, "nodes", &nodes));
    TRY(rm_get_array(&f, links, &edges));
    r.dag.n_nodes = nodes->n;
    r.dag.n_edges = edges->n;
    TRY(RM_SCRATCH(ctx, r.dag.nodes, r.dag.n_nodes));
    TRY(RM_SCRATCH(ctx, r.dag.edges, r.dag.n_edges));
    TRY(RM_SCRATCH(ctx, r.costs, r.dag.n_nodes));
    for (uint32_t i = 0; i < nodes->n; i++) TRY(read_node(&r, &nodes->items[i], i));
    TRY(set_costs(&r));
    for (uint32_t i = 0; i < edges->n; i++) TRY(read_edge(&r, &edges->items[i], links, i));
    const rm_json *order = rm_json_get(graph, "order"), *name = rm_json_get(graph, "name");
    if (order) TRY(read_order(&r, order));
    if (name && name->kind == RM_JSON_STRING) b->name = rm_builder_text(b, name->string);
    b->cost_unit = rm_builder_text(b, "given");
    return rm_dag_build(ctx, &r.dag, b);
}
