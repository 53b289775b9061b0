/* page_graph.c: the ops and tensors of a graph, for the page of `remat report`.
 *
 * Tensors are storages, numbered in the order in which keep-all makes them; then come the resident
 * ones. What an op reads and makes is that of its step in keep-all, after views are resolved.
 * Cost: linear in what is written, and a copy of the graph with its costs. */
#include <stdlib.h>
#include <string.h>

#include "page_data.h"

typedef struct graph_writer {
    page_writer *w;
    uint32_t n_ops;
    uint32_t *owner; /* by value that keep-all makes: in whose storage it lies */
    uint32_t *seen;  /* by tensor: the list that it was put into last */
    uint32_t n_lists;
    uint32_t *step;     /* by op: where it runs in keep-all; REMAT_NONE: it was dropped */
    int64_t *workspace; /* by op */
} graph_writer;

uint32_t page_graph_values(const session *s) { return remat_graph_n_values(s->original); }

/* ---- numbering ---- */

static void number_all(graph_writer *x)
{
    page_writer *w = x->w;
    const remat_graph *g = w->s->original;
    for (size_t p = 0; p < w->page->n_plans; p++) {
        size_t n;
        const remat_statement *at = remat_program_statements(w->page->plans[p].program, &n);
        for (size_t i = 0; i < n; i++) {
            if (at[i].kind == REMAT_ALLOCATE || at[i].kind == REMAT_REUSE)
                page_number(w, at[i].value, at[i].bytes);
            const bool runs = at[i].kind == REMAT_COMPUTE && at[i].step.kind == REMAT_RUN;
            if (!runs || x->step[at[i].step.index] != REMAT_NONE) continue;
            x->step[at[i].step.index] = at[i].step_index;
            x->workspace[at[i].step.index] = at[i].bytes;
        }
    }
    w->n_made = w->n_tensors;
    for (uint32_t v = 0; v < remat_graph_n_values(g); v++)
        if (remat_graph_value_get(g, v, REMAT_VALUE_PRODUCER) == REMAT_ABSENT &&
            remat_graph_value_get(g, v, REMAT_VALUE_ROOT) == v)
            page_number(w, v, remat_graph_value_get(g, v, REMAT_VALUE_STORAGE));
}

static void *filled(uint32_t n, size_t size)
{
    return memset(out_resize(NULL, (size_t)n + 1, size), 0xff, ((size_t)n + 1) * size);
}

/* By value that keep-all makes: in whose storage it lies. To be freed. */
static uint32_t *owners(const session *s, const remat_program *program)
{
    size_t n;
    const remat_statement *at = remat_program_statements(program, &n);
    uint32_t *owner = filled(remat_graph_n_values(s->original), sizeof *owner);
    uint32_t *holds = out_resize(NULL, n + 1, sizeof *holds); /* by register, at this time */
    for (size_t i = 0; i < n; i++) {
        if (at[i].kind == REMAT_ALLOCATE || at[i].kind == REMAT_REUSE)
            holds[at[i].reg] = at[i].value;
        uint32_t n_made = 0;
        const remat_operand *outputs =
            at[i].kind == REMAT_COMPUTE ? remat_program_step_out(program, at[i].step_index, &n_made)
                                        : NULL;
        for (uint32_t k = 0; k < n_made; k++)
            if (outputs[k].reg != REMAT_NONE) owner[outputs[k].value] = holds[outputs[k].reg];
    }
    free(holds);
    return owner;
}

static void open_graph(graph_writer *x)
{
    const session *s = x->w->s;
    x->n_ops = remat_graph_n_ops(s->original);
    x->seen = filled(remat_graph_n_values(s->original), sizeof *x->seen);
    x->step = filled(x->n_ops, sizeof *x->step);
    x->workspace = filled(x->n_ops, sizeof *x->workspace);
    x->owner = owners(s, x->w->page->plans[0].program);
    number_all(x);
}

static void close_graph(graph_writer *x)
{
    free(x->owner);
    free(x->seen);
    free(x->step);
    free(x->workspace);
}

/* ---- ops ---- */

