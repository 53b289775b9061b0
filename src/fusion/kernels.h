/* kernels.h: the steps of a schedule as the kernels that a fusing compiler makes of them. */
#ifndef RM_KERNELS_H
#define RM_KERNELS_H

#include "fusion/trace.h"

typedef struct rm_kernels { /* arrays live in scratch */
    uint32_t n;
    uint32_t *of; /* by step: its kernel */
    uint32_t *begin,
        *steps;     /* members of kernel k: steps[begin[k] .. begin[k + 1]), in schedule order */
    uint8_t *fused; /* by kernel: its members fuse; else it is one step: an op that does not, a view
                       alone, a transfer */
} rm_kernels;

/* Running the kernels in order of their index is valid: each reads only resident values and what
 * kernels before it have made. */
remat_status rm_kernels_find(remat_ctx *ctx, const rm_trace *x, rm_kernels *out);
remat_status rm_kernels_of_steps(remat_ctx *ctx, const rm_trace *x,
                                 rm_kernels *out); /* every step on its own: nothing is fused */

#endif
