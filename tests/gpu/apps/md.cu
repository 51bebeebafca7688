/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Molecular dynamics of a Lennard-Jones fluid by velocity Verlet, with
 * neighbour lists that are made anew from cells every tenth step; then the
 * energy is summed up too. Nothing waits for the device within a round.
 *
 * Particles come to their cells in any order, so each cell is sorted; all sums
 * are made in an order that is always the same.
 *
 * A graph by hand: one of a step, one of a step with new lists.
 */
#include "app.h"

#include <math.h>

#define MD_THREADS    128
#define MD_SUM        256  /* threads that sum up the energy */
#define MD_EVERY      10   /* steps between new lists */
#define MD_CELL       128  /* particles that fit into a cell */
#define MD_NEIGHBOURS 256  /* ... and into the list of one of them */
#define MD_DENSITY    0.8442
#define MD_CUT        2.5f
#define MD_REACH      2.8f /* of the lists: the cut and what a particle moves */
#define MD_STEP       0.004f

typedef struct md_cells {
    int   per_side;
    float box;     /* its side */
    int   *count;  /* of each cell */
    int   *member; /* MD_CELL for each cell */
} md_cells_t;

static struct {
    int             n;
    float4          *x, *v;
    float4          *f;      /* w: potential energy */
    md_cells_t      cells;
    int             *num;    /* neighbours of each */
    int             *list;   /* the k-th one of i at k * n + i */
    double          *energy; /* the last one, and the sum of all */
    int             *full;   /* not 0: something did not fit */
    cudaGraphExec_t exec[2];
} md;

/* The nearest image of a distance. */
__device__ static float md_near(float d, float box)
{
    return d - box * rintf(d / box);
}

__device__ static int md_cell_of(float x, const md_cells_t &cells)
{
    int i = (int)(x / cells.box * cells.per_side);

    return (i < cells.per_side) ? i : cells.per_side - 1;
}

__global__ void md_fill(const float4 *x, md_cells_t cells, int *full, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int cell, slot;

    if (i >= n) {
        return;
    }
    cell = (md_cell_of(x[i].z, cells) * cells.per_side +
            md_cell_of(x[i].y, cells)) * cells.per_side +
           md_cell_of(x[i].x, cells);
    slot = atomicAdd(&cells.count[cell], 1);
    if (slot < MD_CELL) {
        cells.member[cell * MD_CELL + slot] = i;
    } else {
        *full = 1;
    }
}

__global__ void md_sort(md_cells_t cells)
{
    int cell    = blockIdx.x * blockDim.x + threadIdx.x;
    int *member = cells.member + cell * MD_CELL;
    int i, k, moved;

    if (cell >= cells.per_side * cells.per_side * cells.per_side) {
        return;
    }
    for (i = 1; i < min(cells.count[cell], MD_CELL); ++i) {
        moved = member[i];
        for (k = i; (k > 0) && (member[k - 1] > moved); --k) {
            member[k] = member[k - 1];
        }
        member[k] = moved;
    }
}

/* Adds the neighbours in one cell to the list of a particle. */
__device__ static int md_look(const float4 *x, const md_cells_t &cells,
                              int cell, int i, int num, int *list, int n)
{
    int count = min(cells.count[cell], MD_CELL);
    float dx, dy, dz;
    int k, other;

    for (k = 0; k < count; ++k) {
        other = cells.member[cell * MD_CELL + k];
        dx    = md_near(x[i].x - x[other].x, cells.box);
        dy    = md_near(x[i].y - x[other].y, cells.box);
        dz    = md_near(x[i].z - x[other].z, cells.box);
        if ((other != i) &&
            (dx * dx + dy * dy + dz * dz < MD_REACH * MD_REACH)) {
            if (num < MD_NEIGHBOURS) {
                list[num * n + i] = other;
            }
            ++num;
        }
    }
    return num;
}

__global__ void md_neighbours(const float4 *x, md_cells_t cells, int *num,
                              int *list, int *full, int n)
{
    int i     = blockIdx.x * blockDim.x + threadIdx.x;
    int side  = cells.per_side;
    int found = 0;
    int cx, cy, cz, k;

    if (i >= n) {
        return;
    }
    for (k = 0; k < 27; ++k) {
        cx    = (md_cell_of(x[i].x, cells) + k % 3 - 1 + side) % side;
        cy    = (md_cell_of(x[i].y, cells) + k / 3 % 3 - 1 + side) % side;
        cz    = (md_cell_of(x[i].z, cells) + k / 9 - 1 + side) % side;
        found = md_look(x, cells, (cz * side + cy) * side + cx, i, found, list,
                        n);
    }
    if (found > MD_NEIGHBOURS) {
        *full = 1;
    }
    num[i] = min(found, MD_NEIGHBOURS);
}

