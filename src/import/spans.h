/* spans.h: a placement problem read from a file. One frozen block. */
#ifndef RM_SPANS_H
#define RM_SPANS_H

#include "import/input.h"

struct remat_spans {
    remat_alloc heap;
    size_t block_size;
    size_t n;
    remat_span *list;
    size_t *id; /* where in text the id of a span begins */
    char *text;
};

/* Is it the first line of such a file? */
bool rm_begins_like_spans(const char *text);
remat_status rm_read_spans(remat_ctx *ctx, const remat_input *input, remat_spans **out);

#endif
