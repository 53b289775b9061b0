/* sequence_check.c: the invariants of a sequence, as code.
 *
 * Everything is derived again from the row of slots: what each step reads and makes, how often each
 * op runs, what is in memory when, and what it costs. The lists, the counts and the profile must
 * agree with that. O(slots + events * storages of a step): for tests after every move, and for
 * debug builds. */
#include "sim/sequence.h"

#include <assert.h>
#include <string.h>

#include "sim/events.h"

/* Does the code make the storage, or else read it? */
static bool touches(const rm_normal *nm, rm_code code, uint32_t store, bool makes)
{
    if (rm_is_fetch(nm, code)) return makes && code - nm->n_ops == store;
    const uint32_t *list = makes ? nm->out : nm->in, *begin = makes ? nm->out_begin : nm->in_begin;
    for (uint32_t k = begin[code]; k < begin[code + 1]; k++)
        if (list[k] == store) return true;
    return false;
}

/* Does the code read the storage and may make an output in its place? */
static bool may_take(const rm_normal *nm, rm_code code, uint32_t store)
{
    if (rm_is_fetch(nm, code)) return false;
    for (uint32_t k = nm->in_begin[code]; k < nm->in_begin[code + 1]; k++)
        if (nm->in[k] == store) return nm->may_take[k];
    return false;
}

/* A storage's list is ascending. Its first event is a make. Each event is in a slot whose step
 * touches the storage in that way. A graph output's last event is the read behind all slots. */
static void check_list(const rm_seq *q, uint32_t store)
{
    const rm_normal *nm = q->nm;
    const rm_events *e = &q->events[store];
    assert(e->n <= e->room && e->begin + e->room <= q->pool_used && q->pool_used <= q->pool_size);
    for (uint32_t i = 0; i < e->n; i++) {
        const uint32_t event = rm_event_at(q, store, i), slot = rm_event_slot(event);
        if (i) assert(rm_event_slot(rm_event_at(q, store, i - 1)) < slot);
        else assert(rm_event_is_make(event));
        if (slot == q->n_slots) {
            assert(nm->is_output[store] && !rm_event_is_make(event));
            continue;
        }
        assert(slot < q->n_slots && q->at[slot] != RM_EMPTY);
        assert(touches(nm, q->at[slot], store, rm_event_is_make(event)));
        assert(rm_event_end(event) == slot - may_take(nm, q->at[slot], store));
    }
    if (nm->is_output[store])
        assert(e->n && rm_event_slot(rm_event_at(q, store, e->n - 1)) == q->n_slots);
}

/* Wherever a token is read, its newest instance is not older than that of its base. So between a
 * make of the base and the next make of the token, the token is not read. */
static void check_token(const rm_seq *q, uint32_t token)
{
    const uint32_t base = q->nm->base[token];
    for (uint32_t i = 0; i < q->events[token].n; i++) {
        if (!rm_event_is_read(q, token, i)) continue;
        uint32_t made = i;
        while (!rm_event_is_make(rm_event_at(q, token, made))) made--;
        uint32_t behind_base = rm_event_find(q, base, rm_event_slot(rm_event_at(q, token, i)));
        while (behind_base > 0 && !rm_event_is_make(rm_event_at(q, base, behind_base - 1)))
            behind_base--;
        assert(behind_base > 0);
        assert(rm_event_slot_before(q, base, behind_base) <=
               rm_event_slot(rm_event_at(q, token, made)));
    }
}

typedef struct counts {
    int64_t cost, host_bytes;
    uint64_t events;
    uint32_t steps;
} counts;

/* What the row of slots says. */
static counts count_steps(const rm_seq *q)
{
    const rm_normal *nm = q->nm;
    counts c = {0};
    uint32_t last_pinned = REMAT_NONE;
    for (uint32_t slot = 0; slot < q->n_slots; slot++) {
        const rm_code code = q->at[slot];
        if (code == RM_EMPTY) continue;
        assert(code < nm->n_ops + nm->n_stores);
        assert(q->rank[slot] < q->n_set && q->set[q->rank[slot]] == slot);
        c.steps++;
        c.events += rm_code_events(nm, code);
        if (rm_is_fetch(nm, code)) {
            c.cost += q->transfer[code - nm->n_ops];
            continue;
        }
        c.cost += nm->cost[code];
        if (!nm->pinned[code]) continue;
        assert(q->runs[code] == 1 && q->pin_slot[code] == slot);
        assert(last_pinned == REMAT_NONE || last_pinned < code);
        last_pinned = code;
    }
    for (uint32_t s = 0; s < nm->n_stores && q->transfer; s++)
        if (q->fetches[s]) {
            c.cost += q->transfer[s]; /* the offload */
            c.host_bytes += nm->bytes[s];
        }
    return c;
}

enum { WINDOW = 512 }; /* slots that are checked at a time */

/* An instance lives from its make to its last read; or to the slot before, where that makes another
 * in its place. memory: by slot of the window from `begin` on.
 */
static void add_lives(const rm_seq *q, uint32_t store, uint32_t begin, int64_t *memory)
{
    for (uint32_t i = 0; i < q->events[store].n;) {
        uint32_t last = i;
        while (rm_event_is_read(q, store, last + 1)) last++;
        const uint32_t from = rm_event_slot(rm_event_at(q, store, i));
        uint32_t to = rm_event_slot(rm_event_at(q, store, last));
        if (to < q->n_slots && may_take(q->nm, q->at[to], store)) to--;
        const uint32_t end = to < begin + WINDOW - 1 ? to : begin + WINDOW - 1;
        for (uint32_t slot = from > begin ? from : begin; slot <= end && to >= begin; slot++)
            memory[slot - begin] += q->nm->bytes[store];
        i = last + 1;
    }
}

/* It takes no memory from the heap, so that threads may call it. */
static void check_memory(const rm_seq *q)
{
    const rm_normal *nm = q->nm;
    for (uint32_t begin = 0; begin < q->n_slots; begin += WINDOW) {
        int64_t memory[WINDOW] = {0};
        for (uint32_t s = 0; s < nm->n_stores; s++) add_lives(q, s, begin, memory);
        for (uint32_t slot = begin; slot < q->n_slots && slot < begin + WINDOW; slot++) {
            const rm_code code = q->at[slot];
            const bool runs = code != RM_EMPTY && !rm_is_fetch(nm, code);
            const int64_t expected = memory[slot - begin] + (runs ? nm->workspace[code] : 0);
            assert(rm_profile_at(&q->memory, slot) == expected);
        }
    }
    rm_profile_check(&q->memory);
}

void rm_seq_check(const rm_seq *q)
{
    const rm_normal *nm = q->nm;
    assert(q->n_settled == q->n_edits && q->n_flushed == q->n_ranges);
    uint64_t events = 0;
    uint32_t runs = 0;
    for (uint32_t s = 0; s < nm->n_stores; s++) {
        check_list(q, s);
        if (nm->base[s] != REMAT_NONE) check_token(q, s);
        events += q->events[s].n - nm->is_output[s];
        runs += q->fetches[s];
    }
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        assert(q->runs[op] > 0);
        runs += q->runs[op];
    }
    const counts c = count_steps(q);
    assert(c.steps == q->n_steps && c.steps == q->n_set && c.steps == runs);
    assert(c.events == events);
    assert(c.cost == q->cost && c.host_bytes == q->host_bytes && q->host_bytes <= q->host_limit);
    check_memory(q);
}
