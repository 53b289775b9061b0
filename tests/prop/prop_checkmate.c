/* prop_checkmate.c: N random tiny graphs (views, several outputs, workspaces, pins), each at a
 * budget. The optimum of Checkmate's program, ours and as printed, with one and with two turns an
 * op, is what brute force over all schedules of that form finds; it is never below the optimum of
 * the graph's order; without a frontier it is between that of any order and the one with it.
 * Solutions are valid schedules within the budget. Strategy checkmate finds it; checkmate-lp never
 * beats the order's optimum, and how often it misses a budget that can be met is printed. Solutions
 * also go through a file. Usage: prop_checkmate N SEED; REMAT_HIGHS says where the solver is. A
 * failure prints the seed of its graph. */
#include <string.h>

#include "check.h"
#include "graph/schedule.h"
#include "milp/backend.h"
#include "naive.h"
#include "order_brute.h"
#include "plan/checkmate/checkmate_model.h"
#include "random_graph.h"

static int64_t n_compared, n_recomputing, n_infeasible, n_above_exact, n_splits_help,
    n_any_order_helps, n_lp, n_lp_optimal, n_lp_missed;

/* Units of the option `work`: where there is nothing to find, and for checkmate-lp. */
enum { VAIN_WORK = 50000, LP_WORK = 50000 };

static remat_status ignore(void *user, const double *x, double bound)
{
    (void)user, (void)x, (void)bound;
    return REMAT_OK;
}

static void check_schedule(remat_ctx *ctx, const rm_normal *nm, const rm_codes *codes,
                           int64_t budget, int64_t cost)
{
    rm_schedule steps = {0};
    CHECK(rm_normal_expand(ctx, nm, codes->items, codes->n, &steps) == REMAT_OK, "%s",
          remat_ctx_error(ctx));
    naive_graph *ng = naive_from(nm->g);
    naive_verdict v = naive_judge(ng, steps.items, steps.n, 0);
    CHECK(v.valid, "invalid at step %u", v.first_bad_step);
    CHECK(v.peak_bytes <= budget, "peak %" PRId64 " over %" PRId64, v.peak_bytes, budget);
    CHECK(v.cost == cost, "cost %" PRId64 ", not %" PRId64, v.cost, cost);
    naive_release(&v), naive_free(ng);
    RM_VEC_FREE(&ctx->heap, steps);
}

typedef struct text {
    char bytes[1 << 16];
    size_t n;
} text;

/* Through the solution file of some solver: names and values, and other words. */
static void through_a_file(remat_ctx *ctx, const rm_checkmate *program, const rm_codes *codes,
                           const double *x)
{
    static text t;
    rm_codes again = {0};
    double *read = rm_scratch(ctx, program->model.columns.n, sizeof *read);
    t.n = (size_t)snprintf(t.bytes, sizeof t.bytes, "Model status Optimal\n# Columns %zu\n",
                           program->model.columns.n);
    for (size_t i = 0; i < program->model.columns.n; i++) {
        char name[RM_NAME_ROOM];
        rm_column_name_text(&program->model.columns.items[i].name, name);
        if (x[i] != 0 && sizeof t.bytes - t.n > 100)
            t.n += (size_t)snprintf(t.bytes + t.n, sizeof t.bytes - t.n, "%s %.17g\n", name, x[i]);
    }
    CHECK(sizeof t.bytes - t.n > 100, "a longer buffer is needed");
    CHECK(rm_model_read_solution(ctx, &program->model, t.bytes, t.n, read) == REMAT_OK, "%s",
          remat_ctx_error(ctx));
    CHECK(rm_checkmate_codes(ctx, program, read, &again) == REMAT_OK, "%s", remat_ctx_error(ctx));
    CHECK(again.n == codes->n &&
              memcmp(again.items, codes->items, codes->n * sizeof *codes->items) == 0,
          "another order");
    RM_VEC_FREE(&ctx->heap, again);
}

