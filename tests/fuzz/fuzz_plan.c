/* fuzz_plan.c: any bytes at all as a graph or a chain (decode.c), and every strategy on it.
 *
 * What must hold, whatever the bytes. A call answers with a status that its header names, and never
 * REMAT_E_BUG; REMAT_E_MEMORY only if the heap has refused something. A plan verifies, with its
 * bound; its numbers are those of the naive reference; nothing is called infeasible that is not
 * below the need, unless a search says so and no strategy finds a plan; no plan beats a bound. The
 * same call gives the same file, whatever the number of threads; the file comes back as it was. An
 * improved plan is not worse than its start. A plan can be lowered, unrolled and fused, and its
 * peak and cost stay. Nothing leaks, and no block comes back with another size than it had.
 *
 * checkmate and checkmate-lp run only where the environment names a solver: they fork. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain_brute.h"
#include "decode.h"
#include "graph/schedule.h"
#include "heap.h"
#include "naive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    MOST_HEAP = 256 << 20,
    SMALL_OPS = 200, /* with more, what takes long is done once or not at all */
    TINY_OPS = 20,   /* with more, the work is less */
    MOST_WORK = 2000,
    FUSION_WORK = 100000, /* a round or two */
    MOST_ENTRIES = 20000, /* of a mixed integer program, about: millions take a minute to write */
    NAIVE_STEPS = 150,
    NAIVE_VALUES = 400
};

#define MOST_BUDGET (((int64_t)1 << 62) - 1)

/* Statuses that a call may answer with, besides REMAT_OK and REMAT_E_MEMORY. */
enum {
    NOTHING_ELSE = 0,
    MISUSED = 1 << REMAT_E_USAGE,
    TOO_LARGE = 1 << REMAT_E_INPUT,
    NOT_APPLYING = 1 << REMAT_E_APPLIES
};

typedef struct trial {
    heap heap;
    remat_ctx *ctx;
    setting x;
    const char *doing; /* the strategy, for messages */
    int reports;       /* of progress, in this call */
    /* of a graph */
    const remat_graph *graph;
    naive_graph *naive; /* NULL: it is too large */
    remat_info info;
    int64_t budget;
    remat_bound bound;
    bool has_bound;
    remat_plan *before; /* another strategy's plan, or NULL */
    int64_t least_cost; /* of the plans that fit and fetch nothing, or INT64_MAX */
} trial;

static void fail(const trial *t, int line, const char *condition)
{
    fprintf(stderr, "fuzz: line %d: %s: %s\nfuzz: last error: %s\n", line, t->doing, condition,
            t->ctx ? remat_ctx_error(t->ctx) : "");
    abort();
}

