/* rotor.c: the best memory-persistent schedule of a chain (Rotor, Theorem 4.8 and Algorithms 3 and
 * 4), and revolve.
 *
 * C(s, t, m) is the least time to run stages s .. t forward and backward with a^(s-1) and delta^t
 * stored and m memory besides a^(s-1). It is the lesser of:
 *   - Fall^s comes first: C_all = tf^s + C(s+1, t, m - abar^s) + tb^s.
 *   - a^(s'-1) is the next activation kept: C_ck, minimised over s', is
 *     sum of tf^s .. tf^(s'-1) + C(s', t, m - a^(s'-1)) + C(s, s'-1, m).
 * revolve is the same without C_all but for s = t (Rotor, section 5.4). It equals the binomial
 * schedule on unit chains.
 *
 * There are two forms of the table: exact (rotor_exact.c) and in slots (rotor_slots.c). Which one
 * is the option `slots`:
 *   -1   the exact one, unless it would take more than EXACT_WORK; then slots, and no table answers
 *        for a budget below half of its largest, where its slots would be too coarse. On a graph
 *        both are tried
 *    0   the exact one
 *    n   n slots of the largest budget, which answer for all budgets
 * `epsilon` asks for at least so many slots that no persistent schedule within budget / (1 +
 * epsilon) is cheaper (slots.c has the proof). The paper's form of it: (1 + epsilon) M memory buys
 * what is optimal within M, in time O(L^4 / epsilon) here.
 *
 * The exact table proves optima and infeasibility where abar >= a and delta = a. Elsewhere Theorem
 * 4.8 may ask too much of a forward: its threshold is over all forwards up to t, wherever the
 * split. Brute force found 4 chains in 100,000 with free delta that fit into less. So infeasibility
 * is not claimed there.
 *
 * Invariant: every schedule is measured in bytes before it counts. */
#include "plan/chains/rotor.h"

#include <assert.h>

enum {
    EXACT_WORK = RM_SECOND,            /* operations */
    EXACT_WORK_JUDGED = RM_SECOND / 8, /* where a sweep over a graph waits for it */
    COARSEST = 2 /* a table of slots answers for budgets from this part of its largest on */
};

/* ---- thresholds ---- */

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

remat_status rm_rotor_needs_find(remat_ctx *ctx, const remat_chain *c, rm_rotor_needs *out)
{
    const uint32_t n = c->n_stages + 1;
    int64_t *kept; /* keep^1 + .. + keep^l */
    out->n = n;
    TRY(RM_SCRATCH(ctx, kept, (size_t)n + 1));
    TRY(RM_SCRATCH(ctx, out->forward, ((size_t)n + 1) * (n + 1)));
    TRY(RM_SCRATCH(ctx, out->all, ((size_t)n + 1) * (n + 1)));
    for (uint32_t l = 1; l <= n; l++) kept[l] = kept[l - 1] + c->stages[l].keep;
    for (uint32_t s = 1; s <= n; s++) {
        /* Over the forwards s .. t-1: without keeps, and with those of a first pass. */
        int64_t widest = 0, widest_kept = 0;
        for (uint32_t t = s; t <= n; t++) {
            const remat_stage *x = &c->stages[s], *y = &c->stages[t];
            const int64_t kept_now = t == n ? kept[s] : kept[t];
            out->forward[rm_rotor_at(n, s, t)] =
                y->delta + (t == n ? widest_kept : widest + kept[t]);
            out->all[rm_rotor_at(n, s, t)] =
                larger(y->delta + x->abar + x->of + kept_now,
                       x->delta + c->stages[s - 1].delta + x->abar + x->ob + kept[s]);
            const int64_t run = y->a + y->of + (t > s ? c->stages[t - 1].a : 0);
            widest = larger(widest, run);
            widest_kept = larger(widest_kept, run + kept[t]);
        }
    }
    return REMAT_OK;
}

/* ---- reading a schedule off a table ---- */

typedef struct frame {
    uint32_t s, t;
    int64_t m;
    bool only_backward;
} frame;

