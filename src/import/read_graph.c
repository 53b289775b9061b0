/* read_graph.c: remat-graph version 1 (docs/format.md). Types and required keys are checked here,
 * everything about the graph itself by the builder. Unknown keys are kept as text and written back.
 *
 * At another batch size than the file's, sizes and costs are x(B) = x + (B - batch) * x_per_batch.
 * None of x_per_batch is negative, so a schedule that fits a budget at some batch fits it at every
 * smaller one. */
#include "import/input.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef struct batch {
    int64_t wanted, more; /* the batch size asked for, 0: as in the file; how much more than the
                             file's that is */
    bool grows;           /* something does */
} batch;

/* Adds to *x, if the batch is another one, what `key` (or, where that is absent, `otherwise`, if
 * not NULL) says for each sample. */
static remat_status scale(remat_ctx *ctx, const rm_json *object, rm_place place, const char *key,
                          const char *otherwise, batch *scaled, int64_t *x)
{
    int64_t each = 0, more;
    if (!scaled->wanted || *x == REMAT_ABSENT) return REMAT_OK;
    place.key = rm_json_get(object, key) || !otherwise ? key : otherwise;
    TRY(rm_get_int(ctx, object, place, 0, &each));
    if (each == 0) return REMAT_OK;
    scaled->grows = true;
    if (rm_mul_overflows(each, scaled->more, &more) || rm_add_overflows(*x, more, &more) ||
        more >= RM_MAX_SUM)
        return rm_bad(ctx, place, "at batch %" PRId64 " this passes 2^62", scaled->wanted);
    if (more < 0)
        return rm_bad(ctx, place, "at batch %" PRId64 " this makes it negative", scaled->wanted);
    *x = more;
    return REMAT_OK;
}

