/* report.c: how a plan is told: the JSON object that scripts read, the table that people read, and
 * the one line that explains why a budget cannot be kept.
 *
 * Overhead and gaps are the only derived numbers. They are computed only here: overhead = cost /
 * keep-all cost - 1 (0 where nothing costs anything), gap = (cost - bound) / bound. A gap is never
 * told without the scope of its bound, and "optimal" by itself means in any order. */
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

double report_overhead(const remat_summary *m)
{
    if (m->cost < 0 || m->keep_all_cost <= 0) return 0;
    return (double)(m->cost - m->keep_all_cost) / (double)m->keep_all_cost;
}

static bool gap_to(const remat_summary *m, int64_t bound_cost, double *gap)
{
    if (bound_cost < 0 || (bound_cost == 0 && m->cost != 0)) return false;
    *gap = bound_cost == 0 ? 0 : (double)(m->cost - bound_cost) / (double)bound_cost;
    return true;
}

bool report_gap(const remat_summary *m, double *gap) { return gap_to(m, m->bound_cost, gap); }

amount report_gap_text(const remat_summary *m, int64_t bound_cost)
{
    double gap;
    return m->within_budget && gap_to(m, bound_cost, &gap) ? human_percent(gap) : (amount){"-"};
}

/* As scopes are called in files, in headings, and in sentences. */
static const struct {
    const char *name, *heading, *phrase;
} scopes[] = {{"any-order", "any order", "in any order"},
              {"fixed-order", "its order", "in its order"},
              {"checkmate", "checkmate", "of Checkmate's form"},
              {"chain", "chain", "in the chain model"}};

static size_t scope_of(const remat_summary *m)
{
    size_t i = 0;
    while (i + 1 < LEN(scopes) && strcmp(scopes[i].name, m->bound_scope) != 0) i++;
    return i;
}

const char *report_scope(const remat_summary *m)
{
    return m->within_budget && m->bound_cost >= 0 ? scopes[scope_of(m)].heading : "-";
}

const char *report_word(const remat_summary *m)
{
    if (m->within_budget && m->cost == m->any_order_cost) return "optimal";
    if (m->outcome == REMAT_OPTIMAL && m->kind == REMAT_KIND_GRAPH) return "feasible";
    return report_outcome(m);
}

const char *outcome_name(remat_outcome outcome)
{
    static const char *const names[] = {"unknown", "feasible", "optimal", "infeasible"};
    return (size_t)outcome < LEN(names) ? names[outcome] : "unknown";
}

const char *stopped_name(remat_stopped stopped)
{
    static const char *const names[] = {"done", "work", "time", "signal"};
    return (size_t)stopped < LEN(names) ? names[stopped] : "done";
}

const char *report_outcome(const remat_summary *m) { return outcome_name(m->outcome); }

static report *append(reports *list)
{
    if (list->n == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 16;
        list->items = out_resize(list->items, list->capacity, sizeof *list->items);
    }
    return &list->items[list->n++];
}

/* A row without a plan. */
static int does_not_apply(session *s, const char *strategy, int64_t budget, const char *reason,
                          report *r)
{
    TRY(session_keep_all(s)); /* its summary has what no strategy changes */
    *r = (report){.status = REMAT_E_APPLIES, .summary = *remat_plan_summary(s->keep_all)};
    snprintf(r->reason, sizeof r->reason, "%s", reason);
    remat_summary *m = &r->summary;
    m->strategy = strategy;
    m->budget_bytes = budget;
    int64_t *const unknown[] = {&m->peak_bytes,    &m->cost,         &m->bound_cost,
                                &m->saved_bytes,   &m->cut_capacity, &m->offloaded_bytes,
                                &m->traffic_bytes, &m->seed,         &m->work};
    for (size_t i = 0; i < LEN(unknown); i++) *unknown[i] = REMAT_ABSENT;
    m->steps = 0;
    m->recomputed_ops = 0;
    m->within_budget = false;
    m->outcome = REMAT_UNKNOWN;
    return REMAT_OK;
}

