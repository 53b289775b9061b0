/* liveness.c: the storage instances of a schedule, and memory at each step. This is the model of
 * docs/model.md as the planners and the lowering use it; src/verify has its own copy of the truth.
 *
 * One forward scan keeps, for every value, the storage instance that its newest instance refers to.
 * A read moves that instance's death to the reading step; a run makes new instances, or, for an
 * alias output, takes over the instance of its source. The newest instances of the graph's outputs
 * never die. Memory is a prefix sum over births and deaths. O(steps + reads). */
#include "graph/schedule.h"

#include <inttypes.h>

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

static void read_value(const remat_graph *g, uint32_t value, uint32_t step, const uint32_t *now,
                       rm_instance *instances)
{
    if (!rm_is_resident(g, value))
        instances[now[value]].last_read = instances[now[value]].death = step;
}

static uint32_t make(rm_liveness *l, uint32_t value, uint32_t step)
{
    l->instances[l->n_instances] = (rm_instance){value, step, step, step};
    return (uint32_t)l->n_instances++;
}

static remat_status sum_memory(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                               size_t n_steps, rm_liveness *l)
{
    for (size_t i = 0; i < l->n_instances; i++) { /* differences */
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

remat_status rm_liveness_of(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                            size_t n_steps, int64_t bandwidth, rm_liveness *out)
{
    rm_liveness l = {0};
    size_t n_instances;
    uint32_t *now; /* by value: the storage instance its newest instance refers to */
    TRY(count_instances(ctx, g, steps, n_steps, &n_instances));
    TRY(RM_SCRATCH(ctx, l.instances, n_instances));
    TRY(RM_SCRATCH(ctx, l.memory, n_steps + 2));
    TRY(RM_SCRATCH(ctx, now, g->n_values));
    for (uint32_t v = 0; v < g->n_values; v++) now[v] = REMAT_NONE;
    for (uint32_t t = 0; t < n_steps; t++) {
        const uint32_t index = steps[t].index;
        int64_t cost = 0;
        if (steps[t].kind == REMAT_RUN) {
            cost = g->cost[index];
            for (uint32_t k = g->in_begin[index]; k < g->in_begin[index + 1]; k++)
                read_value(g, g->in[k], t, now, l.instances);
            for (uint32_t k = g->out_begin[index]; k < g->out_begin[index + 1]; k++)
                now[g->out[k]] =
                    g->out_source[k] == REMAT_NONE ? make(&l, g->out[k], t) : now[g->out_source[k]];
        } else {
            TRY(rm_transfer_cost(ctx, g->storage[index], bandwidth, &cost));
            if (steps[t].kind == REMAT_FETCH) now[index] = make(&l, index, t);
            else read_value(g, index, t, now, l.instances);
        }
        if (rm_add_overflows(l.cost, cost, &l.cost) || l.cost >= RM_MAX_SUM)
            return rm_fail(ctx, REMAT_E_PLAN, "step %" PRIu32 ": the cost passes 2^62", t);
    }
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (n_steps && !rm_is_resident(g, g->outputs[i]) && now[g->outputs[i]] != REMAT_NONE)
            l.instances[now[g->outputs[i]]].death = (uint32_t)n_steps;
    TRY(sum_memory(ctx, g, steps, n_steps, &l));
    *out = l;
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

remat_status rm_steps_to_graph(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                               size_t n_steps, remat_step **out)
{
    TRY(RM_SCRATCH(ctx, *out, n_steps));
    for (size_t t = 0; t < n_steps; t++) {
        const bool run = steps[t].kind == REMAT_RUN;
        const uint32_t index = steps[t].index, n = run ? g->n_original_ops : g->n_original_values;
        const uint32_t now = index >= n ? REMAT_NONE : run ? g->op_now[index] : g->value_now[index];
        if (now == REMAT_NONE)
            return rm_fail(ctx, REMAT_E_PLAN, "step %zu: there is no %s %" PRIu32, t,
                           run ? "op" : "value", index);
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
