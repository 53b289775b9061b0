/* plan.c: making, reading and freeing a plan. */
#include "graph/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define STRINGS(s)                                                                                                             \
    {                                                                                                                          \
        &(s).strategy, &(s).graph, &(s).digest, &(s).cost_model, &(s).cost_unit, &(s).bound_scope, &(s).bound_method           \
    }

remat_status rm_plan_new(remat_ctx *ctx, const remat_summary *summary, const remat_step *steps, size_t n_steps,
                         const rm_certificate *certificate, remat_plan **out)
{
    const rm_certificate none = {.scale = 0}, *from = certificate ? certificate : &none;
    remat_summary copied = *summary;
    const char **strings[] = STRINGS(copied);
    size_t bytes = 0;
    for (size_t i = 0; i < RM_LEN(strings); i++) bytes += strlen(*strings[i]) + 1;
    const size_t size = sizeof(remat_plan) + n_steps * sizeof *steps + from->n_prices * sizeof *from->prices +
                        from->n_heirs * sizeof *from->heirs + bytes;
    remat_plan *plan = rm_alloc(ctx, size);
    if (!plan) return REMAT_E_MEMORY;
    plan->heap = ctx->heap;
    plan->block_size = size;
    plan->graph_ops = plan->graph_values = REMAT_NONE;
    plan->n_steps = n_steps;
    plan->steps = (remat_step *)(void *)(plan + 1);
    if (n_steps) memcpy(plan->steps, steps, n_steps * sizeof *steps);
    plan->certificate = *from;
    plan->certificate.prices = (rm_price *)(void *)(plan->steps + n_steps);
    plan->certificate.heirs = (rm_heir *)(void *)(plan->certificate.prices + from->n_prices);
    if (from->n_prices) memcpy(plan->certificate.prices, from->prices, from->n_prices * sizeof *from->prices);
    if (from->n_heirs) memcpy(plan->certificate.heirs, from->heirs, from->n_heirs * sizeof *from->heirs);
    char *text = (char *)(plan->certificate.heirs + from->n_heirs);
    for (size_t i = 0; i < RM_LEN(strings); i++) {
        const size_t n = strlen(*strings[i]) + 1;
        *strings[i] = memcpy(text, *strings[i], n);
        text += n;
    }
    plan->summary = copied;
    *out = plan;
    return REMAT_OK;
}

void remat_plan_free(remat_plan *plan)
{
    if (!plan) return;
    const remat_alloc heap = plan->heap;
    rm_release(&heap, plan, plan->block_size);
}

const remat_summary *remat_plan_summary(const remat_plan *plan) { return &plan->summary; }

const remat_step *remat_plan_steps(const remat_plan *plan, size_t *n_steps)
{
    *n_steps = plan->n_steps;
    return plan->steps;
}

remat_status remat_plan_status(const remat_plan *plan)
{
    if (plan->summary.outcome == REMAT_INFEASIBLE) return REMAT_E_INFEASIBLE;
    return plan->summary.within_budget ? REMAT_OK : REMAT_E_NOT_FOUND;
}

static const char *const outcomes[] = {
    [REMAT_UNKNOWN] = "unknown", [REMAT_FEASIBLE] = "feasible", [REMAT_OPTIMAL] = "optimal", [REMAT_INFEASIBLE] = "infeasible"};

const char *rm_outcome_name(remat_outcome outcome) { return outcomes[outcome]; }

bool rm_outcome_parse(const char *name, remat_outcome *out)
{
    for (size_t i = 0; i < RM_LEN(outcomes); i++)
        if (strcmp(outcomes[i], name) == 0) return *out = (remat_outcome)i, true;
    return false;
}

remat_status rm_plan_confirm(remat_ctx *ctx, const remat_verdict *v, remat_summary *s)
{
    if (!v->valid) return rm_fail(ctx, REMAT_E_BUG, "strategy '%s' made an invalid plan: %s", s->strategy, v->reason);
    if (v->peak_bytes != s->peak_bytes || v->cost != s->cost)
        return rm_fail(ctx, REMAT_E_BUG,
                       "strategy '%s' says peak %" PRId64 " and cost %" PRId64 ", the verifier %" PRId64 " and %" PRId64,
                       s->strategy, s->peak_bytes, s->cost, v->peak_bytes, v->cost);
    s->peak_step = v->peak_step;
    s->offloaded_bytes = v->host_bytes;
    return REMAT_OK;
}

