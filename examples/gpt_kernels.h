/* gpt_kernels.h: what train_gpt.c computes, on a CPU, in plain C with OpenMP where there is any.
 *
 * Tensors are rows of floats, one row for each place of each sequence of the batch. Every sum has
 * one order, whatever the number of threads: a thread has whole rows, whole columns or whole tiles,
 * and adds them up in the order of their indices. So whatever is computed again has the same bits.
 *
 * The products of matrices take nearly all of the time. They go tile by tile: a part of the right
 * factor is copied to where it can be read in one piece, and a few rows of the result stay in
 * registers while the depth is walked. */
#ifndef GPT_KERNELS_H
#define GPT_KERNELS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#define PARALLEL_FOR _Pragma("omp parallel for")
#define PARALLEL_TILES _Pragma("omp parallel for collapse(2) schedule(dynamic)")
static long n_threads(void) { return omp_get_max_threads(); }
static long this_thread(void) { return omp_get_thread_num(); }
#else
#define PARALLEL_FOR
#define PARALLEL_TILES
static long n_threads(void) { return 1; }
static long this_thread(void) { return 0; }
#endif

/* ---- sums: LANES of them side by side, which vector units like, in an order that is fixed ---- */

enum { LANES = 16, VOCABULARY = 256 };

static float add_lanes(const float *lane)
{
    float sum = 0;
    for (int j = 0; j < LANES; j++) sum += lane[j];
    return sum;
}

static float sum_of(const float *x, long n)
{
    float lane[LANES] = {0};
    const long whole = n - n % LANES;
    for (long i = 0; i < whole; i += LANES)
        for (int j = 0; j < LANES; j++) lane[j] += x[i + j];
    for (long i = whole; i < n; i++) lane[0] += x[i];
    return add_lanes(lane);
}

static float sum_of_products(const float *x, const float *y, long n)
{
    float lane[LANES] = {0};
    const long whole = n - n % LANES;
    for (long i = 0; i < whole; i += LANES)
        for (int j = 0; j < LANES; j++) lane[j] += x[i + j] * y[i + j];
    for (long i = whole; i < n; i++) lane[0] += x[i] * y[i];
    return add_lanes(lane);
}

static float largest_of(const float *x, long n)
{
    float most = x[0];
    for (long i = 1; i < n; i++) most = x[i] > most ? x[i] : most;
    return most;
}

/* e^x = 2^n e^r with r at most half of ln 2, within 2 units in the last place. No branch, no call:
 * loops over it become vector code. Below -87 it is e^-87, which is as good as 0 here. */
static inline float exp_of(float x)
{
    const float magic =
        12582912.0f; /* 1.5 * 2^23: adding it rounds, and leaves n in the low bits */
    const float bounded = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
    const float shifted = bounded * 1.44269504f + magic, n = shifted - magic;
    const float r = (bounded - n * 0.693359375f) + n * 2.12194440e-4f;
    const float series =
        1 + r * (1 + r * (0.5f +
                          r * (0.166666667f + r * (0.0416666f + r * (8.3337e-3f + r * 1.39e-3f)))));
    uint32_t bits;
    float power;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 23) + UINT32_C(0x3f800000);
    memcpy(&power, &bits, sizeof power);
    return series * power;
}

/* ---- products of matrices ---- */

typedef struct matrix { /* element (i, k) is at[i * row + k * column] */
    const float *at;
    long row, column;
} matrix;

static matrix transposed(matrix x) { return (matrix){x.at, x.column, x.row}; }

#ifdef __AVX512F__
enum { ROWS = 12 }; /* as many accumulators as there are registers for */
#else
enum { ROWS = 6 };
#endif
enum { TILE_ROWS = 192, TILE_COLUMNS = 128, DEPTH = 256 };
typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), may_alias));

/* Copies `width` columns of b, row after row. Those that are not there become 0. */
static void pack(float *to, long width, matrix b, long columns, long depth)
{
    for (long k = 0; k < depth; k++)
        for (long j = 0; j < width; j++)
            to[k * width + j] = j < columns ? b.at[k * b.row + j * b.column] : 0;
}

