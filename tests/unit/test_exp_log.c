/* test_exp_log.c: our exp and log against the C library's, which are good to an ulp or so. */
#include "support.h"

#include <math.h>

#include "base/exp_log.h"

static void exp_is_exp(void **state)
{
    (void)state;
    for (double x = -699; x <= 699; x += 0.0371)
        assert_true(fabs(rm_exp(x) - exp(x)) <= 1e-15 * exp(x));
    for (double x = -1; x <= 1; x += 1.0 / 4096)
        assert_true(fabs(rm_exp(x) - exp(x)) <= 5e-16 * exp(x));
    assert_true(rm_exp(0) == 1 && rm_exp(-1000) == 0);
}

static void log_is_log(void **state)
{
    (void)state;
    for (double x = 1e-300; x < 1e300; x *= 1.0173)
        assert_true(fabs(rm_log(x) - log(x)) <= 4e-16 * fmax(1, fabs(log(x))));
    for (double x = 0.5; x <= 2; x += 1.0 / 4096) assert_true(fabs(rm_log(x) - log(x)) <= 4e-16);
    assert_true(rm_log(1) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(exp_is_exp), cmocka_unit_test(log_is_log)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
