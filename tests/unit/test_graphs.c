/* test_graphs.c: the traced training graphs and the Moccasin instances: sizes, residents, keep-all
 * peaks and costs known from an independent computation, in the verifier, the liveness pass, the
 * simulator and the naive reference. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/schedule.h"
#include "naive.h"
#include "sim/sequence.h"
#include "text.h"

static remat_graph *load(remat_ctx *ctx, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/graphs/%s.json.gz", REMAT_TEST_DATA, name);
    remat_graph *graph = NULL;
    OK(ctx, remat_graph_load(ctx, path, &graph));
    return graph;
}

/* Keep-all in five ways (reference, info, plan and verify, liveness, simulator); all must agree.
 * Returns the peak. */
static int64_t keep_all(remat_ctx *ctx, const remat_graph *graph, int64_t *cost, int64_t *resident)
{
    const uint32_t n = remat_graph_n_ops(graph);
    remat_step *steps = calloc(n ? n : 1, sizeof *steps);
    assert_non_null(steps);
    for (uint32_t i = 0; i < n; i++) steps[i] = (remat_step){REMAT_RUN, i};
    naive_graph *ng = naive_from(graph);
    naive_verdict expected = naive_judge(ng, steps, n, 0);
    assert_true(expected.valid);
    remat_info info = REMAT_INFO_INIT;
    OK(ctx, remat_graph_info(ctx, graph, &info));
    assert_int_equal(info.keep_all_peak_bytes, expected.peak_bytes);
    assert_int_equal(info.keep_all_peak_step, expected.peak_step);
    assert_int_equal(info.keep_all_cost, expected.cost);
    assert_int_equal(info.resident_bytes, ng->resident_bytes);
    assert_int_equal(info.ops, n);
    assert_true(info.need_bytes <= info.keep_all_peak_bytes);
    remat_plan *plan =
        NULL; /* names the original's ops, which is what verify wants for a prepared graph too */
    OK(ctx, remat_plan_make(ctx, graph, "keep-all", REMAT_BUDGET_NONE, &plan));
    size_t n_steps;
    const remat_step *named = remat_plan_steps(plan, &n_steps);
    assert_int_equal(n_steps, n);
    remat_verdict verdict = REMAT_VERDICT_INIT;
    OK(ctx, remat_verify(ctx, graph, named, n_steps, 0, &verdict));
    assert_true(verdict.valid);
    assert_int_equal(verdict.peak_bytes, expected.peak_bytes);
    assert_int_equal(verdict.cost, expected.cost);
    assert_int_equal(remat_plan_summary(plan)->peak_bytes, expected.peak_bytes);
    remat_plan_free(plan);
    const rm_mark mark = rm_scratch_mark(ctx);
    rm_liveness l;
    OK(ctx, rm_liveness_of(ctx, graph, steps, n, 0, &l));
    assert_int_equal(l.peak_bytes, expected.peak_bytes);
    rm_normal nm; /* without views: other steps, the same peak and cost */
    rm_seq q;
    OK(ctx, rm_normal_of(ctx, graph, &nm));
    OK(ctx, rm_seq_new(ctx, &nm, 2 * nm.n_ops + 1, &q));
    rm_code *codes = rm_scratch(ctx, nm.n_ops, sizeof *codes);
    for (uint32_t op = 0; op < nm.n_ops; op++) codes[op] = op;
    assert_true(rm_seq_load(&q, codes, nm.n_ops));
    assert_int_equal(rm_seq_peak_kept(&q), expected.peak_bytes);
    assert_int_equal(q.cost, expected.cost);
    rm_seq_free(&q);
    rm_scratch_release(ctx, mark);
    *cost = expected.cost;
    *resident = ng->resident_bytes;
    const int64_t peak = expected.peak_bytes;
    naive_release(&expected), naive_free(ng), free(steps);
    return peak;
}

static void keep_all_peaks(void **state)
{
    remat_ctx *ctx = *state;
    static const struct {
        const char *name;
        int64_t peak, resident;
    } table[] = {
        {"albert", 107244530708, 0},
        {"bert", 85020035092, 0},
        {"coatnet_2", 257728922116, 0},
        {"convnext_tiny", 56396854468, 0},
        {"deit3_base", 92054770500, 0},
        {"densenet121", 16774129108, 0},
        {"distilbert", 42867025940, 0},
        {"efficientnet_b0", 45690678724, 0},
        {"gpt2", 21990108168, 652279812},
        {"llama7b", 483506078216, 26953925124},
        {"mobilenetv3_large", 22801458852, 0},
        {"resnet18", 11506715524, 355077952},
        {"resnet50", 22307319188, 0},
        {"vgg11", 26426733892, 839734688},
        {"vgg16", 19932861508, 0},
        {"vit_large", 223337537348, 0},
    };
    for (size_t i = 0; i < LENGTH(table); i++) {
        remat_graph *graph = load(ctx, table[i].name), *live = NULL;
        int64_t cost, resident;
        const int64_t peak = keep_all(ctx, graph, &cost, &resident);
        if (peak != table[i].peak)
            fail_msg("%s: %lld, not %lld", table[i].name, (long long)peak,
                     (long long)table[i].peak);
        if (table[i].resident) assert_int_equal(resident, table[i].resident);
        OK(ctx, remat_graph_prepare(ctx, graph, REMAT_DCE, NULL,
                                    &live)); /* the same with dead ops removed */
        remat_info info = REMAT_INFO_INIT;
        OK(ctx, remat_graph_info(ctx, live, &info));
        assert_int_equal(info.keep_all_peak_bytes, table[i].peak);
        remat_graph_free(live), remat_graph_free(graph);
    }
}

