/* svg.c: an SVG writer: text, rectangles, stairs, marks and axes.
 *
 * The file stands alone: no script, no font, no link. Its look is a style sheet of a few classes.
 * Fills differ in lightness and hatching, lines in dashes and marks, so that a picture reads
 * without colour. Colours are those of Okabe and Ito, which colour-blind readers tell apart. A
 * reader with a dark screen gets dark paper.
 *
 * Invariant: text is decoded strictly. What XML forbids or obeys, and what a reader cannot see,
 * does not get through. So any name gives a valid file. Numbers do not depend on the locale.
 *
 * Coordinates are rounded to a tenth of a pixel, and pieces of a path that this makes equal are
 * joined. Cost: linear in what is written. */
#include "svg.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "utf8.h"

enum { LONGEST_TEXT = 200 }; /* characters */

static const char look[] =
    "text{font:11px Helvetica,Arial,sans-serif;fill:#1f2328}"
    ".h{font-weight:bold;font-size:13px}.b{font-weight:bold}.q{fill:#57606a}"
    ".paper{fill:#fff}.grid{stroke:#d8dee4;stroke-width:.6}.axis{stroke:#57606a}"
    ".limit{stroke:#d55e00;stroke-width:1.5;stroke-dasharray:7 3}"
    "text.limit{fill:#b84f00;stroke:none}.peak{fill:#1f2328}"
    ".resident{fill:#6e7781}.forward{fill:#9ccff0}.backward{fill:#00795a}"
    ".again{fill:url(#again)}.work{fill:#f0e442}.never{fill:url(#never)}"
    ".bar{fill:#56b4e9}.gap{fill:url(#gap)}.box{stroke:#1f2328;stroke-width:.3}"
    ".edge{fill:none;stroke:#57606a;stroke-width:.8}"
    ".l0,.l1,.l2,.l3,.l4,.l5{fill:none;stroke-width:1.8;stroke-linejoin:round}"
    ".l0{stroke:#0072b2}.l1{stroke:#d55e00;stroke-dasharray:7 3}"
    ".l2{stroke:#009e73;stroke-dasharray:2 2}.l3{stroke:#aa4499;stroke-dasharray:9 3 2 3}"
    ".l4{stroke:#b58900;stroke-dasharray:4 2}.l5{stroke:#7f8790;stroke-dasharray:12 3}"
    ".m0{fill:#0072b2}.m1{fill:#d55e00}.m2{fill:#009e73}.m3{fill:#aa4499}.m4{fill:#b58900}"
    ".m5{fill:#7f8790}"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.q{fill:#9198a1}.paper{fill:#0d1117}"
    ".grid{stroke:#30363d}.axis,.edge{stroke:#9198a1}.peak{fill:#e6edf3}"
    "text.limit{fill:#ff9a57}.l0{stroke:#4aa3df}.m0{fill:#4aa3df}}";

/* Hatches: made again; where no plan can be; above the bound. */
static const char hatches[] =
    "<pattern id=\"again\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#fbd38d\"/>"
    "<rect width=\"2\" height=\"6\" fill=\"#c05600\"/></pattern>"
    "<pattern id=\"never\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(-45)\"><rect width=\"7\" height=\"7\" fill=\"#8c959f\" "
    "fill-opacity=\".22\"/><rect width=\"1\" height=\"7\" fill=\"#8c959f\"/></pattern>"
    "<pattern id=\"gap\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\"><rect width=\"5\" height=\"5\" fill=\"#fbd38d\"/>"
    "<rect width=\"1.6\" height=\"5\" fill=\"#c05600\"/></pattern>";

/* ---- text ---- */

/* May this character stand in XML 1.0, and be seen? */
static bool is_fit(size_t length, uint32_t code)
{
    return length > 0 && !utf8_unsafe(code) && (code & 0xfffe) != 0xfffe &&
           !(code >= 0xfdd0 && code <= 0xfdef);
}

static void put_text(out *o, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    for (int n = 0; *p; n++) {
        uint32_t code;
        const size_t length = utf8_decode(p, &code);
        if (n == LONGEST_TEXT) {
            out_print(o, "…");
            return;
        }
        if (!is_fit(length, code)) out_print(o, "?");
        else if (code == '<') out_print(o, "&lt;");
        else if (code == '>') out_print(o, "&gt;");
        else if (code == '&') out_print(o, "&amp;");
        else out_print(o, "%.*s", (int)length, (const char *)p);
        p += length ? length : 1;
    }
}

void svg_open(svg *v, out *to, int width, int height, const char *title, const char *about)
{
    *v = (svg){.out = to, .width = width, .height = height};
    to->utf8 = true; /* whatever the locale */
    out_print(to,
              "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
              "viewBox=\"0 0 %d %d\" role=\"img\">\n<title>",
              width, height, width, height);
    put_text(to, title);
    out_print(to, "</title>\n<desc>");
    put_text(to, about);
    out_print(to, "</desc>\n<style>%s</style>\n<defs>%s</defs>\n", look, hatches);
    out_print(to, "<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n", width, height);
}

void svg_close(svg *v) { out_print(v->out, "</svg>\n"); }

void svg_text(svg *v, double x, double y, anchor at, const char *paint, const char *format, ...)
{
    static const char *const anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    char text[800];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    out_print(v->out, "<text x=\"%.1f\" y=\"%.1f\"%s", x, y, anchors[at]);
    if (*paint) out_print(v->out, " class=\"%s\"", paint);
    out_print(v->out, ">");
    put_text(v->out, text);
    out_print(v->out, "</text>\n");
}

/* Ends an element that may have a note. */
static void put_note(svg *v, const char *element, const char *note)
{
    if (!note) {
        out_print(v->out, "/>\n");
        return;
    }
    out_print(v->out, "><title>");
    put_text(v->out, note);
    out_print(v->out, "</title></%s>\n", element);
}

/* ---- shapes ---- */

void svg_rect(svg *v, double x, double y, double width, double height, const char *paint,
              const char *note)
{
    out_print(v->out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" class=\"%s\"", x,
              y, width, height, paint);
    put_note(v, "rect", note);
}

void svg_mark(svg *v, double x, double y, int shape, const char *note)
{
    static const char *const forms[SVG_LINES] = {"m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0z",
                                                 "m-3-3h6v6h-6z",
                                                 "m0-4.2l4 7h-8z",
                                                 "m0-4.2l4.2 4.2l-4.2 4.2l-4.2-4.2z",
                                                 "m0 4.2l4-7h-8z",
                                                 "m-4-1.2h8v2.4h-8z"};
    assert(shape >= 0);
    out_print(v->out, "<path class=\"m%d\" d=\"M%.1f %.1f%s\"", shape % SVG_LINES, x, y,
              forms[shape % SVG_LINES]);
    put_note(v, "path", note);
}

void svg_dot(svg *v, double x, double y, const char *paint, const char *note)
{
    out_print(v->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" class=\"%s\"", x, y, paint);
    put_note(v, "circle", note);
}

void svg_rule(svg *v, double x1, double y1, double x2, double y2, const char *paint)
{
    out_print(v->out, "<path class=\"%s\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", paint, x1, y1, x2, y2);
}

void svg_sample(svg *v, double x, double y, int shape)
{
    char paint[16];
    snprintf(paint, sizeof paint, "l%d", shape % SVG_LINES);
    svg_rule(v, x - 11, y, x + 11, y, paint);
    svg_mark(v, x, y, shape, NULL);
}

/* ---- paths ---- */

/* Tenths, as short as it goes: 5 is ".5", -30 is "-3". */
static void put_tenths(out *o, char command, long tenths)
{
    const long whole = labs(tenths) / 10, part = labs(tenths) % 10;
    out_print(o, "%c%s", command, tenths < 0 ? "-" : "");
    if (whole > 0 || part == 0) out_print(o, "%ld", whole);
    if (part > 0) out_print(o, ".%ld", part);
}

void svg_begin(svg *v, double x, double y, const char *paint)
{
    assert(!v->open);
    v->open = true;
    v->x = v->wanted_x = lround(10 * x);
    v->y = lround(10 * y);
    out_print(v->out, "<path class=\"%s\" d=\"M%.1f %.1f", paint, (double)v->x / 10,
              (double)v->y / 10);
}

void svg_level(svg *v, double x) { v->wanted_x = lround(10 * x); }

static void put_level(svg *v)
{
    if (v->wanted_x == v->x) return;
    put_tenths(v->out, 'h', v->wanted_x - v->x);
    v->x = v->wanted_x;
}

void svg_upright(svg *v, double y)
{
    const long wanted = lround(10 * y);
    if (wanted == v->y) return;
    put_level(v);
    put_tenths(v->out, 'v', wanted - v->y);
    v->y = wanted;
}

void svg_end(svg *v, bool close)
{
    put_level(v);
    out_print(v->out, "%s\"/>\n", close ? "z" : "");
    v->open = false;
}

/* ---- axes ---- */

double scale_at(const scale *s, double value)
{
    if (s->high <= s->low) return s->from;
    return s->from + (value - s->low) / (s->high - s->low) * (s->to - s->from);
}

/* 1, 2 or 5 times a power of ten, so that not more than `most` of them make `range`. */
static double round_step(double range, int most)
{
    static const double factors[] = {1, 2, 5, 10};
    const double power = range > 0 ? pow(10, floor(log10(range / most))) : 1;
    size_t i = 0;
    while (i + 1 < LEN(factors) && power * factors[i] * most < range) i++;
    return power * factors[i];
}

ticks ticks_of_numbers(const scale *s, int most, const char *name)
{
    return (ticks){.step = round_step(s->high - s->low, most), .unit = 1, .name = name};
}

ticks ticks_of_sizes(const out *o, const scale *s, int most)
{
    static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
    double unit = 1;
    size_t i = 0;
    if (o->size_unit) return ticks_of_numbers(s, most, "");
    for (; s->high / unit >= 1024 && i + 1 < LEN(units); i++) unit *= 1024;
    const double step = unit * round_step((s->high - s->low) / unit, most);
    ticks t = {.step = step, .unit = unit, .name = units[i]};
    if (t.step < 1) t.step = 1; /* bytes are whole */
    return t;
}

static label tick_label(const ticks *t, double value)
{
    label text;
    snprintf(text.text, sizeof text.text, "%.6g%s", value / t->unit, value > 0 ? t->name : "");
    return text;
}

/* Past the end by a hair is rounding. */
static bool is_on(const scale *s, double value)
{
    return value <= s->high + 1e-9 * (s->high - s->low);
}

void svg_axis_x(svg *v, const scale *x, double top, double bottom, const ticks *t)
{
    for (double k = ceil(x->low / t->step); is_on(x, k * t->step); k++) {
        const double at = scale_at(x, k * t->step);
        svg_rule(v, at, top, at, bottom, "grid");
        svg_text(v, at, bottom + 14, MIDDLE, "q", "%s", tick_label(t, k * t->step).text);
    }
}

void svg_axis_y(svg *v, const scale *y, double left, double right, const ticks *t)
{
    for (double k = ceil(y->low / t->step); is_on(y, k * t->step); k++) {
        const double at = scale_at(y, k * t->step);
        svg_rule(v, left, at, right, at, "grid");
        svg_text(v, left - 6, at + 4, END, "q", "%s", tick_label(t, k * t->step).text);
    }
}
