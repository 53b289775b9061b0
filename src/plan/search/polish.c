/* polish.c: removes the steps that can go without raising the peak above the limit, and slides
 * re-runs towards their readers, which frees memory in between and lets more steps go.
 *
 * Passes from the last step to the first, until one changes nothing (at most PASSES): a step is
 * removed if its readers find another instance; otherwise, if its op runs elsewhere too, it slides
 * to just before the first step that reads it, where the peak allows it. Deterministic; O(passes *
 * steps * slots / 64). */
#include "plan/search/polish.h"

enum { PASSES = 8, SPREAD = 4 };

/* A work limit is for searches, and this ends a round of one. */
static bool is_late(const remat_ctx *ctx, uint32_t slot)
{
    return slot % 256 == 0 && rm_is_late(ctx);
}

static bool fits(rm_seq *q, int64_t limit)
{
    if (rm_seq_peak(q) <= limit) {
        rm_seq_keep(q);
        return true;
    }
    rm_seq_undo(q);
    return false;
}

/* The last empty slot before the first step that reads what this one makes, or RM_EMPTY. */
static uint32_t place_before_reader(const rm_seq *q, uint32_t slot)
{
    uint32_t to = rm_seq_next_read(q, slot);
    while (to > slot + 1)
        if (q->at[--to] == RM_EMPTY) return to;
    return RM_EMPTY;
}

static bool pass(remat_ctx *ctx, rm_seq *q, int64_t limit)
{
    bool changed = false;
    for (uint32_t slot = q->n_slots; slot-- > 0 && !is_late(ctx, slot);) {
        if (q->at[slot] == RM_EMPTY) continue;
        if (rm_seq_remove(q, slot) && fits(q, limit)) {
            changed = true;
            continue;
        }
        rm_seq_undo(q);
    }
    return changed;
}

static void slide_all(remat_ctx *ctx, rm_seq *q, int64_t limit)
{
    for (uint32_t slot = q->n_slots; slot-- > 0 && !is_late(ctx, slot);) {
        const rm_code code = q->at[slot];
        if (code == RM_EMPTY || (!rm_is_fetch(q->nm, code) && q->runs[code] == 1)) continue;
        const uint32_t to = place_before_reader(q, slot);
        if (to != RM_EMPTY && rm_seq_slide(q, slot, to)) fits(q, limit);
        else rm_seq_undo(q);
    }
}

void rm_polish_on(remat_ctx *ctx, rm_seq *q, int64_t limit, rm_codes *codes)
{
    const int64_t work = q->work;
    if (codes->n == 0 || !rm_seq_load(q, codes->items, codes->n)) return;
    if (rm_seq_peak_kept(q) > limit) limit = rm_seq_peak_kept(q);
    for (int i = 0; i < PASSES && (pass(ctx, q, limit) || i == 0); i++) slide_all(ctx, q, limit);
    pass(ctx, q, limit);
    codes->n = rm_seq_codes(q, codes->items); /* never longer than it was */
    rm_spend(ctx, q->work - work);
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
