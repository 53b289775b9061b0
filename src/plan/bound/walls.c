/* walls.c: what prices of memory at some gates prove. docs/bound.md has the theorem.
 *
 * Problem: gates are ops at whose first run bytes have a price. What first runs need is walled in,
 * and walls are raised until something comes through: their sum, less what the room of the gates is
 * worth, is a bound. It must be found thousands of times, for the search of good prices.
 *
 * Method: as in verify_walls.c, in numbers of 64 bits, and the wall around a need stays from one
 * raise to the next: it grows by what lies behind the ways that were used up. Only where something
 * in it can be had for nothing it is built anew.
 *
 * The flow bound (order_bound.c) sees each gap once: a storage that is lost is made again once.
 * Walls see that what is made again may be lost again, and what it is made from.
 *
 * Invariant: amounts are integers in cost units / scale. Cost: O(spots) for each need at worst; a
 * small part of that mostly. */
#include "plan/bound/walls.h"

#include <string.h>

#include "base/limits.h"
#include "plan/bound/path.h"

enum {
    ROW = 32, /* turns that a row of spots has room for: a power of two above RM_MOST_GATES */
    MOST_OPS = 1 << 16, /* of larger graphs one trial takes seconds, and gigabytes */
    WORK_A_SPOT = 2     /* operations to begin with */
};

/* Or an op in a turn. */
static uint32_t spot_of(const rm_walls *w, uint32_t store, uint32_t turn)
{
    return (store << w->shift) + turn;
}
static uint32_t store_of(const rm_walls *w, uint32_t spot) { return spot >> w->shift; }
static uint32_t turn_of(const rm_walls *w, uint32_t spot)
{
    return spot & ((UINT32_C(1) << w->shift) - 1);
}

/* ---- the question ---- */

static remat_status find_positions(rm_walls *w)
{
    const rm_normal *nm = w->nm;
    TRY(RM_SCRATCH(w->ctx, w->earliest, nm->n_ops));
    TRY(RM_SCRATCH(w->ctx, w->latest, nm->n_ops));
    TRY(RM_SCRATCH(w->ctx, w->rank, nm->n_ops));
    if (w->order) TRY(rm_gaps_find(w->ctx, nm, w->order, false, &w->gs));
    else TRY(rm_gaps_on_path(w->ctx, nm, w->budget_bytes, false, false, &w->gs));
    for (uint32_t i = 0; i < nm->n_ops; i++) {
        const uint32_t op = w->gs.order[i];
        w->rank[op] = i;
        w->earliest[op] = w->order ? i : rm_wanted_to(w->gs.windows[op]);
        w->latest[op] = w->order ? i : w->gs.windows[op].by;
    }
    return REMAT_OK;
}

static remat_status find_room(rm_walls *w)
{
    const rm_normal *nm = w->nm;
    TRY(RM_SCRATCH(w->ctx, w->room, w->gs.n));
    for (uint32_t t = 0; t < w->gs.n; t++) {
        const uint32_t op = w->gs.at[t];
        int64_t room = w->budget_bytes - nm->resident_bytes - nm->workspace[op];
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
            if (!nm->may_take[k]) room -= nm->bytes[nm->in[k]];
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
            room -= nm->bytes[nm->out[k]];
        w->room[t] = room;
    }
    return REMAT_OK;
}

static remat_status allocate(rm_walls *w)
{
    const rm_normal *nm = w->nm;
    const size_t n_spots = (size_t)nm->n_stores * ROW, n_runs = (size_t)nm->n_ops * ROW;
    TRY(RM_SCRATCH(w->ctx, w->touched, nm->n_stores));
    TRY(RM_SCRATCH(w->ctx, w->gates_before, (size_t)w->gs.n + 1));
    TRY(RM_SCRATCH(w->ctx, w->first, nm->n_ops));
    TRY(RM_SCRATCH(w->ctx, w->last, nm->n_ops));
    TRY(RM_SCRATCH(w->ctx, w->keep, n_spots));
    TRY(RM_SCRATCH(w->ctx, w->run, n_runs));
    TRY(RM_SCRATCH(w->ctx, w->missing, n_runs));
    TRY(RM_SCRATCH(w->ctx, w->there, n_spots));
    TRY(RM_SCRATCH(w->ctx, w->wall_stamp, n_spots));
    TRY(RM_SCRATCH(w->ctx, w->op_stamp, n_runs));
    TRY(RM_SCRATCH(w->ctx, w->read_stamp, n_runs));
    TRY(RM_SCRATCH(w->ctx, w->wall, n_spots));
    TRY(RM_SCRATCH(w->ctx, w->stack, n_spots));
    return RM_SCRATCH(w->ctx, w->ways, n_spots + n_runs);
}

