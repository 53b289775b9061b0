/* path_flow.c: packing intervals on a line by network simplex.
 *
 * Problem: maximise the sum of p_g y_g with 0 <= y_g <= size_g. At every row, the y_g of the
 * intervals that cover it sum to at most the room there.
 *
 * Method: give every row a slack and subtract each row from the next. Then every column has one +1
 * and one -1. This is a min-cost flow on the nodes 0 .. n_rows. Row t is the arc t -> t + 1, an
 * interval is the arc first -> last + 1. It is solved by network simplex (Ahuja, Magnanti, Orlin,
 * Network Flows, chapter 11):
 *
 * - The start takes every interval whole or not at all. So the path of all rows is the tree, and no
 *   artificial arcs are needed.
 * - The rows' arcs point at the root, so the tree is strongly feasible. The last blocking arc
 *   leaves, which keeps it so. This rules out cycling.
 * - A tree is parent pointers and child lists. A pivot detaches a part of the tree, turns the path
 *   inside it around, and walks over it once.
 *
 * Invariants:
 * - potential[u] - potential[v] = p for every tree arc u -> v of profit p. A row has profit 0.
 * - potential[n_rows] = 0. The price of row t is potential[t] - potential[t + 1].
 *
 * Cost: O(detached part + cycle) a pivot. In practice there are a small multiple of rows +
 * intervals of them. When the work is spent it stops early. The solution is feasible then, and
 * negative prices are replaced by 0. Callers rely on no more than that. */
#include "algo/path_flow.h"

#include <assert.h>

#include "base/csr.h"
#include "base/heap.h"

#define NOBODY UINT32_MAX
#define ENDLESS INT64_MAX

enum { AT_ZERO, AT_SIZE, IN_TREE };
enum { LOOK = 1 << 18 }; /* operations between looks at the clock */

typedef struct node {
    int64_t potential;
    uint32_t parent, arc;         /* arc to the parent; NOBODY at the root */
    uint32_t child, next, before; /* the first child; neighbours among the children of the parent */
    uint32_t depth;
    bool up; /* the arc points at the parent */
} node;

struct rm_tree {
    node *nodes;
    int64_t *flow;  /* by arc: rows, then intervals */
    uint8_t *state; /* by arc: AT_ZERO, AT_SIZE or IN_TREE */
    uint32_t n_arcs;
    uint32_t block; /* arcs that are looked at together for one that enters */
    uint32_t at;    /* the arc that is looked at next */
};

typedef struct rm_tree tree;

static uint32_t tail_of(const rm_path_flow *f, uint32_t arc)
{
    return arc < f->n_rows ? arc : f->intervals[arc - f->n_rows].first;
}
static uint32_t head_of(const rm_path_flow *f, uint32_t arc)
{
    return arc < f->n_rows ? arc + 1 : f->intervals[arc - f->n_rows].last + 1;
}
static int64_t profit_of(const rm_path_flow *f, uint32_t arc)
{
    return arc < f->n_rows ? 0 : f->intervals[arc - f->n_rows].profit;
}
static int64_t size_of(const rm_path_flow *f, uint32_t arc)
{
    return arc < f->n_rows ? ENDLESS : f->intervals[arc - f->n_rows].size;
}

/* What one more unit on the arc would gain. */
static int64_t gain_of(const rm_path_flow *f, uint32_t arc)
{
    const node *nodes = f->tree->nodes;
    return profit_of(f, arc) - nodes[tail_of(f, arc)].potential + nodes[head_of(f, arc)].potential;
}

/* ---- the tree ---- */

static void unlink_child(node *nodes, uint32_t v)
{
    const node *x = &nodes[v];
    if (x->before != NOBODY) nodes[x->before].next = x->next;
    else nodes[x->parent].child = x->next;
    if (x->next != NOBODY) nodes[x->next].before = x->before;
}

static void link_child(node *nodes, uint32_t v, uint32_t parent)
{
    node *x = &nodes[v];
    x->parent = parent;
    x->before = NOBODY;
    x->next = nodes[parent].child;
    if (x->next != NOBODY) nodes[x->next].before = v;
    nodes[parent].child = v;
}

/* The part at and below `top` is detached from its parent. It hangs by its node `in` onto `out`
 * from now on, through `arc`. up: that arc points at `out`. */
