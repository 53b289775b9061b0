/* chart.c: column charts in block characters, eight levels a row. Where the locale is not UTF-8
 * they are ASCII.
 *
 * Each column shows the maximum of its samples. So a peak of one step among thousands is seen. A
 * row stands for top / rows. A column that is not empty shows at least one eighth. Doubles are for
 * drawing only. */
#include "chart.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "chain_play.h"

enum { AXIS = 9, MARGIN = AXIS + 2 };

int chart_columns(const out *o) { return o->width - MARGIN - 1; }

/* -1: past the last sample. */
static int64_t column_value(const chart *c, int column, int columns)
{
    const size_t first = (size_t)((double)column * (double)c->span / columns);
    size_t end = (size_t)((double)(column + 1) * (double)c->span / columns);
    if (first >= c->n_values) return -1;
    if (end <= first) end = first + 1;
    if (end > c->n_values) end = c->n_values;
    int64_t most = 0;
    for (size_t i = first; i < end; i++)
        if (c->values[i] > most) most = c->values[i];
    return most;
}

static int eighths(const chart *c, int64_t value)
{
    if (value <= 0 || c->top <= 0) return 0;
    const int n = (int)((double)value / (double)c->top * 8 * c->rows + 0.5);
    if (n < 1) return 1;
    return n > 8 * c->rows ? 8 * c->rows : n;
}

static int limit_row(const chart *c)
{
    if (c->limit < 0 || c->limit > c->top || c->top <= 0) return -1;
    const int row = (int)((double)c->limit / (double)c->top * c->rows);
    return row < c->rows ? row : c->rows - 1;
}

