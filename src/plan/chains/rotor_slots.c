/* rotor_slots.c: the persistent recurrence of rotor.c with memory in slots (slots.c).
 *
 * The table takes L^3 / 6 sums of two vectors over m. It is a min-plus product with itself, and is
 * filled like one:
 *   - D(s, t) = C + (tf^1 + .. + tf^(s-1)) is what is stored. Then the candidate s' = k + 1 is
 *     D(s, k)[m] + D(k + 1, t)[m - a^k] but for a constant of s.
 *   - It goes chunk by chunk of m. Nothing in a chunk depends on a larger m, and what is read again
 *     and again is one chunk of the table, which the caches hold.
 *   - Within a chunk a cell is stored twice, in the order in which each of its two roles reads it.
 *     As a left factor it is in `rows`. As a right factor, already moved by a^k, it is in
 * `columns`, which has room for one chunk only.
 *   - Cells go by tiles of TILE x TILE. Blocks of k between the tile's rows and columns are
 * combined out of two streams. What depends on the tile itself is done last, cell by cell.
 *   - From `hi` on a cell costs what keeping everything costs. Those chunks are skipped.
 *   - Times are floats, exact below 2^24 and within 1e-7 above. Slots round memory far more, and
 *     the schedule is measured in integers.
 *
 * Invariant: when a cell's chunk is filled, those of all cells (s', t') with s <= s' <= t' <= t
 * are. Cost: O(L^3 slots) time, 2 L^2 bytes a slot. */
#include "plan/chains/rotor.h"
#include "plan/chains/slots.h"

#include <math.h>
#include <string.h>

enum {
    TILE = 8,
    CHUNK = 16,       /* slots that are filled at a time: a cache line */
    SUMS_A_WORK = 16, /* sums of the table in one operation of the limits */
    PAIR_WORK = 16,   /* operations of the set-up for each pair of stages */
    TILE_SIZE = TILE * TILE * CHUNK
};

static const double most_work = 8.0 * RM_SECOND; /* where nobody asked for so many slots */

typedef struct cell { /* thresholds in slots */
    uint32_t hi, need_forward, need_all;
    float keep_all; /* D from hi on */
} cell;

typedef struct table {
    uint32_t n;
    rm_slots slots;
    uint32_t n_chunks;
    bool save_all;       /* C_all is allowed: rotor, not revolve */
    uint32_t *a, *abar;  /* in slots, by stage 0 .. n */
    double *before, *tb; /* tf^1 + .. + tf^(l-1); by stage */
    cell *cells;
    size_t chunk_size; /* floats that a chunk of all cells takes */
    float *rows;       /* D(s, t)[m] at position (s, t): chunk after chunk, then tile after tile */
    /* D(k + 1, t)[m - a^k] at position (k, t), for one chunk. Rows and columns of a tile are
     * swapped. */
    float *columns;
} table;

/* Cells of one t lie together, by s. */
static size_t cell_at(uint32_t s, uint32_t t) { return (size_t)t * (t - 1) / 2 + s - 1; }

static inline size_t tile_at(uint32_t s, uint32_t t)
{
    const size_t block_t = (t - 1) / TILE, block_s = (s - 1) / TILE;
    return (block_t * (block_t + 1) / 2 + block_s) * TILE_SIZE;
}

static inline float *row_at(const table *x, uint32_t chunk, uint32_t s, uint32_t t)
{
    return x->rows + chunk * x->chunk_size + tile_at(s, t) +
           ((s - 1) % TILE * TILE + (t - 1) % TILE) * CHUNK;
}

static inline float *column_at(const table *x, uint32_t k, uint32_t t)
{
    return x->columns + tile_at(k, t) + ((t - 1) % TILE * TILE + (k - 1) % TILE) * CHUNK;
}

static inline double value_at(const table *x, uint32_t s, uint32_t t, uint32_t m)
{
    return (double)row_at(x, m / CHUNK, s, t)[m % CHUNK];
}

