/* checkmate_lp.c: rounding of the relaxed program: what is kept is rounded, what runs follows from
 * it, and what does not fit is repaired.
 *
 * The program of checkmate_model.c is solved without integers at (1 - eps) of the budget, eps =
 * 0.1, then 0.2 and 0.3 if nothing fits. Its S is rounded in many ways: at 1/2, at thresholds all
 * over (0, 1), and RANDOM times at random, where S is the probability. Each rounding gets the least
 * recomputation (optimal_r.c). The cheapest that fits the true budget is kept.
 *
 * If none does, the one of lowest peak is repaired. Where memory is over the budget it loses the
 * kept storage whose op costs least per byte, for the gap in question. That goes on until it fits
 * or nothing is left to lose. The last resort is auto's search in the graph's order, from the
 * rounding of lowest peak.
 *
 * Invariant: doubles only choose. What fits is measured. Cost: three linear programs at most, and
 * O(ops * edges) for each rounding and each repair. */
#include "base/random.h"
#include "plan/checkmate/checkmate_model.h"
#include "plan/checkmate/checkmate_start.h"

#include <assert.h>

enum { RANDOM = 100, THRESHOLDS = 31, REPAIRS_PER_OP = 8 };

typedef struct rounding {
    const rm_problem *p;
    const rm_normal *nm;
    rm_incumbent *best;
    rm_checkmate program;
    const double *values; /* by column: the solution */
    bool failed;          /* the solver did, and it will again */
    rm_bits kept;         /* the rounding at hand: by turn, by storage */
    rm_bits lowest;       /* that with the lowest peak so far */
    int64_t lowest_peak;  /* INT64_MAX: none */
    rm_random random;
    rm_codes codes;
    rm_schedule steps;
} rounding;

/* Offers the rounding at hand, and remembers the one of lowest peak. */
static remat_status judge(rounding *x)
{
    TRY(rm_optimal_r(x->p->ctx, x->nm, &x->kept, &x->codes));
    TRY(rm_offer_codes(x->p, x->nm, &x->codes, x->best));
    if (x->best->offered_peak_bytes >= x->lowest_peak) return REMAT_OK;
    x->lowest_peak = x->best->offered_peak_bytes;
    rm_bits_copy(&x->lowest, &x->kept);
    return REMAT_OK;
}

/* Threshold 0: each is kept at random, and its value is the probability. */
static remat_status round_at(rounding *x, double threshold)
{
    const rm_normal *nm = x->nm;
    rm_bits_empty(&x->kept);
    for (uint32_t t = 1; t < nm->n_ops; t++)
        for (uint32_t s = 0; s < nm->n_stores; s++) {
            const uint32_t column = x->program.kept[(size_t)t * nm->n_stores + s];
            if (column == REMAT_NONE) continue;
            const double limit = threshold > 0 ? threshold : rm_random_unit(&x->random);
            if (x->values[column] >= limit && x->values[column] > 1e-4) rm_bit_set(&x->kept, t, s);
        }
    return judge(x);
}

static remat_status round_all(rounding *x)
{
    remat_ctx *ctx = x->p->ctx;
    TRY(round_at(x, 0.5));
    for (int i = 1; i <= THRESHOLDS && !rm_is_over(ctx); i++)
        TRY(round_at(x, (double)i / (THRESHOLDS + 1)));
    for (int i = 0; i < RANDOM && !rm_is_over(ctx); i++) TRY(round_at(x, 0));
    return REMAT_OK;
}

/* ---- repair ---- */

/* The turn in which the order's memory is highest, and whether that is within the budget.
 * REMAT_NONE: cost or memory passes 2^62. */
