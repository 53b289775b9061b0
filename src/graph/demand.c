/* demand.c: depth first over what is asked for, with a stack of our own: graphs are as deep as
 * files say.
 *
 * The stack holds ops whose inputs are being seen to. Each waits for the one above it, so they are
 * distinct ancestors of each other and n_ops frames are enough. O(inputs of the ops that run). */
#include "graph/demand.h"

remat_status rm_demand_begin(remat_ctx *ctx, rm_demand *d, uint32_t n_ops)
{
    return RM_SCRATCH(ctx, d->stack, (size_t)n_ops + 1);
}

remat_status rm_demand_run(const rm_demand *d, uint32_t op)
{
    uint32_t depth = 0;
    d->stack[depth++] = (rm_demand_frame){op, d->in_begin[op]};
    while (depth) {
        rm_demand_frame *top = &d->stack[depth - 1];
        if (top->next_input == d->in_begin[top->op + 1]) {
            TRY(d->run(d->user, top->op));
            depth--;
            continue;
        }
        const uint32_t first = d->ask(d->user, d->in[top->next_input++]);
        if (first != REMAT_NONE) d->stack[depth++] = (rm_demand_frame){first, d->in_begin[first]};
    }
    return REMAT_OK;
}
