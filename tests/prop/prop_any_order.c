/* prop_any_order.c: N random tiny graphs, with outputs, views that cost something or nothing, ops
 * with several outputs, workspaces and pins, each at four budgets, against all schedules that there
 * are (ref/schedule_brute.h).
 *
 * - The search through all orders finds the optimum whatever it starts from, or that nothing fits.
 *   Stopped early, its bound is not above the optimum. Where a plan that it found does not fit, the
 *   graph has an op that makes the base of a view and something else (any_order.c, "Views").
 * - The search in one order (prove.c) likewise, among the schedules with a random order.
 * - What strategy exact says is true: "optimal" in any order and in the plan's own, "infeasible",
 *   and every bound. It proves all that the search can. It is never worse than auto.
 * - What walls prove, of random prices and of the solver's, is not above the optimum, in any order
 *   and in a random one. Here views may be stale, which prop_bound.c's brute force leaves out.
 *
 * Usage: prop_any_order N SEED. A failure prints the seed of its graph: prop_any_order 1 SEED runs
 * that one alone. */
#include <string.h>

#include "check.h"
#include "order_brute.h"
#include "plan/bound/any_order.h"
#include "plan/bound/gate_prices.h"
#include "random_graph.h"
#include "random_walls.h"
#include "schedule_brute.h"
#include "sim/codes.h"
#include "verify/verify.h"

enum { MOST_OPS = 9, MOST_VALUES = 10, WORK = 16000, WALLS_WORK = 200000, CHANGES = 12 };

static int64_t n_in_place, n_budgets, n_infeasible, n_beyond_need, n_above_first_runs,
    n_other_order, n_stopped, n_two_instances, n_cheaper_with_two, n_any, n_fixed, n_open,
    n_better_than_auto, n_walls[2], n_walls_tight[2];

/* ---- graphs ---- */

/* Ops with two outputs, and views of them that cost something: an op that runs again for one output
 * leaves views of the other behind. */
static remat_graph *view_graph(remat_ctx *ctx, random_source *r)
{
    remat_builder *b = remat_builder_new(ctx, "views");
    uint32_t values[16], n_values = 0;
    const uint32_t n_ops = 4 + random_below(r, 4), pins = random_chance(r, 30) ? 40 : 8;
    for (uint32_t i = 0; i < n_ops; i++) {
        uint32_t in[2], out[2], n_in = 0, n_out = 0, op;
        const uint32_t n_read = n_values ? random_below(r, 3) : 0;
        while (n_in < n_read) in[n_in++] = values[random_below(r, n_values)];
        if (n_in && random_chance(r, 45)) {
            out[n_out++] = remat_builder_view(b, NULL, 1, in[0]);
            if (random_chance(r, 15)) out[n_out++] = remat_builder_value(b, NULL, 1);
        } else {
            for (uint32_t n = random_below(r, 3); n_out < n; n_out++)
                out[n_out] = remat_builder_value(b, NULL, random_below(r, 5));
        }
        op = remat_builder_op(b, NULL, in, n_in, out, n_out);
        remat_builder_op_set(b, op, REMAT_OP_COST, random_below(r, 6));
        if (random_chance(r, 30))
            remat_builder_op_set(b, op, REMAT_OP_WORKSPACE, random_below(r, 7));
        if (random_chance(r, pins)) remat_builder_op_set(b, op, REMAT_OP_PINNED, 1);
        for (uint32_t k = 0; k < n_out; k++) values[n_values++] = out[k];
    }
    for (uint32_t i = 0; i < n_values; i++)
        if (random_chance(r, 20)) remat_builder_output(b, values[i]);
    random_inplace(b, r);
    remat_graph *graph = NULL;
    if (remat_builder_finish(b, &graph) != REMAT_OK) graph = NULL;
    remat_builder_free(b);
    return graph;
}

/* ---- the search ---- */

typedef struct bed {
    remat_ctx *ctx;
    const remat_graph *graph;
    const naive_graph *naive;
    rm_normal nm;
    int64_t budget, least; /* least: BRUTE_NO_SCHEDULE, or the cost of the cheapest schedule */
    bool exact;            /* the search has no excuse for missing it */
} bed;

/* The cost of the plan that was found. INT64_MAX: there is none, or it does not fit, which only one
 * that wants two instances may. */