static void rehang(node *nodes, uint32_t top, uint32_t in, uint32_t out, uint32_t arc, bool up)
{
    uint32_t v = in, parent = out;
    for (bool last = false; !last;) {
        const node old = nodes[v];
        last = v == top;
        unlink_child(nodes, v);
        link_child(nodes, v, parent);
        nodes[v].arc = arc;
        nodes[v].up = up;
        parent = v;
        v = old.parent;
        arc = old.arc;
        up = !old.up;
    }
}

/* The node behind v on a walk over the part at and below `top`, parents first; NOBODY: v was the
 * last. */
static uint32_t next_in_part(const node *nodes, uint32_t top, uint32_t v)
{
    if (nodes[v].child != NOBODY) return nodes[v].child;
    while (v != top && nodes[v].next == NOBODY) v = nodes[v].parent;
    return v == top ? NOBODY : nodes[v].next;
}

/* Renews potentials and depths of the part at and below `top`; returns how many nodes it has. */
static uint32_t shift(node *nodes, uint32_t top, int64_t by)
{
    uint32_t n = 0;
    for (uint32_t v = top; v != NOBODY; v = next_in_part(nodes, top, v)) {
        n++;
        nodes[v].potential += by;
        nodes[v].depth = nodes[nodes[v].parent].depth + 1;
    }
    return n;
}

/* ---- a pivot ---- */

typedef struct cycle {
    uint32_t from, to; /* flow goes over the entering arc from -> to, and back through the tree */
    uint32_t detached; /* the node below the leaving arc; NOBODY: the entering arc itself leaves */
    bool is_at_from;   /* the leaving arc lies between `from` and where both sides meet */
    int64_t amount;
} cycle;

/* Room for flow on the arc above v, going up or down. */
static int64_t room_above(const rm_path_flow *f, uint32_t v, bool upward)
{
    const node *x = &f->tree->nodes[v];
    const int64_t flow = f->tree->flow[x->arc];
    if (x->up != upward) return flow;
    const int64_t size = size_of(f, x->arc);
    return size == ENDLESS ? ENDLESS : size - flow;
}

/* The last arc with the least room, on the way of the flow: over the entering arc, from `to` up to
 * where both sides meet, and down to `from`. Here both sides are walked upwards. So of equals the
 * first wins on the side of `from`, and the last on the side of `to`. */
static void find_leaving(rm_path_flow *f, cycle *c)
{
    const node *nodes = f->tree->nodes;
    uint32_t u = c->from, v = c->to, from_node = NOBODY, to_node = NOBODY;
    int64_t from_room = ENDLESS, to_room = ENDLESS;
    while (u != v) {
        if (nodes[u].depth >= nodes[v].depth) {
            const int64_t room = room_above(f, u, false);
            if (room < from_room) {
                from_room = room;
                from_node = u;
            }
            u = nodes[u].parent;
        } else {
            const int64_t room = room_above(f, v, true);
            if (room <= to_room && room != ENDLESS) {
                to_room = room;
                to_node = v;
            }
            v = nodes[v].parent;
        }
        f->work--;
    }
    c->detached = NOBODY; /* so far the amount is the entering arc's own room */
    if (from_room < c->amount) {
        c->amount = from_room;
        c->detached = from_node;
        c->is_at_from = true;
    }
    if (to_room <= c->amount && to_node != NOBODY) {
        c->amount = to_room;
        c->detached = to_node;
        c->is_at_from = false;
    }
}

static void push(const rm_path_flow *f, const cycle *c)
{
    const node *nodes = f->tree->nodes;
    int64_t *flow = f->tree->flow;
    for (uint32_t u = c->from, v = c->to; u != v;) {
        if (nodes[u].depth >= nodes[v].depth) {
            flow[nodes[u].arc] += nodes[u].up ? -c->amount : c->amount;
            u = nodes[u].parent;
        } else {
            flow[nodes[v].arc] += nodes[v].up ? c->amount : -c->amount;
            v = nodes[v].parent;
        }
    }
}

