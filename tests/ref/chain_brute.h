/* chain_brute.h: chains by brute force, from Rotor's Table 1 alone: a judge of schedules, and the
 * cheapest schedules by Dijkstra over every memory state. Nothing here knows src/. For chains of at
 * most BRUTE_STAGES stages; also seeded random chains and schedules. */
#ifndef CHAIN_BRUTE_H
#define CHAIN_BRUTE_H

#include "random_graph.h"
#include "remat.h"

enum { BRUTE_STAGES = 5 }; /* besides the loss */

typedef enum brute_kind {
    BRUTE_ALL,        /* every valid sequence */
    BRUTE_PERSISTENT, /* Definition 4.1: after Fck^i or Fall^i, up to B^i, neither Fnone^i nor
                         anything on a stage below i */
    BRUTE_REVOLVE,    /* persistent, and Fall^i only right before B^i */
} brute_kind;

typedef struct brute brute; /* the search's memory, for use again and again */
brute *brute_new(void);
void brute_free(brute *b);

/* `stages` as for remat_chain_new. The least time of a schedule whose peak is within the budget, or
 * -1. `known`: the time of one such schedule, or -1; then only cheaper ones are looked for. */
int64_t brute_cost(brute *b, const remat_stage *stages, uint32_t n_stages, brute_kind kind,
                   int64_t budget, int64_t known);
/* The least peak of any schedule. */
int64_t brute_peak(brute *b, const remat_stage *stages, uint32_t n_stages, brute_kind kind);

typedef struct brute_verdict {
    bool valid;
    int64_t peak, cost;
    uint32_t peak_step, first_bad_step; /* REMAT_NONE: none */
} brute_verdict;
brute_verdict brute_judge(const remat_stage *stages, uint32_t n_stages, const remat_step *steps,
                          size_t n_steps);
bool brute_is_persistent(const remat_step *steps, size_t n_steps);

enum {
    CHAIN_OVERHEADS = 1,
    CHAIN_KEEP = 2,
    CHAIN_LOSS = 4,
    CHAIN_FREE_DELTA = 8,
    CHAIN_FALLING = 16,
    CHAIN_ZERO_TIMES = 32,
    CHAIN_SMALL_ABAR = 64
};
/* 1 to BRUTE_STAGES stages, sizes 0 to 6, abar >= a, delta = a unless CHAIN_FREE_DELTA; CHAIN_LOSS:
 * the loss has numbers of its own; CHAIN_FALLING: a never grows; CHAIN_SMALL_ABAR: abar < a at
 * times, which the papers exclude. Returns how many stages. */
uint32_t random_chain(random_source *r, unsigned flags, remat_stage stages[BRUTE_STAGES + 2]);
/* A valid schedule that wanders about before it finishes. Returns its length, at most `capacity`,
 * which is 200 or more. */
size_t random_chain_steps(random_source *r, const remat_stage *stages, uint32_t n_stages,
                          remat_step *steps, size_t capacity);

#endif
