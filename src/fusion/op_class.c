/* op_class.c: the class of an op by its name, where nobody has said it.
 *
 * The file's `class` is a hint, and many ops have none (`other`). Class rules from the context come
 * first, then the file, then the table below. A row is the op's packet: "aten.add" speaks for
 * "aten.add.Tensor".
 *
 * The table lists ops of core aten, Inductor's prims, and what their decompositions leave whole:
 * - what PyTorch's compiler fuses: pointwise ops, reductions, gathers; softmax, batch norm and
 *   losses, which it takes apart into such ops;
 * - the ops bound by arithmetic, among them layer norm, as the min-cut paper says (section 3.1);
 * - random ops and views. prims.inductor_random is none: a seed, which it reads, decides it.
 * Batch norm counts as one pass over its input, as if its statistics were known. They are small
 * and saved, so this is what running it again takes; its first run reads the input twice.
 *
 * Not in it, so `other`:
 * - pooling: it reads a value many times, so the compiler writes its input to memory first. From
 *   its offsets the indices follow (prims._low_memory_max_pool_offsets_to_indices), and the
 *   backward pass of a pooling reads each value once: these fuse;
 * - aten.cat and aten.stack, of which a compiler fuses only those of few inputs;
 * - what adds up where indices meet (index_put, scatter_add, embedding_dense_backward);
 * - batch norm that writes its running statistics in place: it must not run twice.
 *
 * Invariant: the table is sorted by packet (a test checks it).
 *
 * Cost: O(log table) an op, and linear in the class rules. */
#include "fusion/op_class.h"

#include <string.h>

enum {
    C = REMAT_CLASS_COMPUTE,
    F = REMAT_CLASS_FUSIBLE,
    R = REMAT_CLASS_RANDOM,
    V = REMAT_CLASS_VIEW
};

