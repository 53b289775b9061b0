/* fuzz_input.c: any bytes at all through the readers. What parses must survive a round trip with
 * the same digest, and small graphs must be planned twice alike with plans that verify. One target
 * serves all readers: the content decides which one runs, so the corpus folder it starts from is
 * what tells graph, chain, plan, networkx, DOT, DIMACS and spans apart. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "remat.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) fprintf(stderr, "fuzz: line %d: %s\n", __LINE__, #condition), abort();   \
    } while (0)

typedef struct text {
    char *bytes;
    size_t n;
} text;

static int into_text(void *user, const void *bytes, size_t n)
{
    text *t = user;
    char *larger = realloc(t->bytes, t->n + n + 1);
    REQUIRE(larger);
    memcpy(larger + t->n, bytes, n);
    t->bytes = larger, t->n += n;
    return 0;
}

static void one_honest_line(const remat_ctx *ctx, remat_status status)
{
    REQUIRE(status != REMAT_E_BUG);
    if (status == REMAT_OK) return;
    const char *line = remat_ctx_error(ctx);
    REQUIRE(*line);
    for (; *line; line++) REQUIRE((unsigned char)*line >= 32);
}

static void plan_twice(remat_ctx *ctx, const remat_graph *graph, const char *strategy)
{
    remat_info info = REMAT_INFO_INIT;
    REQUIRE(remat_graph_info(ctx, graph, &info) == REMAT_OK);
    REQUIRE(info.need_bytes <= info.keep_all_peak_bytes);
    remat_plan *plan = NULL, *again = NULL;
    const remat_status status =
        remat_plan_make(ctx, graph, strategy, info.keep_all_peak_bytes / 2, &plan);
    REQUIRE(remat_plan_make(ctx, graph, strategy, info.keep_all_peak_bytes / 2, &again) == status);
    one_honest_line(ctx, status);
    if (status != REMAT_OK) return;
    size_t n, m;
    const remat_step *steps = remat_plan_steps(plan, &n), *others = remat_plan_steps(again, &m);
    REQUIRE(n == m && (n == 0 || memcmp(steps, others, n * sizeof *steps) == 0));
    remat_verdict verdict = REMAT_VERDICT_INIT;
    REQUIRE(remat_plan_verify(ctx, graph, plan, &verdict) == REMAT_OK && verdict.valid);
    remat_program *program = NULL;
    REQUIRE(remat_lower(ctx, graph, steps, n, &program) == REMAT_OK);
    remat_program_free(program), remat_plan_free(plan), remat_plan_free(again);
}

static remat_input *parsed(remat_ctx *ctx, text *t)
{
    remat_input *input = NULL;
    const remat_status status = remat_input_parse(ctx, "again", t->bytes, t->n, &input);
    if (status != REMAT_OK)
        fprintf(stderr, "fuzz: what was written does not parse: %s\n%.*s\n", remat_ctx_error(ctx),
                (int)t->n, t->bytes);
    REQUIRE(status == REMAT_OK);
    free(t->bytes);
    return input;
}

static void graph_round_trip(remat_ctx *ctx, const remat_graph *graph)
{
    text t = {0};
    remat_graph *again = NULL;
    REQUIRE(remat_graph_write(ctx, graph, REMAT_JSON, into_text, &t) == REMAT_OK);
    remat_input *input = parsed(ctx, &t);
    REQUIRE(remat_input_kind(input) == REMAT_KIND_GRAPH);
    const remat_status status = remat_graph_read(ctx, input, &again);
    if (status != REMAT_OK)
        fprintf(stderr, "fuzz: what was written is not read: %s\n", remat_ctx_error(ctx));
    REQUIRE(status == REMAT_OK);
    REQUIRE(strcmp(remat_graph_digest(graph), remat_graph_digest(again)) == 0);
    for (uint32_t i = 0; i < remat_graph_n_ops(graph); i++)
        REQUIRE(remat_graph_op_get(graph, i, REMAT_OP_COST) ==
                remat_graph_op_get(again, i, REMAT_OP_COST));
    remat_graph_free(again), remat_input_free(input);
    t = (text){0};
    REQUIRE(remat_graph_write(ctx, graph, REMAT_DOT, into_text, &t) == REMAT_OK);
    free(t.bytes);
}

static void graph_way(remat_ctx *ctx, const remat_input *input)
{
    remat_graph *graph = NULL, *prepared = NULL;
    const remat_status status = remat_graph_read(ctx, input, &graph);
    one_honest_line(ctx, status);
    if (status != REMAT_OK) return;
    graph_round_trip(ctx, graph);
    remat_graph *larger = NULL;
    const remat_status scaled = remat_graph_read_batch(ctx, input, INT64_C(1) << 33, &larger);
    one_honest_line(ctx, scaled);
    if (scaled == REMAT_OK) graph_round_trip(ctx, larger);
    remat_graph_free(larger);
    if (remat_graph_n_ops(graph) <= 200) {
        plan_twice(ctx, graph, "keep-all");
        plan_twice(ctx, graph, "chen-sqrt");
        plan_twice(ctx, graph, "mincut");
        const remat_status answer = remat_graph_prepare(
            ctx, graph, REMAT_DCE | REMAT_FOLD_IDENTITY | REMAT_NO_ALIAS, "unit", &prepared);
        one_honest_line(ctx, answer);
        if (answer == REMAT_OK) plan_twice(ctx, prepared, "chen-greedy");
    }
    remat_graph_free(prepared), remat_graph_free(graph);
}

static void chain_way(remat_ctx *ctx, const remat_input *input)
{
    remat_chain *chain = NULL, *again = NULL;
    const remat_status status = remat_chain_read(ctx, input, &chain);
    one_honest_line(ctx, status);
    if (status != REMAT_OK) return;
    text t = {0};
    REQUIRE(remat_chain_write(ctx, chain, REMAT_JSON, into_text, &t) == REMAT_OK);
    remat_input *copy = parsed(ctx, &t);
    REQUIRE(remat_chain_read(ctx, copy, &again) == REMAT_OK);
    REQUIRE(remat_chain_n_stages(chain) == remat_chain_n_stages(again));
    for (uint32_t l = 0; l <= remat_chain_n_stages(chain) + 1; l++) {
        const remat_stage *a = remat_chain_stage(chain, l), *b = remat_chain_stage(again, l);
        REQUIRE(a->a == b->a && a->abar == b->abar && a->delta == b->delta && a->tf == b->tf &&
                a->tb == b->tb && a->of == b->of && a->ob == b->ob && a->keep == b->keep);
        REQUIRE(strcmp(a->name, b->name) == 0);
    }
    remat_chain_free(chain), remat_chain_free(again), remat_input_free(copy);
}

static remat_graph *small_graph(remat_ctx *ctx)
{
    remat_builder *b = remat_builder_new(ctx, "small");
    remat_graph *graph = NULL;
    uint32_t last = remat_builder_value(b, "x", 8);
    for (int i = 0; i < 4; i++) {
        const uint32_t v = remat_builder_value(b, NULL, 4);
        remat_builder_op(b, NULL, &last, 1, &v, 1);
        last = v;
    }
    remat_builder_output(b, last);
    REQUIRE(remat_builder_finish(b, &graph) == REMAT_OK);
    remat_builder_free(b);
    return graph;
}

static void plan_way(remat_ctx *ctx, const remat_input *input)
{
    remat_plan *plan = NULL, *again = NULL;
    const remat_status status = remat_plan_read(ctx, input, &plan);
    one_honest_line(ctx, status);
    if (status != REMAT_OK) return;
    text t = {0};
    REQUIRE(remat_plan_write(ctx, plan, REMAT_JSON, into_text, &t) == REMAT_OK);
    remat_input *copy = parsed(ctx, &t);
    REQUIRE(remat_plan_read(ctx, copy, &again) == REMAT_OK);
    size_t n, m;
    const remat_step *steps = remat_plan_steps(plan, &n), *others = remat_plan_steps(again, &m);
    REQUIRE(n == m && (n == 0 || memcmp(steps, others, n * sizeof *steps) == 0));
    remat_graph *graph = small_graph(ctx);
    remat_verdict verdict = REMAT_VERDICT_INIT;
    const remat_status judged = remat_plan_verify(ctx, graph, plan, &verdict);
    one_honest_line(ctx, judged);
    if (judged == REMAT_OK) REQUIRE(verdict.valid || *verdict.reason);
    REQUIRE(remat_verify(ctx, graph, steps, n, 0, &verdict) == REMAT_OK);
    remat_graph_free(graph), remat_plan_free(plan), remat_plan_free(again), remat_input_free(copy);
}

/* The cut that comes back must have the source on one side and the sink on the other: its value is
 * what the flow says, or nothing is. */
