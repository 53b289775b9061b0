/* naive.h: the model of docs/model.md a third time, by the definition and nothing else.
 *
 * Every question is answered by scanning the schedule: "which run made what this step reads?" walks
 * back from the step; "until when is this storage needed?" looks at every read. O(steps * steps),
 * no clever state, no code shared with src/. Tests hold the verifier and the simulator against it.
 */
#ifndef NAIVE_H
#define NAIVE_H

#include "remat.h"

typedef struct naive_op {
    uint32_t n_in, n_out;
    uint32_t *in, *out;
    uint32_t *inplace; /* by output: the input whose storage it may take; REMAT_NONE: none */
    int64_t cost, workspace;
    bool pinned;
} naive_op;

typedef struct naive_value {
    int64_t bytes;     /* of the storage, for values that own one */
    uint32_t root;     /* who owns the storage; itself if no alias */
    uint32_t producer; /* REMAT_NONE: resident */
} naive_value;

typedef struct naive_graph {
    uint32_t n_ops, n_values, n_outputs;
    naive_op *ops;
    naive_value *values;
    uint32_t *outputs;
    int64_t resident_bytes;
} naive_graph;

typedef struct naive_verdict {
    bool valid;
    uint32_t first_bad_step; /* REMAT_NONE if valid, or if an op never runs */
    uint32_t peak_step;      /* the first of them; REMAT_NONE if there are no steps */
    int64_t peak_bytes, cost, host_bytes;
    int64_t *memory; /* by step; NULL unless valid */
} naive_verdict;

naive_graph *naive_from(const remat_graph *graph);
void naive_free(naive_graph *g);
/* `bandwidth`: as the option of that name. Release with naive_release. */
naive_verdict naive_judge(const naive_graph *g, const remat_step *steps, size_t n_steps,
                          int64_t bandwidth);
void naive_release(naive_verdict *verdict);

#endif
