/* rotor_float.c: the best chain schedule of all, floating activations included (Rotor, Theorem 4.7,
 * repaired).
 *
 * C(s, t, l, m) is the least time to get from delta^l to delta^(t-1), s <= t <= l, with a^(s-1)
 * stored and m memory besides it. a^(s-1) may float (be replaced by a later activation) up to
 * a^(t-1). As printed the theorem has no way to move the floating activation to a^(t-1) and then
 * save all, and misses schedules. This is the recurrence that equals brute force over Table 1
 * (delta = a, abar >= a):
 *
 *   s = t:  Fall^s, then C(s+1, s+1, l, m - abar^s), then B^s
 *   s < t:  Fnone^s: the activation floats one stage: tf^s + C(s+1, t, l, m + a^(s-1) - a^s)
 *   t < l:  a^(s'-1) is the next one kept, and carries on to t': over s < s' <= t', t < t' <= l:
 *           sum of tf^s .. tf^(s'-1) + C(s', t', l, m - a^(s'-1)) + C(s, t, t'-1, m)
 *
 * The last line splits, since s' does not meet t. Let G(s, t', l, m) be the minimum over s' of
 * forward times + C(s', t', l, m - a^(s'-1)). Then the line is the minimum over t' of
 * G(s, t', l, m) + C(s, t, t'-1, m).
 *
 * Persistent schedules are tried first (rotor.c), so this is never worse than rotor.
 *
 * Slots are those of slots.c. With slots = 0 it is exact: a slot is the common divisor of all
 * sizes, and there may be max_slots of them. Without a wish (-1) it is exact where the common
 * divisor gives few enough slots; otherwise there are as many as most_work allows, up to 500.
 *
 * Cost: O(M L^4) time instead of the L^5 of the recurrence as it stands and the L^6 of Algorithm 1;
 * O(M L^3) memory. */
#include "plan/chains/rotor.h"
#include "plan/chains/slots.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

enum { SUMS_A_WORK = 4 }; /* sums of the table in one operation of the limits */

static const double most_work = 0.5 * RM_SECOND; /* where nobody asked for so many slots */

typedef struct table {
    uint32_t n, width; /* width: that of the slots */
    rm_slots slots;
    uint32_t *a, *abar;     /* in slots, by stage 0 .. n */
    double *before, *tb;    /* tf^1 + .. + tf^(l-1); by stage */
    uint32_t *need_all;     /* by rm_rotor_at(n, s, l): to run Fall^s and B^s */
    uint32_t *need_float;   /* by rm_rotor_at(n, s, l): to run Fnone^s */
    uint32_t *need_forward; /* by cell_at(s, j, l): to run F^s .. F^j, delta^l and a^(s-1) stored */
    double *c;              /* width of them by cell_at(s, t, l) */
} table;

/* Cells of one l lie together, by t, then s: 1 <= s <= t <= l. */
static size_t cell_at(uint32_t s, uint32_t t, uint32_t l)
{
    return (size_t)(l - 1) * l * (l + 1) / 6 + (size_t)t * (t - 1) / 2 + s - 1;
}

static double *cell(const table *x, uint32_t s, uint32_t t, uint32_t l)
{
    return x->c + cell_at(s, t, l) * x->width;
}

/* acc[m] = min(acc[m], p[m - shift] + plus) for m >= from. */
static inline void relax(double *restrict acc, const double *restrict p, uint32_t shift,
                         double plus, uint32_t from, uint32_t width)
{
    const uint32_t begin = from > shift ? from : shift;
    for (uint32_t m = begin; m < width; m++) {
        const double v = p[m - shift] + plus;
        acc[m] = v < acc[m] ? v : acc[m];
    }
}

/* acc[m] = min(acc[m], p[m] + q[m]). */
static inline void relax_sum(double *restrict acc, const double *restrict p,
                             const double *restrict q, uint32_t width)
{
    for (uint32_t m = 0; m < width; m++) {
        const double v = p[m] + q[m];
        acc[m] = v < acc[m] ? v : acc[m];
    }
}

