/* test_exact.c: exact proves the optima of FastSA's Table 2 (its cost model, graphs folded as
 * there), and the one of a public graph that a MILP solver proves too; on small graphs it proves
 * them in any order, or that nothing fits; stopped by work, memory or a signal it keeps the plan
 * and a bound that is true; plans say how their bound was proved, and the verifier neither refuses
 * such a bound nor takes it for checked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#include "base/base.h"
#include "text.h"

enum { FASTSA = REMAT_DCE | REMAT_FOLD_IDENTITY | REMAT_NO_ALIAS };

static remat_graph *load(remat_ctx *ctx, const char *name, unsigned flags, const char *cost_model)
{
    char path[512];
    snprintf(path, sizeof path, "%s/graphs/%s.json.gz", REMAT_TEST_DATA, name);
    remat_graph *file = NULL, *graph = NULL;
    OK(ctx, remat_graph_load(ctx, path, &file));
    OK(ctx, remat_graph_prepare(ctx, file, flags, cost_model, &graph));
    remat_graph_free(file);
    return graph;
}

static remat_plan *plan_at(remat_ctx *ctx, const remat_graph *graph, int64_t percent)
{
    remat_info info = REMAT_INFO_INIT;
    remat_plan *plan = NULL;
    OK(ctx, remat_graph_info(ctx, graph, &info));
    OK(ctx, remat_plan_make(ctx, graph, "exact", info.keep_all_peak_bytes / 100 * percent, &plan));
    assert_true(remat_plan_summary(plan)->within_budget);
    return plan;
}

static void table_2(void **state)
{
    remat_ctx *ctx = *state;
    static const struct {
        const char *graph;
        int64_t percent, again; /* ops that run again in the cheapest plan */
        int64_t work;           /* more than it takes; it goes on to other orders until the end */
    } cases[] = {{"resnet18", 90, 1, 500000},  {"resnet18", 80, 2, 500000},
                 {"resnet18", 70, 4, 500000},  {"resnet18", 60, 6, 5000000},
                 {"resnet18", 50, 8, 1000000}, {"vgg11", 90, 1, 500000},
                 {"vgg11", 80, 2, 500000}};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        remat_graph *graph = load(ctx, cases[i].graph, FASTSA, "node");
        OK(ctx, remat_ctx_set(ctx, "work", cases[i].work));
        remat_plan *plan = plan_at(ctx, graph, cases[i].percent);
        const remat_summary *s = remat_plan_summary(plan);
        assert_int_equal(s->cost - s->keep_all_cost, cases[i].again);
        assert_int_equal(s->outcome, REMAT_OPTIMAL);
        assert_int_equal(s->bound_cost, s->cost);
        assert_true(s->any_order_cost <= s->bound_cost);
        assert_true(s->stopped == REMAT_WORK || s->any_order_cost == s->cost);
        remat_plan_free(plan);
        remat_graph_free(graph);
    }
}

static remat_plan *plan_of_60(remat_ctx *ctx,
                              remat_graph **graph) /* the one that takes the longest */
{
    *graph = load(ctx, "resnet18", FASTSA, "node");
    return plan_at(ctx, *graph, 60);
}

static void by_work(void **state)
{
    remat_ctx *ctx = *state;
    for (int64_t work = 1; work <= 100000; work *= 100) {
        remat_graph *graph;
        OK(ctx, remat_ctx_set(ctx, "work", work));
        remat_plan *plan = plan_of_60(ctx, &graph);
        const remat_summary *s = remat_plan_summary(plan);
        assert_int_equal(s->stopped, REMAT_WORK);
        assert_int_equal(s->outcome, REMAT_FEASIBLE);
        assert_int_equal(s->bound_cost, 176); /* of the flow */
        assert_string_equal(s->bound_method, "flow");
        assert_in_range(s->work, work,     /* auto has as much, and looks at its limit every */
                        2 * work + 10000); /* few thousand edits */
        remat_plan_free(plan);
        remat_graph_free(graph);
    }
}

