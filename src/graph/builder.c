/* builder.c: collects values and ops, checks them, and freezes them into a graph of one block.
 *
 * The checks are the format's rules (docs/format.md): indices in range, one producer a value, no
 * forward reference, an alias that its op can honour, sums below 2^62. Places in messages are those
 * of a remat-graph file ("nodes[7].in[1]"). Freezing is linear in the graph. Invariant: a builder
 * with status != REMAT_OK stays so, and keeps the first message. */
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

enum { MAX_INDEX = UINT32_MAX - 2 }; /* REMAT_NONE and an end must stay free */

remat_builder *remat_builder_new(remat_ctx *ctx, const char *name)
{
    remat_builder *b = rm_alloc(ctx, sizeof *b);
    if (!b) return NULL;
    b->ctx = ctx;
    b->heap = ctx->own_heap;
    if (RM_PUSH(ctx, b->text, '\0') != REMAT_OK) rm_builder_fail(b, REMAT_E_MEMORY);
    b->name = rm_builder_text(b, name);
    return b;
}

void remat_builder_free(remat_builder *b)
{
    if (!b) return;
    const remat_alloc heap = b->heap;
    RM_VEC_FREE(&heap, b->values);
    RM_VEC_FREE(&heap, b->ops);
    RM_VEC_FREE(&heap, b->lists);
    RM_VEC_FREE(&heap, b->outputs);
    RM_VEC_FREE(&heap, b->dims);
    RM_VEC_FREE(&heap, b->text);
    rm_release(&heap, b, sizeof *b);
}

void rm_builder_fail(remat_builder *b, remat_status status)
{
    if (b->status != REMAT_OK) return;
    b->status = status;
    b->error = b->ctx->error;
}

#define CHECK(b, call)                                                                             \
    do {                                                                                           \
        const remat_status status_ = (call);                                                       \
        if (status_ != REMAT_OK) rm_builder_fail((b), status_);                                    \
    } while (0)

uint32_t rm_builder_text(remat_builder *b, const char *text)
{
    if (!text || !*text || b->status != REMAT_OK) return 0;
    const size_t n = strlen(text) + 1;
    if (b->text.n + n > MAX_INDEX) {
        CHECK(b, rm_fail(b->ctx, REMAT_E_INPUT, "names take more than 4 GiB"));
        return 0;
    }
    CHECK(b, RM_RESERVE(b->ctx, b->text, n));
    if (b->status != REMAT_OK) return 0;
    const uint32_t offset = (uint32_t)b->text.n;
    memcpy(b->text.items + offset, text, n);
    b->text.n += n;
    return offset;
}

uint32_t remat_builder_value(remat_builder *b, const char *name, int64_t size_bytes)
{
    const size_t index = b->values.n;
    if (index >= MAX_INDEX) CHECK(b, rm_fail(b->ctx, REMAT_E_INPUT, "more than 4294967293 values"));
    if (b->status != REMAT_OK) return REMAT_NONE;
    const rm_value_record value = {.size = size_bytes,
                                   .storage = REMAT_ABSENT,
                                   .alias = REMAT_NONE,
                                   .name = rm_builder_text(b, name),
                                   .dims_begin = (uint32_t)b->dims.n,
                                   .original = (uint32_t)index};
    CHECK(b, RM_PUSH(b->ctx, b->values, value));
    return b->status == REMAT_OK ? (uint32_t)index : REMAT_NONE;
}

uint32_t remat_builder_view(remat_builder *b, const char *name, int64_t size_bytes, uint32_t base)
{
    const uint32_t value = remat_builder_value(b, name, size_bytes);
    remat_builder_value_set(b, value, REMAT_VALUE_ALIAS, base);
    return value;
}

