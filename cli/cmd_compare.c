/* cmd_compare.c: `remat compare` and `remat curve`: many plans of one graph or chain, side by side.
 *
 * compare runs strategies at one budget; one that does not apply gets a row with its reason. curve
 * runs one strategy over rising budgets. A plan of a smaller budget is valid at a larger one, so
 * curve carries the cheapest forward where a planner does worse with more room; the bound, the work
 * and the stop stay those of the point. Invariant: among the points that fit, cost never rises with
 * the budget. Ctrl-C ends both after the current plan, prints what there is, and is exit code 130.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "commands.h"
#include "report.h"

enum { DEFAULT_POINTS = 12, MOST_POINTS = 1000, PLOT_ROWS = 10 };

static void print_machine(session *s, const reports *r)
{ /* --json or --csv */
    if (s->out->json) {
        emitter j = {.out = s->out};
        emit_open(&j, NULL, '[');
        for (size_t i = 0; i < r->n; i++) report_json(&j, s, &r->items[i]);
        emit_close(&j, ']');
        return;
    }
    report_csv_head(s->out);
    for (size_t i = 0; i < r->n; i++) report_csv(s->out, &r->items[i]);
}

static bool for_machines(const session *s) { return s->out->json || s->args->text[FLAG_CSV]; }

static void heads(table *t, const char *first, const char *second, const char *third)
{
    const char *const names[] = {first,  second,    third, "overhead",
                                 "fits", "outcome", "gap", "seconds"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) table_cell(t, BOLD, "%s", names[i]);
}

/* The columns that both tables end with. */
static void judged(table *t, const report *r)
{
    const remat_summary *m = &r->summary;
    table_cell(t, PLAIN, "+%s", human_percent(report_overhead(m)).text);
    table_cell(t, m->within_budget ? GOOD : BAD, "%s", m->within_budget ? "yes" : "no");
    table_cell(t, PLAIN, "%s", report_outcome(m));
    table_cell(t, PLAIN, "%s", report_gap_text(m).text);
    table_cell(t, PLAIN, "%.2f", r->seconds);
}

static int interrupted(session *s)
{
    if (!session_interrupted()) return REMAT_OK;
    out_message(s->out, "interrupted: this is not all");
    return EXIT_INTERRUPTED;
}

/* ---- compare ---- */

static void compare_table(session *s, const reports *r)
{
    out *o = s->out;
    table t = {.out = o, .align = "lrrrllrr"};
    heads(&t, "strategy", "peak", "of keep-all");
    for (size_t i = 0; i < r->n; i++) {
        const remat_summary *m = &r->items[i].summary;
        if (!r->items[i].plan) continue;
        table_cell(&t, PLAIN, "%s", m->strategy);
        table_cell(&t, PLAIN, "%s", out_size(o, m->peak_bytes).text);
        table_cell(&t, PLAIN, "%s",
                   human_percent(share_of(m->peak_bytes, m->keep_all_peak_bytes)).text);
        judged(&t, &r->items[i]);
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
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) table_cell(&t, BOLD, "%s", names[i]);
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
    const report *why = NULL;
    for (size_t i = 0; i < r->n; i++) {
        const report *one = &r->items[i];
        const remat_status status = one->plan ? remat_plan_status(one->plan) : REMAT_E_APPLIES;
        if (one->plan && status == REMAT_OK) return REMAT_OK;
        if (!one->plan) continue;
        const bool proof = why && remat_plan_status(why->plan) == REMAT_E_INFEASIBLE;
        if (!why || (!proof && (status == REMAT_E_INFEASIBLE ||
                                one->summary.peak_bytes < why->summary.peak_bytes)))
            why = one;
    }
    if (why) return report_status(s, why, s->out);
    out_message(s->out, "none of the strategies applies%s%s", r->n == 1 ? ": " : "",
                r->n == 1 ? r->items[0].reason : "");
    return REMAT_E_APPLIES;
}

static int compare_all(session *s, char *list, int64_t budget, reports *r)
{
    const remat_entry *entry;
    int status = REMAT_OK;
    s->bar.parts = 0;
    if (list)
        for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
            s->bar.parts++;
    else
        while (remat_strategy_at(s->bar.parts)) s->bar.parts++;
    for (; !list && !status && !session_interrupted() && (entry = remat_strategy_at(s->bar.part));
         s->bar.part++)
        status = report_make(s, entry->name, &budget, 1, r);
    for (char *name = list, *next; name && !status && !session_interrupted();
         name = next, s->bar.part++) {
        next = strchr(name, ',');
        if (next) *next++ = '\0';
        status = report_make(s, name, &budget, 1, r);
    }
    return status;
}

int cmd_compare(session *s)
{
    const args *a = s->args;
    const char *list = a->text[FLAG_STRATEGY];
    const bool saved = a->text[FLAG_SAVED] != NULL;
    int64_t budget;
    int status;
    reports r = {0};
    if (saved && !list) list = "keep-all,save-inputs,save-layers,mincut";
    if (!a->text[FLAG_BUDGET] && !saved)
        return out_fail(s->out, REMAT_E_USAGE, "compare", "--budget",
                        "is needed, for example --budget 50%%");
    if (list && (status = session_strategies(s, list))) return status;
    if ((status = session_read(s, a->operands[0], NULL, NULL))) return status;
    if ((status = session_budget(s, "--budget", a->text[FLAG_BUDGET], &budget))) return status;

    char *names = list ? strcpy(out_resize(NULL, strlen(list) + 1, 1), list) : NULL;
    session_catch(s);
    status = compare_all(s, names, budget, &r);
    session_release(s);
    if (!status && for_machines(s)) {
        print_machine(s, &r);
    } else if (!status) {
        char after[160];
        snprintf(after, sizeof after, "  keep-all peak %s  budget%s%s",
                 out_size(s->out, s->info.keep_all_peak_bytes).text,
                 budget >= 0                  ? " "
                 : budget == REMAT_BUDGET_MIN ? ": the least of each"
                                              : ": none",
                 budget >= 0 ? out_exact(s->out, budget).text : "");
        out_title(s->out, session_name(s), after);
        out_print(s->out, "\n");
        if (saved) saved_table(s, &r);
        else compare_table(s, &r);
        refused(s, &r);
    }
    if (!status && !(status = interrupted(s))) status = compare_status(s, &r);
    free(names);
    free(r.items);
    return status;
}

