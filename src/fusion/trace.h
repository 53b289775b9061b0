/* trace.h: a schedule with every read resolved. It says which step made what each step reads, and
 * in which storage instance that lies. */
#ifndef RM_TRACE_H
#define RM_TRACE_H

#include "graph/schedule.h"

typedef struct rm_read {
    uint32_t value;
    uint32_t maker;    /* the step that made it, or REMAT_NONE: resident */
    uint32_t instance; /* of its storage; of a resident one: n_made + its root value */
} rm_read;

typedef struct rm_trace { /* arrays live in scratch */
    const remat_graph *g;
    const remat_step *steps;
    uint32_t n_steps, n_made;
    uint32_t backward;    /* the first step of the backward part; n_steps where there is none */
    uint32_t *read_begin; /* by step: it reads reads[read_begin[t] .. read_begin[t + 1]) */
    rm_read *reads;       /* an offload reads what it moves */
    uint32_t *made_begin; /* by step: it makes the instances [made_begin[t] .. made_begin[t + 1]) */
    uint32_t *maker;      /* by instance < n_made: the step */
    uint32_t *root;       /* by instance < n_made: the value that owns the storage */
    uint8_t *delivered;   /* by instance < n_made: it is the first one of a graph output */
} rm_trace;

/* The schedule must be valid, and `steps` outlive the trace. */
remat_status rm_trace_of(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                         size_t n_steps, rm_trace *out);
/* Of every op once, in graph order. */
remat_status rm_trace_keep_all(remat_ctx *ctx, const remat_graph *g, rm_trace *out);

/* The boundary: the op that brings the tangents. It is `remat.boundary`; without one, the first
 * backward op that reads what the last forward op made. If there is no such op either, *found is
 * false, and the answer is the first backward op. REMAT_NONE: a phase is missing. */
uint32_t rm_boundary_op(const remat_graph *g, bool *found);

static inline uint32_t rm_instance_root(const rm_trace *x, uint32_t instance)
{
    return instance < x->n_made ? x->root[instance] : instance - x->n_made;
}

#endif
