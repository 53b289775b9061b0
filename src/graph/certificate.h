/* certificate.h: what proves a lower bound (docs/bound.md), as data. verify/verify_bound.c turns it
 * into a number; whatever it holds, that number is a true bound, so nobody has to trust who made
 * it.
 *
 * In memory the indices are those of the original graph, as in plans and files. */
#ifndef RM_CERTIFICATE_H
#define RM_CERTIFICATE_H

#include "base/base.h"

typedef struct rm_price { /* of a byte that is in memory at the first run of `op` without being
                             touched by it */
    uint32_t op;
    int64_t price; /* > 0, in cost units / scale */
} rm_price;

typedef struct rm_heir { /* while it is no longer in use, `value` can stand in for `heir`: both own
                            their storage */
    uint32_t value, heir;
} rm_heir;

typedef struct rm_certificate {
    int64_t scale; /* >= 1; 0: there is no certificate */
    int64_t cost;  /* what it proves, as a plan says whose bound is higher since it comes from a
                      search; 0: that of the bound itself */
    size_t n_prices, n_heirs;
    rm_price *prices; /* by op, ascending */
    rm_heir *heirs;   /* by value, then heir, ascending */
} rm_certificate;

#endif
