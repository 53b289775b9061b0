/* auto.c: the best plan of several strategies, improved by a search.
 *
 * For a budget:
 *   1. keep-all. Where it fits, that is all. Where no plan can fit, mincut, rotor and a short
 *      search look for the lowest peak.
 *   2. Roundings of the bound's linear program. They take milliseconds, and there is one whatever
 *      the limits are.
 *   3. mincut and rotor, each with a share of what is left.
 *   4. On small graphs, a search through all plans in all orders (plan/bound/any_order.c). Where it
 *      comes to an end, nothing is left to do.
 *   5. Where nothing fits yet, or only what runs a third of all ops again, a descent to the budget
 *      (plan/search/descend.c).
 *   6. A search from the best of them takes the rest (plan/search/anneal.c).
 *   7. What ran early or late for nothing goes back to the graph's order (plan/search/restore.c).
 *
 * For the lowest peak: keep-all, mincut and rotor, and a descent; then roundings and a search for
 * the cost within a hundredth of the lowest peak that was found.
 *
 * With the option offload: fastsa, which may move values to the host; all of the above, which moves
 * none; and an annealing of both from the better of the two. Each has the whole limit of work, so
 * it is never worse than the first two by themselves, unless time runs out. With order_only it is
 * fastsa.
 *
 * Invariant: the incumbent only ever gets better, so each part may end early. The cost is that of
 * the limits. */
#include "plan/bound/all_orders.h"
#include "plan/bound/any_order.h"
#include "plan/bound/rounding.h"
#include "plan/planner.h"
#include "plan/search/anneal.h"
#include "plan/search/descend.h"
#include "plan/search/fastsa.h"
#include "plan/search/polish.h"
#include "plan/search/restore.h"

enum {
    PARTS_WITH_OFFLOAD = 3,
    MORE_WORK = RM_SECOND / 2 * 3, /* where nothing fits */
    ALL_ORDERS_WORK = RM_SECOND    /* at most, for all orders: states take memory */
};
static const double quick_share = 0.25; /* of what is left, for each quick strategy */
static const double all_orders_share = 0.25;
static const double least_slack = 0.01;    /* above the lowest peak: the last bytes are dear */
static const double least_share = 0.5;     /* to find the lowest peak, before what it costs */
static const double descent_share = 0.3;   /* to get down to a budget */
static const double above = 1.05;          /* times the budget: where a descent begins */
static const double in_reach = 1.1;        /* times the budget: what rotor needs there, at most */
static const double too_far = 2;           /* times the best peak so far: what rotor needs there */
static const double search_share = 0.5;    /* to find a first plan without a descent */
static const double second_share = 0.75;   /* to get down after all, at most */
static const double hopeless_share = 0.25; /* for the lowest peak, where nothing fits */
static const double restore_share = 0.02;  /* of the time, left for the graph's order */

/* Rotor's own result. *peak: of its plan; REMAT_ABSENT: it has none. */
static remat_status try_rotor(const rm_problem *p, int64_t *peak, rm_incumbent *best)
{
    rm_incumbent found = {.any = false};
    *peak = REMAT_ABSENT;
    remat_status status = rm_try_planner(p, &rm_rotor, quick_share, &found);
    if (status == REMAT_OK && found.any) {
        *peak = found.peak_bytes;
        status = rm_offer(p, best, &found.steps);
    }
    RM_VEC_FREE(&p->ctx->heap, found.steps);
    return status;
}

static remat_status run_quick(const rm_problem *p, int64_t *rotor_peak, rm_incumbent *best)
{
    *rotor_peak = REMAT_ABSENT;
    if (!rm_is_over(p->ctx)) TRY(rm_try_planner(p, &rm_mincut, quick_share, best));
    return rm_is_over(p->ctx) ? REMAT_OK : try_rotor(p, rotor_peak, best);
}

/* Rounds for budgets from the whole one down, until one result fits. `rules` are bound rules
 * (RM_BOUND_RULES), or 0. */
