/* cells.c: image classifiers whose cells have many branches. Order and recomputation matter inside
 * a cell, and every cell of NASNet reads the two before it, so that there is hardly a cut.
 *
 * Method: loops over the published tables. tests/unit/test_zoo.c checks parameters and
 * multiply-adds.
 *   - inception: Szegedy et al. 2015, "Rethinking the Inception Architecture", version 3 as
 *     torchvision has it, without the auxiliary classifier;
 *   - nasnet: Zoph et al. 2018, "Learning Transferable Architectures", NASNet-A (4 @ 1056), the
 *     mobile one, as TensorFlow's and Keras' have it, without drop path. What goes on to a smaller
 *     image is sampled twice, the second time a pixel further (two paths, concatenated).
 * Every convolution is followed by a batch norm, so none has a bias. Cost: O(layers). */
#include "zoo/layers.h"
#include "zoo/models.h"

static const rm_window pool_keep = {3, 1, 1}, pool_valid = {3, 2, 0}, pool_halve = {3, 2, 1},
                       every_other = {1, 2, 0};

static rm_tensor *images(rm_tape *tape, const rm_zoo_args *args)
{
    return rm_tape_input(tape, "images", RM_SHAPE(args->batch, 3, args->res, args->res));
}

/* ---- Inception ---- */

/* A branch is a row of convolutions; NONE ends it. */
typedef enum form {
    NONE,
    ONE,    /* 1x1 */
    THREE,  /* 3x3 */
    FIVE,   /* 5x5 */
    ACROSS, /* 1x7 */
    DOWN,   /* 7x1 */
    HALVE,  /* 3x3 with stride 2, without padding */
    FLAT,   /* 1x3 */
    UPRIGHT /* 3x1 */
} form;

enum { MOST_CONVS = 6, MOST_BRANCHES = 6 };

typedef struct branch_conv {
    form form;
    int64_t channels;
} branch_conv;

static rm_conv_spec spec_of(branch_conv c)
{
    const int64_t n = c.channels;
    switch (c.form) {
    case ONE: return (rm_conv_spec){n, .kernel = 1};
    case THREE: return (rm_conv_spec){n, 3, .padding = 1};
    case FIVE: return (rm_conv_spec){n, 5, .padding = 2};
    case ACROSS: return (rm_conv_spec){n, 1, .kernel_width = 7, .padding_width = 3};
    case DOWN: return (rm_conv_spec){n, 7, .padding = 3, .kernel_width = 1};
    case HALVE: return (rm_conv_spec){n, 3, .stride = 2};
    case FLAT: return (rm_conv_spec){n, 1, .kernel_width = 3, .padding_width = 1};
    case UPRIGHT: return (rm_conv_spec){n, 3, .padding = 1, .kernel_width = 1};
    case NONE: break;
    }
    return (rm_conv_spec){0};
}

static rm_tensor *branch(rm_tape *tape, const char *prefix, rm_tensor *x, const branch_conv *convs)
{
    for (int i = 0; i < MOST_CONVS && convs[i].form != NONE; i++)
        x = rm_conv_bn_relu(tape, prefix, rm_tape_name(tape, "%d", i + 1), x, spec_of(convs[i]));
    return x;
}

/* What a cell of Inception is: branches from its input, and a pooling, which is followed by a
 * convolution or by nothing. */
typedef struct cell {
    branch_conv branches[3][MOST_CONVS]; /* an empty one is left out */
    rm_window pool;
    int64_t pool_channels; /* 0: a maximum, without a convolution; else means */
} cell;

static rm_tensor *pooled(rm_tape *tape, const char *prefix, rm_tensor *x, const cell *c)
{
    if (!c->pool_channels)
        return rm_max_pool(tape, rm_tape_name(tape, "%spool", prefix), x, c->pool);
    x = rm_window_mean(tape, rm_tape_name(tape, "%spool", prefix), x, c->pool);
    return rm_conv_bn_relu(tape, prefix, "_pool", x, (rm_conv_spec){c->pool_channels, .kernel = 1});
}

static rm_tensor *inception_cell(rm_tape *tape, const char *prefix, rm_tensor *x, const cell *c)
{
    rm_tensor *parts[MOST_BRANCHES];
    uint32_t n = 0;
    for (size_t i = 0; i < RM_LEN(c->branches); i++)
        if (c->branches[i][0].form != NONE)
            parts[n++] =
                branch(tape, rm_tape_name(tape, "%sb%zu_", prefix, i + 1), x, c->branches[i]);
    parts[n++] = pooled(tape, prefix, x, c);
    return rm_cat(tape, rm_tape_name(tape, "%scat", prefix), parts, n);
}

