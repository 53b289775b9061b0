/* prop_sequence.c: N random moves on sequences over random graphs. After every move the peak and
 * the cost that the sequence claims are those of the naive reference on the expanded schedule; an
 * edit is refused exactly if it makes the schedule invalid (views that stay are the exception:
 * there the sequence may refuse more); a move that is taken back leaves everything as it was.
 * Usage: prop_sequence N SEED. A failure prints the seed of its graph: prop_sequence 1 SEED runs
 * that one alone. */
#include <string.h>

#include "check.h"
#include "naive.h"
#include "random_graph.h"
#include "sim/sequence.h"

enum { MOVES = 250 };

static int64_t n_kept, n_undone, n_refused, n_with_fetch, n_with_tokens;

typedef struct bed {
    remat_ctx *ctx;
    const remat_graph *graph;
    naive_graph *ng;
    rm_normal nm;
    rm_seq q;
    int64_t bandwidth;
    bool tokens;
    rm_schedule steps;
    rm_code *codes;
} bed;

static naive_verdict judge(bed *b, const rm_code *codes, size_t n)
{
    b->steps.n = 0;
    CHECK(rm_normal_expand(b->ctx, &b->nm, codes, n, &b->steps) == REMAT_OK, "%s",
          remat_ctx_error(b->ctx));
    return naive_judge(b->ng, b->steps.items, b->steps.n, b->bandwidth);
}

static void compare(bed *b, int64_t peak, const char *after)
{
    const size_t n = rm_seq_codes(&b->q, b->codes);
    naive_verdict v = judge(b, b->codes, n);
    CHECK(n == b->q.n_steps, "%zu steps, says %u", n, b->q.n_steps);
    CHECK(v.valid, "after %s: the reference refuses step %u", after, v.first_bad_step);
    CHECK(v.peak_bytes == peak, "after %s: %" PRId64 ", reference %" PRId64, after, peak,
          v.peak_bytes);
    CHECK(v.cost == b->q.cost, "after %s: cost %" PRId64 ", reference %" PRId64, after, b->q.cost,
          v.cost);
    CHECK(v.host_bytes == b->q.host_bytes, "after %s: host %" PRId64 ", reference %" PRId64, after,
          b->q.host_bytes, v.host_bytes);
    naive_release(&v);
}

/* What the reference says to the sequence with slot `from` emptied and slot `to` filled (RM_EMPTY:
 * neither). */
static bool is_valid_with(bed *b, uint32_t from, uint32_t to, rm_code code)
{
    size_t n = 0;
    for (uint32_t slot = 0; slot < b->q.n_slots; slot++) {
        if (slot == to) b->codes[n++] = code;
        else if (slot != from && b->q.at[slot] != RM_EMPTY) b->codes[n++] = b->q.at[slot];
    }
    for (size_t i = 0; i < n;
         i++) { /* a fetch needs a run before it, which expansion takes for granted */
        bool run = !rm_is_fetch(&b->nm, b->codes[i]);
        for (size_t j = 0; j < i && !run; j++)
            run = b->codes[j] == b->nm.producer[b->codes[i] - b->nm.n_ops];
        if (!run) return false;
    }
    naive_verdict v = judge(b, b->codes, n);
    naive_release(&v);
    return v.valid;
}

static rm_code any_code(const bed *b, random_source *r)
{
    if (b->q.transfer && b->nm.n_stores && random_chance(r, 30)) {
        const uint32_t s = random_below(r, b->nm.n_stores);
        if (b->graph->root[b->nm.value[s]] == b->nm.value[s]) return b->nm.n_ops + s;
    }
    return random_below(r, b->nm.n_ops);
}

/* One edit; true if it was made. */
static bool edit(bed *b, random_source *r)
{
    rm_seq *q = &b->q;
    rm_seq_settle(q);
    const uint32_t a = random_below(r, q->n_slots), to = random_below(r, q->n_slots);
    const bool full = q->at[a] != RM_EMPTY,
               slide = full && q->at[to] == RM_EMPTY && random_chance(r, 50);
    const rm_code code = full ? q->at[a] : any_code(b, r);
    const bool valid = slide  ? is_valid_with(b, a, to, code)
                       : full ? is_valid_with(b, a, RM_EMPTY, 0)
                              : is_valid_with(b, RM_EMPTY, a, code);
    const bool made = slide  ? rm_seq_slide(q, a, to)
                      : full ? rm_seq_remove(q, a)
                             : rm_seq_insert(q, a, code);
    if (!q->crowded)
        CHECK(made ? valid : !valid || b->tokens, "%s of %u: made %d, valid %d",
              slide  ? "slide"
              : full ? "remove"
                     : "insert",
              code, made, valid);
    n_refused += !made;
    return made;
}

typedef struct state { /* all that a move may change */
    rm_code at[400];
    uint32_t set[400];
    uint32_t events[4000], n_events;
    int64_t memory[400], cost, host_bytes, peak;
} state;

static void note(const bed *b, state *s)
{
    const rm_seq *q = &b->q;
    memset(s, 0, sizeof *s);
    for (uint32_t slot = 0; slot < q->n_slots; slot++) {
        s->at[slot] = q->at[slot];
        s->memory[slot] = rm_profile_at(&q->memory, slot);
    }
    for (uint32_t st = 0; st < b->nm.n_stores; st++)
        for (uint32_t i = 0; i < q->events[st].n && s->n_events < RM_LEN(s->events); i++)
            s->events[s->n_events++] = q->pool[q->events[st].begin + i];
    for (uint32_t i = 0; i < q->n_set; i++) {
        s->set[i] = q->set[i];
        CHECK(q->at[q->set[i]] != RM_EMPTY && q->rank[q->set[i]] == i,
              "the set of steps is wrong at %u", i);
    }
    CHECK(q->n_set == q->n_steps, "%u in the set, %u steps", q->n_set, q->n_steps);
    s->cost = q->cost;
    s->host_bytes = q->host_bytes;
    s->peak = rm_seq_peak_kept(q);
}

