/* given_steps.c: schedules that a caller brings along: judged, measured, lowered, made into plans.
 *
 * The verifier comes first. Whatever breaks a rule is REMAT_E_PLAN, with its reason. The liveness
 * pass measures what passes. So here too the verifier and the planners' model of memory must agree
 * to the byte.
 *
 * Cost: linear, besides the bound that a plan carries. */
#include "api/answer.h"
#include "api/plan_make.h"
#include "graph/plan.h"
#include "lower/lower.h"
#include "verify/verify.h"

#include <inttypes.h>
#include <string.h>

static remat_status check_bandwidth(remat_ctx *ctx, int64_t bandwidth)
{
    if (bandwidth >= 0) return REMAT_OK;
    return rm_fail(ctx, REMAT_E_USAGE, "bandwidth %" PRId64 " is negative", bandwidth);
}

remat_status remat_verify(remat_ctx *ctx, const remat_graph *graph, const remat_step *steps,
                          size_t n_steps, int64_t bandwidth, remat_verdict *out)
{
    TRY(rm_answer_check(ctx, out->size, "remat_verdict"));
    TRY(check_bandwidth(ctx, bandwidth));
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_verdict verdict;
    const remat_status status = rm_verify(ctx, graph, steps, n_steps, bandwidth, &verdict);
    if (status == REMAT_OK) RM_ANSWER(out, &verdict);
    rm_scratch_release(ctx, mark);
    return status;
}

static remat_status require_valid(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                                  size_t n_steps, int64_t bandwidth)
{
    remat_verdict verdict;
    TRY(rm_verify(ctx, g, steps, n_steps, bandwidth, &verdict));
    return verdict.valid ? REMAT_OK : rm_fail(ctx, REMAT_E_PLAN, "%s", verdict.reason);
}

remat_status remat_lower(remat_ctx *ctx, const remat_graph *graph, const remat_step *steps,
                         size_t n_steps, remat_program **out)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_status status = require_valid(ctx, graph, steps, n_steps, 0);
    if (status == REMAT_OK) status = rm_lower(ctx, graph, steps, n_steps, out);
    rm_scratch_release(ctx, mark);
    return status;
}

/* A valid schedule in the graph's own indices, in scratch, and what it takes. */
static remat_status measure(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                            size_t n_steps, int64_t bandwidth, remat_step **own, rm_liveness *l)
{
    TRY(require_valid(ctx, g, steps, n_steps, bandwidth));
    TRY(rm_steps_to_graph(ctx, g, steps, n_steps, own));
    return rm_liveness_of(ctx, g, *own, n_steps, bandwidth, l);
}

remat_status remat_steps_memory(remat_ctx *ctx, const remat_graph *graph, const remat_step *steps,
                                size_t n_steps, int64_t *bytes)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_step *own;
    rm_liveness l;
    const remat_status status = measure(ctx, graph, steps, n_steps, 0, &own, &l);
    if (status == REMAT_OK && n_steps) memcpy(bytes, l.memory, n_steps * sizeof *bytes);
    rm_scratch_release(ctx, mark);
    return status;
}

static remat_status plan_of(const rm_problem *p, const char *strategy, const remat_step *steps,
                            size_t n_steps, int64_t bandwidth, remat_plan **out)
{
    const rm_planner caller = {.entry = {strategy, ""}};
    remat_step *own;
    rm_liveness l;
    TRY(measure(p->ctx, p->graph, steps, n_steps, bandwidth, &own, &l));
    rm_incumbent only = {.steps = {.items = own, .n = n_steps, .room = n_steps},
                         .any = true,
                         .peak_bytes = l.peak_bytes,
                         .cost = l.cost};
    TRY(rm_plan_finish(p, &caller, (rm_transfers){bandwidth > 0, bandwidth}, &only, out));
    remat_summary *s = &(*out)->summary; /* no search of ours made it */
    s->seed = REMAT_ABSENT;
    s->work = 0;
    s->stopped = REMAT_DONE;
    return REMAT_OK;
}

remat_status remat_plan_of_steps(remat_ctx *ctx, const remat_graph *graph, const remat_step *steps,
                                 size_t n_steps, const char *strategy, int64_t budget_bytes,
                                 int64_t bandwidth, remat_plan **out)
{
    if (budget_bytes < REMAT_BUDGET_NONE)
        return rm_fail(ctx, REMAT_E_USAGE, "the budget of a given schedule is a number of bytes");
    TRY(check_bandwidth(ctx, bandwidth));
    const rm_mark mark = rm_scratch_mark(ctx);
    const rm_problem p = {ctx, graph, budget_bytes};
    const remat_status status =
        plan_of(&p, strategy ? strategy : "given", steps, n_steps, bandwidth, out);
    rm_scratch_release(ctx, mark);
    return status;
}
