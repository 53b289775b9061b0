/* test_model.c: the micro-graphs that fix the memory model (views, several outputs, dead ops, pins,
 * residents), to the byte: the verifier's verdict and, step by step, the memory that lowering
 * reports. */
#include "support.h"

#include <string.h>

typedef struct expected {
    const char *steps;
    bool valid;
    uint32_t first_bad_step;
    int64_t peak, cost;
    const int64_t *memory;
} expected;

/* Judges a schedule and, if it is valid, compares the memory at each step. */
static void judge_at(remat_ctx *ctx, const remat_graph *graph, int64_t bandwidth, expected x)
{
    remat_step steps[32];
    const size_t n = steps_of(x.steps, steps);
    remat_verdict verdict = REMAT_VERDICT_INIT;
    OK(ctx, remat_verify(ctx, graph, steps, n, bandwidth, &verdict));
    if (verdict.valid != x.valid)
        fail_msg("\"%s\" is judged %s: %s", x.steps, verdict.valid ? "valid" : "invalid",
                 verdict.reason);
    assert_int_equal(verdict.first_bad_step, x.valid ? REMAT_NONE : x.first_bad_step);
    if (!x.valid) {
        assert_true(*verdict.reason != '\0');
        return;
    }
    assert_int_equal(verdict.peak_bytes, x.peak);
    assert_int_equal(verdict.cost, x.cost);
    remat_program *program = NULL;
    OK(ctx, remat_lower(ctx, graph, steps, n, &program));
    size_t n_statements, computed = 0;
    int64_t in_use = -1, peak = 0;
    const remat_statement *s = remat_program_statements(program, &n_statements);
    for (size_t i = 0; i < n_statements; i++) {
        if (s[i].kind != REMAT_COMPUTE) {
            if (in_use >= 0)
                assert_int_equal(s[i].memory_bytes,
                                 s[i].kind == REMAT_ALLOCATE ? in_use + s[i].bytes
                                 : s[i].kind == REMAT_REUSE  ? in_use
                                                             : in_use - s[i].bytes);
            in_use = s[i].memory_bytes;
            continue;
        }
        assert_int_equal(s[i].step_index, computed);
        assert_int_equal(s[i].step.index, steps[computed].index);
        if (x.memory) assert_int_equal(s[i].memory_bytes, x.memory[computed]);
        if (s[i].memory_bytes > peak) peak = s[i].memory_bytes;
        computed++;
    }
    assert_int_equal(computed, n);
    assert_int_equal(peak, x.peak);
    remat_program_free(program);
}

static remat_graph *finished(remat_ctx *ctx, remat_builder *b)
{
    remat_graph *graph = NULL;
    OK(ctx, remat_builder_finish(b, &graph));
    remat_builder_free(b);
    return graph;
}

static void judge(remat_ctx *ctx, const remat_graph *graph, expected x)
{
    judge_at(ctx, graph, 0, x);
}

static uint32_t op(remat_builder *b, const char *name, int64_t cost, int64_t workspace,
                   const uint32_t *in, uint32_t n_in, const uint32_t *out, uint32_t n_out)
{
    const uint32_t index = remat_builder_op(b, name, in, n_in, out, n_out);
    remat_builder_op_set(b, index, REMAT_OP_COST, cost);
    remat_builder_op_set(b, index, REMAT_OP_WORKSPACE, workspace);
    return index;
}

static void x1_view_keeps_its_storage(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "x1");
    const uint32_t v = remat_builder_value(b, "v", 4), w = remat_builder_view(b, "w", 4, v);
    op(b, "A", 1, 0, NOTHING, LIST(v));
    op(b, "W", 0, 0, LIST(v), LIST(w));
    op(b, "B", 1, 0, LIST(w), NOTHING);
    op(b, "Q", 1, 10, NOTHING, NOTHING);
    op(b, "C", 1, 0, LIST(w), NOTHING);
    remat_graph *graph = finished(ctx, b);
    judge(ctx, graph, (expected){"0 1 2 3 4", true, 0, 14, 4, (const int64_t[]){4, 4, 4, 14, 4}});
    judge(ctx, graph,
          (expected){"0 1 2 3 0 4", true, 0, 14, 5, (const int64_t[]){4, 4, 4, 14, 8, 4}});
    judge(ctx, graph,
          (expected){"0 1 2 3 0 1 4", true, 0, 10, 5, (const int64_t[]){4, 4, 4, 10, 4, 4, 4}});
    remat_graph_free(graph);
}

