/* anneal.c: auto's search over sequences, whose moves are whole recomputations.
 *
 * Method: simulated annealing. Moves (plan/search/moves.c) recompute a value with all that it
 * needs, forget such a recomputation, carry a step elsewhere between its inputs and its readers, or
 * clear a crowded slot of a value by order alone.
 * A move is kept by Metropolis' rule on
 *
 *     cost + lambda * sum over blocks of slots of (peak of the block - budget)+
 *
 * Here lambda is the price of a byte over the budget. In a search from keep-all it grows at first.
 * From then on it falls while the state fits, and rises while it does not.
 *
 * Two walkers search at a time, in rounds:
 * 0. They look around the given plan and around a rounding of the bound's program.
 * 1. They start from these and from keep-all in turn.
 * 2. Again and again they go on from the best state of both, one near it and one farther away.
 * Every other time one of them starts from a rounding in the order of the best state's first runs.
 * The best state is polished after each round.
 *
 * Invariants: the answer depends on seed and work, not on the number of threads. Integers decide
 * what fits; doubles only weigh.
 *
 * Cost: work is what the sequences count (sim/sequence.h). Memory: O(slots). */
#include "plan/search/anneal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/exp_log.h"
#include "base/threads.h"
#include "plan/bound/rounding.h"
#include "plan/search/moves.h"
#include "plan/search/polish.h"

/* ---- what was tuned ---- */

enum {
    BATCH = 256,          /* moves between looks at the limits */
    BATCH_WORK = 1 << 20, /* operations between them, where moves are large */
    RESPACE = 64 * BATCH, /* edits between respacings */
    SPREAD = 10,          /* slots a step: whole recomputations want room side by side */
    WALKERS = 2,          /* that search at a time, whatever the number of threads */
    MAX_STARTS = 24,      /* of the second round */
    OPS_A_START = 2500,   /* a graph of so many ops gets one start for each second */
    OPS_A_LONG = 1250,    /* the same where starts have far to go */
    ROUNDS = 16,          /* a round is this part of the search, except that of the starts */
    WIDE = 3,             /* times as many ops as the longest path has: the graph is wide */
    LONGEST_ROUNDED = 4,  /* runs an op of a rounding that is still searched from */
    MOVE_WORK = 48,       /* operations of a move, besides what it touches */
};
typedef struct mix { /* percents of the moves; the rest carry */
    uint32_t recompute, forget, clear;
} mix;
/* In a wide graph order is worth as much as recomputation. In others there is little to clear, and
 * a mix with it was worse on some. */
static const mix narrow_mix = {38, 22, 0}, wide_mix = {26, 22, 30};
static const double start_share = 0.5;       /* of the search, for all starts together */
static const double polish_share = 0.02;     /* of the time, left for the last polish */
static const double step_cost = 1e-3;        /* of a median op; else free ops would run for ever */
static const double start_heat = 0.5;        /* in median costs of an op, as all heats */
static const double near_heat = 0.06;        /* of the walker that stays near a good state */
static const double far_heat = 0.3;          /* of the walker that goes farther away */
static const double last_heat = 0.02;        /* of every task */
static const double first_lambda = 0.15;     /* times keep-all's cost a byte of its excess */
static const double lambdas[] = {0.3, 3, 1}; /* times that: starts differ in what memory is worth */
static const double ramp_share = 0.4;        /* of a task from keep-all, in which lambda grows */
static const double ramp_growth = 30;        /* so many times; a state that fits starts there */
static const double lambda_falls = 0.98;     /* a batch, while the state fits */
static const double lambda_rises = 1.02;     /* a batch, while it does not */
static const double most_lambda = 1e100;     /* never infinite */

typedef struct annealing { /* what walkers share */
    const rm_problem *p;
    rm_normal nm;
    int64_t limit;                /* of the profile: budget less resident */
    mix mix;                      /* of the moves */
    double unit;                  /* median cost of an op */
    double lambda;                /* the price of a byte over the budget, to begin with */
    int64_t work_before;          /* of the context, before this round */
    _Atomic int64_t work;         /* of all walkers in this round */
    int64_t best_peak, best_cost; /* of the best state of all rounds so far */
    uint32_t *order;              /* of first runs, that the bound's program was last solved for */
    rm_codes rounded;             /* its rounding; empty: there is none of use */
} annealing;

