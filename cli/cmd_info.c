/* cmd_info.c: `remat info`: the first look at a file. A graph shows its counts, the memory of
 * keep-all over its steps, and what is in memory at the peak. A chain shows its stages, a plan its
 * summary.
 *
 * What is live at the peak comes from the lowered keep-all schedule. Registers are allocated and
 * freed up to the peak's compute statement. Those left are the storages in memory there. */
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

/* The storages that outputs lie in, without resident ones: what is in memory besides at the end. */
static int64_t output_bytes(const session *s)
{
    const remat_graph *g = s->graph;
    uint8_t *counted = out_resize(NULL, (size_t)remat_graph_n_values(g) + 1, 1);
    uint32_t n;
    int64_t bytes = 0;
    const uint32_t *outputs = remat_graph_outputs(g, &n);
    memset(counted, 0, (size_t)remat_graph_n_values(g) + 1);
    for (uint32_t i = 0; i < n; i++) {
        const int64_t root = remat_graph_value_get(g, outputs[i], REMAT_VALUE_ROOT);
        const int64_t made_by = remat_graph_value_get(g, (uint32_t)root, REMAT_VALUE_PRODUCER);
        if (made_by == REMAT_ABSENT || counted[root]) continue;
        counted[root] = 1;
        bytes += remat_graph_value_get(g, (uint32_t)root, REMAT_VALUE_STORAGE);
    }
    free(counted);
    return bytes;
}

/* Leaves the object open. What a chain does not have is null. */
static void info_json(session *s, emitter *j)
{
    const remat_info *i = &s->info;
    const struct {
        const char *key;
        uint32_t count;
    } counts[] = {{"values", i->values}, {"storages", i->storages},
                  {"views", i->views},   {"multi_output", i->multi_output},
                  {"pinned", i->pinned}, {"dead", i->dead}};
    emit_open(j, NULL, '{');
    emit_int(j, "ops", i->ops);
    for (size_t k = 0; k < LEN(counts); k++)
        emit_int_or_null(j, counts[k].key, s->chain ? REMAT_ABSENT : counts[k].count);
    emit_int(j, "resident_bytes", i->resident_bytes);
    emit_int(j, "keep_all_peak_bytes", i->keep_all_peak_bytes);
    emit_int_or_null(j, "keep_all_peak_step", i->ops ? i->keep_all_peak_step : REMAT_ABSENT);
    emit_int(j, "keep_all_cost", i->keep_all_cost);
    emit_int(j, "need_bytes", i->need_bytes);
    emit_int_or_null(j, "cut_values", s->chain ? REMAT_ABSENT : i->cut_values);
    emit_text(j, "digest", session_digest(s));
    emit_text(j, "cost_model", session_cost_model(s)); /* from here on: more than the contract */
    emit_text(j, "cost_unit", session_cost_unit(s));
    if (s->chain) return;
    uint32_t n_outputs;
    remat_graph_outputs(s->graph, &n_outputs);
    emit_int(j, "outputs", n_outputs);
    emit_int(j, "output_bytes", output_bytes(s));
    emit_int(j, "pinned_random", report_random_pins(s));
}

static void info_title(out *o, const char *name, const char *digest)
{
    char after[80];
    snprintf(after, sizeof after, "%s%.70s", *digest ? "  " : "", out_clean(o, digest, 24).text);
    out_title(o, name, after);
    out_print(o, "\n");
}

/* Peak, need and cost, which graphs and chains share. */
static void size_rows(session *s, table *t)
{
    const remat_info *i = &s->info;
    out *o = s->out;
    const char *unit = o->size_unit ? o->size_unit : "bytes";
    amount buffer;
    uint32_t op = i->need_op;
    /* The graph's info has numbers of the prepared graph, the plan those of the file. */
    if (!s->chain && op != REMAT_NONE) op = remat_plan_summary(s->keep_all)->need_op;
    const char *place = session_place(s, op, &buffer);
    table_cell(t, PLAIN, "keep-all peak");
    table_cell(t, BOLD, "%s", out_size(o, i->keep_all_peak_bytes).text);
    table_cell(t, PLAIN, "%s", out_number(o, i->keep_all_peak_bytes, unit).text);
    table_cell(t, PLAIN, "needed at least");
    table_cell(t, PLAIN, "%s", out_size(o, i->need_bytes).text);
    table_cell(t, PLAIN, "%s, forced by %s", out_number(o, i->need_bytes, unit).text,
               out_clean(o, place, 40).text);
    table_cell(t, PLAIN, "keep-all cost");
    table_cell(t, PLAIN, "%s", out_cost(o, i->keep_all_cost, session_cost_unit(s)).text);
    table_cell(t, PLAIN, "costs: %s", out_clean(o, session_cost_model(s), 40).text);
}

