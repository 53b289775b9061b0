/* plan_make.c: runs a strategy, judges what it found, and turns it into a plan.
 *
 * No planner can skip the verifier. Whatever it returns is verified here. A difference between the
 * verifier's numbers and the planner's own is REMAT_E_BUG.
 *
 * One bound every plan gets for nothing: each op runs at least once, in any order. If the plan
 * costs more than that, it gets two from gaps or walls (docs/bound.md), with their certificates:
 * for every order, and for its own. Where the least peak is asked for, or nothing was found, it is
 * told how low a peak can be (graph/least_peak.c). */
#include "api/plan_make.h"

#include "api/plan_bound.h"
#include "graph/plan.h"
#include "verify/claims.h"
#include "fusion/traffic.h"
#include "plan/cut/saved_steps.h"
#include "verify/verify.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* The end of a call is what comes after the strategy: bound and statistics. */
enum {
    WORK_AN_EDGE = 1000,  /* operations, at least, where no limit is set */
    END_NS_AN_EDGE = 600, /* what the end takes */
    LEAST_WALLS_WORK = RM_SECOND / 500,
    LAST_NS = 50000000, /* for the end, whatever the limits; most graphs take a few milliseconds */
    LARGE = 100000      /* ops; the end of larger graphs takes longer than that */
};

/* Bytes that the forward part leaves for the backward part: made before it begins, read after. */
static remat_status saved_bytes(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                                size_t n_steps, int64_t *out)
{
    rm_trace x;
    uint8_t *counted;
    bool found;
    *out = REMAT_ABSENT;
    if (rm_boundary_op(g, &found) == REMAT_NONE) return REMAT_OK;
    TRY(rm_trace_of(ctx, g, steps, n_steps, &x));
    TRY(RM_SCRATCH(ctx, counted, x.n_made));
    *out = 0;
    for (uint32_t i = x.read_begin[x.backward]; i < x.read_begin[x.n_steps]; i++) {
        const uint32_t instance = x.reads[i].instance;
        if (instance >= x.made_begin[x.backward] || counted[instance]) continue;
        /* What remat.boundary makes comes from outside, not from the forward part. */
        const remat_step maker = steps[x.maker[instance]];
        if (maker.kind == REMAT_RUN && rm_is_boundary(g, maker.index)) continue;
        counted[instance] = 1;
        *out += g->storage[x.root[instance]];
    }
    return REMAT_OK;
}

/* The capacity of the cut between the passes that a schedule amounts to. REMAT_ABSENT: there are no
 * two passes. */
static remat_status cut_capacity(remat_ctx *ctx, const remat_graph *g, const rm_schedule *steps,
                                 int64_t *out)
{
    rm_recompute_rules rules;
    remat_status status = rm_recompute_rules_find(ctx, g, &rules);
    if (status == REMAT_OK) status = rm_crossing_price(ctx, g, &rules, steps->items, steps->n, out);
    if (status != REMAT_E_APPLIES) return status;
    *out = REMAT_ABSENT;
    return REMAT_OK;
}

/* Is the graph so large that bound and statistics take long, and is there no time left for them? */
static bool is_hurried(const remat_ctx *ctx, const remat_graph *g, const remat_summary *s)
{
    return g->n_ops > LARGE && (s->stopped == REMAT_SIGNAL || rm_is_late(ctx));
}

static remat_status add_statistics(remat_ctx *ctx, const remat_graph *g, const rm_schedule *steps,
                                   remat_summary *s)
{
    s->saved_bytes = REMAT_ABSENT;
    s->traffic_bytes = REMAT_ABSENT;
    s->cut_capacity = REMAT_ABSENT;
    if (is_hurried(ctx, g, s)) return REMAT_OK;
    TRY(saved_bytes(ctx, g, steps->items, steps->n, &s->saved_bytes));
    TRY(rm_traffic_bytes(ctx, g, steps->items, steps->n, &s->traffic_bytes));
    return cut_capacity(ctx, g, steps, &s->cut_capacity);
}

static remat_outcome judge(const remat_summary *s, const rm_incumbent *best)
{
    const bool is_too_small =
        s->budget_bytes < s->need_bytes || s->budget_bytes < s->least_peak_bound;
    if (!s->within_budget)
        return is_too_small || best->infeasible ? REMAT_INFEASIBLE : REMAT_UNKNOWN;
    return s->cost == s->bound_cost ? REMAT_OPTIMAL : REMAT_FEASIBLE;
}

