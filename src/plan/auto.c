/* auto.c: the best plan of all that is there, improved.
 *
 * The strategies that take milliseconds (rotor, mincut) go first; then a search over sequences, started from the best of them and from
 * keep-all in turn, and again and again from its own best. One move of the search recomputes what it needs, to any depth:
 *
 *     recompute   a storage that lies in memory over a crowded slot is made again just before its next read. An input that is not in
 *                 memory there either stays in memory until then, or is made again itself, and so on (probability and
 *                 number of ops are drawn anew for each move)
 *     forget      a second run goes, and with it the runs that only served it
 *     slide       a step goes elsewhere between its inputs and its readers
 *
 * What is minimised is cost + lambda * sum over blocks of slots of (peak of the block - budget)+, by Metropolis' rule; lambda
 * starts low, grows thirtyfold, and then follows whether the state fits. Only moves of whole recomputations reach small
 * budgets: single ops, as fastsa moves them, would have to pass through states that are worse in both memory and cost.
 *
 * Work is counted in edits (steps put in or taken out). Integers decide what fits; doubles only weigh. */
#include "plan/climb.h"

#include <stdlib.h>

#include "base/real.h"
#include "plan/flow_seed.h"
#include "plan/planner.h"
#include "plan/polish.h"
#include "plan/search.h"

enum {
    BATCH = 256,          /* moves between looks at the limits */
    RESPACE = 64 * BATCH, /* edits between respacings */
    MOST_OPS = 128,       /* that one move recomputes */
    TRIES = 48,           /* to find a storage, or a second run, at random */
    NEAR = 64,            /* slots that are looked through for an empty one */
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
    uint32_t *stack;
    uint32_t n_stack;
} climb;

/* ---- moves ---- */

/* The last empty slot before `end` and behind `first`, not far from it. */
static uint32_t slot_before(const rm_seq *q, uint32_t first, uint32_t end)
{
    for (uint32_t slot = end; slot > first + 1 && slot + NEAR > end;)
        if (q->at[--slot] == RM_EMPTY) return slot;
    return RM_EMPTY;
}

static bool insert(climb *c, uint32_t slot, uint32_t op)
{
    if (slot == RM_EMPTY || !rm_seq_insert(&c->search.q, slot, op)) return false;
    rm_seq_settle(&c->search.q);
    c->edits++;
    return true;
}

/* Runs what makes the storage once more between `from` and `to`, and what that needs. */
static bool recompute(climb *c, uint32_t store, uint32_t from, uint32_t to)
{
    rm_search *s = &c->search;
    rm_seq *q = &s->q;
    const rm_normal *nm = &c->nm;
    const uint32_t first = slot_before(q, from, to);
    if (!insert(c, first, nm->producer[store])) return false;
    const uint32_t chance = (uint32_t)rm_random_next(&s->random);
    uint32_t room = 1u << rm_random_below(&s->random, 8);
    c->n_stack = 0;
    c->stack[c->n_stack++] = first;
    while (c->n_stack && room) {
        const uint32_t slot = c->stack[--c->n_stack], op = q->at[slot];
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1] && room; k++) {
            uint32_t before;
            if (nm->bytes[nm->in[k]] == 0 && nm->base[nm->in[k]] == REMAT_NONE) continue; /* to keep it costs nothing */
            if (!rm_seq_is_last_read(q, nm->in[k], slot, &before)) continue;              /* it is in memory anyway */
            if ((uint32_t)rm_random_next(&s->random) > chance) continue;
            const uint32_t again = slot_before(q, before, slot);
            if (!insert(c, again, nm->producer[nm->in[k]])) continue;
            c->stack[c->n_stack++] = again;
            room--;
        }
    }
    return true;
}

static uint32_t crowded_slot(climb *c)
{
    rm_search *s = &c->search;
    const rm_profile *m = &s->q.memory;
    uint32_t b = rm_random_below(&s->random, m->n_blocks);
    if (m->max > c->limit)
        while (m->high[b] <= c->limit) b = b + 1 == m->n_blocks ? 0 : b + 1;
    const uint32_t slot = b * RM_PROFILE_BLOCK + rm_random_below(&s->random, RM_PROFILE_BLOCK);
    return slot < s->q.n_slots ? slot : s->q.n_slots - 1;
}

static bool propose_recompute(climb *c)
{
    rm_search *s = &c->search;
    const uint32_t slot = crowded_slot(c);
    for (int i = 0; i < TRIES; i++) {
        const uint32_t store = rm_random_below(&s->random, c->nm.n_stores);
        uint32_t to;
        if (c->nm.bytes[store] == 0 || c->nm.pinned[c->nm.producer[store]] || !rm_seq_spans(&s->q, store, slot, &to)) continue;
        return recompute(c, store, slot, to);
    }
    return false;
}