/* A few rows of c, LANES columns: c = or += a b, where b is packed. */
static void multiply_few(float *c, long c_row, long rows, long columns, matrix a, const float *b,
                         long depth, bool accumulate)
{
    lanes sum[ROWS] = {{0}};
    long at[ROWS]; /* rows that are not there are row 0, for nothing */
    for (long i = 0; i < ROWS; i++) at[i] = (i < rows ? i : 0) * a.row;
    for (long k = 0; k < depth; k++) {
        const lanes right = *(const lanes *)(const void *)(b + k * LANES);
        for (int i = 0; i < ROWS; i++) sum[i] += a.at[at[i] + k * a.column] * right;
    }
    for (int i = 0; i < rows; i++)
        for (long j = 0; j < columns; j++)
            c[i * c_row + j] = (accumulate ? c[i * c_row + j] : 0) + sum[i][j];
}

static long least(long a, long b) { return a < b ? a : b; }

static matrix from(matrix x, long i, long k)
{
    return (matrix){x.at + i * x.row + k * x.column, x.row, x.column};
}

/* Both are packed but for rows of a that lie in one piece. */
static void multiply_tile(float *c, long c_row, long rows, long columns, long depth, matrix a,
                          matrix b, bool accumulate)
{
    _Alignas(64) float left[ROWS * DEPTH], right[TILE_COLUMNS * DEPTH];
    for (long k = 0; k < depth; k += DEPTH) {
        const long deep = least(DEPTH, depth - k);
        for (long j = 0; j < columns; j += LANES)
            pack(right + j * deep, LANES, from(b, k, j), columns - j, deep);
        for (long i = 0; i < rows; i += ROWS) {
            matrix few = from(a, i, k);
            if (a.column != 1) {
                pack(left, ROWS, transposed(few), rows - i, deep);
                few = (matrix){left, 1, ROWS};
            }
            for (long j = 0; j < columns; j += LANES)
                multiply_few(c + i * c_row + j, c_row, least(ROWS, rows - i),
                             least(LANES, columns - j), few, right + j * deep, deep,
                             accumulate || k > 0);
        }
    }
}

/* c = or += a b; c has `rows` rows of `columns`, each c_row after the last. */
static void multiply(float *c, long c_row, long rows, long columns, long depth, matrix a, matrix b,
                     bool accumulate)
{
    PARALLEL_TILES
    for (long i = 0; i < rows; i += TILE_ROWS)
        for (long j = 0; j < columns; j += TILE_COLUMNS)
            multiply_tile(c + i * c_row + j, c_row, least(TILE_ROWS, rows - i),
                          least(TILE_COLUMNS, columns - j), depth, from(a, i, 0), from(b, 0, j),
                          accumulate);
}

/* ---- forward: n rows of c columns ---- */

/* out = in W, where the last row of W is the bias. */
static void linear(float *out, const float *in, const float *w, long n, long rows, long columns)
{
    PARALLEL_FOR
    for (long i = 0; i < n; i++)
        memcpy(out + i * columns, w + (rows - 1) * columns, (size_t)columns * sizeof *out);
    multiply(out, columns, n, columns, rows - 1, (matrix){in, rows - 1, 1}, (matrix){w, columns, 1},
             true);
}

static void embed(float *out, const int32_t *tokens, const float *of_token, const float *of_place,
                  long n, long length, long c)
{
    PARALLEL_FOR
    for (long i = 0; i < n; i++)
        for (long j = 0; j < c; j++)
            out[i * c + j] = of_token[tokens[i] * c + j] + of_place[i % length * c + j];
}

/* out = (x - mean) / deviation; answers 1 / deviation. */
static float normalize(float *out, const float *x, long c)
{
    const float mean = sum_of(x, c) / (float)c;
    for (long j = 0; j < c; j++) out[j] = x[j] - mean;
    const float scale = 1 / sqrtf(sum_of_products(out, out, c) / (float)c + 1e-5f);
    for (long j = 0; j < c; j++) out[j] *= scale;
    return scale;
}

/* w: the scales of the columns, then what is added to them. */
static void norm(float *out, const float *in, const float *w, long n, long c)
{
    PARALLEL_FOR
    for (long i = 0; i < n; i++) {
        float *to = out + i * c;
        normalize(to, in + i * c, c);
        for (long j = 0; j < c; j++) to[j] = to[j] * w[j] + w[c + j];
    }
}

typedef struct shape {
    long batch, length, width, heads, layers;
} shape;

enum { BLOCK = 64 }; /* places that attend together; columns that are summed together */

/* One head of one sequence of the batch. A row of qkv has all queries, all keys, all values; a row
 * of scores has the attention that one place pays to each. No place looks ahead: behind the
 * diagonal there is 0, and behind the last place of a block nothing is written or read. */
