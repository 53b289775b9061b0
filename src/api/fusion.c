/* fusion.c: the public side of fusion: a schedule as a graph, the kernels of a graph, and a
 * schedule as a program of kernels. */
#include "api/answer.h"
#include "fusion/unroll.h"
#include "plan/cut/kernel_copies.h"
#include "verify/verify.h"

/* For any schedule that somebody gives us. */
static remat_status unroll(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                           size_t n_steps, rm_unroll_kind kind, remat_graph **out)
{
    remat_verdict verdict;
    remat_step *own;
    TRY(rm_verify(ctx, g, steps, n_steps, 0, &verdict));
    if (!verdict.valid) return rm_fail(ctx, REMAT_E_PLAN, "%s", verdict.reason);
    TRY(rm_steps_to_graph(ctx, g, steps, n_steps, &own));
    return rm_unroll(ctx, g, own, n_steps, kind, out);
}

remat_status remat_unroll(remat_ctx *ctx, const remat_graph *graph, const remat_step *steps,
                          size_t n_steps, remat_graph **out)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    const remat_status status = unroll(ctx, graph, steps, n_steps, RM_UNROLL_STEPS, out);
    rm_scratch_release(ctx, mark);
    return status;
}

static remat_status fuse(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                         size_t n_steps, remat_fusion *fusion, remat_graph **out)
{
    remat_graph *program = NULL;
    remat_fusion report;
    TRY(unroll(ctx, g, steps, n_steps, RM_UNROLL_KERNELS, &program));
    const remat_status status = rm_copy_into_kernels(ctx, &program, &report);
    if (status != REMAT_OK) {
        remat_graph_free(program);
        return status;
    }
    RM_ANSWER(fusion, &report);
    *out = program;
    return REMAT_OK;
}

remat_status remat_fuse(remat_ctx *ctx, const remat_graph *graph, const remat_step *steps,
                        size_t n_steps, remat_fusion *fusion, remat_graph **out)
{
    TRY(rm_answer_check(ctx, fusion->size, "remat_fusion"));
    const rm_mark mark = rm_scratch_mark(ctx);
    rm_limits_begin(ctx, RM_SECOND);
    const remat_status status = fuse(ctx, graph, steps, n_steps, fusion, out);
    rm_scratch_release(ctx, mark);
    rm_limits_end(ctx);
    return status;
}

static remat_status find_kernels(remat_ctx *ctx, const remat_graph *g, uint32_t *kernel,
                                 remat_moved *moved, uint32_t *n_kernels)
{
    rm_trace x;
    rm_kernels kernels;
    rm_kernel_traffic traffic;
    TRY(rm_trace_keep_all(ctx, g, &x));
    TRY(rm_kernels_find(ctx, &x, &kernels));
    TRY(rm_kernel_traffic_of(ctx, &x, &kernels, &traffic));
    for (uint32_t op = 0; op < g->n_ops; op++) kernel[op] = kernels.of[op];
    for (uint32_t k = 0; k < kernels.n; k++)
        moved[k] = rm_kernel_traffic_of_one(&x, &kernels, &traffic, k);
    *n_kernels = kernels.n;
    return REMAT_OK;
}

remat_status remat_graph_kernels(remat_ctx *ctx, const remat_graph *graph, uint32_t *kernel,
                                 remat_moved *moved, uint32_t *n_kernels)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    const remat_status status = find_kernels(ctx, graph, kernel, moved, n_kernels);
    rm_scratch_release(ctx, mark);
    return status;
}
