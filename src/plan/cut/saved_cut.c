/* saved_cut.c: the network of Algorithms 1 and 2 of "Transcending Runtime-Memory Tradeoffs in
 * Checkpointing by Being Fusion Aware", and its minimum cut.
 *
 * The paper has nodes with an in-vertex and an out-vertex. The in-vertex on the sink's side means
 * "is run again". The out-vertex on the sink's side means "is there for the outside". Here an op is
 * an in-vertex and a storage an out-vertex, because ops have several outputs and values share
 * storages:
 *
 *   op -> storage it makes       the price of saving it: cut when the storage is wanted and the op
 *                                is not run again
 *   storage -> op that reads it  infinite: whoever is run again needs its inputs
 *   source -> op                 the price of running it again (nothing in the paper; the budgeted
 *                                sweep uses it)
 *
 * The network is built contracted. Banned ops and the makers of inputs are the source. Storages
 * that the outside reads are the sink.
 *
 * Views cost nothing and need no vertex. Whoever reads a view reads its storage, so one storage is
 * paid for once. That is right as long as a view can be had again from its storage alone. It cannot
 * where its op reads other storages, makes some, or is banned. Then the maker of its storage is
 * taken as banned: the storage is there as it was, and the view with it.
 *
 * Invariant: between calls all marks of the space are clear. Cost: O(edges of the ops given) and
 * one maximum flow. */
#include "plan/cut/saved_cut.h"

#include "algo/maxflow.h"

#include <assert.h>

/* Bits of rm_cut_space.part. */
enum { INSIDE = 1, OUTSIDE = 2, RUNS_ONCE = 4 };

/* Vertices. The flow network counts from 0, so ours are one more. */
enum { UNSEEN = 0, SOURCE = 1, SINK = 2, FIRST_FREE = 3 };

typedef struct network {
    const remat_graph *g;
    const rm_cut_problem *p;
    rm_cut_space *x;
    uint32_t *storages; /* roots that got a vertex, in order of discovery */
    uint32_t n_storages, n_vertices;
    rm_flow_edge *edges;
    size_t n_edges, most_edges;
} network;

static bool is_inside(const network *w, uint32_t op)
{
    return op != REMAT_NONE && w->x->part[op] & INSIDE;
}

/* Can the alias outputs of this op be had again from their storage alone? */
static bool is_plain_view(const network *w, uint32_t op, uint32_t root)
{
    const remat_graph *g = w->g;
    if (!rm_is_view_op(g, op) || w->p->banned[op]) return false;
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
        if (g->root[g->in[k]] != root) return false;
    return true;
}

static void mark_parts(network *w)
{
    const remat_graph *g = w->g;
    for (uint32_t i = 0; i < w->p->n_outside; i++) w->x->part[w->p->outside[i]] = OUTSIDE;
    for (uint32_t i = 0; i < w->p->n_inside; i++) {
        const uint32_t op = w->p->inside[i];
        assert(w->p->banned[op] || !g->pinned[op]);
        w->x->part[op] = w->p->banned[op] ? INSIDE | RUNS_ONCE : INSIDE;
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++) {
            const uint32_t root = g->root[g->out[k]], maker = g->producer[root];
            if (maker != op && is_inside(w, maker) && !is_plain_view(w, op, root))
                w->x->part[maker] |= RUNS_ONCE;
        }
    }
}

static void clear_marks(network *w)
{
    for (uint32_t i = 0; i < w->p->n_inside; i++) w->x->part[w->p->inside[i]] = 0;
    for (uint32_t i = 0; i < w->p->n_outside; i++) w->x->part[w->p->outside[i]] = 0;
    for (uint32_t i = 0; i < w->n_storages; i++) w->x->vertex[w->storages[i]] = UNSEEN;
}

static void see_storage(network *w, uint32_t root)
{
    if (w->x->vertex[root] != UNSEEN) return;
    w->x->vertex[root] = ++w->n_vertices;
    w->storages[w->n_storages++] = root;
}

/* Storages that the inside makes or reads get a vertex. Those that the outside reads become the
 * sink. */
static void find_storages(network *w)
{
    const remat_graph *g = w->g;
    for (uint32_t i = 0; i < w->p->n_inside; i++) {
        const uint32_t op = w->p->inside[i];
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
            see_storage(w, g->root[g->in[k]]);
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
            see_storage(w, g->root[g->out[k]]);
    }
    for (uint32_t i = 0; i < w->p->n_outside; i++) {
        const uint32_t op = w->p->outside[i];
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
            const uint32_t value = g->in[k], root = g->root[value];
            const bool is_ours =
                is_inside(w, g->producer[value]) || !is_inside(w, g->producer[root]);
            if (w->x->vertex[root] != UNSEEN && is_ours) w->x->vertex[root] = SINK;
        }
    }
}

