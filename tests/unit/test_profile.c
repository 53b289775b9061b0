/* test_profile.c: the memory profile against the obvious array, its invariants after every change.
 */
#include "support.h"

#include <string.h>

#include "algo/profile.h"
#include "random_graph.h"

enum { MOST = 300 };

static rm_range random_range(random_source *r, uint32_t n)
{
    const uint32_t first = random_below(r, n), last = first + random_below(r, n - first);
    return (rm_range){first, last, (int64_t)random_below(r, 19) - 9};
}

static void check(const rm_profile *p, const int64_t *naive)
{
    const uint32_t n = p->n_blocks * RM_PROFILE_BLOCK;
    int64_t most = naive[0];
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(rm_profile_at(p, i), naive[i]);
        if (naive[i] > most) most = naive[i];
    }
    assert_int_equal(p->max, most);
    assert_int_equal(p->high[p->crest], most);
}

static void random_edits(void **state)
{
    (void)state;
    remat_ctx *ctx = remat_ctx_new(NULL);
    random_source r = {1};
    for (uint32_t n = 1; n < MOST; n += 13) {
        rm_profile profile;
        int64_t naive[MOST + RM_PROFILE_BLOCK] = {0};
        OK(ctx, rm_profile_new(ctx, n, &profile));
        for (int edit = 0; edit < 200; edit++) {
            rm_range ranges[RM_PROFILE_LOOK];
            const size_t k = random_below(&r, RM_PROFILE_LOOK + 1);
            for (size_t i = 0; i < k; i++) ranges[i] = random_range(&r, n);
            const int64_t seen = rm_profile_look(&profile, ranges, k), before = profile.max;
            const int64_t limit = random_below(&r, 40), excess = rm_profile_excess(&profile, limit);
            const int64_t excess_seen = excess + rm_profile_look_excess(&profile, ranges, k, limit);
            const bool may_sink = rm_profile_may_sink(&profile, ranges, k);
            check(&profile, naive); /* looking changes nothing */
            rm_profile_add(&profile, ranges, k);
            assert_int_equal(profile.max, seen);
            assert_int_equal(rm_profile_excess(&profile, limit), excess_seen);
            if (!may_sink) assert_true(profile.max >= before);
            if (random_below(&r, 3) == 0) {
                rm_profile_undo(&profile, ranges, k);
                assert_int_equal(profile.max, before);
            } else {
                for (size_t i = 0; i < k; i++)
                    for (uint32_t t = ranges[i].first; t <= ranges[i].last; t++)
                        naive[t] += ranges[i].delta;
            }
            check(&profile, naive);
        }
        rm_profile_clear(&profile);
        memset(naive, 0, sizeof naive);
        check(&profile, naive);
        for (int i = 0; i < 20; i++) {
            const rm_range range = random_range(&r, n);
            rm_profile_sketch(&profile, &range, 1);
            for (uint32_t t = range.first; t <= range.last; t++) naive[t] += range.delta;
        }
        rm_profile_finish(&profile);
        check(&profile, naive);
        rm_profile_free(&rm_libc_heap, &profile);
    }
    remat_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_edits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
