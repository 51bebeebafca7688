/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of a size: long regions, many of them, many runs.
 *
 *     scale CASE COUNT
 *
 *     ops      a region of COUNT operations, four runs
 *     regions  COUNT regions in turn, three runs each
 *     shapes   a region whose launches have COUNT shapes, one a run
 *     names    COUNT ranges of which each has a name of its own
 *     runs     COUNT runs of a short region
 *     hot      COUNT regions in turn, each tenth of them one of a few
 *
 * SCALE_RESIDENT names a file for the resident set in KB, after the first tenth
 * and at the end. With SCALE_LEAVES the program ends without giving anything
 * back, so that its regions still have what they had.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    SCALE_WORDS   = 64,
    SCALE_BUFFERS = 4,
    SCALE_OFTEN   = 256         /* operations between two syncs, at most */
};


typedef struct scale_state {
    CUstream    stream;
    uint32_t    n;
    CUdeviceptr x[SCALE_BUFFERS];
    CUfunction  chain;
    CUfunction  grid;
    long        resident[2];    /* KB */
} scale_state_t;


/* What the process has in memory, in KB. */
static long scale_resident(void)
{
    long resident = -1;
    FILE *status  = fopen("/proc/self/status", "r");
    char line[256];

    while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            resident = strtol(line + 6, NULL, 10);
        }
    }
    if (status != NULL) {
        fclose(status);
    }
    return resident;
}

/* After so many of so many. */
static void scale_note(scale_state_t *state, unsigned done, unsigned count)
{
    if (done == (count + 9) / 10) {
        PRG_CHECK(cuStreamSynchronize(state->stream));
        state->resident[0] = scale_resident();
    }
}

static void scale_chain(scale_state_t *state, unsigned buffer,
                        uint32_t value)
{
    PRG_LAUNCH(state->chain, state->stream, 1, &state->x[buffer], &value);
}

static void scale_ops(scale_state_t *state, unsigned count)
{
    unsigned run, i;

    for (run = 0; run < 4; ++run) {
        nvtxRangePushA("ops");
        for (i = 0; i < count; ++i) {
            scale_chain(state, i % SCALE_BUFFERS, i % 1000 == 0 ? run : i);
        }
        nvtxRangePop();
        PRG_CHECK(cuStreamSynchronize(state->stream));
        state->resident[0] = run == 1 ? scale_resident() : state->resident[0];
    }
}

static void scale_regions(scale_state_t *state, unsigned count)
{
    unsigned run, region, i;
    char name[32];

    for (run = 0; run < 3; ++run) {
        for (region = 0; region < count; ++region) {
            snprintf(name, sizeof(name), "region %u", region);
            nvtxRangePushA(name);
            for (i = 0; i < 2 + region % 7; ++i) {
                scale_chain(state, i % SCALE_BUFFERS, region * i);
            }
            nvtxRangePop();
        }
        PRG_CHECK(cuStreamSynchronize(state->stream));
        state->resident[0] = run == 1 ? scale_resident() : state->resident[0];
    }
}

/* Grid, block and shared memory go through as many values as there are runs. */
static void scale_shapes(scale_state_t *state, unsigned count)
{
    unsigned run, i;

    for (run = 0; run < count; ++run) {
        nvtxRangePushA("shapes");
        for (i = 0; i < 4; ++i) {
            PRG_CHECK(cuLaunchKernel(
                state->grid, 1 + run % 5, 1, 1, 8 + run / 5 % 7, 1, 1,
                4 * (run / 35), state->stream,
                (void*[]){ &state->x[i], &state->n }, NULL));
        }
        nvtxRangePop();
        if (run % (SCALE_OFTEN / 4) == 0) {
            PRG_CHECK(cuStreamSynchronize(state->stream));
        }
        scale_note(state, run + 1, count);
    }
}

