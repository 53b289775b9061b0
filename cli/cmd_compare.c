/* cmd_compare.c: `remat compare` and `remat curve`: many plans of one graph, side by side.
 *
 * compare runs strategies at one budget; one that does not apply gets a row with its reason. curve runs one strategy over
 * rising budgets. A plan of a smaller budget is valid at a larger one, so curve carries the cheapest forward where a
 * planner does worse with more room; the bound does not carry (it was proved for the smaller budget) and is dropped.
 * Invariant: among the points that fit, cost never rises with the budget. Ctrl-C ends both after the current plan. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "commands.h"
#include "report.h"

enum { DEFAULT_POINTS = 12, MOST_POINTS = 1000, PLOT_ROWS = 10 };

typedef struct reports {
    report *items;
    size_t n, capacity;
} reports;

static report *reports_add(reports *r)
{
    if (r->n == r->capacity) {
        r->capacity = r->capacity ? 2 * r->capacity : 16;
        r->items = out_resize(r->items, r->capacity, sizeof *r->items);
    }
    return &r->items[r->n++];
}

static void print_machine(session *s, const reports *r)
{ /* --json or --csv */
    if (s->out->json) {
        emitter j = {.out = s->out};
        emit_open(&j, NULL, '[');
        for (size_t i = 0; i < r->n; i++) report_json(&j, &r->items[i]);
        emit_close(&j, ']');
        return;
    }
    report_csv_head(s->out);
    for (size_t i = 0; i < r->n; i++) report_csv(s->out, &r->items[i]);
}

static bool for_machines(const session *s) { return s->out->json || s->args->text[FLAG_CSV]; }

static void title(session *s, const char *strategy)
{
    out *o = s->out;
    out_print(o, "%s%s%s%s%s  keep-all peak %s", out_style(o, BOLD), out_clean(o, remat_graph_name(s->graph), 40).text,
              out_style(o, PLAIN), *strategy ? "  " : "", strategy, human_bytes(s->info.keep_all_peak_bytes).text);
}

static style fit_style(const report *r) { return r->summary.within_budget ? GOOD : BAD; }

/* ---- compare ---- */

static void compare_table(session *s, const reports *r)
{
    static const char *const heads[] = {"strategy", "peak", "of keep-all", "overhead", "fits", "outcome", "gap", "seconds"};
    table t = {.out = s->out, .align = "lrrrllrr"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) table_cell(&t, BOLD, "%s", heads[i]);
    size_t refused = 0;
    for (size_t i = 0; i < r->n; i++) {
        const report *item = &r->items[i];
        const remat_summary *m = &item->summary;
        if (!item->plan) {
            refused++;
            continue;
        }
        table_cell(&t, PLAIN, "%s", m->strategy);
        table_cell(&t, PLAIN, "%s", human_bytes(m->peak_bytes).text);
        table_cell(&t, PLAIN, "%s", human_percent(share_of(m->peak_bytes, m->keep_all_peak_bytes)).text);
        table_cell(&t, PLAIN, "+%s", human_percent(report_overhead(m)).text);
        table_cell(&t, fit_style(item), "%s", m->within_budget ? "yes" : "no");
        table_cell(&t, PLAIN, "%s", report_outcome(m));
        table_cell(&t, PLAIN, "%s", report_gap_text(m).text);
        table_cell(&t, PLAIN, "%.2f", item->seconds);
    }
    table_print(&t);
    if (refused) out_print(s->out, "\n%sdo not apply%s\n", out_style(s->out, BOLD), out_style(s->out, PLAIN));
    for (size_t i = 0; i < r->n; i++) {
        const report *item = &r->items[i];
        const char *because = strstr(item->reason, "does not apply: "); /* what the heading says already */
        if (!item->plan)
            out_print(s->out, "  %-12s  %s\n", item->summary.strategy,
                      out_clean(s->out, because ? because + strlen("does not apply: ") : item->reason, 64).text);
    }
}

static int compare_status(const reports *r)
{ /* one that fits is enough */
    int status = REMAT_E_APPLIES;
    for (size_t i = 0; i < r->n; i++) {
        const remat_status one = r->items[i].plan ? remat_plan_status(r->items[i].plan) : REMAT_E_APPLIES;
        if (one == REMAT_OK) return REMAT_OK;
        if (one == REMAT_E_INFEASIBLE || (one == REMAT_E_NOT_FOUND && status != REMAT_E_INFEASIBLE)) status = (int)one;
    }
    return status;
}

