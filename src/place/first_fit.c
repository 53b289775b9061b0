/* first_fit.c: placements in no time, some of them good.
 *
 * Method: spans are placed one after the other, each as low as it fits between those that are
 * there (first fit), or into the gap that it fills best (best fit). What matters is the order: by
 * bytes, by life, by their product, or by the load of the busiest moment, the largest first. Each
 * order is tried both ways, and the lowest placement is kept. Spans may have a place already: then
 * the others go around them.
 *
 * Invariant: `placed` lists the spans placed so far by their offsets. So one walk over it meets the
 * gaps for a span from the ground up.
 *
 * Cost: O(n^2) an order, a few nanoseconds each, within the limit. */
#include "place/place.h"

#include <stdlib.h>
#include <string.h>

typedef struct ordered {
    double key;
    uint32_t span;
} ordered;

typedef struct fitter {
    remat_ctx *ctx;
    const rm_cliques *c;
    const int64_t *fixed; /* by span: its offset, or RM_NOT_FIXED; NULL: none is fixed */
    ordered *order;
    uint32_t *placed;
    uint32_t n_placed;
    int64_t *offsets;
} fitter;

static int largest_first(const void *a, const void *b)
{
    const ordered *x = a, *y = b;
    if (x->key != y->key) return x->key > y->key ? -1 : 1;
    return x->span < y->span ? -1 : 1;
}

double rm_span_key(const rm_cliques *c, uint32_t span, int kind)
{
    const rm_span *s = &c->spans[span];
    const double life = s->end - s->begin, bytes = (double)(s->bytes / c->unit);
    switch (kind) {
    case 0: return (double)c->busiest[span];
    case 1: return bytes;
    case 2: return life * bytes;
    default: return life * ((double)c->bound + 1) + (double)s->bytes;
    }
}

/* The lowest gap that is large enough, or with `best` the smallest of them. */
static int64_t find_gap(const fitter *f, const rm_span *s, bool best)
{
    int64_t top = 0, found = -1, smallest = INT64_MAX;
    for (uint32_t k = 0; k < f->n_placed; k++) {
        const uint32_t other = f->placed[k];
        const rm_span *o = &f->c->spans[other];
        if (o->begin >= s->end || s->begin >= o->end) continue;
        const int64_t gap = f->offsets[other] - top;
        if (gap >= s->bytes && gap < smallest) {
            found = top;
            smallest = gap;
            if (!best) return found;
        }
        if (f->offsets[other] + o->bytes > top) top = f->offsets[other] + o->bytes;
    }
    return found < 0 ? top : found;
}

static void insert(fitter *f, uint32_t span)
{
    uint32_t low = 0, high = f->n_placed;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (f->offsets[f->placed[middle]] <= f->offsets[span]) low = middle + 1;
        else high = middle;
    }
    memmove(f->placed + low + 1, f->placed + low, (f->n_placed - low) * sizeof *f->placed);
    f->placed[low] = span;
    f->n_placed++;
}

/* Those that are fixed are placed, and the others in the order in which they are to be. */
static uint32_t begin_order(fitter *f, int order, int64_t *height)
{
    uint32_t n = 0;
    f->n_placed = 0;
    *height = 0;
    for (uint32_t i = 0; i < f->c->n_spans; i++) {
        if (!f->fixed || f->fixed[i] == RM_NOT_FIXED) {
            f->order[n++] = (ordered){rm_span_key(f->c, i, order), i};
            continue;
        }
        f->offsets[i] = f->fixed[i];
        if (f->offsets[i] + f->c->spans[i].bytes > *height)
            *height = f->offsets[i] + f->c->spans[i].bytes;
        insert(f, i);
    }
    qsort(f->order, n, sizeof *f->order, largest_first);
    return n;
}

/* The height, or INT64_MAX if the limit is over before all are placed. If it must end, the rest is
 * then stacked on top of all. */
static int64_t fit(fitter *f, int order, bool best, bool must_end)
{
    int64_t height;
    const uint32_t n = begin_order(f, order, &height);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t span = f->order[i].span;
        const rm_span *s = &f->c->spans[span];
        const bool late = rm_spend(f->ctx, f->n_placed / 2 + 64);
        if (late && !must_end) return INT64_MAX;
        f->offsets[span] = late ? height : find_gap(f, s, best);
        if (f->offsets[span] + s->bytes > height) height = f->offsets[span] + s->bytes;
        if (!late) insert(f, span);
    }
    return height;
}

remat_status rm_first_fit(remat_ctx *ctx, const rm_cliques *c, const int64_t *fixed, int64_t target,
                          rm_placed *best)
{
    fitter f = {.ctx = ctx, .c = c, .fixed = fixed};
    const rm_mark mark = rm_scratch_mark(ctx);
    TRY(RM_SCRATCH(ctx, f.order, c->n_spans));
    TRY(RM_SCRATCH(ctx, f.placed, c->n_spans));
    TRY(RM_SCRATCH(ctx, f.offsets, c->n_spans));
    for (int i = 0; i < 2 * RM_SPAN_KEYS && best->height > target; i++) {
        const bool is_first = best->height == INT64_MAX;
        if (!is_first && rm_is_over(ctx)) break;
        const int64_t height = fit(&f, i / 2, i % 2, is_first);
        if (height >= best->height) continue;
        best->height = height;
        memcpy(best->offsets, f.offsets, c->n_spans * sizeof *f.offsets);
    }
    rm_scratch_release(ctx, mark);
    return REMAT_OK;
}
