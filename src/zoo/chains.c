/* chains.c: "chain:NAME?key=value&..." to a chain of stages, without a file.
 *
 *   - toy: the example of the Rotor paper, Table 2. Sizes are in hundredths of MB, times in
 *     hundredths of ms.
 *   - figure4: Figure 4 of that paper, where activations that float win. There are n + 2 stages.
 *     F^1 takes k, F^2 takes 2, all else is free. With budget 15, k = n - 2 and n > 4 the least
 *     cost is 3n - 2 if activations must persist, and 2n + 2 if not.
 *   - partition: Theorem 3.6 of that paper, 2-partition as a chain. Stages of size x_i alternate
 *     with stages of nothing. The last stage is V, half the sum of all x_i. Within 3V the cost is
 * 4V if and only if some of the x_i add up to V.
 *   - random: uniform sizes and times. abar >= a, and a gradient is as large as its activation.
 *   - resnet: a stem, n bottleneck blocks in four groups as 3:4:6:3 (16: ResNet-50), pooling and
 *     classifier. Images are 224 x 224, an element has four bytes. abar is the output and what the
 *     backward pass reads: the inputs of convolutions, batch norms and pooling. Times are at
 *     10 TFLOP/s, backward twice forward.
 *
 * A stage without a name is called by its number. Ranges keep every sum below 2^62. Cost:
 * O(stages). */
#include "base/random.h"
#include "zoo/models.h"
#include "zoo/zoo.h"

#include <string.h>

static remat_status toy(remat_ctx *ctx, const rm_zoo_args *args, uint32_t *n_stages,
                        remat_stage *stages)
{
    static const remat_stage table[] = {
        {"", 763, 0, 763, 0, 0, 0, 0, 0},
        {"fc1", 954, 954, 954, 160, 305, 0, 2001, 0},
        {"fc2", 1068, 1068, 1068, 220, 448, 0, 2764, 0},
        {"fc3", 1106, 1108, 1106, 244, 509, 0, 3099, 0},
        {"fc4", 1068, 1066, 1068, 251, 493, 0, 3099, 0}, /* abar < a, as printed */
        {"fc5", 954, 954, 954, 210, 421, 0, 2764, 0},
        {"fc6", 763, 763, 763, 143, 334, 0, 1908, 0},
        {"loss", 0, 0, 0, 0, 0, 0, 0, 0},
    };
    (void)ctx;
    (void)args;
    *n_stages = RM_LEN(table) - 2;
    if (stages) memcpy(stages, table, sizeof table);
    return REMAT_OK;
}

static remat_status figure4(remat_ctx *ctx, const rm_zoo_args *args, uint32_t *n_stages,
                            remat_stage *stages)
{
    (void)ctx;
    *n_stages = (uint32_t)args->n + 2;
    if (!stages) return REMAT_OK;
    for (uint32_t l = 1; l <= *n_stages; l++) {
        int64_t a = 3;
        if (l == 1) a = 1;
        if (l == *n_stages) a = 4;
        stages[l] = (remat_stage){.a = a, .abar = a, .delta = a};
    }
    stages[1].tf = args->k ? args->k : args->n - 2;
    stages[2].tf = 2;
    return REMAT_OK;
}

static remat_status partition(remat_ctx *ctx, const rm_zoo_args *args, uint32_t *n_stages,
                              remat_stage *stages)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < args->n_x; i++) sum += args->x[i];
    if (sum % 2) return rm_fail_at(ctx, REMAT_E_USAGE, "x", "must add up to an even number");
    *n_stages = 2 * (uint32_t)args->n_x + 1;
    for (uint32_t l = 1; stages && l <= *n_stages; l += 2) {
        const int64_t x = l == *n_stages ? sum / 2 : args->x[l / 2];
        stages[l] = (remat_stage){.a = x, .abar = x, .delta = x, .tf = x};
    }
    return REMAT_OK;
}

static remat_status random_chain(remat_ctx *ctx, const rm_zoo_args *args, uint32_t *n_stages,
                                 remat_stage *stages)
{
    rm_random r = {(uint64_t)args->seed};
    (void)ctx;
    *n_stages = (uint32_t)args->n;
    for (uint32_t l = 0; stages && l <= *n_stages + 1; l++) {
        remat_stage *s = &stages[l];
        if (l <= *n_stages) s->a = s->delta = rm_random_between(&r, 1, 1000);
        if (l == 0) continue;
        s->abar = s->a + rm_random_between(&r, 0, 2000);
        s->tf = rm_random_between(&r, 1, 100);
        s->tb = rm_random_between(&r, 1, 200);
        s->of = rm_random_between(&r, 0, 500);
        s->ob = rm_random_between(&r, 0, 500);
    }
    return REMAT_OK;
}

