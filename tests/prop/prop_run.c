/* prop_run.c: random schedules of random graphs, run over one arena.
 *
 * An op fills each storage that it makes with bytes that depend on the op and on all bytes of its
 * inputs. So whatever is read from a wrong place, or after its free, changes the outputs.
 * - The outputs are those of keep-all, run with a storage of its own for every value.
 * - With poison they are the same, and nothing is blamed.
 * - All of the arena is handed out, and no byte more.
 * - A second run of the same thing allocates nothing.
 *
 * Usage: prop_run N SEED */
#include "check.h"

#include <string.h>

#include "random_graph.h"

enum { LARGEST = 1 << 16 }; /* bytes of a storage or workspace that are really allocated */

static remat_ctx *ctx;
static int64_t n_allocations, n_run;

#define OK(call) CHECK((call) == REMAT_OK, "%s", remat_ctx_error(ctx))

static void *counted_resize(void *user, void *p, size_t old_size, size_t new_size)
{
    (void)user, (void)old_size;
    n_allocations++;
    if (new_size) return realloc(p, new_size);
    free(p);
    return NULL;
}

typedef struct machine {
    const remat_graph *graph;
    unsigned char **host; /* by value: the copy of what was offloaded */
} machine;

static uint32_t root_of(const remat_graph *g, uint32_t value)
{
    return (uint32_t)remat_graph_value_get(g, value, REMAT_VALUE_ROOT);
}
static int64_t bytes_of(const remat_graph *g, uint32_t value)
{
    return remat_graph_value_get(g, root_of(g, value), REMAT_VALUE_STORAGE);
}

static uint64_t mix(uint64_t h, const unsigned char *bytes, int64_t n)
{
    for (int64_t i = 0; i < n; i++) h = (h ^ bytes[i]) * UINT64_C(0x100000001b3);
    return h ^ (h >> 29);
}

static void fill(unsigned char *bytes, int64_t n, uint64_t h)
{
    rm_random r = {h};
    for (int64_t i = 0; i < n; i++) bytes[i] = (unsigned char)rm_random_next(&r);
}

static int compute(void *user, const remat_call *call)
{
    const machine *m = user;
    uint32_t n_in, n_out;
    const uint32_t *in = remat_graph_op_in(m->graph, call->op, &n_in);
    const uint32_t *out = remat_graph_op_out(m->graph, call->op, &n_out);
    CHECK(n_in == call->n_in && n_out == call->n_out, "op %u: operands", call->op);
    uint64_t h = call->op;
    for (uint32_t k = 0; k < n_in; k++) h = mix(h, call->in[k], bytes_of(m->graph, in[k]));
    if (call->workspace_bytes) memset(call->workspace, (int)h, (size_t)call->workspace_bytes);
    for (uint32_t k = 0; k < n_out; k++)
        if (root_of(m->graph, out[k]) == out[k])
            fill(call->out[k], bytes_of(m->graph, out[k]), h + k);
    return 0;
}

static int offload(void *user, uint32_t value, const void *from, int64_t bytes)
{
    const machine *m = user;
    CHECK(bytes == bytes_of(m->graph, value), "offload of value %u", value);
    memcpy(m->host[value], from, (size_t)bytes);
    return 0;
}

static int fetch(void *user, uint32_t value, void *to, int64_t bytes)
{
    const machine *m = user;
    CHECK(bytes == bytes_of(m->graph, value), "fetch of value %u", value);
    memcpy(to, m->host[value], (size_t)bytes);
    return 0;
}

/* A storage for every value that owns one, filled if it is resident. */
static unsigned char **new_storages(const remat_graph *g)
{
    unsigned char **storages = calloc(remat_graph_n_values(g) + 1, sizeof *storages);
    for (uint32_t v = 0; v < remat_graph_n_values(g); v++) {
        storages[v] = calloc(1, (size_t)bytes_of(g, v) + 1);
        fill(storages[v], bytes_of(g, v), 1000 + v);
    }
    return storages;
}

static void free_storages(const remat_graph *g, unsigned char **storages)
{
    for (uint32_t v = 0; v < remat_graph_n_values(g); v++) free(storages[v]);
    free(storages);
}

