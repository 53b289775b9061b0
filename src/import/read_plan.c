/* read_plan.c: remat-plan version 1 (docs/format.md). Only the shape of the file is checked here.
 * Whether its steps are valid and its numbers true is for the verifier to say. Cost: O(bytes). */
#include "graph/plan.h"
#include "import/formats.h"

#include <inttypes.h>
#include <string.h>

const char *const rm_chain_operations[] = {"Fall", "Fck", "Fnone", "B"};

static remat_status read_index(remat_ctx *ctx, const rm_json *x, rm_place place, uint32_t *out)
{
    if (!x || x->kind != RM_JSON_INTEGER || x->integer < 0 || x->integer >= REMAT_NONE)
        return rm_bad(ctx, place, "must be the index of an op, a value or a stage");
    *out = (uint32_t)x->integer;
    return REMAT_OK;
}

static remat_status read_graph_step(remat_ctx *ctx, const rm_json *x, rm_place place,
                                    remat_step *step)
{
    step->kind = REMAT_RUN;
    if (x->kind != RM_JSON_OBJECT) return read_index(ctx, x, place, &step->index);
    const rm_json *offload = rm_json_get(x, "offload"), *fetch = rm_json_get(x, "fetch");
    if (x->n != 1 || (!offload && !fetch))
        return rm_bad(ctx, place, "must be an op, {\"offload\": value} or {\"fetch\": value}");
    step->kind = offload ? REMAT_OFFLOAD : REMAT_FETCH;
    return read_index(ctx, offload ? offload : fetch, place, &step->index);
}

static remat_status read_chain_step(remat_ctx *ctx, const rm_json *x, rm_place place,
                                    remat_step *step)
{
    const bool pair = x->kind == RM_JSON_ARRAY && x->n == 2 && x->items[0].kind == RM_JSON_STRING;
    for (uint32_t i = 0; pair && i < RM_LEN(rm_chain_operations); i++)
        if (strcmp(x->items[0].string, rm_chain_operations[i]) == 0) {
            step->kind = REMAT_F_ALL + i;
            return read_index(ctx, &x->items[1], place, &step->index);
        }
    return rm_bad(ctx, place, "must be [\"Fall\", \"Fck\", \"Fnone\" or \"B\", stage]");
}

static bool is_digest(const char *text)
{
    static const char algorithm[] = "sha256:", digits[] = "0123456789abcdef";
    const size_t n = sizeof algorithm - 1;
    return strncmp(text, algorithm, n) == 0 && strlen(text) == n + 64 &&
           strspn(text + n, digits) == 64;
}

static remat_status read_header(const rm_fields *root, remat_summary *s, remat_plan *head)
{
    static const char *const kinds[] = {"graph", "chain"};
    uint32_t kind = 0;
    int64_t n_ops = REMAT_NONE, n_values = REMAT_NONE;
    remat_ctx *ctx = root->ctx;
    TRY(rm_check_version(root));
    TRY(rm_require(root, "kind"));
    TRY(rm_get_choice(root, "kind", kinds, RM_LEN(kinds), &kind));
    s->kind = (remat_kind)kind;
    const rm_json *graph = rm_json_get(root->object, "graph");
    TRY(rm_check_object(ctx, graph, rm_place_of(root, "graph")));
    const rm_fields f = {ctx, graph, {"graph", RM_NO_ITEM, NULL, RM_NO_ITEM}};
    TRY(rm_get_string(&f, "name", &s->graph));
    TRY(rm_require(&f, "digest"));
    TRY(rm_get_string(&f, "digest", &s->digest));
    if (!is_digest(s->digest))
        return rm_bad(ctx, rm_place_of(&f, "digest"),
                      "must be \"sha256:\" and 64 hexadecimal digits");
    TRY(rm_get_int(&f, "n_ops", 0, &n_ops));
    TRY(rm_get_int(&f, "n_values", 0, &n_values));
    if (n_ops > REMAT_NONE || n_values > REMAT_NONE)
        return rm_bad(ctx, rm_place_of(&f, "n_values"), "no graph has that many ops or values");
    head->graph_ops = (uint32_t)n_ops;
    head->graph_values = (uint32_t)n_values;
    return REMAT_OK;
}

