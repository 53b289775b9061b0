/* anneal.c: a search over sequences whose moves are whole recomputations.
 *
 * Its moves recompute a value with all that it needs, forget such a recomputation, and carry a step
 * elsewhere between its inputs and its readers (plan/search/moves.c). What is minimised is cost +
 * lambda * sum over blocks of slots of (peak of the block - budget)+, by Metropolis' rule; lambda
 * follows whether the state fits, after it has grown thirtyfold in a search from keep-all. Two
 * walkers look around the given plan and a rounding of the bound's program, go from these and from
 * keep-all in turn, and then again and again from the best state of both, one near it and one
 * farther, or from a rounding in the order of its first runs. The best is polished after each
 * round. What they do does not depend on the number of threads.
 *
 * Work is counted in edits (steps put in, taken out or moved), and one for each move. Integers
 * decide what fits; doubles only weigh. */
#include "plan/search/anneal.h"

#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "base/exp_log.h"
#include "plan/search/moves.h"
#include "plan/bound/rounding.h"
#include "plan/search/polish.h"

enum {
    BATCH = 256,          /* moves between looks at the limits */
    RESPACE = 64 * BATCH, /* edits between respacings */
    SPREAD = 10,          /* slots a step: whole recomputations want room side by side */
    WALKERS = 2, /* states that are searched from at a time, whatever the number of threads */
    MAX_STARTS = 24,
    ROUNDS = 16, /* parts of a search; the starts together take half of them */
};

typedef struct annealing { /* what walkers share */
    const rm_problem *p;
    rm_normal nm;
    int64_t limit;       /* of the profile: budget less resident */
    double unit;         /* median cost of an op */
    double step_cost;    /* a little for each step, or free ops would be run for ever */
    double first_lambda; /* weight of a byte over the budget, to begin with */
    int64_t started_ns;
    _Atomic int64_t tally;        /* edits of all walkers */
    int64_t best_peak, best_cost; /* of the best state of all rounds so far */
    uint32_t *order;              /* of first runs, that the bound's program was last solved for */
    rm_codes rounded;             /* its rounding; empty: there is none of use */
} annealing;

typedef struct cooling {
    double first_lambda;          /* times the search's */
    double first_heat, last_heat; /* in units */
    double ramp;                  /* the share of the run in which lambda grows thirtyfold */
} cooling;

typedef struct task {
    const rm_codes *start;
    cooling cooling;
    int64_t edits, time_ns; /* the most it may take */
} task;

typedef struct walker {
    annealing *c;
    rm_search search;
    double lambda, heat;
    double cost_now; /* of the state, with its steps */
    int64_t excess_now;
    int64_t edits;          /* done in this task */
    task tasks[MAX_STARTS]; /* of this round */
    uint32_t n_tasks;
    bool reports; /* it is in the calling thread */
} walker;

/* ---- annealing ---- */

static double cost_of(const walker *w)
{
    return (double)w->search.q.cost + w->c->step_cost * w->search.q.n_steps;
}

static void take_stock(walker *w)
{
    w->cost_now = cost_of(w);
    w->excess_now = rm_profile_excess(&w->search.q.memory, w->c->limit);
}

/* Metropolis' rule; what is accepted is the state at hand from then on. */
static bool accept(walker *w)
{
    rm_seq *q = &w->search.q;
    const double limit = w->cost_now + w->lambda * (double)w->excess_now -
                         w->heat * rm_log(rm_random_unit(&w->search.random) + 1e-12);
    const double cost = cost_of(w);
    if (cost > limit) return false;
    const int64_t excess = rm_seq_excess(q, w->c->limit, w->excess_now);
    if (cost + w->lambda * (double)excess > limit) return false;
    w->cost_now = cost;
    w->excess_now = excess;
    return true;
}

static void mutate(walker *w)
{
    rm_search *s = &w->search;
    const uint32_t kind = rm_random_below(&s->random, 100);
    const uint32_t edits = kind < 38   ? rm_move_recompute(s, w->c->limit)
                           : kind < 60 ? rm_move_forget(s)
                                       : rm_move_carry(s);
    w->edits += edits + 1;
    if (edits == 0) return;
    if (!accept(w)) {
        rm_seq_undo(&s->q);
        return;
    }
    rm_seq_flush(&s->q);
    rm_search_keep(s, w->c->nm.resident_bytes + s->q.memory.max);
}

