/* plan_chain.c: the public side of chains: making them, planning them, judging their plans.
 *
 * As with graphs, the verifier stands behind every plan that leaves. The bound that every plan
 * gets: each stage runs forward and backward at least once. */
#include "api/answer.h"
#include "graph/chain.h"
#include "graph/plan.h"
#include "verify/claims.h"
#include "plan/chains/chain_of_graph.h"
#include "plan/planner.h"
#include "verify/verify.h"

#include <inttypes.h>

remat_status remat_chain_new(remat_ctx *ctx, const char *name, const remat_stage *stages,
                             uint32_t n_stages, remat_chain **out)
{
    if (n_stages >= UINT32_MAX - 2) return rm_fail(ctx, REMAT_E_USAGE, "too many stages");
    const remat_chain head = {
        .name = name ? name : "", .size_unit = "bytes", .cost_unit = "ns", .n_stages = n_stages};
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_stage *named;
    remat_status status = RM_SCRATCH(ctx, named, (size_t)n_stages + 2);
    for (uint32_t i = 0; i <= n_stages + 1 && status == REMAT_OK; i++) {
        named[i] = stages[i];
        if (!named[i].name) named[i].name = "";
    }
    if (status == REMAT_OK) status = rm_chain_new(ctx, &head, named, out);
    rm_scratch_release(ctx, mark);
    return status;
}

static remat_status of_graph(remat_ctx *ctx, const remat_graph *graph, remat_chain **out)
{
    rm_stages stages;
    TRY(rm_stages_find(ctx, graph, RM_CUTS_READ_BACKWARD, &stages));
    const remat_chain head = {.name = remat_graph_name(graph),
                              .size_unit = "bytes",
                              .cost_unit = remat_graph_cost_unit(graph),
                              .n_stages = stages.n - 1};
    return rm_chain_of_stages(ctx, &head, &stages, out);
}

remat_status remat_chain_of_graph(remat_ctx *ctx, const remat_graph *graph, remat_chain **out)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    const remat_status status = of_graph(ctx, graph, out);
    rm_scratch_release(ctx, mark);
    return status;
}

remat_status remat_chain_verify(remat_ctx *ctx, const remat_chain *chain, const remat_step *steps,
                                size_t n_steps, remat_verdict *out)
{
    TRY(rm_answer_check(ctx, out->size, "remat_verdict"));
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_verdict verdict;
    const remat_status status = rm_verify_chain(ctx, chain, steps, n_steps, &verdict);
    if (status == REMAT_OK) RM_ANSWER(out, &verdict);
    rm_scratch_release(ctx, mark);
    return status;
}

/* ---- planning ---- */

static remat_status keep_all(remat_ctx *ctx, const remat_chain *c, rm_chain_result *out)
{
    const int64_t no_limit = INT64_MAX;
    return rm_keep_all.run_chain(
        &(rm_chain_problem){.ctx = ctx, .chain = c, .budgets = &no_limit, .n_budgets = 1}, out);
}

static remat_outcome judge(const remat_summary *s, const rm_chain_result *r)
{
    if (s->within_budget) return s->cost == s->bound_cost ? REMAT_OPTIMAL : REMAT_FEASIBLE;
    return s->budget_bytes < s->need_bytes || r->infeasible ? REMAT_INFEASIBLE : REMAT_UNKNOWN;
}

