/* train_mlp.c: trains a small network on a memory budget, in C alone: it builds the graph of a
 * training step, plans it, places it in one arena, and runs it step after step.
 *
 *     cc -O2 train_mlp.c $(pkg-config --cflags --libs remat) -lm -o train_mlp
 *     ./train_mlp --budget 60%     # 100%, min, 1200KB, ...
 *
 * The network tells the arms of three spirals apart: LAYERS fully connected layers with ReLU
 * between them, cross entropy, AdamW. Weights, the batch and the optimizer's state are resident;
 * activations and gradients lie in the arena. Whatever the budget, the losses are the same to the
 * last bit, because the same kernels run on the same numbers.
 *
 * Gradients are outputs of the graph, and weights change after the run. If an op changed weights,
 * whatever is computed again after it would be computed from other weights. */
#define REMAT_EXPERIMENTAL
#include <remat.h>

#include "train.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#define PARALLEL_FOR _Pragma("omp parallel for")
#else
#define PARALLEL_FOR
#endif

enum { BATCH = 512, FEATURES = 8, WIDTH = 96, CLASSES = 3, LAYERS = 8 };

static int rows_of(int layer) { return (layer == 0 ? FEATURES : WIDTH) + 1; } /* one for the bias */
static int columns_of(int layer) { return layer == LAYERS - 1 ? CLASSES : WIDTH; }

/* ---- kernels: rows are independent, so the order of every sum is the same in every run ---- */

/* out = in W, where the last row of W is the bias. */
static void linear(float *out, const float *in, const float *w, int rows, int columns)
{
    PARALLEL_FOR
    for (int i = 0; i < BATCH; i++) {
        float *to = out + i * columns;
        memcpy(to, w + (rows - 1) * columns, (size_t)columns * sizeof *to);
        for (int k = 0; k < rows - 1; k++)
            for (int j = 0; j < columns; j++) to[j] += in[i * (rows - 1) + k] * w[k * columns + j];
    }
}

static void relu(float *out, const float *in, int n)
{
    for (int i = 0; i < n; i++) out[i] = in[i] > 0 ? in[i] : 0;
}

/* The gradient passes where the output is not 0. */
static void relu_grad(float *out, const float *grad, const float *relu_out, int n)
{
    for (int i = 0; i < n; i++) out[i] = relu_out[i] > 0 ? grad[i] : 0;
}

static void linear_grad_weights(float *out, const float *in, const float *grad, int rows,
                                int columns)
{
    PARALLEL_FOR
    for (int k = 0; k < rows; k++) {
        float *to = out + k * columns;
        for (int j = 0; j < columns; j++) to[j] = 0;
        for (int i = 0; i < BATCH; i++) {
            const float x = k < rows - 1 ? in[i * (rows - 1) + k] : 1;
            for (int j = 0; j < columns; j++) to[j] += x * grad[i * columns + j];
        }
    }
}

static void linear_grad_input(float *out, const float *grad, const float *w, int rows, int columns)
{
    PARALLEL_FOR
    for (int i = 0; i < BATCH; i++)
        for (int k = 0; k < rows - 1; k++) {
            float sum = 0;
            for (int j = 0; j < columns; j++) sum += grad[i * columns + j] * w[k * columns + j];
            out[i * (rows - 1) + k] = sum;
        }
}

/* The mean loss, and the gradient of the logits. */
static void cross_entropy(float *loss, float *grad, const float *logits, const float *labels)
{
    float sum = 0;
    for (int i = 0; i < BATCH; i++) {
        const float *z = logits + i * CLASSES;
        float most = z[0], total = 0;
        for (int j = 1; j < CLASSES; j++) most = z[j] > most ? z[j] : most;
        for (int j = 0; j < CLASSES; j++) total += expf(z[j] - most);
        for (int j = 0; j < CLASSES; j++) {
            const float p = expf(z[j] - most) / total, hit = (int)labels[i] == j ? 1 : 0;
            grad[i * CLASSES + j] = (p - hit) / BATCH;
            if (hit > 0) sum -= logf(p > 1e-30f ? p : 1e-30f);
        }
    }
    *loss = sum / BATCH;
}

/* ---- the graph of a step ---- */

