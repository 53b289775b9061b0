/* out.h: text on its way to the caller's sink, gathered in a buffer.
 *
 * A failure stays. The calls after it do nothing, and rm_out_end returns it. */
#ifndef RM_OUT_H
#define RM_OUT_H

#include "base/base.h"

enum { RM_OUT_LONGEST = 500 }; /* bytes that one rm_out_format writes; the rest is cut off */

typedef struct rm_out {
    remat_ctx *ctx;
    remat_sink *sink;
    void *user;
    remat_status status;
    size_t n;
    char buffer[8192];
} rm_out;

void rm_out_begin(rm_out *out, remat_ctx *ctx, remat_sink *sink, void *user);
void rm_out_bytes(rm_out *out, const char *bytes, size_t n);
void rm_out_text(rm_out *out, const char *text);
void rm_out_format(rm_out *out, const char *format, ...) RM_PRINTF(2, 3);
remat_status rm_out_end(rm_out *out);

remat_status rm_out_failed(remat_ctx *ctx); /* what is said when a sink has failed */

#endif
