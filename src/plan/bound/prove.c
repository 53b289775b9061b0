/* prove.c: best-first search over the states of half-done plans.
 *
 * Problem: the order of first runs is fixed. What runs again and when, and what leaves memory and
 * when, is free. A state is the number of first runs done and the set of storages in memory. A step
 * runs the next op for the first time, or another op again. Its inputs must be in memory. Inputs,
 * outputs, workspace and all else that stays must fit the budget.
 *
 * Method: A* (Hart, Nilsson, Raphael).
 * - The cost so far, plus what cost_to_go.c says is left, is a lower limit on every plan through a
 *   state. States are taken in ascending order of it. So the first plan that is complete is the
 *   cheapest, and the least of the open states is a bound at any time.
 * - States that cannot lead to a plan cheaper than the one we have are dropped.
 * - Nothing leaves memory before it must: a state that holds more is never worse. Where a step does
 *   not fit, every smallest set of storages that makes it fit is tried.
 * - An input in whose place the op may make an output goes like any other storage. It goes while
 * the op runs, so it does not count, and at once if it can serve nobody afterwards.
 * - A storage that can serve nobody any more is not part of a state.
 *
 * A token (graph/normal.h) is in memory only while its base is, and stays if the base is made
 * again. So what is found may need more memory than it seems; the bound holds. any_order.c,
 * "Views", has the proof.
 *
 * Invariants:
 * - A state has one place in the table, whatever led to it, and its least cost so far.
 * - The bounds of the open states never fall below p->bound, which never falls.
 *
 * Cost: exponential. The option memory_bytes limits the number of states. Work is what questions to
 * cost_to_go.c cost, and what is looked through to ask them. Deterministic. */
#include "plan/bound/prove.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "plan/bound/cost_to_go.h"
#include "plan/bound/gaps.h"
#include "plan/bound/states.h"

enum { LOOK = 1 << 18 }; /* operations between looks at the limits */

typedef struct prover {
    remat_ctx *ctx;
    const rm_normal *nm;
    rm_cost_to_go to_go;
    int64_t budget_bytes;
    int64_t total_cost; /* of every op once */
    int64_t step;       /* re-runs cost multiples of it */
    int64_t below;      /* plans that cost this much or more are not looked for */
    const rm_proof_goal *asked;
    uint32_t n_words;      /* of a set */
    uint8_t *is_free_view; /* by op: a free view, which has no place in the order */
    /* By op: for a free view that nobody reads, the bit that says that it ran; else REMAT_NONE. */
    uint32_t *flag;
    uint32_t n_bits;      /* of a set: storages, then flags */
    rm_bits may_rerun;    /* by op: set of turns */
    uint32_t *last_rerun; /* by op: the last of them, or 0 */
    uint64_t *useful;     /* by t: set of storages that may still serve */
    uint64_t *in, *out;   /* by op: sets */
    uint64_t *takes;      /* by op: set of inputs in whose place it may make outputs */
    uint32_t *by_size;    /* storages, largest first, with bytes */
    uint32_t n_by_size;
    rm_states states; /* key: t, and the words of a set */
    int64_t most_bytes;
    int64_t work, counted; /* operations, besides those of to_go; how many the context knows of */
    int64_t bound;         /* no plan costs less */
    bool stopped;          /* a limit is reached */
    /* one expansion: */
    uint64_t *from, *part; /* sets */
    uint64_t *before;      /* set: `part`, and the inputs of the op */
    uint64_t *key, *child; /* of the state that the step leads to; its set, which is part of it */
    uint32_t from_state, from_t, to_t, op;
    int64_t from_cost;
    uint32_t *candidates, *dropped; /* storages that may go; which of them are gone, by index */
    int64_t *suffix_bytes;          /* by candidate: of it and all after it */
    uint32_t n_candidates;
    uint64_t *goal_set; /* outputs and flags */
    uint32_t goal;      /* state */
} prover;

/* ---- steps ---- */

/* The least cost of a plan that costs at least cost + rest: costs are whole, and re-runs cost
 * multiples of `step`. rest: in cost units / unit. */
static int64_t round_up(const prover *p, int64_t cost, int64_t rest)
{
    const int64_t unit = p->to_go.bound.unit, whole = cost + rest / unit + (rest % unit > 0);
    if (whole <= p->total_cost) return p->total_cost;
    const int64_t more = whole - p->total_cost;
    return p->total_cost + (more + p->step - 1) / p->step * p->step;
}

