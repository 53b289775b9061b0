/* budget.c: reads "12GiB", "900mb", "8G", "50%", "min" or a number of bytes, "1e9" too.
 *
 * It computes in integers, so "1.5GiB" is exact. The case of a unit does not matter. Cost: O(1). */
#include "base/base.h"

#include <string.h>

#define MOST_SCALE INT64_C(1000000000)

static remat_status bad(remat_ctx *ctx, const char *text, const char *why)
{
    return rm_fail(ctx, REMAT_E_USAGE, "budget '%.40s' %s", text, why);
}

/* Multiplies *value / *scale by 10^exponent. *value is INT64_MAX where that is too much. */
static void shift(int64_t exponent, int64_t *value, int64_t *scale)
{
    for (; exponent > 0 && *value && *value < INT64_MAX; exponent--) {
        if (*scale > 1) *scale /= 10;
        else if (rm_mul_overflows(*value, (int64_t)10, value)) *value = INT64_MAX;
    }
    for (; exponent < 0 && *value; exponent++) {
        if (*scale < MOST_SCALE) *scale *= 10;
        else *value /= 10;
    }
}

/* Reads the exponent of "1e9", if there is one, and returns what follows. */
static const char *parse_exponent(const char *p, int64_t *value, int64_t *scale)
{
    const char *digit = p + 1;
    int64_t exponent = 0;
    if (*p != 'e' && *p != 'E') return p;
    const bool negative = *digit == '-';
    if (*digit == '-' || *digit == '+') digit++;
    if (!(*digit >= '0' && *digit <= '9')) return p;
    for (; *digit >= '0' && *digit <= '9'; digit++)
        if (exponent < 100) exponent = 10 * exponent + (*digit - '0');
    shift(negative ? -exponent : exponent, value, scale);
    return digit;
}

/* Reads digits, perhaps with a point and an exponent. The number is *value / *scale. Digits past
 * the ninth behind the point are dropped, since budgets round down. A number that is too large is
 * INT64_MAX / 1. NULL: there is no digit. Else what follows. */
static const char *parse_decimal(const char *p, int64_t *value, int64_t *scale)
{
    *value = 0;
    *scale = 1;
    bool point = false, any = false, too_large = false;
    for (; (*p >= '0' && *p <= '9') || (*p == '.' && !point); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        any = true;
        if (point && *scale == MOST_SCALE) continue;
        too_large = too_large || rm_mul_overflows(*value, (int64_t)10, value) ||
                    rm_add_overflows(*value, (int64_t)(*p - '0'), value);
        if (point) *scale *= 10;
    }
    if (!any) return NULL;
    p = parse_exponent(p, value, scale);
    if (too_large || *value == INT64_MAX) {
        *value = INT64_MAX;
        *scale = 1;
    }
    return p;
}

static char in_lower_case(char c) { return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c; }

/* Are two words the same but for the case of ASCII letters? */
static bool is_same_word(const char *a, const char *b)
{
    while (*a && in_lower_case(*a) == in_lower_case(*b)) {
        a++;
        b++;
    }
    return *a == *b;
}

/* The bytes of a unit. 0: there is no such unit. A letter alone is a power of 1024, as for most
 * programs. */
static int64_t unit_bytes(const char *name)
{
    static const struct {
        const char *names[3];
        int64_t bytes;
    } units[] = {{{"", "B", "bytes"}, 1},
                 {{"KB"}, 1000},
                 {{"MB"}, 1000000},
                 {{"GB"}, 1000000000},
                 {{"TB"}, INT64_C(1000000000000)},
                 {{"PB"}, INT64_C(1000000000000000)},
                 {{"KiB", "K"}, 1 << 10},
                 {{"MiB", "M"}, 1 << 20},
                 {{"GiB", "G"}, 1 << 30},
                 {{"TiB", "T"}, INT64_C(1) << 40},
                 {{"PiB", "P"}, INT64_C(1) << 50}};
    for (size_t i = 0; i < RM_LEN(units); i++)
        for (size_t k = 0; k < RM_LEN(units[i].names) && units[i].names[k]; k++)
            if (is_same_word(name, units[i].names[k])) return units[i].bytes;
    return 0;
}

remat_status remat_budget_parse(remat_ctx *ctx, const char *text, int64_t keep_all_peak_bytes,
                                int64_t *out)
{
    if (strcmp(text, "min") == 0) {
        *out = REMAT_BUDGET_MIN;
        return REMAT_OK;
    }
    if (*text == '-') return bad(ctx, text, "is negative");
    int64_t value, scale;
    const char *rest = parse_decimal(text, &value, &scale);
    if (!rest)
        return bad(ctx, text, "is not a number with a unit: try 12GiB, 900MB, 50%, min or bytes");
    int64_t unit;
    if (strcmp(rest, "%") == 0) {
        if (keep_all_peak_bytes < 0) return bad(ctx, text, "needs a graph to be a percentage of");
        unit = keep_all_peak_bytes;
        scale *= 100;
    } else {
        unit = unit_bytes(rest);
        if (unit == 0)
            return bad(
                ctx, text,
                "has an unknown unit: B, KB, MB, GB, TB, PB, KiB (or K), MiB, GiB, TiB, PiB or %");
        if (unit == 1 && value % scale) return bad(ctx, text, "is not a whole number of bytes");
    }
    const rm_uint128 bytes = (rm_uint128)value * (rm_uint128)unit / (rm_uint128)scale;
    if (bytes >= (rm_uint128)RM_MAX_SUM) return bad(ctx, text, "is 2^62 bytes or more");
    *out = (int64_t)bytes;
    return REMAT_OK;
}
