/* rounding.h: a plan read off the bound's linear program. */
#ifndef RM_ROUNDING_H
#define RM_ROUNDING_H

#include "plan/bound/order_bound.h"

typedef struct rm_rounding_options {
    int64_t budget_bytes;
    unsigned rules;        /* as in order_bound.h */
    const uint32_t *order; /* of first runs; NULL: the graph's own */
    unsigned percent;      /* a gap of which the program keeps less than this is lost; 0: 50 */
} rm_rounding_options;

/* A valid sequence with the given order of first runs. What lost gaps held is made again just
 * before its next use. The sequence need not fit the budget: memory that recomputation takes is not
 * in the program. Replaces what is in `out`. It is left empty if the program says that nothing
 * fits, if the sequence would be very long, or if views got in the way. */
remat_status rm_round_order_bound(remat_ctx *ctx, const rm_normal *nm,
                                  const rm_rounding_options *options, rm_codes *out);

/* Budgets to round for, from the whole one down: i < RM_ROUNDING_BUDGETS. */
enum { RM_ROUNDING_BUDGETS = 10 };
int64_t rm_rounding_budget(int64_t budget_bytes, int i);

#endif
