/* old_client.c: a program that was compiled long ago, against a header whose structs were shorter.
 *
 * It includes no header of ours: the declarations below are a copy that never changes, of what such
 * a program saw. Structs end before members that today's header has, as if those had been added
 * since; a guard stands right behind each. The library of today must fill what is there, leave the
 * guards alone, and number its enums as it always did. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct remat_ctx remat_ctx;
typedef struct remat_graph remat_graph;
typedef struct remat_plan remat_plan;
typedef struct remat_program remat_program;
enum { OK = 0, E_USAGE = 1, E_PLAN = 5, E_INFEASIBLE = 10 };
typedef struct old_step {
    uint32_t kind, index;
} old_step;
typedef struct old_statement { /* in an array: it can never grow */
    int kind;
    old_step step;
    uint32_t step_index, value, reg;
    int64_t bytes, memory_bytes;
} old_statement;
typedef struct old_operand {
    uint32_t value, reg;
} old_operand;
typedef struct old_info { /* up to cut_values */
    size_t size;
    uint32_t ops, values, storages, views, multi_output, pinned, dead, cut_values;
} old_info;
typedef struct old_verdict { /* up to cost */
    size_t size;
    bool valid;
    int64_t peak_bytes, cost;
} old_verdict;
typedef struct old_bound { /* up to cost */
    size_t size;
    int status;
    int64_t budget_bytes, cost;
} old_bound;
typedef struct old_summary { /* by pointer: whatever comes behind it is not ours to see */
    const char *strategy, *graph, *digest, *cost_model, *cost_unit, *bound_scope, *bound_method;
    int64_t budget_bytes, peak_bytes, cost;
} old_summary;

remat_ctx *remat_ctx_new(const void *hooks);
void remat_ctx_free(remat_ctx *ctx);
const char *remat_ctx_error(const remat_ctx *ctx);
int remat_graph_load(remat_ctx *ctx, const char *source, remat_graph **out);
void remat_graph_free(remat_graph *graph);
int remat_graph_info(remat_ctx *ctx, const remat_graph *graph, old_info *out);
int remat_plan_make(remat_ctx *ctx, const remat_graph *graph, const char *strategy, int64_t budget,
                    remat_plan **out);
int remat_plan_status(const remat_plan *plan);
const old_summary *remat_plan_summary(const remat_plan *plan);
const old_step *remat_plan_steps(const remat_plan *plan, size_t *n_steps);
void remat_plan_free(remat_plan *plan);
int remat_verify(remat_ctx *ctx, const remat_graph *graph, const old_step *steps, size_t n_steps,
                 int64_t bandwidth, old_verdict *out);
int remat_plan_verify(remat_ctx *ctx, const remat_graph *graph, const remat_plan *plan,
                      old_verdict *out);
int remat_bound_find(remat_ctx *ctx, const remat_graph *graph, int64_t budget, old_bound *out);
int remat_lower(remat_ctx *ctx, const remat_graph *graph, const old_step *steps, size_t n_steps,
                remat_program **out);
const old_statement *remat_program_statements(const remat_program *program, size_t *n_statements);
const old_operand *remat_program_outputs(const remat_program *program, uint32_t *n);
void remat_program_free(remat_program *program);

/* A struct with its guard. */
#define GUARDED(type)                                                                              \
    struct {                                                                                       \
        type it;                                                                                   \
        unsigned char guard[1024];                                                                 \
    }
#define BEGIN(x) (memset(&(x), 0xa5, sizeof(x)), (x).it.size = sizeof((x).it))
static bool is_whole(const unsigned char *guard)
{
    for (size_t i = 0; i < 1024; i++)
        if (guard[i] != 0xa5) return false;
    return true;
}
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) return printf("not so: %s (%s)\n", #condition, remat_ctx_error(ctx)), 1; \
    } while (0)

