/* recompute_rules.c: V_f, bans and prices of "Transcending Runtime-Memory Tradeoffs in
 * Checkpointing by Being Fusion Aware", sections 3.1 to 3.4.
 *
 * The tangents are made by the op remat.boundary. In graphs traced with their loss they are made by
 * the first backward op that reads what the last forward op made. V_f is all that does not depend
 * on the tangents. So it has ops of the backward phase, too (the white nodes of Fig. 2).
 *
 * Banned from running again:
 *   - pinned and random ops;
 *   - compute-bound ops;
 *   - ops not known to be fusible;
 *   - reductions;
 *   - fusible ops that are read by an op outside V_f which cannot be fused with them. They would be
 *     written in the backward pass anyway (Lemma 3.1);
 *   - the last of MOST_IN_A_ROW fusible ops of which each reads the one before. A kernel that
 *     repeats more than some fifty operations an element takes longer for it (section 3.1).
 * Views never are. Whoever reads a view of a storage counts as a reader of the storage.
 *
 * A storage is materialised if it is an input or an output of the forward pass, if its op is not
 * fusible, or if an op of V_f that is not fusible reads it.
 *
 * Departures:
 *   - Algorithm 2 forgets the outputs. The text of 3.3 has them.
 *   - "All users" there means users in V_f. Those outside decide bans.
 *   - A reduction is told by its number of elements where shapes are known, else by bytes, against
 *     its largest input. (A comparison's mask has fewer bytes than its input, but is no reduction.)
 *   - The re-weighting of 3.4 has no formula and voids Theorem 3.6. Ties are broken by taking the
 *     cut nearest the backward pass. A weight by distance is an option.
 * Cost: O(ops + edges). */
#include "plan/cut/recompute_rules.h"

#include "fusion/op_class.h"
#include "fusion/trace.h"

enum { MOST_REWEIGHTS = 100, MOST_IN_A_ROW = 50 };

typedef struct finder {
    remat_ctx *ctx;
    const remat_graph *g;
    rm_recompute_rules x;
} finder;

/* ---- V_f ---- */

static remat_status find_boundary(finder *f)
{
    bool found;
    f->x.boundary = rm_boundary_op(f->g, &found);
    if (f->x.boundary == REMAT_NONE)
        return rm_fail(f->ctx, REMAT_E_APPLIES,
                       "the graph has no forward and backward phases and no remat.boundary");
    if (!found)
        return rm_fail(f->ctx, REMAT_E_APPLIES,
                       "no backward op reads what the last forward op makes");
    return REMAT_OK;
}

/* Everything that does not depend on the boundary. */
static void split(finder *f)
{
    const remat_graph *g = f->g;
    for (uint32_t op = 0; op < g->n_ops; op++) {
        bool depends = op == f->x.boundary;
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1] && !depends; k++) {
            const uint32_t maker = g->producer[g->in[k]];
            depends = maker != REMAT_NONE && !f->x.in_forward[maker];
        }
        f->x.in_forward[op] = !depends;
        if (!depends) f->x.inside[f->x.n_inside++] = op;
        else if (op != f->x.boundary) f->x.outside[f->x.n_outside++] = op;
    }
}

/* ---- bans ---- */

/* Elements where the shape is known, else bytes: compare only like with like. */
static bool has_shape(const remat_graph *g, uint32_t value) { return g->value_dtype[value] != 0; }

static int64_t extent(const remat_graph *g, uint32_t value, bool by_elements)
{
    if (!by_elements) return g->size[value];
    int64_t n = 1;
    for (uint32_t k = g->dims_begin[value]; k < g->dims_begin[value + 1]; k++)
        if (rm_mul_overflows(n, g->dims[k], &n)) return INT64_MAX;
    return n;
}

static int64_t largest(const remat_graph *g, const uint32_t *values, uint32_t n, bool by_elements)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t x = extent(g, values[i], by_elements);
        if (x > most) most = x;
    }
    return most;
}

