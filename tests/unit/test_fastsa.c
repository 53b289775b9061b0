/* test_fastsa.c: the vectors of the FastSA paper: single recomputations by exhaustion, the strict
 * objective, temperatures, slots, grouping, soft peak, polish; and the strategy's promises: same
 * plan with any number of threads, exit before annealing, modes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support.h"

#include "plan/search/fastsa.h"
#include "plan/search/polish.h"
#include "plan/search/soft_peak.h"

static remat_graph *folded(remat_ctx *ctx, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/graphs/%s.json.gz", REMAT_TEST_DATA, name);
    remat_graph *file = NULL, *graph = NULL;
    OK(ctx, remat_graph_load(ctx, path, &file));
    OK(ctx, remat_graph_prepare(ctx, file, REMAT_DCE | REMAT_FOLD_IDENTITY | REMAT_REPLAY_RANDOM,
                                "unit", &graph));
    remat_graph_free(file);
    return graph;
}

static void load_keep_all(remat_ctx *ctx, const rm_normal *nm, uint32_t n_slots, rm_seq *q)
{
    rm_code *codes = rm_scratch(ctx, nm->n_ops, sizeof *codes);
    for (uint32_t op = 0; op < nm->n_ops; op++) codes[op] = op;
    OK(ctx, rm_seq_new(ctx, nm, n_slots, q));
    assert_true(rm_seq_load(q, codes, nm->n_ops));
}

/* The lowest peak that one more run of one op can give, anywhere; the winner stays in the sequence.
 */
static int64_t best_single(rm_seq *q)
{
    int64_t least = INT64_MAX;
    uint32_t best_slot = 0, best_op = 0;
    for (uint32_t op = 0; op < q->nm->n_ops; op++)
        for (uint32_t slot = 0; slot < q->n_slots; slot++) {
            if (q->at[slot] != RM_EMPTY || !rm_seq_insert(q, slot, op)) continue;
            const int64_t peak = rm_seq_peak(q);
            rm_seq_undo(q);
            if (peak < least) least = peak, best_slot = slot, best_op = op;
        }
    assert_true(rm_seq_insert(q, best_slot, best_op));
    rm_seq_keep(q);
    return least;
}

/* What one recomputation saves is found by trying all. What two save is found by annealing, by the
 * best of 5 seeds: on resnet18 the best one alone is not part of the best pair.
 *
 * If the second part fails: on vgg11 every one of the seeds 0 to 11 found the pair, so a miss there
 * means that the annealing got worse. On resnet18 only 3 of those 12 did (3, 6 and 8), and the
 * others needed a third recomputation. So a miss there may be bad luck of a search that walks
 * another way. Run it with 12 seeds: about 3 should find the pair. */
static void single_recomputations(void **state)
{
    remat_ctx *ctx = *state;
    static const struct {
        const char *name;
        int64_t keep_all, one, two;
    } table[] = {{"vgg11", 26426733892, 21494232388, 21101186884},
                 {"resnet18", 11506715524, 9862548356, 8629422980}};
    for (size_t i = 0; i < RM_LEN(table); i++) {
        const rm_mark mark = rm_scratch_mark(ctx);
        remat_graph *graph = folded(ctx, table[i].name);
        rm_normal nm;
        rm_seq q;
        OK(ctx, rm_normal_of(ctx, graph, &nm));
        load_keep_all(ctx, &nm, 2 * nm.n_ops + 1, &q);
        assert_int_equal(rm_seq_peak_kept(&q), table[i].keep_all);
        assert_int_equal(best_single(&q), table[i].one);
        rm_seq_free(&q);
        int64_t least = INT64_MAX;
        OK(ctx, remat_ctx_set(ctx, "work", 400000));
        for (int64_t seed = 0; seed < 5; seed++) {
            remat_plan *plan = NULL;
            OK(ctx, remat_ctx_set(ctx, "seed", seed));
            OK(ctx, remat_plan_make(ctx, graph, "fastsa", table[i].two, &plan));
            const remat_summary *s = remat_plan_summary(plan);
            assert_true(s->within_budget);
            if (s->cost - s->keep_all_cost < least) least = s->cost - s->keep_all_cost;
            remat_plan_free(plan);
        }
        assert_int_equal(least, 2);
        remat_graph_free(graph);
        rm_scratch_release(ctx, mark);
    }
}

