/* write.c: remat-graph, remat-chain, remat-plan and DOT files. Each object has a line of its own,
 * defaults are left out, keys have a fixed order. So equal content gives equal bytes. Cost: linear
 * in what is written. */
#include "graph/chain.h"
#include "graph/plan.h"
#include "import/formats.h"

#include <inttypes.h>
#include <string.h>

/* A JSON string, quotes included; bad UTF-8 is replaced. */
void rm_write_string(rm_out *out, const char *text)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + strlen(text);
    rm_out_bytes(out, "\"", 1);
    while (p < end) {
        const size_t n = rm_utf8_length(p, end);
        if (n == 0) rm_out_text(out, "\\ufffd");
        else if (*p == '"' || *p == '\\') rm_out_format(out, "\\%c", *p);
        else if (*p < 0x20) rm_out_format(out, "\\u%04x", *p);
        else rm_out_bytes(out, (const char *)p, n);
        p += n ? n : 1;
    }
    rm_out_bytes(out, "\"", 1);
}

static void member_int(rm_out *out, const char *key, int64_t x, int64_t absent)
{
    if (x != absent) rm_out_format(out, ",\"%s\":%" PRId64, key, x);
}

static void member_string(rm_out *out, const char *key, const char *text)
{
    if (!*text) return;
    rm_out_format(out, ",\"%s\":", key);
    rm_write_string(out, text);
}

static void member_extra(rm_out *out, const char *extra)
{
    if (!*extra) return;
    rm_out_text(out, ",");
    rm_out_text(out, extra);
}

static void indices(rm_out *out, const uint32_t *items, uint32_t n)
{
    rm_out_text(out, "[");
    for (uint32_t i = 0; i < n; i++) rm_out_format(out, "%s%" PRIu32, i ? "," : "", items[i]);
    rm_out_text(out, "]");
}

/* ---- remat-graph ---- */

static void write_value(rm_out *out, const remat_graph *g, uint32_t v)
{
    rm_out_text(out, v ? ",\n{\"name\":" : "\n{\"name\":");
    rm_write_string(out, rm_text(g, g->value_name[v]));
    member_int(out, "size", g->size[v], -1);
    if (g->alias[v] == REMAT_NONE) member_int(out, "storage", g->storage[v], g->size[v]);
    else member_int(out, "alias", g->alias[v], -1);
    if (g->value_kind[v] != REMAT_TEMPORARY)
        member_string(out, "kind", rm_value_kinds[g->value_kind[v]]);
    member_string(out, "dtype", rm_text(g, g->value_dtype[v]));
    const uint32_t begin = g->dims_begin[v], end = g->dims_begin[v + 1];
    if (begin < end || g->value_dtype[v]) {
        rm_out_text(out, ",\"shape\":[");
        for (uint32_t k = begin; k < end; k++)
            rm_out_format(out, "%s%" PRId64, k > begin ? "," : "", g->dims[k]);
        rm_out_text(out, "]");
    }
    member_extra(out, rm_text(g, g->value_extra[v]));
    rm_out_text(out, "}");
}

static void member_inplace(rm_out *out, const remat_graph *g, uint32_t op)
{
    uint32_t n = 0;
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++) {
        if (g->out_takes[k] == REMAT_NONE) continue;
        rm_out_text(out, n++ ? "," : ",\"inplace\":[");
        rm_out_format(out, "[%" PRIu32 ",%" PRIu32 "]", k - g->out_begin[op], g->out_takes[k]);
    }
    if (n) rm_out_text(out, "]");
}

