/* answer.c: one struct, and callers of several versions of it. See answer.h. */
#include "api/answer.h"

#include <assert.h>
#include <string.h>

enum { LARGEST = 4096 }; /* bytes; no struct of ours comes near */

remat_status rm_answer_check(remat_ctx *ctx, size_t size, const char *name)
{
    if (size > sizeof(size_t) && size <= LARGEST && size % _Alignof(size_t) == 0) return REMAT_OK;
    return rm_fail(ctx, REMAT_E_USAGE,
                   "%s.size is %zu, not the size of a %s: begin with its REMAT_..._INIT", name,
                   size, name);
}

void rm_answer_copy(size_t *out, const size_t *ours, size_t our_size)
{
    const size_t shared = *out < our_size ? *out : our_size;
    assert(shared >= sizeof *out);
    memcpy(out + 1, ours + 1, shared - sizeof *out);
}
