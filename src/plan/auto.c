/* auto.c: the best plan of all that is there, improved.
 *
 * The strategies that take milliseconds (rotor, mincut) go first; then a search over sequences, started from the best of them and from
 * keep-all in turn, and again and again from its own best. Its moves recompute a value with all that it needs, forget such a
 * recomputation (plan/closure.c), and slide a step between its inputs and its readers.
 *
 * What is minimised is cost + lambda * sum over blocks of slots of (peak of the block - budget)+, by Metropolis' rule; lambda
 * starts low, grows thirtyfold, and then follows whether the state fits.
 *
 * Work is counted in edits (steps put in or taken out). Integers decide what fits; doubles only weigh. */
#include <stdlib.h>

#include "base/real.h"
#include "plan/closure.h"
#include "plan/flow_seed.h"
#include "plan/planner.h"
#include "plan/polish.h"
#include "plan/search.h"

enum {
    BATCH = 256,          /* moves between looks at the limits */
    RESPACE = 64 * BATCH, /* edits between respacings */
    MAX_STARTS = 6,
    A_SECOND = 3000000 /* edits */
};

typedef struct climb {
    const rm_problem *p;
    rm_normal nm;
    rm_search search;
    int64_t limit;    /* of the profile: budget less resident */
    double unit;      /* median cost of an op */
    double step_cost; /* a little for each step, or free ops would be run for ever */
    double lambda, heat;
    double cost_now; /* of the state, with its steps */
    int64_t excess_now;
    int64_t edits; /* done in this call */
    int64_t started_ns;
} climb;

/* ---- annealing ---- */

static double cost_of(const climb *c) { return (double)c->search.q.cost + c->step_cost * c->search.q.n_steps; }

static void take_stock(climb *c)
{
    c->cost_now = cost_of(c);
    c->excess_now = rm_profile_excess(&c->search.q.memory, c->limit);
}

static void mutate(climb *c)
{
    rm_search *s = &c->search;
    const uint32_t kind = rm_random_below(&s->random, 100);
    const uint32_t edits = kind < 45   ? rm_closure_recompute(s, c->limit)
                           : kind < 70 ? rm_closure_forget(s)
                                       : (uint32_t)rm_search_slide(s);
    c->edits += kind < 70 ? edits + 1 : 1;
    if (edits == 0) return;
    const double limit = c->cost_now + c->lambda * (double)c->excess_now - c->heat * rm_log(rm_random_unit(&s->random) + 1e-12);
    const double cost = cost_of(c);
    if (cost > limit) {
        rm_seq_undo(&s->q);
        return;
    }
    rm_seq_flush(&s->q);
    const int64_t excess = rm_profile_excess(&s->q.memory, c->limit);
    if (cost + c->lambda * (double)excess > limit) {
        rm_seq_undo(&s->q);
        return;
    }
    c->cost_now = cost;
    c->excess_now = excess;
    rm_search_keep(s, c->nm.resident_bytes + s->q.memory.max);
}

typedef struct schedule {
    double first_heat, last_heat; /* in units */
    double ramp;                  /* the share of the run in which lambda grows thirtyfold */
} schedule;

/* From the state at hand, for so many edits; true: a limit is reached. */
static bool run_once(climb *c, int64_t edits, schedule plan)
{
    if (edits < 1) edits = 1;
    remat_ctx *ctx = c->p->ctx;
    const int64_t begin = c->edits;
    int64_t next_respacing = begin + RESPACE;
    const double first_lambda = c->lambda;
    take_stock(c);
    for (;;) {
        const int64_t before = c->edits;
        const double share = (double)(before - begin) / (double)edits;
        if (share >= 1) break;
        c->heat = c->unit * plan.first_heat * rm_exp(share * rm_log(plan.last_heat / plan.first_heat));
        if (share < plan.ramp) c->lambda = first_lambda * rm_exp(share / plan.ramp * 3.4011973816621555); /* ln 30 */
        else c->lambda *= c->excess_now > 0 ? 1.02 : 0.98;
        for (int i = 0; i < BATCH; i++) mutate(c);
        if (c->edits >= next_respacing || c->search.q.crowded) {
            rm_search_respace(&c->search);
            take_stock(c);
            next_respacing = c->edits + RESPACE;
        }
        rm_report(ctx, rm_auto.entry.name, rm_permille_used(ctx, c->started_ns), c->search.best_cost, c->search.best_peak);
        if (rm_spend(ctx, c->edits - before)) return true;
    }
    return false;
}

