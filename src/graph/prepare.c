/* prepare.c: the graph that was asked for, made from the graph that was read.
 *
 * Method: one pass through a new builder.
 * - fold-identity: detach, alias and lift_fresh vanish. Their readers read what they read.
 * - dce: ops that reach no output and are not pinned are dropped. A graph that names no outputs
 *   loses nothing: any sink may be its result.
 * - no-alias: every view output becomes a storage of its own size. Where an op could have worked in
 *   place of what a view refers to, it still can if the sizes are equal.
 * - replay-random: random ops need not be pinned, since their generator state is replayed.
 * Values of dropped ops go, resident values stay. What the copy of an aligned graph makes is
 * aligned, too. The costs of a cost model that is asked for become the copy's own.
 *
 * The copy maps its indices to those of the original graph, and carries its digest.
 *
 * Cost: linear in the graph. */
#include "graph/copy.h"

#include <assert.h>
#include <string.h>

/* ---- dead code ---- */

/* From last to first, so that all readers of a value are known before its op. */
void rm_mark_live_ops(const remat_graph *g, unsigned flags, uint8_t *live)
{
    const uint8_t *pinned = flags & REMAT_REPLAY_RANDOM ? g->says_pinned : g->pinned;
    for (uint32_t op = 0; op < g->n_ops; op++) live[op] = g->n_outputs == 0 || pinned[op];
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (g->producer[g->outputs[i]] != REMAT_NONE) live[g->producer[g->outputs[i]]] = 1;
    for (uint32_t op = g->n_ops; op-- > 0;)
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1] && live[op]; k++)
            if (g->producer[g->in[k]] != REMAT_NONE) live[g->producer[g->in[k]]] = 1;
}

/* ---- identities ---- */

/* "aten.detach.default" calls detach. */
static bool calls(const char *target, const char *name)
{
    const char *dot = strchr(target, '.');
    const char *base = dot && strncmp(target, "aten.", 5) == 0 ? dot + 1 : target;
    const size_t n = strcspn(base, ".");
    return n == strlen(name) && strncmp(base, name, n) == 0;
}

/* An output with a storage of its own is a copy, not an identity, whatever the op is called. */
static bool is_identity(const remat_graph *g, uint32_t op)
{
    const char *target = rm_text(g, g->op_target[op]);
    return !g->pinned[op] && g->in_begin[op + 1] - g->in_begin[op] == 1 &&
           g->out_begin[op + 1] - g->out_begin[op] == 1 && rm_is_view_op(g, op) &&
           (calls(target, "detach") || calls(target, "alias") || calls(target, "lift_fresh"));
}

/* ---- copying what is left ---- */

typedef struct copy {
    const remat_graph *from;
    remat_builder *to;
    unsigned flags;
    uint32_t *instead; /* by value: the value that its readers read */
    uint8_t *keep;     /* by op */
    uint32_t *now;     /* by value: index in the copy */
} copy;

static void copy_value(copy *c, uint32_t v)
{
    const remat_graph *g = c->from;
    c->now[v] = rm_copy_value(c->to, g, v, rm_text(g, g->value_name[v]));
    if (g->root[v] == v) return;
    if ((c->flags & REMAT_NO_ALIAS) && g->producer[v] != REMAT_NONE) return;
    assert(c->now[g->root[v]] != REMAT_NONE || c->to->status != REMAT_OK); /* see copy_all */
    remat_builder_value_set(c->to, c->now[v], REMAT_VALUE_ALIAS, c->now[g->root[v]]);
}

/* The bytes of the storage that the value has in the copy. */
static int64_t copied_storage(const copy *c, uint32_t v)
{
    const remat_graph *g = c->from;
    const bool becomes_owner =
        (c->flags & REMAT_NO_ALIAS) && g->producer[v] != REMAT_NONE && !rm_owns_storage(g, v);
    return becomes_owner ? g->size[v] : g->storage[v];
}

static void copy_inplace(copy *c, uint32_t op, uint32_t copied)
{
    const remat_graph *g = c->from;
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++) {
        const uint32_t taken = rm_taken_value(g, op, k);
        if (taken != REMAT_NONE && copied_storage(c, c->instead[taken]) == g->storage[g->out[k]])
            remat_builder_op_inplace(c->to, copied, k - g->out_begin[op], g->out_takes[k]);
    }
}

static remat_status copy_op(copy *c, uint32_t op)
{
    const remat_graph *g = c->from;
    remat_builder *b = c->to;
    const uint32_t n_in = g->in_begin[op + 1] - g->in_begin[op],
                   n_out = g->out_begin[op + 1] - g->out_begin[op];
    uint32_t *list;
    TRY(RM_SCRATCH(b->ctx, list, n_in + n_out));
    for (uint32_t k = 0; k < n_in; k++) list[k] = c->now[c->instead[g->in[g->in_begin[op] + k]]];
    for (uint32_t k = 0; k < n_out; k++) list[n_in + k] = c->now[g->out[g->out_begin[op] + k]];
    const uint32_t copied = rm_copy_op(b, g, op, rm_text(g, g->op_name[op]), list);
    if (b->status != REMAT_OK) return b->status;
    copy_inplace(c, op, copied);
    rm_op_record *record = &b->ops.items[copied];
    if ((c->flags & REMAT_REPLAY_RANDOM) && g->op_class[op] == REMAT_CLASS_RANDOM)
        record->replay = true;
    return REMAT_OK;
}