static int64_t measured(bed *b, const rm_codes *found, int64_t cost, bool one_instance)
{
    rm_schedule steps = {0};
    if (found->n == 0) return INT64_MAX;
    CHECK(rm_normal_expand(b->ctx, &b->nm, found->items, found->n, &steps) == REMAT_OK, "%s",
          remat_ctx_error(b->ctx));
    naive_verdict v = naive_judge(b->naive, steps.items, steps.n, 0);
    CHECK(v.valid, "step %u is wrong", v.first_bad_step);
    CHECK(v.cost == cost, "%" PRId64 " instead of %" PRId64, v.cost, cost);
    const bool fits = v.peak_bytes <= b->budget;
    CHECK(fits || !one_instance, "peak %" PRId64 ", budget %" PRId64, v.peak_bytes, b->budget);
    n_two_instances += !fits;
    naive_release(&v);
    RM_VEC_FREE(&b->ctx->heap, steps);
    return fits ? cost : INT64_MAX;
}

static rm_proved search(bed *b, int64_t below, int64_t work, bool one_instance)
{
    rm_proved proved;
    rm_codes found = {0};
    CHECK(remat_ctx_set(b->ctx, "work", work) == REMAT_OK, "%s", remat_ctx_error(b->ctx));
    rm_limits_begin(b->ctx, INT64_MAX);
    const rm_proof_goal goal = {.budget_bytes = b->budget,
                                .below = below,
                                .strategy = "exact",
                                .one_instance = one_instance};
    CHECK(rm_prove_any_order(b->ctx, &b->nm, &goal, &found, &proved) == REMAT_OK, "%s",
          remat_ctx_error(b->ctx));
    rm_limits_end(b->ctx);
    CHECK((found.n > 0) == (proved.cost != INT64_MAX), "%zu steps, cost %" PRId64, found.n,
          proved.cost);
    proved.cost = measured(b, &found, proved.cost, b->exact || one_instance);
    RM_VEC_FREE(&b->ctx->heap, found);
    CHECK(proved.cost >= b->least, "found %" PRId64 ", optimum %" PRId64, proved.cost, b->least);
    return proved;
}

/* Without anything to start from, with a plan that is too dear, with the best one, and stopped
 * early. */
static void compare_searches(bed *b, random_source *r)
{
    const bool any = b->least != BRUTE_NO_SCHEDULE;
    const int64_t optimum = any ? b->least : RM_MAX_SUM;
    const rm_proved free = search(b, RM_MAX_SUM, 0, false);
    CHECK(free.bound <= optimum && (!b->exact || free.bound == optimum),
          "bound %" PRId64 ", optimum %" PRId64 " at %" PRId64, free.bound, optimum, b->budget);
    CHECK(!b->exact || free.cost == b->least, "found %" PRId64 ", optimum %" PRId64, free.cost,
          b->least);
    const rm_proved stopped = search(b, RM_MAX_SUM, 1 + random_below(r, 8), false);
    CHECK(stopped.bound <= optimum, "stopped: bound %" PRId64 ", optimum %" PRId64, stopped.bound,
          optimum);
    n_stopped += stopped.bound < free.bound;
    if (!b->exact && b->nm.n_ops + b->nm.n_stores <= 15) { /* without a second instance */
        const int64_t least = brute_least_cost(&b->nm, NULL, b->budget, NULL),
                      found = search(b, RM_MAX_SUM, 0, true).cost;
        CHECK(found == least, "one instance: found %" PRId64 ", optimum %" PRId64, found, least);
        n_cheaper_with_two += b->least < least;
    }
    if (!any) return;
    const int64_t below = b->least + random_below(r, 6);
    const rm_proved started = search(b, below, 0, false);
    CHECK(started.bound <= b->least && (!b->exact || started.bound == b->least),
          "below %" PRId64 ": bound %" PRId64 ", optimum %" PRId64, below, started.bound, b->least);
    CHECK(!b->exact || started.cost == (below > b->least ? b->least : INT64_MAX),
          "below %" PRId64 ": found %" PRId64 ", optimum %" PRId64, below, started.cost, b->least);
}

/* ---- walls ---- */

