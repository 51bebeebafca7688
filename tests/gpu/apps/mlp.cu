/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training of a perceptron of three layers by gradient descent, its products by
 * cuBLASLt: forward, loss, backward, update. Each step begins with a copy of
 * the next batch from pinned memory. Nothing waits for the device within a
 * round.
 *
 * Algorithms are chosen once, among those that add up nothing in parts.
 * Matrices are stored by columns; each column of a batch is a sample.
 *
 * A graph by hand: what comes after the copy, captured.
 */
#include "app.h"

#include <cublasLt.h>

#define MLP_LAYERS    3
#define MLP_INPUTS    128
#define MLP_CLASSES   32
#define MLP_BATCH     64
#define MLP_BATCHES   8
#define MLP_THREADS   128
#define MLP_RATE      0.05f
#define MLP_WORKSPACE (32u << 20)

#define MLP_CHECK(_call)                                                       \
    do {                                                                       \
        cublasStatus_t _status = (_call);                                      \
        if (_status != CUBLAS_STATUS_SUCCESS) {                                \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #_call,     \
                    cublasLtGetStatusString(_status));                         \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

typedef struct mlp_product {
    cublasLtMatmulDesc_t   matmul;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t   algo;
} mlp_product_t;

typedef struct mlp_layer {
    int           in, out;
    float         *w, *bias, *y; /* y: what comes out */
    float         *dw, *dbias, *dy;
    mlp_product_t forward, weights, backward;
} mlp_layer_t;

static struct {
    cublasLtHandle_t handle;
    void             *workspace;
    mlp_layer_t      layer[MLP_LAYERS];
    float            *batch; /* inputs, then 1 at the class of each sample */
    float            *host[MLP_BATCHES]; /* pinned */
    float            *loss;  /* the last one, and the sum of all */
    cudaGraphExec_t  exec;
} mlp;

#define MLP_BATCH_FLOATS ((MLP_INPUTS + MLP_CLASSES) * MLP_BATCH)

__global__ void mlp_activate(float *y, const float *bias, int rows, int count,
                             bool relu)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value;

    if (i < count) {
        value = y[i] + bias[i % rows];
        y[i]  = (relu && (value < 0)) ? 0 : value;
    }
}

/* One thread a sample: softmax, its cross entropy and the gradient of that. */
__global__ void mlp_losses(const float *y, const float *wanted, float *dy,
                           float *loss)
{
    __shared__ float part[MLP_BATCH];
    int at     = threadIdx.x * MLP_CLASSES;
    float most = y[at];
    float sum = 0, right = 0;
    int i, half;

    for (i = 1; i < MLP_CLASSES; ++i) {
        most = fmaxf(most, y[at + i]);
    }
    for (i = 0; i < MLP_CLASSES; ++i) {
        sum   += expf(y[at + i] - most);
        right += wanted[at + i] * (y[at + i] - most);
    }
    for (i = 0; i < MLP_CLASSES; ++i) {
        dy[at + i] = (expf(y[at + i] - most) / sum - wanted[at + i]) /
                     MLP_BATCH;
    }
    part[threadIdx.x] = (logf(sum) - right) / MLP_BATCH;
    __syncthreads();
    for (half = MLP_BATCH / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            part[threadIdx.x] += part[threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        loss[0]  = part[0];
        loss[1] += part[0];
    }
}

__global__ void mlp_relu_back(float *dy, const float *y, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count) {
        dy[i] = (y[i] > 0) ? dy[i] : 0;
    }
}

__global__ void mlp_bias_back(const float *dy, float *dbias, int rows)
{
    int row   = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    int i;

    for (i = 0; (i < MLP_BATCH) && (row < rows); ++i) {
        sum += dy[i * rows + row];
    }
    if (row < rows) {
        dbias[row] = sum;
    }
}

__global__ void mlp_update(float *value, const float *gradient, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < count) {
        value[i] -= MLP_RATE * gradient[i];
    }
}

static int mlp_blocks(int count)
{
    return (count + MLP_THREADS - 1) / MLP_THREADS;
}

static void mlp_algorithm(mlp_product_t *p)
{
    size_t workspace = MLP_WORKSPACE;
    uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_NONE;
    cublasLtMatmulHeuristicResult_t result;
    cublasLtMatmulPreference_t preference;
    int found = 0;

    MLP_CHECK(cublasLtMatmulPreferenceCreate(&preference));
    MLP_CHECK(cublasLtMatmulPreferenceSetAttribute(
            preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
            sizeof(workspace)));
    MLP_CHECK(cublasLtMatmulPreferenceSetAttribute(
            preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
            sizeof(schemes)));
    MLP_CHECK(cublasLtMatmulAlgoGetHeuristic(mlp.handle, p->matmul, p->a, p->b,
                                             p->c, p->c, preference, 1, &result,
                                             &found));
    MLP_CHECK(cublasLtMatmulPreferenceDestroy(preference));
    if (found == 0) {
        fprintf(stderr, "mlp: cuBLASLt has no algorithm\n");
        exit(1);
    }
    p->algo = result.algo;
}

