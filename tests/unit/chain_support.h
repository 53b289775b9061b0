/* chain_support.h: what the tests of chains share: a context, the toy chain of the Rotor paper, the
 * strategies for chains. */
#ifndef TEST_CHAIN_SUPPORT_H
#define TEST_CHAIN_SUPPORT_H

#include <string.h>

#include "support.h"

/* The strategies that work on chains: those for graphs alone come last. */
static inline const remat_entry *chain_strategy_at(size_t i)
{
    const remat_entry *entry = remat_strategy_at(i);
    return entry && strcmp(entry->name, "save-inputs") != 0 ? entry : NULL;
}

static const remat_stage toy[] = {
    {"", 763, 0, 763, 0, 0, 0, 0, 0},
    {"fc1", 954, 954, 954, 160, 305, 0, 2001, 0},
    {"fc2", 1068, 1068, 1068, 220, 448, 0, 2764, 0},
    {"fc3", 1106, 1108, 1106, 244, 509, 0, 3099, 0},
    {"fc4", 1068, 1066, 1068, 251, 493, 0, 3099, 0}, /* abar < a, as printed */
    {"fc5", 954, 954, 954, 210, 421, 0, 2764, 0},
    {"fc6", 763, 763, 763, 143, 334, 0, 1908, 0},
    {"loss", 0, 0, 0, 0, 0, 0, 0, 0},
};

static remat_ctx *ctx;

static inline int setup(void **state)
{
    (void)state;
    ctx = remat_ctx_new(NULL);
    return ctx ? 0 : -1;
}

static inline int teardown(void **state)
{
    (void)state;
    remat_ctx_free(ctx);
    return 0;
}

static inline remat_chain *toy_chain(void)
{
    remat_chain *chain = NULL;
    OK(ctx, remat_chain_new(ctx, "toy", toy, 6, &chain));
    return chain;
}

static inline remat_verdict judged(const remat_chain *chain, const remat_plan *plan)
{
    remat_verdict v = REMAT_VERDICT_INIT;
    OK(ctx, remat_chain_plan_verify(ctx, chain, plan, &v));
    return v;
}

#endif
