/* traffic.c: what fused kernels read and write (min-cut paper, section 2.2 and Table 1).
 *
 * Problem: with a fusing compiler, the time of a plan goes by the bytes that it moves, not by the
 * ops that it runs. Count these bytes for a schedule and its kernels.
 *
 * Method: a kernel reads, once, every storage instance that its members read and none of them made.
 * It writes those of its own that steps outside read or that are outputs. What stays inside moves
 * nothing. An op that does not fuse reads its inputs and writes all it makes.
 * - A view moves nothing, whatever kernel it is in. Its readers read the storage behind it.
 * - A read of views counts the views: of one storage, the sum of the distinct values' sizes, and at
 *   most the storage. A slice is not the whole, and an expanded view is not more than its storage.
 * - A write counts the size of the value that owns the storage, and at most the storage.
 * - A graph output is written once, by its first instance. A copy that is made again for the
 *   backward pass is not handed out again.
 * - remat.boundary moves nothing, but what it reads has to be there.
 * - A step without outputs that is not pinned (an assertion) counts nothing at all.
 * - An offload reads its storage, and a fetch writes it.
 *
 * Cost: O(steps + reads), in integers. */
#include "fusion/traffic.h"

#include <assert.h>

#include "fusion/op_class.h"

typedef struct counter {
    const rm_trace *x;
    const rm_kernels *kernels;
    uint32_t *by_value;    /* by value: 1 + the last kernel that read it */
    uint32_t *instance_of; /* by value: from which instance that kernel read it */
    uint32_t *by_instance; /* by instance: 1 + the last kernel that read it */
    uint32_t *entry;       /* by instance: where that read is in sum.reads */
    uint32_t n_reads;
    rm_kernel_traffic sum;
    bool overflow;
} counter;

static void add(counter *c, int64_t *sum, int64_t bytes)
{
    if (!rm_add_to_sum(sum, bytes)) c->overflow = true;
}

