/* cost_to_go.c: a lower limit on what remains to be paid from a state on.
 *
 * Method: the bound's prices and charges, seen from position t. docs/bound.md, "From a state on",
 * has the proof.
 * - Gaps that begin later count as they do in the bound.
 * - Some re-runs are *forced*: a storage that is wanted and not in memory must be made again, and
 * so must whatever that reads and is not in memory, to any depth.
 * - A gap that t lies in costs at least what forced re-runs pay of it. To that comes the lesser of
 *   two: the rest of its weight, or the price of its bytes from t on.
 * - A forced op may cost more than all that gaps can charge it for up to its deadline. That part is
 *   added on top.
 *
 * Invariant: the answer never falls when storages are taken out of the set.
 *
 * Cost: O(sum of the lengths of gaps and lives) for the tables. O(gaps and storages in progress +
 * forced ops with their charges) for a question. */
#include "plan/bound/cost_to_go.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/csr.h"
#include "plan/bound/gaps.h"

enum {
    MOST_CHARGES_SEEN = 24, /* of one op: if it has more, nothing is added on top */
    ENTRY_WORK = 8,         /* operations for an entry of the tables, sorting included */
    QUESTION_WORK = 16      /* operations for every question */
};

static rm_uint128 magnitude(int64_t x) { return (rm_uint128)x; }

/* Bytes times a price, in cost units / unit: rounded down. */
static rm_uint128 worth(const rm_order_bound *b, int64_t bytes, int64_t price)
{
    const rm_uint128 scale = magnitude(b->certificate.scale ? b->certificate.scale : 1),
                     unit = magnitude(b->unit);
    const rm_uint128 x = magnitude(bytes) * magnitude(price);
    return scale > unit ? x / (scale / unit) : x * (unit / scale);
}

/* What the gap's bytes are worth at the price, but no more than its weight, which is all that
 * counts. */
static int64_t worth_of(const rm_order_bound *b, const rm_normal *nm, uint32_t gap, int64_t price)
{
    const rm_uint128 x = worth(b, nm->bytes[b->gaps[gap].store], price);
    return x < magnitude(b->weight[gap]) ? (int64_t)x : b->weight[gap];
}