/* The last two cells: two of the branches end in two convolutions side by side. */
static rm_tensor *forked_cell(rm_tape *tape, const char *prefix, rm_tensor *x)
{
    static const branch_conv stems[][MOST_CONVS] = {{{ONE, 384}}, {{ONE, 448}, {THREE, 384}}};
    static const branch_conv whole[] = {{ONE, 320}, {NONE, 0}}, flat[] = {{FLAT, 384}, {NONE, 0}},
                             upright[] = {{UPRIGHT, 384}, {NONE, 0}};
    static const cell last = {.pool = {3, 1, 1}, .pool_channels = 192};
    rm_tensor *parts[MOST_BRANCHES];
    uint32_t n = 0;
    parts[n++] = branch(tape, rm_tape_name(tape, "%sb1_", prefix), x, whole);
    for (size_t i = 0; i < RM_LEN(stems); i++) {
        const char *name = rm_tape_name(tape, "%sb%zu_", prefix, i + 2);
        rm_tensor *y = branch(tape, name, x, stems[i]);
        parts[n++] = branch(tape, rm_tape_name(tape, "%sflat", name), y, flat);
        parts[n++] = branch(tape, rm_tape_name(tape, "%supright", name), y, upright);
    }
    parts[n++] = pooled(tape, prefix, x, &last);
    return rm_cat(tape, rm_tape_name(tape, "%scat", prefix), parts, n);
}

static rm_tensor *wide_cell(rm_tape *tape, const char *prefix, rm_tensor *x, int64_t narrow)
{
    const cell c = {
        {{{ONE, 192}},
         {{ONE, narrow}, {ACROSS, narrow}, {DOWN, 192}},
         {{ONE, narrow}, {DOWN, narrow}, {ACROSS, narrow}, {DOWN, narrow}, {ACROSS, 192}}},
        {3, 1, 1},
        192};
    return inception_cell(tape, prefix, x, &c);
}

static rm_tensor *square_cell(rm_tape *tape, const char *prefix, rm_tensor *x, int64_t pool)
{
    const cell c = {{{{ONE, 64}}, {{ONE, 48}, {FIVE, 64}}, {{ONE, 64}, {THREE, 96}, {THREE, 96}}},
                    {3, 1, 1},
                    pool};
    return inception_cell(tape, prefix, x, &c);
}

rm_tensor *rm_inception(rm_tape *tape, const rm_zoo_args *args)
{
    static const branch_conv before[] = {{HALVE, 32}, {NONE, 0}},
                             between[] = {{THREE, 64}, {NONE, 0}};
    static const rm_conv_spec unpadded = {32, .kernel = 3}, wide = {192, .kernel = 3};
    static const cell first_half = {{{{HALVE, 384}}, {{ONE, 64}, {THREE, 96}, {HALVE, 96}}},
                                    {3, 2, 0},
                                    0},
                      second_half = {{{{ONE, 192}, {HALVE, 320}},
                                      {{ONE, 192}, {ACROSS, 192}, {DOWN, 192}, {HALVE, 192}}},
                                     {3, 2, 0},
                                     0};
    static const int64_t pools[] = {32, 64, 64}, narrow[] = {128, 160, 160, 192};
    rm_tensor *x = branch(tape, "stem1_", images(tape, args), before);
    x = rm_conv_bn_relu(tape, "stem2_", "1", x, unpadded);
    x = rm_max_pool(tape, "pool1", branch(tape, "stem3_", x, between), pool_valid);
    x = rm_conv_bn_relu(tape, "stem4_", "1", x, (rm_conv_spec){80, .kernel = 1});
    x = rm_max_pool(tape, "pool2", rm_conv_bn_relu(tape, "stem5_", "1", x, wide), pool_valid);
    for (size_t i = 0; i < RM_LEN(pools); i++)
        x = square_cell(tape, rm_tape_name(tape, "square%zu_", i + 1), x, pools[i]);
    x = inception_cell(tape, "half1_", x, &first_half);
    for (size_t i = 0; i < RM_LEN(narrow); i++)
        x = wide_cell(tape, rm_tape_name(tape, "wide%zu_", i + 1), x, narrow[i]);
    x = inception_cell(tape, "half2_", x, &second_half);
    for (int i = 1; i <= 2; i++) x = forked_cell(tape, rm_tape_name(tape, "forked%d_", i), x);
    return rm_linear(tape, "fc", rm_mean(tape, "avgpool", x), args->classes);
}

