/* remat: make a training step fit a memory budget.
 *
 *     remat_ctx *ctx = remat_ctx_new(NULL);
 *     remat_graph *graph = NULL;
 *     remat_plan *plan = NULL;
 *     size_t n_steps;
 *     if (remat_graph_load(ctx, "resnet50.json.gz", &graph) == REMAT_OK &&
 *         remat_plan_make(ctx, graph, "auto", (int64_t)8 << 30, &plan) == REMAT_OK) {
 *         const remat_step *steps = remat_plan_steps(plan, &n_steps); // some ops run twice
 *         for (size_t i = 0; i < n_steps; i++)
 *             printf("%s\n", remat_graph_op_name(graph, steps[i].index));
 *     } else {
 *         fprintf(stderr, "%s\n", remat_ctx_error(ctx));
 *     }
 *     remat_plan_free(plan);
 *     remat_graph_free(graph);
 *     remat_ctx_free(ctx);
 *
 * STABLE, from version 1.0 on, is what stands above REMAT_EXPERIMENTAL. A program that was compiled
 * against it works with every later 1.x library. Its source compiles with every later 1.x header.
 * Functions keep their meaning, and enum values keep their numbers. Files that are written stay
 * readable. What may change:
 * - there are new functions and enum values, and new members at the end of structs;
 * - options and strategies come and go, except those named below;
 * - the same input gives another plan, and errors have other texts.
 *
 * EXPERIMENTAL is the rest. Define REMAT_EXPERIMENTAL before you include this file to see it. Any
 * release may change or drop it. Before 1.0 all of this file may change.
 *
 * EVERYWHERE:
 * - Sizes are bytes and costs are integers, both int64_t and below 2^62.
 * - On success the caller owns `*out`. On failure it is untouched, and remat_ctx_error() has one
 *   line that says why.
 * - Pointers must not be NULL. But names may be NULL, and every _free accepts NULL.
 * - A context serves one thread at a time. What it makes never changes. Many threads may read that,
 *   with a context each. It may be freed after the context.
 * - Indices count from 0. If an index is too large, getters answer REMAT_ABSENT, "" or an empty
 *   list. A list belongs to the object that it was got from.
 * - remat_ctx_stop makes the planning call that runs, or else the next one, return the best that it
 *   has so far.
 * - The library never prints, exits or sets a signal handler. It forks only to run the solver of
 *   checkmate and checkmate-lp.
 *
 * STRUCTS that you allocate begin with `size`. `remat_verdict v = REMAT_VERDICT_INIT;` sets it, and
 * the library writes no more bytes than that. Structs that it hands out by pointer (remat_summary,
 * remat_progress) may grow at their end. Structs in arrays (remat_step, remat_statement,
 * remat_operand) and remat_alloc stay as they are.
 *
 * OPTIONS and strategies have names; `remat plan --help` lists them. The options work and time_ms
 * limit a planning call. The option seed decides its random choices. In every run of one version,
 * one seed and one work limit give one plan, except where time_ms cuts off, and except for the
 * solver of checkmate. The strategies "auto", for every use, and "keep-all" stay.
 *
 * FILES. A source is a path, "-" for standard input, or "zoo:NAME?key=value&..." for an embedded
 * model. The content decides the format: remat-graph, remat-chain or remat-plan (docs/format.md),
 * networkx node-link JSON, or DOT. It may be plain or gzip.
 *
 * GRAPHS. An op reads and makes values. A value that no op makes is resident: always in memory. A
 * view shares the storage of the value at its root. Array order is a valid schedule, keep-all. A
 * pinned op runs exactly once, and pinned ops keep their order. An op that is random counts as
 * pinned unless it has REMAT_OP_REPLAY.
 *
 * remat_graph_prepare gives a copy. The flags say what is done to it: REMAT_DCE (no dead ops),
 * REMAT_FOLD_IDENTITY, REMAT_NO_ALIAS (no views), REMAT_REPLAY_RANDOM. Its costs are by the model
 * "given", "unit", "node", "flops", "roofline:DEVICE" or "fused:DEVICE"; NULL: as they are. The
 * copy may have fewer ops, so it has indices of its own. Getters and remat_info use these. Steps,
 * plans, verdicts, bounds and statements use the indices of the original.
 *
 * BUILDERS need no checks between calls. A builder remembers the first wrong call, or the lack of
 * memory, and finish returns it. Finish also checks the graph itself. After more calls a builder
 * may be finished again.
 *
 * PLANS. remat_plan_make gives the best plan that the strategy finds, within the budget or not.
 * remat_plan_status says which. remat_plan_improve begins with a plan that you have, for whatever
 * budget it was made, and is never worse. remat_plan_of_steps makes a plan of your own schedule
 * (strategy NULL: "given"). Every plan has passed the independent verifier.
 *
 * VERDICTS depend on the graph and on the steps or the plan, and on nothing else. remat_plan_verify
 * checks the numbers of the plan too. remat_plan_verify_bound also checks that its bound is proved.
 * These calls return REMAT_OK whether it is valid or not. `bandwidth` prices offload and fetch
 * among given steps, in bytes per 1e9 cost units; 0: they are free. A plan has its own.
 *
 * BOUNDS. No plan of the scope costs less than its bound. The scope is "any-order", or
 * "fixed-order" for plans whose ops run for the first time in one order. Here that is the graph's
 * own.
 *
 * LOWERING turns a schedule into statements: allocate, compute (or move a value), and deallocate as
 * early as possible. Each instance of a storage has a register of its own. The operands of a step
 * say in which register each value lies.
 *
 * docs/model.md says what the words mean. */
