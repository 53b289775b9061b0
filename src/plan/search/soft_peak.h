/* soft_peak.h: a smooth replacement for the peak of a sequence: log-add-exp of its memory. */
#ifndef RM_SOFT_PEAK_H
#define RM_SOFT_PEAK_H

#include "sim/sequence.h"

typedef struct rm_soft_peak {
    double scale; /* exponent per byte: the largest storage is 10 ln 2 */
    /* By block of slots: the log of the sum of exp(scale * memory) over its steps. `kept` is
     * without the move at hand, `sums` with it. */
    double *kept, *sums;
    uint32_t n_blocks;
} rm_soft_peak; /* sums NULL: not in use */

remat_status rm_soft_peak_new(remat_ctx *ctx, const rm_seq *q, rm_soft_peak *out);
void rm_soft_peak_free(const remat_alloc *heap, rm_soft_peak *s);
void rm_soft_peak_load(rm_soft_peak *s, rm_seq *q); /* between moves: of the whole sequence */
/* In bytes, with the move at hand, which is flushed for it. */
double rm_soft_peak_look(rm_soft_peak *s, rm_seq *q);
void rm_soft_peak_keep(rm_soft_peak *s); /* the move that was looked at is kept */
double rm_soft_peak_now(const rm_soft_peak *s, const rm_seq *q); /* in bytes, without a move */

#endif
