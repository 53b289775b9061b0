/* train_gpt.c: trains a GPT on a text within a memory budget, in C alone.
 *
 *     cc -O3 -march=native -ffp-contract=fast -fopenmp train_gpt.c \
 *         $(pkg-config --cflags --libs remat) -lm -o train_gpt
 *     ./train_gpt --text shakespeare.txt --budget 50%     # 100%, min, 40MB, ...
 *
 * The model is GPT-2's with bytes as tokens: embeddings, blocks of attention and of a perceptron,
 * each behind a layer norm and beside a residual, cross entropy, AdamW. `build` makes the graph of
 * a training step, `plan_and_place` plans it and finds an address for everything in one arena, and
 * `train` runs it step after step.
 *
 * The budget is for all of training: weights, AdamW's moments and the batch are resident values of
 * the graph; activations, gradients and workspaces lie in the arena. Whatever the budget, the
 * losses are the same to the last bit. Every sum has one order, whoever computes it, so the number
 * of threads does not matter either.
 *
 * Gradients are outputs of the graph, and weights change after the run. If an op changed weights,
 * whatever is computed again after it would be computed from other weights. */
#define REMAT_EXPERIMENTAL
#include <remat.h>

#include "gpt_kernels.h"
#include "train.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- the graph of a step ---- */

typedef enum kernel {
    EMBED,
    NORM,
    LINEAR,
    ATTEND,
    MIX,
    GELU,
    ADD,
    LOSS,
    GRAD_WEIGHTS,
    GRAD_INPUT,
    GRAD_GELU,
    GRAD_NORM,
    GRAD_ATTENTION,
    GRAD_EMBED
} kernel;

typedef struct op {
    kernel kernel;
    long rows, columns; /* of its weights, or of what it makes */
} op;

typedef struct parameter {
    uint32_t value;     /* in the graph */
    uint32_t output;    /* of the graph: its gradient */
    long rows, columns; /* the last row of a linear layer is its bias */
    float *w, *m, *v;   /* the weights, and AdamW's moments */
} parameter;

static long count(const parameter *p) { return p->rows * p->columns; }

enum { NORM1, QKV, PROJECT, NORM2, WIDEN, NARROW, OF_A_LAYER }; /* parameters of a layer */
enum { OF_TOKEN, OF_PLACE, LAST_NORM, HEAD, OUTSIDE };          /* parameters of no layer */
enum { OPS_OF_A_LAYER = 25, OPS_OUTSIDE = 8, MAX_LAYERS = 100 };

typedef struct trainer {
    shape s;
    long n; /* places in a batch */
    parameter parameters[OUTSIDE + OF_A_LAYER * MAX_LAYERS];
    long n_parameters, n_weights;
    op ops[OPS_OUTSIDE + OPS_OF_A_LAYER * MAX_LAYERS]; /* by op of the graph */
    uint32_t tokens, targets;                          /* values of the graph */
    uint32_t n_outputs;
    float *weights; /* of all parameters, and then the moments */
    int32_t *batch; /* tokens, and then targets */
    unsigned char *text;
    long n_text, at; /* at: where the next batch begins */
} trainer;

#define LIST(...)                                                                                  \
    (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)

static uint32_t tensor(remat_builder *b, const char *name, long n)
{
    return remat_builder_value(b, name, (int64_t)n * (int64_t)sizeof(float));
}

/* About as many cycles as it takes; products of matrices come close to the speed of the machine,
 * the rest waits for memory. */
static int64_t cost_of(const trainer *t, op o)
{
    const int64_t n = t->n, square = (int64_t)t->n * t->s.length * t->s.width;
    switch (o.kernel) {
    case LINEAR:
    case GRAD_WEIGHTS:
    case GRAD_INPUT: return 2 * n * o.rows * o.columns;
    case ATTEND: return 2 * square + 20 * n * t->s.length * t->s.heads;
    case MIX: return square;
    case GRAD_ATTENTION: return 5 * square + 20 * n * t->s.length * t->s.heads;
    default: return 20 * n * o.columns;
    }
}

