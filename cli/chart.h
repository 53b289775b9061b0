/* chart.h: columns drawn in characters, and the memory of a schedule step by step. */
#ifndef CLI_CHART_H
#define CLI_CHART_H

#include "out.h"
#include "session.h"

typedef struct chart {
    const char *title, *note; /* note: the rest of the title's line */
    const int64_t *values;    /* one a sample, not negative */
    size_t n_values;
    size_t span;   /* samples that the full width stands for, at least n_values */
    int64_t top;   /* value of the upper edge */
    int64_t base;  /* up to here columns are shaded: resident bytes */
    int64_t limit; /* a line across, or negative */
    int rows;
    amount (*show)(const out *o, int64_t value); /* labels of the axis */
} chart;

int chart_columns(const out *o); /* how many columns of samples a chart has */
void chart_draw(out *o, const chart *c);
void chart_axis(out *o, const chart *c, int r); /* the label of row r, and the axis */
void chart_floor(out *o, const chart *c);       /* the line below */
/* A line below the chart: a mark under the column of `sample` with text beside it. */
void chart_mark(out *o, const chart *c, size_t sample, const char *text);

typedef struct timeline {
    int64_t *bytes; /* memory while each step runs */
    size_t n_steps, peak_step;
    int64_t peak_bytes;
    remat_program *program; /* of a graph */
} timeline;

/* The plan is valid. Exit codes as in session.h. */
int timeline_make(session *s, const remat_plan *plan, timeline *t);
void timeline_free(timeline *t);

#endif