__global__ void md_drift(float4 *x, float4 *v, const float4 *f, float box,
                         int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i >= n) {
        return;
    }
    v[i].x += 0.5f * MD_STEP * f[i].x;
    v[i].y += 0.5f * MD_STEP * f[i].y;
    v[i].z += 0.5f * MD_STEP * f[i].z;
    x[i].x += MD_STEP * v[i].x;
    x[i].y += MD_STEP * v[i].y;
    x[i].z += MD_STEP * v[i].z;
    x[i].x -= box * floorf(x[i].x / box);
    x[i].y -= box * floorf(x[i].y / box);
    x[i].z -= box * floorf(x[i].z / box);
}

__global__ void md_force(const float4 *x, float4 *f, const int *num,
                         const int *list, float box, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 sum = make_float4(0, 0, 0, 0);
    float dx, dy, dz, square, r6, force;
    int k, other;

    if (i >= n) {
        return;
    }
    for (k = 0; k < num[i]; ++k) {
        other  = list[k * n + i];
        dx     = md_near(x[i].x - x[other].x, box);
        dy     = md_near(x[i].y - x[other].y, box);
        dz     = md_near(x[i].z - x[other].z, box);
        square = dx * dx + dy * dy + dz * dz;
        if (square < MD_CUT * MD_CUT) {
            r6     = 1.0f / (square * square * square);
            force  = 24.0f * r6 * (2.0f * r6 - 1.0f) / square;
            sum.x += force * dx;
            sum.y += force * dy;
            sum.z += force * dz;
            sum.w += 2.0f * r6 * (r6 - 1.0f);
        }
    }
    f[i] = sum;
}

__global__ void md_kick(float4 *v, const float4 *f, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < n) {
        v[i].x += 0.5f * MD_STEP * f[i].x;
        v[i].y += 0.5f * MD_STEP * f[i].y;
        v[i].z += 0.5f * MD_STEP * f[i].z;
    }
}