/* One row a line would hide the rest of the file. */
/* clang-format off */
static const struct row {
    const char *packet;
    uint8_t op_class;
} table[] = {
    {"aten._batch_norm_with_update_functional", F}, {"aten._convolution", C},
    {"aten._efficient_attention_backward", C}, {"aten._efficient_attention_forward", C},
    {"aten._flash_attention_backward", C}, {"aten._flash_attention_forward", C},
    {"aten._int_mm", C}, {"aten._log_softmax", F}, {"aten._log_softmax_backward_data", F},
    {"aten._native_batch_norm_legit_functional", F},
    {"aten._native_batch_norm_legit_no_training", F}, {"aten._reshape_alias", V},
    {"aten._scaled_dot_product_cudnn_attention", C},
    {"aten._scaled_dot_product_cudnn_attention_backward", C},
    {"aten._scaled_dot_product_efficient_attention", C},
    {"aten._scaled_dot_product_efficient_attention_backward", C},
    {"aten._scaled_dot_product_flash_attention", C},
    {"aten._scaled_dot_product_flash_attention_backward", C},
    {"aten._scaled_dot_product_flash_attention_for_cpu", C},
    {"aten._scaled_dot_product_flash_attention_for_cpu_backward", C}, {"aten._scaled_mm", C},
    {"aten._softmax", F}, {"aten._softmax_backward_data", F}, {"aten._to_copy", F},
    {"aten._unsafe_view", F}, {"aten.abs", F}, {"aten.acos", F}, {"aten.acosh", F}, {"aten.add", F},
    {"aten.addbmm", C}, {"aten.addcdiv", F}, {"aten.addcmul", F}, {"aten.addmm", C},
    {"aten.addmv", C}, {"aten.alias", V}, {"aten.alias_copy", F}, {"aten.all", F}, {"aten.amax", F},
    {"aten.amin", F}, {"aten.angle", F}, {"aten.any", F}, {"aten.arange", F}, {"aten.argmax", F},
    {"aten.argmin", F}, {"aten.as_strided", V}, {"aten.asin", F}, {"aten.asinh", F},
    {"aten.atan", F}, {"aten.atan2", F}, {"aten.atanh", F}, {"aten.avg_pool2d_backward", F},
    {"aten.baddbmm", C}, {"aten.batch_norm_backward", F}, {"aten.bernoulli", R},
    {"aten.bitwise_and", F}, {"aten.bitwise_left_shift", F}, {"aten.bitwise_not", F},
    {"aten.bitwise_or", F}, {"aten.bitwise_right_shift", F}, {"aten.bitwise_xor", F},
    {"aten.bmm", C}, {"aten.ceil", F}, {"aten.celu", F}, {"aten.chunk", V}, {"aten.clamp", F},
    {"aten.clamp_max", F}, {"aten.clamp_min", F}, {"aten.clone", F}, {"aten.constant_pad_nd", F},
    {"aten.conv1d", C}, {"aten.conv2d", C}, {"aten.conv3d", C}, {"aten.convolution", C},
    {"aten.convolution_backward", C}, {"aten.copy", F}, {"aten.copysign", F}, {"aten.cos", F},
    {"aten.cosh", F}, {"aten.cudnn_convolution", C}, {"aten.cumsum", F}, {"aten.deg2rad", F},
    {"aten.detach", V}, {"aten.diagonal", V}, {"aten.digamma", F}, {"aten.div", F}, {"aten.dot", C},
    {"aten.dropout", R}, {"aten.einsum", C}, {"aten.elu", F}, {"aten.elu_backward", F},
    {"aten.embedding", F}, {"aten.empty", F}, {"aten.empty_like", F}, {"aten.eq", F},
    {"aten.erf", F}, {"aten.erfc", F}, {"aten.erfinv", F}, {"aten.exp", F}, {"aten.exp2", F},
    {"aten.expand", V}, {"aten.expand_copy", F}, {"aten.expm1", F}, {"aten.exponential", R},
    {"aten.fill", F}, {"aten.flip", F}, {"aten.floor", F}, {"aten.floor_divide", F},
    {"aten.fmax", F}, {"aten.fmin", F}, {"aten.fmod", F}, {"aten.frac", F}, {"aten.full", F},
    {"aten.full_like", F}, {"aten.gather", F}, {"aten.ge", F}, {"aten.gelu", F},
    {"aten.gelu_backward", F}, {"aten.glu", F}, {"aten.glu_backward", F}, {"aten.gt", F},
    {"aten.hardsigmoid", F}, {"aten.hardsigmoid_backward", F}, {"aten.hardswish", F},
    {"aten.hardswish_backward", F}, {"aten.hardtanh", F}, {"aten.hardtanh_backward", F},
    {"aten.heaviside", F}, {"aten.huber_loss", F}, {"aten.huber_loss_backward", F},
    {"aten.hypot", F}, {"aten.index", F}, {"aten.index_select", F}, {"aten.isfinite", F},
    {"aten.isinf", F}, {"aten.isnan", F}, {"aten.layer_norm", C}, {"aten.le", F},
    {"aten.leaky_relu", F}, {"aten.leaky_relu_backward", F}, {"aten.lerp", F}, {"aten.lgamma", F},
    {"aten.lift_fresh", V}, {"aten.lift_fresh_copy", F}, {"aten.linear", C}, {"aten.log", F},
    {"aten.log10", F}, {"aten.log1p", F}, {"aten.log2", F}, {"aten.log_sigmoid_backward", F},
    {"aten.log_sigmoid_forward", F}, {"aten.logaddexp", F}, {"aten.logical_and", F},
    {"aten.logical_not", F}, {"aten.logical_or", F}, {"aten.logical_xor", F}, {"aten.logit", F},
    {"aten.logsumexp", F}, {"aten.lt", F}, {"aten.masked_fill", F}, {"aten.matmul", C},
    {"aten.max", F}, {"aten.max_pool2d_with_indices_backward", F}, {"aten.maximum", F},
    {"aten.mean", F}, {"aten.min", F}, {"aten.minimum", F}, {"aten.mish", F},
    {"aten.mish_backward", F}, {"aten.mm", C}, {"aten.movedim", V}, {"aten.mse_loss", F},
    {"aten.mse_loss_backward", F}, {"aten.mul", F}, {"aten.multinomial", R}, {"aten.mv", C},
    {"aten.nan_to_num", F}, {"aten.narrow", V}, {"aten.native_batch_norm_backward", F},
    {"aten.native_dropout", R}, {"aten.native_dropout_backward", F}, {"aten.native_group_norm", C},
    {"aten.native_group_norm_backward", C}, {"aten.native_layer_norm", C},
    {"aten.native_layer_norm_backward", C}, {"aten.ne", F}, {"aten.neg", F}, {"aten.new_full", F},
    {"aten.new_ones", F}, {"aten.new_zeros", F}, {"aten.nextafter", F},
    {"aten.nll_loss2d_backward", F}, {"aten.nll_loss2d_forward", F}, {"aten.nll_loss_backward", F},
    {"aten.nll_loss_forward", F}, {"aten.normal", R}, {"aten.normal_functional", R},
    {"aten.ones", F}, {"aten.ones_like", F}, {"aten.permute", V}, {"aten.permute_copy", F},
    {"aten.polar", F}, {"aten.pow", F}, {"aten.prelu", F}, {"aten.prod", F}, {"aten.rad2deg", F},
    {"aten.rand", R}, {"aten.rand_like", R}, {"aten.randint", R}, {"aten.randint_like", R},
    {"aten.randn", R}, {"aten.randn_like", R}, {"aten.randperm", R}, {"aten.real", V},
    {"aten.reciprocal", F}, {"aten.reflection_pad2d", F}, {"aten.relu", F}, {"aten.relu6", F},
    {"aten.remainder", F}, {"aten.repeat", F}, {"aten.reshape_alias", V}, {"aten.roll", F},
    {"aten.rot90", F}, {"aten.round", F}, {"aten.rsqrt", F}, {"aten.rsub", F},
    {"aten.scalar_tensor", F}, {"aten.scaled_dot_product_attention", C}, {"aten.scatter", F},
    {"aten.select", V}, {"aten.select_backward", F}, {"aten.select_scatter", F}, {"aten.selu", F},
    {"aten.sgn", F}, {"aten.sigmoid", F}, {"aten.sigmoid_backward", F}, {"aten.sign", F},
    {"aten.signbit", F}, {"aten.silu", F}, {"aten.silu_backward", F}, {"aten.sin", F},
    {"aten.sinc", F}, {"aten.sinh", F}, {"aten.slice", V}, {"aten.slice_backward", F},
    {"aten.slice_scatter", F}, {"aten.smooth_l1_loss", F}, {"aten.smooth_l1_loss_backward", F},
    {"aten.softplus", F}, {"aten.softplus_backward", F}, {"aten.split", V},
    {"aten.split_with_sizes", V}, {"aten.sqrt", F}, {"aten.square", F}, {"aten.squeeze", V},
    {"aten.std", F}, {"aten.sub", F}, {"aten.sum", F}, {"aten.swapaxes", V}, {"aten.t", V},
    {"aten.tan", F}, {"aten.tanh", F}, {"aten.tanh_backward", F}, {"aten.threshold", F},
    {"aten.threshold_backward", F}, {"aten.transpose", V}, {"aten.tril", F}, {"aten.triu", F},
    {"aten.true_divide", F}, {"aten.trunc", F}, {"aten.unbind", V}, {"aten.unfold", V},
    {"aten.uniform", R}, {"aten.unsqueeze", V}, {"aten.upsample_bilinear2d", C},
    {"aten.upsample_nearest2d", F}, {"aten.var", F}, {"aten.var_mean", F}, {"aten.view", V},
    {"aten.view_as_complex", V}, {"aten.view_as_real", V}, {"aten.view_copy", F}, {"aten.where", F},
    {"aten.xlogy", F}, {"aten.zeros", F}, {"aten.zeros_like", F},
    {"prims._low_memory_max_pool2d_offsets_to_indices", F},
    {"prims._low_memory_max_pool_offsets_to_indices", F}, {"prims.abs", F}, {"prims.acos", F},
    {"prims.acosh", F}, {"prims.add", F}, {"prims.amax", F}, {"prims.amin", F},
    {"prims.as_strided", V}, {"prims.asin", F}, {"prims.asinh", F}, {"prims.atan", F},
    {"prims.atan2", F}, {"prims.atanh", F}, {"prims.bitwise_and", F}, {"prims.bitwise_not", F},
    {"prims.bitwise_or", F}, {"prims.bitwise_xor", F}, {"prims.broadcast_in_dim", V},
    {"prims.cbrt", F}, {"prims.ceil", F}, {"prims.collapse_view", V}, {"prims.conj", V},
    {"prims.convert_element_type", F}, {"prims.cos", F}, {"prims.cosh", F}, {"prims.digamma", F},
    {"prims.div", F}, {"prims.eq", F}, {"prims.erf", F}, {"prims.erf_inv", F}, {"prims.erfc", F},
    {"prims.exp", F}, {"prims.exp2", F}, {"prims.expm1", F}, {"prims.fill", F}, {"prims.floor", F},
    {"prims.fma", F}, {"prims.fmax", F}, {"prims.fmin", F}, {"prims.fmod", F}, {"prims.full", F},
    {"prims.full_like", F}, {"prims.ge", F}, {"prims.gt", F}, {"prims.imag", F},
    {"prims.inductor_lookup_seed", F}, {"prims.inductor_randint", F}, {"prims.inductor_random", F},
    {"prims.inductor_seed", R}, {"prims.inductor_seeds", R}, {"prims.iota", F},
    {"prims.isfinite", F}, {"prims.le", F}, {"prims.lgamma", F}, {"prims.log", F},
    {"prims.log10", F}, {"prims.log1p", F}, {"prims.log2", F}, {"prims.lt", F},
    {"prims.maximum", F}, {"prims.minimum", F}, {"prims.mul", F}, {"prims.ne", F}, {"prims.neg", F},
    {"prims.pow", F}, {"prims.prepare_softmax_online", F}, {"prims.prod", F}, {"prims.real", F},
    {"prims.reciprocal", F}, {"prims.remainder", F}, {"prims.round", F}, {"prims.rsqrt", F},
    {"prims.shift_left", F}, {"prims.shift_right_arithmetic", F}, {"prims.sign", F},
    {"prims.signbit", F}, {"prims.sin", F}, {"prims.sinh", F}, {"prims.slice", V},
    {"prims.split_dim", V}, {"prims.sqrt", F}, {"prims.squeeze", V}, {"prims.sub", F},
    {"prims.sum", F}, {"prims.tan", F}, {"prims.tanh", F}, {"prims.transpose", V},
    {"prims.trunc", F}, {"prims.var", F}, {"prims.view_of", V},
    {"prims.where", F}, {"prims.xor_sum", F}, {"prims.zeta", F},
};
/* clang-format on */

