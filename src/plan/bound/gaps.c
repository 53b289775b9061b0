/* gaps.c: the gaps of an order of first runs, and the room they have.
 *
 * Method: one walk over the order. A storage that is touched again after other ops ran has a gap
 * since the last touch. The end of the step is a position behind all ops that touches all graph
 * outputs. A gap between neighbours takes no room and is left out. What a pinned op made has one
 * instance only, so its gaps must be kept: they count as need. O(edges). */
#include "plan/bound/gaps.h"

#include "base/csr.h"

/* load and need hold differences between neighbours until sum_up. */
remat_status rm_gaps_begin(rm_gap_walk *w)
{
    rm_gaps *gs = w->gs;
    TRY(RM_SCRATCH(w->ctx, gs->last_touch, gs->nm->n_stores));
    TRY(RM_SCRATCH(w->ctx, gs->need, (size_t)gs->n + 2));
    return RM_SCRATCH(w->ctx, gs->load, (size_t)gs->n + 1);
}

remat_status rm_gaps_add(rm_gap_walk *w, uint32_t store, uint32_t from, uint32_t to, uint32_t due)
{
    rm_gaps *gs = w->gs;
    const int64_t bytes = gs->nm->bytes[store];
    if (to - from < 2 || bytes == 0) return REMAT_OK;
    const bool held = !w->fetches && gs->nm->pinned[gs->nm->producer[store]];
    int64_t *at = held ? gs->need : gs->load;
    at[from + 1] += bytes;
    at[to] -= bytes;
    const rm_gap gap = {store, from, to, due};
    return held ? REMAT_OK : RM_PUSH(w->ctx, w->found, gap);
}

void rm_gaps_touch_all(rm_gap_walk *w, uint32_t t)
{
    const rm_normal *nm = w->gs->nm;
    const uint32_t op = w->gs->at[t];
    int64_t bytes = 0;
    for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
        if (!nm->may_take[k]) bytes += nm->bytes[nm->in[k]];
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
        bytes += nm->bytes[nm->out[k]];
    w->gs->need[t] += bytes;
    w->gs->need[t + 1] -= bytes;
}

static void sum_up(rm_gaps *gs)
{
    const rm_normal *nm = gs->nm;
    int64_t need = nm->resident_bytes, load = 0;
    for (uint32_t s = 0; s < nm->n_stores; s++)
        if (nm->is_output[s]) gs->need[gs->n] += nm->bytes[s];
    for (uint32_t t = 0; t <= gs->n; t++) {
        need += gs->need[t];
        load += gs->load[t];
        gs->need[t] = need + (t < gs->n ? nm->workspace[gs->at[t]] : 0);
        gs->load[t] = load;
    }
}

static remat_status sort_by_store(rm_gap_walk *w)
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

remat_status rm_gaps_end(rm_gap_walk *w, remat_status status)
{
    if (status == REMAT_OK) {
        sum_up(w->gs);
        status = sort_by_store(w);
    }
    RM_VEC_FREE(&w->ctx->heap, w->found);
    return status;
}

/* ---- in a fixed order ---- */

static remat_status touch(rm_gap_walk *w, uint32_t t, uint32_t store)
{
    uint32_t *last = &w->gs->last_touch[store];
    if (*last != REMAT_NONE) TRY(rm_gaps_add(w, store, *last, t, t));
    *last = t;
    return REMAT_OK;
}

static remat_status walk_order(rm_gap_walk *w)
{
    rm_gaps *gs = w->gs;
    const rm_normal *nm = gs->nm;
    for (uint32_t s = 0; s < nm->n_stores; s++) gs->last_touch[s] = REMAT_NONE;
    for (uint32_t t = 0; t < gs->n; t++) {
        const uint32_t op = gs->at[t];
        if (rm_is_free_view(nm, op)) continue;
        rm_gaps_touch_all(w, t);
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
            TRY(touch(w, t, nm->in[k]));
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
            TRY(touch(w, t, nm->out[k]));
    }
    for (uint32_t s = 0; s < nm->n_stores; s++)
        if (nm->is_output[s]) TRY(rm_gaps_add(w, s, gs->last_touch[s], gs->n, gs->n));
    return REMAT_OK;
}

remat_status rm_gaps_find(remat_ctx *ctx, const rm_normal *nm, const uint32_t *order, bool fetches,
                          rm_gaps *out)
{
    *out = (rm_gaps){.nm = nm, .order = order, .at = order, .n = nm->n_ops};
    rm_gap_walk w = {.ctx = ctx, .gs = out, .fetches = fetches};
    remat_status status = rm_gaps_begin(&w);
    if (status == REMAT_OK) status = walk_order(&w);
    return rm_gaps_end(&w, status);
}
