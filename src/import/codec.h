/* codec.h: bytes out: a buffered JSON writer in front of the caller's sink, with gzip in between by
 * request.
 *
 * Failures stick: calls after one do nothing, and rm_out_end returns it. */
#ifndef RM_CODEC_H
#define RM_CODEC_H

#include <zlib.h>

#include "base/base.h"

typedef struct rm_out {
    remat_ctx *ctx;
    remat_sink *sink;
    void *user;
    remat_status status;
    bool gzip;
    z_stream z;
    size_t n;
    char buffer[8192];
} rm_out;

void rm_out_begin(rm_out *out, remat_ctx *ctx, bool gzip, remat_sink *sink, void *user);
void rm_out_text(rm_out *out, const char *text);
void rm_out_format(rm_out *out, const char *format, ...)
    RM_PRINTF(2, 3); /* at most 500 bytes a call */
void rm_out_string(rm_out *out,
                   const char *text); /* a JSON string, quotes included; bad UTF-8 is replaced */
remat_status rm_out_end(rm_out *out);

/* zlib's allocator on the heap hook; `opaque` is a remat_alloc. */
void *rm_zlib_alloc(void *opaque, unsigned n, unsigned size);
void rm_zlib_free(void *opaque, void *p);

#endif
