/* fastsa.c: simulated annealing over sequences (FastSA: "A fast heuristic to optimize time-space
 * tradeoff for large models", sections 2, B, C and D.4).
 *
 * State and mutations: the state is a sequence of steps in a row of slots (sim/sequence.h). A
 * mutation does one of these:
 * - it adds a random op at a random slot where its inputs have been made;
 * - it removes a random step;
 * - it slides a random step between its inputs and its readers (the paper's rotate);
 * - with offload on, it flips whether a value is fetched right before a step that reads it (B.3).
 *
 * Objective: max(budget, M)^4 * C, and ^8 with fetches, which are dear. With the power 1 of
 * equation (1) a percent of memory is worth no more than a percent of cost, and small budgets are
 * not met. Equation (1), the strict objective of footnote 2, and memory alone are there too. A
 * mutation is kept by Metropolis' rule. The temperature falls geometrically from 0.1 % of the first
 * objective to 1e-4 of that (D.4).
 *
 * A walker that has not met the budget half way is *desperate* until it has. It then goes by what
 * is over the budget alone, summed over blocks of slots. It adds whole recomputations
 * (plan/search/moves.c): no single op leads out of a state where several large values must go at
 * once.
 *
 * Walkers: even ones anneal over groups (plan/search/node_groups.c) until the budget is met, then
 * over the ops of these groups. Odd ones anneal over ops from the start. Each has its own seed and
 * its own share of the work, so the answer does not depend on the number of threads. Every walker
 * gives its best state: the cheapest within the budget, else the one of lowest peak. That is
 * polished (plan/search/polish.c), expanded into steps and measured exactly. With offload on,
 * recomputation alone and offload alone come first, and then both together from the better of the
 * two.
 *
 * Departures:
 * - Slots are drawn from those where a mutation can be valid, not from all. This only leaves out
 *   refusals.
 * - There are 3 slots per step, not 2^20 in all. Steps are spread evenly again 64 times a run. So
 *   memory stays small and in cache.
 * - The acceptance test draws its random number first. So a mutation whose cost alone is too much
 * is refused before memory is looked at.
 * - Every other pair of walkers starts five times as hot, and memory alone fifty times: where the
 *   order is free, 0.1 % of the objective is too cold.
 * What the paper leaves open: add, remove and rotate are equally likely, and flip joins as a
 * fourth. As in the paper, second legs start at the first leg's last planned temperature.
 *
 * Cost: work is what the sequences count (sim/sequence.h), and a little for each mutation. Memory:
 * O(slots + events). */
#include "plan/search/fastsa.h"

#include <assert.h>

#include "base/exp_log.h"
#include "base/threads.h"
#include "plan/planner.h"
#include "plan/search/moves.h"
#include "plan/search/node_groups.h"
#include "plan/search/polish.h"
#include "plan/search/search.h"
#include "plan/search/soft_peak.h"

enum {
    BATCH = 1024,         /* mutations between looks at the limits */
    BATCH_WORK = 1 << 20, /* operations between them, where mutations are large */
    REPORT_EVERY = 256,   /* batches */
    MUTATION_WORK = 16,   /* operations to draw one */
    RESPACINGS = 64,      /* of a run */
    SPREAD = 3,           /* slots a step */
    EXPONENTIALS = 1024,  /* size of a table */
    MAX_WALKERS = 64,     /* the most that the option walkers allows */
    LONGEST = 32 /* runs an op of all groups together: beyond that grouping is not worth it */
};
#define LN_10000 9.210340371976182
#define FIRST_LEG (20.0 / 22) /* of a walker's share: D.4's 20 and 2 million */

typedef enum kind { ADD, REMOVE, SLIDE, FLIP, N_KINDS } kind; /* of mutations */

typedef struct moves { /* the kinds first .. first + n - 1 */
    uint32_t first, n;
} moves;
static const moves recompute = {ADD, 3}, order_only = {SLIDE, 1}, offload_only = {SLIDE, 2},
                   recompute_and_offload = {ADD, 4};

