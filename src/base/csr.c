/* csr.c: lists of indices by key. csr.h says how. */
#include "base/csr.h"

#include <assert.h>

remat_status rm_csr_by_key(remat_ctx *ctx, uint32_t n_keys, uint32_t n_items, const uint32_t *keys,
                           rm_csr *out)
{
    TRY(rm_csr_begin(ctx, n_keys, &out->begin));
    for (uint32_t i = 0; i < n_items; i++) {
        assert(keys[i] < n_keys || keys[i] == REMAT_NONE);
        if (keys[i] != REMAT_NONE) rm_csr_count(out->begin, keys[i]);
    }
    TRY(RM_SCRATCH(ctx, out->items, rm_csr_sum(out->begin, n_keys)));
    for (uint32_t i = 0; i < n_items; i++)
        if (keys[i] != REMAT_NONE) out->items[rm_csr_place(out->begin, keys[i])] = i;
    return REMAT_OK;
}

remat_status rm_csr_invert(remat_ctx *ctx, uint32_t n_keys, uint32_t n_items, const uint32_t *begin,
                           const uint32_t *keys, const uint32_t *order, rm_csr *out)
{
    TRY(rm_csr_begin(ctx, n_keys, &out->begin));
    for (uint32_t k = 0; k < begin[n_items]; k++) {
        assert(keys[k] < n_keys);
        rm_csr_count(out->begin, keys[k]);
    }
    TRY(RM_SCRATCH(ctx, out->items, rm_csr_sum(out->begin, n_keys)));
    for (uint32_t i = 0; i < n_items; i++) {
        const uint32_t item = order ? order[i] : i;
        for (uint32_t k = begin[item]; k < begin[item + 1]; k++)
            out->items[rm_csr_place(out->begin, keys[k])] = item;
    }
    assert(out->begin[n_keys] == begin[n_items]); /* each entry has found its place */
    return REMAT_OK;
}
