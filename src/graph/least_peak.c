/* least_peak.c: a lower limit on the peak of every schedule, in any order, that looks back from
 * what must be in memory together.
 *
 * Problem: need.c knows what is in memory while an op runs. But its inputs must have been made,
 * too. Let storages S be in memory together at some time. Of their instances one was made last, by
 * a run of an op P. While P ran, the rest of S was there already, and what P reads, makes and works
 * with; but an input that is not in S, and that P can make an output in place of, need not be there
 * as well. Just before, the rest of S and the inputs of P were in memory together: another such
 * set. So it goes on, until nothing is left. A schedule chooses at each set which storage is made
 * last, and its peak is at least the largest step on that way. docs/model.md has the proof.
 *
 * Method: from the inputs of each op, and from the graph outputs, a search over sets for the way
 * whose largest step is least. The set with the lowest largest step so far comes first. If nothing
 * is left below a level, no schedule has its peak there, and the level rises. A set from which some
 * way leads to the end at the level is remembered, and need not be looked at again.
 *
 * What is left out makes the limit weaker, never false: storages below a 1024th of the level, the
 * smallest of sets with more than MOST_MEMBERS, that pinned ops run once only. A set that holds
 * another is at least as hard, so where a step makes the set smaller and is not above the level, it
 * is the only one looked at.
 *
 * Cost: `work` set members in all, and a search takes an eighth of what is left. It ends where the
 * limit is the peak of a schedule that is known. */
#include "graph/graph.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/csr.h"
#include "base/heap.h"
#include "base/vec.h"

enum {
    MOST_MEMBERS = 24,
    SMALL = 1024,
    TABLE_BITS = 16,
    MOST_PLACES = 1 << 15, /* of a search */
    GOOD_BITS = 16,
    MOST_GOOD = 1 << 15
};

/* Storages in memory together. */
typedef struct set {
    uint32_t n, at[MOST_MEMBERS + 1]; /* ascending */
} set;

/* A set that the search has come to. */
typedef struct place {
    set members;
    uint32_t slot; /* of the table */
    uint32_t from; /* the place before; REMAT_NONE: it is the first */
    int64_t bytes; /* of its members */
    int64_t peak;  /* the largest step on the way to it */
} place;

typedef struct ranked {
    int64_t bytes;
    uint32_t op; /* REMAT_NONE: the end */
} ranked;

/* A place and what it was worth when it was found. */
typedef struct entry {
    int64_t peak, bytes;
    uint32_t place;
} entry;

typedef struct looker {
    remat_ctx *ctx;
    const remat_graph *g;
    rm_need best;
    int64_t known;     /* the peak of a schedule: the best can be no more */
    rm_csr in;         /* by op: large storages that it reads, ascending; not those that it makes */
    uint8_t *taken;    /* parallel to in.items: may the op make an output in its place? */
    int64_t *touched;  /* by op: bytes while it runs, if nothing else is there */
    uint32_t *counted; /* by root value: 1 + the last op that touched it */
    uint32_t *taker;   /* by root value: 1 + the last op that may take its place */
    int64_t work;      /* left */
    RM_VEC(place) places;
    RM_VEC(entry) queue; /* a heap */
    uint32_t *table;     /* 1 + place, by hash; 0: free */
    uint64_t *good;      /* hashes of sets from which a way leads on; 0: free */
    size_t n_good;
} looker;

/* ---- what ops touch ---- */

static bool is_large(const looker *x, uint32_t root)
{
    return x->g->producer[root] != REMAT_NONE && x->g->storage[root] > 0 &&
           x->g->storage[root] >= x->best.bytes / SMALL;
}

/* Answers the bytes of those in the list that are not resident and that `op` did not touch yet. */
static int64_t touch(looker *x, uint32_t op, const uint32_t *list, uint32_t begin, uint32_t end)
{
    const remat_graph *g = x->g;
    int64_t bytes = 0;
    for (uint32_t k = begin; k < end; k++) {
        const uint32_t root = g->root[list[k]];
        if (g->producer[root] == REMAT_NONE || x->counted[root] == op + 1) continue;
        x->counted[root] = op + 1;
        bytes += g->storage[root];
    }
    return bytes;
}

