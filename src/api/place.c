/* place.c: the public side of placement. Every placement passes the verifier's overlap check before
 * it is returned.
 *
 * A register is a span from the step that allocates it to the one that deallocates it, both
 * included. What is made in place of something else shares its register, so it lies there, too. A
 * workspace is a span of one step.
 *
 * Cost: that of the search (src/place), and O(n log n) for the check. */
#include "api/answer.h"
#include "graph/graph.h"
#include "graph/plan.h"
#include "import/spans.h"
#include "place/place.h"
#include "verify/claims.h"
#include "verify/verify.h"
#include "verify/verify_place.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct remat_placement { /* one block */
    remat_alloc heap;
    size_t block_size;
    remat_packing packing;
    int64_t align;
    uint32_t n_regs;
    size_t n_spans, n_steps;
    remat_span *spans; /* of registers, then of workspaces */
    int64_t *offsets;  /* by span */
    uint32_t *of_step; /* by step: the span of its workspace, or REMAT_NONE */
};

/* ---- spans ---- */

void remat_spans_free(remat_spans *spans)
{
    if (!spans) return;
    const remat_alloc heap = spans->heap;
    rm_release(&heap, spans, spans->block_size);
}

const remat_span *remat_spans_list(const remat_spans *spans, size_t *n_spans)
{
    *n_spans = spans->n;
    return spans->list;
}

const char *remat_spans_id(const remat_spans *spans, size_t index)
{
    return index < spans->n ? spans->text + spans->id[index] : "";
}

static remat_status check_offsets(remat_ctx *ctx, const remat_span *spans, size_t n_spans,
                                  const int64_t *offsets, int64_t align, int64_t height,
                                  remat_status fault)
{
    char reason[RM_PLACE_REASON];
    TRY(rm_verify_placement(ctx, spans, offsets, n_spans, align, height, reason));
    return *reason ? rm_fail(ctx, fault, "%s%s",
                             fault == REMAT_E_BUG ? "a placement of ours is wrong: " : "", reason)
                   : REMAT_OK;
}

/* Within limits that somebody has begun. */
static remat_status place_checked(remat_ctx *ctx, const remat_span *spans, size_t n_spans,
                                  int64_t capacity, int64_t align, int64_t *offsets,
                                  remat_packing *out)
{
    TRY(rm_pack_spans(ctx, spans, n_spans, capacity, offsets, out));
    return check_offsets(ctx, spans, n_spans, offsets, align, out->height_bytes, REMAT_E_BUG);
}

remat_status remat_spans_place(remat_ctx *ctx, const remat_span *spans, size_t n_spans,
                               int64_t capacity_bytes, int64_t *offsets, remat_packing *out)
{
    TRY(rm_answer_check(ctx, out->size, "remat_packing"));
    if (capacity_bytes < REMAT_BUDGET_NONE)
        return rm_fail(ctx, REMAT_E_USAGE, "the capacity %" PRId64 " is negative", capacity_bytes);
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_packing packing;
    int64_t *found = NULL;
    rm_input_name(ctx, NULL);
    rm_limits_begin(ctx, 2 * (int64_t)RM_SECOND);
    remat_status status = RM_SCRATCH(ctx, found, n_spans);
    if (status == REMAT_OK)
        status = place_checked(ctx, spans, n_spans, capacity_bytes, 1, found, &packing);
    if (status == REMAT_OK && n_spans) memcpy(offsets, found, n_spans * sizeof *found);
    if (status == REMAT_OK) RM_ANSWER(out, &packing);
    rm_scratch_release(ctx, mark);
    rm_limits_end(ctx);
    return status;
}

static remat_status check_align(remat_ctx *ctx, int64_t align)
{
    const bool is_power = align > 0 && (align & (align - 1)) == 0;
    if (is_power && align <= RM_LARGEST_ALIGN) return REMAT_OK;
    return rm_fail(ctx, REMAT_E_USAGE, "the alignment %" PRId64 " is no power of two up to 2^30",
                   align);
}

