/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with graphs of its own: captured and built from nodes, launched
 * around and inside of regions, captured within a region, and updated.
 */
#include <stdio.h>
#include <string.h>

#include <nvtx3/nvToolsExt.h>

#include "util.h"


enum {
    GRAPHS_WORDS = 64,
    GRAPHS_RUNS  = 8
};


typedef struct graphs_state {
    CUstream    stream;
    uint32_t    n;
    CUdeviceptr x;
    CUdeviceptr word;
    CUfunction  scale;
    CUfunction  chain;
} graphs_state_t;


static void graphs_work(graphs_state_t *state, uint32_t value)
{
    PRG_LAUNCH(state->scale, state->stream, state->n, &state->x, &state->n,
               &value);
    PRG_LAUNCH(state->chain, state->stream, 1, &state->word, &value);
}

static void graphs_print(graphs_state_t *state, const char *name)
{
    PRG_CHECK(cuStreamSynchronize(state->stream));
    printf("%s\n", name);
    prg_print_hash("  x", state->x, state->n);
    prg_print_hash("  word", state->word, 1);
}

static CUgraphExec graphs_instantiate(CUgraph graph)
{
    CUgraphExec exec;

    PRG_CHECK(cuGraphInstantiate(&exec, graph, 0));
    return exec;
}

static CUgraphExec graphs_capture(graphs_state_t *state,
                                  CUstreamCaptureMode mode, uint32_t value)
{
    CUstreamCaptureStatus status;
    CUgraphExec exec;
    CUgraph graph;
    size_t num_nodes;

    PRG_CHECK(cuStreamBeginCapture(state->stream, mode));
    graphs_work(state, value);
    PRG_CHECK(cuMemsetD32Async(state->x, value, 5, state->stream));
    PRG_CHECK(cuStreamIsCapturing(state->stream, &status));
    graphs_work(state, value + 1);
    PRG_CHECK(cuStreamEndCapture(state->stream, &graph));
    PRG_CHECK(cuGraphGetNodes(graph, NULL, &num_nodes));
    printf("captured %zu nodes, status %d\n", num_nodes, (int)status);
    exec = graphs_instantiate(graph);
    PRG_CHECK(cuGraphDestroy(graph));
    return exec;
}

static void graphs_around(graphs_state_t *state)
{
    CUgraphExec exec = graphs_capture(state, CU_STREAM_CAPTURE_MODE_GLOBAL, 3);
    unsigned run;

    for (run = 0; run < GRAPHS_RUNS; ++run) {
        PRG_CHECK(cuGraphLaunch(exec, state->stream));
        nvtxRangePushA("around");
        graphs_work(state, 1);
        graphs_work(state, 2);
        nvtxRangePop();
        PRG_CHECK(cuGraphLaunch(exec, state->stream));
        PRG_CHECK(cuGraphLaunch(exec, state->stream));
    }
    graphs_print(state, "around");
    PRG_CHECK(cuGraphExecDestroy(exec));
}

static void graphs_inside(graphs_state_t *state)
{
    CUgraphExec exec =
        graphs_capture(state, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 5);
    unsigned run;

    for (run = 0; run < GRAPHS_RUNS; ++run) {
        nvtxRangePushA("inside");
        graphs_work(state, 1);
        graphs_work(state, 2);
        PRG_CHECK(cuGraphLaunch(exec, state->stream));
        graphs_work(state, run);
        graphs_work(state, 4);
        nvtxRangePop();
    }
    graphs_print(state, "inside");
    PRG_CHECK(cuGraphExecDestroy(exec));
}

/* Within one run of the region: work, a capture, its launch, more work. */
static void graphs_captured_inside(graphs_state_t *state)
{
    static const CUstreamCaptureMode modes[] = {
        CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        CU_STREAM_CAPTURE_MODE_RELAXED
    };
    CUgraphExec exec;
    unsigned run;

    for (run = 0; run < GRAPHS_RUNS; ++run) {
        nvtxRangePushA("captured inside");
        graphs_work(state, 1);
        graphs_work(state, 2);
        exec = graphs_capture(state, modes[run % PRG_COUNT_OF(modes)], run / 4);
        PRG_CHECK(cuGraphLaunch(exec, state->stream));
        graphs_work(state, 3);
        nvtxRangePop();
        PRG_CHECK(cuGraphExecDestroy(exec));
    }
    graphs_print(state, "captured inside");
}

/* The range is entered and left while the capture is open. */
static void graphs_range_inside(graphs_state_t *state)
{
    CUgraphExec exec;
    CUgraph graph;
    unsigned run;

    for (run = 0; run < GRAPHS_RUNS; ++run) {
        PRG_CHECK(cuStreamBeginCapture(state->stream,
                                       CU_STREAM_CAPTURE_MODE_GLOBAL));
        graphs_work(state, 1);
        nvtxRangePushA("range inside");
        graphs_work(state, 2);
        graphs_work(state, 3);
        nvtxRangePop();
        graphs_work(state, 4);
        PRG_CHECK(cuStreamEndCapture(state->stream, &graph));
        exec = graphs_instantiate(graph);
        PRG_CHECK(cuGraphLaunch(exec, state->stream));
        PRG_CHECK(cuGraphLaunch(exec, state->stream));
        PRG_CHECK(cuGraphExecDestroy(exec));
        PRG_CHECK(cuGraphDestroy(graph));
        nvtxRangePushA("range inside");     /* and without a capture */
        graphs_work(state, 2);
        graphs_work(state, 3);
        nvtxRangePop();
    }
    graphs_print(state, "range inside");
}

