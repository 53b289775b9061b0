/* checkmate_start.c: schedules of Checkmate's form from those of others.
 *
 * An order that runs its ops first in the graph's order says which storages it keeps from one first
 * run to the next (optimal_r.c). Of any other order the gaps are taken: a storage that lived from
 * one of its uses to the next, in the graph's order, is kept between the two. Either way the least
 * recomputation for that follows. Whether it fits is measured, not assumed.
 *
 * Cost: O(ops * edges) for an order. */
#include "plan/checkmate/checkmate_start.h"

#include "plan/bound/rounding.h"
#include "plan/checkmate/optimal_r.h"
#include "plan/search/anneal.h"

enum {                      /* operations of a search for a start */
       WORK_A_PAIR = 17000, /* for each pair of ops */
       MOST_WORK = RM_SECOND / 3 * 2
};

/* Does it run its ops first in the graph's order, without fetches? */
static bool is_in_order(const rm_normal *nm, const rm_codes *codes)
{
    uint32_t n_first = 0;
    for (size_t i = 0; i < codes->n; i++) {
        if (rm_is_fetch(nm, codes->items[i]) || codes->items[i] > n_first) return false;
        if (codes->items[i] == n_first) n_first++;
    }
    return true;
}

typedef struct use_counts {
    uint32_t *made;   /* by storage: how often it was made */
    uint32_t *at_use; /* by place in `in`: how often up to the first run of that op */
} use_counts;

static remat_status count_uses(remat_ctx *ctx, const rm_normal *nm, const rm_codes *codes,
                               use_counts *c)
{
    uint8_t *has_run; /* by op */
    TRY(RM_SCRATCH(ctx, has_run, nm->n_ops));
    TRY(RM_SCRATCH(ctx, c->made, nm->n_stores));
    TRY(RM_SCRATCH(ctx, c->at_use, nm->in_begin[nm->n_ops]));
    for (size_t i = 0; i < codes->n; i++) {
        const rm_code op = codes->items[i];
        if (rm_is_fetch(nm, op)) continue;
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1] && !has_run[op]; k++)
            c->at_use[k] = c->made[nm->in[k]];
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++) c->made[nm->out[k]]++;
        has_run[op] = 1;
    }
    return REMAT_OK;
}

/* How often the storage had been made when its reader ran first. */
static uint32_t made_at(const rm_normal *nm, const use_counts *c, uint32_t store, uint32_t reader)
{
    uint32_t n = c->made[store];
    for (uint32_t k = nm->in_begin[reader]; k < nm->in_begin[reader + 1]; k++)
        if (nm->in[k] == store) n = c->at_use[k];
    return n;
}

/* A gap lies between two uses in the graph's order. It is kept if the maker does not run between
 * the first runs of the two in `codes`. For an output the end is a use. */
static remat_status gaps_kept(remat_ctx *ctx, const rm_normal *nm, const rm_codes *codes,
                              rm_bits *out)
{
    use_counts c;
    TRY(rm_bits_new(ctx, out, nm->n_ops, nm->n_stores));
    TRY(count_uses(ctx, nm, codes, &c));
    for (uint32_t s = 0; s < nm->n_stores; s++) {
        uint32_t from = nm->producer[s], seen = 1;
        for (uint32_t j = nm->reader_begin[s]; j <= nm->reader_begin[s + 1]; j++) {
            const bool is_end = j == nm->reader_begin[s + 1];
            if (is_end && !nm->is_output[s]) break;
            const uint32_t to = is_end ? nm->n_ops - 1 : nm->readers[j];
            const uint32_t now = is_end ? c.made[s] : made_at(nm, &c, s, to);
            for (uint32_t t = from + 1; t <= to && now == seen; t++) rm_bit_set(out, t, s);
            from = to;
            seen = now;
        }
    }
    return REMAT_OK;
}

