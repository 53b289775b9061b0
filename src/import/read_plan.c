/* read_plan.c: remat-plan version 1 (docs/format.md). Only the shape of the file is checked here:
 * whether its steps are valid and its numbers true is for the verifier to say. */
#include "graph/plan.h"
#include "import/formats.h"

#include <inttypes.h>
#include <string.h>

const char *const rm_chain_operations[] = {"Fall", "Fck", "Fnone",
                                           "B"}; /* REMAT_F_ALL .. REMAT_B */

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
    if (x->kind != RM_JSON_OBJECT)
        return step->kind = REMAT_RUN, read_index(ctx, x, place, &step->index);
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
    for (uint32_t i = 0; i < 4 && pair; i++)
        if (strcmp(x->items[0].string, rm_chain_operations[i]) == 0)
            return step->kind = REMAT_F_ALL + i, read_index(ctx, &x->items[1], place, &step->index);
    return rm_bad(ctx, place, "must be [\"Fall\", \"Fck\", \"Fnone\" or \"B\", stage]");
}

static remat_status read_header(remat_ctx *ctx, const rm_json *root, remat_summary *s,
                                remat_plan *head)
{
    static const char *const kinds[] = {"graph", "chain"};
    rm_place place = {.item = RM_NO_ITEM};
    uint32_t kind = 0;
    int64_t n_ops = REMAT_NONE, n_values = REMAT_NONE;
    TRY(rm_check_version(ctx, root));
    TRY((place.key = "kind", rm_require(ctx, root, place)));
    TRY(rm_get_choice(ctx, root, place, kinds, RM_LEN(kinds), &kind));
    s->kind = (remat_kind)kind;
    const rm_json *graph = rm_json_get(root, "graph");
    TRY((place.key = "graph", rm_check_object(ctx, graph, place)));
    place.list = "graph", place.index = RM_NO_ITEM;
    TRY((place.key = "name", rm_get_string(ctx, graph, place, &s->graph)));
    TRY((place.key = "digest", rm_require(ctx, graph, place)));
    TRY(rm_get_string(ctx, graph, place, &s->digest));
    if (strncmp(s->digest, "sha256:", 7) != 0 || strlen(s->digest) != 7 + 64 ||
        strspn(s->digest + 7, "0123456789abcdef") != 64)
        return rm_bad(ctx, place, "must be \"sha256:\" and 64 hexadecimal digits");
    TRY((place.key = "n_ops", rm_get_int(ctx, graph, place, 0, &n_ops)));
    TRY((place.key = "n_values", rm_get_int(ctx, graph, place, 0, &n_values)));
    if (n_ops > REMAT_NONE || n_values > REMAT_NONE)
        return rm_bad(ctx, place, "no graph has that many ops or values");
    head->graph_ops = (uint32_t)n_ops;
    head->graph_values = (uint32_t)n_values;
    return REMAT_OK;
}

/* What an option is set to: below 2^63, where sizes and costs stay below 2^62. */
static remat_status get_option(remat_ctx *ctx, const rm_json *options, rm_place place, int64_t *out)
{
    const rm_json *x = rm_json_get(options, place.key);
    if (!x) return REMAT_OK;
    if (x->kind != RM_JSON_INTEGER) return rm_bad(ctx, place, "must be an integer");
    if (x->integer < 0) return rm_bad(ctx, place, "must not be negative: %" PRId64, x->integer);
    *out = x->integer;
    return REMAT_OK;
}

static remat_status read_options(remat_ctx *ctx, const rm_json *root, remat_summary *s)
{
    const rm_json *options = rm_json_get(root, "options");
    if (!options) return REMAT_OK;
    TRY(rm_check_object(ctx, options, (rm_place){.key = "options", .item = RM_NO_ITEM}));
    rm_place place = {"options", RM_NO_ITEM, NULL, RM_NO_ITEM};
    TRY((place.key = "seed", get_option(ctx, options, place, &s->seed)));
    TRY((place.key = "bandwidth", get_option(ctx, options, place, &s->bandwidth)));
    for (const rm_flag_name *f = rm_flag_names; f->name; f++) {
        bool on = false;
        TRY((place.key = f->name, rm_get_bool(ctx, options, place, &on)));
        if (on) s->flags |= f->flag;
    }
    return REMAT_OK;
}

