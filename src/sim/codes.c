/* codes.c: lists of codes: keep-all, those of a schedule, whether a list is valid, and its order of
 * first runs. Each function is one walk: O(steps + reads). */
#include "sim/codes.h"

#include <assert.h>

remat_status rm_codes_keep_all(remat_ctx *ctx, const rm_normal *nm, rm_codes *out)
{
    out->n = 0;
    for (uint32_t op = 0; op < nm->n_ops; op++) TRY(RM_PUSH(ctx, *out, op));
    return REMAT_OK;
}

static remat_status codes_of_steps(remat_ctx *ctx, const rm_normal *nm, const rm_schedule *steps,
                                   rm_codes *out)
{
    uint32_t *run, *fetch; /* by op, by value: its code, or RM_EMPTY */
    TRY(RM_SCRATCH(ctx, run, nm->g->n_ops));
    TRY(RM_SCRATCH(ctx, fetch, nm->g->n_values));
    for (uint32_t op = 0; op < nm->g->n_ops; op++) run[op] = RM_EMPTY;
    for (uint32_t op = 0; op < nm->n_ops; op++) run[nm->op[op]] = op;
    for (uint32_t s = 0; s < nm->n_stores; s++) fetch[nm->value[s]] = nm->n_ops + s;
    out->n = 0;
    for (size_t i = 0; i < steps->n; i++) {
        const remat_step step = steps->items[i];
        if (step.kind == REMAT_OFFLOAD || (step.kind == REMAT_RUN && run[step.index] == RM_EMPTY))
            continue;
        TRY(RM_PUSH(ctx, *out, step.kind == REMAT_RUN ? run[step.index] : fetch[step.index]));
    }
    return REMAT_OK;
}

remat_status rm_codes_of_steps(remat_ctx *ctx, const rm_normal *nm, const rm_schedule *steps,
                               rm_codes *out)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    const remat_status status = codes_of_steps(ctx, nm, steps, out);
    rm_scratch_release(ctx, mark);
    return status;
}

/* Is the storage a token, and was its base made again since? made: by storage, 1 + the step that
 * made its newest instance; 0: none. */
static bool is_stale(const rm_normal *nm, const size_t *made, uint32_t store)
{
    return nm->base[store] != REMAT_NONE && made[store] < made[nm->base[store]];
}

/* What is wrong with the next step, a run of `op`; NULL: nothing. */
static const char *run_fault(const rm_normal *nm, const size_t *made, const uint32_t *runs,
                             uint32_t last_pinned, uint32_t op)
{
    for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++) {
        if (!made[nm->in[k]]) return "runs before its input is there";
        if (is_stale(nm, made, nm->in[k])) return "reads a view of what has been made again since";
    }
    if (nm->pinned[op] && (runs[op] || op < last_pinned))
        return "is pinned and runs twice, or out of order";
    return NULL;
}

static remat_status find_fault(remat_ctx *ctx, const rm_normal *nm, const rm_codes *codes,
                               uint32_t *op, const char **fault)
{
    size_t *made;
    uint32_t *runs, last_pinned = 0;
    *fault = NULL;
    TRY(RM_SCRATCH(ctx, runs, nm->n_ops));
    TRY(RM_SCRATCH(ctx, made, nm->n_stores));
    for (size_t i = 0; i < codes->n && !*fault; i++) {
        *op = codes->items[i];
        *fault = run_fault(nm, made, runs, last_pinned, *op);
        if (nm->pinned[*op]) last_pinned = *op;
        runs[*op]++;
        for (uint32_t k = nm->out_begin[*op]; k < nm->out_begin[*op + 1]; k++)
            made[nm->out[k]] = i + 1;
    }
    for (uint32_t i = 0; i < nm->n_ops && !*fault; i++) {
        if (runs[i]) continue;
        *op = i;
        *fault = "never runs";
    }
    for (uint32_t s = 0; s < nm->n_stores && !*fault; s++) {
        if (!nm->is_output[s] || !is_stale(nm, made, s)) continue;
        *op = nm->producer[s];
        *fault = "is a view of what has been made again since";
    }
    return REMAT_OK;
}

remat_status rm_codes_fault(remat_ctx *ctx, const rm_normal *nm, const rm_codes *codes,
                            uint32_t *op, const char **fault)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    const remat_status status = find_fault(ctx, nm, codes, op, fault);
    rm_scratch_release(ctx, mark);
    return status;
}

remat_status rm_codes_first_runs(remat_ctx *ctx, const rm_normal *nm, const rm_codes *codes,
                                 uint32_t **out)
{
    uint8_t *ran;
    uint32_t n = 0;
    TRY(RM_SCRATCH(ctx, *out, nm->n_ops));
    const rm_mark mark = rm_scratch_mark(ctx);
    TRY(RM_SCRATCH(ctx, ran, nm->n_ops));
    for (size_t i = 0; i < codes->n; i++) {
        if (rm_is_fetch(nm, codes->items[i]) || ran[codes->items[i]]) continue;
        ran[codes->items[i]] = 1;
        (*out)[n++] = codes->items[i];
    }
    assert(n == nm->n_ops);
    rm_scratch_release(ctx, mark);
    return REMAT_OK;
}
