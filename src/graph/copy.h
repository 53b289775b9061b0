/* copy.h: values and ops of a graph, written into a builder: what prepare, unrolling and fusion
 * share. */
#ifndef RM_COPY_H
#define RM_COPY_H

#include "graph/graph.h"

/* Answers the index in the builder. `original` indices are kept if the builder has an original. The
 * alias is not copied: it is the caller's to set. */
uint32_t rm_copy_value(remat_builder *b, const remat_graph *g, uint32_t value, const char *name);
/* `list`: the inputs, then the outputs, in the builder's indices, as many as the op has. */
uint32_t rm_copy_op(remat_builder *b, const remat_graph *g, uint32_t op, const char *name,
                    const uint32_t *list);

#endif
