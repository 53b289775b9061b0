/* error.c: one failure is one line of text.
 *
 * Where something fails, the cause is written into the context. Callers forward the status as it
 * is, so the first cause is what is reported. */
#define _POSIX_C_SOURCE 200809L /* strerror_r */
#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

size_t rm_unsafe_length(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    if (p[0] < 0x20 || p[0] == 0x7f) return 1;
    if (p[0] == 0xc2 && p[1] >= 0x80 && p[1] <= 0x9f) return 2;
    if (p[0] == 0xe2 && p[1] == 0x80 && p[2] >= 0xaa && p[2] <= 0xae) return 3;
    if (p[0] == 0xe2 && p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9) return 3;
    return 0;
}

void rm_clean_text(char *text)
{
    for (char *p = text; *p; p++) memset(p, '?', rm_unsafe_length(p));
}

static void set_error(remat_ctx *ctx, remat_status status, const char *place, const char *format,
                      va_list args)
{
    rm_error *e = &ctx->error;
    e->status = status;
    snprintf(e->file, sizeof e->file, "%s", ctx->input_name);
    snprintf(e->place, sizeof e->place, "%s", place);
    vsnprintf(e->reason, sizeof e->reason, format, args);
    rm_clean_text(e->file);
    rm_clean_text(e->place);
    rm_clean_text(e->reason);
    snprintf(e->line, sizeof e->line, "%s%s%s%s%s", e->file, *e->file ? ": " : "", e->place,
             *e->place ? ": " : "", e->reason);
}

remat_status rm_fail(remat_ctx *ctx, remat_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    set_error(ctx, status, "", format, args);
    va_end(args);
    return status;
}

remat_status rm_fail_at(remat_ctx *ctx, remat_status status, const char *place, const char *format,
                        ...)
{
    va_list args;
    va_start(args, format);
    set_error(ctx, status, place, format, args);
    va_end(args);
    return status;
}

remat_status rm_no_memory(remat_ctx *ctx)
{
    if (!ctx->limits.memory_refused) return rm_fail(ctx, REMAT_E_MEMORY, "out of memory");
    return rm_fail(ctx, REMAT_E_MEMORY, "planning takes more than the %lld bytes of memory_bytes",
                   (long long)ctx->options.memory_bytes);
}

/* By strerror_r: threads may share the buffer of strerror. */
remat_status rm_fail_io(remat_ctx *ctx, const char *what, int error)
{
    char reason[120];
    if (strerror_r(error, reason, sizeof reason) != 0)
        snprintf(reason, sizeof reason, "error %d", error);
    return rm_fail(ctx, REMAT_E_IO, "%s: %s", what, reason);
}

void rm_warn(remat_ctx *ctx, const char *format, ...)
{
    if (!ctx->on_warning) return;
    char line[640];
    size_t n = 0;
    if (*ctx->input_name) n = (size_t)snprintf(line, sizeof line, "%s: ", ctx->input_name);
    va_list args;
    va_start(args, format);
    vsnprintf(line + n, sizeof line - n, format, args);
    va_end(args);
    rm_clean_text(line);
    ctx->on_warning(ctx->warning_user, line);
}

void rm_input_name(remat_ctx *ctx, const char *name)
{
    snprintf(ctx->input_name, sizeof ctx->input_name, "%s", name ? name : "");
}