typedef struct head {
    matrix q, k, v;
    long size;   /* columns of the head */
    long row;    /* columns of qkv */
    long scores; /* where its scores begin */
    long mixed;  /* where its columns of the result begin */
} head;

static head head_of(const shape *s, const float *qkv, long index)
{
    const long size = s->width / s->heads, row = 3 * s->width;
    const long sequence = index / s->heads, column = index % s->heads * size;
    const float *q = qkv + sequence * s->length * row + column;
    return (head){.q = {q, row, 1},
                  .k = {q + s->width, row, 1},
                  .v = {q + 2 * s->width, row, 1},
                  .size = size,
                  .row = row,
                  .scores = index * s->length * s->length,
                  .mixed = sequence * s->length * s->width + column};
}

static void softmax(float *x, long n, float scale)
{
    const float most = largest_of(x, n);
    for (long j = 0; j < n; j++) x[j] = exp_of(scale * (x[j] - most));
    const float sum = sum_of(x, n);
    for (long j = 0; j < n; j++) x[j] /= sum;
}

static void attend(float *scores, const float *qkv, const shape *s)
{
    const long t = s->length;
    PARALLEL_FOR
    for (long index = 0; index < s->batch * s->heads; index++) {
        const head h = head_of(s, qkv, index);
        const float scale = 1 / sqrtf((float)h.size);
        for (long i = 0; i < t; i += BLOCK) {
            float *p = scores + h.scores + i * t;
            const long rows = least(BLOCK, t - i), columns = i + rows;
            multiply(p, t, rows, columns, h.size, from(h.q, i, 0), transposed(h.k), false);
            for (long r = 0; r < rows; r++) {
                softmax(p + r * t, i + r + 1, scale);
                for (long j = i + r + 1; j < columns; j++) p[r * t + j] = 0;
            }
        }
    }
}

static void mix(float *out, const float *scores, const float *qkv, const shape *s)
{
    const long t = s->length;
    PARALLEL_FOR
    for (long index = 0; index < s->batch * s->heads; index++) {
        const head h = head_of(s, qkv, index);
        for (long i = 0; i < t; i += BLOCK) {
            const long rows = least(BLOCK, t - i);
            multiply(out + h.mixed + i * s->width, s->width, rows, h.size, i + rows,
                     (matrix){scores + h.scores + i * t, t, 1}, h.v, false);
        }
    }
}

static void add(float *out, const float *x, const float *y, long n)
{
    PARALLEL_FOR
    for (long i = 0; i < n; i++) out[i] = x[i] + y[i];
}

/* GELU by its formula with tanh, which is x times the logistic function of CURVE (x + CUBE x^3). */
static const float CURVE = 1.5957691216f, CUBE = 0.044715f;

static void gelu(float *out, const float *in, long n)
{
    PARALLEL_FOR
    for (long i = 0; i < n; i++) {
        const float x = in[i];
        out[i] = x / (1 + exp_of(-CURVE * (x + CUBE * x * x * x)));
    }
}

/* ---- backward ---- */

/* The mean loss, and the gradient of the logits. losses: of the n rows, to add up in order. */
static void cross_entropy(float *loss, float *grad, const float *logits, const int32_t *targets,
                          float *losses, long n)
{
    PARALLEL_FOR
    for (long i = 0; i < n; i++) {
        float *p = grad + i * VOCABULARY;
        memcpy(p, logits + i * VOCABULARY, VOCABULARY * sizeof *p);
        softmax(p, VOCABULARY, 1);
        losses[i] = -logf(p[targets[i]] + 1e-30f);
        p[targets[i]] -= 1;
        for (long j = 0; j < VOCABULARY; j++) p[j] /= (float)n;
    }
    *loss = sum_of(losses, n) / (float)n;
}

static void linear_grad_weights(float *out, const float *in, const float *grad, long n, long rows,
                                long columns)
{
    multiply(out, columns, rows - 1, columns, n, (matrix){in, 1, rows - 1},
             (matrix){grad, columns, 1}, false);
    float *bias = out + (rows - 1) * columns;
    PARALLEL_FOR
    for (long first = 0; first < columns; first += BLOCK) {
        const long end = least(first + BLOCK, columns);
        for (long j = first; j < end; j++) bias[j] = 0;
        for (long i = 0; i < n; i++)
            for (long j = first; j < end; j++) bias[j] += grad[i * columns + j];
    }
}

