/* test_options.c: the option table: every option by name, both ends of its range, one past them,
 * and unknown names. */
#include "support.h"

#include <stdio.h>
#include <string.h>

static void every_option(void **state)
{
    remat_ctx *ctx = *state;
    size_t n = 0;
    while (remat_option_at(n)) n++;
    assert_true(n >= 5);
    assert_null(remat_option_at(SIZE_MAX));
    for (size_t i = 0; i < n; i++) {
        const remat_option *o = remat_option_at(i);
        assert_non_null(o);
        assert_true(*o->name && *o->help);
        if (i) assert_true(strcmp(remat_option_at(i - 1)->name, o->name) < 0); /* sorted */
        int64_t x = -77;
        OK(ctx, remat_ctx_get(ctx, o->name, &x));
        assert_int_equal(x, o->initial);
        assert_true(o->low <= o->initial && o->initial <= o->high);
        const int64_t ends[] = {o->low, o->high};
        for (size_t k = 0; k < 2; k++) {
            OK(ctx, remat_ctx_set(ctx, o->name, ends[k]));
            OK(ctx, remat_ctx_get(ctx, o->name, &x));
            assert_int_equal(x, ends[k]);
        }
        if (o->low > INT64_MIN) FAILS(ctx, REMAT_E_USAGE, remat_ctx_set(ctx, o->name, o->low - 1));
        if (o->high < INT64_MAX)
            FAILS(ctx, REMAT_E_USAGE, remat_ctx_set(ctx, o->name, o->high + 1));
        OK(ctx, remat_ctx_get(ctx, o->name, &x)); /* as before the refused ones */
        assert_int_equal(x, o->high);
    }
}

static void unknown_names(void **state)
{
    remat_ctx *ctx = *state;
    int64_t x = -77;
    FAILS(ctx, REMAT_E_USAGE, remat_ctx_set(ctx, "sede", 1));
    assert_non_null(strstr(remat_ctx_error(ctx), "sede"));
    FAILS(ctx, REMAT_E_USAGE, remat_ctx_get(ctx, "", &x));
    FAILS(ctx, REMAT_E_USAGE, remat_ctx_set(ctx, "seedy", 1));
    assert_int_equal(x, -77);
}

static void version(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", REMAT_VERSION_MAJOR, REMAT_VERSION_MINOR,
             REMAT_VERSION_PATCH);
    assert_string_equal(remat_version(), text);
}

/* Programs that are compiled have these numbers in them. */
static void enums_never_change(void **state)
{
    (void)state;
    const int in_order[][9] = {
        {REMAT_KIND_GRAPH, REMAT_KIND_CHAIN, REMAT_KIND_PLAN, REMAT_KIND_NETWORK, REMAT_KIND_SPANS,
         -1},
        {REMAT_JSON, REMAT_JSON_GZ, REMAT_DOT, -1},
        {REMAT_PHASE_NONE, REMAT_FORWARD, REMAT_BACKWARD, -1},
        {REMAT_CLASS_OTHER, REMAT_CLASS_COMPUTE, REMAT_CLASS_FUSIBLE, REMAT_CLASS_VIEW,
         REMAT_CLASS_RANDOM, -1},
        {REMAT_TEMPORARY, REMAT_PARAM, REMAT_BUFFER, REMAT_INPUT, REMAT_CONST, -1},
        {REMAT_VALUE_SIZE, REMAT_VALUE_STORAGE, REMAT_VALUE_ALIAS, REMAT_VALUE_KIND,
         REMAT_VALUE_ROOT, REMAT_VALUE_PRODUCER, -1},
        {REMAT_OP_COST, REMAT_OP_FLOPS, REMAT_OP_WORKSPACE, REMAT_OP_PHASE, REMAT_OP_CLASS,
         REMAT_OP_PINNED, REMAT_OP_REPLAY, REMAT_OP_KERNEL, REMAT_OP_GIVEN_COST},
        {REMAT_RUN, REMAT_OFFLOAD, REMAT_FETCH, REMAT_F_ALL, REMAT_F_CK, REMAT_F_NONE, REMAT_B, -1},
        {REMAT_UNKNOWN, REMAT_FEASIBLE, REMAT_OPTIMAL, REMAT_INFEASIBLE, -1},
        {REMAT_DONE, REMAT_WORK, REMAT_TIME, REMAT_SIGNAL, -1},
        {REMAT_ALLOCATE, REMAT_COMPUTE, REMAT_DEALLOCATE, REMAT_REUSE, -1},
        {REMAT_OK, REMAT_E_USAGE, REMAT_E_INPUT, REMAT_E_IO, REMAT_E_MEMORY, REMAT_E_PLAN,
         REMAT_E_APPLIES, REMAT_E_CALLBACK, -1}};
    for (size_t i = 0; i < LENGTH(in_order); i++)
        for (int k = 0; k < 9 && in_order[i][k] >= 0; k++) assert_int_equal(in_order[i][k], k);
    assert_true(REMAT_E_BUG == 9 && REMAT_E_INFEASIBLE == 10 && REMAT_E_NOT_FOUND == 11);
    assert_true(REMAT_DCE == 1 && REMAT_FOLD_IDENTITY == 2 && REMAT_NO_ALIAS == 4 &&
                REMAT_REPLAY_RANDOM == 8);
    assert_true(REMAT_BUDGET_NONE == -1 && REMAT_BUDGET_MIN == -2 && REMAT_ABSENT == -1);
}

static void tables_end_with_null(void **state)
{
    (void)state;
    const remat_entry *(*const tables[])(size_t) = {remat_zoo_at, remat_strategy_at,
                                                    remat_device_at};
    for (size_t k = 0; k < LENGTH(tables); k++) {
        size_t n = 0;
        while (tables[k](n)) {
            assert_true(*tables[k](n)->name && *tables[k](n)->help);
            for (size_t j = 0; j < n; j++)
                assert_string_not_equal(tables[k](j)->name, tables[k](n)->name);
            n++;
        }
        assert_true(n > 0);
        assert_null(tables[k](n + 1));
        assert_null(tables[k](SIZE_MAX));
    }
}

static void nothing_to_free(void **state)
{
    (void)state;
    remat_ctx_free(NULL), remat_input_free(NULL), remat_graph_free(NULL), remat_builder_free(NULL);
    remat_plan_free(NULL), remat_program_free(NULL), remat_chain_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(every_option),
                                       WITH_CONTEXT(unknown_names),
                                       WITH_CONTEXT(version),
                                       WITH_CONTEXT(enums_never_change),
                                       WITH_CONTEXT(tables_end_with_null),
                                       WITH_CONTEXT(nothing_to_free)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