/* Fills all cells (s, t, l) for given s and l. g is room for G(s, t', l, .) by t'. */
RM_MULTIVERSION static void fill_row(const table *x, uint32_t s, uint32_t l, double *g)
{
    const uint32_t w = x->width;
    for (uint32_t t = s + 1; t <= l; t++) {
        double *acc = g + (size_t)t * w;
        for (uint32_t m = 0; m < w; m++) acc[m] = INFINITY;
        for (uint32_t split = s + 1; split <= t; split++)
            relax(acc, cell(x, split, t, l), x->a[split - 1], x->before[split] - x->before[s],
                  x->need_forward[cell_at(s, split - 1, l)], w);
    }
    for (uint32_t t = s; t <= l; t++) {
        double *acc = cell(x, s, t, l);
        const double tf = x->before[s + 1] - x->before[s];
        for (uint32_t m = 0; m < w; m++) acc[m] = INFINITY;
        if (s == t) {
            const uint32_t need = x->need_all[rm_rotor_at(x->n, s, l)];
            if (s == l) {
                for (uint32_t m = need; m < w; m++) acc[m] = tf + x->tb[s];
            } else {
                relax(acc, cell(x, s + 1, s + 1, l), x->abar[s], tf + x->tb[s], need, w);
            }
        } else {
            const double *p = cell(x, s + 1, t, l);
            const uint32_t need = x->need_float[rm_rotor_at(x->n, s, l)];
            const uint32_t up = x->a[s - 1], down = x->a[s];
            for (uint32_t m = need; m < w; m++) {
                const uint32_t to = m + up < down ? w : m + up - down;
                const double v = to < w ? tf + p[to] : INFINITY;
                if (v < acc[m]) acc[m] = v;
            }
        }
        for (uint32_t next = t + 1; next <= l; next++)
            relax_sum(acc, g + (size_t)next * w, cell(x, s, t, next - 1), w);
    }
}

static int64_t common_divisor_of_sizes(const remat_chain *c)
{
    int64_t divisor = 0;
    for (uint32_t l = 0; l <= c->n_stages + 1; l++) {
        const remat_stage *s = &c->stages[l];
        const int64_t sizes[] = {s->a, s->abar, s->delta, s->of, s->ob, s->keep};
        for (size_t i = 0; i < RM_LEN(sizes); i++) divisor = rm_common_divisor(divisor, sizes[i]);
    }
    return divisor ? divisor : 1;
}

static rm_slot_price price_of(uint32_t n_stages)
{
    const double n = n_stages, cells = n * (n + 1) * (n + 2) / 6;
    return (rm_slot_price){.bytes_a_slot = cells * sizeof(double),
                           .bytes = cells * sizeof(uint32_t) +
                                    n * n * (2 * sizeof(int64_t) + 2 * sizeof(uint32_t)),
                           .work_a_slot = n * n * n * n / 12 / SUMS_A_WORK,
                           .most_work = most_work};
}

/* Slots that round nothing, if there are few enough. *chosen: there are. */
static remat_status choose_exact(const rm_chain_problem *p, const rm_slot_price *price, table *x,
                                 bool *chosen)
{
    remat_ctx *ctx = p->ctx;
    const bool must = ctx->options.slots == 0;
    const int64_t unit = common_divisor_of_sizes(p->chain);
    const int64_t budget = p->budgets[p->n_budgets - 1], slots = budget / unit;
    const double bytes = price->bytes + (double)(slots + 1) * price->bytes_a_slot;
    *chosen = false;
    if (slots > ctx->options.max_slots)
        return !must ? REMAT_OK
                     : rm_fail(ctx, REMAT_E_APPLIES,
                               "to be exact rotor-float needs %" PRId64 " slots of %" PRId64
                               ", more than --max-slots %" PRId64 ": use --slots 500",
                               slots, unit, ctx->options.max_slots);
    if (bytes > (double)rm_memory_left(ctx))
        return !must ? REMAT_OK
                     : rm_fail(ctx, REMAT_E_APPLIES,
                               "on %u stages with %" PRId64 " slots it takes %.1f GB, more than "
                               "memory_bytes allows: use fewer --slots, or rotor",
                               x->n - 1, slots, bytes * 1e-9);
    if (!must && (double)slots * price->work_a_slot > price->most_work) return REMAT_OK;
    x->slots = rm_slots_of_unit(unit, budget);
    *chosen = true;
    return REMAT_OK;
}

/* *chosen: there is a table to be filled. If not, rm_stopped says why. */
static remat_status choose_slots(const rm_chain_problem *p, table *x, bool *chosen)
{
    const rm_slot_price price = price_of(x->n);
    *chosen = false;
    if (p->ctx->options.slots <= 0) TRY(choose_exact(p, &price, x, chosen));
    if (!*chosen) {
        TRY(rm_slots_choose(p, &price, &x->slots));
        *chosen = x->slots.n > 0;
    }
    x->width = rm_slots_width(&x->slots);
    return REMAT_OK;
}

