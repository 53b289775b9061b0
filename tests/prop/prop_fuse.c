/* prop_fuse.c: fusion on N random graphs and schedules.
 *   kernels   a partition in an order that can be run; members fuse and are of one part
 *   traffic  what a naive count by the definition gives, to the byte; fusing never moves more
 *   fuse     the program after section 3.7 computes the same outputs, runs pinned ops once and in
 * order, and never moves more
 *   --fuse   plans of kernels verify, cost the same, and move no more than the same order of ops
 *   costs    by fused:h100 keep-all costs what its kernels take, or little more; plans verify
 * Usage: prop_fuse N SEED; a failure prints the seed of its case. prop_fuse GRAPH: our kernels
 * against an exact search for cycles. */
#include <string.h>

#include "check.h"
#include "fusion/op_class.h"
#include "fusion/traffic.h"
#include "random_graph.h"
#include "remat.h"

static int64_t n_kernels, n_fused_steps, n_gains, n_copies, moved_by_us, moved_exact;

#define OK(ctx, call) CHECK((call) == REMAT_OK, "%s", remat_ctx_error(ctx))

static void *zeros(size_t n, size_t size)
{
    void *p = calloc(n + 1, size);
    if (!p) abort();
    return p;
}

/* ---- the naive count: who made what, by walking back; sets by looking at all pairs ---- */

typedef struct place {
    uint32_t step, value;
} place; /* the storage instance that `step` made for `value`; a resident one: REMAT_NONE and its
            root */

static place storage_of(const remat_graph *g, const remat_step *steps, uint32_t before,
                        uint32_t value);

static place made_at(const remat_graph *g, const remat_step *steps, uint32_t t, uint32_t value)
{
    const uint32_t op = steps[t].index;
    if (steps[t].kind == REMAT_FETCH || g->root[value] == value) return (place){t, value};
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
        if (g->root[g->in[k]] == g->root[value]) return storage_of(g, steps, t, g->in[k]);
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        if (g->root[g->out[k]] == g->root[value]) return made_at(g, steps, t, g->out[k]);
    abort();
}

static bool makes(const remat_graph *g, const remat_step *step, uint32_t value)
{
    if (step->kind != REMAT_RUN) return step->kind == REMAT_FETCH && step->index == value;
    return g->producer[value] == step->index;
}

static uint32_t maker_of(const remat_graph *g, const remat_step *steps, uint32_t before,
                         uint32_t value)
{
    while (before-- > 0)
        if (makes(g, &steps[before], value)) return before;
    return REMAT_NONE;
}

static place storage_of(const remat_graph *g, const remat_step *steps, uint32_t before,
                        uint32_t value)
{
    const uint32_t t = maker_of(g, steps, before, value);
    return t == REMAT_NONE ? (place){REMAT_NONE, g->root[value]} : made_at(g, steps, t, value);
}

typedef struct seen {
    uint32_t kernel, value;
    place storage;
    bool counts;
} seen;

static bool is_idle(const remat_graph *g, const remat_step *s)
{
    if (s->kind != REMAT_RUN) return false;
    return rm_is_view_op(g, s->index) ||
           (g->out_begin[s->index] == g->out_begin[s->index + 1] && !g->pinned[s->index]);
}