void remat_builder_value_set(remat_builder *b, uint32_t value, remat_value_attr attr, int64_t x)
{
    if (b->status != REMAT_OK) return;
    if (value >= b->values.n) {
        CHECK(b, rm_fail(b->ctx, REMAT_E_USAGE, "there is no value %u", value));
        return;
    }
    rm_value_record *v = &b->values.items[value];
    switch (attr) {
    case REMAT_VALUE_SIZE: v->size = x; return;
    case REMAT_VALUE_STORAGE: v->storage = x; return;
    case REMAT_VALUE_ALIAS:
        if (x >= 0 && x < UINT32_MAX) v->alias = (uint32_t)x;
        else if (x == REMAT_ABSENT) v->alias = REMAT_NONE;
        else
            CHECK(b, rm_fail(b->ctx, REMAT_E_USAGE, "value %u: alias %lld is not a value", value,
                             (long long)x));
        return;
    case REMAT_VALUE_KIND:
        if (x < REMAT_TEMPORARY || x > REMAT_CONST)
            CHECK(b, rm_fail(b->ctx, REMAT_E_USAGE, "value %u: there is no kind %lld", value,
                             (long long)x));
        else v->kind = (uint32_t)x;
        return;
    case REMAT_VALUE_ROOT:
    case REMAT_VALUE_PRODUCER: break;
    }
    CHECK(b,
          rm_fail(b->ctx, REMAT_E_USAGE, "value %u: attribute %d cannot be set", value, (int)attr));
}

void remat_builder_value_tensor(remat_builder *b, uint32_t value, const char *dtype,
                                const int64_t *shape, uint32_t rank)
{
    if (b->status != REMAT_OK) return;
    if (value >= b->values.n || b->dims.n + rank > MAX_INDEX) {
        CHECK(b, rm_fail(b->ctx, REMAT_E_USAGE, "value %u: no such value, or too many dimensions",
                         value));
        return;
    }
    CHECK(b, RM_RESERVE(b->ctx, b->dims, rank));
    const uint32_t name = rm_builder_text(b, dtype);
    if (b->status != REMAT_OK) return;
    rm_value_record *v = &b->values.items[value];
    v->dtype = name;
    v->dims_begin = (uint32_t)b->dims.n;
    v->n_dims = rank;
    for (uint32_t i = 0; i < rank; i++) b->dims.items[b->dims.n++] = shape[i];
}

static uint32_t push_list(remat_builder *b, const uint32_t *list, uint32_t n)
{
    if (b->lists.n + n > MAX_INDEX)
        CHECK(b, rm_fail(b->ctx, REMAT_E_INPUT, "more than 4294967293 edges"));
    else CHECK(b, RM_RESERVE(b->ctx, b->lists, n));
    if (b->status != REMAT_OK) return 0;
    const uint32_t begin = (uint32_t)b->lists.n;
    if (n) memcpy(b->lists.items + begin, list, n * sizeof *list);
    b->lists.n += n;
    return begin;
}

uint32_t remat_builder_op(remat_builder *b, const char *name, const uint32_t *in, uint32_t n_in,
                          const uint32_t *out, uint32_t n_out)
{
    const size_t index = b->ops.n;
    if (index >= MAX_INDEX) CHECK(b, rm_fail(b->ctx, REMAT_E_INPUT, "more than 4294967293 ops"));
    if (b->status != REMAT_OK) return REMAT_NONE;
    const rm_op_record op = {.cost = REMAT_ABSENT,
                             .flops = REMAT_ABSENT,
                             .in_begin = push_list(b, in, n_in),
                             .n_in = n_in,
                             .out_begin = push_list(b, out, n_out),
                             .n_out = n_out,
                             .name = rm_builder_text(b, name),
                             .original = (uint32_t)index,
                             .kernel = REMAT_NONE};
    CHECK(b, RM_PUSH(b->ctx, b->ops, op));
    return b->status == REMAT_OK ? (uint32_t)index : REMAT_NONE;
}

