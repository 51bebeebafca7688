/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heat on a plate by Jacobi iterations between two buffers that change places:
 * the edge is set, all points are averaged, and the host looks at how much has
 * changed in each iteration. (The demonstration, tests/programs/heat.c, has
 * hundreds of launches in a step, arguments that change in each, and no graph.)
 *
 * A graph by hand: two of them, one for each order of the buffers.
 */
#include "app.h"

#define JACOBI_THREADS 128
#define JACOBI_BLOCKS  64 /* of the sum */

static struct {
    int             n;
    float           *plate[2];
    double          *sums;   /* of each block, and the whole */
    double          *change; /* pinned */
    cudaGraphExec_t exec[2];
} jacobi;

/* The upper edge is hot, and hotter in its middle. */
__global__ void jacobi_edge(float *plate, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;

    if (x < n) {
        plate[x]               = 1.0f + 4.0f * x * (n - 1 - x) / (n * n);
        plate[(n - 1) * n + x] = 0.0f;
    }
}

__global__ void jacobi_sweep(const float *from, float *to, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y;

    if ((x > 0) && (x < n - 1) && (y > 0) && (y < n - 1)) {
        to[y * n + x] = 0.25f * (from[y * n + x - 1] + from[y * n + x + 1] +
                                 from[(y - 1) * n + x] +
                                 from[(y + 1) * n + x]);
    }
}

/* Sums in an order that is always the same. */
__device__ static double jacobi_block_sum(double value)
{
    __shared__ double part[JACOBI_THREADS];
    int half;

    part[threadIdx.x] = value;
    __syncthreads();
    for (half = JACOBI_THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            part[threadIdx.x] += part[threadIdx.x + half];
        }
        __syncthreads();
    }
    return part[0];
}

__global__ void jacobi_change(const float *from, const float *to, int n,
                              double *sums)
{
    double sum = 0;
    double change;
    int i;

    for (i = blockIdx.x * JACOBI_THREADS + threadIdx.x; i < n * n;
         i += JACOBI_BLOCKS * JACOBI_THREADS) {
        change = (double)to[i] - from[i];
        sum   += change * change;
    }
    sum = jacobi_block_sum(sum);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
    }
}

__global__ void jacobi_total(double *sums)
{
    double sum = (threadIdx.x < JACOBI_BLOCKS) ? sums[threadIdx.x] : 0;

    sum = jacobi_block_sum(sum);
    if (threadIdx.x == 0) {
        sums[JACOBI_BLOCKS] = sum;
    }
}

static void jacobi_launch(const float *from, float *to)
{
    dim3 blocks((jacobi.n + JACOBI_THREADS - 1) / JACOBI_THREADS, jacobi.n);

    jacobi_edge<<<blocks.x, JACOBI_THREADS, 0, app_stream>>>(to, jacobi.n);
    jacobi_sweep<<<blocks, JACOBI_THREADS, 0, app_stream>>>(from, to, jacobi.n);
    jacobi_change<<<JACOBI_BLOCKS, JACOBI_THREADS, 0, app_stream>>>(
            from, to, jacobi.n, jacobi.sums);
    jacobi_total<<<1, JACOBI_THREADS, 0, app_stream>>>(jacobi.sums);
    GPU_CHECK(cudaGetLastError());
    GPU_CHECK(cudaMemcpyAsync(jacobi.change, jacobi.sums + JACOBI_BLOCKS,
                              sizeof(double), cudaMemcpyDeviceToHost,
                              app_stream));
}

static void jacobi_create(int size, bool graph)
{
    int i;

    jacobi.n = size;
    for (i = 0; i < 2; ++i) {
        jacobi.plate[i] = (float*)app_memory(sizeof(float) * size * size);
    }
    jacobi.sums = (double*)app_memory(sizeof(double) * (JACOBI_BLOCKS + 1));
    GPU_CHECK(cudaMallocHost((void**)&jacobi.change, sizeof(double)));
    for (i = 0; graph && (i < 2); ++i) {
        app_graph_begin();
        jacobi_launch(jacobi.plate[i], jacobi.plate[i ^ 1]);
        jacobi.exec[i] = app_graph_end();
    }
}

static bool jacobi_iterate(uint32_t iteration, bool graph)
{
    int from = iteration & 1;

    if (graph) {
        app_graph_launch(jacobi.exec[from]);
    } else {
        jacobi_launch(jacobi.plate[from], jacobi.plate[from ^ 1]);
    }
    GPU_CHECK(cudaStreamSynchronize(app_stream));
    return *jacobi.change > 1e-20;
}

static uint64_t jacobi_result(uint64_t hash)
{
    size_t bytes = sizeof(float) * jacobi.n * jacobi.n;

    hash = gpu_fnv(hash, jacobi.change, sizeof(double));
    hash = app_hash(hash, jacobi.plate[0], bytes);
    return app_hash(hash, jacobi.plate[1], bytes);
}

static void jacobi_destroy(bool graph)
{
    int i;

    for (i = 0; i < 2; ++i) {
        if (graph) {
            GPU_CHECK(cudaGraphExecDestroy(jacobi.exec[i]));
        }
        GPU_CHECK(cudaFree(jacobi.plate[i]));
    }
    GPU_CHECK(cudaFree(jacobi.sums));
    GPU_CHECK(cudaFreeHost(jacobi.change));
}

int main(int argc, char **argv)
{
    static const app_t app = { "jacobi", 256, 100, jacobi_create, NULL,
                               jacobi_iterate, jacobi_result, jacobi_destroy };

    return app_main(&app, argc, argv);
}
