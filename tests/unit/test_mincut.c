/* test_mincut.c: the paper's examples (f, f1, f2, Fig. 4) through the network, the rules and the
 * planner. */
#include "support.h"

#include <string.h>

#include "fusion/inplace.h"
#include "fusion/op_class.h"
#include "plan/cut/saved_cut.h"

/* ---- Fig. 4: a -> b -> c -> d, d -> e (not fusible, outside), f(b, c, e); the cut between groups
 * A = {b, c, d} and B = {f} ---- */

static remat_graph *figure_4(remat_ctx *ctx, int64_t a_bytes)
{
    remat_builder *b = remat_builder_new(ctx, "fig4");
    uint32_t v[6];
    for (int i = 0; i < 6; i++)
        v[i] = remat_builder_value(b, (const char *[]){"a", "b", "c", "d", "e", "f"}[i],
                                   i == 0 ? a_bytes : 1);
    for (int i = 1; i < 5; i++)
        remat_builder_op(b, NULL, &v[i - 1], 1, &v[i], 1); /* ops 0 .. 3 make b .. e */
    remat_builder_op(b, NULL, LIST(v[1], v[2], v[4]), &v[5], 1);
    remat_builder_output(b, v[5]);
    remat_graph *g = NULL;
    OK(ctx, remat_builder_finish(b, &g));
    remat_builder_free(b);
    return g;
}

static void cut_between(remat_ctx *ctx, const remat_graph *g, const uint8_t *banned,
                        rm_saved *saved)
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
    rm_limits_end(ctx);
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

/* ---- f, f1 and f2 (sections 1 and 2.3): a line an op, values by letter ---- */

typedef struct line {
    const char *in,
        *out; /* letters: values are made as they appear; what no line makes is an input */
    remat_class op_class;
    remat_phase phase;
} line;

#define FUSES REMAT_CLASS_FUSIBLE
#define RANDOM REMAT_CLASS_RANDOM
#define MM REMAT_CLASS_COMPUTE
#define BOUNDARY ((remat_class)99)

static int64_t size_of(const char *sizes, char letter)
{
    for (; sizes[0] && sizes[1]; sizes += 2)
        if (sizes[0] == letter) return sizes[1] - '0';
    return 1;
}

/* Sizes of values by letter, 1 where `sizes` has none ("x4r4"); `outputs` by letter. */
static remat_graph *program(remat_ctx *ctx, const line *lines, size_t n, const char *sizes,
                            const char *outputs)
{
    remat_builder *b = remat_builder_new(ctx, "program");
    uint32_t index[128];
    memset(index, 0xff, sizeof index);
    for (size_t i = 0; i < n; i++) {
        uint32_t list[2][8], count[2] = {0};
        for (int way = 0; way < 2; way++)
            for (const char *p = way ? lines[i].out : lines[i].in; *p; p++) {
                if (index[(int)*p] == REMAT_NONE)
                    index[(int)*p] =
                        remat_builder_value(b, (const char[]){*p, 0}, size_of(sizes, *p));
                list[way][count[way]++] = index[(int)*p];
            }
        const uint32_t op = remat_builder_op(b, NULL, list[0], count[0], list[1], count[1]);
        const bool boundary = lines[i].op_class == BOUNDARY;
        remat_builder_op_set(b, op, REMAT_OP_PHASE, lines[i].phase);
        remat_builder_op_set(b, op, REMAT_OP_COST, 1);
        if (boundary) remat_builder_op_target(b, op, "remat.boundary");
        else remat_builder_op_set(b, op, REMAT_OP_CLASS, lines[i].op_class);
    }
    for (; *outputs; outputs++) remat_builder_output(b, index[(int)*outputs]);
    remat_graph *g = NULL;
    OK(ctx, remat_builder_finish(b, &g));
    remat_builder_free(b);
    return g;
}

/* The planner's cut: its capacity, and which of the values it reads afterwards were there before,
 * by letter. */
