/* verify_gaps.c: which storages must be in memory where, or be made again.
 *
 * docs/bound.md has the definitions and the proofs. There are two kinds of positions.
 * - In a fixed order, they are all ops but free views, by first run. A gap lies between two
 *   positions that touch a storage and have none between them that does.
 * - In any order, they are the ops that the certificate has prices for. These must be a path: each
 *   depends on the one before. Whatever else runs has a window on the path: it surely runs after
 *   some of the positions, and surely by one of them. A storage may be wanted because of what can
 *   be made from it and kept instead, its holders.
 *
 * The room at a position is what the budget leaves beside the values that its op touches, its
 * workspace, and what pinned ops made and is wanted later. An input in whose place the op may make
 * an output is not among them: it may be gone when the output is there.
 *
 * Nothing is taken from the planners. Cost: O(edges), on a path times the logarithm of the most
 * readers that a storage has, and the inputs and readers of holders, once for each heir. */
#include "verify/court.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

bool rm_court_is_free_view(const remat_graph *g, uint32_t op)
{
    if (g->cost[op] || g->workspace[op] || g->pinned[op] ||
        g->out_begin[op] == g->out_begin[op + 1])
        return false;
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        if (g->root[g->out[k]] == g->out[k]) return false;
    return true;
}

static remat_status add_gap(rm_court *c, uint32_t root, uint32_t from, uint32_t to, uint32_t due)
{
    if (to < from + 2) return REMAT_OK;
    if (!c->question->fetches && c->g->pinned[c->g->producer[root]]) { /* it must be kept */
        c->held[from + 1] += c->g->storage[root];
        c->held[to] -= c->g->storage[root];
        return REMAT_OK;
    }
    assert(due >= to && due <= c->n);
    const rm_court_gap new = {root, from, to, due, 0};
    return RM_PUSH(c->ctx, c->gaps, new);
}

static remat_status allocate(rm_court *c)
{
    const remat_graph *g = c->g;
    TRY(RM_SCRATCH(c->ctx, c->op_at, g->n_ops));
    TRY(RM_SCRATCH(c->ctx, c->position, g->n_ops));
    TRY(RM_SCRATCH(c->ctx, c->room, g->n_ops));
    TRY(RM_SCRATCH(c->ctx, c->held, (size_t)g->n_ops + 1));
    TRY(RM_SCRATCH(c->ctx, c->last_touch, g->n_values));
    TRY(RM_SCRATCH(c->ctx, c->in_place, g->n_values));
    for (uint32_t op = 0; op < g->n_ops; op++) c->position[op] = REMAT_NONE;
    return REMAT_OK;
}

/* Notes the storages in whose place the op at position t may make its outputs. */
static void note_in_place(rm_court *c, uint32_t t)
{
    const remat_graph *g = c->g;
    const uint32_t op = c->op_at[t];
    for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
        if (g->out_takes[k] != REMAT_NONE)
            c->in_place[g->root[g->in[g->in_begin[op] + g->out_takes[k]]]] = t + 1;
}

/* The storage is in memory at position t, with all its bytes or in another's. */
static void take_room(rm_court *c, uint32_t t, uint32_t root)
{
    if (c->in_place[root] != t + 1) c->room[t] -= c->g->storage[root];
}

/* ---- in a fixed order ---- */

static remat_status find_order(rm_court *c)
{
    const remat_graph *g = c->g;
    uint8_t *ran;
    TRY(RM_SCRATCH(c->ctx, ran, g->n_ops));
    for (size_t i = 0; i < c->question->n_steps; i++) {
        if (c->question->steps[i].kind != REMAT_RUN) continue;
        const uint32_t op = g->op_now[c->question->steps[i].index];
        if (ran[op]) continue;
        ran[op] = 1;
        if (rm_court_is_free_view(g, op)) continue;
        c->position[op] = c->n;
        c->op_at[c->n++] = op;
    }
    c->charged = c->op_at;
    c->n_charged = c->n;
    return REMAT_OK;
}

static remat_status touch_in_order(rm_court *c, uint32_t t, uint32_t root)
{
    if (!rm_court_is_movable(c->g, root) || c->last_touch[root] == t) return REMAT_OK;
    take_room(c, t, root);
    if (c->last_touch[root] != REMAT_NONE) TRY(add_gap(c, root, c->last_touch[root], t, t));
    c->last_touch[root] = t;
    return REMAT_OK;
}

