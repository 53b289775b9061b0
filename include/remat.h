/* remat: make a training step fit a memory budget.
 *
 *     remat_ctx *ctx = remat_ctx_new(NULL);
 *     remat_graph *graph = NULL;
 *     remat_plan *plan = NULL;
 *     if (remat_graph_load(ctx, "resnet50.json.gz", &graph) == REMAT_OK &&
 *         remat_plan_make(ctx, graph, "chen-sqrt", (int64_t)8 << 30, &plan) == REMAT_OK) {
 *         size_t n_steps;
 *         const remat_step *steps = remat_plan_steps(plan, &n_steps); // ops to run, in order, some
 * of them twice printf("%zu steps, peak %lld bytes\n", n_steps, (long
 * long)remat_plan_summary(plan)->peak_bytes); } else { fprintf(stderr, "%s\n",
 * remat_ctx_error(ctx));
 *     }
 *     remat_plan_free(plan), remat_graph_free(graph), remat_ctx_free(ctx);
 *
 * Rules that hold everywhere. Sizes are bytes and costs are integers, both int64_t, below 2^62. On
 * success the caller owns `*out`; on failure it is untouched and remat_ctx_error() has one line
 * that says why. Pointers must not be NULL, but names may, and every _free accepts it. A context
 * serves one thread at a time. What it makes is immutable, may be read by many threads with a
 * context each, and may be freed after it. The library never prints, exits or sets a signal
 * handler; it forks only where checkmate and checkmate-lp run their solver. What the words mean:
 * docs/model.md.
 *
 * Structs that you allocate and the library fills begin with `size`: the library writes no more
 * than that. Begin with `remat_verdict v = REMAT_VERDICT_INIT;` and the like.
 *
 * Indices. remat_graph_prepare may drop ops, so the copy has indices of its own: accessors,
 * remat_info and need_values speak of the graph they are given. Steps, plans, verdicts and
 * statements always name ops and values of the original graph. */
#ifndef REMAT_H
#define REMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REMAT_VERSION_MAJOR 0 /* the only place the version is written: the build reads it here */
#define REMAT_VERSION_MINOR 1
#define REMAT_VERSION_PATCH 0

#define REMAT_NONE UINT32_MAX        /* "no such index" */
#define REMAT_ABSENT ((int64_t) - 1) /* "not given" */

typedef struct remat_ctx remat_ctx;         /* options, allocator, callbacks, the last error */
typedef struct remat_input remat_input;     /* a parsed file of any kind */
typedef struct remat_graph remat_graph;     /* ops, values and costs; immutable */
typedef struct remat_builder remat_builder; /* a graph under construction */
typedef struct remat_chain remat_chain;     /* a chain of stages (Rotor's model); immutable */
typedef struct remat_plan remat_plan;       /* a schedule with its numbers; immutable */
typedef struct remat_network remat_network; /* a maximum-flow problem; immutable */
typedef struct remat_program
    remat_program; /* a schedule with its allocations and frees; immutable */

/* The program exits with these. They never change. */
typedef enum remat_status {
    REMAT_OK = 0,
    REMAT_E_USAGE = 1,       /* a call or a flag is wrong */
    REMAT_E_INPUT = 2,       /* a file is wrong */
    REMAT_E_IO = 3,          /* reading or writing failed */
    REMAT_E_MEMORY = 4,      /* out of memory */
    REMAT_E_PLAN = 5,        /* a plan you gave is invalid */
    REMAT_E_APPLIES = 6,     /* the strategy does not apply to this graph */
    REMAT_E_BUG = 9,         /* a plan that we made is invalid: please report it */
    REMAT_E_INFEASIBLE = 10, /* proved: no plan fits the budget (remat_plan_status) */
    REMAT_E_NOT_FOUND = 11,  /* no plan within the budget was found (remat_plan_status) */
} remat_status;

/* ---- context ---- */

typedef struct remat_alloc { /* one function, as realloc: new_size 0 frees, NULL p allocates; NULL
                                result: no memory. Aligned for any type. */
    void *(*resize)(void *user, void *p, size_t old_size, size_t new_size);
    void *user;
} remat_alloc;

