/* sequence.c: the sequence that searches edit.
 *
 * Problem: the exact peak and cost of a sequence after every insertion, removal or slide of a step.
 *
 * Method: each storage has one sorted list of events: the slots that make it and the slots that
 * read it. Between two makes all events are reads. So an instance lives from its make to the event
 * before the next make. A graph output has one more read behind the last slot. One insertion
 * therefore changes the life of one instance per storage that the op touches. It changes it by one
 * range of slots. Let t be the slot of the step, e the event before it and f the event behind it:
 *
 *     event at t   f             what happens                            memory
 *     a read       is a read     nothing changes
 *     a read       is no read    the life that ended at e ends at t      (e, t] + bytes
 *     a make       is a read     the life from e to f is cut before t    (e, t) - bytes
 *     a make       is no read    an instance that nobody reads           [t, t] + bytes
 *
 * A life that ends with a read by an op that may make an output in the storage's place ends one
 * slot before: the output is in memory instead, with as many bytes.
 *
 * A removal is the same with the signs turned. The ranges are collected. The memory profile either
 * looks at them (for the peak with the move) or takes them in (when the move is kept). Lists are
 * edited late: when the next edit of the same move needs it, or when the move is kept. So a move of
 * one edit that is refused writes nothing.
 *
 * Invariants (sequence_check.c has them as code):
 * - The first event of every list is a make by the op itself. A fetch comes after a run.
 * - Every op runs. Pinned ops run once and in the graph's order.
 * - No token is read after its base was made again.
 *
 * Cost: O(events of a storage) for an edit of its list, which moves a few words. O(slots / 64) for
 * the peak. */
#include "sim/sequence.h"

#include <assert.h>
#include <string.h>

#include "sim/events.h"

enum {
    WORK_A_EVENT = 8, /* operations to find an event, weigh it and, if the move is kept, write it */
    WORK_A_RANGE = 16, /* operations for the two blocks at the ends of a range */
    BLOCKS_A_WORK = 8  /* blocks of memory that are scanned in one operation */
};

/* ---- lists ---- */

/* Room for one more event. False: there is none. */
static bool make_room(rm_seq *q, uint32_t store)
{
    rm_events *e = &q->events[store];
    if (RM_LIKELY(e->n < e->room)) return true;
    const uint32_t room = 2 * e->room + 2;
    if (q->pool_size - q->pool_used < room) {
        q->crowded = true;
        return false;
    }
    memcpy(q->pool + q->pool_used, q->pool + e->begin, e->n * sizeof *q->pool);
    e->begin = q->pool_used;
    e->room = room;
    q->pool_used += room;
    return true;
}

static void put(rm_seq *q, uint32_t store, uint32_t i, uint32_t event)
{
    rm_events *e = &q->events[store];
    q->work += e->n - i;
    uint32_t *list = q->pool + e->begin;
    for (uint32_t k = e->n++; k > i; k--) list[k] = list[k - 1];
    list[i] = event;
}

static void take(rm_seq *q, uint32_t store, uint32_t i)
{
    rm_events *e = &q->events[store];
    uint32_t *list = q->pool + e->begin;
    e->n--;
    q->work += e->n - i;
    for (uint32_t k = i; k < e->n; k++) list[k] = list[k + 1];
}

/* The i-th event goes to before what is now the j-th, and becomes `event`. */
static void shift(rm_seq *q, uint32_t store, uint32_t i, uint32_t j, uint32_t event)
{
    uint32_t *list = q->pool + q->events[store].begin;
    q->work += i < j ? j - i : i - j;
    for (; i + 1 < j; i++) list[i] = list[i + 1];
    for (; i > j; i--) list[i] = list[i - 1];
    list[i] = event;
}

static void add_range(rm_seq *q, uint32_t first, uint32_t last, int64_t delta)
{
    if (last >= q->n_slots) last = q->n_slots - 1;
    if (first <= last && delta) q->ranges[q->n_ranges++] = (rm_range){first, last, delta};
}

/* ---- what is allowed ---- */

