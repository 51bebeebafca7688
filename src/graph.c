/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs of explicit nodes in one line, each after the one before it.
 *
 * Not stream capture: nothing of the program's threads can spoil the building
 * of explicit nodes, and the relaxed capture mode of this thread keeps our
 * calls from spoiling a capture of the program's.
 */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

bool cgs_graph_enter_context(CUcontext ctx)
{
    CUcontext current = NULL;

    if ((CGS_REAL(cuCtxGetCurrent)(&current) == CUDA_SUCCESS) &&
        (current == ctx)) {
        return false;
    }
    return CGS_REAL(cuCtxPushCurrent_v2)(ctx) == CUDA_SUCCESS;
}

void cgs_graph_leave_context(void)
{
    CUcontext ctx;

    CGS_REAL(cuCtxPopCurrent_v2)(&ctx);
}

static cgs_graph_status_t status(const char *function, CUresult result)
{
    return (cgs_graph_status_t){.result = result, .function = function};
}

static cgs_graph_status_t add_nodes(cgs_segment_t *segment)
{
    CUgraphNodeParams   params;
    const cgs_op_kind_t *kind;
    CUgraphNode         previous = NULL;
    cgs_op_t            *op;
    CUresult            result;
    uint32_t            i;

    for (i = 0; i < segment->num_ops; ++i) {
        op   = &segment->ops[i];
        kind = cgs_op_kinds[op->kind];
        memset(&params, 0, sizeof(params));
        kind->describe(op, segment->ctx, &params);
        result = CGS_REAL(cuGraphAddNode_v2)(&op->node, segment->graph,
                                             i > 0 ? &previous : NULL, NULL,
                                             i > 0 ? 1 : 0, &params);
        if (result != CUDA_SUCCESS) {
            return status("cuGraphAddNode", result);
        }
        result = kind->decorate != NULL ? kind->decorate(op, op->node) :
                                          CUDA_SUCCESS;
        if (result != CUDA_SUCCESS) {
            return status("cuGraphKernelNodeSetAttribute", result);
        }
        op->dirty = false;
        previous  = op->node;
    }
    return status(NULL, CUDA_SUCCESS);
}

static cgs_graph_status_t build(cgs_segment_t *segment)
{
    cgs_graph_status_t result;
    CUresult           error;

    segment->dirty = calloc(segment->num_ops, sizeof(*segment->dirty));
    if (segment->dirty == NULL) {
        return status("calloc", CUDA_ERROR_OUT_OF_MEMORY);
    }
    error = CGS_REAL(cuGraphCreate)(&segment->graph, 0);
    if (error != CUDA_SUCCESS) {
        segment->graph = NULL;
        return status("cuGraphCreate", error);
    }
    result = add_nodes(segment);
    if (result.result != CUDA_SUCCESS) {
        return result;
    }
    error = CGS_REAL(cuGraphInstantiateWithFlags)(&segment->exec,
                                                  segment->graph, 0);
    if (error != CUDA_SUCCESS) {
        segment->exec = NULL;
    }
    return status("cuGraphInstantiate", error);
}

cgs_graph_status_t cgs_graph_build(cgs_segment_t *segment)
{
    CUstreamCaptureMode mode    = CU_STREAM_CAPTURE_MODE_RELAXED;
    bool                relaxed = false;
    bool                entered;
    cgs_graph_status_t  result;

    entered = cgs_graph_enter_context(segment->ctx);
    relaxed = CGS_REAL(cuThreadExchangeStreamCaptureMode)(&mode) ==
              CUDA_SUCCESS;
    if (relaxed) {
        result = build(segment);
        CGS_REAL(cuThreadExchangeStreamCaptureMode)(&mode);
    } else {
        result = status("cuThreadExchangeStreamCaptureMode",
                        CUDA_ERROR_UNKNOWN);
    }
    if (result.result != CUDA_SUCCESS) {
        cgs_graph_destroy(segment);
    }
    if (entered) {
        cgs_graph_leave_context();
    }
    return result;
}

cgs_graph_status_t cgs_graph_upload(cgs_segment_t *segment, CUstream stream)
{
    segment->uploaded = true;
    return status("cuGraphUpload",
                  CGS_REAL(cuGraphUpload)(segment->exec, stream));
}

static cgs_graph_status_t patch(cgs_segment_t *segment, uint64_t *patched)
{
    CUgraphNodeParams params;
    cgs_op_t          *op;
    CUresult          result;
    uint32_t          i;

    for (i = 0; i < segment->num_dirty; ++i) {
        op = &segment->ops[segment->dirty[i]];
        memset(&params, 0, sizeof(params));
        cgs_op_kinds[op->kind]->describe(op, segment->ctx, &params);
        result = CGS_REAL(cuGraphExecNodeSetParams)(segment->exec, op->node,
                                                    &params);
        if (result != CUDA_SUCCESS) {
            return status("cuGraphExecNodeSetParams", result);
        }
        op->dirty = false;
        ++*patched;
    }
    segment->num_dirty = 0;
    return status(NULL, CUDA_SUCCESS);
}

cgs_graph_status_t cgs_graph_launch(cgs_segment_t *segment, uint64_t *patched)
{
    cgs_graph_status_t result = patch(segment, patched);

    if (result.result != CUDA_SUCCESS) {
        return result;
    }
    return status("cuGraphLaunch",
                  CGS_REAL(cuGraphLaunch)(segment->exec, segment->stream));
}

void cgs_graph_destroy(cgs_segment_t *segment)
{
    uint32_t i;

    if (segment->exec != NULL) {
        CGS_REAL(cuGraphExecDestroy)(segment->exec);
        segment->exec = NULL;
    }
    if (segment->graph != NULL) {
        CGS_REAL(cuGraphDestroy)(segment->graph);
        segment->graph = NULL;
    }
    free(segment->dirty);
    segment->uploaded  = false;
    segment->dirty     = NULL;
    segment->num_dirty = 0;
    for (i = 0; i < segment->num_ops; ++i) {
        segment->ops[i].node  = NULL;
        segment->ops[i].dirty = false;
    }
}