typedef struct remat_progress {
    const char *strategy;
    int permille;             /* done so far */
    int64_t cost, peak_bytes; /* of the best plan so far; REMAT_ABSENT before the first */
    int64_t work;             /* spent so far */
    int64_t
        bound_cost; /* nothing that the strategy looks for costs less; REMAT_ABSENT: not known */
} remat_progress;

typedef struct remat_option {
    const char *name, *help;
    int64_t initial, low, high;
} remat_option;

remat_ctx *
remat_ctx_new(const remat_alloc *hooks); /* NULL hooks: the C library; NULL result: no memory */
void remat_ctx_free(remat_ctx *ctx);
/* From any thread or signal handler: the planning call that runs, or else the next one, returns the
 * best it has so far. */
void remat_ctx_stop(remat_ctx *ctx);
void remat_ctx_resume(remat_ctx *ctx); /* takes back a stop that no call has obeyed */
remat_status remat_ctx_set(remat_ctx *ctx, const char *option, int64_t value);
remat_status remat_ctx_get(remat_ctx *ctx, const char *option, int64_t *out);
size_t remat_option_count(void);
const remat_option *remat_option_at(size_t index); /* NULL past the end, as every _at */
void remat_ctx_on_progress(remat_ctx *ctx, void (*fn)(void *user, const remat_progress *),
                           void *user);
void remat_ctx_on_warning(remat_ctx *ctx, void (*fn)(void *user, const char *line), void *user);

/* The last failure: one line, and its parts ("" where there is none). Never NULL. */
const char *remat_ctx_error(const remat_ctx *ctx);
const char *remat_ctx_error_file(const remat_ctx *ctx);
const char *remat_ctx_error_place(const remat_ctx *ctx); /* "nodes[7].in[1]", "line 3 column 9" */
const char *remat_ctx_error_reason(const remat_ctx *ctx);

/* ---- files ---- */

typedef enum remat_kind {
    REMAT_KIND_GRAPH = 0,
    REMAT_KIND_CHAIN = 1,
    REMAT_KIND_PLAN = 2,
    REMAT_KIND_NETWORK = 3
} remat_kind;
typedef enum remat_format { REMAT_JSON = 0, REMAT_JSON_GZ = 1, REMAT_DOT = 2 } remat_format;
/* Receives the bytes of a file being written; anything but 0 stops the writer with REMAT_E_IO. */
typedef int remat_sink(void *user, const void *bytes, size_t n_bytes);

/* `source` is a path, "-" for standard input, or "zoo:NAME?key=value&..." for an embedded model.
 * The content decides the format: remat-graph, remat-chain, remat-plan or networkx node-link JSON,
 * DOT, or a DIMACS maximum-flow problem; plain or gzip. */
remat_status remat_input_open(remat_ctx *ctx, const char *source, remat_input **out);
remat_status remat_input_parse(remat_ctx *ctx, const char *name, const void *bytes, size_t n_bytes,
                               remat_input **out);
remat_kind remat_input_kind(const remat_input *input);
void remat_input_free(remat_input *input);

/* ---- graphs ---- */

