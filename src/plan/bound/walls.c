/* walls.c: prices of memory that prove a bound by walls. docs/bound.md has the theorem.
 *
 * Problem: some ops are gates, where bytes have a price. Given prices, walls are raised greedily
 * around what first runs need (verify_walls.c says how), and their sum less what the room of the
 * gates is worth is a bound. Which prices prove most?
 *
 * Method: the sum is a concave function of the prices where walls are chosen best, and nearly so as
 * they are. A few gates do: eight or so in a network of hundreds of ops. So a walk from good prices
 * changes one or two at a time, and keeps what proves no less. Its steps are to drop a price, to
 * scale it, to give it to another gate, to price a new gate, and to move a gate to a neighbour. The
 * gates that it chooses among are those that the flow bound's prices gather at, and where most is
 * needed or in memory. It starts from the flow bound's prices, or from none if they prove nothing.
 *
 * The flow bound (order_bound.c) sees each gap once: a storage that is lost is made again once.
 * Walls see that what is made again may be lost again, and what it is made from. They prove more
 * where memory is scarce or graphs are wide, and no more where few things run again.
 *
 * Invariants: amounts are integers in cost units / scale. All that is random comes from a seed that
 * is always the same, so a bound depends on plan and work alone. Cost: the limit of work. */
#include "plan/bound/walls.h"

#include <stdlib.h>
#include <string.h>

#include "base/exp_log.h"
#include "base/limits.h"
#include "base/random.h"
#include "plan/bound/path.h"

enum {
    MOST_GATES = 24,
    ROW = 32,        /* turns that a row has room for, at most: a power of two above MOST_GATES */
    FLOW_SITES = 12, /* where the flow bound's prices gather */
    SITES = 16,      /* where most is needed; and where most is in memory */
    ALL_SITES = FLOW_SITES + MOST_GATES + 2 * SITES,
    LEAST_TRIALS = 20, /* if there is no work for so many, the graph is too large */
    DRY = 1500,        /* trials in a row that prove no more: it ends */
    WORK_A_SPOT = 2    /* operations to begin with */
};
#define MOST_AMOUNT ((int64_t)1 << 60)
static const double wide = 1.4, narrow = 0.26; /* logarithms: by how much prices are scaled */
static const double least_price = 0.03, most_price = 10; /* of new gates, in usual prices */

typedef struct way { /* into a wall */
    int64_t *left;
    uint32_t from; /* the spot before the gate; or op and turn */
    bool is_run;
} way;

typedef struct builder {
    remat_ctx *ctx;
    const rm_normal *nm;
    const rm_walls_question *question;
    rm_gaps gs;                  /* its positions; what is needed and in memory there */
    uint32_t *earliest, *latest; /* by op: positions of its first run */
    uint32_t *rank;              /* by op: place in the order */
    uint32_t *position_of;       /* by op: REMAT_NONE: it is none */
    int64_t *room;               /* by position */
    uint8_t *touched;            /* by storage: 1 + the gate that touched it last, or 0 */
    int64_t scale;
    /* what is tried: */
    uint32_t site[ALL_SITES]; /* positions */
    double price[ALL_SITES];  /* of a byte, in cost units */
    uint32_t n_sites;
    /* one trial: */
    uint32_t n_turns, gate[MOST_GATES]; /* positions, ascending */
    unsigned shift;                     /* 2^shift turns have room in a row of spots */
    int64_t gate_price[MOST_GATES];
    uint32_t *gates_before; /* by position */
    uint32_t *first, *last; /* by op: turns of its first run */
    int64_t *keep, *run;    /* by spot, by op and turn: what is left of them */
    uint32_t *missing;      /* by op and turn: inputs that are not there */
    uint8_t *there;         /* by spot */
    /* By spot: the last wall that has it. By op and turn: the last wall to which it is a way; of
     * which it reads something. */
    uint32_t *wall_stamp, *op_stamp, *read_stamp, stamp;
    uint32_t *wall, *stack, n_wall, n_seen; /* spots; those whose ways are listed */
    bool breached;                          /* something in the wall is there now */
    way *ways;
    size_t n_ways;
    rm_uint128 sum;
    int64_t work;
} builder;

