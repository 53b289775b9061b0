/* info.c: the figures of a graph, before any planning. */
#include "base/heap.h"
#include "graph/cuts.h"
#include "graph/schedule.h"

static remat_status count(remat_ctx *ctx, const remat_graph *g, remat_info *info)
{
    rm_liveness l;
    rm_need need;
    rm_cuts cuts;
    uint8_t *live;
    TRY(rm_liveness_keep_all(ctx, g, &l));
    TRY(rm_need_find(ctx, g, &need));
    TRY(rm_cuts_find(ctx, g, &cuts));
    TRY(RM_SCRATCH(ctx, live, g->n_ops));
    rm_mark_live_ops(g, 0, live);
    *info = (remat_info){.ops = g->n_ops,
                         .values = g->n_values,
                         .cut_values = cuts.n_cuts,
                         .resident_bytes = g->resident_bytes,
                         .keep_all_peak_bytes = l.peak_bytes,
                         .keep_all_cost = l.cost,
                         .keep_all_peak_step = l.peak_step,
                         .need_bytes = need.bytes,
                         .need_op = need.op};
    for (uint32_t v = 0; v < g->n_values; v++) info->storages += rm_owns_storage(g, v);
    for (uint32_t op = 0; op < g->n_ops; op++) {
        info->views += rm_is_view_op(g, op);
        info->multi_output += g->out_begin[op + 1] - g->out_begin[op] > 1;
        info->pinned += g->pinned[op];
        info->dead += !live[op];
    }
    return REMAT_OK;
}

remat_status remat_graph_info(remat_ctx *ctx, const remat_graph *graph, remat_info *out)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_info info;
    const remat_status status = count(ctx, graph, &info);
    if (status == REMAT_OK) *out = info;
    rm_scratch_release(ctx, mark);
    return status;
}

static bool is_smaller(const remat_graph *g, uint32_t a, uint32_t b)
{
    return g->storage[a] < g->storage[b];
}
RM_HEAP(smallest, uint32_t, const remat_graph *, is_smaller)

/* The first that there is room for, then those that are larger than the smallest of them. */
static remat_status need_values(remat_ctx *ctx, const remat_graph *g, uint32_t *values,
                                uint32_t capacity, uint32_t *n_values)
{
    rm_need need;
    uint8_t *marked;
    TRY(rm_need_find(ctx, g, &need));
    TRY(RM_SCRATCH(ctx, marked, g->n_values));
    if (need.op != REMAT_NONE) TRY(rm_need_storages(ctx, g, need.op, marked));
    uint32_t n = 0, v = 0;
    for (; v < g->n_values && n < capacity; v++)
        if (marked[v]) values[n++] = v;
    smallest_make(g, values, n);
    for (; v < g->n_values && n; v++)
        if (marked[v] && is_smaller(g, values[0], v)) smallest_replace(g, values, n, v);
    *n_values = n;
    for (; n > 1; n--) values[n - 1] = smallest_pop(g, values, n); /* the smallest to the end */
    return REMAT_OK;
}

remat_status remat_graph_need_values(remat_ctx *ctx, const remat_graph *graph, uint32_t *values,
                                     uint32_t capacity, uint32_t *n_values)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    const remat_status status = need_values(ctx, graph, values, capacity, n_values);
    rm_scratch_release(ctx, mark);
    return status;
}
