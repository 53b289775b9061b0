/* verify_bound.c: what a certificate proves. docs/bound.md has the theorem and its proof; this is
 * the theorem's sum.
 *
 * The order of first runs (free views left out) cuts each storage's life into gaps between the
 * positions a < b that touch it. A certificate has a price for a byte in memory across a position,
 * and names storages that can stand in for others, their heirs, once they are out of use. Kept at
 * every position between a and b, a gap of M bytes uses M bytes of the room there, be it through a
 * stand-in; if not, its op runs again in (a, b], and so do the ops behind its stand-ins. So each
 * plan pays at least, over all gaps, the lesser of its ops' costs and M times the prices between a
 * and b, minus what the room is worth at those prices. One run of an op is charged by several gaps
 * for at most its cost: ops are gone through from the last to the first, each gives what it has to
 * the gaps that still want some, in the order they start.
 *
 * It trusts nothing: gaps, room and closures are derived here from the graph; a certificate can
 * only be refused or make the bound weaker. Integers only; the quotient is rounded up, since costs
 * are whole, to what re-runs can add up to.
 *
 * Cost: O(edges + gaps) and what the stand-ins take: MOST_WORK times that much is refused. */
#include "verify/verify.h"

#include <inttypes.h>
#include <string.h>

enum { MOST_WORK = 64 };

typedef struct gap {
    uint32_t root;     /* value that owns the storage */
    uint32_t from, to; /* positions; the room is used at from < t < to */
    rm_uint128 left;   /* of what its prices ask for, in cost units / scale */
} gap;

typedef struct list { /* CSR */
    uint32_t *begin, *items;
} list;

typedef struct court {
    remat_ctx *ctx;
    const remat_graph *g;
    const rm_certificate *certificate;
    int64_t budget_bytes, bandwidth;
    bool fetches;
    remat_verdict *verdict;
    uint32_t n;                 /* positions */
    uint32_t *op_at, *position; /* by position, by op; REMAT_NONE: a free view */
    int64_t *held;         /* by position: by how much kept storages of pinned ops change there */
    int64_t *room;         /* by position: what is left of the budget there */
    int64_t *price_before; /* by position: sum of the prices before it */
    uint32_t *last_touch;  /* by root value: position */
    uint8_t *is_output;    /* by root value */
    RM_VEC(gap) gaps;      /* by `to`, ascending */
    list stand_ins;        /* by root value: who can stand in for it */
    uint32_t *charge_begin, *start_begin; /* by gap; by op */
    RM_VEC(uint32_t) charges;             /* by gap: ops that run again without it */
    uint32_t *by_start, *by_end;          /* by op: its gaps, two ways */
    rm_uint128 proved;
    uint64_t work; /* that stand-ins took */
} court;

static bool is_free_view(const remat_graph *g, uint32_t op)
{
    if (g->cost[op] || g->workspace[op] || g->pinned[op] ||
        g->out_begin[op] == g->out_begin[op + 1])
        return false;
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        if (g->root[g->out[k]] == g->out[k]) return false;
    return true;
}

static bool is_movable(const remat_graph *g, uint32_t root)
{
    return g->producer[root] != REMAT_NONE;
}

/* ---- order, gaps, room ---- */

static remat_status find_order(court *c, const remat_step *steps, size_t n_steps)
{
    const remat_graph *g = c->g;
    uint8_t *ran;
    TRY(RM_SCRATCH(c->ctx, ran, g->n_ops));
    TRY(RM_SCRATCH(c->ctx, c->op_at, g->n_ops));
    TRY(RM_SCRATCH(c->ctx, c->position, g->n_ops));
    for (uint32_t op = 0; op < g->n_ops; op++) c->position[op] = REMAT_NONE;
    for (size_t i = 0; i < n_steps; i++) {
        if (steps[i].kind != REMAT_RUN) continue;
        const uint32_t op = g->op_now[steps[i].index];
        if (ran[op]) continue;
        ran[op] = 1;
        if (is_free_view(g, op)) continue;
        c->position[op] = c->n;
        c->op_at[c->n++] = op;
    }
    return REMAT_OK;
}

static remat_status add_gap(court *c, uint32_t root, uint32_t from, uint32_t to)
{
    if (to - from < 2) return REMAT_OK;
    if (!c->fetches && c->g->pinned[c->g->producer[root]]) {
        c->held[from + 1] += c->g->storage[root]; /* must be kept */
        c->held[to] -= c->g->storage[root];
        return REMAT_OK;
    }
    const gap new = {root, from, to, 0};
    return RM_PUSH(c->ctx, c->gaps, new);
}

