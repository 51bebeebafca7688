/* SPDX-License-Identifier: Apache-2.0 */
/* Hazards of streams and events. */
#include <stdio.h>

#include "hazards.h"

/* Legacy and blocking streams wait for each other, the others for nobody. */
static void legacy_next_to_blocking_streams(hzd_state_t *state)
{
    CUstream blocking;
    unsigned run;

    PRG_CHECK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    for (run = 0; run < HZD_RUNS; ++run) {
        nvtxRangePushA("legacy");
        hzd_hash(state, state->stream, state->x, run);
        hzd_hash(state, state->stream, state->x, 1);
        hzd_axpy(state, NULL, state->y, state->x);
        hzd_hash(state, state->other[0], state->z, 2);
        hzd_axpy(state, CU_STREAM_LEGACY, state->x, state->y);
        hzd_axpy(state, blocking, state->y, state->x);
        hzd_hash(state, state->other[0], state->z, 3);
        hzd_hash(state, blocking, state->y, 4);
        hzd_axpy(state, NULL, state->x, state->y);
        hzd_axpy(state, state->stream, state->y, state->x);
        nvtxRangePop();
    }
    PRG_CHECK(cuStreamSynchronize(state->other[0]));
    PRG_CHECK(cuStreamDestroy(blocking));
}

/* The events of the two programs below, for threads as well. */
static CUevent streams_event[2];

/* Work of another stream that comes after the event, and its result. */
static void streams_after_event(hzd_state_t *state)
{
    CUstream stream = state->other[1];

    PRG_CHECK(cuStreamWaitEvent(stream, streams_event[1], 0));
    hzd_axpy(state, stream, state->z, state->y);
    PRG_CHECK(cuStreamSynchronize(stream));
    prg_print_hash("a wait", state->z, state->n);
}

/* A look at what the event stands for, without touching its stream. */
static void streams_look(hzd_state_t *state, const char *name)
{
    CUstream stream = state->other[1];

    PRG_CHECK(cuMemcpyDtoHAsync(state->pinned[0], state->y, HZD_BYTES,
                                stream));
    PRG_CHECK(cuStreamSynchronize(stream));
    hzd_print_host(name, state->pinned[0]);
}

static void streams_synchronize(hzd_state_t *state)
{
    PRG_CHECK(cuEventSynchronize(streams_event[1]));
    streams_look(state, "a sync");
}

static void streams_query(hzd_state_t *state)
{
    CUresult result;

    while ((result = cuEventQuery(streams_event[1])) ==
           CUDA_ERROR_NOT_READY) {
    }
    PRG_CHECK(result);
    streams_look(state, "a query");
}

static void streams_elapsed_time(hzd_state_t *state)
{
    float ms = -1.0f;

    PRG_CHECK(cuEventSynchronize(streams_event[1]));
    PRG_CHECK(cuEventElapsedTime(&ms, streams_event[0], streams_event[1]));
    printf("elapsed time: %s\n", ms > 0.0f ? "more than nothing" : "nothing");
    streams_look(state, "elapsed time");
}

/* By all who can see an event: after the region, in it, and in it from another
 * thread. */
static void event_seen_outside_the_region(hzd_state_t *state)
{
    static void (*const look[])(hzd_state_t *state) = {
        streams_after_event, streams_synchronize, streams_query,
        streams_elapsed_time
    };
    CUstream stream = state->other[0];
    unsigned run, i, place;

    for (i = 0; i < 2; ++i) {
        PRG_CHECK(cuEventCreate(&streams_event[i], CU_EVENT_DEFAULT));
    }
    for (place = 0; place < 3; ++place) {
        for (run = 0; run < HZD_RUNS; ++run) {
            static const char *const names[] = { "after", "in", "thread" };

            i = run % PRG_COUNT_OF(look);
            nvtxRangePushA(names[place]);
            PRG_CHECK(cuEventRecord(streams_event[0], stream));
            hzd_hash(state, stream, state->x, run);
            hzd_axpy(state, stream, state->y, state->x);
            PRG_CHECK(cuEventRecord(streams_event[1], stream));
            hzd_hash(state, stream, state->x, 1);
            if (place == 1) {
                look[i](state);
            } else if (place == 2) {
                hzd_in_thread(state, look[i]);
            }
            hzd_hash(state, stream, state->x, 2);
            hzd_hash(state, stream, state->x, 3);
            nvtxRangePop();
            if (place == 0) {
                look[i](state);
            }
        }
    }
    for (i = 0; i < 2; ++i) {
        PRG_CHECK(cuEventDestroy(streams_event[i]));
    }
}

