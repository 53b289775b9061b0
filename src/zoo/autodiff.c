/* autodiff.c: what a model's backward pass computes, and what it keeps for that.
 *
 * Problem: from the forward ops on a tape, write the ops that make the gradient of every parameter.
 *
 * Method: reverse-mode differentiation of the graph. The tape is walked from the last op to the
 * first, which is the order in which torch's autograd engine runs. Each op becomes the derivatives
 * of its type, by the table below. A derivative reads the gradients of the op's outputs. It also
 * reads exactly those inputs and outputs that torch saves for it: relu keeps its output, gelu its
 * input, max pooling its input and the indices. A gradient that nobody wants is not made. Gradients
 * of a tensor with several readers are added as they arrive.
 *
 * Departures from torch, none of which changes any storage:
 *   - There are no detach and transpose views in front of a derivative. They are free aliases.
 *   - Sums over broadcast dimensions keep no dimension of size one.
 *   - Gradients of expanded values are one op (div) instead of a view and an op.
 *
 * Invariants: an op is visited after all readers of its outputs, so its gradients are complete. The
 * tape's phase is backward. Cost: O(ops + edges). */
#include "zoo/tape.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>

enum { IN0 = 1, IN1 = 2, IN2 = 4, OUT0 = 1, OUT1 = 2, OUT2 = 4, OUT3 = 8, OUT4 = 16 };
#define EVERY_IN UINT32_MAX
#define COMPUTE REMAT_CLASS_COMPUTE
#define FUSIBLE REMAT_CLASS_FUSIBLE
#define VIEW REMAT_CLASS_VIEW
#define OTHER REMAT_CLASS_OTHER
#define SAME_VIEW(target)                                                                          \
    {                                                                                              \
        target, VIEW,                                                                              \
        {                                                                                          \
            {                                                                                      \
                target, VIEW, .gives = IN0                                                         \
            }                                                                                      \
        }                                                                                          \
    } /* a view whose inverse is of the same sort */

/* Forward target and class, then its derivatives. The inputs are: conv, batch_norm, layer_norm (x,
 * weight, bias, ...), addmm (bias, x, weight), embedding (weight, indices), nll_loss (log
 * probabilities, target), unpool (x, indices). */