static void expect_cut(remat_ctx *ctx, const remat_graph *g, const char *strategy, int64_t capacity,
                       const char *saved)
{
    remat_plan *plan = NULL;
    OK(ctx, remat_plan_make(ctx, g, strategy, REMAT_BUDGET_NONE, &plan));
    assert_int_equal(remat_plan_summary(plan)->cut_capacity, capacity);
    size_t n;
    const remat_step *steps = remat_plan_steps(plan, &n);
    bool crossed = false, fresh[64] = {false};
    char found[64] = "";
    for (size_t t = 0; t < n; t++) {
        const uint32_t op = steps[t].index;
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1] && crossed; k++) {
            const char *name = rm_text(g, g->value_name[g->in[k]]);
            if (!fresh[g->in[k]] && !strstr(found, name)) strcat(found, name);
        }
        if (strcmp(rm_text(g, g->op_target[op]), "remat.boundary") == 0) crossed = true;
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
            fresh[g->out[k]] = crossed;
    }
    for (const char *p = saved; *p; p++) assert_non_null(strchr(found, *p));
    assert_int_equal(strlen(found), strlen(saved));
    remat_plan_free(plan);
}

static void f_saves_its_input(void **state)
{ /* tanh(tanh(x)): t, then u; the backward reads both outputs */
    static const line lines[] = {{"x", "t", FUSES, REMAT_FORWARD},
                                 {"t", "u", FUSES, REMAT_FORWARD},
                                 {"u", "g", BOUNDARY, REMAT_BACKWARD},
                                 {"gu", "h", FUSES, REMAT_BACKWARD},
                                 {"ht", "k", FUSES, REMAT_BACKWARD}};
    remat_ctx *ctx = *state;
    remat_graph *g = program(ctx, lines, LENGTH(lines), "", "uk");
    expect_cut(ctx, g, "mincut", 1, "x");
    expect_cut(ctx, g, "keep-all", 3, "tu"); /* t is written and read, u an output and read */
    expect_cut(ctx, g, "save-inputs", 1, "x");
    remat_graph_free(g);
}

static remat_graph *f1(remat_ctx *ctx)
{ /* x = a + b + c + d, cos(cos(x)): sums p, q, x; cosines y, z; sines and negations are traced in
     the backward pass, but need no tangent */
    static const line lines[] = {
        {"ab", "p", FUSES, REMAT_FORWARD},  {"pc", "q", FUSES, REMAT_FORWARD},
        {"qd", "x", FUSES, REMAT_FORWARD},  {"x", "y", FUSES, REMAT_FORWARD},
        {"y", "z", FUSES, REMAT_FORWARD},   {"z", "g", BOUNDARY, REMAT_BACKWARD},
        {"y", "s", FUSES, REMAT_BACKWARD},  {"s", "m", FUSES, REMAT_BACKWARD},
        {"gm", "h", FUSES, REMAT_BACKWARD}, {"x", "r", FUSES, REMAT_BACKWARD},
        {"r", "n", FUSES, REMAT_BACKWARD},  {"hn", "k", FUSES, REMAT_BACKWARD}};
    return program(ctx, lines, LENGTH(lines), "", "zk");
}

static void f1_saves_the_sum(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *g = f1(ctx);
    expect_cut(ctx, g, "mincut", 2, "x");
    expect_cut(ctx, g, "keep-all", 4, "xy");
    expect_cut(ctx, g, "save-inputs", 4, "abcd");
    remat_graph_free(g);
}

static void f2_saves_the_mask(void **state)
{ /* r = rand_like(x), m = r < 0.5, x * m */
    static const line lines[] = {{"x", "r", RANDOM, REMAT_FORWARD},
                                 {"r", "m", FUSES, REMAT_FORWARD},
                                 {"xm", "y", FUSES, REMAT_FORWARD},
                                 {"y", "g", BOUNDARY, REMAT_BACKWARD},
                                 {"gm", "k", FUSES, REMAT_BACKWARD}};
    remat_ctx *ctx = *state;
    remat_graph *g = program(ctx, lines, LENGTH(lines), "x4r4y4g4k4", "yk");
    expect_cut(ctx, g, "mincut", 2, "m");
    remat_graph_free(g);
}

