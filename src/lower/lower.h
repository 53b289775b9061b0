/* lower.h: from a schedule to allocate, compute and deallocate statements. */
#ifndef RM_LOWER_H
#define RM_LOWER_H

#include "graph/schedule.h"

/* Steps carry the indices of the original graph. The schedule is valid. */
remat_status rm_lower(remat_ctx *ctx, const remat_graph *g, const remat_step *steps, size_t n_steps,
                      remat_program **out);

#endif
