/* report.h: one plan as numbers for people and for machines. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "session.h"

typedef struct report {
    remat_summary summary;
    const remat_plan *plan; /* NULL: none was made */
    const char *path;       /* where the plan was written, or NULL */
    double seconds;         /* of planning; negative: not known */
    bool with_schedule;     /* as JSON, it has its steps */
    /* REMAT_OK, or with the reason: the strategy does not apply; exit code 10 or 11, once
     * report_explain or report_status was asked. */
    remat_status status;
    char reason[640];
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
uint32_t report_random_pins(session *s); /* ops that are pinned for being random alone */
double report_overhead(const remat_summary *m);
bool report_gap(const remat_summary *m, double *gap); /* false: no bound */
/* The gap to that bound; "-" where there is none, or the plan is not within the budget. */
amount report_gap_text(const remat_summary *m, int64_t bound_cost);
const char *report_outcome(const remat_summary *m); /* as files and --json spell it */
/* For people: "optimal" only where no plan in any order is cheaper. */
const char *report_word(const remat_summary *m);
const char *report_scope(const remat_summary *m); /* "any order", "its order", ...; "-": none */
const char *outcome_name(remat_outcome outcome);  /* "optimal" */
const char *stopped_name(remat_stopped stopped);  /* "work" */
void report_explain(session *s, report *r, const out *o); /* fills in status and reason */
/* remat_plan_status, with the line on stderr that exit codes 10 and 11 owe to the reader. */
int report_status(session *s, report *r, out *o);

#endif
