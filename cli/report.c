/* report.c: how a plan is told: the JSON object that scripts read, the table that people read, and the one line that
 * explains why a budget cannot be kept. Overhead and gap are the only derived numbers and are computed here only:
 * overhead = cost / keep-all cost - 1 (0 where nothing costs anything), gap = (cost - bound) / bound. */
#include "report.h"

#include <inttypes.h>
#include <string.h>

#define LEN(array) (sizeof(array) / sizeof *(array))

double report_overhead(const remat_summary *m)
{
    if (m->cost < 0 || m->keep_all_cost <= 0) return 0;
    return (double)(m->cost - m->keep_all_cost) / (double)m->keep_all_cost;
}

bool report_gap(const remat_summary *m, double *gap)
{
    if (m->bound_cost < 0 || (m->bound_cost == 0 && m->cost != 0)) return false;
    *gap = m->bound_cost == 0 ? 0 : (double)(m->cost - m->bound_cost) / (double)m->bound_cost;
    return true;
}

amount report_gap_text(const remat_summary *m)
{
    double gap;
    return m->within_budget && report_gap(m, &gap) ? human_percent(gap) : (amount){"-"};
}

const char *report_outcome(const remat_summary *m)
{
    static const char *const names[] = {"unknown", "feasible", "optimal", "infeasible"};
    return (size_t)m->outcome < LEN(names) ? names[m->outcome] : "unknown";
}

static const char *stopped_name(const remat_summary *m)
{
    static const char *const names[] = {"done", "work", "time", "signal"};
    return (size_t)m->stopped < LEN(names) ? names[m->stopped] : "done";
}

int report_make(session *s, const char *strategy, int64_t budget_bytes, report *r)
{
    const remat_plan *plan = NULL;
    const remat_status planned = session_plan(s, strategy, budget_bytes, &plan);
    *r = (report){.status = planned, .plan = plan, .seconds = s->seconds};
    if (r->status == REMAT_E_APPLIES) {
        const char *reason = remat_ctx_error_reason(s->ctx);
        snprintf(r->reason, sizeof r->reason, "%s", *reason ? reason : remat_ctx_error(s->ctx));
        r->summary = (remat_summary){.strategy = strategy,
                                     .graph = remat_graph_name(s->graph),
                                     .cost_unit = remat_graph_cost_unit(s->graph),
                                     .cost_model = remat_graph_cost_model(s->graph),
                                     .digest = "",
                                     .bound_scope = "",
                                     .bound_method = "",
                                     .budget_bytes = budget_bytes,
                                     .keep_all_peak_bytes = s->info.keep_all_peak_bytes,
                                     .resident_bytes = s->info.resident_bytes,
                                     .need_bytes = s->info.need_bytes,
                                     .keep_all_cost = s->info.keep_all_cost,
                                     .ops = s->info.ops,
                                     .peak_bytes = REMAT_ABSENT,
                                     .cost = REMAT_ABSENT,
                                     .bound_cost = REMAT_ABSENT,
                                     .offloaded_bytes = REMAT_ABSENT,
                                     .saved_bytes = REMAT_ABSENT,
                                     .traffic_bytes = REMAT_ABSENT,
                                     .seed = REMAT_ABSENT,
                                     .work = REMAT_ABSENT,
                                     .need_op = REMAT_NONE};
        if (s->info.need_op != REMAT_NONE) r->need_op = remat_graph_op_name(s->graph, s->info.need_op);
        return REMAT_OK;
    }
    if (r->status != REMAT_OK) return session_fail(s, r->status);
    r->summary = *remat_plan_summary(r->plan);
    if (r->summary.need_op != REMAT_NONE) r->need_op = remat_graph_op_name(s->original, r->summary.need_op);
    return REMAT_OK;
}