static int64_t workspace_of(const trainer *t, op o)
{
    const int64_t size = (int64_t)sizeof(float);
    if (o.kernel == LOSS) return t->n * size;
    if (o.kernel == GRAD_NORM) return t->n * o.columns * size;
    if (o.kernel == GRAD_ATTENTION) return n_threads() * BLOCK * t->s.length * size;
    return 0;
}

static void run_op(remat_builder *b, trainer *t, op what, const uint32_t *in, size_t n_in,
                   const uint32_t *out, size_t n_out)
{
    static const char *const names[] = {
        "embed", "norm",   "linear",  "attend",    "mix",       "gelu",        "add",
        "loss",  "grad_w", "grad_in", "grad_gelu", "grad_norm", "grad_attend", "grad_embed"};
    const uint32_t index =
        remat_builder_op(b, names[what.kernel], in, (uint32_t)n_in, out, (uint32_t)n_out);
    const bool forward = t->n_outputs == 0; /* the loss is the first */
    remat_builder_op_set(b, index, REMAT_OP_COST, cost_of(t, what));
    remat_builder_op_set(b, index, REMAT_OP_WORKSPACE, workspace_of(t, what));
    remat_builder_op_set(b, index, REMAT_OP_PHASE, forward ? REMAT_FORWARD : REMAT_BACKWARD);
    if (index < sizeof t->ops / sizeof *t->ops) t->ops[index] = what;
}

static uint32_t output(remat_builder *b, trainer *t, uint32_t value)
{
    remat_builder_output(b, value);
    return t->n_outputs++;
}

/* One op with one output of `columns` columns. */
static uint32_t make(remat_builder *b, trainer *t, op what, const char *name, long columns,
                     const uint32_t *in, size_t n_in)
{
    const uint32_t out = tensor(b, name, t->n * columns);
    run_op(b, t, what, in, n_in, LIST(out));
    return out;
}

static uint32_t add_linear(remat_builder *b, trainer *t, const parameter *p, uint32_t in)
{
    return make(b, t, (op){LINEAR, p->rows, p->columns}, "y", p->columns, LIST(in, p->value));
}

static uint32_t add_norm(remat_builder *b, trainer *t, const parameter *p, uint32_t in)
{
    return make(b, t, (op){NORM, 0, t->s.width}, "norm", t->s.width, LIST(in, p->value));
}

static uint32_t add_sum(remat_builder *b, trainer *t, uint32_t x, uint32_t y)
{
    return make(b, t, (op){ADD, 0, t->s.width}, "sum", t->s.width, LIST(x, y));
}

/* Gradient of a linear layer's input; that of its weights is an output of the graph. */
static uint32_t add_linear_grad(remat_builder *b, trainer *t, parameter *p, uint32_t in,
                                uint32_t grad)
{
    const uint32_t dw = tensor(b, "dw", count(p));
    run_op(b, t, (op){GRAD_WEIGHTS, p->rows, p->columns}, LIST(in, grad), LIST(dw));
    p->output = output(b, t, dw);
    return make(b, t, (op){GRAD_INPUT, p->rows, p->columns}, "dx", p->rows - 1,
                LIST(grad, p->value));
}

static uint32_t add_norm_grad(remat_builder *b, trainer *t, parameter *p, uint32_t in,
                              uint32_t grad)
{
    const uint32_t dx = tensor(b, "dnorm", t->n * t->s.width), dw = tensor(b, "dw", 2 * t->s.width);
    run_op(b, t, (op){GRAD_NORM, 0, t->s.width}, LIST(grad, in, p->value), LIST(dx, dw));
    p->output = output(b, t, dw);
    return dx;
}

typedef struct layer { /* what a layer makes, in this order */
    uint32_t in, norm1, qkv, scores, mixed, middle, norm2, wide, gelu;
} layer;