void remat_builder_op_set(remat_builder *b, uint32_t op, remat_op_attr attr, int64_t x)
{
    if (b->status != REMAT_OK) return;
    if (op >= b->ops.n) {
        CHECK(b, rm_fail(b->ctx, REMAT_E_USAGE, "there is no op %u", op));
        return;
    }
    rm_op_record *o = &b->ops.items[op];
    const struct {
        int64_t low, high;
    } ranges[] = {[REMAT_OP_COST] = {INT64_MIN, INT64_MAX}, /* finish looks at the sums too */
                  [REMAT_OP_FLOPS] = {INT64_MIN, INT64_MAX},
                  [REMAT_OP_WORKSPACE] = {INT64_MIN, INT64_MAX},
                  [REMAT_OP_PHASE] = {0, REMAT_BACKWARD},
                  [REMAT_OP_CLASS] = {0, REMAT_CLASS_RANDOM},
                  [REMAT_OP_PINNED] = {0, 1},
                  [REMAT_OP_REPLAY] = {0, 1},
                  [REMAT_OP_KERNEL] = {REMAT_ABSENT, REMAT_NONE - 1}};
    if ((unsigned)attr >= RM_LEN(ranges) || x < ranges[attr].low || x > ranges[attr].high) {
        CHECK(b, rm_fail(b->ctx, REMAT_E_USAGE, "op %u: attribute %d cannot be %lld", op, (int)attr,
                         (long long)x));
        return;
    }
    switch (attr) {
    case REMAT_OP_COST: o->cost = x; return;
    case REMAT_OP_FLOPS: o->flops = x; return;
    case REMAT_OP_WORKSPACE: o->workspace = x; return;
    case REMAT_OP_PHASE: o->phase = (uint8_t)x; return;
    case REMAT_OP_CLASS: o->op_class = (uint8_t)x; return;
    case REMAT_OP_PINNED: o->pinned = (uint8_t)x; return;
    case REMAT_OP_REPLAY: o->replay = (uint8_t)x; return;
    case REMAT_OP_KERNEL: o->kernel = x == REMAT_ABSENT ? REMAT_NONE : (uint32_t)x; return;
    case REMAT_OP_GIVEN_COST: return; /* out of range above */
    }
}

void remat_builder_op_target(remat_builder *b, uint32_t op, const char *target)
{
    const uint32_t text = rm_builder_text(b, target);
    if (b->status != REMAT_OK) return;
    if (op >= b->ops.n) CHECK(b, rm_fail(b->ctx, REMAT_E_USAGE, "there is no op %u", op));
    else b->ops.items[op].target = text;
}

void remat_builder_output(remat_builder *b, uint32_t value)
{
    if (b->status == REMAT_OK) CHECK(b, RM_PUSH(b->ctx, b->outputs, value));
}

void remat_builder_cost_unit(remat_builder *b, const char *unit)
{
    b->cost_unit = rm_builder_text(b, unit);
}

/* ---- checks ---- */

static remat_status bad(remat_ctx *ctx, const char *list, size_t i, const char *field,
                        const char *reason)
{
    char place[80];
    snprintf(place, sizeof place, "%s[%zu]%s%s", list, i, *field ? "." : "", field);
    return rm_fail_at(ctx, REMAT_E_INPUT, place, "%s", reason);
}

/* At nodes[op].field[item]: says what is wrong with value `v`, and names `other`, another index,
 * behind it. */
static remat_status bad_item(remat_ctx *ctx, size_t op, const char *field, uint32_t item,
                             uint32_t v, const char *what, size_t other)
{
    char place[80];
    snprintf(place, sizeof place, "nodes[%zu].%s[%u]", op, field, item);
    return rm_fail_at(ctx, REMAT_E_INPUT, place, "value %u %s%zu", v, what, other);
}

static remat_status check_values(remat_builder *b, uint32_t *root, int64_t *storages)
{
    remat_ctx *ctx = b->ctx;
    int64_t sizes = 0;
    for (size_t i = 0; i < b->values.n; i++) {
        const rm_value_record *v = &b->values.items[i];
        if (v->size < 0) return bad(ctx, "values", i, "size", "must not be negative");
        if (v->size >= RM_MAX_SUM || (sizes += v->size) >= RM_MAX_SUM)
            return bad(ctx, "values", i, "size", "the sizes add up to 2^62 or more");
        for (uint32_t k = 0; k < v->n_dims; k++)
            if (b->dims.items[v->dims_begin + k] < 0 ||
                b->dims.items[v->dims_begin + k] >= RM_MAX_SUM)
                return bad(ctx, "values", i, "shape", "must not be negative or 2^62 and more");
        root[i] = (uint32_t)i;
        if (v->alias != REMAT_NONE) {
            if (v->storage != REMAT_ABSENT)
                return bad(ctx, "values", i, "storage", "an alias has no storage of its own");
            if (v->alias >= i) return bad(ctx, "values", i, "alias", "must name an earlier value");
            root[i] = root[v->alias];
            continue;
        }
        const int64_t storage = v->storage == REMAT_ABSENT ? v->size : v->storage;
        if (storage < 0) return bad(ctx, "values", i, "storage", "must not be negative");
        if (storage >= RM_MAX_SUM || (*storages += storage) >= RM_MAX_SUM)
            return bad(ctx, "values", i, "storage", "the storages add up to 2^62 or more");
    }
    return REMAT_OK;
}

