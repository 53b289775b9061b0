/* op_class.h: is an op compute-bound, fusible, a view, random or other? */
#ifndef RM_OP_CLASS_H
#define RM_OP_CLASS_H

#include "graph/graph.h"

/* The class in effect: what remat_ctx_class said; else the file's; where that is `other`, the
 * table's. A class never decides memory: an op whose outputs are all aliases is a view, whatever
 * anybody says. */
remat_class rm_op_class(const remat_ctx *ctx, const remat_graph *g, uint32_t op);

/* Can it be computed inside a fused kernel, so that its inputs and outputs need not be written? */
static inline bool rm_is_fusible_class(remat_class c)
{
    return c == REMAT_CLASS_FUSIBLE || c == REMAT_CLASS_VIEW || c == REMAT_CLASS_RANDOM;
}

/* "aten.add.Tensor": the length of "aten.add". */
size_t rm_packet_length(const char *target);
/* The packets that are known by name, in order; then NULL. */
const char *rm_known_packet(size_t index);

#endif
