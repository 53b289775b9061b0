/* test_chain.c: chains: the numbers of the Rotor paper ("Optimal Re-Materialization Strategies for Heterogeneous Chains") and of
 * independent brute force on its examples. Sizes of the toy are hundredths of MB, times hundredths of ms. */
#include "support.h"

#include <stdio.h>
#include <string.h>

/* The strategies that work on chains: those for graphs alone come last. */
static const remat_entry *chain_strategy_at(size_t i)
{
    const remat_entry *entry = remat_strategy_at(i);
    return entry && strcmp(entry->name, "save-inputs") != 0 ? entry : NULL;
}

static const remat_stage toy[] = {
    {"", 763, 0, 763, 0, 0, 0, 0, 0},
    {"fc1", 954, 954, 954, 160, 305, 0, 2001, 0},
    {"fc2", 1068, 1068, 1068, 220, 448, 0, 2764, 0},
    {"fc3", 1106, 1108, 1106, 244, 509, 0, 3099, 0},
    {"fc4", 1068, 1066, 1068, 251, 493, 0, 3099, 0}, /* abar < a, as printed */
    {"fc5", 954, 954, 954, 210, 421, 0, 2764, 0},
    {"fc6", 763, 763, 763, 143, 334, 0, 1908, 0},
    {"loss", 0, 0, 0, 0, 0, 0, 0, 0},
};

static remat_ctx *ctx;

static int setup(void **state)
{
    (void)state;
    ctx = remat_ctx_new(NULL);
    return ctx ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    remat_ctx_free(ctx);
    return 0;
}

static remat_chain *toy_chain(void)
{
    remat_chain *chain = NULL;
    OK(ctx, remat_chain_new(ctx, "toy", toy, 6, &chain));
    return chain;
}

/* The cost of the plan, or -1 if nothing fits. */
static int64_t cost_of(const remat_chain *chain, const char *strategy, int64_t budget, int64_t slots)
{
    remat_plan *plan = NULL;
    OK(ctx, remat_ctx_set(ctx, "slots", slots));
    OK(ctx, remat_chain_plan(ctx, chain, strategy, budget, &plan));
    const remat_summary *s = remat_plan_summary(plan);
    remat_verdict v;
    OK(ctx, remat_chain_plan_verify(ctx, chain, plan, &v));
    assert_true(v.valid);
    const int64_t cost = s->within_budget ? s->cost : -1;
    if (s->within_budget && budget >= 0) assert_true(s->peak_bytes <= budget);
    remat_plan_free(plan);
    return cost;
}

static const char *sequence(const remat_plan *plan, char *text, size_t size)
{
    static const char *const names[] = {[REMAT_F_ALL] = "Fall", [REMAT_F_CK] = "Fck", [REMAT_F_NONE] = "Fnone", [REMAT_B] = "B"};
    size_t n, used = 0;
    const remat_step *steps = remat_plan_steps(plan, &n);
    for (size_t i = 0; i < n; i++) used += (size_t)snprintf(text + used, size - used, "%s%s%u", i ? " " : "", names[steps[i].kind], steps[i].index);
    return text;
}

static remat_verdict verdict_of(const remat_chain *chain, const char *text)
{
    remat_step steps[64];
    size_t n = 0;
    for (const char *p = text; *p; p += strspn(p, " ")) {
        unsigned stage;
        char name[8];
        int used;
        assert_int_equal(sscanf(p, "%7[A-Za-z]%u%n", name, &stage, &used), 2);
        const remat_step_kind kind = strcmp(name, "Fall") == 0 ? REMAT_F_ALL : strcmp(name, "Fck") == 0 ? REMAT_F_CK : strcmp(name, "Fnone") == 0 ? REMAT_F_NONE : REMAT_B;
        steps[n++] = (remat_step){kind, stage};
        p += used;
    }
    remat_verdict v;
    OK(ctx, remat_chain_verify(ctx, chain, steps, n, &v));
    return v;
}

#define PRINTED "Fck1 Fnone2 Fnone3 Fall4 Fall5 Fall6 Fall7 B7 B6 B5 B4 Fck1 Fnone2 Fall3 B3 Fall1 Fall2 B2 B1"

static void toy_keep_all_and_printed_sequence(void **state) /* TV-R1, TV-R2, TV-R3 */
{
    (void)state;
    remat_chain *chain = toy_chain();
    remat_plan *plan = NULL;
    OK(ctx, remat_chain_plan(ctx, chain, "keep-all", REMAT_BUDGET_NONE, &plan));
    assert_int_equal(remat_plan_summary(plan)->cost, 3738);
    assert_int_equal(remat_plan_summary(plan)->peak_bytes, 10699);
    size_t n;
    const remat_step *steps = remat_plan_steps(plan, &n);
    const remat_step at = steps[remat_plan_summary(plan)->peak_step];
    assert_true(at.kind == REMAT_B && at.index == 5);
    remat_plan_free(plan);

    const remat_verdict v = verdict_of(chain, PRINTED);
    assert_true(v.valid);
    assert_int_equal(v.cost, 4742);
    assert_int_equal(v.peak_bytes, 8675);
    assert_int_equal(v.peak_op, 5);

    char text[400];
    for (int64_t slots = 0; slots <= 9000; slots += 9000) {
        OK(ctx, remat_ctx_set(ctx, "slots", slots));
        OK(ctx, remat_chain_plan(ctx, chain, "rotor", 9000, &plan));
        assert_string_equal(sequence(plan, text, sizeof text), PRINTED);
        remat_plan_free(plan);
    }
    remat_chain_free(chain);
}

