/* test_given_steps.c: a caller's own schedule where memory runs out: every allocation of judging,
 * measuring and bounding it fails once, in turn, and class rules come and go. (What the numbers
 * must be: prop_model.) */
#include "support.h"

#include <stdlib.h>

static struct {
    size_t calls, fail_at, live_bytes;
} heap;

static void *counted_resize(void *user, void *p, size_t old_size, size_t new_size)
{
    (void)user;
    if (new_size && heap.calls++ == heap.fail_at) return NULL;
    heap.live_bytes += new_size - old_size;
    if (new_size) return realloc(p, new_size);
    free(p);
    return NULL;
}

#define THEN(call)                                                                                 \
    if (status == REMAT_OK) status = (call)

/* Each op once, one again, and a value there and back. */
static remat_status use_steps(remat_ctx *ctx, const remat_graph *graph)
{
    remat_step steps[] = {{REMAT_RUN, 0},   {REMAT_OFFLOAD, 1}, {REMAT_RUN, 1},
                          {REMAT_FETCH, 1}, {REMAT_RUN, 0},     {REMAT_RUN, 2}};
    int64_t bytes[LENGTH(steps)];
    remat_plan *plan = NULL;
    remat_bound bound = REMAT_BOUND_INIT;
    remat_verdict verdict = REMAT_VERDICT_INIT;
    remat_status status = remat_steps_memory(ctx, graph, steps, LENGTH(steps), bytes);
    THEN(remat_plan_of_steps(ctx, graph, steps, LENGTH(steps), "mine", 1000, 3, &plan));
    THEN(remat_plan_verify_bound(ctx, graph, plan, &verdict));
    THEN(remat_bound_find(ctx, graph, 1000, &bound));
    if (status == REMAT_OK) assert_true(verdict.valid);
    remat_plan_free(plan);
    return status;
}

static remat_status all(remat_ctx *ctx)
{
    remat_graph *graph = NULL;
    remat_builder *b = remat_builder_new(ctx, "three");
    if (!b) return REMAT_E_MEMORY;
    const uint32_t x = remat_builder_value(b, "x", 8), y = remat_builder_value(b, "y", 8),
                   z = remat_builder_value(b, "z", 8);
    remat_builder_op(b, "f", LIST(x), LIST(y));
    remat_builder_op(b, "g", LIST(x), LIST(z));
    remat_builder_op(b, "h", LIST(y, z), NOTHING);
    remat_builder_cost_unit(b, "tick");
    remat_status status = remat_builder_finish(b, &graph);
    remat_builder_free(b);
    THEN(remat_ctx_set(ctx, "offload", 1));
    THEN(remat_ctx_class(ctx, "aten.mm", REMAT_CLASS_FUSIBLE));
    remat_ctx_class_clear(ctx);
    THEN(remat_ctx_class(ctx, "aten.add", REMAT_CLASS_FUSIBLE));
    THEN(use_steps(ctx, graph));
    remat_graph_free(graph);
    return status;
}

static void every_allocation_fails_once(void **state)
{
    (void)state;
    remat_status status = REMAT_E_MEMORY;
    for (size_t k = 0; status != REMAT_OK; k++) {
        heap.calls = heap.live_bytes = 0;
        heap.fail_at = k;
        remat_ctx *ctx = remat_ctx_new(&(remat_alloc){counted_resize, NULL});
        status = ctx ? all(ctx) : REMAT_E_MEMORY;
        if (status != REMAT_OK && status != REMAT_E_MEMORY)
            fail_msg("allocation %zu: status %d: %s", k, (int)status, remat_ctx_error(ctx));
        remat_ctx_free(ctx);
        assert_int_equal(heap.live_bytes, 0);
    }
    assert_true(heap.calls > 20); /* they were counted */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_fails_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