static bool may_fetch(moves m) { return m.first + m.n == N_KINDS; }
static bool may_run_again(moves m) { return m.first == ADD; }

/* The first three are numbered as in the option. */
typedef enum objective { POWER, TIMES_COST, STRICT, MEMORY } objective;

/* What all walkers share. */
typedef struct setting {
    const rm_problem *p;
    const char *name;
    rm_normal nm, groups;
    int64_t *transfer; /* by storage; NULL: no offload */
    objective objective;
    moves allowed;
    /* The plans that even and odd walkers start from, without grouping; NULL: keep-all. */
    const rm_schedule *from[2];
    rm_quota quota;        /* of a walker */
    int64_t work_before;   /* of the context, before this leg */
    _Atomic int64_t *work; /* of all walkers in this leg; all that changes while they run */
    float exponential[EXPONENTIALS]; /* quantiles of the exponential distribution */
} setting;

typedef struct walker {
    const setting *set;
    rm_search search;
    rm_quota quota;
    int64_t elapsed_ns;      /* of the quota, in legs before this one */
    int64_t counted;         /* of the sequence's work */
    double end;              /* the share of work and time at which the leg ends */
    bool warm;               /* starts five times as hot */
    bool until_met;          /* the leg also ends once the budget is met */
    bool desperate;          /* half the leg is over and the budget is not met */
    bool reports;            /* it is in the calling thread */
    uint32_t batches;        /* that it has run, if it reports */
    rm_soft_peak soft;       /* if asked for */
    double weight;           /* the objective of the state */
    double first_heat, heat; /* temperature */
} walker;

/* ---- the objective ---- */

/* A peak below it is as good as it. */
static int64_t floor_bytes(const setting *set)
{
    return set->objective == MEMORY ? 0 : set->p->budget_bytes;
}

/* Footnote 2: L(Elu(L^-1(M))) * C^0.6, L linear with L(0) = budget and L(-100) = 0. */
double rm_fastsa_strict(double budget, double memory, double cost)
{
    const double x = (memory / budget - 1) * 100;
    return budget * (1 + (x < 0 ? rm_exp(x) - 1 : x) / 100) * rm_exp(0.6 * rm_log(cost));
}

/* The objective. */
static double weigh(const walker *x, double memory, int64_t cost)
{
    const setting *set = x->set;
    const objective by = x->desperate ? MEMORY : set->objective;
    const double budget = (double)set->p->budget_bytes, c = (double)(cost > 0 ? cost : 1);
    const double over = memory > budget ? memory / budget : 1;
    if (by == POWER)
        return budget * c * over * over * over * over *
               (set->transfer ? over * over * over * over : 1);
    if (by == TIMES_COST) return budget * over * c;
    if (by == STRICT) return rm_fastsa_strict(budget, memory, c);
    const double total = (double)(set->p->graph->total_cost + 1);
    return memory * (1 + 1e-6 * c / total); /* among equals the cheaper */
}

/* ---- one mutation ---- */

/* What is over the budget, summed over blocks of slots. */
static double excess(const walker *c)
{
    const rm_seq *q = &c->search.q;
    return (double)rm_profile_excess(&q->memory, c->set->p->budget_bytes - q->nm->resident_bytes);
}

/* Memory with the move, as the objective sees it. */
static double look(walker *c, int64_t peak)
{
    rm_seq *q = &c->search.q;
    if (c->desperate) {
        rm_seq_flush(q);
        return excess(c);
    }
    return c->soft.sums ? rm_soft_peak_look(&c->soft, q) : (double)peak;
}

/* Is the move too dear whatever its peak? If memory may sink, it may sink to anything. */
static bool is_too_dear(const walker *c, double limit)
{
    const rm_seq *q = &c->search.q;
    if (c->soft.sums || c->desperate) return false; /* it does not go by the peak */
    const double least = rm_seq_may_sink(q) ? 0 : (double)rm_seq_peak_kept(q);
    return weigh(c, least, q->cost) > limit;
}

