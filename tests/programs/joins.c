/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A region that two threads work in, one after the other, on one stream: the
 * first opens it and waits while the second launches, as a training step does
 * whose backward pass has a thread of its own. In some runs the second thread
 * synchronises, launches something else, or works on a stream of its own.
 */
#include <pthread.h>
#include <stdio.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    JOINS_WORDS = 64,
    JOINS_RUNS  = 40
};


typedef struct joins_state {
    prg_context_t     prg;
    CUstream          stream, other;
    CUfunction        scale, hash;
    CUdeviceptr       x, y, z;
    pthread_barrier_t barrier;
} joins_state_t;


static void joins_meet(joins_state_t *state)
{
    pthread_barrier_wait(&state->barrier);
}

static void joins_launch(joins_state_t *state, CUstream stream, CUdeviceptr x,
                         uint32_t seed, unsigned num)
{
    uint32_t n = JOINS_WORDS;
    unsigned i;

    for (i = 0; i < num; ++i) {
        PRG_LAUNCH(state->hash, stream, n, &x, &n, &seed);
    }
}

static void *joins_thread(void *arg)
{
    joins_state_t *state = arg;
    uint32_t      run, n = JOINS_WORDS, factor = 5;

    PRG_CHECK(cuCtxSetCurrent(state->prg.context));
    for (run = 0; run < JOINS_RUNS; ++run) {
        joins_meet(state);
        joins_launch(state, state->stream, state->y, run, 6);
        if (run % 8 == 5) {
            PRG_LAUNCH(state->scale, state->stream, n, &state->y, &n, &factor);
        }
        if (run % 8 == 6) {
            PRG_CHECK(cuStreamSynchronize(state->stream));
        }
        if (run % 8 == 7) {
            joins_launch(state, state->other, state->z, run, 3);
        }
        joins_launch(state, state->stream, state->x, run, 2);
        joins_meet(state);
    }
    return NULL;
}

int main(void)
{
    static joins_state_t state;
    pthread_t thread;
    uint32_t run;

    prg_open(&state.prg);
    state.scale = prg_kernel(&state.prg, "k_scale");
    state.hash  = prg_kernel(&state.prg, "k_hash");
    state.x     = prg_alloc(&state.prg, JOINS_WORDS, 4);
    state.y     = prg_alloc(&state.prg, JOINS_WORDS, 5);
    state.z     = prg_alloc(&state.prg, JOINS_WORDS, 6);
    PRG_CHECK(cuStreamCreate(&state.stream, CU_STREAM_NON_BLOCKING));
    PRG_CHECK(cuStreamCreate(&state.other, CU_STREAM_NON_BLOCKING));
    pthread_barrier_init(&state.barrier, NULL, 2);
    if (pthread_create(&thread, NULL, joins_thread, &state) != 0) {
        perror("pthread_create");
        return 1;
    }

    for (run = 0; run < JOINS_RUNS; ++run) {
        nvtxRangePushA("joins");
        joins_launch(&state, state.stream, state.x, run, 4);
        joins_meet(&state);
        joins_meet(&state);
        joins_launch(&state, state.stream, state.y, run, 4);
        nvtxRangePop();
        if (run % 10 == 9) {
            PRG_CHECK(cuCtxSynchronize());
            prg_print_hash("x", state.x, JOINS_WORDS);
            prg_print_hash("y", state.y, JOINS_WORDS);
        }
    }
    pthread_join(thread, NULL);
    PRG_CHECK(cuCtxSynchronize());
    prg_print_hash("x", state.x, JOINS_WORDS);
    prg_print_hash("y", state.y, JOINS_WORDS);
    prg_print_hash("z", state.z, JOINS_WORDS);

    pthread_barrier_destroy(&state.barrier);
    PRG_CHECK(cuStreamDestroy(state.stream));
    PRG_CHECK(cuStreamDestroy(state.other));
    PRG_CHECK(cuMemFree(state.x));
    PRG_CHECK(cuMemFree(state.y));
    PRG_CHECK(cuMemFree(state.z));
    prg_close(&state.prg);
    return 0;
}
