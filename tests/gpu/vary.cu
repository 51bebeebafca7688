/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions that vary, or that replaying helps little: the shim is never to be
 * slower than the plain way. The cases are in vary_cases.h; each is timed in
 * turn in one process, launched plainly, launched inside an NVTX range, and,
 * where that makes sense, as a graph written by hand.
 *
 * "plain" and "shim" are the same code but for the range, on buffers of their
 * own from the same start, and every round ends with a comparison of all
 * bytes. A kernel reads its neighbour, what it overwrites and its grid, so that
 * one that is lost, doubled, out of order or of another shape shows.
 */
#include "vary_cases.h"

#define VARY_THREADS    256
#define VARY_SIZE       (64 * VARY_THREADS)
#define VARY_BYTES      (VARY_SIZE * sizeof(uint32_t))
#define VARY_MAX_ROUNDS 200
/* The shim may need some tens of runs until it knows what suits a region. */
#define VARY_MIN_SETTLE 64
#define VARY_MAX_SETTLE 256
#define VARY_SETTLE_US  60e3
/* A round of the plain way: long against the one wait at its end. */
#define VARY_ROUND_US   8e3
#define VARY_MIN_ROUND  4

typedef enum {
    VARY_PLAIN,
    VARY_SHIM,
    VARY_HAND,
    VARY_NUM_MODES
} vary_mode_t;

static const char *const vary_mode_names[VARY_NUM_MODES] = {
    "plain", "shim", "hand"
};

/* The one argument of the kernels with a large one; `value` is what varies. */
template <int BYTES>
struct vary_table {
    const uint32_t *in;
    uint32_t       *out;
    uint64_t       value;
    uint32_t       word[BYTES / sizeof(uint32_t) - 6];
};

typedef struct vary_case {
    const vary_kind_t *kind;
    char              region[64];
    cudaStream_t      stream;
    long long         clocks;     /* that each kernel spins */
    int               num_modes;  /* 2 where there is no graph by hand */
    int               iterations; /* in one round */
    int               rounds;
    uint32_t          *buffers[VARY_NUM_MODES][VARY_BUFFERS];
    uint32_t          done[VARY_NUM_MODES]; /* iterations so far */
    cudaGraphExec_t   hand;
    double            wall[VARY_NUM_MODES][VARY_MAX_ROUNDS]; /* us/iteration */
    double            host[VARY_NUM_MODES][VARY_MAX_ROUNDS];
    bool              equal;
    uint64_t          hash;
} vary_case_t;

typedef struct vary_options {
    const char *json;
    int        rounds;
    bool       chosen[VARY_NUM_KINDS];
} vary_options_t;

static __device__ void vary_spin(long long clocks)
{
    long long start;

    if (clocks > 0) {
        start = clock64();
        while (clock64() - start < clocks) {
        }
    }
}

static __device__ void vary_mix(const uint32_t *in, uint32_t *out,
                                uint32_t factor, uint32_t scalar)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    if (i < VARY_SIZE) {
        out[i] = out[i] * factor + in[(i + 257) % VARY_SIZE] + scalar +
                 gridDim.x;
    }
}

template <uint32_t FACTOR>
__global__ void vary_small(const uint32_t *in, uint32_t *out, uint32_t scalar,
                           long long clocks)
{
    vary_mix(in, out, FACTOR, scalar);
    vary_spin(clocks);
}

template <int BYTES>
__global__ void vary_large(const vary_table<BYTES> table)
{
    const int words = sizeof(table.word) / sizeof(table.word[0]);

    vary_mix(table.in, table.out, 1664525u,
             (uint32_t)table.value + table.word[threadIdx.x % words]);
}

static const void *const vary_functions[VARY_FUNCTIONS] = {
    (const void*)vary_small<1664525u>, (const void*)vary_small<22695477u>,
    (const void*)vary_small<134775813u>, (const void*)vary_small<69069u>
};

/* How long a number of clocks takes, ns. */
__global__ void vary_calibrate(long long clocks, unsigned long long *ns)
{
    unsigned long long start, end;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    vary_spin(clocks);
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end));
    *ns = end - start;
}