static void linear_grad_input(float *out, const float *grad, const float *w, long n, long rows,
                              long columns)
{
    multiply(out, rows - 1, n, rows - 1, columns, (matrix){grad, columns, 1},
             (matrix){w, 1, columns}, false);
}

static void gelu_grad(float *out, const float *grad, const float *in, long n)
{
    PARALLEL_FOR
    for (long i = 0; i < n; i++) {
        const float x = in[i], s = 1 / (1 + exp_of(-CURVE * (x + CUBE * x * x * x)));
        out[i] = grad[i] * (s + x * s * (1 - s) * CURVE * (1 + 3 * CUBE * x * x));
    }
}

/* space: n rows, which become what the norm made before its scales. */
static void norm_grad(float *out, float *grad_w, const float *grad, const float *in, const float *w,
                      float *space, long n, long c)
{
    PARALLEL_FOR
    for (long i = 0; i < n; i++) {
        float *to = out + i * c, *x = space + i * c;
        const float scale = normalize(x, in + i * c, c);
        for (long j = 0; j < c; j++) to[j] = grad[i * c + j] * w[j];
        const float mean = sum_of(to, c) / (float)c, slope = sum_of_products(to, x, c) / (float)c;
        for (long j = 0; j < c; j++) to[j] = scale * (to[j] - mean - slope * x[j]);
    }
    PARALLEL_FOR
    for (long first = 0; first < c; first += BLOCK) {
        const long end = least(first + BLOCK, c);
        for (long j = first; j < end; j++) grad_w[j] = grad_w[c + j] = 0;
        for (long i = 0; i < n; i++)
            for (long j = first; j < end; j++) {
                grad_w[j] += grad[i * c + j] * space[i * c + j];
                grad_w[c + j] += grad[i * c + j];
            }
    }
}

/* Some places of one head. d: rows of `length`, for the gradient of their scores. */
static void attention_grad_block(const head *h, float *out, const float *grad, const float *scores,
                                 float *d, long i, const shape *s)
{
    const long t = s->length, rows = least(BLOCK, t - i), columns = i + rows;
    const float scale = 1 / sqrtf((float)h->size);
    const matrix g = {grad + h->mixed + i * s->width, s->width, 1};
    const matrix p = {scores + h->scores + i * t, t, 1}, dp = {d, t, 1};
    multiply(d, t, rows, columns, h->size, g, transposed(h->v), false);
    for (long r = 0; r < rows; r++) {
        const float sum = sum_of_products(d + r * t, p.at + r * t, columns);
        for (long j = 0; j < columns; j++)
            d[r * t + j] = scale * p.at[r * t + j] * (d[r * t + j] - sum);
    }
    float *dq = out, *dk = out + s->width, *dv = out + 2 * s->width;
    multiply(dq + i * h->row, h->row, rows, h->size, columns, dp, h->k, false);
    multiply(dk, h->row, columns, h->size, rows, transposed(dp), from(h->q, i, 0), true);
    multiply(dv, h->row, columns, h->size, rows, transposed(p), g, true);
}

/* space: BLOCK rows of `length` for each thread. */
static void attention_grad(float *out, const float *grad, const float *scores, const float *qkv,
                           float *space, const shape *s)
{
    PARALLEL_FOR
    for (long index = 0; index < s->batch * s->heads; index++) {
        const head h = head_of(s, qkv, index);
        float *to = out + (h.q.at - qkv);
        for (long i = 0; i < s->length; i++)
            for (long j = 0; j < h.size; j++)
                to[i * h.row + s->width + j] = to[i * h.row + 2 * s->width + j] = 0;
        for (long i = 0; i < s->length; i += BLOCK)
            attention_grad_block(&h, to, grad, scores, space + this_thread() * BLOCK * s->length, i,
                                 s);
    }
}

static void embed_grad(float *of_token, float *of_place, const float *grad, const int32_t *tokens,
                       long n, long length, long c)
{
    PARALLEL_FOR
    for (long first = 0; first < c; first += BLOCK) {
        const long end = least(first + BLOCK, c);
        for (long i = 0; i < VOCABULARY; i++)
            for (long j = first; j < end; j++) of_token[i * c + j] = 0;
        for (long i = 0; i < length; i++)
            for (long j = first; j < end; j++) of_place[i * c + j] = 0;
        for (long i = 0; i < n; i++)
            for (long j = first; j < end; j++) {
                of_token[tokens[i] * c + j] += grad[i * c + j];
                of_place[i % length * c + j] += grad[i * c + j];
            }
    }
}

#endif
