/* test_chain.c: chains: the numbers of the Rotor paper ("Optimal Re-Materialization Strategies for
 * Heterogeneous Chains") and of independent brute force on its examples. Sizes of the toy are
 * hundredths of MB, times hundredths of ms. */
#include "chain_support.h"

#include <stdio.h>
#include <string.h>

#include "random_graph.h"

/* The cost of the plan, or -1 if nothing fits. */
static int64_t cost_of(const remat_chain *chain, const char *strategy, int64_t budget,
                       int64_t slots)
{
    remat_plan *plan = NULL;
    OK(ctx, remat_ctx_set(ctx, "slots", slots));
    OK(ctx, remat_chain_plan(ctx, chain, strategy, budget, &plan));
    const remat_summary *s = remat_plan_summary(plan);
    remat_verdict v = REMAT_VERDICT_INIT;
    OK(ctx, remat_chain_plan_verify(ctx, chain, plan, &v));
    assert_true(v.valid);
    const int64_t cost = s->within_budget ? s->cost : -1;
    if (s->within_budget && budget >= 0) assert_true(s->peak_bytes <= budget);
    remat_plan_free(plan);
    return cost;
}

static const char *sequence(const remat_plan *plan, char *text, size_t size)
{
    static const char *const names[] = {
        [REMAT_F_ALL] = "Fall", [REMAT_F_CK] = "Fck", [REMAT_F_NONE] = "Fnone", [REMAT_B] = "B"};
    size_t n, used = 0;
    const remat_step *steps = remat_plan_steps(plan, &n);
    for (size_t i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s%u", i ? " " : "",
                                 names[steps[i].kind], steps[i].index);
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
        const remat_step_kind kind = strcmp(name, "Fall") == 0    ? REMAT_F_ALL
                                     : strcmp(name, "Fck") == 0   ? REMAT_F_CK
                                     : strcmp(name, "Fnone") == 0 ? REMAT_F_NONE
                                                                  : REMAT_B;
        steps[n++] = (remat_step){kind, stage};
        p += used;
    }
    remat_verdict v = REMAT_VERDICT_INIT;
    OK(ctx, remat_chain_verify(ctx, chain, steps, n, &v));
    return v;
}

#define PRINTED                                                                                    \
    "Fck1 Fnone2 Fnone3 Fall4 Fall5 Fall6 Fall7 B7 B6 B5 B4 Fck1 Fnone2 Fall3 B3 Fall1 Fall2 B2 "  \
    "B1"

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
    static const int64_t budgets[] = {10699, 10000, 9500, 9000, 8675, 8674, 8500, 8212, 8211},
                         costs[] = {3738, 4118, 4362, 4742, 4742, 5617, 5617, 5617, -1};
    remat_chain *chain = toy_chain();
    for (size_t i = 0; i < 9; i++) {
        assert_int_equal(cost_of(chain, "rotor", budgets[i], 0), costs[i]);
        assert_int_equal(cost_of(chain, "rotor", budgets[i], budgets[i]),
                         costs[i]); /* one slot a unit */
    }
    remat_chain_free(chain);
}

static void toy_revolve(void **state) /* TV-R5 */
{
    (void)state;
    static const int64_t budgets[] = {10700, 10000, 9500, 9000, 8675, 8212},
                         costs[] = {4966, 5126, 5346, 5506, 6130, 6130};
    remat_chain *chain = toy_chain();
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(cost_of(chain, "revolve", budgets[i], 0), costs[i]);
    remat_chain_free(chain);
}

static void toy_float(void **state) /* TV-R6 */
{
    (void)state;
    static const int64_t budgets[] = {8674, 8600, 8500}, costs[] = {5237, 5457, 5617};
    remat_chain *chain = toy_chain();
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(cost_of(chain, "rotor-float", budgets[i], 0), costs[i]);
    remat_chain_free(chain);
}

static void toy_periodic(void **state) /* TV-R8, the segment counts one by one as sequences */
{
    (void)state;
    static const struct {
        const char *text;
        int64_t cost, peak;
    } rows[] = {
        {"Fck1 Fnone2 Fnone3 Fall4 Fall5 Fall6 Fall7 B7 B6 B5 B4 Fall1 Fall2 Fall3 B3 B2 B1", 4362,
         9166},
        {"Fck1 Fnone2 Fck3 Fnone4 Fall5 Fall6 Fall7 B7 B6 B5 Fall3 Fall4 B4 B3 Fall1 Fall2 B2 B1",
         4613, 9278},
        {"Fck1 Fck2 Fck3 Fck4 Fck5 Fall6 Fall7 B7 B6 Fall5 B5 Fall4 B4 Fall3 B3 Fall2 B2 Fall1 B1",
         4823, 10699},
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
        const int64_t persistent = cost_of(chain, "rotor", 15, 0),
                      floating = cost_of(chain, "rotor-float", 15, 0);
        assert_int_equal(persistent, n == 4 ? 10 : 3 * n - 2);
        assert_int_equal(floating, n == 4 ? 10 : 2 * n + 2);
        remat_chain_free(chain);
    }
}

