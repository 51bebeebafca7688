/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches that the driver refuses, in the middle of a region: in every run,
 * and only in one of them. The program sees each error where it made it, and
 * goes on.
 */
#include <stdio.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    BAD_WORDS = 64,
    BAD_RUNS  = 9
};


typedef struct bad_state {
    CUstream    stream;
    uint32_t    n;
    CUdeviceptr x;
    CUdeviceptr word;
    CUfunction  scale;
    CUfunction  chain;
} bad_state_t;


typedef struct bad_shape {
    const char *name;
    unsigned   grid;
    unsigned   block;
    unsigned   shared;        /* bytes */
} bad_shape_t;


static const bad_shape_t bad_shapes[] = {
    { "block too large",         1, 2048, 0 },
    { "no block",                1, 0,    0 },
    { "no grid",                 0, 64,   0 },
    { "too much shared memory",  1, 64,   1u << 20 }
};


static void bad_good_work(bad_state_t *state, uint32_t value)
{
    uint32_t factor = 3;

    PRG_LAUNCH(state->scale, state->stream, state->n, &state->x, &state->n,
               &factor);
    PRG_LAUNCH(state->chain, state->stream, 1, &state->word, &value);
}

static void bad_launch(bad_state_t *state, const bad_shape_t *shape)
{
    uint32_t value = 99;
    CUresult result;

    result = cuLaunchKernel(state->chain, shape->grid, 1, 1, shape->block, 1, 1,
                            shape->shared, state->stream,
                            (void*[]){ &state->word, &value }, NULL);
    printf("%s: %s\n", shape->name, prg_error_name(result));
}

static void bad_play(bad_state_t *state, const bad_shape_t *shape,
                     int in_run /* -1: in all */)
{
    int run;

    for (run = 0; run < BAD_RUNS; ++run) {
        nvtxRangePushA(shape->name);
        bad_good_work(state, 1);
        bad_good_work(state, 2);
        if (in_run < 0 || in_run == run) {
            bad_launch(state, shape);
        }
        bad_good_work(state, 3);
        nvtxRangePop();
    }
    PRG_CHECK(cuStreamSynchronize(state->stream));
    prg_print_hash("  x", state->x, state->n);
    prg_print_hash("  word", state->word, 1);
}

/* A set and a copy that go nowhere. */
static void bad_addresses(bad_state_t *state)
{
    unsigned run;

    for (run = 0; run < BAD_RUNS; ++run) {
        nvtxRangePushA("addresses");
        bad_good_work(state, 1);
        if (run == 4) {
            printf("set: %s\n",
                   prg_error_name(cuMemsetD32Async(0, 1, 4, state->stream)));
            printf("copy: %s\n",
                   prg_error_name(cuMemcpyDtoDAsync(0, state->x, 16,
                                                    state->stream)));
        }
        bad_good_work(state, 2);
        nvtxRangePop();
    }
    PRG_CHECK(cuStreamSynchronize(state->stream));
    prg_print_hash("  word", state->word, 1);
}

int main(void)
{
    bad_state_t state = { .n = BAD_WORDS };
    prg_context_t prg;
    size_t i;

    prg_open(&prg);
    state.scale = prg_kernel(&prg, "k_scale");
    state.chain = prg_kernel(&prg, "k_chain");
    state.x     = prg_alloc(&prg, state.n, 8);
    state.word  = prg_alloc(&prg, 1, 1);
    PRG_CHECK(cuStreamCreate(&state.stream, CU_STREAM_DEFAULT));

    for (i = 0; i < PRG_COUNT_OF(bad_shapes); ++i) {
        bad_play(&state, &bad_shapes[i], -1);
        bad_play(&state, &bad_shapes[i], 0);
        bad_play(&state, &bad_shapes[i], BAD_RUNS / 2);
    }
    bad_addresses(&state);

    PRG_CHECK(cuStreamDestroy(state.stream));
    PRG_CHECK(cuMemFree(state.x));
    PRG_CHECK(cuMemFree(state.word));
    prg_close(&prg);
    return 0;
}
