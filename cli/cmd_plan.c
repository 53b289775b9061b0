/* cmd_plan.c: `remat plan`: make one plan, write it, and show what it changes.
 *
 * The plan file goes to -o; the summary goes to stdout, or to stderr when the plan itself takes stdout (`-o -`). A plan that
 * misses the budget is written and shown too; the exit code and one line on stderr say so. Both timelines share one scale
 * in bytes and in steps, so that the picture compares. */
#include <string.h>

#include "chart.h"
#include "commands.h"
#include "report.h"

static remat_status write_plan(session *s, const void *plan, remat_format format, out *to)
{
    return remat_plan_write(s->ctx, plan, format, out_sink, to);
}

static void draw(out *o, const timeline *t, const timeline *widest, int64_t resident, int64_t top, int64_t budget, int rows,
                 const char *title)
{
    char note[40], text[120];
    snprintf(note, sizeof note, ", %zu steps", t->n_steps);
    const chart c = {.title = title,
                     .note = note,
                     .values = t->bytes,
                     .n_values = t->n_steps,
                     .span = widest->n_steps,
                     .top = top,
                     .base = resident,
                     .limit = budget,
                     .rows = rows,
                     .show = human_bytes};
    chart_draw(o, &c);
    if (t->n_steps > 0) {
        snprintf(text, sizeof text, "peak %s at step %zu", human_bytes(t->peak_bytes).text, t->peak_step);
        chart_mark(o, &c, t->peak_step, text);
    }
}

static int show_timelines(session *s, out *o, const report *r, int64_t budget)
{
    const remat_plan *keep_all;
    size_t n_before, n_after;
    timeline before, after;
    CHECK(s, session_plan(s, "keep-all", REMAT_BUDGET_NONE, &keep_all));
    const remat_step *steps_before = remat_plan_steps(keep_all, &n_before), *steps_after = remat_plan_steps(r->plan, &n_after);
    int status = timeline_make(s, steps_before, n_before, &before);
    if (status) return status;
    status = timeline_make(s, steps_after, n_after, &after);
    if (!status) {
        const timeline *widest = n_before > n_after ? &before : &after;
        const int64_t top = before.peak_bytes > after.peak_bytes ? before.peak_bytes : after.peak_bytes;
        const int64_t resident = s->info.resident_bytes;
        const bool same = n_before == n_after && memcmp(steps_before, steps_after, n_after * sizeof *steps_after) == 0;
        draw(o, &before, widest, resident, top, budget, same ? 10 : 7, "keep-all");
        if (!same) draw(o, &after, widest, resident, top, budget, 7, r->summary.strategy);
        timeline_free(&after);
    }
    timeline_free(&before);
    return status;
}

int cmd_plan(session *s)
{
    const args *a = s->args;
    const char *budget_text = a->text[FLAG_BUDGET], *path = a->text[FLAG_OUTPUT];
    const char *strategy = a->text[FLAG_STRATEGY] ? a->text[FLAG_STRATEGY] : budget_text ? DEFAULT_STRATEGY : "keep-all";
    const bool to_stdout = path && strcmp(path, "-") == 0;
    int64_t budget;
    report r;
    int status;
    if ((status = session_strategy(s, strategy))) return status;
    if ((status = session_graph(s, a->operands[0], NULL))) return status;
    if ((status = session_budget(s, budget_text, &budget))) return status;
    if ((status = report_make(s, strategy, budget, &r))) return status;
    if (r.status != REMAT_OK) return session_fail(s, r.status);

    out other, *o = s->out;
    if (to_stdout) out_open(&other, stderr, "standard error", o->json), o = &other;
    if (path) {
        if ((status = session_write(s, path, write_plan, r.plan, session_format(path, REMAT_JSON)))) return status;
        r.path = path;
    }
    if (o->json) {
        emitter j = {.out = o};
        report_json(&j, &r);
        return report_status(s, &r, o);
    }
    out_print(o, "%s%s%s", out_style(o, BOLD), out_clean(o, r.summary.graph, 40).text, out_style(o, PLAIN));
    if (budget >= 0) out_print(o, "  budget %s", human_exact(budget).text);
    static const char *const cut[] = {"", ", work limit reached", ", time limit reached", ", interrupted"};
    out_print(o, "  planned in %.2f s%s\n\n", r.seconds, (size_t)r.summary.stopped < 4 ? cut[r.summary.stopped] : "");
    report_table(o, &r);
    if ((status = show_timelines(s, o, &r, r.summary.budget_bytes))) return status;
    if (path && !to_stdout) out_print(o, "\nplan written to %s\n", out_clean(o, path, 64).text);
    return report_status(s, &r, o);
}
