/* rotor_exact.c: the persistent recurrence of rotor.c without slots, in integers.
 *
 * C(s, t, .) is a step function of memory: it changes at finitely many m only. A sum of two cells
 * is a merge of their points. The minimum over s' is a merge that keeps what is strictly cheaper.
 * One run gives the optimal cost for every budget at once.
 *
 * A cell can have many points (the sums of arbitrary sizes). The work limit counts points read. A
 * candidate s' is read from where it begins, and no further than to where the best so far costs no
 * more than the candidate ever will. Most are nowhere cheaper, and then nothing is written. There
 * are no points beyond the largest budget.
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
    int64_t most;    /* memory besides a^0 that is asked for: no point lies behind it */
    points best, merged;
    int64_t work;   /* points read since the last look at the limits, and splits looked at */
    int64_t spent;  /* all of it until then */
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

/* A candidate for a cell: cost + p(m - shift) + q(m), from m = least on. */
typedef struct candidate {
    const function *p, *q;
    int64_t shift, cost, least;
} candidate;

static candidate make_candidate(const function *p, int64_t shift, const function *q, int64_t cost,
                                int64_t need)
{
    assert(p->n > 0 && q->n > 0);
    candidate f = {p, q, shift, cost, need};
    if (p->points[0].m + shift > f.least) f.least = p->points[0].m + shift;
    if (q->points[0].m > f.least) f.least = q->points[0].m;
    return f;
}

/* Where a candidate is being read: the points of p and q that hold at m, and its cost there. Behind
 * the last point m is INT64_MAX. */
typedef struct reader {
    const candidate *f;
    uint32_t i, j;
    int64_t m, cost;
} reader;

static inline void read_cost(reader *r)
{
    r->cost = r->f->cost + r->f->p->points[r->i].cost + r->f->q->points[r->j].cost;
}

static reader read_begin(const candidate *f)
{
    reader r = {.f = f, .m = f->least};
    r.i = (uint32_t)(at(f->p->points, f->p->n, r.m - f->shift) - f->p->points);
    r.j = (uint32_t)(at(f->q->points, f->q->n, r.m) - f->q->points);
    read_cost(&r);
    return r;
}

static inline void read_next(reader *r)
{
    const function *p = r->f->p, *q = r->f->q;
    const int64_t next_p = r->i + 1 < p->n ? p->points[r->i + 1].m + r->f->shift : INT64_MAX;
    const int64_t next_q = r->j + 1 < q->n ? q->points[r->j + 1].m : INT64_MAX;
    r->m = next_p < next_q ? next_p : next_q;
    if (r->m == INT64_MAX) return;
    r->i += next_p == r->m;
    r->j += next_q == r->m;
    read_cost(r);
}

