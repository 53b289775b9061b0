/* holders.c: which storages can be kept instead of what they were made from, in any order.
 *
 * Problem: let op P make c from y, let P not be on the path, and let an op on the path read c late.
 * An activation and its copy for the backward pass are like that. Nobody knows when P runs. If it
 * runs early, c is in memory for long; if late, y is. So neither surely is, but one of them is, or
 * y is made again. If c is no smaller than y, it may count for y: it is a *holder* for its heir y.
 * The same goes for what is made from c in turn. docs/bound.md has the proof.
 *
 * Method: from each storage forwards, breadth first, through ops beside the path and storages that
 * are large enough. Of what is found the storage counts that is wanted longest, with all on the way
 * to it. Who gains most bytes times positions comes first, since a holder counts for no more bytes
 * than it has. To gain less than one of SHORTEST positions is not worth them: the same bytes may
 * stand in for something else (stand_ins.c).
 *
 * Cost: MOST_NODES storages and their readers for each storage, twice. */
#include "plan/bound/path.h"

#include <stdlib.h>

#include "base/csr.h"

enum { MOST_NODES = 64, MOST_READERS = 64, MOST_ON_THE_WAY = 16, SHORTEST = 64 };

/* A storage that was found from the heir. */
typedef struct node {
    uint32_t store, parent; /* parent: of nodes; the heir is node 0 */
    uint32_t n_before;      /* holders on the way to it */
    uint32_t limit; /* here, all storages on the way to it surely exist, and it holds no more */
    rm_window reader;
} node;

typedef struct wish {
    uint32_t heir;
    rm_uint128 gain;
} wish;

typedef struct hold {
    uint32_t holder, heir;
} hold;

typedef struct finder {
    remat_ctx *ctx;
    const rm_normal *nm;
    const rm_window *windows;
    rm_holders *out;
    int64_t *left;  /* by storage: of its bytes, what its heirs leave */
    uint32_t *seen; /* by storage: the last search that found it */
    uint32_t search, least_gain;
    node nodes[MOST_NODES];
    uint32_t n_nodes;
    RM_VEC(wish) wishes;
    RM_VEC(hold) holds;
} finder;

static uint32_t readers_end(const rm_normal *nm, uint32_t store)
{
    const uint32_t begin = nm->reader_begin[store], end = nm->reader_begin[store + 1];
    return end - begin > MOST_READERS ? begin + MOST_READERS : end;
}

/* The reader of the storage that wants it longest. At `limit` the storage counts for itself. */
static rm_window longest_reader(const finder *f, uint32_t store, uint32_t limit)
{
    const rm_normal *nm = f->nm;
    rm_window best = {0, 0};
    for (uint32_t k = nm->reader_begin[store]; k < readers_end(nm, store); k++) {
        if (rm_is_free_view(nm, nm->readers[k])) continue;
        const rm_window w = f->windows[nm->readers[k]];
        const uint32_t to = rm_wanted_to(w) < limit ? rm_wanted_to(w) : limit;
        const rm_window reader = {to, w.by};
        if (rm_wants_longer(reader, best)) best = reader;
    }
    return best;
}

static void add_node(finder *f, uint32_t store, uint32_t parent)
{
    const rm_normal *nm = f->nm;
    const uint32_t by = f->windows[nm->producer[store]].by, before = f->nodes[parent].limit;
    if (f->n_nodes == MOST_NODES || f->seen[store] == f->search) return;
    if (nm->is_output[store] || f->left[store] < nm->bytes[f->nodes[0].store]) return;
    f->seen[store] = f->search;
    const uint32_t limit = by < before ? by : before;
    f->nodes[f->n_nodes++] = (node){store, parent, f->nodes[parent].n_before + 1, limit,
                                    longest_reader(f, store, limit)};
}

/* What is made from the storage of a node by ops that are not on the path. */
static void look_behind(finder *f, uint32_t at)
{
    const rm_normal *nm = f->nm;
    const uint32_t store = f->nodes[at].store;
    if (f->nodes[at].n_before == MOST_ON_THE_WAY) return;
    for (uint32_t k = nm->reader_begin[store]; k < readers_end(nm, store); k++) {
        const uint32_t op = nm->readers[k];
        if (rm_is_on_path(f->windows[op]) || nm->pinned[op]) continue;
        for (uint32_t j = nm->out_begin[op]; j < nm->out_begin[op + 1]; j++)
            add_node(f, nm->out[j], at);
    }
}

