/* order_bound.c: the linear program behind the bound, and the certificate it leaves. docs/bound.md
 * has the theorem.
 *
 * Problem: given weights w_g (what losing gap g costs), find 0 <= x <= 1 that minimises the sum of
 * w_g (1 - x_g). At each position the bytes of the kept gaps must stay within the room. In bytes
 * taken, y = M x, this is packing intervals on a line: algo/path_flow.c. Any non-negative prices of
 * the rows prove a bound. Those of the optimum prove the most for these weights.
 *
 * Weights: all gaps that need a re-run of an op may charge it, together for at most its cost.
 * 1. At first an op's cost is shared in proportion to bytes.
 * 2. Once there are prices, a gap has no use for more than its bytes are worth at them. So ops give
 *    to gaps that still want some, exactly as verify_bound.c does. What is left is shared in
 *    proportion to bytes.
 * 3. The program is solved again, from the solution before. Go to 2.
 * Each of ROUNDS proves a bound of its own, and the best is kept. A first pass has no stand-ins.
 * PASSES more have heirs that are chosen by what the prices say.
 *
 * Invariants: all numbers are integers. Weights are in cost units / `unit`, prices in cost units /
 * `scale`. Both are powers of two.
 *
 * Cost: O(gaps + charges) and one flow a round. A flow may take half of what is left of MOST_WORK,
 * which is about a second in all: graphs that nobody trains get a weaker bound. Charges are at most
 * MOST_CHARGES times ops, gaps and edges, or the rules are not used. */
#include "plan/bound/order_bound.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "algo/path_flow.h"
#include "base/csr.h"
#include "plan/bound/gaps.h"

enum {
    MOST_CHARGES = 8,     /* times ops, gaps and edges, or no rules are used */
    PASSES = 3,           /* with stand-ins, after one without */
    ROUNDS = 3,           /* of weights and prices in a pass */
    MOST_WORK = 50000000, /* of all flows together */
    ALWAYS = 4000000,     /* operations that are done even if it is late: a hundredth of a second */
    WORK_A_GAP = 16       /* what a round does for each gap and charge, besides the flow */
};
#define MOST_WEIGHT ((int64_t)1 << 61)

typedef struct solver {
    remat_ctx *ctx;
    const rm_normal *nm;
    const rm_order_bound_options *options;
    rm_gaps gs;
    int64_t budget_bytes, total_cost, unit, scale;
    int64_t work, spent; /* operations: left for flows; done in all */
    /* By position: how many rows come before it. Only positions that may lack room are rows. */
    uint32_t *row;
    uint32_t n_rows;
    int64_t *room; /* by row */
    uint32_t *row_position;
    /* given the heirs: */
    rm_stand_ins heirs;
    uint32_t *start;                   /* by gap: after `from` where a stand-in is touched later */
    uint32_t *charge_begin, *op_begin; /* by gap; by op */
    RM_VEC(uint32_t) charges;    /* by gap: ops that run again without it, the gap's own first */
    uint32_t *by_start, *by_end; /* by op: gaps that charge it */
    rm_interval *intervals;      /* by gap with rows */
    uint32_t *interval_gap, n_intervals;
    rm_path_flow flow;
    /* a round: */
    int64_t *weight; /* by gap */
    int64_t *rest;   /* by op: what it did not give, in cost units / unit */
    rm_uint128 *left, *given;
    rm_charge *written;    /* like by_start, or NULL: not asked for */
    int64_t *price_before; /* by position: sum of the prices before it */
    /* the best so far: */
    rm_uint128 best;
    int64_t *best_price; /* by row */
    rm_stand_ins best_heirs;
    rm_order_bound *out;
} solver;

/* ---- rows ---- */