static void network_way(remat_ctx *ctx, const remat_input *input)
{
    remat_network *network = NULL;
    const remat_status status = remat_network_read(ctx, input, &network);
    one_honest_line(ctx, status);
    if (status != REMAT_OK) return;
    const uint32_t n = remat_network_n_vertices(network);
    if (n <= 4096) {
        uint8_t sides[2][4096];
        int64_t values[2];
        for (int i = 0; i < 2; i++)
            REQUIRE(remat_network_solve(ctx, network, &values[i], sides[i]) == REMAT_OK);
        REQUIRE(values[0] >= 0 && values[0] == values[1] && memcmp(sides[0], sides[1], n) == 0);
        uint32_t on_source_side = 0;
        for (uint32_t v = 0; v < n; v++) on_source_side += sides[0][v];
        REQUIRE(on_source_side >= 1 && on_source_side < n);
    }
    remat_network_free(network);
}

/* Offsets pass the check, are the same twice, and the outcome is what the numbers say. */
static void spans_way(remat_ctx *ctx, const remat_input *input)
{
    remat_spans *spans = NULL;
    const remat_status status = remat_spans_read(ctx, input, &spans);
    one_honest_line(ctx, status);
    if (status != REMAT_OK) return;
    enum { MOST = 1024 };
    size_t n;
    const remat_span *list = remat_spans_list(spans, &n);
    static int64_t offsets[2][MOST];
    remat_packing p[2] = {REMAT_PACKING_INIT, REMAT_PACKING_INIT};
    REQUIRE(remat_ctx_set(ctx, "work", 20000) == REMAT_OK);
    for (int i = 0; i < 2 && n <= MOST; i++) {
        REQUIRE(remat_spans_place(ctx, list, n, REMAT_BUDGET_NONE, offsets[i], &p[i]) == REMAT_OK);
        REQUIRE(remat_spans_verify(ctx, list, n, offsets[i], 1, p[i].height_bytes) == REMAT_OK);
        REQUIRE(p[i].load_bytes <= p[i].bound_bytes && p[i].bound_bytes <= p[i].height_bytes);
        REQUIRE((p[i].outcome == REMAT_OPTIMAL) == (p[i].bound_bytes == p[i].height_bytes));
    }
    if (n && n <= MOST) REQUIRE(memcmp(offsets[0], offsets[1], n * sizeof **offsets) == 0);
    remat_spans_free(spans);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    remat_ctx *ctx = remat_ctx_new(NULL);
    REQUIRE(ctx);
    REQUIRE(remat_ctx_set(ctx, "max_input_bytes", 1 << 22) == REMAT_OK);
    remat_input *input = NULL;
    const remat_status status = remat_input_parse(ctx, "fuzz", data, size, &input);
    one_honest_line(ctx, status);
    if (status == REMAT_OK) {
        switch (remat_input_kind(input)) {
        case REMAT_KIND_GRAPH: graph_way(ctx, input); break;
        case REMAT_KIND_CHAIN: chain_way(ctx, input); break;
        case REMAT_KIND_PLAN: plan_way(ctx, input); break;
        case REMAT_KIND_NETWORK: network_way(ctx, input); break;
        case REMAT_KIND_SPANS: spans_way(ctx, input); break;
        }
    }
    remat_input_free(input), remat_ctx_free(ctx);
    return 0;
}
