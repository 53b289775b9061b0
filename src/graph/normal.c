/* normal.c: views collapsed and resident values dropped, and the way back.
 *
 * Why nothing is lost:
 * - A view takes no memory of its own. One that costs nothing can run directly before each op that
 *   reads it. At that moment its storage is in memory, since the reader needs it. Whatever else is
 *   in memory then is still in memory at the reader, or the reader has an output of as many bytes
 *   in its place. So the added step is never the peak.
 * - For the same reason these need no more memory: an offload directly after the step that made the
 *   storage; and a view that nobody reads, directly after the first run of its storage's op.
 * - Conversely, a schedule that reads an old instance through a stale view keeps that instance in
 *   memory. To read it directly, instead of the newer one, costs nothing if the view is collapsed,
 *   or if the op that made the storage again made nothing else that can get lost. So schedules
 *   without stale reads are enough. In the remaining case they may be dearer than others:
 *   docs/exact.md, "Back".
 *
 * Cost: O(values + edges) to build, O(steps + views run) to expand. */
#include "graph/normal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/csr.h"
#include "graph/demand.h"

/* ---- there ---- */

typedef struct build {
    const remat_graph *g;
    rm_normal *nm;
    uint32_t *store_of; /* by root value */
    uint32_t *token_of; /* by value: the token that its readers read as well; REMAT_NONE: none */
    /* 1 + the last op that listed it: by storage; from n_values on, by root value of a resident. */
    uint32_t *seen;
} build;

/* It is a view that costs nothing. All that it reads is one storage, and no view that stays. */
static bool is_collapsible(const build *b, uint32_t op)
{
    const remat_graph *g = b->g;
    if (g->pinned[op] || g->cost[op] != 0 || g->workspace[op] != 0 || !rm_is_view_op(g, op))
        return false;
    const uint32_t root = g->root[g->out[g->out_begin[op]]];
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        if (g->root[g->out[k]] != root) return false;
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
        if (b->token_of[g->in[k]] != REMAT_NONE ||
            (!rm_is_resident(g, g->in[k]) && g->root[g->in[k]] != root))
            return false;
    return true;
}

static void add_once(build *b, uint32_t *list, uint32_t *n, uint32_t store, uint32_t stamp)
{
    if (store == REMAT_NONE || b->seen[store] == stamp) return;
    b->seen[store] = stamp;
    list[(*n)++] = store;
}

/* The storage is one of nm->in[from .. to), which ascend. */
static void mark_taken(const build *b, uint32_t from, uint32_t to, uint32_t store)
{
    while (from + 1 < to) {
        const uint32_t middle = from + (to - from) / 2;
        if (b->nm->in[middle] <= store) from = middle;
        else to = middle;
    }
    assert(b->nm->in[from] == store);
    b->nm->may_take[from] = 1;
}

static void list_inputs(build *b, uint32_t op)
{
    rm_normal *nm = b->nm;
    const remat_graph *g = b->g;
    const uint32_t stamp = nm->n_ops + 1;
    uint32_t n = nm->in_begin[nm->n_ops], n_resident = nm->resident_begin[nm->n_ops];
    const uint32_t from = n;
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
        const uint32_t v = g->in[k], root = g->root[v];
        add_once(b, nm->in, &n, b->token_of[v], stamp);
        if (!rm_is_resident(g, v)) {
            add_once(b, nm->in, &n, b->store_of[root], stamp);
        } else if (b->seen[g->n_values + root] != stamp) {
            b->seen[g->n_values + root] = stamp;
            nm->resident_in[n_resident++] = root;
        }
    }
    qsort(nm->in + from, n - from, sizeof *nm->in, rm_by_index);
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        if (g->out_takes[k] != REMAT_NONE)
            mark_taken(b, from, n, b->store_of[g->root[rm_taken_value(g, op, k)]]);
    nm->in_begin[nm->n_ops + 1] = n;
    nm->resident_begin[nm->n_ops + 1] = n_resident;
}

static void list_outputs(build *b, uint32_t op)
{
    rm_normal *nm = b->nm;
    const remat_graph *g = b->g;
    uint32_t n = nm->out_begin[nm->n_ops];
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++) {
        const uint32_t v = g->out[k], store = nm->n_stores++;
        const bool token = g->out_source[k] != REMAT_NONE;
        nm->value[store] = v;
        nm->bytes[store] = token ? 0 : g->storage[v];
        nm->base[store] = token && !rm_is_resident(g, v) ? b->store_of[g->root[v]] : REMAT_NONE;
        nm->is_output[store] |= g->is_output[v];
        if (token) b->token_of[v] = store;
        else b->store_of[v] = store;
        nm->out[n++] = store;
    }
    nm->out_begin[nm->n_ops + 1] = n;
}

static void add_op(build *b, uint32_t op)
{
    rm_normal *nm = b->nm;
    list_inputs(b, op);
    list_outputs(b, op);
    nm->cost[nm->n_ops] = b->g->cost[op];
    nm->workspace[nm->n_ops] = b->g->workspace[op];
    nm->pinned[nm->n_ops] = b->g->pinned[op];
    nm->op[nm->n_ops] = op;
    nm->n_ops++;
}

