/* kernel_copies.h: values computed again inside the kernels that read them. */
#ifndef RM_KERNEL_COPIES_H
#define RM_KERNEL_COPIES_H

#include "fusion/traffic.h"

/* Replaces *graph, which must be the caller's own, by one that moves fewer bytes, where there is
 * one. It has the same ops, some of them repeated. Needs limits (rm_limits_begin). Where they end
 * the search, what was gained so far is kept. */
remat_status rm_copy_into_kernels(remat_ctx *ctx, remat_graph **graph, remat_fusion *fusion);

#endif
