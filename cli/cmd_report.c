/* cmd_report.c: `remat report`: plans of one graph as an HTML page (page.c).
 *
 * The page shows keep-all and one or more plans: those of the files that are given, or one for each
 * strategy at --budget. --curve adds plans at rising budgets, for each strategy. A strategy that
 * does not apply is told on the page; if none applies, that is an error. The page is written also
 * where a plan misses the budget. The exit code is then that of `plan`, unless another plan of the
 * same budget fits. With --curve alone it is that of `curve`.
 *
 * Ctrl-C ends planning. What was planned is written, and the exit code is 130. */
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "curve.h"
#include "heeds.h"
#include "page.h"

enum { REPORT_POINTS = 8 };

typedef struct shown {
    reports plans;   /* keep-all, the plans, the points of curves */
    reports refused; /* strategies that do not apply */
    size_t n_main;   /* plans that are no points */
    names strategies;
    curve curve;
} shown;

static void add(reports *list, const report *r)
{
    if (list->n == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 16;
        list->items = out_resize(list->items, list->capacity, sizeof *list->items);
    }
    list->items[list->n++] = *r;
}

/* A row is a plan, or says of a strategy that it does not apply; that once is enough. */
static void take(shown *all, const report *row)
{
    bool known = false;
    for (size_t i = 0; i < all->refused.n && !row->plan; i++)
        known |= strcmp(all->refused.items[i].summary.strategy, row->summary.strategy) == 0;
    if (!known) add(row->plan ? &all->plans : &all->refused, row);
}

/* A plan of each strategy. */
static int plan_budget(session *s, int64_t budget, shown *all)
{
    reports rows = {0};
    int status = REMAT_OK;
    session_catch(s);
    for (size_t k = 0; k < all->strategies.n && !status && !session_interrupted(); k++)
        status = report_make(s, all->strategies.items[k], &budget, 1, &rows);
    session_release(s);
    for (size_t i = 0; i < rows.n; i++) take(all, &rows.items[i]);
    free(rows.items);
    return status;
}

/* The points of all strategies. */
static int plan_curve(session *s, uint32_t n_points, shown *all)
{
    const char *list = s->args->text[FLAG_STRATEGY];
    const int status = curve_make(s, list, n_points, &all->curve);
    for (size_t i = 0; i < all->curve.all.n && !status; i++) take(all, &all->curve.all.items[i]);
    return status;
}

static void add_plan(shown *all, const remat_plan *plan, const char *path)
{
    add(&all->plans,
        &(report){.summary = *remat_plan_summary(plan), .plan = plan, .path = path, .seconds = -1});
}

/* keep-all, and plans of files: verified, and known to be of this graph. */
static int read_plans(session *s, shown *all)
{
    const args *a = s->args;
    const remat_plan *plan;
    TRY(session_program(s, &plan));
    TRY(session_keep_all(s));
    add_plan(all, s->keep_all, NULL);
    if (a->n_operands > 1) add_plan(all, plan, a->operands[1]);
    if (a->n_operands > 2) {
        TRY(session_read_plan(s, a->operands[2], &plan));
        TRY(session_check_plan(s, plan, a->operands[2]));
        add_plan(all, plan, a->operands[2]);
    }
    return REMAT_OK;
}

static int make_plans(session *s, uint32_t n_points, shown *all)
{
    const args *a = s->args;
    int64_t budget;
    TRY(session_budget(s, "--budget", a->text[FLAG_BUDGET], &budget));
    if (a->text[FLAG_BUDGET]) TRY(plan_budget(s, budget, all));
    all->n_main = all->plans.n;
    if (all->refused.n > 0 && all->plans.n == 1)
        return out_fail(s->out, REMAT_E_APPLIES, "", "", "strategy '%s' does not apply: %s",
                        all->refused.items[0].summary.strategy, all->refused.items[0].reason);
    return a->text[FLAG_CURVE] && !session_interrupted() ? plan_curve(s, n_points, all) : REMAT_OK;
}

/* --place: the plan with the addresses of everything, unless it has them. Where the sizes of all
 * instances together are too much to place, the plan is shown without. */
static int place(session *s, page_plan *p)
{
    remat_plan *placed = NULL;
    if (p->role == PAGE_CURVE || remat_plan_arena_bytes(p->report.plan) != REMAT_ABSENT)
        return REMAT_OK;
    session_catch(s);
    const remat_status status =
        remat_plan_place(s->ctx, s->graph, p->report.plan, p->report.summary.align, &placed);
    session_release(s);
    if (status == REMAT_E_INPUT) {
        out_message(s->out, "no addresses of %s: %s", p->report.summary.strategy,
                    remat_ctx_error_reason(s->ctx));
        return REMAT_OK;
    }
    CHECK(s, status);
    p->report.plan = session_keep(s, placed);
    return REMAT_OK;
}

static int lower_and_place(session *s, page_plan *p)
{
    size_t n_steps;
    if (s->chain) return REMAT_OK; /* its lives follow from its operations */
    if (s->args->text[FLAG_PLACE]) TRY(place(s, p));
    const remat_step *steps = remat_plan_steps(p->report.plan, &n_steps);
    CHECK(s, remat_lower(s->ctx, s->graph, steps, n_steps, &p->program));
    return REMAT_OK;
}

