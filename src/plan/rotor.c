/* rotor.c: the best memory-persistent schedule of a chain (Rotor, Theorem 4.8 and Algorithms 3 and 4), and revolve.
 *
 * C(s, t, m) is the least time to run stages s .. t forward and backward with a^(s-1) and delta^t stored and m memory besides
 * a^(s-1). Either Fall^s first: C_all = tf^s + C(s+1, t, m - abar^s) + tb^s; or a^(s'-1) is the next activation kept:
 * C_ck = sum of tf^s .. tf^(s'-1) + C(s', t, m - a^(s'-1)) + C(s, s'-1, m), minimised over s'. revolve is the same without
 * C_all but for s = t (Rotor, section 5.4), and equals the binomial schedule on unit chains.
 *
 * Memory is cut into `slots` (option, default 500) of the largest budget: sizes are rounded up, budgets down (the paper rounds
 * sizes down, which can overrun), and every schedule is measured exactly afterwards. One table answers all smaller budgets.
 *
 * The table is L^3 / 6 sums of two vectors over m. What makes it fast:
 * - Instead of C it stores D(s, t) = C + (tf^1 + .. + tf^(s-1)), so that the inner loop is min(acc, D(s', t)[m - a] + C(s, s'-1)[m]);
 * - it goes by tiles of TILE values of s and BLOCK values of m: the rows C(s, .) of a tile stay in cache, and each vector
 *   D(s', t) is read once per tile;
 * - below `lo` a cell is infinite, from `hi` on it costs what keeping everything costs: both are skipped.
 * Times are doubles, which are exact below 2^53; doubles choose, but the schedule is measured in integers. */
#include "plan/rotor.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { TILE = 4, BLOCK = 64 };

/* ---- thresholds ---- */

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

remat_status rm_rotor_needs_find(remat_ctx *ctx, const remat_chain *c, rm_rotor_needs *out)
{
    const uint32_t n = c->n_stages + 1;
    int64_t *kept; /* keep^1 + .. + keep^l */
    out->n = n;
    TRY(RM_SCRATCH(ctx, kept, (size_t)n + 1));
    TRY(RM_SCRATCH(ctx, out->forward, ((size_t)n + 1) * (n + 1)));
    TRY(RM_SCRATCH(ctx, out->all, ((size_t)n + 1) * (n + 1)));
    for (uint32_t l = 1; l <= n; l++) kept[l] = kept[l - 1] + c->stages[l].keep;
    for (uint32_t s = 1; s <= n; s++) {
        int64_t widest = 0, widest_kept = 0; /* over the forwards s .. t-1: without keeps, and with those of a first pass */
        for (uint32_t t = s; t <= n; t++) {
            const remat_stage *x = &c->stages[s], *y = &c->stages[t];
            const int64_t kept_now = t == n ? kept[s] : kept[t];
            out->forward[rm_rotor_at(n, s, t)] = y->delta + (t == n ? widest_kept : widest + kept[t]);
            out->all[rm_rotor_at(n, s, t)] =
                larger(y->delta + x->abar + x->of + kept_now, x->delta + c->stages[s - 1].delta + x->abar + x->ob + kept[s]);
            const int64_t run = y->a + y->of + (t > s ? c->stages[t - 1].a : 0);
            widest = larger(widest, run);
            widest_kept = larger(widest_kept, run + kept[t]);
        }
    }
    return REMAT_OK;
}

/* ---- reading a schedule off a table ---- */

typedef struct frame {
    uint32_t s, t;
    int64_t m;
    bool only_backward;
} frame;

remat_status rm_rotor_trace(remat_ctx *ctx, const rm_rotor_table *t, int64_t m, rm_schedule *out)
{
    frame *stack;
    size_t depth = 0;
    TRY(RM_SCRATCH(ctx, stack,
                   2 * (size_t)t->n + 2)); /* every frame below the top stands for a different stage or its backward */
    stack[depth++] = (frame){1, t->n, m, false};
    while (depth) {
        const frame f = stack[--depth];
        if (f.only_backward) {
            TRY(rm_chain_step(ctx, out, REMAT_B, f.s));
            continue;
        }
        const uint32_t split = t->split(t->table, f.s, f.t, f.m);
        if (split == 0) {
            TRY(rm_chain_step(ctx, out, REMAT_F_ALL, f.s));
            stack[depth++] = (frame){f.s, f.s, 0, true};
            if (f.s < f.t) stack[depth++] = (frame){f.s + 1, f.t, f.m - t->abar(t->table, f.s), false};
            continue;
        }
        for (uint32_t l = f.s; l < split; l++) TRY(rm_chain_step(ctx, out, l == f.s ? REMAT_F_CK : REMAT_F_NONE, l));
        stack[depth++] = (frame){f.s, split - 1, f.m, false};
        stack[depth++] = (frame){split, f.t, f.m - t->a(t->table, split - 1), false};
    }
    return REMAT_OK;
}