typedef enum remat_phase {
    REMAT_PHASE_NONE = 0,
    REMAT_FORWARD = 1,
    REMAT_BACKWARD = 2
} remat_phase;
typedef enum remat_class {
    REMAT_CLASS_OTHER = 0,
    REMAT_CLASS_COMPUTE = 1,
    REMAT_CLASS_FUSIBLE = 2,
    REMAT_CLASS_VIEW = 3,
    REMAT_CLASS_RANDOM = 4
} remat_class;
typedef enum remat_value_kind {
    REMAT_TEMPORARY = 0,
    REMAT_PARAM = 1,
    REMAT_BUFFER = 2,
    REMAT_INPUT = 3,
    REMAT_CONST = 4
} remat_value_kind;
typedef enum remat_value_attr {
    REMAT_VALUE_SIZE = 0,     /* bytes of the tensor itself */
    REMAT_VALUE_STORAGE = 1,  /* bytes of its allocation; that of its root for a view */
    REMAT_VALUE_ALIAS = 2,    /* the value it is a view of, or REMAT_ABSENT */
    REMAT_VALUE_KIND = 3,     /* remat_value_kind */
    REMAT_VALUE_ROOT = 4,     /* read only: the value that owns the storage, itself if it does */
    REMAT_VALUE_PRODUCER = 5, /* read only: the op that makes it, or REMAT_ABSENT: resident */
} remat_value_attr;
typedef enum remat_op_attr {
    REMAT_OP_COST = 0,  /* in effect, by the graph's cost model */
    REMAT_OP_FLOPS = 1, /* or REMAT_ABSENT */
    REMAT_OP_WORKSPACE = 2,
    REMAT_OP_PHASE = 3,  /* remat_phase */
    REMAT_OP_CLASS = 4,  /* remat_class */
    REMAT_OP_PINNED = 5, /* 1: runs exactly once, in order among pinned ops; so do random ops
                            without REMAT_OP_REPLAY */
    REMAT_OP_REPLAY =
        6, /* 1: random, but its generator state is replayed, so it need not be pinned */
    REMAT_OP_KERNEL = 7, /* ops with the same number fuse, and with no others; or REMAT_ABSENT */
    REMAT_OP_GIVEN_COST = 8, /* read only: the cost that was set, or REMAT_ABSENT */
} remat_op_attr;

typedef struct remat_info {
    size_t size;
    uint32_t ops, values, storages, views, multi_output, pinned, dead, cut_values;
    int64_t resident_bytes, keep_all_peak_bytes, keep_all_cost, need_bytes;
    uint32_t keep_all_peak_step;
    uint32_t need_op; /* the op that forces need_bytes, or REMAT_NONE */
} remat_info;
#define REMAT_INFO_INIT {sizeof(remat_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

enum {
    REMAT_DCE = 1,
    REMAT_FOLD_IDENTITY = 2,
    REMAT_NO_ALIAS = 4,
    REMAT_REPLAY_RANDOM = 8,
    REMAT_FUSE = 16
};

remat_status remat_graph_load(remat_ctx *ctx, const char *source,
                              remat_graph **out); /* open, read, close */
remat_status remat_graph_read(remat_ctx *ctx, const remat_input *input, remat_graph **out);
/* At another batch size: an embedded model is built anew, a remat-graph file scaled by its `batch`
 * and `size_per_batch` (docs/format.md). REMAT_E_INPUT: it does not say how it grows, or sizes pass
 * 2^62. */
remat_status remat_graph_read_batch(remat_ctx *ctx, const remat_input *input, int64_t batch,
                                    remat_graph **out);
remat_status remat_graph_write(remat_ctx *ctx, const remat_graph *graph, remat_format format,
                               remat_sink *sink, void *user);
void remat_graph_free(remat_graph *graph);
/* A copy with `flags` (REMAT_DCE | ...) applied and costs by `cost_model`: "given", "unit", "node",
 * "flops", "roofline:DEVICE", or NULL to keep the costs it has. The copy remembers the original:
 * plans made with it name the original's ops. */
remat_status remat_graph_prepare(remat_ctx *ctx, const remat_graph *graph, unsigned flags,
                                 const char *cost_model, remat_graph **out);
remat_status remat_graph_info(remat_ctx *ctx, const remat_graph *graph, remat_info *out);
/* The values that are in memory together at need_op whatever the plan: at most `capacity` of them,
 * largest first. */
remat_status remat_graph_need_values(remat_ctx *ctx, const remat_graph *graph, uint32_t *values,
                                     uint32_t capacity, uint32_t *n_values);

const char *remat_graph_name(const remat_graph *graph);
const char *remat_graph_digest(const remat_graph *graph);     /* "sha256:..." of the original */
const char *remat_graph_cost_model(const remat_graph *graph); /* "roofline:h100", ... */
const char *remat_graph_cost_unit(const remat_graph *graph);  /* "ns", "unit", ... */
uint32_t remat_graph_n_ops(const remat_graph *graph);
uint32_t remat_graph_n_values(const remat_graph *graph);
const char *remat_graph_op_name(const remat_graph *graph, uint32_t op); /* "" past the end */
const char *remat_graph_op_target(const remat_graph *graph,
                                  uint32_t op); /* what it calls: "aten.mm.default" */
