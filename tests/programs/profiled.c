/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that is bound by what its options say, for the profile.
 *
 *     profiled [OPTION N...]
 *
 *     --runs N      of each range (100)
 *     --kernels N   in a run (20)
 *     --copies N    device to device, in a run (0)
 *     --sets N      in a run (0)
 *     --host N      microseconds of the host's own before each kernel (0)
 *     --wait N      wait after each N kernels, and at the end of each run (0:
 *                   only at the end)
 *     --ranges N    ranges by turns, "range 0", "range 1" ...; 0: none at all
 *                   (1)
 *     --vary N      1: no run has the kernels that another had (0)
 *     --other N     1: a second thread launches as many kernels on the stream,
 *                   for each run, before the first goes on (0)
 *     --threads N   that do all this at a time, each with a range of its own
 *                   name (1)
 *     --sleep N     milliseconds before it begins (0)
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    PROFILED_WORDS   = 64,
    PROFILED_THREADS = 8
};


static struct {
    unsigned runs, kernels, copies, sets, host, wait, ranges, vary, other;
    unsigned threads, sleep;
} options = { .runs = 100, .kernels = 20, .ranges = 1, .threads = 1 };


static const struct {
    const char *name;
    unsigned   *value;
} names[] = {
    { "--runs", &options.runs },       { "--kernels", &options.kernels },
    { "--copies", &options.copies },   { "--sets", &options.sets },
    { "--host", &options.host },       { "--wait", &options.wait },
    { "--ranges", &options.ranges },   { "--vary", &options.vary },
    { "--other", &options.other },     { "--threads", &options.threads },
    { "--sleep", &options.sleep },
};


typedef struct profiled_thread {
    prg_context_t *prg;
    unsigned      index;
    CUstream      stream;
    CUfunction    kernel[2];
    CUdeviceptr   x;
    CUdeviceptr   y;
} profiled_thread_t;


static uint64_t profiled_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void profiled_work_on_host(void)
{
    uint64_t until = profiled_now_ns() + options.host * 1000u;

    while ((options.host > 0) && (profiled_now_ns() < until)) {
    }
}

static void profiled_launch(profiled_thread_t *self, unsigned which)
{
    uint32_t n = PROFILED_WORDS;
    uint32_t a = 3;

    if (which) {
        PRG_LAUNCH(self->kernel[1], self->stream, n, &self->y, &self->x, &n,
                   &a);
    } else {
        PRG_LAUNCH(self->kernel[0], self->stream, n, &self->x, &n, &a);
    }
}

static void profiled_run(profiled_thread_t *self, unsigned run)
{
    unsigned i;

    for (i = 0; i < options.kernels; ++i) {
        profiled_work_on_host();
        profiled_launch(self, options.vary ? (run >> (i % 16)) & 1 : i & 1);
        if ((options.wait > 0) && ((i + 1) % options.wait == 0)) {
            PRG_CHECK(cuStreamSynchronize(self->stream));
        }
    }
    for (i = 0; i < options.copies; ++i) {
        PRG_CHECK(cuMemcpyDtoDAsync(self->x, self->y, 16, self->stream));
    }
    for (i = 0; i < options.sets; ++i) {
        PRG_CHECK(cuMemsetD32Async(self->x, i, 4, self->stream));
    }
}

static void *profiled_other(void *arg)
{
    profiled_thread_t *self = arg;
    unsigned i;

    PRG_CHECK(cuCtxSetCurrent(self->prg->context));
    for (i = 0; i < options.kernels; ++i) {
        profiled_launch(self, i & 1);
    }
    return NULL;
}

static void profiled_let_other_launch(profiled_thread_t *self)
{
    pthread_t other;

    if (options.other) {
        if (pthread_create(&other, NULL, profiled_other, self) != 0) {
            exit(1);
        }
        pthread_join(other, NULL);
    }
}

static void *profiled_thread(void *arg)
{
    profiled_thread_t *self = arg;
    char name[64];
    unsigned run;

    PRG_CHECK(cuCtxSetCurrent(self->prg->context));
    for (run = 0; run < options.runs; ++run) {
        if (options.ranges > 0) {
            snprintf(name, sizeof(name), options.threads > 1 ?
                     "range %u of thread %u" : "range %u",
                     run % options.ranges, self->index);
            nvtxRangePushA(name);
        }
        profiled_run(self, run);
        profiled_let_other_launch(self);
        if (options.wait > 0) {
            PRG_CHECK(cuStreamSynchronize(self->stream));
        }
        if (options.ranges > 0) {
            nvtxRangePop();
        }
    }
    PRG_CHECK(cuStreamSynchronize(self->stream));
    return NULL;
}

static void profiled_parse(int argc, char **argv)
{
    size_t k;
    int i;

    for (i = 1; i < argc; i += 2) {
        for (k = 0; k < PRG_COUNT_OF(names); ++k) {
            if ((i + 1 < argc) && !strcmp(names[k].name, argv[i])) {
                *names[k].value = (unsigned)strtoul(argv[i + 1], NULL, 10);
                break;
            }
        }
        if (k == PRG_COUNT_OF(names)) {
            fprintf(stderr, "profiled: %s\n", argv[i]);
            exit(2);
        }
    }
    if (options.threads > PROFILED_THREADS) {
        options.threads = PROFILED_THREADS;
    }
}

int main(int argc, char **argv)
{
    profiled_thread_t thread[PROFILED_THREADS];
    pthread_t id[PROFILED_THREADS];
    prg_context_t prg;
    unsigned i;

    profiled_parse(argc, argv);
    prg_open(&prg);
    usleep(options.sleep * 1000);
    for (i = 0; i < options.threads; ++i) {
        thread[i] = (profiled_thread_t){
            .prg    = &prg,
            .index  = i,
            .kernel = { prg_kernel(&prg, "k_scale"),
                        prg_kernel(&prg, "k_axpy") },
            .x      = prg_alloc(&prg, PROFILED_WORDS, 1),
            .y      = prg_alloc(&prg, PROFILED_WORDS, 1000)
        };
        PRG_CHECK(cuStreamCreate(&thread[i].stream, CU_STREAM_NON_BLOCKING));
    }
    for (i = 1; i < options.threads; ++i) {
        if (pthread_create(&id[i], NULL, profiled_thread, &thread[i]) != 0) {
            return 1;
        }
    }
    profiled_thread(&thread[0]);
    for (i = 1; i < options.threads; ++i) {
        pthread_join(id[i], NULL);
    }
    for (i = 0; i < options.threads; ++i) {
        prg_print_hash("x", thread[i].x, PROFILED_WORDS);
        prg_print_hash("y", thread[i].y, PROFILED_WORDS);
        PRG_CHECK(cuMemFree(thread[i].x));
        PRG_CHECK(cuMemFree(thread[i].y));
        PRG_CHECK(cuStreamDestroy(thread[i].stream));
    }
    prg_close(&prg);
    return 0;
}
