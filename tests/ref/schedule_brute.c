/* schedule_brute.c: see schedule_brute.h.
 *
 * A state is one word: 12 bits say which ops have run, and each value that an op makes has 3 bits.
 * 0 says that nobody will read its newest instance. Another number says which storage instance of
 * its root it refers to: values with the same root and number share one. */
#include "schedule_brute.h"

#include <assert.h>
#include <stdlib.h>

#include "base/heap.h"

enum { MOST_OPS = 12, MOST_VALUES = 17, MOST_OF_A_ROOT = 6, VALUE_BITS = 3, FRESH = 7 };

typedef struct entry {
    int64_t cost;
    uint64_t state;
} entry;

static bool is_cheaper(const void *unused, entry a, entry b)
{
    (void)unused;
    return a.cost < b.cost;
}
RM_HEAP(heap, entry, const void *, is_cheaper)

typedef struct state { /* a word, taken apart */
    uint32_t ran;
    uint8_t refers[MOST_VALUES]; /* by place: the number of a storage instance; 0: not read again */
} state;

typedef struct search {
    const naive_graph *g;
    const uint32_t *order;
    int64_t budget;
    uint32_t n_made, made[MOST_VALUES]; /* by place: a value that an op makes */
    uint32_t *place;                    /* by value; REMAT_NONE: it is resident */
    entry *heap;
    size_t n, room;
    entry *table; /* hash: the least cost of a state, -1: none */
    size_t n_states, table_size;
} search;

bool brute_is_free_view(const naive_graph *g, uint32_t op)
{
    const naive_op *x = &g->ops[op];
    for (uint32_t k = 0; k < x->n_out; k++)
        if (g->values[x->out[k]].root == x->out[k]) return false;
    return x->n_out > 0 && x->cost == 0 && x->workspace == 0 && !x->pinned;
}

bool brute_schedules_can(const naive_graph *g)
{
    uint32_t n_made = 0, *of_root = calloc(g->n_values + 1, sizeof *of_root);
    if (!of_root) abort();
    bool can = g->n_ops <= MOST_OPS;
    for (uint32_t v = 0; v < g->n_values; v++) {
        if (g->values[v].producer == REMAT_NONE) continue;
        if (++n_made > MOST_VALUES || ++of_root[g->values[v].root] > MOST_OF_A_ROOT) can = false;
    }
    free(of_root);
    return can;
}

/* ---- states ---- */

static uint32_t root_at(const search *s, uint32_t place)
{
    return s->g->values[s->made[place]].root;
}

/* Instances of a root are numbered by the first value that refers to them: 1, 2, ... */
static uint64_t pack(const search *s, const state *x)
{
    uint64_t word = x->ran;
    for (uint32_t i = 0; i < s->n_made; i++) {
        uint8_t number[FRESH + 1] = {0}, n = 0;
        for (uint32_t j = 0; j <= i && x->refers[i]; j++)
            if (x->refers[j] && root_at(s, j) == root_at(s, i) && !number[x->refers[j]])
                number[x->refers[j]] = ++n;
        word |= (uint64_t)number[x->refers[i]] << (MOST_OPS + VALUE_BITS * i);
    }
    return word;
}

static state unpack(const search *s, uint64_t word)
{
    state x = {.ran = (uint32_t)(word & ((1u << MOST_OPS) - 1))};
    for (uint32_t i = 0; i < s->n_made; i++)
        x.refers[i] = (uint8_t)(word >> (MOST_OPS + VALUE_BITS * i) & ((1u << VALUE_BITS) - 1));
    return x;
}

static entry *find(const search *s, uint64_t word)
{
    size_t at = (size_t)((word * UINT64_C(0x9E3779B97F4A7C15)) >> 20) & (s->table_size - 1);
    while (s->table[at].cost >= 0 && s->table[at].state != word)
        at = (at + 1) & (s->table_size - 1);
    return &s->table[at];
}

static entry *new_table(size_t size)
{
    entry *table = malloc(size * sizeof *table);
    if (!table) abort();
    for (size_t i = 0; i < size; i++) table[i].cost = -1;
    return table;
}

static void grow_table(search *s)
{
    entry *old = s->table;
    const size_t old_size = s->table_size;
    s->table_size *= 4;
    s->table = new_table(s->table_size);
    for (size_t i = 0; i < old_size; i++)
        if (old[i].cost >= 0) *find(s, old[i].state) = old[i];
    free(old);
}

static void offer(search *s, const state *x, int64_t cost)
{
    const uint64_t word = pack(s, x);
    entry *known = find(s, word);
    if (known->cost >= 0 && known->cost <= cost) return;
    s->n_states += known->cost < 0;
    *known = (entry){cost, word};
    if (2 * s->n_states > s->table_size) grow_table(s);
    if (s->n == s->room) {
        s->room = s->room ? 2 * s->room : 1024;
        s->heap = realloc(s->heap, s->room * sizeof *s->heap);
        if (!s->heap) abort();
    }
    heap_push(NULL, s->heap, s->n++, (entry){cost, word});
}

/* ---- steps ---- */

/* May the op run for the first time? */
static bool is_next(const search *s, uint32_t ran, uint32_t op)
{
    const naive_graph *g = s->g;
    for (uint32_t other = 0; other < op && g->ops[op].pinned; other++)
        if (g->ops[other].pinned && !(ran >> other & 1)) return false;
    if (!s->order || brute_is_free_view(g, op)) return true;
    for (uint32_t t = 0; s->order[t] != op; t++)
        if (!(ran >> s->order[t] & 1)) return false;
    return true;
}