/* A list of pairs of an index and a number. */
static remat_status read_pairs(remat_ctx *ctx, const rm_json *certificate, const char *key,
                               const rm_json **pairs)
{
    rm_place place = {"bound.certificate", RM_NO_ITEM, key, RM_NO_ITEM};
    TRY(rm_get_array(ctx, certificate, place, pairs));
    for (size_t i = 0; i < (*pairs)->n; i++) {
        const rm_json *x = &(*pairs)->items[i];
        const bool pair = x->kind == RM_JSON_ARRAY && x->n == 2 &&
                          x->items[0].kind == RM_JSON_INTEGER &&
                          x->items[1].kind == RM_JSON_INTEGER && x->items[0].integer >= 0 &&
                          x->items[1].integer >= 0 && x->items[0].integer < REMAT_NONE &&
                          x->items[1].integer < RM_MAX_SUM;
        place.item = i;
        if (!pair) return rm_bad(ctx, place, "must be a pair of an index and a whole number");
    }
    return REMAT_OK;
}

static remat_status read_certificate(remat_ctx *ctx, const rm_json *bound, rm_certificate *out)
{
    const rm_json *certificate = rm_json_get(bound, "certificate"), *prices, *heirs;
    if (!certificate) return REMAT_OK;
    rm_place place = {"bound", RM_NO_ITEM, "certificate", RM_NO_ITEM};
    TRY(rm_check_object(ctx, certificate, place));
    place = (rm_place){"bound.certificate", RM_NO_ITEM, "scale", RM_NO_ITEM};
    TRY(rm_require(ctx, certificate, place));
    TRY(rm_get_int(ctx, certificate, place, 1, &out->scale));
    TRY((place.key = "cost", rm_get_int(ctx, certificate, place, 0, &out->cost)));
    TRY(read_pairs(ctx, certificate, "prices", &prices));
    TRY(read_pairs(ctx, certificate, "heirs", &heirs));
    out->n_prices = prices->n;
    out->n_heirs = heirs->n;
    TRY(RM_SCRATCH(ctx, out->prices, out->n_prices));
    TRY(RM_SCRATCH(ctx, out->heirs, out->n_heirs));
    for (size_t i = 0; i < out->n_prices; i++)
        out->prices[i] = (rm_price){(uint32_t)prices->items[i].items[0].integer,
                                    prices->items[i].items[1].integer};
    for (size_t i = 0; i < out->n_heirs; i++) {
        place = (rm_place){"bound.certificate", RM_NO_ITEM, "heirs", i};
        TRY(read_index(ctx, &heirs->items[i].items[1], place, &out->heirs[i].heir));
        out->heirs[i].value = (uint32_t)heirs->items[i].items[0].integer;
    }
    return REMAT_OK;
}