/* What the certificate proves is not above the optimum. Answers it; -1: it is refused. */
static int64_t proved_by(bed *b, const rm_bound_case *question, const rm_certificate *x,
                         int64_t least)
{
    remat_verdict v = REMAT_VERDICT_INIT;
    int64_t cost = 0;
    CHECK(rm_verify_bound(b->ctx, b->graph, question, x, &cost, &v) == REMAT_OK, "%s",
          remat_ctx_error(b->ctx));
    if (!v.valid) return -1;
    CHECK(cost <= least, "walls %s prove %" PRId64 ", optimum %" PRId64 " at %" PRId64,
          question->steps ? "in order" : "in any order", cost, least, b->budget);
    n_walls[!question->steps] += cost > b->graph->total_cost;
    n_walls_tight[!question->steps] += cost > b->graph->total_cost && cost == least;
    return cost;
}

/* From random prices, as high as changes lead. */
static void climb_walls(bed *b, random_source *r, const rm_bound_case *question, int64_t least)
{
    rm_price best[MOST_OPS], prices[MOST_OPS];
    rm_certificate x = random_walls(b->ctx, b->graph, r, !question->steps, best);
    int64_t proved = proved_by(b, question, &x, least);
    for (int i = 0; i < CHANGES && proved >= 0; i++) {
        rm_certificate changed = x;
        memcpy(prices, best, sizeof prices);
        changed.prices = prices;
        random_walls_change(&changed, r);
        const int64_t cost = proved_by(b, question, &changed, least);
        if (cost < proved) continue;
        proved = cost;
        memcpy(best, prices, sizeof best);
        x.n_prices = changed.n_prices;
    }
}

/* The solver's own prices, and random ones. steps: NULL: any order. */
static void try_walls(bed *b, random_source *r, const remat_step *steps, size_t n_steps,
                      const uint32_t *order, int64_t least)
{
    const rm_bound_case question = {steps, n_steps, b->budget, false, 0};
    const rm_gate_question about = {.budget_bytes = b->budget,
                                    .order = order,
                                    .enough = RM_MAX_SUM, /* it tries to prove too much */
                                    .most_work = WALLS_WORK};
    rm_certificate x;
    const rm_mark mark = rm_scratch_mark(b->ctx);
    CHECK(rm_gate_prices_find(b->ctx, &b->nm, &about, &x) == REMAT_OK, "%s",
          remat_ctx_error(b->ctx));
    if (x.scale) CHECK(proved_by(b, &question, &x, least) >= 0, "the solver's walls are refused");
    for (int i = 0; i < 4; i++) climb_walls(b, r, &question, least);
    rm_scratch_release(b->ctx, mark);
}

/* ---- the search in one order ---- */

/* The cheapest schedule with the order of first runs of these steps. */
static int64_t least_in_order(const bed *b, const remat_step *steps, size_t n_steps)
{
    uint32_t order[MOST_OPS], n = 0;
    bool ran[MOST_OPS] = {false};
    for (size_t i = 0; i < n_steps; i++) {
        const uint32_t op = steps[i].index;
        if (ran[op] || brute_is_free_view(b->naive, op)) continue;
        ran[op] = true;
        order[n++] = op;
    }
    return brute_least_schedule(b->naive, order, b->budget);
}

/* In a random order of first runs. */
static void compare_in_order(bed *b, random_source *r)
{
    random_schedule s = {0};
    random_schedule_make(&s, b->graph, r, false);
    const rm_schedule steps = {.items = s.steps, .n = s.n_steps, .room = s.n_steps};
    const int64_t least = least_in_order(b, s.steps, s.n_steps),
                  optimum = least == BRUTE_NO_SCHEDULE ? RM_MAX_SUM : least;
    rm_codes codes = {0};
    rm_proved proved;
    uint32_t *order;
    const rm_mark mark = rm_scratch_mark(b->ctx);
    CHECK(rm_codes_of_steps(b->ctx, &b->nm, &steps, &codes) == REMAT_OK &&
              rm_codes_first_runs(b->ctx, &b->nm, &codes, &order) == REMAT_OK,
          "%s", remat_ctx_error(b->ctx));
    CHECK(remat_ctx_set(b->ctx, "work", 0) == REMAT_OK, "%s", remat_ctx_error(b->ctx));
    rm_limits_begin(b->ctx, INT64_MAX);
    const rm_proof_goal goal = {
        .budget_bytes = b->budget, .order = order, .below = RM_MAX_SUM, .strategy = "exact"};
    CHECK(rm_prove(b->ctx, &b->nm, &goal, &codes, &proved) == REMAT_OK, "%s",
          remat_ctx_error(b->ctx));
    rm_limits_end(b->ctx);
    try_walls(b, r, s.steps, s.n_steps, order, least);
    rm_scratch_release(b->ctx, mark);
    const int64_t cost = measured(b, &codes, proved.cost, b->exact);
    CHECK(proved.bound <= optimum && (!b->exact || proved.bound == optimum),
          "in order: bound %" PRId64 ", optimum %" PRId64 " at %" PRId64, proved.bound, optimum,
          b->budget);
    CHECK(cost >= least && (!b->exact || cost == least),
          "in order: found %" PRId64 ", optimum %" PRId64, cost, least);
    n_other_order += least > b->least;
    RM_VEC_FREE(&b->ctx->heap, codes);
    random_schedule_free(&s);
}

