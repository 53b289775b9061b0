/* bench_chain.c: how long do the chain planners take? Usage: bench_chain [QUICK]. One core; each
 * row is one call, with the CPU time it took. rotor at 339 stages (the longest of the Rotor paper)
 * and 500 slots against ref/rotor_plain.c in the same run, which must not be cheaper; the
 * exact curve (slots 0); rotor-float. No time is asserted; a worse plan is. Memory is the peak
 * of the process, so each row runs in a child of its own. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "random_graph.h"
#include "remat.h"
#include "rotor_plain.h"

enum { LONGEST = 1000 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID,
                  &t); /* of this process, so that others on the machine count less */
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- chains ---- */

static remat_stage stages[LONGEST + 2];

static void homogeneous(uint32_t n)
{
    for (uint32_t l = 0; l <= n; l++)
        stages[l] = (remat_stage){"", 1000, l ? 2000 : 0, 1000, l ? 10 : 0, l ? 20 : 0, 0, 0, 0};
}

static void uniform(uint32_t n)
{
    random_source r = {1};
    for (uint32_t l = 0; l <= n; l++) {
        const int64_t a = 1 + random_below(&r, 1000000), abar = 1 + random_below(&r, 1000000);
        stages[l] = (remat_stage){"",
                                  a,
                                  l ? (abar > a ? abar : a) : 0,
                                  a,
                                  l ? 1 + random_below(&r, 1000) : 0,
                                  l ? 1 + random_below(&r, 1000) : 0,
                                  0,
                                  0,
                                  0};
    }
}

/* Bottleneck ResNets for 224 x 224 images, batch 32, float32, as torchvision builds them: a stem,
 * four groups of blocks at 56, 28, 14 and 7 pixels with 256 << g channels, and a head. A block
 * saves, besides its input, what its backward reads: inputs and outputs of its convolutions and
 * normalisations and the bits of its ReLUs; the first one of a group also has its shortcut. Times
 * are flops and bytes of an A100-like device in microseconds. The groups get blocks in the
 * proportions of ResNet-152 (3, 8, 36, 3). */
static void resnet(uint32_t n)
{
    const int64_t batch = 32, word = 4;
    uint32_t l = 0;
    stages[l++] = (remat_stage){
        "", batch * 3 * 224 * 224 * word, 0, batch * 3 * 224 * 224 * word, 0, 0, 0, 0, 0};
    const int64_t stem = batch * 64 * 112 * 112 * word, pooled = stem / 4;
    stages[l++] = (remat_stage){
        "", pooled, 2 * stem + 3 * pooled + 2 * 64 * word, pooled, 690, 1450, stem, stem, 0};
    const uint32_t blocks = n - 2;
    const uint32_t counts[4] = {blocks * 3 / 50, blocks * 8 / 50,
                                blocks - blocks * 3 / 50 * 2 - blocks * 8 / 50, blocks * 3 / 50};
    for (uint32_t g = 0; g < 4; g++)
        for (uint32_t i = 0; i < counts[g]; i++) {
            const int64_t side = 56 >> g, width = (int64_t)64 << g, wide = 4 * width,
                          inner_side = i == 0 && g ? 2 * side : side;
            const int64_t out = batch * wide * side * side * word,
                          first = batch * width * inner_side * inner_side * word,
                          rest = batch * width * side * side * word;
            int64_t abar = 2 * first + first / 32 + 2 * rest + rest / 32 + 2 * out + out / 32 +
                           4 * (2 * width + wide) * word;
            const int64_t in_channels = i ? wide : g ? wide / 2 : 64;
            int64_t mflops = batch *
                             (in_channels * width * inner_side * inner_side +
                              9 * width * width * side * side + width * wide * side * side) /
                             500000;
            if (i == 0)
                abar += 2 * out + 2 * wide * word,
                    mflops += batch * in_channels * wide * side * side / 500000;
            const int64_t tf = mflops / 10 + (abar + out) / 1300000;
            stages[l++] = (remat_stage){"",
                                        out,
                                        abar + out,
                                        out,
                                        tf,
                                        2 * tf + out / 1300000,
                                        9 * width * rest / (width * 16),
                                        out + first,
                                        0};
        }
    stages[l] = (remat_stage){"",
                              batch * 1000 * word,
                              batch * (2048 + 1000) * word,
                              batch * 1000 * word,
                              12,
                              25,
                              0,
                              batch * 2048 * 49 * word,
                              0};
    if (l != n) abort();
}

typedef struct shape {
    const char *name;
    void (*make)(uint32_t n);
} shape;
static const shape HOMOGENEOUS = {"homogeneous", homogeneous}, RESNET = {"ResNet-like", resnet},
                   RANDOM = {"random", uniform};

static remat_chain *make(remat_ctx *ctx, const shape *s, uint32_t n)
{
    remat_chain *chain = NULL;
    memset(stages, 0, sizeof stages);
    s->make(n);
    if (remat_chain_new(ctx, s->name, stages, n, &chain) != REMAT_OK)
        fprintf(stderr, "%s\n", remat_ctx_error(ctx)), exit(1);
    return chain;
}