/* No plan through the state costs less. */
static int64_t bound_of(prover *p, uint32_t t, const uint64_t *set, int64_t cost)
{
    const int64_t rest = rm_cost_to_go_from(&p->to_go, t, set);
    return rest == RM_NO_WAY_ON ? RM_MAX_SUM : round_up(p, cost, rest);
}

static bool is_subset(const prover *p, const uint64_t *a, const uint64_t *b)
{
    for (uint32_t i = 0; i < p->n_words; i++)
        if (a[i] & ~b[i]) return false;
    return true;
}

/* Free views may run at any time, so nobody waits for their first run. */
static uint32_t pass_free_views(const prover *p, uint32_t t)
{
    while (t < p->nm->n_ops && p->is_free_view[p->to_go.bound.order[t]]) t++;
    return t;
}

/* The set that the step leaves behind if it runs with `part` in memory besides its outputs. */
static void leave(prover *p)
{
    const uint64_t *useful = p->useful + (size_t)p->to_t * p->n_words,
                   *out = p->out + (size_t)p->op * p->n_words;
    for (uint32_t i = 0; i < p->n_words; i++) p->child[i] = (p->part[i] | out[i]) & useful[i];
}

/* Could the step lead to a better plan if nothing but a subset of `part` stayed? Less in memory is
 * never better. */
static bool is_hopeful(prover *p)
{
    const uint64_t *in = p->in + (size_t)p->op * p->n_words;
    for (uint32_t i = 0; i < p->n_words; i++) p->before[i] = p->part[i] | in[i];
    if (p->to_t > p->from_t && bound_of(p, p->from_t, p->before, p->from_cost) >= p->below)
        return false;
    leave(p);
    return bound_of(p, p->to_t, p->child, p->from_cost + p->nm->cost[p->op]) < p->below;
}

/* The step is taken, with `part` in memory besides its outputs. */
static remat_status arrive(prover *p)
{
    const uint32_t t = p->to_t;
    leave(p);
    p->key[0] = t;
    const int64_t cost = p->from_cost + p->nm->cost[p->op];
    uint32_t state = rm_states_find(&p->states, p->key);
    if (state != RM_NO_STATE && rm_state_cost(&p->states, state) <= cost) return REMAT_OK;
    int64_t bound = bound_of(p, t, p->child, cost);
    if (bound < p->bound) bound = p->bound;
    if (bound >= p->below) return REMAT_OK;
    if (state == RM_NO_STATE) TRY(rm_states_add(&p->states, p->key, &state));
    rm_state_reach(&p->states, state, cost, p->from_state, p->op);
    if (t == p->nm->n_ops && is_subset(p, p->goal_set, p->child)) {
        p->below = cost;
        p->goal = state;
        return REMAT_OK;
    }
    return rm_states_push(&p->states, (rm_open_state){bound, t, state});
}

/* Is there no time, work or memory left? */
static bool is_time(prover *p)
{
    remat_ctx *ctx = p->ctx;
    if (p->states.full || p->stopped) return true;
    const int64_t work = p->work + p->to_go.work - p->counted;
    if (work < LOOK && work < rm_work_left(ctx)) return false;
    const int64_t cost = p->below == RM_MAX_SUM ? REMAT_ABSENT : p->below;
    ctx->bound_cost = p->bound;
    rm_report(ctx, p->asked->strategy, -1, cost, p->asked->peak_bytes);
    p->stopped = rm_spend(ctx, work);
    p->counted += work;
    return p->stopped;
}

/* With a storage go the tokens that stand on it. */
static void drop_store(prover *p, uint32_t store)
{
    const rm_normal *nm = p->nm;
    rm_drop_bit(p->part, store);
    for (uint32_t k = nm->token_begin[store]; k < nm->token_begin[store + 1]; k++)
        rm_drop_bit(p->part, nm->tokens[k]);
}

static void bring_back(prover *p, uint32_t store)
{
    const rm_normal *nm = p->nm;
    rm_add_bit(p->part, store);
    for (uint32_t k = nm->token_begin[store]; k < nm->token_begin[store + 1]; k++)
        if (rm_has_bit(p->from, nm->tokens[k])) rm_add_bit(p->part, nm->tokens[k]);
}

