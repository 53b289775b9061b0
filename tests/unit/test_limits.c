/* test_limits.c: the stack of limits; and that planners, their set-up and the chain verifier keep
 * to work and memory on graphs that are large or oddly shaped. Work is asserted, never time. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "plan/chains/rotor.h"
#include "sim/sequence.h"

/* ---- the stack ---- */

static void shares(void **state)
{
    remat_ctx *ctx = *state;
    OK(ctx, remat_ctx_set(ctx, "work", 1000));
    rm_limits_begin(ctx, 7);
    const int64_t whole = 1000 * RM_WORK_UNIT;
    assert_int_equal(rm_work_left(ctx), whole);
    rm_limit_push(ctx, 0.25, RM_NO_LIMIT);
    assert_int_equal(rm_work_left(ctx), whole / 4);
    rm_limit_push(ctx, 1, 100);
    assert_int_equal(rm_work_left(ctx), 100);
    assert_false(rm_spend(ctx, 99));
    assert_true(rm_spend(ctx, 1));
    assert_int_equal(rm_stopped(ctx), REMAT_WORK);
    rm_limit_pop(ctx);
    assert_int_equal(rm_stopped(ctx), REMAT_DONE); /* the inner one was over, not this one */
    assert_int_equal(rm_work_left(ctx), whole / 4 - 100);
    assert_true(rm_spend(ctx, 10 * whole)); /* too much by far */
    rm_limit_pop(ctx);
    assert_int_equal(rm_stopped(ctx), REMAT_WORK); /* so this one is over as well */
    assert_int_equal(rm_work_left(ctx), 0);
    rm_limit_push(ctx, 1, RM_NO_LIMIT);
    assert_true(rm_is_over(ctx)); /* nothing is left to share */
    rm_limit_pop(ctx);
    assert_int_equal(rm_work_units(ctx), 10 * 1000 + 100 / RM_WORK_UNIT);
    rm_limits_end(ctx);
    assert_false(rm_is_over(ctx)); /* no call is running */
}

static void defaults(void **state)
{
    remat_ctx *ctx = *state;
    rm_limits_begin(ctx, 7);
    assert_int_equal(rm_work_left(ctx), 7);
    assert_int_equal(rm_time_left(ctx), RM_NO_LIMIT);
    rm_limits_end(ctx);
    OK(ctx, remat_ctx_set(ctx, "time_ms", 1));
    rm_limits_begin(ctx, 7); /* a time alone is all that counts */
    assert_int_equal(rm_work_left(ctx), RM_NO_LIMIT);
    rm_limit_push(ctx, 0.5, RM_NO_LIMIT);
    while (!rm_is_late(ctx)) assert_in_range(rm_time_left(ctx), 0, 500000);
    assert_true(rm_is_over(ctx));
    assert_int_equal(rm_stopped(ctx), REMAT_TIME);
    rm_limit_pop(ctx);
    rm_limits_end(ctx);
    OK(ctx, remat_ctx_set(ctx, "work", INT64_MAX)); /* saturates */
    rm_limits_begin(ctx, 7);
    assert_int_equal(rm_work_left(ctx), RM_NO_LIMIT);
    rm_limits_end(ctx);
}

static void stop_flag(void **state)
{
    remat_ctx *ctx = *state;
    rm_limits_begin(ctx, RM_NO_LIMIT);
    rm_limit_push(ctx, 0.5, RM_NO_LIMIT);
    remat_ctx_stop(ctx);
    assert_true(rm_is_over(ctx));
    rm_limit_pop(ctx);
    assert_int_equal(rm_stopped(ctx), REMAT_SIGNAL); /* for all limits */
    assert_false(rm_can_afford(ctx, 1));
    rm_limits_extend(ctx, 1000000000); /* what comes behind the planner is not stopped */
    assert_false(rm_is_late(ctx));
    rm_limits_end(ctx);
    rm_limits_begin(ctx, RM_NO_LIMIT); /* a stop ends one call */
    assert_false(rm_is_over(ctx));
    rm_limits_end(ctx);
}

static void affordable(void **state)
{
    remat_ctx *ctx = *state;
    rm_limits_begin(ctx, 1000);
    assert_true(rm_can_afford(ctx, 1000));
    assert_int_equal(rm_stopped(ctx), REMAT_DONE);
    assert_false(rm_can_afford(ctx, 1001));
    assert_int_equal(rm_stopped(ctx), REMAT_WORK);
    rm_limits_end(ctx);
    OK(ctx, remat_ctx_set(ctx, "time_ms", 1000000));
    rm_limits_begin(ctx, 1000);
    assert_true(rm_can_afford(ctx, RM_SECOND));
    assert_false(rm_can_afford(ctx, 1001.0 * RM_SECOND));
    assert_int_equal(rm_stopped(ctx), REMAT_TIME);
    rm_limits_end(ctx);
}

