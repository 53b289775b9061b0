/* builder.c: collects values and ops, checks them, and freezes them into a graph of one block.
 *
 * The checks are the rules of the format (docs/format.md):
 * - indices are in range;
 * - a value has at most one producer;
 * - an op reads nothing that a later op makes;
 * - an alias shares the storage of an input of its op, or of an earlier output;
 * - an output that may take an input's storage has one of its own, of as many bytes;
 * - sums stay below 2^62.
 * Messages name places as in a remat-graph file: "nodes[7].in[1]".
 *
 * Invariant: a builder whose status is not REMAT_OK stays so, and keeps the first message.
 *
 * Cost: linear in the graph. */
#include "graph/graph.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/csr.h"

#define MAX_INDEX (UINT32_MAX - 2) /* REMAT_NONE and an end must stay free */

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
    RM_VEC_FREE(&heap, b->inplace);
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

/* May the attribute of an op be set to x? Whether numbers are negative, and their sums too large,
 * remat_builder_finish looks at. */
static bool can_be(remat_op_attr attr, int64_t x)
{
    static const struct {
        int64_t low, high;
    } ranges[] = {[REMAT_OP_COST] = {INT64_MIN, INT64_MAX},
                  [REMAT_OP_FLOPS] = {INT64_MIN, INT64_MAX},
                  [REMAT_OP_WORKSPACE] = {INT64_MIN, INT64_MAX},
                  [REMAT_OP_PHASE] = {0, REMAT_BACKWARD},
                  [REMAT_OP_CLASS] = {0, REMAT_CLASS_RANDOM},
                  [REMAT_OP_PINNED] = {0, 1},
                  [REMAT_OP_REPLAY] = {0, 1},
                  [REMAT_OP_KERNEL] = {REMAT_ABSENT, REMAT_NONE - 1}};
    return (unsigned)attr < RM_LEN(ranges) && x >= ranges[attr].low && x <= ranges[attr].high;
}

void remat_builder_op_set(remat_builder *b, uint32_t op, remat_op_attr attr, int64_t x)
{
    if (b->status != REMAT_OK) return;
    if (op >= b->ops.n) {
        CHECK(b, rm_fail(b->ctx, REMAT_E_USAGE, "there is no op %u", op));
        return;
    }
    if (!can_be(attr, x)) {
        CHECK(b, rm_fail(b->ctx, REMAT_E_USAGE, "op %u: attribute %d cannot be %lld", op, (int)attr,
                         (long long)x));
        return;
    }
    rm_op_record *o = &b->ops.items[op];
    switch (attr) {
    case REMAT_OP_COST: o->cost = x; return;
    case REMAT_OP_FLOPS: o->flops = x; return;
    case REMAT_OP_WORKSPACE: o->workspace = x; return;
    case REMAT_OP_PHASE: o->phase = (uint8_t)x; return;
    case REMAT_OP_CLASS: o->op_class = (uint8_t)x; return;
    case REMAT_OP_PINNED: o->pinned = (uint8_t)x; return;
    case REMAT_OP_REPLAY: o->replay = (uint8_t)x; return;
    case REMAT_OP_KERNEL: o->kernel = x == REMAT_ABSENT ? REMAT_NONE : (uint32_t)x; return;
    case REMAT_OP_GIVEN_COST: return; /* cannot be set: not in the table */
    }
}

void remat_builder_op_target(remat_builder *b, uint32_t op, const char *target)
{
    const uint32_t text = rm_builder_text(b, target);
    if (b->status != REMAT_OK) return;
    if (op >= b->ops.n) CHECK(b, rm_fail(b->ctx, REMAT_E_USAGE, "there is no op %u", op));
    else b->ops.items[op].target = text;
}

