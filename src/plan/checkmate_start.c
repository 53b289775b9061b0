/* checkmate_start.c: schedules of Checkmate's form from those of others.
 *
 * An order that runs its ops first in the graph's order says which storages it keeps from one first run to the next (optimal_r.c). Of any other
 * order, the gaps are taken: a storage that lived from one of its uses to the next, in the graph's order, is kept between the two.
 * Either way the least recomputation for that follows, and whether it fits is measured, not assumed. */
#include "plan/checkmate_start.h"

#include "plan/flow_seed.h"
#include "plan/optimal_r.h"

enum { EDITS_PER_OP = 4000 };

static bool is_in_order(const rm_normal *nm, const rm_codes *codes)
{
    uint32_t n_first = 0;
    for (size_t i = 0; i < codes->n; i++) {
        if (rm_is_fetch(nm, codes->items[i]) || codes->items[i] > n_first) return false;
        n_first += codes->items[i] == n_first;
    }
    return true;
}

/* Between two uses in the graph's order, at each of which the op runs first: no run of the maker lies between them in `codes`. */
static remat_status gaps_kept(remat_ctx *ctx, const rm_normal *nm, const rm_codes *codes, rm_bits *out)
{
    uint32_t *first, *made; /* by op: the step of its first run; by storage: how often up to that */
    uint32_t *at_use;       /* by place in `in`: how often the storage had been made when that op ran first */
    TRY(rm_bits_new(ctx, out, nm->n_ops, nm->n_stores));
    TRY(RM_SCRATCH(ctx, first, nm->n_ops));
    TRY(RM_SCRATCH(ctx, made, nm->n_stores));
    TRY(RM_SCRATCH(ctx, at_use, nm->in_begin[nm->n_ops]));
    for (size_t i = 0; i < codes->n; i++) {
        const rm_code op = codes->items[i];
        if (rm_is_fetch(nm, op)) continue;
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1] && !first[op]; k++) at_use[k] = made[nm->in[k]];
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++) made[nm->out[k]]++;
        if (!first[op]) first[op] = (uint32_t)i + 1;
    }
    for (uint32_t s = 0; s < nm->n_stores; s++) {
        uint32_t from = nm->producer[s], seen = 1;
        for (uint32_t j = nm->reader_begin[s]; j <= nm->reader_begin[s + 1]; j++) {
            const bool end = j == nm->reader_begin[s + 1];
            if (end && !nm->is_output[s]) break;
            const uint32_t to = end ? nm->n_ops - 1 : nm->readers[j];
            uint32_t now = made[s];
            for (uint32_t k = nm->in_begin[to]; k < nm->in_begin[to + 1] && !end; k++)
                if (nm->in[k] == s) now = at_use[k];
            for (uint32_t t = from + 1; t <= to && now == seen; t++) rm_bit_set(out, t, s);
            from = to;
            seen = now;
        }
    }
    return REMAT_OK;
}

static remat_status offer_staged(const rm_problem *p, const rm_normal *nm, const rm_codes *codes, rm_codes *staged,
                                 rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    rm_bits retained;
    if (codes->n == 0) return REMAT_OK;
    if (is_in_order(nm, codes)) TRY(rm_retained_of(ctx, nm, codes->items, codes->n, &retained));
    else TRY(gaps_kept(ctx, nm, codes, &retained));
    TRY(rm_optimal_r(ctx, nm, &retained, staged));
    return rm_codes_offer(p, nm, staged, best);
}

remat_status rm_offer_staged(const rm_problem *p, const rm_normal *nm, const rm_codes *codes, rm_incumbent *best)
{
    const rm_mark mark = rm_scratch_mark(p->ctx);
    rm_codes staged = {0};
    const remat_status status = offer_staged(p, nm, codes, &staged, best);
    RM_VEC_FREE(&p->ctx->heap, staged);
    rm_scratch_release(p->ctx, mark);
    return status;
}

static remat_status round_flow(const rm_problem *p, const rm_normal *nm, rm_codes *codes, rm_incumbent *best)
{
    static const int percents[] = {100, 97, 94, 90, 85, 80, 70, 60, 50, 40};
    for (size_t i = 0; i < RM_LEN(percents) && p->budget_bytes >= 0; i++) {
        TRY(rm_flow_seed(p->ctx, nm, p->budget_bytes / 100 * percents[i], 8 * (size_t)nm->n_ops + 1000, codes));
        TRY(rm_offer_staged(p, nm, codes, best));
    }
    return REMAT_OK;
}

/* auto's work is in units of its own, and a share of the time is enough for it. */
static remat_status run_auto(const rm_problem *p, const rm_normal *nm, rm_codes *codes, rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    rm_incumbent found = {.any = false};
    const int64_t work = ctx->work, limit = ctx->work_limit, deadline_ns = ctx->deadline_ns;
    ctx->work = 0;
    ctx->work_limit = EDITS_PER_OP * ((int64_t)nm->n_ops + 8);
    if (deadline_ns != INT64_MAX) ctx->deadline_ns = deadline_ns - (deadline_ns - rm_clock_ns()) / 2;
    remat_status status = rm_auto.run(p, &found);
    ctx->work = work, ctx->work_limit = limit, ctx->deadline_ns = deadline_ns;
    if (ctx->stopped != REMAT_SIGNAL) ctx->stopped = REMAT_DONE;
    if (status == REMAT_OK && found.any) status = rm_codes_of_steps(ctx, nm, &found.steps, codes);
    if (status == REMAT_OK && found.any) status = rm_offer_staged(p, nm, codes, best);
    RM_VEC_FREE(&ctx->heap, found.steps);
    return status;
}

remat_status rm_checkmate_seed(const rm_problem *p, const rm_normal *nm, rm_incumbent *best)
{
    rm_codes codes = {0};
    remat_status status = round_flow(p, nm, &codes, best);
    if (status == REMAT_OK) status = run_auto(p, nm, &codes, best);
    RM_VEC_FREE(&p->ctx->heap, codes);
    return status;
}