static remat_summary summarize(const rm_chain_problem *p, const rm_planner *planner,
                               const rm_chain_result *r, const rm_chain_result *base,
                               int64_t budget)
{
    const remat_ctx *ctx = p->ctx;
    const remat_chain *c = p->chain;
    remat_summary s = {.strategy = planner->entry.name,
                       .graph = c->name,
                       .digest = c->digest,
                       .cost_model = "given",
                       .cost_unit = c->cost_unit,
                       .bound_scope = "chain",
                       .bound_method = "first-runs",
                       .budget_bytes = budget,
                       .peak_bytes = r->peak_bytes,
                       .cost = r->cost,
                       .keep_all_peak_bytes = base->peak_bytes,
                       .keep_all_cost = base->cost,
                       .bound_cost = base->cost,
                       .any_order_cost = REMAT_ABSENT, /* a chain has one order */
                       .any_order_method = "",
                       .least_peak_bound = REMAT_ABSENT,
                       .saved_bytes = REMAT_ABSENT,
                       .traffic_bytes = REMAT_ABSENT,
                       .cut_capacity = REMAT_ABSENT,
                       .seed = ctx->options.seed,
                       .work = rm_work_units(ctx),
                       .ops = c->n_stages + 1,
                       .stopped = rm_stopped(ctx),
                       .kind = REMAT_KIND_CHAIN};
    s.need_bytes = rm_chain_need(c, &s.need_op);
    s.within_budget = rm_is_within(&s);
    if (r->optimal && s.within_budget) {
        s.bound_cost = r->cost;
        s.bound_method = "dynamic-program";
    }
    s.outcome = judge(&s, r);
    return s;
}

static remat_status make_plan(const rm_chain_problem *p, const rm_planner *planner,
                              const rm_chain_result *r, const rm_chain_result *base, int64_t budget,
                              remat_plan **out)
{
    remat_ctx *ctx = p->ctx;
    const remat_chain *c = p->chain;
    remat_verdict verdict;
    remat_summary s = summarize(p, planner, r, base, budget);
    TRY(rm_verify_chain(ctx, c, r->steps.items, r->steps.n, &verdict));
    TRY(rm_plan_confirm(ctx, &verdict, &s));
    TRY(rm_plan_new(ctx, &s, r->steps.items, r->steps.n, NULL, out));
    (*out)->graph_ops = c->n_stages + 1;
    return REMAT_OK;
}

typedef struct answers {
    rm_chain_result base;     /* keep-all */
    rm_chain_result least;    /* what needs least memory, for REMAT_BUDGET_MIN */
    rm_chain_result *results; /* by budget */
    remat_plan **plans;       /* by budget */
    uint32_t n;
} answers;

static remat_status run(const rm_chain_problem *p, const rm_planner *planner,
                        rm_chain_result *results)
{
    TRY(planner->run_chain(p, results));
    for (uint32_t i = 0; i < p->n_budgets; i++)
        if (!results[i].any) TRY(rm_chain_offer_least(p, results));
    return REMAT_OK;
}

/* The lowest peak becomes the budget, so that its schedule is the cheapest there and is proved as
 * that of any budget. */
static remat_status settle_for_least(const rm_chain_problem *p, const rm_planner *planner,
                                     int64_t *budget, rm_chain_result *result)
{
    *budget = p->least->peak_bytes;
    RM_VEC_FREE(&p->ctx->heap, result->steps);
    *result = (rm_chain_result){.any = false};
    TRY(rm_chain_offer(p, result, &p->least->steps));
    return run(p, planner, result);
}

static remat_status solve(remat_ctx *ctx, const remat_chain *c, const rm_planner *planner,
                          const int64_t *budgets, answers *x)
{
    const bool least = budgets[0] == REMAT_BUDGET_MIN;
    int64_t *limits;
    if (!rm_chain_can_be_planned(c))
        return rm_fail(ctx, REMAT_E_INPUT,
                       "the times are so large that a schedule's cost may pass 2^62");
    TRY(keep_all(ctx, c, &x->base));
    TRY(RM_SCRATCH(ctx, limits, x->n));
    TRY(RM_SCRATCH(ctx, x->results, x->n));
    for (uint32_t i = 0; i < x->n; i++) {
        limits[i] = budgets[i] < 0 ? x->base.peak_bytes : budgets[i];
        if (i && limits[i] < limits[i - 1])
            return rm_fail(ctx, REMAT_E_USAGE, "budgets must ascend");
    }
    const rm_chain_problem p = {.ctx = ctx,
                                .chain = c,
                                .budgets = limits,
                                .n_budgets = x->n,
                                .least = least ? &x->least : NULL};
    if (!planner->run_chain)
        return rm_fail(ctx, REMAT_E_APPLIES, "%s plans graphs, and this is a chain",
                       planner->entry.name);
    if (planner != &rm_keep_all && (ctx->options.offload || ctx->options.order_only))
        return rm_fail(ctx, REMAT_E_APPLIES, "options offload and order_only are for graphs");
    TRY(run(&p, planner, x->results));
    if (least) TRY(settle_for_least(&p, planner, limits, x->results));
    for (uint32_t i = 0; i < x->n; i++)
        TRY(make_plan(&p, planner, &x->results[i], &x->base, least ? limits[i] : budgets[i],
                      &x->plans[i]));
    return REMAT_OK;
}

