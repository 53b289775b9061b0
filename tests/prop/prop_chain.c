/* prop_chain.c: chain strategies on N random chains against brute force (ref/chain_brute.h). rotor
 * equals the cheapest persistent schedule, rotor-float the cheapest of all, revolve the cheapest of
 * its kind, nothing is cheaper than the cheapest; "infeasible" and "optimal" are said where they
 * are true; epsilon keeps its promise; every plan verifies and fits; verifier and simulator agree
 * with the reference on plans, on random schedules and on broken ones. On unit chains revolve costs
 * what Griewank and Walther say. Usage: prop_chain N SEED; a failure prints the seed of its chain,
 * the chain and the budget.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain_brute.h"
#include "plan/chains/rotor.h"
#include "sim/chain_sim.h"

enum { BUDGETS = 6, MOST_FAILURES = 20 };

static struct {
    uint64_t seed;
    unsigned flags;
    uint32_t n;
    remat_stage stages[BRUTE_STAGES + 2];
    int64_t budgets[BUDGETS];
    uint32_t n_budgets;
    int64_t least[3],
        cost[3][BUDGETS]; /* by brute_kind: the least peak, and the least time by budget */
} now;
static remat_ctx *ctx;
static remat_chain *chain;
static brute *brutes;
static int64_t failures, plans, infeasible, floats_gain, broken, broken_valid;

static void print_chain(int64_t budget)
{
    printf("  budget %" PRId64 "; stage: a abar delta tf tb of ob keep\n", budget);
    for (uint32_t l = 0; l <= now.n + 1; l++) {
        const remat_stage *s = &now.stages[l];
        printf("  %u: %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
               " %" PRId64 " %" PRId64 "\n",
               l, s->a, s->abar, s->delta, s->tf, s->tb, s->of, s->ob, s->keep);
    }
}

#define CHECK(condition, budget, ...)                                                              \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("seed %" PRIu64 ": line %d: %s: ", now.seed, __LINE__, #condition);             \
            printf(__VA_ARGS__);                                                                   \
            printf("\n");                                                                          \
            print_chain(budget);                                                                   \
            if (++failures == MOST_FAILURES) exit(1);                                              \
        }                                                                                          \
    } while (0)

/* ---- one schedule, three judges ---- */

static void judge(const remat_step *steps, size_t n)
{
    remat_verdict v = REMAT_VERDICT_INIT;
    const brute_verdict b = brute_judge(now.stages, now.n, steps, n);
    if (remat_chain_verify(ctx, chain, steps, n, &v) != REMAT_OK) {
        CHECK(false, -1, "%s", remat_ctx_error(ctx));
        return;
    }
    CHECK(v.valid == b.valid && v.first_bad_step == b.first_bad_step, -1,
          "%d at step %u, not %d at %u: %s", v.valid, v.first_bad_step, b.valid, b.first_bad_step,
          v.reason);
    CHECK(v.peak_bytes == b.peak && v.cost == b.cost && v.peak_step == b.peak_step, -1,
          "peak %" PRId64 " at %u, not %" PRId64 " at %u", v.peak_bytes, v.peak_step, b.peak,
          b.peak_step);
    CHECK((*v.reason == '\0') == v.valid, -1, "'%s'", v.reason);
    CHECK(v.peak_op == (v.peak_step == REMAT_NONE ? REMAT_NONE : steps[v.peak_step].index), -1,
          "peak_op %u", v.peak_op);
    if (!b.valid) return;
    CHECK(b.peak >= now.least[BRUTE_ALL], -1, "peak %" PRId64 " below the least, %" PRId64, b.peak,
          now.least[BRUTE_ALL]);
    int64_t peak = -1, cost = -1;
    rm_schedule schedule = {.items = (remat_step *)(uintptr_t)steps, .n = n};
    const rm_mark mark = rm_scratch_mark(ctx);
    CHECK(rm_chain_measure(ctx, chain, &schedule, &peak, &cost) == REMAT_OK, -1, "%s",
          remat_ctx_error(ctx));
    rm_scratch_release(ctx, mark);
    CHECK(peak == b.peak && cost == b.cost, -1,
          "simulator: peak %" PRId64 " and cost %" PRId64 ", not %" PRId64 " and %" PRId64, peak,
          cost, b.peak, b.cost);
}

