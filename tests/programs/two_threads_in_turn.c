/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two threads enter a region of one name in turn: each with a stream of its
 * own, then both with one stream.
 */
#include <pthread.h>
#include <stdio.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    TURN_WORDS   = 64,
    TURN_RUNS    = 10,
    TURN_THREADS = 2
};


typedef struct turn_state {
    prg_context_t   prg;
    CUfunction      axpy;
    CUfunction      chain;
    CUdeviceptr     word;
    pthread_mutex_t lock;
    pthread_cond_t  changed;
    unsigned        next;       /* run that is due, by `lock` */
} turn_state_t;


typedef struct turn_thread {
    turn_state_t *state;
    unsigned     index;
    CUstream     stream;
    CUdeviceptr  x;
    CUdeviceptr  y;
    int          synchronize;
} turn_thread_t;


static void turn_region(turn_thread_t *self, uint32_t run)
{
    turn_state_t *state = self->state;
    uint32_t n          = TURN_WORDS;
    uint32_t factor     = 3;
    unsigned i;

    nvtxRangePushA("turn");
    for (i = 0; i < 4; ++i) {
        PRG_LAUNCH(state->axpy, self->stream, n, &self->x, &self->y, &n,
                   &factor);
        PRG_LAUNCH(state->chain, self->stream, 1, &state->word, &run);
        PRG_LAUNCH(state->axpy, self->stream, n, &self->y, &self->x, &n,
                   &factor);
    }
    nvtxRangePop();
    if (self->synchronize) {
        PRG_CHECK(cuStreamSynchronize(self->stream));
    }
}

static void *turn_thread(void *arg)
{
    turn_thread_t *self = arg;
    turn_state_t *state = self->state;
    unsigned run;

    PRG_CHECK(cuCtxSetCurrent(state->prg.context));
    for (run = self->index; run < TURN_RUNS * TURN_THREADS;
         run += TURN_THREADS) {
        pthread_mutex_lock(&state->lock);
        while (state->next != run) {
            pthread_cond_wait(&state->changed, &state->lock);
        }
        turn_region(self, run);
        ++state->next;
        pthread_cond_broadcast(&state->changed);
        pthread_mutex_unlock(&state->lock);
    }
    return NULL;
}

static void turn_play(turn_state_t *state, turn_thread_t *threads)
{
    pthread_t id[TURN_THREADS];
    unsigned i;

    state->next = 0;
    for (i = 0; i < TURN_THREADS; ++i) {
        threads[i].state = state;
        threads[i].index = i;
        if (pthread_create(&id[i], NULL, turn_thread, &threads[i]) != 0) {
            perror("pthread_create");
            _Exit(1);
        }
    }
    for (i = 0; i < TURN_THREADS; ++i) {
        pthread_join(id[i], NULL);
    }
}

int main(void)
{
    static turn_state_t state = {
        .lock    = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER
    };
    turn_thread_t threads[TURN_THREADS];
    CUstream stream[TURN_THREADS];
    unsigned i;

    prg_open(&state.prg);
    state.axpy  = prg_kernel(&state.prg, "k_axpy");
    state.chain = prg_kernel(&state.prg, "k_chain");
    state.word  = prg_alloc(&state.prg, 1, 1);
    for (i = 0; i < TURN_THREADS; ++i) {
        PRG_CHECK(cuStreamCreate(&stream[i], CU_STREAM_NON_BLOCKING));
        threads[i] = (turn_thread_t){
            .stream      = stream[i],
            .x           = prg_alloc(&state.prg, TURN_WORDS, 10 * i),
            .y           = prg_alloc(&state.prg, TURN_WORDS, 10 * i + 1000),
            .synchronize = 1
        };
    }

    turn_play(&state, threads);
    prg_print_hash("own streams", state.word, 1);

    /* In one stream the order is given, so nobody has to wait. */
    for (i = 0; i < TURN_THREADS; ++i) {
        threads[i].stream      = stream[0];
        threads[i].synchronize = 0;
    }
    turn_play(&state, threads);
    PRG_CHECK(cuStreamSynchronize(stream[0]));
    prg_print_hash("one stream", state.word, 1);

    for (i = 0; i < TURN_THREADS; ++i) {
        prg_print_hash("x", threads[i].x, TURN_WORDS);
        prg_print_hash("y", threads[i].y, TURN_WORDS);
        PRG_CHECK(cuMemFree(threads[i].x));
        PRG_CHECK(cuMemFree(threads[i].y));
        PRG_CHECK(cuStreamDestroy(stream[i]));
    }
    PRG_CHECK(cuMemFree(state.word));
    prg_close(&state.prg);
    return 0;
}
