/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs of explicit nodes: those of one stream in line, those of several with
 * an edge for each wait between them.
 *
 * Not stream capture: nothing of the program's threads can spoil the building
 * of explicit nodes, and the relaxed capture mode of this thread keeps our
 * calls from spoiling a capture of the program's.
 */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

#include "budget.h"

/* Edges into one node; more streams would be joined than a chunk has. */
#define MAX_DEPENDENCIES 16

/* Pageable bytes that one run of a chunk may stage, and how they lie. */
#define MAX_STAGING       ((size_t)1024 * 1024)
#define STAGING_ALIGNMENT 256

/* Where a context could not be pushed: what was current instead of it. */
static __thread struct {
    bool      is_set;
    CUcontext before;
} replaced;

bool cgs_graph_enter_context(CUcontext ctx)
{
    CUcontext current = NULL;

    if ((CGS_REAL(cuCtxGetCurrent)(&current) == CUDA_SUCCESS) &&
        (current == ctx)) {
        return false;
    }
    if (CGS_REAL(cuCtxPushCurrent_v2)(ctx) == CUDA_SUCCESS) {
        return true;
    }
    /* What is held back would be lost in another context. */
    replaced.before = current;
    replaced.is_set = CGS_REAL(cuCtxSetCurrent)(ctx) == CUDA_SUCCESS;
    return replaced.is_set;
}

void cgs_graph_leave_context(void)
{
    CUcontext ctx;

    if (replaced.is_set) {
        replaced.is_set = false;
        CGS_REAL(cuCtxSetCurrent)(replaced.before);
        return;
    }
    CGS_REAL(cuCtxPopCurrent_v2)(&ctx);
}

static cgs_graph_status_t status(const char *function, CUresult result)
{
    return (cgs_graph_status_t){.result = result, .function = function};
}

/* Nodes that the next one must come after. */
typedef struct {
    CUgraphNode node[MAX_DEPENDENCIES];
    uint32_t    num;
} frontier_t;

/* What building keeps track of. */
typedef struct {
    frontier_t lane[CGS_MAX_LANES];
    frontier_t *record; /* by op: what a recorded event stands for */
} builder_t;

static bool add_dependency(frontier_t *frontier, CUgraphNode node)
{
    uint32_t i;

    for (i = 0; i < frontier->num; ++i) {
        if (frontier->node[i] == node) {
            return true;
        }
    }
    if (frontier->num == MAX_DEPENDENCIES) {
        return false;
    }
    frontier->node[frontier->num++] = node;
    return true;
}

/* A wait is no node: what its event stands for comes before the next op of
 * its stream. */
static cgs_graph_status_t add_wait(cgs_chunk_t *chunk, uint32_t index,
                                   builder_t *builder)
{
    const cgs_op_t   *op     = &chunk->ops[index];
    const frontier_t *source = &builder->record[index - op->event.distance];
    uint32_t         i;

    for (i = 0; i < source->num; ++i) {
        if (!add_dependency(&builder->lane[op->lane], source->node[i])) {
            return status("too many waits in a row",
                          CUDA_ERROR_NOT_SUPPORTED);
        }
    }
    return status(NULL, CUDA_SUCCESS);
}

/*
 * Of the records of one event in a chunk only the last needs a node: nobody
 * can look before the whole of it is issued, and what waits inside waits for
 * the work. They must stay records of one event then.
 */
static void fix_records(cgs_chunk_t *chunk)
{
    cgs_op_t *op, *later;
    uint32_t i;

    if (!chunk->has_events || chunk->all_records) {
        return;
    }
    for (i = 0; i < chunk->num_ops; ++i) {
        op = &chunk->ops[i];
        if (op->kind != CGS_OP_RECORD) {
            continue;
        }
        for (later = op + 1; later < chunk->ops + chunk->num_ops;
             ++later) {
            if ((later->kind == CGS_OP_RECORD) &&
                (later->event.event == op->event.event)) {
                op->event.is_fixed    = true;
                op->event.is_earlier  = true;
                later->event.is_fixed = true;
                break;
            }
        }
    }
}

