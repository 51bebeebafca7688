/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that times its work inside of a region, by events around kernels of
 * known length: none of the times may be nothing. On a GPU they are compared
 * with those of a plain run.
 *
 *     elapsed_time [FILE]     writes the times to FILE, in ms, a run a line
 */
#include <stdio.h>
#include <stdlib.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    ELAPSED_WORDS  = 64,
    ELAPSED_RUNS   = 20,
    ELAPSED_EVENTS = 3,
    ELAPSED_NS     = 200000
};


typedef struct elapsed_state {
    prg_context_t prg;
    CUfunction    hash, spin;
    CUstream      stream;
    CUevent       event[ELAPSED_EVENTS];
    CUdeviceptr   x;
} elapsed_state_t;


static void elapsed_spin(elapsed_state_t *state, uint32_t seed)
{
    uint32_t n = ELAPSED_WORDS, ns = ELAPSED_NS;

    PRG_LAUNCH(state->hash, state->stream, n, &state->x, &n, &seed);
    PRG_LAUNCH(state->spin, state->stream, 1, &ns);
}

/* One kernel that takes its time between the first two events, two between the
 * last. */
static void elapsed_region(elapsed_state_t *state)
{
    nvtxRangePushA("timed");
    elapsed_spin(state, 1);
    PRG_CHECK(cuEventRecord(state->event[0], state->stream));
    elapsed_spin(state, 2);
    PRG_CHECK(cuEventRecord(state->event[1], state->stream));
    elapsed_spin(state, 3);
    elapsed_spin(state, 4);
    PRG_CHECK(cuEventRecord(state->event[2], state->stream));
    nvtxRangePop();
}

static void elapsed_look(elapsed_state_t *state, unsigned run, FILE *times)
{
    float ms[2];
    unsigned i;

    PRG_CHECK(cuEventSynchronize(state->event[2]));
    for (i = 0; i < 2; ++i) {
        PRG_CHECK(cuEventElapsedTime(&ms[i], state->event[i],
                                     state->event[i + 1]));
        printf("run %u: %s\n", run,
               ms[i] > 0.0f ? "more than nothing" : "nothing");
    }
    if (times != NULL) {
        fprintf(times, "%f %f\n", (double)ms[0], (double)ms[1]);
    }
}

int main(int argc, char **argv)
{
    static elapsed_state_t state;
    FILE *times = NULL;
    unsigned run, i;

    if (argc > 1 && (times = fopen(argv[1], "w")) == NULL) {
        perror(argv[1]);
        return EXIT_FAILURE;
    }
    prg_open(&state.prg);
    state.hash = prg_kernel(&state.prg, "k_hash");
    state.spin = prg_kernel(&state.prg, "k_spin");
    state.x    = prg_alloc(&state.prg, ELAPSED_WORDS, 1);
    PRG_CHECK(cuStreamCreate(&state.stream, CU_STREAM_NON_BLOCKING));
    for (i = 0; i < ELAPSED_EVENTS; ++i) {
        PRG_CHECK(cuEventCreate(&state.event[i], CU_EVENT_DEFAULT));
    }

    for (run = 0; run < ELAPSED_RUNS; ++run) {
        elapsed_region(&state);
        elapsed_look(&state, run, times);
    }
    PRG_CHECK(cuCtxSynchronize());
    prg_print_hash("x", state.x, ELAPSED_WORDS);

    for (i = 0; i < ELAPSED_EVENTS; ++i) {
        PRG_CHECK(cuEventDestroy(state.event[i]));
    }
    PRG_CHECK(cuStreamDestroy(state.stream));
    PRG_CHECK(cuMemFree(state.x));
    prg_close(&state.prg);
    if (times != NULL && fclose(times) != 0) {
        perror(argv[1]);
        return EXIT_FAILURE;
    }
    return 0;
}
