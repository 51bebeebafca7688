/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that are cancelled while they make calls, where they say that they
 * may be: between two regions. The program goes on without them. A call that
 * would be left in the middle takes with it what others wait for; then an
 * alarm ends the program.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    CANCEL_WORDS   = 4096,
    CANCEL_THREADS = 16,
    CANCEL_FIRST   = 4,   /* runs of a thread before it is cancelled */
    CANCEL_STEP_US = 150,
    CANCEL_ALARM_S = 60
};


typedef struct cancel_state {
    prg_context_t prg;
    CUfunction    hash;
    CUstream      stream, other;
    CUdeviceptr   x, y;
    atomic_uint   runs;
} cancel_state_t;


static void *cancel_thread(void *arg)
{
    cancel_state_t *state = arg;
    uint32_t       n      = CANCEL_WORDS;
    uint32_t       seed   = 3;
    uint32_t       i;

    PRG_CHECK(cuCtxSetCurrent(state->prg.context));
    for (;;) {
        nvtxRangePushA("cancel");
        for (i = 0; i < 6; ++i) {
            PRG_LAUNCH(state->hash, state->stream, n, &state->x, &n, &seed);
        }
        nvtxRangePop();
        atomic_fetch_add(&state->runs, 1);
        pthread_testcancel();
    }
    return NULL;
}

static void cancel_one(cancel_state_t *state, uint32_t turn)
{
    uint32_t  n = CANCEL_WORDS;
    pthread_t thread;

    atomic_store(&state->runs, 0);
    if (pthread_create(&thread, NULL, cancel_thread, state) != 0) {
        perror("pthread_create");
        _Exit(1);
    }
    while (atomic_load(&state->runs) < CANCEL_FIRST) {
        usleep(CANCEL_STEP_US);
    }
    usleep(CANCEL_STEP_US * turn);
    pthread_cancel(thread);
    pthread_join(thread, NULL);

    nvtxRangePushA("cancel");
    PRG_LAUNCH(state->hash, state->other, n, &state->y, &n, &turn);
    nvtxRangePop();
    PRG_CHECK(cuCtxSynchronize());
}

int main(void)
{
    static cancel_state_t state;
    uint32_t turn;

    alarm(CANCEL_ALARM_S);
    prg_open(&state.prg);
    state.hash = prg_kernel(&state.prg, "k_hash");
    state.x    = prg_alloc(&state.prg, CANCEL_WORDS, 1);
    state.y    = prg_alloc(&state.prg, CANCEL_WORDS, 2);
    PRG_CHECK(cuStreamCreate(&state.stream, CU_STREAM_NON_BLOCKING));
    PRG_CHECK(cuStreamCreate(&state.other, CU_STREAM_NON_BLOCKING));
    for (turn = 0; turn < CANCEL_THREADS; ++turn) {
        cancel_one(&state, turn);
    }
    prg_print_hash("y", state.y, CANCEL_WORDS);
    PRG_CHECK(cuStreamDestroy(state.stream));
    PRG_CHECK(cuStreamDestroy(state.other));
    PRG_CHECK(cuMemFree(state.x));
    PRG_CHECK(cuMemFree(state.y));
    prg_close(&state.prg);
    return 0;
}
