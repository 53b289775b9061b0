/* cmd_bound.c: `remat bound`: how cheap can a plan within this budget be? It prints a number that
 * no plan undercuts, and what that rests on. */
#include <inttypes.h>
#include <string.h>

#include "commands.h"
#include "report.h"

static const char *const rule_names[] = {"single readers", "fan-out", "regions", "side outputs",
                                         "holders"};

static double overhead_of(const remat_bound *b)
{
    return b->keep_all_cost > 0 ? (double)(b->cost - b->keep_all_cost) / (double)b->keep_all_cost
                                : 0;
}

static void bound_json(session *s, const remat_bound *b, double seconds)
{
    emitter j = {.out = s->out};
    amount buffer;
    emit_open(&j, NULL, '{');
    emit_text(&j, "graph", session_name(s));
    emit_int(&j, "budget_bytes", b->budget_bytes);
    emit_int(&j, "keep_all_peak_bytes", s->info.keep_all_peak_bytes);
    emit_int(&j, "need_bytes", b->need_bytes);
    emit_text(&j, "need_op", session_op(s, b->need_op, &buffer));
    emit_int_or_null(&j, "bound_cost", b->cost);
    emit_text(&j, "cost_unit", session_cost_unit(s));
    emit_int(&j, "keep_all_cost", b->keep_all_cost);
    if (b->cost < 0) emit_null(&j, "overhead");
    else emit_real(&j, "overhead", overhead_of(b));
    emit_text(&j, "bound_scope", b->scope);
    emit_text(&j, "bound_method", b->method);
    emit_open(&j, "rules", '[');
    for (unsigned i = 0; i < 4; i++)
        if (b->rules >> i & 1) emit_text(&j, NULL, rule_names[i]);
    emit_close(&j, ']');
    emit_text(&j, "outcome", b->status == REMAT_OK ? "unknown" : "infeasible");
    emit_real(&j, "seconds", seconds);
    emit_int_or_null(&j, "any_order_bound_cost", b->any_order_cost);
    emit_close(&j, '}');
}

static void bound_table(session *s, const remat_bound *b, double seconds)
{
    out *o = s->out;
    char after[80], rules[80] = "";
    size_t used = 0;
    snprintf(after, sizeof after, "  budget %s  bounded in %.2f s",
             out_exact(o, b->budget_bytes).text, seconds);
    out_title(o, session_name(s), after);
    out_print(o, "\n");
    for (unsigned i = 0; i < 4; i++)
        if (b->rules >> i & 1)
            used += (size_t)snprintf(rules + used, sizeof rules - used, "%s%s", used ? ", " : "; ",
                                     rule_names[i]);
    table t = {.out = o, .align = "lrL"};
    table_cell(&t, PLAIN, "keep-all cost");
    table_cell(&t, PLAIN, "%s", out_cost(o, b->keep_all_cost, session_cost_unit(s)).text);
    table_cell(&t, PLAIN, "costs: %s", out_clean(o, session_cost_model(s), 40).text);
    const bool any_order = strcmp(b->scope, "any-order") == 0;
    table_cell(&t, PLAIN, any_order ? "no plan below" : "no plan in this order below");
    table_cell(&t, BOLD, "%s", b->cost < 0 ? "-" : out_cost(o, b->cost, session_cost_unit(s)).text);
    table_cell(&t, PLAIN, "%s (%s%s)", b->scope, b->method, rules);
    if (!any_order && b->any_order_cost >= 0) {
        table_cell(&t, PLAIN, "no plan below");
        table_cell(&t, BOLD, "%s", out_cost(o, b->any_order_cost, session_cost_unit(s)).text);
        table_cell(&t, PLAIN, "any-order");
    }
    table_cell(&t, PLAIN, "overhead at least");
    table_cell(&t, BOLD, "%s", b->cost < 0 ? "-" : human_percent(overhead_of(b)).text);
    table_cell(&t, PLAIN, "%s",
               b->cost < 0 ? "nothing fits"
                           : out_number(o, b->cost - b->keep_all_cost, session_cost_unit(s)).text);
    table_cell(&t, PLAIN, "needed at least");
    table_cell(&t, PLAIN, "%s", out_size(o, b->need_bytes).text);
    amount buffer;
    table_cell(&t, PLAIN, "%s, forced by %s", out_number(o, b->need_bytes, "bytes").text,
               out_clean(o, session_place(s, b->need_op, &buffer), 40).text);
    table_print(&t);
}

/* The one line that exit code 10 owes to the reader. */
static void say_why(session *s, const remat_bound *b)
{
    char parts[400] = "";
    size_t used = 0;
    amount buffer;
    const bool any_order = strcmp(b->scope, "any-order") == 0;
    if (any_order) report_need_parts(s, b->need_bytes, parts, sizeof parts);
    for (uint32_t i = 0; i < b->n_need_values && !any_order && used < sizeof parts; i++)
        used += (size_t)snprintf(
            parts + used, sizeof parts - used, "%s %s %s", used ? "," : ":",
            out_clean(s->out, session_value(s, b->need_values[i], &buffer), 24).text,
            out_size(s->out,
                     remat_graph_value_get(s->original, b->need_values[i], REMAT_VALUE_STORAGE))
                .text);
    out_message(s->out, "no plan %sfits %s: %s needs %s%s",
                any_order ? "" : "in this order of first runs ",
                out_exact(s->out, b->budget_bytes).text, session_op_phrase(s, b->need_op).text,
                out_exact(s->out, b->need_bytes).text, parts);
}

int cmd_bound(session *s)
{
    const args *a = s->args;
    remat_bound bound = REMAT_BOUND_INIT;
    int64_t budget;
    if (!a->text[FLAG_BUDGET])
        return out_fail(s->out, REMAT_E_USAGE, "bound", "--budget",
                        "is missing: a bound is for a budget");
    if (strcmp(a->text[FLAG_BUDGET], "min") == 0)
        return out_fail(s->out, REMAT_E_USAGE, "bound", "--budget",
                        "'min' is what a strategy finds: give bytes or a percentage");
    TRY(session_read(s, a->operands[0], NULL, NULL));
    if (s->chain)
        return out_fail(
            s->out, REMAT_E_APPLIES, "bound", "",
            "a chain has no bound of its own: plan it with rotor, which is optimal in its model");
    TRY(session_budget(s, "--budget", a->text[FLAG_BUDGET], &budget));
    const double begin = seconds_now();
    session_busy(s);
    const remat_status status = remat_bound_find(s->ctx, s->graph, budget, &bound);
    session_idle(s);
    CHECK(s, status);
    const double seconds = seconds_now() - begin;
    if (s->out->json) bound_json(s, &bound, seconds);
    else bound_table(s, &bound, seconds);
    if (bound.status != REMAT_OK) say_why(s, &bound);
    return (int)bound.status;
}
