/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLAS and cuBLASLt matrix products in NVTX ranges: launches with attributes
 * and with arguments passed through `extra`, made by a library whose kernels
 * nobody knows from outside.
 *
 * A pass is a row of products whose input and output pointers alternate and
 * whose factors change. "plain" makes it outside of a range and "shim" inside,
 * each on outputs of its own, and all bytes are compared after every round.
 * Algorithm and workspace are fixed, so both come to the same bits.
 */
#include "gpu_util.h"

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_fp16.h>

#define GEMM_PRODUCTS   16 /* in one pass */
#define GEMM_PASSES     8  /* in one timed round */
#define GEMM_MAX_ROUNDS 100
#define GEMM_WORKSPACE  (32u << 20)

#define GEMM_CHECK(_call)                                                      \
    do {                                                                       \
        cublasStatus_t _status = (_call);                                      \
        if (_status != CUBLAS_STATUS_SUCCESS) {                                \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #_call,     \
                    cublasGetStatusString(_status));                           \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

typedef enum {
    GEMM_EX,
    GEMM_LT
} gemm_api_t;

typedef struct gemm_shape {
    gemm_api_t     api;
    cudaDataType_t type;
    int            m, n, k;
} gemm_shape_t;

static const gemm_shape_t gemm_shapes[] = {
    { GEMM_EX, CUDA_R_32F, 64, 64, 64 },
    { GEMM_EX, CUDA_R_32F, 33, 65, 17 },
    { GEMM_EX, CUDA_R_32F, 256, 128, 512 },
    { GEMM_EX, CUDA_R_16F, 64, 64, 64 },
    { GEMM_EX, CUDA_R_16F, 512, 256, 256 },
    { GEMM_EX, CUDA_R_16F, 32, 32, 2048 },
    { GEMM_LT, CUDA_R_32F, 128, 128, 128 },
    { GEMM_LT, CUDA_R_16F, 64, 128, 64 },
    { GEMM_LT, CUDA_R_16F, 512, 512, 256 },
    { GEMM_LT, CUDA_R_16F, 1024, 256, 512 }
};

#define GEMM_NUM_SHAPES (sizeof(gemm_shapes) / sizeof(gemm_shapes[0]))

typedef struct gemm_lt {
    cublasLtMatmulDesc_t             matmul;
    cublasLtMatrixLayout_t           a, b, c;
    cublasLtMatmulHeuristicResult_t  algo;
} gemm_lt_t;

typedef struct gemm {
    cublasHandle_t   handle;
    cublasLtHandle_t lt_handle;
    cudaStream_t     stream;
    void             *workspace;
    gemm_shape_t     shape;
    gemm_lt_t        lt;
    char             region[64];
    size_t           a_bytes, b_bytes, c_bytes;
    void             *a[2], *b;
    void             *c[2][2]; /* of plain and of shim */
    uint32_t         done[2];  /* passes so far */
    double           wall[2][GEMM_MAX_ROUNDS]; /* us a pass */
    bool             equal;
    uint64_t         hash;
} gemm_t;

static size_t gemm_element(cudaDataType_t type)
{
    return (type == CUDA_R_16F) ? sizeof(__half) : sizeof(float);
}

/* Numbers in [-1, 1), the same in every process. */
static void gemm_upload(void *device, size_t bytes, cudaDataType_t type,
                        uint32_t seed)
{
    size_t count = bytes / gemm_element(type);
    char *host   = (char*)malloc(bytes);
    size_t i;
    float value;

    if (host == NULL) {
        exit(1);
    }
    for (i = 0; i < count; ++i) {
        value = gpu_lcg(&seed) / 8388608.0f - 1.0f;
        if (type == CUDA_R_16F) {
            ((__half*)host)[i] = __float2half(value);
        } else {
            ((float*)host)[i] = value;
        }
    }
    GPU_CHECK(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
    GPU_CHECK(cudaDeviceSynchronize());
    free(host);
}

static void gemm_lt_create(gemm_t *g)
{
    const gemm_shape_t *s = &g->shape;
    size_t workspace      = GEMM_WORKSPACE;
    cublasLtMatmulPreference_t preference;
    int found = 0;

    GEMM_CHECK(cublasLtMatmulDescCreate(&g->lt.matmul, CUBLAS_COMPUTE_32F,
                                        CUDA_R_32F));
    GEMM_CHECK(cublasLtMatrixLayoutCreate(&g->lt.a, s->type, s->m, s->k, s->m));
    GEMM_CHECK(cublasLtMatrixLayoutCreate(&g->lt.b, s->type, s->k, s->n, s->k));
    GEMM_CHECK(cublasLtMatrixLayoutCreate(&g->lt.c, s->type, s->m, s->n, s->m));
    GEMM_CHECK(cublasLtMatmulPreferenceCreate(&preference));
    GEMM_CHECK(cublasLtMatmulPreferenceSetAttribute(
            preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
            sizeof(workspace)));
    GEMM_CHECK(cublasLtMatmulAlgoGetHeuristic(
            g->lt_handle, g->lt.matmul, g->lt.a, g->lt.b, g->lt.c, g->lt.c,
            preference, 1, &g->lt.algo, &found));
    GEMM_CHECK(cublasLtMatmulPreferenceDestroy(preference));
    if (found == 0) {
        fprintf(stderr, "%s: cuBLASLt has no algorithm\n", g->region);
        exit(1);
    }
}

static void gemm_lt_destroy(gemm_t *g)
{
    GEMM_CHECK(cublasLtMatrixLayoutDestroy(g->lt.c));
    GEMM_CHECK(cublasLtMatrixLayoutDestroy(g->lt.b));
    GEMM_CHECK(cublasLtMatrixLayoutDestroy(g->lt.a));
    GEMM_CHECK(cublasLtMatmulDescDestroy(g->lt.matmul));
}

/* C = alpha A B + beta C, and beta keeps every earlier product in C's bits. */
static void gemm_product(gemm_t *g, const void *a, void *c, float alpha)
{
    const gemm_shape_t *s = &g->shape;
    const float beta      = 0.5f;

    if (s->api == GEMM_LT) {
        GEMM_CHECK(cublasLtMatmul(g->lt_handle, g->lt.matmul, &alpha, a,
                                  g->lt.a, g->b, g->lt.b, &beta, c, g->lt.c, c,
                                  g->lt.c, &g->lt.algo.algo, g->workspace,
                                  GEMM_WORKSPACE, g->stream));
    } else {
        GEMM_CHECK(cublasGemmEx(g->handle, CUBLAS_OP_N, CUBLAS_OP_N, s->m, s->n,
                                s->k, &alpha, a, s->type, s->m, g->b, s->type,
                                s->k, &beta, c, s->type, s->m,
                                CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    }
}

static void gemm_pass(gemm_t *g, int shim)
{
    uint32_t pass = g->done[shim]++;
    uint32_t i;

    if (shim) {
        nvtxRangePushA(g->region);
    }
    for (i = 0; i < GEMM_PRODUCTS; ++i) {
        gemm_product(g, g->a[(pass + i) & 1], g->c[shim][(pass / 2 + i) & 1],
                     0.25f + 0.0625f * ((pass + i) % 8));
    }
    if (shim) {
        nvtxRangePop();
    }
}

static void gemm_round(gemm_t *g, int shim, int round)
{
    double start = gpu_now_us();
    int i;

    for (i = 0; i < GEMM_PASSES; ++i) {
        gemm_pass(g, shim);
    }
    GPU_CHECK(cudaStreamSynchronize(g->stream));
    g->wall[shim][round] = (gpu_now_us() - start) / GEMM_PASSES;
}

static void gemm_compare(gemm_t *g, char *data[2])
{
    int i;

    g->hash = GPU_FNV_START;
    for (i = 0; i < 2; ++i) {
        GPU_CHECK(cudaMemcpy(data[0], g->c[0][i], g->c_bytes,
                             cudaMemcpyDeviceToHost));
        GPU_CHECK(cudaMemcpy(data[1], g->c[1][i], g->c_bytes,
                             cudaMemcpyDeviceToHost));
        if (memcmp(data[0], data[1], g->c_bytes) != 0) {
            if (g->equal) {
                fprintf(stderr, "%s: shim differs from plain\n", g->region);
            }
            g->equal = false;
        }
        g->hash = gpu_fnv(g->hash, data[0], g->c_bytes);
    }
}

static void gemm_create(gemm_t *g, const gemm_shape_t *shape)
{
    size_t element = gemm_element(shape->type);
    int i;

    g->shape   = *shape;
    g->equal   = true;
    g->a_bytes = element * shape->m * shape->k;
    g->b_bytes = element * shape->k * shape->n;
    g->c_bytes = element * shape->m * shape->n;
    memset(g->done, 0, sizeof(g->done));
    snprintf(g->region, sizeof(g->region), "gemm-%s-%s-%dx%dx%d",
             (shape->api == GEMM_LT) ? "lt" : "ex",
             (shape->type == CUDA_R_16F) ? "half" : "float", shape->m, shape->n,
             shape->k);
    GPU_CHECK(cudaMalloc(&g->b, g->b_bytes));
    gemm_upload(g->b, g->b_bytes, shape->type, 3);
    for (i = 0; i < 2; ++i) {
        GPU_CHECK(cudaMalloc(&g->a[i], g->a_bytes));
        GPU_CHECK(cudaMalloc(&g->c[0][i], g->c_bytes));
        GPU_CHECK(cudaMalloc(&g->c[1][i], g->c_bytes));
        gemm_upload(g->a[i], g->a_bytes, shape->type, 1 + i);
        gemm_upload(g->c[0][i], g->c_bytes, shape->type, 5 + i);
        gemm_upload(g->c[1][i], g->c_bytes, shape->type, 5 + i);
    }
    if (shape->api == GEMM_LT) {
        gemm_lt_create(g);
    }
}

static void gemm_destroy(gemm_t *g)
{
    int i;

    if (g->shape.api == GEMM_LT) {
        gemm_lt_destroy(g);
    }
    for (i = 0; i < 2; ++i) {
        GPU_CHECK(cudaFree(g->a[i]));
        GPU_CHECK(cudaFree(g->c[0][i]));
        GPU_CHECK(cudaFree(g->c[1][i]));
    }
    GPU_CHECK(cudaFree(g->b));
}

static void gemm_run(gemm_t *g, int rounds)
{
    char *data[2];
    int i;

    data[0] = (char*)malloc(g->c_bytes);
    data[1] = (char*)malloc(g->c_bytes);
    if ((data[0] == NULL) || (data[1] == NULL)) {
        exit(1);
    }
    /* the first products load code; the shim's first pass is recorded */
    for (i = 0; i < 3; ++i) {
        gemm_pass(g, 0);
        gemm_pass(g, 1);
    }
    GPU_CHECK(cudaStreamSynchronize(g->stream));
    gemm_compare(g, data);
    for (i = 0; i < rounds; ++i) {
        gemm_round(g, i & 1, i);
        gemm_round(g, !(i & 1), i);
        gemm_compare(g, data);
    }
    free(data[1]);
    free(data[0]);
}

static void gemm_write(FILE *json, const gemm_t *g, int rounds, bool first)
{
    double plain = gpu_median(g->wall[0], rounds);
    double shim  = gpu_median(g->wall[1], rounds);

    printf("%-28s plain %9.1f us  shim %9.1f us  %5.2f  %s\n", g->region, plain,
           shim, plain / shim, g->equal ? "equal" : "DIFFERENT");
    fflush(stdout);
    if (json != NULL) {
        fprintf(json, "%s\n  {\"region\": \"%s\", \"plain_us\": %.3f, "
                "\"shim_us\": %.3f,\n   \"plain_over_shim\": %.4f, \"equal\": "
                "%s, \"hash\": \"%016" PRIx64 "\"}", first ? "[" : ",",
                g->region, plain, shim, plain / shim,
                g->equal ? "true" : "false", g->hash);
    }
}

static void gemm_setup(gemm_t *g)
{
    memset(g, 0, sizeof(*g));
    GPU_CHECK(cudaStreamCreateWithFlags(&g->stream, cudaStreamNonBlocking));
    GPU_CHECK(cudaMalloc(&g->workspace, GEMM_WORKSPACE));
    GEMM_CHECK(cublasCreate(&g->handle));
    GEMM_CHECK(cublasLtCreate(&g->lt_handle));
    GEMM_CHECK(cublasSetStream(g->handle, g->stream));
    GEMM_CHECK(cublasSetWorkspace(g->handle, g->workspace, GEMM_WORKSPACE));
}

int main(int argc, char **argv)
{
    const char *json_name = NULL;
    int rounds            = 20;
    bool equal            = true;
    static gemm_t g;
    FILE *json;
    size_t i;
    int arg;

    for (arg = 1; arg + 1 < argc; arg += 2) {
        if (!strcmp(argv[arg], "--json")) {
            json_name = argv[arg + 1];
        } else if (!strcmp(argv[arg], "--rounds")) {
            rounds = atoi(argv[arg + 1]);
        }
    }
    if ((arg != argc) || (rounds < 1) || (rounds > GEMM_MAX_ROUNDS)) {
        fprintf(stderr, "usage: %s [--json FILE] [--rounds N]\n", argv[0]);
        return 2;
    }
    json = gpu_json_open(json_name);
    gemm_setup(&g);
    for (i = 0; i < GEMM_NUM_SHAPES; ++i) {
        gemm_create(&g, &gemm_shapes[i]);
        gemm_run(&g, rounds);
        gemm_write(json, &g, rounds, i == 0);
        gemm_destroy(&g);
        equal &= g.equal;
    }
    if (json != NULL) {
        fprintf(json, "\n]\n");
    }
    gpu_json_close(json, json_name);
    GEMM_CHECK(cublasLtDestroy(g.lt_handle));
    GEMM_CHECK(cublasDestroy(g.handle));
    GPU_CHECK(cudaDeviceSynchronize());
    return equal ? 0 : 1;
}
