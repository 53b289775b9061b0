/* need.c: the least budget that any schedule needs, whatever its order.
 *
 * Problem: while an op o runs, these are in memory together:
 * - all that is resident;
 * - the inputs, the outputs and the workspace of o, but not an input in whose place o may make an
 *   output: those two have as many bytes, and need be there only once;
 * - the storage of a pinned op p, if p -> ... -> o -> ... -> r and r reads that storage. It has one
 *   instance only; p runs before the first run of o, and r runs after it;
 * - the storage of a pinned op p, if it is a graph output and p is an ancestor of o.
 * (Here a pinned op counts as an ancestor of the next one: they run in the graph's order.)
 * With offload a fetch makes a second instance, so only what the op itself touches counts.
 * Behind the last step all graph outputs are in memory together, whatever made them.
 * The need is the largest such sum.
 *
 * Method: reachability for 64 pinned storages at a time, one word an op. "p reaches o" goes one way
 * over the ops, "o reaches a reader" goes the other way. Only the ops between the first maker and
 * the last reader of the batch are looked at.
 *
 * Cost: O(edges there) a batch. After MOST_WORK the other pinned storages are left out. That
 * weakens the bound but keeps it true. */
#include "graph/graph.h"

#include <assert.h>

#include "base/bits.h"
#include "base/heap.h"

#define MOST_WORK INT64_C(250000000) /* edges: about a quarter of a second */
enum { BATCH = 64 };                 /* bits of a word */

/* Up to 64 storages of pinned ops. Storage i has bit i of each word. */
typedef struct batch {
    uint32_t storage[BATCH]; /* root values */
    unsigned n;
    uint8_t *slot;         /* by root value: 1 + its bit; 0: not in the batch */
    uint32_t *last_reader; /* by root value: see find_last_readers */
    uint64_t *own;         /* by op: the op makes the storage */
    uint64_t *below;       /* by op: the op that makes the storage is a proper ancestor */
    uint64_t *above;       /* by op: a proper descendant reads the storage, or it is an output */
    uint32_t from, to;     /* the words are right for these ops; if from >= to, for none */
    int64_t work;          /* edges and ops looked at in all batches so far */
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

/* Those in whose place the op may make its outputs. */
static uint64_t bits_taken(const remat_graph *g, const batch *b, uint32_t op)
{
    uint64_t bits = 0;
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1] && g->n_inplace; k++) {
        const uint32_t taken = rm_taken_value(g, op, k);
        if (taken != REMAT_NONE) bits |= bits_of(g, b, &taken, 0, 1);
    }
    return bits;
}

/* From the first maker of the batch to its last reader. */
static void choose_range(const remat_graph *g, batch *b)
{
    b->from = g->n_ops;
    b->to = 0;
    for (unsigned i = 0; i < b->n; i++) {
        const uint32_t maker = g->producer[b->storage[i]], last = b->last_reader[b->storage[i]];
        if (maker < b->from) b->from = maker;
        if (last > b->to) b->to = last;
    }
    if (b->to > g->n_ops) b->to = g->n_ops;
}

/* The words as far as they do not come from other ops. */
static void begin_words(const remat_graph *g, batch *b)
{
    uint64_t kept_to_end = 0;
    for (unsigned i = 0; i < b->n; i++)
        if (b->last_reader[b->storage[i]] > g->n_ops) rm_add_bit(&kept_to_end, i);
    for (uint32_t op = b->from; op < b->to; op++) {
        b->own[op] = 0;
        b->below[op] = 0;
        b->above[op] = kept_to_end;
    }
    for (unsigned i = 0; i < b->n; i++) {
        const uint32_t maker = g->producer[b->storage[i]];
        if (maker < b->to) rm_add_bit(&b->own[maker], i);
    }
}

/* Who surely ran before. */
static void propagate_below(const remat_graph *g, batch *b)
{
    uint64_t pinned = 0; /* for the next pinned op */
    for (uint32_t op = b->from; op < b->to; op++) {
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
            const uint32_t p = g->producer[g->in[k]];
            if (p != REMAT_NONE && p >= b->from) b->below[op] |= b->below[p] | b->own[p];
        }
        if (!g->pinned[op]) continue;
        b->below[op] |= pinned;
        pinned = b->below[op] | b->own[op];
    }
}