void remat_builder_op_inplace(remat_builder *b, uint32_t op, uint32_t out, uint32_t in)
{
    const rm_inplace_record pair = {op, out, in};
    if (b->status != REMAT_OK) return;
    if (op >= b->ops.n) CHECK(b, rm_fail(b->ctx, REMAT_E_USAGE, "there is no op %u", op));
    else if (b->inplace.n >= MAX_INDEX)
        CHECK(b, rm_fail(b->ctx, REMAT_E_INPUT, "more than 4294967293 pairs that work in place"));
    else CHECK(b, RM_PUSH(b->ctx, b->inplace, pair));
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

/* Which value of the op at hand hands its storage instance to an alias output of that root: the
 * first input, else the first output. */
typedef struct holder {
    size_t op_plus_1;
    uint32_t value;
} holder;

/* What the checks find out on their way, as the graph will have it. */
typedef struct checker {
    const remat_builder *b;
    remat_ctx *ctx;
    uint32_t *root, *producer; /* by value */
    uint32_t *source, *takes;  /* out_source and out_takes of the graph */
    holder *holders;           /* by root value */
    size_t n_in, n_out;
    int64_t sizes, costs; /* sums */
    int64_t bytes;        /* all storages and all workspaces, so that keep-all cannot overflow */
} checker;

static remat_status bad(remat_ctx *ctx, const char *list, size_t i, const char *field,
                        const char *reason)
{
    char place[80];
    snprintf(place, sizeof place, "%s[%zu]%s%s", list, i, *field ? "." : "", field);
    return rm_fail_at(ctx, REMAT_E_INPUT, place, "%s", reason);
}

/* Says what is wrong with value `v` at nodes[op].field[item]. `other` is one more index, for the
 * end of the message. */
static remat_status bad_item(remat_ctx *ctx, size_t op, const char *field, uint32_t item,
                             uint32_t v, const char *what, size_t other)
{
    char place[80];
    snprintf(place, sizeof place, "nodes[%zu].%s[%u]", op, field, item);
    return rm_fail_at(ctx, REMAT_E_INPUT, place, "value %u %s%zu", v, what, other);
}

static int64_t own_storage(const rm_value_record *v)
{
    return v->storage == REMAT_ABSENT ? v->size : v->storage;
}

static remat_status check_tensor(checker *c, size_t i)
{
    const rm_value_record *v = &c->b->values.items[i];
    if (v->size < 0) return bad(c->ctx, "values", i, "size", "must not be negative");
    if (!rm_add_to_sum(&c->sizes, v->size))
        return bad(c->ctx, "values", i, "size", "the sizes add up to 2^62 or more");
    for (uint32_t k = 0; k < v->n_dims; k++) {
        const int64_t dim = c->b->dims.items[v->dims_begin + k];
        if (dim < 0 || dim >= RM_MAX_SUM)
            return bad(c->ctx, "values", i, "shape", "must not be negative or 2^62 and more");
    }
    return REMAT_OK;
}

static remat_status check_storage(checker *c, size_t i)
{
    const rm_value_record *v = &c->b->values.items[i];
    if (v->alias != REMAT_NONE) {
        if (v->storage != REMAT_ABSENT)
            return bad(c->ctx, "values", i, "storage", "an alias has no storage of its own");
        if (v->alias >= i) return bad(c->ctx, "values", i, "alias", "must name an earlier value");
        c->root[i] = c->root[v->alias];
        return REMAT_OK;
    }
    c->root[i] = (uint32_t)i;
    const int64_t storage = own_storage(v);
    if (storage < 0) return bad(c->ctx, "values", i, "storage", "must not be negative");
    if (!rm_add_to_sum(&c->bytes, storage))
        return bad(c->ctx, "values", i, "storage", "the storages add up to 2^62 or more");
    return REMAT_OK;
}

/* Comes before check_inputs, so that a forward reference can be told from a resident value. */
static remat_status find_producers(checker *c)
{
    const remat_builder *b = c->b;
    for (size_t i = 0; i < b->values.n; i++) c->producer[i] = REMAT_NONE;
    for (size_t i = 0; i < b->ops.n; i++) {
        const rm_op_record *o = &b->ops.items[i];
        for (uint32_t k = 0; k < o->n_out; k++) {
            const uint32_t v = b->lists.items[o->out_begin + k];
            if (v >= b->values.n)
                return bad_item(c->ctx, i, "out", k, v, "does not exist: the number of values is ",
                                b->values.n);
            if (c->producer[v] != REMAT_NONE)
                return bad_item(c->ctx, i, "out", k, v, "has two producers; the other is node ",
                                c->producer[v]);
            c->producer[v] = (uint32_t)i;
        }
    }
    return REMAT_OK;
}

static remat_status check_op_numbers(checker *c, size_t i)
{
    remat_ctx *ctx = c->ctx;
    const rm_op_record *o = &c->b->ops.items[i];
    if (o->cost < REMAT_ABSENT) return bad(ctx, "nodes", i, "cost", "must not be negative");
    if (o->flops < REMAT_ABSENT) return bad(ctx, "nodes", i, "flops", "must not be negative");
    if (o->flops >= RM_MAX_SUM) return bad(ctx, "nodes", i, "flops", "must be below 2^62");
    if (o->workspace < 0) return bad(ctx, "nodes", i, "workspace", "must not be negative");
    if (o->cost != REMAT_ABSENT && !rm_add_to_sum(&c->costs, o->cost))
        return bad(ctx, "nodes", i, "cost", "the costs add up to 2^62 or more");
    if (!rm_add_to_sum(&c->bytes, o->workspace))
        return bad(ctx, "nodes", i, "workspace", "storages and workspaces add up to 2^62 or more");
    return REMAT_OK;
}

static void offer(holder *holders, uint32_t root, size_t op, uint32_t value)
{
    if (holders[root].op_plus_1 != op + 1) holders[root] = (holder){op + 1, value};
}

static remat_status check_inputs(checker *c, size_t i)
{
    const rm_op_record *o = &c->b->ops.items[i];
    const size_t n_values = c->b->values.n;
    for (uint32_t k = 0; k < o->n_in; k++) {
        const uint32_t v = c->b->lists.items[o->in_begin + k];
        if (v >= n_values)
            return bad_item(c->ctx, i, "in", k, v, "does not exist: the number of values is ",
                            n_values);
        if (c->producer[v] != REMAT_NONE && c->producer[v] >= i)
            return bad_item(c->ctx, i, "in", k, v, "is read before it is made, by node ",
                            c->producer[v]);
        offer(c->holders, c->root[v], i, v);
    }
    return REMAT_OK;
}

static remat_status check_outputs(checker *c, size_t i, uint32_t *source)
{
    const rm_op_record *o = &c->b->ops.items[i];
    for (uint32_t k = 0; k < o->n_out; k++) {
        const uint32_t v = c->b->lists.items[o->out_begin + k], root = c->root[v];
        if (root != v && c->holders[root].op_plus_1 != i + 1)
            return bad_item(
                c->ctx, i, "out", k, v,
                "is an alias, but no input of the op shares its storage, that of value ", root);
        source[k] = root == v ? REMAT_NONE : c->holders[root].value;
        offer(c->holders, root, i, v);
    }
    return REMAT_OK;
}

/* Says what is wrong with pair k of nodes[op].inplace. */
static remat_status bad_pair(remat_ctx *ctx, size_t op, uint32_t k, const char *reason)
{
    char place[80];
    snprintf(place, sizeof place, "nodes[%zu].inplace[%u]", op, k);
    return rm_fail_at(ctx, REMAT_E_INPUT, place, "%s", reason);
}

/* By root value: 1 + the last op that may take its place; that makes a view of it. */
typedef struct place_users {
    uint32_t *taker, *viewer;
} place_users;

/* What is wrong with a pair of the op, or NULL. takes: of the op's outputs so far. */
static const char *pair_fault(const checker *c, const rm_inplace_record *x, const uint32_t *takes,
                              const place_users *by)
{
    const remat_builder *b = c->b;
    const rm_op_record *o = &b->ops.items[x->op];
    if (x->out >= o->n_out) return "the op has no such output";
    if (x->in >= o->n_in) return "the op has no such input";
    const uint32_t made = b->lists.items[o->out_begin + x->out];
    const uint32_t root = c->root[b->lists.items[o->in_begin + x->in]];
    if (c->root[made] != made) return "the output is an alias, and has no storage to put elsewhere";
    if (takes[x->out] != REMAT_NONE) return "the output is named twice";
    if (c->producer[root] == REMAT_NONE) return "the input is resident, and never overwritten";
    if (by->taker[root] == x->op + 1) return "the input's storage is named twice";
    if (by->viewer[root] == x->op + 1) return "another output is a view of the input's storage";
    if (own_storage(&b->values.items[made]) != own_storage(&b->values.items[root]))
        return "the storages of output and input differ in size";
    return NULL;
}

/* by_op: the pairs of each op, in the order in which they were declared. */
static remat_status check_pairs(checker *c, const rm_csr *by_op)
{
    const remat_builder *b = c->b;
    uint32_t *takes = c->takes;
    place_users by;
    TRY(RM_SCRATCH(c->ctx, by.taker, b->values.n));
    TRY(RM_SCRATCH(c->ctx, by.viewer, b->values.n));
    for (uint32_t i = 0; i < b->ops.n; i++) {
        const rm_op_record *o = &b->ops.items[i];
        for (uint32_t k = 0; k < o->n_out; k++) { /* a value is no view of itself */
            const uint32_t made = b->lists.items[o->out_begin + k];
            if (c->root[made] != made) by.viewer[c->root[made]] = i + 1;
        }
        for (uint32_t k = by_op->begin[i]; k < by_op->begin[i + 1]; k++) {
            const rm_inplace_record *x = &b->inplace.items[by_op->items[k]];
            const char *fault = pair_fault(c, x, takes, &by);
            if (fault) return bad_pair(c->ctx, i, k - by_op->begin[i], fault);
            takes[x->out] = x->in;
            by.taker[c->root[b->lists.items[o->in_begin + x->in]]] = i + 1;
        }
        takes += o->n_out;
    }
    return REMAT_OK;
}

static remat_status check_inplace(checker *c)
{
    const remat_builder *b = c->b;
    const uint32_t n = (uint32_t)b->inplace.n;
    rm_csr by_op;
    uint32_t *op;
    for (size_t k = 0; k < c->n_out; k++) c->takes[k] = REMAT_NONE;
    if (n == 0) return REMAT_OK;
    TRY(RM_SCRATCH(c->ctx, op, n));
    for (uint32_t k = 0; k < n; k++) op[k] = b->inplace.items[k].op;
    TRY(rm_csr_by_key(c->ctx, (uint32_t)b->ops.n, n, op, &by_op));
    return check_pairs(c, &by_op);
}

static remat_status check_all(checker *c)
{
    const remat_builder *b = c->b;
    for (size_t i = 0; i < b->values.n; i++) {
        TRY(check_tensor(c, i));
        TRY(check_storage(c, i));
    }
    TRY(find_producers(c));
    uint32_t *source = c->source;
    for (size_t i = 0; i < b->ops.n; i++) {
        TRY(check_op_numbers(c, i));
        TRY(check_inputs(c, i));
        TRY(check_outputs(c, i, source));
        source += b->ops.items[i].n_out;
    }
    TRY(check_inplace(c));
    for (size_t i = 0; i < b->values.n; i++)
        if (c->producer[i] == REMAT_NONE && c->producer[c->root[i]] != REMAT_NONE)
            return bad(c->ctx, "values", i, "alias",
                       "no op makes this value, yet it aliases one that an op makes");
    for (size_t i = 0; i < b->outputs.n; i++)
        if (b->outputs.items[i] >= b->values.n)
            return bad(c->ctx, "outputs", i, "", "this value does not exist");
    return REMAT_OK;
}

static remat_status checker_new(const remat_builder *b, checker *c)
{
    *c = (checker){.b = b, .ctx = b->ctx};
    for (size_t i = 0; i < b->ops.n; i++) {
        c->n_in += b->ops.items[i].n_in;
        c->n_out += b->ops.items[i].n_out;
    }
    TRY(RM_SCRATCH(c->ctx, c->root, b->values.n));
    TRY(RM_SCRATCH(c->ctx, c->producer, b->values.n));
    TRY(RM_SCRATCH(c->ctx, c->source, c->n_out));
    TRY(RM_SCRATCH(c->ctx, c->takes, c->n_out));
    return RM_SCRATCH(c->ctx, c->holders, b->values.n);
}

/* ---- freezing ---- */

/* The arrays of a graph lie behind it in one block. carve goes over them twice: with `base` NULL to
 * learn the size of the block, then with the block to set the pointers. `used`: bytes so far. */
static size_t rounded(size_t bytes) { return (bytes + 15) / 16 * 16; }

#define ARRAY(field, n)                                                                            \
    do {                                                                                           \
        if (base) g->field = (void *)(base + used);                                                \
        used += rounded((size_t)(n) * sizeof *g->field);                                           \
    } while (0)

static size_t carve_values(remat_graph *g, unsigned char *base, size_t used)
{
    const size_t n = g->n_values;
    ARRAY(size, n);
    ARRAY(storage, n);
    ARRAY(alias, n);
    ARRAY(root, n);
    ARRAY(producer, n);
    ARRAY(dims_begin, n + 1);
    ARRAY(value_name, n);
    ARRAY(value_dtype, n);
    ARRAY(value_extra, n);
    ARRAY(value_original, n);
    ARRAY(value_kind, n);
    ARRAY(is_output, n);
    ARRAY(dims, g->n_dims);
    return used;
}

static size_t carve_ops(remat_graph *g, unsigned char *base, size_t used)
{
    const size_t n = g->n_ops;
    ARRAY(in_begin, n + 1);
    ARRAY(in, g->n_in);
    ARRAY(out_begin, n + 1);
    ARRAY(out, g->n_out);
    ARRAY(out_source, g->n_out);
    ARRAY(out_takes, g->n_out);
    ARRAY(cost, n);
    ARRAY(given_cost, n);
    ARRAY(flops, n);
    ARRAY(workspace, n);
    ARRAY(op_name, n);
    ARRAY(op_target, n);
    ARRAY(op_extra, n);
    ARRAY(op_original, n);
    ARRAY(kernel, n);
    ARRAY(phase, n);
    ARRAY(op_class, n);
    ARRAY(pinned, n);
    ARRAY(replay, n);
    ARRAY(says_pinned, n);
    return used;
}

static size_t carve(remat_graph *g, unsigned char *base)
{
    size_t used = rounded(sizeof *g);
    used = carve_values(g, base, used);
    used = carve_ops(g, base, used);
    ARRAY(outputs, g->n_outputs);
    ARRAY(op_now, g->n_original_ops);
    ARRAY(value_now, g->n_original_values);
    ARRAY(text, g->n_text);
    return used;
}
#undef ARRAY

static void fill_values(const checker *c, remat_graph *g)
{
    const remat_builder *b = c->b;
    uint32_t n_dims = 0;
    for (uint32_t i = 0; i < g->n_values; i++) {
        const rm_value_record *v = &b->values.items[i];
        const uint32_t root = c->root[i];
        assert(root <= i);
        g->size[i] = v->size;
        g->alias[i] = v->alias;
        g->root[i] = root;
        g->storage[i] = root == i ? own_storage(v) : g->storage[root];
        g->producer[i] = c->producer[i];
        g->value_kind[i] = (uint8_t)v->kind;
        g->value_name[i] = v->name;
        g->value_dtype[i] = v->dtype;
        g->value_extra[i] = v->extra;
        g->value_original[i] = v->original;
        g->value_now[v->original] = i;
        g->dims_begin[i] = n_dims;
        for (uint32_t k = 0; k < v->n_dims; k++)
            g->dims[n_dims++] = b->dims.items[v->dims_begin + k];
        if (root == i && g->producer[i] == REMAT_NONE) g->resident_bytes += g->storage[i];
    }
    g->dims_begin[g->n_values] = n_dims;
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const uint32_t v = b->outputs.items[i];
        g->outputs[i] = v;
        g->is_output[v] = 1;
    }
}

