/* sequence_query.c: what searches ask a sequence before they propose a move: where an op finds its
 * inputs, how far a step can go, what is in memory at a slot, what nobody reads. A question looks
 * at the list of one storage, or at those of one op's storages: O(log of their events), and
 * O(events) where it looks for the make before a read. */
#include "sim/events.h"

#include <assert.h>

uint32_t rm_seq_floor(const rm_seq *q, uint32_t op)
{
    const rm_normal *nm = q->nm;
    uint32_t floor = 0;
    for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++) {
        const uint32_t first = rm_event_slot(q->pool[q->events[nm->in[k]].begin]) + 1;
        floor = first > floor ? first : floor;
    }
    return floor;
}

uint32_t rm_seq_ceiling(const rm_seq *q, uint32_t slot)
{
    const rm_normal *nm = q->nm;
    const rm_code code = q->at[slot];
    uint32_t ceiling = q->n_slots;
    if (rm_is_fetch(nm, code)) return ceiling;
    for (uint32_t k = nm->out_begin[code]; k < nm->out_begin[code + 1]; k++) {
        const rm_events *e = &q->events[nm->out[k]];
        const uint32_t *list = q->pool + e->begin;
        if (e->n < 2 || rm_event_slot(list[0]) != slot) continue; /* another make comes before it */
        const uint32_t second = rm_event_slot(list[1]);
        const bool needs_first = !rm_event_is_make(list[1]) || rm_is_fetch(nm, q->at[second]);
        if (needs_first && second < ceiling) ceiling = second;
    }
    return ceiling;
}

/* The first read of the instance that the slot makes, or RM_EMPTY. */
static uint32_t read_of_make(const rm_seq *q, uint32_t store, uint32_t slot)
{
    const uint32_t next = rm_event_find(q, store, slot) + 1;
    return rm_event_is_read(q, store, next) ? rm_event_slot(rm_event_at(q, store, next)) : RM_EMPTY;
}

uint32_t rm_seq_next_read(const rm_seq *q, uint32_t slot)
{
    const rm_normal *nm = q->nm;
    const rm_code code = q->at[slot];
    if (rm_is_fetch(nm, code)) {
        const uint32_t read = read_of_make(q, code - nm->n_ops, slot);
        return read == RM_EMPTY ? slot : read;
    }
    uint32_t next = RM_EMPTY; /* which is more than any slot */
    for (uint32_t k = nm->out_begin[code]; k < nm->out_begin[code + 1]; k++) {
        const uint32_t read = read_of_make(q, nm->out[k], slot);
        next = read < next ? read : next;
    }
    return next == RM_EMPTY ? slot : next;
}

uint32_t rm_seq_last_made(const rm_seq *q, uint32_t slot)
{
    const rm_normal *nm = q->nm;
    const rm_code op = q->at[slot];
    uint32_t last = RM_EMPTY;
    assert(!rm_is_fetch(nm, op));
    for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++) {
        uint32_t i = rm_event_find(q, nm->in[k], slot) - 1;
        while (!rm_event_is_make(rm_event_at(q, nm->in[k], i))) i--;
        const uint32_t made = rm_event_slot(rm_event_at(q, nm->in[k], i));
        if (last == RM_EMPTY || made > last) last = made;
    }
    return last == RM_EMPTY ? slot : last;
}

bool rm_seq_spans(const rm_seq *q, uint32_t store, uint32_t slot, uint32_t *to)
{
    const uint32_t *list = q->pool + q->events[store].begin, i = rm_event_find(q, store, slot);
    if (i == 0 || !rm_event_is_read(q, store, i) || rm_event_slot(list[i]) == slot) return false;
    *to = rm_event_slot(list[i]);
    return true;
}

uint32_t rm_seq_event_before(const rm_seq *q, uint32_t store, uint32_t slot)
{
    return rm_event_slot_before(q, store, rm_event_find(q, store, slot));
}

bool rm_seq_is_last_read(const rm_seq *q, uint32_t store, uint32_t slot, uint32_t *from)
{
    const uint32_t i = rm_event_find(q, store, slot);
    if (rm_event_is_read(q, store, i + 1)) return false;
    *from = rm_event_slot_before(q, store, i);
    return true;
}

uint32_t rm_seq_unread_make(const rm_seq *q, uint32_t store, uint32_t slot)
{
    const uint32_t *list = q->pool + q->events[store].begin, i = rm_event_find(q, store, slot);
    const bool is_unread = i && rm_event_is_make(list[i - 1]) && !rm_event_is_read(q, store, i);
    return is_unread ? rm_event_slot(list[i - 1]) : RM_EMPTY;
}