static void folded_op_counts(void **state)
{
    remat_ctx *ctx = *state;
    static const struct {
        const char *name;
        uint32_t ops;
    } table[] = {{"resnet18", 171},
                 {"mobilenetv3_large", 484},
                 {"efficientnet_b0", 996},
                 {"convnext_tiny", 933},
                 {"vgg11", 71}};
    for (size_t i = 0; i < LENGTH(table); i++) {
        remat_graph *graph = load(ctx, table[i].name), *folded = NULL;
        OK(ctx, remat_graph_prepare(ctx, graph, REMAT_DCE | REMAT_FOLD_IDENTITY, "node", &folded));
        if (remat_graph_n_ops(folded) != table[i].ops)
            fail_msg("%s: %u ops, not %u", table[i].name, remat_graph_n_ops(folded), table[i].ops);
        int64_t cost, resident;
        keep_all(ctx, folded, &cost, &resident);
        assert_int_equal(cost, table[i].ops);
        remat_graph_free(folded), remat_graph_free(graph);
    }
}

static void vgg11_numbers(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = load(ctx, "vgg11"), *folded = NULL;
    OK(ctx, remat_graph_prepare(ctx, graph, REMAT_DCE | REMAT_FOLD_IDENTITY, "unit", &folded));
    int64_t cost, resident;
    assert_int_equal(keep_all(ctx, folded, &cost, &resident), 26426733892);
    remat_info info = REMAT_INFO_INIT;
    OK(ctx, remat_graph_info(ctx, folded, &info));
    assert_int_equal(info.need_bytes, 20569740704);
    const char *target = remat_graph_op_target(folded, info.keep_all_peak_step);
    if (!strstr(target, "threshold_backward")) fail_msg("the peak is at %s", target);
    remat_graph_free(folded), remat_graph_free(graph);
}

static void llama_without_aliases(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = load(ctx, "llama7b"), *apart = NULL;
    OK(ctx, remat_graph_prepare(ctx, graph, REMAT_NO_ALIAS, NULL, &apart));
    remat_info info = REMAT_INFO_INIT;
    OK(ctx, remat_graph_info(ctx, apart, &info));
    assert_int_equal((info.keep_all_peak_bytes + 50000000) / 100000000, 5379); /* 537.9e9 */
    assert_int_equal(info.views, 0);
    remat_graph_free(apart), remat_graph_free(graph);
}

static void moccasin(void **state)
{
    remat_ctx *ctx = *state;
    static const struct {
        const char *name;
        uint32_t ops, edges;
        int64_t peak, cost;
        int32_t need_basis;
    } table[] = {
        {"moccasin/VGG16_256_224x224x3_train_nx", 45, 87, 15825108992, 15500, 8312},
        {"moccasin/fcn_8_vgg_32_416x608x3_train_nx", 73, 149, 13484795520, 10275337746048, 6146},
        {"moccasin/MobileNet_512_224x224x3_train_nx", 0, 0, 34701056000, 162080, 0},
        {"moccasin/random_layered_n100_w0.27_nlv0.75_ed0.2_scd0.14", 100, 236, 46319, 47769, 0},
        {"moccasin/random_layered_n500_w0.36_nlv0.75_ed0.2_scd0.14", 500, 2461, 284439, 255302, 0},
    };
    for (size_t i = 0; i < LENGTH(table); i++) {
        remat_graph *graph = load(ctx, table[i].name);
        uint32_t edges = 0, n;
        for (uint32_t op = 0; op < remat_graph_n_ops(graph); op++)
            remat_graph_op_in(graph, op, &n), edges += n;
        if (table[i].ops) assert_int_equal(remat_graph_n_ops(graph), table[i].ops);
        if (table[i].edges) assert_int_equal(edges, table[i].edges);
        int64_t cost, resident;
        const int64_t peak = keep_all(ctx, graph, &cost, &resident);
        assert_int_equal(peak, table[i].peak);
        assert_int_equal(cost, table[i].cost);
        assert_int_equal(resident, 0);
        remat_info info = REMAT_INFO_INIT;
        OK(ctx, remat_graph_info(ctx, graph, &info));
        if (table[i].need_basis)
            assert_int_equal((info.need_bytes * 10000 + peak / 2) / peak, table[i].need_basis);
        remat_graph_free(graph);
    }
}

