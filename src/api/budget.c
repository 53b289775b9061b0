/* budget.c: reads "12GiB", "900MB", "50%", "min" or a number of bytes.
 *
 * It computes in integers, so "1.5GiB" is exact. */
#include "base/base.h"

#include <string.h>

static remat_status bad(remat_ctx *ctx, const char *text, const char *why)
{
    return rm_fail(ctx, REMAT_E_USAGE, "budget '%.40s' %s", text, why);
}

/* Reads digits, perhaps with a point. The number is *value / *scale. Digits past the ninth behind
 * the point are dropped, since budgets round down. NULL: there is no digit. Else what follows. */
static const char *parse_decimal(const char *p, int64_t *value, int64_t *scale)
{
    *value = 0;
    *scale = 1;
    bool point = false, any = false;
    for (; (*p >= '0' && *p <= '9') || (*p == '.' && !point); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        any = true;
        if (point && *scale == 1000000000) continue;
        if (rm_mul_overflows(*value, (int64_t)10, value) ||
            rm_add_overflows(*value, (int64_t)(*p - '0'), value))
            *value = INT64_MAX;
        if (point) *scale *= 10;
    }
    return any ? p : NULL;
}

/* The bytes of a unit. 0: there is no such unit. */
static int64_t unit_bytes(const char *name)
{
    static const struct {
        const char *name;
        int64_t bytes;
    } units[] = {{"", 1},
                 {"B", 1},
                 {"kB", 1000},
                 {"KB", 1000},
                 {"MB", 1000000},
                 {"GB", 1000000000},
                 {"TB", INT64_C(1000000000000)},
                 {"PB", INT64_C(1000000000000000)},
                 {"KiB", 1 << 10},
                 {"MiB", 1 << 20},
                 {"GiB", 1 << 30},
                 {"TiB", INT64_C(1) << 40},
                 {"PiB", INT64_C(1) << 50}};
    for (size_t i = 0; i < RM_LEN(units); i++)
        if (strcmp(name, units[i].name) == 0) return units[i].bytes;
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
            return bad(ctx, text,
                       "has an unknown unit: B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB or %");
        if (unit == 1 && value % scale) return bad(ctx, text, "is not a whole number of bytes");
    }
    const rm_uint128 bytes = (rm_uint128)value * (rm_uint128)unit / (rm_uint128)scale;
    if (bytes >= (rm_uint128)RM_MAX_SUM) return bad(ctx, text, "is 2^62 bytes or more");
    *out = (int64_t)bytes;
    return REMAT_OK;
}