static void scale_names(scale_state_t *state, unsigned count)
{
    unsigned run;
    char name[32];

    for (run = 1; run <= count; ++run) {
        snprintf(name, sizeof(name), "step %u", run);
        nvtxRangePushA(name);
        scale_chain(state, 0, run);
        scale_chain(state, 1, 7);
        nvtxRangePop();
        if (run % (SCALE_OFTEN / 2) == 0) {
            PRG_CHECK(cuStreamSynchronize(state->stream));
        }
        scale_note(state, run, count);
    }
}

static void scale_runs(scale_state_t *state, unsigned count)
{
    unsigned run;

    for (run = 1; run <= count; ++run) {
        nvtxRangePushA("short");
        scale_chain(state, 0, 3);
        scale_chain(state, 1, run % 100 == 0 ? run : 5);
        nvtxRangePop();
        if (run % (SCALE_OFTEN / 2) == 0) {
            PRG_CHECK(cuStreamSynchronize(state->stream));
        }
        scale_note(state, run, count);
    }
}

/* Some regions come often and most seldom. */
static void scale_hot(scale_state_t *state, unsigned count)
{
    unsigned run, region, i;
    char name[32];

    for (run = 0; run < 3; ++run) {
        for (region = 0; region < count; ++region) {
            snprintf(name, sizeof(name), region % 10 == 9 ? "hot %u" :
                     "cold %u", region % 10 == 9 ? region / 10 % 5 : region);
            nvtxRangePushA(name);
            for (i = 0; i < 8; ++i) {
                scale_chain(state, i % SCALE_BUFFERS, i);
            }
            nvtxRangePop();
        }
        PRG_CHECK(cuStreamSynchronize(state->stream));
        state->resident[0] = run == 1 ? scale_resident() : state->resident[0];
    }
}

static const struct {
    const char *name;
    void       (*run)(scale_state_t *state, unsigned count);
} scale_cases[] = {
    {"ops", scale_ops},
    {"regions", scale_regions},
    {"shapes", scale_shapes},
    {"names", scale_names},
    {"runs", scale_runs},
    {"hot", scale_hot}
};

static void scale_print_resident(const scale_state_t *state)
{
    const char *name = getenv("SCALE_RESIDENT");
    FILE *file;

    if (name == NULL) {
        return;
    }
    file = fopen(name, "w");
    if (file == NULL) {
        perror(name);
        exit(EXIT_FAILURE);
    }
    fprintf(file, "%ld %ld\n", state->resident[0], state->resident[1]);
    fclose(file);
}

int main(int argc, char **argv)
{
    scale_state_t state = { .n = SCALE_WORDS };
    prg_context_t prg;
    unsigned i;

    if (argc != 3) {
        fprintf(stderr, "usage: scale CASE COUNT\n");
        return EXIT_FAILURE;
    }
    prg_open(&prg);
    state.chain = prg_kernel(&prg, "k_chain");
    state.grid  = prg_kernel(&prg, "k_grid");
    for (i = 0; i < SCALE_BUFFERS; ++i) {
        state.x[i] = prg_alloc(&prg, state.n, 100 * i);
    }
    PRG_CHECK(cuStreamCreate(&state.stream, CU_STREAM_NON_BLOCKING));

    for (i = 0; i < PRG_COUNT_OF(scale_cases); ++i) {
        if (strcmp(argv[1], scale_cases[i].name) == 0) {
            scale_cases[i].run(&state, (unsigned)strtoul(argv[2], NULL, 10));
        }
    }
    PRG_CHECK(cuStreamSynchronize(state.stream));
    state.resident[1] = scale_resident();
    scale_print_resident(&state);
    for (i = 0; i < SCALE_BUFFERS; ++i) {
        prg_print_hash(argv[1], state.x[i], state.n);
    }
    if (getenv("SCALE_LEAVES") != NULL) {
        return EXIT_SUCCESS;
    }
    for (i = 0; i < SCALE_BUFFERS; ++i) {
        PRG_CHECK(cuMemFree(state.x[i]));
    }
    PRG_CHECK(cuStreamDestroy(state.stream));
    prg_close(&prg);
    return EXIT_SUCCESS;
}
