/* source.h: the bytes of a file, or of standard input. */
#ifndef RM_SOURCE_H
#define RM_SOURCE_H

#include "base/vec.h"

typedef RM_VEC(unsigned char) rm_bytes;

/* Appends to bytes. "-": standard input. */
remat_status rm_source_read(remat_ctx *ctx, const char *source, rm_bytes *bytes);

#endif
