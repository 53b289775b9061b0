/* profile.h: a number for each position. Numbers are added to ranges of positions. The maximum is
 * known at any time, and also what it would be after some more adds. */
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

/* All zero. The positions are rounded up to whole blocks. */
remat_status rm_profile_new(remat_ctx *ctx, uint32_t n_positions, rm_profile *out);
void rm_profile_free(const remat_alloc *heap, rm_profile *p);
void rm_profile_clear(rm_profile *p);

/* For many adds to a cleared profile: sketch them all, then finish. A sketched range takes O(1),
 * and finishing O(positions). In between nothing else can be asked. */
void rm_profile_sketch(rm_profile *p, const rm_range *ranges, size_t n);
void rm_profile_finish(rm_profile *p);

void rm_profile_add(rm_profile *p, const rm_range *ranges, size_t n);
/* rm_profile_undo takes back what rm_profile_add did with the same ranges. */
void rm_profile_undo(rm_profile *p, const rm_range *ranges, size_t n);
/* Could adding the ranges lower the maximum? If not, it stays or grows. */
bool rm_profile_may_sink(const rm_profile *p, const rm_range *ranges, size_t n);

/* The maximum as it would be with the ranges: they are not added. */
enum { RM_PROFILE_LOOK = 24 }; /* the most ranges of such a question */
int64_t rm_profile_look(const rm_profile *p, const rm_range *ranges, size_t n);

/* By how much blocks pass the limit, summed over blocks. A block counts for at most INT64_MAX /
 * n_blocks. Values and limit are within 2^62 of 0. */
int64_t rm_profile_excess(const rm_profile *p, int64_t limit);
/* How that would change with the ranges, of which there are at most RM_PROFILE_LOOK. */
int64_t rm_profile_look_excess(const rm_profile *p, const rm_range *ranges, size_t n,
                               int64_t limit);

int64_t rm_profile_at(const rm_profile *p, uint32_t position);
void rm_profile_check(const rm_profile *p); /* asserts what holds of it */

#endif