const char *remat_graph_value_name(const remat_graph *graph, uint32_t value);
const char *remat_graph_value_dtype(const remat_graph *graph, uint32_t value); /* "" if unknown */
const int64_t *remat_graph_value_shape(const remat_graph *graph, uint32_t value, uint32_t *rank);
int64_t remat_graph_op_get(const remat_graph *graph, uint32_t op, remat_op_attr attr);
int64_t remat_graph_value_get(const remat_graph *graph, uint32_t value, remat_value_attr attr);
const uint32_t *remat_graph_op_in(const remat_graph *graph, uint32_t op, uint32_t *n);
const uint32_t *remat_graph_op_out(const remat_graph *graph, uint32_t op, uint32_t *n);
const uint32_t *remat_graph_outputs(const remat_graph *graph, uint32_t *n);

/* Build a graph without a file. Calls need no checks between: a wrong call (no such value, no such
 * attribute) or lack of memory is remembered for good and returned by finish, which also checks the
 * graph itself (what can be mended, may be, and finished again). Indices count from 0 in order of
 * creation. A value that no op lists in `out` is resident. */
remat_builder *remat_builder_new(remat_ctx *ctx, const char *name); /* NULL: no memory */
uint32_t remat_builder_value(remat_builder *b, const char *name, int64_t size_bytes);
uint32_t remat_builder_view(remat_builder *b, const char *name, int64_t size_bytes, uint32_t base);
void remat_builder_value_set(remat_builder *b, uint32_t value, remat_value_attr attr, int64_t x);
void remat_builder_value_tensor(remat_builder *b, uint32_t value, const char *dtype,
                                const int64_t *shape, uint32_t rank);
uint32_t remat_builder_op(remat_builder *b, const char *name, const uint32_t *in, uint32_t n_in,
                          const uint32_t *out, uint32_t n_out);
void remat_builder_op_set(remat_builder *b, uint32_t op, remat_op_attr attr, int64_t x);
void remat_builder_op_target(remat_builder *b, uint32_t op, const char *target);
void remat_builder_output(remat_builder *b, uint32_t value);
void remat_builder_cost_unit(remat_builder *b, const char *unit); /* of given costs; else "ns" */
remat_status remat_builder_finish(remat_builder *b,
                                  remat_graph **out); /* may be called again after more additions */
void remat_builder_free(remat_builder *b);

/* ---- what may run again (strategy mincut) ---- */

typedef enum remat_ban {
    REMAT_BAN_NONE = 0,
    REMAT_BAN_PINNED = 1,
    REMAT_BAN_RANDOM = 2,
    REMAT_BAN_COMPUTE = 3, /* bound by arithmetic */
    REMAT_BAN_OTHER = 4,   /* not known to be fusible */
    REMAT_BAN_REDUCTION =
        5,              /* its output is much smaller than its input (option reduction_factor) */
    REMAT_BAN_READ = 6, /* an op of the backward pass that cannot be fused with it reads it */
} remat_ban;
typedef struct remat_recompute_rule {
    remat_class op_class; /* in effect */
    bool in_forward;      /* can be computed before the backward pass begins; only such an op can be
                             banned */
    remat_ban ban;
} remat_recompute_rule;

/* Ops whose target is `target`, or begins with it and a dot, are of this class from now on,
 * whatever files and tables say. */
remat_status remat_ctx_class(remat_ctx *ctx, const char *target, remat_class op_class);
void remat_ctx_class_clear(remat_ctx *ctx); /* files and tables decide again */
/* `out` has room for a rule per op of this graph. REMAT_E_APPLIES if it has no forward and backward
 * pass. */
remat_status remat_graph_recompute_rules(remat_ctx *ctx, const remat_graph *graph,
                                         remat_recompute_rule *out);
const char *remat_class_name(remat_class op_class); /* "fusible"; NULL past the end */
const char *remat_ban_reason(remat_ban ban); /* "compute", ...; "" for none; NULL past the end */

