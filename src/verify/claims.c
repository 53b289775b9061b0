/* claims.c: is what a plan says of itself true?
 *
 * A plan carries numbers (its peak and cost, those of keep-all, a bound) and an outcome. Each
 * number is compared with the verifier's. The outcome and the bound are compared with each other
 * and with the facts. A claim that is absent is no fault. A claim that is wrong makes the plan
 * invalid. Whether the bound itself is true, verify_bound.c says.
 *
 * Cost: O(1). */
#include "verify/claims.h"

#include "verify/verify.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

remat_status rm_plan_confirm(remat_ctx *ctx, const remat_verdict *v, remat_summary *s)
{
    if (!v->valid)
        return rm_fail(ctx, REMAT_E_BUG, "strategy '%s' made an invalid plan: %s", s->strategy,
                       v->reason);
    if (v->peak_bytes != s->peak_bytes || v->cost != s->cost)
        return rm_fail(ctx, REMAT_E_BUG,
                       "strategy '%s' says peak %" PRId64 " and cost %" PRId64
                       ", the verifier %" PRId64 " and %" PRId64,
                       s->strategy, s->peak_bytes, s->cost, v->peak_bytes, v->cost);
    s->peak_step = v->peak_step;
    s->offloaded_bytes = v->host_bytes;
    return REMAT_OK;
}

bool rm_plan_is_for(const remat_plan *plan, remat_kind kind, const char *digest, remat_verdict *out)
{
    const remat_summary *s = &plan->summary;
    const char *wanted = kind == REMAT_KIND_CHAIN ? "chain" : "graph";
    *out = (remat_verdict){.first_bad_step = REMAT_NONE};
    rm_verdict_clear(out);
    if (strcmp(s->digest, digest) != 0)
        return rm_blame(out, REMAT_NONE,
                        "the plan is for another %s: its digest is %.40s..., the %s's %.40s...",
                        wanted, s->digest, wanted, digest);
    if (s->kind != kind)
        return rm_blame(out, REMAT_NONE, "the plan is for a %s, not for a %s",
                        kind == REMAT_KIND_CHAIN ? "graph" : "chain", wanted);
    return true;
}

void rm_verdict_refuse(remat_verdict *v, const char *what, int64_t says, int64_t is)
{
    v->valid = false;
    snprintf(v->reason, sizeof v->reason, "the plan says %s %" PRId64 ", but it is %" PRId64, what,
             says, is);
}

static int64_t index_or_absent(uint32_t x) { return x == REMAT_NONE ? REMAT_ABSENT : x; }

/* What is wrong with within_budget in the file. NULL: nothing, or the file does not say it. */
static const char *false_fit(const remat_plan *plan, bool fits)
{
    if (plan->claimed_within < 0 || (plan->claimed_within > 0) == fits) return NULL;
    return fits ? "the plan says it is over its budget, but it fits"
                : "the plan says it fits its budget, but it does not";
}

static bool is_one_of(const char *word, const char *a, const char *b)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

/* A certificate beside the bound is judged in the plan's own order. More than first runs cost, in
 * any other scope, is what the bound for every order says, or what a search found, which is said
 * not to be checked. */
static bool is_in_scope(const remat_summary *s, const rm_plan_facts *facts)
{
    if (s->bound_cost <= facts->keep_all_cost || is_one_of(s->bound_method, "search", "milp") ||
        is_one_of(s->bound_scope, "", "fixed-order"))
        return true;
    return strcmp(s->bound_scope, "any-order") == 0 && s->any_order_cost >= s->bound_cost;
}

/* What is wrong with a bound that the plan has. NULL: nothing. */
static const char *false_bound(const remat_summary *s, const rm_plan_facts *facts, bool fits)
{
    const bool has_cost = s->cost != REMAT_ABSENT;
    if (has_cost && fits && s->bound_cost > s->cost) return "the plan's bound is above its cost";
    if (has_cost && s->outcome == REMAT_OPTIMAL && s->bound_cost != s->cost)
        return "the plan says it is optimal, but its bound is below its cost";
    if (strcmp(s->bound_method, "first-runs") == 0 && s->bound_cost != facts->keep_all_cost)
        return "the plan's bound is not what running every op once costs";
    if (s->any_order_cost > s->bound_cost)
        return "the plan's bound for every order is above its bound";
    if (s->kind == REMAT_KIND_GRAPH && !is_in_scope(s, facts))
        return "the plan's bound is said to hold for other orders than its own, which is not "
               "proved";
    return NULL;
}

/* What is wrong between outcome, bound and facts. NULL: nothing. */
static const char *contradiction(const remat_summary *s, const rm_plan_facts *facts, bool fits)
{
    if (s->outcome == REMAT_INFEASIBLE && fits)
        return "the plan says it is infeasible, but it fits its budget";
    if (s->outcome == REMAT_INFEASIBLE && s->kind == REMAT_KIND_GRAPH &&
        s->budget_bytes >= facts->need_bytes && strcmp(s->bound_method, "search") != 0)
        return "the plan says its budget is infeasible, which is not proved";
    if ((s->outcome == REMAT_OPTIMAL || s->outcome == REMAT_FEASIBLE) && !fits)
        return "the plan says it fits, but it does not";
    if (*s->cost_unit && *facts->cost_unit && strcmp(s->cost_unit, facts->cost_unit) != 0)
        return "the plan's cost_unit is not the graph's";
    if (s->bound_cost != REMAT_ABSENT && facts->same_cost_model) return false_bound(s, facts, fits);
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
        {"keep_all_cost", facts->same_cost_model ? s->keep_all_cost : REMAT_ABSENT,
         facts->keep_all_cost},
    };
    for (size_t i = 0; i < RM_LEN(claims); i++)
        if (claims[i].says != REMAT_ABSENT && claims[i].says != claims[i].is) {
            rm_verdict_refuse(v, claims[i].what, claims[i].says, claims[i].is);
            return;
        }
    const char *fault = false_fit(plan, fits);
    if (!fault) fault = contradiction(s, facts, fits);
    if (!fault) return;
    v->valid = false;
    snprintf(v->reason, sizeof v->reason, "%s", fault);
}
