/* chain_sim.c: one pass over a chain schedule with a running sum of what is stored. O(steps). The
 * rules are those of src/verify/verify_chain.c, which checks them; here they are taken for granted.
 */
#include "sim/chain_sim.h"

typedef struct item {
    bool plain, all, seen;
} item; /* is a^l, abar^l stored; has the stage been forwarded? */

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
        const remat_stage *s = &c->stages[l], *before = s - 1;
        int64_t made, overhead, freed = 0;
        if (kind == REMAT_B) {
            made = before->delta;
            overhead = s->ob;
            freed = s->delta + s->abar + s->keep + (items[l - 1].plain ? before->a : 0);
            items[l - 1].plain = items[l].all = false;
        } else {
            bool *place = kind == REMAT_F_ALL ? &items[l].all : &items[l].plain;
            const int64_t size = kind == REMAT_F_ALL ? s->abar : s->a;
            made = size + (items[l].seen ? 0 : s->keep);
            overhead = s->of;
            if (*place) freed += size; /* it replaces an older copy */
            *place = items[l].seen = true;
            if (kind == REMAT_F_NONE && items[l - 1].plain)
                freed += before->a, items[l - 1].plain = false;
        }
        const int64_t memory = stored + made + overhead;
        if (memory > *peak_bytes) *peak_bytes = memory;
        stored += made - freed;
        if (rm_add_overflows(*cost, kind == REMAT_B ? s->tb : s->tf, cost) || *cost >= RM_MAX_SUM)
            return rm_fail(ctx, REMAT_E_PLAN, "the cost of a schedule passes 2^62");
    }
    return REMAT_OK;
}