/* C = A B, m x n of k products each, where A or B are turned first. */
static void mlp_product_create(mlp_product_t *p, bool turn_a, bool turn_b,
                               int m, int n, int k)
{
    cublasOperation_t turn = CUBLAS_OP_T;

    MLP_CHECK(cublasLtMatmulDescCreate(&p->matmul, CUBLAS_COMPUTE_32F,
                                       CUDA_R_32F));
    if (turn_a) {
        MLP_CHECK(cublasLtMatmulDescSetAttribute(
                p->matmul, CUBLASLT_MATMUL_DESC_TRANSA, &turn, sizeof(turn)));
    }
    if (turn_b) {
        MLP_CHECK(cublasLtMatmulDescSetAttribute(
                p->matmul, CUBLASLT_MATMUL_DESC_TRANSB, &turn, sizeof(turn)));
    }
    MLP_CHECK(cublasLtMatrixLayoutCreate(&p->a, CUDA_R_32F, turn_a ? k : m,
                                         turn_a ? m : k, turn_a ? k : m));
    MLP_CHECK(cublasLtMatrixLayoutCreate(&p->b, CUDA_R_32F, turn_b ? n : k,
                                         turn_b ? k : n, turn_b ? n : k));
    MLP_CHECK(cublasLtMatrixLayoutCreate(&p->c, CUDA_R_32F, m, n, m));
    mlp_algorithm(p);
}

static void mlp_product_destroy(mlp_product_t *p)
{
    MLP_CHECK(cublasLtMatrixLayoutDestroy(p->c));
    MLP_CHECK(cublasLtMatrixLayoutDestroy(p->b));
    MLP_CHECK(cublasLtMatrixLayoutDestroy(p->a));
    MLP_CHECK(cublasLtMatmulDescDestroy(p->matmul));
}

static void mlp_multiply(const mlp_product_t *p, const float *a, const float *b,
                         float *c)
{
    float one = 1, zero = 0;

    MLP_CHECK(cublasLtMatmul(mlp.handle, p->matmul, &one, a, p->a, b, p->b,
                             &zero, c, p->c, c, p->c, &p->algo, mlp.workspace,
                             MLP_WORKSPACE, app_stream));
}

static const float *mlp_input(int layer)
{
    return (layer == 0) ? mlp.batch : mlp.layer[layer - 1].y;
}

static void mlp_forward(int i)
{
    mlp_layer_t *l = &mlp.layer[i];
    int count      = l->out * MLP_BATCH;

    mlp_multiply(&l->forward, l->w, mlp_input(i), l->y);
    mlp_activate<<<mlp_blocks(count), MLP_THREADS, 0, app_stream>>>(
            l->y, l->bias, l->out, count, i < MLP_LAYERS - 1);
}

static void mlp_backward(int i)
{
    mlp_layer_t *l = &mlp.layer[i];
    int count      = l->in * MLP_BATCH;

    mlp_multiply(&l->weights, l->dy, mlp_input(i), l->dw);
    mlp_bias_back<<<mlp_blocks(l->out), MLP_THREADS, 0, app_stream>>>(
            l->dy, l->dbias, l->out);
    if (i > 0) {
        mlp_multiply(&l->backward, l->w, l->dy, mlp.layer[i - 1].dy);
        mlp_relu_back<<<mlp_blocks(count), MLP_THREADS, 0, app_stream>>>(
                mlp.layer[i - 1].dy, mlp.layer[i - 1].y, count);
    }
}

static void mlp_step(int i)
{
    mlp_layer_t *l = &mlp.layer[i];
    int count      = l->in * l->out;

    mlp_update<<<mlp_blocks(count), MLP_THREADS, 0, app_stream>>>(l->w, l->dw,
                                                                  count);
    mlp_update<<<mlp_blocks(l->out), MLP_THREADS, 0, app_stream>>>(
            l->bias, l->dbias, l->out);
}

static void mlp_copy(uint32_t iteration)
{
    GPU_CHECK(cudaMemcpyAsync(mlp.batch, mlp.host[iteration % MLP_BATCHES],
                              sizeof(float) * MLP_BATCH_FLOATS,
                              cudaMemcpyHostToDevice, app_stream));
}

static void mlp_launch(void)
{
    mlp_layer_t *last = &mlp.layer[MLP_LAYERS - 1];
    int i;

    for (i = 0; i < MLP_LAYERS; ++i) {
        mlp_forward(i);
    }
    mlp_losses<<<1, MLP_BATCH, 0, app_stream>>>(
            last->y, mlp.batch + MLP_INPUTS * MLP_BATCH, last->dy, mlp.loss);
    for (i = MLP_LAYERS - 1; i >= 0; --i) {
        mlp_backward(i);
    }
    for (i = 0; i < MLP_LAYERS; ++i) {
        mlp_step(i);
    }
    GPU_CHECK(cudaGetLastError());
}

static float *mlp_floats(int count)
{
    return (float*)app_memory(sizeof(float) * count);
}

