/* prop_search.c: N random moves of every kind on a large graph, a tenth of them with fetches: add,
 * remove, slide, recompute with all that needs, forget, carry, clear. One move in 512 is looked at:
 * peak and cost of the state are the verifier's, the excess is the profile's, and a move that is
 * taken back leaves every slot, list and byte as it was. The best state noted on the way is valid
 * and what it is said to be whenever it is saved; restoring the graph's order keeps its steps,
 * raises no peak and leaves no more first runs out of order. Usage: prop_search N SEED GRAPH... */
#include <string.h>

#include "check.h"
#include "plan/search/moves.h"
#include "plan/search/restore.h"
#include "plan/search/search.h"
#include "verify/verify.h"

enum { SAMPLE = 512, RESPACE = 20000 };

static int64_t n_kept, n_undone, n_looked_at, n_best, n_restored;

typedef struct bed {
    remat_ctx *ctx;
    const remat_graph *graph;
    rm_normal nm;
    rm_search s;
    rm_schedule steps;
    rm_code *codes;
    int64_t limit;
} bed;

static remat_verdict judge(bed *b, const rm_code *codes, size_t n)
{
    remat_verdict v = REMAT_VERDICT_INIT;
    const rm_mark mark = rm_scratch_mark(b->ctx);
    b->steps.n = 0;
    CHECK(rm_normal_expand(b->ctx, &b->nm, codes, n, &b->steps) == REMAT_OK, "%s",
          remat_ctx_error(b->ctx));
    rm_steps_to_original(b->graph, b->steps.items, b->steps.n);
    CHECK(rm_verify(b->ctx, b->graph, b->steps.items, b->steps.n, b->ctx->options.bandwidth, &v) ==
              REMAT_OK,
          "%s", remat_ctx_error(b->ctx));
    CHECK(v.valid, "step %u: %s", v.first_bad_step, v.reason);
    rm_scratch_release(b->ctx, mark);
    return v;
}

static void compare(bed *b, int64_t peak)
{
    const remat_verdict v = judge(b, b->codes, rm_seq_codes(&b->s.q, b->codes));
    CHECK(v.peak_bytes == peak, "peak %" PRId64 ", verifier %" PRId64, peak, v.peak_bytes);
    CHECK(v.cost == b->s.q.cost, "cost %" PRId64 ", verifier %" PRId64, b->s.q.cost, v.cost);
    n_looked_at++;
}

static uint64_t mix(uint64_t hash, uint64_t x)
{
    return (hash ^ x) * UINT64_C(0x9e3779b97f4a7c15) + (hash >> 29);
}

static uint64_t digest(const rm_seq *q)
{
    uint64_t h = mix((uint64_t)q->cost, q->n_steps);
    for (uint32_t slot = 0; slot < q->n_slots; slot++)
        h = mix(mix(h, q->at[slot]), (uint64_t)rm_profile_at(&q->memory, slot));
    for (uint32_t i = 0; i < q->n_set; i++) h = mix(h, q->set[i]);
    for (uint32_t st = 0; st < q->nm->n_stores; st++)
        for (uint32_t i = 0; i < q->events[st].n; i++) h = mix(h, q->pool[q->events[st].begin + i]);
    return mix(h, (uint64_t)q->memory.max);
}

static bool propose(bed *b)
{
    rm_search *s = &b->s;
    rm_seq *q = &s->q;
    const uint32_t kind = rm_random_below(&s->random, q->transfer ? 8 : 7);
    if (kind == 0) {
        const uint32_t op = rm_random_below(&s->random, b->nm.n_ops),
                       slot = rm_search_empty_slot(s, rm_seq_floor(q, op), q->n_slots);
        return slot != RM_EMPTY && rm_seq_insert(q, slot, op);
    }
    if (kind == 1) return rm_seq_remove(q, rm_search_full_slot(s));
    if (kind == 2) return rm_search_slide(s);
    if (kind == 3) return rm_move_recompute(s, b->limit) > 0;
    if (kind == 4) return rm_move_forget(s) > 0;
    if (kind == 5) return rm_move_carry(s) > 0;
    if (kind == 6) return rm_move_clear(s, b->limit) > 0;
    const uint32_t store = rm_random_below(&s->random, b->nm.n_stores),
                   slot = rm_search_empty_slot(s, 0, q->n_slots);
    return slot != RM_EMPTY && rm_seq_insert(q, slot, b->nm.n_ops + store);
}

/* Small and cheap states are kept more often, or the sequence would only grow. */
static bool is_wanted(bed *b, int64_t peak)
{
    const rm_seq *q = &b->s.q;
    return rm_random_below(&b->s.random, 100) <
           (q->n_steps > 3 * b->nm.n_ops / 2 || peak > rm_seq_peak_kept(q) ? 20 : 80);
}

static void one_move(bed *b, bool look)
{
    rm_search *s = &b->s;
    const uint64_t before = look ? digest(&s->q) : 0;
    if (!propose(b)) {
        CHECK(s->q.n_edits == 0, "a refused move has edits");
        return;
    }
    const int64_t excess =
        look ? rm_seq_excess(&s->q, b->limit, rm_profile_excess(&s->q.memory, b->limit)) : 0;
    const int64_t peak = rm_seq_peak(&s->q);
    if (look) {
        compare(b, peak);
        rm_seq_flush(&s->q);
        CHECK(excess == rm_profile_excess(&s->q.memory, b->limit), "another excess");
    }
    if (is_wanted(b, peak)) {
        n_best += rm_search_is_better(s, peak, s->q.cost);
        rm_search_keep(s, peak);
        n_kept++;
        return;
    }
    rm_seq_undo(&s->q);
    n_undone++;
    if (look) CHECK(digest(&s->q) == before, "a move was not taken back whole");
}