static remat_status check_proof(remat_ctx *ctx, const rm_proof *proof, const remat_summary *s)
{
    if (proof->feasible && proof->cost <= s->cost) return REMAT_OK;
    return rm_fail(ctx, REMAT_E_BUG,
                   "the bound of strategy '%s' is %" PRId64 ", above the plan's cost %" PRId64,
                   s->strategy, proof->feasible ? proof->cost : RM_MAX_SUM, s->cost);
}

/* A quarter of what planning took, and two milliseconds even if that was nothing. */
static int64_t walls_work(const remat_ctx *ctx, const remat_summary *s)
{
    const int64_t quarter = s->work * (RM_WORK_UNIT / 4);
    return quarter < LEAST_WALLS_WORK && ctx->options.work == 0 ? LEAST_WALLS_WORK : quarter;
}

/* A better bound, for the order in which this plan runs its ops for the first time. proved: what
 * the planner's search says of that order. */
static remat_status bound_own_order(remat_ctx *ctx, const remat_graph *g,
                                    const rm_bound_case *question, int64_t proved, remat_summary *s,
                                    rm_certificate *certificate)
{
    rm_proof proof;
    const rm_proof_hints hints = {s->cost, NULL, walls_work(ctx, s)};
    TRY(rm_certify_bound(ctx, g, question, &hints, &proof));
    TRY(check_proof(ctx, &proof, s));
    if (proof.cost > s->bound_cost) {
        s->bound_cost = proof.cost;
        s->bound_scope = "fixed-order";
        s->bound_method = proof.method;
        *certificate = proof.certificate;
    }
    if (proved > s->bound_cost) {
        certificate->cost = s->bound_cost;
        s->bound_cost = proved;
        s->bound_scope = "fixed-order";
        s->bound_method = "search";
    }
    return REMAT_OK;
}

/* A bound for all orders. Where it says as much as that for the plan's own order, it replaces it.
 * If there is not enough memory for it, the plan does without. */
static remat_status bound_any_order(remat_ctx *ctx, const remat_graph *g, rm_bound_case question,
                                    remat_summary *s, rm_certificates *certificates)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    rm_proof proof;
    const rm_proof_hints hints = {s->cost, &certificates->own_order, walls_work(ctx, s)};
    question.steps = NULL;
    const remat_status status = rm_certify_bound(ctx, g, &question, &hints, &proof);
    if (rm_is_too_much_memory(ctx, status)) {
        rm_scratch_release(ctx, mark);
        return REMAT_OK;
    }
    TRY(status);
    TRY(check_proof(ctx, &proof, s));
    if (proof.cost <= s->any_order_cost) return REMAT_OK;
    s->any_order_cost = proof.cost;
    s->any_order_method = proof.method;
    certificates->any_order = proof.certificate;
    if (proof.cost < s->bound_cost) return REMAT_OK;
    s->bound_cost = proof.cost;
    s->bound_scope = "any-order";
    s->bound_method = proof.method;
    certificates->own_order = (rm_certificate){.scale = 0};
    return REMAT_OK;
}

/* What the planner itself has proved, if that says more. */
static void take_claim(const rm_incumbent *best, remat_summary *s, rm_certificates *certificates)
{
    if (best->infeasible && !s->within_budget && s->budget_bytes >= s->need_bytes &&
        s->budget_bytes >= s->least_peak_bound)
        s->bound_method = "search"; /* for the verifier: nothing else proves it */
    if (!best->bound.scope || !s->within_budget || best->bound.cost > s->cost) return;
    const bool is_wider =
        strcmp(best->bound.scope, "any-order") == 0 && strcmp(s->bound_scope, "any-order") != 0;
    if (best->bound.cost < s->bound_cost + (is_wider ? 0 : 1)) return;
    s->bound_cost = best->bound.cost;
    s->bound_scope = best->bound.scope;
    s->bound_method = best->bound.method;
    certificates->own_order = (rm_certificate){.scale = 0};
    if (strcmp(s->bound_scope, "any-order") != 0) return;
    certificates->any_order.cost = s->any_order_cost; /* what it proves */
    s->any_order_cost = s->bound_cost;
    s->any_order_method = s->bound_method;
}

