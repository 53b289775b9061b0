/* test_faults.c: allocations of reading, building, preparing, planning, bounding, verifying,
 * lowering, fusing and writing fail, twice: alone, and together with all allocations after it.
 *
 * Method: each call of the library is made again and again in one context, each time with a later
 * allocation refused, until a try gets through. So a failure costs one call, not the whole way to
 * it. Which allocations are refused goes by their *path*, the functions that were called up to
 * them: every path is refused the first SAMPLES times that it is come by, and after that once with
 * each source. A search asks for memory hundreds of times along the same few paths.
 *
 * Guaranteed, on these inputs: a call that was refused memory answers REMAT_E_MEMORY, with one line
 * about it; it has given back all that it took (bytes in use are as before it), and has not
 * touched its result; the same context then makes the same call, with the same allocations as if
 * none had ever failed, up to the end; nothing is left when everything is freed; blocks are handed
 * back with their true sizes. All of the library's memory comes through its hook, zlib's and the
 * JSON tree's too. Not guaranteed: allocations that other inputs, options or orders of calls would
 * reach, what the solver of checkmate allocates for itself, and failures that have nothing to do
 * with memory. */
#include "support.h"
#include "text.h"

#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a heap that counts and fails on demand; each block carries its size, so that old sizes can
 * be checked ---- */

typedef union header {
    size_t size;
    max_align_t align;
} header;

enum { SAMPLES = 2, MOST_DEPTH = 48, MOST_PATHS = 1 << 16 };

typedef struct call_path { /* a place of a hash table; free where `times` is 0 */
    uint64_t hash;
    uint32_t times;       /* refused */
    uint32_t last_source; /* with which it was refused */
} call_path;
static call_path paths[MOST_PATHS];
static size_t n_known_paths; /* of all tests */
static size_t n_paths;       /* in this test */
static uint32_t n_sources;   /* this test's included */

static struct {
    size_t calls, live_bytes;
    size_t from;    /* the first allocation that may be refused; SIZE_MAX: none */
    uint64_t hash;  /* of the path to the refused one */
    bool all_later; /* refuse `from`, whatever its path, and all after it */
    bool failed;
} heap = {.from = SIZE_MAX};

static uint64_t path_here(void)
{
    void *frames[MOST_DEPTH];
    const int n = backtrace(frames, MOST_DEPTH);
    uint64_t hash = UINT64_C(14695981039346656037);
    for (int i = 0; i < n; i++) hash = (hash ^ (uintptr_t)frames[i]) * UINT64_C(1099511628211);
    return hash;
}

static call_path *find_path(uint64_t hash)
{
    size_t i = (hash ^ hash >> 32) % MOST_PATHS;
    while (paths[i].times && paths[i].hash != hash) i = (i + 1) % MOST_PATHS;
    return &paths[i];
}

/* Has it not been refused often enough? If so, it is now refused once more. */
static bool is_due(uint64_t hash)
{
    call_path *p = find_path(hash);
    const bool is_new_here = p->last_source != n_sources;
    if (p->times >= SAMPLES && !is_new_here) return false;
    if (p->times == 0 && ++n_known_paths > MOST_PATHS / 2) fail_msg("too many paths");
    n_paths += is_new_here;
    p->hash = hash;
    p->times++;
    p->last_source = n_sources;
    return true;
}