/* Keeps the move if it is good enough. */
static void decide(walker *c, float exponential)
{
    rm_seq *q = &c->search.q;
    const double limit = c->weight + c->heat * (double)exponential;
    if (is_too_dear(c, limit)) {
        rm_seq_undo(q);
        return;
    }
    const int64_t peak = rm_seq_peak(q);
    const double weight = weigh(c, look(c, peak), q->cost);
    if (weight > limit) {
        rm_seq_undo(q);
        return;
    }
    if (c->soft.sums && !c->desperate) rm_soft_peak_keep(&c->soft);
    rm_search_keep(&c->search, peak);
    c->weight = weight;
}

static bool propose_add(rm_search *s)
{
    const uint32_t op = rm_random_below(&s->random, s->q.nm->n_ops);
    s->q.work += (int64_t)rm_code_events(s->q.nm, op);
    const uint32_t slot = rm_search_empty_slot(s, rm_seq_floor(&s->q, op), s->q.n_slots);
    return slot != RM_EMPTY && rm_seq_insert(&s->q, slot, op);
}

/* A fetch right before a step that reads the value. If there is one, it goes. If there is none, it
 * comes. */
static bool propose_flip(rm_search *s)
{
    rm_seq *q = &s->q;
    const rm_normal *nm = q->nm;
    const uint32_t slot = rm_search_full_slot(s);
    const rm_code op = q->at[slot];
    if (rm_is_fetch(nm, op)) return rm_seq_remove(q, slot);
    const uint32_t n_in = nm->in_begin[op + 1] - nm->in_begin[op];
    if (n_in == 0 || slot == 0) return false;
    const uint32_t store = nm->in[nm->in_begin[op] + rm_random_below(&s->random, n_in)];
    uint32_t before = slot - 1;
    for (; before > 0 && q->at[before] != RM_EMPTY && rm_is_fetch(nm, q->at[before]); before--)
        if (q->at[before] == nm->n_ops + store) return rm_seq_remove(q, before);
    return q->at[before] == RM_EMPTY && rm_seq_insert(q, before, nm->n_ops + store);
}

/* False: it was refused. */
static bool propose(walker *c, kind of)
{
    rm_search *s = &c->search;
    if (of == ADD && c->desperate)
        return rm_move_recompute(s, c->set->p->budget_bytes - s->q.nm->resident_bytes) > 0;
    if (of == ADD) return propose_add(s);
    if (of == REMOVE) return rm_seq_remove(&s->q, rm_search_full_slot(s));
    return of == SLIDE ? rm_search_slide(s) : propose_flip(s);
}

/* One draw gives the kind and the exponential. */
static void mutate(walker *c)
{
    rm_search *s = &c->search;
    const moves allowed = c->set->allowed;
    const uint64_t bits = rm_random_next(&s->random);
    s->q.work += MUTATION_WORK;
    const kind of = (kind)(allowed.first + ((uint32_t)(bits & 0xffff) * allowed.n >> 16));
    if (propose(c, of)) decide(c, c->set->exponential[bits >> 16 & (EXPONENTIALS - 1)]);
}

/* ---- one leg of one walker ---- */

/* The objective of the state at hand, from scratch. */
static void take_stock(walker *c)
{
    rm_seq *q = &c->search.q;
    if (c->soft.sums) rm_soft_peak_load(&c->soft, q);
    double memory = (double)rm_seq_peak_kept(q);
    if (c->desperate) memory = excess(c);
    else if (c->soft.sums) memory = rm_soft_peak_now(&c->soft, q);
    c->weight = weigh(c, memory, q->cost);
}

/* Temperatures go with the scale of the objective. */
static void set_desperate(walker *c, bool desperate)
{
    const double before = c->weight;
    c->desperate = desperate;
    take_stock(c);
    if (before > 0) c->first_heat *= c->weight / before;
}

double rm_fastsa_heat(double first, double share) { return first * rm_exp(-LN_10000 * share); }

