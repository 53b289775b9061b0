/* maxflow.h: maximum flow and minimum cut between two vertices. */
#ifndef RM_MAXFLOW_H
#define RM_MAXFLOW_H

#include "base/base.h"

#define RM_FLOW_INFINITE INT64_MAX /* as a capacity: more than all finite ones together */

typedef struct rm_flow_edge {
    uint32_t from, to;
    int64_t capacity; /* >= 0, or RM_FLOW_INFINITE */
} rm_flow_edge;

/* Edges may be parallel. Loops, edges into the source and edges out of the sink carry nothing. */
typedef struct rm_flow_network {
    uint32_t n_vertices, source, sink; /* source != sink */
    const rm_flow_edge *edges;
    size_t n_edges;
} rm_flow_network;

/* Both sides are unique, so the answer does not depend on how the flow was found. */
typedef enum rm_flow_side {
    RM_LATEST_CUT,  /* nearest the sink: the sink's side is what still reaches the sink */
    RM_EARLIEST_CUT /* nearest the source: the source's side is what the source still reaches */
} rm_flow_side;

/* `source_side` becomes 1 or 0, by vertex. Two values are special:
 * - RM_FLOW_INFINITE: every cut has an infinite edge.
 * - REMAT_ABSENT: the limits of the context ended it early (base/limits.h). `source_side` says
 *   nothing then. Work is counted in arcs scanned.
 * REMAT_E_INPUT: the finite capacities sum to 2^62 or more, or there are 2^31 edges or more. */
remat_status rm_maxflow(remat_ctx *ctx, const rm_flow_network *network, rm_flow_side side,
                        int64_t *value, uint8_t *source_side);

#endif