static void x2_every_output_is_made(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "x2");
    const uint32_t a = remat_builder_value(b, "a", 3), c = remat_builder_value(b, "b", 5);
    op(b, "P", 1, 0, NOTHING, LIST(a, c));
    op(b, "S", 1, 0, LIST(a), NOTHING);
    op(b, "Q", 1, 10, NOTHING, NOTHING);
    op(b, "R", 1, 0, LIST(c), NOTHING);
    remat_graph *graph = finished(ctx, b);
    judge(ctx, graph, (expected){"0 1 2 0 3", true, 0, 10, 5, (const int64_t[]){8, 3, 10, 8, 5}});
    judge(ctx, graph, (expected){"0 1 2 3", true, 0, 15, 4, (const int64_t[]){8, 8, 15, 5}});
    remat_graph_free(graph);
}

static void x3_dead_ops_run_too(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "x3");
    const uint32_t a = remat_builder_value(b, "a", 3), c = remat_builder_value(b, "b", 5),
                   dead = remat_builder_value(b, "dead", 7);
    op(b, "A", 2, 0, NOTHING, LIST(a));
    op(b, "D", 9, 0, LIST(a), LIST(dead));
    op(b, "B", 4, 0, LIST(a), LIST(c));
    remat_graph *graph = finished(ctx, b); /* no outputs: all three are dead */
    judge(ctx, graph, (expected){"0 1 2", true, 0, 10, 15, (const int64_t[]){3, 10, 8}});
    judge(ctx, graph, (expected){"0 2", false, REMAT_NONE, 0, 0, NULL});
    remat_plan *plan = NULL;
    OK(ctx, remat_plan_make(ctx, graph, "keep-all", REMAT_BUDGET_NONE, &plan));
    assert_int_equal(remat_plan_summary(plan)->cost, 15);
    assert_int_equal(remat_plan_summary(plan)->keep_all_cost, 15);
    remat_plan_free(plan), remat_graph_free(graph);

    b = remat_builder_new(ctx, "x3 with an output");
    const uint32_t p = remat_builder_value(b, "a", 3), q = remat_builder_value(b, "b", 5),
                   r = remat_builder_value(b, "dead", 7);
    op(b, "A", 2, 0, NOTHING, LIST(p));
    op(b, "D", 9, 0, LIST(p), LIST(r));
    op(b, "B", 4, 0, LIST(p), LIST(q));
    remat_builder_output(b, q);
    graph = finished(ctx, b);
    remat_graph *smaller = NULL;
    remat_info info = REMAT_INFO_INIT;
    OK(ctx, remat_graph_info(ctx, graph, &info));
    assert_int_equal(info.dead, 1);
    OK(ctx, remat_graph_prepare(ctx, graph, REMAT_DCE, NULL, &smaller));
    assert_int_equal(remat_graph_n_ops(smaller), 2);
    assert_string_equal(remat_graph_digest(smaller), remat_graph_digest(graph));
    OK(ctx, remat_plan_make(ctx, smaller, "keep-all", REMAT_BUDGET_NONE, &plan));
    size_t n;
    const remat_step *steps = remat_plan_steps(plan, &n); /* named as in the original */
    assert_int_equal(n, 2);
    assert_int_equal(steps[0].index, 0);
    assert_int_equal(steps[1].index, 2);
    assert_int_equal(remat_plan_summary(plan)->cost, 6);
    remat_plan_free(plan), remat_graph_free(smaller), remat_graph_free(graph);
}

