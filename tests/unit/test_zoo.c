/* test_zoo.c: the embedded models have the published numbers of parameters and multiply-adds, exact
 * sizes, unique names and complete gradients; their peaks are those of torch's own traces; bad
 * specs are refused in one line. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fusion/op_class.h"
#include "graph/graph.h"

static remat_graph *zoo(remat_ctx *ctx, const char *spec)
{
    char source[256];
    snprintf(source, sizeof source, "zoo:%s", spec);
    remat_graph *graph = NULL;
    OK(ctx, remat_graph_load(ctx, source, &graph));
    return graph;
}

static int64_t sum_params(const remat_graph *graph)
{
    int64_t n = 0;
    for (uint32_t v = 0; v < remat_graph_n_values(graph); v++)
        if (graph->value_kind[v] == REMAT_PARAM) n += graph->size[v] / 4;
    return n;
}

static int64_t sum_flops(const remat_graph *graph, remat_phase phase)
{
    int64_t flops = 0;
    for (uint32_t op = 0; op < remat_graph_n_ops(graph); op++) {
        const int64_t here = remat_graph_op_get(graph, op, REMAT_OP_FLOPS);
        if (remat_graph_op_get(graph, op, REMAT_OP_CLASS) != REMAT_CLASS_COMPUTE)
            assert_true(here <= 0);
        else if (remat_graph_op_get(graph, op, REMAT_OP_PHASE) == phase) flops += here;
    }
    return flops;
}

/* Parameters, and forward multiply-adds of one sample, as published.
 *
 * torchvision: num_params and GFLOPS of https://pytorch.org/vision/stable/models.html (GFLOPS there
 * are multiply-adds). The 17.56 of vit_b_16 include both products of attention. mobilenet:
 * 4,231,976 and 569 M in Howard et al. 2017, Table 4 and tensorflow/models slim; Keras counts
 * 21,888 moving statistics on top. gpt: GPT-2 small with tied head, e.g. nanoGPT. bert: BertModel
 * of bert-base-uncased has 109,482,240, the classifier of two labels 768 * 2 + 2 more: 109,483,778.
 * unet: 31,030,658 with one channel in, two out (Ronneberger et al. 2015; padding instead of
 * cropping changes no weight). segnet: 29,443,585 for one class (29.45 M in Badrinarayanan et al.
 * 2015, Table 6). fcn8: 134,489,759 for 21 classes (github.com/YBIGTA/DL_Models, models/fcn). The
 * 134,270,278 that one also meets is the network for two classes whose upsampling is fixed:
 * 134,260,544 + 2 * 4,867; ours learns its three kernels, 21 * 21 * (16 + 16 + 256) weights.
 * vgg_unet: nowhere published; by the layers of keras_segmentation/models/unet.py: 7,635,264
 * (VGG16, blocks 1 to 4)
 * + 2,359,808 + 1,769,728 + 442,496 + 110,656 (decoder) + 1,920 (batch norm) + 50 * 577
 * (classifier). Multiply-adds that no publication has to the last digit are formulas here, from the
 * papers and not from our layers. */
#define TRANSFORMER(S, W, L)                                                                       \
    ((int64_t)(L) * (12 * (int64_t)(S) * (W) * (W) + 2 * (int64_t)(S) * (S) * (W)))