/* Better bounds than that every op runs once. may_move: may plans offload and fetch? */
static remat_status strengthen(remat_ctx *ctx, const remat_graph *g, const rm_incumbent *best,
                               bool may_move, remat_summary *s, rm_certificates *certificates)
{
    const rm_schedule *steps = &best->steps;
    const rm_bound_case question = {steps->items, steps->n, s->budget_bytes, may_move,
                                    s->bandwidth};
    if (!s->within_budget || s->budget_bytes < 0 || s->cost == s->bound_cost) return REMAT_OK;
    /* Where transfers are free, and this plan does without, no bound says more than first runs. */
    const bool is_vain = may_move && s->bandwidth == 0 && !rm_has_transfers(steps->items, steps->n);
    if (is_vain || is_hurried(ctx, g, s)) return REMAT_OK;
    TRY(bound_own_order(ctx, g, &question, best->proved, s, &certificates->own_order));
    return bound_any_order(ctx, g, question, s, certificates);
}

/* If no plan at all is cheaper, no limit kept the planner from a better one. But where the lowest
 * peak was asked for, the plan's peak is its budget, and a lower one would be better. */
static remat_stopped why_stopped(const rm_problem *p, const remat_summary *s)
{
    const bool is_best =
        s->within_budget && s->cost == s->any_order_cost && p->budget_bytes != REMAT_BUDGET_MIN;
    return is_best && s->stopped != REMAT_SIGNAL ? REMAT_DONE : s->stopped;
}

/* What is known before statistics, verifier and bound. */
static remat_status summarize(const rm_problem *p, const rm_planner *planner,
                              rm_transfers transfers, const rm_incumbent *best, remat_summary *out)
{
    remat_ctx *ctx = p->ctx;
    const remat_graph *g = p->graph;
    rm_liveness keep_all;
    rm_need need;
    TRY(rm_liveness_keep_all(ctx, g, &keep_all));
    TRY(rm_need_find(ctx, g, transfers.allowed, &need));
    const bool least = p->budget_bytes == REMAT_BUDGET_MIN;
    *out = (remat_summary){.strategy = planner->entry.name,
                           .graph = rm_text(g, g->name),
                           .digest = g->digest,
                           .cost_model = g->cost_model,
                           .cost_unit = g->cost_unit,
                           .bound_scope = "any-order",
                           .bound_method = "first-runs",
                           .any_order_method = "first-runs",
                           .flags = g->flags,
                           .align = g->align,
                           .peak_bytes = best->peak_bytes,
                           .cost = best->cost,
                           .keep_all_peak_bytes = keep_all.peak_bytes,
                           .keep_all_cost = keep_all.cost,
                           .resident_bytes = g->resident_bytes,
                           .need_bytes = need.bytes,
                           .bound_cost = g->total_cost,
                           .any_order_cost = g->total_cost,
                           .least_peak_bound = REMAT_ABSENT,
                           .seed = ctx->options.seed,
                           .work = rm_work_units(ctx),
                           .need_op = need.op == REMAT_NONE ? REMAT_NONE : g->op_original[need.op],
                           .ops = g->n_ops,
                           .stopped = best->stopped,
                           .kind = REMAT_KIND_GRAPH,
                           .bandwidth = transfers.bandwidth,
                           .budget_bytes = least ? best->peak_bytes : p->budget_bytes,
                           .within_budget = rm_fits(p, best->peak_bytes)};
    return REMAT_OK;
}

/* Looking back may take about a quarter as long as planning did, or a few milliseconds. */
static int64_t least_peak_work(const remat_summary *s)
{
    if (s->work < RM_LEAST_PEAK_WORK / 600) return RM_LEAST_PEAK_WORK / 100;
    return s->work < RM_LEAST_PEAK_WORK / 6 ? 6 * s->work : RM_LEAST_PEAK_WORK;
}

/* Where the least peak is asked for, how low could it be? Where nothing was found, can anything
 * fit? */
