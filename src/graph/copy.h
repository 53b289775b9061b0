/* copy.h: writes values and ops of a graph into a builder, for prepare, unrolling and fusion. */
#ifndef RM_COPY_H
#define RM_COPY_H

#include "graph/graph.h"

/* Both answer the index in the builder. `original` indices are kept if the builder has an original
 * graph. The alias of a value is not copied: the caller sets it. */
uint32_t rm_copy_value(remat_builder *b, const remat_graph *g, uint32_t value, const char *name);
/* `list`: the inputs and then the outputs, in the builder's indices, as many as the op has. */
uint32_t rm_copy_op(remat_builder *b, const remat_graph *g, uint32_t op, const char *name,
                    const uint32_t *list);
/* Says of the copied op what may work in place, where that is as it was. */
void rm_copy_inplace(remat_builder *b, const remat_graph *g, uint32_t op, uint32_t copied);

#endif
