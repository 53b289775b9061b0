/* profile.c: memory over time, for local search.
 *
 * Problem: a move adds to a few ranges of positions. After each move the maximum is wanted. Most
 * moves are refused, so the maximum is also wanted without doing the move (rm_profile_look).
 *
 * Method: two levels, with blocks of 64 positions. An add touches the positions of the two blocks
 * at its ends, and one number per block between them. The maximum is a scan over one number per
 * block. Both are straight loops over arrays, which vectorise. For 20,000 positions that is tens of
 * nanoseconds, less than the log n dependent loads of a segment tree.
 *
 * Invariants:
 * - value(i) = at[i] + lift[block of i].
 * - high[b] = the maximum of value over block b.
 * - max = the maximum of high, and high[crest] = max.
 * - A block's lift is folded into its positions whenever they are written, so lifts cannot drift.
 *
 * Cost: O(64 + blocks) an add, a look or a maximum. */
#include "algo/profile.h"

#include <assert.h>
#include <string.h>

enum { BLOCK = RM_PROFILE_BLOCK };

/* Inlined, so that each version of a caller (RM_MULTIVERSION) is compiled with its own copy. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

remat_status rm_profile_new(remat_ctx *ctx, uint32_t n_positions, rm_profile *out)
{
    const uint32_t n = n_positions / BLOCK + 1;
    int64_t *all = rm_alloc(ctx, (size_t)n * (BLOCK + 2) * sizeof *all);
    if (!all) return REMAT_E_MEMORY;
    *out = (rm_profile){.n_blocks = n,
                        .at = all,
                        .lift = all + (size_t)n * BLOCK,
                        .high = all + (size_t)n * (BLOCK + 1)};
    return REMAT_OK;
}

void rm_profile_free(const remat_alloc *heap, rm_profile *p)
{
    rm_release(heap, p->at, (size_t)p->n_blocks * (BLOCK + 2) * sizeof *p->at);
    *p = (rm_profile){0};
}

void rm_profile_clear(rm_profile *p)
{
    memset(p->at, 0, (size_t)p->n_blocks * (BLOCK + 2) * sizeof *p->at);
    p->max = 0;
    p->crest = 0;
}

int64_t rm_profile_at(const rm_profile *p, uint32_t position)
{
    return p->at[position] + p->lift[position / BLOCK];
}

ALWAYS_INLINE void add_in_block(rm_profile *p, uint32_t b, uint32_t first, uint32_t last,
                                int64_t delta)
{
    int64_t *at = p->at + (size_t)b * BLOCK;
    const int64_t lift = p->lift[b];
    int64_t high = INT64_MIN;
    for (uint32_t i = 0; i < BLOCK; i++) {
        const int64_t x = at[i] + lift + (i >= first && i <= last ? delta : 0);
        at[i] = x;
        high = x > high ? x : high;
    }
    p->lift[b] = 0;
    p->high[b] = high;
}

ALWAYS_INLINE void add_range(rm_profile *p, uint32_t first, uint32_t last, int64_t delta)
{
    const uint32_t b = first / BLOCK, c = last / BLOCK;
    if (b == c) {
        add_in_block(p, b, first % BLOCK, last % BLOCK, delta);
        return;
    }
    add_in_block(p, b, first % BLOCK, BLOCK - 1, delta);
    for (uint32_t i = b + 1; i < c; i++) p->lift[i] += delta;
    for (uint32_t i = b + 1; i < c; i++) p->high[i] += delta;
    add_in_block(p, c, 0, last % BLOCK, delta);
}

ALWAYS_INLINE void find_crest(rm_profile *p)
{
    int64_t max = INT64_MIN;
    for (uint32_t b = 0; b < p->n_blocks; b++) max = p->high[b] > max ? p->high[b] : max;
    uint32_t crest = 0;
    while (p->high[crest] != max) crest++;
    p->max = max;
    p->crest = crest;
}

/* Until it is finished, `at` holds differences between neighbours. */
void rm_profile_sketch(rm_profile *p, const rm_range *ranges, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert(ranges[i].first <= ranges[i].last && ranges[i].last < p->n_blocks * BLOCK);
        p->at[ranges[i].first] += ranges[i].delta;
        if (ranges[i].last + 1 < p->n_blocks * BLOCK) p->at[ranges[i].last + 1] -= ranges[i].delta;
    }
}

