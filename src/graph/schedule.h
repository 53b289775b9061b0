/* schedule.h: steps over a graph, and what they mean for memory (liveness.c).
 *
 * Inside the library steps carry the indices of the graph at hand. At the API they carry those of
 * the original graph. */
#ifndef RM_SCHEDULE_H
#define RM_SCHEDULE_H

#include "graph/graph.h"

typedef RM_VEC(remat_step) rm_schedule;

static inline remat_status rm_schedule_run(remat_ctx *ctx, rm_schedule *s, uint32_t op)
{
    const remat_step step = {REMAT_RUN, op};
    return RM_PUSH(ctx, *s, step);
}

/* Values may go to the host and back. */
typedef struct rm_transfers {
    bool allowed;
    int64_t bandwidth; /* bytes per 1e9 cost units; 0: transfers are free */
} rm_transfers;

/* One storage instance. Step `birth` makes it. It is in memory up to and with step `death`, which
 * is n_steps if a graph output keeps it, and last_read - 1 if another instance takes its place. */
typedef struct rm_instance {
    uint32_t root, birth, last_read, death;
    uint32_t takes; /* the instance whose place it takes, or REMAT_NONE: it lies elsewhere */
} rm_instance;

typedef struct rm_liveness { /* arrays live in scratch */
    rm_instance *instances;  /* by birth */
    size_t n_instances;
    int64_t *memory; /* by step: resident + live instances + workspace */
    int64_t peak_bytes, cost;
    uint32_t peak_step; /* the first one at the peak; REMAT_NONE without steps */
} rm_liveness;

/* The schedule must be valid: it is ours, or verify has passed it. REMAT_E_PLAN if its memory or
 * its cost reaches 2^62. bandwidth: as in rm_transfers. */
remat_status rm_liveness_of(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                            size_t n_steps, int64_t bandwidth, rm_liveness *out);
/* Of every op once, in graph order. */
remat_status rm_liveness_keep_all(remat_ctx *ctx, const remat_graph *g, rm_liveness *out);
/* The cost of one offload or fetch. REMAT_E_USAGE if it is 2^62 or more. */
remat_status rm_transfer_cost(remat_ctx *ctx, int64_t bytes, int64_t bandwidth, int64_t *out);
/* The same; 2^62 if it is that or more. */
int64_t rm_transfer_cost_limited(int64_t bytes, int64_t bandwidth);
/* Does it offload or fetch? */
static inline bool rm_has_transfers(const remat_step *steps, size_t n_steps)
{
    for (size_t i = 0; i < n_steps; i++)
        if (steps[i].kind != REMAT_RUN) return true;
    return false;
}

/* Every op once, in graph order: n_ops steps, in scratch. */
remat_status rm_steps_keep_all(remat_ctx *ctx, const remat_graph *g, remat_step **out);
/* From the indices of the original graph to the graph's own, in scratch. REMAT_E_PLAN if prepare
 * dropped an op or a value. */
remat_status rm_steps_to_graph(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                               size_t n_steps, remat_step **out);
/* From the graph's own indices to those of the original graph, in place. */
void rm_steps_to_original(const remat_graph *g, remat_step *steps, size_t n_steps);

#endif
