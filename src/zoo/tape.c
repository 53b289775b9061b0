/* tape.c: recording tensors and ops.
 *
 * Problem: a model is a few nested loops over layers. A graph is thousands of values and ops with
 * exact sizes and FLOPs. Method: each call writes straight into the graph's builder. It keeps what
 * the reverse pass (autodiff.c) will ask for, in a list from last to first: the op's type, inputs,
 * outputs and FLOPs. The outputs of an op of class `view` share the storage of its first input; no
 * other outputs share one.
 *
 * Invariants:
 *   - A tensor's value in the builder has as many bytes as the product of its shape times the bytes
 *     of its dtype.
 *   - A tensor wants a gradient if and only if it is float32 and is a parameter or computed from
 *     one.
 *   - The totals of bytes and FLOPs stay below 2^62, those of ops and edges below their limits. So
 *     nothing downstream can overflow.
 *
 * Cost: O(1) per tensor and per edge. */
#include "zoo/tape.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static const struct {
    const char *name;
    int64_t bytes;
} dtypes[] = {[RM_FLOAT32] = {"float32", 4}, [RM_INT64] = {"int64", 8}};

void rm_tape_begin(rm_tape *tape, remat_ctx *ctx, remat_builder *builder, const char *model)
{
    *tape = (rm_tape){.ctx = ctx, .builder = builder, .model = model, .phase = REMAT_FORWARD};
    tape->params_end = &tape->params;
    for (size_t i = 0; i < RM_MAX_OUT; i++)
        tape->broken[i] = (rm_tensor){.name = "", .shape = RM_SHAPE(1, 1, 1, 1)};
}

void rm_tape_fail(rm_tape *tape, const char *format, ...)
{
    if (tape->status != REMAT_OK) return;
    char reason[200];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    tape->status = rm_fail(tape->ctx, REMAT_E_USAGE, "zoo:%s: %s", tape->model, reason);
}

const char *rm_tape_name(rm_tape *tape, const char *format, ...)
{
    char text[160];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char *name = rm_scratch_copy(tape->ctx, text);
    if (!name) tape->status = REMAT_E_MEMORY;
    return name ? name : "";
}

int64_t rm_tape_product(rm_tape *tape, const int64_t *factors, size_t n_factors)
{
    int64_t product = 1;
    for (size_t i = 0; i < n_factors; i++) {
        assert(factors[i] >= 0);
        if (rm_mul_overflows(product, factors[i], &product) || product >= RM_MAX_SUM) {
            rm_tape_fail(
                tape, "these parameters make a tensor or an op of more than 2^62 bytes or FLOPs");
            return 1;
        }
    }
    return product;
}

/* Adds to a total that must stay below `limit`. */
static void bound(rm_tape *tape, int64_t *total, int64_t more, int64_t limit, const char *what)
{
    if (more >= limit - *total)
        rm_tape_fail(tape, "these parameters make a graph of more than %" PRId64 " %s", limit,
                     what);
    else *total += more;
}

/* Fills in `tensor` and adds its value to the graph: a view of `base`, or with a storage of its own
 * where base is NULL. */
static void define(rm_tape *tape, rm_tensor *tensor, const char *name, rm_shape shape,
                   const rm_tensor *base)
{
    const int64_t n_elements = rm_tape_product(tape, shape.dim, shape.rank);
    const int64_t bytes = RM_PRODUCT(tape, n_elements, dtypes[shape.dtype].bytes);
    bound(tape, &tape->bytes, bytes, RM_MAX_SUM, "bytes");
    if (tape->status != REMAT_OK) return;
    *tensor = (rm_tensor){.name = name, .shape = shape};
    tensor->value = base ? remat_builder_view(tape->builder, name, bytes, base->value)
                         : remat_builder_value(tape->builder, name, bytes);
    remat_builder_value_tensor(tape->builder, tensor->value, dtypes[shape.dtype].name, shape.dim,
                               shape.rank);
}

static rm_tensor *new_tensors(rm_tape *tape, uint32_t n)
{
    rm_tensor *tensors = NULL;
    if (tape->status == REMAT_OK) tape->status = RM_SCRATCH(tape->ctx, tensors, n);
    return tensors;
}

static rm_tensor *resident(rm_tape *tape, const char *name, rm_shape shape, remat_value_kind kind)
{
    rm_tensor *tensor = new_tensors(tape, 1);
    if (tensor) define(tape, tensor, name, shape, NULL);
    if (tape->status != REMAT_OK) return tape->broken;
    remat_builder_value_set(tape->builder, tensor->value, REMAT_VALUE_KIND, kind);
    return tensor;
}

