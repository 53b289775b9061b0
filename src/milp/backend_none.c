/* backend_none.c: the backend where there is no solver. It says so, and how to get one. */
#include "milp/backend.h"

remat_status rm_solve_nothing(const rm_backend *backend, remat_ctx *ctx, const rm_model *m,
                              const rm_solve *how, rm_solved *out)
{
    (void)m;
    (void)how;
    (void)out;
    return rm_fail(ctx, REMAT_E_APPLIES, "it needs a MILP solver: %s", backend->path);
}