static remat_status bound_least_peak(const rm_problem *p, bool may_move, remat_summary *s)
{
    const bool least = p->budget_bytes == REMAT_BUDGET_MIN;
    if (may_move || (s->within_budget && !least)) return REMAT_OK;
    s->least_peak_bound = s->need_bytes;
    if (s->budget_bytes < s->need_bytes || s->stopped == REMAT_SIGNAL) return REMAT_OK;
    const rm_need from = {least ? s->need_bytes : s->budget_bytes, REMAT_NONE};
    rm_need proved;
    const remat_status status =
        rm_least_peak_find(p->ctx, p->graph, from, s->peak_bytes, least_peak_work(s), &proved);
    if (rm_is_too_much_memory(p->ctx, status)) return REMAT_OK; /* the need must do */
    TRY(status);
    if (proved.bytes > from.bytes) s->least_peak_bound = proved.bytes;
    return REMAT_OK;
}

/* Where transfers are not asked for, a plan may have some from its start. Then what the planner
 * proved, of plans without any, is not of this plan's kind. If there are none, there is nothing to
 * price. */
static void settle_transfers(rm_incumbent *best, rm_transfers *transfers)
{
    if (transfers->allowed) return;
    transfers->allowed = rm_has_transfers(best->steps.items, best->steps.n);
    if (!transfers->allowed) {
        transfers->bandwidth = 0;
        return;
    }
    best->infeasible = false;
    best->bound.scope = NULL;
    best->proved = 0;
}

remat_status rm_plan_finish(const rm_problem *p, const rm_planner *planner, rm_transfers transfers,
                            rm_incumbent *best, remat_plan **out)
{
    remat_ctx *ctx = p->ctx;
    const remat_graph *g = p->graph;
    remat_summary s;
    remat_verdict verdict;
    rm_certificates certificates = {.own_order = {.scale = 0}};
    assert(best->any);
    settle_transfers(best, &transfers);
    TRY(summarize(p, planner, transfers, best, &s));
    TRY(add_statistics(ctx, g, &best->steps, &s));
    TRY(bound_least_peak(p, transfers.allowed, &s));
    rm_steps_to_original(g, best->steps.items, best->steps.n);
    TRY(rm_verify(ctx, g, best->steps.items, best->steps.n, transfers.bandwidth, &verdict));
    TRY(rm_plan_confirm(ctx, &verdict, &s));
    TRY(strengthen(ctx, g, best, transfers.allowed, &s, &certificates));
    take_claim(best, &s, &certificates);
    s.outcome = judge(&s, best);
    s.stopped = why_stopped(p, &s);
    TRY(rm_plan_new(ctx, &s, best->steps.items, best->steps.n, &certificates, out));
    (*out)->graph_ops = g->n_original_ops;
    (*out)->graph_values = g->n_original_values;
    return REMAT_OK;
}

/* Offers a plan that the caller has, before the strategy runs. */
static remat_status offer_start(const rm_problem *p, const remat_plan *start, rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    remat_verdict verdict;
    size_t n;
    const remat_step *steps = remat_plan_steps(start, &n);
    if (remat_plan_summary(start)->kind != REMAT_KIND_GRAPH)
        return rm_fail(ctx, REMAT_E_PLAN, "the start is a chain's plan");
    TRY(rm_verify(ctx, p->graph, steps, n, ctx->options.bandwidth, &verdict));
    if (!verdict.valid)
        return rm_fail(ctx, REMAT_E_PLAN, "the start is no plan of this graph: %s", verdict.reason);
    /* Among plans that run nothing again it is none. */
    if (ctx->options.order_only && n > p->graph->n_ops) return REMAT_OK;
    remat_step *own;
    TRY(rm_steps_to_graph(ctx, p->graph, steps, n, &own));
    return rm_offer(p, best, &(rm_schedule){.items = own, .n = n, .room = n});
}

/* Large graphs get enough work to look at each op some times. */
static int64_t default_work(const rm_planner *planner, const remat_graph *g, int64_t budget_bytes)
{
    const bool least = budget_bytes == REMAT_BUDGET_MIN && planner->least_work;
    const int64_t work = least ? planner->least_work : planner->default_work;
    const int64_t by_size = WORK_AN_EDGE * ((int64_t)g->n_ops + g->n_in);
    return work > by_size ? work : by_size;
}

/* How long the end takes is known from the size of the graph. It gets a quarter of the time at
 * most. */