typedef struct cooling {
    double lambda; /* times the search's; 0: as the walker left it */
    double first_heat;
    double ramp; /* the share of the task in which lambda grows */
} cooling;

typedef struct task {
    const rm_codes *start;
    cooling cooling;
    rm_quota quota;
} task;

typedef struct walker {
    annealing *a;
    rm_search search;
    double lambda, heat;
    double cost_now; /* of the state, with its steps */
    int64_t excess_now;
    int64_t edits;          /* done in this task */
    task tasks[MAX_STARTS]; /* of this round */
    uint32_t n_tasks;
    bool reports; /* it is in the calling thread */
} walker;

/* ---- one move ---- */

static double cost_of(const walker *w)
{
    return (double)w->search.q.cost + step_cost * w->a->unit * w->search.q.n_steps;
}

static void take_stock(walker *w)
{
    w->cost_now = cost_of(w);
    w->excess_now = rm_profile_excess(&w->search.q.memory, w->a->limit);
}

/* Metropolis' rule. A random number is drawn first: a move whose cost alone is too much is refused
 * before memory is looked at. */
static bool accept(walker *w)
{
    rm_seq *q = &w->search.q;
    const double limit = w->cost_now + w->lambda * (double)w->excess_now -
                         w->heat * rm_log(rm_random_unit(&w->search.random) + 1e-12);
    const double cost = cost_of(w);
    if (cost > limit) return false;
    const int64_t excess = rm_seq_excess(q, w->a->limit, w->excess_now);
    if (cost + w->lambda * (double)excess > limit) return false;
    w->cost_now = cost;
    w->excess_now = excess;
    return true;
}

/* A random move. Returns the number of its edits. */
static uint32_t propose(walker *w)
{
    rm_search *s = &w->search;
    const uint32_t kind = rm_random_below(&s->random, 100);
    s->q.work += MOVE_WORK;
    const mix *m = &w->a->mix;
    if (kind < m->recompute) return rm_move_recompute(s, w->a->limit);
    if (kind < m->recompute + m->forget) return rm_move_forget(s);
    if (kind < m->recompute + m->forget + m->clear) return rm_move_clear(s, w->a->limit);
    return rm_move_carry(s);
}

static void mutate(walker *w)
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
    rm_search_keep(s, w->a->nm.resident_bytes + s->q.memory.max);
}

/* ---- one task of one walker ---- */

static void report(walker *w, int64_t work)
{
    annealing *a = w->a;
    remat_ctx *ctx = a->p->ctx;
    const int64_t before = atomic_fetch_add_explicit(&a->work, work, memory_order_relaxed);
    if (!w->reports) return;
    ctx->limits.work = a->work_before + before + work;
    rm_report(ctx, rm_auto.entry.name, -1, w->search.best_cost, w->search.best_peak);
}

static void set_temperature(walker *w, const cooling *c, double from_lambda, double share)
{
    w->heat = w->a->unit * c->first_heat * rm_exp(share * rm_log(last_heat / c->first_heat));
    if (share < c->ramp) w->lambda = from_lambda * rm_exp(share / c->ramp * rm_log(ramp_growth));
    else if (w->excess_now <= 0) w->lambda *= lambda_falls;
    else if (w->lambda < most_lambda) w->lambda *= lambda_rises;
}

static void run_batch(walker *w)
{
    const int64_t end = w->search.q.work + BATCH_WORK;
    for (int i = 0; i < BATCH && w->search.q.work < end; i++) mutate(w);
}

