/* bench_mincut.c: how fast is a minimum cut of a joint graph, and how much memory does it take?
 * Usage: bench_mincut Two kinds of graph, each with about 5,000 and 50,000 ops: GPT-2 with many
 * layers, and random ones in which four ops of five are fusible, so that the flow has work to do.
 * Timed: V_f, classes, bans and prices; then building the network and solving it (best of 5).
 * Memory is the peak of what those allocate, by the context's own allocator. Goals: 5 ms and 60 ms
 * for both parts together, bytes per op alike. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "plan/cut/recompute_rules.h"
#include "random_graph.h"

static size_t held, most;

static void *counted(void *user, void *p, size_t old_size, size_t new_size)
{
    (void)user;
    held += new_size - old_size;
    if (held > most) most = held;
    if (new_size) return realloc(p, new_size);
    free(p);
    return NULL;
}

/* Half of the ops forward, each reading up to three of the last 40 values; then a gradient for
 * each, from last to first. */
static remat_status random_joint(remat_ctx *ctx, uint32_t n_ops, remat_graph **out)
{
    random_source r = {n_ops};
    remat_builder *b = remat_builder_new(ctx, "random joint");
    const uint32_t n = n_ops / 2;
    uint32_t *values = malloc((n + 1) * sizeof *values);
    if (!b || !values) return REMAT_E_MEMORY;
    values[0] = remat_builder_value(b, NULL, 4096);
    for (uint32_t i = 1; i <= n; i++) {
        uint32_t in[3] = {values[i - 1]}, n_in = 1;
        while (n_in < 3 && random_chance(&r, 40))
            in[n_in++] = values[i - 1 - random_below(&r, i < 40 ? i : 40)];
        values[i] = remat_builder_value(b, NULL, 64 * (1 + (int64_t)random_below(&r, 64)));
        const uint32_t op = remat_builder_op(b, NULL, in, n_in, &values[i], 1);
        remat_builder_op_set(b, op, REMAT_OP_PHASE, REMAT_FORWARD);
        remat_builder_op_set(b, op, REMAT_OP_CLASS,
                             random_chance(&r, 80) ? REMAT_CLASS_FUSIBLE : REMAT_CLASS_COMPUTE);
    }
    uint32_t gradient = remat_builder_value(b, NULL, 4);
    remat_builder_op_target(b, remat_builder_op(b, NULL, &values[n], 1, &gradient, 1),
                            "remat.boundary");
    for (uint32_t i = n; i > 0; i--) {
        const uint32_t in[3] = {gradient, values[i],
                                values[i - 1 - random_below(&r, i < 10 ? i : 10)]};
        const uint32_t next = remat_builder_value(b, NULL, 4096),
                       op = remat_builder_op(b, NULL, in, random_chance(&r, 50) ? 3 : 1, &next, 1);
        remat_builder_op_set(b, op, REMAT_OP_PHASE, REMAT_BACKWARD);
        remat_builder_op_set(b, op, REMAT_OP_CLASS, REMAT_CLASS_FUSIBLE);
        gradient = next;
    }
    remat_builder_output(b, gradient);
    const remat_status status = remat_builder_finish(b, out);
    remat_builder_free(b);
    free(values);
    return status;
}

static int measure(remat_ctx *ctx, const remat_graph *g)
{
    double best_rules = 1e9, best_cut = 1e9;
    rm_saved saved = {0};
    const size_t before = held;
    for (int i = 0; i < 5; i++) {
        const rm_mark mark = rm_scratch_mark(ctx);
        rm_recompute_rules joint;
        rm_cut_space space;
        most = held;
        rm_limits_begin(ctx, INT64_MAX);
        const double begin = now();
        remat_status status = rm_recompute_rules_find(ctx, g, &joint);
        const double ruled = now();
        if (status == REMAT_OK) status = rm_cut_space_new(ctx, g, &space);
        const rm_cut_problem problem = rm_cut_by_rules(&joint);
        if (status == REMAT_OK) status = rm_saved_cut(&space, &problem, &saved);
        const double end = now();
        rm_scratch_release(ctx, mark);
        if (status != REMAT_OK) return fail(ctx, status);
        if (ruled - begin < best_rules) best_rules = ruled - begin;
        if (end - ruled < best_cut) best_cut = end - ruled;
    }
    printf("%-14.14s %6" PRIu32
           " ops  rules %7.3f ms  cut %7.3f ms  together %7.3f ms  %5.0f bytes an op  %" PRIu32
           " saved, capacity %" PRId64 "\n",
           remat_graph_name(g), remat_graph_n_ops(g), best_rules * 1e3, best_cut * 1e3,
           (best_rules + best_cut) * 1e3, (double)(most - before) / remat_graph_n_ops(g),
           saved.n_values, saved.capacity);
    return 0;
}

int main(void)
{
    static const char *const zoo[] = {"zoo:gpt?layers=50&batch=1", "zoo:gpt?layers=500&batch=1"};
    static const uint32_t sizes[] = {5000, 50000};
    remat_ctx *ctx = remat_ctx_new(&(remat_alloc){counted, NULL});
    int failed = ctx ? 0 : 1;
    for (int i = 0; i < 4 && !failed; i++) {
        remat_graph *g = NULL;
        const remat_status status =
            i < 2 ? remat_graph_load(ctx, zoo[i], &g) : random_joint(ctx, sizes[i - 2], &g);
        failed = status == REMAT_OK ? measure(ctx, g) : fail(ctx, status);
        remat_graph_free(g);
    }
    remat_ctx_free(ctx);
    return failed;
}