static const struct published {
    const char *spec;
    int64_t params, macs; /* macs: 0 where there is nothing to compare with */
} published[] = {
    {"resnet18", 11689512, 1814073344},   /* 1.81 G */
    {"resnet50", 25557032, 4089184256},   /* 4.09 G */
    {"vgg16", 138357544, 15470264320},    /* 15.47 G */
    {"vgg19", 143667240, 19632062464},    /* 19.63 G */
    {"densenet121", 7978856, 2834161664}, /* 2.83 G */
    {"mobilenet", 4231976, 568740352},    /* 569 M */
    {"inception", 23834568, 5713216096},  /* 5.71 G; 27,161,264 with the auxiliary 3,326,696 */
    {"nasnet", 5289978, 563638816},       /* 5.3 M, 564 M */
    {"vit", 86567656,
     TRANSFORMER(197, 768, 12) + (int64_t)196 * 768 * 768 + 768 * 1000}, /* 17.56 G */
    {"gpt", 124439808, TRANSFORMER(1024, 768, 12) + (int64_t)1024 * 768 * 50257},
    {"gpt?layers=12&width=768&heads=12&seq=1024&vocab=50257&batch=8", 124439808, 0},
    {"gpt?layers=48&width=1600&heads=25&batch=1", 1557611200, 0}, /* GPT-2 XL, 1.5 B */
    {"bert", 109483778, TRANSFORMER(512, 768, 12) + 768 * 768 + 768 * 2},
    {"unet", 31030658, 0},
    {"segnet?classes=1", 29443585, 0},
    {"fcn8", 134489759, 0},
    {"vgg_unet", 12348722, 0},
    {"mlp?layers=3&width=20&classes=5", 20 * 21 * 2 + 21 * 5, 2 * 400 + 100},
};

static void published_numbers(void **state)
{
    for (size_t i = 0; i < LENGTH(published); i++) {
        const struct published *p = &published[i];
        remat_graph *graph = zoo(*state, p->spec);
        if (sum_params(graph) != p->params)
            fail_msg("%s: %lld parameters, not %lld", p->spec, (long long)sum_params(graph),
                     (long long)p->params);
        remat_graph_free(graph);
        if (!p->macs) continue;
        char one[200];
        snprintf(one, sizeof one, "%s%cbatch=1", p->spec, strchr(p->spec, '?') ? '&' : '?');
        graph = zoo(*state, one);
        if (sum_flops(graph, REMAT_FORWARD) != 2 * p->macs)
            fail_msg("%s: %lld FLOPs, not %lld", one, (long long)sum_flops(graph, REMAT_FORWARD),
                     2 * (long long)p->macs);
        remat_graph_free(graph);
    }
}

/* Where a model says the class of an op, it is that of such an op in a file. */
static void classes_are_the_tables(void **state)
{
    for (size_t i = 0; i < LENGTH(published); i++) {
        remat_graph *graph = zoo(*state, published[i].spec);
        for (uint32_t op = 0; op < graph->n_ops; op++) {
            const remat_class said = graph->op_class[op];
            graph->op_class[op] = REMAT_CLASS_OTHER;
            const remat_class known = rm_op_class(*state, graph, op);
            if (said != REMAT_CLASS_OTHER && said != known)
                fail_msg("%s: %s is %s, not %s", published[i].spec,
                         rm_text(graph, graph->op_target[op]), remat_class_name(said),
                         remat_class_name(known));
        }
        remat_graph_free(graph);
    }
}

/* Multiply-adds of the segmentation networks, layer by layer: channels in and out, kernel, and the
 * size of the side whose every element meets the kernel (the output; of a transposed convolution,
 * the input). */
typedef struct layer {
    int64_t in, out, kernel, size;
} layer;

static int64_t sum_layers(const layer *layers, size_t n)
{
    int64_t macs = 0;
    for (const layer *l = layers; l < layers + n; l++)
        macs += l->in * l->out * l->kernel * l->kernel * l->size * l->size;
    return macs;
}

