/* test_run.c: running a plan: what is refused, how errors of callbacks end it, what poison finds,
 * and the trace. That results are right is for prop_run and the examples to show. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

enum { BYTES = 64, N_OPS = 4, ALIGN = 64 };

/* x -> a -> b -> c, and d of a and c. Each 64 bytes, but c has 60: it leaves 4 bytes to guard. */
static remat_graph *small_graph(remat_ctx *ctx)
{
    remat_builder *b = remat_builder_new(ctx, "small");
    remat_graph *graph = NULL;
    uint32_t v[5];
    for (int i = 0; i < 5; i++) v[i] = remat_builder_value(b, "v\"\n", i == 3 ? 60 : BYTES);
    remat_builder_op(b, "a", LIST(v[0]), LIST(v[1]));
    remat_builder_op(b, "b", LIST(v[1]), LIST(v[2]));
    remat_builder_op(b, "c", LIST(v[2]), LIST(v[3]));
    remat_builder_op(b, "d", LIST(v[1], v[3]), LIST(v[4]));
    remat_builder_op_set(b, 1, REMAT_OP_WORKSPACE, 16);
    remat_builder_output(b, v[4]);
    OK(ctx, remat_builder_finish(b, &graph));
    remat_builder_free(b);
    return graph;
}

/* What the next run does wrong, and at which op. */
typedef struct fault {
    enum { NO_FAULT, FAIL, WRITE_PAST, WRITE_INPUT, WRITE_FREE, WRITE_PAST_WORKSPACE } kind;
    uint32_t op;
    int calls;
    char *free_bytes; /* an address that is not allocated at that op */
} fault;

static int compute(void *user, const remat_call *call)
{
    fault *f = user;
    const size_t bytes = call->op == 2 ? 60 : BYTES;
    f->calls++;
    memset(call->out[0], (int)call->op + 1, bytes);
    if (call->workspace_bytes) memset(call->workspace, 7, (size_t)call->workspace_bytes);
    if (call->op != f->op) return 0;
    if (f->kind == FAIL) return -3;
    if (f->kind == WRITE_PAST) ((char *)call->out[0])[bytes] = 1;
    if (f->kind == WRITE_INPUT) ((char *)call->in[0])[5] ^= 1;
    if (f->kind == WRITE_FREE) *f->free_bytes = 1;
    if (f->kind == WRITE_PAST_WORKSPACE) ((char *)call->workspace)[16] = 1;
    return 0;
}

typedef struct fixture {
    remat_graph *graph;
    remat_plan *plan;
    remat_run *run;
    char *block, *arena, x[BYTES];
} fixture;

static fixture new_fixture(remat_ctx *ctx, const char *schedule)
{
    fixture f = {.graph = small_graph(ctx)};
    remat_step steps[16];
    const size_t n = steps_of(schedule, steps);
    OK(ctx, remat_plan_of_steps(ctx, f.graph, steps, n, NULL, REMAT_BUDGET_NONE, 0, &f.plan));
    OK(ctx, remat_run_new(ctx, f.graph, f.plan, ALIGN, &f.run));
    f.block = malloc((size_t)remat_run_arena_bytes(f.run) + 2 * ALIGN);
    for (f.arena = f.block; (uintptr_t)f.arena % ALIGN;) f.arena++;
    return f;
}

static void bind(remat_ctx *ctx, fixture *f)
{
    OK(ctx, remat_run_arena(ctx, f->run, f->arena, remat_run_arena_bytes(f->run)));
    OK(ctx, remat_run_resident(ctx, f->run, 0, f->x));
}

static void free_fixture(fixture *f)
{
    remat_run_free(f->run), remat_plan_free(f->plan), remat_graph_free(f->graph);
    free(f->block);
}

