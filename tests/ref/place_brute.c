/* place_brute.c: the least height of any placement of a few spans.
 *
 * Take any placement, and the spans in the order of their offsets. Put each onto the highest of
 * those before it that it meets in time. None comes to lie higher than it was. So the least height
 * over all orders of stacking spans up is the least of all. What is needed at one time is a lower
 * limit, so there the search may end. Cost: n! n. */
#include "place_brute.h"

typedef struct stack {
    const remat_span *spans;
    size_t n;
    int64_t top[PLACE_BRUTE_MOST]; /* by span; -1: not placed */
    int64_t best, load;
} stack;

/* The most that is needed at one time; some span begins then. */
static int64_t largest_load(const remat_span *spans, size_t n)
{
    int64_t largest = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t load = 0;
        for (size_t k = 0; k < n; k++)
            if (spans[k].begin <= spans[i].begin && spans[i].begin < spans[k].end)
                load += spans[k].bytes;
        if (load > largest) largest = load;
    }
    return largest;
}

static void place_rest(stack *s, size_t n_left, int64_t height)
{
    if (height >= s->best || s->best == s->load) return;
    if (n_left == 0) s->best = height;
    for (size_t i = 0; i < s->n && n_left; i++) {
        if (s->top[i] >= 0) continue;
        int64_t below = 0;
        for (size_t k = 0; k < s->n; k++)
            if (s->top[k] > below && s->spans[k].begin < s->spans[i].end &&
                s->spans[i].begin < s->spans[k].end)
                below = s->top[k];
        s->top[i] = below + s->spans[i].bytes;
        place_rest(s, n_left - 1, s->top[i] > height ? s->top[i] : height);
        s->top[i] = -1;
    }
}

int64_t place_brute(const remat_span *spans, size_t n_spans)
{
    stack s = {
        .spans = spans, .n = n_spans, .best = INT64_MAX, .load = largest_load(spans, n_spans)};
    for (size_t i = 0; i < n_spans; i++) s.top[i] = -1;
    place_rest(&s, n_spans, 0);
    return s.best;
}
