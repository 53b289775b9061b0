/* anneal.h: auto's search, for others too. */
#ifndef RM_ANNEAL_H
#define RM_ANNEAL_H

#include "plan/search/search.h"

/* Searches, within the context's limits, for the cheapest sequence over `nm` within p's budget. It
 * starts from keep-all and from `seed`, which is ignored unless it is longer than keep-all. found:
 * the best sequence, or empty. */
remat_status rm_anneal(const rm_problem *p, const rm_normal *nm, const rm_codes *seed,
                       rm_codes *found);

#endif