/* ---- NASNet ---- */

/* Depthwise, then pointwise, and a batch norm. */
static rm_tensor *separable(rm_tape *tape, const char *prefix, rm_tensor *x, int64_t channels,
                            rm_conv_spec depthwise)
{
    depthwise.channels = depthwise.groups = x->shape.dim[1];
    x = rm_conv(tape, rm_tape_name(tape, "%sdepthwise", prefix), x, depthwise);
    return rm_conv_bn(tape, prefix, "", x, (rm_conv_spec){channels, .kernel = 1});
}

/* Twice relu and a separable convolution. The first one has the stride. */
static rm_tensor *twice(rm_tape *tape, const char *prefix, rm_tensor *x, int64_t middle,
                        int64_t channels, int64_t kernel, int64_t stride)
{
    const rm_conv_spec first = {.kernel = kernel, .stride = stride, .padding = kernel / 2},
                       second = {.kernel = kernel, .padding = kernel / 2};
    x = rm_relu(tape, rm_tape_name(tape, "%srelu1", prefix), x);
    x = separable(tape, rm_tape_name(tape, "%s1_", prefix), x, middle, first);
    x = rm_relu(tape, rm_tape_name(tape, "%srelu2", prefix), x);
    return separable(tape, rm_tape_name(tape, "%s2_", prefix), x, channels, second);
}

/* A cell under construction. */
typedef struct nas_cell {
    rm_tape *tape;
    const char *prefix;
    int64_t channels;
    rm_tensor *left, *right; /* of the cell before the last, and of the last, with its channels */
} nas_cell;

static const char *part(const nas_cell *c, const char *name)
{
    return rm_tape_name(c->tape, "%s%s", c->prefix, name);
}

/* Relu, 1x1, batch norm. */
static rm_tensor *squeezed(const nas_cell *c, const char *name, rm_tensor *x)
{
    x = rm_relu(c->tape, rm_tape_name(c->tape, "%s%srelu", c->prefix, name), x);
    return rm_conv_bn(c->tape, part(c, name), "", x, (rm_conv_spec){c->channels, .kernel = 1});
}

/* To half the size, and so many channels. */
static rm_tensor *sampled(const nas_cell *c, rm_tensor *x, int64_t channels)
{
    rm_tape *tape = c->tape;
    rm_tensor *paths[2];
    x = rm_relu(tape, part(c, "path_relu"), x);
    rm_tensor *const shifted = rm_shift(tape, part(c, "path_shift"), x);
    for (int i = 0; i < 2; i++) {
        paths[i] = rm_window_mean(tape, rm_tape_name(tape, "%spath%d_pool", c->prefix, i + 1),
                                  i ? shifted : x, every_other);
        paths[i] = rm_conv(tape, rm_tape_name(tape, "%spath%d_conv", c->prefix, i + 1), paths[i],
                           (rm_conv_spec){channels / 2, .kernel = 1});
    }
    return rm_batch_norm(tape, part(c, "path_bn"), rm_cat(tape, part(c, "path_cat"), paths, 2));
}

static rm_tensor *separated(const nas_cell *c, const char *name, rm_tensor *x, int64_t kernel,
                            int64_t stride)
{
    return twice(c->tape, part(c, name), x, x->shape.dim[1], c->channels, kernel, stride);
}

static rm_tensor *sum(const nas_cell *c, const char *name, rm_tensor *x, rm_tensor *y)
{
    return rm_add(c->tape, part(c, name), x, y);
}

static rm_tensor *means(const nas_cell *c, const char *name, rm_tensor *x, rm_window window)
{
    return rm_window_mean(c->tape, part(c, name), x, window);
}

static rm_tensor *normal_cell(const nas_cell *c)
{
    rm_tensor *p = c->left, *h = c->right, *parts[6] = {p};
    rm_tensor *a = separated(c, "sum1_left_", h, 5, 1), *b = separated(c, "sum1_right_", p, 3, 1);
    parts[1] = sum(c, "sum1", a, b);
    a = separated(c, "sum2_left_", p, 5, 1);
    b = separated(c, "sum2_right_", p, 3, 1);
    parts[2] = sum(c, "sum2", a, b);
    a = means(c, "sum3_left", h, pool_keep);
    parts[3] = sum(c, "sum3", a, p);
    a = means(c, "sum4_left", p, pool_keep);
    b = means(c, "sum4_right", p, pool_keep);
    parts[4] = sum(c, "sum4", a, b);
    a = separated(c, "sum5_left_", h, 3, 1);
    parts[5] = sum(c, "sum5", a, h);
    return rm_cat(c->tape, part(c, "cat"), parts, RM_LEN(parts));
}

