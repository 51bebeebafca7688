/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barriers in the middle of a region: synchronising calls of every kind, and
 * results read back there that decide what is launched next.
 */
#include <stdio.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    SYNC_WORDS = 64,
    SYNC_RUNS  = 14
};


typedef struct sync_state {
    CUstream    stream;
    CUevent     event;
    uint32_t    n;
    CUdeviceptr x;
    CUdeviceptr word;
    CUfunction  scale;
    CUfunction  hash;
    CUfunction  chain;
    uint32_t    *pinned;
} sync_state_t;


static void sync_work(sync_state_t *state, uint32_t value)
{
    PRG_LAUNCH(state->scale, state->stream, state->n, &state->x, &state->n,
               &value);
    PRG_LAUNCH(state->hash, state->stream, state->n, &state->x, &state->n,
               &value);
    PRG_LAUNCH(state->chain, state->stream, 1, &state->word, &value);
}

static void sync_each_kind(sync_state_t *state)
{
    unsigned run;

    for (run = 0; run < SYNC_RUNS; ++run) {
        nvtxRangePushA("each kind");
        sync_work(state, 1);
        PRG_CHECK(cuStreamSynchronize(state->stream));
        sync_work(state, 2);
        PRG_CHECK(cuCtxSynchronize());
        sync_work(state, 3);
        PRG_CHECK(cuEventRecord(state->event, state->stream));
        sync_work(state, 4);
        PRG_CHECK(cuEventSynchronize(state->event));
        sync_work(state, 5);
        nvtxRangePop();
    }
    PRG_CHECK(cuStreamSynchronize(state->stream));
    prg_print_hash("each kind", state->x, state->n);
}

/* The program asks until the work is done. */
static void sync_by_query(sync_state_t *state)
{
    CUresult result;
    unsigned run;

    for (run = 0; run < SYNC_RUNS; ++run) {
        nvtxRangePushA("query");
        sync_work(state, run);
        do {
            result = cuStreamQuery(state->stream);
        } while (result == CUDA_ERROR_NOT_READY);
        PRG_CHECK(result);
        sync_work(state, 1);
        PRG_CHECK(cuEventRecord(state->event, state->stream));
        do {
            result = cuEventQuery(state->event);
        } while (result == CUDA_ERROR_NOT_READY);
        PRG_CHECK(result);
        nvtxRangePop();
    }
    prg_print_hash("query", state->x, state->n);
}

/* What is read back decides: how many launches follow and with which value. */
static void sync_to_decide(sync_state_t *state)
{
    uint32_t value = 0;
    unsigned run, i;

    for (run = 0; run < SYNC_RUNS; ++run) {
        nvtxRangePushA("decide");
        sync_work(state, run);
        PRG_CHECK(cuStreamSynchronize(state->stream));
        PRG_CHECK(cuMemcpyDtoH(&value, state->word, sizeof(value)));
        for (i = 0; i < value % 3; ++i) {
            sync_work(state, value);
        }
        PRG_CHECK(cuMemcpyDtoHAsync(state->pinned, state->word,
                                    sizeof(uint32_t), state->stream));
        PRG_CHECK(cuStreamSynchronize(state->stream));
        sync_work(state, *state->pinned % 5);
        /* Pageable: the call itself waits. */
        PRG_CHECK(cuMemcpyDtoHAsync(&value, state->word, sizeof(value),
                                    state->stream));
        PRG_CHECK(cuStreamSynchronize(state->stream));
        nvtxRangePop();
        printf("decide %u: %08x\n", run, value);
    }
}

/* The barrier is elsewhere in every run. */
static void sync_wanders(sync_state_t *state)
{
    unsigned run, i;

    for (run = 0; run < SYNC_RUNS; ++run) {
        nvtxRangePushA("wanders");
        for (i = 0; i < 8; ++i) {
            sync_work(state, i);
            if (i == run % 9) {
                PRG_CHECK(cuStreamSynchronize(state->stream));
            }
        }
        nvtxRangePop();
    }
    PRG_CHECK(cuStreamSynchronize(state->stream));
    prg_print_hash("wanders", state->x, state->n);
}

int main(void)
{
    sync_state_t state = { .n = SYNC_WORDS };
    prg_context_t prg;

    prg_open(&prg);
    state.scale = prg_kernel(&prg, "k_scale");
    state.hash  = prg_kernel(&prg, "k_hash");
    state.chain = prg_kernel(&prg, "k_chain");
    state.x     = prg_alloc(&prg, state.n, 21);
    state.word  = prg_alloc(&prg, 1, 1);
    PRG_CHECK(cuMemAllocHost((void**)&state.pinned, sizeof(uint32_t)));
    PRG_CHECK(cuStreamCreate(&state.stream, CU_STREAM_NON_BLOCKING));
    PRG_CHECK(cuEventCreate(&state.event, CU_EVENT_DISABLE_TIMING));

    sync_each_kind(&state);
    sync_by_query(&state);
    sync_to_decide(&state);
    sync_wanders(&state);
    prg_print_hash("word", state.word, 1);

    PRG_CHECK(cuEventDestroy(state.event));
    PRG_CHECK(cuStreamDestroy(state.stream));
    PRG_CHECK(cuMemFreeHost(state.pinned));
    PRG_CHECK(cuMemFree(state.x));
    PRG_CHECK(cuMemFree(state.word));
    prg_close(&prg);
    return 0;
}
