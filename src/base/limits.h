/* limits.h: how much a call may take, in work, time and memory.
 *
 * Work is counted in elementary operations: an event or a range of memory touched, a cell of a
 * table filled, an arc scanned. Each takes some nanoseconds of one core. Work is reproducible, so
 * searches end by it. The clock and the stop flag do nothing but cut them off.
 *
 * Limits are a stack. Who lets another part run pushes a share of what is left, and pops it
 * afterwards; what runs in between asks rm_spend, or rm_is_over, when its share is used up. A
 * planner that lets another planner run calls rm_try_planner (plan/planner.h), which does so and
 * tidies up.
 *
 * Invariant: an inner limit ends no later than the limits around it. */
#ifndef RM_LIMITS_H
#define RM_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "remat.h"

#define RM_NO_LIMIT INT64_MAX
enum {
    RM_WORK_UNIT = 64, /* operations in a unit of the option `work`: a quarter of a microsecond */
    RM_SECOND = 4000000 * RM_WORK_UNIT, /* operations in about a second */
    RM_LIMIT_DEPTH = 16
};

typedef struct rm_limit {
    int64_t work_begin, work_end; /* counts of operations */
    int64_t begin_ns, end_ns;     /* times of the clock */
} rm_limit;

typedef struct rm_limits {
    int64_t work; /* operations of the current call */
    rm_limit stack[RM_LIMIT_DEPTH];
    uint32_t depth;        /* 0: no call is running, and nothing is limited */
    remat_stopped stopped; /* why the innermost limit is over, once somebody was told */
    int64_t memory_used;   /* bytes, in the current call */
    int64_t memory_limit;  /* the most bytes there may be */
    bool memory_refused;   /* an allocation failed because it would have passed the limit */
} rm_limits;

/* The outermost limit, from the options; without them `default_work` operations. rm_limits_end must
 * follow, on every path. */
void rm_limits_begin(remat_ctx *ctx, int64_t default_work);
void rm_limits_end(remat_ctx *ctx);
/* The call consists of so many parts, and each may do the work that the limit allows. */
void rm_limits_widen(remat_ctx *ctx, uint32_t parts);

/* For what comes after a planner. Work is not limited any more. If time was limited, or the planner
 * was stopped, there is time as far as some is left, and at least least_ns. */
void rm_limits_extend(remat_ctx *ctx, int64_t least_ns);

/* A share of the work and of the time that are left, and at most so many operations. */
void rm_limit_push(remat_ctx *ctx, double share, int64_t most_work);
void rm_limit_push_time(remat_ctx *ctx, int64_t spared_ns); /* all but so much of the time */
void rm_limit_pop(remat_ctx *ctx);
/* At least so many operations are left: what ran before may have taken more than its share. */
void rm_limits_ensure(remat_ctx *ctx, int64_t operations);

/* True: the innermost limit is over, so stop and keep what there is. The reason is noted. */
bool rm_spend(remat_ctx *ctx, int64_t operations);
static inline bool rm_is_over(remat_ctx *ctx) { return rm_spend(ctx, 0); }
/* Is it over by the clock or the stop flag, whatever the work? For what belongs to every plan. */
bool rm_is_late(const remat_ctx *ctx);
void rm_note_stop(remat_ctx *ctx, remat_stopped why); /* unless a reason is noted already */
remat_stopped rm_stopped(const remat_ctx *ctx);       /* the reason that is noted */

/* Is enough work and time left for a step that nothing can cut short? A reason why not is noted. */
bool rm_can_afford(remat_ctx *ctx, double operations);
/* The most operations that such a step may take. May be infinite. */
double rm_affordable(const remat_ctx *ctx);
int64_t rm_work_left(const remat_ctx *ctx);   /* operations, or RM_NO_LIMIT */
int64_t rm_time_left(const remat_ctx *ctx);   /* ns, or RM_NO_LIMIT */
int64_t rm_memory_left(const remat_ctx *ctx); /* bytes, or RM_NO_LIMIT */
/* Did a call fail because it would have passed the limit of memory? Its callers may do without. */
bool rm_is_too_much_memory(remat_ctx *ctx, remat_status status);
int64_t rm_work_units(const remat_ctx *ctx); /* spent in the current call; units of option `work` */
int rm_permille_used(const remat_ctx *ctx);  /* of the outermost limit */

/* The part of a limit that one thread may use. The thread counts its own `work`. The clock and the
 * stop flag are looked at here. */
typedef struct rm_quota {
    const remat_ctx *ctx;
    int64_t work, most_work;
    int64_t begin_ns, most_ns; /* RM_NO_LIMIT: no limit of time */
} rm_quota;

rm_quota rm_quota_begin(const remat_ctx *ctx, double share); /* a share of what is left */
rm_quota rm_quota_part(const rm_quota *of, double work_share, double time_share);
double rm_quota_used(const rm_quota *q); /* 1 and more: it is over */

/* Tells the caller how far planning is. permille: what the planner knows; if it is negative, the
 * share of the outermost limit that is used. */
void rm_report(remat_ctx *ctx, const char *strategy, int permille, int64_t cost,
               int64_t peak_bytes);

int64_t rm_clock_ns(void); /* a clock that only goes forward */

#endif