/* Or an op in a turn. */
static uint32_t spot_of(const builder *b, uint32_t store, uint32_t turn)
{
    return (store << b->shift) + turn;
}
static uint32_t store_of(const builder *b, uint32_t spot) { return spot >> b->shift; }
static uint32_t turn_of(const builder *b, uint32_t spot)
{
    return spot & ((UINT32_C(1) << b->shift) - 1);
}

/* ---- the question ---- */

static remat_status find_positions(builder *b)
{
    const rm_normal *nm = b->nm;
    TRY(RM_SCRATCH(b->ctx, b->earliest, nm->n_ops));
    TRY(RM_SCRATCH(b->ctx, b->latest, nm->n_ops));
    TRY(RM_SCRATCH(b->ctx, b->rank, nm->n_ops));
    TRY(RM_SCRATCH(b->ctx, b->position_of, nm->n_ops));
    if (b->question->order) TRY(rm_gaps_find(b->ctx, nm, b->question->order, false, &b->gs));
    else TRY(rm_gaps_on_path(b->ctx, nm, b->question->budget_bytes, false, false, &b->gs));
    for (uint32_t op = 0; op < nm->n_ops; op++) b->position_of[op] = REMAT_NONE;
    for (uint32_t t = 0; t < b->gs.n; t++) b->position_of[b->gs.at[t]] = t;
    for (uint32_t i = 0; i < nm->n_ops; i++) {
        const uint32_t op = b->gs.order[i];
        b->rank[op] = i;
        b->earliest[op] = b->question->order ? i : rm_wanted_to(b->gs.windows[op]);
        b->latest[op] = b->question->order ? i : b->gs.windows[op].by;
    }
    return REMAT_OK;
}

static remat_status find_room(builder *b)
{
    const rm_normal *nm = b->nm;
    TRY(RM_SCRATCH(b->ctx, b->room, b->gs.n));
    for (uint32_t t = 0; t < b->gs.n; t++) {
        const uint32_t op = b->gs.at[t];
        int64_t room = b->question->budget_bytes - nm->resident_bytes - nm->workspace[op];
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
            if (!nm->may_take[k]) room -= nm->bytes[nm->in[k]];
        for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
            room -= nm->bytes[nm->out[k]];
        b->room[t] = room;
    }
    return REMAT_OK;
}

static remat_status allocate(builder *b)
{
    const rm_normal *nm = b->nm;
    const size_t n_spots = (size_t)nm->n_stores * ROW, n_runs = (size_t)nm->n_ops * ROW;
    TRY(RM_SCRATCH(b->ctx, b->touched, nm->n_stores));
    TRY(RM_SCRATCH(b->ctx, b->gates_before, (size_t)b->gs.n + 1));
    TRY(RM_SCRATCH(b->ctx, b->first, nm->n_ops));
    TRY(RM_SCRATCH(b->ctx, b->last, nm->n_ops));
    TRY(RM_SCRATCH(b->ctx, b->keep, n_spots));
    TRY(RM_SCRATCH(b->ctx, b->run, n_runs));
    TRY(RM_SCRATCH(b->ctx, b->missing, n_runs));
    TRY(RM_SCRATCH(b->ctx, b->there, n_spots));
    TRY(RM_SCRATCH(b->ctx, b->wall_stamp, n_spots));
    TRY(RM_SCRATCH(b->ctx, b->op_stamp, n_runs));
    TRY(RM_SCRATCH(b->ctx, b->read_stamp, n_runs));
    TRY(RM_SCRATCH(b->ctx, b->wall, n_spots));
    TRY(RM_SCRATCH(b->ctx, b->stack, n_spots));
    return RM_SCRATCH(b->ctx, b->ways, n_spots + n_runs);
}

/* ---- a trial: gates and ways ---- */

