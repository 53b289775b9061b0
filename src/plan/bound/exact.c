/* exact.c: auto's plan, improved and proved: in its order of first runs, and in all orders where
 * the graph is small.
 *
 * Method, while the limits last:
 * 1. A short run of auto. The better the plan, the fewer states are left to look at.
 * 2. If the graph is small: any_order.c searches all plans. Where it comes to an end, nothing is
 * left to do: the plan is the cheapest there is, or none fits.
 * 3. A short proof by prove.c, which searches all plans with the order of first runs of our plan.
 * If we have none that fits, the order is the graph's own. A cheaper plan takes the place of ours.
 * 4. A run of auto, as long as auto alone would run, so that the plan is never worse than auto's.
 *    By a limit of work that the caller sets, auto has all of it and the rest as much again
 * (rm_exact .within). A limit of time alone is shared, and the promise does not hold.
 * 5. Rounds. Each of them
 *    - searches all plans again, if the graph is small and the plan got better;
 *    - proves the plan's order, without a limit of its own;
 *    - once that is done, tries other orders: each op moves to other places, between what it reads
 *      and who reads it, and prove.c looks for a cheaper plan there. Most often the bound of that
 *      order says at once that there is none. A better plan brings its order along, with its proof;
 *    - runs auto with another seed, and looks for a cheaper plan in the order of what it found.
 *
 * Invariants: best->proved is about the order of best's own steps (planner.h); rm_offer clears it
 * when they change. best->bound is about all orders, so it outlives them.
 *
 * A budget that is none, or below what every plan needs, and a very large graph are left to auto.
 *
 * Plans that fetch are not looked for. So nothing is said of all orders where the caller allows
 * offload, and nothing is proved of a plan that fetches.
 *
 * Cost: that of auto, prove.c and any_order.c, within the limits. */
#include "plan/bound/all_orders.h"
#include "plan/bound/any_order.h"
#include "plan/planner.h"
#include "sim/codes.h"

enum {
    WORK_AN_OP = RM_SECOND / 750,    /* of the first run of auto */
    SHORT_PROOF = RM_SECOND / 8,     /* work of the first proof */
    MOVE_PROOF = RM_SECOND / 64,     /* work of a proof in another order, at most */
    AUTO_WORK = RM_SECOND,           /* what auto alone has: auto.c */
    ROUND_AUTO_WORK = RM_SECOND / 8, /* of auto's run in the first round; later ones run longer */
    LARGE = 50000                    /* ops: too many for a proof, and auto needs all the work */
};
static const double first_share = 0.25;    /* of what is left, for the first run of auto */
static const double any_order_share = 0.4; /* of what is left, for a search through all orders */
/* Of the time that is left, for the long run of auto: where a proof is near, and where it is far.
 */
static const double near_share = 0.5, far_share = 0.9;
static const double near_gap = 0.01; /* of the plan's cost: the proof is near */

typedef struct exact {
    const rm_problem *p;
    remat_ctx *ctx;
    rm_normal nm;
    rm_incumbent *best;
    rm_codes codes;
    bool full;              /* a search stopped for lack of memory */
    int64_t any_order_cost; /* all orders were searched for plans below this */
    int64_t moved_cost;     /* no move of an op leads from the plan of this cost to a better one */
} exact;

static bool fits(const exact *e) { return e->best->any && rm_fits(e->p, e->best->peak_bytes); }

/* Is the plan the cheapest in its own order? */
static bool is_proved(const exact *e)
{
    const rm_incumbent *best = e->best;
    return fits(e) && (best->proved == best->cost || best->cost == e->p->graph->total_cost);
}

static bool has_transfers(const exact *e)
{
    return rm_has_transfers(e->best->steps.items, e->best->steps.n);
}

static bool is_over(const exact *e) { return rm_is_over(e->ctx) || rm_is_settled(e->p, e->best); }

/* A search that would take more memory than there may be ends; what was found before stays. */
static remat_status forgive(exact *e, remat_status status)
{
    if (status == REMAT_OK || !rm_is_too_much_memory(e->ctx, status)) return status;
    e->full = true;
    return REMAT_OK;
}

/* What auto has proved of all orders. */
static void take_proof(exact *e, const rm_incumbent *found)
{
    rm_incumbent *best = e->best;
    best->infeasible |= found->infeasible;
    if (!found->bound.scope || (best->bound.scope && found->bound.cost <= best->bound.cost)) return;
    best->bound = found->bound;
}

