/* test_auto.c: auto is never dearer than rotor and mincut where these take little time, finds the
 * optima that Checkmate's MILP proves on a public graph, gives the same plan twice, and on chains
 * is the better of both rotors; rounded flow seeds are valid; what moved for nothing goes back. */
#include <stdio.h>
#include <string.h>

#include "support.h"

#include "plan/bound/rounding.h"
#include "plan/search/restore.h"
#include "sim/sequence.h"

static remat_graph *load(remat_ctx *ctx, const char *name, const char *cost_model)
{
    char path[512];
    snprintf(path, sizeof path, "%s/graphs/%s.json.gz", REMAT_TEST_DATA, name);
    remat_graph *file = NULL, *graph = NULL;
    OK(ctx, remat_graph_load(ctx, path, &file));
    OK(ctx, remat_graph_prepare(ctx, file, REMAT_DCE | REMAT_REPLAY_RANDOM, cost_model, &graph));
    remat_graph_free(file);
    return graph;
}

static int64_t cost_of(remat_ctx *ctx, const remat_graph *graph, const char *strategy,
                       int64_t budget)
{
    remat_plan *plan = NULL;
    OK(ctx, remat_plan_make(ctx, graph, strategy, budget, &plan));
    const remat_summary *s = remat_plan_summary(plan);
    const int64_t cost = s->within_budget ? s->cost : INT64_MAX;
    assert_true(s->bound_cost <= s->cost);
    remat_plan_free(plan);
    return cost;
}

/* True of these graphs. If this fails, look first at whether rotor and mincut still end within
 * their share of auto's work: where they take longer, auto may be dearer, and nothing is wrong. */
static void never_dearer(void **state)
{
    remat_ctx *ctx = *state;
    static const char *const names[] = {"resnet18", "gpt2", "mobilenetv3_large"};
    for (size_t i = 0; i < RM_LEN(names); i++) {
        remat_graph *graph = load(ctx, names[i], "roofline:h100");
        remat_info info = REMAT_INFO_INIT;
        OK(ctx, remat_graph_info(ctx, graph, &info));
        for (int64_t percent = 90; percent >= 50; percent -= 20) {
            const int64_t budget = info.keep_all_peak_bytes / 100 * percent;
            OK(ctx, remat_ctx_set(ctx, "work", 100000));
            const int64_t ours = cost_of(ctx, graph, "auto", budget);
            OK(ctx, remat_ctx_set(ctx, "work", 0));
            assert_true(ours <= cost_of(ctx, graph, "rotor", budget));
            assert_true(ours <= cost_of(ctx, graph, "mincut", budget));
        }
        remat_graph_free(graph);
    }
}

/* The chain is a model of the graph, so where its schedules fit the graph is irregular. One for a
 * budget between two of a coarse sweep is a fifth cheaper here. */
static void fine_sweep(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = load(ctx, "distilbert", "roofline:h100");
    remat_info info = REMAT_INFO_INIT;
    OK(ctx, remat_graph_info(ctx, graph, &info));
    const int64_t cost = cost_of(ctx, graph, "rotor", info.keep_all_peak_bytes / 5);
    assert_true(cost < info.keep_all_cost + info.keep_all_cost / 100 * 42);
    remat_graph_free(graph);
}

/* Proved by a MILP solver for the given order. One of 4 seeds meets them to a millionth.
 *
 * If this fails: at 90 and 80 % every one of the seeds 0 to 11 met the optimum, so a miss there
 * means that the search got worse. At 70 % only 4 of those 12 seeds did (2, 4, 6 and 11), and the
 * others were 4 millionths above it. So a miss there, by no more than that, may be bad luck of a
 * search that walks another way. Run it with 12 seeds: about 4 should meet the optimum. */
