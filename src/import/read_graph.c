/* read_graph.c: remat-graph version 1 (docs/format.md). Types and required keys are checked here.
 * The builder checks everything about the graph itself. Unknown keys are kept as text and written
 * back.
 *
 * At another batch size than the file's, sizes and costs are x(B) = x + (B - batch) * x_per_batch.
 * No x_per_batch is negative. So a schedule that fits a budget at some batch fits it at every
 * smaller one. Cost: O(bytes). */
#include "import/unknown.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The batch size, and what is noted on the way through values and nodes. */
typedef struct batch {
    int64_t wanted; /* the batch size asked for; 0: as in the file */
    int64_t more;   /* how much more than the file's that is */
    bool grows;     /* something does */
    rm_unknown unknown;
} batch;

/* At another batch: adds to *x what `key` says for each sample. `otherwise`, if not NULL, is read
 * where `key` is absent. */
static remat_status scale(const rm_fields *f, const char *key, const char *otherwise, batch *scaled,
                          int64_t *x)
{
    int64_t each = 0, sum;
    if (!scaled->wanted || *x == REMAT_ABSENT) return REMAT_OK;
    if (otherwise && !rm_json_get(f->object, key)) key = otherwise;
    TRY(rm_get_int(f, key, 0, &each));
    if (each == 0) return REMAT_OK;
    scaled->grows = true;
    if (rm_mul_overflows(each, scaled->more, &sum) || rm_add_overflows(*x, sum, &sum) ||
        sum >= RM_MAX_SUM)
        return rm_bad(f->ctx, rm_place_of(f, key), "at batch %" PRId64 " this passes 2^62",
                      scaled->wanted);
    if (sum < 0)
        return rm_bad(f->ctx, rm_place_of(f, key), "at batch %" PRId64 " this makes it negative",
                      scaled->wanted);
    *x = sum;
    return REMAT_OK;
}

static remat_status read_shape(const rm_fields *f, const int64_t **dims, uint32_t *rank)
{
    const rm_json *array;
    int64_t *list;
    rm_place place = rm_place_of(f, "shape");
    *rank = 0;
    if (!rm_json_get(f->object, "shape")) return REMAT_OK;
    TRY(rm_get_array(f, "shape", &array));
    *rank = array->n;
    TRY(RM_SCRATCH(f->ctx, list, *rank));
    for (uint32_t i = 0; i < *rank; i++) {
        place.item = i;
        if (array->items[i].kind != RM_JSON_INTEGER || array->items[i].integer < 0)
            return rm_bad(f->ctx, place, "must be an integer that is not negative");
        list[i] = array->items[i].integer;
    }
    *dims = list;
    return REMAT_OK;
}

static remat_status read_value(remat_ctx *ctx, const rm_json *object, size_t index, batch *scaled,
                               remat_builder *b)
{
    static const char *const known[] = {"name",  "size",  "storage", "kind",
                                        "alias", "dtype", "shape",   NULL};
    static const char *const growth[] = {"size_per_batch", "storage_per_batch", NULL};
    const rm_fields f = {ctx, object, {"values", index, NULL, RM_NO_ITEM}};
    const char *name = "", *dtype = "", *extra;
    int64_t size = 0, storage = REMAT_ABSENT, alias = REMAT_ABSENT;
    uint32_t kind = REMAT_TEMPORARY, rank;
    const int64_t *dims = NULL;
    TRY(rm_check_object(ctx, object, f.place));
    TRY(rm_get_string(&f, "name", &name));
    TRY(rm_require(&f, "size"));
    TRY(rm_get_int(&f, "size", 0, &size));
    TRY(rm_get_int(&f, "storage", 0, &storage));
    TRY(scale(&f, "size_per_batch", NULL, scaled, &size));
    TRY(scale(&f, "storage_per_batch", "size_per_batch", scaled, &storage));
    TRY(rm_get_int(&f, "alias", 0, &alias));
    if (alias >= (int64_t)index)
        return rm_bad(ctx, rm_place_of(&f, "alias"), "must name an earlier value");
    TRY(rm_get_choice(&f, "kind", rm_value_kinds, RM_LEN(rm_value_kinds), &kind));
    TRY(rm_get_string(&f, "dtype", &dtype));
    TRY(read_shape(&f, &dims, &rank));
    TRY(rm_get_extra(&f, known, &extra));
    rm_unknown_note(&scaled->unknown, &f, known, growth);
    const uint32_t value = remat_builder_value(b, name, size);
    remat_builder_value_tensor(b, value, dtype, dims, rank);
    remat_builder_value_set(b, value, REMAT_VALUE_STORAGE, storage);
    remat_builder_value_set(b, value, REMAT_VALUE_ALIAS, alias);
    remat_builder_value_set(b, value, REMAT_VALUE_KIND, kind);
    const uint32_t text = rm_builder_text(b, extra);
    if (b->status == REMAT_OK) b->values.items[value].extra = text;
    return b->status;
}

