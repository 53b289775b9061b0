/* by_chain.c: chain strategies on graphs: the graph as a chain (src/plan/chains/chain_of_graph.c),
 * the strategy on the chain for a sweep of budgets, each answer expanded into ops and judged by the
 * graph's own model.
 *
 * Expansion is by demand. The first time a stage is forwarded, its ops run as they stand. When the
 * chain's schedule forwards it again, its ops only become *due*; a due op runs when a backward op,
 * or another due op that runs, reads what it makes. So recomputation is just in time, what nobody
 * needs is never run, and what a chain operation keeps or drops follows from what is due and what
 * is not.
 *
 * The chain is a model of the graph, a little too careful here and too careless there; so the sweep
 * covers all budgets from the chain's need to its keep-all peak, on two chains (fewer cuts, all
 * cuts), every schedule that the strategy considers is expanded, and the cheapest that really fits
 * is taken. O(ops + edges) per expansion. */
#include "graph/demand.h"
#include "plan/chains/chain_of_graph.h"
#include "plan/planner.h"

enum { BUDGETS = 100, STEP_WORK = 16 /* to expand and to measure a step */ };

typedef struct expander {
    remat_ctx *ctx;
    const rm_problem *p;
    const remat_graph *g;
    rm_incumbent *best;
    rm_stages stages;
    uint8_t *due;     /* by op */
    uint8_t *started; /* by stage: has been forwarded */
    rm_demand demand;
    rm_schedule steps;
} expander;

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
        const uint32_t l = chain_steps->items[t].index,
                       list = chain_steps->items[t].kind == REMAT_B ? s->n + l : l;
        const bool again = list == l && x->started[l];
        for (uint32_t k = s->begin[list]; k < s->begin[list + 1]; k++) {
            const uint32_t op = s->ops[k];
            if (!again) TRY(rm_demand_run(&x->demand, op));
            else if (!s->runs_once[op]) x->due[op] = 1;
        }
        if (list == l) x->started[l] = 1;
    }
    return REMAT_OK;
}

static remat_status judge(void *user, const rm_schedule *candidate)
{
    expander *x = user;
    const double least_work = STEP_WORK * ((double)x->g->n_ops + x->g->n_in);
    if (x->best->any && !rm_can_afford(x->ctx, least_work)) return REMAT_OK;
    TRY(expand(x, candidate));
    rm_spend(x->ctx, STEP_WORK * (int64_t)(x->steps.n + candidate->n + x->g->n_ops));
    return rm_offer(x->p, x->best, &x->steps);
}

static remat_status sweep(expander *x, const rm_planner *planner, const remat_chain *chain,
                          rm_chain_result *results)
{
    remat_ctx *ctx = x->ctx;
    rm_chain_result base = {0};
    int64_t budgets[BUDGETS];
    uint32_t stage;
    const int64_t no_limit = INT64_MAX, need = rm_chain_need(chain, &stage);
    remat_status status = rm_keep_all.run_chain(
        &(rm_chain_problem){.ctx = ctx, .chain = chain, .budgets = &no_limit, .n_budgets = 1},
        &base);
    const int64_t span = base.peak_bytes > need ? base.peak_bytes - need : 0;
    RM_VEC_FREE(&ctx->heap, base.steps);
    for (uint32_t i = 0; i < BUDGETS; i++)
        budgets[i] = need + (int64_t)((rm_uint128)span * i / (BUDGETS - 1));
    const rm_chain_problem p = {.ctx = ctx,
                                .chain = chain,
                                .budgets = budgets,
                                .n_budgets = BUDGETS,
                                .judge = judge,
                                .user = x};
    return status == REMAT_OK ? planner->run_chain(&p, results) : status;
}

static remat_status run(const rm_problem *p, rm_incumbent *best, const rm_planner *planner,
                        rm_cut_choice choice)
{
    remat_ctx *ctx = p->ctx;
    expander x = {.ctx = ctx, .p = p, .g = p->graph, .best = best};
    rm_chain_result *results;
    remat_chain *chain = NULL;
    TRY(rm_stages_find(ctx, p->graph, choice, &x.stages));
    TRY(RM_SCRATCH(ctx, x.due, p->graph->n_ops));
    TRY(RM_SCRATCH(ctx, x.started, (size_t)x.stages.n + 1));
    x.demand = (rm_demand){.in_begin = p->graph->in_begin,
                           .in = p->graph->in,
                           .ask = due_maker,
                           .run = run_op,
                           .user = &x};
    TRY(rm_demand_begin(ctx, &x.demand, p->graph->n_ops));
    TRY(RM_SCRATCH(ctx, results, BUDGETS));
    const remat_chain head = {
        .name = "", .size_unit = "", .cost_unit = "", .n_stages = x.stages.n - 1};
    TRY(rm_chain_of_stages(ctx, &head, &x.stages, &chain));
    const remat_status status =
        rm_chain_can_be_planned(chain)
            ? sweep(&x, planner, chain, results)
            : rm_fail(ctx, REMAT_E_APPLIES, "a schedule of the stages may cost 2^62 or more");
    remat_chain_free(chain);
    for (uint32_t i = 0; i < BUDGETS; i++) RM_VEC_FREE(&ctx->heap, results[i].steps);
    RM_VEC_FREE(&ctx->heap, x.steps);
    return status;
}

remat_status rm_run_by_chain(const rm_problem *p, rm_incumbent *best, const rm_planner *planner)
{
    static const rm_cut_choice choices[] = {RM_CUTS_READ_BACKWARD, RM_ALL_CUTS};
    for (size_t i = 0; i < RM_LEN(choices); i++) {
        const rm_mark mark = rm_scratch_mark(p->ctx);
        const remat_status status = run(p, best, planner, choices[i]);
        rm_scratch_release(p->ctx, mark);
        const bool last = i + 1 == RM_LEN(choices);
        if (status != REMAT_OK && (status != REMAT_E_APPLIES || (last && !best->any)))
            return status;
    }
    return best->any ? REMAT_OK : rm_keep_all.run(p, best); /* stopped before the first candidate */
}