static const char *block(const out *o, int level, bool shaded)
{
    static const char *const fine[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const coarse[] = {" ", ".", ".", ".", ":", ":", ":", "#", "#"};
    if (shaded && level == 8) return o->utf8 ? "░" : "=";
    return o->utf8 ? fine[level] : coarse[level];
}

void chart_axis(out *o, const chart *c, int r)
{
    const int line = limit_row(c);
    const int top_row = c->rows - 1, middle_row = c->rows / 2 - 1;
    const char *tick = o->utf8 ? "│" : "|";
    amount text = {""};
    if (r == line) {
        text = c->show(o, c->limit);
        tick = o->utf8 ? "╞" : "+";
    } else if (r == top_row || (r == middle_row && r + 1 != line && r - 1 != line)) {
        const int64_t value = (int64_t)((double)c->top * (r + 1) / c->rows);
        text = c->show(o, r == top_row ? c->top : value);
        tick = o->utf8 ? "┤" : "+";
    }
    out_print(o, "%s%*s %s%s", r == line ? out_style(o, LIMIT) : "", AXIS, text.text, tick,
              r == line ? out_style(o, PLAIN) : "");
}

/* Row r of the columns. Those below row `base` are shaded. */
static void draw_row(out *o, const int *height, int columns, int r, int line, int base)
{
    style now = PLAIN;
    int blanks = 0;
    for (int x = 0; x < columns; x++) {
        int level = height[x] - 8 * r;
        style want = r < base ? DIM : BAR;
        if (level > 8) level = 8;
        if (level <= 0 && r != line) { /* printed only before something: no line ends in blanks */
            blanks++;
            continue;
        }
        if (level <= 0) want = LIMIT;
        for (; blanks > 0; blanks--) out_print(o, " ");
        if (want != now) out_print(o, "%s%s", out_style(o, PLAIN), out_style(o, want));
        now = want;
        if (level <= 0) out_print(o, "%s", o->utf8 ? "╌" : "-");
        else out_print(o, "%s", block(o, level, r < base));
    }
    out_print(o, "%s\n", now == PLAIN ? "" : out_style(o, PLAIN));
}

void chart_floor(out *o, const chart *c)
{
    out_print(o, "%*s %s", AXIS, c->show(o, 0).text, o->utf8 ? "└" : "+");
    for (int x = 0; x < chart_columns(o); x++) out_print(o, "%s", o->utf8 ? "─" : "-");
    out_print(o, "\n");
}

void chart_draw(out *o, const chart *c)
{
    const int columns = chart_columns(o), line = limit_row(c), base = eighths(c, c->base) / 8;
    int *height = out_resize(NULL, (size_t)columns, sizeof *height);
    assert(c->n_values <= c->span && c->rows > 0);
    out_print(o, "\n%s%s%s%s", out_style(o, BOLD), c->title, out_style(o, PLAIN), c->note);
    if (base > 0) out_print(o, "  (%s resident)", block(o, 8, true));
    out_print(o, "\n");
    for (int x = 0; x < columns; x++) height[x] = eighths(c, column_value(c, x, columns));
    for (int r = c->rows - 1; r >= 0; r--) {
        chart_axis(o, c, r);
        draw_row(o, height, columns, r, line, base);
    }
    chart_floor(o, c);
    free(height);
}

void chart_mark(out *o, const chart *c, size_t sample, const char *text)
{
    const int columns = chart_columns(o), length = out_columns(o, text);
    int x = 0;
    const size_t span = c->span ? c->span : 1;
    while (x + 1 < columns && (size_t)((double)(x + 1) * (double)span / columns) <= sample) x++;
    const char *mark = o->utf8 ? "▲" : "^";
    if (x + 2 + length <= columns) out_print(o, "%*s%s %s\n", MARGIN + x, "", mark, text);
    else if (length + 1 <= MARGIN + x)
        out_print(o, "%*s%s %s\n", MARGIN + x - length - 1, "", text, mark);
    else out_print(o, "%*s%s\n%s\n", MARGIN + x, "", mark, out_clean(o, text, o->width).text);
}

/* The memory of each step of a chain. `bytes` has room for one more. The plan is valid. */
static void play_chain(const remat_chain *chain, const remat_step *steps, size_t n_steps,
                       int64_t *bytes)
{
    uint32_t n_lives;
    chain_life *lives = chain_lives(chain, steps, n_steps, &n_lives);
    for (uint32_t i = 0; i < n_lives; i++) {
        const int64_t size = chain_item_bytes(chain, lives[i].item);
        bytes[lives[i].begin] += size;
        bytes[lives[i].end + 1] -= size;
    }
    for (size_t t = 1; t < n_steps; t++) bytes[t] += bytes[t - 1];
    for (size_t t = 0; t < n_steps; t++) bytes[t] += chain_step_overhead(chain, &steps[t]);
    free(lives);
}

int timeline_make(session *s, const remat_plan *plan, timeline *t)
{
    size_t n_steps, n_statements;
    const remat_step *steps = remat_plan_steps(plan, &n_steps);
    remat_program *program = NULL;
    if (!s->chain) CHECK(s, remat_lower(s->ctx, s->graph, steps, n_steps, &program));
    *t = (timeline){.bytes = out_resize(NULL, n_steps + 1, sizeof *t->bytes),
                    .n_steps = n_steps,
                    .program = program};
    memset(t->bytes, 0, (n_steps + 1) * sizeof *t->bytes);
    if (s->chain) {
        play_chain(s->chain, steps, n_steps, t->bytes);
    } else {
        const remat_statement *statement = remat_program_statements(program, &n_statements);
        for (size_t i = 0; i < n_statements; i++) {
            int64_t *bytes = &t->bytes[statement[i].step_index];
            if (statement[i].memory_bytes > *bytes) *bytes = statement[i].memory_bytes;
        }
    }
    for (size_t i = 0; i < n_steps; i++)
        if (t->bytes[i] > t->peak_bytes) {
            t->peak_bytes = t->bytes[i];
            t->peak_step = i;
        }
    return REMAT_OK;
}

void timeline_free(timeline *t)
{
    remat_program_free(t->program);
    free(t->bytes);
    *t = (timeline){0};
}