/* What the sequence has done since the last time. */
static void account(walker *c)
{
    const int64_t work = c->search.q.work - c->counted;
    c->counted += work;
    c->quota.work += work;
    const int64_t before = atomic_fetch_add_explicit(c->set->work, work, memory_order_relaxed);
    if (!c->reports || ++c->batches % REPORT_EVERY) return;
    remat_ctx *ctx = c->set->p->ctx;
    ctx->limits.work = c->set->work_before + before + work;
    rm_report(ctx, c->set->name, -1, c->search.best_cost, c->search.best_peak);
}

static void run_batch(walker *c)
{
    const int64_t end = c->search.q.work + BATCH_WORK;
    for (int i = 0; i < BATCH && c->search.q.work < end; i++) mutate(c);
}

static bool has_met(const walker *c) { return c->search.best_peak <= c->set->p->budget_bytes; }

/* From where the walker stands to the end of the leg. */
static void anneal(walker *c)
{
    c->quota.begin_ns = rm_clock_ns() - c->elapsed_ns;
    const double begin = rm_quota_used(&c->quota);
    double used = begin, next_respacing = begin + 1.0 / RESPACINGS;
    while (used < c->end && !(c->until_met && has_met(c))) {
        if (used >= next_respacing || c->search.q.crowded) {
            rm_search_respace(&c->search);
            take_stock(c);
            next_respacing = used + 1.0 / RESPACINGS;
        }
        c->heat = rm_fastsa_heat(c->first_heat, (used - begin) / (c->end - begin));
        run_batch(c);
        account(c);
        used = rm_quota_used(&c->quota);
        const bool half_over = 2 * used > begin + c->end;
        if (c->desperate && has_met(c)) set_desperate(c, false);
        else if (half_over && !has_met(c) && c->set->objective != MEMORY && !c->desperate)
            set_desperate(c, true);
    }
    c->elapsed_ns = rm_clock_ns() - c->quota.begin_ns;
    if (c->search.q.ranges) rm_search_save(&c->search);
}

/* ---- all walkers ---- */

static void anneal_one(void *user, uint32_t i) { anneal(&((walker *)user)[i]); }

/* The context counts the work of the walkers from here on, besides what others do in between. */
static void anneal_all(setting *set, walker *walkers, uint32_t n_walkers)
{
    remat_ctx *ctx = set->p->ctx;
    const uint32_t n_threads = (uint32_t)ctx->options.threads;
    for (uint32_t i = 0; i < n_walkers; i++) walkers[i].reports = i % n_threads == 0;
    set->work_before = ctx->limits.work;
    *set->work = 0;
    rm_threads_run(n_threads, n_walkers, anneal_one, walkers);
    ctx->limits.work = set->work_before + *set->work;
}

/* As a share of the objective. */
static double first_heat_of(const walker *c)
{
    if (c->set->objective == MEMORY) return 0.05;
    return c->warm ? 5e-3 : 1e-3;
}

/* share: of work and time, at which the leg ends. */
static remat_status begin_leg(remat_ctx *ctx, walker *c, const rm_normal *nm, const rm_codes *start,
                              double share)
{
    c->search.floor_bytes = floor_bytes(c->set);
    TRY(rm_search_begin(ctx, &c->search, nm, c->set->transfer, start, SPREAD));
    if (!c->search.q.ranges) {
        c->end = 0; /* too large to be annealed */
        return REMAT_OK;
    }
    if (ctx->options.soft_peak) TRY(rm_soft_peak_new(ctx, &c->search.q, &c->soft));
    c->end = share;
    take_stock(c);
    if (c->first_heat == 0) c->first_heat = first_heat_of(c) * c->weight;
    return REMAT_OK;
}

static void end_leg(const remat_alloc *heap, walker *c)
{
    rm_soft_peak_free(heap, &c->soft);
    rm_search_end(&c->search);
}

/* ---- the strategy ---- */