static remat_status find_rows(solver *s)
{
    const rm_gaps *gs = &s->gs;
    const uint32_t n = gs->n;
    TRY(RM_SCRATCH(s->ctx, s->row, (size_t)n + 1));
    TRY(RM_SCRATCH(s->ctx, s->room, n));
    TRY(RM_SCRATCH(s->ctx, s->row_position, n));
    for (uint32_t t = 0; t < n; t++) {
        s->row[t] = s->n_rows;
        const int64_t room = s->budget_bytes - gs->need[t];
        if (room >= gs->load[t] || rm_is_free_view(s->nm, gs->at[t])) continue;
        s->room[s->n_rows] = room;
        s->row_position[s->n_rows++] = t;
    }
    s->row[n] = s->n_rows;
    return REMAT_OK;
}

/* ---- given the heirs: who is charged by whom ---- */

typedef struct charging {
    uint32_t *usable; /* by storage: 1 + the last gap that it stands in for */
    uint32_t *seen;   /* by op: 1 + the last gap that charges it */
    uint64_t work;
} charging;

/* A stand-in must be out of use before the gap ends. The gap starts once all of them are. */
static void find_stand_ins(solver *s, uint32_t gap, charging *c)
{
    const rm_gap *x = &s->gs.gaps[gap];
    const rm_stand_ins *h = &s->heirs;
    for (uint32_t k = h->stand_in_begin[x->store]; k < h->stand_in_begin[x->store + 1]; k++) {
        const uint32_t last = s->gs.last_touch[h->stand_ins[k]];
        if (last >= x->to) continue;
        c->usable[h->stand_ins[k]] = gap + 1;
        if (last > s->start[gap]) s->start[gap] = last;
    }
}

static remat_status add_charge(solver *s, uint32_t gap, uint32_t op, charging *c)
{
    if (c->seen[op] == gap + 1) return REMAT_OK;
    c->seen[op] = gap + 1;
    return RM_PUSH(s->ctx, s->charges, op);
}

/* The ops that run again without the gap: its own, and those that make its stand-ins, as far as
 * they are reached from it through stand-ins. */
static remat_status find_charges(solver *s, uint32_t gap, charging *c)
{
    const rm_normal *nm = s->nm;
    const rm_gap *x = &s->gs.gaps[gap];
    const uint32_t own = nm->producer[x->store];
    const uint32_t n_stand_ins =
        s->heirs.stand_in_begin[x->store + 1] - s->heirs.stand_in_begin[x->store];
    s->start[gap] = x->from;
    if (nm->pinned[own]) return REMAT_OK; /* plans may fetch, and nothing else brings it back */
    const size_t first = s->charges.n;
    TRY(add_charge(s, gap, own, c));
    if (n_stand_ins == 0) return REMAT_OK;
    c->work += n_stand_ins;
    find_stand_ins(s, gap, c);
    for (size_t next = first; next < s->charges.n; next++) {
        const uint32_t op = s->charges.items[next];
        c->work += 1 + nm->in_begin[op + 1] - nm->in_begin[op];
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
            if (c->usable[nm->in[k]] == gap + 1)
                TRY(add_charge(s, gap, nm->producer[nm->in[k]], c));
    }
    return REMAT_OK;
}

/* too_many: stops where there are too many charges, and says so; NULL: does not stop. */
static remat_status charge_gaps(solver *s, bool *too_many)
{
    charging c = {.work = 0};
    TRY(RM_SCRATCH(s->ctx, c.usable, s->nm->n_stores));
    TRY(RM_SCRATCH(s->ctx, c.seen, s->nm->n_ops));
    s->charges.n = 0;
    const uint64_t size = (uint64_t)s->nm->in_begin[s->nm->n_ops] + s->nm->n_ops + s->gs.n_gaps;
    const uint64_t most = too_many ? MOST_CHARGES * size : UINT64_MAX;
    for (uint32_t i = 0; i < s->gs.n_gaps && c.work <= most; i++) {
        TRY(find_charges(s, i, &c));
        s->charge_begin[i + 1] = (uint32_t)s->charges.n;
    }
    if (too_many) *too_many = c.work > most;
    return REMAT_OK;
}

