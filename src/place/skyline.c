/* skyline.c: is there a placement no higher than a capacity?
 *
 * Method: spans are stacked from the ground up. The *floor* of a clique is the top of what lies
 * there already. A *valley* is a run of cliques with the same floor between higher ones. Spans that
 * reach beyond a valley lie on its sides or higher. So whatever is lowest in a valley lies on its
 * floor, or nothing lies there below the lower of its sides, and the valley may be raised to it.
 *
 * Branching: in some valley, which span is the leftmost (or rightmost) that lies on the floor? What
 * is left of it is then raised, to the valley's side or to the span's top. Or none lies there, and
 * all of the valley is raised. Raising wastes bytes. floor + rest is what a clique needs at least,
 * where rest are the bytes of its spans that are not placed yet, and it must not pass the capacity.
 * Of all valleys that with the fewest options is taken (first fail). A valley without options is
 * a dead end.
 *
 * Only *canonical* placements are looked at: those in which no span can be moved down, or into a
 * hole below it. If there is a placement, then that with the least sum of offsets is canonical. So
 * nothing is raised above a hole into which a span of the same valley would fit. Of equal spans the
 * first is tried alone.
 *
 * Independent parts: where no unplaced span crosses from one clique to the next, what is left of
 * them are problems of their own. Each is solved by itself. If one fails, the last choice before
 * they fell apart is to blame, whatever was done in the others meanwhile.
 *
 * Restarts: which option goes first is a matter of taste (a rank for each span, by its life, its
 * bytes, their product, or the load of its cliques), and early mistakes are expensive. So a run
 * ends after some nodes, and the next one has ranks of another kind, with noise. After many runs
 * they are allowed twice the nodes. A run that ends by itself is a proof.
 *
 * Departures from MiniMalloc (Moffitt 2024), whose problem this is: it takes spans in the order of
 * their offsets, and does not restart.
 *
 * Invariants:
 *   - floor + rest <= capacity in every clique; only raising changes the sum.
 *   - Every unplaced span lies in one part of the agenda, or in that of the node at hand.
 *
 * Cost: O(cliques of the part) a node. What the options of a valley depend on has a stamp in each
 * clique, so valleys that did not change are not looked at again. */
#include "place/place.h"

#include "base/random.h"
#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

#define NO_FLOOR INT64_MAX /* beside a part: nothing crosses its border */
enum {
    NODE_WORK = 400, /* operations of a node, besides looking at its part */
    RUNS_OF_A_LENGTH = 64
};

typedef struct valley {
    uint32_t begin, end; /* cliques */
    int64_t floor;
    int64_t left, right; /* floors beside it, or NO_FLOOR */
    bool mirrored;       /* the rightmost span is asked for, not the leftmost */
} valley;

/* Puts the span onto the floor of the valley, and raises what is beside it; or, without a span,
 * raises the whole valley. */
typedef struct option {
    uint32_t span; /* or REMAT_NONE */
    int64_t raise; /* to here; the valley's floor: nothing is raised */
} option;

typedef struct change { /* to be taken back */
    uint32_t begin, end;
    int64_t floor;
    uint32_t span; /* that was placed there, or REMAT_NONE */
} change;

typedef struct part { /* cliques that wait to be filled */
    uint32_t begin, end;
    uint32_t parent; /* the node whose choice made it, or REMAT_NONE */
    uint32_t next;   /* part, or REMAT_NONE */
} part;

typedef struct node {
    valley at;
    uint32_t parent;
    uint32_t begin, end; /* its part */
    uint32_t agenda;     /* the parts after it */
    size_t n_parts;      /* how many there were when it was made */
    size_t n_changes;
    size_t first_option, next_option, n_options; /* next and n: in the pool of options */
} node;

typedef struct cached { /* of the valley that begins at a clique */
    uint64_t stamp;     /* when it was counted */
    uint32_t count;     /* options */
    bool mirrored;
} cached;

typedef struct search {
    remat_ctx *ctx;
    const rm_cliques *c;
    int64_t capacity;
    /* The least that was needed where something did not fit, in all runs: what is known of a valley
     * outlives a run. Below it, every run would be as it was. */
    int64_t next;
    /* by clique */
    int64_t *floor, *rest;
    uint32_t *crossing; /* unplaced spans that it shares with the clique before */
    uint64_t *changed;  /* stamp of the last change */
    cached *known;
    /* by clique, for one valley: the least bytes of what ends (or begins) so far, the most rest */
    int64_t *least, *most_rest;
    /* by span */
    uint8_t *is_placed;
    uint32_t *rank;
    int64_t *offset;
    uint64_t stamp;
    uint32_t agenda; /* the first part */
    RM_VEC(part) parts;
    RM_VEC(node) nodes;
    RM_VEC(option) options;
    RM_VEC(change) changes;
} search;

