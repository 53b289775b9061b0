/* run_plan.c: the public side of running: makes a run out of a graph and a plan, and tells it where
 * memory is.
 *
 * The plan is verified, lowered and placed here; src/run needs nothing but the result.
 *
 * Cost: that of lowering and placing, once. */
#include "run/run.h"

#include "api/answer.h"
#include "graph/graph.h"
#include "graph/plan.h"
#include "import/formats.h"
#include "verify/claims.h"

#include <inttypes.h>
#include <string.h>

void remat_run_free(remat_run *run)
{
    if (!run) return;
    const remat_alloc heap = run->heap;
    remat_program_free(run->program);
    remat_placement_free(run->placement);
    rm_arena_free(&heap, &run->memory);
    rm_release(&heap, run, sizeof *run);
}

/* ---- making ---- */

#define GET(ctx, run, ptr, n)                                                                      \
    (((ptr) = rm_arena_get((ctx), &(run)->memory, (n), sizeof *(ptr))) ? REMAT_OK : REMAT_E_MEMORY)

static size_t count_operands(const remat_program *program, size_t n_steps, size_t *n_outputs)
{
    size_t sum = 0;
    uint32_t n;
    for (size_t t = 0; t < n_steps; t++) {
        remat_program_step_in(program, t, &n);
        sum += n;
        remat_program_step_out(program, t, &n);
        sum += n;
    }
    remat_program_outputs(program, &n);
    *n_outputs = n;
    return sum + n;
}

/* A resident storage is known by all values that share it. */
static void number_residents(remat_run *run, const remat_graph *g)
{
    for (uint32_t v = 0; v < run->n_values; v++) run->slot[v] = REMAT_NONE;
    for (uint32_t v = 0; v < g->n_values; v++)
        if (rm_owns_storage(g, v) && rm_is_resident(g, v))
            run->slot[g->value_original[v]] = run->n_residents++;
    for (uint32_t v = 0; v < g->n_values; v++)
        if (rm_is_resident(g, v))
            run->slot[g->value_original[v]] = run->slot[g->value_original[g->root[v]]];
}

static remat_status allocate(remat_ctx *ctx, remat_run *run, const remat_graph *g)
{
    size_t n_statements;
    const remat_statement *list = remat_program_statements(run->program, &n_statements);
    for (size_t i = 0; i < n_statements; i++) run->n_regs += list[i].kind == REMAT_ALLOCATE;
    run->n_operands = count_operands(run->program, run->n_steps, &run->n_outputs);
    run->n_values = g->n_original_values;
    TRY(GET(ctx, run, run->slot, run->n_values));
    number_residents(run, g);
    TRY(GET(ctx, run, run->needed_by, run->n_residents));
    TRY(GET(ctx, run, run->residents, run->n_residents));
    TRY(GET(ctx, run, run->steps, run->n_steps));
    TRY(GET(ctx, run, run->where, run->n_operands));
    TRY(GET(ctx, run, run->pointers, run->n_operands));
    TRY(GET(ctx, run, run->registers, run->n_regs));
    TRY(GET(ctx, run, run->alive, run->n_regs));
    return GET(ctx, run, run->times, 2 * run->n_steps);
}

/* step: that reads them, or REMAT_NONE for outputs. Answers where the list ends. */
static size_t add_operands(remat_run *run, const remat_operand *list, uint32_t n, size_t at,
                           uint32_t step)
{
    for (uint32_t k = 0; k < n; k++, at++) {
        if (list[k].reg != REMAT_NONE) {
            run->where[at] = remat_placement_register(run->placement, list[k].reg);
            continue;
        }
        const uint32_t slot = run->slot[list[k].value];
        assert(slot != REMAT_NONE);
        run->where[at] = ~(rm_where)slot;
        if (step != REMAT_NONE && run->needed_by[slot] == REMAT_NONE) run->needed_by[slot] = step;
    }
    return at;
}