/* The program's optimum, or BRUTE_NOTHING. */
static int64_t solve(remat_ctx *ctx, const rm_backend *backend, rm_checkmate program)
{
    rm_solved solved;
    int64_t cost = BRUTE_NOTHING;
    const rm_solve how = {.gap = 1e-6, .threads = 1, .on_progress = ignore};
    CHECK(rm_checkmate_build(ctx, &program) == REMAT_OK, "%s", remat_ctx_error(ctx));
    CHECK(backend->solve(backend, ctx, &program.model, &how, &solved) == REMAT_OK, "%s",
          remat_ctx_error(ctx));
    CHECK(solved.outcome != RM_SOLVE_STOPPED, "neither optimal nor infeasible");
    if (solved.outcome == RM_SOLVE_OPTIMAL) {
        rm_codes codes = {0};
        CHECK(rm_checkmate_codes(ctx, &program, solved.x, &codes) == REMAT_OK, "%s",
              remat_ctx_error(ctx));
        CHECK(rm_model_violation(&program.model, solved.x) < 1e-5, "violation %g",
              rm_model_violation(&program.model, solved.x));
        cost = 0;
        for (size_t i = 0; i < codes.n; i++) cost += program.nm->cost[codes.items[i]];
        const int64_t means = rm_checkmate_cost(
            &program, solved.objective); /* rounded down where costs are not small whole numbers */
        CHECK(means <= cost && (double)(cost - means) <= 1e-5 * (double)cost,
              "objective %g means %" PRId64 ", not %" PRId64, solved.objective, means, cost);
        check_schedule(ctx, program.nm, &codes, program.budget_bytes, cost);
        through_a_file(ctx, &program, &codes, solved.x);
        RM_VEC_FREE(&ctx->heap, codes);
    }
    rm_checkmate_free(ctx, &program);
    return cost;
}

/* A known schedule becomes a start that the program takes, of the same cost; and cutting by its
 * cost does not lose the optimum. */
static void check_start(remat_ctx *ctx, const rm_backend *backend, const rm_normal *nm,
                        int64_t budget, int64_t optimum)
{
    rm_checkmate program = {.nm = nm, .budget_bytes = budget, .splits = 1, .most_extra = INT64_MAX};
    rm_bits retained;
    rm_codes codes = {0};
    bool fits;
    CHECK(rm_bits_new(ctx, &retained, nm->n_ops, nm->n_stores) == REMAT_OK, "memory");
    random_source r = {case_seed + 1};
    const uint32_t percent = 50 + random_below(&r, 51);
    for (uint32_t t = 0; t < nm->n_ops; t++)
        for (uint32_t s = 0; s < nm->n_stores; s++)
            if (random_chance(&r, percent)) rm_bit_set(&retained, t, s);
    CHECK(rm_optimal_r(ctx, nm, &retained, &codes) == REMAT_OK, "%s", remat_ctx_error(ctx));
    rm_schedule steps = {0};
    rm_liveness l;
    CHECK(rm_normal_expand(ctx, nm, codes.items, codes.n, &steps) == REMAT_OK &&
              rm_liveness_of(ctx, nm->g, steps.items, steps.n, 0, &l) == REMAT_OK,
          "%s", remat_ctx_error(ctx));
    CHECK(rm_checkmate_build(ctx, &program) == REMAT_OK, "%s", remat_ctx_error(ctx));
    double *x = rm_scratch(ctx, program.model.columns.n, sizeof *x);
    CHECK(rm_checkmate_start(ctx, &program, &codes, x, &fits) == REMAT_OK, "%s",
          remat_ctx_error(ctx));
    bool stale =
        false; /* a pinned token on a base that was made again: valid, but not of this form */
    for (uint32_t s = 0; s < nm->n_stores; s++)
        stale |= nm->base[s] != REMAT_NONE && nm->pinned[nm->producer[s]];
    CHECK(fits == (l.peak_bytes <= budget) || stale,
          "peak %" PRId64 " at %" PRId64 ", but fits is %d (violation %g)", l.peak_bytes, budget,
          fits, rm_model_violation(&program.model, x));
    rm_checkmate_free(ctx, &program);
    if (fits) {
        CHECK(l.cost >= optimum, "a cheaper one");
        program = (rm_checkmate){.nm = nm,
                                 .budget_bytes = budget,
                                 .splits = 1,
                                 .most_extra = l.cost - nm->g->total_cost};
        CHECK(solve(ctx, backend, program) == optimum,
              "the cutoff %" PRId64 " loses the optimum %" PRId64, program.most_extra, optimum);
    }
    RM_VEC_FREE(&ctx->heap, codes);
    RM_VEC_FREE(&ctx->heap, steps);
}

