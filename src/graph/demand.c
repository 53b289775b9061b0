/* demand.c: depth first over what is asked for.
 *
 * The stack is our own, since graphs are as deep as files say. It holds ops whose inputs are being
 * asked for.
 *
 * Invariant: each op on the stack waits for the one above it. So the ops are distinct, and n_ops
 * frames are enough.
 *
 * Cost: O(inputs of the ops that run). */
#include "graph/demand.h"

#include <assert.h>

remat_status rm_demand_begin(remat_ctx *ctx, rm_demand *d, uint32_t n_ops)
{
    d->n_ops = n_ops;
    return RM_SCRATCH(ctx, d->stack, n_ops);
}

remat_status rm_demand_run(const rm_demand *d, uint32_t op)
{
    assert(op < d->n_ops);
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
        if (first == REMAT_NONE) continue;
        assert(depth < d->n_ops);
        d->stack[depth++] = (rm_demand_frame){first, d->in_begin[first]};
    }
    return REMAT_OK;
}
