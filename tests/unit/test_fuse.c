/* test_fuse.c: section 3.7 on the paper's own example, plans as programs, and graphs whose ops are
 * kernels. */
#include "support.h"

#include "graph/graph.h"

#include <string.h>

static remat_graph *load(remat_ctx *ctx, const char *source)
{
    remat_graph *graph = NULL;
    OK(ctx, remat_graph_load(ctx, source, &graph));
    return graph;
}

static remat_graph *fuse(remat_ctx *ctx, const remat_graph *graph, const char *strategy,
                         remat_fusion *fusion)
{
    remat_plan *plan = NULL;
    remat_graph *program = NULL;
    size_t n;
    OK(ctx, remat_plan_make(ctx, graph, strategy, REMAT_BUDGET_NONE, &plan));
    const remat_step *steps = remat_plan_steps(plan, &n);
    OK(ctx, remat_fuse(ctx, graph, steps, n, fusion, &program));
    assert_int_equal(fusion->before.total_bytes,
                     remat_plan_summary(plan)->traffic_bytes); /* one counter */
    remat_plan_free(plan);
    return program;
}

static void check(const remat_traffic *t, uint32_t n_kernels, int64_t reads, int64_t writes,
                  int64_t others)
{
    assert_int_equal(t->n_kernels, n_kernels);
    assert_int_equal(t->kernels.read_bytes, reads);
    assert_int_equal(t->kernels.written_bytes, writes);
    assert_int_equal(t->others.read_bytes + t->others.written_bytes, others);
    assert_int_equal(t->total_bytes, reads + writes + others);
}

/* TV-M6: 4 reads and 4 writes, then 3 and 2: b and c are computed again in the second kernel. */
static void figure_4(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = load(ctx, "zoo:fig4");
    remat_fusion f = REMAT_FUSION_INIT;
    remat_graph *program = fuse(ctx, graph, "keep-all", &f);
    check(&f.unfused, 0, 0, 0, 12);
    check(&f.before, 2, 4, 4, 2);
    check(&f.after, 2, 3, 2, 2);
    assert_int_equal(f.copies, 2);
    static const char *const names[] = {"b", "c", "d", "e", "b.again", "c.again", "f"};
    assert_int_equal(remat_graph_n_ops(program), LENGTH(names));
    for (uint32_t op = 0; op < LENGTH(names); op++)
        assert_string_equal(remat_graph_op_name(program, op), names[op]);
    static const uint32_t kernels[] = {0, 0, 0, REMAT_NONE, 2, 2, 2};
    assert_memory_equal(program->kernel, kernels, sizeof kernels);
    uint32_t kernel[7], n;
    remat_moved moved[7];
    OK(ctx, remat_graph_kernels(ctx, program, kernel, moved, &n));
    static const uint32_t expected[] = {0, 0, 0, 1, 2, 2, 2};
    assert_int_equal(n, 3);
    assert_memory_equal(kernel, expected, sizeof expected);
    assert_int_equal(moved[0].read_bytes, 1), assert_int_equal(moved[0].written_bytes, 1);
    assert_int_equal(moved[2].read_bytes, 2), assert_int_equal(moved[2].written_bytes, 1);
    remat_graph_free(program), remat_graph_free(graph);
}

/* TV-M7: b is the sum of a large a: the cut is {b}, with the ban on reductions and without, and
 * only c is computed again. */
static void figure_4_with_a_sum(void **state)
{
    for (int64_t factor = 4; factor <= 1000000; factor *= 250000) {
        remat_ctx *ctx = *state;
        OK(ctx, remat_ctx_set(ctx, "reduction_factor", factor));
        remat_graph *graph = load(ctx, "zoo:fig4?k=1000");
        remat_fusion f = REMAT_FUSION_INIT;
        remat_graph *program = fuse(ctx, graph, "keep-all", &f);
        check(&f.before, 2, 1003, 4, 2);
        check(&f.after, 2, 1002, 3, 2);
        assert_int_equal(f.copies, 1);
        remat_graph_free(program), remat_graph_free(graph);
    }
}

/* Between the passes the pairs find what the cut of the whole graph finds; after mincut there is
 * nothing left to gain. */