/* A cast: of two versions of one activation the smaller is saved. */
static void the_smaller_dtype_is_saved(void **state)
{
    static const line lines[] = {
        {"xw", "y", MM, REMAT_FORWARD},     {"y", "h", FUSES, REMAT_FORWARD},
        {"h", "z", FUSES, REMAT_FORWARD},   {"z", "g", BOUNDARY, REMAT_BACKWARD},
        {"gy", "k", FUSES, REMAT_BACKWARD}, {"kh", "l", FUSES, REMAT_BACKWARD}};
    remat_ctx *ctx = *state;
    remat_graph *g = program(ctx, lines, LENGTH(lines), "x8w8y4h2z4g4k4l4", "zl");
    expect_cut(ctx, g, "mincut", 4,
               "y"); /* both are read, y is written anyway, h comes from it for nothing */
    remat_graph_free(g);
    static const line cast[] = {{"xw", "y", MM, REMAT_FORWARD},
                                {"y", "h", FUSES, REMAT_FORWARD},
                                {"hw", "z", MM, REMAT_FORWARD},
                                {"z", "g", BOUNDARY, REMAT_BACKWARD},
                                {"gh", "k", FUSES, REMAT_BACKWARD}};
    g = program(ctx, cast, LENGTH(cast), "x8w8y4h2z4g4k4", "zk");
    expect_cut(ctx, g, "mincut", 2, "h");
    remat_graph_free(g);
}

/* ---- classes and bans ---- */