/* clang-format off: a table */
const rm_op_type rm_op_types[RM_N_OP_KINDS] = {
    [RM_ADD] = {"aten.add.Tensor", FUSIBLE, {{NULL, .gives = IN0 | IN1}}},
    [RM_ADDMM] = {"aten.addmm.default",
                  COMPUTE,
                  {{"aten.mm.default", COMPUTE, .in = IN2, .gives = IN1, .costs = IN1},
                   {"aten.mm.default", COMPUTE, .in = IN1, .gives = IN2, .costs = IN2},
                   {"aten.sum.dim_IntList", FUSIBLE, .gives = IN0}}},
    [RM_AVG_POOL] = {"aten._adaptive_avg_pool2d.default",
                     OTHER,
                     {{"aten._adaptive_avg_pool2d_backward.default", OTHER, .in = IN0,
                       .gives = IN0}}},
    [RM_BATCH_NORM] = {"aten._native_batch_norm_legit_functional.default",
                       OTHER,
                       {{"aten.native_batch_norm_backward.default", OTHER, .in = IN0 | IN1,
                         .out = OUT1 | OUT2 | OUT3 | OUT4, .gives = IN0 | IN1 | IN2}}},
    [RM_BMM] = {"aten.bmm.default",
                COMPUTE,
                {{"aten.bmm.default", COMPUTE, .in = IN0, .gives = IN1, .costs = IN1},
                 {"aten.bmm.default", COMPUTE, .in = IN1, .gives = IN0, .costs = IN0}}},
    [RM_CAT] = {"aten.cat.default",
                OTHER,
                {{"aten.slice.Tensor", VIEW, .gives = EVERY_IN, .one_each = true}}},
    [RM_CLONE] = {"aten.clone.default", FUSIBLE, {{"aten.clone.default", FUSIBLE, .gives = IN0}}},
    [RM_CONV] = {"aten.convolution.default",
                 COMPUTE,
                 {{"aten.convolution_backward.default", COMPUTE, .in = IN0 | IN1,
                   .gives = IN0 | IN1 | IN2, .costs = IN0 | IN1}}},
    [RM_EMBEDDING] = {"aten.embedding.default",
                      OTHER,
                      {{"aten.embedding_dense_backward.default", OTHER, .in = IN1, .gives = IN0}}},
    [RM_EXPAND] = {"aten.expand.default", VIEW, {{"aten.sum.dim_IntList", FUSIBLE, .gives = IN0}}},
    [RM_GELU] = {"aten.gelu.default",
                 FUSIBLE,
                 {{"aten.gelu_backward.default", FUSIBLE, .in = IN0, .gives = IN0}}},
    [RM_LAYER_NORM] = {"aten.native_layer_norm.default",
                       OTHER,
                       {{"aten.native_layer_norm_backward.default", OTHER, .in = IN0 | IN1 | IN2,
                         .out = OUT1 | OUT2, .gives = IN0 | IN1 | IN2}}},
    [RM_LOG_SOFTMAX] = {"aten._log_softmax.default",
                        OTHER,
                        {{"aten._log_softmax_backward_data.default", OTHER, .out = OUT0,
                          .gives = IN0}}},
    [RM_MAX_POOL] = {"aten.max_pool2d_with_indices.default",
                     OTHER,
                     {{"aten.max_pool2d_with_indices_backward.default", OTHER, .in = IN0,
                       .out = OUT1, .gives = IN0}}},
    [RM_MEAN] = {"aten.mean.dim", FUSIBLE, {{"aten.div.Scalar", FUSIBLE, .gives = IN0}}},
    [RM_MM] = {"aten.mm.default",
               COMPUTE,
               {{"aten.mm.default", COMPUTE, .in = IN0, .gives = IN1, .costs = IN1},
                {"aten.mm.default", COMPUTE, .in = IN1, .gives = IN0, .costs = IN0}}},
    [RM_NLL_LOSS] = {"aten.nll_loss_forward.default",
                     OTHER,
                     {{"aten.nll_loss_backward.default", OTHER, .in = IN0 | IN1, .out = OUT1,
                       .gives = IN0}}},
    [RM_NLL_LOSS_2D] = {"aten.nll_loss2d_forward.default",
                        OTHER,
                        {{"aten.nll_loss2d_backward.default", OTHER, .in = IN0 | IN1, .out = OUT1,
                          .gives = IN0}}},
    [RM_PAD] = {"aten.constant_pad_nd.default",
                FUSIBLE,
                {{"aten.constant_pad_nd.default", FUSIBLE, .gives = IN0}}},
    [RM_PERMUTE] = SAME_VIEW("aten.permute.default"),
    [RM_RELU] = {"aten.relu.default",
                 FUSIBLE,
                 {{"aten.threshold_backward.default", FUSIBLE, .out = OUT0, .gives = IN0}}},
    [RM_SCALE] = {"aten.mul.Tensor", FUSIBLE, {{"aten.mul.Tensor", FUSIBLE, .gives = IN0}}},
    [RM_SELECT] = {"aten.select.int",
                   VIEW,
                   {{"aten.select_backward.default", OTHER, .gives = IN0}}},
    [RM_SOFTMAX] = {"aten._softmax.default",
                    OTHER,
                    {{"aten._softmax_backward_data.default", OTHER, .out = OUT0, .gives = IN0}}},
    [RM_SPLIT] = {"aten.split.Tensor", VIEW, {{"aten.cat.default", OTHER, .gives = IN0}}},
    [RM_T] = SAME_VIEW("aten.t.default"),
    [RM_TANH] = {"aten.tanh.default",
                 FUSIBLE,
                 {{"aten.tanh_backward.default", FUSIBLE, .out = OUT0, .gives = IN0}}},
    [RM_UNPOOL] = {"aten.max_unpool2d.default",
                   OTHER,
                   {{"aten.gather.default", OTHER, .in = IN1, .gives = IN0}}},
    [RM_UPSAMPLE] = {"aten.upsample_nearest2d.default",
                     OTHER,
                     {{"aten.upsample_nearest2d_backward.default", OTHER, .gives = IN0}}},
    [RM_VIEW] = SAME_VIEW("aten.view.default"),
    [RM_WINDOW_MEAN] = {"aten.avg_pool2d.default",
                        OTHER,
                        {{"aten.avg_pool2d_backward.default", OTHER, .in = IN0, .gives = IN0}}},
};
/* clang-format on */

static void add_gradient(rm_tape *tape, rm_tensor *tensor, rm_tensor *grad)
{
    if (++tensor->n_grads > 1) {
        const char *name = rm_tape_name(tape, "grad_%s_sum%" PRIu32, tensor->name, tensor->n_grads);
        rm_tensor *terms[] = {tensor->grad, grad};
        grad = rm_tape_untracked(tape, "aten.add.Tensor", FUSIBLE, name, terms, RM_LEN(terms),
                                 &tensor->shape, 1, 0);
    }
    tensor->grad = grad;
}

static bool same_shape(const rm_tensor *a, const rm_tensor *b)
{
    if (a->shape.rank != b->shape.rank) return false;
    for (uint32_t i = 0; i < a->shape.rank; i++)
        if (a->shape.dim[i] != b->shape.dim[i]) return false;
    return true;
}

