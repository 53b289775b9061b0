/* chain.h: a chain of stages, Rotor's model, as data. Stage 0 is the input (a and delta), stages 1
 * .. L the network, L + 1 the loss. */
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

/* Copies the L + 2 stages and the strings, and checks the numbers: REMAT_E_INPUT with a place if
 * one is negative or sums pass 2^62. */
remat_status rm_chain_new(remat_ctx *ctx, const remat_chain *head, const remat_stage *stages,
                          remat_chain **out);

/* abar >= a and delta = a everywhere: what Rotor's theorems suppose. Elsewhere its tables prove
 * nothing. */
bool rm_chain_is_plain(const remat_chain *c);
bool rm_chain_never_grows(
    const remat_chain *c); /* a^0 >= a^1 >= ..: then nothing floats (Rotor, section 4.3) */
/* Does every schedule of any planner here cost less than 2^62? The longest forwards every stage for
 * every backward. */
bool rm_chain_can_be_planned(const remat_chain *c);
void rm_chain_digest(const remat_chain *c, char digest[80]);
/* No schedule needs less: at B^l and Fall^l, besides what they touch, a^0 is stored. `stage` is
 * where. */
int64_t rm_chain_need(const remat_chain *c, uint32_t *stage);

#endif