/* The first point of x->best that costs no more, or x->best.n. */
static size_t first_no_dearer(const table *x, int64_t cost)
{
    size_t lo = 0, hi = x->best.n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (x->best.items[mid].cost > cost) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

/* Moves the reader to where the candidate is cheaper than x->best for the first time. It is nowhere
 * cheaper from m = end on. *behind: the first point of x->best with a larger m than the reader's.
 */
static bool find_cheaper(const table *x, reader *r, int64_t end, size_t *behind)
{
    const point *best = x->best.items;
    const point *holds = at(best, x->best.n, r->m);
    size_t k = holds ? (size_t)(holds - best) + 1 : 0;
    for (; r->m < end; read_next(r)) {
        while (k < x->best.n && best[k].m <= r->m) k++;
        if (k == 0 || r->cost < best[k - 1].cost) break;
    }
    *behind = k;
    return r->m < end;
}

/* x->merged gets x->best up to `last`, and from the reader on the lesser of both. */
static void merge(table *x, reader *r, size_t behind, size_t last, int64_t end)
{
    const point *best = x->best.items;
    point *to = x->merged.items;
    size_t n = behind, k = behind;
    if (n && best[n - 1].m == r->m) n--; /* the candidate takes its place */
    if (n) memcpy(to, best, n * sizeof *to);
    int64_t cheapest = n ? to[n - 1].cost : INT64_MAX;
    while (k < last || r->m < end) {
        const bool from_best = r->m >= end || (k < last && best[k].m < r->m);
        const point here = from_best ? best[k++] : (point){r->m, r->cost};
        if (!from_best) read_next(r);
        if (here.cost >= cheapest) continue;
        /* Two points at one m: the second is the cheaper. */
        if (n && to[n - 1].m == here.m) n--;
        to[n++] = here;
        cheapest = here.cost;
    }
    x->merged.n = n;
}

/* x->best = the lesser of x->best and the candidate. */
static remat_status keep_cheaper(remat_ctx *ctx, table *x, const candidate *f)
{
    const uint32_t n_p = f->p->n, n_q = f->q->n;
    const int64_t least = f->cost + f->p->points[n_p - 1].cost + f->q->points[n_q - 1].cost;
    size_t last = first_no_dearer(x, least), behind;
    int64_t end = last < x->best.n ? x->best.items[last].m : INT64_MAX;
    if (end > x->most) end = x->most + 1;
    x->work++;
    if (f->least >= end) return REMAT_OK; /* nowhere cheaper */
    reader r = read_begin(f);
    const uint32_t begin = r.i + r.j;
    if (find_cheaper(x, &r, end, &behind)) {
        x->merged.n = 0;
        TRY(RM_RESERVE(ctx, x->merged, x->best.n + n_p + n_q));
        merge(x, &r, behind, last, end);
        const size_t n = x->merged.n;
        if (last < x->best.n && x->best.items[last].cost >= x->merged.items[n - 1].cost) last++;
        memcpy(x->merged.items + n, x->best.items + last, (x->best.n - last) * sizeof(point));
        x->merged.n += x->best.n - last;
        x->work += (int64_t)x->merged.n;
        const points swap = x->best;
        x->best = x->merged;
        x->merged = swap;
    }
    x->work += r.i + r.j - begin;
    return REMAT_OK;
}

static remat_status try_split(remat_ctx *ctx, table *x, uint32_t s, uint32_t t, uint32_t split)
{
    const function *p = cell(x, split, t), *q = cell(x, s, split - 1);
    if (p->n == 0 || q->n == 0) return REMAT_OK;
    const candidate f =
        make_candidate(p, x->c->stages[split - 1].a, q, x->before[split] - x->before[s],
                       x->needs.forward[rm_rotor_at(x->n, s, t)]);
    return keep_cheaper(ctx, x, &f);
}

static remat_status fill_cell(remat_ctx *ctx, table *x, uint32_t s, uint32_t t)
{
    static const point free_of_charge = {INT64_MIN, 0};
    static const function nothing = {&free_of_charge, 1};
    const remat_stage *stage = &x->c->stages[s];
    const int64_t need_all = x->needs.all[rm_rotor_at(x->n, s, t)];
    x->best.n = 0;
    if (s == t) {
        const point only = {need_all, stage->tf + stage->tb};
        if (need_all <= x->most) TRY(RM_PUSH(ctx, x->best, only));
    } else if (x->save_all && cell(x, s + 1, t)->n) {
        const candidate f = make_candidate(cell(x, s + 1, t), stage->abar, &nothing,
                                           stage->tf + stage->tb, need_all);
        TRY(keep_cheaper(ctx, x, &f));
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

/* Offers the schedule of C(1, n, m). */
static remat_status offer(const rm_chain_problem *p, const table *x, int64_t m,
                          rm_chain_result *results)
{
    const rm_rotor_table view = {x->n, x, exact_split, exact_a, exact_abar};
    rm_schedule steps = {0};
    remat_status status = rm_rotor_trace(p->ctx, &view, m, &steps);
    if (status == REMAT_OK) status = rm_chain_offer(p, results, &steps);
    RM_VEC_FREE(&p->ctx->heap, steps);
    return status;
}

static remat_status answer(const rm_chain_problem *p, const table *x, rm_chain_result *results)
{
    const function *whole = cell(x, 1, x->n);
    /* That revolve fails, or what it finds, proves nothing of other schedules. */
    const bool proves = x->save_all && rm_chain_is_plain(x->c);
    const point *before = NULL;
    for (uint32_t i = 0; i < p->n_budgets; i++) {
        const int64_t m = p->budgets[i] - x->c->stages[0].a;
        const point *here = at(whole->points, whole->n, m);
        results[i].infeasible |= !here && proves;
        if (!here) continue;
        if (here != before) TRY(offer(p, x, m, results));
        before = here;
        results[i].optimal |= proves && rm_chain_never_grows(x->c);
    }
    if (!p->least || whole->n == 0) return REMAT_OK;
    return offer(p, x, whole->points[0].m, results);
}

/* Would the whole table take more? Work grows at least with the cube of the columns filled. */
static bool would_pass(const table *x, uint32_t columns, int64_t most_work)
{
    const double times = (double)x->n / columns;
    return (double)x->spent * times * times * times > (double)most_work;
}

/* *done: all of the table was filled. If not, most_work is why, or else rm_stopped. */
static remat_status fill(remat_ctx *ctx, table *x, int64_t most_work, bool *done)
{
    for (uint32_t t = 1; t <= x->n; t++) {
        for (uint32_t s = t; s >= 1; s--) {
            TRY(fill_cell(ctx, x, s, t));
            x->spent += x->work;
            if (rm_spend(ctx, x->work)) return REMAT_OK;
            x->work = 0;
        }
        if (most_work != RM_NO_LIMIT && would_pass(x, t, most_work)) return REMAT_OK;
        rm_report(ctx, x->save_all ? "rotor" : "revolve", (int)(1000 * (uint64_t)t / x->n),
                  REMAT_ABSENT, REMAT_ABSENT);
    }
    *done = true;
    return REMAT_OK;
}

static remat_status run(const rm_chain_problem *p, table *x, int64_t most_work,
                        rm_chain_result *results, bool *done)
{
    remat_ctx *ctx = p->ctx;
    const double set_up = PAIR_WORK * (double)x->n * x->n;
    if (set_up > (double)most_work || !rm_can_afford(ctx, set_up)) return REMAT_OK; /* no answer */
    TRY(rm_rotor_needs_find(ctx, x->c, &x->needs));
    TRY(RM_SCRATCH(ctx, x->before, (size_t)x->n + 2));
    TRY(RM_SCRATCH(ctx, x->cells, ((size_t)x->n + 1) * (x->n + 1)));
    for (uint32_t l = 1; l <= x->n; l++) x->before[l + 1] = x->before[l] + x->c->stages[l].tf;
    TRY(fill(ctx, x, most_work, done));
    return *done ? answer(p, x, results) : REMAT_OK;
}

remat_status rm_rotor_exact(const rm_chain_problem *p, bool save_all, int64_t most_work,
                            rm_chain_result *results, bool *done)
{
    remat_ctx *ctx = p->ctx;
    const rm_mark mark = rm_scratch_mark(ctx);
    table x = {.c = p->chain,
               .n = p->chain->n_stages + 1,
               .save_all = save_all,
               .most = p->budgets[p->n_budgets - 1] - p->chain->stages[0].a};
    if (p->least) x.most = RM_MAX_SUM; /* the lowest peak of revolve may be above keep-all's */
    *done = false;
    remat_status status = run(p, &x, most_work, results, done);
    RM_VEC_FREE(&ctx->heap, x.best);
    RM_VEC_FREE(&ctx->heap, x.merged);
    rm_arena_free(&ctx->heap, &x.arena);
    rm_scratch_release(ctx, mark);
    if (rm_is_too_much_memory(ctx, status))
        status = rm_fail(ctx, REMAT_E_APPLIES,
                         "to be exact it takes more memory than memory_bytes allows: use --slots");
    return status;
}