static remat_status offer_in_turns(const rm_problem *p, const rm_normal *nm, const rm_codes *codes,
                                   rm_codes *in_turns, rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    rm_bits retained;
    if (codes->n == 0) return REMAT_OK;
    if (is_in_order(nm, codes)) TRY(rm_retained_of(ctx, nm, codes->items, codes->n, &retained));
    else TRY(gaps_kept(ctx, nm, codes, &retained));
    TRY(rm_optimal_r(ctx, nm, &retained, in_turns));
    return rm_offer_codes(p, nm, in_turns, best);
}

remat_status rm_offer_in_turns(const rm_problem *p, const rm_normal *nm, const rm_codes *codes,
                               rm_incumbent *best)
{
    const rm_mark mark = rm_scratch_mark(p->ctx);
    rm_codes in_turns = {0};
    const remat_status status = offer_in_turns(p, nm, codes, &in_turns, best);
    RM_VEC_FREE(&p->ctx->heap, in_turns);
    rm_scratch_release(p->ctx, mark);
    return status;
}

/* Offers roundings of the bound's program (plan/bound/rounding.h), without rules and with them. */
static remat_status round_flow(const rm_problem *p, const rm_normal *nm, rm_codes *codes,
                               rm_incumbent *best)
{
    if (p->budget_bytes < 0) return REMAT_OK;
    for (int i = 0; i < 2 * RM_ROUNDING_BUDGETS; i++) {
        const unsigned rules = i < RM_ROUNDING_BUDGETS ? 0 : RM_BOUND_RULES;
        /* Without rules it goes on whatever the limits say, so that there is a plan. */
        if (rules && rm_is_over(p->ctx)) break;
        const int64_t budget_bytes = rm_rounding_budget(p->budget_bytes, i % RM_ROUNDING_BUDGETS);
        TRY(rm_round_order_bound(
            p->ctx, nm, &(rm_rounding_options){.budget_bytes = budget_bytes, .rules = rules},
            codes));
        TRY(rm_offer_in_turns(p, nm, codes, best));
    }
    return REMAT_OK;
}

/* The same graph, whose ops cannot run first in any other order. Each op reads 0 bytes that the one
 * before it makes. Op indices are the same. */
static remat_status in_order(remat_ctx *ctx, const rm_normal *nm, rm_normal *out)
{
    const uint32_t n = nm->n_ops, n_stores = nm->n_stores + n;
    *out = *nm;
    out->n_stores = n_stores;
    TRY(RM_SCRATCH(ctx, out->in_begin, n + 1));
    TRY(RM_SCRATCH(ctx, out->out_begin, n + 1));
    TRY(RM_SCRATCH(ctx, out->in, nm->in_begin[n] + n));
    TRY(RM_SCRATCH(ctx, out->may_take, nm->in_begin[n] + n));
    TRY(RM_SCRATCH(ctx, out->out, nm->out_begin[n] + n));
    TRY(RM_SCRATCH(ctx, out->bytes, n_stores));
    TRY(RM_SCRATCH(ctx, out->is_output, n_stores));
    TRY(RM_SCRATCH(ctx, out->value, n_stores));
    TRY(RM_SCRATCH(ctx, out->base, n_stores));
    for (uint32_t s = 0; s < nm->n_stores; s++) {
        out->bytes[s] = nm->bytes[s];
        out->is_output[s] = nm->is_output[s];
        out->value[s] = nm->value[s];
        out->base[s] = nm->base[s];
    }
    for (uint32_t op = 0; op < n; op++) {
        uint32_t n_in = out->in_begin[op], n_out = out->out_begin[op];
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++) {
            out->may_take[n_in] = nm->may_take[k];
            out->in[n_in++] = nm->in[k];
        }
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
            out->out[n_out++] = nm->out[k];
        if (op > 0) out->in[n_in++] = nm->n_stores + op - 1;
        out->out[n_out++] = nm->n_stores + op;
        out->base[nm->n_stores + op] = REMAT_NONE;
        out->in_begin[op + 1] = n_in;
        out->out_begin[op + 1] = n_out;
    }
    return rm_normal_index(ctx, out);
}

