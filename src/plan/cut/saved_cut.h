/* saved_cut.h: which storages of some ops to save for the ops that read them, by a minimum cut. */
#ifndef RM_SAVED_CUT_H
#define RM_SAVED_CUT_H

#include "graph/graph.h"

/* What the cuts of one graph share. It is made once, so that a cut among a few ops costs what those
 * ops cost. */
typedef struct rm_cut_space { /* arrays live in scratch */
    remat_ctx *ctx;
    const remat_graph *graph;
    uint8_t *part;       /* by op: inside or outside; all 0 between calls */
    uint32_t *op_vertex; /* by op */
    uint32_t *vertex;    /* by root value; all 0 between calls */
} rm_cut_space;

typedef struct rm_cut_problem {
    /* Ops: V_f of the paper (or kernel A), inputs before users; and those that read it (or kernel
     * B), in any order. */
    const uint32_t *inside, *outside;
    uint32_t n_inside, n_outside;
    /* By op: it must not run again. Pinned ops must be among them. */
    const uint8_t *banned;
    /* By root value: the price of saving it. The paper's price is its bytes, or twice that where it
     * would not be written otherwise. */
    const int64_t *price;
    /* By op: the price of running it again. NULL: nothing, as in the paper. */
    const int64_t *run_again;
} rm_cut_problem;

typedef struct rm_saved {
    uint32_t *values; /* roots, each once; in scratch */
    uint32_t n_values;
    /* REMAT_ABSENT: the limits of the context ended the search. Nothing is saved then. */
    int64_t capacity;
} rm_saved;

remat_status rm_cut_space_new(remat_ctx *ctx, const remat_graph *g, rm_cut_space *out);

/* The cheapest set of storages from which `outside` can be computed without running a banned op
 * again. Among the cheapest sets it is the one nearest to `outside`. Storages that `inside` reads
 * but does not make are its inputs. They may be saved, too. Needs limits (rm_limits_begin).
 * REMAT_E_APPLIES: the prices pass 2^62. */
remat_status rm_saved_cut(rm_cut_space *space, const rm_cut_problem *problem, rm_saved *out);

#endif