static int64_t everything(uint32_t n)
{
    int64_t sum = stages[0].a;
    for (uint32_t l = 1; l <= n + 1; l++) sum += stages[l].abar;
    return sum;
}

/* ---- rows ---- */

typedef struct row {
    const char *strategy;
    const shape *shape;
    uint32_t n;
    int64_t slots;
    int percent;
    double goal;
} row; /* percent 0: the whole curve */

static int fail(const row *x, const char *why)
{
    return fprintf(stderr, "%s, %s, %u stages: %s\n", x->strategy, x->shape->name, x->n, why), 1;
}

static int run_row(const row *x)
{
    enum { CURVE = 100 };
    remat_plan *plans[CURVE] = {NULL};
    int64_t budgets[CURVE];
    remat_ctx *ctx = remat_ctx_new(NULL);
    remat_chain *chain = make(ctx, x->shape, x->n);
    const uint32_t n_budgets = x->percent ? 1 : CURVE;
    for (uint32_t i = 0; i < n_budgets; i++)
        budgets[i] =
            x->percent ? everything(x->n) * x->percent / 100 : everything(x->n) * (i + 1) / CURVE;
    if (remat_ctx_set(ctx, "slots", x->slots) != REMAT_OK) return fail(x, remat_ctx_error(ctx));
    const double begin = now();
    if (remat_chain_plans(ctx, chain, x->strategy, budgets, n_budgets, plans) != REMAT_OK)
        return fail(x, remat_ctx_error(ctx));
    const double took = now() - begin;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    uint32_t fit = 0;
    for (uint32_t i = 0; i < n_budgets; i++) fit += remat_plan_summary(plans[i])->within_budget;
    const remat_summary *s = remat_plan_summary(plans[n_budgets / 2]);
    printf("%-11s %-11s %4" PRIu32 " %5" PRId64 " ", x->strategy, x->shape->name, x->n, x->slots);
    if (x->percent) printf("%5d %% ", x->percent);
    else printf("%3u/%3u ", fit, n_budgets);
    printf("%9.3f %7.2f %6ld %8.4f ", took, x->goal, usage.ru_maxrss / 1024,
           s->within_budget ? (double)s->cost / (double)s->keep_all_cost : 0.0);
    if (strcmp(x->strategy, "rotor") == 0 && x->slots) {
        const double plain_begin = now(),
                     plain = rotor_plain(stages, x->n, budgets[0], (uint32_t)x->slots),
                     plain_took = now() - plain_begin;
        if (plain >= 1 << 24) return fail(x, "times too large for the plain table");
        printf("%9.3f %6.1f", plain_took, plain_took / took);
        /* It rounds every size up, so it may be dearer, but never cheaper. */
        if (plain >= 0 && !(s->within_budget && (double)s->cost <= plain))
            return printf("\n"),
                   fprintf(stderr, "cost %" PRId64 ", plain table %.0f\n", s->cost, plain),
                   fail(x, "dearer than the plain table");
    }
    printf("%s\n", took > x->goal ? "  over the goal" : "");
    for (uint32_t i = 0; i < n_budgets; i++) remat_plan_free(plans[i]);
    remat_chain_free(chain), remat_ctx_free(ctx);
    return 0;
}

int main(int argc, char **argv)
{
    const row rows[] = {
        {"rotor", &HOMOGENEOUS, 339, 500, 25, 0.4}, {"rotor", &HOMOGENEOUS, 339, 500, 50, 0.4},
        {"rotor", &HOMOGENEOUS, 339, 500, 75, 0.4}, {"rotor", &RESNET, 339, 500, 25, 0.4},
        {"rotor", &RESNET, 339, 500, 50, 0.4},      {"rotor", &RESNET, 339, 500, 75, 0.4},
        {"rotor", &RANDOM, 339, 500, 25, 0.4},      {"rotor", &RANDOM, 339, 500, 50, 0.4},
        {"rotor", &RANDOM, 339, 500, 75, 0.4},      {"rotor", &HOMOGENEOUS, 100, 0, 0, 1},
        {"rotor", &RESNET, 100, 0, 0, 1},           {"rotor", &RANDOM, 100, 0, 0, 1},
        {"rotor-float", &RESNET, 40, 500, 50, 0.3}, {"rotor-float", &RANDOM, 40, 500, 50, 0.3},
        {"rotor-float", &RANDOM, 100, 500, 50, 20},
    };
    (void)argv;
    int failed = 0;
    printf("%-11s %-11s %4s %5s %7s %9s %7s %6s %8s %9s %6s\n", "strategy", "chain", "L", "slots",
           "budget", "seconds", "goal", "MiB", "cost", "plain", "ratio");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (argc > 1 && (rows[i].n > 100 || rows[i].goal > 1)) continue;
        fflush(stdout);
        const pid_t child = fork();
        if (child < 0) return perror("fork"), 1;
        if (child == 0) {
            const int status = run_row(&rows[i]);
            fflush(stdout);
            _exit(status);
        }
        int status = 0;
        waitpid(child, &status, 0);
        failed |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    return failed;
}
