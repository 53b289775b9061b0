// cuda_arena.cu: a training step on the GPU, in one block of device memory that the plan fills.
//
//     nvcc -O2 cuda_arena.cu $(pkg-config --cflags --libs remat) -o cuda_arena && ./cuda_arena
//
// The library never looks into the arena, so it may be device memory: cudaMalloc is called once for
// the arena and once for what is resident. The same step runs twice, as keep-all and in the least
// memory that auto finds, and the gradients must be the same to the last bit.
#define REMAT_EXPERIMENTAL
#include <remat.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

static const int BATCH = 1024, WIDTH = 256, LAYERS = 12;
static const size_t ACTIVATION = (size_t)BATCH * WIDTH, WEIGHT = (size_t)WIDTH * WIDTH;

// ---- kernels: one thread for each number of the result, so every sum has one order ----

// out = relu(in W)
__global__ void layer(float *out, const float *in, const float *w)
{
    const int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    float sum = 0;
    for (int k = 0; k < WIDTH; k++) sum += in[i * WIDTH + k] * w[k * WIDTH + j];
    out[i * WIDTH + j] = sum > 0 ? sum : 0;
}

// dz = dh where h > 0; what the two below read
__global__ void mask(float *dz, const float *dh, const float *h)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    dz[i] = h[i] > 0 ? dh[i] : 0;
}

__global__ void grad_weights(float *dw, const float *in, const float *dz)
{
    const int j = blockIdx.x * blockDim.x + threadIdx.x, k = blockIdx.y;
    float sum = 0;
    for (int i = 0; i < BATCH; i++) sum += in[i * WIDTH + k] * dz[i * WIDTH + j];
    dw[k * WIDTH + j] = sum;
}

__global__ void grad_input(float *dx, const float *dz, const float *w)
{
    const int k = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    float sum = 0;
    for (int j = 0; j < WIDTH; j++) sum += dz[i * WIDTH + j] * w[k * WIDTH + j];
    dx[i * WIDTH + k] = sum;
}

// The loss is half the sum of squares, so its gradient is the output over the batch.
__global__ void loss_grad(float *dh, const float *h)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    dh[i] = h[i] / BATCH;
}

// ---- the graph ----

enum Kernel { FORWARD, LOSS, MASK, GRAD_WEIGHTS, GRAD_INPUT };

struct Network {
    std::vector<Kernel> kernels; // by op
    std::vector<uint32_t> residents;
};

static uint32_t add(remat_builder *b, Network &net, Kernel kernel, const char *name, int64_t cost,
                    std::vector<uint32_t> in, size_t n_floats)
{
    const uint32_t out = remat_builder_value(b, name, (int64_t)(n_floats * sizeof(float)));
    const uint32_t op = remat_builder_op(b, name, in.data(), (uint32_t)in.size(), &out, 1);
    remat_builder_op_set(b, op, REMAT_OP_COST, cost);
    remat_builder_op_set(b, op, REMAT_OP_PHASE, kernel == FORWARD ? REMAT_FORWARD : REMAT_BACKWARD);
    net.kernels.push_back(kernel);
    return out;
}

static remat_status build(remat_ctx *ctx, Network &net, remat_graph **graph)
{
    remat_builder *b = remat_builder_new(ctx, "cuda");
    if (!b) return REMAT_E_MEMORY;
    const int64_t product = 2 * (int64_t)ACTIVATION * WIDTH, each = (int64_t)ACTIVATION;
    std::vector<uint32_t> h{remat_builder_value(b, "x", (int64_t)(ACTIVATION * sizeof(float)))}, w;
    for (int l = 0; l < LAYERS; l++)
        w.push_back(remat_builder_value(b, "w", (int64_t)(WEIGHT * sizeof(float))));
    for (int l = 0; l < LAYERS; l++)
        h.push_back(add(b, net, FORWARD, "layer", product, {h[l], w[l]}, ACTIVATION));
    uint32_t dh = add(b, net, LOSS, "loss", each, {h[LAYERS]}, ACTIVATION);
    for (int l = LAYERS - 1; l >= 0; l--) {
        const uint32_t dz = add(b, net, MASK, "mask", each, {dh, h[l + 1]}, ACTIVATION);
        remat_builder_output(b, add(b, net, GRAD_WEIGHTS, "dw", product, {h[l], dz}, WEIGHT));
        if (l) dh = add(b, net, GRAD_INPUT, "dx", product, {dz, w[l]}, ACTIVATION);
    }
    net.residents = w;
    net.residents.push_back(h[0]);
    const remat_status status = remat_builder_finish(b, graph);
    remat_builder_free(b);
    return status;
}