rm_tensor *rm_tape_input(rm_tape *tape, const char *name, rm_shape shape)
{
    return resident(tape, name, shape, REMAT_INPUT);
}

rm_tensor *rm_tape_buffer(rm_tape *tape, const char *layer, const char *suffix, rm_shape shape)
{
    return resident(tape, rm_tape_name(tape, "%s_%s", layer, suffix), shape, REMAT_BUFFER);
}

rm_tensor *rm_tape_param(rm_tape *tape, const char *layer, const char *suffix, rm_shape shape)
{
    rm_tensor *param =
        resident(tape, rm_tape_name(tape, "%s_%s", layer, suffix), shape, REMAT_PARAM);
    if (tape->status != REMAT_OK) return tape->broken;
    param->wants_grad = true;
    *tape->params_end = param;
    tape->params_end = &param->next;
    return param;
}

void rm_tape_output(rm_tape *tape, const rm_tensor *tensor)
{
    if (tape->status == REMAT_OK) remat_builder_output(tape->builder, tensor->value);
}

rm_tensor *rm_tape_untracked(rm_tape *tape, const char *target, remat_class op_class,
                             const char *name, rm_tensor *const *in, uint32_t n_in,
                             const rm_shape *shapes, uint32_t n_out, int64_t flops)
{
    assert(n_out <= RM_MAX_OUT); /* as many as a broken tape has */
    rm_tensor *out = new_tensors(tape, n_out);
    bound(tape, &tape->n_ops, 1, RM_MAX_ZOO_OPS, "ops");
    bound(tape, &tape->n_edges, (int64_t)n_in + n_out, RM_MAX_ZOO_EDGES, "edges");
    bound(tape, &tape->flops, flops, RM_MAX_SUM, "FLOPs");
    for (uint32_t i = 0; i < n_out && tape->status == REMAT_OK; i++)
        define(tape, &out[i], n_out == 1 ? name : rm_tape_name(tape, "%s.%" PRIu32, name, i),
               shapes[i], op_class == REMAT_CLASS_VIEW ? in[0] : NULL);
    uint32_t *values = NULL; /* of the inputs, then of the outputs */
    if (tape->status == REMAT_OK) tape->status = RM_SCRATCH(tape->ctx, values, n_in + n_out);
    if (tape->status != REMAT_OK) return tape->broken;
    for (uint32_t i = 0; i < n_in; i++) values[i] = in[i]->value;
    for (uint32_t i = 0; i < n_out; i++) values[n_in + i] = out[i].value;
    const uint32_t op = remat_builder_op(tape->builder, name, values, n_in, values + n_in, n_out);
    remat_builder_op_target(tape->builder, op, target);
    remat_builder_op_set(tape->builder, op, REMAT_OP_CLASS, op_class);
    remat_builder_op_set(tape->builder, op, REMAT_OP_PHASE, tape->phase);
    remat_builder_op_set(tape->builder, op, REMAT_OP_FLOPS, flops);
    return out;
}

rm_tensor *rm_tape_op(rm_tape *tape, rm_op_kind kind, const char *name, rm_tensor *const *in,
                      uint32_t n_in, const rm_shape *shapes, uint32_t n_out, int64_t flops)
{
    const rm_op_type *type = &rm_op_types[kind];
    rm_tensor *out =
        rm_tape_untracked(tape, type->target, type->op_class, name, in, n_in, shapes, n_out, flops);
    rm_taped_op *op = NULL;
    if (tape->status == REMAT_OK) tape->status = RM_SCRATCH(tape->ctx, op, 1);
    if (tape->status == REMAT_OK) tape->status = RM_SCRATCH(tape->ctx, op->in, n_in);
    if (tape->status != REMAT_OK) return tape->broken;
    bool wants_grad = false;
    for (uint32_t i = 0; i < n_in; i++) {
        op->in[i] = in[i];
        wants_grad |= in[i]->wants_grad;
    }
    for (uint32_t i = 0; i < n_out; i++)
        out[i].wants_grad = wants_grad && out[i].shape.dtype == RM_FLOAT32;
    op->type = type;
    op->name = name;
    op->out = out;
    op->n_in = n_in;
    op->n_out = n_out;
    op->flops = flops;
    op->before = tape->last;
    tape->last = op;
    return out;
}
