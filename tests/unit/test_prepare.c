/* test_prepare.c: what --dce, --fold-identity, --no-alias, --replay-random, --inplace and the cost
 * models do to a graph. */
#include "support.h"

#include <string.h>

static remat_graph *prepared(remat_ctx *ctx, const remat_graph *graph, unsigned flags,
                             const char *model)
{
    remat_graph *out = NULL;
    OK(ctx, remat_graph_prepare(ctx, graph, flags, model, &out));
    return out;
}

static remat_info info_of(remat_ctx *ctx, const remat_graph *graph)
{
    remat_info info = REMAT_INFO_INIT;
    OK(ctx, remat_graph_info(ctx, graph, &info));
    return info;
}

/* x -> A -> a -> detach -> d (a view) -> V -> v (a view of the view) -> B -> y; R random -> r,
 * dead; D dead. */
static remat_graph *sample(remat_ctx *ctx)
{
    remat_builder *b = remat_builder_new(ctx, "sample");
    const uint32_t x = remat_builder_value(b, "x", 4), a = remat_builder_value(b, "a", 8),
                   d = remat_builder_view(b, "d", 8, a), v = remat_builder_view(b, "v", 6, d);
    const uint32_t y = remat_builder_value(b, "y", 2), r = remat_builder_value(b, "r", 3),
                   dead = remat_builder_value(b, "dead", 5);
    remat_builder_op_set(b, remat_builder_op(b, "A", LIST(x), LIST(a)), REMAT_OP_FLOPS, 100);
    remat_builder_op_target(b, remat_builder_op(b, "detach", LIST(a), LIST(d)),
                            "aten.detach.default");
    remat_builder_op(b, "V", LIST(d), LIST(v));
    remat_builder_op_set(b, remat_builder_op(b, "R", NOTHING, LIST(r)), REMAT_OP_CLASS,
                         REMAT_CLASS_RANDOM);
    remat_builder_op(b, "D", LIST(a), LIST(dead));
    remat_builder_op_set(b, remat_builder_op(b, "B", LIST(v), LIST(y)), REMAT_OP_FLOPS, 7);
    remat_builder_output(b, y);
    remat_builder_output(b, d);
    remat_graph *graph = NULL;
    OK(ctx, remat_builder_finish(b, &graph));
    remat_builder_free(b);
    return graph;
}

static void dead_ops_go(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = sample(ctx), *live = prepared(ctx, graph, REMAT_DCE, NULL),
                *fewer = prepared(ctx, graph, REMAT_DCE | REMAT_REPLAY_RANDOM, NULL);
    assert_int_equal(info_of(ctx, graph).dead, 1);
    assert_int_equal(info_of(ctx, graph).pinned, 1);
    assert_int_equal(remat_graph_n_ops(live), 5); /* the random op is pinned, so it stays */
    assert_int_equal(info_of(ctx, live).dead, 0);
    remat_graph *replayed = prepared(ctx, graph, REMAT_REPLAY_RANDOM, NULL),
                *twice = prepared(ctx, replayed, REMAT_DCE, NULL); /* in two goes */
    assert_int_equal(info_of(ctx, twice).pinned, 0);
    assert_int_equal(remat_graph_n_ops(twice), 4);
    assert_true(remat_graph_n_ops(fewer) <= 5);
    assert_int_equal(info_of(ctx, fewer).pinned, 0);
    assert_string_equal(remat_graph_digest(twice), remat_graph_digest(graph));
    remat_graph_free(twice), remat_graph_free(replayed), remat_graph_free(fewer),
        remat_graph_free(live), remat_graph_free(graph);
}

static void identities_fold(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = sample(ctx), *folded = prepared(ctx, graph, REMAT_FOLD_IDENTITY, NULL);
    assert_int_equal(remat_graph_n_ops(folded), 5);
    uint32_t n;
    const uint32_t *outputs = remat_graph_outputs(folded, &n); /* d is a now */
    assert_int_equal(n, 2);
    assert_string_equal(remat_graph_value_name(folded, outputs[1]), "a");
    assert_int_equal(info_of(ctx, folded).views, 1);
    assert_int_equal(info_of(ctx, folded).keep_all_peak_bytes,
                     info_of(ctx, graph).keep_all_peak_bytes);
    remat_plan *plan = NULL;
    OK(ctx, remat_plan_make(ctx, folded, "keep-all", REMAT_BUDGET_NONE, &plan));
    remat_verdict verdict = REMAT_VERDICT_INIT;
    OK(ctx, remat_plan_verify(ctx, folded, plan, &verdict));
    assert_true(verdict.valid);
    OK(ctx,
       remat_plan_verify(ctx, graph, plan, &verdict)); /* the whole graph misses the folded op */
    assert_false(verdict.valid);
    remat_plan_free(plan), remat_graph_free(folded), remat_graph_free(graph);
}

