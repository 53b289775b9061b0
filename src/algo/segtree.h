/* segtree.h: range add and maximum over positions. */
#ifndef RM_SEGTREE_H
#define RM_SEGTREE_H

#include "base/base.h"

typedef struct rm_segtree {
    uint32_t n;         /* leaves: a power of two */
    int64_t *add, *max; /* by node; 1 is the root, n + i is position i */
} rm_segtree;

remat_status rm_segtree_new(remat_ctx *ctx, uint32_t n_positions, rm_segtree *out); /* all zero */
void rm_segtree_free(const remat_alloc *heap, rm_segtree *t);
void rm_segtree_add(rm_segtree *t, uint32_t first, uint32_t last, int64_t delta); /* to every position in [first, last] */
static inline int64_t rm_segtree_max(const rm_segtree *t) { return t->max[1]; }
int64_t rm_segtree_at(const rm_segtree *t, uint32_t position);
bool rm_segtree_check(const rm_segtree *t); /* does the invariant hold? */

#endif
