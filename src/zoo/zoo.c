/* zoo.c: "zoo:NAME?key=value&..." to a graph, and the parser of such specs, which chains.c shares.
 *
 * Problem: models as graphs without files, with parameters that a person can type and get wrong.
 * Method: one table, MODELS (models.h says how it is written). All values are integers, or lists of
 * them. The default resolution is the published one. The default batch is that of the test graph,
 * where there is a trace of the model.
 *
 * Invariants: a model sees only values within their ranges. Ranges keep products of two parameters
 * below 2^62; the tape checks all longer ones. Cost: the model's. */
#include "zoo/layers.h"
#include "zoo/models.h"
#include "zoo/zoo.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#define IMAGES(P, batch_size, resolution, lowest)                                                  \
    P(batch, batch_size, 1, 1000000) P(res, resolution, lowest, 65536)
/* Images that need not be square: width 0 is res. */
#define SCENES(P, batch_size, resolution, lowest)                                                  \
    IMAGES(P, batch_size, resolution, lowest) P(width, 0, 0, 65536)
#define MODELS(M, P)                                                                               \
    M("bert", rm_bert,                                                                             \
      "BERT encoder with pooler and classifier (base: 109,482,240 parameters and 1,538 of the "    \
      "classifier)",                                                                               \
      P(batch, 128, 1, 1000000) P(seq, 512, 1, 512) P(layers, 12, 1, 10000)                        \
          P(width, 768, 1, 1000000) P(heads, 12, 1, 10000) P(vocab, 30522, 1, 10000000)            \
              P(classes, 2, 1, 1000000))                                                           \
    M("chain", rm_chain, "forward chain, loss, backward chain; all costs 1",                       \
      P(n, 16, 1, 500000) P(size, 1, 0, 1000000000000))                                            \
    M("densenet121", rm_densenet121, "DenseNet-121",                                               \
      IMAGES(P, 128, 224, 32) P(classes, 1000, 1, 1000000))                                        \
    M("f", rm_example_f, "tanh(tanh(x)) of the min-cut paper", P(size, 1, 0, 1000000000000))       \
    M("f1", rm_example_f1, "cos(cos(a + b + c + d)) of the min-cut paper, Fig. 2",                 \
      P(size, 1, 0, 1000000000000))                                                                \
    M("f2", rm_example_f2, "x times a random mask, of the min-cut paper; n elements",              \
      P(n, 1, 0, 1000000000000))                                                                   \
    M("fcn8", rm_fcn8, "FCN-8s on VGG16", SCENES(P, 16, 512, 32) P(classes, 21, 1, 10000))         \
    M("fig4", rm_example_fig4,                                                                     \
      "two fusion groups and an op between them, the min-cut paper's Fig. 4; the input is k "      \
      "times larger",                                                                              \
      P(size, 1, 0, 1000000000000) P(k, 1, 1, 1000000))                                            \
    M("gelu", rm_example_gelu, "GeLU of the min-cut paper, Table 1", P(size, 1, 0, 1000000000000)) \
    M("gpt", rm_gpt, "GPT-2, head tied to the embedding (small: 124,439,808 parameters)",          \
      P(batch, 8, 1, 1000000) P(seq, 1024, 1, 1000000) P(layers, 12, 1, 10000)                     \
          P(width, 768, 1, 1000000) P(heads, 12, 1, 10000) P(vocab, 50257, 1, 10000000))           \
    M("inception", rm_inception, "Inception v3, without the auxiliary classifier",                 \
      IMAGES(P, 128, 299, 75) P(classes, 1000, 1, 1000000))                                        \
    M("mlp", rm_mlp, "linear layers with relu",                                                    \
      P(batch, 1024, 1, 1000000000) P(layers, 8, 1, 100000) P(width, 1024, 1, 10000000)            \
          P(classes, 10, 1, 10000000))                                                             \
    M("mobilenet", rm_mobilenet, "MobileNet v1",                                                   \
      IMAGES(P, 512, 224, 32) P(classes, 1000, 1, 1000000))                                        \
    M("nasnet", rm_nasnet, "NASNet-A mobile (4 @ 1056)",                                           \
      IMAGES(P, 256, 224, 32) P(classes, 1000, 1, 1000000))                                        \
    M("random-layered", rm_random_layered,                                                         \
      "random layered graph: width in ops, density and skip in percent",                           \
      P(n, 100, 1, 1000000) P(width, 8, 1, 10000) P(density, 20, 0, 100) P(skip, 14, 0, 100)       \
          P(seed, 0, 0, INT64_MAX))                                                                \
    M("resnet18", rm_resnet18, "ResNet-18", IMAGES(P, 512, 224, 32) P(classes, 1000, 1, 1000000))  \
    M("resnet50", rm_resnet50, "ResNet-50", IMAGES(P, 256, 224, 32) P(classes, 1000, 1, 1000000))  \
    M("segnet", rm_segnet, "SegNet: VGG16 encoder, max unpooling",                                 \
      SCENES(P, 16, 224, 32) P(classes, 2, 1, 10000))                                              \
    M("unet", rm_unet, "U-Net with zero padding, so that sizes stay",                              \
      SCENES(P, 16, 512, 16) P(classes, 2, 1, 10000))                                              \
    M("vgg16", rm_vgg16_classifier, "VGG-16",                                                      \
      IMAGES(P, 256, 224, 32) P(classes, 1000, 1, 1000000))                                        \
    M("vgg19", rm_vgg19_classifier, "VGG-19",                                                      \
      IMAGES(P, 256, 224, 32) P(classes, 1000, 1, 1000000))                                        \
    M("vgg_unet", rm_vgg_unet, "VGG16 encoder, U-Net decoder (Checkmate)",                         \
      SCENES(P, 32, 416, 16) P(classes, 50, 1, 10000))                                             \
    M("vit", rm_vit, "Vision Transformer with 16x16 patches (default: ViT-B/16)",                  \
      IMAGES(P, 512, 224, 16) P(layers, 12, 1, 10000) P(width, 768, 1, 1000000)                    \
          P(heads, 12, 1, 10000) P(classes, 1000, 1, 1000000))