static uint32_t add_layer(remat_builder *b, trainer *t, const parameter *p, uint32_t in, layer *l)
{
    const long c = t->s.width;
    l->in = in;
    l->norm1 = add_norm(b, t, &p[NORM1], in);
    l->qkv = add_linear(b, t, &p[QKV], l->norm1);
    l->scores = make(b, t, (op){ATTEND, 0, 0}, "scores", t->s.heads * t->s.length, LIST(l->qkv));
    l->mixed = make(b, t, (op){MIX, 0, 0}, "mixed", c, LIST(l->scores, l->qkv));
    l->middle = add_sum(b, t, in, add_linear(b, t, &p[PROJECT], l->mixed));
    l->norm2 = add_norm(b, t, &p[NORM2], l->middle);
    l->wide = add_linear(b, t, &p[WIDEN], l->norm2);
    l->gelu = make(b, t, (op){GELU, 0, 4 * c}, "gelu", 4 * c, LIST(l->wide));
    return add_sum(b, t, l->middle, add_linear(b, t, &p[NARROW], l->gelu));
}

static uint32_t add_layer_grad(remat_builder *b, trainer *t, parameter *p, const layer *l,
                               uint32_t grad)
{
    const long c = t->s.width;
    uint32_t d = add_linear_grad(b, t, &p[NARROW], l->gelu, grad);
    d = make(b, t, (op){GRAD_GELU, 0, 4 * c}, "dgelu", 4 * c, LIST(d, l->wide));
    d = add_linear_grad(b, t, &p[WIDEN], l->norm2, d);
    grad = add_sum(b, t, grad, add_norm_grad(b, t, &p[NORM2], l->middle, d));
    d = add_linear_grad(b, t, &p[PROJECT], l->mixed, grad);
    d = make(b, t, (op){GRAD_ATTENTION, 0, 0}, "dqkv", 3 * c, LIST(d, l->scores, l->qkv));
    d = add_linear_grad(b, t, &p[QKV], l->norm1, d);
    return add_sum(b, t, grad, add_norm_grad(b, t, &p[NORM1], l->in, d));
}

static void add_ops(remat_builder *b, trainer *t)
{
    const long c = t->s.width;
    parameter *p = t->parameters, *of_layers = p + OUTSIDE;
    layer layers[MAX_LAYERS];
    uint32_t x = make(b, t, (op){EMBED, 0, c}, "embedded", c,
                      LIST(t->tokens, p[OF_TOKEN].value, p[OF_PLACE].value));
    for (long i = 0; i < t->s.layers; i++)
        x = add_layer(b, t, of_layers + i * OF_A_LAYER, x, &layers[i]);
    const uint32_t last = add_norm(b, t, &p[LAST_NORM], x);
    const uint32_t logits = add_linear(b, t, &p[HEAD], last);
    const uint32_t loss = tensor(b, "loss", 1), grad = tensor(b, "dlogits", t->n * VOCABULARY);
    run_op(b, t, (op){LOSS, 0, VOCABULARY}, LIST(logits, t->targets), LIST(loss, grad));
    output(b, t, loss); /* the first output of the graph */
    uint32_t d = add_linear_grad(b, t, &p[HEAD], last, grad);
    d = add_norm_grad(b, t, &p[LAST_NORM], x, d);
    for (long i = t->s.layers - 1; i >= 0; i--)
        d = add_layer_grad(b, t, of_layers + i * OF_A_LAYER, &layers[i], d);
    const uint32_t of_token = tensor(b, "dtokens", VOCABULARY * c),
                   of_place = tensor(b, "dplaces", t->s.length * c);
    run_op(b, t, (op){GRAD_EMBED, 0, c}, LIST(d, t->tokens), LIST(of_token, of_place));
    p[OF_TOKEN].output = output(b, t, of_token);
    p[OF_PLACE].output = output(b, t, of_place);
}