/* ---- a trial: gates and ways ---- */

static void set_gates(rm_walls *w, const rm_gate *gates, uint32_t n)
{
    w->gates = gates;
    w->n_turns = n + 1;
    for (w->shift = 0; UINT32_C(1) << w->shift < w->n_turns;) w->shift++;
    for (uint32_t t = 0, turn = 0; t <= w->gs.n; t++) {
        w->gates_before[t] = turn;
        if (turn < n && gates[turn].position == t) turn++;
    }
}

static void touch(rm_walls *w, uint32_t op, uint8_t mark)
{
    const rm_normal *nm = w->nm;
    for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++) w->touched[nm->in[k]] = mark;
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
        w->touched[nm->out[k]] = mark;
}

static int64_t worth(int64_t price, int64_t bytes)
{
    const rm_uint128 x = (rm_uint128)price * (rm_uint128)bytes;
    return x < (rm_uint128)RM_MOST_AMOUNT ? (int64_t)x : RM_MOST_AMOUNT;
}

static void set_ways(rm_walls *w)
{
    const rm_normal *nm = w->nm;
    const uint32_t n_turns = w->n_turns;
    for (uint32_t t = 0; t + 1 < n_turns; t++) {
        touch(w, w->gs.at[w->gates[t].position], (uint8_t)(t + 1));
        for (uint32_t s = 0; s < nm->n_stores; s++)
            w->keep[spot_of(w, s, t)] =
                w->touched[s] == t + 1 ? 0 : worth(w->gates[t].price, nm->bytes[s]);
    }
    for (uint32_t t = 0; t + 1 < n_turns; t++) touch(w, w->gs.at[w->gates[t].position], 0);
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        w->first[op] = w->gates_before[w->earliest[op]];
        w->last[op] = rm_is_free_view(nm, op) ? n_turns : w->gates_before[w->latest[op]];
        for (uint32_t t = 0; t < n_turns; t++) {
            w->run[spot_of(w, op, t)] = t <= w->last[op] ? 0 : nm->cost[op] * w->scale;
            w->missing[spot_of(w, op, t)] = nm->in_begin[op + 1] - nm->in_begin[op];
        }
    }
    memset(w->there, 0, (size_t)nm->n_stores << w->shift);
    w->work += ((int64_t)nm->n_stores + nm->n_ops) * n_turns * WORK_A_SPOT;
}

static bool can_run(const rm_walls *w, uint32_t op, uint32_t turn)
{
    return turn >= w->first[op] && (turn <= w->last[op] || !w->nm->pinned[op]);
}

static bool can_be_kept(const rm_walls *w, uint32_t store, uint32_t turn)
{
    return turn + 1 < w->n_turns && turn >= w->first[w->nm->producer[store]];
}

/* ---- what can be had for nothing ---- */

static bool is_in_wall(const rm_walls *w, uint32_t spot) { return w->wall_stamp[spot] == w->stamp; }

static void put(rm_walls *w, uint32_t spot, size_t *n)
{
    if (w->there[spot]) return;
    w->breached |= is_in_wall(w, spot);
    w->there[spot] = 1;
    w->stack[(*n)++] = spot;
}

static void try_run(rm_walls *w, uint32_t op, uint32_t turn, size_t *n)
{
    const uint32_t at = spot_of(w, op, turn);
    if (w->missing[at] || w->run[at] || !can_run(w, op, turn)) return;
    for (uint32_t k = w->nm->out_begin[op]; k < w->nm->out_begin[op + 1]; k++)
        put(w, spot_of(w, w->nm->out[k], turn), n);
}