/* auto would go on from a plan that it is given. Its own search is to be as if it were alone, so it
 * starts without one. What it found stays in `found`. */
static remat_status run_auto(exact *e, double share, int64_t most_work, int64_t seed,
                             rm_incumbent *found)
{
    remat_ctx *ctx = e->ctx;
    const int64_t own_seed = ctx->options.seed;
    const rm_mark mark = rm_scratch_mark(ctx);
    rm_limit_push(ctx, share, most_work);
    ctx->bound_cost = e->p->graph->total_cost; /* a proof's bound is for one order */
    ctx->options.seed = seed;
    const remat_status status = rm_auto.run(e->p, found);
    ctx->options.seed = own_seed;
    rm_limit_pop(ctx);
    rm_scratch_release(ctx, mark);
    TRY(forgive(e, status));
    if (!found->any) return REMAT_OK;
    TRY(rm_offer(e->p, e->best, &found->steps));
    take_proof(e, found);
    return REMAT_OK;
}

static remat_status offer_auto(exact *e, double share, int64_t most_work)
{
    rm_incumbent found = {.any = false};
    const remat_status status = run_auto(e, share, most_work, e->ctx->options.seed, &found);
    RM_VEC_FREE(&e->ctx->heap, found.steps);
    return status;
}

static rm_proof_goal goal_in(const exact *e, const uint32_t *order)
{
    return (rm_proof_goal){.budget_bytes = e->p->budget_bytes,
                           .order = order,
                           .below = fits(e) ? e->best->cost : RM_MAX_SUM,
                           .peak_bytes = e->best->peak_bytes,
                           .strategy = rm_exact.entry.name};
}

/* ---- all orders ---- */

/* Again only where the plan got better meanwhile: that leaves fewer states to look at. */
static remat_status prove_any_order(exact *e)
{
    const int64_t below = fits(e) ? e->best->cost : RM_MAX_SUM;
    if (!rm_any_order_applies(&e->nm) || e->ctx->options.offload || below >= e->any_order_cost)
        return REMAT_OK;
    e->any_order_cost = below;
    rm_limit_push(e->ctx, any_order_share, RM_NO_LIMIT);
    const remat_status status = rm_search_all_orders(e->p, &e->nm, rm_exact.entry.name, e->best);
    rm_limit_pop(e->ctx);
    return forgive(e, status);
}

/* ---- one order ---- */

/* Proves what it can of an order; NULL: the graph's own. of_best: it is that of our plan. */
static remat_status prove_order(exact *e, const uint32_t *order, bool of_best, int64_t most_work)
{
    rm_incumbent *best = e->best;
    rm_proved proved;
    const rm_proof_goal goal = goal_in(e, order);
    const int64_t cost = best->cost;
    const bool fitted = fits(e);
    rm_limit_push(e->ctx, 1, most_work);
    const remat_status status = rm_prove(e->ctx, &e->nm, &goal, &e->codes, &proved);
    rm_limit_pop(e->ctx);
    if (status != REMAT_OK) return forgive(e, status);
    e->full |= proved.full;
    if (e->codes.n) TRY(rm_offer_codes(e->p, &e->nm, &e->codes, best));
    const bool taken = fits(e) && (!fitted || best->cost < cost);
    if (taken || (of_best && fitted)) best->proved = proved.bound;
    return REMAT_OK;
}

/* The order of first runs of the steps. */
static remat_status order_of(exact *e, const rm_schedule *steps, uint32_t **order)
{
    TRY(rm_codes_of_steps(e->ctx, &e->nm, steps, &e->codes));
    return rm_codes_first_runs(e->ctx, &e->nm, &e->codes, order);
}

static remat_status prove_best(exact *e, int64_t most_work)
{
    uint32_t *order = NULL;
    const rm_mark mark = rm_scratch_mark(e->ctx);
    if (fits(e)) TRY(order_of(e, &e->best->steps, &order));
    const remat_status status = prove_order(e, order, true, most_work);
    rm_scratch_release(e->ctx, mark);
    return status;
}

/* ---- other orders ---- */

typedef struct places { /* an order, and where each op stands in it */
    uint32_t *order, *moved, *position;
} places;