static void quotas(void **state)
{
    remat_ctx *ctx = *state;
    rm_limits_begin(ctx, 1000);
    const rm_quota whole = rm_quota_begin(ctx, 0.5);
    rm_quota q = rm_quota_part(&whole, 0.25, 1);
    assert_int_equal(q.most_work, 125);
    assert_true(rm_quota_used(&q) == 0);
    q.work = 60;
    assert_true(rm_quota_used(&q) > 0.4 && rm_quota_used(&q) < 0.5);
    q.work = 126;
    assert_true(rm_quota_used(&q) >= 1);
    q.work = 0;
    remat_ctx_stop(ctx);
    assert_true(rm_quota_used(&q) >= 1);
    rm_limits_end(ctx);
}

static void memory(void **state)
{
    remat_ctx *ctx = *state;
    OK(ctx, remat_ctx_set(ctx, "memory_bytes", 1 << 20));
    const rm_mark mark = rm_scratch_mark(ctx);
    rm_limits_begin(ctx, RM_NO_LIMIT);
    char *p;
    OK(ctx, RM_SCRATCH(ctx, p, 900000));
    assert_in_range(rm_memory_left(ctx), 0, (1 << 20) - 900000);
    FAILS(ctx, REMAT_E_MEMORY, RM_SCRATCH(ctx, p, 900000));
    assert_non_null(strstr(remat_ctx_error(ctx), "memory_bytes"));
    assert_true(rm_is_too_much_memory(ctx, REMAT_E_MEMORY));
    assert_false(rm_is_too_much_memory(ctx, REMAT_E_MEMORY)); /* asked once, forgotten */
    rm_scratch_release(ctx, mark);
    OK(ctx, RM_SCRATCH(ctx, p, 900000)); /* what was given back may be taken again */
    rm_scratch_release(ctx, mark);
    rm_limits_end(ctx);
    OK(ctx, RM_SCRATCH(ctx, p, 2000000)); /* no call is running */
    rm_scratch_release(ctx, mark);
}

/* ---- what is counted ---- */

enum { WIDE = 2000 };

/* Ten ops, of which the first has 2,000 outputs. */
static remat_graph *wide_graph(remat_ctx *ctx)
{
    remat_builder *b = remat_builder_new(ctx, "wide");
    uint32_t outputs[WIDE], list[WIDE + 8];
    const uint32_t x = remat_builder_value(b, "x", 4);
    for (uint32_t i = 0; i < WIDE; i++) outputs[i] = remat_builder_value(b, NULL, 1000 + i);
    remat_builder_op(b, "wide", &x, 1, outputs, WIDE);
    for (uint32_t i = 0; i < 8; i++) {
        list[i] = remat_builder_value(b, NULL, 5000);
        remat_builder_op(b, NULL, outputs + i * (WIDE / 8), WIDE / 8, &list[i], 1);
    }
    const uint32_t end = remat_builder_value(b, "end", 10);
    memcpy(list + 8, outputs, sizeof outputs);
    remat_builder_op(b, "last", list, WIDE + 8, &end, 1);
    for (uint32_t op = 0; op < 10; op++) remat_builder_op_set(b, op, REMAT_OP_COST, 5);
    remat_builder_output(b, end);
    remat_graph *graph = NULL;
    OK(ctx, remat_builder_finish(b, &graph));
    remat_builder_free(b);
    return graph;
}

/* An edit costs what it touches, refused, kept or taken back. */
static void edits_count_what_they_touch(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = wide_graph(ctx);
    const rm_mark mark = rm_scratch_mark(ctx);
    rm_normal nm;
    rm_codes codes = {0};
    rm_seq q;
    OK(ctx, rm_normal_of(ctx, graph, &nm));
    OK(ctx, rm_codes_keep_all(ctx, &nm, &codes));
    OK(ctx, rm_seq_new(ctx, &nm, 100, &q));
    assert_true(rm_seq_load(&q, codes.items, codes.n));
    assert_true(q.work >= 2 * WIDE);
    int64_t before = q.work;
    assert_true(rm_seq_insert(&q, q.n_slots - 1, 0)); /* the wide op again */
    assert_true(q.work - before >= WIDE);
    before = q.work;
    rm_seq_undo(&q);
    assert_true(rm_seq_insert(&q, q.n_slots - 1, 0));
    rm_seq_keep(&q);
    assert_true(q.work - before >= 2 * WIDE);
    before = q.work;
    assert_true(rm_seq_slide(&q, q.n_slots - 1, q.n_slots - 2));
    assert_true(q.work - before >= WIDE);
    before = q.work;
    rm_seq_undo(&q);
    assert_false(rm_seq_remove(&q, q.set[1])); /* it runs once */
    rm_seq_free(&q);
    RM_VEC_FREE(&ctx->heap, codes);
    rm_scratch_release(ctx, mark);
    remat_graph_free(graph);
}