/* The slot of the last make before `slot`, or RM_EMPTY. */
static uint32_t last_make_before(const rm_seq *q, uint32_t store, uint32_t slot)
{
    const uint32_t *list = q->pool + q->events[store].begin;
    uint32_t i = rm_event_find(q, store, slot);
    while (i > 0 && !rm_event_is_make(list[i - 1])) i--;
    return i ? rm_event_slot(list[i - 1]) : RM_EMPTY;
}

/* Is the token, made at `made`, still good at `slot`? */
static bool is_fresh(const rm_seq *q, uint32_t store, uint32_t made, uint32_t slot)
{
    const uint32_t base_made = last_make_before(q, q->nm->base[store], slot);
    return base_made != RM_EMPTY && base_made <= made; /* equal: one op made both */
}

/* A make of a base at `slot` spoils its tokens until they are made again. So none of them may be
 * read next, except those that `op`, which makes the base, makes again itself. */
static bool spares_tokens(const rm_seq *q, uint32_t store, uint32_t slot, uint32_t op)
{
    const rm_normal *nm = q->nm;
    for (uint32_t k = nm->token_begin[store]; k < nm->token_begin[store + 1]; k++)
        if (nm->producer[nm->tokens[k]] != op &&
            rm_event_is_read(q, nm->tokens[k], rm_event_find(q, nm->tokens[k], slot + 1)))
            return false;
    return true;
}

/* Are the pinned ops before and after this one on their sides of the slot? */
static bool may_stand(const rm_seq *q, uint32_t op, uint32_t slot)
{
    const uint32_t before = q->pin_before[op], after = q->pin_after[op];
    return (before == REMAT_NONE || q->pin_slot[before] < slot) &&
           (after == REMAT_NONE || q->pin_slot[after] > slot);
}

/* ---- one event: is it allowed, and what does it mean for memory? ---- */

/* A read, before the i-th event. */
static void extend_life(rm_seq *q, uint32_t store, uint32_t read, uint32_t i)
{
    if (!rm_event_is_read(q, store, i))
        add_range(q, rm_event_end_before(q, store, i) + 1, rm_event_end(read), q->nm->bytes[store]);
}

/* A make at `slot`, before the i-th event. */
static void begin_life(rm_seq *q, uint32_t store, uint32_t slot, uint32_t i)
{
    if (!rm_event_is_read(q, store, i)) add_range(q, slot, slot, q->nm->bytes[store]);
    else if (slot > 0)
        add_range(q, rm_event_end_before(q, store, i) + 1, slot - 1, -q->nm->bytes[store]);
}

static bool add_read(rm_seq *q, uint32_t store, uint32_t slot, rm_event_kind kind)
{
    const uint32_t i = rm_event_find(q, store, slot);
    if (i == 0 || !make_room(q, store)) return false;
    if (q->nm->base[store] != REMAT_NONE &&
        !is_fresh(q, store, last_make_before(q, store, slot), slot))
        return false;
    extend_life(q, store, rm_event_of(slot, kind), i);
    return true;
}

static bool add_make(rm_seq *q, uint32_t store, uint32_t slot, uint32_t op)
{
    if (!make_room(q, store) || !spares_tokens(q, store, slot, op)) return false;
    begin_life(q, store, slot, rm_event_find(q, store, slot));
    return true;
}

static void drop_read(rm_seq *q, uint32_t store, uint32_t slot)
{
    const uint32_t i = rm_event_find(q, store, slot);
    if (!rm_event_is_read(q, store, i + 1))
        add_range(q, rm_event_end_before(q, store, i) + 1, rm_event_end_before(q, store, i + 1),
                  -q->nm->bytes[store]);
}

/* May the make at `slot`, its list's i-th event, go? Its readers must find another instance, and
 * fetches must still follow a run. */
static bool may_drop_make(const rm_seq *q, uint32_t store, uint32_t slot, uint32_t i)
{
    const uint32_t *list = q->pool + q->events[store].begin;
    if (i == 0)
        return q->events[store].n > 1 && rm_event_is_make(list[1]) &&
               !rm_is_fetch(q->nm, q->at[rm_event_slot(list[1])]);
    if (q->nm->base[store] == REMAT_NONE || !rm_event_is_read(q, store, i + 1)) return true;
    uint32_t last = i + 1;
    while (rm_event_is_read(q, store, last + 1)) last++;
    return is_fresh(q, store, last_make_before(q, store, slot), rm_event_slot(list[last]));
}