static remat_status touch(court *c, uint32_t t, uint32_t root)
{
    if (!is_movable(c->g, root) || c->last_touch[root] == t) return REMAT_OK;
    c->room[t] -= c->g->storage[root];
    if (c->last_touch[root] != REMAT_NONE) TRY(add_gap(c, root, c->last_touch[root], t));
    c->last_touch[root] = t;
    return REMAT_OK;
}

static remat_status find_gaps(court *c)
{
    const remat_graph *g = c->g;
    TRY(RM_SCRATCH(c->ctx, c->room, c->n));
    TRY(RM_SCRATCH(c->ctx, c->held, (size_t)c->n + 1));
    TRY(RM_SCRATCH(c->ctx, c->last_touch, g->n_values));
    TRY(RM_SCRATCH(c->ctx, c->is_output, g->n_values));
    for (uint32_t v = 0; v < g->n_values; v++) c->last_touch[v] = REMAT_NONE;
    for (uint32_t t = 0; t < c->n; t++) c->room[t] = c->budget_bytes - g->resident_bytes;
    for (uint32_t t = 0; t < c->n; t++) {
        const uint32_t op = c->op_at[t];
        c->room[t] -= g->workspace[op];
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
            TRY(touch(c, t, g->root[g->in[k]]));
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
            TRY(touch(c, t, g->root[g->out[k]]));
    }
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const uint32_t root = g->root[g->outputs[i]];
        if (!is_movable(g, root) || c->is_output[root]) continue;
        c->is_output[root] = 1;
        TRY(add_gap(c, root, c->last_touch[root], c->n));
    }
    int64_t held = 0;
    for (uint32_t t = 0; t < c->n; t++) c->room[t] -= held += c->held[t];
    return REMAT_OK;
}

/* ---- prices and stand-ins ---- */

static remat_status read_prices(court *c)
{
    const rm_certificate *x = c->certificate;
    TRY(RM_SCRATCH(c->ctx, c->price_before, (size_t)c->n + 1));
    if (x->scale < 1 || x->scale >= RM_MAX_SUM)
        return rm_blame(c->verdict, REMAT_NONE,
                        "the certificate's scale %" PRId64 " is not in 1 .. 2^62", x->scale),
               REMAT_OK;
    for (size_t i = 0; i < x->n_prices; i++) {
        const uint32_t original = x->prices[i].op,
                       op = original < c->g->n_original_ops ? c->g->op_now[original] : REMAT_NONE;
        if (op == REMAT_NONE || c->position[op] == REMAT_NONE || x->prices[i].price < 1 ||
            (i && x->prices[i - 1].op >= original))
            return rm_blame(c->verdict, REMAT_NONE,
                            "the certificate's price %zu is for no op, not above 0 or out of order",
                            i),
                   REMAT_OK;
        c->price_before[c->position[op] + 1] = x->prices[i].price;
    }
    for (uint32_t t = 0; t < c->n; t++)
        if (rm_add_overflows(c->price_before[t + 1], c->price_before[t], &c->price_before[t + 1]) ||
            c->price_before[t + 1] >= RM_MAX_SUM)
            return rm_blame(c->verdict, REMAT_NONE,
                            "the certificate's prices sum up to 2^62 or more"),
                   REMAT_OK;
    return REMAT_OK;
}

/* A storage may stand in only if nothing else holds it then: it is no output, its op can run again,
 * and it has room for all. */
static bool check_heirs(court *c)
{
    const remat_graph *g = c->g;
    const rm_certificate *x = c->certificate;
    if (x->n_heirs && c->fetches)
        return rm_blame(c->verdict, REMAT_NONE,
                        "where plans fetch, nothing can stand in for another storage");
    int64_t left = 0;
    for (size_t i = 0; i < x->n_heirs; i++) {
        const rm_heir *at = &x->heirs[i];
        const bool known = at->value < g->n_original_values && at->heir < g->n_original_values;
        const uint32_t v = known ? g->value_now[at->value] : REMAT_NONE,
                       heir = known ? g->value_now[at->heir] : REMAT_NONE;
        if (v == REMAT_NONE || heir == REMAT_NONE || v == heir || g->root[v] != v ||
            g->root[heir] != heir || !is_movable(g, v) || !is_movable(g, heir))
            return rm_blame(c->verdict, REMAT_NONE,
                            "the certificate's heir %zu is not of two storages", i);
        const bool same = i && x->heirs[i - 1].value == at->value;
        if (i && (x->heirs[i - 1].value > at->value || (same && x->heirs[i - 1].heir >= at->heir)))
            return rm_blame(c->verdict, REMAT_NONE, "the certificate's heir %zu is out of order",
                            i);
        left = (same ? left : g->storage[v]) - g->storage[heir];
        if (c->is_output[v] || g->pinned[g->producer[v]] || left < 0)
            return rm_blame(
                c->verdict, REMAT_NONE,
                "value %" PRIu32 " '%.60s' cannot stand in for value %" PRIu32 " '%.60s': it is %s",
                at->value, rm_text(g, g->value_name[v]), at->heir, rm_text(g, g->value_name[heir]),
                c->is_output[v] ? "an output"
                : left < 0      ? "too small for all its heirs"
                                : "made by a pinned op");
    }
    return true;
}