#ifndef REMAT_H
#define REMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define REMAT_VERSION_MAJOR 0 /* the only place where the version is written */
#define REMAT_VERSION_MINOR 1
#define REMAT_VERSION_PATCH 0

/* Laid out by hand, so that the stable part fits on two screens. */
/* clang-format off */
typedef struct remat_ctx remat_ctx;         /* options, allocator, callbacks, the last error */
typedef struct remat_input remat_input;     /* a parsed file of any kind */
typedef struct remat_builder remat_builder; /* a graph under construction */
typedef struct remat_graph remat_graph;     /* ops, values and costs */
typedef struct remat_plan remat_plan;       /* a schedule with its numbers */
typedef struct remat_program remat_program; /* a schedule with its allocations and frees */
typedef enum remat_status { /* the program exits with these */
    REMAT_OK = 0, REMAT_E_USAGE = 1, /* a call is wrong */ REMAT_E_INPUT = 2, /* a file is wrong */
    REMAT_E_IO = 3, REMAT_E_MEMORY = 4, REMAT_E_PLAN = 5, /* a plan that you gave is invalid */
    REMAT_E_APPLIES = 6, /* the strategy cannot do this graph */
    REMAT_E_CALLBACK = 7, /* a function of yours failed */ REMAT_E_BUG = 9, /* report it */
    REMAT_E_INFEASIBLE = 10, /* proved: nothing fits */ REMAT_E_NOT_FOUND = 11 } remat_status;
#define REMAT_NONE UINT32_MAX           /* no such index */
#define REMAT_ABSENT ((int64_t)-1)      /* a number that is not given or not known */
#define REMAT_BUDGET_NONE ((int64_t)-1) /* no limit */
#define REMAT_BUDGET_MIN ((int64_t)-2)  /* the least peak found; auto: or a hundredth more */

/* ---- context ---- */
typedef struct remat_alloc { /* as realloc: new_size 0 frees, p NULL allocates; NULL: no memory */
    void *(*resize)(void *user, void *p, size_t old_size, size_t new_size);
    void *user; } remat_alloc;
typedef struct remat_progress { /* cost, peak and bound: REMAT_ABSENT before there is a plan */
    const char *strategy; int permille;
    int64_t cost, peak_bytes, work, bound_cost; } remat_progress;
remat_ctx *remat_ctx_new(const remat_alloc *hooks); /* NULL: malloc. Gives NULL: no memory */
void remat_ctx_free(remat_ctx *ctx);
remat_status remat_ctx_set(remat_ctx *ctx, const char *option, int64_t value);
remat_status remat_ctx_get(remat_ctx *ctx, const char *option, int64_t *out);
void remat_ctx_stop(remat_ctx *ctx); /* planning ends early; from any thread or signal handler */
void remat_ctx_resume(remat_ctx *ctx); /* takes back a stop that no call has obeyed yet */
void remat_ctx_on_progress(remat_ctx *ctx, void (*fn)(void *, const remat_progress *), void *user);
void remat_ctx_on_warning(remat_ctx *ctx, void (*fn)(void *, const char *line), void *user);
const char *remat_ctx_error(const remat_ctx *ctx); /* the last failure in one line; its parts: */
const char *remat_ctx_error_file(const remat_ctx *ctx);
const char *remat_ctx_error_place(const remat_ctx *ctx); /* "nodes[7].in[1]", "line 3 column 9" */
const char *remat_ctx_error_reason(const remat_ctx *ctx);
const char *remat_version(void);

/* ---- files ---- */
typedef enum remat_kind { REMAT_KIND_GRAPH = 0, REMAT_KIND_CHAIN = 1, REMAT_KIND_PLAN = 2,
                          REMAT_KIND_NETWORK = 3, REMAT_KIND_SPANS = 4 } remat_kind;
typedef enum remat_format { REMAT_JSON = 0, REMAT_JSON_GZ = 1, REMAT_DOT = 2 } remat_format;
typedef int remat_sink(void *user, const void *bytes, size_t n_bytes); /* 0, or writing ends */
remat_status remat_input_open(remat_ctx *ctx, const char *source, remat_input **out);
remat_status remat_input_parse(remat_ctx *ctx, const char *name, const void *bytes, size_t n_bytes,
                               remat_input **out);
