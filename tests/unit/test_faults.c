/* test_faults.c: every allocation of reading, preparing, planning, verifying, lowering and writing
 * fails once, in turn. Each time the answer is REMAT_E_MEMORY and nothing leaks; when no allocation
 * is left to fail, it is REMAT_OK. All of the library's memory comes through its hook, zlib's and
 * the JSON tree's too. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a heap that counts and fails on demand; each block carries its size, so that old sizes can
 * be checked ---- */

typedef union header {
    size_t size;
    max_align_t align;
} header;
static struct {
    size_t calls, fail_at, live_bytes;
    bool failed;
} heap;

static bool refuses(void)
{
    if (heap.calls++ != heap.fail_at) return false;
    heap.failed = true;
    return true;
}

static void *counted_resize(void *user, void *p, size_t old_size, size_t new_size)
{
    (void)user;
    header *block = p ? (header *)p - 1 : NULL;
    if (block && block->size != old_size)
        fail_msg("a block of %zu bytes is handed back as one of %zu", block->size, old_size);
    if (!block && old_size) fail_msg("no block, yet %zu bytes", old_size);
    if (new_size == 0) {
        heap.live_bytes -= old_size;
        free(block);
        return NULL;
    }
    if (refuses()) return NULL;
    header *moved =
        malloc(sizeof *moved + new_size); /* always moves, so that stale pointers show */
    if (!moved) abort();
    moved->size = new_size;
    if (block) memcpy(moved + 1, p, old_size < new_size ? old_size : new_size), free(block);
    heap.live_bytes += new_size - old_size;
    return moved + 1;
}

static int discard(void *user, const void *bytes, size_t n)
{
    (void)user, (void)bytes, (void)n;
    return 0;
}

/* ---- the whole way of a graph, a chain and a plan through the library ---- */

#define THEN(call)                                                                                 \
    if (status == REMAT_OK) status = (call)

/* Strategies that run the same code as another one, which is enough here: every allocation costs a
 * whole run. */
static bool is_twin(const char *strategy, bool chain)
{
    const bool baseline = strncmp(strategy, "ap-", 3) == 0 || strncmp(strategy, "lin-", 4) == 0;
    return baseline &&
           (chain || strcmp(strategy, "ap-sqrt") == 0 || strcmp(strategy, "lin-greedy") == 0);
}

static remat_status use_plan(remat_ctx *ctx, const remat_graph *graph, const char *strategy)
{
    remat_plan *plan = NULL;
    remat_program *program = NULL;
    remat_verdict verdict = REMAT_VERDICT_INIT;
    remat_status status = remat_plan_make(ctx, graph, strategy, REMAT_BUDGET_MIN, &plan);
    if (status == REMAT_E_APPLIES)
        return REMAT_OK; /* said of graphs without phases; memory is not the reason */
    THEN(remat_plan_verify(ctx, graph, plan, &verdict));
    if (status == REMAT_OK) assert_true(verdict.valid);
    size_t n = 0;
    const remat_step *steps = status == REMAT_OK ? remat_plan_steps(plan, &n) : NULL;
    THEN(remat_verify(ctx, graph, steps, n, 0, &verdict));
    THEN(remat_lower(ctx, graph, steps, n, &program));
    remat_graph *unrolled = NULL;
    THEN(remat_unroll(ctx, graph, steps, n, &unrolled));
    if (status == REMAT_E_APPLIES) status = REMAT_OK; /* it has transfers */
    remat_graph_free(unrolled);
    THEN(remat_plan_write(ctx, plan, REMAT_JSON_GZ, discard, NULL));
    remat_program_free(program), remat_plan_free(plan);
    return status;
}

static remat_status use_fusion(remat_ctx *ctx, const remat_graph *graph)
{
    remat_graph *kernels = NULL, *program = NULL;
    remat_plan *plan = NULL;
    remat_fusion fusion = REMAT_FUSION_INIT;
    uint32_t *group = calloc(remat_graph_n_ops(graph) + 1, sizeof *group), n_groups;
    remat_moved *moved = calloc(remat_graph_n_ops(graph) + 1, sizeof *moved);
    assert_true(group && moved);
    remat_status status = remat_graph_kernels(ctx, graph, group, moved, &n_groups);
    free(group), free(moved);
    THEN(remat_graph_prepare(ctx, graph, REMAT_FUSE | REMAT_DCE, "node", &kernels));
    THEN(remat_plan_make(ctx, graph, "keep-all", REMAT_BUDGET_NONE, &plan));
    size_t n = 0;
    const remat_step *steps = status == REMAT_OK ? remat_plan_steps(plan, &n) : NULL;
    THEN(remat_fuse(ctx, graph, steps, n, &fusion, &program));
    remat_plan_free(plan), remat_graph_free(kernels), remat_graph_free(program);
    return status;
}

