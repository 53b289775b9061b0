/* layers.c: the layers that the models are made of.
 *
 * Problem: state once, per layer, its parameters, its exact output shape, its FLOPs and the aten
 * ops that torch runs for it. Method: one function per layer. It emits the ops which AOTAutograd
 * traces in training mode, with the same views and copies, because views decide what is kept. A
 * linear layer on a sequence is view, t, addmm, view. An attention head is view, permute, clone,
 * view. FLOPs are two per multiply-add of a convolution or a matrix product, and 0 for all else.
 *
 * Departures: there is no dropout. Batch norm emits its new running mean and variance as graph
 * outputs, but not torch's counter of batches, which has eight bytes.
 *
 * Invariants: two calls that write onto the tape are never arguments of one call, because C leaves
 * open which comes first. Layers read only shapes, so they need not know that a tape has failed.
 * Cost: O(1) ops each. */
#include "zoo/layers.h"

#include <assert.h>
#include <inttypes.h>

static const rm_shape scalar = {0};

static int64_t at_least_1(int64_t x) { return x > 0 ? x : 1; }

/* The size of a sliding window's output, at least 1 or the tape fails. */
static int64_t slide(rm_tape *tape, int64_t size, rm_window window)
{
    const int64_t room = size + 2 * window.padding - window.kernel;
    if (room < 0)
        rm_tape_fail(tape, "an image of %" PRId64 " pixels is too small for this model", size);
    return room < 0 ? 1 : room / window.stride + 1;
}

/* A convolution's output is so many pixels high or wide, where its input is `size`, and its kernel
 * and padding are those of the direction. */
static int64_t conv_size(rm_tape *tape, int64_t size, const rm_conv_spec *spec, int64_t kernel,
                         int64_t padding)
{
    const int64_t stride = at_least_1(spec->stride);
    if (spec->transposed) return (size - 1) * stride + kernel - 2 * padding;
    return slide(tape, size, (rm_window){kernel, stride, padding});
}

rm_tensor *rm_conv(rm_tape *tape, const char *name, rm_tensor *x, rm_conv_spec spec)
{
    const int64_t channels = x->shape.dim[1], groups = at_least_1(spec.groups),
                  kernel = spec.kernel, across = spec.kernel_width ? spec.kernel_width : kernel,
                  beside = spec.kernel_width ? spec.padding_width : spec.padding;
    const int64_t height = conv_size(tape, x->shape.dim[2], &spec, kernel, spec.padding);
    const int64_t width = conv_size(tape, x->shape.dim[3], &spec, across, beside);
    const rm_shape out = RM_SHAPE(x->shape.dim[0], spec.channels, height, width);
    const rm_shape weight = spec.transposed
                                ? RM_SHAPE(channels, spec.channels / groups, kernel, across)
                                : RM_SHAPE(spec.channels, channels / groups, kernel, across);
    /* Each element of the small side meets a kernel window of every channel of the other side in
     * its group. */
    const int64_t *small = spec.transposed ? x->shape.dim : out.dim;
    const int64_t flops =
        RM_PRODUCT(tape, 2, small[0], small[1], small[2], small[3], weight.dim[1], kernel, across);
    rm_tensor *in[3] = {x, rm_tape_param(tape, name, "weight", weight)};
    if (spec.bias) in[2] = rm_tape_param(tape, name, "bias", RM_SHAPE(spec.channels));
    return rm_tape_op(tape, RM_CONV, name, in, spec.bias ? 3 : 2, &out, 1, flops);
}

rm_tensor *rm_conv_bn(rm_tape *tape, const char *prefix, const char *suffix, rm_tensor *x,
                      rm_conv_spec spec)
{
    x = rm_conv(tape, rm_tape_name(tape, "%sconv%s", prefix, suffix), x, spec);
    return rm_batch_norm(tape, rm_tape_name(tape, "%sbn%s", prefix, suffix), x);
}

rm_tensor *rm_conv_bn_relu(rm_tape *tape, const char *prefix, const char *suffix, rm_tensor *x,
                           rm_conv_spec spec)
{
    return rm_relu(tape, rm_tape_name(tape, "%srelu%s", prefix, suffix),
                   rm_conv_bn(tape, prefix, suffix, x, spec));
}

rm_tensor *rm_conv_stack(rm_tape *tape, const char *name, rm_tensor *x, int64_t channels,
                         int n_convs, bool batch_norm)
{
    for (int i = 1; i <= n_convs; i++) {
        x = rm_conv(tape, rm_tape_name(tape, "%s_conv%d", name, i), x,
                    (rm_conv_spec){channels, 3, .padding = 1, .bias = true});
        if (batch_norm) x = rm_batch_norm(tape, rm_tape_name(tape, "%s_bn%d", name, i), x);
        x = rm_relu(tape, rm_tape_name(tape, "%s_relu%d", name, i), x);
    }
    return x;
}

