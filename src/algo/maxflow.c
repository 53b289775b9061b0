/* maxflow.c: Dinic's algorithm on CSR arrays.
 *
 * Every edge is two arcs, itself and its twin backwards, grouped by tail. A phase labels vertices by their distance to the sink in the
 * residual network (breadth first, from the sink, until the source has a label), then walks from the source along arcs that lead one step
 * nearer, augments whenever the sink is reached, and retreats from dead ends, which are not entered again in this phase. The walk
 * keeps its path on an array: no recursion. When the source gets no label the flow is maximal, and the labelled vertices are exactly
 * those that still reach the sink: the sink's side of the latest minimum cut. The earliest cut takes one more search, from the source.
 *
 * Infinite = 1 + the sum of the finite capacities: a flow that large proves that no finite cut exists, and ends the search.
 * Invariants: residual(arc) + residual(twin) = capacity of the edge; so every number stays at or below 2^62.
 * O(V^2 E) at worst; on networks of training graphs a handful of phases, each nearly O(V + E). Memory: 32 bytes an edge. */
#include "algo/maxflow.h"

#define NO_LEVEL UINT32_MAX

typedef struct arc {
    int64_t residual;
    uint32_t to, twin;
} arc;

typedef struct solver {
    remat_ctx *ctx;
    uint32_t n, source, sink;
    arc *arcs;
    uint32_t *begin;   /* arcs of v: begin[v] .. begin[v + 1] */
    uint32_t *current; /* by vertex: the first arc not yet given up in this phase */
    uint32_t *level;   /* by vertex: distance to the sink, or NO_LEVEL */
    uint32_t *queue;   /* of the search; the path of the walk */
    int64_t infinite, value;
} solver;

static bool carries(const rm_flow_network *w, const rm_flow_edge *e)
{
    return e->from != e->to && e->to != w->source && e->from != w->sink && e->capacity > 0;
}

static remat_status sum_capacities(remat_ctx *ctx, const rm_flow_network *w, int64_t *infinite, size_t *n_arcs)
{
    int64_t sum = 0;
    *n_arcs = 0;
    for (size_t i = 0; i < w->n_edges; i++) {
        const int64_t capacity = w->edges[i].capacity;
        *n_arcs += carries(w, &w->edges[i]) ? 2 : 0;
        if (capacity == RM_FLOW_INFINITE) continue;
        if (capacity >= RM_MAX_SUM || (sum += capacity) >= RM_MAX_SUM)
            return rm_fail(ctx, REMAT_E_INPUT, "the capacities of the flow network sum to 2^62 or more");
    }
    *infinite = sum + 1;
    return *n_arcs < UINT32_MAX ? REMAT_OK : rm_fail(ctx, REMAT_E_INPUT, "the flow network has 2^31 edges or more");
}

static remat_status build(solver *s, const rm_flow_network *w)
{
    size_t n_arcs;
    TRY(sum_capacities(s->ctx, w, &s->infinite, &n_arcs));
    TRY(RM_SCRATCH(s->ctx, s->arcs, n_arcs));
    TRY(RM_SCRATCH(s->ctx, s->begin, (size_t)s->n + 2));
    TRY(RM_SCRATCH(s->ctx, s->current, s->n));
    TRY(RM_SCRATCH(s->ctx, s->level, s->n));
    TRY(RM_SCRATCH(s->ctx, s->queue, s->n));
    uint32_t *next = s->begin + 1; /* ends up as begin itself */
    for (size_t i = 0; i < w->n_edges; i++)
        if (carries(w, &w->edges[i])) next[w->edges[i].from + 1]++, next[w->edges[i].to + 1]++;
    for (uint32_t v = 0; v < s->n; v++) next[v + 1] += next[v];
    for (size_t i = 0; i < w->n_edges; i++) {
        const rm_flow_edge *e = &w->edges[i];
        if (!carries(w, e)) continue;
        const uint32_t there = next[e->from]++, back = next[e->to]++;
        s->arcs[there] = (arc){e->capacity == RM_FLOW_INFINITE ? s->infinite : e->capacity, e->to, back};
        s->arcs[back] = (arc){0, e->from, there};
    }
    return REMAT_OK;
}

