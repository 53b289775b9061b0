/* graph.h: the frozen graph and the builder behind it. docs/model.md says what the fields mean.
 *
 * Arrays are indexed by value or by op. Lists are as in base/csr.h: the inputs of `op` are
 * in[in_begin[op] .. in_begin[op + 1]). Strings are offsets into `text`, where offset 0 is "".
 *
 * Invariant: an op reads resident values and values made by earlier ops, nothing else. So array
 * order is a valid schedule: keep-all. */
#ifndef RM_GRAPH_H
#define RM_GRAPH_H

#include "base/base.h"
#include "base/vec.h"

struct remat_graph {
    remat_alloc heap;
    size_t block_size;
    uint32_t n_ops, n_values, n_outputs, n_in, n_out, n_dims, n_text;
    uint32_t n_inplace; /* outputs that may take an input's storage */
    uint32_t n_original_ops, n_original_values;
    unsigned flags;         /* what prepare did to the original */
    int64_t align;          /* storages that ops make and workspaces are multiples of it; 1: any */
    int64_t resident_bytes; /* of the values that no op makes */
    int64_t total_cost;     /* of running every op once */
    char digest[80];        /* "sha256:..." of the original */
    char cost_model[32];    /* "roofline:h100" */
    const char *cost_unit;  /* "ns" */
    uint32_t name, given_unit, extra;

    /* by value */
    int64_t *size;
    int64_t *storage;   /* bytes of its root's allocation */
    uint32_t *alias;    /* the value it was declared a view of, or REMAT_NONE */
    uint32_t *root;     /* the value that owns the storage */
    uint32_t *producer; /* op, or REMAT_NONE: resident */
    uint32_t *dims_begin;
    uint32_t *value_name, *value_dtype, *value_extra;
    uint32_t *value_original; /* index in the original graph */
    uint8_t *value_kind, *is_output;
    int64_t *dims;

    /* by op */
    uint32_t *in_begin, *in, *out_begin, *out;
    /* Parallel to out: the input, or earlier output, whose storage instance an alias output takes.
     * REMAT_NONE: it makes a new storage. */
    uint32_t *out_source;
    /* Parallel to out: the input, counted from the op's first, whose storage instance the output
     * may take if nobody touches that afterwards. They have equal bytes. REMAT_NONE: none. */
    uint32_t *out_takes;
    int64_t *cost;
    int64_t *given_cost, *flops; /* REMAT_ABSENT where the file has none */
    int64_t *workspace;
    uint32_t *op_name, *op_target, *op_extra;
    uint32_t *op_original; /* index in the original graph */
    /* Ops with the same number fuse, and with no others. REMAT_NONE: fusion decides. */
    uint32_t *kernel;
    uint8_t *phase, *op_class;
    uint8_t *pinned; /* the file pins it, or it is random and not replayed */
    uint8_t *replay;
    uint8_t *says_pinned; /* the file pins it */

    uint32_t *outputs;
    uint32_t *op_now, *value_now; /* by original index: index here; REMAT_NONE: dropped */
    char *text;
};

static inline const char *rm_text(const remat_graph *g, uint32_t offset)
{
    return g->text + offset;
}
/* Is it `remat.boundary`, where the forward pass hands over to the backward pass? */
bool rm_is_boundary(const remat_graph *g, uint32_t op);
static inline bool rm_is_resident(const remat_graph *g, uint32_t value)
{
    return g->producer[g->root[value]] == REMAT_NONE;
}
static inline bool rm_owns_storage(const remat_graph *g, uint32_t value)
{
    return g->root[value] == value;
}
/* The value whose storage instance output k of g->out may take, or REMAT_NONE. `op` makes it. */
static inline uint32_t rm_taken_value(const remat_graph *g, uint32_t op, uint32_t k)
{
    return g->out_takes[k] == REMAT_NONE ? REMAT_NONE : g->in[g->in_begin[op] + g->out_takes[k]];
}
/* Does it have outputs, all of them aliases? */
bool rm_is_view_op(const remat_graph *g, uint32_t op);

/* The names that files use, by enum value (graph.c). */
extern const char *const rm_value_kinds[REMAT_CONST + 1];
extern const char *const rm_phases[REMAT_BACKWARD + 1];
extern const char *const rm_classes[REMAT_CLASS_RANDOM + 1];

/* ---- builder (builder.c): readers, the zoo, prepare and public functions fill it in ---- */

typedef struct rm_value_record {
    int64_t size;
    int64_t storage; /* REMAT_ABSENT: as size */
    uint32_t alias, kind, name, dtype, extra, dims_begin, n_dims, original;
} rm_value_record;

