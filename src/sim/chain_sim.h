/* chain_sim.h: peak and cost of a chain schedule, for planners. */
#ifndef RM_CHAIN_SIM_H
#define RM_CHAIN_SIM_H

#include "graph/chain.h"
#include "graph/schedule.h"

/* The schedule is valid: it is a planner's own. REMAT_E_PLAN if its cost passes 2^62. */
remat_status rm_chain_measure(remat_ctx *ctx, const remat_chain *c, const rm_schedule *steps,
                              int64_t *peak_bytes, int64_t *cost);

#endif
