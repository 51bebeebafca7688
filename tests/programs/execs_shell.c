/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that runs shell commands, before it uses CUDA, inside of a region
 * and after it: they see nothing of it, and their output is their own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    SHELL_WORDS = 64,
    SHELL_RUNS  = 6
};


static void shell_run(void)
{
    char line[100];
    FILE *pipe;
    int status;

    fflush(NULL);
    status = system("exit 3");
    printf("system: %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);

    pipe = popen("echo out; echo error >&2; sh -c 'exit 5'", "r");
    if (pipe == NULL) {
        perror("popen");
        exit(EXIT_FAILURE);
    }
    while (fgets(line, sizeof(line), pipe) != NULL) {
        printf("popen said %s", line);
    }
    status = pclose(pipe);
    printf("popen: %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

int main(void)
{
    uint32_t n = SHELL_WORDS;
    prg_context_t prg;
    CUdeviceptr x;
    CUfunction scale;
    CUstream stream;
    uint32_t run, i;

    shell_run();
    prg_open(&prg);
    scale = prg_kernel(&prg, "k_scale");
    x     = prg_alloc(&prg, n, 2);
    PRG_CHECK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));

    for (run = 0; run < SHELL_RUNS; ++run) {
        nvtxRangePushA("shell");
        for (i = 0; i < 4; ++i) {
            PRG_LAUNCH(scale, stream, n, &x, &n, &i);
            if (i == 1 && run % 2 == 1) {
                shell_run();
            }
        }
        nvtxRangePop();
        PRG_LAUNCH(scale, stream, n, &x, &n, &n);
    }
    PRG_CHECK(cuStreamSynchronize(stream));
    prg_print_hash("x", x, n);

    PRG_CHECK(cuStreamDestroy(stream));
    PRG_CHECK(cuMemFree(x));
    prg_close(&prg);
    shell_run();
    return 0;
}