static int compare_all(session *s, char *list, int64_t budget, reports *r)
{
    const remat_entry *entry;
    int status = REMAT_OK;
    for (size_t i = 0; !list && !status && !session_interrupted() && (entry = remat_strategy_at(i)); i++)
        status = report_make(s, entry->name, budget, reports_add(r));
    for (char *name = list, *next; name && !status && !session_interrupted(); name = next) {
        next = strchr(name, ',');
        if (next) *next++ = '\0';
        status = report_make(s, name, budget, reports_add(r));
    }
    if (!status && session_interrupted()) out_message(s->out, "interrupted: not all strategies were run");
    return status;
}

static int check_list(session *s, const char *list)
{
    char name[64];
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(p, ","), p);
        const int status = session_strategy(s, name);
        if (status) return status;
    }
    return REMAT_OK;
}

int cmd_compare(session *s)
{
    const args *a = s->args;
    const char *list = a->text[FLAG_STRATEGY];
    int64_t budget;
    int status;
    reports r = {0};
    if (!a->text[FLAG_BUDGET])
        return out_fail(s->out, REMAT_E_USAGE, "compare", "", "needs a --budget, for example --budget 50%%");
    if (list && (status = check_list(s, list))) return status;
    if ((status = session_graph(s, a->operands[0], NULL))) return status;
    if ((status = session_budget(s, a->text[FLAG_BUDGET], &budget))) return status;

    char *names = list ? strcpy(out_resize(NULL, strlen(list) + 1, 1), list) : NULL;
    status = compare_all(s, names, budget, &r);
    if (!status && for_machines(s)) {
        print_machine(s, &r);
        status = compare_status(&r);
    } else if (!status) {
        title(s, "");
        if (budget >= 0) out_print(s->out, "  budget %s\n\n", human_exact(budget).text);
        else out_print(s->out, "  budget: the least of each strategy\n\n");
        compare_table(s, &r);
        status = compare_status(&r);
        if (status == REMAT_E_INFEASIBLE || status == REMAT_E_NOT_FOUND)
            out_message(s->out, "no strategy %s %s; no plan needs less than %s",
                        status == REMAT_E_INFEASIBLE ? "can fit" : "found a plan within", human_bytes(budget).text,
                        human_bytes(s->info.need_bytes).text);
    }
    free(names);
    free(r.items);
    return status;
}

/* ---- curve ---- */

static int percent_budget(session *s, const char *text, int64_t *budget)
{ /* a bare number is a percentage here */
    char percent[64];
    const size_t length = strlen(text);
    if (length + 2 > sizeof percent || strspn(text, "0123456789.") != length) return session_budget(s, text, budget);
    snprintf(percent, sizeof percent, "%s%%", text);
    return session_budget(s, percent, budget);
}

static int64_t between(int64_t from, int64_t to, int64_t i, int64_t n)
{ /* from at 0, to at n; exact, no overflow */
    const int64_t span = to - from;
    return from + span / n * i + span % n * i / n;
}

static amount show_overhead(int64_t per_myriad)
{
    amount result;
    snprintf(result.text, sizeof result.text, "+%.*f%%", per_myriad < 1000 ? 2 : 0, (double)per_myriad / 100);
    return result;
}

static void curve_plot(session *s, const reports *r)
{
    out *o = s->out;
    enum { SAMPLES = 400 };
    int64_t values[SAMPLES], top = 0;
    size_t best = SIZE_MAX, next = 0;
    const int64_t from = r->items[0].summary.budget_bytes, to = r->items[r->n - 1].summary.budget_bytes;
    for (size_t x = 0; x < SAMPLES; x++) { /* the best plan at each budget: a staircase */
        const int64_t budget = between(from, to, (int64_t)x, SAMPLES - 1);
        for (; next < r->n && r->items[next].summary.budget_bytes <= budget; next++)
            if (r->items[next].summary.within_budget) best = next;
        values[x] = best == SIZE_MAX ? 0 : (int64_t)(report_overhead(&r->items[best].summary) * 10000 + 0.5);
        if (values[x] > top) top = values[x];
    }
    if (r->n < 2 || top == 0) return; /* nothing to see */
    const chart c = {.title = "overhead",
                     .note = " against budget",
                     .values = values,
                     .n_values = SAMPLES,
                     .span = SAMPLES,
                     .top = top,
                     .limit = -1,
                     .rows = PLOT_ROWS,
                     .show = show_overhead};
    chart_draw(o, &c);
    const amount left = human_bytes(from), right = human_bytes(to);
    out_print(o, "%*s%s%*s\n", 11, "", left.text, o->width - 12 - (int)strlen(left.text), right.text);
}

