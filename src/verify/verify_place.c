/* verify_place.c: the overlap check, apart from the placer.
 *
 * Method: time goes from left to right. What is alive lies in a list by offset, and no two of it
 * overlap. A span that begins must fit between its neighbours there; one that ends leaves. At one
 * moment, ends come before beginnings, since a span is not needed any more when it ends.
 *
 * Invariant: the list is sorted, and the top of each span in it is not above the offset of the
 * next. So it is enough to look at two neighbours.
 *
 * Cost: O(n log n), and O(n * alive) to move the list. */
#include "verify/verify_place.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct event {
    int64_t time;
    size_t span;
    bool begins;
} event;

typedef struct checker {
    const remat_span *spans;
    const int64_t *offsets;
    size_t *alive; /* spans by offset */
    size_t n_alive;
    char *reason;
} checker;

static int in_time(const void *a, const void *b)
{
    const event *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    if (x->begins != y->begins) return x->begins ? 1 : -1;
    return x->span < y->span ? -1 : x->span > y->span;
}

/* One span alone. Tops stay below 2^63. */
static bool check_alone(checker *x, size_t i, int64_t align, int64_t height)
{
    const remat_span *s = &x->spans[i];
    const int64_t offset = x->offsets[i];
    const char *fault = NULL;
    if (s->bytes < 0 || s->end <= s->begin) fault = "is none";
    else if (offset < 0) fault = "lies below the arena";
    else if (offset % align != 0) fault = "is not aligned";
    else if (offset > height || s->bytes > height - offset) fault = "reaches beyond the height";
    if (!fault) return true;
    snprintf(x->reason, RM_PLACE_REASON, "span %zu, %" PRId64 " bytes at %" PRId64 ", %s", i,
             s->bytes, offset, fault);
    return false;
}

/* Where a span with that offset is in the list, or would be. */
static size_t find(const checker *x, int64_t offset)
{
    size_t low = 0, high = x->n_alive;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (x->offsets[x->alive[middle]] < offset) low = middle + 1;
        else high = middle;
    }
    return low;
}

static bool are_apart(checker *x, size_t lower, size_t upper)
{
    if (x->offsets[lower] + x->spans[lower].bytes <= x->offsets[upper]) return true;
    snprintf(x->reason, RM_PLACE_REASON,
             "span %zu, %" PRId64 " bytes at %" PRId64 ", overlaps span %zu at %" PRId64, lower,
             x->spans[lower].bytes, x->offsets[lower], upper, x->offsets[upper]);
    return false;
}

static bool begin(checker *x, size_t i)
{
    const size_t at = find(x, x->offsets[i]);
    if (at > 0 && !are_apart(x, x->alive[at - 1], i)) return false;
    if (at < x->n_alive && !are_apart(x, i, x->alive[at])) return false;
    memmove(x->alive + at + 1, x->alive + at, (x->n_alive - at) * sizeof *x->alive);
    x->alive[at] = i;
    x->n_alive++;
    return true;
}

static void end(checker *x, size_t i)
{
    const size_t at = find(x, x->offsets[i]);
    assert(at < x->n_alive && x->alive[at] == i);
    memmove(x->alive + at, x->alive + at + 1, (x->n_alive - at - 1) * sizeof *x->alive);
    x->n_alive--;
}

static bool sweep(checker *x, const event *events, size_t n_events)
{
    for (size_t k = 0; k < n_events; k++) {
        if (!events[k].begins) end(x, events[k].span);
        else if (!begin(x, events[k].span)) return false;
    }
    return true;
}

remat_status rm_verify_placement(remat_ctx *ctx, const remat_span *spans, const int64_t *offsets,
                                 size_t n_spans, int64_t align, int64_t height,
                                 char reason[RM_PLACE_REASON])
{
    checker x = {.spans = spans, .offsets = offsets, .reason = reason};
    event *events;
    size_t n_events = 0;
    int64_t top = 0;
    assert(align > 0);
    reason[0] = '\0';
    TRY(RM_SCRATCH(ctx, x.alive, n_spans));
    TRY(RM_SCRATCH(ctx, events, 2 * n_spans));
    for (size_t i = 0; i < n_spans; i++) {
        if (!check_alone(&x, i, align, height)) return REMAT_OK;
        if (offsets[i] + spans[i].bytes > top) top = offsets[i] + spans[i].bytes;
        if (spans[i].bytes == 0) continue; /* overlaps nothing, wherever it is */
        events[n_events++] = (event){spans[i].begin, i, true};
        events[n_events++] = (event){spans[i].end, i, false};
    }
    qsort(events, n_events, sizeof *events, in_time);
    if (!sweep(&x, events, n_events) || top == height) return REMAT_OK;
    snprintf(reason, RM_PLACE_REASON, "the height is %" PRId64 ", not %" PRId64, top, height);
    return REMAT_OK;
}
