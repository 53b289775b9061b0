/* events.h: the events of a storage in a sequence: how they are written, found and told apart. Only
 * the files of sequence.h include it.
 *
 * An event is 4 * slot + kind. A slot has at most one event of a storage. */
#ifndef RM_EVENTS_H
#define RM_EVENTS_H

#include "sim/sequence.h"

/* A storage is read, made, or read by an op that may make an output in its place. */
typedef enum rm_event_kind {
    RM_EVENT_READ = 0,
    RM_EVENT_MAKE = 1,
    RM_EVENT_TAKE = 2
} rm_event_kind;
enum { RM_SHORT_LIST = 16 };

static inline uint32_t rm_event_of(uint32_t slot, rm_event_kind kind)
{
    return 4 * slot + (uint32_t)kind;
}
static inline uint32_t rm_event_slot(uint32_t event) { return event >> 2; }
static inline bool rm_event_is_make(uint32_t event) { return event & RM_EVENT_MAKE; }
/* The last slot that the instance is in memory, if the event is its last. */
static inline uint32_t rm_event_end(uint32_t event)
{
    return rm_event_slot(event) - (event & RM_EVENT_TAKE ? 1 : 0);
}

/* The index of the first event at or behind the slot. A short list is counted through: there is no
 * branch to mispredict. */
static inline uint32_t rm_event_find(const rm_seq *q, uint32_t store, uint32_t slot)
{
    const uint32_t *list = q->pool + q->events[store].begin, key = rm_event_of(slot, RM_EVENT_READ);
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

/* The last slot of the instance that the event before the i-th belongs to, if that is its last. */
static inline uint32_t rm_event_end_before(const rm_seq *q, uint32_t store, uint32_t i)
{
    return rm_event_end(rm_event_at(q, store, i - 1));
}

/* What the op does to the k-th of nm->in, which it reads. */
static inline rm_event_kind rm_read_kind(const rm_normal *nm, uint32_t k)
{
    return nm->may_take[k] ? RM_EVENT_TAKE : RM_EVENT_READ;
}

#endif