static void known_optima(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = load(ctx, "moccasin/fcn_8_vgg_32_416x608x3_train_nx", NULL);
    /* At 90, 80 and 70 %. */
    static const int64_t optima[] = {10278354943616, 10289323652736, 10366941963904};
    OK(ctx, remat_ctx_set(ctx, "work", 500000));
    for (int64_t i = 0; i < 3; i++) {
        bool is_met = false;
        for (int64_t seed = 0; seed < 4 && !is_met; seed++) {
            OK(ctx, remat_ctx_set(ctx, "seed", seed));
            const int64_t cost = cost_of(ctx, graph, "auto", INT64_C(13484795520) / 10 * (9 - i));
            is_met = cost <= optima[i] + optima[i] / 1000000;
        }
        assert_true(is_met);
    }
    remat_graph_free(graph);
}

/* Also with a limit of time that does not cut off. */
static void same_plan_twice(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = load(ctx, "resnet50", "unit");
    remat_plan *plans[2] = {NULL};
    OK(ctx, remat_ctx_set(ctx, "work", 100000));
    for (int i = 0; i < 2; i++) {
        OK(ctx, remat_ctx_set(ctx, "time_ms", i ? 1000000000 : 0));
        OK(ctx, remat_plan_make(ctx, graph, "auto", 8000000000, &plans[i]));
    }
    assert_int_equal(remat_plan_summary(plans[0])->work, remat_plan_summary(plans[1])->work);
    size_t n, m;
    const remat_step *a = remat_plan_steps(plans[0], &n), *b = remat_plan_steps(plans[1], &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n * sizeof *a);
    assert_true(remat_plan_summary(plans[0])->within_budget);
    remat_plan_free(plans[0]), remat_plan_free(plans[1]);
    remat_graph_free(graph);
}

static void on_chains(void **state)
{
    remat_ctx *ctx = *state;
    remat_input *input = NULL;
    remat_chain *chain = NULL;
    OK(ctx, remat_input_open(ctx, "chain:figure4?n=7", &input));
    OK(ctx, remat_chain_read(ctx, input, &chain));
    OK(ctx, remat_ctx_set(ctx, "slots", 0));
    static const char *const names[] = {"auto", "rotor", "rotor-float"};
    int64_t cost[3];
    for (int i = 0; i < 3; i++) {
        remat_plan *plan = NULL;
        OK(ctx, remat_chain_plan(ctx, chain, names[i], 15, &plan));
        assert_true(remat_plan_summary(plan)->within_budget);
        cost[i] = remat_plan_summary(plan)->cost;
        remat_plan_free(plan);
    }
    assert_int_equal(cost[0], 16); /* 2n + 2; persistent 3n - 2 */
    assert_int_equal(cost[1], 19);
    assert_int_equal(cost[2], 16);
    remat_chain_free(chain);
    remat_input_free(input);
}

/* Another order of the ops: neighbours that do not need each other change places. */
static uint32_t *swapped_order(remat_ctx *ctx, const rm_normal *nm)
{
    uint32_t *order = rm_scratch(ctx, nm->n_ops, sizeof *order), n_swapped = 0;
    assert_non_null(order);
    for (uint32_t op = 0; op < nm->n_ops; op++) order[op] = op;
    for (uint32_t at = 0; at + 1 < nm->n_ops; at += 2) {
        bool reads = false;
        for (uint32_t k = nm->in_begin[at + 1]; k < nm->in_begin[at + 2]; k++)
            reads |= nm->producer[nm->in[k]] == at;
        if (!reads) order[at] = at + 1, order[at + 1] = at, n_swapped++;
    }
    assert_true(n_swapped > 0);
    return order;
}

static void check_first_runs(remat_ctx *ctx, const rm_normal *nm, const uint32_t *order,
                             const rm_codes *codes)
{
    uint8_t *seen = rm_scratch(ctx, nm->n_ops, 1);
    uint32_t n = 0;
    assert_non_null(seen);
    for (size_t i = 0; i < codes->n; i++) {
        if (seen[codes->items[i]]) continue;
        assert_int_equal(codes->items[i], order ? order[n] : n);
        seen[codes->items[i]] = 1;
        n++;
    }
    assert_int_equal(n, nm->n_ops);
}

/* The bound of half the memory, rounded: with the bound's rules or without, in the graph's order or
 * in another one. */
