/* check.h: what property tests share: a case is known by its seed, and a failure prints it: `prop_X
 * 1 SEED` runs that case alone. */
#ifndef PROP_CHECK_H
#define PROP_CHECK_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "remat.h"

static uint64_t case_seed;

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("seed %" PRIu64 ": line %d: %s: ", case_seed, __LINE__, #condition);            \
            printf(__VA_ARGS__);                                                                   \
            printf("\n");                                                                          \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* N and SEED of the command line; the first case has that seed. */
static inline int64_t cases_asked_for(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s N SEED\n", argv[0]);
        exit(1);
    }
    case_seed = strtoull(argv[2], NULL, 10);
    return strtoll(argv[1], NULL, 10);
}

/* Cases until n graphs were of use; a case that is asked for by its seed runs once, in any case. */
static inline void run_graphs(int64_t n, bool (*one_graph)(remat_ctx *))
{
    remat_ctx *ctx = remat_ctx_new(NULL);
    CHECK(ctx, "no context");
    for (int64_t graphs = 0; graphs < n; case_seed++) graphs += one_graph(ctx) || n == 1;
    remat_ctx_free(ctx);
}

#endif
