/* curve.h: plans at rising budgets, for one strategy or several. */
#ifndef CLI_CURVE_H
#define CLI_CURVE_H

#include "rows.h"

typedef struct curve {
    names strategies;
    int64_t *budgets;
    uint32_t n_budgets;
    reports least; /* of each strategy, where the first budget is asked for */
    reports all;   /* strategy by strategy */
    size_t *first; /* strategy k has the rows [first[k], first[k + 1]) */
} curve;

/* --points, `initial` without it. */
int curve_points(session *s, uint32_t initial, uint32_t *n_points);
/* Plans with each strategy of "a,b,c" (NULL: the default one) at budgets from --from to --to.
 * Strategies that do not apply have one row, with the reason; where none applies, that is an error.
 * Ctrl-C is caught meanwhile; after it there are fewer rows. `c` is to be freed in any case. */
int curve_make(session *s, const char *list, uint32_t n_points, curve *c);
/* The exit code: what was planned at the largest budget decides. */
int curve_status(session *s, const curve *c);
void curve_free(curve *c);

#endif
