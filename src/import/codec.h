/* codec.h: gzip between the library and the bytes of a file. */
#ifndef RM_CODEC_H
#define RM_CODEC_H

#include <zlib.h>

#include "base/out.h"

typedef struct rm_file_out { /* write to `out` */
    rm_out out;
    bool gzip;
    z_stream z;
    remat_sink *sink; /* of the compressed bytes */
    void *user;
} rm_file_out;

void rm_file_out_begin(rm_file_out *file, remat_ctx *ctx, bool gzip, remat_sink *sink, void *user);
remat_status rm_file_out_end(rm_file_out *file);

/* zlib's allocator on the heap hook; `opaque` is a remat_alloc. */
void *rm_zlib_alloc(void *opaque, unsigned n, unsigned size);
void rm_zlib_free(void *opaque, void *p);

#endif
