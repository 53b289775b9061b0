/* limits.c: work limits, which are reproducible, and the wall clock and the stop flag, which only
 * cut off. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "base/base.h"

#include <time.h>

int64_t rm_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void rm_limits_begin(remat_ctx *ctx, int64_t default_work)
{
    ctx->work = 0;
    ctx->bound_cost = REMAT_ABSENT;
    ctx->work_limit = ctx->options.work      ? ctx->options.work
                      : ctx->options.time_ms ? INT64_MAX
                                             : default_work; /* a time alone: all of it */
    if (!ctx->options.time_ms ||
        rm_add_overflows(rm_clock_ns(), ctx->options.time_ms * 1000000, &ctx->deadline_ns))
        ctx->deadline_ns = INT64_MAX; /* the option's range keeps the product from overflowing */
    ctx->bound_cost = REMAT_ABSENT;
    ctx->stopped = REMAT_DONE;
}

bool rm_spend(remat_ctx *ctx, int64_t work)
{
    ctx->work += work;
    if (atomic_load_explicit(&ctx->stop, memory_order_relaxed)) ctx->stopped = REMAT_SIGNAL;
    else if (ctx->work >= ctx->work_limit) ctx->stopped = REMAT_WORK;
    else if (ctx->deadline_ns != INT64_MAX && rm_clock_ns() >= ctx->deadline_ns)
        ctx->stopped = REMAT_TIME;
    return ctx->stopped != REMAT_DONE;
}

bool rm_is_late(const remat_ctx *ctx)
{
    return atomic_load_explicit(&ctx->stop, memory_order_relaxed) ||
           (ctx->deadline_ns != INT64_MAX && rm_clock_ns() >= ctx->deadline_ns);
}

void rm_report(remat_ctx *ctx, const char *strategy, int permille, int64_t cost, int64_t peak_bytes)
{
    const remat_progress progress = {strategy,   permille,  cost,
                                     peak_bytes, ctx->work, ctx->bound_cost};
    if (ctx->on_progress) ctx->on_progress(ctx->progress_user, &progress);
}

int rm_permille_used(const remat_ctx *ctx, int64_t since_ns)
{
    const double share =
        ctx->deadline_ns == INT64_MAX
            ? (double)ctx->work / (double)ctx->work_limit
            : (double)(rm_clock_ns() - since_ns) / (double)(ctx->deadline_ns - since_ns + 1);
    return share < 1 ? (int)(1000 * share) : 1000;
}
