/* test_heeds.c: is the table true that says which option each strategy heeds?
 *
 * Every strategy runs with every option of the table, changed and not changed, on a few graphs and
 * a chain. If the table says that the strategy heeds the option, some answer must differ: the
 * graphs are tried until one does. If it says that it does not, none may: those options are all
 * changed together, and one by one where something differs, to name it. offload and order_only must
 * be refused then. */
#include "support.h"

#include <stdio.h>
#include <string.h>

typedef struct change {
    const char *option;
    int64_t value;
    /* It says something only where this one is set: for strategies that heed that one too. */
    const char *with;
    int64_t with_value;
} change;

static const change changes[] = {
    {"bandwidth", INT64_C(1000000000000), "offload", 1},
    {"checkmate_entries", 1, NULL, 0},
    {"checkmate_order", 1, NULL, 0},
    {"checkmate_plain", 1, NULL, 0},
    {"checkmate_splits", 2, NULL, 0},
    {"group", 2, "offload", 1},
    {"host_bytes", 1, "offload", 1},
    {"max_slots", 1, "slots", 0},
    {"mip_gap", 1000000, NULL, 0},
    {"objective", 2, "offload", 1},
    {"offload", 1, NULL, 0},
    {"order_only", 1, NULL, 0},
    {"reduction_factor", 1, NULL, 0},
    {"reweight", 1000, NULL, 0},
    {"slots", 3, NULL, 0},
    {"soft_peak", 1, "offload", 1},
    {"walkers", 1, "offload", 1},
};

enum { WORK = 10000 }; /* a few milliseconds a plan */

typedef struct instance {
    const char *source, *budget_text; /* NULL: no budget */
    remat_graph *graph;
    remat_chain *chain; /* or this */
    int64_t budget;
} instance;

typedef struct answer { /* what a strategy says */
    remat_status status;
    int64_t cost, peak_bytes, bound_cost, work;
    uint32_t recomputed_ops;
    uint64_t steps; /* a hash */
} answer;

static answer answer_of(remat_status status, const remat_plan *plan)
{
    answer x = {.status = status};
    if (status != REMAT_OK) return x;
    const remat_summary *s = remat_plan_summary(plan);
    size_t n;
    const remat_step *steps = remat_plan_steps(plan, &n);
    x = (answer){status, s->cost, s->peak_bytes, s->bound_cost, s->work, s->recomputed_ops, n};
    for (size_t i = 0; i < n; i++)
        x.steps = (x.steps ^ steps[i].kind ^ (uint64_t)steps[i].index << 3) * 0x100000001b3u;
    return x;
}

static bool same_plan(const answer *a, const answer *b)
{
    return a->status == b->status && a->cost == b->cost && a->peak_bytes == b->peak_bytes &&
           a->steps == b->steps;
}

static bool same_answer(const answer *a, const answer *b)
{
    return same_plan(a, b) && a->bound_cost == b->bound_cost && a->work == b->work;
}

static void load(remat_ctx *ctx, instance *x)
{
    remat_input *input = NULL;
    remat_plan *plan = NULL;
    OK(ctx, remat_input_open(ctx, x->source, &input));
    if (remat_input_kind(input) == REMAT_KIND_CHAIN) {
        OK(ctx, remat_chain_read(ctx, input, &x->chain));
        OK(ctx, remat_chain_plan(ctx, x->chain, "keep-all", REMAT_BUDGET_NONE, &plan));
    } else {
        OK(ctx, remat_graph_read(ctx, input, &x->graph));
        OK(ctx, remat_plan_make(ctx, x->graph, "keep-all", REMAT_BUDGET_NONE, &plan));
    }
    x->budget = REMAT_BUDGET_NONE;
    if (x->budget_text)
        OK(ctx, remat_budget_parse(ctx, x->budget_text, remat_plan_summary(plan)->peak_bytes,
                                   &x->budget));
    remat_plan_free(plan), remat_input_free(input);
}

static void unload(instance *x) { remat_graph_free(x->graph), remat_chain_free(x->chain); }

