/* any_order.c: best-first search over the states of half-done plans, in all orders of first runs.
 *
 * Problem: like that of prove.c, but what runs next is free. A state (D, R) is the set D of ops
 * that have run, and the set R of storages in memory. A step runs an op whose inputs are in R.
 * Inputs, outputs, workspace and all else that stays must fit the budget. At the end D is all ops,
 * and the graph outputs are in R. docs/exact.md proves that this covers every schedule, and that
 * each of the rules below keeps a cheapest one.
 *
 * Views. A view that stays makes a token, which lies in R only while its base does. If the base is
 * made again while it is in R, the token stays. In the schedule the view then refers to the older
 * of two instances, and R counts them once. So a plan that was found may need more memory than it
 * seems. The bound holds all the same. This takes an op that makes the base and something else. If
 * goal->one_instance, the token goes instead: what is found then fits, and the bound is for such
 * plans only.
 *
 * Method: A*, as in prove.c: states are taken by the least that a plan through them costs.
 * - Nothing leaves memory before it must. Where a step does not fit, every smallest set of storages
 *   that makes it fit is tried.
 * - A storage is *useful* if it is a graph output, if an op that reads it has not run yet, or if
 * one that may run again makes something useful from it. Others are not part of a state.
 * - An op runs again only if it makes something useful that is not in R, and if a plan that runs it
 *   twice can be cheaper than `below` at all.
 * - An input in whose place the op may make an output goes like any other storage. It goes while
 * the op runs, so it does not count, and at once if it is not useful afterwards.
 * - *Eager ops.* An op runs at once, and no other step is tried, if it fits as things are, and if
 * the useful things that it makes have no more bytes than those of its inputs that are not useful
 * any more and cannot be made again.
 *
 * The least that remains to be paid from (D, R):
 * - every op outside D once;
 * - *forced* re-runs: what is wanted (by an op outside D, or as an output), was made and is not in
 *   R, must be made again, and so must whatever its op reads that is not in R, to any depth;
 * - for one op outside D, what its first run drives out: storages that were made before it in any
 *   order, and are read after it in any order, and do not all fit beside it. Those that are not
 *   there, or are gone once it ran, are made again later. The cheapest set of ops that makes room
 * is added, for the op where that is dearest. Ops whose re-run is forced count as paid. If
 * something that cannot run again is lost, or cannot be held, no plan leads on.
 *
 * Invariants: those of prove.c.
 *
 * Cost: exponential. About ops * (1 + sets of ops looked at) operations for a state. Sets are
 * single words, so a graph has at most 64 ops and storages. Deterministic. */
#include "plan/bound/any_order.h"

#include <assert.h>
#include <stdlib.h>

#include "plan/bound/gaps.h"
#include "plan/bound/states.h"

enum {
    MOST = RM_ANY_ORDER_MOST,
    LOOK = 1 << 18,   /* operations between looks at the limits */
    COVER_NODES = 48, /* sets that one question about the cheapest set looks at */
    BYTE_VALUES = 256
};
#define NO_WAY_ON INT64_MAX

typedef uint64_t set; /* of ops or of storages */

static set only(uint32_t i) { return (set)1 << i; }
/* The least item, which is taken out. The set is not empty. */
static uint32_t take(set *s)
{
    const uint32_t i = rm_lowest_bit(*s);
    *s &= *s - 1;
    return i;
}

typedef struct crowd { /* the ops whose storages in a set could go, cheapest bytes first */
    uint32_t n;
    int64_t bytes[MOST], cost[MOST];
    uint32_t op[MOST];
    int64_t nodes; /* sets that may still be looked at */
} crowd;