/* By op: the gaps that charge it, by ascending key. */
static remat_status list_by_op(const solver *s, const uint32_t *key, rm_csr *out)
{
    const uint32_t n_gaps = s->gs.n_gaps;
    rm_csr by_key;
    TRY(rm_csr_by_key(s->ctx, s->gs.n + 1, n_gaps, key, &by_key));
    return rm_csr_invert(s->ctx, s->nm->n_ops, n_gaps, s->charge_begin, s->charges.items,
                         by_key.items, out);
}

static remat_status list_charges(solver *s)
{
    const uint32_t n_gaps = s->gs.n_gaps;
    uint32_t *end;
    rm_csr by_start, by_end;
    TRY(RM_SCRATCH(s->ctx, end, n_gaps));
    for (uint32_t i = 0; i < n_gaps; i++) end[i] = s->gs.gaps[i].due;
    TRY(list_by_op(s, s->start, &by_start));
    TRY(list_by_op(s, end, &by_end));
    s->op_begin = by_start.begin; /* as those of by_end */
    s->by_start = by_start.items;
    s->by_end = by_end.items;
    return REMAT_OK;
}

static remat_status find_intervals(solver *s)
{
    s->n_intervals = 0;
    TRY(RM_SCRATCH(s->ctx, s->intervals, s->gs.n_gaps));
    TRY(RM_SCRATCH(s->ctx, s->interval_gap, s->gs.n_gaps));
    for (uint32_t i = 0; i < s->gs.n_gaps; i++) {
        const rm_gap *x = &s->gs.gaps[i];
        const uint32_t first = s->row[s->start[i] + 1], last = s->row[x->to];
        if (first >= last) continue;
        s->interval_gap[s->n_intervals] = i;
        s->intervals[s->n_intervals++] = (rm_interval){first, last - 1, s->nm->bytes[x->store], 0};
    }
    return REMAT_OK;
}

/* Chooses heirs, and lists what follows from them: charges and intervals. Without any rules if
 * there would be too many charges. worth, by storage: see gaps.h. */
static remat_status take_heirs(solver *s, unsigned rules, const int64_t *worth)
{
    bool too_many = false;
    TRY(rm_stand_ins_find(s->ctx, &s->gs, rules, worth, s->price_before, &s->heirs));
    TRY(charge_gaps(s, &too_many));
    if (too_many) {
        TRY(rm_stand_ins_find(s->ctx, &s->gs, 0, worth, s->price_before, &s->heirs));
        TRY(charge_gaps(s, NULL));
    }
    TRY(list_charges(s));
    return find_intervals(s);
}

/* ---- weights ---- */

/* From cost units / scale to cost units / unit, rounded down. */
static rm_uint128 to_unit(const solver *s, rm_uint128 x)
{
    const rm_uint128 scale = (rm_uint128)s->scale, unit = (rm_uint128)s->unit;
    return scale > unit ? x / (scale / unit) : x * (unit / scale);
}

static int64_t limited(rm_uint128 x)
{
    return x < (rm_uint128)MOST_WEIGHT ? (int64_t)x : MOST_WEIGHT;
}

/* The most bytes of gaps that charge the op at one time. */
static int64_t most_charging(const solver *s, uint32_t op)
{
    const rm_normal *nm = s->nm;
    int64_t active = 0, most = 0;
    for (uint32_t i = s->op_begin[op], ended = i; i < s->op_begin[op + 1]; i++) {
        const uint32_t gap = s->by_start[i];
        for (; s->gs.gaps[s->by_end[ended]].due <= s->start[gap]; ended++)
            active -= nm->bytes[s->gs.gaps[s->by_end[ended]].store];
        active += nm->bytes[s->gs.gaps[gap].store];
        if (active > most) most = active;
    }
    return most;
}

/* Shares what ops have among the gaps that charge them, by bytes. amount: by op, in cost units /
 * unit. */