remat_kind remat_input_kind(const remat_input *input);
void remat_input_free(remat_input *input);

/* ---- graphs ---- */
typedef enum remat_phase { REMAT_PHASE_NONE = 0, REMAT_FORWARD = 1,
                           REMAT_BACKWARD = 2 } remat_phase;
typedef enum remat_class { REMAT_CLASS_OTHER = 0, REMAT_CLASS_COMPUTE = 1, REMAT_CLASS_FUSIBLE = 2,
                           REMAT_CLASS_VIEW = 3, REMAT_CLASS_RANDOM = 4 } remat_class;
typedef enum remat_value_kind { REMAT_TEMPORARY = 0, REMAT_PARAM = 1, REMAT_BUFFER = 2,
                                REMAT_INPUT = 3, REMAT_CONST = 4 } remat_value_kind;
typedef enum remat_value_attr {
    REMAT_VALUE_SIZE = 0, REMAT_VALUE_STORAGE = 1, /* bytes: of the tensor; of its allocation */
    REMAT_VALUE_ALIAS = 2, REMAT_VALUE_KIND = 3, /* what it is a view of; a remat_value_kind */
    REMAT_VALUE_ROOT = 4, REMAT_VALUE_PRODUCER = 5 /* to read: owner of the storage; its op */
} remat_value_attr;
typedef enum remat_op_attr {
    REMAT_OP_COST = 0, REMAT_OP_FLOPS = 1, REMAT_OP_WORKSPACE = 2, /* bytes */
    REMAT_OP_PHASE = 3, REMAT_OP_CLASS = 4, REMAT_OP_PINNED = 5, REMAT_OP_REPLAY = 6,
    REMAT_OP_KERNEL = 7, /* ops of one number fuse, with no others; or REMAT_ABSENT */
    REMAT_OP_GIVEN_COST = 8 } remat_op_attr; /* to read: as set; REMAT_OP_COST is the model's */
typedef struct remat_info { /* need: no plan gets by with less; need_op: why, or none at the end */
    size_t size; uint32_t ops, values, storages, views, multi_output, pinned, dead, cut_values;
    int64_t resident_bytes, keep_all_peak_bytes, keep_all_cost, need_bytes;
    uint32_t keep_all_peak_step, need_op; } remat_info;
#define REMAT_INFO_INIT {sizeof(remat_info), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
enum { REMAT_DCE = 1, REMAT_FOLD_IDENTITY = 2, REMAT_NO_ALIAS = 4, REMAT_REPLAY_RANDOM = 8 };
remat_status remat_graph_load(remat_ctx *ctx, const char *source, remat_graph **out);
remat_status remat_graph_read(remat_ctx *ctx, const remat_input *input, remat_graph **out);
remat_status remat_graph_write(remat_ctx *ctx, const remat_graph *graph, remat_format format,
                               remat_sink *sink, void *user);
remat_status remat_graph_prepare(remat_ctx *ctx, const remat_graph *graph, unsigned flags,
                                 const char *cost_model, remat_graph **out);
remat_status remat_graph_info(remat_ctx *ctx, const remat_graph *graph, remat_info *out);
void remat_graph_free(remat_graph *graph);
const char *remat_graph_name(const remat_graph *graph);
const char *remat_graph_digest(const remat_graph *graph); /* "sha256:...", of the structure */
const char *remat_graph_cost_model(const remat_graph *graph);
const char *remat_graph_cost_unit(const remat_graph *graph);
uint32_t remat_graph_n_ops(const remat_graph *graph);
const char *remat_graph_op_name(const remat_graph *graph, uint32_t op);
const char *remat_graph_op_target(const remat_graph *graph, uint32_t op); /* "aten.mm.default" */
const uint32_t *remat_graph_op_in(const remat_graph *graph, uint32_t op, uint32_t *n);
const uint32_t *remat_graph_op_out(const remat_graph *graph, uint32_t op, uint32_t *n);
int64_t remat_graph_op_get(const remat_graph *graph, uint32_t op, remat_op_attr attr);
uint32_t remat_graph_n_values(const remat_graph *graph);
const char *remat_graph_value_name(const remat_graph *graph, uint32_t value);
const char *remat_graph_value_dtype(const remat_graph *graph, uint32_t value);
const int64_t *remat_graph_value_shape(const remat_graph *graph, uint32_t value, uint32_t *rank);
int64_t remat_graph_value_get(const remat_graph *graph, uint32_t value, remat_value_attr attr);
const uint32_t *remat_graph_outputs(const remat_graph *graph, uint32_t *n);

/* ---- builders ---- */
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
void remat_builder_cost_unit(remat_builder *b, const char *unit); /* of the costs set; else "ns" */
remat_status remat_builder_finish(remat_builder *b, remat_graph **out);
void remat_builder_free(remat_builder *b);

