/* polish.h: the last word on a sequence: nothing in it that can go. */
#ifndef RM_POLISH_H
#define RM_POLISH_H

#include "sim/sequence.h"

/* `transfer`: as in rm_seq. The peak does not rise above `limit`, or above what it is. Never
 * dearer. */
remat_status rm_polish(remat_ctx *ctx, const rm_normal *nm, const int64_t *transfer, int64_t limit,
                       rm_codes *codes);
/* The same on a sequence at hand, which then holds the codes; nothing happens if they do not fit
 * into it. */
void rm_polish_on(remat_ctx *ctx, rm_seq *q, int64_t limit, rm_codes *codes);

#endif
