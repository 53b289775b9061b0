/* claims.h: the numbers that a plan carries, compared with what the verifier found. */
#ifndef RM_CLAIMS_H
#define RM_CLAIMS_H

#include "graph/plan.h"

/* REMAT_E_BUG unless the verifier agrees with what a strategy says of its plan. Adds to the summary
 * what only the verifier knows. */
remat_status rm_plan_confirm(remat_ctx *ctx, const remat_verdict *v, remat_summary *s);

/* Is the plan of that kind, for the graph or chain with that digest? If not, *out is invalid and
 * says why. If it is, *out says nothing yet. */
bool rm_plan_is_for(const remat_plan *plan, remat_kind kind, const char *digest,
                    remat_verdict *out);
/* Makes the verdict invalid after all: the plan carries a number that is not true. */
void rm_verdict_refuse(remat_verdict *v, const char *what, int64_t says, int64_t is);
/* What the numbers of a plan are compared with, besides what the verifier found. */
typedef struct rm_plan_facts {
    int64_t keep_all_peak_bytes, keep_all_cost, need_bytes;
    bool same_cost_model;  /* else costs cannot be compared */
    const char *cost_unit; /* "": not to be compared */
} rm_plan_facts;
void rm_plan_check_claims(const remat_plan *plan, const rm_plan_facts *facts, remat_verdict *v);

#endif
