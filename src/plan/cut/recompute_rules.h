/* recompute_rules.h: a training graph as the min-cut paper sees it: what the forward pass can
 * compute, what may run again, what saving costs. */
#ifndef RM_RECOMPUTE_RULES_H
#define RM_RECOMPUTE_RULES_H

#include "plan/cut/saved_cut.h"

typedef struct rm_recompute_rules { /* arrays live in scratch */
    uint32_t boundary;              /* the op that makes the tangents: in neither list */
    uint32_t *inside, *outside;     /* ops, ascending: V_f, and what depends on the tangents */
    uint32_t n_inside, n_outside;
    uint8_t *in_forward;   /* by op: in V_f */
    uint8_t *op_class;     /* by op: the class in effect */
    uint8_t *ban;          /* by op: remat_ban; none for ops outside */
    uint8_t *materialised; /* by root value: written to memory whatever is saved */
    /* By root value: the traffic of saving it: its bytes if materialised, else twice that. */
    int64_t *price;
    /* The same, re-weighted by distance (option reweight). Without that option, price itself. */
    int64_t *weighed;
} rm_recompute_rules;

/* REMAT_E_APPLIES, with the reason, if the graph has no phases or its backward pass does not start
 * from the last forward op. */
remat_status rm_recompute_rules_find(remat_ctx *ctx, const remat_graph *g, rm_recompute_rules *out);
/* The paper's own cut. */
rm_cut_problem rm_cut_by_rules(const rm_recompute_rules *rules);

/* Is what the op makes so much smaller than what it reads (option reduction_factor) that it is
 * better kept? Not meant for views. */
bool rm_is_reduction(const remat_ctx *ctx, const remat_graph *g, uint32_t op);

/* Bans that hold whatever it costs: running the op again would change what is computed. */
static inline bool rm_must_run_once(uint8_t ban)
{
    return ban == REMAT_BAN_PINNED || ban == REMAT_BAN_RANDOM;
}

#endif