static double vary_clocks_per_us(cudaStream_t stream)
{
    const long long clocks = 20000000;
    unsigned long long *ns, host = 0;

    GPU_CHECK(cudaMalloc((void**)&ns, sizeof(*ns)));
    vary_calibrate<<<1, 1, 0, stream>>>(clocks, ns);
    GPU_CHECK(cudaStreamSynchronize(stream));
    GPU_CHECK(cudaMemcpy(&host, ns, sizeof(host), cudaMemcpyDeviceToHost));
    GPU_CHECK(cudaFree(ns));
    return clocks / (host * 1e-3);
}

template <int BYTES>
static void vary_launch_large(uint32_t *const *buffers, const vary_step_t *step,
                              cudaStream_t stream)
{
    static vary_table<BYTES> table;
    const uint32_t words = sizeof(table.word) / sizeof(table.word[0]);
    void *args[]         = { &table };
    uint32_t i;

    for (i = 0; (table.word[0] == 0) && (i < words); ++i) {
        table.word[words - 1 - i] = i + 1;
    }
    table.in    = buffers[step->in];
    table.out   = buffers[step->out];
    table.value = step->scalar;
    GPU_CHECK(cudaLaunchKernel((const void*)vary_large<BYTES>,
                               dim3(step->grid), dim3(VARY_THREADS), args, 0,
                               stream));
}

static void vary_launch_small(const vary_case_t *c, uint32_t *const *buffers,
                              const vary_step_t *step, cudaStream_t stream)
{
    uint32_t scalar  = step->scalar;
    long long clocks = c->clocks;
    const uint32_t *in = buffers[step->in];
    uint32_t *out      = buffers[step->out];
    void *args[]       = { &in, &out, &scalar, &clocks };

    GPU_CHECK(cudaLaunchKernel(vary_functions[step->function],
                               dim3(step->grid), dim3(VARY_THREADS), args, 0,
                               stream));
}

static void vary_busy(double us)
{
    double start = gpu_now_us();

    while (gpu_now_us() - start < us) {
    }
}

/* The launches of iteration n. */
static void vary_launch(const vary_case_t *c, uint32_t *const *buffers,
                        uint32_t n, cudaStream_t stream)
{
    const vary_kind_t *kind = c->kind;
    int count = kind->count ? kind->count(n, kind->length) : kind->length;
    int i;

    for (i = 0; i < count; ++i) {
        vary_step_t step = { 0, VARY_BLOCKS, i & 1, (i & 1) ^ 1, 12345u };

        if (kind->plan != NULL) {
            kind->plan(n, i, &step);
        }
        if (kind->bytes == 1024) {
            vary_launch_large<1024>(buffers, &step, stream);
        } else if (kind->bytes == 4096) {
            vary_launch_large<4096>(buffers, &step, stream);
        } else {
            vary_launch_small(c, buffers, &step, stream);
        }
        if (kind->host_us > 0) {
            vary_busy(kind->host_us);
        }
    }
}

static void vary_hand_create(vary_case_t *c)
{
    cudaGraph_t graph;

    GPU_CHECK(cudaStreamBeginCapture(c->stream,
                                     cudaStreamCaptureModeThreadLocal));
    vary_launch(c, c->buffers[VARY_HAND], 0, c->stream);
    GPU_CHECK(cudaStreamEndCapture(c->stream, &graph));
    GPU_CHECK(cudaGraphInstantiate(&c->hand, graph, 0));
    GPU_CHECK(cudaGraphUpload(c->hand, c->stream));
    GPU_CHECK(cudaGraphDestroy(graph));
}

static void vary_iteration(vary_case_t *c, int mode)
{
    uint32_t n = c->done[mode]++;
    char name[96];

    if (mode == VARY_SHIM) {
        snprintf(name, sizeof(name), "%s %u", c->region, n);
        nvtxRangePushA(strcmp(c->kind->name, VARY_RECORDED) == 0 ? name :
                       c->region);
    }
    if (mode == VARY_HAND) {
        GPU_CHECK(cudaGraphLaunch(c->hand, c->stream));
    } else {
        vary_launch(c, c->buffers[mode], n, c->stream);
    }
    if (c->kind->sync) {
        GPU_CHECK(cudaStreamSynchronize(c->stream));
    }
    if (mode == VARY_SHIM) {
        nvtxRangePop();
    }
}