typedef enum kernel { LINEAR, RELU, LOSS, GRAD_WEIGHTS, GRAD_INPUT, GRAD_RELU } kernel;

typedef struct op {
    kernel kernel;
    int layer;
} op;

typedef struct network {
    uint32_t x, labels, weights[LAYERS]; /* values of the graph */
    op ops[6 * LAYERS];                  /* by op of the graph */
} network;

#define LIST(...)                                                                                  \
    (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)

static uint32_t tensor(remat_builder *b, const char *name, int layer, int n)
{
    char full[32];
    snprintf(full, sizeof full, "%s%d", name, layer);
    return remat_builder_value(b, full, (int64_t)n * (int64_t)sizeof(float));
}

static void add(remat_builder *b, network *net, op what, int64_t flops, const uint32_t *in,
                size_t n_in, const uint32_t *out, size_t n_out)
{
    static const char *const names[] = {"linear",       "relu",       "loss",
                                        "grad_weights", "grad_input", "grad_relu"};
    char name[32];
    snprintf(name, sizeof name, "%s%d", names[what.kernel], what.layer);
    const uint32_t index = remat_builder_op(b, name, in, (uint32_t)n_in, out, (uint32_t)n_out);
    remat_builder_op_set(b, index, REMAT_OP_COST, flops);
    remat_builder_op_set(b, index, REMAT_OP_PHASE,
                         what.kernel <= RELU ? REMAT_FORWARD : REMAT_BACKWARD);
    if (index < sizeof net->ops / sizeof *net->ops) net->ops[index] = what;
}

/* Forward: the inputs of all layers. */
static uint32_t add_forward(remat_builder *b, network *net, uint32_t *inputs)
{
    uint32_t z = REMAT_NONE;
    inputs[0] = net->x;
    for (int l = 0; l < LAYERS; l++) {
        const int columns = columns_of(l);
        z = tensor(b, "z", l, BATCH * columns);
        add(b, net, (op){LINEAR, l}, (int64_t)2 * BATCH * rows_of(l) * columns,
            LIST(inputs[l], net->weights[l]), LIST(z));
        if (l == LAYERS - 1) break;
        inputs[l + 1] = tensor(b, "h", l, BATCH * columns);
        add(b, net, (op){RELU, l}, (int64_t)BATCH * columns, LIST(z), LIST(inputs[l + 1]));
    }
    return z;
}

/* Backward, from the gradient of the last layer's output. Gradients of weights are outputs. */
static void add_backward(remat_builder *b, network *net, const uint32_t *inputs, uint32_t grad)
{
    for (int l = LAYERS - 1; l >= 0; l--) {
        const int64_t flops = (int64_t)2 * BATCH * rows_of(l) * columns_of(l);
        const uint32_t dw = tensor(b, "dw", l, rows_of(l) * columns_of(l));
        add(b, net, (op){GRAD_WEIGHTS, l}, flops, LIST(inputs[l], grad), LIST(dw));
        remat_builder_output(b, dw);
        if (l == 0) break;
        const int n = BATCH * (rows_of(l) - 1);
        const uint32_t dh = tensor(b, "dh", l, n), dz = tensor(b, "dz", l - 1, n);
        add(b, net, (op){GRAD_INPUT, l}, flops, LIST(grad, net->weights[l]), LIST(dh));
        add(b, net, (op){GRAD_RELU, l}, n, LIST(dh, inputs[l]), LIST(dz));
        grad = dz;
    }
}

static remat_status build(remat_ctx *ctx, network *net, remat_graph **graph)
{
    remat_builder *b = remat_builder_new(ctx, "mlp");
    uint32_t inputs[LAYERS];
    if (!b) return REMAT_E_MEMORY;
    remat_builder_cost_unit(b, "flops");
    net->x = tensor(b, "x", 0, BATCH * FEATURES);
    net->labels = tensor(b, "labels", 0, BATCH);
    for (int l = 0; l < LAYERS; l++)
        net->weights[l] = tensor(b, "w", l, rows_of(l) * columns_of(l));
    const uint32_t logits = add_forward(b, net, inputs);
    const uint32_t loss = tensor(b, "loss", 0, 1), grad = tensor(b, "dlogits", 0, BATCH * CLASSES);
    add(b, net, (op){LOSS, 0}, (int64_t)10 * BATCH * CLASSES, LIST(logits, net->labels),
        LIST(loss, grad));
    remat_builder_output(b, loss); /* output 0; the gradient of layer l is output LAYERS - l */
    add_backward(b, net, inputs, grad);
    const remat_status status = remat_builder_finish(b, graph); /* reports the first mistake */
    remat_builder_free(b);
    return status;
}