/* ---- planners keep to it ---- */

typedef struct size { /* of what is planned */
    int64_t parts;    /* ops and edges, or stages */
    int64_t budget;
} size;

/* What every planner does whatever the limit: some passes over the graph. */
enum { PASSES = 4000 };

static void check_work(const remat_plan *plan, int64_t limit, int64_t parts)
{
    const remat_summary *s = remat_plan_summary(plan);
    const int64_t most = limit + limit / 8 + PASSES * parts / RM_WORK_UNIT;
    if (s->work > most)
        fail_msg("%s on %s: work %lld, allowed %lld, most %lld", s->strategy, s->graph,
                 (long long)s->work, (long long)limit, (long long)most);
}

static bool needs_solver(const char *strategy) { return strncmp(strategy, "checkmate", 9) == 0; }

static void all_strategies(remat_ctx *ctx, const remat_graph *graph, int64_t limit, size z)
{
    OK(ctx, remat_ctx_set(ctx, "work", limit));
    const remat_entry *e;
    for (size_t i = 0; (e = remat_strategy_at(i)); i++) {
        remat_plan *plan = NULL;
        if (needs_solver(e->name)) continue;
        const remat_status status = remat_plan_make(ctx, graph, e->name, z.budget, &plan);
        if (status == REMAT_E_APPLIES) continue;
        if (status != REMAT_OK) fail_msg("%s: %s", e->name, remat_ctx_error(ctx));
        check_work(plan, limit, z.parts);
        remat_plan_free(plan);
    }
}

static size size_of(remat_ctx *ctx, const remat_graph *graph, int percent)
{
    remat_info info = REMAT_INFO_INIT;
    uint32_t n;
    size z = {0};
    OK(ctx, remat_graph_info(ctx, graph, &info));
    for (uint32_t op = 0; op < info.ops; op++) {
        remat_graph_op_in(graph, op, &n);
        z.parts += 1 + n;
        remat_graph_op_out(graph, op, &n);
        z.parts += n;
    }
    z.budget = info.keep_all_peak_bytes / 100 * percent;
    if (z.budget < info.need_bytes) z.budget = info.need_bytes;
    return z;
}

static void wide_ops(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = wide_graph(ctx);
    all_strategies(ctx, graph, 100000, size_of(ctx, graph, 50));
    remat_graph_free(graph);
}

/* 20,000 ops: the proof's set-up is quadratic, and metered. */
static void many_ops(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = NULL;
    OK(ctx, remat_graph_load(ctx, "zoo:random-layered?n=20000&width=20", &graph));
    all_strategies(ctx, graph, 400000, size_of(ctx, graph, 70));
    remat_graph_free(graph);
    OK(ctx, remat_graph_load(ctx, "zoo:gpt?layers=60", &graph)); /* with phases */
    all_strategies(ctx, graph, 100000, size_of(ctx, graph, 50));
    remat_graph_free(graph);
}

/* Thousands of stages: tables are cubic, the schedule of least memory is quadratic. */
static void long_chains(void **state)
{
    remat_ctx *ctx = *state;
    const uint32_t lengths[] = {2000, 9000};
    for (size_t k = 0; k < LENGTH(lengths); k++)
        for (int slots = 0; slots <= 500; slots += 500) {
            const uint32_t n = lengths[k];
            remat_stage *stages = calloc(n + 2, sizeof *stages);
            for (uint32_t i = 0; i < n + 2; i++)
                stages[i] = (remat_stage){
                    .a = 100, .abar = 200, .delta = 100, .tf = i ? 1 : 0, .tb = i ? 2 : 0};
            stages[n + 1].a = stages[n + 1].delta = 0;
            remat_chain *chain = NULL;
            OK(ctx, remat_chain_new(ctx, "long", stages, n, &chain));
            OK(ctx, remat_ctx_set(ctx, "work", 100000));
            OK(ctx, remat_ctx_set(ctx, "slots", slots));
            const char *const names[] = {"auto",     "rotor",     "rotor-float", "revolve",
                                         "periodic", "chen-sqrt", "chen-greedy"};
            for (size_t i = 0; i < LENGTH(names); i++) {
                remat_plan *plan = NULL;
                const remat_status status = remat_chain_plan(ctx, chain, names[i], 20000, &plan);
                if (status == REMAT_E_APPLIES) continue; /* too much memory, and it says so */
                if (status != REMAT_OK) fail_msg("%s: %s", names[i], remat_ctx_error(ctx));
                check_work(plan, 100000, n);
                assert_true(remat_plan_summary(plan)->steps < 40 * n);
                remat_plan_free(plan);
            }
            remat_chain_free(chain);
            free(stages);
        }
}