static void check_rounding(remat_ctx *ctx, const remat_graph *graph, unsigned rules, bool swaps)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_info info = REMAT_INFO_INIT;
    rm_normal nm;
    rm_codes codes = {0};
    rm_schedule steps = {0};
    remat_verdict v = REMAT_VERDICT_INIT;
    OK(ctx, remat_graph_info(ctx, graph, &info));
    OK(ctx, rm_normal_of(ctx, graph, &nm));
    const uint32_t *order = swaps ? swapped_order(ctx, &nm) : NULL;
    rm_rounding_options options = {
        .budget_bytes = info.keep_all_peak_bytes / 2, .rules = rules, .order = order};
    OK(ctx, rm_round_order_bound(ctx, &nm, &options, &codes));
    assert_true(codes.n > nm.n_ops);
    check_first_runs(ctx, &nm, order, &codes);
    OK(ctx, rm_normal_expand(ctx, &nm, codes.items, codes.n, &steps));
    rm_steps_to_original(graph, steps.items, steps.n);
    OK(ctx, remat_verify(ctx, graph, steps.items, steps.n, 0, &v));
    assert_true(v.valid);
    assert_true(v.peak_bytes < info.keep_all_peak_bytes);
    rm_seq q; /* has the same memory: no token is stale */
    OK(ctx, rm_seq_new(ctx, &nm, 4 * (uint32_t)codes.n, &q));
    assert_true(rm_seq_load(&q, codes.items, codes.n));
    assert_int_equal(rm_seq_peak_kept(&q), v.peak_bytes);
    rm_seq_free(&q);
    const size_t n = codes.n;
    options.percent = 100; /* whatever the program does not keep whole is lost */
    OK(ctx, rm_round_order_bound(ctx, &nm, &options, &codes));
    assert_true(codes.n >= n);
    options = (rm_rounding_options){.order = order}; /* nothing fits */
    OK(ctx, rm_round_order_bound(ctx, &nm, &options, &codes));
    assert_int_equal(codes.n, 0);
    RM_VEC_FREE(&ctx->heap, codes);
    RM_VEC_FREE(&ctx->heap, steps);
    rm_scratch_release(ctx, mark);
}

static void flow_seeds(void **state)
{
    static const char *const names[] = {"resnet18", "densenet121", "distilbert", "gpt2"};
    static const char *const models[] = {"unit",
                                         "node"}; /* node: views that cost stay, as tokens */
    remat_ctx *ctx = *state;
    for (size_t i = 0; i < RM_LEN(names) * RM_LEN(models); i++) {
        remat_graph *graph = load(ctx, names[i / RM_LEN(models)], models[i % RM_LEN(models)]);
        for (int k = 0; k < 4; k++) check_rounding(ctx, graph, k % 2 ? RM_BOUND_RULES : 0, k / 2);
        remat_graph_free(graph);
    }
}

/* The clock may run out anywhere: in a linear program, between rounds, in a polish. */
static void little_time(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = load(ctx, "densenet121", "unit");
    remat_info info = REMAT_INFO_INIT;
    OK(ctx, remat_graph_info(ctx, graph, &info));
    for (int64_t ms = 10; ms <= 250; ms += 40) {
        remat_plan *plan = NULL;
        OK(ctx, remat_ctx_set(ctx, "time_ms", ms));
        OK(ctx, remat_plan_make(ctx, graph, "auto", info.keep_all_peak_bytes / 4, &plan));
        assert_int_equal(remat_plan_summary(plan)->stopped, REMAT_TIME);
        remat_plan_free(plan);
    }
    remat_graph_free(graph);
}

