/* checkmate.c: the optimal schedule in the graph's own order, by mixed integer programming
 * (Checkmate, section 4).
 *
 * What other strategies find is brought into Checkmate's form first: which storages are kept
 * between which first runs, then the least recomputation for that (optimal_r.c). The best that fits
 * is the solver's start. It also says which ops are too dear to run again at all.
 *
 * The solver's solutions are offered as they come, so that a limit or Ctrl-C leaves the best of
 * them. Its lower limit is the bound, with scope "checkmate": no schedule of its form is cheaper.
 *
 * The option checkmate_plain solves the program as printed, without any of this help.
 *
 * Cost: that of the solver; before it, O(seeds * ops * edges). Work is the solver's
 * (backend_highs.c). */
#include "plan/checkmate/checkmate_start.h"

#include "plan/checkmate/checkmate_model.h"

typedef struct milp {
    const rm_problem *p;
    const rm_normal *nm;
    rm_incumbent *best;
    rm_checkmate program;
    rm_codes codes;
} milp;

static bool has_fitting(const milp *c)
{
    return c->best->any && rm_fits(c->p, c->best->peak_bytes);
}

/* What a lower limit on the objective says of costs. It is never above a plan that we have: the
 * solver's numbers are rounded. */
static int64_t bound_cost(const milp *c, double objective)
{
    const int64_t cost = rm_checkmate_cost(&c->program, objective);
    return has_fitting(c) && cost > c->best->cost ? c->best->cost : cost;
}

/* *fits: it is a schedule, and within the budget. */
static remat_status offer_solution(milp *c, const double *values, bool *fits)
{
    remat_ctx *ctx = c->p->ctx;
    uint32_t op;
    const char *fault;
    *fits = false;
    TRY(rm_checkmate_codes(ctx, &c->program, values, &c->codes));
    TRY(rm_codes_fault(ctx, c->nm, &c->codes, &op, &fault));
    if (fault) return REMAT_OK;
    TRY(rm_offer_codes(c->p, c->nm, &c->codes, c->best));
    *fits = rm_fits(c->p, c->best->offered_peak_bytes);
    if (c->program.any_order || c->program.splits > 1) return REMAT_OK;
    /* The same without runs that serve nobody. */
    return rm_offer_in_turns(c->p, c->nm, &c->codes, c->best);
}

static remat_status on_progress(void *user, const double *values, double bound)
{
    milp *c = user;
    remat_ctx *ctx = c->p->ctx;
    const rm_incumbent *best = c->best;
    bool is_fit;
    if (values) TRY(offer_solution(c, values, &is_fit));
    const bool fits = has_fitting(c);
    const int64_t first = c->program.first_cost;
    double done = 0; /* the part of the re-runs' cost that is proved */
    ctx->bound_cost = bound_cost(c, bound);
    if (fits && best->cost > first)
        done = (double)(ctx->bound_cost - first) / (double)(best->cost - first);
    rm_report(ctx, rm_checkmate_milp.entry.name, (int)(1000 * done),
              fits ? best->cost : REMAT_ABSENT, fits ? best->peak_bytes : REMAT_ABSENT);
    return REMAT_OK;
}

/* to_the_end: the solver was not allowed a gap. */
static remat_status conclude(milp *c, const rm_solved *solved, bool to_the_end)
{
    bool is_fit = false;
    if (solved->any) TRY(offer_solution(c, solved->x, &is_fit));
    if (!has_fitting(c)) {
        if (solved->outcome == RM_SOLVE_INFEASIBLE)
            rm_warn(c->p->ctx, "proved: no schedule of Checkmate's form fits the budget");
        return REMAT_OK;
    }
    const bool is_optimal = solved->outcome == RM_SOLVE_OPTIMAL && is_fit && to_the_end;
    c->best->bound.cost = is_optimal ? c->best->cost : bound_cost(c, solved->bound);
    c->best->bound.scope = "checkmate";
    c->best->bound.method = "milp";
    return REMAT_OK;
}

static remat_status solve(milp *c, const rm_backend *backend)
{
    remat_ctx *ctx = c->p->ctx;
    double *start;
    bool starts = false;
    rm_solved solved;
    TRY(rm_checkmate_build(ctx, &c->program));
    TRY(RM_SCRATCH(ctx, start, c->program.model.columns.n));
    if (has_fitting(c)) {
        TRY(rm_codes_of_steps(ctx, c->nm, &c->best->steps, &c->codes));
        TRY(rm_checkmate_start(ctx, &c->program, &c->codes, start, &starts));
    }
    /* Costs are whole units, so a gap of half a unit is none. */
    const double scale = c->program.cost_scale, half = 0.5 * (double)c->program.cost_unit * scale;
    const double allowed =
        (double)ctx->options.mip_gap * 1e-6 * (double)c->p->graph->total_cost * scale;
    const rm_solve how = {.gap = fmax(allowed, fmax(1e-6, half)),
                          .start = starts ? start : NULL,
                          .threads = ctx->options.threads,
                          .on_progress = on_progress,
                          .user = c};
    TRY(rm_solve_in_child(backend, ctx, &c->program.model, &how, &solved));
    return conclude(c, &solved, ctx->options.mip_gap == 0);
}

static remat_status plan(void *user, const rm_problem *p, const rm_normal *nm,
                         const rm_backend *backend, int64_t need_bytes)
{
    milp *c = user;
    remat_ctx *ctx = p->ctx;
    (void)need_bytes;
    c->p = p;
    c->nm = nm;
    const bool plain = ctx->options.checkmate_plain;
    if (!plain) TRY(rm_checkmate_seed(c->p, c->nm, c->best));
    if (rm_is_over(ctx)) return REMAT_OK;
    const bool any_order = ctx->options.checkmate_order;
    int64_t most_extra = INT64_MAX;
    if (has_fitting(c) && !plain && !any_order)
        most_extra = c->best->cost - c->p->graph->total_cost;
    c->program = (rm_checkmate){.nm = c->nm,
                                .budget_bytes = c->p->budget_bytes,
                                .splits = (uint32_t)ctx->options.checkmate_splits,
                                .any_order = any_order,
                                .plain = plain,
                                .most_extra = most_extra,
                                .model.most_terms = rm_checkmate_entries(ctx)};
    const remat_status status = solve(c, backend);
    rm_checkmate_free(ctx, &c->program);
    return status;
}

static remat_status run(const rm_problem *p, rm_incumbent *best)
{
    milp c = {.best = best};
    const remat_status status = rm_checkmate_run(p, best, plan, &c);
    RM_VEC_FREE(&p->ctx->heap, c.codes);
    return status;
}

const rm_planner rm_checkmate_milp = {
    .entry = {"checkmate", "optimal in the graph's order by mixed integer programming (needs "
                           "HiGHS); --time 3600 as in the paper"},
    .default_work = 2 * (int64_t)RM_SECOND,
    .run = run,
    .heeds = "checkmate_entries checkmate_order checkmate_plain checkmate_splits mip_gap"};