/* ---- memory ---- */

typedef struct meter {
    size_t now, most;
} meter;

static void *metered(void *user, void *p, size_t old_size, size_t new_size)
{
    meter *m = user;
    void *resized = new_size ? realloc(p, new_size) : (free(p), NULL);
    if (resized || !new_size) m->now += new_size - old_size;
    if (m->now > m->most) m->most = m->now;
    return resized;
}

/* No strategy takes more than it may, and auto does without what would. */
static void memory_of_all_strategies(void **state)
{
    (void)state;
    meter m = {0};
    remat_ctx *ctx = remat_ctx_new(&(remat_alloc){metered, &m});
    remat_graph *graph = NULL;
    OK(ctx, remat_graph_load(ctx, "zoo:gpt?layers=40", &graph));
    const int64_t budget = size_of(ctx, graph, 50).budget, limits[] = {1 << 20, 8 << 20, 64 << 20};
    OK(ctx, remat_ctx_set(ctx, "work", 100000));
    int planned = 0;
    const remat_entry *e;
    for (size_t k = 0; k < LENGTH(limits); k++)
        for (size_t i = 0; (e = remat_strategy_at(i)); i++) {
            remat_plan *plan = NULL;
            if (needs_solver(e->name)) continue;
            OK(ctx, remat_ctx_set(ctx, "memory_bytes", limits[k]));
            const size_t before = m.most = m.now;
            const remat_status status = remat_plan_make(ctx, graph, e->name, budget, &plan);
            if (status != REMAT_OK && status != REMAT_E_APPLIES && status != REMAT_E_MEMORY)
                fail_msg("%s: %s", e->name, remat_ctx_error(ctx));
            if (m.most > before + (size_t)limits[k])
                fail_msg("%s takes %zu bytes", e->name, m.most - before);
            if (limits[k] == 64 << 20 && strcmp(e->name, "auto") == 0)
                assert_int_equal(status, REMAT_OK);
            planned += status == REMAT_OK;
            remat_plan_free(plan);
            assert_int_equal(m.now, before);
        }
    assert_true(planned >= 18);
    remat_graph_free(graph);
    remat_ctx_free(ctx);
    assert_int_equal(m.now, 0);
}

/* There is a plan before its order is put back to the graph's. */
static void memory_for_a_plan_alone(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = NULL;
    remat_plan *plan = NULL;
    OK(ctx, remat_graph_load(ctx, "zoo:gpt", &graph));
    OK(ctx, remat_ctx_set(ctx, "memory_bytes", 1 << 20));
    OK(ctx, remat_plan_make(ctx, graph, "auto", REMAT_BUDGET_NONE, &plan));
    assert_int_equal(remat_plan_summary(plan)->outcome, REMAT_OPTIMAL);
    remat_plan_free(plan);
    remat_graph_free(graph);
}

/* A table that cannot be filled within the work is not even begun: it would have 16 million pairs
 * of stages, and nothing could stop it while it is laid out. */
static void tables_that_are_never_filled(void **state)
{
    enum { STAGES = 4000, MOST_WORK = 1000 };
    remat_ctx *ctx = *state;
    remat_stage *stages = calloc(STAGES + 2, sizeof *stages);
    assert_non_null(stages);
    for (uint32_t l = 0; l <= STAGES + 1; l++)
        stages[l] = (remat_stage){.name = "", .a = 1, .abar = 1, .tf = 1};
    remat_chain *chain = NULL;
    OK(ctx, remat_chain_new(ctx, "long", stages, STAGES, &chain));
    OK(ctx, remat_ctx_set(ctx, "memory_bytes", 1 << 20));
    const int64_t budget = 100;
    const rm_chain_problem p = {.ctx = ctx, .chain = chain, .budgets = &budget, .n_budgets = 1};
    rm_chain_result result = {.any = false};
    bool done = true;
    rm_limits_begin(ctx, RM_NO_LIMIT);
    OK(ctx, rm_rotor_exact(&p, true, MOST_WORK, &result, &done));
    assert_false(done || result.any);
    rm_limits_end(ctx);
    remat_chain_free(chain);
    free(stages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_CONTEXT(shares),
        WITH_CONTEXT(defaults),
        WITH_CONTEXT(stop_flag),
        WITH_CONTEXT(affordable),
        WITH_CONTEXT(quotas),
        WITH_CONTEXT(memory),
        WITH_CONTEXT(wide_ops),
        WITH_CONTEXT(edits_count_what_they_touch),
        WITH_CONTEXT(many_ops),
        WITH_CONTEXT(long_chains),
        WITH_CONTEXT(tables_that_are_never_filled),
        cmocka_unit_test(memory_of_all_strategies),
        WITH_CONTEXT(memory_for_a_plan_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