/* ---- plans ---- */
typedef enum remat_step_kind { /* index: an op to run, a value to move, a stage of a chain */
    REMAT_RUN = 0, REMAT_OFFLOAD = 1, REMAT_FETCH = 2,
    REMAT_F_ALL = 3, REMAT_F_CK = 4, REMAT_F_NONE = 5, REMAT_B = 6 } remat_step_kind;
typedef struct remat_step { uint32_t kind, index; } remat_step;
typedef enum remat_outcome { REMAT_UNKNOWN = 0, REMAT_FEASIBLE = 1, REMAT_OPTIMAL = 2,
                             REMAT_INFEASIBLE = 3 } remat_outcome;
typedef enum remat_stopped { REMAT_DONE = 0, REMAT_WORK = 1, REMAT_TIME = 2,
                             REMAT_SIGNAL = 3 } remat_stopped;
typedef struct remat_summary { /* REMAT_ABSENT, REMAT_NONE, "": not known */
    const char *strategy, *graph, *digest, *cost_model, *cost_unit, *bound_scope, *bound_method;
    int64_t budget_bytes, peak_bytes, cost, bound_cost, keep_all_peak_bytes, keep_all_cost;
    int64_t resident_bytes, need_bytes, offloaded_bytes; /* offloaded: copies on the host */
    int64_t saved_bytes, cut_capacity; /* what crosses from the forward pass; as traffic */
    int64_t traffic_bytes, seed, work, bandwidth; /* traffic: read and written by fused kernels */
    uint32_t peak_step, need_op, steps, ops, recomputed_ops; /* recomputed: run more than once */
    remat_outcome outcome; remat_stopped stopped; remat_kind kind; bool within_budget;
    unsigned flags; /* REMAT_DCE | ... that the graph was prepared with */
    int64_t any_order_cost; const char *any_order_method; /* bound of any order */
    int64_t align, least_peak_bound; } remat_summary; /* sizes' factor; no order has a lower peak */
remat_status remat_budget_parse(remat_ctx *ctx, const char *text, int64_t keep_all_peak_bytes,
                                int64_t *out); /* "12GiB", "900MB", "50%", "min", "4096" */
remat_status remat_plan_make(remat_ctx *ctx, const remat_graph *graph, const char *strategy,
                             int64_t budget_bytes, remat_plan **out);
remat_status remat_plan_improve(remat_ctx *ctx, const remat_graph *graph, const remat_plan *start,
                                const char *strategy, int64_t budget_bytes, remat_plan **out);
remat_status remat_plan_of_steps(remat_ctx *ctx, const remat_graph *graph, const remat_step *steps,
                                 size_t n_steps, const char *strategy, int64_t budget_bytes,
                                 int64_t bandwidth, remat_plan **out);
remat_status remat_plan_read(remat_ctx *ctx, const remat_input *input, remat_plan **out);
remat_status remat_plan_write(remat_ctx *ctx, const remat_plan *plan, remat_format format,
                              remat_sink *sink, void *user);
void remat_plan_free(remat_plan *plan);
remat_status remat_plan_status(const remat_plan *plan); /* REMAT_OK: it is known to fit */
const remat_summary *remat_plan_summary(const remat_plan *plan);
const remat_step *remat_plan_steps(const remat_plan *plan, size_t *n_steps);
remat_status remat_steps_memory(remat_ctx *ctx, const remat_graph *graph, const remat_step *steps,
                                size_t n_steps, int64_t *bytes); /* while each step runs */

/* ---- verdicts and bounds ---- */
typedef struct remat_verdict { /* invalid: numbers are REMAT_ABSENT, and reason says why */
    size_t size; bool valid; int64_t peak_bytes, cost, host_bytes; /* host: what was offloaded */
    uint32_t peak_step, peak_op, first_bad_step; /* REMAT_NONE: no step; peak_op: a transfer */
    char reason[240]; } remat_verdict;
#define REMAT_VERDICT_INIT {sizeof(remat_verdict), false, 0, 0, 0, 0, 0, 0, ""}
remat_status remat_verify(remat_ctx *ctx, const remat_graph *graph, const remat_step *steps,
                          size_t n_steps, int64_t bandwidth, remat_verdict *out);
remat_status remat_plan_verify(remat_ctx *ctx, const remat_graph *graph, const remat_plan *plan,
                               remat_verdict *out); /* the plan's numbers, too */
remat_status remat_plan_verify_bound(remat_ctx *ctx, const remat_graph *graph,
                                     const remat_plan *plan, remat_verdict *out); /* and a proof */
