/* test_files.c: inputs of every kind through the API: what a chain and a plan hold, the parts of an
 * error, limits, sinks that fail, callbacks. */
#include "support.h"

#include <stdio.h>
#include <string.h>

static remat_input *parsed(remat_ctx *ctx, const char *text)
{
    remat_input *input = NULL;
    OK(ctx, remat_input_parse(ctx, "text", text, strlen(text), &input));
    return input;
}

static void count_lines(void *user, const char *line)
{
    assert_true(*line != '\0' && !strchr(line, '\n'));
    ++*(int *)user;
}

static void a_chain(void **state)
{
    remat_ctx *ctx = *state;
    int warnings = 0;
    remat_ctx_on_warning(ctx, count_lines, &warnings);
    remat_input *input =
        parsed(ctx, "{\"format\":\"remat-chain\",\"version\":1,\"name\":\"toy\",\"input\":{\"a\":8}"
                    ",\"stages\":[{\"name\":\"one\",\"a\":5,\"abar\":7,\"tf\":1,\"tb\":2,"
                    "\"of\":3,\"ob\":4,\"keep\":6},{\"a\":9,\"abar\":2,\"delta\":1,\"tf\":0,\"tb\":"
                    "0},{\"a\":9,\"abar\":2,\"tf\":0,\"tb\":0}]}");
    assert_int_equal(remat_input_kind(input), REMAT_KIND_CHAIN);
    remat_chain *chain = NULL;
    OK(ctx, remat_chain_read(ctx, input, &chain));
    assert_int_equal(warnings, 1); /* abar below a, twice, said once */
    assert_string_equal(remat_chain_name(chain), "toy");
    assert_int_equal(remat_chain_n_stages(chain), 3);
    const remat_stage *s = remat_chain_stage(chain, 0);
    assert_true(s->a == 8 && s->delta == 8);
    s = remat_chain_stage(chain, 1);
    assert_string_equal(s->name, "one");
    assert_true(s->a == 5 && s->abar == 7 && s->delta == 5 && s->tf == 1 && s->tb == 2 &&
                s->of == 3 && s->ob == 4 && s->keep == 6);
    s = remat_chain_stage(chain, 2);
    assert_true(s->a == 9 && s->abar == 2 && s->delta == 1 && s->of == 0 && s->keep == 0);
    s = remat_chain_stage(chain, 4); /* the loss, always there */
    assert_true(s && s->a == 0 && s->delta == 0 && s->abar == 0 && s->tf == 0 && s->tb == 0);
    assert_null(remat_chain_stage(chain, 5));
    remat_graph *graph = NULL;
    FAILS(ctx, REMAT_E_INPUT, remat_graph_read(ctx, input, &graph)); /* not a graph */
    assert_null(graph);
    remat_chain_free(chain), remat_input_free(input);
}

#define DIGEST "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void a_plan(void **state)
{
    remat_ctx *ctx = *state;
    remat_input *input =
        parsed(ctx, "{\"format\":\"remat-plan\",\"version\":1,\"kind\":\"graph\",\"graph\":{"
                    "\"digest\":\"" DIGEST "\"},\"schedule\":[3,{\"offload\":1},{\"fetch\":1},0]}");
    remat_plan *plan = NULL;
    OK(ctx, remat_plan_read(ctx, input, &plan));
    size_t n;
    const remat_step *steps = remat_plan_steps(plan, &n);
    assert_int_equal(n, 4);
    assert_true(steps[0].kind == REMAT_RUN && steps[0].index == 3 &&
                steps[1].kind == REMAT_OFFLOAD && steps[1].index == 1 &&
                steps[2].kind == REMAT_FETCH);
    const remat_summary *s = remat_plan_summary(plan);
    assert_string_equal(s->digest, DIGEST);
    assert_true(s->peak_bytes == REMAT_ABSENT && s->cost == REMAT_ABSENT &&
                s->bound_cost == REMAT_ABSENT && s->keep_all_cost == REMAT_ABSENT);
    assert_string_equal(s->bound_scope, "");
    remat_plan_free(plan), remat_input_free(input);

    static const char *const bad_digests[] = {"", "sha256:", "sha256:0123",
                                              "md5:0123456789abcdef0123456789abcdef", DIGEST "0"};
    for (size_t i = 0; i < LENGTH(bad_digests); i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "{\"format\":\"remat-plan\",\"version\":1,\"kind\":\"graph\",\"graph\":{"
                 "\"digest\":\"%s\"},\"schedule\":[]}",
                 bad_digests[i]);
        input = parsed(ctx, text);
        plan = NULL;
        FAILS(ctx, REMAT_E_INPUT, remat_plan_read(ctx, input, &plan));
        assert_null(plan);
        remat_input_free(input);
    }
}

