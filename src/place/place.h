/* place.h: where in one arena does everything lie? Dynamic storage allocation: spans of bytes that
 * are needed for a while, and offsets such that no two that are needed together overlap.
 *
 * Knows nothing of graphs. docs/algorithms.md, "Placement", says how it works. */
#ifndef RM_PLACE_H
#define RM_PLACE_H

#include "base/base.h"

/* A span by the cliques that it belongs to: begin, begin + 1, .. end - 1 (cliques.c). */
typedef struct rm_span {
    int64_t bytes; /* at least 1 */
    uint32_t begin, end;
} rm_span;

/* The problem in its normal form. Spans are sorted by where they begin. Arrays lie in scratch. */
typedef struct rm_cliques {
    uint32_t n_spans, n_cliques;
    rm_span *spans;
    uint32_t *original; /* by span: the caller's index */
    uint32_t *first;    /* by clique: the first span that begins there; n_cliques + 1 of them */
    int64_t *load;      /* by clique: the bytes of its spans */
    int64_t *busiest;   /* by span: the largest load of its cliques */
    int64_t bound;      /* the largest load: no placement is lower */
    int64_t unit;       /* divides all bytes, so every offset that matters is a multiple of it */
} rm_cliques;

/* Spans of no bytes are left out. REMAT_E_INPUT if bytes are negative, if a span ends before it
 * begins or where it begins, or if all bytes together pass 2^62. */
remat_status rm_cliques_make(remat_ctx *ctx, const remat_span *spans, size_t n_spans,
                             rm_cliques *out);

/* The best placement so far, by span of the normal form. */
typedef struct rm_placed {
    int64_t *offsets;
    int64_t height; /* INT64_MAX: there is none yet */
} rm_placed;

/* first_fit.c: by what spans are ranked, the largest first: the load of the busiest clique, bytes,
 * life times bytes, life. */
enum { RM_SPAN_KEYS = 4 };
double rm_span_key(const rm_cliques *c, uint32_t span, int kind);

/* Fast orders, until one is no higher than `target` or the limit is over. fixed: by span, the
 * offset of what has a place already, or RM_NOT_FIXED; NULL: nothing has. */
#define RM_NOT_FIXED (-1)
remat_status rm_first_fit(remat_ctx *ctx, const rm_cliques *c, const int64_t *fixed, int64_t target,
                          rm_placed *best);

/* skyline.c: looks for a placement no higher than `capacity`. */
typedef enum rm_found { RM_FOUND, RM_IMPOSSIBLE, RM_GAVE_UP } rm_found;
/* *n_runs: restarts so far, 0 at first; a search that gave up goes on with them. *next: after
 * RM_IMPOSSIBLE, no placement is lower than that. */
remat_status rm_skyline_search(remat_ctx *ctx, const rm_cliques *c, int64_t capacity,
                               int64_t *n_runs, rm_placed *best, rm_found *found, int64_t *next);

/* boxes.c: looks for such a placement, from coarse to fine, until it is found or the limit is over.
 * A placement that is lower than the best becomes the best, even if it is higher than that. */
remat_status rm_boxes_search(remat_ctx *ctx, const rm_cliques *c, int64_t capacity,
                             rm_placed *best);

/* With small spans in boxes, rm_eject_search. */
remat_status rm_boxes_eject(remat_ctx *ctx, const rm_cliques *c, int64_t capacity, rm_placed *best);

/* eject.c: makes the best placement, of which there is one, lower and lower, until it is no higher
 * than that or the limit is over. */
remat_status rm_eject_search(remat_ctx *ctx, const rm_cliques *c, int64_t capacity,
                             rm_placed *best);

/* packing.c: all of it. offsets: by the caller's index. A capacity of REMAT_BUDGET_NONE: the lowest
 * placement that is found. Any other: one that fits is enough. */
remat_status rm_pack_spans(remat_ctx *ctx, const remat_span *spans, size_t n_spans,
                           int64_t capacity, int64_t *offsets, remat_packing *out);

#endif
