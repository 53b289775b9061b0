/* verify_bound.c: what a certificate proves.
 *
 * docs/bound.md has the theorem and its proof. This is the theorem's sum.
 *
 * The order of first runs, without free views, cuts the life of each storage into gaps. A gap lies
 * between two positions a < b that touch the storage (verify_gaps.c; also: in any order). A
 * certificate has a price for a byte in memory across a position. It also names storages that can
 * stand in for others, their heirs, once they are out of use.
 * - If a gap of M bytes is kept at every position between a and b, it uses M bytes of the room
 *   there, perhaps through a stand-in.
 * - If it is lost, its op runs again in (a, b], and so do the ops behind its stand-ins.
 * So over all gaps each plan pays at least the lesser of its ops' costs and M times the prices
 * between a and b, minus what the room is worth at those prices.
 *
 * Several gaps may charge one run of an op, together for at most its cost. Ops are gone through
 * from the last to the first. Each gives what it has to the gaps that still want some, in the order
 * in which they start.
 *
 * It trusts nothing. Gaps, room and closures are derived here from the graph. A certificate can
 * only be refused, or make the bound weaker. All numbers are integers. Costs are whole, so the
 * quotient is rounded up, to what re-runs can add up to.
 *
 * Cost: O(edges + gaps), and what the stand-ins take. If that is RM_COURT_WORK times as much, the
 * certificate is refused. */
#include "verify/court.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* ---- prices and stand-ins ---- */

/* The position that price i is for, or REMAT_NONE. */
static uint32_t priced_position(const rm_court *c, size_t i)
{
    const uint32_t original = c->certificate->prices[i].op;
    if (original >= c->g->n_original_ops) return REMAT_NONE;
    const uint32_t op = c->g->op_now[original];
    return op == REMAT_NONE ? REMAT_NONE : c->position[op];
}

static bool check_scale(rm_court *c)
{
    const int64_t scale = c->certificate->scale;
    if (scale >= 1 && scale < RM_MAX_SUM) return true;
    return rm_blame(c->verdict, REMAT_NONE,
                    "the certificate's scale %" PRId64 " is not in 1 .. 2^62", scale);
}

static bool read_prices(rm_court *c)
{
    const rm_certificate *x = c->certificate;
    const int64_t least = c->question->steps ? 1 : 0; /* a path has positions without a price */
    for (size_t i = 0; i < x->n_prices; i++) {
        const uint32_t t = priced_position(c, i);
        const bool ascends = i == 0 || x->prices[i - 1].op < x->prices[i].op;
        if (t == REMAT_NONE || x->prices[i].price < least || !ascends)
            return rm_blame(c->verdict, REMAT_NONE,
                            "the certificate's price %zu is for no op, too low or out of order", i);
        c->price_before[t + 1] = x->prices[i].price;
    }
    int64_t sum = 0;
    for (uint32_t t = 0; t < c->n; t++) {
        if (!rm_add_to_sum(&sum, c->price_before[t + 1]))
            return rm_blame(c->verdict, REMAT_NONE,
                            "the certificate's prices sum up to 2^62 or more");
        c->price_before[t + 1] = sum;
    }
    return true;
}

/* The value of g with that original index, if it owns a storage that is not resident. Else
 * REMAT_NONE. */
static uint32_t find_storage(const remat_graph *g, uint32_t original)
{
    const uint32_t v = original < g->n_original_values ? g->value_now[original] : REMAT_NONE;
    return v != REMAT_NONE && g->root[v] == v && rm_court_is_movable(g, v) ? v : REMAT_NONE;
}

/* Why v cannot stand in for another storage then. left: its bytes minus those of its heirs so far.
 * NULL: it can, since nothing else holds it. */
static const char *why_no_stand_in(const rm_court *c, uint32_t v, int64_t left)
{
    if (c->is_output[v]) return "an output";
    if (left < 0) return "too small for all its heirs";
    return c->g->pinned[c->g->producer[v]] ? "made by a pinned op" : NULL;
}

