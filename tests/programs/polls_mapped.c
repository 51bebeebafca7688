/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that waits for its work without calling CUDA: a kernel writes into
 * host memory that is mapped, and the host looks there until it sees it. It
 * does so in the middle of a region, where the work may be held back.
 */
#include <stdio.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    POLLS_WORDS = 64,
    POLLS_RUNS  = 12
};


int main(void)
{
    prg_context_t     prg;
    CUfunction        scale, fill;
    CUstream          stream;
    CUdeviceptr       x, mapped;
    volatile uint32_t *host;
    uint32_t          n = POLLS_WORDS, factor = 3, one = 1, run, value;
    void              *memory;

    prg_open(&prg);
    scale = prg_kernel(&prg, "k_scale");
    fill  = prg_kernel(&prg, "k_fill");
    x     = prg_alloc(&prg, POLLS_WORDS, 7);
    PRG_CHECK(cuMemHostAlloc(&memory, sizeof(*host),
                             CU_MEMHOSTALLOC_DEVICEMAP));
    PRG_CHECK(cuMemHostGetDevicePointer(&mapped, memory, 0));
    PRG_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    host  = memory;
    *host = 0;

    for (run = 1; run <= POLLS_RUNS; ++run) {
        value = run;
        nvtxRangePushA("polls");
        PRG_LAUNCH(scale, stream, n, &x, &n, &factor);
        PRG_LAUNCH(fill, stream, 1, &mapped, &one, &value);
        while (*host < run) {
        }
        PRG_LAUNCH(scale, stream, n, &x, &n, &factor);
        PRG_LAUNCH(scale, stream, n, &x, &n, &factor);
        nvtxRangePop();
        printf("run %u: %u\n", run, *host);
    }
    PRG_CHECK(cuStreamSynchronize(stream));
    prg_print_hash("x", x, POLLS_WORDS);

    PRG_CHECK(cuStreamDestroy(stream));
    PRG_CHECK(cuMemFreeHost(memory));
    PRG_CHECK(cuMemFree(x));
    prg_close(&prg);
    return 0;
}