static bool drop_make(rm_seq *q, uint32_t store, uint32_t slot)
{
    const uint32_t i = rm_event_find(q, store, slot);
    if (!may_drop_make(q, store, slot, i)) return false;
    if (!rm_event_is_read(q, store, i + 1)) add_range(q, slot, slot, -q->nm->bytes[store]);
    else if (slot > 0)
        add_range(q, rm_event_end_before(q, store, i) + 1, slot - 1, q->nm->bytes[store]);
    return true;
}

/* ---- edits: first what they mean, the lists later ---- */

/* The first fetch of a storage brings an offload with it, and the last takes it along. */
static void count_fetch(rm_seq *q, uint32_t store, bool insert)
{
    const int64_t transfer = q->transfer[store];
    const bool was_offloaded = q->fetches[store] > 0;
    q->fetches[store] += insert ? 1 : UINT32_MAX;
    q->cost += insert ? transfer : -transfer;
    const int offloads = (q->fetches[store] > 0) - was_offloaded;
    q->cost += offloads * transfer;
    q->host_bytes += offloads * q->nm->bytes[store];
}

/* What an edit changes besides lists, slots and memory. */
static void count(rm_seq *q, uint32_t from, uint32_t to, rm_code code)
{
    const rm_normal *nm = q->nm;
    const bool insert = from == RM_EMPTY, take_out = to == RM_EMPTY;
    if (!rm_is_fetch(nm, code) && nm->pinned[code] && !take_out) q->pin_slot[code] = to;
    if (!insert && !take_out) return;
    q->n_steps += insert ? 1 : UINT32_MAX;
    if (rm_is_fetch(nm, code)) {
        count_fetch(q, code - nm->n_ops, insert);
        return;
    }
    q->cost += insert ? nm->cost[code] : -nm->cost[code];
    q->runs[code] += insert ? 1 : UINT32_MAX;
}

static void edit_event(rm_seq *q, uint32_t store, uint32_t from, uint32_t to, rm_event_kind kind)
{
    if (from == RM_EMPTY) put(q, store, rm_event_find(q, store, to), rm_event_of(to, kind));
    else if (to == RM_EMPTY) take(q, store, rm_event_find(q, store, from));
    else
        shift(q, store, rm_event_find(q, store, from), rm_event_find(q, store, to),
              rm_event_of(to, kind));
}

/* The steps as a set, for random choice. Taking a step out moves the last one into its place.
 * Putting it back in at the same rank undoes just that. */
static void put_into_set(rm_seq *q, uint32_t slot, uint32_t rank)
{
    const uint32_t end = q->n_set++;
    if (rank != end) {
        const uint32_t moved = q->set[rank];
        q->set[end] = moved;
        q->rank[moved] = end;
    }
    q->set[rank] = slot;
    q->rank[slot] = rank;
}

static uint32_t take_from_set(rm_seq *q, uint32_t slot)
{
    const uint32_t rank = q->rank[slot], moved = q->set[--q->n_set];
    q->set[rank] = moved;
    q->rank[moved] = rank;
    return rank;
}

/* Does an edit in slots and lists. `rank` is where a step that is put in goes in the set. Returns
 * the rank of the step. */
static uint32_t edit_lists(rm_seq *q, uint32_t from, uint32_t to, rm_code code, uint32_t rank)
{
    const rm_normal *nm = q->nm;
    if (from == RM_EMPTY) {
        put_into_set(q, to, rank);
    } else if (to == RM_EMPTY) {
        rank = take_from_set(q, from);
    } else {
        rank = q->rank[from];
        q->set[rank] = to;
        q->rank[to] = rank;
    }
    if (from != RM_EMPTY) q->at[from] = RM_EMPTY;
    if (to != RM_EMPTY) q->at[to] = code;
    if (rm_is_fetch(nm, code)) {
        edit_event(q, code - nm->n_ops, from, to, RM_EVENT_MAKE);
        return rank;
    }
    for (uint32_t k = nm->in_begin[code]; k < nm->in_begin[code + 1]; k++)
        edit_event(q, nm->in[k], from, to, rm_read_kind(nm, k));
    for (uint32_t k = nm->out_begin[code]; k < nm->out_begin[code + 1]; k++)
        edit_event(q, nm->out[k], from, to, RM_EVENT_MAKE);
    return rank;
}

