/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executable graphs: instantiation, launch, and the restricted updates.
 */
#include "sim.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#define SIM_NODE_BYTES 4096u /* device memory that a node costs */

/* A node of an executable graph, in an order in which each comes after all
 * that it depends on. */
typedef struct {
    uint64_t    node_uid;
    size_t      index; /* of the node in its graph */
    sim_op_t   *op;
    sim_exec_t *child;
    bool        enabled;
    bool        has_after;
    size_t     *deps; /* positions of earlier nodes */
    size_t      num_deps;
} sim_exec_node_t;

struct sim_exec {
    CUgraphExec      handle;
    uint64_t         uid;
    cuuint64_t       flags;
    sim_exec_node_t *nodes;
    size_t           num;
    size_t          *by_index; /* position by the node's index */
    sim_task_t      *last;     /* end of the last launch */
    size_t           memory;   /* bytes of device memory, device 0's */
};

static size_t sim_exec_bytes, sim_exec_bytes_most; /* of all of them */

size_t sim_exec_most(void)
{
    return sim_exec_bytes_most;
}

static sim_exec_t *sim_exec_find(CUgraphExec handle)
{
    return sim_handle_get(SIM_KIND_EXEC, handle);
}

/* ---------------------------------------------------------- making */

static void sim_exec_release(sim_exec_t *exec)
{
    size_t i;

    for (i = 0; i < exec->num; ++i) {
        sim_op_release(exec->nodes[i].op);
        if (exec->nodes[i].child != NULL) {
            sim_exec_release(exec->nodes[i].child);
        }
        free(exec->nodes[i].deps);
    }
    if (exec->handle != NULL) {
        sim_handle_free(SIM_KIND_EXEC, exec->handle);
    }
    sim_mem_unreserve(0, exec->memory);
    sim_exec_bytes -= exec->memory;
    sim_task_unref(exec->last);
    free(exec->nodes);
    free(exec->by_index);
    free(exec);
}

static sim_exec_t *sim_exec_new(const sim_graph_t *graph);

/* False when a child graph has a cycle. */
static bool sim_exec_node_init(sim_exec_t *exec, size_t position,
                               const sim_node_t *node)
{
    sim_exec_node_t *to = &exec->nodes[position];
    size_t           i;

    to->node_uid = node->uid;
    to->index    = node->index;
    to->enabled  = true;
    to->num_deps = node->num_in;
    to->deps     = sim_alloc(node->num_in * sizeof(size_t));
    for (i = 0; i < node->num_in; ++i) {
        to->deps[i] = exec->by_index[node->in[i].node->index];
        exec->nodes[to->deps[i]].has_after = true;
    }
    if (node->op->kind != SIM_OP_CHILD) {
        to->op = sim_op_clone(node->op);
        return true;
    }
    to->op    = sim_op_new(SIM_OP_EMPTY, NULL);
    to->child = sim_exec_new(node->op->child);
    return to->child != NULL;
}

static sim_exec_t *sim_exec_new(const sim_graph_t *graph)
{
    sim_node_t **order = sim_graph_order(graph);
    sim_exec_t  *exec;
    size_t       i;
    bool         ok = true;

    if (order == NULL) {
        return NULL;
    }
    exec           = sim_alloc(sizeof(*exec));
    exec->uid      = sim_uid();
    exec->num      = graph->num_nodes;
    exec->nodes    = sim_alloc(exec->num * sizeof(*exec->nodes));
    exec->by_index = sim_alloc(exec->num * sizeof(size_t));
    for (i = 0; i < exec->num; ++i) {
        exec->by_index[order[i]->index] = i;
    }
    for (i = 0; i < exec->num; ++i) {
        ok = sim_exec_node_init(exec, i, order[i]) && ok;
    }
    free(order);
    if (!ok) {
        sim_exec_release(exec);
        return NULL;
    }
    return exec;
}

static void sim_exec_spoil(sim_op_kernel_t *kernel)
{
    const sim_entry_t *entry = kernel->func->entry;

    if (entry->num_params > 0) {
        kernel->args[entry->offsets[entry->num_params - 1]] ^= 1;
    }
}

/* What a library that makes graphs may do wrong, for tests of those who look
 * for it. */