static remat_status check_op_numbers(remat_builder *b, size_t i, int64_t *costs, int64_t *bytes)
{
    const rm_op_record *o = &b->ops.items[i];
    if (o->cost < REMAT_ABSENT) return bad(b->ctx, "nodes", i, "cost", "must not be negative");
    if (o->flops < REMAT_ABSENT) return bad(b->ctx, "nodes", i, "flops", "must not be negative");
    if (o->flops >= RM_MAX_SUM) return bad(b->ctx, "nodes", i, "flops", "must be below 2^62");
    if (o->workspace < 0) return bad(b->ctx, "nodes", i, "workspace", "must not be negative");
    if (o->cost >= RM_MAX_SUM || (o->cost > 0 && (*costs += o->cost) >= RM_MAX_SUM))
        return bad(b->ctx, "nodes", i, "cost", "the costs add up to 2^62 or more");
    if (o->workspace >= RM_MAX_SUM || (*bytes += o->workspace) >= RM_MAX_SUM)
        return bad(b->ctx, "nodes", i, "workspace",
                   "storages and workspaces add up to 2^62 or more");
    return REMAT_OK;
}

/* Which value of the op at hand hands its storage instance to an alias output: by root, the first
 * input, else the first output. */
typedef struct holder {
    size_t op_plus_1;
    uint32_t value;
} holder;

static void offer(holder *holders, uint32_t root, size_t op, uint32_t value)
{
    if (holders[root].op_plus_1 != op + 1) holders[root] = (holder){op + 1, value};
}

static remat_status check_ops(remat_builder *b, const uint32_t *root, int64_t storages,
                              uint32_t *producer, uint32_t *source)
{
    remat_ctx *ctx = b->ctx;
    holder *holders;
    TRY(RM_SCRATCH(ctx, holders, b->values.n));
    const size_t n_values = b->values.n;
    uint32_t n_out = 0;
    int64_t costs = 0,
            bytes = storages; /* with all workspaces, so that keep-all's memory cannot overflow */
    for (size_t i = 0; i < n_values; i++) producer[i] = REMAT_NONE;
    for (size_t i = 0; i < b->ops.n;
         i++) { /* producers first, so that a forward reference can be told from a resident value */
        const rm_op_record *o = &b->ops.items[i];
        for (uint32_t k = 0; k < o->n_out; k++) {
            const uint32_t v = b->lists.items[o->out_begin + k];
            if (v >= n_values)
                return bad_item(ctx, i, "out", k, v, "does not exist: the number of values is ",
                                n_values);
            if (producer[v] != REMAT_NONE)
                return bad_item(ctx, i, "out", k, v, "has two producers; the other is node ",
                                producer[v]);
            producer[v] = (uint32_t)i;
        }
    }
    for (size_t i = 0; i < b->ops.n; i++) {
        const rm_op_record *o = &b->ops.items[i];
        TRY(check_op_numbers(b, i, &costs, &bytes));
        for (uint32_t k = 0; k < o->n_in; k++) {
            const uint32_t v = b->lists.items[o->in_begin + k];
            if (v >= n_values)
                return bad_item(ctx, i, "in", k, v, "does not exist: the number of values is ",
                                n_values);
            if (producer[v] != REMAT_NONE && producer[v] >= i)
                return bad_item(ctx, i, "in", k, v, "is read before it is made, by node ",
                                producer[v]);
            offer(holders, root[v], i, v);
        }
        for (uint32_t k = 0; k < o->n_out; k++, n_out++) {
            const uint32_t v = b->lists.items[o->out_begin + k];
            source[n_out] = REMAT_NONE;
            if (root[v] != v) {
                if (holders[root[v]].op_plus_1 == i + 1) source[n_out] = holders[root[v]].value;
                else
                    return bad_item(
                        ctx, i, "out", k, v,
                        "is an alias, but no input of the op shares its storage, that of value ",
                        root[v]);
            }
            offer(holders, root[v], i, v);
        }
    }
    for (size_t i = 0; i < n_values; i++)
        if (producer[i] == REMAT_NONE && producer[root[i]] != REMAT_NONE)
            return bad(ctx, "values", i, "alias",
                       "no op makes this value, yet it aliases one that an op makes");
    for (size_t i = 0; i < b->outputs.n; i++)
        if (b->outputs.items[i] >= n_values)
            return bad(ctx, "outputs", i, "", "this value does not exist");
    return REMAT_OK;
}