static void the_passes(void **state)
{
    static const struct {
        const char *spec;
        int64_t naive, best;
    } table[] = {{"zoo:f", 7, 5}, {"zoo:f1", 11, 9}, {"zoo:f2", 18, 18}, {"zoo:gelu", 13, 5}};
    for (size_t i = 0; i < LENGTH(table); i++) {
        remat_ctx *ctx = *state;
        remat_graph *graph = load(ctx, table[i].spec);
        remat_fusion f = REMAT_FUSION_INIT;
        remat_graph *program = fuse(ctx, graph, "keep-all", &f);
        assert_int_equal(f.before.total_bytes, table[i].naive);
        assert_int_equal(f.after.total_bytes, table[i].best);
        remat_graph_free(program);
        program = fuse(ctx, graph, "mincut", &f);
        assert_int_equal(f.before.total_bytes, table[i].best);
        assert_int_equal(f.after.total_bytes, table[i].best);
        remat_graph_free(program), remat_graph_free(graph);
    }
}

/* p is read by q in another kernel and, in the first case, by a third op: then it is written anyway
 * ("in V_m"), and reading it (10) beats reading x again (15). Otherwise writing and reading it (20)
 * does not. */
static void third_readers(void **state)
{
    for (int third = 1; third >= 0; third--) {
        remat_ctx *ctx = *state;
        remat_builder *b = remat_builder_new(ctx, "third");
        const uint32_t x = remat_builder_value(b, "x", 15), p = remat_builder_value(b, "p", 10),
                       d = remat_builder_value(b, "d", 1), e = remat_builder_value(b, "e", 1),
                       q = remat_builder_value(b, "q", 1);
        const uint32_t lines[] = {remat_builder_op(b, "p", LIST(x), LIST(p)),
                                  remat_builder_op(b, "d", LIST(p), LIST(d)),
                                  third ? remat_builder_op(b, "e", LIST(d, p), LIST(e))
                                        : remat_builder_op(b, "e", LIST(d), LIST(e)),
                                  remat_builder_op(b, "q", LIST(p, e), LIST(q))};
        for (size_t i = 0; i < LENGTH(lines); i++) {
            remat_builder_op_set(b, lines[i], REMAT_OP_CLASS,
                                 i == 2 ? REMAT_CLASS_COMPUTE : REMAT_CLASS_FUSIBLE);
            remat_builder_op_set(b, lines[i], REMAT_OP_PHASE, REMAT_FORWARD);
        }
        remat_builder_output(b, q);
        remat_graph *graph = NULL;
        OK(ctx, remat_builder_finish(b, &graph));
        remat_builder_free(b);
        remat_fusion f = REMAT_FUSION_INIT;
        remat_graph *program = fuse(ctx, graph, "keep-all", &f);
        assert_int_equal(f.copies, third ? 0 : 1);
        remat_graph_free(program), remat_graph_free(graph);
    }
}

/* Plans of real graphs: the counter says the same of the schedule and of its graph; 3.7 never
 * loses. */
static void plans_become_programs(void **state)
{
    static const char *const sources[] = {REMAT_TEST_DATA "/graphs/resnet18.json.gz",
                                          REMAT_TEST_DATA "/graphs/distilbert.json.gz",
                                          "zoo:gpt?layers=2", "zoo:unet?batch=1"};
    static const char *const strategies[] = {"keep-all", "mincut", "save-inputs", "chen-sqrt"};
    for (size_t i = 0; i < LENGTH(sources); i++)
        for (size_t k = 0; k < LENGTH(strategies); k++) {
            remat_ctx *ctx = *state;
            remat_graph *graph = load(ctx, sources[i]), *live = NULL;
            OK(ctx, remat_graph_prepare(ctx, graph, REMAT_DCE, NULL, &live));
            remat_fusion f = REMAT_FUSION_INIT;
            remat_graph *program = fuse(ctx, live, strategies[k], &f);
            assert_true(f.after.total_bytes <= f.before.total_bytes &&
                        f.before.total_bytes < f.unfused.total_bytes);
            remat_plan *plan = NULL;
            OK(ctx, remat_plan_make(ctx, program, "keep-all", REMAT_BUDGET_NONE, &plan));
            assert_int_equal(remat_plan_summary(plan)->traffic_bytes, f.after.total_bytes);
            remat_plan_free(plan), remat_graph_free(program), remat_graph_free(live),
                remat_graph_free(graph);
        }
}

