/* csr.h: a list for each key, all lists in one array.
 *
 * The list of key k is items[begin[k] .. begin[k + 1]). A counting sort makes the lists, so each
 * has its items in the order they came in. rm_csr_by_key and rm_csr_invert do it for indices. Where
 * an entry is more than an index, it is done by hand:
 *
 *     TRY(rm_csr_begin(ctx, n_keys, &begin));
 *     for (...) rm_csr_count(begin, key);
 *     TRY(RM_SCRATCH(ctx, entries, rm_csr_sum(begin, n_keys)));
 *     for (...) entries[rm_csr_place(begin, key)] = ...; // the same keys, each as often
 *
 * Invariant: between the sum and the last place, begin[k + 1] is where the next entry of list k
 * goes. So it ends up where list k + 1 begins, and no second array has to remember the beginnings.
 * This takes one number more in `begin` than there is use for in the end.
 *
 * Cost: linear in keys and items. */
#ifndef RM_CSR_H
#define RM_CSR_H

#include "base/base.h"

typedef struct rm_csr { /* in scratch */
    uint32_t *begin, *items;
} rm_csr;

/* keys: by item, below n_keys. REMAT_NONE: it is in no list. */
remat_status rm_csr_by_key(remat_ctx *ctx, uint32_t n_keys, uint32_t n_items, const uint32_t *keys,
                           rm_csr *out);
/* From a list of keys for each item to a list of items for each key. The new lists have their items
 * in the order of `order`, a permutation of all items; NULL: ascending. */
remat_status rm_csr_invert(remat_ctx *ctx, uint32_t n_keys, uint32_t n_items, const uint32_t *begin,
                           const uint32_t *keys, const uint32_t *order, rm_csr *out);

static inline remat_status rm_csr_begin(remat_ctx *ctx, uint32_t n_keys, uint32_t **begin)
{
    return RM_SCRATCH(ctx, *begin, (size_t)n_keys + 2);
}
static inline void rm_csr_count(uint32_t *begin, uint32_t key) { begin[key + 2]++; }
/* Answers how many entries all lists have. */
static inline uint32_t rm_csr_sum(uint32_t *begin, uint32_t n_keys)
{
    for (uint32_t k = 0; k < n_keys; k++) begin[k + 2] += begin[k + 1];
    return begin[n_keys + 1];
}
static inline uint32_t rm_csr_place(uint32_t *begin, uint32_t key) { return begin[key + 1]++; }

#endif
