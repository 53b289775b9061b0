/* checkmate.c: the optimal schedule in the graph's own order, by mixed integer programming
 * (Checkmate, section 4).
 *
 * What other strategies find is brought into Checkmate's form first: which storages are kept
 * between which first runs, then the least recomputation for that (optimal_r.c). The best that fits
 * is the solver's start, and says which ops are too dear to run again at all. The solver's
 * solutions are offered as they come, so that a limit or Ctrl-C leaves the best of them; its lower
 * limit is the bound, with scope "checkmate": no schedule of its form is cheaper. (option
 * checkmate_plain: the program as printed, and no help.)
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

static int64_t bound_cost(const milp *c, double objective)
{
    const int64_t cost = rm_checkmate_cost(&c->program, objective);
    return c->best->any && rm_fits(c->p, c->best->peak_bytes) && cost > c->best->cost
               ? c->best->cost
               : cost;
}

/* fits: it is a schedule, and within the budget. */
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
    return rm_offer_in_turns(c->p, c->nm, &c->codes, c->best); /* without runs that serve nobody */
}

static remat_status on_progress(void *user, const double *values, double bound)
{
    milp *c = user;
    remat_ctx *ctx = c->p->ctx;
    bool is_fit;
    if (values) TRY(offer_solution(c, values, &is_fit));
    const bool fits = c->best->any && rm_fits(c->p, c->best->peak_bytes);
    ctx->bound_cost = bound_cost(c, bound);
    const double gap = fits && c->best->cost > c->program.first_cost
                           ? (double)(ctx->bound_cost - c->program.first_cost) /
                                 (double)(c->best->cost - c->program.first_cost)
                           : 0;
    rm_report(ctx, rm_checkmate_milp.entry.name, (int)(1000 * gap),
              fits ? c->best->cost : REMAT_ABSENT, fits ? c->best->peak_bytes : REMAT_ABSENT);
    return REMAT_OK;
}

static remat_status conclude(milp *c, const rm_solved *solved, bool to_the_end)
{
    bool is_fit = false;
    if (solved->any) TRY(offer_solution(c, solved->x, &is_fit));
    const bool fits = c->best->any && rm_fits(c->p, c->best->peak_bytes);
    if (!fits) {
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
    if (c->best->any && rm_fits(c->p, c->best->peak_bytes)) {
        TRY(rm_codes_of_steps(ctx, c->nm, &c->best->steps, &c->codes));
        TRY(rm_checkmate_start(ctx, &c->program, &c->codes, start, &starts));
    }
    const double scale = c->program.cost_scale, whole = 0.5 * (double)c->program.cost_unit * scale;
    const double allowed =
        (double)ctx->options.mip_gap * 1e-6 * (double)c->p->graph->total_cost * scale;
    const rm_solve how = {
        .gap = fmax(allowed, fmax(1e-6, whole)), /* costs are whole: half a unit is none */
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
    const bool fits = c->best->any && rm_fits(c->p, c->best->peak_bytes);
    const bool any_order = ctx->options.checkmate_order;
    c->program = (rm_checkmate){.nm = c->nm,
                                .budget_bytes = c->p->budget_bytes,
                                .splits = (uint32_t)ctx->options.checkmate_splits,
                                .any_order = any_order,
                                .plain = plain,
                                .most_extra = fits && !plain && !any_order
                                                  ? c->best->cost - c->p->graph->total_cost
                                                  : INT64_MAX,
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
    .run = run};
