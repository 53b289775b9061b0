/* verify_walls.c: what prices alone prove (docs/bound.md, "Walls").
 *
 * Some ops are *gates*: at the first run of each, a byte that is in memory there and not touched
 * has a price. Gates cut time into turns: turn t ends with the first run of gate t, and the last
 * turn with the step. A *spot* is a storage in a turn. A plan gets a storage into a turn by keeping
 * it over the gate before, which takes its bytes at the price there, or by running its op in that
 * turn, which takes the op's cost and its inputs in the same turn. A *wall* is a set of spots, one
 * of which a first run needs, or the end of the step. Every plan enters it somewhere. So amounts
 * that are put on walls are a bound, if those on all walls that are entered in one way are no more
 * than what that way takes.
 *
 * Walls and amounts are found by raising them greedily, one need after the other: the wall around a
 * need grows wherever a way into it is used up, until what is needed can be had for nothing. The
 * certificate is a list of prices; whatever they are, what comes out is true.
 *
 * Nothing is taken from the planners. Cost: the spots of a wall, for every time that it is raised;
 * a certificate that would take more than MOST_WORK is refused. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "verify/court.h"

enum { MOST_GATES = 64, MOST_WORK = 1 << 29 };
const char rm_too_long_to_check[] = "the certificate takes too long to check";

typedef struct way { /* into a wall */
    bool is_run;
    uint32_t from; /* the spot before the gate; or the op and turn, as a spot */
} way;

typedef struct walls {
    rm_court *c;
    uint32_t n_turns;       /* one more than gates */
    uint32_t *gate;         /* by turn but the last: the op that it ends with */
    int64_t *price;         /* of that gate */
    uint32_t *first, *last; /* by op: the turns in which its first run may lie */
    uint32_t *rank;         /* by op: who is made later is asked for first */
    uint32_t *order;        /* ops by rank; free views are not among them */
    uint32_t n_order;
    uint32_t n_stores;
    uint32_t *store;        /* by root value */
    uint32_t *maker;        /* by storage: op */
    int64_t *bytes;         /* by storage */
    rm_court_list in, out;  /* by op: storages, each once */
    rm_court_list readers;  /* by storage */
    rm_uint128 *keep;       /* by spot: what is left of keeping it over the gate behind */
    rm_uint128 *run;        /* by op and turn */
    uint32_t *missing;      /* by op and turn: inputs that are not there */
    uint8_t *there;         /* by spot: it can be had for nothing more */
    uint32_t *wall_stamp;   /* by spot: the last wall that has it */
    uint32_t *op_stamp;     /* by op and turn */
    uint32_t *wall, *stack; /* spots */
    uint32_t n_wall, stamp;
    way *ways;
    size_t n_ways;
    uint64_t work;
} walls;

static uint32_t spot_of(const walls *w, uint32_t store, uint32_t turn)
{
    return store * w->n_turns + turn;
}

/* ---- storages ---- */

static remat_status list_stores(walls *w)
{
    const remat_graph *g = w->c->g;
    TRY(RM_SCRATCH(w->c->ctx, w->store, g->n_values));
    TRY(RM_SCRATCH(w->c->ctx, w->maker, g->n_values));
    TRY(RM_SCRATCH(w->c->ctx, w->bytes, g->n_values));
    for (uint32_t v = 0; v < g->n_values; v++) {
        w->store[v] = REMAT_NONE;
        if (g->root[v] != v || !rm_court_is_movable(g, v)) continue;
        w->maker[w->n_stores] = g->producer[v];
        w->bytes[w->n_stores] = g->storage[v];
        w->store[v] = w->n_stores++;
    }
    return REMAT_OK;
}

/* seen: by storage, 1 + the last op that has it in the list. */
static void add_once(rm_court_list *list, uint32_t op, uint32_t store, uint32_t *seen)
{
    if (store == REMAT_NONE || seen[store] == op + 1) return;
    seen[store] = op + 1;
    list->items[list->begin[op + 1]++] = store;
}

