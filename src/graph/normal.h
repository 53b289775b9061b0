/* normal.h: the graph as searches want it: ops, the storages they read and make, and nothing else.
 *
 * - Views that cost nothing are gone. Who reads a view reads its storage.
 * - Resident values are gone. They are always there.
 * - A view stays if it costs something, is pinned, or reads other storages too. It makes a *token*:
 *   a storage of 0 bytes on top of its base. Who reads the view reads base and token. The token is
 *   stale once its base has been made again.
 *
 * Peak and cost are the same in both graphs: docs/model.md, "Without views". */
#ifndef RM_NORMAL_H
#define RM_NORMAL_H

#include "graph/schedule.h"

typedef struct rm_normal { /* arrays live in scratch */
    const remat_graph *g;
    uint32_t n_ops, n_stores;
    uint32_t *in_begin, *in, *out_begin, *out; /* storages by op, each once, ascending */
    /* Parallel to `in`: may the op make an output in place of the storage, if that is not touched
     * afterwards? Both have as many bytes. */
    uint8_t *may_take;
    int64_t *cost, *workspace; /* by op */
    uint8_t *pinned;
    uint32_t *op;       /* by op: the op of g */
    int64_t *bytes;     /* by storage */
    uint32_t *producer; /* by storage: op */
    uint8_t *is_output; /* by storage: in memory at the end */
    uint32_t *value;    /* by storage: the value of g that owns it, or the view behind a token */
    uint32_t *base;     /* by storage: what a token stands on, or REMAT_NONE */
    uint32_t *token_begin, *tokens;         /* by storage: the tokens that stand on it */
    uint32_t *reader_begin, *readers;       /* by storage: ops, ascending */
    uint32_t *resident_begin, *resident_in; /* by op: resident storages it reads, as roots of g */
    /* By op: the ops that it runs instead, where ops are groups (plan/search/node_groups.c). Else
     * both are NULL. */
    uint32_t *member_begin, *members;
    int64_t resident_bytes;
    uint8_t *collapsed; /* by op of g: it is a view that is gone */
} rm_normal;

/* A step of a search: an op to run, or n_ops + a storage to fetch. */
typedef uint32_t rm_code;
typedef RM_VEC(rm_code) rm_codes;
static inline bool rm_is_fetch(const rm_normal *nm, rm_code code) { return code >= nm->n_ops; }

/* Does it take no memory to keep? A token keeps its base. */
static inline bool rm_is_free(const rm_normal *nm, uint32_t store)
{
    return nm->bytes[store] == 0 && nm->base[store] == REMAT_NONE;
}

/* Is it a view that costs nothing, and stays because it reads several storages? It can run directly
 * before whoever reads it. So it counts neither as a row nor as touching anything. */
static inline bool rm_is_free_view(const rm_normal *nm, uint32_t op)
{
    return nm->cost[op] == 0 && nm->workspace[op] == 0 && !nm->pinned[op] &&
           rm_is_view_op(nm->g, nm->op[op]);
}

remat_status rm_normal_of(remat_ctx *ctx, const remat_graph *g, rm_normal *out);
void rm_normal_check(const rm_normal *nm); /* normal_check.c: asserts its invariants */
/* Fills what follows from the lists of storages: producer, readers, tokens. */
remat_status rm_normal_index(remat_ctx *ctx, rm_normal *nm);
/* Appends the codes to out as steps of g. Views run just before they are read. A storage that is
 * fetched is offloaded right after its op first ran. The codes must be a valid order. */
remat_status rm_normal_expand(remat_ctx *ctx, const rm_normal *nm, const rm_code *codes, size_t n,
                              rm_schedule *out);

#endif
