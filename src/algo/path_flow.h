/* path_flow.h: fractional packing of intervals on a line: which part of each interval to take, at
 * most `room` at every row. */
#ifndef RM_PATH_FLOW_H
#define RM_PATH_FLOW_H

#include "base/base.h"

typedef struct rm_interval { /* covers rows first .. last */
    uint32_t first, last;
    int64_t size; /* the most that can be taken, > 0 */
    /* Per unit taken, >= 0. Prices are sums of profits: profit * (rows + 1) is at most 2^60. */
    int64_t profit;
} rm_interval;

typedef struct rm_path_flow { /* arrays live in scratch */
    uint32_t n_rows, n_intervals;
    const int64_t *room; /* by row, >= 0 */
    /* Sizes and rows must stay as they are. Profits may change between solves. */
    const rm_interval *intervals;
    int64_t *taken; /* by interval: 0 .. size */
    int64_t *price; /* by row, >= 0: the dual solution */
    int64_t work;   /* operations that are left: solves count it down, and stop when it is spent */
    const remat_ctx *ctx; /* they stop too when it is late */
    bool optimal;         /* else they stopped early: taken and price are good, not best */
    struct rm_tree *tree;
} rm_path_flow;

/* Maximises the sum of profit * taken. rm_path_flow_new packs greedily, by the profits there are.
 * Each solve starts from the solution before it. */
remat_status rm_path_flow_new(remat_ctx *ctx, uint32_t n_rows, const int64_t *room,
                              uint32_t n_intervals, const rm_interval *intervals,
                              rm_path_flow *out);
void rm_path_flow_solve(rm_path_flow *f);

#endif
