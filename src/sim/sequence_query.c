/* sequence_query.c: what searches ask a sequence before they propose a move: where an op finds its
 * inputs, how far a step can go, what lies in memory over a slot, what nobody reads. Each looks at
 * the lists of one storage or of one op's: O(its events). */
#include "sim/events.h"

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
        if (e->n > 1 && rm_event_slot(list[0]) == slot &&
            (!rm_event_is_make(list[1]) || rm_is_fetch(nm, q->at[rm_event_slot(list[1])])))
            ceiling = rm_event_slot(list[1]) < ceiling ? rm_event_slot(list[1]) : ceiling;
    }
    return ceiling;
}

uint32_t rm_seq_next_read(const rm_seq *q, uint32_t slot)
{
    const rm_normal *nm = q->nm;
    const rm_code code = q->at[slot];
    const uint32_t fetched = code - nm->n_ops,
                   *out = rm_is_fetch(nm, code) ? &fetched : nm->out + nm->out_begin[code];
    const uint32_t n_out =
        rm_is_fetch(nm, code) ? 1 : nm->out_begin[code + 1] - nm->out_begin[code];
    uint32_t next = UINT32_MAX;
    for (uint32_t k = 0; k < n_out; k++) {
        const uint32_t i = rm_event_find(q, out[k], slot) + 1;
        if (rm_event_is_read(q, out[k], i) &&
            rm_event_slot(q->pool[q->events[out[k]].begin + i]) < next)
            next = rm_event_slot(q->pool[q->events[out[k]].begin + i]);
    }
    return next == UINT32_MAX ? slot : next;
}

uint32_t rm_seq_last_made(const rm_seq *q, uint32_t slot)
{
    const rm_normal *nm = q->nm;
    const rm_code op = q->at[slot];
    uint32_t last = UINT32_MAX;
    for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++) {
        uint32_t i = rm_event_find(q, nm->in[k], slot) - 1;
        while (!rm_event_is_make(rm_event_at(q, nm->in[k], i))) i--;
        const uint32_t made = rm_event_slot(rm_event_at(q, nm->in[k], i));
        last = last == UINT32_MAX || made > last ? made : last;
    }
    return last == UINT32_MAX ? slot : last;
}

bool rm_seq_spans(const rm_seq *q, uint32_t store, uint32_t slot, uint32_t *to)
{
    const uint32_t *list = q->pool + q->events[store].begin, i = rm_event_find(q, store, slot);
    if (i == 0 || !rm_event_is_read(q, store, i) || rm_event_slot(list[i]) == slot) return false;
    *to = rm_event_slot(list[i]);
    return true;
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
    return i && rm_event_is_make(list[i - 1]) && !rm_event_is_read(q, store, i)
               ? rm_event_slot(list[i - 1])
               : RM_EMPTY;
}