static remat_moved *moved(counter *c, uint32_t kernel)
{
    return c->kernels->fused[kernel] ? &c->sum.kernels : &c->sum.others;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The kernel needs the storage instance. */
static void read_instance(counter *c, uint32_t kernel, uint32_t instance)
{
    if (c->by_instance[instance] == kernel + 1) return;
    c->by_instance[instance] = kernel + 1;
    c->entry[instance] = c->n_reads;
    c->sum.reads[c->n_reads++] = (rm_kernel_read){instance, 0};
    if (instance < c->x->n_made) c->sum.n_readers[instance]++;
}

/* The kernel moves the value in. read_instance has been called for its instance. */
static void read_value(counter *c, uint32_t kernel, const rm_read *read)
{
    const uint32_t v = read->value;
    if (c->by_value[v] == kernel + 1 && c->instance_of[v] == read->instance) return;
    c->by_value[v] = kernel + 1;
    c->instance_of[v] = read->instance;
    const int64_t storage = c->x->g->storage[v];
    int64_t *counted = &c->sum.reads[c->entry[read->instance]].bytes;
    assert(*counted <= storage);
    const int64_t bytes = least(least(c->x->g->size[v], storage), storage - *counted);
    *counted += bytes;
    add(c, &moved(c, kernel)->read_bytes, bytes);
}

bool rm_moves_nothing(const rm_trace *x, uint32_t t)
{
    const remat_graph *g = x->g;
    const uint32_t op = x->steps[t].index;
    if (x->steps[t].kind != REMAT_RUN) return false;
    return rm_is_view_op(g, op) || (g->out_begin[op] == g->out_begin[op + 1] && !g->pinned[op]);
}

static bool is_boundary_step(const rm_trace *x, uint32_t t)
{
    return x->steps[t].kind == REMAT_RUN && rm_is_boundary(x->g, x->steps[t].index);
}

static void count_reads(counter *c, uint32_t kernel)
{
    const rm_trace *x = c->x;
    c->sum.begin[kernel] = c->n_reads;
    for (uint32_t i = c->kernels->begin[kernel]; i < c->kernels->begin[kernel + 1]; i++) {
        const uint32_t t = c->kernels->steps[i];
        if (rm_moves_nothing(x, t)) continue;
        for (uint32_t k = x->read_begin[t]; k < x->read_begin[t + 1]; k++) {
            const rm_read *read = &x->reads[k];
            const bool inside =
                read->instance < x->n_made && c->kernels->of[x->maker[read->instance]] == kernel;
            if (inside) continue;
            read_instance(c, kernel, read->instance);
            if (!is_boundary_step(x, t)) read_value(c, kernel, read);
        }
    }
}

/* Bytes that are written of an instance. */
static int64_t written(const rm_trace *x, const rm_kernels *kernels,
                       const rm_kernel_traffic *traffic, uint32_t instance)
{
    const uint32_t maker = x->maker[instance];
    const bool needed = !kernels->fused[kernels->of[maker]] || traffic->n_readers[instance] ||
                        x->delivered[instance];
    if (!needed || is_boundary_step(x, maker)) return 0;
    return rm_written_bytes(x->g, x->root[instance]);
}

static void count_writes(counter *c)
{
    const rm_trace *x = c->x;
    for (uint32_t i = 0; i < x->n_made; i++)
        add(c, &moved(c, c->kernels->of[x->maker[i]])->written_bytes,
            written(x, c->kernels, &c->sum, i));
}

remat_moved rm_kernel_traffic_of_one(const rm_trace *x, const rm_kernels *kernels,
                                     const rm_kernel_traffic *traffic, uint32_t kernel)
{
    remat_moved sum = {0, 0}; /* distinct instances: neither can overflow */
    for (uint32_t i = traffic->begin[kernel]; i < traffic->begin[kernel + 1]; i++)
        sum.read_bytes += traffic->reads[i].bytes;
    for (uint32_t i = kernels->begin[kernel]; i < kernels->begin[kernel + 1]; i++)
        for (uint32_t k = x->made_begin[kernels->steps[i]];
             k < x->made_begin[kernels->steps[i] + 1]; k++)
            sum.written_bytes += written(x, kernels, traffic, k);
    return sum;
}

remat_status rm_kernel_traffic_of(remat_ctx *ctx, const rm_trace *x, const rm_kernels *kernels,
                                  rm_kernel_traffic *out)
{
    counter c = {.x = x, .kernels = kernels};
    const size_t n_values = x->g->n_values, n_instances = (size_t)x->n_made + n_values;
    TRY(RM_SCRATCH(ctx, c.by_value, n_values));
    TRY(RM_SCRATCH(ctx, c.instance_of, n_values));
    TRY(RM_SCRATCH(ctx, c.by_instance, n_instances));
    TRY(RM_SCRATCH(ctx, c.entry, n_instances));
    TRY(RM_SCRATCH(ctx, c.sum.begin, (size_t)kernels->n + 1));
    TRY(RM_SCRATCH(ctx, c.sum.reads, x->read_begin[x->n_steps]));
    TRY(RM_SCRATCH(ctx, c.sum.n_readers, x->n_made));
    for (uint32_t k = 0; k < kernels->n; k++) count_reads(&c, k);
    c.sum.begin[kernels->n] = c.n_reads;
    count_writes(&c);
    const int64_t parts[] = {c.sum.kernels.read_bytes, c.sum.kernels.written_bytes,
                             c.sum.others.read_bytes, c.sum.others.written_bytes};
    for (size_t i = 0; i < RM_LEN(parts); i++) add(&c, &c.sum.total, parts[i]);
    if (c.overflow) c.sum.total = REMAT_ABSENT;
    *out = c.sum;
    return REMAT_OK;
}

remat_status rm_traffic_bytes(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                              size_t n_steps, int64_t *out)
{
    bool phases = false, classes = false;
    for (uint32_t op = 0; op < g->n_ops; op++) {
        phases |= g->phase[op] != REMAT_PHASE_NONE;
        classes |= rm_op_class(ctx, g, op) != REMAT_CLASS_OTHER;
    }
    *out = REMAT_ABSENT;
    if (!phases || !classes) return REMAT_OK;
    rm_trace x;
    rm_kernels kernels;
    rm_kernel_traffic traffic;
    TRY(rm_trace_of(ctx, g, steps, n_steps, &x));
    TRY(rm_kernels_find(ctx, &x, &kernels));
    TRY(rm_kernel_traffic_of(ctx, &x, &kernels, &traffic));
    *out = traffic.total;
    return REMAT_OK;
}
