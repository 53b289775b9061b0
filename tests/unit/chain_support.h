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
    remat_input *input = NULL;
    remat_chain *chain = NULL;
    OK(ctx, remat_input_open(ctx, "chain:toy", &input));
    OK(ctx, remat_chain_read(ctx, input, &chain));
    remat_input_free(input);
    return chain;
}

static inline remat_verdict judged(const remat_chain *chain, const remat_plan *plan)
{
    remat_verdict v = REMAT_VERDICT_INIT;
    OK(ctx, remat_chain_plan_verify(ctx, chain, plan, &v));
    return v;
}

#endif
