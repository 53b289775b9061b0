/* test_bound.c: bounds with known answers, orders that cannot fit, and certificates that somebody
 * has changed. */
#include "support.h"

#include <stdio.h>
#include <string.h>

#include "graph/plan.h"
#include "plan/bound/order_bound.h"
#include "verify/verify.h"

static remat_graph *finish(remat_ctx *ctx, remat_builder *b)
{
    remat_graph *graph = NULL;
    OK(ctx, remat_builder_finish(b, &graph));
    remat_builder_free(b);
    return graph;
}

static uint32_t op(remat_builder *b, const char *name, int64_t cost, const uint32_t *in,
                   uint32_t n_in, const uint32_t *out, uint32_t n_out)
{
    const uint32_t at = remat_builder_op(b, name, in, n_in, out, n_out);
    remat_builder_op_set(b, at, REMAT_OP_COST, cost);
    return at;
}

static remat_bound bound_at(remat_ctx *ctx, const remat_graph *graph, int64_t budget, int64_t rules)
{
    remat_bound bound = REMAT_BOUND_INIT;
    OK(ctx, remat_ctx_set(ctx, "bound_rules", rules));
    OK(ctx, remat_bound_find(ctx, graph, budget, &bound));
    return bound;
}

/* One run of P makes both a and b again: losing both costs 10, not 20. */
static void one_run_serves_all_outputs(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "shared");
    const uint32_t v[] = {remat_builder_value(b, "a", 1), remat_builder_value(b, "b", 1)};
    op(b, "P", 10, NOTHING, v, 2);
    op(b, "S", 1, v, 2, NOTHING);
    remat_builder_op_set(b, op(b, "Q", 1, NOTHING, NOTHING), REMAT_OP_WORKSPACE, 11);
    op(b, "R", 1, v, 2, NOTHING);
    remat_graph *graph = finish(ctx, b);
    assert_int_equal(bound_at(ctx, graph, 11, 15).cost, 13 + 10);
    assert_int_equal(bound_at(ctx, graph, 12, 15).cost,
                     13 + 5); /* the program loses half of each */
    assert_int_equal(bound_at(ctx, graph, 13, 15).cost, 13);
    assert_string_equal(bound_at(ctx, graph, 13, 15).scope, "any-order");
    assert_int_equal(bound_at(ctx, graph, 10, 15).status, REMAT_E_INFEASIBLE);
    assert_int_equal(bound_at(ctx, graph, 10, 15).need_bytes, 11);
    remat_graph_free(graph);
}

/* x -> p -> y, y wanted after a large op. Keeping x's successor p instead of y saves nothing, so
 * y's loss costs both ops; with a p smaller than y it would cost y's op alone. */
static int64_t chain_bound(remat_ctx *ctx, int64_t p_bytes, bool p_is_output, bool p_is_pinned,
                           int64_t rules, unsigned *used)
{
    remat_builder *b = remat_builder_new(ctx, "chain");
    const uint32_t p = remat_builder_value(b, "p", p_bytes), y = remat_builder_value(b, "y", 4);
    const uint32_t make = op(b, "P", 7, NOTHING, &p, 1);
    if (p_is_pinned) remat_builder_op_set(b, make, REMAT_OP_PINNED, 1);
    op(b, "Y", 2, &p, 1, &y, 1);
    remat_builder_op_set(b, op(b, "Q", 1, NOTHING, NOTHING), REMAT_OP_WORKSPACE, 20);
    op(b, "R", 1, &y, 1, NOTHING);
    if (p_is_output) remat_builder_output(b, p);
    remat_graph *graph = finish(ctx, b);
    const remat_bound bound = bound_at(ctx, graph, 20, rules);
    *used = bound.rules;
    remat_graph_free(graph);
    return bound.status == REMAT_OK ? bound.cost - bound.keep_all_cost : -1;
}