static void pivot(rm_path_flow *f, uint32_t arc)
{
    tree *t = f->tree;
    assert(t->state[arc] != IN_TREE);
    const bool forward = t->state[arc] == AT_ZERO;
    const uint32_t tail = tail_of(f, arc), head = head_of(f, arc);
    const int64_t gain = gain_of(f, arc);
    cycle c = {.from = tail, .to = head, .amount = size_of(f, arc)};
    if (!forward) {
        c.from = head;
        c.to = tail;
    }
    find_leaving(f, &c);
    if (c.amount > 0) {
        push(f, &c);
        t->flow[arc] += forward ? c.amount : -c.amount;
    }
    if (c.detached == NOBODY) {
        t->state[arc] = forward ? AT_SIZE : AT_ZERO;
        return;
    }
    const uint32_t leaving = t->nodes[c.detached].arc;
    const uint32_t in = c.is_at_from ? c.from : c.to, out = c.is_at_from ? c.to : c.from;
    t->state[leaving] = t->flow[leaving] == 0 ? AT_ZERO : AT_SIZE;
    t->state[arc] = IN_TREE;
    rehang(t->nodes, c.detached, in, out, arc, in == tail);
    f->work -= shift(t->nodes, in, in == tail ? gain : -gain);
}

/* Looks through blocks of arcs, from where the last search ended. The answer is the best arc of the
 * first block in which some arc gains. NOBODY: no arc gains. */
static uint32_t find_entering(rm_path_flow *f)
{
    tree *t = f->tree;
    uint32_t best = NOBODY, left = t->block;
    int64_t most = 0;
    for (uint32_t seen = 0; seen < t->n_arcs; seen++) {
        const uint32_t arc = t->at;
        t->at = arc + 1 == t->n_arcs ? 0 : arc + 1;
        if (t->state[arc] != IN_TREE) {
            const int64_t gain = t->state[arc] == AT_ZERO ? gain_of(f, arc) : -gain_of(f, arc);
            if (gain > most) {
                most = gain;
                best = arc;
            }
        }
        if (--left == 0) {
            f->work -= t->block;
            if (best != NOBODY) return best;
            left = t->block;
        }
    }
    return best;
}

/* ---- a start ---- */

/* Least profit first; then the longest. */
static bool goes_before(const rm_interval *intervals, uint32_t a, uint32_t b)
{
    const rm_interval *x = &intervals[a], *y = &intervals[b];
    if (x->profit != y->profit) return x->profit < y->profit;
    if (x->last - x->first != y->last - y->first) return x->last - x->first > y->last - y->first;
    return a > b;
}
RM_HEAP(taken, uint32_t, const rm_interval *, goes_before)

static remat_status list_by_first(remat_ctx *ctx, const rm_path_flow *f, rm_csr *out)
{
    uint32_t *first; /* by interval */
    TRY(RM_SCRATCH(ctx, first, f->n_intervals));
    for (uint32_t g = 0; g < f->n_intervals; g++) first[g] = f->intervals[g].first;
    return rm_csr_by_key(ctx, f->n_rows, f->n_intervals, first, out);
}

static void set_taken(rm_path_flow *f, uint32_t g, bool whole)
{
    f->tree->state[f->n_rows + g] = whole ? AT_SIZE : AT_ZERO;
    f->tree->flow[f->n_rows + g] = whole ? f->intervals[g].size : 0;
}

/* Walks along the rows and takes each interval where it begins. Wherever the room is short it gives
 * up the interval that is worth least. Intervals stay whole, so the tree stays the path: the
 * simplex finds the fractions. */
static remat_status start_greedily(remat_ctx *ctx, rm_path_flow *f)
{
    uint32_t *taken, n_taken = 0; /* a heap of intervals, of which some may be over */
    int64_t *change;              /* by row: sizes that are over before it */
    rm_csr by_first;
    TRY(RM_SCRATCH(ctx, taken, f->n_intervals));
    TRY(RM_SCRATCH(ctx, change, (size_t)f->n_rows + 1));
    TRY(list_by_first(ctx, f, &by_first));
    int64_t used = 0;
    for (uint32_t row = 0; row < f->n_rows; row++) {
        used -= change[row];
        for (uint32_t i = by_first.begin[row]; i < by_first.begin[row + 1]; i++) {
            const uint32_t g = by_first.items[i];
            taken_push(f->intervals, taken, n_taken++, g);
            used += f->intervals[g].size;
            change[f->intervals[g].last + 1] += f->intervals[g].size;
            set_taken(f, g, true);
        }
        while (used > f->room[row]) {
            assert(n_taken > 0);
            const uint32_t g = taken_pop(f->intervals, taken, n_taken--);
            if (f->intervals[g].last < row) continue;
            used -= f->intervals[g].size;
            change[f->intervals[g].last + 1] -= f->intervals[g].size;
            set_taken(f, g, false);
        }
    }
    return REMAT_OK;
}

/* The flow of a row is what intervals leave of its room. The walk may have seen less: an interval
 * that is given up at a later row is gone from earlier rows too. */