/* The share of its task that the walker has done; 1 and more: it ends. */
static double share_done(const walker *w, const task *t, int64_t begun_ns)
{
    if (atomic_load_explicit(&w->c->p->ctx->stop, memory_order_relaxed)) return 1;
    const double by_edits = (double)w->edits / (double)t->edits;
    if (t->time_ns == INT64_MAX) return by_edits;
    const double by_time = (double)(rm_clock_ns() - begun_ns) / (double)t->time_ns;
    return by_time > by_edits ? by_time : by_edits;
}

static void report(walker *w, int64_t edits)
{
    remat_ctx *ctx = w->c->p->ctx;
    const int64_t before = atomic_fetch_add_explicit(&w->c->tally, edits, memory_order_relaxed);
    if (!w->reports) return;
    ctx->work = before + edits;
    rm_report(ctx, rm_auto.entry.name, rm_permille_used(ctx, w->c->started_ns), w->search.best_cost,
              w->search.best_peak);
}

static void run_task(walker *w, const task *t)
{
    const annealing *c = w->c;
    const int64_t begun_ns = rm_clock_ns();
    int64_t next_respacing = RESPACE;
    rm_search_load(&w->search, t->start->items, t->start->n);
    const double first_lambda = w->lambda =
        t->cooling.first_lambda > 0 ? t->cooling.first_lambda * c->first_lambda : w->lambda;
    w->edits = 0;
    take_stock(w);
    for (double share = 0; share < 1; share = share_done(w, t, begun_ns)) {
        const int64_t before = w->edits;
        w->heat = c->unit * t->cooling.first_heat *
                  rm_exp(share * rm_log(t->cooling.last_heat / t->cooling.first_heat));
        if (share < t->cooling.ramp)
            w->lambda =
                first_lambda * rm_exp(share / t->cooling.ramp * 3.4011973816621555); /* ln 30 */
        else
            w->lambda *= w->excess_now <= 0  ? 0.98
                         : w->lambda < 1e100 ? 1.02
                                             : 1; /* never infinite */
        for (int i = 0; i < BATCH; i++) mutate(w);
        if (w->edits >= next_respacing || w->search.q.crowded) {
            rm_search_respace(&w->search);
            take_stock(w);
            next_respacing = w->edits + RESPACE;
        }
        report(w, w->edits - before);
    }
}

static void run_tasks(void *user, uint32_t i)
{
    walker *w = &((walker *)user)[i];
    for (uint32_t k = 0; k < w->n_tasks; k++) run_task(w, &w->tasks[k]);
    rm_search_save(&w->search);
}

