/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies to the device from pageable memory whose source is overwritten as soon
 * as the call has returned, as the driver allows: in regions that replay, that
 * change, that are cut, on two streams, and many runs ahead of the device.
 */
#include <stdio.h>
#include <string.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    PAGEABLE_WORDS = 64,
    PAGEABLE_RUNS  = 30,
    PAGEABLE_LARGE = 128 * 1024
};


typedef struct pageable_state {
    prg_context_t prg;
    CUfunction    axpy, scale;
    CUstream      stream, other;
    CUevent       event;
    CUdeviceptr   x, y, z;
    uint32_t      source[2 * PAGEABLE_WORDS];
} pageable_state_t;


/* A copy, and the source is something else at once. */
static void pageable_copy(pageable_state_t *state, CUdeviceptr to,
                          unsigned offset, uint32_t value, CUstream stream)
{
    uint32_t *source = state->source + offset;
    unsigned i;

    for (i = 0; i < PAGEABLE_WORDS; ++i) {
        source[i] = value * 1000 + i;
    }
    PRG_CHECK(cuMemcpyHtoDAsync(to, source, PAGEABLE_WORDS * 4, stream));
    memset(source, 0xee, PAGEABLE_WORDS * 4);
}

static void pageable_add(pageable_state_t *state, CUdeviceptr y, CUdeviceptr x,
                         CUstream stream)
{
    uint32_t n = PAGEABLE_WORDS, a = 3;

    PRG_LAUNCH(state->axpy, stream, n, &y, &x, &n, &a);
}

/* The offset moves the source and the destination about. */
static void pageable_run(pageable_state_t *state, uint32_t run)
{
    unsigned offset = run % 3 == 0 ? 0 : run % PAGEABLE_WORDS;

    nvtxRangePushA("one stream");
    pageable_copy(state, state->x, offset, run, state->stream);
    pageable_add(state, state->y, state->x, state->stream);
    pageable_copy(state, run % 5 == 4 ? state->z : state->x, 0, run + 100,
                  state->stream);
    pageable_add(state, state->y, state->x, state->stream);
    if (run % 7 == 6) {
        PRG_CHECK(cuStreamSynchronize(state->stream));
    }
    pageable_copy(state, state->x, 1, run + 200, state->stream);
    pageable_add(state, state->y, state->x, state->stream);
    nvtxRangePop();
}

static void pageable_run_two(pageable_state_t *state, uint32_t run)
{
    nvtxRangePushA("two streams");
    pageable_copy(state, state->x, 0, run, state->stream);
    PRG_CHECK(cuEventRecord(state->event, state->stream));
    PRG_CHECK(cuStreamWaitEvent(state->other, state->event, 0));
    pageable_copy(state, state->z, 0, run + 1, state->other);
    pageable_add(state, state->z, state->x, state->other);
    if (run % 6 == 5) {
        pageable_add(state, state->z, state->x, state->other);
    }
    PRG_CHECK(cuEventRecord(state->event, state->other));
    PRG_CHECK(cuStreamWaitEvent(state->stream, state->event, 0));
    pageable_add(state, state->y, state->z, state->stream);
    nvtxRangePop();
}

/* What follows the copy is different in most runs: the copy is then issued by
 * itself, and the next run comes before it is done. */
static void pageable_run_wandering(pageable_state_t *state, uint32_t run)
{
    uint32_t n = PAGEABLE_WORDS, factor = 5;
    unsigned i;

    nvtxRangePushA("wandering");
    pageable_copy(state, state->x, 0, run, state->stream);
    for (i = 0; i < run % 3; ++i) {
        PRG_LAUNCH(state->scale, state->stream, n, &state->x, &n, &factor);
    }
    pageable_add(state, state->y, state->x, state->stream);
    nvtxRangePop();
}

/* Too much to be staged: as plainly. */
static void pageable_run_large(pageable_state_t *state, CUdeviceptr large,
                               uint32_t run)
{
    static uint32_t source[PAGEABLE_LARGE];
    unsigned i;

    for (i = 0; i < PAGEABLE_LARGE; ++i) {
        source[i] = run + i;
    }
    nvtxRangePushA("large");
    pageable_add(state, state->y, state->x, state->stream);
    PRG_CHECK(cuMemcpyHtoDAsync(large, source, sizeof(source),
                                state->stream));
    memset(source, 0xee, sizeof(source));
    pageable_add(state, state->y, large, state->stream);
    pageable_add(state, state->y, large, state->stream);
    nvtxRangePop();
}

int main(void)
{
    static pageable_state_t state;
    CUdeviceptr large;
    uint32_t    run;

    prg_open(&state.prg);
    state.axpy  = prg_kernel(&state.prg, "k_axpy");
    state.scale = prg_kernel(&state.prg, "k_scale");
    state.x     = prg_alloc(&state.prg, PAGEABLE_WORDS, 1);
    state.y     = prg_alloc(&state.prg, PAGEABLE_WORDS, 2);
    state.z     = prg_alloc(&state.prg, PAGEABLE_WORDS, 3);
    PRG_CHECK(cuMemAlloc(&large, PAGEABLE_LARGE * 4));
    PRG_CHECK(cuStreamCreate(&state.stream, CU_STREAM_NON_BLOCKING));
    PRG_CHECK(cuStreamCreate(&state.other, CU_STREAM_NON_BLOCKING));
    PRG_CHECK(cuEventCreate(&state.event, CU_EVENT_DISABLE_TIMING));

    for (run = 0; run < PAGEABLE_RUNS; ++run) {
        pageable_run(&state, run);
    }
    for (run = 0; run < PAGEABLE_RUNS; ++run) {
        pageable_run_two(&state, run);
    }
    for (run = 0; run < 4 * PAGEABLE_RUNS; ++run) {
        pageable_run_wandering(&state, run);
    }
    for (run = 0; run < 6; ++run) {
        pageable_run_large(&state, large, run);
    }
    PRG_CHECK(cuCtxSynchronize());
    prg_print_hash("x", state.x, PAGEABLE_WORDS);
    prg_print_hash("y", state.y, PAGEABLE_WORDS);
    prg_print_hash("z", state.z, PAGEABLE_WORDS);
    prg_print_hash("large", large, PAGEABLE_LARGE);

    PRG_CHECK(cuEventDestroy(state.event));
    PRG_CHECK(cuStreamDestroy(state.stream));
    PRG_CHECK(cuStreamDestroy(state.other));
    PRG_CHECK(cuMemFree(state.x));
    PRG_CHECK(cuMemFree(state.y));
    PRG_CHECK(cuMemFree(state.z));
    PRG_CHECK(cuMemFree(large));
    prg_close(&state.prg);
    return 0;
}