static remat_status fill_rows(remat_ctx *ctx, rm_path_flow *f)
{
    int64_t *change, used = 0;
    TRY(RM_SCRATCH(ctx, change, (size_t)f->n_rows + 1));
    for (uint32_t g = 0; g < f->n_intervals; g++) {
        change[f->intervals[g].first] += f->tree->flow[f->n_rows + g];
        change[f->intervals[g].last + 1] -= f->tree->flow[f->n_rows + g];
    }
    for (uint32_t row = 0; row < f->n_rows; row++) {
        used += change[row];
        f->tree->flow[row] = f->room[row] - used;
        assert(f->tree->flow[row] >= 0);
    }
    return REMAT_OK;
}

/* The tree is the path, with the last node as its root. */
static remat_status make_tree(remat_ctx *ctx, uint32_t n_rows, uint32_t n_intervals, tree **out)
{
    tree *t;
    TRY(RM_SCRATCH(ctx, t, 1));
    *t = (tree){.n_arcs = n_rows + n_intervals, .block = 50};
    while ((uint64_t)t->block * t->block < t->n_arcs) t->block++;
    TRY(RM_SCRATCH(ctx, t->nodes, (size_t)n_rows + 1));
    TRY(RM_SCRATCH(ctx, t->flow, t->n_arcs));
    TRY(RM_SCRATCH(ctx, t->state, t->n_arcs));
    for (uint32_t v = 0; v <= n_rows; v++)
        t->nodes[v] = (node){.parent = v < n_rows ? v + 1 : NOBODY,
                             .arc = v < n_rows ? v : NOBODY,
                             .child = v ? v - 1 : NOBODY,
                             .next = NOBODY,
                             .before = NOBODY,
                             .depth = n_rows - v,
                             .up = true};
    for (uint32_t row = 0; row < n_rows; row++) t->state[row] = IN_TREE;
    *out = t;
    return REMAT_OK;
}

remat_status rm_path_flow_new(remat_ctx *ctx, uint32_t n_rows, const int64_t *room,
                              uint32_t n_intervals, const rm_interval *intervals, rm_path_flow *out)
{
    rm_path_flow f = {.n_rows = n_rows,
                      .n_intervals = n_intervals,
                      .room = room,
                      .intervals = intervals,
                      .work = INT64_MAX,
                      .ctx = ctx};
    for (uint32_t g = 0; g < n_intervals; g++) {
        assert(intervals[g].first <= intervals[g].last && intervals[g].last < n_rows);
        assert(intervals[g].size > 0 && intervals[g].profit >= 0);
    }
    TRY(make_tree(ctx, n_rows, n_intervals, &f.tree));
    TRY(RM_SCRATCH(ctx, f.taken, n_intervals));
    TRY(RM_SCRATCH(ctx, f.price, n_rows));
    TRY(start_greedily(ctx, &f));
    TRY(fill_rows(ctx, &f));
    *out = f;
    return REMAT_OK;
}

/* Potentials that fit the tree and the profits as they are now. */
static void price_tree(rm_path_flow *f)
{
    node *nodes = f->tree->nodes;
    const uint32_t root = f->n_rows;
    for (uint32_t v = root; v != NOBODY; v = next_in_part(nodes, root, v)) {
        if (v == root) continue;
        const int64_t profit = profit_of(f, nodes[v].arc);
        nodes[v].potential = nodes[nodes[v].parent].potential + (nodes[v].up ? profit : -profit);
    }
}

/* Pivots until no arc gains, or the work is spent, or it is late. */
static void improve(rm_path_flow *f)
{
    int64_t next_look = f->work - LOOK;
    f->optimal = false;
    for (;;) {
        const uint32_t arc = find_entering(f);
        f->optimal = arc == NOBODY;
        if (f->optimal || f->work <= 0) return;
        pivot(f, arc);
        if (f->work >= next_look) continue;
        if (rm_is_late(f->ctx)) return;
        next_look = f->work - LOOK;
    }
}

void rm_path_flow_solve(rm_path_flow *f)
{
    const tree *t = f->tree;
    price_tree(f);
    improve(f);
    for (uint32_t g = 0; g < f->n_intervals; g++) f->taken[g] = t->flow[f->n_rows + g];
    for (uint32_t row = 0; row < f->n_rows; row++) {
        const int64_t price = t->nodes[row].potential - t->nodes[row + 1].potential;
        f->price[row] = price > 0 ? price : 0;
    }
}
