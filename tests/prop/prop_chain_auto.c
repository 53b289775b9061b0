/* prop_chain_auto.c: on chains auto is never worse than any other strategy. Usage:
 * prop_chain_auto N SEED [GRAPH...]. On the embedded chains, on the chains of the graphs, and on N
 * random chains of six families, at 12 budgets from the least peak that auto finds to 100 % of
 * keep-all's, each asked for alone (short chains) or all in one call: what another strategy fits
 * auto fits, and at no higher cost. (Up to 100 stages that holds for rotor with slots 0, too, which
 * may take any time.) Its least peak is no higher either, and every plan verifies. Prints a
 * Markdown table (bench/chain-never-worse). A failure prints the chain's name or seed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random_graph.h"
#include "remat.h"

enum { BUDGETS = 12, SHORT = 20, MOST_EXACT = 100, LONGEST = 160, MOST_FAILURES = 20 };

typedef struct rival {
    const char *strategy;
    int64_t slots; /* as the option */
} rival;

static const rival rivals[] = {{"keep-all", -1},    {"periodic", -1}, {"chen-sqrt", -1},
                               {"chen-greedy", -1}, {"revolve", -1},  {"rotor", -1},
                               {"rotor", 0},        {"rotor", 500},   {"rotor-float", -1}};
enum { RIVALS = sizeof rivals / sizeof *rivals };

typedef struct tally { /* of a family of chains; a case is a chain at a budget */
    const char *name;
    int64_t chains, cases, proved, worse;
    int64_t equal[RIVALS]; /* cases in which the rival is as good as auto */
} tally;

static remat_ctx *ctx;
static int64_t failures;

static void complain(const char *chain, const char *what, const rival *r, int64_t budget)
{
    printf("%s: budget %" PRId64 ": %s (slots %" PRId64 ") %s\n", chain, budget, r->strategy,
           r->slots, what);
    if (++failures == MOST_FAILURES) exit(1);
}

static void demand(remat_status status)
{
    if (status == REMAT_OK) return;
    printf("%s\n", remat_ctx_error(ctx));
    exit(1);
}

/* ---- one chain ---- */

static void check(const remat_chain *chain, const remat_plan *plan, const char *name,
                  const rival *r)
{
    remat_verdict v = REMAT_VERDICT_INIT;
    demand(remat_chain_plan_verify(ctx, chain, plan, &v));
    if (!v.valid) complain(name, v.reason, r, remat_plan_summary(plan)->budget_bytes);
}

/* Plans for all budgets, in one call or one by one. False: the strategy does not apply. */
static bool plan_all(const remat_chain *chain, const rival *r, const int64_t *budgets, bool at_once,
                     const char *name, remat_plan **plans)
{
    demand(remat_ctx_set(ctx, "slots", r->slots));
    const uint32_t each = at_once ? BUDGETS : 1;
    for (uint32_t i = 0; i < BUDGETS; i += each) {
        const remat_status status =
            remat_chain_plans(ctx, chain, r->strategy, budgets + i, each, plans + i);
        if (status == REMAT_E_APPLIES && i == 0) return false;
        demand(status);
    }
    for (uint32_t i = 0; i < BUDGETS; i++) check(chain, plans[i], name, r);
    return true;
}

static int64_t least_peak(const remat_chain *chain, const rival *r)
{
    remat_plan *plan = NULL;
    demand(remat_ctx_set(ctx, "slots", r->slots));
    const remat_status status = remat_chain_plan(ctx, chain, r->strategy, REMAT_BUDGET_MIN, &plan);
    if (status == REMAT_E_APPLIES) return INT64_MAX;
    demand(status);
    const int64_t peak = remat_plan_summary(plan)->peak_bytes;
    remat_plan_free(plan);
    return peak;
}

