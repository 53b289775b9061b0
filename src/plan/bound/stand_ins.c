/* stand_ins.c: which storages stand in for which. docs/bound.md says which may. This file chooses
 * those that help.
 *
 * Problem: let storage y be made from storage r, directly or not, and let r be out of use. A plan
 * could keep r instead of y, and make y again when it is wanted. If r is at least as large as y, it
 * gains nothing by that. So r's op counts as lost along with y's. One r can stand in for several y,
 * its *heirs*, which together are no larger than r.
 *
 * Method: backwards over the order. Let z be an output of a reader of r. The possible heirs of r
 * are z itself, if it is worth something, and the heirs of z, for all such z. An heir must come
 * late enough: r is out of use during most of the heir's main gap. Where not all fit, those that
 * are worth most go first. The rules say which r take part: see order_bound.h.
 *
 * Cost: O(edges + heirs passed on). A storage has at most MOST_HEIRS, and passes on no more than
 * its readers have. */
#include "plan/bound/gaps.h"

#include <stdlib.h>

#include "base/csr.h"

enum { MOST_HEIRS = 8, MOST_CANDIDATES = 64 };

typedef struct candidate {
    uint32_t store;
    int64_t worth, bytes;
} candidate;

typedef struct chooser {
    remat_ctx *ctx;
    const rm_gaps *gs;
    unsigned rules;
    const int64_t *worth, *price_before;
    uint32_t *main_gap;      /* by storage: see find_main_gap; REMAT_NONE: it has no gap */
    uint32_t *first, *n;     /* by storage: its heirs in `chosen`, first those that it holds for */
    uint8_t *used;           /* by storage: the rules that its heirs need */
    RM_VEC(uint32_t) chosen; /* heirs of all storages */
    candidate candidates[MOST_CANDIDATES];
    uint32_t n_candidates;
} chooser;

static int by_worth(const void *left, const void *right)
{
    const candidate *a = left, *b = right;
    if (a->worth != b->worth) return a->worth < b->worth ? 1 : -1;
    return (a->store > b->store) - (a->store < b->store);
}

/* What the positions from a gap's start to its end cost a byte. */
static int64_t price_of(const chooser *c, uint32_t start, uint32_t to)
{
    return start + 1 < to ? c->price_before[to] - c->price_before[start + 1] : 0;
}

/* A gap starts only when its stand-ins are out of use. That may cost it an eighth of what its
 * positions are worth, or of the positions themselves if they have no price. */
static bool is_late_enough(const chooser *c, uint32_t r, uint32_t heir)
{
    const rm_gap *gap = &c->gs->gaps[c->main_gap[heir]];
    const uint32_t last = c->gs->last_touch[r];
    if (last <= gap->from) return true;
    if (last >= gap->to) return false;
    const int64_t price = price_of(c, gap->from, gap->to);
    if (price) return price_of(c, last, gap->to) >= price - price / 8;
    return last - gap->from <= (gap->to - gap->from) / 8;
}

/* Of a storage's gaps the one that is worth most; of equals the longest. */
static uint32_t find_main_gap(const chooser *c, uint32_t store)
{
    const rm_gaps *gs = c->gs;
    uint32_t best = REMAT_NONE;
    int64_t most = -1;
    for (uint32_t i = gs->gap_begin[store]; i < gs->gap_begin[store + 1]; i++) {
        const rm_gap *x = &gs->gaps[i];
        const int64_t price = price_of(c, x->from, x->to);
        if (price < most ||
            (price == most && x->to - x->from <= gs->gaps[best].to - gs->gaps[best].from))
            continue;
        most = price;
        best = i;
    }
    return best;
}

/* Adds the heir to the candidates for r, if it is one and there is room. */
static void consider(chooser *c, uint32_t r, uint32_t heir)
{
    if (c->n_candidates == MOST_CANDIDATES || c->main_gap[heir] == REMAT_NONE ||
        c->worth[heir] <= 0)
        return;
    if (!is_late_enough(c, r, heir)) return;
    for (uint32_t i = 0; i < c->n_candidates; i++)
        if (c->candidates[i].store == heir) return;
    c->candidates[c->n_candidates++] = (candidate){heir, c->worth[heir], c->gs->nm->bytes[heir]};
}

static uint32_t n_holds(const chooser *c, uint32_t holder)
{
    const rm_csr *holds = &c->gs->holds;
    return holds->begin ? holds->begin[holder + 1] - holds->begin[holder] : 0;
}

static void find_candidates(chooser *c, uint32_t r)
{
    const rm_normal *nm = c->gs->nm;
    c->n_candidates = 0;
    for (uint32_t k = nm->reader_begin[r]; k < nm->reader_begin[r + 1]; k++)
        for (uint32_t j = nm->out_begin[nm->readers[k]]; j < nm->out_begin[nm->readers[k] + 1];
             j++) {
            const uint32_t z = nm->out[j];
            consider(c, r, z);
            for (uint32_t i = n_holds(c, z); i < c->n[z]; i++)
                consider(c, r, c->chosen.items[c->first[z] + i]);
        }
    if (c->n_candidates) qsort(c->candidates, c->n_candidates, sizeof *c->candidates, by_worth);
}