static void toy_rotor(void **state) /* TV-R4 */
{
    (void)state;
    static const int64_t budgets[] = {10699, 10000, 9500, 9000, 8675, 8674, 8500, 8212, 8211}, costs[] = {3738, 4118, 4362, 4742, 4742, 5617, 5617, 5617, -1};
    remat_chain *chain = toy_chain();
    for (size_t i = 0; i < 9; i++) {
        assert_int_equal(cost_of(chain, "rotor", budgets[i], 0), costs[i]);
        assert_int_equal(cost_of(chain, "rotor", budgets[i], budgets[i]), costs[i]); /* one slot a unit */
    }
    remat_chain_free(chain);
}

static void toy_revolve(void **state) /* TV-R5 */
{
    (void)state;
    static const int64_t budgets[] = {10700, 10000, 9500, 9000, 8675, 8212}, costs[] = {4966, 5126, 5346, 5506, 6130, 6130};
    remat_chain *chain = toy_chain();
    for (size_t i = 0; i < 6; i++) assert_int_equal(cost_of(chain, "revolve", budgets[i], 0), costs[i]);
    remat_chain_free(chain);
}

static void toy_float(void **state) /* TV-R6 */
{
    (void)state;
    static const int64_t budgets[] = {8674, 8600, 8500}, costs[] = {5237, 5457, 5617};
    remat_chain *chain = toy_chain();
    for (size_t i = 0; i < 3; i++) assert_int_equal(cost_of(chain, "rotor-float", budgets[i], 0), costs[i]);
    remat_chain_free(chain);
}

static void toy_periodic(void **state) /* TV-R8, the segment counts one by one as sequences */
{
    (void)state;
    static const struct { const char *text; int64_t cost, peak; } rows[] = {
        {"Fck1 Fnone2 Fnone3 Fall4 Fall5 Fall6 Fall7 B7 B6 B5 B4 Fall1 Fall2 Fall3 B3 B2 B1", 4362, 9166},
        {"Fck1 Fnone2 Fck3 Fnone4 Fall5 Fall6 Fall7 B7 B6 B5 Fall3 Fall4 B4 B3 Fall1 Fall2 B2 B1", 4613, 9278},
        {"Fck1 Fck2 Fck3 Fck4 Fck5 Fall6 Fall7 B7 B6 Fall5 B5 Fall4 B4 Fall3 B3 Fall2 B2 Fall1 B1", 4823, 10699},
    };
    remat_chain *chain = toy_chain();
    for (size_t i = 0; i < 3; i++) {
        const remat_verdict v = verdict_of(chain, rows[i].text);
        assert_true(v.valid);
        assert_int_equal(v.cost, rows[i].cost);
        assert_int_equal(v.peak_bytes, rows[i].peak);
    }
    assert_int_equal(cost_of(chain, "periodic", 10699, 500), 4362);
    assert_int_equal(cost_of(chain, "periodic", 9166, 500), 4362);
    assert_int_equal(cost_of(chain, "periodic", 9165, 500), -1);
    remat_chain_free(chain);
}

static void figure_4(void **state) /* TV-R9 */
{
    (void)state;
    for (uint32_t n = 4; n <= 8; n++) {
        remat_stage stages[16];
        const uint32_t length = n + 2;
        memset(stages, 0, sizeof stages);
        for (uint32_t l = 0; l <= length; l++) {
            const int64_t a = l == 0 ? 0 : l == 1 ? 1 : l == length ? 4 : 3;
            stages[l] = (remat_stage){"", a, a, a, l == 1 ? n - 2 : l == 2 ? 2 : 0, 0, 0, 0, 0};
        }
        remat_chain *chain = NULL;
        OK(ctx, remat_chain_new(ctx, "figure 4", stages, length, &chain));
        const int64_t persistent = cost_of(chain, "rotor", 15, 0), floating = cost_of(chain, "rotor-float", 15, 0);
        assert_int_equal(persistent, n == 4 ? 10 : 3 * n - 2);
        assert_int_equal(floating, n == 4 ? 10 : 2 * n + 2);
        remat_chain_free(chain);
    }
}

static void theorem_3_6(void **state) /* TV-R10: 2-partition as a chain */
{
    (void)state;
    static const struct { int64_t x[4]; uint32_t n; int64_t cost; } rows[] = {{{1, 2, 3}, 3, 12}, {{2, 3, 5, 4}, 4, 28}, {{1, 1, 4}, 3, 14}, {{1, 5, 2}, 3, 17}};
    for (size_t i = 0; i < 4; i++) {
        remat_stage stages[16];
        int64_t v = 0;
        memset(stages, 0, sizeof stages);
        for (uint32_t k = 0; k < rows[i].n; k++) v += rows[i].x[k];
        v /= 2;
        const uint32_t length = 2 * rows[i].n + 1;
        for (uint32_t l = 0; l <= length; l++) {
            const int64_t x = l % 2 == 0 ? 0 : l == length ? v : rows[i].x[l / 2];
            stages[l] = (remat_stage){"", x, x, x, x, 0, 0, 0, 0};
        }
        remat_chain *chain = NULL;
        OK(ctx, remat_chain_new(ctx, "partition", stages, length, &chain));
        assert_int_equal(cost_of(chain, "rotor-float", 3 * v, 0), rows[i].cost);
        remat_chain_free(chain);
    }
}

