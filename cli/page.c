/* page.c: the page of `remat report`: a template that is compiled in, and the data of the plans in
 * the middle of it, as one JSON object. docs/report.md says what the object holds.
 *
 * Problem: a page of 50,000 ops must stay below 10 MB, and names of ops come from files that
 * anybody may have written. Method: the data are columns of numbers, where tensors and ops are
 * indices. The JSON is written to memory first. On its way into the page every <, > and &, and what
 * cannot be seen, becomes an escape of JSON (\u003c). These characters stand in strings only, so
 * the data stay the same, and nothing in them can end the element they lie in. The script of the
 * page sets text and never markup.
 *
 * Tensors are storages, numbered in the order in which keep-all makes them; then come the resident
 * ones. What an op reads and makes is that of its step in keep-all, after views are resolved.
 * Invariant: the spans of a plan, the resident bytes and the workspace of the step sum up to the
 * memory of each step; the page checks it at the peak.
 * Cost: linear in what is written, and one lowering for each plan. */
#include "page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

typedef struct writer {
    session *s;
    emitter j;
    const page *page;
    uint32_t n_values, n_ops;
    uint32_t *tensor;           /* by value: its number; REMAT_NONE: it owns no storage */
    uint32_t *value;            /* by tensor */
    int64_t *bytes;             /* by tensor */
    uint32_t n_tensors, n_made; /* the first n_made are made by ops, the others are resident */
    uint32_t *seen;             /* by tensor: the list that it was put into last */
    uint32_t n_lists;
    uint32_t *step;     /* by op: where it runs in keep-all; REMAT_NONE: it was dropped */
    int64_t *workspace; /* by op */
} writer;

/* ---- numbering ---- */

static uint32_t number(writer *w, uint32_t value, int64_t bytes)
{
    if (w->tensor[value] == REMAT_NONE) {
        w->tensor[value] = w->n_tensors;
        w->value[w->n_tensors] = value;
        w->bytes[w->n_tensors++] = bytes;
    }
    return w->tensor[value];
}

static void number_all(writer *w)
{
    const remat_graph *g = w->s->original;
    for (size_t p = 0; p < w->page->n_plans; p++) {
        size_t n;
        const remat_statement *at = remat_program_statements(w->page->plans[p].program, &n);
        for (size_t i = 0; i < n; i++) {
            if (at[i].kind == REMAT_ALLOCATE || at[i].kind == REMAT_REUSE)
                number(w, at[i].value, at[i].bytes);
            const bool runs = at[i].kind == REMAT_COMPUTE && at[i].step.kind == REMAT_RUN;
            if (!runs || w->step[at[i].step.index] != REMAT_NONE) continue;
            w->step[at[i].step.index] = at[i].step_index;
            w->workspace[at[i].step.index] = at[i].bytes;
        }
    }
    w->n_made = w->n_tensors;
    for (uint32_t v = 0; v < w->n_values; v++)
        if (remat_graph_value_get(g, v, REMAT_VALUE_PRODUCER) == REMAT_ABSENT &&
            remat_graph_value_get(g, v, REMAT_VALUE_ROOT) == v)
            number(w, v, remat_graph_value_get(g, v, REMAT_VALUE_STORAGE));
}

static void *filled(uint32_t n, size_t size)
{
    return memset(out_resize(NULL, (size_t)n + 1, size), 0xff, ((size_t)n + 1) * size);
}

static void open_writer(writer *w)
{
    w->n_values = remat_graph_n_values(w->s->original);
    w->n_ops = remat_graph_n_ops(w->s->original);
    w->tensor = filled(w->n_values, sizeof *w->tensor);
    w->value = filled(w->n_values, sizeof *w->value);
    w->bytes = filled(w->n_values, sizeof *w->bytes);
    w->seen = filled(w->n_values, sizeof *w->seen);
    w->step = filled(w->n_ops, sizeof *w->step);
    w->workspace = filled(w->n_ops, sizeof *w->workspace);
    number_all(w);
}

static void close_writer(writer *w)
{
    free(w->tensor);
    free(w->value);
    free(w->bytes);
    free(w->seen);
    free(w->step);
    free(w->workspace);
}

/* ---- ops ---- */

/* The tensor that an operand of keep-all lies in. */
static uint32_t tensor_of(const writer *w, const uint32_t *owner, const remat_operand *x)
{
    if (x->reg != REMAT_NONE) return w->tensor[owner[x->value]];
    const int64_t root = remat_graph_value_get(w->s->original, x->value, REMAT_VALUE_ROOT);
    return root < 0 ? REMAT_NONE : w->tensor[root];
}

