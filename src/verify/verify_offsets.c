/* verify_offsets.c: does everything that a plan needs have a place in its arena?
 *
 * Problem: a plan file names storages by value and instance, and workspaces by step. Each must be
 * one that the schedule has, and none may be named twice or left out. Then they are spans, and
 * verify_place.c looks for overlaps.
 *
 * Method: the blocks of the schedule come from the verifier's own walk (verify.c). Instance k of a
 * value is its k-th block. Spans are the blocks, and behind them a workspace for every step; sizes
 * are rounded up to the alignment. What has no bytes need not be named. A block that is made in
 * place of another begins where that one ends, so they would not overlap wherever they lie. They
 * must lie at the same offset: the step has both.
 *
 * Cost: O(blocks + steps), and what the overlap check takes. */
#include "base/csr.h"
#include "graph/plan.h"
#include "verify/verify.h"
#include "verify/verify_place.h"

#include <inttypes.h>

enum { NOWHERE = -1 };

typedef struct court {
    const remat_graph *g;
    const remat_plan *plan;
    rm_block *blocks;
    uint32_t n_blocks;
    rm_csr by_value;   /* the blocks of each value, in the order in which they are made */
    remat_span *spans; /* of blocks, then of steps */
    int64_t *offsets;  /* by span, or NOWHERE */
    remat_verdict *verdict;
} court;

/* Every span ends after it begins, and no sum passes 2^63: sizes are below 2^62 and the alignment
 * is at most 2^30. */
static int64_t rounded(const court *x, int64_t bytes)
{
    const int64_t align = x->plan->placement.align;
    return (bytes + align - 1) / align * align;
}

static void make_spans(court *x)
{
    const remat_graph *g = x->g;
    for (uint32_t b = 0; b < x->n_blocks; b++)
        x->spans[b] =
            (remat_span){x->blocks[b].begin, x->blocks[b].end, rounded(x, x->blocks[b].bytes)};
    for (size_t t = 0; t < x->plan->n_steps; t++) {
        const remat_step s = x->plan->steps[t];
        const int64_t bytes = s.kind == REMAT_RUN ? g->workspace[g->op_now[s.index]] : 0;
        x->spans[x->n_blocks + t] = (remat_span){(int64_t)t, (int64_t)t + 1, rounded(x, bytes)};
    }
    for (size_t i = 0; i < x->n_blocks + x->plan->n_steps; i++) x->offsets[i] = NOWHERE;
}

static remat_status sort_blocks(remat_ctx *ctx, court *x)
{
    uint32_t *value;
    TRY(RM_SCRATCH(ctx, value, x->n_blocks));
    for (uint32_t b = 0; b < x->n_blocks; b++) value[b] = x->blocks[b].value;
    return rm_csr_by_key(ctx, x->g->n_values, x->n_blocks, value, &x->by_value);
}

/* The span that an entry is about, or REMAT_NONE. */
static size_t span_of(const court *x, const rm_offset *o, bool is_storage)
{
    if (!is_storage) return o->index < x->plan->n_steps ? x->n_blocks + o->index : REMAT_NONE;
    if (o->index >= x->g->n_original_values) return REMAT_NONE;
    const uint32_t value = x->g->value_now[o->index];
    if (value == REMAT_NONE) return REMAT_NONE;
    const uint32_t first = x->by_value.begin[value], n = x->by_value.begin[value + 1] - first;
    return o->instance < n ? x->by_value.items[first + o->instance] : REMAT_NONE;
}

static bool take_offsets(court *x)
{
    const rm_plan_placement *p = &x->plan->placement;
    for (size_t i = 0; i < p->n_storages + p->n_workspaces; i++) {
        const bool is_storage = i < p->n_storages;
        const rm_offset *o = &p->offsets[i];
        const size_t span = span_of(x, o, is_storage);
        const char *what = is_storage ? "storages" : "workspaces";
        const size_t at = is_storage ? i : i - p->n_storages;
        if (span == REMAT_NONE)
            return rm_blame(x->verdict, REMAT_NONE, "placement.%s[%zu] is nothing that it needs",
                            what, at);
        if (x->offsets[span] != NOWHERE)
            return rm_blame(x->verdict, REMAT_NONE, "placement.%s[%zu] is placed twice", what, at);
        x->offsets[span] = o->offset;
    }
    return true;
}

/* What has no bytes lies at 0. */
static bool all_are_placed(court *x)
{
    for (size_t i = 0; i < x->n_blocks + x->plan->n_steps; i++) {
        if (x->offsets[i] != NOWHERE) continue;
        x->offsets[i] = 0;
        if (x->spans[i].bytes == 0) continue;
        return rm_blame(x->verdict, (uint32_t)x->spans[i].begin, "its %s has no place in the arena",
                        i < x->n_blocks ? "output" : "workspace");
    }
    return true;
}

/* Is all that is made in place of something where that was? */
static bool all_are_in_place(court *x)
{
    for (uint32_t b = 0; b < x->n_blocks; b++) {
        const uint32_t from = x->blocks[b].in_place_of;
        if (from == REMAT_NONE || x->blocks[b].bytes == 0 || x->offsets[b] == x->offsets[from])
            continue;
        return rm_blame(x->verdict, x->blocks[b].begin,
                        "its output in place of an input is elsewhere in the arena");
    }
    return true;
}

remat_status rm_verify_offsets(remat_ctx *ctx, const remat_graph *g, const remat_plan *plan,
                               remat_verdict *v)
{
    court x = {.g = g, .plan = plan, .verdict = v};
    char reason[RM_PLACE_REASON];
    if (!plan->placement.align) return REMAT_OK;
    TRY(rm_verify_blocks(ctx, g, plan->steps, plan->n_steps, &x.blocks, &x.n_blocks));
    const size_t n_spans = x.n_blocks + plan->n_steps;
    TRY(RM_SCRATCH(ctx, x.spans, n_spans));
    TRY(RM_SCRATCH(ctx, x.offsets, n_spans));
    make_spans(&x);
    TRY(sort_blocks(ctx, &x));
    if (!take_offsets(&x) || !all_are_placed(&x) || !all_are_in_place(&x)) return REMAT_OK;
    TRY(rm_verify_placement(ctx, x.spans, x.offsets, n_spans, plan->placement.align,
                            plan->placement.arena_bytes, reason));
    if (*reason) rm_blame(v, REMAT_NONE, "placement: %s", reason);
    return REMAT_OK;
}
