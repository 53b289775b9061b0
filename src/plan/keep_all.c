/* keep_all.c: the baseline. The graph's own order, every op once: the least cost of any schedule, and mostly the largest peak. */
#include "plan/planner.h"

static remat_status run(const rm_problem *p, rm_incumbent *best)
{
    rm_schedule steps = {0};
    remat_status status = REMAT_OK;
    for (uint32_t op = 0; op < p->graph->n_ops && status == REMAT_OK; op++) status = rm_schedule_run(p->ctx, &steps, op);
    if (status == REMAT_OK) status = rm_offer(p, best, &steps);
    RM_VEC_FREE(&p->ctx->heap, steps);
    return status;
}

const rm_planner rm_keep_all = {{"keep-all", "nothing recomputed: the graph's own order"}, INT64_MAX, run};
