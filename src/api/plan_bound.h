/* plan_bound.h: the bound of a plan's own order, or of all orders, checked by the verifier. */
#ifndef RM_PLAN_BOUND_H
#define RM_PLAN_BOUND_H

#include "graph/schedule.h"
#include "verify/verify.h"

typedef struct rm_proof {
    int64_t cost;       /* no plan of the case costs less; at least that of every op once */
    bool feasible;      /* else: no plan of the case fits the budget */
    int64_t need_bytes; /* at the position that needs most */
    uint32_t need_op;   /* of the graph; REMAT_NONE: the end of the step */
    /* Of the graph, largest first: the largest values in memory there, if nothing fits in a fixed
     * order. */
    uint32_t need_values[4], n_need_values;
    unsigned rules;             /* of order_bound.h, that the certificate uses */
    rm_certificate certificate; /* in scratch; scale 0: none */
} rm_proof;

/* For the plans of the case. Its steps, if it has some, are in the indices of the original graph.
 */
remat_status rm_certify_bound(remat_ctx *ctx, const remat_graph *g, const rm_bound_case *question,
                              rm_proof *out);

#endif