/* The places [first, last] where the op may stand while all others keep their order. */
static void find_window(const exact *e, const places *x, uint32_t op, uint32_t *first,
                        uint32_t *last)
{
    const rm_normal *nm = &e->nm;
    *first = 0;
    *last = nm->n_ops - 1;
    for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++) {
        const uint32_t maker = x->position[nm->producer[nm->in[k]]];
        if (maker >= *first) *first = maker + 1;
    }
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
        for (uint32_t r = nm->reader_begin[nm->out[k]]; r < nm->reader_begin[nm->out[k] + 1]; r++) {
            const uint32_t reader = x->position[nm->readers[r]];
            if (reader <= *last) *last = reader - 1;
        }
    for (uint32_t other = 0; other < nm->n_ops && nm->pinned[op]; other++) {
        const uint32_t at = x->position[other];
        if (!nm->pinned[other] || other == op) continue;
        if (other < op && at >= *first) *first = at + 1;
        if (other > op && at <= *last) *last = at - 1;
    }
}

static void move_op(const exact *e, const places *x, uint32_t from, uint32_t to)
{
    uint32_t n = 0;
    for (uint32_t t = 0; t < e->nm.n_ops; t++) {
        if (t == from) continue;
        if (n == to) x->moved[n++] = x->order[from];
        x->moved[n++] = x->order[t];
    }
    if (n == to) x->moved[n] = x->order[from];
}

/* Tries the op at places ever farther from its own, and at the ends of its window. Stops where a
 * better plan is found. */
static remat_status try_op(exact *e, const places *x, uint32_t op)
{
    uint32_t first, last;
    const uint32_t at = x->position[op];
    const int64_t cost = e->best->cost;
    find_window(e, x, op, &first, &last);
    for (uint32_t step = 1; step <= e->nm.n_ops; step *= 2) {
        const uint32_t back = at - first < step ? first : at - step,
                       on = last - at < step ? last : at + step;
        const uint32_t to[2] = {back, on};
        for (int i = 0; i < 2; i++) {
            if (to[i] == at || e->best->cost < cost || is_over(e)) continue;
            move_op(e, x, at, to[i]);
            TRY(prove_order(e, x->moved, false, MOVE_PROOF));
        }
        if (back == first && on == last) break;
    }
    return REMAT_OK;
}

static remat_status load_order(exact *e, places *x)
{
    TRY(order_of(e, &e->best->steps, &x->order));
    TRY(RM_SCRATCH(e->ctx, x->moved, e->nm.n_ops));
    TRY(RM_SCRATCH(e->ctx, x->position, e->nm.n_ops));
    for (uint32_t t = 0; t < e->nm.n_ops; t++) x->position[x->order[t]] = t;
    return REMAT_OK;
}

/* Moves ops, one at a time, as long as that helps. */
static remat_status try_moves(exact *e)
{
    for (uint32_t op = 0, failed = 0; failed < e->nm.n_ops && !is_over(e);
         op = (op + 1) % e->nm.n_ops) {
        const rm_mark mark = rm_scratch_mark(e->ctx);
        const int64_t cost = e->best->cost;
        places x;
        TRY(load_order(e, &x));
        TRY(try_op(e, &x, op));
        rm_scratch_release(e->ctx, mark);
        failed = e->best->cost < cost ? 0 : failed + 1;
    }
    e->moved_cost = e->best->cost;
    return REMAT_OK;
}

/* auto with another seed: its plan, and the best plan in its order. */
static remat_status try_seed(exact *e, uint32_t round)
{
    const int64_t seed = e->ctx->options.seed,
                  other = seed < INT64_MAX - round ? seed + round : round;
    rm_incumbent found = {.any = false};
    uint32_t *order;
    const rm_mark mark = rm_scratch_mark(e->ctx);
    remat_status status = run_auto(e, 1, (int64_t)ROUND_AUTO_WORK * round, other, &found);
    if (status == REMAT_OK && found.any && !is_over(e)) {
        status = order_of(e, &found.steps, &order);
        if (status == REMAT_OK) status = prove_order(e, order, false, MOVE_PROOF);
    }
    rm_scratch_release(e->ctx, mark);
    RM_VEC_FREE(&e->ctx->heap, found.steps);
    return status;
}

/* ---- all together ---- */

