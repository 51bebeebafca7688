/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions whose calls stay and whose arguments change: pointers that swap, a
 * scalar that drifts, one byte of a struct, every argument at once.
 */
#include <stdio.h>
#include <string.h>

#include <nvtx3/nvToolsExt.h>

#include "kernels.h"
#include "util.h"


enum {
    CHANGING_WORDS    = 80,
    CHANGING_RUNS     = 16,
    CHANGING_LAUNCHES = 6
};


typedef struct changing_state {
    prg_context_t prg;
    CUstream      stream;
    uint32_t      n;
    CUdeviceptr   a;
    CUdeviceptr   b;
} changing_state_t;


static void changing_print(changing_state_t *state, const char *name)
{
    PRG_CHECK(cuStreamSynchronize(state->stream));
    printf("%s\n", name);
    prg_print_hash("  a", state->a, state->n);
    prg_print_hash("  b", state->b, state->n);
}

static void changing_pointers(changing_state_t *state)
{
    CUfunction axpy = prg_kernel(&state->prg, "k_axpy");
    uint32_t factor = 5;
    unsigned run, i;

    for (run = 0; run < CHANGING_RUNS; ++run) {
        CUdeviceptr out = run % 2 ? state->a : state->b;
        CUdeviceptr in  = run % 2 ? state->b : state->a;

        nvtxRangePushA("pointers");
        for (i = 0; i < CHANGING_LAUNCHES; ++i) {
            PRG_LAUNCH(axpy, state->stream, state->n, &out, &in, &state->n,
                       &factor);
        }
        nvtxRangePop();
    }
    changing_print(state, "pointers");
}

static void changing_scalar(changing_state_t *state)
{
    CUfunction scale = prg_kernel(&state->prg, "k_scale");
    CUfunction axpy  = prg_kernel(&state->prg, "k_axpy");
    uint32_t fixed   = 9;
    uint32_t drift   = 1;
    unsigned run, i;

    for (run = 0; run < CHANGING_RUNS; ++run) {
        nvtxRangePushA("scalar");
        for (i = 0; i < CHANGING_LAUNCHES; ++i) {
            PRG_LAUNCH(scale, state->stream, state->n, &state->a, &state->n,
                       &fixed);
            PRG_LAUNCH(axpy, state->stream, state->n, &state->b, &state->a,
                       &state->n, &drift);
        }
        nvtxRangePop();
        drift += 2;
    }
    changing_print(state, "scalar");
}

/* Any byte of the struct, its padding too, whose change must not matter. */
static void changing_struct(changing_state_t *state)
{
    CUfunction kernel = prg_kernel(&state->prg, "k_struct");
    krn_shape_t shape;
    unsigned char *byte = (unsigned char*)&shape;
    size_t run;

    memset(&shape, 0, sizeof(shape));
    shape.width  = 11;
    shape.factor = 0.5;
    for (run = 0; run < sizeof(shape); ++run) {
        nvtxRangePushA("struct");
        PRG_LAUNCH(kernel, state->stream, state->n, &state->a, &shape,
                   &state->n);
        if (run < offsetof(krn_shape_t, factor) ||
            run >= offsetof(krn_shape_t, flags)) {
            byte[run] ^= 1;
        }
        PRG_LAUNCH(kernel, state->stream, state->n, &state->b, &shape,
                   &state->n);
        nvtxRangePop();
    }
    changing_print(state, "struct");
}

static void changing_mixed(changing_state_t *state)
{
    CUfunction kernel = prg_kernel(&state->prg, "k_mixed");
    unsigned run, i;

    for (run = 0; run < CHANGING_RUNS; ++run) {
        nvtxRangePushA("mixed");
        for (i = 0; i < CHANGING_LAUNCHES; ++i) {
            char first     = (char)(run * 7 + i);
            short second   = (short)(-300 * (int)run);
            double third   = run * 0.25 - i;
            uint8_t fourth = (uint8_t)(run + i);
            CUdeviceptr x  = (run + i) % 3 ? state->a : state->b;

            PRG_LAUNCH(kernel, state->stream, state->n, &first, &x, &second,
                       &third, &state->n, &fourth);
        }
        nvtxRangePop();
    }
    changing_print(state, "mixed");
}

/* The program's own copy of the arguments is gone when the work runs. */
static void changing_after_call(changing_state_t *state)
{
    CUfunction scale = prg_kernel(&state->prg, "k_scale");
    unsigned run;

    for (run = 0; run < CHANGING_RUNS; ++run) {
        uint32_t factor = 3 + run / 4;
        CUdeviceptr x   = state->a;

        nvtxRangePushA("after call");
        PRG_LAUNCH(scale, state->stream, state->n, &x, &state->n, &factor);
        factor = 0;
        x      = state->b;
        PRG_LAUNCH(scale, state->stream, state->n, &x, &state->n, &factor);
        factor = 77;
        x      = 0;
        nvtxRangePop();
    }
    changing_print(state, "after call");
}

int main(void)
{
    changing_state_t state = { .n = CHANGING_WORDS };

    prg_open(&state.prg);
    state.a = prg_alloc(&state.prg, state.n, 3);
    state.b = prg_alloc(&state.prg, state.n, 5000);
    PRG_CHECK(cuStreamCreate(&state.stream, CU_STREAM_NON_BLOCKING));

    changing_pointers(&state);
    changing_scalar(&state);
    changing_struct(&state);
    changing_mixed(&state);
    changing_after_call(&state);

    PRG_CHECK(cuStreamDestroy(state.stream));
    PRG_CHECK(cuMemFree(state.a));
    PRG_CHECK(cuMemFree(state.b));
    prg_close(&state.prg);
    return 0;
}
