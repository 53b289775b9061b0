/* plan_verify.c: judging a plan that somebody gives us: its graph, its steps, its numbers, its
 * bound. The verdict depends on the plan and on the graph, and on no option. */
#include "api/answer.h"
#include "graph/plan.h"
#include "verify/claims.h"
#include "verify/verify.h"

#include <inttypes.h>
#include <string.h>

/* A plan that does not say what transfers cost has them for nothing: docs/format.md. */
static int64_t bandwidth_of(const remat_plan *plan)
{
    return plan->summary.bandwidth == REMAT_ABSENT ? 0 : plan->summary.bandwidth;
}

/* Plans that fetch are compared with plans that may. */
static bool fetches(const remat_plan *plan)
{
    return rm_has_kind(plan->steps, plan->n_steps, REMAT_FETCH);
}

static remat_status check_plan(remat_ctx *ctx, const remat_graph *g, const remat_plan *plan,
                               remat_verdict *out)
{
    const remat_summary *s = &plan->summary;
    if (!rm_plan_is_for(plan, REMAT_KIND_GRAPH, g->digest, out)) return REMAT_OK;
    if (plan->graph_ops != REMAT_NONE && plan->graph_ops != g->n_original_ops)
        return rm_verdict_refuse(out, "n_ops", plan->graph_ops, g->n_original_ops), REMAT_OK;
    if (plan->graph_values != REMAT_NONE && plan->graph_values != g->n_original_values)
        return rm_verdict_refuse(out, "n_values", plan->graph_values, g->n_original_values),
               REMAT_OK;
    TRY(rm_verify(ctx, g, plan->steps, plan->n_steps, bandwidth_of(plan), out));
    if (!out->valid) return REMAT_OK;
    rm_liveness keep_all;
    TRY(rm_liveness_keep_all(ctx, g, &keep_all));
    rm_need need;
    TRY(rm_need_find(ctx, g, fetches(plan), &need));
    const bool same_cost =
        strcmp(s->cost_model, "") == 0 || strcmp(s->cost_model, g->cost_model) == 0;
    const rm_plan_facts facts = {keep_all.peak_bytes, keep_all.cost, need.bytes, same_cost,
                                 same_cost ? g->cost_unit : ""};
    rm_plan_check_claims(plan, &facts, out);
    return REMAT_OK;
}

/* A search leaves nothing behind that could be checked: that is said, and what is proved besides.
 */
static void say_unchecked(remat_ctx *ctx, const remat_summary *s, int64_t proved)
{
    if (s->bound_cost > proved)
        rm_warn(ctx,
                "the plan's bound %" PRId64 " comes from a search and is not checked; %" PRId64
                " is proved",
                s->bound_cost, proved);
}

/* What the certificate proves must be what the plan says. `must`: a bound that nothing proves is a
 * fault too, unless a search found it. */
static remat_status check_bound(remat_ctx *ctx, const remat_graph *g, const remat_plan *plan,
                                bool must, remat_verdict *v)
{
    const remat_summary *s = &plan->summary;
    remat_verdict word;
    int64_t cost = 0;
    const bool searched = strcmp(s->bound_method, "search") == 0;
    if (strcmp(s->cost_model, "") != 0 && strcmp(s->cost_model, g->cost_model) != 0)
        return must     ? rm_blame(v, REMAT_NONE,
                                   "the plan's bound is for costs by %.40s, the graph has %.40s",
                                   s->cost_model, g->cost_model),
               REMAT_OK : REMAT_OK;
    if (!plan->certificate.scale) {
        if (must && s->bound_cost == REMAT_ABSENT) rm_blame(v, REMAT_NONE, "the plan has no bound");
        else if (must && searched) say_unchecked(ctx, s, g->total_cost);
        else if (must && s->bound_cost > g->total_cost)
            rm_blame(v, REMAT_NONE, "the plan's bound has no certificate");
        return REMAT_OK;
    }
    if (s->budget_bytes < 0)
        return rm_blame(v, REMAT_NONE, "the plan has a certificate, but no budget"), REMAT_OK;
    TRY(rm_verify_bound(ctx, g, plan->steps, plan->n_steps, s->budget_bytes, fetches(plan),
                        bandwidth_of(plan), &plan->certificate, &cost, &word));
    if (!word.valid) rm_blame(v, REMAT_NONE, "%s", word.reason);
    else if (searched && plan->certificate.cost) {
        if (plan->certificate.cost != cost)
            rm_verdict_refuse(v, "the certificate proves", plan->certificate.cost, cost);
        else if (s->bound_cost < cost) rm_verdict_refuse(v, "bound", s->bound_cost, cost);
        else if (must) say_unchecked(ctx, s, cost);
    } else if (s->bound_cost != cost) rm_verdict_refuse(v, "bound", s->bound_cost, cost);
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