/* An option may be any number below 2^63. Sizes and costs stay below 2^62. */
static remat_status get_option(const rm_fields *f, const char *key, int64_t *out)
{
    const rm_json *x = rm_json_get(f->object, key);
    if (!x) return REMAT_OK;
    if (x->kind != RM_JSON_INTEGER)
        return rm_bad(f->ctx, rm_place_of(f, key), "must be an integer");
    if (x->integer < 0)
        return rm_bad(f->ctx, rm_place_of(f, key), "must not be negative: %" PRId64, x->integer);
    *out = x->integer;
    return REMAT_OK;
}

static remat_status read_options(const rm_fields *root, remat_summary *s)
{
    const rm_json *options = rm_json_get(root->object, "options");
    if (!options) return REMAT_OK;
    TRY(rm_check_object(root->ctx, options, rm_place_of(root, "options")));
    const rm_fields f = {root->ctx, options, {"options", RM_NO_ITEM, NULL, RM_NO_ITEM}};
    TRY(get_option(&f, "seed", &s->seed));
    TRY(get_option(&f, "bandwidth", &s->bandwidth));
    TRY(get_option(&f, "align", &s->align));
    if (s->align < 1 || s->align > RM_LARGEST_ALIGN || (s->align & (s->align - 1)) != 0)
        return rm_bad(f.ctx, rm_place_of(&f, "align"), "must be a power of two up to 2^30");
    for (const rm_flag_name *flag = rm_flag_names; flag->name; flag++) {
        bool on = false;
        TRY(rm_get_bool(&f, flag->name, &on));
        if (on) s->flags |= flag->flag;
    }
    return REMAT_OK;
}

static bool is_whole(const rm_json *x, int64_t end)
{
    return x->kind == RM_JSON_INTEGER && x->integer >= 0 && x->integer < end;
}

/* A list of pairs of an index and a whole number. */
static remat_status read_pairs(const rm_fields *certificate, const char *key, const rm_json **pairs)
{
    rm_place place = rm_place_of(certificate, key);
    TRY(rm_get_array(certificate, key, pairs));
    for (size_t i = 0; i < (*pairs)->n; i++) {
        const rm_json *x = &(*pairs)->items[i];
        const bool pair = x->kind == RM_JSON_ARRAY && x->n == 2 &&
                          is_whole(&x->items[0], REMAT_NONE) && is_whole(&x->items[1], RM_MAX_SUM);
        place.item = i;
        if (!pair)
            return rm_bad(certificate->ctx, place, "must be a pair of an index and a whole number");
    }
    return REMAT_OK;
}

/* place: what messages call it. */
static remat_status read_certificate(const rm_fields *bound, const char *place, rm_certificate *out)
{
    const rm_json *certificate = rm_json_get(bound->object, "certificate"), *prices, *heirs;
    remat_ctx *ctx = bound->ctx;
    if (!certificate) return REMAT_OK;
    TRY(rm_check_object(ctx, certificate, rm_place_of(bound, "certificate")));
    const rm_fields f = {ctx, certificate, {place, RM_NO_ITEM, NULL, RM_NO_ITEM}};
    TRY(rm_require(&f, "scale"));
    TRY(rm_get_int(&f, "scale", 1, &out->scale));
    TRY(rm_get_int(&f, "cost", 0, &out->cost));
    TRY(rm_get_bool(&f, "walls", &out->walls));
    TRY(read_pairs(&f, "prices", &prices));
    TRY(read_pairs(&f, "heirs", &heirs));
    out->n_prices = prices->n;
    out->n_heirs = heirs->n;
    TRY(RM_SCRATCH(ctx, out->prices, out->n_prices));
    TRY(RM_SCRATCH(ctx, out->heirs, out->n_heirs));
    for (size_t i = 0; i < out->n_prices; i++) {
        const rm_json *pair = prices->items[i].items;
        out->prices[i] = (rm_price){(uint32_t)pair[0].integer, pair[1].integer};
    }
    rm_place item = rm_place_of(&f, "heirs");
    for (size_t i = 0; i < out->n_heirs; i++) {
        const rm_json *pair = heirs->items[i].items;
        item.item = i;
        TRY(read_index(ctx, &pair[1], item, &out->heirs[i].heir));
        out->heirs[i].value = (uint32_t)pair[0].integer;
    }
    return REMAT_OK;
}

static remat_status read_bound(const rm_fields *root, remat_summary *s, remat_plan *head)
{
    const rm_json *bound = rm_json_get(root->object, "bound");
    if (!bound) return REMAT_OK;
    TRY(rm_check_object(root->ctx, bound, rm_place_of(root, "bound")));
    const rm_fields f = {root->ctx, bound, {"bound", RM_NO_ITEM, NULL, RM_NO_ITEM}};
    TRY(rm_get_int(&f, "cost", 0, &s->bound_cost));
    TRY(rm_get_string(&f, "scope", &s->bound_scope));
    TRY(rm_get_string(&f, "method", &s->bound_method));
    return read_certificate(&f, "bound.certificate", &head->certificates.own_order);
}