/* False: they are too many. */
static bool set_gates(builder *b)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n_sites; i++) {
        const double amount = b->price[i] * (double)b->scale;
        const int64_t price = amount < (double)MOST_AMOUNT ? (int64_t)amount : MOST_AMOUNT;
        if (price <= 0 || b->room[b->site[i]] < 0) continue;
        uint32_t at = n;
        while (at > 0 && b->gate[at - 1] >= b->site[i]) at--;
        if (at < n && b->gate[at] == b->site[i]) continue;
        if (n == MOST_GATES) return false;
        memmove(b->gate + at + 1, b->gate + at, (n - at) * sizeof *b->gate);
        memmove(b->gate_price + at + 1, b->gate_price + at, (n - at) * sizeof *b->gate_price);
        b->gate[at] = b->site[i];
        b->gate_price[at] = price;
        n++;
    }
    b->n_turns = n + 1;
    for (b->shift = 0; UINT32_C(1) << b->shift < b->n_turns;) b->shift++;
    for (uint32_t t = 0, turn = 0; t <= b->gs.n; t++) {
        b->gates_before[t] = turn;
        if (turn < n && b->gate[turn] == t) turn++;
    }
    return true;
}

static void touch(builder *b, uint32_t op, uint8_t mark)
{
    const rm_normal *nm = b->nm;
    for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++) b->touched[nm->in[k]] = mark;
    for (uint32_t k = nm->out_begin[op]; k < nm->out_begin[op + 1]; k++)
        b->touched[nm->out[k]] = mark;
}

static int64_t worth(int64_t price, int64_t bytes)
{
    const rm_uint128 x = (rm_uint128)price * (rm_uint128)bytes;
    return x < (rm_uint128)MOST_AMOUNT ? (int64_t)x : MOST_AMOUNT;
}

static void set_ways(builder *b)
{
    const rm_normal *nm = b->nm;
    const uint32_t n_turns = b->n_turns;
    for (uint32_t t = 0; t + 1 < n_turns; t++) {
        touch(b, b->gs.at[b->gate[t]], (uint8_t)(t + 1));
        for (uint32_t s = 0; s < nm->n_stores; s++)
            b->keep[spot_of(b, s, t)] =
                b->touched[s] == t + 1 ? 0 : worth(b->gate_price[t], nm->bytes[s]);
    }
    for (uint32_t t = 0; t + 1 < n_turns; t++) touch(b, b->gs.at[b->gate[t]], 0);
    for (uint32_t op = 0; op < nm->n_ops; op++) {
        b->first[op] = b->gates_before[b->earliest[op]];
        b->last[op] = rm_is_free_view(nm, op) ? n_turns : b->gates_before[b->latest[op]];
        for (uint32_t t = 0; t < n_turns; t++) {
            b->run[spot_of(b, op, t)] = t <= b->last[op] ? 0 : nm->cost[op] * b->scale;
            b->missing[spot_of(b, op, t)] = nm->in_begin[op + 1] - nm->in_begin[op];
        }
    }
    memset(b->there, 0, (size_t)nm->n_stores << b->shift);
    b->work += (int64_t)(nm->n_stores + nm->n_ops) * n_turns * WORK_A_SPOT;
}

static bool can_run(const builder *b, uint32_t op, uint32_t turn)
{
    return turn >= b->first[op] && (turn <= b->last[op] || !b->nm->pinned[op]);
}

static bool can_be_kept(const builder *b, uint32_t store, uint32_t turn)
{
    return turn + 1 < b->n_turns && turn >= b->first[b->nm->producer[store]];
}

/* ---- what can be had for nothing ---- */

static bool is_in_wall(const builder *b, uint32_t spot) { return b->wall_stamp[spot] == b->stamp; }

static void put(builder *b, uint32_t spot, size_t *n)
{
    if (b->there[spot]) return;
    b->breached |= is_in_wall(b, spot);
    b->there[spot] = 1;
    b->stack[(*n)++] = spot;
}

static void try_run(builder *b, uint32_t op, uint32_t turn, size_t *n)
{
    const uint32_t at = spot_of(b, op, turn);
    if (b->missing[at] || b->run[at] || !can_run(b, op, turn)) return;
    for (uint32_t k = b->nm->out_begin[op]; k < b->nm->out_begin[op + 1]; k++)
        put(b, spot_of(b, b->nm->out[k], turn), n);
}