/* Most moves have one edit and are refused. Their lists are never touched. */
void rm_seq_settle(rm_seq *q)
{
    while (q->n_settled < q->n_edits) {
        rm_edit *e = &q->edits[q->n_settled++];
        e->rank = edit_lists(q, e->from, e->to, e->code, q->n_set);
    }
}

static void record(rm_seq *q, uint32_t from, uint32_t to, rm_code code)
{
    count(q, from, to, code);
    assert(q->n_edits < q->max_edits);
    q->edits[q->n_edits++] = (rm_edit){from, to, code, 0};
}

static void take_back(rm_seq *q)
{
    const rm_edit e = q->edits[--q->n_edits];
    count(q, e.to, e.from, e.code);
    if (q->n_edits >= q->n_settled) return;
    edit_lists(q, e.to, e.from, e.code, e.rank);
    q->n_settled--;
}

/* Is there room for an edit of so many events? */
static bool begin_edit(rm_seq *q, size_t events)
{
    q->work += WORK_A_EVENT * (int64_t)events;
    if (q->n_settled < q->n_edits) rm_seq_settle(q);
    if (RM_LIKELY(q->n_edits + 2 <= q->max_edits && q->n_ranges + events + 2 <= q->max_ranges))
        return true;
    q->crowded = true;
    return false;
}

static bool can_be_fetched(const rm_seq *q, uint32_t store, uint32_t slot)
{
    const uint32_t value = q->nm->value[store];
    if (!q->transfer || q->nm->g->root[value] != value) return false;
    if (rm_event_find(q, store, slot) == 0) return false; /* not made yet */
    const int64_t transfer = q->transfer[store];
    if (transfer > RM_MAX_SUM / 2 || q->cost > RM_MAX_SUM - 2 * transfer) return false;
    return q->fetches[store] || q->host_bytes + q->nm->bytes[store] <= q->host_limit;
}

static bool weigh_insert(rm_seq *q, uint32_t slot, rm_code code)
{
    const rm_normal *nm = q->nm;
    if (rm_is_fetch(nm, code))
        return can_be_fetched(q, code - nm->n_ops, slot) &&
               add_make(q, code - nm->n_ops, slot, REMAT_NONE);
    if (q->cost > RM_MAX_SUM - nm->cost[code]) return false;
    for (uint32_t k = nm->in_begin[code]; k < nm->in_begin[code + 1]; k++)
        if (!add_read(q, nm->in[k], slot, rm_read_kind(nm, k))) return false;
    for (uint32_t k = nm->out_begin[code]; k < nm->out_begin[code + 1]; k++)
        if (!add_make(q, nm->out[k], slot, code)) return false;
    add_range(q, slot, slot, nm->workspace[code]);
    return true;
}

static bool weigh_remove(rm_seq *q, uint32_t slot, rm_code code)
{
    const rm_normal *nm = q->nm;
    if (rm_is_fetch(nm, code)) return drop_make(q, code - nm->n_ops, slot);
    for (uint32_t k = nm->out_begin[code]; k < nm->out_begin[code + 1]; k++)
        if (!drop_make(q, nm->out[k], slot)) return false;
    for (uint32_t k = nm->in_begin[code]; k < nm->in_begin[code + 1]; k++)
        drop_read(q, nm->in[k], slot);
    add_range(q, slot, slot, -nm->workspace[code]);
    return true;
}

bool rm_seq_insert(rm_seq *q, uint32_t slot, rm_code code)
{
    if (!rm_is_fetch(q->nm, code) && q->nm->pinned[code]) return false;
    if (!begin_edit(q, rm_code_events(q->nm, code))) return false;
    assert(q->at[slot] == RM_EMPTY);
    const size_t n_ranges = q->n_ranges;
    if (!weigh_insert(q, slot, code)) {
        q->n_ranges = n_ranges;
        return false;
    }
    record(q, RM_EMPTY, slot, code);
    return true;
}