static void formulas(void **state)
{
    (void)state;
    assert_true(fabs(rm_fastsa_strict(100, 110, 1) - 110) < 1e-12);
    assert_true(fabs(rm_fastsa_strict(100, 100, 1) - 100) < 1e-12);
    assert_true(fabs(rm_fastsa_strict(100, 90, 1) - 99.0000454) < 1e-7);
    assert_true(fabs(rm_fastsa_strict(100, 100, 32) - 100 * pow(32, 0.6)) < 1e-9);
    assert_true(fabs(rm_fastsa_heat(7, 1) - 7e-4) < 1e-12);
    assert_true(fabs(rm_fastsa_heat(7, 0.5) - 7e-2) < 1e-12);
}

static void slots(void **state)
{
    remat_ctx *ctx = *state;
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_graph *graph = NULL;
    OK(ctx, remat_graph_load(ctx, "zoo:chain?n=1", &graph));
    rm_normal nm;
    rm_seq q;
    OK(ctx, rm_normal_of(ctx, graph, &nm));
    OK(ctx, rm_seq_new(ctx, &nm, 1 << 20, &q));
    assert_true(rm_seq_load(&q, (rm_code[]){0, 1, 2}, 3)); /* the first three of its four steps */
    assert_true(q.at[262144] == 0 && q.at[524288] == 1 && q.at[786432] == 2);
    rm_seq_free(&q);
    remat_graph_free(graph);
    rm_scratch_release(ctx, mark);
}

/* One op makes eight values, another reads them; the first runs so often that lists run out. */
static void no_room_to_load(void **state)
{
    remat_ctx *ctx = *state;
    enum { WIDE = 8, SLOTS = 100 };
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_builder *b = remat_builder_new(ctx, "wide");
    uint32_t values[WIDE];
    for (uint32_t i = 0; i < WIDE; i++) values[i] = remat_builder_value(b, NULL, 1);
    remat_builder_op(b, NULL, NULL, 0, values, WIDE);
    remat_builder_op(b, NULL, values, WIDE, NULL, 0);
    remat_graph *graph = NULL;
    OK(ctx, remat_builder_finish(b, &graph));
    remat_builder_free(b);
    rm_normal nm;
    rm_seq q;
    rm_code codes[SLOTS] = {0};
    OK(ctx, rm_normal_of(ctx, graph, &nm));
    OK(ctx, rm_seq_new(ctx, &nm, SLOTS, &q));
    size_t n = 2; /* runs of the wide op, and one of the other */
    do codes[n - 1] = 0, codes[n++] = 1;
    while (n < SLOTS && rm_seq_load(&q, codes, n));
    assert_true(n < SLOTS); /* refused for lack of room, and as it was before: */
    assert_int_equal(q.n_steps, n - 1);
    assert_int_equal(rm_seq_peak_kept(&q), WIDE);
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        if (q.at[slot] == 0 && rm_seq_remove(&q, slot)) {
            assert_int_equal(rm_seq_peak(&q), WIDE);
            rm_seq_keep(&q);
        }
    assert_int_equal(q.n_steps, 2);
    rm_seq_free(&q);
    remat_graph_free(graph);
    rm_scratch_release(ctx, mark);
}

static void grouping_alone(void **state)
{
    remat_ctx *ctx = *state;
    static const uint32_t lengths[][2] = {{4, 20}, {8, 54}, {16, 170}, {32, 594}};
    for (size_t i = 0; i < RM_LEN(lengths); i++) {
        char name[64];
        snprintf(name, sizeof name, "zoo:chain?n=%u&size=1", lengths[i][0]);
        remat_graph *graph = NULL;
        remat_plan *plan = NULL;
        OK(ctx, remat_graph_load(ctx, name, &graph));
        OK(ctx, remat_plan_make(ctx, graph, "fastsa-group", 4, &plan));
        assert_int_equal(remat_plan_summary(plan)->peak_bytes, 4);
        assert_int_equal(remat_plan_summary(plan)->steps, lengths[i][1]);
        remat_plan_free(plan);
        remat_graph_free(graph);
    }
}

