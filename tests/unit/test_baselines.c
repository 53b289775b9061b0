/* test_baselines.c: Checkmate's baselines: on linear graphs ap-* and lin-* are chen-*, step for
 * step (5.1); elsewhere they apply where they should. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "random_graph.h"

enum { N_SEEDS = SANITIZED ? 100 : 300 };

static random_source source;

static uint32_t below(uint32_t n) { return random_below(&source, n); }

/* x_0 -> f_1 -> ... -> f_n -> loss, and back: b_i reads g_i and x_(i-1), as a convolution's does,
 * or x_i, as a relu's. (One that reads both belongs to stage i of a chain, where x_i is made again
 * although it is a checkpoint; ap-* and lin-* read the checkpoint.) */
static remat_graph *linear(remat_ctx *ctx, uint32_t n, bool equal)
{
    remat_builder *b = remat_builder_new(ctx, "linear");
    uint32_t *x = malloc((n + 2) * sizeof *x), *f = malloc((2 * n + 3) * sizeof *f), ops = 0;
    x[0] = remat_builder_value(b, "x", 4);
    for (uint32_t i = 1; i <= n + 1; i++) {
        x[i] = remat_builder_value(b, "", i > n ? 0 : equal ? 8 : 1 + below(100));
        f[ops++] = remat_builder_op(b, "", LIST(x[i - 1]), LIST(x[i]));
    }
    uint32_t g = remat_builder_value(b, "", 8);
    f[ops++] = remat_builder_op(b, "", LIST(x[n + 1], x[n]), LIST(g));
    for (uint32_t i = n; i >= 1; i--) {
        const uint32_t next = remat_builder_value(b, "", equal ? 8 : 1 + below(100));
        if (below(2)) f[ops++] = remat_builder_op(b, "", LIST(g, x[i - 1]), LIST(next));
        else f[ops++] = remat_builder_op(b, "", LIST(g, x[i]), LIST(next));
        g = next;
    }
    for (uint32_t i = 0; i < ops; i++) {
        remat_builder_op_set(b, f[i], REMAT_OP_COST, equal ? 1 : 1 + below(50));
        remat_builder_op_set(b, f[i], REMAT_OP_PHASE, i <= n ? REMAT_FORWARD : REMAT_BACKWARD);
        if (!equal && below(4) == 0) remat_builder_op_set(b, f[i], REMAT_OP_WORKSPACE, below(60));
    }
    remat_builder_output(b, x[n + 1]);
    remat_builder_output(b, g);
    remat_graph *graph = NULL;
    OK(ctx, remat_builder_finish(b, &graph));
    remat_builder_free(b);
    free(x), free(f);
    return graph;
}

static remat_plan *made(remat_ctx *ctx, const remat_graph *graph, const char *strategy,
                        int64_t budget)
{
    remat_plan *plan = NULL;
    OK(ctx, remat_plan_make(ctx, graph, strategy, budget, &plan));
    return plan;
}

/* Answers how many ops run again. */
static uint32_t same_steps(remat_ctx *ctx, const remat_graph *graph, int64_t budget)
{
    uint32_t n_again = 0;
    static const char *const rows[][3] = {{"chen-sqrt", "ap-sqrt", "lin-sqrt"},
                                          {"chen-greedy", "ap-greedy", "lin-greedy"}};
    for (size_t k = 0; k < LENGTH(rows); k++) {
        remat_plan *first = made(ctx, graph, rows[k][0], budget);
        size_t n, n_other;
        const remat_step *steps = remat_plan_steps(first, &n);
        for (size_t i = 1; i < 3; i++) {
            remat_plan *other = made(ctx, graph, rows[k][i], budget);
            const remat_step *others = remat_plan_steps(other, &n_other);
            assert_int_equal(n, n_other);
            assert_memory_equal(steps, others, n * sizeof *steps);
            remat_plan_free(other);
        }
        n_again = remat_plan_summary(first)->recomputed_ops;
        remat_plan_free(first);
    }
    return n_again;
}

static void linear_graphs(void **state)
{
    remat_ctx *ctx = *state;
    size_t recomputed = 0;
    for (uint32_t seed = 0; seed < N_SEEDS; seed++) {
        remat_info info = REMAT_INFO_INIT;
        source.state = seed;
        remat_graph *graph = linear(ctx, 3 + below(40), seed % 5 == 0);
        OK(ctx, remat_graph_info(ctx, graph, &info));
        const int64_t middle = (info.need_bytes + info.keep_all_peak_bytes) / 2;
        const int64_t others[] = {middle, info.need_bytes,  middle, info.keep_all_peak_bytes,
                                  middle, REMAT_BUDGET_NONE};
        recomputed += same_steps(ctx, graph, REMAT_BUDGET_MIN) > 0;
        same_steps(ctx, graph, others[seed % LENGTH(others)]);
        remat_graph_free(graph);
    }
    assert_true(recomputed > N_SEEDS / 3 * 2); /* else the test shows nothing */
}

