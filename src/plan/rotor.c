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
 * The table is L^3 / 6 sums of two vectors over m, a min-plus product with itself, and is filled like one: what is stored is
 * D(s, t) = C + (tf^1 + .. + tf^(s-1)), so that a candidate is D(s', t)[m - a] + D(s, s'-1)[m] but for a constant of s. Cells go by tiles
 * of TILE x TILE; all s' between the tile's rows and columns are taken in groups of TILE, packed side by side and combined in chunks
 * of m that stay in the first-level cache; what depends on the tile itself is done last, cell by cell. From `hi` on a cell costs what
 * keeping everything costs: those chunks are skipped. Times are floats, exact below 2^24 and within 1e-7 above: slots round memory
 * far more, and the schedule is measured in integers. slots = 0 is exact. */
#include "plan/rotor.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { TILE = 16, CHUNK = 32 };

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

typedef struct cell { /* thresholds in slots */
    uint32_t hi, need_forward, need_all;
    double keep_all; /* D from hi on */
} cell;

typedef struct table {
    uint32_t n, width, stride; /* width = slots + 1; stride: of a cell's vector, padded with infinity to whole chunks */
    bool save_all;
    uint32_t *a, *abar;  /* in slots, by stage 0 .. n */
    double *before, *tb; /* tf^1 + .. + tf^(l-1); by stage */
    cell *cells;
    float *d;
    float *nothing; /* a vector of infinity */
    int64_t budget_bytes;
} table;

/* Cells of one t lie together, by s. */
static size_t cell_at(uint32_t s, uint32_t t) { return (size_t)t * (t - 1) / 2 + s - 1; }
static float *vector(const table *x, uint32_t s, uint32_t t) { return x->d + cell_at(s, t) * x->stride; }

/* Rounded up; more than all slots is one more than all. */
static uint32_t to_slots(const table *x, int64_t bytes)
{
    const rm_uint128 budget = (rm_uint128)(x->budget_bytes > 0 ? x->budget_bytes : 1);
    const rm_uint128 slots = ((rm_uint128)bytes * (x->width - 1) + budget - 1) / budget;
    return slots < x->width ? (uint32_t)slots : x->width;
}