typedef struct searcher {
    remat_ctx *ctx;
    const rm_normal *nm;
    const rm_proof_goal *asked;
    int64_t budget_bytes;
    int64_t total_cost; /* of every op once */
    int64_t step;       /* re-runs cost multiples of it */
    int64_t below;      /* plans that cost this much or more are not looked for */
    set all, pinned, may_rerun, outputs;
    set in[MOST], out[MOST]; /* by op */
    set takes[MOST];         /* by op: inputs in whose place it may make outputs */
    set before[MOST];        /* by op: ops whose first run comes before its own in any plan */
    set pinned_before[MOST]; /* by op: of these, the pinned ones that it must wait for */
    set made_before[MOST];   /* by op: storages that those make */
    set read_after[MOST];    /* by op: storages that ops after it read, or outputs; not held */
    set tokens[MOST];        /* by storage */
    set stale[MOST];         /* by op: tokens that do not outlive a run of it */
    int64_t room[MOST];      /* by op: bytes of the budget beside what it must hold */
    int64_t out_bytes[MOST]; /* by op: of all that it makes */
    set has_tokens;          /* ops that make tokens which have a base */
    uint32_t by_price[MOST]; /* ops that make bytes, by cost for a byte */
    uint32_t n_by_price;
    uint32_t by_size[MOST]; /* storages with bytes, largest first */
    uint32_t n_by_size;
    int64_t sums[MOST / 8][BYTE_VALUES]; /* bytes of the storages in each 8 bits of a set */
    rm_states states;                    /* key: D, R */
    int64_t work, counted;               /* operations; how many of them the context knows of */
    int64_t bound;                       /* no plan costs less */
    bool stopped;                        /* a limit is reached */
    uint32_t goal;                       /* state */
    /* one expansion: */
    set ran, there;
    uint32_t from_state;
    int64_t from_cost;
    /* one step: */
    uint32_t op;
    set to_ran, to_useful;
    uint32_t candidates[MOST];      /* storages that may go, largest first */
    int64_t suffix_bytes[MOST + 1]; /* by candidate: of it and all after it */
    uint32_t n_candidates;
} searcher;

static int64_t bytes_of(const searcher *x, set stores)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; stores; i++, stores >>= 8) bytes += x->sums[i][stores & (BYTE_VALUES - 1)];
    return bytes;
}

static set made_by(const searcher *x, set ops)
{
    set stores = 0;
    while (ops) stores |= x->out[take(&ops)];
    return stores;
}

/* ---- what remains to be paid ---- */

/* A lower limit on the cost of freeing `excess` bytes by items from `i` on, if parts of them may
 * go, each byte at the price that a byte of all that the op makes has. All but the last are rounded
 * down. The sum may be rounded up, because costs are whole. */
static int64_t cost_by_parts(const searcher *x, const crowd *c, uint32_t i, int64_t excess)
{
    int64_t cost = 0;
    for (; i < c->n; i++) {
        const rm_uint128 all = (rm_uint128)x->out_bytes[c->op[i]], whole = (rm_uint128)c->cost[i];
        const rm_uint128 part = (rm_uint128)(c->bytes[i] < excess ? c->bytes[i] : excess);
        if (c->bytes[i] >= excess) return cost + (int64_t)((whole * part + (all - 1)) / all);
        cost += (int64_t)(whole * part / all);
        excess -= c->bytes[i];
    }
    return NO_WAY_ON;
}

/* The least of `best` and of `cost` plus the cheapest items from i on that free `excess` bytes. */
static int64_t cheapest_cover(const searcher *x, crowd *c, uint32_t i, int64_t excess, int64_t cost,
                              int64_t best)
{
    if (excess <= 0) return cost < best ? cost : best;
    const int64_t rest = cost_by_parts(x, c, i, excess);
    if (rest == NO_WAY_ON || cost + rest >= best || c->nodes-- <= 0) return best;
    best = cheapest_cover(x, c, i + 1, excess - c->bytes[i], cost + c->cost[i], best);
    return cheapest_cover(x, c, i + 1, excess, cost, best);
}

/* What it costs at least to free `excess` bytes of the storages. `most` or more: nobody cares how
 * much more. */
static int64_t cost_of_room(searcher *x, set stores, int64_t excess, int64_t most)
{
    crowd c = {.nodes = COVER_NODES};
    for (uint32_t i = 0; i < x->n_by_price; i++) {
        const uint32_t op = x->by_price[i];
        const int64_t bytes = bytes_of(x, x->out[op] & stores);
        if (bytes == 0 || !(x->may_rerun & only(op))) continue;
        c.op[c.n] = op;
        c.bytes[c.n] = bytes;
        c.cost[c.n++] = x->nm->cost[op];
    }
    const int64_t parts = cost_by_parts(x, &c, 0, excess);
    x->work += x->nm->n_ops + c.n;
    if (parts >= most) return most;
    const int64_t least = cheapest_cover(x, &c, 0, excess, 0, most);
    x->work += (COVER_NODES - c.nodes) * 4;
    return c.nodes < 0 ? parts : least;
}

