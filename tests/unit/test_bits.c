/* test_bits.c: rows of bits against an array of bools. */
#include "support.h"

#include "base/bits.h"
#include "random_graph.h"

enum { ROWS = 5, COLUMNS = 200 };

static void check(const rm_bits *b, uint32_t n_columns, bool naive[ROWS][COLUMNS])
{
    for (uint32_t row = 0; row < ROWS; row++)
        for (uint32_t i = 0; i < n_columns; i++) assert_int_equal(rm_bit(b, row, i), naive[row][i]);
}

static void edits_equal_an_array(void **state)
{
    remat_ctx *ctx = *state;
    for (uint32_t n_columns = 1; n_columns <= COLUMNS; n_columns++) {
        random_source r = {n_columns};
        bool naive[ROWS][COLUMNS] = {{false}};
        rm_bits b, copy;
        OK(ctx, rm_bits_new(ctx, &b, ROWS, n_columns));
        OK(ctx, rm_bits_new(ctx, &copy, ROWS, n_columns));
        for (int edit = 0; edit < 300; edit++) {
            const uint32_t row = random_below(&r, ROWS), i = random_below(&r, n_columns);
            naive[row][i] = random_chance(&r, 60);
            (naive[row][i] ? rm_bit_set : rm_bit_clear)(&b, row, i);
        }
        check(&b, n_columns, naive);
        rm_bits_copy(&copy, &b);
        rm_bits_empty_row(&b, 2);
        for (uint32_t row = 0; row < ROWS; row++)
            for (uint32_t i = 0; i < n_columns; i++)
                assert_int_equal(rm_bit(&b, row, i), row != 2 && naive[row][i]);
        rm_bits_empty(&b);
        check(&b, n_columns, (bool[ROWS][COLUMNS]){{false}});
        check(&copy, n_columns, naive);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(edits_equal_an_array)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