int report_make(session *s, const char *strategy, const int64_t *budgets, uint32_t n, reports *list)
{
    const char *name = strategy ? strategy : DEFAULT_STRATEGY;
    made *plans = out_resize(NULL, (size_t)n + 1, sizeof *plans);
    uint32_t n_made;
    int failed = REMAT_OK;
    remat_status status = session_plans(s, name, budgets, n, plans, &n_made);
    if (status == REMAT_E_APPLIES) {
        char reason[320];
        snprintf(reason, sizeof reason, "%s", session_why_not(s));
        failed = does_not_apply(s, name, budgets[0], reason, append(list));
        status = REMAT_OK;
        n_made = 0;
    }
    if (status != REMAT_OK) failed = session_fail(s, status);
    for (uint32_t i = 0; i < n_made && !failed; i++)
        *append(list) = (report){.summary = *remat_plan_summary(plans[i].plan),
                                 .plan = plans[i].plan,
                                 .seconds = plans[i].seconds};
    free(plans);
    return failed;
}

/* A plan read from a file may not know its graph. */
static bool knows_ops(const remat_summary *m) { return m->ops > 0 || m->steps == 0; }

/* The steps, as a plan file has them. */
static void schedule_json(emitter *j, const remat_plan *plan)
{
    static const char *const moves[] = {[REMAT_OFFLOAD] = "offload", [REMAT_FETCH] = "fetch"};
    static const char *const operations[] = {
        [REMAT_F_ALL] = "Fall", [REMAT_F_CK] = "Fck", [REMAT_F_NONE] = "Fnone", [REMAT_B] = "B"};
    size_t n;
    const remat_step *steps = remat_plan_steps(plan, &n);
    emit_open(j, "schedule", '[');
    for (size_t i = 0; i < n; i++) {
        const uint32_t kind = steps[i].kind;
        if (kind == REMAT_RUN) {
            emit_int(j, NULL, steps[i].index);
        } else if (kind < REMAT_F_ALL) {
            emit_open(j, NULL, '{');
            emit_int(j, moves[kind], steps[i].index);
            emit_close(j, '}');
        } else {
            emit_open(j, NULL, '[');
            emit_text(j, NULL, operations[kind]);
            emit_int(j, NULL, steps[i].index);
            emit_close(j, ']');
        }
    }
    emit_close(j, ']');
}

/* Why there is no plan, or none that fits. */
static void error_json(emitter *j, const report *r)
{
    emit_open(j, "error", '{');
    emit_int(j, "code", r->status);
    emit_text(j, "file", "");
    emit_text(j, "place", "");
    emit_text(j, "reason", r->reason);
    emit_close(j, '}');
}

void report_json(emitter *j, const session *s, const report *r)
{
    const remat_summary *m = &r->summary;
    amount buffer;
    double gap;
    emit_open(j, NULL, '{');
    emit_text(j, "strategy", m->strategy);
    emit_text(j, "graph", m->graph);
    emit_int_or_null(j, "budget_bytes", m->budget_bytes);
    emit_int_or_null(j, "peak_bytes", m->peak_bytes);
    if (r->plan && !m->within_budget && m->peak_bytes < 0) /* a file that does not say */
        emit_null(j, "within_budget");
    else emit_bool(j, "within_budget", m->within_budget);
    emit_int_or_null(j, "keep_all_peak_bytes", m->keep_all_peak_bytes);
    emit_int_or_null(j, "resident_bytes", m->resident_bytes);
    emit_int_or_null(j, "need_bytes", m->need_bytes);
    emit_text(j, "need_op", session_op(s, m->need_op, &buffer));
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
    emit_text(j, "stopped", stopped_name(m->stopped));
    emit_int(j, "steps", m->steps);
    emit_int_or_null(j, "ops", knows_ops(m) ? m->ops : REMAT_ABSENT);
    emit_int(j, "recomputed_ops", m->recomputed_ops);
    emit_int_or_null(j, "offloaded_bytes", m->offloaded_bytes);
    emit_int_or_null(j, "saved_bytes", m->saved_bytes);
    emit_int_or_null(j, "traffic_bytes", m->traffic_bytes);
    emit_int_or_null(j, "seed", m->seed);
    emit_int_or_null(j, "work", m->work);
    if (r->seconds < 0) emit_null(j, "seconds");
    else emit_real(j, "seconds", r->seconds);
    emit_text(j, "plan", r->path);
    emit_int_or_null(j, "cut_capacity", m->cut_capacity); /* from here on: more than the contract */
    emit_int_or_null(j, "any_order_bound_cost", m->any_order_cost);
    if (m->within_budget && gap_to(m, m->any_order_cost, &gap)) emit_real(j, "any_order_gap", gap);
    else emit_null(j, "any_order_gap");
    emit_text(j, "bound_method", m->bound_cost >= 0 ? m->bound_method : NULL);
    emit_int_or_null(j, "least_peak_bound", m->least_peak_bound);
    if (r->with_schedule && r->plan) schedule_json(j, r->plan);
    if (r->status != REMAT_OK) error_json(j, r);
    emit_close(j, '}');
}