/* The root of an alias is never made by a dropped op: the alias's op reads the root's storage, so
 * the root's op is live too. */
static remat_status copy_all(copy *c)
{
    const remat_graph *g = c->from;
    for (uint32_t v = 0; v < g->n_values; v++) {
        c->now[v] = REMAT_NONE;
        if (g->producer[v] == REMAT_NONE || c->keep[g->producer[v]]) copy_value(c, v);
    }
    for (uint32_t op = 0; op < g->n_ops; op++)
        if (c->keep[op]) TRY(copy_op(c, op));
    for (uint32_t i = 0; i < g->n_outputs; i++)
        remat_builder_output(c->to, c->now[c->instead[g->outputs[i]]]);
    return REMAT_OK;
}

static void fold_identities(copy *c)
{
    const remat_graph *g = c->from;
    for (uint32_t op = 0; op < g->n_ops; op++) {
        if (!is_identity(g, op)) continue;
        c->instead[g->out[g->out_begin[op]]] = c->instead[g->in[g->in_begin[op]]];
        c->keep[op] = 0;
    }
}

/* False: it passes 2^62. */
static bool round_up(int64_t *bytes, int64_t align)
{
    assert(*bytes >= 0 && *bytes < RM_MAX_SUM && align > 0);
    *bytes = (*bytes + align - 1) / align * align;
    return *bytes < RM_MAX_SUM;
}

/* Resident values do not lie in an arena, and stay as they are. As the builder wants it, storages
 * and workspaces sum to less than 2^62. */
static bool round_all(remat_graph *g, int64_t align)
{
    int64_t sum = g->resident_bytes;
    for (uint32_t v = 0; v < g->n_values; v++) {
        if (rm_is_resident(g, v)) continue;
        if (!round_up(&g->storage[v], align)) return false;
        if (rm_owns_storage(g, v) && !rm_add_to_sum(&sum, g->storage[v])) return false;
    }
    for (uint32_t op = 0; op < g->n_ops; op++)
        if (!round_up(&g->workspace[op], align) || !rm_add_to_sum(&sum, g->workspace[op]))
            return false;
    return true;
}

remat_status rm_graph_round(remat_ctx *ctx, remat_graph *g, int64_t align)
{
    if (align > g->align) g->align = align;
    if (g->align == 1) return REMAT_OK;
    return round_all(g, g->align) ? REMAT_OK
                                  : rm_fail(ctx, REMAT_E_INPUT, "aligned sizes pass 2^62");
}

static remat_status prepare(remat_ctx *ctx, copy *c, const char *cost_model, remat_graph **out)
{
    const remat_graph *g = c->from;
    TRY(RM_SCRATCH(ctx, c->instead, g->n_values));
    TRY(RM_SCRATCH(ctx, c->keep, g->n_ops));
    TRY(RM_SCRATCH(ctx, c->now, g->n_values));
    for (uint32_t v = 0; v < g->n_values; v++) c->instead[v] = v;
    if (c->flags & REMAT_DCE) rm_mark_live_ops(g, c->flags, c->keep);
    else memset(c->keep, 1, g->n_ops);
    if (c->flags & REMAT_FOLD_IDENTITY) fold_identities(c);
    TRY(copy_all(c));
    remat_graph *copied = NULL;
    const char *unit = NULL;
    if (cost_model) TRY(rm_cost_unit(ctx, cost_model, &unit));
    if (unit) c->to->cost_unit = rm_builder_text(c->to, unit);
    TRY(remat_builder_finish(c->to, &copied));
    remat_status status = rm_cost_apply(ctx, copied, cost_model ? cost_model : g->cost_model);
    if (status == REMAT_OK) status = rm_graph_round(ctx, copied, g->align);
    if (status != REMAT_OK) remat_graph_free(copied);
    else *out = copied;
    return status;
}

remat_status rm_prepare(remat_ctx *ctx, const remat_graph *graph, unsigned flags,
                        const char *cost_model, remat_graph **out)
{
    remat_builder *b = remat_builder_new(ctx, rm_text(graph, graph->name));
    if (!b) return REMAT_E_MEMORY;
    b->original = graph;
    b->flags = graph->flags | flags;
    b->cost_unit = rm_builder_text(b, rm_text(graph, graph->given_unit));
    b->extra = rm_builder_text(b, rm_text(graph, graph->extra));
    copy c = {.from = graph, .to = b, .flags = flags};
    const remat_status status = prepare(ctx, &c, cost_model, out);
    remat_builder_free(b);
    return status;
}