static void write_op(rm_out *out, const remat_graph *g, uint32_t op)
{
    rm_out_text(out, op ? ",\n{\"name\":" : "\n{\"name\":");
    rm_write_string(out, rm_text(g, g->op_name[op]));
    member_string(out, "op", rm_text(g, g->op_target[op]));
    rm_out_text(out, ",\"in\":");
    indices(out, g->in + g->in_begin[op], g->in_begin[op + 1] - g->in_begin[op]);
    rm_out_text(out, ",\"out\":");
    indices(out, g->out + g->out_begin[op], g->out_begin[op + 1] - g->out_begin[op]);
    member_int(out, "cost", g->given_cost[op], REMAT_ABSENT);
    member_int(out, "flops", g->flops[op], REMAT_ABSENT);
    member_int(out, "workspace", g->workspace[op], 0);
    if (g->phase[op] != REMAT_PHASE_NONE) member_string(out, "phase", rm_phases[g->phase[op]]);
    if (g->op_class[op] != REMAT_CLASS_OTHER)
        member_string(out, "class", rm_classes[g->op_class[op]]);
    if (g->says_pinned[op]) rm_out_text(out, ",\"pinned\":true");
    if (g->replay[op]) rm_out_text(out, ",\"replay\":true");
    if (g->kernel[op] != REMAT_NONE) member_int(out, "kernel", g->kernel[op], REMAT_ABSENT);
    member_inplace(out, g, op);
    member_extra(out, rm_text(g, g->op_extra[op]));
    rm_out_text(out, "}");
}

void rm_write_graph(rm_out *out, const remat_graph *g)
{
    rm_out_text(out, "{\"format\":\"remat-graph\",\"version\":1,\"name\":");
    rm_write_string(out, rm_text(g, g->name));
    member_string(out, "cost_unit", rm_text(g, g->given_unit));
    member_extra(out, rm_text(g, g->extra));
    rm_out_text(out, ",\n\"values\":[");
    for (uint32_t v = 0; v < g->n_values; v++) write_value(out, g, v);
    rm_out_text(out, "],\n\"nodes\":[");
    for (uint32_t op = 0; op < g->n_ops; op++) write_op(out, g, op);
    rm_out_text(out, "],\n\"outputs\":");
    indices(out, g->outputs, g->n_outputs);
    rm_out_text(out, "}\n");
}

/* ---- DOT ---- */

/* What a terminal would obey becomes '?', as everywhere. */
static void dot_string(rm_out *out, const char *text)
{
    rm_out_text(out, "\"");
    while (*text) {
        const size_t unsafe = rm_unsafe_length(text);
        if (*text == '"' || *text == '\\') rm_out_text(out, "\\");
        rm_out_bytes(out, unsafe ? "?" : text, 1);
        text += unsafe ? unsafe : 1;
    }
    rm_out_text(out, "\"");
}

/* A node, whose size is that of the storages the op makes, and an edge from each op whose outputs
 * it reads. `reader`: by op, 1 + the last op that read from it. */
static void dot_op(rm_out *out, const remat_graph *g, uint32_t op, uint32_t *reader)
{
    int64_t bytes = 0;
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        if (g->out_source[k] == REMAT_NONE) bytes += g->storage[g->out[k]];
    rm_out_format(out, "  %" PRIu32 " [label=", op); /* by index: names need not be unique */
    dot_string(out, rm_text(g, g->op_name[op]));
    rm_out_format(out, ", size=%" PRId64 ", cost=%" PRId64, bytes, g->cost[op]);
    if (g->phase[op] != REMAT_PHASE_NONE) rm_out_format(out, ", phase=%s", rm_phases[g->phase[op]]);
    rm_out_text(out, "];\n");
    for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
        const uint32_t from = g->producer[g->in[k]];
        if (from == REMAT_NONE || reader[from] == op + 1) continue;
        reader[from] = op + 1;
        rm_out_format(out, "  %" PRIu32 " -> %" PRIu32 ";\n", from, op);
    }
}

void rm_write_dot(rm_out *out, const remat_graph *g)
{
    uint32_t *reader = rm_scratch(out->ctx, g->n_ops, sizeof *reader);
    if (!reader) out->status = REMAT_E_MEMORY;
    rm_out_text(out, "digraph ");
    dot_string(out, rm_text(g, g->name));
    rm_out_text(out, " {\n");
    for (uint32_t op = 0; op < g->n_ops && reader; op++) dot_op(out, g, op, reader);
    rm_out_text(out, "}\n");
}

/* ---- remat-chain ---- */

