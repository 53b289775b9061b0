/* synthetic.c: graphs with a shape that one can reason about.
 *
 *   - mlp: `layers` linear layers of equal width with a relu between.
 *   - chain: f_1 to f_n, the loss (no bytes), its gradient, b_n to b_1. b_i reads g_i and x_(i-1).
 *     This is the textbook case, on which peaks and optima have closed forms. Every op costs 1.
 *     x_0 is resident.
 *   - random-layered: a random layered graph in the manner of Moccasin's RL instances (Bartan et
 *     al. 2023). It has `n` ops in layers of 1/4 to 7/4 of the average `width`. An op reads each op
 *     of the layer before with a chance of `density` percent, and at least one of them. With a
 *     chance of `skip` percent it also reads one op of any earlier layer. Sizes are 80 to 6150 and
 *     costs 1 to 999, both uniform: the ranges found in RL1. There is only a forward pass, and no
 *     output: what nobody reads is not kept.
 *
 * Cost: O(n) for chains, O(n * width) draws for random graphs, bounded by RM_MAX_ZOO_EDGES. */
#include "base/random.h"
#include "zoo/layers.h"
#include "zoo/models.h"

#include <inttypes.h>

rm_tensor *rm_mlp(rm_tape *tape, const rm_zoo_args *args)
{
    rm_tensor *x = rm_tape_input(tape, "features", RM_SHAPE(args->batch, args->width));
    for (int64_t i = 1; i < args->layers; i++)
        x = rm_pointwise(tape, RM_RELU, rm_tape_name(tape, "relu%" PRId64, i),
                         rm_linear(tape, rm_tape_name(tape, "fc%" PRId64, i), x, args->width));
    return rm_linear(tape, rm_tape_name(tape, "fc%" PRId64, args->layers), x, args->classes);
}

/* One op of cost 1 that makes `out`, which is the answer. */
static uint32_t chain_op(rm_tape *tape, remat_phase phase, const char *name, uint32_t out,
                         const uint32_t *in, uint32_t n_in)
{
    const uint32_t op = remat_builder_op(tape->builder, name, in, n_in, &out, 1);
    remat_builder_op_set(tape->builder, op, REMAT_OP_COST, 1);
    remat_builder_op_set(tape->builder, op, REMAT_OP_PHASE, phase);
    return out;
}

static uint32_t chain_value(rm_tape *tape, const char *letter, int64_t index, int64_t size)
{
    return remat_builder_value(tape->builder, rm_tape_name(tape, "%s_%" PRId64, letter, index),
                               size);
}

rm_tensor *rm_chain(rm_tape *tape, const rm_zoo_args *args)
{
    const int64_t n = args->n;
    uint32_t *x = NULL; /* x[i]: the output of f_i */
    tape->status = RM_SCRATCH(tape->ctx, x, (size_t)n + 1);
    if (tape->status != REMAT_OK) return NULL;
    x[0] = chain_value(tape, "x", 0, args->size);
    remat_builder_value_set(tape->builder, x[0], REMAT_VALUE_KIND, REMAT_INPUT);
    for (int64_t i = 1; i <= n; i++) {
        x[i] = chain_value(tape, "x", i, args->size);
        chain_op(tape, REMAT_FORWARD, rm_tape_name(tape, "f_%" PRId64, i), x[i], &x[i - 1], 1);
    }
    const uint32_t loss = chain_op(tape, REMAT_FORWARD, "loss",
                                   remat_builder_value(tape->builder, "loss", 0), &x[n], 1);
    uint32_t g = chain_op(tape, REMAT_BACKWARD, "b_loss", chain_value(tape, "g", n, args->size),
                          (uint32_t[]){loss, x[n]}, 2);
    for (int64_t i = n; i >= 1; i--)
        g = chain_op(tape, REMAT_BACKWARD, rm_tape_name(tape, "b_%" PRId64, i),
                     chain_value(tape, "g", i - 1, args->size), (uint32_t[]){g, x[i - 1]}, 2);
    remat_builder_output(tape->builder, loss);
    remat_builder_output(tape->builder, g);
    return NULL;
}

static bool is_lucky(rm_random *r, int64_t percent)
{
    return rm_random_between(r, 1, 100) <= percent;
}

/* What an op reads. The layer before it is ops [before, layer). Op i makes value i. */
static uint32_t draw_inputs(rm_random *r, const rm_zoo_args *args, int64_t before, int64_t layer,
                            uint32_t *in)
{
    uint32_t n_in = 0;
    for (int64_t j = before; j < layer; j++)
        if (is_lucky(r, args->density)) in[n_in++] = (uint32_t)j;
    if (n_in == 0 && layer > 0) in[n_in++] = (uint32_t)rm_random_between(r, before, layer - 1);
    if (before > 0 && is_lucky(r, args->skip))
        in[n_in++] = (uint32_t)rm_random_between(r, 0, before - 1);
    return n_in;
}

rm_tensor *rm_random_layered(rm_tape *tape, const rm_zoo_args *args)
{
    const int64_t widest = args->width + args->width * 3 / 4;
    rm_random r = {(uint64_t)args->seed};
    uint32_t *in = NULL;
    if (args->n > RM_MAX_ZOO_EDGES / widest)
        rm_tape_fail(tape, "n times width is above %d", RM_MAX_ZOO_EDGES);
    else tape->status = RM_SCRATCH(tape->ctx, in, (size_t)widest + 1);
    for (int64_t before = 0, layer = 0, end; layer < args->n && tape->status == REMAT_OK;
         before = layer, layer = end) {
        end = layer + rm_random_between(&r, args->width - args->width * 3 / 4, widest);
        if (end > args->n) end = args->n;
        for (int64_t i = layer; i < end; i++) {
            const char *name = rm_tape_name(tape, "op_%" PRId64, i);
            const uint32_t n_in = draw_inputs(&r, args, before, layer, in);
            const uint32_t out =
                remat_builder_value(tape->builder, name, rm_random_between(&r, 80, 6150));
            const uint32_t op = remat_builder_op(tape->builder, name, in, n_in, &out, 1);
            remat_builder_op_set(tape->builder, op, REMAT_OP_COST, rm_random_between(&r, 1, 999));
        }
    }
    return NULL;
}
