/* SPDX-License-Identifier: Apache-2.0 */
/* Hazards of launches that carry more than arguments, and of host functions. */
#include <stdio.h>
#include <string.h>

#include "hazards.h"

/* y = 3 * y + 5 * x in `grid` blocks, with one attribute. */
static CUresult launches_with(hzd_state_t *state, CUstream stream,
                              unsigned grid, CUlaunchAttribute *attribute)
{
    uint32_t factor       = 5;
    CUlaunchConfig config = {
        .gridDimX = grid, .gridDimY = 1, .gridDimZ = 1,
        .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1,
        .hStream = stream, .attrs = attribute,
        .numAttrs = attribute != NULL
    };

    return cuLaunchKernelEx(&config, state->axpy,
                            (void*[]){ &state->y, &state->x, &state->n,
                                       &factor }, NULL);
}

/* Dynamic shared memory is allowed and forbidden between runs and in them, and
 * other attributes of function, context and stream are set. */
static void attribute_changed_between_launches(hzd_state_t *state)
{
    const CUfunction_attribute shared =
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    CUfunction turn = prg_kernel(&state->prg, "k_turn");
    unsigned run;

    for (run = 0; run < 2 * HZD_RUNS; ++run) {
        int bytes               = run / 5 % 2 == 0 ? 64 * 1024 : 0;
        CUstreamAttrValue value = { .syncPolicy = CU_SYNC_POLICY_AUTO };
        CUresult result;

        if (run % 2 == 0) {
            PRG_CHECK(cuFuncSetAttribute(turn, shared, bytes));
        }
        nvtxRangePushA("attribute");
        hzd_hash(state, state->stream, state->x, 1);
        hzd_hash(state, state->stream, state->x, 2);
        if (run % 2 == 1) {
            PRG_CHECK(cuFuncSetAttribute(turn, shared, bytes));
        }
        result = cuLaunchKernel(turn, 1, 1, 1, 64, 1, 1, 56 * 1024,
                                state->stream,
                                (void*[]){ &state->x, &state->n }, NULL);
        hzd_hash(state, state->stream, state->x, 3);
        if (run == 8) {
            PRG_CHECK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 2048));
        }
        if (run == 12) {
            PRG_CHECK(cuStreamSetAttribute(
                state->stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY,
                &value));
        }
        hzd_hash(state, state->stream, state->x, 4);
        nvtxRangePop();
        printf("run %u: %s\n", run, prg_error_name(result));
    }
}