static remat_status walk_order(rm_court *c)
{
    const remat_graph *g = c->g;
    for (uint32_t v = 0; v < g->n_values; v++) c->last_touch[v] = REMAT_NONE;
    for (uint32_t t = 0; t < c->n; t++) {
        const uint32_t op = c->op_at[t];
        note_in_place(c, t);
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
            TRY(touch_in_order(c, t, g->root[g->in[k]]));
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
            TRY(touch_in_order(c, t, g->root[g->out[k]]));
    }
    for (uint32_t v = 0; v < g->n_values; v++)
        if (c->is_output[v]) TRY(add_gap(c, v, c->last_touch[v], c->n, c->n));
    return REMAT_OK;
}

/* ---- in any order ---- */

/* When an op runs for the first time, in every plan: after that many positions, or being the last
 * of them; and by that position, or n: nobody knows. */
typedef struct window {
    uint32_t after, by;
} window;

typedef struct reader {
    uint32_t root;
    window at;
} reader;

/* All readers, by storage. There is room for one more reader of each storage. */
typedef struct audience {
    reader *items;
    size_t n;
    size_t *begin; /* by root value */
} audience;

static bool is_position(window w) { return w.after > w.by; }

/* The storage that such an op reads is wanted up to there. */
static uint32_t wanted_to(window w) { return is_position(w) ? w.by : w.after; }

/* The certificate names the path. Its ops get positions in the graph's order: a path can have no
 * other. True: each of them has a place in first runs. */
static bool read_path(rm_court *c)
{
    const remat_graph *g = c->g;
    const rm_certificate *x = c->certificate;
    for (size_t i = 0; i < x->n_prices; i++) {
        const uint32_t original = x->prices[i].op;
        const uint32_t op = original < g->n_original_ops ? g->op_now[original] : REMAT_NONE;
        if (op == REMAT_NONE || rm_court_is_free_view(g, op))
            return rm_blame(c->verdict, REMAT_NONE, "the certificate's price %zu is for no op", i);
        c->position[op] = 0;
    }
    for (uint32_t op = 0; op < g->n_ops; op++) {
        if (c->position[op] == REMAT_NONE) continue;
        c->position[op] = c->n;
        c->op_at[c->n++] = op;
    }
    return true;
}

/* Forwards: what an op depends on. Pinned ops run in the graph's order. False: the positions are no
 * path. */
static bool find_after(rm_court *c, window *w)
{
    const remat_graph *g = c->g;
    uint32_t pinned = 0;
    for (uint32_t op = 0; op < g->n_ops; op++) {
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
            if (g->producer[g->in[k]] != REMAT_NONE)
                raise_to(&w[op].after, w[g->producer[g->in[k]]].after);
        if (g->pinned[op]) raise_to(&w[op].after, pinned);
        if (c->position[op] != REMAT_NONE) {
            if (w[op].after != c->position[op])
                return rm_blame(c->verdict, REMAT_NONE,
                                "op %" PRIu32 " '%.60s' has a price, but does not depend on the op "
                                "with the price before",
                                g->op_original[op], rm_text(g, g->op_name[op]));
            w[op].after++;
        }
        if (g->pinned[op]) pinned = w[op].after;
    }
    return true;
}

/* Backwards: what depends on an op. */
static void find_by(const rm_court *c, window *w)
{
    const remat_graph *g = c->g;
    uint32_t pinned = c->n;
    for (uint32_t op = 0; op < g->n_ops; op++) w[op].by = c->n;
    for (uint32_t op = g->n_ops; op-- > 0;) {
        if (g->pinned[op]) lower_to(&w[op].by, pinned);
        if (c->position[op] != REMAT_NONE) w[op].by = c->position[op];
        if (g->pinned[op]) pinned = w[op].by;
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
            if (g->producer[g->in[k]] != REMAT_NONE)
                lower_to(&w[g->producer[g->in[k]]].by, w[op].by);
    }
}

/* By storage; then those that must run first; of equals, who is wanted longest. */
static int compare_readers(const void *left, const void *right)
{
    const reader *a = left, *b = right;
    if (a->root != b->root) return a->root < b->root ? -1 : 1;
    if (a->at.by != b->at.by) return a->at.by < b->at.by ? -1 : 1;
    return (a->at.after < b->at.after) - (a->at.after > b->at.after);
}

