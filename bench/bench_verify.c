/* bench_verify.c: how fast are reading, info and verify? Usage: bench_verify GRAPH [SECONDS]
 * Prints one line: the time of load and info, and the steps that remat_verify judges per second on
 * the keep-all schedule. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "remat.h"

int main(int argc, char **argv)
{
    if (argc < 2) return fprintf(stderr, "usage: %s GRAPH [SECONDS]\n", argv[0]), REMAT_E_USAGE;
    const double seconds = argc > 2 ? strtod(argv[2], NULL) : 2;
    remat_ctx *ctx = remat_ctx_new(NULL);
    remat_graph *graph;
    remat_info info = REMAT_INFO_INIT;
    remat_plan *plan;
    remat_verdict verdict = REMAT_VERDICT_INIT;
    const double start = now();
    remat_status status = remat_graph_load(ctx, argv[1], &graph);
    if (status != REMAT_OK) return fail(ctx, status);
    const double loaded = now();
    status = remat_graph_info(ctx, graph, &info);
    if (status != REMAT_OK) return fail(ctx, status);
    const double informed = now();
    status = remat_plan_make(ctx, graph, "keep-all", REMAT_BUDGET_NONE, &plan);
    if (status != REMAT_OK) return fail(ctx, status);
    size_t n;
    const remat_step *steps = remat_plan_steps(plan, &n);
    const double begin = now();
    double end = begin;
    uint64_t rounds = 0;
    for (; end - begin < seconds; rounds++, end = now()) {
        status = remat_verify(ctx, graph, steps, n, 0, &verdict);
        if (status != REMAT_OK || !verdict.valid || verdict.peak_bytes != info.keep_all_peak_bytes)
            return fail(ctx, REMAT_E_BUG);
    }
    printf("%-24.24s %7" PRIu32
           " ops  load %8.2f ms  info %8.2f ms  verify %6.1f million steps/s\n",
           remat_graph_name(graph), info.ops, (loaded - start) * 1e3, (informed - loaded) * 1e3,
           (double)rounds * (double)n / (end - begin) / 1e6);
    remat_plan_free(plan), remat_graph_free(graph), remat_ctx_free(ctx);
    return 0;
}
