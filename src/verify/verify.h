/* verify.h: is this schedule valid, and what does it need? Shares no code with the planners' simulators. */
#ifndef RM_VERIFY_H
#define RM_VERIFY_H

#include "graph/chain.h"
#include "graph/graph.h"

/* Steps carry the original graph's indices. REMAT_OK and a verdict, whatever the steps are; only memory can run out. */
/* bandwidth: of transfers, as the option. */
remat_status rm_verify(remat_ctx *ctx, const remat_graph *g, const remat_step *steps, size_t n_steps, int64_t bandwidth,
                       remat_verdict *out);

/* The same for a chain's schedule; peak_op is the stage. */
remat_status rm_verify_chain(remat_ctx *ctx, const remat_chain *c, const remat_step *steps, size_t n_steps, remat_verdict *out);

/* The schedule breaks a rule at `step` (REMAT_NONE: at no one step). False, to be returned. */
bool rm_blame(remat_verdict *v, uint32_t step, const char *format, ...) RM_PRINTF(3, 4);

#endif
