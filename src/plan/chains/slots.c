/* slots.c: memory cut into slots, and the schedules of a table over slots.
 *
 * Problem: a table is indexed by memory, and memory is counted in bytes. Rotor (section 5.2) cuts
 * the budget into 500 slots and rounds every size to slots. If each size is rounded up, a long
 * chain that stores hundreds of them seems to need a third more than it does.
 *
 * Method:
 *   - The sizes of neighbours are rounded together: a^l is the difference between two prefix sums,
 *     each rounded up. So is abar^l. A size is less than a slot off, and so is the sum of any row
 * of neighbours.
 *   - What a table says may then be a little too much or too little. So its schedules are measured
 *     in bytes, from some slots behind the budget downwards, and the first that fits is taken. They
 *     get dearer on the way, so it is the cheapest that fits.
 *   - One that does not fit is over by so many whole slots, and as many are skipped.
 *
 * Promise: let a schedule's parts be n stored sizes at most. With slots of u bytes, no schedule of
 * the table's kind that fits into the budget less (2n + 5) u bytes is cheaper than what is taken.
 * For: it is in the table at n + 2 slots above its true memory, and what the table has there takes
 * at most n + 3 slots more in truth. The option `epsilon` chooses u by this (rotor.c).
 *
 * Cost: a schedule for each slot that is tried, and measuring it. */
#include "plan/chains/slots.h"

#include "sim/chain_sim.h"

#include <math.h>

enum {
    BEYOND = 8, /* slots behind the budget from which the search goes down */
    DEFAULT_SLOTS = 500,
    FEWEST_SLOTS = 16 /* with fewer a table says nothing */
};

rm_slots rm_slots_of_unit(int64_t unit, int64_t budget_bytes)
{
    return (rm_slots){
        .n = (uint32_t)(budget_bytes / unit), .per_slot = unit, .budget_bytes = budget_bytes};
}

/* A size is bytes * scale_of / divisor_of slots. */
static rm_uint128 scale_of(const rm_slots *x) { return x->per_slot ? 1U : x->n; }

static rm_uint128 divisor_of(const rm_slots *x)
{
    return (rm_uint128)(x->per_slot ? x->per_slot : x->budget_bytes);
}

static rm_uint128 rounded_up(const rm_slots *x, int64_t bytes)
{
    return ((rm_uint128)bytes * scale_of(x) + divisor_of(x) - 1) / divisor_of(x);
}

static uint32_t within_width(const rm_slots *x, rm_uint128 slots)
{
    const uint32_t width = rm_slots_width(x);
    return slots < width ? (uint32_t)slots : width;
}

uint32_t rm_slots_up(const rm_slots *x, int64_t bytes)
{
    return within_width(x, rounded_up(x, bytes));
}

uint32_t rm_slots_down(const rm_slots *x, int64_t bytes)
{
    const rm_uint128 slots = (rm_uint128)bytes * scale_of(x) / divisor_of(x);
    const uint32_t last = rm_slots_width(x) - 1;
    return slots < last ? (uint32_t)slots : last;
}

void rm_slots_of_chain(const rm_slots *x, const remat_chain *c, uint32_t *a, uint32_t *abar)
{
    int64_t a_sum = 0, abar_sum = 0; /* below 2^62: see chain.c */
    rm_uint128 a_before = 0, abar_before = 0;
    for (uint32_t l = 0; l <= c->n_stages + 1; l++) {
        a_sum += c->stages[l].a;
        abar_sum += c->stages[l].abar;
        const rm_uint128 a_now = rounded_up(x, a_sum), abar_now = rounded_up(x, abar_sum);
        a[l] = within_width(x, a_now - a_before);
        abar[l] = within_width(x, abar_now - abar_before);
        a_before = a_now;
        abar_before = abar_now;
    }
}

/* ---- how many ---- */

/* For the promise of the file's head, at the least budget that is asked for. */
static double slots_for_epsilon(const rm_chain_problem *p)
{
    const double epsilon = (double)p->ctx->options.epsilon / 1000;
    const double least = p->budgets[0] > 0 ? (double)p->budgets[0] : 1;
    const double ratio = (double)p->budgets[p->n_budgets - 1] / least;
    const double n = p->chain->n_stages + 1;
    return ceil((2 * n + 5) * (1 + epsilon) / epsilon * (ratio > 1 ? ratio : 1));
}

static double asked_slots(const rm_chain_problem *p)
{
    const rm_options *o = &p->ctx->options;
    const double wished = o->slots > 0 ? (double)o->slots : DEFAULT_SLOTS;
    return o->epsilon ? fmax(slots_for_epsilon(p), wished) : wished;
}