static void mlp_layer_create(mlp_layer_t *l, int in, int out, uint32_t seed)
{
    int count   = in * out;
    float *host = (float*)app_host_memory(sizeof(float) * count);
    int i;

    l->in    = in;
    l->out   = out;
    l->w     = mlp_floats(count);
    l->dw    = mlp_floats(count);
    l->bias  = mlp_floats(out);
    l->dbias = mlp_floats(out);
    l->y     = mlp_floats(out * MLP_BATCH);
    l->dy    = mlp_floats(out * MLP_BATCH);
    for (i = 0; i < count; ++i) {
        host[i] = (gpu_lcg(&seed) / 8388608.0f - 1.0f) * sqrtf(3.0f / in);
    }
    app_upload(l->w, host, sizeof(float) * count);
    free(host);
    mlp_product_create(&l->forward, false, false, out, MLP_BATCH, in);
    mlp_product_create(&l->weights, false, true, out, in, MLP_BATCH);
    mlp_product_create(&l->backward, true, false, in, MLP_BATCH, out);
}

/* The class of a sample is where its input was made larger. */
static void mlp_batches(void)
{
    uint32_t seed = 77;
    float *input, *wanted;
    int b, s, i, right;

    for (b = 0; b < MLP_BATCHES; ++b) {
        GPU_CHECK(cudaMallocHost((void**)&mlp.host[b],
                                 sizeof(float) * MLP_BATCH_FLOATS));
        memset(mlp.host[b], 0, sizeof(float) * MLP_BATCH_FLOATS);
        for (s = 0; s < MLP_BATCH; ++s) {
            input  = mlp.host[b] + s * MLP_INPUTS;
            wanted = mlp.host[b] + MLP_INPUTS * MLP_BATCH + s * MLP_CLASSES;
            for (i = 0; i < MLP_INPUTS; ++i) {
                input[i] = gpu_lcg(&seed) / 8388608.0f - 1.0f;
            }
            right         = gpu_lcg(&seed) % MLP_CLASSES;
            input[right] += 2.0f;
            wanted[right] = 1.0f;
        }
    }
}

static void mlp_create(int size, bool graph)
{
    int i;

    MLP_CHECK(cublasLtCreate(&mlp.handle));
    GPU_CHECK(cudaMalloc(&mlp.workspace, MLP_WORKSPACE));
    mlp.batch = mlp_floats(MLP_BATCH_FLOATS);
    mlp.loss  = mlp_floats(2);
    for (i = 0; i < MLP_LAYERS; ++i) {
        mlp_layer_create(&mlp.layer[i], (i == 0) ? MLP_INPUTS : size,
                         (i == MLP_LAYERS - 1) ? MLP_CLASSES : size, i + 1);
    }
    mlp_batches();
    /* the library loads code at its first calls: not while one captures */
    mlp_copy(0);
    mlp_launch();
    GPU_CHECK(cudaStreamSynchronize(app_stream));
    if (graph) {
        app_graph_begin();
        mlp_launch();
        mlp.exec = app_graph_end();
    }
}

static bool mlp_iterate(uint32_t iteration, bool graph)
{
    mlp_copy(iteration);
    if (graph) {
        app_graph_launch(mlp.exec);
    } else {
        mlp_launch();
    }
    return true;
}

static uint64_t mlp_result(uint64_t hash)
{
    const mlp_layer_t *l;
    float loss;

    GPU_CHECK(cudaMemcpy(&loss, mlp.loss, sizeof(loss),
                         cudaMemcpyDeviceToHost));
    printf("mlp: loss %.9f\n", loss);
    for (l = mlp.layer; l < mlp.layer + MLP_LAYERS; ++l) {
        hash = app_hash(hash, l->w, sizeof(float) * l->in * l->out);
        hash = app_hash(hash, l->bias, sizeof(float) * l->out);
    }
    return app_hash(hash, mlp.loss, 2 * sizeof(float));
}

static void mlp_layer_destroy(mlp_layer_t *l)
{
    mlp_product_destroy(&l->forward);
    mlp_product_destroy(&l->weights);
    mlp_product_destroy(&l->backward);
    GPU_CHECK(cudaFree(l->w));
    GPU_CHECK(cudaFree(l->dw));
    GPU_CHECK(cudaFree(l->bias));
    GPU_CHECK(cudaFree(l->dbias));
    GPU_CHECK(cudaFree(l->y));
    GPU_CHECK(cudaFree(l->dy));
}

static void mlp_destroy(bool graph)
{
    int i;

    if (graph) {
        GPU_CHECK(cudaGraphExecDestroy(mlp.exec));
    }
    for (i = 0; i < MLP_LAYERS; ++i) {
        mlp_layer_destroy(&mlp.layer[i]);
    }
    for (i = 0; i < MLP_BATCHES; ++i) {
        GPU_CHECK(cudaFreeHost(mlp.host[i]));
    }
    GPU_CHECK(cudaFree(mlp.batch));
    GPU_CHECK(cudaFree(mlp.loss));
    GPU_CHECK(cudaFree(mlp.workspace));
    MLP_CHECK(cublasLtDestroy(mlp.handle));
}

int main(int argc, char **argv)
{
    static const app_t app = { "mlp", 256, 100, mlp_create, NULL, mlp_iterate,
                               mlp_result, mlp_destroy };

    return app_main(&app, argc, argv);
}
