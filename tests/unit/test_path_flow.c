/* test_path_flow.c: packing intervals: against trying every packing, and by the prices, which prove
 * each optimum. */
#include "support.h"

#include "algo/path_flow.h"
#include "random_graph.h"

enum { MOST_ROWS = 200, MOST_INTERVALS = 600 };

typedef struct instance {
    uint32_t n_rows, n_intervals;
    int64_t room[MOST_ROWS];
    rm_interval intervals[MOST_INTERVALS];
} instance;

static random_source source = {1};

static uint32_t below(uint32_t n) { return random_below(&source, n); }

static void make(instance *x, uint32_t n_rows, uint32_t n_intervals, uint32_t most_size,
                 uint32_t most_profit)
{
    x->n_rows = n_rows;
    x->n_intervals = n_intervals;
    for (uint32_t t = 0; t < n_rows; t++) x->room[t] = below(4 * most_size);
    for (uint32_t g = 0; g < n_intervals; g++) {
        const uint32_t first = below(n_rows);
        x->intervals[g] = (rm_interval){first, first + below(n_rows - first), 1 + below(most_size),
                                        below(most_profit)};
    }
}

/* The best profit over all whole packings: the matrix is totally unimodular, so no fraction does
 * better. */
static int64_t try_all(instance *x, uint32_t g)
{
    if (g == x->n_intervals) return 0;
    const rm_interval *at = &x->intervals[g];
    int64_t most = at->size, best = 0;
    for (uint32_t t = at->first; t <= at->last; t++)
        if (x->room[t] < most) most = x->room[t];
    for (int64_t taken = 0; taken <= most; taken++) {
        for (uint32_t t = at->first; t <= at->last; t++) x->room[t] -= taken;
        const int64_t profit = taken * at->profit + try_all(x, g + 1);
        if (profit > best) best = profit;
        for (uint32_t t = at->first; t <= at->last; t++) x->room[t] += taken;
    }
    return best;
}

/* The packing fits, and what the prices prove to be the most is what it has. Returns that. */
static int64_t prove(const instance *x, const rm_path_flow *f)
{
    int64_t profit = 0, limit = 0;
    assert_true(f->optimal);
    for (uint32_t t = 0; t < x->n_rows; t++) {
        int64_t used = 0;
        for (uint32_t g = 0; g < x->n_intervals; g++)
            if (x->intervals[g].first <= t && t <= x->intervals[g].last) used += f->taken[g];
        assert_true(used <= x->room[t]);
        assert_true(f->price[t] >= 0);
        limit += f->price[t] * x->room[t];
    }
    for (uint32_t g = 0; g < x->n_intervals; g++) {
        const rm_interval *at = &x->intervals[g];
        int64_t worth = at->profit;
        for (uint32_t t = at->first; t <= at->last; t++) worth -= f->price[t];
        assert_true(f->taken[g] >= 0 && f->taken[g] <= at->size);
        profit += f->taken[g] * at->profit;
        if (worth > 0) limit += worth * at->size;
    }
    assert_int_equal(profit, limit);
    return profit;
}

static void every_packing(void **state)
{
    static instance x;
    rm_path_flow f;
    for (int i = 0; i < 3000; i++) {
        const rm_mark mark = rm_scratch_mark(*state);
        make(&x, 1 + below(7), below(6), 3, 1 + below(9));
        OK(*state, rm_path_flow_new(*state, x.n_rows, x.room, x.n_intervals, x.intervals, &f));
        rm_path_flow_solve(&f);
        assert_int_equal(prove(&x, &f), try_all(&x, 0));
        rm_scratch_release(*state, mark);
    }
}

static void large_and_again(void **state)
{
    static instance x;
    rm_path_flow f;
    for (int i = 0; i < 40; i++) {
        const rm_mark mark = rm_scratch_mark(*state);
        make(&x, 1 + below(MOST_ROWS), 1 + below(MOST_INTERVALS), 1 + below(1000),
             1 + below(100000));
        OK(*state, rm_path_flow_new(*state, x.n_rows, x.room, x.n_intervals, x.intervals, &f));
        for (int again = 0; again < 3; again++) { /* other profits, from the solution before */
            rm_path_flow_solve(&f);
            prove(&x, &f);
            for (uint32_t g = 0; g < x.n_intervals; g++)
                x.intervals[g].profit = below(5) ? x.intervals[g].profit : below(100000);
        }
        rm_scratch_release(*state, mark);
    }
}

static void nothing_to_pack(void **state)
{
    rm_path_flow f;
    const int64_t room[] = {0, 3};
    OK(*state, rm_path_flow_new(*state, 0, NULL, 0, NULL, &f));
    rm_path_flow_solve(&f);
    assert_true(f.optimal);
    OK(*state, rm_path_flow_new(*state, 2, room, 0, NULL, &f));
    rm_path_flow_solve(&f);
    assert_true(f.optimal && f.price[0] == 0 && f.price[1] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(every_packing), WITH_CONTEXT(large_and_again),
                                       WITH_CONTEXT(nothing_to_pack)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
