/* examples.c: the functions of the min-cut paper ("Transcending Runtime-Memory Tradeoffs in
 * Checkpointing by being Fusion Aware") as joint graphs.
 *
 *   - f: tanh(tanh(x)), section 1.
 *   - f1: cos(cos(a + b + c + d)), section 2.3 and Fig. 2.
 *   - f2: x times a random mask, section 2.3.
 *   - gelu: the tanh form, of which naive AD keeps x and four more tensors, Table 1.
 *   - fig4: a -> b -> c -> d, d -> e, f(b, c, e) with e not fusible, section 3.7. Forward only.
 *
 * Each is a table, read from top to bottom. A row is an op with one result. Names are those of the
 * paper where it has names. `remat.boundary` takes the results of the forward pass and gives the
 * gradient of the output, as in a graph captured from torch. Rows below it are the backward pass.
 *
 * A tensor has `size` bytes, so with size=1 bytes count tensors. f2 has `n` elements: of 4 bytes,
 * in the mask of 1. The input of fig4 is `k` times larger, and b is its sum if k > 1. Cost: O(1).
 */
#include "zoo/models.h"

#include <assert.h>
#include <string.h>

enum { MAX_READS = 4 };

typedef struct row {
    const char *name;
    const char *target; /* NULL: an input of the graph */
    const char *in;     /* names of rows, with blanks between */
    remat_class op_class;
    int64_t element_bytes; /* 0: 1 */
} row;

typedef struct example {
    const row *rows;
    size_t n_rows;
    const char *outputs;
    int64_t elements, input_elements;
    const char *dtype;
} example;

#define BOUNDARY "remat.boundary"
#define F REMAT_CLASS_FUSIBLE

/* The value of a row is its index. */
static uint32_t find(const example *e, const char *name, size_t length)
{
    uint32_t i = 0;
    while (strncmp(e->rows[i].name, name, length) != 0 || e->rows[i].name[length] != '\0') {
        i++;
        assert(i < e->n_rows);
    }
    return i;
}

static uint32_t names_to_values(const example *e, const char *names, uint32_t values[MAX_READS])
{
    uint32_t n = 0;
    while (*names) {
        const size_t length = strcspn(names, " ");
        assert(n < MAX_READS);
        values[n++] = find(e, names, length);
        names += length;
        if (*names == ' ') names++;
    }
    return n;
}

static void write_value(rm_tape *tape, const example *e, const row *r)
{
    const int64_t item = r->element_bytes ? r->element_bytes : 1;
    const int64_t elements = r->target ? e->elements : e->input_elements;
    const uint32_t value =
        remat_builder_value(tape->builder, r->name, RM_PRODUCT(tape, item, elements));
    const char *dtype = item == 1 ? "bool" : e->dtype;
    if (e->dtype) remat_builder_value_tensor(tape->builder, value, dtype, &elements, 1);
}

static rm_tensor *write_example(rm_tape *tape, const example *e)
{
    remat_builder *b = tape->builder;
    remat_phase phase = REMAT_FORWARD;
    uint32_t values[MAX_READS], n;
    for (uint32_t i = 0; i < e->n_rows; i++) write_value(tape, e, &e->rows[i]);
    for (uint32_t i = 0; i < e->n_rows; i++) {
        const row *r = &e->rows[i];
        if (!r->target) {
            remat_builder_value_set(b, i, REMAT_VALUE_KIND, REMAT_INPUT);
            continue;
        }
        n = names_to_values(e, r->in, values);
        const bool boundary = strcmp(r->target, BOUNDARY) == 0;
        const uint32_t op = remat_builder_op(b, boundary ? "boundary" : r->name, values, n, &i, 1);
        remat_builder_op_target(b, op, r->target);
        remat_builder_op_set(b, op, REMAT_OP_CLASS, r->op_class);
        if (boundary) {
            phase = REMAT_BACKWARD;
            remat_builder_op_set(b, op, REMAT_OP_PINNED, 1);
        }
        remat_builder_op_set(b, op, REMAT_OP_PHASE, phase);
    }
    n = names_to_values(e, e->outputs, values);
    for (uint32_t i = 0; i < n; i++) remat_builder_output(b, values[i]);
    return NULL;
}

/* clang-format off: tables */
rm_tensor *rm_example_f(rm_tape *tape, const rm_zoo_args *args)
{
    static const row rows[] = {
        {"x", NULL, "", 0, 0},
        {"tanh1", "aten.tanh.default", "x", F, 0},
        {"tanh2", "aten.tanh.default", "tanh1", F, 0},
        {"grad_out", BOUNDARY, "tanh2", 0, 0},
        {"grad_tanh1", "aten.tanh_backward.default", "grad_out tanh2", F, 0},
        {"grad_in", "aten.tanh_backward.default", "grad_tanh1 tanh1", F, 0},
    };
    return write_example(
        tape, &(example){rows, RM_LEN(rows), "tanh2 grad_in", args->size, args->size, NULL});
}

