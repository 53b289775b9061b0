/* order_bound.h: a proved lower limit on the cost of every plan within a budget that runs its ops
 * for the first time in a given order.
 *
 * A *gap* is the time between two consecutive first runs that touch a storage. A linear program
 * decides which gaps are kept and which are paid for. Its dual prices are the certificate. Searches
 * start from its primal solution. docs/bound.md has the proofs. */
#ifndef RM_ORDER_BOUND_H
#define RM_ORDER_BOUND_H

#include "graph/certificate.h"
#include "graph/normal.h"

/* Bits of the option bound_rules. They say which storages may stand in for their heirs:
 * - REMAT_BOUND_SINGLE: those that one op reads.
 * - REMAT_BOUND_FAN_OUT: those with several heirs.
 * - REMAT_BOUND_REGION: those that several ops read on the way to one heir.
 * - REMAT_BOUND_SIDE: those too small for all their heirs, so that some heirs are left out.
 * - REMAT_BOUND_HOLDERS: those that are made from their heir beside the path, in any order. */
enum {
    RM_BOUND_RULES = REMAT_BOUND_SINGLE | REMAT_BOUND_FAN_OUT | REMAT_BOUND_REGION |
                     REMAT_BOUND_SIDE | REMAT_BOUND_HOLDERS
};

typedef struct rm_gap {
    uint32_t store;
    /* It takes room at the positions between them. In a fixed order these first runs touch it, or
     * to = n_ops, and it is kept to the end. */
    uint32_t from, to;
    /* If it is lost, its op runs again by this position. In a fixed order due = to. */
    uint32_t due;
} rm_gap;

typedef struct rm_order_bound_options {
    unsigned rules; /* REMAT_BOUND_SINGLE | ... */
    /* By storage: the cost of one fetch, if plans may fetch. Then no rule applies. NULL: they may
     * not. */
    const int64_t *transfer;
    bool charges;   /* say what each gap charges each op */
    bool any_order; /* a bound for every order; `order` is not looked at */
} rm_order_bound_options;

/* What a re-run of an op pays to a lost gap: docs/bound.md (4). */
typedef struct rm_charge {
    uint32_t gap;
    int64_t amount; /* in cost units / unit */
} rm_charge;

typedef struct rm_order_bound { /* arrays live in scratch */
    const uint32_t *order;      /* by position: op */
    uint32_t n_positions;       /* n_ops in a fixed order */
    uint32_t n_gaps;
    rm_gap *gaps; /* by store, then from */
    int64_t unit; /* of weights */
    /* By gap: what losing it costs, as far as the bound counts it; in cost units / unit. */
    int64_t *weight;
    /* By gap: how many bytes of nm->bytes[store] the program keeps, or keeps a stand-in for. */
    int64_t *kept;
    /* By position, and one for the end: bytes in memory there, whatever else is kept. */
    int64_t *need;
    uint32_t tightest; /* the position where need is largest; n_positions: the end */
    /* Does need fit the budget everywhere? If not, kept, weight and certificate are not there. */
    bool feasible;
    unsigned rules;             /* those that the certificate makes use of */
    rm_certificate certificate; /* scale 0: prices prove nothing beyond the first runs */

    /* If options.charges, for the certificate's stand-ins: */
    uint32_t *start;        /* by gap: after `from` where a stand-in is touched later */
    uint32_t *charge_begin; /* by op */
    /* By op, then by start of their gaps. They satisfy (4), and none is more than the op's cost. */
    rm_charge *charges;
    /* By position, and one for the end: the sum of the certificate's prices before it. */
    int64_t *price_before;
} rm_order_bound;

/* `order`: the normal graph's ops by first run; NULL: the graph's own. A budget below 0 is no
 * limit. */
remat_status rm_order_bound_find(remat_ctx *ctx, const rm_normal *nm, int64_t budget_bytes,
                                 const uint32_t *order, const rm_order_bound_options *options,
                                 rm_order_bound *out);
/* order_bound_check.c: asserts what holds of it. */
void rm_order_bound_check(const rm_order_bound *b, const rm_normal *nm, int64_t budget_bytes);

#endif
