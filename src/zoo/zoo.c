/* zoo.c: "zoo:NAME?key=value&..." to a graph.
 *
 * Problem: models as graphs without files, with parameters that a person can type and get wrong.
 * Method: one table, MODELS: a row has the name, the function that writes the model, one line about it, and each parameter with
 * its default and range. The rows that the parser reads and the help that remat_zoo_at gives are two expansions of it. All
 * values are integers. Defaults are the published resolution and, where the test graphs have a trace of the model, its batch.
 * Invariants: a model sees only values within their ranges; ranges keep products of two parameters below 2^62, and the
 * tape checks all longer ones. Cost: the model's. */
#include "zoo/layers.h"
#include "zoo/models.h"
#include "zoo/zoo.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

/* M: name, function, what it is, parameters; P: name, default, lowest, highest. */
#define IMAGES(P, batch_size, resolution, lowest) P(batch, batch_size, 1, 1000000) P(res, resolution, lowest, 65536)
#define MODELS(M, P)                                                                                                           \
    M("bert", rm_bert, "BERT encoder with pooler and classifier (base: 109,482,240 parameters and 1,538 of the classifier)",   \
      P(batch, 128, 1, 1000000) P(seq, 512, 1, 512) P(layers, 12, 1, 10000) P(width, 768, 1, 1000000) P(heads, 12, 1, 10000)   \
          P(vocab, 30522, 1, 10000000) P(classes, 2, 1, 1000000))                                                              \
    M("chain", rm_chain, "forward chain, loss, backward chain; all costs 1", P(n, 16, 1, 500000) P(size, 1, 0, 1000000000000)) \
    M("densenet121", rm_densenet121, "DenseNet-121", IMAGES(P, 128, 224, 32) P(classes, 1000, 1, 1000000))                     \
    M("fcn8", rm_fcn8, "FCN-8s on VGG16", IMAGES(P, 16, 512, 32) P(classes, 21, 1, 10000))                                     \
    M("gpt", rm_gpt, "GPT-2, head tied to the embedding (small: 124,439,808 parameters)",                                      \
      P(batch, 8, 1, 1000000) P(seq, 1024, 1, 1000000) P(layers, 12, 1, 10000) P(width, 768, 1, 1000000)                       \
          P(heads, 12, 1, 10000) P(vocab, 50257, 1, 10000000))                                                                 \
    M("mlp", rm_mlp, "linear layers with relu",                                                                                \
      P(batch, 1024, 1, 1000000000) P(layers, 8, 1, 100000) P(width, 1024, 1, 10000000) P(classes, 10, 1, 10000000))           \
    M("mobilenet", rm_mobilenet, "MobileNet v1", IMAGES(P, 512, 224, 32) P(classes, 1000, 1, 1000000))                         \
    M("random-layered", rm_random_layered, "random layered graph: width in ops, density and skip in percent",                  \
      P(n, 100, 1, 1000000) P(width, 8, 1, 10000) P(density, 20, 0, 100) P(skip, 14, 0, 100) P(seed, 0, 0, INT64_MAX))         \
    M("resnet18", rm_resnet18, "ResNet-18", IMAGES(P, 512, 224, 32) P(classes, 1000, 1, 1000000))                              \
    M("resnet50", rm_resnet50, "ResNet-50", IMAGES(P, 256, 224, 32) P(classes, 1000, 1, 1000000))                              \
    M("segnet", rm_segnet, "SegNet: VGG16 encoder, max unpooling", IMAGES(P, 16, 224, 32) P(classes, 2, 1, 10000))             \
    M("unet", rm_unet, "U-Net with zero padding, so that sizes stay", IMAGES(P, 16, 512, 16) P(classes, 2, 1, 10000))          \
    M("vgg16", rm_vgg16, "VGG-16", IMAGES(P, 256, 224, 32) P(classes, 1000, 1, 1000000))                                       \
    M("vgg19", rm_vgg19, "VGG-19", IMAGES(P, 256, 224, 32) P(classes, 1000, 1, 1000000))                                       \
    M("vgg_unet", rm_vgg_unet, "VGG16 encoder, U-Net decoder (Checkmate)", IMAGES(P, 32, 416, 16) P(classes, 50, 1, 10000))    \
    M("vit", rm_vit, "Vision Transformer with 16x16 patches (default: ViT-B/16)",                                              \
      IMAGES(P, 512, 224, 16) P(layers, 12, 1, 10000) P(width, 768, 1, 1000000) P(heads, 12, 1, 10000)                         \
          P(classes, 1000, 1, 1000000))

