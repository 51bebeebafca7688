/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events out of a pool, as frameworks take them: which calls of a region use
 * one and the same event changes from run to run, and so does who waits for
 * which. After each run one of the events is waited for, and its work read.
 */
#include <stdio.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    POOL_WORDS  = 64,
    POOL_EVENTS = 5,
    POOL_RUNS   = 60
};


typedef struct pool_state {
    prg_context_t prg;
    CUfunction    hash, axpy;
    CUstream      stream, other;
    CUevent       events[POOL_EVENTS];
    CUdeviceptr   x, y;
    uint32_t      *seen;  /* pinned */
    unsigned      next;
} pool_state_t;


/* In some runs the pool gives the same event twice, in others it does not. */
static CUevent pool_take(pool_state_t *state, uint32_t run)
{
    state->next += run % 3 == 0 ? 0 : 1 + run % 2;
    return state->events[state->next % POOL_EVENTS];
}

static void pool_hash(pool_state_t *state, CUdeviceptr x, uint32_t seed,
                      CUstream stream)
{
    uint32_t n = POOL_WORDS;

    PRG_LAUNCH(state->hash, stream, n, &x, &n, &seed);
}

static CUevent pool_run(pool_state_t *state, uint32_t run)
{
    uint32_t n = POOL_WORDS, a = 3;
    CUevent  last = NULL;
    unsigned i;

    nvtxRangePushA("pool");
    for (i = 0; i < 3; ++i) {
        CUevent forked = pool_take(state, run + i);

        pool_hash(state, state->x, i, state->stream);
        PRG_CHECK(cuEventRecord(forked, state->stream));
        PRG_CHECK(cuStreamWaitEvent(state->other, forked, 0));
        PRG_LAUNCH(state->axpy, state->other, n, &state->y, &state->x, &n, &a);
        last = pool_take(state, run);
        PRG_CHECK(cuEventRecord(last, state->other));
        PRG_CHECK(cuStreamWaitEvent(state->stream, last, 0));
    }
    PRG_CHECK(cuMemcpyDtoHAsync(state->seen, state->y, POOL_WORDS * 4,
                                state->other));
    last = pool_take(state, run);
    PRG_CHECK(cuEventRecord(last, state->other));
    nvtxRangePop();
    return last;
}

int main(void)
{
    static pool_state_t state;
    CUevent  last;
    uint32_t run;
    unsigned i;

    prg_open(&state.prg);
    state.hash = prg_kernel(&state.prg, "k_hash");
    state.axpy = prg_kernel(&state.prg, "k_axpy");
    state.x    = prg_alloc(&state.prg, POOL_WORDS, 1);
    state.y    = prg_alloc(&state.prg, POOL_WORDS, 2);
    PRG_CHECK(cuMemAllocHost((void**)&state.seen, POOL_WORDS * 4));
    PRG_CHECK(cuStreamCreate(&state.stream, CU_STREAM_NON_BLOCKING));
    PRG_CHECK(cuStreamCreate(&state.other, CU_STREAM_NON_BLOCKING));
    for (i = 0; i < POOL_EVENTS; ++i) {
        PRG_CHECK(cuEventCreate(&state.events[i],
                                i % 2 ? CU_EVENT_DISABLE_TIMING :
                                        CU_EVENT_DEFAULT));
    }

    for (run = 0; run < POOL_RUNS; ++run) {
        last = pool_run(&state, run);
        PRG_CHECK(cuEventSynchronize(last));
        printf("run %u: %016llx\n", run, (unsigned long long)
               prg_hash_host(state.seen, POOL_WORDS * 4));
        if (run % 10 == 9) {        /* another event under the same handle */
            PRG_CHECK(cuEventDestroy(state.events[run / 10 % POOL_EVENTS]));
            PRG_CHECK(cuEventCreate(&state.events[run / 10 % POOL_EVENTS],
                                    CU_EVENT_DEFAULT));
        }
    }
    PRG_CHECK(cuCtxSynchronize());
    prg_print_hash("x", state.x, POOL_WORDS);
    prg_print_hash("y", state.y, POOL_WORDS);

    for (i = 0; i < POOL_EVENTS; ++i) {
        PRG_CHECK(cuEventDestroy(state.events[i]));
    }
    PRG_CHECK(cuStreamDestroy(state.stream));
    PRG_CHECK(cuStreamDestroy(state.other));
    PRG_CHECK(cuMemFreeHost(state.seen));
    PRG_CHECK(cuMemFree(state.x));
    PRG_CHECK(cuMemFree(state.y));
    prg_close(&state.prg);
    return 0;
}