static void stand_ins(void **state)
{
    unsigned used;
    assert_int_equal(chain_bound(*state, 4, false, false, 15, &used), 9);
    assert_int_equal(used, REMAT_BOUND_SINGLE);
    assert_int_equal(chain_bound(*state, 4, false, false, 14, &used), 2);
    assert_int_equal(used, 0);
    assert_int_equal(chain_bound(*state, 3, false, false, 15, &used),
                     2); /* too small to stand in */
    assert_int_equal(chain_bound(*state, 4, true, false, 15, &used),
                     9); /* an output is lost by itself: 2 + 7 */
    assert_int_equal(used, 0);
    assert_int_equal(chain_bound(*state, 4, false, true, 15, &used),
                     2); /* y from a kept p: the order of the plan decides */
}

/* What a pinned op made must be kept while others run in between: in this order that is too much,
 * in another it is not. */
static void order_that_cannot_fit(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "pinned");
    const uint32_t a = remat_builder_value(b, "held", 5), c = remat_builder_value(b, "c", 3);
    remat_builder_op_set(b, op(b, "A", 1, NOTHING, &a, 1), REMAT_OP_PINNED, 1);
    op(b, "B", 1, NOTHING, &c, 1);
    op(b, "C", 1, &a, 1, NOTHING);
    remat_graph *graph = finish(ctx, b);
    remat_bound bound = bound_at(ctx, graph, 7, 15);
    assert_int_equal(bound.status, REMAT_E_INFEASIBLE);
    assert_string_equal(bound.scope, "fixed-order");
    assert_int_equal(bound.need_bytes, 8);
    assert_int_equal(bound.need_op, 1);
    assert_int_equal(bound.n_need_values, 2);
    assert_int_equal(bound.need_values[0], a);
    assert_int_equal(bound.need_values[1], c);
    assert_int_equal(bound.cost, REMAT_ABSENT);
    assert_int_equal(bound_at(ctx, graph, 8, 15).status, REMAT_OK);
    assert_string_equal(bound_at(ctx, graph, 4, 15).scope, "any-order");
    FAILS(ctx, REMAT_E_USAGE, remat_bound_find(ctx, graph, REMAT_BUDGET_MIN, &bound));
    remat_graph_free(graph);
}

/* Behind the last step all outputs are in memory together, in any order. */
static void end_that_cannot_fit(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "outputs");
    remat_plan *plan = NULL;
    remat_info info = REMAT_INFO_INIT;
    for (int i = 0; i < 3; i++) {
        const uint32_t v = remat_builder_value(b, NULL, 10 + i);
        op(b, NULL, 1, NOTHING, &v, 1);
        remat_builder_output(b, v);
    }
    remat_graph *graph = finish(ctx, b);
    OK(ctx, remat_graph_info(ctx, graph, &info));
    assert_int_equal(info.need_bytes, 33);
    assert_int_equal(info.need_op, REMAT_NONE);
    const remat_bound bound = bound_at(ctx, graph, 32, 15);
    assert_int_equal(bound.status, REMAT_E_INFEASIBLE);
    assert_string_equal(bound.scope, "any-order");
    assert_int_equal(bound.need_bytes, 33);
    assert_int_equal(bound.need_op, REMAT_NONE);
    assert_int_equal(bound.n_need_values, 3);
    assert_int_equal(bound.need_values[0], 2);
    for (size_t i = 0; remat_strategy_at(i); i++) {
        const remat_status status =
            remat_plan_make(ctx, graph, remat_strategy_at(i)->name, 32, &plan);
        assert_int_equal(status, REMAT_OK);
        assert_int_equal(remat_plan_status(plan), REMAT_E_INFEASIBLE);
        remat_plan_free(plan);
    }
    assert_int_equal(bound_at(ctx, graph, 33, 15).status, REMAT_OK);
    remat_graph_free(graph);
}

/* A -> x -> Q -> z -> S -> w -> R, and P copies x to c for R, some time. While S runs, which takes
 * all the memory, neither x nor c is there. So A runs twice in every order, unless c may be smaller
 * than x, or does not come from it. */
