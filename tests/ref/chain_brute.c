/* chain_brute.c: see chain_brute.h. A memory state is a number of 27 bits. There is always exactly
 * one delta (B^l turns delta^l into delta^(l-1)), and the stages that have been forwarded are
 * always a prefix, so both are indices. */
#include "chain_brute.h"

#include <stdlib.h>
#include <string.h>

typedef struct state {    /* bit l of a mask is stage l */
    uint32_t a, abar;     /* stored */
    uint32_t lock;        /* Fck^i or Fall^i has run, B^i not yet */
    uint32_t delta, seen; /* delta^delta is stored; stages 1 .. seen have been forwarded */
} state;

typedef uint32_t key;

static key pack(state s)
{
    return s.a | (s.abar | (s.lock | (s.delta | s.seen << 3) << 7) << 7) << 7;
}
static state unpack(key k)
{
    return (state){k & 127, k >> 7 & 127, k >> 14 & 127, k >> 21 & 7, k >> 24 & 7};
}
static state beginning(uint32_t last) { return (state){.a = 1, .delta = last}; }

/* keep^l is stored from the first forward of l to B^l. */
static int64_t stored(const remat_stage *stages, uint32_t last, state s)
{
    int64_t sum = stages[s.delta].delta;
    for (uint32_t l = 0; l <= last; l++) {
        if (s.a >> l & 1) sum += stages[l].a;
        if (s.abar >> l & 1) sum += stages[l].abar;
        if (l >= 1 && l <= s.seen && l <= s.delta) sum += stages[l].keep;
    }
    return sum;
}

/* Performs one operation of Table 1; false: its inputs are not there. */
static bool perform(const remat_stage *stages, state *s, uint32_t kind, uint32_t l,
                    int64_t in_memory, int64_t *memory, int64_t *time)
{
    const remat_stage *x = &stages[l];
    const uint32_t here = UINT32_C(1) << l, before = here >> 1;
    if (!((s->a | s->abar) & before)) return false;
    if (kind == REMAT_B) {
        if (s->delta != l || !(s->abar & here)) return false;
        *memory = in_memory + stages[l - 1].delta + x->ob;
        *time = x->tb;
        s->delta = l - 1;
        s->abar &= ~here;
        s->a &= ~before;
        return true;
    }
    if (kind == REMAT_F_NONE && s->abar & here) return false;
    *memory = in_memory + (kind == REMAT_F_ALL ? x->abar : x->a) + x->of;
    *time = x->tf;
    if (s->seen < l) s->seen = l, *memory += x->keep;
    if (kind == REMAT_F_ALL) s->abar |= here;
    else s->a |= here;
    if (kind == REMAT_F_NONE) s->a &= ~before;
    return true;
}

/* Definition 4.1. May the operation run, and what is locked after it? */
static bool respects_locks(uint32_t *lock, uint32_t kind, uint32_t l)
{
    const uint32_t here = UINT32_C(1) << l;
    if (*lock >= 2 * here) return false;
    if (kind == REMAT_F_NONE) return !(*lock & here);
    if (kind == REMAT_B) *lock &= ~here;
    else *lock |= here;
    return true;
}

/* ---- judging ---- */

brute_verdict brute_judge(const remat_stage *stages, uint32_t n_stages, const remat_step *steps,
                          size_t n_steps)
{
    const brute_verdict bad = {false, -1, -1, REMAT_NONE, REMAT_NONE};
    state s = beginning(n_stages + 1);
    brute_verdict v = {true, stored(stages, n_stages + 1, s), 0, REMAT_NONE, REMAT_NONE};
    for (uint32_t t = 0; t < n_steps; t++) {
        int64_t memory = 0, time = 0;
        const remat_step step = steps[t];
        const bool known = step.kind >= REMAT_F_ALL && step.kind <= REMAT_B && step.index >= 1 &&
                           step.index <= n_stages + 1;
        if (!known || !perform(stages, &s, step.kind, step.index, stored(stages, n_stages + 1, s),
                               &memory, &time)) {
            v = bad;
            v.first_bad_step = t;
            return v;
        }
        v.cost += time;
        if (v.peak_step == REMAT_NONE || memory > v.peak) v.peak = memory, v.peak_step = t;
    }
    return s.delta == 0 ? v : bad;
}

bool brute_is_persistent(const remat_step *steps, size_t n_steps)
{
    uint32_t lock = 0;
    for (size_t t = 0; t < n_steps; t++)
        if (!respects_locks(&lock, steps[t].kind, steps[t].index)) return false;
    return true;
}

/* ---- Dijkstra, with a queue of lists by distance: distances are small integers ---- */

typedef struct place {
    key k;
    uint32_t round;
    int64_t distance;
} place; /* of the hash table; used if `round` is this round's */
typedef struct entry {
    key k;
    uint32_t next;
} entry;

enum { FEWEST_PLACES = 1 << 12 };

typedef struct table {
    place *places;
    size_t capacity;
} table;