static void check_strategies(remat_ctx *ctx, const remat_graph *graph, int64_t budget, int64_t need,
                             int64_t optimum, int64_t exact)
{
    remat_plan *plan = NULL;
    /* Where nothing fits it would search for a second; it must find nothing in less too. */
    CHECK(remat_ctx_set(ctx, "work", exact == BRUTE_NOTHING ? VAIN_WORK : 0) == REMAT_OK, "%s",
          remat_ctx_error(ctx));
    CHECK(remat_plan_make(ctx, graph, "checkmate", budget, &plan) == REMAT_OK, "%s",
          remat_ctx_error(ctx));
    const remat_summary *s = remat_plan_summary(plan);
    CHECK(s->within_budget == (optimum != BRUTE_NOTHING), "within_budget is %d", s->within_budget);
    if (s->within_budget) {
        CHECK(s->cost == optimum, "checkmate: %" PRId64 ", not %" PRId64, s->cost, optimum);
        CHECK(s->outcome == REMAT_OPTIMAL && s->bound_cost == s->cost,
              "bound %" PRId64 " of %" PRId64, s->bound_cost, s->cost);
    } else {
        const bool proved = budget < need || budget < s->least_peak_bound;
        CHECK(remat_plan_status(plan) == (proved ? REMAT_E_INFEASIBLE : REMAT_E_NOT_FOUND),
              "status");
    }
    remat_plan_free(plan);
    /* It searches to the end of its work, and promises nothing of what it finds. */
    CHECK(remat_ctx_set(ctx, "work", LP_WORK) == REMAT_OK, "%s", remat_ctx_error(ctx));
    CHECK(remat_plan_make(ctx, graph, "checkmate-lp", budget, &plan) == REMAT_OK, "%s",
          remat_ctx_error(ctx));
    s = remat_plan_summary(plan);
    CHECK(!s->within_budget || s->cost >= exact, "checkmate-lp: %" PRId64 " of %" PRId64, s->cost,
          exact);
    n_lp_missed +=
        !s->within_budget && exact != BRUTE_NOTHING; /* it promises no plan: counted, and printed */
    n_lp += s->within_budget, n_lp_optimal += s->within_budget && s->cost == optimum;
    remat_plan_free(plan);
    CHECK(remat_ctx_set(ctx, "work", 0) == REMAT_OK, "%s", remat_ctx_error(ctx));
}