/* ---- changes ---- */

static void note(search *x, uint32_t begin, uint32_t end)
{
    x->stamp++;
    for (uint32_t k = begin; k < end; k++) x->changed[k] = x->stamp;
}

static remat_status set_floor(search *x, uint32_t begin, uint32_t end, int64_t floor, uint32_t span)
{
    const change old = {begin, end, x->floor[begin], span};
    TRY(RM_PUSH(x->ctx, x->changes, old));
    for (uint32_t k = begin; k < end; k++) {
        assert(x->floor[k] == old.floor);
        x->floor[k] = floor;
    }
    note(x, begin, end);
    return REMAT_OK;
}

static remat_status place(search *x, uint32_t span, int64_t offset)
{
    const rm_span *s = &x->c->spans[span];
    assert(!x->is_placed[span]);
    x->is_placed[span] = 1;
    x->offset[span] = offset;
    for (uint32_t k = s->begin; k < s->end; k++) x->rest[k] -= s->bytes;
    for (uint32_t k = s->begin + 1; k < s->end; k++) x->crossing[k]--;
    return set_floor(x, s->begin, s->end, offset + s->bytes, span);
}

static void take_back(search *x, size_t n_changes)
{
    while (x->changes.n > n_changes) {
        const change *old = &x->changes.items[--x->changes.n];
        for (uint32_t k = old->begin; k < old->end; k++) x->floor[k] = old->floor;
        note(x, old->begin, old->end);
        if (old->span == REMAT_NONE) continue;
        const rm_span *s = &x->c->spans[old->span];
        x->is_placed[old->span] = 0;
        for (uint32_t k = s->begin; k < s->end; k++) x->rest[k] += s->bytes;
        for (uint32_t k = s->begin + 1; k < s->end; k++) x->crossing[k]++;
    }
}

static remat_status take(search *x, const valley *v, option o)
{
    if (o.span == REMAT_NONE) return set_floor(x, v->begin, v->end, o.raise, REMAT_NONE);
    const rm_span *s = &x->c->spans[o.span];
    if (o.raise > v->floor) {
        const uint32_t begin = v->mirrored ? s->end : v->begin;
        const uint32_t end = v->mirrored ? v->end : s->begin;
        TRY(set_floor(x, begin, end, o.raise, REMAT_NONE));
    }
    return place(x, o.span, v->floor);
}

/* ---- options of a valley ---- */

static bool fits(search *x, int64_t needed)
{
    if (needed <= x->capacity) return true;
    if (needed < x->next) x->next = needed;
    return false;
}

/* The next unplaced span from `i` on that begins and ends inside, or `end`. */
static uint32_t next_inside(const search *x, const valley *v, uint32_t i, uint32_t end)
{
    while (i < end && (x->is_placed[i] || x->c->spans[i].end > v->end)) i++;
    return i;
}

/* Sets least[k]: the fewest bytes of a span inside the valley and wholly before clique k (if it is
 * mirrored: from clique k on), and most_rest[k], the most rest of a clique there. */
static void scan_beside(search *x, const valley *v)
{
    const rm_cliques *c = x->c;
    int64_t *least = x->least, *most = x->most_rest;
    for (uint32_t k = v->begin; k <= v->end; k++) least[k] = INT64_MAX, most[k] = 0;
    const uint32_t end = c->first[v->end];
    for (uint32_t i = next_inside(x, v, c->first[v->begin], end); i < end;
         i = next_inside(x, v, i + 1, end)) {
        const rm_span *s = &c->spans[i];
        const uint32_t k = v->mirrored ? s->begin : s->end;
        if (s->bytes < least[k]) least[k] = s->bytes;
    }
    for (uint32_t n = v->end - v->begin, i = 1; i <= n; i++) {
        const uint32_t k = v->mirrored ? v->end - i : v->begin + i;
        const uint32_t before = v->mirrored ? k + 1 : k - 1, beside = v->mirrored ? k : k - 1;
        if (least[before] < least[k]) least[k] = least[before];
        most[k] = most[before] > x->rest[beside] ? most[before] : x->rest[beside];
    }
}