static void vary_round(vary_case_t *c, int mode, int round)
{
    double start, issued, end;
    int i;

    start = gpu_now_us();
    for (i = 0; i < c->iterations; ++i) {
        vary_iteration(c, mode);
    }
    issued = gpu_now_us();
    GPU_CHECK(cudaStreamSynchronize(c->stream));
    end = gpu_now_us();
    c->wall[mode][round] = (end - start) / c->iterations;
    c->host[mode][round] = (issued - start) / c->iterations;
}

static void vary_compare(vary_case_t *c, const char *when)
{
    static uint32_t plain[VARY_BUFFERS][VARY_SIZE];
    static uint32_t other[VARY_BUFFERS][VARY_SIZE];
    int mode, k;

    for (mode = 0; mode < c->num_modes; ++mode) {
        if ((mode == VARY_HAND) && (c->kind->hand == VARY_HAND_FIXED)) {
            continue;
        }
        for (k = 0; k < VARY_BUFFERS; ++k) {
            GPU_CHECK(cudaMemcpy(mode ? other[k] : plain[k],
                                 c->buffers[mode][k], VARY_BYTES,
                                 cudaMemcpyDeviceToHost));
        }
        if (mode && (memcmp(plain, other, sizeof(plain)) != 0)) {
            fprintf(stderr, "%s: %s: %s differs from plain\n", c->region, when,
                    vary_mode_names[mode]);
            c->equal = false;
        }
    }
    c->hash = gpu_fnv(GPU_FNV_START, plain, sizeof(plain));
}

static void vary_create(vary_case_t *c)
{
    static uint32_t host[VARY_SIZE];
    uint32_t seed;
    int mode, k, i;

    for (mode = 0; mode < c->num_modes; ++mode) {
        seed = 1;
        for (k = 0; k < VARY_BUFFERS; ++k) {
            for (i = 0; i < VARY_SIZE; ++i) {
                host[i] = gpu_lcg(&seed);
            }
            GPU_CHECK(cudaMalloc((void**)&c->buffers[mode][k], VARY_BYTES));
            GPU_CHECK(cudaMemcpy(c->buffers[mode][k], host, VARY_BYTES,
                                 cudaMemcpyHostToDevice));
        }
    }
    /* copies of pageable memory may still be on their way in stream 0 */
    GPU_CHECK(cudaDeviceSynchronize());
    if (c->num_modes > VARY_HAND) {
        vary_hand_create(c);
    }
}

static void vary_destroy(vary_case_t *c)
{
    int mode, k;

    if (c->num_modes > VARY_HAND) {
        GPU_CHECK(cudaGraphExecDestroy(c->hand));
    }
    for (mode = 0; mode < c->num_modes; ++mode) {
        for (k = 0; k < VARY_BUFFERS; ++k) {
            GPU_CHECK(cudaFree(c->buffers[mode][k]));
        }
    }
}

/* Rounded up to whole periods, so that every round is the same work. */
static int vary_whole(const vary_case_t *c, int iterations)
{
    int period = c->kind->period;

    return (iterations + period - 1) / period * period;
}

/* Runs under the shim until it has settled, the others as often, and sizes the
 * rounds by what the plain way took. */
static void vary_settle(vary_case_t *c)
{
    double start = gpu_now_us();
    int mode, i, count = 0;
    double us;

    while ((count < VARY_MIN_SETTLE) ||
           ((count < VARY_MAX_SETTLE) &&
            (gpu_now_us() - start < VARY_SETTLE_US))) {
        vary_iteration(c, VARY_SHIM);
        ++count;
    }
    for (; count < vary_whole(c, count); ++count) {
        vary_iteration(c, VARY_SHIM);
    }
    GPU_CHECK(cudaStreamSynchronize(c->stream));
    for (mode = c->num_modes - 1; mode >= 0; --mode) {
        start = gpu_now_us();
        for (i = 0; (mode != VARY_SHIM) && (i < count); ++i) {
            vary_iteration(c, mode);
        }
        GPU_CHECK(cudaStreamSynchronize(c->stream));
    }
    us            = (gpu_now_us() - start) / count;
    i             = (int)(VARY_ROUND_US / us);
    c->iterations = vary_whole(c, (i < VARY_MIN_ROUND) ? VARY_MIN_ROUND : i);
    vary_compare(c, "warm-up");
}

