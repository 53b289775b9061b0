/* descend.h: sequences of the lowest peak, whatever they cost. */
#ifndef RM_DESCEND_H
#define RM_DESCEND_H

#include "plan/search/search.h"

/* Searches, within the context's limits, for a sequence over `nm` with as low a peak as there is,
 * and ends at one within p's budget. It starts from `seed`, or from keep-all where that is none to
 * start from (rm_seed_is_usable). found: the lowest, or empty. */
remat_status rm_descend(const rm_problem *p, const rm_normal *nm, const rm_codes *seed,
                        rm_codes *found);

#endif
