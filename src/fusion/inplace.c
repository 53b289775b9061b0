/* inplace.c: lets elementwise ops write their output over an input.
 *
 * Problem: compilers run relu, or the sum of two gradients, in place where nobody needs the input
 * any more. Graphs that were traced do not say of which ops that is true.
 *
 * Method: a table of ops whose output has, at each place, what follows from the inputs at that
 * place. Such an op may take an input that has the type, the shape and the bytes of the output, and
 * that is a whole storage, or what view, squeeze and the like make of one: these do not change the
 * order of its elements. Of several such inputs it takes the first that no op reads later in the
 * graph's order, else the first. Whether it does so in a schedule is the model's matter.
 *
 * Not in the table: reductions, softmax, what moves elements (gather, flip, clone to another
 * layout), and ops with more than one output.
 *
 * Invariant: the table is sorted (a test checks it, and that each op in it is fusible).
 *
 * Cost: linear in the graph, times the logarithm of the table and the views in a row. */
#include "fusion/inplace.h"

#include <string.h>

#include "fusion/op_class.h"

/* One row a line would hide the rest of the file. */
/* clang-format off */
static const char *const elementwise[] = {
    "aten.abs", "aten.acos", "aten.acosh", "aten.add", "aten.addcdiv", "aten.addcmul", "aten.asin",
    "aten.asinh", "aten.atan", "aten.atan2", "aten.atanh", "aten.bitwise_and", "aten.bitwise_not",
    "aten.bitwise_or", "aten.bitwise_xor", "aten.ceil", "aten.celu", "aten.clamp",
    "aten.clamp_max", "aten.clamp_min", "aten.copysign", "aten.cos", "aten.cosh", "aten.digamma",
    "aten.div", "aten.elu", "aten.elu_backward", "aten.erf", "aten.erfc", "aten.erfinv",
    "aten.exp", "aten.exp2", "aten.expm1", "aten.floor", "aten.floor_divide", "aten.fmax",
    "aten.fmin", "aten.fmod", "aten.frac", "aten.gelu", "aten.gelu_backward", "aten.hardsigmoid",
    "aten.hardsigmoid_backward", "aten.hardswish", "aten.hardswish_backward", "aten.hardtanh",
    "aten.hardtanh_backward", "aten.hypot", "aten.leaky_relu", "aten.leaky_relu_backward",
    "aten.lerp", "aten.lgamma", "aten.log", "aten.log10", "aten.log1p", "aten.log2",
    "aten.logaddexp", "aten.logical_and", "aten.logical_not", "aten.logical_or",
    "aten.logical_xor", "aten.masked_fill", "aten.maximum", "aten.minimum", "aten.mish",
    "aten.mish_backward", "aten.mul", "aten.nan_to_num", "aten.native_dropout_backward",
    "aten.neg", "aten.pow", "aten.reciprocal", "aten.relu", "aten.relu6", "aten.remainder",
    "aten.round", "aten.rsqrt", "aten.rsub", "aten.selu", "aten.sgn", "aten.sigmoid",
    "aten.sigmoid_backward", "aten.sign", "aten.silu", "aten.silu_backward", "aten.sin",
    "aten.sinc", "aten.sinh", "aten.softplus", "aten.softplus_backward", "aten.sqrt",
    "aten.square", "aten.sub", "aten.tan", "aten.tanh", "aten.tanh_backward", "aten.threshold",
    "aten.threshold_backward", "aten.true_divide", "aten.trunc", "aten.where", "aten.xlogy",
    "prims.abs", "prims.add", "prims.bitwise_and", "prims.bitwise_not", "prims.bitwise_or",
    "prims.bitwise_xor", "prims.cbrt", "prims.ceil", "prims.cos", "prims.div", "prims.erf",
    "prims.erfc", "prims.exp", "prims.exp2", "prims.expm1", "prims.floor", "prims.fma",
    "prims.log", "prims.log10", "prims.log1p", "prims.log2", "prims.maximum", "prims.minimum",
    "prims.mul", "prims.neg", "prims.pow", "prims.reciprocal", "prims.round", "prims.rsqrt",
    "prims.sign", "prims.sin", "prims.sqrt", "prims.sub", "prims.tan", "prims.tanh", "prims.trunc",
    "prims.where",
};
/* clang-format on */

