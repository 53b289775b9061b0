/* limits.c: the stack of limits, and the heap that counts.
 *
 * Problem: strategies run within strategies. Each has a part of what its caller may use. None may
 * pass the whole, whatever the graph looks like.
 *
 * Method: there is one count of operations for the whole call, and one clock. A limit is the count
 * and the time at which it ends. A pushed limit is a share of what is left. While a call runs, the
 * context's heap is a layer over the caller's own. It counts bytes and refuses what passes the
 * limit.
 *
 * Cost: O(1) a call. rm_spend looks at the clock, so callers spend in batches. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "base/base.h"

#include <assert.h>
#include <math.h>
#include <time.h>

int64_t rm_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool is_stopped(const remat_ctx *ctx)
{
    return atomic_load_explicit(&ctx->stop, memory_order_relaxed);
}

static const rm_limit no_limit = {.work_end = RM_NO_LIMIT, .end_ns = RM_NO_LIMIT};

static const rm_limit *innermost(const remat_ctx *ctx)
{
    const rm_limits *l = &ctx->limits;
    return l->depth ? &l->stack[l->depth - 1] : &no_limit;
}

/* ---- memory ---- */

static void *counted_resize(void *user, void *p, size_t old_size, size_t new_size)
{
    remat_ctx *ctx = user;
    rm_limits *l = &ctx->limits;
    if (new_size > old_size && new_size - old_size > (uint64_t)rm_memory_left(ctx)) {
        l->memory_refused = true;
        return NULL;
    }
    void *resized = rm_resize(&ctx->own_heap, p, old_size, new_size);
    if (resized || new_size == 0) l->memory_used += (int64_t)new_size - (int64_t)old_size;
    return resized;
}

int64_t rm_memory_left(const remat_ctx *ctx)
{
    const rm_limits *l = &ctx->limits;
    if (l->depth == 0) return RM_NO_LIMIT;
    return l->memory_limit > l->memory_used ? l->memory_limit - l->memory_used : 0;
}

bool rm_is_too_much_memory(remat_ctx *ctx, remat_status status)
{
    const bool refused = status == REMAT_E_MEMORY && ctx->limits.memory_refused;
    ctx->limits.memory_refused = false;
    return refused;
}

/* ---- the stack ---- */

static int64_t multiplied(int64_t a, int64_t b)
{
    int64_t product;
    return rm_mul_overflows(a, b, &product) ? RM_NO_LIMIT : product;
}

static int64_t end_of(int64_t begin, int64_t length)
{
    int64_t end;
    return rm_add_overflows(begin, length, &end) ? RM_NO_LIMIT : end;
}

/* Who limits the time alone wants all of it used. */
static int64_t first_work_end(const rm_options *o, int64_t default_work)
{
    if (o->work) return multiplied(o->work, RM_WORK_UNIT);
    return o->time_ms ? RM_NO_LIMIT : default_work;
}

void rm_limits_begin(remat_ctx *ctx, int64_t default_work)
{
    assert(ctx->limits.depth == 0);
    const rm_options *o = &ctx->options;
    rm_limit first = {.work_end = first_work_end(o, default_work),
                      .begin_ns = rm_clock_ns(),
                      .end_ns = RM_NO_LIMIT};
    if (o->time_ms) first.end_ns = end_of(first.begin_ns, multiplied(o->time_ms, 1000000));
    ctx->limits = (rm_limits){.depth = 1, .memory_limit = o->memory_bytes};
    ctx->limits.stack[0] = first;
    ctx->heap = (remat_alloc){counted_resize, ctx};
    ctx->bound_cost = REMAT_ABSENT;
}

void rm_limits_widen(remat_ctx *ctx, uint32_t parts)
{
    assert(ctx->limits.depth == 1 && parts > 0);
    rm_limit *l = &ctx->limits.stack[0];
    if (l->work_end != RM_NO_LIMIT) l->work_end = multiplied(l->work_end, parts);
}