static void run_task(walker *w, task *t)
{
    rm_seq *q = &w->search.q;
    int64_t next_respacing = RESPACE, counted = q->work;
    t->quota.begin_ns = rm_clock_ns();
    rm_search_load(&w->search, t->start->items, t->start->n);
    if (t->cooling.lambda > 0) w->lambda = t->cooling.lambda * w->a->lambda;
    const double from_lambda = w->lambda;
    w->edits = 0;
    take_stock(w);
    for (double share = 0; share < 1; share = rm_quota_used(&t->quota)) {
        set_temperature(w, &t->cooling, from_lambda, share);
        run_batch(w);
        if (w->edits >= next_respacing || q->crowded) {
            rm_search_respace(&w->search);
            take_stock(w);
            next_respacing = w->edits + RESPACE;
        }
        const int64_t work = q->work - counted;
        counted += work;
        t->quota.work += work;
        report(w, work);
    }
}

static void run_tasks(void *user, uint32_t i)
{
    walker *w = &((walker *)user)[i];
    for (uint32_t k = 0; k < w->n_tasks; k++) run_task(w, &w->tasks[k]);
    rm_search_save(&w->search);
}

/* ---- one round of all walkers ---- */

/* If the best state of all walkers is a new one, it is polished and goes to `best`. Walker 0 lends
 * its slots for that, and goes on from it. */
static remat_status take_best(annealing *a, walker *walkers, rm_codes *best)
{
    const rm_search *first = &walkers[0].search;
    for (uint32_t i = 1; i < WALKERS; i++)
        if (rm_search_is_better(first, walkers[i].search.best_peak, walkers[i].search.best_cost))
            first = &walkers[i].search;
    if (best->n && first->best_peak == a->best_peak && first->best_cost == a->best_cost)
        return REMAT_OK;
    TRY(rm_search_best(a->p->ctx, first, best));
    rm_polish_on(a->p->ctx, &walkers[0].search.q, a->p->budget_bytes, best);
    rm_search_load(&walkers[0].search, best->items, best->n);
    a->best_peak = walkers[0].search.best_peak;
    a->best_cost = walkers[0].search.best_cost;
    return REMAT_OK;
}

/* Task i goes to walker i mod WALKERS. */
static remat_status run_round(annealing *a, walker *walkers, const task *tasks, uint32_t n_tasks,
                              rm_codes *best)
{
    remat_ctx *ctx = a->p->ctx;
    const uint32_t n_threads = (uint32_t)ctx->options.threads;
    for (uint32_t i = 0; i < WALKERS; i++) {
        walkers[i].n_tasks = 0;
        walkers[i].reports = i % n_threads == 0;
    }
    for (uint32_t i = 0; i < n_tasks; i++) {
        walker *w = &walkers[i % WALKERS];
        assert(w->n_tasks < MAX_STARTS);
        w->tasks[w->n_tasks++] = tasks[i];
    }
    a->work_before = ctx->limits.work;
    a->work = 0;
    rm_threads_run(n_threads, WALKERS, run_tasks, walkers);
    ctx->limits.work = a->work_before + a->work;
    return take_best(a, walkers, best);
}

/* ---- where tasks start ---- */

/* Rounds the bound's program for the order of a state's first runs, if that is another than the
 * last time and the limits allow it. */
static remat_status round_in_order_of(annealing *a, const rm_codes *state)
{
    remat_ctx *ctx = a->p->ctx;
    const rm_mark mark = rm_scratch_mark(ctx);
    uint32_t *order;
    TRY(rm_codes_first_runs(ctx, &a->nm, state, &order));
    const bool same = memcmp(order, a->order, a->nm.n_ops * sizeof *order) == 0;
    if (!same) memcpy(a->order, order, a->nm.n_ops * sizeof *order);
    rm_scratch_release(ctx, mark);
    if (same || rm_is_over(ctx)) return REMAT_OK;
    TRY(rm_round_order_bound(ctx, &a->nm, a->p->budget_bytes, RM_BOUND_RULES, a->order,
                             &a->rounded));
    if (a->rounded.n > LONGEST_ROUNDED * (size_t)a->nm.n_ops) a->rounded.n = 0;
    return a->rounded.n ? rm_polish(ctx, &a->nm, NULL, a->p->budget_bytes, &a->rounded) : REMAT_OK;
}

