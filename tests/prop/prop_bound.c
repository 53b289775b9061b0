/* prop_bound.c: N random tiny graphs, each at a budget and in an order of first runs. The bound, as
 * the verifier reads it from the certificate, is never above the cheapest schedule that brute force
 * finds, for no rule, each rule alone and all together; and never below what running every op once
 * costs. No schedule fits below the need, nor below the least peak that looking back gives. What
 * random certificates prove is true. Each rule must have made a bound higher somewhere: a rule that
 * never acts would not be tested. With fetches allowed, bound and brute force are compared as well.
 * The search for a proof finds the optimum, whatever it starts from, and proves it; stopped early,
 * what it proves is not above the optimum. Usage: prop_bound N SEED. A failure prints the seed of
 * its graph: prop_bound 1 SEED runs that one alone. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "order_brute.h"
#include "plan/bound/gaps.h"
#include "plan/bound/gate_prices.h"
#include "plan/bound/prove.h"
#include "random_graph.h"
#include "random_walls.h"
#include "verify/verify.h"

#define NOTHING NULL, 0
enum {
    MOST_PAIRS = 16,       /* of a random certificate */
    MOST_IN_ANY_ORDER = 16 /* ops and storages for which all orders are tried */
};

static int64_t n_in_place, n_compared, n_above_first_runs, n_tight, n_infeasible, n_any_cheaper,
    n_fetching, n_proved, n_stopped, n_floating, n_needed_at_end, n_any_above, n_any_tight,
    n_any_by_rules, n_random_true[2], n_random_heirs[2], n_random_by_heirs, n_any_by_holders,
    n_least_above, n_least_exact, n_active[5], n_random_walls, n_random_walls_true[2],
    n_random_walls_tight[2], n_walls[2], n_walls_tight[2], n_walls_better[2];

static uint32_t add_op(remat_builder *b, random_source *r, const uint32_t *in, uint32_t n_in,
                       const uint32_t *out, uint32_t n_out)
{
    const uint32_t op = remat_builder_op(b, NULL, in, n_in, out, n_out);
    remat_builder_op_set(b, op, REMAT_OP_COST, 1 + random_below(r, 9));
    return op;
}

/* One storage, several ops that read it, at times through another op, at times joined again; a
 * large op; then what they made is read in any order: fan-out, regions, side outputs. */
static remat_graph *block_graph(remat_ctx *ctx, random_source *r)
{
    remat_builder *b = remat_builder_new(ctx, "block");
    uint32_t wide[2], leaves[4], n_leaves = 0, joined;
    const uint32_t k = 2 + random_below(r, 2);
    int64_t bytes = 0, sizes[4];
    for (uint32_t i = 0; i < k; i++) bytes += sizes[i] = 1 + random_below(r, 4);
    wide[0] =
        remat_builder_value(b, "wide", bytes + random_below(r, 3) - (random_chance(r, 20) ? 1 : 0));
    wide[1] = remat_builder_value(b, "side", 1 + random_below(r, 2));
    const bool side = random_chance(r, 30);
    add_op(b, r, NOTHING, wide, side ? 2 : 1);
    for (uint32_t i = 0; i < k; i++) {
        uint32_t from = wide[0];
        if (random_chance(r, 35)) {
            const uint32_t between = remat_builder_value(b, NULL, sizes[i] + random_below(r, 3));
            add_op(b, r, &from, 1, &between, 1);
            from = between;
        }
        leaves[n_leaves] = remat_builder_value(b, NULL, sizes[i]);
        add_op(b, r, &from, 1, &leaves[n_leaves++], 1);
    }
    if (random_chance(r, 50)) {
        joined = remat_builder_value(b, "joined", 1 + random_below(r, (uint32_t)bytes));
        add_op(b, r, leaves, n_leaves, &joined, 1);
        if (random_chance(r, 60)) leaves[0] = joined, n_leaves = 1;
        else leaves[n_leaves++] = joined;
    }
    if (side) leaves[n_leaves - 1] = random_chance(r, 50) ? wide[1] : leaves[n_leaves - 1];
    remat_builder_op_set(b, add_op(b, r, NOTHING, NOTHING), REMAT_OP_WORKSPACE,
                         bytes + random_below(r, 12));
    for (uint32_t i = n_leaves; i-- > 0;) {
        const uint32_t other = random_below(r, i + 1), leaf = leaves[other];
        leaves[other] = leaves[i];
        const uint32_t op = add_op(b, r, &leaf, 1, NOTHING);
        if (random_chance(r, 30))
            remat_builder_op_set(b, op, REMAT_OP_WORKSPACE, random_below(r, 10));
    }
    if (random_chance(r, 10)) remat_builder_output(b, wide[0]);
    random_inplace(b, r);
    remat_graph *graph = NULL;
    if (remat_builder_finish(b, &graph) != REMAT_OK) graph = NULL;
    remat_builder_free(b);
    return graph;
}