static remat_status read_any_order_bound(const rm_fields *root, remat_summary *s, remat_plan *head)
{
    const rm_json *bound = rm_json_get(root->object, "any_order_bound");
    if (!bound) return REMAT_OK;
    TRY(rm_check_object(root->ctx, bound, rm_place_of(root, "any_order_bound")));
    const rm_fields f = {root->ctx, bound, {"any_order_bound", RM_NO_ITEM, NULL, RM_NO_ITEM}};
    TRY(rm_get_int(&f, "cost", 0, &s->any_order_cost));
    TRY(rm_get_string(&f, "method", &s->any_order_method));
    return read_certificate(&f, "any_order_bound.certificate", &head->certificates.any_order);
}

/* One storage or workspace. key: "value" or "step". */
static remat_status read_offset(const rm_fields *placement, const rm_json *x, rm_place place,
                                const char *key, rm_offset *out)
{
    remat_ctx *ctx = placement->ctx;
    int64_t instance = 0;
    TRY(rm_check_object(ctx, x, place));
    const rm_json *index = rm_json_get(x, key), *of = rm_json_get(x, "instance"),
                  *offset = rm_json_get(x, "offset");
    if (of && is_whole(of, REMAT_NONE)) instance = of->integer;
    if (!index || !is_whole(index, REMAT_NONE) || !offset || !is_whole(offset, RM_MAX_SUM) ||
        (of && !is_whole(of, REMAT_NONE)))
        return rm_bad(ctx, place, "must have whole numbers: %s, offset%s", key,
                      strcmp(key, "value") == 0 ? ", instance" : "");
    *out = (rm_offset){(uint32_t)index->integer, (uint32_t)instance, offset->integer};
    return REMAT_OK;
}

static remat_status read_offsets(const rm_fields *placement, const char *list, const rm_json *items,
                                 const char *key, rm_offset *out)
{
    rm_place place = rm_place_of(placement, list);
    for (size_t i = 0; i < items->n; i++) {
        place.item = i;
        TRY(read_offset(placement, &items->items[i], place, key, &out[i]));
    }
    return REMAT_OK;
}

static remat_status read_placement(const rm_fields *root, remat_kind kind, rm_plan_placement *out)
{
    const rm_json *placement = rm_json_get(root->object, "placement"), *storages, *workspaces;
    if (!placement) return REMAT_OK;
    if (kind == REMAT_KIND_CHAIN)
        return rm_bad(root->ctx, rm_place_of(root, "placement"), "a chain has none");
    TRY(rm_check_object(root->ctx, placement, rm_place_of(root, "placement")));
    const rm_fields f = {root->ctx, placement, {"placement", RM_NO_ITEM, NULL, RM_NO_ITEM}};
    TRY(rm_require(&f, "align"));
    TRY(rm_get_int(&f, "align", 1, &out->align));
    if (out->align > RM_LARGEST_ALIGN || (out->align & (out->align - 1)) != 0)
        return rm_bad(f.ctx, rm_place_of(&f, "align"), "must be a power of two up to 2^30");
    TRY(rm_require(&f, "arena_bytes"));
    TRY(rm_get_int(&f, "arena_bytes", 0, &out->arena_bytes));
    TRY(rm_get_array(&f, "storages", &storages));
    TRY(rm_get_array(&f, "workspaces", &workspaces));
    out->n_storages = storages->n;
    out->n_workspaces = workspaces->n;
    TRY(RM_SCRATCH(f.ctx, out->offsets, storages->n + workspaces->n));
    TRY(read_offsets(&f, "storages", storages, "value", out->offsets));
    return read_offsets(&f, "workspaces", workspaces, "step", out->offsets + storages->n);
}