/* An identity with a storage of its own, whose index is below its input's, and a view of it: values
 * are not in the order of ops. */
static void identity_that_copies(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "copies");
    const uint32_t x = remat_builder_value(b, "x", 1), d = remat_builder_value(b, "d", 4),
                   w = remat_builder_view(b, "w", 4, d), a = remat_builder_value(b, "a", 4);
    remat_builder_op(b, "A", LIST(x), LIST(a));
    remat_builder_op_target(b, remat_builder_op(b, "detach", LIST(a), LIST(d)),
                            "aten.detach.default");
    remat_builder_op(b, "W", LIST(d), LIST(w));
    remat_builder_op(b, "B", LIST(w), NOTHING);
    remat_builder_output(b, w);
    remat_graph *graph = NULL;
    OK(ctx, remat_builder_finish(b, &graph));
    remat_builder_free(b);
    remat_graph *folded = prepared(ctx, graph, REMAT_FOLD_IDENTITY, NULL);
    assert_int_equal(info_of(ctx, graph).keep_all_peak_bytes, 9);
    assert_true(info_of(ctx, folded).keep_all_peak_bytes <= 9);
    remat_graph_free(folded), remat_graph_free(graph);
}

static void views_become_storages(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = sample(ctx), *apart = prepared(ctx, graph, REMAT_NO_ALIAS, NULL);
    const remat_info before = info_of(ctx, graph), after = info_of(ctx, apart);
    assert_int_equal(before.views, 2);
    assert_int_equal(after.views, 0);
    assert_int_equal(after.storages, before.storages + 2);
    assert_int_equal(remat_graph_value_get(apart, 3, REMAT_VALUE_STORAGE),
                     6); /* its own size, not its root's */
    assert_true(after.keep_all_peak_bytes > before.keep_all_peak_bytes);
    remat_graph_free(apart), remat_graph_free(graph);
}

static uint32_t tensor(remat_builder *b, const char *dtype, int64_t n)
{
    const uint32_t v = remat_builder_value(b, NULL, 4 * n);
    remat_builder_value_tensor(b, v, dtype, (const int64_t[]){n}, 1);
    return v;
}

static uint32_t calls(remat_builder *b, const char *target, const uint32_t *in, uint32_t n_in,
                      uint32_t out)
{
    const uint32_t op = remat_builder_op(b, NULL, in, n_in, &out, 1);
    remat_builder_op_target(b, op, target);
    return op;
}

/* a and b are made; what may take the place of which? */
static void elementwise_ops_work_in_place(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "in place");
    uint32_t p[9];
    const uint32_t w = tensor(b, "float32", 8), a = tensor(b, "float32", 8),
                   c = tensor(b, "float32", 8), view = remat_builder_view(b, NULL, 32, a);
    remat_builder_value_tensor(b, view, "float32", (const int64_t[]){8}, 1);
    for (int i = 0; i < 9; i++) p[i] = tensor(b, i == 3 ? "int32" : "float32", i == 4 ? 4 : 8);
    calls(b, "aten.mm.default", LIST(w), a);
    calls(b, "aten.mm.default", LIST(w), c);
    calls(b, "aten.view.default", LIST(a), view);
    const uint32_t first = calls(b, "aten.relu.default", LIST(a), p[0]);
    calls(b, "aten.mm.default", LIST(a), p[1]);       /* not elementwise */
    calls(b, "aten.relu.default", LIST(w), p[2]);     /* resident */
    calls(b, "aten.relu.default", LIST(a), p[3]);     /* another type */
    calls(b, "aten.relu.default", LIST(a), p[4]);     /* another shape */
    calls(b, "aten.add.Tensor", LIST(view, c), p[5]); /* c is not read again */
    calls(b, "aten.add.Tensor", LIST(view, a), p[6]); /* both are */
    calls(b, "aten.gelu_backward.default", LIST(w, p[5]), p[7]);
    remat_builder_op_inplace(b, calls(b, "aten.add.Tensor", LIST(p[6], view), p[8]), 0, 1);
    remat_builder_output(b, p[8]);
    remat_graph *plain = NULL;
    OK(ctx, remat_builder_finish(b, &plain));
    remat_graph *graph = prepared(ctx, plain, REMAT_INPLACE, "unit");
    const uint32_t expected[] = {0, REMAT_NONE, REMAT_NONE, REMAT_NONE, REMAT_NONE, 1, 0, 1, 1};
    for (uint32_t i = 0; i < LENGTH(expected); i++) {
        assert_int_equal(remat_graph_op_inplace(graph, first + i, 0), expected[i]);
        assert_int_equal(remat_graph_op_inplace(plain, first + i, 0), i == 8 ? 1 : REMAT_NONE);
    }
    assert_string_equal(remat_graph_digest(graph), remat_graph_digest(plain));
    assert_true(info_of(ctx, graph).keep_all_peak_bytes < info_of(ctx, plain).keep_all_peak_bytes);
    remat_graph_free(graph), remat_graph_free(plain), remat_builder_free(b);
}

