/* test_csr.c: lists by key against the obvious: go over all items once for every key. */
#include "support.h"

#include "base/csr.h"
#include "random_graph.h"

enum { MOST_KEYS = 12, MOST_ITEMS = 40, MOST_EACH = 4, CASES = 2000 };

static void by_hand(void **state)
{
    remat_ctx *ctx = *state;
    const uint32_t keys[] = {2, 0, 2, 3, 0, 2}, first[] = {0, 2, 2, 5, 6};
    char text[] = "abcdef", sorted[7] = "";
    uint32_t *begin;
    OK(ctx, rm_csr_begin(ctx, 4, &begin));
    for (uint32_t i = 0; i < 6; i++) rm_csr_count(begin, keys[i]);
    assert_int_equal(rm_csr_sum(begin, 4), 6);
    for (uint32_t i = 0; i < 6; i++) sorted[rm_csr_place(begin, keys[i])] = text[i];
    assert_string_equal(sorted, "beacfd");
    assert_memory_equal(begin, first, sizeof first);
}

static void nothing(void **state)
{
    remat_ctx *ctx = *state;
    const uint32_t begin[] = {0}, left_out[] = {REMAT_NONE, REMAT_NONE};
    rm_csr x;
    OK(ctx, rm_csr_by_key(ctx, 0, 0, NULL, &x));
    assert_int_equal(x.begin[0], 0);
    OK(ctx, rm_csr_by_key(ctx, 1, 2, left_out, &x));
    assert_int_equal(x.begin[1], 0);
    OK(ctx, rm_csr_invert(ctx, 2, 0, begin, NULL, NULL, &x));
    assert_int_equal(x.begin[2], 0);
}

static void by_key_equals_search(void **state)
{
    remat_ctx *ctx = *state;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        random_source r = {seed};
        const uint32_t n_keys = 1 + random_below(&r, MOST_KEYS),
                       n_items = random_below(&r, MOST_ITEMS);
        uint32_t keys[MOST_ITEMS], at = 0;
        rm_csr x;
        for (uint32_t i = 0; i < n_items; i++)
            keys[i] = random_chance(&r, 10) ? REMAT_NONE : random_below(&r, n_keys);
        OK(ctx, rm_csr_by_key(ctx, n_keys, n_items, keys, &x));
        for (uint32_t key = 0; key < n_keys; key++) {
            assert_int_equal(x.begin[key], at);
            for (uint32_t i = 0; i < n_items; i++)
                if (keys[i] == key) assert_int_equal(x.items[at++], i);
        }
        assert_int_equal(x.begin[n_keys], at);
    }
}

/* The items in a random order, each once. */
static void shuffle(random_source *r, uint32_t n, uint32_t *order)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t to = random_below(r, i + 1);
        order[i] = order[to];
        order[to] = i;
    }
}

static void invert_equals_search(void **state)
{
    remat_ctx *ctx = *state;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        random_source r = {seed};
        const uint32_t n_keys = 1 + random_below(&r, MOST_KEYS),
                       n_items = random_below(&r, MOST_ITEMS);
        uint32_t begin[MOST_ITEMS + 1] = {0}, keys[MOST_ITEMS * MOST_EACH], order[MOST_ITEMS];
        uint32_t at = 0;
        const bool ordered = random_chance(&r, 50);
        rm_csr x;
        for (uint32_t i = 0; i < n_items; i++) {
            begin[i + 1] = begin[i] + random_below(&r, MOST_EACH + 1);
            for (uint32_t k = begin[i]; k < begin[i + 1]; k++) keys[k] = random_below(&r, n_keys);
        }
        shuffle(&r, n_items, order);
        OK(ctx, rm_csr_invert(ctx, n_keys, n_items, begin, keys, ordered ? order : NULL, &x));
        for (uint32_t key = 0; key < n_keys; key++) {
            assert_int_equal(x.begin[key], at);
            for (uint32_t i = 0; i < n_items; i++) {
                const uint32_t item = ordered ? order[i] : i;
                for (uint32_t k = begin[item]; k < begin[item + 1]; k++)
                    if (keys[k] == key) assert_int_equal(x.items[at++], item);
            }
        }
        assert_int_equal(x.begin[n_keys], at);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(by_hand), WITH_CONTEXT(nothing),
                                       WITH_CONTEXT(by_key_equals_search),
                                       WITH_CONTEXT(invert_equals_search)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