static remat_status offer_rounded(const rm_problem *p, const rm_normal *nm, unsigned rules,
                                  rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    rm_codes codes = {0};
    rm_incumbent seed = {.any = false};
    remat_status status = REMAT_OK;
    for (int i = 0; i < RM_ROUNDING_BUDGETS && status == REMAT_OK; i++) {
        if (seed.any && rm_fits(p, seed.peak_bytes)) break;
        /* Without rules it goes on whatever the limits say, so that there is a plan. */
        if (rules && rm_is_over(ctx)) break;
        const rm_rounding_options options = {.budget_bytes = rm_rounding_budget(p->budget_bytes, i),
                                             .rules = rules};
        status = rm_round_order_bound(ctx, nm, &options, &codes);
        if (status == REMAT_OK && codes.n)
            status = rm_polish(ctx, nm, NULL, p->budget_bytes, &codes);
        if (status == REMAT_OK && codes.n) status = rm_offer_codes(p, nm, &codes, &seed);
    }
    if (status == REMAT_OK && seed.any) status = rm_offer(p, best, &seed.steps);
    RM_VEC_FREE(&ctx->heap, seed.steps);
    RM_VEC_FREE(&ctx->heap, codes);
    return status;
}

static remat_status search(const rm_problem *p, const rm_normal *nm, rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    rm_codes seed = {0}, found = {0};
    remat_status status = rm_codes_of_steps(ctx, nm, &best->steps, &seed);
    /* Long sequences are slow. One that does not even fit is not worth starting from. */
    const bool is_dear = !rm_fits(p, best->peak_bytes) && seed.n > 2 * (size_t)nm->n_ops;
    if (is_dear) seed.n = 0;
    if (status == REMAT_OK) status = rm_anneal(p, nm, &seed, &found);
    if (status == REMAT_OK && found.n) status = rm_offer_codes(p, nm, &found, best);
    RM_VEC_FREE(&ctx->heap, seed);
    RM_VEC_FREE(&ctx->heap, found);
    return status;
}

/* Rotor's plan for a little more memory than the budget, or than rotor can do with. In networks of
 * many blocks the way down is short from there, and long from keep-all. */
static remat_status seed_by_rotor(const rm_problem *p, const rm_normal *nm, int64_t rotor_peak,
                                  rm_codes *seed)
{
    const int64_t from = rotor_peak > p->budget_bytes ? rotor_peak : p->budget_bytes;
    const rm_problem higher = {p->ctx, p->graph, (int64_t)(above * (double)from)};
    rm_incumbent found = {.any = false};
    remat_status status = rm_try_planner(&higher, &rm_rotor, quick_share, &found);
    if (status == REMAT_OK && found.any) status = rm_codes_of_steps(p->ctx, nm, &found.steps, seed);
    RM_VEC_FREE(&p->ctx->heap, found.steps);
    return status;
}

/* Where a descent starts: at rotor's plan, or, if it has none, at the best so far. Where rotor
 * needs far more than the best so far, its plan is dear and leads nowhere; then at keep-all (no
 * seed). */
static remat_status find_seed(const rm_problem *p, const rm_normal *nm, int64_t rotor_peak,
                              const rm_incumbent *best, rm_codes *seed)
{
    if (rotor_peak == REMAT_ABSENT) return rm_codes_of_steps(p->ctx, nm, &best->steps, seed);
    if ((double)rotor_peak > too_far * (double)best->peak_bytes) return REMAT_OK;
    return seed_by_rotor(p, nm, rotor_peak, seed);
}

/* Down to the budget, or as far as a share of the limits allows. */
static remat_status descend(const rm_problem *p, const rm_normal *nm, int64_t rotor_peak,
                            double share, rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    rm_codes seed = {0}, found = {0};
    if (nm->n_stores == 0 || rm_is_over(ctx)) return REMAT_OK;
    rm_limit_push(ctx, share, RM_NO_LIMIT);
    remat_status status = find_seed(p, nm, rotor_peak, best, &seed);
    if (status == REMAT_OK) status = rm_descend(p, nm, &seed, &found);
    rm_limit_pop(ctx);
    if (status == REMAT_OK && found.n) status = rm_offer_codes(p, nm, &found, best);
    RM_VEC_FREE(&ctx->heap, seed);
    RM_VEC_FREE(&ctx->heap, found);
    return status;
}