static void vary_run(vary_case_t *c, double clocks_per_us)
{
    int round, i;

    c->equal     = true;
    c->clocks    = (long long)(c->kind->kernel_us * clocks_per_us);
    c->num_modes = (c->kind->hand == VARY_HAND_NONE) ? VARY_HAND :
                   VARY_NUM_MODES;
    memset(c->done, 0, sizeof(c->done));
    snprintf(c->region, sizeof(c->region), "vary-%s", c->kind->name);
    vary_create(c);
    vary_settle(c);
    for (round = 0; round < c->rounds; ++round) {
        /* another one first in every round: none is always the one after */
        for (i = 0; i < c->num_modes; ++i) {
            vary_round(c, (round + i) % c->num_modes, round);
        }
        vary_compare(c, "after a round");
    }
    vary_destroy(c);
}

static void vary_write(FILE *json, const vary_case_t *c, bool first)
{
    int mode;

    if (json == NULL) {
        return;
    }
    fprintf(json, "%s\n  {\"case\": \"%s\", \"length\": %d, \"region\": "
            "\"%s\", \"sync\": %s,\n   \"host_busy_us\": %g, \"kernel_us\": %g,"
            " \"argument_bytes\": %d,\n   \"iterations\": %d, \"rounds\": %d,"
            "\n   ", first ? "[" : ",", c->kind->name, c->kind->length,
            c->region, c->kind->sync ? "true" : "false", c->kind->host_us,
            c->kind->kernel_us, c->kind->bytes, c->iterations, c->rounds);
    for (mode = 0; mode < c->num_modes; ++mode) {
        fprintf(json, "\"%s_us\": %.3f, \"%s_min_us\": %.3f, "
                "\"%s_host_us\": %.3f,\n   ", vary_mode_names[mode],
                gpu_median(c->wall[mode], c->rounds), vary_mode_names[mode],
                gpu_min(c->wall[mode], c->rounds), vary_mode_names[mode],
                gpu_median(c->host[mode], c->rounds));
    }
    /* of rounds that came one after the other: the clocks were the same */
    if (c->num_modes > VARY_HAND) {
        fprintf(json, "\"shim_over_hand\": %.4f, ",
                gpu_median_ratio(c->wall[VARY_SHIM], c->wall[VARY_HAND],
                                 c->rounds));
    }
    fprintf(json, "\"plain_over_shim\": %.4f, \"equal\": %s, \"hash\": \"%016"
            PRIx64 "\"}", gpu_median_ratio(c->wall[VARY_PLAIN],
                                           c->wall[VARY_SHIM], c->rounds),
            c->equal ? "true" : "false", c->hash);
}

static void vary_print(const vary_case_t *c)
{
    char hand[64] = "         -          -";

    if (c->num_modes > VARY_HAND) {
        snprintf(hand, sizeof(hand), "%10.1f %10.3f",
                 gpu_median(c->wall[VARY_HAND], c->rounds),
                 gpu_median_ratio(c->wall[VARY_SHIM], c->wall[VARY_HAND],
                                  c->rounds));
    }
    printf("%-20s %10.1f %10.1f %10.3f %s  %s\n", c->kind->name,
           gpu_median(c->wall[VARY_PLAIN], c->rounds),
           gpu_median(c->wall[VARY_SHIM], c->rounds),
           gpu_median_ratio(c->wall[VARY_PLAIN], c->wall[VARY_SHIM],
                            c->rounds), hand, c->equal ? "equal" : "DIFFERENT");
    fflush(stdout);
}

