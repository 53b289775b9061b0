/* order_bound.c: the linear program behind the bound, and the certificate it leaves. docs/bound.md
 * has the theorem.
 *
 * Problem: for given weights w_g (what losing gap g costs), min sum w_g (1 - x_g) with 0 <= x <= 1
 * and, at each position, the bytes of the kept gaps within the room. In bytes taken, y = M x, that
 * is packing intervals on a line: algo/path_flow.c. Any non-negative prices of the rows prove a
 * bound; those of the optimum prove the most for these weights.
 *
 * Weights: one re-run of an op may be charged by all gaps that need it, together for at most its
 * cost. At first an op's cost is shared in proportion to bytes. Once there are prices, a gap has no
 * use for more than its bytes are worth at them: ops give to gaps that still want some (exactly as
 * verify_bound.c does), what is left is shared in proportion, and the program is solved again, from
 * the solution before. Each of ROUNDS proves a bound of its own; the best is kept. After a pass
 * without stand-ins there are PASSES with heirs chosen by what the prices say.
 *
 * Integers throughout: weights are in cost units / `unit`, prices in cost units / `scale`, both
 * powers of two.
 *
 * Cost: O(gaps + charges) and one flow a round, which may take half of what is left of MOST_WORK,
 * about a second: graphs that nobody trains get a weaker bound. Charges are at most MOST_CHARGES
 * times ops + gaps, or the rules are not used. */
#include "plan/bound/order_bound.h"

#include "algo/path_flow.h"
#include "base/csr.h"
#include "plan/bound/gaps.h"

#include <stdlib.h>
#include <string.h>

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
    uint32_t *row; /* by position: how many rows come before it; only positions that may be short of
                      room are rows */
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
    const uint32_t n = s->nm->n_ops;
    TRY(RM_SCRATCH(s->ctx, s->row, (size_t)n + 1));
    TRY(RM_SCRATCH(s->ctx, s->room, n));
    TRY(RM_SCRATCH(s->ctx, s->row_position, n));
    for (uint32_t t = 0; t < n; t++) {
        s->row[t] = s->n_rows;
        const int64_t room = s->budget_bytes - gs->need[t];
        if (room >= gs->load[t] || rm_is_free_view(s->nm, gs->order[t])) continue;
        s->room[s->n_rows] = room;
        s->row_position[s->n_rows++] = t;
    }
    s->row[n] = s->n_rows;
    return REMAT_OK;
}

/* ---- given the heirs: who is charged by whom ---- */

static remat_status find_charges(solver *s, uint32_t gap, uint32_t *usable, uint32_t *seen,
                                 uint64_t *work)
{
    const rm_normal *nm = s->nm;
    const rm_gap *x = &s->gs.gaps[gap];
    const uint32_t stamp = gap + 1, own = nm->producer[x->store];
    s->start[gap] = x->from;
    if (nm->pinned[own]) return REMAT_OK; /* plans may fetch, and nothing else brings it back */
    const size_t first = s->charges.n;
    seen[own] = stamp;
    TRY(RM_PUSH(s->ctx, s->charges, own));
    const uint32_t begin = s->heirs.stand_in_begin[x->store],
                   end = s->heirs.stand_in_begin[x->store + 1];
    for (uint32_t k = begin; k < end; k++) {
        const uint32_t last = s->gs.last_touch[s->heirs.stand_ins[k]];
        if (last >= x->to) continue;
        usable[s->heirs.stand_ins[k]] = stamp;
        if (last > s->start[gap]) s->start[gap] = last;
    }
    for (size_t next = first; next < s->charges.n && begin < end; next++) {
        const uint32_t op = s->charges.items[next];
        *work += 1 + nm->in_begin[op + 1] - nm->in_begin[op];
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++) {
            const uint32_t r = nm->in[k];
            if (usable[r] != stamp || seen[nm->producer[r]] == stamp) continue;
            seen[nm->producer[r]] = stamp;
            TRY(RM_PUSH(s->ctx, s->charges, nm->producer[r]));
        }
    }
    *work += end - begin;
    return REMAT_OK;
}

static remat_status charge_gaps(solver *s, bool *too_many)
{
    uint32_t *usable, *seen;
    uint64_t work = 0;
    TRY(RM_SCRATCH(s->ctx, usable, s->nm->n_stores));
    TRY(RM_SCRATCH(s->ctx, seen, s->nm->n_ops));
    s->charges.n = 0;
    const uint64_t most =
        MOST_CHARGES * ((uint64_t)s->nm->in_begin[s->nm->n_ops] + s->nm->n_ops + s->gs.n_gaps);
    for (uint32_t i = 0; i < s->gs.n_gaps && work <= most; i++) {
        TRY(find_charges(s, i, usable, seen, &work));
        s->charge_begin[i + 1] = (uint32_t)s->charges.n;
    }
    *too_many = work > most;
    return REMAT_OK;
}