typedef struct starts { /* the seed is keep-all where there is no better one */
    const rm_codes *keep_all, *seed;
} starts;

/* Of four starts one is from the seed and one from keep-all. Of the others one or two are from the
 * rounding, if there is one. */
static task start_of(const annealing *a, uint32_t i, const starts *s)
{
    const rm_codes *rounded = a->rounded.n ? &a->rounded : NULL;
    const rm_codes *third = rounded && i < 4 ? rounded : s->keep_all,
                   *fourth = rounded ? rounded : s->seed;
    const rm_codes *const from[] = {s->seed, s->keep_all, third, fourth};
    const double lambda = lambdas[i % RM_LEN(lambdas)];
    if (from[i % 4] == s->keep_all)
        return (task){.start = s->keep_all, .cooling = {lambda, start_heat, ramp_share}};
    return (task){.start = from[i % 4], .cooling = {ramp_growth * lambda, start_heat, 0}};
}

static task reheat_of(uint32_t i, const rm_codes *state)
{
    return (task){.start = state, .cooling = {0, i % 2 ? near_heat : far_heat, 0}};
}

/* The tasks of a round: see the head of this file. */
static remat_status choose_tasks(annealing *a, const starts *s, uint32_t round, uint32_t n,
                                 const rm_codes *best, task *tasks)
{
    const bool anew = round >= 2 && round % 2 == 0;
    if (anew) TRY(round_in_order_of(a, best));
    for (uint32_t i = 0; i < n; i++) {
        const bool from_rounded = (round == 0 && i == 1) || (anew && i == 0);
        const rm_codes *state = round ? best : s->seed;
        if (from_rounded && a->rounded.n) state = &a->rounded;
        tasks[i] = round == 1 ? start_of(a, i, s) : reheat_of(i, state);
    }
    return REMAT_OK;
}

/* ---- the search ---- */

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

static remat_status choose_mix(annealing *a)
{
    uint32_t depth;
    TRY(find_depth(a->p->ctx, &a->nm, &depth));
    a->mix = a->nm.n_ops / depth >= WIDE ? wide_mix : narrow_mix;
    return REMAT_OK;
}

/* A walker is left without a sequence if there are too many steps for one. */
static remat_status begin_walkers(annealing *a, walker *walkers, const starts *s)
{
    remat_ctx *ctx = a->p->ctx;
    for (uint32_t i = 0; i < WALKERS; i++) {
        walker *w = &walkers[i];
        w->a = a;
        w->search.random.state = (uint64_t)ctx->options.seed * WALKERS + i;
        w->search.floor_bytes = a->p->budget_bytes;
        TRY(rm_search_begin(ctx, &w->search, &a->nm, NULL, s->seed, SPREAD));
        if (!w->search.q.ranges) return REMAT_OK;
        rm_search_load(&w->search, s->keep_all->items, s->keep_all->n);
        rm_spend(ctx, w->search.q.work);
    }
    a->lambda = first_lambda * (double)(a->p->graph->total_cost + 1) /
                ((double)rm_profile_excess(&walkers[0].search.q.memory, a->limit) + 1);
    for (uint32_t i = 0; i < WALKERS; i++) walkers[i].lambda = ramp_growth * a->lambda;
    return REMAT_OK;
}

/* In seconds, by the work or by the clock. */
static double length_of_search(const remat_ctx *ctx)
{
    const int64_t work = rm_work_left(ctx), ns = rm_time_left(ctx);
    if (work != RM_NO_LIMIT) return (double)work / RM_SECOND;
    return ns != RM_NO_LIMIT ? (double)ns * 1e-9 : 1;
}

/* Where the plans at hand run a third of all ops again, the budget is near the least peak. Starts
 * that cool slowly find cheaper plans there: zoo:resnet50 at its least peak 35 % instead of 38 %.
 * Two starts alone missed the budget of zoo:mobilenet now and then. */
