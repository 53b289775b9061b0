/* eject.c: makes a placement lower.
 *
 * Problem: a search that stacks spans from the ground up never moves what it has placed but by
 * taking back all that came later. Where spans are thousands and most moments leave some room, a
 * placement that is good already needs a few changes here and there.
 *
 * Method: spans that reach above the target are taken out of the placement. One of those that are
 * out, drawn at random, goes where the spans that overlap it there weigh least; these are out in
 * its place (ejection chains: Glover 1996), and each weighs one more from then on. So what is hard
 * to place becomes heavy, and is left alone (weights of conflicts: Morris 1993). It ends when
 * nothing is out. Targets halve what is between the capacity and the best height; one that was not
 * reached with its share of the work is given up. When they meet the best height, they begin at the
 * capacity again, with other random numbers.
 *
 * Only offsets at which the span touches another, or the ground, are looked at, so all offsets stay
 * multiples of the unit. The weight of what overlaps changes only where a neighbour begins or ends
 * to overlap: events, which are sorted and summed up from the ground.
 *
 * Invariants: spans that are in do not overlap, and lie below the target; the best is replaced by
 * lower placements only. Nothing is proved.
 *
 * Cost: O(d log d) for a span of d neighbours in time, and 8 bytes for each pair of them; where
 * there are more than MOST_PAIRS, nothing is done. */
#include "place/place.h"

#include "base/csr.h"
#include "base/random.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_PAIRS = 1 << 23,
    FEW = 24,            /* events; more are sorted by qsort */
    STEP_WORK = 24,      /* operations of a step, besides its neighbours and events */
    LAST_WORK = 1 << 22, /* operations that are not divided any more */
    HEAVY = 10,          /* the weight of a span of all bytes, at first */
    FINE = 512           /* targets differ by the bound / FINE, or more */
};
static const double share_of_a_target = 0.25;

typedef struct event { /* at this offset of the span, */
    int64_t at;
    int64_t weight; /* a neighbour is left behind (negative), or above it one is met */
} event;

typedef struct ejector {
    remat_ctx *ctx;
    const rm_cliques *c;
    rm_random random;
    uint32_t *begin;  /* by span: in the list of neighbours */
    uint32_t *others; /* neighbours: spans that share a clique */
    /* by span */
    int64_t *offset; /* or RM_NOT_FIXED: it is out */
    int64_t *weight;
    uint32_t *out; /* those that are out */
    uint32_t n_out;
    event *events; /* of one span: two for each neighbour */
} ejector;

/* ---- neighbours ---- */

static size_t count_pairs(const rm_cliques *c)
{
    size_t n = 0;
    for (uint32_t i = 0; i < c->n_spans; i++) n += c->first[c->spans[i].end] - (i + 1);
    return n;
}

/* Spans are sorted by where they begin, so i meets those after it that begin before it ends. */
static remat_status list_neighbours(ejector *x)
{
    const rm_cliques *c = x->c;
    TRY(rm_csr_begin(x->ctx, c->n_spans, &x->begin));
    for (uint32_t i = 0; i < c->n_spans; i++)
        for (uint32_t k = i + 1; k < c->first[c->spans[i].end]; k++) {
            rm_csr_count(x->begin, i);
            rm_csr_count(x->begin, k);
        }
    TRY(RM_SCRATCH(x->ctx, x->others, rm_csr_sum(x->begin, c->n_spans)));
    for (uint32_t i = 0; i < c->n_spans; i++)
        for (uint32_t k = i + 1; k < c->first[c->spans[i].end]; k++) {
            x->others[rm_csr_place(x->begin, i)] = k;
            x->others[rm_csr_place(x->begin, k)] = i;
        }
    return REMAT_OK;
}

/* ---- a step ---- */

static int by_offset(const void *a, const void *b)
{
    const event *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    return x->weight < y->weight ? -1 : x->weight > y->weight;
}

static void sort_events(event *e, size_t n)
{
    if (n > FEW) {
        qsort(e, n, sizeof *e, by_offset);
        return;
    }
    for (size_t i = 1; i < n; i++) {
        const event moved = e[i];
        size_t k = i;
        for (; k > 0 && by_offset(&moved, &e[k - 1]) < 0; k--) e[k] = e[k - 1];
        e[k] = moved;
    }
}

/* The events of a span that may lie up to `highest`. *ground: the weight of what it overlaps at 0.
 */
static size_t find_events(ejector *x, uint32_t span, int64_t highest, int64_t *ground)
{
    const int64_t bytes = x->c->spans[span].bytes;
    size_t n = 0;
    *ground = 0;
    for (uint32_t k = x->begin[span]; k < x->begin[span + 1]; k++) {
        const uint32_t other = x->others[k];
        const int64_t low = x->offset[other], top = low + x->c->spans[other].bytes;
        if (low == RM_NOT_FIXED) continue;
        if (low < bytes) *ground += x->weight[other];
        else if (low - bytes <= highest) x->events[n++] = (event){low - bytes, x->weight[other]};
        if (top <= highest) x->events[n++] = (event){top, -x->weight[other]};
    }
    sort_events(x->events, n);
    return n;
}

