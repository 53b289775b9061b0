/* verify.h: is a schedule valid, and what does it need? This shares no code with the planners'
 * simulators. */
#ifndef RM_VERIFY_H
#define RM_VERIFY_H

#include "graph/certificate.h"
#include "graph/chain.h"
#include "graph/graph.h"

/* Steps carry the indices of the original graph. Whatever the steps are, the status is REMAT_OK and
 * there is a verdict; only memory can run out, or the schedule be too long. bandwidth: of
 * transfers, as the option. */
remat_status rm_verify(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                       size_t n_steps, int64_t bandwidth, remat_verdict *out);

/* A storage instance, as the verifier sees it. */
typedef struct rm_block {
    int64_t bytes;
    uint32_t touches; /* while it plays: those to come */
    uint32_t value;   /* of g, which owns the storage */
    uint32_t begin;   /* the step that makes it */
    uint32_t end;     /* the step after the last that needs it in its own name */
    /* The block in whose place it is made, which ends where it begins, or REMAT_NONE. */
    uint32_t in_place_of;
} rm_block;
/* The blocks of a valid schedule, in the order in which they are made, in scratch. */
remat_status rm_verify_blocks(remat_ctx *ctx, const remat_graph *g, const remat_step *steps,
                              size_t n_steps, rm_block **blocks, uint32_t *n_blocks);

/* Are the offsets that a plan carries those of a placement? Every block and every workspace of its
 * schedule, which is valid, must have one, and no two that are needed together may overlap. If not,
 * the verdict becomes invalid and says why. */
remat_status rm_verify_offsets(remat_ctx *ctx, const remat_graph *g, const remat_plan *plan,
                               remat_verdict *v);

/* The same for a schedule of a chain. peak_op is the stage. */
remat_status rm_verify_chain(remat_ctx *ctx, const remat_chain *c, const remat_step *steps,
                             size_t n_steps, remat_verdict *out);

/* Which schedules a bound is about. */
typedef struct rm_bound_case {
    /* Those that run their ops for the first time in the order of these steps, which must be valid.
     * NULL: all, in any order. */
    const remat_step *steps;
    size_t n_steps;
    int64_t budget_bytes;
    bool fetches;      /* may they offload and fetch? */
    int64_t bandwidth; /* of transfers, as the option */
} rm_bound_case;

/* Why a certificate is refused that may be right, but takes too long to check. */
extern const char rm_too_long_to_check[];

/* What the certificate proves: no schedule of the case costs less than *cost. A certificate without
 * prices proves what it costs to run every op once. If it breaks a rule, the verdict is invalid and
 * says why, and *cost is untouched. */
remat_status rm_verify_bound(remat_ctx *ctx, const remat_graph *g, const rm_bound_case *question,
                             const rm_certificate *certificate, int64_t *cost, remat_verdict *out);

/* The schedule breaks a rule at `step` (REMAT_NONE: at no one step). Answers false, which the
 * caller can return. */
bool rm_blame(remat_verdict *v, uint32_t step, const char *format, ...) RM_PRINTF(3, 4);
/* An invalid schedule has no peak and no cost. */
void rm_verdict_clear(remat_verdict *v);

#endif
