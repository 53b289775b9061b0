/* rows.h: many plans of one graph or chain as rows: what `compare` and `curve` share. */
#ifndef CLI_ROWS_H
#define CLI_ROWS_H

#include "report.h"

/* The strategies of "a,b,c", each of which exists; NULL: `all` of them, or the default one. */
typedef struct names {
    const char **items; /* n of them */
    size_t n;
    char *list; /* what items point into, or NULL */
} names;
names names_of(const char *list, bool all);
void names_free(names *x);

/* Gives every row the best bound for any order that a row proves at its budget or a larger one. */
void rows_share_bound(reports *r);

bool rows_for_machines(const session *s);      /* --json or --csv? */
void rows_print(session *s, const reports *r); /* as these ask for */

/* The columns that tables end with, in a heading and in a row. */
void rows_heads(table *t, const char *first, const char *second);
void rows_judged(table *t, const report *r);
void rows_refused(session *s, const reports *r); /* strategies that do not apply, and why */

/* REMAT_OK if a row fits; else the exit code of the one that says most, with its line on stderr. */
int rows_status(session *s, reports *r);
int rows_interrupted(session *s); /* REMAT_OK, or 130 with a line on stderr */

#endif