static remat_status list_touched(walls *w)
{
    const remat_graph *g = w->c->g;
    uint32_t *seen_in, *seen_out;
    TRY(RM_SCRATCH(w->c->ctx, seen_in, w->n_stores));
    TRY(RM_SCRATCH(w->c->ctx, seen_out, w->n_stores));
    TRY(RM_SCRATCH(w->c->ctx, w->in.begin, (size_t)g->n_ops + 1));
    TRY(RM_SCRATCH(w->c->ctx, w->in.items, g->n_in));
    TRY(RM_SCRATCH(w->c->ctx, w->out.begin, (size_t)g->n_ops + 1));
    TRY(RM_SCRATCH(w->c->ctx, w->out.items, g->n_out));
    for (uint32_t op = 0; op < g->n_ops; op++) {
        w->in.begin[op + 1] = w->in.begin[op];
        w->out.begin[op + 1] = w->out.begin[op];
        if (rm_court_is_free_view(g, op)) continue;
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
            if (g->root[g->out[k]] == g->out[k])
                add_once(&w->out, op, w->store[g->out[k]], seen_out);
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
            add_once(&w->in, op, w->store[g->root[g->in[k]]], seen_in);
    }
    return REMAT_OK;
}

static remat_status list_readers(walls *w)
{
    const uint32_t n_ops = w->c->g->n_ops, n = w->in.begin[n_ops];
    uint32_t *begin;
    TRY(RM_SCRATCH(w->c->ctx, w->readers.begin, (size_t)w->n_stores + 2));
    TRY(RM_SCRATCH(w->c->ctx, w->readers.items, n));
    begin = w->readers.begin;
    for (uint32_t i = 0; i < n; i++) begin[w->in.items[i] + 2]++;
    for (uint32_t s = 0; s < w->n_stores; s++) begin[s + 2] += begin[s + 1];
    for (uint32_t op = 0; op < n_ops; op++)
        for (uint32_t i = w->in.begin[op]; i < w->in.begin[op + 1]; i++)
            w->readers.items[begin[w->in.items[i] + 1]++] = op;
    return REMAT_OK;
}

/* ---- gates, and when ops run for the first time ---- */

/* Ops by rank: by first run in a fixed order, else as in the graph. */
static remat_status find_ranks(walls *w)
{
    const rm_court *c = w->c;
    const remat_graph *g = c->g;
    TRY(RM_SCRATCH(c->ctx, w->rank, g->n_ops));
    TRY(RM_SCRATCH(c->ctx, w->order, g->n_ops));
    for (uint32_t op = 0; op < g->n_ops; op++) w->rank[op] = REMAT_NONE;
    const size_t n = c->question->steps ? c->question->n_steps : g->n_ops;
    for (size_t i = 0; i < n; i++) {
        uint32_t op = (uint32_t)i;
        if (c->question->steps) {
            if (c->question->steps[i].kind != REMAT_RUN) continue;
            op = g->op_now[c->question->steps[i].index];
        }
        if (w->rank[op] != REMAT_NONE || rm_court_is_free_view(g, op)) continue;
        w->rank[op] = w->n_order;
        w->order[w->n_order++] = op;
    }
    for (uint32_t op = 0; op < g->n_ops; op++)
        if (w->rank[op] == REMAT_NONE && !rm_court_is_free_view(g, op))
            rm_blame(c->verdict, REMAT_NONE, "op %" PRIu32 " never runs", g->op_original[op]);
    return REMAT_OK;
}

