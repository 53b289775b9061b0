/* info.c: the figures of a graph, before any planning. */
#include "api/answer.h"
#include "graph/cuts.h"
#include "graph/schedule.h"

static remat_status count(remat_ctx *ctx, const remat_graph *g, remat_info *info)
{
    rm_liveness l;
    rm_need need;
    rm_cuts cuts;
    uint8_t *live;
    TRY(rm_liveness_keep_all(ctx, g, &l));
    TRY(rm_need_find(ctx, g, ctx->options.offload, &need));
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
    TRY(rm_answer_check(ctx, out->size, "remat_info"));
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_info info;
    const remat_status status = count(ctx, graph, &info);
    if (status == REMAT_OK) RM_ANSWER(out, &info);
    rm_scratch_release(ctx, mark);
    return status;
}

remat_status remat_graph_need_values(remat_ctx *ctx, const remat_graph *graph, uint32_t *values,
                                     uint32_t capacity, uint32_t *n_values)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    const remat_status status =
        rm_need_values(ctx, graph, ctx->options.offload, values, capacity, n_values);
    rm_scratch_release(ctx, mark);
    return status;
}
