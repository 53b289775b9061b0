/* flow_seed.c: rounding of the bound's linear program (docs/bound.md) into a sequence.
 *
 * Walk the ops in order. Before an op runs, each input that is not in memory is made again, and first what that needs, to any
 * depth; such values are gone after the op. What the op itself touches stays in memory up to its next use if the program
 * keeps at least half of that gap. Cost: the program, then O(steps + edges of the steps). */
#include "plan/flow_seed.h"

#include "graph/demand.h"

typedef struct rounding {
    remat_ctx *ctx;
    const rm_normal *nm;
    uint8_t *there;      /* by storage: in memory now */
    uint8_t *held;       /* by storage: and after this op */
    uint8_t *lost;       /* by storage: the gap that begins at this op is lost */
    uint32_t *used_last; /* by storage: the last op that touches it; n_ops: an output */
    rm_codes passing;    /* storages that are there for this op only */
    rm_demand demand;
    size_t longest;
    rm_codes *out;
} rounding;

static remat_status come(rounding *x, uint32_t store)
{
    if (x->there[store]) return REMAT_OK;
    x->there[store] = 1;
    return RM_PUSH(x->ctx, x->passing, store);
}

static bool is_too_long(const rounding *x) { return x->out->n > x->longest; }

static uint32_t missing_maker(void *user, uint32_t store)
{
    const rounding *x = user;
    return x->there[store] || is_too_long(x) ? REMAT_NONE : x->nm->producer[store];
}

static remat_status run(void *user, uint32_t op)
{
    rounding *x = user;
    for (uint32_t k = x->nm->out_begin[op]; k < x->nm->out_begin[op + 1]; k++) TRY(come(x, x->nm->out[k]));
    return RM_PUSH(x->ctx, *x->out, op);
}

static void keep_if_held(rounding *x, uint32_t store, uint32_t op)
{
    x->there[store] = x->held[store] = !x->lost[store] && x->used_last[store] > op;
    x->lost[store] = 0;
}

static void end_op(rounding *x, uint32_t op)
{
    const rm_normal *nm = x->nm;
    for (size_t i = 0; i < x->passing.n; i++) x->there[x->passing.items[i]] = x->held[x->passing.items[i]];
    x->passing.n = 0;
    for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++) keep_if_held(x, nm->in[k], op);
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++) keep_if_held(x, nm->out[k], op);
}

static remat_status find_last_uses(rounding *x)
{
    const rm_normal *nm = x->nm;
    TRY(RM_SCRATCH(x->ctx, x->used_last, nm->n_stores));
    for (uint32_t op = 0; op < nm->n_ops; op++)
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++) x->used_last[nm->in[k]] = op;
    for (uint32_t s = 0; s < nm->n_stores; s++)
        if (nm->is_output[s] || nm->pinned[nm->producer[s]]) x->used_last[s] = nm->n_ops; /* pinned: it cannot be made again */
    return REMAT_OK;
}

static remat_status round_gaps(rounding *x, const rm_bound *b)
{
    const rm_normal *nm = x->nm;
    uint32_t *begin, *by_op; /* the lost gaps by the op that they begin at */
    TRY(RM_SCRATCH(x->ctx, begin, nm->n_ops + 2));
    TRY(RM_SCRATCH(x->ctx, by_op, b->n_gaps));
    for (uint32_t i = 0; i < b->n_gaps; i++) begin[b->gaps[i].from + 2] += 2 * b->kept[i] < nm->bytes[b->gaps[i].store];
    for (uint32_t op = 0; op < nm->n_ops; op++) begin[op + 2] += begin[op + 1];
    for (uint32_t i = 0; i < b->n_gaps; i++)
        if (2 * b->kept[i] < nm->bytes[b->gaps[i].store]) by_op[begin[b->gaps[i].from + 1]++] = b->gaps[i].store;
    for (uint32_t op = 0; op < nm->n_ops && !is_too_long(x); op++) {
        TRY(rm_demand_run(&x->demand, op));
        for (uint32_t k = begin[op]; k < begin[op + 1]; k++) x->lost[by_op[k]] = 1;
        end_op(x, op);
    }
    for (uint32_t s = 0; s < nm->n_stores && !is_too_long(x); s++)
        if (nm->is_output[s] && !x->there[s]) TRY(rm_demand_run(&x->demand, nm->producer[s]));
    return REMAT_OK;
}

static remat_status seed(rounding *x, int64_t budget_bytes)
{
    rm_bound b;
    TRY(rm_bound_solve(x->ctx, x->nm, budget_bytes, NULL, &(rm_bound_options){0}, &b));
    if (!b.feasible) return REMAT_OK;
    TRY(RM_SCRATCH(x->ctx, x->there, x->nm->n_stores));
    TRY(RM_SCRATCH(x->ctx, x->held, x->nm->n_stores));
    TRY(RM_SCRATCH(x->ctx, x->lost, x->nm->n_stores));
    x->demand = (rm_demand){.in_begin = x->nm->in_begin, .in = x->nm->in, .ask = missing_maker, .run = run, .user = x};
    TRY(rm_demand_begin(x->ctx, &x->demand, x->nm->n_ops));
    TRY(find_last_uses(x));
    TRY(round_gaps(x, &b));
    if (is_too_long(x)) x->out->n = 0;
    return REMAT_OK;
}

remat_status rm_flow_seed(remat_ctx *ctx, const rm_normal *nm, int64_t budget_bytes, size_t longest, rm_codes *out)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    rounding x = {.ctx = ctx, .nm = nm, .longest = longest, .out = out};
    out->n = 0;
    const remat_status status = seed(&x, budget_bytes);
    RM_VEC_FREE(&ctx->heap, x.passing);
    rm_scratch_release(ctx, mark);
    return status;
}