static void fill_ops(const checker *c, remat_graph *g)
{
    const remat_builder *b = c->b;
    uint32_t n_in = 0, n_out = 0;
    for (uint32_t i = 0; i < g->n_ops; i++) {
        const rm_op_record *o = &b->ops.items[i];
        g->in_begin[i] = n_in;
        g->out_begin[i] = n_out;
        for (uint32_t k = 0; k < o->n_in; k++) g->in[n_in++] = b->lists.items[o->in_begin + k];
        for (uint32_t k = 0; k < o->n_out; k++, n_out++) {
            g->out[n_out] = b->lists.items[o->out_begin + k];
            g->out_source[n_out] = c->source[n_out];
            g->out_takes[n_out] = c->takes[n_out];
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

/* All but the arrays. */
static remat_graph head_of(const checker *c)
{
    const remat_builder *b = c->b;
    const remat_graph *original = b->original;
    remat_graph head = {.heap = b->ctx->own_heap,
                        .n_ops = (uint32_t)b->ops.n,
                        .n_values = (uint32_t)b->values.n,
                        .n_outputs = (uint32_t)b->outputs.n,
                        .n_in = (uint32_t)c->n_in,
                        .n_out = (uint32_t)c->n_out,
                        .n_inplace = (uint32_t)b->inplace.n,
                        .n_dims = (uint32_t)b->dims.n,
                        .n_text = (uint32_t)b->text.n,
                        .n_original_ops = original ? original->n_original_ops : (uint32_t)b->ops.n,
                        .n_original_values =
                            original ? original->n_original_values : (uint32_t)b->values.n,
                        .flags = b->flags,
                        .align = original ? original->align : 1,
                        .name = b->name,
                        .given_unit = b->cost_unit,
                        .extra = b->extra};
    head.block_size = carve(&head, NULL);
    return head;
}

static remat_status freeze(remat_builder *b, remat_graph **out)
{
    checker c;
    TRY(checker_new(b, &c));
    TRY(check_all(&c));
    const remat_graph head = head_of(&c);
    remat_graph *g = rm_alloc(b->ctx, head.block_size);
    if (!g) return REMAT_E_MEMORY;
    *g = head;
    carve(g, (unsigned char *)g);
    memcpy(g->text, b->text.items, b->text.n);
    for (uint32_t op = 0; op < g->n_original_ops; op++) g->op_now[op] = REMAT_NONE;
    for (uint32_t v = 0; v < g->n_original_values; v++) g->value_now[v] = REMAT_NONE;
    fill_values(&c, g);
    fill_ops(&c, g);
    if (b->original) memcpy(g->digest, b->original->digest, sizeof g->digest);
    else rm_graph_digest(g, g->digest);
    const remat_status status = rm_cost_apply(b->ctx, g, NULL);
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
