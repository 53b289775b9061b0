/* checkmate_baselines.c: Chen's heuristics on any training graph (Checkmate, 5.1): ap-sqrt,
 * ap-greedy, lin-sqrt, lin-greedy.
 *
 * Candidates for checkpoints are, for ap-*, the storages that alone cross a position of the forward
 * pass (cuts.c). The paper takes articulation points of the undirected graph instead; a vertex with
 * a side branch is one and separates nothing. For lin-*: all storages that a later forward op
 * reads, as if the forward ops were a chain. Both also with those alone that the backward pass
 * reads. The rules of checkpoint_rules.c choose among them.
 *
 * The paper does not say which S follows from a set of checkpoints; with nothing else retained
 * every gradient would run its whole segment again. Ours, for the turn of op t: retained:
 * checkpoints; what backward ops made; outputs; for ap-* also storages that span a third of the
 * forward pass; forward:  what the segment of op t made, and what a later forward op reads; without
 * the latter where that does not fit; the last segment's storages stay; backward: what has been
 * made again since the backward pass first wanted it, directly or to make another one again. R is
 * then the least (optimal_r.c). All is measured by the graph's own model, and the best is taken. On
 * a linear graph the schedules are those of chen-sqrt and chen-greedy, step for step.
 *
 * Cost: O(ops * edges) a set of checkpoints, and n_ops * n_storages bits. */
#include <string.h>

#include "graph/cuts.h"
#include "plan/chains/checkpoint_rules.h"
#include "plan/checkmate/optimal_r.h"
#include "plan/planner.h"

typedef struct candidate {
    uint32_t store, after; /* of rm_normal; the op of g behind which it is the checkpoint */
} candidate;

typedef struct baseline {
    const rm_problem *p;
    rm_incumbent *best;
    const char *strategy;
    rm_checkpoint_rule *choose;
    bool by_cuts; /* ap-*, not lin-* */
    rm_normal nm;
    uint8_t *forward;       /* by op of nm */
    uint32_t *read_forward; /* by storage: the last forward op that does, or 0: op 0 reads nothing
                               that another made */
    uint8_t *read_backward; /* by storage */
    uint8_t *stays;         /* by storage: whatever is chosen */
    candidate *all, *candidates;
    uint32_t n_all, n_candidates;
    uint8_t *chosen;
    uint8_t *kept;     /* by storage: stays or is chosen */
    uint32_t *segment; /* by op of nm */
    uint32_t
        *wanted; /* by storage: the first backward op that wants it made again, or REMAT_NONE */
    rm_bits retained;
    rm_codes codes;
    rm_schedule steps;
} baseline;

/* ---- from checkpoints to a schedule ---- */

static void assign_segments(baseline *x)
{
    uint32_t segment = 0, next = 0;
    memcpy(x->kept, x->stays, x->nm.n_stores);
    for (uint32_t i = 0; i < x->n_candidates; i++)
        if (x->chosen[i]) x->kept[x->candidates[i].store] = 1;
    for (uint32_t op = 0; op < x->nm.n_ops; op++) {
        for (; next < x->n_candidates && x->candidates[next].after < x->nm.op[op]; next++)
            segment += x->chosen[next];
        x->segment[op] = segment;
    }
    for (uint32_t op = 0; op < x->nm.n_ops; op++) /* the last segment stays */
        for (uint32_t k = x->nm.out_begin[op];
             k < x->nm.out_begin[op + 1] && x->segment[op] == segment; k++)
            x->kept[x->nm.out[k]] = 1;
}

static void find_wanted(baseline *x)
{
    const rm_normal *nm = &x->nm;
    for (uint32_t s = 0; s < nm->n_stores; s++) x->wanted[s] = REMAT_NONE;
    for (uint32_t op = nm->n_ops; op-- > 0;) {
        uint32_t when = x->forward[op] ? REMAT_NONE : op;
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1] && x->forward[op]; k++)
            if (!x->kept[nm->out[k]] && x->wanted[nm->out[k]] < when) when = x->wanted[nm->out[k]];
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1] && x->forward[op]; k++)
            x->wanted[nm->out[k]] = when;
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
            if (when < x->wanted[nm->in[k]]) x->wanted[nm->in[k]] = when;
    }
}

/* Does the forward pass read something of a segment that is over? */
static bool any_crosses(const baseline *x)
{
    for (uint32_t s = 0; s < x->nm.n_stores; s++)
        if (!x->kept[s] && x->read_forward[s] &&
            x->segment[x->read_forward[s]] != x->segment[x->nm.producer[s]])
            return true;
    return false;
}