void rm_profile_finish(rm_profile *p)
{
    int64_t sum = 0;
    for (uint32_t b = 0; b < p->n_blocks; b++) {
        p->high[b] = INT64_MIN;
        for (uint32_t i = b * BLOCK; i < (b + 1) * BLOCK; i++) {
            sum += p->at[i];
            p->at[i] = sum;
            if (sum > p->high[b]) p->high[b] = sum;
        }
    }
    find_crest(p);
}

bool rm_profile_may_sink(const rm_profile *p, const rm_range *ranges, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ranges[i].delta < 0 && ranges[i].first / BLOCK <= p->crest &&
            ranges[i].last / BLOCK >= p->crest)
            return true;
    return false;
}

/* Where the crest cannot have sunk, only blocks that were added to can be above it. */
ALWAYS_INLINE void lift_crest(rm_profile *p, const rm_range *ranges, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].delta < 0) continue;
        for (uint32_t b = ranges[i].first / BLOCK; b <= ranges[i].last / BLOCK; b++) {
            if (p->high[b] <= p->max) continue;
            p->max = p->high[b];
            p->crest = b;
        }
    }
}

RM_MULTIVERSION void rm_profile_add(rm_profile *p, const rm_range *ranges, size_t n)
{
    const bool may_sink = rm_profile_may_sink(p, ranges, n);
    for (size_t i = 0; i < n; i++) add_range(p, ranges[i].first, ranges[i].last, ranges[i].delta);
    if (may_sink) find_crest(p);
    else lift_crest(p, ranges, n);
}

RM_MULTIVERSION void rm_profile_undo(rm_profile *p, const rm_range *ranges, size_t n)
{
    for (size_t i = 0; i < n; i++) add_range(p, ranges[i].first, ranges[i].last, -ranges[i].delta);
    find_crest(p);
}

/* By how much x passes the limit, but no more than `most`. */
ALWAYS_INLINE int64_t over(int64_t x, int64_t limit, int64_t most)
{
    const int64_t much = x > limit ? x - limit : 0;
    return much < most ? much : most;
}

/* What one block may add to a sum over all blocks, so that the sum does not overflow. It is at
 * least 2^38. */
ALWAYS_INLINE int64_t most_over(const rm_profile *p) { return INT64_MAX / p->n_blocks; }

RM_MULTIVERSION int64_t rm_profile_excess(const rm_profile *p, int64_t limit)
{
    const int64_t most = most_over(p);
    int64_t sum = 0;
    for (uint32_t b = 0; b < p->n_blocks; b++) sum += over(p->high[b], limit, most);
    return sum;
}

ALWAYS_INLINE int64_t max_in_block(const rm_profile *p, uint32_t b, uint32_t first, uint32_t last)
{
    const int64_t *at = p->at + (size_t)b * BLOCK;
    int64_t high = INT64_MIN / 2;
    for (uint32_t i = 0; i < BLOCK; i++) {
        const int64_t x = i >= first && i <= last ? at[i] : INT64_MIN / 2;
        high = x > high ? x : high;
    }
    return high + p->lift[b];
}

ALWAYS_INLINE int64_t max_between(const rm_profile *p, uint32_t first, uint32_t last)
{
    const uint32_t b = first / BLOCK, c = last / BLOCK;
    if (b == c) return max_in_block(p, b, first % BLOCK, last % BLOCK);
    int64_t high = max_in_block(p, b, first % BLOCK, BLOCK - 1);
    for (uint32_t i = b + 1; i < c; i++) high = p->high[i] > high ? p->high[i] : high;
    const int64_t x = max_in_block(p, c, 0, last % BLOCK);
    return x > high ? x : high;
}

typedef struct corner { /* where the sum of the ranges changes */
    uint32_t at;
    int64_t delta;
} corner;

