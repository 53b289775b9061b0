/* cmd_compare.c: `remat compare`: strategies at one budget, side by side.
 *
 * One that does not apply gets a row with its reason. Ctrl-C ends it after the current plan, prints
 * what there is, and is exit code 130. */
#include <inttypes.h>
#include <stdlib.h>

#include "commands.h"
#include "heeds.h"
#include "rows.h"
#include "rows_svg.h"

static void compare_table(session *s, const reports *r)
{
    out *o = s->out;
    table t = {.out = o, .align = "lrrlrrlr"};
    rows_heads(&t, "strategy", "peak");
    for (size_t i = 0; i < r->n; i++) {
        const remat_summary *m = &r->items[i].summary;
        if (!r->items[i].plan) continue;
        table_cell(&t, PLAIN, "%s", m->strategy);
        table_cell(&t, PLAIN, "%s", out_size(o, m->peak_bytes).text);
        rows_judged(&t, &r->items[i]);
    }
    table_print(&t);
}

static void size_cell(table *t, int64_t bytes)
{
    if (bytes < 0) table_cell(t, DIM, "-");
    else table_cell(t, PLAIN, "%s", out_size(t->out, bytes).text);
}

/* --saved: what crosses from the forward to the backward pass. */
static void saved_table(session *s, const reports *r)
{
    static const char *const heads[] = {"strategy", "saved",     "crossing", "traffic",
                                        "peak",     "run again", "overhead", "seconds"};
    table t = {.out = s->out, .align = "lrrrrrrr"};
    for (size_t i = 0; i < LEN(heads); i++) table_cell(&t, BOLD, "%s", heads[i]);
    for (size_t i = 0; i < r->n; i++) {
        const remat_summary *m = &r->items[i].summary;
        if (!r->items[i].plan) continue;
        table_cell(&t, PLAIN, "%s", m->strategy);
        size_cell(&t, m->saved_bytes);
        size_cell(&t, m->cut_capacity);
        size_cell(&t, m->traffic_bytes);
        size_cell(&t, m->peak_bytes);
        table_cell(&t, PLAIN, "%" PRIu32, m->recomputed_ops);
        table_cell(&t, PLAIN, "+%s", human_percent(report_overhead(m)).text);
        table_cell(&t, PLAIN, "%.4f", r->items[i].seconds);
    }
    table_print(&t);
}

static int compare_all(session *s, const names *x, int64_t budget, reports *r)
{
    s->bar.parts = (uint32_t)x->n;
    for (; s->bar.part < x->n && !session_interrupted(); s->bar.part++)
        TRY(report_make(s, x->items[s->bar.part], &budget, 1, r));
    return REMAT_OK;
}

static void compare_show(session *s, int64_t budget, bool saved, const reports *r)
{
    char after[160];
    amount shown = {": none"};
    if (budget == REMAT_BUDGET_MIN) shown = (amount){": the least of each"};
    if (budget >= 0) shown = out_exact(s->out, budget);
    snprintf(after, sizeof after, "  keep-all peak %s  budget%s%s",
             out_size(s->out, s->info.keep_all_peak_bytes).text, budget >= 0 ? " " : "",
             shown.text);
    bool any = false;
    for (size_t i = 0; i < r->n; i++) any |= r->items[i].plan != NULL;
    out_title(s->out, session_name(s), after);
    if (any) out_print(s->out, "\n");
    if (any && saved) saved_table(s, r);
    else if (any) compare_table(s, r);
    rows_refused(s, r);
}

int cmd_compare(session *s)
{
    const args *a = s->args;
    const char *list = a->text[FLAG_STRATEGY];
    const bool saved = a->text[FLAG_SAVED] != NULL;
    int64_t budget;
    reports r = {0};
    if (saved && !list) list = "keep-all,save-inputs,save-layers,mincut";
    if (!a->text[FLAG_BUDGET] && !saved)
        return out_fail(s->out, REMAT_E_USAGE, "compare", "--budget",
                        "is needed, for example --budget 50%%");
    if (list) TRY(session_strategies(s, list));
    TRY(heeds_check(s, list));
    TRY(session_read(s, a->operands[0], NULL, NULL));
    TRY(session_budget(s, "--budget", a->text[FLAG_BUDGET], &budget));

    names strategies = names_of(list, true);
    session_catch(s);
    int status = compare_all(s, &strategies, budget, &r);
    session_release(s);
    rows_share_bound(&r);
    if (!status) status = compare_svg(s, &r);
    const bool told = session_svg_is_output(s); /* the picture is the output */
    if (!status && !told && rows_for_machines(s)) rows_print(s, &r);
    else if (!status && !told) compare_show(s, budget, saved, &r);
    if (!status) status = rows_interrupted(s);
    if (!status) status = rows_status(s, &r);
    names_free(&strategies);
    free(r.items);
    return status;
}