static void bad_calls(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = load(ctx, "zoo:f"), *program = NULL;
    remat_fusion f = REMAT_FUSION_INIT;
    remat_step steps[16];
    size_t n = steps_of("0 2", steps);
    FAILS(ctx, REMAT_E_PLAN, remat_fuse(ctx, graph, steps, n, &f, &program));
    n = steps_of("0 1 o1 f1 2 3 4", steps);
    FAILS(ctx, REMAT_E_APPLIES, remat_fuse(ctx, graph, steps, n, &f, &program));
    assert_null(program);
    remat_graph_free(graph);
}

/* ---- kernels as ops ---- */

static void kernels_are_ops(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = load(ctx, "zoo:gelu?size=8"), *kernels = NULL;
    OK(ctx, remat_graph_prepare(ctx, graph, REMAT_FUSE, "node", &kernels));
    assert_int_equal(remat_graph_n_ops(kernels), 3); /* forward, boundary, backward */
    assert_string_equal(remat_graph_op_target(kernels, 0), "remat.fused");
    assert_int_equal(remat_graph_op_get(kernels, 0, REMAT_OP_COST), 9);
    assert_int_equal(remat_graph_op_get(kernels, 2, REMAT_OP_COST), 13);
    uint32_t n;
    remat_graph_op_out(kernels, 0, &n);
    assert_int_equal(n, 5); /* the result and the four tensors of Table 1 */
    remat_plan *plan = NULL;
    OK(ctx, remat_plan_make(ctx, kernels, "keep-all", REMAT_BUDGET_NONE, &plan));
    const remat_summary *s = remat_plan_summary(plan);
    assert_int_equal(s->peak_bytes, 8 * 8); /* x, out, four tensors, two gradients */
    assert_int_equal(s->traffic_bytes, 13 * 8);
    size_t n_steps;
    const remat_step *steps =
        remat_plan_steps(plan, &n_steps); /* kernels go by their last op in the file */
    assert_int_equal(n_steps, 3);
    assert_int_equal(steps[0].index, 8), assert_int_equal(steps[1].index, 9),
        assert_int_equal(steps[2].index, 22);
    remat_verdict verdict = REMAT_VERDICT_INIT;
    OK(ctx, remat_plan_verify(ctx, kernels, plan, &verdict));
    assert_true(verdict.valid);
    OK(ctx, remat_plan_verify(ctx, graph, plan, &verdict)); /* of the graph itself it is no plan */
    assert_false(verdict.valid);
    remat_plan_free(plan), remat_graph_free(kernels), remat_graph_free(graph);
}

/* p (random), its view v, q: one kernel that is pinned, has the larger workspace and the sum of
 * flops, and hands out v with its storage. */
