/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One region over the streams that need no creation and the created ones:
 * legacy (NULL and CU_STREAM_LEGACY), per thread, blocking and non-blocking,
 * with the implicit waits between them and with events.
 */
#include <stdio.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    STREAMS_WORDS = 64,
    STREAMS_RUNS  = 8
};


typedef struct streams_state {
    uint32_t    n;
    CUdeviceptr x;
    CUdeviceptr y;
    CUdeviceptr word;
    CUfunction  axpy;
    CUfunction  chain;
    CUstream    blocking[2];
    CUstream    free_running[2];
    CUevent     event[2];
} streams_state_t;


static void streams_work(streams_state_t *state, CUstream stream,
                         uint32_t value)
{
    PRG_LAUNCH(state->axpy, stream, state->n, &state->x, &state->y, &state->n,
               &value);
    PRG_LAUNCH(state->chain, stream, 1, &state->word, &value);
    PRG_LAUNCH(state->axpy, stream, state->n, &state->y, &state->x, &state->n,
               &value);
}

static void streams_print(streams_state_t *state, const char *name)
{
    PRG_CHECK(cuCtxSynchronize());
    printf("%s\n", name);
    prg_print_hash("  x", state->x, state->n);
    prg_print_hash("  y", state->y, state->n);
    prg_print_hash("  word", state->word, 1);
}

static void streams_one(streams_state_t *state, const char *name,
                        CUstream stream)
{
    uint32_t run, i;

    for (run = 0; run < STREAMS_RUNS; ++run) {
        nvtxRangePushA(name);
        for (i = 0; i < 4; ++i) {
            streams_work(state, stream, i);
        }
        nvtxRangePop();
    }
    streams_print(state, name);
}

/* Legacy and blocking streams wait for each other, so all work is in order. */
static void streams_legacy_between(streams_state_t *state)
{
    uint32_t run;

    for (run = 0; run < STREAMS_RUNS; ++run) {
        nvtxRangePushA("legacy between");
        streams_work(state, state->blocking[0], 1);
        streams_work(state, NULL, 2);
        streams_work(state, state->blocking[1], 3);
        streams_work(state, CU_STREAM_LEGACY, 4);
        streams_work(state, CU_STREAM_PER_THREAD, 5);
        streams_work(state, NULL, run);
        PRG_CHECK(cuMemsetD32Async(state->word, run, 1, state->blocking[0]));
        streams_work(state, NULL, 6);
        nvtxRangePop();
        streams_work(state, state->blocking[run % 2], 7);
        streams_work(state, NULL, 8);
    }
    streams_print(state, "legacy between");
}

/* The order comes from events alone. */
static void streams_events_between(streams_state_t *state)
{
    uint32_t run, i;

    for (run = 0; run < STREAMS_RUNS; ++run) {
        nvtxRangePushA("events between");
        for (i = 0; i < 4; ++i) {
            CUstream here  = state->free_running[i % 2];
            CUstream there = state->free_running[(i + 1) % 2];

            streams_work(state, here, i + run % 2);
            PRG_CHECK(cuEventRecord(state->event[i % 2], here));
            PRG_CHECK(cuStreamWaitEvent(there, state->event[i % 2], 0));
        }
        nvtxRangePop();
    }
    streams_print(state, "events between");
}

/* The event is recorded outside and waited for inside, and the other way. */
static void streams_events_outside(streams_state_t *state)
{
    CUstream here  = state->free_running[0];
    CUstream there = state->free_running[1];
    uint32_t run;

    for (run = 0; run < STREAMS_RUNS; ++run) {
        streams_work(state, here, 1);
        PRG_CHECK(cuEventRecord(state->event[0], here));
        nvtxRangePushA("events outside");
        PRG_CHECK(cuStreamWaitEvent(there, state->event[0], 0));
        streams_work(state, there, 2);
        streams_work(state, there, run);
        PRG_CHECK(cuEventRecord(state->event[1], there));
        nvtxRangePop();
        PRG_CHECK(cuStreamWaitEvent(here, state->event[1], 0));
        streams_work(state, here, 3);
    }
    streams_print(state, "events outside");
}

