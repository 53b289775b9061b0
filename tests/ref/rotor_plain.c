/* rotor_plain.c: the full table of Theorem 4.8, cell by cell, memory innermost. Nothing here knows
 * src/. */
#include "rotor_plain.h"

#include <math.h>
#include <stdlib.h>

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* More than all slots is one more than all. */
static uint32_t up(int64_t bytes, int64_t budget, uint32_t slots)
{
    const int64_t x = (bytes * slots + budget - 1) / budget;
    return x > slots ? slots + 1 : (uint32_t)x;
}

static void relax(float *restrict to, const float *restrict right, const float *restrict left,
                  float plus, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const float x = right[i] + left[i] + plus;
        to[i] = x < to[i] ? x : to[i];
    }
}

double rotor_plain(const remat_stage *stages, uint32_t n_stages, int64_t budget, uint32_t slots)
{
    const uint32_t n = n_stages + 1, width = slots + 1;
    float *table = malloc((size_t)(n + 1) * (n + 1) * width * sizeof *table);
    if (!table) abort();
#define CELL(s, t) (table + ((size_t)(s) * (n + 1) + (t)) * width)
    for (uint32_t t = 1; t <= n; t++)
        for (uint32_t s = t; s >= 1; s--) {
            const remat_stage *x = &stages[s], *y = &stages[t];
            float *here = CELL(s, t);
            int64_t widest = 0;
            for (uint32_t j = s; j < t; j++)
                widest = most(widest, stages[j].a + stages[j].of + (j > s ? stages[j - 1].a : 0));
            const uint32_t need_forward = up(y->delta + widest, budget, slots);
            const uint32_t need_all =
                up(most(y->delta + x->abar + x->of, x->delta + x[-1].delta + x->abar + x->ob),
                   budget, slots);
            const uint32_t abar = up(x->abar, budget, slots);
            for (uint32_t m = 0; m < width; m++) here[m] = INFINITY;
            for (uint32_t m = need_all; m < width; m++)
                if (s == t) here[m] = (float)(x->tf + x->tb);
                else if (m >= abar) here[m] = (float)(x->tf + x->tb) + CELL(s + 1, t)[m - abar];
            float time = 0;
            for (uint32_t k = s + 1; k <= t; k++) { /* a^(k-1) is kept */
                const uint32_t a = up(stages[k - 1].a, budget, slots),
                               from = a > need_forward ? a : need_forward;
                time += (float)stages[k - 1].tf;
                if (from < width)
                    relax(here + from, CELL(k, t) + (from - a), CELL(s, k - 1) + from, time,
                          width - from);
            }
        }
    const uint32_t first = up(stages[0].a, budget, slots);
    const float cost = first < width ? CELL(1, n)[slots - first] : INFINITY;
#undef CELL
    free(table);
    return cost < INFINITY ? (double)cost : -1;
}
