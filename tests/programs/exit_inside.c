/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program calls exit() inside of a region, with work pending, and looks at
 * the driver once more from an exit handler. All that is promised is a clean
 * end with the program's own status.
 */
#include <stdio.h>
#include <stdlib.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    EXIT_WORDS = 64,
    EXIT_RUNS  = 5
};


static CUstream exit_stream;


/* Registered before cuInit, so it runs after the driver's own handlers: any
 * answer is right, only not a crash. */
static void exit_late_handler(void)
{
    (void)cuStreamQuery(exit_stream);
    nvtxRangePop();
    printf("end\n");
}

int main(void)
{
    uint32_t n      = EXIT_WORDS;
    uint32_t factor = 3;
    prg_context_t prg;
    CUdeviceptr x;
    CUfunction scale;
    uint32_t run, i;

    if (atexit(exit_late_handler) != 0) {
        return EXIT_FAILURE;
    }
    prg_open(&prg);
    scale = prg_kernel(&prg, "k_scale");
    x     = prg_alloc(&prg, n, 2);
    PRG_CHECK(cuStreamCreate(&exit_stream, CU_STREAM_DEFAULT));

    for (run = 0; run < EXIT_RUNS; ++run) {
        nvtxRangePushA("exit");
        for (i = 0; i < 8; ++i) {
            PRG_LAUNCH(scale, exit_stream, n, &x, &n, &factor);
            if (run == EXIT_RUNS - 1 && i == 5) {
                printf("leaving\n");
                exit(EXIT_SUCCESS);
            }
        }
        nvtxRangePop();
        if (run == EXIT_RUNS - 2) {
            prg_print_hash("x", x, n);
        }
    }
    return EXIT_FAILURE;
}
