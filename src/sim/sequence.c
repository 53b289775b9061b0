/* sequence.c: the sequence that annealers edit.
 *
 * Each storage has one sorted list of events: the slots that make it and the slots that read it. Between two makes all events are
 * reads, so an instance lives from its make to the event before the next make. A graph output has one more read behind the
 * last slot. So one insertion or removal changes the life of one instance per storage that the op touches, by one range
 * between neighbouring events (e before, f behind, at slot t):
 *
 *     a read at t     f is a read: nothing changes. Otherwise the life that ended at e now ends at t:    (e, t] + bytes
 *     a make at t     f is a read: the life through e..f is cut, e to just before t is free:             (e, t) - bytes
 *                     otherwise a new instance nobody reads:                                              [t, t] + bytes
 *
 * and a removal is the same with the signs turned. The ranges are collected; the memory profile either looks at them (the peak
 * with the move) or takes them in (the move is kept). A move that is refused has then cost a few list edits and no write to memory.
 *
 * Validity: the first event of every list is a make by the op itself (a fetch needs something offloaded before), every op runs,
 * pinned ops run once and in order, and no token is read after its base was made again. O(events of a storage) per list
 * edit (a memmove of a few words), O(slots / 64) for the peak. */
#include "sim/sequence.h"

#include <string.h>

enum { MAKE = 1, READ = 0 };

static uint32_t slot_of(uint32_t event) { return event >> 1; }
static bool is_make(uint32_t event) { return event & 1; }

/* ---- lists ---- */

