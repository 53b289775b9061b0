/* codec.c: the writer behind codec.h. Invariant: buffer[0 .. n) has not reached the sink yet. */
#include "import/codec.h"

#include "import/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- zlib's memory: each block remembers its size in front, because zlib does not pass it back
 * ---- */

typedef union block_head {
    size_t size;
    max_align_t align;
} block_head;

void *rm_zlib_alloc(void *opaque, unsigned n, unsigned size)
{
    const size_t bytes =
        sizeof(block_head) + (size_t)n * size; /* two 32-bit factors cannot overflow 64 bits */
    block_head *head = rm_resize(opaque, NULL, 0, bytes);
    if (!head) return NULL;
    head->size = bytes;
    return head + 1;
}

void rm_zlib_free(void *opaque, void *p)
{
    block_head *head = (block_head *)p - 1;
    rm_release(opaque, head, head->size);
}

/* ---- bytes ---- */

static void send(rm_out *out, const void *bytes, size_t n)
{
    if (out->status == REMAT_OK && n && out->sink(out->user, bytes, n) != 0)
        out->status = rm_fail(out->ctx, REMAT_E_IO, "writing failed");
}

static void deflate_all(rm_out *out, int flush)
{
    unsigned char chunk[8192];
    out->z.next_in = (unsigned char *)out->buffer;
    out->z.avail_in = (uInt)out->n;
    do {
        out->z.next_out = chunk;
        out->z.avail_out = sizeof chunk;
        deflate(&out->z, flush);
        send(out, chunk, sizeof chunk - out->z.avail_out);
    } while (out->z.avail_out == 0 && out->status == REMAT_OK);
}

static void flush(rm_out *out)
{
    if (out->gzip) deflate_all(out, Z_NO_FLUSH);
    else send(out, out->buffer, out->n);
    out->n = 0;
}

static void put(rm_out *out, const char *bytes, size_t n)
{
    while (n && out->status == REMAT_OK) {
        const size_t room = sizeof out->buffer - out->n, take = n < room ? n : room;
        memcpy(out->buffer + out->n, bytes, take);
        out->n += take, bytes += take, n -= take;
        if (out->n == sizeof out->buffer) flush(out);
    }
}

void rm_out_begin(rm_out *out, remat_ctx *ctx, bool gzip, remat_sink *sink, void *user)
{
    out->ctx = ctx;
    out->sink = sink;
    out->user = user;
    out->status = REMAT_OK;
    out->gzip = gzip;
    out->n = 0;
    out->z = (z_stream){.zalloc = rm_zlib_alloc, .zfree = rm_zlib_free, .opaque = &ctx->heap};
    if (gzip && deflateInit2(&out->z, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 9,
                             Z_DEFAULT_STRATEGY) != Z_OK) {
        out->gzip = false;
        out->status = rm_no_memory(ctx);
    }
}

remat_status rm_out_end(rm_out *out)
{
    if (out->gzip) {
        if (out->status == REMAT_OK) deflate_all(out, Z_FINISH);
        deflateEnd(&out->z);
    } else if (out->status == REMAT_OK) {
        flush(out);
    }
    return out->status;
}

void rm_out_text(rm_out *out, const char *text) { put(out, text, strlen(text)); }

void rm_out_format(rm_out *out, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    put(out, text, n < (int)sizeof text ? (size_t)n : sizeof text - 1);
}

/* ---- strings ---- */

void rm_out_string(rm_out *out, const char *text)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + strlen(text);
    put(out, "\"", 1);
    while (p < end) {
        const size_t n = rm_utf8_length(p, end);
        if (n == 0) rm_out_text(out, "\\ufffd");
        else if (*p == '"' || *p == '\\') rm_out_format(out, "\\%c", *p);
        else if (*p < 0x20) rm_out_format(out, "\\u%04x", *p);
        else put(out, (const char *)p, n);
        p += n ? n : 1;
    }
    put(out, "\"", 1);
}
