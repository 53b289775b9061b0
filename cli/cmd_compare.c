/* cmd_compare.c: `remat compare` and `remat curve`: many plans of one graph or chain, side by side.
 *
 * compare runs strategies at one budget. One that does not apply gets a row with its reason.
 *
 * curve runs one strategy over rising budgets. A plan of a smaller budget is valid at a larger one.
 * So curve carries the cheapest forward where a planner does worse with more room. The bound, the
 * work and the stop stay those of the point. Invariant: among the points that fit, cost never rises
 * with the budget.
 *
 * Ctrl-C ends both after the current plan, prints what there is, and is exit code 130. */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "commands.h"
#include "heeds.h"
#include "report.h"

enum { DEFAULT_POINTS = 12, MOST_POINTS = 1000, PLOT_ROWS = 10 };

/* Where nothing fits, the plan that comes nearest costs nothing that compares with the others. */
static report row_of(const report *r)
{
    report row = *r;
    if (row.summary.outcome == REMAT_INFEASIBLE) row.summary.cost = REMAT_ABSENT;
    return row;
}

/* --json or --csv. */
static void print_machine(session *s, const reports *r)
{
    emitter j = {.out = s->out};
    if (s->out->json) emit_open(&j, NULL, '[');
    else report_csv_head(s->out);
    for (size_t i = 0; i < r->n; i++) {
        const report row = row_of(&r->items[i]);
        if (s->out->json) report_json(&j, s, &row);
        else report_csv(s->out, &row);
    }
    if (s->out->json) emit_close(&j, ']');
}

static bool for_machines(const session *s) { return s->out->json || s->args->text[FLAG_CSV]; }

static void heads(table *t, const char *first, const char *second)
{
    const char *const names[] = {first, second,    "overhead", "outcome",
                                 "gap", "own gap", "in",       "seconds"};
    for (size_t i = 0; i < LEN(names); i++) table_cell(t, BOLD, "%s", names[i]);
}

/* The columns that both tables end with. What does not fit has no overhead to compare. `gap` is to
 * any_order_cost, which no plan undercuts; `own gap` to the row's own bound, `in` its scope. */
static void judged(table *t, const report *r, int64_t any_order_cost)
{
    const remat_summary *m = &r->summary;
    if (m->within_budget) table_cell(t, PLAIN, "+%s", human_percent(report_overhead(m)).text);
    else table_cell(t, DIM, "-");
    table_cell(t, m->within_budget ? GOOD : BAD, "%s", report_word(m, any_order_cost));
    table_cell(t, PLAIN, "%s", report_gap_text(m, any_order_cost).text);
    table_cell(t, PLAIN, "%s", report_gap_text(m, m->bound_cost).text);
    table_cell(t, PLAIN, "%s", report_scope(m));
    table_cell(t, PLAIN, "%.2f", r->seconds);
}

static int interrupted(session *s)
{
    if (!session_interrupted()) return REMAT_OK;
    out_message(s->out, "interrupted: this is not all");
    return EXIT_INTERRUPTED;
}

/* ---- compare ---- */

/* The rows are about one budget, so the best of their bounds for any order holds for all. */
static int64_t best_any_order(const reports *r)
{
    int64_t best = REMAT_ABSENT;
    for (size_t i = 0; i < r->n; i++) {
        const remat_summary *m = &r->items[i].summary;
        if (r->items[i].plan && m->within_budget && m->any_order_cost > best)
            best = m->any_order_cost;
    }
    return best;
}

static void compare_table(session *s, const reports *r, bool same_budget)
{
    out *o = s->out;
    table t = {.out = o, .align = "lrrlrrlr"};
    const int64_t best = best_any_order(r);
    heads(&t, "strategy", "peak");
    for (size_t i = 0; i < r->n; i++) {
        const remat_summary *m = &r->items[i].summary;
        if (!r->items[i].plan) continue;
        table_cell(&t, PLAIN, "%s", m->strategy);
        table_cell(&t, PLAIN, "%s", out_size(o, m->peak_bytes).text);
        judged(&t, &r->items[i], same_budget ? best : m->any_order_cost);
    }
    table_print(&t);
}

static void size_cell(table *t, int64_t bytes)
{
    if (bytes < 0) table_cell(t, DIM, "-");
    else table_cell(t, PLAIN, "%s", out_size(t->out, bytes).text);
}

