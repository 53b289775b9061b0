/* segtree.c: range add, global maximum, without pushing anything down: a node's `add` counts for its whole range.
 *
 * An add over [first, last] climbs from both ends at once, marks the nodes that lie inside the range, and repairs the maxima of
 * their ancestors on the way: 2 log n nodes, no recursion. The maximum is at the root: O(1).
 * Invariant: max[v] = add[v] + max(max[2v], max[2v + 1]) at inner nodes, max[v] = add[v] at leaves. */
#include "algo/segtree.h"

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

remat_status rm_segtree_new(remat_ctx *ctx, uint32_t n_positions, rm_segtree *out)
{
    uint32_t n = 1;
    while (n < n_positions && n < UINT32_C(1) << 30) n *= 2;
    if (n < n_positions) return rm_fail(ctx, REMAT_E_USAGE, "%u positions are too many", n_positions);
    int64_t *nodes = rm_alloc(ctx, (size_t)n * 4 * sizeof *nodes);
    if (!nodes) return REMAT_E_MEMORY;
    *out = (rm_segtree){n, nodes, nodes + 2 * (size_t)n};
    return REMAT_OK;
}

void rm_segtree_free(const remat_alloc *heap, rm_segtree *t)
{
    rm_release(heap, t->add, (size_t)t->n * 4 * sizeof *t->add);
    *t = (rm_segtree){0};
}

static void add_at(rm_segtree *t, uint32_t v, int64_t delta)
{
    t->add[v] += delta;
    t->max[v] += delta;
}

static void repair(rm_segtree *t, uint32_t v) { t->max[v] = t->add[v] + larger(t->max[2 * v], t->max[2 * v + 1]); }

void rm_segtree_add(rm_segtree *t, uint32_t first, uint32_t last, int64_t delta)
{
    uint32_t lo = first + t->n, hi = last + t->n;
    add_at(t, lo, delta);
    if (lo != hi) add_at(t, hi, delta);
    for (; lo / 2 != hi / 2; lo /= 2, hi /= 2) {
        if (lo % 2 == 0) add_at(t, lo + 1, delta);
        if (hi % 2 == 1) add_at(t, hi - 1, delta);
        repair(t, lo / 2);
        repair(t, hi / 2);
    }
    for (lo /= 2; lo > 0; lo /= 2) repair(t, lo);
}

int64_t rm_segtree_at(const rm_segtree *t, uint32_t position)
{
    int64_t x = 0;
    for (uint32_t v = position + t->n; v > 0; v /= 2) x += t->add[v];
    return x;
}

bool rm_segtree_check(const rm_segtree *t)
{
    for (uint32_t v = 1; v < 2 * t->n; v++)
        if (t->max[v] != t->add[v] + (v < t->n ? larger(t->max[2 * v], t->max[2 * v + 1]) : 0)) return false;
    return true;
}
