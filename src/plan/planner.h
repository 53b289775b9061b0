/* planner.h: what a planner gets, and what it gives back. A planner is one file and one row in
 * planners.c. */
#ifndef RM_PLANNER_H
#define RM_PLANNER_H

#include "graph/chain.h"
#include "graph/normal.h"

typedef struct rm_planner rm_planner;

/* ---- graphs ---- */

typedef struct rm_problem {
    remat_ctx *ctx;
    const remat_graph *graph;
    int64_t budget_bytes; /* or REMAT_BUDGET_NONE, REMAT_BUDGET_MIN */
} rm_problem;

typedef struct rm_proved_bound { /* nothing of the scope costs less; scope NULL: there is none */
    int64_t cost;
    const char *scope, *method;
} rm_proved_bound;

/* The best schedule so far. One is better than another by these rules, the first that decides:
 *   - It is within the budget, and the other is not.
 *   - Within the budget it is cheaper; over it, its peak is lower.
 *   - The other of the two numbers is lower.
 * Under REMAT_BUDGET_MIN the lower peak is better, then the lower cost. */
typedef struct rm_incumbent {
    rm_schedule steps; /* in the graph's own indices */
    int64_t peak_bytes, cost;
    bool any;
    /* No plan within the budget costs less that has the steps' order of first runs. 0: nobody has
     * proved such a thing. */
    int64_t proved;
    remat_stopped stopped; /* why the planner ended: for whoever runs it */
    /* Of the last candidate. INT64_MAX: there was none, or its cost or memory passes 2^62. */
    int64_t offered_peak_bytes;
    rm_proved_bound bound; /* what the planner has proved */
    bool infeasible;       /* a search has proved that no schedule fits, in any order */
} rm_incumbent;

/* Is such a schedule better than the best so far? */
bool rm_is_better(const rm_problem *p, int64_t peak_bytes, int64_t cost, const rm_incumbent *best);
/* Measures the candidate, and copies it if it is better. */
remat_status rm_offer(const rm_problem *p, rm_incumbent *best, const rm_schedule *candidate);
/* The same for codes, which it expands into steps. */
remat_status rm_offer_codes(const rm_problem *p, const rm_normal *nm, const rm_codes *codes,
                            rm_incumbent *best);
bool rm_fits(const rm_problem *p, int64_t peak_bytes);
/* For a budget: is it known that no plan in any order costs less, or that none fits? */
bool rm_is_settled(const rm_problem *p, const rm_incumbent *best);
/* Makes `to` a copy of `from`. */
remat_status rm_schedule_copy(remat_ctx *ctx, rm_schedule *to, const rm_schedule *from);

/* Runs another planner with a share of what is left of the limits. A planner that does not apply is
 * passed over, and so is one that would take more memory than there may be: REMAT_OK. */
remat_status rm_try_planner(const rm_problem *p, const rm_planner *planner, double share,
                            rm_incumbent *best);

/* ---- chains: one call answers for several budgets, so that a curve costs one table ---- */

typedef struct rm_chain_problem {
    remat_ctx *ctx;
    const remat_chain *chain;
    const int64_t *budgets; /* ascending, each >= 0, at least one */
    uint32_t n_budgets;
    struct rm_chain_result *least; /* if not NULL: the lowest peak is asked for as well */
    /* If not NULL: sees every candidate. */
    remat_status (*judge)(void *user, const rm_schedule *candidate);
    void *user;
} rm_chain_problem;

typedef struct rm_chain_result { /* by budget */
    rm_schedule steps;
    int64_t peak_bytes, cost;
    bool any, fits;
    bool infeasible; /* proved, in the planner's model: no schedule fits */
    bool optimal;    /* proved, in the chain model: none that fits is cheaper */
} rm_chain_result;

/* Measures the candidate and keeps it for every budget where it is better, by the rules of
 * rm_incumbent. */
remat_status rm_chain_offer(const rm_chain_problem *p, rm_chain_result *results,
                            const rm_schedule *candidate);

/* ---- planners ---- */

struct rm_planner {
    remat_entry entry;    /* name and help */
    int64_t default_work; /* operations (base/limits.h), where neither work nor time is asked for */
    int64_t least_work;   /* the same where the lowest peak is asked for; 0: default_work */
    /* Both only ever improve what is there. They return REMAT_E_APPLIES, with the reason, where the
     * strategy has nothing to say about this graph or chain. */
    remat_status (*run)(const rm_problem *p, rm_incumbent *best);
    /* NULL: the strategy is for graphs only. */
    remat_status (*run_chain)(const rm_chain_problem *p, rm_chain_result *results);
    /* The options that it heeds, besides those that all do (limits, seed, threads, bound_rules):
     * names in alphabetical order, a space between two. NULL: none. */
    const char *heeds;
    /* Where the option offload is on it runs so many strategies, each with the whole limit of work.
     * 0: one. */
    uint32_t parts_with_offload;
    /* It lets this strategy run with the whole limit of work that the caller asks for, and has as
     * much for itself. So it is never worse by that limit. NULL: none. */
    const rm_planner *within;
    /* Does it begin from the plan that is there? The others are run by themselves, and what they
     * find is compared with it. */
    bool continues;
};

/* NULL: the name is unknown, and the error is set. */
const rm_planner *rm_planner_find(remat_ctx *ctx, const char *name);
/* offload and order_only say which plans are wanted. A planner obeys them, or this refuses it:
 * REMAT_E_APPLIES. */
remat_status rm_planner_obeys(remat_ctx *ctx, const rm_planner *planner);

extern const rm_planner rm_keep_all, rm_periodic, rm_chen_sqrt, rm_chen_greedy, rm_ap_sqrt,
    rm_ap_greedy, rm_lin_sqrt, rm_lin_greedy, rm_revolve, rm_rotor, rm_rotor_float, rm_mincut,
    rm_save_inputs, rm_save_layers, rm_fastsa_group, rm_fastsa, rm_fastsa_order, rm_fastsa_offload,
    rm_checkmate_milp, rm_checkmate_lp, rm_auto, rm_exact;

/* ---- what chain planners share (chain_steps.c, by_chain.c) ---- */

remat_status rm_chain_step(remat_ctx *ctx, rm_schedule *s, remat_step_kind kind, uint32_t stage);
/* Appends the schedule that follows from a set of checkpoints. A stage whose input is a checkpoint
 * begins a segment. All segments but the last are forwarded twice. checkpoint[l - 1]: is a^l a
 * checkpoint? It has an entry for each of the L stages. */
remat_status rm_chain_segments(remat_ctx *ctx, const remat_chain *c, const uint8_t *checkpoint,
                               rm_schedule *out);
/* Where some budget has nothing that fits, offers two schedules of little memory. One has its
 * checkpoints at halves of halves. The other computes everything again from the input for every
 * stage; it is offered if there is time for it. */
remat_status rm_chain_offer_least(const rm_chain_problem *p, rm_chain_result *results);
/* A chain strategy on a graph: extracts the chain, solves it for a sweep of budgets, expands each
 * candidate into ops, and offers all of them. */
remat_status rm_run_by_chain(const rm_problem *p, rm_incumbent *best, const rm_planner *planner);

#endif
