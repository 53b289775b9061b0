/* input.h: a file's content, parsed but not yet understood, and the tools its readers share.
 *
 * Readers say where they are by a place: "nodes[7].in[1]". A place is only written down when
 * something is wrong. */
#ifndef RM_INPUT_H
#define RM_INPUT_H

#include "graph/graph.h"
#include "import/json.h"

typedef enum rm_dialect { RM_REMAT_JSON, RM_NETWORKX, RM_DOT, RM_DIMACS, RM_ZOO } rm_dialect;

struct remat_input {
    remat_alloc heap;
    remat_kind kind;
    rm_dialect dialect;
    const rm_json *json; /* RM_REMAT_JSON and RM_NETWORKX */
    rm_arena tree;       /* where json lies */
    char *text; /* the file, decompressed, or RM_ZOO's spec; 0-terminated, text_size bytes with the
                   0 */
    size_t text_size;
    char name[160];
};

remat_status rm_input_new(remat_ctx *ctx, const char *name,
                          remat_input **out); /* an empty one, to be filled */
remat_status rm_input_fill(remat_ctx *ctx, remat_input *input, const void *bytes, size_t n_bytes);
remat_status rm_input_set_text(remat_ctx *ctx, remat_input *input, const char *text, size_t n);

/* Where in a JSON file: list[index].key[item]; NULL and RM_NO_ITEM leave parts out. */
typedef struct rm_place {
    const char *list;
    size_t index;
    const char *key;
    size_t item;
} rm_place;
#define RM_NO_ITEM SIZE_MAX

remat_status rm_bad(remat_ctx *ctx, rm_place place, const char *format, ...)
    RM_PRINTF(3, 4); /* REMAT_E_INPUT */

/* The member `place.key` of `object`; `*out` is untouched if it is absent or null. `low` is the
 * least value allowed. */
remat_status rm_get_int(remat_ctx *ctx, const rm_json *object, rm_place place, int64_t low,
                        int64_t *out);
remat_status rm_get_bool(remat_ctx *ctx, const rm_json *object, rm_place place, bool *out);
remat_status rm_get_string(remat_ctx *ctx, const rm_json *object, rm_place place, const char **out);
remat_status rm_get_choice(remat_ctx *ctx, const rm_json *object, rm_place place,
                           const char *const *names, size_t n_names, uint32_t *out);
remat_status rm_get_array(remat_ctx *ctx, const rm_json *object, rm_place place,
                          const rm_json **out);
/* A list of indices, in scratch. */
remat_status rm_get_indices(remat_ctx *ctx, const rm_json *object, rm_place place,
                            const uint32_t **items, uint32_t *n);
remat_status rm_require(remat_ctx *ctx, const rm_json *object, rm_place place);
remat_status rm_check_object(remat_ctx *ctx, const rm_json *object, rm_place place);
remat_status rm_check_version(remat_ctx *ctx, const rm_json *object);
/* The members whose keys are not in `known` (ends with NULL) as JSON text without braces, in
 * scratch; "" if there are none. */
remat_status rm_get_extra(remat_ctx *ctx, const rm_json *object, const char *const *known,
                          const char **out);

/* ---- readers: one file each ---- */
remat_status rm_read_graph(remat_ctx *ctx, const remat_input *input, int64_t batch_size,
                           remat_builder *b); /* batch_size 0: as in the file */
remat_status rm_read_networkx(remat_ctx *ctx, const remat_input *input, remat_builder *b);
remat_status rm_read_dot(remat_ctx *ctx, const remat_input *input, remat_builder *b);

/* networkx and DOT: ops with one value each, and edges between them (dag.c). */
typedef struct rm_dag_node {
    const char *name;
    int64_t size, cost;
    uint8_t phase;
} rm_dag_node; /* cost: REMAT_ABSENT: none */
typedef struct rm_dag_edge {
    uint32_t from, to;
} rm_dag_edge;
typedef struct rm_dag {
    rm_dag_node *nodes;
    rm_dag_edge *edges;
    size_t n_nodes, n_edges;
    const uint32_t *order; /* a permutation of the nodes, or NULL: array order if that is
                              topological, else a stable sort */
} rm_dag;
remat_status rm_dag_build(remat_ctx *ctx, const rm_dag *dag, remat_builder *b);

#endif