static void share_by_bytes(solver *s, const int64_t *amount)
{
    const rm_normal *nm = s->nm;
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        if (s->op_begin[op] == s->op_begin[op + 1] || amount[op] == 0) continue;
        const int64_t most = most_charging(s, op);
        for (uint32_t i = s->op_begin[op]; i < s->op_begin[op + 1]; i++) {
            const uint32_t gap = s->by_start[i];
            const rm_uint128 bytes = (rm_uint128)nm->bytes[s->gs.gaps[gap].store];
            const int64_t part = (int64_t)((rm_uint128)amount[op] * bytes / (rm_uint128)most);
            s->weight[gap] += part;
            if (s->written) s->written[i].amount += part;
        }
    }
}

/* Fetching a gap's storage is as good as making it again. */
static void limit_by_fetches(solver *s)
{
    for (uint32_t i = 0; i < s->gs.n_gaps && s->options->transfer; i++) {
        const uint32_t store = s->gs.gaps[i].store;
        const int64_t fetch =
            limited((rm_uint128)s->options->transfer[store] * (rm_uint128)s->unit);
        if (s->nm->pinned[s->nm->producer[store]] || s->weight[i] > fetch) s->weight[i] = fetch;
    }
}

/* What the gap's bytes are worth at the prices, as far as plans would pay. */
static rm_uint128 asked_by(const solver *s, uint32_t gap)
{
    const rm_gap *x = &s->gs.gaps[gap];
    const int64_t price = s->price_before[x->to] - s->price_before[s->start[gap] + 1];
    rm_uint128 asked = (rm_uint128)price * (rm_uint128)s->nm->bytes[x->store];
    if (s->options->transfer) {
        const rm_uint128 fetch = (rm_uint128)s->options->transfer[x->store] * (rm_uint128)s->scale;
        if (asked > fetch) asked = fetch;
    }
    return asked;
}

/* The op gives what it has to the gaps that charge it, at any time no more than its cost. Returns
 * the sum of what it gives. */
static rm_uint128 give_from(solver *s, uint32_t op)
{
    const rm_uint128 most = (rm_uint128)s->nm->cost[op] * (rm_uint128)s->scale;
    rm_uint128 sum = 0, active = 0, peak = 0;
    for (uint32_t i = s->op_begin[op], ended = i; i < s->op_begin[op + 1]; i++) {
        const uint32_t gap = s->by_start[i];
        for (; s->gs.gaps[s->by_end[ended]].due <= s->start[gap]; ended++)
            active -= s->given[s->by_end[ended]];
        const rm_uint128 room = most - active;
        s->given[gap] = s->left[gap] < room ? s->left[gap] : room;
        s->left[gap] -= s->given[gap];
        active += s->given[gap];
        sum += s->given[gap];
        if (active > peak) peak = active;
        if (s->written) s->written[i] = (rm_charge){gap, limited(to_unit(s, s->given[gap]))};
    }
    assert(peak <= most);
    s->rest[op] = limited(to_unit(s, most - peak));
    return sum;
}

/* Goes through the ops from the last to the first, as verify_bound.c does. Returns what the prices
 * prove, in cost units / scale. */
static rm_uint128 give(solver *s)
{
    const rm_normal *nm = s->nm;
    rm_uint128 proved = 0;
    for (uint32_t i = 0; i < s->gs.n_gaps; i++) {
        s->left[i] = asked_by(s, i);
        if (nm->pinned[nm->producer[s->gs.gaps[i].store]]) proved += s->left[i];
    }
    for (uint32_t i = nm->n_ops; i-- > 0;) proved += give_from(s, s->gs.order[i]);
    for (uint32_t row = 0; row < s->n_rows; row++) {
        const rm_uint128 worth = (rm_uint128)s->flow.price[row] * (rm_uint128)s->room[row];
        proved = proved > worth ? proved - worth : 0;
    }
    return proved;
}

/* New weights: what was given at the prices, and the rest by bytes. */
static void weigh_again(solver *s)
{
    for (uint32_t i = 0; i < s->gs.n_gaps; i++) {
        const rm_uint128 had = asked_by(s, i) - s->left[i];
        s->weight[i] = limited(to_unit(s, had));
    }
    share_by_bytes(s, s->rest);
    limit_by_fetches(s);
}

/* ---- scales ---- */

