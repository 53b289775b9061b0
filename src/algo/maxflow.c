/* maxflow.c: waves of a preflow, on CSR arrays.
 *
 * Problem: the value of a maximum flow, and the side of the source in one of two minimum cuts.
 *
 * Method: push-relabel (Goldberg and Tarjan), in which global relabelling does most of the work.
 * Every edge is two arcs: itself and its twin backwards. Arcs are grouped by tail. At the start the
 * source gives all that it can. This lies as excess at its neighbours. Then come waves:
 *
 * 1. A breadth first search from the sink finds the distance of every vertex to the sink in the
 *    residual network.
 * 2. The vertices are visited from the farthest to the nearest. Each pushes its excess along arcs
 *    that lead one step nearer.
 * 3. A vertex that is stuck rises to just above its lowest neighbour and pushes there, and so on.
 *    Such vertices wait in a queue. The work of rising is limited; then the next wave measures
 *    again.
 *
 * The preflow is maximal when no vertex with excess reaches the sink. The vertices that still reach
 * the sink are then the sink's side of the latest minimum cut. Excess that is left over would go
 * back to the source along vertices that do not reach the sink. It changes neither value nor side,
 * so it stays where it is. The earliest cut is the latest cut of the network backwards.
 *
 * Two other methods were measured (tests/unit/test_maxflow.c has the networks). On networks of
 * training graphs, Dinic's algorithm is as fast, and highest labels with gaps are two to five times
 * slower. Dinic's algorithm is quadratic where inputs, or outputs, lie at many different distances
 * along a path.
 *
 * Infinite is 1 + the sum of the finite capacities. A flow that large proves that no finite cut
 * exists. Excess is limited to it: a vertex could never pass on more.
 *
 * Invariants:
 * - residual(arc) + residual(twin) = capacity of the edge, at most 2^62.
 * - distance(v) <= distance(w) + 1 for every residual arc v -> w. So a distance is never too long.
 *
 * Cost: O(V^2 E) at worst, O(V + E) a wave. Memory: 32 bytes an edge, 29 a vertex. */
#include "algo/maxflow.h"

#include <assert.h>

#include "base/csr.h"

#define UNREACHED UINT32_MAX
enum { PATIENCE = 32 }; /* waves until rising gets as much work as measuring */

typedef struct arc {
    int64_t residual;
    uint32_t to, twin;
} arc;

typedef struct solver {
    remat_ctx *ctx;
    uint32_t n, source, sink;
    arc *arcs;
    uint32_t *begin;    /* arcs of v: begin[v] .. begin[v + 1] */
    uint32_t *distance; /* by vertex: to the sink, or UNREACHED */
    uint32_t *queue;    /* vertices that reach the sink, nearest first */
    int64_t *excess;    /* by vertex, at most infinite */
    uint8_t *waits;     /* by vertex: is it in the ring? */
    uint32_t *rising;   /* a ring of n vertices that wait to rise */
    uint32_t first_waiting, n_waiting;
    int64_t infinite;
    uint32_t n_waves;
} solver;

static bool carries(const rm_flow_network *w, const rm_flow_edge *e)
{
    return e->from != e->to && e->to != w->source && e->from != w->sink && e->capacity > 0;
}

static remat_status sum_capacities(remat_ctx *ctx, const rm_flow_network *w, int64_t *infinite,
                                   size_t *n_arcs)
{
    int64_t sum = 0;
    *n_arcs = 0;
    for (size_t i = 0; i < w->n_edges; i++) {
        const int64_t capacity = w->edges[i].capacity;
        *n_arcs += carries(w, &w->edges[i]) ? 2 : 0;
        if (capacity == RM_FLOW_INFINITE) continue;
        if (capacity >= RM_MAX_SUM - sum)
            return rm_fail(ctx, REMAT_E_INPUT,
                           "the capacities of the flow network sum to 2^62 or more");
        sum += capacity;
    }
    *infinite = sum + 1;
    if (*n_arcs >= UINT32_MAX)
        return rm_fail(ctx, REMAT_E_INPUT, "the flow network has 2^31 edges or more");
    return REMAT_OK;
}