/* Adds up re-runs that cannot be avoided. Returns what they make. *cost is NO_WAY_ON if one of them
 * is impossible. */
static set force(const searcher *x, set there, set missing, int64_t *cost)
{
    set made = 0;
    while (missing) {
        const uint32_t op = x->nm->producer[take(&missing)];
        if (!(x->may_rerun & only(op))) {
            *cost = NO_WAY_ON;
            return made;
        }
        *cost += x->nm->cost[op];
        made |= x->out[op];
        missing = (missing | (x->in[op] & ~there)) & ~made;
    }
    return made;
}

/* The most that the first run of an op which is still to come drives out. `made`: by
 * ops that have run; `paid`: by forced re-runs. */
static int64_t driven_out(searcher *x, set ran, set made, set paid, int64_t limit)
{
    int64_t most = 0;
    for (set ops = x->all & ~ran; ops;) {
        const uint32_t op = take(&ops);
        const set crossing = x->read_after[op] & (x->made_before[op] | made) & ~paid;
        const int64_t excess = bytes_of(x, crossing) - x->room[op];
        if (excess <= 0) continue;
        const int64_t cost = cost_of_room(x, crossing, excess, limit);
        if (cost >= limit) return NO_WAY_ON;
        if (cost > most) most = cost;
    }
    return most;
}

/* The least cost of a plan that costs at least so much: re-runs cost multiples of `step`. */
static int64_t round_up(const searcher *x, int64_t cost)
{
    if (cost <= x->total_cost) return x->total_cost;
    return x->total_cost + (cost - x->total_cost + x->step - 1) / x->step * x->step;
}

/* No plan through the state, which costs this much so far, costs less. NO_WAY_ON: none that is
 * cheaper than `below` goes through it. */
static int64_t bound_of(searcher *x, set ran, set there, int64_t cost)
{
    set wanted = x->outputs;
    x->work += 2 * (int64_t)x->nm->n_ops;
    for (set ops = x->all & ~ran; ops;) {
        const uint32_t op = take(&ops);
        cost += x->nm->cost[op];
        wanted |= x->in[op];
    }
    if (cost >= x->below) return NO_WAY_ON;
    const set made = made_by(x, ran), paid = force(x, there, wanted & made & ~there, &cost);
    if (cost >= x->below) return NO_WAY_ON;
    const int64_t more = driven_out(x, ran, made, paid, x->below - cost);
    return more == NO_WAY_ON ? NO_WAY_ON : round_up(x, cost + more);
}

/* ---- steps ---- */

/* Storages that may still serve once these ops have run. */
static set useful_after(searcher *x, set ran)
{
    set useful = x->outputs;
    x->work += x->nm->n_ops;
    for (uint32_t op = x->nm->n_ops; op-- > 0;) /* readers come behind makers */
        if (!(ran & only(op)) || ((x->may_rerun & only(op)) && (x->out[op] & useful)))
            useful |= x->in[op];
    return useful;
}

/* What the step leaves behind if it runs with `part` in memory besides its outputs. */
static set left_behind(const searcher *x, set part)
{
    return ((part & ~x->stale[x->op]) | x->out[x->op]) & x->to_useful;
}

/* Could the step lead to a better plan if nothing but a subset of `part` stayed? */
static bool is_hopeful(searcher *x, set part)
{
    const set before = part | x->in[x->op]; /* what is taken was there */
    if (x->to_ran != x->ran && bound_of(x, x->ran, before, x->from_cost) >= x->below) return false;
    const int64_t cost = x->from_cost + x->nm->cost[x->op];
    return bound_of(x, x->to_ran, left_behind(x, part), cost) < x->below;
}

static uint32_t count(set s)
{
    uint32_t n = 0;
    for (; s; s &= s - 1) n++;
    return n;
}