/* --saved: what crosses from the forward to the backward pass. */
static void saved_table(session *s, const reports *r)
{
    static const char *const names[] = {"strategy", "saved",     "crossing", "traffic",
                                        "peak",     "run again", "overhead", "seconds"};
    table t = {.out = s->out, .align = "lrrrrrrr"};
    for (size_t i = 0; i < LEN(names); i++) table_cell(&t, BOLD, "%s", names[i]);
    for (size_t i = 0; i < r->n; i++) {
        const remat_summary *m = &r->items[i].summary;
        if (!r->items[i].plan) continue;
        table_cell(&t, PLAIN, "%s", m->strategy);
        size_cell(&t, m->saved_bytes);
        size_cell(&t, m->cut_capacity);
        size_cell(&t, m->traffic_bytes);
        size_cell(&t, m->peak_bytes);
        table_cell(&t, PLAIN, "%" PRIu32, m->recomputed_ops);
        table_cell(&t, PLAIN, "+%s", human_percent(report_overhead(m)).text);
        table_cell(&t, PLAIN, "%.4f", r->items[i].seconds);
    }
    table_print(&t);
}

static void refused(session *s, const reports *r)
{
    out *o = s->out;
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) n += !r->items[i].plan;
    if (n) out_print(o, "\n%sdo not apply%s\n", out_style(o, BOLD), out_style(o, PLAIN));
    for (size_t i = 0; i < r->n; i++)
        if (!r->items[i].plan)
            out_print(o, "  %-12s  %s\n", r->items[i].summary.strategy,
                      out_clean(o, r->items[i].reason, o->width - 16).text);
}

/* One that fits is enough; else the proof, else the least peak. */
static int compare_status(session *s, const reports *r)
{
    report *why = NULL;
    bool proof = false;
    for (size_t i = 0; i < r->n; i++) {
        report *one = &r->items[i];
        if (!one->plan) continue;
        const remat_status status = remat_plan_status(one->plan);
        if (status == REMAT_OK) return REMAT_OK;
        if (proof) continue;
        proof = status == REMAT_E_INFEASIBLE;
        if (!why || proof || one->summary.peak_bytes < why->summary.peak_bytes) why = one;
    }
    if (why) return report_status(s, why, s->out);
    out_message(s->out, "none of the strategies applies%s%s", r->n == 1 ? ": " : "",
                r->n == 1 ? r->items[0].reason : "");
    return REMAT_E_APPLIES;
}

/* The strategies of "a,b,c". Commas of the list become zeros. */
static int compare_list(session *s, char *list, int64_t budget, reports *r)
{
    s->bar.parts = 1;
    for (const char *p = list; *p; p++) s->bar.parts += *p == ',';
    for (char *name = list, *next; name && !session_interrupted(); name = next, s->bar.part++) {
        next = strchr(name, ',');
        if (next) *next++ = '\0';
        TRY(report_make(s, name, &budget, 1, r));
    }
    return REMAT_OK;
}

static int compare_all(session *s, int64_t budget, reports *r)
{
    const remat_entry *entry;
    s->bar.parts = 0;
    while (remat_strategy_at(s->bar.parts)) s->bar.parts++;
    for (; !session_interrupted() && (entry = remat_strategy_at(s->bar.part)); s->bar.part++)
        TRY(report_make(s, entry->name, &budget, 1, r));
    return REMAT_OK;
}

static void compare_show(session *s, int64_t budget, bool saved, const reports *r)
{
    char after[160];
    amount shown = {": none"};
    if (budget == REMAT_BUDGET_MIN) shown = (amount){": the least of each"};
    if (budget >= 0) shown = out_exact(s->out, budget);
    snprintf(after, sizeof after, "  keep-all peak %s  budget%s%s",
             out_size(s->out, s->info.keep_all_peak_bytes).text, budget >= 0 ? " " : "",
             shown.text);
    out_title(s->out, session_name(s), after);
    out_print(s->out, "\n");
    if (saved) saved_table(s, r);
    else compare_table(s, r, budget >= 0);
    refused(s, r);
}