static uint32_t repeats_in(remat_ctx *ctx, const char *kind, const char *schedule)
{
    char text[400];
    snprintf(text, sizeof text,
             "{\"format\":\"remat-plan\",\"version\":1,\"kind\":\"%s\",\"graph\":{"
             "\"digest\":\"" DIGEST "\"},\"schedule\":[%s]}",
             kind, schedule);
    remat_input *input = parsed(ctx, text);
    remat_plan *plan = NULL;
    OK(ctx, remat_plan_read(ctx, input, &plan));
    const uint32_t n = remat_plan_summary(plan)->recomputed_ops;
    remat_plan_free(plan), remat_input_free(input);
    return n;
}

static void what_runs_more_than_once(void **state)
{
    remat_ctx *ctx = *state;
    assert_int_equal(repeats_in(ctx, "graph", ""), 0);
    assert_int_equal(repeats_in(ctx, "graph", "0,1,2"), 0);
    assert_int_equal(repeats_in(ctx, "graph", "0,1,0,2,0,2,0"), 2);
    assert_int_equal(repeats_in(ctx, "graph", "4294967294,0,4294967294"), 1); /* whatever that is */
    assert_int_equal(repeats_in(ctx, "graph", "0,{\"offload\":0},{\"fetch\":0},{\"fetch\":0}"), 0);
    assert_int_equal(repeats_in(ctx, "chain", "[\"Fck\",1],[\"Fall\",1],[\"B\",1],[\"B\",1]"), 1);
}

typedef struct text_of_file {
    char text[2000];
    size_t n;
} text_of_file;

static int take_text(void *user, const void *bytes, size_t n_bytes)
{
    text_of_file *to = user;
    assert_true(to->n + n_bytes < sizeof to->text);
    memcpy(to->text + to->n, bytes, n_bytes);
    to->n += n_bytes;
    to->text[to->n] = '\0';
    return 0;
}

/* Whether a plan fits is what its peak says, or else the file's word; without either it is not
 * known, and that is not OK. Writing it again claims no more than the file did. */
static void a_plan_fits_by_what_is_known(void **state)
{
    remat_ctx *ctx = *state;
    static const struct {
        const char *members;
        remat_status status;
        const char *written; /* NULL: nothing about it */
    } rows[] = {
        {"", REMAT_OK, "\"within_budget\":true"}, /* no budget */
        {"\"budget_bytes\":5,\"peak_bytes\":5,", REMAT_OK, "\"within_budget\":true"},
        {"\"budget_bytes\":5,\"peak_bytes\":6,", REMAT_E_NOT_FOUND, "\"within_budget\":false"},
        {"\"budget_bytes\":5,\"peak_bytes\":6,\"outcome\":\"infeasible\",", REMAT_E_INFEASIBLE,
         "\"within_budget\":false"},
        {"\"budget_bytes\":5,\"peak_bytes\":5,\"outcome\":\"infeasible\",", REMAT_OK,
         "\"within_budget\":true"},
        {"\"budget_bytes\":5,", REMAT_E_NOT_FOUND, NULL},
        {"\"budget_bytes\":5,\"peak_bytes\":null,", REMAT_E_NOT_FOUND, NULL},
        {"\"budget_bytes\":0,\"outcome\":\"infeasible\",", REMAT_E_INFEASIBLE, NULL},
        {"\"budget_bytes\":5,\"within_budget\":true,", REMAT_OK, "\"within_budget\":true"},
        {"\"budget_bytes\":5,\"within_budget\":false,", REMAT_E_NOT_FOUND,
         "\"within_budget\":false"},
        {"\"budget_bytes\":5,\"peak_bytes\":6,\"within_budget\":true,", REMAT_E_NOT_FOUND,
         "\"within_budget\":true"}, /* the file's claim stays, for the verifier to refuse */
    };
    for (size_t i = 0; i < LENGTH(rows); i++) {
        char text[400];
        text_of_file written = {.n = 0};
        snprintf(text, sizeof text,
                 "{\"format\":\"remat-plan\",\"version\":1,\"kind\":\"graph\",%s\"graph\":{"
                 "\"digest\":\"" DIGEST "\"},\"schedule\":[0]}",
                 rows[i].members);
        remat_input *input = parsed(ctx, text);
        remat_plan *plan = NULL;
        OK(ctx, remat_plan_read(ctx, input, &plan));
        if (remat_plan_status(plan) != rows[i].status)
            fail_msg("%s: status %d", rows[i].members, (int)remat_plan_status(plan));
        assert_int_equal(remat_plan_summary(plan)->within_budget, rows[i].status == REMAT_OK);
        OK(ctx, remat_plan_write(ctx, plan, REMAT_JSON, take_text, &written));
        const char *found = strstr(written.text, "\"within_budget\"");
        if (!rows[i].written) assert_null(found);
        else assert_true(found && strncmp(found, rows[i].written, strlen(rows[i].written)) == 0);
        remat_plan_free(plan), remat_input_free(input);
    }
}