/* A stream of another priority, with a window and a domain that change. */
static void stream_priority_and_attributes(hzd_state_t *state)
{
    CUstreamAttrValue value;
    CUstream stream;
    CUevent event;
    unsigned run;
    int least, greatest;

    PRG_CHECK(cuCtxGetStreamPriorityRange(&least, &greatest));
    PRG_CHECK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING,
                                         greatest));
    PRG_CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (run = 0; run < 2 * HZD_RUNS; ++run) {
        if (run % 5 == 4) {
            memset(&value, 0, sizeof(value));
            value.accessPolicyWindow.base_ptr  = (void*)state->x;
            value.accessPolicyWindow.num_bytes = HZD_BYTES;
            value.accessPolicyWindow.hitRatio  = 1.0f;
            value.accessPolicyWindow.hitProp   = run % 2 ?
                CU_ACCESS_PROPERTY_PERSISTING : CU_ACCESS_PROPERTY_NORMAL;
            value.accessPolicyWindow.missProp  = CU_ACCESS_PROPERTY_STREAMING;
            PRG_CHECK(cuStreamSetAttribute(
                stream, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
            memset(&value, 0, sizeof(value));
            value.memSyncDomain = run % 2 ? CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE :
                                            CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT;
            PRG_CHECK(cuStreamSetAttribute(
                stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value));
        }
        nvtxRangePushA("priority");
        hzd_hash(state, state->other[0], state->x, run / 2);
        PRG_CHECK(cuEventRecord(event, state->other[0]));
        PRG_CHECK(cuStreamWaitEvent(stream, event, 0));
        hzd_axpy(state, stream, state->y, state->x);
        hzd_hash(state, stream, state->y, 1);
        PRG_CHECK(cuEventRecord(event, stream));
        PRG_CHECK(cuStreamWaitEvent(state->other[0], event, 0));
        hzd_axpy(state, state->other[0], state->x, state->y);
        nvtxRangePop();
    }
    PRG_CHECK(cuStreamSynchronize(stream));
    PRG_CHECK(cuEventDestroy(event));
    PRG_CHECK(cuStreamDestroy(stream));
}

/* In some runs the attribute's value is one that the driver refuses. */
static void cooperative_and_cluster_launches(hzd_state_t *state)
{
    enum { HZD_MANY = 5000 }; /* blocks; more than run at once */
    CUlaunchAttribute cluster     = {
        .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
        .value.clusterDim = { 2, 1, 1 }
    };
    CUlaunchAttribute cooperative = { .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE };
    uint32_t factor = 5;
    void *params[]  = { &state->x, &state->y, &state->n, &factor };
    unsigned run;

    for (run = 0; run < 2 * HZD_RUNS; ++run) {
        CUresult clustered, many;

        cluster.value.clusterDim.x = run % 6 == 5 ? 3 : 2;
        cooperative.value.cooperative = run % 7 == 6;
        nvtxRangePushA("together");
        hzd_hash(state, state->stream, state->x, run / 3);
        clustered = launches_with(state, state->stream, 2, &cluster);
        PRG_CHECK(cuLaunchCooperativeKernel(state->axpy, 2, 1, 1, 32, 1, 1, 0,
                                            state->stream, params));
        many = launches_with(state, state->stream, HZD_MANY, &cooperative);
        hzd_hash(state, state->stream, state->y, 1);
        nvtxRangePop();
        printf("run %u: %s, %s\n", run, prg_error_name(clustered),
               prg_error_name(many));
    }
}

/* A launch that may start early, and one whose event another stream waits
 * for. */
static void programmatic_launches_and_events(hzd_state_t *state)
{
    CUlaunchAttribute early = {
        .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        .value.programmaticStreamSerializationAllowed = 1
    };
    CUlaunchAttribute told  = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT };
    CUlaunchAttribute begun = {
        .id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT
    };
    CUevent event[2];
    unsigned run, i;

    for (i = 0; i < 2; ++i) {
        PRG_CHECK(cuEventCreate(&event[i], CU_EVENT_DISABLE_TIMING));
    }
    told.value.programmaticEvent.event      = event[0];
    begun.value.launchCompletionEvent.event = event[1];
    for (run = 0; run < HZD_RUNS; ++run) {
        nvtxRangePushA("programmatic");
        hzd_hash(state, state->other[0], state->x, run / 3);
        hzd_hash(state, state->other[0], state->x, 1);
        PRG_CHECK(launches_with(state, state->other[0], 2, &told));
        PRG_CHECK(launches_with(state, state->other[0], 2, &begun));
        hzd_hash(state, state->other[0], state->x, 2);
        PRG_CHECK(launches_with(state, state->other[0], 2, &early));
        hzd_hash(state, state->other[0], state->x, 3);
        nvtxRangePop();
        PRG_CHECK(cuEventSynchronize(event[1]));
        PRG_CHECK(cuStreamWaitEvent(state->other[1], event[0], 0));
        hzd_hash(state, state->other[1], state->z, 4);
        PRG_CHECK(cuStreamSynchronize(state->other[1]));
        PRG_CHECK(cuStreamSynchronize(state->other[0]));
    }
    for (i = 0; i < 2; ++i) {
        PRG_CHECK(cuEventDestroy(event[i]));
    }
}

/* The event of a launch stands for all that came before it on its stream. */
static void event_of_a_launch_seen_by_another_stream(hzd_state_t *state)
{
    CUlaunchAttribute told = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT };
    CUevent event;
    unsigned run;

    PRG_CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    told.value.programmaticEvent.event = event;
    for (run = 0; run < HZD_RUNS; ++run) {
        nvtxRangePushA("event of a launch");
        hzd_hash(state, state->other[0], state->x, run / 3);
        hzd_hash(state, state->other[0], state->x, 1);
        PRG_CHECK(launches_with(state, state->other[0], 2, &told));
        PRG_CHECK(cuStreamWaitEvent(state->other[1], event, 0));
        hzd_axpy(state, state->other[1], state->z, state->x);
        hzd_axpy(state, state->other[1], state->z, state->x);
        nvtxRangePop();
        PRG_CHECK(cuStreamSynchronize(state->other[1]));
    }
    PRG_CHECK(cuEventDestroy(event));
}

