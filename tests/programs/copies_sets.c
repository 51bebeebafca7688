/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every asynchronous copy and set of the driver API inside of regions, with
 * values, sizes and addresses that change, from pinned, registered and pageable
 * memory, and with memory freed and allocated again between runs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    COPIES_WORDS = 256,
    COPIES_BYTES = COPIES_WORDS * sizeof(uint32_t),
    COPIES_PITCH = 64,          /* bytes of a row of the 2-D and 3-D forms */
    COPIES_ROWS  = COPIES_BYTES / COPIES_PITCH,
    COPIES_RUNS  = 8
};


typedef struct copies_state {
    prg_context_t prg;
    CUstream      stream;
    CUfunction    hash;
    uint32_t      n;
    CUdeviceptr   a;
    CUdeviceptr   b;
    CUdeviceptr   c;
    uint32_t      *pinned[2];
    uint32_t      *pageable;
} copies_state_t;


/* A launch between copies, so that their order matters. */
static void copies_work(copies_state_t *state, CUdeviceptr x, uint32_t seed)
{
    PRG_LAUNCH(state->hash, state->stream, state->n, &x, &state->n, &seed);
}

static void copies_fill(uint32_t *host, uint32_t value)
{
    uint32_t i;

    for (i = 0; i < COPIES_WORDS; ++i) {
        host[i] = value * 2654435761u + i;
    }
}

static void copies_print(copies_state_t *state, const char *name)
{
    PRG_CHECK(cuStreamSynchronize(state->stream));
    printf("%s\n", name);
    prg_print_hash("  a", state->a, state->n);
    prg_print_hash("  b", state->b, state->n);
    prg_print_hash("  c", state->c, state->n);
}

static void copies_sets(copies_state_t *state)
{
    CUstream stream = state->stream;
    unsigned run;

    for (run = 0; run < COPIES_RUNS; ++run) {
        unsigned char v8   = (unsigned char)(run < 4 ? 3 : run);
        unsigned short v16 = (unsigned short)(1000 * run);
        unsigned v32       = run * 100000;
        size_t less        = run % 3;

        nvtxRangePushA("sets");
        PRG_CHECK(cuMemsetD8Async(state->a, v8, 100 - less, stream));
        copies_work(state, state->a, 1);
        PRG_CHECK(cuMemsetD16Async(state->a + 200, v16, 100 - less, stream));
        PRG_CHECK(cuMemsetD32Async(state->b + 4 * run, v32, 50, stream));
        copies_work(state, state->b, 2);
        PRG_CHECK(cuMemsetD2D8Async(state->c, COPIES_PITCH, v8, 33 - less,
                                    COPIES_ROWS, stream));
        PRG_CHECK(cuMemsetD2D16Async(state->c + 8, COPIES_PITCH, v16, 9, 7,
                                     stream));
        PRG_CHECK(cuMemsetD2D32Async(run % 2 ? state->b : state->c,
                                     COPIES_PITCH, v32, 5, 6 + less, stream));
        copies_work(state, state->c, 3);
        nvtxRangePop();
    }
    copies_print(state, "sets");
}

static void copies_device(copies_state_t *state)
{
    CUstream stream = state->stream;
    size_t half     = COPIES_BYTES / 2;
    unsigned run;

    for (run = 0; run < COPIES_RUNS; ++run) {
        CUdeviceptr to   = run % 2 ? state->a : state->b;
        CUdeviceptr from = run % 2 ? state->b : state->a;

        nvtxRangePushA("device");
        copies_work(state, from, run);
        PRG_CHECK(cuMemcpyDtoDAsync(to, from, half + 4 * run, stream));
        copies_work(state, to, 5);
        PRG_CHECK(cuMemcpyAsync(state->c, to, COPIES_BYTES, stream));
        PRG_CHECK(cuMemcpyDtoDAsync(to, to + half, 16, stream));
        copies_work(state, state->c, 6);
        /* The synchronous form does not wait for anything on the host. */
        PRG_CHECK(cuMemcpyDtoD(state->c, from, 40));
        PRG_CHECK(cuMemsetD32(state->c + 40, run, 3));
        PRG_CHECK(cuMemsetD8(state->c + 80, 1, 3));
        copies_work(state, state->c, 7);
        nvtxRangePop();
    }
    copies_print(state, "device");
}