/* Tries every smallest set of candidates that frees `excess` bytes. Candidates are sorted by size,
 * the largest first, so the last one of a set is its least. Depth first, with a stack of our own:
 * sets may be large. */
static remat_status drop(prover *p, int64_t excess)
{
    uint32_t depth = 0, i = 0;
    for (;;) {
        bool deeper = false;
        if (excess <= 0) {
            TRY(arrive(p));
        } else if (i < p->n_candidates && p->suffix_bytes[i] >= excess && !is_time(p)) {
            drop_store(p, p->candidates[i]);
            excess -= p->nm->bytes[p->candidates[i]];
            assert(depth < p->n_candidates);
            p->dropped[depth++] = i;
            deeper = is_hopeful(p);
        }
        if (!deeper) {
            if (depth == 0) return REMAT_OK;
            i = p->dropped[--depth];
            bring_back(p, p->candidates[i]);
            excess += p->nm->bytes[p->candidates[i]];
        }
        i++;
    }
}

/* Must the step at hand have the storage in memory while it runs? */
static bool is_held(const prover *p, uint32_t store)
{
    const size_t at = (size_t)p->op * p->n_words;
    return rm_has_bit(p->out + at, store) ||
           (rm_has_bit(p->in + at, store) && !rm_has_bit(p->takes + at, store));
}

/* The storages in memory that may go, largest first. */
static void list_candidates(prover *p)
{
    p->n_candidates = 0;
    for (uint32_t i = 0; i < p->n_by_size; i++) {
        const uint32_t s = p->by_size[i];
        if (rm_has_bit(p->part, s) && !is_held(p, s)) p->candidates[p->n_candidates++] = s;
    }
    p->suffix_bytes[p->n_candidates] = 0;
    for (uint32_t i = p->n_candidates; i-- > 0;)
        p->suffix_bytes[i] = p->suffix_bytes[i + 1] + p->nm->bytes[p->candidates[i]];
}

/* Inputs that are of no use behind the step go, where an output can be in their place. Answers
 * their bytes. */
static int64_t take_useless(prover *p)
{
    const rm_normal *nm = p->nm;
    const uint64_t *useful = p->useful + (size_t)p->to_t * p->n_words;
    int64_t bytes = 0;
    for (uint32_t k = nm->in_begin[p->op]; k < nm->in_begin[p->op + 1]; k++) {
        if (!nm->may_take[k] || rm_has_bit(useful, nm->in[k])) continue;
        drop_store(p, nm->in[k]);
        bytes += nm->bytes[nm->in[k]];
    }
    return bytes;
}

static remat_status try_step(prover *p, uint32_t op, bool is_first_run, int64_t bytes_there)
{
    const rm_normal *nm = p->nm;
    int64_t excess = bytes_there + nm->workspace[op] - p->budget_bytes;
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
        if (!rm_has_bit(p->from, nm->out[k])) excess += nm->bytes[nm->out[k]];
    p->op = op;
    p->to_t = is_first_run ? pass_free_views(p, p->from_t + 1) : p->from_t;
    memcpy(p->part, p->from, p->n_words * sizeof *p->part);
    excess -= take_useless(p);
    if (excess <= 0) return arrive(p);
    if (!is_hopeful(p)) return REMAT_OK;
    list_candidates(p);
    return drop(p, excess);
}

/* Are the inputs of the op in memory? */
static bool can_run(const prover *p, uint32_t op)
{
    return is_subset(p, p->in + (size_t)op * p->n_words, p->from);
}

/* Would the op make something that may still serve and is not in memory? */
static bool makes_more(const prover *p, uint32_t op)
{
    const uint64_t *useful = p->useful + (size_t)p->from_t * p->n_words,
                   *out = p->out + (size_t)op * p->n_words;
    for (uint32_t i = 0; i < p->n_words; i++)
        if (out[i] & useful[i] & ~p->from[i]) return true;
    return false;
}