static void fill_operands(remat_run *run)
{
    size_t at = 0;
    uint32_t n;
    for (uint32_t slot = 0; slot < run->n_residents; slot++) run->needed_by[slot] = REMAT_NONE;
    for (uint32_t t = 0; t < run->n_steps; t++) {
        rm_run_step *s = &run->steps[t];
        const remat_operand *list = remat_program_step_in(run->program, t, &s->n_in);
        s->in = at;
        at = add_operands(run, list, s->n_in, at, t);
        list = remat_program_step_out(run->program, t, &s->n_out);
        s->out = at;
        at = add_operands(run, list, s->n_out, at, t);
    }
    const remat_operand *outputs = remat_program_outputs(run->program, &n);
    at = add_operands(run, outputs, n, at, REMAT_NONE);
    assert(at == run->n_operands);
}

static void fill_steps(remat_run *run, const remat_graph *g)
{
    size_t n;
    const remat_statement *list = remat_program_statements(run->program, &n);
    for (size_t i = 0; i < n; i++) {
        const remat_statement *at = &list[i];
        rm_run_step *s = &run->steps[at->step_index];
        if (i == 0 || list[i - 1].step_index != at->step_index) s->first = i;
        s->end = i + 1;
        if (at->kind == REMAT_ALLOCATE)
            run->registers[at->reg] =
                (rm_register){remat_placement_register(run->placement, at->reg), at->bytes, 0, 0};
        if (at->kind != REMAT_COMPUTE) continue;
        s->step = at->step;
        s->workspace = remat_placement_workspace(run->placement, at->step_index);
        s->workspace_bytes = at->bytes;
        if (at->step.kind != REMAT_RUN) s->bytes = g->storage[g->value_now[at->step.index]];
    }
}

static remat_status check_plan(remat_ctx *ctx, const remat_graph *graph, const remat_plan *plan)
{
    remat_verdict verdict;
    if (rm_plan_is_for(plan, REMAT_KIND_GRAPH, graph->digest, &verdict)) return REMAT_OK;
    return rm_fail(ctx, REMAT_E_PLAN, "%s", verdict.reason);
}

static remat_status fill_run(remat_ctx *ctx, remat_run *run, const remat_graph *graph,
                             const remat_plan *plan, int64_t align)
{
    const int64_t carried = plan->placement.align; /* 0: none */
    const bool as_carried = carried && (align == 0 || align == carried);
    TRY(remat_lower(ctx, graph, plan->steps, plan->n_steps, &run->program));
    if (as_carried) TRY(remat_plan_placement(ctx, graph, plan, &run->placement));
    else TRY(remat_place(ctx, run->program, align, &run->placement));
    run->n_steps = plan->n_steps;
    TRY(allocate(ctx, run, graph));
    fill_operands(run);
    fill_steps(run, graph);
    if (remat_run_arena_bytes(run) == 0) run->arena = (char *)run; /* nobody looks at it */
    return REMAT_OK;
}

remat_status remat_run_new(remat_ctx *ctx, const remat_graph *graph, const remat_plan *plan,
                           int64_t align, remat_run **out)
{
    TRY(check_plan(ctx, graph, plan));
    remat_run *run = rm_alloc(ctx, sizeof *run);
    if (!run) return REMAT_E_MEMORY;
    run->heap = ctx->own_heap;
    const remat_status status = fill_run(ctx, run, graph, plan, align);
    if (status == REMAT_OK) *out = run;
    else remat_run_free(run);
    return status;
}

/* ---- where memory is ---- */

const remat_placement *remat_run_placement(const remat_run *run) { return run->placement; }

int64_t remat_run_arena_bytes(const remat_run *run)
{
    return remat_placement_packing(run->placement)->height_bytes;
}

