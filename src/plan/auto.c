/* auto.c: the best plan of all that is there, improved: rounded solutions of the bound's program,
 * what mincut and rotor find in a share of the time or the work, and a search from the best of them
 * (plan/search/anneal.c). The lowest peak is looked for by fastsa first. */
#include "plan/search/anneal.h"
#include "plan/bound/rounding.h"
#include "plan/planner.h"
#include "plan/search/polish.h"

enum { QUICK_SHARE = 4 }; /* a quick strategy has one part in so many of the time that is left */

static void share_time(remat_ctx *ctx, int share)
{
    const int64_t now_ns = rm_clock_ns();
    if (ctx->deadline_ns != INT64_MAX && ctx->deadline_ns > now_ns)
        ctx->deadline_ns = now_ns + (ctx->deadline_ns - now_ns) / share;
}

static void restore_time(remat_ctx *ctx, int64_t deadline_ns)
{
    ctx->deadline_ns = deadline_ns;
    if (ctx->stopped == REMAT_TIME && rm_clock_ns() < deadline_ns) ctx->stopped = REMAT_DONE;
}

/* With a share of the time that is left; their work is in units of their own, of which they get so
 * many for each of the search's. */
static remat_status run_quick(const rm_problem *p, rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    const struct {
        const rm_planner *planner;
        int64_t units;
    } quick[] = {{&rm_mincut, 5}, {&rm_rotor, 1}};
    const int64_t limit = ctx->work_limit, deadline_ns = ctx->deadline_ns;
    for (size_t i = 0;
         i < RM_LEN(quick) && ctx->stopped != REMAT_SIGNAL && ctx->stopped != REMAT_TIME; i++) {
        const int64_t most = quick[i].planner->default_work;
        ctx->work = 0;
        ctx->work_limit = limit < most / quick[i].units ? limit * quick[i].units : most;
        ctx->stopped = REMAT_DONE;
        share_time(ctx, QUICK_SHARE);
        const remat_status status = quick[i].planner->run(p, best);
        restore_time(ctx, deadline_ns);
        if (status != REMAT_OK && status != REMAT_E_APPLIES) return status;
    }
    if (ctx->stopped == REMAT_WORK) ctx->stopped = REMAT_DONE;
    ctx->work = 0;
    ctx->work_limit = limit;
    return REMAT_OK;
}

/* Rounded solutions of the bound's program: the first that fits, of budgets from the whole one
 * down. */
static remat_status offer_rounded(const rm_problem *p, const rm_normal *nm, unsigned rules,
                                  rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    rm_codes codes = {0};
    rm_incumbent seed = {.any = false};
    remat_status status = REMAT_OK;
    for (int i = 0; i < RM_ROUNDING_BUDGETS && status == REMAT_OK &&
                    !(seed.any && rm_fits(p, seed.peak_bytes));
         i++) {
        if (rules && rm_is_late(ctx))
            break; /* without them it goes on: a plan there is, whatever the time */
        status = rm_round_order_bound(ctx, nm, rm_rounding_budget(p->budget_bytes, i), rules, NULL,
                                      &codes);
        if (status == REMAT_OK && codes.n)
            status = rm_polish(ctx, nm, NULL, p->budget_bytes, &codes);
        if (status == REMAT_OK && codes.n) status = rm_offer_codes(p, nm, &codes, &seed);
    }
    if (status == REMAT_OK && seed.any) status = rm_offer(p, best, &seed.steps);
    RM_VEC_FREE(&ctx->heap, seed.steps);
    RM_VEC_FREE(&ctx->heap, codes);
    return status;
}

static remat_status run(const rm_problem *p, rm_incumbent *best);

typedef remat_status search_at(const rm_problem *p, rm_incumbent *best);

/* A search at a budget, with a share of the work and of the time that is left; what it finds is
 * offered to p, whose budget is another. */
