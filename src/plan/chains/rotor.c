/* rotor.c: the best memory-persistent schedule of a chain (Rotor, Theorem 4.8 and Algorithms 3 and
 * 4), and revolve.
 *
 * C(s, t, m) is the least time to run stages s .. t forward and backward with a^(s-1) and delta^t
 * stored and m memory besides a^(s-1). It is the lesser of:
 *   - Fall^s comes first: C_all = tf^s + C(s+1, t, m - abar^s) + tb^s.
 *   - a^(s'-1) is the next activation kept: C_ck, minimised over s', is
 *     sum of tf^s .. tf^(s'-1) + C(s', t, m - a^(s'-1)) + C(s, s'-1, m).
 * revolve is the same without C_all but for s = t (Rotor, section 5.4). It equals the binomial
 * schedule on unit chains.
 *
 * Memory is cut into `slots` (option, default 500) of the largest budget. Sizes are rounded up and
 * budgets down. (The paper rounds sizes down, which can overrun.) Every schedule is measured
 * exactly afterwards. One table answers all smaller budgets.
 *
 * The table takes L^3 / 6 sums of two vectors over m. It is a min-plus product with itself, and is
 * filled like one:
 *   - D(s, t) = C + (tf^1 + .. + tf^(s-1)) is what is stored. Then the candidate s' = k + 1 is
 *     D(s, k)[m] + D(k + 1, t)[m - a^k] but for a constant of s.
 *   - Every cell is stored twice, in the order in which each of its two roles reads it. As a left
 *     factor it is in `rows`. As a right factor, already moved by a^k, it is in `columns`.
 *   - Cells go by tiles of TILE x TILE. Blocks of k between the tile's rows and columns are
 *     combined chunk by chunk of m, out of two streams. What depends on the tile itself is done
 *     last, cell by cell.
 *   - From `hi` on a cell costs what keeping everything costs. Those chunks are skipped.
 *   - Times are floats, exact below 2^24 and within 1e-7 above. Slots round memory far more, and
 *     the schedule is measured in integers.
 *
 * slots = 0 (rotor_exact.c) is exact where abar >= a and delta = a. Elsewhere Theorem 4.8 may ask
 * too much of a forward: its threshold is over all forwards up to t, wherever the split. Brute
 * force found 4 chains in 100,000 with free delta that fit into less. So infeasibility is not
 * claimed there. */
#include "plan/chains/rotor.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    TILE = 8,
    CHUNK = 64,            /* slots that are combined at a time */
    SUMS_A_WORK = 16,      /* sums of the table in one operation of the limits */
    PAIR_WORK = 16,        /* operations of the set-up for each pair of stages */
    FEWEST_SLOTS = 16,     /* with fewer a table says nothing */
    CELLS_A_LOOK = 1 << 22 /* of an empty table, between two looks at the clock */
};

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
        /* Over the forwards s .. t-1: without keeps, and with those of a first pass. */
        int64_t widest = 0, widest_kept = 0;
        for (uint32_t t = s; t <= n; t++) {
            const remat_stage *x = &c->stages[s], *y = &c->stages[t];
            const int64_t kept_now = t == n ? kept[s] : kept[t];
            out->forward[rm_rotor_at(n, s, t)] =
                y->delta + (t == n ? widest_kept : widest + kept[t]);
            out->all[rm_rotor_at(n, s, t)] =
                larger(y->delta + x->abar + x->of + kept_now,
                       x->delta + c->stages[s - 1].delta + x->abar + x->ob + kept[s]);
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
    /* Every frame below the top stands for a different stage or its backward. */
    const size_t room = 2 * (size_t)t->n + 2;
    TRY(RM_SCRATCH(ctx, stack, room));
    stack[depth++] = (frame){1, t->n, m, false};
    while (depth) {
        assert(depth < room); /* one frame goes, two may come */
        const frame f = stack[--depth];
        if (f.only_backward) {
            TRY(rm_chain_step(ctx, out, REMAT_B, f.s));
            continue;
        }
        const uint32_t split = t->split(t->table, f.s, f.t, f.m);
        if (split == 0) {
            TRY(rm_chain_step(ctx, out, REMAT_F_ALL, f.s));
            stack[depth++] = (frame){f.s, f.s, 0, true};
            if (f.s < f.t)
                stack[depth++] = (frame){f.s + 1, f.t, f.m - t->abar(t->table, f.s), false};
            continue;
        }
        for (uint32_t l = f.s; l < split; l++)
            TRY(rm_chain_step(ctx, out, l == f.s ? REMAT_F_CK : REMAT_F_NONE, l));
        stack[depth++] = (frame){f.s, split - 1, f.m, false};
        stack[depth++] = (frame){split, f.t, f.m - t->a(t->table, split - 1), false};
    }
    return REMAT_OK;
}