static void random_schedules(random_source *r)
{
    remat_step steps[260];
    size_t n = random_chain_steps(r, now.stages, now.n, steps, 250);
    judge(steps, n);
    for (uint32_t edits = 1 + random_below(r, 3); edits; edits--) {
        const uint32_t at = random_below(r, (uint32_t)n), with = random_below(r, (uint32_t)n);
        switch (random_below(r, 6)) {
        case 0: memmove(steps + at, steps + at + 1, (--n - at) * sizeof *steps); break;
        case 1: memmove(steps + at + 1, steps + at, (n++ - at) * sizeof *steps); break; /* twice */
        case 2: steps[at].kind = random_below(r, 8); break;
        case 3: steps[at].index = random_below(r, now.n + 3); break;
        case 4: n -= random_below(r, 3) < n ? random_below(r, 3) : 0; break;
        default: {
            const remat_step swap = steps[at];
            steps[at] = steps[with];
            steps[with] = swap;
        }
        }
        if (n > 255) n = 255;
        if (n == 0) break;
    }
    broken++;
    broken_valid += brute_judge(now.stages, now.n, steps, n).valid;
    judge(steps, n);
}

/* ---- plans ---- */

/* Judges the plan; its cost, or -1 if it misses the budget. */
static int64_t check_plan(const remat_plan *plan, const char *strategy, int64_t budget)
{
    remat_verdict v = REMAT_VERDICT_INIT;
    const remat_summary *s = remat_plan_summary(plan);
    size_t n;
    const remat_step *steps = remat_plan_steps(plan, &n);
    plans++;
    CHECK(remat_chain_plan_verify(ctx, chain, plan, &v) == REMAT_OK && v.valid, budget, "%s: %s",
          strategy, v.reason);
    judge(steps, n);
    CHECK(v.peak_bytes == s->peak_bytes && v.cost == s->cost && v.peak_step == s->peak_step, budget,
          "%s", strategy);
    CHECK(s->within_budget == (s->peak_bytes <= budget), budget, "%s: peak %" PRId64, strategy,
          s->peak_bytes);
    CHECK(s->need_bytes <= now.least[BRUTE_ALL], budget,
          "need %" PRId64 " above the least peak %" PRId64, s->need_bytes, now.least[BRUTE_ALL]);
    CHECK(remat_plan_status(plan) == (s->within_budget                 ? REMAT_OK
                                      : s->outcome == REMAT_INFEASIBLE ? REMAT_E_INFEASIBLE
                                                                       : REMAT_E_NOT_FOUND),
          budget, "%s: status %d", strategy, (int)remat_plan_status(plan));
    return s->within_budget ? s->cost : -1;
}

static void check_against_all(const remat_plan *plan, const char *strategy, uint32_t i,
                              int64_t cost)
{
    const remat_summary *s = remat_plan_summary(plan);
    const int64_t budget = now.budgets[i], best = now.cost[BRUTE_ALL][i];
    CHECK(cost < 0 || (best >= 0 && cost >= best), budget,
          "%s: %" PRId64 " beats brute force, %" PRId64, strategy, cost, best);
    CHECK(s->bound_cost <= best || best < 0, budget,
          "%s: bound %" PRId64 " above the optimum %" PRId64, strategy, s->bound_cost, best);
    CHECK(s->outcome != REMAT_OPTIMAL || cost == best, budget,
          "%s: %" PRId64 " is called optimal, the optimum is %" PRId64, strategy, cost, best);
    CHECK(s->outcome != REMAT_INFEASIBLE || best < 0, budget,
          "%s: called infeasible, the optimum is %" PRId64, strategy, best);
}

