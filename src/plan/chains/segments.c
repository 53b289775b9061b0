/* segments.c: periodic, chen-sqrt and chen-greedy: checkpoint some activations of a chain,
 * recompute the rest once. On graphs they work on the graph's chain (by_chain.c).
 *
 * Given checkpoints among a^1 .. a^L the schedule follows. It runs forward with the checkpoints
 * kept. Then, from the last segment to the first, it runs forward again saving all, and backward.
 * All but the last segment run forward twice.
 *
 * The strategies differ in which checkpoint sets they try (checkpoint_rules.c). The best by exact
 * peak and cost is taken. A set costs O(L), and on a graph an expansion. */
#include "plan/chains/checkpoint_rules.h"
#include "plan/planner.h"

enum { STEP_WORK = 8 }; /* operations to write and to measure a step */

typedef struct segments {
    const rm_chain_problem *p;
    rm_chain_result *results;
    uint8_t *chosen; /* by l - 1: is a^l a checkpoint? */
    rm_schedule steps;
} segments;

static remat_status try_chosen(void *user)
{
    segments *s = user;
    s->steps.n = 0;
    TRY(rm_chain_segments(s->p->ctx, s->p->chain, s->chosen, &s->steps));
    TRY(rm_chain_offer(s->p, s->results, &s->steps));
    rm_spend(s->p->ctx, STEP_WORK * (int64_t)s->steps.n);
    return REMAT_OK;
}

static remat_status run_chain(const rm_chain_problem *p, rm_chain_result *results,
                              const char *strategy, rm_checkpoint_rule *choose)
{
    const uint32_t n = p->chain->n_stages;
    segments s = {.p = p, .results = results};
    int64_t *bytes;
    TRY(RM_SCRATCH(p->ctx, s.chosen, n));
    TRY(RM_SCRATCH(p->ctx, bytes, n));
    for (uint32_t i = 0; i < n; i++) bytes[i] = p->chain->stages[i + 1].abar;
    const rm_checkpoint_question x = {.ctx = p->ctx,
                                      .strategy = strategy,
                                      .n = n,
                                      .bytes = bytes,
                                      .chosen = s.chosen,
                                      .try = try_chosen,
                                      .user = &s};
    const remat_status status = choose(&x);
    RM_VEC_FREE(&p->ctx->heap, s.steps);
    return status;
}

/* ---- the rows ---- */

#define ROW(symbol, name, help, choose)                                                            \
    static remat_status run_##choose(const rm_problem *p, rm_incumbent *best)                      \
    {                                                                                              \
        return rm_run_by_chain(p, best, &symbol);                                                  \
    }                                                                                              \
    static remat_status chain_##choose(const rm_chain_problem *p, rm_chain_result *r)              \
    {                                                                                              \
        return run_chain(p, r, name, choose);                                                      \
    }                                                                                              \
    const rm_planner symbol = {.entry = {name, help},                                              \
                               .default_work = RM_SECOND,                                          \
                               .run = run_##choose,                                                \
                               .run_chain = chain_##choose}

ROW(rm_periodic, "periodic", "checkpoints at equal distances along the forward pass",
    rm_checkpoint_periodic);
ROW(rm_chen_sqrt, "chen-sqrt", "every sqrt(n)-th cut of the forward pass is a checkpoint",
    rm_checkpoint_sqrt);
ROW(rm_chen_greedy, "chen-greedy",
    "checkpoints at equal bytes along the forward pass, size searched", rm_checkpoint_greedy);