bool rm_is_reduction(const remat_ctx *ctx, const remat_graph *g, uint32_t op)
{
    const uint32_t *in = g->in + g->in_begin[op], *out = g->out + g->out_begin[op];
    const uint32_t n_in = g->in_begin[op + 1] - g->in_begin[op];
    const uint32_t n_out = g->out_begin[op + 1] - g->out_begin[op];
    bool by_elements = true;
    for (uint32_t i = 0; i < n_in; i++) by_elements = by_elements && has_shape(g, in[i]);
    for (uint32_t i = 0; i < n_out; i++) by_elements = by_elements && has_shape(g, out[i]);
    const int64_t before = largest(g, in, n_in, by_elements);
    const int64_t after = largest(g, out, n_out, by_elements);
    int64_t limit;
    if (rm_mul_overflows(after, ctx->options.reduction_factor, &limit)) return false;
    return before > 0 && limit <= before;
}

/* Ops that are banned for what they are. */
static void ban_by_class(finder *f)
{
    static const uint8_t by_class[] = {[REMAT_CLASS_OTHER] = REMAT_BAN_OTHER,
                                       [REMAT_CLASS_COMPUTE] = REMAT_BAN_COMPUTE,
                                       [REMAT_CLASS_FUSIBLE] = REMAT_BAN_NONE,
                                       [REMAT_CLASS_VIEW] = REMAT_BAN_NONE,
                                       [REMAT_CLASS_RANDOM] = REMAT_BAN_RANDOM};
    const remat_graph *g = f->g;
    for (uint32_t i = 0; i < f->x.n_inside; i++) {
        const uint32_t op = f->x.inside[i];
        uint8_t *ban = &f->x.ban[op];
        *ban = g->pinned[op] ? REMAT_BAN_PINNED : by_class[f->x.op_class[op]];
        if (*ban == REMAT_BAN_NONE && f->x.op_class[op] == REMAT_CLASS_FUSIBLE &&
            rm_is_reduction(f->ctx, g, op))
            *ban = REMAT_BAN_REDUCTION;
    }
}

/* Ops that are banned for who reads them. */
static void ban_by_readers(finder *f)
{
    const remat_graph *g = f->g;
    for (uint32_t i = 0; i < f->x.n_outside; i++) {
        const uint32_t op = f->x.outside[i];
        if (rm_is_fusible_class(f->x.op_class[op])) continue;
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
            const uint32_t maker = g->producer[g->root[g->in[k]]];
            if (maker != REMAT_NONE && f->x.in_forward[maker] && f->x.ban[maker] == REMAT_BAN_NONE)
                f->x.ban[maker] = REMAT_BAN_READ;
        }
    }
}

/* Ops that are banned for how much would be repeated with them. `row`, by op: how many ops, up to
 * it, a kernel runs in a row to make it from what is saved. Views move nothing and count for none.
 */
static remat_status ban_long_rows(finder *f)
{
    const remat_graph *g = f->g;
    uint32_t *row;
    TRY(RM_SCRATCH(f->ctx, row, g->n_ops));
    for (uint32_t i = 0; i < f->x.n_inside; i++) {
        const uint32_t op = f->x.inside[i];
        if (f->x.ban[op] != REMAT_BAN_NONE) continue; /* it is saved */
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
            const uint32_t maker = g->producer[g->in[k]];
            if (maker != REMAT_NONE && row[maker] > row[op]) row[op] = row[maker];
        }
        row[op] += !rm_is_view_op(g, op);
        if (row[op] < MOST_IN_A_ROW) continue;
        f->x.ban[op] = REMAT_BAN_LONG;
        row[op] = 0;
    }
    return REMAT_OK;
}

/* ---- prices ---- */

static void materialise_inputs(finder *f, uint32_t op)
{
    for (uint32_t k = f->g->in_begin[op]; k < f->g->in_begin[op + 1]; k++)
        f->x.materialised[f->g->root[f->g->in[k]]] = 1;
}