static remat_status resnet(remat_ctx *ctx, const rm_zoo_args *args, uint32_t *n_stages,
                           remat_stage *stages)
{
    enum {
        OUT = 256 * 56 * 56,
        STEM = 64 * 56 * 56,
        CLASSES = 1000,
        FEATURES = 2048,
        FLOPS_PER_NS = 10000
    };
    const int64_t n = args->n;
    /* The same in every group: channels double, sides halve. */
    const int64_t products = (int64_t)64 * 64 * 56 * 56;
    const int64_t ends[] = {n * 3 / 16, n * 7 / 16, n * 13 / 16, n}; /* of the groups */
    (void)ctx;
    *n_stages = (uint32_t)n + 2;
    if (!stages) return REMAT_OK;
    stages[0].a = 3 * 224 * 224; /* no gradient: nobody asks for the images' */
    stages[1] = (remat_stage){"stem", STEM, STEM + 2 * 4 * STEM + 2 * STEM,
                              .tf = (int64_t)7 * 7 * 3 * 64 * 112 * 112};
    for (int64_t i = 0, group = 0; i < n; i++) {
        while (i >= ends[group]) group++;
        const bool first = i == 0 || i == ends[group ? group - 1 : 0];
        const int64_t a = OUT >> group;
        stages[i + 2] = (remat_stage){
            .a = a, .abar = first ? 4 * a : 3 * a, .tf = (first ? 25 : 17) * products};
    }
    stages[n + 2] =
        (remat_stage){"head", CLASSES, CLASSES + FEATURES, .tf = (int64_t)CLASSES * FEATURES};
    stages[n + 3] = (remat_stage){"loss", .abar = CLASSES, .tf = CLASSES};
    for (int64_t l = 0; l <= n + 3; l++) { /* elements to bytes, products to ns */
        remat_stage *s = &stages[l];
        s->a *= 4 * args->batch;
        s->abar *= 4 * args->batch;
        if (l > 0) s->delta = s->a;
        s->tf = (2 * s->tf * args->batch + FLOPS_PER_NS - 1) / FLOPS_PER_NS;
        s->tb = 2 * s->tf;
    }
    return REMAT_OK;
}

#define CHAINS(M, P, LIST)                                                                         \
    M("figure4", figure4,                                                                          \
      "Rotor paper, Figure 4: floating activations win; k 0 stands for n - 2:",                    \
      P(n, 5, 3, 10000) P(k, 0, 0, 1000000))                                                       \
    M("partition", partition,                                                                      \
      "Rotor paper, Theorem 3.6: 2-partition of x:", LIST(x, "1,2,3", 0, 1000000000000))           \
    M("random", random_chain,                                                                      \
      "random sizes and times:", P(n, 20, 1, 10000) P(seed, 0, 0, INT64_MAX))                      \
    M("resnet", resnet, "like ResNet: a stem, n bottleneck blocks, a head:",                       \
      P(n, 16, 4, 10000) P(batch, 32, 1, 100000))                                                  \
    M("toy", toy, "Rotor paper, Table 2: six linear layers", )

#define ROW(name, write, about, params) {name, NULL, write, {params{0}}},
#define LIST_KEY(key, initial, low, high) {#key, offsetof(rm_zoo_args, key), initial, low, high},
static const rm_zoo_row chains[] = {CHAINS(ROW, RM_ZOO_KEY, LIST_KEY)};

#define ENTRY(name, write, about, params) {"chain:" name, about params},
#define LIST_HELP(key, initial, low, high) " " #key "=" initial
static const remat_entry entries[] = {CHAINS(ENTRY, RM_ZOO_HELP, LIST_HELP)};

const remat_entry *rm_chain_entry_at(size_t index)
{
    return index < RM_LEN(entries) ? &entries[index] : NULL;
}

remat_status rm_zoo_chain(remat_ctx *ctx, const char *spec, remat_chain **out)
{
    const rm_zoo_row *row = NULL;
    rm_zoo_args args = {0};
    uint32_t n_stages = 0;
    remat_stage *stages;
    TRY(rm_zoo_parse(ctx, chains, RM_LEN(chains), spec, &row, &args));
    TRY(row->chain(ctx, &args, &n_stages, NULL));
    TRY(RM_SCRATCH(ctx, stages, (size_t)n_stages + 2)); /* zeros */
    TRY(row->chain(ctx, &args, &n_stages, stages));
    return remat_chain_new(ctx, spec, stages, n_stages, out);
}