/* What the runtime calls for every op of the plan. */
static int compute(void *user, const remat_call *call)
{
    const op *o = &((const network *)user)->ops[call->op];
    const int rows = rows_of(o->layer), columns = columns_of(o->layer);
    void *const *in = call->in, *const *out = call->out;
    switch (o->kernel) {
    case LINEAR: linear(out[0], in[0], in[1], rows, columns); break;
    case RELU: relu(out[0], in[0], BATCH * columns); break;
    case LOSS: cross_entropy(out[0], out[1], in[0], in[1]); break;
    case GRAD_WEIGHTS: linear_grad_weights(out[0], in[0], in[1], rows, columns); break;
    case GRAD_INPUT: linear_grad_input(out[0], in[0], in[1], rows, columns); break;
    case GRAD_RELU: relu_grad(out[0], in[0], in[1], BATCH * (rows - 1)); break;
    }
    return 0;
}

/* ---- training ---- */

static uint64_t random_state = 1;
static float uniform(void) /* 0 <= x < 1 */
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)(random_state >> 40) / 16777216.0f;
}

typedef struct parameter {
    float *w, *m, *v; /* the weights, and AdamW's moments */
    size_t n;
} parameter;

typedef struct trainer {
    network net;
    parameter layers[LAYERS];
    float x[BATCH * FEATURES], labels[BATCH];
} trainer;

static bool start(trainer *t)
{
    for (int l = 0; l < LAYERS; l++) {
        const size_t n = (size_t)rows_of(l) * (size_t)columns_of(l);
        parameter *p = &t->layers[l];
        *p = (parameter){calloc(n, sizeof(float)), calloc(n, sizeof(float)),
                         calloc(n, sizeof(float)), n};
        if (!p->w || !p->m || !p->v) return false;
        const float scale = sqrtf(6.0f / (float)rows_of(l));
        for (size_t i = 0; i + (size_t)columns_of(l) < n; i++)
            p->w[i] = scale * (2 * uniform() - 1);
    }
    return true;
}

static void next_batch(trainer *t)
{
    for (int i = 0; i < BATCH; i++) {
        const int arm = (int)(uniform() * CLASSES);
        const float radius = 0.1f + uniform(), noise = uniform() + uniform() - 1;
        const float angle = 6 * radius + 2.0943951f * (float)arm + 1.2f * noise;
        const float x = radius * cosf(angle), y = radius * sinf(angle);
        const float features[FEATURES] = {x, y, x * y, x * x, y * y, sinf(4 * x), sinf(4 * y), 1};
        memcpy(t->x + i * FEATURES, features, sizeof features);
        t->labels[i] = (float)arm;
    }
}

static void adamw(parameter *p, const float *grad, int step)
{
    const float rate = 2e-3f, b1 = 0.9f, b2 = 0.99f, decay = 1e-2f;
    const float c1 = 1 - powf(b1, (float)step), c2 = 1 - powf(b2, (float)step);
    for (size_t i = 0; i < p->n; i++) {
        p->m[i] = b1 * p->m[i] + (1 - b1) * grad[i];
        p->v[i] = b2 * p->v[i] + (1 - b2) * grad[i] * grad[i];
        p->w[i] -= rate * (p->m[i] / c1 / (sqrtf(p->v[i] / c2) + 1e-8f) + decay * p->w[i]);
    }
}

static remat_status tell_residents(remat_ctx *ctx, remat_run *run, trainer *t)
{
    remat_status status = remat_run_resident(ctx, run, t->net.x, t->x);
    if (status == REMAT_OK) status = remat_run_resident(ctx, run, t->net.labels, t->labels);
    for (int l = 0; l < LAYERS && status == REMAT_OK; l++)
        status = remat_run_resident(ctx, run, t->net.weights[l], t->layers[l].w);
    return status;
}