static void sim_exec_plant(sim_exec_t *exec)
{
    sim_exec_node_t *node = NULL;
    sim_op_t        *op;
    size_t           i, before;

    for (i = 0; i < exec->num; ++i) {
        if ((exec->nodes[i].op->kind == SIM_OP_KERNEL) &&
            ((node == NULL) || (i <= exec->num / 2))) {
            node = &exec->nodes[i];
        }
    }
    if (node == NULL) {
        return;
    }
    if (sim_is_planted("drop")) {
        node->enabled = false;
    }
    for (i = 0; sim_is_planted("swap") && (i < node->num_deps); ++i) {
        before = node->deps[i];
        if (exec->nodes[before].op->kind == SIM_OP_KERNEL) {
            op                     = exec->nodes[before].op;
            exec->nodes[before].op = node->op;
            node->op               = op;
            return;
        }
    }
}

/* A real driver reads through what it makes or sends to the device; a strict
 * one of ours ends where something of it is dead. */
static void sim_exec_look(const sim_exec_t *exec)
{
    const sim_op_t *op;
    size_t          i;

    for (i = 0; (exec != NULL) && (i < exec->num); ++i) {
        op = exec->nodes[i].op;
        if (exec->nodes[i].child != NULL) {
            sim_exec_look(exec->nodes[i].child);
        } else if ((op->ctx_uid != 0) &&
                   (sim_ctx_by_uid(op->ctx_uid) == NULL)) {
            sim_handle_is_dead("the context of a node");
        } else if ((op->kind == SIM_OP_KERNEL) && op->kernel.func->dead) {
            sim_handle_is_dead("the function of a node");
        } else if ((op->kind == SIM_OP_RECORD) || (op->kind == SIM_OP_WAIT)) {
            (void)sim_event_find(op->event.handle);
        }
    }
}

