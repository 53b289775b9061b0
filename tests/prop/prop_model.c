/* prop_model.c: N random (graph, schedule) pairs: the verifier, the liveness pass, the lowering,
 * the memory of steps and plans made of them against the naive reference, to the byte. (The
 * sequence that searches edit: prop_sequence.c.) Usage: prop_model N SEED. A failure prints the
 * seed of its pair, which reproduces it alone: prop_model 1 SEED. */
#include <string.h>

#include "check.h"
#include "graph/schedule.h"
#include "naive.h"
#include "random_graph.h"
#include "remat.h"

static int64_t
    counts[5]; /* valid, broken and seen so, with transfers; orders that never fit; reused */

static void compare_verdict(remat_ctx *ctx, const remat_graph *graph, const random_schedule *s,
                            int64_t bandwidth, const naive_verdict *n)
{
    remat_verdict v = REMAT_VERDICT_INIT;
    CHECK(remat_verify(ctx, graph, s->steps, s->n_steps, bandwidth, &v) == REMAT_OK, "%s",
          remat_ctx_error(ctx));
    CHECK(v.valid == n->valid, "verify %d, reference %d: %s", v.valid, n->valid, v.reason);
    CHECK(v.first_bad_step == n->first_bad_step, "verify %u, reference %u: %s", v.first_bad_step,
          n->first_bad_step, v.reason);
    counts[n->valid ? 0 : 1]++;
    if (!n->valid) {
        CHECK(*v.reason != '\0', "no reason");
        return;
    }
    CHECK(v.peak_bytes == n->peak_bytes, "verify %" PRId64 ", reference %" PRId64, v.peak_bytes,
          n->peak_bytes);
    CHECK(v.peak_step == n->peak_step, "verify %u, reference %u", v.peak_step, n->peak_step);
    CHECK(v.cost == n->cost, "verify %" PRId64 ", reference %" PRId64, v.cost, n->cost);
    CHECK(v.host_bytes == n->host_bytes, "verify %" PRId64 ", reference %" PRId64, v.host_bytes,
          n->host_bytes);
    const uint32_t op = n->peak_step == REMAT_NONE || s->steps[n->peak_step].kind != REMAT_RUN
                            ? REMAT_NONE
                            : s->steps[n->peak_step].index;
    CHECK(v.peak_op == op, "verify %u, reference %u", v.peak_op, op);
}

static void compare_liveness(remat_ctx *ctx, const remat_graph *graph, const random_schedule *s,
                             int64_t bandwidth, const naive_verdict *n)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    rm_liveness l;
    CHECK(rm_liveness_of(ctx, graph, s->steps, s->n_steps, bandwidth, &l) == REMAT_OK, "%s",
          remat_ctx_error(ctx));
    CHECK(l.peak_bytes == n->peak_bytes && l.peak_step == n->peak_step && l.cost == n->cost,
          "liveness: peak %" PRId64 " at %u, cost %" PRId64, l.peak_bytes, l.peak_step, l.cost);
    for (size_t t = 0; t < s->n_steps; t++)
        CHECK(l.memory[t] == n->memory[t], "step %zu: liveness %" PRId64 ", reference %" PRId64, t,
              l.memory[t], n->memory[t]);
    rm_scratch_release(ctx, mark);
}

/* Operands must lie in registers that are allocated when the step runs and hold the storage of
 * their value. */
static void check_operands(const remat_graph *graph, const remat_operand *x, uint32_t n,
                           const uint32_t *held_root, size_t step)
{
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t root = (uint32_t)remat_graph_value_get(graph, x[k].value, REMAT_VALUE_ROOT);
        const bool resident =
            remat_graph_value_get(graph, root, REMAT_VALUE_PRODUCER) == REMAT_ABSENT;
        CHECK(resident == (x[k].reg == REMAT_NONE), "step %zu: value %u: resident or in a register",
              step, x[k].value);
        CHECK(resident || held_root[x[k].reg] == root, "step %zu: value %u is not in register %u",
              step, x[k].value, x[k].reg);
    }
}

/* The registers that the step makes something in place in hold that from now on. */
static void reuse_registers(const remat_statement *x, size_t compute, uint32_t *held_root)
{
    for (size_t i = compute; i-- > 0 && x[i].step_index == x[compute].step_index;)
        if (x[i].kind == REMAT_REUSE) held_root[x[i].reg] = x[i].value, counts[4]++;
}