void report_json(emitter *j, const report *r)
{
    const remat_summary *m = &r->summary;
    double gap;
    emit_open(j, NULL, '{');
    emit_text(j, "strategy", m->strategy);
    emit_text(j, "graph", m->graph);
    emit_int_or_null(j, "budget_bytes", m->budget_bytes);
    emit_int_or_null(j, "peak_bytes", m->peak_bytes);
    emit_bool(j, "within_budget", m->within_budget);
    emit_int_or_null(j, "keep_all_peak_bytes", m->keep_all_peak_bytes);
    emit_int_or_null(j, "resident_bytes", m->resident_bytes);
    emit_int_or_null(j, "need_bytes", m->need_bytes);
    emit_text(j, "need_op", r->need_op);
    emit_int_or_null(j, "cost", m->cost);
    emit_text(j, "cost_unit", m->cost_unit);
    emit_int_or_null(j, "keep_all_cost", m->keep_all_cost);
    if (m->cost < 0 || m->keep_all_cost < 0) emit_null(j, "overhead");
    else emit_real(j, "overhead", report_overhead(m));
    emit_int_or_null(j, "bound_cost", m->bound_cost);
    emit_text(j, "bound_scope", m->bound_cost >= 0 ? m->bound_scope : NULL);
    if (report_gap(m, &gap)) emit_real(j, "gap", gap);
    else emit_null(j, "gap");
    emit_text(j, "outcome", report_outcome(m));
    emit_text(j, "stopped", stopped_name(m));
    emit_int(j, "steps", m->steps);
    emit_int(j, "ops", m->ops);
    emit_int(j, "recomputed_ops", m->recomputed_ops);
    emit_int_or_null(j, "offloaded_bytes", m->offloaded_bytes);
    emit_int_or_null(j, "saved_bytes", m->saved_bytes);
    emit_int_or_null(j, "traffic_bytes", m->traffic_bytes);
    emit_int_or_null(j, "seed", m->seed);
    emit_int_or_null(j, "work", m->work);
    if (r->seconds < 0) emit_null(j, "seconds");
    else emit_real(j, "seconds", r->seconds);
    emit_text(j, "plan", r->path);
    if (r->status != REMAT_OK) { /* more than the contract: why there is no plan */
        emit_open(j, "error", '{');
        emit_int(j, "code", r->status);
        emit_text(j, "file", "");
        emit_text(j, "place", "");
        emit_text(j, "reason", r->reason);
        emit_close(j, '}');
    }
    emit_close(j, '}');
}

static void amount_row(table *t, const char *name, int64_t bytes, const char *note)
{
    if (bytes < 0) return;
    table_cell(t, PLAIN, "%s", name);
    table_cell(t, PLAIN, "%s", "");
    table_cell(t, PLAIN, "%s", human_bytes(bytes).text);
    table_cell(t, DIM, "%s", note);
}

void report_table(out *o, const report *r)
{
    const remat_summary *m = &r->summary;
    table t = {.out = o, .align = "lrrL"};
    amount note = {""};
    table_cell(&t, BOLD, "%s", "");
    table_cell(&t, BOLD, "keep-all");
    table_cell(&t, BOLD, "%s", out_clean(o, m->strategy, 20).text);
    table_cell(&t, BOLD, "%s", "");

    const bool limited = m->budget_bytes >= 0;
    table_cell(&t, PLAIN, "peak");
    table_cell(&t, PLAIN, "%s", m->keep_all_peak_bytes >= 0 ? human_bytes(m->keep_all_peak_bytes).text : "?");
    table_cell(&t,
               !limited           ? PLAIN
               : m->within_budget ? GOOD
                                  : BAD,
               "%s", m->peak_bytes >= 0 ? human_bytes(m->peak_bytes).text : "?");
    if (m->peak_bytes >= 0 && m->keep_all_peak_bytes > 0) note = human_percent(share_of(m->peak_bytes, m->keep_all_peak_bytes));
    table_cell(&t, PLAIN, "%s%s%s%s", note.text, *note.text ? " of keep-all" : "",
               !limited           ? ""
               : m->within_budget ? ", fits "
                                  : ", over the budget of ",
               limited ? human_bytes(m->budget_bytes).text : "");

    table_cell(&t, PLAIN, "cost");
    table_cell(&t, PLAIN, "%s", m->keep_all_cost >= 0 ? human_cost(m->keep_all_cost, m->cost_unit).text : "?");
    table_cell(&t, PLAIN, "%s", m->cost >= 0 ? human_cost(m->cost, m->cost_unit).text : "?");
    table_cell(&t, PLAIN, "+%s, costs: %s", human_percent(report_overhead(m)).text, out_clean(o, m->cost_model, 30).text);

    table_cell(&t, PLAIN, "steps");
    const bool counted = m->ops > 0 || m->steps == 0; /* a plan read from a file may not know its graph's ops */
    if (counted) table_cell(&t, PLAIN, "%" PRIu32, m->ops);
    else table_cell(&t, PLAIN, "?");
    table_cell(&t, PLAIN, "%" PRIu32, m->steps);
    if (counted) table_cell(&t, PLAIN, "%" PRIu32 " ops run more than once", m->recomputed_ops);
    else table_cell(&t, PLAIN, "%s", "");

    table_cell(&t, PLAIN, "outcome");
    table_cell(&t, PLAIN, "%s", "");
    table_cell(&t, PLAIN, "%s", report_outcome(m));
    if (*report_gap_text(m).text != '-') table_cell(&t, PLAIN, "gap at most %s (%s)", report_gap_text(m).text, m->bound_scope);
    else table_cell(&t, PLAIN, "%s", m->within_budget ? "no bound" : "");

    if (m->offloaded_bytes > 0) amount_row(&t, "offloaded", m->offloaded_bytes, "moved to the host");
    amount_row(&t, "saved", m->saved_bytes, "kept from forward to backward");
    amount_row(&t, "traffic", m->traffic_bytes, "read and written, fused");
    table_print(&t);
}