bool rm_seq_remove(rm_seq *q, uint32_t slot)
{
    if (!begin_edit(q, 0)) return false;
    const rm_code code = q->at[slot];
    assert(code != RM_EMPTY);
    if (!rm_is_fetch(q->nm, code) && q->runs[code] == 1) return false;
    if (!begin_edit(q, rm_code_events(q->nm, code))) return false;
    const size_t n_ranges = q->n_ranges;
    if (!weigh_remove(q, slot, code)) {
        q->n_ranges = n_ranges;
        return false;
    }
    record(q, slot, RM_EMPTY, code);
    return true;
}

/* ---- sliding: an insertion and a removal at once ---- */

/* A life that ended (or began) at `from` now does so at `to`. */
static void shift_range(rm_seq *q, uint32_t from, uint32_t to, int64_t bytes)
{
    if (from < to) add_range(q, from + 1, to, bytes);
    else add_range(q, to + 1, from, -bytes);
}

/* The read at `from`, the i-th event of its list, moves to `to`, before the j-th event. */
static bool slide_read(rm_seq *q, uint32_t store, uint32_t from, uint32_t to, rm_event_kind kind)
{
    const uint32_t i = rm_event_find(q, store, from), j = rm_event_find(q, store, to);
    const uint32_t old_end = rm_event_end(rm_event_of(from, kind)),
                   new_end = rm_event_end(rm_event_of(to, kind));
    const int64_t bytes = q->nm->bytes[store];
    if (j == 0) return false;
    if (j == i || j == i + 1) { /* past no other event */
        if (!rm_event_is_read(q, store, i + 1)) shift_range(q, old_end, new_end, bytes);
        return true;
    }
    if (!rm_event_is_read(q, store, i + 1))
        add_range(q, rm_event_end_before(q, store, i) + 1, old_end, -bytes);
    if (!rm_event_is_read(q, store, j))
        add_range(q, rm_event_end_before(q, store, j) + 1, new_end, bytes);
    return true;
}

/* The same for a make. */
static bool slide_make(rm_seq *q, uint32_t store, uint32_t from, uint32_t to)
{
    const uint32_t i = rm_event_find(q, store, from), j = rm_event_find(q, store, to);
    const int64_t bytes = q->nm->bytes[store];
    if (j == i || j == i + 1) {
        if (rm_event_is_read(q, store, i + 1)) {
            if (to < from) add_range(q, to, from - 1, bytes);
            else add_range(q, from, to - 1, -bytes);
            return true;
        }
        add_range(q, from, from, -bytes);
        add_range(q, to, to, bytes);
        return true;
    }
    if (!may_drop_make(q, store, from, i)) return false;
    if (!rm_event_is_read(q, store, j)) add_range(q, to, to, bytes);
    else add_range(q, rm_event_end_before(q, store, j) + 1, to - 1, -bytes); /* j > 0: to > 0 */
    if (!rm_event_is_read(q, store, i + 1)) add_range(q, from, from, -bytes);
    else add_range(q, rm_event_end_before(q, store, i) + 1, from - 1, bytes);
    return true;
}

static bool has_token(const rm_seq *q, rm_code op)
{
    const rm_normal *nm = q->nm;
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++) {
        const uint32_t s = nm->out[k];
        if (nm->base[s] != REMAT_NONE || nm->token_begin[s] != nm->token_begin[s + 1]) return true;
    }
    for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
        if (nm->base[nm->in[k]] != REMAT_NONE) return true;
    return false;
}

/* Steps with tokens and fetches slide in two edits: an insertion, then a removal. */
static bool slide_slowly(rm_seq *q, uint32_t from, uint32_t to, rm_code code)
{
    const size_t n_ranges = q->n_ranges;
    if (weigh_insert(q, to, code)) {
        record(q, RM_EMPTY, to, code);
        rm_seq_settle(q);
        if (weigh_remove(q, from, code)) {
            record(q, from, RM_EMPTY, code);
            return true;
        }
        take_back(q);
        if (!rm_is_fetch(q->nm, code) && q->nm->pinned[code]) q->pin_slot[code] = from;
    }
    q->n_ranges = n_ranges;
    return false;
}