/* The first event at or behind the slot. */
static uint32_t find(const rm_seq *q, uint32_t store, uint32_t slot)
{
    const uint32_t *list = q->pool + q->events[store].begin;
    uint32_t lo = 0, hi = q->events[store].n;
    while (lo < hi) {
        const uint32_t mid = (lo + hi) / 2;
        if (list[mid] < 2 * slot) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

static bool make_room(rm_seq *q, uint32_t store)
{
    rm_events *e = &q->events[store];
    if (e->n < e->room) return true;
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
    uint32_t *list = q->pool + e->begin;
    for (uint32_t k = e->n++; k > i; k--) list[k] = list[k - 1];
    list[i] = event;
}

static void take(rm_seq *q, uint32_t store, uint32_t i)
{
    rm_events *e = &q->events[store];
    uint32_t *list = q->pool + e->begin;
    e->n--;
    for (uint32_t k = i; k < e->n; k++) list[k] = list[k + 1];
}

static bool read_follows(const rm_seq *q, uint32_t store, uint32_t i)
{
    const rm_events *e = &q->events[store];
    return i < e->n && !is_make(q->pool[e->begin + i]);
}

/* ---- ranges ---- */

static void add_range(rm_seq *q, uint32_t first, uint32_t last, int64_t delta)
{
    if (last >= q->n_slots) last = q->n_slots - 1;
    if (first <= last && delta) q->ranges[q->n_ranges++] = (rm_range){first, last, delta};
}

/* What a make or read at `slot` means, with the events before it ending at i - 1 and those behind it starting at next. */
static void change_life(rm_seq *q, uint32_t store, uint32_t i, uint32_t next, uint32_t slot, bool make, int64_t sign)
{
    const int64_t bytes = sign * q->nm->bytes[store];
    const uint32_t *list = q->pool + q->events[store].begin;
    const bool read = read_follows(q, store, next);
    if (!make) {
        if (!read) add_range(q, slot_of(list[i - 1]) + 1, slot, bytes);
    } else if (!read) {
        add_range(q, slot, slot, bytes);
    } else if (i > 0) {
        if (slot > 0) add_range(q, slot_of(list[i - 1]) + 1, slot - 1, -bytes);
    } else {
        /* The only make: it holds the storage up to the read before the next one. Loading only. */
        uint32_t last = next;
        while (read_follows(q, store, last + 1)) last++;
        add_range(q, slot, slot_of(list[last]), bytes);
    }
}

/* ---- what is allowed ---- */

static uint32_t last_make_before(const rm_seq *q, uint32_t store, uint32_t slot)
{
    const uint32_t *list = q->pool + q->events[store].begin;
    uint32_t i = find(q, store, slot);
    while (i > 0 && !is_make(list[i - 1])) i--;
    return i ? slot_of(list[i - 1]) : RM_EMPTY;
}

/* Is the token, made at `made`, still good at `slot`? */
static bool is_fresh(const rm_seq *q, uint32_t store, uint32_t made, uint32_t slot)
{
    const uint32_t base = q->nm->base[store];
    if (base == REMAT_NONE) return true;
    const uint32_t base_made = last_make_before(q, base, slot);
    return base_made != RM_EMPTY && base_made <= made; /* equal: one op made both */
}

static bool may_read(const rm_seq *q, uint32_t store, uint32_t slot)
{
    if (find(q, store, slot) == 0) return false;
    return q->nm->base[store] == REMAT_NONE || is_fresh(q, store, last_make_before(q, store, slot), slot);
}

/* A make of a base spoils its tokens until they are made again; `op` makes its own again itself. */
static bool may_make(const rm_seq *q, uint32_t store, uint32_t slot, uint32_t op)
{
    const rm_normal *nm = q->nm;
    for (uint32_t k = nm->token_begin[store]; k < nm->token_begin[store + 1]; k++)
        if (nm->producer[nm->tokens[k]] != op && read_follows(q, nm->tokens[k], find(q, nm->tokens[k], slot + 1))) return false;
    return true;
}

/* The make at `slot` goes: do its readers find another, and do fetches still follow a run? */
static bool may_unmake(const rm_seq *q, uint32_t store, uint32_t slot)
{
    const rm_events *e = &q->events[store];
    const uint32_t *list = q->pool + e->begin, i = find(q, store, slot);
    if (i == 0) {
        if (e->n == 1) return true;
        return is_make(list[1]) && !rm_is_fetch(q->nm, q->at[slot_of(list[1])]);
    }
    if (!read_follows(q, store, i + 1) || q->nm->base[store] == REMAT_NONE) return true;
    uint32_t last = i + 1;
    while (read_follows(q, store, last + 1)) last++;
    return is_fresh(q, store, last_make_before(q, store, slot), slot_of(list[last]));
}

static bool may_stand(const rm_seq *q, uint32_t op, uint32_t slot)
{
    const uint32_t before = q->pin_before[op], after = q->pin_after[op];
    return (before == REMAT_NONE || q->pin_slot[before] < slot) && (after == REMAT_NONE || q->pin_slot[after] > slot);
}

/* ---- edits ---- */

static bool has_log_room(rm_seq *q, size_t n_events)
{
    if (q->n_edits + 2 <= q->max_edits && q->n_ranges + n_events + 1 <= q->max_ranges) return true;
    q->crowded = true;
    return false;
}

static void edit_event(rm_seq *q, uint32_t store, uint32_t slot, bool make, bool insert, bool count)
{
    const uint32_t i = find(q, store, slot);
    if (count) change_life(q, store, i, insert ? i : i + 1, slot, make, insert ? 1 : -1);
    if (insert) put(q, store, i, 2 * slot + make);
    else take(q, store, i);
}

static void count_fetch(rm_seq *q, uint32_t store, bool insert)
{
    const bool before = q->fetches[store] > 0;
    q->fetches[store] += insert ? 1 : UINT32_MAX;
    const bool after = q->fetches[store] > 0;
    q->cost += (insert ? q->transfer[store] : -q->transfer[store]) + (after - before) * q->transfer[store];
    q->host_bytes += (after - before) * q->nm->bytes[store];
}

/* The edit itself; `count`: with its ranges. */
static void edit(rm_seq *q, uint32_t slot, rm_code code, bool insert, bool count)
{
    const rm_normal *nm = q->nm;
    if (insert) q->at[slot] = code;
    if (rm_is_fetch(nm, code)) {
        edit_event(q, code - nm->n_ops, slot, MAKE, insert, count);
        count_fetch(q, code - nm->n_ops, insert);
    } else {
        for (uint32_t k = nm->in_begin[code]; k < nm->in_begin[code + 1]; k++)
            edit_event(q, nm->in[k], slot, READ, insert, count);
        for (uint32_t k = nm->out_begin[code]; k < nm->out_begin[code + 1]; k++)
            edit_event(q, nm->out[k], slot, MAKE, insert, count);
        if (count) add_range(q, slot, slot, insert ? nm->workspace[code] : -nm->workspace[code]);
        q->cost += insert ? nm->cost[code] : -nm->cost[code];
        q->runs[code] += insert ? 1 : UINT32_MAX;
        if (nm->pinned[code] && insert) q->pin_slot[code] = slot;
    }
    if (!insert) q->at[slot] = RM_EMPTY;
    q->n_steps += insert ? 1 : UINT32_MAX;
}

static bool may_insert_fetch(rm_seq *q, uint32_t slot, uint32_t store)
{
    const uint32_t value = q->nm->value[store];
    if (!q->transfer || q->nm->g->root[value] != value || find(q, store, slot) == 0) return false;
    if (q->fetches[store] == 0 && q->host_bytes + q->nm->bytes[store] > q->host_limit) return false;
    return make_room(q, store) && may_make(q, store, slot, REMAT_NONE);
}

/* All but the pins. */
static bool may_insert_run(rm_seq *q, uint32_t slot, uint32_t op)
{
    const rm_normal *nm = q->nm;
    for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
        if (!may_read(q, nm->in[k], slot) || !make_room(q, nm->in[k])) return false;
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
        if (!may_make(q, nm->out[k], slot, op) || !make_room(q, nm->out[k])) return false;
    return true;
}

static size_t n_events(const rm_normal *nm, rm_code code)
{
    if (rm_is_fetch(nm, code)) return 1;
    return (nm->in_begin[code + 1] - nm->in_begin[code]) + (nm->out_begin[code + 1] - nm->out_begin[code]);
}

static void make_edit(rm_seq *q, uint32_t slot, rm_code code, bool insert)
{
    edit(q, slot, code, insert, true);
    q->edits[q->n_edits++] = (rm_edit){slot, code, insert};
}

bool rm_seq_insert(rm_seq *q, uint32_t slot, rm_code code)
{
    const rm_normal *nm = q->nm;
    if (!has_log_room(q, n_events(nm, code))) return false;
    if (rm_is_fetch(nm, code)) {
        if (!may_insert_fetch(q, slot, code - nm->n_ops)) return false;
    } else if (nm->pinned[code] || !may_insert_run(q, slot, code)) {
        return false;
    }
    make_edit(q, slot, code, true);
    return true;
}

static bool may_remove(const rm_seq *q, uint32_t slot)
{
    const rm_normal *nm = q->nm;
    const rm_code code = q->at[slot];
    if (rm_is_fetch(nm, code)) return may_unmake(q, code - nm->n_ops, slot);
    for (uint32_t k = nm->out_begin[code]; k < nm->out_begin[code + 1]; k++)
        if (!may_unmake(q, nm->out[k], slot)) return false;
    return true;
}

bool rm_seq_remove(rm_seq *q, uint32_t slot)
{
    const rm_code code = q->at[slot];
    if (!rm_is_fetch(q->nm, code) && q->runs[code] == 1) return false;
    if (!has_log_room(q, n_events(q->nm, code)) || !may_remove(q, slot)) return false;
    make_edit(q, slot, code, false);
    return true;
}

bool rm_seq_slide(rm_seq *q, uint32_t from, uint32_t to)
{
    const rm_normal *nm = q->nm;
    const rm_code code = q->at[from];
    const bool fetch = rm_is_fetch(nm, code);
    const size_t n_ranges = q->n_ranges;
    if (!has_log_room(q, 2 * n_events(nm, code) + 2)) return false;
    if (fetch ? !may_insert_fetch(q, to, code - nm->n_ops) : !may_insert_run(q, to, code)) return false;
    if (!fetch && nm->pinned[code] && !may_stand(q, code, to)) return false;
    make_edit(q, to, code, true);
    if (may_remove(q, from)) {
        make_edit(q, from, code, false);
        return true;
    }
    edit(q, to, code, false, false);
    if (!fetch && nm->pinned[code]) q->pin_slot[code] = from;
    q->n_edits--;
    q->n_ranges = n_ranges;
    return false;
}

/* ---- moves ---- */

static void flush(rm_seq *q)
{
    rm_profile_add(&q->memory, q->ranges + q->n_flushed, q->n_ranges - q->n_flushed);
    q->n_flushed = q->n_ranges;
}

int64_t rm_seq_peak(rm_seq *q)
{
    if (q->n_ranges - q->n_flushed > RM_PROFILE_LOOK) flush(q);
    return q->nm->resident_bytes + rm_profile_look(&q->memory, q->ranges + q->n_flushed, q->n_ranges - q->n_flushed);
}

bool rm_seq_may_sink(const rm_seq *q) { return q->n_flushed || rm_profile_may_sink(&q->memory, q->ranges, q->n_ranges); }

void rm_seq_keep(rm_seq *q)
{
    if (q->n_flushed < q->n_ranges) flush(q);
    q->n_ranges = q->n_flushed = q->n_edits = 0;
}

void rm_seq_undo(rm_seq *q)
{
    while (q->n_edits) {
        const rm_edit *e = &q->edits[--q->n_edits];
        edit(q, e->slot, e->code, !e->inserted, false);
    }
    if (q->n_flushed) rm_profile_undo(&q->memory, q->ranges, q->n_flushed);
    q->n_ranges = q->n_flushed = 0;
}

/* ---- whole sequences ---- */

/* Lists of the right length, with a little room each. False: the pool is too small. */
static bool lay_out_lists(rm_seq *q, const rm_code *codes, size_t n)
{
    const rm_normal *nm = q->nm;
    memset(q->events, 0, nm->n_stores * sizeof *q->events);
    for (size_t i = 0; i < n; i++) {
        const rm_code c = codes[i];
        if (rm_is_fetch(nm, c)) {
            q->events[c - nm->n_ops].room++;
            continue;
        }
        for (uint32_t k = nm->in_begin[c]; k < nm->in_begin[c + 1]; k++) q->events[nm->in[k]].room++;
        for (uint32_t k = nm->out_begin[c]; k < nm->out_begin[c + 1]; k++) q->events[nm->out[k]].room++;
    }
    uint64_t used = 0;
    for (uint32_t s = 0; s < nm->n_stores; s++) {
        q->events[s].begin = (uint32_t)used;
        q->events[s].room += 3;
        used += q->events[s].room;
        if (used > q->pool_size) return false;
    }
    q->pool_used = (uint32_t)used;
    return true;
}

bool rm_seq_load(rm_seq *q, const rm_code *codes, size_t n)
{
    const rm_normal *nm = q->nm;
    if (n >= q->n_slots || !lay_out_lists(q, codes, n)) return false;
    for (uint32_t slot = 0; slot < q->n_slots; slot++) q->at[slot] = RM_EMPTY;
    memset(q->runs, 0, nm->n_ops * sizeof *q->runs);
    memset(q->fetches, 0, nm->n_stores * sizeof *q->fetches);
    rm_profile_clear(&q->memory);
    q->n_ranges = q->n_flushed = q->n_edits = 0;
    q->n_steps = 0;
    q->cost = q->host_bytes = 0;
    q->crowded = false;
    for (uint32_t s = 0; s < nm->n_stores; s++)
        if (nm->is_output[s]) put(q, s, 0, 2 * q->n_slots + READ);
    for (size_t i = 0; i < n; i++) {
        edit(q, (uint32_t)((i + 1) * q->n_slots / (n + 1)), codes[i], true, true);
        rm_seq_keep(q);
    }
    return true;
}

size_t rm_seq_codes(const rm_seq *q, rm_code *out)
{
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

/* One block for all arrays: called once without it, to add up the bytes. */
static size_t place(rm_seq *q, char *block)
{
    const size_t n_ops = q->nm->n_ops, n_stores = q->nm->n_stores;
    const struct {
        void **to;
        size_t bytes;
    } arrays[] = {
        {(void **)&q->ranges, q->max_ranges * sizeof *q->ranges}, {(void **)&q->edits, q->max_edits * sizeof *q->edits},
        {(void **)&q->events, n_stores * sizeof *q->events},      {(void **)&q->at, q->n_slots * sizeof *q->at},
        {(void **)&q->pool, q->pool_size * sizeof *q->pool},      {(void **)&q->runs, n_ops * sizeof *q->runs},
        {(void **)&q->pin_slot, n_ops * sizeof *q->pin_slot},     {(void **)&q->pin_before, n_ops * sizeof *q->pin_before},
        {(void **)&q->pin_after, n_ops * sizeof *q->pin_after},   {(void **)&q->fetches, n_stores * sizeof *q->fetches}};
    size_t used = 0;
    for (size_t i = 0; i < RM_LEN(arrays); i++) {
        if (block) *arrays[i].to = block + used;
        used += (arrays[i].bytes + 15) / 16 * 16;
    }
    return used;
}

remat_status rm_seq_new(remat_ctx *ctx, const rm_normal *nm, uint32_t n_slots, rm_seq *out)
{
    rm_seq q = {.heap = ctx->heap, .nm = nm, .n_slots = n_slots, .max_edits = 4096};
    size_t most = 0;
    for (uint32_t op = 0; op < nm->n_ops; op++) most = n_events(nm, op) > most ? n_events(nm, op) : most;
    const uint64_t events = (uint64_t)nm->in_begin[nm->n_ops] + nm->out_begin[nm->n_ops];
    const uint64_t pool = 8 * (uint64_t)nm->n_stores + events + events * (n_slots / (nm->n_ops + 1)) + 64;
    if (n_slots > INT32_MAX / 2 || pool > UINT32_MAX) return rm_fail(ctx, REMAT_E_USAGE, "%u slots are too many", n_slots);
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