void rm_limits_end(remat_ctx *ctx)
{
    assert(ctx->limits.depth == 1);
    ctx->limits.depth = 0;
    ctx->heap = ctx->own_heap;
    atomic_store_explicit(&ctx->stop, false, memory_order_relaxed); /* a stop ends one call */
}

void rm_limits_extend(remat_ctx *ctx, int64_t least_ns)
{
    assert(ctx->limits.depth == 1 && least_ns >= 0);
    rm_limit *l = &ctx->limits.stack[0];
    const int64_t least_end = rm_clock_ns() + least_ns;
    l->work_end = RM_NO_LIMIT;
    if (is_stopped(ctx)) l->end_ns = least_end;
    else if (l->end_ns < least_end) l->end_ns = least_end;
    atomic_store_explicit(&ctx->stop, false, memory_order_relaxed);
}

static int64_t share_of(int64_t left, double share)
{
    return left == RM_NO_LIMIT || share >= 1 ? left : (int64_t)((double)left * share);
}

void rm_limit_push(remat_ctx *ctx, double share, int64_t most_work)
{
    rm_limits *l = &ctx->limits;
    assert(l->depth > 0 && l->depth < RM_LIMIT_DEPTH);
    assert(share >= 0 && most_work >= 0);
    const int64_t work = share_of(rm_work_left(ctx), share);
    const int64_t now_ns = rm_clock_ns(), outer_end_ns = innermost(ctx)->end_ns;
    rm_limit inner = {.work_begin = l->work,
                      .work_end = end_of(l->work, work < most_work ? work : most_work),
                      .begin_ns = now_ns,
                      .end_ns = RM_NO_LIMIT};
    if (outer_end_ns != RM_NO_LIMIT) {
        const int64_t left_ns = outer_end_ns > now_ns ? outer_end_ns - now_ns : 0;
        inner.end_ns = now_ns + share_of(left_ns, share);
    }
    l->stack[l->depth++] = inner;
}

void rm_limit_push_time(remat_ctx *ctx, int64_t spared_ns)
{
    rm_limit_push(ctx, 1, RM_NO_LIMIT);
    rm_limit *inner = &ctx->limits.stack[ctx->limits.depth - 1];
    if (inner->end_ns != RM_NO_LIMIT) inner->end_ns -= spared_ns;
}

static remat_stopped why_over(const remat_ctx *ctx)
{
    const rm_limit *l = innermost(ctx);
    if (is_stopped(ctx)) return REMAT_SIGNAL;
    if (ctx->limits.work >= l->work_end) return REMAT_WORK;
    if (l->end_ns != RM_NO_LIMIT && rm_clock_ns() >= l->end_ns) return REMAT_TIME;
    return REMAT_DONE;
}

/* An inner limit may be over while the one around it is not. */
void rm_limit_pop(remat_ctx *ctx)
{
    assert(ctx->limits.depth > 1);
    ctx->limits.depth--;
    if (ctx->limits.stopped != REMAT_DONE) ctx->limits.stopped = why_over(ctx);
}

void rm_limits_ensure(remat_ctx *ctx, int64_t operations)
{
    const int64_t end = end_of(ctx->limits.work, operations);
    for (uint32_t i = 0; i < ctx->limits.depth; i++)
        if (ctx->limits.stack[i].work_end < end) ctx->limits.stack[i].work_end = end;
}

bool rm_spend(remat_ctx *ctx, int64_t operations)
{
    assert(operations >= 0);
    ctx->limits.work += operations;
    const remat_stopped why = why_over(ctx);
    if (why != REMAT_DONE) ctx->limits.stopped = why;
    return why != REMAT_DONE;
}

bool rm_is_late(const remat_ctx *ctx)
{
    const int64_t end_ns = innermost(ctx)->end_ns;
    return is_stopped(ctx) || (end_ns != RM_NO_LIMIT && rm_clock_ns() >= end_ns);
}

void rm_note_stop(remat_ctx *ctx, remat_stopped why)
{
    if (ctx->limits.stopped == REMAT_DONE) ctx->limits.stopped = why;
}

remat_stopped rm_stopped(const remat_ctx *ctx) { return ctx->limits.stopped; }

