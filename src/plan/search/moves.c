/* moves.c: moves of whole recomputations.
 *
 * Problem: FastSA moves single ops. These reach small budgets only through states that are worse in
 * both memory and cost, because running an op again keeps its inputs longer.
 *
 * Method:
 * - Recompute: a value that spans a crowded slot is made anew right before it is read next. Some of
 *   the inputs would have to be held for that. They are made anew too, at random and recursively.
 * - Forget is the way back: a second run is taken out, and with it, recursively, what nobody reads
 *   any more.
 * - Carry: order has the same trouble, because a step that goes later holds its inputs longer. So
 *   inputs that only it reads go with it, recursively. A step that goes earlier holds its outputs
 *   longer, so steps that alone read these go with it.
 * - Clear is recompute's counterpart in order: a value that spans a crowded slot is made behind it,
 *   or read before it, and steps go along as in carry.
 *
 * Cost: O(ops of the move) edits. */
#include "plan/search/moves.h"

#include <assert.h>

enum {
    MOST_OPS = 128, /* that one move recomputes */
    MOST_CARRIED = 32,
    TRIES = 48,    /* to find a storage, or a second run, at random */
    NEAR = 64,     /* slots that are looked through for an empty one */
    WORK_A_TRY = 4 /* operations */
};

/* The last empty slot before `end` and behind `first`, but not far from `end`; or RM_EMPTY. */
static uint32_t slot_before(const rm_seq *q, uint32_t first, uint32_t end)
{
    for (uint32_t slot = end; slot > first + 1 && slot + NEAR > end;)
        if (q->at[--slot] == RM_EMPTY) return slot;
    return RM_EMPTY;
}

/* The first empty slot from `first` on and before `end`, but not far from `first`; or RM_EMPTY. */
static uint32_t slot_from(const rm_seq *q, uint32_t first, uint32_t end)
{
    for (uint32_t slot = first; slot < end && slot < first + NEAR; slot++)
        if (q->at[slot] == RM_EMPTY) return slot;
    return RM_EMPTY;
}

static bool insert(rm_seq *q, uint32_t slot, uint32_t op)
{
    if (slot == RM_EMPTY || !rm_seq_insert(q, slot, op)) return false;
    rm_seq_settle(q);
    return true;
}

/* Runs what makes the storage once more between `from` and `to`, and what that needs. */
static uint32_t recompute(rm_search *s, uint32_t store, uint32_t from, uint32_t to)
{
    rm_seq *q = &s->q;
    const rm_normal *nm = q->nm;
    uint32_t stack[MOST_OPS + 1], n_stack = 0, n_edits = 1;
    const uint32_t first = slot_before(q, from, to);
    if (!insert(q, first, nm->producer[store])) return 0;
    const uint32_t chance = (uint32_t)rm_random_next(&s->random);
    const uint32_t most = 1 + (1u << rm_random_below(&s->random, 8));
    assert(most <= MOST_OPS + 1);
    stack[n_stack++] = first;
    while (n_stack && n_edits < most) {
        const uint32_t slot = stack[--n_stack], op = q->at[slot];
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1] && n_edits < most; k++) {
            uint32_t before;
            if (rm_is_free(nm, nm->in[k])) continue;
            const bool held = !rm_seq_is_last_read(q, nm->in[k], slot, &before);
            if (held) continue; /* it is in memory anyway */
            if ((uint32_t)rm_random_next(&s->random) > chance) continue;
            const uint32_t again = slot_before(q, before, slot);
            if (!insert(q, again, nm->producer[nm->in[k]])) continue;
            stack[n_stack++] = again;
            n_edits++;
        }
    }
    return n_edits;
}

/* A random slot, in a block that is over the limit if there is one. */
static uint32_t crowded_slot(rm_search *s, int64_t limit)
{
    const rm_profile *m = &s->q.memory;
    uint32_t b = rm_random_below(&s->random, m->n_blocks);
    if (m->max > limit)
        while (m->high[b] <= limit) b = b + 1 == m->n_blocks ? 0 : b + 1;
    const uint32_t slot = b * RM_PROFILE_BLOCK + rm_random_below(&s->random, RM_PROFILE_BLOCK);
    return slot < s->q.n_slots ? slot : s->q.n_slots - 1;
}

/* A random storage that spans the slot, and the slot that reads it next; or RM_EMPTY. again: only
 * one that can be made again. */
