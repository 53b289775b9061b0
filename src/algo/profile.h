/* profile.h: a number per position: range add, the maximum, and the maximum as it would be after
 * some range adds. */
#ifndef RM_PROFILE_H
#define RM_PROFILE_H

#include "base/base.h"

enum { RM_PROFILE_BLOCK = 64 };

typedef struct rm_range {
    uint32_t first, last; /* inclusive */
    int64_t delta;
} rm_range;

typedef struct rm_profile {
    uint32_t n_blocks;
    int64_t *at;    /* by position, less its block's lift */
    int64_t *lift;  /* by block: to be added to all its positions */
    int64_t *high;  /* by block: its maximum, lift included */
    int64_t max;    /* over all positions */
    uint32_t crest; /* a block that reaches it */
} rm_profile;

remat_status rm_profile_new(remat_ctx *ctx, uint32_t n_positions,
                            rm_profile *out); /* all zero; rounded up to whole blocks */
void rm_profile_free(const remat_alloc *heap, rm_profile *p);
void rm_profile_clear(rm_profile *p);
/* Adds to a profile under construction; rm_profile_finish then makes it whole. O(1) each, and
 * O(positions). */
void rm_profile_sketch(rm_profile *p, const rm_range *ranges, size_t n);
void rm_profile_finish(rm_profile *p);
void rm_profile_add(rm_profile *p, const rm_range *ranges, size_t n);
/* rm_profile_undo takes back what rm_profile_add did with the same ranges. */
void rm_profile_undo(rm_profile *p, const rm_range *ranges, size_t n);
/* Could adding the ranges lower the maximum? If not, it stays or grows. */
bool rm_profile_may_sink(const rm_profile *p, const rm_range *ranges, size_t n);
/* The maximum after adding them, which is not done. At most RM_PROFILE_LOOK ranges. */
enum { RM_PROFILE_LOOK = 24 };
int64_t rm_profile_look(const rm_profile *p, const rm_range *ranges, size_t n);
/* By how much blocks pass the limit, each by at most INT64_MAX / n_blocks, summed over blocks; and
 * how that would change with the ranges, again at most RM_PROFILE_LOOK. Values and limit are within
 * 2^62 of 0. */
int64_t rm_profile_excess(const rm_profile *p, int64_t limit);
int64_t rm_profile_look_excess(const rm_profile *p, const rm_range *ranges, size_t n,
                               int64_t limit);
void rm_profile_check(const rm_profile *p); /* asserts what holds of it */
int64_t rm_profile_at(const rm_profile *p, uint32_t position);

#endif