/* Adds an op that makes one value of about so many bytes from these. */
static uint32_t add_value(remat_builder *b, random_source *r, const uint32_t *in, uint32_t n_in,
                          int64_t bytes)
{
    const uint32_t v = remat_builder_value(b, NULL, bytes);
    const uint32_t op = add_op(b, r, in, n_in, &v, 1);
    if (random_chance(r, 4)) remat_builder_op_set(b, op, REMAT_OP_PINNED, 1);
    if (random_chance(r, 8)) remat_builder_op_set(b, op, REMAT_OP_WORKSPACE, random_below(r, 8));
    return v;
}

/* A row of ops, copies of what they make, large ops, and then a row of ops that read the copies:
 * nobody knows when a copy is made. Copies are copied in turn, have two sources, are smaller or
 * larger than these, are read twice, or are outputs. */
static remat_graph *copies_graph(remat_ctx *ctx, random_source *r)
{
    remat_builder *b = remat_builder_new(ctx, "copies");
    uint32_t copies[4], row[4], n_copies = 0, n_row = 0, in[3];
    int64_t sizes[4];
    const uint32_t n = 1 + random_below(r, 2);
    for (; n_row < n; n_row++) {
        sizes[n_row] = 1 + random_below(r, 6);
        row[n_row] = add_value(b, r, n_row ? &row[n_row - 1] : NULL, n_row ? 1 : 0, sizes[n_row]);
    }
    for (uint32_t i = 0; i < n; i++) {
        const bool two = n_copies && random_chance(r, 15);
        in[0] = row[i], in[1] = two ? copies[0] : REMAT_NONE;
        const int64_t bytes = sizes[i] + (random_chance(r, 40) ? random_below(r, 6) : 0);
        copies[n_copies++] =
            add_value(b, r, in, two ? 2 : 1, bytes - (bytes > 1 && random_chance(r, 10)));
        if (random_chance(r, 30))
            copies[n_copies - 1] =
                add_value(b, r, &copies[n_copies - 1], 1, bytes + (random_chance(r, 30) ? 1 : 0));
    }
    uint32_t last = row[n - 1];
    const uint32_t n_large = 1 + random_below(r, 2);
    for (uint32_t i = 0; i < n_large; i++) {
        const uint32_t made = remat_builder_value(b, NULL, 1 + random_below(r, 3));
        remat_builder_op_set(b, add_op(b, r, &last, 1, &made, 1), REMAT_OP_WORKSPACE,
                             4 + random_below(r, 12));
        last = made;
    }
    for (uint32_t i = n_copies; i-- > 0;) {
        in[0] = last, in[1] = copies[random_chance(r, 80) ? i : random_below(r, n_copies)];
        in[2] = row[random_below(r, n)];
        last = add_value(b, r, in, random_chance(r, 12) ? 3 : 2, 1 + random_below(r, 4));
    }
    if (random_chance(r, 60)) remat_builder_output(b, last);
    if (random_chance(r, 6)) remat_builder_output(b, copies[0]);
    if (random_chance(r, 6)) remat_builder_output(b, row[0]);
    random_inplace(b, r);
    remat_graph *graph = NULL;
    if (remat_builder_finish(b, &graph) != REMAT_OK) graph = NULL;
    remat_builder_free(b);
    return graph;
}

/* Any order that respects the inputs, and the graph's order among pinned ops. */
static void shuffle_order(const rm_normal *nm, random_source *r, uint32_t *order)
{
    bool ran[BRUTE_MOST_OPS] = {false};
    for (uint32_t t = 0; t < nm->n_ops; t++) {
        uint32_t ready[BRUTE_MOST_OPS], n = 0;
        bool pinned_waits = false;
        for (uint32_t op = 0; op < nm->n_ops; op++) {
            if (ran[op]) continue;
            bool can = !(nm->pinned[op] && pinned_waits);
            for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
                can = can && ran[nm->producer[nm->in[k]]];
            pinned_waits = pinned_waits || nm->pinned[op];
            if (can) ready[n++] = op;
        }
        order[t] = ready[random_chance(r, 60) ? 0 : random_below(r, n)];
        ran[order[t]] = true;
    }
}

typedef struct bed {
    remat_ctx *ctx;
    const remat_graph *graph;
    rm_normal nm;
    const uint32_t *order;
    remat_step *steps;
    size_t n_steps;
    int64_t budget;
    bool one_instance; /* no schedule is better for two instances of a storage: order_brute.h */
} bed;