/* All steps from the state at hand: re-runs, then the next first run. */
static remat_status expand(prover *p)
{
    const rm_normal *nm = p->nm;
    const uint32_t *order = p->to_go.bound.order;
    int64_t bytes = nm->resident_bytes;
    p->work += nm->n_stores + (int64_t)nm->n_ops * p->n_words;
    for (uint32_t s = 0; s < nm->n_stores; s++)
        if (rm_has_bit(p->from, s)) bytes += nm->bytes[s];
    for (uint32_t t = 0; t < nm->n_ops; t++) {
        const uint32_t op = order[t];
        if (t >= p->from_t && !p->is_free_view[op]) continue;
        if (rm_bit(&p->may_rerun, op, p->from_t) && can_run(p, op) && makes_more(p, op))
            TRY(try_step(p, op, false, bytes));
    }
    if (p->from_t == nm->n_ops || !can_run(p, order[p->from_t])) return REMAT_OK;
    return try_step(p, order[p->from_t], true, bytes);
}

/* ---- the search ---- */

/* Makes the state the one at hand. False: it is done already, at a lower cost. */
static bool begin_expansion(prover *p, const rm_open_state *next)
{
    if (!rm_state_finish(&p->states, next->state)) return false;
    p->from_state = next->state;
    p->from_t = next->progress;
    p->from_cost = rm_state_cost(&p->states, next->state);
    memcpy(p->from, rm_state_key(&p->states, next->state) + 1, p->n_words * sizeof *p->from);
    return true;
}

/* The state that nothing has happened in. */
static remat_status begin_search(prover *p)
{
    const uint32_t t = pass_free_views(p, 0);
    uint32_t state;
    p->bound = bound_of(p, t, p->from, 0);
    if (p->bound >= p->below) return REMAT_OK;
    p->key[0] = t;
    memcpy(p->child, p->from, p->n_words * sizeof *p->child);
    TRY(rm_states_add(&p->states, p->key, &state));
    rm_state_reach(&p->states, state, 0, state, 0);
    return rm_states_push(&p->states, (rm_open_state){p->bound, t, state});
}

static remat_status search(prover *p, rm_proved *out)
{
    rm_states *states = &p->states;
    TRY(begin_search(p));
    while (states->open.n && states->open.items[0].bound < p->below) {
        p->bound = states->open.items[0].bound;
        if (is_time(p)) break;
        const rm_open_state top = rm_states_pop(states);
        if (!begin_expansion(p, &top)) continue;
        TRY(expand(p));
        if (states->full || p->stopped) break;
    }
    rm_spend(p->ctx, p->work + p->to_go.work - p->counted);
    out->full = states->full;
    out->bound = (states->full || p->stopped) && p->bound < p->below ? p->bound : p->below;
    return REMAT_OK;
}

/* paid, by turn: what gaps pay for a re-run of the op, less that of the turn before. */
static void find_paid(const prover *p, uint32_t op, int64_t *paid)
{
    const rm_order_bound *b = &p->to_go.bound;
    memset(paid, 0, ((size_t)p->nm->n_ops + 2) * sizeof *paid);
    for (uint32_t i = b->charge_begin[op]; i < b->charge_begin[op + 1]; i++) {
        const uint32_t gap = b->charges[i].gap;
        const int64_t pays = b->charges[i].amount - rm_cost_to_go_surcharge(&p->to_go, gap);
        if (pays <= 0) continue;
        paid[b->start[gap] + 1] += pays;
        paid[b->gaps[gap].to + 1] -= pays;
    }
}

/* Which ops can run again in which turns, in a plan that is cheaper than `below`? As far as no gap
 * pays for a re-run, it is a waste. A gap pays only if it is lost, and losing it may be dearer than
 * keeping it would have been. docs/bound.md, "From a state on". */
static remat_status find_reruns(prover *p)
{
    const rm_order_bound *b = &p->to_go.bound;
    const uint32_t n = p->nm->n_ops;
    int64_t *paid;
    const int64_t root = rm_cost_to_go_from(&p->to_go, 0, p->from);
    TRY(rm_bits_new(p->ctx, &p->may_rerun, n, (size_t)n + 1));
    TRY(RM_SCRATCH(p->ctx, p->last_rerun, n));
    TRY(RM_SCRATCH(p->ctx, paid, (size_t)n + 2));
    for (uint32_t op = 0; op < n && !is_time(p); op++) {
        p->work += n + b->charge_begin[op + 1] - b->charge_begin[op];
        if (p->nm->pinned[op]) continue;
        find_paid(p, op, paid);
        int64_t sum = 0;
        for (uint32_t t = 0; t <= n; t++) {
            sum += paid[t];
            if (t <= p->to_go.position[op] && !p->is_free_view[op]) continue;
            if (round_up(p, p->nm->cost[op], root - sum) >= p->below) continue;
            rm_bit_set(&p->may_rerun, op, t);
            p->last_rerun[op] = t;
        }
    }
    return REMAT_OK;
}

