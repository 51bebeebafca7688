/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions of all that can be in a graph, run until they are settled and a
 * thousand times more. Then nothing may be allocated any more, which the
 * preloaded library of allocations.h counts; without it the program is one of
 * many.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nvtx3/nvToolsExt.h>

#include "allocations.h"
#include "util.h"


enum {
    SETTLED_WORDS   = 64,
    SETTLED_BYTES   = SETTLED_WORDS * sizeof(uint32_t),
    SETTLED_BUFFERS = 4,
    SETTLED_WARM_UP = 60,       /* runs */
    SETTLED_RUNS    = 1000,
    SETTLED_CHAIN   = 40
};


typedef struct settled_state {
    CUstream    stream[2];
    CUevent     fork, join;
    uint32_t    n;
    CUdeviceptr x[SETTLED_BUFFERS];
    uint32_t    *pinned;
    CUfunction  axpy, chain, hash;
} settled_state_t;


static void CUDA_CB settled_host(void *data)
{
    uint32_t *word = data;

    word[0] = word[0] * 3 + 1;
}

/* The same each time. */
static void settled_same(settled_state_t *s, unsigned run)
{
    uint32_t value = 5;
    unsigned i;

    (void)run;
    for (i = 0; i < SETTLED_CHAIN; ++i) {
        PRG_LAUNCH(s->chain, s->stream[0], 1, &s->x[i % 2], &value);
    }
}

/* Arguments that go on and on. */
static void settled_patched(settled_state_t *s, unsigned run)
{
    unsigned i;

    for (i = 0; i < SETTLED_CHAIN; ++i) {
        uint32_t value = i % 4 == 0 ? run : i;

        PRG_LAUNCH(s->hash, s->stream[0], s->n, &s->x[i % 2], &s->n, &value);
    }
}

/* Two buffers change places. */
static void settled_turns(settled_state_t *s, unsigned run)
{
    CUdeviceptr *to   = &s->x[run % 2];
    CUdeviceptr *from = &s->x[1 - run % 2];
    uint32_t factor   = 3;
    unsigned i;

    for (i = 0; i < SETTLED_CHAIN; ++i) {
        PRG_LAUNCH(s->axpy, s->stream[0], s->n, to, from, &s->n, &factor);
    }
}

/* Copies, sets, host functions. */
static void settled_kinds(settled_state_t *s, unsigned run)
{
    uint32_t words[SETTLED_WORDS];
    unsigned i;

    for (i = 0; i < SETTLED_WORDS; ++i) {
        words[i] = run + i;
    }
    PRG_CHECK(cuMemsetD32Async(s->x[2], run % 2, 8, s->stream[0]));
    PRG_CHECK(cuMemcpyDtoDAsync(s->x[3], s->x[2], SETTLED_BYTES,
                                s->stream[0]));
    PRG_CHECK(cuMemcpyHtoDAsync(s->x[2], words, SETTLED_BYTES, s->stream[0]));
    PRG_CHECK(cuMemcpyDtoHAsync(s->pinned, s->x[3], SETTLED_BYTES,
                                s->stream[0]));
    PRG_CHECK(cuLaunchHostFunc(s->stream[0], settled_host, s->pinned));
    PRG_CHECK(cuMemcpyHtoDAsync(s->x[3], s->pinned, SETTLED_BYTES,
                                s->stream[0]));
}

/* Another stream forks off and joins. */
static void settled_forks(settled_state_t *s, unsigned run)
{
    uint32_t value = run % 7;
    unsigned i;

    PRG_CHECK(cuEventRecord(s->fork, s->stream[0]));
    PRG_CHECK(cuStreamWaitEvent(s->stream[1], s->fork, 0));
    for (i = 0; i < SETTLED_CHAIN; ++i) {
        PRG_LAUNCH(s->chain, s->stream[i % 2], 1, &s->x[i % 2], &value);
    }
    PRG_CHECK(cuEventRecord(s->join, s->stream[1]));
    PRG_CHECK(cuStreamWaitEvent(s->stream[0], s->join, 0));
}

/* A wait in the middle. */
static void settled_cut(settled_state_t *s, unsigned run)
{
    settled_same(s, run);
    PRG_CHECK(cuStreamSynchronize(s->stream[0]));
    settled_same(s, run);
}

static const struct {
    const char *name;
    void       (*run)(settled_state_t *state, unsigned run);
} settled_cases[] = {
    {"same", settled_same},
    {"patched", settled_patched},
    {"turns", settled_turns},
    {"kinds", settled_kinds},
    {"forks", settled_forks},
    {"cut", settled_cut}
};

static void settled_runs(settled_state_t *state, unsigned index,
                         unsigned begin, unsigned end)
{
    unsigned run;

    for (run = begin; run < end; ++run) {
        nvtxRangePushA(settled_cases[index].name);
        settled_cases[index].run(state, run);
        nvtxRangePop();
        PRG_CHECK(cuStreamSynchronize(state->stream[0]));
    }
}

int main(void)
{
    settled_state_t state = { .n = SETTLED_WORDS };
    void (*begin)(void);
    unsigned long (*end)(void);
    prg_context_t prg;
    unsigned long count;
    unsigned i;
    int status = EXIT_SUCCESS;

    *(void**)&begin = dlsym(RTLD_DEFAULT, "alc_begin");
    *(void**)&end   = dlsym(RTLD_DEFAULT, "alc_end");
    prg_open(&prg);
    state.axpy  = prg_kernel(&prg, "k_axpy");
    state.chain = prg_kernel(&prg, "k_chain");
    state.hash  = prg_kernel(&prg, "k_hash");
    for (i = 0; i < SETTLED_BUFFERS; ++i) {
        state.x[i] = prg_alloc(&prg, state.n, 100 * i);
    }
    PRG_CHECK(cuMemAllocHost((void**)&state.pinned, SETTLED_BYTES));
    memset(state.pinned, 0, SETTLED_BYTES);
    PRG_CHECK(cuStreamCreate(&state.stream[0], CU_STREAM_NON_BLOCKING));
    PRG_CHECK(cuStreamCreate(&state.stream[1], CU_STREAM_NON_BLOCKING));
    PRG_CHECK(cuEventCreate(&state.fork, CU_EVENT_DISABLE_TIMING));
    PRG_CHECK(cuEventCreate(&state.join, CU_EVENT_DISABLE_TIMING));

    for (i = 0; i < PRG_COUNT_OF(settled_cases); ++i) {
        settled_runs(&state, i, 0, SETTLED_WARM_UP);
        if (begin != NULL) {
            begin();
        }
        settled_runs(&state, i, SETTLED_WARM_UP,
                     SETTLED_WARM_UP + SETTLED_RUNS);
        count = end != NULL ? end() : 0;
        if (count > 0) {
            printf("%s: %lu allocations\n", settled_cases[i].name, count);
            status = EXIT_FAILURE;
        }
        prg_print_hash(settled_cases[i].name, state.x[i % SETTLED_BUFFERS],
                       state.n);
    }
    PRG_CHECK(cuCtxSynchronize());
    for (i = 0; i < SETTLED_BUFFERS; ++i) {
        prg_print_hash("at the end", state.x[i], state.n);
        PRG_CHECK(cuMemFree(state.x[i]));
    }
    PRG_CHECK(cuMemFreeHost(state.pinned));
    PRG_CHECK(cuEventDestroy(state.fork));
    PRG_CHECK(cuEventDestroy(state.join));
    PRG_CHECK(cuStreamDestroy(state.stream[0]));
    PRG_CHECK(cuStreamDestroy(state.stream[1]));
    prg_close(&prg);
    return status;
}
