/* test_place.c: placement: known problems, public instances, wrong input, and the check that finds
 * every kind of fault. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "place/place.h"
#include "place_brute.h"

enum { CAPACITY = 1048576 };

static remat_packing place(remat_ctx *ctx, const remat_span *spans, size_t n, int64_t capacity,
                           int64_t *offsets)
{
    remat_packing p = REMAT_PACKING_INIT;
    OK(ctx, remat_spans_place(ctx, spans, n, capacity, offsets, &p));
    OK(ctx, remat_spans_verify(ctx, spans, n, offsets, 1, p.height_bytes));
    return p;
}

static void nothing_needs_nothing(void **state)
{
    remat_ctx *ctx = *state;
    int64_t offsets[2] = {-1, -1};
    const remat_packing none = place(ctx, NULL, 0, REMAT_BUDGET_NONE, offsets);
    assert_true(none.height_bytes == 0 && none.outcome == REMAT_OPTIMAL);
    const remat_span empty[] = {{0, 5, 0}, {2, 3, 0}};
    const remat_packing p = place(ctx, empty, 2, 0, offsets);
    assert_true(p.height_bytes == 0 && p.outcome == REMAT_OPTIMAL);
    assert_true(offsets[0] == 0 && offsets[1] == 0);
}

/* Four bytes are needed at every time, and there is no placement in four (by trying all orders). */
static void waste_is_proved(void **state)
{
    remat_ctx *ctx = *state;
    const remat_span spans[] = {{0, 1, 2},  {0, 6, 2},  {1, 9, 2},   {6, 11, 1},  {6, 10, 1},
                                {9, 10, 1}, {9, 12, 1}, {10, 14, 2}, {11, 12, 1}, {12, 13, 2}};
    int64_t offsets[LENGTH(spans)];
    assert_int_equal(place_brute(spans, LENGTH(spans)), 5);
    const remat_packing p = place(ctx, spans, LENGTH(spans), REMAT_BUDGET_NONE, offsets);
    assert_int_equal(p.outcome, REMAT_OPTIMAL);
    assert_true(p.load_bytes == 4 && p.bound_bytes == 5 && p.height_bytes == 5);
    assert_int_equal(p.stopped, REMAT_DONE);
    assert_int_equal(place(ctx, spans, LENGTH(spans), 4, offsets).outcome, REMAT_INFEASIBLE);
    assert_int_equal(place(ctx, spans, LENGTH(spans), 9, offsets).outcome, REMAT_FEASIBLE);
}

/* The cliques of three spans in a row, of which the second meets both others. */
static void cliques_are_maximal(void **state)
{
    remat_ctx *ctx = *state;
    const remat_span spans[] = {{0, 4, 6}, {2, 9, 4}, {4, 5, 8}, {-7, -6, 2}, {3, 3 + 1, 0}};
    rm_cliques c;
    OK(ctx, rm_cliques_make(ctx, spans, LENGTH(spans), &c));
    assert_int_equal(c.n_spans, 4);
    assert_int_equal(c.n_cliques, 3);
    assert_int_equal(c.load[0], 2);
    assert_int_equal(c.load[1], 10);
    assert_int_equal(c.load[2], 12);
    assert_int_equal(c.bound, 12);
    assert_int_equal(c.unit, 2);
    rm_scratch_release(ctx, (rm_mark){NULL, 0});
}

static void wrong_spans_are_refused(void **state)
{
    remat_ctx *ctx = *state;
    const remat_span wrong[][2] = {{{0, 0, 1}, {0, 1, 1}},
                                   {{5, 4, 1}, {0, 1, 1}},
                                   {{0, 1, -1}, {0, 1, 1}},
                                   {{0, 1, INT64_C(1) << 62}, {0, 1, 1}},
                                   {{0, 1, INT64_C(1) << 61}, {7, 8, INT64_C(1) << 61}}};
    int64_t offsets[2];
    remat_packing p = REMAT_PACKING_INIT;
    for (size_t i = 0; i < LENGTH(wrong); i++)
        FAILS(ctx, REMAT_E_INPUT,
              remat_spans_place(ctx, wrong[i], 2, REMAT_BUDGET_NONE, offsets, &p));
    FAILS(ctx, REMAT_E_USAGE, remat_spans_place(ctx, wrong[0], 0, -2, offsets, &p));
    p.size = 3;
    FAILS(ctx, REMAT_E_USAGE, remat_spans_place(ctx, wrong[0], 0, 7, offsets, &p));
}

