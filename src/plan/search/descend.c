/* descend.c: the sequence of the lowest peak.
 *
 * Problem: near the least memory a search for the cheapest plan within the budget is lost. All of
 * the step is over the budget, and whatever is gained in one place is lost in another.
 *
 * Method: a ratchet. The limit is always a little below the lowest peak so far, so only the highest
 * places count. Where the state gets down to the limit, the limit goes on down, in longer steps
 * each time. If it does not for a while, the limit comes back to half the distance. Two walkers
 * (plan/search/walker.c) go down from the same state, and differ in temper:
 * - The first looks at memory alone. It keeps every move that does not raise the excess over the
 *   limit, so it strolls over plains until it finds a way down.
 * - The second weighs memory against cost, at a price that rises while it is over the limit. It
 *   prefers sequences that have less in memory at other times too: what is freed early there is not
 *   in the way later.
 * The first is better on deep networks of equal blocks, the second on dense ones.
 *
 * Invariant: the answer depends on seed and work, not on the number of threads. The cost is that of
 * the limits. */
#include "plan/search/descend.h"

#include "base/exp_log.h"
#include "plan/search/walker.h"

/* ---- what was tuned: of all of it results depend little ---- */

static const double longest_step = 0.06;    /* from the lowest peak to the limit, as part of it */
static const double shortest_step = 0.0005; /* the same */
static const double step_grows = 1.5;       /* times, where the state has got to the limit */
static const double patience = 0.02;        /* of a task, before the limit comes back */
static const double first_heat = 0.3;       /* in median costs of an op */
static const double last_heat = 0.02;       /* the same */
static const double first_lambda = 5;       /* times keep-all's cost a byte of its excess */
static const double lambda_falls = 0.98, lambda_rises = 1.02; /* a batch, as in anneal.c */
static const double memory_alone = 1e100; /* lambda, so that no cost can weigh as much as a byte */
static const double area_share = 10;      /* times keep-all's cost for memory that is always full */

typedef struct descent {
    rm_ground ground;
    rm_walker walkers[RM_WALKERS];
    const rm_codes *start;
    int64_t target; /* a limit of memory: budget less resident */
    double lambda;  /* of the second walker, to begin with */
    rm_quota quota; /* of each walker */
} descent;

/* It may be below the target: a state that is drawn farther down gets over the last step. */
static int64_t limit_below(int64_t peak, double step)
{
    return peak - (int64_t)(step * (double)peak);
}

static void set_temperature(rm_walker *w, double share)
{
    w->heat = w->ground->unit * first_heat * rm_exp(share * rm_log(last_heat / first_heat));
    if (w->lambda < memory_alone) w->lambda *= w->excess_now > 0 ? lambda_rises : lambda_falls;
}

static void go_down(const descent *d, rm_walker *w, rm_quota quota)
{
    const rm_profile *memory = &w->search.q.memory;
    double step = longest_step, since = 0;
    quota.begin_ns = rm_clock_ns();
    rm_walker_load(w, d->start, d->target);
    int64_t lowest = memory->max;
    rm_walker_aim(w, limit_below(lowest, step));
    for (double share = 0; share < 1 && lowest > d->target; share = rm_quota_used(&quota)) {
        set_temperature(w, share);
        rm_walker_batch(w, &quota);
        if (memory->max < lowest) lowest = memory->max;
        const bool is_there = memory->max <= w->limit;
        if (!is_there && share - since < patience) continue;
        step = is_there ? step_grows * step : step / 2;
        if (step > longest_step) step = longest_step;
        if (step < shortest_step) step = shortest_step;
        rm_walker_aim(w, limit_below(lowest, step));
        since = share;
    }
    rm_search_save(&w->search);
}

static void run_walker(void *user, uint32_t i)
{
    descent *d = user;
    rm_walker *w = &d->walkers[i];
    w->lambda = i == 0 ? memory_alone : d->lambda;
    go_down(d, w, d->quota);
}

/* Leaves walkers without a sequence if there are too many steps for one. */
static remat_status begin_walkers(descent *d, const rm_codes *keep_all)
{
    const rm_problem *p = d->ground.p;
    for (uint32_t i = 0; i < RM_WALKERS; i++) {
        rm_walker *w = &d->walkers[i];
        TRY(rm_walker_begin(&d->ground, i, d->start, w));
        if (!w->search.q.ranges) return REMAT_OK;
        rm_search_load(&w->search, keep_all->items, keep_all->n);
        rm_spend(p->ctx, w->search.q.work);
        const rm_profile *memory = &w->search.q.memory;
        const double cost = (double)(p->graph->total_cost + 1),
                     excess = (double)rm_profile_excess(memory, d->target) + 1;
        d->lambda = first_lambda * cost / excess;
        w->area_price = area_share * cost / ((double)memory->max + 1) / w->search.q.n_slots;
    }
    return REMAT_OK;
}

static remat_status descend(descent *d, rm_codes *keep_all, const rm_codes *seed, rm_codes *found)
{
    remat_ctx *ctx = d->ground.p->ctx;
    bool usable;
    TRY(rm_codes_keep_all(ctx, d->ground.nm, keep_all));
    TRY(rm_seed_is_usable(ctx, d->ground.nm, seed, &usable));
    d->start = usable ? seed : keep_all;
    TRY(begin_walkers(d, keep_all));
    if (!d->walkers[RM_WALKERS - 1].search.q.ranges) return REMAT_OK;
    const rm_quota whole = rm_quota_begin(ctx, 1);
    d->quota = rm_quota_part(&whole, 1.0 / RM_WALKERS, ctx->options.threads < 2 ? 0.5 : 1);
    rm_walkers_run(d->walkers, run_walker, d);
    return rm_search_best(ctx, rm_walkers_first(d->walkers), found);
}

remat_status rm_descend(const rm_problem *p, const rm_normal *nm, const rm_codes *seed,
                        rm_codes *found)
{
    descent d = {.target = p->budget_bytes - nm->resident_bytes};
    rm_codes keep_all = {0};
    TRY(rm_ground_begin(p, nm, &d.ground));
    const remat_status status = descend(&d, &keep_all, seed, found);
    for (uint32_t i = 0; i < RM_WALKERS; i++) rm_walker_end(&d.walkers[i]);
    RM_VEC_FREE(&p->ctx->heap, keep_all);
    return status;
}
