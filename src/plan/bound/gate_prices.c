/* gate_prices.c: prices of memory that prove a bound by walls.
 *
 * Problem: at which ops shall bytes have a price, and which? walls.c says what prices prove.
 *
 * Method: with the best walls that would be a concave function of the prices. A few gates do: three
 * in a network with half of its memory, twenty near the least memory. So a walk changes one or two
 * prices at a time, and keeps what proves no less. Its steps are to drop a price, to scale it, to
 * give it to another gate, to price a new gate, and to move a gate to one nearby. The gates that it
 * chooses among are those that the flow bound's prices gather at, and where most is needed or in
 * memory. Two walks take a third of the work each, one from prices that are known (the flow
 * bound's, or those of a bound for a similar question), one from none; the better of the two goes
 * on.
 *
 * Invariant: all that is random comes from a seed that is always the same, so a bound depends on
 * plan and work alone. Cost: the limit of work. */
#include "plan/bound/gate_prices.h"

#include <stdlib.h>
#include <string.h>

#include "base/exp_log.h"
#include "base/limits.h"
#include "base/random.h"
#include "plan/bound/walls.h"

enum {
    FLOW_SITES = 12, /* where the flow bound's prices gather */
    SITES = 16,      /* where most is needed; and where most is in memory */
    ALL_SITES = FLOW_SITES + RM_MOST_GATES + 2 * SITES,
    LEAST_TRIALS = 20, /* if there is no work for so many, the graph is too large */
    DRY_AN_OP = 10,
    MOST_DRY = 1500 /* trials in a row that prove no more: a walk ends */
};
static const double wide = 1.4, narrow = 0.26; /* logarithms: by how much prices are scaled */
static const double least_price = 0.03, most_price = 10; /* of new gates, in usual prices */

typedef struct pricing {
    rm_walls walls;
    const rm_gate_question *question;
    /* Where gates may be. Not all have a price. */
    uint32_t site[ALL_SITES]; /* positions */
    double price[ALL_SITES];  /* of a byte, in cost units */
    uint32_t n_sites;
    rm_gate gates[RM_MOST_GATES];
} pricing;

/* The sites that have a price, in order. False: they are too many. */
static bool find_gates(pricing *p, uint32_t *n_gates)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_sites; i++) {
        const double amount = p->price[i] * (double)p->walls.scale;
        const int64_t price = amount < (double)RM_MOST_PRICE ? (int64_t)amount : RM_MOST_PRICE;
        if (price <= 0 || p->walls.room[p->site[i]] < 0) continue;
        uint32_t at = n;
        while (at > 0 && p->gates[at - 1].position >= p->site[i]) at--;
        if (at < n && p->gates[at].position == p->site[i]) continue;
        if (n == RM_MOST_GATES) return false;
        memmove(p->gates + at + 1, p->gates + at, (n - at) * sizeof *p->gates);
        p->gates[at] = (rm_gate){p->site[i], price};
        n++;
    }
    *n_gates = n;
    return true;
}

static double try_prices(pricing *p)
{
    uint32_t n;
    return find_gates(p, &n) ? rm_walls_prove(&p->walls, p->gates, n) : -1;
}

/* ---- where gates may be ---- */

static void add_site(pricing *p, uint32_t position, double price)
{
    if (p->walls.room[position] < 0 || rm_is_free_view(p->walls.nm, p->walls.gs.at[position]))
        return;
    for (uint32_t i = 0; i < p->n_sites; i++) {
        if (p->site[i] != position) continue;
        p->price[i] += price;
        return;
    }
    if (p->n_sites == ALL_SITES) return;
    p->site[p->n_sites] = position;
    p->price[p->n_sites++] = price;
}

/* By position: the certificate's prices, in cost units. Answers their sum. */
static remat_status read_prices(pricing *p, const rm_certificate *x, double *price, double *sum)
{
    const remat_graph *g = p->walls.nm->g;
    uint32_t *at; /* by original op: 1 + position */
    TRY(RM_SCRATCH(p->walls.ctx, at, g->n_original_ops));
    for (uint32_t t = 0; t < p->walls.gs.n; t++)
        at[g->op_original[p->walls.nm->op[p->walls.gs.at[t]]]] = t + 1;
    for (size_t i = 0; i < x->n_prices; i++) {
        const uint32_t t = at[x->prices[i].op];
        if (t == 0) continue; /* not on the path */
        price[t - 1] = (double)x->prices[i].price / (double)x->scale;
        *sum += price[t - 1];
    }
    return REMAT_OK;
}