remat_status rm_rotor_offer(const rm_chain_problem *p, const rm_rotor_table *t, int64_t m,
                            rm_chain_result *results)
{
    rm_schedule steps = {0};
    remat_status status = rm_rotor_trace(p->ctx, t, m, &steps);
    if (status == REMAT_OK) status = rm_chain_offer(p, results, &steps);
    RM_VEC_FREE(&p->ctx->heap, steps);
    return status;
}

/* ---- the slotted table ---- */

typedef struct cell { /* thresholds in slots */
    uint32_t hi, need_forward, need_all;
    double keep_all; /* D from hi on */
} cell;

typedef struct table {
    uint32_t n;
    uint32_t width;      /* slots + 1 */
    uint32_t n_chunks;   /* whole chunks, to which a cell is padded with infinity */
    bool save_all;       /* C_all is allowed: rotor, not revolve */
    uint32_t *a, *abar;  /* in slots, by stage 0 .. n */
    double *before, *tb; /* tf^1 + .. + tf^(l-1); by stage */
    cell *cells;
    float *rows; /* D(s, t)[m] at position (s, t) */
    /* D(k + 1, t)[m - a^k] at position (k, t). Rows and columns of a tile are swapped. */
    float *columns;
    int64_t budget_bytes;
} table;

/* Cells of one t lie together, by s. */
static size_t cell_at(uint32_t s, uint32_t t) { return (size_t)t * (t - 1) / 2 + s - 1; }

/* Both copies have tiles by block of t, then of s. A tile has chunk after chunk, and a chunk row
 * after row. The padding keeps the chunks of one cell out of each other's cache sets. */
enum { CHUNK_BLOCK = TILE * TILE * CHUNK + 16 };

static inline size_t tile_at(const table *x, uint32_t s, uint32_t t)
{
    const size_t block_t = (t - 1) / TILE, block_s = (s - 1) / TILE;
    return (block_t * (block_t + 1) / 2 + block_s) * x->n_chunks * CHUNK_BLOCK;
}

static inline float *row_chunk(const table *x, uint32_t s, uint32_t t, uint32_t chunk)
{
    return x->rows + tile_at(x, s, t) + (size_t)chunk * CHUNK_BLOCK +
           ((s - 1) % TILE * TILE + (t - 1) % TILE) * CHUNK;
}

static inline float *column_chunk(const table *x, uint32_t k, uint32_t t, uint32_t chunk)
{
    return x->columns + tile_at(x, k, t) + (size_t)chunk * CHUNK_BLOCK +
           ((t - 1) % TILE * TILE + (k - 1) % TILE) * CHUNK;
}

static inline double value_at(const table *x, uint32_t s, uint32_t t, uint32_t m)
{
    return (double)row_chunk(x, s, t, m / CHUNK)[m % CHUNK];
}

static rm_uint128 budget_of(const table *x)
{
    return (rm_uint128)(x->budget_bytes > 0 ? x->budget_bytes : 1);
}

/* Rounded up. More than all slots is one more than all. */
static uint32_t to_slots(const table *x, int64_t bytes)
{
    const rm_uint128 budget = budget_of(x);
    const rm_uint128 slots = ((rm_uint128)bytes * (x->width - 1) + budget - 1) / budget;
    return slots < x->width ? (uint32_t)slots : x->width;
}

/* Rounded down. More than all slots is all. */
static uint32_t slots_within(const table *x, int64_t bytes)
{
    const rm_uint128 slots = (rm_uint128)bytes * (x->width - 1) / budget_of(x);
    return slots < x->width ? (uint32_t)slots : x->width - 1;
}

