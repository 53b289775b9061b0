/* order_brute.c: see order_brute.h. */
#include "order_brute.h"

#include <stdlib.h>

#include "base/heap.h"

typedef struct entry {
    int64_t cost;
    uint32_t state;
} entry;

static bool is_cheaper(const void *unused, entry a, entry b)
{
    (void)unused;
    return a.cost < b.cost;
}
RM_HEAP(heap, entry, const void *, is_cheaper)

typedef struct search {
    const rm_normal *nm;
    const uint32_t *order;
    int64_t budget;
    const int64_t *transfer;
    uint32_t places; /* positions within a turn, if there are turns: pass * n_ops + the next op that
                        may run; else 1 */
    uint32_t in[BRUTE_MOST_OPS], out[BRUTE_MOST_OPS], stale[BRUTE_MOST_OPS],
        takes[BRUTE_MOST_OPS], /* those in whose place the op may make its outputs */
        outputs;               /* sets of storages */
    uint32_t last_pinned_before[BRUTE_MOST_OPS]; /* sets of ops: pinned ones that go first */
    uint32_t floats; /* in a fixed order: set of ops that have no place in it */
    uint32_t n_bits; /* of `there`: storages, then flags */
    int64_t *best;   /* by state */
    entry *heap;
    size_t n, room;
} search;

/* A view that costs nothing and reads several storages has no place in the order of first runs
 * (docs/bound.md). */
static bool floats_freely(const rm_normal *nm, uint32_t op)
{
    return nm->cost[op] == 0 && nm->workspace[op] == 0 && !nm->pinned[op] &&
           rm_is_view_op(nm->g, nm->op[op]);
}

static bool is_dead(const rm_normal *nm, uint32_t op)
{
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
        if (nm->is_output[nm->out[k]] ||
            nm->reader_begin[nm->out[k]] < nm->reader_begin[nm->out[k] + 1])
            return false;
    return true;
}

bool brute_can(const rm_normal *nm)
{
    uint32_t n_flags = 0;
    for (uint32_t op = 0; op < nm->n_ops; op++) n_flags += floats_freely(nm, op) && is_dead(nm, op);
    return nm->n_ops <= BRUTE_MOST_OPS && nm->n_stores + n_flags <= BRUTE_MOST_STORES;
}

bool brute_one_instance(const rm_normal *nm)
{
    for (uint32_t w = 0; w < nm->n_stores; w++) {
        const uint32_t base = nm->base[w];
        if (base == REMAT_NONE || nm->producer[w] == nm->producer[base]) continue;
        const uint32_t op = nm->producer[base];
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++) {
            const uint32_t s = nm->out[k];
            if (s != base && nm->base[s] != base && !rm_is_free(nm, s)) return false;
        }
    }
    return true;
}

static void offer(search *s, uint32_t ran, uint32_t there, int64_t cost)
{
    while (s->order && ran < s->nm->n_ops && s->floats >> s->order[ran] & 1) ran++;
    const uint32_t state = ran << s->n_bits | there;
    if (cost >= s->best[state]) return;
    s->best[state] = cost;
    if (s->n == s->room) {
        s->room = s->room ? 2 * s->room : 1024;
        s->heap = realloc(s->heap, s->room * sizeof *s->heap);
        if (!s->heap) abort();
    }
    heap_push(NULL, s->heap, s->n++, (entry){cost, state});
}

static int64_t bytes_of(const rm_normal *nm, uint32_t stores)
{
    int64_t bytes = 0;
    for (uint32_t s = 0; s < nm->n_stores; s++)
        if (stores >> s & 1) bytes += nm->bytes[s];
    return bytes;
}

/* In a fixed order `ran` is how many have run, else the set of them. */
static bool has_run(const search *s, uint32_t ran, uint32_t op)
{
    if (!s->order) return ran >> op & 1;
    for (uint32_t t = 0; t < ran; t++)
        if (s->order[t] == op) return true;
    return false;
}

/* The position behind a run of op; the state's `ran` has the position in it. */
static uint32_t next_ran(const search *s, uint32_t ran, uint32_t op, bool again)
{
    if (s->places <= 1) return again ? ran : s->order ? ran + 1 : ran | 1u << op;
    const uint32_t n = s->nm->n_ops, turn = ran / s->places, at = ran % s->places;
    return again ? turn * s->places + at / n * n + op + 1 : (turn + 1) * s->places;
}

static bool may_be_first(const search *s, uint32_t ran, uint32_t op)
{
    if (s->order) return ran < s->nm->n_ops && s->order[ran] == op;
    return !(s->last_pinned_before[op] & ~ran);
}

/* With a storage go the tokens that stand on it. */
static uint32_t without(const rm_normal *nm, uint32_t there, uint32_t gone)
{
    for (uint32_t x = 0; x < nm->n_stores; x++)
        if (gone >> x & 1 || (nm->base[x] != REMAT_NONE && gone >> nm->base[x] & 1))
            there &= ~(1u << x);
    return there;
}