static bool same_place(place a, place b) { return a.step == b.step && a.value == b.value; }
static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t naive_traffic(const remat_graph *g, const remat_step *steps, uint32_t n,
                             const uint32_t *kernel, const uint8_t *fused)
{
    size_t most = 0, n_seen = 0;
    for (uint32_t t = 0; t < n; t++)
        most += steps[t].kind == REMAT_RUN
                    ? g->in_begin[steps[t].index + 1] - g->in_begin[steps[t].index]
                    : 1;
    seen *all = zeros(most, sizeof *all);
    int64_t sum = 0;
    for (uint32_t t = 0; t < n; t++) {
        const uint32_t op = steps[t].index, kind = steps[t].kind;
        const uint32_t n_in =
            kind == REMAT_RUN ? g->in_begin[op + 1] - g->in_begin[op] : kind == REMAT_OFFLOAD;
        for (uint32_t k = 0; k < n_in && !is_idle(g, &steps[t]); k++) {
            const uint32_t v = kind == REMAT_RUN ? g->in[g->in_begin[op] + k] : op;
            const seen one = {kernel[t], v, storage_of(g, steps, t, v),
                              kind != REMAT_RUN || !rm_is_boundary(g, op)};
            bool again = one.storage.step != REMAT_NONE && kernel[one.storage.step] == kernel[t];
            for (size_t i = 0; i < n_seen; i++)
                again |= all[i].kernel == one.kernel && all[i].value == v &&
                         same_place(all[i].storage, one.storage);
            if (!again) all[n_seen++] = one;
        }
    }
    for (size_t i = 0; i < n_seen;
         i++) { /* the first entry of a (kernel, storage) stands for all of them */
        int64_t bytes = 0;
        bool first = true;
        for (size_t k = 0; k < n_seen; k++) {
            if (all[k].kernel != all[i].kernel || !same_place(all[k].storage, all[i].storage))
                continue;
            first &= k >= i;
            if (all[k].counts) bytes += smaller(g->size[all[k].value], g->storage[all[k].value]);
        }
        if (first) sum += smaller(bytes, g->storage[all[i].storage.value]);
    }
    for (uint32_t t = 0; t < n; t++) {
        const uint32_t op = steps[t].index, kind = steps[t].kind;
        if (kind == REMAT_OFFLOAD || (kind == REMAT_RUN && rm_is_boundary(g, op))) continue;
        const uint32_t n_out = kind == REMAT_RUN ? g->out_begin[op + 1] - g->out_begin[op] : 1;
        for (uint32_t k = 0; k < n_out; k++) {
            const uint32_t v = kind == REMAT_RUN ? g->out[g->out_begin[op] + k] : op;
            if (g->root[v] != v) continue;
            bool written = !fused[kernel[t]];
            for (size_t i = 0; i < n_seen; i++)
                written |= same_place(all[i].storage, (place){t, v});
            for (uint32_t i = 0; i < g->n_outputs; i++) { /* the first instance of an output */
                uint32_t first = 0;
                while (first < n && !makes(g, &steps[first], g->outputs[i])) first++;
                if (first < n)
                    written |= same_place(made_at(g, steps, first, g->outputs[i]), (place){t, v});
            }
            if (written) sum += smaller(g->size[v], g->storage[v]);
        }
    }
    free(all);
    return sum;
}

/* ---- kernels ---- */

static bool fuses(const remat_ctx *ctx, const remat_graph *g, uint32_t op)
{
    return g->out_begin[op] < g->out_begin[op + 1] && rm_is_fusible_class(rm_op_class(ctx, g, op));
}

static void check_kernels(const remat_ctx *ctx, const rm_trace *x, const rm_kernels *kernels)
{
    const remat_graph *g = x->g;
    uint32_t n_steps = 0, last_pinned = REMAT_NONE;
    for (uint32_t k = 0; k < kernels->n; k++) {
        const uint32_t begin = kernels->begin[k], end = kernels->begin[k + 1];
        CHECK(end > begin, "kernel %u is empty", k);
        for (uint32_t i = begin; i < end; i++) {
            const uint32_t t = kernels->steps[i], op = x->steps[t].index;
            CHECK(kernels->of[t] == k && (i == begin || kernels->steps[i - 1] < t),
                  "kernel %u lists step %u", k, t);
            n_steps++;
            for (uint32_t r = x->read_begin[t]; r < x->read_begin[t + 1]; r++)
                CHECK(x->reads[r].maker == REMAT_NONE || kernels->of[x->reads[r].maker] <= k,
                      "kernel %u reads kernel %u", k, kernels->of[x->reads[r].maker]);
            if (end - begin == 1) continue;
            n_fused_steps++;
            CHECK(x->steps[t].kind == REMAT_RUN && fuses(ctx, g, op), "step %u does not fuse", t);
            CHECK((t < x->backward) == (kernels->steps[begin] < x->backward),
                  "kernel %u is in both parts", k);
        }
    }
    CHECK(n_steps == x->n_steps, "%u steps are in kernels", n_steps);
    for (uint32_t k = 0; k < kernels->n; k++)
        for (uint32_t i = kernels->begin[k]; i < kernels->begin[k + 1]; i++) {
            const uint32_t t = kernels->steps[i];
            if (x->steps[t].kind == REMAT_RUN && !g->pinned[x->steps[t].index]) continue;
            CHECK(last_pinned == REMAT_NONE || last_pinned < t,
                  "steps %u and %u change their order", last_pinned, t);
            last_pinned = t;
        }
    n_kernels += kernels->n;
}