static int64_t bound_with_copy(remat_ctx *ctx, int64_t c_bytes, bool c_is_output, bool c_is_pinned,
                               int64_t rules)
{
    remat_builder *b = remat_builder_new(ctx, "copy");
    const uint32_t x = remat_builder_value(b, "x", 10), c = remat_builder_value(b, "c", c_bytes),
                   z = remat_builder_value(b, "z", 1), w = remat_builder_value(b, "w", 1),
                   in[] = {w, c};
    op(b, "A", 3, NOTHING, &x, 1);
    const uint32_t copying = op(b, "P", 1, &x, 1, &c, 1);
    if (c_is_pinned) remat_builder_op_set(b, copying, REMAT_OP_PINNED, 1);
    op(b, "Q", 1, &x, 1, &z, 1);
    remat_builder_op_set(b, op(b, "S", 1, &z, 1, &w, 1), REMAT_OP_WORKSPACE, 20);
    op(b, "R", 1, in, 2, NOTHING);
    if (c_is_output) remat_builder_output(b, c);
    remat_graph *graph = finish(ctx, b);
    const int64_t cost = bound_at(ctx, graph, 22, rules).any_order_cost;
    remat_graph_free(graph);
    return cost;
}

static void holders(void **state)
{
    remat_ctx *ctx = *state;
    assert_int_equal(bound_with_copy(ctx, 10, false, false, 31), 7 + 3);
    assert_int_equal(bound_with_copy(ctx, 10, false, false, REMAT_BOUND_HOLDERS), 7 + 3);
    assert_int_equal(bound_with_copy(ctx, 12, false, false, 31), 7 + 3);
    assert_int_equal(bound_with_copy(ctx, 10, false, false, 15), 7);
    assert_int_equal(bound_with_copy(ctx, 9, false, false, 31), 7);
    assert_int_equal(bound_with_copy(ctx, 10, true, false, 31), 7);
    assert_int_equal(bound_with_copy(ctx, 10, false, true, 31), 7);
}

/* Without stand-ins what the program keeps fits the budget everywhere, and it loses something. */
static void primal_solution(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = NULL;
    rm_normal nm;
    rm_order_bound bound;
    OK(ctx, remat_graph_load(ctx, "zoo:resnet18?batch=8", &graph));
    remat_info info = REMAT_INFO_INIT;
    OK(ctx, remat_graph_info(ctx, graph, &info));
    const rm_mark mark = rm_scratch_mark(ctx);
    OK(ctx, rm_normal_of(ctx, graph, &nm));
    const int64_t budget = info.keep_all_peak_bytes * 6 / 10;
    OK(ctx,
       rm_order_bound_find(ctx, &nm, budget, NULL, &(rm_order_bound_options){.rules = 0}, &bound));
    assert_true(bound.feasible && bound.certificate.scale > 0);
    int64_t lost = 0;
    for (uint32_t t = 0; t < nm.n_ops; t++) {
        int64_t kept = bound.need[t];
        for (uint32_t i = 0; i < bound.n_gaps; i++)
            if (bound.gaps[i].from < t && t < bound.gaps[i].to) kept += bound.kept[i];
        assert_true(kept <= budget);
    }
    for (uint32_t i = 0; i < bound.n_gaps; i++) {
        assert_true(bound.kept[i] >= 0 && bound.kept[i] <= nm.bytes[bound.gaps[i].store]);
        lost += bound.kept[i] < nm.bytes[bound.gaps[i].store];
    }
    assert_true(lost > 0);
    rm_scratch_release(ctx, mark);
    remat_graph_free(graph);
}

/* ---- real graphs: a plan made from the program's solution, against the bound at its own peak ----
 */

typedef struct rounding {
    const rm_normal *nm;
    const rm_order_bound *bound;
    uint8_t *there, *held; /* by storage: now; across the ops that do not touch it */
    rm_code *codes;
    size_t n;
} rounding;

