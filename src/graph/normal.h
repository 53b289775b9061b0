/* normal.h: the graph as searches want it: ops, the storages they read and make, and nothing else.
 *
 * Views that cost nothing are gone: who reads a view reads its storage. Resident values are gone:
 * they are always there. A view that stays (it costs something, is pinned, or reads other storages
 * too) makes a *token*: a storage of 0 bytes on top of its base. Who reads the view reads base and
 * token, and the token is stale once its base has been made again. Peak and cost are the same in
 * both worlds: docs/model.md, "Without views". */
#ifndef RM_NORMAL_H
#define RM_NORMAL_H

#include "graph/schedule.h"

typedef struct rm_normal { /* arrays live in scratch */
    const remat_graph *g;
    uint32_t n_ops, n_stores;
    uint32_t *in_begin, *in, *out_begin, *out; /* storages by op, each once, ascending */
    int64_t *cost, *workspace;                 /* by op */
    uint8_t *pinned;
    uint32_t *op; /* by op: the op of g */
    int64_t *bytes;
    uint32_t *producer; /* by storage: op */
    uint8_t *is_output; /* by storage: in memory at the end */
    uint32_t *value;    /* by storage: the value of g that owns it, or the view behind a token */
    uint32_t *base;     /* by storage: what a token stands on, or REMAT_NONE */
    uint32_t *token_begin, *tokens;   /* by storage: the tokens that stand on it */
    uint32_t *reader_begin, *readers; /* by storage: ops, ascending */
    uint32_t *resident_begin,
        *resident_in;                 /* by op: resident storages it reads, as root values of g */
    uint32_t *member_begin, *members; /* by op: what it runs instead, if it is a group
                                         (plan/search/node_groups.c); else NULL */
    int64_t resident_bytes;
    uint8_t *collapsed; /* by op of g */
} rm_normal;

/* A step of a search: an op to run, or n_ops + a storage to fetch. */
typedef uint32_t rm_code;
typedef RM_VEC(rm_code) rm_codes;
static inline bool rm_is_fetch(const rm_normal *nm, rm_code code) { return code >= nm->n_ops; }

/* Does keeping it cost nothing? A token costs its base. */
static inline bool rm_is_free(const rm_normal *nm, uint32_t store)
{
    return nm->bytes[store] == 0 && nm->base[store] == REMAT_NONE;
}

/* Views that cost nothing but read several storages stay in the normal graph. They can run directly
 * before whoever reads them, so they count neither as rows nor as touching anything. */
static inline bool rm_is_free_view(const rm_normal *nm, uint32_t op)
{
    return nm->cost[op] == 0 && nm->workspace[op] == 0 && !nm->pinned[op] &&
           rm_is_view_op(nm->g, nm->op[op]);
}

remat_status rm_normal_of(remat_ctx *ctx, const remat_graph *g, rm_normal *out);
void rm_normal_check(const rm_normal *nm); /* normal_check.c: asserts what holds of it */
/* Fills what follows from the lists of storages: producer, readers, tokens. */
remat_status rm_normal_index(remat_ctx *ctx, rm_normal *nm);
/* The codes as steps of g: views run just before they are read, each fetched storage is offloaded
 * right after its op first ran. Appends to out. The codes must be a valid order. */
remat_status rm_normal_expand(remat_ctx *ctx, const rm_normal *nm, const rm_code *codes, size_t n,
                              rm_schedule *out);

#endif