static bool weigh_slide(rm_seq *q, uint32_t from, uint32_t to, rm_code op)
{
    const rm_normal *nm = q->nm;
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
        if (!make_room(q, nm->out[k]) || !slide_make(q, nm->out[k], from, to)) return false;
    for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
        if (!make_room(q, nm->in[k]) || !slide_read(q, nm->in[k], from, to, rm_read_kind(nm, k)))
            return false;
    add_range(q, from, from, -nm->workspace[op]);
    add_range(q, to, to, nm->workspace[op]);
    return true;
}

bool rm_seq_slide(rm_seq *q, uint32_t from, uint32_t to)
{
    const rm_normal *nm = q->nm;
    if (!begin_edit(q, 0)) return false;
    const rm_code code = q->at[from];
    assert(code != RM_EMPTY && q->at[to] == RM_EMPTY);
    const size_t n_ranges = q->n_ranges;
    if (!begin_edit(q, 2 * rm_code_events(nm, code) + 2)) return false;
    if (!rm_is_fetch(nm, code) && nm->pinned[code] && !may_stand(q, code, to)) return false;
    if (rm_is_fetch(nm, code) || has_token(q, code)) return slide_slowly(q, from, to, code);
    if (!weigh_slide(q, from, to, code)) {
        q->n_ranges = n_ranges;
        return false;
    }
    record(q, from, to, code);
    return true;
}

/* ---- moves ---- */

/* The work of looking at the ranges from the given one on, or of taking them in. */
static void count_ranges(rm_seq *q, size_t from)
{
    for (size_t i = from; i < q->n_ranges; i++)
        q->work += WORK_A_RANGE +
                   (q->ranges[i].last - q->ranges[i].first) / (BLOCKS_A_WORK * RM_PROFILE_BLOCK);
}

void rm_seq_flush(rm_seq *q)
{
    rm_seq_settle(q);
    count_ranges(q, q->n_flushed);
    rm_profile_add(&q->memory, q->ranges + q->n_flushed, q->n_ranges - q->n_flushed);
    q->n_flushed = q->n_ranges;
}

int64_t rm_seq_peak(rm_seq *q)
{
    if (q->n_ranges - q->n_flushed > RM_PROFILE_LOOK) rm_seq_flush(q);
    count_ranges(q, q->n_flushed);
    q->work += q->memory.n_blocks / BLOCKS_A_WORK;
    return q->nm->resident_bytes +
           rm_profile_look(&q->memory, q->ranges + q->n_flushed, q->n_ranges - q->n_flushed);
}

int64_t rm_seq_excess(rm_seq *q, int64_t limit, int64_t before)
{
    if (q->n_flushed == 0 && q->n_ranges <= RM_PROFILE_LOOK) {
        count_ranges(q, 0);
        return before + rm_profile_look_excess(&q->memory, q->ranges, q->n_ranges, limit);
    }
    rm_seq_flush(q);
    q->work += q->memory.n_blocks / BLOCKS_A_WORK;
    return rm_profile_excess(&q->memory, limit);
}

bool rm_seq_may_sink(const rm_seq *q)
{
    return q->n_flushed || rm_profile_may_sink(&q->memory, q->ranges, q->n_ranges);
}

#ifdef RM_CHECKED
static bool is_small(const rm_seq *q) { return (uint64_t)q->n_slots * q->nm->n_stores < 1 << 12; }
#endif

void rm_seq_keep(rm_seq *q)
{
    rm_seq_settle(q);
    if (q->n_flushed < q->n_ranges) rm_seq_flush(q);
    q->n_ranges = q->n_flushed = q->n_edits = q->n_settled = 0;
    RM_CHECK(is_small(q), rm_seq_check(q));
}

void rm_seq_undo(rm_seq *q)
{
    while (q->n_edits) take_back(q);
    if (q->n_flushed) {
        q->n_ranges = q->n_flushed;
        count_ranges(q, 0);
        rm_profile_undo(&q->memory, q->ranges, q->n_flushed);
    }
    q->n_ranges = q->n_flushed = 0;
}

/* ---- whole sequences ---- */

enum { SPARE_EVENTS = 3 }; /* room in every list, besides what it holds */