remat_status rm_slots_choose(const rm_chain_problem *p, const rm_slot_price *price, rm_slots *out)
{
    remat_ctx *ctx = p->ctx;
    const rm_options *o = &ctx->options;
    const double asked = asked_slots(p), least = asked < FEWEST_SLOTS ? asked : FEWEST_SLOTS;
    const double by_memory =
        (0.9 * (double)rm_memory_left(ctx) - price->bytes) / price->bytes_a_slot - BEYOND;
    double work = rm_affordable(ctx);
    if (!o->epsilon && o->slots < 0 && work > price->most_work) work = price->most_work;
    const double by_work = (work - price->work) / price->work_a_slot - BEYOND;
    const double most = by_memory < by_work ? by_memory : by_work;
    *out = (rm_slots){.beyond = BEYOND, .budget_bytes = p->budgets[p->n_budgets - 1]};
    if (out->budget_bytes == 0) out->budget_bytes = 1;
    if (by_memory < (o->epsilon ? asked : least))
        return rm_fail(ctx, REMAT_E_APPLIES,
                       "a table of %u stages and %.0f slots takes %.1f GB, more than memory_bytes "
                       "allows",
                       p->chain->n_stages, asked,
                       (price->bytes + asked * price->bytes_a_slot) / 1e9);
    if (most < (o->epsilon ? asked : least)) {
        (void)rm_can_afford(ctx, INFINITY); /* notes the reason for rm_stopped */
        return REMAT_OK;
    }
    out->n = (uint32_t)(most < asked ? most : asked);
    if (most < asked && !p->judge && o->slots > 0)
        rm_warn(ctx, "memory is cut into %u slots: the limits allow no more", out->n);
    return REMAT_OK;
}

/* ---- offering ---- */

static remat_status offer(const rm_chain_problem *p, const rm_slot_table *t, uint32_t m,
                          rm_schedule *steps, rm_chain_result *results)
{
    steps->n = 0;
    TRY(t->trace(p->ctx, t->table, m, steps));
    return rm_chain_offer(p, results, steps);
}

/* The cheapest schedule that fits. A judge sees the one that the slots promise, and no other: it
 * has a measure of its own. */
static remat_status offer_for_budget(const rm_chain_problem *p, const rm_slot_table *t,
                                     int64_t budget_bytes, rm_schedule *steps,
                                     rm_chain_result *results)
{
    const uint32_t last = rm_slots_width(t->slots) - 1;
    uint32_t m = rm_slots_down(t->slots, budget_bytes);
    if (!p->judge) m = m + t->slots->beyond < last ? m + t->slots->beyond : last;
    if (m < t->input) return REMAT_OK;
    m -= t->input;
    while (t->has(t->table, m)) {
        int64_t peak_bytes, cost;
        steps->n = 0;
        TRY(t->trace(p->ctx, t->table, m, steps));
        TRY(rm_chain_measure(p->ctx, p->chain, steps, &peak_bytes, &cost));
        if (p->judge || peak_bytes <= budget_bytes) return rm_chain_offer(p, results, steps);
        const uint32_t over = rm_slots_down(t->slots, peak_bytes - budget_bytes);
        const uint32_t less = over > 1 ? over : 1;
        if (m < less || rm_is_late(p->ctx)) return REMAT_OK;
        m -= less;
    }
    return REMAT_OK;
}

static remat_status offer_all(const rm_chain_problem *p, const rm_slot_table *t, rm_schedule *steps,
                              rm_chain_result *results)
{
    for (uint32_t i = 0; i < p->n_budgets; i++) {
        const rm_mark mark = rm_scratch_mark(p->ctx);
        const remat_status status = offer_for_budget(p, t, p->budgets[i], steps, results);
        rm_scratch_release(p->ctx, mark);
        if (status != REMAT_OK && status != REMAT_E_PLAN) return status;
    }
    if (!p->least) return REMAT_OK;
    const uint32_t width = rm_slots_width(t->slots);
    uint32_t least = 0;
    while (least < width && !t->has(t->table, least)) least++;
    for (uint32_t m = least; m < width && m <= least + t->slots->beyond; m++)
        TRY(offer(p, t, m, steps, results));
    return REMAT_OK;
}

remat_status rm_slots_answer(const rm_chain_problem *p, const rm_slot_table *t,
                             rm_chain_result *results)
{
    rm_schedule steps = {0};
    const remat_status status = offer_all(p, t, &steps, results);
    RM_VEC_FREE(&p->ctx->heap, steps);
    return status;
}
