/* all_orders.h: the search through all orders (any_order.c), on behalf of a planner. */
#ifndef RM_ALL_ORDERS_H
#define RM_ALL_ORDERS_H

#include "plan/planner.h"

/* For graphs where rm_any_order_applies, and plans that do not fetch. Searches all plans, in all
 * orders, for one that is cheaper than the best so far, within the context's limits. Offers it, and
 * notes in best->bound and best->infeasible what is proved. strategy: who asks, for progress. */
remat_status rm_search_all_orders(const rm_problem *p, const rm_normal *nm, const char *strategy,
                                  rm_incumbent *best);

#endif