static void classes_by_name(void **state)
{
    static const struct {
        const char *target;
        remat_class expected;
    } names[] = {{"aten._convolution.default", REMAT_CLASS_COMPUTE},
                 {"aten.mm.default", REMAT_CLASS_COMPUTE},
                 {"aten.native_layer_norm.default", REMAT_CLASS_COMPUTE},
                 {"aten.add.Tensor", REMAT_CLASS_FUSIBLE},
                 {"aten.add", REMAT_CLASS_FUSIBLE},
                 {"aten.hardswish.default", REMAT_CLASS_FUSIBLE},
                 {"aten.addx.Tensor", REMAT_CLASS_OTHER},
                 {"aten.ad", REMAT_CLASS_OTHER},
                 {"aten.cat.default", REMAT_CLASS_OTHER},
                 {"aten.zeros_like.default", REMAT_CLASS_FUSIBLE},
                 {"aten.rand_like.default", REMAT_CLASS_RANDOM},
                 {"prims.abs.default", REMAT_CLASS_FUSIBLE},
                 {"prims.zeta.default", REMAT_CLASS_FUSIBLE},
                 {"prims.inductor_seeds.default", REMAT_CLASS_RANDOM},
                 {"aten.view.default", REMAT_CLASS_VIEW},
                 {"aten._softmax.default", REMAT_CLASS_FUSIBLE},
                 {"aten._native_batch_norm_legit_functional.default", REMAT_CLASS_FUSIBLE},
                 {"aten._native_batch_norm_legit.default", REMAT_CLASS_OTHER}, /* it writes */
                 {"prims._low_memory_max_pool_with_offsets.default", REMAT_CLASS_OTHER},
                 {"prims._low_memory_max_pool_offsets_to_indices.default", REMAT_CLASS_FUSIBLE},
                 {"prims.inductor_random.default", REMAT_CLASS_FUSIBLE}, /* of a seed */
                 {"", REMAT_CLASS_OTHER},
                 {"x", REMAT_CLASS_OTHER}};
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "names");
    uint32_t last = remat_builder_value(b, "x", 4);
    for (size_t i = 0; i <= LENGTH(names); i++) {
        const uint32_t v = remat_builder_value(b, NULL, 4),
                       op = remat_builder_op(b, NULL, &last, 1, &v, 1);
        remat_builder_op_target(b, op, i < LENGTH(names) ? names[i].target : "remat.boundary");
        last = v;
    }
    remat_graph *g = NULL;
    OK(ctx, remat_builder_finish(b, &g));
    remat_builder_free(b);
    remat_recompute_rule rules[LENGTH(names) + 1];
    OK(ctx, remat_graph_recompute_rules(ctx, g, rules));
    for (size_t i = 0; i < LENGTH(names); i++)
        assert_int_equal(rules[i].op_class, names[i].expected);
    OK(ctx, remat_ctx_class(ctx, "aten.cat", REMAT_CLASS_FUSIBLE));
    OK(ctx, remat_ctx_class(ctx, "aten", REMAT_CLASS_COMPUTE));
    OK(ctx, remat_ctx_class(ctx, "aten.mm.default",
                            REMAT_CLASS_FUSIBLE)); /* the newest that speaks for an op decides */
    OK(ctx, remat_graph_recompute_rules(ctx, g, rules));
    assert_int_equal(rules[1].op_class, REMAT_CLASS_FUSIBLE);
    assert_int_equal(rules[8].op_class, REMAT_CLASS_COMPUTE);
    assert_int_equal(rules[11].op_class, REMAT_CLASS_FUSIBLE);
    FAILS(ctx, REMAT_E_USAGE, remat_ctx_class(ctx, "", REMAT_CLASS_FUSIBLE));
    FAILS(ctx, REMAT_E_USAGE, remat_ctx_class(ctx, NULL, REMAT_CLASS_FUSIBLE));
    FAILS(ctx, REMAT_E_USAGE, remat_ctx_class(ctx, "x", (remat_class)5));
    for (int round = 0; round < 2; round++) { /* cleared; and again, with nothing to clear */
        remat_ctx_class_clear(ctx);
        OK(ctx, remat_graph_recompute_rules(ctx, g, rules));
        for (size_t i = 0; i < LENGTH(names); i++)
            assert_int_equal(rules[i].op_class, names[i].expected);
    }
    OK(ctx, remat_ctx_class(ctx, "aten.mm", REMAT_CLASS_FUSIBLE));
    OK(ctx, remat_graph_recompute_rules(ctx, g, rules));
    assert_int_equal(rules[1].op_class, REMAT_CLASS_FUSIBLE);
    assert_int_equal(rules[8].op_class, REMAT_CLASS_OTHER); /* the old rules do not come back */
    assert_null(remat_class_name((remat_class)5));
    assert_null(remat_ban_reason((remat_ban)8));
    remat_graph_free(g);
}

/* x -> 120 pointwise ops in a row, views between them -> boundary. Every fiftieth is saved. */
static void long_rows_are_cut(void **state)
{
    enum { ROW = 120, MOST = 50 };
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "row");
    uint32_t last = remat_builder_value(b, "x", 4);
    for (uint32_t i = 0; i < 2 * ROW + 1; i++) {
        const uint32_t v =
            i % 2 == 0 ? remat_builder_value(b, NULL, 4) : remat_builder_view(b, NULL, 4, last);
        const uint32_t op = remat_builder_op(b, NULL, &last, 1, &v, 1);
        remat_builder_op_target(b, op,
                                i == 2 * ROW ? "remat.boundary"
                                : i % 2 == 0 ? "aten.cos.default"
                                             : "aten.view.default");
        last = v;
    }
    remat_graph *g = NULL;
    OK(ctx, remat_builder_finish(b, &g));
    remat_recompute_rule rules[2 * ROW + 1];
    OK(ctx, remat_graph_recompute_rules(ctx, g, rules));
    for (uint32_t i = 0; i < 2 * ROW; i++)
        assert_int_equal(rules[i].ban,
                         i % 2 == 0 && (i / 2 + 1) % MOST == 0 ? REMAT_BAN_LONG : REMAT_BAN_NONE);
    remat_builder_free(b), remat_graph_free(g);
}