remat_status remat_spans_verify(remat_ctx *ctx, const remat_span *spans, size_t n_spans,
                                const int64_t *offsets, int64_t align, int64_t height_bytes)
{
    TRY(check_align(ctx, align));
    const rm_mark mark = rm_scratch_mark(ctx);
    const remat_status status =
        check_offsets(ctx, spans, n_spans, offsets, align, height_bytes, REMAT_E_PLAN);
    rm_scratch_release(ctx, mark);
    return status;
}

/* ---- programs ---- */

/* False: the result passes 2^62. */
static bool round_up(int64_t bytes, int64_t align, int64_t *out)
{
    assert(bytes >= 0 && bytes < RM_MAX_SUM && align > 0);
    *out = (bytes + align - 1) / align * align;
    return *out < RM_MAX_SUM;
}

typedef struct counts {
    uint32_t n_regs;
    size_t n_workspaces, n_steps;
} counts;

static counts count_statements(const remat_statement *statements, size_t n)
{
    counts c = {0};
    for (size_t i = 0; i < n; i++) {
        c.n_regs += statements[i].kind == REMAT_ALLOCATE;
        c.n_steps += statements[i].kind == REMAT_COMPUTE;
        c.n_workspaces += statements[i].kind == REMAT_COMPUTE && statements[i].bytes > 0;
    }
    return c;
}

static remat_status new_placement(remat_ctx *ctx, counts c, remat_placement **out)
{
    const size_t n_spans = c.n_regs + c.n_workspaces;
    size_t spans_size, steps_size, size;
    if (rm_mul_overflows(n_spans, sizeof(remat_span) + sizeof(int64_t), &spans_size) ||
        rm_mul_overflows(c.n_steps, sizeof(uint32_t), &steps_size) ||
        rm_add_overflows(spans_size, steps_size, &size) ||
        rm_add_overflows(size, sizeof(remat_placement), &size))
        return rm_no_memory(ctx);
    remat_placement *p = rm_alloc(ctx, size);
    if (!p) return REMAT_E_MEMORY;
    p->heap = ctx->own_heap;
    p->block_size = size;
    p->n_regs = c.n_regs;
    p->n_spans = n_spans;
    p->n_steps = c.n_steps;
    p->spans = (remat_span *)(void *)(p + 1);
    p->offsets = (int64_t *)(void *)(p->spans + n_spans);
    p->of_step = (uint32_t *)(void *)(p->offsets + n_spans);
    *out = p;
    return REMAT_OK;
}

static remat_status fill_spans(remat_ctx *ctx, const remat_statement *statements, size_t n,
                               remat_placement *p)
{
    size_t workspaces = p->n_regs;
    for (size_t i = 0; i < n; i++) {
        const remat_statement *s = &statements[i];
        const int64_t step = s->step_index;
        int64_t bytes;
        if (!round_up(s->bytes, p->align, &bytes))
            return rm_fail(ctx, REMAT_E_INPUT, "step %" PRId64 ": aligned sizes pass 2^62", step);
        if (s->kind == REMAT_ALLOCATE)
            p->spans[s->reg] = (remat_span){step, (int64_t)p->n_steps, bytes};
        if (s->kind == REMAT_DEALLOCATE) p->spans[s->reg].end = step + 1;
        if (s->kind != REMAT_COMPUTE) continue;
        p->of_step[step] = s->bytes ? (uint32_t)workspaces : REMAT_NONE;
        if (s->bytes) p->spans[workspaces++] = (remat_span){step, step + 1, bytes};
    }
    assert(workspaces == p->n_spans);
    return REMAT_OK;
}

