/* mincut.c: fusion-aware min-cut checkpointing ("Transcending Runtime-Memory Tradeoffs in
 * Checkpointing by Being Fusion Aware"), with and without a budget. Also the two strategies that
 * the paper compares it with: save inputs only, and save the inputs of every layer.
 *
 * Without a budget this is the paper: the storages whose writing and reading costs least
 * (saved_cut.c, recompute_rules.c), as a schedule (saved_steps.c). It minimises traffic between the
 * passes, not the additive cost that plans report.
 *
 * The paper has no budget. With one:
 *   - Saving costs bytes. Running an op again costs L times its cost. Every ban but those that keep
 *     results right becomes that price.
 *   - For L from high to low the cuts are nested and move away from the backward pass: the cheapest
 *     ops run again first, then dearer ones.
 *   - Each cut becomes schedules with shorter and shorter holds. All are simulated. The cheapest
 *     that fits is taken, or the lowest peak.
 *   - A cut knows nothing of the memory that running again takes. Where a whole network runs again
 *     that is as much as was saved. So the sweep is repeated with the storages of 2, 4, 8, ...
 *     evenly spread cut points free, which makes segments.
 *   - Between the last L that did not fit and the first that did, a bisection looks for more.
 *
 * Invariant: every saved set is tried once (by a hash of it: a collision costs a candidate, not
 * correctness). Work is steps simulated, values and reads seen, and arcs scanned. One cut is
 * O(flow), one schedule O(ops + edges) but for short holds. */
#include "graph/cuts.h"
#include "plan/cut/recompute_rules.h"
#include "plan/cut/saved_steps.h"
#include "plan/planner.h"

#include <string.h>

enum {
    OCTAVES = 12,   /* L goes from 2^12 to 2^-12 times bytes / cost of all, then it is 0 */
    UNIT_BITS = 32, /* levels are L in units of 2^-32 */
    BISECTIONS = 6, /* between two octaves */
    STEP_WORK = 4   /* operations to write and to measure a step */
};

typedef struct sweep {
    const rm_problem *p;
    remat_ctx *ctx;
    const remat_graph *g;
    rm_incumbent *best;
    rm_recompute_rules rules;
    rm_cut_space space;
    uint8_t *saved;                  /* by root value */
    uint8_t *runs_once;              /* by op: whatever it costs */
    int64_t *price;                  /* by root value: bytes that saving it takes */
    int64_t *run_again;              /* by op */
    int64_t total_bytes, total_cost; /* of V_f */
    bool slanted;                    /* price_runs */
    rm_schedule steps;
    RM_VEC(uint64_t) seen; /* hashes of the saved sets tried */
} sweep;

static remat_status begin(const rm_problem *p, rm_incumbent *best, sweep *s)
{
    *s = (sweep){.p = p, .ctx = p->ctx, .g = p->graph, .best = best};
    TRY(rm_recompute_rules_find(s->ctx, s->g, &s->rules));
    TRY(rm_cut_space_new(s->ctx, s->g, &s->space));
    TRY(RM_SCRATCH(s->ctx, s->saved, s->g->n_values));
    return REMAT_OK;
}

/* Offers one schedule of the saved set at hand. *fits becomes true if it fits. */
static remat_status try_hold(sweep *s, uint32_t hold, bool *fits)
{
    s->steps.n = 0;
    TRY(rm_saved_steps(s->ctx, s->g, &s->rules, s->saved, hold, &s->steps));
    rm_spend(s->ctx, STEP_WORK * (int64_t)(s->steps.n + s->g->n_in + s->g->n_values));
    if (s->steps.n == 0 && s->g->n_ops > 0) return REMAT_OK; /* too many steps */
    TRY(rm_offer(s->p, s->best, &s->steps));
    *fits |= rm_fits(s->p, s->best->offered_peak_bytes);
    return REMAT_OK;
}

/* ---- without a budget ---- */

/* The saved set of a problem becomes the one at hand. *found: the limits left time for that. */
static remat_status cut(sweep *s, const rm_cut_problem *problem, bool *found)
{
    rm_saved saved;
    const rm_mark mark = rm_scratch_mark(s->ctx);
    const remat_status status = rm_saved_cut(&s->space, problem, &saved);
    *found = status == REMAT_OK && saved.capacity != REMAT_ABSENT;
    if (*found) {
        memset(s->saved, 0, s->g->n_values);
        for (uint32_t i = 0; i < saved.n_values; i++) s->saved[saved.values[i]] = 1;
    }
    rm_scratch_release(s->ctx, mark);
    return status;
}

static remat_status cut_plain(sweep *s, bool *found)
{
    const rm_cut_problem problem = rm_cut_by_rules(&s->rules);
    return cut(s, &problem, found);
}