const rm_vgg_block rm_vgg16[RM_VGG_BLOCKS] = {{64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}};
const rm_vgg_block rm_vgg19[RM_VGG_BLOCKS] = {{64, 2}, {128, 2}, {256, 4}, {512, 4}, {512, 4}};

void rm_vgg_blocks(rm_tape *tape, rm_tensor *x, const rm_vgg_block *blocks, int n_blocks,
                   bool batch_norm, rm_tensor *pools[])
{
    for (int i = 0; i < n_blocks; i++) {
        const char *name = rm_tape_name(tape, "block%d", i + 1);
        x = rm_conv_stack(tape, name, x, blocks[i].channels, blocks[i].n_convs, batch_norm);
        x = rm_max_pool(tape, rm_tape_name(tape, "%s_pool", name), x, (rm_window){2, 2, 0});
        pools[i] = x;
    }
}

rm_tensor *rm_batch_norm(rm_tape *tape, const char *name, rm_tensor *x)
{
    const rm_shape stat = RM_SHAPE(x->shape.dim[1]);
    rm_tensor *weight = rm_tape_param(tape, name, "weight", stat),
              *bias = rm_tape_param(tape, name, "bias", stat);
    rm_tensor *mean = rm_tape_buffer(tape, name, "running_mean", stat),
              *var = rm_tape_buffer(tape, name, "running_var", stat);
    rm_tensor *in[] = {x, weight, bias, mean, var};
    /* The result, mean, 1 / deviation, new running mean and variance. */
    const rm_shape out[] = {x->shape, stat, stat, stat, stat};
    rm_tensor *y = rm_tape_op(tape, RM_BATCH_NORM, name, in, RM_LEN(in), out, RM_LEN(out), 0);
    rm_tape_output(tape, &y[3]);
    rm_tape_output(tape, &y[4]);
    return y;
}

rm_tensor *rm_layer_norm(rm_tape *tape, const char *name, rm_tensor *x)
{
    const uint32_t last = x->shape.rank - 1;
    rm_shape stat = x->shape;
    stat.dim[last] = 1;
    const rm_shape width = RM_SHAPE(x->shape.dim[last]);
    const rm_shape out[] = {x->shape, stat, stat}; /* the result, mean, 1 / deviation */
    rm_tensor *weight = rm_tape_param(tape, name, "weight", width),
              *bias = rm_tape_param(tape, name, "bias", width);
    rm_tensor *in[] = {x, weight, bias};
    return rm_tape_op(tape, RM_LAYER_NORM, name, in, RM_LEN(in), out, RM_LEN(out), 0);
}

rm_tensor *rm_linear(rm_tape *tape, const char *name, rm_tensor *x, int64_t features)
{
    const uint32_t last = x->shape.rank - 1;
    const int64_t width = x->shape.dim[last], rows = rm_tape_product(tape, x->shape.dim, last);
    rm_tensor *weight = rm_tape_param(tape, name, "weight", RM_SHAPE(features, width));
    rm_tensor *bias = rm_tape_param(tape, name, "bias", RM_SHAPE(features));
    rm_shape out = x->shape;
    out.dim[last] = features;
    const bool flat = last == 1;
    rm_tensor *rows_in = flat ? x
                              : RM_OP(tape, RM_VIEW, rm_tape_name(tape, "%s_rows", name),
                                      RM_SHAPE(rows, width), 0, x);
    rm_tensor *weight_t =
        RM_OP(tape, RM_T, rm_tape_name(tape, "%s_t", name), RM_SHAPE(width, features), 0, weight);
    const int64_t flops = RM_PRODUCT(tape, 2, rows, width, features);
    rm_tensor *y =
        RM_OP(tape, RM_ADDMM, name, RM_SHAPE(rows, features), flops, bias, rows_in, weight_t);
    return flat ? y : RM_OP(tape, RM_VIEW, rm_tape_name(tape, "%s_view", name), out, 0, y);
}

rm_tensor *rm_max_pool(rm_tape *tape, const char *name, rm_tensor *x, rm_window window)
{
    const int64_t height = slide(tape, x->shape.dim[2], window);
    const int64_t width = slide(tape, x->shape.dim[3], window);
    const rm_shape out[] = {RM_SHAPE(x->shape.dim[0], x->shape.dim[1], height, width),
                            RM_INDICES(x->shape.dim[0], x->shape.dim[1], height, width)};
    return rm_tape_op(tape, RM_MAX_POOL, name, &x, 1, out, RM_LEN(out), 0);
}