/* Labels what reaches the sink, nearest first, up to the source's distance; true if the source is reached. */
static bool label(solver *s)
{
    uint32_t head = 0, tail = 0;
    for (uint32_t v = 0; v < s->n; v++) s->level[v] = NO_LEVEL;
    s->level[s->sink] = 0;
    s->queue[tail++] = s->sink;
    while (head < tail) {
        const uint32_t v = s->queue[head++];
        if (s->level[v] >= s->level[s->source]) break; /* what follows is no nearer */
        for (uint32_t a = s->begin[v]; a < s->begin[v + 1]; a++) {
            const uint32_t u = s->arcs[a].to;
            if (s->level[u] != NO_LEVEL || s->arcs[s->arcs[a].twin].residual == 0) continue;
            s->level[u] = s->level[v] + 1;
            s->current[u] = s->begin[u];
            s->queue[tail++] = u;
        }
    }
    return s->level[s->source] != NO_LEVEL;
}

/* Pushes what the path can carry; returns the length of the part of it that is left unsaturated. */
static uint32_t augment(solver *s, const uint32_t *path, uint32_t length)
{
    int64_t most = s->infinite;
    uint32_t keep = 0;
    for (uint32_t i = length; i-- > 0;)
        if (s->arcs[path[i]].residual <= most) most = s->arcs[path[i]].residual, keep = i;
    for (uint32_t i = 0; i < length; i++) {
        arc *a = &s->arcs[path[i]];
        a->residual -= most;
        s->arcs[a->twin].residual += most;
    }
    s->value += most;
    return keep;
}

/* A blocking flow: afterwards every labelled path from source to sink has a full arc. */
static void block(solver *s)
{
    uint32_t *path = s->queue, length = 0, v = s->source;
    while (s->value < s->infinite) {
        if (v == s->sink) {
            length = augment(s, path, length);
            v = s->arcs[s->arcs[path[length]].twin].to;
            continue;
        }
        uint32_t *a = &s->current[v];
        while (*a < s->begin[v + 1] && (s->arcs[*a].residual == 0 || s->level[s->arcs[*a].to] != s->level[v] - 1)) ++*a;
        if (*a < s->begin[v + 1]) {
            path[length++] = *a;
            v = s->arcs[*a].to;
        } else if (length > 0) { /* a dead end */
            s->level[v] = NO_LEVEL;
            v = s->arcs[s->arcs[path[--length]].twin].to;
        } else {
            return;
        }
    }
}

static void mark_earliest(solver *s, uint8_t *source_side)
{
    uint32_t head = 0, tail = 0;
    for (uint32_t v = 0; v < s->n; v++) source_side[v] = v == s->source;
    s->queue[tail++] = s->source;
    while (head < tail) {
        const uint32_t v = s->queue[head++];
        for (uint32_t a = s->begin[v]; a < s->begin[v + 1]; a++) {
            const uint32_t u = s->arcs[a].to;
            if (source_side[u] || s->arcs[a].residual == 0) continue;
            source_side[u] = 1;
            s->queue[tail++] = u;
        }
    }
}

static remat_status solve(solver *s, const rm_flow_network *w, rm_flow_side side, int64_t *value, uint8_t *source_side)
{
    TRY(build(s, w));
    while (label(s)) {
        block(s);
        if (s->value >= s->infinite) {
            *value = RM_FLOW_INFINITE;
            return REMAT_OK;
        }
        if (rm_spend(s->ctx, s->begin[s->n])) {
            *value = REMAT_ABSENT;
            return REMAT_OK;
        }
    }
    *value = s->value;
    if (side == RM_EARLIEST_CUT) mark_earliest(s, source_side);
    else
        for (uint32_t v = 0; v < s->n; v++) source_side[v] = s->level[v] == NO_LEVEL;
    return REMAT_OK;
}

remat_status rm_maxflow(remat_ctx *ctx, const rm_flow_network *network, rm_flow_side side, int64_t *value, uint8_t *source_side)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    solver s = {.ctx = ctx, .n = network->n_vertices, .source = network->source, .sink = network->sink};
    const remat_status status = solve(&s, network, side, value, source_side);
    rm_scratch_release(ctx, mark);
    return status;
}