/* What is beside the span is raised to the valley's side, or to the top of the span. False: it
 * does not fit, or leaves a hole for another span. */
static bool raise_beside(search *x, const valley *v, const rm_span *s, int64_t *raise)
{
    const uint32_t k = v->mirrored ? s->end : s->begin;
    const int64_t side = v->mirrored ? v->right : v->left, top = v->floor + s->bytes;
    *raise = v->floor;
    if (k == (v->mirrored ? v->end : v->begin)) return true;
    *raise = side < top ? side : top;
    return x->least[k] > *raise - v->floor && fits(x, *raise + x->most_rest[k]);
}

static bool is_same(const rm_span *a, const rm_span *b)
{
    return a->begin == b->begin && a->end == b->end && a->bytes == b->bytes;
}

/* Counts the options up to `most`. With `list` they are added to the pool. */
static remat_status find_options(search *x, const valley *v, uint32_t most, bool list,
                                 uint32_t *count)
{
    const rm_cliques *c = x->c;
    const uint32_t end = c->first[v->end], whole = v->mirrored ? v->begin : v->end;
    const rm_span *before = NULL;
    *count = 0;
    scan_beside(x, v);
    for (uint32_t i = next_inside(x, v, c->first[v->begin], end); i < end && *count < most;
         i = next_inside(x, v, i + 1, end)) {
        option o = {i, 0};
        const rm_span *s = &c->spans[i];
        const bool again = before && is_same(before, s);
        before = s;
        if (again || !raise_beside(x, v, s, &o.raise)) continue;
        ++*count;
        if (list) TRY(RM_PUSH(x->ctx, x->options, o));
    }
    const option none = {REMAT_NONE, v->left < v->right ? v->left : v->right};
    if (none.raise == NO_FLOOR || x->least[whole] <= none.raise - v->floor ||
        !fits(x, none.raise + x->most_rest[whole]))
        return REMAT_OK;
    ++*count;
    return list ? RM_PUSH(x->ctx, x->options, none) : REMAT_OK;
}

/* The count for the better of both directions, from the cache if nothing has changed. */
static remat_status count_options(search *x, valley *v, uint64_t changed, uint32_t *count)
{
    cached *known = &x->known[v->begin];
    if (known->stamp <= changed) {
        uint32_t n[2] = {0, 0};
        for (int m = 0; m < 2 && (m == 0 || n[0]); m++) {
            v->mirrored = m;
            TRY(find_options(x, v, m ? n[0] : UINT32_MAX, false, &n[m]));
        }
        *known = (cached){++x->stamp, n[0] && n[1] < n[0] ? n[1] : n[0], n[0] && n[1] < n[0]};
    }
    v->mirrored = known->mirrored;
    *count = known->count;
    return REMAT_OK;
}

/* ---- nodes ---- */

/* The run of equal floors that begins at `from`. *changed: the newest stamp of what it and its
 * sides are made of. */
static valley run_at(const search *x, const node *n, uint32_t from, uint64_t *changed)
{
    valley v = {
        .begin = from, .end = from, .floor = x->floor[from], .left = NO_FLOOR, .right = NO_FLOOR};
    *changed = 0;
    for (; v.end < n->end && x->floor[v.end] == v.floor; v.end++)
        if (x->changed[v.end] > *changed) *changed = x->changed[v.end];
    if (from > n->begin) {
        v.left = x->floor[from - 1];
        if (x->changed[from - 1] > *changed) *changed = x->changed[from - 1];
    }
    if (v.end < n->end) {
        v.right = x->floor[v.end];
        if (x->changed[v.end] > *changed) *changed = x->changed[v.end];
    }
    return v;
}

/* The valley with the fewest options; of several, the lowest. */
static remat_status choose_valley(search *x, node *n)
{
    uint32_t fewest = UINT32_MAX;
    for (uint32_t k = n->begin; k < n->end && fewest;) {
        uint64_t changed;
        valley v = run_at(x, n, k, &changed);
        k = v.end;
        if (v.left < v.floor || v.right < v.floor) continue;
        uint32_t count;
        TRY(count_options(x, &v, changed, &count));
        if (count > fewest || (count == fewest && v.floor >= n->at.floor)) continue;
        fewest = count;
        n->at = v;
    }
    assert(fewest < UINT32_MAX);
    return REMAT_OK;
}

typedef struct taste {
    const uint32_t *rank;
    int64_t floor;
} taste;

