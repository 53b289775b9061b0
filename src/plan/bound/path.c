/* path.c: gaps that every order of first runs has.
 *
 * Problem: a bound for a given order says nothing of plans in other orders. What holds in all of
 * them follows from dependencies alone. An op runs for the first time behind all that it depends
 * on, and pinned ops run in the graph's order.
 *
 * Method: the positions are a *path*: ops of which each depends on the one before, so that their
 * first runs come in this order in every plan. Each op has a *window* on it: `after` path positions
 * surely come before its first run or are it, and its first run surely is not later than position
 * `by`. A storage must be in memory at a position, or be made again later, if
 * - its op surely ran before the position or at it, and
 * - a first run that reads it surely comes later, or it is a graph output.
 * These positions are cut into gaps by the first runs that read the storage (find_gaps). A gap ends
 * where such a reader surely has not run yet, and if it is lost the storage is made again by the
 * time the reader surely has run, `due`. The next gap starts there. So no two gaps of a storage
 * share a re-run. A reader that is not on the path is passed over if more positions lie in its
 * window than it would gain. What is made from the storage beside the path and read later may count
 * as one more reader (holders.c). docs/bound.md has the proof; verify_gaps.c cuts the same gaps.
 *
 * Which path: the one of most excess. Excess is what keep-all has in memory over the budget while
 * an op runs in the graph's order. The choice matters for strength, never for truth.
 *
 * Cost: O(edges log readers of a storage). */
#include "plan/bound/path.h"

#include <stdlib.h>

enum { EXCESS_STEPS = 1000 }; /* an op of the largest excess counts as so many without any */

typedef struct pathfinder {
    remat_ctx *ctx;
    const rm_normal *nm;
    rm_gaps *gs;
    rm_gap_walk walk;
    rm_window *windows; /* by op */
    rm_window *readers; /* of one storage */
    bool with_holders;
    rm_holders holders;
} pathfinder;

/* ---- which path ---- */

/* By op: 1, and more where keep-all is over the budget. */
static remat_status weigh_ops(const pathfinder *p, int64_t budget_bytes, bool fetches,
                              int64_t *weight)
{
    const rm_normal *nm = p->nm;
    rm_gaps own;
    uint32_t *order;
    int64_t most = 1;
    TRY(RM_SCRATCH(p->ctx, order, nm->n_ops));
    for (uint32_t op = 0; op < nm->n_ops; op++) order[op] = op;
    TRY(rm_gaps_find(p->ctx, nm, order, fetches, &own));
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        weight[op] = own.need[op] + own.load[op] - budget_bytes;
        if (weight[op] < 0) weight[op] = 0;
        if (weight[op] > most) most = weight[op];
    }
    for (uint32_t op = 0; op < nm->n_ops; op++)
        weight[op] = 1 + (int64_t)((rm_uint128)weight[op] * EXCESS_STEPS / (rm_uint128)most);
    return REMAT_OK;
}

typedef struct longest {
    int64_t weight;
    uint32_t before; /* the op before on the path; REMAT_NONE: it begins here */
} longest;

static void extend(longest *best, uint32_t op, uint32_t before)
{
    if (best[before].weight <= best[op].weight) return;
    best[op] = (longest){best[before].weight, before};
}

/* Longest paths to each op. A free view has no first run that counts, and adds nothing. */
static uint32_t find_longest(const rm_normal *nm, const int64_t *weight, longest *best)
{
    uint32_t last = REMAT_NONE, pinned = REMAT_NONE;
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        best[op] = (longest){0, REMAT_NONE};
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
            extend(best, op, nm->producer[nm->in[k]]);
        if (nm->pinned[op] && pinned != REMAT_NONE) extend(best, op, pinned);
        if (nm->pinned[op]) pinned = op;
        if (rm_is_free_view(nm, op)) continue;
        best[op].weight += weight[op];
        if (last == REMAT_NONE || best[op].weight > best[last].weight) last = op;
    }
    return last;
}

static remat_status choose_path(pathfinder *p, int64_t budget_bytes, bool fetches)
{
    const rm_normal *nm = p->nm;
    int64_t *weight;
    longest *best;
    uint32_t *path, n = 0;
    TRY(RM_SCRATCH(p->ctx, weight, nm->n_ops));
    TRY(RM_SCRATCH(p->ctx, best, nm->n_ops));
    TRY(weigh_ops(p, budget_bytes, fetches, weight));
    const uint32_t last = find_longest(nm, weight, best);
    for (uint32_t op = last; op != REMAT_NONE; op = best[op].before) n += !rm_is_free_view(nm, op);
    TRY(RM_SCRATCH(p->ctx, path, n));
    p->gs->at = path;
    p->gs->n = n;
    for (uint32_t op = last; op != REMAT_NONE; op = best[op].before)
        if (!rm_is_free_view(nm, op)) path[--n] = op;
    return REMAT_OK;
}

/* ---- windows ---- */

static void widen(uint32_t *after, uint32_t other)
{
    if (other > *after) *after = other;
}

static void narrow(uint32_t *by, uint32_t other)
{
    if (other < *by) *by = other;
}

static void find_after(pathfinder *p)
{
    const rm_normal *nm = p->nm;
    uint32_t pinned = 0; /* `after` of the last pinned op */
    for (uint32_t op = 0, next = 0; op < nm->n_ops; op++) {
        uint32_t *after = &p->windows[op].after;
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
            widen(after, p->windows[nm->producer[nm->in[k]]].after);
        if (nm->pinned[op]) widen(after, pinned);
        if (next < p->gs->n && p->gs->at[next] == op) *after = ++next;
        if (nm->pinned[op]) pinned = *after;
    }
}

