/* copy.c: copies all that a value or an op carries, from a frozen graph into a builder.
 *
 * A builder that has failed stays as it is.
 *
 * Cost: linear in what is copied. */
#include "graph/copy.h"

uint32_t rm_copy_value(remat_builder *b, const remat_graph *g, uint32_t v, const char *name)
{
    const uint32_t value = remat_builder_value(b, name, g->size[v]);
    remat_builder_value_tensor(b, value, rm_text(g, g->value_dtype[v]), g->dims + g->dims_begin[v],
                               g->dims_begin[v + 1] - g->dims_begin[v]);
    remat_builder_value_set(b, value, REMAT_VALUE_KIND, g->value_kind[v]);
    const uint32_t extra = rm_builder_text(b, rm_text(g, g->value_extra[v]));
    if (b->status != REMAT_OK) return REMAT_NONE;
    rm_value_record *record = &b->values.items[value];
    record->extra = extra;
    if (b->original) record->original = g->value_original[v];
    if (rm_owns_storage(g, v)) record->storage = g->storage[v];
    return value;
}

uint32_t rm_copy_op(remat_builder *b, const remat_graph *g, uint32_t op, const char *name,
                    const uint32_t *list)
{
    const uint32_t n_in = g->in_begin[op + 1] - g->in_begin[op],
                   n_out = g->out_begin[op + 1] - g->out_begin[op];
    const uint32_t *out = n_out ? list + n_in : list; /* an empty list may be NULL */
    const uint32_t copied = remat_builder_op(b, name, list, n_in, out, n_out);
    remat_builder_op_target(b, copied, rm_text(g, g->op_target[op]));
    const uint32_t extra = rm_builder_text(b, rm_text(g, g->op_extra[op]));
    if (b->status != REMAT_OK) return REMAT_NONE;
    rm_op_record *record = &b->ops.items[copied];
    record->cost = g->given_cost[op];
    record->flops = g->flops[op];
    record->workspace = g->workspace[op];
    record->phase = g->phase[op];
    record->op_class = g->op_class[op];
    record->pinned = g->says_pinned[op];
    record->replay = g->replay[op];
    record->kernel = g->kernel[op];
    record->extra = extra;
    if (b->original) record->original = g->op_original[op];
    return copied;
}

void rm_copy_inplace(remat_builder *b, const remat_graph *g, uint32_t op, uint32_t copied)
{
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        if (g->out_takes[k] != REMAT_NONE)
            remat_builder_op_inplace(b, copied, k - g->out_begin[op], g->out_takes[k]);
}