static int use(remat_ctx *ctx, const remat_graph *graph, const remat_plan *plan)
{
    GUARDED(old_info) info;
    GUARDED(old_verdict) verdict;
    GUARDED(old_bound) bound;
    size_t n_steps;
    const old_summary *s = remat_plan_summary(plan);
    const old_step *steps = remat_plan_steps(plan, &n_steps);
    CHECK(strcmp(s->strategy, "chen-sqrt") == 0 && s->budget_bytes == -1 && s->peak_bytes > 0);
    CHECK(BEGIN(info) && remat_graph_info(ctx, graph, &info.it) == OK);
    CHECK(info.it.ops > 100 && info.it.values > info.it.ops && info.it.cut_values > 0);
    CHECK(info.it.size == sizeof info.it && is_whole(info.guard));
    CHECK(BEGIN(verdict) && remat_plan_verify(ctx, graph, plan, &verdict.it) == OK);
    CHECK(verdict.it.valid && verdict.it.peak_bytes == s->peak_bytes && verdict.it.cost == s->cost);
    CHECK(verdict.it.size == sizeof verdict.it && is_whole(verdict.guard));
    CHECK(BEGIN(verdict) && remat_verify(ctx, graph, steps, n_steps, 0, &verdict.it) == OK);
    CHECK(verdict.it.valid && verdict.it.cost == s->cost && is_whole(verdict.guard));
    CHECK(remat_verify(ctx, graph, steps, n_steps - 1, 0, &verdict.it) == OK);
    CHECK(!verdict.it.valid && verdict.it.cost == -1 && is_whole(verdict.guard));
    CHECK(BEGIN(bound) && remat_bound_find(ctx, graph, 1, &bound.it) == OK);
    CHECK(bound.it.status == E_INFEASIBLE && bound.it.cost == -1 && bound.it.budget_bytes == 1);
    CHECK(bound.it.size == sizeof bound.it && is_whole(bound.guard));
    BEGIN(verdict);
    verdict.it.size = 0;
    CHECK(remat_plan_verify(ctx, graph, plan, &verdict.it) == E_USAGE && is_whole(verdict.guard));
    return 0;
}

static int lower(remat_ctx *ctx, const remat_graph *graph, const remat_plan *plan)
{
    remat_program *program = NULL;
    size_t n_steps, n, computed = 0;
    uint32_t n_outputs;
    int64_t peak = 0;
    const old_step *steps = remat_plan_steps(plan, &n_steps);
    CHECK(remat_lower(ctx, graph, steps, n_steps, &program) == OK);
    const old_statement *s = remat_program_statements(program, &n);
    for (size_t i = 0; i < n; i++) {
        if (s[i].memory_bytes > peak) peak = s[i].memory_bytes;
        if (s[i].kind != 1) continue; /* not a computation */
        CHECK(s[i].step_index == computed && s[i].step.index == steps[computed].index);
        CHECK(s[i].value == UINT32_MAX && s[i].reg == UINT32_MAX && s[i].bytes >= 0);
        computed++;
    }
    CHECK(computed == n_steps && peak == remat_plan_summary(plan)->peak_bytes);
    const old_operand *outputs = remat_program_outputs(program, &n_outputs);
    CHECK(n_outputs > 0 && outputs[0].value != UINT32_MAX && outputs[0].reg != UINT32_MAX);
    remat_program_free(program);
    return 0;
}

int main(void)
{
    remat_graph *graph = NULL;
    remat_plan *plan = NULL;
    remat_ctx *ctx = remat_ctx_new(NULL);
    if (!ctx) return 1;
    CHECK(remat_graph_load(ctx, "zoo:resnet18", &graph) == OK);
    CHECK(remat_plan_make(ctx, graph, "chen-sqrt", -1, &plan) == OK);
    CHECK(remat_plan_status(plan) == OK);
    const int failed = use(ctx, graph, plan) || lower(ctx, graph, plan);
    remat_plan_free(plan), remat_graph_free(graph), remat_ctx_free(ctx);
    if (!failed) printf("old client: fine\n");
    return failed;
}
