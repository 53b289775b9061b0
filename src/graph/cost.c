/* cost.c: what it costs to run an op once, by one of six models (docs/cost-model.md).
 *
 *     given      the file's own numbers, in its own unit
 *     unit       1 for every op that makes a storage; 0 for views and ops without outputs
 *     node       1 for every op (the FastSA paper's model)
 *     flops      the floating point operations of the op
 *     roofline   ns on a device; 0 for views and ops without outputs
 *     fused      ns on a device, behind a compiler that fuses: a roofline here, and then
 *                fusion/fused_cost.c gives ops that fuse what their kernel takes for them
 *
 * Roofline is the larger of flops over the peak rate and bytes over the bandwidth of the device. It
 * is rounded up, and at least 1.
 * - The bytes are those of the inputs, each once, and of the outputs that are no views. A view that
 *   is larger than its storage counts as its storage.
 * - The dtype of the first output chooses the rate.
 *
 * Costs are the same on every machine: all arithmetic is in integers, 128 bits wide where a product
 * needs it.
 *
 * Cost: linear in ops and edges. */
#include "graph/graph.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

typedef struct rm_device {
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

/* reader: by value, 1 + the last op that read it, so that a value listed twice counts once.
 * The sum cannot overflow: the values are distinct, and all sizes add up to less than 2^62. */
static int64_t bytes_moved(const remat_graph *g, uint32_t op, uint32_t *reader)
{
    int64_t bytes = 0;
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
        const uint32_t v = g->in[k];
        if (reader[v] == op + 1) continue;
        reader[v] = op + 1;
        bytes += g->size[v] < g->storage[v] ? g->size[v] : g->storage[v];
    }
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        if (g->out_source[k] == REMAT_NONE) bytes += g->size[g->out[k]];
    return bytes;
}

/* Rounded up. INT64_MAX: so much or more. */
static int64_t ns_at_rate(int64_t amount, int64_t per_second)
{
    assert(amount >= 0 && per_second > 0);
    const rm_uint128 ns =
        ((rm_uint128)amount * G + (rm_uint128)per_second - 1) / (rm_uint128)per_second;
    return ns < (rm_uint128)INT64_MAX ? (int64_t)ns : INT64_MAX;
}

/* Where a step hands tensors over to its caller or takes them, nothing is moved. */
static bool moves_nothing(const remat_graph *g, uint32_t op)
{
    static const char *const targets[] = {"remat.before", "remat.pass_on"};
    for (size_t i = 0; i < RM_LEN(targets); i++)
        if (strcmp(rm_text(g, g->op_target[op]), targets[i]) == 0) return true;
    return rm_is_boundary(g, op);
}

/* Of an op that has outputs. */
static int64_t compute_ns(const remat_graph *g, uint32_t op, const device *d)
{
    const char *dtype = rm_text(g, g->value_dtype[g->out[g->out_begin[op]]]);
    const int64_t flops = g->flops[op] == REMAT_ABSENT ? 0 : g->flops[op];
    return ns_at_rate(flops, is_half(dtype) ? d->half_flops : d->fp32_flops);
}

static int64_t roofline(const remat_graph *g, uint32_t op, const device *d, uint32_t *reader)
{
    if (!makes_storage(g, op) || moves_nothing(g, op)) return 0;
    const int64_t compute = compute_ns(g, op, d),
                  memory = ns_at_rate(bytes_moved(g, op, reader), d->bytes);
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
    if (all_given) return "given";
    return any_flops ? "roofline:h100" : "unit";
}

typedef enum kind { GIVEN, UNIT, NODE, FLOPS, ROOFLINE, FUSED } kind;

typedef struct model {
    kind kind;
    const device *device; /* of roofline and fused; else NULL */
} model;

/* Each takes a device behind the colon. */
static const char *const prefixes[] = {[ROOFLINE] = "roofline:", [FUSED] = "fused:"};

static bool begins_with(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static remat_status parse_device(remat_ctx *ctx, const char *name, kind of, model *out)
{
    for (size_t i = 0; i < RM_LEN(devices); i++)
        if (strcmp(name, devices[i].entry.name) == 0) {
            *out = (model){of, &devices[i]};
            return REMAT_OK;
        }
    char known[120] = "";
    for (size_t i = 0, n = 0; i < RM_LEN(devices) && n < sizeof known; i++)
        n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "",
                              devices[i].entry.name);
    return rm_fail(ctx, REMAT_E_USAGE, "unknown device '%.60s': %s", name, known);
}