static int ascending(const void *left, const void *right)
{
    const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

/* The large storages that an op reads and does not make, each once. */
static uint32_t list_inputs(const looker *x, uint32_t op, uint32_t *out)
{
    const remat_graph *g = x->g;
    uint32_t n = 0, kept = 0;
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
        const uint32_t root = g->root[g->in[k]];
        if (is_large(x, root) && g->producer[root] != op) out[n++] = root;
    }
    if (n) qsort(out, n, sizeof *out, ascending);
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || out[i] != out[i - 1]) out[kept++] = out[i];
    return kept;
}

/* What the op may make its outputs in place of counts as touched: the outputs are counted. */
static void list_taken(looker *x, uint32_t op)
{
    const remat_graph *g = x->g;
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++) {
        if (g->out_takes[k] == REMAT_NONE) continue;
        const uint32_t root = g->root[rm_taken_value(g, op, k)];
        x->taker[root] = op + 1;
        x->counted[root] = op + 1;
    }
}

static remat_status look_at_ops(looker *x)
{
    const remat_graph *g = x->g;
    uint32_t n = 0;
    TRY(RM_SCRATCH(x->ctx, x->in.begin, (size_t)g->n_ops + 1));
    TRY(RM_SCRATCH(x->ctx, x->in.items, g->n_in));
    TRY(RM_SCRATCH(x->ctx, x->taken, g->n_in));
    TRY(RM_SCRATCH(x->ctx, x->taker, g->n_values));
    TRY(RM_SCRATCH(x->ctx, x->touched, g->n_ops));
    TRY(RM_SCRATCH(x->ctx, x->counted, g->n_values));
    for (uint32_t op = 0; op < g->n_ops; op++) {
        list_taken(x, op);
        x->touched[op] = g->resident_bytes + g->workspace[op] +
                         touch(x, op, g->in, g->in_begin[op], g->in_begin[op + 1]) +
                         touch(x, op, g->out, g->out_begin[op], g->out_begin[op + 1]);
        n += list_inputs(x, op, x->in.items + n);
        x->in.begin[op + 1] = n;
        for (uint32_t k = x->in.begin[op]; k < n; k++)
            x->taken[k] = x->taker[x->in.items[k]] == op + 1;
    }
    return REMAT_OK;
}

/* ---- sets ---- */

static void drop_smallest(const looker *x, set *s)
{
    uint32_t least = 0;
    for (uint32_t i = 1; i < s->n; i++)
        if (x->g->storage[s->at[i]] < x->g->storage[s->at[least]]) least = i;
    memmove(&s->at[least], &s->at[least + 1], (s->n - least - 1) * sizeof *s->at);
    s->n--;
}

/* If there are too many, the smallest goes. */
static void add_member(const looker *x, set *s, uint32_t root)
{
    uint32_t i = s->n++;
    for (; i > 0 && s->at[i - 1] > root; i--) s->at[i] = s->at[i - 1];
    s->at[i] = root;
    if (s->n > MOST_MEMBERS) drop_smallest(x, s);
}

/* Its index, or n. */
static uint32_t find_member(const uint32_t *list, uint32_t n, uint32_t root)
{
    uint32_t i = 0;
    while (i < n && list[i] != root) i++;
    return i;
}

static bool has_member(const uint32_t *list, uint32_t n, uint32_t root)
{
    return find_member(list, n, root) < n;
}

static bool are_equal(const set *a, const set *b)
{
    return a->n == b->n && memcmp(a->at, b->at, a->n * sizeof *a->at) == 0;
}