/* `right` has all channels of its cell in the first one (the stem), where the branches from it
 * have those of this cell between their convolutions, too. */
static rm_tensor *from_right(const nas_cell *c, const char *name, int64_t kernel, bool is_stem)
{
    if (!is_stem) return separated(c, name, c->right, kernel, 2);
    return twice(c->tape, part(c, name), c->right, c->channels, c->channels, kernel, 2);
}

/* Here `left` is what the other inputs of the sums are made of. */
static rm_tensor *reduction_cell(const nas_cell *c, bool is_stem)
{
    rm_tape *tape = c->tape;
    rm_tensor *p = c->left, *parts[4];
    rm_tensor *a = separated(c, "sum1_left_", p, 5, 2),
              *b = from_right(c, "sum1_right_", 7, is_stem);
    rm_tensor *const first = sum(c, "sum1", a, b);
    a = rm_max_pool(tape, part(c, "sum2_left"), p, pool_halve);
    b = from_right(c, "sum2_right_", 7, is_stem);
    parts[0] = sum(c, "sum2", a, b);
    a = means(c, "sum3_left", p, pool_halve);
    b = from_right(c, "sum3_right_", 5, is_stem);
    parts[1] = sum(c, "sum3", a, b);
    a = means(c, "sum4_left", first, pool_keep);
    parts[2] = sum(c, "sum4", a, parts[0]);
    a = separated(c, "sum5_left_", first, 3, 1);
    b = rm_max_pool(tape, part(c, "sum5_right"), p, pool_halve);
    parts[3] = sum(c, "sum5", a, b);
    return rm_cat(tape, part(c, "cat"), parts, RM_LEN(parts));
}

/* A cell that reads x and what was before it. Where that is twice as large, it is sampled. */
static rm_tensor *nas_layer(rm_tape *tape, int number, rm_tensor *before, rm_tensor *x,
                            int64_t channels, bool reduces)
{
    nas_cell c = {
        .tape = tape, .prefix = rm_tape_name(tape, "cell%d_", number), .channels = channels};
    const bool is_larger = before->shape.dim[2] > x->shape.dim[2];
    c.left = is_larger ? sampled(&c, before, channels) : squeezed(&c, "left_", before);
    c.right = squeezed(&c, "right_", x);
    if (!reduces) return normal_cell(&c);
    rm_tensor *const left = c.left; /* sums of a reduction are made of the last cell's result */
    c.left = c.right;
    c.right = left;
    return reduction_cell(&c, false);
}

/* The first two cells, which halve the image each. */
static rm_tensor *first_stem(rm_tape *tape, rm_tensor *x, int64_t channels)
{
    nas_cell c = {.tape = tape, .prefix = "stem1_", .channels = channels, .right = x};
    c.left = squeezed(&c, "left_", x);
    return reduction_cell(&c, true);
}

static rm_tensor *second_stem(rm_tape *tape, rm_tensor *before, rm_tensor *x, int64_t channels)
{
    nas_cell c = {.tape = tape, .prefix = "stem2_", .channels = channels};
    c.left = squeezed(&c, "left_", x);
    c.right = sampled(&c, before, channels);
    return reduction_cell(&c, false);
}

rm_tensor *rm_nasnet(rm_tape *tape, const rm_zoo_args *args)
{
    enum { STEM = 32, FILTERS = 44, GROUPS = 3, NORMAL = 4 };
    rm_tensor *before =
        rm_conv_bn(tape, "", "0", images(tape, args), (rm_conv_spec){STEM, 3, .stride = 2});
    rm_tensor *x = first_stem(tape, before, FILTERS / 4);
    rm_tensor *next = second_stem(tape, before, x, FILTERS / 2);
    int number = 0;
    for (int group = 0; group < GROUPS; group++) {
        for (int i = 0; i < NORMAL + (group > 0); i++) {
            const bool reduces = group > 0 && i == 0;
            before = x;
            x = next;
            next = nas_layer(tape, ++number, before, x, (int64_t)FILTERS << group, reduces);
        }
    }
    next = rm_relu(tape, "relu", next);
    return rm_linear(tape, "fc", rm_mean(tape, "avgpool", next), args->classes);
}
