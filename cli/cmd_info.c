/* cmd_info.c: `remat info`: the first look at a file. For a graph: counts, the memory of keep-all over its steps, and what
 * is in memory at the peak; for a chain its stages; for a plan its summary.
 *
 * What is live at the peak comes from the lowered keep-all schedule: registers are allocated and freed up to the peak's
 * compute statement; those left are the storages in memory there. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "commands.h"
#include "report.h"

enum { LARGEST = 10 };

typedef struct held {
    uint32_t value;
    int64_t bytes;
} held;

static int by_size(const void *left, const void *right)
{
    const held *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
    return (a->value > b->value) - (a->value < b->value);
}

static void info_json(session *s)
{
    const remat_info *i = &s->info;
    emitter j = {.out = s->out};
    emit_open(&j, NULL, '{');
    emit_int(&j, "ops", i->ops);
    emit_int(&j, "values", i->values);
    emit_int(&j, "storages", i->storages);
    emit_int(&j, "views", i->views);
    emit_int(&j, "multi_output", i->multi_output);
    emit_int(&j, "pinned", i->pinned);
    emit_int(&j, "dead", i->dead);
    emit_int(&j, "resident_bytes", i->resident_bytes);
    emit_int(&j, "keep_all_peak_bytes", i->keep_all_peak_bytes);
    emit_int(&j, "keep_all_peak_step", i->keep_all_peak_step);
    emit_int(&j, "keep_all_cost", i->keep_all_cost);
    emit_int(&j, "need_bytes", i->need_bytes);
    emit_int(&j, "cut_values", i->cut_values);
    emit_text(&j, "digest", remat_graph_digest(s->graph));
    emit_close(&j, '}');
}

static void title(out *o, const char *before, const char *name, const char *digest)
{
    out_print(o, "%s%s%s%s%s%s%s%s\n", before, out_style(o, BOLD), out_clean(o, name, 36).text, out_style(o, PLAIN),
              *digest ? "  " : "", out_style(o, DIM), out_clean(o, digest, 24).text, out_style(o, PLAIN));
}

static void info_counts(session *s)
{
    const remat_info *i = &s->info;
    out *o = s->out;
    table t = {.out = o, .align = "lrL"};
    const char *need_op = i->need_op == REMAT_NONE ? NULL : remat_graph_op_name(s->graph, i->need_op);
    title(o, "", remat_graph_name(s->graph), remat_graph_digest(s->graph));
    out_print(o, "\n");
    table_cell(&t, PLAIN, "ops");
    table_cell(&t, PLAIN, "%" PRIu32, i->ops);
    table_cell(&t, PLAIN, "%" PRIu32 " views, %" PRIu32 " multi-output, %" PRIu32 " pinned, %" PRIu32 " dead", i->views,
               i->multi_output, i->pinned, i->dead);
    table_cell(&t, PLAIN, "values");
    table_cell(&t, PLAIN, "%" PRIu32, i->values);
    table_cell(&t, PLAIN, "in %" PRIu32 " storages; %" PRIu32 " cut values", i->storages, i->cut_values);
    table_cell(&t, PLAIN, "resident");
    table_cell(&t, PLAIN, "%s", human_bytes(i->resident_bytes).text);
    table_cell(&t, PLAIN, "%" PRId64 " bytes that are always there", i->resident_bytes);
    table_cell(&t, PLAIN, "keep-all peak");
    table_cell(&t, BOLD, "%s", human_bytes(i->keep_all_peak_bytes).text);
    table_cell(&t, PLAIN, "%" PRId64 " bytes", i->keep_all_peak_bytes);
    table_cell(&t, PLAIN, "needed at least");
    table_cell(&t, PLAIN, "%s", human_bytes(i->need_bytes).text);
    table_cell(&t, PLAIN, "%" PRId64 " bytes%s%s", i->need_bytes, need_op ? ", forced by " : "",
               need_op ? out_clean(o, need_op, 40).text : "");
    table_cell(&t, PLAIN, "keep-all cost");
    table_cell(&t, PLAIN, "%s", human_cost(i->keep_all_cost, remat_graph_cost_unit(s->graph)).text);
    table_cell(&t, PLAIN, "costs: %s", out_clean(o, remat_graph_cost_model(s->graph), 40).text);
    table_print(&t);
}

static void peak_row(table *t, const char *value, const char *producer, int64_t bytes, int64_t peak)
{
    table_cell(t, PLAIN, "%s", out_clean(t->out, value, 64).text);
    table_cell(t, PLAIN, "%s", out_clean(t->out, producer, 28).text);
    table_cell(t, PLAIN, "%s", human_bytes(bytes).text);
    table_cell(t, PLAIN, "%" PRId64, bytes);
    table_cell(t, PLAIN, "%s", human_percent(share_of(bytes, peak)).text);
}

static void largest_at(session *s, const remat_program *program, size_t peak_step, int64_t peak_bytes)
{
    size_t n_statements, n = 0, n_regs = 0;
    int64_t workspace = 0, rest = 0;
    const remat_statement *statement = remat_program_statements(program, &n_statements);
    for (size_t i = 0; i < n_statements; i++)
        if (statement[i].kind == REMAT_ALLOCATE && statement[i].reg >= n_regs) n_regs = (size_t)statement[i].reg + 1;
    held *live = out_resize(NULL, n_regs + 1, sizeof *live);
    for (size_t i = 0; i < n_regs; i++) live[i] = (held){0, -1};
    for (size_t i = 0; i < n_statements; i++) {
        const remat_statement *at = &statement[i];
        if (at->kind == REMAT_ALLOCATE) live[at->reg] = (held){at->value, at->bytes};
        else if (at->kind == REMAT_DEALLOCATE) live[at->reg].bytes = -1;
        else if (at->step_index == peak_step) {
            workspace = at->bytes;
            break;
        }
    }
    for (size_t i = 0; i < n_regs; i++)
        if (live[i].bytes >= 0) live[n++] = live[i];
    if (n > 1) qsort(live, n, sizeof *live, by_size);

    table t = {.out = s->out, .align = "LLrrr"};
    static const char *const heads[] = {"live at the peak", "made by", "size", "bytes", "of peak"};
    out_print(s->out, "\n");
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) table_cell(&t, BOLD, "%s", heads[i]);
    peak_row(&t, "(resident)", "", s->info.resident_bytes, peak_bytes);
    if (workspace > 0) peak_row(&t, "(workspace)", "", workspace, peak_bytes);
    for (size_t i = 0; i < n && i < LARGEST; i++) {
        const int64_t op = remat_graph_value_get(s->original, live[i].value, REMAT_VALUE_PRODUCER);
        peak_row(&t, remat_graph_value_name(s->original, live[i].value),
                 op < 0 ? "" : remat_graph_op_target(s->original, (uint32_t)op), live[i].bytes, peak_bytes);
    }
    for (size_t i = LARGEST; i < n; i++) rest += live[i].bytes;
    if (n > LARGEST) {
        char others[40];
        snprintf(others, sizeof others, "(%zu others)", n - LARGEST);
        peak_row(&t, others, "", rest, peak_bytes);
    }
    table_print(&t);
    free(live);
}

static int info_graph(session *s, const remat_input *input)
{
    const remat_plan *plan;
    remat_program *program;
    timeline t;
    size_t n_steps;
    int status = session_read_graph(s, input, NULL);
    if (status) return status;
    if (s->out->json) {
        info_json(s);
        return REMAT_OK;
    }
    info_counts(s);
    CHECK(s, session_plan(s, "keep-all", REMAT_BUDGET_NONE, &plan));
    const remat_step *steps = remat_plan_steps(plan, &n_steps);
    if (n_steps == 0) return REMAT_OK;
    if ((status = timeline_make(s, steps, n_steps, &t))) return status;
    const chart c = {.title = "memory of keep-all",
                     .note = ", step by step",
                     .values = t.bytes,
                     .n_values = n_steps,
                     .span = n_steps,
                     .top = t.peak_bytes,
                     .base = s->info.resident_bytes,
                     .limit = -1,
                     .rows = 10,
                     .show = human_bytes};
    const char *op = steps[t.peak_step].kind == REMAT_RUN ? remat_graph_op_name(s->original, steps[t.peak_step].index) : "";
    char mark[400];
    snprintf(mark, sizeof mark, "peak at step %zu of %zu: %s", t.peak_step, n_steps, out_clean(s->out, op, 30).text);
    chart_draw(s->out, &c);
    chart_mark(s->out, &c, t.peak_step, mark);
    const remat_status lowered = remat_lower(s->ctx, s->graph, steps, n_steps, &program);
    if (lowered == REMAT_OK) {
        largest_at(s, program, t.peak_step, t.peak_bytes);
        remat_program_free(program);
    }
    timeline_free(&t);
    CHECK(s, lowered);
    return REMAT_OK;
}

static int info_chain(session *s, const remat_input *input)
{
    static const char *const names[] = {"stage", "name", "a", "abar", "delta", "tf", "tb", "of", "ob", "keep"};
    enum { N_NUMBERS = 8 };
    remat_chain *chain;
    CHECK(s, remat_chain_read(s->ctx, input, &chain));
    const uint32_t n_stages = remat_chain_n_stages(chain);
    emitter j = {.out = s->out};
    table t = {.out = s->out, .align = "rLrrrrrrrr"};
    if (s->out->json) {
        emit_open(&j, NULL, '{');
        emit_text(&j, "name", remat_chain_name(chain));
        emit_int(&j, "n_stages", n_stages);
        emit_open(&j, "stages", '[');
    } else {
        title(s->out, "", remat_chain_name(chain), "");
        out_print(s->out, "a chain of %" PRIu32 " stages; 0 is the input, %" PRIu32 " the loss\n\n", n_stages, n_stages + 1);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) table_cell(&t, BOLD, "%s", names[i]);
    }
    for (uint32_t l = 0; l <= n_stages + 1; l++) {
        const remat_stage *stage = remat_chain_stage(chain, l);
        if (!stage) continue;
        const int64_t numbers[N_NUMBERS] = {stage->a,  stage->abar, stage->delta, stage->tf,
                                            stage->tb, stage->of,   stage->ob,    stage->keep};
        const char *name = stage->name && *stage->name ? stage->name : l == 0 ? "(input)" : l > n_stages ? "(loss)" : "";
        if (s->out->json) {
            emit_open(&j, NULL, '{');
            emit_text(&j, "name", stage->name ? stage->name : "");
            for (int i = 0; i < N_NUMBERS; i++) emit_int(&j, names[i + 2], numbers[i]);
            emit_close(&j, '}');
        } else {
            table_cell(&t, PLAIN, "%" PRIu32, l);
            table_cell(&t, PLAIN, "%s", out_clean(s->out, name, 40).text);
            for (int i = 0; i < N_NUMBERS; i++) table_cell(&t, PLAIN, "%" PRId64, numbers[i]);
        }
    }
    if (s->out->json) emit_close(&j, ']'), emit_close(&j, '}');
    else table_print(&t);
    remat_chain_free(chain);
    return REMAT_OK;
}

static int info_plan(session *s, const remat_input *input)
{
    remat_plan *plan;
    CHECK(s, remat_plan_read(s->ctx, input, &plan));
    report r = {.summary = *remat_plan_summary(plan), .plan = plan, .seconds = -1, .path = s->args->operands[0]};
    if (s->out->json) {
        emitter j = {.out = s->out};
        report_json(&j, &r);
    } else {
        title(s->out, "a plan for ", r.summary.graph, r.summary.digest);
        static const char *const names[] = {"--dce", "--fold-identity", "--no-alias", "--replay-random"};
        if (r.summary.flags) out_print(s->out, "made with");
        for (unsigned i = 0; i < 4; i++)
            if (r.summary.flags >> i & 1) out_print(s->out, " %s", names[i]);
        out_print(s->out, r.summary.flags ? "\n\n" : "\n");
        report_table(s->out, &r);
        out_print(s->out, "\nThese are the file's own numbers: remat verify GRAPH %s checks them.\n",
                  out_clean(s->out, r.path, 40).text);
    }
    remat_plan_free(plan);
    return REMAT_OK;
}

int cmd_info(session *s)
{
    remat_input *input;
    int status = session_input(s, s->args->operands[0], &input);
    if (status) return status;
    switch (remat_input_kind(input)) {
    case REMAT_KIND_CHAIN: status = info_chain(s, input); break;
    case REMAT_KIND_PLAN: status = info_plan(s, input); break;
    default: status = info_graph(s, input); break;
    }
    remat_input_free(input);
    return status;
}
