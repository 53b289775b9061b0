/* choose.h: which of n candidates along the forward pass become checkpoints: the rules of Chen et al. */
#ifndef RM_CHOOSE_H
#define RM_CHOOSE_H

#include "base/base.h"

typedef struct rm_choose { /* what a rule gets */
    remat_ctx *ctx;
    const char *strategy; /* for progress */
    uint32_t n;           /* candidates, in forward order */
    const int64_t *
        bytes; /* by candidate: what is made, and read in the backward pass, since the one before; may be NULL for rules that do not ask */
    uint8_t *chosen;                 /* by candidate: room for the answer */
    remat_status (*try)(void *user); /* sees every answer */
    void *user;
} rm_choose;

typedef remat_status rm_chooser(const rm_choose *x);
rm_chooser rm_choose_sqrt;     /* every floor(sqrt(n))-th */
rm_chooser rm_choose_greedy;   /* where the bytes since the last one exceed b, for 64 values of b */
rm_chooser rm_choose_periodic; /* s equal segments, for s = 2 .. 2 sqrt(n) */

#endif