/* Never 0. */
static uint64_t hash_of(const set *s)
{
    uint64_t hash = (s->n + 1) * UINT64_C(0xBF58476D1CE4E5B9); /* far from any member */
    for (uint32_t i = 0; i < s->n; i++) {
        hash = (hash ^ s->at[i]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    return hash ? hash : 1;
}

/* Two sets of one hash count as the same here. That can only stop a search early. */
static uint64_t *find_good(const looker *x, uint64_t hash)
{
    size_t at = hash >> (64 - GOOD_BITS);
    while (x->good[at] && x->good[at] != hash) at = (at + 1) & ((1 << GOOD_BITS) - 1);
    return &x->good[at];
}

/* ---- steps back ---- */

typedef struct step {
    set before;    /* what was in memory before the op ran */
    int64_t bytes; /* while it ran */
    bool shrinks;  /* the set before is a part of the set behind */
} step;

/* A run of `op` made the last of the set. */
static step step_back(looker *x, const set *behind, uint32_t op)
{
    const remat_graph *g = x->g;
    const uint32_t *in = x->in.items + x->in.begin[op];
    const uint8_t *taken = x->taken + x->in.begin[op];
    const uint32_t n_in = x->in.begin[op + 1] - x->in.begin[op];
    step out = {.before = {.n = 0}, .bytes = x->touched[op], .shrinks = true};
    x->work -= (int64_t)(behind->n + 1) * (n_in + 1);
    for (uint32_t i = 0; i < behind->n; i++) {
        const uint32_t root = behind->at[i];
        if (g->producer[root] == op) continue;
        out.before.at[out.before.n++] = root;
        const uint32_t input = find_member(in, n_in, root);
        if (input == n_in || taken[input]) out.bytes += g->storage[root]; /* it is needed later */
    }
    for (uint32_t i = 0; i < n_in; i++)
        if (!has_member(behind->at, behind->n, in[i])) {
            add_member(x, &out.before, in[i]);
            out.shrinks = false;
        }
    return out;
}

/* ---- a search ---- */

static bool goes_before(const looker *x, entry a, entry b)
{
    (void)x;
    if (a.peak != b.peak) return a.peak < b.peak;
    if (a.bytes != b.bytes) return a.bytes < b.bytes;
    return a.place > b.place;
}
RM_HEAP(next, entry, const looker *, goes_before)

/* The place of the set, or the free one where it belongs. */
static uint32_t *find_place(const looker *x, const set *s)
{
    size_t at = hash_of(s) >> (64 - TABLE_BITS);
    while (x->table[at] && !are_equal(&x->places.items[x->table[at] - 1].members, s))
        at = (at + 1) & ((1 << TABLE_BITS) - 1);
    return &x->table[at];
}

/* Comes to the set, with a peak that is lower than before if it was there already. */
static remat_status come_to(looker *x, const set *s, int64_t peak, uint32_t from)
{
    uint32_t *slot = find_place(x, s);
    if (peak < x->best.bytes) peak = x->best.bytes;
    if (*slot == 0) {
        place new = {.members = *s, .slot = (uint32_t)(slot - x->table), .peak = INT64_MAX};
        for (uint32_t i = 0; i < s->n; i++) new.bytes += x->g->storage[s->at[i]];
        TRY(RM_PUSH(x->ctx, x->places, new));
        *slot = (uint32_t)x->places.n;
    }
    place *at = &x->places.items[*slot - 1];
    if (at->peak <= peak) return REMAT_OK;
    at->peak = peak;
    at->from = from;
    const entry new = {peak, at->bytes, *slot - 1};
    TRY(RM_RESERVE(x->ctx, x->queue, 1));
    next_push(x, x->queue.items, x->queue.n++, new);
    return REMAT_OK;
}

/* Goes on from a place, by whatever may have been made last. */
static remat_status go_on(looker *x, uint32_t from)
{
    const place at = x->places.items[from];
    const uint32_t *producer = x->g->producer;
    step steps[MOST_MEMBERS];
    uint32_t ops[MOST_MEMBERS], n = 0;
    for (uint32_t i = 0; i < at.members.n; i++) {
        const uint32_t op = producer[at.members.at[i]];
        if (has_member(ops, n, op)) continue;
        ops[n] = op;
        steps[n] = step_back(x, &at.members, op);
        if (steps[n].shrinks && steps[n].bytes <= at.peak)
            return come_to(x, &steps[n].before, at.peak, from);
        n++;
    }
    for (uint32_t i = 0; i < n; i++)
        TRY(come_to(x, &steps[i].before, steps[i].bytes > at.peak ? steps[i].bytes : at.peak,
                    from));
    return REMAT_OK;
}

static void remember(looker *x, uint32_t end)
{
    for (uint32_t at = end; at != REMAT_NONE && x->n_good < MOST_GOOD;
         at = x->places.items[at].from) {
        const uint64_t hash = hash_of(&x->places.items[at].members);
        uint64_t *slot = find_good(x, hash);
        x->n_good += *slot == 0;
        *slot = hash;
    }
}

/* What is needed to have these together, for `op`. */
static remat_status look_back(looker *x, const set *first, uint32_t op)
{
    const int64_t enough = x->work - x->work / 8;
    x->places.n = 0;
    x->queue.n = 0;
    remat_status status = come_to(x, first, 0, REMAT_NONE);
    while (status == REMAT_OK && x->queue.n && x->work > enough && x->best.bytes < x->known &&
           x->places.n + MOST_MEMBERS < MOST_PLACES) {
        const entry at = next_pop(x, x->queue.items, x->queue.n--);
        const place *here = &x->places.items[at.place];
        if (at.peak > here->peak) continue; /* another way to it was better */
        if (at.peak > x->best.bytes) x->best = (rm_need){at.peak, op};
        if (here->members.n == 0 || *find_good(x, hash_of(&here->members))) {
            remember(x, at.place);
            break;
        }
        status = go_on(x, at.place);
    }
    for (size_t i = 0; i < x->places.n; i++) x->table[x->places.items[i].slot] = 0;
    return status;
}

/* ---- all ops ---- */

static int by_bytes(const void *left, const void *right)
{
    const ranked *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    return (a->op > b->op) - (a->op < b->op);
}

/* The large storages of the outputs. */
static set list_outputs(const looker *x)
{
    const remat_graph *g = x->g;
    set out = {.n = 0};
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const uint32_t root = g->root[g->outputs[i]];
        if (is_large(x, root) && !has_member(out.at, out.n, root)) add_member(x, &out, root);
    }
    return out;
}

static remat_status look_at_all(looker *x)
{
    const remat_graph *g = x->g;
    ranked *order;
    TRY(RM_SCRATCH(x->ctx, order, g->n_ops));
    for (uint32_t op = 0; op < g->n_ops; op++) order[op] = (ranked){x->touched[op], op};
    if (g->n_ops) qsort(order, g->n_ops, sizeof *order, by_bytes);
    for (uint32_t i = 0; i < g->n_ops && x->work > 0 && x->best.bytes < x->known; i++) {
        const uint32_t op = order[i].op;
        set first = {.n = 0};
        for (uint32_t k = x->in.begin[op]; k < x->in.begin[op + 1]; k++)
            add_member(x, &first, x->in.items[k]);
        TRY(look_back(x, &first, op));
    }
    const set outputs = list_outputs(x);
    return look_back(x, &outputs, REMAT_NONE);
}

remat_status rm_least_peak_find(remat_ctx *ctx, const remat_graph *g, rm_need from, int64_t known,
                                int64_t work, rm_need *out)
{
    looker x = {.ctx = ctx, .g = g, .best = from, .known = known, .work = work};
    *out = from;
    if (from.bytes >= known) return REMAT_OK;
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_status status = RM_SCRATCH(ctx, x.table, (size_t)1 << TABLE_BITS);
    if (status == REMAT_OK) status = RM_SCRATCH(ctx, x.good, (size_t)1 << GOOD_BITS);
    if (status == REMAT_OK) status = look_at_ops(&x);
    if (status == REMAT_OK) status = look_at_all(&x);
    RM_VEC_FREE(&ctx->heap, x.places);
    RM_VEC_FREE(&ctx->heap, x.queue);
    rm_scratch_release(ctx, mark);
    *out = x.best;
    return status;
}