typedef struct remat_bound { /* no plan of that scope within the budget costs less than `cost` */
    size_t size; remat_status status; /* REMAT_E_INFEASIBLE: none fits, cost is REMAT_ABSENT */
    int64_t budget_bytes, cost, keep_all_cost, need_bytes; /* need: the least that may be enough */
    uint32_t need_op, need_values[4], n_need_values; /* why: the largest in memory at that op */
    const char *scope, *method; unsigned rules; /* docs/bound.md */
    int64_t any_order_cost; } remat_bound; /* no plan at all costs less; `cost` says more */
#define REMAT_BOUND_INIT {sizeof(remat_bound), REMAT_OK, 0, 0, 0, 0, 0, {0}, 0, "", "", 0, 0}
remat_status remat_bound_find(remat_ctx *ctx, const remat_graph *graph, int64_t budget_bytes,
                              remat_bound *out);

/* ---- lowering ---- */
typedef enum remat_statement_kind { REMAT_ALLOCATE = 0, REMAT_COMPUTE = 1, /* or a transfer */
    REMAT_DEALLOCATE = 2, REMAT_REUSE = 3 } remat_statement_kind; /* an input's reg, in place */
typedef struct remat_statement {
    remat_statement_kind kind; remat_step step; uint32_t step_index; /* that it belongs to */
    uint32_t value, reg; /* owner of the storage, register; REMAT_NONE when a step computes */
    int64_t bytes, memory_bytes; } remat_statement; /* of storage or workspace; in use then */
typedef struct remat_operand { uint32_t value, reg; } remat_operand; /* REMAT_NONE: resident */
remat_status remat_lower(remat_ctx *ctx, const remat_graph *graph, const remat_step *steps,
                         size_t n_steps, remat_program **out);
void remat_program_free(remat_program *program);
const remat_statement *remat_program_statements(const remat_program *program, size_t *n_statements);
const remat_operand *remat_program_step_in(const remat_program *program, size_t step, uint32_t *n);
const remat_operand *remat_program_step_out(const remat_program *program, size_t step, uint32_t *n);
const remat_operand *remat_program_outputs(const remat_program *program, uint32_t *n);
/* clang-format on */

/* ---- experimental: any release may change or drop what follows ----
 *
 * Why they are here:
 * - chains: their model may yet merge with that of graphs;
 * - networks, solvers, fusion and classes: they show parts of strategies that still change;
 * - placement, running and working in place: they are new;
 * - tables of names, and batches: their form may change. */
#ifdef REMAT_EXPERIMENTAL

typedef struct remat_chain remat_chain;     /* a chain of stages (Rotor's model) */
typedef struct remat_network remat_network; /* a maximum-flow problem */

/* What there is: options of remat_ctx_set, strategies, embedded models (help: parameters with their
 * defaults) and devices of roofline and fused (help: rates and source). NULL: past the end. */
typedef struct remat_option {
    const char *name, *help;
    int64_t initial, low, high;
} remat_option;
typedef struct remat_entry {
    const char *name, *help;
} remat_entry;
const remat_option *remat_option_at(size_t index);
const remat_entry *remat_zoo_at(size_t index);
const remat_entry *remat_strategy_at(size_t index);
/* The options that change what this strategy does, "group walkers"; "" past the end. All heed work,
 * time_ms, memory_bytes, seed, threads and bound_rules. */
const char *remat_strategy_heeds(size_t index);
const remat_entry *remat_device_at(size_t index);

/* Output `out` of the op may be made in the storage of its input `in` (places in its lists), where
 * nobody touches that afterwards: docs/model.md, "In place". Both have as many bytes. */
void remat_builder_op_inplace(remat_builder *b, uint32_t op, uint32_t out, uint32_t in);
/* The input in whose storage output `out` may be made, or REMAT_NONE. */
uint32_t remat_graph_op_inplace(const remat_graph *graph, uint32_t op, uint32_t out);

/* The graph at another batch size. An embedded model is built anew. A remat-graph file is scaled by
 * its `batch` and `size_per_batch` (docs/format.md). REMAT_E_INPUT: it does not say how it grows,
 * or sizes pass 2^62. */
remat_status remat_graph_read_batch(remat_ctx *ctx, const remat_input *input, int64_t batch,
                                    remat_graph **out);
/* The values in memory at need_op of remat_info, largest first, at most `capacity` of them. With
 * the resident bytes and the workspace of need_op they make up need_bytes. With the option offload,
 * both are what is needed if values may leave. */
remat_status remat_graph_need_values(remat_ctx *ctx, const remat_graph *graph, uint32_t *values,
                                     uint32_t capacity, uint32_t *n_values);
/* What takes part in a bound, as bits of remat_bound.rules: docs/bound.md. */
enum {
    REMAT_BOUND_SINGLE = 1,
    REMAT_BOUND_FAN_OUT = 2,
    REMAT_BOUND_REGION = 4,
    REMAT_BOUND_SIDE = 8,
    REMAT_BOUND_HOLDERS = 16,
    REMAT_BOUND_WALLS = 32
};

