/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver function that no header has, called in the middle of a region: the
 * simulated driver's cuSimUnknownWork, found by dlsym and by cuGetProcAddress.
 * A driver without it shows that it stays missing.
 */
#include <dlfcn.h>
#include <stdio.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    UNKNOWN_WORDS = 64,
    UNKNOWN_RUNS  = 10
};


typedef CUresult (*unknown_work_t)(CUstream stream, CUdeviceptr address,
                                   unsigned value);


static unknown_work_t unknown_by_dlsym(void)
{
    unknown_work_t work = NULL;
    void *library       = dlopen("libcuda.so.1", RTLD_LAZY);

    if (library != NULL) {
        *(void**)&work = dlsym(library, "cuSimUnknownWork");
    }
    return work;
}

static unknown_work_t unknown_by_proc_address(void)
{
    unknown_work_t work = NULL;
    CUdriverProcAddressQueryResult status;
    CUresult result;

    result = cuGetProcAddress("cuSimUnknownWork", (void**)&work, CUDA_VERSION,
                              CU_GET_PROC_ADDRESS_DEFAULT, &status);
    printf("cuGetProcAddress: %s, status %d\n", prg_error_name(result),
           (int)status);
    return work;
}

static void unknown_play(const prg_context_t *prg, const char *name,
                         unknown_work_t work)
{
    CUfunction scale = prg_kernel(prg, "k_scale");
    CUfunction chain = prg_kernel(prg, "k_chain");
    CUdeviceptr word = prg_alloc(prg, 1, 1);
    CUdeviceptr x    = prg_alloc(prg, UNKNOWN_WORDS, 1);
    uint32_t n       = UNKNOWN_WORDS;
    uint32_t value   = 9;
    CUstream stream;
    unsigned run;

    printf("%s: %s\n", name, work != NULL ? "there" : "missing");
    PRG_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (run = 0; run < UNKNOWN_RUNS; ++run) {
        nvtxRangePushA("unknown");
        PRG_LAUNCH(scale, stream, n, &x, &n, &value);
        PRG_LAUNCH(chain, stream, 1, &word, &value);
        if (work != NULL) {
            PRG_CHECK(work(stream, word, run));
        }
        PRG_LAUNCH(chain, stream, 1, &word, &value);
        PRG_LAUNCH(scale, stream, n, &x, &n, &value);
        if (work != NULL) {
            PRG_CHECK(work(stream, x + 4 * run, run));
        }
        nvtxRangePop();
    }
    PRG_CHECK(cuStreamSynchronize(stream));
    prg_print_hash("  x", x, n);
    prg_print_hash("  word", word, 1);

    PRG_CHECK(cuStreamDestroy(stream));
    PRG_CHECK(cuMemFree(x));
    PRG_CHECK(cuMemFree(word));
}

int main(void)
{
    prg_context_t prg;

    prg_open(&prg);
    unknown_play(&prg, "dlsym", unknown_by_dlsym());
    unknown_play(&prg, "cuGetProcAddress", unknown_by_proc_address());
    prg_close(&prg);
    return 0;
}
