/* polish.c: the last word on a sequence.
 *
 * Problem: remove the steps that can go without raising the peak above the limit. Slide re-runs
 * towards their readers: that frees memory in between, and lets more steps go.
 *
 * Method: passes from the last step to the first, until one changes nothing, but at most PASSES. A
 * pass removes each step whose readers find another instance. Then each step whose op runs
 * elsewhere too slides to just before the first step that reads it. Both happen only where the peak
 * allows it. Deterministic.
 *
 * Invariant: the sequence is valid, no dearer than before, and its peak is within the limit, or not
 * above what it was.
 *
 * Cost: O(passes * steps * slots / 64), and within the limits: see most_work. */
#include "plan/search/polish.h"

#include <assert.h>

enum {
    PASSES = 8,
    SPREAD = 4,      /* slots a step */
    LOOK = 256,      /* slots between looks at the clock */
    AGAIN = 4,       /* this part of a limit of work may be used once more */
    WORK_A_STEP = 64 /* operations that are always allowed, for each step */
};

typedef struct polisher {
    remat_ctx *ctx;
    rm_seq *q;
    int64_t peak_limit;
    int64_t end; /* of the sequence's count of work */
} polisher;

/* Polishing ends a round of a search, which may have used up its limit of work. So it may take what
 * is left, or else a part of the limit again, and always a little for each step. */
static int64_t most_work(const remat_ctx *ctx, size_t n_steps)
{
    const int64_t left = rm_work_left(ctx), always = WORK_A_STEP * (int64_t)n_steps;
    if (left == RM_NO_LIMIT) return RM_NO_LIMIT;
    const rm_limit *l = &ctx->limits.stack[ctx->limits.depth - 1];
    int64_t most = (l->work_end - l->work_begin) / AGAIN;
    if (most < left) most = left;
    return most < always ? always : most;
}

static bool is_over(const polisher *p, uint32_t slot)
{
    return p->q->work >= p->end || (slot % LOOK == 0 && rm_is_late(p->ctx));
}

/* Keeps the move at hand if its peak is within the limit, else takes it back. */
static bool keep_if_fits(const polisher *p)
{
    if (rm_seq_peak(p->q) <= p->peak_limit) {
        rm_seq_keep(p->q);
        return true;
    }
    rm_seq_undo(p->q);
    return false;
}

/* The last empty slot before the first step that reads what this one makes, or RM_EMPTY. */
static uint32_t place_before_reader(const rm_seq *q, uint32_t slot)
{
    uint32_t to = rm_seq_next_read(q, slot);
    while (to > slot + 1) {
        to--;
        if (q->at[to] == RM_EMPTY) return to;
    }
    return RM_EMPTY;
}

/* Says whether any step went. */
static bool remove_all(const polisher *p)
{
    rm_seq *q = p->q;
    bool changed = false;
    for (uint32_t slot = q->n_slots; slot-- > 0 && !is_over(p, slot);) {
        if (q->at[slot] == RM_EMPTY) continue;
        if (rm_seq_remove(q, slot)) changed |= keep_if_fits(p);
    }
    return changed;
}

static void slide_all(const polisher *p)
{
    rm_seq *q = p->q;
    for (uint32_t slot = q->n_slots; slot-- > 0 && !is_over(p, slot);) {
        const rm_code code = q->at[slot];
        if (code == RM_EMPTY || (!rm_is_fetch(q->nm, code) && q->runs[code] == 1)) continue;
        const uint32_t to = place_before_reader(q, slot);
        if (to != RM_EMPTY && rm_seq_slide(q, slot, to)) keep_if_fits(p);
    }
}

void rm_polish_on(remat_ctx *ctx, rm_seq *q, int64_t limit, rm_codes *codes)
{
    const int64_t begin = q->work, most = most_work(ctx, codes->n);
    const size_t n_before = codes->n;
    if (codes->n == 0 || !rm_seq_load(q, codes->items, codes->n)) return;
    const polisher p = {.ctx = ctx,
                        .q = q,
                        .peak_limit = rm_seq_peak_kept(q) > limit ? rm_seq_peak_kept(q) : limit,
                        .end = most == RM_NO_LIMIT ? INT64_MAX : begin + most};
    bool changed = true;
    for (int i = 0; i < PASSES && changed; i++) {
        changed = remove_all(&p) || i == 0;
        if (changed) slide_all(&p);
    }
    remove_all(&p);
    codes->n = rm_seq_codes(q, codes->items);
    assert(codes->n <= n_before);
    rm_spend(ctx, q->work - begin);
}

remat_status rm_polish(remat_ctx *ctx, const rm_normal *nm, const int64_t *transfer, int64_t limit,
                       rm_codes *codes)
{
    rm_seq q;
    TRY(rm_seq_new(ctx, nm, (uint32_t)(SPREAD * codes->n) + 1, &q));
    q.transfer = transfer;
    rm_polish_on(ctx, &q, limit, codes);
    rm_seq_free(&q);
    return REMAT_OK;
}