static void follow(builder *b, size_t n)
{
    const rm_normal *nm = b->nm;
    while (n > 0) {
        const uint32_t spot = b->stack[--n], s = store_of(b, spot), t = turn_of(b, spot);
        if (can_be_kept(b, s, t) && b->keep[spot] == 0) put(b, spot + 1, &n);
        for (uint32_t k = nm->reader_begin[s]; k < nm->reader_begin[s + 1]; k++) {
            b->missing[spot_of(b, nm->readers[k], t)]--;
            try_run(b, nm->readers[k], t, &n);
        }
        b->work += 1 + nm->reader_begin[s + 1] - nm->reader_begin[s];
    }
}

static void begin(builder *b)
{
    for (uint32_t i = 0; i < b->nm->n_ops; i++)
        for (uint32_t op = b->gs.order[i], t = b->first[op]; t < b->n_turns; t++) {
            size_t n = 0;
            try_run(b, op, t, &n);
            follow(b, n);
        }
}

/* ---- walls ---- */

static void add_to_wall(builder *b, uint32_t spot)
{
    const rm_normal *nm = b->nm;
    const uint32_t s = store_of(b, spot), t = turn_of(b, spot);
    if (is_in_wall(b, spot)) return;
    b->wall_stamp[spot] = b->stamp;
    b->wall[b->n_wall++] = spot;
    for (uint32_t k = nm->reader_begin[s]; k < nm->reader_begin[s + 1]; k++)
        b->read_stamp[spot_of(b, nm->readers[k], t)] = b->stamp;
    b->work += 1 + nm->reader_begin[s + 1] - nm->reader_begin[s];
}

/* Of the inputs that are not there, the one that is made last. */
static uint32_t missing_input(const builder *b, uint32_t op, uint32_t turn)
{
    const rm_normal *nm = b->nm;
    uint32_t best = REMAT_NONE;
    for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++) {
        const uint32_t s = nm->in[k];
        if (b->there[spot_of(b, s, turn)]) continue;
        if (best == REMAT_NONE || b->rank[nm->producer[s]] >= b->rank[nm->producer[best]]) best = s;
    }
    assert(best != REMAT_NONE);
    return best;
}

/* The ways to the spots that joined the wall. What lies behind ways that are used up joins, too. */
static void extend_wall(builder *b)
{
    for (; b->n_seen < b->n_wall; b->n_seen++) {
        const uint32_t spot = b->wall[b->n_seen], s = store_of(b, spot), t = turn_of(b, spot),
                       op = b->nm->producer[s], at = spot_of(b, op, t);
        if (t > 0 && can_be_kept(b, s, t - 1)) {
            if (b->keep[spot - 1] == 0) add_to_wall(b, spot - 1);
            else b->ways[b->n_ways++] = (way){&b->keep[spot - 1], spot - 1, false};
        }
        if (!can_run(b, op, t) || b->op_stamp[at] == b->stamp) continue;
        b->op_stamp[at] = b->stamp;
        b->ways[b->n_ways++] = (way){&b->run[at], at, true};
    }
}

static bool is_entry(const builder *b, way x)
{
    return x.is_run ? b->read_stamp[x.from] != b->stamp : !is_in_wall(b, x.from);
}

/* Drops ways that lead from the wall itself. The wall grows behind those that are used up. Answers
 * what the least of the others still takes. */
static int64_t find_entries(builder *b)
{
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < b->n_ways;) {
        const way x = b->ways[i];
        if (is_entry(b, x) && *x.left > 0) {
            if (*x.left < least) least = *x.left;
            i++;
            continue;
        }
        b->ways[i] = b->ways[--b->n_ways];
        if (!is_entry(b, x)) continue;
        const uint32_t op = store_of(b, x.from), t = turn_of(b, x.from);
        add_to_wall(b, x.is_run ? spot_of(b, missing_input(b, op, t), t) : x.from);
        extend_wall(b);
    }
    b->work += (int64_t)b->n_ways;
    return least;
}

