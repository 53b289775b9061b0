/* test_segtree.c: the segment tree against the obvious array, with its invariant after every change. */
#include "support.h"

#include "algo/segtree.h"

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static void random_edits(void **state)
{
    (void)state;
    remat_ctx *ctx = remat_ctx_new(NULL);
    uint64_t seed = 1;
    for (uint32_t n = 1; n <= 70; n++) {
        rm_segtree tree;
        int64_t naive[70] = {0};
        OK(ctx, rm_segtree_new(ctx, n, &tree));
        for (int edit = 0; edit < 200; edit++) {
            const uint32_t first = (uint32_t)(next_random(&seed) % n), last = first + (uint32_t)(next_random(&seed) % (n - first));
            const int64_t delta = (int64_t)(next_random(&seed) % 19) - 9;
            rm_segtree_add(&tree, first, last, delta);
            int64_t most = tree.n > n ? 0 : INT64_MIN; /* positions past the end stay 0 */
            for (uint32_t i = 0; i < n; i++) {
                if (i >= first && i <= last) naive[i] += delta;
                if (naive[i] > most) most = naive[i];
                assert_int_equal(rm_segtree_at(&tree, i), naive[i]);
            }
            assert_int_equal(rm_segtree_max(&tree), most);
            assert_true(rm_segtree_check(&tree));
        }
        rm_segtree_free(&rm_libc_heap, &tree);
    }
    remat_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_edits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