void rm_write_chain(rm_out *out, const remat_chain *c)
{
    const remat_stage *input = &c->stages[0], *loss = &c->stages[c->n_stages + 1];
    rm_out_text(out, "{\"format\":\"remat-chain\",\"version\":1,\"name\":");
    rm_write_string(out, c->name);
    member_string(out, "size_unit", c->size_unit);
    member_string(out, "cost_unit", c->cost_unit);
    rm_out_format(out, ",\n\"input\":{\"a\":%" PRId64 ",\"delta\":%" PRId64 "},\n\"stages\":[",
                  input->a, input->delta);
    for (uint32_t i = 1; i <= c->n_stages; i++) {
        const remat_stage *s = &c->stages[i];
        rm_out_text(out, i > 1 ? ",\n{\"name\":" : "\n{\"name\":");
        rm_write_string(out, s->name);
        rm_out_format(out,
                      ",\"a\":%" PRId64 ",\"abar\":%" PRId64 ",\"delta\":%" PRId64
                      ",\"tf\":%" PRId64 ",\"tb\":%" PRId64,
                      s->a, s->abar, s->delta, s->tf, s->tb);
        member_int(out, "of", s->of, 0);
        member_int(out, "ob", s->ob, 0);
        member_int(out, "keep", s->keep, 0);
        rm_out_text(out, "}");
    }
    rm_out_format(out,
                  "],\n\"loss\":{\"abar\":%" PRId64 ",\"tf\":%" PRId64 ",\"tb\":%" PRId64
                  ",\"of\":%" PRId64 ",\"ob\":%" PRId64,
                  loss->abar, loss->tf, loss->tb, loss->of, loss->ob);
    member_int(out, "keep", loss->keep, 0);
    rm_out_text(out, "}}\n");
}

/* ---- remat-plan ---- */

static void write_steps(rm_out *out, const remat_plan *plan)
{
    rm_out_text(out, ",\n\"schedule\":[");
    for (size_t t = 0; t < plan->n_steps; t++) {
        const remat_step s = plan->steps[t];
        if (t > 0) rm_out_text(out, t % 20 ? "," : ",\n");
        if (s.kind == REMAT_RUN) rm_out_format(out, "%" PRIu32, s.index);
        else if (s.kind < REMAT_F_ALL)
            rm_out_format(out, "{\"%s\":%" PRIu32 "}",
                          s.kind == REMAT_OFFLOAD ? "offload" : "fetch", s.index);
        else
            rm_out_format(out, "[\"%s\",%" PRIu32 "]", rm_chain_operations[s.kind - REMAT_F_ALL],
                          s.index);
    }
    rm_out_text(out, "]");
}

static void write_certificate(rm_out *out, const rm_certificate *x)
{
    rm_out_text(out, ",\"certificate\":{");
    if (x->cost) rm_out_format(out, "\"cost\":%" PRId64 ",", x->cost);
    if (x->walls) rm_out_text(out, "\"walls\":true,");
    rm_out_format(out, "\"scale\":%" PRId64 ",\"prices\":[", x->scale);
    for (size_t i = 0; i < x->n_prices; i++)
        rm_out_format(out, "%s[%" PRIu32 ",%" PRId64 "]", i ? "," : "", x->prices[i].op,
                      x->prices[i].price);
    rm_out_text(out, "],\"heirs\":[");
    for (size_t i = 0; i < x->n_heirs; i++)
        rm_out_format(out, "%s[%" PRIu32 ",%" PRIu32 "]", i ? "," : "", x->heirs[i].value,
                      x->heirs[i].heir);
    rm_out_text(out, "]}");
}

static void write_placement(rm_out *out, const rm_plan_placement *x)
{
    rm_out_format(
        out, ",\n\"placement\":{\"align\":%" PRId64 ",\"arena_bytes\":%" PRId64 ",\n\"storages\":[",
        x->align, x->arena_bytes);
    for (size_t i = 0; i < x->n_storages; i++)
        rm_out_format(
            out, "%s{\"value\":%" PRIu32 ",\"instance\":%" PRIu32 ",\"offset\":%" PRId64 "}",
            i ? ",\n" : "", x->offsets[i].index, x->offsets[i].instance, x->offsets[i].offset);
    rm_out_text(out, "],\n\"workspaces\":[");
    for (size_t i = x->n_storages; i < x->n_storages + x->n_workspaces; i++)
        rm_out_format(out, "%s{\"step\":%" PRIu32 ",\"offset\":%" PRId64 "}",
                      i > x->n_storages ? ",\n" : "", x->offsets[i].index, x->offsets[i].offset);
    rm_out_text(out, "]}");
}

