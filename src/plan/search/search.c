/* search.c: the state of a search and its best one.
 *
 * Problem: a descent meets a new best state every few moves, so noting one must cost nothing.
 *
 * Method: a row of slots holds an older state, and a journal the edits kept since. Noting the best
 * state marks a place in the journal. When the journal is full, the row takes in what leads to the
 * best state. If what is left is still long, the search is far from its best state. Then the
 * journal is given up, and the next best state is copied whole.
 *
 * Invariant: the row with the first n_to_best changes is the best state, if that is not saved. With
 * all changes it is the state at hand, unless the journal is lost.
 *
 * Cost: O(1) per edit, which is written once and applied once. */
#include "plan/search/search.h"

#include <assert.h>
#include <string.h>

/* The row becomes the best state. */
static void advance_row(rm_search *s)
{
    for (uint32_t i = 0; i < s->n_to_best; i++) s->row[s->journal[i].slot] = s->journal[i].code;
    s->n_journal -= s->n_to_best;
    memmove(s->journal, s->journal + s->n_to_best, s->n_journal * sizeof *s->journal);
    s->n_to_best = 0;
}

static void give_up_journal(rm_search *s)
{
    s->n_journal = s->n_to_best;
    s->lost = true;
}

/* The edits of the move at hand go into the journal. */
static void write_down(rm_search *s)
{
    const rm_seq *q = &s->q;
    if (s->n_journal + 2 * q->n_edits > s->room) {
        advance_row(s);
        if (s->n_journal + 2 * q->n_edits > s->room / 2) {
            give_up_journal(s);
            return;
        }
    }
    for (size_t i = 0; i < q->n_edits; i++) {
        const rm_edit *e = &q->edits[i];
        if (e->from != RM_EMPTY) s->journal[s->n_journal++] = (rm_change){e->from, RM_EMPTY};
        if (e->to != RM_EMPTY) s->journal[s->n_journal++] = (rm_change){e->to, e->code};
    }
    assert(s->n_journal <= s->room);
}

/* The state at hand is the best. */
static void note(rm_search *s, int64_t peak)
{
    s->best_peak = peak;
    s->best_cost = s->q.cost;
    s->unsaved = true;
    if (s->lost) {
        memcpy(s->row, s->q.at, s->q.n_slots * sizeof *s->row);
        s->n_journal = 0;
        s->lost = false;
    }
    s->n_to_best = s->n_journal;
}

remat_status rm_search_begin(remat_ctx *ctx, rm_search *s, const rm_normal *nm,
                             const int64_t *transfer, const rm_codes *start, uint32_t spread)
{
    const uint64_t steps = start->n > nm->n_ops ? start->n : nm->n_ops,
                   n_slots = spread * steps + 64;
    if (n_slots > INT32_MAX / 2) return REMAT_OK;
    TRY(RM_SCRATCH(ctx, s->best, n_slots));
    TRY(RM_SCRATCH(ctx, s->spare, n_slots));
    TRY(RM_SCRATCH(ctx, s->row, n_slots));
    TRY(RM_SCRATCH(ctx, s->journal, n_slots));
    s->room = (uint32_t)n_slots;
    TRY(rm_seq_new(ctx, nm, (uint32_t)n_slots, &s->q));
    s->q.transfer = transfer;
    if (ctx->options.host_bytes) s->q.host_limit = ctx->options.host_bytes;
    if (!rm_seq_load(&s->q, start->items, start->n)) {
        rm_seq_free(&s->q);
        return REMAT_OK;
    }
    s->lost = true;
    note(s, rm_seq_peak_kept(&s->q));
    return REMAT_OK;
}

void rm_search_end(rm_search *s) { rm_seq_free(&s->q); }

bool rm_search_is_better(const rm_search *s, int64_t peak, int64_t cost)
{
    const bool fits = peak <= s->floor_bytes, best_fits = s->best_peak <= s->floor_bytes;
    if (fits != best_fits) return fits;
    return fits ? cost < s->best_cost : peak < s->best_peak;
}

