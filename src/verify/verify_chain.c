/* verify_chain.c: the independent judge of chain schedules.
 *
 * Method: it plays the operations of Rotor's Table 1 on a set of stored items. docs/model.md fixes
 * what the table leaves open:
 * - a stored abar^(l-1) serves as a^(l-1), and stays;
 * - a plain a^(l-1) goes with Fnone l and with B l;
 * - Fnone l is not allowed while abar^l is stored;
 * - to make an item that is stored already takes room for both at that moment.
 *
 * Invariant: `bytes` is the sum over the set. store() changes both together, and nothing else does.
 * Each time that as many operations have been played as there are stages, the sum is made anew from
 * the set and must agree.
 *
 * Cost: O(steps + stages). */
#include "verify/verify.h"

#include <inttypes.h>

typedef struct shelf { /* by stage 0 .. L + 1: what is stored */
    const remat_chain *c;
    bool *a, *abar, *delta, *keep, *seen; /* seen: the stage has had its first forward */
    int64_t bytes;                        /* of all that is stored */
} shelf;

static void store(shelf *x, bool *row, uint32_t l, int64_t size, bool stored)
{
    if (row[l] != stored) x->bytes += stored ? size : -size;
    row[l] = stored;
}

/* It cannot overflow: the sizes of a chain add up to less than 2^62. */
static int64_t add_up(const shelf *x)
{
    int64_t bytes = 0;
    for (uint32_t l = 0; l <= x->c->n_stages + 1; l++) {
        const remat_stage *s = &x->c->stages[l];
        if (x->a[l]) bytes += s->a;
        if (x->abar[l]) bytes += s->abar;
        if (x->delta[l]) bytes += s->delta;
        if (x->keep[l]) bytes += s->keep;
    }
    return bytes;
}

/* Is there something to compute stage l from? */
static bool has_input(const shelf *x, uint32_t l) { return x->a[l - 1] || x->abar[l - 1]; }

static bool forward(shelf *x, uint32_t step, remat_step_kind kind, uint32_t l, int64_t *needs,
                    remat_verdict *v)
{
    const remat_stage *s = &x->c->stages[l];
    if (!has_input(x, l))
        return rm_blame(v, step, "F^%" PRIu32 " needs a^%" PRIu32 ", which is not stored", l,
                        l - 1);
    if (kind == REMAT_F_NONE && x->abar[l])
        return rm_blame(v, step, "Fnone %" PRIu32 " while abar^%" PRIu32 " is stored", l, l);
    *needs = x->bytes + s->of + (kind == REMAT_F_ALL ? s->abar : s->a) + (x->seen[l] ? 0 : s->keep);
    v->cost += s->tf;
    if (!x->seen[l]) store(x, x->keep, l, s->keep, true);
    x->seen[l] = true;
    if (kind == REMAT_F_ALL) store(x, x->abar, l, s->abar, true);
    else store(x, x->a, l, s->a, true);
    if (kind == REMAT_F_NONE) store(x, x->a, l - 1, x->c->stages[l - 1].a, false);
    return true;
}

static bool backward(shelf *x, uint32_t step, uint32_t l, int64_t *needs, remat_verdict *v)
{
    const remat_stage *s = &x->c->stages[l], *before = s - 1;
    if (!x->delta[l])
        return rm_blame(v, step, "B %" PRIu32 " needs delta^%" PRIu32 ", which is not stored", l,
                        l);
    if (!x->abar[l])
        return rm_blame(v, step, "B %" PRIu32 " needs abar^%" PRIu32 ", which is not stored", l, l);
    if (!has_input(x, l))
        return rm_blame(v, step, "B %" PRIu32 " needs a^%" PRIu32 ", which is not stored", l,
                        l - 1);
    *needs = x->bytes + s->ob + before->delta;
    v->cost += s->tb;
    store(x, x->delta, l, s->delta, false);
    store(x, x->abar, l, s->abar, false);
    store(x, x->keep, l, s->keep, false);
    store(x, x->a, l - 1, before->a, false);
    store(x, x->delta, l - 1, before->delta, true);
    return true;
}

static bool play(shelf *x, const remat_step *steps, size_t n_steps, remat_verdict *v)
{
    const uint32_t last = x->c->n_stages + 1;
    store(x, x->a, 0, x->c->stages[0].a, true);
    store(x, x->delta, last, x->c->stages[last].delta, true);
    v->peak_bytes = x->bytes;
    for (uint32_t t = 0; t < n_steps; t++) {
        if (t % (last + 1) == 0 && add_up(x) != x->bytes)
            return rm_blame(v, t, "the verifier's own sums disagree: please report it");
        const remat_step_kind kind = (remat_step_kind)steps[t].kind;
        const uint32_t l = steps[t].index;
        int64_t needs = 0;
        if (kind < REMAT_F_ALL || kind > REMAT_B)
            return rm_blame(v, t, "a step of a graph in a chain's schedule");
        if (l < 1 || l > last)
            return rm_blame(v, t, "there is no stage %" PRIu32 ": they are 1 to %" PRIu32, l, last);
        const bool allowed =
            kind == REMAT_B ? backward(x, t, l, &needs, v) : forward(x, t, kind, l, &needs, v);
        if (!allowed) return false;
        if (needs >= RM_MAX_SUM || v->cost >= RM_MAX_SUM)
            return rm_blame(v, t, "memory or cost passes 2^62");
        if (v->peak_step != REMAT_NONE && needs <= v->peak_bytes) continue;
        v->peak_bytes = needs;
        v->peak_step = t;
        v->peak_op = l;
    }
    if (add_up(x) != x->bytes)
        return rm_blame(v, REMAT_NONE, "the verifier's own sums disagree: please report it");
    if (!x->delta[0]) return rm_blame(v, REMAT_NONE, "the schedule ends without delta^0");
    return true;
}

remat_status rm_verify_chain(remat_ctx *ctx, const remat_chain *c, const remat_step *steps,
                             size_t n_steps, remat_verdict *out)
{
    remat_verdict v = {.valid = true,
                       .peak_step = REMAT_NONE,
                       .peak_op = REMAT_NONE,
                       .first_bad_step = REMAT_NONE};
    shelf x = {.c = c};
    bool **rows[] = {&x.a, &x.abar, &x.delta, &x.keep, &x.seen};
    if (n_steps >= REMAT_NONE)
        return rm_fail(ctx, REMAT_E_USAGE, "a schedule of %zu steps is too long", n_steps);
    for (size_t i = 0; i < RM_LEN(rows); i++)
        TRY(RM_SCRATCH(ctx, *rows[i], (size_t)c->n_stages + 2));
    if (!play(&x, steps, n_steps, &v)) rm_verdict_clear(&v);
    *out = v;
    return REMAT_OK;
}