/* The price of a byte from position t up to the end of the gap. */
static int64_t price_from(const rm_order_bound *b, uint32_t t, const rm_gap *x)
{
    return t < x->to ? b->price_before[x->to] - b->price_before[t] : 0;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Sums may be large where many gaps follow each other. So they are cut off at 2^61: that is still a
 * lower limit. */
static remat_status list_base(remat_ctx *ctx, int64_t budget_bytes, rm_cost_to_go *f)
{
    const rm_normal *nm = f->nm;
    const rm_order_bound *b = &f->bound;
    const uint32_t n = nm->n_ops;
    const rm_uint128 most = (rm_uint128)1 << 61;
    rm_uint128 *begins, gained = 0, lost = 0;
    TRY(RM_SCRATCH(ctx, f->base, (size_t)n + 1));
    TRY(RM_SCRATCH(ctx, begins, (size_t)n + 1));
    for (uint32_t i = 0; i < b->n_gaps; i++)
        begins[b->start[i]] +=
            magnitude(worth_of(b, nm, i, price_from(b, b->start[i] + 1, &b->gaps[i])));
    for (uint32_t t = n; t-- > 0;) {
        const int64_t price = b->price_before[t + 1] - b->price_before[t];
        gained += begins[t] + magnitude(nm->cost[b->order[t]]) * magnitude(b->unit);
        if (price) lost += worth(b, budget_bytes - b->need[t], price) + 1;
        const rm_uint128 size = gained > lost ? gained - lost : lost - gained;
        const int64_t cut_off = (int64_t)(size < most ? size : most);
        f->base[t] = gained > lost ? cut_off : -cut_off;
    }
    return REMAT_OK;
}

int64_t rm_cost_to_go_surcharge(const rm_cost_to_go *f, uint32_t gap)
{
    const rm_order_bound *b = &f->bound;
    return b->weight[gap] -
           worth_of(b, f->nm, gap, price_from(b, b->start[gap] + 1, &b->gaps[gap]));
}

static remat_status list_current(remat_ctx *ctx, rm_cost_to_go *f)
{
    const rm_order_bound *b = &f->bound;
    const uint32_t n = f->nm->n_ops;
    TRY(rm_csr_begin(ctx, n + 1, &f->current_begin));
    for (uint32_t i = 0; i < b->n_gaps; i++)
        for (uint32_t t = b->start[i] + 1; t <= b->gaps[i].to; t++)
            rm_csr_count(f->current_begin, t);
    TRY(RM_SCRATCH(ctx, f->current, rm_csr_sum(f->current_begin, n + 1)));
    for (uint32_t i = 0; i < b->n_gaps; i++)
        for (uint32_t t = b->start[i] + 1; t <= b->gaps[i].to; t++)
            f->current[rm_csr_place(f->current_begin, t)] =
                (rm_current_gap){i, worth_of(b, f->nm, i, price_from(b, t, &b->gaps[i]))};
    return REMAT_OK;
}

typedef enum pass { MEASURE, COUNT, FILL } pass;

/* At the positions behind `from`, up to `deadline`, the storage is wanted by then. */
static void want(rm_cost_to_go *f, uint32_t store, uint32_t from, uint32_t deadline, pass of)
{
    if (of == MEASURE) {
        f->n_wanted += deadline - from;
        return;
    }
    for (uint32_t t = from + 1; t <= deadline; t++)
        if (of == COUNT) rm_csr_count(f->wanted_begin, t);
        else f->wanted[rm_csr_place(f->wanted_begin, t)] = (rm_wanted){store, deadline};
}

/* last: by storage, the position that touched it last. */
static void walk_wanted(rm_cost_to_go *f, uint32_t *last, pass of)
{
    const rm_normal *nm = f->nm;
    for (uint32_t t = 0; t < nm->n_ops; t++) {
        const uint32_t op = f->bound.order[t];
        const uint32_t begin = nm->in_begin[op],
                       end = rm_is_free_view(nm, op) ? begin : nm->in_begin[op + 1];
        for (uint32_t k = begin; k < end; k++) {
            want(f, nm->in[k], last[nm->in[k]], t, of);
            last[nm->in[k]] = t;
        }
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++) last[nm->out[k]] = t;
    }
    for (uint32_t s = 0; s < nm->n_stores; s++)
        if (nm->is_output[s]) want(f, s, last[s], nm->n_ops, of);
}

static int by_deadline(const void *left, const void *right)
{
    const rm_wanted *a = left, *b = right;
    if (a->deadline != b->deadline) return a->deadline < b->deadline ? -1 : 1;
    return (a->store > b->store) - (a->store < b->store);
}

static remat_status list_wanted(remat_ctx *ctx, uint32_t *last, rm_cost_to_go *f)
{
    const uint32_t n = f->nm->n_ops;
    TRY(rm_csr_begin(ctx, n + 1, &f->wanted_begin));
    walk_wanted(f, last, COUNT);
    TRY(RM_SCRATCH(ctx, f->wanted, rm_csr_sum(f->wanted_begin, n + 1)));
    walk_wanted(f, last, FILL);
    for (uint32_t t = 0; t <= n; t++) {
        const uint32_t size = f->wanted_begin[t + 1] - f->wanted_begin[t];
        if (size) qsort(f->wanted + f->wanted_begin[t], size, sizeof *f->wanted, by_deadline);
    }
    return REMAT_OK;
}

/* Is there room, and work, for the tables of current gaps and of wanted storages? Places in them
 * are counted in 32 bits. A storage is wanted wherever it has a gap. What a pinned op made has no
 * gaps, and is wanted too. */