/* ---- curve ---- */

static int percent_budget(session *s, const char *place, const char *text, int64_t *budget)
{ /* a bare number is a percentage here */
    char percent[64];
    const size_t length = strlen(text);
    if (length + 2 > sizeof percent || strspn(text, "0123456789.") != length)
        return session_budget(s, place, text, budget);
    snprintf(percent, sizeof percent, "%s%%", text);
    return session_budget(s, place, percent, budget);
}

static int64_t between(int64_t from, int64_t to, int64_t i, int64_t n)
{ /* from at 0, to at n; exact, no overflow */
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
    for (int x = 0; x < columns;
         x++) { /* the best plan at each budget: a staircase, its last step at the right edge */
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
    table t = {.out = s->out, .align = "rrrrllrr"};
    heads(&t, "budget", "of keep-all", "peak");
    for (size_t i = 0; i < r->n; i++) {
        const remat_summary *m = &r->items[i].summary;
        table_cell(&t, PLAIN, "%s", out_size(s->out, m->budget_bytes).text);
        table_cell(&t, PLAIN, "%s",
                   human_percent(share_of(m->budget_bytes, m->keep_all_peak_bytes)).text);
        table_cell(&t, PLAIN, "%s", out_size(s->out, m->peak_bytes).text);
        judged(&t, &r->items[i]);
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
    if (strcmp(m->bound_scope, "fixed-order") == 0)
        m->bound_cost = m->keep_all_cost, m->bound_scope = "any-order",
        m->bound_method = "first-runs";
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
        if (n_budgets == 0 || budget > budgets[n_budgets - 1])
            budgets[n_budgets++] = budget; /* more points than bytes */
    }
    const int status = report_make(s, strategy, budgets, n_budgets, r);
    free(budgets);
    return status;
}

static int refuse(session *s, const char *strategy, const reports *r)
{ /* a strategy that was asked for does not apply */
    if (r->n == 0 || r->items[0].plan) return REMAT_OK;
    return out_fail(s->out, r->items[0].status, "", "", "strategy '%s' does not apply: %s",
                    strategy, r->items[0].reason);
}

/* Finds the least budget if `from` asks for it, then plans. */
static int curve_all(session *s, const char *strategy, int64_t from, int64_t to, uint32_t n,
                     reports *least, reports *r)
{
    int status = REMAT_OK;
    if (from == REMAT_BUDGET_MIN) {
        status = report_make(s, strategy, &from, 1, least);
        if (!status) status = refuse(s, strategy, least);
        if (status || least->n == 0) return status;
        const remat_summary *m = &least->items[0].summary;
        strategy = m->strategy; /* the default may have given way */
        from = m->peak_bytes < to ? m->peak_bytes : to;
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
    status = curve_points(s, strategy, from, to, n, r);
    if (!status) status = refuse(s, strategy, r);
    if (!status) carry_all(least->n ? &least->items[0] : NULL, r);
    return status;
}

int cmd_curve(session *s)
{
    const args *a = s->args;
    const char *strategy = a->text[FLAG_STRATEGY];
    const int64_t n_points = a->text[FLAG_POINTS] ? a->number[FLAG_POINTS] : DEFAULT_POINTS;
    int64_t from = REMAT_BUDGET_MIN, to;
    int status;
    if (n_points < 2 || n_points > MOST_POINTS)
        return out_fail(s->out, REMAT_E_USAGE, "curve", "--points",
                        "%" PRId64 " is not between 2 and %d", n_points, (int)MOST_POINTS);
    if (strategy && (status = session_strategy(s, strategy))) return status;
    if ((status = session_read(s, a->operands[0], NULL, NULL))) return status;
    to = s->info.keep_all_peak_bytes;
    if (a->text[FLAG_FROM] && (status = percent_budget(s, "--from", a->text[FLAG_FROM], &from)))
        return status;
    if (a->text[FLAG_TO] && (status = percent_budget(s, "--to", a->text[FLAG_TO], &to)))
        return status;
    if (to < 0)
        return out_fail(s->out, REMAT_E_USAGE, "curve", "--to", "must be a percentage or a size");
    reports least = {0}, r = {0};
    session_catch(s);
    status = curve_all(s, strategy, from, to, (uint32_t)n_points, &least, &r);
    session_release(s);
    if (!status && for_machines(s)) {
        print_machine(s, &r);
    } else if (!status && r.n > 0) {
        char after[160];
        snprintf(after, sizeof after, "  %s  keep-all peak %s", r.items[0].summary.strategy,
                 out_size(s->out, s->info.keep_all_peak_bytes).text);
        out_title(s->out, session_name(s), after);
        out_print(s->out, "\n");
        curve_table(s, &r);
        curve_plot(s, &r);
    }
    if (!status && !(status = interrupted(s)) && !r.items[r.n - 1].summary.within_budget)
        status = report_status(s, &r.items[r.n - 1], s->out);
    free(least.items);
    free(r.items);
    return status;
}