static void written_and_read_again(void **state)
{
    remat_ctx *ctx = *state;
    static const char *const names[] = {"vgg11", "gpt2", "moccasin/VGG16_256_224x224x3_train_nx"};
    for (size_t i = 0; i < LENGTH(names); i++)
        for (int format = REMAT_JSON; format <= REMAT_JSON_GZ; format++) {
            remat_graph *graph = load(ctx, names[i]), *again = NULL;
            remat_input *input = NULL;
            text buffer = {0};
            OK(ctx, remat_graph_write(ctx, graph, (remat_format)format, into_text, &buffer));
            OK(ctx, remat_input_parse(ctx, "again", buffer.bytes, buffer.n, &input));
            assert_int_equal(remat_input_kind(input), REMAT_KIND_GRAPH);
            OK(ctx, remat_graph_read(ctx, input, &again));
            assert_string_equal(remat_graph_digest(again), remat_graph_digest(graph));
            remat_info a = REMAT_INFO_INIT, b = REMAT_INFO_INIT;
            OK(ctx, remat_graph_info(ctx, graph, &a));
            OK(ctx, remat_graph_info(ctx, again, &b));
            assert_int_equal(a.keep_all_cost, b.keep_all_cost);
            assert_string_equal(remat_graph_cost_unit(again), remat_graph_cost_unit(graph));
            free(buffer.bytes);
            remat_input_free(input), remat_graph_free(graph), remat_graph_free(again);
        }
}

/* The steps of a strategy's plan, brought back as a caller's own: the same numbers, bound and all,
 * but nobody searched. */
static void steps_of_a_plan_as_a_plan(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *file = NULL, *graph = NULL;
    remat_plan *made = NULL, *given = NULL, *better = NULL;
    remat_verdict verdict = REMAT_VERDICT_INIT;
    size_t n, n_given;
    file = load(ctx, "resnet18");
    OK(ctx, remat_graph_prepare(ctx, file, REMAT_DCE, NULL, &graph)); /* with indices of its own */
    OK(ctx, remat_ctx_set(ctx, "seed", 5));
    OK(ctx, remat_plan_make(ctx, graph, "rotor", INT64_C(8) << 30, &made));
    const remat_step *steps = remat_plan_steps(made, &n);
    const remat_summary *x = remat_plan_summary(made);
    assert_true(x->recomputed_ops > 0 && x->within_budget && x->bound_cost > x->keep_all_cost);
    OK(ctx, remat_plan_of_steps(ctx, graph, steps, n, "mine", x->budget_bytes, 0, &given));
    const remat_summary *y = remat_plan_summary(given);
    assert_int_equal(memcmp(steps, remat_plan_steps(given, &n_given), n * sizeof *steps), 0);
    assert_int_equal(n, n_given);
    assert_string_equal(y->strategy, "mine");
    assert_true(y->seed == REMAT_ABSENT && y->work == 0 && y->stopped == REMAT_DONE);
#define SAME(field) assert_int_equal(y->field, x->field)
    SAME(flags), SAME(budget_bytes), SAME(peak_bytes), SAME(keep_all_peak_bytes);
    SAME(resident_bytes), SAME(need_bytes), SAME(cost), SAME(keep_all_cost), SAME(bound_cost);
    SAME(offloaded_bytes), SAME(saved_bytes), SAME(traffic_bytes), SAME(peak_step), SAME(need_op);
    SAME(steps), SAME(ops), SAME(recomputed_ops), SAME(within_budget), SAME(outcome), SAME(kind);
    SAME(bandwidth), SAME(cut_capacity);
#undef SAME
    assert_string_equal(y->bound_method, "flow");
    OK(ctx, remat_plan_verify_bound(ctx, graph, given, &verdict));
    assert_true(verdict.valid);
    OK(ctx, remat_plan_improve(ctx, graph, given, "keep-all", x->budget_bytes, &better));
    assert_int_equal(remat_plan_summary(better)->cost, x->cost); /* a start as good as any */

    FAILS(ctx, REMAT_E_USAGE,
          remat_plan_of_steps(ctx, graph, steps, n, NULL, REMAT_BUDGET_MIN, 0, &given));
    FAILS(ctx, REMAT_E_USAGE, remat_plan_of_steps(ctx, graph, steps, n, NULL, 0, -1, &given));
    FAILS(ctx, REMAT_E_PLAN, remat_plan_of_steps(ctx, graph, steps, n - 1, NULL, 0, 0, &given));
    FAILS(ctx, REMAT_E_PLAN, remat_plan_of_steps(ctx, file, steps, n, NULL, 0, 0, &given));
    assert_ptr_equal(remat_plan_summary(given), y); /* untouched */
    remat_plan_free(made), remat_plan_free(given), remat_plan_free(better);
    remat_graph_free(graph), remat_graph_free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(keep_all_peaks),
                                       WITH_CONTEXT(folded_op_counts),
                                       WITH_CONTEXT(vgg11_numbers),
                                       WITH_CONTEXT(llama_without_aliases),
                                       WITH_CONTEXT(moccasin),
                                       WITH_CONTEXT(written_and_read_again),
                                       WITH_CONTEXT(steps_of_a_plan_as_a_plan)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
