/* chain.h: a chain of stages as data. This is Rotor's model of a network.
 *
 * Stage 0 is the input: it has a and delta only. Stages 1 .. L are the network. Stage L + 1 is the
 * loss. */
#ifndef RM_CHAIN_H
#define RM_CHAIN_H

#include "base/base.h"

struct remat_chain {
    remat_alloc heap;
    size_t block_size;
    const char *name, *size_unit, *cost_unit;
    char digest[80];      /* "sha256:..." of its sizes */
    uint32_t n_stages;    /* L */
    remat_stage stages[]; /* L + 2 of them; names and units lie behind them in this block */
};

/* Copies the L + 2 stages and the strings. Checks the numbers: REMAT_E_INPUT, with a place, if one
 * is negative or a sum reaches 2^62. */
remat_status rm_chain_new(remat_ctx *ctx, const remat_chain *head, const remat_stage *stages,
                          remat_chain **out);

/* Is abar >= a and delta = a everywhere? Rotor's theorems suppose that. Without it, its tables
 * prove nothing. */
bool rm_chain_is_plain(const remat_chain *c);
/* Is a^0 >= a^1 >= ...? Then nothing floats (Rotor, section 4.3). */
bool rm_chain_never_grows(const remat_chain *c);
/* Does every schedule of every planner here cost less than 2^62? The longest schedule runs every
 * stage forward for each backward step. */
bool rm_chain_can_be_planned(const remat_chain *c);
void rm_chain_digest(const remat_chain *c, char digest[80]);
/* Bytes that every schedule needs. At B^l and Fall^l, a^0 is stored besides what they touch. *stage
 * is the l that needs most. */
int64_t rm_chain_need(const remat_chain *c, uint32_t *stage);

#endif