static remat_status train(remat_ctx *ctx, remat_run *run, trainer *t, int n_steps)
{
    const remat_hooks hooks = {sizeof hooks, &t->net, compute, NULL, NULL};
    for (int step = 1; step <= n_steps; step++) {
        next_batch(t);
        const remat_status status = remat_run_steps(ctx, run, &hooks);
        if (status != REMAT_OK) return status;
        for (int l = 0; l < LAYERS; l++)
            adamw(&t->layers[l], remat_run_output(run, (uint32_t)(LAYERS - l)), step);
        if (step == 1 || step % 20 == 0)
            printf("step %4d  loss %.9g\n", step, (double)*(float *)remat_run_output(run, 0));
    }
    return REMAT_OK;
}

/* ---- the program ---- */

typedef struct options {
    const char *budget, *trace;
    long steps;
    unsigned modes;
} options;

static bool parse(options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--poison") == 0) {
            o->modes |= REMAT_RUN_POISON;
            continue;
        }
        if (value && strcmp(argv[i], "--budget") == 0) o->budget = value;
        else if (value && strcmp(argv[i], "--trace") == 0) o->trace = value;
        else if (value && strcmp(argv[i], "--steps") == 0) {
            if (!read_number(argv[i], value, 1, 1000000, &o->steps)) return false;
        } else {
            fprintf(stderr, "'%s' needs a value, or is no flag; --help lists them\n", argv[i]);
            return false;
        }
        i++;
    }
    if (o->trace) o->modes |= REMAT_RUN_TRACE;
    return true;
}

static int to_file(void *user, const void *bytes, size_t n)
{
    return fwrite(bytes, 1, n, user) == n ? 0 : 1;
}

static remat_status write_trace(remat_ctx *ctx, const remat_run *run, const remat_graph *graph,
                                const char *path)
{
    FILE *file = fopen(path, "w");
    remat_status status = file ? remat_run_trace_write(ctx, run, graph, to_file, file) : REMAT_E_IO;
    if (file && fclose(file) != 0) status = REMAT_E_IO;
    if (status == REMAT_E_IO) fprintf(stderr, "%s: cannot be written\n", path);
    return status;
}

int main(int argc, char **argv)
{
    static trainer t;
    options o = {.budget = "60%", .steps = 200};
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        printf("usage: %s [--budget B] [--steps N] [--poison] [--trace FILE]\n", argv[0]);
        return REMAT_OK;
    }
    if (!parse(&o, argc, argv)) return REMAT_E_USAGE;
    if (o.trace && !is_writable(o.trace)) return REMAT_E_IO;
    remat_ctx *ctx = remat_ctx_new(NULL);
    if (!ctx || !start(&t)) return REMAT_E_MEMORY;
    remat_graph *plain = NULL, *graph = NULL;
    remat_run *run = NULL;
    void *arena = NULL;
    remat_status status = build(ctx, &t.net, &plain);
    if (status == REMAT_OK) status = remat_graph_align(ctx, plain, 0, &graph);
    if (status == REMAT_OK) status = plan_and_place(ctx, graph, o.budget, &run);
    if (status == REMAT_OK) {
        arena = aligned_alloc(REMAT_ALIGN, (size_t)remat_run_arena_bytes(run));
        status = remat_run_arena(ctx, run, arena, arena ? remat_run_arena_bytes(run) : 0);
    }
    if (status == REMAT_OK) status = tell_residents(ctx, run, &t);
    if (status == REMAT_OK) {
        remat_run_modes(run, o.modes);
        status = train(ctx, run, &t, (int)o.steps);
    }
    if (status == REMAT_OK) printf("high water %" PRId64 " bytes\n", remat_run_high_water(run));
    if (status == REMAT_OK && o.trace) status = write_trace(ctx, run, graph, o.trace);
    if (status != REMAT_OK && status != REMAT_E_IO && *remat_ctx_error(ctx))
        fprintf(stderr, "%s\n", remat_ctx_error(ctx));
    for (int l = 0; l < LAYERS; l++) free(t.layers[l].w), free(t.layers[l].m), free(t.layers[l].v);
    free(arena);
    remat_run_free(run), remat_graph_free(graph), remat_graph_free(plain), remat_ctx_free(ctx);
    return (int)status;
}
