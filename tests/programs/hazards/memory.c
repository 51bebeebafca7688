/* SPDX-License-Identifier: Apache-2.0 */
/* Hazards of copies, sets, allocations and frees. */
#include <stdio.h>
#include <stdlib.h>

#include "hazards.h"

/* Pageable memory is the program's again as soon as the call returns. */
static void pageable_source_reused_at_once(hzd_state_t *state)
{
    unsigned run;

    for (run = 0; run < HZD_RUNS; ++run) {
        hzd_scribble(state->pageable, run);
        nvtxRangePushA("pageable");
        hzd_hash(state, state->stream, state->x, 1);
        hzd_hash(state, state->stream, state->x, 2);
        PRG_CHECK(cuMemcpyHtoDAsync(state->y, state->pageable, HZD_BYTES,
                                    state->stream));
        hzd_scribble(state->pageable, run + 100);
        hzd_axpy(state, state->stream, state->x, state->y);
        PRG_CHECK(cuMemcpyAsync(state->z, (CUdeviceptr)state->pageable,
                                HZD_BYTES, state->stream));
        hzd_scribble(state->pageable, run + 200);
        hzd_axpy(state, state->stream, state->x, state->z);
        hzd_hash(state, state->stream, state->x, 3);
        nvtxRangePop();
    }
}

/* Pinned memory is the program's again after an event or a sync. */
static void pinned_memory_looked_at_after_a_sync(hzd_state_t *state)
{
    CUevent event;
    unsigned run;

    PRG_CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (run = 0; run < HZD_RUNS; ++run) {
        hzd_scribble(state->pinned[0], run);
        nvtxRangePushA("pinned");
        PRG_CHECK(cuMemcpyHtoDAsync(state->x, state->pinned[0], HZD_BYTES,
                                    state->stream));
        hzd_hash(state, state->stream, state->x, 1);
        PRG_CHECK(cuMemcpyDtoHAsync(state->pinned[1], state->x, HZD_BYTES,
                                    state->stream));
        PRG_CHECK(cuStreamSynchronize(state->stream));
        hzd_print_host("after the stream", state->pinned[1]);
        hzd_scribble(state->pinned[0], run + 100);
        PRG_CHECK(cuMemcpyAsync(state->x, (CUdeviceptr)state->pinned[0],
                                HZD_BYTES, state->stream));
        hzd_hash(state, state->stream, state->x, 2);
        PRG_CHECK(cuMemcpyAsync((CUdeviceptr)state->pinned[1], state->x,
                                HZD_BYTES, state->stream));
        PRG_CHECK(cuEventRecord(event, state->stream));
        hzd_hash(state, state->stream, state->x, 3);
        PRG_CHECK(cuEventSynchronize(event));
        hzd_print_host("after the event", state->pinned[1]);
        hzd_hash(state, state->stream, state->y, 4);
        hzd_hash(state, state->stream, state->y, 5);
        nvtxRangePop();
    }
    PRG_CHECK(cuEventDestroy(event));
}

/* The host may look as soon as the call returns. */
static void copies_the_host_waits_for(hzd_state_t *state)
{
    CUstream stream = state->stream;
    unsigned run;

    for (run = 0; run < HZD_RUNS; ++run) {
        nvtxRangePushA("synchronous");
        hzd_hash(state, stream, state->x, run);
        hzd_hash(state, stream, state->y, 1);
        PRG_CHECK(cuMemcpyDtoH(state->pageable, state->x, HZD_BYTES));
        hzd_print_host("to pageable", state->pageable);
        hzd_hash(state, stream, state->x, 2);
        hzd_hash(state, stream, state->y, 3);
        PRG_CHECK(cuMemcpyDtoHAsync(state->pageable, state->x, HZD_BYTES,
                                    stream));
        hzd_hash(state, stream, state->x, 4);
        PRG_CHECK(cuStreamSynchronize(stream));
        hzd_print_host("to pageable, on a stream", state->pageable);
        hzd_hash(state, stream, state->x, 5);
        hzd_hash(state, stream, state->y, 6);
        PRG_CHECK(cuMemcpy((CUdeviceptr)state->pinned[0], state->x,
                           HZD_BYTES));
        hzd_print_host("to pinned", state->pinned[0]);
        hzd_scribble(state->pageable, run);
        hzd_hash(state, stream, state->x, 7);
        hzd_hash(state, stream, state->y, 8);
        PRG_CHECK(cuMemcpyHtoD(state->x, state->pageable, HZD_BYTES));
        hzd_scribble(state->pageable, run + 100);
        hzd_hash(state, stream, state->x, 9);
        PRG_CHECK(cuMemcpyDtoHAsync(state->pinned[0], state->x, HZD_BYTES,
                                    stream));
        PRG_CHECK(cuMemcpyAsync((CUdeviceptr)state->pinned[1],
                                (CUdeviceptr)state->pinned[0], HZD_BYTES,
                                stream));
        hzd_hash(state, stream, state->x, 10);
        PRG_CHECK(cuStreamSynchronize(stream));
        hzd_print_host("from host to host", state->pinned[1]);
        nvtxRangePop();
    }
}