static void mistakes_are_refused(void **state)
{
    remat_ctx *ctx = *state;
    fixture f = new_fixture(ctx, "0 1 2 3");
    fault none = {NO_FAULT};
    remat_hooks hooks = {sizeof hooks, &none, compute, NULL, NULL};
    const int64_t bytes = remat_run_arena_bytes(f.run);
    FAILS(ctx, REMAT_E_USAGE, remat_run_steps(ctx, f.run, &hooks)); /* no arena */
    FAILS(ctx, REMAT_E_USAGE, remat_run_arena(ctx, f.run, f.arena, bytes - 1));
    FAILS(ctx, REMAT_E_USAGE, remat_run_arena(ctx, f.run, f.arena + 8, bytes));
    FAILS(ctx, REMAT_E_USAGE, remat_run_arena(ctx, f.run, NULL, bytes));
    OK(ctx, remat_run_arena(ctx, f.run, f.arena, bytes));
    FAILS(ctx, REMAT_E_USAGE, remat_run_steps(ctx, f.run, &hooks)); /* no x */
    assert_non_null(strstr(remat_ctx_error(ctx), "resident value 0"));
    assert_null(remat_run_output(f.run, 0));
    FAILS(ctx, REMAT_E_USAGE, remat_run_resident(ctx, f.run, 1, f.x)); /* an op makes it */
    FAILS(ctx, REMAT_E_USAGE, remat_run_resident(ctx, f.run, 99, f.x));
    OK(ctx, remat_run_resident(ctx, f.run, 0, f.x));
    hooks.compute = NULL;
    FAILS(ctx, REMAT_E_USAGE, remat_run_steps(ctx, f.run, &hooks));
    hooks.compute = compute;
    hooks.size = 1;
    FAILS(ctx, REMAT_E_USAGE, remat_run_steps(ctx, f.run, &hooks));
    assert_int_equal(none.calls, 0);
    hooks.size = sizeof hooks;
    OK(ctx, remat_run_steps(ctx, f.run, &hooks));
    assert_int_equal(none.calls, N_OPS);
    free_fixture(&f);
}

static void plans_of_other_graphs_are_refused(void **state)
{
    remat_ctx *ctx = *state;
    fixture f = new_fixture(ctx, "0 1 2 3");
    remat_graph *other = NULL;
    remat_plan *keep_all = NULL;
    remat_run *run = NULL;
    OK(ctx, remat_graph_load(ctx, "zoo:chain?n=3", &other));
    OK(ctx, remat_plan_make(ctx, other, "keep-all", REMAT_BUDGET_NONE, &keep_all));
    FAILS(ctx, REMAT_E_PLAN, remat_run_new(ctx, f.graph, keep_all, 0, &run));
    FAILS(ctx, REMAT_E_USAGE, remat_run_new(ctx, f.graph, f.plan, 3, &run));
    remat_plan_free(keep_all), remat_graph_free(other);
    free_fixture(&f);
}

static void a_failing_function_ends_the_run(void **state)
{
    remat_ctx *ctx = *state;
    fixture f = new_fixture(ctx, "0 1 2 0 3");
    bind(ctx, &f);
    fault wrong = {FAIL, 2, 0, NULL};
    const remat_hooks hooks = {sizeof hooks, &wrong, compute, NULL, NULL};
    FAILS(ctx, REMAT_E_CALLBACK, remat_run_steps(ctx, f.run, &hooks));
    assert_string_equal(remat_ctx_error(ctx), "step 2, op 2: the function answers -3");
    assert_int_equal(wrong.calls, 3);
    wrong.kind = NO_FAULT;
    OK(ctx, remat_run_steps(ctx, f.run, &hooks)); /* and it can be run again */
    free_fixture(&f);
}

/* The first byte of the arena that is in no register and no workspace at the step. */
static char *free_byte_at(const fixture *f, int64_t step)
{
    size_t n;
    const remat_placement *p = remat_run_placement(f->run);
    const remat_span *spans = remat_placement_spans(p, &n);
    int64_t at = 0;
    for (size_t again = 0; again < n; again++)
        for (size_t i = 0; i < n; i++) {
            const int64_t offset = remat_placement_register(p, (uint32_t)i);
            if (offset != REMAT_ABSENT && spans[i].begin <= step && step < spans[i].end &&
                at >= offset && at < offset + spans[i].bytes)
                at = offset + spans[i].bytes;
        }
    assert_true(at < remat_run_arena_bytes(f->run));
    return f->arena + at;
}

