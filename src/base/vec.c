/* vec.c: growth by doubling, so that n pushes cost O(n). */
#include "base/vec.h"

#include <assert.h>

int rm_by_index(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

void *rm_vec_grow(remat_ctx *ctx, void *items, size_t *room, size_t need, size_t item_size)
{
    if (need <= *room) return items;
    size_t bigger = *room ? *room : 8, bytes;
    while (bigger < need && bigger <= SIZE_MAX / 2) bigger *= 2;
    if (bigger < need || rm_mul_overflows(bigger, item_size, &bytes)) {
        rm_no_memory(ctx);
        return items;
    }
    void *grown = rm_resize(&ctx->heap, items, *room * item_size, bytes);
    if (!grown) {
        rm_no_memory(ctx);
        return items;
    }
    assert(bigger >= need);
    *room = bigger;
    return grown;
}