static void cost_models(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = sample(ctx);
    static const struct {
        const char *model, *unit;
        int64_t cost[6];
    } table[] = {
        {"unit", "unit", {1, 0, 0, 1, 1, 1}}, /* views are free */
        {"node", "node", {1, 1, 1, 1, 1, 1}},
    };
    for (size_t i = 0; i < LENGTH(table); i++) {
        remat_graph *priced = prepared(ctx, graph, 0, table[i].model);
        assert_string_equal(remat_graph_cost_model(priced), table[i].model);
        assert_string_equal(remat_graph_cost_unit(priced), table[i].unit);
        for (uint32_t op = 0; op < 6; op++)
            assert_int_equal(remat_graph_op_get(priced, op, REMAT_OP_COST), table[i].cost[op]);
        remat_graph_free(priced);
    }
    remat_graph *roof =
        prepared(ctx, graph, 0, "roofline:h100"); /* tiny ops: one ns each, views nothing */
    assert_string_equal(remat_graph_cost_unit(roof), "ns");
    assert_int_equal(remat_graph_op_get(roof, 0, REMAT_OP_COST), 1);
    assert_int_equal(remat_graph_op_get(roof, 1, REMAT_OP_COST), 0);
    remat_graph_free(roof);
    remat_graph *none = NULL;
    FAILS(ctx, REMAT_E_USAGE, remat_graph_prepare(ctx, graph, 0, "roofline:abacus", &none));
    FAILS(ctx, REMAT_E_USAGE, remat_graph_prepare(ctx, graph, 0, "soup", &none));
    FAILS(ctx, REMAT_E_USAGE, remat_graph_prepare(ctx, graph, 1u << 20, NULL, &none));
    assert_null(none);
    remat_graph_free(graph);
}

/* max(flops / rate, bytes / bandwidth) in ns, rounded up: 67 TFLOP/s float32 or 990 half, 3.35
 * TB/s. */
static void roofline_numbers(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "roofline");
    const uint32_t x = remat_builder_value(b, "x", 3350000),
                   y = remat_builder_value(b, "y", 3350001), h = remat_builder_value(b, "h", 2),
                   f = remat_builder_value(b, "f", 4);
    remat_builder_value_tensor(b, y, "float32", NULL, 0);
    remat_builder_value_tensor(b, h, "bfloat16", NULL, 0);
    remat_builder_value_tensor(b, f, "float32", NULL, 0);
    remat_builder_op_set(b, remat_builder_op(b, "bytes", LIST(x), LIST(y)), REMAT_OP_FLOPS,
                         1); /* 6,700,001 B: 2000.0003 ns */
    remat_builder_op_set(b, remat_builder_op(b, "half", NOTHING, LIST(h)), REMAT_OP_FLOPS,
                         990000); /* 1 ns */
    remat_builder_op_set(b, remat_builder_op(b, "single", NOTHING, LIST(f)), REMAT_OP_FLOPS, 67001);
    remat_builder_op_set(b, remat_builder_op(b, "nothing", LIST(x), NOTHING), REMAT_OP_FLOPS,
                         1000000000);
    remat_graph *graph = NULL;
    OK(ctx, remat_builder_finish(b, &graph));
    remat_builder_free(b);
    remat_graph *priced = prepared(ctx, graph, 0, "roofline:h100");
    static const int64_t expected[] = {2001, 1, 2, 0};
    for (uint32_t op = 0; op < 4; op++)
        assert_int_equal(remat_graph_op_get(priced, op, REMAT_OP_COST), expected[op]);
    remat_graph_free(priced), remat_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(dead_ops_go),
                                       WITH_CONTEXT(identities_fold),
                                       WITH_CONTEXT(identity_that_copies),
                                       WITH_CONTEXT(views_become_storages),
                                       WITH_CONTEXT(elementwise_ops_work_in_place),
                                       WITH_CONTEXT(cost_models),
                                       WITH_CONTEXT(roofline_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