static void three_sequences(void **state) /* TV-R11 */
{
    (void)state;
    static const struct { const char *text; int64_t cost, peak; } rows[] = {
        {"Fck1 Fnone2 Fck3 Fall4 Fall5 B5 B4 Fall3 B3 Fall1 Fall2 B2 B1", 15, 7},
        {"Fck1 Fnone2 Fck3 Fck4 Fall5 B5 Fall4 B4 Fall3 B3 Fck1 Fall2 B2 Fall1 B1", 17, 7},
        {"Fck1 Fnone2 Fall3 Fck4 Fall5 B5 Fall4 B4 B3 Fall1 Fall2 B2 B1", 15, 8},
        {"Fall1 Fall2 Fall3 Fall4 Fall5 B5 B4 B3 B2 B1", 12, 11},
    };
    remat_stage stages[6] = {{"", 1, 0, 1, 0, 0, 0, 0, 0}};
    for (uint32_t l = 1; l <= 4; l++) stages[l] = (remat_stage){"", 1, 2, 1, 1, 2, 0, 0, 0};
    remat_chain *chain = NULL;
    OK(ctx, remat_chain_new(ctx, "four", stages, 4, &chain));
    for (size_t i = 0; i < 4; i++) {
        const remat_verdict v = verdict_of(chain, rows[i].text);
        assert_true(v.valid);
        assert_int_equal(v.cost, rows[i].cost);
        assert_int_equal(v.peak_bytes, rows[i].peak);
    }
    remat_chain_free(chain);
}

static void invalid_schedules(void **state)
{
    (void)state;
    static const struct { const char *text; uint32_t step; const char *says; } rows[] = {
        {"Fall2", 0, "a^1"}, {"B1", 0, "delta^1"}, {"Fnone1 Fall2 Fall1", 2, "a^0"}, {"Fall1 Fnone1", 1, "abar^1"}, {"Fall9", 0, "no stage"},
        {"Fall1 Fall2 Fall3 Fall4 Fall5 Fall6 Fall7 B7 B5", 8, "delta^5"}, {"Fck1 Fck2", REMAT_NONE, "delta^0"},
    };
    remat_chain *chain = toy_chain();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const remat_verdict v = verdict_of(chain, rows[i].text);
        assert_false(v.valid);
        assert_int_equal(v.first_bad_step, rows[i].step);
        assert_non_null(strstr(v.reason, rows[i].says));
    }
    remat_chain_free(chain);
}

static void infeasible_and_least(void **state)
{
    (void)state;
    remat_chain *chain = toy_chain();
    remat_plan *plan = NULL;
    OK(ctx, remat_ctx_set(ctx, "slots", 0));
    OK(ctx, remat_chain_plan(ctx, chain, "rotor", 8211, &plan));
    assert_int_equal(remat_plan_status(plan), REMAT_E_INFEASIBLE);
    assert_int_equal(remat_plan_summary(plan)->need_bytes, 8212);
    remat_plan_free(plan);
    for (size_t i = 0; i < 2; i++) {
        OK(ctx, remat_chain_plan(ctx, chain, i ? "rotor-float" : "rotor", REMAT_BUDGET_MIN, &plan));
        assert_int_equal(remat_plan_summary(plan)->peak_bytes, 8212);
        remat_plan_free(plan);
    }
    OK(ctx, remat_ctx_set(ctx, "slots", 10)); /* too coarse: sizes rounded up do not fit; recomputing everything does */
    OK(ctx, remat_chain_plan(ctx, chain, "rotor", 8300, &plan));
    assert_int_equal(remat_plan_status(plan), REMAT_OK);
    assert_int_equal(remat_plan_summary(plan)->outcome, REMAT_FEASIBLE);
    remat_plan_free(plan);
    remat_chain_free(chain);
}

static void one_table_for_many_budgets(void **state)
{
    (void)state;
    static const int64_t budgets[] = {8000, 8212, 8675, 9000, 9500, 10000, 10699, 20000};
    remat_plan *plans[8];
    remat_chain *chain = toy_chain();
    OK(ctx, remat_ctx_set(ctx, "slots", 0));
    OK(ctx, remat_chain_plans(ctx, chain, "rotor", budgets, 8, plans));
    for (size_t i = 0; i < 8; i++) {
        const int64_t alone = cost_of(chain, "rotor", budgets[i], 0);
        assert_int_equal(remat_plan_summary(plans[i])->within_budget ? remat_plan_summary(plans[i])->cost : -1, alone);
        remat_plan_free(plans[i]);
    }
    remat_chain_free(chain);
}

/* ---- files ---- */

typedef struct text { char bytes[16384]; size_t n; } text;

static int into_text(void *user, const void *bytes, size_t n)
{
    text *t = user;
    if (t->n + n >= sizeof t->bytes) return 1;
    memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
    return 0;
}

