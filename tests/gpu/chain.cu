/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains of tiny kernels, timed in turn in one process: launched plainly,
 * launched inside an NVTX range, and as a graph written by hand.
 *
 * "plain" and "shim" are the same code but for the range, so under the shim
 * only "shim" is replayed, and without the shim both are plain. The three
 * work on buffers of their own from the same start, and every round ends with
 * a comparison of all bytes. A step reads its neighbour and what it overwrites,
 * so that a step that is lost, doubled or out of order changes the result.
 *
 * With --bare there are no ranges, and "plain" is left out: what makes regions
 * by itself would find its launches as well. Then "shim" is plain without the
 * shim.
 */
#include "gpu_util.h"

#ifndef CHAIN_CUDART
#define CHAIN_CUDART "unknown"
#endif

#define CHAIN_BLOCKS     8
#define CHAIN_THREADS    256
#define CHAIN_SIZE       (CHAIN_BLOCKS * CHAIN_THREADS)
#define CHAIN_BYTES      (CHAIN_SIZE * sizeof(uint32_t))
#define CHAIN_WARMUP     3
#define CHAIN_MAX_ROUNDS 200
#define CHAIN_MAX_CASES  16

typedef enum {
    CHAIN_PLAIN,
    CHAIN_SHIM,
    CHAIN_HAND,
    CHAIN_NUM_MODES
} chain_mode_t;

typedef enum {
    CHAIN_CONST,
    CHAIN_SWAP,
    CHAIN_SCALAR,
    CHAIN_SYNC,
    CHAIN_NUM_VARIANTS
} chain_variant_t;

static const char *const chain_variant_names[CHAIN_NUM_VARIANTS] = {
    "const", "swap", "scalar", "sync"
};

/* What the hand-written graph of each variant is: the fastest that one would
 * write, so that the comparison favours nobody. */
static const char *const chain_hand_names[CHAIN_NUM_VARIANTS] = {
    "one captured graph",
    "two captured graphs in turn",
    "graph of explicit nodes, cudaGraphExecKernelNodeSetParams on each",
    "one captured graph"
};

typedef struct chain_hand {
    cudaGraph_t     graph[2]; /* [1] is used by the swapping variant alone */
    cudaGraphExec_t exec[2];
    cudaGraphNode_t *nodes;   /* of graph[0], scalar variant alone */
} chain_hand_t;

typedef struct chain_case {
    chain_variant_t variant;
    int             length;
    int             iterations; /* in one round */
    int             rounds;
    bool            bare;
    char            region[64];
    cudaStream_t    stream;
    uint32_t        *buffers[CHAIN_NUM_MODES][2];
    uint32_t        done[CHAIN_NUM_MODES]; /* iterations so far */
    chain_hand_t    hand;
    double          wall[CHAIN_NUM_MODES][CHAIN_MAX_ROUNDS]; /* us/iteration */
    double          host[CHAIN_NUM_MODES][CHAIN_MAX_ROUNDS];
    bool            equal;
    uint64_t        hash;
} chain_case_t;

typedef struct chain_options {
    const char *json;
    const char *stream;
    int        rounds;     /* 0: by length */
    int        iterations; /* 0: by length */
    bool       bare;
    bool       variants[CHAIN_NUM_VARIANTS];
    int        lengths[CHAIN_MAX_CASES];
    int        num_lengths;
} chain_options_t;

__global__ void chain_step(const uint32_t *in, uint32_t *out, uint32_t scalar)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    out[i] = out[i] * 1664525u + in[(i + 257) % CHAIN_SIZE] + scalar;
}

static uint32_t chain_scalar(const chain_case_t *c, uint32_t iteration)
{
    return (c->variant == CHAIN_SCALAR) ? iteration * 2654435761u + 1 : 12345u;
}

/* 1 where this iteration starts from the second buffer */
static int chain_start(const chain_case_t *c, uint32_t iteration)
{
    return (c->variant == CHAIN_SWAP) ? iteration & 1 : 0;
}

static void chain_launch(const chain_case_t *c, uint32_t *const buffers[2],
                         uint32_t iteration, cudaStream_t stream)
{
    uint32_t scalar = chain_scalar(c, iteration);
    int from        = chain_start(c, iteration);
    int i;

    for (i = 0; i < c->length; ++i, from ^= 1) {
        chain_step<<<CHAIN_BLOCKS, CHAIN_THREADS, 0, stream>>>(
                buffers[from], buffers[from ^ 1], scalar);
    }
    GPU_CHECK(cudaGetLastError());
}

