/* checkmate_start.h: schedules of Checkmate's form from those of others. */
#ifndef RM_CHECKMATE_START_H
#define RM_CHECKMATE_START_H

#include "graph/normal.h"
#include "milp/backend.h"
#include "plan/search/search.h"

/* Brings an order into the graph's own order of first runs, each op at most once a turn, and offers
 * it. */
remat_status rm_offer_in_turns(const rm_problem *p, const rm_normal *nm, const rm_codes *codes,
                               rm_incumbent *best);
/* Searches in the graph's order from `seed`, which is longer than keep-all, up to the limit. Offers
 * what it finds, brought into Checkmate's form. Not `in_turns`: if that does not fit, also as it
 * is. */
remat_status rm_anneal_in_order(const rm_problem *p, const rm_normal *nm, const rm_codes *seed,
                                bool in_turns, rm_incumbent *best);
/* The best of roundings of the bound's program, and of what auto finds in a short time. */
remat_status rm_checkmate_seed(const rm_problem *p, const rm_normal *nm, rm_incumbent *best);

/* What checkmate and checkmate-lp share: the solver, keep-all, the least peak as a budget. Then it
 * calls `plan`, if there is something to gain and to be found. */
typedef remat_status rm_checkmate_plan(void *user, const rm_problem *p, const rm_normal *nm,
                                       const rm_backend *backend, int64_t need_bytes);
remat_status rm_checkmate_run(const rm_problem *p, rm_incumbent *best, rm_checkmate_plan *plan,
                              void *user);

#endif
