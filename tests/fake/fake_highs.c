/* fake_highs.c: libraries that are almost HiGHS, one for each way to be wrong:
 *
 *     NOT_HIGHS    has nothing that HiGHS has
 *     OLD          says 1.5, and lacks what came later
 *     ANCIENT      has every function but says 1.2
 *     WIDE         integers of 64 bits
 *     NO_PASS      does not take the program: out of memory
 *     NO_RUN       takes it, and runs out of memory then
 *     CRASH        takes it, and ends the process: out of memory, as HiGHS does
 *     HANG         takes it, and neither comes back nor asks anybody
 *     NO_ANSWER    runs, and comes back with nothing
 *     WRONG        claims an optimum that is no schedule: nothing runs, cost 0 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef NOT_HIGHS
int fake_is_not_highs(void);
int fake_is_not_highs(void) { return 1; }
#else

const char *Highs_version(void);
const char *Highs_version(void)
{
#ifdef OLD
    return "1.5.3";
#elif defined ANCIENT
    return "1.2.0";
#else
    return "1.99.0";
#endif
}

#ifndef OLD
#ifdef ANCIENT
enum { MINOR = 2 };
#else
enum { MINOR = 99 };
#endif
#ifdef WIDE
enum { INT_SIZE = 8 };
#else
enum { INT_SIZE = 4 };
#endif
#ifdef NO_PASS
enum { PASS = -1 };
#else
enum { PASS = 0 };
#endif
#ifdef NO_RUN
enum { RUN = -1, STATUS = 18 };
#elif defined WRONG
enum { RUN = 0, STATUS = 7 };
#else
enum { RUN = 0, STATUS = 4 };
#endif
#ifdef WRONG
enum { SOLUTION = 2 };
#else
enum { SOLUTION = 0 };
#endif

#define CALL(type, name, ...)                                                                      \
    type name(__VA_ARGS__);                                                                        \
    type name(__VA_ARGS__)

static int handle;
static int32_t columns;

CALL(void *, Highs_create, void) { return &handle; }
CALL(void, Highs_destroy, void *h) { (void)h; }
CALL(int32_t, Highs_versionMajor, void) { return 1; }
CALL(int32_t, Highs_versionMinor, void) { return MINOR; }
CALL(int32_t, Highs_getSizeofHighsInt, const void *h) { return (void)h, INT_SIZE; }
CALL(int32_t, Highs_setBoolOptionValue, void *h, const char *o, int32_t v)
{
    return (void)h, (void)o, (void)v, 0;
}
CALL(int32_t, Highs_setIntOptionValue, void *h, const char *o, int32_t v)
{
    return (void)h, (void)o, (void)v, 0;
}
CALL(int32_t, Highs_setDoubleOptionValue, void *h, const char *o, double v)
{
    return (void)h, (void)o, (void)v, 0;
}
CALL(int32_t, Highs_setStringOptionValue, void *h, const char *o, const char *v)
{
    return (void)h, (void)o, (void)v, 0;
}
CALL(int32_t, Highs_passMip, void *h, int32_t n)
{
    return (void)h, columns = n, PASS;
} /* more arguments than it looks at */
CALL(int32_t, Highs_setSolution, void *h) { return (void)h, 0; }
CALL(int32_t, Highs_setCallback, void *h) { return (void)h, 0; }
CALL(int32_t, Highs_startCallback, void *h, int32_t type) { return (void)h, (void)type, 0; }
CALL(const void *, Highs_getCallbackDataOutItem, const void *d, const char *n)
{
    return (void)d, (void)n, NULL;
}
CALL(int32_t, Highs_run, void *h)
{
#ifdef CRASH
    abort();
#endif
#ifdef HANG
    for (;;) pause();
#endif
    return (void)h, RUN;
}
CALL(int32_t, Highs_getModelStatus, const void *h) { return (void)h, STATUS; }
CALL(int32_t, Highs_getDoubleInfoValue, const void *h, const char *n, double *out)
{
    return (void)h, (void)n, *out = 0, 0;
}
CALL(int32_t, Highs_getIntInfoValue, const void *h, const char *n, int32_t *out)
{
    return (void)h, (void)n, *out = SOLUTION, 0;
}
CALL(int32_t, Highs_getSolution, const void *h, double *x)
{
    return (void)h, memset(x, 0, (size_t)columns * sizeof *x), 0;
}
#endif
#endif
