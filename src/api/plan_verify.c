/* plan_verify.c: judging a plan that somebody gives us: its graph, its steps, its numbers, its
 * bound.
 *
 * The verdict depends on the plan and on the graph, and on no option. */
#include "api/answer.h"
#include "graph/plan.h"
#include "verify/claims.h"
#include "verify/verify.h"

#include <inttypes.h>
#include <string.h>

/* If a plan does not say what transfers cost, they are free: docs/format.md. */
static int64_t bandwidth_of(const remat_plan *plan)
{
    return plan->summary.bandwidth == REMAT_ABSENT ? 0 : plan->summary.bandwidth;
}

/* A plan is compared with plans that move values if it does so itself, or says what that costs. */
static bool may_move(const remat_plan *plan)
{
    return bandwidth_of(plan) > 0 || rm_has_transfers(plan->steps, plan->n_steps);
}

/* Are costs of the plan and of the graph by the same model? A plan need not say its model. */
static bool same_cost_model(const remat_plan *plan, const remat_graph *g)
{
    const char *model = plan->summary.cost_model;
    return !*model || strcmp(model, g->cost_model) == 0;
}

/* A plan may say that a budget is infeasible which is not below the need. */
static remat_status raise_need(remat_ctx *ctx, const remat_graph *g, const remat_plan *plan,
                               rm_need *need)
{
    const remat_summary *s = &plan->summary;
    if (s->outcome != REMAT_INFEASIBLE || s->budget_bytes < need->bytes || may_move(plan) ||
        strcmp(s->bound_method, "search") == 0)
        return REMAT_OK;
    const rm_need from = {s->budget_bytes, REMAT_NONE};
    rm_need proved;
    TRY(rm_least_peak_find(ctx, g, from, INT64_MAX, RM_LEAST_PEAK_WORK, &proved));
    if (proved.bytes > from.bytes) *need = proved;
    return REMAT_OK;
}

static remat_status check_plan(remat_ctx *ctx, const remat_graph *g, const remat_plan *plan,
                               remat_verdict *out)
{
    if (!rm_plan_is_for(plan, REMAT_KIND_GRAPH, g->digest, out)) return REMAT_OK;
    if (plan->graph_ops != REMAT_NONE && plan->graph_ops != g->n_original_ops) {
        rm_verdict_refuse(out, "n_ops", plan->graph_ops, g->n_original_ops);
        return REMAT_OK;
    }
    if (plan->graph_values != REMAT_NONE && plan->graph_values != g->n_original_values) {
        rm_verdict_refuse(out, "n_values", plan->graph_values, g->n_original_values);
        return REMAT_OK;
    }
    TRY(rm_verify(ctx, g, plan->steps, plan->n_steps, bandwidth_of(plan), out));
    if (!out->valid) return REMAT_OK;
    rm_liveness keep_all;
    TRY(rm_liveness_keep_all(ctx, g, &keep_all));
    rm_need need;
    TRY(rm_need_find(ctx, g, may_move(plan), &need));
    TRY(raise_need(ctx, g, plan, &need));
    const bool same_cost = same_cost_model(plan, g);
    const rm_plan_facts facts = {keep_all.peak_bytes, keep_all.cost, need.bytes, same_cost,
                                 same_cost ? g->cost_unit : ""};
    rm_plan_check_claims(plan, &facts, out);
    return REMAT_OK;
}

/* A bound that a plan claims. */
typedef struct claim {
    const char *name; /* for messages */
    int64_t cost;
    const char *method;
    const rm_certificate *certificate;
    bool any_order;
} claim;

/* A search leaves nothing behind that could be checked. The warning says so, and what is proved. */
static void say_unchecked(remat_ctx *ctx, const claim *x, int64_t proved)
{
    if (x->cost > proved)
        rm_warn(ctx,
                "the plan's %s %" PRId64 " comes from a search and is not checked; %" PRId64
                " is proved",
                x->name, x->cost, proved);
}

static bool is_searched(const claim *x) { return strcmp(x->method, "search") == 0; }

static void check_bare_bound(remat_ctx *ctx, const remat_graph *g, const claim *x, remat_verdict *v)
{
    if (x->cost == REMAT_ABSENT) rm_blame(v, REMAT_NONE, "the plan has no %s", x->name);
    else if (is_searched(x)) say_unchecked(ctx, x, g->total_cost);
    else if (x->cost > g->total_cost)
        rm_blame(v, REMAT_NONE, "the plan's %s has no certificate", x->name);
}

