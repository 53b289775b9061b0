/* cmd_verify.c: `remat verify`: does this plan belong to this graph, do its steps run, are its
 * numbers true?
 *
 * With --bound its bound must be proved as well. The graph is prepared with the options that the
 * plan recorded, unless flags say otherwise. With --budget a plan whose peak is above it is invalid
 * too. The bad step is then the first above it. Exit code 5 if invalid. */
#include <inttypes.h>
#include <string.h>

#include "chart.h"
#include "commands.h"

/* What `verify --bound` has checked of a bound, by its method. */
typedef struct kind_of_bound {
    const char *method;
    const char *checked; /* NULL: nothing was */
    const char *meaning, *proof;
} kind_of_bound;

static const kind_of_bound *bound_kind(const remat_summary *m)
{
    static const kind_of_bound kinds[] = {
        {"flow", "certificate", "no plan in this order of first runs costs less",
         "by the certificate in the plan"},
        {"walls", "certificate", "no plan in this order of first runs costs less",
         "by the certificate in the plan"},
        {"first-runs", "first-runs", "no plan in any order costs less",
         "every op runs at least once"},
        {"search", NULL, "no plan in this order of first runs costs less",
         "a search found it, which leaves nothing to check"},
        {"", NULL, "", "the plan does not say where it comes from"}};
    size_t i = 0;
    while (*kinds[i].method && strcmp(kinds[i].method, m->bound_method) != 0) i++;
    return &kinds[i];
}

/* bound: the plan's own words, if they were checked; else NULL. arena: of the placement that was
 * checked, or REMAT_ABSENT. */
static void verdict_json(session *s, const remat_verdict *v, const char *peak_op,
                         const remat_summary *bound, int64_t arena)
{
    emitter j = {.out = s->out};
    emit_open(&j, NULL, '{');
    emit_bool(&j, "valid", v->valid);
    emit_int_or_null(&j, "peak_bytes", v->peak_bytes);
    emit_int_or_null(&j, "peak_step", v->peak_step == REMAT_NONE ? REMAT_ABSENT : v->peak_step);
    emit_text(&j, "peak_op", peak_op);
    emit_int_or_null(&j, "cost", v->cost);
    emit_int_or_null(&j, "first_bad_step",
                     v->first_bad_step == REMAT_NONE ? REMAT_ABSENT : v->first_bad_step);
    emit_text(&j, "reason", *v->reason ? v->reason : NULL);
    if (bound && v->valid) {
        emit_int_or_null(&j, "bound_cost", bound->bound_cost);
        emit_text(&j, "bound_scope", bound->bound_scope);
        emit_text(&j, "bound_checked", bound_kind(bound)->checked);
    }
    if (arena != REMAT_ABSENT && v->valid) emit_int(&j, "arena_bytes", arena);
    emit_close(&j, '}');
}

static void bound_rows(session *s, table *t, const remat_summary *m)
{
    const kind_of_bound *kind = bound_kind(m);
    table_cell(t, PLAIN, "bound");
    table_cell(t, PLAIN, "%s", out_cost(s->out, m->bound_cost, session_cost_unit(s)).text);
    table_cell(t, PLAIN, "%s%s%s", out_number(s->out, m->bound_cost, session_cost_unit(s)).text,
               *kind->meaning ? ", " : "", kind->meaning);
    table_cell(t, PLAIN, "proof");
    table_cell(t, kind->checked ? GOOD : BAD, "%s", kind->checked ? "checked" : "none");
    table_cell(t, PLAIN, "%s", kind->proof);
}