static void make_again(rounding *x, uint32_t store)
{
    const rm_normal *nm = x->nm;
    if (x->there[store]) return;
    const uint32_t from = nm->producer[store];
    for (uint32_t k = nm->in_begin[from]; k < nm->in_begin[from + 1]; k++) make_again(x, nm->in[k]);
    x->codes[x->n++] = from;
    for (uint32_t k = nm->out_begin[from]; k < nm->out_begin[from + 1]; k++)
        x->there[nm->out[k]] = 1;
}

/* After position t: is this storage kept until it is touched again? Gaps are kept if most of them
 * is. */
static bool is_kept(const rounding *x, uint32_t store, uint32_t t)
{
    const rm_normal *nm = x->nm;
    bool later = nm->is_output[store];
    for (uint32_t k = nm->reader_begin[store]; k < nm->reader_begin[store + 1]; k++)
        later |= nm->readers[k] > t;
    for (uint32_t i = 0; i < x->bound->n_gaps && later; i++)
        if (x->bound->gaps[i].store == store && x->bound->gaps[i].from == t &&
            2 * x->bound->kept[i] < nm->bytes[store])
            return false;
    return later;
}

static void touch_all(rounding *x, uint32_t t)
{
    const rm_normal *nm = x->nm;
    for (uint32_t k = nm->in_begin[t]; k < nm->in_begin[t + 1]; k++)
        x->there[nm->in[k]] = 1, x->held[nm->in[k]] = is_kept(x, nm->in[k], t);
    for (uint32_t k = nm->out_begin[t]; k < nm->out_begin[t + 1]; k++)
        x->there[nm->out[k]] = 1, x->held[nm->out[k]] = is_kept(x, nm->out[k], t);
}

static void round_up_to_a_plan(rounding *x)
{
    const rm_normal *nm = x->nm;
    memset(x->there, 0, nm->n_stores);
    memset(x->held, 0, nm->n_stores);
    x->n = 0;
    for (uint32_t t = 0; t < nm->n_ops; t++) {
        for (uint32_t k = nm->in_begin[t]; k < nm->in_begin[t + 1]; k++) make_again(x, nm->in[k]);
        x->codes[x->n++] = t;
        memcpy(x->there, x->held, nm->n_stores);
        touch_all(x, t);
    }
    for (uint32_t s = 0; s < nm->n_stores; s++)
        if (nm->is_output[s]) make_again(x, s);
}

static double gap_at(remat_ctx *ctx, const remat_graph *graph, const rm_normal *nm, int64_t budget)
{
    rm_order_bound first, again;
    remat_verdict v = REMAT_VERDICT_INIT, word;
    rm_schedule steps = {0};
    int64_t cost = 0;
    const rm_order_bound_options options = {.rules = RM_BOUND_RULES};
    OK(ctx, rm_order_bound_find(ctx, nm, budget, NULL, &options, &first));
    rounding x = {.nm = nm, .bound = &first};
    x.there = rm_scratch(ctx, nm->n_stores, 1), x.held = rm_scratch(ctx, nm->n_stores, 1),
    x.codes = rm_scratch(ctx, 40 * (size_t)nm->n_ops, sizeof *x.codes);
    assert_true(first.feasible && x.there && x.held && x.codes);
    round_up_to_a_plan(&x);
    OK(ctx, rm_normal_expand(ctx, nm, x.codes, x.n, &steps));
    rm_steps_to_original(graph, steps.items, steps.n);
    OK(ctx, rm_verify(ctx, graph, steps.items, steps.n, 0, &v));
    assert_true(v.valid);
    OK(ctx, rm_order_bound_find(ctx, nm, v.peak_bytes, NULL, &options, &again));
    const rm_bound_case question = {steps.items, steps.n, v.peak_bytes, false, 0};
    OK(ctx, rm_verify_bound(ctx, graph, &question, &again.certificate, &cost, &word));
    assert_true(word.valid);
    assert_true(cost <= v.cost);
    RM_VEC_FREE(&ctx->heap, steps);
    return cost > graph->total_cost ? (double)(v.cost - cost) / (double)cost : 1;
}

