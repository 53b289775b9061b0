/* read_chain.c: remat-chain version 1 (docs/format.md). */
#include "graph/chain.h"
#include "import/formats.h"

static remat_status read_stage(remat_ctx *ctx, const rm_json *object, rm_place place, bool full,
                               remat_stage *s)
{
    *s = (remat_stage){.name = "", .delta = REMAT_ABSENT};
    const struct {
        const char *key;
        int64_t *to;
        bool required;
    } fields[] = {{"a", &s->a, full},    {"abar", &s->abar, full}, {"delta", &s->delta, false},
                  {"tf", &s->tf, full},  {"tb", &s->tb, full},     {"of", &s->of, false},
                  {"ob", &s->ob, false}, {"keep", &s->keep, false}};
    if (!object) return s->delta = 0, REMAT_OK;
    TRY(rm_check_object(ctx, object, place));
    for (size_t i = 0; i < RM_LEN(fields); i++) {
        place.key = fields[i].key;
        if (fields[i].required) TRY(rm_require(ctx, object, place));
        TRY(rm_get_int(ctx, object, place, 0, fields[i].to));
    }
    if (full) TRY((place.key = "name", rm_get_string(ctx, object, place, &s->name)));
    if (s->delta == REMAT_ABSENT) s->delta = s->a;
    return REMAT_OK;
}

remat_status rm_read_chain(remat_ctx *ctx, const remat_input *input, remat_chain **out)
{
    const rm_json *root = input->json, *stages;
    rm_place place = {.item = RM_NO_ITEM};
    remat_chain head = {.name = "", .size_unit = "bytes", .cost_unit = "ns"};
    TRY(rm_check_version(ctx, root));
    TRY((place.key = "name", rm_get_string(ctx, root, place, &head.name)));
    TRY((place.key = "size_unit", rm_get_string(ctx, root, place, &head.size_unit)));
    TRY((place.key = "cost_unit", rm_get_string(ctx, root, place, &head.cost_unit)));
    TRY((place.key = "stages", rm_get_array(ctx, root, place, &stages)));
    head.n_stages = stages->n;
    remat_stage *list;
    TRY(RM_SCRATCH(ctx, list, (size_t)head.n_stages + 2));
    TRY(read_stage(ctx, rm_json_get(root, "input"),
                   (rm_place){"input", RM_NO_ITEM, NULL, RM_NO_ITEM}, false, &list[0]));
    for (uint32_t i = 0; i < head.n_stages; i++)
        TRY(read_stage(ctx, &stages->items[i], (rm_place){"stages", i, NULL, RM_NO_ITEM}, true,
                       &list[i + 1]));
    remat_stage *loss = &list[head.n_stages + 1];
    TRY(read_stage(ctx, rm_json_get(root, "loss"), (rm_place){"loss", RM_NO_ITEM, NULL, RM_NO_ITEM},
                   false, loss));
    place.key = "loss";
    if (loss->a || loss->delta)
        return rm_bad(ctx, place, "has no a and no delta of its own: both are 0");
    return rm_chain_new(ctx, &head, list, out);
}