static void amount_row(table *t, const char *name, int64_t bytes, const char *note)
{
    if (bytes < 0) return;
    table_cell(t, PLAIN, "%s", name);
    table_cell(t, PLAIN, "%s", "");
    table_cell(t, PLAIN, "%s", out_size(t->out, bytes).text);
    table_cell(t, DIM, "%s", note);
}

static void peak_row(table *t, const remat_summary *m)
{
    const out *o = t->out;
    style fits = PLAIN;
    const char *verdict = "";
    amount share = {""}, budget = {""};
    if (m->budget_bytes >= 0 && m->within_budget) {
        fits = GOOD;
        verdict = "fits ";
    } else if (m->budget_bytes >= 0 && m->peak_bytes >= 0) {
        fits = BAD;
        verdict = "over the budget of ";
    }
    if (fits != PLAIN) budget = out_size(o, m->budget_bytes);
    if (m->peak_bytes >= 0 && m->keep_all_peak_bytes > 0)
        share = human_percent(share_of(m->peak_bytes, m->keep_all_peak_bytes));
    table_cell(t, PLAIN, "peak");
    table_cell(t, PLAIN, "%s",
               m->keep_all_peak_bytes >= 0 ? out_size(o, m->keep_all_peak_bytes).text : "?");
    table_cell(t, fits, "%s", m->peak_bytes >= 0 ? out_size(o, m->peak_bytes).text : "?");
    table_cell(t, PLAIN, "%s%s%s%s%s", share.text, *share.text ? " of keep-all" : "",
               *share.text && *verdict ? ", " : "", verdict, budget.text);
}

static void cost_row(table *t, const remat_summary *m)
{
    const out *o = t->out;
    table_cell(t, PLAIN, "cost");
    table_cell(t, PLAIN, "%s",
               m->keep_all_cost >= 0 ? out_cost(o, m->keep_all_cost, m->cost_unit).text : "?");
    table_cell(t, PLAIN, "%s", m->cost >= 0 ? out_cost(o, m->cost, m->cost_unit).text : "?");
    table_cell(t, PLAIN, "+%s%s%s", human_percent(report_overhead(m)).text,
               *m->cost_model ? ", costs: " : "", out_clean(o, m->cost_model, 30).text);
}

static void steps_row(table *t, const remat_summary *m)
{
    const bool chain = m->kind == REMAT_KIND_CHAIN;
    table_cell(t, PLAIN, "steps");
    if (!knows_ops(m)) table_cell(t, PLAIN, "?");
    else table_cell(t, PLAIN, "%" PRIu32, chain ? 2 * m->ops : m->ops); /* forward and backward */
    table_cell(t, PLAIN, "%" PRIu32, m->steps);
    table_cell(t, PLAIN, "%" PRIu32 " %s run%s more than once", m->recomputed_ops,
               chain ? "stages" : "ops", chain ? " forward" : "");
}