static remat_plan *read_plan(const text *t)
{
    remat_input *input = NULL;
    remat_plan *plan = NULL;
    OK(ctx, remat_input_parse(ctx, "plan", t->bytes, t->n, &input));
    assert_int_equal(remat_input_kind(input), REMAT_KIND_PLAN);
    OK(ctx, remat_plan_read(ctx, input, &plan));
    remat_input_free(input);
    return plan;
}

static remat_verdict judged(const remat_chain *chain, const remat_plan *plan)
{
    remat_verdict v;
    OK(ctx, remat_chain_plan_verify(ctx, chain, plan, &v));
    return v;
}

static void plans_through_files(void **state)
{
    (void)state;
    static const int64_t budgets[] = {REMAT_BUDGET_MIN, REMAT_BUDGET_NONE, 8000, 9000};
    static text t;
    remat_chain *chain = toy_chain();
    OK(ctx, remat_ctx_set(ctx, "slots", 0));
    for (size_t i = 0; i < 8 * LENGTH(budgets) && chain_strategy_at(i / LENGTH(budgets)); i++)
        for (int zipped = 0; zipped < 2; zipped++) {
            remat_plan *plan = NULL;
            OK(ctx, remat_chain_plan(ctx, chain, chain_strategy_at(i / LENGTH(budgets))->name, budgets[i % LENGTH(budgets)], &plan));
            t.n = 0;
            OK(ctx, remat_plan_write(ctx, plan, zipped ? REMAT_JSON_GZ : REMAT_JSON, into_text, &t));
            remat_plan *again = read_plan(&t);
            const remat_verdict v = judged(chain, again);
            if (!v.valid) fail_msg("%s: %s", remat_plan_summary(plan)->strategy, v.reason);
            const remat_summary *a = remat_plan_summary(plan), *b = remat_plan_summary(again);
            assert_true(b->kind == REMAT_KIND_CHAIN && a->cost == b->cost && a->peak_bytes == b->peak_bytes && a->peak_step == b->peak_step);
            assert_true(a->budget_bytes == b->budget_bytes && a->within_budget == b->within_budget && a->outcome == b->outcome && a->bound_cost == b->bound_cost);
            assert_true(a->keep_all_cost == b->keep_all_cost && a->keep_all_peak_bytes == b->keep_all_peak_bytes);
            assert_string_equal(a->strategy, b->strategy);
            assert_string_equal(a->digest, b->digest);
            assert_string_equal(a->bound_method, b->bound_method);
            assert_int_equal(remat_plan_status(plan), remat_plan_status(again));
            size_t n, m;
            const remat_step *steps = remat_plan_steps(plan, &n), *others = remat_plan_steps(again, &m);
            assert_int_equal(n, m);
            assert_memory_equal(steps, others, n * sizeof *steps);
            remat_plan_free(plan), remat_plan_free(again);
        }
    remat_chain_free(chain);
}

/* Replaces the first `from` by `to`, which is as long. */
static void edit(text *t, const char *from, const char *to)
{
    assert_int_equal(strlen(from), strlen(to));
    t->bytes[t->n] = '\0';
    char *at = strstr(t->bytes, from);
    assert_non_null(at);
    memcpy(at, to, strlen(to));
}

static void plans_that_lie(void **state)
{
    (void)state;
    static const struct { const char *from, *to, *says; } rows[] = {
        {"\"cost\":4742", "\"cost\":4741", "cost"},
        {"\"peak_bytes\":8675", "\"peak_bytes\":8674", "peak"},
        {"\"keep_all_cost\":3738", "\"keep_all_cost\":3737", "3738"},
        {"\"keep_all_peak_bytes\":10699", "\"keep_all_peak_bytes\":10698", "10699"},
        {"[\"Fck\",1]", "[\"Fck\",2]", "step 0"},
        {"[\"B\",7]", "[\"B\",6]", "delta^6"},
    };
    text whole = {.n = 0};
    remat_chain *chain = toy_chain(), *other = NULL;
    remat_plan *plan = NULL;
    OK(ctx, remat_ctx_set(ctx, "slots", 0));
    OK(ctx, remat_chain_plan(ctx, chain, "rotor", 9000, &plan));
    OK(ctx, remat_plan_write(ctx, plan, REMAT_JSON, into_text, &whole));
    for (size_t i = 0; i < LENGTH(rows); i++) {
        text t = whole;
        edit(&t, rows[i].from, rows[i].to);
        remat_plan *again = read_plan(&t);
        const remat_verdict v = judged(chain, again);
        assert_false(v.valid);
        if (!strstr(v.reason, rows[i].says)) fail_msg("%s -> %s: %s", rows[i].from, rows[i].to, v.reason);
        remat_plan_free(again);
    }
    remat_stage stages[LENGTH(toy)];
    memcpy(stages, toy, sizeof toy);
    stages[3].abar++;
    OK(ctx, remat_chain_new(ctx, "toy", stages, 6, &other));
    assert_false(judged(other, plan).valid); /* another chain */
    remat_chain_free(other);
    stages[3] = toy[3], stages[3].tf++;
    OK(ctx, remat_chain_new(ctx, "toy", stages, 6, &other));
    assert_string_equal(remat_chain_digest(chain), remat_chain_digest(other)); /* the same, timed again: valid, but not at that cost */
    assert_false(judged(other, plan).valid);
    size_t n;
    const remat_step *steps = remat_plan_steps(plan, &n);
    remat_verdict v;
    OK(ctx, remat_chain_verify(ctx, other, steps, n, &v));
    assert_true(v.valid);
    assert_int_equal(v.cost, 4742 + 2);
    remat_chain_free(other);

    remat_graph *graph = NULL; /* a chain's plan is none of a graph */
    OK(ctx, remat_graph_load(ctx, "zoo:chain?n=3&size=10", &graph));
    OK(ctx, remat_plan_verify(ctx, graph, plan, &v));
    assert_false(v.valid);
    OK(ctx, remat_verify(ctx, graph, steps, n, &v));
    assert_false(v.valid);
    remat_plan_free(plan);
    OK(ctx, remat_plan_make(ctx, graph, "keep-all", REMAT_BUDGET_NONE, &plan)); /* nor the other way round */
    assert_false(judged(chain, plan).valid);
    steps = remat_plan_steps(plan, &n);
    OK(ctx, remat_chain_verify(ctx, chain, steps, n, &v));
    assert_false(v.valid);
    assert_int_equal(v.first_bad_step, 0);
    remat_plan_free(plan), remat_graph_free(graph), remat_chain_free(chain);
}

