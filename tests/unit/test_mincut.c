/* test_mincut.c: the paper's examples (f, f1, f2, Fig. 4) through the network, the rules and the planner. */
#include "support.h"

#include <string.h>

#include "plan/saved_cut.h"

/* ---- Fig. 4: a -> b -> c -> d, d -> e (not fusible, outside), f(b, c, e); the cut between groups A = {b, c, d} and B = {f} ---- */

static remat_graph *figure_4(remat_ctx *ctx, int64_t a_bytes)
{
    remat_builder *b = remat_builder_new(ctx, "fig4");
    uint32_t v[6];
    for (int i = 0; i < 6; i++)
        v[i] = remat_builder_value(b, (const char *[]){"a", "b", "c", "d", "e", "f"}[i], i == 0 ? a_bytes : 1);
    for (int i = 1; i < 5; i++) remat_builder_op(b, NULL, &v[i - 1], 1, &v[i], 1); /* ops 0 .. 3 make b .. e */
    remat_builder_op(b, NULL, LIST(v[1], v[2], v[4]), &v[5], 1);
    remat_builder_output(b, v[5]);
    remat_graph *g = NULL;
    OK(ctx, remat_builder_finish(b, &g));
    remat_builder_free(b);
    return g;
}

static void cut_between(remat_ctx *ctx, const remat_graph *g, const uint8_t *banned, rm_saved *saved)
{
    rm_cut_space space;
    int64_t price[6];
    for (int i = 0; i < 6; i++) price[i] = 2 * g->storage[i];
    price[0] /= 2, price[3] /= 2; /* a is an input; d is read by e, which is in neither group */
    rm_limits_begin(ctx, INT64_MAX);
    OK(ctx, rm_cut_space_new(ctx, g, &space));
    for (int again = 0; again < 2; again++) /* the space is as new after a call */
        OK(ctx, rm_saved_cut(&space,
                             &(rm_cut_problem){.inside = (const uint32_t[]){0, 1, 2},
                                               .n_inside = 3,
                                               .outside = (const uint32_t[]){4},
                                               .n_outside = 1,
                                               .banned = banned,
                                               .price = price},
                             saved));
}

static void figure_4_recomputes_b_and_c(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *g = figure_4(ctx, 1);
    rm_saved saved;
    cut_between(ctx, g, (const uint8_t[5]){0}, &saved);
    assert_int_equal(saved.capacity, 1);
    assert_int_equal(saved.n_values, 1);
    assert_int_equal(saved.values[0], 0);
    remat_graph_free(g);
}

static void figure_4_with_a_sum_keeps_b(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *g = figure_4(ctx, 1000);
    for (uint8_t ban = 0; ban < 2; ban++) {
        rm_saved saved;
        cut_between(ctx, g, (const uint8_t[5]){ban}, &saved);
        assert_int_equal(saved.capacity, 2);
        assert_int_equal(saved.n_values, 1);
        assert_int_equal(saved.values[0], 1);
    }
    remat_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(figure_4_recomputes_b_and_c), WITH_CONTEXT(figure_4_with_a_sum_keeps_b)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