/* The node that makes the heir wanted longest; 0, the heir itself, if none does. */
static uint32_t find_best(finder *f, uint32_t heir)
{
    uint32_t best = 0;
    rm_window own = longest_reader(f, heir, REMAT_NONE);
    f->search++;
    f->seen[heir] = f->search;
    f->n_nodes = 1;
    f->nodes[0] = (node){heir, 0, 0, REMAT_NONE, own};
    for (uint32_t at = 0; at < f->n_nodes; at++) {
        look_behind(f, at);
        const rm_window reader = f->nodes[at].reader, so_far = f->nodes[best].reader;
        const bool is_longer = rm_wanted_to(reader) > rm_wanted_to(own);
        if (at && is_longer && rm_wants_longer(reader, so_far)) best = at;
    }
    return best;
}

/* What a pinned op made never gets lost, so nothing is won by its holders but room that is taken:
 * need.c and least_peak.c say what must be in memory. */
static remat_status wish_for(finder *f, uint32_t heir)
{
    const rm_normal *nm = f->nm;
    if (nm->bytes[heir] == 0 || nm->is_output[heir] || nm->pinned[nm->producer[heir]])
        return REMAT_OK;
    const uint32_t best = find_best(f, heir);
    if (!best) return REMAT_OK;
    const uint32_t more = rm_wanted_to(f->nodes[best].reader) - rm_wanted_to(f->nodes[0].reader);
    if (more < f->least_gain) return REMAT_OK;
    const wish new = {heir, (rm_uint128)more * (rm_uint128)nm->bytes[heir]};
    return RM_PUSH(f->ctx, f->wishes, new);
}

/* Of all holders the reader counts that wants one of them longest, as for the verifier. */
static remat_status grant(finder *f, uint32_t heir)
{
    const uint32_t best = find_best(f, heir), limit = f->nodes[best].limit;
    for (uint32_t at = best; at; at = f->nodes[at].parent) {
        const hold new = {f->nodes[at].store, heir};
        const rm_window reader = longest_reader(f, new.holder, limit);
        f->left[new.holder] -= f->nm->bytes[heir];
        if (rm_wants_longer(reader, f->out->reader[heir])) f->out->reader[heir] = reader;
        TRY(RM_PUSH(f->ctx, f->holds, new));
    }
    return REMAT_OK;
}

static int by_gain(const void *left, const void *right)
{
    const wish *a = left, *b = right;
    if (a->gain != b->gain) return a->gain < b->gain ? 1 : -1;
    return (a->heir > b->heir) - (a->heir < b->heir);
}

static remat_status find_all(finder *f)
{
    for (uint32_t s = 0; s < f->nm->n_stores; s++) f->left[s] = f->nm->bytes[s];
    for (uint32_t s = 0; s < f->nm->n_stores; s++) TRY(wish_for(f, s));
    if (f->wishes.n) qsort(f->wishes.items, f->wishes.n, sizeof *f->wishes.items, by_gain);
    for (size_t i = 0; i < f->wishes.n; i++) TRY(grant(f, f->wishes.items[i].heir));
    return REMAT_OK;
}

static remat_status tabulate(const finder *f, rm_holders *out)
{
    const uint32_t n_stores = f->nm->n_stores, n = (uint32_t)f->holds.n;
    TRY(rm_csr_begin(f->ctx, n_stores, &out->begin));
    TRY(RM_SCRATCH(f->ctx, out->heirs, n));
    for (uint32_t i = 0; i < n; i++) rm_csr_count(out->begin, f->holds.items[i].holder);
    rm_csr_sum(out->begin, n_stores);
    for (uint32_t i = 0; i < n; i++)
        out->heirs[rm_csr_place(out->begin, f->holds.items[i].holder)] = f->holds.items[i].heir;
    return REMAT_OK;
}

remat_status rm_holders_find(remat_ctx *ctx, const rm_gaps *gs, const rm_window *windows, bool on,
                             rm_holders *out)
{
    const rm_normal *nm = gs->nm;
    finder f = {.ctx = ctx, .nm = nm, .windows = windows, .out = out};
    f.least_gain = gs->n / SHORTEST;
    TRY(RM_SCRATCH(ctx, out->reader, nm->n_stores));
    TRY(RM_SCRATCH(ctx, f.left, nm->n_stores));
    TRY(RM_SCRATCH(ctx, f.seen, nm->n_stores));
    remat_status status = on ? find_all(&f) : REMAT_OK;
    if (status == REMAT_OK) status = tabulate(&f, out);
    RM_VEC_FREE(&ctx->heap, f.wishes);
    RM_VEC_FREE(&ctx->heap, f.holds);
    return status;
}