typedef struct op_numbers {
    int64_t cost, flops, workspace, kernel; /* kernel: REMAT_ABSENT or below REMAT_NONE */
    uint32_t phase, op_class;
    bool pinned, replay;
} op_numbers;

static remat_status read_op_numbers(const rm_fields *f, batch *scaled, op_numbers *x)
{
    *x = (op_numbers){.cost = REMAT_ABSENT,
                      .flops = REMAT_ABSENT,
                      .kernel = REMAT_ABSENT,
                      .phase = REMAT_PHASE_NONE,
                      .op_class = REMAT_CLASS_OTHER};
    TRY(rm_get_int(f, "cost", 0, &x->cost));
    TRY(rm_get_int(f, "flops", 0, &x->flops));
    TRY(rm_get_int(f, "workspace", 0, &x->workspace));
    TRY(scale(f, "cost_per_batch", NULL, scaled, &x->cost));
    TRY(scale(f, "flops_per_batch", NULL, scaled, &x->flops));
    TRY(scale(f, "workspace_per_batch", NULL, scaled, &x->workspace));
    TRY(rm_get_choice(f, "phase", rm_phases, RM_LEN(rm_phases), &x->phase));
    TRY(rm_get_choice(f, "class", rm_classes, RM_LEN(rm_classes), &x->op_class));
    TRY(rm_get_bool(f, "pinned", &x->pinned));
    TRY(rm_get_bool(f, "replay", &x->replay));
    TRY(rm_get_int(f, "kernel", 0, &x->kernel));
    if (x->kernel >= REMAT_NONE)
        return rm_bad(f->ctx, rm_place_of(f, "kernel"), "must be below 4294967295");
    return REMAT_OK;
}

static bool is_index(const rm_json *x)
{
    return x->kind == RM_JSON_INTEGER && x->integer >= 0 && x->integer < REMAT_NONE;
}

/* Pairs of an output and an input, by their places in `out` and `in`. */
static remat_status read_inplace(const rm_fields *f, uint32_t op, remat_builder *b)
{
    const rm_json *array;
    rm_place place = rm_place_of(f, "inplace");
    if (!rm_json_get(f->object, "inplace")) return REMAT_OK;
    TRY(rm_get_array(f, "inplace", &array));
    for (uint32_t i = 0; i < array->n; i++) {
        const rm_json *pair = &array->items[i];
        place.item = i;
        if (pair->kind != RM_JSON_ARRAY || pair->n != 2 || !is_index(&pair->items[0]) ||
            !is_index(&pair->items[1]))
            return rm_bad(f->ctx, place, "must be a pair of indices: of an output, of an input");
        remat_builder_op_inplace(b, op, (uint32_t)pair->items[0].integer,
                                 (uint32_t)pair->items[1].integer);
    }
    return b->status;
}

static remat_status read_op(remat_ctx *ctx, const rm_json *object, size_t index, batch *scaled,
                            remat_builder *b)
{
    static const char *const known[] = {"name",   "op",        "in",      "out",   "cost",
                                        "flops",  "workspace", "phase",   "class", "pinned",
                                        "replay", "kernel",    "inplace", NULL};
    static const char *const growth[] = {"cost_per_batch", "flops_per_batch", "workspace_per_batch",
                                         NULL};
    const rm_fields f = {ctx, object, {"nodes", index, NULL, RM_NO_ITEM}};
    const char *name = "", *target = "", *extra;
    const uint32_t *in, *out;
    uint32_t n_in, n_out;
    op_numbers numbers;
    TRY(rm_check_object(ctx, object, f.place));
    TRY(rm_get_string(&f, "name", &name));
    TRY(rm_get_string(&f, "op", &target));
    TRY(rm_get_indices(&f, "in", &in, &n_in));
    TRY(rm_get_indices(&f, "out", &out, &n_out));
    TRY(read_op_numbers(&f, scaled, &numbers));
    TRY(rm_get_extra(&f, known, &extra));
    rm_unknown_note(&scaled->unknown, &f, known, growth);
    const uint32_t op = remat_builder_op(b, name, in, n_in, out, n_out);
    remat_builder_op_target(b, op, target);
    const uint32_t text = rm_builder_text(b, extra);
    if (b->status != REMAT_OK) return b->status;
    rm_op_record *record = &b->ops.items[op];
    record->cost = numbers.cost;
    record->flops = numbers.flops;
    record->workspace = numbers.workspace;
    record->phase = (uint8_t)numbers.phase;
    record->op_class = (uint8_t)numbers.op_class;
    record->pinned = numbers.pinned;
    record->replay = numbers.replay;
    if (numbers.kernel != REMAT_ABSENT) record->kernel = (uint32_t)numbers.kernel;
    record->extra = text;
    return read_inplace(&f, op, b);
}