static remat_status find_peak(rounding *x, uint32_t *turn, bool *fits)
{
    remat_ctx *ctx = x->p->ctx;
    rm_liveness l;
    x->steps.n = 0;
    TRY(rm_normal_expand(ctx, x->nm, x->codes.items, x->codes.n, &x->steps));
    const remat_status status = rm_liveness_of(ctx, x->nm->g, x->steps.items, x->steps.n, 0, &l);
    *fits = false;
    *turn = REMAT_NONE;
    if (status == REMAT_E_PLAN) return REMAT_OK;
    TRY(status);
    *fits = rm_fits(x->p, l.peak_bytes);
    uint32_t n_first = 0;
    for (uint32_t i = 0; i < l.peak_step && n_first + 1 < x->nm->n_ops; i++)
        if (x->steps.items[i].kind == REMAT_RUN && x->steps.items[i].index == x->nm->op[n_first])
            n_first++;
    *turn = n_first;
    return REMAT_OK;
}

static bool is_touched(const rm_normal *nm, uint32_t op, uint32_t store)
{
    for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
        if (nm->in[k] == store) return true;
    return nm->producer[store] == op;
}

/* May the storage be lost across `turn`, and is there something to gain? */
static bool can_lose(const rounding *x, uint32_t turn, uint32_t store)
{
    const rm_normal *nm = x->nm;
    return rm_bit(&x->kept, turn, store) && nm->bytes[store] > 0 &&
           !nm->pinned[nm->producer[store]] && !is_touched(nm, turn, store);
}

/* Is a cheaper to lose than b, for its size? */
static bool is_cheaper(const rm_normal *nm, uint32_t a, uint32_t b)
{
    return (double)nm->cost[nm->producer[a]] * (double)nm->bytes[b] <
           (double)nm->cost[nm->producer[b]] * (double)nm->bytes[a];
}

/* The kept storage across `turn` that is cheapest to lose, for its size, or REMAT_NONE. */
static uint32_t cheapest(const rounding *x, uint32_t turn)
{
    uint32_t found = REMAT_NONE;
    for (uint32_t s = 0; s < x->nm->n_stores; s++) {
        if (!can_lose(x, turn, s)) continue;
        if (found == REMAT_NONE || is_cheaper(x->nm, s, found)) found = s;
    }
    return found;
}

/* The whole gap goes in which `turn` lies: up to the next turn that touches the storage, and back
 * to the one before. */
static void lose(rounding *x, uint32_t turn, uint32_t store)
{
    assert(can_lose(x, turn, store));
    for (uint32_t t = turn; t < x->nm->n_ops && rm_bit(&x->kept, t, store); t++) {
        if (t > turn && is_touched(x->nm, t - 1, store)) break;
        rm_bit_clear(&x->kept, t, store);
    }
    for (uint32_t t = turn; t-- > 0 && rm_bit(&x->kept, t, store);) {
        if (is_touched(x->nm, t, store)) break;
        rm_bit_clear(&x->kept, t, store);
    }
}

static remat_status repair(rounding *x)
{
    remat_ctx *ctx = x->p->ctx;
    if (x->lowest_peak == INT64_MAX) return REMAT_OK;
    rm_bits_copy(&x->kept, &x->lowest);
    for (uint32_t i = 0; i < REPAIRS_PER_OP * x->nm->n_ops && !rm_is_over(ctx); i++) {
        const rm_mark mark = rm_scratch_mark(ctx);
        uint32_t turn;
        bool fits;
        TRY(rm_optimal_r(ctx, x->nm, &x->kept, &x->codes));
        TRY(find_peak(x, &turn, &fits));
        rm_scratch_release(ctx, mark);
        if (fits) return rm_offer_codes(x->p, x->nm, &x->codes, x->best);
        const uint32_t store = turn == REMAT_NONE ? REMAT_NONE : cheapest(x, turn);
        if (store == REMAT_NONE) return REMAT_OK;
        lose(x, turn, store);
    }
    return REMAT_OK;
}

/* ---- the program ---- */