static void theorem_3_6(void **state) /* TV-R10: 2-partition as a chain */
{
    (void)state;
    static const struct {
        int64_t x[4];
        uint32_t n;
        int64_t cost;
    } rows[] = {{{1, 2, 3}, 3, 12}, {{2, 3, 5, 4}, 4, 28}, {{1, 1, 4}, 3, 14}, {{1, 5, 2}, 3, 17}};
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
    static const struct {
        const char *text;
        int64_t cost, peak;
    } rows[] = {
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
    static const struct {
        const char *text;
        uint32_t step;
        const char *says;
    } rows[] = {
        {"Fall2", 0, "a^1"},
        {"B1", 0, "delta^1"},
        {"Fnone1 Fall2 Fall1", 2, "a^0"},
        {"Fall1 Fnone1", 1, "abar^1"},
        {"Fall9", 0, "no stage"},
        {"Fall1 Fall2 Fall3 Fall4 Fall5 Fall6 Fall7 B7 B5", 8, "delta^5"},
        {"Fck1 Fck2", REMAT_NONE, "delta^0"},
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
    OK(ctx, remat_ctx_set(
                ctx, "slots",
                10)); /* too coarse: sizes rounded up do not fit; recomputing everything does */
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
        assert_int_equal(
            remat_plan_summary(plans[i])->within_budget ? remat_plan_summary(plans[i])->cost : -1,
            alone);
        remat_plan_free(plans[i]);
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
    random_source r = {1};
    for (uint32_t l = 0; l <= n; l++) {
        const int64_t a = rm_random_between(&r, 1000, 1 << 20);
        stages[l] = (remat_stage){.name = "", .a = a, .delta = a};
        if (l == 0) continue;
        stages[l].abar = a + rm_random_between(&r, 0, 1 << 19);
        stages[l].tf = rm_random_between(&r, 1, 1024);
        stages[l].tb = rm_random_between(&r, 1, 1024);
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
}

static void note_warning(void *user, const char *line)
{
    if (strstr(line, "slots")) ++*(int *)user;
}

/* Tables past the limit of memory are not tried: with fewer slots, and a word about it; where that
 * would say nothing, they are refused. */
static void tables_past_memory(void **state)
{
    (void)state;
    remat_chain *chain = long_chain(400);
    remat_plan *plan = NULL;
    int warnings = 0;
    remat_ctx_on_warning(ctx, note_warning, &warnings);
    OK(ctx, remat_ctx_set(ctx, "memory_bytes", 64 << 20));
    OK(ctx, remat_ctx_set(ctx, "slots", 1000000));
    OK(ctx, remat_chain_plan(ctx, chain, "rotor", 50000000, &plan));
    remat_plan_free(plan), plan = NULL;
    OK(ctx, remat_chain_plan(ctx, chain, "revolve", 50000000, &plan));
    remat_plan_free(plan), plan = NULL;
    assert_int_equal(warnings, 2);
    FAILS(ctx, REMAT_E_APPLIES, remat_chain_plan(ctx, chain, "rotor-float", 50000000, &plan));
    OK(ctx, remat_ctx_set(ctx, "memory_bytes", 4 << 20));
    FAILS(ctx, REMAT_E_APPLIES, remat_chain_plan(ctx, chain, "rotor", 50000000, &plan));
    assert_non_null(strstr(remat_ctx_error(ctx), "memory_bytes"));
    OK(ctx, remat_ctx_set(ctx, "slots", 0));
    FAILS(ctx, REMAT_E_APPLIES, remat_chain_plan(ctx, chain, "rotor", 50000000, &plan));
    assert_non_null(strstr(remat_ctx_error(ctx), "memory_bytes"));
    OK(ctx, remat_chain_plan(ctx, chain, "auto", 50000000, &plan)); /* which does without */
    remat_plan_free(plan);
    remat_chain_free(chain);
    remat_ctx_on_warning(ctx, NULL, NULL);
    OK(ctx, remat_ctx_set(ctx, "memory_bytes", INT64_C(1) << 32));
    OK(ctx, remat_ctx_set(ctx, "slots", 500));
}

static void stop_at_once(void *user, const remat_progress *progress)
{
    assert_true(progress->permille >= 0 && progress->permille <= 1000);
    ++*(int *)user;
    remat_ctx_stop(ctx);
}

/* A table that is not finished says nothing; a plan comes back all the same, and says why it is no
 * better. */
static void cut_short(const remat_chain *chain, const char *strategy, remat_stopped why)
{
    remat_plan *plan = NULL;
    OK(ctx, remat_chain_plan(ctx, chain, strategy, 40000000, &plan));
    const remat_summary *s = remat_plan_summary(plan);
    assert_int_equal(s->stopped, why);
    assert_true(s->outcome == (!s->within_budget             ? REMAT_UNKNOWN
                               : s->cost == s->keep_all_cost ? REMAT_OPTIMAL
                                                             : REMAT_FEASIBLE));
    assert_true(judged(chain, plan).valid);
    remat_plan_free(plan);
}

static void limits_in_a_table(void **state)
{
    (void)state;
    static const struct {
        const char *strategy;
        int64_t slots;
        uint32_t stages;
    } rows[] = {{"rotor", 500, 200},
                {"rotor", 0, 60},
                {"revolve", 500, 200},
                {"revolve", 0, 60},
                {"rotor-float", 100, 40}};
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
        assert_int_equal(cost_of(chain, rows[i].strategy, 10700, 0),
                         strcmp(rows[i].strategy, "revolve") == 0 ? 4966 : 3738);
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
            assert_true(cost_of(chain, "rotor", budgets[i], 300) == -1 ||
                        cost_of(chain, "rotor", budgets[i], 300) >= s->cost);
            assert_true(cost_of(chain, "revolve", budgets[i], 0) == -1 ||
                        cost_of(chain, "revolve", budgets[i], 0) >= s->cost);
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

/* Just above the least memory 500 slots are too coarse. What is asked for without a wish is exact,
 * and a long chain's slots lose little. */
static void near_the_minimum(void **state)
{
    (void)state;
    remat_input *input = NULL;
    remat_chain *chain = NULL;
    OK(ctx, remat_input_open(ctx, "chain:resnet?n=8", &input));
    OK(ctx, remat_chain_read(ctx, input, &chain));
    const int64_t exact = cost_of(chain, "rotor", 584450048, 0);
    assert_true(exact > 0 && exact < cost_of(chain, "periodic", 584450048, -1));
    assert_int_equal(cost_of(chain, "rotor", 584450048, -1), exact);
    assert_true(cost_of(chain, "auto", 584450048, -1) <= exact);
    remat_chain_free(chain);
    remat_input_free(input);
    chain = long_chain(60);
    for (int64_t budget = 12 << 20; budget <= 40 << 20; budget += 7 << 20) {
        const int64_t best = cost_of(chain, "rotor", budget, 0),
                      slotted = cost_of(chain, "rotor", budget, 500);
        assert_true(best > 0 && slotted >= best);
        assert_true(slotted - best <= best / 100);
    }
    remat_chain_free(chain);
}

/* More slots than memory holds: the promise is refused, not broken. */
static void epsilon_past_memory(void **state)
{
    (void)state;
    remat_chain *chain = long_chain(400);
    remat_plan *plan = NULL;
    OK(ctx, remat_ctx_set(ctx, "epsilon", 1));
    for (int64_t slots = -1; slots <= 100; slots += 101) {
        OK(ctx, remat_ctx_set(ctx, "slots", slots ? slots : 100));
        FAILS(ctx, REMAT_E_APPLIES, remat_chain_plan(ctx, chain, "rotor", 50000000, &plan));
        assert_non_null(strstr(remat_ctx_error(ctx), "memory_bytes"));
    }
    OK(ctx, remat_ctx_set(ctx, "epsilon", 0));
    OK(ctx, remat_ctx_set(ctx, "slots", -1));
    remat_chain_free(chain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_the_minimum),
        cmocka_unit_test(epsilon_past_memory),
        cmocka_unit_test(toy_keep_all_and_printed_sequence),
        cmocka_unit_test(toy_rotor),
        cmocka_unit_test(toy_revolve),
        cmocka_unit_test(toy_float),
        cmocka_unit_test(toy_periodic),
        cmocka_unit_test(figure_4),
        cmocka_unit_test(theorem_3_6),
        cmocka_unit_test(three_sequences),
        cmocka_unit_test(invalid_schedules),
        cmocka_unit_test(infeasible_and_least),
        cmocka_unit_test(one_table_for_many_budgets),
        cmocka_unit_test(too_many_slots),
        cmocka_unit_test(tables_past_memory),
        cmocka_unit_test(limits_in_a_table),
        cmocka_unit_test(a_curve),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
