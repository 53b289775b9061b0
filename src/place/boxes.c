/* boxes.c: looks for a placement no higher than a capacity where spans differ much in size.
 *
 * Problem: plans of networks have few sizes of activations, which fill an arena like bricks, and
 * hundreds of spans that are a thousand times smaller: statistics, masks, gradients of biases. Each
 * of them breaks the pattern, and searches drown in them. And most spans are alive at moments only
 * at which there is room to spare. They matter little, and they are the most.
 *
 * Method: from coarse to fine.
 *   - Small spans go into *boxes* first (boxing: Buchsbaum et al. 2003, "OPT versus LOAD in dynamic
 *     storage allocation"). A box is a span itself: it lasts from the first beginning to the last
 *     end of its members, and its bytes are the height that they need in it. A span goes where the
 *     area of boxes grows least, the busiest spans first, and only while the load with boxes stays
 *     within the capacity. So whatever is small at a full moment shares one box without a hole. In
 *     the end boxes grow to the bytes of a brick where there is room.
 *   - The *core*, spans of the busiest moments, is placed by the search of skyline.c, as if it were
 *     alone. Fast orders put the rest around it. A small core is easy to place, and may leave no
 *     room for the rest; so several are tried in turn, with more and more work.
 *   - Ejections (eject.c) make a placement of the boxes, by fast orders, lower.
 *
 * What is small? Fewer bytes than a brick, which is the largest size that is at least twice the
 * size below it, where the spans below it are many and their load is little. Where there is no such
 * size, no core is looked for; ejections then make do with the largest size of which the second
 * half is true, and little is half as much.
 *
 * Invariants: members of a box do not overlap, and lie within it; the load with boxes never passes
 * the capacity. Nothing is proved.
 *
 * Cost: O(small spans * (members + cliques)) for the boxes, and what the limit allows. */
#include "place/place.h"

#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

enum {
    MANY = 8,            /* small are at least one span in so many, */
    LITTLE = 16,         /* and at most one byte of the load in so many */
    ALONE = 8,           /* a span in no box is as bad as one of a brick's bytes / ALONE more */
    FIRST_WORK = 1 << 23 /* operations of a try; those of later rounds have twice as many each */
};
/* The core: spans of moments at which less than this share of the capacity is free. */
static const double core_shares[] = {1. / 16, 1. / 64, 1. / 4, 1};
enum { N_CORES = sizeof core_shares / sizeof *core_shares };

typedef struct box {
    uint32_t begin, end; /* cliques */
    int64_t bytes;
    uint32_t member; /* the newest, or REMAT_NONE */
} box;

typedef struct boxing {
    remat_ctx *ctx;
    const rm_cliques *c;
    int64_t capacity;
    int64_t brick;  /* bytes; spans that have fewer are small */
    int64_t *load;  /* by clique: of boxes, and of spans that are in none */
    uint32_t *next; /* by span: the next member of its box, or REMAT_NONE */
    uint32_t *home; /* by span: its box */
    int64_t *inner; /* by span: its offset in the box */
    RM_VEC(box) boxes;
    rm_cliques coarse; /* a span for each box */
} boxing;

/* ---- which spans are small? ---- */

