/* bits.h: sets of small numbers as words of bits, and rows of such sets. */
#ifndef RM_BITS_H
#define RM_BITS_H

#include <assert.h>
#include <string.h>

#include "base/base.h"

/* Words that a set of numbers below n takes. */
static inline size_t rm_bit_words(size_t n) { return n / 64 + 1; }
static inline bool rm_has_bit(const uint64_t *set, size_t i) { return set[i / 64] >> i % 64 & 1; }
static inline void rm_add_bit(uint64_t *set, size_t i) { set[i / 64] |= (uint64_t)1 << i % 64; }
static inline void rm_drop_bit(uint64_t *set, size_t i) { set[i / 64] &= ~((uint64_t)1 << i % 64); }

typedef struct rm_bits { /* each row is a set */
    uint64_t *words;     /* in scratch */
    size_t n_rows;
    size_t stride; /* words a row */
} rm_bits;

static inline remat_status rm_bits_new(remat_ctx *ctx, rm_bits *b, size_t n_rows, size_t n_columns)
{
    b->n_rows = n_rows;
    b->stride = rm_bit_words(n_columns);
    return RM_SCRATCH(ctx, b->words, n_rows * b->stride);
}

static inline uint64_t *rm_bits_row(const rm_bits *b, size_t row)
{
    return b->words + row * b->stride;
}
static inline bool rm_bit(const rm_bits *b, size_t row, size_t column)
{
    return rm_has_bit(rm_bits_row(b, row), column);
}
static inline void rm_bit_set(rm_bits *b, size_t row, size_t column)
{
    rm_add_bit(rm_bits_row(b, row), column);
}
static inline void rm_bit_clear(rm_bits *b, size_t row, size_t column)
{
    rm_drop_bit(rm_bits_row(b, row), column);
}
static inline void rm_bits_empty_row(rm_bits *b, size_t row)
{
    memset(rm_bits_row(b, row), 0, b->stride * sizeof *b->words);
}
static inline void rm_bits_empty(rm_bits *b)
{
    memset(b->words, 0, b->n_rows * b->stride * sizeof *b->words);
}
static inline void rm_bits_copy(rm_bits *to, const rm_bits *from)
{
    assert(to->n_rows == from->n_rows && to->stride == from->stride);
    memcpy(to->words, from->words, from->n_rows * from->stride * sizeof *from->words);
}

#endif