static uint32_t store_over(rm_search *s, uint32_t slot, bool again, uint32_t *reader)
{
    const rm_normal *nm = s->q.nm;
    for (int i = 0; i < TRIES; i++) {
        const uint32_t store = rm_random_below(&s->random, nm->n_stores);
        s->q.work += WORK_A_TRY;
        if (nm->bytes[store] == 0 || (again && nm->pinned[nm->producer[store]])) continue;
        if (rm_seq_spans(&s->q, store, slot, reader)) return store;
    }
    return RM_EMPTY;
}

uint32_t rm_move_recompute(rm_search *s, int64_t limit)
{
    uint32_t reader;
    const uint32_t slot = crowded_slot(s, limit), store = store_over(s, slot, true, &reader);
    return store == RM_EMPTY ? 0 : recompute(s, store, slot, reader);
}

/* Does nobody read what the step makes? */
static bool is_unread(const rm_seq *q, uint32_t slot)
{
    const rm_normal *nm = q->nm;
    const rm_code op = q->at[slot];
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
        if (rm_seq_unread_make(q, nm->out[k], slot + 1) != slot) return false;
    return true;
}

/* A step whose op runs elsewhere too. */
static uint32_t second_run(rm_search *s)
{
    for (int i = 0; i < TRIES / 2; i++) {
        const uint32_t slot = rm_search_full_slot(s);
        s->q.work += WORK_A_TRY;
        if (!rm_is_fetch(s->q.nm, s->q.at[slot]) && s->q.runs[s->q.at[slot]] > 1) return slot;
    }
    return RM_EMPTY;
}

/* Takes the step out if it is a second run that nobody reads. */
static bool remove_unread(rm_seq *q, uint32_t slot)
{
    const rm_normal *nm = q->nm;
    const rm_code op = q->at[slot];
    if (op == RM_EMPTY) return false; /* it has gone with another reader */
    q->work += (int64_t)rm_code_events(nm, op);
    if (rm_is_fetch(nm, op) || q->runs[op] <= 1 || !is_unread(q, slot)) return false;
    return rm_seq_remove(q, slot);
}

uint32_t rm_move_forget(rm_search *s)
{
    rm_seq *q = &s->q;
    const rm_normal *nm = q->nm;
    uint32_t stack[MOST_OPS], n_stack = 0, n_edits = 0;
    uint32_t slot = second_run(s);
    if (slot == RM_EMPTY) return 0;
    uint32_t op = q->at[slot];
    bool removed = rm_seq_remove(q, slot);
    while (removed) {
        rm_seq_settle(q);
        n_edits++;
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1] && n_stack < MOST_OPS; k++) {
            const uint32_t made = rm_seq_unread_make(q, nm->in[k], slot);
            if (made != RM_EMPTY) stack[n_stack++] = made;
        }
        removed = false;
        while (n_stack > 0 && !removed) {
            slot = stack[--n_stack];
            op = q->at[slot];
            removed = remove_unread(q, slot);
        }
    }
    return n_edits;
}

/* For the step in `from`: right before its first reader, right behind what it reads, or anywhere
 * between. */
static uint32_t new_place(rm_search *s, uint32_t from)
{
    const rm_seq *q = &s->q;
    const uint32_t kind = rm_random_below(&s->random, 4);
    if (kind == 0) {
        const uint32_t reader = rm_seq_next_read(q, from);
        return slot_before(q, from, reader > from ? reader : q->n_slots);
    }
    if (kind == 1) {
        const uint32_t made = rm_seq_last_made(q, from);
        return slot_from(q, made < from ? made + 1 : 0, from);
    }
    return rm_search_empty_slot(s, rm_seq_floor(q, q->at[from]), rm_seq_ceiling(q, from));
}

static bool slide(rm_seq *q, uint32_t from, uint32_t to)
{
    if (to == RM_EMPTY || !rm_seq_slide(q, from, to)) return false;
    rm_seq_settle(q);
    return true;
}

/* Slides what made the storage to right before `slot`, if nobody else reads it. Returns its new
 * slot, or RM_EMPTY. */
static uint32_t carry_input(rm_seq *q, uint32_t store, uint32_t slot)
{
    uint32_t made;
    if (rm_is_free(q->nm, store) || !rm_seq_is_last_read(q, store, slot, &made)) return RM_EMPTY;
    if (q->at[made] != q->nm->producer[store]) return RM_EMPTY; /* another read, or a fetch */
    const uint32_t ceiling = rm_seq_ceiling(q, made);
    const uint32_t place = slot_before(q, made, slot < ceiling ? slot : ceiling);
    return slide(q, made, place) ? place : RM_EMPTY;
}