/* The thresholds, in slots. kept: keep^1 + .. + keep^l, by l. */
static void fill_needs(table *x, const remat_chain *c, const rm_rotor_needs *needs,
                       const int64_t *kept)
{
    const uint32_t n = x->n;
    for (uint32_t l = 1; l <= n; l++)
        for (uint32_t s = 1; s <= l; s++) {
            const size_t at = rm_rotor_at(n, s, l);
            int64_t widest = 0;
            for (uint32_t j = s; j <= l; j++) {
                const remat_stage *y = &c->stages[j];
                const int64_t input = j > s ? c->stages[j - 1].a : 0;
                const int64_t kept_now = l == n ? kept[j] : kept[l];
                const int64_t run = c->stages[l].delta + y->of + y->a + input + kept_now;
                if (run > widest) widest = run;
                x->need_forward[cell_at(s, j, l)] = rm_slots_up(&x->slots, widest);
            }
            x->need_all[at] = rm_slots_up(&x->slots, needs->all[at]);
            x->need_float[at] = x->need_forward[cell_at(s, s, l)];
        }
}

static remat_status prepare(remat_ctx *ctx, const remat_chain *c, table *x)
{
    const size_t n = x->n, n_cells = n * (n + 1) * (n + 2) / 6;
    rm_rotor_needs needs;
    int64_t *kept; /* keep^1 + .. + keep^l */
    TRY(rm_rotor_needs_find(ctx, c, &needs));
    TRY(RM_SCRATCH(ctx, x->a, n + 1));
    TRY(RM_SCRATCH(ctx, x->abar, n + 1));
    TRY(RM_SCRATCH(ctx, x->before, n + 2));
    TRY(RM_SCRATCH(ctx, x->tb, n + 1));
    TRY(RM_SCRATCH(ctx, x->need_all, (n + 1) * (n + 1)));
    TRY(RM_SCRATCH(ctx, x->need_float, (n + 1) * (n + 1)));
    TRY(RM_SCRATCH(ctx, x->need_forward, n_cells));
    TRY(RM_SCRATCH(ctx, x->c, n_cells * x->width));
    TRY(RM_SCRATCH(ctx, kept, n + 1));
    rm_slots_of_chain(&x->slots, c, x->a, x->abar);
    for (uint32_t l = 1; l <= n; l++) {
        x->tb[l] = (double)c->stages[l].tb;
        x->before[l + 1] = x->before[l] + (double)c->stages[l].tf;
        kept[l] = kept[l - 1] + c->stages[l].keep;
    }
    fill_needs(x, c, &needs, kept);
    return REMAT_OK;
}

/* ---- reading it ---- */

typedef struct state { /* a cell to be read, or B^s */
    uint32_t s, t, l;
    int64_t m;
    bool only_backward;
} state;

static double value_at(const table *x, uint32_t s, uint32_t t, uint32_t l, int64_t m)
{
    return m < 0 || m >= x->width ? INFINITY : cell(x, s, t, l)[m];
}

/* The cheapest case of the recurrence's last line. *split is s', *carry is t'. */
static double best_split(const table *x, const state *f, uint32_t *split, uint32_t *carry)
{
    double best = INFINITY;
    for (uint32_t next = f->t + 1; next <= f->l; next++)
        for (uint32_t k = f->s + 1; k <= next; k++) {
            if (f->m < x->need_forward[cell_at(f->s, k - 1, f->l)]) continue;
            const double v = x->before[k] - x->before[f->s] +
                             value_at(x, k, next, f->l, f->m - x->a[k - 1]) +
                             value_at(x, f->s, f->t, next - 1, f->m);
            if (v >= best) continue;
            best = v;
            *split = k;
            *carry = next;
        }
    return best;
}

/* The cheapest of the other two lines. */
static double first_step(const table *x, const state *f)
{
    const double tf = x->before[f->s + 1] - x->before[f->s];
    const size_t at = rm_rotor_at(x->n, f->s, f->l);
    if (f->s < f->t) {
        if (f->m < x->need_float[at]) return INFINITY;
        return tf + value_at(x, f->s + 1, f->t, f->l, f->m + x->a[f->s - 1] - (int64_t)x->a[f->s]);
    }
    if (f->m < x->need_all[at]) return INFINITY;
    const double rest =
        f->s == f->l ? 0 : value_at(x, f->s + 1, f->s + 1, f->l, f->m - x->abar[f->s]);
    return tf + x->tb[f->s] + rest;
}

static bool has(const void *p, uint32_t m)
{
    const table *x = p;
    return value_at(x, 1, 1, x->n, m) < INFINITY;
}