static void what_a_kernel_inherits(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "inherits");
    const uint32_t x = remat_builder_value(b, "x", 3350000), p = remat_builder_value(b, "p", 8),
                   v = remat_builder_view(b, "v", 8, p), q = remat_builder_value(b, "q", 8),
                   r = remat_builder_value(b, "r", 8);
    const uint32_t ops[] = {
        remat_builder_op(b, "p", LIST(x), LIST(p)), remat_builder_op(b, "v", LIST(p), LIST(v)),
        remat_builder_op(b, "q", LIST(v), LIST(q)), remat_builder_op(b, "r", LIST(v, q), LIST(r))};
    remat_builder_op_set(b, ops[0], REMAT_OP_CLASS, REMAT_CLASS_RANDOM);
    remat_builder_op_set(b, ops[1], REMAT_OP_CLASS, REMAT_CLASS_VIEW);
    remat_builder_op_set(b, ops[2], REMAT_OP_CLASS, REMAT_CLASS_FUSIBLE);
    remat_builder_op_set(b, ops[3], REMAT_OP_CLASS, REMAT_CLASS_COMPUTE);
    remat_builder_op_set(b, ops[0], REMAT_OP_WORKSPACE, 3),
        remat_builder_op_set(b, ops[2], REMAT_OP_WORKSPACE, 7);
    remat_builder_op_set(b, ops[0], REMAT_OP_FLOPS, 100),
        remat_builder_op_set(b, ops[2], REMAT_OP_FLOPS, 10);
    remat_builder_output(b, r);
    remat_graph *graph = NULL, *kernels = NULL;
    OK(ctx, remat_builder_finish(b, &graph));
    remat_builder_free(b);
    OK(ctx, remat_graph_prepare(ctx, graph, REMAT_FUSE, "roofline:h100", &kernels));
    assert_int_equal(remat_graph_n_ops(kernels), 2);
    assert_int_equal(remat_graph_op_get(kernels, 0, REMAT_OP_PINNED), 1);
    assert_int_equal(remat_graph_op_get(kernels, 0, REMAT_OP_WORKSPACE), 7);
    assert_int_equal(remat_graph_op_get(kernels, 0, REMAT_OP_FLOPS), 110);
    assert_int_equal(remat_graph_op_get(kernels, 0, REMAT_OP_COST),
                     1001); /* x, then p, v and q: one kernel moves x once */
    uint32_t n;
    const uint32_t *out = remat_graph_op_out(kernels, 0, &n);
    assert_int_equal(n, 3);
    assert_string_equal(remat_graph_value_name(kernels, out[0]),
                        "p"); /* the storage that v needs */
    assert_int_equal(remat_graph_value_get(kernels, out[1], REMAT_VALUE_ROOT), out[0]);
    remat_graph_free(kernels);
    OK(ctx, remat_graph_prepare(ctx, graph, REMAT_FUSE | REMAT_REPLAY_RANDOM, "unit", &kernels));
    assert_int_equal(remat_graph_op_get(kernels, 0, REMAT_OP_PINNED), 0);
    assert_int_equal(remat_graph_op_get(kernels, 0, REMAT_OP_COST),
                     2); /* p and q; the view is free */
    remat_graph_free(kernels), remat_graph_free(graph);
}

/* Tensors of 3,350,000 bytes: a read or a write takes 1000 ns. An op that fuses costs what a kernel
 * reads for it where it runs again; keep-all costs what its kernels do. */