/* Is there room for all steps and their events, and does their cost stay below 2^62? A fetch counts
 * as if it needed an offload of its own. */
static bool can_load(const rm_seq *q, const rm_code *codes, size_t n)
{
    const rm_normal *nm = q->nm;
    uint64_t events = SPARE_EVENTS * (uint64_t)nm->n_stores;
    int64_t cost = 0;
    if (n >= q->n_slots) return false;
    for (size_t i = 0; i < n; i++) {
        const bool fetch = rm_is_fetch(nm, codes[i]);
        const int64_t x = fetch ? q->transfer[codes[i] - nm->n_ops] : nm->cost[codes[i]];
        events += rm_code_events(nm, codes[i]);
        if (rm_add_overflows(cost, x, &cost) || (fetch && rm_add_overflows(cost, x, &cost)) ||
            cost >= RM_MAX_SUM)
            return false;
    }
    return events <= q->pool_size;
}

/* Empty lists, with room for their events and a few more. */
static void lay_out_lists(rm_seq *q, const rm_code *codes, size_t n)
{
    const rm_normal *nm = q->nm;
    memset(q->events, 0, nm->n_stores * sizeof *q->events);
    for (size_t i = 0; i < n; i++) {
        const rm_code c = codes[i];
        if (rm_is_fetch(nm, c)) {
            q->events[c - nm->n_ops].room++;
            continue;
        }
        for (uint32_t k = nm->in_begin[c]; k < nm->in_begin[c + 1]; k++)
            q->events[nm->in[k]].room++;
        for (uint32_t k = nm->out_begin[c]; k < nm->out_begin[c + 1]; k++)
            q->events[nm->out[k]].room++;
    }
    q->pool_used = 0;
    for (uint32_t s = 0; s < nm->n_stores; s++) {
        q->events[s].begin = q->pool_used;
        q->events[s].room += SPARE_EVENTS;
        q->pool_used += q->events[s].room;
    }
    q->work += WORK_A_EVENT * (int64_t)q->pool_used + q->n_slots / BLOCKS_A_WORK;
}

/* The ranges of a step behind all others: the lives of its outputs begin, those of its inputs go
 * on. */
static void load_step(rm_seq *q, uint32_t slot, rm_code code)
{
    const rm_normal *nm = q->nm;
    if (rm_is_fetch(nm, code)) {
        begin_life(q, code - nm->n_ops, slot, rm_event_find(q, code - nm->n_ops, slot));
        return;
    }
    for (uint32_t k = nm->in_begin[code]; k < nm->in_begin[code + 1]; k++)
        extend_life(q, nm->in[k], rm_event_of(slot, rm_read_kind(nm, k)),
                    rm_event_find(q, nm->in[k], slot));
    for (uint32_t k = nm->out_begin[code]; k < nm->out_begin[code + 1]; k++) {
        const uint32_t s = nm->out[k], i = rm_event_find(q, s, slot);
        const bool lasts = nm->is_output[s] && i == 0; /* its only other event is the end */
        if (lasts) add_range(q, slot, q->n_slots - 1, nm->bytes[s]);
        else begin_life(q, s, slot, i);
    }
    add_range(q, slot, slot, nm->workspace[code]);
}

/* No steps and no move: only the last reads of graph outputs. */
static void clear(rm_seq *q)
{
    const rm_normal *nm = q->nm;
    for (uint32_t slot = 0; slot < q->n_slots; slot++) q->at[slot] = RM_EMPTY;
    memset(q->runs, 0, nm->n_ops * sizeof *q->runs);
    memset(q->fetches, 0, nm->n_stores * sizeof *q->fetches);
    rm_profile_clear(&q->memory);
    q->n_ranges = q->n_flushed = q->n_edits = q->n_settled = 0;
    q->n_steps = q->n_set = 0;
    q->cost = q->host_bytes = 0;
    q->crowded = false;
    for (uint32_t s = 0; s < nm->n_stores; s++)
        if (nm->is_output[s]) put(q, s, 0, rm_event_of(q->n_slots, RM_EVENT_READ));
}