/* How many ops run once only, and why. */
static void pinned_row(session *s, table *t)
{
    const uint32_t random = report_random_pins(s), others = s->info.pinned - random;
    char why[120] = "ops that run exactly once: none";
    size_t used = 0;
    if (others > 0)
        used += (size_t)snprintf(why, sizeof why, "%" PRIu32 " as the file says", others);
    if (random > 0)
        snprintf(why + used, sizeof why - used, "%s%" PRIu32 " random (--replay-random frees them)",
                 used ? ", " : "", random);
    table_cell(t, PLAIN, "pinned");
    table_cell(t, PLAIN, "%" PRIu32, s->info.pinned);
    table_cell(t, PLAIN, "%s", why);
}

static void outputs_row(session *s, table *t)
{
    uint32_t n;
    remat_graph_outputs(s->graph, &n);
    table_cell(t, PLAIN, "outputs");
    table_cell(t, PLAIN, "%" PRIu32, n);
    if (n == 0) table_cell(t, PLAIN, "nothing is kept to the end");
    else
        table_cell(t, PLAIN, "%s that are all in memory at the end",
                   out_size(s->out, output_bytes(s)).text);
}

static void info_counts(session *s)
{
    const remat_info *i = &s->info;
    out *o = s->out;
    table t = {.out = o, .align = "lrL"};
    info_title(o, session_name(s), session_digest(s));
    table_cell(&t, PLAIN, "ops");
    table_cell(&t, PLAIN, "%" PRIu32, i->ops);
    table_cell(&t, PLAIN, "%" PRIu32 " views, %" PRIu32 " multi-output, %" PRIu32 " dead", i->views,
               i->multi_output, i->dead);
    pinned_row(s, &t);
    table_cell(&t, PLAIN, "values");
    table_cell(&t, PLAIN, "%" PRIu32, i->values);
    table_cell(&t, PLAIN, "in %" PRIu32 " storages; %" PRIu32 " cut values", i->storages,
               i->cut_values);
    outputs_row(s, &t);
    table_cell(&t, PLAIN, "resident");
    table_cell(&t, PLAIN, "%s", out_size(o, i->resident_bytes).text);
    table_cell(&t, PLAIN, "%" PRId64 " bytes that are always there", i->resident_bytes);
    size_rows(s, &t);
    table_print(&t);
}

static void peak_row(table *t, const char *value, const char *producer, int64_t bytes, int64_t peak)
{
    table_cell(t, PLAIN, "%s", out_clean(t->out, value, 64).text);
    table_cell(t, PLAIN, "%s", out_clean(t->out, producer, 28).text);
    table_cell(t, PLAIN, "%s", out_size(t->out, bytes).text);
    table_cell(t, PLAIN, "%" PRId64, bytes);
    table_cell(t, PLAIN, "%s", human_percent(share_of(bytes, peak)).text);
}

/* What is held at the peak, largest first, to be freed; and the workspace there. */
static held *held_at_peak(const timeline *line, size_t *n, int64_t *workspace)
{
    size_t n_statements, n_regs = 0;
    const remat_statement *statement = remat_program_statements(line->program, &n_statements);
    for (size_t i = 0; i < n_statements; i++)
        if (statement[i].kind == REMAT_ALLOCATE && statement[i].reg >= n_regs)
            n_regs = (size_t)statement[i].reg + 1;
    held *live = out_resize(NULL, n_regs + 1, sizeof *live);
    for (size_t i = 0; i < n_regs; i++) live[i] = (held){0, -1};
    for (size_t i = 0; i < n_statements; i++) {
        const remat_statement *at = &statement[i];
        if (at->kind == REMAT_ALLOCATE || at->kind == REMAT_REUSE)
            live[at->reg] = (held){at->value, at->bytes};
        else if (at->kind == REMAT_DEALLOCATE) live[at->reg].bytes = -1;
        else if (at->step_index == line->peak_step) {
            *workspace = at->bytes;
            break;
        }
    }
    *n = 0;
    for (size_t i = 0; i < n_regs; i++)
        if (live[i].bytes >= 0) live[(*n)++] = live[i];
    if (*n > 1) qsort(live, *n, sizeof *live, by_size);
    return live;
}