static remat_status build(remat_ctx *ctx, trainer *t, remat_graph **graph)
{
    remat_builder *b = remat_builder_new(ctx, "gpt");
    if (!b) return REMAT_E_MEMORY;
    remat_builder_cost_unit(b, "flops");
    t->tokens = tensor(b, "tokens", t->n);
    t->targets = tensor(b, "targets", t->n);
    for (long i = 0; i < t->n_parameters; i++) {
        parameter *p = &t->parameters[i];
        p->value = tensor(b, "w", count(p));
        tensor(b, "moments", 2 * count(p)); /* no op reads it, but it is there */
    }
    add_ops(b, t);
    const remat_status status = remat_builder_finish(b, graph); /* reports the first mistake */
    remat_builder_free(b);
    return status;
}

/* What the runtime calls for every op of the plan. */
static int compute(void *user, const remat_call *call)
{
    const trainer *t = user;
    const op *o = &t->ops[call->op];
    const long n = t->n, c = t->s.width, length = t->s.length, rows = o->rows, columns = o->columns;
    void *const *in = call->in, *const *out = call->out;
    switch (o->kernel) {
    case EMBED: embed(out[0], in[0], in[1], in[2], n, length, c); break;
    case NORM: norm(out[0], in[0], in[1], n, c); break;
    case LINEAR: linear(out[0], in[0], in[1], n, rows, columns); break;
    case ATTEND: attend(out[0], in[0], &t->s); break;
    case MIX: mix(out[0], in[0], in[1], &t->s); break;
    case GELU: gelu(out[0], in[0], n * columns); break;
    case ADD: add(out[0], in[0], in[1], n * c); break;
    case LOSS: cross_entropy(out[0], out[1], in[0], in[1], call->workspace, n); break;
    case GRAD_WEIGHTS: linear_grad_weights(out[0], in[0], in[1], n, rows, columns); break;
    case GRAD_INPUT: linear_grad_input(out[0], in[0], in[1], n, rows, columns); break;
    case GRAD_GELU: gelu_grad(out[0], in[0], in[1], n * columns); break;
    case GRAD_NORM: norm_grad(out[0], out[1], in[0], in[1], in[2], call->workspace, n, c); break;
    case GRAD_ATTENTION: attention_grad(out[0], in[0], in[1], in[2], call->workspace, &t->s); break;
    case GRAD_EMBED: embed_grad(out[0], out[1], in[0], in[1], n, length, c); break;
    }
    return 0;
}

/* ---- training ---- */

static const char lincoln[] =
    "Four score and seven years ago our fathers brought forth, upon this continent, a new nation, "
    "conceived in Liberty, and dedicated to the proposition that all men are created equal.\n"
    "Now we are engaged in a great civil war, testing whether that nation, or any nation so "
    "conceived and so dedicated, can long endure. We are met on a great battle-field of that war. "
    "We have come to dedicate a portion of that field, as a final resting place for those who here "
    "gave their lives that that nation might live. It is altogether fitting and proper that we "
    "should do this.\n"
    "But, in a larger sense, we can not dedicate -- we can not consecrate -- we can not hallow -- "
    "this ground. The brave men, living and dead, who struggled here, have consecrated it, far "
    "above our poor power to add or detract. The world will little note, nor long remember what we "
    "say here, but it can never forget what they did here.\n";

static float uniform(uint64_t *state) /* -1 <= x < 1 */
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)(*state >> 40) / 8388608.0f - 1;
}

static long padded(long n) { return (n + 127) / 128 * 128; } /* whole cache lines, and more */

static void shape_parameters(trainer *t)
{
    const long c = t->s.width;
    const long outside[][2] = {{VOCABULARY, c}, {t->s.length, c}, {2, c}, {c + 1, VOCABULARY}};
    const long inside[][2] = {{2, c}, {c + 1, 3 * c}, {c + 1, c},
                              {2, c}, {c + 1, 4 * c}, {4 * c + 1, c}};
    t->n_parameters = OUTSIDE + OF_A_LAYER * t->s.layers;
    for (long i = 0; i < t->n_parameters; i++) {
        const long *size = i < OUTSIDE ? outside[i] : inside[(i - OUTSIDE) % OF_A_LAYER];
        t->parameters[i].rows = size[0];
        t->parameters[i].columns = size[1];
        t->n_weights += padded(size[0] * size[1]);
    }
}