/* The rules that r needs to have n of the candidates as heirs. */
static unsigned rules_for(const chooser *c, uint32_t r, uint32_t n)
{
    const rm_normal *nm = c->gs->nm;
    unsigned rules = 0;
    if (nm->reader_begin[r + 1] - nm->reader_begin[r] == 1) rules |= REMAT_BOUND_SINGLE;
    else if (n == 1) rules |= REMAT_BOUND_REGION;
    if (n > 1) rules |= REMAT_BOUND_FAN_OUT;
    if (n < c->n_candidates) rules |= REMAT_BOUND_SIDE;
    return rules;
}

/* The heirs that r has as a holder come first. left: what of its bytes they leave. */
static remat_status take_holds(chooser *c, uint32_t r, int64_t *left)
{
    const rm_csr *holds = &c->gs->holds;
    *left = c->gs->nm->bytes[r];
    c->first[r] = (uint32_t)c->chosen.n;
    c->n[r] = n_holds(c, r);
    for (uint32_t i = 0; i < c->n[r]; i++) {
        const uint32_t heir = holds->items[holds->begin[r] + i];
        *left -= c->gs->nm->bytes[heir];
        TRY(RM_PUSH(c->ctx, c->chosen, heir));
    }
    if (c->n[r]) c->used[r] = REMAT_BOUND_HOLDERS;
    return REMAT_OK;
}

static remat_status choose(chooser *c, uint32_t r)
{
    const rm_normal *nm = c->gs->nm;
    int64_t left;
    TRY(take_holds(c, r, &left));
    if (!c->rules || nm->is_output[r] || nm->pinned[nm->producer[r]]) return REMAT_OK;
    find_candidates(c, r);
    uint32_t picked[MOST_HEIRS], n = 0;
    for (uint32_t i = 0; i < c->n_candidates && n < MOST_HEIRS; i++)
        if (c->candidates[i].bytes <= left) {
            left -= c->candidates[i].bytes;
            picked[n++] = c->candidates[i].store;
        }
    const unsigned wants = rules_for(c, r, n);
    if (wants & ~c->rules) return REMAT_OK;
    for (uint32_t i = 0; i < n; i++) TRY(RM_PUSH(c->ctx, c->chosen, picked[i]));
    c->n[r] += n;
    c->used[r] |= (uint8_t)wants;
    return REMAT_OK;
}

static remat_status choose_all(chooser *c)
{
    const rm_gaps *gs = c->gs;
    const rm_normal *nm = gs->nm;
    for (uint32_t s = 0; s < nm->n_stores; s++) c->main_gap[s] = find_main_gap(c, s);
    for (uint32_t t = nm->n_ops; t-- > 0;)
        for (uint32_t k = nm->out_begin[gs->order[t]]; k < nm->out_begin[gs->order[t] + 1]; k++)
            TRY(choose(c, nm->out[k]));
    return REMAT_OK;
}

static remat_status tabulate(const chooser *c, rm_stand_ins *out)
{
    const uint32_t n_stores = c->gs->nm->n_stores;
    out->n = (uint32_t)c->chosen.n;
    out->rules = c->used;
    TRY(RM_SCRATCH(c->ctx, out->heir_begin, (size_t)n_stores + 1));
    TRY(RM_SCRATCH(c->ctx, out->heirs, out->n));
    uint32_t n = 0;
    for (uint32_t s = 0; s < n_stores; s++) {
        for (uint32_t i = 0; i < c->n[s]; i++) out->heirs[n++] = c->chosen.items[c->first[s] + i];
        out->heir_begin[s + 1] = n;
    }
    rm_csr back;
    TRY(rm_csr_invert(c->ctx, n_stores, n_stores, out->heir_begin, out->heirs, NULL, &back));
    out->stand_in_begin = back.begin;
    out->stand_ins = back.items;
    return REMAT_OK;
}

remat_status rm_stand_ins_find(remat_ctx *ctx, const rm_gaps *gs, unsigned rules,
                               const int64_t *worth, const int64_t *price_before, rm_stand_ins *out)
{
    chooser c = {
        .ctx = ctx, .gs = gs, .rules = rules, .worth = worth, .price_before = price_before};
    const uint32_t n_stores = gs->nm->n_stores;
    TRY(RM_SCRATCH(ctx, c.main_gap, n_stores));
    TRY(RM_SCRATCH(ctx, c.first, n_stores));
    TRY(RM_SCRATCH(ctx, c.n, n_stores));
    TRY(RM_SCRATCH(ctx, c.used, n_stores));
    remat_status status = choose_all(&c);
    if (status == REMAT_OK) status = tabulate(&c, out);
    RM_VEC_FREE(&ctx->heap, c.chosen);
    return status;
}