static void poison_finds_the_step(void **state)
{
    remat_ctx *ctx = *state;
    static const struct {
        fault wrong;
        const char *says;
    } cases[] = {
        {{WRITE_PAST, 2, 0, NULL}, "step 2, op 2: it has written where nothing"},
        {{WRITE_INPUT, 2, 0, NULL}, "step 2, op 2: it has written into register 1"},
        {{WRITE_FREE, 0, 0, NULL}, "step 0, op 0: it has written where nothing"},
        {{WRITE_PAST_WORKSPACE, 1, 0, NULL}, "step 1, op 1: it has written where nothing"}};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        fixture f = new_fixture(ctx, "0 1 2 0 3");
        fault wrong = cases[i].wrong;
        bind(ctx, &f);
        if (wrong.kind == WRITE_FREE) wrong.free_bytes = free_byte_at(&f, 0);
        const remat_hooks hooks = {sizeof hooks, &wrong, compute, NULL, NULL};
        OK(ctx, remat_run_steps(ctx, f.run, &hooks)); /* nobody looks */
        remat_run_modes(f.run, REMAT_RUN_POISON);
        FAILS(ctx, REMAT_E_CALLBACK, remat_run_steps(ctx, f.run, &hooks));
        if (!strstr(remat_ctx_error(ctx), cases[i].says))
            fail_msg("'%s' is not in '%s'", cases[i].says, remat_ctx_error(ctx));
        wrong.kind = NO_FAULT;
        OK(ctx, remat_run_steps(ctx, f.run, &hooks));
        assert_int_equal(*(char *)remat_run_output(f.run, 0), 4);
        free_fixture(&f);
    }
}

static int refuse(void *user, const void *bytes, size_t n)
{
    (void)user, (void)bytes, (void)n;
    return 1;
}

static void the_trace_has_every_step(void **state)
{
    remat_ctx *ctx = *state;
    text t = {0};
    fixture f = new_fixture(ctx, "0 1 2 0 3");
    fault none = {NO_FAULT};
    const remat_hooks hooks = {sizeof hooks, &none, compute, NULL, NULL};
    bind(ctx, &f);
    OK(ctx, remat_run_trace_write(ctx, f.run, f.graph, into_text, &t));
    assert_null(strstr(t.bytes, "\"ph\""));
    remat_run_modes(f.run, REMAT_RUN_TRACE);
    OK(ctx, remat_run_steps(ctx, f.run, &hooks));
    t.n = 0;
    OK(ctx, remat_run_trace_write(ctx, f.run, f.graph, into_text, &t));
    int events = 0;
    for (const char *p = t.bytes; (p = strstr(p, "\"ph\":\"X\"")); p++) events++;
    assert_int_equal(events, 5);
    assert_non_null(strstr(t.bytes, "\"args\":{\"step\":4,\"index\":3}"));
    free(t.bytes);
    FAILS(ctx, REMAT_E_IO, remat_run_trace_write(ctx, f.run, f.graph, refuse, NULL));
    free_fixture(&f);
}

static void nothing_runs_in_nothing(void **state)
{
    remat_ctx *ctx = *state;
    remat_builder *b = remat_builder_new(ctx, "empty");
    remat_graph *graph = NULL;
    remat_plan *plan = NULL;
    remat_run *run = NULL;
    const remat_hooks hooks = REMAT_HOOKS_INIT;
    OK(ctx, remat_builder_finish(b, &graph));
    OK(ctx, remat_plan_make(ctx, graph, "keep-all", REMAT_BUDGET_NONE, &plan));
    OK(ctx, remat_run_new(ctx, graph, plan, 0, &run));
    assert_int_equal(remat_run_arena_bytes(run), 0);
    remat_run_modes(run, REMAT_RUN_POISON | REMAT_RUN_TRACE);
    OK(ctx, remat_run_steps(ctx, run, &hooks));
    OK(ctx, remat_run_arena(ctx, run, NULL, 0));
    OK(ctx, remat_run_steps(ctx, run, &hooks));
    remat_run_free(run), remat_plan_free(plan), remat_graph_free(graph), remat_builder_free(b);
    remat_run_free(NULL), remat_placement_free(NULL), remat_spans_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(mistakes_are_refused),
                                       WITH_CONTEXT(plans_of_other_graphs_are_refused),
                                       WITH_CONTEXT(a_failing_function_ends_the_run),
                                       WITH_CONTEXT(poison_finds_the_step),
                                       WITH_CONTEXT(the_trace_has_every_step),
                                       WITH_CONTEXT(nothing_runs_in_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
