/* plan_file.c: load a graph, plan it within a budget, print the steps.
 *
 *     cc plan_file.c $(pkg-config --cflags --libs remat) -o plan_file
 *     ./plan_file resnet18.json.gz chen-sqrt 90% */
#include <inttypes.h>
#include <stdio.h>

#include <remat.h>

static const char *const verbs[] = {
    [REMAT_RUN] = "run", [REMAT_OFFLOAD] = "offload", [REMAT_FETCH] = "fetch"};

static remat_status print_plan(remat_ctx *ctx, const remat_graph *graph, const char *strategy,
                               const char *budget)
{
    remat_info info = REMAT_INFO_INIT;
    int64_t budget_bytes;
    remat_plan *plan;
    remat_status status = remat_graph_info(ctx, graph, &info);
    if (status == REMAT_OK)
        status = remat_budget_parse(ctx, budget, info.keep_all_peak_bytes, &budget_bytes);
    if (status == REMAT_OK) status = remat_plan_make(ctx, graph, strategy, budget_bytes, &plan);
    if (status != REMAT_OK) return status;

    size_t n_steps;
    const remat_step *steps = remat_plan_steps(plan, &n_steps);
    for (size_t i = 0; i < n_steps; i++) {
        const char *name = steps[i].kind == REMAT_RUN
                               ? remat_graph_op_name(graph, steps[i].index)
                               : remat_graph_value_name(graph, steps[i].index);
        printf("%s %s\n", verbs[steps[i].kind], name);
    }
    const remat_summary *s = remat_plan_summary(plan);
    printf("%s: %zu steps, peak %" PRId64 " of %" PRId64 " bytes (keep-all %" PRId64
           "), cost %" PRId64 " (keep-all %" PRId64 ") %s\n",
           s->graph, n_steps, s->peak_bytes, s->budget_bytes, s->keep_all_peak_bytes, s->cost,
           s->keep_all_cost, s->cost_unit);
    if (!s->within_budget) printf("over the budget: this is the best that %s found\n", s->strategy);
    remat_plan_free(plan);
    return REMAT_OK;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return fprintf(stderr, "usage: %s GRAPH STRATEGY BUDGET\n", argv[0]), REMAT_E_USAGE;
    remat_ctx *ctx = remat_ctx_new(NULL);
    if (!ctx) return REMAT_E_MEMORY;
    remat_graph *graph = NULL;
    remat_status status = remat_graph_load(ctx, argv[1], &graph);
    if (status == REMAT_OK) status = print_plan(ctx, graph, argv[2], argv[3]);
    if (status != REMAT_OK) fprintf(stderr, "%s\n", remat_ctx_error(ctx));
    remat_graph_free(graph);
    remat_ctx_free(ctx);
    return (int)status;
}