static remat_status read_chain(const char *body, remat_chain **out)
{
    char whole[1024];
    remat_input *input = NULL;
    snprintf(whole, sizeof whole, "{\"format\":\"remat-chain\",\"version\":1,\"name\":\"bad\",%s}", body);
    remat_status status = remat_input_parse(ctx, "chain.json", whole, strlen(whole), &input);
    if (status == REMAT_OK) status = remat_chain_read(ctx, input, out);
    remat_input_free(input);
    return status;
}

static void bad_chains(void **state)
{
    (void)state;
#define GOOD "{\"a\":1,\"abar\":1,\"tf\":1,\"tb\":1}"
    static const struct { const char *body, *place, *says; } rows[] = {
        {"\"stages\":[]", "stages", "at least one stage"},
        {"\"input\":{\"a\":1}", "stages", ""},
        {"\"stages\":[7]", "stages[0]", ""},
        {"\"stages\":[" GOOD ",{\"a\":1,\"tf\":1,\"tb\":1}]", "stages[1].abar", "missing"},
        {"\"stages\":[" GOOD ",{\"a\":-1,\"abar\":1,\"tf\":1,\"tb\":1}]", "stages[1].a", "negative"},
        {"\"stages\":[{\"a\":1,\"abar\":1,\"tf\":-3,\"tb\":1}]", "stages[0].tf", "negative"},
        {"\"stages\":[{\"a\":1,\"abar\":1,\"tf\":1,\"tb\":1,\"keep\":-1}]", "stages[0].keep", "negative"},
        {"\"stages\":[{\"a\":1.5,\"abar\":2,\"tf\":1,\"tb\":1}]", "stages[0].a", "integer"},
        {"\"input\":{\"a\":-1},\"stages\":[" GOOD "]", "input.a", "negative"},
        {"\"input\":{\"a\":1,\"delta\":\"1\"},\"stages\":[" GOOD "]", "input.delta", "integer"},
        {"\"loss\":{\"a\":1},\"stages\":[" GOOD "]", "loss", "both are 0"},
        {"\"loss\":{\"ob\":-1},\"stages\":[" GOOD "]", "loss.ob", "negative"},
        {"\"stages\":[{\"a\":1,\"abar\":4611686018427387904,\"tf\":1,\"tb\":1}]", "stages[0].abar", "2^62"},
        {"\"stages\":[{\"a\":1,\"abar\":2305843009213693952,\"tf\":1,\"tb\":1},{\"a\":1,\"abar\":2305843009213693952,\"tf\":1,\"tb\":1}]", "stages[1].abar", "sizes add up"},
        {"\"stages\":[{\"a\":2305843009213693951,\"abar\":2305843009213693951,\"tf\":1,\"tb\":1}]", "stages[0].delta", "sizes add up"}, /* delta = a counts */
        {"\"stages\":[{\"a\":1,\"abar\":1,\"tf\":4611686018427387903,\"tb\":1}]", "stages[0].tb", "times add up"},
        {"\"stages\":[{\"a\":1,\"abar\":1,\"tf\":99999999999999999999,\"tb\":1}]", "line 1 column 81", "64 bits"},
    };
    for (size_t i = 0; i < LENGTH(rows); i++) {
        remat_chain *chain = NULL;
        FAILS(ctx, REMAT_E_INPUT, read_chain(rows[i].body, &chain));
        assert_null(chain);
        if (strcmp(remat_ctx_error_place(ctx), rows[i].place) != 0 || !strstr(remat_ctx_error(ctx), rows[i].says)) fail_msg("%s: %s", rows[i].body, remat_ctx_error(ctx));
        assert_non_null(strstr(remat_ctx_error(ctx), "chain.json"));
    }
    remat_chain *chain = NULL;
    FAILS(ctx, REMAT_E_INPUT, remat_chain_new(ctx, "none", toy, 0, &chain));
    remat_stage stages[3] = {{.a = 1}, {.a = 1, .abar = -1}, {0}}; /* no names: "" */
    FAILS(ctx, REMAT_E_INPUT, remat_chain_new(ctx, NULL, stages, 1, &chain));
    stages[1].abar = 1;
    OK(ctx, remat_chain_new(ctx, NULL, stages, 1, &chain));
    assert_string_equal(remat_chain_stage(chain, 1)->name, "");
    remat_chain_free(chain);
}

