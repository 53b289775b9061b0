/* segments.c: checkpoint some activations of a chain, recompute the rest once: periodic, chen-sqrt, chen-greedy. On graphs they work
 * on the graph's chain (by_chain.c).
 *
 * Given checkpoints among a^1 .. a^L the schedule follows: forward with the checkpoints kept; then, from the last segment to the first,
 * forward again saving all, and backward. All but the last segment run forward twice. The strategies differ in which
 * checkpoint sets they try; the best by exact peak and cost is taken.
 * - chen-sqrt (Chen et al. 2016, as in Checkmate, section 5.1): every floor(sqrt(n))-th of the n candidates.
 * - chen-greedy: walk the stages and add up the bytes they make; at a candidate where the sum exceeds b, checkpoint and start again
 *   from 0. The papers do not say which b: we try 64, from the sum of all bytes down by a fifth each time, then 0.
 * - periodic (Rotor, section 5.4): s segments of floor(L/s) of the L stages, the last takes the rest; s = 2 .. 2 sqrt(L).
 * One candidate set costs O(L), and on a graph an expansion. */
#include "plan/planner.h"

#include <string.h>

typedef struct segments {
    const rm_chain_problem *p;
    rm_chain_result *results;
    remat_ctx *ctx;
    const char *strategy;
    uint32_t n;      /* L: candidates, and stages beside the loss */
    uint8_t *chosen; /* by l - 1: is a^l a checkpoint? */
    rm_schedule steps;
} segments;

static remat_status try_chosen(segments *s)
{
    s->steps.n = 0;
    TRY(rm_chain_segments(s->ctx, s->p->chain, s->chosen, &s->steps));
    TRY(rm_chain_offer(s->p, s->results, &s->steps));
    rm_spend(s->ctx, (int64_t)s->steps.n);
    return REMAT_OK;
}

/* ---- which checkpoints to try ---- */

static uint32_t floor_sqrt(uint32_t n)
{
    uint32_t r = 0;
    while ((uint64_t)(r + 1) * (r + 1) <= n) r++;
    return r;
}

static void choose_every(segments *s, uint32_t stride, uint32_t most)
{
    memset(s->chosen, 0, s->n);
    for (uint32_t i = stride - 1, n = 0; i < s->n && n < most; i += stride, n++) s->chosen[i] = 1;
}

static remat_status chen_sqrt(segments *s)
{
    choose_every(s, floor_sqrt(s->n), UINT32_MAX);
    return try_chosen(s);
}

static remat_status periodic(segments *s)
{
    uint32_t most = 1;
    while ((uint64_t)(most + 1) * (most + 1) <= (uint64_t)4 * s->n && most + 1 <= s->n) most++;
    for (uint32_t n = most < 2 ? 1 : 2; n <= most && s->ctx->stopped == REMAT_DONE; n++) {
        choose_every(s, s->n / n, n - 1);
        TRY(try_chosen(s));
        rm_report(s->ctx, s->strategy, (int)(1000 * n / most), REMAT_ABSENT, REMAT_ABSENT);
    }
    return REMAT_OK;
}

static void choose_greedily(segments *s, int64_t limit)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        sum += s->p->chain->stages[i + 1].abar;
        s->chosen[i] = sum > limit;
        if (s->chosen[i]) sum = 0;
    }
}

static remat_status chen_greedy(segments *s)
{
    enum { TRIES = 64 };
    uint8_t *before;
    int64_t limit = 0;
    TRY(RM_SCRATCH(s->ctx, before, s->n));
    for (uint32_t i = 0; i < s->n; i++) limit += s->p->chain->stages[i + 1].abar;
    for (int i = 0; i < TRIES && s->ctx->stopped == REMAT_DONE; i++, limit = i + 1 < TRIES ? limit - limit / 5 : 0) {
        choose_greedily(s, limit);
        if (i && memcmp(before, s->chosen, s->n) == 0) continue;
        memcpy(before, s->chosen, s->n);
        TRY(try_chosen(s));
        rm_report(s->ctx, s->strategy, 1000 * (i + 1) / TRIES, REMAT_ABSENT, REMAT_ABSENT);
    }
    return REMAT_OK;
}

typedef remat_status chooser(segments *s);

static remat_status run_chain(const rm_chain_problem *p, rm_chain_result *results, const char *strategy, chooser *choose)
{
    segments s = {.p = p, .results = results, .ctx = p->ctx, .strategy = strategy, .n = p->chain->n_stages};
    TRY(RM_SCRATCH(s.ctx, s.chosen, s.n));
    const remat_status status = choose(&s);
    RM_VEC_FREE(&p->ctx->heap, s.steps);
    return status;
}

/* ---- the rows ---- */

enum { STEPS_A_SECOND = 20000000 };
#define ROW(symbol, name, help, choose)                                                                                        \
    static remat_status run_##choose(const rm_problem *p, rm_incumbent *best) { return rm_run_by_chain(p, best, &symbol); }    \
    static remat_status chain_##choose(const rm_chain_problem *p, rm_chain_result *r)                                          \
    {                                                                                                                          \
        return run_chain(p, r, name, choose);                                                                                  \
    }                                                                                                                          \
    const rm_planner symbol = {{name, help}, STEPS_A_SECOND, run_##choose, chain_##choose}
ROW(rm_periodic, "periodic", "checkpoints at equal distances along the forward pass", periodic);
ROW(rm_chen_sqrt, "chen-sqrt", "every sqrt(n)-th cut of the forward pass is a checkpoint", chen_sqrt);
ROW(rm_chen_greedy, "chen-greedy", "checkpoints at equal bytes along the forward pass, size searched", chen_greedy);