static bool check_heirs(rm_court *c)
{
    const remat_graph *g = c->g;
    const rm_certificate *x = c->certificate;
    if (x->n_heirs && c->question->fetches)
        return rm_blame(c->verdict, REMAT_NONE,
                        "where plans fetch, nothing can stand in for another storage");
    int64_t left = 0;
    for (size_t i = 0; i < x->n_heirs; i++) {
        const rm_heir *at = &x->heirs[i], *before = i ? at - 1 : NULL;
        const uint32_t v = find_storage(g, at->value), heir = find_storage(g, at->heir);
        if (v == REMAT_NONE || heir == REMAT_NONE || v == heir)
            return rm_blame(c->verdict, REMAT_NONE,
                            "the certificate's heir %zu is not of two storages", i);
        const bool same = before && before->value == at->value;
        if (before && (before->value > at->value || (same && before->heir >= at->heir)))
            return rm_blame(c->verdict, REMAT_NONE, "the certificate's heir %zu is out of order",
                            i);
        if (!same) left = g->storage[v];
        left -= g->storage[heir];
        const char *why = why_no_stand_in(c, v, left);
        if (why)
            return rm_blame(c->verdict, REMAT_NONE,
                            "value %" PRIu32 " '%.60s' cannot stand in for value %" PRIu32
                            " '%.60s': it is %s",
                            at->value, rm_text(g, g->value_name[v]), at->heir,
                            rm_text(g, g->value_name[heir]), why);
    }
    return true;
}

/* By heir, in the order in which the graph makes them. */
static remat_status list_stand_ins(rm_court *c)
{
    const remat_graph *g = c->g;
    const rm_certificate *x = c->certificate;
    size_t *first; /* by value: the first pair in which it stands in; n_heirs: there is none */
    TRY(RM_SCRATCH(c->ctx, first, g->n_values));
    TRY(RM_SCRATCH(c->ctx, c->stand_ins.begin, (size_t)g->n_values + 2));
    TRY(RM_SCRATCH(c->ctx, c->stand_ins.items, x->n_heirs));
    for (uint32_t v = 0; v < g->n_values; v++) first[v] = x->n_heirs;
    for (size_t i = x->n_heirs; i-- > 0;) first[g->value_now[x->heirs[i].value]] = i;
    uint32_t *begin = c->stand_ins.begin;
    for (size_t i = 0; i < x->n_heirs; i++) begin[g->value_now[x->heirs[i].heir] + 2]++;
    for (uint32_t v = 0; v < g->n_values; v++) begin[v + 2] += begin[v + 1];
    for (uint32_t k = 0; k < g->n_out; k++) {
        const uint32_t v = g->out[k];
        for (size_t i = first[v]; i < x->n_heirs && g->value_now[x->heirs[i].value] == v; i++)
            c->stand_ins.items[begin[g->value_now[x->heirs[i].heir] + 1]++] = v;
    }
    return REMAT_OK;
}

static bool prove(rm_court *c, rm_uint128 more)
{
    if (!rm_add_overflows(c->proved, more, &c->proved)) return true;
    return rm_blame(c->verdict, REMAT_NONE, "the certificate's numbers are too large");
}

/* ---- what a gap asks for, and from whom ---- */

/* A stand-in that is still touched after the gap has begun delays its start. One that is touched at
 * its end or later does not stand in. */
static void start_gap(const rm_court *c, rm_court_gap *x)
{
    for (uint32_t k = c->stand_ins.begin[x->root]; k < c->stand_ins.begin[x->root + 1]; k++) {
        const uint32_t last = c->last_touch[c->stand_ins.items[k]];
        if (last < x->to && last > x->from) x->from = last;
    }
    const int64_t price = c->price_before[x->to] - c->price_before[x->from + 1];
    x->left = (rm_uint128)price * (rm_uint128)c->g->storage[x->root];
}

/* The ops that run again if neither the gap's storage nor a stand-in is there. They are its own op,
 * and the op of every stand-in that one of them reads. */
static remat_status find_charges(rm_court *c, const rm_court_gap *x, uint32_t *usable,
                                 uint32_t *seen, uint32_t stamp)
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

