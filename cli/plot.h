/* plot.h: overhead against budget, for one strategy or several. */
#ifndef CLI_PLOT_H
#define CLI_PLOT_H

#include "report.h"

typedef struct line {
    const char *name;
    const report *rows; /* n of them, at rising budgets; each with a plan */
    size_t n;
} line;

typedef struct plot {
    const line *lines;
    size_t n_lines;
    int64_t from_bytes, to_bytes;
} plot;

/* A plan is a plan at every larger budget, too: the cheapest row at `budget` or below, or NULL. */
const report *line_at(const line *x, int64_t budget);
/* No plan within `budget` has a lower overhead, in any order. INFINITY: none fits; -1: nothing is
 * proved. */
double plot_bound(const plot *p, int64_t budget);
double plot_top(const plot *p); /* the largest overhead of a row that fits */

void plot_draw(out *o, const plot *p); /* in characters */

#endif
