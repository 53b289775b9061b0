/* svg.h: pictures for papers and READMEs: one small writer, one look.
 *
 * A length is in pixels, y grows downwards. A class is a name of the style sheet in svg.c. */
#ifndef CLI_SVG_H
#define CLI_SVG_H

#include "out.h"

enum { SVG_LINES = 6 }; /* how many lines look different: classes "l0" to "l5" */

typedef struct svg {
    out *out;
    int width, height;
    /* The path at hand. Lengths are in tenths, so that relative moves add up exactly. */
    long x, y, wanted_x;
    bool open;
} svg;

/* `title` is the picture's name, `about` what it shows, for those who cannot see it. Both and all
 * text may come from a file: nothing in it can become markup. */
void svg_open(svg *v, out *to, int width, int height, const char *title, const char *about);
void svg_close(svg *v);

typedef enum anchor { START, MIDDLE, END } anchor;
void svg_text(svg *v, double x, double y, anchor at, const char *paint, const char *format, ...)
    CLI_PRINTF(6, 7);
/* `note`, shown under the pointer, is printed with exact numbers; NULL: none. */
void svg_rect(svg *v, double x, double y, double width, double height, const char *paint,
              const char *note);
void svg_dot(svg *v, double x, double y, const char *paint, const char *note);
void svg_mark(svg *v, double x, double y, int shape, const char *note); /* of line `shape` */
void svg_sample(svg *v, double x, double y, int shape); /* a line and its mark, for a legend */
void svg_rule(svg *v, double x1, double y1, double x2, double y2, const char *paint);

/* A path of level and upright pieces. */
void svg_begin(svg *v, double x, double y, const char *paint);
void svg_level(svg *v, double x);   /* to the right or left, later joined with the next */
void svg_upright(svg *v, double y); /* up or down */
void svg_end(svg *v, bool close);

/* ---- axes ---- */

typedef struct scale {
    double low, high; /* values at the ends */
    double from, to;  /* pixels there */
} scale;
double scale_at(const scale *s, double value);

typedef struct ticks {
    double step, unit; /* a label is value / unit, then the name */
    const char *name;
} ticks;
/* At most `most` steps. Sizes are in units of 1024, unless they have a unit of their own. */
ticks ticks_of_sizes(const out *o, const scale *s, int most);
ticks ticks_of_numbers(const scale *s, int most, const char *name);
/* Rules and labels. */
void svg_axis_x(svg *v, const scale *x, double top, double bottom, const ticks *t);
void svg_axis_y(svg *v, const scale *y, double left, double right, const ticks *t);

#endif