/* What the certificate proves; BRUTE_NOTHING: no schedule fits, in this order or, if that is asked
 * for, in any. */
static int64_t bound_of(bed *b, rm_order_bound_options options, int64_t bandwidth)
{
    rm_order_bound bound;
    remat_verdict v = REMAT_VERDICT_INIT;
    int64_t cost = -1;
    CHECK(rm_order_bound_find(b->ctx, &b->nm, b->budget, b->order, &options, &bound) == REMAT_OK,
          "%s", remat_ctx_error(b->ctx));
    rm_order_bound_check(&bound, &b->nm, b->budget);
    if (!bound.feasible) return BRUTE_NOTHING;
    const rm_bound_case question = {options.any_order ? NULL : b->steps, b->n_steps, b->budget,
                                    options.transfer != NULL, bandwidth};
    CHECK(rm_verify_bound(b->ctx, b->graph, &question, &bound.certificate, &cost, &v) == REMAT_OK,
          "%s", remat_ctx_error(b->ctx));
    CHECK(v.valid, "rules %u: %s", options.rules, v.reason);
    CHECK(cost >= b->graph->total_cost, "rules %u: %" PRId64, options.rules, cost);
    return cost;
}

/* The bound by walls: true, and not refused. flow: the bound by gaps. */
static void try_walls(bed *b, bool any_order, int64_t least, int64_t flow)
{
    const rm_order_bound_options options = {.rules = RM_BOUND_RULES, .any_order = any_order};
    const rm_bound_case question = {any_order ? NULL : b->steps, b->n_steps, b->budget, false, 0};
    rm_order_bound gaps;
    rm_certificate x;
    remat_verdict v = REMAT_VERDICT_INIT;
    int64_t cost = -1;
    CHECK(rm_order_bound_find(b->ctx, &b->nm, b->budget, b->order, &options, &gaps) == REMAT_OK,
          "%s", remat_ctx_error(b->ctx));
    if (!gaps.feasible) return;
    const rm_gate_question about = {.budget_bytes = b->budget,
                                    .order = any_order ? NULL : b->order,
                                    .flow = &gaps.certificate,
                                    .enough = RM_MAX_SUM, /* it tries to prove too much */
                                    .most_work = 300000};
    CHECK(rm_gate_prices_find(b->ctx, &b->nm, &about, &x) == REMAT_OK, "%s",
          remat_ctx_error(b->ctx));
    if (x.scale == 0) return;
    CHECK(rm_verify_bound(b->ctx, b->graph, &question, &x, &cost, &v) == REMAT_OK && v.valid,
          "walls: %s", v.reason);
    CHECK(cost <= least, "walls at %" PRId64 " prove %" PRId64 ", optimum %" PRId64, b->budget,
          cost, least);
    n_walls[any_order] += cost > b->graph->total_cost;
    n_walls_tight[any_order] += cost > b->graph->total_cost && cost == least;
    n_walls_better[any_order] += cost > flow;
}

/* The search for a proof: the sequence it finds is valid, has this order, fits unless it wants two
 * instances, and costs what it says. */
static void check_found(bed *b, const rm_codes *found, int64_t cost)
{
    rm_schedule steps = {0};
    rm_liveness l;
    uint32_t n = 0, n_ran = 0;
    bool ran[BRUTE_MOST_OPS] = {false};
    for (size_t i = 0; i < found->n; i++) {
        const uint32_t op = found->items[i];
        if (ran[op]) continue;
        ran[op] = true;
        n_ran++;
        if (rm_is_free_view(&b->nm, op)) {
            n_floating++;
            continue;
        }
        for (; rm_is_free_view(&b->nm, b->order[n]); n++) continue;
        CHECK(op == b->order[n], "first run %u is of %u, not of %u", n, op, b->order[n]);
        n++;
    }
    CHECK(n_ran == b->nm.n_ops, "%u of %u ops run", n_ran, b->nm.n_ops);
    CHECK(rm_normal_expand(b->ctx, &b->nm, found->items, found->n, &steps) == REMAT_OK, "%s",
          remat_ctx_error(b->ctx));
    CHECK(rm_liveness_of(b->ctx, b->graph, steps.items, steps.n, 0, &l) == REMAT_OK, "%s",
          remat_ctx_error(b->ctx));
    CHECK(l.cost == cost, "%" PRId64 " instead of %" PRId64, l.cost, cost);
    CHECK(l.peak_bytes <= b->budget || !b->one_instance, "peak %" PRId64 ", budget %" PRId64,
          l.peak_bytes, b->budget);
    RM_VEC_FREE(&b->ctx->heap, steps);
}

