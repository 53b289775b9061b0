/* walker.c: one annealing run over sequences, whose moves are whole recomputations.
 *
 * Method: moves (plan/search/moves.c) recompute a value with all that it needs, forget such a
 * recomputation, carry a step elsewhere between its inputs and its readers, or clear a crowded slot
 * of a value by order alone. A move is kept by Metropolis' rule on
 *
 *     cost + lambda * sum over blocks of slots of (peak of the block - limit)+ + price * area
 *
 * Here lambda is the price of a byte over the limit, and area the sum of memory over all slots.
 *
 * Invariants: what a walker does depends on its seed and its work, not on threads. Integers decide
 * what fits; doubles only weigh.
 *
 * Cost: work is what the sequences count (sim/sequence.h). Memory: O(slots). */
#include "plan/search/walker.h"

#include <assert.h>
#include <stdlib.h>

#include "base/exp_log.h"
#include "base/threads.h"
#include "plan/search/moves.h"

/* ---- what was tuned ---- */

enum {
    BATCH = 256,          /* moves between looks at the limits */
    BATCH_WORK = 1 << 20, /* operations between them, where moves are large */
    RESPACE = 64 * BATCH, /* edits between respacings */
    SPREAD = 10,          /* slots a step: whole recomputations want room side by side */
    WIDE = 3,             /* times as many ops as the longest path has: the graph is wide */
    MOVE_WORK = 48        /* operations of a move, besides what it touches */
};
/* In a wide graph order is worth as much as recomputation. In others there is little to clear, and
 * a mix with it was worse on some. */
static const rm_mix narrow_mix = {38, 22, 0}, wide_mix = {26, 22, 30};
static const double step_cost = 1e-3; /* of a median op; else free ops would run for ever */

/* ---- one move ---- */

static double cost_of(const rm_walker *w)
{
    return (double)w->search.q.cost + step_cost * w->ground->unit * w->search.q.n_steps;
}

static void take_stock(rm_walker *w)
{
    w->cost_now = cost_of(w);
    w->excess_now = rm_profile_excess(&w->search.q.memory, w->limit);
}

/* What the move at hand adds to the area. */
static double added_area(const rm_seq *q)
{
    double area = 0;
    for (size_t i = 0; i < q->n_ranges; i++) {
        const rm_range *r = &q->ranges[i];
        area += (double)r->delta * ((double)r->last - (double)r->first + 1);
    }
    return area;
}

/* Metropolis' rule. A random number is drawn first: a move whose cost alone is too much is refused
 * before memory is looked at. */
static bool accept(rm_walker *w)
{
    rm_seq *q = &w->search.q;
    const double limit = w->cost_now + w->lambda * (double)w->excess_now -
                         w->heat * rm_log(rm_random_unit(&w->search.random) + 1e-12);
    const double cost = cost_of(w),
                 price = w->area_price > 0 ? cost + w->area_price * added_area(q) : cost;
    if (price > limit) return false;
    const int64_t excess = rm_seq_excess(q, w->limit, w->excess_now);
    if (price + w->lambda * (double)excess > limit) return false;
    w->cost_now = cost;
    w->excess_now = excess;
    return true;
}

/* A random move. Returns the number of its edits. */
static uint32_t propose(rm_walker *w)
{
    rm_search *s = &w->search;
    const uint32_t kind = rm_random_below(&s->random, 100);
    s->q.work += MOVE_WORK;
    const rm_mix *m = &w->ground->mix;
    if (kind < m->recompute) return rm_move_recompute(s, w->limit);
    if (kind < m->recompute + m->forget) return rm_move_forget(s);
    if (kind < m->recompute + m->forget + m->clear) return rm_move_clear(s, w->limit);
    return rm_move_carry(s);
}

static void mutate(rm_walker *w)
{
    rm_search *s = &w->search;
    const uint32_t edits = propose(w);
    w->edits += edits + 1;
    if (edits == 0) return;
    if (!accept(w)) {
        rm_seq_undo(&s->q);
        return;
    }
    rm_seq_flush(&s->q);
    rm_search_keep(s, w->ground->nm->resident_bytes + s->q.memory.max);
}

/* ---- tasks ---- */

static void report(rm_walker *w, int64_t work)
{
    rm_ground *g = w->ground;
    remat_ctx *ctx = g->p->ctx;
    const int64_t before = atomic_fetch_add_explicit(&g->work, work, memory_order_relaxed);
    if (!w->reports) return;
    ctx->limits.work = g->work_before + before + work;
    rm_report(ctx, rm_auto.entry.name, -1, w->search.best_cost, w->search.best_peak);
}