/* Statements must allocate each storage instance once, hold it over its reads, and free it once. */
static void compare_program(remat_ctx *ctx, const remat_graph *graph, const naive_graph *ng,
                            const random_schedule *s, const naive_verdict *n)
{
    remat_program *program = NULL;
    CHECK(remat_lower(ctx, graph, s->steps, s->n_steps, &program) == REMAT_OK, "%s",
          remat_ctx_error(ctx));
    size_t n_statements, t = 0;
    const remat_statement *x = remat_program_statements(program, &n_statements);
    int64_t held = ng->resident_bytes;
    uint32_t *held_root = malloc((n_statements + 1) * sizeof *held_root), n_operands;
    for (size_t i = 0; i < n_statements; i++) held_root[i] = REMAT_NONE;
    for (size_t i = 0; i < n_statements; i++) {
        if (x[i].kind == REMAT_ALLOCATE) held += x[i].bytes, held_root[x[i].reg] = x[i].value;
        if (x[i].kind == REMAT_DEALLOCATE) held -= x[i].bytes, held_root[x[i].reg] = REMAT_NONE;
        if (x[i].kind != REMAT_COMPUTE) {
            CHECK(x[i].memory_bytes == held, "statement %zu says %" PRId64 ", is %" PRId64, i,
                  x[i].memory_bytes, held);
            continue;
        }
        CHECK(x[i].step_index == t && x[i].step.kind == s->steps[t].kind &&
                  x[i].step.index == s->steps[t].index,
              "statement %zu is not step %zu", i, t);
        CHECK(x[i].memory_bytes == n->memory[t],
              "step %zu: lowered %" PRId64 ", reference %" PRId64, t, x[i].memory_bytes,
              n->memory[t]);
        CHECK(held + x[i].bytes == n->memory[t],
              "step %zu: allocated %" PRId64 ", reference %" PRId64, t, held + x[i].bytes,
              n->memory[t]);
        const remat_operand *in = remat_program_step_in(program, t, &n_operands);
        check_operands(graph, in, n_operands, held_root, t);
        reuse_registers(x, i, held_root);
        const remat_operand *made = remat_program_step_out(program, t, &n_operands);
        check_operands(graph, made, n_operands, held_root, t);
        t++;
    }
    CHECK(t == s->n_steps, "%zu of %zu steps", t, s->n_steps);
    CHECK(!remat_program_step_in(program, t, &n_operands) && n_operands == 0,
          "a step behind the last");
    const remat_operand *outputs = remat_program_outputs(program, &n_operands);
    check_operands(graph, outputs, n_operands, held_root, t);
    free(held_root);
    remat_program_free(program);
}

/* The schedule as a graph: its keep-all is the schedule. */
static void compare_unrolled(remat_ctx *ctx, const remat_graph *graph, const random_schedule *s,
                             const naive_verdict *n)
{
    remat_graph *unrolled = NULL;
    remat_info info = REMAT_INFO_INIT;
    const remat_status status = remat_unroll(ctx, graph, s->steps, s->n_steps, &unrolled);
    bool transfers = false;
    for (size_t t = 0; t < s->n_steps; t++) transfers |= s->steps[t].kind != REMAT_RUN;
    CHECK(status == (transfers ? REMAT_E_APPLIES : REMAT_OK), "%s", remat_ctx_error(ctx));
    if (transfers) return;
    CHECK(remat_graph_info(ctx, unrolled, &info) == REMAT_OK, "%s", remat_ctx_error(ctx));
    CHECK(info.ops == s->n_steps && info.keep_all_peak_bytes == n->peak_bytes &&
              info.keep_all_cost == n->cost,
          "unrolled: %u ops, peak %" PRId64 ", cost %" PRId64, info.ops, info.keep_all_peak_bytes,
          info.keep_all_cost);
    remat_graph_free(unrolled);
}

static void compare_memory(remat_ctx *ctx, const remat_graph *graph, const random_schedule *s,
                           const naive_verdict *n)
{
    int64_t *bytes = malloc((s->n_steps + 1) * sizeof *bytes), most = n->peak_bytes;
    bytes[s->n_steps] = -7;
    CHECK(remat_steps_memory(ctx, graph, s->steps, s->n_steps, bytes) == REMAT_OK, "%s",
          remat_ctx_error(ctx));
    for (size_t t = 0; t < s->n_steps; t++) {
        CHECK(bytes[t] == n->memory[t], "step %zu: %" PRId64 ", reference %" PRId64, t, bytes[t],
              n->memory[t]);
        if (t == 0 || bytes[t] > most) most = bytes[t];
    }
    CHECK(most == n->peak_bytes && bytes[s->n_steps] == -7,
          "largest %" PRId64 ", peak %" PRId64 ", or written behind the last", most, n->peak_bytes);
    free(bytes);
}

typedef struct text {
    char *bytes;
    size_t n;
} text;

static int take(void *user, const void *bytes, size_t n_bytes)
{
    text *to = user;
    to->bytes = realloc(to->bytes, to->n + n_bytes);
    memcpy(to->bytes + to->n, bytes, n_bytes);
    to->n += n_bytes;
    return 0;
}