/* The tensor that an operand of keep-all lies in. */
static uint32_t tensor_of(const graph_writer *x, const remat_operand *operand)
{
    const page_writer *w = x->w;
    if (operand->reg != REMAT_NONE) return w->tensor[x->owner[operand->value]];
    const int64_t root = remat_graph_value_get(w->s->original, operand->value, REMAT_VALUE_ROOT);
    return root < 0 ? REMAT_NONE : w->tensor[root];
}

/* Each tensor once. */
static void put_operands(graph_writer *x, const remat_operand *list, uint32_t n)
{
    emitter *j = &x->w->j;
    emit_open(j, NULL, '[');
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t tensor = tensor_of(x, &list[k]);
        if (tensor == REMAT_NONE || x->seen[tensor] == x->n_lists) continue;
        x->seen[tensor] = x->n_lists;
        emit_int(j, NULL, tensor);
    }
    x->n_lists++;
    emit_close(j, ']');
}

/* Which tensors the ops read, or make. */
static void put_edges(graph_writer *x, const char *key,
                      const remat_operand *list(const remat_program *, size_t, uint32_t *))
{
    emit_open(&x->w->j, key, '[');
    for (uint32_t op = 0; op < x->n_ops; op++) {
        uint32_t n = 0;
        const bool runs = x->step[op] != REMAT_NONE;
        const remat_operand *operands =
            runs ? list(x->w->page->plans[0].program, x->step[op], &n) : NULL;
        put_operands(x, operands, n);
    }
    emit_close(&x->w->j, ']');
}

/* Costs as they were planned with, by op of the original. A view that is none any more has a cost.
 * Costs of kernels are not those of ops, and what an op costs in one depends on which others were
 * dropped: null. */
static remat_status put_costs(graph_writer *x)
{
    remat_graph *costed = NULL;
    page_writer *w = x->w;
    const session *s = w->s;
    const bool by_kernel = strncmp(remat_graph_cost_model(s->graph), "fused:", 6) == 0;
    if (by_kernel || (s->prepared & REMAT_FUSE)) {
        emit_null(&w->j, "cost");
        return REMAT_OK;
    }
    const remat_status status =
        remat_graph_prepare(s->ctx, s->original, s->prepared & REMAT_NO_ALIAS,
                            remat_graph_cost_model(s->graph), &costed);
    if (status != REMAT_OK) return status;
    emit_open(&w->j, "cost", '[');
    for (uint32_t op = 0; op < x->n_ops; op++)
        emit_int(&w->j, NULL, remat_graph_op_get(costed, op, REMAT_OP_COST));
    emit_close(&w->j, ']');
    remat_graph_free(costed);
    return REMAT_OK;
}

static int64_t op_phase(const page_writer *w, uint32_t op)
{
    return remat_graph_op_get(w->s->original, op, REMAT_OP_PHASE);
}

static remat_status put_ops(graph_writer *x)
{
    page_writer *w = x->w;
    const remat_graph *g = w->s->original;
    amount buffer;
    emit_open(&w->j, "ops", '{');
    emit_open(&w->j, "name", '[');
    for (uint32_t op = 0; op < x->n_ops; op++)
        emit_text(&w->j, NULL, session_op(w->s, op, &buffer));
    emit_close(&w->j, ']');
    emit_open(&w->j, "target", '[');
    for (uint32_t op = 0; op < x->n_ops; op++) emit_text(&w->j, NULL, remat_graph_op_target(g, op));
    emit_close(&w->j, ']');
    page_column(w, "phase", x->n_ops, op_phase);
    emit_open(&w->j, "workspace", '[');
    for (uint32_t op = 0; op < x->n_ops; op++)
        emit_int(&w->j, NULL, x->workspace[op] < 0 ? 0 : x->workspace[op]);
    emit_close(&w->j, ']');
    const remat_status status = put_costs(x);
    put_edges(x, "reads", remat_program_step_in);
    put_edges(x, "makes", remat_program_step_out);
    emit_close(&w->j, '}');
    return status;
}

/* The last op of each stage of the forward pass, where the graph is a chain of stages: what a page
 * calls layers where names do not tell. None of them unless all are found. */
