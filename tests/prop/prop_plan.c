/* prop_plan.c: every strategy on N random graphs, prepared in random ways: plans are valid, their
 * numbers are those of the naive reference, no plan beats the proved need, statuses follow from the
 * numbers, and the same call gives the same plan. Graphs and plans also go through their files and
 * back. Usage: prop_plan N SEED; a failure prints the seed of its graph. */
#include <string.h>

#include "check.h"
#include "graph/schedule.h"
#include "naive.h"
#include "random_graph.h"
#include "remat.h"
#include "text.h"

static int64_t plans, not_applying, not_fitting, recomputing;

static remat_input *parse(remat_ctx *ctx, text *t)
{
    remat_input *input = NULL;
    CHECK(remat_input_parse(ctx, "text", t->bytes, t->n, &input) == REMAT_OK, "%s\n%.*s",
          remat_ctx_error(ctx), (int)t->n, t->bytes);
    free(t->bytes);
    return input;
}

static void graph_through_a_file(remat_ctx *ctx, const remat_graph *graph, remat_format format)
{
    text t = {0};
    remat_graph *again = NULL;
    CHECK(remat_graph_write(ctx, graph, format, into_text, &t) == REMAT_OK, "%s",
          remat_ctx_error(ctx));
    remat_input *input = parse(ctx, &t);
    CHECK(remat_input_kind(input) == REMAT_KIND_GRAPH, "kind %d", (int)remat_input_kind(input));
    CHECK(remat_graph_read(ctx, input, &again) == REMAT_OK, "%s", remat_ctx_error(ctx));
    CHECK(strcmp(remat_graph_digest(graph), remat_graph_digest(again)) == 0, "digest");
    for (uint32_t op = 0; op < remat_graph_n_ops(graph); op++) {
        for (int attr = REMAT_OP_COST; attr <= REMAT_OP_REPLAY; attr++)
            CHECK(remat_graph_op_get(graph, op, (remat_op_attr)attr) ==
                      remat_graph_op_get(again, op, (remat_op_attr)attr),
                  "op %u, attribute %d", op, attr);
        CHECK(strcmp(remat_graph_op_target(graph, op), remat_graph_op_target(again, op)) == 0,
              "op %u", op);
    }
    for (uint32_t v = 0; v < remat_graph_n_values(graph); v++)
        for (int attr = REMAT_VALUE_SIZE; attr <= REMAT_VALUE_PRODUCER; attr++)
            if (attr != REMAT_VALUE_ALIAS) /* may come back as the root, which means the same */
                CHECK(remat_graph_value_get(graph, v, (remat_value_attr)attr) ==
                          remat_graph_value_get(again, v, (remat_value_attr)attr),
                      "value %u, attribute %d", v, attr);
    remat_graph_free(again), remat_input_free(input);
}

static void plan_through_a_file(remat_ctx *ctx, const remat_graph *graph, const remat_plan *plan)
{
    text t = {0};
    remat_plan *again = NULL;
    remat_verdict verdict = REMAT_VERDICT_INIT;
    CHECK(remat_plan_write(ctx, plan, REMAT_JSON, into_text, &t) == REMAT_OK, "%s",
          remat_ctx_error(ctx));
    remat_input *input = parse(ctx, &t);
    CHECK(remat_plan_read(ctx, input, &again) == REMAT_OK, "%s", remat_ctx_error(ctx));
    CHECK(remat_plan_verify(ctx, graph, again, &verdict) == REMAT_OK && verdict.valid, "%s",
          verdict.reason);
    const remat_summary *a = remat_plan_summary(plan), *b = remat_plan_summary(again);
    CHECK(a->peak_bytes == b->peak_bytes && a->cost == b->cost &&
              a->budget_bytes == b->budget_bytes && a->within_budget == b->within_budget,
          "numbers");
    CHECK(a->flags == b->flags && strcmp(a->strategy, b->strategy) == 0 && a->outcome == b->outcome,
          "names");
    remat_plan_free(again), remat_input_free(input);
}