static void x4_one_run_serves_all_outputs(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "x4");
    const uint32_t a = remat_builder_value(b, "a", 1), c = remat_builder_value(b, "b", 1);
    op(b, "P", 10, 0, NOTHING, LIST(a, c));
    op(b, "S", 1, 0, LIST(a, c), NOTHING);
    op(b, "Q", 1, 11, NOTHING, NOTHING);
    op(b, "R", 1, 0, LIST(a, c), NOTHING);
    remat_graph *graph = finished(ctx, b);
    judge(ctx, graph, (expected){"0 1 2 3", true, 0, 13, 13, (const int64_t[]){2, 2, 13, 2}});
    judge(ctx, graph, (expected){"0 1 2 0 3", true, 0, 11, 23, (const int64_t[]){2, 2, 11, 2, 2}});
    remat_graph_free(graph);
}

static void x5_view_of_a_resident_is_free(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "x5");
    const uint32_t w = remat_builder_value(b, "w", 100), t = remat_builder_view(b, "w.t", 100, w),
                   y = remat_builder_value(b, "y", 8);
    remat_builder_value_set(b, w, REMAT_VALUE_KIND, REMAT_PARAM);
    op(b, "T", 1, 0, LIST(w), LIST(t));
    op(b, "M", 5, 0, LIST(t), LIST(y));
    remat_builder_output(b, y);
    remat_graph *graph = finished(ctx, b);
    assert_int_equal(remat_graph_value_get(graph, t, REMAT_VALUE_ROOT), w);
    assert_int_equal(remat_graph_value_get(graph, t, REMAT_VALUE_STORAGE), 100);
    judge(ctx, graph, (expected){"0 1", true, 0, 108, 6, (const int64_t[]){100, 108}});
    judge(ctx, graph, (expected){"0 0 1", true, 0, 108, 7, (const int64_t[]){100, 100, 108}});
    remat_graph_free(graph);
}

static void x6_expand_adds_nothing(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "x6");
    const uint32_t v = remat_builder_value(b, "v", 4),
                   wide = remat_builder_view(b, "wide", 4000, v),
                   y = remat_builder_value(b, "y", 1);
    op(b, "A", 1, 0, NOTHING, LIST(v));
    op(b, "E", 0, 0, LIST(v), LIST(wide));
    op(b, "B", 1, 0, LIST(wide), LIST(y));
    remat_builder_output(b, y);
    remat_graph *graph = finished(ctx, b);
    judge(ctx, graph, (expected){"0 1 2", true, 0, 5, 2, (const int64_t[]){4, 4, 5}});
    remat_graph_free(graph);
}

static void x7_pins_run_once_in_order(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "x7");
    const uint32_t u = remat_builder_value(b, "u", 1), v = remat_builder_value(b, "v", 1);
    const uint32_t first = op(b, "first", 1, 0, NOTHING, LIST(u)),
                   second = op(b, "second", 1, 0, NOTHING, LIST(v));
    op(b, "use", 1, 0, LIST(u, v), NOTHING);
    remat_builder_op_set(b, first, REMAT_OP_PINNED, 1);
    remat_builder_op_set(b, second, REMAT_OP_CLASS, REMAT_CLASS_RANDOM); /* which pins it */
    remat_graph *graph = finished(ctx, b);
    assert_int_equal(remat_graph_op_get(graph, second, REMAT_OP_PINNED), 1);
    judge(ctx, graph, (expected){"0 1 2", true, 0, 2, 3, (const int64_t[]){1, 2, 2}});
    judge(ctx, graph, (expected){"0 1 0 2", false, 2, 0, 0, NULL});
    judge(ctx, graph, (expected){"0 1 1 2", false, 2, 0, 0, NULL});
    remat_verdict verdict =
        REMAT_VERDICT_INIT; /* swapped: some step is named, and it is one of the two */
    OK(ctx, remat_verify(ctx, graph,
                         (const remat_step[]){{REMAT_RUN, 1}, {REMAT_RUN, 0}, {REMAT_RUN, 2}}, 3, 0,
                         &verdict));
    assert_false(verdict.valid);
    assert_true(verdict.first_bad_step <= 1);
    remat_graph_free(graph);
}

