/* SPDX-License-Identifier: Apache-2.0 */
/* Hazards of what comes and goes: captures, errors, devices, tools, drivers. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hazards.h"
#include "kernels_ptx.h"

static void life_work(hzd_state_t *state, CUstream stream, uint32_t seed)
{
    hzd_hash(state, stream, state->x, seed);
    hzd_axpy(state, stream, state->y, state->x);
    hzd_hash(state, stream, state->y, 1);
}

/* Two threads are never in here at once. */
static CUgraph life_graph;

static void life_begin_capture(hzd_state_t *state)
{
    PRG_CHECK(cuStreamBeginCapture(state->other[0],
                                   CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    hzd_hash(state, state->other[0], state->z, 2);
}

static void life_launch_capture(hzd_state_t *state)
{
    CUgraphExec exec;

    PRG_CHECK(cuStreamEndCapture(state->other[0], &life_graph));
    PRG_CHECK(cuGraphInstantiate(&exec, life_graph, 0));
    PRG_CHECK(cuGraphLaunch(exec, state->other[0]));
    PRG_CHECK(cuStreamSynchronize(state->other[0]));
    PRG_CHECK(cuGraphExecDestroy(exec));
    PRG_CHECK(cuGraphDestroy(life_graph));
}

/* From a region's middle and around it. The capture ends after one captured
 * call or two: none of them may be missing in its graph. */
static void program_captures_while_a_region_is_open(hzd_state_t *state)
{
    unsigned run, i;

    for (run = 0; run < HZD_RUNS; ++run) {
        nvtxRangePushA("captures");
        life_work(state, state->stream, run / 3);
        if (run % 3 != 1) {
            life_begin_capture(state);
            for (i = 0; i <= run % 2; ++i) {
                hzd_hash(state, state->other[0], state->z, i);
            }
            life_launch_capture(state);
        }
        life_work(state, state->stream, 1);
        nvtxRangePop();

        life_begin_capture(state);
        nvtxRangePushA("captured");
        hzd_hash(state, state->other[0], state->z, 5);
        hzd_hash(state, state->other[0], state->z, run);
        nvtxRangePop();
        life_launch_capture(state);
        nvtxRangePushA("captured");
        hzd_hash(state, state->other[0], state->z, 5);
        hzd_hash(state, state->other[0], state->z, run);
        nvtxRangePop();
    }
}

/* A run is longer than its recording, which has a copy from pageable memory, and
 * then the program captures: what the recording has is not given back now. */
static void capture_while_a_recording_grows(hzd_state_t *state)
{
    uint32_t words[HZD_WORDS];
    unsigned run;

    for (run = 0; run < HZD_RUNS; ++run) {
        memset(words, (int)run, sizeof(words));
        nvtxRangePushA("grows");
        life_work(state, state->stream, 1);
        PRG_CHECK(cuMemcpyHtoDAsync(state->x, words, HZD_BYTES,
                                    state->stream));
        if (run % 3 == 1) {
            life_work(state, state->stream, run);
            life_begin_capture(state);
            life_launch_capture(state);
        }
        nvtxRangePop();
    }
}

/* Runs one region to where it would be built, while a capture is open. */
static void life_region(hzd_state_t *state)
{
    nvtxRangePushA("elsewhere");
    life_work(state, state->other[1], 1);
    life_work(state, state->other[1], 2);
    nvtxRangePop();
}

/* While this thread captures in the mode that forbids other threads what is
 * unsafe, another one enters and leaves a region. */
static void capture_of_another_thread(hzd_state_t *state)
{
    CUgraphExec exec;
    CUgraph graph;
    unsigned run;

    for (run = 0; run < HZD_RUNS; ++run) {
        PRG_CHECK(cuStreamBeginCapture(state->other[0],
                                       CU_STREAM_CAPTURE_MODE_GLOBAL));
        hzd_hash(state, state->other[0], state->z, run);
        hzd_in_thread(state, life_region);
        hzd_hash(state, state->other[0], state->z, 1);
        PRG_CHECK(cuStreamEndCapture(state->other[0], &graph));
        PRG_CHECK(cuGraphInstantiate(&exec, graph, 0));
        PRG_CHECK(cuGraphLaunch(exec, state->other[0]));
        PRG_CHECK(cuGraphExecDestroy(exec));
        PRG_CHECK(cuGraphDestroy(graph));
        if (run % 3 == 2) {
            hzd_in_thread(state, life_region);
        }
        PRG_CHECK(cuCtxSynchronize());
    }
}

/* A launch that is refused is told there, an error of the device at the next
 * call, and at all that follow. */
static void errors_are_told_at_the_next_call(hzd_state_t *state)
{
    CUdeviceptr nowhere = 16;
    uint32_t n          = 1;
    unsigned run;

    for (run = 0; run < HZD_RUNS; ++run) {
        unsigned block = run % 4 == 3 ? 4096 : 64;
        CUresult result;

        nvtxRangePushA("errors");
        life_work(state, state->stream, 1);
        result = cuLaunchKernel(state->hash, 1, 1, 1, block, 1, 1, 0,
                                state->stream,
                                (void*[]){ &state->x, &state->n, &run },
                                NULL);
        life_work(state, state->stream, 2);
        nvtxRangePop();
        printf("run %u: %s\n", run, prg_error_name(result));
    }
    hzd_print(state);
    if (hzd_is_simulated()) {
        return; /* a kernel that writes nowhere ends the process there */
    }
    nvtxRangePushA("errors");
    life_work(state, state->stream, 1);
    PRG_LAUNCH(state->fill, state->stream, 1, &nowhere, &n, &n);
    nvtxRangePop();
    for (run = 0; run < 3; ++run) {
        printf("sync: %s\n",
               prg_error_name(cuStreamSynchronize(state->stream)));
    }
    fflush(stdout);
    _Exit(0);
}

/* Everything of one context: one of each, so that the next context's handles
 * and addresses may be the same. */
static void life_in_context(void)
{
    uint32_t n = HZD_WORDS, run;
    CUfunction hash;
    CUdeviceptr x;
    CUmodule module;
    CUstream stream;

    PRG_CHECK(cuModuleLoadData(&module, krn_kernels_ptx));
    PRG_CHECK(cuModuleGetFunction(&hash, module, "k_hash"));
    PRG_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    PRG_CHECK(cuMemAlloc(&x, HZD_BYTES));
    PRG_CHECK(cuMemsetD32Async(x, 3, n, stream));
    for (run = 0; run < HZD_RUNS; ++run) {
        nvtxRangePushA("context");
        PRG_LAUNCH(hash, stream, n, &x, &n, &run);
        PRG_LAUNCH(hash, stream, n, &x, &n, &n);
        nvtxRangePop();
    }
    PRG_CHECK(cuStreamSynchronize(stream));
    prg_print_hash("context", x, n);
}

/* All that was made in a context ends with it. */
static void primary_context_reset(hzd_state_t *state)
{
    CUdevice device = state->prg.device;
    CUcontext context, popped;
    unsigned i;

    for (i = 0; i < 4; ++i) {
#if CUDA_VERSION >= 13000
        PRG_CHECK(cuCtxCreate(&context, NULL, 0, device));
#else
        PRG_CHECK(cuCtxCreate(&context, 0, device));
#endif
        life_in_context();
        PRG_CHECK(cuCtxPopCurrent(&popped));
        PRG_CHECK(cuCtxDestroy(context));
    }
    for (i = 0; i < 4; ++i) {
        PRG_CHECK(cuCtxSetCurrent(NULL));
        PRG_CHECK(cuDevicePrimaryCtxReset(device));
        PRG_CHECK(cuDevicePrimaryCtxRetain(&context, device));
        PRG_CHECK(cuCtxSetCurrent(context));
        life_in_context();
    }
    PRG_CHECK(cuDevicePrimaryCtxReset(device));
    free(state->pageable);
    hzd_open(state);
}

/* A function of the first device: in the context of the other one its launch is
 * refused. */
static void life_one_device(CUcontext context, CUfunction hash, CUdeviceptr x)
{
    uint32_t n     = HZD_WORDS;
    void *params[] = { &x, &n, &n };
    CUresult first, second;

    PRG_CHECK(cuCtxSetCurrent(context));
    nvtxRangePushA("one device");
    first  = prg_launch(hash, NULL, n, params);
    second = prg_launch(hash, NULL, n, params);
    nvtxRangePop();
    printf("%s, %s\n", prg_error_name(first), prg_error_name(second));
}

/* One kernel, one legacy stream: all that tells the calls apart is the current
 * context. */
static void two_devices(hzd_state_t *state)
{
    CUlibrary library;
    CUkernel kernel;
    CUcontext context[2] = { state->prg.context, NULL };
    CUdeviceptr x[2];
    uint32_t *seen[2];
    CUdevice device;
    unsigned run, i;
    int count = 0;

    PRG_CHECK(cuDeviceGetCount(&count));
    if (count < 2) {
        hzd_skip("there is one device only");
    }
    PRG_CHECK(cuDeviceGet(&device, 1));
    PRG_CHECK(cuDevicePrimaryCtxRetain(&context[1], device));
    PRG_CHECK(cuLibraryLoadData(&library, krn_kernels_ptx, NULL, NULL, 0,
                                NULL, NULL, 0));
    PRG_CHECK(cuLibraryGetKernel(&kernel, library, "k_hash"));
    for (i = 0; i < 2; ++i) {
        PRG_CHECK(cuCtxSetCurrent(context[i]));
        PRG_CHECK(cuMemAlloc(&x[i], HZD_BYTES));
        PRG_CHECK(cuMemsetD32(x[i], 3, HZD_WORDS));
        PRG_CHECK(cuMemHostAlloc((void**)&seen[i], HZD_BYTES,
                                 CU_MEMHOSTALLOC_PORTABLE));
    }
    PRG_CHECK(cuCtxSetCurrent(context[0]));
    for (run = 0; run < 2 * HZD_RUNS; ++run) {
        life_one_device(context[run % 7 == 6], state->hash, x[0]);
    }
    for (run = 0; run < HZD_RUNS; ++run) {
        for (i = 0; i < 2; ++i) {
            uint32_t seed = run / 3;

            PRG_CHECK(cuCtxSetCurrent(context[i]));
            nvtxRangePushA("devices");
            PRG_LAUNCH((CUfunction)kernel, NULL, state->n, &x[i], &state->n,
                       &seed);
            PRG_LAUNCH((CUfunction)kernel, NULL, state->n, &x[i], &state->n,
                       &i);
            PRG_CHECK(cuMemcpyDtoHAsync(seen[i], x[i], HZD_BYTES, NULL));
            nvtxRangePop();
            PRG_CHECK(cuStreamSynchronize(NULL));
            hzd_print_host("device", seen[i]);
        }
        nvtxRangePushA("between devices");
        for (i = 0; i < 4; ++i) {
            PRG_CHECK(cuCtxSetCurrent(context[i % 2]));
            PRG_LAUNCH((CUfunction)kernel, NULL, state->n, &x[i % 2],
                       &state->n, &i);
            PRG_LAUNCH((CUfunction)kernel, NULL, state->n, &x[i % 2],
                       &state->n, &run);
        }
        PRG_CHECK(cuCtxSetCurrent(context[0]));
        PRG_CHECK(cuStreamSynchronize(NULL));
        PRG_CHECK(cuCtxSetCurrent(context[1]));
        PRG_CHECK(cuMemcpyPeerAsync(x[0], context[0], x[1], context[1],
                                    HZD_BYTES / 2, NULL));
        PRG_LAUNCH((CUfunction)kernel, NULL, state->n, &x[1], &state->n, &run);
        nvtxRangePop();
        PRG_CHECK(cuStreamSynchronize(NULL));
    }
    for (i = 0; i < 2; ++i) {
        PRG_CHECK(cuCtxSetCurrent(context[i]));
        prg_print_hash("device", x[i], HZD_WORDS);
        PRG_CHECK(cuMemFree(x[i]));
        PRG_CHECK(cuMemFreeHost(seen[i]));
    }
    PRG_CHECK(cuLibraryUnload(library));
    PRG_CHECK(cuCtxSetCurrent(context[0]));
    PRG_CHECK(cuDevicePrimaryCtxRelease(device));
}

typedef int (*life_subscribe_t)(void **subscriber, void *callback,
                                void *data);
typedef int (*life_unsubscribe_t)(void *subscriber);

static void life_tool_hears(void *data, int domain, unsigned id,
                            const void *what)
{
    (void)data;
    (void)domain;
    (void)id;
    (void)what;
}

/* CUPTI has room for one subscriber: the program's own tool gets it. */
static void another_tool_holds_cupti(hzd_state_t *state)
{
    static const char *const names[] = {
        "libcupti.so.13", "libcupti.so.12", "libcupti.so"
    };
    void *cupti = NULL, *subscriber = NULL;
    life_subscribe_t subscribe     = NULL;
    life_unsubscribe_t unsubscribe = NULL;
    unsigned run, i;

    if (hzd_is_simulated()) {
        hzd_skip("no tool can hold the simulated driver");
    }
    for (i = 0; cupti == NULL && i < PRG_COUNT_OF(names); ++i) {
        cupti = dlopen(names[i], RTLD_NOW);
    }
    if (cupti != NULL) {
        *(void**)&subscribe   = dlsym(cupti, "cuptiSubscribe");
        *(void**)&unsubscribe = dlsym(cupti, "cuptiUnsubscribe");
    }
    if (subscribe == NULL || unsubscribe == NULL) {
        hzd_skip("there is no CUPTI");
    }
    for (run = 0; run < HZD_RUNS; ++run) {
        if (run == HZD_RUNS / 2) {
            printf("subscribed: %d\n",
                   subscribe(&subscriber, (void*)life_tool_hears, NULL));
        }
        nvtxRangePushA("tool");
        life_work(state, state->stream, run / 3);
        nvtxRangePop();
    }
    printf("unsubscribed: %d\n", unsubscribe(subscriber));
}

/* Just work: what matters is the driver that it meets. */
static void old_driver_passes_through(hzd_state_t *state)
{
    unsigned run;

    for (run = 0; run < HZD_RUNS; ++run) {
        nvtxRangePushA("old driver");
        life_work(state, state->stream, run / 3);
        life_work(state, state->stream, 2);
        nvtxRangePop();
    }
}

const hzd_hazard_t hzd_life[] = {
    { "program_captures_while_a_region_is_open",
      program_captures_while_a_region_is_open },
    { "capture_while_a_recording_grows", capture_while_a_recording_grows },
    { "capture_of_another_thread", capture_of_another_thread },
    { "errors_are_told_at_the_next_call", errors_are_told_at_the_next_call },
    { "primary_context_reset", primary_context_reset },
    { "two_devices", two_devices },
    { "another_tool_holds_cupti", another_tool_holds_cupti },
    { "old_driver_passes_through", old_driver_passes_through },
    { NULL, NULL }
};