static remat_status run_round(exact *e, uint32_t round)
{
    TRY(prove_any_order(e));
    if (!is_over(e) && !is_proved(e)) TRY(prove_best(e, RM_NO_LIMIT));
    if (!is_over(e) && is_proved(e) && e->best->cost != e->moved_cost) TRY(try_moves(e));
    return is_over(e) ? REMAT_OK : try_seed(e, round);
}

/* What auto would have by itself; RM_NO_LIMIT: as long as the time lasts. */
static int64_t whole_auto_work(const remat_ctx *ctx)
{
    const rm_options *o = &ctx->options;
    const int64_t parts = o->offload ? rm_auto.parts_with_offload : 1;
    if (o->work > RM_NO_LIMIT / RM_WORK_UNIT / parts) return RM_NO_LIMIT;
    if (o->work) return parts * o->work * RM_WORK_UNIT;
    return o->time_ms ? RM_NO_LIMIT : parts * AUTO_WORK;
}

/* Work is set apart for it; time is not. */
static double auto_share(const exact *e)
{
    const double cost = (double)e->best->cost;
    if (e->ctx->options.work || !e->ctx->options.time_ms) return 1;
    return fits(e) && cost - (double)e->best->proved <= near_gap * cost ? near_share : far_share;
}

/* What is quick, before the long run of auto. */
static remat_status begin(exact *e)
{
    TRY(offer_auto(e, first_share, WORK_AN_OP * (int64_t)e->p->graph->n_ops));
    if (rm_is_settled(e->p, e->best)) return REMAT_OK;
    TRY(rm_normal_of(e->ctx, e->p->graph, &e->nm));
    if (!is_over(e) && !has_transfers(e)) TRY(prove_any_order(e));
    return is_over(e) || has_transfers(e) ? REMAT_OK : prove_best(e, SHORT_PROOF);
}

static remat_status run_with(exact *e)
{
    remat_ctx *ctx = e->ctx;
    const int64_t auto_work = whole_auto_work(ctx), left = rm_work_left(ctx);
    const bool spares = left != RM_NO_LIMIT && (ctx->options.work || ctx->options.offload);
    /* What every limit allows, but for what is auto's. */
    rm_limit_push(ctx, 1, spares && left > auto_work ? left - auto_work : RM_NO_LIMIT);
    const remat_status begun = begin(e);
    rm_limit_pop(ctx);
    TRY(begun);
    if (spares) rm_limits_ensure(ctx, auto_work);
    if (is_over(e)) return REMAT_OK;
    TRY(offer_auto(e, auto_share(e), auto_work));
    for (uint32_t round = 1; !is_over(e) && !has_transfers(e) && !e->full; round++) {
        const int64_t work = ctx->limits.work;
        TRY(run_round(e, round));
        if (ctx->limits.work == work) break; /* nobody knows what to do */
    }
    return REMAT_OK;
}

/* By a limit of work, with what auto would have. */
static remat_status run_auto_alone(const rm_problem *p, rm_incumbent *best)
{
    remat_ctx *ctx = p->ctx;
    rm_limit_push(ctx, 1, ctx->options.work ? whole_auto_work(ctx) : RM_NO_LIMIT);
    const remat_status status = rm_auto.run(p, best);
    const remat_stopped why = rm_stopped(ctx);
    rm_limit_pop(ctx);
    rm_note_stop(ctx, why);
    return status;
}

static remat_status run(const rm_problem *p, rm_incumbent *best)
{
    rm_need need;
    TRY(rm_need_find(p->ctx, p->graph, p->ctx->options.offload, &need));
    if (p->budget_bytes < need.bytes || p->graph->n_ops > LARGE) return run_auto_alone(p, best);
    exact e = {.p = p, .ctx = p->ctx, .best = best, .any_order_cost = INT64_MAX, .moved_cost = -1};
    const remat_status status = forgive(&e, run_with(&e));
    RM_VEC_FREE(&p->ctx->heap, e.codes);
    if (e.full) rm_note_stop(p->ctx, REMAT_WORK); /* with more memory it would have gone on */
    return status;
}

const rm_planner rm_exact = {
    .entry = {"exact",
              "auto, then a search until no plan in its order is cheaper; on small graphs, "
              "none in any order"},
    .default_work = 4 * (int64_t)RM_SECOND,
    .run = run,
    .heeds = "reduction_factor reweight slots",
    .within = &rm_auto,
    .continues = true};