static void verdict_table(session *s, const remat_verdict *v, const char *peak_op,
                          const remat_summary *bound, int64_t arena)
{
    table t = {.out = s->out, .align = "llL"};
    table_cell(&t, PLAIN, "valid");
    table_cell(&t, v->valid ? GOOD : BAD, "%s", v->valid ? "yes" : "no");
    table_cell(&t, PLAIN, "%s", "");
    if (v->valid) {
        const char *size_unit = s->out->size_unit ? s->out->size_unit : "bytes",
                   *cost_unit = session_cost_unit(s);
        table_cell(&t, PLAIN, "peak");
        table_cell(&t, PLAIN, "%s", out_size(s->out, v->peak_bytes).text);
        if (peak_op)
            table_cell(&t, PLAIN, "%s, at step %" PRIu32 ": %s",
                       out_number(s->out, v->peak_bytes, size_unit).text, v->peak_step,
                       out_clean(s->out, peak_op, 40).text);
        else table_cell(&t, PLAIN, "%s", out_number(s->out, v->peak_bytes, size_unit).text);
        table_cell(&t, PLAIN, "cost");
        table_cell(&t, PLAIN, "%s", out_cost(s->out, v->cost, cost_unit).text);
        table_cell(&t, PLAIN, "%s, costs: %s", out_number(s->out, v->cost, cost_unit).text,
                   out_clean(s->out, session_cost_model(s), 30).text);
        if (bound) bound_rows(s, &t, bound);
        if (arena != REMAT_ABSENT) {
            table_cell(&t, PLAIN, "arena");
            table_cell(&t, PLAIN, "%s", out_size(s->out, arena).text);
            table_cell(&t, PLAIN, "%s, no two storages overlap",
                       out_number(s->out, arena, size_unit).text);
        }
    }
    table_print(&t);
}

/* The plan is above the budget: says where first. */
static int refuse_peak(session *s, const remat_plan *plan, int64_t budget, remat_verdict *v)
{
    size_t step = 0;
    timeline t;
    TRY(timeline_make(s, plan, &t));
    while (step < t.n_steps && t.bytes[step] <= budget) step++;
    v->valid = false;
    v->first_bad_step = step < t.n_steps ? (uint32_t)step : REMAT_NONE;
    snprintf(v->reason, sizeof v->reason, "step %zu: %s in use, above the budget of %s", step,
             out_exact(s->out, step < t.n_steps ? t.bytes[step] : v->peak_bytes).text,
             out_exact(s->out, budget).text);
    timeline_free(&t);
    return REMAT_OK;
}

static remat_status verify(session *s, const remat_plan *plan, remat_verdict *v)
{
    if (s->chain) return remat_chain_plan_verify(s->ctx, s->chain, plan, v);
    if (s->args->text[FLAG_PROVED]) return remat_plan_verify_bound(s->ctx, s->graph, plan, v);
    return remat_plan_verify(s->ctx, s->graph, plan, v);
}

int cmd_verify(session *s)
{
    const args *a = s->args;
    const remat_plan *plan;
    remat_verdict v = REMAT_VERDICT_INIT;
    int64_t budget;
    if (strcmp(a->operands[0], "-") == 0 && strcmp(a->operands[1], "-") == 0)
        return out_fail(s->out, REMAT_E_USAGE, "verify", "",
                        "only one of GRAPH and PLAN can be standard input");
    if (a->text[FLAG_LIMIT] && strcmp(a->text[FLAG_LIMIT], "min") == 0)
        return out_fail(s->out, REMAT_E_USAGE, "verify", "--budget",
                        "a plan cannot be checked against 'min'");
    TRY(session_read_plan(s, a->operands[1], &plan));
    TRY(session_read(s, a->operands[0], plan, a->operands[1]));
    TRY(session_budget(s, "--budget", a->text[FLAG_LIMIT], &budget));
    session_busy(s);
    const remat_status status = verify(s, plan, &v);
    session_idle(s);
    CHECK(s, status);
    if (a->text[FLAG_PROVED] && s->chain)
        return out_fail(s->out, REMAT_E_APPLIES, "verify", "--bound",
                        "bounds of chains have no certificate");
    if (v.valid && budget >= 0 && v.peak_bytes > budget) TRY(refuse_peak(s, plan, budget, &v));

    amount buffer;
    const char *peak_op = session_op(s, v.peak_op, &buffer);
    const remat_summary *bound = a->text[FLAG_PROVED] ? remat_plan_summary(plan) : NULL;
    const int64_t arena = remat_plan_arena_bytes(plan);
    if (s->out->json) verdict_json(s, &v, peak_op, bound, arena);
    else verdict_table(s, &v, peak_op, bound, arena);
    if (v.valid) return REMAT_OK;
    /* The reason names the step. */
    if (!s->out->json) out_message(s->out, "%s: %s", a->operands[1], v.reason);
    return REMAT_E_PLAN;
}
