/* chain_of_graph.c: cuts a training graph into a chain (Rotor's model), and measures the chain's
 * sizes and times on it.
 *
 * Forward ops between two cuts (cuts.c) are a stage. A backward op belongs to the least of:
 *   - the stages of the inner forward storages that it reads;
 *   - l + 1 for a cut value a^l that it reads (the input of stage l + 1);
 *   - the stages of the backward ops that it depends on.
 * Global storages constrain nothing. So every backward op depends on its own and on later stages
 * only. It follows that a valid schedule runs the stages forward, then backward from the last.
 *
 * That schedule is measured once, by liveness. The chain's numbers are read off it:
 *   a       the cut storage
 *   abar    a, and what the stage makes that is read in the backward part
 *   delta   what backward stages > l leave for those <= l (graph outputs apart)
 *   keep    globals, outputs of pinned ops and graph outputs made forward: they stay whatever is
 *           planned
 *   of, ob  what the stage's steps need beyond that at their peak; ob has the graph outputs
 *           (parameter gradients) made so far
 *   tf, tb  costs; tf only of what a recomputation would run
 * Fnone has the peak of another schedule, the forward ops alone. `of` is the larger of the two.
 *
 * The chain is a model. A plan made on it is expanded into ops and judged by the graph's own rules.
 * O(ops + edges). */
#include "plan/chains/chain_of_graph.h"

#include "base/csr.h"
#include "graph/cuts.h"
#include "graph/schedule.h"

#include <assert.h>
#include <string.h>

typedef struct finder {
    remat_ctx *ctx;
    const remat_graph *g;
    rm_cuts cuts;
    rm_stages x;
    uint8_t *stays;   /* by root value: kept whatever is planned */
    uint32_t *cut_of; /* by root value: 1 + the index of its cut, or 0 */
} finder;

static void lower(uint32_t *x, uint32_t most)
{
    if (*x > most) *x = most;
}

static uint32_t backward_stage(const finder *f, uint32_t op)
{
    const remat_graph *g = f->g;
    uint32_t stage = f->x.n;
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
        const uint32_t v = g->in[k], maker = g->producer[v], root = g->root[v];
        if (maker == REMAT_NONE) continue;
        const uint32_t owner = g->producer[root];
        if (owner != REMAT_NONE && !rm_is_backward_part(g, owner) && !f->cuts.global[root])
            lower(&stage, f->cut_of[root] ? f->cut_of[root] + 1 : f->x.stage[owner]);
        if (rm_is_backward_part(g, maker)) lower(&stage, f->x.stage[maker]);
    }
    return stage;
}

static void assign_stages(finder *f)
{
    const remat_graph *g = f->g;
    uint32_t cut = 0; /* the next one */
    for (uint32_t op = 0; op < g->n_ops; op++) {
        if (rm_is_backward_part(g, op)) {
            f->x.stage[op] = backward_stage(f, op);
            continue;
        }
        f->x.stage[op] = cut + 1;
        if (cut < f->cuts.n_cuts && f->cuts.cuts[cut].after == op) cut++;
    }
}

static remat_status list_ops(finder *f)
{
    const remat_graph *g = f->g;
    uint32_t *list; /* by op */
    rm_csr by_list;
    TRY(RM_SCRATCH(f->ctx, list, g->n_ops));
    for (uint32_t op = 0; op < g->n_ops; op++)
        list[op] = (rm_is_backward_part(g, op) ? f->x.n : 0) + f->x.stage[op];
    TRY(rm_csr_by_key(f->ctx, 2 * f->x.n + 1, g->n_ops, list, &by_list));
    f->x.begin = by_list.begin;
    f->x.ops = by_list.items;
    return REMAT_OK;
}

static void find_what_stays(finder *f)
{
    const remat_graph *g = f->g;
    memcpy(f->stays, f->cuts.global, g->n_values);
    for (uint32_t i = 0; i < g->n_outputs; i++) f->stays[g->root[g->outputs[i]]] = 1;
    for (uint32_t op = 0; op < g->n_ops; op++) {
        if (!g->pinned[op]) continue;
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
            f->stays[g->root[g->out[k]]] = 1;
    }
    for (uint32_t op = 0; op < g->n_ops; op++) {
        bool makes_anything = false;
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
            makes_anything |= !f->stays[g->root[g->out[k]]] && !rm_is_resident(g, g->out[k]);
        f->x.runs_once[op] = rm_is_backward_part(g, op) || g->pinned[op] || !makes_anything;
    }
}

/* Two things that the stages' order of ops would break: forward ops read nothing from backward
 * ops, and pinned ops keep their order. */
static remat_status check_phases(const finder *f)
{
    const remat_graph *g = f->g;
    for (uint32_t op = 0; op < g->n_ops; op++) {
        if (rm_is_backward_part(g, op)) continue;
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
            const uint32_t maker = g->producer[g->in[k]];
            if (maker != REMAT_NONE && rm_is_backward_part(g, maker))
                return rm_fail(f->ctx, REMAT_E_APPLIES,
                               "the forward op '%.60s' reads what the backward op '%.60s' makes",
                               remat_graph_op_name(g, op), remat_graph_op_name(g, maker));
        }
    }
    return REMAT_OK;
}