/* ---- with one ---- */

static remat_status price_bytes(sweep *s)
{
    const remat_graph *g = s->g;
    TRY(RM_SCRATCH(s->ctx, s->price, g->n_values));
    TRY(RM_SCRATCH(s->ctx, s->run_again, g->n_ops));
    TRY(RM_SCRATCH(s->ctx, s->runs_once, g->n_ops));
    for (uint32_t i = 0; i < s->rules.n_inside; i++) {
        const uint32_t op = s->rules.inside[i];
        s->runs_once[op] = rm_must_run_once(s->rules.ban[op]);
        s->total_cost += g->cost[op]; /* total_cost of the graph is below 2^62 */
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
            if (g->out_source[k] == REMAT_NONE) s->price[g->out[k]] = g->storage[g->out[k]];
    }
    /* Outputs are there to the end anyway. */
    for (uint32_t i = 0; i < g->n_outputs; i++) s->price[g->root[g->outputs[i]]] = 0;
    for (uint32_t v = 0; v < g->n_values; v++) s->total_bytes += s->price[v];
    return REMAT_OK;
}

/* Prices of running again at L = level / 2^32. An op of the backward trace runs there for the first
 * time, which is free. A slant makes later ops dearer, up to twice. Without it the layers of a
 * network, which are all alike, would change sides all at once. With it the first ones do so
 * first, as their storages stay longest. */
static void price_runs(sweep *s, int64_t level)
{
    for (uint32_t i = 0; i < s->rules.n_inside; i++) {
        const uint32_t op = s->rules.inside[i];
        rm_uint128 price = (rm_uint128)s->g->cost[op] * (rm_uint128)level >> UNIT_BITS;
        if (price > (rm_uint128)s->total_bytes) price = (rm_uint128)s->total_bytes + 1;
        if (s->slanted) price += price * i / s->rules.n_inside;
        const bool late = s->g->phase[op] == REMAT_BACKWARD || op > s->rules.boundary;
        s->run_again[op] = late ? 0 : (int64_t)price;
    }
}

static remat_status is_new(sweep *s, bool *result)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (uint32_t v = 0; v < s->g->n_values; v++)
        if (s->saved[v]) hash = (hash ^ v) * UINT64_C(1099511628211);
    *result = true;
    for (size_t i = 0; i < s->seen.n; i++)
        if (s->seen.items[i] == hash) *result = false;
    return *result ? RM_PUSH(s->ctx, s->seen, hash) : REMAT_OK;
}

/* All holds of the saved set at hand. */
static remat_status try_saved(sweep *s, bool *fits)
{
    bool fresh;
    TRY(is_new(s, &fresh));
    if (!fresh) return REMAT_OK;
    TRY(try_hold(s, RM_HOLD_ALL, fits));
    for (uint32_t hold = s->rules.n_outside / 2; !rm_is_over(s->ctx); hold /= 4) {
        TRY(try_hold(s, hold, fits));
        if (hold == 0) break;
    }
    return REMAT_OK;
}

/* *fits: one of the schedules did. */
static remat_status try_level(sweep *s, int64_t level, bool *fits)
{
    bool found;
    rm_cut_problem problem = rm_cut_by_rules(&s->rules);
    problem.price = s->price;
    problem.run_again = s->run_again;
    problem.banned = s->runs_once;
    *fits = false;
    price_runs(s, level);
    TRY(cut(s, &problem, &found));
    return found ? try_saved(s, fits) : REMAT_OK;
}

/* 2^octave times bytes / cost of all, and 0 below the last octave. */
static int64_t level_of(const sweep *s, int octave)
{
    if (s->total_cost == 0 || octave < -OCTAVES) return 0;
    const rm_uint128 middle = ((rm_uint128)s->total_bytes << UNIT_BITS) / (rm_uint128)s->total_cost;
    const rm_uint128 level = octave >= 0 ? middle << octave : middle >> -octave;
    return level > (rm_uint128)RM_MAX_SUM ? RM_MAX_SUM : (int64_t)level;
}

/* One family of nested cuts: L from high to low, then between the highest that fitted and the one
 * above it. */
static remat_status try_levels(sweep *s)
{
    int64_t fitting = -1, above = -1, previous = -1; /* -1: none */
    bool fits;
    for (int octave = OCTAVES; octave >= -OCTAVES - 1 && !rm_is_over(s->ctx); octave--) {
        const int64_t level = level_of(s, octave);
        TRY(try_level(s, level, &fits));
        if (fits && fitting < 0) {
            fitting = level;
            above = previous;
        }
        previous = level;
    }
    if (fitting < 0) return REMAT_OK;
    for (int i = 0; i < BISECTIONS && above - fitting > 1 && !rm_is_over(s->ctx); i++) {
        const int64_t half = fitting + (above - fitting) / 2;
        TRY(try_level(s, half, &fits));
        if (fits) fitting = half;
        else above = half;
    }
    return REMAT_OK;
}