void report_csv_head(out *o)
{
    out_print(o, "strategy,budget_bytes,peak_bytes,within_budget,keep_all_peak_bytes,cost,keep_all_cost,overhead,bound_cost,"
                 "outcome,recomputed_ops,seconds\n");
}

void report_csv(out *o, const report *r)
{
    const remat_summary *m = &r->summary;
    const int64_t numbers[] = {m->budget_bytes, m->peak_bytes};
    out_print(o, "%s", m->strategy);
    for (size_t i = 0; i < LEN(numbers); i++) {
        if (numbers[i] < 0) out_print(o, ",");
        else out_print(o, ",%" PRId64, numbers[i]);
    }
    if (!r->plan) {
        out_print(o, ",false,%" PRId64 ",,%" PRId64 ",,,does not apply,,%.6f\n", m->keep_all_peak_bytes, m->keep_all_cost,
                  r->seconds);
        return;
    }
    out_print(o, ",%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%.9g,", m->within_budget ? "true" : "false", m->keep_all_peak_bytes,
              m->cost, m->keep_all_cost, report_overhead(m));
    if (m->bound_cost >= 0) out_print(o, "%" PRId64, m->bound_cost);
    out_print(o, ",%s,%" PRIu32 ",%.6f\n", report_outcome(m), m->recomputed_ops, r->seconds);
}

int report_status(session *s, const report *r, out *o)
{
    const remat_summary *m = &r->summary;
    const remat_status status = remat_plan_status(r->plan);
    if (status == REMAT_E_INFEASIBLE) {
        enum { SHOWN = 4 };
        uint32_t values[SHOWN], n = 0;
        char names[SHOWN * 100] = "";
        size_t used = m->resident_bytes > 0
                          ? (size_t)snprintf(names, sizeof names, ": resident %s", human_bytes(m->resident_bytes).text)
                          : 0;
        if (remat_graph_need_values(s->ctx, s->graph, values, SHOWN, &n) != REMAT_OK) n = 0;
        if (n > SHOWN) n = SHOWN;
        for (uint32_t i = 0; i < n && used < sizeof names; i++) {
            const int64_t bytes = remat_graph_value_get(s->graph, values[i], REMAT_VALUE_STORAGE);
            if (i > 0 && bytes < m->need_bytes / 100) break; /* the rest is small change */
            used +=
                (size_t)snprintf(names + used, sizeof names - used, "%s %s %s", used ? "," : ":",
                                 out_clean(o, remat_graph_value_name(s->graph, values[i]), 24).text, human_bytes(bytes).text);
        }
        out_message(o, "no plan fits %s: op %s needs %s%s", human_exact(m->budget_bytes).text,
                    r->need_op ? out_clean(o, r->need_op, 40).text : "?", human_exact(m->need_bytes).text, names);
    } else if (status == REMAT_E_NOT_FOUND) {
        out_message(o, "%s found no plan within %s: its least peak is %s; try another --strategy or a larger --budget",
                    m->strategy, human_bytes(m->budget_bytes).text, human_bytes(m->peak_bytes).text);
    }
    return (int)status;
}
