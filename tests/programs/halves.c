/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two threads that share an allocation and nothing else: one has a region that
 * works on the first half, the other works on the second, on a stream of its
 * own and as fast as it can: without a region, or with one ("both").
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    HALVES_WORDS  = 4096, /* of each half */
    HALVES_RUNS   = 60,
    HALVES_ROUNDS = 400,
    HALVES_UNIT   = 4
};


typedef struct halves_state {
    prg_context_t prg;
    CUfunction    hash;
    CUdeviceptr   first, second;
    int           both;
} halves_state_t;


static void halves_launch(const halves_state_t *state, CUstream stream,
                          CUdeviceptr half, uint32_t seed)
{
    uint32_t n = HALVES_WORDS;

    PRG_LAUNCH(state->hash, stream, n, &half, &n, &seed);
}

static void *halves_second(void *arg)
{
    const halves_state_t *state = arg;
    CUstream             stream;
    uint32_t             round, i;

    PRG_CHECK(cuCtxSetCurrent(state->prg.context));
    PRG_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (round = 0; round < HALVES_ROUNDS; round += HALVES_UNIT) {
        if (state->both) {
            nvtxRangePushA("second");
        }
        for (i = 0; i < HALVES_UNIT; ++i) {
            halves_launch(state, stream, state->second, round + i);
        }
        if (state->both) {
            nvtxRangePop();
        }
        /* A copy that is done when the next launch comes. */
        PRG_CHECK(cuStreamSynchronize(stream));
        PRG_CHECK(cuMemcpyHtoD(state->second, &round, sizeof(round)));
        PRG_CHECK(cuStreamSynchronize(CU_STREAM_LEGACY));
    }
    PRG_CHECK(cuStreamDestroy(stream));
    return NULL;
}

int main(int argc, char **argv)
{
    static halves_state_t state;
    CUstream  stream;
    pthread_t thread;
    uint32_t  run, i;

    state.both = (argc > 1) && !strcmp(argv[1], "both");
    prg_open(&state.prg);
    state.hash   = prg_kernel(&state.prg, "k_hash");
    state.first  = prg_alloc(&state.prg, 2 * HALVES_WORDS, 7);
    state.second = state.first + HALVES_WORDS * sizeof(uint32_t);
    PRG_CHECK(cuCtxSynchronize());
    PRG_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    if (pthread_create(&thread, NULL, halves_second, &state) != 0) {
        perror("pthread_create");
        return 1;
    }
    for (run = 0; run < HALVES_RUNS; ++run) {
        nvtxRangePushA("halves");
        for (i = 0; i < 6; ++i) {
            halves_launch(&state, stream, state.first, run % 3);
        }
        nvtxRangePop();
    }
    pthread_join(thread, NULL);
    PRG_CHECK(cuCtxSynchronize());
    prg_print_hash("first", state.first, HALVES_WORDS);
    prg_print_hash("second", state.second, HALVES_WORDS);
    PRG_CHECK(cuStreamDestroy(stream));
    PRG_CHECK(cuMemFree(state.first));
    prg_close(&state.prg);
    return 0;
}