static void pay(builder *b, way x, int64_t amount)
{
    size_t n = 0;
    *x.left -= amount;
    if (*x.left) return;
    if (x.is_run) try_run(b, store_of(b, x.from), turn_of(b, x.from), &n);
    else if (b->there[x.from]) put(b, x.from + 1, &n);
    follow(b, n);
}

static bool is_there(const builder *b, uint32_t store, uint32_t first, uint32_t last)
{
    for (uint32_t t = first; t <= last; t++)
        if (b->there[spot_of(b, store, t)]) return true;
    return false;
}

static void begin_wall(builder *b, uint32_t store, uint32_t first, uint32_t last)
{
    b->stamp++;
    b->n_wall = 0;
    b->n_seen = 0;
    b->n_ways = 0;
    b->breached = false;
    for (uint32_t t = first; t <= last; t++) add_to_wall(b, spot_of(b, store, t));
    extend_wall(b);
}

/* Raises walls around a storage that is needed in one of these turns, until it is there. */
static void raise_walls(builder *b, uint32_t store, uint32_t first, uint32_t last)
{
    b->breached = true;
    while (!is_there(b, store, first, last)) {
        if (b->breached) begin_wall(b, store, first, last);
        int64_t least;
        size_t before;
        do { /* what joined late may have made entries of others none */
            before = b->n_wall;
            least = find_entries(b);
        } while (b->n_wall > before);
        assert(b->n_ways > 0);
        const rm_uint128 amount = (rm_uint128)least;
        b->sum += amount;
        for (size_t i = 0; i < b->n_ways; i++) pay(b, b->ways[i], least);
    }
}

/* Around what first runs read whose turn is sure, or around the others. */
static void raise_around_inputs(builder *b, bool sure)
{
    const rm_normal *nm = b->nm;
    for (uint32_t i = 0; i < nm->n_ops; i++) {
        const uint32_t op = b->gs.order[i];
        if (rm_is_free_view(nm, op) || (b->first[op] == b->last[op]) != sure) continue;
        for (uint32_t k = nm->in_begin[op]; k < nm->in_begin[op + 1]; k++)
            raise_walls(b, nm->in[k], b->first[op], b->last[op]);
    }
}

/* What the prices prove, in cost units; less than 0 if that is nothing. An op that may run in
 * several turns needs all its inputs in one of them: walls around what it makes know that, walls
 * around its inputs do not, so they come last. */
static double try_prices(builder *b)
{
    const rm_normal *nm = b->nm;
    if (!set_gates(b)) return -1;
    b->sum = 0;
    set_ways(b);
    begin(b);
    raise_around_inputs(b, true);
    for (uint32_t s = 0; s < nm->n_stores; s++)
        if (nm->is_output[s]) raise_walls(b, s, b->n_turns - 1, b->n_turns - 1);
    raise_around_inputs(b, false);
    double proved = (double)b->sum;
    for (uint32_t t = 0; t + 1 < b->n_turns; t++)
        proved -= (double)b->gate_price[t] * (double)b->room[b->gate[t]];
    return proved / (double)b->scale;
}

/* ---- which prices ---- */

static void add_site(builder *b, uint32_t position, double price)
{
    if (b->room[position] < 0 || rm_is_free_view(b->nm, b->gs.at[position])) return;
    for (uint32_t i = 0; i < b->n_sites; i++) {
        if (b->site[i] != position) continue;
        b->price[i] += price;
        return;
    }
    if (b->n_sites == ALL_SITES) return;
    b->site[b->n_sites] = position;
    b->price[b->n_sites++] = price;
}

/* By position: the certificate's prices, in cost units. Answers their sum. */
static remat_status read_prices(builder *b, const rm_certificate *x, double *price, double *sum)
{
    const remat_graph *g = b->nm->g;
    uint32_t *at; /* by original op: 1 + position */
    TRY(RM_SCRATCH(b->ctx, at, g->n_original_ops));
    for (uint32_t t = 0; t < b->gs.n; t++) at[g->op_original[b->nm->op[b->gs.at[t]]]] = t + 1;
    for (size_t i = 0; i < x->n_prices; i++) {
        const uint32_t t = at[x->prices[i].op];
        if (t == 0) continue; /* not on the path */
        price[t - 1] = (double)x->prices[i].price / (double)x->scale;
        *sum += price[t - 1];
    }
    return REMAT_OK;
}