static void rounded_plans(void **state)
{
    static const char *const names[] = {"resnet18",        "resnet50",   "mobilenetv3_large",
                                        "efficientnet_b0", "deit3_base", "distilbert"};
    remat_ctx *ctx = *state;
    double least = 1;
    for (size_t i = 0; i < 2 * LENGTH(names); i++) {
        char path[400];
        remat_graph *given = NULL, *graph = NULL;
        remat_info info = REMAT_INFO_INIT;
        rm_normal nm;
        snprintf(path, sizeof path, REMAT_TEST_DATA "/graphs/%s.json.gz", names[i / 2]);
        OK(ctx, remat_graph_load(ctx, path, &given));
        OK(ctx, remat_graph_prepare(ctx, given, REMAT_DCE | REMAT_REPLAY_RANDOM,
                                    i % 2 ? "unit" : "roofline:h100", &graph));
        OK(ctx, remat_graph_info(ctx, graph, &info));
        const rm_mark mark = rm_scratch_mark(ctx);
        OK(ctx, rm_normal_of(ctx, graph, &nm));
        for (int64_t k = 1; k < 8; k++) {
            const double gap =
                gap_at(ctx, graph, &nm,
                       info.need_bytes + (info.keep_all_peak_bytes - info.need_bytes) / 8 * k);
            if (gap < least) least = gap;
        }
        rm_scratch_release(ctx, mark);
        remat_graph_free(graph);
        remat_graph_free(given);
    }
    assert_true(least <
                0.001); /* and they come close: a bound that is far away would pass all this */
}

/* ---- certificates that somebody has changed ---- */

typedef struct bed {
    remat_ctx *ctx;
    remat_graph *graph;
    remat_plan *plan;
} bed;

static bed make_plan(remat_ctx *ctx, const char *strategy, int64_t rules, const char *share)
{
    bed b = {.ctx = ctx};
    remat_graph *given = NULL;
    int64_t budget;
    remat_info info = REMAT_INFO_INIT;
    OK(ctx, remat_ctx_set(ctx, "bound_rules", rules));
    OK(ctx, remat_graph_load(ctx, REMAT_TEST_DATA "/graphs/resnet18.json.gz", &given));
    OK(ctx, remat_graph_prepare(ctx, given, REMAT_DCE, "roofline:h100", &b.graph));
    OK(ctx, remat_graph_info(ctx, b.graph, &info));
    OK(ctx, remat_budget_parse(ctx, share, info.keep_all_peak_bytes, &budget));
    OK(ctx, remat_plan_make(ctx, b.graph, strategy, budget, &b.plan));
    remat_graph_free(given);
    return b;
}

static bool is_proved(const bed *b)
{
    remat_verdict v = REMAT_VERDICT_INIT;
    OK(b->ctx, remat_plan_verify_bound(b->ctx, b->graph, b->plan, &v));
    return v.valid;
}