static void fill_retained(baseline *x, bool crossing)
{
    const rm_normal *nm = &x->nm;
    rm_bits_empty(&x->retained);
    rm_spend(x->p->ctx, (int64_t)nm->n_ops * nm->n_stores / RM_ENTRIES_A_WORK);
    for (uint32_t t = 0; t < nm->n_ops; t++) {
        if (rm_is_late_turn(x->p->ctx, t)) return; /* rm_optimal_r sees it too */
        for (uint32_t s = 0; s < nm->n_stores; s++) {
            const bool there = !x->forward[t] ? t > x->wanted[s]
                                              : x->segment[t] == x->segment[nm->producer[s]] ||
                                                    (crossing && t <= x->read_forward[s]);
            if (nm->producer[s] < t && (x->kept[s] || there)) rm_bit_set(&x->retained, t, s);
        }
    }
}

static remat_status try_retained(baseline *x, bool crossing)
{
    fill_retained(x, crossing);
    TRY(rm_optimal_r(x->p->ctx, &x->nm, &x->retained, &x->codes));
    if (x->nm.n_ops && x->codes.n == 0) return REMAT_OK; /* it was late */
    x->steps.n = 0;
    TRY(rm_normal_expand(x->p->ctx, &x->nm, x->codes.items, x->codes.n, &x->steps));
    return rm_offer(x->p, x->best, &x->steps);
}

static remat_status try_chosen(void *user)
{
    baseline *x = user;
    assign_segments(x);
    find_wanted(x);
    const bool crosses = any_crosses(x);
    if (crosses) TRY(try_retained(x, true));
    const bool fits = x->best->any && x->p->budget_bytes != REMAT_BUDGET_MIN &&
                      rm_fits(x->p, x->best->peak_bytes);
    return crosses && fits ? REMAT_OK
                           : try_retained(x, false); /* which runs more, in less memory */
}

/* ---- candidates ---- */

static void mark_reads(baseline *x)
{
    const rm_normal *nm = &x->nm;
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        x->forward[op] = nm->g->phase[nm->op[op]] != REMAT_BACKWARD;
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++) {
            if (x->forward[op]) x->read_forward[nm->in[k]] = op;
            else x->read_backward[nm->in[k]] = 1;
        }
    }
    for (uint32_t s = 0; s < nm->n_stores; s++)
        x->stays[s] = nm->is_output[s] || !x->forward[nm->producer[s]];
}

static remat_status find_cuts(baseline *x)
{
    const rm_normal *nm = &x->nm;
    uint32_t *store_of; /* by value of g */
    rm_cuts cuts;
    TRY(RM_SCRATCH(x->p->ctx, store_of, nm->g->n_values));
    TRY(rm_cuts_find(x->p->ctx, nm->g, &cuts));
    for (uint32_t s = 0; s < nm->n_stores; s++) {
        if (nm->base[s] == REMAT_NONE) store_of[nm->value[s]] = s;
        const uint32_t root = nm->g->root[nm->value[s]];
        if (cuts.global[root]) x->stays[s] = 1;
    }
    for (uint32_t i = 0; i < cuts.n_cuts; i++)
        x->all[x->n_all++] = (candidate){store_of[cuts.cuts[i].storage], cuts.cuts[i].after};
    return REMAT_OK;
}

static void find_forward_storages(baseline *x)
{
    const rm_normal *nm = &x->nm;
    for (uint32_t op = 0; op < nm->n_ops; op++)
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
            if (x->forward[op] && x->read_forward[nm->out[k]] && nm->base[nm->out[k]] == REMAT_NONE)
                x->all[x->n_all++] = (candidate){nm->out[k], nm->op[op]};
}

/* Bytes of what the backward pass reads, made between candidates, and of the candidates themselves:
 * what a chain calls abar. */
static void sum_bytes(const baseline *x, uint8_t *is_candidate, int64_t *bytes)
{
    const rm_normal *nm = &x->nm;
    uint32_t next = 0;
    memset(is_candidate, 0, nm->n_stores);
    for (uint32_t i = 0; i < x->n_candidates; i++) {
        is_candidate[x->candidates[i].store] = 1;
        bytes[i] = nm->bytes[x->candidates[i].store];
    }
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        while (next < x->n_candidates && x->candidates[next].after < nm->op[op]) next++;
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1] && next < x->n_candidates;
             k++) {
            const uint32_t s = nm->out[k];
            if (x->read_backward[s] && !is_candidate[s] && !x->stays[s] && !nm->pinned[op])
                bytes[next] += nm->bytes[s];
        }
    }
}

static remat_status allocate(baseline *x)
{
    remat_ctx *ctx = x->p->ctx;
    TRY(rm_normal_of(ctx, x->p->graph, &x->nm));
    const size_t n_ops = x->nm.n_ops, n_stores = x->nm.n_stores,
                 n_candidates = n_stores + x->p->graph->n_ops;
    const double bytes = (double)n_ops * (double)(n_ops + n_stores) / 8; /* retained, and runs */
    if (bytes > (double)rm_memory_left(ctx))
        return rm_fail(ctx, REMAT_E_APPLIES,
                       "its tables for %zu ops take %.1f GB, more than memory_bytes allows", n_ops,
                       bytes * 1e-9);
    TRY(RM_SCRATCH(ctx, x->forward, n_ops));
    TRY(RM_SCRATCH(ctx, x->read_forward, n_stores));
    TRY(RM_SCRATCH(ctx, x->read_backward, n_stores));
    TRY(RM_SCRATCH(ctx, x->stays, n_stores));
    TRY(RM_SCRATCH(ctx, x->all, n_candidates));
    TRY(RM_SCRATCH(ctx, x->candidates, n_candidates));
    TRY(RM_SCRATCH(ctx, x->chosen, n_candidates));
    TRY(RM_SCRATCH(ctx, x->kept, n_stores));
    TRY(RM_SCRATCH(ctx, x->segment, n_ops));
    TRY(RM_SCRATCH(ctx, x->wanted, n_stores));
    return rm_bits_new(ctx, &x->retained, n_ops, n_stores);
}

