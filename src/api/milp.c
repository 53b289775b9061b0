/* milp.c: the public side of Checkmate's program. It is written for other solvers, and their
 * solutions are read as plans.
 *
 * A solution is only a claim. What it runs must be an order of the graph's ops in which every input
 * has been made before, and pinned ops run once and in order. Then it is measured and verified like
 * the schedule of any strategy. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "api/answer.h"
#include "api/plan_make.h"
#include "api/source.h"
#include "milp/backend.h"
#include "plan/checkmate/checkmate_model.h"
#include "plan/checkmate/checkmate_start.h"

remat_status remat_solver_find(remat_ctx *ctx, remat_solver *out)
{
    rm_backend backend;
    remat_solver found = REMAT_SOLVER_INIT;
    TRY(rm_answer_check(ctx, out->size, "remat_solver"));
    TRY(rm_backend_open(ctx, &backend));
    snprintf(found.version, sizeof found.version, "%s", backend.version);
    snprintf(found.where, sizeof found.where, "%s", backend.path);
    rm_backend_close(ctx, &backend);
    RM_ANSWER(out, &found);
    return REMAT_OK;
}

static rm_checkmate program_of(const remat_ctx *ctx, const rm_normal *nm, int64_t budget_bytes)
{
    return (rm_checkmate){.nm = nm,
                          .budget_bytes = budget_bytes,
                          .splits = (uint32_t)ctx->options.checkmate_splits,
                          .any_order = ctx->options.checkmate_order,
                          .plain = ctx->options.checkmate_plain,
                          .most_extra = INT64_MAX};
}

static remat_status write_program(remat_ctx *ctx, const remat_graph *graph, int64_t budget_bytes,
                                  remat_sink *sink, void *user)
{
    rm_normal nm;
    TRY(rm_normal_of(ctx, graph, &nm));
    rm_checkmate program = program_of(ctx, &nm, budget_bytes);
    remat_status status = rm_checkmate_build(ctx, &program);
    if (status == REMAT_OK)
        status = rm_model_write_mps(ctx, &program.model, graph->text + graph->name, sink, user);
    rm_checkmate_free(ctx, &program);
    return status;
}

remat_status remat_milp_write(remat_ctx *ctx, const remat_graph *graph, int64_t budget_bytes,
                              remat_sink *sink, void *user)
{
    if (budget_bytes < graph->resident_bytes)
        return rm_fail(
            ctx, REMAT_E_USAGE,
            "the program needs a budget in bytes, and no less than the resident %" PRId64,
            graph->resident_bytes);
    const rm_mark mark = rm_scratch_mark(ctx);
    const remat_status status = write_program(ctx, graph, budget_bytes, sink, user);
    rm_scratch_release(ctx, mark);
    return status;
}

/* ---- and back ---- */

static remat_status check_order(remat_ctx *ctx, const rm_normal *nm, const rm_codes *codes)
{
    uint32_t op;
    const char *fault;
    TRY(rm_codes_fault(ctx, nm, codes, &op, &fault));
    if (!fault) return REMAT_OK;
    return rm_fail(ctx, REMAT_E_INPUT, "is no schedule: op %" PRIu32 " '%.60s' %s", nm->op[op],
                   nm->g->text + nm->g->op_name[nm->op[op]], fault);
}

static remat_status read_codes(remat_ctx *ctx, const rm_normal *nm, int64_t budget_bytes,
                               const rm_bytes *bytes, rm_codes *codes)
{
    double *values;
    rm_checkmate program = program_of(ctx, nm, budget_bytes);
    remat_status status = rm_checkmate_build(ctx, &program);
    if (status == REMAT_OK) status = RM_SCRATCH(ctx, values, program.model.columns.n);
    if (status == REMAT_OK)
        status = rm_model_read_solution(ctx, &program.model, (const char *)bytes->items, bytes->n,
                                        values);
    if (status == REMAT_OK) status = rm_checkmate_codes(ctx, &program, values, codes);
    rm_checkmate_free(ctx, &program);
    return status == REMAT_OK ? check_order(ctx, nm, codes) : status;
}

static remat_status plan_of(const rm_problem *p, const char *source, rm_bytes *bytes,
                            rm_codes *codes, rm_incumbent *best, remat_plan **out)
{
    remat_ctx *ctx = p->ctx;
    rm_normal nm;
    /* The columns are the same whatever the budget. */
    const int64_t budget = p->budget_bytes >= 0 ? p->budget_bytes : RM_MAX_SUM;
    TRY(rm_source_read(ctx, source, bytes));
    TRY(rm_normal_of(ctx, p->graph, &nm));
    TRY(read_codes(ctx, &nm, budget, bytes, codes));
    rm_input_name(ctx, NULL);
    TRY(rm_offer_codes(p, &nm, codes, best));
    if (!best->any) return rm_fail(ctx, REMAT_E_INPUT, "memory or cost passes 2^62");
    return rm_plan_finish(p, &rm_checkmate_milp,
                          (rm_transfers){ctx->options.offload, ctx->options.bandwidth}, best, out);
}

remat_status remat_milp_plan(remat_ctx *ctx, const remat_graph *graph, int64_t budget_bytes,
                             const char *source, remat_plan **out)
{
    const rm_problem p = {ctx, graph, budget_bytes};
    rm_bytes bytes = {0};
    rm_codes codes = {0};
    rm_incumbent best = {.any = false};
    if (budget_bytes < REMAT_BUDGET_NONE)
        return rm_fail(ctx, REMAT_E_USAGE, "a solution's budget is a number of bytes");
    const rm_mark mark = rm_scratch_mark(ctx);
    rm_limits_begin(ctx, RM_NO_LIMIT);
    rm_input_name(ctx, strcmp(source, "-") == 0 ? "standard input" : source);
    const remat_status status = plan_of(&p, source, &bytes, &codes, &best, out);
    rm_input_name(ctx, NULL);
    RM_VEC_FREE(&ctx->heap, bytes);
    RM_VEC_FREE(&ctx->heap, codes);
    RM_VEC_FREE(&ctx->heap, best.steps);
    rm_scratch_release(ctx, mark);
    rm_limits_end(ctx);
    return status;
}
