/* checkpoint_rules.c: which of n candidates along the forward pass become checkpoints.
 *
 * - sqrt (Chen et al. 2016, as in Checkmate, section 5.1): every floor(sqrt(n))-th candidate.
 * - greedy: walks the candidates and adds up the bytes made on the way. Where the sum exceeds b, it
 *   puts a checkpoint and starts again from 0. The papers do not say which b. We try 64, from the
 *   sum of all bytes down by a fifth each time, and 0 as the last.
 * - periodic (Rotor, section 5.4): s segments of floor(n/s) of the n stages. The last one takes the
 *   rest. s = 2 .. 2 sqrt(n).
 * They are used on chains (segments.c) and on graphs (checkmate_baselines.c).
 *
 * A set costs O(n), and whatever trying it costs. */
#include "plan/chains/checkpoint_rules.h"

#include <assert.h>
#include <string.h>

static uint32_t floor_sqrt(uint32_t n)
{
    uint32_t r = 0;
    while ((uint64_t)(r + 1) * (r + 1) <= n) r++;
    return r;
}

static void choose_every(const rm_checkpoint_question *x, uint32_t stride, uint32_t most)
{
    assert(stride > 0);
    memset(x->chosen, 0, x->n);
    for (uint32_t i = stride - 1, n = 0; i < x->n && n < most; i += stride, n++) x->chosen[i] = 1;
}

remat_status rm_checkpoint_sqrt(const rm_checkpoint_question *x)
{
    choose_every(x, floor_sqrt(x->n), UINT32_MAX);
    return x->try(x->user);
}

remat_status rm_checkpoint_periodic(const rm_checkpoint_question *x)
{
    uint32_t most = 1;
    while ((uint64_t)(most + 1) * (most + 1) <= (uint64_t)4 * x->n && most + 1 <= x->n) most++;
    for (uint32_t n = most < 2 ? 1 : 2; n <= most && !rm_is_over(x->ctx); n++) {
        choose_every(x, x->n / n, n - 1);
        TRY(x->try(x->user));
        rm_report(x->ctx, x->strategy, (int)(1000 * n / most), REMAT_ABSENT, REMAT_ABSENT);
    }
    return REMAT_OK;
}

static void choose_greedily(const rm_checkpoint_question *x, int64_t limit)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < x->n; i++) {
        sum += x->bytes[i];
        x->chosen[i] = sum > limit;
        if (x->chosen[i]) sum = 0;
    }
}

remat_status rm_checkpoint_greedy(const rm_checkpoint_question *x)
{
    enum { TRIES = 64 };
    uint8_t *before; /* the last answer tried */
    int64_t limit = 0;
    TRY(RM_SCRATCH(x->ctx, before, x->n));
    for (uint32_t i = 0; i < x->n; i++) limit += x->bytes[i];
    for (int i = 0; i < TRIES && !rm_is_over(x->ctx); i++) {
        choose_greedily(x, limit);
        limit = i + 2 < TRIES ? limit - limit / 5 : 0;
        if (i && memcmp(before, x->chosen, x->n) == 0) continue;
        memcpy(before, x->chosen, x->n);
        TRY(x->try(x->user));
        rm_report(x->ctx, x->strategy, 1000 * (i + 1) / TRIES, REMAT_ABSENT, REMAT_ABSENT);
    }
    return REMAT_OK;
}