void rm_walker_aim(rm_walker *w, int64_t limit)
{
    w->limit = limit;
    take_stock(w);
}

void rm_walker_load(rm_walker *w, const rm_codes *state, int64_t limit)
{
    w->counted = w->search.q.work;
    rm_search_load(&w->search, state->items, state->n);
    w->edits = 0;
    w->next_respacing = RESPACE;
    rm_walker_aim(w, limit);
}

void rm_walker_batch(rm_walker *w, rm_quota *quota)
{
    rm_seq *q = &w->search.q;
    const int64_t end = q->work + BATCH_WORK;
    for (int i = 0; i < BATCH && q->work < end; i++) mutate(w);
    if (w->edits >= w->next_respacing || q->crowded) {
        rm_search_respace(&w->search);
        take_stock(w);
        w->next_respacing = w->edits + RESPACE;
    }
    const int64_t work = q->work - w->counted;
    w->counted += work;
    quota->work += work;
    report(w, work);
}

void rm_walkers_run(rm_walker *walkers, void (*task)(void *user, uint32_t index), void *user)
{
    rm_ground *ground = walkers[0].ground;
    remat_ctx *ctx = ground->p->ctx;
    const uint32_t n_threads = (uint32_t)ctx->options.threads;
    for (uint32_t i = 0; i < RM_WALKERS; i++) walkers[i].reports = i % n_threads == 0;
    ground->work_before = ctx->limits.work;
    ground->work = 0;
    rm_threads_run(n_threads, RM_WALKERS, task, user);
    ctx->limits.work = ground->work_before + ground->work;
}

const rm_search *rm_walkers_first(const rm_walker *walkers)
{
    const rm_search *first = &walkers[0].search;
    for (uint32_t i = 1; i < RM_WALKERS; i++) {
        const rm_search *other = &walkers[i].search;
        if (rm_search_is_better(first, other->best_peak, other->best_cost)) first = other;
    }
    return first;
}

/* ---- beginning ---- */

static int by_cost(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static remat_status find_median_cost(remat_ctx *ctx, const rm_normal *nm, double *out)
{
    int64_t *costs;
    uint32_t n = 0;
    TRY(RM_SCRATCH(ctx, costs, (size_t)nm->n_ops + 1));
    for (uint32_t op = 0; op < nm->n_ops; op++)
        if (nm->cost[op] > 0) costs[n++] = nm->cost[op];
    qsort(costs, n, sizeof *costs, by_cost);
    *out = n ? (double)costs[n / 2] : 1;
    return REMAT_OK;
}

/* How many ops depend on one another, one after the other, at most. */
static remat_status find_depth(remat_ctx *ctx, const rm_normal *nm, uint32_t *out)
{
    uint32_t *depth;
    TRY(RM_SCRATCH(ctx, depth, nm->n_ops));
    *out = 1;
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        depth[op] = 1;
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++) {
            const uint32_t behind = depth[nm->producer[nm->in[k]]] + 1;
            if (behind > depth[op]) depth[op] = behind;
        }
        if (depth[op] > *out) *out = depth[op];
    }
    return REMAT_OK;
}

remat_status rm_ground_begin(const rm_problem *p, const rm_normal *nm, rm_ground *out)
{
    uint32_t depth;
    assert(nm->n_stores > 0); /* where nothing is stored, there is nothing to search */
    *out = (rm_ground){.p = p, .nm = nm};
    TRY(find_median_cost(p->ctx, nm, &out->unit));
    TRY(find_depth(p->ctx, nm, &depth));
    out->mix = nm->n_ops / depth >= WIDE ? wide_mix : narrow_mix;
    return REMAT_OK;
}

remat_status rm_walker_begin(rm_ground *ground, uint32_t index, const rm_codes *state,
                             rm_walker *out)
{
    remat_ctx *ctx = ground->p->ctx;
    assert(index < RM_WALKERS);
    out->ground = ground;
    out->search.random.state = (uint64_t)ctx->options.seed * RM_WALKERS + index;
    out->search.floor_bytes = ground->p->budget_bytes;
    return rm_search_begin(ctx, &out->search, ground->nm, NULL, state, SPREAD);
}

remat_status rm_seed_is_usable(remat_ctx *ctx, const rm_normal *nm, const rm_codes *seed, bool *out)
{
    uint32_t op;
    const char *fault;
    *out = seed->n > nm->n_ops;
    for (size_t i = 0; i < seed->n; i++) *out &= !rm_is_fetch(nm, seed->items[i]);
    if (!*out) return REMAT_OK;
    TRY(rm_codes_fault(ctx, nm, seed, &op, &fault));
    *out = !fault;
    return REMAT_OK;
}