static remat_status allocate(solver *s, size_t n_arcs)
{
    TRY(RM_SCRATCH(s->ctx, s->arcs, n_arcs));
    TRY(rm_csr_begin(s->ctx, s->n, &s->begin));
    TRY(RM_SCRATCH(s->ctx, s->distance, s->n));
    TRY(RM_SCRATCH(s->ctx, s->queue, s->n));
    TRY(RM_SCRATCH(s->ctx, s->excess, s->n));
    TRY(RM_SCRATCH(s->ctx, s->waits, s->n));
    return RM_SCRATCH(s->ctx, s->rising, s->n);
}

static void add_arcs(solver *s, const rm_flow_network *w, bool backwards)
{
    for (size_t i = 0; i < w->n_edges; i++) {
        if (!carries(w, &w->edges[i])) continue;
        rm_csr_count(s->begin, w->edges[i].from);
        rm_csr_count(s->begin, w->edges[i].to);
    }
    rm_csr_sum(s->begin, s->n);
    for (size_t i = 0; i < w->n_edges; i++) {
        const rm_flow_edge *e = &w->edges[i];
        if (!carries(w, e)) continue;
        const uint32_t from = backwards ? e->to : e->from, to = backwards ? e->from : e->to;
        const uint32_t there = rm_csr_place(s->begin, from), back = rm_csr_place(s->begin, to);
        const int64_t capacity = e->capacity == RM_FLOW_INFINITE ? s->infinite : e->capacity;
        s->arcs[there] = (arc){capacity, to, back};
        s->arcs[back] = (arc){0, from, there};
    }
}

static remat_status build(solver *s, const rm_flow_network *w, bool backwards)
{
    size_t n_arcs;
    TRY(sum_capacities(s->ctx, w, &s->infinite, &n_arcs));
    TRY(allocate(s, n_arcs));
    add_arcs(s, w, backwards);
    return REMAT_OK;
}

static void push(solver *s, arc *a, int64_t amount)
{
    assert(amount <= a->residual);
    int64_t *excess = &s->excess[a->to];
    a->residual -= amount;
    s->arcs[a->twin].residual += amount;
    *excess = *excess > s->infinite - amount ? s->infinite : *excess + amount;
}

/* Puts v at the end of the ring of those that wait to rise. */
static void enqueue(solver *s, uint32_t v)
{
    assert(!s->waits[v] && s->n_waiting < s->n);
    const uint64_t at = (uint64_t)s->first_waiting + s->n_waiting;
    s->rising[at < s->n ? at : at - s->n] = v;
    s->n_waiting++;
    s->waits[v] = 1;
}

/* Takes the first out of the ring. */
static uint32_t dequeue(solver *s)
{
    assert(s->n_waiting > 0);
    const uint32_t v = s->rising[s->first_waiting];
    s->first_waiting = s->first_waiting + 1 < s->n ? s->first_waiting + 1 : 0;
    s->n_waiting--;
    s->waits[v] = 0;
    return v;
}

/* Distances to the sink. No way leads through the source. Returns how many vertices reach the sink,
 * and whether any of them has excess. */
static uint32_t measure(solver *s, bool *any_excess)
{
    uint32_t head = 0, tail = 0;
    *any_excess = false;
    for (uint32_t v = 0; v < s->n; v++) s->distance[v] = UNREACHED;
    s->distance[s->sink] = 0;
    s->queue[tail++] = s->sink;
    while (head < tail) {
        const uint32_t v = s->queue[head++];
        for (uint32_t a = s->begin[v]; a < s->begin[v + 1]; a++) {
            const uint32_t u = s->arcs[a].to;
            if (s->distance[u] != UNREACHED || u == s->source ||
                s->arcs[s->arcs[a].twin].residual == 0)
                continue;
            s->distance[u] = s->distance[v] + 1;
            *any_excess |= s->excess[u] > 0;
            s->queue[tail++] = u;
        }
    }
    return tail;
}