static void parts_of_an_error(void **state)
{
    remat_ctx *ctx = *state;
    assert_string_equal(remat_ctx_error(ctx), "");
    assert_string_equal(remat_ctx_error_place(ctx), "");
    remat_input *input = parsed(ctx, "{\"format\":\"remat-graph\",\"version\":1,\"values\":[{"
                                     "\"size\":1}],\"nodes\":[{\"in\":[0,7],\"out\":[]}]}");
    remat_graph *graph = (remat_graph *)ctx; /* anything, to see that it stays */
    FAILS(ctx, REMAT_E_INPUT, remat_graph_read(ctx, input, &graph));
    assert_ptr_equal(graph, ctx);
    assert_string_equal(remat_ctx_error_file(ctx), "text");
    assert_string_equal(remat_ctx_error_place(ctx), "nodes[0].in[1]");
    assert_non_null(strstr(remat_ctx_error_reason(ctx), "7"));
    assert_non_null(strstr(remat_ctx_error(ctx), "text: nodes[0].in[1]: "));
    remat_input_free(input);
    input = NULL;
    FAILS(ctx, REMAT_E_INPUT, remat_input_parse(ctx, "worse", "{\n  \"a\": ]", 10, &input));
    assert_string_equal(remat_ctx_error_file(ctx), "worse");
    assert_non_null(strstr(remat_ctx_error_place(ctx), "line 2"));
    FAILS(ctx, REMAT_E_IO, remat_input_open(ctx, "/no/such/file", &input));
    assert_string_equal(remat_ctx_error_file(ctx), "/no/such/file");
    assert_string_equal(remat_ctx_error_reason(ctx), "cannot open it: No such file or directory");
    FAILS(ctx, REMAT_E_USAGE,
          remat_graph_load(ctx, "zoo:soup",
                           &graph)); /* an unknown model may only show when it is built */
    assert_null(input);
    char name[4000]; /* a long name is cut, not overrun */
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    FAILS(ctx, REMAT_E_INPUT, remat_input_parse(ctx, name, "", 0, &input));
    assert_true(strlen(remat_ctx_error(ctx)) < 1000);
}

static void a_limit_on_size(void **state)
{
    remat_ctx *ctx = *state;
    static const char text[] =
        "{\"format\":\"remat-graph\",\"version\":1,\"values\":[],\"nodes\":[]}";
    remat_input *input = NULL;
    OK(ctx, remat_ctx_set(ctx, "max_input_bytes", (int64_t)sizeof text - 2));
    FAILS(ctx, REMAT_E_INPUT, remat_input_parse(ctx, "text", text, sizeof text - 1, &input));
    OK(ctx, remat_ctx_set(ctx, "max_input_bytes", (int64_t)sizeof text - 1));
    OK(ctx, remat_input_parse(ctx, "text", text, sizeof text - 1, &input));
    remat_input_free(input);
}

