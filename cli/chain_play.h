/* chain_play.h: what is in memory while a chain's schedule runs. */
#ifndef CLI_CHAIN_PLAY_H
#define CLI_CHAIN_PLAY_H

#include <stdint.h>

#include "remat.h"

/* What of a stage may be stored, by the letters of docs/format.md. */
typedef enum chain_what { CHAIN_A, CHAIN_ABAR, CHAIN_DELTA, CHAIN_KEEP, CHAIN_WHATS } chain_what;

/* An item is one of these of one stage: CHAIN_WHATS * stage + what. The input is stage 0. */
uint32_t chain_n_items(const remat_chain *chain);
uint32_t chain_item(uint32_t stage, chain_what what);
int64_t chain_item_bytes(const remat_chain *chain, uint32_t item);

typedef struct chain_life {
    uint32_t item, begin, end; /* steps, the last with it */
} chain_life;

/* The lives of all items that have bytes, in the order in which they begin. The schedule is valid.
 * To be freed. */
chain_life *chain_lives(const remat_chain *chain, const remat_step *steps, size_t n_steps,
                        uint32_t *n_lives);
int64_t chain_step_overhead(const remat_chain *chain, const remat_step *step);

#endif