static void x8_outputs_live_to_the_end(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "x8");
    const uint32_t early = remat_builder_value(b, "early", 3),
                   late = remat_builder_value(b, "late", 5);
    op(b, "E", 1, 0, NOTHING, LIST(early));
    op(b, "Q", 1, 10, NOTHING, NOTHING);
    op(b, "L", 1, 0, NOTHING, LIST(late));
    remat_builder_output(b, early);
    remat_builder_output(b, late);
    remat_graph *graph = finished(ctx, b);
    judge(ctx, graph, (expected){"0 1 2", true, 0, 13, 3, (const int64_t[]){3, 13, 8}});
    judge(ctx, graph, (expected){"0 1 0 2", true, 0, 10, 4, (const int64_t[]){3, 10, 3, 8}});
    remat_graph_free(graph);
}

/* A makes v, B w in place of v, C u in place of w; with_reader: D reads v. */
static remat_graph *in_place_graph(remat_ctx *ctx, bool with_reader)
{
    remat_builder *b = remat_builder_new(ctx, "x9");
    const uint32_t v = remat_builder_value(b, "v", 4), w = remat_builder_value(b, "w", 4),
                   u = remat_builder_value(b, "u", 4);
    op(b, "A", 1, 0, NOTHING, LIST(v));
    remat_builder_op_inplace(b, op(b, "B", 1, 0, LIST(v), LIST(w)), 0, 0);
    remat_builder_op_inplace(b, op(b, "C", 1, 0, LIST(w), LIST(u)), 0, 0);
    if (with_reader) op(b, "D", 1, 0, LIST(v), NOTHING);
    return finished(ctx, b);
}

static void x9_outputs_in_place_of_inputs(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = in_place_graph(ctx, false);
    judge(ctx, graph, (expected){"0 1 2", true, 0, 4, 3, (const int64_t[]){4, 4, 4}});
    /* Behind B nothing of the first v is left, and a second v is another one. */
    judge(ctx, graph, (expected){"0 1 0 2", true, 0, 8, 4, (const int64_t[]){4, 4, 8, 4}});
    judge(ctx, graph, (expected){"0 1 1 2", true, 0, 8, 4, (const int64_t[]){4, 8, 4, 4}});
    judge(ctx, graph, (expected){"0 o0 1 2", true, 0, 4, 3, (const int64_t[]){4, 4, 4, 4}});
    /* An offload is a touch, too. */
    judge(ctx, graph, (expected){"0 1 o0 2", true, 0, 8, 3, (const int64_t[]){4, 8, 8, 4}});
    remat_graph_free(graph);
    graph = in_place_graph(ctx, true);
    judge(ctx, graph, (expected){"0 1 2 3", true, 0, 8, 4, (const int64_t[]){4, 8, 8, 4}});
    judge(ctx, graph, (expected){"0 1 0 2 3", true, 0, 8, 5, (const int64_t[]){4, 4, 8, 8, 4}});
    judge(ctx, graph, (expected){"0 3 1 2", true, 0, 4, 4, (const int64_t[]){4, 4, 4, 4}});
    remat_graph_free(graph);
}

/* A makes v, B w in place of v, C s from w; D reads v and s. If A is pinned, there is one v only,
 * and B cannot take it. */
