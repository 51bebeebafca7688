/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the applications of tests/gpu/apps share: options, rounds, times and a
 * hash of all that was computed.
 *
 *     APP [--size N] [--rounds N] [--iterations N] [--marks] [--graph]
 *         [--json FILE]
 *
 * With --marks each iteration lies in an NVTX range, with --graph it is the
 * graph that a good user would write by hand, with neither it is as most
 * programs are. All three come to the same bits, in every process: stdout holds
 * only what must be the same, times go to stderr and to FILE.
 *
 * Nothing here launches a small kernel: what repeats is the application's own.
 */
#ifndef APP_H
#define APP_H

#include "../gpu_util.h"

#ifndef APP_CUDART
#define APP_CUDART "unknown"
#endif

#define APP_MAX_ROUNDS 1000
/* Rounds that are not timed: code is loaded, clocks rise, and what watches the
 * program may need some tens of iterations until it knows them. */
#define APP_WARMUP     5
#define APP_WAKE_MS    50

/** One application; its state is its own. */
typedef struct app {
    const char *name;
    int        size;       /**< what --size is without the option */
    int        iterations; /**< at most so many in a round */

    /** Makes all that is needed, the graphs only where they are wanted. */
    void       (*create)(int size, bool graph);

    /** What comes before the iterations of a round, or NULL. */
    void       (*begin)(int round);

    /** One iteration, the first is 0. @return whether the round goes on. */
    bool       (*iterate)(uint32_t iteration, bool graph);

    /** Goes on from @a hash with all that was computed; nothing is running. */
    uint64_t   (*result)(uint64_t hash);

    void       (*destroy)(bool graph);
} app_t;

typedef struct app_options {
    int        size, rounds, iterations;
    bool       marks, graph;
    const char *json;
} app_options_t;

/** A round: its time, and that of making its calls, us an iteration. */
typedef struct app_times {
    double wall[APP_MAX_ROUNDS], host[APP_MAX_ROUNDS];
} app_times_t;

static void app_usage(const app_t *app)
{
    fprintf(stderr, "usage: %s [--size N] [--rounds N] [--iterations N] "
            "[--marks] [--graph] [--json FILE]\n", app->name);
    exit(2);
}

static int app_number(const app_t *app, const char *text, int most)
{
    char *end;
    long number = strtol(text, &end, 10);

    if ((*end != '\0') || (number < 1) || (number > most)) {
        fprintf(stderr, "%s: '%s' is no number from 1 to %d\n", app->name, text,
                most);
        app_usage(app);
    }
    return (int)number;
}

static app_options_t app_parse(const app_t *app, int argc, char **argv)
{
    app_options_t options = { app->size, 20, app->iterations, false, false,
                              NULL };
    int i;

    for (i = 1; i < argc; ++i) {
        if (!strcmp(argv[i], "--marks")) {
            options.marks = true;
        } else if (!strcmp(argv[i], "--graph")) {
            options.graph = true;
        } else if (i + 1 == argc) {
            app_usage(app);
        } else if (!strcmp(argv[i], "--size")) {
            options.size = app_number(app, argv[++i], 4096);
        } else if (!strcmp(argv[i], "--rounds")) {
            options.rounds = app_number(app, argv[++i], APP_MAX_ROUNDS);
        } else if (!strcmp(argv[i], "--iterations")) {
            options.iterations = app_number(app, argv[++i], 1000000);
        } else if (!strcmp(argv[i], "--json")) {
            options.json = argv[++i];
        } else {
            app_usage(app);
        }
    }
    return options;
}

__global__ void app_busy(long long clocks)
{
    long long start = clock64();

    while (clock64() - start < clocks) {
    }
}

/* Clocks are low on an idle card and rise within some tenths of a second. A
 * few long kernels: no loop that is worth a graph. */
