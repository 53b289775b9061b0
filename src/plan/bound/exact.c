/* exact.c: the cheapest plan with the order of first runs of auto's plan, and the proof of it.
 *
 * Method: auto makes a plan. Then prove.c searches all plans with the same order of first runs. If
 * auto found nothing that fits, the order is the graph's own. A cheaper plan takes the place of
 * auto's. It has the same order, so the proof holds for it.
 *
 * First auto runs as long as the size of the graph asks for, and a short proof follows. If that
 * does not end, a long run of auto comes before the long proof: the better the plan, the fewer
 * states are left to look at.
 *
 * Cost: that of auto and prove.c, within the limits. */
#include "plan/bound/prove.h"
#include "plan/planner.h"
#include "sim/codes.h"

enum {
    WORK_AN_OP = RM_SECOND / 750, /* of the first run of auto */
    SHORT_PROOF = RM_SECOND / 8   /* work of the first proof */
};
static const double auto_share = 0.25; /* of what is left, each time */

/* auto would have nothing to do if it were given a plan that fits. So it starts without one. */
static remat_status run_auto(const rm_problem *p, int64_t most_work, rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    rm_incumbent found = {.any = false};
    rm_limit_push(ctx, auto_share, most_work);
    ctx->bound_cost = p->graph->total_cost; /* a proof's bound is for one order */
    remat_status status = rm_try_planner(p, &rm_auto, 1, &found);
    rm_limit_pop(ctx);
    if (status == REMAT_OK && found.any) status = rm_offer(p, best, &found.steps);
    RM_VEC_FREE(&ctx->heap, found.steps);
    return status;
}

static bool is_proved(const rm_problem *p, const rm_incumbent *best)
{
    return rm_fits(p, best->peak_bytes) &&
           (best->proved == best->cost || best->cost == p->graph->total_cost);
}

/* full: the search stopped for lack of memory. */
static remat_status prove(const rm_problem *p, const rm_normal *nm, rm_codes *codes,
                          rm_incumbent *best, bool *full)
{
    remat_ctx *ctx = p->ctx;
    uint32_t *order = NULL;
    rm_proved proved;
    const bool fits = rm_fits(p, best->peak_bytes);
    if (fits) {
        TRY(rm_codes_of_steps(ctx, nm, &best->steps, codes));
        TRY(rm_codes_first_runs(ctx, nm, codes, &order));
    }
    const rm_proof_goal goal = {.budget_bytes = p->budget_bytes,
                                .order = order,
                                .below = fits ? best->cost : RM_MAX_SUM,
                                .peak_bytes = best->peak_bytes,
                                .strategy = rm_exact.entry.name};
    TRY(rm_prove(ctx, nm, &goal, codes, &proved));
    if (codes->n) TRY(rm_offer_codes(p, nm, codes, best));
    if (rm_fits(p, best->peak_bytes)) best->proved = proved.bound;
    *full = proved.full;
    return REMAT_OK;
}

/* auto, and then a proof, each with at most so much work. */
static remat_status run_both(const rm_problem *p, int64_t auto_work, int64_t proof_work,
                             rm_incumbent *best, bool *full)
{
    remat_ctx *ctx = p->ctx;
    rm_normal nm;
    rm_codes codes = {0};
    TRY(run_auto(p, auto_work, best));
    if (rm_is_over(ctx) || is_proved(p, best)) return REMAT_OK;
    TRY(rm_normal_of(ctx, p->graph, &nm));
    rm_limit_push(ctx, 1, proof_work);
    const remat_status status = prove(p, &nm, &codes, best, full);
    rm_limit_pop(ctx);
    RM_VEC_FREE(&ctx->heap, codes);
    return status;
}

static remat_status run(const rm_problem *p, rm_incumbent *best)
{
    if (p->budget_bytes < 0) return rm_auto.run(p, best);
    bool full = false;
    TRY(run_both(p, WORK_AN_OP * (int64_t)p->graph->n_ops, SHORT_PROOF, best, &full));
    if (rm_is_over(p->ctx) || is_proved(p, best)) return REMAT_OK;
    TRY(run_both(p, RM_NO_LIMIT, RM_NO_LIMIT, best, &full));
    if (full) rm_note_stop(p->ctx, REMAT_WORK); /* with more memory it would have gone on */
    return REMAT_OK;
}

const rm_planner rm_exact = {
    .entry = {"exact", "auto, then a search until none in the same order of first runs is cheaper"},
    .default_work = 2 * (int64_t)RM_SECOND,
    .run = run,
    .heeds = "group reduction_factor reweight slots soft_peak walkers",
    .continues = true};
