/* saved_steps.c: the two programs that a saved set determines (min-cut paper, section 3.2), as one
 * schedule.
 *
 * The forward pass runs as it stands. An op of V_f that was traced in the backward pass moves into
 * the forward pass if what it makes is saved. It goes right behind what it reads, so that larger
 * inputs can go. Pinned ops keep their order.
 *
 * The backward pass runs as it stands, too. Before each of its ops, whatever that op asks for and
 * is not saved runs again, by demand. Ops of V_f that only the backward pass asks for run there
 * alone. A saved storage is there with all its views.
 *
 * Invariant: any set gives a valid schedule. A value that nobody runs again is read as it is, and
 * pinned ops never run again. Cost: O(ops + edges) for RM_HOLD_ALL. Else that times the number of
 * runs, which is limited to MOST_RUNS a graph op. */
#include "plan/cut/saved_steps.h"

#include "base/csr.h"
#include "graph/demand.h"

#include <assert.h>

enum { MOST_RUNS = 8 };             /* a graph op, on average */
enum { BACKWARD = 1, FORWARD = 2 }; /* bits of expander.wanted */

typedef struct expander {
    remat_ctx *ctx;
    const remat_graph *g;
    const rm_recompute_rules *rules;
    const uint8_t *saved;
    uint8_t *again;  /* by op of V_f: the backward pass runs it, when it asks for it */
    uint8_t *early;  /* by op: the forward pass runs it; a few are both */
    uint8_t *wanted; /* by value: which passes ask for it (BACKWARD, FORWARD) */
    uint32_t *order; /* ops by place of their first run */
    uint32_t *asked; /* by op: `now` when it was asked for last; 0: never */
    uint32_t now;    /* backward ops so far */
    uint32_t hold;
    rm_demand demand;
    rm_schedule *out;
} expander;

/* Was it traced in the backward pass? */
static bool is_late(const expander *x, uint32_t op)
{
    return x->g->phase[op] == REMAT_BACKWARD || op > x->rules->boundary;
}

/* Does a read of this value by the backward pass mean that its op runs again? It does if the op is
 * of V_f and the storage is not saved. */
static bool comes_again(const expander *x, uint32_t value)
{
    const uint32_t maker = x->g->producer[value];
    return maker != REMAT_NONE && x->rules->in_forward[maker] && !x->g->pinned[maker] &&
           !x->saved[x->g->root[value]] && !rm_is_resident(x->g, value);
}

/* From last to first, so that all readers of a value are known before its op. */
static void find_demand(expander *x)
{
    const remat_graph *g = x->g;
    for (uint32_t op = g->n_ops; op-- > 0;) {
        const bool inside = x->rules->in_forward[op];
        uint8_t wanted = 0;
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
            wanted |= x->wanted[g->out[k]];
        x->again[op] = inside && (wanted & BACKWARD);
        x->early[op] = inside && (wanted & FORWARD);
        if (op == x->rules->boundary || (inside && (!is_late(x, op) || !x->again[op])))
            x->early[op] = 1;
        const bool backward = !x->early[op] || x->again[op];
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
            const bool again = comes_again(x, g->in[k]);
            if (x->early[op] || !again) x->wanted[g->in[k]] |= FORWARD;
            if (backward && again) x->wanted[g->in[k]] |= BACKWARD;
        }
    }
}

/* Where an op moves that the forward pass has to run: behind what it reads. It never moves past its
 * own place, where its readers could come first. */
static uint32_t place(const expander *x, const uint32_t *places, uint32_t op, uint32_t last_pinned)
{
    const remat_graph *g = x->g;
    if (!x->early[op] || !is_late(x, op) || op == x->rules->boundary) return op;
    uint32_t latest = REMAT_NONE;
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
        const uint32_t maker = g->producer[g->in[k]];
        if (maker != REMAT_NONE && (latest == REMAT_NONE || places[maker] > latest))
            latest = places[maker];
    }
    if (latest == REMAT_NONE) latest = x->rules->boundary ? x->rules->boundary - 1 : 0;
    if (latest > op) latest = op;
    return g->pinned[op] && last_pinned > latest ? last_pinned : latest;
}

static remat_status order_first_runs(expander *x)
{
    const remat_graph *g = x->g;
    uint32_t *places, last_pinned = 0;
    rm_csr by_place;
    TRY(RM_SCRATCH(x->ctx, places, g->n_ops));
    for (uint32_t op = 0; op < g->n_ops; op++) {
        places[op] = place(x, places, op, last_pinned);
        if (g->pinned[op]) last_pinned = places[op];
    }
    TRY(rm_csr_by_key(x->ctx, g->n_ops, g->n_ops, places, &by_place));
    x->order = by_place.items;
    return REMAT_OK;
}

