/* verify_place.h: does a placement hold what it promises? This shares no code with the placer. */
#ifndef RM_VERIFY_PLACE_H
#define RM_VERIFY_PLACE_H

#include "base/base.h"

enum { RM_PLACE_REASON = 200 };

/* Whatever the numbers are, the status is REMAT_OK and there is an answer; only memory can run out.
 * reason: "" if no two spans that are needed together overlap, none begins below 0, every offset is
 * a multiple of `align`, and the highest top is `height`. Else it says what is wrong. */
remat_status rm_verify_placement(remat_ctx *ctx, const remat_span *spans, const int64_t *offsets,
                                 size_t n_spans, int64_t align, int64_t height,
                                 char reason[RM_PLACE_REASON]);

#endif