static remat_status list_stand_ins(court *c)
{
    const remat_graph *g = c->g;
    const rm_certificate *x = c->certificate;
    TRY(RM_SCRATCH(c->ctx, c->stand_ins.begin, (size_t)g->n_values + 2));
    TRY(RM_SCRATCH(c->ctx, c->stand_ins.items, x->n_heirs));
    uint32_t *begin = c->stand_ins.begin;
    for (size_t i = 0; i < x->n_heirs; i++) begin[g->value_now[x->heirs[i].heir] + 2]++;
    for (uint32_t v = 0; v < g->n_values; v++) begin[v + 2] += begin[v + 1];
    for (size_t i = 0; i < x->n_heirs; i++)
        c->stand_ins.items[begin[g->value_now[x->heirs[i].heir] + 1]++] =
            g->value_now[x->heirs[i].value];
    return REMAT_OK;
}

static bool prove(court *c, rm_uint128 more)
{
    if (!rm_add_overflows(c->proved, more, &c->proved)) return true;
    return rm_blame(c->verdict, REMAT_NONE, "the certificate's numbers are too large");
}

/* ---- what a gap asks for, and from whom ---- */

/* A stand-in that is still touched after the gap has begun delays its start; one that is touched at
 * its end or later is none. */
static void start_gap(const court *c, gap *x)
{
    for (uint32_t k = c->stand_ins.begin[x->root]; k < c->stand_ins.begin[x->root + 1]; k++) {
        const uint32_t last = c->last_touch[c->stand_ins.items[k]];
        if (last < x->to && last > x->from) x->from = last;
    }
    const int64_t price = c->price_before[x->to] - c->price_before[x->from + 1];
    x->left = (rm_uint128)price * (rm_uint128)c->g->storage[x->root];
}

/* The ops that run again if neither the gap's storage nor a stand-in is there: its own, and behind
 * every stand-in that one of them reads, the stand-in's. */
static remat_status find_charges(court *c, const gap *x, uint32_t *usable, uint32_t *seen,
                                 uint32_t stamp)
{
    const remat_graph *g = c->g;
    const size_t first = c->charges.n;
    for (uint32_t k = c->stand_ins.begin[x->root]; k < c->stand_ins.begin[x->root + 1]; k++)
        if (c->last_touch[c->stand_ins.items[k]] < x->to) usable[c->stand_ins.items[k]] = stamp;
    seen[g->producer[x->root]] = stamp;
    TRY(RM_PUSH(c->ctx, c->charges, g->producer[x->root]));
    if (c->stand_ins.begin[x->root] == c->stand_ins.begin[x->root + 1]) return REMAT_OK;
    for (size_t next = first; next < c->charges.n; next++) {
        const uint32_t op = c->charges.items[next];
        c->work += 1 + g->in_begin[op + 1] - g->in_begin[op];
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
            const uint32_t root = g->root[g->in[k]];
            if (usable[root] != stamp || seen[g->producer[root]] == stamp) continue;
            seen[g->producer[root]] = stamp;
            TRY(RM_PUSH(c->ctx, c->charges, g->producer[root]));
        }
    }
    return REMAT_OK;
}

