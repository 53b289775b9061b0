/* kernel_ops.c: kernels as ops, so that every strategy can plan kernels. What stays inside a kernel
 * takes no memory, and a kernel runs again as a whole.
 *
 * Method: a kernel of several ops (kernels.c, in the graph's own order) becomes one op.
 * - It reads what its members read from outside.
 * - It makes what others read or the graph hands out, and the storages that such views need. All
 *   other values vanish.
 * - It is pinned if a member is. Its workspace is the largest of theirs, its flops are their sum.
 * - It costs their sum; by a roofline, what its own flops and bytes cost.
 * - Steps call it by its last member, the op in whose place it runs.
 * Ops that stand alone stay as they are. A kernel of several ops does not work in place.
 *
 * Invariant: op k of the new graph is kernel k.
 *
 * Cost: linear, besides finding the kernels. */
#include "fusion/kernel_ops.h"

#include "graph/copy.h"
#include "fusion/kernels.h"

#include <assert.h>
#include <string.h>

typedef struct fuser { /* arrays live in scratch */
    remat_ctx *ctx;
    const remat_graph *g;
    const rm_kernels *kernels;
    remat_builder *to;
    uint8_t *kept;    /* by value */
    uint32_t *now;    /* by value: index in the new graph, or REMAT_NONE */
    uint32_t *listed; /* by value: 1 + the kernel whose list it is in */
    RM_VEC(uint32_t) list;
} fuser;

static uint32_t size_of(const fuser *f, uint32_t kernel)
{
    return f->kernels->begin[kernel + 1] - f->kernels->begin[kernel];
}

static void keep(fuser *f, uint32_t value)
{
    f->kept[value] = 1;
    f->kept[f->g->root[value]] = 1;
}

static void find_kept(fuser *f)
{
    const remat_graph *g = f->g;
    for (uint32_t v = 0; v < g->n_values; v++) {
        const uint32_t op = g->producer[v];
        if (op == REMAT_NONE || size_of(f, f->kernels->of[op]) == 1 || g->is_output[v]) keep(f, v);
    }
    for (uint32_t op = 0; op < g->n_ops; op++)
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
            const uint32_t maker = g->producer[g->in[k]];
            if (maker != REMAT_NONE && f->kernels->of[maker] != f->kernels->of[op])
                keep(f, g->in[k]);
        }
}

static void write_values(fuser *f)
{
    const remat_graph *g = f->g;
    for (uint32_t v = 0; v < g->n_values; v++) {
        f->now[v] = REMAT_NONE;
        if (!f->kept[v]) continue;
        f->now[v] = rm_copy_value(f->to, g, v, rm_text(g, g->value_name[v]));
        if (!rm_owns_storage(g, v))
            remat_builder_value_set(f->to, f->now[v], REMAT_VALUE_ALIAS, f->now[g->root[v]]);
    }
}

static remat_status list_value(fuser *f, uint32_t kernel, uint32_t value)
{
    if (!f->kept[value] || f->listed[value] == kernel + 1) return REMAT_OK;
    f->listed[value] = kernel + 1;
    return RM_PUSH(f->ctx, f->list, f->now[value]);
}

static remat_status write_alone(fuser *f, uint32_t op)
{
    const remat_graph *g = f->g;
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
        TRY(RM_PUSH(f->ctx, f->list, f->now[g->in[k]]));
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        TRY(RM_PUSH(f->ctx, f->list, f->now[g->out[k]]));
    const uint32_t copied = rm_copy_op(f->to, g, op, rm_text(g, g->op_name[op]), f->list.items);
    rm_copy_inplace(f->to, g, op, copied);
    return f->to->status;
}

/* REMAT_ABSENT counts as nothing. At most the largest number that a graph may have. */
static int64_t add_up(int64_t a, int64_t b)
{
    if (a == REMAT_ABSENT) return b;
    if (b == REMAT_ABSENT) return a;
    return rm_add_to_sum(&a, b) ? a : RM_MAX_SUM - 1;
}

static void add_member(const remat_graph *g, uint32_t op, rm_op_record *record)
{
    record->flops = add_up(record->flops, g->flops[op]);
    record->pinned |= g->pinned[op];
    if (g->workspace[op] > record->workspace) record->workspace = g->workspace[op];
}

static remat_status list_inputs(fuser *f, uint32_t kernel, uint32_t op)
{
    const remat_graph *g = f->g;
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
        const uint32_t maker = g->producer[g->in[k]];
        if (maker == REMAT_NONE || f->kernels->of[maker] != kernel)
            TRY(list_value(f, kernel, g->in[k]));
    }
    return REMAT_OK;
}

