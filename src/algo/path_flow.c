/* path_flow.c: maximise sum p_g y_g with 0 <= y_g <= size_g and, at every row, the y_g of the
 * intervals that cover it summing to at most the room there.
 *
 * Method: with a slack per row and each row subtracted from the next, every column has one +1 and
 * one -1: a min-cost flow on the nodes 0 .. n_rows, where row t is the arc t -> t + 1 and an
 * interval the arc first -> last + 1. Network simplex (Ahuja, Magnanti, Orlin, Network Flows,
 * chapter 11): as long as intervals are taken whole or not at all, the path itself is the tree, so
 * no artificial arcs are needed, and since the rows' arcs point at the root it is strongly
 * feasible; leaving by the last blocking arc keeps it so, which rules out cycling. A tree is parent
 * pointers and child lists; a pivot turns the path inside the part that is cut off and walks that
 * part once.
 *
 * Invariant: for every tree arc u -> v of profit p, potential[u] - potential[v] = p (a row's arc
 * has profit 0); potential[n_rows] = 0; the price of row t is potential[t] - potential[t + 1].
 *
 * Cost: O(part cut off + cycle) a pivot; pivots are a small multiple of rows + intervals in
 * practice. When the work is spent it stops with a feasible solution and prices cut off at 0, which
 * is all that its callers rely on. */
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
    uint32_t parent, arc; /* arc to the parent; NOBODY at the root */
    uint32_t child, next, before;
    uint32_t depth;
    bool up; /* the arc points at the parent */
} node;