static inline uint32_t max32(uint32_t a, uint32_t b) { return a > b ? a : b; }
static inline uint32_t min32(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Offers the candidates k in [k0, k1] to the cell (s, t), one by one. */
static inline void offer_each(const table *x, uint32_t s, uint32_t t, uint32_t k0, uint32_t k1,
                              float *restrict acc)
{
    const cell *here = &x->cells[cell_at(s, t)];
    for (uint32_t k = k0; k <= k1; k++)
        for (uint32_t chunk = here->need_forward / CHUNK;
             chunk < x->n_chunks && chunk * CHUNK < here->hi; chunk++) {
            const float *restrict left = row_chunk(x, s, k, chunk);
            const float *restrict right = column_chunk(x, k, t, chunk);
            float *restrict to = acc + (size_t)chunk * CHUNK;
            for (uint32_t i = 0; i < CHUNK; i++)
                to[i] = left[i] + right[i] < to[i] ? left[i] + right[i] : to[i];
        }
}

/* Offers all candidates of the block of k that begins at k0 to every cell of the tile that begins
 * at (s0, t0). */
static inline void offer_block(const table *x, uint32_t s0, uint32_t s1, uint32_t t0, uint32_t t1,
                               uint32_t k0, float *acc)
{
    for (uint32_t chunk = 0; chunk < x->n_chunks; chunk++)
        for (uint32_t s = s0; s <= s1; s++)
            for (uint32_t t = t0; t <= t1; t++) {
                const cell *here = &x->cells[cell_at(s, t)];
                if (chunk * CHUNK >= here->hi || (chunk + 1) * CHUNK <= here->need_forward)
                    continue;
                const float *restrict left = row_chunk(x, s, k0, chunk);
                const float *restrict right = column_chunk(x, k0, t, chunk);
                float *restrict to =
                    acc + (((size_t)(s - s0) * TILE + (t - t0)) * x->n_chunks + chunk) * CHUNK;
                for (uint32_t i = 0; i < CHUNK; i++) {
                    float best = to[i];
                    for (uint32_t k = 0; k < TILE; k++) { /* unrolled: `best` stays in a register */
                        const float v = left[k * CHUNK + i] + right[k * CHUNK + i];
                        best = v < best ? v : best;
                    }
                    to[i] = best;
                }
            }
}

/* acc is the best of C_ck, and `line` holds D(s + 1, t). The cell (s, t) replaces it there, and
 * goes to both copies. */
static inline void finish_cell(const table *x, uint32_t s, uint32_t t, const float *acc,
                               float *line, float *scratch)
{
    const cell *here = &x->cells[cell_at(s, t)];
    for (uint32_t m = 0; m < x->width; m++) {
        double v = m >= here->need_forward ? (double)acc[m] - x->before[s] : INFINITY;
        if ((s == t || x->save_all) && m >= here->need_all && (s == t || m >= x->abar[s])) {
            const double all =
                x->tb[s] + (s == t ? x->before[s + 1] : (double)line[m - x->abar[s]]);
            if (all < v) v = all;
        }
        scratch[m] = (float)(m >= here->hi ? here->keep_all : v);
    }
    memcpy(line, scratch, x->width * sizeof *line);
    for (uint32_t chunk = 0; chunk < x->n_chunks; chunk++) {
        memcpy(row_chunk(x, s, t, chunk), line + (size_t)chunk * CHUNK, CHUNK * sizeof *line);
        if (s == 1) continue;
        const uint32_t m0 = chunk * CHUNK, shift = x->a[s - 1];
        const uint32_t skip = shift > m0 ? min32(shift - m0, CHUNK) : 0; /* stays infinite */
        if (skip < CHUNK)
            memcpy(column_chunk(x, s - 1, t, chunk) + skip, line + (m0 + skip - shift),
                   (CHUNK - skip) * sizeof *line);
    }
}

typedef struct desk {
    float *acc;     /* by cell of the tile: the best candidates */
    float *lines;   /* by t of the tile: the cell below */
    float *scratch; /* one more line */
} desk;

/* Fills the cells (s, t) with s in [s0, s1] and t in [t0, t1]. All below and to the left of the
 * tile are there. */
RM_MULTIVERSION static void fill_tile(const table *x, uint32_t s0, uint32_t s1, uint32_t t0,
                                      uint32_t t1, const desk *w)
{
    const size_t line_size = (size_t)x->n_chunks * CHUNK;
    for (size_t i = 0; i < TILE * TILE * line_size; i++) w->acc[i] = INFINITY;
    for (uint32_t k0 = s0 + TILE; k0 < t0; k0 += TILE) offer_block(x, s0, s1, t0, t1, k0, w->acc);
    for (uint32_t t = t0; t <= t1; t++)
        for (uint32_t s = min32(s1, t); s >= s0 && s > 0; s--) {
            float *here = w->acc + ((size_t)(s - s0) * TILE + (t - t0)) * line_size;
            /* Here D(k + 1, t) is in the tile, or just below it. */
            if (s < t) offer_each(x, s, t, s, min32(s1, t - 1), here);
            /* Here D(s, k) is in the tile. */
            if (s1 < t0 && t > t0) offer_each(x, s, t, t0, t - 1, here);
            finish_cell(x, s, t, here, w->lines + (t - t0) * line_size, w->scratch);
        }
}

static remat_status fill(remat_ctx *ctx, table *x)
{
    const size_t line_size = (size_t)x->n_chunks * CHUNK;
    desk w;
    TRY(RM_SCRATCH(ctx, w.acc, TILE * TILE * line_size));
    TRY(RM_SCRATCH(ctx, w.lines, TILE * line_size));
    TRY(RM_SCRATCH(ctx, w.scratch, line_size));
    for (uint32_t t0 = 1; t0 <= x->n; t0 += TILE) {
        const uint32_t t1 = min32(t0 + TILE - 1, x->n);
        for (size_t i = 0; i < TILE * line_size; i++) w.lines[i] = INFINITY;
        for (uint32_t s0 = t0;; s0 -= TILE) {
            fill_tile(x, s0, min32(s0 + TILE - 1, x->n), t0, t1, &w);
            const int64_t sums = (int64_t)TILE * TILE * (t1 - s0 + 1) * (int64_t)line_size;
            const bool is_last = s0 == 1 && t1 == x->n;
            if (rm_spend(ctx, sums / SUMS_A_WORK) && !is_last)
                return REMAT_OK; /* cell (1, n) stays infinite: no answer */
            if (s0 == 1) break;
        }
        rm_report(ctx, x->save_all ? "rotor" : "revolve", (int)(1000 * (uint64_t)t1 / x->n),
                  REMAT_ABSENT, REMAT_ABSENT);
    }
    return REMAT_OK;
}

/* Two empty copies of the table: every cell is infinite, unless it is late already. */
static remat_status make_copies(remat_ctx *ctx, table *x)
{
    const size_t n_blocks = ((size_t)x->n + TILE - 1) / TILE;
    const size_t size = n_blocks * (n_blocks + 1) / 2 * x->n_chunks * CHUNK_BLOCK;
    x->rows = rm_scratch_raw(ctx, size, sizeof *x->rows);
    if (!x->rows) return REMAT_E_MEMORY;
    x->columns = rm_scratch_raw(ctx, size, sizeof *x->columns);
    if (!x->columns) return REMAT_E_MEMORY;
    for (size_t i = 0; i < size; i++) {
        if (i % CELLS_A_LOOK == 0 && rm_is_late(ctx)) break;
        x->rows[i] = INFINITY;
        x->columns[i] = INFINITY;
    }
    return REMAT_OK;
}

static remat_status prepare(remat_ctx *ctx, const remat_chain *c, table *x)
{
    const size_t n = x->n, n_cells = n * (n + 1) / 2;
    rm_rotor_needs needs;
    double *all_time; /* tf^l + tb^l up to l */
    TRY(rm_rotor_needs_find(ctx, c, &needs));
    TRY(RM_SCRATCH(ctx, x->a, n + 1));
    TRY(RM_SCRATCH(ctx, x->abar, n + 1));
    TRY(RM_SCRATCH(ctx, x->before, n + 2));
    TRY(RM_SCRATCH(ctx, x->tb, n + 1));
    TRY(RM_SCRATCH(ctx, x->cells, n_cells));
    TRY(RM_SCRATCH(ctx, all_time, n + 1));
    TRY(make_copies(ctx, x));
    for (uint32_t l = 0; l <= n; l++) {
        const remat_stage *s = &c->stages[l];
        x->a[l] = to_slots(x, s->a);
        x->abar[l] = to_slots(x, s->abar);
        x->tb[l] = (double)s->tb;
        if (l == 0) continue;
        x->before[l + 1] = x->before[l] + (double)s->tf;
        all_time[l] = all_time[l - 1] + (double)s->tf + (double)s->tb;
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
    if (x->save_all && m >= here->need_all && m >= x->abar[s])
        best = x->tb[s] + value_at(x, s + 1, t, m - x->abar[s]);
    for (uint32_t k = s + 1; k <= t && m >= here->need_forward; k++) {
        if (m < x->a[k - 1]) continue;
        const double value =
            value_at(x, k, t, m - x->a[k - 1]) + value_at(x, s, k - 1, m) - x->before[s];
        if (value >= best) continue;
        best = value;
        split = k;
    }
    return split;
}

static int64_t slotted_a(const void *p, uint32_t l) { return ((const table *)p)->a[l]; }
static int64_t slotted_abar(const void *p, uint32_t l) { return ((const table *)p)->abar[l]; }

static remat_status answer(const rm_chain_problem *p, const table *x, rm_chain_result *results)
{
    const rm_rotor_table view = {x->n, x, slotted_split, slotted_a, slotted_abar};
    int64_t m_before = -1;
    for (uint32_t i = 0; i < p->n_budgets; i++) {
        const int64_t m = (int64_t)slots_within(x, p->budgets[i]) - x->a[0];
        if (m < 0 || m == m_before || value_at(x, 1, x->n, (uint32_t)m) == INFINITY) continue;
        m_before = m;
        TRY(rm_rotor_offer(p, &view, m, results));
    }
    if (!p->least) return REMAT_OK;
    uint32_t least = 0;
    while (least < x->width && value_at(x, 1, x->n, least) == INFINITY) least++;
    return least < x->width ? rm_rotor_offer(p, &view, least, results) : REMAT_OK;
}

/* As many slots as asked for, or fewer if memory or the limits allow no more. 0: none at all. */
static remat_status choose_slots(const rm_chain_problem *p, int64_t *slots)
{
    remat_ctx *ctx = p->ctx;
    const double n = p->chain->n_stages + 1, asked = (double)ctx->options.slots;
    const double fixed = n * n * (2 * sizeof(int64_t) + sizeof(cell) / 2.0);
    const double bytes_a_slot = (n + TILE) * (n + TILE) * sizeof(float);
    const double by_memory = (0.9 * (double)rm_memory_left(ctx) - fixed) / bytes_a_slot - CHUNK;
    const double work_a_slot = n * n * n / 6 / SUMS_A_WORK;
    const double by_work = (rm_affordable(ctx) - PAIR_WORK * n * n) / work_a_slot;
    const double least = asked < FEWEST_SLOTS ? asked : FEWEST_SLOTS;
    *slots = 0;
    if (by_memory < least)
        return rm_fail(ctx, REMAT_E_APPLIES,
                       "a table of %u stages takes more memory than memory_bytes allows",
                       p->chain->n_stages);
    if (by_work < least) {
        (void)rm_can_afford(ctx, INFINITY); /* notes the reason for rm_stopped */
        return REMAT_OK;
    }
    const double most = by_memory < by_work ? by_memory : by_work;
    *slots = (int64_t)(most < asked ? most : asked);
    if (most < asked && !p->judge)
        rm_warn(ctx, "memory is cut into %" PRId64 " slots: the limits allow no more", *slots);
    return REMAT_OK;
}

static remat_status slotted(const rm_chain_problem *p, bool save_all, rm_chain_result *results)
{
    int64_t slots;
    TRY(choose_slots(p, &slots));
    if (slots == 0) return REMAT_OK; /* no answer: rm_stopped says why */
    table x = {.n = p->chain->n_stages + 1,
               .width = (uint32_t)slots + 1,
               .save_all = save_all,
               .budget_bytes = p->budgets[p->n_budgets - 1]};
    x.n_chunks = (x.width + CHUNK - 1) / CHUNK;
    TRY(prepare(p->ctx, p->chain, &x));
    if (rm_is_late(p->ctx)) return REMAT_OK; /* the table may not even be empty */
    TRY(fill(p->ctx, &x));
    return answer(p, &x, results);
}

/* ---- the rows ---- */

static remat_status run_chain(const rm_chain_problem *p, bool save_all, rm_chain_result *results)
{
    if (p->ctx->options.slots) TRY(slotted(p, save_all, results));
    else TRY(rm_rotor_exact(p, save_all, results));
    return rm_chain_offer_least(p, results);
}

static remat_status rotor_chain(const rm_chain_problem *p, rm_chain_result *results)
{
    /* Slots may round keep-all away where it just fits. */
    TRY(rm_keep_all.run_chain(p, results));
    return run_chain(p, true, results);
}

static remat_status revolve_chain(const rm_chain_problem *p, rm_chain_result *results)
{
    return run_chain(p, false, results);
}

static remat_status rotor_graph(const rm_problem *p, rm_incumbent *best)
{
    return rm_run_by_chain(p, best, &rm_rotor);
}

static remat_status revolve_graph(const rm_problem *p, rm_incumbent *best)
{
    return rm_run_by_chain(p, best, &rm_revolve);
}

const rm_planner rm_rotor = {.entry = {"rotor", "best memory-persistent chain schedule (Rotor)"},
                             .default_work = RM_NO_LIMIT,
                             .run = rotor_graph,
                             .run_chain = rotor_chain,
                             .heeds = "slots"};
const rm_planner rm_revolve = {
    .entry = {"revolve",
              "only activations are checkpoints; each stage saved right before its backward"},
    .default_work = RM_NO_LIMIT,
    .run = revolve_graph,
    .run_chain = revolve_chain,
    .heeds = "slots"};