static void known_packets_are_sorted(void **state)
{
    (void)state;
    for (size_t i = 1; rm_known_packet(i); i++)
        assert_true(strcmp(rm_known_packet(i - 1), rm_known_packet(i)) < 0);
}

/* What may work in place fuses, too. */
static void elementwise_ops_are_sorted_and_fusible(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "packets");
    remat_graph *graph = NULL;
    uint32_t n = 0;
    for (; rm_elementwise_packet(n); n++) {
        if (n > 0) assert_true(strcmp(rm_elementwise_packet(n - 1), rm_elementwise_packet(n)) < 0);
        const uint32_t v = remat_builder_value(b, NULL, 1);
        remat_builder_op_target(b, remat_builder_op(b, NULL, NOTHING, LIST(v)),
                                rm_elementwise_packet(n));
    }
    OK(ctx, remat_builder_finish(b, &graph));
    for (uint32_t op = 0; op < n; op++)
        if (rm_op_class(ctx, graph, op) != REMAT_CLASS_FUSIBLE)
            fail_msg("%s is not fusible", rm_elementwise_packet(op));
    remat_graph_free(graph), remat_builder_free(b);
}

static void reductions(void **state)
{ /* a sum to a quarter is banned, to a third is not; the factor is an option; a mask of as many
     elements is no reduction */
    static const line lines[] = {{"x", "q", FUSES, REMAT_FORWARD},
                                 {"x", "t", FUSES, REMAT_FORWARD},
                                 {"qt", "y", FUSES, REMAT_FORWARD},
                                 {"y", "g", BOUNDARY, REMAT_BACKWARD}};
    remat_ctx *ctx = *state;
    remat_recompute_rule rules[4];
    remat_graph *g = program(ctx, lines, LENGTH(lines), "x8q2t3y2", "y");
    OK(ctx, remat_graph_recompute_rules(ctx, g, rules));
    assert_int_equal(rules[0].ban, REMAT_BAN_REDUCTION);
    assert_int_equal(rules[1].ban, REMAT_BAN_NONE);
    OK(ctx, remat_ctx_set(ctx, "reduction_factor", 2));
    OK(ctx, remat_graph_recompute_rules(ctx, g, rules));
    assert_int_equal(rules[1].ban, REMAT_BAN_REDUCTION);
    remat_graph_free(g);

    remat_builder *b = remat_builder_new(ctx, "mask");
    const uint32_t x = remat_builder_value(b, "x", 40), m = remat_builder_value(b, "m", 10),
                   t = remat_builder_value(b, "t", 4);
    remat_builder_value_tensor(b, x, "float32", (const int64_t[]){10}, 1);
    remat_builder_value_tensor(b, m, "bool", (const int64_t[]){10}, 1);
    remat_builder_op_set(b, remat_builder_op(b, "lt", &x, 1, &m, 1), REMAT_OP_CLASS,
                         REMAT_CLASS_FUSIBLE);
    remat_builder_op_target(b, remat_builder_op(b, "boundary", &m, 1, &t, 1), "remat.boundary");
    OK(ctx, remat_builder_finish(b, &g));
    remat_builder_free(b);
    OK(ctx, remat_graph_recompute_rules(ctx, g, rules));
    assert_int_equal(rules[0].ban, REMAT_BAN_NONE);
    remat_graph_free(g);
}

static void distance_as_a_weight(void **state)
{ /* two ops lie between x and the outside; doubled for each, it weighs more than the two negations
     that the outside reads */
    remat_ctx *ctx = *state;
    remat_graph *g = f1(ctx);
    OK(ctx, remat_ctx_set(ctx, "reweight", 1000));
    expect_cut(ctx, g, "mincut", 4, "mn"); /* what is reported is traffic all the same */
    OK(ctx, remat_ctx_set(ctx, "reweight", 1));
    expect_cut(ctx, g, "mincut", 2, "x");
    remat_graph_free(g);
}

