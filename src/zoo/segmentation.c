/* segmentation.c: networks that label every pixel.
 *
 * Problem: encoders whose results a decoder reads much later. These long skips make
 * rematerialization hard. Method: loops over the published layers. All convolutions keep the size
 * by padding with zeros, so nothing is cropped. Images are res pixels high, and as many wide unless
 * width says otherwise. Both are multiples of the total pooling. Cost: O(layers).
 *
 *   - unet: Ronneberger et al. 2015. One input channel, 2x2 transposed convolutions, no batch norm.
 *     The paper crops instead of padding, which changes no parameter.
 *   - vgg_unet: divamgupta/image-segmentation-keras, the model in Checkmate's evaluation. VGG16's
 *     first four blocks, then upsampling, concatenation, convolution, relu, batch norm. Its logits
 *     have half the resolution. Checkmate's images are 416 x 608.
 *   - segnet: Badrinarayanan et al. 2015. The encoder's pooling indices steer the decoder's
 *     unpooling. Every convolution but the last has batch norm and relu.
 *   - fcn8: Long et al. 2015. VGG16 with its linear layers as convolutions. The scores of two
 *     earlier blocks are added on the way up, through learned transposed convolutions without
 *     bias. */
#include "zoo/layers.h"
#include "zoo/models.h"

static const rm_window halve = {2, 2, 0};

static rm_tensor *images(rm_tape *tape, const rm_zoo_args *args, int64_t channels, int64_t divisor)
{
    const int64_t width = args->width ? args->width : args->res;
    if (args->res % divisor != 0) rm_tape_fail(tape, "res is not a multiple of %d", (int)divisor);
    if (width % divisor != 0) rm_tape_fail(tape, "width is not a multiple of %d", (int)divisor);
    return rm_tape_input(tape, "images", RM_SHAPE(args->batch, channels, args->res, width));
}

rm_tensor *rm_unet(rm_tape *tape, const rm_zoo_args *args)
{
    enum { DEPTH = 4 };
    rm_tensor *skips[DEPTH], *x = images(tape, args, 1, 1 << DEPTH);
    for (int i = 0; i < DEPTH; i++) {
        const char *level = rm_tape_name(tape, "down%d", i + 1);
        skips[i] = rm_conv_stack(tape, level, x, (int64_t)64 << i, 2, false);
        x = rm_max_pool(tape, rm_tape_name(tape, "%s_pool", level), skips[i], halve);
    }
    x = rm_conv_stack(tape, "bottom", x, (int64_t)64 << DEPTH, 2, false);
    for (int i = DEPTH - 1; i >= 0; i--) {
        const char *level = rm_tape_name(tape, "up%d", i + 1);
        const int64_t channels = (int64_t)64 << i;
        x = rm_conv(tape, rm_tape_name(tape, "%s_enlarge", level), x,
                    (rm_conv_spec){channels, 2, .stride = 2, .bias = true, .transposed = true});
        x = rm_cat(tape, rm_tape_name(tape, "%s_cat", level), (rm_tensor *[]){skips[i], x}, 2);
        x = rm_conv_stack(tape, level, x, channels, 2, false);
    }
    return rm_conv(tape, "classifier", x, (rm_conv_spec){args->classes, .kernel = 1, .bias = true});
}

rm_tensor *rm_vgg_unet(rm_tape *tape, const rm_zoo_args *args)
{
    enum { DEPTH = 4 };
    rm_tensor *pools[DEPTH];
    rm_vgg_blocks(tape, images(tape, args, 3, 1 << DEPTH), rm_vgg16, DEPTH, false, pools);
    rm_tensor *x = pools[DEPTH - 1];
    for (int i = DEPTH - 1; i >= 0; i--) {
        const char *level = rm_tape_name(tape, "up%d", i + 1);
        if (i < DEPTH - 1) {
            x = rm_upsample(tape, rm_tape_name(tape, "%s_enlarge", level), x);
            x = rm_cat(tape, rm_tape_name(tape, "%s_cat", level), (rm_tensor *[]){x, pools[i]}, 2);
        }
        x = rm_conv_stack(tape, level, x, rm_vgg16[i].channels, 1, false);
        x = rm_batch_norm(tape, rm_tape_name(tape, "%s_bn", level), x);
    }
    return rm_conv(tape, "classifier", x,
                   (rm_conv_spec){args->classes, 3, .padding = 1, .bias = true});
}

rm_tensor *rm_segnet(rm_tape *tape, const rm_zoo_args *args)
{
    rm_tensor *pools[RM_VGG_BLOCKS];
    rm_vgg_blocks(tape, images(tape, args, 3, 1 << RM_VGG_BLOCKS), rm_vgg16, RM_VGG_BLOCKS, true,
                  pools);
    rm_tensor *x = pools[RM_VGG_BLOCKS - 1];
    /* Each round mirrors block i. Its last convolution has the channels of block i - 1. */
    for (int i = RM_VGG_BLOCKS - 1; i >= 0; i--) {
        const char *level = rm_tape_name(tape, "decode%d", i + 1);
        x = rm_unpool(tape, rm_tape_name(tape, "%s_unpool", level), x, &pools[i][1]);
        x = rm_conv_stack(tape, level, x, rm_vgg16[i].channels, rm_vgg16[i].n_convs - 1, true);
        if (i > 0)
            x = rm_conv_stack(tape, rm_tape_name(tape, "%s_last", level), x,
                              rm_vgg16[i - 1].channels, 1, true);
    }
    return rm_conv(tape, "classifier", x,
                   (rm_conv_spec){args->classes, 3, .padding = 1, .bias = true});
}

/* A transposed convolution that enlarges by `factor`. Its kernel is twice as wide, so half of it
 * overlaps. */
static rm_tensor *enlarge(rm_tape *tape, const char *name, rm_tensor *x, int64_t factor)
{
    const rm_conv_spec spec = {x->shape.dim[1], 2 * factor, .stride = factor, .padding = factor / 2,
                               .transposed = true};
    return rm_conv(tape, name, x, spec);
}

rm_tensor *rm_fcn8(rm_tape *tape, const rm_zoo_args *args)
{
    rm_tensor *pools[RM_VGG_BLOCKS];
    rm_vgg_blocks(tape, images(tape, args, 3, 1 << RM_VGG_BLOCKS), rm_vgg16, RM_VGG_BLOCKS, false,
                  pools);
    rm_tensor *x =
        rm_conv(tape, "fc6", pools[4], (rm_conv_spec){4096, 7, .padding = 3, .bias = true});
    x = rm_pointwise(tape, RM_RELU, "relu6", x);
    x = rm_pointwise(tape, RM_RELU, "relu7",
                     rm_conv(tape, "fc7", x, (rm_conv_spec){4096, .kernel = 1, .bias = true}));
    const rm_conv_spec score = {args->classes, .kernel = 1, .bias = true};
    x = rm_conv(tape, "score5", x, score);
    for (int i = 4; i >= 3; i--) {
        x = enlarge(tape, rm_tape_name(tape, "enlarge%d", i + 1), x, 2);
        rm_tensor *early = rm_conv(tape, rm_tape_name(tape, "score%d", i), pools[i - 1], score);
        x = rm_add(tape, rm_tape_name(tape, "add%d", i), x, early);
    }
    return enlarge(tape, "enlarge3", x, 8);
}
