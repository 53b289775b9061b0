/* mps.c: a program as free MPS, and solutions of other solvers read back.
 *
 * Numbers are written with 17 digits, so that they come back as they were. Rows are named c0, c1,
 * and so on. A row with two limits gets a range. A solution is any text in which a column's name is
 * followed by its value. That covers the files of HiGHS, SCIP, Gurobi, CPLEX' own short form, CBC
 * and GLPK. Cost: O(entries) to write; O(bytes + columns log columns) to read. */
#include <assert.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/csr.h"
#include "base/out.h"
#include "milp/model.h"

/* ---- numbers with a point, whatever locale the caller's program has ---- */

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

/* The caller's sink, which runs in the caller's locale. */
typedef struct outside {
    remat_sink *sink;
    void *user;
    const c_numbers *numbers;
} outside;

static int sink_outside(void *user, const void *bytes, size_t n)
{
    const outside *x = user;
    const locale_t ours = uselocale(x->numbers->before);
    const int answer = x->sink(x->user, bytes, n);
    uselocale(ours);
    return answer;
}

void rm_column_name_text(const rm_column_name *name, char text[RM_NAME_ROOM])
{
    assert(name->n <= RM_LEN(name->index));
    int n = snprintf(text, RM_NAME_ROOM, "%c", name->letter);
    for (int i = 0; i < name->n; i++)
        n += snprintf(text + n, (size_t)(RM_NAME_ROOM - n), "_%" PRIu32, name->index[i]);
}