/* Pinned sources are read when the copy runs, pageable ones within the call. */
static void copies_to_device(copies_state_t *state)
{
    CUstream stream = state->stream;
    unsigned run;

    for (run = 0; run < COPIES_RUNS; ++run) {
        uint32_t *source = state->pinned[run % 2];

        copies_fill(source, run);
        nvtxRangePushA("to device");
        PRG_CHECK(cuMemcpyHtoDAsync(state->a, source, COPIES_BYTES / 2,
                                    stream));
        copies_work(state, state->a, 1);
        copies_fill(state->pageable, run + 100);
        PRG_CHECK(cuMemcpyHtoDAsync(state->b, state->pageable, COPIES_BYTES,
                                    stream));
        copies_fill(state->pageable, run + 200);
        copies_work(state, state->b, 2);
        PRG_CHECK(cuMemcpyAsync(state->c, (CUdeviceptr)(source + 32), 128,
                                stream));
        PRG_CHECK(cuMemcpyAsync(state->c + 128, (CUdeviceptr)state->pageable,
                                128, stream));
        copies_fill(state->pageable, run + 300);
        copies_work(state, state->c, 3);
        nvtxRangePop();
        if (run % 2 == 1) {     /* now the pinned ones may be written again */
            PRG_CHECK(cuStreamSynchronize(stream));
        }
    }
    copies_print(state, "to device");
}

static void copies_to_host(copies_state_t *state)
{
    CUstream stream = state->stream;
    uint64_t hash   = 0;
    unsigned run;

    for (run = 0; run < COPIES_RUNS; ++run) {
        nvtxRangePushA("to host");
        copies_work(state, state->a, run);
        PRG_CHECK(cuMemcpyDtoHAsync(state->pinned[run % 2], state->a,
                                    COPIES_BYTES, stream));
        copies_work(state, state->a, 1);
        PRG_CHECK(cuMemcpyAsync((CUdeviceptr)(state->pinned[run % 2] + 8),
                                state->a, 64, stream));
        if (run % 4 == 3) {
            PRG_CHECK(cuMemcpyDtoHAsync(state->pageable, state->a, COPIES_BYTES,
                                        stream));
        }
        copies_work(state, state->a, 2);
        nvtxRangePop();
        PRG_CHECK(cuStreamSynchronize(stream));
        hash = hash * 31 + prg_hash_host(state->pinned[run % 2], COPIES_BYTES);
        hash = hash * 31 + prg_hash_host(state->pageable, COPIES_BYTES);
    }
    printf("to host %016llx\n", (unsigned long long)hash);
    copies_print(state, "to host");
}

/* From one host buffer into another, ordered after work of the stream. */
static void copies_host_to_host(copies_state_t *state)
{
    CUstream stream = state->stream;
    uint64_t hash   = 0;
    unsigned run;

    for (run = 0; run < COPIES_RUNS; ++run) {
        nvtxRangePushA("host to host");
        copies_work(state, state->a, run);
        PRG_CHECK(cuMemcpyDtoHAsync(state->pinned[0], state->a, COPIES_BYTES,
                                    stream));
        PRG_CHECK(cuMemcpyAsync((CUdeviceptr)state->pinned[1],
                                (CUdeviceptr)state->pinned[0], COPIES_BYTES,
                                stream));
        PRG_CHECK(cuMemcpyHtoDAsync(state->b, state->pinned[1], COPIES_BYTES,
                                    stream));
        copies_work(state, state->b, 1);
        nvtxRangePop();
        PRG_CHECK(cuStreamSynchronize(stream));
        hash = hash * 31 + prg_hash_host(state->pinned[1], COPIES_BYTES);
    }
    printf("host to host %016llx\n", (unsigned long long)hash);
    copies_print(state, "host to host");
}

