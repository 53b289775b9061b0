/* gaps.h: parts of order_bound.c: how an order of first runs cuts the lives of storages into gaps,
 * and which storages stand in for others. */
#ifndef RM_GAPS_H
#define RM_GAPS_H

#include "plan/bound/order_bound.h"

typedef struct rm_gaps { /* arrays live in scratch */
    const rm_normal *nm;
    const uint32_t *order;
    uint32_t *position;   /* by op */
    uint32_t *last_touch; /* by storage: the position that touches it last */
    uint32_t n_gaps;
    /* By store, then from. What pinned ops made has gaps only if plans may fetch. */
    rm_gap *gaps;
    uint32_t *gap_begin; /* by storage */
    /* By position, the end too: bytes of resident values, of what the op touches (at the end: the
     * outputs), of its workspace, and of what pinned ops made and is used later. */
    int64_t *need;
    int64_t *load; /* by position: bytes of all gaps that cover it */
} rm_gaps;

remat_status rm_gaps_find(remat_ctx *ctx, const rm_normal *nm, const uint32_t *order, bool fetches,
                          rm_gaps *out);

typedef struct rm_stand_ins { /* CSR both ways; arrays live in scratch */
    uint32_t n;
    uint32_t *heir_begin, *heirs;         /* by storage: for whom it stands in */
    uint32_t *stand_in_begin, *stand_ins; /* by storage: who stands in for it */
    uint8_t *rules;                       /* by storage: those that let it stand in */
} rm_stand_ins;

/* The heirs of a storage together are no larger than it.
 * rules: REMAT_BOUND_SINGLE | ...; 0: nothing stands in.
 * worth, by storage: the heirs of highest worth are preferred; 0: never an heir.
 * price_before, by position: the sum of the prices before it. */
remat_status rm_stand_ins_find(remat_ctx *ctx, const rm_gaps *gs, unsigned rules,
                               const int64_t *worth, const int64_t *price_before,
                               rm_stand_ins *out);

#endif