/* The recurrences are exact where abar >= a and delta = a. With gradients of other sizes, 4 of
 * 100,000 random chains have a persistent schedule in less memory than rotor finds (3 of them with
 * keeps, which the paper does not have). */
static bool has_equal(const char *strategy, brute_kind *kind)
{
    if (now.flags & (CHAIN_SMALL_ABAR | CHAIN_FREE_DELTA)) return false;
    if (strcmp(strategy, "rotor") == 0) return *kind = BRUTE_PERSISTENT, true;
    if (strcmp(strategy, "revolve") == 0) return *kind = BRUTE_REVOLVE, true;
    return strcmp(strategy, "rotor-float") == 0 ? (*kind = BRUTE_ALL, true) : false;
}

static void set_slots(int64_t slots)
{
    CHECK(remat_ctx_set(ctx, "slots", slots) == REMAT_OK, slots, "%s", remat_ctx_error(ctx));
}

/* All budgets from one exact table. */
static void check_exact(const char *strategy)
{
    remat_plan *made[BUDGETS];
    brute_kind kind = BRUTE_ALL;
    const bool equal = has_equal(strategy, &kind);
    set_slots(0);
    const remat_status status =
        remat_chain_plans(ctx, chain, strategy, now.budgets, now.n_budgets, made);
    CHECK(status == REMAT_OK, -1, "%s: %s", strategy, remat_ctx_error(ctx));
    for (uint32_t i = 0; status == REMAT_OK && i < now.n_budgets; i++) {
        const int64_t budget = now.budgets[i], cost = check_plan(made[i], strategy, budget);
        const remat_outcome outcome = remat_plan_summary(made[i])->outcome;
        size_t n;
        const remat_step *steps = remat_plan_steps(made[i], &n);
        check_against_all(made[i], strategy, i, cost);
        if (equal)
            CHECK(cost == now.cost[kind][i], budget, "%s: %" PRId64 ", brute force: %" PRId64,
                  strategy, cost, now.cost[kind][i]);
        if (strcmp(strategy, "rotor-float") == 0) {
            if (equal)
                CHECK((outcome == REMAT_INFEASIBLE) == (now.cost[BRUTE_ALL][i] < 0), budget,
                      "outcome %d", (int)outcome);
            if (equal && cost >= 0)
                CHECK(outcome == REMAT_OPTIMAL, budget, "outcome %d", (int)outcome);
        } else
            CHECK(cost < 0 || brute_is_persistent(steps, n), budget, "%s is not persistent",
                  strategy);
        infeasible += outcome == REMAT_INFEASIBLE;
        remat_plan_free(made[i]);
    }
}

/* One budget, a slot a unit: nothing is rounded. */
static void check_slotted(const char *strategy)
{
    brute_kind kind = BRUTE_ALL;
    const bool equal = has_equal(strategy, &kind);
    for (uint32_t i = 0; i < now.n_budgets; i++) {
        remat_plan *plan = NULL;
        if (now.budgets[i] == 0) continue;
        set_slots(now.budgets[i]);
        const remat_status status = remat_chain_plan(ctx, chain, strategy, now.budgets[i], &plan);
        CHECK(status == REMAT_OK, now.budgets[i], "%s: %s", strategy, remat_ctx_error(ctx));
        if (status != REMAT_OK) continue;
        const int64_t cost = check_plan(plan, strategy, now.budgets[i]);
        check_against_all(plan, strategy, i, cost);
        if (equal)
            CHECK(cost == now.cost[kind][i], now.budgets[i],
                  "%s with slots: %" PRId64 ", brute force: %" PRId64, strategy, cost,
                  now.cost[kind][i]);
        remat_plan_free(plan);
    }
}