static remat_status place_program(remat_ctx *ctx, const remat_program *program, int64_t align,
                                  remat_placement **out)
{
    size_t n;
    const remat_statement *statements = remat_program_statements(program, &n);
    remat_placement *p = NULL;
    TRY(new_placement(ctx, count_statements(statements, n), &p));
    p->align = align;
    remat_status status = fill_spans(ctx, statements, n, p);
    if (status == REMAT_OK)
        status = place_checked(ctx, p->spans, p->n_spans, REMAT_BUDGET_NONE, align, p->offsets,
                               &p->packing);
    if (status == REMAT_OK) *out = p;
    else remat_placement_free(p);
    return status;
}

remat_status remat_place(remat_ctx *ctx, const remat_program *program, int64_t align,
                         remat_placement **out)
{
    if (align == 0) align = REMAT_ALIGN;
    TRY(check_align(ctx, align));
    const rm_mark mark = rm_scratch_mark(ctx);
    rm_input_name(ctx, NULL);
    rm_limits_begin(ctx, 2 * (int64_t)RM_SECOND);
    const remat_status status = place_program(ctx, program, align, out);
    rm_scratch_release(ctx, mark);
    rm_limits_end(ctx);
    return status;
}

void remat_placement_free(remat_placement *placement)
{
    if (!placement) return;
    const remat_alloc heap = placement->heap;
    rm_release(&heap, placement, placement->block_size);
}

const remat_packing *remat_placement_packing(const remat_placement *placement)
{
    return &placement->packing;
}

int64_t remat_placement_align(const remat_placement *placement) { return placement->align; }

int64_t remat_placement_register(const remat_placement *placement, uint32_t reg)
{
    return reg < placement->n_regs ? placement->offsets[reg] : REMAT_ABSENT;
}

int64_t remat_placement_workspace(const remat_placement *placement, size_t step)
{
    if (step >= placement->n_steps || placement->of_step[step] == REMAT_NONE) return REMAT_ABSENT;
    return placement->offsets[placement->of_step[step]];
}

const remat_span *remat_placement_spans(const remat_placement *placement, size_t *n_spans)
{
    *n_spans = placement->n_spans;
    return placement->spans;
}

/* ---- plans with their placement ---- */

/* Those that are made in place have no register of their own. */
static bool makes_storage(const remat_statement *s)
{
    return s->kind == REMAT_ALLOCATE || s->kind == REMAT_REUSE;
}

static size_t count_made(const remat_statement *statements, size_t n)
{
    size_t n_made = 0;
    for (size_t i = 0; i < n; i++) n_made += makes_storage(&statements[i]);
    return n_made;
}

/* Offsets of storages by value and instance, in the order in which they are made, and of
 * workspaces by step. */
static remat_status list_offsets(remat_ctx *ctx, const remat_graph *g, const remat_program *program,
                                 const remat_placement *from, rm_plan_placement *out)
{
    size_t n;
    uint32_t *instances;
    const remat_statement *statements = remat_program_statements(program, &n);
    *out = (rm_plan_placement){.align = from->align, .arena_bytes = from->packing.height_bytes};
    TRY(RM_SCRATCH(ctx, out->offsets, count_made(statements, n) + from->n_spans - from->n_regs));
    TRY(RM_SCRATCH(ctx, instances, g->n_original_values));
    for (size_t i = 0; i < n; i++) {
        const remat_statement *s = &statements[i];
        if (!makes_storage(s)) continue;
        out->offsets[out->n_storages++] =
            (rm_offset){s->value, instances[s->value]++, from->offsets[s->reg]};
    }
    rm_offset *workspaces = out->offsets + out->n_storages;
    for (size_t t = 0; t < from->n_steps; t++)
        if (from->of_step[t] != REMAT_NONE)
            workspaces[out->n_workspaces++] =
                (rm_offset){(uint32_t)t, 0, from->offsets[from->of_step[t]]};
    return REMAT_OK;
}

