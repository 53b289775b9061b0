/* cost.c: what running an op once costs, by one of five models (docs/cost-model.md).
 *
 * given     the file's own numbers, in its own unit
 * unit      1 for every op that makes a storage; views and ops without outputs 0
 * node      1 for every op (the FastSA paper's model)
 * flops     the op's floating point operations
 * roofline  ns on a device: the larger of flops over its peak rate and bytes over its bandwidth,
 * rounded up, at least 1; views and ops without outputs 0. Bytes are the distinct inputs (a view
 * that is larger than its storage counts the storage) and the outputs that are no views; the dtype
 * of the first output chooses the rate. All arithmetic is in integers, 128 bits wide where a
 * product needs it, so costs are the same on every machine. */
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

typedef struct device {
    remat_entry entry;
    int64_t fp32_flops, half_flops, bytes; /* per second */
} device;

#define G INT64_C(1000000000)
static const device devices[] = {
    {{"h100", "67 TFLOP/s fp32, 990 half, 3.35 TB/s (NVIDIA H100 SXM data sheet, dense)"},
     67000 * G,
     990000 * G,
     3350 * G},
    {{"h200", "67 TFLOP/s fp32, 990 half, 4.8 TB/s (NVIDIA H200 SXM data sheet, dense)"},
     67000 * G,
     990000 * G,
     4800 * G},
    {{"a100", "19.5 TFLOP/s fp32, 312 half, 1.5 TB/s (the min-cut paper, section 2.1; half: NVIDIA "
              "A100 data sheet)"},
     19500 * G,
     312000 * G,
     1500 * G},
    {{"v100", "15.7 TFLOP/s fp32, 125 half, 0.9 TB/s (NVIDIA V100 SXM2 data sheet)"},
     15700 * G,
     125000 * G,
     900 * G},
    {{"cpu", "5.0 TFLOP/s fp32 and half, 0.2048 TB/s (AMD EPYC 7763: 64 cores x 2.45 GHz x 32, 8 "
             "channels DDR4-3200)"},
     5017600 * (G / 1000),
     5017600 * (G / 1000),
     204800 * (G / 1000)},
};

const remat_entry *remat_device_at(size_t index)
{
    return index < RM_LEN(devices) ? &devices[index].entry : NULL;
}

static bool makes_storage(const remat_graph *g, uint32_t op)
{
    return g->out_begin[op] < g->out_begin[op + 1] && !rm_is_view_op(g, op);
}

static bool is_half(const char *dtype)
{
    return strcmp(dtype, "float16") == 0 || strcmp(dtype, "bfloat16") == 0;
}

/* `reader` (by value) holds 1 + the last op that read it, so that a value listed twice counts once.
 */
static int64_t bytes_moved(const remat_graph *g, uint32_t op, uint32_t *reader)
{
    int64_t bytes = 0; /* cannot overflow: distinct values, whose sizes add up to less than 2^62 */
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
        const uint32_t v = g->in[k];
        if (reader[v] != op + 1) bytes += g->size[v] < g->storage[v] ? g->size[v] : g->storage[v];
        reader[v] = op + 1;
    }
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        if (g->out_source[k] == REMAT_NONE) bytes += g->size[g->out[k]];
    return bytes;
}

static int64_t ns_at_rate(int64_t amount, int64_t per_second)
{
    const rm_uint128 ns =
        ((rm_uint128)amount * G + (rm_uint128)per_second - 1) / (rm_uint128)per_second;
    return ns < (rm_uint128)INT64_MAX ? (int64_t)ns : INT64_MAX;
}

static int64_t roofline(const remat_graph *g, uint32_t op, const device *d, uint32_t *reader)
{
    if (!makes_storage(g, op)) return 0;
    const char *dtype = rm_text(g, g->value_dtype[g->out[g->out_begin[op]]]);
    const int64_t flops = g->flops[op] == REMAT_ABSENT ? 0 : g->flops[op];
    const int64_t compute = ns_at_rate(flops, is_half(dtype) ? d->half_flops : d->fp32_flops);
    const int64_t memory = ns_at_rate(bytes_moved(g, op, reader), d->bytes);
    const int64_t ns = compute > memory ? compute : memory;
    return ns > 1 ? ns : 1;
}