/* By the same work, whatever the proof does with its own. */
static void never_worse_than_auto(void **state)
{
    remat_ctx *ctx = *state;
    static const char *const names[] = {"resnet18", "vgg16", "mobilenetv3_large"};
    for (size_t i = 0; i < LENGTH(names); i++) {
        remat_graph *graph = load(ctx, names[i], REMAT_DCE | REMAT_REPLAY_RANDOM, "roofline:h100");
        remat_info info = REMAT_INFO_INIT;
        OK(ctx, remat_graph_info(ctx, graph, &info));
        for (int64_t work = 3000; work <= 300000; work *= 10)
            for (int64_t seed = 0; seed < 2; seed++) {
                remat_plan *one = NULL, *other = NULL;
                const int64_t budget = info.keep_all_peak_bytes / 100 * 65;
                OK(ctx, remat_ctx_set(ctx, "work", work));
                OK(ctx, remat_ctx_set(ctx, "seed", seed));
                OK(ctx, remat_plan_make(ctx, graph, "auto", budget, &one));
                OK(ctx, remat_plan_make(ctx, graph, "exact", budget, &other));
                const remat_summary *x = remat_plan_summary(one), *y = remat_plan_summary(other);
                assert_true(!x->within_budget || (y->within_budget && y->cost <= x->cost));
                remat_plan_free(one);
                remat_plan_free(other);
            }
        remat_graph_free(graph);
    }
}

static void by_memory(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph;
    OK(ctx, remat_ctx_set(ctx, "memory_bytes", 1 << 20));
    remat_plan *plan = plan_of_60(ctx, &graph);
    assert_int_equal(remat_plan_summary(plan)->outcome, REMAT_FEASIBLE);
    assert_int_equal(remat_plan_summary(plan)->bound_cost, 176);
    assert_int_equal(remat_plan_summary(plan)->stopped, REMAT_WORK);
    remat_plan_free(plan);
    remat_graph_free(graph);
}

typedef struct meter {
    size_t now, most;
} meter;

static void *measured_resize(void *user, void *p, size_t old_size, size_t new_size)
{
    meter *m = user;
    m->now += new_size - old_size;
    if (m->now > m->most) m->most = m->now;
    if (new_size) return realloc(p, new_size);
    free(p);
    return NULL;
}

/* A storage of 1000 bytes is read before and after a crowd of `n` pinned ones, whose values have no
 * gaps but live long: those count too. */
static remat_graph *crowd(remat_ctx *ctx, uint32_t n)
{
    remat_builder *b = remat_builder_new(ctx, "crowd");
    remat_graph *graph = NULL;
    const uint32_t large = remat_builder_value(b, "large", 1000),
                   first = remat_builder_value(b, "first", 1);
    remat_builder_op(b, "make", NOTHING, &large, 1);
    remat_builder_op_set(b, remat_builder_op(b, "use", &large, 1, &first, 1), REMAT_OP_PINNED, 1);
    for (uint32_t i = 0; i < 2 * n; i++) {
        const uint32_t value = remat_builder_value(b, "v", i < n), read = value - n;
        remat_builder_op_set(b, remat_builder_op(b, "op", &read, i >= n, &value, 1),
                             REMAT_OP_PINNED, 1);
    }
    const uint32_t last = remat_builder_value(b, "last", 1);
    remat_builder_op_set(b, remat_builder_op(b, "use", &large, 1, &last, 1), REMAT_OP_PINNED, 1);
    for (uint32_t op = 0; op < 2 * n + 3; op++) remat_builder_op_set(b, op, REMAT_OP_COST, 1);
    remat_builder_output(b, last);
    OK(ctx, remat_builder_finish(b, &graph));
    remat_builder_free(b);
    return graph;
}

static void by_tables(void **state)
{
    enum { N = 1500 };
    meter m = {0};
    const remat_alloc hooks = {measured_resize, &m};
    remat_ctx *ctx = remat_ctx_new(&hooks);
    remat_plan *plan = NULL;
    (void)state;
    remat_graph *graph = crowd(ctx, N);
    OK(ctx, remat_ctx_set(ctx, "memory_bytes", 8 << 20));
    OK(ctx, remat_plan_make(ctx, graph, "exact", N + 500, &plan));
    assert_int_equal(remat_plan_summary(plan)->cost, 2 * N + 4);
    assert_true(m.most < (8 << 20)); /* N * N entries would be 18 MB */
    remat_plan_free(plan);
    remat_graph_free(graph);
    remat_ctx_free(ctx);
    assert_int_equal(m.now, 0);
}

typedef struct watcher {
    remat_ctx *ctx;
    bool seen;
} watcher;

