/* keep_all.c: the baseline. The graph's own order, every op once: the least cost of any schedule,
 * and mostly the largest peak. */
#include "plan/planner.h"

static remat_status run(const rm_problem *p, rm_incumbent *best)
{
    rm_schedule steps = {0};
    remat_status status = REMAT_OK;
    for (uint32_t op = 0; op < p->graph->n_ops && status == REMAT_OK; op++)
        status = rm_schedule_run(p->ctx, &steps, op);
    if (status == REMAT_OK) status = rm_offer(p, best, &steps);
    RM_VEC_FREE(&p->ctx->heap, steps);
    return status;
}

static remat_status run_chain(const rm_chain_problem *p, rm_chain_result *results)
{
    rm_schedule steps = {0};
    uint8_t *none;
    TRY(RM_SCRATCH(p->ctx, none, (size_t)p->chain->n_stages + 1));
    remat_status status = rm_chain_segments(p->ctx, p->chain, none, &steps);
    if (status == REMAT_OK) status = rm_chain_offer(p, results, &steps);
    RM_VEC_FREE(&p->ctx->heap, steps);
    return status;
}

const rm_planner rm_keep_all = {
    {"keep-all", "nothing recomputed: the graph's own order"}, RM_NO_LIMIT, run, run_chain};