/* Pushes the excess of v to vertices one step nearer. While vertices rise, those join the ring. */
static void push_nearer(solver *s, uint32_t v, bool rising)
{
    const uint32_t nearer = s->distance[v] - 1;
    for (uint32_t a = s->begin[v]; a < s->begin[v + 1] && s->excess[v] > 0; a++) {
        arc *x = &s->arcs[a];
        if (x->residual == 0 || s->distance[x->to] != nearer) continue;
        const int64_t amount = s->excess[v] < x->residual ? s->excess[v] : x->residual;
        s->excess[v] -= amount;
        push(s, x, amount);
        if (rising && !s->waits[x->to] && x->to != s->sink) enqueue(s, x->to);
    }
}

/* The distance that v rises to: one more than that of its lowest neighbour. */
static uint32_t lifted(const solver *s, uint32_t v)
{
    uint32_t least = UNREACHED;
    for (uint32_t a = s->begin[v]; a < s->begin[v + 1]; a++)
        if (s->arcs[a].residual > 0 && s->distance[s->arcs[a].to] < least)
            least = s->distance[s->arcs[a].to];
    return least < s->n ? least + 1 : UNREACHED;
}

/* Vertices that are stuck rise, first come, first served. Returns the work, in arcs: at most about
 * `most`. */
static size_t rise(solver *s, size_t most)
{
    size_t left = most;
    while (s->n_waiting > 0) {
        const uint32_t v = dequeue(s), degree = s->begin[v + 1] - s->begin[v];
        while (s->excess[v] > 0 && s->distance[v] != UNREACHED && left > 0) {
            left = left > degree ? left - degree : 0;
            s->distance[v] = lifted(s, v);
            if (s->distance[v] != UNREACHED) push_nearer(s, v, true);
        }
    }
    return most - left;
}

/* The vertices that reach the sink push, from the farthest to the nearest. Then those that are
 * stuck rise. Returns the work of rising, in arcs. */
static size_t wave(solver *s, uint32_t n_reaching)
{
    for (uint32_t i = n_reaching; i-- > 1;) {
        const uint32_t v = s->queue[i];
        if (s->excess[v] > 0) push_nearer(s, v, false);
        if (s->excess[v] > 0) enqueue(s, v);
    }
    s->n_waves++;
    return rise(s, ((size_t)s->begin[s->n] + s->n) / PATIENCE * s->n_waves);
}

static remat_status solve(solver *s, const rm_flow_network *w, bool backwards, int64_t *value,
                          uint8_t *source_side)
{
    TRY(build(s, w, backwards));
    for (uint32_t a = s->begin[s->source]; a < s->begin[s->source + 1]; a++)
        push(s, &s->arcs[a], s->arcs[a].residual);
    for (;;) {
        bool any_excess;
        const uint32_t n_reaching = measure(s, &any_excess);
        if (!any_excess) break;
        const size_t work = wave(s, n_reaching);
        if (rm_spend(s->ctx, (int64_t)(s->begin[s->n] + s->n + work))) {
            *value = REMAT_ABSENT;
            return REMAT_OK;
        }
    }
    *value = s->excess[s->sink] < s->infinite ? s->excess[s->sink] : RM_FLOW_INFINITE;
    for (uint32_t v = 0; v < s->n; v++) source_side[v] = (s->distance[v] == UNREACHED) != backwards;
    return REMAT_OK;
}

remat_status rm_maxflow(remat_ctx *ctx, const rm_flow_network *network, rm_flow_side side,
                        int64_t *value, uint8_t *source_side)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    assert(network->source != network->sink);
    assert(network->source < network->n_vertices && network->sink < network->n_vertices);
    const bool backwards = side == RM_EARLIEST_CUT;
    solver s = {.ctx = ctx,
                .n = network->n_vertices,
                .source = backwards ? network->sink : network->source,
                .sink = backwards ? network->source : network->sink};
    const remat_status status = solve(&s, network, backwards, value, source_side);
    rm_scratch_release(ctx, mark);
    return status;
}