/* ---- what does not apply, and odd sizes ---- */

static void without_phases(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *g = figure_4(ctx, 1);
    remat_plan *plan = NULL;
    remat_recompute_rule rules[5];
    static const char *const names[] = {"mincut", "save-inputs", "save-layers"};
    for (size_t i = 0; i < LENGTH(names); i++)
        FAILS(ctx, REMAT_E_APPLIES, remat_plan_make(ctx, g, names[i], 100, &plan));
    FAILS(ctx, REMAT_E_APPLIES, remat_graph_recompute_rules(ctx, g, rules));
    OK(ctx, remat_plan_make(ctx, g, "keep-all", REMAT_BUDGET_NONE, &plan));
    assert_int_equal(remat_plan_summary(plan)->cut_capacity, REMAT_ABSENT);
    remat_plan_free(plan);
    remat_graph_free(g);
}

static void nothing_weighs_anything(void **state)
{
    static const line lines[] = {{"x", "t", FUSES, REMAT_FORWARD},
                                 {"t", "g", BOUNDARY, REMAT_BACKWARD},
                                 {"gt", "k", FUSES, REMAT_BACKWARD}};
    remat_ctx *ctx = *state;
    remat_graph *g = program(ctx, lines, LENGTH(lines), "x0t0g0k0", "k");
    for (int64_t budget = REMAT_BUDGET_MIN; budget <= 0; budget++) {
        remat_plan *plan = NULL;
        OK(ctx, remat_plan_make(ctx, g, "mincut", budget, &plan));
        assert_true(remat_plan_summary(plan)->within_budget);
        assert_int_equal(remat_plan_summary(plan)->cut_capacity, 0);
        remat_plan_free(plan);
    }
    remat_graph_free(g);
}

static void sizes_past_the_flow(void **state)
{ /* the sizes sum to less than 2^62, but not what saving costs in traffic */
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "huge");
    uint32_t v[5], op[4];
    for (int i = 0; i < 5; i++) v[i] = remat_builder_value(b, NULL, i == 1 ? INT64_C(1) << 61 : 1);
    for (int i = 0; i < 3; i++) op[i] = remat_builder_op(b, NULL, &v[i], 1, &v[i + 1], 1);
    op[3] = remat_builder_op(b, NULL, LIST(v[3], v[1]), &v[4], 1);
    for (int i = 0; i < 4; i++) remat_builder_op_set(b, op[i], REMAT_OP_CLASS, REMAT_CLASS_FUSIBLE);
    remat_builder_op_target(b, op[2], "remat.boundary");
    remat_graph *g = NULL;
    OK(ctx, remat_builder_finish(b, &g));
    remat_builder_free(b);
    remat_plan *plan = NULL;
    for (int64_t budget = REMAT_BUDGET_MIN; budget <= REMAT_BUDGET_NONE; budget++)
        FAILS(ctx, REMAT_E_APPLIES, remat_plan_make(ctx, g, "mincut", budget, &plan));
    assert_non_null(strstr(remat_ctx_error(ctx), "2^62"));
    remat_graph_free(g);
}

/* ---- budgets, and the A100 of section 2.1 ---- */

static void budgets_on_a_traced_graph(void **state)
{ /* what is said to fit fits, and most budgets can be kept */
    remat_ctx *ctx = *state;
    remat_graph *g = NULL;
    OK(ctx, remat_graph_load(ctx, REMAT_TEST_DATA "/graphs/resnet18.json.gz", &g));
    remat_info info = REMAT_INFO_INIT;
    OK(ctx, remat_graph_info(ctx, g, &info));
    int fits = 0;
    for (int64_t percent = 50; percent <= 100; percent += 10) {
        remat_plan *plan = NULL;
        OK(ctx, remat_plan_make(ctx, g, "mincut", info.keep_all_peak_bytes / 100 * percent, &plan));
        const remat_summary *s = remat_plan_summary(plan);
        assert_int_equal(s->within_budget,
                         s->peak_bytes <= info.keep_all_peak_bytes / 100 * percent);
        fits += s->within_budget;
        remat_plan_free(plan);
    }
    assert_true(fits >= 4);
    remat_graph_free(g);
}