/* On a small graph: the cheapest plan of all, if the share is enough for that. */
static remat_status search_all_orders(const rm_problem *p, const rm_normal *nm, rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    if (!rm_any_order_applies(nm) || rm_is_over(ctx)) return REMAT_OK;
    rm_limit_push(ctx, all_orders_share, ALL_ORDERS_WORK);
    const remat_status status = rm_search_all_orders(p, nm, rm_auto.entry.name, best);
    rm_limit_pop(ctx);
    return rm_is_too_much_memory(ctx, status) ? REMAT_OK : status;
}

/* Does it run a third of all ops again? Then the budget is near the least peak. */
static bool is_dear(const rm_problem *p, const rm_incumbent *best)
{
    return best->steps.n > 4 * (size_t)p->graph->n_ops / 3;
}

/* In deep networks, where rotor nearly fits, a descent from its plan is short. In others a search
 * that begins with keep-all finds cheaper plans, or none; then a descent comes second. Where it
 * comes to that, or the plan is dear, it goes on as long as `min`, unless somebody has set a limit:
 * what fits late is dear, and a smaller budget, which nothing fits at first, would be cheaper. */
static remat_status find_and_improve(const rm_problem *p, const rm_normal *nm, int64_t rotor_peak,
                                     rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    const bool is_limited = ctx->options.work || ctx->options.time_ms || best->infeasible,
               is_in_reach = rotor_peak != REMAT_ABSENT &&
                             (double)rotor_peak <= in_reach * (double)p->budget_bytes;
    if (is_in_reach && (!rm_fits(p, best->peak_bytes) || is_dear(p, best)))
        TRY(descend(p, nm, rotor_peak, descent_share, best));
    const bool is_all = !is_limited || rm_fits(p, best->peak_bytes);
    rm_limit_push(ctx, is_all ? 1 : search_share, RM_NO_LIMIT);
    const remat_status status = search(p, nm, best);
    rm_limit_pop(ctx);
    TRY(status);
    const bool is_enough = is_limited ? is_all : !is_dear(p, best);
    if (rm_fits(p, best->peak_bytes) && is_enough) return REMAT_OK;
    if (!is_limited) rm_limits_ensure(ctx, MORE_WORK);
    if (!rm_fits(p, best->peak_bytes)) TRY(descend(p, nm, rotor_peak, second_share, best));
    if (!rm_fits(p, best->peak_bytes)) TRY(descend(p, nm, REMAT_ABSENT, 0.5, best));
    return rm_is_over(ctx) ? REMAT_OK : search(p, nm, best);
}

static remat_status run_at(const rm_problem *p, rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    rm_normal nm;
    int64_t rotor_peak;
    TRY(rm_normal_of(ctx, p->graph, &nm));
    TRY(offer_rounded(p, &nm, 0, best));
    rm_report(ctx, rm_auto.entry.name, -1, best->cost, best->peak_bytes);
    TRY(offer_rounded(p, &nm, RM_BOUND_RULES, best));
    rm_report(ctx, rm_auto.entry.name, -1, best->cost, best->peak_bytes);
    TRY(run_quick(p, &rotor_peak, best));
    TRY(search_all_orders(p, &nm, best));
    if (rm_is_over(ctx) || (rm_is_settled(p, best) && !best->infeasible)) return REMAT_OK;
    rm_limit_push(ctx, best->infeasible ? hopeless_share : 1, RM_NO_LIMIT);
    const remat_status status = find_and_improve(p, &nm, rotor_peak, best);
    rm_limit_pop(ctx);
    return status;
}

/* From a plan within the budget, where mincut and rotor have said what they can. */
static remat_status run_search(const rm_problem *p, rm_incumbent *best)
{
    rm_normal nm;
    TRY(rm_normal_of(p->ctx, p->graph, &nm));
    TRY(offer_rounded(p, &nm, RM_BOUND_RULES, best));
    TRY(search_all_orders(p, &nm, best));
    return rm_is_over(p->ctx) || rm_is_settled(p, best) ? REMAT_OK : search(p, &nm, best);
}

/* The cheapest plan within the budget, from the best so far. It replaces that, which may have a
 * lower peak. */