/* Who surely reads later. */
static void propagate_above(const remat_graph *g, batch *b)
{
    uint64_t pinned = 0; /* for the pinned op before */
    for (uint32_t op = b->to; op-- > b->from;) {
        if (g->pinned[op]) b->above[op] |= pinned;
        const uint64_t from_here =
            b->above[op] | bits_of(g, b, g->in, g->in_begin[op], g->in_begin[op + 1]);
        if (g->pinned[op]) pinned = from_here;
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
            const uint32_t p = g->producer[g->in[k]];
            if (p != REMAT_NONE && p >= b->from) b->above[p] |= from_here;
        }
    }
}

static void propagate(const remat_graph *g, batch *b)
{
    choose_range(g, b);
    begin_words(g, b);
    propagate_below(g, b);
    propagate_above(g, b);
}

/* By root value: 1 + the last op that reads it. A graph output is needed to the end: n_ops + 1. */
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
    TRY(RM_SCRATCH(ctx, b->own, g->n_ops));
    TRY(RM_SCRATCH(ctx, b->below, g->n_ops));
    TRY(RM_SCRATCH(ctx, b->above, g->n_ops));
    return RM_SCRATCH(ctx, b->slot, g->n_values);
}

static bool is_of_pinned_op(const remat_graph *g, uint32_t v)
{
    return g->root[v] == v && g->producer[v] != REMAT_NONE && g->pinned[g->producer[v]];
}

/* The next storages of pinned ops, from value *v on. False: there are none, or so much work is done
 * that the weaker bound of the batches before must do. */
static bool batch_next(const remat_graph *g, batch *b, uint32_t *v)
{
    for (unsigned i = 0; i < b->n; i++) b->slot[b->storage[i]] = 0;
    b->n = 0;
    for (; *v < g->n_values && b->n < BATCH; ++*v) {
        if (!is_of_pinned_op(g, *v)) continue;
        b->storage[b->n++] = *v;
        b->slot[*v] = (uint8_t)b->n;
    }
    if (b->n == 0) return false;
    propagate(g, b);
    if (b->from < b->to)
        b->work += (int64_t)(g->in_begin[b->to] - g->in_begin[b->from] + b->to - b->from);
    return b->work < MOST_WORK;
}

/* Storages of the batch that are in memory at `op` though it does not touch them, or could make an
 * output in their place if they were not needed later. */
static uint64_t held_across(const remat_graph *g, const batch *b, uint32_t op)
{
    assert(op >= b->from && op < b->to);
    const uint64_t held = b->below[op] & b->above[op];
    if (!held) return 0;
    const uint64_t touched = bits_of(g, b, g->in, g->in_begin[op], g->in_begin[op + 1]) |
                             bits_of(g, b, g->out, g->out_begin[op], g->out_begin[op + 1]);
    return held & ~(touched & ~bits_taken(g, b, op));
}

/* The bytes of the storages in list[begin .. end) that are not resident. Each counts once for an
 * op. seen: by root value, 1 + the last op that it was counted for. */
static int64_t bytes_touched(const remat_graph *g, uint32_t op, const uint32_t *list,
                             uint32_t begin, uint32_t end, uint32_t *seen)
{
    int64_t bytes = 0;
    for (uint32_t k = begin; k < end; k++) {
        const uint32_t root = g->root[list[k]];
        if (g->producer[root] == REMAT_NONE || seen[root] == op + 1) continue;
        seen[root] = op + 1;
        bytes += g->storage[root];
    }
    return bytes;
}

/* What the op may make its outputs in place of counts as seen: the outputs are counted. */
static void see_taken(const remat_graph *g, uint32_t op, uint32_t *seen)
{
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        if (g->out_takes[k] != REMAT_NONE) seen[g->root[rm_taken_value(g, op, k)]] = op + 1;
}

/* No sum reaches 2^62: the storages are distinct, and the builder has added up all of them and all
 * workspaces. */
static void set_own_needs(const remat_graph *g, int64_t *need, uint32_t *seen)
{
    for (uint32_t op = 0; op < g->n_ops; op++) {
        see_taken(g, op, seen);
        need[op] = g->resident_bytes + g->workspace[op] +
                   bytes_touched(g, op, g->in, g->in_begin[op], g->in_begin[op + 1], seen) +
                   bytes_touched(g, op, g->out, g->out_begin[op], g->out_begin[op + 1], seen);
    }
}