static void choose_budgets(const remat_chain *chain, int64_t least, int64_t *budgets)
{
    remat_plan *base = NULL;
    demand(remat_chain_plan(ctx, chain, "keep-all", REMAT_BUDGET_NONE, &base));
    const int64_t top = remat_plan_summary(base)->peak_bytes, span = top > least ? top - least : 0;
    remat_plan_free(base);
    for (int i = 0; i < BUDGETS; i++) budgets[i] = least + span / (BUDGETS - 1) * i;
    budgets[BUDGETS - 1] = least + span;
}

static void compare(tally *t, const char *name, remat_plan **ours, remat_plan **theirs,
                    int rival_at)
{
    for (int i = 0; i < BUDGETS; i++) {
        const remat_summary *a = remat_plan_summary(ours[i]), *b = remat_plan_summary(theirs[i]);
        const bool better = b->within_budget && !(a->within_budget && a->cost <= b->cost);
        t->equal[rival_at] += a->within_budget && b->within_budget && a->cost == b->cost;
        t->worse += better;
        if (better) complain(name, "is better than auto", &rivals[rival_at], a->budget_bytes);
        remat_plan_free(theirs[i]);
    }
}

static void one_chain(tally *t, const remat_chain *chain, const char *name, bool at_once)
{
    static const rival self = {"auto", -1};
    remat_plan *ours[BUDGETS], *theirs[BUDGETS];
    int64_t budgets[BUDGETS];
    const int64_t least = least_peak(chain, &self);
    choose_budgets(chain, least, budgets);
    if (!plan_all(chain, &self, budgets, at_once, name, ours)) complain(name, "?", &self, least);
    for (int k = 0; k < RIVALS; k++) {
        if (rivals[k].slots == 0 && remat_chain_n_stages(chain) > MOST_EXACT) continue;
        if (least_peak(chain, &rivals[k]) < least)
            complain(name, "has a lower least peak", &rivals[k], least);
        if (plan_all(chain, &rivals[k], budgets, at_once, name, theirs))
            compare(t, name, ours, theirs, k);
    }
    t->chains++;
    t->cases += BUDGETS;
    for (int i = 0; i < BUDGETS; i++) {
        const remat_summary *s = remat_plan_summary(ours[i]);
        if (!s->within_budget) complain(name, "fits no more", &self, budgets[i]);
        t->proved += s->outcome == REMAT_OPTIMAL;
        remat_plan_free(ours[i]);
    }
}

/* ---- which chains ---- */

static void embedded(tally *t)
{
    static const char *const names[] = {
        "chain:toy",         "chain:figure4?n=5", "chain:figure4?n=8", "chain:partition",
        "chain:resnet?n=4",  "chain:resnet?n=8",  "chain:resnet?n=16", "chain:resnet?n=33",
        "chain:random?n=10", "chain:random?n=30", "chain:random?n=60"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        remat_input *input = NULL;
        remat_chain *chain = NULL;
        demand(remat_input_open(ctx, names[i], &input));
        demand(remat_chain_read(ctx, input, &chain));
        one_chain(t, chain, names[i], true);
        if (remat_chain_n_stages(chain) < SHORT) one_chain(t, chain, names[i], false);
        remat_chain_free(chain);
        remat_input_free(input);
    }
}

static void of_graphs(tally *t, char **paths, int n)
{
    for (int i = 0; i < n; i++) {
        remat_graph *graph = NULL;
        remat_chain *chain = NULL;
        demand(remat_graph_load(ctx, paths[i], &graph));
        demand(remat_chain_of_graph(ctx, graph, &chain));
        one_chain(t, chain, paths[i], true);
        remat_chain_free(chain);
        remat_graph_free(graph);
    }
}

typedef enum family { UNIFORM, FALLING, GROWING, FEW_SIZES, HEAVY, ROUGH, FAMILIES } family;

