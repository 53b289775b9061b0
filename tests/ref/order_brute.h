/* order_brute.h: the cheapest schedule within a budget, by trying everything: Dijkstra over (ops
 * that have run, storages that are there).
 *
 * Works on the graph without views (graph/normal.h). A step runs an op whose inputs are there; the
 * storages it makes are there afterwards; any storage may be dropped at any time. Only for tiny
 * graphs: 2^stores states for every set of ops that have run. */
#ifndef ORDER_BRUTE_H
#define ORDER_BRUTE_H

#include "graph/normal.h"

enum { BRUTE_MOST_STORES = 12, BRUTE_MOST_OPS = 12 };
#define BRUTE_NOTHING INT64_MAX /* no schedule fits */

bool brute_can(const rm_normal *nm); /* is it small enough? */
/* Is it never of use to have two instances of a storage in memory? It may be if an op makes the
 * base of another op's view, and something else that may get lost: when it runs again for that, the
 * view goes on looking at the older instance. Then schedules may be cheaper than these
 * (schedule_brute.h knows them). */
bool brute_one_instance(const rm_normal *nm);
/* `order`: the first runs, by op of nm; NULL: any order, for which ops + stores may be 20 at most.
 * `transfer`, by storage: what a fetch costs; offloads, which would cost as much once, are free
 * here. NULL: no fetches. */
int64_t brute_least_cost(const rm_normal *nm, const uint32_t *order, int64_t budget_bytes,
                         const int64_t *transfer);
/* Of Checkmate's form: first runs in the graph's order; before each of them `splits` passes over
 * the earlier ops, in which each may run once and in order. */
int64_t brute_least_cost_in_turns(const rm_normal *nm, uint32_t splits, int64_t budget_bytes);

#endif
