/* checkpoint_rules.h: which of n candidates along the forward pass become checkpoints: the rules of
 * Chen et al. */
#ifndef RM_CHECKPOINT_RULES_H
#define RM_CHECKPOINT_RULES_H

#include "base/base.h"

typedef struct rm_checkpoint_question { /* what a rule gets */
    remat_ctx *ctx;
    const char *strategy; /* for progress */
    uint32_t n;           /* candidates, in forward order; at least one */
    /* By candidate: what is made since the one before and read in the backward pass. */
    const int64_t *bytes;
    uint8_t *chosen;                 /* by candidate: room for the answer */
    remat_status (*try)(void *user); /* sees every answer */
    void *user;
} rm_checkpoint_question;

typedef remat_status rm_checkpoint_rule(const rm_checkpoint_question *x);
/* Every floor(sqrt(n))-th. */
rm_checkpoint_rule rm_checkpoint_sqrt;
/* Where the bytes since the last one exceed b, for 64 values of b. */
rm_checkpoint_rule rm_checkpoint_greedy;
/* s equal segments, for s = 2 .. 2 sqrt(n). */
rm_checkpoint_rule rm_checkpoint_periodic;

#endif
