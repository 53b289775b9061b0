/* restore.c: first runs back in the graph's order, where nothing is lost by it.
 *
 * Problem: a search moves steps about, and most of what it moves neither gains nor loses: casts of
 * weights and counters of batch norm end up far from where the graph has them. Such a plan is hard
 * to read. A compiler cannot fuse what lies apart, and where small kernels stand together, a GPU
 * waits for the host that launches them (a U-Net on an H200: 1 ms of 77).
 *
 * Method: the longest part of the first runs that is in the graph's order stands. Each of the
 * others slides between its neighbours in that part, as late as its readers allow, if the peak does
 * not rise. First those that run too early, the last one first, so that readers make way for what
 * they read; then those that run too late, from the first one on. Further rounds move what made way
 * only then, and what found no empty slot.
 *
 * Invariant: the same steps, so the same cost, and a peak within the limit. What moves joins the
 * part that is in order, so the result is never further from the graph's order.
 *
 * Cost: O(n log n) to find the part that stands, and a slide for each of the others. The limit of
 * work does not end it, since it comes when a search has used that up; a little work for each step
 * does, and the clock. */
#include "plan/search/restore.h"

enum {
    SPREAD = 4,       /* slots a step */
    ROUNDS = 8,       /* at most: while something moves */
    LOOK = 256,       /* ops between looks at the clock */
    WORK_A_STEP = 256 /* operations, at most */
};

typedef struct restorer {
    remat_ctx *ctx;
    rm_seq *q;
    int64_t limit, end_of_work;
    uint32_t *order;  /* by position among first runs: the op */
    uint32_t *slot;   /* by op: of its first run */
    bool *stands;     /* by op: its first run is in order with all others that stand */
    uint32_t *end;    /* of the increasing part of each length: its last op; then, by op, an op that
                         stands */
    uint32_t *before; /* by op: the op before it in the longest part that ends with it */
} restorer;

/* Where first runs are, and which of them stand. */
static void look(restorer *r)
{
    const rm_seq *q = r->q;
    uint32_t n = 0, length = 0;
    for (uint32_t op = 0; op < q->nm->n_ops; op++) r->slot[op] = RM_EMPTY;
    for (uint32_t slot = 0; slot < q->n_slots; slot++) {
        const rm_code op = q->at[slot];
        if (op == RM_EMPTY || r->slot[op] != RM_EMPTY) continue;
        r->slot[op] = slot;
        r->order[n++] = op;
        r->stands[op] = false;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t low = 0, high = length;
        while (low < high) {
            const uint32_t middle = (low + high) / 2;
            if (r->end[middle] < r->order[i]) low = middle + 1;
            else high = middle;
        }
        r->before[r->order[i]] = low ? r->end[low - 1] : RM_EMPTY;
        r->end[low] = r->order[i];
        if (low == length) length++;
    }
    for (uint32_t op = length ? r->end[length - 1] : RM_EMPTY; op != RM_EMPTY; op = r->before[op])
        r->stands[op] = true;
}

/* The first run of an op goes to the last empty slot in (after, end) that it may, if the peak stays
 * within the limit. Says whether it is there. */
static bool slide(restorer *r, uint32_t op, uint32_t after, uint32_t end)
{
    rm_seq *q = r->q;
    const uint32_t from = r->slot[op];
    q->work += (int64_t)rm_code_events(q->nm, op);
    for (uint32_t to = end; to-- > after + 1;) {
        q->work++;
        if (q->at[to] != RM_EMPTY) continue;
        if (!rm_seq_slide(q, from, to)) return false;
        if (rm_seq_peak(q) > r->limit) {
            rm_seq_undo(q);
            return false;
        }
        rm_seq_keep(q);
        r->slot[op] = to;
        return true;
    }
    return false;
}

static bool is_over(const restorer *r, uint32_t op)
{
    return r->q->work >= r->end_of_work || (op % LOOK == 0 && rm_is_late(r->ctx));
}

