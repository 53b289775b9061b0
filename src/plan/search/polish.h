/* polish.h: the last word on a sequence: nothing in it that can go. */
#ifndef RM_POLISH_H
#define RM_POLISH_H

#include "sim/sequence.h"

/* The result is never dearer. Its peak does not rise above `limit`, or above what it was. It ends
 * early when it is late, or when it has taken as much work as it may: what is left of the limit of
 * the context, a quarter of the whole limit, or a little for each step, whichever is most.
 * transfer: as in rm_seq. */
remat_status rm_polish(remat_ctx *ctx, const rm_normal *nm, const int64_t *transfer, int64_t limit,
                       rm_codes *codes);
/* The same on a sequence at hand, which then holds the codes. If they do not fit into it, nothing
 * happens. */
void rm_polish_on(remat_ctx *ctx, rm_seq *q, int64_t limit, rm_codes *codes);

#endif