/* How far it is from the best: in the scope of its bound, and in any order. */
static void gap_cell(table *t, const remat_summary *m)
{
    const amount own = report_gap_text(m, m->bound_cost),
                 any = report_gap_text(m, m->any_order_cost);
    const char *phrase = scopes[scope_of(m)].phrase;
    if (*own.text == '-') {
        table_cell(t, PLAIN, "%s", m->within_budget ? "no bound" : "");
        return;
    }
    char in_scope[80];
    if (m->outcome == REMAT_OPTIMAL) snprintf(in_scope, sizeof in_scope, "optimal %s", phrase);
    else snprintf(in_scope, sizeof in_scope, "gap at most %s %s", own.text, phrase);
    if (scope_of(m) == 0 || *any.text == '-') table_cell(t, PLAIN, "%s", in_scope);
    else table_cell(t, PLAIN, "%s, %s in any", in_scope, any.text);
}

static void outcome_row(table *t, const remat_summary *m)
{
    table_cell(t, PLAIN, "outcome");
    table_cell(t, PLAIN, "%s", "");
    table_cell(t, PLAIN, "%s", report_word(m));
    gap_cell(t, m);
}

void report_table(out *o, const report *r)
{
    const remat_summary *m = &r->summary;
    table t = {.out = o, .align = "lrrL"};
    table_cell(&t, BOLD, "%s", "");
    table_cell(&t, BOLD, "keep-all");
    table_cell(&t, BOLD, "%s", out_clean(o, m->strategy, 20).text);
    table_cell(&t, BOLD, "%s", "");
    peak_row(&t, m);
    cost_row(&t, m);
    steps_row(&t, m);
    outcome_row(&t, m);
    if (m->offloaded_bytes > 0)
        amount_row(&t, "offloaded", m->offloaded_bytes, "moved to the host");
    amount_row(&t, "least", m->least_peak_bound, "no plan has a lower peak, in any order");
    amount_row(&t, "saved", m->saved_bytes, "kept from forward to backward");
    amount_row(&t, "crossing", m->cut_capacity, "read, or written and read, for the backward");
    amount_row(&t, "traffic", m->traffic_bytes, "read and written, fused");
    table_print(&t);
}

void report_csv_head(out *o)
{
    out_print(o, "strategy,budget_bytes,peak_bytes,within_budget,keep_all_peak_bytes,cost,keep_all_"
                 "cost,overhead,bound_cost,"
                 "outcome,recomputed_ops,seconds,saved_bytes,cut_capacity,traffic_bytes,"
                 "graph,gap,steps,bound_scope,any_order_bound_cost\n");
}

/* ",12", or "," where the number is not known. */
static void csv_numbers(out *o, const int64_t *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (numbers[i] < 0) out_print(o, ",");
        else out_print(o, ",%" PRId64, numbers[i]);
    }
}

/* A name from a file, in quotes and without controls. */
static void csv_text(out *o, const char *text)
{
    out_print(o, ",\"");
    for (const char *p = text; *p; p++) {
        const unsigned char c = (unsigned char)*p;
        if (c == '"') out_print(o, "\"\"");
        else out_print(o, "%c", c < 0x20 || c == 0x7f ? '?' : *p);
    }
    out_print(o, "\"");
}

void report_csv(out *o, const report *r)
{
    const remat_summary *m = &r->summary;
    double gap;
    const int64_t sizes[] = {m->budget_bytes, m->peak_bytes},
                  moved[] = {m->saved_bytes, m->cut_capacity, m->traffic_bytes};
    out_print(o, "%s", m->strategy);
    csv_numbers(o, sizes, LEN(sizes));
    if (!r->plan) {
        out_print(o, ",false,%" PRId64 ",,%" PRId64 ",,,does not apply,,%.6f,,,",
                  m->keep_all_peak_bytes, m->keep_all_cost, r->seconds);
        csv_text(o, m->graph);
        out_print(o, ",,,,\n");
        return;
    }
    out_print(o, ",%s,%" PRId64, m->within_budget ? "true" : "false", m->keep_all_peak_bytes);
    if (m->cost < 0) out_print(o, ",,%" PRId64 ",,", m->keep_all_cost);
    else
        out_print(o, ",%" PRId64 ",%" PRId64 ",%.9g,", m->cost, m->keep_all_cost,
                  report_overhead(m));
    if (m->bound_cost >= 0) out_print(o, "%" PRId64, m->bound_cost);
    out_print(o, ",%s,%" PRIu32 ",%.6f", report_outcome(m), m->recomputed_ops, r->seconds);
    csv_numbers(o, moved, LEN(moved));
    csv_text(o, m->graph);
    if (m->cost >= 0 && report_gap(m, &gap)) out_print(o, ",%.9g", gap);
    else out_print(o, ",");
    out_print(o, ",%" PRIu32 ",%s", m->steps, m->bound_cost >= 0 ? m->bound_scope : "");
    csv_numbers(o, &m->any_order_cost, 1);
    out_print(o, "\n");
}