/* ---- freezing ---- */

/* Lays the arrays of a graph out in one block: called once with base NULL to learn the size, once
 * to set the pointers. */
static size_t carve(remat_graph *g, unsigned char *base)
{
    size_t used = (sizeof *g + 15) / 16 * 16;
#define ARRAY(field, n)                                                                            \
    do {                                                                                           \
        if (base) g->field = (void *)(base + used);                                                \
        used += ((size_t)(n) * sizeof *g->field + 15) / 16 * 16;                                   \
    } while (0)
    const size_t v = g->n_values, o = g->n_ops;
    ARRAY(size, v);
    ARRAY(storage, v);
    ARRAY(alias, v);
    ARRAY(root, v);
    ARRAY(producer, v);
    ARRAY(dims_begin, v + 1);
    ARRAY(value_name, v);
    ARRAY(value_dtype, v);
    ARRAY(value_extra, v);
    ARRAY(value_original, v);
    ARRAY(value_kind, v);
    ARRAY(is_output, v);
    ARRAY(dims, g->n_dims);
    ARRAY(in_begin, o + 1);
    ARRAY(in, g->n_in);
    ARRAY(out_begin, o + 1);
    ARRAY(out, g->n_out);
    ARRAY(out_source, g->n_out);
    ARRAY(cost, o);
    ARRAY(given_cost, o);
    ARRAY(flops, o);
    ARRAY(workspace, o);
    ARRAY(op_name, o);
    ARRAY(op_target, o);
    ARRAY(op_extra, o);
    ARRAY(op_original, o);
    ARRAY(kernel, o);
    ARRAY(phase, o);
    ARRAY(op_class, o);
    ARRAY(pinned, o);
    ARRAY(replay, o);
    ARRAY(says_pinned, o);
    ARRAY(outputs, g->n_outputs);
    ARRAY(op_now, g->n_original_ops);
    ARRAY(value_now, g->n_original_values);
    ARRAY(text, g->n_text);
#undef ARRAY
    return used;
}

static void fill_values(const remat_builder *b, remat_graph *g, const uint32_t *root,
                        const uint32_t *producer)
{
    uint32_t n_dims = 0;
    for (uint32_t i = 0; i < g->n_values; i++) {
        const rm_value_record *v = &b->values.items[i];
        g->size[i] = v->size;
        g->alias[i] = v->alias;
        g->root[i] = root[i];
        g->storage[i] = root[i] != i                 ? g->storage[root[i]]
                        : v->storage == REMAT_ABSENT ? v->size
                                                     : v->storage;
        g->producer[i] = producer[i];
        g->value_kind[i] = (uint8_t)v->kind;
        g->value_name[i] = v->name;
        g->value_dtype[i] = v->dtype;
        g->value_extra[i] = v->extra;
        g->value_original[i] = v->original;
        g->value_now[v->original] = i;
        g->dims_begin[i] = n_dims;
        for (uint32_t k = 0; k < v->n_dims; k++)
            g->dims[n_dims++] = b->dims.items[v->dims_begin + k];
        if (root[i] == i && producer[i] == REMAT_NONE) g->resident_bytes += g->storage[i];
    }
    g->dims_begin[g->n_values] = n_dims;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        g->is_output[g->outputs[i] = b->outputs.items[i]] = 1;
}

