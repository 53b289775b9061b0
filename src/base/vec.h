/* vec.h: an array that grows, on the context's heap hook.
 *
 *     RM_VEC(uint32_t) list = {0};     // empty
 *     TRY(RM_PUSH(ctx, list, 7));
 *     RM_VEC_FREE(&ctx->heap, list);
 *
 * Invariant: items[0 .. n) are in use; n <= room; items is NULL if and only if room is 0. */
#ifndef RM_VEC_H
#define RM_VEC_H

#include "base/base.h"

#define RM_VEC(type)                                                                               \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t n, room;                                                                            \
    }

/* Answers the items. They move if there is no room for `need` of them. If there is no memory, items
 * and *room stay as they were, and the error is set. */
void *rm_vec_grow(remat_ctx *ctx, void *items, size_t *room, size_t need, size_t item_size);

/* Makes room for k more items. The status says whether there is memory for them. */
#define RM_RESERVE(ctx, vec, k)                                                                    \
    ((vec).items =                                                                                 \
         rm_vec_grow((ctx), (vec).items, &(vec).room, (vec).n + (k), sizeof *(vec).items),         \
     (vec).room - (vec).n >= (k) ? REMAT_OK : REMAT_E_MEMORY)
#define RM_PUSH(ctx, vec, item)                                                                    \
    (RM_LIKELY((vec).n < (vec).room) || RM_RESERVE(ctx, vec, 1) == REMAT_OK                        \
         ? ((vec).items[(vec).n++] = (item), REMAT_OK)                                             \
         : REMAT_E_MEMORY)
#define RM_VEC_FREE(heap, vec)                                                                     \
    (rm_release((heap), (vec).items, (vec).room * sizeof *(vec).items), (vec).items = NULL,        \
     (vec).n = (vec).room = 0)

#endif