/* The corners by position, at most one at each. Returns how many there are. */
static size_t sort_corners(const rm_range *ranges, size_t n, corner *corners)
{
    assert(n <= RM_PROFILE_LOOK);
    size_t k = 0;
    for (size_t i = 0; i < 2 * n; i++) {
        const rm_range *r = &ranges[i / 2];
        const corner x = i % 2 ? (corner){r->last + 1, -r->delta} : (corner){r->first, r->delta};
        size_t j = k;
        while (j && corners[j - 1].at > x.at) j--;
        if (j && corners[j - 1].at == x.at) {
            corners[j - 1].delta += x.delta;
            continue;
        }
        memmove(corners + j + 1, corners + j, (k - j) * sizeof *corners);
        corners[j] = x;
        k++;
    }
    return k;
}

/* Between corners the sum is constant. A piece where it is not positive stays below the old
 * maximum. Such pieces matter only if the crest itself may sink. */
RM_MULTIVERSION int64_t rm_profile_look(const rm_profile *p, const rm_range *ranges, size_t n)
{
    corner corners[2 * RM_PROFILE_LOOK];
    const size_t k = sort_corners(ranges, n, corners);
    const bool all = rm_profile_may_sink(p, ranges, n);
    int64_t high = all ? INT64_MIN : p->max, delta = 0;
    uint32_t first = 0;
    for (size_t i = 0; i <= k; i++) {
        const uint32_t end = i < k ? corners[i].at : p->n_blocks * BLOCK;
        if (end > first && (all || delta > 0)) {
            const int64_t x = max_between(p, first, end - 1) + delta;
            high = x > high ? x : high;
        }
        if (i < k) delta += corners[i].delta;
        first = end;
    }
    return high;
}

/* How the excess changes if all of the blocks first .. end - 1 grow by delta. */
ALWAYS_INLINE int64_t change_of_blocks(const rm_profile *p, uint32_t first, uint32_t end,
                                       int64_t delta, int64_t limit, int64_t most)
{
    int64_t change = 0;
    for (uint32_t b = first; b < end && delta; b++)
        change += over(p->high[b] + delta, limit, most) - over(p->high[b], limit, most);
    return change;
}

/* A whole block between corners grows by one number. A block with corners in it is as high as the
 * highest of its pieces. */
RM_MULTIVERSION int64_t rm_profile_look_excess(const rm_profile *p, const rm_range *ranges,
                                               size_t n, int64_t limit)
{
    corner corners[2 * RM_PROFILE_LOOK];
    const size_t k = sort_corners(ranges, n, corners);
    const int64_t most = most_over(p);
    int64_t change = 0, delta = 0;
    int64_t high = INT64_MIN; /* of the pieces of the block at hand */
    if (k == 0) return 0;
    uint32_t first = corners[0].at / BLOCK * BLOCK;
    for (size_t i = 0; i <= k; i++) {
        const uint32_t end =
            i < k ? corners[i].at : (corners[k - 1].at + BLOCK - 1) / BLOCK * BLOCK;
        while (first < end) {
            const uint32_t b = first / BLOCK, c = end / BLOCK;
            if (first % BLOCK == 0 && c > b) {
                change += change_of_blocks(p, b, c, delta, limit, most);
                first = c * BLOCK;
                continue;
            }
            const uint32_t last = (c > b ? (b + 1) * BLOCK : end) - 1;
            const int64_t x = max_in_block(p, b, first % BLOCK, last % BLOCK) + delta;
            high = x > high ? x : high;
            first = last + 1;
            if (first % BLOCK) continue;
            change += over(high, limit, most) - over(p->high[b], limit, most);
            high = INT64_MIN;
        }
        if (i < k) delta += corners[i].delta;
    }
    return change;
}

void rm_profile_check(const rm_profile *p)
{
    int64_t max = INT64_MIN;
    for (uint32_t b = 0; b < p->n_blocks; b++) {
        int64_t high = INT64_MIN;
        for (uint32_t i = b * BLOCK; i < (b + 1) * BLOCK; i++)
            if (rm_profile_at(p, i) > high) high = rm_profile_at(p, i);
        assert(p->high[b] == high);
        if (high > max) max = high;
    }
    assert(p->max == max && p->crest < p->n_blocks && p->high[p->crest] == max);
}