static rm_proved prove(bed *b, int64_t below, int64_t work, rm_codes *found)
{
    rm_proved proved;
    CHECK(remat_ctx_set(b->ctx, "work", work) == REMAT_OK, "%s", remat_ctx_error(b->ctx));
    rm_limits_begin(b->ctx, INT64_MAX);
    const rm_proof_goal goal = {
        .budget_bytes = b->budget, .order = b->order, .below = below, .strategy = "exact"};
    CHECK(rm_prove(b->ctx, &b->nm, &goal, found, &proved) == REMAT_OK, "%s",
          remat_ctx_error(b->ctx));
    rm_limits_end(b->ctx);
    if (found->n) check_found(b, found, proved.cost);
    CHECK((found->n > 0) == (proved.cost != INT64_MAX), "%zu steps, cost %" PRId64, found->n,
          proved.cost);
    return proved;
}

/* Without anything to start from, with a plan that is too dear, with the best one, and stopped
 * early. */
static void compare_proofs(bed *b, random_source *r, int64_t least)
{
    rm_codes found = {0};
    const bool any = least != BRUTE_NOTHING;
    rm_proved p = prove(b, RM_MAX_SUM, 0, &found);
    if (!b->one_instance) { /* prop_any_order.c compares these with all schedules */
        CHECK(p.bound <= (any ? least : RM_MAX_SUM), "bound %" PRId64 ", optimum %" PRId64, p.bound,
              least);
        RM_VEC_FREE(&b->ctx->heap, found);
        return;
    }
    CHECK(p.cost == (any ? least : INT64_MAX),
          "search %" PRId64 ", optimum %" PRId64 " at %" PRId64, p.cost, least, b->budget);
    CHECK(p.bound == (any ? least : RM_MAX_SUM), "bound %" PRId64 ", optimum %" PRId64, p.bound,
          least);
    if (any) {
        p = prove(b, least + 1 + random_below(r, 9), 0, &found);
        CHECK(p.cost == least && p.bound == least, "search %" PRId64 ", optimum %" PRId64, p.cost,
              least);
        p = prove(b, least, 0, &found);
        CHECK(found.n == 0 && p.bound == least, "bound %" PRId64 ", optimum %" PRId64, p.bound,
              least);
        p = prove(b, least + random_below(r, 5), 1 + random_below(r, 100), &found);
        CHECK(p.bound <= least, "stopped: bound %" PRId64 ", optimum %" PRId64, p.bound, least);
        n_proved += least > b->graph->total_cost;
        n_stopped += p.bound < least;
    }
    RM_VEC_FREE(&b->ctx->heap, found);
}

static bool is_made_from(const remat_graph *g, uint32_t v, uint32_t source)
{
    const uint32_t op = g->producer[v];
    if (op == REMAT_NONE) return false;
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
        if (g->root[g->in[k]] == source) return true;
    return false;
}

/* Prices at some ops, and storages that stand in for some others. What is random is refused, or
 * proves little; what it proves must be true. A path is walked forwards, from reader to reader.
 * What is made from a storage stands in for it often: it may be a holder. */
static rm_certificate random_certificate(bed *b, random_source *r, bool any_order, rm_price *prices,
                                         rm_heir *heirs)
{
    const remat_graph *g = b->graph;
    rm_certificate x = {.scale = 1 + random_below(r, 4), .prices = prices, .heirs = heirs};
    uint32_t last = REMAT_NONE;
    for (uint32_t op = 0; op < g->n_ops; op++) {
        bool reads_last = last == REMAT_NONE || random_chance(r, 5);
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
            reads_last |= g->producer[g->in[k]] == last;
        if ((any_order && !reads_last) || random_chance(r, 40)) continue;
        prices[x.n_prices++] = (rm_price){g->op_original[op], !any_order + random_below(r, 6)};
        last = op;
    }
    for (uint32_t v = 0; v < g->n_values && x.n_heirs < 8; v++)
        for (uint32_t heir = 0; heir < g->n_values && x.n_heirs < 8; heir++)
            if (v != heir && random_chance(r, any_order && is_made_from(g, v, heir) ? 30 : 5))
                heirs[x.n_heirs++] = (rm_heir){g->value_original[v], g->value_original[heir]};
    if (random_chance(r, any_order ? 40 : 70)) x.n_heirs = 0;
    return x;
}

/* What the certificate proves if nothing stands in. */
static int64_t cost_without_heirs(bed *b, const rm_bound_case *question, rm_certificate x)
{
    remat_verdict v = REMAT_VERDICT_INIT;
    int64_t cost = 0;
    x.n_heirs = 0;
    CHECK(rm_verify_bound(b->ctx, b->graph, question, &x, &cost, &v) == REMAT_OK && v.valid, "%s",
          v.reason);
    return cost;
}

