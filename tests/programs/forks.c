/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that forks, outside of a region and inside of one with work
 * pending: a child that does no CUDA, one that leaves by exit(), so that exit
 * handlers run in it, and one that runs a shell.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    FORKS_WORDS  = 64,
    FORKS_RUNS   = 9,
    FORKS_STATUS = 7        /* of the child that does no CUDA */
};


/* What the child does. */
typedef enum forks_kind {
    FORKS_LEAVES,
    FORKS_EXITS,
    FORKS_SHELL
} forks_kind_t;


static const char *const forks_names[] = { "child", "exiting child", "shell" };


typedef struct forks_state {
    CUstream    stream;
    uint32_t    n;
    CUdeviceptr x;
    CUfunction  scale;
    CUfunction  hash;
} forks_state_t;


static void forks_work(forks_state_t *state, uint32_t value)
{
    PRG_LAUNCH(state->scale, state->stream, state->n, &state->x, &state->n,
               &value);
    PRG_LAUNCH(state->hash, state->stream, state->n, &state->x, &state->n,
               &value);
}

static void forks_child(forks_kind_t kind)
{
    if (kind == FORKS_SHELL) {
        if (getenv("EMULATOR") != NULL) {
            unsetenv("LD_PRELOAD"); /* the shell is for another CPU */
        }
        execl("/bin/sh", "sh", "-c", "true", (char*)NULL);
        _exit(126);
    }
    /* What a child may well do, and what a tool must stand. */
    nvtxRangePushA("child");
    free(malloc(100));
    nvtxRangePop();
    if (kind == FORKS_EXITS) {
        exit(FORKS_STATUS);
    }
    _exit(FORKS_STATUS);
}

static void forks_fork(forks_kind_t kind)
{
    int status = 0;
    pid_t child;

    fflush(NULL);
    child = fork();
    if (child == 0) {
        forks_child(kind);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("fork");
        exit(EXIT_FAILURE);
    }
    printf("%s: exited %d, status %d\n", forks_names[kind],
           WIFEXITED(status), WEXITSTATUS(status));
}

int main(void)
{
    forks_state_t state = { .n = FORKS_WORDS };
    prg_context_t prg;
    unsigned run;

    forks_fork(FORKS_LEAVES);
    forks_fork(FORKS_EXITS);
    forks_fork(FORKS_SHELL);

    prg_open(&prg);
    state.scale = prg_kernel(&prg, "k_scale");
    state.hash  = prg_kernel(&prg, "k_hash");
    state.x     = prg_alloc(&prg, state.n, 8);
    PRG_CHECK(cuStreamCreate(&state.stream, CU_STREAM_DEFAULT));

    for (run = 0; run < FORKS_RUNS; ++run) {
        nvtxRangePushA("forks");
        forks_work(&state, 3);
        forks_work(&state, 4);
        if (run % 3 == 1) {
            forks_fork((forks_kind_t)(run / 3));
        }
        forks_work(&state, 5);
        nvtxRangePop();
        if (run % 3 == 2) {
            forks_fork((forks_kind_t)(run / 3));
        }
    }
    PRG_CHECK(cuStreamSynchronize(state.stream));
    prg_print_hash("x", state.x, state.n);

    PRG_CHECK(cuStreamDestroy(state.stream));
    PRG_CHECK(cuMemFree(state.x));
    prg_close(&prg);
    return 0;
}
