/* rows_svg.c: overheads and what is proved of them, as SVGs.
 *
 * curve: overhead against budget, a line and a mark for each strategy. Lines and shade are stairs
 * for the reason that plot.c gives: a plan holds to the right, a bound to the left. Budgets below
 * what is proved to be needed are shaded up to the top. Invariant: no line enters the shade.
 *
 * compare: a bar for each strategy, long as its overhead. The part of it above the proved bound is
 * hatched: that is its gap, all that a better planner could save. Up to the bound the background is
 * shaded. A strategy that does not fit or does not apply says so in place of a bar.
 *
 * Every mark and bar has a note with exact numbers, as --json prints them. */
#include "rows_svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "svg.h"

enum { WIDTH = 720, LEFT = 62, RIGHT = 20 };

/* 5.6 pixels a letter, roughly. */
static double text_width(const char *text) { return 5.6 * (double)strlen(text); }

static label note_of(const remat_summary *m)
{
    label note;
    snprintf(note.text, sizeof note.text,
             "%s: budget %" PRId64 ", peak %" PRId64 ", cost %" PRId64 ", overhead %.9g%%",
             m->strategy, m->budget_bytes, m->peak_bytes, m->cost, 100 * report_overhead(m));
    return note;
}

/* ---- curve ---- */

enum { TOP = 58, AREA = 270, BELOW = 46 };

typedef struct board {
    svg v;
    scale x, y; /* bytes; overhead in percent */
} board;

static double x_at(const board *b, int64_t bytes) { return scale_at(&b->x, (double)bytes); }
static double y_at(const board *b, double overhead)
{
    const double y = scale_at(&b->y, 100 * overhead);
    return y < b->y.to ? b->y.to : y;
}

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Where the bound may change: the budgets of all rows and the need, rising. */
static int64_t *corners_of(const plot *p, size_t *n)
{
    size_t most = 2, at = 0;
    for (size_t k = 0; k < p->n_lines; k++) most += p->lines[k].n;
    int64_t *corners = out_resize(NULL, most, sizeof *corners);
    for (size_t k = 0; k < p->n_lines; k++)
        for (size_t i = 0; i < p->lines[k].n; i++)
            corners[at++] = p->lines[k].rows[i].summary.budget_bytes;
    corners[at++] = p->lines[0].rows[0].summary.need_bytes - 1; /* not enough */
    qsort(corners, at, sizeof *corners, by_number);
    *n = at;
    return corners;
}

/* The bound of a corner holds from the corner before it. */
static void draw_bound(board *b, const plot *p)
{
    size_t n;
    int64_t *corners = corners_of(p, &n);
    svg_begin(&b->v, b->x.from, b->y.from, "never");
    for (size_t i = 0; i < n; i++) {
        const double bound = plot_bound(p, corners[i]), x = x_at(b, corners[i]);
        if (x < b->x.from) continue;
        svg_upright(&b->v, y_at(b, isinf(bound) ? b->y.high : bound > 0 ? bound : 0));
        svg_level(&b->v, x < b->x.to ? x : b->x.to);
    }
    svg_upright(&b->v, b->y.from);
    svg_end(&b->v, true);
    free(corners);
}

static void draw_line(board *b, const plot *p, size_t k)
{
    const line *x = &p->lines[k];
    char paint[16];
    bool begun = false;
    snprintf(paint, sizeof paint, "l%zu", k % SVG_LINES);
    for (size_t i = 0; i < x->n; i++) {
        const remat_summary *m = &x->rows[i].summary;
        if (!m->within_budget) continue;
        const double at = x_at(b, m->budget_bytes), y = y_at(b, report_overhead(m));
        if (!begun) svg_begin(&b->v, at, y, paint);
        begun = true;
        svg_level(&b->v, at);
        svg_upright(&b->v, y);
    }
    if (!begun) return;
    svg_level(&b->v, b->x.to);
    svg_end(&b->v, false);
    for (size_t i = 0; i < x->n; i++) {
        const remat_summary *m = &x->rows[i].summary;
        if (m->within_budget)
            svg_mark(&b->v, x_at(b, m->budget_bytes), y_at(b, report_overhead(m)), (int)k,
                     note_of(m).text);
    }
}

