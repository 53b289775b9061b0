/* trace.c: which step made what each step reads.
 *
 * Problem: fusion, traffic and the passes between kernels ask of a schedule with repeated ops who
 * reads whose result; the schedule itself only says "the newest instance" (docs/model.md). Method:
 * one scan keeps, for every value, the step of its newest instance and the storage instance that it
 * refers to. The two parts: everything before the first run of the op that brings the tangents is
 * the forward part, the rest the backward part, recomputed forward ops included; this is where a
 * compiler cuts the joint graph in two (min-cut paper, sections 2.4 and 3.2). O(steps + reads) time
 * and memory. */
#include "fusion/trace.h"

#include <string.h>

bool rm_is_boundary(const remat_graph *g, uint32_t op)
{
    return strcmp(rm_text(g, g->op_target[op]), "remat.boundary") == 0;
}

static bool reads_output_of(const remat_graph *g, uint32_t op, uint32_t maker)
{
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
        if (g->producer[g->in[k]] == maker) return true;
    return false;
}

uint32_t rm_boundary_op(const remat_graph *g, bool *found)
{
    uint32_t last_forward = REMAT_NONE, first_backward = REMAT_NONE;
    *found = true;
    for (uint32_t op = 0; op < g->n_ops; op++) {
        if (rm_is_boundary(g, op)) return op;
        if (g->phase[op] == REMAT_FORWARD && g->out_begin[op] < g->out_begin[op + 1])
            last_forward = op;
        if (g->phase[op] == REMAT_BACKWARD && first_backward == REMAT_NONE) first_backward = op;
    }
    for (uint32_t op = first_backward; op < g->n_ops && last_forward != REMAT_NONE; op++)
        if (g->phase[op] == REMAT_BACKWARD && reads_output_of(g, op, last_forward)) return op;
    *found = false;
    return last_forward == REMAT_NONE ? REMAT_NONE : first_backward;
}

static remat_status count(remat_ctx *ctx, rm_trace *x)
{
    const remat_graph *g = x->g;
    size_t n_reads = 0, n_made = 0;
    for (uint32_t t = 0; t < x->n_steps; t++) {
        const uint32_t op = x->steps[t].index;
        if (x->steps[t].kind == REMAT_RUN) {
            n_reads += g->in_begin[op + 1] - g->in_begin[op];
            for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
                n_made += g->out_source[k] == REMAT_NONE;
        } else {
            n_reads += x->steps[t].kind == REMAT_OFFLOAD;
            n_made += x->steps[t].kind == REMAT_FETCH;
        }
    }
    if (n_reads >= REMAT_NONE - x->n_steps || n_made >= REMAT_NONE - g->n_values)
        return rm_fail(ctx, REMAT_E_USAGE, "a schedule with %zu reads is too long", n_reads);
    TRY(RM_SCRATCH(ctx, x->reads, n_reads));
    TRY(RM_SCRATCH(ctx, x->maker, n_made));
    TRY(RM_SCRATCH(ctx, x->root, n_made));
    TRY(RM_SCRATCH(ctx, x->delivered, n_made));
    TRY(RM_SCRATCH(ctx, x->read_begin, (size_t)x->n_steps + 1));
    return RM_SCRATCH(ctx, x->made_begin, (size_t)x->n_steps + 1);
}

static uint32_t make(rm_trace *x, uint32_t value, uint32_t step)
{
    x->maker[x->n_made] = step;
    x->root[x->n_made] = value;
    return x->n_made++;
}

/* By value. Residents get their numbers, which begin at n_made, when all steps are seen. */
typedef struct newest {
    uint32_t maker, instance;
} newest;

static void read_value(rm_trace *x, uint32_t value, const newest *now, uint32_t *n_reads)
{
    x->reads[(*n_reads)++] = (rm_read){value, now[value].maker, now[value].instance};
}

static void run_op(rm_trace *x, uint32_t t, newest *now, uint8_t *given, uint32_t *n_reads)
{
    const remat_graph *g = x->g;
    const uint32_t op = x->steps[t].index;
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
        read_value(x, g->in[k], now, n_reads);
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++) {
        const uint32_t v = g->out[k], source = g->out_source[k];
        const uint32_t instance = source == REMAT_NONE ? make(x, v, t) : now[source].instance;
        now[v] = (newest){t, instance};
        if (g->is_output[v] && !given[v] && !rm_is_resident(g, v))
            x->delivered[instance] = given[v] = 1;
    }
}

remat_status rm_trace_of(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                         size_t n_steps, rm_trace *out)
{
    if (n_steps >= REMAT_NONE)
        return rm_fail(ctx, REMAT_E_USAGE, "a schedule of %zu steps is too long", n_steps);
    rm_trace x = {
        .g = g, .steps = steps, .n_steps = (uint32_t)n_steps, .backward = (uint32_t)n_steps};
    newest *now;
    uint8_t *given; /* by value: a graph output that has been made once */
    TRY(count(ctx, &x));
    TRY(RM_SCRATCH(ctx, now, g->n_values));
    TRY(RM_SCRATCH(ctx, given, g->n_values));
    for (uint32_t v = 0; v < g->n_values; v++) now[v] = (newest){REMAT_NONE, REMAT_NONE};
    bool found;
    const uint32_t boundary = rm_boundary_op(g, &found);
    uint32_t n_reads = 0;
    for (uint32_t t = 0; t < n_steps; t++) {
        const uint32_t index = steps[t].index;
        x.read_begin[t] = n_reads;
        x.made_begin[t] = x.n_made;
        if (steps[t].kind == REMAT_RUN) run_op(&x, t, now, given, &n_reads);
        else if (steps[t].kind == REMAT_FETCH) now[index] = (newest){t, make(&x, index, t)};
        else read_value(&x, index, now, &n_reads);
        if (steps[t].kind == REMAT_RUN && index == boundary && x.backward == n_steps)
            x.backward = t + rm_is_boundary(g, index);
    }
    x.read_begin[n_steps] = n_reads;
    x.made_begin[n_steps] = x.n_made;
    for (uint32_t i = 0; i < n_reads; i++)
        if (rm_is_resident(g, x.reads[i].value))
            x.reads[i].instance = x.n_made + g->root[x.reads[i].value];
    *out = x;
    return REMAT_OK;
}

remat_status rm_trace_keep_all(remat_ctx *ctx, const remat_graph *g, rm_trace *out)
{
    remat_step *steps;
    TRY(rm_steps_keep_all(ctx, g, &steps));
    return rm_trace_of(ctx, g, steps, g->n_ops, out);
}
