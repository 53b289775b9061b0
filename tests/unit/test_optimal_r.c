/* test_optimal_r.c: what has to run for what is retained: known answers, and on random graphs:
 * valid, within what was given, and the same again when asked with what it makes use of. */
#include "support.h"

#include <string.h>

#include "naive.h"
#include "plan/checkmate/optimal_r.h"
#include "random_graph.h"

/* A -> B -> C and gradients: c reads C and B; b reads c, B and A; a reads b and A. Costs 1. */
static remat_graph *three_layers(remat_ctx *ctx)
{
    remat_builder *b = remat_builder_new(ctx, "three layers");
    uint32_t v[6];
    remat_graph *graph = NULL;
    for (int i = 0; i < 6; i++) v[i] = remat_builder_value(b, "", 1);
    const uint32_t in[6][3] = {{0}, {v[0]}, {v[1]}, {v[2], v[1]}, {v[3], v[1], v[0]}, {v[4], v[0]}},
                   n_in[6] = {0, 1, 1, 2, 3, 2};
    for (int i = 0; i < 6; i++) remat_builder_op(b, "", in[i], n_in[i], &v[i], 1);
    remat_builder_output(b, v[5]);
    OK(ctx, remat_builder_finish(b, &graph));
    remat_builder_free(b);
    return graph;
}

/* Rows of '1' and '0', one per turn; the answer is ops as digits. */
static void answers(remat_ctx *ctx, const remat_graph *graph, const char *const *rows,
                    const char *expected)
{
    rm_normal nm;
    rm_bits retained;
    rm_codes codes = {0};
    char text[64] = "";
    const rm_mark mark = rm_scratch_mark(ctx);
    OK(ctx, rm_normal_of(ctx, graph, &nm));
    OK(ctx, rm_bits_new(ctx, &retained, nm.n_ops, nm.n_stores));
    for (uint32_t t = 0; t < nm.n_ops; t++)
        for (uint32_t s = 0; s < nm.n_stores; s++)
            if (rows[t][s] == '1') rm_bit_set(&retained, t, s);
    OK(ctx, rm_optimal_r(ctx, &nm, &retained, &codes));
    for (size_t i = 0; i < codes.n; i++) text[i] = (char)('0' + codes.items[i]);
    assert_string_equal(text, expected);
    RM_VEC_FREE(&ctx->heap, codes);
    rm_scratch_release(ctx, mark);
}

static void known_answers(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = three_layers(ctx);
    answers(ctx, graph,
            (const char *const[]){"000000", "100000", "110000", "111000", "110100", "100010"},
            "012345");
    /* B is dropped once C is there, and made again for its gradients */
    answers(ctx, graph,
            (const char *const[]){"000000", "100000", "110000", "101000", "110100", "100010"},
            "0121345");
    answers(ctx, graph,
            (const char *const[]){"000000", "100000", "110000", "101000", "100100", "100010"},
            "01213145");
    /* nothing is ever retained */
    answers(ctx, graph,
            (const char *const[]){"000000", "000000", "000000", "000000", "000000", "000000"},
            "001012012301234012345");
    /* what is retained for nobody runs for nobody: A in the last turn but one */
    answers(ctx, graph,
            (const char *const[]){"111111", "011111", "111111", "111111", "111111", "111111"},
            "0012345");
    remat_graph_free(graph);
}

static bool is_below(const rm_normal *nm, const rm_bits *a, const rm_bits *b)
{
    for (uint32_t t = 0; t < nm->n_ops; t++)
        for (uint32_t s = 0; s < nm->n_stores; s++)
            if (rm_bit(a, t, s) && !rm_bit(b, t, s) && !nm->pinned[nm->producer[s]]) return false;
    return true;
}

/* A token that is pinned refers to the base it was made on: the storages alone do not tell who
 * keeps what. */
static bool has_pinned_token(const rm_normal *nm)
{
    for (uint32_t s = 0; s < nm->n_stores; s++)
        if (nm->base[s] != REMAT_NONE && nm->pinned[nm->producer[s]]) return true;
    return false;
}

static void one_graph(remat_ctx *ctx, random_source *r)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_graph *graph = random_graph(ctx, r);
    rm_normal nm;
    rm_bits retained, used;
    rm_codes codes = {0}, again = {0};
    rm_schedule steps = {0};
    const uint32_t percent = random_below(r, 101);
    OK(ctx, rm_normal_of(ctx, graph, &nm));
    OK(ctx, rm_bits_new(ctx, &retained, nm.n_ops, nm.n_stores));
    for (uint32_t t = 0; t < nm.n_ops; t++)
        for (uint32_t s = 0; s < nm.n_stores; s++)
            if (random_chance(r, percent)) rm_bit_set(&retained, t, s);
    OK(ctx, rm_optimal_r(ctx, &nm, &retained, &codes));
    OK(ctx, rm_normal_expand(ctx, &nm, codes.items, codes.n, &steps));
    naive_graph *ng = naive_from(graph);
    naive_verdict v = naive_judge(ng, steps.items, steps.n, 0);
    assert_true(v.valid);
    OK(ctx, rm_retained_of(ctx, &nm, codes.items, codes.n, &used));
    assert_true(is_below(&nm, &used, &retained) || has_pinned_token(&nm));
    OK(ctx, rm_optimal_r(ctx, &nm, &used, &again));
    assert_int_equal(again.n, codes.n);
    if (codes.n) assert_memory_equal(again.items, codes.items, codes.n * sizeof *codes.items);
    naive_release(&v), naive_free(ng);
    RM_VEC_FREE(&ctx->heap, codes);
    RM_VEC_FREE(&ctx->heap, again);
    RM_VEC_FREE(&ctx->heap, steps);
    remat_graph_free(graph);
    rm_scratch_release(ctx, mark);
}

static void random_graphs(void **state)
{
    random_source r = {7};
    for (int i = 0; i < 3000; i++) one_graph(*state, &r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(known_answers), WITH_CONTEXT(random_graphs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
