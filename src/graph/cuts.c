/* cuts.c: forward positions that exactly one storage crosses.
 *
 * Number the forward ops in graph order. A storage made by a forward op crosses the positions
 * between its op and its last forward reader.
 *
 * Some storages cross more than a third of the forward pass: causal masks, rotary tables. They are
 * called global. They would hide every cut behind them. So they are set aside, to be kept and
 * charged as a constant. A position that exactly one other storage crosses is a cut.
 *
 * Articulation points of the undirected graph are not used. A side branch makes any vertex one,
 * though values still pass it by.
 *
 * Cost: one sweep, O(ops + edges). */
#include "graph/cuts.h"

#include <assert.h>

/* Positions of the op that makes a storage and of its last forward reader. */
typedef struct span {
    uint32_t first, last;
} span;

/* The storages that cross a position: how many, and the sum of their indices. If there is one, the
 * sum is its index. */
typedef struct crossing {
    int64_t n, sum;
} crossing;

/* Answers how many forward ops there are. */
static uint32_t measure_spans(const remat_graph *g, span *spans, uint32_t *op_at)
{
    uint32_t n = 0;
    for (uint32_t op = 0; op < g->n_ops; op++) {
        if (g->phase[op] != REMAT_FORWARD) continue;
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
            spans[g->root[g->in[k]]].last = n;
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
            if (g->out_source[k] == REMAT_NONE) spans[g->out[k]] = (span){n, n};
        op_at[n++] = op;
    }
    return n;
}

static bool is_forward_storage(const remat_graph *g, uint32_t v)
{
    return g->root[v] == v && g->producer[v] != REMAT_NONE &&
           g->phase[g->producer[v]] == REMAT_FORWARD;
}

static bool has_backward(const remat_graph *g)
{
    for (uint32_t op = 0; op < g->n_ops; op++)
        if (g->phase[op] == REMAT_BACKWARD) return true;
    return false;
}

static void add(crossing *c, int64_t n, uint32_t storage)
{
    c->n += n;
    c->sum += n * (int64_t)storage;
}

/* changes: by position, how the crossing differs from the one before. */
static void count_crossings(const remat_graph *g, const span *spans, uint32_t n, uint8_t *global,
                            crossing *changes)
{
    for (uint32_t v = 0; v < g->n_values; v++) {
        if (!is_forward_storage(g, v)) continue;
        const span s = spans[v];
        assert(s.first <= s.last && s.last < n);
        global[v] = (uint64_t)3 * (s.last - s.first) > n;
        if (global[v]) continue;
        add(&changes[s.first], 1, v);
        add(&changes[s.last], -1, v);
    }
}

remat_status rm_cuts_find(remat_ctx *ctx, const remat_graph *g, rm_cuts *out)
{
    rm_cuts c = {0};
    span *spans;     /* by root value */
    uint32_t *op_at; /* by position */
    uint8_t *is_cut; /* by root value */
    crossing *changes;
    TRY(RM_SCRATCH(ctx, spans, g->n_values));
    TRY(RM_SCRATCH(ctx, op_at, g->n_ops));
    TRY(RM_SCRATCH(ctx, is_cut, g->n_values));
    TRY(RM_SCRATCH(ctx, changes, g->n_ops));
    TRY(RM_SCRATCH(ctx, c.cuts, g->n_ops));
    TRY(RM_SCRATCH(ctx, c.global, g->n_values));
    *out = c;
    if (!has_backward(g)) return REMAT_OK;
    const uint32_t n = measure_spans(g, spans, op_at);
    count_crossings(g, spans, n, c.global, changes);
    crossing now = {0, 0};
    for (uint32_t i = 0; i + 1 < n; i++) {
        now.n += changes[i].n;
        now.sum += changes[i].sum;
        if (now.n != 1 || is_cut[now.sum]) continue;
        is_cut[now.sum] = 1;
        c.cuts[c.n_cuts++] = (rm_cut){(uint32_t)now.sum, op_at[i]};
    }
    *out = c;
    return REMAT_OK;
}