static void find_materialised(finder *f)
{
    const remat_graph *g = f->g;
    for (uint32_t v = 0; v < g->n_values; v++) {
        const uint32_t maker = g->producer[g->root[v]];
        if (maker == REMAT_NONE || !f->x.in_forward[maker] ||
            !rm_is_fusible_class(f->x.op_class[maker]))
            f->x.materialised[g->root[v]] = 1;
    }
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const uint32_t maker = g->producer[g->outputs[i]];
        if (maker != REMAT_NONE && f->x.in_forward[maker])
            f->x.materialised[g->root[g->outputs[i]]] = 1;
    }
    for (uint32_t i = 0; i < f->x.n_inside; i++)
        if (!rm_is_fusible_class(f->x.op_class[f->x.inside[i]]))
            materialise_inputs(f, f->x.inside[i]);
    materialise_inputs(f, f->x.boundary);
}

/* distance, by root value: ops to the outside, at most MOST_REWEIGHTS. Views count for none. */
static void find_distances(const finder *f, uint32_t *distance)
{
    const remat_graph *g = f->g;
    for (uint32_t v = 0; v < g->n_values; v++) distance[v] = MOST_REWEIGHTS;
    for (uint32_t op = g->n_ops; op-- > 0;) {
        uint32_t here = MOST_REWEIGHTS;
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
            if (distance[g->root[g->out[k]]] < here) here = distance[g->root[g->out[k]]];
        if (!f->x.in_forward[op]) here = 0;
        else if (here < MOST_REWEIGHTS && !rm_is_view_op(g, op)) here++;
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
            if (here < distance[g->root[g->in[k]]]) distance[g->root[g->in[k]]] = here;
    }
}

static int64_t reweighted(int64_t bytes, int64_t permille, uint32_t distance)
{
    for (uint32_t i = 0; i < distance; i++) {
        const rm_uint128 more = (rm_uint128)bytes * (rm_uint128)(1000 + permille) / 1000;
        /* The flow says that this is too much. */
        if (more >= (rm_uint128)RM_MAX_SUM) return RM_MAX_SUM;
        bytes = (int64_t)more;
    }
    return bytes;
}

static remat_status find_prices(finder *f)
{
    const remat_graph *g = f->g;
    const int64_t permille = f->ctx->options.reweight;
    uint32_t *distance;
    for (uint32_t v = 0; v < g->n_values; v++)
        if (rm_owns_storage(g, v))
            f->x.price[v] = f->x.materialised[v] ? g->storage[v] : 2 * g->storage[v];
    f->x.weighed = f->x.price;
    if (permille == 0) return REMAT_OK;
    TRY(RM_SCRATCH(f->ctx, distance, g->n_values));
    TRY(RM_SCRATCH(f->ctx, f->x.weighed, g->n_values));
    find_distances(f, distance);
    for (uint32_t v = 0; v < g->n_values; v++)
        f->x.weighed[v] = reweighted(f->x.price[v], permille, distance[v]);
    return REMAT_OK;
}

remat_status rm_recompute_rules_find(remat_ctx *ctx, const remat_graph *g, rm_recompute_rules *out)
{
    finder f = {.ctx = ctx, .g = g};
    TRY(find_boundary(&f));
    TRY(RM_SCRATCH(ctx, f.x.inside, g->n_ops));
    TRY(RM_SCRATCH(ctx, f.x.outside, g->n_ops));
    TRY(RM_SCRATCH(ctx, f.x.in_forward, g->n_ops));
    TRY(RM_SCRATCH(ctx, f.x.op_class, g->n_ops));
    TRY(RM_SCRATCH(ctx, f.x.ban, g->n_ops));
    TRY(RM_SCRATCH(ctx, f.x.materialised, g->n_values));
    TRY(RM_SCRATCH(ctx, f.x.price, g->n_values));
    for (uint32_t op = 0; op < g->n_ops; op++) f.x.op_class[op] = (uint8_t)rm_op_class(ctx, g, op);
    split(&f);
    ban_by_class(&f);
    ban_by_readers(&f);
    TRY(ban_long_rows(&f));
    find_materialised(&f);
    TRY(find_prices(&f));
    *out = f.x;
    return REMAT_OK;
}

rm_cut_problem rm_cut_by_rules(const rm_recompute_rules *rules)
{
    return (rm_cut_problem){.inside = rules->inside,
                            .outside = rules->outside,
                            .n_inside = rules->n_inside,
                            .n_outside = rules->n_outside,
                            .banned = rules->ban,
                            .price = rules->weighed};
}