struct brute {
    table table, spare; /* hash tables: the one in use, and the one to grow into */
    entry *entries;
    uint32_t *lists; /* by distance: 1 + the first entry, or 0 */
    /* n_places: of table, in use. Every search begins with few, so that short ones stay in cache.
     */
    size_t n_places, n_used, n_entries, entry_capacity, n_lists;
    uint32_t round;
    int64_t enough; /* nothing as far as that is of interest */
};

static void *must(void *p)
{
    if (!p) abort();
    return p;
}

brute *brute_new(void) { return must(calloc(1, sizeof(brute))); }

void brute_free(brute *b)
{
    if (b) free(b->table.places), free(b->spare.places), free(b->entries), free(b->lists), free(b);
}

static place *find(brute *b, key k)
{
    const uint32_t mixed = k * UINT32_C(2654435769);
    place *const places = b->table.places;
    size_t i = (mixed ^ mixed >> 15) & (b->n_places - 1);
    while (places[i].round == b->round && places[i].k != k) i = (i + 1) & (b->n_places - 1);
    return &places[i];
}

/* An empty table of n places, a power of two. What another round left there is not seen. */
static void use_places(brute *b, size_t n)
{
    if (b->table.capacity < n) {
        free(b->table.places);
        b->table = (table){must(calloc(n, sizeof(place))), n};
    }
    b->n_places = n;
    b->round++;
}

static void grow_places(brute *b)
{
    const table old = b->table;
    const size_t n = b->n_places;
    const uint32_t round = b->round;
    b->table = b->spare;
    b->spare = old;
    use_places(b, 2 * n);
    for (size_t i = 0; i < n; i++)
        if (old.places[i].round == round)
            *find(b, old.places[i].k) = (place){old.places[i].k, b->round, old.places[i].distance};
}

static void reach(brute *b, key k, int64_t distance)
{
    if (distance >= b->enough) return;
    if (2 * b->n_used >= b->n_places) grow_places(b);
    place *p = find(b, k);
    if (p->round == b->round && p->distance <= distance) return;
    if (p->round != b->round) b->n_used++;
    *p = (place){k, b->round, distance};
    const size_t d = (size_t)distance;
    if (d >= b->n_lists) {
        const size_t n = 2 * d + 64;
        b->lists = must(realloc(b->lists, n * sizeof *b->lists));
        memset(b->lists + b->n_lists, 0, (n - b->n_lists) * sizeof *b->lists);
        b->n_lists = n;
    }
    if (b->n_entries == b->entry_capacity) {
        b->entry_capacity = 2 * b->entry_capacity + 1024;
        b->entries = must(realloc(b->entries, b->entry_capacity * sizeof *b->entries));
    }
    b->entries[b->n_entries] = (entry){k, b->lists[d]};
    b->lists[d] = (uint32_t)++b->n_entries;
}

/* budget < 0: the distance is the peak; else it is the time of what has run before, within the
 * budget: that every stage is forwarded once and run backward once, never twice, goes without
 * saying. */
static void leave(brute *b, const remat_stage *stages, uint32_t last, brute_kind kind,
                  int64_t budget, key k, int64_t distance)
{
    const state from = unpack(k);
    const int64_t in_memory = stored(stages, last, from);
    for (uint32_t l = 1; l <= last; l++) {
        if (!((from.a | from.abar) >> (l - 1) & 1)) continue; /* no operation can run there */
        for (uint32_t op = REMAT_F_ALL; op <= REMAT_B; op++) {
            state s = from;
            int64_t memory, time, memory_b, time_b;
            if (kind == BRUTE_REVOLVE && op == REMAT_B) continue; /* it comes with its Fall */
            if (!perform(stages, &s, op, l, in_memory, &memory, &time)) continue;
            if (kind != BRUTE_ALL && !respects_locks(&s.lock, op, l)) continue;
            if (kind == BRUTE_REVOLVE && op == REMAT_F_ALL) {
                if (!perform(stages, &s, REMAT_B, l, stored(stages, last, s), &memory_b, &time_b))
                    continue;
                respects_locks(&s.lock, REMAT_B, l);
                if (memory_b > memory) memory = memory_b;
            }
            if (budget < 0) reach(b, pack(s), memory > distance ? memory : distance);
            else if (memory <= budget)
                reach(b, pack(s), distance + (op == REMAT_B || from.seen < l ? 0 : time));
        }
    }
}

/* The least distance to the end, or -1 if that is not below `enough`. */
static int64_t search(brute *b, const remat_stage *stages, uint32_t n_stages, brute_kind kind,
                      int64_t budget, int64_t enough)
{
    const state begin = beginning(n_stages + 1);
    const int64_t first = stored(stages, n_stages + 1, begin);
    if (n_stages > BRUTE_STAGES) abort();
    if (budget >= 0 && first > budget) return -1;
    use_places(b, FEWEST_PLACES);
    b->n_used = 0, b->n_entries = 0, b->enough = enough;
    if (b->lists) memset(b->lists, 0, b->n_lists * sizeof *b->lists);
    reach(b, pack(begin), budget < 0 ? first : 0);
    for (size_t d = 0; d < b->n_lists; d++)
        while (b->lists[d]) {
            const entry e = b->entries[b->lists[d] - 1];
            b->lists[d] = e.next;
            if (find(b, e.k)->distance != (int64_t)d) continue; /* reached more cheaply since */
            if (unpack(e.k).delta == 0) return (int64_t)d;
            leave(b, stages, n_stages + 1, kind, budget, e.k, (int64_t)d);
        }
    return -1;
}

