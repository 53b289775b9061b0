/* cmd_report.c: `remat report`: plans of one graph as an HTML page (page.c).
 *
 * The page shows keep-all and one or more plans: those of the files that are given, or one for each
 * strategy at --budget. --curve adds plans at rising budgets, for each strategy. A strategy that
 * does not apply is told on the page; if none applies, that is an error. The page is written also
 * where a plan misses the budget. The exit code is then that of `plan`, unless another plan of the
 * same budget fits.
 *
 * Ctrl-C ends planning. What was planned is written, and the exit code is 130. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "heeds.h"
#include "page.h"

enum { REPORT_POINTS = 8, MOST_REPORT_POINTS = 1000 };

typedef struct shown {
    reports plans;   /* keep-all, the plans, the points of curves */
    reports refused; /* strategies that do not apply */
    size_t n_main;   /* plans that are no points */
} shown;

static void add(reports *list, const report *r)
{
    if (list->n == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : 16;
        list->items = out_resize(list->items, list->capacity, sizeof *list->items);
    }
    list->items[list->n++] = *r;
}

static bool is_refused(const shown *all, const char *strategy)
{
    for (size_t i = 0; i < all->refused.n; i++)
        if (strcmp(all->refused.items[i].summary.strategy, strategy) == 0) return true;
    return false;
}

/* Plans of one strategy, unless it does not apply. */
static int plan_one(session *s, const char *strategy, const int64_t *budgets, uint32_t n,
                    shown *all)
{
    reports rows = {0};
    if (is_refused(all, strategy)) return REMAT_OK;
    const int status = report_make(s, strategy, budgets, n, &rows);
    for (size_t i = 0; i < rows.n; i++)
        add(rows.items[i].plan ? &all->plans : &all->refused, &rows.items[i]);
    free(rows.items);
    return status;
}

/* The strategies of a list; NULL: the default one. Each name is kept, since reports point to it. */
static int plan_each(session *s, char *list, const int64_t *budgets, uint32_t n, shown *all)
{
    if (!list) return plan_one(s, DEFAULT_STRATEGY, budgets, n, all);
    int status = REMAT_OK;
    for (char *name = list; *name && !status && !session_interrupted(); name += strlen(name) + 1)
        status = plan_one(s, name, budgets, n, all);
    return status;
}

/* "a,b" as "a\0b\0\0", to be freed; NULL for NULL. */
static char *split(const char *list)
{
    if (!list) return NULL;
    const size_t length = strlen(list);
    char *names = memcpy(out_resize(NULL, length + 2, 1), list, length + 1);
    names[length + 1] = '\0';
    for (char *p = names; *p; p++)
        if (*p == ',') *p = '\0';
    return names;
}

/* The budgets of the points: from --from (the least peak that the first strategy finds) to --to.
 * To be freed. */
static int curve_budgets(session *s, const char *strategy, int64_t **budgets, uint32_t *n)
{
    const args *a = s->args;
    const int64_t points = a->text[FLAG_POINTS] ? a->number[FLAG_POINTS] : REPORT_POINTS;
    int64_t from = REMAT_BUDGET_MIN, to = s->info.keep_all_peak_bytes;
    if (points < 2 || points > MOST_REPORT_POINTS)
        return out_fail(s->out, REMAT_E_USAGE, "report", "--points",
                        "%" PRId64 " is not between 2 and %d", points, (int)MOST_REPORT_POINTS);
    if (a->text[FLAG_FROM]) TRY(session_budget(s, "--from", a->text[FLAG_FROM], &from));
    if (a->text[FLAG_TO]) TRY(session_budget(s, "--to", a->text[FLAG_TO], &to));
    if (from == REMAT_BUDGET_MIN) {
        reports least = {0};
        const int status = report_make(s, strategy, &from, 1, &least);
        if (!status && least.n > 0 && least.items[0].plan) from = least.items[0].summary.peak_bytes;
        else from = s->info.need_bytes;
        free(least.items);
        if (status) return status;
    }
    if (to < from)
        return out_fail(s->out, REMAT_E_USAGE, "report", "--from",
                        "the first budget, %s, is above the last, %s", out_exact(s->out, from).text,
                        out_exact(s->out, to).text);
    *budgets = out_resize(NULL, (size_t)points, sizeof **budgets);
    *n = 0;
    for (int64_t i = 0; i < points; i++) {
        const int64_t span = to - from, n_gaps = points - 1,
                      budget = from + span / n_gaps * i + span % n_gaps * i / n_gaps;
        if (*n == 0 || budget > (*budgets)[*n - 1]) (*budgets)[(*n)++] = budget;
    }
    return REMAT_OK;
}

