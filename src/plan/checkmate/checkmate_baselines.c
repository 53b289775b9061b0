/* checkmate_baselines.c: Chen's heuristics on any training graph (Checkmate, 5.1): ap-sqrt,
 * ap-greedy, lin-sqrt, lin-greedy.
 *
 * Candidates for checkpoints are:
 *   ap-*   The storages that alone cross a position of the forward pass (cuts.c). The paper takes
 *          articulation points of the undirected graph instead. A vertex with a side branch is one
 *          and separates nothing.
 *   lin-*  All storages that a later forward op reads, as if the forward ops were a chain.
 * Both are also tried with those alone that the backward pass reads. The rules of
 * checkpoint_rules.c choose among them.
 *
 * The paper does not say which S follows from a set of checkpoints. With nothing else retained
 * every gradient would run its whole segment again. In the turn of op t we retain:
 *
 *   always    Checkpoints, what backward ops made, and outputs. The last segment's storages. For
 *             ap-* also storages that span a third of the forward pass.
 *   forward   What the segment of op t made, and what a later forward op reads. Where that does not
 *             fit, without the latter.
 *   backward  What has been made again since the backward pass first wanted it, directly or to make
 *             another one again.
 *
 * R is then the least (optimal_r.c). All is measured by the graph's own model, and the best is
 * taken. On a linear graph the schedules are those of chen-sqrt and chen-greedy, step for step.
 *
 * Cost: O(ops * edges) a set of checkpoints, and n_ops * n_storages bits. */
#include "graph/cuts.h"
#include "plan/chains/checkpoint_rules.h"
#include "plan/checkmate/optimal_r.h"
#include "plan/planner.h"

#include <assert.h>
#include <string.h>

typedef struct candidate {
    uint32_t store; /* of rm_normal */
    uint32_t after; /* the op of g behind which it is the checkpoint */
} candidate;

typedef struct baseline {
    const rm_problem *p;
    rm_incumbent *best;
    const char *strategy;
    rm_checkpoint_rule *choose;
    bool by_cuts; /* ap-*, not lin-* */
    rm_normal nm;
    uint8_t *forward; /* by op of nm */
    /* By storage: the last forward op that reads it. 0: none, as op 0 reads nothing that another
     * made. */
    uint32_t *read_forward;
    uint8_t *read_backward;      /* by storage: the backward pass reads it */
    uint8_t *stays;              /* by storage: it is kept, whatever is chosen */
    candidate *all, *candidates; /* of them: those among which the rule chooses */
    uint32_t n_all, n_candidates;
    uint8_t *chosen;   /* by candidate */
    uint8_t *kept;     /* by storage: it stays or is chosen */
    uint32_t *segment; /* by op of nm */
    uint32_t *wanted;  /* by storage: the first backward op that wants it made, or REMAT_NONE */
    rm_bits retained;  /* S: by turn, by storage */
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
    const uint32_t last_segment = segment;
    for (uint32_t op = 0; op < x->nm.n_ops; op++) {
        if (x->segment[op] != last_segment) continue;
        for (uint32_t k = x->nm.out_begin[op]; k < x->nm.out_begin[op + 1]; k++)
            x->kept[x->nm.out[k]] = 1;
    }
}

/* When a forward op first runs again: when somebody wants what it makes, unless that is kept. Then
 * all that it makes is there. */
static uint32_t first_again(baseline *x, uint32_t op)
{
    const rm_normal *nm = &x->nm;
    uint32_t when = REMAT_NONE;
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
        if (!x->kept[nm->out[k]] && x->wanted[nm->out[k]] < when) when = x->wanted[nm->out[k]];
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
        x->wanted[nm->out[k]] = when;
    return when;
}