static void check_plan(remat_ctx *ctx, const remat_graph *graph, const remat_plan *plan,
                       const naive_verdict *n)
{
    remat_verdict v = REMAT_VERDICT_INIT;
    CHECK(remat_plan_verify_bound(ctx, graph, plan, &v) == REMAT_OK, "%s", remat_ctx_error(ctx));
    CHECK(v.valid && v.peak_bytes == n->peak_bytes && v.cost == n->cost, "%s", v.reason);
}

/* A random schedule as a plan: its numbers are the reference's, it fits where its peak does, and a
 * file brings it back. */
static void compare_plan(remat_ctx *ctx, const remat_graph *graph, const random_schedule *s,
                         random_source *r, int64_t bandwidth, const naive_verdict *n)
{
    const int64_t budgets[] = {REMAT_BUDGET_NONE, n->peak_bytes, n->peak_bytes - 1, 0};
    const int64_t budget = budgets[random_below(r, n->peak_bytes ? 4 : 2)];
    remat_plan *plan = NULL, *again = NULL;
    remat_input *input = NULL;
    text file = {0};
    CHECK(remat_plan_of_steps(ctx, graph, s->steps, s->n_steps, NULL, budget, bandwidth, &plan) ==
              REMAT_OK,
          "%s", remat_ctx_error(ctx));
    const remat_summary *x = remat_plan_summary(plan);
    CHECK(x->peak_bytes == n->peak_bytes && x->peak_step == n->peak_step && x->cost == n->cost &&
              x->offloaded_bytes == n->host_bytes && x->steps == s->n_steps &&
              x->bandwidth == bandwidth && strcmp(x->strategy, "given") == 0,
          "peak %" PRId64 ", cost %" PRId64, x->peak_bytes, x->cost);
    const bool fits = budget < 0 || n->peak_bytes <= budget;
    const bool is_too_small = budget < x->need_bytes || budget < x->least_peak_bound;
    const remat_outcome expected = !fits ? (is_too_small ? REMAT_INFEASIBLE : REMAT_UNKNOWN)
                                   : x->bound_cost == x->cost ? REMAT_OPTIMAL
                                                              : REMAT_FEASIBLE;
    CHECK(x->within_budget == fits && x->outcome == expected && x->need_bytes <= x->peak_bytes &&
              x->bound_cost <= x->cost && (remat_plan_status(plan) == REMAT_OK) == fits,
          "budget %" PRId64 ", peak %" PRId64 ", outcome %d", budget, x->peak_bytes,
          (int)x->outcome);
    check_plan(ctx, graph, plan, n);
    CHECK(remat_plan_write(ctx, plan, REMAT_JSON, take, &file) == REMAT_OK &&
              remat_input_parse(ctx, "plan", file.bytes, file.n, &input) == REMAT_OK &&
              remat_plan_read(ctx, input, &again) == REMAT_OK,
          "%s", remat_ctx_error(ctx));
    check_plan(ctx, graph, again, n);
    CHECK(remat_plan_status(again) == remat_plan_status(plan), "status %d, read %d",
          (int)remat_plan_status(plan), (int)remat_plan_status(again));
    free(file.bytes);
    remat_input_free(input), remat_plan_free(plan), remat_plan_free(again);
}

/* What is no schedule is no plan and has no memory, and the verifier's reason is given. */
static void refuse_plan(remat_ctx *ctx, const remat_graph *graph, const random_schedule *s,
                        int64_t bandwidth)
{
    remat_plan *plan = NULL;
    remat_verdict v = REMAT_VERDICT_INIT;
    int64_t nothing = -7;
    CHECK(remat_verify(ctx, graph, s->steps, s->n_steps, bandwidth, &v) == REMAT_OK && !v.valid,
          "%s", remat_ctx_error(ctx));
    CHECK(remat_plan_of_steps(ctx, graph, s->steps, s->n_steps, "mine", REMAT_BUDGET_NONE,
                              bandwidth, &plan) == REMAT_E_PLAN &&
              !plan && strcmp(remat_ctx_error_reason(ctx), v.reason) == 0,
          "%s", remat_ctx_error(ctx));
    CHECK(remat_steps_memory(ctx, graph, s->steps, s->n_steps, &nothing) == REMAT_E_PLAN &&
              nothing == -7,
          "%s", remat_ctx_error(ctx));
}

/* The values that are named where memory is needed most are what the bytes there are made of. */
static int64_t bytes_named(const remat_graph *graph, const naive_graph *ng, uint32_t need_op,
                           const uint32_t *values, uint32_t n)
{
    int64_t bytes = ng->resident_bytes;
    if (need_op != REMAT_NONE) bytes += ng->ops[need_op].workspace;
    for (uint32_t i = 0; i < n; i++) {
        CHECK(ng->values[values[i]].root == values[i] &&
                  ng->values[values[i]].producer != REMAT_NONE,
              "value %u has no storage of its own, or is resident", values[i]);
        bytes += remat_graph_value_get(graph, values[i], REMAT_VALUE_STORAGE);
    }
    return bytes;
}