/* Where it weighs least; of several such offsets, any. */
static int64_t find_offset(ejector *x, uint32_t span, int64_t highest)
{
    int64_t weight, offset = 0;
    const size_t n = find_events(x, span, highest, &weight);
    int64_t least = weight;
    uint32_t n_ties = 1;
    for (size_t i = 0; i < n;) {
        const int64_t at = x->events[i].at;
        for (; i < n && x->events[i].at == at && x->events[i].weight < 0; i++)
            weight += x->events[i].weight;
        if (weight < least) n_ties = 0;
        if (weight <= least && at > 0 && rm_random_below(&x->random, ++n_ties) == 0) offset = at;
        if (weight < least) least = weight;
        for (; i < n && x->events[i].at == at; i++) weight += x->events[i].weight;
    }
    rm_spend(x->ctx, (int64_t)(x->begin[span + 1] - x->begin[span] + 8 * n) + STEP_WORK);
    return offset;
}

static void take_out(ejector *x, uint32_t span)
{
    x->offset[span] = RM_NOT_FIXED;
    x->out[x->n_out++] = span;
}

static void put_in(ejector *x, uint32_t span, int64_t offset)
{
    const int64_t top = offset + x->c->spans[span].bytes;
    for (uint32_t k = x->begin[span]; k < x->begin[span + 1]; k++) {
        const uint32_t other = x->others[k];
        const int64_t low = x->offset[other];
        if (low == RM_NOT_FIXED || low >= top || low + x->c->spans[other].bytes <= offset) continue;
        x->weight[other]++;
        take_out(x, other);
    }
    x->offset[span] = offset;
}

/* ---- targets ---- */

/* Large spans are hard to place from the start. (A square root is the same on every machine.) */
static int64_t first_weight(const rm_cliques *c, uint32_t span)
{
    return 1 + (int64_t)(HEAVY * sqrt((double)c->spans[span].bytes / (double)c->bound));
}

/* From the best placement to one no higher than the target, within the limit. */
static bool reach(ejector *x, const rm_placed *best, int64_t target)
{
    const rm_cliques *c = x->c;
    x->n_out = 0;
    for (uint32_t i = 0; i < c->n_spans; i++) {
        x->offset[i] = best->offsets[i];
        x->weight[i] = first_weight(c, i);
        if (x->offset[i] + c->spans[i].bytes > target) take_out(x, i);
    }
    while (x->n_out && !rm_is_over(x->ctx)) {
        const uint32_t at = rm_random_below(&x->random, x->n_out), span = x->out[at];
        x->out[at] = x->out[--x->n_out];
        put_in(x, span, find_offset(x, span, target - c->spans[span].bytes));
    }
    return x->n_out == 0;
}

static void keep(const ejector *x, rm_placed *best)
{
    best->height = 0;
    for (uint32_t i = 0; i < x->c->n_spans; i++) {
        const int64_t top = x->offset[i] + x->c->spans[i].bytes;
        best->offsets[i] = x->offset[i];
        if (top > best->height) best->height = top;
    }
}

static void descend(ejector *x, int64_t capacity, rm_placed *best)
{
    const int64_t unit = x->c->unit;
    for (int64_t low = capacity; best->height > capacity && !rm_is_over(x->ctx);) {
        const bool is_near = best->height - low <= x->c->bound / FINE + unit;
        if (is_near && low > capacity) {
            low = capacity;
            continue;
        }
        const int64_t target = is_near ? low : low + (best->height - low) / unit / 2 * unit;
        rm_limit_push(x->ctx, rm_work_left(x->ctx) > LAST_WORK ? share_of_a_target : 1,
                      RM_NO_LIMIT);
        const bool found = reach(x, best, target);
        rm_limit_pop(x->ctx);
        if (found) keep(x, best);
        else low = target;
    }
}

remat_status rm_eject_search(remat_ctx *ctx, const rm_cliques *c, int64_t capacity, rm_placed *best)
{
    ejector x = {.ctx = ctx, .c = c, .random = {(uint64_t)ctx->options.seed}};
    const size_t n_pairs = count_pairs(c);
    assert(best->height < INT64_MAX && capacity >= c->bound);
    if (n_pairs > MOST_PAIRS) return REMAT_OK;
    const rm_mark mark = rm_scratch_mark(ctx);
    TRY(list_neighbours(&x));
    rm_spend(ctx, 2 * (int64_t)n_pairs);
    TRY(RM_SCRATCH(ctx, x.offset, c->n_spans));
    TRY(RM_SCRATCH(ctx, x.weight, c->n_spans));
    TRY(RM_SCRATCH(ctx, x.out, c->n_spans));
    TRY(RM_SCRATCH(ctx, x.events, 2 * (size_t)c->n_spans));
    descend(&x, capacity, best);
    rm_scratch_release(ctx, mark);
    return REMAT_OK;
}