static void curve_table(session *s, const reports *r)
{
    static const char *const heads[] = {"budget", "of keep-all", "peak", "overhead", "fits", "outcome", "gap", "seconds"};
    table t = {.out = s->out, .align = "rrrrllrr"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) table_cell(&t, BOLD, "%s", heads[i]);
    for (size_t i = 0; i < r->n; i++) {
        const remat_summary *m = &r->items[i].summary;
        table_cell(&t, PLAIN, "%s", human_bytes(m->budget_bytes).text);
        table_cell(&t, PLAIN, "%s", human_percent(share_of(m->budget_bytes, m->keep_all_peak_bytes)).text);
        table_cell(&t, PLAIN, "%s", human_bytes(m->peak_bytes).text);
        table_cell(&t, PLAIN, "+%s", human_percent(report_overhead(m)).text);
        table_cell(&t, fit_style(&r->items[i]), "%s", m->within_budget ? "yes" : "no");
        table_cell(&t, PLAIN, "%s", report_outcome(m));
        table_cell(&t, PLAIN, "%s", report_gap_text(m).text);
        table_cell(&t, PLAIN, "%.2f", r->items[i].seconds);
    }
    table_print(&t);
}

static void carry(report *point, const report *best) /* keeps the point's budget and time */
{
    const report own = *point;
    *point = *best;
    point->seconds = own.seconds;
    point->summary.budget_bytes = own.summary.budget_bytes;
    point->summary.bound_cost = REMAT_ABSENT;
    point->summary.outcome = REMAT_FEASIBLE;
}

/* `best` is the cheapest plan so far, without a plan at first or the plan of the least peak. */
static int curve_points(session *s, const char *strategy, int64_t from, int64_t to, int64_t n, report best, reports *r)
{
    for (int64_t i = 0; i < n && !session_interrupted(); i++) {
        const int64_t budget = between(from, to, i, n - 1);
        if (i > 0 && budget == between(from, to, i - 1, n - 1)) continue; /* more points than bytes */
        report *point = reports_add(r);
        const int status = report_make(s, strategy, budget, point);
        if (status) return status;
        if (point->status != REMAT_OK) return session_fail(s, point->status);
        const bool fits = best.plan && best.summary.peak_bytes <= budget;
        if (fits && (!point->summary.within_budget || point->summary.cost > best.summary.cost)) carry(point, &best);
        if (point->summary.within_budget) best = *point;
    }
    if (session_interrupted()) out_message(s->out, "interrupted: not all budgets were planned");
    if (r->n == 0 && best.plan) *reports_add(r) = best;
    return REMAT_OK;
}

int cmd_curve(session *s)
{
    const args *a = s->args;
    const char *strategy = a->text[FLAG_STRATEGY] ? a->text[FLAG_STRATEGY] : DEFAULT_STRATEGY;
    const int64_t n_points = a->text[FLAG_POINTS] ? a->number[FLAG_POINTS] : DEFAULT_POINTS;
    int64_t from = REMAT_BUDGET_MIN, to;
    int status;
    if (n_points < 2 || n_points > MOST_POINTS)
        return out_fail(s->out, REMAT_E_USAGE, "curve", "--points", "%" PRId64 " is not between 2 and %d", n_points,
                        (int)MOST_POINTS);
    if ((status = session_strategy(s, strategy))) return status;
    if ((status = session_graph(s, a->operands[0], NULL))) return status;
    to = s->info.keep_all_peak_bytes;
    if (a->text[FLAG_FROM] && (status = percent_budget(s, a->text[FLAG_FROM], &from))) return status;
    if (a->text[FLAG_TO] && (status = percent_budget(s, a->text[FLAG_TO], &to))) return status;
    if (to < 0) return out_fail(s->out, REMAT_E_USAGE, "curve", "--to", "must be a budget in percent or bytes");
    report least = {.plan = NULL};
    if (from == REMAT_BUDGET_MIN) {
        if ((status = report_make(s, strategy, REMAT_BUDGET_MIN, &least))) return status;
        if (least.status != REMAT_OK) return session_fail(s, least.status);
        from = least.summary.peak_bytes < to ? least.summary.peak_bytes : to;
    }
    if (from > to)
        return out_fail(s->out, REMAT_E_USAGE, "curve", "--from", "the first budget, %s, is above the last, %s",
                        human_exact(from).text, human_exact(to).text);
    reports r = {0};
    status = curve_points(s, strategy, from, to, n_points, least, &r);
    if (!status && for_machines(s)) {
        print_machine(s, &r);
    } else if (!status && r.n > 0) {
        title(s, strategy);
        out_print(s->out, "\n\n");
        curve_table(s, &r);
        curve_plot(s, &r);
    }
    if (!status && r.n > 0 && !r.items[r.n - 1].summary.within_budget) status = (int)remat_plan_status(r.items[r.n - 1].plan);
    free(r.items);
    return status;
}
