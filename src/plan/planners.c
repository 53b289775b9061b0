/* planners.c: the table of strategies, and how two of their schedules compare.
 *
 * Invariant: an incumbent's peak and cost are those that liveness.c measured for its steps. An
 * offer costs what measuring it costs: linear in its steps and what they read. */
#include "plan/planner.h"

#include <assert.h>
#include <string.h>

static const rm_planner *const planners[] = {
    &rm_keep_all,    &rm_periodic,     &rm_chen_sqrt,      &rm_chen_greedy,    &rm_ap_sqrt,
    &rm_ap_greedy,   &rm_lin_sqrt,     &rm_lin_greedy,     &rm_revolve,        &rm_rotor,
    &rm_rotor_float, &rm_save_inputs,  &rm_save_layers,    &rm_mincut,         &rm_fastsa_group,
    &rm_fastsa,      &rm_fastsa_order, &rm_fastsa_offload, &rm_checkmate_milp, &rm_checkmate_lp,
    &rm_auto,        &rm_exact};

const remat_entry *remat_strategy_at(size_t index)
{
    return index < RM_LEN(planners) ? &planners[index]->entry : NULL;
}

const rm_planner *rm_planner_find(remat_ctx *ctx, const char *name)
{
    char known[400] = "";
    for (size_t i = 0; i < RM_LEN(planners); i++) {
        if (strcmp(planners[i]->entry.name, name) == 0) return planners[i];
        if (i) strncat(known, ", ", sizeof known - strlen(known) - 1);
        strncat(known, planners[i]->entry.name, sizeof known - strlen(known) - 1);
    }
    rm_fail(ctx, REMAT_E_USAGE, "unknown strategy '%.60s': %s", name, known);
    return NULL;
}

const char *remat_strategy_heeds(size_t index)
{
    if (index >= RM_LEN(planners) || !planners[index]->heeds) return "";
    return planners[index]->heeds;
}

static bool heeds(const rm_planner *planner, const char *option)
{
    const size_t length = strlen(option);
    for (const char *p = planner->heeds; p && *p; p += strspn(p, " ")) {
        const size_t word = strcspn(p, " ");
        if (word == length && memcmp(p, option, length) == 0) return true;
        p += word;
    }
    return false;
}

remat_status rm_planner_obeys(remat_ctx *ctx, const rm_planner *planner)
{
    const rm_options *o = &ctx->options;
    const char *option = NULL;
    if (planner == &rm_keep_all) return REMAT_OK; /* it runs nothing again and moves nothing */
    if (o->order_only && o->offload)
        return rm_fail(ctx, REMAT_E_APPLIES, "options order_only and offload exclude each other");
    if (o->order_only && !heeds(planner, "order_only")) option = "order_only";
    if (o->offload && !heeds(planner, "offload")) option = "offload";
    if (!option) return REMAT_OK;
    return rm_fail(ctx, REMAT_E_APPLIES, "%s does not heed the option %s", planner->entry.name,
                   option);
}

bool rm_fits(const rm_problem *p, int64_t peak_bytes)
{
    return p->budget_bytes < 0 || peak_bytes <= p->budget_bytes;
}

bool rm_is_settled(const rm_problem *p, const rm_incumbent *best)
{
    if (best->infeasible) return true;
    if (!best->any || !rm_fits(p, best->peak_bytes)) return false;
    return best->cost == p->graph->total_cost ||
           (best->bound.scope && strcmp(best->bound.scope, "any-order") == 0 &&
            best->bound.cost == best->cost);
}

bool rm_is_better(const rm_problem *p, int64_t peak_bytes, int64_t cost, const rm_incumbent *best)
{
    if (!best->any) return true;
    const bool fits = rm_fits(p, peak_bytes);
    if (fits != rm_fits(p, best->peak_bytes)) return fits;
    if (fits && p->budget_bytes != REMAT_BUDGET_MIN)
        return cost != best->cost ? cost < best->cost : peak_bytes < best->peak_bytes;
    return peak_bytes != best->peak_bytes ? peak_bytes < best->peak_bytes : cost < best->cost;
}

remat_status rm_schedule_copy(remat_ctx *ctx, rm_schedule *to, const rm_schedule *from)
{
    assert(to != from);
    to->n = 0;
    TRY(RM_RESERVE(ctx, *to, from->n));
    if (from->n) memcpy(to->items, from->items, from->n * sizeof *from->items);
    to->n = from->n;
    return REMAT_OK;
}

static remat_status offer(const rm_problem *p, rm_incumbent *best, const rm_schedule *candidate)
{
    rm_liveness l;
    best->offered_peak_bytes = INT64_MAX;
    const remat_status status = rm_liveness_of(p->ctx, p->graph, candidate->items, candidate->n,
                                               p->ctx->options.bandwidth, &l);
    if (status == REMAT_E_PLAN) return REMAT_OK; /* its cost or memory passes 2^62: no candidate */
    TRY(status);
    best->offered_peak_bytes = l.peak_bytes;
    if (!rm_is_better(p, l.peak_bytes, l.cost, best)) return REMAT_OK;
    TRY(rm_schedule_copy(p->ctx, &best->steps, candidate));
    best->any = true;
    best->peak_bytes = l.peak_bytes;
    best->cost = l.cost;
    best->proved = 0;
    return REMAT_OK;
}

remat_status rm_offer(const rm_problem *p, rm_incumbent *best, const rm_schedule *candidate)
{
    const rm_mark mark = rm_scratch_mark(p->ctx);
    const remat_status status = offer(p, best, candidate);
    rm_scratch_release(p->ctx, mark);
    return status;
}

remat_status rm_offer_codes(const rm_problem *p, const rm_normal *nm, const rm_codes *codes,
                            rm_incumbent *best)
{
    best->offered_peak_bytes = INT64_MAX;
    if (codes->n == 0 && nm->n_ops > 0) return REMAT_OK; /* none was found in time */
    rm_schedule steps = {0};
    remat_status status = rm_normal_expand(p->ctx, nm, codes->items, codes->n, &steps);
    if (status == REMAT_OK) status = rm_offer(p, best, &steps);
    RM_VEC_FREE(&p->ctx->heap, steps);
    return status;
}

remat_status rm_try_planner(const rm_problem *p, const rm_planner *planner, double share,
                            rm_incumbent *best)
{
    assert(share > 0 && share <= 1);
    remat_ctx *ctx = p->ctx;
    const rm_mark mark = rm_scratch_mark(ctx);
    rm_limit_push(ctx, share, planner->default_work);
    const remat_status status = planner->run(p, best);
    rm_limit_pop(ctx);
    rm_scratch_release(ctx, mark);
    return status == REMAT_E_APPLIES || rm_is_too_much_memory(ctx, status) ? REMAT_OK : status;
}
