/* cost_to_go.h: what a plan that is half done will cost at least.
 *
 * In a *state* the first runs before position t of a fixed order are done, and a set of storages is
 * in memory. */
#ifndef RM_COST_TO_GO_H
#define RM_COST_TO_GO_H

#include "base/bits.h"
#include "plan/bound/order_bound.h"

#define RM_NO_WAY_ON INT64_MAX /* something that cannot run again is lost */

typedef struct rm_wanted { /* a storage that was made before t */
    uint32_t store;
    uint32_t deadline; /* the first position from t on that reads it; n_ops: a graph output */
} rm_wanted;

typedef struct rm_current_gap { /* a gap that position t lies in */
    uint32_t gap;
    int64_t price; /* what its bytes are worth from t on, in cost units / unit */
} rm_current_gap;

typedef struct rm_cost_to_go { /* arrays live in scratch */
    const rm_normal *nm;
    rm_order_bound bound;
    uint32_t *position; /* by op */
    /* By t: what first runs from t on and gaps that begin there cost, in cost units / unit. */
    int64_t *base;
    int64_t n_wanted;
    uint32_t *wanted_begin, *current_begin; /* by t */
    rm_wanted *wanted;                      /* by t, then deadline */
    rm_current_gap *current;                /* by t */
    int64_t work;                           /* operations of all questions (base/limits.h) */
    /* One question. A stamp that is not the question's is an old one. */
    uint32_t stamp;
    uint32_t *forced_stamp; /* by op: must it run again? */
    uint32_t *forced;       /* the ops that must */
    uint32_t n_forced;
    uint32_t *deadline;   /* by forced op: the last turn in which it can run again */
    uint32_t *gap_stamp;  /* by gap: has it a forced part? */
    int64_t *forced_part; /* by gap: what forced re-runs pay of it */
} rm_cost_to_go;

/* bound.feasible says whether there is anything to find. If it is false, the tables are not made,
 * and base is NULL. The same holds if they would take more than `most_bytes`, or more work than the
 * limits allow. */
remat_status rm_cost_to_go_new(remat_ctx *ctx, const rm_normal *nm, int64_t budget_bytes,
                               const uint32_t *order, int64_t most_bytes, rm_cost_to_go *out);
/* The answer is in cost units / bound.unit, or RM_NO_WAY_ON. there: one bit for each storage. */
int64_t rm_cost_to_go_from(rm_cost_to_go *f, uint32_t t, const uint64_t *there);
/* How much dearer it is, by the bound's own prices, to lose a gap than to keep it; 0 if it is not
 * dearer. */
int64_t rm_cost_to_go_surcharge(const rm_cost_to_go *f, uint32_t gap);

#endif
