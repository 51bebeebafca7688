/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forks and joins over two streams, timed in turn in one process: launched
 * plainly, inside an NVTX range, and as a graph written by hand (captured, so
 * with the edges that the events say).
 *
 * Each fork has a kernel that both branches read, a kernel in either branch,
 * and a join before the next one; a missing edge changes the result.
 */
#include "gpu_util.h"

#define FORK_BLOCKS     8
#define FORK_THREADS    256
#define FORK_SIZE       (FORK_BLOCKS * FORK_THREADS)
#define FORK_BYTES      (FORK_SIZE * sizeof(uint32_t))
#define FORK_WARMUP     3
#define FORK_ITERATIONS 64
#define FORK_MAX_ROUNDS 200

typedef enum {
    FORK_PLAIN,
    FORK_SHIM,
    FORK_HAND,
    FORK_NUM_MODES
} fork_mode_t;

typedef struct fork_case {
    int             length; /* forks in an iteration */
    char            region[32];
    cudaStream_t    stream[2];
    cudaEvent_t     forked, joined;
    uint32_t        *buffers[FORK_NUM_MODES][3];
    cudaGraphExec_t hand;
    double          wall[FORK_NUM_MODES][FORK_MAX_ROUNDS];
    bool            equal;
    uint64_t        hash;
} fork_case_t;

__global__ void fork_step(uint32_t *out, const uint32_t *a, const uint32_t *b)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    out[i] = out[i] * 1664525u + a[(i + 257) % FORK_SIZE] +
             b[(i + 31) % FORK_SIZE];
}

static void fork_iteration(fork_case_t *c, uint32_t *const b[3])
{
    int i;

    for (i = 0; i < c->length; ++i) {
        fork_step<<<FORK_BLOCKS, FORK_THREADS, 0, c->stream[0]>>>(
                b[0], b[1], b[2]);
        GPU_CHECK(cudaEventRecord(c->forked, c->stream[0]));
        GPU_CHECK(cudaStreamWaitEvent(c->stream[1], c->forked, 0));
        fork_step<<<FORK_BLOCKS, FORK_THREADS, 0, c->stream[0]>>>(
                b[1], b[0], b[0]);
        fork_step<<<FORK_BLOCKS, FORK_THREADS, 0, c->stream[1]>>>(
                b[2], b[0], b[0]);
        GPU_CHECK(cudaEventRecord(c->joined, c->stream[1]));
        GPU_CHECK(cudaStreamWaitEvent(c->stream[0], c->joined, 0));
    }
    GPU_CHECK(cudaGetLastError());
}

static void fork_run_one(fork_case_t *c, int mode)
{
    if (mode == FORK_HAND) {
        GPU_CHECK(cudaGraphLaunch(c->hand, c->stream[0]));
        return;
    }
    if (mode == FORK_SHIM) {
        nvtxRangePushA(c->region);
    }
    fork_iteration(c, c->buffers[mode]);
    if (mode == FORK_SHIM) {
        nvtxRangePop();
    }
}

static void fork_create(fork_case_t *c)
{
    static uint32_t host[FORK_SIZE];
    cudaGraph_t graph;
    uint32_t seed;
    int mode, k, i;

    for (mode = 0; mode < FORK_NUM_MODES; ++mode) {
        seed = 1;
        for (k = 0; k < 3; ++k) {
            for (i = 0; i < FORK_SIZE; ++i) {
                host[i] = gpu_lcg(&seed);
            }
            GPU_CHECK(cudaMalloc((void**)&c->buffers[mode][k], FORK_BYTES));
            GPU_CHECK(cudaMemcpy(c->buffers[mode][k], host, FORK_BYTES,
                                 cudaMemcpyHostToDevice));
        }
    }
    for (k = 0; k < 2; ++k) {
        GPU_CHECK(cudaStreamCreateWithFlags(&c->stream[k],
                                            cudaStreamNonBlocking));
    }
    GPU_CHECK(cudaEventCreateWithFlags(&c->forked, cudaEventDisableTiming));
    GPU_CHECK(cudaEventCreateWithFlags(&c->joined, cudaEventDisableTiming));
    GPU_CHECK(cudaDeviceSynchronize());
    GPU_CHECK(cudaStreamBeginCapture(c->stream[0],
                                     cudaStreamCaptureModeThreadLocal));
    fork_iteration(c, c->buffers[FORK_HAND]);
    GPU_CHECK(cudaStreamEndCapture(c->stream[0], &graph));
    GPU_CHECK(cudaGraphInstantiate(&c->hand, graph, 0));
    GPU_CHECK(cudaGraphUpload(c->hand, c->stream[0]));
    GPU_CHECK(cudaGraphDestroy(graph));
}

