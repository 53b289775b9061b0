/* packing.c: a placement, and how good it is.
 *
 * Method: fast orders first. If they do not reach the goal (the capacity, or without one the
 * bound), boxes.c and then skyline.c look for a placement at the goal. If it proves that there is
 * none, the bound rises to the next height that is possible, and without a capacity that is the new
 * goal. If it gives up, and there is no capacity, the heights between the goal and the best
 * placement are halved. What work is then left goes into the goal again, where the search goes on
 * with its restarts. Then ejections make the best placement lower (eject.c).
 *
 * Invariants: there is always a placement, whatever the limits; its height is never below the
 * bound; the bound is proved.
 *
 * Cost: the work limit decides. With a capacity one search has all of it. Else ejections have half
 * of it, and of the other half each search half of what is left, the last one all. */
#include "place/place.h"

#include <string.h>

typedef struct placing {
    remat_ctx *ctx;
    rm_cliques c;
    int64_t capacity; /* or REMAT_BUDGET_NONE */
    int64_t bound;    /* proved */
    rm_placed best;
    int64_t n_runs;        /* of the search, at the goal */
    remat_stopped stopped; /* why the last search that gave up did so */
} placing;

static int64_t goal_of(const placing *p)
{
    return p->capacity == REMAT_BUDGET_NONE || p->capacity < p->bound ? p->bound : p->capacity;
}

/* Is nothing left to find? A capacity below the bound cannot be met. */
static bool is_done(const placing *p)
{
    const bool hopeless = p->capacity != REMAT_BUDGET_NONE && p->capacity < p->bound;
    return hopeless || p->best.height <= goal_of(p);
}

/* From coarse to fine, with most of the work. Then with all spans at once, which may prove. */
static remat_status look_for(placing *p, int64_t height, int64_t *n_runs, rm_found *found,
                             int64_t *next)
{
    if (*n_runs == 0) {
        rm_limit_push(p->ctx, 0.75, RM_NO_LIMIT);
        const remat_status status = rm_boxes_search(p->ctx, &p->c, height, &p->best);
        rm_limit_pop(p->ctx);
        TRY(status);
    }
    *found = RM_FOUND;
    if (p->best.height <= height) return REMAT_OK;
    return rm_skyline_search(p->ctx, &p->c, height, n_runs, &p->best, found, next);
}

/* With so much of the work that is left. n_runs: as rm_skyline_search wants it. */
static remat_status search_at(placing *p, int64_t height, double share, int64_t *n_runs,
                              rm_found *found)
{
    int64_t next;
    rm_limit_push(p->ctx, share, RM_NO_LIMIT);
    const remat_status status = look_for(p, height, n_runs, found, &next);
    if (status == REMAT_OK && *found == RM_GAVE_UP) p->stopped = rm_stopped(p->ctx);
    rm_limit_pop(p->ctx);
    if (status == REMAT_OK && *found == RM_IMPOSSIBLE && next > p->bound) p->bound = next;
    return status;
}

/* Goes on where it gave up before. A goal that is impossible becomes the next. */
static remat_status search_at_goal(placing *p, double share)
{
    rm_found found = RM_IMPOSSIBLE;
    while (found == RM_IMPOSSIBLE && !is_done(p) && !rm_is_over(p->ctx)) {
        TRY(search_at(p, goal_of(p), share, &p->n_runs, &found));
        if (found == RM_IMPOSSIBLE) p->n_runs = 0;
    }
    return REMAT_OK;
}

/* Halves what is between a height that was given up and the best one. */
static remat_status halve(placing *p)
{
    const int64_t unit = p->c.unit;
    int64_t low = goal_of(p);
    while (!is_done(p) && p->best.height - low > unit && !rm_is_over(p->ctx)) {
        const int64_t middle = low + (p->best.height - low) / unit / 2 * unit;
        int64_t n_runs = 0;
        rm_found found;
        TRY(search_at(p, middle, 0.5, &n_runs, &found));
        if (found != RM_FOUND) low = middle;
        if (p->bound > low) low = p->bound;
    }
    return REMAT_OK;
}

static remat_status find_lowest(placing *p)
{
    TRY(search_at_goal(p, 0.5));
    TRY(halve(p));
    return search_at_goal(p, 1);
}

static remat_status find_placement(placing *p)
{
    TRY(rm_first_fit(p->ctx, &p->c, NULL, goal_of(p), &p->best));
    if (p->capacity != REMAT_BUDGET_NONE) return search_at_goal(p, 1);
    rm_limit_push(p->ctx, 0.5, RM_NO_LIMIT);
    const remat_status status = find_lowest(p);
    rm_limit_pop(p->ctx);
    TRY(status);
    return is_done(p) ? REMAT_OK : rm_boxes_eject(p->ctx, &p->c, goal_of(p), &p->best);
}

static remat_outcome outcome_of(const placing *p)
{
    if (p->capacity != REMAT_BUDGET_NONE && p->capacity < p->bound) return REMAT_INFEASIBLE;
    if (p->best.height == p->bound) return REMAT_OPTIMAL;
    return p->capacity == REMAT_BUDGET_NONE || p->best.height <= p->capacity ? REMAT_FEASIBLE
                                                                             : REMAT_UNKNOWN;
}

remat_status rm_pack_spans(remat_ctx *ctx, const remat_span *spans, size_t n_spans,
                           int64_t capacity, int64_t *offsets, remat_packing *out)
{
    placing p = {.ctx = ctx, .capacity = capacity, .best = {.height = INT64_MAX}};
    TRY(rm_cliques_make(ctx, spans, n_spans, &p.c));
    TRY(RM_SCRATCH(ctx, p.best.offsets, p.c.n_spans));
    p.bound = p.c.bound;
    TRY(find_placement(&p));
    assert(p.best.height >= p.bound);
    memset(offsets, 0, n_spans * sizeof *offsets);
    for (uint32_t i = 0; i < p.c.n_spans; i++) offsets[p.c.original[i]] = p.best.offsets[i];
    const remat_outcome outcome = outcome_of(&p);
    const remat_stopped stopped = rm_is_over(ctx) ? rm_stopped(ctx) : p.stopped;
    *out = (remat_packing){.size = sizeof *out,
                           .height_bytes = p.best.height,
                           .bound_bytes = p.bound,
                           .load_bytes = p.c.bound,
                           .outcome = outcome,
                           .stopped = is_done(&p) ? REMAT_DONE : stopped,
                           .work = rm_work_units(ctx)};
    return REMAT_OK;
}
