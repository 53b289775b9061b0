/* limits.h: how much a call may take, in work, time and memory.
 *
 * Work is counted in elementary operations: an event or a range of memory touched, a cell of a
 * table filled, an arc scanned; each some nanoseconds of one core. It is reproducible, so it is
 * what cuts searches off. The wall clock and the stop flag only cut off.
 *
 * Limits are a stack. A planner that lets another run pushes a share of what is left and pops it
 * afterwards:
 *
 *     rm_limit_push(ctx, 0.25, RM_NO_LIMIT);
 *     status = rm_mincut.run(p, best);     // its rm_spend says when the quarter is used up
 *     rm_limit_pop(ctx);
 *
 * Invariant: an inner limit ends no later than those around it. */
#ifndef RM_LIMITS_H
#define RM_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "remat.h"

#define RM_NO_LIMIT INT64_MAX
enum {
    RM_WORK_UNIT = 64, /* operations in one unit of the option `work`: a quarter of a microsecond */
    RM_SECOND = 4000000 * RM_WORK_UNIT, /* operations in about a second */
    RM_LIMIT_DEPTH = 16
};

typedef struct rm_limit {
    int64_t work_begin, work_end; /* of the count of operations */
    int64_t begin_ns, end_ns;     /* of the clock */
} rm_limit;

typedef struct rm_limits {
    int64_t work; /* operations of the current call */
    rm_limit stack[RM_LIMIT_DEPTH];
    uint32_t depth;                    /* 0: no call is running, and nothing is limited */
    remat_stopped stopped;             /* why the innermost limit is over, once somebody was told */
    int64_t memory_used, memory_limit; /* bytes taken in the current call; the most there may be */
    bool memory_refused;               /* an allocation failed for that reason */
} rm_limits;

/* The outermost limit, from the options; without them `default_work` operations. Ends with
 * rm_limits_end, on every path. */
void rm_limits_begin(remat_ctx *ctx, int64_t default_work);
void rm_limits_end(remat_ctx *ctx);

/* For what comes behind a planner: no limit of work; of time, if there is one or the planner was
 * stopped, what is left, and at least so much. */
void rm_limits_extend(remat_ctx *ctx, int64_t least_ns);

/* A share of what is left of the work and of the time, and at most so many operations. */
void rm_limit_push(remat_ctx *ctx, double share, int64_t most_work);
void rm_limit_push_time(remat_ctx *ctx, int64_t spared_ns); /* all but so much of the time */
void rm_limit_pop(remat_ctx *ctx);

/* True: the innermost limit is over; stop and keep what there is. The reason is noted. */
bool rm_spend(remat_ctx *ctx, int64_t operations);
static inline bool rm_is_over(remat_ctx *ctx) { return rm_spend(ctx, 0); }
/* By the clock or the stop flag, whatever the work: for what belongs to every plan. */
bool rm_is_late(const remat_ctx *ctx);
void rm_note_stop(remat_ctx *ctx, remat_stopped why); /* another reason, if there is none yet */
remat_stopped rm_stopped(const remat_ctx *ctx);       /* as far as somebody was told */

/* Is there enough left, of work and of time, for a step that nothing can cut short? If not, the
 * reason is noted. */
bool rm_can_afford(remat_ctx *ctx, double operations);
double
rm_affordable(const remat_ctx *ctx); /* the most operations of such a step; may be infinite */
int64_t rm_work_left(const remat_ctx *ctx);   /* operations; RM_NO_LIMIT */
int64_t rm_time_left(const remat_ctx *ctx);   /* ns; RM_NO_LIMIT */
int64_t rm_memory_left(const remat_ctx *ctx); /* bytes */
/* Did a call fail because it would have passed the limit of memory? Its callers may do without. */
bool rm_is_too_much_memory(remat_ctx *ctx, remat_status status);
int64_t rm_work_units(const remat_ctx *ctx); /* spent in the current call, as callers see it */
int rm_permille_used(const remat_ctx *ctx);  /* of the outermost limit */

/* The part of a limit that one thread may use: it counts for itself, and looks at the clock and
 * the stop flag. `work` is for its owner to raise. */
typedef struct rm_quota {
    const remat_ctx *ctx;
    int64_t work, most_work;
    int64_t begin_ns, most_ns; /* RM_NO_LIMIT: no limit of time */
} rm_quota;

rm_quota rm_quota_begin(const remat_ctx *ctx, double share); /* of what is left */
rm_quota rm_quota_part(const rm_quota *of, double work_share, double time_share);
double rm_quota_used(const rm_quota *q); /* 1 and more: it is over */

/* Progress, with the share of the outermost limit that is used; permille: or what the planner knows
 * better, if not negative. */
void rm_report(remat_ctx *ctx, const char *strategy, int permille, int64_t cost,
               int64_t peak_bytes);

int64_t rm_clock_ns(void);

#endif
