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
    bool unsaved;       /* the best state is not there yet, but row and journal have it */
    rm_code *row;       /* by slot: a state on the way to the best one */
    rm_change *journal; /* what was kept since: n_to_best changes lead to the best state, all to the
                           one at hand */
    uint32_t n_to_best, n_journal, room;
    bool lost; /* the journal was given up: it does not lead to the state at hand */
    rm_code *spare;
} rm_search;

/* A sequence with `spread` slots a step, holding the codes. REMAT_OK with q.ranges NULL: too many
 * of them. Set random and floor_bytes first. */
remat_status rm_search_begin(remat_ctx *ctx, rm_search *s, const rm_normal *nm,
                             const int64_t *transfer, const rm_codes *start, uint32_t spread);
void rm_search_end(rm_search *s);
/* Within the floor before over it; then cheaper, or, over it, of lower peak. Ties are no reason to
 * note a state. */
bool rm_search_is_better(const rm_search *s, int64_t peak, int64_t cost);
void rm_search_keep(rm_search *s, int64_t peak); /* keeps the move, whose peak is known */
void rm_search_save(rm_search *s);               /* the best state, into `best` */
void rm_search_load(rm_search *s, const rm_code *codes,
                    size_t n);        /* another state; a best one is kept */
void rm_search_respace(rm_search *s); /* between moves: steps evenly spread again */
remat_status rm_search_best(remat_ctx *ctx, const rm_search *s, rm_codes *out); /* the saved one */

void rm_search_check(
    rm_search *s); /* between moves: asserts what holds, and that of the sequence */

static inline uint32_t rm_search_full_slot(rm_search *s)
{
    return s->q.set[rm_random_below(&s->random, s->q.n_set)];
}
/* An empty slot in [first, end), or RM_EMPTY: a few tries. */
uint32_t rm_search_empty_slot(rm_search *s, uint32_t first, uint32_t end);
bool rm_search_slide(rm_search *s); /* a move: a random step to a random slot between its inputs and
                                       its readers; false: refused */

#endif
