/* need.c: the least budget that any schedule needs, whatever its order.
 *
 * While an op runs, its inputs, its outputs and its workspace are in memory together, and all that
 * is resident. So is the storage of a pinned op p (it has one instance only) at every op o with p
 * -> ... -> o -> ... -> r, where r reads that storage: p runs before the first run of o, r after
 * it. The same holds if the storage is a graph output and p is an ancestor of o. Need = the largest
 * such sum. With offload a fetch makes a second instance, so only what the op itself touches
 * counts.
 *
 * Reachability goes 64 pinned storages at a time: "p reaches o" one way over the ops, "o reaches a
 * reader" the other way, each one word per op, over the ops between the first maker and the last
 * reader. O(edges there) a batch; after MOST_WORK the rest of the pinned storages is left out,
 * which weakens the bound but keeps it true. */
#include "base/heap.h"
#include "graph/graph.h"

#include "base/bits.h"

#define MOST_WORK INT64_C(250000000) /* edges: about a quarter of a second */

typedef struct batch { /* up to 64 storages of pinned ops */
    uint32_t storage[64];
    unsigned n;
    uint64_t *own;   /* by op: bit i set if it makes storage i */
    uint64_t *below; /* by op: bit i set if the op that makes storage i is a proper ancestor */
    uint64_t
        *above;    /* by op: bit i set if a proper descendant reads storage i, or it is an output */
    uint8_t *slot; /* by root value: 1 + bit, for the storages at hand */
    uint32_t *last_reader;
    uint32_t from, to; /* the ops that the words above are right for */
    int64_t work;
} batch;

static uint64_t bits_of(const remat_graph *g, const batch *b, const uint32_t *list, uint32_t begin,
                        uint32_t end)
{
    uint64_t bits = 0;
    for (uint32_t k = begin; k < end; k++) {
        const uint8_t slot = b->slot[g->root[list[k]]];
        if (slot) rm_add_bit(&bits, slot - 1);
    }
    return bits;
}

/* Only ops between the first maker and the last reader of the batch matter: [from, to). */
static void propagate(const remat_graph *g, batch *b, const uint32_t *last_reader)
{
    b->from = g->n_ops, b->to = 0;
    for (unsigned i = 0; i < b->n; i++) {
        const uint32_t maker = g->producer[b->storage[i]], last = last_reader[b->storage[i]];
        if (maker < b->from) b->from = maker;
        if (last > b->to) b->to = last;
    }
    for (uint32_t op = b->from; op < b->to; op++) b->own[op] = b->below[op] = b->above[op] = 0;
    for (unsigned i = 0; i < b->n; i++)
        if (g->producer[b->storage[i]] < b->to) rm_add_bit(&b->own[g->producer[b->storage[i]]], i);
    uint64_t kept_to_end = 0;
    for (unsigned i = 0; i < b->n; i++)
        if (last_reader[b->storage[i]] > g->n_ops) rm_add_bit(&kept_to_end, i);
    if (b->to > g->n_ops) b->to = g->n_ops;
    for (uint32_t op = b->from; op < b->to; op++) {
        b->above[op] = kept_to_end;
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
            const uint32_t p = g->producer[g->in[k]];
            if (p != REMAT_NONE && p >= b->from) b->below[op] |= b->below[p] | b->own[p];
        }
    }
    for (uint32_t op = b->to; op-- > b->from;) {
        const uint64_t from_here =
            b->above[op] | bits_of(g, b, g->in, g->in_begin[op], g->in_begin[op + 1]);
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
            const uint32_t p = g->producer[g->in[k]];
            if (p != REMAT_NONE && p >= b->from) b->above[p] |= from_here;
        }
    }
}

/* By root value: 1 + the last op that reads it; more than n_ops for a graph output, which is needed
 * to the end. */
static remat_status find_last_readers(remat_ctx *ctx, const remat_graph *g, uint32_t **out)
{
    TRY(RM_SCRATCH(ctx, *out, g->n_values));
    for (uint32_t op = 0; op < g->n_ops; op++)
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
            (*out)[g->root[g->in[k]]] = op + 1;
    for (uint32_t i = 0; i < g->n_outputs; i++) (*out)[g->root[g->outputs[i]]] = g->n_ops + 1;
    return REMAT_OK;
}

static remat_status batch_new(remat_ctx *ctx, const remat_graph *g, batch *b)
{
    *b = (batch){.n = 0};
    TRY(find_last_readers(ctx, g, &b->last_reader));
    TRY(RM_SCRATCH(ctx, b->own, (size_t)g->n_ops + 1));
    TRY(RM_SCRATCH(ctx, b->below, (size_t)g->n_ops + 1));
    TRY(RM_SCRATCH(ctx, b->above, (size_t)g->n_ops + 1));
    return RM_SCRATCH(ctx, b->slot, g->n_values);
}

/* The next up to 64 storages of pinned ops, from value `v` on; false when there are none, or after
 * so much work that the weaker bound that is there already must do. */
