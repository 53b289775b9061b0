/* clock.h: what the benchmarks in C share. */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <stdio.h>
#include <time.h>

#include "remat.h"

static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline int fail(const remat_ctx *ctx, remat_status status)
{
    fprintf(stderr, "%s\n", remat_ctx_error(ctx));
    return (int)status;
}

#endif