#define ROW(name, write, about, params) {name, write, NULL, {params{0}}},
static const rm_zoo_row models[] = {MODELS(ROW, RM_ZOO_KEY)};

#define ENTRY(name, write, about, params) {name, about ":" params},
static const remat_entry entries[] = {MODELS(ENTRY, RM_ZOO_HELP)};

const remat_entry *remat_zoo_at(size_t index)
{
    return index < RM_LEN(entries) ? &entries[index] : rm_chain_entry_at(index - RM_LEN(entries));
}

static bool is_name(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

/* ---- parameters ---- */

/* Decimal digits only, within the parameter's range. */
static bool parse_integer(const char *text, size_t length, const rm_zoo_param *p, int64_t *out)
{
    int64_t x = 0;
    for (size_t i = 0; i < length; i++)
        if (text[i] < '0' || text[i] > '9' || rm_mul_overflows(x, 10, &x) ||
            rm_add_overflows(x, text[i] - '0', &x))
            return false;
    *out = x;
    return length > 0 && x >= p->low && x <= p->high;
}

static bool is_list(const rm_zoo_param *p) { return p->offset == offsetof(rm_zoo_args, x); }

static bool parse_value(const char *text, size_t length, const rm_zoo_param *p, rm_zoo_args *args)
{
    if (!is_list(p))
        return parse_integer(text, length, p, (int64_t *)(void *)((char *)args + p->offset));
    for (args->n_x = 0; args->n_x < RM_MAX_LIST;) {
        const char *comma = memchr(text, ',', length);
        const size_t n = comma ? (size_t)(comma - text) : length;
        if (!parse_integer(text, n, p, &args->x[args->n_x])) return false;
        args->n_x++;
        if (!comma) return true;
        text += n + 1;
        length -= n + 1;
    }
    return false; /* too many */
}

/* One "key=value" of `length` bytes; `given`: a bit for each parameter. */
static remat_status set_argument(remat_ctx *ctx, const rm_zoo_row *row, const char *text,
                                 size_t length, unsigned *given, rm_zoo_args *args)
{
    const char *equals = memchr(text, '=', length);
    if (!equals)
        return rm_fail(ctx, REMAT_E_USAGE, "'%.*s' is not key=value",
                       (int)(length < 60 ? length : 60), text);
    const size_t key_length = (size_t)(equals - text);
    for (const rm_zoo_param *p = row->params; p->key; p++) {
        const unsigned bit = 1u << (p - row->params);
        if (!is_name(p->key, text, key_length)) continue;
        if (*given & bit) return rm_fail_at(ctx, REMAT_E_USAGE, p->key, "is given twice");
        *given |= bit;
        if (parse_value(equals + 1, length - key_length - 1, p, args)) return REMAT_OK;
        return rm_fail_at(ctx, REMAT_E_USAGE, p->key, "must be %s from %" PRId64 " to %" PRId64,
                          is_list(p) ? "a list of at most 64 integers" : "an integer", p->low,
                          p->high);
    }
    return rm_fail(ctx, REMAT_E_USAGE, "there is no parameter '%.*s'; remat gen --list shows them",
                   (int)(key_length < 60 ? key_length : 60), text);
}

remat_status rm_zoo_parse(remat_ctx *ctx, const rm_zoo_row *rows, size_t n_rows, const char *spec,
                          const rm_zoo_row **row, rm_zoo_args *args)
{
    const size_t name_length = strcspn(spec, "?");
    *row = NULL;
    for (size_t i = 0; i < n_rows; i++)
        if (is_name(rows[i].name, spec, name_length)) *row = &rows[i];
    if (!*row) return rm_fail(ctx, REMAT_E_USAGE, "no such model; remat gen --list names them");
    for (const rm_zoo_param *p = (*row)->params; p->key; p++) {
        const bool fine = parse_value(p->initial, strlen(p->initial), p, args);
        assert(fine);
        (void)fine;
    }
    unsigned given = 0;
    for (const char *text = spec + name_length; *text;) {
        text++; /* it was at the '?' or a '&' */
        const size_t length = strcspn(text, "&");
        if (length > 0) TRY(set_argument(ctx, *row, text, length, &given, args));
        text += length;
    }
    return REMAT_OK;
}

static remat_status set_batch(remat_ctx *ctx, const rm_zoo_row *row, int64_t batch,
                              rm_zoo_args *args)
{
    for (const rm_zoo_param *p = row->params; p->key; p++) {
        if (strcmp(p->key, "batch") != 0) continue;
        if (batch > p->high)
            return rm_fail_at(ctx, REMAT_E_INPUT, "batch", "goes up to %" PRId64, p->high);
        args->batch = batch;
        return REMAT_OK;
    }
    return rm_fail(ctx, REMAT_E_INPUT, "this model has no batch");
}

remat_status rm_zoo_build(remat_ctx *ctx, const char *spec, int64_t batch, remat_graph **out)
{
    const rm_zoo_row *row = NULL;
    rm_zoo_args args = {0};
    TRY(rm_zoo_parse(ctx, models, RM_LEN(models), spec, &row, &args));
    if (batch) TRY(set_batch(ctx, row, batch, &args));
    remat_builder *builder = remat_builder_new(ctx, spec);
    if (!builder) return rm_no_memory(ctx);
    const rm_mark mark = rm_scratch_mark(ctx);
    rm_tape tape;
    rm_tape_begin(&tape, ctx, builder, row->name);
    rm_tensor *logits = row->model(&tape, &args);
    if (logits) rm_tape_backward(&tape, rm_cross_entropy(&tape, logits));
    const remat_status status =
        tape.status == REMAT_OK ? remat_builder_finish(builder, out) : tape.status;
    rm_scratch_release(ctx, mark);
    remat_builder_free(builder);
    return status;
}