/* The largest scale at which no sum reaches 2^128. A sum has at most one cost for each charge. */
static int64_t most_scale(const solver *s)
{
    int64_t most = s->total_cost, scale = INT64_C(1) << 58;
    for (uint32_t i = 0; i < s->nm->n_stores && s->options->transfer; i++)
        if (s->options->transfer[i] > most) most = s->options->transfer[i];
    while (scale > 1 && (rm_uint128)most * (rm_uint128)scale >= (rm_uint128)1 << 90) scale /= 2;
    return scale;
}

/* A gap's weight per byte, weight / unit / bytes, in units of 2^-26. */
static int64_t fine_profit(const solver *s, uint32_t interval)
{
    const rm_uint128 weight = (rm_uint128)s->weight[s->interval_gap[interval]];
    const rm_uint128 unit = (rm_uint128)s->unit, size = (rm_uint128)s->intervals[interval].size;
    return limited((weight << 60) / unit / size >> 34);
}

/* The highest profit per byte of the large gaps, weight * scale / unit / bytes, shall be about
 * 2^34. Then small gaps may have 64 times that. */
static void choose_scale(solver *s)
{
    const rm_uint128 enough = (rm_uint128)1 << (34 + 26);
    const int64_t most = most_scale(s);
    int64_t largest = 1, profit = 0;
    for (uint32_t k = 0; k < s->n_intervals; k++)
        if (s->intervals[k].size > largest) largest = s->intervals[k].size;
    for (uint32_t k = 0; k < s->n_intervals; k++) {
        if (s->intervals[k].size < largest / 256) continue;
        const int64_t fine = fine_profit(s, k);
        if (fine > profit) profit = fine;
    }
    s->scale = 1;
    while (s->scale < most && (rm_uint128)profit * (rm_uint128)s->scale < enough) s->scale *= 2;
}

static void set_profits(solver *s)
{
    const int64_t most = (INT64_C(1) << 60) / ((int64_t)s->n_rows + 1);
    for (uint32_t k = 0; k < s->n_intervals; k++) {
        const rm_uint128 weight = (rm_uint128)s->weight[s->interval_gap[k]] * (rm_uint128)s->scale;
        const rm_uint128 profit = weight / ((rm_uint128)s->unit * (rm_uint128)s->intervals[k].size);
        s->intervals[k].profit = profit < (rm_uint128)most ? (int64_t)profit : most;
    }
}

/* ---- rounds ---- */

static void keep_if_best(solver *s, rm_uint128 proved)
{
    if (proved <= s->best) return;
    s->best = proved;
    s->best_heirs = s->heirs;
    memcpy(s->best_price, s->flow.price, s->n_rows * sizeof *s->best_price);
    rm_order_bound *out = s->out;
    for (uint32_t i = 0; i < s->gs.n_gaps; i++) out->kept[i] = s->nm->bytes[s->gs.gaps[i].store];
    for (uint32_t k = 0; k < s->n_intervals; k++) out->kept[s->interval_gap[k]] = s->flow.taken[k];
    memcpy(out->weight, s->weight, s->gs.n_gaps * sizeof *out->weight);
}

/* False: the sum is too large, which that of an optimum's prices never is. */
static bool sum_prices(solver *s, const int64_t *price)
{
    for (uint32_t t = 0, row = 0; t < s->gs.n; t++) {
        const bool is_row = row < s->n_rows && s->row_position[row] == t;
        s->price_before[t + 1] = s->price_before[t] + (is_row ? price[row++] : 0);
        if (s->price_before[t + 1] >= MOST_WEIGHT) return false;
    }
    return true;
}

/* If it is late there are no further rounds, and those that there were stand. Small graphs get all
 * rounds, so that there is a plan however little time. */
static bool is_late(const solver *s) { return s->spent > ALWAYS && rm_is_late(s->ctx); }

static void spend(solver *s, int64_t operations)
{
    s->spent += operations;
    rm_spend(s->ctx, operations);
}

