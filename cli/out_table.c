/* out_table.c: tables that fit the terminal.
 *
 * Cells are collected first, so that each column is as wide as its widest cell; where a row is
 * wider than the terminal the widest column marked L gives way, its cells cut with an ellipsis.
 * Invariant: cells are clean text (out_clean or our own). */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "out.h"

enum { MAX_COLUMNS = 12, GAP = 2, LEAST_CUT = 8 };

void table_cell(table *t, style s, const char *format, ...)
{
    if (t->n_cells == t->capacity) {
        t->capacity = t->capacity ? 2 * t->capacity : 64;
        t->cells = out_resize(t->cells, t->capacity, sizeof *t->cells);
    }
    cell *c = &t->cells[t->n_cells++];
    c->style = s;
    va_list list;
    va_start(list, format);
    vsnprintf(c->text.text, sizeof c->text.text, format, list);
    va_end(list);
}

static void put_cell(const table *t, const cell *c, int width, char align, bool last)
{
    const label text = out_clean(t->out, c->text.text, width);
    const int pad = width - out_columns(t->out, text.text);
    out_print(t->out, "%*s%s%s%s%*s", align == 'r' ? pad : 0, "",
              c->style == PLAIN ? "" : out_style(t->out, c->style), text.text,
              c->style == PLAIN ? "" : out_style(t->out, PLAIN), align == 'r' || last ? 0 : pad,
              "");
}

void table_print(table *t)
{
    const size_t n_columns = strlen(t->align);
    int width[MAX_COLUMNS] = {0}, total = -GAP;
    for (size_t i = 0; i < t->n_cells; i++) {
        const int columns = out_columns(t->out, t->cells[i].text.text);
        if (columns > width[i % n_columns]) width[i % n_columns] = columns;
    }
    for (size_t i = 0; i < n_columns; i++) total += width[i] + GAP;
    for (; total > t->out->width; total--) {
        size_t widest = n_columns;
        for (size_t i = 0; i < n_columns; i++)
            if (t->align[i] == 'L' && width[i] > LEAST_CUT &&
                (widest == n_columns || width[i] > width[widest]))
                widest = i;
        if (widest == n_columns) break;
        width[widest]--;
    }
    for (size_t row = 0; row + n_columns <= t->n_cells; row += n_columns) {
        size_t n = n_columns; /* empty cells at the end are not padded */
        while (n > 1 && !*t->cells[row + n - 1].text.text) n--;
        for (size_t i = 0; i < n; i++) {
            put_cell(t, &t->cells[row + i], width[i], t->align[i], i + 1 == n);
            out_print(t->out, "%*s", i + 1 < n ? GAP : 0, "");
        }
        out_print(t->out, "\n");
    }
    free(t->cells);
    t->cells = NULL;
    t->n_cells = t->capacity = 0;
}