int cmd_compare(session *s)
{
    const args *a = s->args;
    const char *list = a->text[FLAG_STRATEGY];
    const bool saved = a->text[FLAG_SAVED] != NULL;
    int64_t budget;
    reports r = {0};
    if (saved && !list) list = "keep-all,save-inputs,save-layers,mincut";
    if (!a->text[FLAG_BUDGET] && !saved)
        return out_fail(s->out, REMAT_E_USAGE, "compare", "--budget",
                        "is needed, for example --budget 50%%");
    if (list) TRY(session_strategies(s, list));
    TRY(heeds_check(s, list));
    TRY(session_read(s, a->operands[0], NULL, NULL));
    TRY(session_budget(s, "--budget", a->text[FLAG_BUDGET], &budget));

    char *names = list ? strcpy(out_resize(NULL, strlen(list) + 1, 1), list) : NULL;
    session_catch(s);
    int status = names ? compare_list(s, names, budget, &r) : compare_all(s, budget, &r);
    session_release(s);
    if (!status && for_machines(s)) print_machine(s, &r);
    else if (!status) compare_show(s, budget, saved, &r);
    if (!status) status = interrupted(s);
    if (!status) status = compare_status(s, &r);
    free(names);
    free(r.items);
    return status;
}

/* ---- curve ---- */

/* `from` at 0, `to` at n. Exact, without overflow. */
static int64_t between(int64_t from, int64_t to, int64_t i, int64_t n)
{
    assert(n > 0 && i >= 0 && i <= n && from <= to);
    const int64_t span = to - from;
    return from + span / n * i + span % n * i / n;
}

static void curve_plot(session *s, const reports *r)
{
    out *o = s->out;
    const int columns = chart_columns(o);
    int64_t *values = out_resize(NULL, (size_t)columns, sizeof *values), top = 0;
    const report *best = NULL, *next = r->items;
    const int64_t from = r->items[0].summary.budget_bytes,
                  to = r->items[r->n - 1].summary.budget_bytes;
    /* The best plan at each budget: a staircase, whose last step is at the right edge. */
    for (int x = 0; x < columns; x++) {
        const int64_t budget = between(from, to, x, columns - 1);
        for (; next < r->items + r->n && next->summary.budget_bytes <= budget; next++)
            if (next->summary.within_budget) best = next;
        values[x] = best ? (int64_t)(report_overhead(&best->summary) * 10000 + 0.5) : 0;
        if (values[x] > top) top = values[x];
    }
    if (r->n > 1 && top > 0) { /* else there is nothing to see */
        const chart c = {.title = "overhead",
                         .note = " against budget",
                         .values = values,
                         .n_values = (size_t)columns,
                         .span = (size_t)columns,
                         .top = top,
                         .limit = -1,
                         .rows = PLOT_ROWS,
                         .show = out_percent};
        chart_draw(o, &c);
        const amount left = out_size(o, from), right = out_size(o, to);
        out_print(o, "%*s%s%*s\n", 11, "", left.text, o->width - 12 - (int)strlen(left.text),
                  right.text);
    }
    free(values);
}

static void curve_table(session *s, const reports *r)
{
    table t = {.out = s->out, .align = "rrrlrrlr"};
    heads(&t, "budget", "of keep-all");
    for (size_t i = 0; i < r->n; i++) {
        const remat_summary *m = &r->items[i].summary;
        table_cell(&t, PLAIN, "%s", out_size(s->out, m->budget_bytes).text);
        table_cell(&t, PLAIN, "%s",
                   human_percent(share_of(m->budget_bytes, m->keep_all_peak_bytes)).text);
        judged(&t, &r->items[i], m->any_order_cost);
    }
    table_print(&t);
}

/* The plan of `best` in place of the point's own. A bound for one order says nothing of another. */
static void carry(report *point, const report *best)
{
    const report own = *point;
    *point = *best;
    point->seconds = own.seconds;
    remat_summary *m = &point->summary;
    m->budget_bytes = own.summary.budget_bytes;
    m->bound_cost = own.summary.bound_cost;
    m->bound_scope = own.summary.bound_scope;
    m->bound_method = own.summary.bound_method;
    m->any_order_cost = own.summary.any_order_cost;
    m->any_order_method = own.summary.any_order_method;
    if (strcmp(m->bound_scope, "fixed-order") == 0) {
        m->bound_cost = m->any_order_cost;
        m->bound_scope = "any-order";
        m->bound_method = m->any_order_method;
    }
    m->work = own.summary.work;
    m->stopped = own.summary.stopped;
    m->within_budget = true;
    m->outcome = m->cost == m->bound_cost ? REMAT_OPTIMAL : REMAT_FEASIBLE;
}