__global__ void md_energy(const float4 *v, const float4 *f, double *energy,
                          int n)
{
    __shared__ double part[MD_SUM];
    double sum = 0;
    int i, half;

    for (i = threadIdx.x; i < n; i += MD_SUM) {
        sum += f[i].w + 0.5 * (v[i].x * v[i].x + v[i].y * v[i].y +
                               v[i].z * v[i].z);
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    for (half = MD_SUM / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            part[threadIdx.x] += part[threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        energy[0]  = part[0] / n;
        energy[1] += part[0] / n;
    }
}

static int md_blocks(int count)
{
    return (count + MD_THREADS - 1) / MD_THREADS;
}

static int md_num_cells(void)
{
    return md.cells.per_side * md.cells.per_side * md.cells.per_side;
}

static void md_lists(void)
{
    int num_cells = md_num_cells();

    GPU_CHECK(cudaMemsetAsync(md.cells.count, 0, sizeof(int) * num_cells,
                              app_stream));
    md_fill<<<md_blocks(md.n), MD_THREADS, 0, app_stream>>>(md.x, md.cells,
                                                            md.full, md.n);
    md_sort<<<md_blocks(num_cells), MD_THREADS, 0, app_stream>>>(md.cells);
    md_neighbours<<<md_blocks(md.n), MD_THREADS, 0, app_stream>>>(
            md.x, md.cells, md.num, md.list, md.full, md.n);
}

static void md_forces(void)
{
    md_force<<<md_blocks(md.n), MD_THREADS, 0, app_stream>>>(
            md.x, md.f, md.num, md.list, md.cells.box, md.n);
}

static void md_launch(bool lists)
{
    md_drift<<<md_blocks(md.n), MD_THREADS, 0, app_stream>>>(
            md.x, md.v, md.f, md.cells.box, md.n);
    if (lists) {
        md_lists();
    }
    md_forces();
    md_kick<<<md_blocks(md.n), MD_THREADS, 0, app_stream>>>(md.v, md.f, md.n);
    if (lists) {
        md_energy<<<1, MD_SUM, 0, app_stream>>>(md.v, md.f, md.energy, md.n);
    }
    GPU_CHECK(cudaGetLastError());
}

/* On a cubic lattice, at random speeds whose sum is nought. */
static void md_start(int size)
{
    float4 *x     = (float4*)app_host_memory(sizeof(*x) * md.n);
    float4 *v     = (float4*)app_host_memory(sizeof(*v) * md.n);
    float spacing = md.cells.box / size;
    uint32_t seed = 1;
    double sum[3] = { 0, 0, 0 };
    int i;

    for (i = 0; i < md.n; ++i) {
        x[i].x = (i % size + 0.5f) * spacing;
        x[i].y = (i / size % size + 0.5f) * spacing;
        x[i].z = (i / size / size + 0.5f) * spacing;
        v[i].x = gpu_lcg(&seed) / 4194304.0f - 2.0f;
        v[i].y = gpu_lcg(&seed) / 4194304.0f - 2.0f;
        v[i].z = gpu_lcg(&seed) / 4194304.0f - 2.0f;
        sum[0] += v[i].x;
        sum[1] += v[i].y;
        sum[2] += v[i].z;
    }
    for (i = 0; i < md.n; ++i) {
        v[i].x -= (float)(sum[0] / md.n);
        v[i].y -= (float)(sum[1] / md.n);
        v[i].z -= (float)(sum[2] / md.n);
    }
    app_upload(md.x, x, sizeof(*x) * md.n);
    app_upload(md.v, v, sizeof(*v) * md.n);
    free(x);
    free(v);
}

static void md_create(int size, bool graph)
{
    int i;

    if ((size < 9) || (size > 64)) {
        fprintf(stderr, "md: --size takes 9 to 64 particles on a side\n");
        exit(2);
    }
    md.n              = size * size * size;
    md.cells.box      = (float)cbrt(md.n / MD_DENSITY);
    md.cells.per_side = (int)(md.cells.box / MD_REACH);
    md.x      = (float4*)app_memory(sizeof(float4) * md.n);
    md.v      = (float4*)app_memory(sizeof(float4) * md.n);
    md.f      = (float4*)app_memory(sizeof(float4) * md.n);
    md.num    = (int*)app_memory(sizeof(int) * md.n);
    md.list   = (int*)app_memory(sizeof(int) * md.n * MD_NEIGHBOURS);
    md.energy = (double*)app_memory(sizeof(double) * 2);
    md.full   = (int*)app_memory(sizeof(int));
    md.cells.count  = (int*)app_memory(sizeof(int) * md_num_cells());
    md.cells.member = (int*)app_memory(sizeof(int) * md_num_cells() * MD_CELL);
    md_start(size);
    md_lists();
    md_forces();
    GPU_CHECK(cudaGetLastError());
    for (i = 0; graph && (i < 2); ++i) {
        app_graph_begin();
        md_launch(i == 1);
        md.exec[i] = app_graph_end();
    }
}

static bool md_iterate(uint32_t iteration, bool graph)
{
    bool lists = iteration % MD_EVERY == 0;

    if (graph) {
        app_graph_launch(md.exec[lists]);
    } else {
        md_launch(lists);
    }
    return true;
}

static uint64_t md_result(uint64_t hash)
{
    double energy[2];
    int full;

    GPU_CHECK(cudaMemcpy(&full, md.full, sizeof(full), cudaMemcpyDeviceToHost));
    GPU_CHECK(cudaMemcpy(energy, md.energy, sizeof(energy),
                         cudaMemcpyDeviceToHost));
    if (full || !isfinite(energy[0])) {
        fprintf(stderr, "md: %s\n", full ? "a cell or a list is full" :
                "the fluid has exploded");
        exit(1);
    }
    printf("md: energy of a particle %.9f\n", energy[0]);
    hash = gpu_fnv(hash, energy, sizeof(energy));
    hash = app_hash(hash, md.x, sizeof(float4) * md.n);
    return app_hash(hash, md.v, sizeof(float4) * md.n);
}

static void md_destroy(bool graph)
{
    int i;

    for (i = 0; graph && (i < 2); ++i) {
        GPU_CHECK(cudaGraphExecDestroy(md.exec[i]));
    }
    GPU_CHECK(cudaFree(md.x));
    GPU_CHECK(cudaFree(md.v));
    GPU_CHECK(cudaFree(md.f));
    GPU_CHECK(cudaFree(md.num));
    GPU_CHECK(cudaFree(md.list));
    GPU_CHECK(cudaFree(md.energy));
    GPU_CHECK(cudaFree(md.full));
    GPU_CHECK(cudaFree(md.cells.count));
    GPU_CHECK(cudaFree(md.cells.member));
}

int main(int argc, char **argv)
{
    static const app_t app = { "md", 12, 100, md_create, NULL, md_iterate,
                               md_result, md_destroy };

    return app_main(&app, argc, argv);
}