int64_t brute_cost(brute *b, const remat_stage *stages, uint32_t n_stages, brute_kind kind,
                   int64_t budget, int64_t known)
{
    int64_t once = 0;
    for (uint32_t l = 1; l <= n_stages + 1; l++) once += stages[l].tf + stages[l].tb;
    if (budget < 0 || known == once) return budget < 0 ? -1 : known; /* each stage runs once */
    const int64_t enough = known < 0 ? INT64_MAX : known - once;
    const int64_t more = search(b, stages, n_stages, kind, budget, enough);
    return more < 0 ? known : once + more;
}

int64_t brute_peak(brute *b, const remat_stage *stages, uint32_t n_stages, brute_kind kind)
{
    return search(b, stages, n_stages, kind, -1, INT64_MAX);
}

/* ---- random chains and schedules ---- */

uint32_t random_chain(random_source *r, unsigned flags, remat_stage stages[BRUTE_STAGES + 2])
{
    const bool spiky = random_chance(
        r, 40); /* where floating activations pay: long, activations of all sizes, abar no larger */
    const uint32_t n =
        spiky ? BRUTE_STAGES - random_below(r, 2) : 1 + random_below(r, BRUTE_STAGES);
    const uint32_t widest = spiky ? 6 : 1 + random_below(r, 6),
                   slowest = random_chance(r, 20) ? 1 : 9;
    memset(stages, 0, (BRUTE_STAGES + 2) * sizeof *stages);
    for (uint32_t l = 0; l <= n + 1; l++) {
        remat_stage *s = &stages[l];
        const bool loss = l == n + 1;
        s->name = "";
        if (!loss) {
            s->a = random_below(r, flags & CHAIN_FALLING && l ? (uint32_t)stages[l - 1].a + 1
                                                              : widest + 1);
            s->delta = flags & CHAIN_FREE_DELTA ? random_below(r, widest + 1) : s->a;
        }
        if (l == 0 || (loss && !(flags & CHAIN_LOSS))) continue;
        s->abar = s->a + (random_chance(r, spiky ? 80 : 30) ? 0 : random_below(r, 7));
        if (flags & CHAIN_SMALL_ABAR && random_chance(r, 50))
            s->abar = random_below(r, (uint32_t)s->a + 1);
        s->tf = flags & CHAIN_ZERO_TIMES && random_chance(r, 40) ? 0 : random_below(r, slowest + 1);
        s->tb = flags & CHAIN_ZERO_TIMES && random_chance(r, 40) ? 0 : random_below(r, slowest + 1);
        if (flags & CHAIN_OVERHEADS)
            s->of = random_chance(r, 50) ? random_below(r, 7) : 0,
            s->ob = random_chance(r, 50) ? random_below(r, 7) : 0;
        if (flags & CHAIN_KEEP) s->keep = random_chance(r, 60) ? random_below(r, 5) : 0;
    }
    return n;
}

static bool try_step(const remat_stage *stages, state *s, uint32_t kind, uint32_t l,
                     remat_step *steps, size_t *n)
{
    int64_t memory, time;
    if (!perform(stages, s, kind, l, 0, &memory, &time)) return false;
    steps[(*n)++] = (remat_step){kind, l};
    return true;
}

size_t random_chain_steps(random_source *r, const remat_stage *stages, uint32_t n_stages,
                          remat_step *steps, size_t capacity)
{
    const uint32_t last = n_stages + 1;
    state s = beginning(last);
    size_t n = 0;
    const size_t wander = random_below(r, (uint32_t)capacity - 150);
    for (size_t tries = 0; tries < wander && s.delta; tries++) {
        const uint32_t l = 1 + random_below(r, last), kind = REMAT_F_ALL + random_below(r, 4);
        if (kind != REMAT_F_NONE || l > 1)
            try_step(stages, &s, kind, l, steps, &n); /* without a^0 there is no end */
    }
    while (s.delta) { /* at most a step for every stage below, and B */
        const uint32_t d = s.delta;
        if (try_step(stages, &s, REMAT_B, d, steps, &n)) continue;
        uint32_t l = d;
        while (!((s.a | s.abar) >> (l - 1) & 1)) l--;
        const uint32_t kind = l == d || random_chance(r, 20)   ? REMAT_F_ALL
                              : l == 1 || random_chance(r, 50) ? REMAT_F_CK
                                                               : REMAT_F_NONE;
        if (!try_step(stages, &s, kind, l, steps, &n))
            try_step(stages, &s, REMAT_F_CK, l, steps, &n);
    }
    return n;
}
