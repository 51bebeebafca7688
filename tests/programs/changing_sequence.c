/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A region whose sequence of launches changes from run to run: another kernel
 * in the middle, fewer, more, none, another grid, block or shared memory, and
 * back to what it was.
 */
#include <stdio.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    SEQUENCE_WORDS = 128
};


typedef struct sequence_state {
    CUstream    stream;
    uint32_t    n;
    CUdeviceptr x;
    CUdeviceptr y;
    CUdeviceptr word;
    CUfunction  axpy;
    CUfunction  chain;
    CUfunction  hash;
    CUfunction  scale;
    CUfunction  turn;
} sequence_state_t;


static void sequence_turn(sequence_state_t *state, unsigned block,
                          unsigned shared)
{
    unsigned blocks = state->n / block;

    PRG_CHECK(cuLaunchKernel(state->turn, blocks, 1, 1, block, 1, 1, shared,
                             state->stream, (void*[]){ &state->x, &state->n },
                             NULL));
}

/* Each letter is a launch. */
static void sequence_run(sequence_state_t *state, const char *letters)
{
    CUstream stream = state->stream;
    uint32_t value  = 7;

    nvtxRangePushA("sequence");
    for (; *letters != '\0'; ++letters) {
        switch (*letters) {
        case 'a':
            PRG_LAUNCH(state->axpy, stream, state->n, &state->x, &state->y,
                       &state->n, &value);
            break;
        case 'b':
            PRG_LAUNCH(state->axpy, stream, state->n, &state->y, &state->x,
                       &state->n, &value);
            break;
        case 'c':
            PRG_LAUNCH(state->chain, stream, 1, &state->word, &value);
            break;
        case 'h':
            PRG_LAUNCH(state->hash, stream, state->n, &state->x, &state->n,
                       &value);
            break;
        case 's':
            PRG_LAUNCH(state->scale, stream, state->n, &state->x, &state->n,
                       &value);
            break;
        case 'S':       /* the same with a wider grid */
            PRG_LAUNCH(state->scale, stream, 4 * state->n, &state->x, &state->n,
                       &value);
            break;
        case 't':
            sequence_turn(state, 32, 32 * sizeof(uint32_t));
            break;
        case 'T':       /* the same with another block and shared memory */
            sequence_turn(state, 64, 64 * sizeof(uint32_t));
            break;
        case 'U':       /* the same with more shared memory than needed */
            sequence_turn(state, 32, 1024);
            break;
        default:
            break;
        }
    }
    nvtxRangePop();
}

int main(void)
{
    static const char *const runs[] = {
        "abcabc", "abcabc", "abcabc",       /* the sequence */
        "abcabh", "abcabc",                 /* the last differs */
        "hbcabc", "abcabc",                 /* the first differs */
        "abhabc", "abcabc", "abhabc",       /* one in the middle */
        "abc", "abcabc", "abc",             /* shorter */
        "abcabcabc", "abcabcabc", "abcabc", /* longer */
        "", "abcabc", "",                   /* nothing at all */
        "scs", "ScS", "scs", "scS", "scs",  /* another grid */
        "ctctc", "cTctc", "cUcUc", "ctctc", /* block and shared memory */
        "cccccccccccccccccccccccccccccccccccccccccccccccccccc",
        "cccccccccccccccccccccccccccccccccccccccccccccccccccc",
        "cccccccccccccccccccccccccchccccccccccccccccccccccccc",
        "abcabc", "abcabc"
    };
    sequence_state_t state = { .n = SEQUENCE_WORDS };
    prg_context_t prg;
    size_t i;

    prg_open(&prg);
    state.axpy  = prg_kernel(&prg, "k_axpy");
    state.chain = prg_kernel(&prg, "k_chain");
    state.hash  = prg_kernel(&prg, "k_hash");
    state.scale = prg_kernel(&prg, "k_scale");
    state.turn  = prg_kernel(&prg, "k_turn");
    state.x     = prg_alloc(&prg, state.n, 1);
    state.y     = prg_alloc(&prg, state.n, 100);
    state.word  = prg_alloc(&prg, 1, 1);
    PRG_CHECK(cuStreamCreate(&state.stream, CU_STREAM_DEFAULT));

    for (i = 0; i < PRG_COUNT_OF(runs); ++i) {
        sequence_run(&state, runs[i]);
        if (i % 8 == 7) {
            prg_print_hash("word", state.word, 1);
        }
    }
    PRG_CHECK(cuStreamSynchronize(state.stream));
    prg_print_hash("x", state.x, state.n);
    prg_print_hash("y", state.y, state.n);
    prg_print_hash("word", state.word, 1);

    PRG_CHECK(cuStreamDestroy(state.stream));
    PRG_CHECK(cuMemFree(state.x));
    PRG_CHECK(cuMemFree(state.y));
    PRG_CHECK(cuMemFree(state.word));
    prg_close(&prg);
    return 0;
}
