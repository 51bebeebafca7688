/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A region that is not the same in all runs, in one way each.
 *
 *     ways CASE
 *
 *     shape_drifts        the grid, block and shared memory of one launch in
 *                         eight are new ones in every run
 *     shape_alternates    those of all launches come back every third run
 *     two_alternatives    four launches are of one kernel or of another, by
 *                         chance
 *     five_alternatives   or of one of five sequences
 *     insertion           every fourth run has two more operations
 *     omission            every fourth run lacks three
 *     another_tail        the last third is one of two, by chance
 *     prefix              runs end early, at one of three places
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    WAYS_WORDS   = 64,
    WAYS_BUFFERS = 3,
    WAYS_RUNS    = 400,
    WAYS_OPS     = 48
};


typedef struct ways_state {
    CUstream    stream;
    uint32_t    n;
    CUdeviceptr x[WAYS_BUFFERS];
    CUfunction  axpy, hash, scale, grid;
    uint32_t    chance;
} ways_state_t;


static uint32_t ways_chance(ways_state_t *s, uint32_t below)
{
    s->chance = s->chance * 1664525u + 1013904223u;
    return (s->chance >> 16) % below;
}

/* Operations that are always the same, by their numbers. */
static void ways_ops(ways_state_t *s, unsigned begin, unsigned end)
{
    uint32_t value;
    unsigned i;

    for (i = begin; i < end; ++i) {
        CUdeviceptr *to   = &s->x[i % WAYS_BUFFERS];
        CUdeviceptr *from = &s->x[(i + 1) % WAYS_BUFFERS];

        value = i;
        if (i % 3 == 0) {
            PRG_LAUNCH(s->axpy, s->stream, s->n, to, from, &s->n, &value);
        } else if (i % 7 == 0) {
            PRG_CHECK(cuMemsetD32Async(*to + 16, value, 8, s->stream));
        } else {
            PRG_LAUNCH(s->hash, s->stream, s->n, to, &s->n, &value);
        }
    }
}

static void ways_shape(ways_state_t *s, unsigned shape)
{
    PRG_CHECK(cuLaunchKernel(s->grid, 1 + shape % 4, 1 + shape / 4 % 2, 1,
                             8 + shape % 50, 1, 1, 4 * (shape % 1000),
                             s->stream, (void*[]){ &s->x[0], &s->n }, NULL));
}

static void ways_shape_drifts(ways_state_t *s, unsigned run)
{
    unsigned i;

    for (i = 0; i < WAYS_OPS; i += 8) {
        ways_shape(s, 37 * run + i);
        ways_ops(s, i, i + 7);
    }
}

static void ways_shape_alternates(ways_state_t *s, unsigned run)
{
    unsigned i;

    for (i = 0; i < WAYS_OPS; ++i) {
        ways_shape(s, i + run % 3);
    }
}

/* One of so many sequences. */
static void ways_alternative(ways_state_t *s, uint32_t which)
{
    uint32_t value = which;
    unsigned i;

    for (i = 0; i < 4; ++i) {
        if ((which >> (i % 3)) & 1) {
            PRG_LAUNCH(s->scale, s->stream, s->n, &s->x[1], &s->n, &value);
        } else {
            PRG_LAUNCH(s->axpy, s->stream, s->n, &s->x[1], &s->x[2], &s->n,
                       &value);
        }
    }
}

static void ways_two_alternatives(ways_state_t *s, unsigned run)
{
    (void)run;
    ways_ops(s, 0, WAYS_OPS / 2);
    ways_alternative(s, ways_chance(s, 2));
    ways_ops(s, WAYS_OPS / 2, WAYS_OPS);
}

static void ways_five_alternatives(ways_state_t *s, unsigned run)
{
    (void)run;
    ways_ops(s, 0, WAYS_OPS / 2);
    ways_alternative(s, ways_chance(s, 5));
    ways_ops(s, WAYS_OPS / 2, WAYS_OPS);
}

static void ways_insertion(ways_state_t *s, unsigned run)
{
    ways_ops(s, 0, WAYS_OPS / 3);
    if (run % 4 == 3) {
        ways_alternative(s, 2);
    }
    ways_ops(s, WAYS_OPS / 3, WAYS_OPS);
}

static void ways_omission(ways_state_t *s, unsigned run)
{
    ways_ops(s, 0, WAYS_OPS / 3);
    ways_ops(s, WAYS_OPS / 3 + (run % 4 == 3 ? 3 : 0), WAYS_OPS);
}

static void ways_another_tail(ways_state_t *s, unsigned run)
{
    unsigned tail = 100 + 3 * ways_chance(s, 2);

    (void)run;
    ways_ops(s, 0, WAYS_OPS * 2 / 3);
    ways_ops(s, tail, tail + WAYS_OPS / 3);
}

static void ways_prefix(ways_state_t *s, unsigned run)
{
    (void)run;
    ways_ops(s, 0, WAYS_OPS - 7 * ways_chance(s, 3));
}

static const struct {
    const char *name;
    void       (*run)(ways_state_t *state, unsigned run);
} ways_cases[] = {
    {"shape_drifts", ways_shape_drifts},
    {"shape_alternates", ways_shape_alternates},
    {"two_alternatives", ways_two_alternatives},
    {"five_alternatives", ways_five_alternatives},
    {"insertion", ways_insertion},
    {"omission", ways_omission},
    {"another_tail", ways_another_tail},
    {"prefix", ways_prefix}
};

static void ways_run(ways_state_t *state, unsigned index)
{
    unsigned run;

    for (run = 0; run < WAYS_RUNS; ++run) {
        nvtxRangePushA(ways_cases[index].name);
        ways_cases[index].run(state, run);
        nvtxRangePop();
        if (run % 20 == 0) {
            PRG_CHECK(cuStreamSynchronize(state->stream));
            prg_print_hash(ways_cases[index].name,
                           state->x[run % WAYS_BUFFERS], state->n);
        }
    }
}

int main(int argc, char **argv)
{
    ways_state_t state = { .n = WAYS_WORDS, .chance = 1 };
    prg_context_t prg;
    unsigned i;

    if (argc != 2) {
        fprintf(stderr, "usage: ways CASE\n");
        return EXIT_FAILURE;
    }
    prg_open(&prg);
    state.axpy  = prg_kernel(&prg, "k_axpy");
    state.hash  = prg_kernel(&prg, "k_hash");
    state.scale = prg_kernel(&prg, "k_scale");
    state.grid  = prg_kernel(&prg, "k_grid");
    for (i = 0; i < WAYS_BUFFERS; ++i) {
        state.x[i] = prg_alloc(&prg, state.n, 100 * i);
    }
    PRG_CHECK(cuStreamCreate(&state.stream, CU_STREAM_NON_BLOCKING));

    for (i = 0; i < PRG_COUNT_OF(ways_cases); ++i) {
        if (strcmp(argv[1], ways_cases[i].name) == 0) {
            ways_run(&state, i);
        }
    }
    PRG_CHECK(cuStreamSynchronize(state.stream));
    for (i = 0; i < WAYS_BUFFERS; ++i) {
        prg_print_hash("at the end", state.x[i], state.n);
        PRG_CHECK(cuMemFree(state.x[i]));
    }
    PRG_CHECK(cuStreamDestroy(state.stream));
    prg_close(&prg);
    return EXIT_SUCCESS;
}