remat_status remat_run_arena(remat_ctx *ctx, remat_run *run, void *arena, int64_t n_bytes)
{
    const int64_t needed = remat_run_arena_bytes(run),
                  align = remat_placement_align(run->placement);
    if (n_bytes < needed)
        return rm_fail(ctx, REMAT_E_USAGE,
                       "an arena of %" PRId64 " bytes is too small: %" PRId64 " are needed",
                       n_bytes, needed);
    if (needed > 0 && (!arena || (uintptr_t)arena % (uintptr_t)align != 0))
        return rm_fail(ctx, REMAT_E_USAGE, "the arena does not begin at a multiple of %" PRId64,
                       align);
    if (needed > 0) run->arena = arena;
    run->is_resolved = false;
    return REMAT_OK;
}

remat_status remat_run_resident(remat_ctx *ctx, remat_run *run, uint32_t value, void *storage)
{
    if (value >= run->n_values || run->slot[value] == REMAT_NONE)
        return rm_fail(ctx, REMAT_E_USAGE, "value %" PRIu32 " is not resident", value);
    run->residents[run->slot[value]] = storage;
    run->is_resolved = false;
    return REMAT_OK;
}

void *remat_run_output(const remat_run *run, uint32_t index)
{
    if (index >= run->n_outputs || !run->is_resolved) return NULL;
    return run->pointers[run->n_operands - run->n_outputs + index];
}

/* ---- running ---- */

void remat_run_modes(remat_run *run, unsigned modes) { run->modes = modes; }

int64_t remat_run_high_water(const remat_run *run) { return run->high_water; }

remat_status remat_run_steps(remat_ctx *ctx, remat_run *run, const remat_hooks *hooks)
{
    remat_hooks all = REMAT_HOOKS_INIT;
    TRY(rm_answer_check(ctx, hooks->size, "remat_hooks"));
    memcpy(&all, hooks, hooks->size < sizeof all ? hooks->size : sizeof all);
    return rm_run_all(ctx, run, &all);
}

/* ---- traces ---- */

static const char *name_of(const remat_graph *graph, remat_step step)
{
    return step.kind == REMAT_RUN ? remat_graph_op_name(graph, step.index)
                                  : remat_graph_value_name(graph, step.index);
}

/* Times are microseconds since the run began. */
static void write_step(rm_out *out, const remat_run *run, const remat_graph *graph, size_t t)
{
    static const char *const kinds[] = {"run", "offload", "fetch"};
    const rm_run_step *s = &run->steps[t];
    size_t n;
    const remat_statement *list = remat_program_statements(run->program, &n);
    const double begin = (double)(run->times[2 * t] - run->times[0]) / 1e3;
    const double length = (double)(run->times[2 * t + 1] - run->times[2 * t]) / 1e3;
    rm_out_text(out, t ? ",\n{\"name\":" : "\n{\"name\":");
    rm_write_string(out, name_of(graph, s->step));
    rm_out_format(out,
                  ",\"cat\":\"%s\",\"ph\":\"X\",\"ts\":%.3f,\"dur\":%.3f,\"pid\":0,\"tid\":0,"
                  "\"args\":{\"step\":%zu,\"index\":%" PRIu32 "}}",
                  kinds[s->step.kind], begin, length, t, s->step.index);
    for (size_t i = s->first; i < s->end; i++)
        if (list[i].kind == REMAT_COMPUTE)
            rm_out_format(out,
                          ",\n{\"name\":\"memory\",\"ph\":\"C\",\"ts\":%.3f,\"pid\":0,"
                          "\"args\":{\"bytes\":%" PRId64 "}}",
                          begin, list[i].memory_bytes);
}

remat_status remat_run_trace_write(remat_ctx *ctx, const remat_run *run, const remat_graph *graph,
                                   remat_sink *sink, void *user)
{
    rm_out out;
    rm_out_begin(&out, ctx, sink, user);
    rm_out_text(&out, "{\"traceEvents\":[");
    for (size_t t = 0; t < run->n_timed; t++) write_step(&out, run, graph, t);
    rm_out_text(&out, "\n],\"displayTimeUnit\":\"ns\"}\n");
    return rm_out_end(&out);
}