static void draw_names(board *b, const plot *p)
{
    double x = LEFT;
    for (size_t k = 0; k < p->n_lines; k++) {
        svg_sample(&b->v, x + 12, 40, (int)k);
        svg_text(&b->v, x + 29, 44, START, "", "%s", p->lines[k].name);
        x += 48 + text_width(p->lines[k].name);
    }
    svg_rect(&b->v, x, 34, 22, 11, "never", NULL);
    svg_text(&b->v, x + 28, 44, START, "", "proved: no plan is here");
}

/* Budgets a little below the first, so that what cannot fit is seen. */
static scale budgets_of(const plot *p)
{
    const int64_t need = p->lines[0].rows[0].summary.need_bytes;
    double low = (double)p->from_bytes, high = (double)p->to_bytes;
    if (need >= 0 && (double)need > low - 0.25 * (high - low) && (double)need < low)
        low = (double)need;
    low -= 0.03 * (high - low);
    if (high <= low) low = high - 1;
    return (scale){low > 0 ? low : 0, high, LEFT, WIDTH - RIGHT};
}

static remat_status draw_curve(session *s, const void *object, remat_format format, out *to)
{
    const plot *p = object;
    const double top = 100 * plot_top(p);
    board b = {.x = budgets_of(p), .y = {0, top > 0 ? 1.06 * top : 1, TOP + AREA, TOP}};
    (void)format;
    to->size_unit = s->out->size_unit;
    svg_open(&b.v, to, WIDTH, TOP + AREA + BELOW, session_name(s),
             "Overhead against budget; a line for each strategy; no plan can be in the shade");
    svg_text(&b.v, LEFT, 18, START, "h", "%s", session_name(s));
    const ticks sizes = ticks_of_sizes(to, &b.x, 8), percent = ticks_of_numbers(&b.y, 6, "%");
    svg_axis_x(&b.v, &b.x, TOP, TOP + AREA, &sizes);
    svg_axis_y(&b.v, &b.y, LEFT, WIDTH - RIGHT, &percent);
    draw_bound(&b, p);
    for (size_t k = p->n_lines; k-- > 0;) draw_line(&b, p, k);
    svg_rule(&b.v, LEFT, TOP + AREA, WIDTH - RIGHT, TOP + AREA, "axis");
    svg_text(&b.v, (LEFT + WIDTH - RIGHT) / 2.0, TOP + AREA + 34, MIDDLE, "q",
             "budget; keep-all needs %s", out_exact(to, s->info.keep_all_peak_bytes).text);
    svg_text(&b.v, WIDTH - RIGHT, 18, END, "q", "overhead in %% of keep-all's cost");
    draw_names(&b, p);
    svg_close(&b.v);
    return REMAT_OK;
}

int curve_svg(session *s, const plot *p)
{
    return p->n_lines > 0 ? session_write_svg(s, draw_curve, p) : REMAT_OK;
}

/* ---- compare ---- */

enum { NAMES = 112, BAR_TOP = 54, ROW = 24, THICK = 14, WORDS = 150 };

typedef struct bars {
    svg v;
    scale x; /* overhead in percent */
    double bound;
} bars;

static double bound_of(const reports *r)
{
    double best = -1;
    for (size_t i = 0; i < r->n; i++) {
        remat_summary m = r->items[i].summary;
        if (!r->items[i].plan || !m.within_budget || m.any_order_cost < 0) continue;
        m.cost = m.any_order_cost;
        if (report_overhead(&m) > best) best = report_overhead(&m);
    }
    return best;
}

