/* traffic.h: bytes that a program of fused kernels reads from and writes to memory. */
#ifndef RM_TRAFFIC_H
#define RM_TRAFFIC_H

#include "graph/groups.h"

typedef struct rm_moved {
    int64_t read_bytes, written_bytes;
} rm_moved;

typedef struct rm_traffic {
    rm_moved groups; /* by kernels of fused ops */
    rm_moved others; /* by ops that do not fuse, and transfers */
    int64_t total;   /* REMAT_ABSENT: the sum passes 2^62, and the parts mean nothing */
} rm_traffic;

remat_status rm_traffic_of(remat_ctx *ctx, const rm_trace *x, const rm_groups *groups, rm_traffic *out);

/* Of a schedule; REMAT_ABSENT where the graph says nothing of phases or of classes. */
remat_status rm_traffic_bytes(remat_ctx *ctx, const remat_graph *g, const remat_step *steps, size_t n_steps, int64_t *out);

#endif
