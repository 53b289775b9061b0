/* liveness.c: the storage instances of a schedule, and memory at each step.
 *
 * This is the model of docs/model.md as the planners and the lowering use it. src/verify computes
 * the same with code of its own.
 *
 * Method: one forward scan keeps, for every value, the storage instance that its newest instance
 * refers to.
 * - A read moves the death of that instance to the reading step.
 * - A run makes new instances. An alias output takes over the instance of its source instead.
 * - The newest instances of the graph's outputs never die.
 * - An output that may be made in place of an input takes that input's instance over, if the step
 *   is its last. It is in memory up to the step before then: both have as many bytes.
 * Memory is a prefix sum over births and deaths.
 *
 * Cost: O(steps + reads). */
#include "graph/schedule.h"

#include <assert.h>
#include <inttypes.h>

typedef struct scan {
    const remat_graph *g;
    rm_liveness l;
    uint32_t *now; /* by value: the storage instance that its newest instance refers to */
} scan;

static remat_status count_instances(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                                    size_t n_steps, size_t *n)
{
    *n = 0;
    if (n_steps >= REMAT_NONE)
        return rm_fail(ctx, REMAT_E_USAGE, "a schedule of %zu steps is too long", n_steps);
    for (size_t t = 0; t < n_steps; t++) {
        if (steps[t].kind == REMAT_FETCH) ++*n;
        if (steps[t].kind != REMAT_RUN) continue;
        for (uint32_t k = g->out_begin[steps[t].index]; k < g->out_begin[steps[t].index + 1]; k++)
            *n += g->out_source[k] == REMAT_NONE;
    }
    return REMAT_OK;
}

static void read_value(scan *x, uint32_t value, uint32_t step)
{
    if (rm_is_resident(x->g, value)) return;
    assert(x->now[value] != REMAT_NONE);
    rm_instance *read = &x->l.instances[x->now[value]];
    read->last_read = step;
    read->death = step;
}

static void make(scan *x, uint32_t value, uint32_t step)
{
    x->now[value] = (uint32_t)x->l.n_instances;
    x->l.instances[x->l.n_instances++] = (rm_instance){value, step, step, step, REMAT_NONE};
}

static void run_op(scan *x, uint32_t op, uint32_t step)
{
    const remat_graph *g = x->g;
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) read_value(x, g->in[k], step);
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++) {
        if (g->out_source[k] != REMAT_NONE) {
            x->now[g->out[k]] = x->now[g->out_source[k]];
            continue;
        }
        const uint32_t taken = rm_taken_value(g, op, k);
        make(x, g->out[k], step);
        if (taken != REMAT_NONE) x->l.instances[x->now[g->out[k]]].takes = x->now[taken];
    }
}

static void take_step(scan *x, remat_step step, uint32_t t)
{
    if (step.kind == REMAT_RUN) run_op(x, step.index, t);
    else if (step.kind == REMAT_FETCH) make(x, step.index, t);
    else read_value(x, step.index, t);
}

static void keep_outputs(scan *x, uint32_t n_steps)
{
    const remat_graph *g = x->g;
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const uint32_t v = g->outputs[i];
        if (!rm_is_resident(g, v) && x->now[v] != REMAT_NONE)
            x->l.instances[x->now[v]].death = n_steps;
    }
}

/* Which instances take the place of another? `takes` says of each whose place it would take. They
 * go by birth, so an instance that a later one takes over has not been cut yet. */
static void take_over(rm_liveness *l)
{
    for (size_t i = 0; i < l->n_instances; i++) {
        rm_instance *x = &l->instances[i];
        if (x->takes == REMAT_NONE) continue;
        rm_instance *taken = &l->instances[x->takes];
        if (taken->death == x->birth) taken->death--;
        else x->takes = REMAT_NONE;
    }
}

static remat_status sum_memory(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                               size_t n_steps, rm_liveness *l)
{
    for (size_t i = 0; i < l->n_instances; i++) { /* at first, memory holds differences */
        const rm_instance *x = &l->instances[i];
        int64_t *from = &l->memory[x->birth], *to = &l->memory[x->death + 1];
        if (rm_add_overflows(*from, g->storage[x->root], from) ||
            rm_add_overflows(*to, -g->storage[x->root], to))
            return rm_fail(ctx, REMAT_E_PLAN, "step %" PRIu32 ": memory passes 2^62 bytes",
                           x->birth);
    }
    int64_t live = g->resident_bytes;
    l->peak_bytes = g->resident_bytes;
    l->peak_step = REMAT_NONE;
    for (size_t t = 0; t < n_steps; t++) {
        const int64_t workspace = steps[t].kind == REMAT_RUN ? g->workspace[steps[t].index] : 0;
        if (rm_add_overflows(live, l->memory[t], &live) || live >= RM_MAX_SUM - workspace)
            return rm_fail(ctx, REMAT_E_PLAN, "step %zu: memory passes 2^62 bytes", t);
        l->memory[t] = live + workspace;
        if (l->peak_step != REMAT_NONE && l->memory[t] <= l->peak_bytes) continue;
        l->peak_bytes = l->memory[t];
        l->peak_step = (uint32_t)t;
    }
    return REMAT_OK;
}