/* ---- what may run again (strategy mincut) ---- */

typedef enum remat_ban {
    REMAT_BAN_NONE = 0,
    REMAT_BAN_PINNED = 1,
    REMAT_BAN_RANDOM = 2,
    REMAT_BAN_COMPUTE = 3,   /* bound by arithmetic */
    REMAT_BAN_OTHER = 4,     /* not known to be fusible */
    REMAT_BAN_REDUCTION = 5, /* output much smaller than input (option reduction_factor) */
    REMAT_BAN_READ = 6,      /* an op of the backward pass that cannot be fused with it reads it */
    REMAT_BAN_LONG = 7,      /* the last of so many ops in a row that repeating them is not free */
} remat_ban;
typedef struct remat_recompute_rule {
    remat_class op_class; /* in effect */
    bool in_forward;      /* it can be computed before the backward pass begins */
    remat_ban ban;        /* only an op that is in_forward can be banned */
} remat_recompute_rule;

/* Ops whose target is `target`, or begins with it and a dot, are of this class from now on,
 * whatever files and tables say. Graphs with fused kernels, or with costs by fused:DEVICE, are not
 * prepared then: a plan has no place for such rules, and could not be verified. */
remat_status remat_ctx_class(remat_ctx *ctx, const char *target, remat_class op_class);
void remat_ctx_class_clear(remat_ctx *ctx); /* files and tables decide again */
/* `out` has room for one rule for each op of this graph. REMAT_E_APPLIES: it does not have a
 * forward and a backward pass. */
remat_status remat_graph_recompute_rules(remat_ctx *ctx, const remat_graph *graph,
                                         remat_recompute_rule *out);
const char *remat_class_name(remat_class op_class); /* "fusible"; NULL past the end */
const char *remat_ban_reason(remat_ban ban); /* "compute", ...; "" for none; NULL past the end */

/* ---- Checkmate's program, for other solvers ---- */

typedef struct remat_solver { /* version "": none was found, and `where` says why */
    size_t size;
    char version[32], where[512];
} remat_solver;
#define REMAT_SOLVER_INIT {sizeof(remat_solver), "", ""}
/* The solver behind checkmate and checkmate-lp: HiGHS, from the file that REMAT_HIGHS names, the
 * system's, or that of the active Python environment. */
remat_status remat_solver_find(remat_ctx *ctx, remat_solver *out);
/* The program that strategy checkmate would solve (options checkmate_plain, _splits, _order), as
 * free MPS. */
remat_status remat_milp_write(remat_ctx *ctx, const remat_graph *graph, int64_t budget_bytes,
                              remat_sink *sink, void *user);
/* The plan that a solution of that program stands for. source: a file, or "-", in which each name
 * of a column is followed by its value. */
remat_status remat_milp_plan(remat_ctx *ctx, const remat_graph *graph, int64_t budget_bytes,
                             const char *source, remat_plan **out);

/* ---- schedules as graphs; fusion ---- */

/* The schedule as a graph of its own (Checkmate, section 4.8). It has a node for every step, so
 * nodes repeat where ops run again. Its keep-all has the peak and the cost of the schedule.
 * REMAT_E_APPLIES: the schedule has transfers. */
remat_status remat_unroll(remat_ctx *ctx, const remat_graph *graph, const remat_step *steps,
                          size_t n_steps, remat_graph **out);

enum { REMAT_FUSE = 16 }; /* remat_graph_prepare: the kernels of a fusing compiler become the ops */
/* remat_graph_prepare: elementwise ops may make their output in place of an input that is like it.
 */
enum { REMAT_INPLACE = 32 };

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
    /* Every op by itself; in kernels; with values computed again where that moves less. */
    remat_traffic unfused, before, after;
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

/* A schedule as the program of a fusing compiler. *out is a graph of its own. It has a node for
 * every step, so nodes repeat where ops run again. Each node is marked with its kernel. A value is
 * computed again inside the kernel that reads it, where that moves fewer bytes. */
remat_status remat_fuse(remat_ctx *ctx, const remat_graph *graph, const remat_step *steps,
                        size_t n_steps, remat_fusion *fusion, remat_graph **out);
/* The kernels of a graph in its own order, numbered in the order in which they run. kernel: by op,
 * the one it is in. moved: by kernel; it has room for n_ops. */
remat_status remat_graph_kernels(remat_ctx *ctx, const remat_graph *graph, uint32_t *kernel,
                                 remat_moved *moved, uint32_t *n_kernels);

/* ---- chains ---- */

typedef struct remat_stage { /* sizes and times of a stage in Rotor's model: docs/format.md */
    const char *name;
    /* The output; all that the backward needs of the stage; the gradient of the output. */
    int64_t a, abar, delta;
    int64_t tf, tb, of, ob; /* time and memory overhead of forward and backward */
    int64_t keep;           /* stays from the first forward to the backward */
} remat_stage;