/* The capture begins within the region and ends after it. */
static void graphs_overlap(graphs_state_t *state)
{
    CUgraphExec exec;
    CUgraph graph;
    unsigned run;

    for (run = 0; run < GRAPHS_RUNS; ++run) {
        nvtxRangePushA("overlap");
        graphs_work(state, 1);
        graphs_work(state, 2);
        PRG_CHECK(cuStreamBeginCapture(state->stream,
                                       CU_STREAM_CAPTURE_MODE_RELAXED));
        graphs_work(state, 3);
        nvtxRangePop();
        graphs_work(state, 4);
        PRG_CHECK(cuStreamEndCapture(state->stream, &graph));
        exec = graphs_instantiate(graph);
        PRG_CHECK(cuGraphLaunch(exec, state->stream));
        PRG_CHECK(cuGraphExecDestroy(exec));
        PRG_CHECK(cuGraphDestroy(graph));
    }
    graphs_print(state, "overlap");
}

/* Built from nodes, with parameters set between the launches. */
static void graphs_by_nodes(graphs_state_t *state)
{
    uint32_t value = 1;
    void *params[] = { &state->word, &value };
    CUDA_KERNEL_NODE_PARAMS node_params;
    CUgraphNode first, second;
    CUgraphExec exec;
    CUgraph graph;
    unsigned run;

    memset(&node_params, 0, sizeof(node_params));
    node_params.func         = state->chain;
    node_params.gridDimX     = 1;
    node_params.gridDimY     = 1;
    node_params.gridDimZ     = 1;
    node_params.blockDimX    = 32;
    node_params.blockDimY    = 1;
    node_params.blockDimZ    = 1;
    node_params.kernelParams = params;
    PRG_CHECK(cuGraphCreate(&graph, 0));
    PRG_CHECK(cuGraphAddKernelNode(&first, graph, NULL, 0, &node_params));
    value = 2;
    PRG_CHECK(cuGraphAddKernelNode(&second, graph, &first, 1, &node_params));
    exec = graphs_instantiate(graph);

    for (run = 0; run < GRAPHS_RUNS; ++run) {
        nvtxRangePushA("by nodes");
        graphs_work(state, 1);
        value = run;
        PRG_CHECK(cuGraphExecKernelNodeSetParams(exec, first, &node_params));
        graphs_work(state, 2);
        PRG_CHECK(cuGraphLaunch(exec, state->stream));
        graphs_work(state, 3);
        nvtxRangePop();
    }
    graphs_print(state, "by nodes");
    PRG_CHECK(cuGraphExecDestroy(exec));
    PRG_CHECK(cuGraphDestroy(graph));
}

/* A call that a global capture forbids: the program sees the driver's answers,
 * and the capture ends as it would have. */
static void graphs_spoilt(graphs_state_t *state)
{
    CUgraph graph = NULL;
    CUdeviceptr x = 0;
    CUresult in_capture, ended;
    unsigned run;

    for (run = 0; run < GRAPHS_RUNS; ++run) {
        nvtxRangePushA("spoilt");
        graphs_work(state, 1);
        graphs_work(state, 2);
        PRG_CHECK(cuStreamBeginCapture(state->stream,
                                       CU_STREAM_CAPTURE_MODE_GLOBAL));
        graphs_work(state, 3);
        in_capture = cuStreamSynchronize(state->stream);
        ended      = cuStreamEndCapture(state->stream, &graph);
        graphs_work(state, 4);
        nvtxRangePop();
        if (run == 0) {
            printf("spoilt: %s, %s\n", prg_error_name(in_capture),
                   prg_error_name(ended));
        }
    }
    PRG_CHECK(cuMemAlloc(&x, 64));
    PRG_CHECK(cuMemFree(x));
    graphs_print(state, "spoilt");
}

int main(void)
{
    graphs_state_t state = { .n = GRAPHS_WORDS };
    prg_context_t prg;

    prg_open(&prg);
    state.scale = prg_kernel(&prg, "k_scale");
    state.chain = prg_kernel(&prg, "k_chain");
    state.x     = prg_alloc(&prg, state.n, 4);
    state.word  = prg_alloc(&prg, 1, 1);
    PRG_CHECK(cuStreamCreate(&state.stream, CU_STREAM_NON_BLOCKING));

    graphs_around(&state);
    graphs_inside(&state);
    graphs_captured_inside(&state);
    graphs_range_inside(&state);
    graphs_overlap(&state);
    graphs_by_nodes(&state);
    graphs_spoilt(&state);

    PRG_CHECK(cuStreamDestroy(state.stream));
    PRG_CHECK(cuMemFree(state.x));
    PRG_CHECK(cuMemFree(state.word));
    prg_close(&prg);
    return 0;
}
