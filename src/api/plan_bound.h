/* plan_bound.h: the bound of a plan's own order, checked by the verifier. */
#ifndef RM_PLAN_BOUND_H
#define RM_PLAN_BOUND_H

#include "graph/certificate.h"
#include "graph/schedule.h"

typedef struct rm_proof {
    int64_t cost;       /* no plan in this order costs less; at least that of every op once */
    bool feasible;      /* else: no plan in this order fits the budget */
    int64_t need_bytes; /* at the position that needs most */
    uint32_t need_op;   /* of the graph; REMAT_NONE: the end of the step */
    /* Of the graph, largest first: the largest values in memory there, if nothing fits. */
    uint32_t need_values[4], n_need_values;
    unsigned rules;             /* of order_bound.h, that the certificate uses */
    rm_certificate certificate; /* in scratch; scale 0: none */
} rm_proof;

/* For plans that run their ops for the first time in the order of `steps`. This is a valid schedule
 * in the indices of the original graph. transfers: may these plans offload and fetch? */
remat_status rm_certify_bound(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                              size_t n_steps, int64_t budget_bytes, rm_transfers transfers,
                              rm_proof *out);

#endif
