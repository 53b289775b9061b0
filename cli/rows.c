/* rows.c: many plans of one graph or chain, side by side.
 *
 * Problem: rows prove different bounds, and gaps to different bounds do not compare. Method: a plan
 * that fits a budget fits every larger one. So a bound for any order that is proved at one budget
 * holds at all smaller ones, and for every strategy. Each row gets the best that any row proves for
 * it. Invariant after rows_share_bound: at rising budgets any_order_cost never rises. Cost: a sort.
 *
 * A row whose strategy does not apply has no plan, and the reason instead. */
#include "rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"

/* ---- strategies ---- */

names names_of(const char *list, bool all)
{
    names x = {0};
    const remat_entry *entry;
    size_t most = 1;
    for (const char *p = list; p && *p; p++) most += *p == ',';
    while (!list && all && remat_strategy_at(most)) most++;
    x.items = out_resize(NULL, most, sizeof *x.items);
    if (!list && !all) x.items[x.n++] = DEFAULT_STRATEGY;
    while (!list && all && (entry = remat_strategy_at(x.n))) x.items[x.n++] = entry->name;
    if (list) x.list = strcpy(out_resize(NULL, strlen(list) + 1, 1), list);
    for (char *name = x.list, *next; name; name = next) {
        next = strchr(name, ',');
        if (next) *next++ = '\0';
        x.items[x.n++] = name;
    }
    return x;
}

void names_free(names *x)
{
    free(x->items);
    free(x->list);
    *x = (names){0};
}

/* ---- one bound for all ---- */

static int by_falling_budget(const void *a, const void *b)
{
    const int64_t x = (*(report *const *)a)->summary.budget_bytes,
                  y = (*(report *const *)b)->summary.budget_bytes;
    return (x < y) - (x > y);
}

/* A row that meets a bound for any order is the cheapest of all. */
static void take_bound(remat_summary *m, int64_t cost, const char *method)
{
    m->any_order_cost = cost;
    m->any_order_method = method;
    if (!m->within_budget || m->cost != cost) return;
    m->bound_cost = cost;
    m->bound_scope = "any-order";
    m->bound_method = method;
    m->outcome = REMAT_OPTIMAL;
}

void rows_share_bound(reports *r)
{
    report **sorted = out_resize(NULL, r->n + 1, sizeof *sorted);
    size_t n = 0, end;
    for (size_t i = 0; i < r->n; i++)
        if (r->items[i].plan && r->items[i].summary.budget_bytes >= 0) sorted[n++] = &r->items[i];
    if (n > 0) qsort(sorted, n, sizeof *sorted, by_falling_budget);
    int64_t best = REMAT_ABSENT;
    const char *method = "";
    for (size_t first = 0; first < n; first = end) { /* the rows of one budget */
        for (end = first; end < n && by_falling_budget(&sorted[first], &sorted[end]) == 0; end++) {
            const remat_summary *m = &sorted[end]->summary;
            if (!m->within_budget || m->any_order_cost <= best) continue;
            best = m->any_order_cost;
            method = m->any_order_method;
        }
        for (size_t i = first; i < end && best >= 0; i++)
            if (sorted[i]->summary.within_budget) take_bound(&sorted[i]->summary, best, method);
    }
    free(sorted);
}

/* ---- printing ---- */

bool rows_for_machines(const session *s) { return s->out->json || s->args->text[FLAG_CSV]; }

/* Where nothing fits, the plan that comes nearest costs nothing that compares with the others. */
static report row_of(const report *r)
{
    report row = *r;
    if (row.summary.outcome == REMAT_INFEASIBLE) row.summary.cost = REMAT_ABSENT;
    return row;
}

void rows_print(session *s, const reports *r)
{
    emitter j = {.out = s->out};
    if (s->out->json) emit_open(&j, NULL, '[');
    else report_csv_head(s->out);
    for (size_t i = 0; i < r->n; i++) {
        const report row = row_of(&r->items[i]);
        if (s->out->json) report_json(&j, s, &row);
        else report_csv(s->out, &row);
    }
    if (s->out->json) emit_close(&j, ']');
}

void rows_heads(table *t, const char *first, const char *second)
{
    const char *const heads[] = {first, second,    "overhead", "outcome",
                                 "gap", "own gap", "in",       "seconds"};
    for (size_t i = 0; i < LEN(heads); i++) table_cell(t, BOLD, "%s", heads[i]);
}

/* What does not fit has no overhead to compare. `gap` is to the bound that no plan undercuts; `own
 * gap` to the row's own bound, `in` its scope. */
void rows_judged(table *t, const report *r)
{
    const remat_summary *m = &r->summary;
    if (m->within_budget) table_cell(t, PLAIN, "+%s", human_percent(report_overhead(m)).text);
    else table_cell(t, DIM, "-");
    table_cell(t, m->within_budget ? GOOD : BAD, "%s", report_word(m));
    table_cell(t, PLAIN, "%s", report_gap_text(m, m->any_order_cost).text);
    table_cell(t, PLAIN, "%s", report_gap_text(m, m->bound_cost).text);
    table_cell(t, PLAIN, "%s", report_scope(m));
    table_cell(t, PLAIN, "%.2f", r->seconds);
}

void rows_refused(session *s, const reports *r)
{
    out *o = s->out;
    int widest = 0;
    for (size_t i = 0; i < r->n; i++) {
        const int width = r->items[i].plan ? 0 : (int)strlen(r->items[i].summary.strategy);
        if (width > widest) widest = width;
    }
    if (widest) out_print(o, "\n%sdo not apply%s\n", out_style(o, BOLD), out_style(o, PLAIN));
    for (size_t i = 0; i < r->n; i++) {
        if (r->items[i].plan) continue;
        char *reason = out_safe(o, r->items[i].reason);
        out_print(o, "  %-*s  ", widest, r->items[i].summary.strategy);
        out_wrap(o, widest + 4, widest + 4, reason ? reason : "");
        free(reason);
    }
}

/* ---- exit codes ---- */

/* One that fits is enough; else the proof, else the least peak. */
int rows_status(session *s, reports *r)
{
    report *why = NULL;
    bool proof = false;
    for (size_t i = 0; i < r->n; i++) {
        report *one = &r->items[i];
        if (!one->plan) continue;
        const remat_status status = remat_plan_status(one->plan);
        if (status == REMAT_OK) return REMAT_OK;
        if (proof) continue;
        proof = status == REMAT_E_INFEASIBLE;
        if (!why || proof || one->summary.peak_bytes < why->summary.peak_bytes) why = one;
    }
    if (why) return report_status(s, why, s->out);
    out_message(s->out, "none of the strategies applies%s%s", r->n == 1 ? ": " : "",
                r->n == 1 ? r->items[0].reason : "");
    return REMAT_E_APPLIES;
}

int rows_interrupted(session *s)
{
    if (!session_interrupted()) return REMAT_OK;
    out_message(s->out, "interrupted: this is not all");
    return EXIT_INTERRUPTED;
}