static void solve_round(solver *s)
{
    set_profits(s);
    const int64_t allowed = s->work / 2;
    s->flow.work = allowed;
    rm_path_flow_solve(&s->flow);
    const int64_t spent = allowed - (s->flow.work > 0 ? s->flow.work : 0);
    s->work -= spent;
    spend(s, spent + WORK_A_GAP * (int64_t)(s->gs.n_gaps + s->charges.n));
    if (!sum_prices(s, s->flow.price))
        memset(s->price_before, 0, ((size_t)s->gs.n + 1) * sizeof *s->price_before);
    keep_if_best(s, give(s));
}

static remat_status solve_rounds(solver *s, unsigned rules, const int64_t *worth)
{
    int64_t *amount;
    TRY(RM_SCRATCH(s->ctx, amount, s->nm->n_ops));
    TRY(take_heirs(s, rules, worth));
    for (uint32_t op = 0; op < s->nm->n_ops; op++) amount[op] = s->nm->cost[op] * s->unit;
    memset(s->weight, 0, s->gs.n_gaps * sizeof *s->weight);
    share_by_bytes(s, amount);
    limit_by_fetches(s);
    if (s->scale == 0) choose_scale(s);
    set_profits(s);
    TRY(rm_path_flow_new(s->ctx, s->n_rows, s->room, s->n_intervals, s->intervals, &s->flow));
    for (int round = 0; round < ROUNDS && !is_late(s); round++) {
        if (round) weigh_again(s);
        solve_round(s);
    }
    return REMAT_OK;
}

/* worth, by storage: what its gaps are worth at the prices. A gap over rows without a price is
 * worth 1. */
static void find_worth(const solver *s, int64_t *worth)
{
    memset(worth, 0, s->nm->n_stores * sizeof *worth);
    for (uint32_t i = 0; i < s->gs.n_gaps; i++) {
        const rm_gap *x = &s->gs.gaps[i];
        if (s->row[x->to] == s->row[x->from + 1]) continue;
        const rm_uint128 asked = to_unit(s, asked_by(s, i));
        worth[x->store] = limited((rm_uint128)worth[x->store] + (asked ? asked : 1));
    }
}

static remat_status solve_all(solver *s)
{
    int64_t *worth;
    TRY(RM_SCRATCH(s->ctx, worth, s->nm->n_stores));
    const unsigned rules = s->options->transfer ? 0 : s->options->rules;
    TRY(solve_rounds(s, 0, worth));
    for (int pass = 0; pass < PASSES && rules && !is_late(s); pass++) {
        find_worth(s, worth);
        TRY(solve_rounds(s, rules, worth));
    }
    return REMAT_OK;
}

/* ---- the certificate ---- */

static int by_op(const void *left, const void *right)
{
    const rm_price *a = left, *b = right;
    return (a->op > b->op) - (a->op < b->op);
}

static int by_value(const void *left, const void *right)
{
    const rm_heir *a = left, *b = right;
    if (a->value != b->value) return a->value < b->value ? -1 : 1;
    return (a->heir > b->heir) - (a->heir < b->heir);
}

/* An heir whose gaps have no price proves nothing, and is left out. But holders have a say in where
 * gaps end, so theirs stay. */
static remat_status write_heirs(solver *s, rm_certificate *x)
{
    const rm_normal *nm = s->nm;
    const uint32_t *original = nm->g->value_original;
    const rm_stand_ins *h = &s->best_heirs;
    uint8_t *priced; /* by storage */
    TRY(RM_SCRATCH(s->ctx, priced, nm->n_stores));
    TRY(RM_SCRATCH(s->ctx, x->heirs, h->n));
    for (uint32_t i = 0; i < s->gs.n_gaps; i++) {
        const rm_gap *gap = &s->gs.gaps[i];
        priced[gap->store] |= s->price_before[gap->to] > s->price_before[gap->from + 1];
    }
    for (uint32_t r = 0; r < nm->n_stores; r++)
        for (uint32_t k = h->heir_begin[r]; k < h->heir_begin[r + 1]; k++) {
            if (!priced[h->heirs[k]] && !(h->rules[r] & REMAT_BOUND_HOLDERS)) continue;
            x->heirs[x->n_heirs++] =
                (rm_heir){original[nm->value[r]], original[nm->value[h->heirs[k]]]};
            s->out->rules |= h->rules[r];
        }
    if (x->n_heirs) qsort(x->heirs, x->n_heirs, sizeof *x->heirs, by_value);
    return REMAT_OK;
}