/* Gates at the certificate's prices: those of another bound by walls as they are. The flow bound's
 * are many, so each part of their sum goes where most of it is. */
static remat_status add_sites_of(builder *b, const rm_certificate *x)
{
    double *price, sum = 0, part = 0;
    uint32_t best = 0;
    if (!x || x->scale == 0) return REMAT_OK;
    TRY(RM_SCRATCH(b->ctx, price, b->gs.n));
    TRY(read_prices(b, x, price, &sum));
    const double enough = x->walls ? 0 : sum / FLOW_SITES;
    for (uint32_t t = 0; t < b->gs.n; t++) {
        if (part == 0 || price[t] > price[best]) best = t;
        part += price[t];
        if (part == 0 || (part < enough && t + 1 < b->gs.n)) continue;
        add_site(b, best, part);
        part = 0;
    }
    return REMAT_OK;
}

/* In each of SITES parts of the time: where most is needed, and where keep-all has most. */
static void add_full_sites(builder *b)
{
    for (uint32_t i = 0; i < SITES; i++) {
        const uint32_t begin = (uint32_t)((uint64_t)i * b->gs.n / SITES),
                       end = (uint32_t)((uint64_t)(i + 1) * b->gs.n / SITES);
        uint32_t needed = begin, full = begin;
        for (uint32_t t = begin; t < end; t++) {
            if (b->gs.need[t] > b->gs.need[needed]) needed = t;
            if (b->gs.need[t] + b->gs.load[t] > b->gs.need[full] + b->gs.load[full]) full = t;
        }
        if (begin == end) continue;
        add_site(b, needed, 0);
        add_site(b, full, 0);
    }
}

static double scaled(double price, double width, rm_random *r)
{
    return price * rm_exp(width * (rm_random_unit(r) - 0.5));
}

/* What a byte costs if all of keep-all's bytes together cost what keep-all does. */
static double usual_price(const builder *b)
{
    double bytes = 1, cost = 1;
    for (uint32_t s = 0; s < b->nm->n_stores; s++) bytes += (double)b->nm->bytes[s];
    for (uint32_t op = 0; op < b->nm->n_ops; op++) cost += (double)b->nm->cost[op];
    return cost / bytes;
}

static void change_price(builder *b, double usual, rm_random *r)
{
    const uint32_t i = rm_random_below(r, b->n_sites), j = rm_random_below(r, b->n_sites);
    double *price = &b->price[i];
    if (*price <= 0) {
        const double share = rm_log(most_price / least_price) * rm_random_unit(r);
        *price = usual * least_price * rm_exp(share);
        if (b->price[j] > 0 && i != j && rm_random_below(r, 4) == 0) {
            if (*price > b->price[j]) *price = b->price[j];
            b->price[j] -= *price;
        }
        return;
    }
    switch (rm_random_below(r, 5)) {
    case 0: *price = 0; break;
    case 1: *price = scaled(*price, wide, r); break;
    case 2: *price = scaled(*price, narrow, r); break;
    case 3:
        if (i == j) break;
        b->price[j] += *price;
        *price = 0;
        break;
    default: { /* a gate nearby */
        const uint32_t reach = 1 + b->gs.n / (2 * SITES), step = 1 + rm_random_below(r, reach);
        const bool is_before = rm_random_below(r, 2);
        if (is_before ? b->site[i] < step : b->gs.n - b->site[i] <= step) break;
        const uint32_t to = is_before ? b->site[i] - step : b->site[i] + step;
        if (b->room[to] >= 0 && !rm_is_free_view(b->nm, b->gs.at[to])) b->site[i] = to;
    }
    }
}

typedef struct prices {
    uint32_t site[ALL_SITES];
    double price[ALL_SITES], proved;
} prices;

static void save(const builder *b, prices *out, double proved)
{
    memcpy(out->site, b->site, sizeof out->site);
    memcpy(out->price, b->price, sizeof out->price);
    out->proved = proved;
}

