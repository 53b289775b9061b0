/* report.h: one plan as numbers for people and for machines. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "session.h"

typedef struct report {
    remat_summary summary;
    const remat_plan *plan; /* NULL: none was made */
    const char *path;       /* where the plan was written, or NULL */
    double seconds;         /* of planning; negative: not known */
    remat_status status;    /* of planning: REMAT_OK, or REMAT_E_APPLIES with the reason */
    char reason[320];
} report;

typedef struct reports {
    report *items; /* to be freed */
    size_t n, capacity;
} reports;

/* Plans at n ascending budgets and appends the reports, fewer after Ctrl-C. Strategy NULL: the
 * default. Where a strategy does not apply, the answer is REMAT_OK and one report, whose status
 * says so. Else it is an exit code, with the error printed. */
int report_make(session *s, const char *strategy, const int64_t *budgets, uint32_t n,
                reports *list);

/* The object of `remat plan --json`: docs/remat.1. */
void report_json(emitter *j, const session *s, const report *r);
void report_table(out *o, const report *r); /* before and after */
void report_csv_head(out *o);
void report_csv(out *o, const report *r);
/* ": resident 3 MB, x 2 MB": what is in memory at the op that forces the need, largest first. */
void report_need_parts(session *s, int64_t need_bytes, char *text, size_t size);
double report_overhead(const remat_summary *m);
bool report_gap(const remat_summary *m, double *gap); /* false: no bound */
amount report_gap_text(const remat_summary *m); /* "-" where no bound or not within the budget */
const char *report_outcome(const remat_summary *m);
const char *outcome_name(remat_outcome outcome); /* "optimal" */
const char *stopped_name(remat_stopped stopped); /* "work" */
/* remat_plan_status, with the line on stderr that exit codes 10 and 11 owe to the reader. */
int report_status(session *s, const report *r, out *o);

#endif