static void draw_bar(bars *b, const remat_summary *m, double y)
{
    const double overhead = report_overhead(m), end = scale_at(&b->x, 100 * overhead),
                 proved = b->bound > 0 ? b->bound : 0,
                 middle = scale_at(&b->x, 100 * (proved < overhead ? proved : overhead));
    const label note = note_of(m);
    const amount gap = report_gap_text(m, m->any_order_cost);
    const bool best = m->cost == m->any_order_cost;
    svg_rect(&b->v, b->x.from, y, middle - b->x.from, THICK, "bar", note.text);
    if (end > middle) svg_rect(&b->v, middle, y, end - middle, THICK, "gap", note.text);
    svg_text(&b->v, (end > b->x.from ? end : b->x.from) + 6, y + 11, START, "", "+%s%s%s%s",
             human_percent(overhead).text,
             best               ? ", optimal"
             : *gap.text == '-' ? ""
                                : ", gap ",
             best || *gap.text == '-' ? "" : gap.text, "");
}

static void draw_row(bars *b, const report *r, double y)
{
    const remat_summary *m = &r->summary;
    svg_text(&b->v, NAMES - 8, y + 11, END, "", "%s", m->strategy);
    if (!r->plan) svg_text(&b->v, NAMES + 6, y + 11, START, "q", "does not apply");
    else if (!m->within_budget)
        svg_text(&b->v, NAMES + 6, y + 11, START, "q", "%s: least peak %s",
                 m->outcome == REMAT_INFEASIBLE ? "proved not to fit" : "found nothing that fits",
                 out_size(b->v.out, m->peak_bytes).text);
    else draw_bar(b, m, y);
}

static void draw_keys(bars *b, double y)
{
    svg_rect(&b->v, NAMES, y - 9, 22, 11, "bar", NULL);
    svg_text(&b->v, NAMES + 28, y, START, "", "proved: every plan costs this");
    svg_rect(&b->v, NAMES + 206, y - 9, 22, 11, "gap", NULL);
    svg_text(&b->v, NAMES + 234, y, START, "", "above that: its gap");
}

static remat_status draw_compare(session *s, const void *object, remat_format format, out *to)
{
    const reports *r = object;
    double top = 0;
    for (size_t i = 0; i < r->n; i++) {
        const double overhead = 100 * report_overhead(&r->items[i].summary);
        if (r->items[i].plan && r->items[i].summary.within_budget && overhead > top) top = overhead;
    }
    const double bottom = BAR_TOP + ROW * (double)r->n;
    const int64_t budget = r->n > 0 ? r->items[0].summary.budget_bytes : REMAT_ABSENT;
    bars b = {.x = {0, top > 0 ? top : 1, NAMES, WIDTH - WORDS}, .bound = bound_of(r)};
    (void)format;
    to->size_unit = s->out->size_unit;
    svg_open(&b.v, to, WIDTH, (int)bottom + 50, session_name(s),
             "Overhead of every strategy, and its gap to what is proved");
    svg_text(&b.v, NAMES, 18, START, "h", "%s", session_name(s));
    if (budget >= 0)
        svg_text(&b.v, NAMES, 34, START, "q", "budget %s, keep-all needs %s",
                 out_size(to, budget).text, out_size(to, s->info.keep_all_peak_bytes).text);
    const ticks percent = ticks_of_numbers(&b.x, 6, "%");
    svg_axis_x(&b.v, &b.x, BAR_TOP - 6, bottom, &percent);
    for (size_t i = 0; i < r->n; i++)
        draw_row(&b, &r->items[i], BAR_TOP + ROW * (double)i + (ROW - THICK) / 2.0 - 3);
    svg_rule(&b.v, NAMES, BAR_TOP - 6, NAMES, bottom, "axis");
    draw_keys(&b, bottom + 38);
    svg_close(&b.v);
    return REMAT_OK;
}

/* Where no strategy applies there is nothing to draw, and rows_status says so. */
int compare_svg(session *s, const reports *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->items[i].plan) return session_write_svg(s, draw_compare, r);
    return REMAT_OK;
}