static void find_by(pathfinder *p)
{
    const rm_normal *nm = p->nm;
    uint32_t pinned = p->gs->n;
    for (uint32_t op = 0; op < nm->n_ops; op++) p->windows[op].by = p->gs->n;
    for (uint32_t op = nm->n_ops, next = p->gs->n; op-- > 0;) {
        uint32_t *by = &p->windows[op].by;
        if (nm->pinned[op]) narrow(by, pinned);
        if (next > 0 && p->gs->at[next - 1] == op) *by = --next;
        if (nm->pinned[op]) pinned = *by;
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
            narrow(&p->windows[nm->producer[nm->in[k]]].by, *by);
    }
}

/* ---- gaps ---- */

static int by_due(const void *left, const void *right)
{
    const rm_window *a = left, *b = right;
    if (a->by != b->by) return a->by < b->by ? -1 : 1;
    return (a->after < b->after) - (a->after > b->after);
}

/* The windows of those that read the storage. The end reads the outputs. Holders count as one
 * reader. */
static uint32_t list_readers(pathfinder *p, uint32_t store)
{
    const rm_normal *nm = p->nm;
    uint32_t n = 0;
    for (uint32_t k = nm->reader_begin[store]; k < nm->reader_begin[store + 1]; k++)
        if (!rm_is_free_view(nm, nm->readers[k])) p->readers[n++] = p->windows[nm->readers[k]];
    if (nm->is_output[store]) p->readers[n++] = (rm_window){p->gs->n, p->gs->n};
    if (rm_wanted_to(p->holders.reader[store]) > 0) p->readers[n++] = p->holders.reader[store];
    qsort(p->readers, n, sizeof *p->readers, by_due);
    return n;
}

/* Behind which position does the storage surely exist? Without an op on the path that touches it,
 * at that op's first run already. */
static uint32_t first_position(const pathfinder *p, rm_window maker, uint32_t n_readers)
{
    if (rm_is_on_path(maker) || maker.by == 0) return maker.by;
    for (uint32_t i = 0; i < n_readers; i++)
        if (rm_is_on_path(p->readers[i]) && p->readers[i].by == maker.by) return maker.by;
    return maker.by - 1;
}

static remat_status add_gap(pathfinder *p, uint32_t store, uint32_t from, rm_window reader)
{
    const uint32_t to = rm_wanted_to(reader);
    if (to < from + 2) return REMAT_OK;
    widen(&p->gs->last_touch[store], to - 1);
    return rm_gaps_add(&p->walk, store, from, to, reader.by);
}

/* Cuts the time in which the storage is surely wanted into gaps. The readers that must have run
 * first come first. The last gap ends where no reader surely is to come. */
static remat_status find_gaps(pathfinder *p, uint32_t store)
{
    const rm_window maker = p->windows[p->nm->producer[store]];
    if (p->nm->bytes[store] == 0 || maker.by == p->gs->n) return REMAT_OK;
    const uint32_t n = list_readers(p, store);
    uint32_t from = first_position(p, maker, n);
    rm_window last = {0, 0};
    for (uint32_t i = 0; i < n; i++)
        if (rm_wanted_to(p->readers[i]) > rm_wanted_to(last)) last = p->readers[i];
    for (uint32_t i = 0; i < n; i++) {
        const rm_window reader = p->readers[i];
        const uint32_t to = rm_wanted_to(reader);
        if (rm_is_on_path(reader)) {
            TRY(add_gap(p, store, from, reader));
            widen(&from, reader.by);
        } else if (to > from + 1 && reader.by < rm_wanted_to(last) &&
                   reader.by - to <= to - from - 1) {
            TRY(add_gap(p, store, from, reader));
            from = reader.by;
        }
    }
    return add_gap(p, store, from, last);
}

static remat_status walk_path(pathfinder *p)
{
    const rm_normal *nm = p->nm;
    find_after(p);
    find_by(p);
    p->gs->windows = p->windows;
    TRY(rm_holders_find(p->ctx, p->gs, p->windows, p->with_holders, &p->holders));
    p->gs->holds = (rm_csr){p->holders.begin, p->holders.heirs};
    TRY(rm_gaps_begin(&p->walk));
    for (uint32_t t = 0; t < p->gs->n; t++) {
        const uint32_t op = p->gs->at[t];
        rm_gaps_touch_all(&p->walk, t);
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
            widen(&p->gs->last_touch[nm->in[k]], t);
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
            widen(&p->gs->last_touch[nm->out[k]], t);
    }
    for (uint32_t s = 0; s < nm->n_stores; s++) TRY(find_gaps(p, s));
    return REMAT_OK;
}

remat_status rm_gaps_on_path(remat_ctx *ctx, const rm_normal *nm, int64_t budget_bytes,
                             bool fetches, bool with_holders, rm_gaps *out)
{
    uint32_t *order, most_readers = 0;
    *out = (rm_gaps){.nm = nm};
    pathfinder p = {.ctx = ctx,
                    .nm = nm,
                    .gs = out,
                    .walk = {ctx, out, fetches, {0}},
                    .with_holders = with_holders && !fetches};
    TRY(RM_SCRATCH(ctx, order, nm->n_ops));
    for (uint32_t op = 0; op < nm->n_ops; op++) order[op] = op;
    out->order = order;
    for (uint32_t s = 0; s < nm->n_stores; s++)
        widen(&most_readers, nm->reader_begin[s + 1] - nm->reader_begin[s]);
    TRY(RM_SCRATCH(ctx, p.windows, nm->n_ops));
    TRY(RM_SCRATCH(ctx, p.readers, (size_t)most_readers + 2));
    TRY(choose_path(&p, budget_bytes, fetches));
    return rm_gaps_end(&p.walk, walk_path(&p));
}