static void the_check_finds_faults(void **state)
{
    remat_ctx *ctx = *state;
    const remat_span spans[] = {{0, 3, 16}, {2, 5, 8}, {3, 6, 16}, {0, 9, 0}};
    const struct {
        int64_t offsets[4], align, height;
        const char *says; /* NULL: nothing is wrong */
    } cases[] = {{{0, 16, 0, 0}, 8, 24, NULL},
                 {{0, 16, 24, 3}, 1, 40, NULL},
                 {{0, 15, 24, 0}, 1, 40, "overlaps span 1"},
                 {{8, 0, 7, 0}, 1, 24, "overlaps span 2"},
                 {{8, 4, 24, 0}, 1, 40, "overlaps span 0"},
                 {{-1, 16, 0, 0}, 1, 24, "below the arena"},
                 {{0, 20, 0, 0}, 8, 28, "not aligned"},
                 {{0, 16, 0, 0}, 8, 23, "beyond the height"},
                 {{0, 16, 0, INT64_MAX}, 1, 24, "beyond the height"},
                 {{0, 16, 0, 0}, 8, 25, "the height is 24, not 25"}};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const remat_status status =
            remat_spans_verify(ctx, spans, 4, cases[i].offsets, cases[i].align, cases[i].height);
        assert_int_equal(status, cases[i].says ? REMAT_E_PLAN : REMAT_OK);
        if (cases[i].says) assert_non_null(strstr(remat_ctx_error(ctx), cases[i].says));
    }
    FAILS(ctx, REMAT_E_USAGE, remat_spans_verify(ctx, spans, 4, cases[0].offsets, 0, 24));
    FAILS(ctx, REMAT_E_USAGE, remat_spans_verify(ctx, spans, 4, cases[0].offsets, 24, 24));
}

static remat_spans *load(remat_ctx *ctx, const char *name)
{
    char path[400];
    remat_input *input = NULL;
    remat_spans *spans = NULL;
    snprintf(path, sizeof path, "%s/placement/%s.1048576.csv", REMAT_TEST_DATA, name);
    OK(ctx, remat_input_open(ctx, path, &input));
    assert_int_equal(remat_input_kind(input), REMAT_KIND_SPANS);
    OK(ctx, remat_spans_read(ctx, input, &spans));
    remat_input_free(input);
    return spans;
}

/* Each within four seconds' work, which is reproducible; a capacity below the load is refused at
 * once, and the same seed gives the same offsets. */
static void public_instances_fit(void **state)
{
    remat_ctx *ctx = *state;
    static const char *const names[] = {"A", "C", "D", "E", "G", "I", "J", "K"};
    static const size_t counts[] = {154, 203, 213, 215, 308, 374, 409, 454};
    static int64_t offsets[2][500];
    OK(ctx, remat_ctx_set(ctx, "work", 16000000));
    for (size_t i = 0; i < LENGTH(names); i++) {
        remat_spans *spans = load(ctx, names[i]);
        size_t n;
        const remat_span *list = remat_spans_list(spans, &n);
        assert_int_equal(n, counts[i]);
        const remat_packing p = place(ctx, list, n, CAPACITY, offsets[0]);
        if (p.height_bytes > CAPACITY) fail_msg("%s: %lld", names[i], (long long)p.height_bytes);
        place(ctx, list, n, CAPACITY, offsets[1]);
        assert_memory_equal(offsets[0], offsets[1], n * sizeof **offsets);
        const remat_packing under = place(ctx, list, n, p.load_bytes - 1, offsets[0]);
        assert_int_equal(under.outcome, REMAT_INFEASIBLE);
        assert_true(under.work < p.work || p.work < 100000);
        if (i == 0) assert_string_equal(remat_spans_id(spans, n - 1), "153");
        assert_string_equal(remat_spans_id(spans, n), "");
        remat_spans_free(spans);
    }
}

/* Spans of any size begin as long as there is room below the capacity, so most moments are nearly
 * full. */