static remat_status write_certificate(solver *s)
{
    const rm_normal *nm = s->nm;
    rm_certificate *x = &s->out->certificate;
    if (s->best == 0) return REMAT_OK;
    x->scale = s->scale;
    sum_prices(s, s->best_price);
    TRY(RM_SCRATCH(s->ctx, x->prices, s->gs.n));
    for (uint32_t t = 0; t < s->gs.n; t++) {
        const int64_t price = s->price_before[t + 1] - s->price_before[t];
        const uint32_t op = nm->g->op_original[nm->op[s->gs.at[t]]];
        if (price || s->options->any_order) x->prices[x->n_prices++] = (rm_price){op, price};
    }
    qsort(x->prices, x->n_prices, sizeof *x->prices, by_op);
    return write_heirs(s, x);
}

/* The charges that the certificate's prices call for. What ops have left is shared by bytes. */
static remat_status write_charges(solver *s)
{
    rm_order_bound *out = s->out;
    if (s->best) {
        s->heirs = s->best_heirs; /* and price_before is the certificate's */
    } else {
        memset(s->price_before, 0, ((size_t)s->gs.n + 1) * sizeof *s->price_before);
        TRY(rm_stand_ins_find(s->ctx, &s->gs, 0, NULL, s->price_before, &s->heirs));
    }
    TRY(charge_gaps(s, NULL)); /* heirs with too many charges were not taken */
    TRY(list_charges(s));
    TRY(RM_SCRATCH(s->ctx, s->written, s->charges.n));
    if (s->scale == 0) s->scale = 1;
    give(s);
    weigh_again(s);
    memcpy(out->weight, s->weight, s->gs.n_gaps * sizeof *out->weight);
    out->start = s->start;
    out->charge_begin = s->op_begin;
    out->charges = s->written;
    out->price_before = s->price_before;
    return REMAT_OK;
}

/* ---- from outside ---- */

static remat_status allocate(solver *s)
{
    const uint32_t n_gaps = s->gs.n_gaps, n = s->nm->n_ops;
    TRY(RM_SCRATCH(s->ctx, s->start, n_gaps));
    TRY(RM_SCRATCH(s->ctx, s->charge_begin, (size_t)n_gaps + 1));
    TRY(RM_SCRATCH(s->ctx, s->weight, n_gaps));
    TRY(RM_SCRATCH(s->ctx, s->rest, n));
    TRY(RM_SCRATCH(s->ctx, s->left, n_gaps));
    TRY(RM_SCRATCH(s->ctx, s->given, n_gaps));
    TRY(RM_SCRATCH(s->ctx, s->price_before, (size_t)s->gs.n + 1));
    TRY(RM_SCRATCH(s->ctx, s->best_price, s->n_rows));
    TRY(RM_SCRATCH(s->ctx, s->out->weight, n_gaps));
    TRY(RM_SCRATCH(s->ctx, s->out->kept, n_gaps));
    for (uint32_t i = 0; i < n_gaps; i++) s->out->kept[i] = s->nm->bytes[s->gs.gaps[i].store];
    return REMAT_OK;
}

/* As fine as weights allow, but no finer than 2^24. */
static void choose_unit(solver *s)
{
    s->total_cost = 1;
    for (uint32_t op = 0; op < s->nm->n_ops; op++) s->total_cost += s->nm->cost[op];
    s->unit = 1;
    while (s->unit < 1 << 24 && s->total_cost < MOST_WEIGHT / 2 / s->unit) s->unit *= 2;
    s->out->unit = s->unit;
}

