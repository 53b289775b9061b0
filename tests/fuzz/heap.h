/* heap.h: the allocator hook of the fuzz targets: it counts, it has a limit, it can refuse a given
 * call, and it checks every size that is handed back. */
#ifndef FUZZ_HEAP_H
#define FUZZ_HEAP_H

#include "remat.h"

typedef struct heap {
    size_t most_bytes;       /* what would pass this is refused */
    size_t live_bytes;       /* handed out and not yet back */
    size_t calls_to_refusal; /* that many more calls for memory are granted; 0: no such limit */
    bool refused;            /* has it ever, since somebody set this to false? */
} heap;

remat_alloc heap_hooks(heap *h); /* one thread at a time, as a context */

#endif