static size_t nearly_full_spans(remat_span *spans, int64_t capacity)
{
    uint64_t state = 2;
    size_t n = 0;
    int64_t alive[200] = {0};
#define BELOW(m)                                                                                   \
    (state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407),                \
     (int64_t)((state >> 33) % (m)))
    for (int64_t t = 0; t < 200; t++)
        for (int k = 0; k < 8; k++) {
            const int64_t bytes = 10 + BELOW(90);
            if (alive[t] + bytes > capacity) continue;
            const uint32_t most = BELOW(4) ? 12 : 100;
            const int64_t end = t + 1 + BELOW(most);
            for (int64_t i = t; i < end && i < 200; i++) alive[i] += bytes;
            spans[n++] = (remat_span){t, end, bytes};
        }
#undef BELOW
    return n;
}

/* Stacking alone reaches 1174 with this work. */
static void ejections_make_it_lower(void **state)
{
    remat_ctx *ctx = *state;
    static remat_span spans[1600];
    static int64_t offsets[1600];
    OK(ctx, remat_ctx_set(ctx, "work", 4000000));
    const size_t n = nearly_full_spans(spans, 1000);
    const remat_packing p = place(ctx, spans, n, REMAT_BUDGET_NONE, offsets);
    assert_int_equal(p.load_bytes, 1000);
    if (p.height_bytes > 1140) fail_msg("%lld", (long long)p.height_bytes);
}

static void limits_end_it_early(void **state)
{
    remat_ctx *ctx = *state;
    static int64_t offsets[500];
    remat_spans *spans = load(ctx, "K");
    size_t n;
    const remat_span *list = remat_spans_list(spans, &n);
    OK(ctx, remat_ctx_set(ctx, "work", 1));
    const remat_packing p = place(ctx, list, n, CAPACITY, offsets);
    assert_int_equal(p.outcome, REMAT_UNKNOWN);
    assert_int_equal(p.stopped, REMAT_WORK);
    OK(ctx, remat_ctx_set(ctx, "work", 0));
    remat_ctx_stop(ctx);
    assert_int_equal(place(ctx, list, n, CAPACITY, offsets).stopped, REMAT_SIGNAL);
    remat_spans_free(spans);
}

static void files_are_strict(void **state)
{
    remat_ctx *ctx = *state;
    static const struct {
        const char *text, *says;
    } wrong[] = {{"id,lower,upper\n", "line 1: a column is missing: 'size'"},
                 {"id,lower,upper,size,gaps\n", "line 1: none of id"},
                 {"id,lower,lower,upper,size\n", "line 1: a column is there twice: 'lower'"},
                 {"id,lower,upper,size\na,0,1\n", "line 2: not as many cells"},
                 {"id,lower,upper,size\na,0,1,1,1\n", "line 2: not as many cells"},
                 {"id,lower,upper,size\n,0,1,1\n", "line 2: id is empty"},
                 {"id,lower,upper,size\na,0,1,1\n\na,1,2,1\n", "line 4: id is there twice: 'a'"},
                 {"id,lower,upper,size\na,-1,1,1\n", "line 2: lower is not a whole number"},
                 {"id,lower,upper,size\na,1,1,1\n", "line 2: upper is not above lower: '1'"},
                 {"id,lower,upper,size\na,2,1,1\n", "line 2: upper is not above lower: '1'"},
                 {"id,lower,upper,size\na,0,1,0\n", "line 2: size is not a whole number from 1"},
                 {"id,lower,upper,size\na,0,1,\n", "line 2: size is not a whole number"},
                 {"id,lower,upper,size\na,0,1,1.5\n", "line 2: size is not a whole number"},
                 {"id,lower,upper,size\na,0,1,4611686018427387904\n", "line 2: size is not"},
                 {"id,lower,upper,size\na,0,1,99999999999999999999\n", "line 2: size is not"},
                 {"id,lower,upper,size\na,0,1,4611686018427387903\nb,1,2,1\n",
                  "line 3: the sizes sum to 2^62 or more"}};
    for (size_t i = 0; i < LENGTH(wrong); i++) {
        remat_input *input = NULL;
        remat_spans *spans = NULL;
        OK(ctx, remat_input_parse(ctx, "x.csv", wrong[i].text, strlen(wrong[i].text), &input));
        FAILS(ctx, REMAT_E_INPUT, remat_spans_read(ctx, input, &spans));
        if (!strstr(remat_ctx_error(ctx), wrong[i].says))
            fail_msg("'%s' is not in '%s'", wrong[i].says, remat_ctx_error(ctx));
        remat_input_free(input);
    }
}

/* Sums near 2^62 are as fine as they were, and are refused only where rounding makes them larger.
 */