static remat_status settle_for(const rm_problem *p, int64_t budget_bytes, rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    const rm_problem near = {ctx, p->graph, budget_bytes};
    const rm_mark mark = rm_scratch_mark(ctx);
    rm_incumbent found = {.any = false};
    remat_status status = rm_offer(&near, &found, &best->steps);
    if (status == REMAT_OK) status = run_search(&near, &found);
    rm_scratch_release(ctx, mark);
    if (rm_is_too_much_memory(ctx, status)) status = REMAT_OK;
    best->any = best->any && status != REMAT_OK;
    if (status == REMAT_OK) status = rm_offer(p, best, &found.steps);
    RM_VEC_FREE(&ctx->heap, found.steps);
    return status;
}

/* The lowest peak, then the cheapest plan that is above it by at most that part. */
static remat_status run_least(const rm_problem *p, int64_t need_bytes, double slack,
                              rm_incumbent *best)
{
    const int64_t given = best->peak_bytes; /* it gets no worse than this */
    const rm_problem lowest = {p->ctx, p->graph, need_bytes};
    rm_normal nm;
    int64_t rotor_peak;
    TRY(run_quick(p, &rotor_peak, best));
    TRY(rm_normal_of(p->ctx, p->graph, &nm));
    TRY(descend(&lowest, &nm, rotor_peak, least_share, best));
    const int64_t enough = best->peak_bytes + (int64_t)(slack * (double)best->peak_bytes);
    return settle_for(p, enough < given ? enough : given, best);
}

/* The budget is below the need of an op. What the least memory takes is the next question. */
static remat_status run_hopeless(const rm_problem *p, int64_t need_bytes, rm_incumbent *best)
{
    rm_limit_push(p->ctx, hopeless_share, RM_NO_LIMIT);
    const remat_status status = run_least(p, need_bytes, 0, best);
    rm_limit_pop(p->ctx);
    return status;
}

static bool is_cheapest(const rm_problem *p, const rm_incumbent *best)
{
    return p->budget_bytes != REMAT_BUDGET_MIN && rm_fits(p, best->peak_bytes) &&
           best->cost == p->graph->total_cost;
}

/* Recomputation, without transfers. */
static remat_status recompute(const rm_problem *p, rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    rm_need need;
    TRY(rm_need_find(ctx, p->graph, false, &need));
    TRY(rm_keep_all.run(p, best));
    if (p->budget_bytes == REMAT_BUDGET_MIN) return run_least(p, need.bytes, least_slack, best);
    if (is_cheapest(p, best)) return REMAT_OK;
    if (p->budget_bytes >= need.bytes) return run_at(p, best);
    return run_hopeless(p, need.bytes, best);
}

/* Runs a strategy with a part of the limits, as it would run by itself. */
static remat_status run_apart(const rm_problem *p,
                              remat_status (*strategy)(const rm_problem *, rm_incumbent *),
                              int64_t work, double share_of_time, rm_incumbent *found)
{
    remat_ctx *ctx = p->ctx;
    const rm_mark mark = rm_scratch_mark(ctx);
    rm_limit_push(ctx, rm_time_left(ctx) == RM_NO_LIMIT ? 1 : share_of_time, work);
    const remat_status status = strategy(p, found);
    rm_limit_pop(ctx);
    rm_scratch_release(ctx, mark);
    return status;
}

/* fastsa with transfers, auto without, and both together from the better of the two. Each has the
 * work that it would have by itself (parts_with_offload), and a third of the time. */
static remat_status run_parts(const rm_problem *p, rm_incumbent *moved, rm_incumbent *stayed,
                              rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    const int64_t left = rm_work_left(ctx),
                  part = left == RM_NO_LIMIT ? left : left / PARTS_WITH_OFFLOAD;
    TRY(run_apart(p, rm_fastsa.run, part, 1.0 / PARTS_WITH_OFFLOAD, moved));
    TRY(rm_offer(p, best, &moved->steps));
    if (is_cheapest(p, best)) return REMAT_OK;
    ctx->options.offload = 0;
    const remat_status status = run_apart(p, recompute, part, 0.5, stayed);
    ctx->options.offload = 1;
    TRY(status);
    TRY(rm_offer(p, best, &stayed->steps));
    return rm_is_over(ctx) ? REMAT_OK
                           : rm_fastsa_together(p, &stayed->steps, rm_auto.entry.name, best);
}