/* ---- the strategy ---- */

static remat_plan *plan_of(bed *b, const char *strategy, int64_t work)
{
    remat_plan *plan = NULL;
    CHECK(remat_ctx_set(b->ctx, "work", work) == REMAT_OK, "%s", remat_ctx_error(b->ctx));
    CHECK(remat_plan_make(b->ctx, b->graph, strategy, b->budget, &plan) == REMAT_OK, "%s",
          remat_ctx_error(b->ctx));
    return plan;
}

/* all: it had work enough to prove all that there is to prove. */
static void check_bound(const bed *b, const remat_plan *plan, bool all)
{
    const remat_summary *s = remat_plan_summary(plan);
    const bool any_order = strcmp(s->bound_scope, "any-order") == 0;
    size_t n_steps;
    const remat_step *steps = remat_plan_steps(plan, &n_steps);
    CHECK(any_order || strcmp(s->bound_scope, "fixed-order") == 0, "scope %s", s->bound_scope);
    const int64_t least = any_order ? b->least : least_in_order(b, steps, n_steps);
    CHECK(s->bound_cost <= least, "%s: bound %" PRId64 ", optimum %" PRId64 " at %" PRId64,
          s->bound_scope, s->bound_cost, least, b->budget);
    if (s->outcome == REMAT_OPTIMAL)
        CHECK(s->cost == least, "optimal %s: %" PRId64 ", optimum %" PRId64 " at %" PRId64,
              s->bound_scope, s->cost, least, b->budget);
    n_any += s->outcome == REMAT_OPTIMAL && any_order;
    n_fixed += s->outcome == REMAT_OPTIMAL && !any_order;
    n_open += s->outcome == REMAT_FEASIBLE;
    CHECK(!all || !b->exact || (any_order && s->outcome == REMAT_OPTIMAL), "%s, outcome %d",
          s->bound_scope, (int)s->outcome);
}

static void check_verified(bed *b, const remat_plan *plan)
{
    remat_verdict v = REMAT_VERDICT_INIT;
    CHECK(remat_plan_verify(b->ctx, b->graph, plan, &v) == REMAT_OK && v.valid, "%s", v.reason);
}

static void compare_plans(bed *b, random_source *r)
{
    const bool all = random_chance(r, 75);
    const int64_t work = all ? WORK : 1 + random_below(r, WORK / 20);
    remat_plan *plan = plan_of(b, "exact", work), *other = plan_of(b, "auto", work);
    const remat_summary *s = remat_plan_summary(plan), *o = remat_plan_summary(other);
    const bool any = b->least != BRUTE_NO_SCHEDULE;
    CHECK(any || !s->within_budget, "a plan fits where none does");
    CHECK(s->outcome != REMAT_INFEASIBLE || !any, "not infeasible: optimum %" PRId64, b->least);
    CHECK(any || !all || !b->exact || s->outcome == REMAT_INFEASIBLE, "outcome %d, but none fits",
          (int)s->outcome);
    CHECK(!o->within_budget || (s->within_budget && s->cost <= o->cost),
          "exact %" PRId64 ", auto %" PRId64, s->cost, o->cost);
    CHECK(o->outcome != REMAT_INFEASIBLE || !any, "auto: not infeasible: %" PRId64, b->least);
    if (s->within_budget) check_bound(b, plan, all);
    if (o->within_budget) check_bound(b, other, false);
    check_verified(b, plan);
    check_verified(b, other);
    n_better_than_auto += s->within_budget && (!o->within_budget || s->cost < o->cost);
    n_beyond_need += s->outcome == REMAT_INFEASIBLE && s->need_bytes <= b->budget;
    remat_plan_free(plan);
    remat_plan_free(other);
}