static cgs_graph_status_t add_node(cgs_chunk_t *chunk, uint32_t index,
                                   builder_t *builder)
{
    cgs_op_t            *op     = &chunk->ops[index];
    const cgs_op_kind_t *kind   = cgs_op_kinds[op->kind];
    frontier_t          *after  = &builder->lane[op->lane];
    CUgraphNodeParams   params;
    CUresult            result;

    if (op->kind == CGS_OP_RECORD) {
        builder->record[index] = *after;
        if (op->event.is_earlier) {
            return status(NULL, CUDA_SUCCESS);
        }
    }
    memset(&params, 0, sizeof(params));
    kind->describe(op, chunk->ctx, &params);
    result = CGS_REAL(cuGraphAddNode_v2)(&op->node, chunk->graph,
                                         after->num > 0 ? after->node : NULL,
                                         NULL, after->num, &params);
    if (result != CUDA_SUCCESS) {
        op->node = NULL;
        return status("cuGraphAddNode", result);
    }
    if (kind->decorate != NULL) {
        /* What the launch says itself comes after what its stream says. */
        result = cgs_stream_decorate(&chunk->attrs[op->lane], op->node);
        if (result == CUDA_SUCCESS) {
            result = kind->decorate(op, op->node);
        }
        if (result != CUDA_SUCCESS) {
            return status("cuGraphKernelNodeSetAttribute", result);
        }
    }
    op->dirty = false;
    if ((op->kind != CGS_OP_RECORD) || cgs_event_has_time(op->event.event)) {
        /* A record whose time nobody may ask for holds up nothing. */
        after->num     = 1;
        after->node[0] = op->node;
    }
    return status(NULL, CUDA_SUCCESS);
}

static cgs_graph_status_t add_nodes(cgs_chunk_t *chunk)
{
    cgs_graph_status_t result = status(NULL, CUDA_SUCCESS);
    builder_t          *builder;
    uint32_t           i;

    builder = calloc(1, sizeof(*builder));
    if (builder == NULL) {
        return status("calloc", CUDA_ERROR_OUT_OF_MEMORY);
    }
    builder->record = calloc(chunk->num_ops, sizeof(*builder->record));
    if (builder->record == NULL) {
        result = status("calloc", CUDA_ERROR_OUT_OF_MEMORY);
    }
    fix_records(chunk);
    for (i = 0; (i < chunk->num_ops) && (result.result == CUDA_SUCCESS);
         ++i) {
        if (chunk->ops[i].kind == CGS_OP_WAIT) {
            result = add_wait(chunk, i, builder);
        } else if (chunk->ops[i].kind != CGS_OP_FREE) {
            result = add_node(chunk, i, builder);
        }
    }
    free(builder->record);
    free(builder);
    return result;
}

/* Events of ours that join the chunk's other streams with its first. */
static cgs_graph_status_t create_joins(cgs_chunk_t *chunk)
{
    CUresult result;
    uint32_t i;

    for (i = 0; (chunk->num_streams > 1) && (i < chunk->num_streams);
         ++i) {
        result = CGS_REAL(cuEventCreate)(&chunk->joins[i],
                                         CU_EVENT_DISABLE_TIMING);
        if (result != CUDA_SUCCESS) {
            chunk->joins[i] = NULL;
            return status("cuEventCreate", result);
        }
    }
    return status(NULL, CUDA_SUCCESS);
}

/* Give the ops that stage their place. Until the first run each stands at its
 * place of the first slot. */
static cgs_graph_status_t create_staging(cgs_chunk_t *chunk)
{
    size_t   bytes = 0;
    cgs_op_t *op;
    CUresult result;
    uint32_t i;

    for (i = 0; i < chunk->num_ops; ++i) {
        bytes += (cgs_op_staged_bytes(&chunk->ops[i]) + STAGING_ALIGNMENT -
                  1) & ~(size_t)(STAGING_ALIGNMENT - 1);
    }
    if (bytes == 0) {
        return status(NULL, CUDA_SUCCESS);
    }
    if (bytes > MAX_STAGING) {
        return status("too much pageable memory", CUDA_ERROR_NOT_SUPPORTED);
    }
    result = cgs_staging_create(bytes, &chunk->staging);
    if (result != CUDA_SUCCESS) {
        return status("cuMemHostAlloc", result);
    }
    for (i = 0, bytes = 0; i < chunk->num_ops; ++i) {
        op = &chunk->ops[i];
        if (cgs_op_staged_bytes(op) > 0) {
            op->copy.staging      = chunk->staging;
            op->copy.stage_offset = bytes;
            op->copy.staged = cgs_staging_memory(chunk->staging) + bytes;
            bytes += (cgs_op_staged_bytes(op) + STAGING_ALIGNMENT - 1) &
                     ~(size_t)(STAGING_ALIGNMENT - 1);
        }
    }
    return status(NULL, CUDA_SUCCESS);
}