static bool tables_fit(remat_ctx *ctx, rm_cost_to_go *f, uint32_t *last, int64_t most_bytes)
{
    const rm_order_bound *b = &f->bound;
    int64_t n_current = 0;
    walk_wanted(f, last, MEASURE);
    for (uint32_t i = 0; i < b->n_gaps; i++) n_current += b->gaps[i].to - b->start[i];
    if (n_current >= UINT32_MAX || f->n_wanted >= UINT32_MAX) return false;
    const int64_t bytes =
        n_current * (int64_t)sizeof *f->current + f->n_wanted * (int64_t)sizeof *f->wanted;
    const int64_t work = ENTRY_WORK * (n_current + f->n_wanted);
    if (bytes > most_bytes || !rm_can_afford(ctx, (double)work)) return false;
    rm_spend(ctx, work);
    return true;
}

static remat_status make_tables(remat_ctx *ctx, int64_t budget_bytes, uint32_t *last,
                                rm_cost_to_go *f)
{
    const rm_normal *nm = f->nm;
    TRY(RM_SCRATCH(ctx, f->position, nm->n_ops));
    for (uint32_t t = 0; t < nm->n_ops; t++) f->position[f->bound.order[t]] = t;
    TRY(list_base(ctx, budget_bytes, f));
    TRY(list_current(ctx, f));
    TRY(list_wanted(ctx, last, f));
    TRY(RM_SCRATCH(ctx, f->forced_stamp, nm->n_ops));
    TRY(RM_SCRATCH(ctx, f->forced, nm->n_ops));
    TRY(RM_SCRATCH(ctx, f->deadline, nm->n_ops));
    TRY(RM_SCRATCH(ctx, f->gap_stamp, f->bound.n_gaps));
    return RM_SCRATCH(ctx, f->forced_part, f->bound.n_gaps);
}

remat_status rm_cost_to_go_new(remat_ctx *ctx, const rm_normal *nm, int64_t budget_bytes,
                               const uint32_t *order, int64_t most_bytes, rm_cost_to_go *out)
{
    rm_cost_to_go f = {.nm = nm};
    uint32_t *last; /* by storage: the position that touched it last */
    const rm_order_bound_options options = {.rules = (unsigned)ctx->options.bound_rules,
                                            .charges = true};
    TRY(rm_order_bound_find(ctx, nm, budget_bytes, order, &options, &f.bound));
    TRY(RM_SCRATCH(ctx, last, nm->n_stores));
    if (f.bound.feasible && tables_fit(ctx, &f, last, most_bytes))
        TRY(make_tables(ctx, budget_bytes, last, &f));
    *out = f;
    return REMAT_OK;
}

/* ---- one question ---- */

/* What makes the storage must run again. False: it cannot. */
static bool force(rm_cost_to_go *f, uint32_t store, uint32_t deadline)
{
    const uint32_t op = f->nm->producer[store];
    if (f->forced_stamp[op] == f->stamp) return true;
    f->forced_stamp[op] = f->stamp;
    f->deadline[op] = deadline;
    f->forced[f->n_forced++] = op;
    return !f->nm->pinned[op];
}

/* Wanted storages go by deadline, so the first deadline that an op gets is its earliest. False:
 * something that cannot run again is lost. */
static bool force_all(rm_cost_to_go *f, uint32_t t, const uint64_t *there)
{
    const rm_normal *nm = f->nm;
    for (uint32_t i = f->wanted_begin[t], next = 0; i < f->wanted_begin[t + 1]; i++) {
        if (rm_has_bit(there, f->wanted[i].store)) continue;
        if (!force(f, f->wanted[i].store, f->wanted[i].deadline)) return false;
        for (; next < f->n_forced; next++) {
            const uint32_t op = f->forced[next];
            f->work += nm->in_begin[op + 1] - nm->in_begin[op];
            for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
                if (!rm_has_bit(there, nm->in[k]) && !force(f, nm->in[k], f->deadline[op]))
                    return false;
        }
    }
    return true;
}

