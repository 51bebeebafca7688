/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one call costs, ns, by either door: the exported symbol, and
 * cuGetProcAddress as a static cudart finds it.
 *
 *     calls [--calls N] [--launches N] [--regions N] [--json FILE]
 *           [--part outside|inside] [--swallowed]
 *
 * Outside of regions: driver functions that do next to nothing, so that a few
 * ns show, and launches. Inside: regions of identical launches, timed in pieces
 * of a few calls. The median of the pieces is a call's own cost: a piece in
 * which a graph is launched is rare and does not move it.
 *
 * The program knows nothing of what is preloaded; it is run plain, with
 * noop_hook.c and with the shim, and the differences tell. At the end the
 * device's memory is compared with what the host comes to; --swallowed says
 * that launches come to nothing (noop_hook.c with NOOP_SWALLOW).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    CALLS_WORDS    = PRG_BLOCK, /* that a launch works on */
    CALLS_BATCHES  = 100,       /* of the cheap functions */
    CALLS_LAUNCHES = 256,       /* in a batch: no more than may be pending */
    CALLS_REGION   = 512,       /* launches in a region */
    CALLS_PIECE    = 16,        /* launches of it that are timed together */
    CALLS_SETTLE   = 100        /* regions that are not timed */
};


/* The functions as one door gave them. */
typedef struct calls_door {
    const char *name;
    __typeof__(&cuLaunchKernel)     launch;
    __typeof__(&cuCtxGetCurrent)    current;
    __typeof__(&cuStreamQuery)      query;
    __typeof__(&cuDriverGetVersion) version;
} calls_door_t;


typedef struct calls_options {
    unsigned   calls;
    unsigned   launches;
    unsigned   regions;
    int        outside, inside, swallowed;
    const char *json;
} calls_options_t;


typedef struct calls_run {
    calls_door_t door;
    CUfunction   kernel;
    CUstream     stream;
    CUdeviceptr  out, in;
    uint32_t     words, factor;
    uint64_t     launched;
    FILE         *json;
    int          rows;
} calls_run_t;


static double calls_now_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

static int calls_compare(const void *a, const void *b)
{
    double x = *(const double*)a, y = *(const double*)b;

    return (x > y) - (x < y);
}

static double calls_median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), calls_compare);
    return count == 0 ? 0.0 : values[count / 2];
}

static void calls_row(calls_run_t *run, const char *what, double ns)
{
    printf("%s by %s: %.1f ns\n", what, run->door.name, ns);
    if (run->json != NULL) {
        fprintf(run->json, "%s\n {\"what\": \"%s\", \"door\": \"%s\", "
                "\"ns\": %.2f}", run->rows++ == 0 ? "[" : ",", what,
                run->door.name, ns);
    }
}

static int calls_current(calls_run_t *run, unsigned count)
{
    int failed = 0;
    CUcontext context;

    while (count-- > 0) {
        failed |= run->door.current(&context) != CUDA_SUCCESS;
    }
    return failed;
}

static int calls_query(calls_run_t *run, unsigned count)
{
    int failed = 0;

    while (count-- > 0) {
        failed |= run->door.query(run->stream) != CUDA_SUCCESS;
    }
    return failed;
}

static int calls_version(calls_run_t *run, unsigned count)
{
    int failed = 0;
    int version;

    while (count-- > 0) {
        failed |= run->door.version(&version) != CUDA_SUCCESS;
    }
    return failed;
}

static int calls_launch(calls_run_t *run, unsigned count)
{
    void *params[] = { &run->out, &run->in, &run->words, &run->factor };
    int failed     = 0;

    run->launched += count;
    while (count-- > 0) {
        failed |= run->door.launch(run->kernel, 1, 1, 1, CALLS_WORDS, 1, 1, 0,
                                   run->stream, params, NULL) != CUDA_SUCCESS;
    }
    return failed;
}

static double *calls_times(size_t count)
{
    double *times = malloc((count + 1) * sizeof(*times));

    if (times == NULL) {
        perror("calls");
        exit(EXIT_FAILURE);
    }
    return times;
}

/* ns a call in a batch of them. */
static double calls_batch(calls_run_t *run,
                          int (*make)(calls_run_t *run, unsigned count),
                          unsigned count)
{
    double start, ns;
    int failed;

    start  = calls_now_ns();
    failed = make(run, count);
    ns     = (calls_now_ns() - start) / count;
    if (failed) {
        fprintf(stderr, "calls: a call failed\n");
        exit(EXIT_FAILURE);
    }
    return ns;
}