static inline uint32_t max32(uint32_t a, uint32_t b) { return a > b ? a : b; }
static inline uint32_t min32(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* ---- filling it ---- */

/* Can candidates change anything in this chunk of the cell? */
static inline bool is_open(const cell *here, uint32_t chunk)
{
    return chunk * CHUNK < here->hi && (chunk + 1) * CHUNK > here->need_forward;
}

/* acc[i] = the least of acc[i] and left[k][i] + right[k][i] over the TILE of k. */
static inline void offer_row(float *restrict acc, const float *restrict left,
                             const float *restrict right)
{
    for (size_t i = 0; i < CHUNK; i++) {
        float best = acc[i];
        for (size_t k = 0; k < TILE; k++) { /* unrolled: `best` stays in a register */
            const float v = left[k * CHUNK + i] + right[k * CHUNK + i];
            best = v < best ? v : best;
        }
        acc[i] = best;
    }
}

/* Offers all candidates of the block of k that begins at k0 to every cell of the tile that begins
 * at (s0, t0). */
static inline void offer_block(const table *x, uint32_t chunk, uint32_t s0, uint32_t s1,
                               uint32_t t0, uint32_t t1, uint32_t k0, float *acc)
{
    const float *left = row_at(x, chunk, s0, k0), *right = column_at(x, k0, t0);
    for (uint32_t t = t0; t <= t1; t++) {
        const cell *cells = &x->cells[cell_at(s0, t)];
        for (uint32_t i = 0; i <= s1 - s0; i++)
            if (is_open(&cells[i], chunk))
                offer_row(acc + (i * TILE + (t - t0)) * CHUNK, left + i * TILE * CHUNK,
                          right + (t - t0) * TILE * CHUNK);
    }
}

/* to[i] = D(s, t)[m0 + i - shift], where m0 is the chunk's first slot. Infinite below 0. */
static inline void read_moved(const table *x, uint32_t chunk, uint32_t s, uint32_t t,
                              uint32_t shift, float *restrict to)
{
    const uint32_t whole = shift / CHUNK, rest = shift % CHUNK;
    float both[2 * CHUNK]; /* the chunk that has D(s, t)[m0 - shift], and the next one */
    for (uint32_t i = 0; i < 2 * CHUNK; i++) both[i] = INFINITY;
    if (whole + 1 <= chunk) memcpy(both, row_at(x, chunk - whole - 1, s, t), CHUNK * sizeof *both);
    if (whole <= chunk) memcpy(both + CHUNK, row_at(x, chunk - whole, s, t), CHUNK * sizeof *both);
    memcpy(to, both + CHUNK - rest, CHUNK * sizeof *to);
}

/* to = the lesser of C_ck, which is `splits` less `before`, and of C_all, which is `inner` and tb.
 */
static inline void choose(const cell *here, uint32_t m0, const float *restrict splits, float before,
                          const float *restrict inner, float tb, float *restrict to)
{
    const cell c = *here;
    for (uint32_t i = 0; i < CHUNK; i++) {
        const uint32_t m = m0 + i;
        const float split = m >= c.need_forward ? splits[i] - before : INFINITY;
        const float all = m >= c.need_all ? inner[i] + tb : INFINITY;
        const float least = all < split ? all : split;
        to[i] = m >= c.hi ? c.keep_all : least;
    }
}

/* acc is the best of C_ck. Writes the chunk of the cell (s, t), and the copy of it that right
 * factors read. */
static inline void finish_cell(const table *x, uint32_t chunk, uint32_t s, uint32_t t,
                               const float *acc)
{
    const cell *here = &x->cells[cell_at(s, t)];
    float *to = row_at(x, chunk, s, t), inner[CHUNK];
    const float none = s == t ? (float)x->before[s + 1] : INFINITY;
    if (s < t && x->save_all && chunk * CHUNK < here->hi)
        read_moved(x, chunk, s + 1, t, x->abar[s], inner);
    else
        for (uint32_t i = 0; i < CHUNK; i++) inner[i] = none;
    choose(here, chunk * CHUNK, acc, (float)x->before[s], inner, (float)x->tb[s], to);
    if (s > 1) read_moved(x, chunk, s, t, x->a[s - 1], column_at(x, s - 1, t));
}

/* Fills a chunk of the cells (s, t) with s in [s0, s1] and t in [t0, t1]. All below and to the left
 * of the tile are there. */
RM_MULTIVERSION static void fill_tile(const table *x, uint32_t chunk, uint32_t s0, uint32_t s1,
                                      uint32_t t0, uint32_t t1)
{
    _Alignas(64) float acc[TILE_SIZE];
    for (size_t i = 0; i < TILE_SIZE; i++) acc[i] = INFINITY;
    for (uint32_t k0 = s0 + TILE; k0 < t0; k0 += TILE)
        offer_block(x, chunk, s0, s1, t0, t1, k0, acc);
    for (uint32_t t = t0; t <= t1; t++)
        for (uint32_t s = min32(s1, t); s >= s0 && s > 0; s--) {
            float *here = acc + ((size_t)(s - s0) * TILE + (t - t0)) * CHUNK;
            if (is_open(&x->cells[cell_at(s, t)], chunk)) {
                /* Candidates with a factor in this tile. Those that are no candidates, k < s or
                 * k >= t, have a factor that is not there yet, and so is infinite. */
                offer_row(here, row_at(x, chunk, s, s0), column_at(x, s0, t));
                if (s0 < t0) offer_row(here, row_at(x, chunk, s, t0), column_at(x, t0, t));
            }
            finish_cell(x, chunk, s, t, here);
        }
}

/* False: the limits do not allow all of it. */
static bool fill_chunk(remat_ctx *ctx, const table *x, uint32_t chunk)
{
    float *rows = x->rows + chunk * x->chunk_size;
    for (size_t i = 0; i < x->chunk_size; i++) rows[i] = x->columns[i] = INFINITY;
    for (uint32_t t0 = 1; t0 <= x->n; t0 += TILE) {
        const uint32_t t1 = min32(t0 + TILE - 1, x->n);
        for (uint32_t s0 = t0;; s0 -= TILE) {
            fill_tile(x, chunk, s0, min32(s0 + TILE - 1, x->n), t0, t1);
            const int64_t sums = (int64_t)TILE_SIZE * (t1 - s0 + 1);
            const bool is_last = s0 == 1 && t1 == x->n && chunk + 1 == x->n_chunks;
            if (rm_spend(ctx, sums / SUMS_A_WORK) && !is_last) return false;
            if (s0 == 1) break;
        }
    }
    return true;
}

/* ---- setting it up ---- */

static size_t floats_a_chunk(uint32_t n)
{
    const size_t n_blocks = ((size_t)n + TILE - 1) / TILE;
    return n_blocks * (n_blocks + 1) / 2 * TILE_SIZE;
}

/* Room for floats that begins with a cache line, or NULL. */
static float *lines_of_floats(remat_ctx *ctx, size_t n)
{
    float *p = rm_scratch_raw(ctx, n + CHUNK, sizeof *p);
    if (!p) return NULL;
    const size_t line = CHUNK * sizeof *p;
    return p + (line - (uintptr_t)p % line) % line / sizeof *p;
}

static remat_status make_room(remat_ctx *ctx, table *x)
{
    const size_t n = x->n;
    TRY(RM_SCRATCH(ctx, x->a, n + 1));
    TRY(RM_SCRATCH(ctx, x->abar, n + 1));
    TRY(RM_SCRATCH(ctx, x->before, n + 2));
    TRY(RM_SCRATCH(ctx, x->tb, n + 1));
    TRY(RM_SCRATCH(ctx, x->cells, n * (n + 1) / 2));
    x->n_chunks = (rm_slots_width(&x->slots) + CHUNK - 1) / CHUNK;
    x->chunk_size = floats_a_chunk(x->n);
    x->rows = lines_of_floats(ctx, x->n_chunks * x->chunk_size);
    if (!x->rows) return REMAT_E_MEMORY;
    x->columns = lines_of_floats(ctx, x->chunk_size);
    return x->columns ? REMAT_OK : REMAT_E_MEMORY;
}

static remat_status prepare(remat_ctx *ctx, const remat_chain *c, table *x)
{
    const uint32_t n = x->n, width = rm_slots_width(&x->slots);
    rm_rotor_needs needs;
    double *all_time; /* tf^l + tb^l up to l */
    TRY(rm_rotor_needs_find(ctx, c, &needs));
    TRY(RM_SCRATCH(ctx, all_time, (size_t)n + 1));
    TRY(make_room(ctx, x));
    rm_slots_of_chain(&x->slots, c, x->a, x->abar);
    for (uint32_t l = 1; l <= n; l++) {
        const remat_stage *s = &c->stages[l];
        x->tb[l] = (double)s->tb;
        x->before[l + 1] = x->before[l] + (double)s->tf;
        all_time[l] = all_time[l - 1] + (double)s->tf + (double)s->tb;
    }
    for (uint32_t t = 1; t <= n; t++)
        for (uint32_t s = t; s >= 1; s--) {
            const size_t at = rm_rotor_at(n, s, t);
            cell *here = &x->cells[cell_at(s, t)];
            *here = (cell){width, rm_slots_up(&x->slots, needs.forward[at]),
                           rm_slots_up(&x->slots, needs.all[at]),
                           (float)(x->before[s] + all_time[t] - all_time[s - 1])};
            const uint32_t inner = s == t ? 0 : x->cells[cell_at(s + 1, t)].hi + x->abar[s];
            if (x->save_all || s == t) here->hi = min32(max32(here->need_all, inner), width);
        }
    return REMAT_OK;
}

/* ---- reading it ---- */

static uint32_t split_at(const void *p, uint32_t s, uint32_t t, int64_t slots)
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

static int64_t slots_a(const void *p, uint32_t l) { return ((const table *)p)->a[l]; }
static int64_t slots_abar(const void *p, uint32_t l) { return ((const table *)p)->abar[l]; }

static bool has(const void *p, uint32_t m)
{
    const table *x = p;
    return value_at(x, 1, x->n, m) < INFINITY;
}

static remat_status trace(remat_ctx *ctx, const void *p, int64_t m, rm_schedule *out)
{
    const table *x = p;
    const rm_rotor_table view = {x->n, x, split_at, slots_a, slots_abar};
    return rm_rotor_trace(ctx, &view, m, out);
}

remat_status rm_rotor_slots(const rm_chain_problem *p, bool save_all, rm_chain_result *results)
{
    remat_ctx *ctx = p->ctx;
    table x = {.n = p->chain->n_stages + 1, .save_all = save_all};
    const double n = x.n, floats = (double)floats_a_chunk(x.n);
    const rm_slot_price price = {.bytes_a_slot = floats / CHUNK * sizeof(float),
                                 .bytes = 2 * floats * sizeof(float) +
                                          n * n * (2 * sizeof(int64_t) + sizeof(cell) / 2.0),
                                 .work_a_slot = n * n * n / 6 / SUMS_A_WORK,
                                 .work = PAIR_WORK * n * n,
                                 .most_work = most_work};
    TRY(rm_slots_choose(p, &price, &x.slots));
    if (x.slots.n == 0) return REMAT_OK; /* no answer: rm_stopped says why */
    TRY(prepare(ctx, p->chain, &x));
    for (uint32_t chunk = 0; chunk < x.n_chunks; chunk++) {
        if (!fill_chunk(ctx, &x, chunk)) return REMAT_OK; /* no answer */
        rm_report(ctx, save_all ? "rotor" : "revolve",
                  (int)(1000 * (uint64_t)(chunk + 1) / x.n_chunks), REMAT_ABSENT, REMAT_ABSENT);
    }
    const rm_slot_table view = {&x.slots, &x, x.a[0], has, trace};
    return rm_slots_answer(p, &view, results);
}