static remat_status list_outputs(fuser *f, uint32_t kernel, uint32_t op)
{
    const remat_graph *g = f->g;
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        TRY(list_value(f, kernel, g->out[k]));
    return REMAT_OK;
}

static void sum_members(const remat_graph *g, const uint32_t *members, uint32_t n,
                        rm_op_record *record)
{
    bool all_given = true;
    for (uint32_t i = 0; i < n; i++) {
        add_member(g, members[i], record);
        all_given &= g->given_cost[members[i]] != REMAT_ABSENT;
    }
    for (uint32_t i = 0; i < n && all_given; i++)
        record->cost = add_up(record->cost, g->given_cost[members[i]]);
}

static remat_status write_kernel(fuser *f, uint32_t kernel)
{
    const remat_graph *g = f->g;
    const uint32_t *members = f->kernels->steps + f->kernels->begin[kernel];
    const uint32_t n = size_of(f, kernel), last = members[n - 1];
    for (uint32_t i = 0; i < n; i++) TRY(list_inputs(f, kernel, members[i]));
    const uint32_t n_in = (uint32_t)f->list.n;
    for (uint32_t i = 0; i < n; i++) TRY(list_outputs(f, kernel, members[i]));
    const uint32_t *list = f->list.n ? f->list.items : members; /* never NULL */
    const uint32_t op = remat_builder_op(f->to, rm_text(g, g->op_name[last]), list, n_in,
                                         list + n_in, (uint32_t)f->list.n - n_in);
    remat_builder_op_target(f->to, op, "remat.fused");
    if (f->to->status != REMAT_OK) return f->to->status;
    rm_op_record *record = &f->to->ops.items[op];
    sum_members(g, members, n, record);
    record->phase = g->phase[last];
    record->op_class = REMAT_CLASS_FUSIBLE;
    record->original = g->op_original[last];
    record->kernel = g->kernel[last];
    return REMAT_OK;
}

/* By any model but a roofline, a kernel costs what its ops cost. */
static void sum_costs(const fuser *f, remat_graph *made)
{
    assert(made->n_ops == f->kernels->n);
    if (rm_cost_is_roofline(made)) return;
    for (uint32_t k = 0; k < f->kernels->n; k++) {
        made->cost[k] = 0;
        for (uint32_t i = f->kernels->begin[k]; i < f->kernels->begin[k + 1]; i++)
            made->cost[k] += f->g->cost[f->kernels->steps[i]];
    }
    made->total_cost = f->g->total_cost;
}

static remat_status write_graph(fuser *f, remat_graph **out)
{
    const remat_graph *g = f->g;
    remat_graph *made = NULL;
    TRY(RM_SCRATCH(f->ctx, f->kept, g->n_values));
    TRY(RM_SCRATCH(f->ctx, f->now, g->n_values));
    TRY(RM_SCRATCH(f->ctx, f->listed, g->n_values));
    find_kept(f);
    write_values(f);
    for (uint32_t k = 0; k < f->kernels->n; k++) {
        f->list.n = 0;
        if (size_of(f, k) == 1) TRY(write_alone(f, f->kernels->steps[f->kernels->begin[k]]));
        else TRY(write_kernel(f, k));
    }
    for (uint32_t i = 0; i < g->n_outputs; i++) remat_builder_output(f->to, f->now[g->outputs[i]]);
    TRY(remat_builder_finish(f->to, &made));
    const remat_status status = rm_cost_apply(f->ctx, made, g->cost_model);
    if (status != REMAT_OK) {
        remat_graph_free(made);
        return status;
    }
    sum_costs(f, made);
    *out = made;
    return REMAT_OK;
}

remat_status rm_kernels_as_ops(remat_ctx *ctx, remat_graph **graph)
{
    const remat_graph *g = *graph;
    rm_trace x;
    rm_kernels kernels;
    remat_graph *made = NULL;
    TRY(rm_trace_keep_all(ctx, g, &x));
    TRY(rm_kernels_find(ctx, &x, &kernels));
    fuser f = {
        .ctx = ctx, .g = g, .kernels = &kernels, .to = remat_builder_new(ctx, rm_text(g, g->name))};
    if (!f.to) return REMAT_E_MEMORY;
    f.to->original = g;
    f.to->flags = g->flags | REMAT_FUSE;
    f.to->cost_unit = rm_builder_text(f.to, rm_text(g, g->given_unit));
    f.to->extra = rm_builder_text(f.to, rm_text(g, g->extra));
    const remat_status status = write_graph(&f, &made);
    RM_VEC_FREE(&ctx->heap, f.list);
    remat_builder_free(f.to);
    if (status != REMAT_OK) return status;
    remat_graph_free(*graph);
    *graph = made;
    return REMAT_OK;
}
