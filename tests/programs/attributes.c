/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The launches that carry more than arguments: cuLaunchKernelEx with none, one
 * and several attributes, arguments in a buffer (`extra`), cooperative ones,
 * and attributes of functions and streams that change between runs. Where a
 * device does not know an attribute, the error is the result.
 */
#include <stdio.h>
#include <string.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    ATTRIBUTES_WORDS = 128,
    ATTRIBUTES_RUNS  = 8
};


typedef struct attributes_state {
    CUstream    stream;
    uint32_t    n;
    CUdeviceptr x;
    CUdeviceptr y;
    CUdeviceptr word;
    CUfunction  axpy;
    CUfunction  chain;
    CUfunction  turn;
} attributes_state_t;


static CUresult attributes_launch(attributes_state_t *state,
                                  CUlaunchAttribute *attributes,
                                  unsigned num_attributes, uint32_t factor)
{
    CUlaunchConfig config;

    memset(&config, 0, sizeof(config));
    config.gridDimX  = state->n / 32;
    config.gridDimY  = 1;
    config.gridDimZ  = 1;
    config.blockDimX = 32;
    config.blockDimY = 1;
    config.blockDimZ = 1;
    config.hStream   = state->stream;
    config.attrs     = attributes;
    config.numAttrs  = num_attributes;
    return cuLaunchKernelEx(&config, state->axpy,
                            (void*[]){ &state->x, &state->y, &state->n,
                                       &factor }, NULL);
}

static void attributes_print(attributes_state_t *state, const char *name)
{
    PRG_CHECK(cuStreamSynchronize(state->stream));
    printf("%s\n", name);
    prg_print_hash("  x", state->x, state->n);
    prg_print_hash("  word", state->word, 1);
}

static void attributes_none(attributes_state_t *state)
{
    unsigned run;

    for (run = 0; run < ATTRIBUTES_RUNS; ++run) {
        nvtxRangePushA("none");
        PRG_CHECK(attributes_launch(state, NULL, 0, 3));
        PRG_CHECK(attributes_launch(state, NULL, 0, run));
        nvtxRangePop();
    }
    attributes_print(state, "none");
}

/* The error of the first run, and whether the later runs had the same. */
static void attributes_play(attributes_state_t *state, const char *name,
                            CUlaunchAttribute *attributes, unsigned num)
{
    uint32_t one   = 1;
    CUresult first = CUDA_SUCCESS;
    unsigned same  = 0;
    unsigned run;

    for (run = 0; run < ATTRIBUTES_RUNS; ++run) {
        CUresult result;

        nvtxRangePushA(name);
        PRG_LAUNCH(state->chain, state->stream, 1, &state->word, &one);
        result = attributes_launch(state, attributes, num, run / 4);
        PRG_LAUNCH(state->chain, state->stream, 1, &state->word, &one);
        nvtxRangePop();
        if (run == 0) {
            first = result;
        }
        same += result == first;
    }
    printf("%s: %s, %u times\n", name, prg_error_name(first), same);
    attributes_print(state, name);
}

static void attributes_each(attributes_state_t *state)
{
    CUlaunchAttribute list[4];

    memset(list, 0, sizeof(list));
    list[0].id                 = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    list[0].value.clusterDim.x = 2;
    list[0].value.clusterDim.y = 1;
    list[0].value.clusterDim.z = 1;
    list[1].id                 = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    list[1].value.priority     = -1;
    list[2].id                 = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    list[2].value.cooperative  = 1;
    list[3].id                 = CU_LAUNCH_ATTRIBUTE_IGNORE;

    attributes_play(state, "cluster", &list[0], 1);
    attributes_play(state, "priority", &list[1], 1);
    attributes_play(state, "cooperative", &list[2], 1);
    attributes_play(state, "ignore", &list[3], 1);
    attributes_play(state, "all", list, 4);

    list[0].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    list[0].value.programmaticStreamSerializationAllowed = 1;
    attributes_play(state, "programmatic", &list[0], 1);
}

/* An attribute appears, changes and goes between two runs. */
static void attributes_change(attributes_state_t *state)
{
    CUlaunchAttribute attribute;
    uint32_t one = 1;
    unsigned run;

    memset(&attribute, 0, sizeof(attribute));
    attribute.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    for (run = 0; run < 3 * ATTRIBUTES_RUNS; ++run) {
        nvtxRangePushA("change");
        PRG_LAUNCH(state->chain, state->stream, 1, &state->word, &one);
        attribute.value.priority = run % 2 ? 0 : -1;
        PRG_CHECK(attributes_launch(state, &attribute, run % 4 < 2 ? 1 : 0, 3));
        PRG_LAUNCH(state->chain, state->stream, 1, &state->word, &one);
        nvtxRangePop();
    }
    attributes_print(state, "change");
}

