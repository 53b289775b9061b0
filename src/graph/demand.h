/* demand.h: run an op, after whatever has to run first for what it reads. */
#ifndef RM_DEMAND_H
#define RM_DEMAND_H

#include "base/base.h"

typedef struct rm_demand_frame {
    uint32_t op, next_input;
} rm_demand_frame;

/* Who runs what.
 * - `ask` is called for each input in turn. It names the op that has to run before the input can be
 *   read, or REMAT_NONE. Asking may change what later answers are.
 * - `run` is called for an op when all its inputs have been asked for. */
typedef struct rm_demand {
    const uint32_t *in_begin, *in; /* by op: what it reads */
    uint32_t (*ask)(void *user, uint32_t input);
    remat_status (*run)(void *user, uint32_t op);
    void *user;
    rm_demand_frame *stack; /* rm_demand_begin makes it, in scratch */
    uint32_t n_ops;
} rm_demand;

remat_status rm_demand_begin(remat_ctx *ctx, rm_demand *d, uint32_t n_ops);
remat_status rm_demand_run(const rm_demand *d, uint32_t op);

#endif