static remat_status use_graph(remat_ctx *ctx, const remat_graph *graph)
{
    remat_graph *prepared = NULL;
    remat_info info = REMAT_INFO_INIT;
    uint32_t values[8], n;
    remat_status status = remat_graph_info(ctx, graph, &info);
    THEN(remat_graph_need_values(ctx, graph, values, 8, &n));
    THEN(remat_graph_prepare(ctx, graph, REMAT_DCE | REMAT_FOLD_IDENTITY | REMAT_REPLAY_RANDOM,
                             "unit", &prepared));
    for (size_t i = 0; remat_strategy_at(i); i++) {
        const char *name = remat_strategy_at(i)->name;
        const bool anneals = strncmp(name, "fastsa", 6) == 0 || strcmp(name, "auto") == 0 ||
                             strcmp(name, "exact") == 0;
        THEN(remat_ctx_set(ctx, "work", anneals ? 3000 : 0));
        THEN(remat_ctx_set(ctx, "offload", 1));
        if (!is_twin(remat_strategy_at(i)->name, false))
            THEN(use_plan(ctx, prepared, remat_strategy_at(i)->name));
    }
    THEN(use_fusion(ctx, graph));
    THEN(remat_graph_write(ctx, graph, REMAT_JSON, discard, NULL));
    THEN(remat_graph_write(ctx, prepared, REMAT_JSON_GZ, discard, NULL));
    THEN(remat_graph_write(ctx, graph, REMAT_DOT, discard, NULL));
    remat_graph_free(prepared);
    return status;
}

static remat_status use_chain(remat_ctx *ctx, const remat_chain *chain)
{
    remat_chain *copy = NULL;
    remat_status status = remat_chain_new(ctx, "copy", remat_chain_stage(chain, 0),
                                          remat_chain_n_stages(chain), &copy);
    for (size_t i = 0; remat_strategy_at(i) && status == REMAT_OK; i++)
        for (int slots = is_twin(remat_strategy_at(i)->name, true) ? 21 : 0; slots <= 20;
             slots += 20) { /* exact, and with slots */
            const int64_t budgets[] = {0, 12, 20, 100};
            remat_plan *plans[5] = {NULL};
            remat_verdict verdict = REMAT_VERDICT_INIT;
            THEN(remat_ctx_set(ctx, "slots", slots));
            THEN(remat_chain_plans(ctx, copy, remat_strategy_at(i)->name, budgets, 4, plans));
            if (status == REMAT_E_APPLIES) { /* a strategy for graphs; memory is not the reason */
                status = REMAT_OK;
                continue;
            }
            THEN(remat_chain_plan(ctx, copy, remat_strategy_at(i)->name, REMAT_BUDGET_MIN,
                                  &plans[4]));
            for (size_t k = 0; k < 5; k++) {
                size_t n = 0;
                THEN(remat_chain_plan_verify(ctx, chain, plans[k], &verdict));
                const remat_step *steps =
                    status == REMAT_OK ? remat_plan_steps(plans[k], &n) : NULL;
                THEN(remat_chain_verify(ctx, chain, steps, n, &verdict));
                if (status == REMAT_OK) assert_true(verdict.valid);
                THEN(remat_plan_write(ctx, plans[k], REMAT_JSON, discard, NULL));
            }
            for (size_t k = 0; k < 5; k++) remat_plan_free(plans[k]);
        }
    remat_chain_free(copy);
    return status;
}

static remat_status use_input(remat_ctx *ctx, const remat_input *input)
{
    remat_graph *graph = NULL;
    remat_chain *chain = NULL;
    remat_plan *plan = NULL;
    remat_network *network = NULL;
    remat_status status = REMAT_OK;
    switch (remat_input_kind(input)) {
    case REMAT_KIND_GRAPH:
        status = remat_graph_read(ctx, input, &graph);
        remat_graph *larger = NULL;
        THEN(remat_graph_read_batch(ctx, input, 3, &larger));
        if (status == REMAT_E_INPUT && strstr(remat_ctx_error(ctx), "batch"))
            status = REMAT_OK; /* it does not say how it grows */
        remat_graph_free(larger);
        THEN(use_graph(ctx, graph));
        break;
    case REMAT_KIND_CHAIN:
        status = remat_chain_read(ctx, input, &chain);
        THEN(remat_chain_write(ctx, chain, REMAT_JSON, discard, NULL));
        THEN(remat_chain_write(ctx, chain, REMAT_JSON_GZ, discard, NULL));
        THEN(use_chain(ctx, chain));
        break;
    case REMAT_KIND_PLAN:
        status = remat_plan_read(ctx, input, &plan);
        THEN(remat_plan_write(ctx, plan, REMAT_JSON, discard, NULL));
        break;
    case REMAT_KIND_NETWORK: {
        int64_t value;
        uint8_t source_side[8];
        status = remat_network_read(ctx, input, &network);
        THEN(remat_network_solve(ctx, network, &value, source_side));
        if (status == REMAT_OK) assert_int_equal(value, 4);
        break;
    }
    }
    remat_graph_free(graph), remat_chain_free(chain), remat_plan_free(plan),
        remat_network_free(network);
    return status;
}

