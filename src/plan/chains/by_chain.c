/* by_chain.c: chain strategies on graphs.
 *
 * The graph becomes a chain (chain_of_graph.c). The strategy solves the chain for a sweep of
 * budgets. Each schedule that it considers is expanded into ops and judged by the graph's own
 * model.
 *
 * Expansion is by demand:
 *   - The first time a stage is forwarded, its ops run as they stand.
 *   - When the chain's schedule forwards it again, its ops only become *due*.
 *   - A due op runs when a backward op, or another due op that runs, reads what it makes.
 * So recomputation is just in time, and what nobody needs is never run. What a step of the chain
 * keeps or drops follows from what is due and what is not.
 *
 * The chain is a model of the graph: a little too careful here, too careless there. So the sweep
 * covers all budgets from the chain's need to its keep-all peak. It is done on two chains, one of
 * fewer cuts and one of all cuts. The cheapest schedule that really fits is taken.
 *
 * Invariant: an op is due only if an earlier step has run it. O(ops + edges) for an expansion. */
#include "graph/demand.h"
#include "plan/chains/chain_of_graph.h"
#include "plan/planner.h"

#include <assert.h>

enum {
    BUDGETS = 400, /* 100 left out plans that were a fifth cheaper (distilbert at 20 %) */
    STEP_WORK = 4  /* operations to expand and to measure a step */
};

typedef struct expander {
    remat_ctx *ctx;
    const rm_problem *p;
    const remat_graph *g;
    rm_incumbent *best;
    rm_stages stages;
    uint8_t *due;     /* by op */
    uint8_t *started; /* by stage: it has been forwarded */
    rm_demand demand;
    rm_schedule steps;
    RM_VEC(uint64_t) judged; /* digests of the candidates so far */
} expander;

/* The op that makes the value, if it is due; then it is due no longer. */
static uint32_t due_maker(void *user, uint32_t value)
{
    expander *x = user;
    const uint32_t op = x->g->producer[value];
    if (op == REMAT_NONE || !x->due[op]) return REMAT_NONE;
    x->due[op] = 0;
    return op;
}

static remat_status run_op(void *user, uint32_t op)
{
    expander *x = user;
    return rm_schedule_run(x->ctx, &x->steps, op);
}

static remat_status expand(expander *x, const rm_schedule *chain_steps)
{
    const rm_stages *s = &x->stages;
    x->steps.n = 0;
    for (uint32_t op = 0; op < x->g->n_ops; op++) x->due[op] = 0;
    for (uint32_t i = 0; i <= s->n; i++) x->started[i] = 0;
    for (size_t t = 0; t < chain_steps->n; t++) {
        const uint32_t l = chain_steps->items[t].index;
        const bool is_backward = chain_steps->items[t].kind == REMAT_B;
        const bool again = !is_backward && x->started[l];
        const uint32_t list = is_backward ? s->n + l : l;
        assert(l >= 1 && l <= s->n);
        for (uint32_t k = s->begin[list]; k < s->begin[list + 1]; k++) {
            const uint32_t op = s->ops[k];
            if (!again) TRY(rm_demand_run(&x->demand, op));
            else if (!s->runs_once[op]) x->due[op] = 1;
        }
        if (!is_backward) x->started[l] = 1;
    }
    return REMAT_OK;
}

/* FNV-1a over the steps. Two candidates of one digest would be a pity, not a fault. */
static uint64_t digest_of(const rm_schedule *steps)
{
    uint64_t digest = UINT64_C(14695981039346656037);
    for (size_t t = 0; t < steps->n; t++) {
        const uint64_t step = (uint64_t)steps->items[t].index << 3 | steps->items[t].kind;
        digest = (digest ^ step) * UINT64_C(1099511628211);
    }
    return digest;
}

/* Neighbouring budgets, and the forms of a table, often have the same schedule. */
static remat_status is_new(expander *x, const rm_schedule *candidate, bool *answer)
{
    const uint64_t digest = digest_of(candidate);
    *answer = false;
    for (size_t i = 0; i < x->judged.n; i++)
        if (x->judged.items[i] == digest) return REMAT_OK;
    *answer = true;
    return RM_PUSH(x->ctx, x->judged, digest);
}

static remat_status judge(void *user, const rm_schedule *candidate)
{
    expander *x = user;
    bool unseen;
    TRY(is_new(x, candidate, &unseen));
    if (!unseen) return REMAT_OK;
    const double least_work = STEP_WORK * ((double)x->g->n_ops + x->g->n_in);
    if (x->best->any && !rm_can_afford(x->ctx, least_work)) return REMAT_OK;
    TRY(expand(x, candidate));
    rm_spend(x->ctx, STEP_WORK * (int64_t)(x->steps.n + candidate->n + x->g->n_ops));
    return rm_offer(x->p, x->best, &x->steps);
}

