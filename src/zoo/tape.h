/* tape.h: tensors and ops of a model under construction. Layers write them, the reverse pass reads
 * them.
 *
 * A tape needs no checks between calls. It keeps the first mistake in `status`. From then on every
 * call returns the tape's `broken` tensors, whose shapes can be read like any other's. Tensors and
 * ops live in the context's scratch. */
#ifndef RM_TAPE_H
#define RM_TAPE_H

#include "base/base.h"

enum { RM_MAX_RANK = 4, RM_MAX_OUT = 5, RM_MAX_ZOO_OPS = 2000000, RM_MAX_ZOO_EDGES = 20000000 };

typedef enum rm_dtype { RM_FLOAT32 = 0, RM_INT64 = 1 } rm_dtype;

typedef struct rm_shape { /* what a tensor is, less its contents */
    uint32_t rank;
    int64_t dim[RM_MAX_RANK];
    rm_dtype dtype;
} rm_shape;

typedef struct rm_tensor rm_tensor;
struct rm_tensor {
    const char *name;
    rm_shape shape;
    uint32_t value;   /* of the builder */
    bool wants_grad;  /* a parameter, or computed from one */
    rm_tensor *grad;  /* the sum of all gradients so far, or NULL */
    uint32_t n_grads; /* how many it is the sum of */
    rm_tensor *next;  /* the parameters are a list */
};

typedef enum rm_op_kind { /* rows of rm_op_types */
                          RM_ADD,
                          RM_ADDMM,
                          RM_AVG_POOL,
                          RM_BATCH_NORM,
                          RM_BMM,
                          RM_CAT,
                          RM_CLONE,
                          RM_CONV,
                          RM_EMBEDDING,
                          RM_EXPAND,
                          RM_GELU,
                          RM_LAYER_NORM,
                          RM_LOG_SOFTMAX,
                          RM_MAX_POOL,
                          RM_MEAN,
                          RM_MM,
                          RM_NLL_LOSS,
                          RM_NLL_LOSS_2D,
                          RM_PAD,
                          RM_PERMUTE,
                          RM_RELU,
                          RM_SCALE,
                          RM_SELECT,
                          RM_SOFTMAX,
                          RM_SPLIT,
                          RM_T,
                          RM_TANH,
                          RM_UNPOOL,
                          RM_UPSAMPLE,
                          RM_VIEW,
                          RM_WINDOW_MEAN,
                          RM_N_OP_KINDS
} rm_op_kind;

/* One op of the backward pass. It reads the gradients of the forward op's outputs, and what torch
 * saves for it. */
typedef struct rm_derivative {
    /* NULL: the gradient itself is passed on, summed where the input was broadcast. */
    const char *target;
    remat_class op_class; /* REMAT_CLASS_VIEW: its outputs share the gradient's storage */
    uint32_t in, out;     /* bit i: reads the forward op's i-th input, output */
    /* Makes the gradients of these inputs, where they are wanted. 0: no such derivative. */
    uint32_t gives;
    uint32_t costs; /* those of `gives` that take as many FLOPs as the forward op */
    bool one_each;  /* one op per gradient, not one op for all */
} rm_derivative;

enum { RM_MAX_DERIVATIVES = 3 };
typedef struct rm_op_type {
    const char *target;
    remat_class op_class; /* REMAT_CLASS_VIEW: its outputs share the first input's storage */
    rm_derivative backward[RM_MAX_DERIVATIVES];
} rm_op_type;
extern const rm_op_type rm_op_types[RM_N_OP_KINDS]; /* autodiff.c */

typedef struct rm_taped_op rm_taped_op;
struct rm_taped_op {
    const rm_op_type *type;
    const char *name;
    rm_tensor **in, *out; /* `out` is an array of tensors */
    uint32_t n_in, n_out;
    int64_t flops;
    rm_taped_op *before; /* NULL: the first */
};

typedef struct rm_tape {
    remat_ctx *ctx;
    remat_builder *builder;
    const char *model; /* for messages */
    remat_status status;
    remat_phase phase;
    rm_taped_op *last;
    rm_tensor *params, **params_end;
    int64_t n_ops, n_edges, bytes, flops; /* totals, all bounded */
    rm_tensor broken[RM_MAX_OUT];
} rm_tape;

void rm_tape_begin(rm_tape *tape, remat_ctx *ctx, remat_builder *builder, const char *model);
/* REMAT_E_USAGE, with the model's name. */
void rm_tape_fail(rm_tape *tape, const char *format, ...) RM_PRINTF(2, 3);
const char *rm_tape_name(rm_tape *tape, const char *format, ...) RM_PRINTF(2, 3); /* never NULL */

/* Resident values. */
rm_tensor *rm_tape_input(rm_tape *tape, const char *name, rm_shape shape);
rm_tensor *rm_tape_param(rm_tape *tape, const char *layer, const char *suffix, rm_shape shape);
rm_tensor *rm_tape_buffer(rm_tape *tape, const char *layer, const char *suffix, rm_shape shape);
void rm_tape_output(rm_tape *tape, const rm_tensor *tensor);

/* A forward op; the result points to its outputs, one tensor for each of `shapes`. Output values
 * are named after the op, with ".0", ".1" appended where there are several. */
rm_tensor *rm_tape_op(rm_tape *tape, rm_op_kind kind, const char *name, rm_tensor *const *in,
                      uint32_t n_in, const rm_shape *shapes, uint32_t n_out, int64_t flops);
/* The same with one output. The inputs are the last arguments. */
#define RM_OP(tape, kind, name, shape, flops, ...)                                                 \
    rm_tape_op((tape), (kind), (name), (rm_tensor *[]){__VA_ARGS__},                               \
               RM_LEN(((rm_tensor *[]){__VA_ARGS__})), &(shape), 1, (flops))
/* An op that no derivative is taken of: what the reverse pass writes. */
rm_tensor *rm_tape_untracked(rm_tape *tape, const char *target, remat_class op_class,
                             const char *name, rm_tensor *const *in, uint32_t n_in,
                             const rm_shape *shapes, uint32_t n_out, int64_t flops);

/* A product of numbers that are not negative. Where it is too large, the tape fails and the answer
 * is 1. */
int64_t rm_tape_product(rm_tape *tape, const int64_t *factors, size_t n_factors);
#define RM_PRODUCT(tape, ...)                                                                      \
    rm_tape_product((tape), (int64_t[]){__VA_ARGS__}, RM_LEN(((int64_t[]){__VA_ARGS__})))

#define RM_SHAPE(...) ((rm_shape){RM_LEN(((int64_t[]){__VA_ARGS__})), {__VA_ARGS__}, RM_FLOAT32})
#define RM_INDICES(...) ((rm_shape){RM_LEN(((int64_t[]){__VA_ARGS__})), {__VA_ARGS__}, RM_INT64})

/* autodiff.c: the backward pass of `loss`. It and every parameter's gradient become outputs. */
void rm_tape_backward(rm_tape *tape, rm_tensor *loss);

#endif
