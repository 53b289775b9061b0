/* bits.h: rows of bits. */
#ifndef RM_BITS_H
#define RM_BITS_H

#include "base/base.h"

typedef struct rm_bits {
    uint64_t *words; /* in scratch */
    size_t stride;   /* words a row */
} rm_bits;

static inline remat_status rm_bits_new(remat_ctx *ctx, rm_bits *b, size_t n_rows, size_t n_columns)
{
    b->stride = n_columns / 64 + 1;
    return RM_SCRATCH(ctx, b->words, n_rows * b->stride);
}

static inline bool rm_bit(const rm_bits *b, size_t row, size_t column)
{
    return b->words[row * b->stride + column / 64] >> column % 64 & 1;
}

static inline void rm_bit_set(rm_bits *b, size_t row, size_t column)
{
    b->words[row * b->stride + column / 64] |= (uint64_t)1 << column % 64;
}

static inline void rm_bit_clear(rm_bits *b, size_t row, size_t column)
{
    b->words[row * b->stride + column / 64] &= ~((uint64_t)1 << column % 64);
}

#endif
