/* states.h: the states of a best-first search: a table that has each of them once, and a heap of
 * those that are open.
 *
 * A state is known by its *key*, some words that the search chooses. It has the least cost that
 * anybody reached it at so far, the state before it, and the op that led from there to here. */
#ifndef RM_STATES_H
#define RM_STATES_H

#include "graph/normal.h"

#define RM_NO_STATE UINT32_MAX

typedef struct rm_open_state {
    int64_t bound;     /* no plan through the state costs less */
    uint32_t progress; /* among equals, the one that is further goes first */
    uint32_t state;
} rm_open_state;

typedef struct rm_states {
    remat_ctx *ctx;
    uint32_t key_words, stride; /* words of a key; of a state */
    RM_VEC(uint64_t *) chunks;
    uint32_t n;
    uint32_t *table; /* hash: state + 1 */
    uint32_t table_size;
    RM_VEC(rm_open_state) open;
    int64_t bytes, most_bytes;
    bool full; /* the next state would take more memory than there may be */
} rm_states;

remat_status rm_states_begin(remat_ctx *ctx, uint32_t key_words, int64_t most_bytes,
                             rm_states *out);
void rm_states_free(rm_states *s);

/* RM_NO_STATE: it is not there. */
uint32_t rm_states_find(const rm_states *s, const uint64_t *key);
/* The key must be new. */
remat_status rm_states_add(rm_states *s, const uint64_t *key, uint32_t *state);

/* It was reached at this cost, by `op`, from the state `before`. */
void rm_state_reach(rm_states *s, uint32_t state, int64_t cost, uint32_t before, uint32_t op);
/* Marks it as done until it is reached again. False: it was done already. */
bool rm_state_finish(rm_states *s, uint32_t state);
int64_t rm_state_cost(const rm_states *s, uint32_t state);
const uint64_t *rm_state_key(const rm_states *s, uint32_t state);

remat_status rm_states_push(rm_states *s, rm_open_state x);
rm_open_state rm_states_pop(rm_states *s); /* there is one */

/* The ops that led from the first state to this one. Replaces what is in `out`. */
remat_status rm_states_way_to(const rm_states *s, uint32_t state, rm_codes *out);

#endif