static void segmentation_flops(void **state)
{
    static const layer unet[] = {
        {1, 64, 3, 64},    {64, 64, 3, 64},    {64, 128, 3, 32},  {128, 128, 3, 32},
        {128, 256, 3, 16}, {256, 256, 3, 16},  {256, 512, 3, 8},  {512, 512, 3, 8},
        {512, 1024, 3, 4}, {1024, 1024, 3, 4}, {1024, 512, 2, 4}, {1024, 512, 3, 8},
        {512, 512, 3, 8},  {512, 256, 2, 8},   {512, 256, 3, 16}, {256, 256, 3, 16},
        {256, 128, 2, 16}, {256, 128, 3, 32},  {128, 128, 3, 32}, {128, 64, 2, 32},
        {128, 64, 3, 64},  {64, 64, 3, 64},    {64, 2, 1, 64}};
    static const layer vgg[] = {{3, 64, 3, 64},    {64, 64, 3, 64},   {64, 128, 3, 32},
                                {128, 128, 3, 32}, {128, 256, 3, 16}, {256, 256, 3, 16},
                                {256, 256, 3, 16}, {256, 512, 3, 8},  {512, 512, 3, 8},
                                {512, 512, 3, 8},  {512, 512, 3, 4},  {512, 512, 3, 4},
                                {512, 512, 3, 4}};
    static const layer segnet[] = {{512, 512, 3, 4},  {512, 512, 3, 4},  {512, 512, 3, 4},
                                   {512, 512, 3, 8},  {512, 512, 3, 8},  {512, 256, 3, 8},
                                   {256, 256, 3, 16}, {256, 256, 3, 16}, {256, 128, 3, 16},
                                   {128, 128, 3, 32}, {128, 64, 3, 32},  {64, 64, 3, 64},
                                   {64, 2, 3, 64}};
    static const layer fcn8[] = {{512, 4096, 7, 2}, {4096, 4096, 1, 2}, {4096, 21, 1, 2},
                                 {21, 21, 4, 2},    {512, 21, 1, 4},    {21, 21, 4, 4},
                                 {256, 21, 1, 8},   {21, 21, 16, 8}};
    static const layer vgg_unet[] = {
        {512, 512, 3, 4}, {768, 256, 3, 8}, {384, 128, 3, 16}, {192, 64, 3, 32}, {64, 50, 3, 32}};
    const int64_t whole_vgg = sum_layers(vgg, LENGTH(vgg)),
                  four_blocks = sum_layers(vgg, LENGTH(vgg) - 3);
    const struct {
        const char *spec;
        int64_t macs;
    } cases[] = {{"unet?res=64&batch=1", sum_layers(unet, LENGTH(unet))},
                 {"segnet?res=64&batch=1", whole_vgg + sum_layers(segnet, LENGTH(segnet))},
                 {"fcn8?res=64&batch=1", whole_vgg + sum_layers(fcn8, LENGTH(fcn8))},
                 {"vgg_unet?res=64&batch=1", four_blocks + sum_layers(vgg_unet, LENGTH(vgg_unet))}};
    for (size_t i = 0; i < LENGTH(cases); i++) {
        char wide[80];
        remat_graph *graph = zoo(*state, cases[i].spec);
        assert_int_equal(sum_flops(graph, REMAT_FORWARD), 2 * cases[i].macs);
        remat_graph_free(graph);
        /* All layers slide over the image, so three times as wide is three times the work. */
        snprintf(wide, sizeof wide, "%s&width=192", cases[i].spec);
        graph = zoo(*state, wide);
        assert_int_equal(sum_flops(graph, REMAT_FORWARD), 3 * 2 * cases[i].macs);
        remat_graph_free(graph);
    }
}

/* The keep-all peaks of torch's traces (test_graphs.c) to the byte, but for two things: our loss is
 * cross entropy, whose target is 8 bytes a sample, theirs is a mean; and each batch norm of theirs
 * counts batches, 8 bytes resident and 8 bytes out. vgg16's dropout is far from its peak. bert's is
 * not (85.0e9 bytes with it): it keeps a copy and a mask of every matrix of scores. Its trace
 * without the dropout ops peaks at 59,664,181,268; ours adds segment numbers per sample, theirs are
 * one row. gpt2's trace has dropout too, a gelu of eight ops and a head of its own: 22.0e9,
 * or 15.8e9 without dropout, to our 15.2e9. */
