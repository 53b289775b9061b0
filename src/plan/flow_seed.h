/* flow_seed.h: a plan read off the bound's linear program. */
#ifndef RM_FLOW_SEED_H
#define RM_FLOW_SEED_H

#include "plan/bound.h"

/* A valid sequence with the given order of first runs (NULL: the graph's own): gaps of which the program, with the rules (bound.h), keeps less
 * than half are lost, and what they held is made again just before its next use. It need not fit the budget: memory that recomputation
 * takes is not in the program. Replaces what is in out; empty if the program says that nothing fits, if the sequence would be
 * very long, or if views got in the way. */
remat_status rm_flow_seed(remat_ctx *ctx, const rm_normal *nm, int64_t budget_bytes, unsigned rules, const uint32_t *order,
                          rm_codes *out);

/* Budgets to round for, from the whole one down. */
enum { RM_FLOW_CAPS = 10 };
int64_t rm_flow_cap(int64_t budget_bytes, int i);

#endif
