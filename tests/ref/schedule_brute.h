/* schedule_brute.h: the cheapest schedule within a budget, by trying all schedules of
 * docs/model.md: Dijkstra over (ops that have run, which storage instance each value's newest
 * instance refers to).
 *
 * Nothing is simplified: views are ops like others, a view may be stale, and several instances of a
 * storage may be in memory. Works on the graph as naive.h has it. Only for tiny graphs. */
#ifndef SCHEDULE_BRUTE_H
#define SCHEDULE_BRUTE_H

#include "naive.h"

#define BRUTE_NO_SCHEDULE INT64_MAX /* no schedule fits */

bool brute_schedules_can(const naive_graph *g); /* is it small enough? */
/* `order`: the ops that are no free views, by first run; NULL: any order. */
int64_t brute_least_schedule(const naive_graph *g, const uint32_t *order, int64_t budget_bytes);
/* All outputs are views, and it costs nothing: it has no place in an order (docs/bound.md). */
bool brute_is_free_view(const naive_graph *g, uint32_t op);

#endif