/* The step is taken, with `part` in memory besides its outputs. */
static remat_status arrive(searcher *x, set part)
{
    const set key[2] = {x->to_ran, left_behind(x, part)};
    const int64_t cost = x->from_cost + x->nm->cost[x->op];
    uint32_t state = rm_states_find(&x->states, key);
    if (state != RM_NO_STATE && rm_state_cost(&x->states, state) <= cost) return REMAT_OK;
    int64_t bound = bound_of(x, key[0], key[1], cost);
    if (bound < x->bound) bound = x->bound;
    if (bound >= x->below) return REMAT_OK;
    if (state == RM_NO_STATE) TRY(rm_states_add(&x->states, key, &state));
    rm_state_reach(&x->states, state, cost, x->from_state, x->op);
    if (key[0] == x->all && !(x->outputs & ~key[1])) {
        x->below = cost;
        x->goal = state;
        return REMAT_OK;
    }
    return rm_states_push(&x->states, (rm_open_state){bound, count(key[0]), state});
}

/* Is there no time, work or memory left? */
static bool is_time(searcher *x)
{
    remat_ctx *ctx = x->ctx;
    if (x->states.full || x->stopped) return true;
    const int64_t work = x->work - x->counted;
    if (work < LOOK && work < rm_work_left(ctx)) return false;
    const int64_t cost = x->below == RM_MAX_SUM ? REMAT_ABSENT : x->below;
    ctx->bound_cost = x->bound;
    rm_report(ctx, x->asked->strategy, -1, cost, x->asked->peak_bytes);
    x->stopped = rm_spend(ctx, work);
    x->counted += work;
    return x->stopped;
}

/* Tries every smallest set of candidates from `i` on that frees `excess` bytes. They are sorted by
 * size, the largest first, so the last one of a set is its least. With a storage go its tokens. */
static remat_status drop(searcher *x, set part, int64_t excess, uint32_t i)
{
    if (excess <= 0) return arrive(x, part);
    for (; i < x->n_candidates && x->suffix_bytes[i] >= excess && !is_time(x); i++) {
        const uint32_t s = x->candidates[i];
        const set less = part & ~only(s) & ~x->tokens[s];
        if (is_hopeful(x, less)) TRY(drop(x, less, excess - x->nm->bytes[s], i + 1));
    }
    return REMAT_OK;
}

static void list_candidates(searcher *x, set stores)
{
    x->n_candidates = 0;
    for (uint32_t i = 0; i < x->n_by_size; i++)
        if (stores & only(x->by_size[i])) x->candidates[x->n_candidates++] = x->by_size[i];
    x->suffix_bytes[x->n_candidates] = 0;
    for (uint32_t i = x->n_candidates; i-- > 0;)
        x->suffix_bytes[i] = x->suffix_bytes[i + 1] + x->nm->bytes[x->candidates[i]];
}

/* Bytes that are missing for a run of the op with `part` in memory. */
static int64_t excess_of(const searcher *x, uint32_t op, set part)
{
    return x->nm->resident_bytes + bytes_of(x, part | x->out[op]) + x->nm->workspace[op] -
           x->budget_bytes;
}

/* What serves nobody but the op at hand, and need not be there while it runs, may go at once. */
static remat_status try_step(searcher *x, uint32_t op)
{
    x->op = op;
    x->to_ran = x->ran | only(op);
    x->to_useful = useful_after(x, x->to_ran);
    const set part = x->there & (x->to_useful | (x->in[op] & ~x->takes[op]));
    const int64_t excess = excess_of(x, op, part);
    if (excess <= 0) return arrive(x, part);
    if (!is_hopeful(x, part)) return REMAT_OK;
    list_candidates(x, part & ~(x->in[op] & ~x->takes[op]) & ~x->out[op]);
    return drop(x, part, excess, 0);
}

static bool can_run_first(const searcher *x, uint32_t op)
{
    return !(x->ran & only(op)) && !(x->in[op] & ~x->there) && !(x->pinned_before[op] & ~x->ran);
}

/* May the op run at once, whatever comes later? */
static bool is_eager(searcher *x, uint32_t op)
{
    if (!can_run_first(x, op) || (x->has_tokens & only(op)) || excess_of(x, op, x->there) > 0)
        return false;
    const set useful = useful_after(x, x->ran | only(op));
    const set gone = x->in[op] & ~useful & ~made_by(x, x->may_rerun);
    return bytes_of(x, x->out[op] & useful) <= bytes_of(x, gone);
}