/* Gates by rank. price_of: by op, 0: it is none. */
static remat_status find_gates(walls *w)
{
    const rm_court *c = w->c;
    const rm_certificate *x = c->certificate;
    int64_t *price_of, sum = 0;
    if (x->n_prices > MOST_GATES) {
        rm_blame(c->verdict, REMAT_NONE, "the certificate has more than %d prices", MOST_GATES);
        return REMAT_OK;
    }
    TRY(RM_SCRATCH(c->ctx, price_of, c->g->n_ops));
    TRY(RM_SCRATCH(c->ctx, w->gate, MOST_GATES));
    TRY(RM_SCRATCH(c->ctx, w->price, MOST_GATES));
    for (size_t i = 0; i < x->n_prices; i++) {
        const uint32_t original = x->prices[i].op;
        const uint32_t op = original < c->g->n_original_ops ? c->g->op_now[original] : REMAT_NONE;
        const bool ascends = i == 0 || x->prices[i - 1].op < original;
        if (op == REMAT_NONE || w->rank[op] == REMAT_NONE || x->prices[i].price <= 0 || !ascends) {
            rm_blame(c->verdict, REMAT_NONE,
                     "the certificate's price %zu is for no op, too low or out of order", i);
            return REMAT_OK;
        }
        price_of[op] = x->prices[i].price;
        if (rm_add_to_sum(&sum, x->prices[i].price)) continue;
        rm_blame(c->verdict, REMAT_NONE, "the certificate's prices sum up to 2^62 or more");
        return REMAT_OK;
    }
    for (uint32_t i = 0; i < w->n_order; i++) {
        if (price_of[w->order[i]] == 0) continue;
        w->gate[w->n_turns] = w->order[i];
        w->price[w->n_turns++] = price_of[w->order[i]];
    }
    w->n_turns++;
    return REMAT_OK;
}

static void find_turns_in_order(walls *w)
{
    for (uint32_t i = 0, turn = 0; i < w->n_order; i++) {
        const uint32_t op = w->order[i];
        w->first[op] = w->last[op] = turn;
        if (turn + 1 < w->n_turns && w->gate[turn] == op) turn++;
    }
}

/* From dependencies alone: an op runs behind what it depends on. Pinned ops run in the graph's
 * order. */
static void find_turns_in_any_order(walls *w)
{
    const remat_graph *g = w->c->g;
    uint32_t pinned = 0, turn = 0;
    for (uint32_t op = 0; op < g->n_ops; op++) { /* first: behind how many gates */
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++) {
            const uint32_t maker = g->producer[g->in[k]];
            if (maker == REMAT_NONE) continue;
            const uint32_t own = w->first[maker];
            raise_to(&w->first[op], own + (own + 1 < w->n_turns && w->gate[own] == maker));
        }
        if (g->pinned[op]) raise_to(&w->first[op], pinned);
        const bool is_gate = turn + 1 < w->n_turns && w->gate[turn] == op;
        if (is_gate && w->first[op] != turn) {
            rm_blame(w->c->verdict, REMAT_NONE,
                     "op %" PRIu32 " '%.60s' has a price, but does not depend on the op with the "
                     "price before",
                     g->op_original[op], rm_text(g, g->op_name[op]));
            return;
        }
        turn += is_gate;
        if (g->pinned[op]) pinned = w->first[op] + is_gate;
    }
    pinned = w->n_turns - 1;
    for (uint32_t op = 0; op < g->n_ops; op++) w->last[op] = w->n_turns - 1;
    for (uint32_t op = g->n_ops; op-- > 0;) {
        if (g->pinned[op]) lower_to(&w->last[op], pinned);
        if (w->first[op] + 1 < w->n_turns && w->gate[w->first[op]] == op)
            w->last[op] = w->first[op];
        if (g->pinned[op]) pinned = w->last[op];
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
            if (g->producer[g->in[k]] != REMAT_NONE)
                lower_to(&w->last[g->producer[g->in[k]]], w->last[op]);
    }
}

/* ---- what the ways take ---- */

/* What the budget leaves at the first run of a gate; less than 0: it does not fit. touched:
 * by storage. */
static int64_t room_at(const walls *w, uint32_t gate, uint8_t *touched)
{
    const remat_graph *g = w->c->g;
    int64_t room = w->c->question->budget_bytes - g->resident_bytes - g->workspace[gate];
    memset(touched, 0, w->n_stores);
    for (uint32_t i = w->in.begin[gate]; i < w->in.begin[gate + 1]; i++)
        touched[w->in.items[i]] = 1;
    for (uint32_t i = w->out.begin[gate]; i < w->out.begin[gate + 1]; i++)
        touched[w->out.items[i]] = 1;
    for (uint32_t s = 0; s < w->n_stores; s++)
        if (touched[s]) room -= w->bytes[s];
    /* An input may be gone where an output is made in its place. */
    for (uint32_t k = g->out_begin[gate]; k < g->out_begin[gate + 1]; k++) {
        if (g->out_takes[k] == REMAT_NONE) continue;
        const uint32_t s = w->store[g->root[g->in[g->in_begin[gate] + g->out_takes[k]]]];
        if (s == REMAT_NONE || touched[s] != 1) continue;
        touched[s] = 2;
        room += w->bytes[s];
    }
    return room;
}

