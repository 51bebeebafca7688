/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches in a sequence that never comes again: what is there to be found
 * costs time and gives nothing.
 *
 *     never [--rounds N] [--launches N] [--json FILE]
 *
 * Which of some kernels comes next is pseudo-random, from the first launch to
 * the last. They take 1, 3 and 10 us, or do nothing at all, which is the worst
 * case: then a launch is all that there is. Each kernel leaves its number in
 * what it computes, so that one too many or out of order would show.
 */
#include "gpu_util.h"

#define NEVER_KERNELS    16
#define NEVER_THREADS    32
#define NEVER_BYTES      (NEVER_THREADS * sizeof(uint32_t))
#define NEVER_WARMUP     3 /* rounds */
#define NEVER_MAX_ROUNDS 200

typedef void (*never_kernel_t)(uint32_t *data, long long clocks);

typedef struct never_case {
    const char *name;
    int        us; /* that a kernel takes; 0: it does nothing */
} never_case_t;

static const never_case_t never_cases[] = {
    { "never-empty", 0 },
    { "never-1us", 1 },
    { "never-3us", 3 },
    { "never-10us", 10 }
};

#define NEVER_NUM_CASES (sizeof(never_cases) / sizeof(never_cases[0]))

typedef struct never {
    cudaStream_t   stream;
    uint32_t       *data;
    uint64_t       random;
    int            rounds, launches;
    never_kernel_t empty[NEVER_KERNELS], busy[NEVER_KERNELS];
    double         wall[NEVER_MAX_ROUNDS]; /* us a launch */
    double         host[NEVER_MAX_ROUNDS];
} never_t;

template <int number>
__global__ void never_empty(uint32_t *data, long long clocks)
{
}

template <int number>
__global__ void never_busy(uint32_t *data, long long clocks)
{
    long long start = clock64();

    data[threadIdx.x] = data[threadIdx.x] * 1664525u + number;
    while (clock64() - start < clocks) {
    }
}

template <int number>
static void never_list(never_t *n)
{
    n->empty[number] = never_empty<number>;
    n->busy[number]  = never_busy<number>;
    never_list<number + 1>(n);
}

template <>
void never_list<NEVER_KERNELS>(never_t *)
{
}

/* Splitmix64: the low bits of gpu_lcg() come again too soon. */
static uint32_t never_next(never_t *n)
{
    uint64_t z = (n->random += 0x9e3779b97f4a7c15ull);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (uint32_t)((z ^ (z >> 31)) % NEVER_KERNELS);
}

static void never_round(never_t *n, const never_case_t *c, long long clocks,
                        int round)
{
    const never_kernel_t *kernels = (c->us > 0) ? n->busy : n->empty;
    double start, issued, end;
    int i;

    start = gpu_now_us();
    for (i = 0; i < n->launches; ++i) {
        kernels[never_next(n)]<<<1, NEVER_THREADS, 0, n->stream>>>(n->data,
                                                                   clocks);
    }
    issued = gpu_now_us();
    GPU_CHECK(cudaGetLastError());
    GPU_CHECK(cudaStreamSynchronize(n->stream));
    end = gpu_now_us();
    if (round >= 0) {
        n->wall[round] = (end - start) / n->launches;
        n->host[round] = (issued - start) / n->launches;
    }
}

static void never_run(never_t *n, const never_case_t *c, FILE *json, bool first)
{
    int khz = 0;
    uint32_t data[NEVER_THREADS];
    uint64_t hash;
    int round;

    GPU_CHECK(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
    for (round = -NEVER_WARMUP; round < n->rounds; ++round) {
        never_round(n, c, (long long)khz * c->us / 1000, round);
    }
    GPU_CHECK(cudaMemcpy(data, n->data, NEVER_BYTES, cudaMemcpyDeviceToHost));
    hash = gpu_fnv(GPU_FNV_START, data, NEVER_BYTES);
    printf("%s: %d launches a round, hash %016" PRIx64 "\n", c->name,
           n->launches, hash);
    fprintf(stderr, "%s: %.3f us a launch\n", c->name,
            gpu_median(n->wall, n->rounds));
    if (json != NULL) {
        fprintf(json, "%s\n  {\"region\": \"%s\", \"us\": %.4f, \"min_us\": "
                "%.4f, \"host_us\": %.4f, \"hash\": \"%016" PRIx64 "\"}",
                first ? "[" : ",", c->name, gpu_median(n->wall, n->rounds),
                gpu_min(n->wall, n->rounds), gpu_median(n->host, n->rounds),
                hash);
    }
}

static void never_parse(never_t *n, const char **json, int argc, char **argv)
{
    int i;

    n->rounds   = 15;
    n->launches = 2000;
    for (i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--rounds")) {
            n->rounds = atoi(argv[i + 1]);
        } else if (!strcmp(argv[i], "--launches")) {
            n->launches = atoi(argv[i + 1]);
        } else if (!strcmp(argv[i], "--json")) {
            *json = argv[i + 1];
        } else {
            break;
        }
    }
    if ((i != argc) || (n->rounds < 1) || (n->rounds > NEVER_MAX_ROUNDS) ||
        (n->launches < 1)) {
        fprintf(stderr, "usage: %s [--rounds N] [--launches N] [--json FILE]\n",
                argv[0]);
        exit(2);
    }
}

int main(int argc, char **argv)
{
    const char *json_name = NULL;
    static never_t n;
    FILE *json;
    size_t i;

    never_parse(&n, &json_name, argc, argv);
    json = gpu_json_open(json_name);
    never_list<0>(&n);
    GPU_CHECK(cudaStreamCreateWithFlags(&n.stream, cudaStreamNonBlocking));
    GPU_CHECK(cudaMalloc((void**)&n.data, NEVER_BYTES));
    GPU_CHECK(cudaMemsetAsync(n.data, 0, NEVER_BYTES, n.stream));
    /* a few long kernels: clocks are low on an idle card */
    for (i = 0; i < 6; ++i) {
        never_busy<0><<<1, NEVER_THREADS, 0, n.stream>>>(n.data, 100000000);
        GPU_CHECK(cudaGetLastError());
    }
    GPU_CHECK(cudaStreamSynchronize(n.stream));
    for (i = 0; i < NEVER_NUM_CASES; ++i) {
        never_run(&n, &never_cases[i], json, i == 0);
    }
    if (json != NULL) {
        fprintf(json, "\n]\n");
    }
    gpu_json_close(json, json_name);
    GPU_CHECK(cudaFree(n.data));
    GPU_CHECK(cudaStreamDestroy(n.stream));
    return 0;
}
