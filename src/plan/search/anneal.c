/* anneal.c: auto's search for the cheapest sequence within a budget.
 *
 * Method: simulated annealing by walkers (plan/search/walker.c). In a search from keep-all lambda,
 * the price of a byte over the budget, grows at first. From then on it falls while the state fits,
 * and rises while it does not.
 *
 * Two walkers search at a time, in rounds:
 * 0. They look around the given plan and around a rounding of the bound's program.
 * 1. They start from these and from keep-all in turn.
 * 2. Again and again they go on from the best state of both, one near it and one farther away.
 * Every other time one of them starts from a rounding in the order of the best state's first runs.
 * The best state is polished after each round.
 *
 * Invariant: the answer depends on seed and work, not on the number of threads. */
#include "plan/search/anneal.h"

#include <assert.h>
#include <string.h>

#include "base/exp_log.h"
#include "plan/bound/rounding.h"
#include "plan/search/polish.h"
#include "plan/search/walker.h"

/* ---- what was tuned ---- */

enum {
    MAX_STARTS = 24,     /* of the second round */
    OPS_A_START = 2500,  /* a graph of so many ops gets one start for each second */
    OPS_A_LONG = 1250,   /* the same where starts have far to go */
    ROUNDS = 16,         /* a round is this part of the search, except that of the starts */
    LONGEST_ROUNDED = 4, /* runs an op of a rounding that is still searched from */
};
static const double start_share = 0.5;       /* of the search, for all starts together */
static const double polish_share = 0.02;     /* of the time, left for the last polish */
static const double start_heat = 0.5;        /* in median costs of an op, as all heats */
static const double near_heat = 0.06;        /* of the walker that stays near a good state */
static const double far_heat = 0.3;          /* of the walker that goes farther away */
static const double last_heat = 0.02;        /* of every task */
static const double first_lambda = 0.15;     /* times keep-all's cost a byte of its excess */
static const double lambdas[] = {0.3, 3, 1}; /* times that: starts differ in what memory is worth */
static const double strict = 100;            /* times lambda: see near_start_of */
static const double ramp_share = 0.4;        /* of a task from keep-all, in which lambda grows */
static const double ramp_growth = 30;        /* so many times; a state that fits starts there */
static const double lambda_falls = 0.98;     /* a batch, while the state fits */
static const double lambda_rises = 1.02;     /* a batch, while it does not */
static const double most_lambda = 1e100;     /* never infinite */

/* What a rounding of the bound's program keeps, in percent of a gap that the program keeps at
 * least. In turn: one alone may lead to the same kind of plan always. */
static const unsigned rounded_at[] = {50, 88, 38};