/* The same greedy rule with an exact search: may these two kernels be one? `label` is by step. */
static bool reaches(const rm_trace *x, uint32_t n, const uint32_t *label, uint32_t from,
                    uint32_t to, uint8_t *marked)
{ /* through a third kernel; steps below n, in schedule order, again and again until nothing changes
   */
    memset(marked, 0, x->n_steps);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t t = 0; t < n; t++)
            for (uint32_t i = x->read_begin[t]; i < x->read_begin[t + 1]; i++) {
                const uint32_t maker = x->reads[i].maker;
                if (maker == REMAT_NONE || label[maker] == label[t]) continue;
                const bool begins = label[maker] == from && label[t] != to,
                           goes_on = label[maker] != from && marked[label[maker]];
                if (goes_on && label[t] == to) return true;
                if ((begins || goes_on) && !marked[label[t]]) marked[label[t]] = 1, changed = true;
            }
    }
    return false;
}

static int64_t exact_traffic(remat_ctx *ctx, const rm_trace *x, const rm_kernels *ours)
{
    const remat_graph *g = x->g;
    uint32_t *label = zeros(x->n_steps, sizeof *label);
    uint8_t *joins = zeros(x->n_steps, 1), *marked = zeros(x->n_steps, 1),
            *fused = zeros(x->n_steps, 1);
    for (uint32_t t = 0; t < x->n_steps; t++) {
        const uint32_t op = x->steps[t].index;
        const bool view = rm_is_view_op(g, op), fusible = fuses(ctx, g, op);
        label[t] = t;
        joins[t] = fusible && !view;
        for (uint32_t i = x->read_begin[t]; i < x->read_begin[t + 1] && fusible; i++) {
            const rm_read *r = &x->reads[i];
            if (r->maker == REMAT_NONE || !joins[r->maker] ||
                (r->maker < x->backward) != (t < x->backward))
                continue;
            if (view &&
                (r->instance >= x->n_made || label[x->maker[r->instance]] != label[r->maker]))
                continue;
            const uint32_t a = label[r->maker], b = label[t];
            if (a == b || reaches(x, t + 1, label, a, b, marked) ||
                reaches(x, t + 1, label, b, a, marked))
                continue;
            for (uint32_t k = 0; k <= t; k++)
                if (label[k] == a) label[k] = b;
            joins[t] = 1;
        }
    }
    for (uint32_t t = 0; t < x->n_steps; t++) fused[label[t]] |= joins[t];
    rm_kernels kernels = *ours;
    rm_kernel_traffic traffic;
    OK(ctx, rm_kernels_of_steps(ctx, x, &kernels));
    kernels.n = 0; /* numbered and listed by label */
    for (uint32_t t = 0, at = 0; t < x->n_steps; t++) {
        if (label[t] == REMAT_NONE) continue;
        const uint32_t own = label[t];
        kernels.begin[kernels.n] = at;
        kernels.fused[kernels.n] = fused[own];
        for (uint32_t k = t; k < x->n_steps; k++)
            if (label[k] == own)
                kernels.steps[at++] = k, kernels.of[k] = kernels.n, label[k] = REMAT_NONE;
        kernels.begin[++kernels.n] = at;
    }
    OK(ctx, rm_kernel_traffic_of(ctx, x, &kernels, &traffic));
    free(label), free(joins), free(marked), free(fused);
    return traffic.total;
}

static void check_schedule(remat_ctx *ctx, const remat_graph *g, const random_schedule *s,
                           bool exact)
{
    rm_trace x;
    rm_kernels kernels, alone;
    rm_kernel_traffic fused, apart;
    const rm_mark mark = rm_scratch_mark(ctx);
    OK(ctx, rm_trace_of(ctx, g, s->steps, s->n_steps, &x));
    OK(ctx, rm_kernels_find(ctx, &x, &kernels));
    OK(ctx, rm_kernels_of_steps(ctx, &x, &alone));
    OK(ctx, rm_kernel_traffic_of(ctx, &x, &kernels, &fused));
    OK(ctx, rm_kernel_traffic_of(ctx, &x, &alone, &apart));
    check_kernels(ctx, &x, &kernels);
    const int64_t naive =
        naive_traffic(g, s->steps, (uint32_t)s->n_steps, kernels.of, kernels.fused);
    CHECK(fused.total == naive, "%" PRId64 " against %" PRId64, fused.total, naive);
    CHECK(apart.total == naive_traffic(g, s->steps, (uint32_t)s->n_steps, alone.of, alone.fused),
          "unfused: %" PRId64, apart.total);
    CHECK(fused.total <= apart.total, "fused %" PRId64 ", unfused %" PRId64, fused.total,
          apart.total);
    int64_t sum = 0;
    for (uint32_t k = 0; k < kernels.n; k++) {
        const remat_moved m = rm_kernel_traffic_of_one(&x, &kernels, &fused, k);
        sum += m.read_bytes + m.written_bytes;
    }
    CHECK(sum == fused.total, "the kernels move %" PRId64, sum);
    if (exact) moved_by_us += fused.total, moved_exact += exact_traffic(ctx, &x, &kernels);
    rm_scratch_release(ctx, mark);
}