/* A start for another budget is never lost; a start of another graph is refused. */
static void improves_a_start(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = load(ctx, "resnet18", "unit"), *other = load(ctx, "distilbert", "unit");
    remat_info info = REMAT_INFO_INIT;
    remat_plan *start = NULL, *plan = NULL;
    OK(ctx, remat_graph_info(ctx, graph, &info));
    OK(ctx, remat_ctx_set(ctx, "work", 200000));
    OK(ctx, remat_plan_make(ctx, graph, "auto", info.keep_all_peak_bytes / 10 * 6, &start));
    OK(ctx, remat_ctx_set(ctx, "work", 1));
    OK(ctx,
       remat_plan_improve(ctx, graph, start, "keep-all", info.keep_all_peak_bytes / 10 * 7, &plan));
    assert_true(remat_plan_summary(plan)->within_budget); /* keep-all alone is not */
    assert_true(remat_plan_summary(plan)->cost == remat_plan_summary(start)->cost);
    remat_plan_free(plan);
    OK(ctx, remat_ctx_set(ctx, "work", 200000));
    OK(ctx,
       remat_plan_improve(ctx, graph, start, "auto", info.keep_all_peak_bytes / 10 * 7, &plan));
    assert_true(remat_plan_summary(plan)->within_budget);
    assert_true(remat_plan_summary(plan)->cost < remat_plan_summary(start)->cost);
    remat_plan_free(plan);
    plan = NULL;
    assert_int_equal(remat_plan_improve(ctx, other, start, "auto", info.keep_all_peak_bytes, &plan),
                     REMAT_E_PLAN);
    assert_null(plan);
    remat_plan_free(start);
    remat_graph_free(other);
    remat_graph_free(graph);
}

/* Strategies without transfers neither trip over a start that has some nor lose it: here transfers
 * are nearly free. */
static void start_with_transfers(void **state)
{
    static const char *const strategies[] = {"auto",     "exact",  "fastsa",
                                             "keep-all", "mincut", "ap-greedy"};
    remat_ctx *ctx = *state;
    remat_graph *graph = load(ctx, "resnet18", "roofline:h100");
    remat_info info = REMAT_INFO_INIT;
    remat_plan *start = NULL;
    OK(ctx, remat_graph_info(ctx, graph, &info));
    OK(ctx, remat_ctx_set(ctx, "bandwidth", INT64_C(1000000000000000)));
    OK(ctx, remat_ctx_set(ctx, "work", 100000));
    OK(ctx, remat_ctx_set(ctx, "offload", 1));
    OK(ctx,
       remat_plan_make(ctx, graph, "fastsa-offload", info.keep_all_peak_bytes / 10 * 7, &start));
    OK(ctx, remat_ctx_set(ctx, "offload", 0));
    assert_true(remat_plan_summary(start)->within_budget);
    assert_true(remat_plan_summary(start)->offloaded_bytes > 0);
    for (size_t i = 0; i < RM_LEN(strategies); i++) {
        remat_plan *plan = NULL;
        OK(ctx, remat_plan_improve(ctx, graph, start, strategies[i],
                                   info.keep_all_peak_bytes / 10 * 5, &plan));
        remat_plan_free(plan);
        OK(ctx, remat_plan_improve(ctx, graph, start, strategies[i],
                                   info.keep_all_peak_bytes / 10 * 7, &plan));
        assert_true(remat_plan_summary(plan)->within_budget &&
                    remat_plan_summary(plan)->cost <= remat_plan_summary(start)->cost);
        remat_plan_free(plan);
    }
    remat_plan_free(start);
    remat_graph_free(graph);
}

/* A descent gets close to what is proved of all plans, and the plan is within a hundredth of it. If
 * this fails: of the seeds 0 to 4 four got down to 15.98 % of keep-all's memory and one to 16.3 %,
 * where 15.89 % is proved. */
static void lowest_peak(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = NULL;
    remat_plan *plan = NULL;
    OK(ctx, remat_graph_load(ctx, "zoo:resnet50", &graph));
    OK(ctx, remat_ctx_set(ctx, "work", SANITIZED ? 500000 : 10000000));
    OK(ctx, remat_plan_make(ctx, graph, "auto", REMAT_BUDGET_MIN, &plan));
    const remat_summary *s = remat_plan_summary(plan);
    assert_true(SANITIZED || s->peak_bytes < s->least_peak_bound / 100 * 105);
    remat_plan_free(plan);
    remat_graph_free(graph);
}

/* Near the lowest peak a descent from rotor's plan for a little more finds one that is not dear.
 * rotor itself costs 480 % more there. If this fails: seeds 0 to 7 had 76 to 92 %. */