static bool is_norm(long i)
{
    const long kind = (i - OUTSIDE) % OF_A_LAYER;
    return i < OUTSIDE ? i == LAST_NORM : kind == NORM1 || kind == NORM2;
}

/* Norms begin with scale 1. Biases are 0. The rest is uniform, with a deviation of 0.02. */
static void start_weights(trainer *t)
{
    uint64_t random = 1;
    float *at = t->weights;
    for (long i = 0; i < t->n_parameters; i++) {
        parameter *p = &t->parameters[i];
        const bool has_bias = i != OF_TOKEN && i != OF_PLACE;
        const long n = count(p), drawn = n - (has_bias ? p->columns : 0);
        p->w = at;
        p->m = at + t->n_weights;
        p->v = at + 2 * t->n_weights;
        for (long k = 0; k < drawn; k++) p->w[k] = is_norm(i) ? 1 : 0.0346f * uniform(&random);
        at += padded(n);
    }
}

/* The file has raw floats, parameter after parameter. */
static bool load_weights(trainer *t, const char *path)
{
    FILE *file = fopen(path, "rb");
    bool good = true;
    if (!file) {
        fprintf(stderr, "%s: cannot be read: %s\n", path, strerror(errno));
        return false;
    }
    for (long i = 0; i < t->n_parameters && good; i++) {
        const size_t n = (size_t)count(&t->parameters[i]);
        good = fread(t->parameters[i].w, sizeof(float), n, file) == n;
    }
    good = good && fgetc(file) == EOF;
    fclose(file);
    if (!good) fprintf(stderr, "%s: these are no weights of this model\n", path);
    return good;
}

static bool save_weights(const trainer *t, const char *path)
{
    FILE *file = fopen(path, "wb");
    bool good = file != NULL;
    for (long i = 0; i < t->n_parameters && good; i++) {
        const size_t n = (size_t)count(&t->parameters[i]);
        good = fwrite(t->parameters[i].w, sizeof(float), n, file) == n;
    }
    if (file) good = fclose(file) == 0 && good;
    if (!good) fprintf(stderr, "%s: cannot be written\n", path);
    return good;
}

static const long MAX_TEXT = 1L << 40; /* a folder says that it is longer */

static bool read_text(trainer *t, const char *path)
{
    FILE *file = path ? fopen(path, "rb") : NULL;
    long size = (long)sizeof lincoln - 1;
    if (file && (fseek(file, 0, SEEK_END) != 0 || (size = ftell(file)) > MAX_TEXT)) size = -1;
    if ((path && !file) || size < 0) {
        fprintf(stderr, "%s: cannot be read\n", path);
        if (file) fclose(file);
        return false;
    }
    t->text = malloc((size_t)size + 1);
    if (t->text && !path) memcpy(t->text, lincoln, (size_t)size);
    if (t->text && path) {
        rewind(file);
        size = (long)fread(t->text, 1, (size_t)size, file);
    }
    if (file) fclose(file);
    t->n_text = size;
    if (t->text && size > t->s.length) return true;
    fprintf(stderr, "the text has %ld bytes, and a sequence needs %ld\n", size, t->s.length + 1);
    return false;
}

/* Sequences are taken one after the other, and from the beginning again. A target is the byte that
 * follows. */
static void next_batch(trainer *t)
{
    for (long i = 0; i < t->n; i += t->s.length, t->at += t->s.length) {
        if (t->at + t->s.length >= t->n_text) t->at = 0;
        for (long j = 0; j < t->s.length; j++) {
            t->batch[i + j] = t->text[t->at + j];
            t->batch[t->n + i + j] = t->text[t->at + j + 1];
        }
    }
}