/* ---- the slotted table ---- */

typedef struct cell {
    uint32_t lo, hi, need_forward, need_all;
    double keep_all;
} cell; /* in slots; keep_all: the least D there is */

typedef struct table {
    uint32_t n, width; /* width = slots + 1 */
    bool save_all;
    uint32_t *a, *abar;  /* in slots, by stage 0 .. n */
    double *before, *tb; /* tf^1 + .. + tf^(l-1); by stage */
    cell *cells;
    double *d; /* width of them by cell */
    int64_t budget_bytes;
} table;

/* Cells of one t lie together, by s. */
static size_t cell_at(uint32_t s, uint32_t t) { return (size_t)t * (t - 1) / 2 + s - 1; }

/* Rounded up; more than all slots is one more than all. */
static uint32_t to_slots(const table *x, int64_t bytes)
{
    const rm_uint128 budget = (rm_uint128)(x->budget_bytes > 0 ? x->budget_bytes : 1);
    const rm_uint128 slots = ((rm_uint128)bytes * (x->width - 1) + budget - 1) / budget;
    return slots < x->width ? (uint32_t)slots : x->width;
}

static inline void relax(double *restrict acc, const double *restrict p, const double *restrict q, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const double x = p[i] + q[i];
        acc[i] = x < acc[i] ? x : acc[i];
    }
}