typedef struct source {
    const char *bytes;
    size_t n_bytes;
    const char *spec;
} source; /* bytes, or a source to open, or neither: build */

static remat_status build(remat_ctx *ctx, remat_graph **out)
{
    remat_builder *b = remat_builder_new(ctx, "built");
    if (!b) return REMAT_E_MEMORY;
    uint32_t last = remat_builder_value(b, "x", 8);
    for (int i = 0; i < 20; i++) {
        const uint32_t v =
            i % 3 ? remat_builder_value(b, "v", 8) : remat_builder_view(b, NULL, 8, last);
        remat_builder_value_tensor(b, v, "float32", (const int64_t[]){2, 1}, 2);
        const uint32_t op = remat_builder_op(b, "op", &last, 1, &v, 1);
        remat_builder_op_set(b, op, REMAT_OP_PHASE, i < 10 ? REMAT_FORWARD : REMAT_BACKWARD);
        remat_builder_op_target(b, op, "aten.op");
        last = v;
    }
    remat_builder_output(b, last);
    const remat_status status = remat_builder_finish(b, out);
    remat_builder_free(b);
    return status;
}

static remat_status whole_way(const source *s, char line[160])
{
    const remat_alloc hooks = {counted_resize, NULL};
    remat_ctx *ctx = remat_ctx_new(&hooks);
    if (!ctx) return REMAT_E_MEMORY;
    remat_status status = REMAT_OK;
    if (s->bytes || s->spec) {
        remat_input *input = NULL;
        status = s->bytes ? remat_input_parse(ctx, "faults", s->bytes, s->n_bytes, &input)
                          : remat_input_open(ctx, s->spec, &input);
        THEN(use_input(ctx, input));
        remat_input_free(input);
    } else {
        remat_graph *graph = NULL;
        status = build(ctx, &graph);
        THEN(use_graph(ctx, graph));
        remat_graph_free(graph);
    }
    snprintf(line, 160, "%s", remat_ctx_error(ctx));
    if (status != REMAT_OK) assert_true(*line != '\0');
    remat_ctx_free(ctx);
    return status;
}

static void every_allocation_fails_once(const source *s)
{
    size_t k = 0;
    for (remat_status status = REMAT_E_MEMORY; status != REMAT_OK; k++) {
        heap.calls = 0, heap.fail_at = k, heap.failed = false, heap.live_bytes = 0;
        char line[160] = "";
        status = whole_way(s, line);
        if (heap.live_bytes) fail_msg("allocation %zu fails: %zu bytes leak", k, heap.live_bytes);
        if (status != (heap.failed ? REMAT_E_MEMORY : REMAT_OK))
            fail_msg("allocation %zu %s: status %d, \"%s\"", k,
                     heap.failed ? "fails" : "is past the last", (int)status, line);
        assert_true(k < 1000000);
    }
    print_message("             %zu allocations\n", k - 1);
    assert_true(k > 3);
}

/* ---- sources ---- */

static const char graph_json[] =
    "{\"format\":\"remat-graph\",\"version\":1,\"name\":\"g\",\"batch\":2,\"extra\":[1,{\"a\":null}"
    "],\"values\":[{\"name\":\"x\",\"size\":4,\"size_per_batch\":2,\"kind\":\"input\"},"
    "{\"name\":\"a\",\"size\":8,\"storage\":16,\"dtype\":\"float32\",\"shape\":[2,1]},{\"size\":8,"
    "\"alias\":1,\"note\":\"kept\"},{\"size\":4},{\"size\":4},{\"size\":4}],"
    "\"nodes\":[{\"name\":\"f\",\"op\":\"aten.f\",\"in\":[0],\"out\":[1],\"flops\":100,\"phase\":"
    "\"forward\",\"class\":\"compute\"},"
    "{\"in\":[1],\"out\":[2],\"phase\":\"forward\",\"class\":\"view\"},{\"in\":[2],\"out\":[3],"
    "\"flops\":5,\"phase\":\"forward\",\"workspace\":3,\"mine\":true},"
    "{\"in\":[3],\"out\":[4],\"flops\":5,\"phase\":\"backward\",\"class\":\"random\"},{\"in\":[4,2]"
    ",\"out\":[5],\"flops\":5,\"phase\":\"backward\"}],\"outputs\":[5]}";
