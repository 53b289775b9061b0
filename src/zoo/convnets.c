/* convnets.c: image classifiers, as torchvision has them. MobileNet is version 1, as in the paper
 * and in Keras.
 *
 * Problem: forward passes with exactly the published layers. tests/unit/test_zoo.c checks
 * parameters and multiply-adds. Method: loops over the tables of the papers:
 *   - VGG: Simonyan and Zisserman 2014;
 *   - ResNet: He et al. 2015, with the bottleneck's stride in its 3x3 convolution, as in
 *     torchvision;
 *   - DenseNet: Huang et al. 2016;
 *   - MobileNet: Howard et al. 2017.
 * Convolutions have a bias only where no batch norm follows. Cost: O(layers), but O(layers^2) edges
 * within a block of DenseNet, because of its concatenations. */
#include "zoo/layers.h"
#include "zoo/models.h"

static rm_tensor *images(rm_tape *tape, const rm_zoo_args *args)
{
    return rm_tape_input(tape, "images", RM_SHAPE(args->batch, 3, args->res, args->res));
}

/* ---- VGG ---- */

static rm_tensor *vgg(rm_tape *tape, const rm_zoo_args *args, const rm_vgg_block *blocks)
{
    rm_tensor *pools[RM_VGG_BLOCKS];
    rm_vgg_blocks(tape, images(tape, args), blocks, RM_VGG_BLOCKS, false, pools);
    rm_tensor *x =
        rm_flatten(tape, "flatten", rm_avg_pool(tape, "avgpool", pools[RM_VGG_BLOCKS - 1], 7));
    x = rm_relu(tape, "relu6", rm_linear(tape, "fc6", x, 4096));
    x = rm_relu(tape, "relu7", rm_linear(tape, "fc7", x, 4096));
    return rm_linear(tape, "fc8", x, args->classes);
}

rm_tensor *rm_vgg16_classifier(rm_tape *tape, const rm_zoo_args *args)
{
    return vgg(tape, args, rm_vgg16);
}
rm_tensor *rm_vgg19_classifier(rm_tape *tape, const rm_zoo_args *args)
{
    return vgg(tape, args, rm_vgg19);
}

/* ---- ResNet ---- */

static rm_tensor *residual_block(rm_tape *tape, const char *prefix, rm_tensor *x, int64_t channels,
                                 int64_t stride, bool bottleneck)
{
    const int64_t out_channels = bottleneck ? 4 * channels : channels;
    rm_tensor *y = x;
    if (bottleneck) {
        y = rm_conv_bn_relu(tape, prefix, "1", y, (rm_conv_spec){channels, .kernel = 1});
        y = rm_conv_bn_relu(tape, prefix, "2", y,
                            (rm_conv_spec){channels, 3, .stride = stride, .padding = 1});
        y = rm_conv_bn(tape, prefix, "3", y, (rm_conv_spec){out_channels, .kernel = 1});
    } else {
        y = rm_conv_bn_relu(tape, prefix, "1", y,
                            (rm_conv_spec){channels, 3, .stride = stride, .padding = 1});
        y = rm_conv_bn(tape, prefix, "2", y, (rm_conv_spec){channels, 3, .padding = 1});
    }
    if (stride != 1 || x->shape.dim[1] != out_channels)
        x = rm_conv_bn(tape, prefix, "_skip", x,
                       (rm_conv_spec){out_channels, .kernel = 1, .stride = stride});
    return rm_relu(tape, rm_tape_name(tape, "%srelu", prefix),
                   rm_add(tape, rm_tape_name(tape, "%sadd", prefix), y, x));
}

static rm_tensor *resnet(rm_tape *tape, const rm_zoo_args *args, const int n_blocks[4],
                         bool bottleneck)
{
    rm_tensor *x = rm_conv_bn_relu(tape, "", "1", images(tape, args),
                                   (rm_conv_spec){64, 7, .stride = 2, .padding = 3});
    x = rm_max_pool(tape, "maxpool", x, (rm_window){3, 2, 1});
    for (int layer = 0; layer < 4; layer++)
        for (int block = 0; block < n_blocks[layer]; block++)
            x = residual_block(tape, rm_tape_name(tape, "layer%d_%d_", layer + 1, block), x,
                               (int64_t)64 << layer, layer > 0 && block == 0 ? 2 : 1, bottleneck);
    return rm_linear(tape, "fc", rm_mean(tape, "avgpool", x), args->classes);
}