static void run(search *s, uint32_t ran, uint32_t there, uint32_t op, int64_t cost)
{
    const rm_normal *nm = s->nm;
    const uint32_t all_ran = s->places > 1 ? ran / s->places : ran;
    const bool floats = s->floats >> op & 1, again = floats || has_run(s, all_ran, op);
    if (s->places > 1 && again && (ran % s->places % nm->n_ops > op || all_ran == nm->n_ops))
        return; /* no turn behind the last first run */
    if ((s->in[op] & ~there) || (again ? nm->pinned[op] : !may_be_first(s, all_ran, op))) return;
    for (uint32_t taken = s->takes[op];; taken = (taken - 1) & s->takes[op]) { /* all subsets */
        const uint32_t with = without(nm, there, taken) | s->out[op];
        if (nm->resident_bytes + bytes_of(nm, with) + nm->workspace[op] <= s->budget)
            offer(s, next_ran(s, ran, op, again), with & ~(s->stale[op] & ~s->out[op]),
                  cost + nm->cost[op]);
        if (taken == 0) return;
    }
}

static void fetch(search *s, uint32_t ran, uint32_t there, uint32_t store, int64_t cost)
{
    const rm_normal *nm = s->nm;
    if (nm->g->root[nm->value[store]] != nm->value[store] || !has_run(s, ran, nm->producer[store]))
        return;
    uint32_t with = there | 1u << store;
    if (nm->resident_bytes + bytes_of(nm, with) > s->budget) return;
    for (uint32_t j = nm->token_begin[store]; j < nm->token_begin[store + 1]; j++)
        with &= ~(1u << nm->tokens[j]);
    offer(s, ran, with, cost + s->transfer[store]);
}

static void list_sets(search *s)
{
    const rm_normal *nm = s->nm;
    uint32_t pinned = 0;
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++) {
            s->in[op] |= 1u << nm->in[k];
            if (nm->may_take[k]) s->takes[op] |= 1u << nm->in[k];
        }
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++) {
            s->out[op] |= 1u << nm->out[k];
            for (uint32_t j = nm->token_begin[nm->out[k]]; j < nm->token_begin[nm->out[k] + 1]; j++)
                s->stale[op] |= 1u << nm->tokens[j];
        }
        s->last_pinned_before[op] = nm->pinned[op] ? pinned : 0;
        if (nm->pinned[op]) pinned |= 1u << op;
    }
    for (uint32_t x = 0; x < nm->n_stores; x++)
        if (nm->is_output[x]) s->outputs |= 1u << x;
    s->n_bits = nm->n_stores;
    for (uint32_t op = 0; op < nm->n_ops && s->order && s->places == 1; op++) {
        if (!floats_freely(nm, op)) continue;
        s->floats |= 1u << op;
        if (!is_dead(nm, op)) continue; /* it runs because somebody reads it */
        s->out[op] |= 1u << s->n_bits;
        s->outputs |= 1u << s->n_bits++;
    }
}

static int64_t least_cost(search s)
{
    const rm_normal *nm = s.nm;
    list_sets(&s);
    const size_t n_ran = s.places > 1 ? (size_t)nm->n_ops * s.places + 1
                         : s.order    ? (size_t)nm->n_ops + 1
                                      : (size_t)1 << nm->n_ops;
    const size_t n_states = n_ran << s.n_bits;
    s.best = malloc(n_states * sizeof *s.best);
    if (!s.best) abort();
    for (size_t i = 0; i < n_states; i++) s.best[i] = INT64_MAX;
    int64_t least = BRUTE_NOTHING;
    offer(&s, 0, 0, 0);
    while (s.n) {
        const entry at = heap_pop(NULL, s.heap, s.n--);
        if (at.cost > s.best[at.state]) continue;
        const uint32_t ran = at.state >> s.n_bits, there = at.state & ((1u << s.n_bits) - 1);
        if (ran == n_ran - 1 && !(s.outputs & ~there)) {
            least = at.cost;
            break;
        }
        for (uint32_t x = 0; x < nm->n_stores; x++)
            if (there >> x & 1) offer(&s, ran, there & ~(1u << x), at.cost);
        if (s.places > 1 && ran + 1 < n_ran &&
            ran % s.places / nm->n_ops + 1 < s.places / nm->n_ops) /* the next pass of the turn */
            offer(&s, ran / s.places * s.places + (ran % s.places / nm->n_ops + 1) * nm->n_ops,
                  there, at.cost);
        for (uint32_t x = 0; x < nm->n_stores && s.transfer; x++) fetch(&s, ran, there, x, at.cost);
        for (uint32_t op = 0; op < nm->n_ops; op++) run(&s, ran, there, op, at.cost);
    }
    free(s.heap);
    free(s.best);
    return least;
}

int64_t brute_least_cost(const rm_normal *nm, const uint32_t *order, int64_t budget_bytes,
                         const int64_t *transfer)
{
    return least_cost((search){
        .nm = nm, .order = order, .budget = budget_bytes, .transfer = transfer, .places = 1});
}

int64_t brute_least_cost_in_turns(const rm_normal *nm, uint32_t splits, int64_t budget_bytes)
{
    uint32_t order[BRUTE_MOST_OPS];
    for (uint32_t op = 0; op < nm->n_ops; op++) order[op] = op;
    return least_cost((search){.nm = nm,
                               .order = order,
                               .budget = budget_bytes,
                               .places = splits * nm->n_ops + (nm->n_ops == 1)});
}
