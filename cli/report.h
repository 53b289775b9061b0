/* report.h: one plan as numbers for people and for machines. */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include "session.h"

typedef struct report {
    remat_summary summary;
    const remat_plan *plan; /* NULL: none was made */
    const char *need_op;    /* name, or NULL */
    const char *path;       /* where the plan was written, or NULL */
    double seconds;         /* of planning; negative: not known */
    remat_status status;    /* of planning: REMAT_OK, or REMAT_E_APPLIES with the reason */
    char reason[320];
} report;

/* Plans. REMAT_OK also where the strategy does not apply (r->status says so); else an exit code, error printed. */
int report_make(session *s, const char *strategy, int64_t budget_bytes, report *r);
void report_json(emitter *j, const report *r); /* DESIGN.md section 7: the object of `plan` */
void report_table(out *o, const report *r);    /* before and after */
void report_csv_head(out *o);
void report_csv(out *o, const report *r);
double report_overhead(const remat_summary *m);
bool report_gap(const remat_summary *m, double *gap); /* false: no bound */
amount report_gap_text(const remat_summary *m);       /* "-" where no bound or not within the budget */
const char *report_outcome(const remat_summary *m);
/* remat_plan_status, with the line on stderr that exit codes 10 and 11 owe to the reader. */
int report_status(session *s, const report *r, out *o);

#endif