rm_tensor *rm_resnet18(rm_tape *tape, const rm_zoo_args *args)
{
    return resnet(tape, args, (const int[4]){2, 2, 2, 2}, false);
}
rm_tensor *rm_resnet50(rm_tape *tape, const rm_zoo_args *args)
{
    return resnet(tape, args, (const int[4]){3, 4, 6, 3}, true);
}

/* ---- MobileNet ---- */

rm_tensor *rm_mobilenet(rm_tape *tape, const rm_zoo_args *args)
{
    static const struct {
        int64_t channels, stride;
    } pairs[] = {{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2}, {512, 1},
                 {512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1}};
    rm_tensor *x = rm_conv_bn_relu(tape, "", "1", images(tape, args),
                                   (rm_conv_spec){32, 3, .stride = 2, .padding = 1});
    for (size_t i = 0; i < RM_LEN(pairs); i++) {
        const char *prefix = rm_tape_name(tape, "block%zu_", i + 1);
        const int64_t channels = x->shape.dim[1];
        x = rm_conv_bn_relu(tape, prefix, "_depthwise", x,
                            (rm_conv_spec){channels, 3, .stride = pairs[i].stride, .padding = 1,
                                           .groups = channels});
        x = rm_conv_bn_relu(tape, prefix, "_pointwise", x,
                            (rm_conv_spec){pairs[i].channels, .kernel = 1});
    }
    return rm_linear(tape, "fc", rm_mean(tape, "avgpool", x), args->classes);
}

/* ---- DenseNet ---- */

/* Batch norm, relu, convolution: the order of DenseNet. */
static rm_tensor *bn_relu_conv(rm_tape *tape, const char *prefix, const char *suffix, rm_tensor *x,
                               rm_conv_spec spec)
{
    x = rm_batch_norm(tape, rm_tape_name(tape, "%sbn%s", prefix, suffix), x);
    x = rm_relu(tape, rm_tape_name(tape, "%srelu%s", prefix, suffix), x);
    return rm_conv(tape, rm_tape_name(tape, "%sconv%s", prefix, suffix), x, spec);
}

enum { GROWTH = 32, BOTTLENECK = 4 * GROWTH, MAX_DENSE_LAYERS = 24 };

/* Each layer reads the concatenation of the block's input and of all layers before it. */
static rm_tensor *dense_block(rm_tape *tape, int block, rm_tensor *x, int n_layers)
{
    rm_tensor *features[1 + MAX_DENSE_LAYERS] = {x};
    for (int i = 1; i <= n_layers; i++) {
        const char *prefix = rm_tape_name(tape, "dense%d_%d_", block, i);
        rm_tensor *y = rm_cat(tape, rm_tape_name(tape, "%scat", prefix), features, (uint32_t)i);
        y = bn_relu_conv(tape, prefix, "1", y, (rm_conv_spec){BOTTLENECK, .kernel = 1});
        features[i] = bn_relu_conv(tape, prefix, "2", y, (rm_conv_spec){GROWTH, 3, .padding = 1});
    }
    return rm_cat(tape, rm_tape_name(tape, "dense%d_cat", block), features, (uint32_t)n_layers + 1);
}

rm_tensor *rm_densenet121(rm_tape *tape, const rm_zoo_args *args)
{
    static const int n_layers[] = {6, 12, MAX_DENSE_LAYERS, 16};
    rm_tensor *x = rm_conv_bn_relu(tape, "", "0", images(tape, args),
                                   (rm_conv_spec){64, 7, .stride = 2, .padding = 3});
    x = rm_max_pool(tape, "maxpool", x, (rm_window){3, 2, 1});
    for (int block = 1; block <= (int)RM_LEN(n_layers); block++) {
        if (block > 1) {
            const char *prefix = rm_tape_name(tape, "transition%d_", block - 1);
            x = bn_relu_conv(tape, prefix, "", x, (rm_conv_spec){x->shape.dim[1] / 2, .kernel = 1});
            x = rm_avg_pool(tape, rm_tape_name(tape, "%spool", prefix), x, x->shape.dim[2] / 2);
        }
        x = dense_block(tape, block, x, n_layers[block - 1]);
    }
    x = rm_relu(tape, "relu5", rm_batch_norm(tape, "bn5", x));
    return rm_linear(tape, "fc", rm_mean(tape, "avgpool", x), args->classes);
}