/* Views whose elements lie as those of their base do. */
static const char *const in_order[] = {"aten._unsafe_view", "aten.alias",   "aten.detach",
                                       "aten.lift_fresh",   "aten.squeeze", "aten.unsqueeze",
                                       "aten.view"};

const char *rm_elementwise_packet(size_t index)
{
    return index < RM_LEN(elementwise) ? elementwise[index] : NULL;
}

/* Is the op's packet in the list, which is sorted? */
static bool is_listed(const remat_graph *g, uint32_t op, const char *const *list, size_t n)
{
    const char *target = rm_text(g, g->op_target[op]);
    const size_t length = rm_packet_length(target);
    size_t low = 0, high = n;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const int order = strncmp(list[middle], target, length);
        if (order == 0 && !list[middle][length]) return true;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return false;
}

/* Is the value its whole storage, from the first element to the last? */
static bool is_whole(const remat_graph *g, uint32_t v)
{
    if (g->size[v] != g->size[g->root[v]]) return false;
    while (!rm_owns_storage(g, v)) {
        const uint32_t op = g->producer[v];
        if (op == REMAT_NONE || g->out_begin[op + 1] - g->out_begin[op] != 1 ||
            !is_listed(g, op, in_order, RM_LEN(in_order)))
            return false;
        v = g->out_source[g->out_begin[op]]; /* an input of the same storage */
        if (g->size[v] != g->size[g->root[v]]) return false;
    }
    return true;
}

/* Do both say the same type and the same shape? */
static bool are_alike(const remat_graph *g, uint32_t a, uint32_t b)
{
    const uint32_t rank = g->dims_begin[a + 1] - g->dims_begin[a];
    return g->value_dtype[a] && g->size[a] == g->size[b] &&
           strcmp(rm_text(g, g->value_dtype[a]), rm_text(g, g->value_dtype[b])) == 0 &&
           g->dims_begin[b + 1] - g->dims_begin[b] == rank &&
           memcmp(g->dims + g->dims_begin[a], g->dims + g->dims_begin[b], rank * sizeof *g->dims) ==
               0;
}

static bool could_take(const remat_graph *g, uint32_t made, uint32_t v)
{
    return !rm_is_resident(g, v) && g->storage[v] == g->storage[made] && are_alike(g, made, v) &&
           is_whole(g, v);
}

/* The place in the op's inputs of the one that its only output shall take, or REMAT_NONE. last: by
 * root value, the last op that reads it, or n_ops: it is a graph output. */
static uint32_t choose_input(const remat_graph *g, uint32_t op, const uint32_t *last)
{
    const uint32_t made = g->out[g->out_begin[op]], begin = g->in_begin[op];
    uint32_t chosen = REMAT_NONE;
    for (uint32_t k = begin; k < g->in_begin[op + 1]; k++) {
        if (!could_take(g, made, g->in[k])) continue;
        if (last[g->root[g->in[k]]] == op) return k - begin;
        if (chosen == REMAT_NONE) chosen = k - begin;
    }
    return chosen;
}

remat_status rm_declare_inplace(remat_ctx *ctx, remat_graph *g)
{
    uint32_t *last;
    TRY(RM_SCRATCH(ctx, last, g->n_values));
    for (uint32_t op = 0; op < g->n_ops; op++)
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
            last[g->root[g->in[k]]] = op;
    for (uint32_t i = 0; i < g->n_outputs; i++) last[g->root[g->outputs[i]]] = g->n_ops;
    for (uint32_t op = 0; op < g->n_ops; op++) {
        const uint32_t first = g->out_begin[op];
        if (g->out_begin[op + 1] - first != 1 || g->out_source[first] != REMAT_NONE ||
            g->out_takes[first] != REMAT_NONE ||
            !is_listed(g, op, elementwise, RM_LEN(elementwise)))
            continue;
        g->out_takes[first] = choose_input(g, op, last);
        g->n_inplace += g->out_takes[first] != REMAT_NONE;
    }
    return REMAT_OK;
}