/* Embedded models and strategies, by name. */
typedef struct remat_entry {
    const char *name, *help;
} remat_entry;
const remat_entry *remat_zoo_at(size_t index); /* help: parameters with their defaults */
const remat_entry *remat_strategy_at(size_t index);
const remat_entry *
remat_device_at(size_t index); /* of the roofline cost model; help: rates and their source */

/* ---- plans ---- */

#define REMAT_BUDGET_NONE ((int64_t) - 1) /* no limit */
#define REMAT_BUDGET_MIN ((int64_t) - 2)  /* the least peak that the strategy finds */

typedef enum remat_step_kind {
    REMAT_RUN = 0,
    REMAT_OFFLOAD = 1,
    REMAT_FETCH = 2, /* graphs: index is an op to run, or a value to move */
    REMAT_F_ALL = 3,
    REMAT_F_CK = 4,
    REMAT_F_NONE = 5,
    REMAT_B = 6, /* chains: index is a stage, from 1 */
} remat_step_kind;
typedef struct remat_step {
    uint32_t kind, index;
} remat_step;

typedef enum remat_outcome {
    REMAT_UNKNOWN = 0,
    REMAT_FEASIBLE = 1,
    REMAT_OPTIMAL = 2,
    REMAT_INFEASIBLE = 3
} remat_outcome;
typedef enum remat_stopped {
    REMAT_DONE = 0,
    REMAT_WORK = 1,
    REMAT_TIME = 2,
    REMAT_SIGNAL = 3
} remat_stopped;

typedef struct remat_summary { /* grows at its end only; REMAT_ABSENT (strings: "") where a number
                                  is not known */
    const char *strategy, *graph, *digest, *cost_model, *cost_unit, *bound_scope, *bound_method;
    unsigned flags;       /* REMAT_DCE | ... the graph was prepared with */
    int64_t budget_bytes; /* or REMAT_BUDGET_NONE */
    int64_t peak_bytes, keep_all_peak_bytes, resident_bytes, need_bytes, cost, keep_all_cost,
        bound_cost;
    int64_t offloaded_bytes; /* copies on the host */
    int64_t saved_bytes;     /* made before the boundary between the passes, read behind it */
    int64_t traffic_bytes;   /* read and written by fused kernels; REMAT_ABSENT without phases or
                                classes */
    int64_t seed, work;      /* work: spent, in the strategy's own unit */
    uint32_t peak_step, need_op, steps, ops,
        recomputed_ops; /* recomputed_ops: ops that run more than once */
    bool within_budget;
    remat_outcome outcome;
    remat_stopped stopped;
    remat_kind kind;   /* what it is a plan for: a graph or a chain */
    int64_t bandwidth; /* of offload and fetch, as the option of that name */
    /* What crosses from the forward to the backward pass, as traffic: read once, and written where
     * it would not be otherwise. */
    int64_t cut_capacity;
} remat_summary;

typedef struct remat_verdict {
    size_t size;
    bool valid;
    int64_t peak_bytes, cost,
        host_bytes;              /* REMAT_ABSENT if invalid; host_bytes: the offloaded copies */
    uint32_t peak_step, peak_op; /* the original's op; REMAT_NONE: no step, or a transfer */
    uint32_t first_bad_step;     /* REMAT_NONE if valid, or if the fault is in no one step */
    char reason[240];
} remat_verdict;
#define REMAT_VERDICT_INIT {sizeof(remat_verdict), false, 0, 0, 0, 0, 0, 0, ""}

/* "12GiB", "900MB", "50%" of `keep_all_peak_bytes`, "min", "4096". */
remat_status remat_budget_parse(remat_ctx *ctx, const char *text, int64_t keep_all_peak_bytes,
                                int64_t *out);
/* A plan comes back even when it misses the budget: remat_plan_status() says so. Each plan has
 * passed remat_verify(). */
remat_status remat_plan_make(remat_ctx *ctx, const remat_graph *graph, const char *strategy,
                             int64_t budget_bytes, remat_plan **out);
/* The same, from a plan of the same graph for any budget: it is never worse than `start`, and
 * strategies that search begin there too. */
