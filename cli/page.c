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
 * A chain has the same data as a graph: its operations are the ops, and what they store are the
 * tensors (page_chain.c). So there is one page.
 * Invariant: the spans of a plan, the resident bytes and the workspace of the step sum up to the
 * memory of each step; the page checks it at the peak.
 * Cost: linear in what is written, and one lowering for each plan. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "page_data.h"
#include "utf8.h"

/* ---- numbering ---- */

void page_number(page_writer *w, uint32_t value, int64_t bytes)
{
    if (w->tensor[value] != REMAT_NONE) return;
    w->tensor[value] = w->n_tensors;
    w->value[w->n_tensors] = value;
    w->bytes[w->n_tensors++] = bytes;
}

static void open_writer(page_writer *w)
{
    const uint32_t n = w->s->chain ? page_chain_values(w->s) : page_graph_values(w->s);
    w->tensor = out_resize(NULL, (size_t)n + 1, sizeof *w->tensor);
    w->value = out_resize(NULL, (size_t)n + 1, sizeof *w->value);
    w->bytes = out_resize(NULL, (size_t)n + 1, sizeof *w->bytes);
    for (uint32_t i = 0; i < n; i++) w->tensor[i] = REMAT_NONE;
}

static void close_writer(page_writer *w)
{
    free(w->tensor);
    free(w->value);
    free(w->bytes);
}

/* ---- columns ---- */

void page_column(page_writer *w, const char *key, uint32_t n,
                 int64_t of(const page_writer *w, uint32_t i))
{
    emit_open(&w->j, key, '[');
    for (uint32_t i = 0; i < n; i++) emit_int(&w->j, NULL, of(w, i));
    emit_close(&w->j, ']');
}

int64_t page_tensor_value(const page_writer *w, uint32_t tensor) { return w->value[tensor]; }
int64_t page_tensor_bytes(const page_writer *w, uint32_t tensor) { return w->bytes[tensor]; }

/* ---- plans ---- */

/* Columns: the tensor, how many steps later than the one before it is made, how many steps it
 * lives. */
static void put_spans(page_writer *w, const page_plan *p)
{
    uint32_t n;
    page_life *list = w->s->chain ? page_chain_lives(w->s, p, &n) : page_graph_lives(w->s, p, &n);
    emit_open(&w->j, "spans", '{');
    emit_open(&w->j, "tensor", '[');
    for (uint32_t i = 0; i < n; i++) emit_int(&w->j, NULL, w->tensor[list[i].value]);
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

static remat_status put_plans(page_writer *w)
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

static void put_head(page_writer *w)
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
    emit_text(&w->j, "kind", s->chain ? "chain" : "graph");
    emit_text(&w->j, "name", session_name(s));
    emit_text(&w->j, "digest", session_digest(s));
    emit_text(&w->j, "cost_model", session_cost_model(s));
    emit_text(&w->j, "cost_unit", session_cost_unit(s));
    emit_text(&w->j, "size_unit", s->out->size_unit); /* null: bytes */
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
    page_writer w = {.s = s, .j = {.out = memory}, .page = x};
    open_writer(&w);
    emit_open(&w.j, NULL, '{');
    put_head(&w);
    remat_status status = s->chain ? page_chain_put(&w) : page_graph_put(&w);
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