static void one_move(bed *b, random_source *r)
{
    static state before, after;
    note(b, &before);
    bool changed = false;
    for (uint32_t k = 1 + random_below(r, 4); k-- > 0;) changed |= edit(b, r);
    if (random_chance(r, 30)) { /* taken back before anything looked at it */
        rm_seq_undo(&b->q);
        rm_seq_check(&b->q);
        note(b, &after);
        CHECK(memcmp(&before, &after, sizeof before) == 0, "a move was not taken back whole");
        return;
    }
    const int64_t peak = rm_seq_peak(&b->q);
    if (changed) compare(b, peak, "edits");
    if (!rm_seq_may_sink(&b->q))
        CHECK(peak >= before.peak, "sank from %" PRId64 " to %" PRId64, before.peak, peak);
    if (random_chance(r, 50)) {
        rm_seq_keep(&b->q);
        rm_seq_check(&b->q);
        n_kept++;
        CHECK(rm_seq_peak_kept(&b->q) == peak, "looked %" PRId64 ", is %" PRId64, peak,
              rm_seq_peak_kept(&b->q));
        return;
    }
    rm_seq_undo(&b->q);
    rm_seq_check(&b->q);
    n_undone++;
    note(b, &after);
    CHECK(memcmp(&before, &after, sizeof before) == 0, "a move was not taken back whole");
}

static int64_t one_graph(remat_ctx *ctx)
{
    random_source r = {case_seed};
    remat_graph *given = random_graph(ctx, &r), *graph = NULL;
    CHECK(given, "%s", remat_ctx_error(ctx));
    CHECK(remat_graph_prepare(ctx, given, 0, random_chance(&r, 60) ? "unit" : NULL, &graph) ==
              REMAT_OK,
          "%s", remat_ctx_error(ctx));
    const rm_mark mark = rm_scratch_mark(ctx);
    bed b = {.ctx = ctx,
             .graph = graph,
             .ng = naive_from(graph),
             .bandwidth = 1 + random_below(&r, 2000000000)};
    CHECK(remat_ctx_set(ctx, "bandwidth", b.bandwidth) == REMAT_OK, "%s", remat_ctx_error(ctx));
    CHECK(rm_normal_of(ctx, graph, &b.nm) == REMAT_OK, "%s", remat_ctx_error(ctx));
    rm_normal_check(&b.nm);
    const uint32_t n_slots = b.nm.n_ops + 1 + random_below(&r, 3 * b.nm.n_ops + 20);
    CHECK(rm_seq_new(ctx, &b.nm, n_slots, &b.q) == REMAT_OK, "%s", remat_ctx_error(ctx));
    b.codes = rm_scratch(ctx, n_slots + 1, sizeof *b.codes);
    int64_t *transfer = rm_scratch(ctx, b.nm.n_stores, sizeof *transfer);
    CHECK(b.codes && transfer, "no memory");
    for (uint32_t s = 0; s < b.nm.n_stores; s++) {
        b.tokens |= graph->root[b.nm.value[s]] != b.nm.value[s];
        CHECK(rm_transfer_cost(ctx, b.nm.bytes[s], b.bandwidth, &transfer[s]) == REMAT_OK, "%s",
              remat_ctx_error(ctx));
    }
    if (random_chance(&r, 40)) b.q.transfer = transfer;
    n_with_tokens += b.tokens;
    n_with_fetch += b.q.transfer != NULL;
    for (uint32_t op = 0; op < b.nm.n_ops; op++) b.codes[op] = op;
    int64_t moves = 0;
    if (b.nm.n_ops) {
        CHECK(rm_seq_load(&b.q, b.codes, b.nm.n_ops), "no room");
        compare(&b, rm_seq_peak_kept(&b.q), "load");
        for (; moves < MOVES; moves++) {
            if (b.q.crowded) {
                const size_t n = rm_seq_codes(&b.q, b.codes);
                if (!rm_seq_load(&b.q, b.codes, n)) break;
                compare(&b, rm_seq_peak_kept(&b.q), "a second load");
            }
            one_move(&b, &r);
        }
    }
    RM_VEC_FREE(&ctx->heap, b.steps);
    rm_seq_free(&b.q);
    naive_free(b.ng);
    rm_scratch_release(ctx, mark);
    remat_graph_free(graph);
    remat_graph_free(given);
    return moves;
}

int main(int argc, char **argv)
{
    const int64_t n = cases_asked_for(argc, argv);
    remat_ctx *ctx = remat_ctx_new(NULL);
    if (!ctx) return 1;
    int64_t graphs = 0;
    for (int64_t moves = 0; moves < n; graphs++, case_seed++) moves += one_graph(ctx);
    remat_ctx_free(ctx);
    printf("%" PRId64 " graphs (%" PRId64 " with fetches, %" PRId64
           " with views that stay): %" PRId64 " moves kept, %" PRId64 " undone, %" PRId64
           " edits refused: all as the reference says\n",
           graphs, n_with_fetch, n_with_tokens, n_kept, n_undone, n_refused);
    return 0;
}