int64_t rm_transfer_cost_limited(int64_t bytes, int64_t bandwidth)
{
    assert(bytes >= 0 && bandwidth >= 0);
    if (bandwidth == 0) return 0;
    const rm_uint128 cost =
        ((rm_uint128)bytes * 1000000000 + (rm_uint128)bandwidth - 1) / (rm_uint128)bandwidth;
    return cost < (rm_uint128)RM_MAX_SUM ? (int64_t)cost : RM_MAX_SUM;
}

remat_status rm_transfer_cost(remat_ctx *ctx, int64_t bytes, int64_t bandwidth, int64_t *out)
{
    *out = rm_transfer_cost_limited(bytes, bandwidth);
    if (*out < RM_MAX_SUM) return REMAT_OK;
    return rm_fail(ctx, REMAT_E_USAGE, "bandwidth %" PRId64 ": a transfer costs 2^62 or more",
                   bandwidth);
}

static remat_status step_cost(remat_ctx *ctx, const remat_graph *g, remat_step step,
                              int64_t bandwidth, int64_t *out)
{
    if (step.kind != REMAT_RUN)
        return rm_transfer_cost(ctx, g->storage[step.index], bandwidth, out);
    *out = g->cost[step.index];
    return REMAT_OK;
}

remat_status rm_liveness_of(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                            size_t n_steps, int64_t bandwidth, rm_liveness *out)
{
    scan x = {.g = g};
    size_t n_instances;
    TRY(count_instances(ctx, g, steps, n_steps, &n_instances));
    TRY(RM_SCRATCH(ctx, x.l.instances, n_instances));
    TRY(RM_SCRATCH(ctx, x.l.memory, n_steps + 2));
    TRY(RM_SCRATCH(ctx, x.now, g->n_values));
    for (uint32_t v = 0; v < g->n_values; v++) x.now[v] = REMAT_NONE;
    for (uint32_t t = 0; t < n_steps; t++) {
        int64_t cost;
        TRY(step_cost(ctx, g, steps[t], bandwidth, &cost));
        if (!rm_add_to_sum(&x.l.cost, cost))
            return rm_fail(ctx, REMAT_E_PLAN, "step %" PRIu32 ": the cost passes 2^62", t);
        take_step(&x, steps[t], t);
    }
    assert(x.l.n_instances == n_instances);
    keep_outputs(&x, (uint32_t)n_steps);
    if (g->n_inplace) take_over(&x.l);
    TRY(sum_memory(ctx, g, steps, n_steps, &x.l));
    *out = x.l;
    return REMAT_OK;
}

remat_status rm_liveness_keep_all(remat_ctx *ctx, const remat_graph *g, rm_liveness *out)
{
    remat_step *steps;
    TRY(rm_steps_keep_all(ctx, g, &steps));
    return rm_liveness_of(ctx, g, steps, g->n_ops, 0, out);
}

remat_status rm_steps_keep_all(remat_ctx *ctx, const remat_graph *g, remat_step **out)
{
    TRY(RM_SCRATCH(ctx, *out, g->n_ops));
    for (uint32_t op = 0; op < g->n_ops; op++) (*out)[op] = (remat_step){REMAT_RUN, op};
    return REMAT_OK;
}

/* The index of the op or value in g, or REMAT_NONE. */
static uint32_t index_now(const remat_graph *g, remat_step step)
{
    if (step.kind == REMAT_RUN)
        return step.index < g->n_original_ops ? g->op_now[step.index] : REMAT_NONE;
    return step.index < g->n_original_values ? g->value_now[step.index] : REMAT_NONE;
}

remat_status rm_steps_to_graph(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                               size_t n_steps, remat_step **out)
{
    TRY(RM_SCRATCH(ctx, *out, n_steps));
    for (size_t t = 0; t < n_steps; t++) {
        const uint32_t now = index_now(g, steps[t]);
        if (now == REMAT_NONE)
            return rm_fail(ctx, REMAT_E_PLAN, "step %zu: there is no %s %" PRIu32, t,
                           steps[t].kind == REMAT_RUN ? "op" : "value", steps[t].index);
        (*out)[t] = (remat_step){steps[t].kind, now};
    }
    return REMAT_OK;
}

void rm_steps_to_original(const remat_graph *g, remat_step *steps, size_t n_steps)
{
    for (size_t t = 0; t < n_steps; t++)
        steps[t].index = steps[t].kind == REMAT_RUN ? g->op_original[steps[t].index]
                                                    : g->value_original[steps[t].index];
}