static remat_status make_setting(const rm_problem *p, moves allowed, setting *set)
{
    remat_ctx *ctx = p->ctx;
    const rm_options *o = &ctx->options;
    TRY(rm_normal_of(ctx, p->graph, &set->nm));
    TRY(rm_group_nodes(ctx, &set->nm, o->group != 2, &set->groups));
    if (may_fetch(allowed)) {
        TRY(RM_SCRATCH(ctx, set->transfer, set->nm.n_stores));
        for (uint32_t s = 0; s < set->nm.n_stores; s++)
            TRY(rm_transfer_cost(ctx, set->nm.bytes[s], o->bandwidth, &set->transfer[s]));
    }
    set->allowed = allowed;
    set->objective =
        p->budget_bytes == REMAT_BUDGET_MIN || allowed.n == 1 ? MEMORY : (objective)o->objective;
    for (int i = 0; i < EXPONENTIALS; i++)
        set->exponential[i] = (float)-rm_log((i + 0.5) / EXPONENTIALS);
    return REMAT_OK;
}

/* Is there anything to group, and do groups stay small enough? */
static bool can_group(const setting *set)
{
    const rm_options *o = &set->p->ctx->options;
    int64_t cost = 0;
    for (uint32_t op = 0; op < set->groups.n_ops; op++)
        if (rm_add_overflows(cost, set->groups.cost[op], &cost) || cost >= RM_MAX_SUM) return false;
    return o->group && !set->from[0] && may_run_again(set->allowed) &&
           set->groups.n_ops < set->nm.n_ops &&
           set->groups.member_begin[set->groups.n_ops] <= LONGEST * (uint64_t)set->nm.n_ops;
}

/* After its first leg a walker goes on over ops: its best groups are ungrouped into `start`. */
static remat_status end_first_leg(setting *set, walker *grouped, walker *next, rm_codes *start,
                                  rm_incumbent *best)
{
    remat_ctx *ctx = set->p->ctx;
    const rm_search *s = &grouped->search;
    next->quota = grouped->quota;
    next->elapsed_ns = grouped->elapsed_ns;
    next->search.random = s->random;
    next->first_heat = grouped->first_heat * 1e-4; /* the last one planned */
    start->n = 0;
    TRY(rm_ungroup_nodes(ctx, &set->groups, s->best, s->n_best, start));
    return rm_offer_codes(set->p, &set->nm, start, best);
}

/* The first leg: walkers 0, 2, ... over groups. Their ops are left in starts[i]. */
static remat_status anneal_groups(setting *set, walker *walkers, uint32_t n, rm_codes *starts,
                                  rm_incumbent *best)
{
    remat_ctx *ctx = set->p->ctx;
    rm_codes codes = {0};
    remat_status status = rm_codes_keep_all(ctx, &set->groups, &codes);
    walker grouped[MAX_WALKERS];
    uint32_t n_grouped = 0;
    for (uint32_t i = 0; i < n && status == REMAT_OK; i += 2) {
        grouped[n_grouped] = walkers[i];
        grouped[n_grouped].until_met = true;
        status = begin_leg(ctx, &grouped[n_grouped++], &set->groups, &codes, FIRST_LEG);
    }
    if (status == REMAT_OK) anneal_all(set, grouped, n_grouped);
    for (uint32_t i = 0; i < n_grouped; i++) {
        walker *c = &grouped[i];
        if (!c->search.q.ranges) continue; /* too large: its ops begin from keep-all */
        if (status == REMAT_OK)
            status = end_first_leg(set, c, &walkers[2 * i], &starts[2 * i], best);
        end_leg(&ctx->heap, c);
    }
    RM_VEC_FREE(&ctx->heap, codes);
    return status;
}

/* The best state of a walker is polished and offered. `state` is room for it. */
static remat_status offer_best(setting *set, const walker *c, rm_codes *state, rm_incumbent *best)
{
    remat_ctx *ctx = set->p->ctx;
    if (!c->search.q.ranges) return REMAT_OK; /* it was too large */
    TRY(rm_search_best(ctx, &c->search, state));
    TRY(rm_polish(ctx, &set->nm, set->transfer, set->p->budget_bytes, state));
    return rm_offer_codes(set->p, &set->nm, state, best);
}