static cgs_graph_status_t build(cgs_chunk_t *chunk)
{
    cgs_graph_status_t result;
    CUresult           error;

    chunk->dirty = calloc(chunk->num_ops, sizeof(*chunk->dirty));
    if (chunk->dirty == NULL) {
        return status("calloc", CUDA_ERROR_OUT_OF_MEMORY);
    }
    error = CGS_REAL(cuGraphCreate)(&chunk->graph, 0);
    if (error != CUDA_SUCCESS) {
        chunk->graph = NULL;
        return status("cuGraphCreate", error);
    }
    result = create_staging(chunk);
    if (result.result != CUDA_SUCCESS) {
        return result;
    }
    result = add_nodes(chunk);
    if (result.result != CUDA_SUCCESS) {
        return result;
    }
    result = create_joins(chunk);
    if (result.result != CUDA_SUCCESS) {
        return result;
    }
    error = CGS_REAL(cuGraphInstantiateWithFlags)(&chunk->exec,
                                                  chunk->graph, 0);
    if (error != CUDA_SUCCESS) {
        chunk->exec = NULL;
    }
    return status("cuGraphInstantiate", error);
}

cgs_graph_status_t cgs_graph_build(cgs_chunk_t *chunk)
{
    CUstreamCaptureMode mode    = CU_STREAM_CAPTURE_MODE_RELAXED;
    bool                relaxed = false;
    bool                entered;
    cgs_graph_status_t  result;

    entered = cgs_graph_enter_context(chunk->ctx);
    relaxed = CGS_REAL(cuThreadExchangeStreamCaptureMode)(&mode) ==
              CUDA_SUCCESS;
    if (relaxed) {
        result = build(chunk);
        CGS_REAL(cuThreadExchangeStreamCaptureMode)(&mode);
    } else {
        result = status("cuThreadExchangeStreamCaptureMode",
                        CUDA_ERROR_UNKNOWN);
    }
    if (result.result != CUDA_SUCCESS) {
        cgs_graph_destroy(chunk);
    }
    if (entered) {
        cgs_graph_leave_context();
    }
    return result;
}

cgs_graph_status_t cgs_graph_upload(cgs_chunk_t *chunk, CUstream stream)
{
    chunk->uploaded = true;
    return status("cuGraphUpload",
                  CGS_REAL(cuGraphUpload)(chunk->exec, stream));
}

static cgs_graph_status_t patch(cgs_chunk_t *chunk, uint64_t *patched)
{
    CUgraphNodeParams params;
    cgs_op_t          *op;
    CUresult          result;
    uint32_t          i;

    for (i = 0; i < chunk->num_dirty; ++i) {
        op = &chunk->ops[chunk->dirty[i]];
        memset(&params, 0, sizeof(params));
        cgs_op_kinds[op->kind]->describe(op, chunk->ctx, &params);
        result = CGS_REAL(cuGraphExecNodeSetParams)(chunk->exec, op->node,
                                                    &params);
        if (result != CUDA_SUCCESS) {
            return status("cuGraphExecNodeSetParams", result);
        }
        op->dirty = false;
        ++*patched;
    }
    chunk->num_dirty = 0;
    return status(NULL, CUDA_SUCCESS);
}

/* What was on the other streams before comes before the graph. */
static CUresult join_before(cgs_chunk_t *chunk)
{
    CUresult result = CUDA_SUCCESS;
    uint32_t i;

    for (i = 1; (i < chunk->num_streams) && (result == CUDA_SUCCESS); ++i) {
        result = CGS_REAL(cuEventRecord)(chunk->joins[i],
                                         chunk->streams[i]);
        if (result == CUDA_SUCCESS) {
            result = CGS_REAL(cuStreamWaitEvent)(chunk->streams[0],
                                                 chunk->joins[i], 0);
        }
    }
    return result;
}

