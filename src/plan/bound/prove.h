/* prove.h: the cheapest plan within a budget whose ops run for the first time in a given order, and
 * the proof that none is cheaper. */
#ifndef RM_PROVE_H
#define RM_PROVE_H

#include "graph/normal.h"

typedef struct rm_proved {
    int64_t bound; /* at most `below`: no plan in this order costs less */
    int64_t cost;  /* of the plan that was found, or INT64_MAX: none */
    bool full;     /* stopped for lack of memory */
} rm_proved;

typedef struct rm_proof_goal {
    int64_t budget_bytes;
    const uint32_t *order; /* of first runs, by op of the normal graph; NULL: its own */
    int64_t below;         /* plans that cost this much or more are not looked for */
    int64_t peak_bytes;    /* of the plan that costs it, for progress */
    const char *strategy;  /* who asks, for progress */
    /* Only plans with one instance of a storage at a time (any_order.c, "Views"; rm_prove does not
     * look at it). The bound is for those. */
    bool one_instance;
} rm_proof_goal;

/* Stops early when a limit is reached, with the bound so far. `found` is replaced. It is empty if
 * no plan costs less than `below`, or if none was found yet. It may need more memory than it seems
 * (any_order.c, "Views"): whoever wants it must measure it. Views that cost nothing may run
 * anywhere (docs/bound.md). */
remat_status rm_prove(remat_ctx *ctx, const rm_normal *nm, const rm_proof_goal *goal,
                      rm_codes *found, rm_proved *out);

#endif