// What the runtime calls for every op. Kernels of one stream run in the order of the plan.
static int compute(void *user, const remat_call *call)
{
    const Network *net = (const Network *)user;
    float *out = (float *)call->out[0];
    const float *a = (const float *)call->in[0],
                *b = call->n_in > 1 ? (const float *)call->in[1] : NULL;
    const dim3 rows(WIDTH / 64, BATCH), weights(WIDTH / 64, WIDTH);
    switch (net->kernels[call->op]) {
    case FORWARD: layer<<<rows, 64>>>(out, a, b); break;
    case LOSS: loss_grad<<<ACTIVATION / 256, 256>>>(out, a); break;
    case MASK: mask<<<ACTIVATION / 256, 256>>>(out, a, b); break;
    case GRAD_WEIGHTS: grad_weights<<<weights, 64>>>(out, a, b); break;
    case GRAD_INPUT: grad_input<<<rows, 64>>>(out, a, b); break;
    }
    return cudaGetLastError() == cudaSuccess ? 0 : -1;
}

// ---- running ----

static remat_status run_once(remat_ctx *ctx, const remat_graph *graph, const Network &net,
                             int64_t budget, float *resident, std::vector<float> &gradients)
{
    remat_plan *plan = NULL;
    remat_run *run = NULL;
    void *arena = NULL;
    remat_status status = remat_plan_make(ctx, graph, "auto", budget, &plan);
    if (status == REMAT_OK) status = remat_run_new(ctx, graph, plan, 0, &run);
    if (status == REMAT_OK && cudaMalloc(&arena, (size_t)remat_run_arena_bytes(run)) != cudaSuccess)
        status = REMAT_E_MEMORY;
    if (status == REMAT_OK) status = remat_run_arena(ctx, run, arena, remat_run_arena_bytes(run));
    for (size_t i = 0; i < net.residents.size() && status == REMAT_OK; i++)
        status = remat_run_resident(ctx, run, net.residents[i], resident + i * WEIGHT);
    remat_hooks hooks = REMAT_HOOKS_INIT;
    hooks.user = (void *)&net;
    hooks.compute = compute;
    if (status == REMAT_OK) status = remat_run_steps(ctx, run, &hooks);
    if (status == REMAT_OK && cudaDeviceSynchronize() != cudaSuccess) status = REMAT_E_CALLBACK;
    for (int l = 0; l < LAYERS && status == REMAT_OK; l++)
        cudaMemcpy(gradients.data() + (size_t)l * WEIGHT, remat_run_output(run, (uint32_t)l),
                   WEIGHT * sizeof(float), cudaMemcpyDeviceToHost);
    if (status == REMAT_OK) {
        const remat_summary *m = remat_plan_summary(plan);
        printf("%3" PRIu32 " steps, arena %9" PRId64 " bytes, wasted %" PRId64 "\n", m->steps,
               remat_run_arena_bytes(run),
               remat_run_arena_bytes(run) - (m->peak_bytes - m->resident_bytes));
    }
    cudaFree(arena);
    remat_run_free(run);
    remat_plan_free(plan);
    return status;
}

int main()
{
    // The weights, one after the other, and then the batch.
    std::vector<float> host(LAYERS * WEIGHT + ACTIVATION);
    std::vector<float> all(LAYERS * WEIGHT), least(LAYERS * WEIGHT);
    uint64_t state = 1;
    for (size_t i = 0; i < host.size(); i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        host[i] =
            ((float)(state >> 40) / 16777216.0f - 0.5f) * (i < LAYERS * WEIGHT ? 0.25f : 2.0f);
    }
    float *resident = NULL;
    if (cudaMalloc((void **)&resident, host.size() * sizeof(float)) != cudaSuccess) {
        fprintf(stderr, "there is no device, or it has no memory\n");
        return 1;
    }
    cudaMemcpy(resident, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice);
    Network net;
    remat_graph *graph = NULL;
    remat_ctx *ctx = remat_ctx_new(NULL);
    remat_status status = ctx ? build(ctx, net, &graph) : REMAT_E_MEMORY;
    if (status == REMAT_OK) status = run_once(ctx, graph, net, REMAT_BUDGET_NONE, resident, all);
    if (status == REMAT_OK) status = run_once(ctx, graph, net, REMAT_BUDGET_MIN, resident, least);
    if (status != REMAT_OK) fprintf(stderr, "%s\n", ctx ? remat_ctx_error(ctx) : "out of memory");
    const bool same = memcmp(all.data(), least.data(), all.size() * sizeof(float)) == 0;
    double sum = 0;
    for (size_t i = 0; i < all.size(); i++) sum += (double)all[i] * all[i];
    if (status == REMAT_OK)
        printf("gradients %s, their squares sum to %g\n", same ? "identical" : "DIFFER", sum);
    cudaFree(resident);
    remat_graph_free(graph);
    remat_ctx_free(ctx);
    return status == REMAT_OK && same && sum > 0 ? 0 : 1;
}