void rm_verdict_refuse(remat_verdict *v, const char *what, int64_t says, int64_t is)
{
    v->valid = false;
    snprintf(v->reason, sizeof v->reason, "the plan says %s %" PRId64 ", but it is %" PRId64, what, says, is);
}

static int64_t index_or_absent(uint32_t x) { return x == REMAT_NONE ? REMAT_ABSENT : x; }

/* Outcome and bound against each other and against the facts; NULL: nothing wrong. */
static const char *contradiction(const remat_summary *s, const rm_plan_facts *facts, bool fits)
{
    const bool has_bound = s->bound_cost != REMAT_ABSENT && facts->same_cost_model && s->cost != REMAT_ABSENT;
    if (s->outcome == REMAT_INFEASIBLE && fits) return "the plan says it is infeasible, but it fits its budget";
    if (s->outcome == REMAT_INFEASIBLE && s->kind == REMAT_KIND_GRAPH && s->budget_bytes >= facts->need_bytes)
        return "the plan says its budget is infeasible, which is not proved";
    if ((s->outcome == REMAT_OPTIMAL || s->outcome == REMAT_FEASIBLE) && !fits) return "the plan says it fits, but it does not";
    if (has_bound && fits && s->bound_cost > s->cost) return "the plan's bound is above its cost";
    if (has_bound && s->outcome == REMAT_OPTIMAL && s->bound_cost != s->cost)
        return "the plan says it is optimal, but its bound is below its cost";
    if (has_bound && strcmp(s->bound_method, "first-runs") == 0 && s->bound_cost != facts->keep_all_cost)
        return "the plan's bound is not what running every op once costs";
    if (*s->cost_unit && *facts->cost_unit && strcmp(s->cost_unit, facts->cost_unit) != 0)
        return "the plan's cost_unit is not the graph's";
    return NULL;
}

void rm_plan_check_claims(const remat_plan *plan, const rm_plan_facts *facts, remat_verdict *v)
{
    const remat_summary *s = &plan->summary;
    const bool fits = s->budget_bytes < 0 || v->peak_bytes <= s->budget_bytes;
    const struct {
        const char *what;
        int64_t says, is;
    } claims[] = {
        {"peak_bytes", s->peak_bytes, v->peak_bytes},
        {"peak_step", index_or_absent(s->peak_step), index_or_absent(v->peak_step)},
        {"cost", facts->same_cost_model ? s->cost : REMAT_ABSENT, v->cost},
        {"keep_all_peak_bytes", s->keep_all_peak_bytes, facts->keep_all_peak_bytes},
        {"keep_all_cost", facts->same_cost_model ? s->keep_all_cost : REMAT_ABSENT, facts->keep_all_cost},
    };
    for (size_t i = 0; i < RM_LEN(claims); i++)
        if (claims[i].says != REMAT_ABSENT && claims[i].says != claims[i].is) {
            rm_verdict_refuse(v, claims[i].what, claims[i].says, claims[i].is);
            return;
        }
    const char *fault =
        plan->says_within && s->within_budget != fits
            ? (fits ? "the plan says it is over its budget, but it fits" : "the plan says it fits its budget, but it does not")
            : contradiction(s, facts, fits);
    if (!fault) return;
    v->valid = false;
    snprintf(v->reason, sizeof v->reason, "%s", fault);
}

const rm_flag_name rm_flag_names[] = {{"dce", REMAT_DCE},
                                      {"fold_identity", REMAT_FOLD_IDENTITY},
                                      {"no_alias", REMAT_NO_ALIAS},
                                      {"replay_random", REMAT_REPLAY_RANDOM},
                                      {"fuse", REMAT_FUSE},
                                      {NULL, 0}};