static remat_status allocate(walls *w)
{
    remat_ctx *ctx = w->c->ctx;
    const size_t n_spots = (size_t)w->n_stores * w->n_turns,
                 n_runs = (size_t)w->c->g->n_ops * w->n_turns;
    if (n_spots > UINT32_MAX / 2 || n_runs > UINT32_MAX / 2) {
        rm_blame(w->c->verdict, REMAT_NONE, "the certificate has too many prices for this graph");
        return REMAT_OK;
    }
    TRY(RM_SCRATCH(ctx, w->keep, n_spots));
    TRY(RM_SCRATCH(ctx, w->run, n_runs));
    TRY(RM_SCRATCH(ctx, w->missing, n_runs));
    TRY(RM_SCRATCH(ctx, w->there, n_spots));
    TRY(RM_SCRATCH(ctx, w->wall_stamp, n_spots));
    TRY(RM_SCRATCH(ctx, w->op_stamp, n_runs));
    TRY(RM_SCRATCH(ctx, w->wall, n_spots));
    TRY(RM_SCRATCH(ctx, w->stack, n_spots));
    return RM_SCRATCH(ctx, w->ways, n_spots + n_runs);
}

/* Also sums up what the room of the gates is worth. */
static remat_status find_ways(walls *w, rm_uint128 *worth)
{
    const rm_court *c = w->c;
    uint8_t *touched;
    TRY(RM_SCRATCH(c->ctx, touched, w->n_stores));
    for (uint32_t t = 0; t + 1 < w->n_turns; t++) {
        const int64_t room = room_at(w, w->gate[t], touched);
        if (room < 0) {
            rm_blame(c->verdict, REMAT_NONE,
                     "the budget is below what op %" PRIu32 " '%.60s' needs",
                     c->g->op_original[w->gate[t]], rm_text(c->g, c->g->op_name[w->gate[t]]));
            return REMAT_OK;
        }
        *worth += (rm_uint128)w->price[t] * (rm_uint128)room;
        for (uint32_t s = 0; s < w->n_stores; s++)
            if (!touched[s])
                w->keep[spot_of(w, s, t)] = (rm_uint128)w->price[t] * (rm_uint128)w->bytes[s];
    }
    for (uint32_t op = 0; op < c->g->n_ops; op++)
        for (uint32_t t = w->last[op] + 1; t < w->n_turns; t++)
            w->run[spot_of(w, op, t)] =
                (rm_uint128)c->g->cost[op] * (rm_uint128)c->certificate->scale;
    return REMAT_OK;
}

/* Can the op run in that turn? A pinned one runs once. */
static bool can_run(const walls *w, uint32_t op, uint32_t turn)
{
    return turn >= w->first[op] && (turn <= w->last[op] || !w->c->g->pinned[op]);
}

static bool can_be_kept(const walls *w, uint32_t store, uint32_t turn)
{
    return turn + 1 < w->n_turns && turn >= w->first[w->maker[store]];
}

/* ---- what can be had for nothing ---- */

static void put(walls *w, uint32_t spot, size_t *n)
{
    if (w->there[spot]) return;
    w->there[spot] = 1;
    w->stack[(*n)++] = spot;
}

/* The op's outputs, if the run takes nothing and its inputs are there. */
static void try_run(walls *w, uint32_t op, uint32_t turn, size_t *n)
{
    const uint32_t at = spot_of(w, op, turn);
    if (w->missing[at] || w->run[at] || !can_run(w, op, turn)) return;
    for (uint32_t i = w->out.begin[op]; i < w->out.begin[op + 1]; i++)
        put(w, spot_of(w, w->out.items[i], turn), n);
}

