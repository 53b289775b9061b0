/* chain_steps.c: what planners on chains share: comparing schedules, and the schedule that follows
 * from a set of checkpoints. */
#include "plan/planner.h"
#include "sim/chain_sim.h"

#include <string.h>

remat_status rm_chain_step(remat_ctx *ctx, rm_schedule *s, remat_step_kind kind, uint32_t stage)
{
    const remat_step step = {kind, stage};
    return RM_PUSH(ctx, *s, step);
}

static remat_status offer(const rm_chain_problem *p, rm_chain_result *results,
                          const rm_schedule *candidate)
{
    int64_t peak_bytes, cost;
    const remat_status status = rm_chain_measure(p->ctx, p->chain, candidate, &peak_bytes, &cost);
    if (status == REMAT_E_PLAN) return REMAT_OK; /* no candidate */
    TRY(status);
    for (uint32_t i = 0; i < p->n_budgets + (p->least ? 1 : 0); i++) {
        rm_chain_result *r = i < p->n_budgets ? &results[i] : p->least;
        const bool fits = i < p->n_budgets && peak_bytes <= p->budgets[i];
        const bool lower =
            peak_bytes != r->peak_bytes ? peak_bytes < r->peak_bytes : cost < r->cost;
        const bool cheaper = cost != r->cost ? cost < r->cost : peak_bytes < r->peak_bytes;
        if (r->any && !(fits != r->fits ? fits : fits ? cheaper : lower)) continue;
        r->steps.n = 0;
        TRY(RM_RESERVE(p->ctx, r->steps, candidate->n));
        if (candidate->n)
            memcpy(r->steps.items, candidate->items, candidate->n * sizeof *candidate->items);
        r->steps.n = candidate->n;
        r->peak_bytes = peak_bytes;
        r->cost = cost;
        r->any = true;
        r->fits = fits;
    }
    return REMAT_OK;
}

remat_status rm_chain_offer(const rm_chain_problem *p, rm_chain_result *results,
                            const rm_schedule *candidate)
{
    const rm_mark mark = rm_scratch_mark(p->ctx);
    remat_status status = offer(p, results, candidate);
    if (status == REMAT_OK && p->judge) status = p->judge(p->user, candidate);
    rm_scratch_release(p->ctx, mark);
    return status;
}

remat_status rm_chain_segments(remat_ctx *ctx, const remat_chain *c, const uint8_t *checkpoint,
                               rm_schedule *out)
{
    const uint32_t last = c->n_stages + 1;
    uint32_t begin = last; /* of the last segment */
    while (begin > 1 && !checkpoint[begin - 2]) begin--;
    for (uint32_t l = 1; l < begin; l++)
        TRY(rm_chain_step(ctx, out, l == 1 || checkpoint[l - 2] ? REMAT_F_CK : REMAT_F_NONE, l));
    for (uint32_t end = last; end > 0; end = begin - 1) {
        for (begin = end; begin > 1 && !checkpoint[begin - 2];) begin--;
        for (uint32_t l = begin; l <= end; l++) TRY(rm_chain_step(ctx, out, REMAT_F_ALL, l));
        for (uint32_t l = end; l >= begin; l--) TRY(rm_chain_step(ctx, out, REMAT_B, l));
    }
    return REMAT_OK;
}

remat_status rm_chain_offer_least(const rm_chain_problem *p, rm_chain_result *results)
{
    bool all_fit = true;
    for (uint32_t i = 0; i < p->n_budgets; i++) all_fit &= results[i].fits;
    if (all_fit) return REMAT_OK;
    rm_schedule steps = {0};
    remat_status status = REMAT_OK;
    for (uint32_t t = p->chain->n_stages + 1; t >= 1 && status == REMAT_OK; t--) {
        for (uint32_t l = 1; l <= t && status == REMAT_OK; l++)
            status = rm_chain_step(p->ctx, &steps,
                                   l == t   ? REMAT_F_ALL
                                   : l == 1 ? REMAT_F_CK
                                            : REMAT_F_NONE,
                                   l);
        if (status == REMAT_OK) status = rm_chain_step(p->ctx, &steps, REMAT_B, t);
    }
    if (status == REMAT_OK) status = rm_chain_offer(p, results, &steps);
    RM_VEC_FREE(&p->ctx->heap, steps);
    return status;
}
