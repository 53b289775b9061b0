/* plan_make.h: from what a strategy found to a plan. */
#ifndef RM_PLAN_MAKE_H
#define RM_PLAN_MAKE_H

#include "plan/planner.h"

/* Measures, verifies and judges the best schedule, and makes the plan. There must be a best. Its
 * steps change to the indices of the original graph. transfers: what the planner may have used. */
remat_status rm_plan_finish(const rm_problem *p, const rm_planner *planner, rm_transfers transfers,
                            rm_incumbent *best, remat_plan **out);

#endif