/* All steps from the state at hand. */
static remat_status expand(searcher *x)
{
    const set useful = useful_after(x, x->ran);
    for (uint32_t op = 0; op < x->nm->n_ops; op++)
        if (is_eager(x, op)) return try_step(x, op);
    for (uint32_t op = 0; op < x->nm->n_ops; op++) {
        const bool again = (x->ran & x->may_rerun & only(op)) && !(x->in[op] & ~x->there) &&
                           (x->out[op] & useful & ~x->there);
        if (again || can_run_first(x, op)) TRY(try_step(x, op));
    }
    return REMAT_OK;
}

/* ---- the search ---- */

/* An op that costs as much as a better plan may have for all re-runs never runs again. */
static void find_reruns(searcher *x)
{
    x->may_rerun = 0;
    for (uint32_t op = 0; op < x->nm->n_ops; op++)
        if (!x->nm->pinned[op] && x->total_cost + x->nm->cost[op] < x->below)
            x->may_rerun |= only(op);
}

static bool begin_expansion(searcher *x, uint32_t state)
{
    if (!rm_state_finish(&x->states, state)) return false;
    const uint64_t *key = rm_state_key(&x->states, state);
    x->from_state = state;
    x->from_cost = rm_state_cost(&x->states, state);
    x->ran = key[0];
    x->there = key[1];
    return true;
}

static remat_status begin_search(searcher *x)
{
    const set key[2] = {0, 0};
    uint32_t state;
    find_reruns(x);
    const int64_t bound = bound_of(x, 0, 0, 0);
    if (bound >= x->below) return REMAT_OK;
    x->bound = bound;
    TRY(rm_states_add(&x->states, key, &state));
    rm_state_reach(&x->states, state, 0, state, 0);
    return rm_states_push(&x->states, (rm_open_state){bound, 0, state});
}

static remat_status search(searcher *x, rm_proved *out)
{
    rm_states *states = &x->states;
    TRY(begin_search(x));
    while (states->open.n && states->open.items[0].bound < x->below) {
        x->bound = states->open.items[0].bound;
        if (is_time(x)) break;
        const rm_open_state top = rm_states_pop(states);
        if (!begin_expansion(x, top.state)) continue;
        TRY(expand(x));
        if (states->full || x->stopped) break;
        find_reruns(x); /* fewer, where a plan was found */
    }
    rm_spend(x->ctx, x->work - x->counted);
    out->full = states->full;
    out->bound = (states->full || x->stopped) && x->bound < x->below ? x->bound : x->below;
    return REMAT_OK;
}

/* ---- what is known before ---- */

static set set_of(const uint32_t *items, uint32_t begin, uint32_t end)
{
    set s = 0;
    for (uint32_t k = begin; k < end; k++) s |= only(items[k]);
    return s;
}

static void list_stale(searcher *x)
{
    for (uint32_t op = 0; op < x->nm->n_ops; op++)
        for (set out = x->out[op]; out;) x->stale[op] |= x->tokens[take(&out)];
}

static void list_sets(searcher *x)
{
    const rm_normal *nm = x->nm;
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        x->all |= only(op);
        x->in[op] = set_of(nm->in, nm->in_begin[op], nm->in_begin[op + 1]);
        x->out[op] = set_of(nm->out, nm->out_begin[op], nm->out_begin[op + 1]);
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
            if (nm->may_take[k]) x->takes[op] |= only(nm->in[k]);
        if (nm->pinned[op]) {
            x->pinned_before[op] = x->pinned;
            x->pinned |= only(op);
        }
    }
    for (uint32_t s = 0; s < nm->n_stores; s++) {
        x->tokens[s] = set_of(nm->tokens, nm->token_begin[s], nm->token_begin[s + 1]);
        if (nm->base[s] != REMAT_NONE) x->has_tokens |= only(nm->producer[s]);
        if (nm->is_output[s]) x->outputs |= only(s);
        for (uint32_t bits = 0; bits < BYTE_VALUES; bits++)
            if (bits >> s % 8 & 1) x->sums[s / 8][bits] += nm->bytes[s];
    }
}

/* In any plan the first run of an op comes behind those of the makers of its inputs, and of the
 * pinned ops before it if it is pinned. */
