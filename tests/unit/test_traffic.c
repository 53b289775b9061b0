/* test_traffic.c: kernels and the bytes they move: the min-cut paper's own counts, and each rule of
 * the counter by itself. */
#include "support.h"

#include "fusion/traffic.h"

#include <stdlib.h>
#include <string.h>

static remat_graph *zoo(remat_ctx *ctx, const char *spec)
{
    remat_graph *graph = NULL;
    OK(ctx, remat_graph_load(ctx, spec, &graph));
    return graph;
}

/* Fused, or every op on its own. */
static rm_kernel_traffic count(remat_ctx *ctx, const remat_graph *graph, const char *schedule,
                               bool fused)
{
    remat_step steps[64];
    const size_t n = steps_of(schedule, steps);
    remat_verdict verdict = REMAT_VERDICT_INIT;
    OK(ctx, remat_verify(ctx, graph, steps, n, 0, &verdict));
    if (!verdict.valid) fail_msg("%s", verdict.reason);
    rm_trace trace;
    rm_kernels kernels;
    rm_kernel_traffic traffic;
    const rm_mark mark = rm_scratch_mark(ctx);
    OK(ctx, rm_trace_of(ctx, graph, steps, n, &trace));
    OK(ctx, (fused ? rm_kernels_find : rm_kernels_of_steps)(ctx, &trace, &kernels));
    OK(ctx, rm_kernel_traffic_of(ctx, &trace, &kernels, &traffic));
    rm_scratch_release(ctx, mark);
    return traffic;
}

typedef struct vector {
    const char *spec, *schedule;
    int64_t bytes;
} vector;

static void the_paper(void **state)
{
    static const vector vectors[] = {
        {"zoo:f", "0 1 2 3 4", 7},                    /* TV-M1: naive AD saves both results */
        {"zoo:f", "0 1 2 0 1 3 4", 5},                /* cut {x} */
        {"zoo:f1", "0 1 2 3 4 5 6 7 8 9 10 11", 11},  /* TV-M2: naive AD: {add3, cos1} */
        {"zoo:f1", "0 1 2 3 4 5 3 6 7 8 9 10 11", 9}, /* cut {add3} */
        {"zoo:f1", "0 1 2 3 4 5 0 1 2 3 6 7 8 9 10 11", 11}, /* the inputs */
        {"zoo:f2", "0 1 2 3 4", 18},   /* TV-M3: the mask, a byte an element */
        {"zoo:f2", "0 1 2 3 1 4", 24}, /* the random numbers */
        {"zoo:gelu", "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22",
         13}, /* TV-M4: x and four more */
        {"zoo:gelu", "0 1 2 3 4 5 6 7 8 9 7 0 1 2 3 4 5 6 10 11 12 13 14 15 16 17 18 19 20 21 22",
         5},
    };
    for (size_t i = 0; i < LENGTH(vectors); i++) {
        remat_graph *graph = zoo(*state, vectors[i].spec);
        const rm_kernel_traffic traffic = count(*state, graph, vectors[i].schedule, true);
        if (traffic.total != vectors[i].bytes)
            fail_msg("%s, %s: %d instead of %d", vectors[i].spec, vectors[i].schedule,
                     (int)traffic.total, (int)vectors[i].bytes);
        assert_int_equal(traffic.others.read_bytes + traffic.others.written_bytes, 0);
        remat_graph_free(graph);
    }
}

/* TV-M6: "4 memory reads and 4 memory writes in total"; e, which the paper does not count, is one
 * of each. */
static void figure_4(void **state)
{
    remat_graph *graph = zoo(*state, "zoo:fig4");
    const rm_kernel_traffic before = count(*state, graph, "0 1 2 3 4", true),
                            after = count(*state, graph, "0 1 2 3 0 1 4", true);
    assert_int_equal(before.kernels.read_bytes, 4),
        assert_int_equal(before.kernels.written_bytes, 4);
    assert_int_equal(after.kernels.read_bytes, 3), assert_int_equal(after.kernels.written_bytes, 2);
    assert_int_equal(before.others.read_bytes, 1), assert_int_equal(before.others.written_bytes, 1);
    const rm_kernel_traffic apart =
        count(*state, graph, "0 1 2 3 4", false); /* 7 reads, 5 writes */
    assert_int_equal(apart.total, 12);
    remat_graph_free(graph);
    graph = zoo(
        *state,
        "zoo:fig4?k=1000"); /* TV-M7: recomputing b reads a again; recomputing c alone does not */
    assert_int_equal(count(*state, graph, "0 1 2 3 4", true).total, 1000 + 3 + 3 + 1 + 2);
    assert_int_equal(count(*state, graph, "0 1 2 3 0 1 4", true).total, 2000 + 1 + 1 + 1 + 2);
    assert_int_equal(count(*state, graph, "0 1 2 3 1 4", true).total, 1000 + 2 + 2 + 1 + 2);
    remat_graph_free(graph);
}

