/* plan_bound.h: the bound of a plan's own order, with the verifier's word on it. */
#ifndef RM_PLAN_BOUND_H
#define RM_PLAN_BOUND_H

#include "graph/certificate.h"
#include "graph/schedule.h"

typedef struct rm_proof {
    int64_t cost;  /* no plan in this order costs less; of running every op once if nothing more is
                      proved */
    bool feasible; /* else: no plan in this order fits the budget */
    int64_t need_bytes; /* at the position that needs most */
    uint32_t need_op;   /* of the graph; REMAT_NONE without ops */
    uint32_t need_values[4],
        n_need_values;          /* of the graph: the largest in memory there, if nothing fits */
    unsigned rules;             /* of order_bound.h, that the certificate uses */
    rm_certificate certificate; /* in scratch; scale 0: none */
} rm_proof;

/* For the first runs of `steps`, a valid schedule in the original's indices, among plans that may
 * offload and fetch, or may not. */
remat_status rm_prove_bound(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                            size_t n_steps, int64_t budget_bytes, rm_transfers transfers,
                            rm_proof *out);

#endif