remat_status remat_plan_improve(remat_ctx *ctx, const remat_graph *graph, const remat_plan *start,
                                const char *strategy, int64_t budget_bytes, remat_plan **out);
/* A schedule of your own as a plan, judged, bounded and told as any other: strategy names it (NULL:
 * "given"); budget_bytes may be REMAT_BUDGET_NONE; bandwidth as for remat_verify. REMAT_E_PLAN: it
 * is invalid. */
remat_status remat_plan_of_steps(remat_ctx *ctx, const remat_graph *graph, const remat_step *steps,
                                 size_t n_steps, const char *strategy, int64_t budget_bytes,
                                 int64_t bandwidth, remat_plan **out);
remat_status remat_plan_read(remat_ctx *ctx, const remat_input *input, remat_plan **out);
remat_status remat_plan_write(remat_ctx *ctx, const remat_plan *plan, remat_format format,
                              remat_sink *sink, void *user);
void remat_plan_free(remat_plan *plan);
/* REMAT_OK: it is within its budget; or REMAT_E_INFEASIBLE or REMAT_E_NOT_FOUND, also for a plan
 * read from a file that says neither its peak nor that it fits: remat_plan_verify finds out. */
remat_status remat_plan_status(const remat_plan *plan);
const remat_summary *remat_plan_summary(const remat_plan *plan);
const remat_step *remat_plan_steps(const remat_plan *plan, size_t *n_steps);
/* What is in memory while each step of a valid schedule runs; `bytes` has room for n_steps. The
 * largest is the peak. */
remat_status remat_steps_memory(remat_ctx *ctx, const remat_graph *graph, const remat_step *steps,
                                size_t n_steps, int64_t *bytes);

enum {
    REMAT_BOUND_SINGLE = 1,
    REMAT_BOUND_FAN_OUT = 2,
    REMAT_BOUND_REGION = 4,
    REMAT_BOUND_SIDE = 8
}; /* docs/bound.md */
typedef struct remat_bound {
    size_t size;
    remat_status status; /* REMAT_E_INFEASIBLE: proved, nothing of that scope fits; need_bytes and
                            need_op say why */
    int64_t budget_bytes, cost, keep_all_cost; /* cost: no plan of that scope within the budget
                                                  costs less; or REMAT_ABSENT */
    int64_t need_bytes;                        /* the least budget that is not ruled out */
    uint32_t need_op; /* the op (of the original) that forces it, or REMAT_NONE */
    uint32_t need_values[4],
        n_need_values; /* fixed-order: the largest values in memory there, in the original */
    const char *scope, *method; /* "fixed-order": all plans whose ops run for the first time in the
                                   graph's order */
    unsigned rules;             /* REMAT_BOUND_SINGLE | ... that took part */
} remat_bound;
#define REMAT_BOUND_INIT {sizeof(remat_bound), REMAT_OK, 0, 0, 0, 0, 0, {0}, 0, "", "", 0}
/* A lower limit on the cost of plans. Plans carry the one for their own order, with a certificate.
 */
remat_status remat_bound_find(remat_ctx *ctx, const remat_graph *graph, int64_t budget_bytes,
                              remat_bound *out);

/* Both answer REMAT_OK and fill `out` whether the schedule is valid or not, and whatever the
 * context's options are. bandwidth: bytes that offload and fetch move per 1e9 cost units; 0: they
 * are free. remat_plan_verify also checks that the plan belongs to the graph and that the numbers
 * it carries are true; it takes the bandwidth from the plan. */
remat_status remat_verify(remat_ctx *ctx, const remat_graph *graph, const remat_step *steps,
                          size_t n_steps, int64_t bandwidth, remat_verdict *out);
remat_status remat_plan_verify(remat_ctx *ctx, const remat_graph *graph, const remat_plan *plan,
                               remat_verdict *out);
/* The same, and the plan's bound must be proved: by its certificate, or by running every op once.
 */
remat_status remat_plan_verify_bound(remat_ctx *ctx, const remat_graph *graph,
                                     const remat_plan *plan, remat_verdict *out);