static void one_graph(remat_ctx *ctx, const rm_backend *backend)
{
    random_source r = {case_seed};
    rm_normal nm;
    remat_info info = REMAT_INFO_INIT;
    uint32_t order[BRUTE_MOST_OPS];
    remat_graph *graph =
        random_chance(&r, 70) ? random_training_graph(ctx, &r) : random_graph(ctx, &r);
    CHECK(graph, "%s", remat_ctx_error(ctx));
    const rm_mark mark = rm_scratch_mark(ctx);
    rm_limits_begin(ctx, INT64_MAX);
    CHECK(rm_normal_of(ctx, graph, &nm) == REMAT_OK &&
              remat_graph_info(ctx, graph, &info) == REMAT_OK,
          "%s", remat_ctx_error(ctx));
    if (nm.n_ops > 0 && nm.n_ops <= 8 && nm.n_stores <= 10) {
        const int64_t span = info.keep_all_peak_bytes - info.need_bytes;
        const int64_t budget =
            info.need_bytes + (span ? (int64_t)(rm_random_next(&r) % (uint64_t)span) : 0);
        for (uint32_t op = 0; op < nm.n_ops; op++) order[op] = op;
        const int64_t in_turns = brute_least_cost_in_turns(&nm, 1, budget),
                      exact = brute_least_cost(&nm, order, budget, NULL);
        const rm_checkmate program = {
            .nm = &nm, .budget_bytes = budget, .splits = 1, .most_extra = INT64_MAX};
        rm_checkmate other = program;
        CHECK(exact <= in_turns, "brute force disagrees with itself");
        const int64_t found = solve(ctx, backend, program);
        CHECK(found == in_turns, "%" PRId64 ", not %" PRId64, found, in_turns);
        n_compared++, n_infeasible += in_turns == BRUTE_NOTHING;
        n_recomputing += in_turns != BRUTE_NOTHING && in_turns > graph->total_cost;
        n_above_exact += in_turns > exact;
        if (random_chance(&r, 50)) {
            other.plain = true;
            const int64_t plain = solve(ctx, backend, other);
            CHECK(plain == in_turns, "as printed: %" PRId64 ", not %" PRId64, plain, in_turns);
        }
        if (random_chance(&r, 30)) {
            other = program, other.splits = 2;
            const int64_t twice = brute_least_cost_in_turns(&nm, 2, budget),
                          split = solve(ctx, backend, other);
            CHECK(split == twice, "two turns an op: %" PRId64 ", not %" PRId64, split, twice);
            n_splits_help += twice < in_turns;
        }
        if (random_chance(&r, 30) && nm.n_ops + nm.n_stores <= 16) {
            other = program, other.any_order = true;
            const int64_t any = solve(ctx, backend, other),
                          least = brute_least_cost(&nm, NULL, budget, NULL);
            CHECK(least <= any && any <= in_turns,
                  "any order: %" PRId64 ", not between %" PRId64 " and %" PRId64, any, least,
                  in_turns);
            n_any_order_helps += any < in_turns;
        }
        check_start(ctx, backend, &nm, budget, in_turns);
        rm_limits_end(ctx); /* each strategy has its own */
        check_strategies(ctx, graph, budget, info.need_bytes, in_turns, exact);
    } else rm_limits_end(ctx);
    rm_scratch_release(ctx, mark);
    remat_graph_free(graph);
}

int main(int argc, char **argv)
{
    const int64_t graphs = cases_asked_for(argc, argv);
    remat_ctx *ctx = remat_ctx_new(NULL);
    rm_backend backend;
    if (!ctx || rm_backend_open(ctx, &backend) != REMAT_OK) return 1;
    if (!*backend.version) {
        printf("no solver: %s\n", backend.path);
        return 1;
    }
    for (int64_t i = 0; i < graphs; i++, case_seed++) one_graph(ctx, &backend);
    rm_backend_close(ctx, &backend);
    remat_ctx_free(ctx);
    printf("%" PRId64 " graphs, %" PRId64 " compared: %" PRId64 " recompute, %" PRId64
           " infeasible, %" PRId64 " above the order's optimum; two turns help %" PRId64
           ", any order %" PRId64 "; checkmate-lp fits %" PRId64 ", optimal %" PRId64
           ", misses %" PRId64 "\n",
           graphs, n_compared, n_recomputing, n_infeasible, n_above_exact, n_splits_help,
           n_any_order_helps, n_lp, n_lp_optimal, n_lp_missed);
    return 0;
}
