/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules and libraries that come and go: a handle whose value now means
 * another kernel, kernels of libraries (CUkernel), a variable of a module, and
 * loading in the middle of a region.
 */
#include <stdio.h>

#include <nvtx3/nvToolsExt.h>

#include "kernels.h"
#include "kernels_ptx.h"
#include "util.h"


enum {
    MODULES_WORDS = 64,
    MODULES_RUNS  = 9
};


typedef struct modules_state {
    prg_context_t prg;
    CUstream      stream;
    uint32_t      n;
    CUdeviceptr   x;
    CUdeviceptr   word;
    CUfunction    chain;
} modules_state_t;


static void modules_print(modules_state_t *state, const char *name)
{
    PRG_CHECK(cuStreamSynchronize(state->stream));
    printf("%s\n", name);
    prg_print_hash("  x", state->x, state->n);
    prg_print_hash("  word", state->word, 1);
}

/* k_scale and k_hash take the same arguments, so only the handle tells. */
static void modules_reload(modules_state_t *state)
{
    static const char *const names[] = { "k_scale", "k_hash", "k_fill" };
    uint32_t one   = 1;
    uint32_t value = 5;
    unsigned run;

    for (run = 0; run < MODULES_RUNS; ++run) {
        CUmodule module;
        CUfunction kernel;
        unsigned i;

        PRG_CHECK(cuModuleLoadData(&module, krn_kernels_ptx));
        PRG_CHECK(cuModuleGetFunction(&kernel, module,
                                      names[run % PRG_COUNT_OF(names)]));
        for (i = 0; i < 3; ++i) {
            nvtxRangePushA("reload");
            PRG_LAUNCH(state->chain, state->stream, 1, &state->word, &one);
            PRG_LAUNCH(kernel, state->stream, state->n, &state->x, &state->n,
                       &value);
            PRG_LAUNCH(state->chain, state->stream, 1, &state->word, &one);
            nvtxRangePop();
        }
        PRG_CHECK(cuStreamSynchronize(state->stream));
        PRG_CHECK(cuModuleUnload(module));
    }
    modules_print(state, "reload");
}

/* Another kernel with other arguments under what may be the same handle. */
static void modules_other_arguments(modules_state_t *state)
{
    krn_shape_t shape = { .width = 3, .offset = 1, .factor = 2.0 };
    uint32_t value    = 5;
    unsigned run;

    for (run = 0; run < MODULES_RUNS; ++run) {
        CUmodule module;
        CUfunction kernel;

        PRG_CHECK(cuModuleLoadData(&module, krn_kernels_ptx));
        PRG_CHECK(cuModuleGetFunction(&kernel, module,
                                      run % 2 ? "k_struct" : "k_scale"));
        nvtxRangePushA("other arguments");
        if (run % 2) {
            PRG_LAUNCH(kernel, state->stream, state->n, &state->x, &shape,
                       &state->n);
        } else {
            PRG_LAUNCH(kernel, state->stream, state->n, &state->x, &state->n,
                       &value);
        }
        nvtxRangePop();
        PRG_CHECK(cuStreamSynchronize(state->stream));
        PRG_CHECK(cuModuleUnload(module));
    }
    modules_print(state, "other arguments");
}

static void modules_library(modules_state_t *state)
{
    CUlibrary library;
    CUkernel kernel;
    CUfunction function;
    unsigned run, i;

    for (i = 0; i < 2; ++i) {
        PRG_CHECK(cuLibraryLoadData(&library, krn_kernels_ptx, NULL, NULL, 0,
                                    NULL, NULL, 0));
        PRG_CHECK(cuLibraryGetKernel(&kernel, library,
                                     i == 0 ? "k_scale" : "k_hash"));
        PRG_CHECK(cuKernelGetFunction(&function, kernel));
        for (run = 0; run < MODULES_RUNS; ++run) {
            uint32_t value = run / 3;

            nvtxRangePushA("library");
            PRG_LAUNCH((CUfunction)kernel, state->stream, state->n, &state->x,
                       &state->n, &value);
            PRG_LAUNCH(function, state->stream, state->n, &state->x, &state->n,
                       &value);
            PRG_LAUNCH((CUfunction)kernel, state->stream, state->n, &state->x,
                       &state->n, &value);
            nvtxRangePop();
        }
        PRG_CHECK(cuStreamSynchronize(state->stream));
        PRG_CHECK(cuLibraryUnload(library));
    }
    modules_print(state, "library");
}

/* A kernel that reaches memory without any argument that says so. */
static void modules_variable(modules_state_t *state)
{
    CUfunction kernel = prg_kernel(&state->prg, "k_global");
    CUdeviceptr variable;
    uint32_t value = 1;
    size_t size;
    unsigned run;

    PRG_CHECK(cuModuleGetGlobal(&variable, &size, state->prg.module,
                                "krn_global"));
    printf("variable of %zu bytes\n", size);
    for (run = 0; run < MODULES_RUNS; ++run) {
        nvtxRangePushA("variable");
        PRG_CHECK(cuMemsetD32Async(variable, run, 1, state->stream));
        PRG_LAUNCH(kernel, state->stream, 1, &value);
        PRG_LAUNCH(kernel, state->stream, 1, &run);
        PRG_CHECK(cuMemcpyDtoDAsync(state->x + 4 * run, variable, 4,
                                    state->stream));
        nvtxRangePop();
    }
    modules_print(state, "variable");
}

static void modules_load_inside(modules_state_t *state)
{
    uint32_t one = 1;
    unsigned run;

    for (run = 0; run < MODULES_RUNS; ++run) {
        CUmodule module;
        CUfunction kernel;

        nvtxRangePushA("load inside");
        PRG_LAUNCH(state->chain, state->stream, 1, &state->word, &one);
        PRG_LAUNCH(state->chain, state->stream, 1, &state->word, &one);
        PRG_CHECK(cuModuleLoadDataEx(&module, krn_kernels_ptx, 0, NULL, NULL));
        PRG_CHECK(cuModuleGetFunction(&kernel, module, "k_hash"));
        PRG_LAUNCH(kernel, state->stream, state->n, &state->x, &state->n,
                   &run);
        PRG_LAUNCH(state->chain, state->stream, 1, &state->word, &run);
        PRG_CHECK(cuStreamSynchronize(state->stream));
        PRG_CHECK(cuModuleUnload(module));
        nvtxRangePop();
    }
    modules_print(state, "load inside");
}

int main(void)
{
    modules_state_t state = { .n = MODULES_WORDS };

    prg_open(&state.prg);
    state.chain = prg_kernel(&state.prg, "k_chain");
    state.x     = prg_alloc(&state.prg, state.n, 4);
    state.word  = prg_alloc(&state.prg, 1, 1);
    PRG_CHECK(cuStreamCreate(&state.stream, CU_STREAM_NON_BLOCKING));

    modules_reload(&state);
    modules_other_arguments(&state);
    modules_library(&state);
    modules_variable(&state);
    modules_load_inside(&state);

    PRG_CHECK(cuStreamDestroy(state.stream));
    PRG_CHECK(cuMemFree(state.x));
    PRG_CHECK(cuMemFree(state.word));
    prg_close(&state.prg);
    return 0;
}
