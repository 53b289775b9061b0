/* test_chain_files.c: chains and their plans in files: round trips, plans that lie about
 * themselves, chains that are wrong or odd (abar below a, times that overflow or pass what doubles
 * hold, budgets below the need). */
#include "chain_support.h"

#include <stdio.h>

#include "text.h"

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

static void plans_through_files(void **state)
{
    (void)state;
    static const int64_t budgets[] = {REMAT_BUDGET_MIN, REMAT_BUDGET_NONE, 8000, 9000};
    remat_chain *chain = toy_chain();
    OK(ctx, remat_ctx_set(ctx, "slots", 0));
    for (size_t i = 0; i < 16 * LENGTH(budgets) && chain_strategy_at(i / LENGTH(budgets)); i++)
        for (int zipped = 0; zipped < 2; zipped++) {
            remat_plan *plan = NULL;
            OK(ctx, remat_chain_plan(ctx, chain, chain_strategy_at(i / LENGTH(budgets))->name,
                                     budgets[i % LENGTH(budgets)], &plan));
            text t = {0};
            OK(ctx,
               remat_plan_write(ctx, plan, zipped ? REMAT_JSON_GZ : REMAT_JSON, into_text, &t));
            remat_plan *again = read_plan(&t);
            free(t.bytes);
            const remat_verdict v = judged(chain, again);
            if (!v.valid) fail_msg("%s: %s", remat_plan_summary(plan)->strategy, v.reason);
            const remat_summary *a = remat_plan_summary(plan), *b = remat_plan_summary(again);
            assert_true(b->kind == REMAT_KIND_CHAIN && a->cost == b->cost &&
                        a->peak_bytes == b->peak_bytes && a->peak_step == b->peak_step);
            assert_true(a->budget_bytes == b->budget_bytes &&
                        a->within_budget == b->within_budget && a->outcome == b->outcome &&
                        a->bound_cost == b->bound_cost);
            assert_true(a->keep_all_cost == b->keep_all_cost &&
                        a->keep_all_peak_bytes == b->keep_all_peak_bytes);
            assert_string_equal(a->strategy, b->strategy);
            assert_string_equal(a->digest, b->digest);
            assert_string_equal(a->bound_method, b->bound_method);
            assert_int_equal(remat_plan_status(plan), remat_plan_status(again));
            size_t n, m;
            const remat_step *steps = remat_plan_steps(plan, &n),
                             *others = remat_plan_steps(again, &m);
            assert_int_equal(n, m);
            assert_memory_equal(steps, others, n * sizeof *steps);
            remat_plan_free(plan), remat_plan_free(again);
        }
    remat_chain_free(chain);
}

static void plans_that_lie(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *says;
    } rows[] = {
        {"\"cost\":4742", "\"cost\":4741", "cost"},
        {"\"peak_bytes\":8675", "\"peak_bytes\":8674", "peak"},
        {"\"keep_all_cost\":3738", "\"keep_all_cost\":3737", "3738"},
        {"\"keep_all_peak_bytes\":10699", "\"keep_all_peak_bytes\":10698", "10699"},
        {"[\"Fck\",1]", "[\"Fck\",2]", "step 0"},
        {"[\"B\",7]", "[\"B\",6]", "delta^6"},
    };
    text whole = {0};
    remat_chain *chain = toy_chain(), *other = NULL;
    remat_plan *plan = NULL;
    OK(ctx, remat_ctx_set(ctx, "slots", 0));
    OK(ctx, remat_chain_plan(ctx, chain, "rotor", 9000, &plan));
    OK(ctx, remat_plan_write(ctx, plan, REMAT_JSON, into_text, &whole));
    for (size_t i = 0; i < LENGTH(rows); i++) {
        const text t = text_with(&whole, rows[i].from, rows[i].to);
        assert_non_null(t.bytes);
        remat_plan *again = read_plan(&t);
        free(t.bytes);
        const remat_verdict v = judged(chain, again);
        assert_false(v.valid);
        if (!strstr(v.reason, rows[i].says))
            fail_msg("%s -> %s: %s", rows[i].from, rows[i].to, v.reason);
        remat_plan_free(again);
    }
    free(whole.bytes);
    remat_stage stages[8];
    for (uint32_t l = 0; l < LENGTH(stages); l++) stages[l] = *remat_chain_stage(chain, l);
    stages[3].abar++;
    OK(ctx, remat_chain_new(ctx, "toy", stages, 6, &other));
    assert_false(judged(other, plan).valid); /* another chain */
    remat_chain_free(other);
    stages[3].abar--, stages[3].tf++;
    OK(ctx, remat_chain_new(ctx, "toy", stages, 6, &other));
    assert_string_equal(
        remat_chain_digest(chain),
        remat_chain_digest(other)); /* the same, timed again: valid, but not at that cost */
    assert_false(judged(other, plan).valid);
    size_t n;
    const remat_step *steps = remat_plan_steps(plan, &n);
    remat_verdict v = REMAT_VERDICT_INIT;
    OK(ctx, remat_chain_verify(ctx, other, steps, n, &v));
    assert_true(v.valid);
    assert_int_equal(v.cost, 4742 + 2);
    remat_chain_free(other);

    remat_graph *graph = NULL; /* a chain's plan is none of a graph */
    OK(ctx, remat_graph_load(ctx, "zoo:chain?n=3&size=10", &graph));
    OK(ctx, remat_plan_verify(ctx, graph, plan, &v));
    assert_false(v.valid);
    OK(ctx, remat_verify(ctx, graph, steps, n, 0, &v));
    assert_false(v.valid);
    remat_plan_free(plan);
    OK(ctx, remat_plan_make(ctx, graph, "keep-all", REMAT_BUDGET_NONE,
                            &plan)); /* nor the other way round */
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
    snprintf(whole, sizeof whole, "{\"format\":\"remat-chain\",\"version\":1,\"name\":\"bad\",%s}",
             body);
    remat_status status = remat_input_parse(ctx, "chain.json", whole, strlen(whole), &input);
    if (status == REMAT_OK) status = remat_chain_read(ctx, input, out);
    remat_input_free(input);
    return status;
}