static remat_status place_plan(remat_ctx *ctx, const remat_graph *g, const remat_plan *plan,
                               const remat_program *program, const remat_placement *placement,
                               remat_plan **out)
{
    rm_plan_placement listed;
    remat_plan *placed = NULL;
    remat_verdict verdict = REMAT_VERDICT_INIT;
    TRY(list_offsets(ctx, g, program, placement, &listed));
    TRY(rm_plan_with_placement(ctx, plan, &listed, &placed));
    remat_status status = rm_verify_offsets(ctx, g, placed, &verdict);
    if (status == REMAT_OK && *verdict.reason)
        status = rm_fail(ctx, REMAT_E_BUG, "a placement of ours is wrong: %s", verdict.reason);
    if (status == REMAT_OK) *out = placed;
    else remat_plan_free(placed);
    return status;
}

remat_status remat_plan_place(remat_ctx *ctx, const remat_graph *graph, const remat_plan *plan,
                              int64_t align, remat_plan **out)
{
    remat_verdict verdict;
    remat_program *program = NULL;
    remat_placement *placement = NULL;
    if (!rm_plan_is_for(plan, REMAT_KIND_GRAPH, graph->digest, &verdict))
        return rm_fail(ctx, REMAT_E_PLAN, "%s", verdict.reason);
    remat_status status = remat_lower(ctx, graph, plan->steps, plan->n_steps, &program);
    if (status == REMAT_OK) status = remat_place(ctx, program, align, &placement);
    const rm_mark mark = rm_scratch_mark(ctx);
    if (status == REMAT_OK) status = place_plan(ctx, graph, plan, program, placement, out);
    rm_scratch_release(ctx, mark);
    remat_placement_free(placement);
    remat_program_free(program);
    return status;
}

static int by_owner(const void *a, const void *b)
{
    const rm_offset *x = a, *y = b;
    if (x->index != y->index) return x->index < y->index ? -1 : 1;
    return x->instance < y->instance ? -1 : x->instance > y->instance;
}

/* The entry for the instance of the value, or of the step, or NULL. The list is sorted. */
static const rm_offset *find_offset(const rm_offset *list, size_t n, uint32_t index,
                                    uint32_t instance)
{
    const rm_offset wanted = {index, instance, 0};
    return n ? bsearch(&wanted, list, n, sizeof *list, by_owner) : NULL;
}

/* What has no bytes need not be in the plan: it lies at 0. What is made in place of something lies
 * where that does, and counts as an instance of its value. */
static remat_status take_offsets(remat_ctx *ctx, const remat_graph *g, const remat_plan *plan,
                                 const remat_program *program, remat_placement *p)
{
    const rm_plan_placement *from = &plan->placement;
    const size_t n_listed = from->n_storages + from->n_workspaces;
    size_t n;
    uint32_t *instances;
    rm_offset *list;
    const remat_statement *statements = remat_program_statements(program, &n);
    TRY(RM_SCRATCH(ctx, instances, g->n_original_values));
    TRY(RM_SCRATCH(ctx, list, n_listed));
    if (n_listed) memcpy(list, from->offsets, n_listed * sizeof *list);
    rm_offset *of_steps = list + from->n_storages;
    if (from->n_storages) qsort(list, from->n_storages, sizeof *list, by_owner);
    if (from->n_workspaces) qsort(of_steps, from->n_workspaces, sizeof *list, by_owner);
    for (size_t i = 0; i < n; i++) {
        const remat_statement *s = &statements[i];
        if (!makes_storage(s)) continue;
        const uint32_t instance = instances[s->value]++;
        if (s->kind == REMAT_REUSE) continue;
        const rm_offset *found = find_offset(list, from->n_storages, s->value, instance);
        p->offsets[s->reg] = found ? found->offset : 0;
    }
    for (size_t t = 0; t < p->n_steps; t++) {
        const rm_offset *found = find_offset(of_steps, from->n_workspaces, (uint32_t)t, 0);
        if (p->of_step[t] != REMAT_NONE) p->offsets[p->of_step[t]] = found ? found->offset : 0;
    }
    return REMAT_OK;
}