static rm_shape twice_as_large(const rm_tensor *x)
{
    return RM_SHAPE(x->shape.dim[0], x->shape.dim[1], 2 * x->shape.dim[2], 2 * x->shape.dim[3]);
}

rm_tensor *rm_unpool(rm_tape *tape, const char *name, rm_tensor *x, rm_tensor *indices)
{
    const rm_shape out = twice_as_large(x);
    return RM_OP(tape, RM_UNPOOL, name, out, 0, x, indices);
}

rm_tensor *rm_avg_pool(rm_tape *tape, const char *name, rm_tensor *x, int64_t size)
{
    const rm_shape out = RM_SHAPE(x->shape.dim[0], x->shape.dim[1], size, size);
    return RM_OP(tape, RM_AVG_POOL, name, out, 0, x);
}

rm_tensor *rm_window_mean(rm_tape *tape, const char *name, rm_tensor *x, rm_window window)
{
    const int64_t height = slide(tape, x->shape.dim[2], window);
    const int64_t width = slide(tape, x->shape.dim[3], window);
    const rm_shape out = RM_SHAPE(x->shape.dim[0], x->shape.dim[1], height, width);
    return RM_OP(tape, RM_WINDOW_MEAN, name, out, 0, x);
}

rm_tensor *rm_shift(rm_tape *tape, const char *name, rm_tensor *x)
{
    return rm_pointwise(tape, RM_PAD, name, x);
}

rm_tensor *rm_upsample(rm_tape *tape, const char *name, rm_tensor *x)
{
    const rm_shape out = twice_as_large(x);
    return RM_OP(tape, RM_UPSAMPLE, name, out, 0, x);
}

rm_tensor *rm_mean(rm_tape *tape, const char *name, rm_tensor *x)
{
    rm_tensor *mean =
        RM_OP(tape, RM_MEAN, name, RM_SHAPE(x->shape.dim[0], x->shape.dim[1], 1, 1), 0, x);
    return rm_flatten(tape, rm_tape_name(tape, "%s_flat", name), mean);
}

rm_tensor *rm_flatten(rm_tape *tape, const char *name, rm_tensor *x)
{
    const int64_t features = rm_tape_product(tape, x->shape.dim + 1, x->shape.rank - 1);
    return RM_OP(tape, RM_VIEW, name, RM_SHAPE(x->shape.dim[0], features), 0, x);
}

rm_tensor *rm_pointwise(rm_tape *tape, rm_op_kind kind, const char *name, rm_tensor *x)
{
    return RM_OP(tape, kind, name, x->shape, 0, x);
}

rm_tensor *rm_relu(rm_tape *tape, const char *name, rm_tensor *x)
{
    return rm_pointwise(tape, RM_RELU, name, x);
}

rm_tensor *rm_add(rm_tape *tape, const char *name, rm_tensor *x, rm_tensor *y)
{
    return RM_OP(tape, RM_ADD, name, x->shape, 0, x, y);
}

rm_tensor *rm_cat(rm_tape *tape, const char *name, rm_tensor *const *in, uint32_t n_in)
{
    assert(n_in > 0);
    rm_shape out = in[0]->shape;
    for (uint32_t i = 1; i < n_in; i++) out.dim[1] += in[i]->shape.dim[1];
    return rm_tape_op(tape, RM_CAT, name, in, n_in, &out, 1, 0);
}

rm_tensor *rm_embedding(rm_tape *tape, const char *name, rm_tensor *weight, rm_tensor *indices)
{
    const rm_shape out =
        RM_SHAPE(indices->shape.dim[0], indices->shape.dim[1], weight->shape.dim[1]);
    return RM_OP(tape, RM_EMBEDDING, name, out, 0, weight, indices);
}

/* [N, S, W] to [N * heads, S, W / heads], copied; or to [N * heads, W / heads, S] for the keys. */
static rm_tensor *split_heads(rm_tape *tape, const char *name, rm_tensor *x, int64_t heads,
                              bool transposed)
{
    const int64_t n = x->shape.dim[0], length = x->shape.dim[1], width = x->shape.dim[2] / heads;
    const int64_t rows = transposed ? width : length, columns = transposed ? length : width;
    x = RM_OP(tape, RM_VIEW, rm_tape_name(tape, "%s_heads", name),
              RM_SHAPE(n, length, heads, width), 0, x);
    x = RM_OP(tape, RM_PERMUTE, rm_tape_name(tape, "%s_permuted", name),
              RM_SHAPE(n, heads, rows, columns), 0, x);
    x = rm_pointwise(tape, RM_CLONE, rm_tape_name(tape, "%s_copy", name), x);
    return RM_OP(tape, RM_VIEW, rm_tape_name(tape, "%s_batch", name),
                 RM_SHAPE(n * heads, rows, columns), 0, x);
}

