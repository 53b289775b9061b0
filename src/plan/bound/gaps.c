/* gaps.c: the gaps of an order of first runs, and the room they have.
 *
 * Method: one walk over the order. A storage that is touched again after other ops ran has a gap
 * since the last touch. The end of the step is a position behind all ops that touches all graph
 * outputs. A gap between neighbours takes no room and is left out. What a pinned op made has one
 * instance only, so its gaps must be kept: they count as need. O(edges). */
#include "plan/bound/gaps.h"

#include "base/csr.h"

typedef struct walk {
    remat_ctx *ctx;
    rm_gaps *gs;
    bool fetches;
    RM_VEC(rm_gap) found; /* by `to` */
} walk;

/* load and need hold differences between neighbours until sum_up. */
static remat_status add_gap(walk *w, uint32_t store, uint32_t from, uint32_t to)
{
    rm_gaps *gs = w->gs;
    const int64_t bytes = gs->nm->bytes[store];
    if (to - from < 2 || bytes == 0) return REMAT_OK;
    const bool held = !w->fetches && gs->nm->pinned[gs->nm->producer[store]];
    int64_t *at = held ? gs->need : gs->load;
    at[from + 1] += bytes;
    at[to] -= bytes;
    const rm_gap gap = {store, from, to};
    return held ? REMAT_OK : RM_PUSH(w->ctx, w->found, gap);
}

static remat_status touch(walk *w, uint32_t t, uint32_t store)
{
    rm_gaps *gs = w->gs;
    if (gs->last_touch[store] != REMAT_NONE) TRY(add_gap(w, store, gs->last_touch[store], t));
    gs->last_touch[store] = t;
    gs->need[t] += gs->nm->bytes[store];
    gs->need[t + 1] -= gs->nm->bytes[store];
    return REMAT_OK;
}

static void sum_up(rm_gaps *gs)
{
    const rm_normal *nm = gs->nm;
    int64_t need = nm->resident_bytes, load = 0;
    for (uint32_t t = 0; t < nm->n_ops; t++) {
        need += gs->need[t];
        load += gs->load[t];
        gs->need[t] = need + nm->workspace[gs->order[t]];
        gs->load[t] = load;
    }
    gs->need[nm->n_ops] += need;
}

static remat_status walk_order(walk *w)
{
    rm_gaps *gs = w->gs;
    const rm_normal *nm = gs->nm;
    for (uint32_t t = 0; t < nm->n_ops; t++) {
        const uint32_t op = gs->order[t];
        if (rm_is_free_view(nm, op)) continue;
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
            TRY(touch(w, t, nm->in[k]));
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
            TRY(touch(w, t, nm->out[k]));
    }
    for (uint32_t s = 0; s < nm->n_stores; s++) {
        if (!nm->is_output[s]) continue;
        TRY(add_gap(w, s, gs->last_touch[s], nm->n_ops));
        gs->need[nm->n_ops] += nm->bytes[s];
    }
    sum_up(gs);
    return REMAT_OK;
}

static remat_status sort_by_store(walk *w)
{
    rm_gaps *gs = w->gs;
    const uint32_t n_stores = gs->nm->n_stores;
    gs->n_gaps = (uint32_t)w->found.n;
    TRY(RM_SCRATCH(w->ctx, gs->gaps, gs->n_gaps));
    TRY(rm_csr_begin(w->ctx, n_stores, &gs->gap_begin));
    for (uint32_t i = 0; i < gs->n_gaps; i++) rm_csr_count(gs->gap_begin, w->found.items[i].store);
    rm_csr_sum(gs->gap_begin, n_stores);
    for (uint32_t i = 0; i < gs->n_gaps; i++)
        gs->gaps[rm_csr_place(gs->gap_begin, w->found.items[i].store)] = w->found.items[i];
    return REMAT_OK;
}

remat_status rm_gaps_find(remat_ctx *ctx, const rm_normal *nm, const uint32_t *order, bool fetches,
                          rm_gaps *out)
{
    rm_gaps gs = {.nm = nm, .order = order};
    walk w = {.ctx = ctx, .gs = &gs, .fetches = fetches};
    TRY(RM_SCRATCH(ctx, gs.position, nm->n_ops));
    TRY(RM_SCRATCH(ctx, gs.last_touch, nm->n_stores));
    TRY(RM_SCRATCH(ctx, gs.need, (size_t)nm->n_ops + 1));
    TRY(RM_SCRATCH(ctx, gs.load, (size_t)nm->n_ops + 1));
    for (uint32_t t = 0; t < nm->n_ops; t++) gs.position[order[t]] = t;
    for (uint32_t s = 0; s < nm->n_stores; s++) gs.last_touch[s] = REMAT_NONE;
    remat_status status = walk_order(&w);
    if (status == REMAT_OK) status = sort_by_store(&w);
    RM_VEC_FREE(&ctx->heap, w.found);
    if (status == REMAT_OK) *out = gs;
    return status;
}