/* Gates at the certificate's prices: those of a bound by walls as they are. A flow bound's are
 * many, so each part of their sum goes where most of it is. */
static remat_status add_sites_of(pricing *p, const rm_certificate *x)
{
    double *price, sum = 0, part = 0;
    uint32_t best = 0;
    if (!x || x->scale == 0) return REMAT_OK;
    TRY(RM_SCRATCH(p->walls.ctx, price, p->walls.gs.n));
    TRY(read_prices(p, x, price, &sum));
    const double enough = x->walls ? 0 : sum / FLOW_SITES;
    for (uint32_t t = 0; t < p->walls.gs.n; t++) {
        if (part == 0 || price[t] > price[best]) best = t;
        part += price[t];
        if (part == 0 || (part < enough && t + 1 < p->walls.gs.n)) continue;
        add_site(p, best, part);
        part = 0;
    }
    return REMAT_OK;
}

/* In each of SITES parts of the time: where most is needed, and where keep-all has most. */
static void add_full_sites(pricing *p)
{
    for (uint32_t i = 0; i < SITES; i++) {
        const uint32_t begin = (uint32_t)((uint64_t)i * p->walls.gs.n / SITES),
                       end = (uint32_t)((uint64_t)(i + 1) * p->walls.gs.n / SITES);
        uint32_t needed = begin, full = begin;
        for (uint32_t t = begin; t < end; t++) {
            if (p->walls.gs.need[t] > p->walls.gs.need[needed]) needed = t;
            if (p->walls.gs.need[t] + p->walls.gs.load[t] >
                p->walls.gs.need[full] + p->walls.gs.load[full])
                full = t;
        }
        if (begin == end) continue;
        add_site(p, needed, 0);
        add_site(p, full, 0);
    }
}

/* ---- the walk ---- */

static double scaled(double price, double width, rm_random *r)
{
    return price * rm_exp(width * (rm_random_unit(r) - 0.5));
}

/* What a byte costs if all of keep-all's bytes together cost what keep-all does. */
static double usual_price(const pricing *p)
{
    double bytes = 1, cost = 1;
    for (uint32_t s = 0; s < p->walls.nm->n_stores; s++) bytes += (double)p->walls.nm->bytes[s];
    for (uint32_t op = 0; op < p->walls.nm->n_ops; op++) cost += (double)p->walls.nm->cost[op];
    return cost / bytes;
}

static void change_price(pricing *p, double usual, rm_random *r)
{
    const uint32_t i = rm_random_below(r, p->n_sites), j = rm_random_below(r, p->n_sites);
    double *price = &p->price[i];
    if (*price <= 0) {
        const double share = rm_log(most_price / least_price) * rm_random_unit(r);
        *price = usual * least_price * rm_exp(share);
        if (p->price[j] > 0 && i != j && rm_random_below(r, 4) == 0) {
            if (*price > p->price[j]) *price = p->price[j];
            p->price[j] -= *price;
        }
        return;
    }
    switch (rm_random_below(r, 5)) {
    case 0: *price = 0; break;
    case 1: *price = scaled(*price, wide, r); break;
    case 2: *price = scaled(*price, narrow, r); break;
    case 3:
        if (i == j) break;
        p->price[j] += *price;
        *price = 0;
        break;
    default: { /* a gate nearby */
        const uint32_t reach = 1 + p->walls.gs.n / (2 * SITES),
                       step = 1 + rm_random_below(r, reach);
        const bool is_before = rm_random_below(r, 2);
        if (is_before ? p->site[i] < step : p->walls.gs.n - p->site[i] <= step) break;
        const uint32_t to = is_before ? p->site[i] - step : p->site[i] + step;
        if (p->walls.room[to] >= 0 && !rm_is_free_view(p->walls.nm, p->walls.gs.at[to]))
            p->site[i] = to;
    }
    }
}

