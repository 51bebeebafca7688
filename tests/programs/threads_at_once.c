/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that are in regions at the same time, each with a stream and memory
 * of its own; two share the name of their region, all launch the same kernels.
 * Meanwhile the main thread does what concerns everybody: waits for the
 * context, frees, unloads a module, sets an attribute of the kernels in use,
 * captures, enters the others' regions.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <nvtx3/nvToolsExt.h>

#include "kernels_ptx.h"
#include "util.h"


enum {
    ONCE_WORDS   = 64,
    ONCE_SPARE   = 4,
    ONCE_THREADS = 4,
    ONCE_RUNS    = 300,
    ONCE_TURNS   = 400      /* of the main thread */
};


typedef struct once_thread {
    const prg_context_t *prg;
    const char          *range;
    CUfunction          axpy;
    CUfunction          chain;
    CUstream            stream;
    CUdeviceptr         x;
    CUdeviceptr         y;
    CUdeviceptr         word;
    pthread_t           id;
} once_thread_t;


/* Arguments that stay, then arguments that change; a wait and one more launch
 * in some runs. */
static void once_region(once_thread_t *self, uint32_t run)
{
    uint32_t n      = ONCE_WORDS;
    uint32_t factor = run < ONCE_RUNS / 2 ? 3 : run;
    uint32_t i;

    nvtxRangePushA(self->range);
    for (i = 0; i < 6; ++i) {
        PRG_LAUNCH(self->axpy, self->stream, n, &self->x, &self->y, &n,
                   &factor);
        PRG_LAUNCH(self->chain, self->stream, 1, &self->word, &run);
        if (i == 3 && run % 7 == 6) {
            PRG_CHECK(cuStreamSynchronize(self->stream));
            PRG_LAUNCH(self->chain, self->stream, 1, &self->word, &i);
        }
    }
    PRG_CHECK(cuMemsetD32Async(self->y, factor, n / 2, self->stream));
    nvtxRangePop();
}

static void *once_thread(void *arg)
{
    once_thread_t *self = arg;
    uint32_t run;

    PRG_CHECK(cuCtxSetCurrent(self->prg->context));
    for (run = 0; run < ONCE_RUNS; ++run) {
        once_region(self, run);
        if (run % 3 == 0) {
            PRG_CHECK(cuStreamSynchronize(self->stream));
        }
    }
    PRG_CHECK(cuStreamSynchronize(self->stream));
    return NULL;
}

static void once_module(void)
{
    CUmodule module;

    PRG_CHECK(cuModuleLoadData(&module, krn_kernels_ptx));
    PRG_CHECK(cuModuleUnload(module));
}

static void once_memory(void)
{
    CUdeviceptr memory;

    PRG_CHECK(cuMemAlloc(&memory, 1024));
    PRG_CHECK(cuMemFree(memory));
}

static void once_attribute(CUfunction kernel, unsigned turn)
{
    CUfunction_attribute shared =
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;

    PRG_CHECK(cuFuncSetAttribute(kernel, shared, 1024 * (1 + turn % 3)));
}

static void once_capture(CUstream stream)
{
    CUgraph graph;

    PRG_CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    PRG_CHECK(cuStreamEndCapture(stream, &graph));
    PRG_CHECK(cuGraphDestroy(graph));
}

static void once_disturb(once_thread_t *thread, CUstream stream,
                         CUdeviceptr spare, unsigned turn)
{
    uint32_t words[ONCE_SPARE];

    switch (turn % 7) {
    case 0:
        PRG_CHECK(cuCtxSynchronize());
        break;
    case 1:
        once_memory();
        break;
    case 2:
        once_attribute(thread->axpy, turn);
        break;
    case 3:
        PRG_CHECK(cuStreamSynchronize(stream));
        PRG_CHECK(cuMemcpyDtoH(words, spare, sizeof(words)));
        break;
    case 4:
        once_capture(stream);
        break;
    case 5:
        nvtxRangePushA(thread->range);
        PRG_CHECK(cuMemsetD32Async(spare, turn, ONCE_SPARE, stream));
        nvtxRangePop();
        break;
    default:
        PRG_CHECK(cuStreamSynchronize(thread->stream));
        break;
    }
}

static void once_start(once_thread_t *thread)
{
    PRG_CHECK(cuStreamCreate(&thread->stream, CU_STREAM_NON_BLOCKING));
    if (pthread_create(&thread->id, NULL, once_thread, thread) != 0) {
        perror("pthread_create");
        _Exit(1);
    }
}

static void once_finish(once_thread_t *thread)
{
    pthread_join(thread->id, NULL);
    prg_print_hash("x", thread->x, ONCE_WORDS);
    prg_print_hash("y", thread->y, ONCE_WORDS);
    prg_print_hash("word", thread->word, 1);
    PRG_CHECK(cuStreamDestroy(thread->stream));
    PRG_CHECK(cuMemFree(thread->x));
    PRG_CHECK(cuMemFree(thread->y));
    PRG_CHECK(cuMemFree(thread->word));
}

int main(void)
{
    static const char *const names[ONCE_THREADS] = {"one", "two", "shared",
                                                    "shared"};
    once_thread_t threads[ONCE_THREADS];
    prg_context_t prg;
    CUdeviceptr spare;
    CUstream stream;
    unsigned i;

    prg_open(&prg);
    spare = prg_alloc(&prg, ONCE_SPARE, 0);
    PRG_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (i = 0; i < ONCE_THREADS; ++i) {
        threads[i] = (once_thread_t){
            .prg   = &prg,
            .range = names[i],
            .axpy  = prg_kernel(&prg, "k_axpy"),
            .chain = prg_kernel(&prg, "k_chain"),
            .x     = prg_alloc(&prg, ONCE_WORDS, 10 * i),
            .y     = prg_alloc(&prg, ONCE_WORDS, 10 * i + 1000),
            .word  = prg_alloc(&prg, 1, i)
        };
    }
    for (i = 0; i < ONCE_THREADS; ++i) {
        once_start(&threads[i]);
    }

    for (i = 0; i < ONCE_TURNS; ++i) {
        once_module();
        once_disturb(&threads[i % ONCE_THREADS], stream, spare, i);
    }
    for (i = 0; i < ONCE_THREADS; ++i) {
        once_finish(&threads[i]);
    }
    PRG_CHECK(cuStreamDestroy(stream));
    PRG_CHECK(cuMemFree(spare));
    prg_close(&prg);
    return 0;
}
