/* test_heap.c: whatever is pushed comes out in order, between pushes too. */
#include "support.h"

#include "base/heap.h"
#include "random_graph.h"

enum { MOST = 200, CASES = 500 };

typedef struct named {
    uint32_t rank, name;
} named;

/* Least rank first; of equals, the name that is later in the alphabet at hand. */
static bool goes_before(const uint32_t *place, named a, named b)
{
    return a.rank != b.rank ? a.rank < b.rank : place[a.name] > place[b.name];
}
RM_HEAP(heap, named, const uint32_t *, goes_before)

static void one_item(void **state)
{
    (void)state;
    named items[1];
    heap_push(NULL, items, 0, (named){7, 8});
    const named top = heap_pop(NULL, items, 1);
    assert_int_equal(top.rank, 7);
    assert_int_equal(top.name, 8);
}

/* The first of the items, by looking at all of them; it is taken out. */
static named take_first(const uint32_t *place, named *items, size_t n)
{
    size_t first = 0;
    for (size_t i = 1; i < n; i++)
        if (goes_before(place, items[i], items[first])) first = i;
    const named top = items[first];
    items[first] = items[n - 1];
    return top;
}

static void pops_equal_search(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        random_source r = {seed};
        const uint32_t n_ranks = 1 + random_below(&r, 50);
        uint32_t place[MOST];
        named items[MOST], naive[MOST];
        size_t n = 0;
        for (uint32_t i = 0; i < MOST; i++) place[i] = i * 37 % MOST;
        for (uint32_t pushed = 0; pushed < MOST || n;) {
            if (pushed < MOST && (n == 0 || random_chance(&r, 60))) {
                const named new = {random_below(&r, n_ranks), pushed++};
                naive[n] = new;
                heap_push(place, items, n++, new);
                continue;
            }
            const named expected = take_first(place, naive, n), top = heap_pop(place, items, n--);
            assert_int_equal(top.rank, expected.rank);
            assert_int_equal(top.name, expected.name);
        }
    }
}

/* The k that go last, largest at the end: replace the top of the best k so far. */
static void made_and_replaced(void **state)
{
    (void)state;
    for (uint32_t seed = 0; seed < CASES; seed++) {
        random_source r = {seed};
        const uint32_t n = 1 + random_below(&r, MOST), kept = 1 + random_below(&r, n);
        uint32_t place[MOST];
        named items[MOST], naive[MOST];
        for (uint32_t i = 0; i < n; i++) {
            place[i] = i * 37 % MOST;
            items[i] = naive[i] = (named){random_below(&r, 20), i};
        }
        heap_make(place, items, kept);
        for (uint32_t i = kept; i < n; i++)
            if (goes_before(place, items[0], naive[i])) heap_replace(place, items, kept, naive[i]);
        for (uint32_t left = n; left > kept; left--) take_first(place, naive, left);
        for (uint32_t left = kept; left > 0; left--)
            assert_int_equal(heap_pop(place, items, left).name,
                             take_first(place, naive, left).name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_item),
                                       cmocka_unit_test(pops_equal_search),
                                       cmocka_unit_test(made_and_replaced)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