static void cost_near_the_lowest_peak(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = NULL;
    remat_info info = REMAT_INFO_INIT;
    OK(ctx, remat_graph_load(ctx, "zoo:vit", &graph));
    OK(ctx, remat_graph_info(ctx, graph, &info));
    OK(ctx, remat_ctx_set(ctx, "work", SANITIZED ? 500000 : 4000000));
    const int64_t cost = cost_of(ctx, graph, "auto", info.keep_all_peak_bytes / 1000 * 81);
    assert_true(SANITIZED || cost < info.keep_all_cost / 100 * 200);
    remat_graph_free(graph);
}

static remat_graph *traced_network(remat_ctx *ctx, const char *path)
{
    remat_graph *traced = NULL, *graph = NULL;
    OK(ctx, remat_graph_load(ctx, path, &traced));
    OK(ctx, remat_graph_prepare(ctx, traced, REMAT_DCE | REMAT_REPLAY_RANDOM, NULL, &graph));
    remat_graph_free(traced);
    return graph;
}

/* Above the lowest peak, where neither a search nor rotor finds a plan, nobody has set a limit. If
 * this fails: it costs 42 % more. */
static void found_above_the_lowest_peak(void **state)
{
    remat_ctx *ctx = *state;
    remat_info info = REMAT_INFO_INIT;
    remat_graph *graph = traced_network(ctx, REMAT_TEST_DATA "/graphs/resnet50.json.gz");
    OK(ctx, remat_graph_info(ctx, graph, &info));
    if (SANITIZED) OK(ctx, remat_ctx_set(ctx, "work", 500000));
    const int64_t cost = cost_of(ctx, graph, "auto", info.keep_all_peak_bytes / 1000 * 169);
    assert_true(SANITIZED || (cost > 0 && cost < info.keep_all_cost / 100 * 160));
    remat_graph_free(graph);
}

/* At 1.05 times the lowest peak nothing fits at first, and auto goes on. At 1.1 times a dear plan
 * fits after a second; auto rested there, with 45.2 % where 1.05 times has 41.8 %. If this fails:
 * seeds 0 to 2 had 41.8, 49.9 and 40.8 %, and 38.3, 40.9 and 48.8 %. */
static void more_memory_is_not_dearer(void **state)
{
    remat_ctx *ctx = *state;
    if (SANITIZED) return; /* it takes ten times as long there, and compares costs alone */
    remat_graph *graph = load(ctx, "resnet50", NULL);
    const int64_t less = cost_of(ctx, graph, "auto", INT64_C(3772344744)),
                  more = cost_of(ctx, graph, "auto", INT64_C(3951980208));
    assert_true(more <= less);
    remat_graph_free(graph);
}

/* Nothing fits at first, and half of the work is enough to find a plan: the other half, which would
 * have been for a descent, makes it cheaper. */
static void work_is_used_up(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph =
        load(ctx, "moccasin/random_layered_n100_w0.27_nlv0.75_ed0.2_scd0.14", NULL);
    remat_info info = REMAT_INFO_INIT;
    remat_plan *plan = NULL;
    OK(ctx, remat_graph_info(ctx, graph, &info));
    OK(ctx, remat_ctx_set(ctx, "work", 500000));
    OK(ctx, remat_plan_make(ctx, graph, "auto", info.keep_all_peak_bytes / 10 * 7, &plan));
    assert_true(remat_plan_summary(plan)->within_budget);
    assert_true(remat_plan_summary(plan)->work > 450000);
    remat_plan_free(plan);
    remat_graph_free(graph);
}

/* What rotor makes of DenseNet needs three times the memory of mincut's plan, and is dear. A
 * descent from there ended at 11.96 % of keep-all's peak; from keep-all it gets to 10.7 %. */
static void descends_from_keep_all(void **state)
{
    remat_ctx *ctx = *state;
    if (SANITIZED) return;
    remat_graph *graph = load(ctx, "densenet121", NULL);
    remat_plan *plan = NULL;
    OK(ctx, remat_plan_make(ctx, graph, "auto", REMAT_BUDGET_MIN, &plan));
    const remat_summary *s = remat_plan_summary(plan);
    assert_true(s->peak_bytes < s->keep_all_peak_bytes / 1000 * 115);
    remat_plan_free(plan);
    remat_graph_free(graph);
}

