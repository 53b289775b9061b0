/* rotor_exact.c: the persistent recurrence of rotor.c without slots, in integers.
 *
 * C(s, t, .) is a step function of memory: it changes at finitely many m only. A sum of two cells
 * is a merge of their points. The minimum over s' is a merge that keeps what is strictly cheaper.
 * One run gives the optimal cost for every budget at once.
 *
 * A cell can have many points (the sums of arbitrary sizes). The work limit counts points merged. A
 * candidate s' is skipped if even its least cost is not below what the best so far costs where the
 * candidate begins.
 *
 * Invariant: the points of a cell (least memory, cost) ascend in memory and descend in cost. */
#include "plan/chains/rotor.h"

#include <assert.h>
#include <string.h>

enum { PAIR_WORK = 16 }; /* operations of the set-up for each pair of stages */

typedef struct point {
    int64_t m, cost; /* the cost from m on */
} point;

typedef RM_VEC(point) points;

typedef struct function { /* infinite below points[0].m */
    const point *points;
    uint32_t n;
} function;

typedef struct table {
    const remat_chain *c;
    uint32_t n;
    bool save_all;
    rm_rotor_needs needs;
    int64_t *before; /* tf^1 + .. + tf^(l-1) */
    function *cells; /* as rm_rotor_at */
    points best, sum, merged;
    int64_t work;   /* points merged since the last look at the limits, and splits looked at */
    rm_arena arena; /* where the functions lie */
} table;

static function *cell(const table *x, uint32_t s, uint32_t t)
{
    return &x->cells[rm_rotor_at(x->n, s, t)];
}

/* The point that holds at m, or NULL. */
static const point *at(const point *p, size_t n, int64_t m)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (p[mid].m <= m) lo = mid + 1;
        else hi = mid;
    }
    return lo ? &p[lo - 1] : NULL;
}

/* x->sum = cost + p(m - shift) + q(m) from m = need on. q may be NULL. Neither is empty. */
static remat_status add(remat_ctx *ctx, table *x, const function *p, int64_t shift,
                        const function *q, int64_t cost, int64_t need)
{
    assert(p->n > 0 && (!q || q->n > 0));
    int64_t m = need > p->points[0].m + shift ? need : p->points[0].m + shift;
    if (q && q->points[0].m > m) m = q->points[0].m;
    uint32_t i = (uint32_t)(at(p->points, p->n, m - shift) - p->points);
    uint32_t j = q ? (uint32_t)(at(q->points, q->n, m) - q->points) : 0;
    x->sum.n = 0;
    TRY(RM_RESERVE(ctx, x->sum, (size_t)p->n + (q ? q->n : 0)));
    for (;;) {
        x->sum.items[x->sum.n++] =
            (point){m, cost + p->points[i].cost + (q ? q->points[j].cost : 0)};
        const int64_t next_p = i + 1 < p->n ? p->points[i + 1].m + shift : INT64_MAX;
        const int64_t next_q = q && j + 1 < q->n ? q->points[j + 1].m : INT64_MAX;
        if (next_p == INT64_MAX && next_q == INT64_MAX) return REMAT_OK;
        m = next_p < next_q ? next_p : next_q;
        if (next_p == m) i++;
        if (next_q == m) j++;
    }
}

static bool comes_first(const point *a, const point *b)
{
    return a->m != b->m ? a->m < b->m : a->cost <= b->cost;
}

/* x->best = the lesser of x->best and x->sum. */
static remat_status keep_cheaper(remat_ctx *ctx, table *x)
{
    const points *a = &x->best, *b = &x->sum;
    x->work += (int64_t)(a->n + 2 * b->n);
    x->merged.n = 0;
    TRY(RM_RESERVE(ctx, x->merged, a->n + b->n));
    int64_t least = INT64_MAX;
    for (size_t i = 0, j = 0; i < a->n || j < b->n;) {
        const bool take_a = j == b->n || (i < a->n && comes_first(&a->items[i], &b->items[j]));
        const point p = take_a ? a->items[i++] : b->items[j++];
        if (p.cost >= least) continue;
        least = p.cost;
        x->merged.items[x->merged.n++] = p;
    }
    const points swap = x->best;
    x->best = x->merged;
    x->merged = swap;
    return REMAT_OK;
}

/* Is the candidate nowhere cheaper? It begins at m or later, and costs no less than `least`. */
static bool is_hopeless(const table *x, int64_t m, int64_t least)
{
    const point *p = at(x->best.items, x->best.n, m);
    return p && p->cost <= least;
}

static remat_status try_split(remat_ctx *ctx, table *x, uint32_t s, uint32_t t, uint32_t split)
{
    const function *p = cell(x, split, t), *q = cell(x, s, split - 1);
    x->work++;
    if (p->n == 0 || q->n == 0) return REMAT_OK;
    const int64_t shift = x->c->stages[split - 1].a, cost = x->before[split] - x->before[s];
    const int64_t need = x->needs.forward[rm_rotor_at(x->n, s, t)];
    int64_t m = p->points[0].m + shift;
    if (q->points[0].m > m) m = q->points[0].m;
    if (need > m) m = need;
    if (is_hopeless(x, m, cost + p->points[p->n - 1].cost + q->points[q->n - 1].cost))
        return REMAT_OK;
    TRY(add(ctx, x, p, shift, q, cost, need));
    return keep_cheaper(ctx, x);
}