/* The same iteration on the host: what plain itself has to come to. */
static void chain_reference(const chain_case_t *c, uint32_t *buffers[2],
                            uint32_t iteration)
{
    uint32_t scalar = chain_scalar(c, iteration);
    int from        = chain_start(c, iteration);
    int i;
    uint32_t k;

    for (i = 0; i < c->length; ++i, from ^= 1) {
        for (k = 0; k < CHAIN_SIZE; ++k) {
            buffers[from ^ 1][k] = buffers[from ^ 1][k] * 1664525u +
                                   buffers[from][(k + 257) % CHAIN_SIZE] +
                                   scalar;
        }
    }
}

/* Parameters of the i-th node, kept alive by the caller until they are used. */
static cudaKernelNodeParams chain_node_params(void **args)
{
    cudaKernelNodeParams params = cudaKernelNodeParams();

    params.func         = (void*)chain_step;
    params.gridDim      = dim3(CHAIN_BLOCKS);
    params.blockDim     = dim3(CHAIN_THREADS);
    params.kernelParams = args;
    return params;
}

static void chain_hand_capture(chain_case_t *c)
{
    cudaStream_t capture;
    uint32_t i;

    /* a stream of its own: the legacy stream cannot be captured */
    GPU_CHECK(cudaStreamCreateWithFlags(&capture, cudaStreamNonBlocking));
    for (i = 0; i < ((c->variant == CHAIN_SWAP) ? 2u : 1u); ++i) {
        GPU_CHECK(cudaStreamBeginCapture(capture,
                                         cudaStreamCaptureModeThreadLocal));
        chain_launch(c, c->buffers[CHAIN_HAND], i, capture);
        GPU_CHECK(cudaStreamEndCapture(capture, &c->hand.graph[i]));
    }
    GPU_CHECK(cudaStreamDestroy(capture));
}

static void chain_hand_explicit(chain_case_t *c)
{
    uint32_t scalar = chain_scalar(c, 0);
    uint32_t **pair = c->buffers[CHAIN_HAND];
    int i;

    c->hand.nodes = (cudaGraphNode_t*)calloc(c->length, sizeof(*c->hand.nodes));
    if (c->hand.nodes == NULL) {
        exit(1);
    }
    GPU_CHECK(cudaGraphCreate(&c->hand.graph[0], 0));
    for (i = 0; i < c->length; ++i) {
        void *args[] = { &pair[i & 1], &pair[(i & 1) ^ 1], &scalar };
        cudaKernelNodeParams params = chain_node_params(args);

        GPU_CHECK(cudaGraphAddKernelNode(&c->hand.nodes[i], c->hand.graph[0],
                                         i ? &c->hand.nodes[i - 1] : NULL,
                                         i ? 1 : 0, &params));
    }
}

static void chain_hand_create(chain_case_t *c)
{
    int i;

    memset(&c->hand, 0, sizeof(c->hand));
    if (c->variant == CHAIN_SCALAR) {
        chain_hand_explicit(c);
    } else {
        chain_hand_capture(c);
    }
    for (i = 0; i < 2; ++i) {
        if (c->hand.graph[i] != NULL) {
            GPU_CHECK(cudaGraphInstantiate(&c->hand.exec[i], c->hand.graph[i],
                                           0));
            GPU_CHECK(cudaGraphUpload(c->hand.exec[i], c->stream));
        }
    }
}

static void chain_hand_destroy(chain_case_t *c)
{
    int i;

    for (i = 0; i < 2; ++i) {
        if (c->hand.graph[i] != NULL) {
            GPU_CHECK(cudaGraphExecDestroy(c->hand.exec[i]));
            GPU_CHECK(cudaGraphDestroy(c->hand.graph[i]));
        }
    }
    free(c->hand.nodes);
}

static void chain_hand_launch(chain_case_t *c, uint32_t iteration)
{
    uint32_t scalar = chain_scalar(c, iteration);
    uint32_t **pair = c->buffers[CHAIN_HAND];
    int i;

    for (i = 0; (c->hand.nodes != NULL) && (i < c->length); ++i) {
        void *args[] = { &pair[i & 1], &pair[(i & 1) ^ 1], &scalar };
        cudaKernelNodeParams params = chain_node_params(args);

        GPU_CHECK(cudaGraphExecKernelNodeSetParams(
                c->hand.exec[0], c->hand.nodes[i], &params));
    }
    GPU_CHECK(cudaGraphLaunch(c->hand.exec[chain_start(c, iteration)],
                              c->stream));
}

