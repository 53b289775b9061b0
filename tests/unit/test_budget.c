/* test_budget.c: budgets as people write them. */
#include "support.h"

static const int64_t KEEP_ALL = 11506715524;

static void good(void **state)
{
    remat_ctx *ctx = *state;
    static const struct {
        const char *text;
        int64_t bytes;
    } table[] = {
        {"12GiB", (int64_t)12 << 30},
        {"900MB", 900000000},
        {"1KiB", 1024},
        {"1KB", 1000},
        {"3TiB", (int64_t)3 << 40},
        {"2GB", 2000000000},
        {"7MiB", 7 << 20},
        {"4096", 4096},
        {"0", 0},
        {"5B", 5},
        {"50%", 11506715524 / 2},
        {"100%", 11506715524},
        {"0%", 0},
        {"min", REMAT_BUDGET_MIN},
        {"1%", 115067155},
        {"33%", 3797216122},
        {"8G", (int64_t)8 << 30},
        {"8gib", (int64_t)8 << 30},
        {"8GIB", (int64_t)8 << 30},
        {"8gb", INT64_C(8000000000)},
        {"3k", 3 << 10},
        {"7m", 7 << 20},
        {"1e9", 1000000000},
        {"1.5e3", 1500},
        {"1.5E+3", 1500},
        {"25e-1KiB", 2560},
        {"1234567e-3kb", 1234567},
        {"0e99", 0},
        {"1e-99GiB", 0},
        {"2e0%", 230134310},
        {"12bytes", 12},
        {"4611686018427387903", INT64_C(4611686018427387903)},
    };
    for (size_t i = 0; i < LENGTH(table); i++) {
        int64_t bytes = -77;
        if (remat_budget_parse(ctx, table[i].text, KEEP_ALL, &bytes) != REMAT_OK)
            fail_msg("\"%s\": %s", table[i].text, remat_ctx_error(ctx));
        if (bytes != table[i].bytes)
            fail_msg("\"%s\" is %lld, not %lld", table[i].text, (long long)bytes,
                     (long long)table[i].bytes);
    }
}

static void decimals_and_percent(void **state)
{
    remat_ctx *ctx = *state;
    int64_t bytes;
    OK(ctx, remat_budget_parse(ctx, "1.5GiB", KEEP_ALL, &bytes));
    assert_int_equal(bytes, (int64_t)3 << 29);
    OK(ctx, remat_budget_parse(ctx, "12.5%", 1001, &bytes)); /* floor of 125.125 */
    assert_int_equal(bytes, 125);
    OK(ctx,
       remat_budget_parse(ctx, "50%", ((int64_t)1 << 62) - 1, &bytes)); /* no overflow on the way */
    assert_int_equal(bytes, ((int64_t)1 << 61) - 1);
}

static void bad(void **state)
{
    remat_ctx *ctx = *state;
    static const char *const table[] = {"-5",
                                        "10XB",
                                        "",
                                        " 5GB",
                                        "5GB ",
                                        "5 GB",
                                        "1e",
                                        "1e+",
                                        "e9",
                                        "1e19",
                                        "1e999999999999999999999",
                                        "1.5e0",
                                        "99999999999999999999.5",
                                        "8Gi",
                                        "8EB",
                                        "8 G",
                                        "8 ",
                                        "8\x07"
                                        "b",
                                        "GB",
                                        "%",
                                        "99999999999999999999",
                                        "9223372036854775808",
                                        "99999999999GiB",
                                        "0x10",
                                        "min5",
                                        "1..5GB",
                                        "-1%",
                                        "nan",
                                        "inf",
                                        "5GBB",
                                        "+5",
                                        "MIN GB"};
    for (size_t i = 0; i < LENGTH(table); i++) {
        int64_t bytes = -77;
        const remat_status status = remat_budget_parse(ctx, table[i], KEEP_ALL, &bytes);
        if (status != REMAT_E_USAGE)
            fail_msg("\"%s\" is taken for %lld (status %d)", table[i], (long long)bytes,
                     (int)status);
        assert_int_equal(bytes, -77);
        assert_true(*remat_ctx_error(ctx) != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(good), WITH_CONTEXT(decimals_and_percent),
                                       WITH_CONTEXT(bad)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
