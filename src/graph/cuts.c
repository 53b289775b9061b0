/* cuts.c: forward positions that exactly one storage crosses.
 *
 * Number the forward ops in graph order. A storage made by a forward op crosses the positions
 * between its op and its last forward reader. Storages that cross more than a third of the forward
 * pass (causal masks, rotary tables) are global: they would hide every cut behind them, so they are
 * set aside, to be kept and charged as a constant. A position that exactly one other storage
 * crosses is a cut. Articulation points of the undirected graph are not used: a side branch makes
 * any vertex one, though values still pass it by. One sweep, O(ops + edges). */
#include "graph/cuts.h"

typedef struct span {
    uint32_t first, last;
} span; /* positions of the making op and of the last forward reader */

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

remat_status rm_cuts_find(remat_ctx *ctx, const remat_graph *g, rm_cuts *out)
{
    rm_cuts c = {0};
    span *spans;
    uint32_t *op_at;
    uint8_t *is_cut;                  /* by root value */
    int64_t *crossing, *crossing_sum; /* by position: how many storages cross, and the sum of their
                                         indices; as differences first */
    TRY(RM_SCRATCH(ctx, spans, g->n_values));
    TRY(RM_SCRATCH(ctx, op_at, g->n_ops));
    TRY(RM_SCRATCH(ctx, is_cut, g->n_values));
    TRY(RM_SCRATCH(ctx, crossing, (size_t)g->n_ops + 1));
    TRY(RM_SCRATCH(ctx, crossing_sum, (size_t)g->n_ops + 1));
    TRY(RM_SCRATCH(ctx, c.cuts, g->n_ops));
    TRY(RM_SCRATCH(ctx, c.global, g->n_values));
    const uint32_t n = measure_spans(g, spans, op_at);
    bool any_backward = false;
    for (uint32_t op = 0; op < g->n_ops; op++) any_backward |= g->phase[op] == REMAT_BACKWARD;
    for (uint32_t v = 0; v < g->n_values && any_backward; v++) {
        if (!is_forward_storage(g, v)) continue;
        const span s = spans[v];
        c.global[v] = (uint64_t)3 * (s.last - s.first) > n;
        if (c.global[v]) continue;
        crossing[s.first]++, crossing_sum[s.first] += v;
        crossing[s.last]--, crossing_sum[s.last] -= v;
    }
    int64_t now = 0, sum = 0;
    for (uint32_t i = 0; i + 1 < n && any_backward; i++) {
        now += crossing[i], sum += crossing_sum[i];
        if (now != 1 || is_cut[sum]) continue;
        is_cut[sum] = 1;
        c.cuts[c.n_cuts++] = (rm_cut){(uint32_t)sum, op_at[i]};
    }
    *out = c;
    return REMAT_OK;
}