static void costs_inside_kernels(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "fused");
    const int64_t bytes = 3350000;
    enum { X, A, SPARED, INNER, LAST, WRITTEN, LOSS, G, H, N };
    uint32_t v[N];
    for (int i = 0; i < N; i++) v[i] = remat_builder_value(b, NULL, i == LOSS ? 4 : bytes);
    const struct {
        const char *name;
        remat_class op_class;
        int64_t phase;
        int in[4], out;
        int64_t cost;
    } ops[] = {
        {"a", REMAT_CLASS_COMPUTE, REMAT_FORWARD, {X, -1}, A, 2000},
        /* `g` reads it no more, but `a` in its place */
        {"spared", REMAT_CLASS_FUSIBLE, REMAT_FORWARD, {A, -1}, SPARED, 1},
        /* nobody reads it later, and in its kernel `spared` is there, but not x */
        {"inner", REMAT_CLASS_FUSIBLE, REMAT_FORWARD, {SPARED, X, -1}, INNER, 1000},
        {"last", REMAT_CLASS_COMPUTE, REMAT_FORWARD, {INNER, -1}, LAST, 2000},
        /* `h` reads it, and does not fuse: it has to be written */
        {"written", REMAT_CLASS_FUSIBLE, REMAT_FORWARD, {LAST, -1}, WRITTEN, 2000},
        {"loss", REMAT_CLASS_COMPUTE, REMAT_FORWARD, {WRITTEN, -1}, LOSS, 1001},
        {"g", REMAT_CLASS_FUSIBLE, REMAT_BACKWARD, {SPARED, LOSS, -1}, G, 2001},
        /* and what is left over: keep-all's first kernel reads `a`, and writes `spared` and `inner`
         */
        {"h", REMAT_CLASS_COMPUTE, REMAT_BACKWARD, {WRITTEN, G, -1}, H, 3000 + 2999},
    };
    for (size_t i = 0; i < LENGTH(ops); i++) {
        uint32_t in[4], n = 0;
        while (ops[i].in[n] >= 0) in[n] = v[ops[i].in[n]], n++;
        const uint32_t op = remat_builder_op(b, ops[i].name, in, n, &v[ops[i].out], 1);
        remat_builder_op_set(b, op, REMAT_OP_CLASS, ops[i].op_class);
        remat_builder_op_set(b, op, REMAT_OP_PHASE, ops[i].phase);
    }
    remat_builder_output(b, v[H]);
    remat_graph *graph = NULL, *fused = NULL, *again = NULL, *kernels = NULL;
    OK(ctx, remat_builder_finish(b, &graph));
    remat_builder_free(b);
    OK(ctx, remat_graph_prepare(ctx, graph, 0, "fused:h100", &fused));
    OK(ctx, remat_graph_prepare(ctx, fused, 0, NULL, &again));
    OK(ctx, remat_graph_prepare(ctx, graph, REMAT_FUSE, "roofline:h100", &kernels));
    assert_string_equal(remat_graph_cost_unit(fused), "ns");
    for (uint32_t op = 0; op < LENGTH(ops); op++) {
        assert_int_equal(remat_graph_op_get(fused, op, REMAT_OP_COST), ops[op].cost);
        assert_int_equal(remat_graph_op_get(again, op, REMAT_OP_COST), ops[op].cost);
    }
    assert_int_equal(fused->total_cost, kernels->total_cost);
    remat_graph_free(kernels);
    OK(ctx, remat_graph_prepare(ctx, graph, REMAT_FUSE, "fused:h100", &kernels));
    assert_int_equal(fused->total_cost, kernels->total_cost); /* kernels have a roofline */
    remat_graph *const both[] = {fused, kernels};
    for (size_t i = 0; i < LENGTH(both); i++) { /* a schedule's graph is no such graph */
        remat_plan *plan = NULL;
        remat_graph *steps = NULL, *copy = NULL;
        size_t n;
        OK(ctx, remat_plan_make(ctx, both[i], "keep-all", REMAT_BUDGET_NONE, &plan));
        const remat_step *first = remat_plan_steps(plan, &n);
        OK(ctx, remat_unroll(ctx, both[i], first, n, &steps));
        OK(ctx, remat_graph_prepare(ctx, steps, 0, NULL, &copy));
        assert_string_equal(remat_graph_cost_model(steps), "given");
        assert_int_equal(steps->total_cost, fused->total_cost);
        assert_int_equal(copy->total_cost, fused->total_cost);
        remat_graph_free(copy), remat_graph_free(steps);
        remat_plan_free(plan);
    }
    remat_graph *none = NULL;
    FAILS(ctx, REMAT_E_USAGE, remat_graph_prepare(ctx, graph, 0, "fused:abacus", &none));
    /* A plan could not tell of it. */
    OK(ctx, remat_ctx_class(ctx, "aten.cat", REMAT_CLASS_FUSIBLE));
    FAILS(ctx, REMAT_E_USAGE, remat_graph_prepare(ctx, graph, 0, "fused:h100", &none));
    FAILS(ctx, REMAT_E_USAGE, remat_graph_prepare(ctx, graph, REMAT_FUSE, NULL, &none));
    FAILS(ctx, REMAT_E_USAGE, remat_graph_prepare(ctx, fused, 0, NULL, &none));
    remat_ctx_class_clear(ctx);
    assert_null(none);
    remat_graph_free(kernels), remat_graph_free(again), remat_graph_free(fused);
    remat_graph_free(graph);
}

/* By kernels or inside them, and whatever class rules have come since. */
static void aligned_ops_cost_the_same(void **state)
{
    remat_ctx *ctx = *state;
    static const struct {
        unsigned flags;
        const char *cost_model;
    } cases[] = {{REMAT_FUSE, "node"}, {REMAT_FUSE, "fused:h100"}, {0, "fused:h100"}};
    remat_graph *graph = NULL;
    OK(ctx, remat_graph_load(ctx, "zoo:mlp", &graph));
    for (size_t i = 0; i < LENGTH(cases); i++) {
        remat_graph *costed = NULL, *aligned = NULL;
        OK(ctx, remat_graph_prepare(ctx, graph, cases[i].flags, cases[i].cost_model, &costed));
        OK(ctx, remat_ctx_class(ctx, "aten.relu", REMAT_CLASS_COMPUTE));
        OK(ctx, remat_graph_align(ctx, costed, 512, &aligned));
        remat_ctx_class_clear(ctx);
        assert_int_equal(aligned->total_cost, costed->total_cost);
        for (uint32_t op = 0; op < costed->n_ops; op++)
            assert_int_equal(aligned->cost[op], costed->cost[op]);
        remat_graph_free(aligned), remat_graph_free(costed);
    }
    remat_graph_free(graph);
}