/* The second leg of grouped walkers, and the only one of the others. */
static remat_status anneal_ops(setting *set, walker *walkers, uint32_t n, rm_codes *starts,
                               rm_incumbent *best)
{
    remat_ctx *ctx = set->p->ctx;
    remat_status status = REMAT_OK;
    for (uint32_t i = 0; i < n && status == REMAT_OK; i++)
        status = begin_leg(ctx, &walkers[i], &set->nm, &starts[i], 1);
    if (status == REMAT_OK) anneal_all(set, walkers, n);
    for (uint32_t i = 0; i < n; i++) {
        if (status == REMAT_OK) status = offer_best(set, &walkers[i], &starts[i], best);
        end_leg(&ctx->heap, &walkers[i]);
    }
    return status;
}

static remat_status anneal_walkers(setting *set, walker *walkers, uint32_t n, rm_codes *starts,
                                   rm_incumbent *best)
{
    remat_ctx *ctx = set->p->ctx;
    if (set->nm.n_ops == 0) return REMAT_OK; /* nothing but views */
    for (uint32_t i = 0; i < n; i++)
        TRY(set->from[i % 2] ? rm_codes_of_steps(ctx, &set->nm, set->from[i % 2], &starts[i])
                             : rm_codes_keep_all(ctx, &set->nm, &starts[i]));
    if (can_group(set)) TRY(anneal_groups(set, walkers, n, starts, best));
    return anneal_ops(set, walkers, n, starts, best);
}

/* Small graphs are soon annealed. There more walkers find more. */
static uint32_t count_walkers(const setting *set)
{
    const uint32_t asked = (uint32_t)set->p->ctx->options.walkers,
                   by_size = 2 * (1500 / (set->nm.n_ops + 1));
    if (asked) return asked;
    if (by_size < 2) return 2;
    return by_size > 8 ? 8 : by_size;
}

/* Anneals with a share of the work and time, from the plans that the setting names. */
static remat_status run_part(setting set, rm_incumbent *best, moves allowed, double share)
{
    const rm_problem *p = set.p;
    remat_ctx *ctx = p->ctx;
    TRY(make_setting(p, allowed, &set));
    const uint32_t n = count_walkers(&set);
    assert(n > 0 && n <= MAX_WALKERS);
    const double at_once = (double)(ctx->options.threads < n ? ctx->options.threads : n);
    const rm_quota whole = rm_quota_begin(ctx, share);
    _Atomic int64_t work = 0;
    set.quota = rm_quota_part(&whole, 1.0 / n, at_once / n);
    set.work = &work;
    walker walkers[MAX_WALKERS];
    rm_codes starts[MAX_WALKERS] = {0};
    for (uint32_t i = 0; i < n; i++)
        walkers[i] = (walker){.set = &set,
                              .quota = set.quota,
                              .warm = i / 2 % 2 == 1 && !set.from[0],
                              .search.random = {(uint64_t)ctx->options.seed * MAX_WALKERS + i}};
    const remat_status status = anneal_walkers(&set, walkers, n, starts, best);
    for (uint32_t i = 0; i < n; i++) RM_VEC_FREE(&ctx->heap, starts[i]);
    rm_is_over(ctx); /* a limit that is reached is noted */
    return status;
}

remat_status rm_fastsa_together(const rm_problem *p, const rm_schedule *other, const char *name,
                                rm_incumbent *best)
{
    return run_part((setting){.p = p, .name = name, .from = {other, &best->steps}}, best,
                    recompute_and_offload, 1);
}

/* Recomputation and offload. Each may be better alone, so each is tried alone. Then both together,
 * from the best of the two and from recomputation alone. The latter may miss the budget by little
 * where offload meets it at a high price. */