static void need_in_place(void **state)
{
    remat_ctx *ctx = *state;
    for (int pinned = 0; pinned < 2; pinned++) {
        remat_builder *b = remat_builder_new(ctx, "need");
        const uint32_t v = remat_builder_value(b, "v", 4), w = remat_builder_value(b, "w", 4),
                       s = remat_builder_value(b, "s", 0);
        remat_builder_op_set(b, op(b, "A", 1, 0, NOTHING, LIST(v)), REMAT_OP_PINNED, pinned);
        remat_builder_op_inplace(b, op(b, "B", 1, 3, LIST(v), LIST(w)), 0, 0);
        op(b, "C", 1, 0, LIST(w), LIST(s));
        op(b, "D", 1, 0, LIST(v, s), NOTHING);
        remat_graph *graph = finished(ctx, b);
        remat_info info = REMAT_INFO_INIT;
        OK(ctx, remat_graph_info(ctx, graph, &info));
        assert_int_equal(info.need_bytes, pinned ? 11 : 7);
        assert_int_equal(info.need_op, 1);
        uint32_t values[3], n;
        OK(ctx, remat_graph_need_values(ctx, graph, values, 3, &n));
        assert_int_equal(n, pinned ? 2 : 1);
        remat_graph_free(graph);
    }
}

/* W makes x, a view of v. B reads x, and may make w where v is. D reads v. */
static void x10_in_place_through_a_view(void **state)
{
    remat_ctx *ctx = *state;
    for (int is_output = 0; is_output < 2; is_output++) {
        remat_builder *b = remat_builder_new(ctx, "x10");
        const uint32_t v = remat_builder_value(b, "v", 4), x = remat_builder_view(b, "x", 2, v),
                       w = remat_builder_value(b, "w", 4);
        op(b, "A", 1, 0, NOTHING, LIST(v));
        op(b, "W", 0, 0, LIST(v), LIST(x));
        remat_builder_op_inplace(b, op(b, "B", 1, 1, LIST(x), LIST(w)), 0, 0);
        op(b, "D", 1, 0, LIST(v), NOTHING);
        if (is_output) remat_builder_output(b, x);
        remat_graph *graph = finished(ctx, b);
        judge(ctx, graph, (expected){"0 1 2 3", true, 0, 9, 3, (const int64_t[]){4, 4, 9, 4}});
        /* D needs a v of its own: B takes the one that the view refers to, if no output does. */
        const int64_t taken[] = {4, 4, 4, 8, 5}, kept[] = {4, 4, 4, 8, 9};
        judge(ctx, graph,
              is_output ? (expected){"0 1 3 0 2", true, 0, 9, 4, kept}
                        : (expected){"0 1 3 0 2", true, 0, 8, 4, taken});
        remat_graph_free(graph);
    }
}

static void transfers(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "transfers");
    const uint32_t x = remat_builder_value(b, "x", 2), v = remat_builder_value(b, "v", 6),
                   w = remat_builder_view(b, "w", 6, v);
    op(b, "A", 3, 0, LIST(x), LIST(v));
    op(b, "V", 0, 0, LIST(v), LIST(w));
    op(b, "Q", 1, 10, NOTHING, NOTHING);
    op(b, "B", 1, 0, LIST(w), NOTHING);
    remat_graph *graph = finished(ctx, b);
    const int64_t bandwidth = 4000000000; /* 6 bytes: ceil(1.5) */
    judge_at(
        ctx, graph, bandwidth,
        (expected){"0 o1 1 2 f1 1 3", true, 0, 12, 9, (const int64_t[]){8, 8, 8, 12, 8, 8, 8}});
    judge_at(ctx, graph, bandwidth,
             (expected){
                 "0 o1 1 2 f1 3", true, 0, 18, 9,
                 (const int64_t[]){8, 8, 8, 18, 14, 8}}); /* w still refers to the first storage */
    remat_verdict verdict = REMAT_VERDICT_INIT;
    OK(ctx,
       remat_verify(ctx, graph,
                    (const remat_step[]){{0, 0}, {1, 1}, {1, 1}, {0, 1}, {0, 2}, {2, 1}, {0, 3}}, 7,
                    bandwidth, &verdict));
    assert_true(verdict.valid);
    assert_int_equal(verdict.host_bytes, 6); /* one copy, however often it is sent */
    assert_int_equal(verdict.cost, 5 + 3 * 2);
    judge(ctx, graph, (expected){"0 f1 1 2 3", false, 1, 0, 0, NULL}); /* never sent */
    judge(ctx, graph, (expected){"o1 0 1 2 3", false, 0, 0, 0, NULL}); /* not made yet */
    judge(ctx, graph, (expected){"0 o0 1 2 3", false, 1, 0, 0, NULL}); /* resident */
    judge(ctx, graph, (expected){"0 1 o2 2 3", false, 2, 0, 0, NULL}); /* a view */
    judge(ctx, graph, (expected){"0 1 o3 2 3", false, 2, 0, 0, NULL}); /* no such value */
    judge(ctx, graph, (expected){"0 o1 1 2 f1 1 3", true, 0, 12, 5, NULL});
    FAILS(ctx, REMAT_E_USAGE, remat_verify(ctx, graph, NULL, 0, -1, &verdict));
    remat_graph_free(graph);
}

