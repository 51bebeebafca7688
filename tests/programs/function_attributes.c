/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of kernels that are set while a region is replayed: what a launch
 * may ask for changes, by the handle of the function and by that of the kernel
 * in its library, between runs and inside of them. The errors are the result.
 */
#include <stdio.h>

#include <nvtx3/nvToolsExt.h>

#include "kernels_ptx.h"
#include "util.h"


enum {
    FATTR_WORDS  = 128,
    FATTR_RUNS   = 12,
    FATTR_SHARED = 56 * 1024    /* more than a kernel has without asking */
};


typedef struct fattr_state {
    prg_context_t prg;
    CUstream      stream;
    uint32_t      n;
    CUdeviceptr   x;
    CUdeviceptr   word;
    CUfunction    chain;
} fattr_state_t;


typedef struct fattr_handles {
    CUfunction launched;
    /* Where attributes are set. Of two, the first allows, the other forbids. */
    CUfunction function;
    CUkernel   kernel;
} fattr_handles_t;


static const CUfunction_attribute fattr_shared =
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;


static void fattr_set(fattr_state_t *state, const fattr_handles_t *handles,
                      int bytes)
{
    if (handles->kernel != NULL && (handles->function == NULL || bytes == 0)) {
        PRG_CHECK(cuKernelSetAttribute(fattr_shared, bytes, handles->kernel,
                                       state->prg.device));
    } else {
        PRG_CHECK(cuFuncSetAttribute(handles->function, fattr_shared, bytes));
    }
}

static void fattr_chain(fattr_state_t *state, uint32_t value)
{
    PRG_LAUNCH(state->chain, state->stream, 1, &state->word, &value);
}

/* Allowed for three runs, then forbidden for three, allowed again; set to the
 * same value before each launch, as frameworks do. */
static void fattr_play(fattr_state_t *state, const char *name,
                       const fattr_handles_t *handles, int inside)
{
    unsigned run;

    for (run = 0; run < FATTR_RUNS; ++run) {
        int bytes = run / 3 % 2 == 0 ? FATTR_SHARED : 0;
        CUresult result;

        if (!inside) {
            fattr_set(state, handles, bytes);
        }
        nvtxRangePushA(name);
        fattr_chain(state, 1);
        fattr_chain(state, 2);
        if (inside) {
            fattr_set(state, handles, bytes);
        }
        result = cuLaunchKernel(handles->launched, 2, 1, 1, 64, 1, 1,
                                FATTR_SHARED, state->stream,
                                (void*[]){ &state->x, &state->n }, NULL);
        fattr_chain(state, 3);
        fattr_chain(state, 4);
        nvtxRangePop();
        printf("%s %u: %s\n", name, run, prg_error_name(result));
    }
    PRG_CHECK(cuStreamSynchronize(state->stream));
    prg_print_hash("  x", state->x, state->n);
    prg_print_hash("  word", state->word, 1);
}

static void fattr_functions(fattr_state_t *state)
{
    fattr_handles_t handles = { .launched = prg_kernel(&state->prg,
                                                       "k_turn") };

    handles.function = handles.launched;
    fattr_play(state, "function", &handles, 0);
    fattr_play(state, "function, inside", &handles, 1);
}

/* Launched and set by either handle of a kernel. */
static void fattr_library(fattr_state_t *state)
{
    fattr_handles_t handles = { 0 };
    CUlibrary library;
    CUkernel kernel;
    CUfunction function;

    PRG_CHECK(cuLibraryLoadData(&library, krn_kernels_ptx, NULL, NULL, 0, NULL,
                                NULL, 0));
    PRG_CHECK(cuLibraryGetKernel(&kernel, library, "k_turn"));
    PRG_CHECK(cuKernelGetFunction(&function, kernel));
    handles.launched = (CUfunction)kernel;
    handles.kernel   = kernel;
    fattr_play(state, "kernel by kernel", &handles, 0);
    fattr_play(state, "kernel by kernel, inside", &handles, 1);
    handles.launched = function;
    fattr_play(state, "function by kernel", &handles, 0);
    handles.launched = (CUfunction)kernel;
    handles.function = function;
    fattr_play(state, "kernel by both", &handles, 0);
    handles.kernel = NULL;
    fattr_play(state, "kernel by function", &handles, 0);
    PRG_CHECK(cuLibraryUnload(library));
}

int main(void)
{
    fattr_state_t state = { .n = FATTR_WORDS };

    prg_open(&state.prg);
    state.chain = prg_kernel(&state.prg, "k_chain");
    state.x     = prg_alloc(&state.prg, state.n, 3);
    state.word  = prg_alloc(&state.prg, 1, 1);
    PRG_CHECK(cuStreamCreate(&state.stream, CU_STREAM_NON_BLOCKING));

    fattr_functions(&state);
    fattr_library(&state);

    PRG_CHECK(cuStreamDestroy(state.stream));
    PRG_CHECK(cuMemFree(state.x));
    PRG_CHECK(cuMemFree(state.word));
    prg_close(&state.prg);
    return 0;
}
