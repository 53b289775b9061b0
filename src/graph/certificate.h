/* certificate.h: what proves a lower bound (docs/bound.md), as data.
 *
 * verify/verify_bound.c turns it into a number. Whatever the certificate holds, that number is a
 * true bound. So nobody has to trust who made it.
 *
 * In memory the indices are those of the original graph, as in plans and files. */
#ifndef RM_CERTIFICATE_H
#define RM_CERTIFICATE_H

#include "base/base.h"

/* The price of a byte that is in memory at the first run of `op`, which does not touch it. */
typedef struct rm_price {
    uint32_t op;
    int64_t price; /* in cost units / scale; > 0, on a path >= 0 */
} rm_price;

/* While `value` is no longer in use, it can stand in for `heir`. Both own their storage. */
typedef struct rm_heir {
    uint32_t value, heir;
} rm_heir;

typedef struct rm_certificate {
    int64_t scale; /* >= 1; 0: there is no certificate */
    /* What the certificate proves. 0: the bound itself. Else the bound comes from a search and is
     * higher, and the plan says this number besides. */
    int64_t cost;
    bool walls; /* prices alone, of some ops (verify_walls.c); else prices and heirs, for gaps */
    size_t n_prices, n_heirs;
    rm_price *prices; /* by op, ascending. In any order: the whole path, but for walls */
    rm_heir *heirs;   /* by value, then heir, ascending */
} rm_certificate;

/* Of a plan's bound in its own order, and of that for every order. */
typedef struct rm_certificates {
    rm_certificate own_order, any_order;
} rm_certificates;

#endif
