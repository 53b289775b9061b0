/* plan_bound.h: the bound of a plan's own order, or of all orders, checked by the verifier. */
#ifndef RM_PLAN_BOUND_H
#define RM_PLAN_BOUND_H

#include "graph/schedule.h"
#include "verify/verify.h"

typedef struct rm_proof {
    int64_t cost;       /* no plan of the case costs less; at least that of every op once */
    const char *method; /* that proves it: "flow" or "walls" */
    bool feasible;      /* else: no plan of the case fits the budget */
    int64_t need_bytes; /* at the position that needs most */
    uint32_t need_op;   /* of the graph; REMAT_NONE: the end of the step */
    /* Of the graph, largest first: the largest values in memory there, if nothing fits in a fixed
     * order. */
    uint32_t need_values[4], n_need_values;
    unsigned rules;             /* of order_bound.h, that the certificate uses */
    rm_certificate certificate; /* in scratch; scale 0: none */
} rm_proof;

/* What helps, and what nothing depends on. */
typedef struct rm_proof_hints {
    int64_t plan_cost; /* of a plan of the case: no bound is higher; RM_MAX_SUM: none is known */
    const rm_certificate *walls; /* for a similar case; NULL: there is none */
    int64_t walls_work;          /* operations that walls may take */
} rm_proof_hints;

/* For the plans of the case. Its steps, if it has some, are in the indices of the original graph.
 */
remat_status rm_certify_bound(remat_ctx *ctx, const remat_graph *g, const rm_bound_case *question,
                              const rm_proof_hints *hints, rm_proof *out);

#endif
