/* planner.h: what a planner gets, and what it gives back. A planner is one file and one row in
 * planners.c. */
#ifndef RM_PLANNER_H
#define RM_PLANNER_H

#include "graph/chain.h"
#include "graph/normal.h"

typedef struct rm_planner rm_planner;

typedef struct rm_problem {
    remat_ctx *ctx;
    const remat_graph *graph;
    int64_t budget_bytes; /* or REMAT_BUDGET_NONE, REMAT_BUDGET_MIN */
} rm_problem;

/* The best schedule so far. Better: within the budget before over it; then, within it, cheaper, or,
 * over it, of lower peak; ties by the other number. Under REMAT_BUDGET_MIN the lower peak is
 * better. */
typedef struct rm_incumbent {
    rm_schedule steps; /* in the graph's own indices */
    int64_t peak_bytes, cost;
    bool any;
    int64_t proved; /* for the steps' order of first runs: no plan within the budget costs less; 0:
                       nobody says so */
    remat_stopped stopped;      /* why the planner ended: for whoever runs it */
    int64_t offered_peak_bytes; /* of the last candidate; INT64_MAX if it is none: past 2^62 */
    struct { /* what the planner has proved, if scope is not NULL: nothing of that scope costs less
              */
        int64_t cost;
        const char *scope, *method;
    } bound;
} rm_incumbent;

remat_status rm_offer(const rm_problem *p, rm_incumbent *best,
                      const rm_schedule *candidate); /* measures it; copies it if it is better */
/* The codes, expanded into steps, to rm_offer. */
remat_status rm_offer_codes(const rm_problem *p, const rm_normal *nm, const rm_codes *codes,
                            rm_incumbent *best);
bool rm_fits(const rm_problem *p, int64_t peak_bytes);

/* Another planner, with a share of what is left of the limits. One that does not apply, or that
 * would take more memory than there may be, is passed over: REMAT_OK. */
remat_status rm_try_planner(const rm_problem *p, const rm_planner *planner, double share,
                            rm_incumbent *best);

/* Chains. One call answers for several budgets, so that a curve costs one table. */
typedef struct rm_chain_problem {
    remat_ctx *ctx;
    const remat_chain *chain;
    const int64_t *budgets; /* ascending, each >= 0, at least one */
    uint32_t n_budgets;
    struct rm_chain_result *least; /* if not NULL: the lowest peak is asked for as well */
    remat_status (*judge)(void *user,
                          const rm_schedule *candidate); /* if not NULL: sees every candidate */
    void *user;
} rm_chain_problem;

typedef struct rm_chain_result { /* by budget */
    rm_schedule steps;
    int64_t peak_bytes, cost;
    bool any, fits;
    bool infeasible; /* proved, in the planner's model: no schedule fits */
    bool optimal;    /* proved, in the chain model: none that fits is cheaper */
} rm_chain_result;

/* Measures the candidate and keeps it for every budget where it is better (as above). */
remat_status rm_chain_offer(const rm_chain_problem *p, rm_chain_result *results,
                            const rm_schedule *candidate);

struct rm_planner {
    remat_entry entry;    /* name and help */
    int64_t default_work; /* operations (base/limits.h), where neither work nor time is asked for */
    /* Only ever improve what is there. REMAT_E_APPLIES, with the reason, where there is nothing to
     * say about this graph or chain. */
    remat_status (*run)(const rm_problem *p, rm_incumbent *best);
    remat_status (*run_chain)(const rm_chain_problem *p,
                              rm_chain_result *results); /* NULL: graphs only */
};

const rm_planner *rm_planner_find(remat_ctx *ctx,
                                  const char *name); /* NULL: unknown, and the error is set */

extern const rm_planner rm_keep_all, rm_periodic, rm_chen_sqrt, rm_chen_greedy, rm_ap_sqrt,
    rm_ap_greedy, rm_lin_sqrt, rm_lin_greedy, rm_revolve, rm_rotor, rm_rotor_float, rm_mincut,
    rm_save_inputs, rm_save_layers, rm_fastsa_group, rm_fastsa, rm_fastsa_order, rm_fastsa_offload,
    rm_checkmate_milp, rm_checkmate_lp, rm_auto, rm_exact;

/* What chain planners share (chain_steps.c). */
remat_status rm_chain_step(remat_ctx *ctx, rm_schedule *s, remat_step_kind kind, uint32_t stage);
/* One pass: stages whose input is a checkpoint begin a segment; all but the last segment are
 * forwarded twice. checkpoint[l - 1]: is a^l one? */
remat_status rm_chain_segments(remat_ctx *ctx, const remat_chain *c, const uint8_t *checkpoint,
                               rm_schedule *out);
/* Where some budget has nothing that fits: checkpoints at halves of halves and, if there is time,
 * everything computed again from the input for every stage. */
remat_status rm_chain_offer_least(const rm_chain_problem *p, rm_chain_result *results);
/* A graph strategy that is a chain strategy: extract the chain, solve it for a sweep of budgets,
 * expand each candidate into ops, offer all. */
remat_status rm_run_by_chain(const rm_problem *p, rm_incumbent *best, const rm_planner *planner);

#endif