static remat_status run_both(const rm_problem *p, rm_incumbent *best, const char *name)
{
    remat_ctx *ctx = p->ctx;
    const setting afresh = {.p = p, .name = name};
    rm_incumbent alone = {.any = false};
    remat_status status = rm_keep_all.run(p, &alone);
    if (status == REMAT_OK) status = run_part(afresh, &alone, recompute, 0.5);
    if (status == REMAT_OK) status = rm_offer(p, best, &alone.steps);
    if (status == REMAT_OK) status = run_part(afresh, best, offload_only, 0.3);
    if (status == REMAT_OK) status = rm_fastsa_together(p, &alone.steps, name, best);
    RM_VEC_FREE(&ctx->heap, alone.steps);
    return status;
}

static remat_status run_moves(const rm_problem *p, rm_incumbent *best, const char *name,
                              moves allowed)
{
    rm_need need;
    TRY(rm_need_find(p->ctx, p->graph, p->ctx->options.offload, &need));
    TRY(rm_keep_all.run(p, best));
    const bool lowest = p->budget_bytes == REMAT_BUDGET_MIN ||
                        (p->budget_bytes == REMAT_BUDGET_NONE && allowed.n == 1);
    if (!lowest && (rm_fits(p, best->peak_bytes) || p->budget_bytes < need.bytes))
        return REMAT_OK; /* nothing to gain, or to be found */
    if (may_run_again(allowed) && may_fetch(allowed)) return run_both(p, best, name);
    return run_part((setting){.p = p, .name = name}, best, allowed, 1);
}

static remat_status run(const rm_problem *p, rm_incumbent *best)
{
    const rm_options *o = &p->ctx->options;
    moves allowed = recompute;
    if (o->order_only) allowed = order_only;
    else if (o->offload) allowed = recompute_and_offload;
    return run_moves(p, best, "fastsa", allowed);
}

static remat_status run_order(const rm_problem *p, rm_incumbent *best)
{
    return run_moves(p, best, "fastsa-order", order_only);
}

static remat_status run_offload(const rm_problem *p, rm_incumbent *best)
{
    if (!p->ctx->options.offload)
        return rm_fail(p->ctx, REMAT_E_APPLIES, "it needs --offload RATE");
    return run_moves(p, best, "fastsa-offload", offload_only);
}

static remat_status run_group(const rm_problem *p, rm_incumbent *best)
{
    setting set = {.p = p};
    rm_codes groups = {0}, codes = {0};
    TRY(make_setting(p, recompute, &set));
    remat_status status = rm_codes_keep_all(p->ctx, &set.groups, &groups);
    if (status == REMAT_OK)
        status = rm_ungroup_nodes(p->ctx, &set.groups, groups.items, groups.n, &codes);
    if (status == REMAT_OK) status = rm_offer_codes(p, &set.nm, &codes, best);
    RM_VEC_FREE(&p->ctx->heap, groups);
    RM_VEC_FREE(&p->ctx->heap, codes);
    return status;
}

const rm_planner rm_fastsa_group = {
    .entry = {"fastsa-group", "FastSA's node grouping alone: cheap ops fused into their readers"},
    .default_work = RM_NO_LIMIT,
    .run = run_group,
    .heeds = "group"};
const rm_planner rm_fastsa = {
    .entry = {"fastsa",
              "simulated annealing over sequences, with grouping; --offload: and fetches (FastSA)"},
    .default_work = RM_SECOND,
    .run = run,
    .heeds = "bandwidth group host_bytes objective offload order_only soft_peak walkers"};
const rm_planner rm_fastsa_order = {
    .entry = {"fastsa-order", "annealing of the order alone: nothing runs twice"},
    .default_work = RM_SECOND,
    .run = run_order,
    .heeds = "order_only soft_peak walkers"};
const rm_planner rm_fastsa_offload = {
    .entry = {"fastsa-offload", "annealing of offloads instead of recomputation"},
    .default_work = RM_SECOND,
    .run = run_offload,
    .heeds = "bandwidth host_bytes objective offload soft_peak walkers"};