void report_need_parts(session *s, int64_t need_bytes, char *text, size_t size)
{
    enum { SHOWN = 4 };
    uint32_t values[SHOWN], n = 0;
    size_t used = 0;
    amount buffer;
    *text = '\0';
    if (s->info.resident_bytes > 0)
        used = (size_t)snprintf(text, size, ": resident %s",
                                out_size(s->out, s->info.resident_bytes).text);
    if (remat_graph_need_values(s->ctx, s->graph, values, SHOWN, &n) != REMAT_OK) n = 0;
    for (uint32_t i = 0; i < n && i < SHOWN && used < size; i++) {
        const int64_t bytes = remat_graph_value_get(s->graph, values[i], REMAT_VALUE_STORAGE);
        const bool same_numbers =
            remat_graph_n_values(s->graph) == remat_graph_n_values(s->original);
        const char *name = same_numbers ? session_value(s, values[i], &buffer)
                                        : remat_graph_value_name(s->graph, values[i]);
        if (i > 0 && bytes < need_bytes / 100) break; /* the rest is small change */
        used += (size_t)snprintf(text + used, size - used, "%s %s %s", used ? "," : ":",
                                 *name ? out_clean(s->out, name, 24).text : "a value",
                                 out_size(s->out, bytes).text);
    }
}

/* Does this strategy round sizes to slots? To how many? */
static bool is_slotted(session *s, const char *strategy, int64_t *slots)
{
    static const char *const names[] = {"rotor", "rotor-float", "revolve"};
    for (size_t i = 0; i < LEN(names); i++)
        if (strcmp(strategy, names[i]) == 0)
            return remat_ctx_get(s->ctx, "slots", slots) == REMAT_OK && *slots > 0;
    return false;
}

static const remat_plan *least_plan(session *s, const char *strategy)
{
    const int64_t budget = REMAT_BUDGET_MIN;
    made least = {0};
    uint32_t n_made;
    return session_plans(s, strategy, &budget, 1, &least, &n_made) == REMAT_OK ? least.plan : NULL;
}

/* The graph as it is, but with random ops replayed. NULL: it cannot be made. */
static remat_graph *replayed(session *s)
{
    remat_graph *graph = NULL;
    const remat_status status =
        remat_graph_prepare(s->ctx, s->original, s->prepared | REMAT_REPLAY_RANDOM,
                            remat_graph_cost_model(s->graph), &graph);
    return status == REMAT_OK ? graph : NULL;
}

uint32_t report_random_pins(session *s)
{
    remat_info info = REMAT_INFO_INIT;
    remat_graph *graph = replayed(s);
    const bool known = graph && remat_graph_info(s->ctx, graph, &info) == REMAT_OK;
    remat_graph_free(graph);
    return known && info.pinned < s->info.pinned ? s->info.pinned - info.pinned : 0;
}

/* Would a plan fit if random ops were replayed? It is tried with the same strategy and limits. */
static bool fits_replayed(session *s, const remat_summary *m)
{
    remat_plan *plan = NULL;
    remat_graph *graph = replayed(s);
    session_catch(s);
    const bool fits =
        graph && remat_plan_make(s->ctx, graph, m->strategy, m->budget_bytes, &plan) == REMAT_OK &&
        remat_plan_status(plan) == REMAT_OK;
    session_release(s);
    remat_plan_free(plan);
    remat_graph_free(graph);
    return fits;
}