/* The gradient of a sum is the gradient of each term. */
static void pass_gradient(rm_tape *tape, const rm_taped_op *op)
{
    rm_tensor *grad = op->out->grad;
    for (uint32_t i = 0; i < op->n_in; i++) {
        rm_tensor *in = op->in[i], *own = grad;
        if (!in->wants_grad) continue;
        if (!same_shape(in, grad))
            own = rm_tape_untracked(tape, "aten.sum.dim_IntList", FUSIBLE,
                                    rm_tape_name(tape, "grad_%s_in%" PRIu32, op->name, i), &grad, 1,
                                    &in->shape, 1, 0);
        add_gradient(tape, in, own);
    }
}

static uint32_t count_bits(uint32_t bits)
{
    uint32_t n = 0;
    for (; bits; bits &= bits - 1) n++;
    return n;
}

/* One op that makes the gradients of the inputs in `gives`. */
static void differentiate(rm_tape *tape, const rm_taped_op *op, const rm_derivative *rule,
                          const char *name, uint32_t gives)
{
    rm_tensor **in = NULL;
    rm_shape *shapes = NULL;
    uint32_t n_in = 0, n_out = 0;
    if (tape->status == REMAT_OK)
        tape->status = RM_SCRATCH(tape->ctx, in, op->n_in + 2 * op->n_out);
    if (tape->status == REMAT_OK) tape->status = RM_SCRATCH(tape->ctx, shapes, op->n_in);
    if (tape->status != REMAT_OK) return;
    for (uint32_t i = 0; i < op->n_out; i++)
        if (op->out[i].grad) in[n_in++] = op->out[i].grad;
    for (uint32_t i = 0; i < op->n_in; i++) {
        if (rule->in >> i & 1) in[n_in++] = op->in[i];
        if (gives >> i & 1) shapes[n_out++] = op->in[i]->shape;
    }
    for (uint32_t i = 0; i < op->n_out; i++)
        if (rule->out >> i & 1) in[n_in++] = &op->out[i];
    const int64_t flops = RM_PRODUCT(tape, op->flops, count_bits(gives & rule->costs));
    rm_tensor *grads =
        rm_tape_untracked(tape, rule->target, rule->op_class, name, in, n_in, shapes, n_out, flops);
    for (uint32_t i = 0, made = 0; i < op->n_in && tape->status == REMAT_OK; i++)
        if (gives >> i & 1) add_gradient(tape, op->in[i], &grads[made++]);
}

static bool has_gradient(const rm_taped_op *op)
{
    for (uint32_t i = 0; i < op->n_out; i++)
        if (op->out[i].grad) return true;
    return false;
}

static uint32_t wanted_inputs(const rm_taped_op *op)
{
    uint32_t wanted = 0;
    assert(op->n_in <= 32);
    for (uint32_t i = 0; i < op->n_in; i++) wanted |= (uint32_t)op->in[i]->wants_grad << i;
    return wanted;
}

static void reverse(rm_tape *tape, const rm_taped_op *op)
{
    static const char *const prefixes[RM_MAX_DERIVATIVES] = {"grad", "grad2", "grad3"};
    const uint32_t wanted = wanted_inputs(op);
    for (uint32_t d = 0; d < RM_MAX_DERIVATIVES; d++) {
        const rm_derivative *rule = &op->type->backward[d];
        const uint32_t gives = rule->gives & wanted;
        if (gives == 0) continue;
        if (!rule->target) {
            pass_gradient(tape, op);
            continue;
        }
        const char *name = rm_tape_name(tape, "%s_%s", prefixes[d], op->name);
        if (!rule->one_each) differentiate(tape, op, rule, name, gives);
        else
            for (uint32_t i = 0; i < op->n_in; i++)
                if (gives >> i & 1)
                    differentiate(tape, op, rule, rm_tape_name(tape, "%s_in%" PRIu32, name, i),
                                  1u << i);
    }
}

void rm_tape_backward(rm_tape *tape, rm_tensor *loss)
{
    tape->phase = REMAT_BACKWARD;
    rm_tape_output(tape, loss);
    rm_tensor *one = rm_tape_untracked(tape, "aten.ones_like.default", OTHER, "grad_of_loss", &loss,
                                       1, &loss->shape, 1, 0);
    add_gradient(tape, loss, one);
    for (const rm_taped_op *op = tape->last; op && tape->status == REMAT_OK; op = op->before)
        if (has_gradient(op)) reverse(tape, op);
    for (const rm_tensor *param = tape->params; param && tape->status == REMAT_OK;
         param = param->next) {
        assert(param->grad);
        rm_tape_output(tape, param->grad);
    }
}