/* A few slots for all budgets: rounding loses, but never lies. */
static void check_coarse(random_source *r, const char *strategy)
{
    remat_plan *made[BUDGETS];
    set_slots(1 + random_below(r, 40));
    const remat_status status =
        remat_chain_plans(ctx, chain, strategy, now.budgets, now.n_budgets, made);
    CHECK(status == REMAT_OK, -1, "%s: %s", strategy, remat_ctx_error(ctx));
    for (uint32_t i = 0; status == REMAT_OK && i < now.n_budgets; i++) {
        check_against_all(made[i], strategy, i, check_plan(made[i], strategy, now.budgets[i]));
        remat_plan_free(made[i]);
    }
}

/* What a table of slots finds within a budget, or -1. rotor-float takes slots, as max_slots forbids
 * it to be exact; the persistent table is asked for directly. */
static int64_t cost_in_slots(brute_kind kind, int64_t budget)
{
    rm_chain_result result = {.any = false};
    const rm_chain_problem p = {.ctx = ctx, .chain = chain, .budgets = &budget, .n_budgets = 1};
    const rm_mark mark = rm_scratch_mark(ctx);
    const remat_status status = kind == BRUTE_ALL
                                    ? rm_rotor_float.run_chain(&p, &result)
                                    : rm_rotor_slots(&p, kind == BRUTE_PERSISTENT, &result);
    CHECK(status == REMAT_OK, budget, "%s", remat_ctx_error(ctx));
    rm_scratch_release(ctx, mark);
    RM_VEC_FREE(&ctx->heap, result.steps);
    return result.fits ? result.cost : -1;
}

/* With epsilon, what fits into budget / (1 + epsilon) is no cheaper than what is found. */
static void check_epsilon(random_source *r)
{
    if (now.flags & (CHAIN_SMALL_ABAR | CHAIN_FREE_DELTA)) return;
    const int64_t epsilon = 1 + random_below(r, random_chance(r, 50) ? 1000 : 50);
    CHECK(remat_ctx_set(ctx, "slots", -1) == REMAT_OK, -1, "%s", remat_ctx_error(ctx));
    CHECK(remat_ctx_set(ctx, "epsilon", epsilon) == REMAT_OK, -1, "%s", remat_ctx_error(ctx));
    CHECK(remat_ctx_set(ctx, "max_slots", 1) == REMAT_OK, -1, "%s", remat_ctx_error(ctx));
    for (uint32_t i = 0; i < now.n_budgets; i++)
        for (int kind = 0; kind < 3; kind++) {
            const int64_t best = now.cost[kind][i];
            /* The least budget for which budgets[i] is promised. */
            const int64_t budget = now.budgets[i] + (now.budgets[i] * epsilon + 999) / 1000;
            if (best < 0 || budget == 0) continue;
            const int64_t cost = cost_in_slots((brute_kind)kind, budget);
            CHECK(cost >= 0 && cost <= best, budget,
                  "kind %d, epsilon %" PRId64 ": %" PRId64 ", brute force within %" PRId64
                  ": %" PRId64,
                  kind, epsilon, cost, now.budgets[i], best);
        }
    CHECK(remat_ctx_set(ctx, "epsilon", 0) == REMAT_OK, -1, "%s", remat_ctx_error(ctx));
    CHECK(remat_ctx_set(ctx, "max_slots", 20000) == REMAT_OK, -1, "%s", remat_ctx_error(ctx));
}

static void check_ends(const char *strategy)
{
    remat_plan *plan = NULL;
    brute_kind kind = BRUTE_ALL;
    set_slots(0);
    remat_status status = remat_chain_plan(ctx, chain, strategy, REMAT_BUDGET_MIN, &plan);
    CHECK(status == REMAT_OK, -2, "%s: %s", strategy, remat_ctx_error(ctx));
    if (status == REMAT_OK) {
        const int64_t peak = remat_plan_summary(plan)->peak_bytes;
        CHECK(check_plan(plan, strategy, peak) >= 0, peak, "%s", strategy);
        if (has_equal(strategy, &kind))
            CHECK(peak == now.least[kind], peak,
                  "%s: least peak %" PRId64 ", brute force: %" PRId64, strategy, peak,
                  now.least[kind]);
    }
    remat_plan_free(plan), plan = NULL;
    status = remat_chain_plan(ctx, chain, strategy, REMAT_BUDGET_NONE, &plan);
    CHECK(status == REMAT_OK, -1, "%s: %s", strategy, remat_ctx_error(ctx));
    if (status == REMAT_OK) {
        const remat_summary *s = remat_plan_summary(plan);
        if (strncmp(strategy, "rotor", 5) == 0)
            CHECK(s->cost == s->keep_all_cost, -1, "%s: %" PRId64, strategy, s->cost);
    }
    remat_plan_free(plan);
}