static void chain_iteration(chain_case_t *c, chain_mode_t mode)
{
    uint32_t iteration = c->done[mode]++;
    bool ranged        = (mode == CHAIN_SHIM) && !c->bare;

    if (ranged) {
        nvtxRangePushA(c->region);
    }
    if (mode == CHAIN_HAND) {
        chain_hand_launch(c, iteration);
    } else {
        chain_launch(c, c->buffers[mode], iteration, c->stream);
    }
    if (c->variant == CHAIN_SYNC) {
        GPU_CHECK(cudaStreamSynchronize(c->stream));
    }
    if (ranged) {
        nvtxRangePop();
    }
}

/* The first one that is run; what the others are compared with. */
static int chain_first(const chain_case_t *c)
{
    return c->bare ? CHAIN_SHIM : CHAIN_PLAIN;
}

static void chain_round(chain_case_t *c, chain_mode_t mode, int round)
{
    double start, issued, end;
    int i;

    start = gpu_now_us();
    for (i = 0; i < c->iterations; ++i) {
        chain_iteration(c, mode);
    }
    issued = gpu_now_us();
    GPU_CHECK(cudaStreamSynchronize(c->stream));
    end = gpu_now_us();
    c->wall[mode][round] = (end - start) / c->iterations;
    c->host[mode][round] = (issued - start) / c->iterations;
}

static void chain_read(const chain_case_t *c, int mode, uint32_t *data)
{
    GPU_CHECK(cudaMemcpy(data, c->buffers[mode][0], CHAIN_BYTES,
                         cudaMemcpyDeviceToHost));
    GPU_CHECK(cudaMemcpy(data + CHAIN_SIZE, c->buffers[mode][1], CHAIN_BYTES,
                         cudaMemcpyDeviceToHost));
}

/* Compares all with @a expected, or with the first where it is NULL. */
static void chain_compare(chain_case_t *c, const uint32_t *expected,
                          const char *when)
{
    static const char *const names[] = { "plain", "shim", "hand" };
    static uint32_t first[2 * CHAIN_SIZE], data[2 * CHAIN_SIZE];
    int mode;

    chain_read(c, chain_first(c), first);
    for (mode = chain_first(c); mode < CHAIN_NUM_MODES; ++mode) {
        chain_read(c, mode, data);
        if (memcmp(data, expected ? expected : first, sizeof(data)) != 0) {
            fprintf(stderr, "%s: %s: %s differs from %s\n", c->region, when,
                    names[mode], expected ? "the host's result" :
                    names[chain_first(c)]);
            c->equal = false;
        }
    }
    c->hash = gpu_fnv(GPU_FNV_START, first, sizeof(first));
}

static void chain_fill(chain_case_t *c, uint32_t *host)
{
    uint32_t seed = 1;
    int mode, i;

    for (i = 0; i < 2 * CHAIN_SIZE; ++i) {
        host[i] = gpu_lcg(&seed);
    }
    for (mode = 0; mode < CHAIN_NUM_MODES; ++mode) {
        for (i = 0; i < 2; ++i) {
            GPU_CHECK(cudaMalloc((void**)&c->buffers[mode][i], CHAIN_BYTES));
            GPU_CHECK(cudaMemcpy(c->buffers[mode][i], host + i * CHAIN_SIZE,
                                 CHAIN_BYTES, cudaMemcpyHostToDevice));
        }
    }
    /* copies of pageable memory may still be on their way in stream 0 */
    GPU_CHECK(cudaDeviceSynchronize());
}

static void chain_warm_up(chain_case_t *c, uint32_t *host)
{
    uint32_t *pair[2] = { host, host + CHAIN_SIZE };
    uint32_t i;
    int mode;

    for (i = 0; i < CHAIN_WARMUP; ++i) {
        for (mode = chain_first(c); mode < CHAIN_NUM_MODES; ++mode) {
            chain_iteration(c, (chain_mode_t)mode);
        }
        chain_reference(c, pair, i);
    }
    GPU_CHECK(cudaStreamSynchronize(c->stream));
    chain_compare(c, host, "warm-up");
}

