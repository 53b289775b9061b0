/* dag.c: a plain DAG becomes a graph, in an order that respects its edges. A node is an op with one
 * value.
 *
 * The order is the one given, else array order where that is topological, else that of Kahn's
 * algorithm. It always takes the ready node of least index (from a binary heap), so equal files
 * give equal orders. Cost: O((nodes + edges) log nodes). */
#include "import/input.h"

#include <assert.h>

#include "base/csr.h"
#include "base/heap.h"

static bool goes_before(const void *unused, uint32_t a, uint32_t b)
{
    (void)unused;
    return a < b;
}
RM_HEAP(ready, uint32_t, const void *, goes_before)

/* By node: its edges, in their order. */
static remat_status group_edges(remat_ctx *ctx, const rm_dag *dag, bool by_source, rm_csr *out)
{
    uint32_t *node; /* by edge */
    TRY(RM_SCRATCH(ctx, node, dag->n_edges));
    for (size_t e = 0; e < dag->n_edges; e++)
        node[e] = by_source ? dag->edges[e].from : dag->edges[e].to;
    return rm_csr_by_key(ctx, (uint32_t)dag->n_nodes, (uint32_t)dag->n_edges, node, out);
}

/* Writes a topological order, or fails because there is none. */
static remat_status sort(remat_ctx *ctx, const rm_dag *dag, uint32_t *order)
{
    rm_csr after;
    uint32_t *waiting, *ready, n_ready = 0;
    TRY(group_edges(ctx, dag, true, &after));
    TRY(RM_SCRATCH(ctx, waiting, dag->n_nodes));
    TRY(RM_SCRATCH(ctx, ready, dag->n_nodes));
    for (size_t e = 0; e < dag->n_edges; e++) waiting[dag->edges[e].to]++;
    for (uint32_t i = 0; i < dag->n_nodes; i++)
        if (waiting[i] == 0) ready_push(NULL, ready, n_ready++, i);
    size_t n = 0;
    while (n_ready) {
        const uint32_t i = ready_pop(NULL, ready, n_ready--);
        order[n++] = i;
        for (uint32_t k = after.begin[i]; k < after.begin[i + 1]; k++) {
            const uint32_t to = dag->edges[after.items[k]].to;
            waiting[to]--;
            if (waiting[to] == 0) ready_push(NULL, ready, n_ready++, to);
        }
    }
    if (n == dag->n_nodes) return REMAT_OK;
    uint32_t stuck = 0;
    while (waiting[stuck] == 0) stuck++;
    return rm_fail(ctx, REMAT_E_INPUT, "the graph has a cycle: node '%.60s' lies on or behind it",
                   dag->nodes[stuck].name);
}

static const rm_dag_edge *first_backward_edge(const rm_dag *dag, const uint32_t *position)
{
    for (size_t e = 0; e < dag->n_edges; e++)
        if (position[dag->edges[e].from] >= position[dag->edges[e].to]) return &dag->edges[e];
    return NULL;
}

/* The nodes in order, and the position of each. */
static remat_status find_order(remat_ctx *ctx, const rm_dag *dag, uint32_t *order,
                               uint32_t *position)
{
    for (uint32_t i = 0; i < dag->n_nodes; i++) order[i] = dag->order ? dag->order[i] : i;
    for (uint32_t i = 0; i < dag->n_nodes; i++) position[order[i]] = i;
    const rm_dag_edge *wrong = first_backward_edge(dag, position);
    if (!wrong) return REMAT_OK;
    if (dag->order)
        return rm_fail_at(ctx, REMAT_E_INPUT, "graph.order",
                          "'%.60s' must come after '%.60s', which it reads",
                          dag->nodes[wrong->to].name, dag->nodes[wrong->from].name);
    TRY(sort(ctx, dag, order));
    for (uint32_t i = 0; i < dag->n_nodes; i++) position[order[i]] = i;
    assert(!first_backward_edge(dag, position));
    return REMAT_OK;
}

remat_status rm_dag_build(remat_ctx *ctx, const rm_dag *dag, remat_builder *b)
{
    uint32_t *order, *position;
    rm_csr before;
    if (dag->n_edges > REMAT_NONE - 2)
        return rm_fail(ctx, REMAT_E_INPUT, "more than 4294967293 edges");
    TRY(RM_SCRATCH(ctx, order, dag->n_nodes));
    TRY(RM_SCRATCH(ctx, position, dag->n_nodes));
    TRY(find_order(ctx, dag, order, position));
    TRY(group_edges(ctx, dag, false, &before));
    for (uint32_t i = 0; i < dag->n_nodes; i++)
        remat_builder_value(b, dag->nodes[order[i]].name, dag->nodes[order[i]].size);
    for (uint32_t i = 0; i < dag->n_nodes; i++) {
        const rm_dag_node *node = &dag->nodes[order[i]];
        const uint32_t begin = before.begin[order[i]], n_in = before.begin[order[i] + 1] - begin;
        uint32_t *in = before.items + begin; /* edges, which become values */
        for (uint32_t k = 0; k < n_in; k++) in[k] = position[dag->edges[in[k]].from];
        const uint32_t op = remat_builder_op(b, node->name, in, n_in, &i, 1);
        remat_builder_op_set(b, op, REMAT_OP_COST, node->cost);
        remat_builder_op_set(b, op, REMAT_OP_PHASE, node->phase);
    }
    return b->status;
}
