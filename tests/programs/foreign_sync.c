/* SPDX-License-Identifier: Apache-2.0 */
/*
 * While one thread is inside of a region, with work launched, another one waits
 * for that work and reads its result: by the stream, by the context, by an
 * event, by a copy on the legacy stream, by launching on the same stream.
 */
#include <pthread.h>
#include <stdio.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    FOREIGN_WORDS = 64,
    FOREIGN_RUNS  = 15
};


typedef enum foreign_way {
    FOREIGN_STREAM,
    FOREIGN_CONTEXT,
    FOREIGN_EVENT,
    FOREIGN_COPY,
    FOREIGN_LAUNCH,
    FOREIGN_LAST
} foreign_way_t;


typedef struct foreign_state {
    prg_context_t     prg;
    CUstream          stream;
    CUevent           event;
    CUfunction        scale;
    CUfunction        chain;
    CUdeviceptr       x;
    CUdeviceptr       word;
    pthread_barrier_t barrier;
} foreign_state_t;


/* Both threads come here, twice in each run: before and after the other one's
 * look. */
static void foreign_meet(foreign_state_t *state)
{
    pthread_barrier_wait(&state->barrier);
}

static void foreign_work(foreign_state_t *state, uint32_t value)
{
    uint32_t n      = FOREIGN_WORDS;
    uint32_t factor = 5;
    unsigned i;

    for (i = 0; i < 5; ++i) {
        PRG_LAUNCH(state->scale, state->stream, n, &state->x, &n, &factor);
        PRG_LAUNCH(state->chain, state->stream, 1, &state->word, &value);
    }
}

static void foreign_look(foreign_state_t *state, foreign_way_t way)
{
    uint32_t value = 1;

    switch (way) {
    case FOREIGN_STREAM:
        PRG_CHECK(cuStreamSynchronize(state->stream));
        break;
    case FOREIGN_CONTEXT:
        PRG_CHECK(cuCtxSynchronize());
        break;
    case FOREIGN_EVENT:
        PRG_CHECK(cuEventRecord(state->event, state->stream));
        PRG_CHECK(cuEventSynchronize(state->event));
        break;
    case FOREIGN_COPY:      /* the legacy stream waits for the stream */
        break;
    default:
        PRG_LAUNCH(state->chain, state->stream, 1, &state->word, &value);
        PRG_CHECK(cuStreamSynchronize(state->stream));
        break;
    }
    prg_print_hash("  x", state->x, FOREIGN_WORDS);
    prg_print_hash("  word", state->word, 1);
}

static void *foreign_thread(void *arg)
{
    foreign_state_t *state = arg;
    unsigned run;

    PRG_CHECK(cuCtxSetCurrent(state->prg.context));
    for (run = 0; run < FOREIGN_RUNS; ++run) {
        foreign_meet(state);
        printf("run %u\n", run);
        foreign_look(state, (foreign_way_t)(run % FOREIGN_LAST));
        foreign_meet(state);
    }
    return NULL;
}

int main(void)
{
    static foreign_state_t state;
    pthread_t thread;
    uint32_t run;

    prg_open(&state.prg);
    state.scale = prg_kernel(&state.prg, "k_scale");
    state.chain = prg_kernel(&state.prg, "k_chain");
    state.x     = prg_alloc(&state.prg, FOREIGN_WORDS, 4);
    state.word  = prg_alloc(&state.prg, 1, 1);
    PRG_CHECK(cuStreamCreate(&state.stream, CU_STREAM_DEFAULT));
    PRG_CHECK(cuEventCreate(&state.event, CU_EVENT_DEFAULT));
    pthread_barrier_init(&state.barrier, NULL, 2);
    if (pthread_create(&thread, NULL, foreign_thread, &state) != 0) {
        perror("pthread_create");
        return 1;
    }

    for (run = 0; run < FOREIGN_RUNS; ++run) {
        nvtxRangePushA("foreign");
        foreign_work(&state, run);
        foreign_meet(&state);
        foreign_meet(&state);
        foreign_work(&state, run + 1);
        nvtxRangePop();
    }
    pthread_join(thread, NULL);
    PRG_CHECK(cuStreamSynchronize(state.stream));
    prg_print_hash("x", state.x, FOREIGN_WORDS);
    prg_print_hash("word", state.word, 1);

    pthread_barrier_destroy(&state.barrier);
    PRG_CHECK(cuEventDestroy(state.event));
    PRG_CHECK(cuStreamDestroy(state.stream));
    PRG_CHECK(cuMemFree(state.x));
    PRG_CHECK(cuMemFree(state.word));
    prg_close(&state.prg);
    return 0;
}