/* Against the definition, after every kept move and for every refused one. */
static void soft_peak(void **state)
{
    remat_ctx *ctx = *state;
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_graph *graph = folded(ctx, "resnet18");
    rm_normal nm;
    rm_seq q;
    rm_soft_peak soft;
    OK(ctx, rm_normal_of(ctx, graph, &nm));
    load_keep_all(ctx, &nm, 3 * nm.n_ops, &q);
    OK(ctx, rm_soft_peak_new(ctx, &q, &soft));
    rm_soft_peak_load(&soft, &q);
    int n_moves = 0;
    for (uint32_t slot = 0; slot < q.n_slots; slot++) {
        if (q.at[slot] != RM_EMPTY || !rm_seq_insert(&q, slot, slot * 7 % nm.n_ops)) continue;
        const double seen = rm_soft_peak_look(&soft, &q);
        double sum = 0;
        for (uint32_t t = 0; t < q.n_slots; t++)
            if (q.at[t] != RM_EMPTY)
                sum += exp(soft.scale * (double)(rm_profile_at(&q.memory, t) - q.memory.max));
        const double expected = (double)(nm.resident_bytes + q.memory.max) + log(sum) / soft.scale;
        assert_true(fabs(seen - expected) < 1e-9 * expected);
        if (n_moves++ % 2) {
            rm_seq_undo(&q);
        } else {
            rm_soft_peak_keep(&soft);
            rm_seq_keep(&q);
            assert_true(fabs(rm_soft_peak_now(&soft, &q) - expected) < 1e-9 * expected);
        }
    }
    assert_true(n_moves > 50);
    rm_soft_peak_free(&ctx->heap, &soft);
    rm_seq_free(&q);
    remat_graph_free(graph);
    rm_scratch_release(ctx, mark);
}

/* Every op twice in a row. */
static void run_twice(remat_ctx *ctx, const rm_normal *nm, rm_codes *codes)
{
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        OK(ctx, RM_PUSH(ctx, *codes, op));
        if (!nm->pinned[op]) OK(ctx, RM_PUSH(ctx, *codes, op));
    }
}

/* The second runs are for nothing, and go. */
static void polish_removes_what_can_go(void **state)
{
    remat_ctx *ctx = *state;
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_graph *graph = folded(ctx, "resnet18");
    rm_normal nm;
    rm_codes codes = {0};
    OK(ctx, rm_normal_of(ctx, graph, &nm));
    run_twice(ctx, &nm, &codes);
    OK(ctx, rm_polish(ctx, &nm, NULL, INT64_MAX, &codes));
    assert_int_equal(codes.n, nm.n_ops);
    for (uint32_t op = 0; op < nm.n_ops; op++) assert_int_equal(codes.items[op], op);
    RM_VEC_FREE(&ctx->heap, codes);
    remat_graph_free(graph);
    rm_scratch_release(ctx, mark);
}

/* The work of polishing it under a limit of work; n_steps: how many are left. */
static int64_t work_of_polish(remat_ctx *ctx, const rm_normal *nm, int64_t most_work,
                              size_t *n_steps)
{
    rm_codes codes = {0};
    uint32_t op;
    const char *fault;
    rm_limits_begin(ctx, most_work);
    run_twice(ctx, nm, &codes);
    OK(ctx, rm_polish(ctx, nm, NULL, INT64_MAX, &codes));
    OK(ctx, rm_codes_fault(ctx, nm, &codes, &op, &fault));
    assert_null(fault);
    *n_steps = codes.n;
    RM_VEC_FREE(&ctx->heap, codes);
    const int64_t work = ctx->limits.work;
    rm_limits_end(ctx);
    return work;
}

/* What is left of the limit, or a quarter of it again, or a little for each step. */
static void polish_has_a_limit(void **state)
{
    remat_ctx *ctx = *state;
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_graph *graph = folded(ctx, "densenet121");
    rm_normal nm;
    size_t n_steps;
    OK(ctx, rm_normal_of(ctx, graph, &nm));
    const int64_t whole = work_of_polish(ctx, &nm, RM_NO_LIMIT, &n_steps);
    assert_int_equal(n_steps, nm.n_ops);
    assert_int_equal(work_of_polish(ctx, &nm, whole + 1, &n_steps), whole);
    assert_int_equal(n_steps, nm.n_ops);
    const int64_t little = work_of_polish(ctx, &nm, 1, &n_steps);
    assert_true(little < whole);
    assert_true(n_steps > nm.n_ops && n_steps < 2 * (size_t)nm.n_ops);
    remat_graph_free(graph);
    rm_scratch_release(ctx, mark);
}