/* Those that run before one that stands and comes before them in the graph. */
static bool restore_early(restorer *r)
{
    rm_seq *q = r->q;
    uint32_t *const previous = r->end, standing = RM_EMPTY, next = q->n_slots;
    bool changed = false;
    for (uint32_t op = 0; op < q->nm->n_ops; op++) {
        previous[op] = standing;
        if (r->stands[op]) standing = op;
    }
    for (uint32_t op = q->nm->n_ops; op-- > 0 && !is_over(r, op);) {
        if (r->slot[op] == RM_EMPTY) continue;
        const uint32_t after = previous[op] == RM_EMPTY ? 0 : r->slot[previous[op]];
        if (!r->stands[op] && previous[op] != RM_EMPTY && r->slot[op] < after) {
            const uint32_t ceiling = rm_seq_ceiling(q, r->slot[op]);
            r->stands[op] = slide(r, op, after, ceiling < next ? ceiling : next);
            changed |= r->stands[op];
        }
        if (r->stands[op]) next = r->slot[op];
    }
    return changed;
}

/* Those that run behind one that stands and comes behind them in the graph. */
static bool restore_late(restorer *r)
{
    rm_seq *q = r->q;
    uint32_t *const following = r->end, standing = RM_EMPTY, after = 0;
    bool changed = false;
    for (uint32_t op = q->nm->n_ops; op-- > 0;) {
        following[op] = standing;
        if (r->stands[op]) standing = op;
    }
    for (uint32_t op = 0; op < q->nm->n_ops && !is_over(r, op); op++) {
        if (r->slot[op] == RM_EMPTY) continue;
        if (!r->stands[op] && following[op] != RM_EMPTY && r->slot[op] > r->slot[following[op]]) {
            const uint32_t floor = rm_seq_floor(q, op);
            r->stands[op] =
                slide(r, op, floor > after + 1 ? floor - 1 : after, r->slot[following[op]]);
            changed |= r->stands[op];
        }
        if (r->stands[op]) after = r->slot[op];
    }
    return changed;
}

static remat_status restore(remat_ctx *ctx, rm_seq *q, int64_t limit, rm_codes *codes)
{
    restorer r = {.ctx = ctx, .q = q};
    const uint32_t n = q->nm->n_ops;
    TRY(RM_SCRATCH(ctx, r.order, n));
    TRY(RM_SCRATCH(ctx, r.slot, n));
    TRY(RM_SCRATCH(ctx, r.stands, n));
    TRY(RM_SCRATCH(ctx, r.end, n));
    TRY(RM_SCRATCH(ctx, r.before, n));
    const int64_t begin = q->work;
    r.end_of_work = begin + WORK_A_STEP * (int64_t)codes->n;
    for (int round = 0; round < ROUNDS && !is_over(&r, 0); round++) {
        if (!rm_seq_load(q, codes->items, codes->n)) break;
        r.limit = rm_seq_peak_kept(q) > limit ? rm_seq_peak_kept(q) : limit;
        look(&r);
        const bool early = restore_early(&r), late = restore_late(&r);
        codes->n = rm_seq_codes(q, codes->items);
        if (!early && !late) break;
    }
    rm_spend(ctx, q->work - begin);
    return REMAT_OK;
}

remat_status rm_restore_order(remat_ctx *ctx, const rm_normal *nm, int64_t limit, rm_codes *codes)
{
    rm_seq q;
    for (size_t i = 0; i < codes->n; i++)
        if (rm_is_fetch(nm, codes->items[i])) return REMAT_OK;
    const rm_mark mark = rm_scratch_mark(ctx);
    TRY(rm_seq_new(ctx, nm, (uint32_t)(SPREAD * codes->n) + 1, &q));
    const remat_status status = restore(ctx, &q, limit, codes);
    rm_seq_free(&q);
    rm_scratch_release(ctx, mark);
    return status;
}