static remat_status read_numbers(remat_ctx *ctx, const rm_json *root, remat_summary *s,
                                 remat_plan *head)
{
    rm_place place = {.item = RM_NO_ITEM};
    const struct {
        const char *key;
        int64_t *to;
    } numbers[] = {{"budget_bytes", &s->budget_bytes},
                   {"peak_bytes", &s->peak_bytes},
                   {"cost", &s->cost},
                   {"keep_all_peak_bytes", &s->keep_all_peak_bytes},
                   {"keep_all_cost", &s->keep_all_cost}};
    for (size_t i = 0; i < RM_LEN(numbers); i++)
        TRY((place.key = numbers[i].key, rm_get_int(ctx, root, place, 0, numbers[i].to)));
    int64_t peak_step = REMAT_NONE;
    TRY((place.key = "peak_step", rm_get_int(ctx, root, place, 0, &peak_step)));
    if (peak_step > REMAT_NONE) return rm_bad(ctx, place, "no schedule is that long");
    s->peak_step = (uint32_t)peak_step;
    TRY((place.key = "strategy", rm_get_string(ctx, root, place, &s->strategy)));
    TRY((place.key = "cost_unit", rm_get_string(ctx, root, place, &s->cost_unit)));
    TRY((place.key = "cost_model", rm_get_string(ctx, root, place, &s->cost_model)));
    const char *outcome = "unknown";
    TRY((place.key = "outcome", rm_get_string(ctx, root, place, &outcome)));
    if (!rm_outcome_parse(outcome, &s->outcome))
        return rm_bad(ctx, place, "'%.40s' is none of optimal, feasible, infeasible, unknown",
                      outcome);
    bool within = false;
    TRY((place.key = "within_budget", rm_get_bool(ctx, root, place, &within)));
    head->claimed_within = rm_json_get(root, "within_budget") ? within : -1;
    s->within_budget = rm_is_within(s) || (s->peak_bytes == REMAT_ABSENT && within);
    const rm_json *bound = rm_json_get(root, "bound");
    if (!bound) return REMAT_OK;
    TRY((place.key = "bound", rm_check_object(ctx, bound, place)));
    place.list = "bound", place.index = RM_NO_ITEM;
    TRY((place.key = "cost", rm_get_int(ctx, bound, place, 0, &s->bound_cost)));
    TRY((place.key = "scope", rm_get_string(ctx, bound, place, &s->bound_scope)));
    TRY((place.key = "method", rm_get_string(ctx, bound, place, &s->bound_method)));
    return read_certificate(ctx, bound, &head->certificate);
}

remat_status rm_read_plan(remat_ctx *ctx, const remat_input *input, remat_plan **out)
{
    const rm_json *root = input->json, *schedule;
    remat_summary s = {.strategy = "",
                       .graph = "",
                       .digest = "",
                       .cost_model = "",
                       .cost_unit = "",
                       .bound_scope = "",
                       .bound_method = "",
                       .budget_bytes = REMAT_BUDGET_NONE,
                       .peak_bytes = REMAT_ABSENT,
                       .keep_all_peak_bytes = REMAT_ABSENT,
                       .resident_bytes = REMAT_ABSENT,
                       .need_bytes = REMAT_ABSENT,
                       .cost = REMAT_ABSENT,
                       .keep_all_cost = REMAT_ABSENT,
                       .bound_cost = REMAT_ABSENT,
                       .offloaded_bytes = REMAT_ABSENT,
                       .saved_bytes = REMAT_ABSENT,
                       .traffic_bytes = REMAT_ABSENT,
                       .cut_capacity = REMAT_ABSENT,
                       .seed = REMAT_ABSENT,
                       .work = REMAT_ABSENT,
                       .need_op = REMAT_NONE,
                       .bandwidth = REMAT_ABSENT};
    remat_plan head = {0};
    remat_step *steps;
    TRY(read_header(ctx, root, &s, &head));
    TRY(read_options(ctx, root, &s));
    TRY(read_numbers(ctx, root, &s, &head));
    rm_place place = {.key = "schedule", .item = RM_NO_ITEM};
    TRY(rm_get_array(ctx, root, place, &schedule));
    const size_t n = schedule->n;
    TRY(RM_SCRATCH(ctx, steps, n));
    for (size_t i = 0; i < n; i++) {
        place.item = i;
        TRY((s.kind == REMAT_KIND_CHAIN ? read_chain_step : read_graph_step)(
            ctx, &schedule->items[i], place, &steps[i]));
    }
    s.ops = head.graph_ops; /* REMAT_NONE where the file does not say */
    remat_plan *plan = NULL;
    TRY(rm_plan_new(ctx, &s, steps, n, &head.certificate, &plan));
    plan->graph_ops = head.graph_ops;
    plan->graph_values = head.graph_values;
    plan->claimed_within = head.claimed_within;
    *out = plan;
    return REMAT_OK;
}
