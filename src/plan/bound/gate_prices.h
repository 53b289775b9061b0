/* gate_prices.h: a lower limit on the cost of every plan within a budget, from prices of memory at
 * some ops alone. */
#ifndef RM_GATE_PRICES_H
#define RM_GATE_PRICES_H

#include "graph/certificate.h"
#include "graph/normal.h"

typedef struct rm_gate_question {
    int64_t budget_bytes;
    const uint32_t *order; /* the normal graph's ops by first run; NULL: every order */
    /* Prices to start from: of order_bound.h for the same question, and of a bound by walls or gaps
     * for a similar one. NULL, or of scale 0: there are none. */
    const rm_certificate *flow, *other;
    int64_t enough;    /* what re-runs cost in a plan: no bound is higher */
    int64_t most_work; /* operations */
} rm_gate_question;

/* The certificate's scale is 0 if prices alone prove nothing. It lives in scratch. */
remat_status rm_gate_prices_find(remat_ctx *ctx, const rm_normal *nm,
                                 const rm_gate_question *question, rm_certificate *out);

#endif
