/* restore.h: first runs back in the graph's order, where nothing is lost by it. */
#ifndef RM_RESTORE_H
#define RM_RESTORE_H

#include "sim/sequence.h"

/* The same steps in an order whose peak is not above `limit`, or not above what it was. Codes with
 * fetches stay as they are. */
remat_status rm_restore_order(remat_ctx *ctx, const rm_normal *nm, int64_t limit, rm_codes *codes);

#endif