static void fill_ops(const remat_builder *b, remat_graph *g, const uint32_t *source)
{
    uint32_t n_in = 0, n_out = 0;
    for (uint32_t i = 0; i < g->n_ops; i++) {
        const rm_op_record *o = &b->ops.items[i];
        g->in_begin[i] = n_in;
        g->out_begin[i] = n_out;
        for (uint32_t k = 0; k < o->n_in; k++) g->in[n_in++] = b->lists.items[o->in_begin + k];
        for (uint32_t k = 0; k < o->n_out; k++, n_out++) {
            g->out[n_out] = b->lists.items[o->out_begin + k];
            g->out_source[n_out] = source[n_out];
        }
        g->given_cost[i] = o->cost;
        g->flops[i] = o->flops;
        g->workspace[i] = o->workspace;
        g->phase[i] = o->phase;
        g->op_class[i] = o->op_class;
        g->replay[i] = o->replay;
        g->says_pinned[i] = o->pinned;
        g->pinned[i] = o->pinned || (o->op_class == REMAT_CLASS_RANDOM && !o->replay);
        g->op_name[i] = o->name;
        g->op_target[i] = o->target;
        g->op_extra[i] = o->extra;
        g->op_original[i] = o->original;
        g->op_now[o->original] = i;
        g->kernel[i] = o->kernel;
    }
    g->in_begin[g->n_ops] = n_in;
    g->out_begin[g->n_ops] = n_out;
}

static remat_status freeze(remat_builder *b, remat_graph **out)
{
    remat_ctx *ctx = b->ctx;
    uint32_t *root, *producer, *source;
    size_t n_in = 0, n_out = 0;
    for (size_t i = 0; i < b->ops.n; i++)
        n_in += b->ops.items[i].n_in, n_out += b->ops.items[i].n_out;
    TRY(RM_SCRATCH(ctx, root, b->values.n));
    TRY(RM_SCRATCH(ctx, producer, b->values.n));
    TRY(RM_SCRATCH(ctx, source, n_out));
    int64_t storages = 0;
    TRY(check_values(b, root, &storages));
    TRY(check_ops(b, root, storages, producer, source));

    remat_graph head = {
        .heap = ctx->own_heap,
        .n_ops = (uint32_t)b->ops.n,
        .n_values = (uint32_t)b->values.n,
        .n_outputs = (uint32_t)b->outputs.n,
        .n_in = (uint32_t)n_in,
        .n_out = (uint32_t)n_out,
        .n_dims = (uint32_t)b->dims.n,
        .n_text = (uint32_t)b->text.n,
        .n_original_ops = b->original ? b->original->n_original_ops : (uint32_t)b->ops.n,
        .n_original_values = b->original ? b->original->n_original_values : (uint32_t)b->values.n,
        .flags = b->flags,
        .name = b->name,
        .given_unit = b->cost_unit,
        .extra = b->extra};
    head.block_size = carve(&head, NULL);
    remat_graph *g = rm_alloc(ctx, head.block_size);
    if (!g) return REMAT_E_MEMORY;
    *g = head;
    carve(g, (unsigned char *)g);
    memcpy(g->text, b->text.items, b->text.n);
    memset(g->op_now, 0xff, g->n_original_ops * sizeof *g->op_now);
    memset(g->value_now, 0xff, g->n_original_values * sizeof *g->value_now);
    fill_values(b, g, root, producer);
    fill_ops(b, g, source);
    if (b->original) memcpy(g->digest, b->original->digest, sizeof g->digest);
    else rm_graph_digest(g, g->digest);
    const remat_status status = rm_cost_apply(ctx, g, NULL);
    if (status != REMAT_OK) remat_graph_free(g);
    else *out = g;
    return status;
}

remat_status remat_builder_finish(remat_builder *b, remat_graph **out)
{
    if (b->status != REMAT_OK) {
        b->ctx->error = b->error;
        return b->status;
    }
    const rm_mark mark = rm_scratch_mark(b->ctx);
    const remat_status status = freeze(b, out);
    rm_scratch_release(b->ctx, mark);
    return status;
}