/* The gaps that charge an op, by ascending key. */
static remat_status list_by_op(const solver *s, const uint32_t *key, rm_csr *out)
{
    const uint32_t n_gaps = s->gs.n_gaps, n = s->nm->n_ops;
    rm_csr by_key;
    TRY(rm_csr_by_key(s->ctx, n + 1, n_gaps, key, &by_key));
    return rm_csr_invert(s->ctx, n, n_gaps, s->charge_begin, s->charges.items, by_key.items, out);
}

static remat_status list_charges(solver *s)
{
    const uint32_t n_gaps = s->gs.n_gaps;
    uint32_t *end;
    rm_csr by_start, by_end;
    TRY(RM_SCRATCH(s->ctx, end, n_gaps));
    for (uint32_t i = 0; i < n_gaps; i++) end[i] = s->gs.gaps[i].to;
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

/* `worth` by storage: see gaps.h. */
static remat_status take_heirs(solver *s, unsigned rules, const int64_t *worth)
{
    bool too_many = false;
    TRY(rm_stand_ins_find(s->ctx, &s->gs, rules, worth, s->price_before, &s->heirs));
    TRY(charge_gaps(s, &too_many));
    if (too_many) {
        TRY(rm_stand_ins_find(s->ctx, &s->gs, 0, worth, s->price_before, &s->heirs));
        TRY(charge_gaps(s, &too_many));
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

/* Shares what ops have (`amount` by op, in cost units / unit) among the gaps that charge them, by
 * bytes. */
static void share_by_bytes(solver *s, const int64_t *amount)
{
    const rm_normal *nm = s->nm;
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        if (s->op_begin[op] == s->op_begin[op + 1] || amount[op] == 0) continue;
        int64_t active = 0, most = 0;
        for (uint32_t i = s->op_begin[op], ended = i; i < s->op_begin[op + 1]; i++) {
            const uint32_t gap = s->by_start[i];
            for (; s->gs.gaps[s->by_end[ended]].to <= s->start[gap]; ended++)
                active -= nm->bytes[s->gs.gaps[s->by_end[ended]].store];
            active += nm->bytes[s->gs.gaps[gap].store];
            if (active > most) most = active;
        }
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

/* Goes through the ops from the last to the first, as verify_bound.c does; returns what the prices
 * prove, in cost units / scale. */
static rm_uint128 give(solver *s)
{
    const rm_normal *nm = s->nm;
    rm_uint128 proved = 0;
    for (uint32_t i = 0; i < s->gs.n_gaps; i++) {
        s->left[i] = asked_by(s, i);
        if (nm->pinned[nm->producer[s->gs.gaps[i].store]]) proved += s->left[i];
    }
    for (uint32_t t = nm->n_ops; t-- > 0;) {
        const uint32_t op = s->gs.order[t];
        const rm_uint128 most = (rm_uint128)nm->cost[op] * (rm_uint128)s->scale;
        rm_uint128 active = 0, peak = 0;
        for (uint32_t i = s->op_begin[op], ended = i; i < s->op_begin[op + 1]; i++) {
            const uint32_t gap = s->by_start[i];
            for (; s->gs.gaps[s->by_end[ended]].to <= s->start[gap]; ended++)
                active -= s->given[s->by_end[ended]];
            const rm_uint128 room = most - active;
            s->given[gap] = s->left[gap] < room ? s->left[gap] : room;
            s->left[gap] -= s->given[gap];
            active += s->given[gap];
            proved += s->given[gap];
            if (active > peak) peak = active;
            if (s->written) s->written[i] = (rm_charge){gap, limited(to_unit(s, s->given[gap]))};
        }
        s->rest[op] = limited(to_unit(s, most - peak));
    }
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

/* All that is ever summed up, at most a cost a charge, stays below 2^128. */
static int64_t most_scale(const solver *s)
{
    int64_t most = s->total_cost, scale = INT64_C(1) << 58;
    for (uint32_t i = 0; i < s->nm->n_stores && s->options->transfer; i++)
        if (s->options->transfer[i] > most) most = s->options->transfer[i];
    while (scale > 1 && (rm_uint128)most * (rm_uint128)scale >= (rm_uint128)1 << 90) scale /= 2;
    return scale;
}

/* So that the profit per byte of the largest gaps, weight * scale / unit / bytes, is about 2^34:
 * others may have 64 times that. */
static void choose_scale(solver *s)
{
    int64_t largest = 1, profit = 0;
    for (uint32_t k = 0; k < s->n_intervals; k++)
        if (s->intervals[k].size > largest) largest = s->intervals[k].size;
    for (uint32_t k = 0; k < s->n_intervals; k++) {
        if (s->intervals[k].size < largest / 256) continue;
        const int64_t p = limited(((rm_uint128)s->weight[s->interval_gap[k]] << 60) /
                                      (rm_uint128)s->unit / (rm_uint128)s->intervals[k].size >>
                                  34);
        if (p > profit) profit = p; /* in units of 2^-26 */
    }
    s->scale = 1;
    while (s->scale < most_scale(s) && (rm_uint128)profit * (rm_uint128)s->scale < (rm_uint128)1
                                                                                       << (34 + 26))
        s->scale *= 2;
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

/* False: too much to sum up, which prices of an optimum never are. */
static bool sum_prices(solver *s, const int64_t *price)
{
    for (uint32_t t = 0, row = 0; t < s->nm->n_ops; t++) {
        const bool is_row = row < s->n_rows && s->row_position[row] == t;
        s->price_before[t + 1] = s->price_before[t] + (is_row ? price[row++] : 0);
        if (s->price_before[t + 1] >= MOST_WEIGHT) return false;
    }
    return true;
}

/* No further rounds; those that there were stand. Small graphs get all of them, so that there is a
 * plan however little time. */
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
        memset(s->price_before, 0, ((size_t)s->nm->n_ops + 1) * sizeof *s->price_before);
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

/* What a storage's gaps are worth at the prices; 1 if they span rows that have none. */
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

/* Heirs none of whose gaps has a price prove nothing, and are left out. */
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
            if (!priced[h->heirs[k]]) continue;
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
    TRY(RM_SCRATCH(s->ctx, x->prices, s->n_rows));
    for (uint32_t row = 0; row < s->n_rows; row++)
        if (s->best_price[row]) {
            const uint32_t op = nm->op[s->gs.order[s->row_position[row]]];
            x->prices[x->n_prices++] = (rm_price){nm->g->op_original[op], s->best_price[row]};
        }
    qsort(x->prices, x->n_prices, sizeof *x->prices, by_op);
    sum_prices(s, s->best_price);
    return write_heirs(s, x);
}

/* The charges that the certificate's prices call for, and what ops have left by bytes. */
static remat_status write_charges(solver *s)
{
    bool too_many = false;
    rm_order_bound *out = s->out;
    if (s->best) s->heirs = s->best_heirs; /* and price_before is the certificate's */
    else {
        memset(s->price_before, 0, ((size_t)s->nm->n_ops + 1) * sizeof *s->price_before);
        TRY(rm_stand_ins_find(s->ctx, &s->gs, 0, NULL, s->price_before, &s->heirs));
    }
    TRY(charge_gaps(s, &too_many));
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
    TRY(RM_SCRATCH(s->ctx, s->price_before, (size_t)n + 1));
    TRY(RM_SCRATCH(s->ctx, s->best_price, s->n_rows));
    TRY(RM_SCRATCH(s->ctx, s->out->weight, n_gaps));
    TRY(RM_SCRATCH(s->ctx, s->out->kept, n_gaps));
    for (uint32_t i = 0; i < n_gaps; i++) s->out->kept[i] = s->nm->bytes[s->gs.gaps[i].store];
    s->total_cost = 1;
    for (uint32_t op = 0; op < n; op++) s->total_cost += s->nm->cost[op];
    for (s->unit = 1; s->unit < 1 << 24 && s->total_cost < MOST_WEIGHT / 2 / s->unit;) s->unit *= 2;
    s->out->unit = s->unit;
    return REMAT_OK;
}

static remat_status own_order(remat_ctx *ctx, const rm_normal *nm, const uint32_t **order)
{
    uint32_t *own;
    TRY(RM_SCRATCH(ctx, own, nm->n_ops));
    for (uint32_t op = 0; op < nm->n_ops; op++) own[op] = op;
    *order = own;
    return REMAT_OK;
}

remat_status rm_order_bound_find(remat_ctx *ctx, const rm_normal *nm, int64_t budget_bytes,
                                 const uint32_t *order, const rm_order_bound_options *options,
                                 rm_order_bound *out)
{
    solver s = {.work = MOST_WORK,
                .ctx = ctx,
                .nm = nm,
                .options = options,
                .budget_bytes = budget_bytes < 0 ? RM_MAX_SUM : budget_bytes,
                .out = out};
    if (!order) TRY(own_order(ctx, nm, &order));
    TRY(rm_gaps_find(ctx, nm, order, options->transfer != NULL, &s.gs));
    *out = (rm_order_bound){.order = order,
                            .n_gaps = s.gs.n_gaps,
                            .gaps = s.gs.gaps,
                            .need = s.gs.need,
                            .tightest = REMAT_NONE};
    for (uint32_t t = 0; t < nm->n_ops; t++)
        if (out->tightest == REMAT_NONE || out->need[t] > out->need[out->tightest])
            out->tightest = t;
    out->feasible = out->tightest == REMAT_NONE || out->need[out->tightest] <= s.budget_bytes;
    if (!out->feasible) return REMAT_OK;
    TRY(find_rows(&s));
    TRY(allocate(&s));
    spend(&s, WORK_A_GAP * (int64_t)(nm->in_begin[nm->n_ops] + nm->n_ops + s.gs.n_gaps));
    remat_status status = s.n_rows && !is_late(&s) ? solve_all(&s) : REMAT_OK;
    if (status == REMAT_OK) status = write_certificate(&s);
    if (status == REMAT_OK && options->charges) status = write_charges(&s);
    RM_VEC_FREE(&ctx->heap, s.charges);
    return status;
}