static bool refuses(void)
{
    const size_t i = heap.calls++;
    if (i < heap.from || (heap.failed && !heap.all_later)) return false;
    if (heap.failed) return true;
    const uint64_t hash = path_here();
    if (heap.all_later && hash != heap.hash)
        fail_msg("allocation %zu comes another way than before a failure", i);
    if (!heap.all_later && !is_due(hash)) return false;
    heap.from = i;
    heap.hash = hash;
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

/* ---- one call, with each of its allocations refused in turn ---- */

static struct {
    const char *call;
    remat_status status; /* of the last try */
    size_t live_before;
} trial;
static size_t n_calls, n_allocations, n_failures; /* in this test */

static void refuse(size_t from, bool all_later)
{
    heap.calls = 0, heap.from = from, heap.all_later = all_later, heap.failed = false;
}

static void begin_trial(const char *call)
{
    trial.call = call, trial.live_before = heap.live_bytes;
    refuse(0, false);
}

static void check_refused(const remat_ctx *ctx)
{
    const char *line = ctx ? remat_ctx_error(ctx) : "no context";
    if (trial.status != REMAT_E_MEMORY)
        fail_msg("%s: allocation %zu fails: status %d, \"%s\"", trial.call, heap.from,
                 (int)trial.status, line);
    if (!*line || strchr(line, '\n')) fail_msg("%s: not one line: \"%s\"", trial.call, line);
    if (heap.live_bytes != trial.live_before)
        fail_msg("%s: allocation %zu fails: %zu bytes in use before it, %zu after", trial.call,
                 heap.from, trial.live_before, heap.live_bytes);
}

/* Judges a try. True if it was refused memory: then the next one is due. */
static bool was_refused(const remat_ctx *ctx, remat_status status)
{
    trial.status = status;
    if (heap.failed) {
        check_refused(ctx);
        n_failures++;
        refuse(heap.from + heap.all_later, !heap.all_later);
        return true;
    }
    n_calls++, n_allocations += heap.calls;
    refuse(SIZE_MAX, false);
    return false;
}

/* `result` is what the call makes, and stays as it was while the call fails. `trial.status` is its
 * answer when it gets through. */
#define REFUSE_EACH(ctx, result, call)                                                             \
    do {                                                                                           \
        const void *const before_ = (result);                                                      \
        begin_trial(#call);                                                                        \
        while (was_refused(ctx, (call))) assert_ptr_equal((result), before_);                      \
    } while (0)

/* The same for a call that must get through. */
#define EACH_FAILS(ctx, result, call)                                                              \
    do {                                                                                           \
        REFUSE_EACH(ctx, result, call);                                                            \
        if (trial.status != REMAT_OK) fail_msg("%s: %s", #call, remat_ctx_error(ctx));             \
    } while (0)

/* ---- the whole way of a graph, a chain, a plan and a network through the library ---- */

static int discard(void *user, const void *bytes, size_t n)
{
    (void)user, (void)bytes, (void)n;
    return 0;
}

/* What is done with any plan of a graph. */
static void use_plan(remat_ctx *ctx, const remat_graph *graph, const remat_plan *plan)
{
    remat_program *program = NULL;
    remat_graph *unrolled = NULL;
    remat_verdict verdict = REMAT_VERDICT_INIT;
    size_t n;
    const remat_step *steps = remat_plan_steps(plan, &n);
    EACH_FAILS(ctx, NULL, remat_plan_verify(ctx, graph, plan, &verdict));
    assert_true(verdict.valid);
    EACH_FAILS(ctx, NULL, remat_plan_verify_bound(ctx, graph, plan, &verdict));
    EACH_FAILS(ctx, NULL, remat_verify(ctx, graph, steps, n, 0, &verdict));
    assert_true(verdict.valid);
    EACH_FAILS(ctx, program, remat_lower(ctx, graph, steps, n, &program));
    REFUSE_EACH(ctx, unrolled, remat_unroll(ctx, graph, steps, n, &unrolled));
    if (trial.status != REMAT_E_APPLIES) assert_int_equal(trial.status, REMAT_OK); /* transfers */
    EACH_FAILS(ctx, NULL, remat_plan_write(ctx, plan, REMAT_JSON_GZ, discard, NULL));
    remat_graph_free(unrolled), remat_program_free(program);
}

static void use_strategy(remat_ctx *ctx, const remat_graph *graph, const char *strategy,
                         int64_t budget)
{
    remat_plan *plan = NULL, *better = NULL;
    const bool searches = strncmp(strategy, "fastsa", 6) == 0 || strcmp(strategy, "auto") == 0 ||
                          strcmp(strategy, "exact") == 0;
    OK(ctx, remat_ctx_set(ctx, "work", searches ? 1000 : 0));
    OK(ctx, remat_ctx_set(ctx, "offload", 1));
    REFUSE_EACH(ctx, plan, remat_plan_make(ctx, graph, strategy, REMAT_BUDGET_MIN, &plan));
    if (trial.status == REMAT_E_APPLIES) return; /* said of graphs without phases, and no solver */
    assert_int_equal(trial.status, REMAT_OK);
    use_plan(ctx, graph, plan);
    EACH_FAILS(ctx, better, remat_plan_improve(ctx, graph, plan, strategy, budget, &better));
    remat_plan_free(plan), remat_plan_free(better);
}

/* Without transfers: then it puts the graph's order back. */
static void use_auto_alone(remat_ctx *ctx, const remat_graph *graph, int64_t budget)
{
    remat_plan *plan = NULL;
    OK(ctx, remat_ctx_set(ctx, "work", 1000));
    OK(ctx, remat_ctx_set(ctx, "offload", 0));
    EACH_FAILS(ctx, plan, remat_plan_make(ctx, graph, "auto", budget, &plan));
    remat_plan_free(plan);
}

static void use_fusion(remat_ctx *ctx, const remat_graph *graph)
{
    remat_graph *kernels = NULL, *costed = NULL, *program = NULL;
    remat_plan *plan = NULL;
    remat_fusion fusion = REMAT_FUSION_INIT;
    uint32_t *kernel = calloc(remat_graph_n_ops(graph) + 1, sizeof *kernel), n_kernels;
    remat_moved *moved = calloc(remat_graph_n_ops(graph) + 1, sizeof *moved);
    assert_true(kernel && moved);
    EACH_FAILS(ctx, NULL, remat_graph_kernels(ctx, graph, kernel, moved, &n_kernels));
    remat_ctx_class_clear(ctx); /* with class rules nothing is fused */
    EACH_FAILS(ctx, kernels,
               remat_graph_prepare(ctx, graph, REMAT_FUSE | REMAT_DCE, "node", &kernels));
    EACH_FAILS(ctx, costed, remat_graph_prepare(ctx, graph, REMAT_DCE, "fused:h100", &costed));
    OK(ctx, remat_plan_make(ctx, graph, "keep-all", REMAT_BUDGET_NONE, &plan));
    size_t n;
    const remat_step *steps = remat_plan_steps(plan, &n);
    EACH_FAILS(ctx, program, remat_fuse(ctx, graph, steps, n, &fusion, &program));
    remat_plan_free(plan), remat_graph_free(kernels), remat_graph_free(costed);
    remat_graph_free(program);
    free(kernel), free(moved);
}

/* Of spans that no search of so little work places without waste, so that ejections have their
 * turn.
 */
static void place_spans(remat_ctx *ctx)
{
    enum { N = 80 };
    remat_span spans[N];
    int64_t offsets[N], work;
    remat_packing packing = REMAT_PACKING_INIT;
    for (int64_t i = 0; i < N; i++) spans[i] = (remat_span){i, i + 3 + i % 7, 10 + i * 37 % 91};
    OK(ctx, remat_ctx_get(ctx, "work", &work));
    OK(ctx, remat_ctx_set(ctx, "work", 2000));
    EACH_FAILS(ctx, NULL, remat_spans_place(ctx, spans, N, REMAT_BUDGET_NONE, offsets, &packing));
    assert_int_equal(packing.outcome, REMAT_FEASIBLE);
    OK(ctx, remat_ctx_set(ctx, "work", work));
}

static void use_placement(remat_ctx *ctx, const remat_graph *graph)
{
    remat_graph *aligned = NULL;
    remat_plan *plan = NULL;
    remat_program *program = NULL;
    remat_placement *placement = NULL;
    remat_run *run = NULL;
    remat_plan *placed = NULL, *again = NULL;
    remat_input *input = NULL;
    remat_verdict verdict = REMAT_VERDICT_INIT;
    text file = {0};
    EACH_FAILS(ctx, aligned, remat_graph_align(ctx, graph, 64, &aligned));
    OK(ctx, remat_plan_make(ctx, aligned, "keep-all", REMAT_BUDGET_NONE, &plan));
    size_t n;
    const remat_step *steps = remat_plan_steps(plan, &n);
    OK(ctx, remat_lower(ctx, aligned, steps, n, &program));
    EACH_FAILS(ctx, placement, remat_place(ctx, program, 64, &placement));
    EACH_FAILS(ctx, run, remat_run_new(ctx, aligned, plan, 64, &run));
    EACH_FAILS(ctx, NULL, remat_run_trace_write(ctx, run, aligned, discard, NULL));
    EACH_FAILS(ctx, placed, remat_plan_place(ctx, aligned, plan, 64, &placed));
    OK(ctx, remat_plan_write(ctx, placed, REMAT_JSON, into_text, &file));
    OK(ctx, remat_input_parse(ctx, "placed", file.bytes, file.n, &input));
    EACH_FAILS(ctx, again, remat_plan_read(ctx, input, &again));
    EACH_FAILS(ctx, NULL, remat_plan_verify(ctx, aligned, again, &verdict));
    remat_placement_free(placement);
    placement = NULL;
    EACH_FAILS(ctx, placement, remat_plan_placement(ctx, aligned, again, &placement));
    place_spans(ctx);
    free(file.bytes);
    remat_plan_free(placed), remat_plan_free(again), remat_input_free(input);
    remat_run_free(run), remat_placement_free(placement), remat_program_free(program);
    remat_plan_free(plan), remat_graph_free(aligned);
}

/* What is asked of a graph besides plans. */
static void ask_graph(remat_ctx *ctx, const remat_graph *graph, int64_t budget)
{
    remat_bound bound = REMAT_BOUND_INIT;
    remat_chain *chain = NULL;
    remat_recompute_rule *rules = calloc(remat_graph_n_ops(graph) + 1, sizeof *rules);
    uint32_t values[8], n;
    assert_non_null(rules);
    EACH_FAILS(ctx, NULL, remat_graph_need_values(ctx, graph, values, 8, &n));
    EACH_FAILS(ctx, NULL, remat_bound_find(ctx, graph, budget, &bound));
    EACH_FAILS(ctx, NULL, remat_milp_write(ctx, graph, budget, discard, NULL));
    REFUSE_EACH(ctx, NULL, remat_graph_recompute_rules(ctx, graph, rules));
    if (trial.status != REMAT_E_APPLIES) assert_int_equal(trial.status, REMAT_OK); /* no phases */
    REFUSE_EACH(ctx, chain, remat_chain_of_graph(ctx, graph, &chain));
    if (trial.status != REMAT_E_APPLIES) assert_int_equal(trial.status, REMAT_OK); /* no cuts */
    remat_chain_free(chain), free(rules);
}

static void use_graph(remat_ctx *ctx, const remat_graph *graph)
{
    remat_graph *prepared = NULL;
    remat_info info = REMAT_INFO_INIT;
    EACH_FAILS(ctx, prepared,
               remat_graph_prepare(ctx, graph,
                                   REMAT_DCE | REMAT_FOLD_IDENTITY | REMAT_REPLAY_RANDOM, "unit",
                                   &prepared));
    EACH_FAILS(ctx, NULL, remat_graph_info(ctx, prepared, &info));
    const int64_t budget = (info.need_bytes + info.keep_all_peak_bytes) / 2;
    ask_graph(ctx, prepared, budget);
    for (size_t i = 0; remat_strategy_at(i); i++)
        use_strategy(ctx, prepared, remat_strategy_at(i)->name, budget);
    use_auto_alone(ctx, prepared, budget);
    use_fusion(ctx, graph);
    use_placement(ctx, graph);
    EACH_FAILS(ctx, NULL, remat_graph_write(ctx, graph, REMAT_JSON, discard, NULL));
    EACH_FAILS(ctx, NULL, remat_graph_write(ctx, prepared, REMAT_JSON_GZ, discard, NULL));
    EACH_FAILS(ctx, NULL, remat_graph_write(ctx, graph, REMAT_DOT, discard, NULL));
    remat_graph_free(prepared);
}

static void use_chain_plan(remat_ctx *ctx, const remat_chain *chain, const remat_plan *plan)
{
    remat_verdict verdict = REMAT_VERDICT_INIT;
    size_t n;
    const remat_step *steps = remat_plan_steps(plan, &n);
    EACH_FAILS(ctx, NULL, remat_chain_plan_verify(ctx, chain, plan, &verdict));
    assert_true(verdict.valid);
    EACH_FAILS(ctx, NULL, remat_chain_verify(ctx, chain, steps, n, &verdict));
    assert_true(verdict.valid);
    EACH_FAILS(ctx, NULL, remat_plan_write(ctx, plan, REMAT_JSON, discard, NULL));
}

static void use_chain_strategy(remat_ctx *ctx, const remat_chain *chain, const char *strategy)
{
    const int64_t budgets[] = {0, 12, 20, 100};
    remat_plan *plans[4] = {NULL}, *least = NULL;
    REFUSE_EACH(ctx, plans[0], remat_chain_plans(ctx, chain, strategy, budgets, 4, plans));
    if (trial.status == REMAT_E_APPLIES) return; /* a strategy for graphs */
    assert_int_equal(trial.status, REMAT_OK);
    EACH_FAILS(ctx, least, remat_chain_plan(ctx, chain, strategy, REMAT_BUDGET_MIN, &least));
    use_chain_plan(ctx, chain, least);
    for (size_t i = 0; i < 4; i++) use_chain_plan(ctx, chain, plans[i]), remat_plan_free(plans[i]);
    remat_plan_free(least);
}

static void use_chain(remat_ctx *ctx, const remat_chain *chain)
{
    remat_chain *copy = NULL;
    EACH_FAILS(ctx, copy,
               remat_chain_new(ctx, "copy", remat_chain_stage(chain, 0),
                               remat_chain_n_stages(chain), &copy));
    for (int slots = 0; slots <= 20; slots += 20) { /* exact, and with slots */
        OK(ctx, remat_ctx_set(ctx, "slots", slots));
        for (size_t i = 0; remat_strategy_at(i); i++)
            use_chain_strategy(ctx, copy, remat_strategy_at(i)->name);
    }
    EACH_FAILS(ctx, NULL, remat_chain_write(ctx, chain, REMAT_JSON, discard, NULL));
    EACH_FAILS(ctx, NULL, remat_chain_write(ctx, chain, REMAT_JSON_GZ, discard, NULL));
    remat_chain_free(copy);
}

static void of_graph_input(remat_ctx *ctx, const remat_input *input)
{
    remat_graph *graph = NULL, *larger = NULL;
    EACH_FAILS(ctx, graph, remat_graph_read(ctx, input, &graph));
    REFUSE_EACH(ctx, larger, remat_graph_read_batch(ctx, input, 3, &larger));
    if (trial.status != REMAT_E_INPUT) assert_int_equal(trial.status, REMAT_OK);
    else assert_non_null(strstr(remat_ctx_error(ctx), "batch")); /* does not say how it grows */
    use_graph(ctx, graph);
    remat_graph_free(graph), remat_graph_free(larger);
}

static void of_chain_input(remat_ctx *ctx, const remat_input *input)
{
    remat_chain *chain = NULL;
    EACH_FAILS(ctx, chain, remat_chain_read(ctx, input, &chain));
    use_chain(ctx, chain);
    remat_chain_free(chain);
}

static void of_plan_input(remat_ctx *ctx, const remat_input *input)
{
    remat_plan *plan = NULL;
    EACH_FAILS(ctx, plan, remat_plan_read(ctx, input, &plan));
    EACH_FAILS(ctx, NULL, remat_plan_write(ctx, plan, REMAT_JSON, discard, NULL));
    remat_plan_free(plan);
}

static void of_network_input(remat_ctx *ctx, const remat_input *input)
{
    remat_network *network = NULL;
    int64_t value;
    uint8_t source_side[8];
    EACH_FAILS(ctx, network, remat_network_read(ctx, input, &network));
    EACH_FAILS(ctx, NULL, remat_network_solve(ctx, network, &value, source_side));
    assert_int_equal(value, 4);
    remat_network_free(network);
}

static void of_spans_input(remat_ctx *ctx, const remat_input *input)
{
    remat_spans *spans = NULL;
    remat_packing p = REMAT_PACKING_INIT;
    int64_t offsets[16];
    size_t n;
    EACH_FAILS(ctx, spans, remat_spans_read(ctx, input, &spans));
    const remat_span *list = remat_spans_list(spans, &n);
    EACH_FAILS(ctx, NULL, remat_spans_place(ctx, list, n, REMAT_BUDGET_NONE, offsets, &p));
    EACH_FAILS(ctx, NULL, remat_spans_verify(ctx, list, n, offsets, 1, p.height_bytes));
    assert_int_equal(p.outcome, REMAT_OPTIMAL);
    assert_int_equal(p.height_bytes, 5);
    remat_spans_free(spans);
}

static void use_input(remat_ctx *ctx, const remat_input *input)
{
    switch (remat_input_kind(input)) {
    case REMAT_KIND_GRAPH: of_graph_input(ctx, input); break;
    case REMAT_KIND_CHAIN: of_chain_input(ctx, input); break;
    case REMAT_KIND_PLAN: of_plan_input(ctx, input); break;
    case REMAT_KIND_NETWORK: of_network_input(ctx, input); break;
    case REMAT_KIND_SPANS: of_spans_input(ctx, input); break;
    }
}

/* ---- a context, its allocations failing too, and what is done in it ---- */

/* With a setting, which takes memory that the context keeps until its end. */
static remat_status new_counted_context(remat_ctx **out)
{
    remat_ctx *ctx = remat_ctx_new(&(const remat_alloc){counted_resize, NULL});
    if (!ctx) return REMAT_E_MEMORY;
    const remat_status status = remat_ctx_class(ctx, "mine.op", REMAT_CLASS_FUSIBLE);
    if (status == REMAT_OK) *out = ctx;
    else remat_ctx_free(ctx);
    return status;
}

static remat_ctx *begin(void)
{
    remat_ctx *ctx = NULL;
    n_calls = n_allocations = n_failures = n_paths = 0, heap.live_bytes = 0;
    n_sources++;
    EACH_FAILS(ctx, ctx, new_counted_context(&ctx));
    return ctx;
}

static void end(remat_ctx *ctx)
{
    remat_ctx_free(ctx);
    assert_int_equal(heap.live_bytes, 0);
    print_message("             %zu calls, %zu allocations on %zu paths, %zu failures\n", n_calls,
                  n_allocations, n_paths, n_failures);
    assert_true(n_paths > 3 && n_paths <= n_allocations);
    assert_true(n_failures >= 2 * n_paths && n_failures <= 2 * SAMPLES * n_paths);
}

typedef struct source {
    const char *bytes;
    size_t n_bytes;
} source;

static void of_bytes(void **state)
{
    const source *s = *state;
    remat_ctx *ctx = begin();
    remat_input *input = NULL;
    EACH_FAILS(ctx, input, remat_input_parse(ctx, "faults", s->bytes, s->n_bytes, &input));
    use_input(ctx, input);
    remat_input_free(input);
    end(ctx);
}

static void of_model(void **state)
{
    remat_ctx *ctx = begin();
    remat_input *input = NULL;
    remat_graph *graph = NULL;
    EACH_FAILS(ctx, input, remat_input_open(ctx, *state, &input));
    use_input(ctx, input);
    EACH_FAILS(ctx, graph, remat_graph_load(ctx, *state, &graph));
    remat_input_free(input), remat_graph_free(graph);
    end(ctx);
}

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

static void of_builder(void **state)
{
    (void)state;
    remat_ctx *ctx = begin();
    remat_graph *graph = NULL;
    EACH_FAILS(ctx, graph, build(ctx, &graph));
    use_graph(ctx, graph);
    remat_graph_free(graph);
    end(ctx);
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

/* Full at all times, and yet not to be placed without waste: the search has to prove that. */
static const char spans[] = "id,lower,upper,size\na,0,1,2\nb,0,6,2\nc,1,9,2\nd,6,11,1\n"
                            "e,6,10,1\nf,9,10,1\ng,9,12,1\nh,10,14,2\ni,11,12,1\nj,12,13,2\n";

static void of_gzip(void **state)
{
    (void)state;
    text zipped = {0};
    remat_ctx *ctx = remat_ctx_new(NULL);
    remat_input *input = NULL;
    remat_graph *graph = NULL;
    OK(ctx, remat_input_parse(ctx, "graph", graph_json, sizeof graph_json - 1, &input));
    OK(ctx, remat_graph_read(ctx, input, &graph));
    OK(ctx, remat_graph_write(ctx, graph, REMAT_JSON_GZ, into_text, &zipped));
    remat_graph_free(graph), remat_input_free(input), remat_ctx_free(ctx);
    ctx = begin(), graph = NULL, input = NULL;
    EACH_FAILS(ctx, input, remat_input_parse(ctx, "zipped", zipped.bytes, zipped.n, &input));
    EACH_FAILS(ctx, graph, remat_graph_read(ctx, input, &graph));
    remat_graph_free(graph), remat_input_free(input); /* what is done with it: see "graph" */
    end(ctx);
    free(zipped.bytes);
}

static const char *solver; /* what the build found */

/* A file with this content, for the test to remove. */
static void write_file(char *path, const char *content)
{
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
}

static void of_file(void **state)
{
    (void)state;
    remat_ctx *ctx = begin();
    remat_input *input = NULL;
    char path[] = "/tmp/remat-faults-XXXXXX";
    write_file(path, graph_json);
    EACH_FAILS(ctx, input, remat_input_open(ctx, path, &input));
    remove(path);
    remat_input_free(input);
    end(ctx);
}

/* Checkmate with its solver, and a solution of its program as a file: every op once, in its turn.
 */
static void of_solver(void **state)
{
    (void)state;
    assert_non_null(solver);
    remat_ctx *ctx = begin();
    remat_graph *graph = NULL;
    remat_plan *exact = NULL, *rounded = NULL, *read = NULL;
    remat_solver found = REMAT_SOLVER_INIT;
    char path[] = "/tmp/remat-faults-XXXXXX";
    OK(ctx, remat_graph_load(ctx, "zoo:chain?n=3", &graph));
    setenv("REMAT_HIGHS", solver, 1);
    EACH_FAILS(ctx, NULL, remat_solver_find(ctx, &found));
    assert_true(*found.version);
    EACH_FAILS(ctx, exact, remat_plan_make(ctx, graph, "checkmate", 4, &exact));
    assert_int_equal(remat_plan_summary(exact)->outcome, REMAT_OPTIMAL);
    EACH_FAILS(ctx, rounded, remat_plan_make(ctx, graph, "checkmate-lp", 4, &rounded));
    setenv("REMAT_HIGHS", "/no/solver", 1);
    write_file(path, "R_0_0 1 R_1_1 1 R_2_2 1 R_3_3 1 R_4_4 1 R_5_5 1 R_6_6 1 R_7_7 1");
    EACH_FAILS(ctx, read, remat_milp_plan(ctx, graph, REMAT_BUDGET_NONE, path, &read));
    remove(path);
    use_plan(ctx, graph, exact), use_plan(ctx, graph, rounded), use_plan(ctx, graph, read);
    remat_plan_free(exact), remat_plan_free(rounded), remat_plan_free(read);
    remat_graph_free(graph);
    end(ctx);
}

int main(void)
{
#define TEXT(text) (&(source){.bytes = (text), .n_bytes = sizeof(text) - 1})
    const struct CMUnitTest tests[] = {
        {"graph", of_bytes, NULL, NULL, TEXT(graph_json)},
        {"gzip", of_gzip, NULL, NULL, NULL},
        {"dot", of_bytes, NULL, NULL, TEXT(dot)},
        {"networkx", of_bytes, NULL, NULL, TEXT(networkx)},
        {"chain", of_bytes, NULL, NULL, TEXT(chain)},
        {"floating chain", of_bytes, NULL, NULL, TEXT(floating)},
        {"plan", of_bytes, NULL, NULL, TEXT(plan)},
        {"dimacs", of_bytes, NULL, NULL, TEXT(dimacs)},
        {"spans", of_bytes, NULL, NULL, TEXT(spans)},
        {"zoo", of_model, NULL, NULL, "zoo:mlp?layers=2"},
        {"fusion", of_model, NULL, NULL, "zoo:fig4"},
        {"builder", of_builder, NULL, NULL, NULL},
        {"file", of_file, NULL, NULL, NULL},
        {"solver", of_solver, NULL, NULL, NULL},
    };
    solver = getenv("REMAT_HIGHS");
    setenv("REMAT_HIGHS", "/no/solver", 1); /* one failure of many would cost a solution */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
