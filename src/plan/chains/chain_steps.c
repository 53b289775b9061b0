/* chain_steps.c: what planners on chains share: how schedules compare, the schedule that follows
 * from a set of checkpoints, and schedules of little memory for where nothing fits.
 *
 * Invariant: a result's peak and cost are those that chain_sim.c measured for its steps. An offer
 * is linear in the candidate's steps, for each budget where it is better. */
#include "plan/chains/rotor.h"
#include "sim/chain_sim.h"

#include <assert.h>

enum {
    STEP_WORK = 8, /* operations to write and to measure a step */
    /* So many stages never wait for the limits: write_from_input takes a millisecond for them. */
    ALWAYS = 500
};

remat_status rm_chain_step(remat_ctx *ctx, rm_schedule *s, remat_step_kind kind, uint32_t stage)
{
    const remat_step step = {kind, stage};
    return RM_PUSH(ctx, *s, step);
}

/* By the rules of rm_incumbent. p->least fits nothing, so there the lower peak is better. */
static bool is_better(const rm_chain_result *r, bool fits, int64_t peak_bytes, int64_t cost)
{
    if (!r->any) return true;
    if (fits != r->fits) return fits;
    if (fits) return cost != r->cost ? cost < r->cost : peak_bytes < r->peak_bytes;
    return peak_bytes != r->peak_bytes ? peak_bytes < r->peak_bytes : cost < r->cost;
}

static remat_status offer(const rm_chain_problem *p, rm_chain_result *results,
                          const rm_schedule *candidate)
{
    int64_t peak_bytes, cost;
    assert(p->n_budgets > 0);
    const remat_status status = rm_chain_measure(p->ctx, p->chain, candidate, &peak_bytes, &cost);
    if (status == REMAT_E_PLAN) return REMAT_OK; /* no candidate */
    TRY(status);
    for (uint32_t i = 0; i < p->n_budgets + (p->least ? 1 : 0); i++) {
        rm_chain_result *r = i < p->n_budgets ? &results[i] : p->least;
        assert(i == 0 || i == p->n_budgets || p->budgets[i - 1] <= p->budgets[i]);
        const bool fits = i < p->n_budgets && peak_bytes <= p->budgets[i];
        if (!is_better(r, fits, peak_bytes, cost)) continue;
        TRY(rm_schedule_copy(p->ctx, &r->steps, candidate));
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

/* The first stage of the segment that ends with stage `end`. */
static uint32_t segment_begin(const uint8_t *checkpoint, uint32_t end)
{
    uint32_t begin = end;
    while (begin > 1 && !checkpoint[begin - 2]) begin--;
    return begin;
}

remat_status rm_chain_segments(remat_ctx *ctx, const remat_chain *c, const uint8_t *checkpoint,
                               rm_schedule *out)
{
    const uint32_t last = c->n_stages + 1;
    uint32_t begin = segment_begin(checkpoint, last);
    for (uint32_t l = 1; l < begin; l++)
        TRY(rm_chain_step(ctx, out, l == 1 || checkpoint[l - 2] ? REMAT_F_CK : REMAT_F_NONE, l));
    for (uint32_t end = last; end > 0; end = begin - 1) {
        begin = segment_begin(checkpoint, end);
        for (uint32_t l = begin; l <= end; l++) TRY(rm_chain_step(ctx, out, REMAT_F_ALL, l));
        for (uint32_t l = end; l >= begin; l--) TRY(rm_chain_step(ctx, out, REMAT_B, l));
    }
    return REMAT_OK;
}

/* ---- where nothing fits ---- */

static uint32_t half_way(const void *table, uint32_t s, uint32_t t, int64_t m)
{
    (void)table;
    (void)m;
    return s == t ? 0 : s + (t - s) / 2 + 1;
}

static int64_t nothing(const void *table, uint32_t l)
{
    (void)table;
    (void)l;
    return 0;
}

/* Checkpoints at halves of halves: those of one path down are stored. O(L log L) steps. */
static remat_status write_halves(const rm_chain_problem *p, rm_schedule *steps)
{
    const rm_rotor_table halves = {p->chain->n_stages + 1, NULL, half_way, nothing, nothing};
    return rm_rotor_trace(p->ctx, &halves, 0, steps);
}

/* Everything runs again from the input for every stage: the least memory. O(L^2) steps. */
static remat_status write_from_input(const rm_chain_problem *p, rm_schedule *steps)
{
    remat_ctx *ctx = p->ctx;
    for (uint32_t t = p->chain->n_stages + 1; t >= 1; t--) {
        for (uint32_t l = 1; l < t; l++)
            TRY(rm_chain_step(ctx, steps, l == 1 ? REMAT_F_CK : REMAT_F_NONE, l));
        TRY(rm_chain_step(ctx, steps, REMAT_F_ALL, t));
        TRY(rm_chain_step(ctx, steps, REMAT_B, t));
    }
    return REMAT_OK;
}

static bool all_fit(const rm_chain_problem *p, const rm_chain_result *results)
{
    bool all = true;
    for (uint32_t i = 0; i < p->n_budgets; i++) all &= results[i].fits;
    return all;
}

remat_status rm_chain_offer_least(const rm_chain_problem *p, rm_chain_result *results)
{
    remat_ctx *ctx = p->ctx;
    rm_schedule steps = {0};
    if (all_fit(p, results)) return REMAT_OK;
    remat_status status = write_halves(p, &steps);
    if (status == REMAT_OK) status = rm_chain_offer(p, results, &steps);
    const double n = p->chain->n_stages + 1.0, most = n * n / 2 + 2 * n;
    const bool is_small = most * sizeof *steps.items < (double)rm_memory_left(ctx) / 4;
    const bool is_wanted = status == REMAT_OK && !all_fit(p, results) && is_small;
    /* rm_can_afford is asked last, as it notes a refusal for rm_stopped. */
    if (is_wanted && (n <= ALWAYS || rm_can_afford(ctx, STEP_WORK * most))) {
        steps.n = 0;
        status = write_from_input(p, &steps);
        if (status == REMAT_OK) status = rm_chain_offer(p, results, &steps);
        rm_spend(ctx, (int64_t)(STEP_WORK * most));
    }
    RM_VEC_FREE(&ctx->heap, steps);
    return status;
}