/* The end counts as an op behind all others, which reads the outputs. */
static int64_t need_at_end(const remat_graph *g, uint32_t *seen)
{
    return g->resident_bytes + bytes_touched(g, g->n_ops, g->outputs, 0, g->n_outputs, seen);
}

remat_status rm_need_find(remat_ctx *ctx, const remat_graph *g, bool offload, rm_need *out)
{
    int64_t *need;
    uint32_t *seen;
    batch b;
    TRY(RM_SCRATCH(ctx, need, g->n_ops));
    TRY(RM_SCRATCH(ctx, seen, g->n_values));
    TRY(batch_new(ctx, g, &b));
    set_own_needs(g, need, seen);
    for (uint32_t v = 0; !offload && batch_next(g, &b, &v);)
        for (uint32_t op = b.from; op < b.to; op++)
            for (uint64_t bits = held_across(g, &b, op); bits; bits &= bits - 1)
                need[op] += g->storage[b.storage[rm_lowest_bit(bits)]];
    *out = (rm_need){need_at_end(g, seen), REMAT_NONE};
    for (uint32_t op = 0; op < g->n_ops; op++)
        if (need[op] > out->bytes || (need[op] == out->bytes && out->op == REMAT_NONE))
            *out = (rm_need){need[op], op};
    return REMAT_OK;
}

static void mark_list(const remat_graph *g, const uint32_t *list, uint32_t begin, uint32_t end,
                      uint8_t *marked)
{
    for (uint32_t k = begin; k < end; k++) marked[g->root[list[k]]] = !rm_is_resident(g, list[k]);
}

/* Marks, by root value, the storages that are in memory at `op` whatever the schedule. They are the
 * terms of the sum that rm_need_find made for it. */
static remat_status mark_storages(remat_ctx *ctx, const remat_graph *g, uint32_t op, bool offload,
                                  uint8_t *marked)
{
    batch b;
    TRY(batch_new(ctx, g, &b));
    mark_list(g, g->in, g->in_begin[op], g->in_begin[op + 1], marked);
    mark_list(g, g->out, g->out_begin[op], g->out_begin[op + 1], marked);
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        if (g->out_takes[k] != REMAT_NONE) marked[g->root[rm_taken_value(g, op, k)]] = 0;
    for (uint32_t v = 0; !offload && batch_next(g, &b, &v);) {
        if (op < b.from || op >= b.to) continue;
        for (uint64_t bits = held_across(g, &b, op); bits; bits &= bits - 1)
            marked[b.storage[rm_lowest_bit(bits)]] = 1;
    }
    return REMAT_OK;
}

static bool is_smaller(const remat_graph *g, uint32_t a, uint32_t b)
{
    return g->storage[a] < g->storage[b];
}
RM_HEAP(smallest, uint32_t, const remat_graph *, is_smaller)

/* A heap holds the largest so far, the smallest of them on top. It takes the first marked storages
 * that there is room for. Each later one that is larger than the top replaces it. */
remat_status rm_need_values(remat_ctx *ctx, const remat_graph *g, bool offload, uint32_t *values,
                            uint32_t capacity, uint32_t *n_values)
{
    rm_need need;
    uint8_t *marked;
    TRY(rm_need_find(ctx, g, offload, &need));
    TRY(RM_SCRATCH(ctx, marked, g->n_values));
    if (need.op == REMAT_NONE) mark_list(g, g->outputs, 0, g->n_outputs, marked);
    else TRY(mark_storages(ctx, g, need.op, offload, marked));
    uint32_t n = 0, v = 0;
    for (; v < g->n_values && n < capacity; v++)
        if (marked[v]) values[n++] = v;
    smallest_make(g, values, n);
    for (; v < g->n_values && n; v++)
        if (marked[v] && is_smaller(g, values[0], v)) smallest_replace(g, values, n, v);
    *n_values = n;
    for (; n > 1; n--) values[n - 1] = smallest_pop(g, values, n); /* the smallest goes last */
    return REMAT_OK;
}
