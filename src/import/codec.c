/* codec.c: gzip as a sink in front of the caller's. Its memory is from the caller's heap. */
#include "import/codec.h"

/* ---- zlib's memory ---- */

/* In front of each block lies its size, because zlib does not pass it back. */
typedef union block_head {
    size_t size;
    max_align_t align;
} block_head;

void *rm_zlib_alloc(void *opaque, unsigned n, unsigned size)
{
    const size_t bytes = sizeof(block_head) + (size_t)n * size; /* 32-bit factors: no overflow */
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

/* ---- a file ---- */

/* Compresses and passes on; 0: all went well. */
static int deflate_bytes(rm_file_out *file, const void *bytes, size_t n, int flush)
{
    unsigned char chunk[8192];
    file->z.next_in = (unsigned char *)(uintptr_t)bytes; /* zlib does not write to it */
    file->z.avail_in = (uInt)n;
    do {
        file->z.next_out = chunk;
        file->z.avail_out = sizeof chunk;
        deflate(&file->z, flush);
        const size_t made = sizeof chunk - file->z.avail_out;
        if (made && file->sink(file->user, chunk, made) != 0) return -1;
    } while (file->z.avail_out == 0);
    return 0;
}

static int deflating_sink(void *user, const void *bytes, size_t n)
{
    return deflate_bytes(user, bytes, n, Z_NO_FLUSH);
}

void rm_file_out_begin(rm_file_out *file, remat_ctx *ctx, bool gzip, remat_sink *sink, void *user)
{
    file->sink = sink;
    file->user = user;
    file->gzip = gzip;
    rm_out_begin(&file->out, ctx, gzip ? deflating_sink : sink, gzip ? file : user);
    file->z = (z_stream){.zalloc = rm_zlib_alloc, .zfree = rm_zlib_free, .opaque = &ctx->heap};
    if (gzip && deflateInit2(&file->z, Z_BEST_COMPRESSION, Z_DEFLATED, 15 + 16, 9,
                             Z_DEFAULT_STRATEGY) != Z_OK) {
        file->gzip = false;
        file->out.status = rm_no_memory(ctx);
    }
}

remat_status rm_file_out_end(rm_file_out *file)
{
    remat_status status = rm_out_end(&file->out);
    if (!file->gzip) return status;
    if (status == REMAT_OK && deflate_bytes(file, NULL, 0, Z_FINISH) != 0)
        status = rm_out_failed(file->out.ctx);
    deflateEnd(&file->z);
    return status;
}
