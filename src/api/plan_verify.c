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

/* Plans that fetch are compared with plans that may. */
static bool fetches(const remat_plan *plan)
{
    return rm_has_kind(plan->steps, plan->n_steps, REMAT_FETCH);
}

/* Are costs of the plan and of the graph by the same model? A plan need not say its model. */
static bool same_cost_model(const remat_plan *plan, const remat_graph *g)
{
    const char *model = plan->summary.cost_model;
    return !*model || strcmp(model, g->cost_model) == 0;
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
    TRY(rm_need_find(ctx, g, fetches(plan), &need));
    const bool same_cost = same_cost_model(plan, g);
    const rm_plan_facts facts = {keep_all.peak_bytes, keep_all.cost, need.bytes, same_cost,
                                 same_cost ? g->cost_unit : ""};
    rm_plan_check_claims(plan, &facts, out);
    return REMAT_OK;
}

/* A search leaves nothing behind that could be checked. The warning says so, and what is proved. */
static void say_unchecked(remat_ctx *ctx, const remat_summary *s, int64_t proved)
{
    if (s->outcome == REMAT_INFEASIBLE)
        rm_warn(ctx, "that nothing fits comes from a search and is not checked");
    else if (s->bound_cost > proved)
        rm_warn(ctx,
                "the plan's bound %" PRId64 " comes from a search and is not checked; %" PRId64
                " is proved",
                s->bound_cost, proved);
}

static bool is_searched(const remat_summary *s) { return strcmp(s->bound_method, "search") == 0; }

static void check_bare_bound(remat_ctx *ctx, const remat_graph *g, const remat_summary *s,
                             remat_verdict *v)
{
    if (s->bound_cost == REMAT_ABSENT) rm_blame(v, REMAT_NONE, "the plan has no bound");
    else if (is_searched(s)) say_unchecked(ctx, s, g->total_cost);
    else if (s->bound_cost > g->total_cost)
        rm_blame(v, REMAT_NONE, "the plan's bound has no certificate");
}

/* proved: what the verifier says that the certificate proves. */
static void compare_bound(remat_ctx *ctx, const remat_plan *plan, int64_t proved, bool must,
                          remat_verdict *v)
{
    const remat_summary *s = &plan->summary;
    const int64_t claimed = plan->certificate.cost;
    if (!is_searched(s) || claimed == 0) {
        if (s->bound_cost != proved) rm_verdict_refuse(v, "bound", s->bound_cost, proved);
        return;
    }
    if (claimed != proved) rm_verdict_refuse(v, "the certificate proves", claimed, proved);
    else if (s->bound_cost < proved) rm_verdict_refuse(v, "bound", s->bound_cost, proved);
    else if (must) say_unchecked(ctx, s, proved);
}

/* What the certificate proves must be what the plan says. `must`: a bound that nothing proves is a
 * fault too, unless a search found it. */
static remat_status check_bound(remat_ctx *ctx, const remat_graph *g, const remat_plan *plan,
                                bool must, remat_verdict *v)
{
    const remat_summary *s = &plan->summary;
    remat_verdict word;
    int64_t proved = 0;
    if (!same_cost_model(plan, g)) {
        if (must)
            rm_blame(v, REMAT_NONE, "the plan's bound is for costs by %.40s, the graph has %.40s",
                     s->cost_model, g->cost_model);
        return REMAT_OK;
    }
    if (!plan->certificate.scale) {
        if (must) check_bare_bound(ctx, g, s, v);
        return REMAT_OK;
    }
    if (s->budget_bytes < 0) {
        rm_blame(v, REMAT_NONE, "the plan has a certificate, but no budget");
        return REMAT_OK;
    }
    TRY(rm_verify_bound(ctx, g, plan->steps, plan->n_steps, s->budget_bytes, fetches(plan),
                        bandwidth_of(plan), &plan->certificate, &proved, &word));
    if (!word.valid) rm_blame(v, REMAT_NONE, "%s", word.reason);
    else compare_bound(ctx, plan, proved, must, v);
    return REMAT_OK;
}

static remat_status verify_plan(remat_ctx *ctx, const remat_graph *graph, const remat_plan *plan,
                                bool must, remat_verdict *out)
{
    TRY(rm_answer_check(ctx, out->size, "remat_verdict"));
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_verdict verdict;
    remat_status status = check_plan(ctx, graph, plan, &verdict);
    if (status == REMAT_OK && verdict.valid) status = check_bound(ctx, graph, plan, must, &verdict);
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