static int by_bytes(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* The largest load of the spans that have fewer bytes. load: to work in. */
static int64_t load_below(const rm_cliques *c, int64_t bytes, int64_t *load)
{
    int64_t sum = 0, most = 0;
    memset(load, 0, ((size_t)c->n_cliques + 1) * sizeof *load);
    for (uint32_t i = 0; i < c->n_spans; i++) {
        if (c->spans[i].bytes >= bytes) continue;
        load[c->spans[i].begin] += c->spans[i].bytes;
        load[c->spans[i].end] -= c->spans[i].bytes;
    }
    for (uint32_t k = 0; k < c->n_cliques; k++) {
        sum += load[k];
        if (sum > most) most = sum;
    }
    return most;
}

static remat_status sort_sizes(remat_ctx *ctx, const rm_cliques *c, int64_t **sizes)
{
    TRY(RM_SCRATCH(ctx, *sizes, c->n_spans));
    for (uint32_t i = 0; i < c->n_spans; i++) (*sizes)[i] = c->spans[i].bytes;
    if (c->n_spans) qsort(*sizes, c->n_spans, sizeof **sizes, by_bytes);
    return REMAT_OK;
}

/* *brick: 0 if sizes do not fall apart into small and large. */
static remat_status find_brick(remat_ctx *ctx, const rm_cliques *c, int64_t *brick)
{
    int64_t *sizes, *load;
    TRY(sort_sizes(ctx, c, &sizes));
    TRY(RM_SCRATCH(ctx, load, (size_t)c->n_cliques + 1));
    *brick = 0;
    for (uint32_t i = c->n_spans; i-- > 1 && i >= c->n_spans / MANY && !*brick;) {
        if (sizes[i] / 2 < sizes[i - 1]) continue;
        rm_spend(ctx, (int64_t)c->n_spans + c->n_cliques);
        if (load_below(c, sizes[i], load) <= c->bound / LITTLE) *brick = sizes[i];
    }
    return REMAT_OK;
}

/* The largest size below which spans have little load, if they are many. */
static remat_status find_any_brick(remat_ctx *ctx, const rm_cliques *c, int64_t *brick)
{
    int64_t *sizes, *load;
    const uint32_t many = c->n_spans / MANY;
    uint32_t low = many, high = c->n_spans;
    TRY(sort_sizes(ctx, c, &sizes));
    TRY(RM_SCRATCH(ctx, load, (size_t)c->n_cliques + 1));
    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        rm_spend(ctx, (int64_t)c->n_spans + c->n_cliques);
        if (load_below(c, sizes[middle], load) <= c->bound / (2 * LITTLE)) low = middle;
        else high = middle;
    }
    *brick = low > many ? sizes[low] : 0;
    return REMAT_OK;
}

/* ---- boxes ---- */

static double area(const box *b) { return (double)b->bytes * (b->end - b->begin); }

/* The lowest offset in the box at which the span overlaps no member. *work: members looked at. */
static int64_t find_place(const boxing *x, const box *b, const rm_span *s, int64_t *work)
{
    int64_t at = 0;
    for (bool is_free = false; !is_free;) {
        is_free = true;
        for (uint32_t i = b->member; i != REMAT_NONE; i = x->next[i], ++*work) {
            const rm_span *o = &x->c->spans[i];
            const int64_t top = x->inner[i] + o->bytes;
            if (o->begin >= s->end || s->begin >= o->end) continue;
            if (top <= at || x->inner[i] >= at + s->bytes) continue;
            at = top;
            is_free = false;
        }
    }
    return at;
}

static box grown_by(const box *b, const rm_span *s, int64_t at)
{
    box grown = *b;
    if (s->begin < grown.begin) grown.begin = s->begin;
    if (s->end > grown.end) grown.end = s->end;
    if (at + s->bytes > grown.bytes) grown.bytes = at + s->bytes;
    return grown;
}

static void add_load(boxing *x, const box *b, int64_t bytes)
{
    for (uint32_t k = b->begin; k < b->end; k++) x->load[k] += bytes;
}

/* Is the load within the capacity if the box becomes `grown`, with the span in it? */
static bool has_room(const boxing *x, const box *old, const box *grown, const rm_span *s)
{
    for (uint32_t k = grown->begin; k < grown->end; k++) {
        int64_t load = x->load[k] + grown->bytes;
        if (k >= old->begin && k < old->end) load -= old->bytes;
        if (s && k >= s->begin && k < s->end) load -= s->bytes;
        if (load > x->capacity) return false;
    }
    return true;
}

/* Where the area of boxes grows least, or into a box of its own. */
static remat_status put_away(boxing *x, uint32_t span)
{
    const rm_span *s = &x->c->spans[span];
    const box alone = {s->begin, s->end, s->bytes, REMAT_NONE};
    box best = alone;
    double least = area(&alone) + (double)x->brick / ALONE * (s->end - s->begin);
    uint32_t home = (uint32_t)x->boxes.n;
    int64_t work = 0;
    for (uint32_t i = 0; i < x->boxes.n && !rm_is_over(x->ctx); i++) {
        const box *b = &x->boxes.items[i];
        const int64_t at = find_place(x, b, s, &work);
        const box grown = grown_by(b, s, at);
        const double growth = area(&grown) - area(b);
        work += grown.end - grown.begin;
        if (grown.bytes > x->brick || growth >= least || !has_room(x, b, &grown, s)) continue;
        least = growth;
        best = grown;
        home = i;
        x->inner[span] = at;
    }
    rm_spend(x->ctx, work);
    if (home == x->boxes.n) TRY(RM_PUSH(x->ctx, x->boxes, alone));
    else add_load(x, &alone, -s->bytes);
    box *b = &x->boxes.items[home];
    add_load(x, b, -b->bytes);
    *b = best;
    add_load(x, b, b->bytes);
    x->home[span] = home;
    x->next[span] = b->member;
    b->member = span;
    return REMAT_OK;
}

