/* chain_of_graph.c: cut a training graph into a chain (Rotor's model), and measure the chain's
 * sizes and times on it.
 *
 * Forward ops between two cuts (cuts.c) are a stage. A backward op belongs to the least of: the
 * stages of the inner forward storages it reads; l + 1 for a cut value a^l it reads (the input of
 * stage l + 1); the stages of the backward ops it depends on. Globals constrain nothing. So every
 * backward op depends only on its own and later stages, and running the stages forward, then
 * backward from the last, is a valid schedule.
 *
 * That schedule is measured once, by liveness, and the chain's numbers are read off it:
 *   a      the cut storage                        abar  a, and what the stage makes that is read in
 * the backward part delta  what backward stages > l leave for those <= l (graph outputs apart) keep
 * globals, outputs of pinned ops and graph outputs made forward: they stay whatever is planned of,
 * ob what the stage's steps need beyond that at their peak; ob has the graph outputs (parameter
 * gradients) made so far tf, tb costs; tf only of what a recomputation would run Fnone has the peak
 * of another schedule, the forward ops alone; of is the larger. The chain is a model: a plan made
 * on it is expanded into ops and judged by the graph's own rules. O(ops + edges). */
#include "plan/chains/chain_of_graph.h"

#include <string.h>

#include "base/csr.h"
#include "graph/cuts.h"
#include "graph/schedule.h"

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

static void assign_stages(finder *f)
{
    const remat_graph *g = f->g;
    uint32_t cut = 0;
    for (uint32_t op = 0; op < g->n_ops; op++) {
        f->x.stage[op] = rm_is_backward_part(g, op) ? f->x.n : cut + 1;
        if (!rm_is_backward_part(g, op)) {
            if (cut < f->cuts.n_cuts && f->cuts.cuts[cut].after == op) cut++;
            continue;
        }
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
            const uint32_t v = g->in[k], maker = g->producer[v], root = g->root[v];
            if (maker == REMAT_NONE) continue;
            const uint32_t owner = g->producer[root];
            if (owner != REMAT_NONE && !rm_is_backward_part(g, owner) && !f->cuts.global[root])
                lower(&f->x.stage[op], f->cut_of[root] ? f->cut_of[root] + 1 : f->x.stage[owner]);
            if (rm_is_backward_part(g, maker)) lower(&f->x.stage[op], f->x.stage[maker]);
        }
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
    for (uint32_t op = 0; op < g->n_ops; op++)
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1] && g->pinned[op]; k++)
            f->stays[g->root[g->out[k]]] = 1;
    for (uint32_t op = 0; op < g->n_ops; op++) {
        bool makes_anything = false;
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
            makes_anything |= !f->stays[g->root[g->out[k]]] && !rm_is_resident(g, g->out[k]);
        f->x.runs_once[op] = rm_is_backward_part(g, op) || g->pinned[op] || !makes_anything;
    }
}

/* What the stages' order of ops would break. */
static remat_status check_order(finder *f, const remat_step *steps)
{
    const remat_graph *g = f->g;
    for (uint32_t op = 0; op < g->n_ops; op++)
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1] && !rm_is_backward_part(g, op);
             k++) {
            const uint32_t maker = g->producer[g->in[k]];
            if (maker != REMAT_NONE && rm_is_backward_part(g, maker))
                return rm_fail(f->ctx, REMAT_E_APPLIES,
                               "the forward op '%.60s' reads what the backward op '%.60s' makes",
                               remat_graph_op_name(g, op), remat_graph_op_name(g, maker));
        }
    uint32_t last = 0;
    for (uint32_t t = 0; t < f->g->n_ops; t++) {
        const uint32_t op = steps[t].index;
        if (!f->g->pinned[op]) continue;
        if (op < last)
            return rm_fail(
                f->ctx, REMAT_E_APPLIES,
                "a chain of stages would change the order of the pinned ops '%.60s' and '%.60s'",
                remat_graph_op_name(f->g, op), remat_graph_op_name(f->g, last));
        last = op;
    }
    return REMAT_OK;
}

/* ---- measuring ---- */

static void raise(int64_t *x, int64_t least)
{
    if (*x < least) *x = least;
}

