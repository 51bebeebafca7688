/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lattice Boltzmann, D2Q9: a fluid between two walls of which the upper one
 * moves, with a round obstacle. The distributions lie in two buffers that
 * change places. Nothing waits for the device within a round.
 *
 * A graph by hand: two of them, one for each order of the buffers.
 */
#include "app.h"

#define LBM_Q       9
#define LBM_THREADS 128
#define LBM_OMEGA   1.2f  /* 1 / relaxation time */
#define LBM_LID     0.05f /* speed of the upper wall */

static struct {
    int             nx, ny;
    float           *f[2];
    float           *rho, *ux, *uy;
    unsigned char   *solid;
    cudaGraphExec_t exec[2];
} lbm;

__constant__ int   lbm_cx[LBM_Q]   = { 0, 1, 0, -1, 0, 1, -1, -1, 1 };
__constant__ int   lbm_cy[LBM_Q]   = { 0, 0, 1, 0, -1, 1, 1, -1, -1 };
__constant__ int   lbm_back[LBM_Q] = { 0, 3, 4, 1, 2, 7, 8, 5, 6 };
__constant__ float lbm_w[LBM_Q]    = {
    4.0f / 9, 1.0f / 9, 1.0f / 9, 1.0f / 9, 1.0f / 9,
    1.0f / 36, 1.0f / 36, 1.0f / 36, 1.0f / 36
};

__global__ void lbm_start(float *f, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int q;

    for (q = 0; (q < LBM_Q) && (i < n); ++q) {
        f[q * n + i] = lbm_w[q] * (1.0f + 0.01f * (i % 7));
    }
}

__global__ void lbm_moments(const float *f, float *rho, float *ux, float *uy,
                            int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0, x = 0, y = 0;
    int q;

    if (i >= n) {
        return;
    }
    for (q = 0; q < LBM_Q; ++q) {
        sum += f[q * n + i];
        x   += f[q * n + i] * lbm_cx[q];
        y   += f[q * n + i] * lbm_cy[q];
    }
    rho[i] = sum;
    ux[i]  = x / sum;
    uy[i]  = y / sum;
}

__global__ void lbm_collide(float *f, const float *rho, const float *ux,
                            const float *uy, const unsigned char *solid, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float square, cu, rest;
    int q;

    if ((i >= n) || solid[i]) {
        return;
    }
    square = 1.5f * (ux[i] * ux[i] + uy[i] * uy[i]);
    for (q = 0; q < LBM_Q; ++q) {
        cu   = 3.0f * (lbm_cx[q] * ux[i] + lbm_cy[q] * uy[i]);
        rest = lbm_w[q] * rho[i] * (1.0f + cu + 0.5f * cu * cu - square);
        f[q * n + i] += LBM_OMEGA * (rest - f[q * n + i]);
    }
}

/* Each point takes what moves to it; what comes from a wall is its own, thrown
 * back. It is periodic from left to right. */
__global__ void lbm_stream(const float *from, float *to,
                           const unsigned char *solid, int nx, int ny)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y;
    int n = nx * ny;
    int q, sx, sy;

    if (x >= nx) {
        return;
    }
    for (q = 0; q < LBM_Q; ++q) {
        sx = (x - lbm_cx[q] + nx) % nx;
        sy = y - lbm_cy[q];
        if ((sy < 0) || (sy >= ny) || solid[sy * nx + sx]) {
            to[q * n + y * nx + x] = from[lbm_back[q] * n + y * nx + x];
        } else {
            to[q * n + y * nx + x] = from[q * n + sy * nx + sx];
        }
    }
}

/* What the moving wall adds to that which it throws back. */
__global__ void lbm_lid(float *f, const float *rho, int nx, int ny)
{
    int x  = blockIdx.x * blockDim.x + threadIdx.x;
    int n  = nx * ny;
    int at = (ny - 1) * nx + x;

    if (x < nx) {
        f[7 * n + at] -= 6.0f * lbm_w[7] * rho[at] * LBM_LID;
        f[8 * n + at] += 6.0f * lbm_w[8] * rho[at] * LBM_LID;
    }
}

