/* cmd_plan.c: `remat plan`: make one plan, write it, and show what it changes.
 *
 * The plan file goes to -o. The summary goes to stdout, or to stderr when the plan itself takes
 * stdout (`-o -`). A plan that misses the budget is written and shown too. The exit code and one
 * line on stderr say so. Both timelines have the same scale in bytes and in steps, so that the
 * picture compares. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "commands.h"
#include "heeds.h"
#include "plan_svg.h"
#include "report.h"

static remat_status write_plan(session *s, const void *plan, remat_format format, out *to)
{
    return remat_plan_write(s->ctx, plan, format, out_sink, to);
}

static remat_status write_program(session *s, const void *budget, remat_format format, out *to)
{
    (void)format;
    return remat_milp_write(s->ctx, s->graph, *(const int64_t *)budget, out_sink, to);
}

/* `scale` has what all timelines share. */
static void draw(out *o, const timeline *t, const chart *scale, const char *title)
{
    char note[40], text[120];
    chart c = *scale;
    snprintf(note, sizeof note, ", %zu steps", t->n_steps);
    c.title = title;
    c.note = note;
    c.values = t->bytes;
    c.n_values = t->n_steps;
    snprintf(text, sizeof text, "peak %s at step %zu", out_size(o, t->peak_bytes).text,
             t->peak_step);
    chart_draw(o, &c);
    chart_mark(o, &c, t->peak_step, text);
}

static bool same_steps(const remat_plan *a, const remat_plan *b)
{
    size_t n_a, n_b;
    const remat_step *x = remat_plan_steps(a, &n_a), *y = remat_plan_steps(b, &n_b);
    return n_a == n_b && (n_a == 0 || memcmp(x, y, n_a * sizeof *x) == 0);
}

static int show_timelines(session *s, out *o, const report *r)
{
    timeline before, after;
    if (r->summary.steps == 0) return REMAT_OK;
    TRY(session_keep_all(s));
    TRY(timeline_make(s, s->keep_all, &before));
    const int status = timeline_make(s, r->plan, &after);
    if (!status) {
        const bool same = same_steps(s->keep_all, r->plan);
        const chart scale = {
            .span = before.n_steps > after.n_steps ? before.n_steps : after.n_steps,
            .top = before.peak_bytes > after.peak_bytes ? before.peak_bytes : after.peak_bytes,
            .base = s->info.resident_bytes,
            .limit = r->summary.budget_bytes,
            .rows = same ? 10 : 7,
            .show = out_size};
        draw(o, &before, &scale, "keep-all");
        if (!same) draw(o, &after, &scale, r->summary.strategy);
        timeline_free(&after);
    }
    timeline_free(&before);
    return status;
}

/* A chain's schedule, runs of one operation as one word: Fck1 Fnone2-3 Fall4-7 B7-4. */
static void show_sequence(out *o, const remat_plan *plan)
{
    static const char *const names[] = {
        [REMAT_F_ALL] = "Fall", [REMAT_F_CK] = "Fck", [REMAT_F_NONE] = "Fnone", [REMAT_B] = "B"};
    enum { MOST_LINES = 20 };
    size_t n_steps, end;
    const remat_step *steps = remat_plan_steps(plan, &n_steps);
    int column = 0, lines = 1;
    out_print(o, "\n");
    for (size_t t = 0; t < n_steps; t = end) {
        const uint32_t kind = steps[t].kind, first = steps[t].index,
                       next = kind == REMAT_B ? UINT32_MAX : 1; /* -1 or +1 */
        char word[48];
        for (end = t + 1; end < n_steps && steps[end].kind == kind &&
                          steps[end].index == steps[end - 1].index + next;)
            end++;
        int length = snprintf(word, sizeof word, "%s%" PRIu32, names[kind], first);
        if (end - t > 1)
            length += snprintf(word + length, sizeof word - (size_t)length, "-%" PRIu32,
                               steps[end - 1].index);
        if (column && column + 1 + length > o->width) {
            lines++;
            if (lines > MOST_LINES) {
                out_print(o, "\n(%zu steps more; -o FILE writes them all)", n_steps - t);
                break;
            }
            out_print(o, "\n");
            column = 0;
        }
        out_print(o, "%s%s", column ? " " : "", word);
        column += length + (column ? 1 : 0);
    }
    out_print(o, "\n");
}

static int show(session *s, out *o, const report *r)
{
    static const char *const cut[] = {"", ", work limit reached", ", time limit reached",
                                      ", interrupted"};
    const remat_summary *m = &r->summary;
    char after[160];
    const int n = snprintf(after, sizeof after, "%s%s", m->budget_bytes >= 0 ? "  budget " : "",
                           m->budget_bytes >= 0 ? out_exact(o, m->budget_bytes).text : "");
    if (r->seconds >= 0)
        snprintf(after + n, sizeof after - (size_t)n, "  planned in %.2f s%s", r->seconds,
                 (size_t)m->stopped < 4 ? cut[m->stopped] : "");
    out_title(o, m->graph, after);
    out_print(o, "\n");
    report_table(o, r);
    const int status = show_timelines(s, o, r);
    if (!status && s->chain) show_sequence(o, r->plan);
    return status;
}