/* The boundary moves nothing, whatever class a file gives it. */
static void boundary_is_free(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "boundary");
    const uint32_t x = remat_builder_value(b, "x", 1 << 30);
    uint32_t v[3];
    for (int i = 0; i < 3; i++) v[i] = remat_builder_value(b, NULL, 1 << 30);
    const uint32_t f = remat_builder_op(b, "f", &x, 1, &v[0], 1),
                   boundary = remat_builder_op(b, "boundary", v, 1, &v[1], 1),
                   g = remat_builder_op(b, "g", v, 2, &v[2], 1);
    remat_builder_op_target(b, boundary, "remat.boundary");
    remat_builder_op_set(b, f, REMAT_OP_PHASE, REMAT_FORWARD);
    remat_builder_op_set(b, g, REMAT_OP_PHASE, REMAT_BACKWARD);
    remat_builder_op_set(b, boundary, REMAT_OP_CLASS, REMAT_CLASS_FUSIBLE);
    remat_graph *graph = NULL, *fused = NULL;
    OK(ctx, remat_builder_finish(b, &graph));
    remat_builder_free(b);
    OK(ctx, remat_graph_prepare(ctx, graph, 0, "fused:h100", &fused));
    assert_int_equal(remat_graph_op_get(fused, boundary, REMAT_OP_COST), 0);
    remat_graph_free(fused), remat_graph_free(graph);
}

/* The kernels read more than 2^62 bytes, in less than 2^62 ns. */
static void costs_of_huge_kernels(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "huge");
    const uint32_t x = remat_builder_value(b, "x", INT64_C(3350) << 49);
    for (int i = 0; i < 3; i++) {
        const uint32_t y = remat_builder_value(b, "y", 4);
        const uint32_t op = remat_builder_op(b, "f", &x, 1, &y, 1);
        remat_builder_op_set(b, op, REMAT_OP_CLASS, REMAT_CLASS_FUSIBLE);
        remat_builder_output(b, y);
    }
    remat_graph *graph = NULL, *fused = NULL;
    OK(ctx, remat_builder_finish(b, &graph));
    remat_builder_free(b);
    OK(ctx, remat_graph_prepare(ctx, graph, 0, "fused:h100", &fused));
    assert_int_equal(fused->total_cost, 3 * ((INT64_C(1) << 49) + 1));
    remat_graph_free(fused), remat_graph_free(graph);
}

/* A graph may list views that no op makes, of a resident value. If the way there leads through a
 * view that an op makes, at any depth, they are not there, and nobody reads them. */
static void views_that_no_op_makes(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "views");
    uint32_t v[4];
    for (int i = 0; i < 4; i++) v[i] = remat_builder_value(b, NULL, 8);
    for (int i = 1; i < 4; i++) remat_builder_value_set(b, v[i], REMAT_VALUE_ALIAS, v[i - 1]);
    remat_builder_op(b, "V", &v[0], 1, &v[1], 1);
    remat_builder_op(b, "B", &v[1], 1, NULL, 0);
    remat_graph *graph = NULL, *program = NULL;
    OK(ctx, remat_builder_finish(b, &graph));
    const remat_step steps[] = {{REMAT_RUN, 0}, {REMAT_RUN, 1}, {REMAT_RUN, 1}};
    OK(ctx, remat_unroll(ctx, graph, steps, 3, &program));
    assert_int_equal(remat_graph_n_ops(program), 3);
    remat_graph_free(program);
    remat_graph_free(graph);
    remat_builder_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(figure_4),
                                       WITH_CONTEXT(figure_4_with_a_sum),
                                       WITH_CONTEXT(the_passes),
                                       WITH_CONTEXT(third_readers),
                                       WITH_CONTEXT(plans_become_programs),
                                       WITH_CONTEXT(bad_calls),
                                       WITH_CONTEXT(kernels_are_ops),
                                       WITH_CONTEXT(what_a_kernel_inherits),
                                       WITH_CONTEXT(costs_inside_kernels),
                                       WITH_CONTEXT(aligned_ops_cost_the_same),
                                       WITH_CONTEXT(boundary_is_free),
                                       WITH_CONTEXT(costs_of_huge_kernels),
                                       WITH_CONTEXT(views_that_no_op_makes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