/* ---- Checkmate's program, for other solvers ---- */

typedef struct remat_solver {
    size_t size;
    char version[32], where[512];
} remat_solver; /* version "": none was found, and `where` says why */
#define REMAT_SOLVER_INIT {sizeof(remat_solver), "", ""}
/* The solver behind checkmate and checkmate-lp: HiGHS, from the file that REMAT_HIGHS names, the
 * system's, or that of the active Python environment. */
remat_status remat_solver_find(remat_ctx *ctx, remat_solver *out);
/* The program that strategy checkmate would solve (options checkmate_plain, _splits, _order), as
 * free MPS. */
remat_status remat_milp_write(remat_ctx *ctx, const remat_graph *graph, int64_t budget_bytes,
                              remat_sink *sink, void *user);
/* The plan that a solution of it means: a file, or "-", in which names of its columns are followed
 * by their values. */
remat_status remat_milp_plan(remat_ctx *ctx, const remat_graph *graph, int64_t budget_bytes,
                             const char *source, remat_plan **out);

/* ---- lowering ---- */

typedef enum remat_statement_kind {
    REMAT_ALLOCATE = 0,
    REMAT_COMPUTE = 1,
    REMAT_DEALLOCATE = 2
} remat_statement_kind; /* COMPUTE: or a transfer */
typedef struct remat_statement {
    remat_statement_kind kind;
    remat_step step; /* COMPUTE: what runs; else the step it belongs to */
    uint32_t step_index;
    uint32_t value, reg; /* ALLOCATE, DEALLOCATE: the value that owns the storage, and the register:
                            one per storage instance */
    int64_t bytes;       /* of the storage; COMPUTE: of the workspace */
    int64_t memory_bytes; /* in use after this statement; COMPUTE: while it runs */
} remat_statement;

remat_status remat_lower(remat_ctx *ctx, const remat_graph *graph, const remat_step *steps,
                         size_t n_steps, remat_program **out);
const remat_statement *remat_program_statements(const remat_program *program, size_t *n_statements);
typedef struct remat_operand {
    uint32_t value, reg;
} remat_operand; /* the register that the value lies in; REMAT_NONE: it is resident */
/* What a step reads and makes, in the op's order, and the graph's outputs behind the last step.
 * NULL past the last step. */
const remat_operand *remat_program_step_in(const remat_program *program, size_t step, uint32_t *n);
const remat_operand *remat_program_step_out(const remat_program *program, size_t step, uint32_t *n);
const remat_operand *remat_program_outputs(const remat_program *program, uint32_t *n);
void remat_program_free(remat_program *program);
/* The schedule as a graph of its own (Checkmate, 4.8): a node for every step, repeated nodes where
 * ops run again; its keep-all has the schedule's peak and cost. REMAT_E_APPLIES: it has transfers.
 */
remat_status remat_unroll(remat_ctx *ctx, const remat_graph *graph, const remat_step *steps,
                          size_t n_steps, remat_graph **out);

/* ---- fusion ---- */

typedef struct remat_moved {
    int64_t read_bytes, written_bytes;
} remat_moved;
typedef struct remat_traffic {
    remat_moved kernels, others; /* by kernels of fused ops; by ops that do not fuse */
    int64_t total_bytes;         /* REMAT_ABSENT: it passes 2^62, and the parts mean nothing */
    uint32_t n_kernels;          /* kernels of fused ops */
} remat_traffic;
typedef struct remat_fusion {
    size_t size;
    remat_traffic unfused, before, after; /* every op by itself; in kernels; with values computed
                                             again where that moves less */
    uint32_t rounds, copies;
    remat_stopped stopped;
} remat_fusion;
#define REMAT_TRAFFIC_INIT {{0, 0}, {0, 0}, 0, 0}
#define REMAT_FUSION_INIT                                                                          \
    {sizeof(remat_fusion),                                                                         \
     REMAT_TRAFFIC_INIT,                                                                           \
     REMAT_TRAFFIC_INIT,                                                                           \
     REMAT_TRAFFIC_INIT,                                                                           \
     0,                                                                                            \
     0,                                                                                            \
     REMAT_DONE}

