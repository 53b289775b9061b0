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
    const struct CMUnitTest tests[] = {WITH_CONTEXT(every_option), WITH_CONTEXT(unknown_names),
                                       WITH_CONTEXT(version), WITH_CONTEXT(tables_end_with_null),
                                       WITH_CONTEXT(nothing_to_free)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
