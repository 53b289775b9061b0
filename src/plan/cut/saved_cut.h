/* saved_cut.h: which storages of a set of ops to save for the ops that read them, by a minimum cut.
 */
#ifndef RM_SAVED_CUT_H
#define RM_SAVED_CUT_H

#include "graph/graph.h"

/* What the cuts of one graph share; made once, so that a cut among a few ops costs what those ops
 * cost. */
typedef struct rm_cut_space { /* arrays live in scratch */
    remat_ctx *ctx;
    const remat_graph *graph;
    uint8_t *part;       /* by op: inside or outside; all 0 between calls */
    uint32_t *op_vertex; /* by op */
    uint32_t *vertex;    /* by root value; all 0 between calls */
} rm_cut_space;

typedef struct rm_cut_problem {
    const uint32_t *inside, *outside; /* ops, ascending: V_f of the paper (or group A), and those
                                         that read it (or group B) */
    uint32_t n_inside, n_outside;
    const uint8_t *banned; /* by op: must not run again; pinned ops must be among them */
    const int64_t *price;  /* by root value: of saving it; the paper's is its bytes, twice where it
                              would not be written otherwise */
    const int64_t *run_again; /* by op: price of running it again; NULL: nothing (the paper) */
} rm_cut_problem;

typedef struct rm_saved {
    uint32_t *values; /* roots, each once; in scratch */
    uint32_t n_values;
    int64_t capacity; /* REMAT_ABSENT: the limits of the context ended the search; nothing is saved
                         then */
} rm_saved;

remat_status rm_cut_space_new(remat_ctx *ctx, const remat_graph *g, rm_cut_space *out);
/* The cheapest set of storages from which `outside` can be computed without running a banned op
 * again; among the cheapest sets the one nearest to `outside`. Storages that `inside` reads but
 * does not make are its inputs: they may be saved, too. Needs limits (rm_limits_begin).
 * REMAT_E_APPLIES: the prices pass 2^62. */
remat_status rm_saved_cut(rm_cut_space *space, const rm_cut_problem *problem, rm_saved *out);

#endif
