/* rounding.c: rounding of the bound's linear program (docs/bound.md) into a sequence.
 *
 * Method: walk over the ops in their order of first runs. Before an op runs, each input that is not
 * in memory is made again, and before that what it needs, to any depth. What was made again is gone
 * after the op. What the op itself touches stays in memory up to its next use if the program keeps
 * enough of that gap, half of it unless the options say otherwise, or if it takes no memory.
 *
 * With the bound's rules the program knows what it costs to make a value again together with what
 * that needs. Its rounding is then often within a hundredth of the best plan. Sometimes the
 * rounding without rules is better.
 *
 * Cost: the program, then O(steps + edges of the steps). */
#include "plan/bound/rounding.h"

#include <assert.h>

#include "base/csr.h"
#include "graph/demand.h"
#include "sim/codes.h"

typedef struct rounding {
    remat_ctx *ctx;
    const rm_normal *nm;
    uint8_t *there;        /* by storage: in memory now */
    uint8_t *held;         /* by storage: in memory after this op, too */
    uint8_t *lost;         /* by storage: the gap that begins at this op is lost */
    const uint32_t *order; /* by position: op */
    uint32_t *used_last; /* by storage: the last position that touches it; n_ops: kept to the end */
    rm_codes passing;    /* storages that came for this op */
    rm_demand demand;
    rm_codes *out;
} rounding;

/* The storage is in memory from now on, unless it was. */
static remat_status come(rounding *x, uint32_t store)
{
    if (x->there[store]) return REMAT_OK;
    x->there[store] = 1;
    return RM_PUSH(x->ctx, x->passing, store);
}

static bool is_too_long(const rounding *x) { return x->out->n > 1000 + 8 * (size_t)x->nm->n_ops; }

/* The op that must run to bring the storage into memory, or REMAT_NONE. */
static uint32_t missing_maker(void *user, uint32_t store)
{
    const rounding *x = user;
    return x->there[store] || is_too_long(x) ? REMAT_NONE : x->nm->producer[store];
}

/* Its base is made again, which makes it stale. */
static void lose_token(rounding *x, uint32_t token)
{
    x->there[token] = 0;
    x->held[token] = 0;
}

static remat_status run(void *user, uint32_t op)
{
    rounding *x = user;
    const rm_normal *nm = x->nm;
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
        for (uint32_t t = nm->token_begin[nm->out[k]]; t < nm->token_begin[nm->out[k] + 1]; t++)
            lose_token(x, nm->tokens[t]);
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++) TRY(come(x, nm->out[k]));
    return RM_PUSH(x->ctx, *x->out, op);
}

static void keep_if_held(rounding *x, uint32_t store, uint32_t at)
{
    const bool stays = !x->lost[store] && x->used_last[store] > at;
    x->there[store] = stays;
    x->held[store] = stays;
    x->lost[store] = 0;
}

static void end_op(rounding *x, uint32_t at)
{
    const rm_normal *nm = x->nm;
    const uint32_t op = x->order[at];
    for (size_t i = 0; i < x->passing.n; i++)
        x->there[x->passing.items[i]] = x->held[x->passing.items[i]];
    x->passing.n = 0;
    for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
        keep_if_held(x, nm->in[k], at);
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
        keep_if_held(x, nm->out[k], at);
}

static remat_status find_last_uses(rounding *x)
{
    const rm_normal *nm = x->nm;
    TRY(RM_SCRATCH(x->ctx, x->used_last, nm->n_stores));
    for (uint32_t at = 0; at < nm->n_ops; at++)
        for (uint32_t k = nm->in_begin[x->order[at]]; k < nm->in_begin[x->order[at] + 1]; k++)
            x->used_last[nm->in[k]] = at;
    for (uint32_t s = 0; s < nm->n_stores; s++)
        if (rm_is_free(nm, s) || nm->is_output[s] || nm->pinned[nm->producer[s]])
            x->used_last[s] = nm->n_ops; /* a pinned op runs only once */
    return REMAT_OK;
}

static remat_status round_gaps(rounding *x, const rm_order_bound *b, unsigned percent)
{
    const rm_normal *nm = x->nm;
    uint32_t *from; /* by gap that is lost: the position that it begins at */
    rm_csr lost;    /* gaps by that position */
    TRY(RM_SCRATCH(x->ctx, from, b->n_gaps));
    for (uint32_t i = 0; i < b->n_gaps; i++) {
        const int64_t bytes = nm->bytes[b->gaps[i].store];
        const bool is_lost = (rm_uint128)b->kept[i] * 100 < (rm_uint128)bytes * percent;
        from[i] = is_lost ? b->gaps[i].from : REMAT_NONE;
    }
    TRY(rm_csr_by_key(x->ctx, nm->n_ops, b->n_gaps, from, &lost));
    for (uint32_t at = 0; at < nm->n_ops && !is_too_long(x); at++) {
        TRY(rm_demand_run(&x->demand, x->order[at]));
        for (uint32_t k = lost.begin[at]; k < lost.begin[at + 1]; k++)
            x->lost[b->gaps[lost.items[k]].store] = 1;
        end_op(x, at);
    }
    for (uint32_t s = 0; s < nm->n_stores && !is_too_long(x); s++)
        if (nm->is_output[s] && !x->there[s]) TRY(rm_demand_run(&x->demand, nm->producer[s]));
    return REMAT_OK;
}

static remat_status round_program(rounding *x, const rm_rounding_options *options)
{
    rm_order_bound b;
    TRY(rm_order_bound_find(x->ctx, x->nm, options->budget_bytes, options->order,
                            &(rm_order_bound_options){.rules = options->rules}, &b));
    if (!b.feasible) return REMAT_OK;
    x->order = b.order;
    TRY(RM_SCRATCH(x->ctx, x->there, x->nm->n_stores));
    TRY(RM_SCRATCH(x->ctx, x->held, x->nm->n_stores));
    TRY(RM_SCRATCH(x->ctx, x->lost, x->nm->n_stores));
    x->demand = (rm_demand){
        .in_begin = x->nm->in_begin, .in = x->nm->in, .ask = missing_maker, .run = run, .user = x};
    TRY(rm_demand_begin(x->ctx, &x->demand, x->nm->n_ops));
    TRY(find_last_uses(x));
    TRY(round_gaps(x, &b, options->percent ? options->percent : 50));
    uint32_t op;
    const char *fault; /* of a token: pinned, or stale since its base was made for another input */
    TRY(rm_codes_fault(x->ctx, x->nm, x->out, &op, &fault));
    if (fault || is_too_long(x)) x->out->n = 0;
    return REMAT_OK;
}

int64_t rm_rounding_budget(int64_t budget_bytes, int i)
{
    static const unsigned percents[RM_ROUNDING_BUDGETS] = {100, 97, 94, 90, 85, 80, 70, 60, 50, 40};
    assert(budget_bytes >= 0 && i >= 0 && i < RM_ROUNDING_BUDGETS);
    return (int64_t)((rm_uint128)budget_bytes * percents[i] / 100);
}

remat_status rm_round_order_bound(remat_ctx *ctx, const rm_normal *nm,
                                  const rm_rounding_options *options, rm_codes *out)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    rounding x = {.ctx = ctx, .nm = nm, .out = out};
    out->n = 0;
    const remat_status status = round_program(&x, options);
    RM_VEC_FREE(&ctx->heap, x.passing);
    rm_scratch_release(ctx, mark);
    return status;
}
