/* read_chain.c: remat-chain version 1 (docs/format.md). Cost: O(bytes). */
#include "graph/chain.h"
#include "import/formats.h"
#include "import/unknown.h"

/* `object` NULL: a stage of zeros. Only what is `whole`, neither input nor loss, has a name, and
 * must have sizes and times. */
static remat_status read_stage(remat_ctx *ctx, const rm_json *object, rm_place place, bool whole,
                               rm_unknown *unknown, remat_stage *s)
{
    static const char *const known[] = {"name", "a",  "abar", "delta", "tf",
                                        "tb",   "of", "ob",   "keep",  NULL};
    const rm_fields f = {ctx, object, place};
    const struct {
        const char *key;
        int64_t *to;
        bool required;
    } numbers[] = {{"a", &s->a, whole},   {"abar", &s->abar, whole}, {"delta", &s->delta, false},
                   {"tf", &s->tf, whole}, {"tb", &s->tb, whole},     {"of", &s->of, false},
                   {"ob", &s->ob, false}, {"keep", &s->keep, false}};
    *s = (remat_stage){.name = ""};
    if (!object) return REMAT_OK;
    TRY(rm_check_object(ctx, object, place));
    rm_unknown_note(unknown, &f, known, NULL);
    s->delta = REMAT_ABSENT;
    for (size_t i = 0; i < RM_LEN(numbers); i++) {
        if (numbers[i].required) TRY(rm_require(&f, numbers[i].key));
        TRY(rm_get_int(&f, numbers[i].key, 0, numbers[i].to));
    }
    if (whole) TRY(rm_get_string(&f, "name", &s->name));
    if (s->delta == REMAT_ABSENT) s->delta = s->a;
    return REMAT_OK;
}

remat_status rm_read_chain(remat_ctx *ctx, const remat_input *input, remat_chain **out)
{
    static const char *const known[] = {"format", "version", "name", "size_unit", "cost_unit",
                                        "input",  "stages",  "loss", NULL};
    const rm_fields f = rm_root_fields(ctx, input);
    rm_unknown unknown = {.n = 0};
    const rm_json *root = f.object, *stages;
    remat_chain head = {.name = "", .size_unit = "bytes", .cost_unit = "ns"};
    remat_stage *list;
    TRY(rm_check_version(&f));
    rm_unknown_note(&unknown, &f, known, NULL);
    TRY(rm_get_string(&f, "name", &head.name));
    TRY(rm_get_string(&f, "size_unit", &head.size_unit));
    TRY(rm_get_string(&f, "cost_unit", &head.cost_unit));
    TRY(rm_get_array(&f, "stages", &stages));
    head.n_stages = stages->n;
    TRY(RM_SCRATCH(ctx, list, (size_t)head.n_stages + 2));
    remat_stage *loss = &list[head.n_stages + 1];
    rm_place place = {"input", RM_NO_ITEM, NULL, RM_NO_ITEM};
    TRY(read_stage(ctx, rm_json_get(root, "input"), place, false, &unknown, &list[0]));
    place.list = "stages";
    for (uint32_t i = 0; i < head.n_stages; i++) {
        place.index = i;
        TRY(read_stage(ctx, &stages->items[i], place, true, &unknown, &list[i + 1]));
    }
    place = (rm_place){"loss", RM_NO_ITEM, NULL, RM_NO_ITEM};
    TRY(read_stage(ctx, rm_json_get(root, "loss"), place, false, &unknown, loss));
    if (loss->a || loss->delta)
        return rm_bad(ctx, place, "has no a and no delta of its own: both are 0");
    rm_unknown_warn(ctx, &unknown);
    return rm_chain_new(ctx, &head, list, out);
}
