/* mem.c: the only place that touches the heap.
 *
 * Every allocation goes through the hook of the context, which is one function. It is told the old
 * size. So a caller can count bytes, and can make any allocation fail.
 *
 * An arena is a list of blocks, newest first. A mark is a position in it. Releasing to a mark frees
 * the blocks above it.
 *
 * Invariant: every pointer that an arena hands out is aligned for any type, and its bytes are zero.
 *
 * Cost: O(1) an allocation, besides the zeroing; O(blocks) a release. */
#include "base/base.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BLOCK = 1 << 12, LARGEST_STEP = 1 << 20 };

struct rm_block {
    rm_block *below;
    size_t size, used; /* of data */
    _Alignas(max_align_t) unsigned char data[];
};

static void *libc_resize(void *user, void *p, size_t old_size, size_t new_size)
{
    (void)user;
    (void)old_size;
    if (new_size == 0) {
        free(p);
        return NULL;
    }
    return realloc(p, new_size);
}

const remat_alloc rm_libc_heap = {libc_resize, NULL};

void *rm_resize(const remat_alloc *heap, void *p, size_t old_size, size_t new_size)
{
    return heap->resize(heap->user, p, old_size, new_size);
}

void *rm_alloc(remat_ctx *ctx, size_t size)
{
    void *p = rm_resize(&ctx->heap, NULL, 0, size ? size : 1);
    if (!p) rm_no_memory(ctx);
    else memset(p, 0, size ? size : 1);
    return p;
}

void rm_release(const remat_alloc *heap, void *p, size_t size)
{
    if (p) rm_resize(heap, p, size ? size : 1, 0);
}

/* A new block on top, with room for `bytes`. Blocks double in size up to LARGEST_STEP. */
static rm_block *add_block(remat_ctx *ctx, rm_arena *arena, size_t bytes)
{
    size_t room = arena->top ? 2 * arena->top->size : FIRST_BLOCK;
    if (room > LARGEST_STEP) room = LARGEST_STEP;
    if (room < bytes) room = bytes;
    rm_block *block = rm_resize(&ctx->heap, NULL, 0, sizeof *block + room);
    if (!block) {
        rm_no_memory(ctx);
        return NULL;
    }
    *block = (rm_block){arena->top, room, 0};
    arena->top = block;
    return block;
}

/* As rm_arena_get, with whatever lies there. *bytes: how much it is. */
static void *take(remat_ctx *ctx, rm_arena *arena, size_t n, size_t size, size_t *bytes_taken)
{
    const size_t align = _Alignof(max_align_t);
    size_t bytes;
    if (rm_mul_overflows(n, size, &bytes) || bytes > SIZE_MAX / 2) {
        rm_no_memory(ctx);
        return NULL;
    }
    bytes = (bytes + align - 1) / align * align;
    rm_block *block = arena->top;
    if (!block || block->size - block->used < bytes) block = add_block(ctx, arena, bytes);
    if (!block) return NULL;
    assert(block->used <= block->size && block->size - block->used >= bytes);
    void *p = block->data + block->used;
    block->used += bytes;
    *bytes_taken = bytes;
    return p;
}

void *rm_arena_get(remat_ctx *ctx, rm_arena *arena, size_t n, size_t size)
{
    size_t bytes;
    void *p = take(ctx, arena, n, size, &bytes);
    return p && bytes ? memset(p, 0, bytes) : p;
}

void *rm_scratch_raw(remat_ctx *ctx, size_t n, size_t size)
{
    size_t bytes;
    return take(ctx, &ctx->scratch, n, size, &bytes);
}

/* The mark was taken of this arena, and its block has not been released since. */
static void release_to(const remat_alloc *heap, rm_arena *arena, rm_mark mark)
{
    while (arena->top != mark.block) {
        assert(arena->top);
        rm_block *block = arena->top;
        arena->top = block->below;
        rm_resize(heap, block, sizeof *block + block->size, 0);
    }
    if (!mark.block) return;
    assert(mark.used <= mark.block->used);
    mark.block->used = mark.used;
}

void rm_arena_free(const remat_alloc *heap, rm_arena *arena)
{
    release_to(heap, arena, (rm_mark){NULL, 0});
}

void *rm_scratch(remat_ctx *ctx, size_t n, size_t size)
{
    return rm_arena_get(ctx, &ctx->scratch, n, size);
}

char *rm_scratch_copy(remat_ctx *ctx, const char *text)
{
    const size_t n = strlen(text) + 1;
    char *copy = rm_scratch(ctx, n, 1);
    return copy ? memcpy(copy, text, n) : NULL;
}

rm_mark rm_scratch_mark(const remat_ctx *ctx)
{
    return (rm_mark){ctx->scratch.top, ctx->scratch.top ? ctx->scratch.top->used : 0};
}

void rm_scratch_release(remat_ctx *ctx, rm_mark mark)
{
    release_to(&ctx->heap, &ctx->scratch, mark);
}