static void stop_in_proof(void *user, const remat_progress *p)
{
    watcher *w = user;
    if (strcmp(p->strategy, "exact") != 0) return;
    assert_true(p->bound_cost >= 171 && p->cost >= p->bound_cost && p->peak_bytes > 0);
    w->seen = true;
    remat_ctx_stop(w->ctx);
}

static void by_signal(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph;
    watcher w = {.ctx = ctx};
    remat_ctx_on_progress(ctx, stop_in_proof, &w);
    remat_plan *plan = plan_of_60(ctx, &graph);
    assert_true(w.seen);
    assert_int_equal(remat_plan_summary(plan)->stopped, REMAT_SIGNAL);
    assert_int_equal(remat_plan_summary(plan)->outcome, REMAT_FEASIBLE);
    remat_ctx_on_progress(ctx, NULL, NULL);
    remat_plan_free(plan);
    remat_graph_free(graph);
}

static void count_warning(void *user, const char *line)
{
    assert_non_null(strstr(line, "comes from a search"));
    ++*(int *)user;
}

static bool is_proved(remat_ctx *ctx, const remat_graph *graph, const text *t)
{
    remat_input *input = NULL;
    remat_plan *plan = NULL;
    remat_verdict v = REMAT_VERDICT_INIT;
    OK(ctx, remat_input_parse(ctx, "plan", t->bytes, t->n, &input));
    OK(ctx, remat_plan_read(ctx, input, &plan));
    OK(ctx, remat_plan_verify_bound(ctx, graph, plan, &v));
    remat_plan_free(plan);
    remat_input_free(input);
    return v.valid;
}

static void what_the_file_says(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = load(ctx, "resnet18", FASTSA, "node");
    text twice[2] = {{0}};
    int warnings = 0;
    OK(ctx, remat_ctx_set(ctx, "work", 1000000));   /* as in table 2 */
    OK(ctx, remat_ctx_set(ctx, "bound_rules", 31)); /* walls prove as much, which can be checked */
    for (int i = 0; i < 2; i++) {
        remat_plan *plan = plan_at(ctx, graph, 50);
        assert_string_equal(remat_plan_summary(plan)->bound_method, "search");
        OK(ctx, remat_plan_write(ctx, plan, REMAT_JSON, into_text, &twice[i]));
        remat_plan_free(plan);
    }
    assert_int_equal(twice[0].n, twice[1].n);
    assert_memory_equal(twice[0].bytes, twice[1].bytes, twice[0].n);
    remat_ctx_on_warning(ctx, count_warning, &warnings);
    assert_true(is_proved(ctx, graph, &twice[0]));
    assert_int_equal(warnings, 1);
    const struct {
        const char *old, *now;
    } lies[] = {{"\"certificate\":{\"cost\":178", "\"certificate\":{\"cost\":177"},
                {"\"certificate\":{\"cost\":178", "\"certificate\":{\"cost\":179"},
                {"\"bound\":{\"cost\":179", "\"bound\":{\"cost\":178"},
                {"\"bound\":{\"cost\":179", "\"bound\":{\"cost\":180"},
                {"\"method\":\"search\"", "\"method\":\"flow  \""}};
    for (size_t i = 0; i < LENGTH(lies); i++) {
        const text lie = text_with(&twice[0], lies[i].old, lies[i].now);
        assert_non_null(lie.bytes);
        assert_false(is_proved(ctx, graph, &lie));
        free(lie.bytes);
    }
    assert_int_equal(warnings, 1);
    free(twice[0].bytes), free(twice[1].bytes);
    remat_graph_free(graph);
}

/* Where nothing fits in any order, and where there is no limit, there is nothing to search. */
static void nothing_to_prove(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = load(ctx, "vgg11", FASTSA, "node");
    remat_info info = REMAT_INFO_INIT;
    remat_plan *plan = NULL;
    OK(ctx, remat_graph_info(ctx, graph, &info));
    OK(ctx, remat_plan_make(ctx, graph, "exact", info.keep_all_peak_bytes / 10 * 7, &plan));
    assert_int_equal(remat_plan_summary(plan)->outcome, REMAT_INFEASIBLE);
    remat_plan_free(plan);
    OK(ctx, remat_plan_make(ctx, graph, "exact", REMAT_BUDGET_NONE, &plan));
    assert_int_equal(remat_plan_summary(plan)->outcome, REMAT_OPTIMAL);
    assert_int_equal(remat_plan_summary(plan)->cost, 71);
    remat_plan_free(plan);
    remat_graph_free(graph);
}