/* softmax(q k / sqrt(width) + mask) v, with one matrix of scores per head, as torch runs it without
 * a fused kernel. */
static rm_tensor *attend(rm_tape *tape, const char *name, rm_tensor *q, rm_tensor *k, rm_tensor *v,
                         rm_attention_spec spec)
{
    const int64_t batch = q->shape.dim[0], length = q->shape.dim[1], width = q->shape.dim[2],
                  n = batch / spec.heads;
    const int64_t flops = RM_PRODUCT(tape, 2, batch, length, length, width);
    rm_tensor *x = RM_OP(tape, RM_BMM, rm_tape_name(tape, "%s_scores", name),
                         RM_SHAPE(batch, length, length), flops, q, k);
    x = RM_OP(tape, RM_VIEW, rm_tape_name(tape, "%s_scores_view", name),
              RM_SHAPE(n, spec.heads, length, length), 0, x);
    x = rm_pointwise(tape, RM_SCALE, rm_tape_name(tape, "%s_scaled", name), x);
    if (spec.mask) x = rm_add(tape, rm_tape_name(tape, "%s_masked", name), x, spec.mask);
    x = rm_pointwise(tape, RM_SOFTMAX, rm_tape_name(tape, "%s_softmax", name), x);
    x = RM_OP(tape, RM_VIEW, rm_tape_name(tape, "%s_softmax_view", name),
              RM_SHAPE(batch, length, length), 0, x);
    x = RM_OP(tape, RM_BMM, rm_tape_name(tape, "%s_mixed", name), RM_SHAPE(batch, length, width),
              flops, x, v);
    x = RM_OP(tape, RM_VIEW, rm_tape_name(tape, "%s_mixed_view", name),
              RM_SHAPE(n, spec.heads, length, width), 0, x);
    x = RM_OP(tape, RM_PERMUTE, rm_tape_name(tape, "%s_mixed_permuted", name),
              RM_SHAPE(n, length, spec.heads, width), 0, x);
    x = rm_pointwise(tape, RM_CLONE, rm_tape_name(tape, "%s_mixed_copy", name), x);
    return RM_OP(tape, RM_VIEW, rm_tape_name(tape, "%s_merged", name),
                 RM_SHAPE(n, length, spec.heads * width), 0, x);
}

rm_tensor *rm_attention(rm_tape *tape, const char *name, rm_tensor *x, rm_attention_spec spec)
{
    static const char *const parts[] = {"q", "k", "v"};
    const int64_t width = x->shape.dim[2];
    if (width % spec.heads != 0) rm_tape_fail(tape, "width is not a multiple of heads");
    rm_tensor *qkv[RM_LEN(parts)], *split = NULL;
    if (spec.fused) {
        rm_tensor *all = rm_linear(tape, rm_tape_name(tape, "%s_qkv", name), x, 3 * width);
        const rm_shape third[] = {x->shape, x->shape, x->shape};
        split = rm_tape_op(tape, RM_SPLIT, rm_tape_name(tape, "%s_split", name), &all, 1, third,
                           RM_LEN(third), 0);
    }
    for (size_t i = 0; i < RM_LEN(parts); i++) {
        const char *part = rm_tape_name(tape, "%s_%s", name, parts[i]);
        qkv[i] = split_heads(tape, part, split ? &split[i] : rm_linear(tape, part, x, width),
                             spec.heads, i == 1);
    }
    return rm_linear(tape, rm_tape_name(tape, "%s_out", name),
                     attend(tape, name, qkv[0], qkv[1], qkv[2], spec), width);
}

rm_tensor *rm_cross_entropy(rm_tape *tape, rm_tensor *logits)
{
    const rm_shape x = logits->shape;
    const bool image = x.rank == 4;
    rm_tensor *target = rm_tape_input(
        tape, "target", image ? RM_INDICES(x.dim[0], x.dim[2], x.dim[3]) : RM_INDICES(x.dim[0]));
    const rm_shape out[] = {scalar, scalar}; /* the loss, and the weight it was divided by */
    rm_tensor *in[] = {rm_pointwise(tape, RM_LOG_SOFTMAX, "log_softmax", logits), target};
    return rm_tape_op(tape, image ? RM_NLL_LOSS_2D : RM_NLL_LOSS, "loss", in, RM_LEN(in), out,
                      RM_LEN(out), 0);
}
