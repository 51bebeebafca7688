/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops without any marks that something cuts short in the middle of a round,
 * where the region of the round is open: the thread ends, the process forks or
 * exits, a stream is captured, a module, a stream or a context goes, a range
 * begins, another thread has regions destroyed.
 *
 *     cut_loops HOW [TIMES]
 *
 * After each cut the loop begins again.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nvtx3/nvToolsExt.h>

#include "cgshim.h"
#include "kernels_ptx.h"
#include "util.h"


enum {
    CUT_WORDS  = 64,
    CUT_STEPS  = 20,
    CUT_ROUNDS = 12,
    CUT_AT     = 11, /* calls of the last round */
    CUT_SOME   = 10, /* threads, after which memory grows no more than this */
    CUT_GROWTH = 16 << 20,
    CUT_UNLIKE      = 60000,
    CUT_LATE_ROUNDS = 3000
};


typedef struct cut_state {
    prg_context_t prg;
    CUfunction    hash, scale;
    CUstream      stream;
    CUdeviceptr   buffer;
    unsigned      time; /* how often the loop was cut */
} cut_state_t;


static void cut_steps(const cut_state_t *state, unsigned first, unsigned end)
{
    uint32_t    n      = CUT_WORDS;
    uint32_t    value  = 3;
    CUdeviceptr buffer = state->buffer;
    unsigned    i;

    for (i = first; i < end; ++i) {
        PRG_LAUNCH(i % 3 == 0 ? state->hash : state->scale, state->stream, n,
                   &buffer, &n, &value);
    }
}

/* Rounds, and the first calls of one more. */
static void cut_loop(const cut_state_t *state)
{
    unsigned round;

    for (round = 0; round < CUT_ROUNDS; ++round) {
        cut_steps(state, 0, CUT_STEPS);
    }
    cut_steps(state, 0, CUT_AT);
}

static void cut_load(cut_state_t *state)
{
    state->hash  = prg_kernel(&state->prg, "k_hash");
    state->scale = prg_kernel(&state->prg, "k_scale");
}

static void cut_open(cut_state_t *state)
{
    prg_open(&state->prg);
    cut_load(state);
    state->buffer = prg_alloc(&state->prg, CUT_WORDS, 5);
    PRG_CHECK(cuStreamCreate(&state->stream, CU_STREAM_NON_BLOCKING));
}

static void cut_close(const cut_state_t *state)
{
    PRG_CHECK(cuStreamSynchronize(state->stream));
    prg_print_hash("buffer", state->buffer, CUT_WORDS);
}


/* A thread of its own that ends there, by itself or by pthread_exit(). */
static void *cut_thread(void *arg)
{
    const cut_state_t *state = arg;

    PRG_CHECK(cuCtxSetCurrent(state->prg.context));
    cut_loop(state);
    if (state->time % 2 == 1) {
        pthread_exit(NULL);
    }
    return NULL;
}

static void cut_start(void *(*run)(void *), void *arg, pthread_t *thread)
{
    if (pthread_create(thread, NULL, run, arg) != 0) {
        perror("pthread_create");
        exit(EXIT_FAILURE);
    }
}

static void cut_threads(cut_state_t *state)
{
    pthread_t thread;

    cut_start(cut_thread, state, &thread);
    pthread_join(thread, NULL);
}

/* The thread's last calls are made while what belongs to it is destroyed, each
 * time round that there is. */
static pthread_key_t      cut_key;
static const cut_state_t *cut_state;

static void cut_at_end(void *arg)
{
    cut_steps(cut_state, 0, CUT_AT);
    pthread_setspecific(cut_key, arg);
}

static void *cut_ending_thread(void *arg)
{
    pthread_setspecific(cut_key, arg);
    return cut_thread(arg);
}