static char kind_of(const rm_row *row)
{
    if (row->lower == row->upper) return 'E';
    return row->upper < INFINITY ? 'L' : 'G';
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

static remat_status write_columns(rm_out *out, const rm_model *m)
{
    uint32_t *begin;
    entry *entries;
    bool inside = false; /* of a block of integers */
    int n_markers = 0;
    TRY(by_column(out->ctx, m, &begin, &entries));
    rm_out_text(out, "COLUMNS\n");
    for (uint32_t i = 0; i < m->columns.n; i++) {
        const rm_column *c = &m->columns.items[i];
        char name[RM_NAME_ROOM];
        rm_column_name_text(&c->name, name);
        if (c->integer != inside) {
            inside = c->integer;
            rm_out_format(out, " M%d 'MARKER' '%s'\n", n_markers, inside ? "INTORG" : "INTEND");
            n_markers++;
        }
        if (c->cost != 0 || begin[i] == begin[i + 1])
            rm_out_format(out, " %s cost %.17g\n", name, c->cost);
        for (uint32_t k = begin[i]; k < begin[i + 1]; k++)
            rm_out_format(out, " %s c%" PRIu32 " %.17g\n", name, entries[k].row, entries[k].value);
    }
    if (inside) rm_out_format(out, " M%d 'MARKER' 'INTEND'\n", n_markers);
    return REMAT_OK;
}

static void write_row_limits(rm_out *out, const rm_model *m)
{
    rm_out_text(out, "RHS\n");
    for (uint32_t r = 0; r < m->rows.n; r++) {
        const rm_row *row = &m->rows.items[r];
        const double limit = kind_of(row) == 'G' ? row->lower : row->upper;
        if (limit != 0) rm_out_format(out, " rhs c%" PRIu32 " %.17g\n", r, limit);
    }
    rm_out_text(out, "RANGES\n");
    for (uint32_t r = 0; r < m->rows.n; r++) {
        const rm_row *row = &m->rows.items[r];
        if (row->lower > -INFINITY && row->upper < INFINITY && row->lower != row->upper)
            rm_out_format(out, " range c%" PRIu32 " %.17g\n", r, row->upper - row->lower);
    }
}

static void write_column_limits(rm_out *out, const rm_model *m)
{
    rm_out_text(out, "BOUNDS\n");
    for (uint32_t i = 0; i < m->columns.n; i++) {
        const rm_column *c = &m->columns.items[i];
        char name[RM_NAME_ROOM];
        rm_column_name_text(&c->name, name);
        if (c->lower == c->upper) {
            rm_out_format(out, " FX bound %s %.17g\n", name, c->lower);
            continue;
        }
        if (c->lower == -INFINITY) rm_out_format(out, " MI bound %s\n", name);
        else if (c->lower != 0) rm_out_format(out, " LO bound %s %.17g\n", name, c->lower);
        if (c->upper < INFINITY) rm_out_format(out, " UP bound %s %.17g\n", name, c->upper);
    }
}

static remat_status write_mps(rm_out *out, const rm_model *m, const char *name)
{
    char clean[64];
    snprintf(clean, sizeof clean, "%s", *name ? name : "program");
    for (char *c = clean; *c; c++)
        if (*c <= ' ' || *c > '~') *c = '_';
    rm_out_format(out, "NAME %s\nROWS\n N cost\n", clean);
    for (uint32_t r = 0; r < m->rows.n; r++)
        rm_out_format(out, " %c c%" PRIu32 "\n", kind_of(&m->rows.items[r]), r);
    TRY(write_columns(out, m));
    write_row_limits(out, m);
    write_column_limits(out, m);
    rm_out_text(out, "ENDATA\n");
    return rm_out_end(out);
}

remat_status rm_model_write_mps(remat_ctx *ctx, const rm_model *m, const char *name,
                                remat_sink *sink, void *user)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    c_numbers numbers = {0};
    rm_out out;
    outside x = {sink, user, &numbers};
    TRY(begin_numbers(ctx, &numbers));
    rm_out_begin(&out, ctx, sink_outside, &x);
    const remat_status status = write_mps(&out, m, name);
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

/* A name such as R_4_2; false: no name of ours. */
static bool parse_name(const char *word, size_t n, rm_column_name *out)
{
    assert(n > 0);
    *out = (rm_column_name){.letter = word[0]};
    size_t at = 1;
    while (at < n) {
        uint64_t number = 0;
        const size_t first = at + 1;
        if (word[at] != '_' || out->n == RM_LEN(out->index)) return false;
        for (at = first; at < n && word[at] >= '0' && word[at] <= '9'; at++) {
            number = 10 * number + (uint64_t)(word[at] - '0');
            if (number > UINT32_MAX) return false;
        }
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
    return *end == '\0' && isfinite(*out);
}

static double nearest_to_0(const rm_column *c)
{
    if (c->lower > 0) return c->lower;
    return c->upper < 0 ? c->upper : 0;
}

static remat_status sort_names(remat_ctx *ctx, const rm_model *m, named **out)
{
    TRY(RM_SCRATCH(ctx, *out, m->columns.n));
    for (uint32_t i = 0; i < m->columns.n; i++) (*out)[i] = (named){m->columns.items[i].name, i};
    qsort(*out, m->columns.n, sizeof **out, by_name);
    return REMAT_OK;
}

static remat_status bad_value(remat_ctx *ctx, size_t line, const char *word, size_t n)
{
    char place[40];
    snprintf(place, sizeof place, "line %zu", line);
    return rm_fail_at(ctx, REMAT_E_INPUT, place, "'%.*s' is no value", n < 40 ? (int)n : 40, word);
}

static remat_status read_solution(remat_ctx *ctx, const rm_model *m, const char *text,
                                  size_t n_bytes, double *x)
{
    named *names;
    size_t n_found = 0, line = 1;
    const named *waiting = NULL; /* the last word was its name */
    TRY(sort_names(ctx, m, &names));
    for (size_t i = 0; i < m->columns.n; i++) x[i] = nearest_to_0(&m->columns.items[i]);
    for (size_t at = 0; at < n_bytes;) {
        if (is_space(text[at])) {
            if (text[at] == '\n') line++;
            at++;
            continue;
        }
        const char *word = text + at;
        named key;
        while (at < n_bytes && !is_space(text[at])) at++;
        const size_t n = (size_t)(text + at - word);
        if (waiting) {
            double value;
            if (!parse_number(word, n, &value)) return bad_value(ctx, line, word, n);
            x[waiting->column] = value;
            waiting = NULL;
            n_found++;
        } else if (m->columns.n && parse_name(word, n, &key.name)) {
            waiting = bsearch(&key, names, m->columns.n, sizeof *names, by_name);
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