static remat_status run_at(const rm_problem *p, int64_t budget_bytes, int share, search_at *search,
                           rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    const int64_t work = ctx->work_limit, deadline_ns = ctx->deadline_ns;
    if (ctx->stopped == REMAT_SIGNAL || ctx->stopped == REMAT_TIME || rm_clock_ns() >= deadline_ns)
        return REMAT_OK;
    ctx->work = 0;
    ctx->work_limit = work / share + 1;
    share_time(ctx, share);
    ctx->stopped = REMAT_DONE;
    rm_incumbent found = {.any = false};
    remat_status status = search(&(rm_problem){ctx, p->graph, budget_bytes}, &found);
    if (status == REMAT_OK) status = rm_offer(p, best, &found.steps);
    RM_VEC_FREE(&ctx->heap, found.steps);
    restore_time(ctx, deadline_ns);
    ctx->work_limit = work;
    return status;
}

/* The lowest peak: annealed for memory alone, then searched for at lower and lower budgets, in
 * smaller steps where there is nothing; all that is dear, so in the end that peak is a budget. */
static remat_status run_least(const rm_problem *p, int64_t need_bytes, rm_incumbent *best)
{
    TRY(run_quick(p, best));
    TRY(run_at(p, REMAT_BUDGET_MIN, 2, rm_fastsa.run, best));
    for (int64_t part = 16; part <= 256;) {
        const int64_t before = best->peak_bytes, target = before - before / part;
        if (target >= need_bytes) TRY(run_at(p, target, 4, run, best));
        if (best->peak_bytes > target || best->peak_bytes == before) part *= 2;
    }
    return run_at(p, best->peak_bytes, 1, run, best);
}

static remat_status run(const rm_problem *p, rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    rm_need need;
    TRY(rm_need_find(ctx, p->graph, ctx->options.offload, &need));
    TRY(rm_keep_all.run(p, best));
    if (p->budget_bytes == REMAT_BUDGET_MIN) return run_least(p, need.bytes, best);
    const bool cheapest = rm_fits(p, best->peak_bytes) && best->cost == p->graph->total_cost;
    if (cheapest || p->budget_bytes < need.bytes)
        return REMAT_OK; /* nothing to gain, or to be found */
    rm_normal nm;
    TRY(rm_normal_of(ctx, p->graph, &nm));
    TRY(offer_rounded(p, &nm, 0, best));
    rm_report(ctx, rm_auto.entry.name, 0, best->cost, best->peak_bytes);
    TRY(offer_rounded(p, &nm, RM_BOUND_RULES, best));
    rm_report(ctx, rm_auto.entry.name, 0, best->cost, best->peak_bytes);
    TRY(run_quick(p, best));
    rm_codes seed = {0}, found = {0};
    remat_status status = rm_codes_of_steps(ctx, &nm, &best->steps, &seed);
    if (!rm_fits(p, best->peak_bytes) && seed.n > 2 * (size_t)nm.n_ops)
        seed.n = 0; /* long sequences are slow */
    if (status == REMAT_OK) status = rm_anneal(p, &nm, &seed, &found);
    if (status == REMAT_OK && found.n) status = rm_offer_codes(p, &nm, &found, best);
    RM_VEC_FREE(&ctx->heap, seed);
    RM_VEC_FREE(&ctx->heap, found);
    return status;
}

/* The better of the two models. */
static remat_status run_chain(const rm_chain_problem *p, rm_chain_result *results)
{
    const remat_status status = rm_rotor.run_chain(p, results);
    if (status != REMAT_OK && status != REMAT_E_APPLIES) return status;
    const remat_status floating = rm_rotor_float.run_chain(p, results);
    return floating == REMAT_E_APPLIES ? status : floating;
}

const rm_planner rm_auto = {
    .entry = {"auto", "roundings of the bound's linear program, mincut and rotor, improved by a "
                      "search with whole recomputations as moves"},
    .default_work = RM_ANNEAL_SECOND,
    .run = run,
    .run_chain = run_chain};
