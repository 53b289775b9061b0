/* rotor.h: what the two forms of Rotor's persistent recurrence share: memory thresholds, and how a
 * schedule is read off a table. */
#ifndef RM_ROTOR_H
#define RM_ROTOR_H

#include "plan/planner.h"

/* Theorem 4.8, in bytes of memory that is available besides a^(s-1). Tables by s * (n + 1) + t, 1
 * <= s <= t <= n = L + 1. keep bytes count in: while stages up to t are still to be run backward,
 * all their keeps are there; in the first pass, those of the stages forwarded so far. */
typedef struct rm_rotor_needs {
    uint32_t n;
    int64_t
        *forward; /* m_none^{s,t}: to run F^s .. F^(t-1) holding nothing but a^(s-1) and delta^t */
    int64_t *all; /* m_all^{s,t}: to run Fall^s with delta^t stored, and B^s */
} rm_rotor_needs;

remat_status rm_rotor_needs_find(remat_ctx *ctx, const remat_chain *c, rm_rotor_needs *out);
static inline size_t rm_rotor_at(uint32_t n, uint32_t s, uint32_t t)
{
    return (size_t)s * (n + 1) + t;
}

/* A table that can say how it reaches its value: `split` is s' of C_ck, or 0 for C_all (also if s =
 * t). */
typedef struct rm_rotor_table {
    uint32_t n;
    const void *table;
    uint32_t (*split)(const void *table, uint32_t s, uint32_t t, int64_t m);
    int64_t (*a)(const void *table, uint32_t l); /* in the table's unit of memory */
    int64_t (*abar)(const void *table, uint32_t l);
} rm_rotor_table;

/* Algorithm 4, without recursion. C(1, n, m) is finite. */
remat_status rm_rotor_trace(remat_ctx *ctx, const rm_rotor_table *t, int64_t m, rm_schedule *out);

/* Exact, without slots (rotor_exact.c): answers every budget of the problem. */
remat_status rm_rotor_exact(const rm_chain_problem *p, bool save_all, rm_chain_result *results);

#endif
