/* codes.h: orders of steps over a normal graph, as plain lists: what sequences are loaded from and
 * saved to. */
#ifndef RM_CODES_H
#define RM_CODES_H

#include "graph/normal.h"

#define RM_EMPTY UINT32_MAX /* no code, no slot */

remat_status rm_codes_keep_all(remat_ctx *ctx, const rm_normal *nm,
                               rm_codes *out); /* every op once, in order */
/* Of a schedule over the graph itself: views and offloads fall away. */
remat_status rm_codes_of_steps(remat_ctx *ctx, const rm_normal *nm, const rm_schedule *steps,
                               rm_codes *out);
/* NULL if the codes, ops of nm, are a valid order; else what is wrong with the first op at fault.
 */
remat_status rm_codes_fault(remat_ctx *ctx, const rm_normal *nm, const rm_codes *codes,
                            uint32_t *op, const char **fault);
/* By position: op. In scratch. */
remat_status rm_codes_first_runs(remat_ctx *ctx, const rm_normal *nm, const rm_codes *codes,
                                 uint32_t **out);

#endif
