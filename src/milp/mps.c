/* mps.c: a program as free MPS, and solutions of other solvers read back.
 *
 * Numbers are written with 17 digits, so that they come back as they were. Rows are named c0, c1,
 * ...; ranges are written where a row has two limits. A solution is any text in which a column's
 * name is followed by its value: that covers the files of HiGHS, SCIP, Gurobi, CPLEX' own short
 * form, CBC and GLPK. Cost: O(entries) to write; O(bytes + columns log columns) to read. */
#include <inttypes.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csr.h"
#include "milp/model.h"

/* ---- numbers with a point, whatever the locale of the program around us ---- */

typedef struct c_numbers {
    locale_t c, before;
} c_numbers;

static remat_status begin_numbers(remat_ctx *ctx, c_numbers *n)
{
    n->c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (!n->c) return rm_fail(ctx, REMAT_E_MEMORY, "out of memory");
    n->before = uselocale(n->c);
    return REMAT_OK;
}

static void end_numbers(const c_numbers *n)
{
    uselocale(n->before);
    freelocale(n->c);
}

/* ---- write ---- */

typedef struct writer {
    remat_ctx *ctx;
    remat_sink *sink;
    void *user;
    char buffer[4096];
    size_t n;
    c_numbers numbers;
} writer;

static remat_status flush(writer *w)
{
    const size_t n = w->n;
    w->n = 0;
    if (n == 0) return REMAT_OK;
    const locale_t ours = uselocale(w->numbers.before); /* the sink is not ours */
    const int answer = w->sink(w->user, w->buffer, n);
    uselocale(ours);
    if (answer != 0) return rm_fail(w->ctx, REMAT_E_IO, "the program cannot be written");
    return REMAT_OK;
}

static remat_status line(writer *w, const char *format, ...) RM_PRINTF(2, 3);
static remat_status line(writer *w, const char *format, ...)
{
    va_list list;
    if (sizeof w->buffer - w->n < 256) TRY(flush(w));
    va_start(list, format);
    w->n += (size_t)vsnprintf(w->buffer + w->n, sizeof w->buffer - w->n, format,
                              list); /* no line is that long */
    va_end(list);
    return REMAT_OK;
}

void rm_column_name_text(const rm_column_name *name, char text[RM_NAME_ROOM])
{
    int n = snprintf(text, RM_NAME_ROOM, "%c", name->letter);
    for (int i = 0; i < name->n; i++)
        n += snprintf(text + n, (size_t)(RM_NAME_ROOM - n), "_%" PRIu32, name->index[i]);
}

static char kind_of(const rm_row *row)
{
    return row->lower == row->upper ? 'E' : row->upper < INFINITY ? 'L' : 'G';
}

typedef struct entry {
    uint32_t row;
    double value;
} entry;

/* The transpose: entries by column. */
static remat_status by_column(remat_ctx *ctx, const rm_model *m, uint32_t **begin, entry **entries)
{
    const uint32_t n_columns = (uint32_t)m->columns.n;
    const rm_term *terms = m->terms.items;
    TRY(rm_csr_begin(ctx, n_columns, begin));
    for (size_t k = 0; k < m->n_done; k++) rm_csr_count(*begin, terms[k].column);
    TRY(RM_SCRATCH(ctx, *entries, rm_csr_sum(*begin, n_columns)));
    for (uint32_t r = 0; r < m->rows.n; r++)
        for (int32_t k = m->row_begin.items[r]; k < m->row_begin.items[r + 1]; k++)
            (*entries)[rm_csr_place(*begin, terms[k].column)] = (entry){r, terms[k].value};
    return REMAT_OK;
}

static remat_status write_columns(writer *w, const rm_model *m)
{
    uint32_t *begin;
    entry *entries;
    bool inside = false; /* of a block of integers */
    int n_markers = 0;
    TRY(by_column(w->ctx, m, &begin, &entries));
    TRY(line(w, "COLUMNS\n"));
    for (uint32_t i = 0; i < m->columns.n; i++) {
        const rm_column *c = &m->columns.items[i];
        char name[RM_NAME_ROOM];
        rm_column_name_text(&c->name, name);
        if (c->integer != inside) {
            inside = c->integer;
            TRY(line(w, " M%d 'MARKER' '%s'\n", n_markers++, inside ? "INTORG" : "INTEND"));
        }
        if (c->cost != 0 || begin[i] == begin[i + 1])
            TRY(line(w, " %s cost %.17g\n", name, c->cost));
        for (uint32_t k = begin[i]; k < begin[i + 1]; k++)
            TRY(line(w, " %s c%" PRIu32 " %.17g\n", name, entries[k].row, entries[k].value));
    }
    if (inside) TRY(line(w, " M%d 'MARKER' 'INTEND'\n", n_markers));
    return REMAT_OK;
}

static remat_status write_limits(writer *w, const rm_model *m)
{
    TRY(line(w, "RHS\n"));
    for (uint32_t r = 0; r < m->rows.n; r++) {
        const double limit =
            kind_of(&m->rows.items[r]) == 'G' ? m->rows.items[r].lower : m->rows.items[r].upper;
        if (limit != 0) TRY(line(w, " rhs c%" PRIu32 " %.17g\n", r, limit));
    }
    TRY(line(w, "RANGES\n"));
    for (uint32_t r = 0; r < m->rows.n; r++) {
        const rm_row *row = &m->rows.items[r];
        if (row->lower > -INFINITY && row->upper < INFINITY && row->lower != row->upper)
            TRY(line(w, " range c%" PRIu32 " %.17g\n", r, row->upper - row->lower));
    }
    TRY(line(w, "BOUNDS\n"));
    for (uint32_t i = 0; i < m->columns.n; i++) {
        const rm_column *c = &m->columns.items[i];
        char name[RM_NAME_ROOM];
        rm_column_name_text(&c->name, name);
        if (c->lower == c->upper) {
            TRY(line(w, " FX bound %s %.17g\n", name, c->lower));
            continue;
        }
        if (c->lower == -INFINITY) TRY(line(w, " MI bound %s\n", name));
        else if (c->lower != 0) TRY(line(w, " LO bound %s %.17g\n", name, c->lower));
        if (c->upper < INFINITY) TRY(line(w, " UP bound %s %.17g\n", name, c->upper));
    }
    return line(w, "ENDATA\n");
}

