/* plan.c: making, reading and freeing a plan.
 *
 * Invariant: a plan is one block. The steps lie behind the struct, then the prices and the heirs of
 * each certificate, then the strings, and at the end the offsets of a placement.
 *
 * Cost: O(n log n) in the steps, to count which ops run more than once. */
#include "graph/plan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(remat_plan) % _Alignof(remat_step) == 0 &&
                   (sizeof(remat_plan) | sizeof(remat_step)) % _Alignof(rm_price) == 0 &&
                   sizeof(rm_price) % _Alignof(rm_heir) == 0 &&
                   sizeof(rm_heir) % _Alignof(rm_price) == 0,
               "each part of the block is aligned, however many items come before it");

#define STRINGS(s)                                                                                 \
    {&(s).strategy,  &(s).graph,       &(s).digest,       &(s).cost_model,                         \
     &(s).cost_unit, &(s).bound_scope, &(s).bound_method, &(s).any_order_method}

/* How many ops, or stages going forward, run more than once. It sorts them, because the indices in
 * a file may be any. */
static remat_status count_repeats(remat_ctx *ctx, const remat_step *steps, size_t n, uint32_t *out)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    uint32_t *ran;
    size_t n_ran = 0;
    *out = 0;
    TRY(RM_SCRATCH(ctx, ran, n));
    for (size_t i = 0; i < n; i++) {
        const remat_step_kind kind = steps[i].kind;
        if (kind == REMAT_RUN || (kind >= REMAT_F_ALL && kind < REMAT_B))
            ran[n_ran++] = steps[i].index;
    }
    qsort(ran, n_ran, sizeof *ran, rm_by_index);
    for (size_t i = 1; i < n_ran; i++)
        *out += ran[i] == ran[i - 1] && (i == 1 || ran[i] != ran[i - 2]);
    rm_scratch_release(ctx, mark);
    return REMAT_OK;
}

/* Copies n items to `to`. An empty list may be NULL. */
static void copy_items(void *to, const void *from, size_t n, size_t item_size)
{
    if (n) memcpy(to, from, n * item_size);
}

static size_t certificate_size(const rm_certificate *x)
{
    return x->n_prices * sizeof *x->prices + x->n_heirs * sizeof *x->heirs;
}

/* Copies the lists to `at`, and answers the first byte behind them. */
static char *place_certificate(rm_certificate *to, const rm_certificate *from, void *at)
{
    *to = *from;
    to->prices = at;
    to->heirs = (rm_heir *)(void *)(to->prices + from->n_prices);
    copy_items(to->prices, from->prices, from->n_prices, sizeof *from->prices);
    copy_items(to->heirs, from->heirs, from->n_heirs, sizeof *from->heirs);
    return (char *)(to->heirs + from->n_heirs);
}

remat_status rm_plan_new(remat_ctx *ctx, const remat_summary *summary, const remat_step *steps,
                         size_t n_steps, const rm_certificates *certificates, remat_plan **out)
{
    const rm_certificates none = {.own_order = {.scale = 0}},
                          *from = certificates ? certificates : &none;
    remat_summary copied = *summary;
    copied.steps = (uint32_t)n_steps;
    TRY(count_repeats(ctx, steps, n_steps, &copied.recomputed_ops));
    const char **strings[] = STRINGS(copied);
    size_t bytes = 0;
    for (size_t i = 0; i < RM_LEN(strings); i++) bytes += strlen(*strings[i]) + 1;
    const size_t size = sizeof(remat_plan) + n_steps * sizeof *steps +
                        certificate_size(&from->own_order) + certificate_size(&from->any_order) +
                        bytes;
    remat_plan *plan = rm_alloc(ctx, size);
    if (!plan) return REMAT_E_MEMORY;
    plan->heap = ctx->own_heap;
    plan->block_size = size;
    plan->graph_ops = REMAT_NONE;
    plan->graph_values = REMAT_NONE;
    plan->claimed_within = -1;
    plan->n_steps = n_steps;
    plan->steps = (remat_step *)(void *)(plan + 1);
    copy_items(plan->steps, steps, n_steps, sizeof *steps);
    char *text =
        place_certificate(&plan->certificates.own_order, &from->own_order, plan->steps + n_steps);
    text = place_certificate(&plan->certificates.any_order, &from->any_order, text);
    for (size_t i = 0; i < RM_LEN(strings); i++) {
        const size_t n = strlen(*strings[i]) + 1;
        *strings[i] = memcpy(text, *strings[i], n);
        text += n;
    }
    assert(text == (char *)plan + size);
    plan->summary = copied;
    *out = plan;
    return REMAT_OK;
}