remat_status remat_chain_plans(remat_ctx *ctx, const remat_chain *chain, const char *strategy,
                               const int64_t *budgets, uint32_t n_budgets, remat_plan **out)
{
    const rm_planner *planner = rm_planner_find(ctx, strategy);
    if (!planner) return REMAT_E_USAGE;
    for (uint32_t i = 0; i < n_budgets; i++) {
        if (budgets[i] < (n_budgets == 1 ? REMAT_BUDGET_MIN : 0))
            return rm_fail(ctx, REMAT_E_USAGE, "budget %" PRId64 " is negative", budgets[i]);
        if (budgets[i] >= RM_MAX_SUM)
            return rm_fail(ctx, REMAT_E_USAGE, "budget %" PRId64 " is 2^62 or more", budgets[i]);
    }
    if (n_budgets == 0) return REMAT_OK;
    const rm_mark mark = rm_scratch_mark(ctx);
    answers x = {.n = n_budgets};
    rm_limits_begin(ctx, RM_NO_LIMIT); /* chain strategies end by themselves */
    remat_status status = RM_SCRATCH(ctx, x.plans, n_budgets);
    if (status == REMAT_OK) status = solve(ctx, chain, planner, budgets, &x);
    for (uint32_t i = 0; i < n_budgets && x.plans; i++) {
        if (status == REMAT_OK) out[i] = x.plans[i];
        else remat_plan_free(x.plans[i]);
        if (x.results) RM_VEC_FREE(&ctx->heap, x.results[i].steps);
    }
    RM_VEC_FREE(&ctx->heap, x.base.steps);
    RM_VEC_FREE(&ctx->heap, x.least.steps);
    rm_scratch_release(ctx, mark);
    rm_limits_end(ctx);
    return status;
}

remat_status remat_chain_plan(remat_ctx *ctx, const remat_chain *chain, const char *strategy,
                              int64_t budget_bytes, remat_plan **out)
{
    return remat_chain_plans(ctx, chain, strategy, &budget_bytes, 1, out);
}

/* ---- a plan that was given ---- */

static remat_status check_plan(remat_ctx *ctx, const remat_chain *c, const remat_plan *plan,
                               rm_chain_result *base, remat_verdict *out)
{
    if (!rm_plan_is_for(plan, REMAT_KIND_CHAIN, c->digest, out)) return REMAT_OK;
    TRY(rm_verify_chain(ctx, c, plan->steps, plan->n_steps, out));
    if (!out->valid) return REMAT_OK;
    TRY(keep_all(ctx, c, base));
    uint32_t stage;
    const rm_plan_facts facts = {base->peak_bytes, base->cost, rm_chain_need(c, &stage), true,
                                 c->cost_unit};
    rm_plan_check_claims(plan, &facts, out);
    return REMAT_OK;
}

remat_status remat_chain_plan_verify(remat_ctx *ctx, const remat_chain *chain,
                                     const remat_plan *plan, remat_verdict *out)
{
    TRY(rm_answer_check(ctx, out->size, "remat_verdict"));
    const rm_mark mark = rm_scratch_mark(ctx);
    rm_chain_result base = {0};
    remat_verdict verdict;
    const remat_status status = check_plan(ctx, chain, plan, &base, &verdict);
    if (status == REMAT_OK) RM_ANSWER(out, &verdict);
    RM_VEC_FREE(&ctx->heap, base.steps);
    rm_scratch_release(ctx, mark);
    return status;
}