static remat_status own_order(remat_ctx *ctx, const rm_normal *nm, const uint32_t **order)
{
    uint32_t *own;
    TRY(RM_SCRATCH(ctx, own, nm->n_ops));
    for (uint32_t op = 0; op < nm->n_ops; op++) own[op] = op;
    *order = own;
    return REMAT_OK;
}

/* Do every first run and the end fit the budget, if nothing else is kept for later? */
static void check_need(const solver *s)
{
    rm_order_bound *out = s->out;
    out->tightest = s->gs.n;
    for (uint32_t t = s->gs.n; t-- > 0;)
        if (out->need[t] >= out->need[out->tightest]) out->tightest = t;
    out->feasible = out->need[out->tightest] <= s->budget_bytes;
}

static remat_status find_gaps(solver *s, const uint32_t *order, bool with_holders)
{
    const bool fetches = s->options->transfer != NULL;
    if (s->options->any_order)
        return rm_gaps_on_path(s->ctx, s->nm, s->budget_bytes, fetches, with_holders, &s->gs);
    if (!order) TRY(own_order(s->ctx, s->nm, &order));
    return rm_gaps_find(s->ctx, s->nm, order, fetches, &s->gs);
}

static remat_status solve(solver *s, const uint32_t *order, bool with_holders)
{
    const rm_normal *nm = s->nm;
    rm_order_bound *out = s->out;
    TRY(find_gaps(s, order, with_holders));
    *out = (rm_order_bound){.order = s->gs.at,
                            .n_positions = s->gs.n,
                            .n_gaps = s->gs.n_gaps,
                            .gaps = s->gs.gaps,
                            .need = s->gs.need};
    check_need(s);
    if (!out->feasible) return REMAT_OK;
    TRY(find_rows(s));
    TRY(allocate(s));
    choose_unit(s);
    spend(s, WORK_A_GAP * (int64_t)(nm->in_begin[nm->n_ops] + nm->n_ops + s->gs.n_gaps));
    remat_status status = s->n_rows && !is_late(s) ? solve_all(s) : REMAT_OK;
    if (status == REMAT_OK) status = write_certificate(s);
    if (status == REMAT_OK && s->options->charges) status = write_charges(s);
    RM_VEC_FREE(&s->ctx->heap, s->charges);
    RM_CHECK(status == REMAT_OK && s->options->charges && nm->n_ops <= 64,
             rm_order_bound_check(out, nm, s->budget_bytes));
    return status;
}

/* Does x prove more than y? If one of them proves that nothing fits, it does. */
static bool proves_more(const solver *x, const solver *y)
{
    if (!x->out->feasible || !y->out->feasible) return y->out->feasible;
    if (x->best == 0 || y->best == 0) return x->best > y->best;
    const rm_uint128 most = ~(rm_uint128)0;
    const rm_uint128 scale_x = (rm_uint128)x->scale, scale_y = (rm_uint128)y->scale;
    if (x->best > most / scale_y || y->best > most / scale_x)
        return x->best / scale_x > y->best / scale_y;
    return x->best * scale_y > y->best * scale_x;
}

/* Holders take bytes that may be of more use to stand-ins. So both are tried. */
remat_status rm_order_bound_find(remat_ctx *ctx, const rm_normal *nm, int64_t budget_bytes,
                                 const uint32_t *order, const rm_order_bound_options *options,
                                 rm_order_bound *out)
{
    rm_order_bound second;
    solver s = {.work = MOST_WORK,
                .ctx = ctx,
                .nm = nm,
                .options = options,
                .budget_bytes = budget_bytes < 0 ? RM_MAX_SUM : budget_bytes,
                .out = out};
    solver other = s;
    TRY(solve(&s, order, false));
    const bool fetches = options->transfer != NULL;
    if (!options->any_order || fetches || !(options->rules & REMAT_BOUND_HOLDERS) ||
        !out->feasible || is_late(&s))
        return REMAT_OK;
    other.work = s.work;
    other.out = &second;
    TRY(solve(&other, order, true));
    if (proves_more(&other, &s)) *out = second;
    return REMAT_OK;
}
