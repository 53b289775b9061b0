/* answer.h: structs that callers allocate and we fill.
 *
 * They begin with `size`, the size that the caller's compiler gave the struct. A client of an older
 * header has a shorter struct than we have. A client of a newer header has a longer one. */
#ifndef RM_ANSWER_H
#define RM_ANSWER_H

#include "base/base.h"

/* REMAT_E_USAGE unless `size` can be that of a version of the struct. name: "remat_info", say. */
remat_status rm_answer_check(remat_ctx *ctx, size_t size, const char *name);
/* Copies our members as far as the caller's struct goes. Its `size` stays. Members of a longer one
 * that we do not know stay as they are. */
#define RM_ANSWER(out, ours) rm_answer_copy(&(out)->size, &(ours)->size, sizeof *(ours))
void rm_answer_copy(size_t *out, const size_t *ours, size_t our_size);

#endif