static inline uint32_t max32(uint32_t a, uint32_t b) { return a > b ? a : b; }
static inline uint32_t min32(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Offers the splits in [k0, k1] to acc, the cell (s, t). */
static inline void offer_splits(const table *x, uint32_t s, uint32_t t, uint32_t k0, uint32_t k1, float *restrict acc)
{
    const uint32_t end = min32(x->cells[cell_at(s, t)].hi, x->width);
    for (uint32_t k = k0; k <= k1; k++) {
        const float *p = vector(x, k, t), *q = vector(x, s, k - 1);
        const uint32_t a = x->a[k - 1];
        for (uint32_t m = a; m < end; m++) acc[m] = p[m - a] + q[m] < acc[m] ? p[m - a] + q[m] : acc[m];
    }
}

/* A group of up to TILE splits, packed: chunk by chunk, for each row or column of the tile, the group's vectors side by side. */
typedef struct pack {
    float *rows, *columns;
} pack;
/* A chunk's block is padded, so that the chunks of one vector do not share cache sets. */
static inline size_t packed(uint32_t m0, uint32_t i, uint32_t k)
{
    return (size_t)(m0 / CHUNK) * (TILE * TILE * CHUNK + 16) + (i * TILE + k) * CHUNK;
}

static inline void pack_vector(const table *x, const float *from, uint32_t shift, uint32_t i, uint32_t k, float *to)
{
    for (uint32_t m0 = 0; m0 < x->width; m0 += CHUNK) {
        float *chunk = to + packed(m0, i, k);
        const uint32_t skip = shift > m0 ? min32(shift - m0, CHUNK) : 0;
        for (uint32_t j = 0; j < skip; j++) chunk[j] = INFINITY;
        if (skip == 0) memcpy(chunk, from + (m0 - shift), CHUNK * sizeof *chunk);
        else if (skip < CHUNK) memcpy(chunk + skip, from + (m0 + skip - shift), (CHUNK - skip) * sizeof *chunk);
    }
}

/* The packed group offered to every cell of the tile. */
static inline void offer_group(const table *x, uint32_t s0, uint32_t s1, uint32_t t0, uint32_t t1, const pack *group,
                               float *acc)
{
    for (uint32_t m0 = 0; m0 < x->width; m0 += CHUNK)
        for (uint32_t s = s0; s <= s1; s++)
            for (uint32_t t = t0; t <= t1; t++) {
                const cell *here = &x->cells[cell_at(s, t)];
                if (m0 >= here->hi || m0 + CHUNK <= here->need_forward) continue;
                float *restrict to = acc + ((size_t)(s - s0) * TILE + (t - t0)) * x->stride + m0;
                const float *restrict p = group->columns + packed(m0, t - t0, 0), *restrict q =
                                                                                      group->rows + packed(m0, s - s0, 0);
                for (uint32_t i = 0; i < CHUNK; i++) {
                    float best = to[i];
                    for (uint32_t k = 0; k < TILE; k++) { /* unrolled: `best` stays in a register */
                        const float v = p[k * CHUNK + i] + q[k * CHUNK + i];
                        best = v < best ? v : best;
                    }
                    to[i] = best;
                }
            }
}

/* The candidate C_all, the thresholds, and the constants: acc becomes the cell. */
static inline void finish_cell(const table *x, uint32_t s, uint32_t t, const float *acc)
{
    const cell *here = &x->cells[cell_at(s, t)];
    float *d = vector(x, s, t);
    const float *inner = s < t ? vector(x, s + 1, t) : NULL;
    for (uint32_t m = 0; m < x->width; m++) {
        double v = m >= here->need_forward ? (double)acc[m] - x->before[s] : INFINITY;
        if ((s == t || x->save_all) && m >= here->need_all && m >= (inner ? x->abar[s] : 0)) {
            const double all = x->tb[s] + (inner ? (double)inner[m - x->abar[s]] : x->before[s + 1]);
            if (all < v) v = all;
        }
        d[m] = (float)(m >= here->hi ? here->keep_all : v);
    }
}

/* Cells (s, t) with s in [s0, s1] and t in [t0, t1]; all to the right of and above the tile are there. */
RM_MULTIVERSION static void fill_tile(const table *x, uint32_t s0, uint32_t s1, uint32_t t0, uint32_t t1, const pack *group,
                                      float *acc)
{
    for (size_t i = 0; i < (size_t)TILE * TILE * x->stride; i++) acc[i] = INFINITY;
    for (uint32_t k0 = s1 + 1; k0 <= t0; k0 += TILE) {
        const uint32_t k1 = min32(k0 + TILE - 1, t0);
        for (uint32_t k = k0; k <= k1; k++) {
            for (uint32_t t = t0; t <= t1; t++) pack_vector(x, vector(x, k, t), x->a[k - 1], t - t0, k - k0, group->columns);
            for (uint32_t s = s0; s <= s1; s++) pack_vector(x, vector(x, s, k - 1), 0, s - s0, k - k0, group->rows);
        }
        for (uint32_t k = k1 + 1; k < k0 + TILE; k++) /* the last group may be short */
            for (uint32_t t = t0; t <= t1; t++) pack_vector(x, x->nothing, 0, t - t0, k - k0, group->columns);
        offer_group(x, s0, s1, t0, t1, group, acc);
    }
    for (uint32_t t = t0; t <= t1; t++)
        for (uint32_t s = min32(s1, t); s >= s0 && s > 0; s--) {
            float *here = acc + ((size_t)(s - s0) * TILE + (t - t0)) * x->stride;
            offer_splits(x, s, t, s + 1, min32(s1, t), here);  /* D(s', t) is in the tile */
            offer_splits(x, s, t, max32(t0, s1) + 1, t, here); /* D(s, s'-1) is */
            finish_cell(x, s, t, here);
        }
}

static remat_status fill(remat_ctx *ctx, table *x)
{
    const size_t group_size = (size_t)TILE * TILE * x->stride;
    float *acc;
    pack group;
    TRY(RM_SCRATCH(ctx, acc, group_size));
    TRY(RM_SCRATCH(ctx, group.rows, group_size));
    TRY(RM_SCRATCH(ctx, group.columns, group_size));
    for (uint32_t t0 = 1; t0 <= x->n; t0 += TILE) {
        const uint32_t t1 = min32(t0 + TILE - 1, x->n);
        for (uint32_t s1 = t1; s1 >= 1; s1 = s1 > TILE ? (s1 - 1) / TILE * TILE : 0)
            fill_tile(x, (s1 - 1) / TILE * TILE + 1, s1, t0, t1, &group, acc);
        if (rm_spend(ctx, (int64_t)t1 * TILE) && t1 < x->n) return REMAT_OK; /* cell (1, n) stays infinite: no answer */
        rm_report(ctx, x->save_all ? "rotor" : "revolve", (int)(1000 * (uint64_t)t1 / x->n), REMAT_ABSENT, REMAT_ABSENT);
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
    TRY(RM_SCRATCH(ctx, x->d, n_cells * x->stride));
    TRY(RM_SCRATCH(ctx, x->nothing, x->stride));
    for (uint32_t m = 0; m < x->stride; m++) x->nothing[m] = INFINITY;
    double *all_time; /* tf^l + tb^l up to l */
    TRY(RM_SCRATCH(ctx, all_time, n + 1));
    for (size_t i = 0; i < n_cells * x->stride; i++) x->d[i] = INFINITY;
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
            *here = (cell){x->width, to_slots(x, needs.forward[at]), to_slots(x, needs.all[at]),
                           x->before[s] + all_time[t] - all_time[s - 1]};
            const uint32_t inner = s == t ? 0 : x->cells[cell_at(s + 1, t)].hi + x->abar[s];
            if (x->save_all || s == t) here->hi = min32(max32(here->need_all, inner), x->width);
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
    if (x->save_all && m >= here->need_all && m >= x->abar[s]) best = x->tb[s] + (double)vector(x, s + 1, t)[m - x->abar[s]];
    for (uint32_t k = s + 1; k <= t && m >= here->need_forward; k++) {
        if (m < x->a[k - 1]) continue;
        const double value = (double)vector(x, k, t)[m - x->a[k - 1]] + (double)vector(x, s, k - 1)[m] - x->before[s];
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
        if (m < 0 || m == m_before || vector(x, 1, x->n)[m] == INFINITY) continue;
        m_before = m;
        steps.n = 0;
        status = rm_rotor_trace(p->ctx, &view, m, &steps);
        if (status == REMAT_OK) status = rm_chain_offer(p, results, &steps);
    }
    uint32_t least = 0;
    while (least < x->width && vector(x, 1, x->n)[least] == INFINITY) least++;
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
    x.stride = (x.width + CHUNK - 1) / CHUNK * CHUNK + 16; /* not a power of two: cells would share cache sets */
    const double bytes = (double)x.n * (x.n + 1) / 2 * x.stride * sizeof *x.d;
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
    TRY(p->ctx->options.slots ? slotted(p, save_all, results) : rm_rotor_exact(p, save_all, results));
    return rm_chain_offer_least(p, results);
}

static remat_status rotor_chain(const rm_chain_problem *p, rm_chain_result *results)
{
    TRY(rm_keep_all.run_chain(p, results)); /* which slots may round away where it just fits */
    return run_chain(p, true, results);
}
static remat_status revolve_chain(const rm_chain_problem *p, rm_chain_result *results) { return run_chain(p, false, results); }
static remat_status rotor_graph(const rm_problem *p, rm_incumbent *best) { return rm_run_by_chain(p, best, &rm_rotor); }
static remat_status revolve_graph(const rm_problem *p, rm_incumbent *best) { return rm_run_by_chain(p, best, &rm_revolve); }

const rm_planner rm_rotor = {{"rotor", "best memory-persistent chain schedule (Rotor)"}, INT64_MAX, rotor_graph, rotor_chain};
const rm_planner rm_revolve = {{"revolve", "only activations are checkpoints; each stage saved right before its backward"},
                               INT64_MAX,
                               revolve_graph,
                               revolve_chain};
