/* walker.h: one annealing run over sequences, whose moves are whole recomputations.
 *
 * anneal.c lets walkers look for the cheapest sequence within a budget, descend.c for the one of
 * the lowest peak. */
#ifndef RM_WALKER_H
#define RM_WALKER_H

#include "plan/search/search.h"

typedef struct rm_mix { /* percents of the moves; the rest carry */
    uint32_t recompute, forget, clear;
} rm_mix;

typedef struct rm_ground { /* what the walkers of a search share */
    const rm_problem *p;
    const rm_normal *nm;
    rm_mix mix;
    double unit;          /* median cost of an op */
    int64_t work_before;  /* of the context, before the walkers of a round began */
    _Atomic int64_t work; /* of all walkers in this round */
} rm_ground;

typedef struct rm_walker {
    rm_ground *ground;
    rm_search search;
    /* A state is worth cost + lambda * excess of memory over the limit, and of two that differ in
     * nothing else the one with less area is better. Set these between batches. */
    double lambda, heat;
    double area_price; /* of a byte for one slot */
    int64_t limit;     /* of memory, without residents; rm_walker_aim sets it */
    double cost_now;   /* of the state, with its steps */
    int64_t excess_now;
    int64_t edits, next_respacing; /* in this task */
    int64_t counted;               /* work that quotas know of */
    bool reports;                  /* it is in the calling thread */
} rm_walker;

/* What p and nm say of all walkers. */
remat_status rm_ground_begin(const rm_problem *p, const rm_normal *nm, rm_ground *out);
/* Walker 0 or 1, with room for states as long as the given one, and it is the best so far. REMAT_OK
 * with search.q.ranges NULL: it has too many steps. */
remat_status rm_walker_begin(rm_ground *ground, uint32_t index, const rm_codes *state,
                             rm_walker *out);
static inline void rm_walker_end(rm_walker *w) { rm_search_end(&w->search); }

/* Begins a task from this state. */
void rm_walker_load(rm_walker *w, const rm_codes *state, int64_t limit);
void rm_walker_aim(rm_walker *w, int64_t limit);
/* Some moves, accounted to the quota. */
void rm_walker_batch(rm_walker *w, rm_quota *quota);

/* Can a search begin from the seed? It must be longer than keep-all and have no fetches. It must be
 * valid over `nm`, which may have more pins than the graph that it was made for. */
remat_status rm_seed_is_usable(remat_ctx *ctx, const rm_normal *nm, const rm_codes *seed,
                               bool *out);

enum { RM_WALKERS = 2 }; /* that search at a time, whatever the number of threads */
/* Runs task(user, i) for each of them, in as many threads as the options say. */
void rm_walkers_run(rm_walker *walkers, void (*task)(void *user, uint32_t index), void *user);
/* The search that has the best state of all. */
const rm_search *rm_walkers_first(const rm_walker *walkers);

#endif
