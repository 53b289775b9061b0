/* client.c: a program of a user who has the stable part of the header and nothing else, in C99, C11
 * and C++: a graph is built, planned, scheduled by hand, verified, bounded, written and lowered. */
#include <stdio.h>
#include <string.h>

#include <remat.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if ((call) != REMAT_OK) return printf("%s: %s\n", #call, remat_ctx_error(ctx)), 1;         \
    } while (0)
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) return printf("not so: %s\n", #condition), 1;                            \
    } while (0)

static int count_bytes(void *user, const void *bytes, size_t n_bytes)
{
    (void)bytes;
    *(size_t *)user += n_bytes;
    return 0;
}

/* a (6 bytes) is made by A, waits while W (10 bytes of workspace) runs, and is read by B. */
static remat_status build(remat_ctx *ctx, remat_graph **out)
{
    remat_builder *b = remat_builder_new(ctx, "client");
    if (!b) return REMAT_E_MEMORY;
    const uint32_t x = remat_builder_value(b, "x", 4), a = remat_builder_value(b, "a", 6),
                   w = remat_builder_value(b, "w", 1), y = remat_builder_value(b, "y", 2);
    const uint32_t two[] = {a, w};
    remat_builder_op(b, "A", &x, 1, &a, 1);
    const uint32_t work = remat_builder_op(b, "W", &x, 1, &w, 1);
    remat_builder_op(b, "B", two, 2, &y, 1);
    for (uint32_t op = 0; op < 3; op++) remat_builder_op_set(b, op, REMAT_OP_COST, 5);
    remat_builder_op_set(b, work, REMAT_OP_WORKSPACE, 10);
    remat_builder_output(b, y);
    const remat_status status = remat_builder_finish(b, out);
    remat_builder_free(b);
    return status;
}

static int use(remat_ctx *ctx, const remat_graph *graph)
{
    static const remat_step mine[] = {
        {REMAT_RUN, 0}, {REMAT_RUN, 1}, {REMAT_RUN, 0}, {REMAT_RUN, 2}};
    remat_info info = REMAT_INFO_INIT;
    remat_verdict verdict = REMAT_VERDICT_INIT;
    remat_bound bound = REMAT_BOUND_INIT;
    remat_plan *made = NULL, *given = NULL;
    remat_program *program = NULL;
    int64_t bytes[4];
    size_t written = 0, n_steps, n_statements;
    MUST(remat_graph_info(ctx, graph, &info));
    CHECK(info.ops == 3 && info.keep_all_peak_bytes == 21 && info.need_bytes == 15);
    MUST(remat_plan_make(ctx, graph, "auto", 15, &made));
    CHECK(remat_plan_status(made) == REMAT_OK && remat_plan_summary(made)->peak_bytes == 15);
    MUST(remat_plan_of_steps(ctx, graph, mine, 4, NULL, 15, 0, &given));
    CHECK(remat_plan_summary(given)->cost == 20 && remat_plan_status(given) == REMAT_OK);
    MUST(remat_plan_verify(ctx, graph, given, &verdict));
    CHECK(verdict.valid && verdict.peak_bytes == 15);
    MUST(remat_verify(ctx, graph, mine, 3, 0, &verdict));
    CHECK(!verdict.valid && *verdict.reason && verdict.peak_bytes == REMAT_ABSENT);
    MUST(remat_steps_memory(ctx, graph, mine, 4, bytes));
    CHECK(bytes[0] == 10 && bytes[1] == 15 && bytes[2] == 11 && bytes[3] == 13);
    MUST(remat_bound_find(ctx, graph, 15, &bound));
    CHECK(bound.status == REMAT_OK && bound.cost == 20); /* in this order; another is cheaper: */
    CHECK(strcmp(bound.scope, "fixed-order") == 0 && remat_plan_summary(made)->cost == 15);
    MUST(remat_plan_write(ctx, given, REMAT_JSON, count_bytes, &written));
    CHECK(written > 100);
    const remat_step *steps = remat_plan_steps(given, &n_steps);
    MUST(remat_lower(ctx, graph, steps, n_steps, &program));
    remat_program_statements(program, &n_statements);
    CHECK(n_steps == 4 && n_statements > n_steps);
    verdict.size = 0; /* a struct that says nothing of its size is not touched */
    CHECK(remat_plan_verify(ctx, graph, given, &verdict) == REMAT_E_USAGE);
    CHECK(strstr(remat_ctx_error(ctx), "remat_verdict.size is 0") != NULL);
    remat_program_free(program), remat_plan_free(given), remat_plan_free(made);
    return 0;
}

int main(void)
{
    remat_graph *graph = NULL;
    remat_ctx *ctx = remat_ctx_new(NULL);
    if (!ctx) return 1;
    MUST(build(ctx, &graph));
    const int failed = use(ctx, graph);
    remat_graph_free(graph);
    remat_ctx_free(ctx);
    if (!failed) printf("client of %s: fine\n", remat_version());
    return failed;
}