static int plan_curve(session *s, char *names, shown *all)
{
    int64_t *budgets = NULL;
    uint32_t n = 0;
    int status = curve_budgets(s, names ? names : DEFAULT_STRATEGY, &budgets, &n);
    if (!status && !session_interrupted()) status = plan_each(s, names, budgets, n, all);
    free(budgets);
    return status;
}

/* Plans of files: verified, and known to be of this graph. */
static int read_plans(session *s, shown *all)
{
    const args *a = s->args;
    const remat_plan *plan;
    TRY(session_program(s, &plan));
    TRY(session_keep_all(s));
    add(&all->plans,
        &(report){.summary = *remat_plan_summary(s->keep_all), .plan = s->keep_all, .seconds = -1});
    if (a->n_operands > 1)
        add(&all->plans, &(report){.summary = *remat_plan_summary(plan),
                                   .plan = plan,
                                   .path = a->operands[1],
                                   .seconds = -1});
    if (a->n_operands > 2) {
        TRY(session_read_plan(s, a->operands[2], &plan));
        TRY(session_check_plan(s, plan, a->operands[2]));
        add(&all->plans, &(report){.summary = *remat_plan_summary(plan),
                                   .plan = plan,
                                   .path = a->operands[2],
                                   .seconds = -1});
    }
    return REMAT_OK;
}

static int make_plans(session *s, char *names, shown *all)
{
    const args *a = s->args;
    int64_t budget;
    TRY(session_budget(s, "--budget", a->text[FLAG_BUDGET], &budget));
    int status = REMAT_OK;
    session_catch(s);
    if (a->text[FLAG_BUDGET]) status = plan_each(s, names, &budget, 1, all);
    all->n_main = all->plans.n;
    if (!status && a->text[FLAG_CURVE] && !session_interrupted())
        status = plan_curve(s, names, all);
    session_release(s);
    if (!status && all->refused.n > 0 && all->plans.n == 1)
        status = out_fail(s->out, REMAT_E_APPLIES, "", "", "strategy '%s' does not apply: %s",
                          all->refused.items[0].summary.strategy, all->refused.items[0].reason);
    return status;
}

static int lower_and_place(session *s, page_plan *p)
{
    size_t n_steps;
    const remat_step *steps = remat_plan_steps(p->report.plan, &n_steps);
    CHECK(s, remat_lower(s->ctx, s->graph, steps, n_steps, &p->program));
    if (!s->args->text[FLAG_PLACE] || p->role == PAGE_CURVE) return REMAT_OK;
    session_catch(s);
    const remat_status status =
        remat_place(s->ctx, p->program, p->report.summary.align, &p->placement);
    session_release(s);
    CHECK(s, status);
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
    for (size_t i = 0; i < n; i++) {
        remat_program_free(x.plans[i].program);
        remat_placement_free(x.plans[i].placement);
    }
    free(x.plans);
    return status;
}

/* REMAT_OK if a plan fits; else the exit code of the first, with its line on stderr. */
static int exit_code(session *s, shown *all)
{
    for (size_t i = 1; i < all->n_main; i++)
        if (all->plans.items[i].summary.within_budget) return REMAT_OK;
    return all->n_main > 1 ? report_status(s, &all->plans.items[1], s->out) : REMAT_OK;
}

static int show(session *s, shown *all)
{
    const char *path = s->args->text[FLAG_OUTPUT];
    const bool to_stdout = strcmp(path, "-") == 0;
    TRY(write_page(s, all));
    if (s->out->json && !to_stdout) {
        emitter j = {.out = s->out};
        emit_open(&j, NULL, '[');
        for (size_t i = 0; i < all->plans.n; i++) report_json(&j, s, &all->plans.items[i]);
        emit_close(&j, ']');
    } else if (!to_stdout) {
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
    if (a->n_operands > 1 && a->text[FLAG_BUDGET])
        return out_fail(s->out, REMAT_E_USAGE, "report", "--budget",
                        "makes a plan, but there is one already: %.80s", a->operands[1]);
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
    const args *a = s->args;
    const char *strategies = a->text[FLAG_STRATEGY];
    shown all = {0};
    TRY(check_flags(s));
    if (strategies) TRY(session_strategies(s, strategies));
    TRY(heeds_check(s, strategies ? strategies : DEFAULT_STRATEGY));
    char *names = split(strategies);
    int status = read_plans(s, &all);
    if (!status) status = make_plans(s, names, &all);
    if (!status) status = show(s, &all);
    free(names);
    free(all.plans.items);
    free(all.refused.items);
    return status;
}