struct rm_tree {
    node *nodes;
    int64_t *flow;  /* by arc: rows, then intervals */
    uint8_t *state; /* by arc */
    uint32_t n_rows, n_arcs, block, at;
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

/* Hangs the part below `cut` by its node `in` onto `out`, through `arc`, which points up or not. */
static void rehang(node *nodes, uint32_t cut, uint32_t in, uint32_t out, uint32_t arc, bool up)
{
    uint32_t v = in, parent = out;
    for (bool last = false; !last;) {
        const node old = nodes[v];
        last = v == cut;
        unlink_child(nodes, v);
        link_child(nodes, v, parent);
        nodes[v].arc = arc;
        nodes[v].up = up;
        parent = v, v = old.parent, arc = old.arc, up = !old.up;
    }
}

/* Potentials and depths below and at `top`; returns how many nodes that are. */
static uint32_t shift(node *nodes, uint32_t top, int64_t by)
{
    uint32_t n = 0;
    for (uint32_t v = top;;) {
        n++;
        nodes[v].potential += by;
        nodes[v].depth = nodes[nodes[v].parent].depth + 1;
        if (nodes[v].child != NOBODY) {
            v = nodes[v].child;
            continue;
        }
        while (v != top && nodes[v].next == NOBODY) v = nodes[v].parent;
        if (v == top) return n;
        v = nodes[v].next;
    }
}

/* ---- a pivot ---- */

typedef struct cycle {
    uint32_t from, to; /* flow goes over the entering arc from -> to, and back through the tree */
    uint32_t cut;      /* the node below the leaving arc; NOBODY: the entering arc itself leaves */
    bool cut_at_from;  /* that node is on from's side */
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

static void find_leaving(rm_path_flow *f, cycle *c)
{
    const node *nodes = f->tree->nodes;
    uint32_t u = c->from, v = c->to;
    int64_t from_side = ENDLESS, to_side = ENDLESS, room;
    uint32_t from_cut = NOBODY, to_cut = NOBODY;
    while (u != v) {
        if (nodes[u].depth >=
            nodes[v].depth) { /* the first one seen from `from` is the last one on the way */
            if ((room = room_above(f, u, false)) < from_side) from_side = room, from_cut = u;
            u = nodes[u].parent;
        } else {
            if ((room = room_above(f, v, true)) <= to_side && room != ENDLESS)
                to_side = room, to_cut = v;
            v = nodes[v].parent;
        }
        f->work--;
    }
    c->cut = NOBODY; /* amount is the entering arc's own room */
    if (from_side < c->amount) c->amount = from_side, c->cut = from_cut, c->cut_at_from = true;
    if (to_side <= c->amount && to_cut != NOBODY)
        c->amount = to_side, c->cut = to_cut, c->cut_at_from = false;
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
    const bool forward = t->state[arc] == AT_ZERO;
    const uint32_t tail = tail_of(f, arc), head = head_of(f, arc);
    const int64_t gain = gain_of(f, arc);
    cycle c = {
        .from = forward ? tail : head, .to = forward ? head : tail, .amount = size_of(f, arc)};
    find_leaving(f, &c);
    if (c.amount > 0) {
        push(f, &c);
        t->flow[arc] += forward ? c.amount : -c.amount;
    }
    if (c.cut == NOBODY) {
        t->state[arc] = forward ? AT_SIZE : AT_ZERO;
        return;
    }
    const uint32_t leaving = t->nodes[c.cut].arc, in = c.cut_at_from ? c.from : c.to,
                   out = c.cut_at_from ? c.to : c.from;
    t->state[leaving] = t->flow[leaving] == 0 ? AT_ZERO : AT_SIZE;
    t->state[arc] = IN_TREE;
    rehang(t->nodes, c.cut, in, out, arc, in == tail);
    f->work -= shift(t->nodes, in, in == tail ? gain : -gain);
}

/* The best arc of the first block, from where the last search ended, that has one that gains;
 * NOBODY: none in the whole round. */
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
            if (gain > most) most = gain, best = arc;
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

/* Takes everything, and walking along the rows gives up what is worth least wherever the room is
 * short. All taken or not at all, so the tree stays the path. Whole intervals again: the simplex
 * finds the fractions. */
static remat_status start_greedily(remat_ctx *ctx, rm_path_flow *f)
{
    tree *t = f->tree;
    uint32_t *taken, n_taken = 0; /* a heap of intervals, of which some may be over */
    uint32_t *first;              /* by interval */
    rm_csr by_first;
    int64_t *change; /* by row: sizes that are over before it */
    TRY(RM_SCRATCH(ctx, taken, f->n_intervals));
    TRY(RM_SCRATCH(ctx, first, f->n_intervals));
    TRY(RM_SCRATCH(ctx, change, (size_t)f->n_rows + 1));
    for (uint32_t g = 0; g < f->n_intervals; g++) first[g] = f->intervals[g].first;
    TRY(rm_csr_by_key(ctx, f->n_rows, f->n_intervals, first, &by_first));
    int64_t used = 0;
    for (uint32_t row = 0; row < f->n_rows; row++) {
        used -= change[row];
        for (uint32_t i = by_first.begin[row]; i < by_first.begin[row + 1]; i++) {
            const uint32_t g = by_first.items[i];
            taken_push(f->intervals, taken, n_taken++, g);
            used += f->intervals[g].size;
            change[f->intervals[g].last + 1] += f->intervals[g].size;
            t->state[f->n_rows + g] = AT_SIZE;
            t->flow[f->n_rows + g] = f->intervals[g].size;
        }
        while (used > f->room[row]) {
            const uint32_t g = taken_pop(f->intervals, taken, n_taken--);
            if (f->intervals[g].last < row) continue;
            used -= f->intervals[g].size;
            change[f->intervals[g].last + 1] -= f->intervals[g].size;
            t->state[f->n_rows + g] = AT_ZERO;
            t->flow[f->n_rows + g] = 0;
        }
    }
    return REMAT_OK;
}

/* What intervals leave of the room; those given up late may leave more than the walk saw. */
static void fill_rows(rm_path_flow *f, int64_t *change)
{
    int64_t used = 0;
    for (uint32_t g = 0; g < f->n_intervals; g++) {
        change[f->intervals[g].first] += f->tree->flow[f->n_rows + g];
        change[f->intervals[g].last + 1] -= f->tree->flow[f->n_rows + g];
    }
    for (uint32_t row = 0; row < f->n_rows; row++) {
        used += change[row];
        f->tree->flow[row] = f->room[row] - used;
        assert(f->tree->flow[row] >= 0);
    }
}

/* The tree is the path, with the last node as its root. */
remat_status rm_path_flow_new(remat_ctx *ctx, uint32_t n_rows, const int64_t *room,
                              uint32_t n_intervals, const rm_interval *intervals, rm_path_flow *out)
{
    rm_path_flow f = {.n_rows = n_rows,
                      .n_intervals = n_intervals,
                      .room = room,
                      .intervals = intervals,
                      .work = INT64_MAX,
                      .ctx = ctx};
    tree *t;
    TRY(RM_SCRATCH(ctx, t, 1));
    *t = (tree){.n_rows = n_rows, .n_arcs = n_rows + n_intervals, .block = 50};
    while ((uint64_t)t->block * t->block < t->n_arcs) t->block++;
    TRY(RM_SCRATCH(ctx, t->nodes, (size_t)n_rows + 1));
    TRY(RM_SCRATCH(ctx, t->flow, t->n_arcs));
    TRY(RM_SCRATCH(ctx, t->state, t->n_arcs));
    TRY(RM_SCRATCH(ctx, f.taken, n_intervals));
    TRY(RM_SCRATCH(ctx, f.price, n_rows));
    for (uint32_t v = 0; v <= n_rows; v++)
        t->nodes[v] = (node){.parent = v < n_rows ? v + 1 : NOBODY,
                             .arc = v < n_rows ? v : NOBODY,
                             .child = v ? v - 1 : NOBODY,
                             .next = NOBODY,
                             .before = NOBODY,
                             .depth = n_rows - v,
                             .up = true};
    for (uint32_t row = 0; row < n_rows; row++) t->state[row] = IN_TREE;
    f.tree = t;
    int64_t *change;
    TRY(RM_SCRATCH(ctx, change, (size_t)n_rows + 1));
    TRY(start_greedily(ctx, &f));
    fill_rows(&f, change);
    *out = f;
    return REMAT_OK;
}

/* Potentials that fit the tree and the profits as they are now. */
static void price_tree(rm_path_flow *f)
{
    node *nodes = f->tree->nodes;
    for (uint32_t v = f->n_rows;;) {
        if (nodes[v].parent != NOBODY) {
            const int64_t profit = profit_of(f, nodes[v].arc);
            nodes[v].potential =
                nodes[nodes[v].parent].potential + (nodes[v].up ? profit : -profit);
        }
        if (nodes[v].child != NOBODY) {
            v = nodes[v].child;
            continue;
        }
        while (v != f->n_rows && nodes[v].next == NOBODY) v = nodes[v].parent;
        if (v == f->n_rows) return;
        v = nodes[v].next;
    }
}

void rm_path_flow_solve(rm_path_flow *f)
{
    tree *t = f->tree;
    if (f->n_rows) price_tree(f);
    uint32_t arc;
    int64_t next_look = f->work - LOOK;
    while ((arc = find_entering(f)) != NOBODY && f->work > 0) {
        pivot(f, arc);
        if (f->work >= next_look) continue;
        if (rm_is_late(f->ctx)) break;
        next_look = f->work - LOOK;
    }
    f->optimal = arc == NOBODY;
    for (uint32_t g = 0; g < f->n_intervals; g++) f->taken[g] = t->flow[f->n_rows + g];
    for (uint32_t row = 0; row < f->n_rows; row++) {
        const int64_t price = t->nodes[row].potential - t->nodes[row + 1].potential;
        f->price[row] = price > 0 ? price : 0;
    }
}
