/* planner.h: what a planner gets, and what it gives back. A planner is one file and one row in planners.c. */
#ifndef RM_PLANNER_H
#define RM_PLANNER_H

#include "graph/schedule.h"

typedef struct rm_problem {
    remat_ctx *ctx;
    const remat_graph *graph;
    int64_t budget_bytes; /* or REMAT_BUDGET_NONE, REMAT_BUDGET_MIN */
} rm_problem;

/* The best schedule so far. Better: within the budget before over it; then, within it, cheaper, or, over it, of lower peak;
 * ties by the other number. Under REMAT_BUDGET_MIN the lower peak is better. */
typedef struct rm_incumbent {
    rm_schedule steps; /* in the graph's own indices */
    int64_t peak_bytes, cost;
    bool any;
} rm_incumbent;

remat_status rm_offer(const rm_problem *p, rm_incumbent *best,
                      const rm_schedule *candidate); /* measures it; copies it if it is better */
bool rm_fits(const rm_problem *p, int64_t peak_bytes);

typedef struct rm_planner {
    remat_entry entry; /* name and help */
    int64_t default_work;
    /* Only ever improves the incumbent. REMAT_E_APPLIES, with the reason, where it has nothing to say about this graph. */
    remat_status (*run)(const rm_problem *p, rm_incumbent *best);
} rm_planner;

const rm_planner *rm_planner_find(remat_ctx *ctx, const char *name); /* NULL: unknown, and the error is set */

extern const rm_planner rm_keep_all, rm_periodic, rm_chen_sqrt, rm_chen_greedy;

#endif