bool rm_seq_load(rm_seq *q, const rm_code *codes, size_t n)
{
    if (!can_load(q, codes, n)) return false;
    lay_out_lists(q, codes, n);
    clear(q);
    for (size_t i = 0; i < n; i++) {
        const uint32_t slot = (uint32_t)((i + 1) * q->n_slots / (n + 1));
        load_step(q, slot, codes[i]);
        record(q, RM_EMPTY, slot, codes[i]);
        rm_seq_settle(q);
        rm_profile_sketch(&q->memory, q->ranges, q->n_ranges);
        q->n_ranges = q->n_edits = q->n_settled = 0;
    }
    rm_profile_finish(&q->memory);
    RM_CHECK(is_small(q), rm_seq_check(q));
    return true;
}

size_t rm_seq_codes(rm_seq *q, rm_code *out)
{
    rm_seq_settle(q);
    size_t n = 0;
    for (uint32_t slot = 0; slot < q->n_slots; slot++)
        if (q->at[slot] != RM_EMPTY) out[n++] = q->at[slot];
    return n;
}

static void link_pins(rm_seq *q)
{
    uint32_t last = REMAT_NONE;
    for (uint32_t op = 0; op < q->nm->n_ops; op++) {
        q->pin_before[op] = q->pin_after[op] = REMAT_NONE;
        if (!q->nm->pinned[op]) continue;
        q->pin_before[op] = last;
        if (last != REMAT_NONE) q->pin_after[last] = op;
        last = op;
    }
}

/* Lays all arrays out in one block. Returns its size. Called without a block it only adds up. */
static size_t place(rm_seq *q, char *block)
{
    const size_t n_ops = q->nm->n_ops, n_stores = q->nm->n_stores;
    size_t used = 0;
#define ARRAY(field, n)                                                                            \
    do {                                                                                           \
        if (block) q->field = (void *)(block + used);                                              \
        used += ((n) * sizeof *q->field + 15) / 16 * 16;                                           \
    } while (0)
    ARRAY(ranges, q->max_ranges);
    ARRAY(edits, q->max_edits);
    ARRAY(events, n_stores);
    ARRAY(at, q->n_slots);
    ARRAY(set, q->n_slots);
    ARRAY(rank, q->n_slots);
    ARRAY(pool, q->pool_size);
    ARRAY(runs, n_ops);
    ARRAY(pin_slot, n_ops);
    ARRAY(pin_before, n_ops);
    ARRAY(pin_after, n_ops);
    ARRAY(fetches, n_stores);
#undef ARRAY
    return used;
}

remat_status rm_seq_new(remat_ctx *ctx, const rm_normal *nm, uint32_t n_slots, rm_seq *out)
{
    rm_seq q = {.heap = ctx->heap, .nm = nm, .n_slots = n_slots, .max_edits = 4096};
    size_t most = 0;
    for (uint32_t op = 0; op < nm->n_ops; op++)
        most = rm_code_events(nm, op) > most ? rm_code_events(nm, op) : most;
    const uint64_t events = (uint64_t)nm->in_begin[nm->n_ops] + nm->out_begin[nm->n_ops];
    const uint64_t pool =
        8 * (uint64_t)nm->n_stores + events + events * (n_slots / (nm->n_ops + 1)) + 64;
    if (n_slots > INT32_MAX / 4 || pool > UINT32_MAX)
        return rm_fail(ctx, REMAT_E_USAGE, "%u slots are too many", n_slots);
    q.pool_size = (uint32_t)pool;
    q.max_ranges = 4 * q.max_edits + 4 * most;
    char *block = rm_alloc(ctx, place(&q, NULL));
    if (!block) return REMAT_E_MEMORY;
    place(&q, block);
    const remat_status status = rm_profile_new(ctx, n_slots, &q.memory);
    if (status != REMAT_OK) {
        rm_release(&ctx->heap, block, place(&q, NULL));
        return status;
    }
    q.host_limit = INT64_MAX;
    link_pins(&q);
    *out = q;
    return REMAT_OK;
}

void rm_seq_free(rm_seq *q)
{
    if (!q->ranges) return;
    rm_profile_free(&q->heap, &q->memory);
    rm_release(&q->heap, q->ranges, place(q, NULL));
    q->ranges = NULL;
}