/* The file's batch, and the members of the root that are kept as text. In these the batch asked for
 * takes the place of the file's. */
static remat_status begin_batch(const rm_fields *f, batch *scaled, const char **extra)
{
    static const char *const with_batch[] = {"format",  "version",   "name",  "values", "nodes",
                                             "outputs", "cost_unit", "batch", NULL};
    static const char *const known[] = {"format", "version", "name",      "values",
                                        "nodes",  "outputs", "cost_unit", NULL};
    int64_t own = 0;
    rm_unknown_note(&scaled->unknown, f, with_batch, NULL);
    if (!scaled->wanted) return rm_get_extra(f, known, extra);
    if (!rm_json_get(f->object, "batch"))
        return rm_bad(f->ctx, rm_place_of(f, "batch"),
                      "is missing: the file does not say how it grows with the batch");
    TRY(rm_get_int(f, "batch", 1, &own));
    scaled->more = scaled->wanted - own;
    TRY(rm_get_extra(f, with_batch, extra));
    const size_t n = strlen(*extra) + 40; /* room for the batch */
    char *text = rm_scratch(f->ctx, n, 1);
    if (!text) return REMAT_E_MEMORY;
    snprintf(text, n, "\"batch\":%" PRId64 "%s%s", scaled->wanted, **extra ? "," : "", *extra);
    *extra = text;
    return REMAT_OK;
}

static remat_status read_lists(remat_ctx *ctx, const rm_json *values, const rm_json *nodes,
                               batch *scaled, remat_builder *b)
{
    for (size_t i = 0; i < values->n; i++) {
        const rm_mark mark = rm_scratch_mark(ctx);
        TRY(read_value(ctx, &values->items[i], i, scaled, b));
        rm_scratch_release(ctx, mark);
    }
    for (size_t i = 0; i < nodes->n; i++) {
        const rm_mark mark = rm_scratch_mark(ctx);
        TRY(read_op(ctx, &nodes->items[i], i, scaled, b));
        rm_scratch_release(ctx, mark);
    }
    return REMAT_OK;
}

remat_status rm_read_graph(remat_ctx *ctx, const remat_input *input, int64_t batch_size,
                           remat_builder *b)
{
    batch scaled = {.wanted = batch_size};
    const rm_fields f = rm_root_fields(ctx, input);
    const char *name = "", *cost_unit = "", *extra;
    const rm_json *values, *nodes;
    TRY(rm_check_version(&f));
    TRY(rm_get_string(&f, "name", &name));
    TRY(rm_get_string(&f, "cost_unit", &cost_unit));
    TRY(rm_get_array(&f, "values", &values));
    TRY(rm_get_array(&f, "nodes", &nodes));
    TRY(begin_batch(&f, &scaled, &extra));
    b->name = rm_builder_text(b, name);
    b->cost_unit = rm_builder_text(b, cost_unit);
    b->extra = rm_builder_text(b, extra);
    TRY(read_lists(ctx, values, nodes, &scaled, b));
    if (scaled.wanted && !scaled.grows)
        return rm_fail(
            ctx, REMAT_E_INPUT,
            "no value has a size_per_batch: the file does not say how it grows with the batch");
    rm_unknown_warn(ctx, &scaled.unknown);
    if (!rm_json_get(f.object, "outputs")) {
        rm_warn(ctx, "the file names no outputs: nothing but what later ops read is kept");
        return b->status;
    }
    const uint32_t *outputs;
    uint32_t n;
    TRY(rm_get_indices(&f, "outputs", &outputs, &n));
    for (uint32_t i = 0; i < n; i++) remat_builder_output(b, outputs[i]);
    return b->status;
}