/* ---- section 3.7 ---- */

static uint64_t mix(uint64_t h, uint64_t x) { return (h ^ x) * 0x9e3779b97f4a7c15u ^ (h >> 29); }

/* What an op computes, as far as the file says; a copy is called like its original. */
static uint64_t identity(const remat_graph *g, uint32_t op)
{
    uint64_t h = mix(mix(mix(1, (uint64_t)g->flops[op]), (uint64_t)g->given_cost[op]),
                     (uint64_t)g->workspace[op]);
    const char *name = remat_graph_op_name(g, op), *again = strstr(name, ".again");
    for (const char *c = name; *c && c != again; c++) h = mix(h, (uint64_t)*c);
    for (const char *c = remat_graph_op_target(g, op); *c; c++) h = mix(h, (uint64_t)*c);
    return h;
}

/* By value, what it is, computed from what it is computed from. Residents keep their order, so they
 * count from 0 in both graphs. */
static uint64_t *meanings(const remat_graph *g)
{
    uint64_t *of = zeros(g->n_values, sizeof *of), n_resident = 0;
    for (uint32_t v = 0; v < g->n_values; v++)
        if (g->producer[v] == REMAT_NONE) of[v] = mix(7, n_resident++);
    for (uint32_t op = 0; op < g->n_ops; op++) {
        uint64_t h = identity(g, op);
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) h = mix(h, of[g->in[k]]);
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
            of[g->out[k]] = mix(h, k - g->out_begin[op] + 1);
    }
    return of;
}

static void check_program(const remat_graph *g, const remat_graph *program)
{
    uint64_t *before = meanings(g), *after = meanings(program);
    CHECK(g->n_outputs == program->n_outputs, "%u outputs", program->n_outputs);
    for (uint32_t i = 0; i < g->n_outputs; i++)
        CHECK(before[g->outputs[i]] == after[program->outputs[i]], "output %u is another", i);
    uint32_t next = 0;
    for (uint32_t op = 0; op < g->n_ops; op++) {
        if (!g->pinned[op]) continue;
        while (next < program->n_ops && !program->pinned[next]) next++;
        CHECK(next < program->n_ops && identity(g, op) == identity(program, next),
              "pinned op %u is missing", op);
        next++;
    }
    while (next < program->n_ops && !program->pinned[next]) next++;
    CHECK(next == program->n_ops, "pinned op %u is one too many", next);
    free(before), free(after);
}

static void check_fuse(remat_ctx *ctx, const remat_graph *g, const random_schedule *s)
{
    remat_graph *program = NULL;
    remat_fusion f = REMAT_FUSION_INIT;
    OK(ctx, remat_fuse(ctx, g, s->steps, s->n_steps, &f, &program));
    CHECK(f.before.total_bytes <= f.unfused.total_bytes, "fusion gains nothing");
    CHECK(f.after.total_bytes <= f.before.total_bytes, "%" PRId64 " before, %" PRId64 " after",
          f.before.total_bytes, f.after.total_bytes);
    CHECK((f.rounds > 0) == (f.after.total_bytes < f.before.total_bytes), "%u rounds", f.rounds);
    n_gains += f.rounds > 0, n_copies += f.copies;
    check_program(g, program);
    remat_step *steps = zeros(program->n_ops, sizeof *steps);
    for (uint32_t op = 0; op < program->n_ops; op++) steps[op].index = op;
    random_schedule own = {steps, program->n_ops, 0};
    check_schedule(ctx, program, &own, false);
    remat_verdict verdict = REMAT_VERDICT_INIT;
    OK(ctx, remat_verify(ctx, program, steps, program->n_ops, 0, &verdict));
    CHECK(verdict.valid, "%s", verdict.reason);
    uint32_t *kernel = zeros(program->n_ops, sizeof *kernel), n;
    remat_moved *moved = zeros(program->n_ops, sizeof *moved);
    int64_t sum = 0;
    OK(ctx, remat_graph_kernels(ctx, program, kernel, moved, &n));
    for (uint32_t k = 0; k < n; k++) sum += moved[k].read_bytes + moved[k].written_bytes;
    CHECK(sum == f.after.total_bytes, "its kernels move %" PRId64 ", not %" PRId64, sum,
          f.after.total_bytes);
    free(kernel), free(moved), free(steps);
    remat_graph_free(program);
}

