/* curve.c: plans at rising budgets, for one strategy or several.
 *
 * All strategies plan at the same rising budgets, so that rows compare. The first budget, unless it
 * is given, is the least that one of them reaches. A plan of a smaller budget is valid at a larger
 * one. So curve carries the cheapest forward where a planner does worse with more room. The bound,
 * the work and the stop stay those of the point. Invariant: among the points of a strategy that
 * fit, cost never rises with the budget. */
#include "curve.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_POINTS = 1000 };

/* `from` at 0, `to` at n. Exact, without overflow. */
static int64_t between(int64_t from, int64_t to, int64_t i, int64_t n)
{
    assert(n > 0 && i >= 0 && i <= n && from <= to);
    const int64_t span = to - from;
    return from + span / n * i + span % n * i / n;
}

/* The plan of `best` in place of the point's own. A bound for one order says nothing of another. */
static void carry(report *point, const report *best)
{
    const report own = *point;
    *point = *best;
    point->seconds = own.seconds;
    remat_summary *m = &point->summary;
    m->budget_bytes = own.summary.budget_bytes;
    m->bound_cost = own.summary.bound_cost;
    m->bound_scope = own.summary.bound_scope;
    m->bound_method = own.summary.bound_method;
    m->any_order_cost = own.summary.any_order_cost;
    m->any_order_method = own.summary.any_order_method;
    if (strcmp(m->bound_scope, "fixed-order") == 0) {
        m->bound_cost = m->any_order_cost;
        m->bound_scope = "any-order";
        m->bound_method = m->any_order_method;
    }
    m->work = own.summary.work;
    m->stopped = own.summary.stopped;
    m->within_budget = true;
    m->outcome = m->cost == m->bound_cost ? REMAT_OPTIMAL : REMAT_FEASIBLE;
}

static void carry_all(const report *least, report *points, size_t n)
{
    const report *best = least;
    for (report *point = points; point < points + n; point++) {
        const bool fits = best && best->summary.peak_bytes <= point->summary.budget_bytes;
        if (fits && (!point->summary.within_budget || point->summary.cost > best->summary.cost))
            carry(point, best);
        if (point->summary.within_budget) best = point;
    }
}

/* The least peak that one of the strategies reaches, but not above `to`. */
static int find_least(session *s, curve *c, int64_t to, int64_t *from)
{
    const int64_t asked = REMAT_BUDGET_MIN;
    *from = to;
    for (size_t k = 0; k < c->strategies.n && !session_interrupted(); k++, s->bar.part++) {
        const size_t n = c->least.n;
        TRY(report_make(s, c->strategies.items[k], &asked, 1, &c->least));
        if (c->least.n == n || !c->least.items[n].plan) continue;
        const int64_t peak = c->least.items[n].summary.peak_bytes;
        if (peak < *from) *from = peak;
    }
    return REMAT_OK;
}

static void choose_budgets(curve *c, int64_t from, int64_t to, uint32_t n)
{
    c->budgets = out_resize(NULL, n, sizeof *c->budgets);
    for (uint32_t i = 0; i < n; i++) {
        const int64_t budget = between(from, to, i, n - 1);
        const bool again = c->n_budgets > 0 && budget == c->budgets[c->n_budgets - 1];
        if (!again) c->budgets[c->n_budgets++] = budget; /* there may be more points than bytes */
    }
}

static int plan_all(session *s, curve *c)
{
    for (size_t k = 0; k < c->strategies.n; k++, s->bar.part++) {
        const size_t first = c->all.n;
        if (!session_interrupted())
            TRY(report_make(s, c->strategies.items[k], c->budgets, c->n_budgets, &c->all));
        const report *least = k < c->least.n ? &c->least.items[k] : NULL;
        if (c->all.n > first && c->all.items[first].plan)
            carry_all(least, &c->all.items[first], c->all.n - first);
        c->first[k + 1] = c->all.n;
    }
    return REMAT_OK;
}

/* An error where no strategy applies. */
static int refuse(session *s, const reports *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->items[i].plan) return REMAT_OK;
    if (r->n == 0) return REMAT_OK; /* interrupted */
    if (r->n == 1)
        return out_fail(s->out, r->items[0].status, "", "", "strategy '%s' does not apply: %s",
                        r->items[0].summary.strategy, r->items[0].reason);
    return out_fail(s->out, REMAT_E_APPLIES, "", "", "none of the strategies applies; %s: %s",
                    r->items[0].summary.strategy, r->items[0].reason);
}

/* Finds the least budget if `from` asks for it, then plans. */
static int plan_between(session *s, curve *c, int64_t from, int64_t to, uint32_t n_points)
{
    const bool from_least = from == REMAT_BUDGET_MIN;
    s->bar.parts = (uint32_t)c->strategies.n * (from_least ? 2 : 1);
    if (from_least) {
        TRY(find_least(s, c, to, &from));
        TRY(refuse(s, &c->least));
    }
    if (from > to)
        return out_fail(s->out, REMAT_E_USAGE, commands[s->args->command].name, "--from",
                        "the first budget, %s, is above the last, %s", out_exact(s->out, from).text,
                        out_exact(s->out, to).text);
    if (from_least && session_interrupted()) { /* what there is */
        c->all = c->least;
        c->least = (reports){0};
        for (size_t k = 0; k < c->strategies.n; k++)
            c->first[k + 1] = k < c->all.n ? k + 1 : c->all.n;
        return REMAT_OK;
    }
    choose_budgets(c, from, to, n_points);
    TRY(plan_all(s, c));
    return refuse(s, &c->all);
}

int curve_points(session *s, uint32_t initial, uint32_t *n_points)
{
    const args *a = s->args;
    const int64_t n = a->text[FLAG_POINTS] ? a->number[FLAG_POINTS] : initial;
    if (n < 2 || n > MOST_POINTS)
        return out_fail(s->out, REMAT_E_USAGE, commands[a->command].name, "--points",
                        "%" PRId64 " is not between 2 and %d", n, (int)MOST_POINTS);
    *n_points = (uint32_t)n;
    return REMAT_OK;
}

int curve_make(session *s, const char *list, uint32_t n_points, curve *c)
{
    const args *a = s->args;
    int64_t from = REMAT_BUDGET_MIN, to = s->info.keep_all_peak_bytes;
    if (a->text[FLAG_FROM]) TRY(session_budget(s, "--from", a->text[FLAG_FROM], &from));
    if (a->text[FLAG_TO]) TRY(session_budget(s, "--to", a->text[FLAG_TO], &to));
    if (to < 0)
        return out_fail(s->out, REMAT_E_USAGE, commands[a->command].name, "--to",
                        "must be a percentage or a size");
    c->strategies = names_of(list, false);
    c->first = out_resize(NULL, c->strategies.n + 1, sizeof *c->first);
    c->first[0] = 0;
    session_catch(s);
    const int status = plan_between(s, c, from, to, n_points);
    session_release(s);
    return status;
}

/* Strategies that do not apply have no points. */
int curve_status(session *s, const curve *c)
{
    reports last = {.items = out_resize(NULL, c->strategies.n, sizeof *last.items)};
    for (size_t k = 0; k < c->strategies.n; k++) {
        const size_t end = c->first[k + 1];
        if (end > c->first[k] && c->all.items[end - 1].plan)
            last.items[last.n++] = c->all.items[end - 1];
    }
    const int status = rows_status(s, &last);
    free(last.items);
    return status;
}

void curve_free(curve *c)
{
    names_free(&c->strategies);
    free(c->first);
    free(c->budgets);
    free(c->least.items);
    free(c->all.items);
}
