/* cuts.h: where a training graph's forward pass narrows to one storage. */
#ifndef RM_CUTS_H
#define RM_CUTS_H

#include "graph/graph.h"

typedef struct rm_cut {
    uint32_t storage; /* its root value */
    uint32_t after;   /* the forward op before the cut */
} rm_cut;

typedef struct rm_cuts { /* arrays live in scratch */
    rm_cut *cuts;        /* in forward order; each storage at most once */
    uint32_t n_cuts;
    uint8_t *global; /* by root value: its forward span exceeds a third of the forward ops */
} rm_cuts;

/* Without phases there is no cut: n_cuts is 0. */
remat_status rm_cuts_find(remat_ctx *ctx, const remat_graph *g, rm_cuts *out);

#endif