/* The hash of all outputs of keep-all, in storages that nobody else uses. */
static uint64_t plain_outputs(const remat_graph *g)
{
    unsigned char **storages = new_storages(g);
    machine m = {.graph = g};
    uint64_t h = 0;
    uint32_t n_outputs;
    const uint32_t *outputs = remat_graph_outputs(g, &n_outputs);
    for (uint32_t op = 0; op < remat_graph_n_ops(g); op++) {
        uint32_t n_in, n_out;
        const uint32_t *in = remat_graph_op_in(g, op, &n_in);
        const uint32_t *out = remat_graph_op_out(g, op, &n_out);
        void **pointers = calloc(n_in + n_out + 1, sizeof *pointers);
        for (uint32_t k = 0; k < n_in; k++) pointers[k] = storages[root_of(g, in[k])];
        for (uint32_t k = 0; k < n_out; k++) pointers[n_in + k] = storages[root_of(g, out[k])];
        const remat_call call = {
            .op = op, .n_in = n_in, .n_out = n_out, .in = pointers, .out = pointers + n_in};
        compute(&m, &call);
        free(pointers);
    }
    for (uint32_t i = 0; i < n_outputs; i++)
        h = mix(h, storages[root_of(g, outputs[i])], bytes_of(g, outputs[i]));
    free_storages(g, storages);
    return h;
}

static uint64_t run_outputs(remat_run *run, machine *m)
{
    const remat_hooks hooks = {sizeof hooks, m, compute, offload, fetch};
    uint64_t h = 0;
    uint32_t n_outputs;
    const uint32_t *outputs = remat_graph_outputs(m->graph, &n_outputs);
    OK(remat_run_steps(ctx, run, &hooks));
    for (uint32_t i = 0; i < n_outputs; i++)
        h = mix(h, remat_run_output(run, i), bytes_of(m->graph, outputs[i]));
    CHECK(!remat_run_output(run, n_outputs), "more outputs than there are");
    return h;
}

/* Some random graphs are about numbers near 2^62. */
static bool is_small(const remat_graph *g)
{
    for (uint32_t v = 0; v < remat_graph_n_values(g); v++)
        if (bytes_of(g, v) > LARGEST) return false;
    for (uint32_t op = 0; op < remat_graph_n_ops(g); op++)
        if (remat_graph_op_get(g, op, REMAT_OP_WORKSPACE) > LARGEST) return false;
    return true;
}

static void one_case(random_source *r)
{
    remat_graph *g = random_graph(ctx, r);
    CHECK(g, "%s", remat_ctx_error(ctx));
    if (!is_small(g)) {
        remat_graph_free(g);
        return;
    }
    n_run++;
    random_schedule s = {0};
    random_schedule_make(&s, g, r, random_chance(r, 50));
    remat_plan *plan = NULL;
    remat_run *run = NULL;
    const int64_t align = (int64_t)1 << random_below(r, 7);
    OK(remat_plan_of_steps(ctx, g, s.steps, s.n_steps, NULL, REMAT_BUDGET_NONE, 0, &plan));
    OK(remat_run_new(ctx, g, plan, align, &run));
    remat_plan_free(plan);
    const int64_t bytes = remat_run_arena_bytes(run);
    unsigned char *block = malloc((size_t)(bytes + align)), *arena = block;
    while ((uintptr_t)arena % (uintptr_t)align) arena++;
    machine m = {.graph = g, .host = new_storages(g)};
    unsigned char **resident = new_storages(g);
    OK(remat_run_arena(ctx, run, arena, bytes));
    for (uint32_t v = 0; v < remat_graph_n_values(g); v++)
        if (root_of(g, v) == v && remat_graph_value_get(g, v, REMAT_VALUE_PRODUCER) == REMAT_ABSENT)
            OK(remat_run_resident(ctx, run, v, resident[v]));
    const uint64_t expected = plain_outputs(g);
    CHECK(run_outputs(run, &m) == expected, "the outputs differ");
    const int64_t before = n_allocations;
    remat_run_modes(run, REMAT_RUN_POISON | REMAT_RUN_TRACE);
    CHECK(run_outputs(run, &m) == expected, "with poison the outputs differ");
    CHECK(n_allocations == before, "a run allocates");
    /* Rounding up may leave a few bytes at the top that nobody gets. */
    const int64_t handed_out = remat_run_high_water(run);
    CHECK(handed_out <= bytes && handed_out > bytes - align, "%" PRId64 " bytes of %" PRId64,
          handed_out, bytes);
    free_storages(g, resident);
    free_storages(g, m.host);
    free(block);
    remat_run_free(run);
    random_schedule_free(&s);
    remat_graph_free(g);
}

int main(int argc, char **argv)
{
    const int64_t n = cases_asked_for(argc, argv);
    ctx = remat_ctx_new(&(const remat_alloc){counted_resize, NULL});
    if (!ctx) return 1;
    for (int64_t i = 0; i < n; i++, case_seed++) {
        random_source r = {case_seed};
        one_case(&r);
    }
    remat_ctx_free(ctx);
    CHECK(n_run >= n / 2, "only %" PRId64 " graphs were run", n_run);
    printf("prop_run: %" PRId64 " cases, %" PRId64 " run\n", n, n_run);
    return 0;
}