static void load(builder *b, const prices *from)
{
    memcpy(b->site, from->site, sizeof b->site);
    memcpy(b->price, from->price, sizeof b->price);
}

/* The sites, and the better of the prices to start from; none where neither proves anything. */
static remat_status begin_walk(builder *b, prices *best)
{
    *best = (prices){.proved = 0};
    TRY(add_sites_of(b, b->question->flow));
    double proved = try_prices(b);
    if (proved > 0) save(b, best, proved);
    memset(b->price, 0, sizeof b->price);
    TRY(add_sites_of(b, b->question->other));
    proved = try_prices(b);
    if (proved <= best->proved) memcpy(b->price, best->price, sizeof b->price);
    else best->proved = proved;
    add_full_sites(b);
    save(b, best, best->proved);
    return REMAT_OK;
}

/* From the best so far, until so much work is done. */
static void walk(builder *b, int64_t most_work, rm_random *r, prices *best)
{
    const double usual = usual_price(b), enough = (double)b->question->enough;
    for (uint32_t dry = 0; dry < DRY && b->work < most_work; dry++) {
        if (best->proved >= enough || rm_is_late(b->ctx)) return;
        load(b, best);
        for (uint32_t n = 1 + rm_random_below(r, 2); n > 0; n--) change_price(b, usual, r);
        const double proved = try_prices(b);
        if (proved > best->proved) dry = 0;
        if (proved >= best->proved) save(b, best, proved);
    }
}

static void find_prices(builder *b, prices *best)
{
    rm_random r = {1};
    const int64_t most = b->question->most_work;
    prices other;
    if (b->n_sites == 0 || b->work > most / LEAST_TRIALS) return;
    load(b, best);
    memset(b->price, 0, sizeof b->price);
    save(b, &other, 0);
    walk(b, most / 3, &r, best);
    walk(b, most / 3 * 2, &r, &other);
    if (other.proved > best->proved) *best = other;
    walk(b, most, &r, best);
}

/* ---- the certificate ---- */

static int by_op(const void *left, const void *right)
{
    const rm_price *a = left, *b = right;
    return (a->op > b->op) - (a->op < b->op);
}

static remat_status write_certificate(builder *b, const prices *best, rm_certificate *out)
{
    load(b, best);
    if (best->proved <= 0 || !set_gates(b)) return REMAT_OK;
    TRY(RM_SCRATCH(b->ctx, out->prices, b->n_turns));
    out->scale = b->scale;
    out->walls = true;
    for (uint32_t t = 0; t + 1 < b->n_turns; t++)
        out->prices[out->n_prices++] =
            (rm_price){b->nm->g->op_original[b->nm->op[b->gs.at[b->gate[t]]]], b->gate_price[t]};
    qsort(out->prices, out->n_prices, sizeof *out->prices, by_op);
    return REMAT_OK;
}

/* The largest at which no cost reaches MOST_AMOUNT; 0: there is none. */
static int64_t find_scale(const rm_normal *nm)
{
    int64_t scale = INT64_C(1) << 40;
    while (scale > 0 && nm->g->total_cost > MOST_AMOUNT / scale) scale /= 2;
    return scale;
}

remat_status rm_walls_find(remat_ctx *ctx, const rm_normal *nm, const rm_walls_question *question,
                           rm_certificate *out)
{
    builder b = {.ctx = ctx, .nm = nm, .question = question, .scale = find_scale(nm)};
    prices best;
    *out = (rm_certificate){.scale = 0};
    const int64_t a_trial = (int64_t)(nm->n_ops + nm->n_stores) * MOST_GATES * WORK_A_SPOT;
    if (b.scale == 0 || a_trial > question->most_work / LEAST_TRIALS) return REMAT_OK;
    TRY(find_positions(&b));
    TRY(find_room(&b));
    TRY(allocate(&b));
    TRY(begin_walk(&b, &best));
    find_prices(&b, &best);
    rm_spend(ctx, b.work);
    return write_certificate(&b, &best, out);
}