static void largest_at_peak(session *s, const timeline *line)
{
    size_t n = 0;
    int64_t workspace = 0, rest = 0;
    const int64_t peak_bytes = line->peak_bytes;
    amount buffer;
    held *live = held_at_peak(line, &n, &workspace);
    table t = {.out = s->out, .align = "LLrrr"};
    static const char *const heads[] = {"live at the peak", "made by", "size", "bytes", "of peak"};
    out_print(s->out, "\n");
    for (size_t i = 0; i < LEN(heads); i++) table_cell(&t, BOLD, "%s", heads[i]);
    peak_row(&t, "(resident)", "", s->info.resident_bytes, peak_bytes);
    if (workspace > 0) peak_row(&t, "(workspace)", "", workspace, peak_bytes);
    for (size_t i = 0; i < n && i < LARGEST; i++) {
        const int64_t op = remat_graph_value_get(s->original, live[i].value, REMAT_VALUE_PRODUCER);
        peak_row(&t, session_value(s, live[i].value, &buffer),
                 op < 0 ? "" : remat_graph_op_target(s->original, (uint32_t)op), live[i].bytes,
                 peak_bytes);
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

static int draw_keep_all(session *s)
{
    timeline t;
    if (s->info.ops == 0) return REMAT_OK;
    const int status = timeline_make(s, s->keep_all, &t);
    if (status) return status;
    const chart c = {.title = "memory of keep-all",
                     .note = ", step by step",
                     .values = t.bytes,
                     .n_values = t.n_steps,
                     .span = t.n_steps,
                     .top = t.peak_bytes,
                     .base = s->info.resident_bytes,
                     .limit = -1,
                     .rows = 10,
                     .show = out_size};
    size_t n_steps;
    amount buffer;
    char mark[400];
    const remat_step *at = &remat_plan_steps(s->keep_all, &n_steps)[t.peak_step];
    snprintf(mark, sizeof mark, "peak at step %zu of %zu: %s%s", t.peak_step, n_steps,
             at->kind == REMAT_B ? "backward of " : "",
             out_clean(s->out, session_op(s, at->index, &buffer), 30).text);
    chart_draw(s->out, &c);
    chart_mark(s->out, &c, t.peak_step, mark);
    if (!s->chain) largest_at_peak(s, &t);
    timeline_free(&t);
    return REMAT_OK;
}

/* ---- classes: --classes ---- */

static void rules_json(session *s, const remat_recompute_rule *rules)
{
    emitter j = {.out = s->out};
    info_json(s, &j);
    emit_open(&j, "classes", '[');
    for (uint32_t op = 0; op < remat_graph_n_ops(s->graph); op++) {
        emit_open(&j, NULL, '{');
        emit_text(&j, "name", remat_graph_op_name(s->graph, op));
        emit_text(&j, "op", remat_graph_op_target(s->graph, op));
        emit_text(&j, "class", remat_class_name(rules[op].op_class));
        emit_bool(&j, "in_forward", rules[op].in_forward);
        emit_bool(&j, "banned", rules[op].ban != REMAT_BAN_NONE);
        emit_text(&j, "reason",
                  rules[op].ban == REMAT_BAN_NONE ? NULL : remat_ban_reason(rules[op].ban));
        emit_close(&j, '}');
    }
    emit_close(&j, ']');
    emit_close(&j, '}');
}

typedef struct kind_of_op {
    const char *target;
    remat_recompute_rule rule;
    uint32_t first, n; /* ops */
} kind_of_op;

static int by_kind(const void *left, const void *right)
{
    const kind_of_op *a = left, *b = right;
    const int order = strcmp(a->target, b->target);
    if (order) return order;
    if (a->rule.in_forward != b->rule.in_forward) return a->rule.in_forward ? -1 : 1;
    if (a->rule.ban != b->rule.ban) return a->rule.ban < b->rule.ban ? -1 : 1;
    return (a->rule.op_class > b->rule.op_class) - (a->rule.op_class < b->rule.op_class);
}

static int by_place(const void *left, const void *right)
{
    const kind_of_op *a = left, *b = right;
    return (a->first > b->first) - (a->first < b->first);
}

/* Ops of one name and one rule are one kind. In the order of first ops, to be freed. */
static kind_of_op *find_kinds(const session *s, const remat_recompute_rule *rules, size_t *n_found)
{
    const uint32_t n = remat_graph_n_ops(s->graph);
    kind_of_op *kinds = out_resize(NULL, (size_t)n + 1, sizeof *kinds);
    size_t n_kinds = 0;
    for (uint32_t op = 0; op < n; op++)
        kinds[op] = (kind_of_op){remat_graph_op_target(s->graph, op), rules[op], op, 1};
    qsort(kinds, n, sizeof *kinds, by_kind);
    for (uint32_t i = 0; i < n; i++) {
        kind_of_op *last = n_kinds ? &kinds[n_kinds - 1] : NULL;
        if (!last || by_kind(last, &kinds[i]) != 0) {
            kinds[n_kinds++] = kinds[i];
            continue;
        }
        last->n++;
        if (kinds[i].first < last->first) last->first = kinds[i].first;
    }
    qsort(kinds, n_kinds, sizeof *kinds, by_place);
    *n_found = n_kinds;
    return kinds;
}

static void rules_table(session *s, const remat_recompute_rule *rules)
{
    size_t n_kinds;
    kind_of_op *kinds = find_kinds(s, rules, &n_kinds);
    table t = {.out = s->out, .align = "LrllL"};
    static const char *const heads[] = {"op", "ops", "class", "may run again", "why not"};
    for (size_t i = 0; i < LEN(heads); i++) table_cell(&t, BOLD, "%s", heads[i]);
    for (size_t i = 0; i < n_kinds; i++) {
        const remat_recompute_rule *rule = &kinds[i].rule;
        table_cell(&t, PLAIN, "%s", out_clean(s->out, kinds[i].target, 50).text);
        table_cell(&t, PLAIN, "%" PRIu32, kinds[i].n);
        table_cell(&t, PLAIN, "%s", remat_class_name(rule->op_class));
        if (!rule->in_forward) table_cell(&t, DIM, "-");
        else
            table_cell(&t, rule->ban == REMAT_BAN_NONE ? GOOD : PLAIN, "%s",
                       rule->ban == REMAT_BAN_NONE ? "yes" : "no");
        table_cell(&t, PLAIN, "%s",
                   rule->in_forward ? remat_ban_reason(rule->ban) : "backward pass");
    }
    table_print(&t);
    free(kinds);
}

static int info_classes(session *s)
{
    remat_recompute_rule *rules =
        out_resize(NULL, (size_t)remat_graph_n_ops(s->graph) + 1, sizeof *rules);
    const remat_status status = remat_graph_recompute_rules(s->ctx, s->graph, rules);
    if (status == REMAT_OK && s->out->json) rules_json(s, rules);
    else if (status == REMAT_OK) rules_table(s, rules);
    free(rules);
    return status == REMAT_OK ? REMAT_OK : session_fail(s, status);
}

static int info_graph(session *s)
{
    emitter j = {.out = s->out};
    if (s->args->text[FLAG_CLASSES]) return info_classes(s);
    if (s->out->json) {
        info_json(s, &j);
        emit_close(&j, '}');
        return REMAT_OK;
    }
    const int status = session_keep_all(s);
    if (status) return status;
    info_counts(s);
    return draw_keep_all(s);
}

static const char *const stage_columns[] = {"stage", "name", "a",  "abar", "delta",
                                            "keep",  "of",   "ob", "tf",   "tb"};
enum { STAGE_NUMBERS = 8 };

static void stage_numbers(const remat_stage *x, int64_t numbers[STAGE_NUMBERS])
{
    const int64_t all[STAGE_NUMBERS] = {x->a,  x->abar, x->delta, x->keep,
                                        x->of, x->ob,   x->tf,    x->tb};
    memcpy(numbers, all, sizeof all);
}

static void stages_json(session *s)
{
    emitter j = {.out = s->out};
    int64_t numbers[STAGE_NUMBERS];
    const remat_stage *stage;
    info_json(s, &j);
    emit_text(&j, "name", remat_chain_name(s->chain));
    emit_text(&j, "size_unit", remat_chain_size_unit(s->chain));
    emit_text(&j, "cost_unit", remat_chain_cost_unit(s->chain));
    emit_open(&j, "stages", '[');
    for (uint32_t l = 0; (stage = remat_chain_stage(s->chain, l)); l++) {
        stage_numbers(stage, numbers);
        emit_open(&j, NULL, '{');
        emit_text(&j, "name", stage->name);
        for (int i = 0; i < STAGE_NUMBERS; i++) emit_int(&j, stage_columns[i + 2], numbers[i]);
        emit_close(&j, '}');
    }
    emit_close(&j, ']');
    emit_close(&j, '}');
}

static int info_chain(session *s)
{
    if (s->out->json) {
        stages_json(s);
        return REMAT_OK;
    }
    const uint32_t last = s->info.ops;
    int64_t numbers[STAGE_NUMBERS];
    const remat_stage *stage;
    table sums = {.out = s->out, .align = "lrL"}, t = {.out = s->out, .align = "rLrrrrrrrr"};
    info_title(s->out, session_name(s), session_digest(s));
    table_cell(&sums, PLAIN, "stages");
    table_cell(&sums, PLAIN, "%" PRIu32, last - 1);
    table_cell(&sums, PLAIN, "and the loss, stage %" PRIu32 "; 0 is the input", last);
    size_rows(s, &sums);
    table_print(&sums);
    const int status = draw_keep_all(s);
    if (status) return status;
    out_print(s->out, "\n");
    for (size_t i = 0; i < LEN(stage_columns); i++) table_cell(&t, BOLD, "%s", stage_columns[i]);
    for (uint32_t l = 0; (stage = remat_chain_stage(s->chain, l)); l++) {
        const char *name = stage->name;
        if (!*name && l == 0) name = "(input)";
        if (!*name && l == last) name = "(loss)";
        stage_numbers(stage, numbers);
        table_cell(&t, PLAIN, "%" PRIu32, l);
        table_cell(&t, PLAIN, "%s", out_clean(s->out, name, 40).text);
        for (int i = 0; i < STAGE_NUMBERS; i++) table_cell(&t, PLAIN, "%" PRId64, numbers[i]);
    }
    table_print(&t);
    return REMAT_OK;
}

static int info_plan(session *s, const remat_plan *plan)
{
    const char *source = s->args->operands[0];
    out *o = s->out;
    const report r = {
        .summary = *remat_plan_summary(plan), .plan = plan, .seconds = -1, .path = source};
    if (r.summary.kind == REMAT_KIND_CHAIN) o->size_unit = ""; /* the plan does not say */
    if (o->json) {
        emitter j = {.out = o};
        report_json(&j, s, &r);
        return REMAT_OK;
    }
    char name[300];
    snprintf(name, sizeof name, "a plan for %.250s", r.summary.graph);
    info_title(o, name, r.summary.digest);
    static const flag_id names[] = {FLAG_DCE,           FLAG_FOLD_IDENTITY, FLAG_NO_ALIAS,
                                    FLAG_REPLAY_RANDOM, FLAG_FUSE,          FLAG_INPLACE};
    if (r.summary.flags) out_print(o, "made with");
    for (unsigned i = 0; i < LEN(names); i++)
        if (r.summary.flags >> i & 1) out_print(o, " --%s", flags[names[i]].name);
    out_print(o, "%s", r.summary.flags ? "\n\n" : "");
    report_table(o, &r);
    out_print(o, "\nThese are the file's own numbers: remat verify GRAPH %s checks them.\n",
              out_clean(o, source, 40).text);
    return REMAT_OK;
}

int cmd_info(session *s)
{
    const char *source = s->args->operands[0];
    remat_input *input;
    int status = session_input(s, source, &input);
    if (status) return status;
    const remat_plan *plan = NULL;
    session_busy(s);
    if (remat_input_kind(input) == REMAT_KIND_PLAN) status = session_input_plan(s, input, &plan);
    else status = session_read_input(s, source, input, NULL, NULL);
    remat_input_free(input);
    if (!status && !plan) status = session_measure(s);
    session_idle(s);
    if (status) return status;
    const bool is_of_graphs = s->args->text[FLAG_CLASSES];
    if (plan && (is_of_graphs || s->args->text[FLAG_CHAIN]))
        return out_fail(s->out, REMAT_E_USAGE, "info", is_of_graphs ? "--classes" : "--chain",
                        "is for graphs: this is a plan");
    if (s->chain && is_of_graphs)
        return out_fail(s->out, REMAT_E_USAGE, "info", "--classes",
                        "is for graphs: a chain has no ops");
    if (plan) return info_plan(s, plan);
    return s->chain ? info_chain(s) : info_graph(s);
}
