/* trace.c: which step made what each step reads.
 *
 * Problem: fusion, traffic and the passes between kernels ask who reads whose result, in a schedule
 * with repeated ops. The schedule itself says only "the newest instance" (docs/model.md).
 *
 * Method: one scan keeps, for every value, the step of its newest instance and the storage instance
 * that it refers to.
 *
 * The schedule has two parts. The forward part is all before the first run of the op that brings
 * the tangents. The rest is the backward part, forward ops that run again included. This is where a
 * compiler cuts the joint graph in two (min-cut paper, sections 2.4 and 3.2).
 *
 * Cost: O(steps + reads) time and memory. */
#include "fusion/trace.h"

#include <assert.h>

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

static remat_status allocate(remat_ctx *ctx, rm_trace *x)
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

/* Resident storages get their instance numbers, n_made and up, when all steps are seen. */
typedef struct newest {
    uint32_t maker, instance;
} newest;

typedef struct scan {
    rm_trace x;
    newest *now;      /* by value: its newest instance */
    uint8_t *is_made; /* by value: it is a graph output, and has been made */
    uint32_t n_reads;
} scan;

static uint32_t make(rm_trace *x, uint32_t value, uint32_t step)
{
    x->maker[x->n_made] = step;
    x->root[x->n_made] = value;
    return x->n_made++;
}

static void read_value(scan *s, uint32_t value)
{
    s->x.reads[s->n_reads++] = (rm_read){value, s->now[value].maker, s->now[value].instance};
}

static void run_op(scan *s, uint32_t t)
{
    rm_trace *x = &s->x;
    const remat_graph *g = x->g;
    const uint32_t op = x->steps[t].index;
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) read_value(s, g->in[k]);
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++) {
        const uint32_t v = g->out[k], source = g->out_source[k];
        const uint32_t instance = source == REMAT_NONE ? make(x, v, t) : s->now[source].instance;
        s->now[v] = (newest){t, instance};
        if (!g->is_output[v] || s->is_made[v] || rm_is_resident(g, v)) continue;
        s->is_made[v] = 1;
        x->delivered[instance] = 1;
    }
}

static void take_step(scan *s, uint32_t t)
{
    const remat_step step = s->x.steps[t];
    s->x.read_begin[t] = s->n_reads;
    s->x.made_begin[t] = s->x.n_made;
    if (step.kind == REMAT_RUN) run_op(s, t);
    else if (step.kind == REMAT_FETCH) s->now[step.index] = (newest){t, make(&s->x, step.index, t)};
    else read_value(s, step.index);
}

/* The step after the pseudo-op `remat.boundary`, or the first run of the op that stands for it. */
static uint32_t find_backward(const rm_trace *x)
{
    bool found;
    const uint32_t boundary = rm_boundary_op(x->g, &found);
    for (uint32_t t = 0; t < x->n_steps; t++)
        if (x->steps[t].kind == REMAT_RUN && x->steps[t].index == boundary)
            return t + rm_is_boundary(x->g, boundary);
    return x->n_steps;
}

remat_status rm_trace_of(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                         size_t n_steps, rm_trace *out)
{
    if (n_steps >= REMAT_NONE)
        return rm_fail(ctx, REMAT_E_USAGE, "a schedule of %zu steps is too long", n_steps);
    scan s = {.x = {.g = g, .steps = steps, .n_steps = (uint32_t)n_steps}};
    rm_trace *x = &s.x;
    TRY(allocate(ctx, x));
    TRY(RM_SCRATCH(ctx, s.now, g->n_values));
    TRY(RM_SCRATCH(ctx, s.is_made, g->n_values));
    for (uint32_t v = 0; v < g->n_values; v++) s.now[v] = (newest){REMAT_NONE, REMAT_NONE};
    for (uint32_t t = 0; t < n_steps; t++) take_step(&s, t);
    x->read_begin[n_steps] = s.n_reads;
    x->made_begin[n_steps] = x->n_made;
    x->backward = find_backward(x);
    for (uint32_t i = 0; i < s.n_reads; i++) {
        rm_read *read = &x->reads[i];
        if (rm_is_resident(g, read->value)) read->instance = x->n_made + g->root[read->value];
        assert(read->instance != REMAT_NONE); /* the schedule is valid */
    }
    *out = *x;
    return REMAT_OK;
}

remat_status rm_trace_keep_all(remat_ctx *ctx, const remat_graph *g, rm_trace *out)
{
    remat_step *steps;
    TRY(rm_steps_keep_all(ctx, g, &steps));
    return rm_trace_of(ctx, g, steps, g->n_ops, out);
}