/* Options that waste nothing first, then by rank. Raising all comes last. */
static bool goes_before(const taste *t, const option *a, const option *b)
{
    const bool a_wastes = a->raise > t->floor, b_wastes = b->raise > t->floor;
    if (a_wastes != b_wastes) return b_wastes;
    if (a->span == REMAT_NONE || b->span == REMAT_NONE) return b->span == REMAT_NONE;
    return t->rank[a->span] < t->rank[b->span];
}

static void sort_options(const search *x, const node *n)
{
    const taste t = {x->rank, n->at.floor};
    option *o = x->options.items + n->first_option;
    for (size_t i = 1; i < n->n_options - n->first_option; i++) {
        const option moved = o[i];
        size_t k = i;
        for (; k > 0 && goes_before(&t, &moved, &o[k - 1]); k--) o[k] = o[k - 1];
        o[k] = moved;
    }
}

/* Takes the first part off the agenda, and finds the choices there. */
static remat_status open_node(search *x)
{
    const part p = x->parts.items[x->agenda];
    node n = {.begin = p.begin,
              .end = p.end,
              .parent = p.parent,
              .agenda = p.next,
              .n_parts = x->parts.n,
              .n_changes = x->changes.n,
              .first_option = x->options.n,
              .next_option = x->options.n};
    x->agenda = p.next;
    TRY(choose_valley(x, &n));
    uint32_t count;
    TRY(find_options(x, &n.at, UINT32_MAX, true, &count));
    n.n_options = x->options.n;
    assert(n.n_options - n.first_option == count);
    sort_options(x, &n);
    return RM_PUSH(x->ctx, x->nodes, n);
}

/* What is left of the cliques begin .. end - 1 falls into parts, which go in front of the agenda.
 */
static remat_status add_parts(search *x, uint32_t begin, uint32_t end, uint32_t parent)
{
    for (uint32_t k = end; k > begin;) {
        if (x->rest[--k] == 0) continue;
        part p = {.end = k + 1, .parent = parent, .next = x->agenda};
        while (k > begin && x->crossing[k]) k--;
        p.begin = k;
        x->agenda = (uint32_t)x->parts.n;
        TRY(RM_PUSH(x->ctx, x->parts, p));
    }
    return REMAT_OK;
}

/* Forgets what came after node `at` was made, and the node's choice. */
static void return_to(search *x, uint32_t at)
{
    const node *n = &x->nodes.items[at];
    take_back(x, n->n_changes);
    x->nodes.n = at + 1;
    x->parts.n = n->n_parts;
    x->options.n = n->n_options;
    x->agenda = n->agenda;
}

/* The next option of the newest node, or of the node to blame for its dead end. *alive: false if
 * there is none: the whole search is at its end. */
static remat_status advance(search *x, bool *alive)
{
    uint32_t at = (uint32_t)x->nodes.n - 1;
    while (at != REMAT_NONE) {
        return_to(x, at);
        node *n = &x->nodes.items[at];
        if (n->next_option < n->n_options) {
            const option o = x->options.items[n->next_option++];
            TRY(take(x, &n->at, o));
            *alive = true;
            return add_parts(x, n->begin, n->end, at);
        }
        at = n->parent;
    }
    *alive = false;
    return REMAT_OK;
}

/* ---- runs ---- */

static void forget_all(search *x)
{
    take_back(x, 0);
    x->nodes.n = x->parts.n = x->options.n = 0;
    x->agenda = REMAT_NONE;
}

/* One run from the ground up, of at most so many nodes. */
static remat_status run(search *x, int64_t most_nodes, rm_found *found)
{
    forget_all(x);
    *found = RM_GAVE_UP;
    TRY(add_parts(x, 0, x->c->n_cliques, REMAT_NONE));
    for (int64_t n = 0; x->agenda != REMAT_NONE; n++) {
        if (n == most_nodes) return REMAT_OK;
        const part *p = &x->parts.items[x->agenda];
        if (rm_spend(x->ctx, (p->end - p->begin) / 2 + NODE_WORK)) return REMAT_OK;
        bool alive;
        TRY(open_node(x));
        TRY(advance(x, &alive));
        if (alive) continue;
        *found = RM_IMPOSSIBLE;
        return REMAT_OK;
    }
    *found = RM_FOUND;
    return REMAT_OK;
}

typedef struct ranked {
    double key;
    uint32_t span;
} ranked;

static int by_key(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->key != y->key) return x->key > y->key ? -1 : 1;
    return x->span < y->span ? -1 : 1;
}