/* One rounding of the bound's program, in turn at several thresholds. At half a gap alone the
 * search stayed with plans of 14.0 %. If this fails: seeds 0 to 7 had 11.6 to 12.2 %. */
static void cost_by_several_roundings(void **state)
{
    remat_ctx *ctx = *state;
    remat_info info = REMAT_INFO_INIT;
    remat_graph *graph = traced_network(ctx, REMAT_TEST_DATA "/graphs/mobilenetv3_large.json.gz");
    OK(ctx, remat_graph_info(ctx, graph, &info));
    OK(ctx, remat_ctx_set(ctx, "work", SANITIZED ? 500000 : 4000000));
    const int64_t cost = cost_of(ctx, graph, "auto", info.keep_all_peak_bytes / 1000 * 246);
    assert_true(SANITIZED || cost < info.keep_all_cost / 100 * 113);
    remat_graph_free(graph);
}

/* Cells of many branches, and long skips: no plan by hand, and hardly a chain. Twice the gaps that
 * were met with seeds 0 to 2, in permille of the cost; rotor's and mincut's plans are no better. */
static void branches_and_skips(void **state)
{
    remat_ctx *ctx = *state;
    static const struct {
        const char *source;
        int64_t gap;
    } cases[] = {{"zoo:inception", 2}, {"zoo:nasnet", 10}, {"zoo:unet", 70}};
    for (size_t i = 0; i < RM_LEN(cases); i++) {
        remat_graph *graph = NULL;
        remat_plan *plan = NULL;
        remat_info info = REMAT_INFO_INIT;
        OK(ctx, remat_graph_load(ctx, cases[i].source, &graph));
        OK(ctx, remat_graph_info(ctx, graph, &info));
        const int64_t budget = info.keep_all_peak_bytes / 2;
        OK(ctx, remat_ctx_set(ctx, "work", SANITIZED ? 300000 : 1000000));
        OK(ctx, remat_plan_make(ctx, graph, "auto", budget, &plan));
        const remat_summary *s = remat_plan_summary(plan);
        assert_true(s->within_budget && s->bound_cost <= s->cost);
        assert_true(SANITIZED || s->cost - s->bound_cost <= s->cost / 1000 * cases[i].gap);
        assert_true(s->cost <= cost_of(ctx, graph, "rotor", budget));
        assert_true(s->cost <= cost_of(ctx, graph, "mincut", budget));
        OK(ctx, remat_ctx_set(ctx, "work", 0));
        remat_plan_free(plan);
        remat_graph_free(graph);
    }
}

/* A graph of a few bytes: there the steps between budgets are less than one. */
static void least_of_little(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = NULL;
    remat_plan *plan = NULL;
    OK(ctx, remat_graph_load(ctx, "zoo:f", &graph));
    OK(ctx, remat_ctx_set(ctx, "work", 1000));
    OK(ctx, remat_plan_make(ctx, graph, "auto", REMAT_BUDGET_MIN, &plan));
    assert_true(remat_plan_summary(plan)->peak_bytes <=
                remat_plan_summary(plan)->keep_all_peak_bytes);
    remat_plan_free(plan);
    remat_graph_free(graph);
}

/* A plan for less memory is a start that fits. No strategy may rest there: with it, each finds what
 * it finds without. (Curves go from budget to budget in this way.) */