/* The host does not wait for these; they are work of the legacy stream, which
 * blocking streams wait for. */
static void device_copies_and_sets_on_the_legacy_stream(hzd_state_t *state)
{
    unsigned run;

    for (run = 0; run < HZD_RUNS; ++run) {
        nvtxRangePushA("legacy ops");
        hzd_hash(state, state->stream, state->x, run);
        hzd_hash(state, state->stream, state->y, 1);
        PRG_CHECK(cuMemcpyDtoD(state->z, state->x, HZD_BYTES / 2));
        PRG_CHECK(cuMemsetD32(state->y, run, HZD_WORDS / 4));
        PRG_CHECK(cuMemsetD8(state->y + HZD_BYTES / 2, 3, 5));
        PRG_CHECK(cuMemsetD2D16(state->x, HZD_BYTES / 4, 9, 3, 4));
        hzd_axpy(state, state->stream, state->y, state->z);
        hzd_axpy(state, state->stream, state->x, state->y);
        nvtxRangePop();
    }
}

/* The same address as pageable and as registered memory by turns. */
static void
address_freed_and_reused_for_another_kind_of_memory(hzd_state_t *state)
{
    void *memory = NULL;
    CUdeviceptr own;
    unsigned run;

    if (posix_memalign(&memory, 4096, 4096) != 0) {
        perror("posix_memalign");
        exit(EXIT_FAILURE);
    }
    for (run = 0; run < 2 * HZD_RUNS; ++run) {
        bool registered = run % 4 < 2;

        if (registered) {
            PRG_CHECK(cuMemHostRegister(memory, 4096, 0));
        }
        if (run % 3 == 0) {
            PRG_CHECK(cuMemAlloc(&own, HZD_BYTES));
        } else {
            PRG_CHECK(cuMemAllocAsync(&own, HZD_BYTES, state->stream));
        }
        hzd_scribble(memory, run);
        nvtxRangePushA("reused address");
        hzd_hash(state, state->stream, state->x, 1);
        PRG_CHECK(cuMemcpyHtoDAsync(state->y, memory, HZD_BYTES,
                                    state->stream));
        if (!registered) {
            hzd_scribble(memory, run + 100);
        }
        PRG_CHECK(cuMemsetD32Async(own, run, HZD_WORDS, state->stream));
        PRG_CHECK(cuMemcpyDtoDAsync(state->z, own, HZD_BYTES, state->stream));
        hzd_axpy(state, state->stream, state->x, state->y);
        hzd_axpy(state, state->stream, state->x, state->z);
        nvtxRangePop();
        PRG_CHECK(cuStreamSynchronize(state->stream));
        if (run % 3 == 0) {
            PRG_CHECK(cuMemFree(own));
        } else {
            PRG_CHECK(cuMemFreeAsync(own, state->stream));
        }
        if (registered) {
            PRG_CHECK(cuMemHostUnregister(memory));
        }
    }
    free(memory);
}

/* A smaller allocation at the old address: the driver refuses the copy and the
 * set that reach over its end, where they are made. */
static void address_reused_for_less_memory(hzd_state_t *state)
{
    const size_t large = 1 << 16, small = 8192;
    CUdeviceptr own;
    unsigned run;

    if (!hzd_is_simulated()) {
        hzd_skip("other memory may lie behind the smaller allocation");
    }
    for (run = 0; run < HZD_RUNS; ++run) {
        size_t size = run < 6 ? large : small;
        CUresult copied, set;

        PRG_CHECK(cuMemAlloc(&own, size));
        nvtxRangePushA("less memory");
        hzd_hash(state, state->stream, state->x, run);
        set    = cuMemsetD32Async(own, 7, large / 16, state->stream);
        copied = cuMemcpyDtoDAsync(own + large / 2, state->x, HZD_BYTES,
                                   state->stream);
        hzd_hash(state, state->stream, state->x, 2);
        nvtxRangePop();
        printf("run %u: %s, %s\n", run, prg_error_name(set),
               prg_error_name(copied));
        PRG_CHECK(cuStreamSynchronize(state->stream));
        PRG_CHECK(cuMemFree(own));
    }
}