/* What follows from the spots on the stack. */
static void follow(walls *w, size_t n)
{
    while (n > 0) {
        const uint32_t spot = w->stack[--n], s = spot / w->n_turns, t = spot % w->n_turns;
        if (can_be_kept(w, s, t) && !w->keep[spot]) put(w, spot + 1, &n);
        for (uint32_t i = w->readers.begin[s]; i < w->readers.begin[s + 1]; i++) {
            w->missing[spot_of(w, w->readers.items[i], t)]--;
            try_run(w, w->readers.items[i], t, &n);
        }
        w->work += 1 + w->readers.begin[s + 1] - w->readers.begin[s];
    }
}

static void begin(walls *w)
{
    for (uint32_t op = 0; op < w->c->g->n_ops; op++)
        for (uint32_t t = 0; t < w->n_turns; t++)
            w->missing[spot_of(w, op, t)] = w->in.begin[op + 1] - w->in.begin[op];
    for (uint32_t i = 0; i < w->n_order; i++)
        for (uint32_t t = w->first[w->order[i]]; t < w->n_turns; t++) {
            size_t n = 0;
            try_run(w, w->order[i], t, &n);
            follow(w, n);
        }
}

/* ---- walls ---- */

static bool is_in_wall(const walls *w, uint32_t spot) { return w->wall_stamp[spot] == w->stamp; }

static void add_to_wall(walls *w, uint32_t spot)
{
    assert(!w->there[spot]);
    if (is_in_wall(w, spot)) return;
    w->wall_stamp[spot] = w->stamp;
    w->wall[w->n_wall++] = spot;
}

static bool reads_wall(walls *w, uint32_t op, uint32_t turn)
{
    w->work += w->in.begin[op + 1] - w->in.begin[op];
    for (uint32_t i = w->in.begin[op]; i < w->in.begin[op + 1]; i++)
        if (is_in_wall(w, spot_of(w, w->in.items[i], turn))) return true;
    return false;
}

/* Of the inputs that are not there, the one that is made last. */
static uint32_t missing_input(const walls *w, uint32_t op, uint32_t turn)
{
    uint32_t best = REMAT_NONE;
    for (uint32_t i = w->in.begin[op]; i < w->in.begin[op + 1]; i++) {
        const uint32_t s = w->in.items[i];
        if (w->there[spot_of(w, s, turn)]) continue;
        if (best == REMAT_NONE || w->rank[w->maker[s]] > w->rank[w->maker[best]] ||
            (w->maker[s] == w->maker[best] && s > best))
            best = s;
    }
    assert(best != REMAT_NONE);
    return best;
}

/* Takes in what lies behind ways that are used up. */
static void close_wall(walls *w)
{
    for (uint32_t i = 0; i < w->n_wall; i++) {
        const uint32_t spot = w->wall[i], s = spot / w->n_turns, t = spot % w->n_turns,
                       op = w->maker[s];
        if (t > 0 && can_be_kept(w, s, t - 1) && !w->keep[spot - 1]) add_to_wall(w, spot - 1);
        if (can_run(w, op, t) && !w->run[spot_of(w, op, t)] && !reads_wall(w, op, t))
            add_to_wall(w, spot_of(w, missing_input(w, op, t), t));
    }
    w->work += w->n_wall;
}

/* Lists the ways into the wall, and answers what the least of them still takes. */
static rm_uint128 find_entries(walls *w)
{
    rm_uint128 least = ~(rm_uint128)0;
    w->n_ways = 0;
    for (uint32_t i = 0; i < w->n_wall; i++) {
        const uint32_t spot = w->wall[i], s = spot / w->n_turns, t = spot % w->n_turns,
                       op = w->maker[s], at = spot_of(w, op, t);
        if (t > 0 && can_be_kept(w, s, t - 1) && !is_in_wall(w, spot - 1)) {
            w->ways[w->n_ways++] = (way){false, spot - 1};
            if (w->keep[spot - 1] < least) least = w->keep[spot - 1];
        }
        if (!can_run(w, op, t) || w->op_stamp[at] == w->stamp || reads_wall(w, op, t)) continue;
        w->op_stamp[at] = w->stamp;
        w->ways[w->n_ways++] = (way){true, at};
        if (w->run[at] < least) least = w->run[at];
    }
    assert(w->n_ways > 0 && least > 0);
    return least;
}

