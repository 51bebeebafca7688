/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conjugate gradients on cuBLAS and cuSPARSE, for the Laplacian of a square in
 * double precision. Scalars stay on the device; the host waits in each
 * iteration for the square of the residual and goes on until it is small. Each
 * round solves for another right-hand side.
 *
 * SpMV is asked for the algorithm whose sums always have the same order.
 *
 * A graph by hand: an iteration up to the wait, captured.
 */
#include "app.h"

#include <cublas_v2.h>
#include <cusparse.h>

#define CG_SIDES     4 /* right-hand sides */
#define CG_TOLERANCE 1e-16 /* of the square of the residual, to begin with 1 */
#define CG_WORKSPACE (32u << 20)

#define CG_BLAS(_call)                                                         \
    do {                                                                       \
        cublasStatus_t _status = (_call);                                      \
        if (_status != CUBLAS_STATUS_SUCCESS) {                                \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #_call,     \
                    cublasGetStatusString(_status));                           \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

#define CG_SPARSE(_call)                                                       \
    do {                                                                       \
        cusparseStatus_t _status = (_call);                                    \
        if (_status != CUSPARSE_STATUS_SUCCESS) {                              \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #_call,     \
                    cusparseGetErrorString(_status));                          \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

/* On the device. */
typedef struct cg_scalars {
    double one, zero;
    double pq;             /* p A p */
    double rr, rr_new;     /* r r, of before and of now */
    double alpha, minus_alpha;
    double beta;
} cg_scalars_t;

static struct {
    int                  n;
    int                  *rows, *columns;
    double               *values;
    double               *side[CG_SIDES];
    double               *x, *r, *p, *q;
    cg_scalars_t         *scalars;
    double               *residual; /* pinned */
    void                 *workspace, *buffer;
    cublasHandle_t       blas;
    cusparseHandle_t     sparse;
    cusparseSpMatDescr_t matrix;
    cusparseDnVecDescr_t vector_p, vector_q;
    cudaGraphExec_t      exec;
} cg;

__global__ void cg_set_alpha(cg_scalars_t *s)
{
    s->alpha       = s->rr / s->pq;
    s->minus_alpha = -s->alpha;
}

__global__ void cg_set_beta(cg_scalars_t *s)
{
    s->beta = s->rr_new / s->rr;
    s->rr   = s->rr_new;
}

/* q = A p */
static void cg_product(void)
{
    CG_SPARSE(cusparseSpMV(cg.sparse, CUSPARSE_OPERATION_NON_TRANSPOSE,
                           &cg.scalars->one, cg.matrix, cg.vector_p,
                           &cg.scalars->zero, cg.vector_q, CUDA_R_64F,
                           CUSPARSE_SPMV_CSR_ALG2, cg.buffer));
}

static void cg_launch(void)
{
    cg_scalars_t *s = cg.scalars;

    cg_product();
    CG_BLAS(cublasDdot(cg.blas, cg.n, cg.p, 1, cg.q, 1, &s->pq));
    cg_set_alpha<<<1, 1, 0, app_stream>>>(s);
    CG_BLAS(cublasDaxpy(cg.blas, cg.n, &s->alpha, cg.p, 1, cg.x, 1));
    CG_BLAS(cublasDaxpy(cg.blas, cg.n, &s->minus_alpha, cg.q, 1, cg.r, 1));
    CG_BLAS(cublasDdot(cg.blas, cg.n, cg.r, 1, cg.r, 1, &s->rr_new));
    cg_set_beta<<<1, 1, 0, app_stream>>>(s);
    CG_BLAS(cublasDscal(cg.blas, cg.n, &s->beta, cg.p, 1));
    CG_BLAS(cublasDaxpy(cg.blas, cg.n, &s->one, cg.r, 1, cg.p, 1));
    GPU_CHECK(cudaGetLastError());
    GPU_CHECK(cudaMemcpyAsync(cg.residual, &s->rr, sizeof(double),
                              cudaMemcpyDeviceToHost, app_stream));
}

/* From x = 0. */
static void cg_begin(int round)
{
    size_t bytes = sizeof(double) * cg.n;
    double *side = cg.side[round % CG_SIDES];

    GPU_CHECK(cudaMemsetAsync(cg.x, 0, bytes, app_stream));
    GPU_CHECK(cudaMemcpyAsync(cg.r, side, bytes, cudaMemcpyDeviceToDevice,
                              app_stream));
    GPU_CHECK(cudaMemcpyAsync(cg.p, side, bytes, cudaMemcpyDeviceToDevice,
                              app_stream));
    CG_BLAS(cublasDdot(cg.blas, cg.n, cg.r, 1, cg.r, 1, &cg.scalars->rr));
}

/* The neighbours of a point in the order of their columns. */
static void cg_matrix(int size)
{
    int *rows      = (int*)app_host_memory(sizeof(int) * (cg.n + 1));
    int *columns   = (int*)app_host_memory(sizeof(int) * 5 * cg.n);
    double *values = (double*)app_host_memory(sizeof(double) * 5 * cg.n);
    int moves[5]   = { -size, -1, 0, 1, size };
    int num        = 0;
    int i, k;

    for (i = 0; i < cg.n; ++i) {
        for (k = 0; k < 5; ++k) {
            if (((k == 1) && (i % size == 0)) ||
                ((k == 3) && (i % size == size - 1)) ||
                (i + moves[k] < 0) || (i + moves[k] >= cg.n)) {
                continue;
            }
            columns[num]  = i + moves[k];
            values[num++] = (k == 2) ? 4.0 : -1.0;
        }
        rows[i + 1] = num;
    }
    cg.rows    = (int*)app_memory(sizeof(int) * (cg.n + 1));
    cg.columns = (int*)app_memory(sizeof(int) * num);
    cg.values  = (double*)app_memory(sizeof(double) * num);
    app_upload(cg.rows, rows, sizeof(int) * (cg.n + 1));
    app_upload(cg.columns, columns, sizeof(int) * num);
    app_upload(cg.values, values, sizeof(double) * num);
    CG_SPARSE(cusparseCreateCsr(&cg.matrix, cg.n, cg.n, num, cg.rows,
                                cg.columns, cg.values, CUSPARSE_INDEX_32I,
                                CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                CUDA_R_64F));
    free(rows);
    free(columns);
    free(values);
}

/* Random, and of length 1. */
static void cg_sides(void)
{
    double *host = (double*)app_host_memory(sizeof(double) * cg.n);
    double square;
    uint32_t seed;
    int s, i;

    for (s = 0; s < CG_SIDES; ++s) {
        seed   = s + 1;
        square = 0;
        for (i = 0; i < cg.n; ++i) {
            host[i] = gpu_lcg(&seed) / 8388608.0 - 1.0;
            square += host[i] * host[i];
        }
        for (i = 0; i < cg.n; ++i) {
            host[i] /= sqrt(square);
        }
        cg.side[s] = (double*)app_memory(sizeof(double) * cg.n);
        app_upload(cg.side[s], host, sizeof(double) * cg.n);
    }
    free(host);
}

static void cg_libraries(void)
{
    cg_scalars_t scalars = { 1.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0 };
    size_t bytes;

    app_upload(cg.scalars, &scalars, sizeof(scalars));
    CG_BLAS(cublasCreate(&cg.blas));
    CG_BLAS(cublasSetStream(cg.blas, app_stream));
    GPU_CHECK(cudaMalloc(&cg.workspace, CG_WORKSPACE));
    CG_BLAS(cublasSetWorkspace(cg.blas, cg.workspace, CG_WORKSPACE));
    CG_BLAS(cublasSetPointerMode(cg.blas, CUBLAS_POINTER_MODE_DEVICE));
    CG_SPARSE(cusparseCreateDnVec(&cg.vector_p, cg.n, cg.p, CUDA_R_64F));
    CG_SPARSE(cusparseCreateDnVec(&cg.vector_q, cg.n, cg.q, CUDA_R_64F));
    CG_SPARSE(cusparseSpMV_bufferSize(
            cg.sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &cg.scalars->one,
            cg.matrix, cg.vector_p, &cg.scalars->zero, cg.vector_q, CUDA_R_64F,
            CUSPARSE_SPMV_CSR_ALG2, &bytes));
    cg.buffer = app_memory((bytes > 0) ? bytes : 1);
    CG_SPARSE(cusparseSpMV_preprocess(
            cg.sparse, CUSPARSE_OPERATION_NON_TRANSPOSE, &cg.scalars->one,
            cg.matrix, cg.vector_p, &cg.scalars->zero, cg.vector_q, CUDA_R_64F,
            CUSPARSE_SPMV_CSR_ALG2, cg.buffer));
}

static void cg_create(int size, bool graph)
{
    cg.n       = size * size;
    cg.x       = (double*)app_memory(sizeof(double) * cg.n);
    cg.r       = (double*)app_memory(sizeof(double) * cg.n);
    cg.p       = (double*)app_memory(sizeof(double) * cg.n);
    cg.q       = (double*)app_memory(sizeof(double) * cg.n);
    cg.scalars = (cg_scalars_t*)app_memory(sizeof(*cg.scalars));
    GPU_CHECK(cudaMallocHost((void**)&cg.residual, sizeof(double)));
    CG_SPARSE(cusparseCreate(&cg.sparse));
    CG_SPARSE(cusparseSetStream(cg.sparse, app_stream));
    CG_SPARSE(cusparseSetPointerMode(cg.sparse, CUSPARSE_POINTER_MODE_DEVICE));
    cg_matrix(size);
    cg_sides();
    cg_libraries();
    /* the libraries load code at their first calls: not while one captures */
    cg_begin(0);
    cg_launch();
    GPU_CHECK(cudaStreamSynchronize(app_stream));
    if (graph) {
        app_graph_begin();
        cg_launch();
        cg.exec = app_graph_end();
    }
}

static bool cg_iterate(uint32_t iteration, bool graph)
{
    (void)iteration;
    if (graph) {
        app_graph_launch(cg.exec);
    } else {
        cg_launch();
    }
    GPU_CHECK(cudaStreamSynchronize(app_stream));
    return *cg.residual > CG_TOLERANCE;
}

static uint64_t cg_result(uint64_t hash)
{
    size_t bytes = sizeof(double) * cg.n;

    hash = gpu_fnv(hash, cg.residual, sizeof(double));
    hash = app_hash(hash, cg.x, bytes);
    hash = app_hash(hash, cg.r, bytes);
    return app_hash(hash, cg.p, bytes);
}

static void cg_destroy(bool graph)
{
    int i;

    if (graph) {
        GPU_CHECK(cudaGraphExecDestroy(cg.exec));
    }
    CG_SPARSE(cusparseDestroyDnVec(cg.vector_q));
    CG_SPARSE(cusparseDestroyDnVec(cg.vector_p));
    CG_SPARSE(cusparseDestroySpMat(cg.matrix));
    CG_SPARSE(cusparseDestroy(cg.sparse));
    CG_BLAS(cublasDestroy(cg.blas));
    for (i = 0; i < CG_SIDES; ++i) {
        GPU_CHECK(cudaFree(cg.side[i]));
    }
    GPU_CHECK(cudaFree(cg.buffer));
    GPU_CHECK(cudaFree(cg.workspace));
    GPU_CHECK(cudaFree(cg.rows));
    GPU_CHECK(cudaFree(cg.columns));
    GPU_CHECK(cudaFree(cg.values));
    GPU_CHECK(cudaFree(cg.x));
    GPU_CHECK(cudaFree(cg.r));
    GPU_CHECK(cudaFree(cg.p));
    GPU_CHECK(cudaFree(cg.q));
    GPU_CHECK(cudaFree(cg.scalars));
    GPU_CHECK(cudaFreeHost(cg.residual));
}

int main(int argc, char **argv)
{
    static const app_t app = { "cg", 64, 400, cg_create, cg_begin, cg_iterate,
                               cg_result, cg_destroy };

    return app_main(&app, argc, argv);
}