typedef struct ranked {
    int64_t busiest;
    uint32_t life, span;
} ranked;

static int busiest_first(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->busiest != y->busiest) return x->busiest > y->busiest ? -1 : 1;
    if (x->life != y->life) return x->life > y->life ? -1 : 1;
    return x->span < y->span ? -1 : 1;
}

static remat_status fill_boxes(boxing *x)
{
    const rm_cliques *c = x->c;
    ranked *small;
    uint32_t n = 0;
    TRY(RM_SCRATCH(x->ctx, small, c->n_spans));
    for (uint32_t i = 0; i < c->n_spans; i++) {
        const rm_span *s = &c->spans[i];
        if (s->bytes < x->brick) small[n++] = (ranked){c->busiest[i], s->end - s->begin, i};
    }
    if (n) qsort(small, n, sizeof *small, busiest_first);
    for (uint32_t i = 0; i < n; i++) TRY(put_away(x, small[i].span));
    return REMAT_OK;
}

/* A box of as many bytes as a brick fits where bricks fit. */
static void make_bricks(boxing *x)
{
    for (size_t i = 0; i < x->boxes.n; i++) {
        box *b = &x->boxes.items[i], brick = *b;
        brick.bytes = x->brick;
        rm_spend(x->ctx, b->end - b->begin);
        if (x->next[b->member] == REMAT_NONE || !has_room(x, b, &brick, NULL)) continue;
        add_load(x, b, brick.bytes - b->bytes);
        *b = brick;
    }
}

static remat_status make_boxes(boxing *x)
{
    const rm_cliques *c = x->c;
    TRY(RM_SCRATCH(x->ctx, x->load, (size_t)c->n_cliques + 1));
    TRY(RM_SCRATCH(x->ctx, x->next, c->n_spans));
    TRY(RM_SCRATCH(x->ctx, x->home, c->n_spans));
    TRY(RM_SCRATCH(x->ctx, x->inner, c->n_spans));
    memcpy(x->load, c->load, c->n_cliques * sizeof *x->load);
    TRY(fill_boxes(x));
    make_bricks(x);
    for (uint32_t i = 0; i < c->n_spans; i++) {
        const rm_span *s = &c->spans[i];
        if (s->bytes < x->brick) continue;
        x->home[i] = (uint32_t)x->boxes.n;
        TRY(RM_PUSH(x->ctx, x->boxes, ((box){s->begin, s->end, s->bytes, i})));
    }
    remat_span *spans;
    TRY(RM_SCRATCH(x->ctx, spans, x->boxes.n));
    for (size_t i = 0; i < x->boxes.n; i++) {
        const box *b = &x->boxes.items[i];
        spans[i] = (remat_span){b->begin, b->end, b->bytes};
    }
    TRY(rm_cliques_make(x->ctx, spans, x->boxes.n, &x->coarse));
    assert(x->coarse.bound <= x->capacity);
    return REMAT_OK;
}

/* ---- placing them ---- */

/* fixed: by span of the coarse problem, the offset of what belongs to the core, or RM_NOT_FIXED. */
static remat_status place_core(const boxing *x, double share, int64_t *n_runs, int64_t *fixed,
                               rm_found *found)
{
    const rm_cliques *c = &x->coarse;
    remat_span *spans;
    uint32_t *which, n = 0;
    rm_cliques core;
    rm_placed placed = {.height = INT64_MAX};
    int64_t next;
    TRY(RM_SCRATCH(x->ctx, spans, c->n_spans));
    TRY(RM_SCRATCH(x->ctx, which, c->n_spans));
    for (uint32_t i = 0; i < c->n_spans; i++) {
        const rm_span *s = &c->spans[i];
        fixed[i] = RM_NOT_FIXED;
        if ((double)(x->capacity - c->busiest[i]) > share * (double)x->capacity) continue;
        which[n] = i;
        spans[n++] = (remat_span){s->begin, s->end, s->bytes};
    }
    TRY(rm_cliques_make(x->ctx, spans, n, &core));
    TRY(RM_SCRATCH(x->ctx, placed.offsets, core.n_spans));
    TRY(rm_skyline_search(x->ctx, &core, x->capacity, n_runs, &placed, found, &next));
    if (*found != RM_FOUND) return REMAT_OK;
    for (uint32_t i = 0; i < core.n_spans; i++) fixed[which[core.original[i]]] = placed.offsets[i];
    return REMAT_OK;
}

