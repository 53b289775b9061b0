/* segments.c: checkpoint some of the cut values of the forward pass, recompute the rest once: periodic, chen-sqrt, chen-greedy.
 *
 * The candidates are the cuts of src/graph/cuts.c. Given checkpoints, the schedule follows: the forward ops run in order;
 * before a backward op reads something that a forward op made before the last checkpoint, that op runs again just in time,
 * and so, recursively, do the ops that made what it reads. Each forward op runs again at most once, so a
 * segment is recomputed in one pass when the backward pass reaches it. Kept from their first run: checkpoints, storages
 * that are global in the sense of cuts.c, outputs of pinned ops, graph outputs, all after the last checkpoint.
 * Backward ops never run again.
 *
 * The strategies differ in which checkpoint sets they try; the best by exact peak and cost is taken.
 * - chen-sqrt (Chen et al. 2016, as in Checkmate, section 5.1): every floor(sqrt(n))-th of n candidates.
 * - chen-greedy: walk the forward ops and add up the bytes they make; at a candidate where the sum exceeds b, checkpoint and
 *   start again from 0. The papers do not say which b: we try 64, from the sum of all bytes down by a fifth each time, then 0.
 * - periodic (Rotor, section 5.4): s segments of floor(L/s) of the L = n + 1 stages, the last takes the rest; s = 2 .. 2
 * sqrt(L). One candidate set costs O(ops + edges). */
#include "graph/cuts.h"
#include "plan/planner.h"

#include <string.h>

typedef struct frame {
    uint32_t op, next_input;
} frame;

typedef struct segments {
    const rm_problem *p;
    const remat_graph *g;
    rm_incumbent *best;
    const char *strategy;
    rm_cuts cuts;
    uint8_t *chosen;      /* by cut: is it a checkpoint? */
    uint8_t *always_kept; /* by root value */
    uint8_t *kept;        /* by root value, for the chosen checkpoints */
    uint8_t *again;       /* by op: runs a second time, and has */
    frame *stack;
    rm_schedule steps;
} segments;

/* What the op makes is kept; of a pinned op, which cannot run again, also what its views refer to. */
static void keep_outputs(const remat_graph *g, uint32_t op, uint8_t *kept)
{
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        if (g->pinned[op] || g->out_source[k] == REMAT_NONE) kept[g->root[g->out[k]]] = 1;
}

static remat_status begin(segments *s, const rm_problem *p, rm_incumbent *best, const char *strategy)
{
    remat_ctx *ctx = p->ctx;
    const remat_graph *g = p->graph;
    *s = (segments){.p = p, .g = g, .best = best, .strategy = strategy};
    TRY(rm_cuts_find(ctx, g, &s->cuts));
    if (s->cuts.n_cuts == 0) {
        bool any[3] = {false};
        for (uint32_t op = 0; op < g->n_ops; op++) any[g->phase[op]] = true;
        return rm_fail(ctx, REMAT_E_APPLIES, "strategy '%s' does not apply: %s", strategy,
                       any[REMAT_FORWARD] && any[REMAT_BACKWARD]
                           ? "no position of the forward pass is crossed by one storage only"
                           : "the graph has no forward and backward phases");
    }
    TRY(RM_SCRATCH(ctx, s->chosen, s->cuts.n_cuts));
    TRY(RM_SCRATCH(ctx, s->always_kept, g->n_values));
    TRY(RM_SCRATCH(ctx, s->kept, g->n_values));
    TRY(RM_SCRATCH(ctx, s->again, g->n_ops));
    TRY(RM_SCRATCH(ctx, s->stack, g->n_ops));
    memcpy(s->always_kept, s->cuts.global, g->n_values);
    for (uint32_t i = 0; i < g->n_outputs; i++) s->always_kept[g->root[g->outputs[i]]] = 1;
    for (uint32_t v = 0; v < g->n_values; v++)
        if (rm_is_resident(g, v)) s->always_kept[g->root[v]] = 1;
    for (uint32_t op = 0; op < g->n_ops; op++)
        if (g->pinned[op]) keep_outputs(g, op, s->always_kept);
    return REMAT_OK;
}

/* Emits whatever must run again so that `value` can be read. The stack holds ops whose inputs are being seen to. */
static remat_status make_available(segments *s, uint32_t value)
{
    const remat_graph *g = s->g;
    uint32_t depth = 0;
    for (uint32_t v = value;;) {
        const uint32_t op = g->producer[v];
        if (op != REMAT_NONE && g->phase[op] == REMAT_FORWARD && !s->kept[g->root[v]] && !s->again[op]) {
            s->again[op] = 1;
            s->stack[depth++] = (frame){op, g->in_begin[op]};
        }
        while (depth && s->stack[depth - 1].next_input == g->in_begin[s->stack[depth - 1].op + 1])
            TRY(rm_schedule_run(s->p->ctx, &s->steps, s->stack[--depth].op));
        if (depth == 0) return REMAT_OK;
        v = g->in[s->stack[depth - 1].next_input++];
    }
}

