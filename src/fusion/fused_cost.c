/* fused_cost.c: what it costs to run an op again inside a fused kernel.
 *
 * Problem: by a roofline an op that runs again reads its inputs and writes its outputs. Behind a
 * compiler that fuses, an elementwise op that runs again right before its reader becomes a part of
 * the reader's kernel: its result is never written, and not read either. Only what it reads from
 * outside moves, in place of what it makes (min-cut paper, sections 2.2 and 3.2). Kernels as ops
 * (kernel_ops.c) know that of the kernels of keep-all, but these run again as a whole or not at
 * all.
 *
 * Method: the kernels of keep-all (kernels.c) say what an op that fuses takes. It is the time for
 *     - the bytes that it reads from outside its kernel, and that no earlier member reads,
 *     - less the bytes of what it makes, if kernels of the backward pass read that: they read it no
 *       more, but they read its inputs,
 *     - or more by them, if the backward pass has an op that reads it and does not fuse: then it is
 *       written,
 * and not less than its arithmetic, nor than 1 ns where it makes a storage. An op that does not
 * fuse costs what a roofline says.
 *
 * So an op costs what it takes to run it once more, and their sum is less than the time of all
 * kernels: it lacks what the forward pass writes for the backward pass. That is a constant. It is
 * charged to the last op of the graph, which no op follows that could read what it makes, so that
 * there is no reason to run it again. Then keep-all costs what its kernels cost; or more where the
 * sum is not less, since each op is rounded up and is bound by bytes or arithmetic by itself.
 *
 * What this leaves out: kernels that a plan makes larger or tears apart. `remat info --fuse` of a
 * lowered plan counts its kernels; bench/fused compares.
 *
 * Cost: linear, besides finding the kernels. */
#include "fusion/fused_cost.h"

#include "fusion/traffic.h"

typedef struct pricer { /* arrays live in scratch */
    remat_graph *g;
    rm_trace x;
    rm_kernels kernels;
    rm_kernel_traffic traffic;
    const rm_device *device;
    uint8_t *reads_fused, *reads_whole; /* by instance: a step of the backward pass reads it that
                                         * is in another kernel of fused ops; that does not fuse */
    uint32_t *reader;                   /* by instance: 1 + the last kernel that read it */
    int64_t all;                        /* what the kernels cost */
} pricer;

/* Who reads what in the backward pass. In a graph without phases all of it counts as such. */
static void find_readers(pricer *c)
{
    const rm_trace *x = &c->x;
    for (uint32_t t = x->backward < x->n_steps ? x->backward : 0; t < x->n_steps; t++) {
        if (rm_moves_nothing(x, t)) continue;
        const uint32_t kernel = c->kernels.of[t];
        uint8_t *reads = c->kernels.fused[kernel] ? c->reads_fused : c->reads_whole;
        for (uint32_t k = x->read_begin[t]; k < x->read_begin[t + 1]; k++) {
            const uint32_t instance = x->reads[k].instance;
            if (instance < x->n_made && c->kernels.of[x->maker[instance]] != kernel)
                reads[instance] = 1;
        }
    }
}

/* The bytes that step t reads first in its kernel. */
static int64_t bytes_read(pricer *c, uint32_t t)
{
    const rm_trace *x = &c->x;
    const remat_graph *g = c->g;
    const uint32_t kernel = c->kernels.of[t];
    int64_t bytes = 0;
    for (uint32_t k = x->read_begin[t]; k < x->read_begin[t + 1]; k++) {
        const rm_read *read = &x->reads[k];
        const bool inside =
            read->instance < x->n_made && c->kernels.of[x->maker[read->instance]] == kernel;
        if (inside || c->reader[read->instance] == kernel + 1) continue;
        c->reader[read->instance] = kernel + 1;
        bytes += g->size[read->value] < g->storage[read->value] ? g->size[read->value]
                                                                : g->storage[read->value];
    }
    return bytes;
}

