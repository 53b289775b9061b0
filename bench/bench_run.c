/* bench_run.c: what does running a plan cost besides the ops? Usage: bench_run GRAPH [SECONDS]
 * Runs auto's plan at half of keep-all's memory with functions that do nothing, and prints the
 * nanoseconds for each of its steps. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "remat.h"

static int nothing(void *user, const remat_call *call)
{
    *(uint64_t *)user += call->op;
    return 0;
}

/* Every resident value is said to lie in the arena: nobody looks at it. */
static remat_status tell_memory(remat_ctx *ctx, const remat_graph *graph, remat_run *run,
                                void *arena)
{
    remat_status status = remat_run_arena(ctx, run, arena, remat_run_arena_bytes(run));
    for (uint32_t v = 0; v < remat_graph_n_values(graph) && status == REMAT_OK; v++)
        if (remat_graph_value_get(graph, v, REMAT_VALUE_PRODUCER) == REMAT_ABSENT &&
            remat_graph_value_get(graph, v, REMAT_VALUE_ROOT) == (int64_t)v)
            status = remat_run_resident(ctx, run, v, arena);
    return status;
}

static remat_status measure(remat_ctx *ctx, const char *source, double seconds)
{
    remat_graph *graph = NULL;
    remat_plan *plan = NULL;
    remat_run *run = NULL;
    remat_info info = REMAT_INFO_INIT;
    uint64_t sum = 0, rounds = 0;
    const remat_hooks hooks = {sizeof hooks, &sum, nothing, NULL, NULL};
    remat_status status = remat_graph_load(ctx, source, &graph);
    if (status == REMAT_OK) status = remat_graph_info(ctx, graph, &info);
    if (status == REMAT_OK)
        status = remat_plan_make(ctx, graph, "auto", info.keep_all_peak_bytes / 2, &plan);
    if (status == REMAT_OK) status = remat_run_new(ctx, graph, plan, 1, &run);
    void *anywhere = &sum; /* the steps do not touch it */
    if (status == REMAT_OK) status = tell_memory(ctx, graph, run, anywhere);
    const double begin = now();
    double end = begin;
    for (; status == REMAT_OK && end - begin < seconds; rounds++, end = now())
        status = remat_run_steps(ctx, run, &hooks);
    if (status == REMAT_OK)
        printf("%-24.24s %7" PRIu32 " steps  %6.1f ns a step\n", remat_graph_name(graph),
               remat_plan_summary(plan)->steps,
               (end - begin) * 1e9 / (double)rounds / (double)remat_plan_summary(plan)->steps);
    remat_run_free(run), remat_plan_free(plan), remat_graph_free(graph);
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2) return fprintf(stderr, "usage: %s GRAPH [SECONDS]\n", argv[0]), REMAT_E_USAGE;
    remat_ctx *ctx = remat_ctx_new(NULL);
    const remat_status status = measure(ctx, argv[1], argc > 2 ? strtod(argv[2], NULL) : 1);
    if (status != REMAT_OK) return fail(ctx, status);
    remat_ctx_free(ctx);
    return 0;
}