typedef struct prices {
    uint32_t site[ALL_SITES];
    double price[ALL_SITES], proved;
} prices;

static void save(const pricing *p, prices *out, double proved)
{
    memcpy(out->site, p->site, sizeof out->site);
    memcpy(out->price, p->price, sizeof out->price);
    out->proved = proved;
}

static void load(pricing *p, const prices *from)
{
    memcpy(p->site, from->site, sizeof p->site);
    memcpy(p->price, from->price, sizeof p->price);
}

/* The sites, and the better of the prices to start from; none where neither proves anything. */
static remat_status begin_walk(pricing *p, prices *best)
{
    *best = (prices){.proved = 0};
    TRY(add_sites_of(p, p->question->flow));
    double proved = try_prices(p);
    if (proved > 0) save(p, best, proved);
    memset(p->price, 0, sizeof p->price);
    TRY(add_sites_of(p, p->question->other));
    proved = try_prices(p);
    if (proved <= best->proved) memcpy(p->price, best->price, sizeof p->price);
    else best->proved = proved;
    add_full_sites(p);
    save(p, best, best->proved);
    return REMAT_OK;
}

/* From the best so far, until so much work is done. */
static void walk(pricing *p, int64_t most_work, rm_random *r, prices *best)
{
    const double usual = usual_price(p), enough = (double)p->question->enough;
    const uint64_t dries = (uint64_t)DRY_AN_OP * p->walls.nm->n_ops;
    const uint32_t most_dry = dries < MOST_DRY ? (uint32_t)dries : MOST_DRY;
    for (uint32_t dry = 0; dry < most_dry && p->walls.work < most_work; dry++) {
        if (best->proved >= enough || rm_is_late(p->walls.ctx)) return;
        load(p, best);
        for (uint32_t n = 1 + rm_random_below(r, 2); n > 0; n--) change_price(p, usual, r);
        const double proved = try_prices(p);
        if (proved > best->proved) dry = 0;
        if (proved >= best->proved) save(p, best, proved);
    }
}

static void find_prices(pricing *p, prices *best)
{
    rm_random r = {1};
    const int64_t most = p->question->most_work;
    prices other; /* from none */
    if (p->n_sites == 0 || p->walls.work > most / LEAST_TRIALS) return;
    load(p, best);
    memset(p->price, 0, sizeof p->price);
    save(p, &other, 0);
    walk(p, most / 3, &r, best);
    walk(p, most / 3 * 2, &r, &other);
    if (other.proved > best->proved) *best = other;
    walk(p, most, &r, best);
}

/* ---- the certificate ---- */

static int by_op(const void *left, const void *right)
{
    const rm_price *a = left, *b = right;
    return (a->op > b->op) - (a->op < b->op);
}

static remat_status write_certificate(pricing *p, const prices *best, rm_certificate *out)
{
    const rm_normal *nm = p->walls.nm;
    uint32_t n;
    load(p, best);
    if (best->proved <= 0 || !find_gates(p, &n)) return REMAT_OK;
    TRY(RM_SCRATCH(p->walls.ctx, out->prices, n));
    out->scale = p->walls.scale;
    out->walls = true;
    for (; out->n_prices < n; out->n_prices++) {
        const rm_gate *gate = &p->gates[out->n_prices];
        const uint32_t op = nm->op[p->walls.gs.at[gate->position]];
        out->prices[out->n_prices] = (rm_price){nm->g->op_original[op], gate->price};
    }
    qsort(out->prices, n, sizeof *out->prices, by_op);
    return REMAT_OK;
}

remat_status rm_gate_prices_find(remat_ctx *ctx, const rm_normal *nm,
                                 const rm_gate_question *question, rm_certificate *out)
{
    pricing p = {.question = question};
    prices best;
    *out = (rm_certificate){.scale = 0};
    if (!rm_walls_apply(nm, question->most_work, LEAST_TRIALS)) return REMAT_OK;
    TRY(rm_walls_begin(ctx, nm, question->budget_bytes, question->order, &p.walls));
    p.walls.most_work = question->most_work;
    TRY(begin_walk(&p, &best));
    find_prices(&p, &best);
    rm_spend(ctx, p.walls.work);
    return write_certificate(&p, &best, out);
}
