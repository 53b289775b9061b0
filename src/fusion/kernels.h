/* kernels.h: the steps of a schedule as the kernels that a fusing compiler makes of them. */
#ifndef RM_KERNELS_H
#define RM_KERNELS_H

#include "fusion/trace.h"

typedef struct rm_kernels { /* arrays live in scratch */
    uint32_t n;
    uint32_t *of;            /* by step: its kernel */
    uint32_t *begin, *steps; /* by kernel: its steps, in schedule order */
    /* By kernel: its members fuse. Else it is one step: an op that does not fuse, a view that
     * stands alone, or a transfer. */
    uint8_t *fused;
} rm_kernels;

/* To run the kernels in the order of their indices is valid: each reads resident values and what
 * kernels before it have made, nothing else. */
remat_status rm_kernels_find(remat_ctx *ctx, const rm_trace *x, rm_kernels *out);
/* Every step on its own: nothing is fused. */
remat_status rm_kernels_of_steps(remat_ctx *ctx, const rm_trace *x, rm_kernels *out);

#endif
