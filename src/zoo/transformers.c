/* transformers.c: GPT-2, BERT and ViT.
 *
 * Problem: forward passes with exactly the published parameters, and attention as torch runs it
 * without a fused kernel. One matrix of scores per head is then in memory, which is what
 * rematerialization is about. Method: one block, in two orders. GPT-2 (Radford et al. 2019) and ViT
 * (Dosovitskiy et al. 2020) normalise before each branch, and project queries, keys and values at
 * once. BERT (Devlin et al. 2018) normalises after adding, and has three projections. There is no
 * dropout. Cost: O(layers).
 *
 *   - gpt: there are `seq` positions. The head is the embedding's matrix, so its gradient is a sum
 *     of two. The target is given, not shifted.
 *   - bert: BertForSequenceClassification, that is BertModel with its pooler, then a linear
 *     classifier on the pooled first token.
 *   - vit: torchvision's vit_b_16, that is convolution to patches, class token, learned positions,
 *     linear head. */
#include "zoo/layers.h"
#include "zoo/models.h"

#include <inttypes.h>

enum { PATCH = 16, BERT_POSITIONS = 512, BERT_SEGMENTS = 2 };

/* The branch of two linear layers, four times as wide in between. */
static rm_tensor *feed_forward(rm_tape *tape, const char *prefix, rm_tensor *x)
{
    const int64_t width = x->shape.dim[2];
    x = rm_linear(tape, rm_tape_name(tape, "%s_fc1", prefix), x, 4 * width);
    x = rm_pointwise(tape, RM_GELU, rm_tape_name(tape, "%s_gelu", prefix), x);
    return rm_linear(tape, rm_tape_name(tape, "%s_fc2", prefix), x, width);
}

/* x + attention, then that + feed forward. The layer norms are on the way into the branches, or
 * after the sums. */
static rm_tensor *block(rm_tape *tape, const char *prefix, rm_tensor *x, bool norm_first,
                        rm_attention_spec attention)
{
    for (int i = 1; i <= 2; i++) {
        const char *norm = rm_tape_name(tape, "%s_norm%d", prefix, i);
        rm_tensor *y = norm_first ? rm_layer_norm(tape, norm, x) : x;
        y = i == 1 ? rm_attention(tape, rm_tape_name(tape, "%s_attention", prefix), y, attention)
                   : feed_forward(tape, prefix, y);
        x = rm_add(tape, rm_tape_name(tape, "%s_add%d", prefix, i), y, x);
        if (!norm_first) x = rm_layer_norm(tape, norm, x);
    }
    return x;
}

static rm_tensor *blocks(rm_tape *tape, const rm_zoo_args *args, rm_tensor *x, bool norm_first,
                         rm_attention_spec attention)
{
    for (int64_t i = 0; i < args->layers; i++)
        x = block(tape, rm_tape_name(tape, "block%" PRId64, i), x, norm_first, attention);
    return x;
}

/* The vectors of the first position: [N, S, W] to [N, W]. */
static rm_tensor *first_token(rm_tape *tape, rm_tensor *x)
{
    return RM_OP(tape, RM_SELECT, "first_token", RM_SHAPE(x->shape.dim[0], x->shape.dim[2]), 0, x);
}

