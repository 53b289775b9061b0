/* maxflow.h: maximum flow and minimum cut between two vertices. */
#ifndef RM_MAXFLOW_H
#define RM_MAXFLOW_H

#include "base/base.h"

#define RM_FLOW_INFINITE INT64_MAX /* as a capacity: more than all finite ones together */

typedef struct rm_flow_edge {
    uint32_t from, to;
    int64_t capacity; /* >= 0, or RM_FLOW_INFINITE */
} rm_flow_edge;

typedef struct rm_flow_network { /* edges may be parallel; loops, edges into the source and out of
                                    the sink carry nothing */
    uint32_t n_vertices, source, sink; /* source != sink */
    const rm_flow_edge *edges;
    size_t n_edges;
} rm_flow_network;

/* Both sides are unique, so the answer does not depend on how the flow was found. */
typedef enum rm_flow_side {
    RM_LATEST_CUT,  /* nearest the sink: the sink's side is what still reaches the sink */
    RM_EARLIEST_CUT /* nearest the source: the source's side is what the source still reaches */
} rm_flow_side;

/* `source_side` (by vertex) becomes 1 or 0. *value is RM_FLOW_INFINITE if every cut holds an
 * infinite edge, and REMAT_ABSENT if the limits of the context (rm_limits_begin; work is arcs
 * scanned) ended it early: source_side says nothing then. REMAT_E_INPUT: finite capacities sum to
 * 2^62 or more. */
remat_status rm_maxflow(remat_ctx *ctx, const rm_flow_network *network, rm_flow_side side,
                        int64_t *value, uint8_t *source_side);

#endif