/* May an op that reads a storage still have a use for it at t? It does if its first run comes
 * later, or if it may run again and make something useful. A free view has no first run to wait
 * for. */
static bool is_useful_to(const prover *p, const uint64_t *useful, uint32_t reader, uint32_t t)
{
    const rm_normal *nm = p->nm;
    if (p->is_free_view[reader] ? p->flag[reader] != REMAT_NONE : p->to_go.position[reader] >= t)
        return true;
    if (p->last_rerun[reader] < t) return false;
    for (uint32_t k = nm->out_begin[reader]; k < nm->out_begin[reader + 1]; k++)
        if (rm_has_bit(useful, nm->out[k])) return true;
    return false;
}

/* The storages that may still serve at t: graph outputs, and what is useful to one of its
 * readers. */
static void find_useful(prover *p, uint32_t t)
{
    const rm_normal *nm = p->nm;
    uint64_t *useful = p->useful + (size_t)t * p->n_words;
    p->work += nm->n_ops + nm->in_begin[nm->n_ops] + nm->out_begin[nm->n_ops];
    memcpy(useful, p->goal_set, p->n_words * sizeof *useful);
    for (uint32_t i = nm->n_ops; i-- > 0;) {
        const uint32_t op = p->to_go.bound.order[i];
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++) {
            const uint32_t s = nm->out[k];
            bool serves = false;
            for (uint32_t r = nm->reader_begin[s]; r < nm->reader_begin[s + 1] && !serves; r++)
                serves = is_useful_to(p, useful, nm->readers[r], t);
            if (serves) rm_add_bit(useful, s);
        }
    }
}

static void set_bits(uint64_t *set, const uint32_t *items, uint32_t begin, uint32_t end)
{
    for (uint32_t k = begin; k < end; k++) rm_add_bit(set, items[k]);
}

/* A free view that somebody reads runs in any plan. One that nobody reads must run once all the
 * same, so it gets a flag. */
static remat_status find_free_views(prover *p)
{
    const rm_normal *nm = p->nm;
    TRY(RM_SCRATCH(p->ctx, p->is_free_view, nm->n_ops));
    TRY(RM_SCRATCH(p->ctx, p->flag, nm->n_ops));
    p->n_bits = nm->n_stores;
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        bool is_read = false;
        p->flag[op] = REMAT_NONE;
        p->is_free_view[op] = rm_is_free_view(nm, op);
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
            is_read |= nm->is_output[nm->out[k]] ||
                       nm->reader_begin[nm->out[k]] < nm->reader_begin[nm->out[k] + 1];
        if (p->is_free_view[op] && !is_read) p->flag[op] = p->n_bits++;
    }
    p->n_words = p->n_bits / 64 + 1;
    return REMAT_OK;
}

typedef struct sized {
    int64_t bytes;
    uint32_t store;
} sized;

static int largest_first(const void *left, const void *right)
{
    const sized *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    return (a->store > b->store) - (a->store < b->store);
}

static remat_status sort_by_size(prover *p)
{
    const rm_normal *nm = p->nm;
    sized *all;
    TRY(RM_SCRATCH(p->ctx, all, nm->n_stores));
    for (uint32_t s = 0; s < nm->n_stores; s++)
        if (nm->bytes[s] > 0) all[p->n_by_size++] = (sized){nm->bytes[s], s};
    if (p->n_by_size) qsort(all, p->n_by_size, sizeof *all, largest_first);
    for (uint32_t i = 0; i < p->n_by_size; i++) p->by_size[i] = all[i].store;
    return REMAT_OK;
}

