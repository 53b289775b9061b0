/* verify.h: is this schedule valid, and what does it need? Shares no code with the planners'
 * simulators. */
#ifndef RM_VERIFY_H
#define RM_VERIFY_H

#include "graph/certificate.h"
#include "graph/chain.h"
#include "graph/graph.h"

/* Steps carry the original graph's indices. REMAT_OK and a verdict, whatever the steps are; only
 * memory can run out. */
/* bandwidth: of transfers, as the option. */
remat_status rm_verify(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                       size_t n_steps, int64_t bandwidth, remat_verdict *out);

/* The same for a chain's schedule; peak_op is the stage. */
remat_status rm_verify_chain(remat_ctx *ctx, const remat_chain *c, const remat_step *steps,
                             size_t n_steps, remat_verdict *out);

/* What the certificate proves of every schedule within the budget that runs its ops for the first
 * time in the order of `steps`, which must be valid. With `fetches` schedules may offload and
 * fetch. A certificate without prices proves what running every op once costs. If it breaks a rule
 * the verdict is invalid, says why, and *cost is untouched. */
remat_status rm_verify_bound(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                             size_t n_steps, int64_t budget_bytes, bool fetches, int64_t bandwidth,
                             const rm_certificate *certificate, int64_t *cost, remat_verdict *out);

/* The schedule breaks a rule at `step` (REMAT_NONE: at no one step). False, to be returned. */
bool rm_blame(remat_verdict *v, uint32_t step, const char *format, ...) RM_PRINTF(3, 4);

#endif