static remat_status read_shape(remat_ctx *ctx, const rm_json *object, rm_place place,
                               const int64_t **dims, uint32_t *rank)
{
    *rank = 0;
    if (!rm_json_get(object, "shape")) return REMAT_OK;
    const rm_json *array;
    int64_t *list;
    place.key = "shape";
    TRY(rm_get_array(ctx, object, place, &array));
    *rank = array->n;
    TRY(RM_SCRATCH(ctx, list, *rank));
    for (uint32_t i = 0; i < *rank; i++) {
        place.item = i;
        if (array->items[i].kind != RM_JSON_INTEGER || array->items[i].integer < 0)
            return rm_bad(ctx, place, "must be an integer that is not negative");
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
    rm_place place = {"values", index, NULL, RM_NO_ITEM};
    const char *name = "", *dtype = "", *extra;
    int64_t size = 0, storage = REMAT_ABSENT, alias = REMAT_ABSENT;
    uint32_t kind = REMAT_TEMPORARY, rank;
    const int64_t *dims = NULL;
    TRY(rm_check_object(ctx, object, place));
    TRY((place.key = "name", rm_get_string(ctx, object, place, &name)));
    TRY((place.key = "size", rm_require(ctx, object, place)));
    TRY(rm_get_int(ctx, object, place, 0, &size));
    TRY((place.key = "storage", rm_get_int(ctx, object, place, 0, &storage)));
    TRY(scale(ctx, object, place, "size_per_batch", NULL, scaled, &size));
    TRY(scale(ctx, object, place, "storage_per_batch", "size_per_batch", scaled, &storage));
    TRY((place.key = "alias", rm_get_int(ctx, object, place, 0, &alias)));
    if (alias >= (int64_t)index) return rm_bad(ctx, place, "must name an earlier value");
    TRY((place.key = "kind",
         rm_get_choice(ctx, object, place, rm_value_kinds, RM_LEN(rm_value_kinds), &kind)));
    TRY((place.key = "dtype", rm_get_string(ctx, object, place, &dtype)));
    TRY(read_shape(ctx, object, place, &dims, &rank));
    TRY(rm_get_extra(ctx, object, known, &extra));
    const uint32_t value = remat_builder_value(b, name, size);
    remat_builder_value_tensor(b, value, dtype, dims, rank);
    remat_builder_value_set(b, value, REMAT_VALUE_STORAGE, storage);
    remat_builder_value_set(b, value, REMAT_VALUE_ALIAS, alias);
    remat_builder_value_set(b, value, REMAT_VALUE_KIND, kind);
    const uint32_t text = rm_builder_text(b, extra);
    if (b->status == REMAT_OK) b->values.items[value].extra = text;
    return b->status;
}

static remat_status read_op(remat_ctx *ctx, const rm_json *object, size_t index, batch *scaled,
                            remat_builder *b)
{
    static const char *const known[] = {"name",   "op",        "in",    "out",   "cost",
                                        "flops",  "workspace", "phase", "class", "pinned",
                                        "replay", "kernel",    NULL};
    rm_place place = {"nodes", index, NULL, RM_NO_ITEM};
    const char *name = "", *target = "", *extra;
    const uint32_t *in, *out;
    uint32_t n_in, n_out, phase = REMAT_PHASE_NONE, op_class = REMAT_CLASS_OTHER;
    int64_t cost = REMAT_ABSENT, flops = REMAT_ABSENT, workspace = 0, kernel = REMAT_ABSENT;
    bool pinned = false, replay = false;
    TRY(rm_check_object(ctx, object, place));
    TRY((place.key = "name", rm_get_string(ctx, object, place, &name)));
    TRY((place.key = "op", rm_get_string(ctx, object, place, &target)));
    TRY((place.key = "in", rm_get_indices(ctx, object, place, &in, &n_in)));
    TRY((place.key = "out", rm_get_indices(ctx, object, place, &out, &n_out)));
    TRY((place.key = "cost", rm_get_int(ctx, object, place, 0, &cost)));
    TRY((place.key = "flops", rm_get_int(ctx, object, place, 0, &flops)));
    TRY((place.key = "workspace", rm_get_int(ctx, object, place, 0, &workspace)));
    TRY(scale(ctx, object, place, "cost_per_batch", NULL, scaled, &cost));
    TRY(scale(ctx, object, place, "flops_per_batch", NULL, scaled, &flops));
    TRY(scale(ctx, object, place, "workspace_per_batch", NULL, scaled, &workspace));
    TRY((place.key = "phase",
         rm_get_choice(ctx, object, place, rm_phases, RM_LEN(rm_phases), &phase)));
    TRY((place.key = "class",
         rm_get_choice(ctx, object, place, rm_classes, RM_LEN(rm_classes), &op_class)));
    TRY((place.key = "pinned", rm_get_bool(ctx, object, place, &pinned)));
    TRY((place.key = "replay", rm_get_bool(ctx, object, place, &replay)));
    TRY((place.key = "kernel", rm_get_int(ctx, object, place, 0, &kernel)));
    if (kernel >= REMAT_NONE) return rm_bad(ctx, place, "must be below 4294967295");
    TRY(rm_get_extra(ctx, object, known, &extra));
    const uint32_t op = remat_builder_op(b, name, in, n_in, out, n_out);
    remat_builder_op_target(b, op, target);
    const uint32_t text = rm_builder_text(b, extra);
    if (b->status != REMAT_OK) return b->status;
    rm_op_record *record = &b->ops.items[op];
    record->cost = cost;
    record->flops = flops;
    record->workspace = workspace;
    record->phase = (uint8_t)phase;
    record->op_class = (uint8_t)op_class;
    record->pinned = pinned;
    record->replay = replay;
    if (kernel != REMAT_ABSENT) record->kernel = (uint32_t)kernel;
    record->extra = text;
    return REMAT_OK;
}

/* The file's batch, and the members of the root that are kept as text, with the batch asked for in
 * place of the file's. */
static remat_status begin_batch(remat_ctx *ctx, const rm_json *root, batch *scaled,
                                const char **extra)
{
    static const char *const with_batch[] = {"format",  "version",   "name",  "values", "nodes",
                                             "outputs", "cost_unit", "batch", NULL};
    static const char *const known[] = {"format", "version", "name",      "values",
                                        "nodes",  "outputs", "cost_unit", NULL};
    const rm_place place = {.key = "batch", .item = RM_NO_ITEM};
    int64_t own = 0;
    if (!scaled->wanted) return rm_get_extra(ctx, root, known, extra);
    if (!rm_json_get(root, "batch"))
        return rm_bad(ctx, place, "is missing: the file does not say how it grows with the batch");
    TRY(rm_get_int(ctx, root, place, 1, &own));
    scaled->more = scaled->wanted - own;
    TRY(rm_get_extra(ctx, root, with_batch, extra));
    const size_t n = strlen(*extra) + 40;
    char *text = rm_scratch(ctx, n, 1);
    if (!text) return REMAT_E_MEMORY;
    snprintf(text, n, "\"batch\":%" PRId64 "%s%s", scaled->wanted, **extra ? "," : "", *extra);
    *extra = text;
    return REMAT_OK;
}

remat_status rm_read_graph(remat_ctx *ctx, const remat_input *input, int64_t batch_size,
                           remat_builder *b)
{
    batch scaled = {.wanted = batch_size};
    const rm_json *root = input->json, *values, *nodes;
    rm_place place = {.item = RM_NO_ITEM};
    const char *name = "", *cost_unit = "", *extra;
    TRY(rm_check_version(ctx, root));
    TRY((place.key = "name", rm_get_string(ctx, root, place, &name)));
    TRY((place.key = "cost_unit", rm_get_string(ctx, root, place, &cost_unit)));
    TRY((place.key = "values", rm_get_array(ctx, root, place, &values)));
    TRY((place.key = "nodes", rm_get_array(ctx, root, place, &nodes)));
    TRY(begin_batch(ctx, root, &scaled, &extra));
    b->name = rm_builder_text(b, name);
    b->cost_unit = rm_builder_text(b, cost_unit);
    b->extra = rm_builder_text(b, extra);
    for (size_t i = 0; i < values->n; i++) {
        const rm_mark mark = rm_scratch_mark(ctx);
        TRY(read_value(ctx, &values->items[i], i, &scaled, b));
        rm_scratch_release(ctx, mark);
    }
    for (size_t i = 0; i < nodes->n; i++) {
        const rm_mark mark = rm_scratch_mark(ctx);
        TRY(read_op(ctx, &nodes->items[i], i, &scaled, b));
        rm_scratch_release(ctx, mark);
    }
    if (scaled.wanted && !scaled.grows)
        return rm_fail(
            ctx, REMAT_E_INPUT,
            "no value has a size_per_batch: the file does not say how it grows with the batch");
    if (!rm_json_get(root, "outputs")) return b->status;
    const uint32_t *outputs;
    uint32_t n;
    TRY((place.key = "outputs", rm_get_indices(ctx, root, place, &outputs, &n)));
    for (uint32_t i = 0; i < n; i++) remat_builder_output(b, outputs[i]);
    return b->status;
}
