/* events.h: the events of a storage in a sequence: how they are written, found and told apart. Only
 * the files of sequence.h include it.
 *
 * An event is 2 * slot + kind. A slot has at most one event of a storage. */
#ifndef RM_EVENTS_H
#define RM_EVENTS_H

#include "sim/sequence.h"

enum { RM_EVENT_READ = 0, RM_EVENT_MAKE = 1, RM_SHORT_LIST = 16 };

static inline uint32_t rm_event_slot(uint32_t event) { return event >> 1; }
static inline bool rm_event_is_make(uint32_t event) { return event & 1; }

/* The index of the first event at or behind the slot. A short list is counted through: there is no
 * branch to mispredict. */
static inline uint32_t rm_event_find(const rm_seq *q, uint32_t store, uint32_t slot)
{
    const uint32_t *list = q->pool + q->events[store].begin, key = 2 * slot;
    uint32_t lo = 0, hi = q->events[store].n;
    while (hi - lo > RM_SHORT_LIST) {
        const uint32_t mid = (lo + hi) / 2;
        if (list[mid] < key) lo = mid + 1;
        else hi = mid;
    }
    uint32_t before = lo;
    for (uint32_t i = lo; i < hi; i++) before += list[i] < key;
    return before;
}

static inline uint32_t rm_event_at(const rm_seq *q, uint32_t store, uint32_t i)
{
    return q->pool[q->events[store].begin + i];
}

static inline bool rm_event_is_read(const rm_seq *q, uint32_t store, uint32_t i)
{
    return i < q->events[store].n && !rm_event_is_make(rm_event_at(q, store, i));
}

/* The slot of the event before the i-th: i > 0. */
static inline uint32_t rm_event_slot_before(const rm_seq *q, uint32_t store, uint32_t i)
{
    return rm_event_slot(rm_event_at(q, store, i - 1));
}

#endif