int64_t rm_work_left(const remat_ctx *ctx)
{
    const int64_t end = innermost(ctx)->work_end, work = ctx->limits.work;
    if (end == RM_NO_LIMIT) return RM_NO_LIMIT;
    return end > work ? end - work : 0;
}

int64_t rm_time_left(const remat_ctx *ctx)
{
    const int64_t end_ns = innermost(ctx)->end_ns, now_ns = rm_clock_ns();
    if (end_ns == RM_NO_LIMIT) return RM_NO_LIMIT;
    return end_ns > now_ns ? end_ns - now_ns : 0;
}

/* How many operations are left by the limit of work, and by the limit of time. */
static double by_work(const remat_ctx *ctx)
{
    const int64_t work = rm_work_left(ctx);
    return work == RM_NO_LIMIT ? INFINITY : (double)work;
}

static double by_time(const remat_ctx *ctx)
{
    const int64_t ns = rm_time_left(ctx);
    return ns == RM_NO_LIMIT ? INFINITY : (double)ns * 1e-9 * RM_SECOND;
}

double rm_affordable(const remat_ctx *ctx)
{
    return is_stopped(ctx) ? 0 : fmin(by_work(ctx), by_time(ctx));
}

bool rm_can_afford(remat_ctx *ctx, double operations)
{
    if (operations <= rm_affordable(ctx)) return true;
    if (is_stopped(ctx)) ctx->limits.stopped = REMAT_SIGNAL;
    else ctx->limits.stopped = by_work(ctx) < by_time(ctx) ? REMAT_WORK : REMAT_TIME;
    return false;
}

int64_t rm_work_units(const remat_ctx *ctx) { return ctx->limits.work / RM_WORK_UNIT; }

/* ---- progress ---- */

/* 0 where there is no limit. */
static double used_of(int64_t begin, int64_t end, int64_t now)
{
    return end == RM_NO_LIMIT ? 0 : (double)(now - begin) / (double)(end - begin + 1);
}

int rm_permille_used(const remat_ctx *ctx)
{
    const rm_limit *l = ctx->limits.depth ? &ctx->limits.stack[0] : &no_limit;
    const double work = used_of(l->work_begin, l->work_end, ctx->limits.work),
                 time = used_of(l->begin_ns, l->end_ns, rm_clock_ns());
    const double most = work > time ? work : time;
    return most < 1 ? (int)(1000 * most) : 1000;
}

void rm_report(remat_ctx *ctx, const char *strategy, int permille, int64_t cost, int64_t peak_bytes)
{
    if (!ctx->on_progress) return;
    const remat_progress progress = {strategy,
                                     permille >= 0 ? permille : rm_permille_used(ctx),
                                     cost,
                                     peak_bytes,
                                     rm_work_units(ctx),
                                     ctx->bound_cost};
    ctx->on_progress(ctx->progress_user, &progress);
}

/* ---- a thread's part ---- */

rm_quota rm_quota_begin(const remat_ctx *ctx, double share)
{
    return (rm_quota){.ctx = ctx,
                      .most_work = share_of(rm_work_left(ctx), share),
                      .begin_ns = rm_clock_ns(),
                      .most_ns = share_of(rm_time_left(ctx), share)};
}

rm_quota rm_quota_part(const rm_quota *of, double work_share, double time_share)
{
    return (rm_quota){.ctx = of->ctx,
                      .most_work = share_of(of->most_work, work_share),
                      .begin_ns = rm_clock_ns(),
                      .most_ns = share_of(of->most_ns, time_share)};
}

double rm_quota_used(const rm_quota *q)
{
    if (is_stopped(q->ctx)) return 1;
    const double by_work =
        q->most_work == RM_NO_LIMIT ? 0 : (double)q->work / ((double)q->most_work + 1);
    if (q->most_ns == RM_NO_LIMIT) return by_work;
    const double by_time = (double)(rm_clock_ns() - q->begin_ns) / ((double)q->most_ns + 1);
    return by_work > by_time ? by_work : by_time;
}
