/* run.h: a plan over one arena, ready to run.
 *
 * All that a step needs is found when the run is made: which operands lie where. Pointers follow
 * from that once the arena is known. So a step is one call. */
#ifndef RM_RUN_H
#define RM_RUN_H

#include "base/base.h"

typedef struct rm_run_step {
    remat_step step;
    size_t in, out; /* its operands: in .. in + n_in, out .. out + n_out */
    uint32_t n_in, n_out;
    int64_t workspace, workspace_bytes; /* offset, or REMAT_ABSENT */
    int64_t bytes;                      /* of a transfer */
    size_t first, end;                  /* its statements in the program */
} rm_run_step;

/* Where an operand lies: an offset in the arena, or ~slot of a resident storage. */
typedef int64_t rm_where;

typedef struct rm_register { /* for poison */
    int64_t offset, bytes;
    uint64_t sum;   /* of its bytes, while it is alive */
    size_t made_by; /* the step that made what is in it */
} rm_register;

struct remat_run {
    remat_alloc heap;
    rm_arena memory; /* holds all arrays below, and this struct does not move */
    remat_program *program;
    remat_placement *placement;
    size_t n_steps, n_operands, n_outputs;
    uint32_t n_values, n_residents, n_regs;
    rm_run_step *steps;
    rm_where *where; /* by operand; those of the graph's outputs are the last */
    void **pointers; /* by operand */
    uint32_t *slot;  /* by value of the original graph: of its resident storage, or REMAT_NONE */
    uint32_t *needed_by; /* by slot: a step that reads it, or REMAT_NONE */
    void **residents;    /* by slot */
    char *arena;
    bool is_resolved; /* pointers are up to date */
    unsigned modes;
    int64_t high_water;
    /* For poison. */
    rm_register *registers;
    uint32_t *alive; /* registers by offset */
    uint32_t n_alive;
    /* For traces: begin and end of each step, in ns. */
    int64_t *times;
    size_t n_timed;
};

/* run.c */
remat_status rm_run_all(remat_ctx *ctx, remat_run *run, const remat_hooks *hooks);
/* poison.c. Before the first step; around each step. */
void rm_poison_begin(remat_run *run);
void rm_poison_before(remat_run *run, size_t step);
remat_status rm_poison_after(remat_ctx *ctx, remat_run *run, size_t step);

#endif
