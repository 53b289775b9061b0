/* test_maxflow.c: the flow against all cuts of small random networks, the two extreme cuts, and the
 * edges of its domain. */
#include "support.h"

#include <string.h>

#include "algo/maxflow.h"
#include "random_graph.h"

enum { MOST = 9, CASES = 3000 };

/* Capacity across a subset, capped at `infinite`. */
static int64_t across(const rm_flow_network *w, unsigned source_set, int64_t infinite)
{
    int64_t sum = 0;
    for (size_t i = 0; i < w->n_edges && sum < infinite; i++) {
        const rm_flow_edge *e = &w->edges[i];
        if ((source_set >> e->from & 1) && !(source_set >> e->to & 1))
            sum += e->capacity == RM_FLOW_INFINITE ? infinite : e->capacity;
    }
    return sum < infinite ? sum : infinite;
}

/* The minimum over all cuts; `both` and `either` become the intersection and the union of the
 * source sides that reach it. */
static int64_t brute_force(const rm_flow_network *w, int64_t infinite, unsigned *both,
                           unsigned *either)
{
    int64_t least = infinite;
    for (unsigned set = 0; set < 1u << w->n_vertices; set++) {
        if (!(set >> w->source & 1) || (set >> w->sink & 1)) continue;
        const int64_t capacity = across(w, set, infinite);
        if (capacity < least) least = capacity, *both = ~0u, *either = 0;
        if (capacity == least) *both &= set, *either |= set;
    }
    return least;
}

static unsigned as_set(const uint8_t *source_side, uint32_t n)
{
    unsigned set = 0;
    for (uint32_t v = 0; v < n && v < MOST; v++) set |= (unsigned)source_side[v] << v;
    return set;
}

static void equals_all_cuts(void **state)
{
    remat_ctx *ctx = *state;
    rm_limits_begin(ctx, RM_NO_LIMIT);
    int finite = 0, several = 0;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        random_source r = {seed};
        rm_flow_edge edges[40];
        uint8_t side[MOST];
        rm_flow_network w = {.n_vertices = 2 + random_below(&r, MOST - 1),
                             .edges = edges,
                             .n_edges = random_below(&r, 28)};
        w.source = random_below(&r, w.n_vertices);
        w.sink = (w.source + 1 + random_below(&r, w.n_vertices - 1)) % w.n_vertices;
        int64_t infinite = 1, latest, earliest;
        for (size_t i = 0; i < w.n_edges;
             i++) { /* loops and parallel edges among them, and zero capacities */
            edges[i] = (rm_flow_edge){random_below(&r, w.n_vertices),
                                      random_below(&r, w.n_vertices), random_below(&r, 6)};
            if (random_chance(&r, 15)) edges[i].capacity = RM_FLOW_INFINITE;
            else infinite += edges[i].capacity;
        }
        unsigned both = 0, either = 0;
        const int64_t least = brute_force(&w, infinite, &both, &either);
        OK(ctx, rm_maxflow(ctx, &w, RM_LATEST_CUT, &latest, side));
        if (least == infinite) {
            assert_true(latest == RM_FLOW_INFINITE);
            continue;
        }
        assert_int_equal(latest, least);
        assert_int_equal(as_set(side, w.n_vertices),
                         either); /* minimum cuts are closed under union and intersection */
        OK(ctx, rm_maxflow(ctx, &w, RM_EARLIEST_CUT, &earliest, side));
        assert_int_equal(earliest, least);
        assert_int_equal(as_set(side, w.n_vertices), both);
        finite++;
        several += both != either;
    }
    assert_in_range(finite, CASES / 2, CASES - 1);
    assert_in_range(several, CASES / 4, CASES - 1);
    rm_limits_end(ctx);
}

static void large_capacities(void **state)
{
    remat_ctx *ctx = *state;
    rm_limits_begin(ctx, RM_NO_LIMIT);
    rm_flow_edge edges[] = {
        {0, 1, (INT64_C(1) << 61)}, {1, 2, RM_FLOW_INFINITE}, {0, 2, (INT64_C(1) << 61) - 1}};
    const rm_flow_network w = {3, 0, 2, edges, LENGTH(edges)};
    int64_t value;
    uint8_t side[3];
    OK(ctx, rm_maxflow(ctx, &w, RM_LATEST_CUT, &value, side));
    assert_true(value == (INT64_C(1) << 62) - 1);
    edges[2].capacity++;
    FAILS(ctx, REMAT_E_INPUT, rm_maxflow(ctx, &w, RM_LATEST_CUT, &value, side));
    edges[2].capacity = RM_FLOW_INFINITE;
    OK(ctx, rm_maxflow(ctx, &w, RM_LATEST_CUT, &value, side));
    assert_true(value == RM_FLOW_INFINITE);
    rm_limits_end(ctx);
}

static void can_be_stopped(void **state)
{
    remat_ctx *ctx = *state;
    const rm_flow_edge edges[] = {{0, 1, 5}, {1, 2, 5}};
    const rm_flow_network w = {3, 0, 2, edges, 2};
    int64_t value;
    uint8_t side[3];
    rm_limits_begin(ctx, 1);
    OK(ctx, rm_maxflow(ctx, &w, RM_LATEST_CUT, &value, side));
    assert_int_equal(value, REMAT_ABSENT);
    rm_limits_end(ctx);
}

/* A chain of many vertices, each with a little from the source, or for the sink, of its own: as
 * many distances as vertices. The work must stay near the size of the network (an algorithm that
 * takes a phase for each distance needs thousands of times as much). */
static void chains_are_not_quadratic(void **state)
{
    enum { N = 20000, SOURCE = N, SINK = N + 1 };
    remat_ctx *ctx = *state;
    static rm_flow_edge edges[2 * N + 1];
    static uint8_t side[N + 2];
    for (int outputs = 0; outputs < 2; outputs++)
        for (int backwards = 0; backwards < 2;
             backwards++) { /* in the order of the indices, and against it */
            const rm_flow_network w = {N + 2, SOURCE, SINK, edges, 2 * N};
            for (uint32_t i = 0; i < N; i++) {
                const uint32_t v = backwards ? N - 1 - i : i, next = backwards ? v - 1 : v + 1;
                edges[2 * i] = outputs ? (rm_flow_edge){v, SINK, 1} : (rm_flow_edge){SOURCE, v, 1};
                edges[2 * i + 1] = (rm_flow_edge){v, next, 1000000};
                if (i == N - 1)
                    edges[2 * i + 1] = outputs
                                           ? (rm_flow_edge){SOURCE, backwards ? N - 1 : 0, 1000000}
                                           : (rm_flow_edge){v, SINK, 1000000};
            }
            for (int which = RM_LATEST_CUT; which <= RM_EARLIEST_CUT; which++) {
                int64_t value;
                rm_limits_begin(ctx, 100 * (int64_t)(4 * N + N));
                OK(ctx, rm_maxflow(ctx, &w, (rm_flow_side)which, &value, side));
                assert_int_equal(value, N);
                rm_limits_end(ctx);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(equals_all_cuts),
                                       WITH_CONTEXT(large_capacities), WITH_CONTEXT(can_be_stopped),
                                       WITH_CONTEXT(chains_are_not_quadratic)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