static const char *default_model(const remat_graph *g)
{
    bool all_given = g->n_ops > 0, any_flops = false;
    for (uint32_t op = 0; op < g->n_ops; op++) {
        all_given &= g->given_cost[op] != REMAT_ABSENT;
        any_flops |= g->flops[op] != REMAT_ABSENT;
    }
    return all_given ? "given" : any_flops ? "roofline:h100" : "unit";
}

typedef enum kind { GIVEN, UNIT, NODE, FLOPS, ROOFLINE } kind;

static remat_status parse_model(remat_ctx *ctx, const char *model, kind *k, const device **d)
{
    static const char *const names[] = {"given", "unit", "node", "flops"};
    static const char prefix[] = "roofline:";
    for (size_t i = 0; i < RM_LEN(names); i++)
        if (strcmp(model, names[i]) == 0) return *k = (kind)i, REMAT_OK;
    if (strncmp(model, prefix, strlen(prefix)) != 0)
        return rm_fail(ctx, REMAT_E_USAGE,
                       "unknown cost model '%.60s': given, unit, node, flops or roofline:DEVICE",
                       model);
    *k = ROOFLINE;
    for (size_t i = 0; i < RM_LEN(devices); i++)
        if (strcmp(model + strlen(prefix), devices[i].entry.name) == 0)
            return *d = &devices[i], REMAT_OK;
    char known[120] = "";
    for (size_t i = 0, n = 0; i < RM_LEN(devices) && n < sizeof known; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "",
                              devices[i].entry.name);
    return rm_fail(ctx, REMAT_E_USAGE, "unknown device '%.60s': %s", model + strlen(prefix), known);
}

static int64_t cost_of(const remat_graph *g, uint32_t op, kind k, const device *d, uint32_t *reader)
{
    switch (k) {
    case GIVEN: return g->given_cost[op];
    case UNIT: return makes_storage(g, op);
    case NODE: return 1;
    case FLOPS: return g->flops[op] == REMAT_ABSENT ? 0 : g->flops[op];
    case ROOFLINE: return roofline(g, op, d, reader);
    }
    return 0;
}

static const char *const units[] = {
    [UNIT] = "unit", [NODE] = "node", [FLOPS] = "flops", [ROOFLINE] = "ns"};

remat_status rm_cost_unit(remat_ctx *ctx, const char *model, const char **unit)
{
    kind k = GIVEN;
    const device *d = NULL;
    TRY(parse_model(ctx, model, &k, &d));
    *unit = units[k]; /* NULL for given: the file's own */
    return REMAT_OK;
}

static remat_status apply(remat_ctx *ctx, remat_graph *g, const char *model)
{
    kind k = GIVEN;
    const device *d = NULL;
    if (!model) model = default_model(g);
    TRY(parse_model(ctx, model, &k, &d));
    uint32_t *reader;
    TRY(RM_SCRATCH(ctx, reader, g->n_values));
    int64_t total = 0;
    for (uint32_t op = 0; op < g->n_ops; op++) {
        g->cost[op] = cost_of(g, op, k, d, reader);
        if (g->cost[op] == REMAT_ABSENT)
            return rm_fail(ctx, REMAT_E_USAGE,
                           "cost model 'given': op %u '%.80s' has no cost in the file", op,
                           remat_graph_op_name(g, op));
        if (g->cost[op] >= RM_MAX_SUM || (total += g->cost[op]) >= RM_MAX_SUM)
            return rm_fail(ctx, REMAT_E_INPUT,
                           "the costs add up to 2^62 or more under cost model '%s'", model);
    }
    g->total_cost = total;
    snprintf(g->cost_model, sizeof g->cost_model, "%s", model);
    g->cost_unit = k != GIVEN ? units[k] : g->given_unit ? rm_text(g, g->given_unit) : "ns";
    return REMAT_OK;
}

remat_status rm_cost_apply(remat_ctx *ctx, remat_graph *g, const char *model)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    const remat_status status = apply(ctx, g, model);
    rm_scratch_release(ctx, mark);
    return status;
}