rm_tensor *rm_gpt(rm_tape *tape, const rm_zoo_args *args)
{
    const int64_t rows = RM_PRODUCT(tape, args->batch, args->seq);
    rm_tensor *tokens = rm_tape_input(tape, "tokens", RM_INDICES(args->batch, args->seq));
    rm_tensor *positions = rm_tape_buffer(tape, "position", "ids", RM_INDICES(1, args->seq));
    rm_tensor *mask = rm_tape_buffer(tape, "causal", "mask", RM_SHAPE(args->seq, args->seq));
    rm_tensor *wte = rm_tape_param(tape, "wte", "weight", RM_SHAPE(args->vocab, args->width));
    rm_tensor *wpe = rm_tape_param(tape, "wpe", "weight", RM_SHAPE(args->seq, args->width));
    rm_tensor *words = rm_embedding(tape, "wte", wte, tokens);
    rm_tensor *x = rm_add(tape, "embedded", words, rm_embedding(tape, "wpe", wpe, positions));
    x = blocks(tape, args, x, true, (rm_attention_spec){args->heads, .fused = true, .mask = mask});
    x = rm_layer_norm(tape, "norm", x);
    x = RM_OP(tape, RM_VIEW, "head_rows", RM_SHAPE(rows, args->width), 0, x);
    rm_tensor *head = RM_OP(tape, RM_T, "head_t", RM_SHAPE(args->width, args->vocab), 0, wte);
    const int64_t flops = RM_PRODUCT(tape, 2, rows, args->width, args->vocab);
    return RM_OP(tape, RM_MM, "head", RM_SHAPE(rows, args->vocab), flops, x, head);
}

rm_tensor *rm_bert(rm_tape *tape, const rm_zoo_args *args)
{
    rm_tensor *tokens = rm_tape_input(tape, "tokens", RM_INDICES(args->batch, args->seq));
    rm_tensor *segments = rm_tape_input(tape, "segment_ids", RM_INDICES(args->batch, args->seq));
    rm_tensor *positions = rm_tape_buffer(tape, "position", "ids", RM_INDICES(1, args->seq));
    const struct {
        const char *name;
        int64_t rows;
        rm_tensor *indices;
    } tables[] = {{"words", args->vocab, tokens},
                  {"segments", BERT_SEGMENTS, segments},
                  {"positions", BERT_POSITIONS, positions}};
    rm_tensor *x = NULL;
    for (size_t i = 0; i < RM_LEN(tables); i++) {
        rm_tensor *weight =
            rm_tape_param(tape, tables[i].name, "weight", RM_SHAPE(tables[i].rows, args->width));
        rm_tensor *vectors = rm_embedding(tape, tables[i].name, weight, tables[i].indices);
        x = x ? rm_add(tape, rm_tape_name(tape, "add_%s", tables[i].name), x, vectors) : vectors;
    }
    x = rm_layer_norm(tape, "norm", x);
    x = blocks(tape, args, x, false, (rm_attention_spec){args->heads, .fused = false});
    x = rm_pointwise(tape, RM_TANH, "pooled",
                     rm_linear(tape, "pooler", first_token(tape, x), args->width));
    return rm_linear(tape, "classifier", x, args->classes);
}

rm_tensor *rm_vit(rm_tape *tape, const rm_zoo_args *args)
{
    const int64_t side = args->res / PATCH, n = args->batch, width = args->width;
    if (args->res % PATCH != 0) rm_tape_fail(tape, "res is not a multiple of %d", PATCH);
    rm_tensor *images = rm_tape_input(tape, "images", RM_SHAPE(n, 3, args->res, args->res));
    rm_tensor *x = rm_conv(tape, "patches", images,
                           (rm_conv_spec){width, PATCH, .stride = PATCH, .bias = true});
    x = RM_OP(tape, RM_VIEW, "patches_flat", RM_SHAPE(n, width, side * side), 0, x);
    x = RM_OP(tape, RM_PERMUTE, "patches_permuted", RM_SHAPE(n, side * side, width), 0, x);
    rm_tensor *class_token = rm_tape_param(tape, "class", "token", RM_SHAPE(1, 1, width));
    rm_tensor *token =
        RM_OP(tape, RM_EXPAND, "class_tokens", RM_SHAPE(n, 1, width), 0, class_token);
    x = rm_cat(tape, "sequence", (rm_tensor *[]){token, x}, 2);
    x = rm_add(tape, "embedded", x,
               rm_tape_param(tape, "position", "embedding", RM_SHAPE(1, side * side + 1, width)));
    x = blocks(tape, args, x, true, (rm_attention_spec){args->heads, .fused = true});
    return rm_linear(tape, "head", first_token(tape, rm_layer_norm(tape, "norm", x)),
                     args->classes);
}