static void check_best(bed *b)
{
    rm_search_check(&b->s);
    rm_search_save(&b->s);
    const remat_verdict v = judge(b, b->s.best, b->s.n_best);
    CHECK(v.peak_bytes == b->s.best_peak && v.cost == b->s.best_cost,
          "best %" PRId64 " at %" PRId64 ", is %" PRId64 " at %" PRId64, b->s.best_peak,
          b->s.best_cost, v.peak_bytes, v.cost);
}

/* How many first runs are in no longest part that is in the graph's order, by brute force. */
static uint32_t disorder(bed *b, const rm_codes *codes)
{
    const rm_mark mark = rm_scratch_mark(b->ctx);
    uint32_t *order, longest = 0;
    CHECK(rm_codes_first_runs(b->ctx, &b->nm, codes, &order) == REMAT_OK, "no memory");
    uint32_t *length = rm_scratch(b->ctx, b->nm.n_ops, sizeof *length);
    for (uint32_t i = 0; i < b->nm.n_ops; i++) {
        length[i] = 1;
        for (uint32_t j = 0; j < i; j++)
            if (order[j] < order[i] && length[j] >= length[i]) length[i] = length[j] + 1;
        if (length[i] > longest) longest = length[i];
    }
    rm_scratch_release(b->ctx, mark);
    return b->nm.n_ops - longest;
}

static void check_restored(bed *b)
{
    rm_codes codes = {0};
    CHECK(rm_search_best(b->ctx, &b->s, &codes) == REMAT_OK, "no memory");
    const uint32_t before = disorder(b, &codes);
    CHECK(rm_restore_order(b->ctx, &b->nm, b->s.best_peak, &codes) == REMAT_OK, "%s",
          remat_ctx_error(b->ctx));
    const uint32_t after = disorder(b, &codes);
    const remat_verdict v = judge(b, codes.items, codes.n);
    CHECK(codes.n == b->s.n_best && v.cost == b->s.best_cost, "other steps");
    CHECK(v.peak_bytes <= b->s.best_peak, "a higher peak");
    CHECK(after <= before, "%u first runs out of order, %u before", after, before);
    n_restored += before - after;
    RM_VEC_FREE(&b->ctx->heap, codes);
}

static void one_graph(remat_ctx *ctx, const char *source, int64_t n, bool fetches)
{
    remat_graph *given = NULL, *graph = NULL;
    CHECK(remat_graph_load(ctx, source, &given) == REMAT_OK, "%s", remat_ctx_error(ctx));
    CHECK(remat_graph_prepare(ctx, given, REMAT_DCE | REMAT_REPLAY_RANDOM, "roofline:h100",
                              &graph) == REMAT_OK,
          "%s", remat_ctx_error(ctx));
    const rm_mark mark = rm_scratch_mark(ctx);
    bed b = {.ctx = ctx, .graph = graph, .s.random = {case_seed}};
    rm_codes start = {0};
    CHECK(rm_normal_of(ctx, graph, &b.nm) == REMAT_OK &&
              rm_codes_keep_all(ctx, &b.nm, &start) == REMAT_OK,
          "%s", remat_ctx_error(ctx));
    int64_t *transfer = rm_scratch(ctx, b.nm.n_stores, sizeof *transfer);
    for (uint32_t s = 0; transfer && s < b.nm.n_stores; s++)
        CHECK(rm_transfer_cost(ctx, b.nm.bytes[s], 50000000000, &transfer[s]) == REMAT_OK, "%s",
              remat_ctx_error(ctx));
    CHECK(rm_search_begin(ctx, &b.s, &b.nm, fetches ? transfer : NULL, &start, fetches ? 3 : 10) ==
                  REMAT_OK &&
              b.s.q.ranges,
          "%s", remat_ctx_error(ctx));
    b.codes = rm_scratch(ctx, b.s.q.n_slots, sizeof *b.codes);
    CHECK(b.codes && transfer, "no memory");
    b.limit = b.s.q.memory.max / 2;
    b.s.floor_bytes = b.nm.resident_bytes + b.s.q.memory.max / 10 * 9;
    for (int64_t i = 1; i <= n; i++) {
        one_move(&b, i % SAMPLE == 0);
        if (i % RESPACE && !b.s.q.crowded) continue;
        check_best(&b);
        if (!fetches) check_restored(&b);
        if (i % (8 * RESPACE) == 0) rm_search_load(&b.s, b.s.best, b.s.n_best);
        else rm_search_respace(&b.s);
    }
    check_best(&b);
    RM_VEC_FREE(&ctx->heap, start);
    RM_VEC_FREE(&ctx->heap, b.steps);
    rm_search_end(&b.s);
    rm_scratch_release(ctx, mark);
    remat_graph_free(graph);
    remat_graph_free(given);
}

int main(int argc, char **argv)
{
    if (argc < 4) return fprintf(stderr, "usage: %s N SEED GRAPH...\n", argv[0]), 1;
    const int64_t n = cases_asked_for(3, argv);
    remat_ctx *ctx = remat_ctx_new(NULL);
    CHECK(ctx && remat_ctx_set(ctx, "bandwidth", 50000000000) == REMAT_OK, "no context");
    for (int i = 3; i < argc; i++) {
        one_graph(ctx, argv[i], n / 10 * 9, false);
        one_graph(ctx, argv[i], n / 10, true);
    }
    remat_ctx_free(ctx);
    printf("%" PRId64 " moves kept, %" PRId64 " undone, %" PRId64 " looked at, %" PRId64
           " best states: all as the verifier says; %" PRId64 " first runs back in order\n",
           n_kept, n_undone, n_looked_at, n_best, n_restored);
    return 0;
}