typedef struct rm_op_record {
    int64_t cost, flops, workspace;
    uint32_t in_begin, n_in, out_begin, n_out, name, target, extra, original;
    uint32_t kernel; /* or REMAT_NONE */
    uint8_t phase, op_class, pinned, replay;
} rm_op_record;

/* Output `out` of the op may take the storage of its input `in`. */
typedef struct rm_inplace_record {
    uint32_t op, out, in;
} rm_inplace_record;

struct remat_builder {
    remat_ctx *ctx;
    remat_alloc heap;    /* so that it may be freed after its context */
    remat_status status; /* of the first mistake */
    rm_error error;      /* of the first mistake */
    uint32_t name, extra, cost_unit;
    RM_VEC(rm_value_record) values;
    RM_VEC(rm_op_record) ops;
    RM_VEC(rm_inplace_record) inplace;
    RM_VEC(uint32_t) lists; /* all input and output lists */
    RM_VEC(uint32_t) outputs;
    RM_VEC(int64_t) dims;
    RM_VEC(char) text;
    /* For prepare: where `original` indices, flags and digest come from. Else NULL. */
    const remat_graph *original;
    unsigned flags;
};

uint32_t rm_builder_text(remat_builder *b, const char *text); /* NULL: "" */
void rm_builder_fail(remat_builder *b, remat_status status);  /* remembers ctx->error */

/* ---- passes over a graph ---- */

void rm_graph_digest(const remat_graph *g, char digest[80]); /* digest.c */
/* cost.c: sets the costs by the model of that name. NULL: the default model. */
remat_status rm_cost_apply(remat_ctx *ctx, remat_graph *g, const char *name);
/* Warns if some ops of a file have costs and others do not: the former are then not used. */
void rm_cost_warn(remat_ctx *ctx, const remat_graph *g);
/* "roofline:..." or "fused:...": a kernel may have costs of its own. */
bool rm_cost_is_roofline(const remat_graph *g);
bool rm_cost_is_fused(const remat_graph *g);
/* The device of such a graph, and what it takes, rounded up, or INT64_MAX. */
typedef struct rm_device rm_device;
remat_status rm_device_find(remat_ctx *ctx, const remat_graph *g, const rm_device **out);
int64_t rm_device_compute_ns(const rm_device *d, const remat_graph *g, uint32_t op);
int64_t rm_device_memory_ns(const rm_device *d, int64_t bytes);
/* The unit of the model. NULL for "given". */
remat_status rm_cost_unit(remat_ctx *ctx, const char *name, const char **unit);
/* prepare.c: a copy with all flags but REMAT_FUSE and REMAT_INPLACE applied, and with costs by the
 * model. NULL: by the model of `graph`. */
remat_status rm_prepare(remat_ctx *ctx, const remat_graph *graph, unsigned flags,
                        const char *cost_model, remat_graph **out);
/* Rounds what lies in an arena up to multiples of `align`, a power of two: storages that ops make,
 * and workspaces. REMAT_E_INPUT: sums pass 2^62. */
remat_status rm_graph_round(remat_ctx *ctx, remat_graph *g, int64_t align);
/* Says of each op whether REMAT_DCE keeps it, given the other flags. */
void rm_mark_live_ops(const remat_graph *g, unsigned flags, uint8_t *live);

typedef struct rm_need {
    int64_t bytes;
    uint32_t op; /* where so much is needed; REMAT_NONE: behind the last step, for all outputs */
} rm_need;
/* need.c: the least budget of any schedule. With `offload`, schedules may offload and fetch. */
remat_status rm_need_find(remat_ctx *ctx, const remat_graph *g, bool offload, rm_need *out);
/* least_peak.c: if out->bytes is more than from.bytes, no schedule without fetches has a lower
 * peak, and out->op is why: to have its inputs together takes so much. Else *out is `from`.
 * known: some schedule's peak, or INT64_MAX; more cannot be proved, so it ends there.
 * work: how many members of sets it looks at. */
#define RM_LEAST_PEAK_WORK INT64_C(30000000) /* at most; some tenths of a second */
remat_status rm_least_peak_find(remat_ctx *ctx, const remat_graph *g, rm_need from, int64_t known,
                                int64_t work, rm_need *out);
/* The values whose storages are in memory at need.op whatever the schedule, largest first. All of
 * them, the resident bytes and the op's workspace, if there is an op, add up to the need. At most
 * `capacity` of them are written. */
remat_status rm_need_values(remat_ctx *ctx, const remat_graph *g, bool offload, uint32_t *values,
                            uint32_t capacity, uint32_t *n_values);

#endif
