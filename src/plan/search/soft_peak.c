/* soft_peak.c: FastSA's log-add-exp variant of the peak (C.2).
 *
 * Problem: where several peaks are nearly equal, lowering the second highest does not change the
 * maximum. It does change log(sum of exp(memory)), so annealing feels it.
 *
 * Method: as in the paper, sizes are scaled so that the largest storage is 10, the base is 2, and
 * empty slots do not count. There is one number per block of 64 slots. A range that covers a block
 * adds to its number. A block in which a range ends is summed anew from its steps. Doubles only
 * weigh: the integer peak decides whether a plan fits.
 *
 * Cost: O(64 * ends of ranges + slots / 64) exponentials a move. That is some ten times slower than
 * the plain peak. */
#include "plan/search/soft_peak.h"

#include <string.h>

#include "base/exp_log.h"

enum { BLOCK = RM_PROFILE_BLOCK };
static const double nothing = -1e300; /* log 0 */

remat_status rm_soft_peak_new(remat_ctx *ctx, const rm_seq *q, rm_soft_peak *out)
{
    int64_t largest = 1;
    for (uint32_t s = 0; s < q->nm->n_stores; s++)
        largest = q->nm->bytes[s] > largest ? q->nm->bytes[s] : largest;
    out->n_blocks = q->memory.n_blocks;
    out->scale = 10 * 0.6931471805599453 / (double)largest;
    out->kept = rm_alloc(ctx, 2 * (size_t)out->n_blocks * sizeof *out->kept);
    out->sums = out->kept ? out->kept + out->n_blocks : NULL;
    return out->kept ? REMAT_OK : REMAT_E_MEMORY;
}

void rm_soft_peak_free(const remat_alloc *heap, rm_soft_peak *s)
{
    if (s->kept) rm_release(heap, s->kept, 2 * (size_t)s->n_blocks * sizeof *s->kept);
    *s = (rm_soft_peak){0};
}

static double log_sum(const double *x, uint32_t n)
{
    double most = nothing, sum = 0;
    for (uint32_t i = 0; i < n; i++) most = x[i] > most ? x[i] : most;
    if (most == nothing) return nothing;
    for (uint32_t i = 0; i < n; i++) sum += rm_exp(x[i] - most);
    return most + rm_log(sum);
}

static double sum_block(const rm_soft_peak *s, const rm_seq *q, uint32_t b)
{
    double x[BLOCK];
    uint32_t n = 0;
    for (uint32_t slot = b * BLOCK; slot < (b + 1) * BLOCK && slot < q->n_slots; slot++)
        if (q->at[slot] != RM_EMPTY) x[n++] = s->scale * (double)rm_profile_at(&q->memory, slot);
    return log_sum(x, n);
}

void rm_soft_peak_load(rm_soft_peak *s, rm_seq *q)
{
    for (uint32_t b = 0; b < s->n_blocks; b++) s->kept[b] = sum_block(s, q, b);
}

static double in_bytes(const rm_soft_peak *s, const rm_seq *q, const double *sums)
{
    return (double)q->nm->resident_bytes + log_sum(sums, s->n_blocks) / s->scale;
}

double rm_soft_peak_look(rm_soft_peak *s, rm_seq *q)
{
    rm_seq_flush(q);
    memcpy(s->sums, s->kept, s->n_blocks * sizeof *s->sums);
    for (size_t i = 0; i < q->n_ranges; i++) {
        const rm_range *r = &q->ranges[i];
        for (uint32_t b = r->first / BLOCK + 1; b < r->last / BLOCK; b++)
            if (s->sums[b] != nothing) s->sums[b] += s->scale * (double)r->delta;
    }
    for (size_t i = 0; i < 2 * q->n_ranges; i++) {
        const uint32_t b = (i % 2 ? q->ranges[i / 2].first : q->ranges[i / 2].last) / BLOCK;
        s->sums[b] = sum_block(s, q, b);
    }
    for (size_t i = 0; i < 2 * q->n_edits; i++) {
        const uint32_t slot = i % 2 ? q->edits[i / 2].from : q->edits[i / 2].to;
        if (slot != RM_EMPTY) s->sums[slot / BLOCK] = sum_block(s, q, slot / BLOCK);
    }
    return in_bytes(s, q, s->sums);
}

void rm_soft_peak_keep(rm_soft_peak *s) { memcpy(s->kept, s->sums, s->n_blocks * sizeof *s->kept); }
double rm_soft_peak_now(const rm_soft_peak *s, const rm_seq *q) { return in_bytes(s, q, s->kept); }
