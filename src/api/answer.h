/* answer.h: structs that callers allocate and we fill. They begin with `size`, what the caller's
 * compiler made of the struct: a client of an older header has a shorter one than we, and one of a
 * newer header a longer one. */
#ifndef RM_ANSWER_H
#define RM_ANSWER_H

#include "base/base.h"

/* REMAT_E_USAGE unless `size` can be that of a version of the struct: "remat_info", say. */
remat_status rm_answer_check(remat_ctx *ctx, size_t size, const char *name);
/* Copies our members as far as the caller's struct goes, and its size stays. What we do not know of
 * a longer one is untouched. */
#define RM_ANSWER(out, ours) rm_answer_copy(&(out)->size, &(ours)->size, sizeof *(ours))
void rm_answer_copy(size_t *out, const size_t *ours, size_t our_size);

#endif