static const char dot[] = "digraph g { node [size=3]; a [size=4, cost=2]; b [size=\"5\"]; a -> b "
                          "-> c; a -> c [label=x]; subgraph s { d } c -> d; }";
static const char networkx[] =
    "{\"directed\":true,\"graph\":{\"order\":[0,1,2]},\"nodes\":[{\"id\":0,\"cost_cpu\":3,\"cost_"
    "ram\":4},{\"id\":1,\"cost_cpu\":1,\"cost_ram\":2,"
    "\"backward\":true},{\"id\":2,\"cost_cpu\":1,\"cost_ram\":2}],\"links\":[{\"source\":0,"
    "\"target\":1},{\"source\":1,\"target\":2}]}";
static const char chain[] =
    "{\"format\":\"remat-chain\",\"version\":1,\"name\":\"toy\",\"input\":{\"a\":8},\"stages\":[{"
    "\"name\":\"fc1\",\"a\":1,\"abar\":2,\"delta\":1,\"tf\":1,"
    "\"tb\":2},{\"a\":1,\"abar\":1,\"tf\":1,\"tb\":1}]}";
static const char floating[] =
    "{\"format\":\"remat-chain\",\"version\":1,\"input\":{\"a\":2},\"stages\":[{\"a\":1,\"abar\":7,"
    "\"tf\":6,\"tb\":4},{\"a\":4,\"abar\":8,\"tf\":2,\"tb\":1},"
    "{\"a\":5,\"abar\":8,\"tf\":1,\"tb\":6},{\"a\":4,\"abar\":6,\"tf\":3,\"tb\":9,\"keep\":1}],"
    "\"loss\":{\"abar\":1,\"tf\":1,\"tb\":1}}";
static const char plan[] =
    "{\"format\":\"remat-plan\",\"version\":1,\"kind\":\"graph\",\"graph\":{\"name\":\"g\","
    "\"digest\":"
    "\"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"},\"strategy\":"
    "\"mine\",\"schedule\":[0,1,{\"offload\":1},2,{\"fetch\":1},3,4]}";

static const char dimacs[] = "p max 4 4\nn 1 s\nn 4 t\na 1 2 3\na 1 3 2\na 2 4 2\na 3 4 4\n";

static void of_text(void **state) { every_allocation_fails_once(*state); }

typedef struct text {
    char bytes[8192];
    size_t n;
} text;

static int into_text(void *user, const void *bytes, size_t n)
{
    text *t = user;
    if (t->n + n > sizeof t->bytes) return 1;
    memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
    return 0;
}

static void of_gzip(void **state)
{
    (void)state;
    heap.fail_at = SIZE_MAX;
    static text zipped;
    remat_ctx *ctx = remat_ctx_new(NULL);
    remat_input *input = NULL;
    remat_graph *graph = NULL;
    OK(ctx, remat_input_parse(ctx, "graph", graph_json, sizeof graph_json - 1, &input));
    OK(ctx, remat_graph_read(ctx, input, &graph));
    OK(ctx, remat_graph_write(ctx, graph, REMAT_JSON_GZ, into_text, &zipped));
    remat_graph_free(graph), remat_input_free(input), remat_ctx_free(ctx);
    every_allocation_fails_once(&(const source){.bytes = zipped.bytes, .n_bytes = zipped.n});
}

int main(void)
{
#define TEXT(text) (&(source){.bytes = (text), .n_bytes = sizeof(text) - 1})
    const struct CMUnitTest tests[] = {
        {"graph", of_text, NULL, NULL, TEXT(graph_json)},
        {"gzip", of_gzip, NULL, NULL, NULL},
        {"dot", of_text, NULL, NULL, TEXT(dot)},
        {"networkx", of_text, NULL, NULL, TEXT(networkx)},
        {"chain", of_text, NULL, NULL, TEXT(chain)},
        {"floating chain", of_text, NULL, NULL, TEXT(floating)},
        {"plan", of_text, NULL, NULL, TEXT(plan)},
        {"dimacs", of_text, NULL, NULL, TEXT(dimacs)},
        {"zoo", of_text, NULL, NULL, &(source){.spec = "zoo:mlp?layers=2"}},
        {"fusion", of_text, NULL, NULL, &(source){.spec = "zoo:fig4"}},
        {"builder", of_text, NULL, NULL, &(source){0}},
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