/* What a fetch of the storage costs, in cost units / scale. */
static rm_uint128 fetch_cost(const rm_court *c, uint32_t root)
{
    if (c->question->bandwidth == 0) return 0;
    const rm_uint128 bytes = (rm_uint128)c->g->storage[root],
                     bandwidth = (rm_uint128)c->question->bandwidth;
    const rm_uint128 cost = (bytes * 1000000000 + bandwidth - 1) / bandwidth;
    const rm_uint128 most = (rm_uint128)RM_MAX_SUM, scale = (rm_uint128)c->certificate->scale;
    return (cost < most ? cost : most) * scale;
}

/* What the gap asks for, if plans may fetch: no more than a fetch costs. Nothing but a fetch brings
 * back what a pinned op made, so that is proved at once. */
static bool limit_by_fetch(rm_court *c, rm_court_gap *x)
{
    const rm_uint128 most = fetch_cost(c, x->root);
    if (x->left > most) x->left = most;
    if (!c->g->pinned[c->g->producer[x->root]]) return true;
    if (!prove(c, x->left)) return false;
    x->left = 0;
    return true;
}

/* Stops where the certificate is refused: the verdict says so. */
static remat_status charge_gaps(rm_court *c)
{
    uint32_t *usable, *seen; /* by root value, by op: 1 + the last gap for which they were */
    TRY(RM_SCRATCH(c->ctx, usable, c->g->n_values));
    TRY(RM_SCRATCH(c->ctx, seen, c->g->n_ops));
    TRY(RM_SCRATCH(c->ctx, c->charge_begin, c->gaps.n + 1));
    for (uint32_t i = 0; i < c->gaps.n; i++) {
        rm_court_gap *x = &c->gaps.items[i];
        start_gap(c, x);
        c->work += c->stand_ins.begin[x->root + 1] - c->stand_ins.begin[x->root];
        if (c->question->fetches && !limit_by_fetch(c, x)) return REMAT_OK;
        if (x->left > 0) TRY(find_charges(c, x, usable, seen, i + 1));
        if (!rm_court_has_time(c)) return REMAT_OK;
        c->charge_begin[i + 1] = (uint32_t)c->charges.n;
    }
    return REMAT_OK;
}

/* The gaps that charge an op, in the order of `gaps`. */
static void list_by_op(const rm_court *c, const uint32_t *gaps, uint32_t n, uint32_t *next,
                       uint32_t *items)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = c->charge_begin[gaps[i]]; k < c->charge_begin[gaps[i] + 1]; k++)
            items[next[c->charges.items[k]]++] = gaps[i];
}

/* Stable: `order` by ascending key, 0 .. most. */
static remat_status sort_gaps(rm_court *c, const uint32_t *key, uint32_t most, uint32_t *order)
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

/* By start. Gaps that start together are in the order in which the graph makes their storages. */
static remat_status order_by_start(rm_court *c, uint32_t *order)
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

static remat_status order_by_due(rm_court *c, uint32_t *order)
{
    const uint32_t n = (uint32_t)c->gaps.n;
    uint32_t *key;
    TRY(RM_SCRATCH(c->ctx, key, n));
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
        key[i] = c->gaps.items[i].due;
    }
    return sort_gaps(c, key, c->n, order);
}

static remat_status list_charges(rm_court *c)
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
    TRY(order_by_due(c, order));
    for (uint32_t op = 0; op < n_ops; op++) next[op] = c->start_begin[op];
    list_by_op(c, order, n_gaps, next, c->by_end);
    TRY(order_by_start(c, order));
    for (uint32_t op = 0; op < n_ops; op++) next[op] = c->start_begin[op];
    list_by_op(c, order, n_gaps, next, c->by_start);
    return REMAT_OK;
}

