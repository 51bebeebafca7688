/* SPDX-License-Identifier: Apache-2.0 */
/* A region that does the same every time: the plain case of a replay. */
#include <stdio.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    CONST_WORDS = 96,
    CONST_RUNS  = 12,
    CONST_LOOPS = 5
};


int main(void)
{
    uint32_t n    = CONST_WORDS;
    uint32_t a    = 3;
    uint32_t seed = 17;
    CUdeviceptr x, y, z;
    CUfunction scale, axpy, add3, hash, nothing;
    prg_context_t prg;
    CUstream stream;
    unsigned run, loop;

    prg_open(&prg);
    scale   = prg_kernel(&prg, "k_scale");
    axpy    = prg_kernel(&prg, "k_axpy");
    add3    = prg_kernel(&prg, "k_add3");
    hash    = prg_kernel(&prg, "k_hash");
    nothing = prg_kernel(&prg, "k_nothing");
    x       = prg_alloc(&prg, n, 1);
    y       = prg_alloc(&prg, n, 1000);
    z       = prg_alloc(&prg, n, 1000000);
    PRG_CHECK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));

    for (run = 0; run < CONST_RUNS; ++run) {
        nvtxRangePushA("constant");
        for (loop = 0; loop < CONST_LOOPS; ++loop) {
            PRG_LAUNCH(scale, stream, n, &x, &n, &a);
            PRG_LAUNCH(axpy, stream, n, &y, &x, &n, &a);
            PRG_LAUNCH(nothing, stream, 1, NULL);
            PRG_LAUNCH(add3, stream, n, &z, &x, &y, &n);
            PRG_LAUNCH(hash, stream, n, &x, &n, &seed);
        }
        nvtxRangePop();
        if (run % 4 == 3) {
            PRG_CHECK(cuStreamSynchronize(stream));
            prg_print_hash("x", x, n);
        }
    }
    PRG_CHECK(cuStreamSynchronize(stream));
    prg_print_hash("x", x, n);
    prg_print_hash("y", y, n);
    prg_print_hash("z", z, n);

    PRG_CHECK(cuStreamDestroy(stream));
    PRG_CHECK(cuMemFree(x));
    PRG_CHECK(cuMemFree(y));
    PRG_CHECK(cuMemFree(z));
    prg_close(&prg);
    return 0;
}