static void app_wake(cudaStream_t stream)
{
    int khz = 0;
    int i;

    GPU_CHECK(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
    for (i = 0; i < 6; ++i) {
        app_busy<<<264, 128, 0, stream>>>((long long)khz * APP_WAKE_MS);
        GPU_CHECK(cudaGetLastError());
    }
    GPU_CHECK(cudaStreamSynchronize(stream));
}

/** The stream that all work of the application goes to. */
static cudaStream_t app_stream;

/* Memory that holds zeros; it is there until the process ends. */
static void *app_memory(size_t bytes)
{
    void *memory;

    GPU_CHECK(cudaMalloc(&memory, bytes));
    GPU_CHECK(cudaMemsetAsync(memory, 0, bytes, app_stream));
    return memory;
}

static void *app_host_memory(size_t bytes)
{
    void *memory = calloc(1, bytes);

    if (memory == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return memory;
}

/* Copies to the device, and is done when it returns. */
static inline void app_upload(void *device, const void *host, size_t bytes)
{
    GPU_CHECK(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice,
                              app_stream));
    GPU_CHECK(cudaStreamSynchronize(app_stream));
}

/** Goes on from @a hash with memory of the device. */
static uint64_t app_hash(uint64_t hash, const void *device, size_t bytes)
{
    void *host = app_host_memory(bytes);

    GPU_CHECK(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
    hash = gpu_fnv(hash, host, bytes);
    free(host);
    return hash;
}

/** Begins to capture what the stream is given; app_graph_end() ends that. */
static void app_graph_begin(void)
{
    GPU_CHECK(cudaStreamBeginCapture(app_stream,
                                     cudaStreamCaptureModeThreadLocal));
}

static cudaGraphExec_t app_graph_end(void)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    GPU_CHECK(cudaStreamEndCapture(app_stream, &graph));
    GPU_CHECK(cudaGraphInstantiate(&exec, graph, 0));
    GPU_CHECK(cudaGraphDestroy(graph));
    GPU_CHECK(cudaGraphUpload(exec, app_stream));
    return exec;
}

static void app_graph_launch(cudaGraphExec_t exec)
{
    GPU_CHECK(cudaGraphLaunch(exec, app_stream));
}

/* The iterations of a round; how many there were. */
static int app_iterate(const app_t *app, const app_options_t *options,
                       uint32_t done)
{
    bool more = true;
    int i;

    for (i = 0; more && (i < options->iterations); ++i) {
        if (options->marks) {
            nvtxRangePushA(app->name);
        }
        more = app->iterate(done + i, options->graph);
        if (options->marks) {
            nvtxRangePop();
        }
    }
    return i;
}

static uint32_t app_run(const app_t *app, const app_options_t *options,
                        app_times_t *times)
{
    uint32_t done = 0;
    double start, issued, end;
    int round, count;

    for (round = -APP_WARMUP; round < options->rounds; ++round) {
        start = gpu_now_us();
        if (app->begin != NULL) {
            app->begin(round + APP_WARMUP);
        }
        count  = app_iterate(app, options, done);
        issued = gpu_now_us();
        GPU_CHECK(cudaStreamSynchronize(app_stream));
        end   = gpu_now_us();
        done += count;
        if (round >= 0) {
            times->wall[round] = (end - start) / count;
            times->host[round] = (issued - start) / count;
        }
    }
    return done;
}

/* A list of one, as other programs leave longer ones. */
static void app_write(const app_t *app, const app_options_t *options,
                      const app_times_t *times, uint32_t done, uint64_t hash)
{
    FILE *json  = gpu_json_open(options->json);
    double wall = gpu_median(times->wall, options->rounds);

    fprintf(stderr, "%s: %.3f us an iteration\n", app->name, wall);
    if (json != NULL) {
        fprintf(json, "[{\"region\": \"%s\", \"cudart\": \"%s\", \"size\": %d, "
                "\"rounds\": %d, \"iterations\": %u,\n  \"us\": %.3f, "
                "\"min_us\": %.3f, \"host_us\": %.3f, \"hash\": \"%016" PRIx64
                "\"}]\n", app->name, APP_CUDART, options->size, options->rounds,
                done, wall, gpu_min(times->wall, options->rounds),
                gpu_median(times->host, options->rounds), hash);
    }
    gpu_json_close(json, options->json);
}

/** The whole program. */
static int app_main(const app_t *app, int argc, char **argv)
{
    static app_times_t times;
    app_options_t options = app_parse(app, argc, argv);
    uint64_t hash;
    uint32_t done;

    GPU_CHECK(cudaStreamCreateWithFlags(&app_stream, cudaStreamNonBlocking));
    app->create(options.size, options.graph);
    app_wake(app_stream);
    done = app_run(app, &options, &times);
    hash = app->result(GPU_FNV_START);
    printf("%s: size %d, %u iterations, hash %016" PRIx64 "\n", app->name,
           options.size, done, hash);
    app_write(app, &options, &times, done, hash);
    app->destroy(options.graph);
    GPU_CHECK(cudaStreamDestroy(app_stream));
    return 0;
}

#endif