/* Networks without branches: views and the order of parameter gradients differ, what runs how often
 * does not. */
static void linear_networks(void **state)
{
    static const char *const models[] = {"zoo:vgg16?batch=8", "zoo:vgg19?batch=8",
                                         "zoo:mobilenet?batch=8", "zoo:mlp?batch=64"};
    static const char *const rows[][3] = {{"chen-sqrt", "ap-sqrt", "lin-sqrt"},
                                          {"chen-greedy", "ap-greedy", "lin-greedy"}};
    remat_ctx *ctx = *state;
    for (size_t m = 0; m < LENGTH(models); m++) {
        remat_graph *graph = NULL;
        remat_info info = REMAT_INFO_INIT;
        OK(ctx, remat_graph_load(ctx, models[m], &graph));
        OK(ctx, remat_graph_info(ctx, graph, &info));
        for (size_t k = 0; k < LENGTH(rows); k++)
            for (int percent = 50; percent <= 90; percent += 20) {
                remat_plan *first =
                    made(ctx, graph, rows[k][0], info.keep_all_peak_bytes / 100 * percent);
                for (size_t i = 1; i < 3; i++) {
                    remat_plan *other =
                        made(ctx, graph, rows[k][i], info.keep_all_peak_bytes / 100 * percent);
                    assert_int_equal(remat_plan_summary(first)->cost,
                                     remat_plan_summary(other)->cost);
                    assert_int_equal(remat_plan_summary(first)->peak_bytes,
                                     remat_plan_summary(other)->peak_bytes);
                    assert_int_equal(remat_plan_summary(first)->recomputed_ops,
                                     remat_plan_summary(other)->recomputed_ops);
                    remat_plan_free(other);
                }
                remat_plan_free(first);
            }
        remat_graph_free(graph);
    }
}

/* Two rails from the input to the loss: nothing crosses alone, but a linear order there is. And no
 * phases at all. */
static void where_they_apply(void **state)
{
    remat_ctx *ctx = *state;
    for (int phases = 0; phases < 2; phases++) {
        remat_builder *b = remat_builder_new(ctx, "rails");
        uint32_t x = remat_builder_value(b, "x", 1), left[6], right[6], ops = 0;
        left[1] = remat_builder_value(b, "", 10), right[1] = remat_builder_value(b, "", 10);
        remat_builder_op(b, "", LIST(x), LIST(left[1], right[1]));
        ops++;
        for (int i = 2; i < 6; i++) {
            left[i] = remat_builder_value(b, "", 10), right[i] = remat_builder_value(b, "", 10);
            remat_builder_op(b, "", LIST(left[i - 1]), LIST(left[i])),
                remat_builder_op(b, "", LIST(right[i - 1]), LIST(right[i]));
            ops += 2;
        }
        uint32_t loss = remat_builder_value(b, "", 0), g = remat_builder_value(b, "", 10);
        remat_builder_op(b, "", LIST(left[5], right[5]), LIST(loss));
        ops++;
        remat_builder_op(b, "", LIST(loss), LIST(g));
        for (int i = 5; i >= 1; i--) {
            const uint32_t next = remat_builder_value(b, "", 10);
            remat_builder_op(b, "", LIST(g, left[i], right[i]), LIST(next));
            g = next;
        }
        for (uint32_t i = 0; i <= ops + 5 && phases; i++)
            remat_builder_op_set(b, i, REMAT_OP_PHASE, i < ops ? REMAT_FORWARD : REMAT_BACKWARD);
        remat_builder_output(b, g);
        remat_graph *graph = NULL;
        remat_plan *plan = NULL;
        OK(ctx, remat_builder_finish(b, &graph));
        remat_builder_free(b);
        FAILS(ctx, REMAT_E_APPLIES,
              remat_plan_make(ctx, graph, "ap-sqrt", REMAT_BUDGET_MIN, &plan));
        FAILS(ctx, REMAT_E_APPLIES,
              remat_plan_make(ctx, graph, "ap-greedy", REMAT_BUDGET_MIN, &plan));
        if (phases) {
            plan = made(ctx, graph, "lin-sqrt", REMAT_BUDGET_MIN);
            assert_true(remat_plan_summary(plan)->peak_bytes <
                        remat_plan_summary(plan)->keep_all_peak_bytes);
            remat_plan_free(plan);
        } else {
            FAILS(ctx, REMAT_E_APPLIES,
                  remat_plan_make(ctx, graph, "lin-sqrt", REMAT_BUDGET_MIN, &plan));
        }
        remat_graph_free(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(linear_graphs), WITH_CONTEXT(linear_networks),
                                       WITH_CONTEXT(where_they_apply)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