/* The forced op pays its charges to the gaps in progress that last until its deadline. */
static void pay_gaps(rm_cost_to_go *f, uint32_t t, uint32_t op)
{
    const rm_order_bound *b = &f->bound;
    for (uint32_t i = b->charge_begin[op]; i < b->charge_begin[op + 1]; i++) {
        const rm_charge *c = &b->charges[i];
        const uint32_t from = b->start[c->gap] + 1, to = b->gaps[c->gap].to;
        if (from > t || t > to || f->deadline[op] > to) continue;
        if (f->gap_stamp[c->gap] != f->stamp) {
            f->gap_stamp[c->gap] = f->stamp;
            f->forced_part[c->gap] = 0;
        }
        f->forced_part[c->gap] += c->amount;
    }
}

/* What all gaps together charge the op for at a position. */
static int64_t charged_at(const rm_order_bound *b, uint32_t op, uint32_t at)
{
    int64_t sum = 0;
    for (uint32_t i = b->charge_begin[op]; i < b->charge_begin[op + 1]; i++) {
        const rm_charge *c = &b->charges[i];
        if (b->start[c->gap] < at && at <= b->gaps[c->gap].to) sum += c->amount;
    }
    return sum;
}

/* What no gap can charge the forced op for from t up to its deadline. The charges are most where
 * one of them begins, or at t. */
static int64_t uncharged(rm_cost_to_go *f, uint32_t t, uint32_t op)
{
    const rm_order_bound *b = &f->bound;
    int64_t most = 0;
    for (uint32_t i = b->charge_begin[op]; i < b->charge_begin[op + 1]; i++) {
        const uint32_t gap = b->charges[i].gap, from = b->start[gap] + 1;
        if (b->gaps[gap].to < t || from > f->deadline[op]) continue;
        const int64_t sum = charged_at(b, op, from > t ? from : t);
        if (sum > most) most = sum;
    }
    return f->nm->cost[op] * b->unit - most;
}

/* Pays for the re-run. Returns what is to be paid on top of all gaps. */
static int64_t pay(rm_cost_to_go *f, uint32_t t, uint32_t op)
{
    const int64_t n_charges = f->bound.charge_begin[op + 1] - f->bound.charge_begin[op];
    const bool few = n_charges <= MOST_CHARGES_SEEN;
    f->work += n_charges * (few ? n_charges : 1);
    pay_gaps(f, t, op);
    return few ? uncharged(f, t, op) : 0;
}

/* Nothing has the stamp of the next question. */
static void renew_stamp(rm_cost_to_go *f)
{
    if (++f->stamp != 0) return;
    memset(f->forced_stamp, 0, f->nm->n_ops * sizeof *f->forced_stamp);
    memset(f->gap_stamp, 0, f->bound.n_gaps * sizeof *f->gap_stamp);
    f->stamp = 1;
}

int64_t rm_cost_to_go_from(rm_cost_to_go *f, uint32_t t, const uint64_t *there)
{
    assert(f->base && t <= f->nm->n_ops);
    int64_t cost = f->base[t];
    f->n_forced = 0;
    renew_stamp(f);
    f->work += QUESTION_WORK + f->wanted_begin[t + 1] - f->wanted_begin[t] +
               f->current_begin[t + 1] - f->current_begin[t];
    if (!force_all(f, t, there)) return RM_NO_WAY_ON;
    for (uint32_t i = 0; i < f->n_forced; i++) cost += pay(f, t, f->forced[i]);
    for (uint32_t i = f->current_begin[t]; i < f->current_begin[t + 1]; i++) {
        const rm_current_gap *c = &f->current[i];
        const int64_t forced = f->gap_stamp[c->gap] == f->stamp ? f->forced_part[c->gap] : 0;
        cost += least(f->bound.weight[c->gap], forced + c->price);
    }
    return cost;
}