static remat_status allocate(remat_ctx *ctx, rm_normal *nm, uint32_t n_ops, uint32_t n_in,
                             uint32_t n_out)
{
    TRY(RM_SCRATCH(ctx, nm->in_begin, n_ops + 1));
    TRY(RM_SCRATCH(ctx, nm->in, 2 * (size_t)n_in));
    TRY(RM_SCRATCH(ctx, nm->may_take, 2 * (size_t)n_in));
    TRY(RM_SCRATCH(ctx, nm->out_begin, n_ops + 1));
    TRY(RM_SCRATCH(ctx, nm->out, n_out));
    TRY(RM_SCRATCH(ctx, nm->cost, n_ops));
    TRY(RM_SCRATCH(ctx, nm->workspace, n_ops));
    TRY(RM_SCRATCH(ctx, nm->pinned, n_ops));
    TRY(RM_SCRATCH(ctx, nm->op, n_ops));
    TRY(RM_SCRATCH(ctx, nm->resident_begin, n_ops + 1));
    TRY(RM_SCRATCH(ctx, nm->resident_in, n_in));
    TRY(RM_SCRATCH(ctx, nm->bytes, n_out));
    TRY(RM_SCRATCH(ctx, nm->is_output, n_out));
    TRY(RM_SCRATCH(ctx, nm->value, n_out));
    return RM_SCRATCH(ctx, nm->base, n_out);
}

remat_status rm_normal_of(remat_ctx *ctx, const remat_graph *g, rm_normal *out)
{
    rm_normal nm = {.g = g, .resident_bytes = g->resident_bytes};
    build b = {.g = g, .nm = &nm};
    TRY(allocate(ctx, &nm, g->n_ops, g->n_in, g->n_out));
    TRY(RM_SCRATCH(ctx, nm.collapsed, g->n_ops));
    TRY(RM_SCRATCH(ctx, b.store_of, g->n_values));
    TRY(RM_SCRATCH(ctx, b.token_of, g->n_values));
    TRY(RM_SCRATCH(ctx, b.seen, 2 * (size_t)g->n_values));
    for (uint32_t v = 0; v < g->n_values; v++) b.store_of[v] = b.token_of[v] = REMAT_NONE;
    for (uint32_t op = 0; op < g->n_ops; op++) {
        nm.collapsed[op] = is_collapsible(&b, op);
        if (!nm.collapsed[op]) add_op(&b, op);
    }
    /* An output that is a view keeps its storage. */
    for (uint32_t v = 0; v < g->n_values; v++)
        if (g->is_output[v] && !rm_is_resident(g, v)) nm.is_output[b.store_of[g->root[v]]] = 1;
    TRY(rm_normal_index(ctx, &nm));
    RM_CHECK(true, rm_normal_check(&nm));
    *out = nm;
    return REMAT_OK;
}

/* ---- what follows from the lists ---- */

remat_status rm_normal_index(remat_ctx *ctx, rm_normal *nm)
{
    rm_csr readers, tokens;
    TRY(rm_csr_invert(ctx, nm->n_stores, nm->n_ops, nm->in_begin, nm->in, NULL, &readers));
    TRY(rm_csr_by_key(ctx, nm->n_stores, nm->n_stores, nm->base, &tokens));
    TRY(RM_SCRATCH(ctx, nm->producer, nm->n_stores));
    for (uint32_t op = 0; op < nm->n_ops; op++)
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
            nm->producer[nm->out[k]] = op;
    nm->reader_begin = readers.begin;
    nm->readers = readers.items;
    nm->token_begin = tokens.begin;
    nm->tokens = tokens.items;
    return REMAT_OK;
}

/* ---- and back ---- */

typedef struct expander {
    remat_ctx *ctx;
    const rm_normal *nm;
    const remat_graph *g;
    rm_schedule *out;
    uint32_t *made;   /* by root value: how many times; resident: 1 */
    uint32_t *refers; /* by value: which of those its newest instance is; 0: none */
    uint32_t *dead;   /* by root value: the first collapsed op that nobody reads, or REMAT_NONE */
    uint32_t *next_dead; /* by op: the next such op of the same root, or REMAT_NONE */
    uint8_t *offload;    /* by value: it is fetched, and not offloaded yet */
    rm_demand views;     /* stale ones run before what reads them */
} expander;

static bool is_stale(const expander *x, uint32_t value)
{
    const uint32_t op = x->g->producer[value];
    return op != REMAT_NONE && x->nm->collapsed[op] &&
           x->refers[value] != x->made[x->g->root[value]];
}

static uint32_t stale_maker(void *user, uint32_t value)
{
    const expander *x = user;
    return is_stale(x, value) ? x->g->producer[value] : REMAT_NONE;
}