typedef struct annealing {
    rm_ground ground;
    int64_t limit;                /* of memory: budget less resident */
    double lambda;                /* the price of a byte over the budget, to begin with */
    int64_t best_peak, best_cost; /* of the best state of all rounds so far */
    rm_codes rounded;             /* of the bound's program; empty: there is none of use */
    uint32_t n_rounded;           /* times so far */
    rm_walker walkers[RM_WALKERS];
    struct task *tasks; /* of this round; task i is walker i's, modulo their number */
    uint32_t n_tasks;
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

/* ---- one task of one walker ---- */

static void set_temperature(rm_walker *w, const cooling *c, double from_lambda, double share)
{
    w->heat = w->ground->unit * c->first_heat * rm_exp(share * rm_log(last_heat / c->first_heat));
    if (share < c->ramp) w->lambda = from_lambda * rm_exp(share / c->ramp * rm_log(ramp_growth));
    else if (w->excess_now <= 0) w->lambda *= lambda_falls;
    else if (w->lambda < most_lambda) w->lambda *= lambda_rises;
}

static void run_task(const annealing *a, rm_walker *w, task *t)
{
    t->quota.begin_ns = rm_clock_ns();
    rm_walker_load(w, t->start, a->limit);
    if (t->cooling.lambda > 0) w->lambda = t->cooling.lambda * a->lambda;
    const double from_lambda = w->lambda;
    for (double share = 0; share < 1; share = rm_quota_used(&t->quota)) {
        set_temperature(w, &t->cooling, from_lambda, share);
        rm_walker_batch(w, &t->quota);
    }
}

static void run_tasks(void *user, uint32_t i)
{
    annealing *a = user;
    for (uint32_t k = i; k < a->n_tasks; k += RM_WALKERS) run_task(a, &a->walkers[i], &a->tasks[k]);
    rm_search_save(&a->walkers[i].search);
}

/* ---- one round of all walkers ---- */

/* If the best state of all walkers is a new one, it is polished and goes to `best`. Walker 0 lends
 * its slots for that, and goes on from it. */
static remat_status take_best(annealing *a, rm_codes *best)
{
    const rm_problem *p = a->ground.p;
    rm_search *lent = &a->walkers[0].search;
    const rm_search *first = rm_walkers_first(a->walkers);
    if (best->n && first->best_peak == a->best_peak && first->best_cost == a->best_cost)
        return REMAT_OK;
    TRY(rm_search_best(p->ctx, first, best));
    rm_polish_on(p->ctx, &lent->q, p->budget_bytes, best);
    rm_search_load(lent, best->items, best->n);
    a->best_peak = lent->best_peak;
    a->best_cost = lent->best_cost;
    return REMAT_OK;
}

static remat_status run_round(annealing *a, task *tasks, uint32_t n_tasks, rm_codes *best)
{
    a->tasks = tasks;
    a->n_tasks = n_tasks;
    rm_walkers_run(a->walkers, run_tasks, a);
    return take_best(a, best);
}

/* ---- where tasks start ---- */

/* Rounds the bound's program for the order of a state's first runs, if the limits allow it. */
static remat_status round_in_order_of(annealing *a, const rm_codes *state)
{
    remat_ctx *ctx = a->ground.p->ctx;
    if (rm_is_over(ctx)) return REMAT_OK;
    const rm_mark mark = rm_scratch_mark(ctx);
    uint32_t *order;
    TRY(rm_codes_first_runs(ctx, a->ground.nm, state, &order));
    const rm_rounding_options options = {.budget_bytes = a->ground.p->budget_bytes,
                                         .rules = RM_BOUND_RULES,
                                         .order = order,
                                         .percent =
                                             rounded_at[a->n_rounded++ % RM_LEN(rounded_at)]};
    TRY(rm_round_order_bound(ctx, a->ground.nm, &options, &a->rounded));
    rm_scratch_release(ctx, mark);
    if (a->rounded.n > LONGEST_ROUNDED * (size_t)a->ground.nm->n_ops) a->rounded.n = 0;
    return a->rounded.n ? rm_polish(ctx, a->ground.nm, NULL, a->ground.p->budget_bytes, &a->rounded)
                        : REMAT_OK;
}

typedef struct starts { /* the seed is keep-all where there is no better one */
    const rm_codes *keep_all, *seed;
} starts;

/* Near the least memory, where the seed runs more ops twice than not, nothing is found from
 * keep-all, nor from the rounding. All starts are from the seed then, and every other one keeps
 * close to the budget. */
static task near_start_of(uint32_t i, const starts *s)
{
    const double lambda = ramp_growth * lambdas[i % RM_LEN(lambdas)];
    return (task){.start = s->seed, .cooling = {i % 2 ? strict * lambda : lambda, start_heat, 0}};
}

/* Of four starts one is from the seed and one from keep-all. Of the others one or two are from the
 * rounding, if there is one. */
static task start_of(const annealing *a, uint32_t i, const starts *s)
{
    if (2 * s->seed->n > 3 * (size_t)a->ground.nm->n_ops) return near_start_of(i, s);
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

/* Leaves walkers without a sequence if there are too many steps for one. */
static remat_status begin_walkers(annealing *a, const starts *s)
{
    const rm_problem *p = a->ground.p;
    for (uint32_t i = 0; i < RM_WALKERS; i++) {
        rm_walker *w = &a->walkers[i];
        TRY(rm_walker_begin(&a->ground, i, s->seed, w));
        if (!w->search.q.ranges) return REMAT_OK;
        rm_search_load(&w->search, s->keep_all->items, s->keep_all->n);
        rm_spend(p->ctx, w->search.q.work);
    }
    const int64_t excess = rm_profile_excess(&a->walkers[0].search.q.memory, a->limit);
    a->lambda = first_lambda * (double)(p->graph->total_cost + 1) / ((double)excess + 1);
    for (uint32_t i = 0; i < RM_WALKERS; i++) a->walkers[i].lambda = ramp_growth * a->lambda;
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
    const bool far = longest > a->ground.nm->n_ops + (size_t)a->ground.nm->n_ops / 3;
    const double ops = far ? OPS_A_LONG : OPS_A_START,
                 by_size = ops * length_of_search(a->ground.p->ctx) / a->ground.nm->n_ops;
    if (by_size < RM_WALKERS) return RM_WALKERS;
    return by_size > MAX_STARTS ? MAX_STARTS : (uint32_t)by_size;
}

static remat_status search(annealing *a, const starts *s, rm_codes *best)
{
    remat_ctx *ctx = a->ground.p->ctx;
    const bool seeded = s->seed != s->keep_all;
    const uint32_t n_starts = count_starts(a, s->seed);
    const double at_once =
        ctx->options.threads < RM_WALKERS ? (double)ctx->options.threads : RM_WALKERS;
    const rm_quota whole = rm_quota_begin(ctx, 1 - polish_share);
    for (uint32_t round = seeded ? 0 : 1; !rm_is_over(ctx); round++) {
        task tasks[MAX_STARTS];
        const uint32_t n = round == 1 ? n_starts : RM_WALKERS;
        const double share = round == 1 ? start_share : 1.0 / ROUNDS;
        TRY(choose_tasks(a, s, round, n, best, tasks));
        rm_quota quota = rm_quota_part(&whole, share, share);
        const int64_t left_ns = rm_time_left(ctx); /* rounding may have taken some */
        if (quota.most_ns > left_ns) quota.most_ns = left_ns;
        for (uint32_t i = 0; i < n; i++)
            tasks[i].quota = rm_quota_part(&quota, 1.0 / n, at_once / n);
        TRY(run_round(a, tasks, n, best));
    }
    return REMAT_OK;
}

static remat_status anneal(annealing *a, rm_codes *keep_all, const rm_codes *seed, rm_codes *found)
{
    remat_ctx *ctx = a->ground.p->ctx;
    const rm_normal *nm = a->ground.nm;
    bool usable;
    TRY(rm_codes_keep_all(ctx, nm, keep_all));
    TRY(rm_seed_is_usable(ctx, nm, seed, &usable));
    const starts s = {keep_all, usable ? seed : keep_all};
    TRY(begin_walkers(a, &s));
    if (!a->walkers[RM_WALKERS - 1].search.q.ranges) return REMAT_OK;
    TRY(round_in_order_of(a, keep_all));
    return search(a, &s, found);
}

remat_status rm_anneal(const rm_problem *p, const rm_normal *nm, const rm_codes *seed,
                       rm_codes *found)
{
    annealing a = {.limit = p->budget_bytes - nm->resident_bytes};
    rm_codes keep_all = {0};
    TRY(rm_ground_begin(p, nm, &a.ground));
    const remat_status status = anneal(&a, &keep_all, seed, found);
    for (uint32_t i = 0; i < RM_WALKERS; i++) rm_walker_end(&a.walkers[i]);
    RM_VEC_FREE(&p->ctx->heap, keep_all);
    RM_VEC_FREE(&p->ctx->heap, a.rounded);
    return status;
}