static void add_edge(network *w, uint32_t from, uint32_t to, int64_t capacity)
{
    assert(w->n_edges < w->most_edges);
    w->edges[w->n_edges++] = (rm_flow_edge){from - 1, to - 1, capacity};
}

static void add_op(network *w, uint32_t op)
{
    const remat_graph *g = w->g;
    if (rm_is_view_op(g, op)) return;
    const uint32_t vertex = w->x->part[op] & RUNS_ONCE ? (uint32_t)SOURCE : ++w->n_vertices;
    w->x->op_vertex[op] = vertex;
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        if (g->out_source[k] == REMAT_NONE)
            add_edge(w, vertex, w->x->vertex[g->out[k]], w->p->price[g->out[k]]);
    if (vertex == SOURCE) return;
    if (w->p->run_again) add_edge(w, SOURCE, vertex, w->p->run_again[op]);
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
        add_edge(w, w->x->vertex[g->root[g->in[k]]], vertex, RM_FLOW_INFINITE);
}

static void add_inputs(network *w)
{
    for (uint32_t i = 0; i < w->n_storages; i++) {
        const uint32_t root = w->storages[i];
        if (!is_inside(w, w->g->producer[root]))
            add_edge(w, SOURCE, w->x->vertex[root], w->p->price[root]);
    }
}

/* Room for every storage and edge that there can be. */
static remat_status make_room(network *w)
{
    const remat_graph *g = w->g;
    size_t n_storages = 0;
    for (uint32_t i = 0; i < w->p->n_inside; i++) {
        const uint32_t op = w->p->inside[i];
        n_storages += (size_t)(g->in_begin[op + 1] - g->in_begin[op]) +
                      (g->out_begin[op + 1] - g->out_begin[op]);
    }
    TRY(RM_SCRATCH(w->x->ctx, w->storages, n_storages));
    w->most_edges = 2 * n_storages + w->p->n_inside;
    return RM_SCRATCH(w->x->ctx, w->edges, w->most_edges);
}

/* A storage is saved if it is on the sink's side and its maker is not. */
static void collect(const network *w, const uint8_t *source_side, rm_saved *out)
{
    for (uint32_t i = 0; i < w->n_storages; i++) {
        const uint32_t root = w->storages[i], maker = w->g->producer[root];
        if (source_side[w->x->vertex[root] - 1]) continue;
        if (!is_inside(w, maker) || source_side[w->x->op_vertex[maker] - 1])
            out->values[out->n_values++] = root;
    }
}

static remat_status solve(network *w, rm_saved *out)
{
    remat_ctx *ctx = w->x->ctx;
    uint8_t *source_side;
    find_storages(w);
    for (uint32_t i = 0; i < w->p->n_inside; i++) add_op(w, w->p->inside[i]);
    add_inputs(w);
    TRY(RM_SCRATCH(ctx, out->values, w->n_storages));
    TRY(RM_SCRATCH(ctx, source_side, w->n_vertices));
    const rm_flow_network flow = {w->n_vertices, SOURCE - 1, SINK - 1, w->edges, w->n_edges};
    const remat_status status = rm_maxflow(ctx, &flow, RM_LATEST_CUT, &out->capacity, source_side);
    if (status == REMAT_E_INPUT)
        return rm_fail(ctx, REMAT_E_APPLIES,
                       "the sizes are too large for a minimum cut: they pass 2^62");
    if (status == REMAT_OK && out->capacity != REMAT_ABSENT) collect(w, source_side, out);
    return status;
}

remat_status rm_saved_cut(rm_cut_space *space, const rm_cut_problem *problem, rm_saved *out)
{
    network w = {.g = space->graph, .p = problem, .x = space, .n_vertices = FIRST_FREE - 1};
    *out = (rm_saved){0};
    TRY(make_room(&w));
    mark_parts(&w);
    const remat_status status = solve(&w, out);
    clear_marks(&w);
    return status;
}

remat_status rm_cut_space_new(remat_ctx *ctx, const remat_graph *g, rm_cut_space *out)
{
    rm_cut_space x = {.ctx = ctx, .graph = g};
    TRY(RM_SCRATCH(ctx, x.part, g->n_ops));
    TRY(RM_SCRATCH(ctx, x.op_vertex, g->n_ops));
    TRY(RM_SCRATCH(ctx, x.vertex, g->n_values));
    *out = x;
    return REMAT_OK;
}
