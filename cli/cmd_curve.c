/* cmd_curve.c: `remat curve`: what each budget costs, for one strategy or several (curve.c plans).
 *
 * Ctrl-C ends it after the current plan, prints what there is, and is exit code 130. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "curve.h"
#include "heeds.h"
#include "plot.h"
#include "rows_svg.h"

enum { DEFAULT_POINTS = 12 };
static const double tiny_range = 0.05; /* of keep-all: said in a sentence */

static void one_table(session *s, const line *x)
{
    table t = {.out = s->out, .align = "rrrlrrlr"};
    rows_heads(&t, "budget", "of keep-all");
    for (size_t i = 0; i < x->n; i++) {
        const remat_summary *m = &x->rows[i].summary;
        table_cell(&t, PLAIN, "%s", out_size(s->out, m->budget_bytes).text);
        table_cell(&t, PLAIN, "%s",
                   human_percent(share_of(m->budget_bytes, m->keep_all_peak_bytes)).text);
        rows_judged(&t, &x->rows[i]);
    }
    table_print(&t);
}

static void overhead_cell(table *t, const line *x, int64_t budget)
{
    const report *at = NULL;
    for (size_t i = 0; i < x->n; i++)
        if (x->rows[i].summary.budget_bytes == budget) at = &x->rows[i];
    if (!at || !at->summary.within_budget) {
        table_cell(t, DIM, "-");
        return;
    }
    table_cell(t, at->summary.outcome == REMAT_OPTIMAL ? GOOD : PLAIN, "+%s",
               human_percent(report_overhead(&at->summary)).text);
}

static void bound_cell(table *t, double bound)
{
    if (bound < 0) table_cell(t, DIM, "-");
    else if (isinf(bound)) table_cell(t, BAD, "no plan");
    else table_cell(t, PLAIN, "+%s", human_percent(bound).text);
}

/* A column a strategy, for the strategies [first, end). */
static void some_columns(session *s, const plot *p, const curve *c, size_t first, size_t end)
{
    char align[16] = "rrr";
    table t = {.out = s->out, .align = align};
    for (size_t k = first; k < end; k++) strcat(align, "r");
    table_cell(&t, BOLD, "budget");
    table_cell(&t, BOLD, "of keep-all");
    for (size_t k = first; k < end; k++) table_cell(&t, BOLD, "%s", p->lines[k].name);
    table_cell(&t, BOLD, "at least");
    for (uint32_t i = 0; i < c->n_budgets; i++) {
        table_cell(&t, PLAIN, "%s", out_size(s->out, c->budgets[i]).text);
        table_cell(&t, PLAIN, "%s",
                   human_percent(share_of(c->budgets[i], s->info.keep_all_peak_bytes)).text);
        for (size_t k = first; k < end; k++) overhead_cell(&t, &p->lines[k], c->budgets[i]);
        bound_cell(&t, plot_bound(p, c->budgets[i]));
    }
    table_print(&t);
}

/* As many strategies beside each other as the terminal and a table have room for. */
static void wide_table(session *s, const plot *p, const curve *c)
{
    enum { FIXED = 34, LEAST = 7, MOST = 9 }; /* columns of text; of one strategy; strategies */
    for (size_t first = 0, end; first < p->n_lines; first = end) {
        int width = FIXED;
        for (end = first; end < p->n_lines && end - first < MOST; end++) {
            const int name = (int)strlen(p->lines[end].name);
            width += 2 + (name > LEAST ? name : LEAST);
            if (width > s->out->width && end > first) break;
        }
        if (first > 0) out_print(s->out, "\n");
        some_columns(s, p, c, first, end);
    }
}