static void improves_with_every_strategy(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = load(ctx, "resnet18", "unit");
    remat_info info = REMAT_INFO_INIT;
    remat_plan *start = NULL, *plan = NULL;
    size_t n_improved = 0;
    OK(ctx, remat_graph_info(ctx, graph, &info));
    OK(ctx, remat_ctx_set(ctx, "work", 20000));
    const int64_t budget = info.keep_all_peak_bytes / 100 * 85;
    OK(ctx, remat_plan_make(ctx, graph, "revolve", REMAT_BUDGET_MIN, &start));
    const int64_t before = remat_plan_summary(start)->cost;
    for (size_t i = 0; remat_strategy_at(i); i++) {
        const char *strategy = remat_strategy_at(i)->name;
        const remat_status status = remat_plan_improve(ctx, graph, start, strategy, budget, &plan);
        if (status == REMAT_E_APPLIES) continue; /* it needs an option, or a solver */
        OK(ctx, status);
        const int64_t alone = cost_of(ctx, graph, strategy, budget),
                      after = remat_plan_summary(plan)->cost;
        remat_plan_free(plan);
        if (after > before || after > alone)
            fail_msg("%s: %lld from %lld, alone %lld", strategy, (long long)after,
                     (long long)before, (long long)alone);
        n_improved += after < before;
    }
    assert_true(n_improved > 10);
    OK(ctx, remat_ctx_set(ctx, "work", 0));
    remat_plan_free(start);
    remat_graph_free(graph);
}

/* A chain f0 .. f9 of ops that each read a cast c0 .. c9 of a weight as well. */
static remat_graph *casts(remat_ctx *ctx)
{
    remat_builder *b = remat_builder_new(ctx, "casts");
    uint32_t last = remat_builder_value(b, "x", 100);
    remat_builder_value_set(b, last, REMAT_VALUE_KIND, REMAT_INPUT);
    for (int i = 0; i < 10; i++) {
        const uint32_t weight = remat_builder_value(b, "w", 40),
                       cast = remat_builder_value(b, "c", 20),
                       next = remat_builder_value(b, "y", 100);
        remat_builder_value_set(b, weight, REMAT_VALUE_KIND, REMAT_PARAM);
        remat_builder_op(b, "cast", &weight, 1, &cast, 1);
        remat_builder_op(b, "mm", (uint32_t[]){last, cast}, 2, &next, 1);
        last = next;
    }
    remat_builder_output(b, last);
    remat_graph *graph = NULL;
    OK(ctx, remat_builder_finish(b, &graph));
    remat_builder_free(b);
    return graph;
}

/* All casts first is a plan, too, and nothing is gained by it. */
static void what_moved_for_nothing_goes_back(void **state)
{
    remat_ctx *ctx = *state;
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_graph *graph = casts(ctx);
    rm_normal nm;
    rm_codes codes = {0};
    OK(ctx, rm_normal_of(ctx, graph, &nm));
    for (uint32_t op = 20; op > 0; op -= 2) OK(ctx, RM_PUSH(ctx, codes, op - 2));
    for (uint32_t op = 1; op < 20; op += 2) OK(ctx, RM_PUSH(ctx, codes, op));
    OK(ctx, rm_restore_order(ctx, &nm, 0, &codes));
    assert_int_equal(codes.n, 20);
    for (uint32_t op = 0; op < 20; op++) assert_int_equal(codes.items[op], op);
    RM_VEC_FREE(&ctx->heap, codes);
    remat_graph_free(graph);
    rm_scratch_release(ctx, mark);
}

/* So do several that ran late and belong between the same two. */
static void neighbours_go_back(void **state)
{
    enum { CHAIN = 10, COUNTERS = 5, N = 2 * CHAIN + COUNTERS };
    remat_ctx *ctx = *state;
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_builder *b = remat_builder_new(ctx, "counters");
    uint32_t last = remat_builder_value(b, "x", 100), counter = last;
    remat_builder_value_set(b, last, REMAT_VALUE_KIND, REMAT_INPUT);
    rm_codes codes = {0};
    for (uint32_t op = 0; op < N; op++) {
        const bool counts = op >= CHAIN && op < CHAIN + COUNTERS;
        const uint32_t next = remat_builder_value(b, "y", counts ? 8 : 100);
        remat_builder_op(b, "f", counts ? &counter : &last, 1, &next, 1);
        if (counts) remat_builder_output(b, next);
        else last = next;
        if (!counts) OK(ctx, RM_PUSH(ctx, codes, op));
    }
    for (uint32_t op = CHAIN; op < CHAIN + COUNTERS; op++) OK(ctx, RM_PUSH(ctx, codes, op));
    remat_builder_output(b, last);
    remat_graph *graph = NULL;
    rm_normal nm;
    OK(ctx, remat_builder_finish(b, &graph));
    remat_builder_free(b);
    OK(ctx, rm_normal_of(ctx, graph, &nm));
    OK(ctx, rm_restore_order(ctx, &nm, 1000, &codes));
    for (uint32_t op = 0; op < N; op++) assert_int_equal(codes.items[op], op);
    RM_VEC_FREE(&ctx->heap, codes);
    remat_graph_free(graph);
    rm_scratch_release(ctx, mark);
}