typedef struct sink_state {
    int calls, allowed;
} sink_state;

static int failing_sink(void *user, const void *bytes, size_t n)
{
    sink_state *s = user;
    (void)bytes, (void)n;
    return s->calls++ >= s->allowed;
}

static void sinks_that_fail(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = NULL;
    remat_plan *plan = NULL;
    OK(ctx, remat_graph_load(ctx, "zoo:mlp", &graph));
    OK(ctx, remat_plan_make(ctx, graph, "keep-all", REMAT_BUDGET_NONE, &plan));
    for (int allowed = 0; allowed < 2; allowed++) {
        for (int format = REMAT_JSON; format <= REMAT_DOT; format++) {
            sink_state sink = {0, allowed};
            const remat_status status =
                remat_graph_write(ctx, graph, (remat_format)format, failing_sink, &sink);
            assert_int_equal(status, sink.calls > allowed ? REMAT_E_IO : REMAT_OK);
            assert_int_equal(sink.calls > allowed ? sink.calls : allowed + 1,
                             allowed + 1); /* it stops at once */
        }
        sink_state sink = {0, allowed};
        const remat_status status = remat_plan_write(ctx, plan, REMAT_JSON, failing_sink, &sink);
        assert_int_equal(status, sink.calls > allowed ? REMAT_E_IO : REMAT_OK);
    }
    FAILS(ctx, REMAT_E_USAGE,
          remat_plan_write(ctx, plan, REMAT_DOT, failing_sink,
                           &(sink_state){0, 9})); /* plans have no DOT form */
    remat_plan_free(plan), remat_graph_free(graph);
}

typedef struct seen {
    int calls, last;
} seen;

static void on_progress(void *user, const remat_progress *p)
{
    seen *s = user;
    assert_true(p->permille >= 0 && p->permille <= 1000 && *p->strategy);
    s->calls++, s->last = p->permille;
}

static void progress_and_stop(void **state)
{
    remat_ctx *ctx = *state;
    remat_graph *graph = NULL;
    remat_plan *plan = NULL;
    seen s = {0, -1};
    OK(ctx, remat_graph_load(ctx, "zoo:resnet18", &graph));
    remat_ctx_on_progress(ctx, on_progress, &s);
    OK(ctx, remat_plan_make(ctx, graph, "chen-greedy", REMAT_BUDGET_MIN, &plan));
    assert_int_equal(remat_plan_summary(plan)->stopped, REMAT_DONE);
    assert_true(s.calls > 0);
    remat_plan_free(plan);
    OK(ctx, remat_ctx_set(ctx, "work", 1)); /* a plan comes back all the same */
    OK(ctx, remat_plan_make(ctx, graph, "chen-greedy", REMAT_BUDGET_MIN, &plan));
    assert_int_equal(remat_plan_summary(plan)->stopped, REMAT_WORK);
    remat_plan_free(plan);

    OK(ctx, remat_ctx_set(ctx, "work", 0));
    const remat_stopped expected[] = {REMAT_SIGNAL, REMAT_DONE, REMAT_DONE};
    for (int i = 0; i < 3; i++) {
        if (i < 2) remat_ctx_stop(ctx); /* the next call obeys it, unless it is taken back */
        if (i == 1) remat_ctx_resume(ctx);
        OK(ctx, remat_plan_make(ctx, graph, "chen-greedy", REMAT_BUDGET_MIN, &plan));
        assert_int_equal(remat_plan_summary(plan)->stopped, expected[i]);
        remat_plan_free(plan);
    }
    remat_graph_free(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(a_chain),
                                       WITH_CONTEXT(a_plan),
                                       WITH_CONTEXT(what_runs_more_than_once),
                                       WITH_CONTEXT(a_plan_fits_by_what_is_known),
                                       WITH_CONTEXT(parts_of_an_error),
                                       WITH_CONTEXT(a_limit_on_size),
                                       WITH_CONTEXT(sinks_that_fail),
                                       WITH_CONTEXT(progress_and_stop)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