/* Who reads which storage. The end of the step reads the outputs. */
static remat_status list_readers(rm_court *c, const window *w, audience *out)
{
    const remat_graph *g = c->g;
    TRY(RM_SCRATCH(c->ctx, out->items, (size_t)g->n_in + g->n_outputs + g->n_values));
    for (uint32_t op = 0; op < g->n_ops; op++) {
        if (rm_court_is_free_view(g, op)) continue;
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
            if (rm_court_is_movable(g, g->root[g->in[k]]))
                out->items[out->n++] = (reader){g->root[g->in[k]], w[op]};
    }
    for (uint32_t v = 0; v < g->n_values; v++)
        if (c->is_output[v]) out->items[out->n++] = (reader){v, {c->n, c->n}};
    return REMAT_OK;
}

static remat_status sort_readers(rm_court *c, audience *x)
{
    TRY(RM_SCRATCH(c->ctx, x->begin, (size_t)c->g->n_values + 1));
    if (x->n) qsort(x->items, x->n, sizeof *x->items, compare_readers);
    for (size_t i = 0; i < x->n; i++) x->begin[x->items[i].root + 1]++;
    for (uint32_t v = 0; v < c->g->n_values; v++) x->begin[v + 1] += x->begin[v];
    return REMAT_OK;
}

/* ---- holders ---- */

bool rm_court_has_time(const rm_court *c)
{
    if (c->work <= RM_COURT_WORK * ((uint64_t)c->g->n_in + c->g->n_ops + c->gaps.n)) return true;
    return rm_blame(c->verdict, REMAT_NONE, "the certificate's heirs are too many to check");
}

/* Marks the stand-ins of a storage that are made from it, directly or from one another: mark[root]
 * = stamp. Answers by which position the first of them surely is made: up to there each can be kept
 * instead of the storage, and counts for nothing else. */
static uint32_t mark_holders(rm_court *c, const window *w, uint32_t heir, uint32_t *mark)
{
    const remat_graph *g = c->g;
    const uint32_t stamp = heir + 1;
    uint32_t limit = c->n;
    mark[heir] = stamp;
    for (uint32_t i = c->stand_ins.begin[heir]; i < c->stand_ins.begin[heir + 1]; i++) {
        const uint32_t holder = c->stand_ins.items[i], op = g->producer[holder];
        c->work += 1 + g->in_begin[op + 1] - g->in_begin[op];
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
            if (mark[g->root[g->in[k]]] == stamp) mark[holder] = stamp;
        if (mark[holder] == stamp) lower_to(&limit, w[op].by);
    }
    return limit;
}

/* The reader of a holder that wants it longest, up to the limit; of equals, who must run first. It
 * counts as a reader of the heir. {0, 0}: there is none. */
static window find_held_reader(rm_court *c, const audience *x, uint32_t heir, uint32_t limit,
                               const uint32_t *mark)
{
    window best = {0, 0};
    for (uint32_t i = c->stand_ins.begin[heir]; i < c->stand_ins.begin[heir + 1]; i++) {
        const uint32_t holder = c->stand_ins.items[i];
        if (mark[holder] != heir + 1) continue;
        c->work += x->begin[holder + 1] - x->begin[holder];
        for (size_t k = x->begin[holder]; k < x->begin[holder + 1]; k++) {
            window at = {wanted_to(x->items[k].at), x->items[k].at.by};
            lower_to(&at.after, limit);
            if (at.after > best.after || (at.after == best.after && at.by < best.by)) best = at;
        }
    }
    return best;
}

/* Where something made from a storage can be kept instead of it, and is read later, that is as if
 * it were read itself. */
static remat_status add_held_readers(rm_court *c, const window *w, audience *x)
{
    uint32_t *mark; /* by root value: 1 + the last heir for which it is a holder */
    TRY(RM_SCRATCH(c->ctx, mark, c->g->n_values));
    TRY(sort_readers(c, x));
    for (uint32_t heir = 0; heir < c->g->n_values && rm_court_has_time(c); heir++) {
        if (c->stand_ins.begin[heir] == c->stand_ins.begin[heir + 1]) continue;
        const uint32_t limit = mark_holders(c, w, heir, mark);
        const window at = find_held_reader(c, x, heir, limit, mark);
        if (at.after > 0) x->items[x->n++] = (reader){heir, at};
    }
    return REMAT_OK;
}

/* ---- gaps on a path ---- */

/* Behind which position does a storage surely exist? If the op there does not touch it, it must be
 * there, or be made again, at that position already. */