/* ---- all orders ---- */

/* In its own order the cheapest plan costs 49.8 % more than keep-all, in the best one 4.5 %. auto
 * finds that and proves it too, as far as its work goes. */
static void in_any_order(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = NULL;
    static const char *const strategies[] = {"exact", "auto"};
    OK(ctx, remat_graph_load(ctx, "zoo:random-layered?n=20&width=4&seed=6", &graph));
    for (size_t i = 0; i < LENGTH(strategies); i++) {
        remat_plan *plan = NULL;
        OK(ctx, remat_plan_make(ctx, graph, strategies[i], 18098, &plan));
        const remat_summary *s = remat_plan_summary(plan);
        assert_int_equal(s->outcome, REMAT_OPTIMAL);
        assert_string_equal(s->bound_scope, "any-order");
        assert_string_equal(s->bound_method, "search");
        assert_int_equal(s->cost, 13222);
        assert_int_equal(s->stopped, REMAT_DONE);
        remat_plan_free(plan);
        /* The least peak of any plan is higher, though no op alone needs that much. */
        OK(ctx, remat_plan_make(ctx, graph, strategies[i], 14220, &plan));
        s = remat_plan_summary(plan);
        assert_true(s->need_bytes <= 14220);
        assert_int_equal(s->outcome, REMAT_INFEASIBLE);
        remat_plan_free(plan);
    }
    remat_graph_free(graph);
}

/* P makes s and u. W, which is dear, makes a view of s. u has to make room for Q. Then P runs again
 * for u, and the view goes on looking at the first s: two instances of s are in memory. */
static void two_instances(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "two");
    remat_graph *graph = NULL;
    remat_plan *plan = NULL;
    const uint32_t s = remat_builder_value(b, "s", 4), u = remat_builder_value(b, "u", 4),
                   w = remat_builder_view(b, "w", 4, s), q = remat_builder_value(b, "q", 0);
    const uint32_t ops[] = {remat_builder_op(b, "P", NOTHING, LIST(s, u)),
                            remat_builder_op(b, "W", LIST(s), LIST(w)),
                            remat_builder_op(b, "Q", LIST(w), LIST(q)),
                            remat_builder_op(b, "R", LIST(w, u, q), NOTHING)};
    for (size_t i = 0; i < LENGTH(ops); i++)
        remat_builder_op_set(b, ops[i], REMAT_OP_COST, i == 1 ? 100 : 1);
    remat_builder_op_set(b, ops[2], REMAT_OP_WORKSPACE, 7);
    OK(ctx, remat_builder_finish(b, &graph));
    remat_builder_free(b);
    OK(ctx, remat_ctx_set(ctx, "work", 100000));
    for (int64_t budget = 12; budget >= 11; budget--) { /* room for both, or for one only */
        OK(ctx, remat_plan_make(ctx, graph, "exact", budget, &plan));
        const remat_summary *x = remat_plan_summary(plan);
        assert_int_equal(x->cost, budget == 12 ? 104 : 204);
        assert_int_equal(x->bound_cost, 104); /* at 11 the search does not know better */
        assert_int_equal(x->outcome, budget == 12 ? REMAT_OPTIMAL : REMAT_FEASIBLE);
        remat_plan_free(plan);
    }
    remat_graph_free(graph);
}

/* B and C both read a, and what they make is kept. Each op fits, and so do the two outputs at the
 * end, but whichever is made last needs a and the other. */
static remat_graph *too_tight(remat_ctx *ctx)
{
    remat_builder *b = remat_builder_new(ctx, "tight");
    remat_graph *graph = NULL;
    const uint32_t a = remat_builder_value(b, "a", 4), x = remat_builder_value(b, "x", 4),
                   y = remat_builder_value(b, "y", 4);
    remat_builder_op(b, "A", NOTHING, LIST(a));
    remat_builder_op(b, "B", LIST(a), LIST(x));
    remat_builder_op(b, "C", LIST(a), LIST(y));
    for (uint32_t op = 0; op < 3; op++) remat_builder_op_set(b, op, REMAT_OP_COST, 1);
    remat_builder_output(b, x);
    remat_builder_output(b, y);
    OK(ctx, remat_builder_finish(b, &graph));
    remat_builder_free(b);
    return graph;
}