static remat_status try_chosen(segments *s)
{
    const remat_graph *g = s->g;
    uint32_t last = REMAT_NONE; /* the forward op before the last checkpoint */
    memcpy(s->kept, s->always_kept, g->n_values);
    memset(s->again, 0, g->n_ops);
    s->steps.n = 0;
    for (uint32_t c = 0; c < s->cuts.n_cuts; c++)
        if (s->chosen[c]) s->kept[s->cuts.cuts[c].storage] = 1, last = s->cuts.cuts[c].after;
    for (uint32_t op = last == REMAT_NONE ? 0 : last + 1; op < g->n_ops; op++) keep_outputs(g, op, s->kept);
    for (uint32_t op = 0; op < g->n_ops; op++) {
        if (g->phase[op] == REMAT_BACKWARD)
            for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) TRY(make_available(s, g->in[k]));
        TRY(rm_schedule_run(s->p->ctx, &s->steps, op));
    }
    TRY(rm_offer(s->p, s->best, &s->steps));
    rm_spend(s->p->ctx, (int64_t)s->steps.n);
    return REMAT_OK;
}

static uint32_t floor_sqrt(uint32_t n)
{
    uint32_t r = 0;
    while ((uint64_t)(r + 1) * (r + 1) <= n) r++;
    return r;
}

static void choose_every(segments *s, uint32_t stride, uint32_t most)
{
    memset(s->chosen, 0, s->cuts.n_cuts);
    for (uint32_t c = stride - 1, n = 0; c < s->cuts.n_cuts && n < most; c += stride, n++) s->chosen[c] = 1;
}

static remat_status chen_sqrt(segments *s)
{
    choose_every(s, floor_sqrt(s->cuts.n_cuts), UINT32_MAX);
    return try_chosen(s);
}

static remat_status periodic(segments *s)
{
    const uint32_t stages = s->cuts.n_cuts + 1;
    uint32_t most = 2;
    while ((uint64_t)(most + 1) * (most + 1) <= (uint64_t)4 * stages && most + 1 <= stages) most++;
    for (uint32_t n = 2; n <= most && s->p->ctx->stopped == REMAT_DONE; n++) {
        choose_every(s, stages / n, n - 1);
        TRY(try_chosen(s));
        rm_report(s->p->ctx, s->strategy, (int)(1000 * (n - 1) / (most - 1)), s->best->cost, s->best->peak_bytes);
    }
    return REMAT_OK;
}

static int64_t bytes_made(const remat_graph *g, uint32_t op)
{
    int64_t bytes = 0;
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        if (g->out_source[k] == REMAT_NONE) bytes += g->storage[g->out[k]];
    return bytes;
}

static void choose_greedily(segments *s, int64_t limit)
{
    const remat_graph *g = s->g;
    int64_t sum = 0;
    uint32_t op = 0;
    for (uint32_t c = 0; c < s->cuts.n_cuts; c++) {
        for (; op <= s->cuts.cuts[c].after; op++)
            if (g->phase[op] == REMAT_FORWARD) sum += bytes_made(g, op);
        s->chosen[c] = sum > limit;
        if (s->chosen[c]) sum = 0;
    }
}

static remat_status chen_greedy(segments *s)
{
    enum { TRIES = 64 };
    int64_t limit = 0;
    for (uint32_t op = 0; op < s->g->n_ops; op++)
        if (s->g->phase[op] == REMAT_FORWARD) limit += bytes_made(s->g, op);
    uint8_t *before;
    TRY(RM_SCRATCH(s->p->ctx, before, s->cuts.n_cuts));
    for (int i = 0; i < TRIES && s->p->ctx->stopped == REMAT_DONE; i++, limit = i + 1 < TRIES ? limit - limit / 5 : 0) {
        choose_greedily(s, limit);
        if (i && memcmp(before, s->chosen, s->cuts.n_cuts) == 0) continue;
        memcpy(before, s->chosen, s->cuts.n_cuts);
        TRY(try_chosen(s));
        rm_report(s->p->ctx, s->strategy, 1000 * (i + 1) / TRIES, s->best->cost, s->best->peak_bytes);
    }
    return REMAT_OK;
}

static remat_status run(const rm_problem *p, rm_incumbent *best, const char *name, remat_status (*choose)(segments *))
{
    segments s;
    remat_status status = begin(&s, p, best, name);
    if (status == REMAT_OK) status = choose(&s);
    RM_VEC_FREE(&p->ctx->heap, s.steps);
    return status;
}

static remat_status run_periodic(const rm_problem *p, rm_incumbent *best) { return run(p, best, "periodic", periodic); }
static remat_status run_chen_sqrt(const rm_problem *p, rm_incumbent *best) { return run(p, best, "chen-sqrt", chen_sqrt); }
static remat_status run_chen_greedy(const rm_problem *p, rm_incumbent *best)
{
    return run(p, best, "chen-greedy", chen_greedy);
}

enum { STEPS_A_SECOND = 20000000 };
const rm_planner rm_periodic = {
    {"periodic", "checkpoints at equal distances along the forward pass"}, STEPS_A_SECOND, run_periodic};
const rm_planner rm_chen_sqrt = {
    {"chen-sqrt", "every sqrt(n)-th cut of the forward pass is a checkpoint"}, STEPS_A_SECOND, run_chen_sqrt};
const rm_planner rm_chen_greedy = {
    {"chen-greedy", "checkpoints at equal bytes along the forward pass, size searched"}, STEPS_A_SECOND, run_chen_greedy};