static void put_stages(page_writer *w)
{
    remat_chain *chain = NULL;
    emit_open(&w->j, "stages", '[');
    if (remat_chain_of_graph(w->s->ctx, w->s->graph, &chain) == REMAT_OK) {
        const uint32_t n = remat_chain_n_stages(chain), n_ops = remat_graph_n_ops(w->s->original);
        uint32_t *last = out_resize(NULL, (size_t)n + 1, sizeof *last), found = 0;
        for (uint32_t op = 0; op < n_ops && found < n; op++)
            if (strcmp(remat_graph_op_name(w->s->original, op),
                       remat_chain_stage(chain, found + 1)->name) == 0)
                last[found++] = op;
        for (uint32_t i = 0; i < n && found == n; i++) emit_int(&w->j, NULL, last[i]);
        free(last);
    }
    emit_close(&w->j, ']');
    remat_chain_free(chain);
}

/* ---- tensors ---- */

static void put_shape(page_writer *w, uint32_t value)
{
    uint32_t rank;
    const int64_t *shape = remat_graph_value_shape(w->s->original, value, &rank);
    emit_open(&w->j, NULL, '[');
    for (uint32_t i = 0; i < rank; i++) emit_int(&w->j, NULL, shape[i]);
    emit_close(&w->j, ']');
}

static int64_t tensor_kind(const page_writer *w, uint32_t tensor)
{
    return remat_graph_value_get(w->s->original, w->value[tensor], REMAT_VALUE_KIND);
}

static void put_outputs(page_writer *w)
{
    const remat_graph *g = w->s->original;
    uint32_t n;
    const uint32_t *outputs = remat_graph_outputs(g, &n);
    emit_open(&w->j, "outputs", '[');
    for (uint32_t i = 0; i < n; i++) {
        const int64_t root = remat_graph_value_get(g, outputs[i], REMAT_VALUE_ROOT);
        if (root >= 0 && w->tensor[root] != REMAT_NONE) emit_int(&w->j, NULL, w->tensor[root]);
    }
    emit_close(&w->j, ']');
}

static void put_tensors(page_writer *w)
{
    amount buffer;
    emit_open(&w->j, "tensors", '{');
    emit_int(&w->j, "made", w->n_made);
    emit_open(&w->j, "name", '[');
    for (uint32_t t = 0; t < w->n_tensors; t++)
        emit_text(&w->j, NULL, session_value(w->s, w->value[t], &buffer));
    emit_close(&w->j, ']');
    page_column(w, "value", w->n_tensors, page_tensor_value);
    page_column(w, "bytes", w->n_tensors, page_tensor_bytes);
    page_column(w, "kind", w->n_tensors, tensor_kind);
    emit_open(&w->j, "dtype", '[');
    for (uint32_t t = 0; t < w->n_tensors; t++)
        emit_text(&w->j, NULL, remat_graph_value_dtype(w->s->original, w->value[t]));
    emit_close(&w->j, ']');
    emit_open(&w->j, "shape", '[');
    for (uint32_t t = 0; t < w->n_tensors; t++) put_shape(w, w->value[t]);
    emit_close(&w->j, ']');
    put_outputs(w);
    emit_close(&w->j, '}');
}

remat_status page_graph_put(page_writer *w)
{
    graph_writer x = {.w = w};
    open_graph(&x);
    const remat_status status = put_ops(&x);
    put_stages(w);
    put_tensors(w);
    close_graph(&x);
    return status;
}

/* ---- plans ---- */

/* One life for each storage that is made, in that order. */
page_life *page_graph_lives(const session *s, const page_plan *p, uint32_t *n_lives)
{
    size_t n, n_steps;
    const remat_statement *at = remat_program_statements(p->program, &n);
    (void)s;
    remat_plan_steps(p->report.plan, &n_steps);
    page_life *list = out_resize(NULL, n + 1, sizeof *list);
    uint32_t *newest = out_resize(NULL, n + 1, sizeof *newest); /* by register: its life */
    *n_lives = 0;
    for (size_t i = 0; i < n; i++) {
        if (at[i].kind == REMAT_COMPUTE) continue;
        if (at[i].kind == REMAT_DEALLOCATE) list[newest[at[i].reg]].end = at[i].step_index;
        if (at[i].kind == REMAT_REUSE) list[newest[at[i].reg]].end = at[i].step_index - 1;
        if (at[i].kind == REMAT_DEALLOCATE) continue;
        newest[at[i].reg] = *n_lives;
        list[(*n_lives)++] = (page_life){at[i].value, at[i].step_index, (uint32_t)(n_steps - 1)};
    }
    free(newest);
    return list;
}