static remat_status parse_model(remat_ctx *ctx, const char *name, model *out)
{
    static const char *const kinds[] = {
        [GIVEN] = "given", [UNIT] = "unit", [NODE] = "node", [FLOPS] = "flops"};
    for (size_t i = 0; i < RM_LEN(kinds); i++)
        if (strcmp(name, kinds[i]) == 0) {
            *out = (model){(kind)i, NULL};
            return REMAT_OK;
        }
    for (size_t i = ROOFLINE; i < RM_LEN(prefixes); i++)
        if (begins_with(name, prefixes[i]))
            return parse_device(ctx, name + strlen(prefixes[i]), (kind)i, out);
    return rm_fail(ctx, REMAT_E_USAGE,
                   "unknown cost model '%.60s': given, unit, node, flops, roofline:DEVICE or "
                   "fused:DEVICE",
                   name);
}

static int64_t cost_of(const remat_graph *g, uint32_t op, model m, uint32_t *reader)
{
    switch (m.kind) {
    case GIVEN: return g->given_cost[op];
    case UNIT: return makes_storage(g, op);
    case NODE: return 1;
    case FLOPS: return g->flops[op] == REMAT_ABSENT ? 0 : g->flops[op];
    case ROOFLINE:
    case FUSED: return roofline(g, op, m.device, reader);
    }
    return 0;
}

/* NULL for given: the file's own. */
static const char *const units[] = {[GIVEN] = NULL,    [UNIT] = "unit",   [NODE] = "node",
                                    [FLOPS] = "flops", [ROOFLINE] = "ns", [FUSED] = "ns"};

static const char *unit_of(const remat_graph *g, model m)
{
    if (m.kind != GIVEN) return units[m.kind];
    return g->given_unit ? rm_text(g, g->given_unit) : "ns";
}

remat_status rm_cost_unit(remat_ctx *ctx, const char *name, const char **unit)
{
    model m;
    TRY(parse_model(ctx, name, &m));
    *unit = units[m.kind];
    return REMAT_OK;
}

static remat_status apply(remat_ctx *ctx, remat_graph *g, const char *name)
{
    model m;
    TRY(parse_model(ctx, name, &m));
    uint32_t *reader;
    TRY(RM_SCRATCH(ctx, reader, g->n_values));
    int64_t total = 0;
    for (uint32_t op = 0; op < g->n_ops; op++) {
        g->cost[op] = cost_of(g, op, m, reader);
        if (g->cost[op] == REMAT_ABSENT)
            return rm_fail(ctx, REMAT_E_USAGE,
                           "cost model 'given': op %u '%.80s' has no cost in the file", op,
                           remat_graph_op_name(g, op));
        if (!rm_add_to_sum(&total, g->cost[op]))
            return rm_fail(ctx, REMAT_E_INPUT,
                           "the costs add up to 2^62 or more under cost model '%s'", name);
    }
    g->total_cost = total;
    snprintf(g->cost_model, sizeof g->cost_model, "%s", name);
    g->cost_unit = unit_of(g, m);
    return REMAT_OK;
}

bool rm_cost_is_roofline(const remat_graph *g)
{
    return begins_with(g->cost_model, prefixes[ROOFLINE]) || rm_cost_is_fused(g);
}

bool rm_cost_is_fused(const remat_graph *g) { return begins_with(g->cost_model, prefixes[FUSED]); }

remat_status rm_device_find(remat_ctx *ctx, const remat_graph *g, const rm_device **out)
{
    model m;
    TRY(parse_model(ctx, g->cost_model, &m));
    assert(m.device);
    *out = m.device;
    return REMAT_OK;
}

int64_t rm_device_compute_ns(const rm_device *d, const remat_graph *g, uint32_t op)
{
    return compute_ns(g, op, d);
}

int64_t rm_device_memory_ns(const rm_device *d, int64_t bytes)
{
    return ns_at_rate(bytes, d->bytes);
}

remat_status rm_cost_apply(remat_ctx *ctx, remat_graph *g, const char *name)
{
    const rm_mark mark = rm_scratch_mark(ctx);
    const remat_status status = apply(ctx, g, name ? name : default_model(g));
    rm_scratch_release(ctx, mark);
    return status;
}

void rm_cost_warn(remat_ctx *ctx, const remat_graph *g)
{
    uint32_t n_missing = 0, first = 0;
    bool any = false;
    for (uint32_t op = g->n_ops; op-- > 0;) {
        any = any || g->given_cost[op] > 0;
        if (g->given_cost[op] != REMAT_ABSENT) continue;
        n_missing++;
        first = op;
    }
    if (any && n_missing)
        rm_warn(ctx,
                "%u of %u ops have no cost, the first is op %u%s%.80s: costs of a file are used "
                "only if every op has one",
                n_missing, g->n_ops, first, *remat_graph_op_name(g, first) ? " " : "",
                remat_graph_op_name(g, first));
}