static uint32_t count_starts(const annealing *a, const rm_codes *seed)
{
    const size_t longest = seed->n > a->rounded.n ? seed->n : a->rounded.n;
    const bool far = longest > a->nm.n_ops + (size_t)a->nm.n_ops / 3;
    const double ops = far ? OPS_A_LONG : OPS_A_START,
                 by_size = ops * length_of_search(a->p->ctx) / a->nm.n_ops;
    if (by_size < WALKERS) return WALKERS;
    return by_size > MAX_STARTS ? MAX_STARTS : (uint32_t)by_size;
}

static remat_status search(annealing *a, walker *walkers, const starts *s, rm_codes *best)
{
    remat_ctx *ctx = a->p->ctx;
    const bool seeded = s->seed != s->keep_all;
    const uint32_t n_starts = count_starts(a, s->seed);
    const double at_once = ctx->options.threads < WALKERS ? (double)ctx->options.threads : WALKERS;
    const rm_quota whole = rm_quota_begin(ctx, 1 - polish_share);
    for (uint32_t round = seeded ? 0 : 1; !rm_is_over(ctx); round++) {
        task tasks[MAX_STARTS];
        const uint32_t n = round == 1 ? n_starts : WALKERS;
        const double share = round == 1 ? start_share : 1.0 / ROUNDS;
        TRY(choose_tasks(a, s, round, n, best, tasks));
        rm_quota quota = rm_quota_part(&whole, share, share);
        const int64_t left_ns = rm_time_left(ctx); /* rounding may have taken some */
        if (quota.most_ns > left_ns) quota.most_ns = left_ns;
        for (uint32_t i = 0; i < n; i++)
            tasks[i].quota = rm_quota_part(&quota, 1.0 / n, at_once / n);
        TRY(run_round(a, walkers, tasks, n, best));
    }
    return REMAT_OK;
}

/* Can the search begin from the seed? It must be longer than keep-all and have no fetches. It must
 * be valid over `nm`, which may have more pins than the graph that it was made for. */
static remat_status check_seed(remat_ctx *ctx, const rm_normal *nm, const rm_codes *seed,
                               bool *usable)
{
    uint32_t op;
    const char *fault;
    *usable = seed->n > nm->n_ops;
    for (size_t i = 0; i < seed->n; i++) *usable &= !rm_is_fetch(nm, seed->items[i]);
    if (!*usable) return REMAT_OK;
    TRY(rm_codes_fault(ctx, nm, seed, &op, &fault));
    *usable = !fault;
    return REMAT_OK;
}

static remat_status anneal(annealing *a, walker *walkers, rm_codes *keep_all, const rm_codes *seed,
                           rm_codes *found)
{
    remat_ctx *ctx = a->p->ctx;
    bool usable;
    TRY(find_median_cost(ctx, &a->nm, &a->unit));
    TRY(choose_mix(a));
    TRY(rm_codes_keep_all(ctx, &a->nm, keep_all));
    TRY(check_seed(ctx, &a->nm, seed, &usable));
    const starts s = {keep_all, usable ? seed : keep_all};
    TRY(begin_walkers(a, walkers, &s));
    if (!walkers[WALKERS - 1].search.q.ranges) return REMAT_OK;
    TRY(RM_SCRATCH(ctx, a->order, a->nm.n_ops));
    TRY(round_in_order_of(a, keep_all));
    return search(a, walkers, &s, found);
}

remat_status rm_anneal(const rm_problem *p, const rm_normal *nm, const rm_codes *seed,
                       rm_codes *found)
{
    remat_ctx *ctx = p->ctx;
    assert(nm->n_stores > 0); /* where nothing is stored, there is nothing to search */
    annealing a = {.p = p, .nm = *nm, .limit = p->budget_bytes - nm->resident_bytes};
    walker walkers[WALKERS] = {0};
    rm_codes keep_all = {0};
    const remat_status status = anneal(&a, walkers, &keep_all, seed, found);
    for (uint32_t i = 0; i < WALKERS; i++) rm_search_end(&walkers[i].search);
    RM_VEC_FREE(&ctx->heap, keep_all);
    RM_VEC_FREE(&ctx->heap, a.rounded);
    return status;
}
