/* exact.c: auto's plan, and then the proof that none with its order of first runs is cheaper, or
 * the one that is.
 *
 * The search of prove.c goes over all plans in the order in which auto's plan runs its ops for the
 * first time; where auto found nothing that fits, in the graph's own order. A cheaper plan takes
 * the place of auto's; it has the same order, so the proof holds for it. auto runs as long as the
 * size of the graph asks for, and a short search follows; if that does not end, a long run of auto
 * comes before the long search: the better the plan, the fewer states are left to look at. Work is
 * auto's edits and prove.c's questions together. */
#include "plan/planner.h"
#include "plan/bound/prove.h"
#include "sim/codes.h"

enum {
    AN_OP =
        4000, /* auto's edits for each op in its first run: other orders take time to be found */
    SMALL = 500000, /* for the first search */
    TWO_SECONDS = 8000000
};
#define SECOND INT64_C(1000000000)

/* For so much work; a quarter of the work, or half of the time, if there is little. */
static remat_status run_auto(const rm_problem *p, int64_t work, rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    const int64_t spent = ctx->work, limit = ctx->work_limit, deadline = ctx->deadline_ns,
                  now = rm_clock_ns();
    if (deadline != INT64_MAX)
        ctx->deadline_ns = deadline - now > 4 * SECOND ? INT64_MAX : now + (deadline - now) / 2;
    ctx->work = 0; /* auto's search is laid out for the whole of its limit */
    ctx->work_limit = work < (limit - spent) / 4 ? work : (limit - spent) / 4 + 1;
    ctx->bound_cost = p->graph->total_cost; /* a search's bound is for one order */
    rm_incumbent found = {.any =
                              false}; /* auto has nothing to do where there is a plan that fits */
    remat_status status = rm_auto.run(p, &found);
    if (status == REMAT_OK) status = rm_offer(p, best, &found.steps);
    RM_VEC_FREE(&ctx->heap, found.steps);
    ctx->work += spent;
    ctx->work_limit = limit;
    ctx->deadline_ns = deadline;
    if (ctx->stopped != REMAT_SIGNAL) ctx->stopped = ctx->work < limit ? REMAT_DONE : REMAT_WORK;
    return status;
}

static bool is_proved(const rm_problem *p, const rm_incumbent *best)
{
    return rm_fits(p, best->peak_bytes) &&
           (best->proved == best->cost || best->cost == p->graph->total_cost);
}

static remat_status prove(const rm_problem *p, const rm_normal *nm, int64_t work, rm_codes *codes,
                          rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    uint32_t *order = NULL;
    rm_proved proved;
    const bool fits = rm_fits(p, best->peak_bytes);
    const int64_t limit = ctx->work_limit;
    if (fits) {
        TRY(rm_codes_of_steps(ctx, nm, &best->steps, codes));
        TRY(rm_codes_first_runs(ctx, nm, codes, &order));
    }
    if (limit - ctx->work > work) ctx->work_limit = ctx->work + work;
    const rm_proof_goal goal = {p->budget_bytes, order, fits ? best->cost : RM_MAX_SUM,
                                best->peak_bytes, rm_exact.entry.name};
    const remat_status status = rm_prove(ctx, nm, &goal, codes, &proved);
    ctx->work_limit = limit;
    TRY(status);
    if (ctx->stopped == REMAT_WORK && ctx->work < limit) ctx->stopped = REMAT_DONE;
    if (codes->n) TRY(rm_offer_codes(p, nm, codes, best));
    if (rm_fits(p, best->peak_bytes)) best->proved = proved.bound;
    if (proved.full && ctx->stopped == REMAT_DONE) ctx->stopped = REMAT_WORK;
    return REMAT_OK;
}

static remat_status run_both(const rm_problem *p, int64_t auto_work, int64_t work,
                             rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    rm_normal nm;
    rm_codes codes = {0};
    TRY(run_auto(p, auto_work, best));
    if (ctx->stopped != REMAT_DONE || is_proved(p, best)) return REMAT_OK;
    TRY(rm_normal_of(ctx, p->graph, &nm));
    const remat_status status = prove(p, &nm, work, &codes, best);
    RM_VEC_FREE(&ctx->heap, codes);
    return status;
}

static remat_status run(const rm_problem *p, rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    if (p->budget_bytes < 0) return rm_auto.run(p, best);
    const int64_t by_size = (int64_t)AN_OP * p->graph->n_ops;
    TRY(run_both(p, by_size < rm_auto.default_work ? by_size : rm_auto.default_work, SMALL, best));
    if (ctx->stopped != REMAT_DONE || is_proved(p, best)) return REMAT_OK;
    return run_both(p, rm_auto.default_work, INT64_MAX, best);
}

const rm_planner rm_exact = {
    .entry = {"exact", "auto, then a search until none in the same order of first runs is cheaper"},
    .default_work = TWO_SECONDS,
    .run = run};