static answer ask(remat_ctx *ctx, const instance *x, const char *strategy)
{
    remat_plan *plan = NULL;
    const remat_status status = x->chain
                                    ? remat_chain_plan(ctx, x->chain, strategy, x->budget, &plan)
                                    : remat_plan_make(ctx, x->graph, strategy, x->budget, &plan);
    const answer said = answer_of(status, plan);
    remat_plan_free(plan);
    return said;
}

static bool heeds(size_t strategy, const char *option)
{
    char words[400], word[60];
    snprintf(words, sizeof words, " %s ", remat_strategy_heeds(strategy));
    snprintf(word, sizeof word, " %s ", option);
    return strstr(words, word) != NULL;
}

static bool is_about_plans(const change *c)
{
    return strcmp(c->option, "offload") == 0 || strcmp(c->option, "order_only") == 0;
}

/* Says which strategy and option fail. */
#define REQUIRE(condition, strategy, c)                                                            \
    do {                                                                                           \
        if (!(condition)) fail_msg("%s, %s: %s", (strategy), (c)->option, #condition);             \
    } while (0)

/* One strategy and one option on one instance. Does the answer differ? */
static bool differs(remat_ctx *ctx, size_t index, const change *c, const instance *x,
                    const answer *plain)
{
    const char *strategy = remat_strategy_at(index)->name;
    const bool heeded = heeds(index, c->option), with = c->with && heeds(index, c->with);
    int64_t initial, with_initial = 0;
    answer before = *plain;
    OK(ctx, remat_ctx_get(ctx, c->option, &initial));
    if (with) {
        OK(ctx, remat_ctx_get(ctx, c->with, &with_initial));
        OK(ctx, remat_ctx_set(ctx, c->with, c->with_value));
        before = ask(ctx, x, strategy);
    }
    OK(ctx, remat_ctx_set(ctx, c->option, c->value));
    const answer after = ask(ctx, x, strategy);
    OK(ctx, remat_ctx_set(ctx, c->option, initial));
    if (with) OK(ctx, remat_ctx_set(ctx, c->with, with_initial));
    if (!heeded && is_about_plans(c) && strcmp(strategy, "keep-all") != 0)
        REQUIRE(after.status == REMAT_E_APPLIES, strategy, c);
    else if (!heeded) REQUIRE(same_plan(&before, &after), strategy, c);
    if (heeded && strcmp(c->option, "order_only") == 0 && after.status == REMAT_OK)
        REQUIRE(after.recomputed_ops == 0, strategy, c);
    return !same_answer(&before, &after);
}

/* Must it change nothing, and can it be tried together with others that must not? */
static bool is_idle(size_t strategy, const change *c)
{
    return !heeds(strategy, c->option) && !is_about_plans(c) &&
           !(c->with && heeds(strategy, c->with));
}

/* All options that a strategy does not heed, changed at once. Is the plan still the same? */
static bool idle_options_change_nothing(remat_ctx *ctx, size_t index, const instance *x,
                                        const answer *plain)
{
    int64_t initial[LENGTH(changes)];
    for (size_t k = 0; k < LENGTH(changes); k++) {
        if (!is_idle(index, &changes[k])) continue;
        OK(ctx, remat_ctx_get(ctx, changes[k].option, &initial[k]));
        OK(ctx, remat_ctx_set(ctx, changes[k].option, changes[k].value));
    }
    const answer after = ask(ctx, x, remat_strategy_at(index)->name);
    for (size_t k = 0; k < LENGTH(changes); k++)
        if (is_idle(index, &changes[k])) OK(ctx, remat_ctx_set(ctx, changes[k].option, initial[k]));
    return same_plan(plain, &after);
}

static void check_strategy(remat_ctx *ctx, size_t index, const instance *all, size_t n_all)
{
    const char *strategy = remat_strategy_at(index)->name;
    bool some[LENGTH(changes)] = {false};
    for (size_t n = 0; n < n_all; n++) {
        const answer plain = ask(ctx, &all[n], strategy);
        const bool same = idle_options_change_nothing(ctx, index, &all[n], &plain);
        for (size_t k = 0; k < LENGTH(changes); k++)
            if (is_idle(index, &changes[k]) ? !same : !some[k] || is_about_plans(&changes[k]))
                some[k] |= differs(ctx, index, &changes[k], &all[n], &plain);
        if (!same) fail_msg("%s: options that it does not heed change its plan", strategy);
    }
    /* fastsa-order runs nothing again whether it is told so or not. */
    for (size_t k = 0; k < LENGTH(changes); k++)
        if (heeds(index, changes[k].option) && strcmp(strategy, "fastsa-order") != 0)
            REQUIRE(some[k], strategy, &changes[k]);
}

static void the_table_is_true(void **state)
{
    remat_ctx *ctx = *state;
    instance all[] = {{.source = "zoo:random-layered?n=18&width=4&seed=1", .budget_text = "70%"},
                      {.source = "zoo:random-layered?n=14&width=3&seed=6", .budget_text = "min"},
                      {.source = "zoo:mlp?layers=3&batch=64&width=64", .budget_text = "min"},
                      {.source = "zoo:f1", .budget_text = "90%"},
                      {.source = "zoo:f1"},
                      {.source = "chain:random?n=8&seed=3", .budget_text = "40%"}};
    OK(ctx, remat_ctx_set(ctx, "work", WORK));
    for (size_t n = 0; n < LENGTH(all); n++) load(ctx, &all[n]);
    for (size_t i = 0; remat_strategy_at(i); i++) check_strategy(ctx, i, all, LENGTH(all));
    for (size_t n = 0; n < LENGTH(all); n++) unload(&all[n]);
}

/* Every word of the table is an option that is changed above. */
static void every_word_is_tried(void **state)
{
    (void)state;
    for (size_t i = 0; remat_strategy_at(i); i++) {
        char words[400];
        snprintf(words, sizeof words, "%s", remat_strategy_heeds(i));
        const char *before = "";
        for (char *word = strtok(words, " "); word; before = word, word = strtok(NULL, " ")) {
            bool tried = false;
            for (size_t k = 0; k < LENGTH(changes); k++)
                tried = tried || strcmp(changes[k].option, word) == 0;
            if (!tried) fail_msg("%s: %s", remat_strategy_at(i)->name, word);
            assert_true(strcmp(before, word) < 0);
        }
    }
    assert_string_equal(remat_strategy_heeds(SIZE_MAX), "");
}

/* By the rules of rm_incumbent, up to what decides. */
static bool is_worse(const instance *x, const answer *a, const answer *b)
{
    const bool a_fits = x->budget >= 0 && a->peak_bytes <= x->budget,
               b_fits = x->budget >= 0 && b->peak_bytes <= x->budget;
    if (a_fits != b_fits) return b_fits;
    return a_fits ? a->cost > b->cost : a->peak_bytes > b->peak_bytes;
}

/* auto with offload: never worse than fastsa with it, nor than itself without. Each part has the
 * whole limit of work. */
static void auto_with_offload_is_never_worse(void **state)
{
    remat_ctx *ctx = *state;
    instance at[] = {{.source = "zoo:random-layered?n=50&seed=0", .budget_text = "45%"},
                     {.source = "zoo:random-layered?n=50&seed=1", .budget_text = "60%"},
                     {.source = "zoo:random-layered?n=50&seed=5", .budget_text = "60%"},
                     {.source = "zoo:random-layered?n=50&seed=8", .budget_text = "60%"},
                     {.source = "zoo:random-layered?n=40&seed=3", .budget_text = "min"}};
    OK(ctx, remat_ctx_set(ctx, "work", 200000));
    for (size_t i = 0; i < LENGTH(at); i++) {
        load(ctx, &at[i]);
        const answer without = ask(ctx, &at[i], "auto");
        OK(ctx, remat_ctx_set(ctx, "offload", 1));
        OK(ctx, remat_ctx_set(ctx, "bandwidth", INT64_C(5000000000)));
        const answer with = ask(ctx, &at[i], "auto"), fastsa = ask(ctx, &at[i], "fastsa");
        OK(ctx, remat_ctx_set(ctx, "offload", 0));
        OK(ctx, remat_ctx_set(ctx, "bandwidth", 0));
        assert_int_equal(with.status, REMAT_OK);
        assert_false(is_worse(&at[i], &with, &without));
        assert_false(is_worse(&at[i], &with, &fastsa));
        unload(&at[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(the_table_is_true),
                                       WITH_CONTEXT(every_word_is_tried),
                                       WITH_CONTEXT(auto_with_offload_is_never_worse)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