typedef struct param {
    const char *key;
    size_t offset; /* in rm_zoo_args */
    int64_t initial, low, high;
} param;

typedef struct model_row {
    const char *name;
    rm_model *write;
    param params[8]; /* ends with a NULL key */
} model_row;

#define ROW(key, initial, low, high) {#key, offsetof(rm_zoo_args, key), initial, low, high},
#define MODEL(name, write, about, params) {name, write, {params{0}}},
static const model_row models[] = {MODELS(MODEL, ROW)};

#define HELP(key, initial, low, high) " " #key "=" #initial
#define ENTRY(name, write, about, params) {name, about ":" params},
static const remat_entry entries[] = {MODELS(ENTRY, HELP)};

const remat_entry *remat_zoo_at(size_t index) { return index < RM_LEN(entries) ? &entries[index] : NULL; }

/* Decimal digits only, at most INT64_MAX. */
static bool parse_integer(const char *text, size_t length, int64_t *out)
{
    int64_t x = 0;
    for (size_t i = 0; i < length; i++)
        if (text[i] < '0' || text[i] > '9' || rm_mul_overflows(x, 10, &x) || rm_add_overflows(x, text[i] - '0', &x))
            return false;
    *out = x;
    return length > 0;
}

static bool is_name(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

/* One "key=value" of `length` bytes. */
static remat_status set_argument(remat_ctx *ctx, const model_row *model, const char *text, size_t length, rm_zoo_args *args)
{
    const char *equals = memchr(text, '=', length);
    if (!equals) return rm_fail(ctx, REMAT_E_USAGE, "zoo:%s: '%.*s' is not key=value", model->name, (int)length, text);
    const size_t key_length = (size_t)(equals - text), value_length = length - key_length - 1;
    for (const param *p = model->params; p->key; p++) {
        if (!is_name(p->key, text, key_length)) continue;
        int64_t value;
        if (!parse_integer(equals + 1, value_length, &value) || value < p->low || value > p->high)
            return rm_fail(ctx, REMAT_E_USAGE, "zoo:%s: %.*s is not an integer from %" PRId64 " to %" PRId64, model->name,
                           (int)length, text, p->low, p->high);
        memcpy((char *)args + p->offset, &value, sizeof value);
        return REMAT_OK;
    }
    return rm_fail(ctx, REMAT_E_USAGE, "zoo:%s has no parameter '%.*s'; remat gen --list shows them", model->name,
                   (int)key_length, text);
}

static remat_status parse(remat_ctx *ctx, const char *spec, const model_row **out_model, rm_zoo_args *args)
{
    const size_t name_length = strcspn(spec, "?");
    const model_row *model = NULL;
    for (size_t i = 0; i < RM_LEN(models); i++)
        if (is_name(models[i].name, spec, name_length)) model = &models[i];
    if (!model) return rm_fail(ctx, REMAT_E_USAGE, "no zoo model '%.*s'; remat gen --list names them", (int)name_length, spec);
    for (const param *p = model->params; p->key; p++) memcpy((char *)args + p->offset, &p->initial, sizeof p->initial);
    const char *text = spec + name_length;
    while (*text) { /* at the '?' or a '&' */
        const size_t length = strcspn(++text, "&");
        if (length > 0) TRY(set_argument(ctx, model, text, length, args));
        text += length;
    }
    *out_model = model;
    return REMAT_OK;
}

remat_status rm_zoo_build(remat_ctx *ctx, const char *spec, remat_graph **out)
{
    const model_row *model = NULL;
    rm_zoo_args args = {0};
    TRY(parse(ctx, spec, &model, &args));
    remat_builder *builder = remat_builder_new(ctx, spec);
    if (!builder) return rm_no_memory(ctx);
    const rm_mark mark = rm_scratch_mark(ctx);
    rm_tape tape;
    rm_tape_begin(&tape, ctx, builder, model->name);
    rm_tensor *logits = model->write(&tape, &args);
    if (logits) rm_tape_backward(&tape, rm_cross_entropy(&tape, logits));
    const remat_status status = tape.status == REMAT_OK ? remat_builder_finish(builder, out) : tape.status;
    rm_scratch_release(ctx, mark);
    remat_builder_free(builder);
    return status;
}