/* ---- kernels as ops ---- */

/* A view that reads more than its storage moves nothing by itself; a kernel that it is in lists
 * what it reads. */
static bool has_mixed_views(const remat_graph *g)
{
    for (uint32_t op = 0; op < g->n_ops; op++)
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1] && rm_is_view_op(g, op); k++)
            if (g->root[g->in[k]] != g->root[g->out[g->out_begin[op]]]) return true;
    return false;
}

static void check_kernel_ops(remat_ctx *ctx, const remat_graph *g, random_source *r)
{
    static const char *const models[] = {"unit", "node", "flops", "roofline:h100"};
    const size_t model = random_below(r, 4);
    remat_graph *ops = NULL, *kernels = NULL;
    remat_plan *plan = NULL, *whole = NULL;
    remat_verdict verdict = REMAT_VERDICT_INIT;
    OK(ctx, remat_graph_prepare(ctx, g, 0, models[model], &ops));
    OK(ctx, remat_graph_prepare(ctx, g, REMAT_FUSE, models[model], &kernels));
    OK(ctx, remat_plan_make(ctx, ops, "keep-all", REMAT_BUDGET_NONE, &whole));
    OK(ctx, remat_plan_make(ctx, kernels, "keep-all", REMAT_BUDGET_NONE, &plan));
    OK(ctx, remat_plan_verify(ctx, kernels, plan, &verdict));
    CHECK(verdict.valid, "%s", verdict.reason);
    const remat_summary *a = remat_plan_summary(whole), *b = remat_plan_summary(plan);
    CHECK(model == 3 || a->cost == b->cost, "ops cost %" PRId64 ", kernels %" PRId64, a->cost,
          b->cost);
    CHECK(b->flags == REMAT_FUSE && strcmp(a->digest, b->digest) == 0, "flags %u", b->flags);
    CHECK(a->traffic_bytes == REMAT_ABSENT || has_mixed_views(g) ||
              b->traffic_bytes <= a->traffic_bytes,
          "ops move %" PRId64 ", kernels %" PRId64, a->traffic_bytes, b->traffic_bytes);
    CHECK(b->ops <= a->ops && b->resident_bytes == a->resident_bytes, "%u ops", b->ops);
    remat_plan_free(plan), remat_plan_free(whole), remat_graph_free(kernels), remat_graph_free(ops);
}

/* ---- costs of ops in kernels ---- */

static int64_t ns_at(int64_t amount, int64_t per_us)
{
    return (amount * 1000 + per_us - 1) / per_us;
}