/* How many first runs are in no longest part of them that is in the graph's order. */
static uint32_t out_of_order(const remat_plan *plan)
{
    size_t n;
    uint32_t first[2000], length[2000], n_first = 0, longest = 0;
    const remat_step *steps = remat_plan_steps(plan, &n);
    for (size_t i = 0; i < n; i++) {
        bool is_first = true;
        for (uint32_t j = 0; j < n_first; j++) is_first &= first[j] != steps[i].index;
        if (!is_first) continue;
        assert_true(n_first < RM_LEN(first));
        length[n_first] = 1;
        for (uint32_t j = 0; j < n_first; j++)
            if (first[j] < steps[i].index && length[j] >= length[n_first])
                length[n_first] = length[j] + 1;
        if (length[n_first] > longest) longest = length[n_first];
        first[n_first++] = steps[i].index;
    }
    return n_first - longest;
}

/* A search leaves half of the ops out of order, for nothing. */
static void plan_near_the_graphs_order(remat_ctx *ctx, const char *limit, int64_t value,
                                       remat_stopped stopped)
{
    remat_graph *graph = load(ctx, "resnet50", "roofline:h100");
    remat_info info = REMAT_INFO_INIT;
    remat_plan *plan = NULL;
    OK(ctx, remat_graph_info(ctx, graph, &info));
    OK(ctx, remat_ctx_set(ctx, limit, value));
    OK(ctx, remat_plan_make(ctx, graph, "auto", info.keep_all_peak_bytes / 2, &plan));
    OK(ctx, remat_ctx_set(ctx, limit, 0));
    assert_true(remat_plan_summary(plan)->within_budget);
    assert_int_equal(remat_plan_summary(plan)->stopped, stopped);
    assert_in_range(out_of_order(plan), 0, info.ops / 8);
    remat_plan_free(plan);
    remat_graph_free(graph);
}

/* Also where a search uses all of its time up. */
static void plans_are_near_the_graphs_order(void **state)
{
    plan_near_the_graphs_order(*state, "work", 1000000, REMAT_WORK);
    plan_near_the_graphs_order(*state, "time_ms", 2000, REMAT_TIME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(never_dearer),
                                       WITH_CONTEXT(fine_sweep),
                                       WITH_CONTEXT(known_optima),
                                       WITH_CONTEXT(same_plan_twice),
                                       WITH_CONTEXT(on_chains),
                                       WITH_CONTEXT(flow_seeds),
                                       WITH_CONTEXT(little_time),
                                       WITH_CONTEXT(improves_a_start),
                                       WITH_CONTEXT(start_with_transfers),
                                       WITH_CONTEXT(least_of_little),
                                       WITH_CONTEXT(lowest_peak),
                                       WITH_CONTEXT(cost_near_the_lowest_peak),
                                       WITH_CONTEXT(found_above_the_lowest_peak),
                                       WITH_CONTEXT(more_memory_is_not_dearer),
                                       WITH_CONTEXT(work_is_used_up),
                                       WITH_CONTEXT(descends_from_keep_all),
                                       WITH_CONTEXT(cost_by_several_roundings),
                                       WITH_CONTEXT(branches_and_skips),
                                       WITH_CONTEXT(improves_with_every_strategy),
                                       WITH_CONTEXT(what_moved_for_nothing_goes_back),
                                       WITH_CONTEXT(neighbours_go_back),
                                       WITH_CONTEXT(plans_are_near_the_graphs_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