/* What was asked: of which graph, within which budget, how. */
static void write_question(rm_out *out, const remat_plan *plan)
{
    const remat_summary *s = &plan->summary;
    rm_out_text(out, "\n\"graph\":{\"name\":");
    rm_write_string(out, s->graph);
    rm_out_text(out, ",\"digest\":");
    rm_write_string(out, s->digest);
    member_int(out, "n_ops", plan->graph_ops, REMAT_NONE);
    member_int(out, "n_values", plan->graph_values, REMAT_NONE);
    rm_out_text(out, "},\n\"budget_bytes\":");
    if (s->budget_bytes < 0) rm_out_text(out, "null");
    else rm_out_format(out, "%" PRId64, s->budget_bytes);
    member_string(out, "strategy", s->strategy);
    rm_out_format(out, ",\"options\":{\"seed\":%" PRId64, s->seed < 0 ? 0 : s->seed);
    for (const rm_flag_name *f = rm_flag_names; f->name; f++)
        if (f->flag != REMAT_INPLACE || s->flags & f->flag) /* older files do not have it */
            rm_out_format(out, ",\"%s\":%s", f->name, s->flags & f->flag ? "true" : "false");
    if (s->bandwidth > 0) member_int(out, "bandwidth", s->bandwidth, 0);
    if (s->align > 1) member_int(out, "align", s->align, 0);
    rm_out_text(out, "}");
    member_string(out, "cost_unit", s->cost_unit);
    member_string(out, "cost_model", s->cost_model);
}

/* Nothing where the cost is absent. scope: NULL if the name says it. */
static void write_bound(rm_out *out, const char *name, int64_t cost, const char *scope,
                        const char *method, const rm_certificate *certificate)
{
    if (cost == REMAT_ABSENT) return;
    rm_out_format(out, ",\"%s\":{\"cost\":%" PRId64, name, cost);
    if (scope) member_string(out, "scope", scope);
    member_string(out, "method", method);
    if (certificate->scale) write_certificate(out, certificate);
    rm_out_text(out, "}");
}

/* What came of it. */
static void write_answer(rm_out *out, const remat_plan *plan)
{
    const remat_summary *s = &plan->summary;
    rm_out_text(out, ",\n\"outcome\":");
    rm_write_string(out, rm_outcome_name(s->outcome));
    member_int(out, "peak_bytes", s->peak_bytes, REMAT_ABSENT);
    member_int(out, "peak_step", s->peak_step, REMAT_NONE);
    member_int(out, "cost", s->cost, REMAT_ABSENT);
    member_int(out, "keep_all_peak_bytes", s->keep_all_peak_bytes, REMAT_ABSENT);
    member_int(out, "keep_all_cost", s->keep_all_cost, REMAT_ABSENT);
    write_bound(out, "bound", s->bound_cost, s->bound_scope, s->bound_method,
                &plan->certificates.own_order);
    write_bound(out, "any_order_bound", s->any_order_cost, NULL, s->any_order_method,
                &plan->certificates.any_order);
    const bool within = plan->claimed_within < 0 ? s->within_budget : plan->claimed_within > 0;
    if (plan->claimed_within >= 0 || s->peak_bytes != REMAT_ABSENT || s->budget_bytes < 0)
        rm_out_format(out, ",\"within_budget\":%s", within ? "true" : "false");
}

void rm_write_plan(rm_out *out, const remat_plan *plan)
{
    const bool is_chain = plan->summary.kind == REMAT_KIND_CHAIN;
    rm_out_format(out,
                  "{\"format\":\"remat-plan\",\"version\":1,\"kind\":\"%s\",\"library\":\"%s\",",
                  is_chain ? "chain" : "graph", remat_version());
    write_question(out, plan);
    write_steps(out, plan);
    write_answer(out, plan);
    if (plan->placement.align) write_placement(out, &plan->placement);
    rm_out_text(out, "}\n");
}