/* A context whose options would price transfers, bound plans and judge needs in another way. */
static remat_ctx *other_context(void)
{
    remat_ctx *other = remat_ctx_new(NULL);
    assert_non_null(other);
    OK(other, remat_ctx_set(other, "bandwidth", 7));
    OK(other, remat_ctx_set(other, "offload", 1));
    OK(other, remat_ctx_set(other, "bound_rules", 0));
    OK(other, remat_ctx_set(other, "seed", 99));
    return other;
}

static void same_verdict(remat_ctx *ctx, const remat_graph *graph, const remat_plan *plan)
{
    remat_ctx *contexts[] = {ctx, other_context()};
    size_t n;
    const remat_step *steps = remat_plan_steps(plan, &n);
    remat_verdict verdicts[2][2] = {{REMAT_VERDICT_INIT, REMAT_VERDICT_INIT},
                                    {REMAT_VERDICT_INIT, REMAT_VERDICT_INIT}};
    for (int i = 0; i < 2; i++) {
        OK(contexts[i], remat_plan_verify_bound(contexts[i], graph, plan, &verdicts[i][0]));
        OK(contexts[i], remat_verify(contexts[i], graph, steps, n,
                                     remat_plan_summary(plan)->bandwidth, &verdicts[i][1]));
        for (int k = 0; k < 2; k++) {
            const remat_verdict *v = &verdicts[i][k];
            if (!v->valid) fail_msg("context %d: %s", i, v->reason);
            assert_int_equal(v->peak_bytes, remat_plan_summary(plan)->peak_bytes);
            assert_int_equal(v->cost, remat_plan_summary(plan)->cost);
            assert_int_equal(v->host_bytes, remat_plan_summary(plan)->offloaded_bytes);
        }
    }
    remat_ctx_free(contexts[1]);
}

/* From a start with transfers that runs R once too often. What strategies prove that move nothing
 * is not of its kind. And a bandwidth alone allows no transfers. */
static void improve_without_transfers(remat_ctx *ctx, const remat_graph *graph)
{
    static const char *const strategies[] = {"auto", "exact", "keep-all"};
    remat_step steps[32];
    const size_t n = steps_of("0 1 1 o0 2 f0 3", steps);
    remat_plan *start = NULL, *plan = NULL;
    OK(ctx, remat_ctx_set(ctx, "offload", 0));
    OK(ctx, remat_plan_of_steps(ctx, graph, steps, n, NULL, 15, 2000000000, &start));
    assert_int_equal(remat_plan_summary(start)->cost, 13);
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        OK(ctx, remat_plan_improve(ctx, graph, start, strategies[i], 15, &plan));
        assert_true(remat_plan_summary(plan)->bound_cost <= 12); /* which fastsa finds */
        remat_plan_free(plan);
        OK(ctx, remat_plan_make(ctx, graph, strategies[i], 15, &plan));
        assert_int_equal(remat_plan_summary(plan)->bandwidth, 0);
        assert_int_equal(remat_plan_status(plan), REMAT_E_INFEASIBLE);
        remat_plan_free(plan);
    }
    remat_plan_free(start);
}