static remat_status write_mps(writer *w, const rm_model *m, const char *name)
{
    char clean[64];
    snprintf(clean, sizeof clean, "%s", *name ? name : "program");
    for (char *c = clean; *c; c++)
        if (*c <= ' ' || *c > '~') *c = '_';
    TRY(line(w, "NAME %s\nROWS\n N cost\n", clean));
    for (uint32_t r = 0; r < m->rows.n; r++)
        TRY(line(w, " %c c%" PRIu32 "\n", kind_of(&m->rows.items[r]), r));
    TRY(write_columns(w, m));
    TRY(write_limits(w, m));
    return flush(w);
}

remat_status rm_model_write_mps(remat_ctx *ctx, const rm_model *m, const char *name,
                                remat_sink *sink, void *user)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    c_numbers numbers = {0};
    TRY(begin_numbers(ctx, &numbers));
    writer *w = rm_scratch(ctx, 1, sizeof *w);
    remat_status status = w ? REMAT_OK : REMAT_E_MEMORY;
    if (w) {
        w->ctx = ctx, w->sink = sink, w->user = user, w->numbers = numbers;
        status = write_mps(w, m, name);
    }
    end_numbers(&numbers);
    rm_scratch_release(ctx, mark);
    return status;
}

/* ---- read ---- */

typedef struct named {
    rm_column_name name;
    uint32_t column;
} named;

static int by_name(const void *a, const void *b)
{
    const rm_column_name *x = &((const named *)a)->name, *y = &((const named *)b)->name;
    if (x->letter != y->letter) return x->letter < y->letter ? -1 : 1;
    for (int i = 0; i < 3; i++)
        if (x->index[i] != y->index[i]) return x->index[i] < y->index[i] ? -1 : 1;
    return 0;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '"' || c == '=';
}

/* "R_4_2"; false: no name of ours. */
static bool parse_name(const char *word, size_t n, rm_column_name *out)
{
    *out = (rm_column_name){.letter = word[0]};
    size_t at = 1;
    while (at < n) {
        uint64_t number = 0;
        const size_t first = at + 1;
        if (word[at++] != '_' || out->n == 3) return false;
        for (; at < n && word[at] >= '0' && word[at] <= '9'; at++)
            if ((number = 10 * number + (uint64_t)(word[at] - '0')) > UINT32_MAX) return false;
        if (at == first) return false;
        out->index[out->n++] = (uint32_t)number;
    }
    return out->n > 0;
}

static bool parse_number(const char *word, size_t n, double *out)
{
    char text[64], *end;
    if (n == 0 || n >= sizeof text) return false;
    memcpy(text, word, n);
    text[n] = '\0';
    *out = strtod(text, &end);
    return *end == '\0' && *out - *out == 0;
}

static remat_status read_solution(remat_ctx *ctx, const rm_model *m, const char *text,
                                  size_t n_bytes, double *x)
{
    named *names;
    size_t n_found = 0, row = 1;
    const named *waiting = NULL; /* the last word was its name */
    TRY(RM_SCRATCH(ctx, names, m->columns.n));
    for (uint32_t i = 0; i < m->columns.n; i++) {
        const rm_column *c = &m->columns.items[i];
        names[i] = (named){c->name, i};
        x[i] = c->lower > 0 ? c->lower : c->upper < 0 ? c->upper : 0;
    }
    qsort(names, m->columns.n, sizeof *names, by_name);
    for (size_t at = 0; at < n_bytes;) {
        if (is_space(text[at])) {
            row += text[at++] == '\n';
            continue;
        }
        const char *word = text + at;
        named key;
        while (at < n_bytes && !is_space(text[at])) at++;
        const size_t n = (size_t)(text + at - word);
        if (waiting) {
            char place[40];
            double value;
            snprintf(place, sizeof place, "line %zu", row);
            if (!parse_number(word, n, &value))
                return rm_fail_at(ctx, REMAT_E_INPUT, place, "'%.*s' is no value",
                                  n < 40 ? (int)n : 40, word);
            x[waiting->column] = value;
            waiting = NULL;
            n_found++;
        } else if (parse_name(word, n, &key.name)) {
            waiting =
                m->columns.n ? bsearch(&key, names, m->columns.n, sizeof *names, by_name) : NULL;
        }
    }
    if (n_found == 0)
        return rm_fail(
            ctx, REMAT_E_INPUT,
            "no value of the program's columns: is it a solution of this graph's program?");
    return REMAT_OK;
}

remat_status rm_model_read_solution(remat_ctx *ctx, const rm_model *m, const char *text,
                                    size_t n_bytes, double *x)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    c_numbers numbers = {0};
    TRY(begin_numbers(ctx, &numbers));
    const remat_status status = read_solution(ctx, m, text, n_bytes, x);
    end_numbers(&numbers);
    rm_scratch_release(ctx, mark);
    return status;
}