/* The gaps that a second run of op lies in charge it together for at most its cost. */
static bool give(rm_court *c, uint32_t op, rm_uint128 *given)
{
    const rm_uint128 most = (rm_uint128)c->g->cost[op] * (rm_uint128)c->certificate->scale;
    const rm_court_gap *gaps = c->gaps.items;
    rm_uint128 active = 0;
    for (uint32_t i = c->start_begin[op], ended = i; i < c->start_begin[op + 1]; i++) {
        const uint32_t at = c->by_start[i];
        for (; gaps[c->by_end[ended]].due <= gaps[at].from; ended++)
            active -= given[c->by_end[ended]];
        assert(active <= most);
        const rm_uint128 room = most - active;
        given[at] = gaps[at].left < room ? gaps[at].left : room;
        active += given[at];
        c->gaps.items[at].left -= given[at];
        if (!prove(c, given[at])) return false;
    }
    return true;
}

static remat_status sum_up(rm_court *c)
{
    rm_uint128 *given;
    TRY(RM_SCRATCH(c->ctx, given, c->gaps.n));
    for (uint32_t i = c->n_charged; i-- > 0;)
        if (!give(c, c->charged[i], given)) return REMAT_OK;
    for (uint32_t t = 0; t < c->n; t++) {
        const int64_t price = c->price_before[t + 1] - c->price_before[t];
        if (price == 0) continue;
        if (c->room[t] < 0) {
            rm_blame(c->verdict, REMAT_NONE,
                     "the budget is below what op %" PRIu32 " '%.60s' needs",
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
static int64_t round_up(const rm_court *c)
{
    const rm_uint128 scale = (rm_uint128)c->certificate->scale;
    rm_uint128 whole = c->proved / scale + (c->proved % scale != 0);
    int64_t unit = 0;
    for (uint32_t op = 0; op < c->g->n_ops; op++)
        if (!c->g->pinned[op]) unit = rm_common_divisor(unit, c->g->cost[op]);
    const rm_uint128 step = unit > 1 && !c->question->fetches ? (rm_uint128)unit : 1;
    if (whole % step) whole += step - whole % step;
    const rm_uint128 most = (rm_uint128)(RM_MAX_SUM - 1 - c->g->total_cost);
    return (int64_t)(whole < most ? whole : most);
}

static remat_status mark_outputs(rm_court *c)
{
    const remat_graph *g = c->g;
    TRY(RM_SCRATCH(c->ctx, c->is_output, g->n_values));
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (rm_court_is_movable(g, g->root[g->outputs[i]]))
            c->is_output[g->root[g->outputs[i]]] = 1;
    return REMAT_OK;
}

static remat_status judge(rm_court *c)
{
    if (!check_scale(c)) return REMAT_OK;
    TRY(mark_outputs(c));
    if (c->certificate->walls) return rm_court_prove_walls(c);
    if (!check_heirs(c)) return REMAT_OK;
    TRY(list_stand_ins(c));
    TRY(rm_court_find_gaps(c));
    if (!c->verdict->valid) return REMAT_OK;
    TRY(RM_SCRATCH(c->ctx, c->price_before, (size_t)c->n + 1));
    if (!read_prices(c)) return REMAT_OK;
    TRY(charge_gaps(c));
    if (!c->verdict->valid) return REMAT_OK;
    TRY(list_charges(c));
    return sum_up(c);
}

remat_status rm_verify_bound(remat_ctx *ctx, const remat_graph *g, const rm_bound_case *question,
                             const rm_certificate *certificate, int64_t *cost, remat_verdict *out)
{
    remat_verdict verdict = {.valid = true,
                             .first_bad_step = REMAT_NONE,
                             .peak_step = REMAT_NONE,
                             .peak_op = REMAT_NONE};
    rm_court c = {
        .ctx = ctx, .g = g, .question = question, .certificate = certificate, .verdict = &verdict};
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_status status = REMAT_OK;
    if (certificate->n_prices) status = judge(&c);
    RM_VEC_FREE(&ctx->heap, c.gaps);
    RM_VEC_FREE(&ctx->heap, c.charges);
    if (status == REMAT_OK) {
        if (verdict.valid) *cost = g->total_cost + (certificate->n_prices ? round_up(&c) : 0);
        *out = verdict;
    }
    rm_scratch_release(ctx, mark);
    return status;
}
