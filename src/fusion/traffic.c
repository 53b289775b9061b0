/* traffic.c: what fused kernels read and write (min-cut paper, section 2.2 and Table 1).
 *
 * Problem: a plan's time on a fusing compiler goes by the bytes it moves, not by the ops it runs:
 * count them for a schedule and its kernels. Method: a kernel reads every storage instance that its
 * members read and none of them made, once, and writes those of its own that steps outside read or
 * that are outputs; what stays inside moves nothing. An op that does not fuse reads its inputs and
 * writes all it makes.
 *   - A view moves nothing, whatever kernel it is in; its readers read the storage behind it.
 *   - A read of views counts the views: of one storage, the sum of the distinct values' sizes, at
 * most the storage (a slice is not the whole, an expanded view not more than it). A write counts
 * the size of the value that owns the storage, at most the storage.
 *   - A graph output is written once, by its first instance: a copy that is made again for the
 * backward pass is not handed out again.
 *   - remat.boundary moves nothing, but what it reads has to be there; a step with nothing to give
 * and no effect (no outputs, not pinned: an assertion) counts nothing at all. An offload reads and
 * a fetch writes its storage. O(steps + reads), integers only. */
#include "fusion/traffic.h"

#include "fusion/op_class.h"

typedef struct counter {
    const rm_trace *x;
    const rm_kernels *kernels;
    uint32_t *by_value;    /* by value: 1 + the kernel that was the last to read it, */
    uint32_t *instance_of; /* and from which instance */
    uint32_t *by_instance; /* by instance: 1 + the kernel that was the last to read it, */
    uint32_t *entry;       /* and where that is in `reads` */
    uint32_t n_reads;
    rm_kernel_traffic sum;
    bool overflow;
} counter;

static void add(counter *c, int64_t *sum, int64_t bytes)
{
    if (rm_add_overflows(*sum, bytes, sum) || *sum >= RM_MAX_SUM) c->overflow = true, *sum = 0;
}

static remat_moved *moved(counter *c, uint32_t kernel)
{
    return c->kernels->fused[kernel] ? &c->sum.kernels : &c->sum.others;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* boundary: the storage has to be there, but nothing moves. */
static void read_instance(counter *c, uint32_t kernel, const rm_read *read, bool boundary)
{
    const int64_t storage = c->x->g->storage[read->value];
    if (c->by_instance[read->instance] != kernel + 1) {
        c->by_instance[read->instance] = kernel + 1;
        c->entry[read->instance] = c->n_reads;
        c->sum.reads[c->n_reads++] = (rm_kernel_read){read->instance, 0};
        if (read->instance < c->x->n_made) c->sum.n_readers[read->instance]++;
    }
    if (boundary ||
        (c->by_value[read->value] == kernel + 1 && c->instance_of[read->value] == read->instance))
        return;
    c->by_value[read->value] = kernel + 1;
    c->instance_of[read->value] = read->instance;
    int64_t *counted = &c->sum.reads[c->entry[read->instance]].bytes;
    const int64_t bytes = least(least(c->x->g->size[read->value], storage), storage - *counted);
    *counted += bytes;
    add(c, &moved(c, kernel)->read_bytes, bytes);
}

static bool moves_nothing(const rm_trace *x, uint32_t t)
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
        if (moves_nothing(x, t)) continue;
        for (uint32_t k = x->read_begin[t]; k < x->read_begin[t + 1]; k++) {
            const rm_read *read = &x->reads[k];
            const bool inside =
                read->instance < x->n_made && c->kernels->of[x->maker[read->instance]] == kernel;
            if (!inside) read_instance(c, kernel, read, is_boundary_step(x, t));
        }
    }
}

static int64_t written(const rm_trace *x, const rm_kernels *kernels,
                       const rm_kernel_traffic *traffic, uint32_t instance)
{
    const bool needed = !kernels->fused[kernels->of[x->maker[instance]]] ||
                        traffic->n_readers[instance] || x->delivered[instance];
    return needed && !is_boundary_step(x, x->maker[instance])
               ? rm_written_bytes(x->g, x->root[instance])
               : 0;
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
