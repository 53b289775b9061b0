/* gaps.h: parts of order_bound.c: how an order of first runs cuts the lives of storages into gaps,
 * and which storages stand in for others. */
#ifndef RM_GAPS_H
#define RM_GAPS_H

#include "base/csr.h"
#include "plan/bound/order_bound.h"

/* When an op runs for the first time: behind `after` positions of the path, or as the last of them;
 * and not later than position `by`, or the number of positions, if the op precedes none. */
typedef struct rm_window {
    uint32_t after, by;
} rm_window;

typedef struct rm_gaps { /* arrays live in scratch */
    const rm_normal *nm;
    const uint32_t *order; /* all ops, each behind those that it reads from */
    /* By position: its op. In a fixed order the positions are `order`, in any order a path. */
    const uint32_t *at;
    uint32_t n;               /* positions */
    const rm_window *windows; /* by op, on a path; NULL in a fixed order */
    /* By storage: the last position that touches it. On a path, also one that a gap of it covers;
     * 0 if there is neither. */
    uint32_t *last_touch;
    uint32_t n_gaps;
    /* By store, then from. What pinned ops made has gaps only if plans may fetch. */
    rm_gap *gaps;
    uint32_t *gap_begin; /* by storage */
    /* By position, the end too: bytes of resident values, of what the op touches (at the end: the
     * outputs), of its workspace, and of what pinned ops made and is used later. What the op may
     * make an output in place of is not counted. */
    int64_t *need;
    int64_t *load; /* by position: bytes of all gaps that cover it */
    /* By storage: its heirs as a holder, on a path. begin is NULL in a fixed order. */
    rm_csr holds;
} rm_gaps;

remat_status rm_gaps_find(remat_ctx *ctx, const rm_normal *nm, const uint32_t *order, bool fetches,
                          rm_gaps *out);

/* The same for every order: positions are ops of which each depends on the one before (path.c). */
remat_status rm_gaps_on_path(remat_ctx *ctx, const rm_normal *nm, int64_t budget_bytes,
                             bool fetches, bool with_holders, rm_gaps *out);

/* What both have in common, for gaps as they are found (gaps.c). */
typedef struct rm_gap_walk {
    remat_ctx *ctx;
    rm_gaps *gs;
    bool fetches;
    RM_VEC(rm_gap) found;
} rm_gap_walk;
/* Arrays for gs->n positions, all 0. */
remat_status rm_gaps_begin(rm_gap_walk *w);
/* The gap takes room at the positions from < t < to. What a pinned op made must be kept there. */
remat_status rm_gaps_add(rm_gap_walk *w, uint32_t store, uint32_t from, uint32_t to, uint32_t due);
/* Counts what the op at position t needs in memory: see `need`. */
void rm_gaps_touch_all(rm_gap_walk *w, uint32_t t);
/* Sums up, and sorts the gaps by storage. Frees `found`, whatever `status` was before. */
remat_status rm_gaps_end(rm_gap_walk *w, remat_status status);

typedef struct rm_stand_ins { /* CSR both ways; arrays live in scratch */
    uint32_t n;
    uint32_t *heir_begin, *heirs;         /* by storage: for whom it stands in */
    uint32_t *stand_in_begin, *stand_ins; /* by storage: who stands in for it */
    uint8_t *rules;                       /* by storage: those that let it stand in */
} rm_stand_ins;

/* The heirs of a storage together are no larger than it. Those that it has as a holder are among
 * them, whatever the rules.
 * rules: REMAT_BOUND_SINGLE | ...; 0: nothing stands in.
 * worth, by storage: the heirs of highest worth are preferred; 0: never an heir.
 * price_before, by position: the sum of the prices before it. */
remat_status rm_stand_ins_find(remat_ctx *ctx, const rm_gaps *gs, unsigned rules,
                               const int64_t *worth, const int64_t *price_before,
                               rm_stand_ins *out);

#endif