static void follow(rm_walls *w, size_t n)
{
    const rm_normal *nm = w->nm;
    while (n > 0) {
        const uint32_t spot = w->stack[--n], s = store_of(w, spot), t = turn_of(w, spot);
        if (can_be_kept(w, s, t) && w->keep[spot] == 0) put(w, spot + 1, &n);
        for (uint32_t k = nm->reader_begin[s]; k < nm->reader_begin[s + 1]; k++) {
            w->missing[spot_of(w, nm->readers[k], t)]--;
            try_run(w, nm->readers[k], t, &n);
        }
        w->work += 1 + nm->reader_begin[s + 1] - nm->reader_begin[s];
    }
}

static void begin(rm_walls *w)
{
    for (uint32_t i = 0; i < w->nm->n_ops; i++)
        for (uint32_t op = w->gs.order[i], t = w->first[op]; t < w->n_turns; t++) {
            size_t n = 0;
            try_run(w, op, t, &n);
            follow(w, n);
        }
}

/* ---- walls ---- */

static void add_to_wall(rm_walls *w, uint32_t spot)
{
    const rm_normal *nm = w->nm;
    const uint32_t s = store_of(w, spot), t = turn_of(w, spot);
    if (is_in_wall(w, spot)) return;
    w->wall_stamp[spot] = w->stamp;
    w->wall[w->n_wall++] = spot;
    for (uint32_t k = nm->reader_begin[s]; k < nm->reader_begin[s + 1]; k++)
        w->read_stamp[spot_of(w, nm->readers[k], t)] = w->stamp;
    w->work += 1 + nm->reader_begin[s + 1] - nm->reader_begin[s];
}

/* Of the inputs that are not there, the one that is made last. */
static uint32_t missing_input(const rm_walls *w, uint32_t op, uint32_t turn)
{
    const rm_normal *nm = w->nm;
    uint32_t best = REMAT_NONE;
    for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++) {
        const uint32_t s = nm->in[k];
        if (w->there[spot_of(w, s, turn)]) continue;
        if (best == REMAT_NONE || w->rank[nm->producer[s]] >= w->rank[nm->producer[best]]) best = s;
    }
    assert(best != REMAT_NONE);
    return best;
}

/* The ways to the spots that joined the wall. What lies behind ways that are used up joins, too. */
static void extend_wall(rm_walls *w)
{
    for (; w->n_seen < w->n_wall; w->n_seen++) {
        const uint32_t spot = w->wall[w->n_seen], s = store_of(w, spot), t = turn_of(w, spot),
                       op = w->nm->producer[s], at = spot_of(w, op, t);
        if (t > 0 && can_be_kept(w, s, t - 1)) {
            if (w->keep[spot - 1] == 0) add_to_wall(w, spot - 1);
            else w->ways[w->n_ways++] = (rm_way){&w->keep[spot - 1], spot - 1, false};
        }
        if (!can_run(w, op, t) || w->op_stamp[at] == w->stamp) continue;
        w->op_stamp[at] = w->stamp;
        w->ways[w->n_ways++] = (rm_way){&w->run[at], at, true};
    }
}

static bool is_entry(const rm_walls *w, rm_way x)
{
    return x.is_run ? w->read_stamp[x.from] != w->stamp : !is_in_wall(w, x.from);
}

/* Drops ways that lead from the wall itself. The wall grows behind those that are used up. Answers
 * what the least of the others still takes. */
static int64_t find_entries(rm_walls *w)
{
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < w->n_ways;) {
        const rm_way x = w->ways[i];
        if (is_entry(w, x) && *x.left > 0) {
            if (*x.left < least) least = *x.left;
            i++;
            continue;
        }
        w->ways[i] = w->ways[--w->n_ways];
        if (!is_entry(w, x)) continue;
        const uint32_t op = store_of(w, x.from), t = turn_of(w, x.from);
        add_to_wall(w, x.is_run ? spot_of(w, missing_input(w, op, t), t) : x.from);
        extend_wall(w);
    }
    w->work += (int64_t)w->n_ways;
    return least;
}