/* `stages` has n_stages + 2 entries: the input (a, delta), stages 1 .. n_stages, the loss. Errors
 * name places as in a file, where stage 1 is stages[0]. */
remat_status remat_chain_new(remat_ctx *ctx, const char *name, const remat_stage *stages,
                             uint32_t n_stages, remat_chain **out);
/* Cuts a training graph where one storage alone crosses its forward pass. REMAT_E_APPLIES: there is
 * no such place. */
remat_status remat_chain_of_graph(remat_ctx *ctx, const remat_graph *graph, remat_chain **out);

remat_status remat_chain_read(remat_ctx *ctx, const remat_input *input, remat_chain **out);
remat_status remat_chain_write(remat_ctx *ctx, const remat_chain *chain, remat_format format,
                               remat_sink *sink, void *user);
void remat_chain_free(remat_chain *chain);
/* As for graphs; need_op and peak_op are stages. One table answers all budgets. They ascend, and
 * REMAT_BUDGET_MIN and REMAT_BUDGET_NONE are not among them. out has room for n_budgets plans.
 * Either all of them are made or none. */
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
const char *remat_chain_size_unit(const remat_chain *chain); /* "bytes" by default */
const char *remat_chain_cost_unit(const remat_chain *chain); /* "ns" by default */
uint32_t remat_chain_n_stages(const remat_chain *chain);     /* L: without input and loss */
/* Stage 0 is the input, stage L + 1 the loss. */
const remat_stage *remat_chain_stage(const remat_chain *chain, uint32_t stage);

/* ---- placement: an offset in one arena for everything ---- */

typedef struct remat_span { /* bytes that are needed at the times begin .. end - 1 */
    int64_t begin, end, bytes;
} remat_span;
typedef struct remat_packing {
    size_t size;
    int64_t height_bytes; /* the bytes of the arena */
    int64_t bound_bytes;  /* proved: no placement needs less */
    int64_t load_bytes;   /* the most that is needed at one time, which is a bound, too */
    int64_t work;         /* in units of the option */
    /* Optimal: the height is the bound. Feasible: it is within the capacity, or there is none.
     * Infeasible: the bound is above the capacity. Unknown: the height is. */
    remat_outcome outcome;
    remat_stopped stopped;
} remat_packing;
#define REMAT_PACKING_INIT {sizeof(remat_packing), 0, 0, 0, 0, REMAT_UNKNOWN, REMAT_DONE}

/* Gives every span an offset, so that no two that are needed at one time overlap. With a capacity
 * the search ends when they fit into it; with REMAT_BUDGET_NONE, at the lowest height. The options
 * work, time_ms and seed hold. There are offsets whatever the outcome. They have passed a check
 * that shares no code with the search. */
remat_status remat_spans_place(remat_ctx *ctx, const remat_span *spans, size_t n_spans,
                               int64_t capacity_bytes, int64_t *offsets, remat_packing *out);
/* REMAT_E_PLAN, and why, unless the offsets are multiples of `align`, no two spans overlap, and
 * they need height_bytes exactly. */
remat_status remat_spans_verify(remat_ctx *ctx, const remat_span *spans, size_t n_spans,
                                const int64_t *offsets, int64_t align, int64_t height_bytes);

/* Spans of a file: comma separated values, with MiniMalloc's columns id, lower, upper and size. */
typedef struct remat_spans remat_spans;
remat_status remat_spans_read(remat_ctx *ctx, const remat_input *input, remat_spans **out);
void remat_spans_free(remat_spans *spans);
const remat_span *remat_spans_list(const remat_spans *spans, size_t *n_spans);
const char *remat_spans_id(const remat_spans *spans, size_t index);

/* A place in one arena for every register of a program, and for every workspace. Sizes are rounded
 * up to `align`, a power of two; 0: REMAT_ALIGN. Zero waste: the height is what
 * the program has in memory at its peak without resident bytes, so rounded. To have the rounded
 * sizes planned, plan the graph of remat_graph_align. */
typedef struct remat_placement remat_placement;
enum { REMAT_ALIGN = 512 };
remat_status remat_graph_align(remat_ctx *ctx, const remat_graph *graph, int64_t align,
                               remat_graph **out);
remat_status remat_place(remat_ctx *ctx, const remat_program *program, int64_t align,
                         remat_placement **out);
void remat_placement_free(remat_placement *placement);
const remat_packing *remat_placement_packing(const remat_placement *placement);
int64_t remat_placement_align(const remat_placement *placement);
/* Offsets in bytes. REMAT_ABSENT: there is no such register, or the step has no workspace. */
int64_t remat_placement_register(const remat_placement *placement, uint32_t reg);
int64_t remat_placement_workspace(const remat_placement *placement, size_t step);
/* A copy of the plan that says where everything lies in the arena (align 0: REMAT_ALIGN). It is
 * written to files, and remat_plan_verify checks it. REMAT_E_PLAN: the plan is invalid, or of
 * another graph. */
