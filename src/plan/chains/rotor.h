/* rotor.h: what the forms of Rotor's recurrences share: memory thresholds, and how a schedule is
 * read off a table. */
#ifndef RM_ROTOR_H
#define RM_ROTOR_H

#include "plan/planner.h"

/* The thresholds of Theorem 4.8, in bytes of memory that is available besides a^(s-1). Both tables
 * go by rm_rotor_at(n, s, t), 1 <= s <= t <= n = L + 1. keep bytes count in. While stages up to t
 * are still to be run backward, all their keeps are there. In the first pass there are those of
 * the stages forwarded so far. */
typedef struct rm_rotor_needs {
    uint32_t n;
    /* m_none^{s,t}: to run F^s .. F^(t-1) holding nothing but a^(s-1) and delta^t. */
    int64_t *forward;
    /* m_all^{s,t}: to run Fall^s with delta^t stored, and B^s. */
    int64_t *all;
} rm_rotor_needs;

remat_status rm_rotor_needs_find(remat_ctx *ctx, const remat_chain *c, rm_rotor_needs *out);

static inline size_t rm_rotor_at(uint32_t n, uint32_t s, uint32_t t)
{
    return (size_t)s * (n + 1) + t;
}

/* A table that can say how it reaches its value. `split` is s' of C_ck, or 0 for C_all. It is 0 if
 * s = t. */
typedef struct rm_rotor_table {
    uint32_t n;
    const void *table;
    uint32_t (*split)(const void *table, uint32_t s, uint32_t t, int64_t m);
    int64_t (*a)(const void *table, uint32_t l); /* in the table's unit of memory */
    int64_t (*abar)(const void *table, uint32_t l);
} rm_rotor_table;

/* Appends the schedule of C(1, n, m), which must be finite: Algorithm 4, without recursion. */
remat_status rm_rotor_trace(remat_ctx *ctx, const rm_rotor_table *t, int64_t m, rm_schedule *out);

/* The recurrence in slots (rotor_slots.c), and exactly (rotor_exact.c). save_all: rotor, not
 * revolve. Both answer every budget of the problem. */
remat_status rm_rotor_slots(const rm_chain_problem *p, bool save_all, rm_chain_result *results);
/* *done: it did not end early. It does where it would take more operations than most_work. */
remat_status rm_rotor_exact(const rm_chain_problem *p, bool save_all, int64_t most_work,
                            rm_chain_result *results, bool *done);

#endif
