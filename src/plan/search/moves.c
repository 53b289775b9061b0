/* moves.c: recomputing a value together with what that needs, forgetting a recomputation together
 * with what only it needed, and moving a step together with what only it reads.
 *
 * Single ops, as FastSA moves them, reach small budgets only through states that are worse in both
 * memory and cost: running an op again keeps its inputs longer. So a value that spans a crowded
 * place is made anew right before it is read next, and those of the inputs that would have to be
 * held for that are made anew too, at random and recursively. The way back: a second run is taken
 * out, and with it, again recursively, what nobody reads any more. Order has the same trouble: a
 * step that goes later holds its inputs longer, so those that only it reads go with it,
 * recursively. O(ops of the move) edits. */
#include "plan/search/moves.h"

enum {
    MOST_OPS = 128, /* that one move recomputes */
    MOST_CARRIED = 32,
    TRIES = 48, /* to find a storage, or a second run, at random */
    NEAR = 64,  /* slots that are looked through for an empty one */
    WORK_A_TRY = 4
};

/* The last empty slot before `end` and behind `first`, not far from it. */
static uint32_t slot_before(const rm_seq *q, uint32_t first, uint32_t end)
{
    for (uint32_t slot = end; slot > first + 1 && slot + NEAR > end;)
        if (q->at[--slot] == RM_EMPTY) return slot;
    return RM_EMPTY;
}

/* The first empty slot from `first` on and before `end`, not far from it. */
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
    const uint32_t chance = (uint32_t)rm_random_next(&s->random),
                   most = 1 + (1u << rm_random_below(&s->random, 8));
    stack[n_stack++] = first;
    while (n_stack && n_edits < most) {
        const uint32_t slot = stack[--n_stack], op = q->at[slot];
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1] && n_edits < most; k++) {
            uint32_t before;
            if (rm_is_free(nm, nm->in[k])) continue;
            if (!rm_seq_is_last_read(q, nm->in[k], slot, &before))
                continue; /* it is in memory anyway */
            if ((uint32_t)rm_random_next(&s->random) > chance) continue;
            const uint32_t again = slot_before(q, before, slot);
            if (!insert(q, again, nm->producer[nm->in[k]])) continue;
            stack[n_stack++] = again;
            n_edits++;
        }
    }
    return n_edits;
}

static uint32_t crowded_slot(rm_search *s, int64_t limit)
{
    const rm_profile *m = &s->q.memory;
    uint32_t b = rm_random_below(&s->random, m->n_blocks);
    if (m->max > limit)
        while (m->high[b] <= limit) b = b + 1 == m->n_blocks ? 0 : b + 1;
    const uint32_t slot = b * RM_PROFILE_BLOCK + rm_random_below(&s->random, RM_PROFILE_BLOCK);
    return slot < s->q.n_slots ? slot : s->q.n_slots - 1;
}

uint32_t rm_move_recompute(rm_search *s, int64_t limit)
{
    const rm_normal *nm = s->q.nm;
    const uint32_t slot = crowded_slot(s, limit);
    for (int i = 0; i < TRIES; i++) {
        const uint32_t store = rm_random_below(&s->random, nm->n_stores);
        uint32_t to;
        s->q.work += WORK_A_TRY;
        if (nm->bytes[store] == 0 || nm->pinned[nm->producer[store]] ||
            !rm_seq_spans(&s->q, store, slot, &to))
            continue;
        return recompute(s, store, slot, to);
    }
    return 0;
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

uint32_t rm_move_forget(rm_search *s)
{
    rm_seq *q = &s->q;
    const rm_normal *nm = q->nm;
    uint32_t stack[MOST_OPS], n_stack = 0, n_edits = 0;
    uint32_t slot = second_run(s);
    if (slot == RM_EMPTY) return 0;
    uint32_t op = q->at[slot];
    if (!rm_seq_remove(q, slot)) return 0;
    for (;;) {
        rm_seq_settle(q);
        n_edits++;
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1] && n_stack < MOST_OPS; k++) {
            const uint32_t made = rm_seq_unread_make(q, nm->in[k], slot);
            if (made != RM_EMPTY) stack[n_stack++] = made;
        }
        do {
            if (n_stack == 0) return n_edits;
            slot = stack[--n_stack];
            op = q->at[slot];
            if (op != RM_EMPTY) q->work += (int64_t)rm_code_events(nm, op);
        } while (op == RM_EMPTY || rm_is_fetch(nm, op) || q->runs[op] <= 1 || !is_unread(q, slot) ||
                 !rm_seq_remove(q, slot));
    }
}

/* Right before who reads it, right behind what it reads, or anywhere that is valid. */
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

uint32_t rm_move_carry(rm_search *s)
{
    rm_seq *q = &s->q;
    const rm_normal *nm = q->nm;
    uint32_t stack[MOST_CARRIED + 1], n_stack = 0, n_edits = 1;
    const uint32_t from = rm_search_full_slot(s);
    if (rm_is_fetch(nm, q->at[from])) return 0;
    q->work += WORK_A_TRY + (int64_t)rm_code_events(nm, q->at[from]);
    const uint32_t to = new_place(s, from);
    if (!slide(q, from, to)) return 0;
    const uint32_t most = 1 + (1u << rm_random_below(&s->random, 6));
    if (to > from) stack[n_stack++] = to;
    while (n_stack && n_edits < most) {
        const uint32_t slot = stack[--n_stack];
        if (q->at[slot] == RM_EMPTY) continue; /* it has gone on with another reader */
        const rm_code op = q->at[slot];
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1] && n_edits < most; k++) {
            uint32_t made;
            if (rm_is_free(nm, nm->in[k])) continue;
            if (!rm_seq_is_last_read(q, nm->in[k], slot, &made) ||
                q->at[made] != nm->producer[nm->in[k]])
                continue;
            const uint32_t ceiling = rm_seq_ceiling(q, made),
                           place = slot_before(q, made, slot < ceiling ? slot : ceiling);
            if (!slide(q, made, place)) continue;
            stack[n_stack++] = place;
            n_edits++;
        }
    }
    return n_edits;
}