/* Memory that is allocated; 0 where a sanitizer has it. */
static size_t cut_allocated(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

static void cut_destructors(cut_state_t *state)
{
    static size_t before;
    pthread_t     thread;

    cut_state = state;
    if ((state->time == 0) && (pthread_key_create(&cut_key, cut_at_end) != 0)) {
        exit(EXIT_FAILURE);
    }
    cut_start(cut_ending_thread, state, &thread);
    pthread_join(thread, NULL);
    PRG_CHECK(cuStreamSynchronize(state->stream));
    if (state->time == CUT_SOME) {
        before = cut_allocated();
    } else if ((state->time > CUT_SOME) &&
               (cut_allocated() > before + CUT_GROWTH)) {
        printf("memory grows\n");
    }
}

/* Each thread has a stream of its own, which goes when the thread has gone. */
static void cut_thread_streams(cut_state_t *state)
{
    PRG_CHECK(cuStreamSynchronize(state->stream));
    PRG_CHECK(cuStreamDestroy(state->stream));
    PRG_CHECK(cuStreamCreate(&state->stream, CU_STREAM_NON_BLOCKING));
    cut_threads(state);
}

/* Several at once, each with a buffer and a stream. */
static void *cut_one_of_many(void *arg)
{
    cut_state_t own = *(cut_state_t *)arg;

    PRG_CHECK(cuCtxSetCurrent(own.prg.context));
    PRG_CHECK(cuMemAlloc(&own.buffer, CUT_WORDS * sizeof(uint32_t)));
    PRG_CHECK(cuMemsetD32(own.buffer, 7, CUT_WORDS));
    PRG_CHECK(cuCtxSynchronize());
    PRG_CHECK(cuStreamCreate(&own.stream, CU_STREAM_NON_BLOCKING));
    cut_loop(&own);
    PRG_CHECK(cuStreamSynchronize(own.stream));
    cut_loop(&own);
    PRG_CHECK(cuStreamSynchronize(own.stream));
    ((cut_state_t *)arg)->time = (unsigned)prg_hash(own.buffer, CUT_WORDS);
    PRG_CHECK(cuMemFree(own.buffer));
    PRG_CHECK(cuStreamDestroy(own.stream));
    cut_loop((cut_state_t *)arg);
    return NULL;
}

static void cut_many(cut_state_t *state)
{
    pthread_t   thread[4];
    cut_state_t other[4];
    unsigned    i;

    for (i = 0; i < 4; ++i) {
        other[i] = *state;
        PRG_CHECK(cuMemAlloc(&other[i].buffer, CUT_WORDS * sizeof(uint32_t)));
        PRG_CHECK(cuMemsetD32(other[i].buffer, i, CUT_WORDS));
        PRG_CHECK(cuCtxSynchronize());
        cut_start(cut_one_of_many, &other[i], &thread[i]);
    }
    for (i = 0; i < 4; ++i) {
        pthread_join(thread[i], NULL);
        printf("%08x\n", other[i].time);
        PRG_CHECK(cuStreamSynchronize(state->stream));
        prg_print_hash("other", other[i].buffer, CUT_WORDS);
        PRG_CHECK(cuMemFree(other[i].buffer));
    }
}

static void cut_fork(cut_state_t *state)
{
    pid_t child;
    int   status;

    cut_loop(state);
    fflush(stdout);
    child = fork();
    if (child == 0) {
#ifndef __SANITIZE_THREAD__ /* whose own thread would keep the child alive */
        if (state->time % 2 == 1) {
            pthread_exit(NULL);
        }
#endif
        exit(3);
    }
    cut_steps(state, CUT_AT, CUT_STEPS);
    waitpid(child, &status, 0);
    printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

static void cut_exit(cut_state_t *state)
{
    cut_loop(state);
    if (state->time == 2) {
        printf("leaving\n");
        exit(0);
    }
}

/* A graph of the program's own, on the stream or on another one. */
static void cut_capture(cut_state_t *state)
{
    CUstream    other;
    CUgraph     graph;
    CUgraphExec exec;
    cut_state_t captured = *state;

    cut_loop(state);
    PRG_CHECK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    captured.stream = state->time % 2 == 1 ? other : state->stream;
    PRG_CHECK(cuStreamBeginCapture(captured.stream,
                                   CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    cut_loop(&captured);
    PRG_CHECK(cuStreamEndCapture(captured.stream, &graph));
    PRG_CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    cut_steps(state, CUT_AT, CUT_STEPS);
    PRG_CHECK(cuGraphLaunch(exec, state->stream));
    PRG_CHECK(cuGraphExecDestroy(exec));
    PRG_CHECK(cuGraphDestroy(graph));
    PRG_CHECK(cuStreamDestroy(other));
}

static void cut_unload(cut_state_t *state)
{
    CUmodule old = state->prg.module;

    cut_loop(state);
    PRG_CHECK(cuModuleUnload(old));
    PRG_CHECK(cuModuleLoadData(&state->prg.module, krn_kernels_ptx));
    cut_load(state);
    cut_steps(state, CUT_AT, CUT_STEPS);
}

static void cut_stream(cut_state_t *state)
{
    cut_loop(state);
    PRG_CHECK(cuStreamDestroy(state->stream));
    PRG_CHECK(cuCtxSynchronize());
    PRG_CHECK(cuStreamCreate(&state->stream, CU_STREAM_NON_BLOCKING));
    cut_steps(state, CUT_AT, CUT_STEPS);
}

/* What was not waited for is gone with the context. */
static void cut_reset(cut_state_t *state)
{
    cut_loop(state);
    PRG_CHECK(cuStreamSynchronize(state->stream));
    prg_print_hash("buffer", state->buffer, CUT_WORDS);
    cut_loop(state);
    if (state->time % 2 == 1) {
        PRG_CHECK(cuDevicePrimaryCtxReset(state->prg.device));
    } else {
        PRG_CHECK(cuDevicePrimaryCtxRelease(state->prg.device));
    }
    cut_open(state);
}

static void cut_destroy(cut_state_t *state)
{
    static uint32_t host[CUT_WORDS];
    cut_state_t     other = *state;

    PRG_CHECK(cuCtxCreate(&other.prg.context, NULL, 0, state->prg.device));
    PRG_CHECK(cuModuleLoadData(&other.prg.module, krn_kernels_ptx));
    cut_load(&other);
    other.buffer = prg_alloc(&other.prg, CUT_WORDS, 9);
    PRG_CHECK(cuStreamCreate(&other.stream, CU_STREAM_NON_BLOCKING));
    cut_loop(&other);
    PRG_CHECK(cuStreamSynchronize(other.stream));
    PRG_CHECK(cuMemcpyDtoH(host, other.buffer, sizeof(host)));
    printf("other %016llx\n",
           (unsigned long long)prg_hash_host(host, sizeof(host)));
    cut_loop(&other);
    PRG_CHECK(cuCtxDestroy(other.prg.context));
    PRG_CHECK(cuCtxSetCurrent(state->prg.context));
    cut_loop(state);
}

/* Contexts change within each round. */
static void cut_contexts(cut_state_t *state)
{
    cut_state_t other = *state;
    unsigned    round;

    PRG_CHECK(cuCtxCreate(&other.prg.context, NULL, 0, state->prg.device));
    PRG_CHECK(cuModuleLoadData(&other.prg.module, krn_kernels_ptx));
    cut_load(&other);
    other.buffer = prg_alloc(&other.prg, CUT_WORDS, 9);
    other.stream = NULL;
    for (round = 0; round < 3 * CUT_ROUNDS; ++round) {
        PRG_CHECK(cuCtxSetCurrent(state->prg.context));
        cut_steps(state, 0, CUT_STEPS);
        PRG_CHECK(cuCtxSetCurrent(other.prg.context));
        cut_steps(&other, 0, CUT_AT);
    }
    prg_print_hash("other", other.buffer, CUT_WORDS);
    PRG_CHECK(cuCtxDestroy(other.prg.context));
    PRG_CHECK(cuCtxSetCurrent(state->prg.context));
}

static void cut_api(cut_state_t *state)
{
    unsigned round;

    cut_loop(state);
    (void)cgshim_region_begin("inside");
    cut_steps(state, CUT_AT, CUT_STEPS);
    cut_loop(state);
    (void)cgshim_region_end("inside");
    for (round = 0; round < CUT_ROUNDS; ++round) {
        cut_steps(state, 0, CUT_AT);
        (void)cgshim_region_begin("inside");
        cut_steps(state, CUT_AT, CUT_STEPS);
        (void)cgshim_region_end("inside");
    }
    for (round = 0; round < CUT_ROUNDS; ++round) {
        cut_steps(state, 0, CUT_AT);
        nvtxRangePushA("range");
        cut_steps(state, CUT_AT, CUT_STEPS);
        nvtxRangePop();
    }
}

/* All regions there are, from here and from another thread. */
static void *cut_destroys(void *arg)
{
    unsigned   *stop = arg;
    const char *name;
    unsigned   turn;
    size_t     i;

    for (turn = 0; !__atomic_load_n(stop, __ATOMIC_RELAXED); ++turn) {
        for (i = 0; i < cgshim_region_count(); ++i) {
            name = cgshim_region_name(i);
            if ((turn + i) % 3 == 0) {
                (void)cgshim_region_destroy(name);
            } else if ((turn + i) % 3 == 1) {
                (void)cgshim_region_recapture(name);
            }
        }
        if (turn % 7 == 0) {
            (void)cgshim_destroy_all();
        }
        usleep(50);
    }
    return NULL;
}

static void cut_regions(cut_state_t *state)
{
    unsigned  stop = 0;
    pthread_t thread;
    unsigned  round;

    cut_start(cut_destroys, &stop, &thread);
    for (round = 0; round < 50; ++round) {
        cut_loop(state);
        (void)cgshim_destroy_all();
        cut_steps(state, CUT_AT, CUT_STEPS);
    }
    __atomic_store_n(&stop, 1u, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
}

static void cut_default_stream(cut_state_t *state)
{
    cut_state_t other = *state;

    other.stream = CU_STREAM_PER_THREAD;
    cut_loop(&other);
    PRG_CHECK(cuStreamSynchronize(other.stream));
    other.stream = CU_STREAM_LEGACY;
    cut_loop(&other);
    PRG_CHECK(cuCtxSynchronize());
    cut_loop(state);
    PRG_CHECK(cuCtxSynchronize());
    cut_steps(&other, 0, CUT_STEPS);
    PRG_CHECK(cuCtxSynchronize());
}

/* A long time nothing comes again, then a loop does. */
static void cut_late(cut_state_t *state)
{
    uint64_t chance = 1;
    unsigned i, step;

    for (i = 0; i < CUT_UNLIKE; ++i) {
        chance = chance * 6364136223846793005u + 1442695040888963407u;
        step   = (chance >> 60) % 3;
        cut_steps(state, step, step + 1);
        if (i % 1000 == 0) {
            PRG_CHECK(cuStreamSynchronize(state->stream));
        }
    }
    for (i = 0; i < CUT_LATE_ROUNDS; ++i) {
        cut_steps(state, 0, CUT_STEPS);
        if (i % 50 == 0) {
            PRG_CHECK(cuStreamSynchronize(state->stream));
        }
    }
}

static const struct {
    const char *name;
    void       (*cut)(cut_state_t *state);
} cut_ways[] = {
    { "threads",  cut_threads },
    { "streams_of_threads", cut_thread_streams },
    { "destructors", cut_destructors },
    { "many",     cut_many },
    { "fork",     cut_fork },
    { "exit",     cut_exit },
    { "capture",  cut_capture },
    { "unload",   cut_unload },
    { "stream",   cut_stream },
    { "reset",    cut_reset },
    { "destroy",  cut_destroy },
    { "contexts", cut_contexts },
    { "api",      cut_api },
    { "regions",  cut_regions },
    { "default_stream", cut_default_stream },
    { "late",     cut_late },
};

int main(int argc, char **argv)
{
    cut_state_t state = { .time = 0 };
    unsigned    times = argc > 2 ? (unsigned)atoi(argv[2]) : 4;
    unsigned    way   = 0;

    while ((way < PRG_COUNT_OF(cut_ways)) &&
           ((argc < 2) || strcmp(argv[1], cut_ways[way].name))) {
        ++way;
    }
    if (way == PRG_COUNT_OF(cut_ways)) {
        fprintf(stderr, "usage: cut_loops HOW [TIMES]\n");
        return EXIT_FAILURE;
    }
    cut_open(&state);
    for (state.time = 0; state.time < times; ++state.time) {
        cut_ways[way].cut(&state);
    }
    cut_close(&state);
    return EXIT_SUCCESS;
}
