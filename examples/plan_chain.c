/* plan_chain.c: a chain of stages built in C, and its best schedules within a few budgets.
 *
 *     cc plan_chain.c $(pkg-config --cflags --libs remat) -o plan_chain */
#include <inttypes.h>
#include <stdio.h>

#define REMAT_EXPERIMENTAL /* chains */
#include <remat.h>

int main(void)
{
    enum { L = 5 }; /* stages; entry 0 is the input, L + 1 the loss */
    remat_stage stages[L + 2] = {{.a = 1, .delta = 1}};
    for (int l = 1; l <= L; l++)
        stages[l] = (remat_stage){.a = 1, .abar = 2, .delta = 1, .tf = 1, .tb = 2};

    static const char *const names[] = {
        [REMAT_F_ALL] = "Fall", [REMAT_F_CK] = "Fck", [REMAT_F_NONE] = "Fnone", [REMAT_B] = "B"};
    const int64_t budgets[] = {6, 7, 10, 13};
    remat_plan *plans[4] = {NULL};
    remat_chain *chain = NULL;
    remat_ctx *ctx = remat_ctx_new(NULL);
    if (!ctx) return REMAT_E_MEMORY;
    remat_status status = remat_chain_new(ctx, "five", stages, L, &chain);
    if (status == REMAT_OK) status = remat_ctx_set(ctx, "slots", 0); /* exact */
    if (status == REMAT_OK) status = remat_chain_plans(ctx, chain, "rotor", budgets, 4, plans);
    if (status != REMAT_OK) fprintf(stderr, "%s\n", remat_ctx_error(ctx));
    for (int i = 0; i < 4 && status == REMAT_OK; i++) {
        size_t n_steps;
        const remat_step *steps = remat_plan_steps(plans[i], &n_steps);
        printf("budget %2" PRId64 ", cost %" PRId64 ":", budgets[i],
               remat_plan_summary(plans[i])->cost);
        for (size_t t = 0; t < n_steps; t++)
            printf(" %s%" PRIu32, names[steps[t].kind], steps[t].index);
        printf("\n");
    }
    for (int i = 0; i < 4; i++) remat_plan_free(plans[i]);
    remat_chain_free(chain);
    remat_ctx_free(ctx);
    return (int)status;
}