/* Memory at one address, pageable at first, then registered, then not. */
static void copies_registered(copies_state_t *state)
{
    CUstream stream = state->stream;
    void *memory    = NULL;
    unsigned run;

    if (posix_memalign(&memory, 4096, 4096) != 0) {
        fprintf(stderr, "out of memory\n");
        exit(EXIT_FAILURE);
    }
    for (run = 0; run < COPIES_RUNS; ++run) {
        int pinned = run % 4 >= 2;

        if (pinned) {
            PRG_CHECK(cuMemHostRegister(memory, 4096, 0));
        }
        copies_fill(memory, run);
        nvtxRangePushA("registered");
        PRG_CHECK(cuMemcpyHtoDAsync(state->a, memory, COPIES_BYTES, stream));
        if (!pinned) {
            copies_fill(memory, run + 50);
        }
        copies_work(state, state->a, 1);
        nvtxRangePop();
        if (pinned) {
            PRG_CHECK(cuStreamSynchronize(stream));
            PRG_CHECK(cuMemHostUnregister(memory));
        }
        copies_work(state, state->b, 1);
    }
    copies_print(state, "registered");
    free(memory);
}

static void copies_2d(copies_state_t *state)
{
    unsigned run;

    for (run = 0; run < COPIES_RUNS; ++run) {
        CUDA_MEMCPY2D copy;

        copies_fill(state->pinned[0], run);
        nvtxRangePushA("two dimensions");
        memset(&copy, 0, sizeof(copy));
        copy.srcMemoryType = CU_MEMORYTYPE_HOST;
        copy.srcHost       = state->pinned[0];
        copy.srcPitch      = COPIES_PITCH;
        copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.dstDevice     = state->a;
        copy.dstPitch      = COPIES_PITCH;
        copy.dstXInBytes   = 4 * (run % 2);
        copy.WidthInBytes  = 40;
        copy.Height        = COPIES_ROWS - run % 3;
        PRG_CHECK(cuMemcpy2DAsync(&copy, state->stream));
        copies_work(state, state->a, 1);

        copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.srcDevice     = state->a;
        copy.srcY          = 1;
        copy.dstDevice     = run % 4 < 2 ? state->b : state->c;
        copy.Height        = 6;
        PRG_CHECK(cuMemcpy2DAsync(&copy, state->stream));
        copies_work(state, state->b, 2);

        copy.dstMemoryType = CU_MEMORYTYPE_HOST;
        copy.dstHost       = state->pinned[1];
        PRG_CHECK(cuMemcpy2DAsync(&copy, state->stream));
        copies_work(state, state->a, 3);
        nvtxRangePop();
        PRG_CHECK(cuStreamSynchronize(state->stream));
        printf("two dimensions %u %016llx\n", run,
               (unsigned long long)prg_hash_host(state->pinned[1],
                                                 COPIES_BYTES));
    }
    copies_print(state, "two dimensions");
}

static void copies_3d(copies_state_t *state)
{
    unsigned run;

    for (run = 0; run < COPIES_RUNS; ++run) {
        CUDA_MEMCPY3D copy;

        nvtxRangePushA("three dimensions");
        copies_work(state, state->a, run);
        memset(&copy, 0, sizeof(copy));
        copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.srcDevice     = state->a;
        copy.srcPitch      = 32;
        copy.srcHeight     = 4;
        copy.srcZ          = 1;
        copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        copy.dstDevice     = run % 2 ? state->b : state->c;
        copy.dstPitch      = 32;
        copy.dstHeight     = 4;
        copy.dstXInBytes   = 4;
        copy.WidthInBytes  = 20;
        copy.Height        = 3;
        copy.Depth         = 4 + run % 2;
        PRG_CHECK(cuMemcpy3DAsync(&copy, state->stream));
        copies_work(state, state->b, 1);
        nvtxRangePop();
    }
    copies_print(state, "three dimensions");
}

