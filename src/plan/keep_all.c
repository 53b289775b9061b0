/* keep_all.c: the baseline: every op once, in the graph's own order. No schedule costs less. Its
 * peak is mostly the largest. Linear. */
#include "plan/planner.h"

static remat_status run(const rm_problem *p, rm_incumbent *best)
{
    const uint32_t n = p->graph->n_ops;
    const rm_mark mark = rm_scratch_mark(p->ctx);
    remat_step *steps;
    remat_status status = rm_steps_keep_all(p->ctx, p->graph, &steps);
    if (status == REMAT_OK)
        status = rm_offer(p, best, &(rm_schedule){.items = steps, .n = n, .room = n});
    rm_scratch_release(p->ctx, mark);
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

const rm_planner rm_keep_all = {.entry = {"keep-all", "nothing recomputed: the graph's own order"},
                                .default_work = RM_NO_LIMIT,
                                .run = run,
                                .run_chain = run_chain};
