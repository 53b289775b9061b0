/* support.h: what the unit tests share: cmocka, a fresh context per test, and small graphs in a
 * line each. */
#ifndef TEST_SUPPORT_H
#define TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "remat.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))
#define LIST(...)                                                                                  \
    ((const uint32_t[]){__VA_ARGS__}),                                                             \
        (uint32_t)(sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
#define NOTHING NULL, 0
/* SANITIZED (tests/CMakeLists.txt): 1 if sanitizers are in. They look for faults of memory, which a
 * part of long tests shows; what is right is compared in the plain build. */

static inline int new_context(void **state) { return (*state = remat_ctx_new(NULL)) ? 0 : -1; }
static inline int free_context(void **state)
{
    remat_ctx_free(*state);
    return 0;
}
#define WITH_CONTEXT(test) cmocka_unit_test_setup_teardown(test, new_context, free_context)

/* The call must answer REMAT_OK; if not, its one line is the failure. */
#define OK(ctx, call)                                                                              \
    do {                                                                                           \
        if ((call) != REMAT_OK) fail_msg("%s: %s", #call, remat_ctx_error(ctx));                   \
    } while (0)

/* The call must fail with this status and with one line that says why. */
#define FAILS(ctx, expected, call)                                                                 \
    do {                                                                                           \
        assert_int_equal((call), (expected));                                                      \
        assert_true(*remat_ctx_error(ctx) != '\0');                                                \
        for (const char *c_ = remat_ctx_error(ctx); *c_; c_++) assert_int_not_equal(*c_, '\n');    \
    } while (0)

/* "0 1 2 o5 f5": runs, offloads and fetches. Returns how many. */
static inline size_t steps_of(const char *text, remat_step *steps)
{
    size_t n = 0;
    while (*text) {
        remat_step step = {REMAT_RUN, 0};
        if (*text == 'o') step.kind = REMAT_OFFLOAD, text++;
        else if (*text == 'f') step.kind = REMAT_FETCH, text++;
        while (*text >= '0' && *text <= '9')
            step.index = step.index * 10 + (uint32_t)(*text++ - '0');
        while (*text == ' ') text++;
        steps[n++] = step;
    }
    return n;
}

#endif
