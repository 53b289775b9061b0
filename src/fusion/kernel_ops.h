/* kernel_ops.h: a graph whose ops are kernels. */
#ifndef RM_KERNEL_OPS_H
#define RM_KERNEL_OPS_H

#include "graph/graph.h"

/* Replaces *graph, which the caller has prepared, by one in which every kernel of several ops is
 * one op. */
remat_status rm_kernels_as_ops(remat_ctx *ctx, remat_graph **graph);

#endif