/* The first run of a kind has no noise. Others multiply by 1/2 to 3/2. */
static void make_ranks(search *x, int64_t run_number, rm_random *random, ranked *buffer)
{
    for (uint32_t i = 0; i < x->c->n_spans; i++) {
        const double key = rm_span_key(x->c, i, (int)(run_number % RM_SPAN_KEYS));
        buffer[i] =
            (ranked){run_number < RM_SPAN_KEYS ? key : key * (0.5 + rm_random_unit(random)), i};
    }
    qsort(buffer, x->c->n_spans, sizeof *buffer, by_key);
    for (uint32_t i = 0; i < x->c->n_spans; i++) x->rank[buffer[i].span] = i;
}

/* A dive takes a node for each span and some for raising. All nodes are allowed in the end. */
static int64_t nodes_of_run(const search *x, int64_t run_number)
{
    const int64_t doublings = run_number / RUNS_OF_A_LENGTH;
    return (500 + 3 * (int64_t)x->c->n_spans) << (doublings < 30 ? doublings : 30);
}

static remat_status prepare(search *x)
{
    const rm_cliques *c = x->c;
    const size_t n = (size_t)c->n_cliques + 1;
    TRY(RM_SCRATCH(x->ctx, x->floor, n));
    TRY(RM_SCRATCH(x->ctx, x->rest, n));
    TRY(RM_SCRATCH(x->ctx, x->crossing, n));
    TRY(RM_SCRATCH(x->ctx, x->changed, n));
    TRY(RM_SCRATCH(x->ctx, x->known, n));
    TRY(RM_SCRATCH(x->ctx, x->least, n));
    TRY(RM_SCRATCH(x->ctx, x->most_rest, n));
    TRY(RM_SCRATCH(x->ctx, x->is_placed, c->n_spans));
    TRY(RM_SCRATCH(x->ctx, x->rank, c->n_spans));
    TRY(RM_SCRATCH(x->ctx, x->offset, c->n_spans));
    memcpy(x->rest, c->load, n * sizeof *x->rest);
    /* Differences first: a span crosses into every clique of its own but the first. */
    for (uint32_t i = 0; i < c->n_spans; i++) {
        x->crossing[c->spans[i].begin + 1]++;
        x->crossing[c->spans[i].end]--;
    }
    for (uint32_t k = 1; k <= c->n_cliques; k++) x->crossing[k] += x->crossing[k - 1];
    return REMAT_OK;
}

static remat_status run_again_and_again(search *x, int64_t *n_runs, rm_found *found)
{
    ranked *buffer;
    rm_random random = {(uint64_t)x->ctx->options.seed + (uint64_t)*n_runs};
    TRY(prepare(x));
    TRY(RM_SCRATCH(x->ctx, buffer, x->c->n_spans));
    *found = RM_GAVE_UP;
    for (; *found == RM_GAVE_UP && !rm_is_over(x->ctx); ++*n_runs) {
        make_ranks(x, *n_runs, &random, buffer);
        TRY(run(x, nodes_of_run(x, *n_runs), found));
    }
    return REMAT_OK;
}

static int64_t height_of(const search *x)
{
    int64_t height = 0;
    for (uint32_t i = 0; i < x->c->n_spans; i++) {
        const int64_t top = x->offset[i] + x->c->spans[i].bytes;
        assert(x->is_placed[i]);
        if (top > height) height = top;
    }
    return height;
}

remat_status rm_skyline_search(remat_ctx *ctx, const rm_cliques *c, int64_t capacity,
                               int64_t *n_runs, rm_placed *best, rm_found *found, int64_t *next)
{
    search x = {.ctx = ctx, .c = c, .capacity = capacity, .next = INT64_MAX};
    const rm_mark mark = rm_scratch_mark(ctx);
    assert(capacity >= c->bound);
    const remat_status status = run_again_and_again(&x, n_runs, found);
    if (status == REMAT_OK && *found == RM_FOUND) {
        best->height = height_of(&x);
        memcpy(best->offsets, x.offset, c->n_spans * sizeof *x.offset);
    }
    *next = x.next;
    RM_VEC_FREE(&ctx->heap, x.parts);
    RM_VEC_FREE(&ctx->heap, x.nodes);
    RM_VEC_FREE(&ctx->heap, x.options);
    RM_VEC_FREE(&ctx->heap, x.changes);
    rm_scratch_release(ctx, mark);
    return status;
}
