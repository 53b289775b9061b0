/* build_graph.c: build a graph by calls, plan it, and print when to allocate, compute and free.
 *
 *     cc build_graph.c $(pkg-config --cflags --libs remat) -o build_graph && ./build_graph */
#include <inttypes.h>
#include <stdio.h>

#include <remat.h>

#define LIST(...)                                                                                  \
    (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)

static void add(remat_builder *b, const char *name, remat_phase phase, int64_t cost,
                const uint32_t *in, uint32_t n_in, const uint32_t *out, uint32_t n_out)
{
    const uint32_t op = remat_builder_op(b, name, in, n_in, out, n_out);
    remat_builder_op_set(b, op, REMAT_OP_PHASE, phase);
    remat_builder_op_set(b, op, REMAT_OP_COST, cost);
}

/* Two layers and a loss, forward and backward; x and both weights are made by no op, so they are
 * resident. */
static remat_status build(remat_ctx *ctx, remat_graph **out)
{
    remat_builder *b = remat_builder_new(ctx, "two layers");
    if (!b) return REMAT_E_MEMORY;
    const uint32_t x = remat_builder_value(b, "x", 4096), w1 = remat_builder_value(b, "w1", 1024),
                   w2 = remat_builder_value(b, "w2", 1024);
    const uint32_t h = remat_builder_value(b, "h", 8192), y = remat_builder_value(b, "y", 2048),
                   dy = remat_builder_value(b, "dy", 2048);
    const uint32_t dh = remat_builder_value(b, "dh", 8192),
                   dw2 = remat_builder_value(b, "dw2", 1024),
                   dw1 = remat_builder_value(b, "dw1", 1024);
    add(b, "layer1", REMAT_FORWARD, 40, LIST(x, w1), LIST(h));
    add(b, "layer2", REMAT_FORWARD, 20, LIST(h, w2), LIST(y));
    add(b, "loss", REMAT_BACKWARD, 5, LIST(y), LIST(dy));
    add(b, "layer2_grad", REMAT_BACKWARD, 40, LIST(dy, h, w2), LIST(dh, dw2));
    add(b, "layer1_grad", REMAT_BACKWARD, 40, LIST(dh, x), LIST(dw1));
    remat_builder_output(b, dw1);
    remat_builder_output(b, dw2);
    const remat_status status =
        remat_builder_finish(b, out); /* reports the first mistake of all the calls above */
    remat_builder_free(b);
    return status;
}

static void print_program(const remat_graph *graph, const remat_program *program)
{
    size_t n;
    const remat_statement *s = remat_program_statements(program, &n);
    for (size_t i = 0; i < n; i++) {
        const bool compute = s[i].kind == REMAT_COMPUTE;
        printf("%-9s %-12s %6" PRId64 " bytes in use\n",
               compute                       ? "compute"
               : s[i].kind == REMAT_ALLOCATE ? "allocate"
               : s[i].kind == REMAT_REUSE    ? "reuse"
                                             : "free",
               compute ? remat_graph_op_name(graph, s[i].step.index)
                       : remat_graph_value_name(graph, s[i].value),
               s[i].memory_bytes);
    }
}

int main(void)
{
    remat_ctx *ctx = remat_ctx_new(NULL);
    if (!ctx) return REMAT_E_MEMORY;
    remat_graph *graph = NULL;
    remat_plan *plan = NULL;
    remat_program *program = NULL;
    remat_status status = build(ctx, &graph);
    if (status == REMAT_OK)
        status = remat_plan_make(ctx, graph, "keep-all", REMAT_BUDGET_NONE, &plan);
    if (status == REMAT_OK) {
        size_t n_steps;
        const remat_step *steps = remat_plan_steps(plan, &n_steps);
        status = remat_lower(ctx, graph, steps, n_steps, &program);
    }
    if (status == REMAT_OK) {
        print_program(graph, program);
        printf("peak %" PRId64 " bytes\n", remat_plan_summary(plan)->peak_bytes);
    } else {
        fprintf(stderr, "%s\n", remat_ctx_error(ctx));
    }
    remat_program_free(program);
    remat_plan_free(plan);
    remat_graph_free(graph);
    remat_ctx_free(ctx);
    return (int)status;
}