/* The new event may have the old one's handle, and is another one. */
static void event_made_again_under_the_same_handle(hzd_state_t *state)
{
    CUevent event;
    unsigned run;

    for (run = 0; run < HZD_RUNS; ++run) {
        PRG_CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
        nvtxRangePushA("made again");
        hzd_hash(state, state->other[0], state->x, run / 3);
        hzd_axpy(state, state->other[0], state->y, state->x);
        PRG_CHECK(cuEventRecord(event, state->other[0]));
        hzd_hash(state, state->other[0], state->x, 1);
        nvtxRangePop();
        PRG_CHECK(cuStreamWaitEvent(state->other[1], event, 0));
        hzd_axpy(state, state->other[1], state->z, state->y);
        PRG_CHECK(cuStreamSynchronize(state->other[1]));
        PRG_CHECK(cuEventDestroy(event));
    }
}

/* A region that runs on two streams by turns, without a wait between. Each run
 * is ordered with its own stream. */
static void one_exec_never_overlaps_itself(hzd_state_t *state)
{
    CUdeviceptr buffer[] = { state->x, state->y };
    unsigned run, i;

    for (run = 0; run < HZD_RUNS; ++run) {
        for (i = 0; i < 2; ++i) {
            CUstream stream = state->other[i];
            uint32_t factor = 3 + run % 3;

            hzd_hash(state, stream, buffer[i], run);
            nvtxRangePushA("two streams");
            hzd_hash(state, stream, buffer[i], 1);
            PRG_LAUNCH(state->axpy, stream, state->n, &buffer[i], &buffer[i],
                       &state->n, &factor);
            hzd_hash(state, stream, buffer[i], 2);
            PRG_CHECK(cuMemcpyDtoHAsync(state->pinned[i], buffer[i],
                                        HZD_BYTES, stream));
            nvtxRangePop();
            hzd_hash(state, stream, buffer[i], 3);
        }
        for (i = 0; i < 2; ++i) {
            PRG_CHECK(cuStreamSynchronize(state->other[i]));
            hzd_print_host("two streams", state->pinned[i]);
        }
    }
}

/* Fork and join by events in the region; what is on either stream before and
 * after it is in order too. In every second run nothing is joined inside. */
static void forked_streams_join(hzd_state_t *state)
{
    CUstream a = state->other[0], b = state->other[1];
    CUevent fork, join;
    unsigned run;

    PRG_CHECK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    PRG_CHECK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    for (run = 0; run < 2 * HZD_RUNS; ++run) {
        bool joined = run / HZD_RUNS == 0;

        hzd_hash(state, b, state->y, run);
        nvtxRangePushA(joined ? "joined" : "not joined");
        hzd_hash(state, a, state->x, 1);
        hzd_hash(state, a, state->x, 2);
        PRG_CHECK(cuEventRecord(fork, a));
        PRG_CHECK(cuStreamWaitEvent(b, fork, 0));
        hzd_axpy(state, b, state->y, state->x);
        hzd_hash(state, b, state->y, 3);
        hzd_hash(state, a, state->z, 4);
        hzd_hash(state, a, state->z, 5);
        if (joined) {
            PRG_CHECK(cuEventRecord(join, b));
            PRG_CHECK(cuStreamWaitEvent(a, join, 0));
            hzd_axpy(state, a, state->z, state->y);
            hzd_axpy(state, a, state->x, state->y);
        }
        nvtxRangePop();
        hzd_hash(state, a, state->z, 6);
        if (!joined) {
            hzd_hash(state, b, state->y, 7);
            PRG_CHECK(cuStreamSynchronize(b));
            prg_print_hash("y", state->y, state->n);
        }
        PRG_CHECK(cuEventRecord(join, a));
        PRG_CHECK(cuStreamWaitEvent(b, join, 0));
        hzd_axpy(state, b, state->y, state->z);
        PRG_CHECK(cuStreamSynchronize(b));
    }
    PRG_CHECK(cuEventDestroy(fork));
    PRG_CHECK(cuEventDestroy(join));
}

/* Waits on the device until a word has a value. */
static const char streams_spin_ptx[] =
    ".version 7.0\n"
    ".target sm_75\n"
    ".address_size 64\n"
    ".visible .entry k_spin_until(\n"
    "    .param .u64 k_spin_until_param_0,\n"
    "    .param .u32 k_spin_until_param_1\n"
    ")\n"
    "{\n"
    "    .reg .pred %p;\n"
    "    .reg .b32 %value, %found;\n"
    "    .reg .b64 %word, %place;\n"
    "    ld.param.u64 %word, [k_spin_until_param_0];\n"
    "    ld.param.u32 %value, [k_spin_until_param_1];\n"
    "    cvta.to.global.u64 %place, %word;\n"
    "again:\n"
    "    ld.volatile.global.u32 %found, [%place];\n"
    "    setp.ne.u32 %p, %found, %value;\n"
    "    @%p bra again;\n"
    "    ret;\n"
    "}\n";

