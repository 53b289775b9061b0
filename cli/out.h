/* out.h: everything the program prints: text made safe for a terminal, byte counts for people,
 * tables, JSON, errors. An `out` is one destination with its abilities. It remembers the first
 * failed write until out_close. */
#ifndef CLI_OUT_H
#define CLI_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "remat.h"

#if defined(__GNUC__)
#define CLI_PRINTF(format_index, first_argument)                                                   \
    __attribute__((format(printf, format_index, first_argument)))
#else
#define CLI_PRINTF(format_index, first_argument)
#endif

#define LEN(array) (sizeof(array) / sizeof *(array))

/* Returns the exit code of a call that failed. Its error is printed already. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        const int code_ = (call);                                                                  \
        if (code_) return code_;                                                                   \
    } while (0)

typedef enum style { PLAIN = 0, BOLD, DIM, GOOD, BAD, LIMIT, BAR } style;

typedef struct out {
    FILE *file;
    const char *name;      /* for errors: "standard output" or a path */
    const char *size_unit; /* of what out_size prints; NULL: bytes */
    bool json, colour, utf8;
    bool moves;                   /* a terminal whose cursor can be moved */
    int width;                    /* columns: COLUMNS, else the terminal's, else 80 */
    int error;                    /* errno of the first failed write, or 0 */
    void (*before_message)(void); /* takes progress off the terminal; or NULL */
} out;

/* A short string by value. Use its `.text` within one statement only. */
typedef struct label {
    char text[272];
} label;

void out_open(out *o, FILE *file, const char *name, bool json);
/* Flushes. REMAT_E_IO after one line on stderr; there is none for a closed pipe. */
remat_status out_close(out *o);
void out_print(out *o, const char *format, ...) CLI_PRINTF(2, 3);
const char *out_style(const out *o, style s); /* escape sequence, "" where colours are off */
/* Text from `column` on, further lines from `indent` on. */
void out_wrap(out *o, int indent, int column, const char *text);
/* A name in bold, cut to what `after` leaves of the line, then `after`. */
void out_title(out *o, const char *name, const char *after);
int out_sink(void *user, const void *bytes, size_t n_bytes); /* a remat_sink; user is an out */

/* `text` with control characters and broken UTF-8 replaced, cut to `width` columns (at most 64). */
label out_clean(const out *o, const char *text, int width);
/* The same without a cut; to be freed. NULL: out of memory. */
char *out_safe(const out *o, const char *text);
int out_columns(const out *o, const char *text); /* how many columns clean text takes */

/* One line on stderr, or the error object on stdout with --json; returns `status`. */
int out_fail(out *o, remat_status status, const char *file, const char *place, const char *format,
             ...) CLI_PRINTF(5, 6);
/* "remat: ..." on stderr, after what is printed so far. */
void out_message(out *o, const char *format, ...) CLI_PRINTF(2, 3);
label out_errno(int error);                       /* what the system says of an errno */
void *out_resize(void *p, size_t n, size_t size); /* realloc, or exit with REMAT_E_MEMORY */

typedef struct amount {
    char text[48];
} amount;
amount out_size(const out *o, int64_t size);  /* "12.3 GiB"; "9000" where sizes are not bytes */
amount out_exact(const out *o, int64_t size); /* "12.3 GiB (13207024435 bytes)", "9000 pages" */
/* "540 unit", or "540" where the unit is "" or "given", which says nothing. */
amount out_number(const out *o, int64_t x, const char *unit);
amount out_cost(const out *o, int64_t cost,
                const char *cost_unit);               /* "88.1 ms", or as out_number */
amount out_percent(const out *o, int64_t per_myriad); /* "+12.3%", for charts */
amount human_percent(double share);                   /* 0.123: "12.3%" */
double share_of(int64_t part, int64_t whole);         /* part / whole, 0 where whole is 0 */

/* ---- tables: cells row by row; the first row is the heading ---- */

typedef struct cell {
    label text;
    style style;
} cell;
typedef struct table {
    out *out;
    const char *align; /* one letter a column: l, r, or L: left and cut where the row is too wide */
    cell *cells;
    size_t n_cells, capacity;
} table;

void table_cell(table *t, style s, const char *format, ...) CLI_PRINTF(3, 4);
void table_print(table *t); /* and frees the cells */

/* ---- JSON: objects and arrays nest up to 8 deep; key is NULL inside arrays ---- */

typedef struct emitter {
    out *out;
    int depth;
    bool used[8];
} emitter;

void emit_open(emitter *j, const char *key, char bracket);
void emit_close(emitter *j, char bracket);  /* ends the line when it closes the outermost */
void emit_key(emitter *j, const char *key); /* the caller prints the value */
void emit_text(emitter *j, const char *key, const char *text); /* NULL: null */
void emit_int(emitter *j, const char *key, int64_t x);
void emit_int_or_null(emitter *j, const char *key, int64_t x); /* negative: null */
void emit_real(emitter *j, const char *key, double x);         /* not finite: null */
void emit_bool(emitter *j, const char *key, bool x);
void emit_null(emitter *j, const char *key);

#endif
