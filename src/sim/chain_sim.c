/* chain_sim.c: peak and cost of a chain schedule.
 *
 * Method: one pass over the steps, with a running sum of what is stored. What a step needs, makes
 * and frees is said in src/verify/verify_chain.c, which checks it. Here the schedule is taken for
 * valid. O(steps). */
#include "sim/chain_sim.h"

typedef struct item { /* what is stored of a stage */
    bool plain;       /* a^l */
    bool all;         /* abar^l */
    bool seen;        /* it has been forwarded before */
} item;

typedef struct effect { /* of one step on memory, in bytes */
    int64_t made, overhead, freed;
} effect;

static effect run_backward(item *items, const remat_stage *s, uint32_t l)
{
    const remat_stage *before = s - 1;
    const effect e = {
        .made = before->delta,
        .overhead = s->ob,
        .freed = s->delta + s->abar + s->keep + (items[l - 1].plain ? before->a : 0),
    };
    items[l - 1].plain = false;
    items[l].all = false;
    return e;
}

static effect run_forward(item *items, const remat_stage *s, uint32_t l, uint32_t kind)
{
    bool *place = kind == REMAT_F_ALL ? &items[l].all : &items[l].plain;
    const int64_t size = kind == REMAT_F_ALL ? s->abar : s->a;
    effect e = {.made = size + (items[l].seen ? 0 : s->keep), .overhead = s->of};
    if (*place) e.freed += size; /* it replaces an older copy */
    *place = true;
    items[l].seen = true;
    if (kind == REMAT_F_NONE && items[l - 1].plain) {
        e.freed += s[-1].a;
        items[l - 1].plain = false;
    }
    return e;
}

remat_status rm_chain_measure(remat_ctx *ctx, const remat_chain *c, const rm_schedule *steps,
                              int64_t *peak_bytes, int64_t *cost)
{
    item *items;
    TRY(RM_SCRATCH(ctx, items, (size_t)c->n_stages + 2));
    int64_t stored = c->stages[0].a + c->stages[c->n_stages + 1].delta;
    items[0].plain = true;
    *peak_bytes = stored;
    *cost = 0;
    for (size_t t = 0; t < steps->n; t++) {
        const uint32_t l = steps->items[t].index, kind = steps->items[t].kind;
        const remat_stage *s = &c->stages[l];
        const effect e =
            kind == REMAT_B ? run_backward(items, s, l) : run_forward(items, s, l, kind);
        const int64_t memory = stored + e.made + e.overhead;
        if (memory > *peak_bytes) *peak_bytes = memory;
        stored += e.made - e.freed;
        if (rm_add_overflows(*cost, kind == REMAT_B ? s->tb : s->tf, cost) || *cost >= RM_MAX_SUM)
            return rm_fail(ctx, REMAT_E_PLAN, "the cost of a schedule passes 2^62");
    }
    return REMAT_OK;
}