static int by_cost(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static remat_status set_scales(annealing *c)
{
    remat_ctx *ctx = c->p->ctx;
    int64_t *costs;
    uint32_t n = 0;
    TRY(RM_SCRATCH(ctx, costs, c->nm.n_ops + 1));
    for (uint32_t op = 0; op < c->nm.n_ops; op++)
        if (c->nm.cost[op] > 0) costs[n++] = c->nm.cost[op];
    qsort(costs, n, sizeof *costs, by_cost);
    c->unit = n ? (double)costs[n / 2] : 1;
    c->step_cost = c->unit * 1e-3;
    return REMAT_OK;
}

/* ---- the search ---- */

/* The best state of all walkers, if it is a new one, goes to `best`, polished in the slots of a
 * walker that then knows it too. */
static remat_status take_best(annealing *c, walker *walkers, rm_codes *best)
{
    const rm_search *first = &walkers[0].search;
    for (uint32_t i = 1; i < WALKERS; i++)
        if (rm_search_is_better(first, walkers[i].search.best_peak, walkers[i].search.best_cost))
            first = &walkers[i].search;
    if (best->n && first->best_peak == c->best_peak && first->best_cost == c->best_cost)
        return REMAT_OK;
    TRY(rm_search_best(c->p->ctx, first, best));
    rm_polish_on(c->p->ctx, &walkers[0].search.q, c->p->budget_bytes, best);
    rm_search_load(&walkers[0].search, best->items, best->n);
    c->best_peak = walkers[0].search.best_peak;
    c->best_cost = walkers[0].search.best_cost;
    return REMAT_OK;
}

/* One round: task i goes to walker i mod WALKERS. */
static remat_status run_round(annealing *c, walker *walkers, const task *tasks, uint32_t n_tasks,
                              rm_codes *best)
{
    remat_ctx *ctx = c->p->ctx;
    const uint32_t n_threads = (uint32_t)ctx->options.threads;
    for (uint32_t i = 0; i < WALKERS; i++)
        walkers[i].n_tasks = 0, walkers[i].reports = i % n_threads == 0;
    for (uint32_t i = 0; i < n_tasks; i++)
        walkers[i % WALKERS].tasks[walkers[i % WALKERS].n_tasks++] = tasks[i];
    rm_threads_run(n_threads, WALKERS, run_tasks, walkers);
    ctx->work = c->tally;
    return take_best(c, walkers, best);
}

/* The bound's program for the order of a state's first runs, if that is another than the last time,
 * and there is time. */
static remat_status round_in_order_of(annealing *c, const rm_codes *state)
{
    remat_ctx *ctx = c->p->ctx;
    const rm_mark mark = rm_scratch_mark(ctx);
    uint32_t *order;
    TRY(rm_codes_first_runs(ctx, &c->nm, state, &order));
    const bool same = memcmp(order, c->order, c->nm.n_ops * sizeof *order) == 0;
    if (!same) memcpy(c->order, order, c->nm.n_ops * sizeof *order);
    rm_scratch_release(ctx, mark);
    if (same || rm_is_late(ctx)) return REMAT_OK;
    TRY(rm_round_order_bound(ctx, &c->nm, c->p->budget_bytes, RM_BOUND_RULES, c->order,
                             &c->rounded));
    if (c->rounded.n > 4 * (size_t)c->nm.n_ops) c->rounded.n = 0; /* long sequences are slow */
    return c->rounded.n ? rm_polish(ctx, &c->nm, NULL, c->p->budget_bytes, &c->rounded) : REMAT_OK;
}

static task start_of(const annealing *c, uint32_t i, bool seeded, const rm_codes *seed,
                     const rm_codes *keep_all)
{
    static const double dear[] = {0.3, 3, 1}; /* starts differ in what memory is worth */
    const bool rounds = c->rounded.n > 0;
    const rm_codes *third = rounds && i < 4 ? &c->rounded : keep_all,
                   *fourth = rounds ? &c->rounded : seed;
    const rm_codes *from = i % 4 == 0 ? seed : i % 4 == 1 ? keep_all : i % 4 == 2 ? third : fourth;
    if (from == keep_all || (from == seed && !seeded))
        return (task){.start = keep_all, .cooling = {dear[i % 3], 0.5, 0.02, 0.4}};
    return (task){.start = from,
                  .cooling = {30 * dear[i % 3], 0.5, 0.02, 0}}; /* it fits, or nearly: no ramp */
}

/* One walker looks near the state, the other farther. */
static task reheat_of(uint32_t i, const rm_codes *state)
{
    return (task){.start = state, .cooling = {0, i % 2 ? 0.06 : 0.3, 0.02, 0}};
}

static remat_status begin_walkers(annealing *c, walker *walkers, const rm_codes *keep_all,
                                  const rm_codes *longest)
{
    remat_ctx *ctx = c->p->ctx;
    for (uint32_t i = 0; i < WALKERS; i++) {
        walker *w = &walkers[i];
        w->c = c;
        w->search.random.state = (uint64_t)ctx->options.seed * WALKERS + i;
        w->search.floor_bytes = c->p->budget_bytes;
        TRY(rm_search_begin(ctx, &w->search, &c->nm, NULL, longest, SPREAD));
        if (!w->search.q.ranges) return REMAT_OK;
        rm_search_load(&w->search, keep_all->items, keep_all->n);
    }
    c->first_lambda = 0.15 * (double)(c->p->graph->total_cost + 1) /
                      ((double)rm_profile_excess(&walkers[0].search.q.memory, c->limit) + 1);
    for (uint32_t i = 0; i < WALKERS; i++) walkers[i].lambda = 30 * c->first_lambda;
    return REMAT_OK;
}

/* A first look around the seed; starts, for half of the work; then reheats of the best, and in
 * every other round of a new rounding. */
static remat_status search(annealing *c, walker *walkers, const rm_codes *keep_all,
                           const rm_codes *seed, rm_codes *best)
{
    remat_ctx *ctx = c->p->ctx;
    const bool seeded = seed->n > keep_all->n;
    TRY(begin_walkers(c, walkers, keep_all, seeded ? seed : keep_all));
    if (!walkers[WALKERS - 1].search.q.ranges) return REMAT_OK;
    TRY(RM_SCRATCH(ctx, c->order, c->nm.n_ops));
    TRY(round_in_order_of(c, keep_all));
    c->started_ns = rm_clock_ns();
    const bool timed = ctx->deadline_ns != INT64_MAX;
    const double ns =
        timed ? 0.98 * (double)(ctx->deadline_ns - c->started_ns) : 0; /* the rest: to polish */
    const double edits = timed && ctx->work_limit == INT64_MAX ? RM_ANNEAL_SECOND * ns * 1e-9
                                                               : (double)ctx->work_limit;
    const double by_size = 2500 * (edits / RM_ANNEAL_SECOND) / c->nm.n_ops;
    const uint32_t n_starts = by_size < WALKERS      ? WALKERS
                              : by_size > MAX_STARTS ? MAX_STARTS
                                                     : (uint32_t)by_size;
    const double at_once = ctx->options.threads < WALKERS ? (double)ctx->options.threads : WALKERS;
    for (uint32_t round = seeded ? 0 : 1; !rm_spend(ctx, 0); round++) {
        task tasks[MAX_STARTS];
        const uint32_t n = round == 1 ? n_starts : WALKERS;
        const double share = round == 1 ? 0.5 : 1.0 / ROUNDS;
        const bool anew = round >= 2 && round % 2 == 0;
        if (anew) TRY(round_in_order_of(c, best));
        const uint32_t from_rounded = round == 0 ? 1
                                      : anew     ? 0
                                                 : REMAT_NONE; /* the walker that goes from there */
        const double left = timed ? (double)(ctx->deadline_ns - rm_clock_ns())
                                  : 0; /* none, if rounding has taken it */
        const double task_ns = left > 0 ? (ns * share < left ? ns * share : left) * at_once / n : 0;
        for (uint32_t i = 0; i < n; i++) {
            tasks[i] = round == 1                          ? start_of(c, i, seeded, seed, keep_all)
                       : i == from_rounded && c->rounded.n ? reheat_of(i, &c->rounded)
                                                           : reheat_of(i, round ? best : seed);
            tasks[i].edits =
                ctx->work_limit == INT64_MAX ? INT64_MAX : (int64_t)(edits * share / n) + 1;
            tasks[i].time_ns = timed ? (int64_t)task_ns + 1 : INT64_MAX;
        }
        TRY(run_round(c, walkers, tasks, n, best));
    }
    return REMAT_OK;
}

/* Can the search begin from it? Not with fetches, and not where `nm` has more rules than the graph
 * that it was made for. */
static remat_status check_seed(remat_ctx *ctx, const rm_normal *nm, const rm_codes *seed,
                               bool *usable)
{
    uint32_t op;
    const char *fault;
    *usable = seed->n > 0;
    for (size_t i = 0; i < seed->n; i++) *usable &= !rm_is_fetch(nm, seed->items[i]);
    if (!*usable) return REMAT_OK;
    TRY(rm_codes_fault(ctx, nm, seed, &op, &fault));
    *usable = !fault;
    return REMAT_OK;
}

remat_status rm_anneal(const rm_problem *p, const rm_normal *nm, const rm_codes *seed,
                       rm_codes *found)
{
    remat_ctx *ctx = p->ctx;
    annealing c = {.p = p, .nm = *nm, .limit = p->budget_bytes - nm->resident_bytes};
    walker walkers[WALKERS] = {0};
    rm_codes keep_all = {0};
    TRY(set_scales(&c));
    bool usable = false;
    remat_status status = rm_codes_keep_all(ctx, nm, &keep_all);
    if (status == REMAT_OK) status = check_seed(ctx, nm, seed, &usable);
    if (status == REMAT_OK)
        status = search(&c, walkers, &keep_all, usable ? seed : &keep_all, found);
    for (uint32_t i = 0; i < WALKERS; i++) rm_search_end(&walkers[i].search);
    RM_VEC_FREE(&ctx->heap, keep_all);
    RM_VEC_FREE(&ctx->heap, c.rounded);
    return status;
}
