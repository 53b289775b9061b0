/* exp_log.c: exp and log out of +, -, * and / alone.
 *
 * IEEE 754 defines these four to the bit. -ffp-contract=off keeps compilers from joining them.
 *
 * The relative error of exp is below 1e-15, and below 5e-16 for |x| <= 1. The error of log is below
 * 4e-16, relative to max(1, |log x|). tests/unit/test_exp_log.c checks it. */
#include "base/exp_log.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* Together ln 2 to 98 bits. */
static const double ln2_high = 0x1.62e42fefa3800p-1, ln2_low = 0x1.ef35793c76730p-45;

/* x = k ln 2 + r, with |r| <= ln 2 / 2. exp(r) comes from its series. 2^k is put
 * together from its exponent field. */
double rm_exp(double x)
{
    assert(x <= 700);
    if (x < -700) return 0;
    const double scaled = x * 1.4426950408889634;
    const int64_t k = (int64_t)(scaled + (scaled < 0 ? -0.5 : 0.5));
    const double r = (x - (double)k * ln2_high) - (double)k * ln2_low;
    double sum = 1;
    for (int i = 14; i > 0; i--) sum = 1 + sum * r / i;
    const uint64_t bits = (uint64_t)(k + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return sum * power;
}

/* x = 2^k m, with m in [1/sqrt 2, sqrt 2). log m = 2 atanh((m - 1) / (m + 1)), and atanh comes from
 * its series. */
double rm_log(double x)
{
    assert(x >= 0);
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int64_t k = (int64_t)(bits >> 52) - 1023;
    bits = (bits & ((UINT64_C(1) << 52) - 1)) | (UINT64_C(1023) << 52);
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        k++;
    }
    const double s = (m - 1) / (m + 1), square = s * s;
    double sum = 0;
    for (int i = 23; i > 0; i -= 2) sum = sum * square + 1.0 / i;
    return (double)k * ln2_high + (2 * s * sum + (double)k * ln2_low);
}