static int64_t size_of(random_source *r, family f, uint32_t l, uint32_t n)
{
    switch (f) {
    case FALLING: return 1 + (int64_t)(n - l) * 1000 + random_below(r, 1000);
    case GROWING: return 1 + (int64_t)l * 1000 + random_below(r, 1000);
    case FEW_SIZES: return (int64_t)4096 << random_below(r, 4);
    case HEAVY: return 1 + ((int64_t)random_below(r, 1 << 20) >> random_below(r, 16));
    default: return 1 + random_below(r, 1 << 20);
    }
}

/* ROUGH chains have overheads, keeps and gradients of any size. */
static remat_chain *random_one(random_source *r, family f)
{
    static remat_stage stages[LONGEST + 2];
    const uint32_t sort = random_below(r, 100);
    const uint32_t n = 1 + random_below(r, sort < 60 ? 16 : sort < 97 ? 45 : LONGEST);
    memset(stages, 0, sizeof stages);
    for (uint32_t l = 0; l <= n + 1; l++) {
        remat_stage *s = &stages[l];
        s->name = "";
        s->a = s->delta = l <= n ? size_of(r, f, l, n) : 0;
        if (l == 0) continue;
        s->abar = s->a + random_below(r, 2) * (int64_t)random_below(r, (uint32_t)s->a * 2 + 2);
        s->tf = random_below(r, 1000);
        s->tb = random_below(r, 2000);
        if (f != ROUGH) continue;
        s->delta = random_below(r, 1 << 20);
        s->of = random_below(r, 1 << 19);
        s->ob = random_below(r, 1 << 19);
        s->keep = random_below(r, 1 << 12);
    }
    remat_chain *chain = NULL;
    demand(remat_chain_new(ctx, "random", stages, n, &chain));
    return chain;
}

static void print_head(void)
{
    printf("|chains|number|cases|auto is worse|proved optimal");
    for (int k = 0; k < RIVALS; k++)
        if (rivals[k].slots < 0) printf("|%s", rivals[k].strategy);
        else printf("|%s, slots %" PRId64, rivals[k].strategy, rivals[k].slots);
    printf("|\n|---|---|---|---|---");
    for (int k = 0; k < RIVALS; k++) printf("|---");
    printf("|\n");
}

static void print_tally(const tally *t)
{
    const double percent = t->cases ? 100.0 / (double)t->cases : 0;
    printf("|%s|%" PRId64 "|%" PRId64 "|%" PRId64 "|%.0f", t->name, t->chains, t->cases, t->worse,
           percent * (double)t->proved);
    for (int k = 0; k < RIVALS; k++) printf("|%.0f", percent * (double)t->equal[k]);
    printf("|\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    if (argc < 3) return fprintf(stderr, "usage: prop_chain_auto N SEED [GRAPH...]\n"), 2;
    const uint64_t n = strtoull(argv[1], NULL, 10), seed = strtoull(argv[2], NULL, 10);
    static const char *const names[FAMILIES] = {"random, uniform",    "random, falling",
                                                "random, growing",    "random, few sizes",
                                                "random, heavy tail", "random, any deltas"};
    ctx = remat_ctx_new(NULL);
    if (!ctx) return 1;
    print_head();
    tally known = {.name = "embedded"}, graphs = {.name = "of the test graphs"};
    embedded(&known);
    print_tally(&known);
    of_graphs(&graphs, argv + 3, argc - 3);
    print_tally(&graphs);
    for (int f = 0; f < FAMILIES; f++) {
        tally t = {.name = names[f]};
        for (uint64_t i = (uint64_t)f; i < n; i += FAMILIES) {
            random_source r = {seed + i};
            char name[40];
            snprintf(name, sizeof name, "seed %" PRIu64, seed + i);
            remat_chain *chain = random_one(&r, (family)f);
            one_chain(&t, chain, name,
                      remat_chain_n_stages(chain) >= SHORT || random_chance(&r, 50));
            remat_chain_free(chain);
        }
        print_tally(&t);
    }
    remat_ctx_free(ctx);
    return failures > 0;
}