rm_tensor *rm_example_f1(rm_tape *tape, const rm_zoo_args *args)
{
    static const row rows[] = {
        {"a", NULL, "", 0, 0},
        {"b", NULL, "", 0, 0},
        {"c", NULL, "", 0, 0},
        {"d", NULL, "", 0, 0},
        {"add1", "aten.add.Tensor", "a b", F, 0},
        {"add2", "aten.add.Tensor", "add1 c", F, 0},
        {"add3", "aten.add.Tensor", "add2 d", F, 0},
        {"cos1", "aten.cos.default", "add3", F, 0},
        {"cos2", "aten.cos.default", "cos1", F, 0},
        {"grad_out", BOUNDARY, "cos2", 0, 0},
        {"sin2", "aten.sin.default", "cos1", F, 0},
        {"neg2", "aten.neg.default", "sin2", F, 0},
        {"mul2", "aten.mul.Tensor", "grad_out neg2", F, 0},
        {"sin1", "aten.sin.default", "add3", F, 0},
        {"neg1", "aten.neg.default", "sin1", F, 0},
        {"grad_in", "aten.mul.Tensor", "mul2 neg1", F, 0},
    };
    return write_example(
        tape, &(example){rows, RM_LEN(rows), "cos2 grad_in", args->size, args->size, NULL});
}

rm_tensor *rm_example_f2(rm_tape *tape, const rm_zoo_args *args)
{
    static const row rows[] = {
        {"x", NULL, "", 0, 4},
        {"rand", "aten.rand.default", "", REMAT_CLASS_RANDOM, 4},
        {"mask", "aten.lt.Scalar", "rand", F, 1},
        {"out", "aten.mul.Tensor", "x mask", F, 4},
        {"grad_out", BOUNDARY, "out", 0, 4},
        {"grad_in", "aten.mul.Tensor", "grad_out mask", F, 4},
    };
    return write_example(
        tape, &(example){rows, RM_LEN(rows), "out grad_in", args->n, args->n, "float32"});
}

/* 0.5 x (1 + tanh(c (x + 0.044715 x^3))): products keep both factors, tanh its result. */
rm_tensor *rm_example_gelu(rm_tape *tape, const rm_zoo_args *args)
{
    static const row rows[] = {
        {"x", NULL, "", 0, 0},
        {"square", "aten.mul.Tensor", "x", F, 0},
        {"cube", "aten.mul.Tensor", "square x", F, 0},
        {"scaled_cube", "aten.mul.Scalar", "cube", F, 0},
        {"inner", "aten.add.Tensor", "x scaled_cube", F, 0},
        {"scaled_inner", "aten.mul.Scalar", "inner", F, 0},
        {"tanh", "aten.tanh.default", "scaled_inner", F, 0},
        {"one_plus", "aten.add.Scalar", "tanh", F, 0},
        {"half", "aten.mul.Scalar", "x", F, 0},
        {"out", "aten.mul.Tensor", "half one_plus", F, 0},
        {"grad_out", BOUNDARY, "out", 0, 0},
        {"grad_half", "aten.mul.Tensor", "grad_out one_plus", F, 0},
        {"grad_tanh", "aten.mul.Tensor", "grad_out half", F, 0},
        {"grad_x1", "aten.mul.Scalar", "grad_half", F, 0},
        {"grad_scaled_inner", "aten.tanh_backward.default", "grad_tanh tanh", F, 0},
        {"grad_inner", "aten.mul.Scalar", "grad_scaled_inner", F, 0},
        {"grad_x2", "aten.add.Tensor", "grad_x1 grad_inner", F, 0},
        {"grad_cube", "aten.mul.Scalar", "grad_inner", F, 0},
        {"grad_square", "aten.mul.Tensor", "grad_cube x", F, 0},
        {"grad_x3", "aten.mul.Tensor", "grad_cube square", F, 0},
        {"grad_x4", "aten.add.Tensor", "grad_x2 grad_x3", F, 0},
        {"grad_factor", "aten.mul.Tensor", "grad_square x", F, 0},
        {"grad_x5", "aten.mul.Scalar", "grad_factor", F, 0},
        {"grad_in", "aten.add.Tensor", "grad_x4 grad_x5", F, 0},
    };
    return write_example(
        tape, &(example){rows, RM_LEN(rows), "out grad_in", args->size, args->size, NULL});
}

rm_tensor *rm_example_fig4(rm_tape *tape, const rm_zoo_args *args)
{
    const row rows[] = {
        {"a", NULL, "", 0, 0},
        {"b", args->k > 1 ? "aten.sum.default" : "aten.sin.default", "a", F, 0},
        {"c", "aten.cos.default", "b", F, 0},
        {"d", "aten.exp.default", "c", F, 0},
        {"e", "aten.sort.default", "d", REMAT_CLASS_OTHER, 0},
        {"f", "aten.add.Tensor", "b c e", F, 0},
    };
    const int64_t input = RM_PRODUCT(tape, args->size, args->k);
    return write_example(tape, &(example){rows, RM_LEN(rows), "f", args->size, input, NULL});
}
/* clang-format on */
