/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of another thread that does not end before this thread has made all of
 * its runs: a copy behind a host function that waits for them. An alarm ends
 * the program if these take long, as if each of them had waited for that call.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    STUCK_WORDS    = 64,
    STUCK_RUNS     = 60,
    STUCK_BEGIN_US = 50000, /* until the call is likely to be made */
    STUCK_ALARM_S  = 30
};


typedef struct stuck_state {
    prg_context_t prg;
    CUdeviceptr   word;
    atomic_bool   near, done;
} stuck_state_t;


static void CUDA_CB stuck_wait(void *arg)
{
    stuck_state_t *state = arg;

    while (!atomic_load(&state->done)) {
        usleep(100);
    }
}

static void *stuck_thread(void *arg)
{
    stuck_state_t *state = arg;
    uint32_t      word;

    PRG_CHECK(cuCtxSetCurrent(state->prg.context));
    PRG_CHECK(cuLaunchHostFunc(CU_STREAM_LEGACY, stuck_wait, state));
    atomic_store(&state->near, true);
    PRG_CHECK(cuMemcpyDtoH(&word, state->word, sizeof(word)));
    printf("word %u\n", word);
    return NULL;
}

int main(void)
{
    static stuck_state_t state;
    uint32_t    n = STUCK_WORDS;
    CUdeviceptr x;
    CUfunction  hash;
    CUstream    stream;
    pthread_t   thread;
    uint32_t    run, i;

    prg_open(&state.prg);
    hash       = prg_kernel(&state.prg, "k_hash");
    x          = prg_alloc(&state.prg, n, 1);
    state.word = prg_alloc(&state.prg, 1, 5);
    PRG_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    if (pthread_create(&thread, NULL, stuck_thread, &state) != 0) {
        perror("pthread_create");
        return 1;
    }
    while (!atomic_load(&state.near)) {
        usleep(100);
    }
    usleep(STUCK_BEGIN_US);

    alarm(STUCK_ALARM_S);
    for (run = 0; run < STUCK_RUNS; ++run) {
        nvtxRangePushA("stuck");
        for (i = 0; i < 6; ++i) {
            PRG_LAUNCH(hash, stream, n, &x, &n, &run);
        }
        nvtxRangePop();
    }
    alarm(0);
    atomic_store(&state.done, true);
    pthread_join(thread, NULL);
    PRG_CHECK(cuCtxSynchronize());
    prg_print_hash("x", x, n);
    PRG_CHECK(cuStreamDestroy(stream));
    PRG_CHECK(cuMemFree(x));
    PRG_CHECK(cuMemFree(state.word));
    prg_close(&state.prg);
    return 0;
}