static void list_order(searcher *x)
{
    const rm_normal *nm = x->nm;
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        x->before[op] = x->pinned_before[op];
        for (set in = x->in[op]; in;) x->before[op] |= only(nm->producer[take(&in)]);
        for (set ops = x->before[op]; ops;) x->before[op] |= x->before[take(&ops)];
        x->made_before[op] = made_by(x, x->before[op]);
        x->read_after[op] = x->outputs;
    }
    for (uint32_t op = 0; op < nm->n_ops; op++)
        for (set ops = x->before[op]; ops;) x->read_after[take(&ops)] |= x->in[op];
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        const set held = (x->in[op] & ~x->takes[op]) | x->out[op];
        x->read_after[op] &= ~held;
        x->room[op] = x->budget_bytes - nm->resident_bytes - nm->workspace[op] - bytes_of(x, held);
        x->out_bytes[op] = bytes_of(x, x->out[op]);
    }
}

typedef struct sorted {
    int64_t cost, bytes;
    uint32_t item;
} sorted;

/* By cost for a byte, then by bytes, the largest first. */
static int by_price(const void *left, const void *right)
{
    const sorted *a = left, *b = right;
    const rm_uint128 one = (rm_uint128)a->cost * (rm_uint128)b->bytes,
                     other = (rm_uint128)b->cost * (rm_uint128)a->bytes;
    if (one != other) return one < other ? -1 : 1;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    return (a->item > b->item) - (a->item < b->item);
}

/* Of ops that make no bytes nobody asks, and storages without bytes never have to go. */
static void sort_items(searcher *x)
{
    const rm_normal *nm = x->nm;
    sorted ops[MOST], stores[MOST];
    for (uint32_t op = 0; op < nm->n_ops; op++)
        if (x->out_bytes[op] > 0)
            ops[x->n_by_price++] = (sorted){nm->cost[op], x->out_bytes[op], op};
    if (x->n_by_price) qsort(ops, x->n_by_price, sizeof *ops, by_price);
    for (uint32_t i = 0; i < x->n_by_price; i++) x->by_price[i] = ops[i].item;
    for (uint32_t s = 0; s < nm->n_stores; s++)
        if (nm->bytes[s] > 0) stores[x->n_by_size++] = (sorted){0, nm->bytes[s], s};
    if (x->n_by_size) qsort(stores, x->n_by_size, sizeof *stores, by_price);
    for (uint32_t i = 0; i < x->n_by_size; i++) x->by_size[i] = stores[i].item;
}

static void sum_costs(searcher *x)
{
    const rm_normal *nm = x->nm;
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        x->total_cost += nm->cost[op];
        if (!nm->pinned[op]) x->step = rm_common_divisor(nm->cost[op], x->step);
    }
    if (x->step == 0) x->step = 1;
}

/* Does everything fit that is in memory whatever the plan? */
static bool may_fit(const searcher *x)
{
    if (x->nm->resident_bytes + bytes_of(x, x->outputs) > x->budget_bytes) return false;
    for (uint32_t op = 0; op < x->nm->n_ops; op++)
        if (x->room[op] < 0) return false;
    return true;
}

static remat_status prove(searcher *x, rm_codes *found, rm_proved *out)
{
    if (x->nm->n_ops == 0) return REMAT_OK;
    list_sets(x);
    if (x->asked->one_instance) list_stale(x);
    list_order(x);
    sort_items(x);
    sum_costs(x);
    if (!may_fit(x)) return REMAT_OK;
    TRY(rm_states_begin(x->ctx, 2, rm_memory_left(x->ctx) / 4 * 3, &x->states));
    TRY(search(x, out));
    if (x->goal == RM_NO_STATE) return REMAT_OK;
    out->cost = x->below;
    return rm_states_way_to(&x->states, x->goal, found);
}

remat_status rm_prove_any_order(remat_ctx *ctx, const rm_normal *nm, const rm_proof_goal *goal,
                                rm_codes *found, rm_proved *out)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    searcher *x;
    assert(rm_any_order_applies(nm));
    TRY(RM_SCRATCH(ctx, x, 1));
    *x = (searcher){.ctx = ctx,
                    .nm = nm,
                    .asked = goal,
                    .budget_bytes = goal->budget_bytes,
                    .below = goal->below,
                    .goal = RM_NO_STATE};
    *out = (rm_proved){.bound = goal->below, .cost = INT64_MAX};
    found->n = 0;
    const remat_status status = prove(x, found, out);
    rm_states_free(&x->states);
    rm_scratch_release(ctx, mark);
    return status;
}
