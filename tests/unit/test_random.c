/* test_random.c: the generator's known sequence, and that ranges are taken whole. */
#include "support.h"

#include "base/random.h"

static void known_sequence(void **state)
{
    (void)state;
    static const uint64_t expected[] = {UINT64_C(0xe220a8397b1dcdaf), UINT64_C(0x6e789e6aa1b965f4),
                                        UINT64_C(0x06c45d188009454f), UINT64_C(0xf88bb8a8724c81ec)};
    rm_random r = {0};
    for (size_t i = 0; i < LENGTH(expected); i++) assert_true(rm_random_next(&r) == expected[i]);
}

static void whole_ranges(void **state)
{
    (void)state;
    rm_random r = {1};
    bool between[5] = {false}, below[5] = {false};
    for (int i = 0; i < 1000; i++) {
        const int64_t x = rm_random_between(&r, -2, 2);
        const uint32_t y = rm_random_below(&r, 5);
        const double unit = rm_random_unit(&r);
        assert_true(x >= -2 && x <= 2 && y < 5 && unit >= 0 && unit < 1);
        between[x + 2] = below[y] = true;
    }
    for (int i = 0; i < 5; i++) assert_true(between[i] && below[i]);
    assert_int_equal(rm_random_between(&r, 7, 7), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_sequence),
                                       cmocka_unit_test(whole_ranges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