/* From last to first, so that all readers of a storage are known before its op. */
static void find_wanted(baseline *x)
{
    const rm_normal *nm = &x->nm;
    for (uint32_t s = 0; s < nm->n_stores; s++) x->wanted[s] = REMAT_NONE;
    for (uint32_t op = nm->n_ops; op-- > 0;) {
        const uint32_t when = x->forward[op] ? first_again(x, op) : op;
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

/* Is a storage that is not kept there in turn t? crossing: it is if a later forward op reads it. */
static bool is_there(const baseline *x, uint32_t t, uint32_t s, bool crossing)
{
    if (!x->forward[t]) return t > x->wanted[s];
    if (x->segment[t] == x->segment[x->nm.producer[s]]) return true;
    return crossing && t <= x->read_forward[s];
}

static void fill_retained(baseline *x, bool crossing)
{
    const rm_normal *nm = &x->nm;
    rm_bits_empty(&x->retained);
    rm_spend(x->p->ctx, (int64_t)nm->n_ops * nm->n_stores / RM_ENTRIES_A_WORK);
    for (uint32_t t = 0; t < nm->n_ops; t++) {
        if (rm_is_late_turn(x->p->ctx, t)) return; /* rm_optimal_r sees it too */
        for (uint32_t s = 0; s < nm->n_stores; s++)
            if (nm->producer[s] < t && (x->kept[s] || is_there(x, t, s, crossing)))
                rm_bit_set(&x->retained, t, s);
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
    if (crosses && fits) return REMAT_OK;
    return try_retained(x, false); /* which runs more, in less memory */
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
    assert(cuts.n_cuts <= nm->g->n_ops); /* there is room for them */
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

/* bytes, by candidate: its own, and those of what is made since the one before and read by the
 * backward pass. A chain calls that abar. is_candidate is room for n_stores marks. */
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
        if (next == x->n_candidates) return;
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++) {
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
    const size_t n_ops = x->nm.n_ops, n_stores = x->nm.n_stores;
    const size_t n_candidates = n_stores + x->p->graph->n_ops;
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
    bool any_forward = false, any_backward = false;
    for (uint32_t op = 0; op < x->p->graph->n_ops; op++) {
        any_forward |= x->p->graph->phase[op] == REMAT_FORWARD;
        any_backward |= x->p->graph->phase[op] == REMAT_BACKWARD;
    }
    if (!any_forward || !any_backward)
        return rm_fail(x->p->ctx, REMAT_E_APPLIES, "the graph has no forward and backward phases");
    if (x->n_all > 0) return REMAT_OK;
    return rm_fail(x->p->ctx, REMAT_E_APPLIES,
                   x->by_cuts ? "no position of the forward pass is crossed by one storage only"
                              : "no op of the forward pass reads what another makes");
}

/* The rule chooses among all candidates, or among those that the backward pass reads. */
static remat_status choose_among(baseline *x, bool all, uint8_t *is_candidate, int64_t *bytes)
{
    x->n_candidates = 0;
    for (uint32_t i = 0; i < x->n_all; i++)
        if (all || x->read_backward[x->all[i].store]) x->candidates[x->n_candidates++] = x->all[i];
    if (x->n_candidates == 0) return REMAT_OK;
    sum_bytes(x, is_candidate, bytes);
    const rm_checkpoint_question question = {.ctx = x->p->ctx,
                                             .strategy = x->strategy,
                                             .n = x->n_candidates,
                                             .bytes = bytes,
                                             .chosen = x->chosen,
                                             .try = try_chosen,
                                             .user = x};
    return x->choose(&question);
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
    TRY(choose_among(x, false, is_candidate, bytes)); /* both, as by_chain.c does */
    TRY(choose_among(x, true, is_candidate, bytes));
    if (x->best->any) return REMAT_OK;
    return rm_keep_all.run(x->p, x->best); /* it was stopped before the first candidate */
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
    const rm_planner symbol = {.entry = {name, help},                                              \
                               .default_work = RM_SECOND,                                          \
                               .run = run_##symbol,                                                \
                               .run_chain = chain_##symbol}

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