static uint32_t exists_behind(window maker, const reader *readers, size_t n)
{
    if (is_position(maker) || maker.by == 0) return maker.by;
    for (size_t i = 0; i < n; i++)
        if (is_position(readers[i].at) && readers[i].at.by == maker.by) return maker.by;
    return maker.by - 1;
}

static remat_status add_gap_to(rm_court *c, uint32_t root, uint32_t from, window to)
{
    if (wanted_to(to) < from + 2) return REMAT_OK;
    raise_to(&c->last_touch[root], wanted_to(to) - 1);
    return add_gap(c, root, from, wanted_to(to), to.by);
}

/* The gaps of one storage, read by n ops. A gap ends where a reader surely has not run. The next
 * begins where that reader surely has run, so no re-run serves both. A reader that is no position
 * ends a gap only if that leaves no more positions out than the gap has. */
static remat_status cut_life(rm_court *c, const window *w, const reader *readers, size_t n)
{
    const uint32_t root = readers->root;
    const window maker = w[c->g->producer[root]];
    window last = {0, 0};
    if (c->g->storage[root] == 0 || maker.by == c->n) return REMAT_OK;
    uint32_t from = exists_behind(maker, readers, n);
    for (size_t i = 0; i < n; i++)
        if (wanted_to(readers[i].at) > wanted_to(last)) last = readers[i].at;
    for (size_t i = 0; i < n; i++) {
        const window at = readers[i].at;
        const uint32_t to = wanted_to(at);
        if (is_position(at)) {
            TRY(add_gap_to(c, root, from, at));
            raise_to(&from, at.by);
        } else if (to > from + 1 && at.by < wanted_to(last) && at.by - to <= to - from - 1) {
            TRY(add_gap_to(c, root, from, at));
            from = at.by;
        }
    }
    return add_gap_to(c, root, from, last);
}

/* seen: by root value, 1 + the last position that touched it. */
static void touch_on_path(rm_court *c, uint32_t t, uint32_t root, uint32_t *seen)
{
    if (!rm_court_is_movable(c->g, root) || seen[root] == t + 1) return;
    seen[root] = t + 1;
    take_room(c, t, root);
    raise_to(&c->last_touch[root], t);
}

static remat_status touch_path(rm_court *c)
{
    const remat_graph *g = c->g;
    uint32_t *seen;
    TRY(RM_SCRATCH(c->ctx, seen, g->n_values));
    for (uint32_t t = 0; t < c->n; t++) {
        const uint32_t op = c->op_at[t];
        note_in_place(c, t);
        for (uint32_t k = g->in_begin[op]; k < g->in_begin[op + 1]; k++)
            touch_on_path(c, t, g->root[g->in[k]], seen);
        for (uint32_t k = g->out_begin[op]; k < g->out_begin[op + 1]; k++)
            touch_on_path(c, t, g->root[g->out[k]], seen);
    }
    return REMAT_OK;
}

static remat_status walk_path(rm_court *c)
{
    window *w;
    audience x = {.n = 0};
    TRY(RM_SCRATCH(c->ctx, w, c->g->n_ops));
    TRY(RM_SCRATCH(c->ctx, c->charged, c->g->n_ops));
    for (uint32_t op = 0; op < c->g->n_ops; op++) c->charged[op] = op;
    c->n_charged = c->g->n_ops;
    if (!find_after(c, w)) return REMAT_OK;
    find_by(c, w);
    TRY(touch_path(c));
    TRY(list_readers(c, w, &x));
    TRY(add_held_readers(c, w, &x));
    if (!c->verdict->valid) return REMAT_OK;
    TRY(sort_readers(c, &x));
    for (uint32_t v = 0; v < c->g->n_values; v++)
        if (x.begin[v] < x.begin[v + 1])
            TRY(cut_life(c, w, x.items + x.begin[v], x.begin[v + 1] - x.begin[v]));
    return REMAT_OK;
}

/* ---- both ---- */

remat_status rm_court_find_gaps(rm_court *c)
{
    const bool in_order = c->question->steps != NULL;
    TRY(allocate(c));
    if (in_order) TRY(find_order(c));
    else if (!read_path(c)) return REMAT_OK;
    for (uint32_t t = 0; t < c->n; t++)
        c->room[t] =
            c->question->budget_bytes - c->g->resident_bytes - c->g->workspace[c->op_at[t]];
    TRY(in_order ? walk_order(c) : walk_path(c));
    int64_t held = 0;
    for (uint32_t t = 0; t < c->n; t++) {
        held += c->held[t];
        c->room[t] -= held;
    }
    return REMAT_OK;
}