/* What lies in boxes lies in the arena. offset: to work in. */
static void unpack(const boxing *x, const rm_placed *placed, int64_t *offset, rm_placed *best)
{
    const rm_cliques *c = &x->coarse;
    for (uint32_t i = 0; i < c->n_spans; i++) offset[c->original[i]] = placed->offsets[i];
    best->height = 0;
    for (uint32_t i = 0; i < x->c->n_spans; i++) {
        best->offsets[i] = offset[x->home[i]] + x->inner[i];
        const int64_t top = best->offsets[i] + x->c->spans[i].bytes;
        if (top > best->height) best->height = top;
    }
}

/* One try. A placement that is lower than the best becomes the best. */
static remat_status place_boxes(const boxing *x, double share, int64_t *n_runs, rm_placed *best)
{
    const rm_cliques *c = &x->coarse;
    int64_t *fixed, *offset;
    rm_found found;
    rm_placed placed = {.height = INT64_MAX};
    TRY(RM_SCRATCH(x->ctx, fixed, c->n_spans));
    TRY(RM_SCRATCH(x->ctx, offset, c->n_spans));
    TRY(RM_SCRATCH(x->ctx, placed.offsets, c->n_spans));
    TRY(place_core(x, share, n_runs, fixed, &found));
    if (found != RM_FOUND) return REMAT_OK;
    TRY(rm_first_fit(x->ctx, c, fixed, x->capacity, &placed));
    if (placed.height < best->height) unpack(x, &placed, offset, best);
    return REMAT_OK;
}

/* Round after round with all cores, until it is found or the limit is over. */
static remat_status try_cores(const boxing *x, rm_placed *best)
{
    int64_t n_runs[N_CORES] = {0}, work = FIRST_WORK;
    for (int turn = 0; best->height > x->capacity && !rm_is_over(x->ctx); turn++) {
        const int core = turn % N_CORES;
        const rm_mark mark = rm_scratch_mark(x->ctx);
        rm_limit_push(x->ctx, 1, work);
        const remat_status status = place_boxes(x, core_shares[core], &n_runs[core], best);
        rm_limit_pop(x->ctx);
        rm_scratch_release(x->ctx, mark);
        TRY(status);
        if (core == N_CORES - 1 && work < RM_SECOND) work *= 2;
    }
    return REMAT_OK;
}

remat_status rm_boxes_search(remat_ctx *ctx, const rm_cliques *c, int64_t capacity, rm_placed *best)
{
    boxing x = {.ctx = ctx, .c = c, .capacity = capacity};
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_status status = find_brick(ctx, c, &x.brick);
    if (status == REMAT_OK && x.brick) {
        status = make_boxes(&x);
        if (status == REMAT_OK) status = try_cores(&x, best);
        RM_VEC_FREE(&ctx->heap, x.boxes);
    }
    rm_scratch_release(ctx, mark);
    return status;
}

static remat_status eject_boxes(const boxing *x, rm_placed *best)
{
    const rm_cliques *c = &x->coarse;
    int64_t *offset;
    rm_placed placed = {.height = INT64_MAX};
    TRY(RM_SCRATCH(x->ctx, offset, c->n_spans));
    TRY(RM_SCRATCH(x->ctx, placed.offsets, c->n_spans));
    TRY(rm_first_fit(x->ctx, c, NULL, x->capacity, &placed));
    TRY(rm_eject_search(x->ctx, c, x->capacity, &placed));
    if (placed.height < best->height) unpack(x, &placed, offset, best);
    return REMAT_OK;
}

remat_status rm_boxes_eject(remat_ctx *ctx, const rm_cliques *c, int64_t capacity, rm_placed *best)
{
    boxing x = {.ctx = ctx, .c = c, .capacity = capacity};
    const rm_mark mark = rm_scratch_mark(ctx);
    remat_status status = find_brick(ctx, c, &x.brick);
    if (status == REMAT_OK && !x.brick) status = find_any_brick(ctx, c, &x.brick);
    if (status == REMAT_OK && x.brick) {
        status = make_boxes(&x);
        rm_limit_push(ctx, 0.75, RM_NO_LIMIT);
        if (status == REMAT_OK) status = eject_boxes(&x, best);
        rm_limit_pop(ctx);
        RM_VEC_FREE(&ctx->heap, x.boxes);
    }
    if (status == REMAT_OK) status = rm_eject_search(ctx, c, capacity, best);
    rm_scratch_release(ctx, mark);
    return rm_is_too_much_memory(ctx, status) ? REMAT_OK : status; /* there is a placement */
}