static void check_fused_costs(remat_ctx *ctx, const remat_graph *g)
{
    remat_graph *roof = NULL, *fused = NULL;
    remat_plan *plan = NULL;
    remat_verdict verdict = REMAT_VERDICT_INIT;
    OK(ctx, remat_graph_prepare(ctx, g, 0, "roofline:h100", &roof));
    OK(ctx, remat_graph_prepare(ctx, g, 0, "fused:h100", &fused));
    uint32_t *kernel = zeros(g->n_ops, sizeof *kernel), n;
    remat_moved *moved = zeros(g->n_ops, sizeof *moved);
    OK(ctx, remat_graph_kernels(ctx, roof, kernel, moved, &n));
    int64_t all = 0, sum = 0, arithmetic = 0;
    for (uint32_t k = 0; k < n; k++) {
        int64_t compute = 0, alone = 0;
        bool fuses = false;
        for (uint32_t op = 0; op < g->n_ops; op++) {
            if (kernel[op] != k) continue;
            const bool view = rm_is_view_op(g, op),
                       empty = g->out_begin[op] == g->out_begin[op + 1];
            fuses |= !view && !empty && rm_is_fusible_class(rm_op_class(ctx, roof, op));
            if (g->flops[op] != REMAT_ABSENT) compute += ns_at(g->flops[op], 67000000);
            alone += roof->cost[op];
        }
        const int64_t memory = ns_at(moved[k].read_bytes + moved[k].written_bytes, 3350000);
        all += !fuses ? alone : memory > compute ? memory : compute;
        if (fuses) arithmetic += compute;
    }
    for (uint32_t op = 0; op < g->n_ops; op++) {
        sum += fused->cost[op];
        const bool fuses = rm_is_fusible_class(rm_op_class(ctx, roof, op)) && roof->cost[op] > 0;
        CHECK(fuses || op + 1 == g->n_ops || fused->cost[op] == roof->cost[op],
              "op %u costs %" PRId64, op, fused->cost[op]);
        CHECK(!fuses || fused->cost[op] > 0, "op %u is free", op);
    }
    CHECK(sum == fused->total_cost && sum >= all && sum <= all + arithmetic + g->n_ops,
          "ops cost %" PRId64 ", kernels %" PRId64, sum, all);
    OK(ctx, remat_plan_make(ctx, fused, "keep-all", REMAT_BUDGET_NONE, &plan));
    OK(ctx, remat_plan_verify(ctx, fused, plan, &verdict));
    CHECK(verdict.valid, "%s", verdict.reason);
    remat_plan_free(plan), remat_graph_free(fused), remat_graph_free(roof);
    free(kernel), free(moved);
}

static void one_case(remat_ctx *ctx, random_schedule *s)
{
    random_source r = {case_seed};
    remat_graph *graph = random_graph(ctx, &r);
    CHECK(graph, "%s", remat_ctx_error(ctx));
    const bool transfers = random_chance(&r, 25);
    random_schedule_make(s, graph, &r, transfers);
    check_schedule(ctx, graph, s, !transfers && graph->n_ops < 40);
    if (!transfers) check_fuse(ctx, graph, s);
    check_kernel_ops(ctx, graph, &r);
    for (uint32_t op = 0; op < graph->n_ops; op++)
        if (random_chance(&r, 30)) graph->flops[op] = (int64_t)random_below(&r, 1 << 20);
    check_fused_costs(ctx, graph);
    remat_graph_free(graph);
}

static int compare_exact(remat_ctx *ctx, const char *source)
{
    remat_graph *graph = NULL, *live = NULL;
    rm_trace x;
    rm_kernels kernels;
    rm_kernel_traffic traffic;
    OK(ctx, remat_graph_load(ctx, source, &graph));
    OK(ctx, remat_graph_prepare(ctx, graph, REMAT_DCE, NULL, &live));
    remat_step *steps = zeros(live->n_ops, sizeof *steps);
    for (uint32_t op = 0; op < live->n_ops; op++) steps[op].index = op;
    OK(ctx, rm_trace_of(ctx, live, steps, live->n_ops, &x));
    OK(ctx, rm_kernels_find(ctx, &x, &kernels));
    OK(ctx, rm_kernel_traffic_of(ctx, &x, &kernels, &traffic));
    const int64_t exact = exact_traffic(ctx, &x, &kernels);
    printf("%s: levels %" PRId64 ", exact search %" PRId64 " (%+.3f %%)\n", remat_graph_name(graph),
           traffic.total, exact, 100 * ((double)traffic.total / (double)exact - 1));
    free(steps);
    remat_graph_free(live), remat_graph_free(graph);
    return 0;
}

int main(int argc, char **argv)
{
    remat_ctx *ctx = remat_ctx_new(NULL);
    if (!ctx || argc < 2) return fprintf(stderr, "usage: %s N SEED | GRAPH\n", argv[0]), 1;
    if (argc == 2) {
        const int status = compare_exact(ctx, argv[1]);
        remat_ctx_free(ctx);
        return status;
    }
    const int64_t cases = cases_asked_for(argc, argv);
    random_schedule s = {0};
    for (int64_t i = 0; i < cases; i++, case_seed++) one_case(ctx, &s);
    random_schedule_free(&s);
    remat_ctx_free(ctx);
    printf("%" PRId64 " cases: %" PRId64 " kernels, %" PRId64
           " steps in kernels of several; section 3.7 gains in %" PRId64 " with %" PRId64
           " copies; our kernels move %.4f times what those of an exact search do\n",
           cases, n_kernels, n_fused_steps, n_gains, n_copies,
           moved_exact ? (double)moved_by_us / (double)moved_exact : 1.0);
    return 0;
}