static void huge_sizes_can_be_aligned(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = NULL, *copy = NULL, *aligned = NULL;
    remat_builder *b = remat_builder_new(ctx, "huge");
    const int64_t most = (INT64_C(1) << 62) - 1;
    const uint32_t v = remat_builder_value(b, "v", most - 2000);
    remat_builder_op_set(b, remat_builder_op(b, "f", NOTHING, LIST(v)), REMAT_OP_WORKSPACE, 0);
    const uint32_t w = remat_builder_op(b, "g", LIST(v), NOTHING);
    remat_builder_op_set(b, w, REMAT_OP_WORKSPACE, 1500);
    OK(ctx, remat_builder_finish(b, &graph));
    OK(ctx, remat_graph_prepare(ctx, graph, 0, NULL, &copy));
    OK(ctx, remat_graph_align(ctx, graph, 1, &aligned));
    remat_graph_free(copy), remat_graph_free(aligned);
    OK(ctx, remat_graph_align(ctx, graph, 2, &aligned));
    remat_graph_free(aligned);
    FAILS(ctx, REMAT_E_INPUT, remat_graph_align(ctx, graph, 512, &aligned));
    remat_graph_free(graph), remat_builder_free(b);
}

/* An aligned graph stays aligned, whatever is done to it. */
static void prepared_graphs_stay_aligned(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = NULL, *aligned = NULL, *copy = NULL;
    OK(ctx, remat_graph_load(ctx, REMAT_TEST_DATA "/graphs/distilbert.json.gz", &graph));
    OK(ctx, remat_graph_align(ctx, graph, 4096, &aligned));
    OK(ctx, remat_graph_prepare(ctx, aligned, REMAT_DCE | REMAT_NO_ALIAS, "unit", &copy));
    for (uint32_t v = 0; v < remat_graph_n_values(copy); v++)
        if (remat_graph_value_get(copy, v, REMAT_VALUE_PRODUCER) != REMAT_ABSENT)
            assert_int_equal(remat_graph_value_get(copy, v, REMAT_VALUE_STORAGE) % 4096, 0);
    remat_plan *plan = NULL;
    OK(ctx, remat_plan_make(ctx, copy, "keep-all", REMAT_BUDGET_NONE, &plan));
    assert_int_equal(remat_plan_summary(plan)->align, 4096);
    remat_plan_free(plan), remat_graph_free(copy), remat_graph_free(aligned);
    remat_graph_free(graph);
}

static void alignment_is_a_power_of_two(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = NULL, *aligned = NULL;
    OK(ctx, remat_graph_load(ctx, "zoo:mlp?layers=3", &graph));
    const int64_t wrong[] = {-1, 3, 24, INT64_C(1) << 31, INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < LENGTH(wrong); i++)
        FAILS(ctx, REMAT_E_USAGE, remat_graph_align(ctx, graph, wrong[i], &aligned));
    OK(ctx, remat_graph_align(ctx, graph, 0, &aligned));
    assert_string_equal(remat_graph_digest(aligned), remat_graph_digest(graph));
    for (uint32_t v = 0; v < remat_graph_n_values(graph); v++) {
        const int64_t before = remat_graph_value_get(graph, v, REMAT_VALUE_STORAGE),
                      after = remat_graph_value_get(aligned, v, REMAT_VALUE_STORAGE);
        const int64_t root = remat_graph_value_get(graph, v, REMAT_VALUE_ROOT);
        const bool resident =
            remat_graph_value_get(graph, (uint32_t)root, REMAT_VALUE_PRODUCER) == REMAT_ABSENT;
        assert_true(after == (resident ? before : (before + 511) / 512 * 512));
    }
    remat_graph_free(aligned);
    remat_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(nothing_needs_nothing),
                                       WITH_CONTEXT(waste_is_proved),
                                       WITH_CONTEXT(cliques_are_maximal),
                                       WITH_CONTEXT(wrong_spans_are_refused),
                                       WITH_CONTEXT(the_check_finds_faults),
                                       WITH_CONTEXT(public_instances_fit),
                                       WITH_CONTEXT(ejections_make_it_lower),
                                       WITH_CONTEXT(limits_end_it_early),
                                       WITH_CONTEXT(files_are_strict),
                                       WITH_CONTEXT(huge_sizes_can_be_aligned),
                                       WITH_CONTEXT(prepared_graphs_stay_aligned),
                                       WITH_CONTEXT(alignment_is_a_power_of_two)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