/* V makes a view of what A made, with much workspace; T makes t, with more. Looking back knows that
 * s must be there for Q, not that V must have run behind it. */
static remat_graph *tight_behind_a_view(remat_ctx *ctx)
{
    remat_builder *b = remat_builder_new(ctx, "view");
    remat_graph *graph = NULL;
    const uint32_t made = remat_builder_value(b, "s", 50), t = remat_builder_value(b, "t", 1),
                   view = remat_builder_view(b, "w", 50, made),
                   last = remat_builder_value(b, "o", 1);
    const int64_t workspace[] = {10, 180, 200, 0};
    remat_builder_op(b, "A", NOTHING, LIST(made));
    remat_builder_op(b, "V", LIST(made), LIST(view));
    remat_builder_op(b, "T", NOTHING, LIST(t));
    remat_builder_op(b, "Q", LIST(view, t), LIST(last));
    for (uint32_t op = 0; op < LENGTH(workspace); op++) {
        remat_builder_op_set(b, op, REMAT_OP_COST, 1);
        remat_builder_op_set(b, op, REMAT_OP_WORKSPACE, workspace[op]);
    }
    remat_builder_output(b, last);
    OK(ctx, remat_builder_finish(b, &graph));
    remat_builder_free(b);
    return graph;
}

/* Nothing fits the budget, by this method, and `least` bytes do. A proof by search is not checked,
 * and a warning says so. */
static void check_infeasible(remat_ctx *ctx, const remat_graph *graph, int64_t budget,
                             const char *method, int64_t least)
{
    remat_plan *plan = NULL, *read = NULL;
    remat_input *input = NULL;
    remat_verdict v = REMAT_VERDICT_INIT;
    text file = {0};
    OK(ctx, remat_plan_make(ctx, graph, "exact", budget, &plan));
    assert_int_equal(remat_plan_summary(plan)->need_bytes, budget);
    assert_int_equal(remat_plan_summary(plan)->outcome, REMAT_INFEASIBLE);
    assert_string_equal(remat_plan_summary(plan)->bound_method, method);
    OK(ctx, remat_plan_write(ctx, plan, REMAT_JSON, into_text, &file));
    remat_plan_free(plan);
    OK(ctx, remat_input_parse(ctx, "plan", file.bytes, file.n, &input));
    OK(ctx, remat_plan_read(ctx, input, &read));
    OK(ctx, remat_plan_verify(ctx, graph, read, &v));
    assert_true(v.valid);
    int warnings = 0;
    remat_ctx_on_warning(ctx, count_warning, &warnings);
    OK(ctx, remat_plan_verify_bound(ctx, graph, read, &v));
    assert_true(v.valid && warnings == (strcmp(method, "search") == 0));
    remat_ctx_on_warning(ctx, NULL, NULL);
    OK(ctx, remat_plan_make(ctx, graph, "exact", least, &plan));
    assert_int_equal(remat_plan_summary(plan)->outcome, REMAT_OPTIMAL);
    remat_plan_free(plan);
    remat_plan_free(read);
    remat_input_free(input);
    free(file.bytes);
}

static void nothing_fits(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = too_tight(ctx), *behind = tight_behind_a_view(ctx);
    remat_plan *plan = NULL;
    check_infeasible(ctx, graph, 8, "first-runs", 12); /* looking back proves it */
    check_infeasible(ctx, behind, 230, "search", 231);
    /* With offload x could leave and come back, which exact does not look for. */
    OK(ctx, remat_ctx_set(ctx, "offload", 1));
    FAILS(ctx, REMAT_E_APPLIES, remat_plan_make(ctx, graph, "exact", 8, &plan));
    remat_graph_free(behind);
    remat_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(table_2),
                                       WITH_CONTEXT(by_work),
                                       WITH_CONTEXT(never_worse_than_auto),
                                       WITH_CONTEXT(by_memory),
                                       WITH_CONTEXT(by_tables),
                                       WITH_CONTEXT(by_signal),
                                       WITH_CONTEXT(what_the_file_says),
                                       WITH_CONTEXT(nothing_to_prove),
                                       WITH_CONTEXT(in_any_order),
                                       WITH_CONTEXT(two_instances),
                                       WITH_CONTEXT(nothing_fits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