static remat_status load_of(remat_ctx *ctx, const remat_placement *p, int64_t *load)
{
    int64_t *change, sum = 0;
    TRY(RM_SCRATCH(ctx, change, p->n_steps + 1));
    for (size_t i = 0; i < p->n_spans; i++) {
        change[p->spans[i].begin] += p->spans[i].bytes;
        change[p->spans[i].end] -= p->spans[i].bytes;
    }
    *load = 0;
    for (size_t t = 0; t < p->n_steps; t++) {
        sum += change[t];
        if (sum > *load) *load = sum;
    }
    return REMAT_OK;
}

static remat_status carried_placement(remat_ctx *ctx, const remat_graph *g, const remat_plan *plan,
                                      const remat_program *program, remat_placement *p)
{
    size_t n;
    const remat_statement *statements = remat_program_statements(program, &n);
    const int64_t height = plan->placement.arena_bytes;
    int64_t load;
    remat_verdict verdict = REMAT_VERDICT_INIT;
    TRY(rm_verify_offsets(ctx, g, plan, &verdict));
    if (*verdict.reason) return rm_fail(ctx, REMAT_E_PLAN, "%s", verdict.reason);
    p->align = plan->placement.align;
    TRY(fill_spans(ctx, statements, n, p));
    TRY(take_offsets(ctx, g, plan, program, p));
    TRY(load_of(ctx, p, &load));
    p->packing = (remat_packing){.size = sizeof p->packing,
                                 .height_bytes = height,
                                 .bound_bytes = load,
                                 .load_bytes = load,
                                 .outcome = height == load ? REMAT_OPTIMAL : REMAT_FEASIBLE};
    return REMAT_OK;
}

remat_status remat_plan_placement(remat_ctx *ctx, const remat_graph *graph, const remat_plan *plan,
                                  remat_placement **out)
{
    remat_verdict verdict;
    remat_program *program = NULL;
    remat_placement *p = NULL;
    size_t n;
    if (!rm_plan_is_for(plan, REMAT_KIND_GRAPH, graph->digest, &verdict))
        return rm_fail(ctx, REMAT_E_PLAN, "%s", verdict.reason);
    if (!plan->placement.align) return rm_fail(ctx, REMAT_E_PLAN, "the plan has no placement");
    TRY(remat_lower(ctx, graph, plan->steps, plan->n_steps, &program));
    const rm_mark mark = rm_scratch_mark(ctx);
    const remat_statement *statements = remat_program_statements(program, &n);
    remat_status status = new_placement(ctx, count_statements(statements, n), &p);
    if (status == REMAT_OK) status = carried_placement(ctx, graph, plan, program, p);
    rm_scratch_release(ctx, mark);
    remat_program_free(program);
    if (status == REMAT_OK) *out = p;
    else remat_placement_free(p);
    return status;
}

/* ---- graphs with aligned sizes ---- */

/* Their ops cost what they did. What ops cost that are kernels, or run inside one, cannot be told
 * from the copy alone. */
static void copy_costs(const remat_graph *from, remat_graph *to)
{
    assert(from->n_ops == to->n_ops);
    for (uint32_t op = 0; op < from->n_ops; op++) to->cost[op] = from->cost[op];
    to->total_cost = from->total_cost;
}

remat_status remat_graph_align(remat_ctx *ctx, const remat_graph *graph, int64_t align,
                               remat_graph **out)
{
    if (align == 0) align = REMAT_ALIGN;
    TRY(check_align(ctx, align));
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_graph *aligned = NULL;
    remat_status status = rm_prepare(ctx, graph, 0, NULL, &aligned);
    rm_scratch_release(ctx, mark);
    if (status == REMAT_OK) copy_costs(graph, aligned);
    if (status == REMAT_OK) status = rm_graph_round(ctx, aligned, align);
    if (status == REMAT_OK) *out = aligned;
    else remat_graph_free(aligned);
    return status;
}