static void calls_outside(calls_run_t *run, const char *what,
                          int (*make)(calls_run_t *run, unsigned count),
                          unsigned batches, unsigned count)
{
    double *times = calls_times(batches);
    unsigned i;

    calls_batch(run, make, count);
    for (i = 0; i < batches; ++i) {
        PRG_CHECK(cuStreamSynchronize(run->stream));
        times[i] = calls_batch(run, make, count);
    }
    PRG_CHECK(cuStreamSynchronize(run->stream));
    calls_row(run, what, calls_median(times, batches));
    free(times);
}

/* One region: the time of each piece, and of all of it. */
static double calls_region(calls_run_t *run, const char *name, double *pieces)
{
    double sum = 0.0;
    unsigned i;

    nvtxRangePushA(name);
    for (i = 0; i < CALLS_REGION / CALLS_PIECE; ++i) {
        pieces[i] = calls_batch(run, calls_launch, CALLS_PIECE);
        sum      += pieces[i];
    }
    nvtxRangePop();
    PRG_CHECK(cuStreamSynchronize(run->stream));
    return sum / (CALLS_REGION / CALLS_PIECE);
}

static void calls_inside(calls_run_t *run, unsigned regions)
{
    unsigned per_region = CALLS_REGION / CALLS_PIECE;
    double *pieces      = calls_times((size_t)regions * per_region);
    double *whole       = calls_times(regions);
    char name[64];
    unsigned i;

    snprintf(name, sizeof(name), "calls-%s", run->door.name);
    for (i = 0; i < CALLS_SETTLE && i < regions; ++i) {
        calls_region(run, name, pieces);
    }
    for (i = 0; i < regions; ++i) {
        whole[i] = calls_region(run, name, pieces + (size_t)i * per_region);
    }
    calls_row(run, "launch in a region",
              calls_median(pieces, (size_t)regions * per_region));
    calls_row(run, "launch in a region with graph launches",
              calls_median(whole, regions));
    free(whole);
    free(pieces);
}

static void calls_door_linked(calls_door_t *door)
{
    *door = (calls_door_t){ "symbol", cuLaunchKernel, cuCtxGetCurrent,
                            cuStreamQuery, cuDriverGetVersion };
}

static void *calls_ask(__typeof__(&cuGetProcAddress_v2) ask, const char *name)
{
    CUdriverProcAddressQueryResult status;
    void *address = NULL;

    PRG_CHECK(ask(name, &address, CUDA_VERSION, CU_GET_PROC_ADDRESS_DEFAULT,
                  &status));
    if (address == NULL) {
        fprintf(stderr, "calls: cuGetProcAddress knows no %s\n", name);
        exit(EXIT_FAILURE);
    }
    return address;
}

static void calls_door_asked(calls_door_t *door)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *ask    = driver ? dlsym(driver, "cuGetProcAddress_v2") : NULL;

    if (ask == NULL) {
        fprintf(stderr, "calls: %s\n", dlerror());
        exit(EXIT_FAILURE);
    }
    *door = (calls_door_t){
        "cuGetProcAddress",
        (__typeof__(door->launch))calls_ask(ask, "cuLaunchKernel"),
        (__typeof__(door->current))calls_ask(ask, "cuCtxGetCurrent"),
        (__typeof__(door->query))calls_ask(ask, "cuStreamQuery"),
        (__typeof__(door->version))calls_ask(ask, "cuDriverGetVersion"),
    };
}

static void calls_door_run(calls_run_t *run, const calls_options_t *options)
{
    unsigned batch   = options->calls / CALLS_BATCHES + 1;
    unsigned batches = options->launches / CALLS_LAUNCHES + 1;

    if (options->outside) {
        calls_outside(run, "cuCtxGetCurrent", calls_current, CALLS_BATCHES,
                      batch);
        calls_outside(run, "cuDriverGetVersion", calls_version, CALLS_BATCHES,
                      batch);
        calls_outside(run, "cuStreamQuery", calls_query, CALLS_BATCHES, batch);
        calls_outside(run, "cuLaunchKernel", calls_launch, batches,
                      CALLS_LAUNCHES);
    }
    if (options->inside) {
        calls_inside(run, options->regions);
    }
}