/* What a host function is given. */
typedef struct launches_host {
    const uint32_t *from;
    uint32_t       sum, factor;
} launches_host_t;

static void CUDA_CB launches_host_function(void *data)
{
    launches_host_t *host = data;

    host->sum = host->sum * host->factor + host->from[0];
}

static void CUDA_CB launches_callback(CUstream stream, CUresult status,
                                      void *data)
{
    (void)stream;
    if (status == CUDA_SUCCESS) {
        launches_host_function(data);
    }
}

static void launches_copy_back(hzd_state_t *state, unsigned i)
{
    PRG_CHECK(cuMemcpyDtoHAsync(state->pinned[i], state->x, HZD_BYTES,
                                state->stream));
}

/* All are in order with the stream's work, and see the data of their own
 * call. */
static void host_functions_and_callbacks(hzd_state_t *state)
{
    launches_host_t host[3] = {
        { .from = state->pinned[0], .factor = 3 },
        { .from = state->pinned[0], .factor = 5 },
        { .from = state->pinned[1], .factor = 7 }
    };
    unsigned run, i;

    for (run = 0; run < HZD_RUNS; ++run) {
        nvtxRangePushA("host functions");
        hzd_hash(state, state->stream, state->x, run / 3);
        launches_copy_back(state, 0);
        PRG_CHECK(cuLaunchHostFunc(state->stream, launches_host_function,
                                   &host[run % 2]));
        hzd_hash(state, state->stream, state->x, 1);
        launches_copy_back(state, 1);
        nvtxRangePop();
        PRG_CHECK(cuStreamSynchronize(state->stream));

        nvtxRangePushA("callbacks");
        hzd_hash(state, state->stream, state->x, 2);
        launches_copy_back(state, 1);
        PRG_CHECK(cuStreamAddCallback(state->stream, launches_callback,
                                      &host[2], 0));
        hzd_hash(state, state->stream, state->x, 3);
        launches_copy_back(state, 0);
        nvtxRangePop();
        PRG_CHECK(cuStreamSynchronize(state->stream));
        for (i = 0; i < 3; ++i) {
            printf("run %u: %08x\n", run, host[i].sum);
        }
    }
}

/* A word that the stream writes, and waits for, between launches. */
static void memory_operations_of_a_stream(hzd_state_t *state)
{
    CUstream a = state->other[0], b = state->other[1];
    CUdeviceptr flag = prg_alloc(&state->prg, 1, 0);
    unsigned run;

    for (run = 0; run < HZD_RUNS; ++run) {
        nvtxRangePushA("memory operations");
        hzd_hash(state, a, state->x, run / 3);
        hzd_axpy(state, a, state->y, state->x);
        PRG_CHECK(cuStreamWriteValue32(a, flag, run + 1, 0));
        hzd_hash(state, a, state->x, 1);
        hzd_hash(state, a, state->x, 2);
        PRG_CHECK(cuStreamWaitValue32(b, flag, run + 1,
                                      CU_STREAM_WAIT_VALUE_EQ));
        hzd_axpy(state, b, state->z, state->y);
        hzd_hash(state, b, state->z, 3);
        nvtxRangePop();
        PRG_CHECK(cuStreamSynchronize(b));
    }
    PRG_CHECK(cuStreamSynchronize(a));
    PRG_CHECK(cuMemFree(flag));
}

const hzd_hazard_t hzd_launches[] = {
    { "attribute_changed_between_launches",
      attribute_changed_between_launches },
    { "stream_priority_and_attributes", stream_priority_and_attributes },
    { "cooperative_and_cluster_launches", cooperative_and_cluster_launches },
    { "programmatic_launches_and_events", programmatic_launches_and_events },
    { "event_of_a_launch_seen_by_another_stream",
      event_of_a_launch_seen_by_another_stream },
    { "host_functions_and_callbacks", host_functions_and_callbacks },
    { "memory_operations_of_a_stream", memory_operations_of_a_stream },
    { NULL, NULL }
};