/* Addresses that come and go are arguments like any others. */
static void allocation_in_the_region(hzd_state_t *state)
{
    CUdeviceptr held[3] = { 0 }, own;
    unsigned run;

    for (run = 0; run < 3 * HZD_RUNS; ++run) {
        nvtxRangePushA("allocation");
        hzd_hash(state, state->stream, state->x, run / 4);
        PRG_CHECK(cuMemAlloc(&own, HZD_BYTES << run % 3));
        PRG_LAUNCH(state->fill, state->stream, state->n, &own, &state->n,
                   &run);
        hzd_axpy(state, state->stream, state->x, own);
        hzd_axpy(state, state->stream, own, state->x);
        nvtxRangePop();
        if (held[run % 3] != 0) {
            hzd_axpy(state, state->stream, state->y, held[run % 3]);
            PRG_CHECK(cuMemFree(held[run % 3]));
        }
        held[run % 3] = own;

        nvtxRangePushA("allocation on the stream");
        hzd_hash(state, state->stream, state->x, run / 4);
        PRG_CHECK(cuMemAllocAsync(&own, HZD_BYTES << run % 2, state->stream));
        PRG_LAUNCH(state->fill, state->stream, state->n, &own, &state->n,
                   &run);
        hzd_axpy(state, state->stream, state->x, own);
        nvtxRangePop();
        hzd_axpy(state, state->stream, state->z, own);
        PRG_CHECK(cuMemFreeAsync(own, state->stream));
    }
    for (run = 0; run < 3; ++run) {
        PRG_CHECK(cuMemFree(held[run]));
    }
}

/* What was called before the free still sees the memory. cuMemFree waits for
 * it, so another stream may use the memory at once. */
static void free_in_the_region(hzd_state_t *state)
{
    CUdeviceptr own, next;
    unsigned run;

    for (run = 0; run < HZD_RUNS; ++run) {
        PRG_CHECK(cuMemAllocAsync(&own, HZD_BYTES, state->stream));
        nvtxRangePushA("free on the stream");
        PRG_CHECK(cuMemsetD32Async(own, run, HZD_WORDS, state->stream));
        hzd_hash(state, state->stream, own, 1);
        hzd_axpy(state, state->stream, state->x, own);
        PRG_CHECK(cuMemFreeAsync(own, state->stream));
        hzd_hash(state, state->stream, state->x, 2);
        hzd_hash(state, state->stream, state->x, 3);
        nvtxRangePop();

        PRG_CHECK(cuMemAlloc(&own, HZD_BYTES));
        nvtxRangePushA("free");
        PRG_CHECK(cuMemsetD32Async(own, run, HZD_WORDS, state->other[0]));
        hzd_hash(state, state->other[0], own, 1);
        hzd_axpy(state, state->other[0], state->y, own);
        PRG_CHECK(cuMemFree(own));
        PRG_CHECK(cuMemAlloc(&next, HZD_BYTES));
        PRG_CHECK(cuMemsetD32Async(next, 7, HZD_WORDS, state->other[1]));
        hzd_axpy(state, state->other[1], state->z, next);
        nvtxRangePop();
        PRG_CHECK(cuStreamSynchronize(state->other[1]));
        PRG_CHECK(cuMemFree(next));
    }
}

/* Graphs take device memory: a program that needs all of it gets all of it. */
static void out_of_memory_gives_the_graphs_back(hzd_state_t *state)
{
    enum { HZD_PIECE = 4096, HZD_PIECES = 4096, HZD_CALLS = 200 };
    static CUdeviceptr piece[HZD_PIECES];
    unsigned run, i, num;

    if (!hzd_is_simulated()) {
        hzd_skip("taking all memory of a GPU");
    }
    for (run = 0; run < HZD_RUNS; ++run) {
        nvtxRangePushA("memory");
        for (i = 0; i < HZD_CALLS; ++i) {
            hzd_hash(state, state->stream, state->x, i);
        }
        nvtxRangePop();
        if (run % 4 != 3) {
            continue;
        }
        for (num = 0; num < HZD_PIECES &&
             cuMemAlloc(&piece[num], HZD_PIECE) == CUDA_SUCCESS; ++num) {
        }
        printf("run %u: %u pieces\n", run, num);
        for (i = 0; i < num; ++i) {
            PRG_CHECK(cuMemFree(piece[i]));
        }
    }
}

const hzd_hazard_t hzd_memory[] = {
    { "pageable_source_reused_at_once", pageable_source_reused_at_once },
    { "pinned_memory_looked_at_after_a_sync",
      pinned_memory_looked_at_after_a_sync },
    { "copies_the_host_waits_for", copies_the_host_waits_for },
    { "device_copies_and_sets_on_the_legacy_stream",
      device_copies_and_sets_on_the_legacy_stream },
    { "address_freed_and_reused_for_another_kind_of_memory",
      address_freed_and_reused_for_another_kind_of_memory },
    { "address_reused_for_less_memory", address_reused_for_less_memory },
    { "allocation_in_the_region", allocation_in_the_region },
    { "free_in_the_region", free_in_the_region },
    { "out_of_memory_gives_the_graphs_back",
      out_of_memory_gives_the_graphs_back },
    { NULL, NULL }
};
