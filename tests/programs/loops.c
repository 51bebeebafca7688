/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops without any marks, chosen by a seed: flat and nested ones, with buffers
 * that change places, values that drift, waits, and something more in some of
 * the rounds; in one thread or in two at a time.
 *
 *     loops SEED [THREADS]
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "util.h"


enum {
    LOOPS_WORDS   = 64,
    LOOPS_BUFFERS = 4,
    LOOPS_STEPS   = 24, /* most launches in one round */
    LOOPS_LOOPS   = 3,  /* in a program, each of them run several times */
    LOOPS_RUNS    = 3,
    LOOPS_THREADS = 2
};


typedef struct loops_step {
    unsigned kernel;     /* k_hash, k_scale or k_axpy */
    unsigned to, from;
    bool     drifts;     /* its value is another one each round */
} loops_step_t;


typedef struct loops_loop {
    unsigned     num_steps, num_inner; /* the last steps are a loop */
    unsigned     inner_rounds;         /* in each round; 0: there is none */
    unsigned     rounds;
    unsigned     turn;    /* buffers change places each round: how many */
    unsigned     waits;   /* 0: never; 1: each round waits; 2: copies */
    unsigned     extra;   /* one step more in every so manieth round, or 0 */
    loops_step_t step[LOOPS_STEPS];
} loops_loop_t;


typedef struct loops_state {
    const prg_context_t *prg;
    uint64_t            chance;
    CUfunction          kernel[3];
    CUstream            stream;
    CUdeviceptr         buffer[LOOPS_BUFFERS];
    loops_loop_t        loop[LOOPS_LOOPS];
    uint64_t            sum; /* of what was copied to the host */
} loops_state_t;


static unsigned loops_next(loops_state_t *state, unsigned below)
{
    state->chance = state->chance * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((state->chance >> 33) % below);
}

static void loops_launch(const loops_state_t *state, const loops_step_t *step,
                         const loops_loop_t *loop, unsigned round)
{
    unsigned    shift = loop->turn > 0 ? round % loop->turn : 0;
    CUdeviceptr to    = state->buffer[(step->to + shift) % LOOPS_BUFFERS];
    CUdeviceptr from  = state->buffer[(step->from + shift) % LOOPS_BUFFERS];
    uint32_t    n     = LOOPS_WORDS;
    uint32_t    value = step->drifts ? round : 3;

    if (step->kernel == 2) {
        PRG_LAUNCH(state->kernel[2], state->stream, n, &to, &from, &n, &value);
    } else {
        PRG_LAUNCH(state->kernel[step->kernel], state->stream, n, &to, &n,
                   &value);
    }
}

static void loops_round(loops_state_t *state, const loops_loop_t *loop,
                        unsigned round)
{
    uint32_t word;
    unsigned i, inner;

    for (i = 0; i < loop->num_steps - loop->num_inner; ++i) {
        loops_launch(state, &loop->step[i], loop, round);
    }
    for (inner = 0; inner < loop->inner_rounds; ++inner) {
        for (i = loop->num_steps - loop->num_inner; i < loop->num_steps; ++i) {
            loops_launch(state, &loop->step[i], loop, round);
        }
    }
    if ((loop->extra > 0) && (round % loop->extra == loop->extra - 1)) {
        loops_launch(state, &loop->step[0], loop, round);
    }
    if (loop->waits == 1) {
        PRG_CHECK(cuStreamSynchronize(state->stream));
    } else if (loop->waits == 2) {
        PRG_CHECK(cuMemcpyDtoHAsync(&word, state->buffer[0], sizeof(word),
                                    state->stream));
        PRG_CHECK(cuStreamSynchronize(state->stream));
        state->sum = state->sum * 31 + word;
    }
}

static void loops_make(loops_state_t *state, loops_loop_t *loop)
{
    loops_step_t *step;
    unsigned i;

    loop->num_steps = 4 + loops_next(state, LOOPS_STEPS - 4);
    if (loops_next(state, 3) == 0) {
        loop->num_inner    = 2 + loops_next(state, loop->num_steps - 2);
        loop->inner_rounds = 2 + loops_next(state, 10);
    }
    loop->rounds = 60 + loops_next(state, 60);
    loop->turn   = loops_next(state, 4);
    loop->waits  = loops_next(state, 3);
    loop->extra  = loops_next(state, 4) == 0 ? 10 : 0;
    for (i = 0; i < loop->num_steps; ++i) {
        step         = &loop->step[i];
        step->kernel = loops_next(state, 3);
        step->to     = loops_next(state, LOOPS_BUFFERS);
        step->from   = (step->to + 1 + loops_next(state, LOOPS_BUFFERS - 1)) %
                       LOOPS_BUFFERS;
        step->drifts = loops_next(state, 4) == 0;
    }
}

static void *loops_run(void *arg)
{
    loops_state_t *state = arg;
    unsigned run, i, round;

    PRG_CHECK(cuCtxSetCurrent(state->prg->context));
    for (run = 0; run < LOOPS_RUNS; ++run) {
        for (i = 0; i < LOOPS_LOOPS; ++i) {
            for (round = 0; round < state->loop[i].rounds; ++round) {
                loops_round(state, &state->loop[i], round);
            }
        }
    }
    PRG_CHECK(cuStreamSynchronize(state->stream));
    return NULL;
}

static void loops_open(loops_state_t *state, const prg_context_t *prg,
                       uint64_t seed)
{
    static const char *const names[] = { "k_hash", "k_scale", "k_axpy" };
    unsigned i;

    state->prg    = prg;
    state->chance = seed * 0x9e3779b97f4a7c15u + 1;
    for (i = 0; i < 3; ++i) {
        state->kernel[i] = prg_kernel(prg, names[i]);
    }
    for (i = 0; i < LOOPS_BUFFERS; ++i) {
        state->buffer[i] = prg_alloc(prg, LOOPS_WORDS, 7 * i);
    }
    PRG_CHECK(cuCtxSynchronize());
    PRG_CHECK(cuStreamCreate(&state->stream, CU_STREAM_NON_BLOCKING));
    for (i = 0; i < LOOPS_LOOPS; ++i) {
        loops_make(state, &state->loop[i]);
    }
}

static void loops_close(loops_state_t *state)
{
    unsigned i;

    for (i = 0; i < LOOPS_BUFFERS; ++i) {
        prg_print_hash("buffer", state->buffer[i], LOOPS_WORDS);
    }
    printf("copied %016llx\n", (unsigned long long)state->sum);
    PRG_CHECK(cuStreamDestroy(state->stream));
    for (i = 0; i < LOOPS_BUFFERS; ++i) {
        PRG_CHECK(cuMemFree(state->buffer[i]));
    }
}

int main(int argc, char **argv)
{
    static loops_state_t state[LOOPS_THREADS];
    prg_context_t prg;
    pthread_t     thread[LOOPS_THREADS];
    unsigned      threads, i;
    uint64_t      seed;

    seed    = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    threads = argc > 2 && argv[2][0] == '2' ? 2 : 1;
    prg_open(&prg);
    for (i = 0; i < threads; ++i) {
        loops_open(&state[i], &prg, seed + i * 1000003);
    }
    for (i = 1; i < threads; ++i) {
        if (pthread_create(&thread[i], NULL, loops_run, &state[i]) != 0) {
            perror("pthread_create");
            return 1;
        }
    }
    loops_run(&state[0]);
    for (i = 1; i < threads; ++i) {
        pthread_join(thread[i], NULL);
    }
    for (i = 0; i < threads; ++i) {
        loops_close(&state[i]);
    }
    prg_close(&prg);
    return 0;
}
