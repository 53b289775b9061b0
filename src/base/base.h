/* base.h: what every file of the library stands on: the context, memory, errors and limits.
 *
 * Memory has three lifetimes:
 * - Frozen objects (graph, plan, chain, program) are one block each. rm_alloc makes it, rm_release
 *   frees it.
 * - Scratch is an arena in the context. The API boundary takes a mark and releases to it, so code
 *   in between may return early without leaks. A parsed file has an arena of its own.
 * - Vectors (vec.h) grow on the heap hook. Each belongs to one struct.
 *
 * Only mem.c touches the heap itself. */
#ifndef RM_BASE_H
#define RM_BASE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/limits.h"
#include "base/options.h"
#include "remat.h"

#define RM_LEN(array) (sizeof(array) / sizeof *(array))
#define RM_LARGEST_ALIGN ((int64_t)1 << 30)
#define RM_MAX_SUM ((int64_t)1 << 62) /* every sum of sizes or of costs stays below this */

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const remat_status status_ = (call);                                                       \
        if (status_ != REMAT_OK) return status_;                                                   \
    } while (0)

typedef struct rm_block rm_block;
typedef struct rm_arena { /* {NULL}: empty */
    rm_block *top;
} rm_arena;
typedef struct rm_mark {
    rm_block *block;
    size_t used;
} rm_mark;

typedef struct rm_error { /* all texts are cut to fit */
    remat_status status;
    char file[160], place[120], reason[320];
    char line[640]; /* the three together, for people */
} rm_error;

/* Made by remat_ctx_class. The newest rule that speaks for an op decides. */
typedef struct rm_class_rule {
    const struct rm_class_rule *older;
    const char *target;
    remat_class op_class;
} rm_class_rule;

struct remat_ctx {
    remat_alloc heap;     /* for what is freed in the same call; while a call runs, it counts */
    remat_alloc own_heap; /* for what outlives the call: the caller's hooks */
    rm_arena scratch;
    rm_arena settings; /* holds class_rules, which outlive calls */
    const rm_class_rule *class_rules;
    rm_options options;
    rm_error error;
    char input_name[160]; /* of the file being read, for errors; "": none */
    void (*on_progress)(void *user, const remat_progress *progress);
    void *progress_user;
    void (*on_warning)(void *user, const char *line);
    void *warning_user;
    rm_limits limits;   /* of the current call */
    int64_t bound_cost; /* of the current call, for progress; REMAT_ABSENT: unknown */
    atomic_bool stop;
};

/* ---- memory (mem.c) ---- */
extern const remat_alloc rm_libc_heap; /* malloc and friends */
void *rm_resize(const remat_alloc *heap, void *p, size_t old_size, size_t new_size);
/* A zeroed block. NULL: out of memory, and the error is set. */
void *rm_alloc(remat_ctx *ctx, size_t size);
void rm_release(const remat_alloc *heap, void *p, size_t size); /* p may be NULL */
/* n zeroed elements that live as long as the arena. NULL: out of memory, and the error is set; so
 * it is never NULL for n = 0. */
void *rm_arena_get(remat_ctx *ctx, rm_arena *arena, size_t n, size_t size);
void rm_arena_free(const remat_alloc *heap, rm_arena *arena);
/* The same in scratch: they live until the mark is released. */
void *rm_scratch(remat_ctx *ctx, size_t n, size_t size);
/* Not zeroed: for tables of gigabytes, whose owner fills them and looks at the clock meanwhile. */
void *rm_scratch_raw(remat_ctx *ctx, size_t n, size_t size);
#define RM_SCRATCH(ctx, ptr, n)                                                                    \
    (((ptr) = rm_scratch((ctx), (n), sizeof *(ptr))) ? REMAT_OK : REMAT_E_MEMORY)
char *rm_scratch_copy(remat_ctx *ctx, const char *text);
rm_mark rm_scratch_mark(const remat_ctx *ctx);
void rm_scratch_release(remat_ctx *ctx, rm_mark mark); /* frees all that is newer than the mark */

/* ---- errors (error.c): say what is wrong where it is known, forward with TRY ---- */
remat_status rm_fail(remat_ctx *ctx, remat_status status, const char *format, ...) RM_PRINTF(3, 4);
/* The same, with a place in the file being read: "nodes[7].in[1]". */
remat_status rm_fail_at(remat_ctx *ctx, remat_status status, const char *place, const char *format,
                        ...) RM_PRINTF(4, 5);
remat_status rm_no_memory(remat_ctx *ctx);
/* REMAT_E_IO: what failed, and what the system says of the errno `error`. */
remat_status rm_fail_io(remat_ctx *ctx, const char *what, int error);
void rm_warn(remat_ctx *ctx, const char *format, ...) RM_PRINTF(2, 3);
/* Bytes of the unsafe sequence that the text begins with, or 0. Unsafe are:
 * - controls: C0, DEL and C1;
 * - marks that turn the direction of text: U+202A .. U+202E and U+2066 .. U+2069. */
size_t rm_unsafe_length(const char *text);
/* Messages quote bytes of files. What a terminal would obey becomes '?'. */
void rm_clean_text(char *text);
void rm_input_name(remat_ctx *ctx, const char *name); /* NULL or "": no file */

/* ---- small things ---- */
int rm_by_index(const void *a, const void *b); /* for qsort of uint32_t (vec.c) */

/* Adds x to *sum. False: that would make RM_MAX_SUM or more, and *sum stays as it was. */
static inline bool rm_add_to_sum(int64_t *sum, int64_t x)
{
    assert(x >= 0 && *sum >= 0 && *sum < RM_MAX_SUM);
    if (x >= RM_MAX_SUM - *sum) return false;
    *sum += x;
    return true;
}

/* The greatest. Of 0 and b it is b. */
static inline int64_t rm_common_divisor(int64_t a, int64_t b)
{
    while (b) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

#endif