/* Swaps the prices of the storages of about n_segments evenly spread cut points with `other`. That
 * is 0 at first, so they cost nothing to save. A second call brings the prices back. */
static void swap_prices(sweep *s, const rm_cuts *cuts, uint32_t n_segments, int64_t *other)
{
    for (uint64_t i = 0; i < cuts->n_cuts; i++) {
        if (i * n_segments / cuts->n_cuts == (i + 1) * n_segments / cuts->n_cuts) continue;
        const uint32_t v = cuts->cuts[i].storage;
        const int64_t price = s->price[v];
        s->price[v] = other[v];
        other[v] = price;
    }
}

static remat_status try_families(sweep *s)
{
    rm_cuts cuts;
    int64_t *other_prices; /* by root value */
    bool found, fits = false;
    TRY(cut_plain(s, &found));
    if (found) TRY(try_saved(s, &fits));
    TRY(price_bytes(s));
    TRY(rm_cuts_find(s->ctx, s->g, &cuts));
    TRY(RM_SCRATCH(s->ctx, other_prices, s->g->n_values));
    for (uint32_t n = 1; !rm_is_over(s->ctx); n = n < cuts.n_cuts / 2 ? 2 * n : cuts.n_cuts) {
        if (n > 1) swap_prices(s, &cuts, n, other_prices);
        for (int slant = 0; slant < 2; slant++) {
            s->slanted = slant;
            TRY(try_levels(s));
        }
        if (n > 1) swap_prices(s, &cuts, n, other_prices);
        rm_report(s->ctx, rm_mincut.entry.name,
                  (int)(1000 * (uint64_t)n / (cuts.n_cuts ? cuts.n_cuts : 1)), s->best->cost,
                  s->best->peak_bytes);
        if (n >= cuts.n_cuts) break;
    }
    return REMAT_OK;
}

/* ---- rows ---- */

static remat_status run_mincut(const rm_problem *p, rm_incumbent *best)
{
    sweep s;
    bool found = false, fits = false;
    TRY(begin(p, best, &s));
    remat_status status;
    if (p->budget_bytes != REMAT_BUDGET_NONE) {
        status = try_families(&s);
    } else {
        status = cut_plain(&s, &found);
        if (status == REMAT_OK && found) status = try_hold(&s, RM_HOLD_ALL, &fits);
    }
    RM_VEC_FREE(&p->ctx->heap, s.steps);
    RM_VEC_FREE(&p->ctx->heap, s.seen);
    return status == REMAT_E_APPLIES && best->any ? REMAT_OK : status;
}

/* The saved set is given, not found: the inputs, and with `layers` those of every layer. */
static remat_status run_saved(const rm_problem *p, rm_incumbent *best, bool layers)
{
    sweep s;
    rm_cuts cuts;
    bool fits = false;
    TRY(begin(p, best, &s));
    TRY(rm_cuts_find(p->ctx, p->graph, &cuts));
    if (layers) {
        for (uint32_t i = 0; i < cuts.n_cuts; i++) s.saved[cuts.cuts[i].storage] = 1;
        for (uint32_t v = 0; v < p->graph->n_values; v++) s.saved[v] |= cuts.global[v];
    }
    const remat_status status = try_hold(&s, RM_HOLD_ALL, &fits);
    RM_VEC_FREE(&p->ctx->heap, s.steps);
    return status;
}

static remat_status run_save_inputs(const rm_problem *p, rm_incumbent *best)
{
    return run_saved(p, best, false);
}

static remat_status run_save_layers(const rm_problem *p, rm_incumbent *best)
{
    return run_saved(p, best, true);
}

const rm_planner rm_mincut = {
    .entry = {"mincut", "least traffic between the passes, by a minimum cut; ops that fuse run "
                        "again for nothing (with a budget: a sweep)"},
    .default_work = RM_SECOND,
    .run = run_mincut,
    .heeds = "reduction_factor reweight"};
const rm_planner rm_save_inputs = {
    .entry = {"save-inputs", "only the inputs are saved: the whole forward pass runs again"},
    .default_work = RM_NO_LIMIT,
    .run = run_save_inputs};
const rm_planner rm_save_layers = {
    .entry = {"save-layers", "the inputs of every layer are saved: each layer runs again"},
    .default_work = RM_NO_LIMIT,
    .run = run_save_layers};