static void fork_compare(fork_case_t *c)
{
    static uint32_t data[FORK_NUM_MODES][3][FORK_SIZE];
    int mode, k;

    for (mode = 0; mode < FORK_NUM_MODES; ++mode) {
        for (k = 0; k < 3; ++k) {
            GPU_CHECK(cudaMemcpy(data[mode][k], c->buffers[mode][k],
                                 FORK_BYTES, cudaMemcpyDeviceToHost));
        }
        if (memcmp(data[mode], data[FORK_PLAIN], sizeof(data[mode])) != 0) {
            fprintf(stderr, "%s: mode %d differs from plain\n", c->region,
                    mode);
            c->equal = false;
        }
    }
    c->hash = gpu_fnv(GPU_FNV_START, data[FORK_PLAIN],
                      sizeof(data[FORK_PLAIN]));
}

static void fork_rounds(fork_case_t *c, int rounds)
{
    double start;
    int round, k, mode, i;

    for (i = 0; i < FORK_WARMUP; ++i) {
        for (mode = 0; mode < FORK_NUM_MODES; ++mode) {
            fork_run_one(c, mode);
        }
    }
    for (round = 0; round < rounds; ++round) {
        for (k = 0; k < FORK_NUM_MODES; ++k) {
            mode = (round + k) % FORK_NUM_MODES;
            GPU_CHECK(cudaDeviceSynchronize());
            start = gpu_now_us();
            for (i = 0; i < FORK_ITERATIONS; ++i) {
                fork_run_one(c, mode);
            }
            GPU_CHECK(cudaDeviceSynchronize());
            c->wall[mode][round] = (gpu_now_us() - start) / FORK_ITERATIONS;
        }
        fork_compare(c);
    }
}

static void fork_write(FILE *json, const fork_case_t *c, int rounds)
{
    double plain = gpu_median(c->wall[FORK_PLAIN], rounds);
    double shim  = gpu_median(c->wall[FORK_SHIM], rounds);
    double hand  = gpu_median(c->wall[FORK_HAND], rounds);

    printf("fork %d: plain %.1f shim %.1f hand %.1f us, plain/shim %.2f, "
           "shim/hand %.3f, %s\n", c->length, plain, shim, hand, plain / shim,
           shim / hand, c->equal ? "equal" : "DIFFERENT");
    if (json != NULL) {
        fprintf(json, "[{\"variant\": \"fork\", \"length\": %d, \"cudart\": "
                "\"static\", \"stream\": \"two\", \"region\": \"%s\",\n"
                "  \"plain_us\": %.3f, \"shim_us\": %.3f, \"hand_us\": %.3f,\n"
                "  \"plain_over_shim\": %.4f, \"shim_over_hand\": %.4f,\n"
                "  \"equal\": %s, \"hash\": \"%016" PRIx64 "\"}]\n", c->length,
                c->region, plain, shim, hand, plain / shim, shim / hand,
                c->equal ? "true" : "false", c->hash);
    }
}

int main(int argc, char **argv)
{
    static fork_case_t c;
    const char *name = NULL;
    int rounds = 24, i;
    FILE *json;

    c.length = 16;
    c.equal  = true;
    for (i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--json") == 0) {
            name = argv[i + 1];
        } else if (strcmp(argv[i], "--rounds") == 0) {
            rounds = atoi(argv[i + 1]);
        } else if (strcmp(argv[i], "--length") == 0) {
            c.length = atoi(argv[i + 1]);
        }
    }
    rounds = rounds < 1 ? 1 : rounds > FORK_MAX_ROUNDS ? FORK_MAX_ROUNDS :
             rounds;
    snprintf(c.region, sizeof(c.region), "fork-%d", c.length);
    json = gpu_json_open(name);
    fork_create(&c);
    fork_rounds(&c, rounds);
    fork_write(json, &c, rounds);
    gpu_json_close(json, name);
    return c.equal ? 0 : 1;
}
