/* checkmate_model.h: Checkmate's program (8) over the normal graph, as it stands in the paper and
 * as we would have it. */
#ifndef RM_CHECKMATE_MODEL_H
#define RM_CHECKMATE_MODEL_H

#include "graph/normal.h"
#include "milp/model.h"
#include "plan/checkmate/optimal_r.h"

/* A column whose value follows from others: the larger of two (REMAT_NONE: 0). */
typedef struct rm_larger_of {
    uint32_t column, a, b;
} rm_larger_of;
/* Or from a row that begins with it: what the rest of the row leaves. */
typedef struct rm_sum_of {
    uint32_t column, row;
} rm_sum_of;

typedef struct rm_checkmate {
    const rm_normal *nm;
    int64_t budget_bytes;
    uint32_t splits; /* turns for each op (4.10) */
    bool any_order;  /* no frontier: every op runs somewhere (4.3) */
    bool plain;      /* nothing presolved: R, S, U and FREE as printed */
    /* What re-runs may cost together, as a plan of that cost is known. INT64_MAX: none is. */
    int64_t most_extra;

    /* Made by rm_checkmate_build: */
    rm_model model;
    uint32_t n_turns;
    /* R, by turn, by op: its column. REMAT_NONE: the op does not run there. */
    uint32_t *run;
    /* S, n_turns + 1 rows by storage: its column. REMAT_NONE: not kept from the turn before. */
    uint32_t *kept;
    double cost_scale;  /* objective = cost of re-runs * cost_scale (any_order: of all runs) */
    int64_t cost_unit;  /* divides every cost of a re-run */
    int64_t first_cost; /* of first runs, which is not part of the objective */
    /* Columns that follow from others, in the order in which they were made. */
    RM_VEC(rm_larger_of) larger;
    RM_VEC(rm_sum_of) sums;
} rm_checkmate;

/* The most entries that a program may have. They are few, unless the caller has said how long it
 * may take. */
size_t rm_checkmate_entries(const remat_ctx *ctx);
/* Tables lie in scratch. rm_checkmate_free frees the rest. */
remat_status rm_checkmate_build(remat_ctx *ctx, rm_checkmate *x);
void rm_checkmate_free(remat_ctx *ctx, rm_checkmate *x);
/* The order that a solution means: its runs, turn by turn. */
remat_status rm_checkmate_codes(remat_ctx *ctx, const rm_checkmate *x, const double *values,
                                rm_codes *out);
/* A solution, `values` by column, from an order as rm_optimal_r makes it. Not *fits: the program
 * has none like it. */
remat_status rm_checkmate_start(remat_ctx *ctx, const rm_checkmate *x, const rm_codes *codes,
                                double *values, bool *fits);
/* What a lower limit on the objective says of whole costs. */
int64_t rm_checkmate_cost(const rm_checkmate *x, double objective);

#endif