static void peaks_of_traces(void **state)
{
    static const struct {
        const char *spec;
        int64_t traced, batch, batch_norms;
    } traces[] = {{"resnet18?batch=512", 11506715524, 512, 20},
                  {"resnet50?batch=256", 22307319188, 256, 53},
                  {"vgg16?batch=256", 19932861508, 256, 0},
                  {"densenet121?batch=128", 16774129108, 128, 121}};
    for (size_t i = 0; i < LENGTH(traces); i++) {
        remat_graph *graph = zoo(*state, traces[i].spec);
        remat_info info = REMAT_INFO_INIT;
        OK(*state, remat_graph_info(*state, graph, &info));
        assert_int_equal(info.keep_all_peak_bytes,
                         traces[i].traced + 8 * traces[i].batch - 16 * traces[i].batch_norms);
        remat_graph_free(graph);
    }
    remat_graph *bert = zoo(*state, "bert?batch=128&seq=512&classes=2");
    remat_info info = REMAT_INFO_INIT;
    OK(*state, remat_graph_info(*state, bert, &info));
    assert_in_range(info.keep_all_peak_bytes, 59664181268, 59664181268 + 8 * 128 * (512 + 1));
    remat_graph_free(bert);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void check_names(const remat_graph *graph, uint32_t n,
                        const char *(*name)(const remat_graph *, uint32_t))
{
    const char **names = malloc(n * sizeof *names);
    assert_non_null(names);
    for (uint32_t i = 0; i < n; i++) names[i] = name(graph, i);
    qsort(names, n, sizeof *names, compare_names);
    for (uint32_t i = 0; i < n; i++)
        assert_true(*names[i] != '\0' && (i == 0 || strcmp(names[i], names[i - 1]) != 0));
    free(names);
}

static void check_sizes(const remat_graph *graph)
{
    for (uint32_t v = 0; v < graph->n_values; v++) {
        const char *dtype = rm_text(graph, graph->value_dtype[v]);
        if (*dtype == '\0') continue; /* chain and random-layered have no tensors */
        int64_t bytes = strcmp(dtype, "int64") == 0 ? 8 : strcmp(dtype, "bool") == 0 ? 1 : 4;
        for (uint32_t d = graph->dims_begin[v]; d < graph->dims_begin[v + 1]; d++)
            bytes *= graph->dims[d];
        assert_int_equal(graph->size[v], bytes);
    }
}

/* One gradient per parameter, of the parameter's shape; the loss; two running statistics per batch
 * norm. */
static void check_gradients(const remat_graph *graph)
{
    uint32_t n_outputs, n_expected = 1, n_scalars = 0;
    const uint32_t *outputs = remat_graph_outputs(graph, &n_outputs);
    int64_t expected_bytes = 4, bytes = 0;
    for (uint32_t v = 0; v < graph->n_values; v++)
        if (graph->value_kind[v] == REMAT_PARAM ||
            strstr(remat_graph_value_name(graph, v), "_running_"))
            n_expected++, expected_bytes += graph->size[v];
    for (uint32_t i = 0; i < n_outputs; i++) {
        bytes += graph->size[outputs[i]];
        n_scalars += graph->dims_begin[outputs[i]] == graph->dims_begin[outputs[i] + 1];
    }
    assert_int_equal(n_outputs, n_expected);
    assert_int_equal(bytes, expected_bytes);
    assert_int_equal(n_scalars, 1);
    /* Each product has two derivatives; only that by the images is not made. */
    const int64_t forward = sum_flops(graph, REMAT_FORWARD),
                  backward = sum_flops(graph, REMAT_BACKWARD);
    assert_true(backward <= 2 * forward && backward >= forward);
}

static void every_model(void **state)
{
    const remat_entry *entry;
    for (size_t i = 0; (entry = remat_zoo_at(i)) && !strchr(entry->name, ':'); i++) {
        remat_graph *graph = zoo(*state, entry->name);
        check_names(graph, remat_graph_n_ops(graph), remat_graph_op_name);
        check_names(graph, remat_graph_n_values(graph), remat_graph_value_name);
        check_sizes(graph);
        if (sum_params(graph) > 0) check_gradients(graph);
        remat_plan *plan = NULL;
        OK(*state, remat_plan_make(*state, graph, "keep-all", REMAT_BUDGET_NONE, &plan));
        remat_verdict verdict = REMAT_VERDICT_INIT;
        OK(*state, remat_plan_verify(*state, graph, plan, &verdict));
        assert_true(verdict.valid);
        remat_plan_free(plan);
        remat_graph_free(graph);
    }
}

static remat_chain *chain_of(remat_ctx *ctx, const char *source)
{
    remat_input *input = NULL;
    remat_chain *chain = NULL;
    OK(ctx, remat_input_open(ctx, source, &input));
    assert_int_equal(remat_input_kind(input), REMAT_KIND_CHAIN);
    OK(ctx, remat_chain_read(ctx, input, &chain));
    remat_input_free(input);
    return chain;
}

/* The help of a model lists its parameters as "key=default", so it can be read back as a spec of
 * the same graph. */
static void help_is_true(void **state)
{
    const remat_entry *entry;
    for (size_t i = 0; (entry = remat_zoo_at(i)); i++) {
        char spec[200], help[300];
        snprintf(spec, sizeof spec, "%s?", entry->name);
        snprintf(help, sizeof help, "%s", entry->help);
        for (char *word = strtok(help, " "); word; word = strtok(NULL, " "))
            if (strchr(word, '=')) strcat(strcat(spec, word), "&");
        if (strchr(entry->name, ':')) { /* the name is a whole source: a chain */
            remat_chain *by_default = chain_of(*state, entry->name),
                        *by_help = chain_of(*state, spec);
            assert_string_equal(remat_chain_digest(by_default), remat_chain_digest(by_help));
            remat_chain_free(by_default);
            remat_chain_free(by_help);
            continue;
        }
        assert_non_null(strchr(spec, '='));
        remat_graph *by_default = zoo(*state, entry->name), *by_help = zoo(*state, spec);
        assert_string_equal(remat_graph_digest(by_default), remat_graph_digest(by_help));
        remat_graph_free(by_default);
        remat_graph_free(by_help);
    }
}

/* Bytes of all storages that ops make. */
static int64_t made_bytes(remat_ctx *ctx, const char *model, int batch)
{
    char spec[80];
    snprintf(spec, sizeof spec, "%s?batch=%d", model, batch);
    remat_graph *graph = zoo(ctx, spec);
    int64_t bytes = 0;
    for (uint32_t v = 0; v < graph->n_values; v++)
        if (rm_owns_storage(graph, v) && !rm_is_resident(graph, v)) bytes += graph->storage[v];
    remat_graph_free(graph);
    return bytes;
}

static void linear_in_batch(void **state)
{
    static const char *const models[] = {"resnet50", "vgg16",  "densenet121", "mobilenet", "unet",
                                         "vgg_unet", "segnet", "fcn8",        "gpt",       "bert",
                                         "vit",      "mlp",    "inception",   "nasnet"};
    for (size_t i = 0; i < LENGTH(models); i++) {
        const int64_t two = made_bytes(*state, models[i], 2),
                      three = made_bytes(*state, models[i], 3);
        assert_true(three > two);
        assert_int_equal(made_bytes(*state, models[i], 12) - two, 10 * (three - two));
    }
}

/* 2n + 2 ops; keep-all holds x_0 .. x_n and the first gradient. */
static void chain(void **state)
{
    for (int n = 1; n <= 64; n *= 4) {
        char spec[80];
        snprintf(spec, sizeof spec, "chain?n=%d&size=10", n);
        remat_graph *graph = zoo(*state, spec);
        remat_info info = REMAT_INFO_INIT;
        OK(*state, remat_graph_info(*state, graph, &info));
        assert_int_equal(info.ops, 2 * n + 2);
        assert_int_equal(info.keep_all_cost, 2 * n + 2);
        assert_int_equal(info.keep_all_peak_bytes, 10 * (n + 2));
        assert_int_equal(info.resident_bytes, 10);
        remat_graph_free(graph);
    }
}

static void random_layered(void **state)
{
    remat_graph *a = zoo(*state, "random-layered?n=500&width=20&seed=7");
    remat_graph *b = zoo(*state, "random-layered?n=500&width=20&seed=7");
    remat_graph *c = zoo(*state, "random-layered?n=500&width=20&seed=8");
    remat_graph *dense = zoo(*state, "random-layered?n=500&width=20&density=100");
    assert_string_equal(remat_graph_digest(a), remat_graph_digest(b));
    assert_string_not_equal(remat_graph_digest(a), remat_graph_digest(c));
    assert_true(dense->n_in > 3 * a->n_in);
    for (uint32_t op = 0; op < a->n_ops; op++) {
        uint32_t n_in;
        const uint32_t *in = remat_graph_op_in(a, op, &n_in);
        for (uint32_t i = 0; i < n_in; i++)
            for (uint32_t j = 0; j < i; j++) assert_int_not_equal(in[i], in[j]);
        assert_true(a->cost[op] >= 1 && a->cost[op] <= 999 && a->size[op] >= 80 &&
                    a->size[op] <= 6150);
        assert_int_equal(a->phase[op], REMAT_PHASE_NONE);
    }
    remat_graph_free(a), remat_graph_free(b), remat_graph_free(c), remat_graph_free(dense);
}

/* What the Rotor paper says about its own examples; budgets and costs as in test_chain.c. */
static void chains(void **state)
{
    static const struct {
        const char *source, *strategy;
        uint32_t n_stages;
        int64_t budget, cost;
    } rows[] = {{"chain:toy", "rotor", 6, 9000, 4742},
                {"chain:figure4?n=7", "rotor", 9, 15, 19},
                {"chain:figure4?n=7&k=5", "rotor-float", 9, 15, 16},
                {"chain:partition?x=2,3,5,4", "rotor-float", 9, 21, 28},
                {"chain:partition?x=1,1,4", "rotor-float", 7, 9, 14}};
    OK(*state, remat_ctx_set(*state, "slots", 0));
    for (size_t i = 0; i < LENGTH(rows); i++) {
        remat_chain *chain = chain_of(*state, rows[i].source);
        remat_plan *plan = NULL;
        assert_int_equal(remat_chain_n_stages(chain), rows[i].n_stages);
        OK(*state, remat_chain_plan(*state, chain, rows[i].strategy, rows[i].budget, &plan));
        assert_true(remat_plan_summary(plan)->within_budget);
        assert_int_equal(remat_plan_summary(plan)->cost, rows[i].cost);
        remat_plan_free(plan);
        remat_chain_free(chain);
    }
    remat_chain *one = chain_of(*state, "chain:random?n=30&seed=7"),
                *same = chain_of(*state, "chain:random?seed=7&n=30");
    remat_chain *other = chain_of(*state, "chain:random?n=30&seed=8");
    assert_string_equal(remat_chain_digest(one), remat_chain_digest(same));
    assert_string_not_equal(remat_chain_digest(one), remat_chain_digest(other));
    remat_chain_free(one), remat_chain_free(same), remat_chain_free(other);
    remat_chain *resnet = chain_of(*state, "chain:resnet?n=16&batch=1");
    int64_t elements = 0;
    for (uint32_t l = 1; l <= remat_chain_n_stages(resnet); l++)
        elements += remat_chain_stage(resnet, l)->a / 4;
    assert_int_equal(elements, 200704 + 802816 * 3 + 401408 * 4 + 200704 * 6 + 100352 * 3 +
                                   1000); /* ResNet-50's block outputs */
    remat_chain_free(resnet);
}

static void bad_specs(void **state)
{
    static const char *const specs[] = {"",
                                        "?",
                                        "resnet51",
                                        "resnet50x",
                                        "resnet",
                                        "resnet50?batch",
                                        "resnet50?batch=",
                                        "resnet50?batch=-1",
                                        "resnet50?batch=0",
                                        "res\nnet",
                                        "resnet50?batch=1.5",
                                        "resnet50?batch=1 ",
                                        "resnet50?bath=3",
                                        "resnet50?=3",
                                        "resnet50?batch=1?res=3",
                                        "resnet50?seq=7",
                                        "resnet50?batch=1000000000000",
                                        "resnet50?batch=99999999999999999999999999",
                                        "resnet50?batch=2&batch=2",
                                        "resnet50?batch=1000000&res=65536",
                                        "resnet50?res=16",
                                        "vit?res=17",
                                        "unet?res=100",
                                        "segnet?res=48",
                                        "fcn8?res=48",
                                        "vgg_unet?res=40",
                                        "vgg_unet?res=64&width=40",
                                        "gpt?heads=5",
                                        "bert?seq=513",
                                        "gpt?seq=1000000&batch=1000000&width=1000000&heads=10000",
                                        "mlp?batch=1000000000&width=10000000",
                                        "mlp?layers=0",
                                        "random-layered?n=1000000&width=10000",
                                        "random-layered?density=101",
                                        "chain?n=0",
                                        "chain?size=-1",
                                        "resnet50?"
                                        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                                        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=1"};
    for (size_t i = 0; i < LENGTH(specs); i++) {
        char source[256];
        snprintf(source, sizeof source, "zoo:%s", specs[i]);
        remat_graph *graph = NULL;
        FAILS(*state, REMAT_E_USAGE, remat_graph_load(*state, source, &graph));
        assert_null(graph);
    }
    static const char *const bad_chains[] = {
        "chain:",
        "chain:toys",
        "chain:toy?n=1",
        "chain:figure4?n=2",
        "chain:figure4?n=5&n=5",
        "chain:partition?x=1,2",
        "chain:partition?x=",
        "chain:partition?x=1,,2",
        "chain:partition?x=1,2,",
        "chain:random?n=0",
        "chain:resnet?n=3",
        "chain:partition?x=1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
        "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
        "1,1,1,1,1,1,1,1,1,1,1,1,1,1"};
    for (size_t i = 0; i < LENGTH(bad_chains); i++) {
        remat_input *input = NULL;
        remat_chain *chain = NULL;
        OK(*state, remat_input_open(*state, bad_chains[i], &input));
        FAILS(*state, REMAT_E_USAGE, remat_chain_read(*state, input, &chain));
        assert_null(chain);
        remat_input_free(input);
    }
}

/* ---- every allocation fails once ---- */

typedef struct failing_heap {
    size_t calls, fail_at, live_bytes;
} failing_heap;

static void *failing_resize(void *user, void *p, size_t old_size, size_t new_size)
{
    failing_heap *heap = user;
    if (new_size == 0) {
        heap->live_bytes -= old_size;
        free(p);
        return NULL;
    }
    if (heap->calls++ == heap->fail_at) return NULL;
    heap->live_bytes += new_size - old_size;
    return realloc(p, new_size);
}

static void out_of_memory(void **state)
{
    (void)state;
    for (size_t k = 0;; k++) {
        failing_heap heap = {.fail_at = k};
        remat_graph *graph = NULL;
        remat_ctx *ctx = remat_ctx_new(&(remat_alloc){failing_resize, &heap});
        const remat_status status =
            ctx ? remat_graph_load(ctx, "zoo:bert?layers=30&width=8&heads=2", &graph)
                : REMAT_E_MEMORY;
        remat_graph_free(graph), remat_ctx_free(ctx);
        assert_int_equal(heap.live_bytes, 0);
        if (status == REMAT_OK) return;
        assert_int_equal(status, REMAT_E_MEMORY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {WITH_CONTEXT(published_numbers),
                                       WITH_CONTEXT(classes_are_the_tables),
                                       WITH_CONTEXT(segmentation_flops),
                                       WITH_CONTEXT(peaks_of_traces),
                                       WITH_CONTEXT(every_model),
                                       WITH_CONTEXT(help_is_true),
                                       WITH_CONTEXT(linear_in_batch),
                                       WITH_CONTEXT(chain),
                                       WITH_CONTEXT(chains),
                                       WITH_CONTEXT(random_layered),
                                       WITH_CONTEXT(bad_specs),
                                       cmocka_unit_test(out_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