static int write_page(session *s, const shown *all)
{
    const size_t n = all->plans.n;
    page x = {.plans = out_resize(NULL, n, sizeof *x.plans),
              .n_plans = n,
              .refused = all->refused.items,
              .n_refused = all->refused.n};
    int status = REMAT_OK;
    for (size_t i = 0; i < n; i++) {
        const page_role role = i == 0 ? PAGE_KEEP_ALL : i < all->n_main ? PAGE_PLAN : PAGE_CURVE;
        x.plans[i] = (page_plan){.role = role, .report = all->plans.items[i]};
        report_explain(s, &x.plans[i].report, s->out);
    }
    for (size_t i = 0; i < n && !status; i++) status = lower_and_place(s, &x.plans[i]);
    if (!status) status = session_write(s, s->args->text[FLAG_OUTPUT], page_write, &x, REMAT_JSON);
    for (size_t i = 0; i < n; i++) remat_program_free(x.plans[i].program);
    free(x.plans);
    return status;
}

/* That of the plans, or where points are all there is, that of the curve; with a line on stderr. */
static int exit_code(session *s, shown *all)
{
    for (size_t i = 1; i < all->n_main; i++)
        if (all->plans.items[i].summary.within_budget) return REMAT_OK;
    if (all->n_main > 1) return report_status(s, &all->plans.items[1], s->out);
    return s->args->text[FLAG_CURVE] ? curve_status(s, &all->curve) : REMAT_OK;
}

static int show(session *s, shown *all)
{
    const char *path = s->args->text[FLAG_OUTPUT];
    session_busy(s);
    const int written = write_page(s, all);
    session_idle(s);
    if (written) return written;
    if (s->out->json) {
        emitter j = {.out = s->out};
        emit_open(&j, NULL, '[');
        for (size_t i = 0; i < all->plans.n; i++) report_json(&j, s, &all->plans.items[i]);
        emit_close(&j, ']');
    } else if (strcmp(path, "-") != 0) {
        out_print(s->out, "report written to %s\n", out_clean(s->out, path, 64).text);
    }
    if (session_interrupted()) {
        out_message(s->out, "interrupted: this is not all");
        return EXIT_INTERRUPTED;
    }
    return exit_code(s, all);
}

/* Which flags go together. */
static int check_flags(session *s)
{
    const args *a = s->args;
    const char *path = a->text[FLAG_OUTPUT];
    static const flag_id of_curve[] = {FLAG_POINTS, FLAG_FROM, FLAG_TO};
    if (!path)
        return out_fail(s->out, REMAT_E_USAGE, "report", "-o",
                        "say where the page goes: -o report.html; - is standard output");
    if (session_format(path, REMAT_JSON) == REMAT_JSON_GZ)
        return out_fail(s->out, REMAT_E_USAGE, "report", "-o",
                        "a page is not compressed: choose a name without .gz");
    if (s->out->json && strcmp(path, "-") == 0)
        return out_fail(s->out, REMAT_E_USAGE, "report", "--json",
                        "and -o - exclude each other: both go to standard output");
    if (a->n_operands > 1 && a->text[FLAG_BUDGET])
        return out_fail(s->out, REMAT_E_USAGE, "report", "--budget",
                        "makes a plan, but there is one already: %.80s", a->operands[1]);
    if (a->n_operands > 1 && a->text[FLAG_ALIGN])
        return out_fail(s->out, REMAT_E_USAGE, "report", "--align",
                        "rounds sizes before planning, but there is a plan already: %.80s",
                        a->operands[1]);
    for (size_t i = 0; i < LEN(of_curve); i++)
        if (a->text[of_curve[i]] && !a->text[FLAG_CURVE]) {
            char name[40];
            snprintf(name, sizeof name, "--%s", flags[of_curve[i]].name);
            return out_fail(s->out, REMAT_E_USAGE, "report", name, "goes with --curve");
        }
    if (a->text[FLAG_STRATEGY] && !a->text[FLAG_BUDGET] && !a->text[FLAG_CURVE])
        return out_fail(s->out, REMAT_E_USAGE, "report", "--strategy",
                        "goes with --budget or --curve");
    return REMAT_OK;
}

int cmd_report(session *s)
{
    const char *list = s->args->text[FLAG_STRATEGY];
    uint32_t n_points;
    TRY(check_flags(s));
    TRY(curve_points(s, REPORT_POINTS, &n_points));
    if (list) TRY(session_strategies(s, list));
    TRY(heeds_check(s, list ? list : DEFAULT_STRATEGY));
    shown all = {.strategies = names_of(list, false)};
    int status = read_plans(s, &all);
    if (!status) status = make_plans(s, n_points, &all);
    if (!status) status = show(s, &all);
    names_free(&all.strategies);
    curve_free(&all.curve);
    free(all.plans.items);
    free(all.refused.items);
    return status;
}