/* An offload that nothing fetches has its price too. The strategy has no plan within the budget, so
 * the start stays, which has. */
static void improve_from_a_lone_offload(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "lone offload");
    const uint32_t v = remat_builder_value(b, "v", 6);
    op(b, "A", 1, 0, NOTHING, LIST(v));
    op(b, "Q", 1, 10, NOTHING, NOTHING);
    op(b, "B", 1, 0, LIST(v), NOTHING);
    remat_graph *graph = finished(ctx, b);
    remat_step steps[32];
    const size_t n = steps_of("1 0 o0 2", steps);
    for (int64_t bandwidth = 0; bandwidth <= 2000000000; bandwidth += 2000000000) {
        remat_plan *start = NULL, *plan = NULL;
        OK(ctx, remat_ctx_set(ctx, "bandwidth", bandwidth));
        OK(ctx, remat_plan_of_steps(ctx, graph, steps, n, NULL, 12, bandwidth, &start));
        OK(ctx, remat_plan_improve(ctx, graph, start, "keep-all", 12, &plan));
        assert_int_equal(remat_plan_status(plan), REMAT_OK);
        assert_int_equal(remat_plan_summary(plan)->cost, bandwidth ? 6 : 3);
        same_verdict(ctx, graph, plan);
        same_verdict(ctx, graph, start);
        remat_plan_free(plan), remat_plan_free(start);
    }
    OK(ctx, remat_ctx_set(ctx, "bandwidth", 0));
    remat_graph_free(graph);
}

/* P is pinned and holds 6 bytes while Q runs with a workspace of 10: only a transfer makes room. */
static void verdicts_do_not_depend_on_options(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "pure");
    const uint32_t v = remat_builder_value(b, "v", 6), w = remat_builder_value(b, "w", 1),
                   y = remat_builder_value(b, "y", 1);
    remat_builder_op_set(b, op(b, "P", 3, 0, NOTHING, LIST(v)), REMAT_OP_PINNED, 1);
    op(b, "R", 1, 0, LIST(v), LIST(w));
    op(b, "Q", 1, 10, LIST(w), LIST(y));
    op(b, "B", 1, 0, LIST(v, y), NOTHING);
    remat_graph *graph = finished(ctx, b);
    remat_plan *plan = NULL, *impossible = NULL;
    OK(ctx, remat_plan_make(ctx, graph, "keep-all", 15, &impossible));
    assert_int_equal(remat_plan_status(impossible), REMAT_E_INFEASIBLE); /* without transfers */
    same_verdict(ctx, graph, impossible);
    OK(ctx, remat_ctx_set(ctx, "bandwidth", 2000000000));
    OK(ctx, remat_ctx_set(ctx, "offload", 1));
    OK(ctx, remat_plan_make(ctx, graph, "fastsa", 15, &plan));
    assert_int_equal(remat_plan_status(plan), REMAT_OK);
    assert_int_equal(remat_plan_summary(plan)->offloaded_bytes, 6);
    assert_int_equal(remat_plan_summary(plan)->cost, 6 + 3 + 3);
    same_verdict(ctx, graph, plan);
    improve_without_transfers(ctx, graph);
    OK(ctx, remat_ctx_set(ctx, "bandwidth", 0));
    same_verdict(ctx, graph, plan);
    remat_plan_free(plan), remat_plan_free(impossible), remat_graph_free(graph);
}