static remat_status recompute_and_move(const rm_problem *p, rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    rm_need need;
    rm_incumbent moved = {.any = false}, stayed = {.any = false};
    TRY(rm_need_find(ctx, p->graph, true, &need));
    TRY(rm_keep_all.run(p, best));
    const bool hopeless = p->budget_bytes >= 0 && p->budget_bytes < need.bytes;
    if (is_cheapest(p, best) || hopeless) return REMAT_OK;
    const remat_status status = run_parts(p, &moved, &stayed, best);
    RM_VEC_FREE(&ctx->heap, moved.steps);
    RM_VEC_FREE(&ctx->heap, stayed.steps);
    return status;
}

/* The best plan, as near to the graph's order as its peak allows. It stays as it is on failure. */
static remat_status restore_order(const rm_problem *p, rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    rm_normal nm;
    rm_codes codes = {0};
    rm_incumbent found = {.any = false};
    TRY(rm_normal_of(ctx, p->graph, &nm));
    remat_status status = rm_codes_of_steps(ctx, &nm, &best->steps, &codes);
    if (status == REMAT_OK) status = rm_restore_order(ctx, &nm, best->peak_bytes, &codes);
    if (status == REMAT_OK) status = rm_offer_codes(p, &nm, &codes, &found);
    if (status == REMAT_OK && found.any && found.cost <= best->cost &&
        found.peak_bytes <= best->peak_bytes) {
        const rm_schedule replaced = best->steps;
        best->cost = found.cost;
        best->peak_bytes = found.peak_bytes;
        best->steps = found.steps;
        found.steps = replaced;
    }
    RM_VEC_FREE(&ctx->heap, found.steps);
    RM_VEC_FREE(&ctx->heap, codes);
    return status;
}

static remat_status run(const rm_problem *p, rm_incumbent *best)
{
    const rm_options *o = &p->ctx->options;
    if (o->order_only) return rm_fastsa.run(p, best);
    if (o->offload) return recompute_and_move(p, best);
    const int64_t left_ns = rm_time_left(p->ctx);
    /* The work stays as it is: a limit of time that is not met changes no plan. */
    rm_limit_push_time(p->ctx,
                       left_ns == RM_NO_LIMIT ? 0 : (int64_t)(restore_share * (double)left_ns));
    const remat_status status = recompute(p, best);
    const remat_stopped why = rm_stopped(p->ctx);
    rm_limit_pop(p->ctx);
    rm_note_stop(p->ctx, why);
    TRY(status);
    if (!best->any || best->proved) return REMAT_OK;
    const rm_mark mark = rm_scratch_mark(p->ctx);
    const remat_status restored = restore_order(p, best);
    rm_scratch_release(p->ctx, mark);
    return rm_is_too_much_memory(p->ctx, restored) ? REMAT_OK : restored;
}

/* Every chain strategy there is, so that none is better. rotor-float has rotor in it. The quick
 * ones come first. */
static remat_status run_chain(const rm_chain_problem *p, rm_chain_result *results)
{
    const rm_planner *const all[] = {&rm_keep_all,    &rm_periodic,    &rm_chen_sqrt,
                                     &rm_chen_greedy, &rm_rotor_float, &rm_revolve};
    for (size_t i = 0; i < RM_LEN(all); i++) {
        const rm_mark mark = rm_scratch_mark(p->ctx);
        const remat_status status = all[i]->run_chain(p, results);
        rm_scratch_release(p->ctx, mark);
        const bool passed_over = status == REMAT_E_APPLIES || rm_is_too_much_memory(p->ctx, status);
        if (status != REMAT_OK && !passed_over) return status;
    }
    return rm_chain_offer_least(p, results);
}

const rm_planner rm_auto = {
    .entry = {"auto", "roundings of the bound's linear program, mincut and rotor, improved by a "
                      "search with whole recomputations as moves"},
    .default_work = RM_SECOND,
    .least_work = 5 * (int64_t)RM_SECOND / 2,
    .run = run,
    .run_chain = run_chain,
    .heeds = "bandwidth group host_bytes max_slots objective offload order_only reduction_factor "
             "reweight slots soft_peak walkers",
    .parts_with_offload = PARTS_WITH_OFFLOAD,
    .continues = true};