/* What comes on the other streams comes after it. The graph is on its way, so
 * where the cheap way fails the host waits. */
static CUresult join_after(cgs_chunk_t *chunk)
{
    CUresult result;
    uint32_t i;

    result = CGS_REAL(cuEventRecord)(chunk->joins[0], chunk->streams[0]);
    for (i = 1; (i < chunk->num_streams) && (result == CUDA_SUCCESS); ++i) {
        result = CGS_REAL(cuStreamWaitEvent)(chunk->streams[i],
                                             chunk->joins[0], 0);
    }
    return result == CUDA_SUCCESS ? CUDA_SUCCESS :
           CGS_REAL(cuStreamSynchronize)(chunk->streams[0]);
}

CUresult cgs_graph_call_frees(cgs_chunk_t *chunk)
{
    CUresult error = CUDA_SUCCESS;
    CUresult result;
    cgs_op_t *op;
    uint32_t i;

    for (i = 0; i < chunk->num_ops; ++i) {
        op = &chunk->ops[i];
        if (op->kind == CGS_OP_FREE) {
            result = cgs_op_kinds[op->kind]->issue(
                op, chunk->streams[op->lane]);
            error  = error == CUDA_SUCCESS ? result : error;
        }
    }
    return error;
}

cgs_graph_status_t cgs_graph_launch(cgs_chunk_t *chunk, uint64_t *patched,
                                    CUresult *late)
{
    cgs_graph_status_t result = patch(chunk, patched);
    CUresult           error;

    if (result.result != CUDA_SUCCESS) {
        return result;
    }
    error = chunk->num_streams > 1 ? join_before(chunk) : CUDA_SUCCESS;
    if (error != CUDA_SUCCESS) {
        return status("a wait before the graph", error);
    }
    error = CGS_REAL(cuGraphLaunch)(chunk->exec, chunk->streams[0]);
    if (error == CUDA_SUCCESS) {
        cgs_staging_issued(chunk->staging, chunk->streams, 1);
    }
    if (error != CUDA_SUCCESS) {
        return status("cuGraphLaunch", error);
    }
    if (chunk->num_streams > 1) {
        *late = join_after(chunk);
    }
    return status(NULL, CUDA_SUCCESS);
}

void cgs_graph_destroy(cgs_chunk_t *chunk)
{
    CUstreamCaptureMode mode    = CU_STREAM_CAPTURE_MODE_RELAXED;
    bool                relaxed = false;
    uint32_t            i;

    if (chunk->graph != NULL) {
        relaxed = CGS_REAL(cuThreadExchangeStreamCaptureMode)(&mode) ==
                  CUDA_SUCCESS;
    }

    if (chunk->exec != NULL) {
        CGS_REAL(cuGraphExecDestroy)(chunk->exec);
        chunk->exec = NULL;
    }
    cgs_budget_give(chunk->device_taken);
    chunk->device_taken = 0;
    chunk->device_bytes = 0;
    if (chunk->graph != NULL) {
        CGS_REAL(cuGraphDestroy)(chunk->graph);
        chunk->graph = NULL;
    }
    for (i = 0; i < CGS_MAX_LANES; ++i) {
        if (chunk->joins[i] != NULL) {
            CGS_REAL(cuEventDestroy_v2)(chunk->joins[i]);
            chunk->joins[i] = NULL;
        }
    }
    cgs_staging_destroy(chunk->staging);
    chunk->staging = NULL;
    if (relaxed) {
        CGS_REAL(cuThreadExchangeStreamCaptureMode)(&mode);
    }
    free(chunk->dirty);
    chunk->uploaded  = false;
    chunk->dirty     = NULL;
    chunk->num_dirty = 0;
    for (i = 0; i < chunk->num_ops; ++i) {
        chunk->ops[i].node  = NULL;
        chunk->ops[i].dirty = false;
        if (chunk->ops[i].kind == CGS_OP_COPY) {
            chunk->ops[i].copy.staging = NULL;
        }
        if (chunk->ops[i].kind == CGS_OP_RECORD) {
            chunk->ops[i].event.is_fixed   = false;
            chunk->ops[i].event.is_earlier = false;
        }
    }
}