static int by_value(const void *left, const void *right)
{
    const rm_heir *a = left, *b = right;
    if (a->value != b->value) return a->value < b->value ? -1 : 1;
    return (a->heir > b->heir) - (a->heir < b->heir);
}

/* The solver's own certificate for every order, with other prices, with fewer heirs, and with
 * storages that may be holders of what they are made from. */
static rm_certificate changed_certificate(bed *b, random_source *r, rm_price *prices,
                                          rm_heir *heirs)
{
    const remat_graph *g = b->graph;
    const rm_order_bound_options options = {.any_order = true,
                                            .rules = random_below(r, RM_BOUND_RULES + 1)};
    rm_order_bound bound;
    CHECK(rm_order_bound_find(b->ctx, &b->nm, b->budget, NULL, &options, &bound) == REMAT_OK, "%s",
          remat_ctx_error(b->ctx));
    rm_certificate x = bound.certificate;
    if (!bound.feasible || x.scale == 0) return (rm_certificate){.scale = 1};
    for (size_t i = 0; i < x.n_prices; i++) {
        prices[i] = x.prices[i];
        if (random_chance(r, 30))
            prices[i].price = x.prices[random_below(r, (uint32_t)i + 1)].price;
        if (random_chance(r, 15)) prices[i].price += x.scale / (1 + random_below(r, 8));
        if (random_chance(r, 10)) prices[i].price = 0;
    }
    size_t n = 0;
    const uint32_t strangers = random_chance(r, 50) ? 3 : 100; /* pairs that share nothing */
    for (uint32_t v = 0; v < g->n_values; v++) {
        int64_t left = g->storage[v];
        for (uint32_t heir = 0; heir < g->n_values && n < MOST_PAIRS; heir++) {
            const rm_heir pair = {g->value_original[v], g->value_original[heir]};
            const bool had = x.n_heirs && bsearch(&pair, x.heirs, x.n_heirs, sizeof pair, by_value);
            const uint32_t percent = had ? 80 : is_made_from(g, v, heir) ? 40 : strangers;
            if (v == heir || g->storage[heir] > left || !random_chance(r, percent)) continue;
            heirs[n++] = pair;
            left -= g->storage[heir];
        }
    }
    if (n) qsort(heirs, n, sizeof *heirs, by_value);
    return (rm_certificate){
        .scale = x.scale, .n_prices = x.n_prices, .prices = prices, .n_heirs = n, .heirs = heirs};
}

/* Whatever a certificate holds, what the verifier makes of it is true. */
static void try_random_certificates(bed *b, random_source *r, bool any_order, int64_t least)
{
    rm_price *prices = rm_scratch(b->ctx, b->graph->n_ops, sizeof *prices);
    rm_heir heirs[MOST_PAIRS];
    const rm_bound_case question = {any_order ? NULL : b->steps, b->n_steps, b->budget, false, 0};
    for (int i = 0; i < 20; i++) {
        const rm_certificate x = any_order && i % 2
                                     ? changed_certificate(b, r, prices, heirs)
                                     : random_certificate(b, r, any_order, prices, heirs);
        remat_verdict v = REMAT_VERDICT_INIT;
        int64_t cost = 0;
        CHECK(rm_verify_bound(b->ctx, b->graph, &question, &x, &cost, &v) == REMAT_OK, "%s",
              remat_ctx_error(b->ctx));
        if (!v.valid) continue;
        CHECK(cost <= least, "a random certificate proves %" PRId64 ", optimum %" PRId64, cost,
              least);
        n_random_true[any_order] += cost > b->graph->total_cost;
        n_random_heirs[any_order] += cost > b->graph->total_cost && x.n_heirs > 0;
        n_random_by_heirs += any_order && cost > cost_without_heirs(b, &question, x);
    }
    for (int i = 0; i < 20; i++) {
        const rm_certificate x = random_walls(b->ctx, b->graph, r, any_order, prices);
        remat_verdict v = REMAT_VERDICT_INIT;
        int64_t cost = 0;
        CHECK(rm_verify_bound(b->ctx, b->graph, &question, &x, &cost, &v) == REMAT_OK, "%s",
              remat_ctx_error(b->ctx));
        n_random_walls += x.n_prices > 0;
        if (!v.valid) continue;
        CHECK(cost <= least, "walls prove %" PRId64 ", optimum %" PRId64, cost, least);
        n_random_walls_true[any_order] += cost > b->graph->total_cost;
        n_random_walls_tight[any_order] += cost > b->graph->total_cost && cost == least;
    }
}