/* proved: what the verifier says that the certificate proves. */
static void compare_bound(remat_ctx *ctx, const claim *x, int64_t proved, bool must,
                          remat_verdict *v)
{
    const int64_t claimed = x->certificate->cost;
    if (!is_searched(x) || claimed == 0) {
        if (x->cost != proved) rm_verdict_refuse(v, x->name, x->cost, proved);
        return;
    }
    if (claimed != proved) rm_verdict_refuse(v, "the certificate proves", claimed, proved);
    else if (x->cost < proved) rm_verdict_refuse(v, x->name, x->cost, proved);
    else if (must) say_unchecked(ctx, x, proved);
}

/* What the certificate proves must be what the plan says. `must`: a bound that nothing proves is a
 * fault too, unless a search found it. */
static remat_status check_bound(remat_ctx *ctx, const remat_graph *g, const remat_plan *plan,
                                const claim *x, bool must, remat_verdict *v)
{
    remat_verdict word;
    int64_t proved = 0;
    if (!x->certificate->scale) {
        if (must) check_bare_bound(ctx, g, x, v);
        return REMAT_OK;
    }
    if (plan->summary.budget_bytes < 0) {
        rm_blame(v, REMAT_NONE, "the plan has a certificate, but no budget");
        return REMAT_OK;
    }
    const rm_bound_case question = {x->any_order ? NULL : plan->steps, plan->n_steps,
                                    plan->summary.budget_bytes, may_move(plan), bandwidth_of(plan)};
    TRY(rm_verify_bound(ctx, g, &question, x->certificate, &proved, &word));
    if (!word.valid) rm_blame(v, REMAT_NONE, "%s", word.reason);
    else compare_bound(ctx, x, proved, must, v);
    return REMAT_OK;
}

/* The bound for every order, and that for the plan's own. Where the former says as much, it is the
 * plan's bound, and has the certificate. */
static remat_status check_bounds(remat_ctx *ctx, const remat_graph *g, const remat_plan *plan,
                                 bool must, remat_verdict *v)
{
    const remat_summary *s = &plan->summary;
    const claim any_order = {"any_order_bound", s->any_order_cost, s->any_order_method,
                             &plan->certificates.any_order, true};
    const claim own_order = {"bound", s->bound_cost, s->bound_method, &plan->certificates.own_order,
                             false};
    const bool is_same = strcmp(s->bound_scope, "any-order") == 0 &&
                         s->any_order_cost != REMAT_ABSENT && s->any_order_cost == s->bound_cost;
    if (!same_cost_model(plan, g)) {
        if (must)
            rm_blame(v, REMAT_NONE, "the plan's bound is for costs by %.40s, the graph has %.40s",
                     s->cost_model, g->cost_model);
        return REMAT_OK;
    }
    if (s->outcome == REMAT_INFEASIBLE && is_searched(&own_order)) {
        if (must) rm_warn(ctx, "that nothing fits comes from a search and is not checked");
        return REMAT_OK;
    }
    if (s->any_order_cost != REMAT_ABSENT) TRY(check_bound(ctx, g, plan, &any_order, must, v));
    if (!v->valid || (is_same && !own_order.certificate->scale)) return REMAT_OK;
    return check_bound(ctx, g, plan, &own_order, must, v);
}

static remat_status verify_plan(remat_ctx *ctx, const remat_graph *graph, const remat_plan *plan,
                                bool must, remat_verdict *out)
{
    TRY(rm_answer_check(ctx, out->size, "remat_verdict"));
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_verdict verdict;
    remat_status status = check_plan(ctx, graph, plan, &verdict);
    if (status == REMAT_OK && verdict.valid)
        status = check_bounds(ctx, graph, plan, must, &verdict);
    if (status == REMAT_OK && verdict.valid) status = rm_verify_offsets(ctx, graph, plan, &verdict);
    if (status == REMAT_OK) RM_ANSWER(out, &verdict);
    rm_scratch_release(ctx, mark);
    return status;
}

remat_status remat_plan_verify(remat_ctx *ctx, const remat_graph *graph, const remat_plan *plan,
                               remat_verdict *out)
{
    return verify_plan(ctx, graph, plan, false, out);
}

remat_status remat_plan_verify_bound(remat_ctx *ctx, const remat_graph *graph,
                                     const remat_plan *plan, remat_verdict *out)
{
    return verify_plan(ctx, graph, plan, true, out);
}