static remat_status read_numbers(const rm_fields *root, remat_summary *s, remat_plan *head)
{
    int64_t peak_step = REMAT_NONE;
    const char *outcome = "unknown";
    bool within = false;
    TRY(rm_get_int(root, "budget_bytes", 0, &s->budget_bytes));
    TRY(rm_get_int(root, "peak_bytes", 0, &s->peak_bytes));
    TRY(rm_get_int(root, "cost", 0, &s->cost));
    TRY(rm_get_int(root, "keep_all_peak_bytes", 0, &s->keep_all_peak_bytes));
    TRY(rm_get_int(root, "keep_all_cost", 0, &s->keep_all_cost));
    TRY(rm_get_int(root, "peak_step", 0, &peak_step));
    if (peak_step > REMAT_NONE)
        return rm_bad(root->ctx, rm_place_of(root, "peak_step"), "no schedule is that long");
    s->peak_step = (uint32_t)peak_step;
    TRY(rm_get_string(root, "strategy", &s->strategy));
    TRY(rm_get_string(root, "cost_unit", &s->cost_unit));
    TRY(rm_get_string(root, "cost_model", &s->cost_model));
    TRY(rm_get_string(root, "outcome", &outcome));
    if (!rm_outcome_parse(outcome, &s->outcome))
        return rm_bad(root->ctx, rm_place_of(root, "outcome"),
                      "'%.40s' is none of optimal, feasible, infeasible, unknown", outcome);
    TRY(rm_get_bool(root, "within_budget", &within));
    head->claimed_within = rm_json_get(root->object, "within_budget") ? within : -1;
    s->within_budget = rm_is_within(s) || (s->peak_bytes == REMAT_ABSENT && within);
    TRY(read_bound(root, s, head));
    return read_any_order_bound(root, s, head);
}

static remat_status read_schedule(const rm_fields *root, remat_kind kind, remat_step **out,
                                  size_t *n)
{
    const rm_json *schedule;
    rm_place place = rm_place_of(root, "schedule");
    TRY(rm_get_array(root, "schedule", &schedule));
    *n = schedule->n;
    TRY(RM_SCRATCH(root->ctx, *out, *n));
    for (size_t i = 0; i < *n; i++) {
        const rm_json *x = &schedule->items[i];
        place.item = i;
        if (kind == REMAT_KIND_CHAIN) TRY(read_chain_step(root->ctx, x, place, &(*out)[i]));
        else TRY(read_graph_step(root->ctx, x, place, &(*out)[i]));
    }
    return REMAT_OK;
}

/* What a file need not say. */
static const remat_summary nothing_known = {.strategy = "",
                                            .graph = "",
                                            .digest = "",
                                            .cost_model = "",
                                            .cost_unit = "",
                                            .bound_scope = "",
                                            .bound_method = "",
                                            .any_order_method = "",
                                            .budget_bytes = REMAT_BUDGET_NONE,
                                            .peak_bytes = REMAT_ABSENT,
                                            .keep_all_peak_bytes = REMAT_ABSENT,
                                            .resident_bytes = REMAT_ABSENT,
                                            .need_bytes = REMAT_ABSENT,
                                            .cost = REMAT_ABSENT,
                                            .keep_all_cost = REMAT_ABSENT,
                                            .bound_cost = REMAT_ABSENT,
                                            .any_order_cost = REMAT_ABSENT,
                                            .least_peak_bound = REMAT_ABSENT,
                                            .offloaded_bytes = REMAT_ABSENT,
                                            .saved_bytes = REMAT_ABSENT,
                                            .traffic_bytes = REMAT_ABSENT,
                                            .cut_capacity = REMAT_ABSENT,
                                            .seed = REMAT_ABSENT,
                                            .work = REMAT_ABSENT,
                                            .need_op = REMAT_NONE,
                                            .bandwidth = REMAT_ABSENT,
                                            .align = 1};

remat_status rm_read_plan(remat_ctx *ctx, const remat_input *input, remat_plan **out)
{
    const rm_fields root = rm_root_fields(ctx, input);
    remat_summary s = nothing_known;
    remat_plan head = {0}, *plan = NULL;
    remat_step *steps;
    size_t n_steps;
    TRY(read_header(&root, &s, &head));
    TRY(read_options(&root, &s));
    TRY(read_numbers(&root, &s, &head));
    TRY(read_schedule(&root, s.kind, &steps, &n_steps));
    TRY(read_placement(&root, s.kind, &head.placement));
    s.ops = head.graph_ops; /* REMAT_NONE where the file does not say */
    TRY(rm_plan_new(ctx, &s, steps, n_steps, &head.certificates, &plan));
    plan->graph_ops = head.graph_ops;
    plan->graph_values = head.graph_values;
    plan->claimed_within = head.claimed_within;
    if (!head.placement.align) {
        *out = plan;
        return REMAT_OK;
    }
    const remat_status status = rm_plan_with_placement(ctx, plan, &head.placement, out);
    remat_plan_free(plan);
    return status;
}
