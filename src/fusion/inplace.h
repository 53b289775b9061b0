/* inplace.h: which ops could write their output over an input. */
#ifndef RM_INPLACE_H
#define RM_INPLACE_H

#include "graph/graph.h"

/* Lets elementwise ops of the graph work in place (docs/model.md, "In place"), where nothing is
 * said of their output yet. */
remat_status rm_declare_inplace(remat_ctx *ctx, remat_graph *g);

/* The packets of elementwise ops, in order; then NULL. */
const char *rm_elementwise_packet(size_t index);

#endif
