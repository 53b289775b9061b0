/* heap.c: see heap.h. Each block is a block of its own of the C library and always moves, so that
 * a sanitizer sees stale pointers; its size stands before it. */
#include "heap.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef union header {
    size_t size;
    max_align_t align;
} header;

static bool refuses(heap *h, size_t old_size, size_t new_size)
{
    const bool last = h->calls_to_refusal && --h->calls_to_refusal == 0;
    if (!last && h->live_bytes - old_size + new_size <= h->most_bytes) return false;
    h->refused = true;
    return true;
}

static void *resize(void *user, void *p, size_t old_size, size_t new_size)
{
    heap *h = user;
    header *block = p ? (header *)p - 1 : NULL;
    if (old_size != (block ? block->size : 0)) {
        fprintf(stderr, "fuzz: a block of %zu bytes comes back as one of %zu\n",
                block ? block->size : 0, old_size);
        abort();
    }
    header *moved = NULL;
    if (new_size) {
        if (refuses(h, old_size, new_size)) return NULL;
        moved = malloc(sizeof *moved + new_size);
        if (!moved) abort();
        moved->size = new_size;
        if (block) memcpy(moved + 1, p, old_size < new_size ? old_size : new_size);
    }
    h->live_bytes += new_size - old_size;
    free(block);
    return moved ? moved + 1 : NULL;
}

remat_alloc heap_hooks(heap *h) { return (remat_alloc){resize, h}; }
