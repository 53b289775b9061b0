/* out.c: the buffer behind out.h. The sink is called once for each full buffer, not once for each
 * piece of text.
 *
 * Invariant: buffer[0 .. n) has not reached the sink yet. Between calls there is room in it for one
 * byte at least.
 *
 * Cost: one copy of each byte. */
#include "base/out.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

remat_status rm_out_failed(remat_ctx *ctx) { return rm_fail(ctx, REMAT_E_IO, "writing failed"); }

void rm_out_begin(rm_out *out, remat_ctx *ctx, remat_sink *sink, void *user)
{
    out->ctx = ctx;
    out->sink = sink;
    out->user = user;
    out->status = REMAT_OK;
    out->n = 0;
}

static void flush(rm_out *out)
{
    if (out->status == REMAT_OK && out->n && out->sink(out->user, out->buffer, out->n) != 0)
        out->status = rm_out_failed(out->ctx);
    out->n = 0;
}

void rm_out_bytes(rm_out *out, const char *bytes, size_t n)
{
    while (n && out->status == REMAT_OK) {
        const size_t room = sizeof out->buffer - out->n, take = n < room ? n : room;
        memcpy(out->buffer + out->n, bytes, take);
        out->n += take;
        bytes += take;
        n -= take;
        if (out->n == sizeof out->buffer) flush(out);
    }
}

void rm_out_text(rm_out *out, const char *text) { rm_out_bytes(out, text, strlen(text)); }

void rm_out_format(rm_out *out, const char *format, ...)
{
    if (sizeof out->buffer - out->n <= RM_OUT_LONGEST) flush(out);
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(out->buffer + out->n, RM_OUT_LONGEST + 1, format, args);
    va_end(args);
    assert(n >= 0);
    out->n += n < RM_OUT_LONGEST ? (size_t)n : RM_OUT_LONGEST;
}

remat_status rm_out_end(rm_out *out)
{
    flush(out);
    return out->status;
}