/* The bound for every order, with all rules, none, and with fetches, against brute force over all
 * orders. */
static void compare_any_order(bed *b, int64_t any, const int64_t *transfer, int64_t bandwidth)
{
    rm_order_bound_options options = {.any_order = true, .charges = true};
    const int64_t plain = bound_of(b, options, 0);
    options.rules = REMAT_BOUND_HOLDERS;
    const int64_t held = bound_of(b, options, 0);
    CHECK(held <= any, "holders at %" PRId64 ": bound %" PRId64 ", optimum %" PRId64, b->budget,
          held, any);
    options.rules = RM_BOUND_RULES;
    const int64_t bound = bound_of(b, options, 0);
    CHECK(bound <= any, "any order at %" PRId64 ": bound %" PRId64 ", optimum %" PRId64, b->budget,
          bound, any);
    CHECK(bound >= plain, "any order: rules %" PRId64 ", none %" PRId64, bound, plain);
    if (any != BRUTE_NOTHING && bound != BRUTE_NOTHING) try_walls(b, true, any, bound);
    if (bound != BRUTE_NOTHING) {
        n_any_above += bound > b->graph->total_cost;
        n_any_tight += bound > b->graph->total_cost && bound == any;
        n_any_by_rules += bound > plain;
        n_any_by_holders += held > plain;
    }
    options.transfer = transfer;
    options.charges = false;
    const int64_t fetching = bound_of(b, options, bandwidth),
                  least = brute_least_cost(&b->nm, NULL, b->budget, transfer);
    CHECK(fetching <= least, "any order, with fetches: bound %" PRId64 ", optimum %" PRId64,
          fetching, least);
}

/* No schedule has a peak below the limit that looking back gives, from the need on and from the
 * budget on. Where no op is pinned and nothing but storages counts, some schedule has that peak. */
static void compare_least_peak(bed *b, rm_need need)
{
    rm_need least, above, again;
    CHECK(rm_least_peak_find(b->ctx, b->graph, need, INT64_MAX, RM_LEAST_PEAK_WORK, &least) ==
              REMAT_OK,
          "%s", remat_ctx_error(b->ctx));
    CHECK(rm_least_peak_find(b->ctx, b->graph, need, least.bytes, RM_LEAST_PEAK_WORK, &again) ==
              REMAT_OK,
          "%s", remat_ctx_error(b->ctx));
    CHECK(again.bytes == least.bytes && again.op == least.op,
          "where the peak %" PRId64 " is known: %" PRId64, least.bytes, again.bytes);
    CHECK(brute_least_cost(&b->nm, NULL, least.bytes - 1, NULL) == BRUTE_NOTHING,
          "a schedule fits below the least peak %" PRId64 ", need %" PRId64, least.bytes,
          need.bytes);
    const rm_need from = {b->budget, REMAT_NONE};
    CHECK(rm_least_peak_find(b->ctx, b->graph, from, INT64_MAX, RM_LEAST_PEAK_WORK, &above) ==
              REMAT_OK,
          "%s", remat_ctx_error(b->ctx));
    CHECK(above.bytes >= b->budget && (above.bytes > b->budget) == (least.bytes > b->budget),
          "from %" PRId64 ": %" PRId64 ", from the need: %" PRId64, b->budget, above.bytes,
          least.bytes);
    n_least_above += least.bytes > need.bytes;
    bool is_plain = true;
    for (uint32_t op = 0; op < b->nm.n_ops; op++)
        is_plain = is_plain && !b->nm.pinned[op] && !rm_is_free_view(&b->nm, op);
    for (uint32_t s = 0; s < b->nm.n_stores; s++) is_plain = is_plain && b->nm.bytes[s] > 0;
    if (!is_plain) return;
    CHECK(brute_least_cost(&b->nm, NULL, least.bytes, NULL) != BRUTE_NOTHING,
          "no schedule has the least peak %" PRId64, least.bytes);
    n_least_exact += least.bytes > need.bytes;
}