/* A buffer of the region's own: its address may come back, or not. */
static void copies_allocate(copies_state_t *state)
{
    CUstream stream = state->stream;
    CUdeviceptr other;
    unsigned run;

    for (run = 0; run < COPIES_RUNS; ++run) {
        CUdeviceptr own;

        nvtxRangePushA("allocate");
        PRG_CHECK(cuMemAlloc(&own, COPIES_BYTES));
        PRG_CHECK(cuMemcpyDtoDAsync(own, state->a, COPIES_BYTES, stream));
        copies_work(state, own, run);
        PRG_CHECK(cuMemcpyDtoDAsync(state->b, own, COPIES_BYTES, stream));
        copies_work(state, state->b, 1);
        PRG_CHECK(cuMemFree(own));

        PRG_CHECK(cuMemAllocAsync(&own, COPIES_BYTES, stream));
        PRG_CHECK(cuMemsetD32Async(own, run, COPIES_WORDS, stream));
        copies_work(state, own, 2);
        PRG_CHECK(cuMemcpyDtoDAsync(state->c, own, COPIES_BYTES, stream));
        PRG_CHECK(cuMemFreeAsync(own, stream));
        copies_work(state, state->c, 3);
        nvtxRangePop();
        /* Something else at the address, when the driver gives it again. */
        PRG_CHECK(cuMemAlloc(&other, COPIES_BYTES));
        PRG_CHECK(cuMemsetD32Async(other, 7, COPIES_WORDS, stream));
        if (run % 2 == 1) {
            copies_work(state, other, 4);
            PRG_CHECK(cuMemcpyDtoDAsync(state->a, other, 64, stream));
        }
        PRG_CHECK(cuMemFree(other));
    }
    copies_print(state, "allocate");
}

/* Buffers that live outside of the region and are replaced now and then. */
static void copies_replace(copies_state_t *state)
{
    CUstream stream = state->stream;
    CUdeviceptr own = prg_alloc(&state->prg, COPIES_WORDS, 1);
    unsigned run;

    for (run = 0; run < 2 * COPIES_RUNS; ++run) {
        nvtxRangePushA("replace");
        PRG_CHECK(cuMemsetD32Async(own, run, 16, stream));
        copies_work(state, own, 1);
        PRG_CHECK(cuMemcpyDtoDAsync(state->c, own, COPIES_BYTES, stream));
        copies_work(state, state->c, 1);
        nvtxRangePop();
        if (run % 5 == 4) {
            PRG_CHECK(cuMemFree(own));
            own = prg_alloc(&state->prg, run % 2 ? COPIES_WORDS
                                                 : 4 * COPIES_WORDS, run);
        }
    }
    copies_print(state, "replace");
    PRG_CHECK(cuMemFree(own));
}

int main(void)
{
    copies_state_t state = { .n = COPIES_WORDS };
    unsigned i;

    prg_open(&state.prg);
    state.hash     = prg_kernel(&state.prg, "k_hash");
    state.a        = prg_alloc(&state.prg, state.n, 1);
    state.b        = prg_alloc(&state.prg, state.n, 1000);
    state.c        = prg_alloc(&state.prg, state.n, 1000000);
    state.pageable = calloc(1, COPIES_BYTES);
    if (state.pageable == NULL) {
        fprintf(stderr, "out of memory\n");
        return EXIT_FAILURE;
    }
    for (i = 0; i < 2; ++i) {
        PRG_CHECK(cuMemAllocHost((void**)&state.pinned[i], COPIES_BYTES));
        memset(state.pinned[i], 0, COPIES_BYTES);
    }
    PRG_CHECK(cuStreamCreate(&state.stream, CU_STREAM_DEFAULT));

    copies_sets(&state);
    copies_device(&state);
    copies_to_device(&state);
    copies_to_host(&state);
    copies_host_to_host(&state);
    copies_registered(&state);
    copies_2d(&state);
    copies_3d(&state);
    copies_allocate(&state);
    copies_replace(&state);

    PRG_CHECK(cuStreamDestroy(state.stream));
    for (i = 0; i < 2; ++i) {
        PRG_CHECK(cuMemFreeHost(state.pinned[i]));
    }
    free(state.pageable);
    PRG_CHECK(cuMemFree(state.a));
    PRG_CHECK(cuMemFree(state.b));
    PRG_CHECK(cuMemFree(state.c));
    prg_close(&state.prg);
    return 0;
}
