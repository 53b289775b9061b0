/* cliques.c: placement problems in a normal form.
 *
 * Problem: times of a file may be any 64-bit numbers, and most moments say nothing. Only moments
 * matter at which the set of live spans is maximal: if all of one moment are alive at another, too,
 * then whoever keeps the other free of overlaps keeps both.
 *
 * Method: spans in order of their beginnings meet those in order of their ends. A clique is closed
 * when a span ends after one has begun. These are all maximal cliques of the interval graph, in the
 * order of time, and the cliques of a span are neighbours.
 *
 * Invariant: two spans overlap in time if and only if they share a clique.
 *
 * Cost: O(n log n). Spans may have many cliques each, so nothing here walks over those of all. */
#include "place/place.h"

#include <inttypes.h>
#include <stdlib.h>

typedef struct moment { /* of a span: where it begins, or where it ends */
    int64_t time;
    uint32_t span;
} moment;

typedef struct sorted {
    rm_span span;
    uint32_t original;
} sorted;

static int by_time(const void *a, const void *b)
{
    const moment *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    return x->span < y->span ? -1 : x->span > y->span;
}

static remat_status check_span(remat_ctx *ctx, const remat_span *span, size_t i, int64_t *sum)
{
    if (span->bytes < 0)
        return rm_fail(ctx, REMAT_E_INPUT, "span %zu: its size %" PRId64 " is negative", i,
                       span->bytes);
    if (span->end <= span->begin)
        return rm_fail(ctx, REMAT_E_INPUT,
                       "span %zu: it ends at %" PRId64 ", not after it begins at %" PRId64, i,
                       span->end, span->begin);
    if (span->bytes >= RM_MAX_SUM || !rm_add_to_sum(sum, span->bytes))
        return rm_fail(ctx, REMAT_E_INPUT, "span %zu: the sizes sum to 2^62 or more", i);
    return REMAT_OK;
}

/* The beginnings and the ends of all spans that have bytes, each sorted by time. */
static remat_status sort_moments(remat_ctx *ctx, const remat_span *spans, size_t n, moment **begins,
                                 moment **ends, uint32_t *n_kept)
{
    if (n >= REMAT_NONE) return rm_fail(ctx, REMAT_E_INPUT, "%zu spans are too many", n);
    int64_t sum = 0;
    *n_kept = 0;
    TRY(RM_SCRATCH(ctx, *begins, n));
    TRY(RM_SCRATCH(ctx, *ends, n));
    for (size_t i = 0; i < n; i++) {
        TRY(check_span(ctx, &spans[i], i, &sum));
        if (spans[i].bytes == 0) continue;
        (*begins)[*n_kept] = (moment){spans[i].begin, (uint32_t)i};
        (*ends)[(*n_kept)++] = (moment){spans[i].end, (uint32_t)i};
    }
    qsort(*begins, *n_kept, sizeof **begins, by_time);
    qsort(*ends, *n_kept, sizeof **ends, by_time);
    return REMAT_OK;
}

/* Gives every span its cliques. place: by the caller's index, where it is in the normal form. */
static void find_cliques(const remat_span *spans, const moment *begins, const moment *ends,
                         uint32_t *place, rm_cliques *c)
{
    bool grows = false; /* has a span begun since the last clique was closed? */
    uint32_t begun = 0;
    for (uint32_t ended = 0; ended < c->n_spans; ended++) {
        for (; begun < c->n_spans && begins[begun].time < ends[ended].time; begun++) {
            const uint32_t i = begins[begun].span;
            c->spans[begun] = (rm_span){spans[i].bytes, c->n_cliques, 0};
            c->original[begun] = i;
            place[i] = begun;
            grows = true;
        }
        if (grows) c->n_cliques++;
        grows = false;
        c->spans[place[ends[ended].span]].end = c->n_cliques;
    }
    assert(begun == c->n_spans);
}