static void adamw(parameter *p, const float *grad, float rate, int step)
{
    const float b1 = 0.9f, b2 = 0.95f, decay = 0.1f;
    const float c1 = 1 - powf(b1, (float)step), c2 = 1 - powf(b2, (float)step);
    const long n = count(p);
    PARALLEL_FOR
    for (long i = 0; i < n; i++) {
        p->m[i] = b1 * p->m[i] + (1 - b1) * grad[i];
        p->v[i] = b2 * p->v[i] + (1 - b2) * grad[i] * grad[i];
        p->w[i] -= rate * (p->m[i] / c1 / (sqrtf(p->v[i] / c2) + 1e-8f) + decay * p->w[i]);
    }
}

static double seconds(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static remat_status tell_residents(remat_ctx *ctx, remat_run *run, trainer *t)
{
    remat_status status = remat_run_resident(ctx, run, t->tokens, t->batch);
    if (status == REMAT_OK) status = remat_run_resident(ctx, run, t->targets, t->batch + t->n);
    for (long i = 0; i < t->n_parameters && status == REMAT_OK; i++)
        status = remat_run_resident(ctx, run, t->parameters[i].value, t->parameters[i].w);
    return status;
}

static remat_status train(remat_ctx *ctx, remat_run *run, trainer *t, int n_steps, float rate)
{
    const remat_hooks hooks = {sizeof hooks, t, compute, NULL, NULL};
    for (int step = 1; step <= n_steps; step++) {
        const double begin = seconds();
        next_batch(t);
        const remat_status status = remat_run_steps(ctx, run, &hooks);
        if (status != REMAT_OK) return status;
        for (long i = 0; i < t->n_parameters; i++)
            adamw(&t->parameters[i], remat_run_output(run, t->parameters[i].output), rate, step);
        const double ms = 1e3 * (seconds() - begin);
        printf("step %d/%d  loss %.9g  %.1f ms  %.0f tokens/s\n", step, n_steps,
               (double)*(float *)remat_run_output(run, 0), ms, 1e3 * (double)t->n / ms);
        fflush(stdout);
    }
    return REMAT_OK;
}

/* ---- the program ---- */

typedef struct options {
    shape s;
    const char *text, *budget, *load, *save;
    long steps;
    double rate;
    unsigned modes;
} options;

static const char usage[] =
    "usage: %s [--text FILE] [--budget B] [--steps N] [--rate R] [--load FILE] [--save FILE]\n"
    "    [--layers N] [--width N] [--heads N] [--length N] [--batch N] [--poison]\n";

static bool read_rate(const char *text, double *rate)
{
    char *end;
    *rate = strtod(text, &end);
    if (end != text && !*end && *rate >= 0 && *rate <= 1) return true; /* nan is neither */
    fprintf(stderr, "--rate: '%s' is not a number from 0 to 1\n", text);
    return false;
}

/* Puts `value` where the flag `name` wants it. */
static bool set_option(options *o, const char *name, const char *value)
{
    enum { LARGEST = 1 << 14, MOST_STEPS = 1000000000 };
    const struct {
        const char *name;
        const char **text;
        long *number, least, most;
    } table[] = {{"--text", &o->text, NULL, 0, 0},
                 {"--budget", &o->budget, NULL, 0, 0},
                 {"--load", &o->load, NULL, 0, 0},
                 {"--save", &o->save, NULL, 0, 0},
                 {"--steps", NULL, &o->steps, 0, MOST_STEPS},
                 {"--layers", NULL, &o->s.layers, 1, MAX_LAYERS},
                 {"--width", NULL, &o->s.width, 1, LARGEST},
                 {"--heads", NULL, &o->s.heads, 1, LARGEST},
                 {"--length", NULL, &o->s.length, 1, LARGEST},
                 {"--batch", NULL, &o->s.batch, 1, LARGEST}};
    if (strcmp(name, "--rate") == 0) return read_rate(value, &o->rate);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(name, table[i].name) != 0) continue;
        if (table[i].text) *table[i].text = value;
        return table[i].text ||
               read_number(name, value, table[i].least, table[i].most, table[i].number);
    }
    fprintf(stderr, "'%s' is no flag; --help lists them\n", name);
    return false;
}