static remat_status charge_gaps(court *c)
{
    uint32_t *usable, *seen;
    TRY(RM_SCRATCH(c->ctx, usable, c->g->n_values));
    TRY(RM_SCRATCH(c->ctx, seen, c->g->n_ops));
    TRY(RM_SCRATCH(c->ctx, c->charge_begin, c->gaps.n + 1));
    for (uint32_t i = 0; i < c->gaps.n; i++) {
        gap *x = &c->gaps.items[i];
        start_gap(c, x);
        c->work += c->stand_ins.begin[x->root + 1] - c->stand_ins.begin[x->root];
        if (c->fetches) { /* as well fetched as made again, and no cheaper than the cheaper of both
                           */
            const rm_uint128 bytes = (rm_uint128)c->g->storage[x->root] * 1000000000,
                             bandwidth = (rm_uint128)c->bandwidth;
            const rm_uint128 fetch = bandwidth ? (bytes + bandwidth - 1) / bandwidth : 0;
            const rm_uint128 most =
                (fetch < (rm_uint128)RM_MAX_SUM ? fetch : (rm_uint128)RM_MAX_SUM) *
                (rm_uint128)c->certificate->scale;
            if (x->left > most) x->left = most;
        }
        if (c->g->pinned[c->g->producer[x->root]]) { /* nothing but a fetch brings it back */
            if (!prove(c, x->left)) return REMAT_OK;
            x->left = 0;
        }
        if (x->left > 0) TRY(find_charges(c, x, usable, seen, i + 1));
        if (c->work > MOST_WORK * ((uint64_t)c->g->n_in + c->g->n_ops + c->gaps.n))
            return rm_blame(c->verdict, REMAT_NONE,
                            "the certificate's heirs are too many to check"),
                   REMAT_OK;
        c->charge_begin[i + 1] = (uint32_t)c->charges.n;
    }
    return REMAT_OK;
}

/* The gaps that charge an op, in the order of `gaps`. */
static void list_by_op(const court *c, const uint32_t *gaps, uint32_t n, uint32_t *next,
                       uint32_t *items)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = c->charge_begin[gaps[i]]; k < c->charge_begin[gaps[i] + 1]; k++)
            items[next[c->charges.items[k]]++] = gaps[i];
}

/* Stable: `order` by ascending key, 0 .. most. */
static remat_status sort_gaps(court *c, const uint32_t *key, uint32_t most, uint32_t *order)
{
    const uint32_t n = (uint32_t)c->gaps.n;
    uint32_t *next, *sorted;
    TRY(RM_SCRATCH(c->ctx, next, (size_t)most + 2));
    TRY(RM_SCRATCH(c->ctx, sorted, n));
    for (uint32_t i = 0; i < n; i++) next[key[i] + 1]++;
    for (uint32_t k = 0; k < most; k++) next[k + 1] += next[k];
    for (uint32_t i = 0; i < n; i++) sorted[next[key[order[i]]]++] = order[i];
    if (n) memcpy(order, sorted, n * sizeof *order);
    return REMAT_OK;
}

/* By start; of those that start together, the storage made first by the graph's order goes first.
 */
static remat_status order_by_start(court *c, uint32_t *order)
{
    const remat_graph *g = c->g;
    const uint32_t n = (uint32_t)c->gaps.n;
    uint32_t *rank, *key, n_ranks = 0;
    TRY(RM_SCRATCH(c->ctx, rank, g->n_values));
    TRY(RM_SCRATCH(c->ctx, key, n));
    for (uint32_t k = 0; k < g->n_out; k++) rank[g->out[k]] = n_ranks++;
    for (uint32_t i = 0; i < n; i++) key[i] = rank[c->gaps.items[i].root];
    TRY(sort_gaps(c, key, n_ranks, order));
    for (uint32_t i = 0; i < n; i++) key[i] = c->gaps.items[i].from;
    return sort_gaps(c, key, c->n, order);
}

static remat_status list_charges(court *c)
{
    const uint32_t n_gaps = (uint32_t)c->gaps.n, n_ops = c->g->n_ops;
    uint32_t *order, *next;
    TRY(RM_SCRATCH(c->ctx, order, n_gaps));
    TRY(RM_SCRATCH(c->ctx, next, n_ops));
    TRY(RM_SCRATCH(c->ctx, c->start_begin, (size_t)n_ops + 1));
    TRY(RM_SCRATCH(c->ctx, c->by_start, c->charges.n));
    TRY(RM_SCRATCH(c->ctx, c->by_end, c->charges.n));
    for (size_t i = 0; i < c->charges.n; i++) c->start_begin[c->charges.items[i] + 1]++;
    for (uint32_t op = 0; op < n_ops; op++) c->start_begin[op + 1] += c->start_begin[op];
    for (uint32_t i = 0; i < n_gaps; i++) order[i] = i; /* they are sorted by their end already */
    for (uint32_t op = 0; op < n_ops; op++) next[op] = c->start_begin[op];
    list_by_op(c, order, n_gaps, next, c->by_end);
    TRY(order_by_start(c, order));
    for (uint32_t op = 0; op < n_ops; op++) next[op] = c->start_begin[op];
    list_by_op(c, order, n_gaps, next, c->by_start);
    return REMAT_OK;
}