/* Where what lies at `from` in the block of one plan lies in its copy. */
static void *moved(const remat_plan *plan, remat_plan *copy, const void *from)
{
    return (char *)copy + ((const char *)from - (const char *)plan);
}

static void move_certificate(const remat_plan *plan, remat_plan *copy, rm_certificate *x)
{
    x->prices = moved(plan, copy, x->prices);
    x->heirs = moved(plan, copy, x->heirs);
}

remat_status rm_plan_with_placement(remat_ctx *ctx, const remat_plan *plan,
                                    const rm_plan_placement *placement, remat_plan **out)
{
    const size_t n = placement->n_storages + placement->n_workspaces, unit = _Alignof(rm_offset);
    const size_t used = plan->placement.align
                            ? (size_t)((const char *)plan->placement.offsets - (const char *)plan)
                            : (plan->block_size + unit - 1) / unit * unit;
    size_t size;
    if (rm_mul_overflows(n, sizeof(rm_offset), &size) || rm_add_overflows(size, used, &size))
        return rm_no_memory(ctx);
    remat_plan *copy = rm_alloc(ctx, size);
    if (!copy) return REMAT_E_MEMORY;
    memcpy(copy, plan, used < plan->block_size ? used : plan->block_size);
    copy->heap = ctx->own_heap;
    copy->block_size = size;
    copy->steps = moved(plan, copy, plan->steps);
    move_certificate(plan, copy, &copy->certificates.own_order);
    move_certificate(plan, copy, &copy->certificates.any_order);
    const char **strings[] = STRINGS(copy->summary);
    for (size_t i = 0; i < RM_LEN(strings); i++) *strings[i] = moved(plan, copy, *strings[i]);
    copy->placement = *placement;
    copy->placement.offsets = (rm_offset *)(void *)((char *)copy + used);
    copy_items(copy->placement.offsets, placement->offsets, n, sizeof(rm_offset));
    *out = copy;
    return REMAT_OK;
}

void remat_plan_free(remat_plan *plan)
{
    if (!plan) return;
    const remat_alloc heap = plan->heap;
    rm_release(&heap, plan, plan->block_size);
}

const remat_summary *remat_plan_summary(const remat_plan *plan) { return &plan->summary; }

const remat_step *remat_plan_steps(const remat_plan *plan, size_t *n_steps)
{
    *n_steps = plan->n_steps;
    return plan->steps;
}

int64_t remat_plan_arena_bytes(const remat_plan *plan)
{
    return plan->placement.align ? plan->placement.arena_bytes : REMAT_ABSENT;
}

remat_status remat_plan_status(const remat_plan *plan)
{
    if (plan->summary.within_budget) return REMAT_OK;
    return plan->summary.outcome == REMAT_INFEASIBLE ? REMAT_E_INFEASIBLE : REMAT_E_NOT_FOUND;
}

static const char *const outcomes[] = {[REMAT_UNKNOWN] = "unknown",
                                       [REMAT_FEASIBLE] = "feasible",
                                       [REMAT_OPTIMAL] = "optimal",
                                       [REMAT_INFEASIBLE] = "infeasible"};

const char *rm_outcome_name(remat_outcome outcome)
{
    assert((size_t)outcome < RM_LEN(outcomes));
    return outcomes[outcome];
}

bool rm_outcome_parse(const char *name, remat_outcome *out)
{
    for (size_t i = 0; i < RM_LEN(outcomes); i++)
        if (strcmp(outcomes[i], name) == 0) {
            *out = (remat_outcome)i;
            return true;
        }
    return false;
}

const rm_flag_name rm_flag_names[] = {{"dce", REMAT_DCE},
                                      {"fold_identity", REMAT_FOLD_IDENTITY},
                                      {"no_alias", REMAT_NO_ALIAS},
                                      {"replay_random", REMAT_REPLAY_RANDOM},
                                      {"fuse", REMAT_FUSE},
                                      {"inplace", REMAT_INPLACE},
                                      {NULL, 0}};
