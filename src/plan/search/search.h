/* search.h: what searches over sequences share: a state, the best state so far, random places. */
#ifndef RM_SEARCH_H
#define RM_SEARCH_H

#include "base/random.h"
#include "plan/planner.h"
#include "sim/sequence.h"

typedef struct rm_change {
    uint32_t slot;
    rm_code code; /* what it holds from now on; RM_EMPTY */
} rm_change;

typedef struct rm_search {
    rm_seq q; /* ranges NULL: there is none */
    rm_random random;
    int64_t floor_bytes; /* a peak below it is as good as it */
    int64_t best_peak, best_cost;
    rm_code *best; /* the best state, once it is saved: in scratch */
    size_t n_best;
    bool unsaved; /* the best state is not in `best` yet, but row and journal have it */
    rm_code *row; /* by slot: a state on the way to the best one */
    /* The changes that were kept since. The first n_to_best lead to the best state, all of them to
     * the state at hand. */
    rm_change *journal;
    uint32_t n_to_best, n_journal, room;
    bool lost;      /* the journal was given up: it does not lead to the state at hand */
    rm_code *spare; /* room for a state */
} rm_search;

/* A sequence with `spread` slots a step, holding the codes. REMAT_OK with q.ranges NULL: they are
 * too many. Set random and floor_bytes first. */
remat_status rm_search_begin(remat_ctx *ctx, rm_search *s, const rm_normal *nm,
                             const int64_t *transfer, const rm_codes *start, uint32_t spread);
void rm_search_end(rm_search *s);
/* Is a state with this peak and cost better than the best? A state within the floor is better than
 * one over it. Within the floor the cheaper is better, over it the one of lower peak. A tie is not
 * better. */
bool rm_search_is_better(const rm_search *s, int64_t peak, int64_t cost);
void rm_search_keep(rm_search *s, int64_t peak); /* keeps the move at hand, whose peak is known */
void rm_search_save(rm_search *s);               /* writes the best state into `best` */
/* Goes on from another state. The best state stays. */
void rm_search_load(rm_search *s, const rm_code *codes, size_t n);
void rm_search_respace(rm_search *s); /* between moves: spreads the steps evenly again */
/* The saved best state. */
remat_status rm_search_best(remat_ctx *ctx, const rm_search *s, rm_codes *out);

/* Between moves: asserts what holds of it and of its sequence. */
void rm_search_check(rm_search *s);

static inline uint32_t rm_search_full_slot(rm_search *s)
{
    return s->q.set[rm_random_below(&s->random, s->q.n_set)];
}
/* An empty slot in [first, end), or RM_EMPTY: a few tries. */
uint32_t rm_search_empty_slot(rm_search *s, uint32_t first, uint32_t end);
/* A move: a random step slides to a random slot between its inputs and its readers. False: it was
 * refused. */
bool rm_search_slide(rm_search *s);

#endif
