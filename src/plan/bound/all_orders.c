/* all_orders.c: the search through all orders, on behalf of a planner.
 *
 * Problem: a planner has a plan, or none, and the graph is small. any_order.c finds the cheapest
 * plan there is, or proves that none fits. But with views what it finds may need more memory than
 * it seems (any_order.c, "Views").
 *
 * Method: what was found is measured. If it does not fit, the best plan with one instance of a
 * storage at a time is searched for. The bound stays that of the first search.
 *
 * Invariant: best->bound is about all plans in all orders, and never falls.
 *
 * Cost: that of any_order.c, twice at most, within the limits. */
#include "plan/bound/all_orders.h"

#include "plan/bound/any_order.h"

static rm_proof_goal goal_of(const rm_problem *p, const char *strategy, const rm_incumbent *best)
{
    const bool fits = best->any && rm_fits(p, best->peak_bytes);
    return (rm_proof_goal){.budget_bytes = p->budget_bytes,
                           .below = fits ? best->cost : RM_MAX_SUM,
                           .peak_bytes = best->peak_bytes,
                           .strategy = strategy};
}

static remat_status search(const rm_problem *p, const rm_normal *nm, const char *strategy,
                           rm_codes *codes, rm_incumbent *best, rm_proved *proved)
{
    rm_proof_goal goal = goal_of(p, strategy, best);
    rm_proved again;
    TRY(rm_prove_any_order(p->ctx, nm, &goal, codes, proved));
    if (codes->n == 0) return REMAT_OK;
    TRY(rm_offer_codes(p, nm, codes, best));
    if (rm_fits(p, best->peak_bytes) && best->cost == proved->cost) return REMAT_OK;
    goal = goal_of(p, strategy, best);
    goal.one_instance = true;
    TRY(rm_prove_any_order(p->ctx, nm, &goal, codes, &again));
    return codes->n ? rm_offer_codes(p, nm, codes, best) : REMAT_OK;
}

remat_status rm_search_all_orders(const rm_problem *p, const rm_normal *nm, const char *strategy,
                                  rm_incumbent *best)
{
    rm_codes codes = {0};
    rm_proved proved;
    const remat_status status = search(p, nm, strategy, &codes, best, &proved);
    RM_VEC_FREE(&p->ctx->heap, codes);
    TRY(status);
    best->infeasible = proved.bound == RM_MAX_SUM;
    if (best->bound.scope && proved.bound < best->bound.cost) return REMAT_OK;
    best->bound.cost = proved.bound;
    best->bound.scope = "any-order";
    best->bound.method = "search";
    return REMAT_OK;
}