void rm_search_save(rm_search *s)
{
    if (!s->unsaved) return;
    advance_row(s);
    s->n_best = 0;
    for (uint32_t slot = 0; slot < s->q.n_slots; slot++)
        if (s->row[slot] != RM_EMPTY) s->best[s->n_best++] = s->row[slot];
    s->unsaved = false;
}

void rm_search_keep(rm_search *s, int64_t peak)
{
    if (!s->lost) write_down(s);
    rm_seq_keep(&s->q);
    assert(peak == rm_seq_peak_kept(&s->q));
    if (rm_search_is_better(s, peak, s->q.cost)) note(s, peak);
    RM_CHECK(s->q.n_slots <= 256, rm_search_check(s));
}

remat_status rm_search_best(remat_ctx *ctx, const rm_search *s, rm_codes *out)
{
    out->n = 0;
    TRY(RM_RESERVE(ctx, *out, s->n_best));
    if (s->n_best) memcpy(out->items, s->best, s->n_best * sizeof *s->best);
    out->n = s->n_best;
    return REMAT_OK;
}

void rm_search_load(rm_search *s, const rm_code *codes, size_t n)
{
    rm_search_save(s);
    if (!rm_seq_load(&s->q, codes, n)) return;
    give_up_journal(s);
    if (rm_search_is_better(s, rm_seq_peak_kept(&s->q), s->q.cost))
        note(s, rm_seq_peak_kept(&s->q));
}

void rm_search_respace(rm_search *s)
{
    assert(s->q.n_edits == 0);
    rm_search_save(s);
    const size_t n = rm_seq_codes(&s->q, s->spare);
    if (rm_seq_load(&s->q, s->spare, n)) give_up_journal(s);
    else s->q.crowded = false; /* no room to be had: it is as it was */
}

/* Row and journal lead to the best state, whose cost is known, and on to the one at hand. */
void rm_search_check(rm_search *s)
{
    const rm_seq *q = &s->q;
    assert(s->n_to_best <= s->n_journal && s->n_journal <= s->room);
    rm_seq_check(q);
    memcpy(s->spare, s->row, q->n_slots * sizeof *s->spare);
    for (uint32_t i = 0; i < s->n_to_best; i++) s->spare[s->journal[i].slot] = s->journal[i].code;
    if (s->unsaved && !q->transfer) {
        int64_t cost = 0;
        for (uint32_t slot = 0; slot < q->n_slots; slot++)
            if (s->spare[slot] != RM_EMPTY) cost += q->nm->cost[s->spare[slot]];
        assert(cost == s->best_cost);
    }
    for (uint32_t i = s->n_to_best; i < s->n_journal; i++)
        s->spare[s->journal[i].slot] = s->journal[i].code;
    assert(s->lost || memcmp(s->spare, q->at, q->n_slots * sizeof *s->spare) == 0);
}

uint32_t rm_search_empty_slot(rm_search *s, uint32_t first, uint32_t end)
{
    if (first >= end) return RM_EMPTY;
    for (int i = 0; i < 5; i++) {
        const uint32_t slot = first + rm_random_below(&s->random, end - first);
        if (s->q.at[slot] == RM_EMPTY) return slot;
    }
    return RM_EMPTY;
}

bool rm_search_slide(rm_search *s)
{
    const uint32_t from = rm_search_full_slot(s);
    s->q.work += (int64_t)rm_code_events(s->q.nm, s->q.at[from]);
    const uint32_t floor =
        rm_is_fetch(s->q.nm, s->q.at[from]) ? 0 : rm_seq_floor(&s->q, s->q.at[from]);
    const uint32_t to = rm_search_empty_slot(s, floor, rm_seq_ceiling(&s->q, from));
    return to != RM_EMPTY && rm_seq_slide(&s->q, from, to);
}
