/* train.h: what both trainers do alike: read numbers of the command line; from a graph to something
 * that runs: plan within the budget, place in one arena, and say what came out. A mistake is told
 * in one line, before anything is planned. */
#ifndef EXAMPLES_TRAIN_H
#define EXAMPLES_TRAIN_H

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <remat.h>

/* `text`, which the flag `name` gives, as a number of this range. */
static bool read_number(const char *name, const char *text, long least, long most, long *number)
{
    char *end;
    errno = 0;
    *number = strtol(text, &end, 10);
    if (end != text && !*end && errno == 0 && *number >= least && *number <= most) return true;
    fprintf(stderr, "%s: '%s' is not a whole number from %ld to %ld\n", name, text, least, most);
    return false;
}

/* Can a file be written there? It is created if it does not exist. */
static bool is_writable(const char *path)
{
    FILE *file = fopen(path, "ab");
    if (!file) fprintf(stderr, "%s: cannot be written: %s\n", path, strerror(errno));
    return file && fclose(file) == 0;
}

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
