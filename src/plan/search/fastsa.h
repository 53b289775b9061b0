/* fastsa.h: the part of fastsa that auto runs, and the formulas that tests hold against the paper.
 */
#ifndef RM_FASTSA_H
#define RM_FASTSA_H

#include "plan/planner.h"

/* With the option offload: anneals recomputation and transfers together, with all that is left of
 * the limits. Half of the walkers start from `other`, half from the best. */
remat_status rm_fastsa_together(const rm_problem *p, const rm_schedule *other, const char *name,
                                rm_incumbent *best);

double rm_fastsa_strict(double budget, double memory, double cost); /* footnote 2 */
double rm_fastsa_heat(double first, double share); /* D.4: the temperature after a share of a leg */

#endif