static remat_status check(const baseline *x)
{
    bool any[2] = {false};
    for (uint32_t op = 0; op < x->p->graph->n_ops; op++)
        any[x->p->graph->phase[op] == REMAT_BACKWARD] |= x->p->graph->phase[op] != REMAT_PHASE_NONE;
    if (!any[0] || !any[1])
        return rm_fail(x->p->ctx, REMAT_E_APPLIES, "the graph has no forward and backward phases");
    return x->n_all     ? REMAT_OK
           : x->by_cuts ? rm_fail(x->p->ctx, REMAT_E_APPLIES,
                                  "no position of the forward pass is crossed by one storage only")
                        : rm_fail(x->p->ctx, REMAT_E_APPLIES,
                                  "no op of the forward pass reads what another makes");
}

static remat_status run_all(baseline *x)
{
    remat_ctx *ctx = x->p->ctx;
    uint8_t *is_candidate;
    int64_t *bytes;
    TRY(allocate(x));
    mark_reads(x);
    if (x->by_cuts) TRY(find_cuts(x));
    else find_forward_storages(x);
    TRY(check(x));
    TRY(RM_SCRATCH(ctx, is_candidate, x->nm.n_stores));
    TRY(RM_SCRATCH(ctx, bytes, x->n_all));
    for (int every = 0; every < 2;
         every++) { /* as by_chain.c: those that the backward pass reads, then all */
        x->n_candidates = 0;
        for (uint32_t i = 0; i < x->n_all; i++)
            if (every || x->read_backward[x->all[i].store])
                x->candidates[x->n_candidates++] = x->all[i];
        if (x->n_candidates == 0) continue;
        sum_bytes(x, is_candidate, bytes);
        const rm_checkpoint_question c = {.ctx = ctx,
                                          .strategy = x->strategy,
                                          .n = x->n_candidates,
                                          .bytes = bytes,
                                          .chosen = x->chosen,
                                          .try = try_chosen,
                                          .user = x};
        TRY(x->choose(&c));
    }
    return x->best->any ? REMAT_OK
                        : rm_keep_all.run(x->p, x->best); /* stopped before the first candidate */
}

static remat_status run(const rm_problem *p, rm_incumbent *best, const char *strategy,
                        rm_checkpoint_rule *choose, bool by_cuts)
{
    const rm_mark mark = rm_scratch_mark(p->ctx);
    baseline x = {.p = p, .best = best, .strategy = strategy, .choose = choose, .by_cuts = by_cuts};
    const remat_status status = run_all(&x);
    RM_VEC_FREE(&p->ctx->heap, x.codes);
    RM_VEC_FREE(&p->ctx->heap, x.steps);
    rm_scratch_release(p->ctx, mark);
    return status;
}

/* ---- the rows: on a chain all positions are cuts, and the original is meant ---- */

#define ROW(symbol, name, help, original, choose, by_cuts)                                         \
    static remat_status run_##symbol(const rm_problem *p, rm_incumbent *best)                      \
    {                                                                                              \
        return run(p, best, name, choose, by_cuts);                                                \
    }                                                                                              \
    static remat_status chain_##symbol(const rm_chain_problem *p, rm_chain_result *r)              \
    {                                                                                              \
        return original.run_chain(p, r);                                                           \
    }                                                                                              \
    const rm_planner symbol = {{name, help}, RM_SECOND, run_##symbol, chain_##symbol}
ROW(rm_ap_sqrt, "ap-sqrt", "chen-sqrt on the graph's cuts, with the least recomputation for it",
    rm_chen_sqrt, rm_checkpoint_sqrt, true);
ROW(rm_ap_greedy, "ap-greedy",
    "chen-greedy on the graph's cuts, with the least recomputation for it", rm_chen_greedy,
    rm_checkpoint_greedy, true);
ROW(rm_lin_sqrt, "lin-sqrt",
    "chen-sqrt as if the forward ops were a chain, with the least recomputation for it",
    rm_chen_sqrt, rm_checkpoint_sqrt, false);
ROW(rm_lin_greedy, "lin-greedy",
    "chen-greedy as if the forward ops were a chain, with the least recomputation for it",
    rm_chen_greedy, rm_checkpoint_greedy, false);
