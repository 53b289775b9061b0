/* random.h: the one generator of random numbers, splitmix64 (Steele, Lea, Flood 2014). It is small
 * and fast, and a seed means the same on every machine. */
#ifndef RM_RANDOM_H
#define RM_RANDOM_H

#include <assert.h>
#include <stdint.h>

typedef struct rm_random {
    uint64_t state;
} rm_random;

static inline uint64_t rm_random_next(rm_random *r)
{
    uint64_t x = r->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* 32 random bits as a number below n (0 for n = 0). Nearly uniform, without a division. */
static inline uint32_t rm_scale(uint32_t bits, uint32_t n)
{
    return (uint32_t)((uint64_t)bits * n >> 32);
}
static inline uint32_t rm_random_below(rm_random *r, uint32_t n)
{
    return rm_scale((uint32_t)(rm_random_next(r) >> 32), n);
}
/* low <= answer <= high. For ranges below 2^32 the remainder's bias is below 2^-32. */
static inline int64_t rm_random_between(rm_random *r, int64_t low, int64_t high)
{
    assert(low <= high);
    return low + (int64_t)(rm_random_next(r) % (uint64_t)(high - low + 1));
}
/* 0 <= answer < 1. */
static inline double rm_random_unit(rm_random *r)
{
    return (double)(rm_random_next(r) >> 11) * 0x1p-53;
}

#endif