static void what_is_not_there_cannot_be_read(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "order");
    const uint32_t u = remat_builder_value(b, "u", 1), v = remat_builder_value(b, "v", 1);
    op(b, "A", 1, 0, NOTHING, LIST(u));
    op(b, "B", 1, 0, LIST(u), LIST(v));
    op(b, "C", 1, 0, LIST(v), NOTHING);
    remat_graph *graph = finished(ctx, b);
    judge(ctx, graph, (expected){"1 0 2", false, 0, 0, 0, NULL});
    judge(ctx, graph, (expected){"0 2 1", false, 1, 0, 0, NULL});
    judge(ctx, graph, (expected){"0 1", false, REMAT_NONE, 0, 0, NULL});
    judge(ctx, graph, (expected){"0 1 2 3", false, 3, 0, 0, NULL});
    judge(ctx, graph, (expected){"", false, REMAT_NONE, 0, 0, NULL});
    remat_verdict verdict = REMAT_VERDICT_INIT;
    OK(ctx, remat_verify(ctx, graph, (const remat_step[]){{0, 0}, {7, 0}}, 2, 0,
                         &verdict)); /* no such kind of step */
    assert_false(verdict.valid);
    assert_int_equal(verdict.first_bad_step, 1);
    remat_program *program = NULL;
    assert_int_equal(remat_lower(ctx, graph, (const remat_step[]){{0, 1}}, 1, &program),
                     REMAT_E_PLAN);
    assert_null(program);
    remat_graph_free(graph);
}

static void sums_that_overflow_are_refused(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "huge");
    const uint32_t v = remat_builder_value(b, "v", (int64_t)1 << 61),
                   w = remat_builder_view(b, "w", 1, v);
    op(b, "A", (int64_t)1 << 60, 0, NOTHING, LIST(v));
    op(b, "W", 0, 0, LIST(v), LIST(w));
    remat_builder_output(b, v);
    remat_graph *graph = finished(ctx, b);
    judge(ctx, graph, (expected){"0 1", true, 0, (int64_t)1 << 61, (int64_t)1 << 60, NULL});
    remat_verdict verdict = REMAT_VERDICT_INIT; /* eight runs cost 2^63 */
    remat_step steps[9] = {{0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 0}, {0, 1}};
    const remat_status status = remat_verify(ctx, graph, steps, 9, 0, &verdict);
    assert_true(status != REMAT_OK || !verdict.valid);
    remat_graph_free(graph);

    b = remat_builder_new(
        ctx, "huge views"); /* five storages of 2^61 alive together, through five views */
    const uint32_t big = remat_builder_value(b, "v", (int64_t)1 << 61);
    uint32_t views[5];
    op(b, "A", 1, 0, NOTHING, LIST(big));
    for (uint32_t i = 0; i < 5; i++) {
        views[i] = remat_builder_view(b, NULL, 1, big);
        op(b, "V", 0, 0, LIST(big), &views[i], 1);
    }
    remat_builder_op(b, "use", views, 5, NOTHING);
    graph = finished(ctx, b);
    remat_step again[16];
    const size_t n = steps_of("0 1 0 2 0 3 0 4 0 5 6", again);
    const remat_status answer = remat_verify(ctx, graph, again, n, 0, &verdict);
    assert_true(answer != REMAT_OK || !verdict.valid);
    remat_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CONTEXT(x1_view_keeps_its_storage),
        WITH_CONTEXT(x2_every_output_is_made),
        WITH_CONTEXT(x3_dead_ops_run_too),
        WITH_CONTEXT(x4_one_run_serves_all_outputs),
        WITH_CONTEXT(x5_view_of_a_resident_is_free),
        WITH_CONTEXT(x6_expand_adds_nothing),
        WITH_CONTEXT(x7_pins_run_once_in_order),
        WITH_CONTEXT(x8_outputs_live_to_the_end),
        WITH_CONTEXT(x9_outputs_in_place_of_inputs),
        WITH_CONTEXT(x10_in_place_through_a_view),
        WITH_CONTEXT(need_in_place),
        WITH_CONTEXT(transfers),
        WITH_CONTEXT(improve_from_a_lone_offload),
        WITH_CONTEXT(verdicts_do_not_depend_on_options),
        WITH_CONTEXT(what_is_not_there_cannot_be_read),
        WITH_CONTEXT(sums_that_overflow_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