static void chain_run(chain_case_t *c)
{
    static uint32_t host[2 * CHAIN_SIZE];
    int round, mode, i;

    c->equal = true;
    memset(c->done, 0, sizeof(c->done));
    snprintf(c->region, sizeof(c->region), "chain-%s-%d",
             chain_variant_names[c->variant], c->length);
    chain_fill(c, host);
    chain_hand_create(c);
    chain_warm_up(c, host);
    for (round = 0; round < c->rounds; ++round) {
        /* another one first in every round: none is always the one after */
        for (i = 0; i < CHAIN_NUM_MODES; ++i) {
            mode = (round + i) % CHAIN_NUM_MODES;
            if (mode >= chain_first(c)) {
                chain_round(c, (chain_mode_t)mode, round);
            }
        }
        chain_compare(c, NULL, "after a round");
    }
    chain_hand_destroy(c);
    for (mode = 0; mode < CHAIN_NUM_MODES; ++mode) {
        for (i = 0; i < 2; ++i) {
            GPU_CHECK(cudaFree(c->buffers[mode][i]));
        }
    }
}

static void chain_write(FILE *json, const chain_case_t *c, const char *stream,
                        bool first)
{
    static const char *const names[] = { "plain", "shim", "hand" };
    double median[CHAIN_NUM_MODES];
    int mode;

    if (json == NULL) {
        return;
    }
    fprintf(json, "%s\n  {\"variant\": \"%s\", \"length\": %d, \"cudart\": "
            "\"%s\", \"stream\": \"%s\", \"region\": \"%s\",\n   "
            "\"iterations\": %d, \"rounds\": %d, \"hand_graph\": \"%s\",\n   ",
            first ? "[" : ",", chain_variant_names[c->variant], c->length,
            CHAIN_CUDART, stream, c->region, c->iterations, c->rounds,
            chain_hand_names[c->variant]);
    for (mode = chain_first(c); mode < CHAIN_NUM_MODES; ++mode) {
        median[mode] = gpu_median(c->wall[mode], c->rounds);
        fprintf(json, "\"%s_us\": %.3f, \"%s_min_us\": %.3f, "
                "\"%s_host_us\": %.3f,\n   ", names[mode], median[mode],
                names[mode], gpu_min(c->wall[mode], c->rounds), names[mode],
                gpu_median(c->host[mode], c->rounds));
    }
    if (!c->bare) {
        fprintf(json, "\"plain_over_shim\": %.4f, "
                "\"plain_over_shim_paired\": %.4f,\n   ",
                median[CHAIN_PLAIN] / median[CHAIN_SHIM],
                gpu_median_ratio(c->wall[CHAIN_PLAIN], c->wall[CHAIN_SHIM],
                                 c->rounds));
    }
    fprintf(json, "\"shim_over_hand\": %.4f, "
            "\"shim_over_hand_paired\": %.4f,\n   "
            "\"equal\": %s, \"hash\": \"%016" PRIx64 "\"}",
            median[CHAIN_SHIM] / median[CHAIN_HAND],
            gpu_median_ratio(c->wall[CHAIN_SHIM], c->wall[CHAIN_HAND],
                             c->rounds),
            c->equal ? "true" : "false", c->hash);
}

static void chain_print(const chain_case_t *c)
{
    double plain = gpu_median(c->wall[chain_first(c)], c->rounds);
    double shim  = gpu_median(c->wall[CHAIN_SHIM], c->rounds);
    double hand  = gpu_median(c->wall[CHAIN_HAND], c->rounds);

    printf("%-7s %6d %10.1f %10.1f %10.1f %10.2f %10.3f  %s\n",
           chain_variant_names[c->variant], c->length, plain, shim, hand,
           plain / shim, shim / hand, c->equal ? "equal" : "DIFFERENT");
    fflush(stdout);
}

static void chain_usage(const char *name)
{
    fprintf(stderr,
            "usage: %s [--json FILE] [--rounds N] [--iterations N] "
            "[--variant const|swap|scalar|sync]... [--length N]... "
            "[--stream nonblocking|blocking|legacy] [--bare]\n", name);
    exit(2);
}