/* Each tensor once. */
static void put_operands(writer *w, const uint32_t *owner, const remat_operand *x, uint32_t n)
{
    emit_open(&w->j, NULL, '[');
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t tensor = tensor_of(w, owner, &x[k]);
        if (tensor == REMAT_NONE || w->seen[tensor] == w->n_lists) continue;
        w->seen[tensor] = w->n_lists;
        emit_int(&w->j, NULL, tensor);
    }
    w->n_lists++;
    emit_close(&w->j, ']');
}

/* Which tensors the ops read, or make. */
static void put_edges(writer *w, const char *key, const uint32_t *owner,
                      const remat_operand *list(const remat_program *, size_t, uint32_t *))
{
    emit_open(&w->j, key, '[');
    for (uint32_t op = 0; op < w->n_ops; op++) {
        uint32_t n = 0;
        const bool runs = w->step[op] != REMAT_NONE;
        const remat_operand *x = runs ? list(w->page->plans[0].program, w->step[op], &n) : NULL;
        put_operands(w, owner, x, n);
    }
    emit_close(&w->j, ']');
}

/* By value that keep-all makes: in whose storage it lies. To be freed. */
static uint32_t *owners(const writer *w, const remat_program *program)
{
    size_t n;
    const remat_statement *at = remat_program_statements(program, &n);
    uint32_t *owner = filled(w->n_values, sizeof *owner);
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

/* Costs as they were planned with, by op of the original. A view that is none any more has a cost.
 * Kernels of --fuse have costs of their own: null. */
static remat_status put_costs(writer *w)
{
    remat_graph *costed = NULL;
    const session *s = w->s;
    if (s->prepared & REMAT_FUSE) {
        emit_null(&w->j, "cost");
        return REMAT_OK;
    }
    const remat_status status =
        remat_graph_prepare(s->ctx, s->original, s->prepared & REMAT_NO_ALIAS,
                            remat_graph_cost_model(s->graph), &costed);
    if (status != REMAT_OK) return status;
    emit_open(&w->j, "cost", '[');
    for (uint32_t op = 0; op < w->n_ops; op++)
        emit_int(&w->j, NULL, remat_graph_op_get(costed, op, REMAT_OP_COST));
    emit_close(&w->j, ']');
    remat_graph_free(costed);
    return REMAT_OK;
}

static remat_status put_ops(writer *w)
{
    const remat_graph *g = w->s->original;
    amount buffer;
    emit_open(&w->j, "ops", '{');
    emit_open(&w->j, "name", '[');
    for (uint32_t op = 0; op < w->n_ops; op++)
        emit_text(&w->j, NULL, session_op(w->s, op, &buffer));
    emit_close(&w->j, ']');
    emit_open(&w->j, "target", '[');
    for (uint32_t op = 0; op < w->n_ops; op++) emit_text(&w->j, NULL, remat_graph_op_target(g, op));
    emit_close(&w->j, ']');
    emit_open(&w->j, "phase", '[');
    for (uint32_t op = 0; op < w->n_ops; op++)
        emit_int(&w->j, NULL, remat_graph_op_get(g, op, REMAT_OP_PHASE));
    emit_close(&w->j, ']');
    emit_open(&w->j, "workspace", '[');
    for (uint32_t op = 0; op < w->n_ops; op++)
        emit_int(&w->j, NULL, w->workspace[op] < 0 ? 0 : w->workspace[op]);
    emit_close(&w->j, ']');
    const remat_status status = put_costs(w);
    uint32_t *owner = owners(w, w->page->plans[0].program);
    put_edges(w, "reads", owner, remat_program_step_in);
    put_edges(w, "makes", owner, remat_program_step_out);
    free(owner);
    emit_close(&w->j, '}');
    return status;
}

/* The last op of each stage of the forward pass, where the graph is a chain of stages: what a page
 * calls layers where names do not tell. None of them unless all are found. */
static void put_stages(writer *w)
{
    remat_chain *chain = NULL;
    emit_open(&w->j, "stages", '[');
    if (remat_chain_of_graph(w->s->ctx, w->s->graph, &chain) == REMAT_OK) {
        const uint32_t n = remat_chain_n_stages(chain);
        uint32_t *last = out_resize(NULL, (size_t)n + 1, sizeof *last), found = 0;
        for (uint32_t op = 0; op < w->n_ops && found < n; op++)
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

static void put_shape(writer *w, uint32_t value)
{
    uint32_t rank;
    const int64_t *shape = remat_graph_value_shape(w->s->original, value, &rank);
    emit_open(&w->j, NULL, '[');
    for (uint32_t i = 0; i < rank; i++) emit_int(&w->j, NULL, shape[i]);
    emit_close(&w->j, ']');
}

static void put_tensors(writer *w)
{
    const remat_graph *g = w->s->original;
    amount buffer;
    uint32_t n_outputs;
    const uint32_t *outputs = remat_graph_outputs(g, &n_outputs);
    emit_open(&w->j, "tensors", '{');
    emit_int(&w->j, "made", w->n_made);
    emit_open(&w->j, "name", '[');
    for (uint32_t t = 0; t < w->n_tensors; t++)
        emit_text(&w->j, NULL, session_value(w->s, w->value[t], &buffer));
    emit_close(&w->j, ']');
    emit_open(&w->j, "value", '[');
    for (uint32_t t = 0; t < w->n_tensors; t++) emit_int(&w->j, NULL, w->value[t]);
    emit_close(&w->j, ']');
    emit_open(&w->j, "bytes", '[');
    for (uint32_t t = 0; t < w->n_tensors; t++) emit_int(&w->j, NULL, w->bytes[t]);
    emit_close(&w->j, ']');
    emit_open(&w->j, "kind", '[');
    for (uint32_t t = 0; t < w->n_tensors; t++)
        emit_int(&w->j, NULL, remat_graph_value_get(g, w->value[t], REMAT_VALUE_KIND));
    emit_close(&w->j, ']');
    emit_open(&w->j, "dtype", '[');
    for (uint32_t t = 0; t < w->n_tensors; t++)
        emit_text(&w->j, NULL, remat_graph_value_dtype(g, w->value[t]));
    emit_close(&w->j, ']');
    emit_open(&w->j, "shape", '[');
    for (uint32_t t = 0; t < w->n_tensors; t++) put_shape(w, w->value[t]);
    emit_close(&w->j, ']');
    emit_open(&w->j, "outputs", '[');
    for (uint32_t i = 0; i < n_outputs; i++) {
        const int64_t root = remat_graph_value_get(g, outputs[i], REMAT_VALUE_ROOT);
        if (root >= 0 && w->tensor[root] != REMAT_NONE) emit_int(&w->j, NULL, w->tensor[root]);
    }
    emit_close(&w->j, ']');
    emit_close(&w->j, '}');
}

/* ---- plans ---- */

typedef struct life {
    uint32_t tensor, begin, end; /* steps, the last with it */
} life;

/* One life for each storage that is made, in that order. To be freed. */
static life *lives(const writer *w, const page_plan *p, uint32_t *n_lives)
{
    size_t n, n_steps;
    const remat_statement *at = remat_program_statements(p->program, &n);
    remat_plan_steps(p->report.plan, &n_steps);
    life *list = out_resize(NULL, n + 1, sizeof *list);
    uint32_t *newest = out_resize(NULL, n + 1, sizeof *newest); /* by register: its life */
    *n_lives = 0;
    for (size_t i = 0; i < n; i++) {
        if (at[i].kind == REMAT_COMPUTE) continue;
        if (at[i].kind == REMAT_DEALLOCATE) list[newest[at[i].reg]].end = at[i].step_index;
        if (at[i].kind == REMAT_REUSE) list[newest[at[i].reg]].end = at[i].step_index - 1;
        if (at[i].kind == REMAT_DEALLOCATE) continue;
        newest[at[i].reg] = *n_lives;
        list[(*n_lives)++] =
            (life){w->tensor[at[i].value], at[i].step_index, (uint32_t)(n_steps - 1)};
    }
    free(newest);
    return list;
}

/* Columns: the tensor, how many steps later than the one before it is made, how many steps it
 * lives. */
static void put_spans(writer *w, const page_plan *p)
{
    uint32_t n;
    life *list = lives(w, p, &n);
    emit_open(&w->j, "spans", '{');
    emit_open(&w->j, "tensor", '[');
    for (uint32_t i = 0; i < n; i++) emit_int(&w->j, NULL, list[i].tensor);
    emit_close(&w->j, ']');
    emit_open(&w->j, "later", '[');
    for (uint32_t i = 0; i < n; i++)
        emit_int(&w->j, NULL, (int64_t)list[i].begin - (i ? (int64_t)list[i - 1].begin : 0));
    emit_close(&w->j, ']');
    emit_open(&w->j, "steps", '[');
    for (uint32_t i = 0; i < n; i++)
        emit_int(&w->j, NULL, (int64_t)list[i].end - (int64_t)list[i].begin + 1);
    emit_close(&w->j, ']');
    emit_close(&w->j, '}');
    free(list);
}

static remat_status put_plans(writer *w)
{
    static const char *const roles[] = {"keep-all", "plan", "curve"};
    remat_status status = REMAT_OK;
    emit_open(&w->j, "plans", '[');
    for (size_t i = 0; i < w->page->n_plans && status == REMAT_OK; i++) {
        const page_plan *p = &w->page->plans[i];
        emit_open(&w->j, NULL, '{');
        emit_text(&w->j, "role", roles[p->role]);
        emit_key(&w->j, "file"); /* as -o of plan writes it: schedule, bounds, placement */
        status = remat_plan_write(w->s->ctx, p->report.plan, REMAT_JSON, out_sink, w->j.out);
        put_spans(w, p);
        emit_close(&w->j, '}');
    }
    emit_close(&w->j, ']');
    emit_open(&w->j, "reports", '['); /* as --json of plan prints them, in the same order */
    for (size_t i = 0; i < w->page->n_plans; i++)
        report_json(&w->j, w->s, &w->page->plans[i].report);
    emit_close(&w->j, ']');
    return status;
}

/* ---- the whole ---- */

static void put_head(writer *w)
{
    const session *s = w->s;
    amount buffer;
    emit_text(&w->j, "format", "remat-report");
    emit_int(&w->j, "version", 1);
    emit_text(&w->j, "remat", remat_version());
    emit_open(&w->j, "command", '[');
    emit_text(&w->j, NULL, "remat"); /* not where the program lies */
    for (int i = 1; i < s->args->n_words; i++) emit_text(&w->j, NULL, s->args->words[i]);
    emit_close(&w->j, ']');
    emit_open(&w->j, "graph", '{');
    emit_text(&w->j, "name", session_name(s));
    emit_text(&w->j, "digest", session_digest(s));
    emit_text(&w->j, "cost_model", session_cost_model(s));
    emit_text(&w->j, "cost_unit", session_cost_unit(s));
    emit_int(&w->j, "ops", s->info.ops);
    emit_int(&w->j, "resident_bytes", s->info.resident_bytes);
    emit_int(&w->j, "need_bytes", s->info.need_bytes);
    emit_text(&w->j, "need_op", session_op(s, remat_plan_summary(s->keep_all)->need_op, &buffer));
    emit_close(&w->j, '}');
    emit_open(&w->j, "refused", '[');
    for (size_t i = 0; i < w->page->n_refused; i++) {
        emit_open(&w->j, NULL, '{');
        emit_text(&w->j, "strategy", w->page->refused[i].summary.strategy);
        emit_text(&w->j, "reason", w->page->refused[i].reason);
        emit_close(&w->j, '}');
    }
    emit_close(&w->j, ']');
}

static remat_status put_data(session *s, const page *x, out *memory)
{
    writer w = {.s = s, .j = {.out = memory}, .page = x};
    open_writer(&w);
    emit_open(&w.j, NULL, '{');
    put_head(&w);
    remat_status status = put_ops(&w);
    put_stages(&w);
    put_tensors(&w);
    if (status == REMAT_OK) status = put_plans(&w);
    emit_close(&w.j, '}');
    close_writer(&w);
    return status;
}

/* What HTML could obey, and what a reader cannot see. In JSON all of it stands in strings only,
 * except for the ends of lines. */
static bool is_escaped(uint32_t code)
{
    return code == '<' || code == '>' || code == '&' || (utf8_unsafe(code) && code != '\n');
}

static void put_escaped(out *to, const char *json, size_t n)
{
    const unsigned char *p = (const unsigned char *)json, *end = p + n, *plain = p;
    while (p < end) {
        uint32_t code;
        const size_t length = utf8_decode(p, &code);
        const bool broken = length == 0;
        if (broken || is_escaped(code)) {
            out_sink(to, plain, (size_t)(p - plain));
            out_print(to, "\\u%04x", broken ? 0xfffdu : (unsigned)code);
            plain = p + (broken ? 1 : length);
        }
        p += broken ? 1 : length;
    }
    out_sink(to, plain, (size_t)(p - plain));
}

remat_status page_write(session *s, const void *object, remat_format format, out *to)
{
    char *json = NULL;
    size_t n = 0;
    FILE *file = open_memstream(&json, &n);
    (void)format;
    if (!file) {
        to->error = errno;
        return REMAT_OK;
    }
    out memory;
    out_open(&memory, file, "memory", true);
    memory.size_unit = s->out->size_unit;
    const remat_status status = put_data(s, object, &memory);
    if (fclose(file) != 0 || memory.error) to->error = ENOMEM;
    if (status == REMAT_OK && !to->error) {
        out_sink(to, page_before, page_before_size);
        put_escaped(to, json, n);
        out_sink(to, page_after, page_after_size);
    }
    free(json);
    return status;
}
