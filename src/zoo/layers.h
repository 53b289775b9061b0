/* layers.h: layers that write their parameters and ops onto a tape and return their result. Images
 * are [N, C, H, W] with H = W, sequences [N, S, W]. A layer called `conv1` has parameters
 * `conv1_weight`, `conv1_bias` and an op `conv1`. */
#ifndef RM_LAYERS_H
#define RM_LAYERS_H

#include "zoo/tape.h"

typedef struct rm_conv_spec {
    int64_t channels, kernel;
    int64_t stride, padding, groups; /* stride and groups: 0 means 1 */
    bool bias;
    bool transposed; /* the gradient of a convolution as a layer: enlarges by `stride` */
    /* Of a kernel that is not square: its width, and the padding left and right. `kernel` and
     * `padding` are its height and the padding above and below. 0: it is square. */
    int64_t kernel_width, padding_width;
} rm_conv_spec;

typedef struct rm_window {
    int64_t kernel, stride, padding;
} rm_window;

rm_tensor *rm_conv(rm_tape *tape, const char *name, rm_tensor *x, rm_conv_spec spec);
/* A convolution without bias, called `prefix`conv`suffix`, and its batch norm, called
 * `prefix`bn`suffix`; and a relu, called `prefix`relu`suffix`. */
rm_tensor *rm_conv_bn(rm_tape *tape, const char *prefix, const char *suffix, rm_tensor *x,
                      rm_conv_spec spec);
rm_tensor *rm_conv_bn_relu(rm_tape *tape, const char *prefix, const char *suffix, rm_tensor *x,
                           rm_conv_spec spec);
/* n_convs times: a 3x3 convolution with a bias that keeps the size, batch norm if asked for, relu.
 */
rm_tensor *rm_conv_stack(rm_tape *tape, const char *name, rm_tensor *x, int64_t channels,
                         int n_convs, bool batch_norm);

enum { RM_VGG_BLOCKS = 5 };
typedef struct rm_vgg_block {
    int64_t channels;
    int n_convs;
} rm_vgg_block;
extern const rm_vgg_block rm_vgg16[RM_VGG_BLOCKS], rm_vgg19[RM_VGG_BLOCKS];
/* The first n_blocks blocks of a VGG. pools[i] is the result of block i's pooling, pools[i][1] are
 * its indices. */
void rm_vgg_blocks(rm_tape *tape, rm_tensor *x, const rm_vgg_block *blocks, int n_blocks,
                   bool batch_norm, rm_tensor *pools[]);

rm_tensor *rm_batch_norm(rm_tape *tape, const char *name, rm_tensor *x);
rm_tensor *rm_layer_norm(rm_tape *tape, const char *name, rm_tensor *x);
/* On the last dimension, with a bias. */
rm_tensor *rm_linear(rm_tape *tape, const char *name, rm_tensor *x, int64_t features);
/* Two tensors: the result and the indices. */
rm_tensor *rm_max_pool(rm_tape *tape, const char *name, rm_tensor *x, rm_window window);
/* To twice the size. */
rm_tensor *rm_unpool(rm_tape *tape, const char *name, rm_tensor *x, rm_tensor *indices);
/* To size x size. */
rm_tensor *rm_avg_pool(rm_tape *tape, const char *name, rm_tensor *x, int64_t size);
rm_tensor *rm_window_mean(rm_tape *tape, const char *name, rm_tensor *x, rm_window window);
/* Everything a pixel to the upper left; zeros come in. */
rm_tensor *rm_shift(rm_tape *tape, const char *name, rm_tensor *x);
rm_tensor *rm_mean(rm_tape *tape, const char *name, rm_tensor *x);     /* over H and W, to [N, C] */
rm_tensor *rm_upsample(rm_tape *tape, const char *name, rm_tensor *x); /* nearest, twice the size */
/* An op that keeps the shape. */
rm_tensor *rm_pointwise(rm_tape *tape, rm_op_kind kind, const char *name, rm_tensor *x);
rm_tensor *rm_relu(rm_tape *tape, const char *name, rm_tensor *x);
/* The sum has x's shape; y may be broadcast. */
rm_tensor *rm_add(rm_tape *tape, const char *name, rm_tensor *x, rm_tensor *y);
/* Along dimension 1. */
rm_tensor *rm_cat(rm_tape *tape, const char *name, rm_tensor *const *in, uint32_t n_in);
rm_tensor *rm_flatten(rm_tape *tape, const char *name, rm_tensor *x); /* to [N, C * H * W] */
rm_tensor *rm_embedding(rm_tape *tape, const char *name, rm_tensor *weight, rm_tensor *indices);

typedef struct rm_attention_spec {
    int64_t heads;
    bool fused;      /* one projection for queries, keys and values, then split; or three */
    rm_tensor *mask; /* added to the scores, or NULL */
} rm_attention_spec;
rm_tensor *rm_attention(rm_tape *tape, const char *name, rm_tensor *x, rm_attention_spec spec);

/* Of logits [N, classes] or [N, classes, H, W]. It makes the target, too. */
rm_tensor *rm_cross_entropy(rm_tape *tape, rm_tensor *logits);

#endif