remat_status remat_plan_place(remat_ctx *ctx, const remat_graph *graph, const remat_plan *plan,
                              int64_t align, remat_plan **out);
int64_t remat_plan_arena_bytes(const remat_plan *plan); /* REMAT_ABSENT: it does not say */
/* The placement that such a plan carries, for the program of its steps. REMAT_E_PLAN: it carries
 * none, or a wrong one, or is of another graph. remat_run_new uses it where the alignment agrees.
 */
remat_status remat_plan_placement(remat_ctx *ctx, const remat_graph *graph, const remat_plan *plan,
                                  remat_placement **out);
/* All spans of a placement, those of registers first. Times are steps. */
const remat_span *remat_placement_spans(const remat_placement *placement, size_t *n_spans);

/* ---- running: a plan over one arena ----
 *
 * A run calls a function of yours for every step, with pointers into an arena that you allocate:
 * anywhere, on a device too, since nothing here looks into it (unless it is poisoned). After
 * remat_run_new nothing is allocated. A run may be repeated; in a training loop that is a step. */

typedef struct remat_run remat_run;
typedef struct remat_call { /* one run of an op; pointers are to storages, also those of views; an
                             * output that is made in place has the pointer of an input */
    uint32_t op, step;      /* as in the plan */
    uint32_t n_in, n_out;
    void *const *in, *const *out; /* in the order of the graph */
    void *workspace;              /* NULL: the op has none */
    int64_t workspace_bytes;
} remat_call;
typedef struct remat_hooks { /* anything but 0 ends the run: REMAT_E_CALLBACK */
    size_t size;
    void *user;
    int (*compute)(void *user, const remat_call *call);
    /* Copy a storage to the host, and later back to where it lies then. NULL where a plan moves
     * nothing. */
    int (*offload)(void *user, uint32_t value, const void *from, int64_t bytes);
    int (*fetch)(void *user, uint32_t value, void *to, int64_t bytes);
} remat_hooks;
#define REMAT_HOOKS_INIT {sizeof(remat_hooks), NULL, NULL, NULL, NULL}

/* Lowers and places the plan (align 0: REMAT_ALIGN). Nothing of it is needed afterwards.
 * REMAT_E_PLAN: the plan is invalid, or of another graph. */
remat_status remat_run_new(remat_ctx *ctx, const remat_graph *graph, const remat_plan *plan,
                           int64_t align, remat_run **out);
void remat_run_free(remat_run *run);
const remat_placement *remat_run_placement(const remat_run *run);
int64_t remat_run_arena_bytes(const remat_run *run); /* the height of the placement */
/* Where it runs. REMAT_E_USAGE: too few bytes, or not a multiple of the alignment. */
remat_status remat_run_arena(remat_ctx *ctx, remat_run *run, void *arena, int64_t n_bytes);
/* Where the storage of a resident value lies. Every one that an op reads must be known. */
remat_status remat_run_resident(remat_ctx *ctx, remat_run *run, uint32_t value, void *storage);
enum {
    /* Free bytes of the arena are filled with 0xff, which as a float is no number. After each step
     * it is checked that nothing has changed but what the step makes. REMAT_E_CALLBACK: something
     * has. Slow; the arena must be memory that the CPU can read and write. */
    REMAT_RUN_POISON = 1,
    REMAT_RUN_TRACE = 2 /* keep when each step of the latest run begins and ends */
};
void remat_run_modes(remat_run *run, unsigned modes);
remat_status remat_run_steps(remat_ctx *ctx, remat_run *run, const remat_hooks *hooks);
/* After a run: where an output of the graph lies; NULL past the last. */
void *remat_run_output(const remat_run *run, uint32_t index);
int64_t remat_run_high_water(const remat_run *run); /* bytes of the arena that were handed out */
/* The latest run in the trace format of Chrome and Perfetto: steps, and the bytes in use. */
remat_status remat_run_trace_write(remat_ctx *ctx, const remat_run *run, const remat_graph *graph,
                                   remat_sink *sink, void *user);

/* ---- maximum flow: the solver behind mincut ---- */

remat_status remat_network_read(remat_ctx *ctx, const remat_input *input, remat_network **out);
void remat_network_free(remat_network *network);
uint32_t remat_network_n_vertices(const remat_network *network);
size_t remat_network_n_arcs(const remat_network *network);
/* The value of a maximum flow, and the minimum cut nearest the sink: source_side, an entry per
 * vertex, becomes 1 or 0. *value is REMAT_ABSENT if a limit or remat_ctx_stop ended it early. */
remat_status remat_network_solve(remat_ctx *ctx, const remat_network *network, int64_t *value,
                                 uint8_t *source_side);

#endif /* REMAT_EXPERIMENTAL */

#ifdef __cplusplus
}
#endif
#endif