static remat_status anneal_in_order(const rm_problem *p, const rm_normal *nm, const rm_codes *seed,
                                    rm_codes *found)
{
    rm_normal ordered;
    TRY(in_order(p->ctx, nm, &ordered));
    return rm_anneal(p, &ordered, seed, found);
}

remat_status rm_anneal_in_order(const rm_problem *p, const rm_normal *nm, const rm_codes *seed,
                                bool in_turns, rm_incumbent *best)
{
    const rm_mark mark = rm_scratch_mark(p->ctx);
    rm_codes found = {0};
    remat_status status = anneal_in_order(p, nm, seed, &found);
    if (status == REMAT_OK) status = rm_offer_in_turns(p, nm, &found, best);
    if (status == REMAT_OK && found.n && !in_turns && !rm_fits(p, best->peak_bytes))
        status = rm_offer_codes(p, nm, &found, best);
    RM_VEC_FREE(&p->ctx->heap, found);
    rm_scratch_release(p->ctx, mark);
    return status;
}

/* Searches from the best plan, with so many operations or a quarter of what is left. */
static remat_status anneal_best(const rm_problem *p, const rm_normal *nm, int64_t most_work,
                                rm_codes *codes, rm_incumbent *best)
{
    if (p->budget_bytes < 0 || rm_is_over(p->ctx)) return REMAT_OK;
    TRY(rm_codes_of_steps(p->ctx, nm, &best->steps, codes));
    rm_limit_push(p->ctx, 0.25, most_work);
    const remat_status status = rm_anneal_in_order(p, nm, codes, true, best);
    rm_limit_pop(p->ctx);
    return status;
}

remat_status rm_checkmate_seed(const rm_problem *p, const rm_normal *nm, rm_incumbent *best)
{
    rm_codes codes = {0};
    const rm_mark mark = rm_scratch_mark(p->ctx);
    const double by_size = (double)WORK_A_PAIR * nm->n_ops * nm->n_ops;
    const int64_t work = by_size < MOST_WORK ? (int64_t)by_size : MOST_WORK;
    remat_status status = round_flow(p, nm, &codes, best);
    if (status == REMAT_OK) status = anneal_best(p, nm, work, &codes, best);
    /* Longer where nothing fits yet. */
    if (status == REMAT_OK && !rm_fits(p, best->peak_bytes))
        status = anneal_best(p, nm, 8 * work, &codes, best);
    rm_scratch_release(p->ctx, mark);
    RM_VEC_FREE(&p->ctx->heap, codes);
    return status;
}

static remat_status run_with(const rm_problem *p, const rm_backend *backend, rm_incumbent *best,
                             rm_checkmate_plan *plan, void *user)
{
    remat_ctx *ctx = p->ctx;
    rm_need need;
    rm_normal nm;
    rm_problem at = *p;
    /* Without a solver this call fails and says why. */
    if (!*backend->version) return backend->solve(backend, ctx, NULL, NULL, NULL);
    TRY(rm_need_find(ctx, p->graph, ctx->options.offload, &need));
    TRY(rm_keep_all.run(p, best));
    TRY(rm_normal_of(ctx, p->graph, &nm));
    if (p->budget_bytes == REMAT_BUDGET_MIN) {
        /* The lowest peak that seeds find becomes the budget. */
        TRY(rm_checkmate_seed(p, &nm, best));
        at.budget_bytes = best->peak_bytes;
    }
    const bool is_cheapest = rm_fits(&at, best->peak_bytes) && best->cost == p->graph->total_cost;
    if (is_cheapest || at.budget_bytes < need.bytes) return REMAT_OK;
    return plan(user, &at, &nm, backend, need.bytes);
}

remat_status rm_checkmate_run(const rm_problem *p, rm_incumbent *best, rm_checkmate_plan *plan,
                              void *user)
{
    rm_backend backend;
    TRY(rm_backend_open(p->ctx, &backend));
    const remat_status status = run_with(p, &backend, best, plan, user);
    rm_backend_close(p->ctx, &backend);
    return status;
}