static void check_plan(remat_ctx *ctx, const remat_graph *graph, const naive_graph *ng,
                       const remat_info *info, const char *strategy, int64_t budget, bool files)
{
    remat_plan *plan = NULL, *again = NULL;
    CHECK(remat_ctx_set(ctx, "work",
                        strncmp(strategy, "fastsa", 6) == 0 || strcmp(strategy, "auto") == 0 ||
                                strcmp(strategy, "exact") == 0
                            ? 2000
                            : 0) == REMAT_OK,
          "%s", remat_ctx_error(ctx));
    const remat_status status = remat_plan_make(ctx, graph, strategy, budget, &plan);
    if (status == REMAT_E_APPLIES) {
        CHECK(strcmp(strategy, "keep-all") != 0, "%s", remat_ctx_error(ctx));
        not_applying++;
        return;
    }
    CHECK(status == REMAT_OK, "%s: %s", strategy, remat_ctx_error(ctx));
    plans++;
    const remat_summary *s = remat_plan_summary(plan);
    size_t n, m;
    const remat_step *steps = remat_plan_steps(plan, &n);
    remat_step *own; /* in the prepared graph's own indices, for the reference */
    const rm_mark mark = rm_scratch_mark(ctx);
    CHECK(rm_steps_to_graph(ctx, graph, steps, n, &own) == REMAT_OK, "%s", remat_ctx_error(ctx));
    naive_verdict v = naive_judge(ng, own, n, 0);
    CHECK(v.valid, "%s: invalid at step %u", strategy, v.first_bad_step);
    CHECK(v.peak_bytes == s->peak_bytes && v.peak_step == s->peak_step && v.cost == s->cost,
          "%s: peak %" PRId64 ", is %" PRId64, strategy, s->peak_bytes, v.peak_bytes);
    naive_release(&v);
    rm_scratch_release(ctx, mark);
    CHECK(s->peak_bytes >= info->need_bytes, "%s: peak %" PRId64 " below the need %" PRId64,
          strategy, s->peak_bytes, info->need_bytes);
    CHECK(s->cost >= s->keep_all_cost && s->keep_all_cost == info->keep_all_cost &&
              s->keep_all_peak_bytes == info->keep_all_peak_bytes,
          "%s", strategy);
    CHECK(s->need_bytes == info->need_bytes && s->resident_bytes == info->resident_bytes &&
              s->ops == info->ops && s->steps == n,
          "%s", strategy);
    CHECK(s->bound_cost == REMAT_ABSENT || s->bound_cost <= s->cost, "%s", strategy);
    CHECK(s->within_budget == (budget < 0 || s->peak_bytes <= budget), "%s", strategy);
    /* prop_any_order.c holds what a search says against all schedules. */
    const bool searched = s->outcome == REMAT_INFEASIBLE && strcmp(s->bound_method, "search") == 0;
    const bool is_too_small = budget < info->need_bytes || budget < s->least_peak_bound;
    CHECK(s->peak_bytes >= s->least_peak_bound, "%s: peak %" PRId64 " below the least %" PRId64,
          strategy, s->peak_bytes, s->least_peak_bound);
    const remat_status expected = s->within_budget           ? REMAT_OK
                                  : is_too_small || searched ? REMAT_E_INFEASIBLE
                                                             : REMAT_E_NOT_FOUND;
    CHECK(remat_plan_status(plan) == expected, "%s: status %d, not %d", strategy,
          (int)remat_plan_status(plan), (int)expected);
    not_fitting += !s->within_budget;
    recomputing += s->recomputed_ops > 0;
    CHECK(remat_plan_make(ctx, graph, strategy, budget, &again) == REMAT_OK, "%s",
          remat_ctx_error(ctx));
    const remat_step *others = remat_plan_steps(again, &m);
    CHECK(n == m && (n == 0 || memcmp(steps, others, n * sizeof *steps) == 0), "%s: two plans",
          strategy);
    if (files) plan_through_a_file(ctx, graph, plan);
    remat_plan_free(plan), remat_plan_free(again);
}