remat_status rm_rotor_trace(remat_ctx *ctx, const rm_rotor_table *t, int64_t m, rm_schedule *out)
{
    frame *stack;
    size_t depth = 0;
    /* Every frame below the top stands for a different stage or its backward. */
    const size_t room = 2 * (size_t)t->n + 2;
    TRY(RM_SCRATCH(ctx, stack, room));
    stack[depth++] = (frame){1, t->n, m, false};
    while (depth) {
        assert(depth < room); /* one frame goes, two may come */
        const frame f = stack[--depth];
        if (f.only_backward) {
            TRY(rm_chain_step(ctx, out, REMAT_B, f.s));
            continue;
        }
        const uint32_t split = t->split(t->table, f.s, f.t, f.m);
        if (split == 0) {
            TRY(rm_chain_step(ctx, out, REMAT_F_ALL, f.s));
            stack[depth++] = (frame){f.s, f.s, 0, true};
            if (f.s < f.t)
                stack[depth++] = (frame){f.s + 1, f.t, f.m - t->abar(t->table, f.s), false};
            continue;
        }
        for (uint32_t l = f.s; l < split; l++)
            TRY(rm_chain_step(ctx, out, l == f.s ? REMAT_F_CK : REMAT_F_NONE, l));
        stack[depth++] = (frame){f.s, split - 1, f.m, false};
        stack[depth++] = (frame){split, f.t, f.m - t->a(t->table, split - 1), false};
    }
    return REMAT_OK;
}

/* ---- which table ---- */

/* The budgets before `end` that share a table with budgets[end - 1]. */
static uint32_t group_begin(const rm_chain_problem *p, uint32_t end)
{
    uint32_t begin = end - 1;
    while (begin > 0 && p->budgets[begin - 1] > p->budgets[end - 1] / COARSEST) begin--;
    return begin;
}

static remat_status by_slots(const rm_chain_problem *p, bool save_all, rm_chain_result *results)
{
    const rm_options *o = &p->ctx->options;
    /* A judge is shown many budgets for one, so one table will do. */
    const bool one_table = !o->epsilon && (o->slots > 0 || p->judge);
    for (uint32_t end = p->n_budgets, begin; end > 0; end = begin) {
        begin = one_table ? 0 : group_begin(p, end);
        rm_chain_problem part = *p;
        part.budgets = p->budgets + begin;
        part.n_budgets = end - begin;
        const rm_mark mark = rm_scratch_mark(p->ctx);
        const remat_status status = rm_rotor_slots(&part, save_all, results + begin);
        rm_scratch_release(p->ctx, mark);
        TRY(status);
    }
    return REMAT_OK;
}

static remat_status run_chain(const rm_chain_problem *p, bool save_all, rm_chain_result *results)
{
    remat_ctx *ctx = p->ctx;
    const int64_t slots = ctx->options.slots;
    bool done = false;
    if (slots == 0) {
        TRY(rm_rotor_exact(p, save_all, RM_NO_LIMIT, results, &done));
    } else if (slots < 0) {
        const int64_t most = p->judge ? EXACT_WORK_JUDGED : EXACT_WORK;
        const remat_status status = rm_rotor_exact(p, save_all, most, results, &done);
        if (status != REMAT_E_APPLIES) TRY(status); /* else it takes too much memory */
    }
    /* A judge has a measure of its own, by which either table may have the better schedules. */
    if (slots > 0 || (slots < 0 && (!done || p->judge))) TRY(by_slots(p, save_all, results));
    return rm_chain_offer_least(p, results);
}

/* ---- the rows ---- */

static remat_status rotor_chain(const rm_chain_problem *p, rm_chain_result *results)
{
    /* Slots, or the limits, may lose keep-all where it just fits. */
    TRY(rm_keep_all.run_chain(p, results));
    return run_chain(p, true, results);
}

static remat_status revolve_chain(const rm_chain_problem *p, rm_chain_result *results)
{
    return run_chain(p, false, results);
}

static remat_status rotor_graph(const rm_problem *p, rm_incumbent *best)
{
    return rm_run_by_chain(p, best, &rm_rotor);
}

static remat_status revolve_graph(const rm_problem *p, rm_incumbent *best)
{
    return rm_run_by_chain(p, best, &rm_revolve);
}

const rm_planner rm_rotor = {.entry = {"rotor", "best memory-persistent chain schedule (Rotor)"},
                             .default_work = RM_NO_LIMIT,
                             .run = rotor_graph,
                             .run_chain = rotor_chain,
                             .heeds = "slots"};
const rm_planner rm_revolve = {
    .entry = {"revolve",
              "only activations are checkpoints; each stage saved right before its backward"},
    .default_work = RM_NO_LIMIT,
    .run = revolve_graph,
    .run_chain = revolve_chain,
    .heeds = "slots"};