static void add_sizes(finder *f, const rm_liveness *l, uint32_t n_forward, int64_t *outputs,
                      uint32_t *last_stage_reading)
{
    const remat_graph *g = f->g;
    remat_stage *c = f->x.chain;
    const uint32_t n = f->x.n;
    for (uint32_t i = 1; i < n; i++) c[i].a = c[i].abar = g->storage[f->cuts.cuts[i - 1].storage];
    for (uint32_t op = 0; op < g->n_ops;
         op++) /* the earliest stage, which runs last, that reads a storage in the backward part */
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1] && rm_is_backward_part(g, op);
             k++) {
            uint32_t *x = &last_stage_reading[g->root[g->in[k]]];
            if (*x == 0 || f->x.stage[op] < *x) *x = f->x.stage[op];
        }
    for (size_t i = 0; i < l->n_instances; i++) {
        const uint32_t root = l->instances[i].root, op = g->producer[root], stage = f->x.stage[op];
        const bool is_output = l->instances[i].death == g->n_ops;
        if (is_output) outputs[stage] += g->storage[root];
        if (!rm_is_backward_part(g, op)) {
            if (f->stays[root]) c[stage].keep += g->storage[root];
            else if (l->instances[i].last_read >= n_forward && !f->cut_of[root])
                c[stage].abar += g->storage[root];
        } else if (!is_output && last_stage_reading[root] && last_stage_reading[root] < stage) {
            for (uint32_t k = last_stage_reading[root]; k < stage; k++)
                c[k].delta += g->storage[root];
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

/* Cost of the forward ops that a recomputation of the stage would run: what leads to its cut or to
 * what is saved. */
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

static remat_status measure(finder *f)
{
    const remat_graph *g = f->g;
    const uint32_t n = f->x.n, n_forward = f->x.begin[n + 1];
    remat_step *steps;
    rm_liveness whole, forward;
    int64_t *outputs;
    uint32_t *last_stage_reading;
    uint8_t *wanted;
    TRY(RM_SCRATCH(f->ctx, steps, g->n_ops));
    TRY(RM_SCRATCH(f->ctx, outputs, (size_t)n + 1));
    TRY(RM_SCRATCH(f->ctx, last_stage_reading, g->n_values));
    TRY(RM_SCRATCH(f->ctx, wanted, g->n_values));
    TRY(RM_SCRATCH(f->ctx, f->x.chain, (size_t)n + 1));
    for (uint32_t i = 0; i <= n; i++)
        f->x.chain[i].name = i == 0 ? "" : remat_graph_op_name(g, f->x.ops[f->x.begin[i + 1] - 1]);
    uint32_t t = 0;
    for (uint32_t i = 0; i < n_forward; i++) steps[t++] = (remat_step){REMAT_RUN, f->x.ops[i]};
    for (uint32_t i = n; i >= 1; i--)
        for (uint32_t k = f->x.begin[n + i]; k < f->x.begin[n + i + 1]; k++)
            steps[t++] = (remat_step){REMAT_RUN, f->x.ops[k]};
    TRY(check_order(f, steps));
    TRY(rm_liveness_of(f->ctx, g, steps, g->n_ops, 0, &whole));
    TRY(rm_liveness_of(f->ctx, g, steps, n_forward, 0, &forward));
    add_sizes(f, &whole, n_forward, outputs, last_stage_reading);
    add_overheads(f, whole.memory, n_forward, false, outputs);
    add_overheads(f, forward.memory, n_forward, true, outputs);
    add_times(f, &whole, n_forward, wanted);
    return REMAT_OK;
}

static remat_status drop_unread_cuts(finder *f)
{
    const remat_graph *g = f->g;
    uint8_t *read;
    TRY(RM_SCRATCH(f->ctx, read, g->n_values));
    for (uint32_t op = 0; op < g->n_ops; op++)
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1] && rm_is_backward_part(g, op);
             k++)
            read[g->root[g->in[k]]] = 1;
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->cuts.n_cuts; i++)
        if (read[f->cuts.cuts[i].storage]) f->cuts.cuts[n++] = f->cuts.cuts[i];
    f->cuts.n_cuts = n;
    return REMAT_OK;
}

remat_status rm_stages_find(remat_ctx *ctx, const remat_graph *g, rm_cut_choice choice,
                            rm_stages *out)
{
    finder f = {.ctx = ctx, .g = g};
    TRY(rm_cuts_find(ctx, g, &f.cuts));
    if (choice == RM_CUTS_READ_BACKWARD) TRY(drop_unread_cuts(&f));
    if (f.cuts.n_cuts == 0) {
        bool any[3] = {false};
        for (uint32_t op = 0; op < g->n_ops; op++) any[g->phase[op]] = true;
        return rm_fail(ctx, REMAT_E_APPLIES,
                       any[REMAT_FORWARD] && any[REMAT_BACKWARD]
                           ? "no position of the forward pass is crossed by one storage only"
                           : "the graph has no forward and backward phases");
    }
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
    return status == REMAT_E_INPUT
               ? rm_fail(ctx, REMAT_E_APPLIES, "as a chain of stages its sizes pass 2^62")
               : status;
}