/* Does nobody read what the step makes? */
static bool is_unread(const rm_seq *q, uint32_t slot)
{
    const rm_normal *nm = q->nm;
    const rm_code op = q->at[slot];
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
        if (rm_seq_unread_make(q, nm->out[k], slot + 1) != slot) return false;
    return true;
}

static bool propose_forget(climb *c)
{
    rm_search *s = &c->search;
    rm_seq *q = &s->q;
    const rm_normal *nm = &c->nm;
    uint32_t slot = 0;
    for (int i = 0; i < TRIES / 2; i++) {
        slot = rm_search_full_slot(s);
        if (q->runs[q->at[slot]] > 1) break;
    }
    if (q->runs[q->at[slot]] <= 1) return false;
    uint32_t op = q->at[slot];
    if (!rm_seq_remove(q, slot)) return false;
    rm_seq_settle(q);
    c->edits++;
    c->n_stack = 0;
    for (;;) {
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1] && c->n_stack < MOST_OPS; k++) {
            const uint32_t made = rm_seq_unread_make(q, nm->in[k], slot);
            if (made != RM_EMPTY) c->stack[c->n_stack++] = made;
        }
        for (;;) {
            if (c->n_stack == 0) return true;
            slot = c->stack[--c->n_stack];
            op = q->at[slot];
            if (op != RM_EMPTY && q->runs[op] > 1 && is_unread(q, slot) && rm_seq_remove(q, slot)) break;
        }
        rm_seq_settle(q);
        c->edits++;
    }
}

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
    const bool made = kind < 45 ? propose_recompute(c) : kind < 70 ? propose_forget(c) : rm_search_slide(s);
    c->edits++;
    if (!made) {
        rm_seq_undo(&s->q);
        return;
    }
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

static int permille_used(const climb *c)
{
    const remat_ctx *ctx = c->p->ctx;
    if (ctx->deadline_ns == INT64_MAX) return (int)(1000 * ((double)ctx->work / (double)ctx->work_limit));
    return (int)(1000 * ((double)(rm_clock_ns() - c->started_ns) / (double)(ctx->deadline_ns - c->started_ns + 1)));
}

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
        rm_report(ctx, rm_auto.entry.name, permille_used(c), c->search.best_cost, c->search.best_peak);
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
    rm_search_finish(s);
    return rm_search_best(ctx, s, result);
}

remat_status rm_climb(const rm_problem *p, const rm_normal *nm, const rm_codes *seed, rm_codes *found)
{
    remat_ctx *ctx = p->ctx;
    climb c = {.p = p, .nm = *nm, .limit = p->budget_bytes - nm->resident_bytes};
    rm_codes keep_all = {0};
    TRY(RM_SCRATCH(ctx, c.stack, 2 * MOST_OPS + 8));
    TRY(set_scales(&c));
    c.search.random.state = (uint64_t)ctx->options.seed;
    remat_status status = rm_codes_keep_all(ctx, nm, &keep_all);
    if (status == REMAT_OK) status = search(&c, &keep_all, seed, found);
    if (status == REMAT_OK && found->n) status = rm_polish(ctx, nm, NULL, p->budget_bytes, found);
    rm_search_end(&c.search);
    RM_VEC_FREE(&ctx->heap, keep_all);
    return status;
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
static remat_status offer_seeds(const rm_problem *p, const rm_normal *nm, rm_incumbent *best)
{
    static const int percents[] = {100, 97, 94, 90, 85, 80, 70, 60, 50, 40};
    remat_ctx *ctx = p->ctx;
    rm_codes codes = {0};
    remat_status status = REMAT_OK;
    for (size_t i = 0; i < RM_LEN(percents) && status == REMAT_OK && !rm_fits(p, best->peak_bytes); i++) {
        status = rm_flow_seed(ctx, nm, p->budget_bytes / 100 * percents[i], 8 * (size_t)nm->n_ops + 1000, &codes);
        if (status == REMAT_OK && codes.n) status = rm_polish(ctx, nm, NULL, p->budget_bytes, &codes);
        if (status == REMAT_OK && codes.n) status = rm_codes_offer(p, nm, &codes, best);
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
    rm_normal nm;
    TRY(rm_normal_of(ctx, p->graph, &nm));
    TRY(offer_seeds(p, &nm, best));
    TRY(run_quick(p, best));
    rm_codes seed = {0}, found = {0};
    remat_status status = rm_codes_of_steps(ctx, &nm, &best->steps, &seed);
    if (status == REMAT_OK) status = rm_climb(p, &nm, &seed, &found);
    if (status == REMAT_OK && found.n) status = rm_codes_offer(p, &nm, &found, best);
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