static void one_graph(remat_ctx *ctx, random_schedule *s)
{
    static const char *const models[] = {NULL, NULL, "unit", "node", "roofline:h100"};
    random_source r = {case_seed};
    remat_graph *graph = random_graph(ctx, &r), *prepared = NULL;
    CHECK(graph, "%s", remat_ctx_error(ctx));
    const bool files = random_chance(&r, 20);
    if (files) graph_through_a_file(ctx, graph, random_chance(&r, 50) ? REMAT_JSON : REMAT_JSON_GZ);
    const unsigned flags = random_chance(&r, 40) ? 0 : random_below(&r, 16);
    CHECK(remat_graph_prepare(ctx, graph, flags, models[random_below(&r, 5)], &prepared) ==
              REMAT_OK,
          "flags %u: %s", flags, remat_ctx_error(ctx));
    if (!(flags & ~(unsigned)REMAT_REPLAY_RANDOM))
        CHECK(remat_graph_n_ops(prepared) == remat_graph_n_ops(graph), "ops");
    remat_info info = REMAT_INFO_INIT;
    CHECK(remat_graph_info(ctx, prepared, &info) == REMAT_OK, "%s", remat_ctx_error(ctx));
    naive_graph *ng = naive_from(prepared);
    random_schedule_make(s, prepared, &r, false);
    naive_verdict v = naive_judge(ng, s->steps, s->n_steps,
                                  0); /* a schedule of no planner must respect the need, too */
    CHECK(v.valid && v.peak_bytes >= info.need_bytes, "peak %" PRId64 " below the need %" PRId64,
          v.peak_bytes, info.need_bytes);
    naive_release(&v);
    uint32_t values[512], n_values;
    int64_t sum =
        info.resident_bytes + (info.need_op == REMAT_NONE ? 0 : ng->ops[info.need_op].workspace);
    CHECK(remat_graph_need_values(ctx, prepared, values, 512, &n_values) == REMAT_OK, "%s",
          remat_ctx_error(ctx));
    for (uint32_t i = 0; i < n_values; i++)
        sum += remat_graph_value_get(prepared, values[i], REMAT_VALUE_STORAGE);
    if (flags == 0)
        CHECK(sum == info.need_bytes, "the values add up to %" PRId64 ", the need is %" PRId64, sum,
              info.need_bytes);
    const int64_t span = info.keep_all_peak_bytes - info.need_bytes;
    const int64_t budgets[] = {
        REMAT_BUDGET_NONE, REMAT_BUDGET_MIN,           0,
        info.need_bytes,   info.need_bytes + span / 2, info.keep_all_peak_bytes};
    for (size_t i = 0; remat_strategy_at(i); i++)
        check_plan(ctx, prepared, ng, &info, remat_strategy_at(i)->name,
                   budgets[random_below(&r, 6)], files);
    naive_free(ng), remat_graph_free(prepared), remat_graph_free(graph);
}

int main(int argc, char **argv)
{
    const int64_t graphs = cases_asked_for(argc, argv);
    remat_ctx *ctx = remat_ctx_new(NULL);
    if (!ctx) return 1;
    random_schedule s = {0};
    for (int64_t i = 0; i < graphs; i++, case_seed++) one_graph(ctx, &s);
    random_schedule_free(&s);
    remat_ctx_free(ctx);
    printf("%" PRId64 " graphs, %" PRId64 " plans: %" PRId64 " recompute, %" PRId64
           " miss their budget; %" PRId64 " times a strategy does not apply\n",
           graphs, plans, recomputing, not_fitting, not_applying);
    return 0;
}