static bool can_run(const search *s, const state *x, uint32_t op)
{
    const naive_op *o = &s->g->ops[op];
    if (x->ran >> op & 1 ? o->pinned : !is_next(s, x->ran, op)) return false;
    for (uint32_t k = 0; k < o->n_in; k++) {
        const uint32_t place = s->place[o->in[k]];
        if (place != REMAT_NONE && x->refers[place] == 0) return false;
    }
    return true;
}

/* Bytes of the storage instances that some value refers to. */
static int64_t bytes_of(const search *s, const state *x)
{
    const naive_graph *g = s->g;
    int64_t bytes = g->resident_bytes;
    for (uint32_t i = 0; i < s->n_made; i++) {
        const uint32_t root = root_at(s, i);
        bool counts = x->refers[i] != 0 && g->values[root].producer != REMAT_NONE;
        for (uint32_t j = 0; j < i && counts; j++)
            counts = root_at(s, j) != root || x->refers[j] != x->refers[i];
        if (counts) bytes += g->values[root].bytes;
    }
    return bytes;
}

/* What a new instance of the view refers to: what the first input of its root does, or else an
 * earlier output. A resident storage has one instance, number 1. */
static uint8_t view_refers(const search *s, const state *before, const state *after, uint32_t op,
                           uint32_t value)
{
    const naive_graph *g = s->g;
    const naive_op *o = &g->ops[op];
    const uint32_t root = g->values[value].root;
    if (g->values[root].producer == REMAT_NONE) return 1;
    for (uint32_t k = 0; k < o->n_in; k++)
        if (g->values[o->in[k]].root == root) return before->refers[s->place[o->in[k]]];
    for (uint32_t k = 0; o->out[k] != value; k++)
        if (g->values[o->out[k]].root == root) return after->refers[s->place[o->out[k]]];
    assert(false); /* a graph that has this alias is refused */
    return 0;
}

/* Output k is made in place of its input: nobody reads that storage instance any more, through any
 * value. False: it cannot. */
static bool take(const search *s, const state *before, state *after, const naive_op *o, uint32_t k)
{
    if (o->inplace[k] == REMAT_NONE) return false;
    const uint32_t place = s->place[o->in[o->inplace[k]]];
    for (uint32_t i = 0; i < s->n_made; i++)
        if (root_at(s, i) == root_at(s, place) && after->refers[i] == before->refers[place])
            after->refers[i] = 0;
    return true;
}

static void run(search *s, const state *x, uint32_t op, int64_t cost)
{
    const naive_op *o = &s->g->ops[op];
    if (!can_run(s, x, op)) return;
    state y = *x;
    y.ran |= 1u << op;
    for (uint32_t k = 0; k < o->n_out; k++) {
        const uint32_t v = o->out[k];
        y.refers[s->place[v]] = s->g->values[v].root == v ? FRESH : view_refers(s, x, &y, op, v);
    }
    for (uint32_t chosen = 0; chosen < 1u << o->n_out; chosen++) {
        state z = y;
        bool can = true;
        for (uint32_t k = 0; k < o->n_out; k++)
            if (chosen >> k & 1) can &= take(s, x, &z, o, k);
        if (can && bytes_of(s, &z) + o->workspace <= s->budget) offer(s, &z, cost + o->cost);
    }
}

static bool is_goal(const search *s, const state *x)
{
    if (x->ran != (1u << s->g->n_ops) - 1) return false;
    for (uint32_t i = 0; i < s->g->n_outputs; i++) {
        const uint32_t place = s->place[s->g->outputs[i]];
        if (place != REMAT_NONE && x->refers[place] == 0) return false;
    }
    return true;
}

static int64_t dijkstra(search *s)
{
    offer(s, &(state){.ran = 0}, 0);
    while (s->n) {
        const entry at = heap_pop(NULL, s->heap, s->n--);
        if (at.cost > find(s, at.state)->cost) continue;
        const state x = unpack(s, at.state);
        if (is_goal(s, &x)) return at.cost;
        for (uint32_t i = 0; i < s->n_made; i++) {
            if (!x.refers[i]) continue;
            state less = x;
            less.refers[i] = 0;
            offer(s, &less, at.cost);
        }
        for (uint32_t op = 0; op < s->g->n_ops; op++) run(s, &x, op, at.cost);
    }
    return BRUTE_NO_SCHEDULE;
}

int64_t brute_least_schedule(const naive_graph *g, const uint32_t *order, int64_t budget_bytes)
{
    assert(brute_schedules_can(g));
    search s = {.g = g, .order = order, .budget = budget_bytes, .table_size = 1 << 12};
    s.table = new_table(s.table_size);
    s.place = malloc((g->n_values + 1) * sizeof *s.place);
    if (!s.place) abort();
    for (uint32_t v = 0; v < g->n_values; v++) {
        s.place[v] = g->values[v].producer == REMAT_NONE ? REMAT_NONE : s.n_made;
        if (s.place[v] != REMAT_NONE) s.made[s.n_made++] = v;
    }
    const int64_t least = g->resident_bytes > budget_bytes ? BRUTE_NO_SCHEDULE : dijkstra(&s);
    free(s.heap), free(s.table), free(s.place);
    return least;
}
