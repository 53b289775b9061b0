/* read_spans.c: placement problems, in the columns of MiniMalloc: comma separated values whose
 * first line names the columns id, lower, upper and size, in any order. `offset`, which a solution
 * has, may be there and is not looked at. A span is needed at the times lower .. upper - 1.
 *
 * The reader is strict: every id is unique, 0 <= lower < upper, 1 <= size, all below 2^62, and so
 * is the sum of the sizes. There is no quoting. Lines without a character are skipped.
 *
 * Cost: O(bytes). */
#include "import/spans.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "import/names.h"

typedef enum column { ID, LOWER, UPPER, SIZE, OFFSET, N_COLUMNS } column;
static const char *const column_names[N_COLUMNS] = {"id", "lower", "upper", "size", "offset"};

typedef struct reader {
    remat_ctx *ctx;
    size_t line;
    column columns[N_COLUMNS]; /* by their place in a line */
    size_t n_columns;
    char *cells[N_COLUMNS]; /* of a line, by column */
    int64_t sum;
    rm_names ids;
    RM_VEC(remat_span) spans;
    RM_VEC(size_t) id_begins;
    RM_VEC(char) text;
} reader;

static remat_status fail(const reader *r, const char *what, const char *cell)
{
    char place[40];
    snprintf(place, sizeof place, "line %zu", r->line);
    return rm_fail_at(r->ctx, REMAT_E_INPUT, place, "%s: '%.40s'", what, cell);
}

bool rm_begins_like_spans(const char *text)
{
    const size_t length = strcspn(text, "\n");
    const char *lower = strstr(text, "lower"), *upper = strstr(text, "upper");
    return memchr(text, ',', length) && lower && upper && (size_t)(lower - text) < length &&
           (size_t)(upper - text) < length;
}

/* The cell that begins at *at, without the blanks around it; *at moves behind the comma, or becomes
 * NULL at the end of the line. */
static char *next_cell(char **at)
{
    char *begin = *at, *end = begin + strcspn(begin, ",");
    *at = *end ? end + 1 : NULL;
    *end = '\0';
    while (*begin == ' ' || *begin == '\t') begin++;
    for (end = begin + strlen(begin); end > begin && strchr(" \t\r", end[-1]);) *--end = '\0';
    return begin;
}

static remat_status read_header(reader *r, char *line)
{
    while (line) {
        const char *cell = next_cell(&line);
        size_t which = 0;
        while (which < N_COLUMNS && strcmp(column_names[which], cell) != 0) which++;
        if (which == N_COLUMNS) return fail(r, "none of id, lower, upper, size, offset", cell);
        for (size_t i = 0; i < r->n_columns; i++)
            if (r->columns[i] == which) return fail(r, "a column is there twice", cell);
        r->columns[r->n_columns++] = (column)which;
    }
    for (size_t which = 0; which < OFFSET; which++) {
        bool there = false;
        for (size_t i = 0; i < r->n_columns; i++) there = there || r->columns[i] == which;
        if (!there) return fail(r, "a column is missing", column_names[which]);
    }
    return REMAT_OK;
}

/* A whole number from `low` on, below 2^62. */
static remat_status number(const reader *r, column which, int64_t low, int64_t *out)
{
    const char *cell = r->cells[which];
    char what[60];
    int64_t x = 0;
    snprintf(what, sizeof what, "%s is not a whole number from %" PRId64 " to 2^62 - 1",
             column_names[which], low);
    for (const char *p = cell; *p; p++) {
        if (*p < '0' || *p > '9') return fail(r, what, cell);
        if (rm_mul_overflows(x, 10, &x) || rm_add_overflows(x, *p - '0', &x) || x >= RM_MAX_SUM)
            return fail(r, what, cell);
    }
    if (!*cell || x < low) return fail(r, what, cell);
    *out = x;
    return REMAT_OK;
}

static remat_status add_id(reader *r)
{
    const char *id = r->cells[ID];
    const size_t length = strlen(id) + 1;
    if (length == 1) return fail(r, "id is empty", id);
    if (rm_names_find(&r->ids, id) != REMAT_NONE) return fail(r, "id is there twice", id);
    TRY(rm_names_add(r->ctx, &r->ids, id, 0));
    TRY(RM_PUSH(r->ctx, r->id_begins, r->text.n));
    TRY(RM_RESERVE(r->ctx, r->text, length));
    memcpy(r->text.items + r->text.n, id, length);
    r->text.n += length;
    return REMAT_OK;
}

static remat_status read_span(reader *r, char *line)
{
    remat_span span;
    size_t n = 0;
    for (; line && n < r->n_columns; n++) r->cells[r->columns[n]] = next_cell(&line);
    if (n < r->n_columns || line)
        return fail(r, "not as many cells as there are columns", r->cells[r->columns[0]]);
    TRY(number(r, LOWER, 0, &span.begin));
    TRY(number(r, UPPER, 0, &span.end));
    TRY(number(r, SIZE, 1, &span.bytes));
    if (span.end <= span.begin) return fail(r, "upper is not above lower", r->cells[UPPER]);
    if (!rm_add_to_sum(&r->sum, span.bytes))
        return fail(r, "the sizes sum to 2^62 or more", r->cells[SIZE]);
    TRY(add_id(r));
    return RM_PUSH(r->ctx, r->spans, span);
}

/* The lines are cut up in place. */
static remat_status read_lines(reader *r, char *text)
{
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = '\0';
        r->line++;
        if (line[strspn(line, " \t\r")] == '\0') continue;
        if (r->n_columns == 0) TRY(read_header(r, line));
        else TRY(read_span(r, line));
    }
    return REMAT_OK;
}

static remat_status freeze(reader *r, remat_spans **out)
{
    const size_t n = r->spans.n,
                 size = sizeof **out + n * sizeof(remat_span) + n * sizeof(size_t) + r->text.n;
    remat_spans *spans = rm_alloc(r->ctx, size);
    if (!spans) return REMAT_E_MEMORY;
    spans->heap = r->ctx->own_heap;
    spans->block_size = size;
    spans->n = n;
    spans->list = (remat_span *)(void *)(spans + 1);
    spans->id = (size_t *)(void *)(spans->list + n);
    spans->text = (char *)(spans->id + n);
    if (n) {
        memcpy(spans->list, r->spans.items, n * sizeof *spans->list);
        memcpy(spans->id, r->id_begins.items, n * sizeof *spans->id);
        memcpy(spans->text, r->text.items, r->text.n);
    }
    *out = spans;
    return REMAT_OK;
}

remat_status rm_read_spans(remat_ctx *ctx, const remat_input *input, remat_spans **out)
{
    reader r = {.ctx = ctx};
    char *text = rm_scratch_copy(ctx, input->text);
    if (!text) return REMAT_E_MEMORY;
    remat_status status = read_lines(&r, text);
    if (status == REMAT_OK) status = freeze(&r, out);
    RM_VEC_FREE(&ctx->heap, r.spans);
    RM_VEC_FREE(&ctx->heap, r.id_begins);
    RM_VEC_FREE(&ctx->heap, r.text);
    return status;
}
