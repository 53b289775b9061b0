/* fused_cost.h: what ops cost behind a compiler that fuses. */
#ifndef RM_FUSED_COST_H
#define RM_FUSED_COST_H

#include "graph/graph.h"

/* Where the cost model of the graph is "fused:DEVICE" and its ops are not kernels: the costs of ops
 * that fuse. They have a roofline's until then. REMAT_E_INPUT: the costs pass 2^62. */
remat_status rm_fused_costs(remat_ctx *ctx, remat_graph *g);

#endif