static void bad_chains(void **state)
{
    (void)state;
#define GOOD "{\"a\":1,\"abar\":1,\"tf\":1,\"tb\":1}"
    static const struct {
        const char *body, *place, *says;
    } rows[] = {
        {"\"stages\":[]", "stages", "at least one stage"},
        {"\"input\":{\"a\":1}", "stages", ""},
        {"\"stages\":[7]", "stages[0]", ""},
        {"\"stages\":[" GOOD ",{\"a\":1,\"tf\":1,\"tb\":1}]", "stages[1].abar", "missing"},
        {"\"stages\":[" GOOD ",{\"a\":-1,\"abar\":1,\"tf\":1,\"tb\":1}]", "stages[1].a",
         "negative"},
        {"\"stages\":[{\"a\":1,\"abar\":1,\"tf\":-3,\"tb\":1}]", "stages[0].tf", "negative"},
        {"\"stages\":[{\"a\":1,\"abar\":1,\"tf\":1,\"tb\":1,\"keep\":-1}]", "stages[0].keep",
         "negative"},
        {"\"stages\":[{\"a\":1.5,\"abar\":2,\"tf\":1,\"tb\":1}]", "stages[0].a", "integer"},
        {"\"input\":{\"a\":-1},\"stages\":[" GOOD "]", "input.a", "negative"},
        {"\"input\":{\"a\":1,\"delta\":\"1\"},\"stages\":[" GOOD "]", "input.delta", "integer"},
        {"\"loss\":{\"a\":1},\"stages\":[" GOOD "]", "loss", "both are 0"},
        {"\"loss\":{\"ob\":-1},\"stages\":[" GOOD "]", "loss.ob", "negative"},
        {"\"stages\":[{\"a\":1,\"abar\":4611686018427387904,\"tf\":1,\"tb\":1}]", "stages[0].abar",
         "2^62"},
        {"\"stages\":[{\"a\":1,\"abar\":2305843009213693952,\"tf\":1,\"tb\":1},{\"a\":1,\"abar\":"
         "2305843009213693952,\"tf\":1,\"tb\":1}]",
         "stages[1].abar", "sizes add up"},
        {"\"stages\":[{\"a\":2305843009213693951,\"abar\":2305843009213693951,\"tf\":1,\"tb\":1}]",
         "stages[0].delta", "sizes add up"}, /* delta = a counts */
        {"\"stages\":[{\"a\":1,\"abar\":1,\"tf\":4611686018427387903,\"tb\":1}]", "stages[0].tb",
         "times add up"},
        {"\"stages\":[{\"a\":1,\"abar\":1,\"tf\":99999999999999999999,\"tb\":1}]",
         "line 1 column 81", "64 bits"},
    };
    for (size_t i = 0; i < LENGTH(rows); i++) {
        remat_chain *chain = NULL;
        FAILS(ctx, REMAT_E_INPUT, read_chain(rows[i].body, &chain));
        assert_null(chain);
        if (strcmp(remat_ctx_error_place(ctx), rows[i].place) != 0 ||
            !strstr(remat_ctx_error(ctx), rows[i].says))
            fail_msg("%s: %s", rows[i].body, remat_ctx_error(ctx));
        assert_non_null(strstr(remat_ctx_error(ctx), "chain.json"));
    }
    remat_chain *chain = NULL;
    FAILS(ctx, REMAT_E_INPUT, remat_chain_new(ctx, "none", (remat_stage[2]){{0}}, 0, &chain));
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
    OK(ctx,
       read_chain("\"input\":{\"a\":2},\"stages\":[{\"a\":3,\"abar\":3,\"tf\":1,\"tb\":1},{\"a\":5,"
                  "\"abar\":4,\"tf\":1,\"tb\":1},{\"a\":5,\"abar\":0,\"tf\":1,\"tb\":1}]",
                  &chain));
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
            OK(ctx,
               remat_chain_plan(ctx, chain, chain_strategy_at(i)->name, REMAT_BUDGET_NONE, &plan));
            assert_true(judged(chain, plan).valid);
            assert_true(remat_plan_summary(plan)->within_budget);
            remat_plan_free(plan);
            OK(ctx,
               remat_chain_plan(ctx, chain, chain_strategy_at(i)->name, REMAT_BUDGET_MIN, &plan));
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
    OK(ctx, read_chain("\"stages\":[{\"a\":1,\"abar\":1,\"tf\":2305843009213693952,\"tb\":5},{"
                       "\"a\":1,\"abar\":1,\"tf\":0,\"tb\":0}]",
                       &chain)); /* once is fine, every time is not */
    for (size_t i = 0; chain_strategy_at(i); i++)
        FAILS(ctx, REMAT_E_INPUT,
              remat_chain_plan(ctx, chain, chain_strategy_at(i)->name, 100, &plan));
    assert_null(plan);
    remat_step steps[40] = {{REMAT_F_CK, 1}, {REMAT_F_CK, 1}};
    remat_verdict v = REMAT_VERDICT_INIT;
    OK(ctx, remat_chain_verify(ctx, chain, steps, 2, &v));
    assert_false(v.valid);
    assert_int_equal(v.first_bad_step, 1);
    assert_non_null(strstr(v.reason, "2^62"));
    remat_chain_free(chain);
    OK(ctx, read_chain("\"stages\":[{\"a\":1,\"abar\":1,\"tf\":1000000000000000000,\"tb\":5},{"
                       "\"a\":1,\"abar\":1,\"tf\":3,\"tb\":0}]",
                       &chain)); /* every time is fine, too */
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
        for (uint32_t l = 1; l <= 5; l++)
            stages[l] = (remat_stage){"",
                                      l % 2 ? 2 : 1,
                                      l % 2 ? 4 : 3,
                                      l % 2 ? 2 : 1,
                                      big + (l == 2 + cheap ? 0 : 1),
                                      big,
                                      0,
                                      0,
                                      0};
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
                fail_msg(
                    "stage %d cheaper, budget %d: rotor-float calls %lld optimal, rotor has %lld",
                    (int)cheap + 2, (int)budget, (long long)f->cost, (long long)e->cost);
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
    for (size_t i = 0; i < LENGTH(names); i++)
        FAILS(ctx, REMAT_E_APPLIES, remat_chain_plan(ctx, chain, names[i], 9000, &plan));
    remat_chain_free(chain);
}

static void below_the_need(void **state)
{
    (void)state;
    remat_chain *chain = NULL;
    OK(ctx, read_chain(
                "\"input\":{\"a\":2},\"stages\":[{\"a\":3,\"abar\":3,\"tf\":1,\"tb\":1},{\"a\":5,"
                "\"abar\":50,\"tf\":1,\"tb\":1,\"ob\":40},{\"a\":1,\"abar\":1,\"tf\":1,\"tb\":1}]",
                &chain));
    for (size_t i = 0; chain_strategy_at(i); i++)
        for (int64_t slots = 0; slots <= 500; slots += 500)
            for (int64_t budget = 0; budget <= 102;
                 budget += 102) { /* B^2: a^0 2, a^1 3, abar^2 50, delta^2 5, delta^1 3, ob 40 */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_through_files),
        cmocka_unit_test(plans_that_lie),
        cmocka_unit_test(bad_chains),
        cmocka_unit_test(abar_below_a),
        cmocka_unit_test(times_that_overflow),
        cmocka_unit_test(times_past_doubles),
        cmocka_unit_test(strategies_for_graphs_alone),
        cmocka_unit_test(below_the_need),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