static remat_status check_pinned(const finder *f, const remat_step *steps)
{
    const remat_graph *g = f->g;
    uint32_t last = 0;
    for (uint32_t t = 0; t < g->n_ops; t++) {
        const uint32_t op = steps[t].index;
        if (!g->pinned[op]) continue;
        if (op < last)
            return rm_fail(
                f->ctx, REMAT_E_APPLIES,
                "a chain of stages would change the order of the pinned ops '%.60s' and '%.60s'",
                remat_graph_op_name(g, op), remat_graph_op_name(g, last));
        last = op;
    }
    return REMAT_OK;
}

/* ---- measuring ---- */

static void raise(int64_t *x, int64_t least)
{
    if (*x < least) *x = least;
}

/* last_reader, by root value: the stage that reads it last in the backward part, or 0. Stages run
 * backward there, so that is the least one. */
static void find_last_readers(const finder *f, uint32_t *last_reader)
{
    const remat_graph *g = f->g;
    for (uint32_t op = 0; op < g->n_ops; op++) {
        if (!rm_is_backward_part(g, op)) continue;
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
            uint32_t *x = &last_reader[g->root[g->in[k]]];
            if (*x == 0 || f->x.stage[op] < *x) *x = f->x.stage[op];
        }
    }
}

/* Adds a, abar, keep and delta. outputs, by stage: bytes of the graph outputs that it makes. */
static void add_sizes(finder *f, const rm_liveness *l, uint32_t n_forward,
                      const uint32_t *last_reader, int64_t *outputs)
{
    const remat_graph *g = f->g;
    remat_stage *c = f->x.chain;
    for (uint32_t i = 1; i < f->x.n; i++) {
        c[i].a = g->storage[f->cuts.cuts[i - 1].storage];
        c[i].abar = c[i].a;
    }
    for (size_t i = 0; i < l->n_instances; i++) {
        const uint32_t root = l->instances[i].root, op = g->producer[root], stage = f->x.stage[op];
        const bool is_output = l->instances[i].death == g->n_ops;
        if (is_output) outputs[stage] += g->storage[root];
        if (!rm_is_backward_part(g, op)) {
            if (f->stays[root]) c[stage].keep += g->storage[root];
            else if (l->instances[i].last_read >= n_forward && !f->cut_of[root])
                c[stage].abar += g->storage[root];
        } else if (!is_output && last_reader[root]) {
            for (uint32_t k = last_reader[root]; k < stage; k++) c[k].delta += g->storage[root];
        }
    }
}

/* Peaks of the stages beyond what the chain model counts. `memory` is of the whole schedule, or of
 * its forward part alone. */
static void add_overheads(finder *f, const int64_t *memory, uint32_t n_forward, bool forward_only,
                          const int64_t *outputs)
{
    const remat_graph *g = f->g;
    remat_stage *c = f->x.chain;
    const uint32_t n = f->x.n;
    int64_t stored = g->resident_bytes; /* by earlier stages */
    uint32_t t = 0;
    for (uint32_t i = 1; i <= n; i++) {
        const int64_t input = forward_only && i > 1 ? c[i - 1].a : 0;
        stored += c[i].keep;
        for (; t < n_forward && f->x.stage[f->x.ops[t]] == i; t++)
            raise(&c[i].of, memory[t] - stored - input - (forward_only ? c[i].a : c[i].abar));
        if (!forward_only) stored += c[i].abar;
    }
    if (forward_only) return;
    int64_t made = 0; /* outputs of later stages, beside those among keep */
    for (uint32_t i = n; i >= 1; i--) {
        raise(&c[i].ob, made);
        for (uint32_t k = f->x.begin[n + i]; k < f->x.begin[n + i + 1]; k++, t++)
            raise(&c[i].ob, memory[t] - stored - c[i].delta - c[i - 1].delta);
        made += outputs[i];
        stored -= c[i].abar + c[i].keep;
    }
}

/* tf is the cost of the forward ops that a recomputation of the stage would run: those that lead
 * to its cut or to what is saved. */
static void add_times(finder *f, const rm_liveness *l, uint32_t n_forward, uint8_t *wanted)
{
    const remat_graph *g = f->g;
    for (size_t i = 0; i < l->n_instances; i++)
        wanted[l->instances[i].root] =
            l->instances[i].last_read >= n_forward || f->cut_of[l->instances[i].root];
    for (uint32_t i = n_forward; i-- > 0;) {
        const uint32_t op = f->x.ops[i];
        bool runs = false;
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
            runs |= wanted[g->root[g->out[k]]] && !f->stays[g->root[g->out[k]]];
        if (!runs || f->x.runs_once[op]) continue;
        f->x.chain[f->x.stage[op]].tf += g->cost[op];
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
            wanted[g->root[g->in[k]]] = 1;
    }
    for (uint32_t op = 0; op < g->n_ops; op++)
        if (rm_is_backward_part(g, op)) f->x.chain[f->x.stage[op]].tb += g->cost[op];
}

