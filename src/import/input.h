/* input.h: a file's content, parsed but not yet understood, and the tools that readers share.
 *
 * Readers say where they are by a place: "nodes[7].in[1]". A place becomes text only when something
 * is wrong. */
#ifndef RM_INPUT_H
#define RM_INPUT_H

#include "graph/graph.h"
#include "import/json.h"

typedef enum rm_dialect {
    RM_REMAT_JSON,
    RM_NETWORKX,
    RM_DOT,
    RM_DIMACS,
    RM_SPANS_CSV,
    RM_ZOO
} rm_dialect;

struct remat_input {
    remat_alloc heap;
    remat_kind kind;
    rm_dialect dialect;
    const rm_json *json; /* RM_REMAT_JSON and RM_NETWORKX */
    rm_arena tree;       /* where json lies */
    char *text;          /* the file, decompressed, or RM_ZOO's spec; ends with a 0 */
    size_t text_size;    /* with the 0 */
    char name[160];
};

/* An empty one, to be filled. */
remat_status rm_input_new(remat_ctx *ctx, const char *name, remat_input **out);
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

/* REMAT_E_INPUT, with a message that names the place. */
remat_status rm_bad(remat_ctx *ctx, rm_place place, const char *format, ...) RM_PRINTF(3, 4);

/* fields.c: an object whose members are read by key. */
typedef struct rm_fields {
    remat_ctx *ctx;
    const rm_json *object;
    rm_place place; /* of the object: without key and item */
} rm_fields;

rm_fields rm_root_fields(remat_ctx *ctx, const remat_input *input);
rm_place rm_place_of(const rm_fields *f, const char *key); /* of a member */

/* `*out` is untouched where the member is absent or null. */
remat_status rm_get_int(const rm_fields *f, const char *key, int64_t low,
                        int64_t *out); /* >= low */
remat_status rm_get_bool(const rm_fields *f, const char *key, bool *out);
remat_status rm_get_string(const rm_fields *f, const char *key, const char **out);
remat_status rm_get_choice(const rm_fields *f, const char *key, const char *const *names,
                           size_t n_names, uint32_t *out);
/* These must be there. Indices lie in scratch. */
remat_status rm_get_array(const rm_fields *f, const char *key, const rm_json **out);
remat_status rm_get_indices(const rm_fields *f, const char *key, const uint32_t **items,
                            uint32_t *n);
remat_status rm_require(const rm_fields *f, const char *key);
remat_status rm_check_object(remat_ctx *ctx, const rm_json *object, rm_place place);
remat_status rm_check_version(const rm_fields *root);
/* The members whose keys are not in `known`, as JSON text without braces, in scratch; "" if there
 * are none. `known` ends with NULL. */
remat_status rm_get_extra(const rm_fields *f, const char *const *known, const char **out);

/* ---- readers: one file each ---- */

/* batch_size 0: as in the file. */
remat_status rm_read_graph(remat_ctx *ctx, const remat_input *input, int64_t batch_size,
                           remat_builder *b);
remat_status rm_read_networkx(remat_ctx *ctx, const remat_input *input, remat_builder *b);
remat_status rm_read_dot(remat_ctx *ctx, const remat_input *input, remat_builder *b);

/* networkx and DOT: ops with one value each, and edges between them (dag.c). */
typedef struct rm_dag_node {
    const char *name;
    int64_t size;
    int64_t cost; /* REMAT_ABSENT: none */
    uint8_t phase;
} rm_dag_node;
typedef struct rm_dag_edge {
    uint32_t from, to;
} rm_dag_edge;
typedef struct rm_dag {
    rm_dag_node *nodes;
    rm_dag_edge *edges;
    size_t n_nodes, n_edges;
    /* A permutation of the nodes. NULL: array order if that is topological, else a stable sort. */
    const uint32_t *order;
} rm_dag;
remat_status rm_dag_build(remat_ctx *ctx, const rm_dag *dag, remat_builder *b);

#endif