/* What fits into less memory fits into more, and a persistent schedule is one of all. */
static void find_costs(void)
{
    static const brute_kind kinds[] = {BRUTE_PERSISTENT, BRUTE_ALL, BRUTE_REVOLVE};
    for (uint32_t i = 0; i < now.n_budgets; i++)
        for (int k = 0; k < 3; k++) {
            const brute_kind kind = kinds[k];
            const int64_t less = i > 0 ? now.cost[kind][i - 1] : -1, budget = now.budgets[i],
                          persistent = kind == BRUTE_ALL ? now.cost[BRUTE_PERSISTENT][i] : -1;
            const int64_t known =
                less < 0 || (persistent >= 0 && persistent < less) ? persistent : less;
            now.cost[kind][i] =
                budget < now.least[kind] /* a search through all states for nothing */
                    ? -1
                    : brute_cost(brutes, now.stages, now.n, kind, budget, known);
        }
}

static void one_chain(void)
{
    static const char *const strategies[] = {"keep-all", "periodic", "chen-sqrt",  "chen-greedy",
                                             "revolve",  "rotor",    "rotor-float"};
    random_source r = {now.seed};
    now.flags = random_below(&r, 64);
    if (!random_chance(&r, 40)) now.flags &= ~(unsigned)CHAIN_FREE_DELTA;
    if (!random_chance(&r, 40)) now.flags &= ~(unsigned)CHAIN_FALLING;
    if (random_chance(&r, 10)) now.flags |= CHAIN_SMALL_ABAR;
    now.n = random_chain(&r, now.flags, now.stages);
    if (remat_chain_new(ctx, "random", now.stages, now.n, &chain) != REMAT_OK) {
        CHECK(false, -1, "%s", remat_ctx_error(ctx));
        return;
    }
    for (int kind = 0; kind < 3; kind++)
        now.least[kind] = brute_peak(brutes, now.stages, now.n, (brute_kind)kind);
    remat_plan *base = NULL;
    CHECK(remat_chain_plan(ctx, chain, "keep-all", REMAT_BUDGET_NONE, &base) == REMAT_OK, -1, "%s",
          remat_ctx_error(ctx));
    const int64_t top = remat_plan_summary(base)->peak_bytes, low = now.least[BRUTE_ALL],
                  span = top - low;
    remat_plan_free(base);
    const int64_t wanted[BUDGETS] = {low - 1,
                                     low,
                                     low + span / 4,
                                     now.least[BRUTE_PERSISTENT],
                                     low + random_below(&r, (uint32_t)span + 1),
                                     top};
    now.n_budgets = 0;
    for (uint32_t i = 0; i < BUDGETS; i++) { /* ascending, without doubles */
        uint32_t at = 0;
        while (at < now.n_budgets && now.budgets[at] < wanted[i]) at++;
        if (wanted[i] < 0 || (at < now.n_budgets && now.budgets[at] == wanted[i])) continue;
        memmove(now.budgets + at + 1, now.budgets + at,
                (now.n_budgets++ - at) * sizeof *now.budgets);
        now.budgets[at] = wanted[i];
    }
    find_costs();
    for (uint32_t i = 0; i < now.n_budgets; i++) {
        floats_gain += now.cost[BRUTE_ALL][i] < now.cost[BRUTE_PERSISTENT][i];
        if (now.flags & CHAIN_FALLING &&
            !(now.flags &
              (CHAIN_FREE_DELTA |
               CHAIN_SMALL_ABAR))) /* Rotor, section 4.3: a theorem about the reference itself */
            CHECK(now.cost[BRUTE_ALL][i] == now.cost[BRUTE_PERSISTENT][i], now.budgets[i],
                  "sizes never grow, yet floating gains");
    }
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++) {
        check_exact(strategies[i]);
        if (i >= 4) check_slotted(strategies[i]), check_ends(strategies[i]);
    }
    check_coarse(&r, strategies[4 + random_below(&r, 3)]);
    check_epsilon(&r);
    for (int i = 0; i < 5; i++) random_schedules(&r);
    remat_chain_free(chain);
}