static void keep_line(void *user, const char *line) { snprintf(user, 200, "%s", line); }
static void count_line(void *user, const char *line)
{
    assert_true(*line != '\0');
    ++*(int *)user;
}

static void abar_below_a(void **state)
{
    (void)state;
    int warnings = 0;
    remat_chain *chain = NULL;
    remat_ctx_on_warning(ctx, count_line, &warnings);
    OK(ctx, read_chain("\"input\":{\"a\":2},\"stages\":[{\"a\":3,\"abar\":3,\"tf\":1,\"tb\":1},{\"a\":5,\"abar\":4,\"tf\":1,\"tb\":1},{\"a\":5,\"abar\":0,\"tf\":1,\"tb\":1}]", &chain));
    assert_int_equal(warnings, 1);
    char line[200] = "";
    remat_ctx_on_warning(ctx, keep_line, line);
    remat_chain *again = NULL;
    OK(ctx, remat_chain_new(ctx, "again", remat_chain_stage(chain, 0), 3, &again));
    assert_non_null(strstr(line, "stages[1].abar"));
    remat_ctx_on_warning(ctx, NULL, NULL);
    remat_chain_free(again);
    for (size_t i = 0; chain_strategy_at(i); i++)
        for (int64_t slots = 0; slots <= 100; slots += 100) {
            remat_plan *plan = NULL;
            OK(ctx, remat_ctx_set(ctx, "slots", slots));
            OK(ctx, remat_chain_plan(ctx, chain, chain_strategy_at(i)->name, REMAT_BUDGET_NONE, &plan));
            assert_true(judged(chain, plan).valid);
            assert_true(remat_plan_summary(plan)->within_budget);
            remat_plan_free(plan);
            OK(ctx, remat_chain_plan(ctx, chain, chain_strategy_at(i)->name, REMAT_BUDGET_MIN, &plan));
            assert_true(judged(chain, plan).valid);
            const remat_summary *s = remat_plan_summary(plan);
            assert_true(s->outcome != REMAT_OPTIMAL || s->cost == s->keep_all_cost);
            remat_plan_free(plan);
        }
    remat_chain_free(chain);
}

static void times_that_overflow(void **state)
{
    (void)state;
    remat_chain *chain = NULL;
    remat_plan *plan = NULL;
    OK(ctx, read_chain("\"stages\":[{\"a\":1,\"abar\":1,\"tf\":2305843009213693952,\"tb\":5},{\"a\":1,\"abar\":1,\"tf\":0,\"tb\":0}]", &chain)); /* once is fine, every time is not */
    for (size_t i = 0; chain_strategy_at(i); i++) FAILS(ctx, REMAT_E_INPUT, remat_chain_plan(ctx, chain, chain_strategy_at(i)->name, 100, &plan));
    assert_null(plan);
    remat_step steps[40] = {{REMAT_F_CK, 1}, {REMAT_F_CK, 1}};
    remat_verdict v;
    OK(ctx, remat_chain_verify(ctx, chain, steps, 2, &v));
    assert_false(v.valid);
    assert_int_equal(v.first_bad_step, 1);
    assert_non_null(strstr(v.reason, "2^62"));
    remat_chain_free(chain);
    OK(ctx, read_chain("\"stages\":[{\"a\":1,\"abar\":1,\"tf\":1000000000000000000,\"tb\":5},{\"a\":1,\"abar\":1,\"tf\":3,\"tb\":0}]", &chain)); /* every time is fine, too */
    for (size_t i = 0; chain_strategy_at(i); i++) {
        OK(ctx, remat_chain_plan(ctx, chain, chain_strategy_at(i)->name, 100, &plan));
        assert_true(judged(chain, plan).valid);
        remat_plan_free(plan);
    }
    remat_chain_free(chain);
}

/* Times past 2^53, where doubles round: what is called optimal must be. */
static void times_past_doubles(void **state)
{
    (void)state;
    const int64_t big = (int64_t)1 << 56;
    for (int64_t cheap = 0; cheap < 4; cheap++) {
        remat_stage stages[7] = {{"", 1, 0, 1, 0, 0, 0, 0, 0}};
        for (uint32_t l = 1; l <= 5; l++) stages[l] = (remat_stage){"", l % 2 ? 2 : 1, l % 2 ? 4 : 3, l % 2 ? 2 : 1, big + (l == 2 + cheap ? 0 : 1), big, 0, 0, 0};
        stages[6] = (remat_stage){"", 0, 0, 0, 0, 0, 0, 0, 0};
        remat_chain *chain = NULL;
        OK(ctx, remat_chain_new(ctx, "big", stages, 5, &chain));
        for (int64_t budget = 8; budget < 20; budget++) {
            remat_plan *exact = NULL, *floating = NULL;
            OK(ctx, remat_ctx_set(ctx, "slots", 0));
            OK(ctx, remat_chain_plan(ctx, chain, "rotor", budget, &exact));
            OK(ctx, remat_chain_plan(ctx, chain, "rotor-float", budget, &floating));
            const remat_summary *e = remat_plan_summary(exact), *f = remat_plan_summary(floating);
            assert_true(e->within_budget <= f->within_budget);
            if (e->within_budget && f->outcome == REMAT_OPTIMAL && f->cost > e->cost)
                fail_msg("stage %d cheaper, budget %d: rotor-float calls %lld optimal, rotor has %lld", (int)cheap + 2, (int)budget, (long long)f->cost, (long long)e->cost);
            remat_plan_free(exact), remat_plan_free(floating);
        }
        remat_chain_free(chain);
    }
}

