/* traffic.h: bytes that a program of fused kernels reads from and writes to memory. */
#ifndef RM_TRAFFIC_H
#define RM_TRAFFIC_H

#include "fusion/kernels.h"

typedef struct rm_kernel_read {
    uint32_t instance;
    int64_t bytes;
} rm_kernel_read;

typedef struct rm_kernel_traffic { /* arrays live in scratch */
    remat_moved kernels;           /* by kernels of fused ops */
    remat_moved others;            /* by ops that do not fuse, and transfers */
    int64_t total;         /* REMAT_ABSENT: the sum reaches 2^62; the two above mean nothing */
    uint32_t *begin;       /* by kernel */
    rm_kernel_read *reads; /* of kernel k: [begin[k] .. begin[k + 1]), each instance once */
    uint32_t *n_readers;   /* by instance < n_made: kernels that read it, not counting its maker */
} rm_kernel_traffic;

/* Bytes that move when a storage is written: those of the value that owns it. */
static inline int64_t rm_written_bytes(const remat_graph *g, uint32_t root)
{
    return g->size[root] < g->storage[root] ? g->size[root] : g->storage[root];
}

/* A view, or an op without outputs that only checks something. */
bool rm_moves_nothing(const rm_trace *x, uint32_t t);

remat_status rm_kernel_traffic_of(remat_ctx *ctx, const rm_trace *x, const rm_kernels *kernels,
                                  rm_kernel_traffic *out);

/* What one kernel moves, in a graph's own order. */
remat_moved rm_kernel_traffic_of_one(const rm_trace *x, const rm_kernels *kernels,
                                     const rm_kernel_traffic *traffic, uint32_t kernel);

/* What a schedule moves. REMAT_ABSENT: the graph says nothing of phases or of classes. */
remat_status rm_traffic_bytes(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                              size_t n_steps, int64_t *out);

#endif