/* ---- unit chains ---- */

static int64_t binomial(int64_t n, int64_t k)
{
    int64_t x = 1;
    if (k < 0 || n < k) return 0;
    for (int64_t i = 1; i <= k; i++) x = x * (n - k + i) / i;
    return x;
}

/* Griewank and Walther (Algorithm 799, 2000): with beta(c, r) = (c + r)! / (c! r!), and r such that
 * beta(c, r - 1) < l <= beta(c, r), to reverse l steps with c states stored, the first one
 * included, takes t(l, c) = r l - beta(c + 1, r - 1) forward steps. That leaves out the l steps
 * that are done right before their reversal, our Fall. Here all l = L + 1 stages, the loss too,
 * have a = abar = tf = 1, delta = tb = 0: two units are a step's output and abar, the budget for c
 * states is c + 1 while a pair is made, hence c + 2 with the first state. */
static int64_t griewank_walther(int64_t l, int64_t c)
{
    int64_t r = 0;
    while (binomial(c + r, c) < l) r++;
    return l + r * l - binomial(c + 1 + r - 1, c + 1);
}

static void unit_chains(void)
{
    enum { LONGEST = 40 };
    remat_stage stages[LONGEST + 2];
    memset(stages, 0, sizeof stages);
    for (uint32_t n = 1; n <= LONGEST; n++) {
        for (uint32_t l = 0; l <= n + 1; l++)
            stages[l] = (remat_stage){"", l <= n, l > 0, 0, l > 0, 0, 0, 0, 0};
        if (remat_chain_new(ctx, "unit", stages, n, &chain) != REMAT_OK)
            CHECK(false, -1, "%s", remat_ctx_error(ctx));
        for (int64_t c = 1; c <= 8; c++)
            for (int slotted = 0; slotted < 2; slotted++) {
                remat_plan *plan = NULL;
                now.n = 0; /* nothing to print */
                set_slots(slotted ? c + 2 : 0);
                CHECK(remat_chain_plan(ctx, chain, "revolve", c + 2, &plan) == REMAT_OK, c + 2,
                      "%s", remat_ctx_error(ctx));
                const remat_summary *s = remat_plan_summary(plan);
                CHECK(s->within_budget && s->cost == griewank_walther(n + 1, c), c + 2,
                      "unit chain of %u stages: %" PRId64 ", not %" PRId64, n, s->cost,
                      griewank_walther(n + 1, c));
                remat_plan_free(plan);
            }
        remat_chain_free(chain);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) return fprintf(stderr, "usage: %s N SEED\n", argv[0]), 1;
    const uint64_t chains = strtoull(argv[1], NULL, 10), seed = strtoull(argv[2], NULL, 10);
    ctx = remat_ctx_new(NULL);
    if (!ctx) return 1;
    brutes = brute_new();
    unit_chains();
    for (uint64_t i = 0; i < chains; i++) {
        now.seed = seed + i;
        one_chain();
    }
    brute_free(brutes);
    remat_ctx_free(ctx);
    printf("%" PRIu64 " chains, %" PRId64 " plans: %" PRId64
           " infeasible; floating gains at %" PRId64 " budgets; %" PRId64
           " edited schedules, %" PRId64 " of them still valid; %" PRId64 " failures\n",
           chains, plans, infeasible, floats_gain, broken, broken_valid, failures);
    return failures > 0;
}