/* ---- all together ---- */

static void compare(bed *b, random_source *r)
{
    b->least = brute_least_schedule(b->naive, NULL, b->budget);
    n_budgets++;
    n_infeasible += b->least == BRUTE_NO_SCHEDULE;
    n_above_first_runs += b->least != BRUTE_NO_SCHEDULE && b->least > b->graph->total_cost;
    compare_searches(b, r);
    compare_in_order(b, r);
    try_walls(b, r, NULL, 0, NULL, b->least);
    if (random_chance(r, 50)) compare_plans(b, r); /* these take longest */
}

static void at_budgets(bed *b, random_source *r)
{
    remat_info info = REMAT_INFO_INIT;
    CHECK(remat_graph_info(b->ctx, b->graph, &info) == REMAT_OK, "%s", remat_ctx_error(b->ctx));
    const int64_t low = info.need_bytes - (info.need_bytes > 0 && random_chance(r, 10)),
                  span = info.keep_all_peak_bytes - low;
    for (int i = 0; i < 4; i++) {
        const uint64_t most = span > 0 ? rm_random_next(r) % (uint64_t)span : 0;
        b->budget = low + (int64_t)(rm_random_next(r) % (most + 1)); /* rather low than high */
        compare(b, r);
    }
}

static bool one_graph(remat_ctx *ctx)
{
    random_source r = {case_seed};
    const uint32_t kind = random_below(&r, 100);
    remat_graph *graph = kind < 35   ? random_training_graph(ctx, &r)
                         : kind < 65 ? view_graph(ctx, &r)
                                     : random_graph(ctx, &r);
    CHECK(graph, "%s", remat_ctx_error(ctx));
    const rm_mark mark = rm_scratch_mark(ctx);
    naive_graph *naive = naive_from(graph);
    bed b = {.ctx = ctx, .graph = graph, .naive = naive};
    uint32_t n_made = 0;
    for (uint32_t v = 0; v < naive->n_values; v++)
        n_made += naive->values[v].producer != REMAT_NONE;
    CHECK(rm_normal_of(ctx, graph, &b.nm) == REMAT_OK, "%s", remat_ctx_error(ctx));
    const bool can = brute_schedules_can(naive) && n_made <= MOST_VALUES && b.nm.n_ops > 0 &&
                     naive->n_ops <= MOST_OPS;
    b.exact = brute_one_instance(&b.nm);
    n_in_place += can && graph->n_inplace > 0;
    if (can) at_budgets(&b, &r);
    naive_free(naive);
    rm_scratch_release(ctx, mark);
    remat_graph_free(graph);
    return can;
}

int main(int argc, char **argv)
{
    const int64_t n = cases_asked_for(argc, argv);
    run_graphs(n, one_graph);
    printf("%" PRId64 " graphs, %" PRId64 " with ops in place: %" PRId64 " budgets, %" PRId64
           " infeasible (%" PRId64 " of them above the need), %" PRId64
           " optima above the first runs, %" PRId64 " below that of a random order\n",
           n, n_in_place, n_budgets, n_infeasible, n_beyond_need, n_above_first_runs,
           n_other_order);
    printf("exact: %" PRId64 " optimal in any order, %" PRId64 " in their own, %" PRId64
           " open; better than auto %" PRId64 "; searches stopped early %" PRId64
           ", plans that want two instances and do not fit %" PRId64
           ", that fit and are cheaper %" PRId64 "\n",
           n_any, n_fixed, n_open, n_better_than_auto, n_stopped, n_two_instances,
           n_cheaper_with_two);
    for (int any = 0; any < 2; any++)
        printf("walls %s: %" PRId64 " certificates above the first runs, %" PRId64
               " of them the optimum\n",
               any ? "in any order" : "in an order", n_walls[any], n_walls_tight[any]);
    if (n >= 1000 && (!n_walls_tight[0] || !n_walls_tight[1]))
        return printf("no walls proved an optimum: this tests nothing\n"), 1;
    if (n >= 1000 && (!n_in_place || !n_beyond_need || !n_above_first_runs || !n_stopped ||
                      !n_two_instances || !n_other_order || !n_cheaper_with_two))
        return printf("a case that never occurs: this tests nothing\n"), 1;
    return 0;
}