static int finish(session *s, report *r)
{
    const char *path = s->args->text[FLAG_OUTPUT];
    const bool to_stdout = path && strcmp(path, "-") == 0;
    out other, *o = s->out;
    if (to_stdout) {
        out_open(&other, stderr, "standard error", o->json);
        other.size_unit = o->size_unit;
        o = &other;
    }
    if (path) TRY(session_write(s, path, write_plan, r->plan, session_format(path, REMAT_JSON)));
    TRY(plan_svg(s, r));
    r->path = path;
    if (session_svg_is_output(s)) return report_status(s, r, o);
    if (o->json) {
        emitter j = {.out = o};
        r->with_schedule = true;
        report_explain(s, r, o);
        report_json(&j, s, r);
        return report_status(s, r, o);
    }
    TRY(show(s, o, r));
    if (path && !to_stdout) out_print(o, "\nplan written to %s\n", out_clean(o, path, 64).text);
    return report_status(s, r, o);
}

/* --mps: the program instead of a plan. */
static int write_mps(session *s, int64_t budget)
{
    const char *strategy = s->args->text[FLAG_STRATEGY], *path = s->args->text[FLAG_MPS];
    if ((strategy && strcmp(strategy, "checkmate") != 0) || s->chain)
        return out_fail(s->out, REMAT_E_USAGE, "plan", "--mps",
                        "is for strategy checkmate and for graphs");
    if (s->args->text[FLAG_OUTPUT] || s->args->text[FLAG_SVG])
        return out_fail(s->out, REMAT_E_USAGE, "plan", s->args->text[FLAG_SVG] ? "--svg" : "-o",
                        "and --mps exclude each other");
    if (session_format(path, REMAT_JSON) == REMAT_JSON_GZ)
        return out_fail(s->out, REMAT_E_USAGE, "plan", "--mps",
                        "is not compressed: choose a name without .gz");
    return session_write(s, path, write_program, &budget, REMAT_JSON);
}

/* Without a budget the cheapest plan is keep-all, but not that of the lowest peak. */
static const char *default_strategy(const args *a)
{
    return a->text[FLAG_BUDGET] || a->text[FLAG_ORDER_ONLY] ? DEFAULT_STRATEGY : "keep-all";
}

int cmd_plan(session *s)
{
    const args *a = s->args;
    const char *strategy = a->text[FLAG_STRATEGY];
    int64_t budget;
    reports r = {0};
    if (strategy) TRY(session_strategy(s, strategy));
    else strategy = default_strategy(a);
    TRY(heeds_check(s, a->text[FLAG_MPS] ? "checkmate" : strategy));
    TRY(session_read(s, a->operands[0], NULL, NULL));
    TRY(session_budget(s, "--budget", a->text[FLAG_BUDGET], &budget));
    if (a->text[FLAG_MPS]) return write_mps(s, budget);
    if (!s->out->json) TRY(session_keep_all(s)); /* now, so that Ctrl-C need not wait for it */
    session_catch(s);
    int status = report_make(s, strategy, &budget, 1, &r);
    session_release(s);
    if (!status && r.n == 0) status = EXIT_INTERRUPTED;
    if (!status && !r.items[0].plan)
        status = out_fail(s->out, r.items[0].status, "", "", "strategy '%s' does not apply: %s",
                          r.items[0].summary.strategy, r.items[0].reason);
    if (!status) status = finish(s, &r.items[0]);
    if (!status && session_interrupted()) {
        out_message(s->out, "interrupted: this is the best plan so far");
        status = EXIT_INTERRUPTED;
    }
    free(r.items);
    return status;
}

/* `remat import GRAPH --mps-solution FILE`. */
int cmd_plan_of_solution(session *s)
{
    const args *a = s->args;
    int64_t budget;
    remat_plan *plan;
    int status = session_read(s, a->operands[0], NULL, NULL);
    if (!status && s->chain)
        status = out_fail(s->out, REMAT_E_USAGE, "import", "--mps-solution", "is for graphs");
    if (!status) status = session_budget(s, "--budget", a->text[FLAG_BUDGET], &budget);
    if (status) return status;
    CHECK(s, remat_milp_plan(s->ctx, s->graph, budget, a->text[FLAG_MPS_SOLUTION], &plan));
    report r = {.summary = *remat_plan_summary(plan), .plan = session_keep(s, plan), .seconds = -1};
    return finish(s, &r);
}
