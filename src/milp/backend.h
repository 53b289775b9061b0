/* backend.h: who solves a mixed integer linear program: HiGHS, if it is found when the program
 * runs, else nobody. */
#ifndef RM_BACKEND_H
#define RM_BACKEND_H

#include "milp/model.h"

typedef struct rm_solve {
    bool relax;          /* the linear relaxation: nothing in x need be an integer */
    double gap;          /* stop when the best is proved to be this near to the optimum */
    const double *start; /* a feasible x to begin with, or NULL */
    int64_t threads;
    /* Called with each better x of integers, and every now and then with x NULL. `bound` is the
     * best lower limit on the objective so far. Anything but REMAT_OK ends the solve with that
     * status. The backend itself looks at the limits of the context. */
    remat_status (*on_progress)(void *user, const double *x, double bound);
    void *user;
} rm_solve;

typedef enum rm_solve_outcome {
    RM_SOLVE_STOPPED = 0,
    RM_SOLVE_OPTIMAL = 1,
    RM_SOLVE_INFEASIBLE = 2,
    /* Out of memory, or a fault of its own. There was a warning. Trying again is of no use. */
    RM_SOLVE_FAILED = 3
} rm_solve_outcome;

typedef struct rm_solved {
    rm_solve_outcome outcome;
    bool any;                /* x and objective are there */
    double *x;               /* in scratch */
    double objective, bound; /* bound: -INFINITY if nothing is proved */
} rm_solved;

typedef struct rm_backend {
    char version[32]; /* "": there is no solver */
    char path[512];   /* where it is, or why there is none */
    remat_status (*solve)(const struct rm_backend *backend, remat_ctx *ctx, const rm_model *m,
                          const rm_solve *how, rm_solved *out);
    void *library; /* backend_highs.c */
    const void *calls;
} rm_backend;

/* Finds a solver. Where there is none, the backend's solve answers REMAT_E_APPLIES and says how to
 * get one. */
remat_status rm_backend_open(remat_ctx *ctx, rm_backend *out);
void rm_backend_close(remat_ctx *ctx, rm_backend *backend);

/* solve_in_child.c: backend->solve in a process of its own. A full memory, Ctrl-C or a passed
 * deadline ends that process without harm to this one. */
remat_status rm_solve_in_child(const rm_backend *backend, remat_ctx *ctx, const rm_model *m,
                               const rm_solve *how, rm_solved *out);

/* backend_none.c */
remat_status rm_solve_nothing(const rm_backend *backend, remat_ctx *ctx, const rm_model *m,
                              const rm_solve *how, rm_solved *out);

#endif