/* A schedule as the program of a fusing compiler: *out is a graph of its own with a node for every
 * step (repeated nodes where ops run again), each marked with its kernel, and with values computed
 * again inside the kernel that reads them where that moves fewer bytes. */
remat_status remat_fuse(remat_ctx *ctx, const remat_graph *graph, const remat_step *steps,
                        size_t n_steps, remat_fusion *fusion, remat_graph **out);
/* The kernels of a graph in its own order: by op, which one it is in, numbered in the order they
 * run; moved: room for n_ops, by kernel. */
remat_status remat_graph_kernels(remat_ctx *ctx, const remat_graph *graph, uint32_t *kernel,
                                 remat_moved *moved, uint32_t *n_kernels);

/* ---- chains ---- */

typedef struct remat_stage { /* sizes and times of a stage in Rotor's model: docs/format.md */
    const char *name;
    int64_t a, abar,
        delta; /* output; all that the backward needs of the stage; gradient of the output */
    int64_t tf, tb, of, ob; /* time and memory overhead of forward and backward */
    int64_t keep;           /* stays from the first forward to the backward */
} remat_stage;

/* `stages` has n_stages + 2 entries: the input (a, delta), stages 1 .. n_stages, the loss. */
remat_status remat_chain_new(remat_ctx *ctx, const char *name, const remat_stage *stages,
                             uint32_t n_stages, remat_chain **out);
/* A training graph cut where one storage alone crosses its forward pass; REMAT_E_APPLIES if it
 * cannot be. */
remat_status remat_chain_of_graph(remat_ctx *ctx, const remat_graph *graph, remat_chain **out);

remat_status remat_chain_read(remat_ctx *ctx, const remat_input *input, remat_chain **out);
remat_status remat_chain_write(remat_ctx *ctx, const remat_chain *chain, remat_format format,
                               remat_sink *sink, void *user);
void remat_chain_free(remat_chain *chain);
/* As for graphs; need_op and peak_op are stages. One table answers all budgets (ascending;
 * REMAT_BUDGET_MIN and _NONE not among them): out has room for n_budgets plans, and either all are
 * made or none. */
remat_status remat_chain_plan(remat_ctx *ctx, const remat_chain *chain, const char *strategy,
                              int64_t budget_bytes, remat_plan **out);
remat_status remat_chain_plans(remat_ctx *ctx, const remat_chain *chain, const char *strategy,
                               const int64_t *budgets, uint32_t n_budgets, remat_plan **out);
remat_status remat_chain_verify(remat_ctx *ctx, const remat_chain *chain, const remat_step *steps,
                                size_t n_steps, remat_verdict *out);
remat_status remat_chain_plan_verify(remat_ctx *ctx, const remat_chain *chain,
                                     const remat_plan *plan, remat_verdict *out);
const char *remat_chain_digest(const remat_chain *chain);
const char *remat_chain_name(const remat_chain *chain);
const char *
remat_chain_size_unit(const remat_chain *chain); /* "bytes" unless the file says otherwise */
const char *
remat_chain_cost_unit(const remat_chain *chain); /* "ns" unless the file says otherwise */
uint32_t
remat_chain_n_stages(const remat_chain *chain); /* L; stage 0 is the input, L + 1 the loss */
const remat_stage *remat_chain_stage(const remat_chain *chain, uint32_t stage);

/* ---- maximum flow: the solver behind mincut ---- */

remat_status remat_network_read(remat_ctx *ctx, const remat_input *input, remat_network **out);
void remat_network_free(remat_network *network);
uint32_t remat_network_n_vertices(const remat_network *network);
size_t remat_network_n_arcs(const remat_network *network);
/* The value of a maximum flow, and the minimum cut nearest the sink: source_side, an entry per
 * vertex, becomes 1 or 0. *value is REMAT_ABSENT if a limit or remat_ctx_stop ended it early. */
remat_status remat_network_solve(remat_ctx *ctx, const remat_network *network, int64_t *value,
                                 uint8_t *source_side);

const char *remat_version(void); /* "0.1.0" */

#ifdef __cplusplus
}
#endif
#endif
