/* unroll.c: a schedule as a graph (Checkmate, section 4.8: each compute statement becomes a node).
 *
 * Problem: a schedule does not say who reads which run of an op; it is the newest. A compiler, and
 * the pass between kernels, want a graph in which every run is a node with values of its own.
 *
 * Method: the ops are written one after the other. `now` says which new value stands for each old
 * one. So a repeated op simply gets new outputs, and later readers read those. Resident values come
 * first, once each.
 *
 * A graph output is its newest instance. For fusion it is its first one, which is what a forward
 * pass hands out. Then a plan that drops an output and makes it again has a lower peak than the new
 * graph.
 *
 * Invariant: the new graph is valid if each op is written after all that it reads.
 *
 * Cost: linear. */
#include "fusion/unroll.h"

#include "graph/copy.h"
#include "fusion/kernels.h"

#include <stdio.h>
#include <string.h>

/* Ops that are kernels (kernel_ops.c) cost what their members did. No model but a roofline can tell
 * that from the kernel. What ops cost in the kernels of keep-all (fused_cost.c) cannot be told from
 * another schedule, and the model would mean that there. So such costs are copied. */
static bool keeps_costs(const remat_graph *g)
{
    return rm_cost_is_fused(g) || ((g->flags & REMAT_FUSE) && !rm_cost_is_roofline(g));
}

/* Of the inputs and outputs of one op. */
static uint32_t longest_list(const remat_graph *g)
{
    uint32_t longest = 0;
    for (uint32_t op = 0; op < g->n_ops; op++) {
        const uint32_t n_in = g->in_begin[op + 1] - g->in_begin[op],
                       n_out = g->out_begin[op + 1] - g->out_begin[op];
        if (n_in + n_out > longest) longest = n_in + n_out;
    }
    return longest;
}

/* Whether a value is there before the first op. A view that no op makes, of what an op makes or of
 * a view of that, is not: nobody reads it. */
static bool is_there(const remat_graph *g, uint32_t v)
{
    for (; v != REMAT_NONE; v = g->alias[v])
        if (g->producer[v] != REMAT_NONE) return false;
    return true;
}

remat_status rm_unroll_begin(remat_ctx *ctx, const remat_graph *g, rm_unroller *out)
{
    *out = (rm_unroller){.g = g};
    out->to = remat_builder_new(ctx, rm_text(g, g->name));
    if (!out->to) return REMAT_E_MEMORY;
    out->to->cost_unit =
        rm_builder_text(out->to, keeps_costs(g) ? g->cost_unit : rm_text(g, g->given_unit));
    out->to->extra = rm_builder_text(out->to, rm_text(g, g->extra));
    TRY(RM_SCRATCH(ctx, out->now, g->n_values));
    TRY(RM_SCRATCH(ctx, out->delivers, g->n_values));
    TRY(RM_SCRATCH(ctx, out->written, g->n_ops));
    TRY(RM_SCRATCH(ctx, out->list, longest_list(g)));
    for (uint32_t v = 0; v < g->n_values; v++) {
        uint32_t value = REMAT_NONE;
        if (is_there(g, v)) value = rm_copy_value(out->to, g, v, rm_text(g, g->value_name[v]));
        out->now[v] = value;
        out->delivers[v] = value;
    }
    for (uint32_t v = 0; v < g->n_values; v++) /* what a view is of may come behind it */
        if (is_there(g, v) && g->alias[v] != REMAT_NONE)
            remat_builder_value_set(out->to, out->now[v], REMAT_VALUE_ALIAS, out->now[g->alias[v]]);
    return out->to->status;
}

/* "name", and "name.again" for a copy. */
static const char *copy_name(const char *name, bool again, char buffer[200])
{
    if (!again || !*name) return name;
    snprintf(buffer, 200, "%.190s.again", name);
    return buffer;
}

/* A new value for output k of the list g->out. Of what it is a view is said later. */
static uint32_t write_output(rm_unroller *u, uint32_t k)
{
    const remat_graph *g = u->g;
    const uint32_t v = g->out[k];
    const bool again = u->delivers[v] != REMAT_NONE;
    char name[200];
    const uint32_t value =
        rm_copy_value(u->to, g, v, copy_name(rm_text(g, g->value_name[v]), again, name));
    u->now[v] = value;
    if (!again) u->delivers[v] = value;
    return value;
}

remat_status rm_unroll_op(rm_unroller *u, uint32_t op, uint8_t phase, uint32_t kernel)
{
    const remat_graph *g = u->g;
    uint32_t n = 0;
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
        u->list[n++] = u->now[g->in[k]];
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        u->list[n++] = write_output(u, k);
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        if (g->out_source[k] != REMAT_NONE) /* an input, or another output, which may come behind */
            remat_builder_value_set(u->to, u->now[g->out[k]], REMAT_VALUE_ALIAS,
                                    u->now[g->out_source[k]]);
    char name[200];
    const uint32_t written = rm_copy_op(
        u->to, g, op, copy_name(rm_text(g, g->op_name[op]), u->written[op], name), u->list);
    if (u->to->status != REMAT_OK) return u->to->status;
    rm_copy_inplace(u->to, g, op, written);
    rm_op_record *record = &u->to->ops.items[written];
    if (keeps_costs(g)) record->cost = g->cost[op];
    record->phase = phase;
    record->kernel = kernel;
    u->written[op] = 1;
    return REMAT_OK;
}

remat_status rm_unroll_end(remat_ctx *ctx, rm_unroller *u, remat_graph **out)
{
    const remat_graph *g = u->g;
    remat_graph *made = NULL;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        remat_builder_output(u->to, u->delivers[g->outputs[i]]);
    TRY(remat_builder_finish(u->to, &made));
    const remat_status status = rm_cost_apply(ctx, made, keeps_costs(g) ? "given" : g->cost_model);
    if (status != REMAT_OK) remat_graph_free(made);
    else *out = made;
    return status;
}

static remat_status unroll(remat_ctx *ctx, rm_unroller *u, const remat_step *steps, size_t n_steps,
                           rm_unroll_kind kind, remat_graph **out)
{
    rm_trace x;
    rm_kernels kernels = {0};
    TRY(rm_trace_of(ctx, u->g, steps, n_steps, &x));
    if (kind == RM_UNROLL_KERNELS) TRY(rm_kernels_find(ctx, &x, &kernels));
    for (uint32_t t = 0; t < n_steps; t++) {
        if (steps[t].kind != REMAT_RUN)
            return rm_fail(ctx, REMAT_E_APPLIES, "step %u: a transfer is no node of a graph", t);
        uint8_t phase = u->g->phase[steps[t].index];
        if (t >= x.backward && phase == REMAT_FORWARD) phase = REMAT_BACKWARD;
        uint32_t kernel = REMAT_NONE;
        if (kernels.n && kernels.fused[kernels.of[t]]) kernel = kernels.of[t];
        TRY(rm_unroll_op(u, steps[t].index, phase, kernel));
    }
    if (kind == RM_UNROLL_STEPS) u->delivers = u->now;
    return rm_unroll_end(ctx, u, out);
}

remat_status rm_unroll(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                       size_t n_steps, rm_unroll_kind kind, remat_graph **out)
{
    rm_unroller u;
    remat_status status = rm_unroll_begin(ctx, g, &u);
    if (status == REMAT_OK) status = unroll(ctx, &u, steps, n_steps, kind, out);
    remat_builder_free(u.to);
    return status;
}
