/* order_bound_check.c: what holds of a solved bound (order_bound.h), as code:
 * - the gaps of a storage follow each other in the order;
 * - what is kept fits the room;
 * - the charges satisfy condition (4) of docs/bound.md.
 * That the certificate proves what it says is checked by verify/verify_bound.c, not here.
 *
 * Cost: O(gaps * positions with a price + charges^2 of an op): for tests and debug builds. */
#include "plan/bound/order_bound.h"

#include <assert.h>

static void check_gaps(const rm_order_bound *b, const rm_normal *nm)
{
    for (uint32_t i = 0; i < b->n_gaps; i++) {
        const rm_gap *x = &b->gaps[i], *before = x - 1;
        assert(x->store < nm->n_stores && nm->bytes[x->store] > 0);
        assert(x->to <= x->due && x->due <= b->n_positions);
        assert(x->from + 1 < x->to); /* some position lies between */
        if (i && before->store == x->store) assert(before->due <= x->from);
        else if (i) assert(before->store < x->store);
        assert(b->kept[i] >= 0 && b->kept[i] <= nm->bytes[x->store] && b->weight[i] >= 0);
    }
}

/* A gap takes room from where it starts: where the last of its stand-ins is out of use. */
static void check_room(const rm_order_bound *b, int64_t budget_bytes)
{
    assert(b->need[b->n_positions] <= budget_bytes);
    for (uint32_t t = 0; t < b->n_positions; t++) {
        assert(b->need[t] <= budget_bytes);
        if (b->price_before[t + 1] == b->price_before[t]) continue; /* not a row, or not tight */
        int64_t kept = 0;
        for (uint32_t i = 0; i < b->n_gaps; i++)
            if (b->start[i] < t && t < b->gaps[i].to) kept += b->kept[i];
        assert(kept <= budget_bytes - b->need[t]);
    }
}

/* (4): at no time do the charges of an op exceed its cost. They are most where one begins. */
static void check_charges(const rm_order_bound *b, const rm_normal *nm, uint32_t op)
{
    for (uint32_t i = b->charge_begin[op]; i < b->charge_begin[op + 1]; i++) {
        const uint32_t at = b->start[b->charges[i].gap] + 1;
        int64_t sum = 0;
        assert(b->charges[i].amount >= 0 && b->charges[i].gap < b->n_gaps);
        if (i > b->charge_begin[op]) assert(b->start[b->charges[i - 1].gap] < at);
        for (uint32_t k = b->charge_begin[op]; k < b->charge_begin[op + 1]; k++) {
            const uint32_t gap = b->charges[k].gap;
            if (b->start[gap] < at && at <= b->gaps[gap].due) sum += b->charges[k].amount;
        }
        assert(sum <= nm->cost[op] * b->unit);
    }
}

void rm_order_bound_check(const rm_order_bound *b, const rm_normal *nm, int64_t budget_bytes)
{
    if (!b->feasible) return;
    check_gaps(b, nm);
    if (!b->start) return; /* no charges were asked for */
    check_room(b, budget_bytes);
    for (uint32_t op = 0; op < nm->n_ops; op++) check_charges(b, nm, op);
    for (uint32_t t = 0; t < b->n_positions; t++)
        assert(b->price_before[t] <= b->price_before[t + 1]);
}