static void strategies_for_graphs_alone(void **state)
{
    (void)state;
    static const char *const names[] = {"save-inputs", "save-layers", "mincut"};
    remat_chain *chain = toy_chain();
    remat_plan *plan = NULL;
    for (size_t i = 0; i < LENGTH(names); i++) FAILS(ctx, REMAT_E_APPLIES, remat_chain_plan(ctx, chain, names[i], 9000, &plan));
    remat_chain_free(chain);
}

static void below_the_need(void **state)
{
    (void)state;
    remat_chain *chain = NULL;
    OK(ctx, read_chain("\"input\":{\"a\":2},\"stages\":[{\"a\":3,\"abar\":3,\"tf\":1,\"tb\":1},{\"a\":5,\"abar\":50,\"tf\":1,\"tb\":1,\"ob\":40},{\"a\":1,\"abar\":1,\"tf\":1,\"tb\":1}]", &chain));
    for (size_t i = 0; chain_strategy_at(i); i++)
        for (int64_t slots = 0; slots <= 500; slots += 500)
            for (int64_t budget = 0; budget <= 102; budget += 102) { /* B^2: a^0 2, a^1 3, abar^2 50, delta^2 5, delta^1 3, ob 40 */
                remat_plan *plan = NULL;
                OK(ctx, remat_ctx_set(ctx, "slots", slots));
                OK(ctx, remat_chain_plan(ctx, chain, chain_strategy_at(i)->name, budget, &plan));
                assert_int_equal(remat_plan_status(plan), REMAT_E_INFEASIBLE);
                const remat_summary *s = remat_plan_summary(plan);
                assert_int_equal(s->need_bytes, 103);
                assert_int_equal(s->need_op, 2);
                assert_false(s->within_budget);
                assert_true(judged(chain, plan).valid); /* a schedule all the same */
                remat_plan_free(plan);
            }
    remat_chain_free(chain);
}

/* ---- limits ---- */

/* Sizes that have no common divisor and go up and down. */
static remat_chain *long_chain(uint32_t n)
{
    static remat_stage stages[402];
    assert_true(n <= 400);
    memset(stages, 0, sizeof stages);
    uint64_t x = 1;
    for (uint32_t l = 0; l <= n; l++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        const int64_t a = 1000 + (int64_t)(x >> 44);
        stages[l] = (remat_stage){"", a, l ? a + (int64_t)(x >> 45 & 0xfffff) : 0, a, l ? 1 + (int64_t)(x >> 40 & 1023) : 0, l ? 1 + (int64_t)(x >> 30 & 1023) : 0, 0, 0, 0};
    }
    remat_chain *chain = NULL;
    OK(ctx, remat_chain_new(ctx, "long", stages, n, &chain));
    return chain;
}

static void too_many_slots(void **state)
{
    (void)state;
    remat_chain *chain = long_chain(6);
    remat_plan *plan = NULL;
    OK(ctx, remat_ctx_set(ctx, "slots", 0));
    FAILS(ctx, REMAT_E_APPLIES, remat_chain_plan(ctx, chain, "rotor-float", 50000000, &plan));
    assert_non_null(strstr(remat_ctx_error(ctx), "slots"));
    assert_null(plan);
    OK(ctx, remat_chain_plan(ctx, chain, "rotor", 50000000, &plan)); /* needs none */
    remat_plan_free(plan), plan = NULL;
    remat_chain_free(chain);
    chain = toy_chain();
    OK(ctx, remat_ctx_set(ctx, "max_slots", 8674));
    FAILS(ctx, REMAT_E_APPLIES, remat_chain_plan(ctx, chain, "rotor-float", 8675, &plan));
    OK(ctx, remat_chain_plan(ctx, chain, "rotor-float", 8674, &plan));
    remat_plan_free(plan), plan = NULL;
    OK(ctx, remat_ctx_set(ctx, "max_slots", 20000));
    remat_chain_free(chain);
    chain = long_chain(400); /* tables past 8 GB are refused, not tried */
    OK(ctx, remat_ctx_set(ctx, "slots", 1000000));
    for (int i = 0; i < 3; i++) {
        FAILS(ctx, REMAT_E_APPLIES, remat_chain_plan(ctx, chain, i == 0 ? "rotor" : i == 1 ? "rotor-float" : "revolve", 50000000, &plan));
        assert_non_null(strstr(remat_ctx_error(ctx), "slots"));
    }
    remat_chain_free(chain);
}

static void stop_at_once(void *user, const remat_progress *progress)
{
    assert_true(progress->permille >= 0 && progress->permille <= 1000);
    ++*(int *)user;
    remat_ctx_stop(ctx);
}