static void pay(rm_walls *w, rm_way x, int64_t amount)
{
    size_t n = 0;
    *x.left -= amount;
    if (*x.left) return;
    if (x.is_run) try_run(w, store_of(w, x.from), turn_of(w, x.from), &n);
    else if (w->there[x.from]) put(w, x.from + 1, &n);
    follow(w, n);
}

static bool is_there(const rm_walls *w, uint32_t store, uint32_t first, uint32_t last)
{
    for (uint32_t t = first; t <= last; t++)
        if (w->there[spot_of(w, store, t)]) return true;
    return false;
}

static void begin_wall(rm_walls *w, uint32_t store, uint32_t first, uint32_t last)
{
    w->stamp++;
    w->n_wall = 0;
    w->n_seen = 0;
    w->n_ways = 0;
    w->breached = false;
    for (uint32_t t = first; t <= last; t++) add_to_wall(w, spot_of(w, store, t));
    extend_wall(w);
}

/* Raises walls around a storage that is needed in one of these turns, until it is there. */
static void raise_walls(rm_walls *w, uint32_t store, uint32_t first, uint32_t last)
{
    w->breached = true;
    while (!is_there(w, store, first, last) && w->work < w->most_work) {
        if (w->breached) begin_wall(w, store, first, last);
        int64_t least;
        size_t before;
        do { /* what joined late may have made entries of others none */
            before = w->n_wall;
            least = find_entries(w);
        } while (w->n_wall > before);
        assert(w->n_ways > 0);
        const rm_uint128 amount = (rm_uint128)least;
        w->sum += amount;
        for (size_t i = 0; i < w->n_ways; i++) pay(w, w->ways[i], least);
    }
}

/* Around what first runs read whose turn is sure, or around the others. */
static void raise_around_inputs(rm_walls *w, bool sure)
{
    const rm_normal *nm = w->nm;
    for (uint32_t i = 0; i < nm->n_ops; i++) {
        const uint32_t op = w->gs.order[i];
        if (rm_is_free_view(nm, op) || (w->first[op] == w->last[op]) != sure) continue;
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
            raise_walls(w, nm->in[k], w->first[op], w->last[op]);
    }
}

double rm_walls_prove(rm_walls *w, const rm_gate *gates, uint32_t n)
{
    const rm_normal *nm = w->nm;
    assert(n <= RM_MOST_GATES);
    w->sum = 0;
    set_gates(w, gates, n);
    set_ways(w);
    begin(w);
    raise_around_inputs(w, true);
    for (uint32_t s = 0; s < nm->n_stores; s++)
        if (nm->is_output[s]) raise_walls(w, s, w->n_turns - 1, w->n_turns - 1);
    raise_around_inputs(w, false); /* they know least: see verify_walls.c */
    if (w->work >= w->most_work) return 0;
    double proved = (double)w->sum;
    for (uint32_t t = 0; t < n; t++)
        proved -= (double)gates[t].price * (double)w->room[gates[t].position];
    return proved / (double)w->scale;
}

/* The largest at which no cost reaches RM_MOST_AMOUNT; 0: there is none. */
static int64_t find_scale(const rm_normal *nm)
{
    int64_t scale = INT64_C(1) << 40;
    while (scale > 0 && nm->g->total_cost > RM_MOST_AMOUNT / scale) scale /= 2;
    return scale;
}

bool rm_walls_apply(const rm_normal *nm, int64_t most_work, uint32_t trials)
{
    const int64_t a_trial = ((int64_t)nm->n_ops + nm->n_stores) * RM_MOST_GATES * WORK_A_SPOT;
    return find_scale(nm) > 0 && a_trial <= most_work / trials && nm->n_ops <= MOST_OPS &&
           nm->n_stores <= 2 * MOST_OPS;
}

remat_status rm_walls_begin(remat_ctx *ctx, const rm_normal *nm, int64_t budget_bytes,
                            const uint32_t *order, rm_walls *out)
{
    *out = (rm_walls){.ctx = ctx,
                      .nm = nm,
                      .budget_bytes = budget_bytes,
                      .order = order,
                      .scale = find_scale(nm),
                      .most_work = RM_NO_LIMIT};
    TRY(find_positions(out));
    TRY(find_room(out));
    return allocate(out);
}