/* The launch that ends the waiting is made after it, on a stream that has been
 * in the region before: that stream must not have been made to wait as well.
 *
 * The simulated driver runs a kernel in the thread that calls it, where a
 * kernel that spins would spin for ever: there a wait of the stream takes its
 * place. */
static void kernel_that_spins_on_another_stream(hzd_state_t *state)
{
    CUstream a = state->other[0], b = state->other[1];
    bool simulated = hzd_is_simulated();
    uint32_t one = 1, value;
    CUfunction spin = NULL;
    CUmodule module;
    unsigned run;

    PRG_CHECK(cuModuleLoadData(&module, streams_spin_ptx));
    PRG_CHECK(cuModuleGetFunction(&spin, module, "k_spin_until"));
    PRG_CHECK(cuMemsetD32(state->word, 0, 1));
    PRG_CHECK(cuCtxSynchronize());
    for (run = 0; run < HZD_RUNS; ++run) {
        value = run + 1;
        nvtxRangePushA("spins");
        hzd_hash(state, b, state->y, 1);
        hzd_hash(state, b, state->y, 2);
        hzd_hash(state, a, state->x, 3);
        hzd_hash(state, a, state->x, 4);
        if (simulated) {
            PRG_CHECK(cuStreamWaitValue32(a, state->word, value,
                                          CU_STREAM_WAIT_VALUE_EQ));
        } else {
            PRG_LAUNCH(spin, a, 1, &state->word, &value);
            cuStreamQuery(b);
        }
        hzd_hash(state, a, state->x, 5);
        hzd_hash(state, a, state->x, 6);
        hzd_hash(state, b, state->y, 7);
        PRG_LAUNCH(state->fill, b, 1, &state->word, &one, &value);
        nvtxRangePop();
        PRG_CHECK(cuStreamSynchronize(a));
        PRG_CHECK(cuStreamSynchronize(b));
    }
    PRG_CHECK(cuModuleUnload(module));
}

/* A barrier that waits for nothing, between the calls of the first thread. */
static void streams_barrier(hzd_state_t *state)
{
    CUstream stream;

    hzd_hash(state, CU_STREAM_PER_THREAD, state->y, 1);
    PRG_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    PRG_CHECK(cuStreamDestroy(stream));
    PRG_CHECK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

typedef CUresult (*streams_launch_t)(CUfunction f, unsigned gx, unsigned gy,
                                     unsigned gz, unsigned bx, unsigned by,
                                     unsigned bz, unsigned shared,
                                     CUstream stream, void **params,
                                     void **extra);

/* Its handle, and stream 0 of the functions for per-thread streams, are another
 * stream in each thread. */
static void per_thread_default_stream(hzd_state_t *state)
{
    CUstream mine = CU_STREAM_PER_THREAD;
    streams_launch_t launch = NULL;
    unsigned run;

    PRG_CHECK(cuGetProcAddress(
        "cuLaunchKernel", (void**)&launch, CUDA_VERSION,
        CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, NULL));
    for (run = 0; run < HZD_RUNS; ++run) {
        uint32_t seed = run;

        nvtxRangePushA("per thread");
        hzd_hash(state, mine, state->x, run);
        PRG_CHECK(launch(state->hash, 1, 1, 1, 64, 1, 1, 0, NULL,
                         (void*[]){ &state->x, &state->n, &seed }, NULL));
        hzd_in_thread(state, streams_barrier);
        hzd_hash(state, mine, state->x, 1);
        PRG_CHECK(cuMemcpyDtoHAsync(state->pinned[0], state->x, HZD_BYTES,
                                    mine));
        hzd_hash(state, mine, state->x, 2);
        hzd_in_thread(state, streams_barrier);
        PRG_CHECK(cuStreamSynchronize(mine));
        hzd_print_host("per thread", state->pinned[0]);
        hzd_hash(state, mine, state->x, 3);
        hzd_hash(state, mine, state->x, 4);
        nvtxRangePop();
    }
}

const hzd_hazard_t hzd_streams[] = {
    { "legacy_next_to_blocking_streams", legacy_next_to_blocking_streams },
    { "event_seen_outside_the_region", event_seen_outside_the_region },
    { "event_made_again_under_the_same_handle",
      event_made_again_under_the_same_handle },
    { "one_exec_never_overlaps_itself", one_exec_never_overlaps_itself },
    { "forked_streams_join", forked_streams_join },
    { "kernel_that_spins_on_another_stream",
      kernel_that_spins_on_another_stream },
    { "per_thread_default_stream", per_thread_default_stream },
    { NULL, NULL }
};