/* Where people get stuck: dropout alone may be why nothing fits. */
static void hint_at_replay(session *s, const remat_summary *m, out *o)
{
    const bool is_vain = s->chain || m->budget_bytes < 0 || session_interrupted();
    const uint32_t n = is_vain ? 0 : report_random_pins(s);
    if (n > 0 && fits_replayed(s, m))
        out_message(o,
                    "%" PRIu32 " random op%s pinned, so that no mask is drawn twice: with "
                    "--replay-random a plan of %s fits this budget",
                    n, n == 1 ? " is" : "s are", m->strategy);
}

/* What is needed may not be enough: so where more was found to be, that is said too. */
static void explain_need(session *s, const remat_summary *m, const out *o, char *text, size_t size)
{
    char parts[400] = "", least[120] = "";
    if (!s->chain) report_need_parts(s, m->need_bytes, parts, sizeof parts);
    if (m->peak_bytes > m->need_bytes)
        snprintf(least, sizeof least, "; the least peak found is %s",
                 out_exact(o, m->peak_bytes).text);
    snprintf(text, size, "no plan fits %s: %s needs %s%s%s", out_exact(o, m->budget_bytes).text,
             session_op_phrase(s, m->need_op).text, out_exact(o, m->need_bytes).text, parts, least);
}

/* Why the exit code is 10 or 11. */
static void explain(session *s, const report *r, const out *o, char *text, size_t size)
{
    const remat_summary *m = &r->summary;
    const remat_status status = remat_plan_status(r->plan);
    const amount budget = out_exact(o, m->budget_bytes), peak = out_exact(o, m->peak_bytes);
    amount buffer;
    int64_t slots;
    if (status == REMAT_E_INFEASIBLE && m->budget_bytes < m->need_bytes) {
        explain_need(s, m, o, text, size);
    } else if (status == REMAT_E_INFEASIBLE && m->budget_bytes < m->least_peak_bound) {
        snprintf(text, size, "no plan fits %s: each needs %s; the least peak found is %s",
                 budget.text, out_exact(o, m->least_peak_bound).text, peak.text);
    } else if (status == REMAT_E_INFEASIBLE && !s->chain) {
        snprintf(
            text, size,
            "no plan fits %s: a search through all orders proved it; the least peak found is %s",
            budget.text, peak.text);
    } else if (status == REMAT_E_INFEASIBLE) {
        /* On chains a strategy's model may need more than any schedule does. */
        const remat_plan *least = least_plan(s, m->strategy);
        const remat_summary *x = remat_plan_summary(least ? least : r->plan);
        size_t n_steps;
        const remat_step *at = &remat_plan_steps(least ? least : r->plan, &n_steps)[x->peak_step];
        snprintf(text, size, "no plan of %s fits %s: its least peak is %s, at %s", m->strategy,
                 budget.text, out_exact(o, x->peak_bytes).text,
                 out_clean(o, session_op(s, at->index, &buffer), 40).text);
    } else if (status == REMAT_E_NOT_FOUND && s->chain && is_slotted(s, m->strategy, &slots)) {
        snprintf(text, size,
                 "%s found no plan within %s in %" PRId64
                 " slots, which round sizes: try more --slots, or --slots 0",
                 m->strategy, budget.text, slots);
    } else if (status == REMAT_E_NOT_FOUND) {
        snprintf(text, size,
                 "%s found no plan within %s: its least peak is %s; try another --strategy or a "
                 "larger --budget",
                 m->strategy, budget.text, peak.text);
    }
}

void report_explain(session *s, report *r, const out *o)
{
    const remat_status status = r->plan ? remat_plan_status(r->plan) : REMAT_OK;
    if (status == REMAT_OK || r->status != REMAT_OK) return;
    r->status = status;
    explain(s, r, o, r->reason, sizeof r->reason);
}

int report_status(session *s, report *r, out *o)
{
    report_explain(s, r, o);
    if (r->status == REMAT_OK) return REMAT_OK;
    out_message(o, "%s", r->reason);
    hint_at_replay(s, &r->summary, o);
    return (int)r->status;
}
