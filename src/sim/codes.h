/* codes.h: orders of steps over a normal graph, as plain lists: what sequences are loaded from and
 * saved to. */
#ifndef RM_CODES_H
#define RM_CODES_H

#include "graph/normal.h"

#define RM_EMPTY UINT32_MAX /* no code, no slot */

/* Each replaces what is in `out`. */
remat_status rm_codes_keep_all(remat_ctx *ctx, const rm_normal *nm, rm_codes *out);
/* Of a schedule over the graph itself. Views and offloads are left out. */
remat_status rm_codes_of_steps(remat_ctx *ctx, const rm_normal *nm, const rm_schedule *steps,
                               rm_codes *out);
/* The codes are ops of nm, without fetches. fault: NULL if they are a valid order, else what is
 * wrong with the first op at fault, which is then in `op`. */
remat_status rm_codes_fault(remat_ctx *ctx, const rm_normal *nm, const rm_codes *codes,
                            uint32_t *op, const char **fault);
/* out: by position, the op; in scratch. Every op runs. */
remat_status rm_codes_first_runs(remat_ctx *ctx, const rm_normal *nm, const rm_codes *codes,
                                 uint32_t **out);

#endif