static void attributes_extra(attributes_state_t *state)
{
    struct {
        CUdeviceptr y;
        CUdeviceptr x;
        uint32_t    n;
        uint32_t    factor;
    } buffer;
    size_t size   = sizeof(buffer);
    void *extra[] = {
        CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer,
        CU_LAUNCH_PARAM_BUFFER_SIZE,    &size,
        CU_LAUNCH_PARAM_END
    };
    unsigned run;

    for (run = 0; run < ATTRIBUTES_RUNS; ++run) {
        buffer.y      = run % 2 ? state->x : state->y;
        buffer.x      = run % 2 ? state->y : state->x;
        buffer.n      = state->n;
        buffer.factor = run;
        nvtxRangePushA("extra");
        PRG_CHECK(cuLaunchKernel(state->axpy, 2, 1, 1, 64, 1, 1, 0,
                                 state->stream, NULL, extra));
        buffer.factor = 5;
        PRG_CHECK(cuLaunchKernel(state->axpy, 2, 1, 1, 64, 1, 1, 0,
                                 state->stream, NULL, extra));
        memset(&buffer, 0, sizeof(buffer));
        nvtxRangePop();
    }
    attributes_print(state, "extra");
}

static void attributes_cooperative(attributes_state_t *state)
{
    uint32_t factor = 3;
    unsigned run;

    for (run = 0; run < ATTRIBUTES_RUNS; ++run) {
        void *params[] = { &state->x, &state->y, &state->n, &factor };

        nvtxRangePushA("cooperative launch");
        PRG_CHECK(cuLaunchCooperativeKernel(state->axpy, 2, 1, 1, 64, 1, 1, 0,
                                            state->stream, params));
        if (run % 2) {
            PRG_CHECK(cuLaunchKernel(state->axpy, 2, 1, 1, 64, 1, 1, 0,
                                     state->stream, params, NULL));
        } else {
            PRG_CHECK(cuLaunchCooperativeKernel(state->axpy, 2, 1, 1, 64, 1, 1,
                                                0, state->stream, params));
        }
        nvtxRangePop();
    }
    attributes_print(state, "cooperative launch");
}

/* More dynamic shared memory than a function may have until it is allowed. */
static void attributes_function(attributes_state_t *state)
{
    const CUfunction_attribute shared =
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    unsigned run;

    for (run = 0; run < ATTRIBUTES_RUNS; ++run) {
        unsigned size = run < 2 ? 1024 : 56 * 1024;
        CUresult result;

        nvtxRangePushA("function");
        if (run == 4) {
            PRG_CHECK(cuFuncSetAttribute(state->turn, shared, 60 * 1024));
        }
        result = cuLaunchKernel(state->turn, 2, 1, 1, 64, 1, 1, size,
                                state->stream,
                                (void*[]){ &state->x, &state->n }, NULL);
        nvtxRangePop();
        printf("function %u: %s\n", run, prg_error_name(result));
        if (run == 6) {
            PRG_CHECK(cuFuncSetAttribute(state->turn, shared, 0));
        }
    }
    attributes_print(state, "function");
}

static void attributes_stream(attributes_state_t *state)
{
    CUstreamAttrValue value;
    uint32_t one = 1;
    unsigned run;

    for (run = 0; run < ATTRIBUTES_RUNS; ++run) {
        memset(&value, 0, sizeof(value));
        value.syncPolicy = run % 4 < 2 ? CU_SYNC_POLICY_AUTO
                                       : CU_SYNC_POLICY_YIELD;
        nvtxRangePushA("stream");
        PRG_LAUNCH(state->chain, state->stream, 1, &state->word, &one);
        PRG_CHECK(cuStreamSetAttribute(
            state->stream, CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY,
            &value));
        PRG_CHECK(attributes_launch(state, NULL, 0, 3));
        nvtxRangePop();
    }
    attributes_print(state, "stream");
}

int main(void)
{
    attributes_state_t state = { .n = ATTRIBUTES_WORDS };
    prg_context_t prg;

    prg_open(&prg);
    state.axpy  = prg_kernel(&prg, "k_axpy");
    state.chain = prg_kernel(&prg, "k_chain");
    state.turn  = prg_kernel(&prg, "k_turn");
    state.x     = prg_alloc(&prg, state.n, 9);
    state.y     = prg_alloc(&prg, state.n, 90);
    state.word  = prg_alloc(&prg, 1, 1);
    PRG_CHECK(cuStreamCreate(&state.stream, CU_STREAM_NON_BLOCKING));

    attributes_none(&state);
    attributes_each(&state);
    attributes_change(&state);
    attributes_extra(&state);
    attributes_cooperative(&state);
    attributes_function(&state);
    attributes_stream(&state);

    PRG_CHECK(cuStreamDestroy(state.stream));
    PRG_CHECK(cuMemFree(state.x));
    PRG_CHECK(cuMemFree(state.y));
    PRG_CHECK(cuMemFree(state.word));
    prg_close(&prg);
    return 0;
}