static remat_status allocate_sets(prover *p)
{
    remat_ctx *ctx = p->ctx;
    const rm_normal *nm = p->nm;
    const size_t words = p->n_words, n = nm->n_ops;
    TRY(RM_SCRATCH(ctx, p->useful, (n + 1) * words));
    TRY(RM_SCRATCH(ctx, p->in, n * words));
    TRY(RM_SCRATCH(ctx, p->out, n * words));
    TRY(RM_SCRATCH(ctx, p->takes, n * words));
    TRY(RM_SCRATCH(ctx, p->before, words));
    TRY(RM_SCRATCH(ctx, p->goal_set, words));
    TRY(RM_SCRATCH(ctx, p->from, words));
    TRY(RM_SCRATCH(ctx, p->part, words));
    TRY(RM_SCRATCH(ctx, p->key, 1 + words));
    p->child = p->key + 1;
    TRY(RM_SCRATCH(ctx, p->by_size, nm->n_stores));
    TRY(RM_SCRATCH(ctx, p->candidates, nm->n_stores));
    TRY(RM_SCRATCH(ctx, p->dropped, nm->n_stores));
    return RM_SCRATCH(ctx, p->suffix_bytes, (size_t)nm->n_stores + 1);
}

static void list_sets(prover *p)
{
    const rm_normal *nm = p->nm;
    const size_t words = p->n_words;
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        set_bits(p->in + op * words, nm->in, nm->in_begin[op], nm->in_begin[op + 1]);
        set_bits(p->out + op * words, nm->out, nm->out_begin[op], nm->out_begin[op + 1]);
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
            if (nm->may_take[k]) rm_add_bit(p->takes + op * words, nm->in[k]);
        if (p->flag[op] == REMAT_NONE) continue;
        rm_add_bit(p->out + op * words, p->flag[op]);
        rm_add_bit(p->goal_set, p->flag[op]);
    }
    for (uint32_t s = 0; s < nm->n_stores; s++)
        if (nm->is_output[s]) rm_add_bit(p->goal_set, s);
}

static void sum_costs(prover *p)
{
    const rm_normal *nm = p->nm;
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        p->total_cost += nm->cost[op];
        if (!nm->pinned[op]) p->step = rm_common_divisor(nm->cost[op], p->step);
    }
    if (p->step == 0) p->step = 1;
}

/* All that is known before the search. */
static remat_status prepare(prover *p)
{
    TRY(find_free_views(p));
    TRY(allocate_sets(p));
    list_sets(p);
    sum_costs(p);
    TRY(sort_by_size(p));
    TRY(find_reruns(p));
    for (uint32_t t = 0; t <= p->nm->n_ops && !is_time(p); t++) find_useful(p, t);
    return REMAT_OK;
}

/* The tables of cost_to_go.c may take a quarter of the memory. Sets by op and by turn may take
 * another. */
static remat_status prove(prover *p, rm_codes *found, rm_proved *out)
{
    const rm_normal *nm = p->nm;
    const int64_t set_bytes = (int64_t)nm->n_ops * (nm->n_ops + 4 * (int64_t)nm->n_stores) / 8;
    TRY(rm_cost_to_go_new(p->ctx, nm, p->budget_bytes, p->asked->order, p->most_bytes / 4,
                          &p->to_go));
    if (!p->to_go.bound.feasible || nm->n_ops == 0) return REMAT_OK;
    if (!p->to_go.base || set_bytes > p->most_bytes / 4) {
        out->full = true;
        out->bound = 0;
        return REMAT_OK;
    }
    TRY(prepare(p));
    TRY(rm_states_begin(p->ctx, 1 + p->n_words, p->most_bytes, &p->states));
    TRY(search(p, out));
    if (p->goal == RM_NO_STATE) return REMAT_OK;
    out->cost = p->below;
    return rm_states_way_to(&p->states, p->goal, found);
}

remat_status rm_prove(remat_ctx *ctx, const rm_normal *nm, const rm_proof_goal *goal,
                      rm_codes *found, rm_proved *out)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    prover p = {.ctx = ctx,
                .nm = nm,
                .asked = goal,
                .budget_bytes = goal->budget_bytes,
                .below = goal->below,
                .most_bytes = rm_memory_left(ctx) / 4 * 3,
                .goal = RM_NO_STATE};
    *out = (rm_proved){.bound = goal->below, .cost = INT64_MAX};
    found->n = 0;
    const remat_status status = prove(&p, found, out);
    rm_states_free(&p.states);
    rm_scratch_release(ctx, mark);
    return status;
}