static inline uint32_t max32(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* Offers C_ck with s' = split to acc, which holds D(s, t) for m in [m0, m1). `row` is C(s, split - 1) for the same m. */
static inline void offer_split(const table *x, uint32_t s, uint32_t t, uint32_t split, uint32_t m0, uint32_t m1,
                               const double *row, double *acc)
{
    const cell *right = &x->cells[cell_at(split, t)], *left = &x->cells[cell_at(s, split - 1)],
               *here = &x->cells[cell_at(s, t)];
    const uint32_t a = x->a[split - 1];
    const uint32_t from = max32(max32(m0, here->need_forward), max32(right->lo + a, left->lo));
    if (from < m1) relax(acc + (from - m0), x->d + cell_at(split, t) * x->width + (from - a), row + (from - m0), m1 - from);
}

static inline void finish_cell(const table *x, uint32_t s, uint32_t t, uint32_t m0, uint32_t m1, uint32_t end, double *acc,
                               double *row)
{
    cell *here = &x->cells[cell_at(s, t)];
    if (s == t || x->save_all) {
        const cell *inner = s < t ? &x->cells[cell_at(s + 1, t)] : NULL;
        const double *d = inner ? x->d + cell_at(s + 1, t) * x->width : NULL;
        const uint32_t from = max32(max32(m0, here->need_all), inner ? inner->lo + x->abar[s] : 0);
        for (uint32_t m = from; m < m1; m++) {
            const double value = x->tb[s] + (d ? d[m - x->abar[s]] : x->before[s + 1]);
            if (value < acc[m - m0]) acc[m - m0] = value;
        }
    }
    for (uint32_t m = m1; m < end; m++) acc[m - m0] = here->keep_all;
    double *to = x->d + cell_at(s, t) * x->width + m0;
    for (uint32_t i = 0; i < end - m0; i++) {
        to[i] = acc[i];
        row[i] = acc[i] - x->before[s];
    }
    for (uint32_t i = 0; i < end - m0 && here->lo == x->width; i++)
        if (acc[i] < INFINITY) here->lo = m0 + i;
}

/* Cells (s, t) for s in [first, last] and m in [m0, end): all cells with larger s, or smaller m, are there. rows: C(s, t) of this block, by s - first and t. */
RM_MULTIVERSION static void fill_tile(const table *x, uint32_t first, uint32_t last, uint32_t m0, uint32_t end, double *rows)
{
    double acc[TILE][BLOCK];
    const size_t row_size = (size_t)(x->n + 1) * BLOCK;
    for (uint32_t t = first; t <= x->n; t++) {
        uint32_t m1[TILE];
        const uint32_t top = last < t ? last : t;
        for (uint32_t s = first; s <= top; s++) {
            const uint32_t hi = x->cells[cell_at(s, t)].hi;
            m1[s - first] = hi < end ? max32(hi, m0) : end;
            for (uint32_t i = 0; i < BLOCK; i++) acc[s - first][i] = INFINITY;
        }
        for (uint32_t split = last + 1; split <= t; split++)
            for (uint32_t s = first; s <= top; s++)
                offer_split(x, s, t, split, m0, m1[s - first], rows + (s - first) * row_size + (size_t)(split - 1) * BLOCK,
                            acc[s - first]);
        for (uint32_t s = top; s >= first; s--) {
            double *row = rows + (s - first) * row_size;
            for (uint32_t split = s + 1; split <= top; split++)
                offer_split(x, s, t, split, m0, m1[s - first], row + (size_t)(split - 1) * BLOCK, acc[s - first]);
            finish_cell(x, s, t, m0, m1[s - first], end, acc[s - first], row + (size_t)t * BLOCK);
        }
    }
}

static remat_status fill(remat_ctx *ctx, table *x)
{
    double *rows;
    TRY(RM_SCRATCH(ctx, rows, (size_t)TILE * (x->n + 1) * BLOCK));
    for (uint32_t last = x->n; last >= 1; last = last > TILE ? last - TILE : 0) {
        const uint32_t first = last > TILE ? last - TILE + 1 : 1;
        for (uint32_t m0 = 0; m0 < x->width; m0 += BLOCK)
            fill_tile(x, first, last, m0, m0 + BLOCK < x->width ? m0 + BLOCK : x->width, rows);
        if (rm_spend(ctx, (int64_t)x->n * x->n / 2) && first > 1) return REMAT_OK; /* cell (1, n) stays infinite: no answer */
        rm_report(ctx, x->save_all ? "rotor" : "revolve", (int)(1000 * (uint64_t)(x->n - first + 1) / x->n), REMAT_ABSENT,
                  REMAT_ABSENT);
    }
    return REMAT_OK;
}

static remat_status prepare(remat_ctx *ctx, const remat_chain *c, table *x)
{
    const size_t n = x->n, n_cells = n * (n + 1) / 2;
    rm_rotor_needs needs;
    TRY(rm_rotor_needs_find(ctx, c, &needs));
    TRY(RM_SCRATCH(ctx, x->a, n + 1));
    TRY(RM_SCRATCH(ctx, x->abar, n + 1));
    TRY(RM_SCRATCH(ctx, x->before, n + 2));
    TRY(RM_SCRATCH(ctx, x->tb, n + 1));
    TRY(RM_SCRATCH(ctx, x->cells, n_cells));
    TRY(RM_SCRATCH(ctx, x->d, n_cells * x->width));
    for (uint32_t m = 0; m < x->width; m++) x->d[cell_at(1, x->n) * x->width + m] = INFINITY;
    double *all_time; /* tf^l + tb^l up to l */
    TRY(RM_SCRATCH(ctx, all_time, n + 1));
    for (uint32_t l = 0; l <= n; l++) {
        const remat_stage *s = &c->stages[l];
        x->a[l] = to_slots(x, s->a);
        x->abar[l] = to_slots(x, s->abar);
        x->tb[l] = (double)s->tb;
        if (l) x->before[l + 1] = x->before[l] + (double)s->tf, all_time[l] = all_time[l - 1] + (double)s->tf + (double)s->tb;
    }
    for (uint32_t t = 1; t <= n; t++)
        for (uint32_t s = t; s >= 1; s--) {
            const size_t at = rm_rotor_at(x->n, s, t);
            cell *here = &x->cells[cell_at(s, t)];
            *here = (cell){x->width, x->width, to_slots(x, needs.forward[at]), to_slots(x, needs.all[at]),
                           x->before[s] + all_time[t] - all_time[s - 1]};
            const uint32_t inner = s == t ? 0 : x->cells[cell_at(s + 1, t)].hi + x->abar[s];
            if (x->save_all || s == t) here->hi = max32(here->need_all, inner);
            if (here->hi > x->width) here->hi = x->width;
        }
    return REMAT_OK;
}

/* ---- reading it ---- */

static uint32_t slotted_split(const void *p, uint32_t s, uint32_t t, int64_t slots)
{
    const table *x = p;
    const uint32_t m = (uint32_t)slots;
    if (s == t) return 0;
    const cell *here = &x->cells[cell_at(s, t)];
    double best = INFINITY;
    uint32_t split = 0;
    if (x->save_all && m >= here->need_all && m >= x->abar[s])
        best = x->tb[s] + x->d[cell_at(s + 1, t) * x->width + (m - x->abar[s])];
    for (uint32_t k = s + 1; k <= t && m >= here->need_forward; k++) {
        if (m < x->a[k - 1]) continue;
        const double value =
            x->d[cell_at(k, t) * x->width + (m - x->a[k - 1])] + x->d[cell_at(s, k - 1) * x->width + m] - x->before[s];
        if (value < best) best = value, split = k;
    }
    return split;
}

static int64_t slotted_a(const void *p, uint32_t l) { return ((const table *)p)->a[l]; }
static int64_t slotted_abar(const void *p, uint32_t l) { return ((const table *)p)->abar[l]; }

static remat_status answer(const rm_chain_problem *p, const table *x, rm_chain_result *results)
{
    const rm_rotor_table view = {x->n, x, slotted_split, slotted_a, slotted_abar};
    rm_schedule steps = {0};
    remat_status status = REMAT_OK;
    int64_t m_before = -1;
    for (uint32_t i = 0; i < p->n_budgets && status == REMAT_OK; i++) {
        const rm_uint128 slots =
            (rm_uint128)p->budgets[i] * (x->width - 1) / (rm_uint128)(x->budget_bytes > 0 ? x->budget_bytes : 1);
        const int64_t m = (int64_t)(slots < x->width ? slots : x->width - 1) - x->a[0];
        if (m < 0 || m == m_before || x->d[cell_at(1, x->n) * x->width + (size_t)m] == INFINITY) continue;
        m_before = m;
        steps.n = 0;
        status = rm_rotor_trace(p->ctx, &view, m, &steps);
        if (status == REMAT_OK) status = rm_chain_offer(p, results, &steps);
    }
    const uint32_t least = x->cells[cell_at(1, x->n)].lo;
    if (status == REMAT_OK && p->least && least < x->width) {
        steps.n = 0;
        status = rm_rotor_trace(p->ctx, &view, least, &steps);
        if (status == REMAT_OK) status = rm_chain_offer(p, results, &steps);
    }
    RM_VEC_FREE(&p->ctx->heap, steps);
    return status;
}

static remat_status slotted(const rm_chain_problem *p, bool save_all, rm_chain_result *results)
{
    const int64_t slots = p->ctx->options.slots;
    table x = {.n = p->chain->n_stages + 1,
               .width = (uint32_t)slots + 1,
               .save_all = save_all,
               .budget_bytes = p->budgets[p->n_budgets - 1]};
    const double bytes = (double)x.n * (x.n + 1) / 2 * x.width * sizeof *x.d;
    if (bytes > 8e9)
        return rm_fail(p->ctx, REMAT_E_APPLIES, "a table of %u stages and %" PRId64 " slots takes %.0f GB: use fewer --slots",
                       x.n - 1, slots, bytes / 1e9);
    TRY(prepare(p->ctx, p->chain, &x));
    TRY(fill(p->ctx, &x));
    return answer(p, &x, results);
}

/* ---- the rows ---- */

static remat_status run_chain(const rm_chain_problem *p, bool save_all, rm_chain_result *results)
{
    return p->ctx->options.slots ? slotted(p, save_all, results) : rm_rotor_exact(p, save_all, results);
}

static remat_status rotor_chain(const rm_chain_problem *p, rm_chain_result *results) { return run_chain(p, true, results); }
static remat_status revolve_chain(const rm_chain_problem *p, rm_chain_result *results) { return run_chain(p, false, results); }
static remat_status rotor_graph(const rm_problem *p, rm_incumbent *best) { return rm_run_by_chain(p, best, &rm_rotor); }
static remat_status revolve_graph(const rm_problem *p, rm_incumbent *best) { return rm_run_by_chain(p, best, &rm_revolve); }

const rm_planner rm_rotor = {{"rotor", "best memory-persistent chain schedule (Rotor)"}, INT64_MAX, rotor_graph, rotor_chain};
const rm_planner rm_revolve = {{"revolve", "only activations are checkpoints; each stage saved right before its backward"},
                               INT64_MAX,
                               revolve_graph,
                               revolve_chain};
