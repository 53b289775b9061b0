/* walls.h: what prices of memory at some gates prove, for one order of first runs or for all. */
#ifndef RM_WALLS_H
#define RM_WALLS_H

#include "plan/bound/gaps.h"

enum { RM_MOST_GATES = 24 };
#define RM_MOST_AMOUNT ((int64_t)1 << 60) /* that a way takes, in cost units / scale */
/* Of a byte, in cost units / scale. The prices of all gates sum up to less than 2^62, or the
 * verifier would refuse them. */
#define RM_MOST_PRICE ((int64_t)1 << 57)

typedef struct rm_gate {
    uint32_t position;
    int64_t price; /* of a byte, in cost units / scale: 1 .. RM_MOST_PRICE */
} rm_gate;

typedef struct rm_way { /* into a wall */
    int64_t *left;
    uint32_t from; /* the spot before the gate; or op and turn */
    bool is_run;
} rm_way;

typedef struct rm_walls { /* arrays live in scratch */
    remat_ctx *ctx;
    const rm_normal *nm;
    int64_t budget_bytes;
    const uint32_t *order;       /* the normal graph's ops by first run; NULL: every order */
    rm_gaps gs;                  /* its positions; what is needed and in memory there */
    uint32_t *earliest, *latest; /* by op: positions of its first run */
    uint32_t *rank;              /* by op: place in the order */
    int64_t *room;               /* by position */
    int64_t scale;
    int64_t work, most_work; /* operations: so far; from then on no wall is raised */
    /* Of the gates at hand: */
    const rm_gate *gates;
    uint32_t n_turns;
    unsigned shift;         /* 2^shift turns have room in a row of spots */
    uint8_t *touched;       /* by storage: 1 + the gate that touched it last, or 0 */
    uint32_t *gates_before; /* by position */
    uint32_t *first, *last; /* by op: turns of its first run */
    int64_t *keep, *run;    /* by spot, by op and turn: what is left of them */
    uint32_t *missing;      /* by op and turn: inputs that are not there */
    uint8_t *there;         /* by spot: it can be had for nothing more */
    /* By spot: the last wall that has it. By op and turn: the last wall to which it is a way; of
     * which it reads something. */
    uint32_t *wall_stamp, *op_stamp, *read_stamp, stamp;
    uint32_t *wall, *stack, n_wall, n_seen; /* spots; those whose ways are listed */
    bool breached;                          /* something in the wall is there now */
    rm_way *ways;
    size_t n_ways;
    rm_uint128 sum; /* of all amounts */
} rm_walls;

/* Is there work for so many trials, and is no number too large? */
bool rm_walls_apply(const rm_normal *nm, int64_t most_work, uint32_t trials);
remat_status rm_walls_begin(remat_ctx *ctx, const rm_normal *nm, int64_t budget_bytes,
                            const uint32_t *order, rm_walls *out);
/* What re-runs cost at least, in cost units; 0 and less: the prices prove nothing. Gates are
 * ascending, at most RM_MOST_GATES, and where there is room. With too little work they prove
 * nothing: the verifier would take as long. */
double rm_walls_prove(rm_walls *w, const rm_gate *gates, uint32_t n);

#endif