/* What k_axpy comes to after so many launches. */
static int calls_right(const calls_run_t *run, int swallowed)
{
    uint32_t data[CALLS_WORDS], y;
    uint64_t n;
    uint32_t i;

    PRG_CHECK(cuMemcpyDtoH(data, run->out, sizeof(data)));
    for (i = 0; i < CALLS_WORDS; ++i) {
        y = 1 + i;
        for (n = 0; !swallowed && n < run->launched; ++n) {
            y = y * 3 + run->factor * (7 + i);
        }
        if (data[i] != y) {
            fprintf(stderr, "calls: word %u is %u and should be %u\n", i,
                    data[i], y);
            return 0;
        }
    }
    return 1;
}

static void calls_usage(void)
{
    fprintf(stderr, "usage: calls [--calls N] [--launches N] [--regions N] "
            "[--json FILE] [--part outside|inside] [--swallowed]\n");
    exit(2);
}

static void calls_parse(int argc, char **argv, calls_options_t *options)
{
    int i;

    *options = (calls_options_t){ .calls = 1000000, .launches = 1000000,
                                  .regions = 1954, .outside = 1, .inside = 1 };
    for (i = 1; i < argc; ++i) {
        if (strcmp(argv[i], "--swallowed") == 0) {
            options->swallowed = 1;
            continue;
        }
        if (i + 1 == argc) {
            calls_usage();
        } else if (strcmp(argv[i], "--calls") == 0) {
            options->calls = (unsigned)atoi(argv[++i]);
        } else if (strcmp(argv[i], "--launches") == 0) {
            options->launches = (unsigned)atoi(argv[++i]);
        } else if (strcmp(argv[i], "--regions") == 0) {
            options->regions = (unsigned)atoi(argv[++i]);
        } else if (strcmp(argv[i], "--json") == 0) {
            options->json = argv[++i];
        } else if (strcmp(argv[i], "--part") == 0) {
            ++i;
            options->outside = strcmp(argv[i], "outside") == 0;
            options->inside  = strcmp(argv[i], "inside") == 0;
        } else {
            calls_usage();
        }
    }
}

/* Written by a copy: a launch might be swallowed. */
static CUdeviceptr calls_alloc(uint32_t value)
{
    uint32_t data[CALLS_WORDS];
    CUdeviceptr address = 0;
    uint32_t i;

    for (i = 0; i < CALLS_WORDS; ++i) {
        data[i] = value + i;
    }
    PRG_CHECK(cuMemAlloc(&address, sizeof(data)));
    PRG_CHECK(cuMemcpyHtoD(address, data, sizeof(data)));
    return address;
}

static void calls_open(calls_run_t *run, const prg_context_t *prg,
                       const char *json)
{
    memset(run, 0, sizeof(*run));
    run->kernel = prg_kernel(prg, "k_axpy");
    run->words  = CALLS_WORDS;
    run->factor = 5;
    run->out    = calls_alloc(1);
    run->in     = calls_alloc(7);
    PRG_CHECK(cuStreamCreate(&run->stream, CU_STREAM_NON_BLOCKING));
    if (json != NULL && (run->json = fopen(json, "w")) == NULL) {
        perror(json);
        exit(EXIT_FAILURE);
    }
}

static void calls_close(calls_run_t *run)
{
    if (run->json != NULL) {
        fprintf(run->json, "%s\n]\n", run->rows == 0 ? "[" : "");
        if (fclose(run->json) != 0) {
            perror("calls");
            exit(EXIT_FAILURE);
        }
    }
    PRG_CHECK(cuStreamDestroy(run->stream));
    PRG_CHECK(cuMemFree(run->in));
    PRG_CHECK(cuMemFree(run->out));
}

int main(int argc, char **argv)
{
    static void (*const doors[])(calls_door_t *door) = {
        calls_door_linked, calls_door_asked
    };
    calls_options_t options;
    prg_context_t prg;
    calls_run_t run;
    size_t i;
    int right;

    calls_parse(argc, argv, &options);
    prg_open(&prg);
    calls_open(&run, &prg, options.json);
    for (i = 0; i < PRG_COUNT_OF(doors); ++i) {
        doors[i](&run.door);
        calls_door_run(&run, &options);
    }
    right = calls_right(&run, options.swallowed);
    calls_close(&run);
    prg_close(&prg);
    return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