static void vary_usage(const char *name)
{
    int k;

    fprintf(stderr, "usage: %s [--json FILE] [--rounds N] [--case NAME]...\n"
            "cases:", name);
    for (k = 0; k < VARY_NUM_KINDS; ++k) {
        fprintf(stderr, " %s", vary_kinds[k].name);
    }
    fprintf(stderr, "\n");
    exit(2);
}

static bool vary_choose(vary_options_t *options, const char *name)
{
    int k;

    for (k = 0; k < VARY_NUM_KINDS; ++k) {
        if (strcmp(vary_kinds[k].name, name) == 0) {
            options->chosen[k] = true;
            return true;
        }
    }
    return false;
}

static vary_options_t vary_parse(int argc, char **argv)
{
    vary_options_t options;
    bool all = true;
    int i;

    memset(&options, 0, sizeof(options));
    options.rounds = 24;
    for (i = 1; i < argc; i += 2) {
        if (i + 1 == argc) {
            vary_usage(argv[0]);
        } else if (strcmp(argv[i], "--json") == 0) {
            options.json = argv[i + 1];
        } else if (strcmp(argv[i], "--rounds") == 0) {
            options.rounds = atoi(argv[i + 1]);
        } else if ((strcmp(argv[i], "--case") == 0) &&
                   vary_choose(&options, argv[i + 1])) {
            all = false;
        } else {
            vary_usage(argv[0]);
        }
    }
    for (i = 0; all && (i < VARY_NUM_KINDS); ++i) {
        options.chosen[i] = true;
    }
    options.rounds = (options.rounds < 1) ? 1 :
                     (options.rounds > VARY_MAX_ROUNDS) ? VARY_MAX_ROUNDS :
                     options.rounds;
    return options;
}

/* Loads every kernel, which cannot be done while a stream is captured. */
static void vary_load(void)
{
    struct cudaFuncAttributes attributes;
    int i;

    for (i = 0; i < VARY_FUNCTIONS; ++i) {
        GPU_CHECK(cudaFuncGetAttributes(&attributes, vary_functions[i]));
    }
    GPU_CHECK(cudaFuncGetAttributes(&attributes, vary_large<1024>));
    GPU_CHECK(cudaFuncGetAttributes(&attributes, vary_large<4096>));
}

/* Clocks are low on an idle card and rise within some tenths of a second. */
static void vary_wake(cudaStream_t stream)
{
    double start = gpu_now_us();
    uint32_t *pair[2];
    int i;

    for (i = 0; i < 2; ++i) {
        GPU_CHECK(cudaMalloc((void**)&pair[i], VARY_BYTES));
    }
    while (gpu_now_us() - start < 300e3) {
        for (i = 0; i < 256; ++i) {
            vary_small<1664525u><<<VARY_BLOCKS, VARY_THREADS, 0, stream>>>(
                    pair[i & 1], pair[(i & 1) ^ 1], 1, 0);
        }
        GPU_CHECK(cudaStreamSynchronize(stream));
    }
    for (i = 0; i < 2; ++i) {
        GPU_CHECK(cudaFree(pair[i]));
    }
}

int main(int argc, char **argv)
{
    vary_options_t options = vary_parse(argc, argv);
    FILE *json             = gpu_json_open(options.json);
    bool equal             = true;
    bool first             = true;
    static vary_case_t c;
    double clocks_per_us;
    int k;

    GPU_CHECK(cudaStreamCreateWithFlags(&c.stream, cudaStreamNonBlocking));
    vary_load();
    vary_wake(c.stream);
    clocks_per_us = vary_clocks_per_us(c.stream);
    c.rounds      = options.rounds;
    printf("%-20s %10s %10s %10s %10s %10s  (us/iteration)\n", "case", "plain",
           "shim", "plain/shim", "hand", "shim/hand");
    for (k = 0; k < VARY_NUM_KINDS; ++k) {
        if (options.chosen[k]) {
            c.kind = &vary_kinds[k];
            vary_run(&c, clocks_per_us);
            vary_print(&c);
            vary_write(json, &c, first);
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