static void same_plan_with_any_threads(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = folded(ctx, "resnet50");
    remat_plan *plans[3] = {NULL};
    OK(ctx, remat_ctx_set(ctx, "walkers", 4));
    for (int i = 0; i < 3; i++) {
        OK(ctx, remat_ctx_set(ctx, "threads", i + 1));
        OK(ctx, remat_ctx_set(ctx, "work", 200000));
        OK(ctx, remat_plan_make(ctx, graph, "fastsa", 13000000000, &plans[i]));
    }
    size_t n, m;
    const remat_step *first = remat_plan_steps(plans[0], &n);
    assert_true(remat_plan_summary(plans[0])->within_budget);
    for (int i = 1; i < 3; i++) {
        const remat_step *other = remat_plan_steps(plans[i], &m);
        assert_int_equal(n, m);
        assert_memory_equal(first, other, n * sizeof *first);
    }
    for (int i = 0; i < 3; i++) remat_plan_free(plans[i]);
    OK(ctx, remat_ctx_set(ctx, "walkers", 0));
    OK(ctx, remat_ctx_set(ctx, "threads", 1));
    remat_graph_free(graph);
}

static void edges(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = folded(ctx, "resnet18");
    remat_info info = REMAT_INFO_INIT;
    remat_plan *plan = NULL;
    OK(ctx, remat_graph_info(ctx, graph, &info));
    OK(ctx, remat_ctx_set(ctx, "work", 4000000000));
    OK(ctx, remat_plan_make(ctx, graph, "fastsa", info.need_bytes - 1,
                            &plan)); /* a proof, before any annealing */
    assert_int_equal(remat_plan_status(plan), REMAT_E_INFEASIBLE);
    assert_int_equal(remat_plan_summary(plan)->work, 0);
    remat_plan_free(plan), plan = NULL;
    OK(ctx, remat_ctx_set(ctx, "work", 100000));
    OK(ctx, remat_plan_make(ctx, graph, "fastsa-order", REMAT_BUDGET_NONE, &plan));
    assert_int_equal(remat_plan_summary(plan)->cost, info.keep_all_cost);
    assert_int_equal(remat_plan_summary(plan)->recomputed_ops, 0);
    remat_plan_free(plan), plan = NULL;
    assert_int_equal(remat_plan_make(ctx, graph, "fastsa-offload", 9000000000, &plan),
                     REMAT_E_APPLIES);
    OK(ctx, remat_ctx_set(ctx, "offload", 1));
    OK(ctx, remat_ctx_set(ctx, "bandwidth", INT64_MAX));
    OK(ctx, remat_plan_make(ctx, graph, "fastsa-offload", 9000000000, &plan));
    assert_true(remat_plan_summary(plan)->within_budget);
    assert_int_equal(remat_plan_summary(plan)->recomputed_ops, 0);
    assert_true(remat_plan_summary(plan)->offloaded_bytes > 0);
    const int64_t host = remat_plan_summary(plan)->offloaded_bytes;
    remat_plan_free(plan), plan = NULL;
    OK(ctx, remat_ctx_set(ctx, "host_bytes", host / 2));
    OK(ctx, remat_plan_make(ctx, graph, "fastsa-offload", 9000000000, &plan));
    assert_true(remat_plan_summary(plan)->offloaded_bytes <= host / 2);
    remat_plan_free(plan);
    remat_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(single_recomputations),
                                       cmocka_unit_test(formulas),
                                       WITH_CONTEXT(slots),
                                       WITH_CONTEXT(no_room_to_load),
                                       WITH_CONTEXT(grouping_alone),
                                       WITH_CONTEXT(soft_peak),
                                       WITH_CONTEXT(polish_removes_what_can_go),
                                       WITH_CONTEXT(polish_has_a_limit),
                                       WITH_CONTEXT(same_plan_with_any_threads),
                                       WITH_CONTEXT(edges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