/* ---- the rules, on graphs of a line each ---- */

typedef struct op_line {
    const char *name;
    int op_class;
    uint32_t in[3], n_in, out;
} op_line;

static remat_graph *build(remat_ctx *ctx, remat_builder *b, const op_line *ops, size_t n_ops,
                          uint32_t output)
{
    for (size_t i = 0; i < n_ops; i++) {
        const uint32_t op = remat_builder_op(b, ops[i].name, ops[i].in, ops[i].n_in, &ops[i].out,
                                             ops[i].out != REMAT_NONE);
        remat_builder_op_set(b, op, REMAT_OP_CLASS, ops[i].op_class);
        remat_builder_op_set(b, op, REMAT_OP_PHASE, REMAT_FORWARD);
    }
    if (output != REMAT_NONE) remat_builder_output(b, output);
    remat_graph *graph = NULL;
    OK(ctx, remat_builder_finish(b, &graph));
    remat_builder_free(b);
    return graph;
}

enum { POINT = REMAT_CLASS_FUSIBLE, DENSE = REMAT_CLASS_COMPUTE, VIEW = REMAT_CLASS_VIEW };

/* An op that does not fuse makes a (12 bytes); three slices of 4, a fourth that overlaps, an
 * expanded one of 40. */
static void views_move_nothing(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "views");
    remat_builder_value(b, "x", 1), remat_builder_value(b, "a", 12);
    for (int i = 0; i < 3; i++) remat_builder_view(b, "slice", 4, 1);
    remat_builder_view(b, "wide", 40, 1);
    for (int i = 0; i < 4; i++) remat_builder_value(b, "out", 1);
    const op_line ops[] = {
        {"mm", DENSE, {0}, 1, 1},     {"s0", VIEW, {1}, 1, 2},   {"s1", VIEW, {1}, 1, 3},
        {"s2", VIEW, {1}, 1, 4},      {"wide", VIEW, {1}, 1, 5}, {"one", POINT, {2}, 1, 6},
        {"two", DENSE, {3, 4}, 2, 7}, {"w", POINT, {5}, 1, 8},   {"all", POINT, {2, 3, 5}, 3, 9}};
    remat_graph *graph = build(ctx, b, ops, LENGTH(ops), 9);
    const rm_kernel_traffic t = count(ctx, graph, "0 1 2 3 4 5 6 7 8", true);
    assert_int_equal(t.others.read_bytes, 1 + 8);
    assert_int_equal(t.others.written_bytes, 12 + 1);
    assert_int_equal(t.kernels.read_bytes,
                     4 + 12 + 12); /* one slice; the storage of the expanded view; all of it once */
    assert_int_equal(t.kernels.written_bytes, 1); /* nobody reads the other results */
    remat_graph_free(graph);
}

/* p -> view -> q: a view of what the kernel made is inside it; the same view of a resident value
 * ties nothing together. */
static void views_join_their_maker(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "inside");
    remat_builder_value(b, "x", 8), remat_builder_value(b, "p", 8),
        remat_builder_view(b, "v", 8, 1), remat_builder_value(b, "q", 8);
    const op_line ops[] = {
        {"p", POINT, {0}, 1, 1}, {"v", VIEW, {1}, 1, 2}, {"q", POINT, {2}, 1, 3}};
    remat_graph *graph = build(ctx, b, ops, LENGTH(ops), 3);
    assert_int_equal(count(ctx, graph, "0 1 2", true).total, 16);
    assert_int_equal(count(ctx, graph, "0 1 2", false).total, 32);
    remat_graph_free(graph);
    b = remat_builder_new(ctx, "outside");
    remat_builder_value(b, "x", 8), remat_builder_view(b, "v", 8, 0),
        remat_builder_value(b, "p", 8), remat_builder_value(b, "q", 8),
        remat_builder_value(b, "r", 8);
    const op_line apart[] = {{"v", VIEW, {0}, 1, 1},
                             {"p", POINT, {1}, 1, 2},
                             {"q", POINT, {1}, 1, 3},
                             {"r", DENSE, {2, 3}, 2, 4}};
    graph = build(ctx, b, apart, LENGTH(apart), 4);
    assert_int_equal(count(ctx, graph, "0 1 2 3", true).kernels.read_bytes,
                     16); /* p and q each read x */
    remat_graph_free(graph);
}