static int64_t saved_by(remat_ctx *ctx, const remat_graph *g, const char *strategy)
{
    remat_plan *plan = NULL;
    OK(ctx, remat_plan_make(ctx, g, strategy, REMAT_BUDGET_NONE, &plan));
    const int64_t bytes = remat_plan_summary(plan)->saved_bytes;
    remat_plan_free(plan);
    return bytes;
}

static void batch_norm_and_silu_run_again(void **state)
{ /* in backward kernels: a third less is saved, which needs both to be known by name */
    remat_ctx *ctx = *state;
    remat_graph *g = NULL;
    OK(ctx, remat_graph_load(ctx, REMAT_TEST_DATA "/graphs/efficientnet_b0.json.gz", &g));
    assert_true(16 * saved_by(ctx, g, "mincut") < 10 * saved_by(ctx, g, "keep-all"));
    remat_graph_free(g);
}

static int64_t a100_cost(remat_ctx *ctx, uint32_t n_in, int64_t size, int64_t flops)
{
    remat_builder *b = remat_builder_new(ctx, "move");
    uint32_t v[16];
    for (uint32_t i = 0; i <= n_in; i++) {
        v[i] = remat_builder_value(b, NULL, size);
        remat_builder_value_tensor(b, v[i], "float32", (const int64_t[]){size / 4}, 1);
    }
    remat_builder_op_set(b, remat_builder_op(b, "op", v, n_in, &v[n_in], 1), REMAT_OP_FLOPS, flops);
    remat_graph *g = NULL, *prepared = NULL;
    OK(ctx, remat_builder_finish(b, &g));
    OK(ctx, remat_graph_prepare(ctx, g, 0, "roofline:a100", &prepared));
    const int64_t cost = remat_graph_op_get(prepared, 0, REMAT_OP_COST);
    remat_builder_free(b), remat_graph_free(prepared), remat_graph_free(g);
    return cost;
}

static void the_a100_moves_8_bytes_in_104_flops(void **state)
{
    remat_ctx *ctx = *state;
    assert_int_equal(a100_cost(ctx, 1, 6000000, 156000000),
                     8000); /* 1.5e6 floats read and written; 104 flops each */
    assert_int_equal(a100_cost(ctx, 1, 6000000, 156000000 + 19500), 8001);
    assert_int_equal(a100_cost(ctx, 4, (INT64_C(1) << 25) * 4, 0),
                     447393); /* GeLU of Table 1: 5 accesses, 0.447 ms */
    assert_int_equal(a100_cost(ctx, 12, (INT64_C(1) << 25) * 4, 0), 1163221); /* and 13, 1.163 ms */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CONTEXT(figure_4_recomputes_b_and_c),
        WITH_CONTEXT(figure_4_with_a_sum_keeps_b),
        WITH_CONTEXT(f_saves_its_input),
        WITH_CONTEXT(f1_saves_the_sum),
        WITH_CONTEXT(f2_saves_the_mask),
        WITH_CONTEXT(the_smaller_dtype_is_saved),
        WITH_CONTEXT(classes_by_name),
        WITH_CONTEXT(known_packets_are_sorted),
        WITH_CONTEXT(elementwise_ops_are_sorted_and_fusible),
        WITH_CONTEXT(long_rows_are_cut),
        WITH_CONTEXT(reductions),
        WITH_CONTEXT(distance_as_a_weight),
        WITH_CONTEXT(without_phases),
        WITH_CONTEXT(nothing_weighs_anything),
        WITH_CONTEXT(sizes_past_the_flow),
        WITH_CONTEXT(budgets_on_a_traced_graph),
        WITH_CONTEXT(batch_norm_and_silu_run_again),
        WITH_CONTEXT(the_a100_moves_8_bytes_in_104_flops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