/* Independent work alternates; nothing orders one stream after the other. */
static void streams_alternate(streams_state_t *state)
{
    CUdeviceptr word[2];
    uint32_t run, i;

    for (i = 0; i < 2; ++i) {
        PRG_CHECK(cuMemAlloc(&word[i], sizeof(uint32_t)));
        PRG_CHECK(cuMemsetD32(word[i], i, 1));
    }
    PRG_CHECK(cuCtxSynchronize());
    for (run = 0; run < STREAMS_RUNS; ++run) {
        nvtxRangePushA("alternate");
        for (i = 0; i < 10; ++i) {
            PRG_LAUNCH(state->chain, state->free_running[i % 2], 1,
                       &word[i % 2], &i);
        }
        nvtxRangePop();
    }
    PRG_CHECK(cuStreamSynchronize(state->free_running[1]));
    PRG_CHECK(cuStreamSynchronize(state->free_running[0]));
    for (i = 0; i < 2; ++i) {
        prg_print_hash("alternate", word[i], 1);
        PRG_CHECK(cuMemFree(word[i]));
    }
}

/* A stream that is destroyed with work pending, and made again: the handle's
 * value may be the same. */
static void streams_short_lived(streams_state_t *state)
{
    CUstream stream;
    uint32_t run;

    for (run = 0; run < STREAMS_RUNS; ++run) {
        PRG_CHECK(cuStreamCreate(&stream, run % 2 ? CU_STREAM_DEFAULT
                                                  : CU_STREAM_NON_BLOCKING));
        nvtxRangePushA("short-lived");
        streams_work(state, stream, 1);
        streams_work(state, stream, 2);
        nvtxRangePop();
        if (run % 3 == 0) {
            PRG_CHECK(cuStreamSynchronize(stream));
        }
        PRG_CHECK(cuStreamDestroy(stream));
        /* A destroyed stream's work still ends; wait before the next one. */
        PRG_CHECK(cuCtxSynchronize());
    }
    streams_print(state, "short-lived");
}

int main(void)
{
    streams_state_t state = { .n = STREAMS_WORDS };
    prg_context_t prg;
    unsigned i;

    prg_open(&prg);
    state.axpy  = prg_kernel(&prg, "k_axpy");
    state.chain = prg_kernel(&prg, "k_chain");
    state.x     = prg_alloc(&prg, state.n, 6);
    state.y     = prg_alloc(&prg, state.n, 600);
    state.word  = prg_alloc(&prg, 1, 1);
    for (i = 0; i < 2; ++i) {
        PRG_CHECK(cuStreamCreate(&state.blocking[i], CU_STREAM_DEFAULT));
        PRG_CHECK(cuStreamCreateWithPriority(&state.free_running[i],
                                             CU_STREAM_NON_BLOCKING,
                                             i == 0 ? 0 : -1));
        PRG_CHECK(cuEventCreate(&state.event[i], CU_EVENT_DISABLE_TIMING));
    }

    streams_one(&state, "null", NULL);
    streams_one(&state, "legacy", CU_STREAM_LEGACY);
    streams_one(&state, "per thread", CU_STREAM_PER_THREAD);
    streams_one(&state, "blocking", state.blocking[0]);
    streams_one(&state, "non-blocking", state.free_running[0]);
    streams_legacy_between(&state);
    streams_events_between(&state);
    streams_events_outside(&state);
    streams_alternate(&state);
    streams_short_lived(&state);

    for (i = 0; i < 2; ++i) {
        PRG_CHECK(cuEventDestroy(state.event[i]));
        PRG_CHECK(cuStreamDestroy(state.blocking[i]));
        PRG_CHECK(cuStreamDestroy(state.free_running[i]));
    }
    PRG_CHECK(cuMemFree(state.x));
    PRG_CHECK(cuMemFree(state.y));
    PRG_CHECK(cuMemFree(state.word));
    prg_close(&prg);
    return 0;
}