static void lbm_launch(float *from, float *to)
{
    int n      = lbm.nx * lbm.ny;
    int points = (n + LBM_THREADS - 1) / LBM_THREADS;
    dim3 rows((lbm.nx + LBM_THREADS - 1) / LBM_THREADS, lbm.ny);

    lbm_moments<<<points, LBM_THREADS, 0, app_stream>>>(from, lbm.rho, lbm.ux,
                                                        lbm.uy, n);
    lbm_collide<<<points, LBM_THREADS, 0, app_stream>>>(
            from, lbm.rho, lbm.ux, lbm.uy, lbm.solid, n);
    lbm_stream<<<rows, LBM_THREADS, 0, app_stream>>>(from, to, lbm.solid,
                                                     lbm.nx, lbm.ny);
    lbm_lid<<<rows.x, LBM_THREADS, 0, app_stream>>>(to, lbm.rho, lbm.nx,
                                                    lbm.ny);
    GPU_CHECK(cudaGetLastError());
}

static void lbm_obstacle(void)
{
    int n               = lbm.nx * lbm.ny;
    unsigned char *host = (unsigned char*)app_host_memory(n);
    int r               = lbm.ny / 6;
    int x, y, dx, dy;

    for (y = 0; y < lbm.ny; ++y) {
        for (x = 0; x < lbm.nx; ++x) {
            dx = x - lbm.nx / 4;
            dy = y - lbm.ny / 2;
            host[y * lbm.nx + x] = dx * dx + dy * dy < r * r;
        }
    }
    lbm.solid = (unsigned char*)app_memory(n);
    app_upload(lbm.solid, host, n);
    free(host);
}

static void lbm_create(int size, bool graph)
{
    int n = 2 * size * size;
    int i;

    lbm.nx = 2 * size;
    lbm.ny = size;
    for (i = 0; i < 2; ++i) {
        lbm.f[i] = (float*)app_memory(sizeof(float) * LBM_Q * n);
    }
    lbm.rho = (float*)app_memory(sizeof(float) * n);
    lbm.ux  = (float*)app_memory(sizeof(float) * n);
    lbm.uy  = (float*)app_memory(sizeof(float) * n);
    lbm_obstacle();
    lbm_start<<<(n + LBM_THREADS - 1) / LBM_THREADS, LBM_THREADS, 0,
                app_stream>>>(lbm.f[0], n);
    GPU_CHECK(cudaGetLastError());
    for (i = 0; graph && (i < 2); ++i) {
        app_graph_begin();
        lbm_launch(lbm.f[i], lbm.f[i ^ 1]);
        lbm.exec[i] = app_graph_end();
    }
}

static bool lbm_iterate(uint32_t iteration, bool graph)
{
    int from = iteration & 1;

    if (graph) {
        app_graph_launch(lbm.exec[from]);
    } else {
        lbm_launch(lbm.f[from], lbm.f[from ^ 1]);
    }
    return true;
}

static uint64_t lbm_result(uint64_t hash)
{
    size_t bytes = sizeof(float) * lbm.nx * lbm.ny;

    hash = app_hash(hash, lbm.f[0], LBM_Q * bytes);
    hash = app_hash(hash, lbm.f[1], LBM_Q * bytes);
    return app_hash(hash, lbm.ux, bytes);
}

static void lbm_destroy(bool graph)
{
    int i;

    for (i = 0; i < 2; ++i) {
        if (graph) {
            GPU_CHECK(cudaGraphExecDestroy(lbm.exec[i]));
        }
        GPU_CHECK(cudaFree(lbm.f[i]));
    }
    GPU_CHECK(cudaFree(lbm.rho));
    GPU_CHECK(cudaFree(lbm.ux));
    GPU_CHECK(cudaFree(lbm.uy));
    GPU_CHECK(cudaFree(lbm.solid));
}

int main(int argc, char **argv)
{
    static const app_t app = { "lbm", 64, 200, lbm_create, NULL, lbm_iterate,
                               lbm_result, lbm_destroy };

    return app_main(&app, argc, argv);
}
