/* graph_prepare.c: the public side of prepare.c: the graph that was asked for, made from the graph
 * that was read. */
#include <string.h>

#include "fusion/fused_cost.h"
#include "fusion/inplace.h"
#include "fusion/kernel_ops.h"
#include "graph/graph.h"

/* What needs the names of ops. Costs that a model gave become the file's own, so that written files
 * carry them. */
static remat_status finish(remat_ctx *ctx, unsigned flags, const char *cost_model,
                           remat_graph **graph)
{
    const char *unit = NULL;
    if ((flags & REMAT_FUSE || rm_cost_is_fused(*graph)) && ctx->class_rules)
        return rm_fail(ctx, REMAT_E_USAGE,
                       "class rules decide what fuses, but a plan has no place for them: write "
                       "classes into the file");
    if (flags & REMAT_INPLACE) TRY(rm_declare_inplace(ctx, *graph));
    if (flags & REMAT_FUSE) TRY(rm_kernels_as_ops(ctx, graph));
    TRY(rm_fused_costs(ctx, *graph));
    if (cost_model) TRY(rm_cost_unit(ctx, cost_model, &unit));
    if (unit)
        memcpy((*graph)->given_cost, (*graph)->cost, (*graph)->n_ops * sizeof *(*graph)->cost);
    return REMAT_OK;
}

remat_status remat_graph_prepare(remat_ctx *ctx, const remat_graph *graph, unsigned flags,
                                 const char *cost_model, remat_graph **out)
{
    if (flags & ~(unsigned)(REMAT_DCE | REMAT_FOLD_IDENTITY | REMAT_NO_ALIAS | REMAT_REPLAY_RANDOM |
                            REMAT_FUSE | REMAT_INPLACE))
        return rm_fail(ctx, REMAT_E_USAGE, "unknown flags %#x", flags);
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_graph *made = NULL;
    remat_status status = rm_prepare(ctx, graph, flags, cost_model, &made);
    if (status == REMAT_OK) status = finish(ctx, flags, cost_model, &made);
    if (status == REMAT_OK) *out = made;
    else remat_graph_free(made);
    rm_scratch_release(ctx, mark);
    return status;
}