static int by_cost(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static remat_status set_scales(climb *c)
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

/* The run from one of the starts: what is better than keep-all already needs no low lambda to begin with. */
static bool run_start(climb *c, const rm_codes *start, bool is_seed, double first_lambda, int64_t edits)
{
    rm_search_load(&c->search, start->items, start->n);
    c->lambda = is_seed ? 30 * first_lambda : first_lambda;
    return run_once(c, edits, (schedule){0.5, 0.02, is_seed ? 0 : 0.4});
}

/* Starts in the first half, then reheats of the best. */
static remat_status search(climb *c, const rm_codes *keep_all, const rm_codes *seed, rm_codes *result)
{
    remat_ctx *ctx = c->p->ctx;
    rm_search *s = &c->search;
    s->floor_bytes = c->p->budget_bytes;
    const bool seeded = seed->n > keep_all->n;
    TRY(rm_search_begin(ctx, s, &c->nm, NULL, seeded ? seed : keep_all));
    if (!s->q.ranges) return REMAT_OK;
    rm_search_load(s, keep_all->items, keep_all->n);
    const double first_lambda =
        0.05 * (double)(c->p->graph->total_cost + 1) / ((double)rm_profile_excess(&s->q.memory, c->limit) + 1);
    c->started_ns = rm_clock_ns();
    const double seconds_left = (double)(ctx->deadline_ns - c->started_ns) * 1e-9;
    const double edits = ctx->deadline_ns == INT64_MAX ? (double)ctx->work_limit : A_SECOND * seconds_left;
    const double by_size = 2500 * (edits / A_SECOND) / c->nm.n_ops;
    const int n_starts = by_size < 1 ? 1 : by_size > MAX_STARTS ? MAX_STARTS : (int)by_size;
    bool stop = false;
    for (int i = 0; i < n_starts && !stop; i++)
        stop = run_start(c, i % 2 ? keep_all : seed, i % 2 == 0 && seeded, first_lambda, (int64_t)(edits / 2 / n_starts));
    while (!stop) {
        rm_search_save(s);
        rm_search_load(s, s->best, s->n_best);
        stop = run_once(c, (int64_t)(edits / 16), (schedule){0.3, 0.02, 0});
    }
    rm_search_save(s);
    return rm_search_best(ctx, s, result);
}

/* Their work is in units of their own: the limit is the search's. */
static remat_status run_quick(const rm_problem *p, rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    const rm_planner *quick[] = {&rm_rotor, &rm_mincut};
    const int64_t limit = ctx->work_limit;
    for (size_t i = 0; i < RM_LEN(quick) && ctx->stopped != REMAT_SIGNAL && ctx->stopped != REMAT_TIME; i++) {
        ctx->work = 0;
        ctx->work_limit = quick[i]->default_work;
        ctx->stopped = REMAT_DONE;
        const remat_status status = quick[i]->run(p, best);
        if (status != REMAT_OK && status != REMAT_E_APPLIES) return status;
    }
    if (ctx->stopped == REMAT_WORK) ctx->stopped = REMAT_DONE;
    ctx->work = 0;
    ctx->work_limit = limit;
    return REMAT_OK;
}

/* Rounded solutions of the bound's program: the first that fits, of budgets from the whole one down. */
static remat_status offer_seeds(climb *c, rm_incumbent *best)
{
    static const int percents[] = {100, 97, 94, 90, 85, 80, 70, 60, 50, 40};
    remat_ctx *ctx = c->p->ctx;
    rm_codes codes = {0};
    remat_status status = REMAT_OK;
    for (size_t i = 0; i < RM_LEN(percents) && status == REMAT_OK && !rm_fits(c->p, best->peak_bytes); i++) {
        status = rm_flow_seed(ctx, &c->nm, c->p->budget_bytes / 100 * percents[i], 8 * (size_t)c->nm.n_ops + 1000, &codes);
        if (status == REMAT_OK && codes.n) status = rm_polish(ctx, &c->nm, NULL, c->p->budget_bytes, &codes);
        if (status == REMAT_OK && codes.n) status = rm_codes_offer(c->p, &c->nm, &codes, best);
    }
    RM_VEC_FREE(&ctx->heap, codes);
    return status;
}

static remat_status run(const rm_problem *p, rm_incumbent *best);

/* The lowest peak first, by annealing for memory alone, which makes it dear; then that peak as a budget. */
static remat_status run_least(const rm_problem *p, rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    TRY(run_quick(p, best));
    TRY(rm_fastsa.run(p, best));
    if (ctx->stopped == REMAT_SIGNAL || ctx->stopped == REMAT_TIME) return REMAT_OK;
    ctx->work = 0;
    ctx->stopped = REMAT_DONE;
    rm_incumbent cheaper = {.any = false};
    remat_status status = run(&(rm_problem){ctx, p->graph, best->peak_bytes}, &cheaper);
    if (status == REMAT_OK) status = rm_offer(p, best, &cheaper.steps);
    RM_VEC_FREE(&ctx->heap, cheaper.steps);
    return status;
}

static remat_status run(const rm_problem *p, rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    rm_need need;
    TRY(rm_need_find(ctx, p->graph, &need));
    TRY(rm_keep_all.run(p, best));
    if (p->budget_bytes == REMAT_BUDGET_MIN) return run_least(p, best);
    if (rm_fits(p, best->peak_bytes) || p->budget_bytes < need.bytes) return REMAT_OK; /* nothing to gain, or to be found */
    climb c = {.p = p, .limit = p->budget_bytes - p->graph->resident_bytes};
    TRY(rm_normal_of(ctx, p->graph, &c.nm));
    TRY(set_scales(&c));
    TRY(offer_seeds(&c, best));
    TRY(run_quick(p, best));
    rm_codes keep_all = {0}, seed = {0}, found = {0};
    c.search.random.state = (uint64_t)ctx->options.seed;
    remat_status status = rm_codes_keep_all(ctx, &c.nm, &keep_all);
    if (status == REMAT_OK) status = rm_codes_of_steps(ctx, &c.nm, &best->steps, &seed);
    if (status == REMAT_OK) status = search(&c, &keep_all, &seed, &found);
    if (status == REMAT_OK && found.n) status = rm_polish(ctx, &c.nm, NULL, p->budget_bytes, &found);
    if (status == REMAT_OK && found.n) status = rm_codes_offer(p, &c.nm, &found, best);
    rm_search_end(&c.search);
    RM_VEC_FREE(&ctx->heap, keep_all);
    RM_VEC_FREE(&ctx->heap, seed);
    RM_VEC_FREE(&ctx->heap, found);
    return status;
}

/* The better of the two models. */
static remat_status run_chain(const rm_chain_problem *p, rm_chain_result *results)
{
    const remat_status status = rm_rotor.run_chain(p, results);
    if (status != REMAT_OK && status != REMAT_E_APPLIES) return status;
    const remat_status floating = rm_rotor_float.run_chain(p, results);
    return floating == REMAT_E_APPLIES ? status : floating;
}

const rm_planner rm_auto = {.entry = {"auto", "the best of rotor, mincut and a search with whole recomputations as moves"},
                            .default_work = A_SECOND,
                            .run = run,
                            .run_chain = run_chain};