/* Dead ends that check something read nothing, unless they are pinned. */
static void ops_without_outputs(void **state)
{
    for (int pinned = 0; pinned < 2; pinned++) {
        remat_ctx *ctx = *state;
        remat_builder *b = remat_builder_new(ctx, "ends");
        remat_builder_value(b, "x", 8), remat_builder_value(b, "p", 8),
            remat_builder_value(b, "q", 8);
        const op_line ops[] = {{"p", POINT, {0}, 1, 1},
                               {"check", REMAT_CLASS_OTHER, {1}, 1, REMAT_NONE},
                               {"q", POINT, {1}, 1, 2}};
        for (size_t i = 0; i < LENGTH(ops); i++) {
            const uint32_t op = remat_builder_op(b, ops[i].name, ops[i].in, ops[i].n_in,
                                                 &ops[i].out, ops[i].out != REMAT_NONE);
            remat_builder_op_set(b, op, REMAT_OP_CLASS, ops[i].op_class);
            if (op == 1) remat_builder_op_set(b, op, REMAT_OP_PINNED, pinned);
        }
        remat_builder_output(b, 2);
        remat_graph *graph = NULL;
        OK(ctx, remat_builder_finish(b, &graph));
        remat_builder_free(b);
        assert_int_equal(count(ctx, graph, "0 1 2", true).total, pinned ? 32 : 16);
        remat_graph_free(graph);
    }
}

/* An offload reads, a fetch writes; a reader after the fetch is no longer in the kernel of the
 * maker. */
static void transfers(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "transfers");
    remat_builder_value(b, "x", 8), remat_builder_value(b, "p", 8), remat_builder_value(b, "q", 8);
    const op_line ops[] = {{"p", POINT, {0}, 1, 1}, {"q", POINT, {1}, 1, 2}};
    remat_graph *graph = build(ctx, b, ops, LENGTH(ops), 2);
    assert_int_equal(count(ctx, graph, "0 1", true).total, 16);
    assert_int_equal(count(ctx, graph, "0 o1 f1 1", true).total, 8 + 8 + 8 + 8 + 8 + 8);
    remat_graph_free(graph);
}

/* A deep branch and a shallow one that meet: the shallow kernel is lifted. */
static void branches_meet(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "branches");
    for (int i = 0; i < 7; i++) remat_builder_value(b, "v", 1);
    const op_line ops[] = {{"shallow", POINT, {0}, 1, 1}, {"mm1", DENSE, {0}, 1, 2},
                           {"p", POINT, {2}, 1, 3},       {"mm2", DENSE, {3}, 1, 4},
                           {"deep", POINT, {4}, 1, 5},    {"add", POINT, {1, 5}, 2, 6}};
    remat_graph *graph = build(ctx, b, ops, LENGTH(ops), 6);
    assert_int_equal(count(ctx, graph, "0 1 2 3 4 5", true).kernels.read_bytes,
                     1 + 2); /* p; {shallow, deep, add} */
    remat_graph_free(graph);
}

static void plans_carry_it(void **state)
{
    remat_ctx *ctx = *state;
    static const struct {
        const char *spec;
        int64_t traffic, saved;
    } table[] = {{"zoo:f", 7, 2},
                 {"zoo:f1", 11, 2},
                 {"zoo:f2?n=10", 180, 10},
                 {"zoo:gelu?size=134217728", 13 * INT64_C(134217728), 4 * INT64_C(134217728)},
                 {"zoo:fig4", 10, REMAT_ABSENT},
                 {"zoo:chain", REMAT_ABSENT, 16},
                 {"zoo:random-layered", REMAT_ABSENT, REMAT_ABSENT}};
    for (size_t i = 0; i < LENGTH(table); i++) {
        remat_graph *graph = zoo(ctx, table[i].spec);
        remat_plan *plan = NULL;
        OK(ctx, remat_plan_make(ctx, graph, "keep-all", REMAT_BUDGET_NONE, &plan));
        assert_int_equal(remat_plan_summary(plan)->traffic_bytes, table[i].traffic);
        assert_int_equal(remat_plan_summary(plan)->saved_bytes, table[i].saved);
        remat_plan_free(plan), remat_graph_free(graph);
    }
}

/* Sizes near 2^62 with many readers: no sum overflows, and none is made up. */
static void sums_pass_the_limit(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "huge");
    remat_builder_value(b, "x", RM_MAX_SUM - 100);
    for (int i = 0; i < 4; i++) {
        const uint32_t v = remat_builder_value(b, "v", 1),
                       op = remat_builder_op(b, "op", LIST(0), LIST(v));
        remat_builder_op_set(b, op, REMAT_OP_CLASS, DENSE);
        remat_builder_op_set(b, op, REMAT_OP_PHASE, REMAT_FORWARD);
    }
    remat_graph *graph = NULL;
    OK(ctx, remat_builder_finish(b, &graph));
    remat_builder_free(b);
    assert_int_equal(count(ctx, graph, "0 1 2 3", true).total, REMAT_ABSENT);
    remat_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CONTEXT(the_paper),           WITH_CONTEXT(figure_4),
        WITH_CONTEXT(views_move_nothing),  WITH_CONTEXT(views_join_their_maker),
        WITH_CONTEXT(ops_without_outputs), WITH_CONTEXT(transfers),
        WITH_CONTEXT(branches_meet),       WITH_CONTEXT(plans_carry_it),
        WITH_CONTEXT(sums_pass_the_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