/* Equal spans become neighbours. */
static int by_clique(const void *a, const void *b)
{
    const sorted *x = a, *y = b;
    if (x->span.begin != y->span.begin) return x->span.begin < y->span.begin ? -1 : 1;
    if (x->span.end != y->span.end) return x->span.end < y->span.end ? -1 : 1;
    if (x->span.bytes != y->span.bytes) return x->span.bytes < y->span.bytes ? -1 : 1;
    return x->original < y->original ? -1 : 1;
}

static remat_status sort_spans(remat_ctx *ctx, rm_cliques *c)
{
    sorted *list;
    TRY(RM_SCRATCH(ctx, list, c->n_spans));
    for (uint32_t i = 0; i < c->n_spans; i++) list[i] = (sorted){c->spans[i], c->original[i]};
    qsort(list, c->n_spans, sizeof *list, by_clique);
    for (uint32_t i = 0; i < c->n_spans; i++) {
        c->spans[i] = list[i].span;
        c->original[i] = list[i].original;
    }
    return REMAT_OK;
}

static void measure(rm_cliques *c)
{
    for (uint32_t i = 0; i < c->n_spans; i++) {
        const rm_span *x = &c->spans[i];
        assert(x->begin < x->end && x->end <= c->n_cliques);
        c->load[x->begin] += x->bytes;
        c->load[x->end] -= x->bytes;
        c->unit = rm_common_divisor(c->unit, x->bytes);
        c->first[x->begin + 1] = i + 1;
    }
    for (uint32_t k = 0; k < c->n_cliques; k++) {
        if (k) c->load[k] += c->load[k - 1];
        if (c->load[k] > c->bound) c->bound = c->load[k];
        if (c->first[k + 1] < c->first[k]) c->first[k + 1] = c->first[k];
    }
}

/* The largest load of each span's cliques, from a table of the largest of 2^level neighbours, one
 * level after the other. */
static remat_status find_busiest(remat_ctx *ctx, rm_cliques *c)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    int64_t *largest;
    TRY(RM_SCRATCH(ctx, largest, c->n_cliques));
    for (uint32_t k = 0; k < c->n_cliques; k++) largest[k] = c->load[k];
    for (uint32_t width = 1; width <= c->n_cliques; width *= 2) {
        for (uint32_t i = 0; i < c->n_spans; i++) {
            const rm_span *s = &c->spans[i];
            const uint32_t length = s->end - s->begin;
            if (length < width || length / 2 >= width) continue;
            const int64_t left = largest[s->begin], right = largest[s->end - width];
            c->busiest[i] = left > right ? left : right;
        }
        for (uint32_t k = 0; k + width < c->n_cliques; k++)
            if (largest[k + width] > largest[k]) largest[k] = largest[k + width];
    }
    rm_scratch_release(ctx, mark);
    return REMAT_OK;
}

remat_status rm_cliques_make(remat_ctx *ctx, const remat_span *spans, size_t n_spans,
                             rm_cliques *out)
{
    moment *begins, *ends;
    uint32_t *place;
    rm_cliques c = {0};
    TRY(sort_moments(ctx, spans, n_spans, &begins, &ends, &c.n_spans));
    TRY(RM_SCRATCH(ctx, place, n_spans));
    TRY(RM_SCRATCH(ctx, c.spans, c.n_spans));
    TRY(RM_SCRATCH(ctx, c.original, c.n_spans));
    find_cliques(spans, begins, ends, place, &c);
    TRY(sort_spans(ctx, &c));
    TRY(RM_SCRATCH(ctx, c.first, (size_t)c.n_cliques + 1));
    TRY(RM_SCRATCH(ctx, c.load, (size_t)c.n_cliques + 1));
    measure(&c);
    TRY(RM_SCRATCH(ctx, c.busiest, c.n_spans));
    TRY(find_busiest(ctx, &c));
    *out = c;
    return REMAT_OK;
}
