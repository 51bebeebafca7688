/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions whose arguments, or whose sequence, come back every second and every
 * third run, with the two periods in one region as well.
 */
#include <stdio.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    ALTERNATING_WORDS   = 64,
    ALTERNATING_RUNS    = 18,
    ALTERNATING_BUFFERS = 3
};


typedef struct alternating_state {
    CUstream    stream;
    uint32_t    n;
    CUdeviceptr x[ALTERNATING_BUFFERS];
    CUfunction  axpy;
    CUfunction  hash;
} alternating_state_t;


/* Buffers go round with the period, every launch of the run. */
static void alternating_buffers(alternating_state_t *state, const char *name,
                                unsigned period)
{
    uint32_t factor = 3;
    unsigned run, i;

    for (run = 0; run < ALTERNATING_RUNS; ++run) {
        CUdeviceptr out = state->x[run % period];
        CUdeviceptr in  = state->x[(run + 1) % period];

        nvtxRangePushA(name);
        for (i = 0; i < 6; ++i) {
            PRG_LAUNCH(state->axpy, state->stream, state->n, &out, &in,
                       &state->n, &factor);
            PRG_CHECK(cuMemcpyDtoDAsync(in, out, 16 * (1 + run % period),
                                        state->stream));
        }
        nvtxRangePop();
    }
}

/* One launch of many has a period of two, one of three. */
static void alternating_few(alternating_state_t *state)
{
    unsigned run, i;

    for (run = 0; run < ALTERNATING_RUNS; ++run) {
        nvtxRangePushA("few");
        for (i = 0; i < 12; ++i) {
            uint32_t seed = i == 3 ? run % 2 : i == 7 ? run % 3 : i;

            PRG_LAUNCH(state->hash, state->stream, state->n, &state->x[0],
                       &state->n, &seed);
        }
        nvtxRangePop();
    }
}

static void alternating_sequence(alternating_state_t *state, const char *name,
                                 unsigned period)
{
    uint32_t factor = 7;
    unsigned run, i;

    for (run = 0; run < ALTERNATING_RUNS; ++run) {
        nvtxRangePushA(name);
        for (i = 0; i < 8; ++i) {
            if ((i + run) % period == 0) {
                PRG_LAUNCH(state->hash, state->stream, state->n, &state->x[1],
                           &state->n, &factor);
            } else {
                PRG_LAUNCH(state->axpy, state->stream, state->n, &state->x[1],
                           &state->x[2], &state->n, &factor);
            }
        }
        nvtxRangePop();
    }
}

static void alternating_print(alternating_state_t *state, const char *name)
{
    unsigned i;

    PRG_CHECK(cuStreamSynchronize(state->stream));
    for (i = 0; i < ALTERNATING_BUFFERS; ++i) {
        prg_print_hash(name, state->x[i], state->n);
    }
}

int main(void)
{
    alternating_state_t state = { .n = ALTERNATING_WORDS };
    prg_context_t prg;
    unsigned i;

    prg_open(&prg);
    state.axpy = prg_kernel(&prg, "k_axpy");
    state.hash = prg_kernel(&prg, "k_hash");
    for (i = 0; i < ALTERNATING_BUFFERS; ++i) {
        state.x[i] = prg_alloc(&prg, state.n, 100 * i);
    }
    PRG_CHECK(cuStreamCreate(&state.stream, CU_STREAM_NON_BLOCKING));

    alternating_buffers(&state, "two", 2);
    alternating_print(&state, "two");
    alternating_buffers(&state, "three", 3);
    alternating_print(&state, "three");
    alternating_few(&state);
    alternating_print(&state, "few");
    alternating_sequence(&state, "sequence of two", 2);
    alternating_print(&state, "sequence of two");
    alternating_sequence(&state, "sequence of three", 3);
    alternating_print(&state, "sequence of three");

    for (i = 0; i < ALTERNATING_BUFFERS; ++i) {
        PRG_CHECK(cuMemFree(state.x[i]));
    }
    PRG_CHECK(cuStreamDestroy(state.stream));
    prg_close(&prg);
    return 0;
}