/* In ns, of a step whose op fuses. What is free by a roofline, views and the boundary, stays so. */
static int64_t price(pricer *c, uint32_t t)
{
    const rm_trace *x = &c->x;
    const uint32_t op = x->steps[t].index;
    if (c->g->cost[op] == 0) return 0;
    int64_t bytes = bytes_read(c, t), written = 0, spared = 0;
    for (uint32_t i = x->made_begin[t]; i < x->made_begin[t + 1]; i++) {
        const int64_t made = rm_written_bytes(c->g, x->root[i]);
        if (c->reads_whole[i]) written += made;
        else if (c->reads_fused[i]) spared += made;
    }
    bytes += written - spared;
    const int64_t memory = rm_device_memory_ns(c->device, bytes < 0 ? 0 : bytes),
                  compute = rm_device_compute_ns(c->device, c->g, op),
                  ns = memory > compute ? memory : compute;
    return ns > 1 ? ns : 1;
}

/* Prices the members of a kernel of fused ops, and adds what it costs as a whole. */
static bool price_kernel(pricer *c, uint32_t kernel)
{
    const remat_moved moved = rm_kernel_traffic_of_one(&c->x, &c->kernels, &c->traffic, kernel);
    int64_t compute = 0;
    for (uint32_t i = c->kernels.begin[kernel]; i < c->kernels.begin[kernel + 1]; i++) {
        const uint32_t t = c->kernels.steps[i], op = c->x.steps[t].index;
        if (!rm_add_to_sum(&compute, rm_device_compute_ns(c->device, c->g, op))) return false;
        c->g->cost[op] = price(c, t);
    }
    const int64_t memory = rm_device_memory_ns(c->device, moved.read_bytes + moved.written_bytes);
    return rm_add_to_sum(&c->all, memory > compute ? memory : compute);
}

static bool price_all(pricer *c)
{
    remat_graph *g = c->g;
    int64_t total = 0;
    for (uint32_t k = 0; k < c->kernels.n; k++) {
        const uint32_t first = c->x.steps[c->kernels.steps[c->kernels.begin[k]]].index;
        if (c->kernels.fused[k] ? !price_kernel(c, k) : !rm_add_to_sum(&c->all, g->cost[first]))
            return false;
    }
    for (uint32_t op = 0; op < g->n_ops; op++)
        if (!rm_add_to_sum(&total, g->cost[op])) return false;
    if (g->n_ops && c->all > total) g->cost[g->n_ops - 1] += c->all - total;
    g->total_cost = c->all > total ? c->all : total;
    return true;
}

static remat_status find_costs(remat_ctx *ctx, pricer *c)
{
    const remat_graph *g = c->g;
    TRY(rm_device_find(ctx, g, &c->device));
    TRY(rm_trace_keep_all(ctx, g, &c->x));
    TRY(rm_kernels_find(ctx, &c->x, &c->kernels));
    TRY(rm_kernel_traffic_of(ctx, &c->x, &c->kernels, &c->traffic));
    TRY(RM_SCRATCH(ctx, c->reads_fused, c->x.n_made));
    TRY(RM_SCRATCH(ctx, c->reads_whole, c->x.n_made));
    TRY(RM_SCRATCH(ctx, c->reader, (size_t)c->x.n_made + g->n_values));
    find_readers(c);
    if (!price_all(c)) /* what all kernels move may pass 2^62 bytes, what one moves does not */
        return rm_fail(ctx, REMAT_E_INPUT, "the costs add up to 2^62 or more under cost model '%s'",
                       g->cost_model);
    return REMAT_OK;
}

remat_status rm_fused_costs(remat_ctx *ctx, remat_graph *g)
{
    if (!rm_cost_is_fused(g) || (g->flags & REMAT_FUSE)) return REMAT_OK;
    pricer c = {.g = g};
    const rm_mark mark = rm_scratch_mark(ctx);
    const remat_status status = find_costs(ctx, &c);
    rm_scratch_release(ctx, mark);
    return status;
}