/* Slides the one step that reads what `made` makes of the storage to right behind it, if nobody
 * else reads that. Returns its new slot, or RM_EMPTY. */
static uint32_t carry_reader(rm_seq *q, uint32_t store, uint32_t made)
{
    uint32_t reader, before;
    if (!rm_seq_spans(q, store, made + 1, &reader) || reader >= q->n_slots) return RM_EMPTY;
    if (!rm_seq_is_last_read(q, store, reader, &before) || before != made) return RM_EMPTY;
    if (rm_is_fetch(q->nm, q->at[reader])) return RM_EMPTY;
    const uint32_t floor = rm_seq_floor(q, q->at[reader]);
    const uint32_t place = slot_from(q, floor > made ? floor : made + 1, reader);
    return slide(q, reader, place) ? place : RM_EMPTY;
}

/* The steps that go along with the one in `slot`: those that only it reads, if it went later; those
 * that alone read what it makes, if it went earlier. Returns the number of edits, with its own. */
static uint32_t carry_along(rm_search *s, uint32_t slot, bool later)
{
    rm_seq *q = &s->q;
    const rm_normal *nm = q->nm;
    uint32_t stack[MOST_CARRIED + 1], n_stack = 0, n_edits = 1;
    const uint32_t most = 1 + (1u << rm_random_below(&s->random, 6));
    assert(most <= MOST_CARRIED + 1);
    stack[n_stack++] = slot;
    while (n_stack && n_edits < most) {
        slot = stack[--n_stack];
        if (q->at[slot] == RM_EMPTY) continue; /* it has gone on with another step */
        const rm_code op = q->at[slot];
        const uint32_t *begin = later ? nm->in_begin : nm->out_begin;
        for (uint32_t k = begin[op]; k < begin[op + 1] && n_edits < most; k++) {
            const uint32_t place =
                later ? carry_input(q, nm->in[k], slot) : carry_reader(q, nm->out[k], slot);
            if (place == RM_EMPTY) continue;
            stack[n_stack++] = place;
            n_edits++;
        }
    }
    return n_edits;
}

uint32_t rm_move_carry(rm_search *s)
{
    rm_seq *q = &s->q;
    const uint32_t from = rm_search_full_slot(s);
    if (rm_is_fetch(q->nm, q->at[from])) return 0;
    q->work += WORK_A_TRY + (int64_t)rm_code_events(q->nm, q->at[from]);
    const uint32_t to = new_place(s, from);
    if (!slide(q, from, to)) return 0;
    return carry_along(s, to, to > from);
}

/* What reads the storage next goes before the slot. */
static uint32_t hasten_reader(rm_search *s, uint32_t slot, uint32_t before, uint32_t reader)
{
    rm_seq *q = &s->q;
    if (reader == q->n_slots || rm_is_fetch(q->nm, q->at[reader])) return 0;
    q->work += (int64_t)rm_code_events(q->nm, q->at[reader]);
    const uint32_t floor = rm_seq_floor(q, q->at[reader]),
                   to = slot_from(q, floor > before ? floor : before + 1, slot);
    return slide(q, reader, to) ? carry_along(s, to, false) : 0;
}

/* What made the storage in slot `made` goes behind the slot. */
static uint32_t put_off_maker(rm_search *s, uint32_t slot, uint32_t made, uint32_t reader)
{
    rm_seq *q = &s->q;
    q->work += (int64_t)rm_code_events(q->nm, q->at[made]);
    const uint32_t ceiling = rm_seq_ceiling(q, made),
                   to = slot_before(q, slot, reader < ceiling ? reader : ceiling);
    return slide(q, made, to) ? carry_along(s, to, true) : 0;
}

uint32_t rm_move_clear(rm_search *s, int64_t limit)
{
    rm_seq *q = &s->q;
    uint32_t reader;
    const uint32_t slot = crowded_slot(s, limit), store = store_over(s, slot, false, &reader);
    if (store == RM_EMPTY) return 0;
    const uint32_t before = rm_seq_event_before(q, store, slot);
    if (rm_random_below(&s->random, 2)) {
        const uint32_t n_edits = hasten_reader(s, slot, before, reader);
        if (n_edits) return n_edits;
    }
    const bool unread = q->at[before] == q->nm->producer[store];
    return unread ? put_off_maker(s, slot, before, reader) : 0;
}
