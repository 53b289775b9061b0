/* sequence.h: a valid order of steps over a normal graph, edited a few steps at a time, with its
 * exact peak and cost.
 *
 * Time is a row of slots, most of them empty. Edits are made in a *move*. A move is any number of
 * insertions, removals and slides. Each of them keeps the sequence valid, or is refused. Then the
 * move is kept or taken back as a whole. Nothing is allocated after rm_seq_new, so threads may edit
 * sequences of their own. Codes are those of graph/normal.h.
 *
 *     if (rm_seq_insert(q, slot, op) && rm_seq_peak(q) <= limit) rm_seq_keep(q);
 *     else rm_seq_undo(q); */
#ifndef RM_SEQUENCE_H
#define RM_SEQUENCE_H

#include "algo/profile.h"
#include "sim/codes.h"

typedef struct rm_events { /* of one storage, in time: events.h says how they are written */
    uint32_t begin, n, room;
} rm_events;

typedef struct rm_edit {
    uint32_t from, to; /* slots; from RM_EMPTY: the step is put in; to RM_EMPTY: it is taken out */
    rm_code code;
    uint32_t rank; /* of a step taken out among `set` */
} rm_edit;

typedef struct rm_seq {
    remat_alloc heap;
    const rm_normal *nm;
    uint32_t n_slots, n_steps;
    rm_code *at;    /* by slot; RM_EMPTY */
    uint32_t *set;  /* the slots of all steps, in no order: for random choice */
    uint32_t *rank; /* by slot that is not empty: where it is in `set` */
    uint32_t n_set;
    rm_events *events; /* by storage */
    uint32_t *pool;    /* the lists themselves */
    uint32_t pool_used, pool_size;
    uint32_t *runs;     /* by op */
    uint32_t *pin_slot; /* by op: where a pinned op stands */
    /* By pinned op: the pinned ops before and after it in the graph's order, or REMAT_NONE. */
    uint32_t *pin_before, *pin_after;
    uint32_t *fetches;       /* by storage */
    const int64_t *transfer; /* by storage: cost of one offload or fetch; NULL: no fetches */
    int64_t host_limit, host_bytes;
    rm_profile memory;
    int64_t cost;
    rm_range *ranges; /* of this move: the first n_flushed are in `memory` */
    size_t n_ranges, n_flushed, max_ranges;
    rm_edit *edits; /* of this move: the first n_settled are in slots and lists */
    size_t n_edits, n_settled, max_edits;
    /* Elementary operations so far (base/limits.h): events looked at and moved, blocks of memory
     * touched. Whoever owns the sequence accounts for them. */
    int64_t work;
    bool crowded; /* an edit was refused for lack of room: load the steps again to make some */
} rm_seq;

remat_status rm_seq_new(remat_ctx *ctx, const rm_normal *nm, uint32_t n_slots, rm_seq *out);
void rm_seq_free(rm_seq *q);
/* Replaces the steps by valid ones, evenly spread: step i of n goes to slot (i + 1) * n_slots / (n
 * + 1). False: they are not fewer than slots, there is no room for their events, or their cost
 * passes 2^62. Then nothing has changed. */
bool rm_seq_load(rm_seq *q, const rm_code *codes, size_t n);
/* The codes in order, with the move at hand. `out` has room for n_slots. */
size_t rm_seq_codes(rm_seq *q, rm_code *out);

/* Each is part of the move at hand. False: it would not be valid, or there is no room. Then nothing
 * has changed. */
bool rm_seq_insert(rm_seq *q, uint32_t slot, rm_code code); /* slot is empty */
bool rm_seq_remove(rm_seq *q, uint32_t slot);               /* slot is not */
bool rm_seq_slide(rm_seq *q, uint32_t from, uint32_t to);   /* from is full, to is empty */
int64_t rm_seq_peak(rm_seq *q);                             /* with the move, and resident bytes */
/* rm_profile_excess with the move. before: as it was without the move. */
int64_t rm_seq_excess(rm_seq *q, int64_t limit, int64_t before);
bool rm_seq_may_sink(const rm_seq *q); /* could the move have lowered the peak? */
void rm_seq_keep(rm_seq *q);
void rm_seq_undo(rm_seq *q);
/* Edits of the move at hand reach slots and lists late, and memory later. Whoever looks at slots or
 * lists in a move settles first. Whoever looks at memory flushes first. */
void rm_seq_settle(rm_seq *q);
void rm_seq_flush(rm_seq *q); /* settles too */

void rm_seq_check(const rm_seq *q); /* sequence_check.c: asserts all that holds when flushed */

/* ---- sequence_query.c: between moves, or settled ---- */

/* The first slot from which on all inputs of the op have been made. */
uint32_t rm_seq_floor(const rm_seq *q, uint32_t op);
/* The step in the slot can slide to any slot before the ceiling without leaving a reader behind.
 * Both are limits only: tokens and pins may still refuse a slot between them. */
uint32_t rm_seq_ceiling(const rm_seq *q, uint32_t slot);
/* The first slot that reads something that the step makes; `slot` itself if nobody does. */
uint32_t rm_seq_next_read(const rm_seq *q, uint32_t slot);
/* The last slot that makes something that the run in `slot` reads; `slot` itself if it reads
 * nothing. */
uint32_t rm_seq_last_made(const rm_seq *q, uint32_t slot);
/* Is an instance in memory at the slot, which does not touch it? to: the next read of it, or
 * n_slots for the end. */
bool rm_seq_spans(const rm_seq *q, uint32_t store, uint32_t slot, uint32_t *to);
/* The slot of the last event of the storage before `slot`. There is one. */
uint32_t rm_seq_event_before(const rm_seq *q, uint32_t store, uint32_t slot);
/* Is the read at the slot the last of its instance? from: the slot of the event before it. */
bool rm_seq_is_last_read(const rm_seq *q, uint32_t store, uint32_t slot, uint32_t *from);
/* The slot that made the newest instance before `slot`, if nobody reads that instance; else
 * RM_EMPTY. */
uint32_t rm_seq_unread_make(const rm_seq *q, uint32_t store, uint32_t slot);

/* How many storages a step touches: what looking at it costs. */
static inline size_t rm_code_events(const rm_normal *nm, rm_code code)
{
    if (rm_is_fetch(nm, code)) return 1;
    return (nm->in_begin[code + 1] - nm->in_begin[code]) +
           (nm->out_begin[code + 1] - nm->out_begin[code]);
}

/* The peak without the move at hand, if none of it is flushed. */
static inline int64_t rm_seq_peak_kept(const rm_seq *q)
{
    return q->nm->resident_bytes + q->memory.max;
}

#endif