static bool parse(options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--poison") == 0) {
            o->modes |= REMAT_RUN_POISON;
        } else if (i + 1 == argc) {
            fprintf(stderr, "'%s' needs a value, or is no flag; --help lists them\n", argv[i]);
            return false;
        } else if (!set_option(o, argv[i], argv[i + 1])) {
            return false;
        } else {
            i++;
        }
    }
    if (o->s.width % o->s.heads == 0) return true;
    fprintf(stderr, "--width: %ld is no multiple of %ld --heads\n", o->s.width, o->s.heads);
    return false;
}

/* Memory for the weights, their moments, and a batch. */
static bool start(trainer *t, const options *o)
{
    if (!read_text(t, o->text)) return false;
    t->weights = aligned_alloc(REMAT_ALIGN, (size_t)(3 * t->n_weights) * sizeof(float));
    t->batch = aligned_alloc(REMAT_ALIGN, (size_t)padded(2 * t->n) * sizeof(int32_t));
    if (!t->weights || !t->batch) {
        fprintf(stderr, "there is not enough memory for the weights\n");
        return false;
    }
    memset(t->weights, 0, (size_t)(3 * t->n_weights) * sizeof(float));
    start_weights(t);
    return !o->load || load_weights(t, o->load);
}

static remat_status run_training(remat_ctx *ctx, trainer *t, const options *o)
{
    remat_graph *plain = NULL, *graph = NULL;
    remat_run *run = NULL;
    void *arena = NULL;
    if (!start(t, o)) return REMAT_E_INPUT; /* before a second goes into a plan */
    remat_status status = build(ctx, t, &plain);
    if (status == REMAT_OK && o->save && !is_writable(o->save)) status = REMAT_E_IO;
    if (status == REMAT_OK) status = remat_graph_align(ctx, plain, 0, &graph);
    if (status == REMAT_OK) status = plan_and_place(ctx, graph, o->budget, &run);
    if (status == REMAT_OK) {
        arena = aligned_alloc(REMAT_ALIGN, (size_t)remat_run_arena_bytes(run));
        status = remat_run_arena(ctx, run, arena, arena ? remat_run_arena_bytes(run) : 0);
    }
    if (status == REMAT_OK) status = tell_residents(ctx, run, t);
    if (status == REMAT_OK) {
        remat_run_modes(run, o->modes);
        status = train(ctx, run, t, (int)o->steps, (float)o->rate);
    }
    if (status == REMAT_OK) printf("high water %" PRId64 " bytes\n", remat_run_high_water(run));
    if (status == REMAT_OK && o->save && !save_weights(t, o->save)) status = REMAT_E_IO;
    free(arena);
    remat_run_free(run), remat_graph_free(graph), remat_graph_free(plain);
    return status;
}

int main(int argc, char **argv)
{
    static trainer t;
    options o = {.s = {8, 128, 128, 4, 4}, .budget = "50%", .steps = 100, .rate = 1e-3};
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        printf(usage, argv[0]);
        return REMAT_OK;
    }
    if (!parse(&o, argc, argv)) return REMAT_E_USAGE;
    remat_ctx *ctx = remat_ctx_new(NULL);
    if (!ctx) return REMAT_E_MEMORY;
    t.s = o.s;
    t.n = o.s.batch * o.s.length;
    shape_parameters(&t);
    const remat_status status = run_training(ctx, &t, &o);
    if (status != REMAT_OK && *remat_ctx_error(ctx)) fprintf(stderr, "%s\n", remat_ctx_error(ctx));
    free(t.text), free(t.weights), free(t.batch);
    remat_ctx_free(ctx);
    return (int)status;
}