const char *rm_known_packet(size_t index)
{
    return index < RM_LEN(table) ? table[index].packet : NULL;
}

size_t rm_packet_length(const char *target)
{
    const char *dot = strchr(target, '.');
    if (dot) dot = strchr(dot + 1, '.');
    return dot ? (size_t)(dot - target) : strlen(target);
}

static remat_class by_table(const char *target)
{
    const size_t length = rm_packet_length(target);
    size_t low = 0, high = RM_LEN(table);
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const int order = strncmp(table[middle].packet, target, length);
        if (order == 0 && !table[middle].packet[length]) return (remat_class)table[middle].op_class;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return REMAT_CLASS_OTHER;
}

static bool speaks_for(const char *rule, const char *target)
{
    const size_t length = strlen(rule);
    return strncmp(rule, target, length) == 0 && (!target[length] || target[length] == '.');
}

remat_class rm_op_class(const remat_ctx *ctx, const remat_graph *g, uint32_t op)
{
    const char *target = rm_text(g, g->op_target[op]);
    if (rm_is_view_op(g, op)) return REMAT_CLASS_VIEW;
    for (const rm_class_rule *rule = ctx->class_rules; rule; rule = rule->older)
        if (speaks_for(rule->target, target)) return rule->op_class;
    return g->op_class[op] != REMAT_CLASS_OTHER ? (remat_class)g->op_class[op] : by_table(target);
}

remat_status remat_ctx_class(remat_ctx *ctx, const char *target, remat_class op_class)
{
    rm_input_name(ctx, NULL);
    if (!target || !*target || op_class < REMAT_CLASS_OTHER || op_class > REMAT_CLASS_RANDOM)
        return rm_fail(ctx, REMAT_E_USAGE, "a class rule needs the name of an op and a class");
    const size_t n = strlen(target) + 1;
    char *copy = rm_arena_get(ctx, &ctx->settings, n, 1);
    rm_class_rule *rule = rm_arena_get(ctx, &ctx->settings, 1, sizeof *rule);
    if (!copy || !rule) return REMAT_E_MEMORY;
    memcpy(copy, target, n);
    *rule = (rm_class_rule){ctx->class_rules, copy, op_class};
    ctx->class_rules = rule;
    return REMAT_OK;
}

void remat_ctx_class_clear(remat_ctx *ctx)
{
    rm_arena_free(&ctx->heap, &ctx->settings); /* it holds nothing else */
    ctx->class_rules = NULL;
}
