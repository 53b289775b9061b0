/* cost_to_go.h: what a plan that is half done will cost at least.
 *
 * A *state*: the first runs before position t of a fixed order are done, and a set of storages is
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

typedef struct rm_current_gap { /* that position t lies in */
    uint32_t gap;
    int64_t price; /* what its bytes are worth from t on, in cost units / unit */
} rm_current_gap;

typedef struct rm_cost_to_go { /* arrays live in scratch */
    const rm_normal *nm;
    rm_order_bound bound;
    uint32_t *position; /* by op */
    int64_t *base; /* by t: first runs from t on, and gaps that begin there; in cost units / unit */
    int64_t n_wanted;
    uint32_t *wanted_begin, *current_begin;
    rm_wanted *wanted;       /* by t, then deadline */
    rm_current_gap *current; /* by t */
    int64_t work;            /* operations of all questions so far (base/limits.h) */
    /* one question: */
    uint32_t stamp, n_forced;
    uint32_t *forced_stamp, *forced; /* by op; the ops that must run again */
    uint32_t
        *deadline; /* by op, if forced: the turn in which it must have run again at the latest */
    uint32_t *gap_stamp;
    int64_t *forced_part; /* by gap: what forced re-runs pay of it */
} rm_cost_to_go;

/* bound.feasible says whether there is anything to find. If not, or if the tables would take more
 * than `most_bytes` or than the limits allow, the rest is not there, and base is NULL. */
remat_status rm_cost_to_go_new(remat_ctx *ctx, const rm_normal *nm, int64_t budget_bytes,
                               const uint32_t *order, int64_t most_bytes, rm_cost_to_go *out);
/* In cost units / bound.unit. there: one bit a storage. */
int64_t rm_cost_to_go_from(rm_cost_to_go *f, uint32_t t, const uint64_t *there);
/* How much dearer it is, by the bound's own prices, to lose a gap than to keep it; 0 if it is not.
 */
int64_t rm_cost_to_go_surcharge(const rm_cost_to_go *f, uint32_t gap);

#endif