#define REQUIRE(t, condition)                                                                      \
    do {                                                                                           \
        if (!(condition)) fail((t), __LINE__, #condition);                                         \
    } while (0)

/* ---- calls ---- */

static void check_line(const trial *t, const char *line)
{
    REQUIRE(t, *line);
    for (; *line; line++) REQUIRE(t, (unsigned char)*line >= 32);
}

static void on_warning(void *user, const char *line) { check_line(user, line); }

static void on_progress(void *user, const remat_progress *p)
{
    trial *t = user;
    REQUIRE(t, p->permille >= 0 && p->permille <= 1000 && p->work >= 0);
    if (t->x.stop == STOP_IN_REPORT && ++t->reports == 2) remat_ctx_stop(t->ctx);
}

/* Is there a result? If not, the status must be one that this call may have. */
static bool succeeds(trial *t, remat_status status, unsigned may_be)
{
    const bool refused = t->heap.refused;
    t->heap.refused = false;
    if (status == REMAT_OK) return true;
    const char *line = remat_ctx_error(t->ctx);
    check_line(t, line);
    if (status == REMAT_E_MEMORY) REQUIRE(t, refused || strstr(line, "memory_bytes"));
    else REQUIRE(t, may_be >> status & 1);
    return false;
}

static void set(trial *t, const char *option, int64_t x)
{
    REQUIRE(t, remat_ctx_set(t->ctx, option, x) == REMAT_OK);
}

static int64_t get(trial *t, const char *option)
{
    int64_t x;
    REQUIRE(t, remat_ctx_get(t->ctx, option, &x) == REMAT_OK);
    return x;
}

/* Before a planning call; *refused says afterwards whether the heap had to. */
static void begin_planning(trial *t, uint32_t threads)
{
    set(t, "threads", threads);
    t->reports = 0;
    t->heap.calls_to_refusal = t->x.refuse_at;
    if (t->x.stop == STOP_AT_ONCE) remat_ctx_stop(t->ctx);
}

static void end_planning(trial *t, bool *refused)
{
    t->heap.calls_to_refusal = 0;
    *refused = t->heap.refused;
}

/* Stopped halfway, threads would stop where they happen to be. */
static uint32_t other_threads(const trial *t)
{
    return t->x.stop == STOP_IN_REPORT ? 1 : 2 + t->x.budget_byte % 2;
}

/* ---- files ---- */

typedef struct text {
    char *bytes;
    size_t n, room;
} text;

static int into_text(void *user, const void *bytes, size_t n)
{
    text *t = user;
    if (t->n + n > t->room) {
        t->room = 2 * (t->n + n);
        t->bytes = realloc(t->bytes, t->room);
        if (!t->bytes) abort();
    }
    if (n) memcpy(t->bytes + t->n, bytes, n);
    t->n += n;
    return 0;
}

static bool is_same(const text *a, const text *b)
{
    return a->n == b->n && (a->n == 0 || memcmp(a->bytes, b->bytes, a->n) == 0);
}

static text text_of_plan(trial *t, const remat_plan *plan)
{
    text out = {0};
    if (!succeeds(t, remat_plan_write(t->ctx, plan, REMAT_JSON, into_text, &out), NOTHING_ELSE))
        out.n = 0;
    return out;
}

/* The plan that the file of a plan is; NULL: no memory. */
static remat_plan *plan_of_text(trial *t, const text *file)
{
    remat_input *input = NULL;
    remat_plan *plan = NULL;
    if (succeeds(t, remat_input_parse(t->ctx, "plan", file->bytes, file->n, &input), NOTHING_ELSE))
        succeeds(t, remat_plan_read(t->ctx, input, &plan), NOTHING_ELSE);
    remat_input_free(input);
    return plan;
}

static void check_file(trial *t, const remat_plan *plan,
                       remat_status verify(remat_ctx *, const remat_graph *, const remat_plan *,
                                           remat_verdict *))
{
    remat_verdict v = REMAT_VERDICT_INIT;
    text file = text_of_plan(t, plan);
    remat_plan *again = file.n ? plan_of_text(t, &file) : NULL;
    if (again) {
        text copy = text_of_plan(t, again);
        if (copy.n) REQUIRE(t, is_same(&file, &copy));
        if (verify && succeeds(t, verify(t->ctx, t->graph, again, &v), NOTHING_ELSE))
            REQUIRE(t, v.valid);
        free(copy.bytes);
    }
    free(file.bytes), remat_plan_free(again);
}

static void check_graph_file(trial *t, const remat_graph *graph)
{
    text file = {0}, copy = {0}, dot = {0};
    remat_input *input = NULL;
    remat_graph *again = NULL;
    if (succeeds(t, remat_graph_write(t->ctx, graph, REMAT_JSON, into_text, &file), NOTHING_ELSE) &&
        succeeds(t, remat_input_parse(t->ctx, "graph", file.bytes, file.n, &input), NOTHING_ELSE) &&
        succeeds(t, remat_graph_read(t->ctx, input, &again), NOTHING_ELSE)) {
        REQUIRE(t, strcmp(remat_graph_digest(graph), remat_graph_digest(again)) == 0);
        if (succeeds(t, remat_graph_write(t->ctx, again, REMAT_JSON, into_text, &copy),
                     NOTHING_ELSE))
            REQUIRE(t, is_same(&file, &copy));
    }
    succeeds(t, remat_graph_write(t->ctx, graph, REMAT_DOT, into_text, &dot), NOTHING_ELSE);
    remat_graph_free(again), remat_input_free(input);
    free(file.bytes), free(copy.bytes), free(dot.bytes);
}

/* ---- one plan of a graph ---- */

static void check_summary(const trial *t, const remat_plan *plan)
{
    const remat_summary *s = remat_plan_summary(plan);
    REQUIRE(t, s->peak_bytes >= t->info.need_bytes && s->need_bytes == t->info.need_bytes);
    REQUIRE(t, s->keep_all_peak_bytes == t->info.keep_all_peak_bytes &&
                   s->keep_all_cost == t->info.keep_all_cost);
    REQUIRE(t, s->resident_bytes == t->info.resident_bytes && s->ops == t->info.ops);
    REQUIRE(t, s->cost >= s->keep_all_cost && s->bound_cost <= s->cost);
    REQUIRE(t, s->within_budget == (t->budget < 0 || s->peak_bytes <= t->budget));
    const int64_t least = s->least_peak_bound;
    const bool below_need = t->budget >= 0 && (t->budget < t->info.need_bytes ||
                                               (least != REMAT_ABSENT && t->budget < least)),
               searched = s->outcome == REMAT_INFEASIBLE && strcmp(s->bound_method, "search") == 0;
    REQUIRE(t, least == REMAT_ABSENT || s->offloaded_bytes > 0 || s->peak_bytes >= least);
    REQUIRE(t, remat_plan_status(plan) == (s->within_budget         ? REMAT_OK
                                           : below_need || searched ? REMAT_E_INFEASIBLE
                                                                    : REMAT_E_NOT_FOUND));
    REQUIRE(t, (s->outcome == REMAT_INFEASIBLE) == (!s->within_budget && (below_need || searched)));
    REQUIRE(t, (s->outcome == REMAT_OPTIMAL) == (s->within_budget && s->cost == s->bound_cost));
    REQUIRE(t, !(searched || (below_need && !s->within_budget)) || t->least_cost == INT64_MAX);
    /* At `min` each plan's budget is its own peak, and its bound holds for that. */
    if (s->within_budget && t->budget >= 0) REQUIRE(t, s->any_order_cost <= t->least_cost);
}

/* For later strategies: no bound in any order is above it. exact is the last of them. */
static void note_cost(trial *t, const remat_plan *plan)
{
    const remat_summary *s = remat_plan_summary(plan);
    size_t n;
    const remat_step *steps = remat_plan_steps(plan, &n);
    if (s->within_budget && !rm_has_transfers(steps, n) && s->cost < t->least_cost)
        t->least_cost = s->cost;
}

static void check_verdicts(trial *t, const remat_plan *plan)
{
    remat_verdict v = REMAT_VERDICT_INIT;
    if (succeeds(t, remat_plan_verify(t->ctx, t->graph, plan, &v), NOTHING_ELSE))
        REQUIRE(t, v.valid);
    if (succeeds(t, remat_plan_verify_bound(t->ctx, t->graph, plan, &v), NOTHING_ELSE))
        REQUIRE(t, v.valid);
}

/* Do the ops run for the first time in the graph's order, and is nothing moved to the host? */
static bool is_in_order(const remat_step *steps, size_t n)
{
    uint32_t next = 0;
    for (size_t i = 0; i < n; i++) {
        if (steps[i].kind != REMAT_RUN || steps[i].index > next) return false;
        next += steps[i].index == next;
    }
    return true;
}

/* By the reference, which knows the graph's own indices, and by the bound for the graph's order. */
static void check_steps(trial *t, const remat_plan *plan)
{
    const remat_summary *s = remat_plan_summary(plan);
    size_t n;
    const remat_step *steps = remat_plan_steps(plan, &n);
    const rm_mark mark = rm_scratch_mark(t->ctx);
    remat_step *own;
    REQUIRE(t, rm_steps_to_graph(t->ctx, t->graph, steps, n, &own) == REMAT_OK);
    if (t->naive && n <= NAIVE_STEPS) {
        naive_verdict v = naive_judge(t->naive, own, n, s->bandwidth);
        REQUIRE(t, v.valid && v.peak_bytes == s->peak_bytes && v.cost == s->cost &&
                       v.peak_step == s->peak_step && v.host_bytes == s->offloaded_bytes);
        naive_release(&v);
    }
    if (t->has_bound && s->within_budget && is_in_order(own, n))
        REQUIRE(t, t->bound.status == REMAT_OK && t->bound.cost <= s->cost);
    rm_scratch_release(t->ctx, mark);
}

static void check_lowered(trial *t, const remat_plan *plan)
{
    const remat_summary *s = remat_plan_summary(plan);
    remat_program *program = NULL;
    size_t n_steps, n;
    const remat_step *steps = remat_plan_steps(plan, &n_steps);
    if (!succeeds(t, remat_lower(t->ctx, t->graph, steps, n_steps, &program), NOTHING_ELSE)) return;
    const remat_statement *statements = remat_program_statements(program, &n);
    int64_t peak = s->resident_bytes;
    for (size_t i = 0; i < n; i++)
        if (statements[i].memory_bytes > peak) peak = statements[i].memory_bytes;
    REQUIRE(t, peak == s->peak_bytes);
    remat_program_free(program);
}

/* A schedule that runs ops often may be too large for a graph. */
static void check_unrolled(trial *t, const remat_plan *plan)
{
    const remat_summary *s = remat_plan_summary(plan);
    remat_graph *unrolled = NULL, *program = NULL;
    remat_info info = REMAT_INFO_INIT;
    remat_fusion f = REMAT_FUSION_INIT;
    size_t n;
    const remat_step *steps = remat_plan_steps(plan, &n);
    const unsigned may_be = TOO_LARGE | NOT_APPLYING; /* the latter: transfers */
    if (succeeds(t, remat_unroll(t->ctx, t->graph, steps, n, &unrolled), may_be) &&
        succeeds(t, remat_graph_info(t->ctx, unrolled, &info), NOTHING_ELSE))
        REQUIRE(t, info.keep_all_peak_bytes == s->peak_bytes && info.keep_all_cost == s->cost);
    set(t, "work", FUSION_WORK);
    if (succeeds(t, remat_fuse(t->ctx, t->graph, steps, n, &f, &program), may_be)) {
        if (f.before.total_bytes != REMAT_ABSENT)
            REQUIRE(t, f.after.total_bytes != REMAT_ABSENT &&
                           f.after.total_bytes <= f.before.total_bytes);
        succeeds(t, remat_graph_info(t->ctx, program, &info), NOTHING_ELSE);
    }
    set(t, "work", t->x.work);
    remat_graph_free(unrolled), remat_graph_free(program);
}

static void check_plan(trial *t, const remat_plan *plan)
{
    check_summary(t, plan);
    note_cost(t, plan);
    check_verdicts(t, plan);
    check_steps(t, plan);
    check_lowered(t, plan);
    if (t->info.ops > SMALL_OPS) return;
    check_file(t, plan, remat_plan_verify_bound);
    check_unrolled(t, plan);
}

/* ---- one strategy on a graph ---- */

static remat_plan *make_plan(trial *t, const char *strategy, uint32_t threads, bool *refused)
{
    /* A bandwidth may be so low that a transfer's cost passes 2^62. */
    const unsigned may_be = NOT_APPLYING | (get(t, "bandwidth") ? MISUSED : 0);
    remat_plan *plan = NULL;
    begin_planning(t, threads);
    const remat_status status = remat_plan_make(t->ctx, t->graph, strategy, t->budget, &plan);
    end_planning(t, refused);
    return succeeds(t, status, may_be) ? plan : NULL;
}

static void check_repeats(trial *t, const char *strategy, const remat_plan *plan)
{
    bool refused;
    remat_plan *again = make_plan(t, strategy, other_threads(t), &refused);
    if (!refused) {
        REQUIRE(t, !plan == !again);
        text a = {0}, b = {0};
        if (plan) a = text_of_plan(t, plan), b = text_of_plan(t, again);
        if (a.n && b.n) REQUIRE(t, is_same(&a, &b));
        free(a.bytes), free(b.bytes);
    }
    remat_plan_free(again);
}

static bool is_worse(const trial *t, const remat_summary *a, const remat_summary *b)
{
    const bool a_fits = t->budget < 0 || a->peak_bytes <= t->budget,
               b_fits = t->budget < 0 || b->peak_bytes <= t->budget;
    if (a_fits != b_fits) return b_fits;
    return a_fits && t->budget != REMAT_BUDGET_MIN ? a->cost > b->cost
                                                   : a->peak_bytes > b->peak_bytes;
}

static void check_improved(trial *t, const char *strategy)
{
    const unsigned may_be = NOT_APPLYING | (get(t, "bandwidth") ? MISUSED : 0);
    remat_plan *plan = NULL;
    bool refused;
    begin_planning(t, 1);
    const remat_status status =
        remat_plan_improve(t->ctx, t->graph, t->before, strategy, t->budget, &plan);
    end_planning(t, &refused);
    if (!succeeds(t, status, may_be)) return;
    check_summary(t, plan);
    note_cost(t, plan);
    check_verdicts(t, plan);
    REQUIRE(t, !is_worse(t, remat_plan_summary(plan), remat_plan_summary(t->before)));
    remat_plan_free(plan);
}

/* Of the memory that planning may take, even keep-all's verification needs some. */
static bool is_too_little_memory(const trial *t)
{
    return strstr(remat_ctx_error(t->ctx), "memory_bytes") != NULL;
}

static void check_strategy(trial *t, const char *strategy)
{
    bool refused;
    remat_plan *plan = make_plan(t, strategy, 1, &refused);
    if (plan) check_plan(t, plan);
    else REQUIRE(t, refused || strcmp(strategy, "keep-all") != 0 || is_too_little_memory(t));
    if (!refused && !(t->info.ops > SMALL_OPS && t->x.budget_byte % 4))
        check_repeats(t, strategy, plan);
    if (t->before && t->info.ops <= SMALL_OPS) check_improved(t, strategy);
    if (plan) remat_plan_free(t->before), t->before = plan;
}

static bool is_skipped(const char *strategy)
{
    return strncmp(strategy, "checkmate", 9) == 0 && !getenv("REMAT_HIGHS");
}

/* ---- a graph ---- */

static int ignore_bytes(void *user, const void *bytes, size_t n)
{
    (void)user, (void)bytes, (void)n;
    return 0;
}

static void check_need_values(trial *t)
{
    uint32_t values[16], n;
    if (!succeeds(t, remat_graph_need_values(t->ctx, t->graph, values, 16, &n), NOTHING_ELSE))
        return;
    int64_t sum = t->info.resident_bytes;
    for (uint32_t i = 0; i < n; i++)
        sum += remat_graph_value_get(t->graph, values[i], REMAT_VALUE_STORAGE);
    REQUIRE(t, n <= 16 && sum <= t->info.need_bytes);
}

static void check_chain(trial *t, const remat_chain *chain);

/* Its mixed integer program, where that is small: each op may run at each turn, and so reads. */
static void check_program(trial *t)
{
    const uint32_t n_ops = remat_graph_n_ops(t->graph);
    uint64_t n_read = 0;
    for (uint32_t op = 0; op < n_ops; op++) {
        uint32_t n;
        remat_graph_op_in(t->graph, op, &n);
        n_read += n;
    }
    if (n_ops * n_read > MOST_ENTRIES) return;
    succeeds(t, remat_milp_write(t->ctx, t->graph, t->budget, ignore_bytes, NULL),
             NOT_APPLYING | (t->budget < t->info.resident_bytes ? MISUSED : 0));
}

/* All that is asked of a graph besides plans. */
static void check_questions(trial *t)
{
    const uint32_t n = remat_graph_n_ops(t->graph) + 1;
    remat_recompute_rule *rules = calloc(n, sizeof *rules);
    uint32_t *kernel = calloc(n, sizeof *kernel), n_kernels;
    remat_moved *moved = calloc(n, sizeof *moved);
    remat_chain *chain = NULL;
    if (!rules || !kernel || !moved) abort();
    check_need_values(t);
    succeeds(t, remat_graph_recompute_rules(t->ctx, t->graph, rules), NOT_APPLYING);
    if (succeeds(t, remat_graph_kernels(t->ctx, t->graph, kernel, moved, &n_kernels), NOTHING_ELSE))
        for (uint32_t op = 0; op + 1 < n; op++) REQUIRE(t, kernel[op] < n_kernels);
    t->has_bound =
        t->budget >= 0 &&
        succeeds(t, remat_bound_find(t->ctx, t->graph, t->budget, &t->bound), NOTHING_ELSE);
    if (t->info.ops <= SMALL_OPS) {
        check_program(t);
        if (succeeds(t, remat_chain_of_graph(t->ctx, t->graph, &chain), NOT_APPLYING))
            check_chain(t, chain);
    }
    remat_chain_free(chain);
    free(rules), free(kernel), free(moved);
}

static void check_graph(trial *t, const remat_graph *graph)
{
    t->graph = graph;
    if (!succeeds(t, remat_graph_info(t->ctx, graph, &t->info), NOTHING_ELSE)) return;
    REQUIRE(t, t->info.resident_bytes <= t->info.need_bytes &&
                   t->info.need_bytes <= t->info.keep_all_peak_bytes);
    t->budget = budget_of(&t->x, t->info.need_bytes, t->info.keep_all_peak_bytes);
    if (t->budget > MOST_BUDGET) {
        REQUIRE(t, remat_plan_make(t->ctx, graph, "auto", t->budget, &t->before) == REMAT_E_USAGE);
        t->budget = MOST_BUDGET;
    }
    if (t->info.ops > TINY_OPS && t->x.work > MOST_WORK) set(t, "work", t->x.work = MOST_WORK);
    if (remat_graph_n_values(graph) <= NAIVE_VALUES) t->naive = naive_from(graph);
    check_questions(t);
    for (size_t i = 0; remat_strategy_at(i); i++) {
        t->doing = remat_strategy_at(i)->name;
        if (!is_skipped(t->doing)) check_strategy(t, t->doing);
    }
    remat_plan_free(t->before), naive_free(t->naive);
}

static void graph_way(trial *t, source *s)
{
    remat_graph *graph = NULL, *prepared = NULL;
    t->doing = "the builder";
    if (!succeeds(t, take_graph(s, &t->x, t->ctx, &graph), TOO_LARGE)) return;
    check_graph_file(t, graph);
    /* Every view may become a storage; costs by another model may pass 2^62, or not be given. */
    t->doing = "preparing";
    const remat_status status =
        remat_graph_prepare(t->ctx, graph, t->x.flags, t->x.cost_model, &prepared);
    const bool as_asked = succeeds(t, status, TOO_LARGE | MISUSED);
    check_graph(t, as_asked ? prepared : graph);
    remat_graph_free(prepared), remat_graph_free(graph);
}

/* ---- a chain ---- */

static void check_chain_plan(trial *t, const remat_chain *chain, const remat_plan *plan,
                             int64_t budget)
{
    const remat_summary *s = remat_plan_summary(plan);
    remat_verdict v = REMAT_VERDICT_INIT;
    size_t n;
    const remat_step *steps = remat_plan_steps(plan, &n);
    if (succeeds(t, remat_chain_plan_verify(t->ctx, chain, plan, &v), NOTHING_ELSE))
        REQUIRE(t, v.valid && v.peak_bytes == s->peak_bytes && v.cost == s->cost);
    REQUIRE(t, s->peak_bytes >= s->need_bytes && s->bound_cost <= s->cost);
    REQUIRE(t, s->within_budget == (budget < 0 || s->peak_bytes <= budget));
    REQUIRE(t, (s->outcome == REMAT_OPTIMAL || s->outcome == REMAT_FEASIBLE) == s->within_budget);
    if (remat_chain_n_stages(chain) <= BRUTE_STAGES) {
        const brute_verdict b =
            brute_judge(remat_chain_stage(chain, 0), remat_chain_n_stages(chain), steps, n);
        REQUIRE(t, b.valid && b.peak == s->peak_bytes && b.cost == s->cost);
    }
    check_file(t, plan, NULL);
}

static remat_plan *make_chain_plan(trial *t, const remat_chain *chain, const char *strategy,
                                   int64_t budget, uint32_t threads, bool *refused)
{
    remat_plan *plan = NULL;
    begin_planning(t, threads);
    const remat_status status = remat_chain_plan(t->ctx, chain, strategy, budget, &plan);
    end_planning(t, refused);
    return succeeds(t, status, NOT_APPLYING | TOO_LARGE) ? plan : NULL;
}

static void check_chain_strategy(trial *t, const remat_chain *chain, const char *strategy,
                                 int64_t budget)
{
    bool refused, refused_again;
    remat_plan *plan = make_chain_plan(t, chain, strategy, budget, 1, &refused),
               *again =
                   make_chain_plan(t, chain, strategy, budget, other_threads(t), &refused_again);
    if (plan) check_chain_plan(t, chain, plan, budget);
    if (!refused && !refused_again) {
        REQUIRE(t, !plan == !again);
        text a = {0}, b = {0};
        if (plan) a = text_of_plan(t, plan), b = text_of_plan(t, again);
        if (a.n && b.n) REQUIRE(t, is_same(&a, &b));
        free(a.bytes), free(b.bytes);
    }
    remat_plan_free(plan), remat_plan_free(again);
}

/* One table for several budgets. */
static void check_curve(trial *t, const remat_chain *chain, const char *strategy, int64_t need,
                        int64_t keep_all)
{
    const int64_t budgets[] = {0, need, need + (keep_all - need) / 2, keep_all};
    remat_plan *plans[4] = {NULL};
    bool refused;
    begin_planning(t, 1);
    const remat_status status = remat_chain_plans(t->ctx, chain, strategy, budgets, 4, plans);
    end_planning(t, &refused);
    const bool all = succeeds(t, status, NOT_APPLYING | TOO_LARGE);
    for (int i = 0; i < 4; i++) {
        REQUIRE(t, all == (plans[i] != NULL));
        if (all) check_chain_plan(t, chain, plans[i], budgets[i]);
        remat_plan_free(plans[i]);
    }
}

/* With the slots that the options name, and with exact ones. */
static void check_chain(trial *t, const remat_chain *chain)
{
    const char *const doing = t->doing;
    const int64_t slots = get(t, "slots");
    remat_plan *keep_all = NULL;
    t->doing = "keep-all";
    if (!succeeds(t, remat_chain_plan(t->ctx, chain, "keep-all", REMAT_BUDGET_NONE, &keep_all),
                  TOO_LARGE))
        return;
    const int64_t need = remat_plan_summary(keep_all)->need_bytes,
                  most = remat_plan_summary(keep_all)->peak_bytes;
    int64_t budget = budget_of(&t->x, need, most);
    if (budget > MOST_BUDGET) {
        remat_plan *none = NULL;
        REQUIRE(t, remat_chain_plan(t->ctx, chain, "auto", budget, &none) == REMAT_E_USAGE);
        budget = MOST_BUDGET;
    }
    remat_plan_free(keep_all);
    for (size_t i = 0; remat_strategy_at(i); i++) {
        t->doing = remat_strategy_at(i)->name;
        if (is_skipped(t->doing)) continue;
        set(t, "slots", slots);
        check_chain_strategy(t, chain, t->doing, budget);
        set(t, "slots", 0);
        check_chain_strategy(t, chain, t->doing, budget);
        check_curve(t, chain, t->doing, need, most);
    }
    set(t, "slots", slots);
    t->doing = doing;
}

static void chain_way(trial *t, source *s)
{
    remat_stage stages[FUZZ_MOST_STAGES + 2];
    const uint32_t n = take_stages(s, &t->x, stages);
    remat_chain *chain = NULL;
    t->doing = "the chain";
    if (succeeds(t, remat_chain_new(t->ctx, NULL, stages, n, &chain), TOO_LARGE))
        check_chain(t, chain);
    remat_chain_free(chain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    trial t = {.least_cost = INT64_MAX,
               .heap = {.most_bytes = MOST_HEAP},
               .doing = "the context",
               .info = REMAT_INFO_INIT,
               .bound = REMAT_BOUND_INIT};
    const remat_alloc hooks = heap_hooks(&t.heap);
    source s = {data, data + size};
    t.ctx = remat_ctx_new(&hooks);
    REQUIRE(&t, t.ctx);
    remat_ctx_on_warning(t.ctx, on_warning, &t);
    remat_ctx_on_progress(t.ctx, on_progress, &t);
    set(&t, "slots", 50); /* tables are small, unless the options ask for larger ones */
    set(&t, "max_slots", 500);
    t.x = take_setting(&s, t.ctx);
    if (get(&t, "epsilon")) set(&t, "slots", -1); /* it chooses them */
    set(&t, "work", t.x.work);
    if (t.x.is_chain) chain_way(&t, &s);
    else graph_way(&t, &s);
    remat_ctx_free(t.ctx);
    t.ctx = NULL;
    t.doing = "the heap";
    REQUIRE(&t, t.heap.live_bytes == 0);
    return 0;
}