static void check_needs(remat_ctx *ctx, const remat_graph *graph, const naive_graph *ng)
{
    uint32_t *values = malloc((ng->n_values + 1) * sizeof *values), n;
    /* Walls are asked for nothing here, and take most of the time. */
    CHECK(remat_ctx_set(ctx, "bound_rules", 31) == REMAT_OK, "%s", remat_ctx_error(ctx));
    for (int64_t offload = 0; offload < 2; offload++) {
        remat_info info = REMAT_INFO_INIT;
        CHECK(remat_ctx_set(ctx, "offload", offload) == REMAT_OK &&
                  remat_graph_info(ctx, graph, &info) == REMAT_OK &&
                  remat_graph_need_values(ctx, graph, values, ng->n_values, &n) == REMAT_OK,
              "%s", remat_ctx_error(ctx));
        CHECK(bytes_named(graph, ng, info.need_op, values, n) == info.need_bytes,
              "need %" PRId64 ", offload %d", info.need_bytes, (int)offload);
        for (int64_t budget = info.need_bytes - 1; budget <= info.need_bytes; budget++) {
            remat_bound bound = REMAT_BOUND_INIT;
            if (budget < 0) continue;
            CHECK(remat_bound_find(ctx, graph, budget, &bound) == REMAT_OK, "%s",
                  remat_ctx_error(ctx));
            CHECK(bound.status == REMAT_E_INFEASIBLE || budget == info.need_bytes,
                  "budget %" PRId64 ", need %" PRId64, budget, info.need_bytes);
            if (bound.status == REMAT_OK) continue;
            const int64_t named =
                bytes_named(graph, ng, bound.need_op, bound.need_values, bound.n_need_values);
            const bool all = bound.n_need_values < RM_LEN(bound.need_values);
            CHECK(all ? named == bound.need_bytes : named <= bound.need_bytes,
                  "bound's need %" PRId64 ", named %" PRId64 ", offload %d", bound.need_bytes,
                  named, (int)offload);
            counts[3] += budget == info.need_bytes;
        }
    }
    CHECK(remat_ctx_set(ctx, "offload", 0) == REMAT_OK, "%s", remat_ctx_error(ctx));
    CHECK(remat_ctx_set(ctx, "bound_rules", 63) == REMAT_OK, "%s", remat_ctx_error(ctx));
    free(values);
}

static void one_pair(remat_ctx *ctx, random_schedule *s)
{
    random_source r = {case_seed};
    remat_graph *graph = random_graph(ctx, &r);
    CHECK(graph, "%s", remat_ctx_error(ctx));
    naive_graph *ng = naive_from(graph);
    const bool transfers = random_chance(&r, 35);
    counts[2] += transfers;
    const int64_t bandwidth = random_chance(&r, 40) ? 0 : 1 + random_below(&r, 2000000000);
    random_schedule_make(s, graph, &r, transfers);
    naive_verdict n = naive_judge(ng, s->steps, s->n_steps, bandwidth);
    CHECK(n.valid, "the generator made an invalid schedule at step %u", n.first_bad_step);
    compare_verdict(ctx, graph, s, bandwidth, &n);
    compare_liveness(ctx, graph, s, bandwidth, &n);
    compare_program(ctx, graph, ng, s, &n);
    compare_unrolled(ctx, graph, s, &n);
    check_needs(ctx, graph, ng);
    compare_memory(ctx, graph, s, &n);
    compare_plan(ctx, graph, s, &r, bandwidth, &n);
    naive_release(&n);

    random_schedule_break(s, graph, &r);
    n = naive_judge(ng, s->steps, s->n_steps, bandwidth);
    compare_verdict(ctx, graph, s, bandwidth, &n);
    if (!n.valid) refuse_plan(ctx, graph, s, bandwidth);
    naive_release(&n);
    naive_free(ng);
    remat_graph_free(graph);
}

int main(int argc, char **argv)
{
    const int64_t pairs = cases_asked_for(argc, argv);
    remat_ctx *ctx = remat_ctx_new(NULL);
    if (!ctx) return 1;
    random_schedule s = {0};
    for (int64_t i = 0; i < pairs; i++, case_seed++) one_pair(ctx, &s);
    random_schedule_free(&s);
    remat_ctx_free(ctx);
    printf("%" PRId64 " pairs agree: %" PRId64 " valid schedules, %" PRId64 " broken ones, %" PRId64
           " with transfers, %" PRId64 " orders that never fit, %" PRId64 " outputs in place\n",
           pairs, counts[0], counts[1], counts[2], counts[3], counts[4]);
    return 0;
}