/* Why there is little to see, in one sentence. */
static void explain_range(session *s, const plot *p, const curve *c)
{
    out *o = s->out;
    const remat_info *info = &s->info;
    char below[160];
    double least = plot_top(p);
    for (size_t k = 0; k < p->n_lines; k++)
        for (size_t i = 0; i < p->lines[k].n; i++) {
            const remat_summary *m = &p->lines[k].rows[i].summary;
            if (m->within_budget && report_overhead(m) < least) least = report_overhead(m);
        }
    const double range = share_of(p->to_bytes - p->from_bytes, info->keep_all_peak_bytes);
    if (info->need_bytes >= p->from_bytes)
        snprintf(below, sizeof below, "nothing fits below %s", out_size(o, p->from_bytes).text);
    else
        snprintf(below, sizeof below, "nothing was found below %s (proved: nothing fits below %s)",
                 out_size(o, p->from_bytes).text, out_size(o, info->need_bytes).text);
    char text[400] = "";
    if (c->least.n > 0 && range < tiny_range)
        snprintf(text, sizeof text, "keep-all needs %s and %s: the range is %s.",
                 out_size(o, info->keep_all_peak_bytes).text, below, human_percent(range).text);
    else if (plot_top(p) <= 0)
        snprintf(text, sizeof text, "No budget of this range costs anything: %s.",
                 p->from_bytes >= info->keep_all_peak_bytes
                     ? "keep-all fits them all"
                     : "another order of the ops fits without running one twice");
    else if (least >= plot_top(p) && c->n_budgets > 1)
        snprintf(text, sizeof text, "All budgets of this range cost the same: +%s.",
                 human_percent(least).text);
    if (!*text) return;
    out_print(o, "\n");
    out_wrap(o, 0, 0, text);
}

/* Strategies that do not apply have no line, and those that were interrupted a short one. */
static line *lines_of(const curve *c, size_t *n_lines)
{
    line *lines = out_resize(NULL, c->strategies.n, sizeof *lines);
    *n_lines = 0;
    for (size_t k = 0; k < c->strategies.n; k++) {
        const size_t n = c->first[k + 1] - c->first[k];
        const report *rows = &c->all.items[c->first[k]];
        if (n > 0 && rows->plan) lines[(*n_lines)++] = (line){rows->summary.strategy, rows, n};
    }
    return lines;
}

static void show(session *s, const curve *c, const plot *p)
{
    char after[160];
    const bool one = c->strategies.n == 1;
    snprintf(after, sizeof after, "%s%s  keep-all peak %s", one ? "  " : "",
             one ? p->lines[0].name : "", out_size(s->out, s->info.keep_all_peak_bytes).text);
    out_title(s->out, session_name(s), after);
    out_print(s->out, "\n");
    if (!one && c->n_budgets > 0) wide_table(s, p, c);
    else /* interrupted before the first budget was known: each has its least */
        for (size_t k = 0; k < p->n_lines; k++) one_table(s, &p->lines[k]);
    plot_draw(s->out, p);
    if (c->n_budgets > 0) explain_range(s, p, c);
    rows_refused(s, &c->all);
}

static int print_curve(session *s, curve *c)
{
    plot p = {0};
    rows_share_bound(&c->all);
    line *lines = lines_of(c, &p.n_lines);
    p.lines = lines;
    if (c->n_budgets > 0) {
        p.from_bytes = c->budgets[0];
        p.to_bytes = c->budgets[c->n_budgets - 1];
    }
    int status = curve_svg(s, &p);
    if (!status && !session_svg_is_output(s)) {
        if (rows_for_machines(s)) rows_print(s, &c->all);
        else if (p.n_lines > 0) show(s, c, &p);
    }
    if (!status) status = rows_interrupted(s);
    if (!status) status = curve_status(s, c);
    free(lines);
    return status;
}

int cmd_curve(session *s)
{
    const args *a = s->args;
    const char *list = a->text[FLAG_STRATEGY];
    uint32_t n_points;
    curve c = {0};
    TRY(curve_points(s, DEFAULT_POINTS, &n_points));
    if (list) TRY(session_strategies(s, list));
    TRY(heeds_check(s, list ? list : DEFAULT_STRATEGY));
    TRY(session_read(s, a->operands[0], NULL, NULL));
    int status = curve_make(s, list, n_points, &c);
    if (!status) status = print_curve(s, &c);
    curve_free(&c);
    return status;
}