static void compare(bed *b, random_source *r)
{
    static const unsigned sets[] = {0,
                                    REMAT_BOUND_SINGLE,
                                    REMAT_BOUND_SINGLE | REMAT_BOUND_FAN_OUT,
                                    REMAT_BOUND_SINGLE | REMAT_BOUND_REGION,
                                    REMAT_BOUND_SINGLE | REMAT_BOUND_SIDE,
                                    REMAT_BOUND_FAN_OUT,
                                    REMAT_BOUND_REGION,
                                    REMAT_BOUND_SIDE,
                                    RM_BOUND_RULES};
    int64_t bounds[RM_LEN(sets)];
    const int64_t least = brute_least_cost(&b->nm, b->order, b->budget, NULL);
    for (size_t i = 0; i < RM_LEN(sets); i++) {
        bounds[i] = bound_of(b, (rm_order_bound_options){.rules = sets[i], .charges = true}, 0);
        CHECK(bounds[i] <= least, "rules %u at %" PRId64 ": bound %" PRId64 ", optimum %" PRId64,
              sets[i], b->budget, bounds[i], least);
        CHECK(bounds[i] >= bounds[0], "rules %u: %" PRId64 " below the base's %" PRId64, sets[i],
              bounds[i], bounds[0]);
    }
    if (bounds[RM_LEN(sets) - 1] != BRUTE_NOTHING)
        try_walls(b, false, least, bounds[RM_LEN(sets) - 1]);
    compare_proofs(b, r, least);
    try_random_certificates(b, r, false, least);
    int64_t transfer[BRUTE_MOST_STORES];
    const int64_t bandwidth = 100000000 + random_below(r, 2000000000);
    CHECK(remat_ctx_set(b->ctx, "bandwidth", bandwidth) == REMAT_OK, "%s", remat_ctx_error(b->ctx));
    for (uint32_t s = 0; s < b->nm.n_stores; s++)
        CHECK(rm_transfer_cost(b->ctx, b->nm.bytes[s], bandwidth, &transfer[s]) == REMAT_OK, "%s",
              remat_ctx_error(b->ctx));
    rm_order_bound_options options = {.rules = RM_BOUND_RULES, .transfer = transfer};
    const int64_t fetching = bound_of(b, options, bandwidth);
    const int64_t least_fetching = brute_least_cost(&b->nm, b->order, b->budget, transfer);
    CHECK(fetching <= least_fetching, "with fetches: bound %" PRId64 ", optimum %" PRId64, fetching,
          least_fetching);
    n_fetching +=
        least_fetching < least && fetching > b->graph->total_cost && fetching != BRUTE_NOTHING;
    if (b->nm.n_ops + b->nm.n_stores <= MOST_IN_ANY_ORDER) { /* the graph's order is one of many */
        const int64_t any = brute_least_cost(&b->nm, NULL, b->budget, NULL);
        CHECK(any <= least, "any order: %" PRId64 ", this one: %" PRId64, any, least);
        CHECK(any >= b->graph->total_cost, "any order: %" PRId64, any);
        n_any_cheaper += any < least;
        compare_any_order(b, any, transfer, bandwidth);
        try_random_certificates(b, r, true, any);
        rm_need need;
        CHECK(rm_need_find(b->ctx, b->graph, false, &need) == REMAT_OK, "%s",
              remat_ctx_error(b->ctx));
        CHECK(brute_least_cost(&b->nm, NULL, need.bytes - 1, NULL) == BRUTE_NOTHING,
              "a schedule fits below the need %" PRId64, need.bytes);
        n_needed_at_end += need.op == REMAT_NONE;
        compare_least_peak(b, need);
    }
    n_compared++;
    n_infeasible += least == BRUTE_NOTHING;
    if (least == BRUTE_NOTHING) return;
    const int64_t all = bounds[RM_LEN(sets) - 1];
    n_above_first_runs += all > b->graph->total_cost;
    n_tight += all == least && all > b->graph->total_cost;
    n_active[0] += bounds[0] > b->graph->total_cost;
    for (size_t i = 1; i < 5; i++) n_active[i] += bounds[i] > bounds[i == 1 ? 0 : 1];
}

static bool one_graph(remat_ctx *ctx)
{
    random_source r = {case_seed};
    const uint32_t kind = random_below(&r, 100);
    remat_graph *graph = kind < 35   ? random_training_graph(ctx, &r)
                         : kind < 60 ? block_graph(ctx, &r)
                         : kind < 88 ? copies_graph(ctx, &r)
                                     : random_graph(ctx, &r);
    CHECK(graph, "%s", remat_ctx_error(ctx));
    remat_info info = REMAT_INFO_INIT;
    CHECK(remat_graph_info(ctx, graph, &info) == REMAT_OK, "%s", remat_ctx_error(ctx));
    const rm_mark mark = rm_scratch_mark(ctx);
    bed b = {.ctx = ctx, .graph = graph};
    CHECK(rm_normal_of(ctx, graph, &b.nm) == REMAT_OK, "%s", remat_ctx_error(ctx));
    const bool can = brute_can(&b.nm) && b.nm.n_ops > 0;
    b.one_instance = brute_one_instance(&b.nm);
    if (can) {
        n_in_place += graph->n_inplace > 0;
        uint32_t order[BRUTE_MOST_OPS];
        rm_schedule steps = {0};
        shuffle_order(&b.nm, &r, order);
        if (random_chance(&r, 60))
            for (uint32_t t = 0; t < b.nm.n_ops; t++) order[t] = t;
        CHECK(rm_normal_expand(ctx, &b.nm, order, b.nm.n_ops, &steps) == REMAT_OK, "%s",
              remat_ctx_error(ctx));
        rm_steps_to_original(graph, steps.items, steps.n);
        b.order = order, b.steps = steps.items, b.n_steps = steps.n;
        const int64_t span = info.keep_all_peak_bytes - info.need_bytes;
        for (int i = 0; i < 3; i++) {
            b.budget = info.need_bytes +
                       (span > 0 ? (int64_t)(rm_random_next(&r) % (uint64_t)(span + 1)) : 0);
            compare(&b, &r);
        }
        RM_VEC_FREE(&ctx->heap, steps);
    }
    rm_scratch_release(ctx, mark);
    remat_graph_free(graph);
    return can;
}

