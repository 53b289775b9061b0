/* maxflow.c: waves of a preflow, on CSR arrays.
 *
 * Every edge is two arcs, itself and its twin backwards, grouped by tail. All that the source can
 * give is given at the start and lies as excess at its neighbours. A wave finds the distance of
 * every vertex to the sink in the residual network (breadth first, from the sink), then goes over
 * the vertices from the farthest to the nearest, and each pushes its excess along arcs that lead
 * one step nearer. Where it is stuck, the vertex rises to just above its lowest neighbour and
 * pushes there, and so on, first come, first served, for a limited time; then the next wave
 * measures again. When no vertex with excess reaches the sink the preflow is maximal, and the
 * vertices that still reach the sink are the sink's side of the latest minimum cut. (Excess left
 * over would go back to the source along vertices that do not reach the sink: it changes neither
 * value nor side.) The earliest cut is the latest one of the network backwards.
 *
 * This is push-relabel (Goldberg and Tarjan) in which global relabelling does most of the work.
 * Dinic's algorithm and highest labels with gaps were measured too: on networks of training graphs
 * the one is as fast and the other two to five times slower, and Dinic's is quadratic where inputs,
 * or outputs, lie at many different distances along a chain (tests/unit/test_maxflow.c has both).
 *
 * Infinite = 1 + the sum of the finite capacities: a flow that large proves that no finite cut
 * exists. Excess is cut off there: what a vertex has beyond it could never be passed on.
 * Invariants: residual(arc) + residual(twin) = capacity of the edge, at most 2^62; distance(v) <=
 * distance(w) + 1 for every residual arc v -> w, so a distance is never too long. O(V^2 E) at
 * worst, O(V + E) a wave. Memory: 32 bytes an edge, 29 a vertex. */
#include "algo/maxflow.h"

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
    uint32_t *begin;                            /* arcs of v: begin[v] .. begin[v + 1] */
    uint32_t *distance;                         /* by vertex: to the sink, or UNREACHED */
    uint32_t *queue;                            /* vertices that reach the sink, nearest first */
    int64_t *excess;                            /* by vertex, at most infinite */
    uint8_t *waits;                             /* by vertex: is in the ring, or must not be */
    uint32_t *rising, first_waiting, n_waiting; /* a ring of vertices */
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
        if (capacity >= RM_MAX_SUM || (sum += capacity) >= RM_MAX_SUM)
            return rm_fail(ctx, REMAT_E_INPUT,
                           "the capacities of the flow network sum to 2^62 or more");
    }
    *infinite = sum + 1;
    return *n_arcs < UINT32_MAX
               ? REMAT_OK
               : rm_fail(ctx, REMAT_E_INPUT, "the flow network has 2^31 edges or more");
}

static remat_status build(solver *s, const rm_flow_network *w, bool backwards)
{
    size_t n_arcs;
    TRY(sum_capacities(s->ctx, w, &s->infinite, &n_arcs));
    TRY(RM_SCRATCH(s->ctx, s->arcs, n_arcs));
    TRY(rm_csr_begin(s->ctx, s->n, &s->begin));
    TRY(RM_SCRATCH(s->ctx, s->distance, s->n));
    TRY(RM_SCRATCH(s->ctx, s->queue, s->n));
    TRY(RM_SCRATCH(s->ctx, s->excess, s->n));
    TRY(RM_SCRATCH(s->ctx, s->waits, s->n));
    TRY(RM_SCRATCH(s->ctx, s->rising, s->n));
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
        s->arcs[there] =
            (arc){e->capacity == RM_FLOW_INFINITE ? s->infinite : e->capacity, to, back};
        s->arcs[back] = (arc){0, from, there};
    }
    return REMAT_OK;
}

static void push(solver *s, arc *a, int64_t amount)
{
    int64_t *excess = &s->excess[a->to];
    a->residual -= amount;
    s->arcs[a->twin].residual += amount;
    *excess = *excess > s->infinite - amount ? s->infinite : *excess + amount;
}

/* At the end of the ring of those that rise. */
static void enqueue(solver *s, uint32_t v)
{
    const uint64_t at = (uint64_t)s->first_waiting + s->n_waiting++;
    s->rising[at < s->n ? at : at - s->n] = v;
    s->waits[v] = 1;
}

/* Distances to the sink; the source is nobody's way there. Returns how many vertices reach it. */
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

/* Pushes its excess to vertices one step nearer, which queue if others are rising. */
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

/* The distance that its neighbours leave it, if it has no arc that leads nearer. */
static uint32_t lifted(const solver *s, uint32_t v)
{
    uint32_t least = UNREACHED;
    for (uint32_t a = s->begin[v]; a < s->begin[v + 1]; a++)
        if (s->arcs[a].residual > 0 && s->distance[s->arcs[a].to] < least)
            least = s->distance[s->arcs[a].to];
    return least < s->n ? least + 1 : UNREACHED;
}

/* First the vertices that reach the sink, from the farthest to the nearest; what is stuck then
 * rises, first come, first served, for a while. Returns the work of rising, in arcs. */
static size_t wave(solver *s, uint32_t n_reaching)
{
    for (uint32_t i = n_reaching; i-- > 1;) {
        const uint32_t v = s->queue[i];
        if (s->excess[v] > 0) push_nearer(s, v, false);
        if (s->excess[v] > 0) enqueue(s, v);
    }
    const size_t most = ((size_t)s->begin[s->n] + s->n) / PATIENCE * ++s->n_waves;
    size_t left = most;
    while (s->n_waiting > 0) {
        const uint32_t v = s->rising[s->first_waiting], degree = s->begin[v + 1] - s->begin[v];
        s->first_waiting = s->first_waiting + 1 < s->n ? s->first_waiting + 1 : 0;
        s->n_waiting--;
        s->waits[v] = 0;
        while (s->excess[v] > 0 && s->distance[v] != UNREACHED && left > 0) {
            left = left > degree ? left - degree : 0;
            s->distance[v] = lifted(s, v);
            if (s->distance[v] != UNREACHED) push_nearer(s, v, true);
        }
    }
    return most - left;
}

static remat_status solve(solver *s, const rm_flow_network *w, bool backwards, int64_t *value,
                          uint8_t *source_side)
{
    bool more;
    TRY(build(s, w, backwards));
    for (uint32_t a = s->begin[s->source]; a < s->begin[s->source + 1]; a++)
        push(s, &s->arcs[a], s->arcs[a].residual);
    for (uint32_t n_reaching; n_reaching = measure(s, &more), more;) {
        const size_t rising = wave(s, n_reaching);
        if (!rm_spend(s->ctx, (int64_t)(s->begin[s->n] + s->n + rising))) continue;
        *value = REMAT_ABSENT;
        return REMAT_OK;
    }
    *value = s->excess[s->sink] < s->infinite ? s->excess[s->sink] : RM_FLOW_INFINITE;
    for (uint32_t v = 0; v < s->n; v++) source_side[v] = (s->distance[v] == UNREACHED) != backwards;
    return REMAT_OK;
}

remat_status rm_maxflow(remat_ctx *ctx, const rm_flow_network *network, rm_flow_side side,
                        int64_t *value, uint8_t *source_side)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    const bool backwards = side == RM_EARLIEST_CUT;
    solver s = {.ctx = ctx,
                .n = network->n_vertices,
                .source = backwards ? network->sink : network->source,
                .sink = backwards ? network->source : network->sink};
    const remat_status status = solve(&s, network, backwards, value, source_side);
    rm_scratch_release(ctx, mark);
    return status;
}
