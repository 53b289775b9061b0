/* train.h: from a graph to something that runs, as both trainers do it: plan within the budget,
 * place in one arena, and say what came out. */
#ifndef EXAMPLES_TRAIN_H
#define EXAMPLES_TRAIN_H

#include <inttypes.h>
#include <stdio.h>

#include <remat.h>

static void describe(const remat_summary *m, const remat_run *run)
{
    const double more = (double)(m->cost - m->keep_all_cost) / (double)m->keep_all_cost;
    printf("%" PRIu32 " ops in %" PRIu32 " steps, %.1f%% more flops; peak %" PRId64
           " bytes, of which %" PRId64 " are resident\n",
           m->ops, m->steps, 100 * more, m->peak_bytes, m->resident_bytes);
    printf("arena %" PRId64 " bytes, wasted %" PRId64 "\n", remat_run_arena_bytes(run),
           remat_run_arena_bytes(run) - (m->peak_bytes - m->resident_bytes));
}

/* Sizes are rounded up to the alignment of the arena before planning, so the budget is kept. */
static remat_status plan_and_place(remat_ctx *ctx, const remat_graph *graph, const char *budget,
                                   remat_run **run)
{
    remat_info info = REMAT_INFO_INIT;
    remat_plan *plan = NULL;
    int64_t bytes;
    remat_status status = remat_graph_info(ctx, graph, &info);
    if (status == REMAT_OK)
        status = remat_budget_parse(ctx, budget, info.keep_all_peak_bytes, &bytes);
    if (status == REMAT_OK) status = remat_plan_make(ctx, graph, "auto", bytes, &plan);
    if (status == REMAT_OK && remat_plan_status(plan) != REMAT_OK) {
        fprintf(stderr, "nothing fits %s: the least found is %" PRId64 " bytes\n", budget,
                remat_plan_summary(plan)->peak_bytes);
        status = remat_plan_status(plan);
    }
    if (status == REMAT_OK) status = remat_run_new(ctx, graph, plan, 0, run);
    if (status == REMAT_OK) describe(remat_plan_summary(plan), *run);
    remat_plan_free(plan);
    return status;
}

#endif