static int64_t time_for_end(const rm_problem *p)
{
    const int64_t left_ns = rm_time_left(p->ctx),
                  ns = END_NS_AN_EDGE * ((int64_t)p->graph->n_ops + p->graph->n_in);
    return ns < left_ns / 4 ? ns : left_ns / 4;
}

/* Runs the strategy, and keep-all where there would be no plan. */
static remat_status run(const rm_problem *p, const rm_planner *planner, rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    rm_need need;
    rm_limit_push_time(ctx, time_for_end(p));
    const remat_status status = planner->run(p, best);
    best->stopped = rm_stopped(ctx);
    rm_limit_pop(ctx);
    if (status == REMAT_E_APPLIES && p->budget_bytes >= 0) {
        /* A proof that nothing fits says more than that the strategy does not apply. */
        TRY(rm_need_find(ctx, p->graph, ctx->options.offload, &need));
        if (p->budget_bytes >= need.bytes) return status;
    } else if (status != REMAT_OK) {
        return status;
    }
    if (!best->any) TRY(rm_keep_all.run(p, best));
    if (!best->any) return rm_fail(ctx, REMAT_E_INPUT, "memory or cost of keep-all passes 2^62");
    return REMAT_OK;
}

/* Improves on the plan that is there, if there is one. */
static remat_status run_from(const rm_problem *p, const rm_planner *planner, rm_incumbent *best)
{
    rm_incumbent found = {.any = false};
    if (!best->any || planner->continues) return run(p, planner, best);
    remat_status status = run(p, planner, &found);
    best->stopped = found.stopped;
    if (status == REMAT_OK && rm_is_better(p, found.peak_bytes, found.cost, best)) {
        RM_VEC_FREE(&p->ctx->heap, best->steps);
        *best = found;
        return REMAT_OK;
    }
    RM_VEC_FREE(&p->ctx->heap, found.steps);
    return status;
}

/* How many parts of the planner each have the whole limit of work? */
static uint32_t parts_of(const remat_ctx *ctx, const rm_planner *planner)
{
    if (planner->within && ctx->options.work) return 1 + parts_of(ctx, planner->within);
    return ctx->options.offload && planner->parts_with_offload ? planner->parts_with_offload : 1;
}

static remat_status make(remat_ctx *ctx, const remat_graph *graph, const remat_plan *start,
                         const char *strategy, int64_t budget_bytes, remat_plan **out)
{
    if (budget_bytes < REMAT_BUDGET_MIN)
        return rm_fail(ctx, REMAT_E_USAGE, "budget %" PRId64 " is negative", budget_bytes);
    if (budget_bytes >= RM_MAX_SUM)
        return rm_fail(ctx, REMAT_E_USAGE, "budget %" PRId64 " is 2^62 bytes or more",
                       budget_bytes);
    const rm_planner *planner = rm_planner_find(ctx, strategy);
    if (!planner) return REMAT_E_USAGE;
    TRY(rm_planner_obeys(ctx, planner));
    const rm_mark mark = rm_scratch_mark(ctx);
    const rm_problem p = {ctx, graph, budget_bytes};
    rm_incumbent best = {.any = false};
    rm_limits_begin(ctx, default_work(planner, graph, budget_bytes));
    rm_limits_widen(ctx, parts_of(ctx, planner));
    ctx->bound_cost = graph->total_cost; /* until something better is known */
    remat_status status = start ? offer_start(&p, start, &best) : REMAT_OK;
    if (status == REMAT_OK) status = run_from(&p, planner, &best);
    rm_limits_extend(ctx, LAST_NS);
    const rm_transfers transfers = {ctx->options.offload, ctx->options.bandwidth};
    if (status == REMAT_OK) status = rm_plan_finish(&p, planner, transfers, &best, out);
    RM_VEC_FREE(&ctx->heap, best.steps);
    rm_scratch_release(ctx, mark);
    rm_limits_end(ctx);
    return status;
}

remat_status remat_plan_make(remat_ctx *ctx, const remat_graph *graph, const char *strategy,
                             int64_t budget_bytes, remat_plan **out)
{
    return make(ctx, graph, NULL, strategy, budget_bytes, out);
}

remat_status remat_plan_improve(remat_ctx *ctx, const remat_graph *graph, const remat_plan *start,
                                const char *strategy, int64_t budget_bytes, remat_plan **out)
{
    return make(ctx, graph, start, strategy, budget_bytes, out);
}
