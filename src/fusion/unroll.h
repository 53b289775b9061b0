/* unroll.h: a new graph from the ops of an old one, some of them repeated. */
#ifndef RM_UNROLL_H
#define RM_UNROLL_H

#include "fusion/trace.h"

/* Writes ops of a graph, one after the other, into a builder. An op that is written again gets new
 * outputs. */
typedef struct rm_unroller { /* arrays live in scratch */
    const remat_graph *g;
    remat_builder *to;
    /* By value: the newest value of the new graph that stands for it, or REMAT_NONE. Callers may
     * set it to redirect reads. */
    uint32_t *now;
    uint8_t *written;   /* by op: it has been, once or more */
    uint32_t *delivers; /* by value: what stands for a graph output: its first instance */
    uint32_t *list;     /* room for one op's inputs and outputs */
} rm_unroller;

/* Release `to` with remat_builder_free, whatever the status. */
remat_status rm_unroll_begin(remat_ctx *ctx, const remat_graph *g, rm_unroller *out);
remat_status rm_unroll_op(rm_unroller *u, uint32_t op, uint8_t phase, uint32_t kernel);
/* Costs are as in the old graph. */
remat_status rm_unroll_end(remat_ctx *ctx, rm_unroller *u, remat_graph **out);

/* RM_UNROLL_KERNELS: each node is marked with the kernel that fusion finds for it. An output is the
 * first instance, which a forward pass hands out.
 * RM_UNROLL_STEPS: there are no marks. An output is the newest instance, as in the memory model. So
 * keep-all of the new graph has the schedule's peak. */
typedef enum rm_unroll_kind { RM_UNROLL_KERNELS, RM_UNROLL_STEPS } rm_unroll_kind;

/* The schedule as a graph: every step is a node, in the order of the schedule. Forward ops that run
 * in the backward part are of the backward phase. REMAT_E_APPLIES: it has transfers. */
remat_status rm_unroll(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                       size_t n_steps, rm_unroll_kind kind, remat_graph **out);

#endif
