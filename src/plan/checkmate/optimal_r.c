/* optimal_r.c: the least recomputation for a given choice of what is retained, turn by turn
 * (Checkmate, 5.1.1).
 *
 * It goes from the last turn to the first. `wanted` holds the storages that later turns read out of
 * memory. A turn runs its own op. From there down to op 0 it runs every op that makes something
 * wanted which is not retained into this turn. What such an op reads is wanted too, and what it
 * makes no longer is. What is still wanted at the turn's beginning is retained, so it is wanted of
 * the turn before. By induction each turn runs the fewest ops that any choice below `retained`
 * allows.
 *
 * A token is no longer good once the op of its base runs. Then its op runs too. That is found by
 * going over the row again.
 *
 * Cost: O(edges) a turn, times the number of tokens that lose their base, which is nearly always
 * none. */
#include "plan/checkmate/optimal_r.h"

#include <assert.h>
#include <string.h>

typedef struct backing {
    const rm_normal *nm;
    const rm_bits *retained;
    rm_bits runs;           /* by turn, by op */
    uint8_t *wanted;        /* by storage: by what comes later */
    uint8_t *wanted_at_end; /* by storage: behind the turn at hand */
    uint8_t *stale;         /* by storage: a token whose base is made again in this turn */
} backing;

static bool is_there(const backing *x, uint32_t turn, uint32_t store)
{
    const uint32_t maker = x->nm->producer[store];
    if (maker >= turn || x->stale[store]) return false;
    return x->nm->pinned[maker] || rm_bit(x->retained, turn, store);
}

static bool has_to_run(const backing *x, uint32_t turn, uint32_t op)
{
    if (op == turn) return true;
    for (uint32_t k = x->nm->out_begin[op]; k < x->nm->out_begin[op + 1]; k++)
        if (x->wanted[x->nm->out[k]] && !is_there(x, turn, x->nm->out[k])) return true;
    return false;
}

/* A new instance of `base` makes its wanted tokens stale. True: there was one. */
static bool make_tokens_stale(backing *x, uint32_t base)
{
    const rm_normal *nm = x->nm;
    bool any = false;
    for (uint32_t j = nm->token_begin[base]; j < nm->token_begin[base + 1]; j++) {
        const uint32_t token = nm->tokens[j];
        if (!x->wanted[token] || nm->pinned[nm->producer[token]]) continue;
        x->stale[token] = 1;
        any = true;
    }
    return any;
}

/* True: a wanted token that was taken from memory has lost its base. */
static bool run(backing *x, uint32_t turn, uint32_t op)
{
    const rm_normal *nm = x->nm;
    bool lost = false;
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++) x->wanted[nm->out[k]] = 0;
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
        lost |= make_tokens_stale(x, nm->out[k]);
    for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++) x->wanted[nm->in[k]] = 1;
    rm_bit_set(&x->runs, turn, op);
    return lost;
}

/* False: a token went stale, and the row has to be filled again. */
static bool fill_row(backing *x, uint32_t turn)
{
    bool lost = false;
    memcpy(x->wanted, x->wanted_at_end, x->nm->n_stores);
    rm_bits_empty_row(&x->runs, turn);
    for (uint32_t op = turn + 1; op-- > 0;)
        if (has_to_run(x, turn, op)) lost |= run(x, turn, op);
    return !lost;
}

static remat_status fill(remat_ctx *ctx, backing *x, bool *in_time)
{
    const rm_normal *nm = x->nm;
    *in_time = true;
    TRY(rm_bits_new(ctx, &x->runs, nm->n_ops, nm->n_ops));
    TRY(RM_SCRATCH(ctx, x->wanted, nm->n_stores));
    TRY(RM_SCRATCH(ctx, x->wanted_at_end, nm->n_stores));
    TRY(RM_SCRATCH(ctx, x->stale, nm->n_stores));
    if (nm->n_stores) memcpy(x->wanted, nm->is_output, nm->n_stores);
    for (uint32_t turn = nm->n_ops; turn-- > 0;) {
        memcpy(x->wanted_at_end, x->wanted, nm->n_stores);
        memset(x->stale, 0, nm->n_stores);
        bool is_done = false;
        while (!is_done) {
            rm_spend(ctx, (nm->n_stores + nm->out_begin[turn + 1]) / RM_ENTRIES_A_WORK);
            is_done = fill_row(x, turn);
        }
        *in_time = !rm_is_late_turn(ctx, turn);
        if (!*in_time) break;
    }
    return REMAT_OK;
}

static remat_status emit(remat_ctx *ctx, const backing *x, rm_codes *out)
{
    for (uint32_t turn = 0; turn < x->nm->n_ops; turn++)
        for (uint32_t op = 0; op <= turn; op++)
            if (rm_bit(&x->runs, turn, op)) TRY(RM_PUSH(ctx, *out, op));
    return REMAT_OK;
}

remat_status rm_optimal_r(remat_ctx *ctx, const rm_normal *nm, const rm_bits *retained,
                          rm_codes *out)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    backing x = {.nm = nm, .retained = retained};
    out->n = 0;
    bool in_time;
    remat_status status = fill(ctx, &x, &in_time);
    if (status == REMAT_OK && in_time) status = emit(ctx, &x, out);
    rm_scratch_release(ctx, mark);
    return status;
}

/* ---- and back ---- */

static remat_status find_retained(remat_ctx *ctx, const rm_normal *nm, const rm_code *codes,
                                  size_t n, rm_bits *retained)
{
    uint32_t *turns;      /* by step */
    uint32_t *read_until; /* by storage: one more than the last turn that reads it out of memory */
    uint32_t turn = 0;
    TRY(RM_SCRATCH(ctx, turns, n));
    TRY(RM_SCRATCH(ctx, read_until, nm->n_stores));
    for (size_t i = 0; i < n; i++) {
        assert(codes[i] <= turn); /* first runs are in the graph's order */
        turns[i] = turn;
        if (codes[i] == turn) turn++;
    }
    assert(turn == nm->n_ops);
    for (uint32_t s = 0; s < nm->n_stores; s++) read_until[s] = nm->is_output[s] ? nm->n_ops : 0;
    for (size_t i = n; i-- > 0;) {
        const rm_code op = codes[i];
        /* What runs behind the last turn is part of it. */
        const uint32_t at = turns[i] < nm->n_ops ? turns[i] : nm->n_ops - 1;
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++) {
            for (uint32_t t = at + 1; t < read_until[nm->out[k]]; t++)
                rm_bit_set(retained, t, nm->out[k]);
            read_until[nm->out[k]] = 0;
        }
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
            if (read_until[nm->in[k]] <= at) read_until[nm->in[k]] = at + 1;
    }
    return REMAT_OK;
}

remat_status rm_retained_of(remat_ctx *ctx, const rm_normal *nm, const rm_code *codes, size_t n,
                            rm_bits *retained)
{
    TRY(rm_bits_new(ctx, retained, nm->n_ops, nm->n_stores));
    const rm_mark mark = rm_scratch_mark(ctx);
    const remat_status status = find_retained(ctx, nm, codes, n, retained);
    rm_scratch_release(ctx, mark);
    return status;
}