/* Evenly spread from the chain's need to its keep-all peak. */
static remat_status choose_budgets(remat_ctx *ctx, const remat_chain *chain,
                                   int64_t budgets[BUDGETS])
{
    uint32_t stage;
    const int64_t need = rm_chain_need(chain, &stage), no_limit = INT64_MAX;
    const rm_chain_problem p = {.ctx = ctx, .chain = chain, .budgets = &no_limit, .n_budgets = 1};
    rm_chain_result keep_all = {0};
    const remat_status status = rm_keep_all.run_chain(&p, &keep_all);
    RM_VEC_FREE(&ctx->heap, keep_all.steps);
    const int64_t span = keep_all.peak_bytes > need ? keep_all.peak_bytes - need : 0;
    for (uint32_t i = 0; i < BUDGETS; i++)
        budgets[i] = need + (int64_t)((rm_uint128)span * i / (BUDGETS - 1));
    return status;
}

static remat_status sweep(expander *x, const rm_planner *planner, const remat_chain *chain,
                          rm_chain_result *results)
{
    remat_ctx *ctx = x->ctx;
    int64_t budgets[BUDGETS];
    TRY(choose_budgets(ctx, chain, budgets));
    const rm_chain_problem p = {.ctx = ctx,
                                .chain = chain,
                                .budgets = budgets,
                                .n_budgets = BUDGETS,
                                .judge = judge,
                                .user = x};
    return planner->run_chain(&p, results);
}

static remat_status begin(const rm_problem *p, rm_incumbent *best, rm_cut_choice choice,
                          expander *x)
{
    remat_ctx *ctx = p->ctx;
    const remat_graph *g = p->graph;
    *x = (expander){.ctx = ctx, .p = p, .g = g, .best = best};
    TRY(rm_stages_find(ctx, g, choice, &x->stages));
    TRY(RM_SCRATCH(ctx, x->due, g->n_ops));
    TRY(RM_SCRATCH(ctx, x->started, (size_t)x->stages.n + 1));
    x->demand = (rm_demand){
        .in_begin = g->in_begin, .in = g->in, .ask = due_maker, .run = run_op, .user = x};
    return rm_demand_begin(ctx, &x->demand, g->n_ops);
}

static remat_status run(const rm_problem *p, rm_incumbent *best, const rm_planner *planner,
                        rm_cut_choice choice)
{
    remat_ctx *ctx = p->ctx;
    expander x;
    rm_chain_result *results;
    remat_chain *chain = NULL;
    TRY(begin(p, best, choice, &x));
    TRY(RM_SCRATCH(ctx, results, BUDGETS));
    const remat_chain head = {
        .name = "", .size_unit = "", .cost_unit = "", .n_stages = x.stages.n - 1};
    TRY(rm_chain_of_stages(ctx, &head, &x.stages, &chain));
    remat_status status;
    if (rm_chain_can_be_planned(chain)) status = sweep(&x, planner, chain, results);
    else status = rm_fail(ctx, REMAT_E_APPLIES, "a schedule of the stages may cost 2^62 or more");
    remat_chain_free(chain);
    for (uint32_t i = 0; i < BUDGETS; i++) RM_VEC_FREE(&ctx->heap, results[i].steps);
    RM_VEC_FREE(&ctx->heap, x.steps);
    RM_VEC_FREE(&ctx->heap, x.judged);
    return status;
}

remat_status rm_run_by_chain(const rm_problem *p, rm_incumbent *best, const rm_planner *planner)
{
    static const rm_cut_choice choices[] = {RM_CUTS_READ_BACKWARD, RM_ALL_CUTS};
    for (size_t i = 0; i < RM_LEN(choices); i++) {
        const rm_mark mark = rm_scratch_mark(p->ctx);
        const remat_status status = run(p, best, planner, choices[i]);
        rm_scratch_release(p->ctx, mark);
        /* One choice of cuts that does not apply is passed over, if there is a plan or another
         * choice. */
        const bool is_last = i + 1 == RM_LEN(choices);
        if (status != REMAT_OK && (status != REMAT_E_APPLIES || (is_last && !best->any)))
            return status;
    }
    if (best->any) return REMAT_OK;
    return rm_keep_all.run(p, best); /* it was stopped before the first candidate */
}