#define REFUSED(b, lvalue, changed)                                                                \
    do {                                                                                           \
        const int64_t before_ = (int64_t)(lvalue);                                                 \
        (lvalue) = (changed);                                                                      \
        if (is_proved(&(b))) fail_msg("%s = %s is accepted", #lvalue, #changed);                   \
        (lvalue) = (__typeof__(lvalue))before_;                                                    \
        assert_true(is_proved(&(b)));                                                              \
    } while (0)

static uint32_t value_where(const bed *b, bool resident, bool output)
{
    for (uint32_t v = 0; v < b->graph->n_values; v++)
        if (b->graph->root[v] == v && rm_is_resident(b->graph, v) == resident &&
            (b->graph->is_output[v] != 0) == output)
            return b->graph->value_original[v];
    fail_msg("no such value");
    return 0;
}

static void changed_certificates(void **state)
{
    const bed b = make_plan(*state, "rotor", 15, "70%");
    rm_certificate *c = &b.plan->certificates.own_order;
    remat_summary *s = &b.plan->summary;
    assert_string_equal(s->bound_scope, "fixed-order");
    assert_string_equal(s->bound_method, "flow");
    assert_true(s->bound_cost > s->keep_all_cost && s->bound_cost <= s->cost);
    assert_true(c->n_prices > 0 && c->n_heirs > 1);
    assert_true(is_proved(&b));

    REFUSED(b, s->bound_cost, s->bound_cost + 1);
    REFUSED(b, s->bound_cost, s->bound_cost - 1);
    REFUSED(b, s->budget_bytes, s->budget_bytes + s->budget_bytes / 20);
    REFUSED(b, c->scale, 0);
    REFUSED(b, c->scale, -1);
    REFUSED(b, c->scale, INT64_MAX);
    REFUSED(b, c->scale, c->scale / 2);
    REFUSED(b, c->scale, c->scale * 2);
    REFUSED(b, c->n_prices, 0);
    for (size_t i = 0; i < c->n_prices; i++) {
        REFUSED(b, c->prices[i].price, 0);
        REFUSED(b, c->prices[i].price, -1);
        REFUSED(b, c->prices[i].price, INT64_MAX);
        REFUSED(b, c->prices[i].price, c->prices[i].price * 2);
        REFUSED(b, c->prices[i].op, b.graph->n_original_ops);
        REFUSED(b, c->prices[i].op, 0);
    }
    REFUSED(b, c->n_heirs, 0);
    const rm_heir first = c->heirs[0];
    REFUSED(b, c->heirs[0].heir, first.value);
    REFUSED(b, c->heirs[0].heir, REMAT_NONE);
    REFUSED(b, c->heirs[0].heir, value_where(&b, true, false));
    REFUSED(b, c->heirs[0].value, REMAT_NONE);
    REFUSED(b, c->heirs[0].value, value_where(&b, true, false));
    REFUSED(b, c->heirs[c->n_heirs - 1].value, value_where(&b, false, true));
    const rm_heir second = c->heirs[1];
    c->heirs[1] = first; /* twice the same */
    assert_false(is_proved(&b));
    c->heirs[1] = second;
    remat_plan_free(b.plan);
    remat_graph_free(b.graph);
}

static void refuse_many_prices(const bed *b, rm_certificate *c)
{
    rm_price many[65], *few = c->prices;
    const size_t n = c->n_prices;
    for (uint32_t i = 0; i < RM_LEN(many); i++) many[i] = (rm_price){i, 1};
    c->prices = many;
    c->n_prices = RM_LEN(many);
    assert_false(is_proved(b));
    c->prices = few;
    c->n_prices = n;
}

/* Prices alone: what is changed is refused, or proves another number. */
static void changed_walls(void **state)
{
    const bed b = make_plan(*state, "auto", 63, "50%");
    remat_summary *s = &b.plan->summary;
    rm_certificate *all[] = {&b.plan->certificates.own_order, &b.plan->certificates.any_order};
    assert_string_equal(s->bound_method, "walls");
    assert_string_equal(s->any_order_method, "walls");
    assert_true(is_proved(&b));
    REFUSED(b, s->bound_cost, s->bound_cost + 1);
    REFUSED(b, s->any_order_cost, s->any_order_cost + 1);
    REFUSED(b, s->any_order_cost, s->any_order_cost - 1);
    for (int k = 0; k < 2; k++) {
        rm_certificate *c = all[k];
        if (c->scale == 0) continue; /* the other one is as good */
        assert_true(c->walls && c->n_prices > 0 && c->n_heirs == 0);
        REFUSED(b, c->walls, false);
        REFUSED(b, c->scale, 0);
        REFUSED(b, c->scale, INT64_MAX);
        REFUSED(b, c->scale, c->scale / 2);
        REFUSED(b, c->n_prices, 0);
        for (size_t i = 0; i < c->n_prices; i++) {
            REFUSED(b, c->prices[i].price, 0);
            REFUSED(b, c->prices[i].price, -1);
            REFUSED(b, c->prices[i].price, INT64_MAX);
            REFUSED(b, c->prices[i].price, c->prices[i].price * 2);
            REFUSED(b, c->prices[i].op, b.graph->n_original_ops);
            if (i > 0) REFUSED(b, c->prices[i].op, c->prices[i - 1].op);
        }
        rm_heir heir = {0, 1}, *none = c->heirs;
        c->heirs = &heir;
        REFUSED(b, c->n_heirs, 1);
        c->heirs = none;
        refuse_many_prices(&b, c);
    }
    assert_true(is_proved(&b));
    remat_plan_free(b.plan);
    remat_graph_free(b.graph);
}

/* A chain of 24 ops of unit bytes and costs, each result read again on the way back, with room for
 * one of them. Gaps see that all are lost, and made again once. Walls see that what is made again
 * is lost again. */
static void made_again_and_lost_again(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = NULL;
    remat_info info = REMAT_INFO_INIT;
    OK(ctx, remat_graph_load(ctx, "zoo:chain?n=24", &graph));
    OK(ctx, remat_graph_info(ctx, graph, &info));
    const remat_bound gaps = bound_at(ctx, graph, info.need_bytes + 1, 31);
    const remat_bound walls = bound_at(ctx, graph, info.need_bytes + 1, 63);
    assert_string_equal(walls.method, "walls");
    assert_true(gaps.cost - gaps.keep_all_cost <= 24);
    assert_true(walls.cost - walls.keep_all_cost > 30);
    remat_graph_free(graph);
}

/* A forward and a backward row of n ops: all values of one byte, all ops of this cost. */
static remat_graph *dear_chain(remat_ctx *ctx, uint32_t n, int64_t cost)
{
    remat_builder *b = remat_builder_new(ctx, "dear");
    uint32_t forward[32], in[3], gradient = REMAT_NONE;
    assert_true(n <= RM_LEN(forward));
    for (uint32_t i = 0; i < n; i++) {
        forward[i] = remat_builder_value(b, NULL, 1);
        op(b, NULL, cost, i ? &forward[i - 1] : NULL, i ? 1 : 0, &forward[i], 1);
    }
    for (uint32_t i = n; i-- > 0;) {
        const uint32_t made = remat_builder_value(b, NULL, 1);
        uint32_t n_in = 0;
        in[n_in++] = forward[i];
        if (i > 0) in[n_in++] = forward[i - 1];
        if (gradient != REMAT_NONE) in[n_in++] = gradient;
        op(b, NULL, cost, in, n_in, &made, 1);
        gradient = made;
    }
    remat_builder_output(b, gradient);
    return finish(ctx, b);
}

/* Where there is no room, a price may be as high as one likes. Few bytes and large costs make
 * prices high, and the verifier refuses those that sum up to 2^62. */
static void bytes_that_are_dear(void **state)
{
    remat_ctx *ctx = *state;
    for (uint32_t n = 9; n < 14; n += 3)
        for (int shift = 21; shift < 54; shift += 16) {
            remat_graph *graph = dear_chain(ctx, n, INT64_C(1) << shift);
            const remat_bound bound = bound_at(ctx, graph, 4, 63);
            assert_int_equal(bound.need_bytes, 4);
            assert_string_equal(bound.method, "walls");
            remat_graph_free(graph);
        }
}

/* No file has such a scale: its reader refuses them. */
static void scale_of_walls(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = dear_chain(ctx, 9, 1);
    rm_price price = {10, 1};
    const int64_t wrong[] = {0, -1, INT64_MIN, RM_MAX_SUM, INT64_MAX};
    const rm_bound_case question = {.budget_bytes = 4};
    for (size_t i = 0; i < RM_LEN(wrong); i++) {
        const rm_certificate x = {
            .scale = wrong[i], .walls = true, .n_prices = 1, .prices = &price};
        remat_verdict verdict = REMAT_VERDICT_INIT;
        int64_t cost = 0;
        OK(ctx, rm_verify_bound(ctx, graph, &question, &x, &cost, &verdict));
        assert_false(verdict.valid);
        assert_non_null(strstr(verdict.reason, "scale"));
    }
    remat_graph_free(graph);
}

/* As changed_certificates, for the bound of every order: prices on a path of dependencies. */
static void changed_paths(void **state)
{
    const bed b = make_plan(*state, "rotor", 15, "70%");
    rm_certificate *c = &b.plan->certificates.any_order;
    remat_summary *s = &b.plan->summary;
    assert_string_equal(s->any_order_method, "flow");
    assert_true(s->any_order_cost > s->keep_all_cost && s->any_order_cost < s->bound_cost);
    assert_true(c->n_prices > 2);
    assert_true(is_proved(&b));
    REFUSED(b, s->any_order_cost, s->any_order_cost + 1);
    REFUSED(b, s->any_order_cost, s->any_order_cost - 1);
    REFUSED(b, c->scale, 0);
    REFUSED(b, c->scale, c->scale * 2);
    REFUSED(b, c->n_prices, 0);
    size_t n_priced = 0;
    for (size_t i = 0; i < c->n_prices; i++) {
        REFUSED(b, c->prices[i].price, -1);
        REFUSED(b, c->prices[i].price, INT64_MAX);
        REFUSED(b, c->prices[i].op, b.graph->n_original_ops);
        if (i > 0) REFUSED(b, c->prices[i].op, c->prices[i - 1].op);
        if (c->prices[i].price == 0) continue;
        n_priced++;
        REFUSED(b, c->prices[i].price, 0);
        REFUSED(b, c->prices[i].price, c->prices[i].price * 2);
    }
    assert_true(n_priced > 0 && n_priced < c->n_prices);
    remat_plan_free(b.plan);
    remat_graph_free(b.graph);
}

/* Two ops of which neither depends on the other are no path. In any order the larger of two
 * branches can run first, so a bound for the graph's order does not hold. */
static void branches_are_no_path(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "branches");
    uint32_t v[4];
    for (int i = 0; i < 4; i++) v[i] = remat_builder_value(b, NULL, 4);
    op(b, "A", 3, NOTHING, &v[0], 1);
    op(b, "B", 1, NOTHING, &v[1], 1);
    op(b, "C", 1, &v[1], 1, &v[2], 1);
    op(b, "D", 1, &v[0], 1, &v[3], 1);
    remat_graph *graph = finish(ctx, b);
    remat_step *steps = NULL;
    remat_verdict verdict = REMAT_VERDICT_INIT;
    int64_t cost = 0;
    rm_price prices[] = {{0, 0}, {2, 1}};
    rm_certificate certificate = {.scale = 1, .n_prices = 1, .prices = prices + 1};
    OK(ctx, rm_steps_keep_all(ctx, graph, &steps));
    rm_bound_case question = {steps, 4, 8, false, 0};
    OK(ctx, rm_verify_bound(ctx, graph, &question, &certificate, &cost, &verdict));
    assert_true(verdict.valid && cost > graph->total_cost); /* A is lost while B and C run */
    question.steps = NULL;
    OK(ctx, rm_verify_bound(ctx, graph, &question, &certificate, &cost, &verdict));
    assert_true(verdict.valid);
    assert_int_equal(cost, graph->total_cost); /* D may run before B */
    certificate.n_prices = 2;
    certificate.prices = prices;
    OK(ctx, rm_verify_bound(ctx, graph, &question, &certificate, &cost, &verdict));
    assert_false(verdict.valid); /* C does not depend on A */
    remat_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(one_run_serves_all_outputs),
                                       WITH_CONTEXT(stand_ins),
                                       WITH_CONTEXT(order_that_cannot_fit),
                                       WITH_CONTEXT(end_that_cannot_fit),
                                       WITH_CONTEXT(holders),
                                       WITH_CONTEXT(primal_solution),
                                       WITH_CONTEXT(rounded_plans),
                                       WITH_CONTEXT(changed_certificates),
                                       WITH_CONTEXT(changed_walls),
                                       WITH_CONTEXT(made_again_and_lost_again),
                                       WITH_CONTEXT(bytes_that_are_dear),
                                       WITH_CONTEXT(scale_of_walls),
                                       WITH_CONTEXT(changed_paths),
                                       WITH_CONTEXT(branches_are_no_path)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
