/* any_order.h: the cheapest plan within a budget, in whatever order, and the proof that none is
 * cheaper, or that none fits. For small graphs. */
#ifndef RM_ANY_ORDER_H
#define RM_ANY_ORDER_H

#include "plan/bound/prove.h"

enum { RM_ANY_ORDER_MOST = 64 }; /* ops, and storages, of the normal graph */

static inline bool rm_any_order_applies(const rm_normal *nm)
{
    return nm->n_ops <= RM_ANY_ORDER_MOST && nm->n_stores <= RM_ANY_ORDER_MOST;
}

/* As rm_prove, but goal->order is not looked at, and the bound holds in any order. If the bound is
 * RM_MAX_SUM, no schedule fits. It looks at goal->one_instance. */
remat_status rm_prove_any_order(remat_ctx *ctx, const rm_normal *nm, const rm_proof_goal *goal,
                                rm_codes *found, rm_proved *out);

#endif