static bool batch_next(const remat_graph *g, batch *b, uint32_t *v)
{
    for (unsigned i = 0; i < b->n; i++) b->slot[b->storage[i]] = 0;
    b->n = 0;
    for (; *v < g->n_values && b->n < 64; ++*v)
        if (g->root[*v] == *v && g->producer[*v] != REMAT_NONE && g->pinned[g->producer[*v]]) {
            b->storage[b->n++] = *v;
            b->slot[*v] = (uint8_t)b->n;
        }
    if (b->n == 0) return false;
    propagate(g, b, b->last_reader);
    b->work +=
        (int64_t)(b->to > b->from ? g->in_begin[b->to] - g->in_begin[b->from] + b->to - b->from
                                  : 0);
    return b->work < MOST_WORK;
}

/* Storages at hand that are in memory at `op` though it does not touch them. */
static uint64_t held_across(const remat_graph *g, const batch *b, uint32_t op)
{
    const uint64_t bits = b->below[op] & b->above[op];
    return bits ? bits & ~(bits_of(g, b, g->in, g->in_begin[op], g->in_begin[op + 1]) |
                           bits_of(g, b, g->out, g->out_begin[op], g->out_begin[op + 1]))
                : 0;
}

static void add_own_needs(const remat_graph *g, int64_t *need, uint32_t *seen)
{
    for (uint32_t op = 0; op < g->n_ops; op++) {
        need[op] =
            g->resident_bytes +
            g->workspace[op]; /* sums of distinct storages: below 2^62, and so is each workspace */
        for (int side = 0; side < 2; side++) {
            const uint32_t *list = side ? g->out : g->in,
                           *begin = side ? g->out_begin : g->in_begin;
            for (uint32_t k = begin[op]; k < begin[op + 1]; k++) {
                const uint32_t root = g->root[list[k]];
                if (g->producer[root] == REMAT_NONE || seen[root] == op + 1) continue;
                seen[root] = op + 1;
                need[op] += g->storage[root];
            }
        }
    }
}

remat_status rm_need_find(remat_ctx *ctx, const remat_graph *g, bool offload, rm_need *out)
{
    int64_t *need;
    uint32_t *seen;
    batch b;
    TRY(RM_SCRATCH(ctx, need, g->n_ops));
    TRY(RM_SCRATCH(ctx, seen, g->n_values));
    TRY(batch_new(ctx, g, &b));
    add_own_needs(g, need, seen);
    for (uint32_t v = 0; !offload && batch_next(g, &b, &v);)
        for (uint32_t op = b.from; op < b.to; op++)
            for (uint64_t bits = held_across(g, &b, op); bits; bits &= bits - 1)
                need[op] += g->storage[b.storage[rm_lowest_bit(bits)]];
    *out = (rm_need){g->resident_bytes, REMAT_NONE};
    for (uint32_t op = 0; op < g->n_ops; op++)
        if (out->op == REMAT_NONE || need[op] > out->bytes) *out = (rm_need){need[op], op};
    return REMAT_OK;
}

/* Marks the storages, by root value, that are in memory at `op` whatever the schedule: the sum that
 * rm_need_find made for it. */
static remat_status mark_storages(remat_ctx *ctx, const remat_graph *g, uint32_t op, bool offload,
                                  uint8_t *marked)
{
    batch b;
    TRY(batch_new(ctx, g, &b));
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
        marked[g->root[g->in[k]]] = !rm_is_resident(g, g->in[k]);
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        marked[g->root[g->out[k]]] = !rm_is_resident(g, g->out[k]);
    for (uint32_t v = 0; !offload && batch_next(g, &b, &v);)
        for (uint64_t bits = op >= b.from && op < b.to ? held_across(g, &b, op) : 0; bits;
             bits &= bits - 1)
            marked[b.storage[rm_lowest_bit(bits)]] = 1;
    return REMAT_OK;
}

static bool is_smaller(const remat_graph *g, uint32_t a, uint32_t b)
{
    return g->storage[a] < g->storage[b];
}
RM_HEAP(smallest, uint32_t, const remat_graph *, is_smaller)

/* The first that there is room for, then those that are larger than the smallest of them. */
remat_status rm_need_values(remat_ctx *ctx, const remat_graph *g, bool offload, uint32_t *values,
                            uint32_t capacity, uint32_t *n_values)
{
    rm_need need;
    uint8_t *marked;
    TRY(rm_need_find(ctx, g, offload, &need));
    TRY(RM_SCRATCH(ctx, marked, g->n_values));
    if (need.op != REMAT_NONE) TRY(mark_storages(ctx, g, need.op, offload, marked));
    uint32_t n = 0, v = 0;
    for (; v < g->n_values && n < capacity; v++)
        if (marked[v]) values[n++] = v;
    smallest_make(g, values, n);
    for (; v < g->n_values && n; v++)
        if (marked[v] && is_smaller(g, values[0], v)) smallest_replace(g, values, n, v);
    *n_values = n;
    for (; n > 1; n--) values[n - 1] = smallest_pop(g, values, n); /* the smallest to the end */
    return REMAT_OK;
}
