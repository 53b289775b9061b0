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
                         remat_plan **out)
{
    remat_summary copied = *summary;
    const char **strings[] = STRINGS(copied);
    size_t bytes = 0;
    for (size_t i = 0; i < RM_LEN(strings); i++) bytes += strlen(*strings[i]) + 1;
    const size_t size = sizeof(remat_plan) + n_steps * sizeof *steps + bytes;
    remat_plan *plan = rm_alloc(ctx, size);
    if (!plan) return REMAT_E_MEMORY;
    plan->heap = ctx->heap;
    plan->block_size = size;
    plan->graph_ops = plan->graph_values = REMAT_NONE;
    plan->n_steps = n_steps;
    plan->steps = (remat_step *)(void *)(plan + 1);
    if (n_steps) memcpy(plan->steps, steps, n_steps * sizeof *steps);
    char *text = (char *)(plan->steps + n_steps);
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

void rm_verdict_refuse(remat_verdict *v, const char *what, int64_t says, int64_t is)
{
    v->valid = false;
    snprintf(v->reason, sizeof v->reason, "the plan says %s %" PRId64 ", but it is %" PRId64, what, says, is);
}

static int64_t index_or_absent(uint32_t x) { return x == REMAT_NONE ? REMAT_ABSENT : x; }

void rm_plan_check_claims(const remat_plan *plan, bool same_cost_model, int64_t keep_all_peak_bytes, int64_t keep_all_cost,
                          remat_verdict *v)
{
    const remat_summary *s = &plan->summary;
    const bool fits = s->budget_bytes < 0 || v->peak_bytes <= s->budget_bytes;
    const struct {
        const char *what;
        int64_t says, is;
    } claims[] = {
        {"peak_bytes", s->peak_bytes, v->peak_bytes},
        {"peak_step", index_or_absent(s->peak_step), index_or_absent(v->peak_step)},
        {"cost", same_cost_model ? s->cost : REMAT_ABSENT, v->cost},
        {"keep_all_peak_bytes", s->keep_all_peak_bytes, keep_all_peak_bytes},
        {"keep_all_cost", same_cost_model ? s->keep_all_cost : REMAT_ABSENT, keep_all_cost},
        {"within_budget", plan->says_within ? s->within_budget : REMAT_ABSENT, fits},
    };
    for (size_t i = 0; i < RM_LEN(claims); i++)
        if (claims[i].says != REMAT_ABSENT && claims[i].says != claims[i].is) {
            rm_verdict_refuse(v, claims[i].what, claims[i].says, claims[i].is);
            return;
        }
}