static remat_status on_progress(void *user, const double *values, double bound)
{
    const rounding *x = user;
    (void)values;
    (void)bound;
    rm_report(x->p->ctx, rm_checkmate_lp.entry.name, 0, REMAT_ABSENT, REMAT_ABSENT);
    return REMAT_OK;
}

/* Solves the relaxed program for this budget, rounds its solution, and repairs where need be. */
static remat_status solve_and_round(rounding *x, const rm_backend *backend, int64_t budget_bytes)
{
    remat_ctx *ctx = x->p->ctx;
    rm_solved solved;
    const rm_solve how = {
        .relax = true, .threads = ctx->options.threads, .on_progress = on_progress, .user = x};
    x->program = (rm_checkmate){.nm = x->nm,
                                .budget_bytes = budget_bytes,
                                .splits = 1,
                                .most_extra = INT64_MAX,
                                .model.most_terms = rm_checkmate_entries(ctx)};
    TRY(rm_checkmate_build(ctx, &x->program));
    TRY(rm_solve_in_child(backend, ctx, &x->program.model, &how, &solved));
    x->failed = solved.outcome == RM_SOLVE_FAILED;
    if (!solved.any) return REMAT_OK;
    x->values = solved.x;
    TRY(round_all(x));
    return rm_fits(x->p, x->best->peak_bytes) ? REMAT_OK : repair(x);
}

static remat_status round_programs(rounding *x, const rm_backend *backend, int64_t need_bytes)
{
    remat_ctx *ctx = x->p->ctx;
    TRY(rm_bits_new(ctx, &x->kept, x->nm->n_ops, x->nm->n_stores));
    TRY(rm_bits_new(ctx, &x->lowest, x->nm->n_ops, x->nm->n_stores));
    for (int percent = 90; percent >= 70 && !rm_fits(x->p, x->best->peak_bytes) && !rm_is_over(ctx);
         percent -= 10) {
        const rm_mark mark = rm_scratch_mark(ctx);
        const int64_t budget = x->p->budget_bytes / 100 * percent;
        x->lowest_peak = INT64_MAX;
        const remat_status status =
            solve_and_round(x, backend, budget > need_bytes ? budget : need_bytes);
        rm_checkmate_free(ctx, &x->program);
        rm_scratch_release(ctx, mark);
        TRY(status);
        if (budget <= need_bytes || x->failed) break; /* no lower, or no solver */
    }
    return REMAT_OK;
}

static remat_status last_resort(rounding *x)
{
    remat_ctx *ctx = x->p->ctx;
    TRY(rm_codes_of_steps(ctx, x->nm, &x->best->steps, &x->codes));
    return rm_anneal_in_order(x->p, x->nm, &x->codes, false, x->best);
}

/* A fifth of the limits is for the last resort. */
static remat_status plan(void *user, const rm_problem *p, const rm_normal *nm,
                         const rm_backend *backend, int64_t need_bytes)
{
    rounding *x = user;
    remat_ctx *ctx = p->ctx;
    x->p = p;
    x->nm = nm;
    rm_limit_push(ctx, 0.8, RM_NO_LIMIT);
    const remat_status status = round_programs(x, backend, need_bytes);
    rm_limit_pop(ctx);
    TRY(status);
    return rm_fits(x->p, x->best->peak_bytes) ? REMAT_OK : last_resort(x);
}

static remat_status run(const rm_problem *p, rm_incumbent *best)
{
    rounding x = {.best = best, .random.state = (uint64_t)p->ctx->options.seed};
    const remat_status status = rm_checkmate_run(p, best, plan, &x);
    RM_VEC_FREE(&p->ctx->heap, x.codes);
    RM_VEC_FREE(&p->ctx->heap, x.steps);
    return status;
}

const rm_planner rm_checkmate_lp = {
    .entry = {"checkmate-lp",
              "the relaxed program of checkmate, rounded and repaired (needs HiGHS)"},
    .default_work = 2 * (int64_t)RM_SECOND,
    .run = run,
    .heeds = "checkmate_entries"};