/* Nobody has asked for it yet, or the last who did was more than `hold` backward ops ago. */
static bool is_due(const expander *x, uint32_t op)
{
    if (!x->again[op]) return false;
    return x->asked[op] == 0 || x->now - x->asked[op] > x->hold;
}

static uint32_t due_maker(void *user, uint32_t value)
{
    expander *x = user;
    const uint32_t maker = x->g->producer[value];
    if (!comes_again(x, value)) return REMAT_NONE;
    const bool due = is_due(x, maker);
    x->asked[maker] = x->now;
    return due ? maker : REMAT_NONE;
}

static remat_status run_op(void *user, uint32_t op)
{
    expander *x = user;
    return rm_schedule_run(x->ctx, x->out, op);
}

static remat_status expand(expander *x)
{
    const remat_graph *g = x->g;
    for (uint32_t i = 0; i < g->n_ops; i++) {
        const uint32_t op = x->order[i];
        if (x->early[op]) {
            TRY(rm_schedule_run(x->ctx, x->out, op));
        } else if (!x->again[op]) { /* those that come again wait until they are asked for */
            x->now++;
            TRY(rm_demand_run(&x->demand, op));
        }
        if (x->out->n / MOST_RUNS > g->n_ops) {
            x->out->n = 0;
            return REMAT_OK;
        }
    }
    return REMAT_OK;
}

remat_status rm_saved_steps(remat_ctx *ctx, const remat_graph *g, const rm_recompute_rules *rules,
                            const uint8_t *saved, uint32_t hold, rm_schedule *out)
{
    assert(out->n == 0);
    const rm_mark mark = rm_scratch_mark(ctx);
    expander x = {.ctx = ctx, .g = g, .rules = rules, .saved = saved, .hold = hold, .out = out};
    x.demand = (rm_demand){
        .in_begin = g->in_begin, .in = g->in, .ask = due_maker, .run = run_op, .user = &x};
    remat_status status = RM_SCRATCH(ctx, x.again, g->n_ops);
    if (status == REMAT_OK) status = RM_SCRATCH(ctx, x.early, g->n_ops);
    if (status == REMAT_OK) status = RM_SCRATCH(ctx, x.wanted, g->n_values);
    if (status == REMAT_OK) status = RM_SCRATCH(ctx, x.asked, g->n_ops);
    if (status == REMAT_OK) status = rm_demand_begin(ctx, &x.demand, g->n_ops);
    if (status == REMAT_OK) find_demand(&x);
    if (status == REMAT_OK) status = order_first_runs(&x);
    if (status == REMAT_OK) status = expand(&x);
    rm_scratch_release(ctx, mark);
    return status;
}

/* ---- and back ---- */

/* Marks the storages that V_f makes or reads. */
static void mark_inside(const remat_graph *g, const rm_recompute_rules *rules, uint8_t *counts)
{
    for (uint32_t i = 0; i < rules->n_inside; i++) {
        const uint32_t op = rules->inside[i];
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
            counts[g->root[g->in[k]]] = 1;
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
            counts[g->root[g->out[k]]] = 1;
    }
}

static remat_status crossing_price(remat_ctx *ctx, const remat_graph *g,
                                   const rm_recompute_rules *rules, const remat_step *steps,
                                   size_t n_steps, int64_t *out)
{
    uint8_t *counts;   /* by root value: made or read by V_f, and not counted yet */
    uint8_t *crossing; /* by value: its newest instance was there at the boundary */
    bool crossed = false;
    TRY(RM_SCRATCH(ctx, counts, g->n_values));
    TRY(RM_SCRATCH(ctx, crossing, g->n_values));
    mark_inside(g, rules, counts);
    *out = 0;
    for (size_t t = 0; t < n_steps; t++) {
        if (steps[t].kind == REMAT_FETCH) crossing[steps[t].index] = !crossed;
        if (steps[t].kind != REMAT_RUN) continue;
        const uint32_t op = steps[t].index;
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1] && crossed; k++) {
            const uint32_t root = g->root[g->in[k]];
            if (!counts[root] || !(crossing[g->in[k]] || rm_is_resident(g, root))) continue;
            counts[root] = 0;
            if (rm_add_overflows(*out, rules->price[root], out))
                return rm_fail(ctx, REMAT_E_APPLIES, "prices pass 2^62");
        }
        crossed = crossed || op == rules->boundary;
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
            crossing[g->out[k]] =
                op != rules->boundary &&
                (g->out_source[k] == REMAT_NONE ? !crossed : crossing[g->out_source[k]]);
    }
    return REMAT_OK;
}

remat_status rm_crossing_price(remat_ctx *ctx, const remat_graph *g,
                               const rm_recompute_rules *rules, const remat_step *steps,
                               size_t n_steps, int64_t *out)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    const remat_status status = crossing_price(ctx, g, rules, steps, n_steps, out);
    rm_scratch_release(ctx, mark);
    return status;
}
