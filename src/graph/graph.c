/* graph.c: reading a frozen graph.
 *
 * If an index is out of range, every accessor answers "", REMAT_ABSENT or an empty list. */
#include "graph/graph.h"

#include <string.h>

void remat_graph_free(remat_graph *graph)
{
    if (!graph) return;
    const remat_alloc heap = graph->heap;
    rm_release(&heap, graph, graph->block_size);
}

bool rm_is_view_op(const remat_graph *g, uint32_t op)
{
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        if (g->out_source[k] == REMAT_NONE) return false;
    return g->out_begin[op] < g->out_begin[op + 1];
}

bool rm_is_boundary(const remat_graph *g, uint32_t op)
{
    return strcmp(rm_text(g, g->op_target[op]), "remat.boundary") == 0;
}

const char *const rm_value_kinds[REMAT_CONST + 1] = {[REMAT_TEMPORARY] = "temporary",
                                                     [REMAT_PARAM] = "param",
                                                     [REMAT_BUFFER] = "buffer",
                                                     [REMAT_INPUT] = "input",
                                                     [REMAT_CONST] = "const"};
const char *const rm_phases[REMAT_BACKWARD + 1] = {
    [REMAT_PHASE_NONE] = "none", [REMAT_FORWARD] = "forward", [REMAT_BACKWARD] = "backward"};
const char *const rm_classes[REMAT_CLASS_RANDOM + 1] = {[REMAT_CLASS_OTHER] = "other",
                                                        [REMAT_CLASS_COMPUTE] = "compute",
                                                        [REMAT_CLASS_FUSIBLE] = "fusible",
                                                        [REMAT_CLASS_VIEW] = "view",
                                                        [REMAT_CLASS_RANDOM] = "random"};

const char *remat_class_name(remat_class op_class)
{
    return (size_t)op_class < RM_LEN(rm_classes) ? rm_classes[op_class] : NULL;
}

const char *remat_graph_name(const remat_graph *g) { return rm_text(g, g->name); }
const char *remat_graph_digest(const remat_graph *g) { return g->digest; }
const char *remat_graph_cost_model(const remat_graph *g) { return g->cost_model; }
const char *remat_graph_cost_unit(const remat_graph *g) { return g->cost_unit; }
uint32_t remat_graph_n_ops(const remat_graph *g) { return g->n_ops; }
uint32_t remat_graph_n_values(const remat_graph *g) { return g->n_values; }
const char *remat_graph_op_name(const remat_graph *g, uint32_t op)
{
    return op < g->n_ops ? rm_text(g, g->op_name[op]) : "";
}
const char *remat_graph_op_target(const remat_graph *g, uint32_t op)
{
    return op < g->n_ops ? rm_text(g, g->op_target[op]) : "";
}
const char *remat_graph_value_name(const remat_graph *g, uint32_t v)
{
    return v < g->n_values ? rm_text(g, g->value_name[v]) : "";
}

const char *remat_graph_value_dtype(const remat_graph *g, uint32_t v)
{
    return v < g->n_values ? rm_text(g, g->value_dtype[v]) : "";
}

const int64_t *remat_graph_value_shape(const remat_graph *g, uint32_t v, uint32_t *rank)
{
    *rank = v < g->n_values ? g->dims_begin[v + 1] - g->dims_begin[v] : 0;
    return v < g->n_values ? g->dims + g->dims_begin[v] : g->dims;
}

static int64_t index_or_absent(uint32_t x) { return x == REMAT_NONE ? REMAT_ABSENT : x; }

int64_t remat_graph_op_get(const remat_graph *g, uint32_t op, remat_op_attr attr)
{
    if (op >= g->n_ops) return REMAT_ABSENT;
    switch (attr) {
    case REMAT_OP_COST: return g->cost[op];
    case REMAT_OP_FLOPS: return g->flops[op];
    case REMAT_OP_WORKSPACE: return g->workspace[op];
    case REMAT_OP_PHASE: return g->phase[op];
    case REMAT_OP_CLASS: return g->op_class[op];
    case REMAT_OP_PINNED: return g->pinned[op];
    case REMAT_OP_REPLAY: return g->replay[op];
    case REMAT_OP_KERNEL: return index_or_absent(g->kernel[op]);
    case REMAT_OP_GIVEN_COST: return g->given_cost[op];
    }
    return REMAT_ABSENT;
}

int64_t remat_graph_value_get(const remat_graph *g, uint32_t value, remat_value_attr attr)
{
    if (value >= g->n_values) return REMAT_ABSENT;
    switch (attr) {
    case REMAT_VALUE_SIZE: return g->size[value];
    case REMAT_VALUE_STORAGE: return g->storage[value];
    case REMAT_VALUE_ALIAS: return index_or_absent(g->alias[value]);
    case REMAT_VALUE_KIND: return g->value_kind[value];
    case REMAT_VALUE_ROOT: return g->root[value];
    case REMAT_VALUE_PRODUCER: return index_or_absent(g->producer[value]);
    }
    return REMAT_ABSENT;
}

static const uint32_t *list(const uint32_t *items, const uint32_t *begin, uint32_t op,
                            uint32_t n_ops, uint32_t *n)
{
    *n = op < n_ops ? begin[op + 1] - begin[op] : 0;
    return op < n_ops ? items + begin[op] : items;
}

const uint32_t *remat_graph_op_in(const remat_graph *g, uint32_t op, uint32_t *n)
{
    return list(g->in, g->in_begin, op, g->n_ops, n);
}
const uint32_t *remat_graph_op_out(const remat_graph *g, uint32_t op, uint32_t *n)
{
    return list(g->out, g->out_begin, op, g->n_ops, n);
}

uint32_t remat_graph_op_inplace(const remat_graph *g, uint32_t op, uint32_t out)
{
    if (op >= g->n_ops || out >= g->out_begin[op + 1] - g->out_begin[op]) return REMAT_NONE;
    return g->out_takes[g->out_begin[op] + out];
}

const uint32_t *remat_graph_outputs(const remat_graph *g, uint32_t *n)
{
    *n = g->n_outputs;
    return g->outputs;
}