static chain_options_t chain_parse(int argc, char **argv)
{
    static const int lengths[] = { 16, 64, 256, 1024 };
    chain_options_t options;
    bool all = true;
    int i, v;

    memset(&options, 0, sizeof(options));
    options.stream = "nonblocking";
    for (i = 1; i < argc; i += 2) {
        if (!strcmp(argv[i], "--bare")) {
            options.bare = true;
            --i; /* it has no value */
        } else if (i + 1 == argc) {
            chain_usage(argv[0]);
        } else if (!strcmp(argv[i], "--json")) {
            options.json = argv[i + 1];
        } else if (!strcmp(argv[i], "--stream")) {
            options.stream = argv[i + 1];
        } else if (!strcmp(argv[i], "--rounds")) {
            options.rounds = atoi(argv[i + 1]);
        } else if (!strcmp(argv[i], "--iterations")) {
            options.iterations = atoi(argv[i + 1]);
        } else if (!strcmp(argv[i], "--length") &&
                   (options.num_lengths < CHAIN_MAX_CASES) &&
                   (atoi(argv[i + 1]) > 0)) {
            options.lengths[options.num_lengths++] = atoi(argv[i + 1]);
        } else if (!strcmp(argv[i], "--variant")) {
            for (v = 0; v < CHAIN_NUM_VARIANTS; ++v) {
                if (!strcmp(argv[i + 1], chain_variant_names[v])) {
                    options.variants[v] = true;
                    all                 = false;
                }
            }
        } else {
            chain_usage(argv[0]);
        }
    }
    for (v = 0; all && (v < CHAIN_NUM_VARIANTS); ++v) {
        options.variants[v] = true;
    }
    if (options.num_lengths == 0) {
        memcpy(options.lengths, lengths, sizeof(lengths));
        options.num_lengths = sizeof(lengths) / sizeof(lengths[0]);
    }
    return options;
}

static cudaStream_t chain_stream(const char *kind)
{
    cudaStream_t stream = 0;

    if (!strcmp(kind, "legacy")) {
        return 0;
    }
    GPU_CHECK(cudaStreamCreateWithFlags(&stream, !strcmp(kind, "blocking") ?
                                        cudaStreamDefault :
                                        cudaStreamNonBlocking));
    return stream;
}

/* Rounds of some 5 to 40 ms: long against the one wait at their end. */
static void chain_size(chain_case_t *c, const chain_options_t *options)
{
    int iterations = 4096 / c->length;

    /* so many that the first, which the device waits for, counts little */
    iterations    = (iterations < 32) ? 32 : iterations;
    c->iterations = (options->iterations > 0) ? options->iterations :
                    iterations;
    c->rounds     = (options->rounds > 0) ? options->rounds :
                    ((c->length > 512) ? 20 : 30);
    c->rounds     = (c->rounds > CHAIN_MAX_ROUNDS) ? CHAIN_MAX_ROUNDS :
                    c->rounds;
}

/* Clocks are low on an idle card and rise within some tenths of a second. */
static void chain_wake(cudaStream_t stream)
{
    double start = gpu_now_us();
    uint32_t *pair[2];
    int i;

    for (i = 0; i < 2; ++i) {
        GPU_CHECK(cudaMalloc((void**)&pair[i], CHAIN_BYTES));
    }
    while (gpu_now_us() - start < 300e3) {
        for (i = 0; i < 256; ++i) {
            chain_step<<<CHAIN_BLOCKS, CHAIN_THREADS, 0, stream>>>(
                    pair[i & 1], pair[(i & 1) ^ 1], 1);
        }
        GPU_CHECK(cudaStreamSynchronize(stream));
    }
    for (i = 0; i < 2; ++i) {
        GPU_CHECK(cudaFree(pair[i]));
    }
}

int main(int argc, char **argv)
{
    chain_options_t options = chain_parse(argc, argv);
    FILE *json              = gpu_json_open(options.json);
    bool equal              = true;
    bool first              = true;
    static chain_case_t c;
    int v, i;

    c.stream = chain_stream(options.stream);
    chain_wake(c.stream);
    printf("%-7s %6s %10s %10s %10s %10s %10s  (%s cudart, us/iteration)\n",
           "variant", "length", "plain", "shim", "hand", "plain/shim",
           "shim/hand", CHAIN_CUDART);
    for (v = 0; v < CHAIN_NUM_VARIANTS; ++v) {
        for (i = 0; options.variants[v] && (i < options.num_lengths); ++i) {
            c.variant = (chain_variant_t)v;
            c.length  = options.lengths[i];
            c.bare    = options.bare;
            chain_size(&c, &options);
            chain_run(&c);
            chain_print(&c);
            chain_write(json, &c, options.stream, first);
            first  = false;
            equal &= c.equal;
        }
    }
    if (json != NULL) {
        fprintf(json, "%s\n]\n", first ? "[" : "");
    }
    gpu_json_close(json, options.json);
    GPU_CHECK(cudaDeviceSynchronize());
    return equal ? 0 : 1;
}
