/* plot.c: overhead against budget in characters: a mark for each strategy, and shade where no plan
 * can be.
 *
 * What was planned are points, and a picture has a value everywhere. A plan fits every budget above
 * its own, so a strategy's line holds its value to the right, up to the next point. A bound holds
 * for every budget below its own, so the shade holds its value to the left. Both are true between
 * the points, and no line can enter the shade.
 *
 * A cell is a range of overheads. It is shaded if all of it is below the bound. Of marks that share
 * a cell the first strategy's is drawn. Cost: columns x rows of the table. */
#include "plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"

enum { ROWS = 10, MOST_MARKS = 6 };

const report *line_at(const line *x, int64_t budget)
{
    const report *best = NULL;
    for (size_t i = 0; i < x->n && x->rows[i].summary.budget_bytes <= budget; i++) {
        const remat_summary *m = &x->rows[i].summary;
        if (m->within_budget && (!best || m->cost <= best->summary.cost)) best = &x->rows[i];
    }
    return best;
}

double plot_bound(const plot *p, int64_t budget)
{
    double best = -1;
    for (size_t k = 0; k < p->n_lines; k++)
        for (size_t i = 0; i < p->lines[k].n; i++) {
            remat_summary m = p->lines[k].rows[i].summary;
            const bool proof = m.outcome == REMAT_INFEASIBLE && m.kind == REMAT_KIND_GRAPH;
            if (budget < m.need_bytes || (proof && budget <= m.budget_bytes)) return INFINITY;
            if (budget > m.budget_bytes || !m.within_budget || m.any_order_cost < 0) continue;
            m.cost = m.any_order_cost;
            if (report_overhead(&m) > best) best = report_overhead(&m);
        }
    return best;
}

double plot_top(const plot *p)
{
    double top = 0;
    for (size_t k = 0; k < p->n_lines; k++)
        for (size_t i = 0; i < p->lines[k].n; i++) {
            const remat_summary *m = &p->lines[k].rows[i].summary;
            if (m->within_budget && report_overhead(m) > top) top = report_overhead(m);
        }
    return top;
}

static const char *mark_of(const out *o, size_t line_index)
{
    static const char *const fine[MOST_MARKS] = {"●", "○", "▲", "△", "■", "□"};
    static const char *const coarse[MOST_MARKS] = {"*", "o", "^", "+", "#", "x"};
    return (o->utf8 ? fine : coarse)[line_index % MOST_MARKS];
}

static const char *shade(const out *o) { return o->utf8 ? "░" : "/"; }

/* The cells of one column, from the bottom: a line's index, SHADED or EMPTY. */
enum { EMPTY = -1, SHADED = -2 };

static void fill_column(const plot *p, double top, int64_t budget, int cells[ROWS])
{
    const double bound = plot_bound(p, budget);
    for (int r = 0; r < ROWS; r++) cells[r] = (r + 1) * top <= bound * ROWS ? SHADED : EMPTY;
    for (size_t k = p->n_lines; k-- > 0;) {
        const report *best = line_at(&p->lines[k], budget);
        if (!best) continue;
        const double share = report_overhead(&best->summary) / top;
        cells[share >= 1 ? ROWS - 1 : (int)(share * ROWS)] = (int)k;
    }
}

static void draw_legend(out *o, const plot *p, bool shaded)
{
    int column = 0;
    out_print(o, "\n%soverhead%s against budget\n", out_style(o, BOLD), out_style(o, PLAIN));
    for (size_t k = 0; k < p->n_lines + shaded; k++) {
        const bool line_item = k < p->n_lines;
        const char *text = line_item ? p->lines[k].name : "proved: no plan is here";
        const int length = (int)strlen(text) + 2;
        if (column && column + 3 + length > o->width) {
            out_print(o, "\n");
            column = 0;
        }
        out_print(o, "%s%s %s", column ? "   " : "", line_item ? mark_of(o, k) : shade(o), text);
        column += length + (column ? 3 : 0);
    }
    out_print(o, "\n");
}

static void draw_cells(out *o, const int (*cells)[ROWS], int columns, int r)
{
    int last = columns;
    while (last > 0 && cells[last - 1][r] == EMPTY) last--;
    for (int x = 0; x < last; x++) {
        const int found = cells[x][r];
        if (found == EMPTY) out_print(o, " ");
        else if (found == SHADED)
            out_print(o, "%s%s%s", out_style(o, DIM), shade(o), out_style(o, PLAIN));
        else
            out_print(o, "%s%s%s", out_style(o, BAR), mark_of(o, (size_t)found),
                      out_style(o, PLAIN));
    }
    out_print(o, "\n");
}

/* `from` at column 0, `to` at the last one. Doubles are for drawing only. */
static int64_t budget_of(const plot *p, int x, int columns)
{
    if (x + 1 == columns) return p->to_bytes;
    return p->from_bytes + (int64_t)((double)(p->to_bytes - p->from_bytes) * x / (columns - 1));
}

void plot_draw(out *o, const plot *p)
{
    const int columns = chart_columns(o);
    const double top = plot_top(p);
    bool shaded = false;
    if (top <= 0 || p->from_bytes == p->to_bytes) return; /* there is nothing to see */
    int(*cells)[ROWS] = out_resize(NULL, (size_t)columns, sizeof *cells);
    for (int x = 0; x < columns; x++) {
        fill_column(p, top, budget_of(p, x, columns), cells[x]);
        for (int r = 0; r < ROWS; r++) shaded |= cells[x][r] == SHADED;
    }
    const chart axis = {
        .top = (int64_t)(top * 10000 + 0.5), .limit = -1, .rows = ROWS, .show = out_percent};
    draw_legend(o, p, shaded);
    for (int r = ROWS - 1; r >= 0; r--) {
        chart_axis(o, &axis, r);
        draw_cells(o, (const int(*)[ROWS])cells, columns, r);
    }
    chart_floor(o, &axis);
    const amount left = out_size(o, p->from_bytes), right = out_size(o, p->to_bytes);
    out_print(o, "%*s%s%*s\n", o->width - columns - 1, "", left.text,
              columns - (int)strlen(left.text), right.text);
    free(cells);
}
