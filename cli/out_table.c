/* out_table.c: tables that fit the terminal.
 *
 * Cells are collected first. So each column is as wide as its widest cell. Where a row is wider
 * than the terminal, the widest column marked L gives way, and its cells are cut with an ellipsis.
 * Invariant: cells are clean text (out_clean or our own). */
#include <assert.h>
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
    if (align == 'r') out_print(t->out, "%*s", pad, "");
    if (c->style == PLAIN) out_print(t->out, "%s", text.text);
    else
        out_print(t->out, "%s%s%s", out_style(t->out, c->style), text.text,
                  out_style(t->out, PLAIN));
    if (align != 'r' && !last) out_print(t->out, "%*s", pad, "");
}

/* As wide as the widest cell, or less where the terminal is narrow. */
static void find_widths(const table *t, size_t n_columns, int width[MAX_COLUMNS])
{
    int total = -GAP;
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
}

void table_print(table *t)
{
    const size_t n_columns = strlen(t->align);
    int width[MAX_COLUMNS] = {0};
    assert(n_columns > 0 && n_columns <= MAX_COLUMNS && t->n_cells % n_columns == 0);
    find_widths(t, n_columns, width);
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