static CUresult sim_exec_instantiate(CUgraphExec *handle, CUgraph graph,
                                     cuuint64_t flags)
{
    const sim_graph_t *from = sim_graph_find(graph);
    sim_exec_t        *exec;
    CUresult           status;

    if ((handle == NULL) || (from == NULL) || from->capturing ||
        (flags > 15)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    exec = sim_exec_new(from);
    if (exec == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_exec_plant(exec);
    sim_exec_look(exec);
    status = sim_mem_reserve(0, exec->num * SIM_NODE_BYTES);
    if (status != CUDA_SUCCESS) {
        sim_exec_release(exec);
        return status;
    }
    exec->memory    = exec->num * SIM_NODE_BYTES;
    sim_exec_bytes += exec->memory;
    if (sim_exec_bytes > sim_exec_bytes_most) {
        sim_exec_bytes_most = sim_exec_bytes;
    }
    exec->flags  = flags;
    exec->handle = sim_handle_new(SIM_KIND_EXEC, exec);
    *handle      = exec->handle;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuGraphInstantiateWithFlags,
          (CUgraphExec *phGraphExec, CUgraph hGraph,
           unsigned long long flags), SIM_UNSAFE,
          sim_exec_instantiate(phGraphExec, hGraph, flags))

static CUresult sim_exec_instantiate_log(CUgraphExec *handle, CUgraph graph,
                                         CUgraphNode *error_node, char *log,
                                         size_t size)
{
    if (error_node != NULL) {
        *error_node = NULL;
    }
    if ((log != NULL) && (size > 0)) {
        *log = '\0';
    }
    return sim_exec_instantiate(handle, graph, 0);
}
SIM_ENTRY(cuGraphInstantiate,
          (CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
           char *logBuffer, size_t bufferSize), SIM_UNSAFE,
          sim_exec_instantiate_log(phGraphExec, hGraph, phErrorNode,
                                   logBuffer, bufferSize))
SIM_ENTRY(cuGraphInstantiate_v2,
          (CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
           char *logBuffer, size_t bufferSize), SIM_UNSAFE,
          sim_exec_instantiate_log(phGraphExec, hGraph, phErrorNode,
                                   logBuffer, bufferSize))

static CUresult sim_exec_instantiate_params(
    CUgraphExec *handle, CUgraph graph, int twin,
    CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    sim_stream_t *stream;
    CUresult      status = CUDA_SUCCESS;

    if (params == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    params->hErrNode_out = NULL;
    params->result_out   = CUDA_GRAPH_INSTANTIATE_ERROR;
    if (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) {
        status = sim_stream_find(params->hUploadStream, twin, &stream);
    }
    if (status == CUDA_SUCCESS) {
        status = sim_exec_instantiate(handle, graph, params->flags);
    }
    if (status == CUDA_SUCCESS) {
        params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
    }
    return status;
}
SIM_ENTRY_PTSZ(cuGraphInstantiateWithParams,
               (CUgraphExec *phGraphExec, CUgraph hGraph,
                CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams), SIM_UNSAFE,
               sim_exec_instantiate_params(phGraphExec, hGraph, twin,
                                           instantiateParams))

static CUresult sim_exec_destroy(CUgraphExec handle)
{
    sim_exec_t *exec = sim_exec_find(handle);

    if (exec == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    /* Launches under way have copies of all that they need. */
    sim_exec_release(exec);
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuGraphExecDestroy, (CUgraphExec hGraphExec), 0,
          sim_exec_destroy(hGraphExec))

static CUresult sim_exec_flags(CUgraphExec handle, cuuint64_t *flags)
{
    const sim_exec_t *exec = sim_exec_find(handle);

    if ((exec == NULL) || (flags == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = exec->flags;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuGraphExecGetFlags, (CUgraphExec hGraphExec, cuuint64_t *flags), 0,
          sim_exec_flags(hGraphExec, flags))

/* ---------------------------------------------------------- launching */

/* On the real driver these are crashes; here they are errors. */
static CUresult sim_exec_check(const sim_exec_t *exec)
{
    CUresult status = CUDA_SUCCESS;
    size_t   i;

    for (i = 0; (status == CUDA_SUCCESS) && (i < exec->num); ++i) {
        const sim_exec_node_t *node = &exec->nodes[i];

        if (node->child != NULL) {
            status = sim_exec_check(node->child);
        } else if ((node->op->ctx_uid != 0) &&
                   (sim_ctx_by_uid(node->op->ctx_uid) == NULL)) {
            status = CUDA_ERROR_CONTEXT_IS_DESTROYED;
        } else if ((node->op->kind == SIM_OP_KERNEL) &&
                   node->op->kernel.func->dead) {
            status = CUDA_ERROR_INVALID_HANDLE;
        }
    }
    return status;
}

static void sim_exec_event(const sim_op_t *op, sim_task_t *task)
{
    sim_event_t *event = sim_event_find(op->event.handle);

    if ((event == NULL) || (event->uid != op->event.uid)) {
        return;
    } else if (op->kind == SIM_OP_RECORD) {
        sim_event_record(event, task);
    } else {
        sim_task_after(task, event->record);
    }
}

/* The tasks of one launch, after begin. Returns the end, not submitted. */
static sim_task_t *sim_exec_tasks(const sim_exec_t *exec, uint64_t ctx_uid,
                                  sim_task_t *begin)
{
    sim_task_t **tasks = sim_alloc(exec->num * sizeof(sim_task_t *));
    sim_task_t  *end, *task;
    size_t       i, k;

    for (i = 0; i < exec->num; ++i) {
        const sim_exec_node_t *node = &exec->nodes[i];
        bool                   runs = node->enabled && (node->child == NULL);
        uint64_t               lane = exec->uid * 4096 + i;

        task = sim_task_new(runs ? sim_op_clone(node->op) : NULL,
                            (node->op->ctx_uid != 0) ? node->op->ctx_uid :
                                                       ctx_uid, lane);
        for (k = 0; k < node->num_deps; ++k) {
            sim_task_after(task, tasks[node->deps[k]]);
        }
        sim_task_after(task, begin);
        if ((node->op->kind == SIM_OP_RECORD) ||
            (node->op->kind == SIM_OP_WAIT)) {
            sim_exec_event(node->op, task);
        }
        sim_task_submit(task);
        if (node->child != NULL) {
            end = sim_exec_tasks(node->child, ctx_uid, task);
            sim_task_submit(end);
            sim_task_unref(task);
            task = end;
        }
        tasks[i] = task;
    }

    end = sim_task_new(NULL, ctx_uid, exec->uid * 4096);
    sim_task_after(end, begin);
    for (i = 0; i < exec->num; ++i) {
        if (!exec->nodes[i].has_after) {
            sim_task_after(end, tasks[i]);
        }
        sim_task_unref(tasks[i]);
    }
    free(tasks);
    return end;
}

/* The graph as a child node: what a launch in a captured stream becomes. */
static sim_op_t *sim_exec_as_op(const sim_exec_t *exec)
{
    sim_op_t *op = sim_op_new(SIM_OP_CHILD, NULL);
    size_t    i, k;

    op->child = sim_graph_new();
    for (i = 0; i < exec->num; ++i) {
        const sim_exec_node_t *node = &exec->nodes[i];
        sim_node_t            *to;

        to = sim_graph_add(op->child, (node->child != NULL) ?
                           sim_exec_as_op(node->child) : node->enabled ?
                           sim_op_clone(node->op) :
                           sim_op_new(SIM_OP_EMPTY, NULL));
        for (k = 0; k < node->num_deps; ++k) {
            sim_node_depend(to, op->child->nodes[node->deps[k]], NULL);
        }
    }
    return op;
}

/* The real driver (580.159) does not come back from these two with a stream
 * that was destroyed: it crashes. */
static CUresult sim_exec_stream(CUstream handle, int twin,
                                sim_stream_t **stream)
{
    CUresult status = sim_stream_find(handle, twin, stream);

    if (status == CUDA_ERROR_INVALID_HANDLE) {
        fprintf(stderr, "libcuda: a graph on a stream that was destroyed\n");
        abort();
    }
    return status;
}

static CUresult sim_exec_launch(CUgraphExec handle, CUstream stream_handle,
                                int twin)
{
    sim_exec_t   *exec = sim_exec_find(handle);
    sim_stream_t *stream;
    sim_task_t   *begin, *end;
    CUresult      status = sim_exec_stream(stream_handle, twin, &stream);

    if (status != CUDA_SUCCESS) {
        return status;
    } else if (exec == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_exec_look(exec);
    status = sim_exec_check(exec);
    if (status != CUDA_SUCCESS) {
        return status;
    } else if (stream->capture != NULL) {
        return sim_capture_op(stream, sim_exec_as_op(exec));
    }
    status = sim_capture_check_legacy(stream);
    if (status != CUDA_SUCCESS) {
        return status;
    }

    /* One launch of an executable graph follows the other. */
    begin = sim_stream_task(stream, NULL);
    sim_task_after(begin, exec->last);
    sim_task_submit(begin);
    end = sim_exec_tasks(exec, stream->ctx->uid, begin);
    sim_task_set(&stream->last, end);
    sim_task_set(&exec->last, end);
    sim_task_submit(end);
    sim_task_unref(begin);
    sim_task_unref(end);
    return CUDA_SUCCESS;
}
SIM_ENTRY_PTSZ(cuGraphLaunch, (CUgraphExec hGraphExec, CUstream hStream),
               SIM_CTX, sim_exec_launch(hGraphExec, hStream, twin))

static CUresult sim_exec_upload(CUgraphExec handle, CUstream stream_handle,
                                int twin)
{
    sim_stream_t *stream;
    CUresult      status = sim_exec_stream(stream_handle, twin, &stream);

    sim_exec_look(sim_exec_find(handle));
    if (status != CUDA_SUCCESS) {
        return status;
    } else if (stream->capture != NULL) {
        return sim_capture_refuse(stream);
    }
    status = sim_capture_check_legacy(stream);
    return (status != CUDA_SUCCESS) ? status :
           (sim_exec_find(handle) == NULL) ? CUDA_ERROR_INVALID_VALUE :
                                             CUDA_SUCCESS;
}
SIM_ENTRY_PTSZ(cuGraphUpload, (CUgraphExec hGraphExec, CUstream hStream),
               SIM_CTX, sim_exec_upload(hGraphExec, hStream, twin))

/* ---------------------------------------------------------- updating */

static sim_exec_node_t *sim_exec_node(sim_exec_t *exec,
                                      CUgraphNode node_handle)
{
    const sim_node_t *node = sim_node_find(node_handle);
    size_t            i;

    if ((exec == NULL) || (node == NULL)) {
        return NULL;
    }
    if ((node->index < exec->num) &&
        (exec->nodes[exec->by_index[node->index]].node_uid == node->uid)) {
        return &exec->nodes[exec->by_index[node->index]];
    }
    for (i = 0; i < exec->num; ++i) {
        if (exec->nodes[i].node_uid == node->uid) {
            return &exec->nodes[i];
        }
    }
    return NULL;
}

static bool sim_op_is_cooperative(const sim_op_t *op)
{
    const sim_attrs_t *attrs = op->kernel.attrs;

    return (attrs != NULL) &&
           attrs->value[CU_LAUNCH_ATTRIBUTE_COOPERATIVE].cooperative;
}

static bool sim_copy_is_1d(const CUDA_MEMCPY3D *desc)
{
    return (desc->Height == 1) && (desc->Depth == 1);
}

/* Whether a node of an executable graph may become what op says. */
static CUgraphExecUpdateResult sim_exec_may_set(const sim_op_t *old,
                                                const sim_op_t *op)
{
    if (old->kind != op->kind) {
        return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    } else if (old->ctx_uid != op->ctx_uid) {
        return (op->kind == SIM_OP_KERNEL) ?
               CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE :
               CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    }

    switch (op->kind) {
    case SIM_OP_KERNEL:
        return (sim_op_is_cooperative(old) != sim_op_is_cooperative(op)) ?
               CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED :
               CU_GRAPH_EXEC_UPDATE_SUCCESS;
    case SIM_OP_COPY:
        return (sim_copy_is_1d(&old->copy.desc) &&
                sim_copy_is_1d(&op->copy.desc) &&
                (old->copy.src_host == op->copy.src_host) &&
                (old->copy.dst_host == op->copy.dst_host) &&
                (op->copy.src_host ||
                 (old->copy.src_device == op->copy.src_device)) &&
                (op->copy.dst_host ||
                 (old->copy.dst_device == op->copy.dst_device))) ?
               CU_GRAPH_EXEC_UPDATE_SUCCESS :
               CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    case SIM_OP_SET:
        return ((old->set.params.height == 1) &&
                (op->set.params.height == 1) &&
                (old->set.device == op->set.device)) ?
               CU_GRAPH_EXEC_UPDATE_SUCCESS :
               CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    default:
        return CU_GRAPH_EXEC_UPDATE_SUCCESS;
    }
}

/* Sets one node; its attributes stay as instantiated. */
static CUresult sim_exec_set(CUgraphExec handle, CUgraphNode node_handle,
                             const CUgraphNodeParams *params)
{
    sim_exec_node_t *node = sim_exec_node(sim_exec_find(handle), node_handle);
    sim_op_t        *op;
    CUresult         status;

    if (node == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if ((node->child != NULL) ||
               ((params != NULL) &&
                (params->type == CU_GRAPH_NODE_TYPE_GRAPH))) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    status = sim_node_op(params, &op);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    if ((op->kind == SIM_OP_KERNEL) && (node->op->kind == SIM_OP_KERNEL) &&
        (node->op->kernel.attrs != NULL)) {
        op->kernel.attrs = sim_copy_of(node->op->kernel.attrs,
                                       sizeof(sim_attrs_t));
        status = sim_kernel_check_attrs(&op->kernel, op->kernel.attrs);
    }
    if ((status == CUDA_SUCCESS) &&
        (sim_exec_may_set(node->op, op) != CU_GRAPH_EXEC_UPDATE_SUCCESS)) {
        status = CUDA_ERROR_INVALID_VALUE;
    }
    if (status != CUDA_SUCCESS) {
        sim_op_release(op);
        return status;
    }
    if ((op->kind == SIM_OP_KERNEL) && sim_is_planted("patch")) {
        sim_exec_spoil(&op->kernel);
    }
    sim_op_release(node->op);
    node->op = op;
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuGraphExecNodeSetParams,
          (CUgraphExec hGraphExec, CUgraphNode hNode,
           CUgraphNodeParams *nodeParams), 0,
          sim_exec_set(hGraphExec, hNode, nodeParams))

static CUresult sim_exec_set_kernel(CUgraphExec exec, CUgraphNode node,
                                    const void *given, size_t size)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

    if (given == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    /* Each version has the members of the one before, and then more. */
    memcpy(&params.kernel, given, size);
    return sim_exec_set(exec, node, &params);
}
SIM_ENTRY(cuGraphExecKernelNodeSetParams,
          (CUgraphExec hGraphExec, CUgraphNode hNode,
           const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams), 0,
          sim_exec_set_kernel(hGraphExec, hNode, nodeParams,
                              sizeof(*nodeParams)))
SIM_ENTRY(cuGraphExecKernelNodeSetParams_v2,
          (CUgraphExec hGraphExec, CUgraphNode hNode,
           const CUDA_KERNEL_NODE_PARAMS *nodeParams), 0,
          sim_exec_set_kernel(hGraphExec, hNode, nodeParams,
                              sizeof(*nodeParams)))

static CUresult sim_exec_set_copy(CUgraphExec exec, CUgraphNode node,
                                  const CUDA_MEMCPY3D *copy, CUcontext ctx)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};

    if (copy == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    params.memcpy.copyCtx    = ctx;
    params.memcpy.copyParams = *copy;
    return sim_exec_set(exec, node, &params);
}
SIM_ENTRY(cuGraphExecMemcpyNodeSetParams,
          (CUgraphExec hGraphExec, CUgraphNode hNode,
           const CUDA_MEMCPY3D *copyParams, CUcontext ctx), 0,
          sim_exec_set_copy(hGraphExec, hNode, copyParams, ctx))

static CUresult sim_exec_set_set(CUgraphExec exec, CUgraphNode node,
                                 const CUDA_MEMSET_NODE_PARAMS *set,
                                 CUcontext ctx)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};

    if (set == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memcpy(&params.memset, set, sizeof(*set));
    params.memset.ctx = ctx;
    return sim_exec_set(exec, node, &params);
}
SIM_ENTRY(cuGraphExecMemsetNodeSetParams,
          (CUgraphExec hGraphExec, CUgraphNode hNode,
           const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx), 0,
          sim_exec_set_set(hGraphExec, hNode, memsetParams, ctx))

static CUresult sim_exec_set_host(CUgraphExec exec, CUgraphNode node,
                                  const CUDA_HOST_NODE_PARAMS *host)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST};

    if (host == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    params.host.fn       = host->fn;
    params.host.userData = host->userData;
    return sim_exec_set(exec, node, &params);
}
SIM_ENTRY(cuGraphExecHostNodeSetParams,
          (CUgraphExec hGraphExec, CUgraphNode hNode,
           const CUDA_HOST_NODE_PARAMS *nodeParams), 0,
          sim_exec_set_host(hGraphExec, hNode, nodeParams))

static CUresult sim_exec_set_event(CUgraphExec exec, CUgraphNode node,
                                   CUgraphNodeType type, CUevent event)
{
    CUgraphNodeParams params = {.type = type};

    params.eventRecord.event = event;
    return sim_exec_set(exec, node, &params);
}
SIM_ENTRY(cuGraphExecEventRecordNodeSetEvent,
          (CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event), 0,
          sim_exec_set_event(hGraphExec, hNode,
                             CU_GRAPH_NODE_TYPE_EVENT_RECORD, event))
SIM_ENTRY(cuGraphExecEventWaitNodeSetEvent,
          (CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event), 0,
          sim_exec_set_event(hGraphExec, hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT,
                             event))

static CUresult sim_exec_enable(CUgraphExec exec, CUgraphNode node_handle,
                                unsigned *get, unsigned set)
{
    sim_exec_node_t *node = sim_exec_node(sim_exec_find(exec), node_handle);

    if ((node == NULL) || ((node->op->kind != SIM_OP_KERNEL) &&
                           (node->op->kind != SIM_OP_COPY) &&
                           (node->op->kind != SIM_OP_SET))) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if (get != NULL) {
        *get = node->enabled;
    } else {
        node->enabled = set != 0;
    }
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuGraphNodeSetEnabled,
          (CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled),
          0, sim_exec_enable(hGraphExec, hNode, NULL, isEnabled))
SIM_ENTRY(cuGraphNodeGetEnabled,
          (CUgraphExec hGraphExec, CUgraphNode hNode,
           unsigned int *isEnabled), 0,
          (isEnabled == NULL) ? CUDA_ERROR_INVALID_VALUE :
          sim_exec_enable(hGraphExec, hNode, isEnabled, 0))

/* ---------------------------------------------------------- whole graphs */

static CUgraphExecUpdateResult sim_exec_may_update(const sim_exec_t *exec,
                                                   const sim_graph_t *graph,
                                                   sim_node_t **culprit);

static bool sim_exec_has_deps(const sim_exec_t *exec,
                              const sim_exec_node_t *old,
                              const sim_node_t *node)
{
    size_t i, k;

    if (old->num_deps != node->num_in) {
        return false;
    }
    for (i = 0; i < node->num_in; ++i) {
        for (k = 0; k < old->num_deps; ++k) {
            if (exec->nodes[old->deps[k]].index == node->in[i].node->index) {
                break;
            }
        }
        if (k == old->num_deps) {
            return false;
        }
    }
    return true;
}

static CUgraphExecUpdateResult sim_exec_may_update_node(
    const sim_exec_t *exec, const sim_exec_node_t *old, sim_node_t *node,
    sim_node_t **culprit)
{
    if ((old->child != NULL) != (node->op->kind == SIM_OP_CHILD)) {
        return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    } else if (!sim_exec_has_deps(exec, old, node)) {
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    }
    return (old->child != NULL) ?
           sim_exec_may_update(old->child, node->op->child, culprit) :
           sim_exec_may_set(old->op, node->op);
}

/* Nodes are paired in the order in which they were added. */
static CUgraphExecUpdateResult sim_exec_may_update(const sim_exec_t *exec,
                                                   const sim_graph_t *graph,
                                                   sim_node_t **culprit)
{
    CUgraphExecUpdateResult result;
    size_t                  i;

    if (exec->num != graph->num_nodes) {
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    }
    for (i = 0; i < graph->num_nodes; ++i) {
        *culprit = graph->nodes[i];
        result   = sim_exec_may_update_node(exec,
                                            &exec->nodes[exec->by_index[i]],
                                            graph->nodes[i], culprit);
        if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
            return result;
        }
    }
    *culprit = NULL;
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

static void sim_exec_do_update(sim_exec_t *exec, const sim_graph_t *graph)
{
    size_t i;

    for (i = 0; i < graph->num_nodes; ++i) {
        sim_exec_node_t *node = &exec->nodes[exec->by_index[i]];

        if (node->child != NULL) {
            sim_exec_do_update(node->child, graph->nodes[i]->op->child);
        } else {
            sim_op_release(node->op);
            node->op = sim_op_clone(graph->nodes[i]->op);
        }
    }
}

static CUresult sim_exec_update(CUgraphExec handle, CUgraph graph_handle,
                                CUgraphExecUpdateResultInfo *info)
{
    sim_exec_t        *exec    = sim_exec_find(handle);
    const sim_graph_t *graph   = sim_graph_find(graph_handle);
    sim_node_t        *culprit = NULL;

    if (info == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memset(info, 0, sizeof(*info));
    if ((exec == NULL) || (graph == NULL)) {
        info->result = CU_GRAPH_EXEC_UPDATE_ERROR;
        return CUDA_ERROR_INVALID_VALUE;
    }
    info->result = sim_exec_may_update(exec, graph, &culprit);
    if (info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
        info->errorNode = (culprit != NULL) ? culprit->handle : NULL;
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    sim_exec_do_update(exec, graph);
    return CUDA_SUCCESS;
}

static CUresult sim_exec_update_v1(CUgraphExec exec, CUgraph graph,
                                   CUgraphNode *error_node,
                                   CUgraphExecUpdateResult *result)
{
    CUgraphExecUpdateResultInfo info;
    CUresult                    status = sim_exec_update(exec, graph, &info);

    if (error_node != NULL) {
        *error_node = info.errorNode;
    }
    if (result != NULL) {
        *result = info.result;
    }
    return status;
}
SIM_ENTRY(cuGraphExecUpdate,
          (CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
           CUgraphExecUpdateResult *updateResult_out), 0,
          sim_exec_update_v1(hGraphExec, hGraph, hErrorNode_out,
                             updateResult_out))
SIM_ENTRY(cuGraphExecUpdate_v2,
          (CUgraphExec hGraphExec, CUgraph hGraph,
           CUgraphExecUpdateResultInfo *resultInfo), 0,
          sim_exec_update(hGraphExec, hGraph, resultInfo))
