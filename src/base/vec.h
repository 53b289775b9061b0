/* vec.h: a growable array on the context's heap hook. `RM_VEC(uint32_t) list = {0};` is an empty
 * one.
 *
 *     TRY(RM_PUSH(ctx, list, 7));
 *     RM_VEC_FREE(&ctx->heap, list);
 *
 * Invariant: items[0 .. n) are in use, room >= n, and items is NULL exactly if room is 0. */
#ifndef RM_VEC_H
#define RM_VEC_H

#include "base/base.h"

#define RM_VEC(type)                                                                               \
    struct {                                                                                       \
        type *items;                                                                               \
        size_t n, room;                                                                            \
    }

/* The items, moved if there was no room for `need` of them; as they were, with *room, if there is
 * no memory. */
void *rm_vec_grow(remat_ctx *ctx, void *items, size_t *room, size_t need, size_t item_size);

/* Room for k more items; the status says whether there is. */
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