/* One re-run of op is charged by the gaps it lies in: together at most its cost. */
static bool give(court *c, uint32_t op, rm_uint128 *given)
{
    const rm_uint128 most = (rm_uint128)c->g->cost[op] * (rm_uint128)c->certificate->scale;
    const gap *gaps = c->gaps.items;
    rm_uint128 active = 0;
    for (uint32_t i = c->start_begin[op], ended = i; i < c->start_begin[op + 1]; i++) {
        const uint32_t at = c->by_start[i];
        for (; gaps[c->by_end[ended]].to <= gaps[at].from; ended++)
            active -= given[c->by_end[ended]];
        const rm_uint128 room = most - active;
        given[at] = gaps[at].left < room ? gaps[at].left : room;
        active += given[at];
        c->gaps.items[at].left -= given[at];
        if (!prove(c, given[at])) return false;
    }
    return true;
}

static remat_status sum_up(court *c)
{
    rm_uint128 *given;
    TRY(RM_SCRATCH(c->ctx, given, c->gaps.n));
    for (uint32_t t = c->n; t-- > 0;)
        if (!give(c, c->op_at[t], given)) return REMAT_OK;
    for (uint32_t t = 0; t < c->n; t++) {
        const int64_t price = c->price_before[t + 1] - c->price_before[t];
        if (price == 0) continue;
        if (c->room[t] < 0) {
            rm_blame(c->verdict, REMAT_NONE,
                     "the budget is below what op %" PRIu32 " '%.60s' needs in this order",
                     c->g->op_original[c->op_at[t]], rm_text(c->g, c->g->op_name[c->op_at[t]]));
            return REMAT_OK;
        }
        const rm_uint128 worth = (rm_uint128)price * (rm_uint128)c->room[t];
        c->proved = c->proved > worth ? c->proved - worth : 0;
    }
    return REMAT_OK;
}

/* ---- the number ---- */

/* The least sum of re-runs that is not below what is proved. */
static int64_t round_up(const court *c)
{
    const rm_uint128 scale = (rm_uint128)c->certificate->scale;
    rm_uint128 whole = c->proved / scale + (c->proved % scale != 0);
    int64_t unit = 0;
    for (uint32_t op = 0; op < c->g->n_ops; op++)
        if (!c->g->pinned[op]) unit = rm_common_divisor(unit, c->g->cost[op]);
    const rm_uint128 step = unit > 1 && !c->fetches ? (rm_uint128)unit : 1;
    if (whole % step) whole += step - whole % step;
    const rm_uint128 most = (rm_uint128)(RM_MAX_SUM - 1 - c->g->total_cost);
    return (int64_t)(whole < most ? whole : most);
}

static remat_status judge(court *c, const remat_step *steps, size_t n_steps)
{
    TRY(find_order(c, steps, n_steps));
    TRY(find_gaps(c));
    TRY(read_prices(c));
    if (!c->verdict->valid || !check_heirs(c)) return REMAT_OK;
    TRY(list_stand_ins(c));
    TRY(charge_gaps(c));
    if (!c->verdict->valid) return REMAT_OK;
    TRY(list_charges(c));
    return sum_up(c);
}

remat_status rm_verify_bound(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                             size_t n_steps, int64_t budget_bytes, bool fetches, int64_t bandwidth,
                             const rm_certificate *certificate, int64_t *cost, remat_verdict *out)
{
    remat_verdict verdict = {.valid = true,
                             .first_bad_step = REMAT_NONE,
                             .peak_step = REMAT_NONE,
                             .peak_op = REMAT_NONE};
    court c = {.ctx = ctx,
               .g = g,
               .certificate = certificate,
               .budget_bytes = budget_bytes,
               .bandwidth = bandwidth,
               .fetches = fetches,
               .verdict = &verdict};
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_status status = REMAT_OK;
    if (certificate->n_prices) status = judge(&c, steps, n_steps);
    RM_VEC_FREE(&ctx->heap, c.gaps);
    RM_VEC_FREE(&ctx->heap, c.charges);
    if (status == REMAT_OK) {
        if (verdict.valid) *cost = g->total_cost + (certificate->n_prices ? round_up(&c) : 0);
        *out = verdict;
    }
    rm_scratch_release(ctx, mark);
    return status;
}