/* The stages forward, then backward from the last. */
static void write_steps(const finder *f, remat_step *steps)
{
    const uint32_t n = f->x.n, n_forward = f->x.begin[n + 1];
    uint32_t t = 0;
    for (uint32_t i = 0; i < n_forward; i++) steps[t++] = (remat_step){REMAT_RUN, f->x.ops[i]};
    for (uint32_t i = n; i >= 1; i--)
        for (uint32_t k = f->x.begin[n + i]; k < f->x.begin[n + i + 1]; k++)
            steps[t++] = (remat_step){REMAT_RUN, f->x.ops[k]};
    assert(t == f->g->n_ops);
}

static remat_status measure(finder *f)
{
    const remat_graph *g = f->g;
    const uint32_t n = f->x.n, n_forward = f->x.begin[n + 1];
    remat_step *steps;
    rm_liveness whole, forward;
    int64_t *outputs;      /* by stage */
    uint32_t *last_reader; /* by root value */
    uint8_t *wanted;       /* by root value */
    TRY(RM_SCRATCH(f->ctx, steps, g->n_ops));
    TRY(RM_SCRATCH(f->ctx, outputs, (size_t)n + 1));
    TRY(RM_SCRATCH(f->ctx, last_reader, g->n_values));
    TRY(RM_SCRATCH(f->ctx, wanted, g->n_values));
    TRY(RM_SCRATCH(f->ctx, f->x.chain, (size_t)n + 1));
    f->x.chain[0].name = "";
    for (uint32_t i = 1; i <= n; i++)
        f->x.chain[i].name = remat_graph_op_name(g, f->x.ops[f->x.begin[i + 1] - 1]);
    write_steps(f, steps);
    TRY(check_phases(f));
    TRY(check_pinned(f, steps));
    TRY(rm_liveness_of(f->ctx, g, steps, g->n_ops, 0, &whole));
    TRY(rm_liveness_of(f->ctx, g, steps, n_forward, 0, &forward));
    find_last_readers(f, last_reader);
    add_sizes(f, &whole, n_forward, last_reader, outputs);
    add_overheads(f, whole.memory, n_forward, false, outputs);
    add_overheads(f, forward.memory, n_forward, true, outputs);
    add_times(f, &whole, n_forward, wanted);
    return REMAT_OK;
}

static remat_status drop_unread_cuts(finder *f)
{
    const remat_graph *g = f->g;
    uint8_t *read; /* by root value: the backward part reads it */
    TRY(RM_SCRATCH(f->ctx, read, g->n_values));
    for (uint32_t op = 0; op < g->n_ops; op++) {
        if (!rm_is_backward_part(g, op)) continue;
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
            read[g->root[g->in[k]]] = 1;
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->cuts.n_cuts; i++)
        if (read[f->cuts.cuts[i].storage]) f->cuts.cuts[n++] = f->cuts.cuts[i];
    f->cuts.n_cuts = n;
    return REMAT_OK;
}

static remat_status fail_without_cuts(remat_ctx *ctx, const remat_graph *g)
{
    bool any[3] = {false}; /* by phase */
    for (uint32_t op = 0; op < g->n_ops; op++) any[g->phase[op]] = true;
    if (!any[REMAT_FORWARD] || !any[REMAT_BACKWARD])
        return rm_fail(ctx, REMAT_E_APPLIES, "the graph has no forward and backward phases");
    return rm_fail(ctx, REMAT_E_APPLIES,
                   "no position of the forward pass is crossed by one storage only");
}

remat_status rm_stages_find(remat_ctx *ctx, const remat_graph *g, rm_cut_choice choice,
                            rm_stages *out)
{
    finder f = {.ctx = ctx, .g = g};
    TRY(rm_cuts_find(ctx, g, &f.cuts));
    if (choice == RM_CUTS_READ_BACKWARD) TRY(drop_unread_cuts(&f));
    if (f.cuts.n_cuts == 0) return fail_without_cuts(ctx, g);
    f.x.n = f.cuts.n_cuts + 1;
    TRY(RM_SCRATCH(ctx, f.x.stage, g->n_ops));
    TRY(RM_SCRATCH(ctx, f.x.runs_once, g->n_ops));
    TRY(RM_SCRATCH(ctx, f.stays, g->n_values));
    TRY(RM_SCRATCH(ctx, f.cut_of, g->n_values));
    for (uint32_t i = 0; i < f.cuts.n_cuts; i++) f.cut_of[f.cuts.cuts[i].storage] = i + 1;
    assign_stages(&f);
    TRY(list_ops(&f));
    find_what_stays(&f);
    TRY(measure(&f));
    *out = f.x;
    return REMAT_OK;
}

remat_status rm_chain_of_stages(remat_ctx *ctx, const remat_chain *head, const rm_stages *stages,
                                remat_chain **out)
{
    const remat_status status = rm_chain_new(ctx, head, stages->chain, out);
    if (status == REMAT_E_INPUT)
        return rm_fail(ctx, REMAT_E_APPLIES, "as a chain of stages its sizes pass 2^62");
    return status;
}