static remat_status run_view(void *user, uint32_t op)
{
    expander *x = user;
    const remat_graph *g = x->g;
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        x->refers[g->out[k]] = x->made[g->root[g->out[k]]];
    return rm_schedule_run(x->ctx, x->out, op);
}

static remat_status run_dead_views(expander *x, uint32_t root)
{
    for (uint32_t op = x->dead[root]; op != REMAT_NONE; op = x->next_dead[op])
        TRY(rm_demand_run(&x->views, op));
    x->dead[root] = REMAT_NONE;
    return REMAT_OK;
}

static void note_instance(expander *x, uint32_t value)
{
    x->made[value]++;
    x->refers[value] = x->made[value];
}

/* A step has just made the storage. What has to come directly after its first run follows. */
static remat_status made_again(expander *x, uint32_t value)
{
    note_instance(x, value);
    if (x->offload[value]) {
        TRY(RM_PUSH(x->ctx, *x->out, ((remat_step){REMAT_OFFLOAD, value})));
        x->offload[value] = 0;
    }
    return run_dead_views(x, value);
}

static remat_status run_op(expander *x, uint32_t op)
{
    const remat_graph *g = x->g;
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
        if (is_stale(x, g->in[k])) TRY(rm_demand_run(&x->views, g->producer[g->in[k]]));
    TRY(rm_schedule_run(x->ctx, x->out, op));
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        if (g->out_source[k] == REMAT_NONE) TRY(made_again(x, g->out[k]));
    return REMAT_OK;
}

static bool is_read(const remat_graph *g, const uint8_t *read, uint32_t op)
{
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        if (read[g->out[k]] || g->is_output[g->out[k]]) return true;
    return false;
}

/* Lists the collapsed ops that nobody reads, by the storage they look at. */
static remat_status list_dead_views(expander *x)
{
    const remat_graph *g = x->g;
    uint8_t *read; /* by value: an op reads it */
    TRY(RM_SCRATCH(x->ctx, read, g->n_values));
    for (uint32_t k = 0; k < g->n_in; k++) read[g->in[k]] = 1;
    for (uint32_t v = 0; v < g->n_values; v++) x->dead[v] = REMAT_NONE;
    for (uint32_t op = g->n_ops; op-- > 0;) {
        if (!x->nm->collapsed[op] || is_read(g, read, op)) continue;
        const uint32_t root = g->root[g->out[g->out_begin[op]]];
        x->next_dead[op] = x->dead[root];
        x->dead[root] = op;
    }
    return REMAT_OK;
}

static remat_status begin_expansion(expander *x, const rm_code *codes, size_t n)
{
    const remat_graph *g = x->g;
    TRY(RM_SCRATCH(x->ctx, x->made, g->n_values));
    TRY(RM_SCRATCH(x->ctx, x->refers, g->n_values));
    TRY(RM_SCRATCH(x->ctx, x->dead, g->n_values));
    TRY(RM_SCRATCH(x->ctx, x->next_dead, g->n_ops));
    TRY(RM_SCRATCH(x->ctx, x->offload, g->n_values));
    x->views = (rm_demand){
        .in_begin = g->in_begin, .in = g->in, .ask = stale_maker, .run = run_view, .user = x};
    TRY(rm_demand_begin(x->ctx, &x->views, g->n_ops));
    TRY(list_dead_views(x));
    for (uint32_t v = 0; v < g->n_values; v++) x->made[v] = g->producer[v] == REMAT_NONE;
    for (size_t i = 0; i < n; i++)
        if (rm_is_fetch(x->nm, codes[i])) x->offload[x->nm->value[codes[i] - x->nm->n_ops]] = 1;
    return REMAT_OK;
}

static remat_status end_expansion(expander *x)
{
    const remat_graph *g = x->g;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (is_stale(x, g->outputs[i])) TRY(rm_demand_run(&x->views, g->producer[g->outputs[i]]));
    /* What is left are views of resident values that nobody reads. */
    for (uint32_t v = 0; v < g->n_values; v++) TRY(run_dead_views(x, v));
    return REMAT_OK;
}

static remat_status expand(expander *x, const rm_code *codes, size_t n)
{
    const rm_normal *nm = x->nm;
    TRY(begin_expansion(x, codes, n));
    for (size_t i = 0; i < n; i++) {
        if (!rm_is_fetch(nm, codes[i])) {
            TRY(run_op(x, nm->op[codes[i]]));
            continue;
        }
        assert(codes[i] - nm->n_ops < nm->n_stores);
        const uint32_t value = nm->value[codes[i] - nm->n_ops];
        TRY(RM_PUSH(x->ctx, *x->out, ((remat_step){REMAT_FETCH, value})));
        note_instance(x, value);
    }
    return end_expansion(x);
}

remat_status rm_normal_expand(remat_ctx *ctx, const rm_normal *nm, const rm_code *codes, size_t n,
                              rm_schedule *out)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    expander x = {.ctx = ctx, .nm = nm, .g = nm->g, .out = out};
    const remat_status status = expand(&x, codes, n);
    rm_scratch_release(ctx, mark);
    return status;
}