/* A table that is not finished says nothing; a plan comes back all the same, and says why it is no better. */
static void cut_short(const remat_chain *chain, const char *strategy, remat_stopped why)
{
    remat_plan *plan = NULL;
    OK(ctx, remat_chain_plan(ctx, chain, strategy, 40000000, &plan));
    const remat_summary *s = remat_plan_summary(plan);
    assert_int_equal(s->stopped, why);
    assert_true(s->outcome == (!s->within_budget ? REMAT_UNKNOWN : s->cost == s->keep_all_cost ? REMAT_OPTIMAL : REMAT_FEASIBLE));
    assert_true(judged(chain, plan).valid);
    remat_plan_free(plan);
}

static void limits_in_a_table(void **state)
{
    (void)state;
    static const struct { const char *strategy; int64_t slots; uint32_t stages; } rows[] = {{"rotor", 500, 200}, {"rotor", 0, 60}, {"revolve", 500, 200}, {"revolve", 0, 60}, {"rotor-float", 100, 40}};
    for (size_t i = 0; i < LENGTH(rows); i++) {
        remat_chain *chain = long_chain(rows[i].stages);
        int calls = 0;
        OK(ctx, remat_ctx_set(ctx, "slots", rows[i].slots));
        remat_ctx_stop(ctx); /* before it begins */
        cut_short(chain, rows[i].strategy, REMAT_SIGNAL);
        remat_ctx_on_progress(ctx, stop_at_once, &calls); /* from within */
        cut_short(chain, rows[i].strategy, REMAT_SIGNAL);
        assert_int_equal(calls, 1);
        remat_ctx_on_progress(ctx, NULL, NULL);
        OK(ctx, remat_ctx_set(ctx, "time_ms", 1));
        cut_short(chain, rows[i].strategy, REMAT_TIME);
        OK(ctx, remat_ctx_set(ctx, "time_ms", 0));
        OK(ctx, remat_ctx_set(ctx, "work", 10));
        cut_short(chain, rows[i].strategy, REMAT_WORK);
        OK(ctx, remat_ctx_set(ctx, "work", 0));
        remat_chain_free(chain);
        chain = toy_chain(); /* nothing of it is left over */
        assert_int_equal(cost_of(chain, rows[i].strategy, 10700, 0), strcmp(rows[i].strategy, "revolve") == 0 ? 4966 : 3738);
        remat_chain_free(chain);
    }
}

/* The same numbers by slots as by units, and curves that fall. */
static void a_curve(void **state)
{
    (void)state;
    remat_chain *chain = long_chain(40);
    remat_plan *plans[20];
    int64_t budgets[20], before = INT64_MAX;
    for (int i = 0; i < 20; i++) budgets[i] = ((int64_t)4 + i) << 20;
    OK(ctx, remat_ctx_set(ctx, "slots", 0));
    OK(ctx, remat_chain_plans(ctx, chain, "rotor", budgets, 20, plans));
    for (int i = 0; i < 20; i++) {
        const remat_summary *s = remat_plan_summary(plans[i]);
        if (s->within_budget) {
            assert_true(s->cost <= before);
            before = s->cost;
            assert_true(cost_of(chain, "rotor", budgets[i], 300) == -1 || cost_of(chain, "rotor", budgets[i], 300) >= s->cost);
            assert_true(cost_of(chain, "revolve", budgets[i], 0) == -1 || cost_of(chain, "revolve", budgets[i], 0) >= s->cost);
        } else assert_int_equal(before, INT64_MAX);
        remat_plan_free(plans[i]);
    }
    const int64_t falling[] = {9, 8}, negative[] = {-1, 8};
    assert_int_not_equal(before, INT64_MAX);
    FAILS(ctx, REMAT_E_USAGE, remat_chain_plans(ctx, chain, "rotor", falling, 2, plans));
    FAILS(ctx, REMAT_E_USAGE, remat_chain_plans(ctx, chain, "rotor", negative, 2, plans));
    FAILS(ctx, REMAT_E_USAGE, remat_chain_plans(ctx, chain, "rotter", budgets, 2, plans));
    OK(ctx, remat_chain_plans(ctx, chain, "rotor", budgets, 0, plans));
    remat_chain_free(chain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(toy_keep_all_and_printed_sequence), cmocka_unit_test(toy_rotor), cmocka_unit_test(toy_revolve), cmocka_unit_test(toy_float),
        cmocka_unit_test(toy_periodic), cmocka_unit_test(figure_4), cmocka_unit_test(theorem_3_6), cmocka_unit_test(three_sequences),
        cmocka_unit_test(invalid_schedules), cmocka_unit_test(infeasible_and_least), cmocka_unit_test(one_table_for_many_budgets),
        cmocka_unit_test(plans_through_files), cmocka_unit_test(plans_that_lie), cmocka_unit_test(bad_chains), cmocka_unit_test(abar_below_a),
        cmocka_unit_test(times_that_overflow), cmocka_unit_test(times_past_doubles), cmocka_unit_test(below_the_need), cmocka_unit_test(strategies_for_graphs_alone), cmocka_unit_test(too_many_slots),
        cmocka_unit_test(limits_in_a_table), cmocka_unit_test(a_curve),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