int main(int argc, char **argv)
{
    const int64_t n = cases_asked_for(argc, argv);
    run_graphs(n, one_graph);
    printf("%" PRId64 " graphs, %" PRId64 " with ops in place: %" PRId64 " budgets, %" PRId64
           " infeasible, %" PRId64 " bounds above the first runs, %" PRId64
           " of them the optimum (another order is cheaper: %" PRId64 ", fetching: %" PRId64
           "); made higher by the base %" PRId64 ", chains %" PRId64 ", fan-out %" PRId64
           ", regions %" PRId64 ", side outputs %" PRId64 "\n",
           n, n_in_place, n_compared, n_infeasible, n_above_first_runs, n_tight, n_any_cheaper,
           n_fetching, n_active[0], n_active[1], n_active[2], n_active[3], n_active[4]);
    printf("proofs: %" PRId64 " optima above the first runs, %" PRId64
           " bounds of searches that were stopped, %" PRId64 " first runs of free views\n",
           n_proved, n_stopped, n_floating);
    printf("least peaks: %" PRId64 " above the need, %" PRId64 " of them surely exact\n",
           n_least_above, n_least_exact);
    if (n >= 1000 && n_least_exact == 0)
        return printf("looking back never helped: this tests nothing\n"), 1;
    if (n >= 1000 && (n_proved == 0 || n_stopped == 0 || n_floating == 0 || n_needed_at_end == 0))
        return printf("no proof, stop, free view or need at the end: this tests nothing\n"), 1;
    if (n >= 1000 && (n_fetching == 0 || n_any_cheaper == 0))
        return printf("no fetch or other order ever helped: this tests nothing\n"), 1;
    printf("any order: %" PRId64 " bounds above the first runs, %" PRId64
           " of them the optimum, %" PRId64 " by rules, %" PRId64
           " by holders; random certificates that prove something: %" PRId64 " (%" PRId64
           " with heirs, %" PRId64 " by heirs), in a fixed order %" PRId64 " (%" PRId64 ")\n",
           n_any_above, n_any_tight, n_any_by_rules, n_any_by_holders, n_random_true[1],
           n_random_heirs[1], n_random_by_heirs, n_random_true[0], n_random_heirs[0]);
    printf("walls: %" PRId64 " random certificates; in the order at hand %" PRId64
           " proved something, %" PRId64 " of them the optimum; in any order %" PRId64 ", %" PRId64
           "\n",
           n_random_walls, n_random_walls_true[0], n_random_walls_tight[0], n_random_walls_true[1],
           n_random_walls_tight[1]);
    for (int any = 0; any < 2; any++) {
        printf("walls %s: %" PRId64 " bounds above the first runs, %" PRId64
               " of them the optimum, %" PRId64 " better than by gaps\n",
               any ? "in any order" : "in the order at hand", n_walls[any], n_walls_tight[any],
               n_walls_better[any]);
        if (n_walls_better[any] == 0) return printf("walls never helped: this tests nothing\n"), 1;
    }
    if (n_random_walls_tight[0] == 0 || n_random_walls_tight[1] == 0)
        return printf("no random walls proved an optimum: this tests nothing\n"), 1;
    if (n >= 1000 && (n_random_heirs[0] == 0 || n_random_by_heirs == 0))
        return printf("no random certificate proved anything: this tests nothing\n"), 1;
    if (n >= 1000 && (n_any_tight == 0 || n_any_by_rules == 0 || n_any_by_holders == 0))
        return printf("no bound for all orders was good: this tests nothing\n"), 1;
    for (size_t i = 0; i < RM_LEN(n_active) && n >= 1000; i++)
        if (n_active[i] == 0)
            return printf("rule %zu was never active: this tests nothing\n", i), 1;
    return 0;
}
