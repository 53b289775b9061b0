/* options.c: the table of options.h as data, and the public functions that set and read an option.
 *
 * Invariant: an option is always within its range.
 *
 * Cost: linear in the rows of the table. */
#include "base/base.h"

#include <string.h>

typedef struct option_row {
    remat_option shown;
    size_t offset;
} option_row;

static const option_row rows[] = {
#define OPT(name, initial, low, high, help)                                                        \
    {{#name, help, initial, low, high}, offsetof(rm_options, name)},
    RM_OPTIONS(OPT)
#undef OPT
};

void rm_options_reset(rm_options *options)
{
    for (size_t i = 0; i < RM_LEN(rows); i++)
        *(int64_t *)(void *)((char *)options + rows[i].offset) = rows[i].shown.initial;
}

static const option_row *find(remat_ctx *ctx, const char *name)
{
    for (size_t i = 0; i < RM_LEN(rows); i++)
        if (name && strcmp(rows[i].shown.name, name) == 0) return &rows[i];
    rm_input_name(ctx, NULL);
    rm_fail(ctx, REMAT_E_USAGE, "there is no option '%s'", name ? name : "(null)");
    return NULL;
}

remat_status remat_ctx_set(remat_ctx *ctx, const char *option, int64_t value)
{
    const option_row *row = find(ctx, option);
    if (!row) return REMAT_E_USAGE;
    if (value < row->shown.low || value > row->shown.high)
        return rm_fail(ctx, REMAT_E_USAGE, "%s=%lld is not in [%lld, %lld]", option,
                       (long long)value, (long long)row->shown.low, (long long)row->shown.high);
    *(int64_t *)(void *)((char *)&ctx->options + row->offset) = value;
    return REMAT_OK;
}

remat_status remat_ctx_get(remat_ctx *ctx, const char *option, int64_t *out)
{
    const option_row *row = find(ctx, option);
    if (!row) return REMAT_E_USAGE;
    *out = *(const int64_t *)(const void *)((const char *)&ctx->options + row->offset);
    return REMAT_OK;
}

const remat_option *remat_option_at(size_t index)
{
    return index < RM_LEN(rows) ? &rows[index].shown : NULL;
}