/* Appends the schedule of C(1, 1, n, m), which must be finite. */
static remat_status trace(remat_ctx *ctx, const void *p, int64_t m, rm_schedule *out)
{
    const table *x = p;
    state *stack;
    size_t depth = 0;
    const size_t room = 4 * (size_t)x->n + 4;
    TRY(RM_SCRATCH(ctx, stack, room));
    stack[depth++] = (state){1, 1, x->n, m, false};
    while (depth) {
        assert(depth < room); /* one state goes, two may come */
        const state f = stack[--depth];
        if (f.only_backward) {
            TRY(rm_chain_step(ctx, out, REMAT_B, f.s));
            continue;
        }
        uint32_t split = 0, carry = 0;
        if (best_split(x, &f, &split, &carry) < first_step(x, &f)) {
            for (uint32_t l = f.s; l < split; l++)
                TRY(rm_chain_step(ctx, out, l == f.s ? REMAT_F_CK : REMAT_F_NONE, l));
            stack[depth++] = (state){f.s, f.t, carry - 1, f.m, false};
            stack[depth++] = (state){split, carry, f.l, f.m - x->a[split - 1], false};
        } else if (f.s == f.t) {
            TRY(rm_chain_step(ctx, out, REMAT_F_ALL, f.s));
            stack[depth++] = (state){f.s, f.s, f.s, 0, true};
            if (f.s < f.l)
                stack[depth++] = (state){f.s + 1, f.s + 1, f.l, f.m - x->abar[f.s], false};
        } else {
            TRY(rm_chain_step(ctx, out, REMAT_F_NONE, f.s));
            stack[depth++] =
                (state){f.s + 1, f.t, f.l, f.m + x->a[f.s - 1] - (int64_t)x->a[f.s], false};
        }
    }
    return REMAT_OK;
}

/* Do doubles hold every sum of times exactly? */
static bool times_are_exact(const remat_chain *c)
{
    double longest = 0;
    for (uint32_t l = 1; l <= c->n_stages + 1; l++)
        longest += (double)c->stages[l].tf * (c->n_stages + 2) + (double)c->stages[l].tb;
    return longest < 9007199254740992.0;
}

/* *done: the limits allowed all of the table. If not, rm_stopped says why. */
static remat_status fill(remat_ctx *ctx, const table *x, bool *done)
{
    double *g;
    *done = false;
    TRY(RM_SCRATCH(ctx, g, ((size_t)x->n + 1) * x->width));
    for (uint32_t l = 1; l <= x->n; l++) {
        for (uint32_t s = l; s >= 1; s--) {
            fill_row(x, s, l, g);
            const int64_t sums = (int64_t)(l - s + 1) * (l - s + 2) * x->width;
            const bool is_last = s == 1 && l == x->n;
            if (rm_spend(ctx, sums / SUMS_A_WORK) && !is_last) return REMAT_OK;
        }
        rm_report(ctx, "rotor-float", (int)(1000 * (uint64_t)l / x->n), REMAT_ABSENT, REMAT_ABSENT);
    }
    *done = true;
    return REMAT_OK;
}

static remat_status answer(const rm_chain_problem *p, const table *x, rm_chain_result *results)
{
    const bool proves = x->slots.per_slot && rm_chain_is_plain(p->chain);
    for (uint32_t i = 0; proves && i < p->n_budgets; i++) {
        const int64_t m = (int64_t)rm_slots_down(&x->slots, p->budgets[i]) - x->a[0];
        const bool found = value_at(x, 1, 1, x->n, m) < INFINITY;
        results[i].infeasible |= !found;
        results[i].optimal |= found && times_are_exact(p->chain);
    }
    const rm_slot_table view = {&x->slots, x, x->a[0], has, trace};
    return rm_slots_answer(p, &view, results);
}

static remat_status floating(const rm_chain_problem *p, rm_chain_result *results)
{
    table x = {.n = p->chain->n_stages + 1};
    bool chosen, done;
    TRY(choose_slots(p, &x, &chosen));
    if (!chosen) return REMAT_OK;
    TRY(prepare(p->ctx, p->chain, &x));
    TRY(fill(p->ctx, &x, &done));
    return done ? answer(p, &x, results) : REMAT_OK;
}

static remat_status float_chain(const rm_chain_problem *p, rm_chain_result *results)
{
    const rm_mark mark = rm_scratch_mark(p->ctx);
    const remat_status status = rm_rotor.run_chain(p, results);
    rm_scratch_release(p->ctx, mark);
    if (status != REMAT_E_APPLIES) TRY(status); /* else the other table may do with less memory */
    /* Nothing floats on such a chain (Rotor, section 4.3). */
    if (rm_chain_is_plain(p->chain) && rm_chain_never_grows(p->chain)) return status;
    return floating(p, results);
}

static remat_status float_graph(const rm_problem *p, rm_incumbent *best)
{
    return rm_run_by_chain(p, best, &rm_rotor_float);
}

const rm_planner rm_rotor_float = {
    .entry = {"rotor-float", "best chain schedule with floating activations (Rotor, repaired)"},
    .default_work = RM_NO_LIMIT,
    .run = float_graph,
    .run_chain = float_chain,
    .heeds = "max_slots slots"};