static remat_status fill_cell(remat_ctx *ctx, table *x, uint32_t s, uint32_t t)
{
    const remat_stage *stage = &x->c->stages[s];
    const int64_t need_all = x->needs.all[rm_rotor_at(x->n, s, t)];
    x->best.n = 0;
    if (s == t) {
        const point only = {need_all, stage->tf + stage->tb};
        TRY(RM_PUSH(ctx, x->best, only));
    } else if (x->save_all && cell(x, s + 1, t)->n) {
        TRY(add(ctx, x, cell(x, s + 1, t), stage->abar, NULL, stage->tf + stage->tb, need_all));
        TRY(keep_cheaper(ctx, x));
    }
    for (uint32_t split = s + 1; split <= t; split++) TRY(try_split(ctx, x, s, t, split));
    point *kept = rm_arena_get(ctx, &x->arena, x->best.n, sizeof *kept);
    if (!kept) return REMAT_E_MEMORY;
    if (x->best.n) memcpy(kept, x->best.items, x->best.n * sizeof *kept);
    *cell(x, s, t) = (function){kept, (uint32_t)x->best.n};
    return REMAT_OK;
}

/* ---- reading it ---- */

static const point *cell_point(const table *x, uint32_t s, uint32_t t, int64_t m)
{
    const function *f = cell(x, s, t);
    return at(f->points, f->n, m);
}

static uint32_t exact_split(const void *p, uint32_t s, uint32_t t, int64_t m)
{
    const table *x = p;
    if (s == t) return 0;
    const int64_t goal = cell_point(x, s, t, m)->cost;
    const remat_stage *stage = &x->c->stages[s];
    if (x->save_all && m >= x->needs.all[rm_rotor_at(x->n, s, t)]) {
        const point *inner = cell_point(x, s + 1, t, m - stage->abar);
        if (inner && stage->tf + stage->tb + inner->cost == goal) return 0;
    }
    for (uint32_t k = s + 1; k <= t; k++) {
        const point *right = cell_point(x, k, t, m - x->c->stages[k - 1].a);
        const point *left = cell_point(x, s, k - 1, m);
        if (right && left && x->before[k] - x->before[s] + right->cost + left->cost == goal)
            return k;
    }
    assert(false); /* the cell has its cost from one of them */
    return 0;
}

static int64_t exact_a(const void *p, uint32_t l) { return ((const table *)p)->c->stages[l].a; }

static int64_t exact_abar(const void *p, uint32_t l)
{
    return ((const table *)p)->c->stages[l].abar;
}

static remat_status answer(const rm_chain_problem *p, const table *x, rm_chain_result *results)
{
    const rm_rotor_table view = {x->n, x, exact_split, exact_a, exact_abar};
    const function *whole = cell(x, 1, x->n);
    /* That revolve fails, or what it finds, proves nothing of other schedules. */
    const bool proves = x->save_all && rm_chain_is_plain(x->c);
    const point *before = NULL;
    for (uint32_t i = 0; i < p->n_budgets; i++) {
        const int64_t m = p->budgets[i] - x->c->stages[0].a;
        const point *here = at(whole->points, whole->n, m);
        results[i].infeasible = !here && proves;
        if (!here) continue;
        if (here != before) TRY(rm_rotor_offer(p, &view, m, results));
        before = here;
        results[i].optimal = proves && rm_chain_never_grows(x->c);
    }
    if (!p->least || whole->n == 0) return REMAT_OK;
    return rm_rotor_offer(p, &view, whole->points[0].m, results);
}

static remat_status run(const rm_chain_problem *p, table *x, rm_chain_result *results)
{
    remat_ctx *ctx = p->ctx;
    if (!rm_can_afford(ctx, PAIR_WORK * (double)x->n * x->n)) return REMAT_OK; /* no answer */
    TRY(rm_rotor_needs_find(ctx, x->c, &x->needs));
    TRY(RM_SCRATCH(ctx, x->before, (size_t)x->n + 2));
    TRY(RM_SCRATCH(ctx, x->cells, ((size_t)x->n + 1) * (x->n + 1)));
    for (uint32_t l = 1; l <= x->n; l++) x->before[l + 1] = x->before[l] + x->c->stages[l].tf;
    for (uint32_t t = 1; t <= x->n; t++) {
        for (uint32_t s = t; s >= 1; s--) {
            TRY(fill_cell(ctx, x, s, t));
            if (rm_spend(ctx, x->work)) return REMAT_OK; /* no answer: rm_stopped says why */
            x->work = 0;
        }
        rm_report(ctx, x->save_all ? "rotor" : "revolve", (int)(1000 * (uint64_t)t / x->n),
                  REMAT_ABSENT, REMAT_ABSENT);
    }
    return answer(p, x, results);
}

remat_status rm_rotor_exact(const rm_chain_problem *p, bool save_all, rm_chain_result *results)
{
    remat_ctx *ctx = p->ctx;
    table x = {.c = p->chain, .n = p->chain->n_stages + 1, .save_all = save_all};
    remat_status status = run(p, &x, results);
    RM_VEC_FREE(&ctx->heap, x.best);
    RM_VEC_FREE(&ctx->heap, x.sum);
    RM_VEC_FREE(&ctx->heap, x.merged);
    rm_arena_free(&ctx->heap, &x.arena);
    if (rm_is_too_much_memory(ctx, status))
        status = rm_fail(ctx, REMAT_E_APPLIES,
                         "to be exact it takes more memory than memory_bytes allows: use --slots");
    return status;
}
