/* court.h: what verify_gaps.c and verify_bound.c share: the gaps that a certificate is about, and
 * the room they have. */
#ifndef RM_COURT_H
#define RM_COURT_H

#include "verify/verify.h"

typedef struct rm_court_gap {
    uint32_t root;     /* value that owns the storage */
    uint32_t from, to; /* positions; the room is used at from < t < to */
    uint32_t due;      /* if it is lost, its op runs again by this position */
    rm_uint128 left;   /* of what its prices ask for, in cost units / scale */
} rm_court_gap;

typedef struct rm_court_list { /* CSR */
    uint32_t *begin, *items;
} rm_court_list;

typedef struct rm_court {
    remat_ctx *ctx;
    const remat_graph *g;
    const rm_bound_case *question;
    const rm_certificate *certificate;
    remat_verdict *verdict;
    uint32_t n;         /* positions */
    uint32_t *op_at;    /* by position */
    uint32_t *position; /* by op; REMAT_NONE: it has none */
    uint32_t *charged;  /* ops in the order in which they give, the last first */
    uint32_t n_charged;
    int64_t *held;         /* by position: how the bytes kept for pinned ops change there */
    int64_t *room;         /* by position: what is left of the budget there */
    int64_t *price_before; /* by position: sum of the prices before it */
    /* By root value: the last position that touches it. On a path, also one that a gap of it
     * covers; 0 if there is neither. */
    uint32_t *last_touch;
    uint8_t *is_output; /* by root value */
    uint32_t *in_place; /* by root value: 1 + the last position that may make an output there */
    RM_VEC(rm_court_gap) gaps;
    /* By root value: what can stand in for it, in the order in which the graph makes them. */
    rm_court_list stand_ins;
    uint32_t *charge_begin;      /* by gap: of its part of charges */
    RM_VEC(uint32_t) charges;    /* by gap: the ops that run again if it is lost */
    uint32_t *start_begin;       /* by op: of its part of by_start and by_end */
    uint32_t *by_start, *by_end; /* by op: the gaps that charge it, in two orders */
    rm_uint128 proved;           /* so far, in cost units / scale */
    uint64_t work;               /* that stand-ins took */
} rm_court;

/* Positions, gaps and room: of the order of the question's steps, or of the path that the
 * certificate has prices for. Where that is no path, the verdict says so. Outputs and stand-ins
 * must be known. */
remat_status rm_court_find_gaps(rm_court *c);

/* verify_walls.c: what the prices of a certificate of walls prove. Outputs must be known. */
remat_status rm_court_prove_walls(rm_court *c);

/* Stand-ins may take that many times what the graph and its gaps do. */
enum { RM_COURT_WORK = 64 };
/* False: they took more, and the verdict says so. */
bool rm_court_has_time(const rm_court *c);

/* A view that costs nothing may run anywhere: it is no position. */
bool rm_court_is_free_view(const remat_graph *g, uint32_t op);

static inline void raise_to(uint32_t *x, uint32_t least)
{
    if (*x < least) *x = least;
}

static inline void lower_to(uint32_t *x, uint32_t most)
{
    if (*x > most) *x = most;
}

/* Is the storage made by an op, so that it can leave memory? */
static inline bool rm_court_is_movable(const remat_graph *g, uint32_t root)
{
    return g->producer[root] != REMAT_NONE;
}

#endif