static void carry_all(const report *least, reports *r)
{
    const report *best = least;
    for (report *point = r->items; point < r->items + r->n; point++) {
        const bool fits = best && best->summary.peak_bytes <= point->summary.budget_bytes;
        if (fits && (!point->summary.within_budget || point->summary.cost > best->summary.cost))
            carry(point, best);
        if (point->summary.within_budget) best = point;
    }
}

static int curve_points(session *s, const char *strategy, int64_t from, int64_t to, uint32_t n,
                        reports *r)
{
    int64_t *budgets = out_resize(NULL, n, sizeof *budgets);
    uint32_t n_budgets = 0;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t budget = between(from, to, i, n - 1);
        const bool again = n_budgets > 0 && budget == budgets[n_budgets - 1];
        if (!again) budgets[n_budgets++] = budget; /* there may be more points than bytes */
    }
    const int status = report_make(s, strategy, budgets, n_budgets, r);
    free(budgets);
    return status;
}

/* An error where the strategy does not apply. */
static int refuse(session *s, const reports *r)
{
    if (r->n == 0 || r->items[0].plan) return REMAT_OK;
    return out_fail(s->out, r->items[0].status, "", "", "strategy '%s' does not apply: %s",
                    r->items[0].summary.strategy, r->items[0].reason);
}

/* Finds the least budget if `from` asks for it, then plans. */
static int curve_all(session *s, const char *strategy, int64_t from, int64_t to, uint32_t n,
                     reports *least, reports *r)
{
    if (from == REMAT_BUDGET_MIN) {
        TRY(report_make(s, strategy, &from, 1, least));
        TRY(refuse(s, least));
        if (least->n == 0) return REMAT_OK;
        const int64_t least_peak = least->items[0].summary.peak_bytes;
        from = least_peak < to ? least_peak : to;
    }
    if (from > to)
        return out_fail(s->out, REMAT_E_USAGE, "curve", "--from",
                        "the first budget, %s, is above the last, %s", out_exact(s->out, from).text,
                        out_exact(s->out, to).text);
    if (session_interrupted()) { /* what there is */
        *r = *least;
        *least = (reports){0};
        return REMAT_OK;
    }
    TRY(curve_points(s, strategy, from, to, n, r));
    TRY(refuse(s, r));
    carry_all(least->n ? &least->items[0] : NULL, r);
    return REMAT_OK;
}

static void curve_show(session *s, const reports *r)
{
    char after[160];
    snprintf(after, sizeof after, "  %s  keep-all peak %s", r->items[0].summary.strategy,
             out_size(s->out, s->info.keep_all_peak_bytes).text);
    out_title(s->out, session_name(s), after);
    out_print(s->out, "\n");
    curve_table(s, r);
    curve_plot(s, r);
}

int cmd_curve(session *s)
{
    const args *a = s->args;
    const char *strategy = a->text[FLAG_STRATEGY];
    const int64_t n_points = a->text[FLAG_POINTS] ? a->number[FLAG_POINTS] : DEFAULT_POINTS;
    int64_t from = REMAT_BUDGET_MIN, to;
    if (n_points < 2 || n_points > MOST_POINTS)
        return out_fail(s->out, REMAT_E_USAGE, "curve", "--points",
                        "%" PRId64 " is not between 2 and %d", n_points, (int)MOST_POINTS);
    if (strategy) TRY(session_strategy(s, strategy));
    TRY(heeds_check(s, strategy ? strategy : DEFAULT_STRATEGY));
    TRY(session_read(s, a->operands[0], NULL, NULL));
    to = s->info.keep_all_peak_bytes;
    if (a->text[FLAG_FROM]) TRY(session_budget(s, "--from", a->text[FLAG_FROM], &from));
    if (a->text[FLAG_TO]) TRY(session_budget(s, "--to", a->text[FLAG_TO], &to));
    if (to < 0)
        return out_fail(s->out, REMAT_E_USAGE, "curve", "--to", "must be a percentage or a size");
    reports least = {0}, r = {0};
    session_catch(s);
    int status = curve_all(s, strategy, from, to, (uint32_t)n_points, &least, &r);
    session_release(s);
    if (!status && for_machines(s)) print_machine(s, &r);
    else if (!status && r.n > 0) curve_show(s, &r);
    if (!status) status = interrupted(s);
    if (!status && !r.items[r.n - 1].summary.within_budget)
        status = report_status(s, &r.items[r.n - 1], s->out);
    free(least.items);
    free(r.items);
    return status;
}