static void pay(walls *w, way x, rm_uint128 amount)
{
    size_t n = 0;
    rm_uint128 *left = x.is_run ? &w->run[x.from] : &w->keep[x.from];
    *left -= amount;
    if (*left) return;
    if (x.is_run) try_run(w, x.from / w->n_turns, x.from % w->n_turns, &n);
    else if (w->there[x.from]) put(w, x.from + 1, &n);
    follow(w, n);
}

static bool is_there(const walls *w, uint32_t store, uint32_t first, uint32_t last)
{
    for (uint32_t t = first; t <= last; t++)
        if (w->there[spot_of(w, store, t)]) return true;
    return false;
}

/* Raises walls around a storage that is needed in one of these turns, until it is there. False: the
 * verdict says why. */
static bool raise_walls(walls *w, uint32_t store, uint32_t first, uint32_t last)
{
    while (!is_there(w, store, first, last)) {
        if (w->work > MOST_WORK)
            return rm_blame(w->c->verdict, REMAT_NONE, "%s", rm_too_long_to_check);
        w->stamp++;
        w->n_wall = 0;
        for (uint32_t t = first; t <= last; t++) add_to_wall(w, spot_of(w, store, t));
        close_wall(w);
        const rm_uint128 amount = find_entries(w);
        if (rm_add_overflows(w->c->proved, amount, &w->c->proved))
            return rm_blame(w->c->verdict, REMAT_NONE, "the certificate's numbers are too large");
        for (size_t i = 0; i < w->n_ways; i++) pay(w, w->ways[i], amount);
        w->work += w->n_ways;
    }
    return true;
}

/* First runs in order: those whose turn is sure, or the others. */
static bool meet_needs_of_runs(walls *w, bool sure)
{
    for (uint32_t i = 0; i < w->n_order; i++) {
        const uint32_t op = w->order[i];
        if ((w->first[op] == w->last[op]) != sure) continue;
        for (uint32_t k = w->in.begin[op]; k < w->in.begin[op + 1]; k++)
            if (!raise_walls(w, w->in.items[k], w->first[op], w->last[op])) return false;
    }
    return true;
}

static bool meet_needs_of_the_end(walls *w)
{
    const uint32_t turn = w->n_turns - 1;
    for (uint32_t v = 0; v < w->c->g->n_values; v++)
        if (w->c->is_output[v] && !raise_walls(w, w->store[v], turn, turn)) return false;
    return true;
}

/* An op that may run in several turns needs all its inputs in one of them. Walls around what it
 * makes know that. Walls around one input do not, so they come last. */
static bool meet_needs(walls *w)
{
    return meet_needs_of_runs(w, true) && meet_needs_of_the_end(w) && meet_needs_of_runs(w, false);
}

remat_status rm_court_prove_walls(rm_court *c)
{
    walls w = {.c = c};
    rm_uint128 worth = 0;
    if (c->question->fetches || c->certificate->n_heirs) {
        rm_blame(c->verdict, REMAT_NONE,
                 "a certificate of walls has no heirs, and is not for plans that may fetch");
        return REMAT_OK;
    }
    TRY(list_stores(&w));
    TRY(list_touched(&w));
    TRY(list_readers(&w));
    TRY(find_ranks(&w));
    if (c->verdict->valid) TRY(find_gates(&w));
    if (!c->verdict->valid) return REMAT_OK;
    TRY(RM_SCRATCH(c->ctx, w.first, c->g->n_ops));
    TRY(RM_SCRATCH(c->ctx, w.last, c->g->n_ops));
    if (c->question->steps) find_turns_in_order(&w);
    else find_turns_in_any_order(&w);
    if (c->verdict->valid) TRY(allocate(&w));
    if (c->verdict->valid) TRY(find_ways(&w, &worth));
    if (!c->verdict->valid) return REMAT_OK;
    begin(&w);
    if (meet_needs(&w)) c->proved = c->proved > worth ? c->proved - worth : 0;
    return REMAT_OK;
}
