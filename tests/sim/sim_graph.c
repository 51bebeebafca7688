/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs as they are built: nodes, their parameters, edges.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------- structure */

sim_graph_t *sim_graph_new(void)
{
    sim_graph_t *graph = sim_alloc(sizeof(*graph));

    graph->uid    = sim_uid();
    graph->handle = sim_handle_new(SIM_KIND_GRAPH, graph);
    return graph;
}

static void sim_node_free(sim_node_t *node)
{
    sim_handle_free(SIM_KIND_NODE, node->handle);
    sim_op_release(node->op);
    free(node->in);
    free(node);
}

void sim_graph_release(sim_graph_t *graph)
{
    size_t i;

    for (i = 0; i < graph->num_nodes; ++i) {
        sim_node_free(graph->nodes[i]);
    }
    sim_handle_free(SIM_KIND_GRAPH, graph->handle);
    free(graph->nodes);
    free(graph);
}

sim_graph_t *sim_graph_find(CUgraph handle)
{
    return sim_handle_get(SIM_KIND_GRAPH, handle);
}

sim_node_t *sim_node_find(CUgraphNode handle)
{
    return sim_handle_get(SIM_KIND_NODE, handle);
}

sim_node_t *sim_graph_add(sim_graph_t *graph, sim_op_t *op)
{
    sim_node_t *node = sim_alloc(sizeof(*node));

    node->uid    = sim_uid();
    node->origin = node->uid;
    node->graph  = graph;
    node->op     = op;
    node->index  = graph->num_nodes;
    node->handle = sim_handle_new(SIM_KIND_NODE, node);
    if (op->kind == SIM_OP_CHILD) {
        op->child->owner = node;
    }
    graph->nodes = sim_grow(graph->nodes, graph->num_nodes,
                            &graph->max_nodes, sizeof(sim_node_t *));
    graph->nodes[graph->num_nodes++] = node;
    return node;
}

void sim_node_depend(sim_node_t *node, sim_node_t *earlier,
                     const CUgraphEdgeData *data)
{
    sim_edge_t *edge;

    node->in = sim_grow(node->in, node->num_in, &node->max_in, sizeof(*edge));
    edge     = &node->in[node->num_in++];
    memset(edge, 0, sizeof(*edge));
    edge->node = earlier;
    if (data != NULL) {
        edge->data = *data;
    }
}

sim_graph_t *sim_graph_clone(const sim_graph_t *graph)
{
    sim_graph_t *clone = sim_graph_new();
    size_t       i, k;

    for (i = 0; i < graph->num_nodes; ++i) {
        sim_graph_add(clone, sim_op_clone(graph->nodes[i]->op))->origin =
            graph->nodes[i]->uid;
    }
    for (i = 0; i < graph->num_nodes; ++i) {
        const sim_node_t *node = graph->nodes[i];

        for (k = 0; k < node->num_in; ++k) {
            sim_node_depend(clone->nodes[i],
                            clone->nodes[node->in[k].node->index],
                            &node->in[k].data);
        }
    }
    return clone;
}

/* Depth first; state 1: on the way, 2: placed. False: a cycle. */
static bool sim_graph_place(sim_node_t *node, uint8_t *state,
                            sim_node_t **order, size_t *num)
{
    size_t i;

    if (state[node->index] != 0) {
        return state[node->index] == 2;
    }
    state[node->index] = 1;
    for (i = 0; i < node->num_in; ++i) {
        if (!sim_graph_place(node->in[i].node, state, order, num)) {
            return false;
        }
    }
    state[node->index] = 2;
    order[(*num)++]    = node;
    return true;
}

sim_node_t **sim_graph_order(const sim_graph_t *graph)
{
    sim_node_t **order = sim_alloc(graph->num_nodes * sizeof(sim_node_t *));
    uint8_t     *state = sim_alloc(graph->num_nodes);
    size_t       num   = 0, i;

    for (i = 0; i < graph->num_nodes; ++i) {
        if (!sim_graph_place(graph->nodes[i], state, order, &num)) {
            free(order);
            order = NULL;
            break;
        }
    }
    free(state);
    return order;
}

CUgraphNodeType sim_node_type(const sim_node_t *node)
{
    static const CUgraphNodeType types[] = {
        [SIM_OP_EMPTY]  = CU_GRAPH_NODE_TYPE_EMPTY,
        [SIM_OP_KERNEL] = CU_GRAPH_NODE_TYPE_KERNEL,
        [SIM_OP_COPY]   = CU_GRAPH_NODE_TYPE_MEMCPY,
        [SIM_OP_SET]    = CU_GRAPH_NODE_TYPE_MEMSET,
        [SIM_OP_HOST]   = CU_GRAPH_NODE_TYPE_HOST,
        [SIM_OP_RECORD] = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
        [SIM_OP_WAIT]   = CU_GRAPH_NODE_TYPE_WAIT_EVENT,
        [SIM_OP_MEMOPS] = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
        [SIM_OP_CHILD]  = CU_GRAPH_NODE_TYPE_GRAPH,
    };

    return types[node->op->kind];
}

/* ---------------------------------------------------------- parameters */

static CUresult sim_op_of_kernel(const CUDA_KERNEL_NODE_PARAMS_v3 *params,
                                 sim_op_t **op)
{
    sim_ctx_t *ctx;
    CUresult   status = sim_ctx_get((params->func == NULL) ? params->ctx :
                                                             NULL, &ctx);

    return (status != CUDA_SUCCESS) ? status :
           sim_kernel_op(params, ctx, true, NULL, op);
}

/* Nodes must name their context. */
static CUresult sim_node_ctx(CUcontext handle, sim_ctx_t **ctx)
{
    return (handle == NULL) ? CUDA_ERROR_INVALID_CONTEXT :
                              sim_ctx_get(handle, ctx);
}

static CUresult sim_op_of_copy(const CUDA_MEMCPY_NODE_PARAMS *params,
                               sim_op_t **op)
{
    sim_ctx_t *ctx;
    CUresult   status = sim_node_ctx(params->copyCtx, &ctx);

    if (status != CUDA_SUCCESS) {
        return status;
    } else if ((params->flags != 0) || (params->reserved != 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    status = sim_copy_op(&params->copyParams, ctx, op);
    return ((status == CUDA_SUCCESS) && (*op == NULL)) ?
           CUDA_ERROR_INVALID_VALUE : status;
}

static CUresult sim_op_of_set(const CUDA_MEMSET_NODE_PARAMS_v2 *params,
                              sim_op_t **op)
{
    CUDA_MEMSET_NODE_PARAMS_v1 set = {params->dst, params->pitch,
                                      params->value, params->elementSize,
                                      params->width, params->height};
    sim_ctx_t                 *ctx;
    CUresult                   status = sim_node_ctx(params->ctx, &ctx);

    if (status == CUDA_SUCCESS) {
        status = sim_set_op(&set, ctx, op);
    }
    return ((status == CUDA_SUCCESS) && (*op == NULL)) ?
           CUDA_ERROR_INVALID_VALUE : status;
}

static CUresult sim_op_of_event(CUevent handle, sim_op_kind_t kind,
                                sim_op_t **op)
{
    const sim_event_t *event = sim_event_find(handle);

    if (event == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    *op                 = sim_op_new(kind, NULL);
    (*op)->event.handle = handle;
    (*op)->event.uid    = event->uid;
    return CUDA_SUCCESS;
}

static CUresult sim_op_of_child(CUgraph handle, sim_op_t **op)
{
    const sim_graph_t *graph = sim_graph_find(handle);

    if (graph == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *op          = sim_op_new(SIM_OP_CHILD, NULL);
    (*op)->child = sim_graph_clone(graph);
    return CUDA_SUCCESS;
}

static CUresult sim_op_of_host(const CUDA_HOST_NODE_PARAMS_v2 *params,
                               sim_op_t **op)
{
    if (params->fn == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *op                  = sim_op_new(SIM_OP_HOST, NULL);
    (*op)->host.fn       = params->fn;
    (*op)->host.userData = params->userData;
    return CUDA_SUCCESS;
}

static CUresult sim_op_of_memops(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *p,
                                 sim_op_t **op)
{
    sim_ctx_t *ctx;
    CUresult   status = sim_node_ctx(p->ctx, &ctx);

    if (status != CUDA_SUCCESS) {
        return status;
    } else if ((p->count == 0) || (p->paramArray == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *op               = sim_op_new(SIM_OP_MEMOPS, ctx);
    (*op)->memops.num = p->count;
    (*op)->memops.ops = sim_copy_of(p->paramArray,
                                    p->count * sizeof(*p->paramArray));
    return CUDA_SUCCESS;
}

CUresult sim_node_op(const CUgraphNodeParams *params, sim_op_t **op)
{
    static const int zero[3];

    if ((params == NULL) || (params->reserved2 != 0) ||
        (memcmp(params->reserved0, zero, sizeof(zero)) != 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return sim_op_of_kernel(&params->kernel, op);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return sim_op_of_copy(&params->memcpy, op);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return sim_op_of_set(&params->memset, op);
    case CU_GRAPH_NODE_TYPE_HOST:
        return sim_op_of_host(&params->host, op);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return sim_op_of_child(params->graph.graph, op);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        *op = sim_op_new(SIM_OP_EMPTY, NULL);
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return sim_op_of_event(params->eventRecord.event, SIM_OP_RECORD, op);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return sim_op_of_event(params->eventWait.event, SIM_OP_WAIT, op);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return sim_op_of_memops(&params->memOp, op);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

/* ---------------------------------------------------------- edges */

static bool sim_edge_is_full(const CUgraphEdgeData *data)
{
    static const CUgraphEdgeData full;

    return (data == NULL) || (memcmp(data, &full, sizeof(full)) == 0);
}

static CUresult sim_edge_check(const sim_node_t *from, const sim_node_t *to,
                               const CUgraphEdgeData *data)
{
    static const unsigned char zero[5];

    if (sim_edge_is_full(data)) {
        return CUDA_SUCCESS;
    }
    return ((data->to_port != 0) || (from->op->kind != SIM_OP_KERNEL) ||
            (to->op->kind != SIM_OP_KERNEL) ||
            (data->from_port > CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER) ||
            (data->type > CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC) ||
            (memcmp(data->reserved, zero, sizeof(zero)) != 0)) ?
           CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static size_t sim_edge_index(const sim_node_t *node, const sim_node_t *from)
{
    size_t i;

    for (i = 0; i < node->num_in; ++i) {
        if (node->in[i].node == from) {
            break;
        }
    }
    return i;
}

/* Adds a node with its edges, or nothing at all. The operation is consumed. */
static CUresult sim_graph_add_node(CUgraphNode *handle, CUgraph graph_handle,
                                   const CUgraphNode *deps,
                                   const CUgraphEdgeData *data, size_t num,
                                   sim_op_t *op)
{
    sim_graph_t *graph  = sim_graph_find(graph_handle);
    CUresult     status = CUDA_SUCCESS;
    sim_node_t  *node;
    size_t       i;

    if ((graph == NULL) || (handle == NULL) ||
        ((num > 0) && (deps == NULL))) {
        sim_op_release(op);
        return CUDA_ERROR_INVALID_VALUE;
    }

    node = sim_graph_add(graph, op);
    for (i = 0; (status == CUDA_SUCCESS) && (i < num); ++i) {
        sim_node_t *from = sim_node_find(deps[i]);

        if ((from == NULL) || (from->graph != graph) || (from == node) ||
            (sim_edge_index(node, from) < node->num_in)) {
            status = CUDA_ERROR_INVALID_VALUE;
        } else {
            status = sim_edge_check(from, node,
                                    (data != NULL) ? &data[i] : NULL);
            sim_node_depend(node, from, (data != NULL) ? &data[i] : NULL);
        }
    }
    if (status != CUDA_SUCCESS) {
        --graph->num_nodes;
        sim_node_free(node);
        return status;
    }
    *handle = node->handle;
    return CUDA_SUCCESS;
}

static CUresult sim_graph_add_params(CUgraphNode *handle, CUgraph graph,
                                     const CUgraphNode *deps,
                                     const CUgraphEdgeData *data, size_t num,
                                     const CUgraphNodeParams *params)
{
    sim_op_t *op;
    CUresult  status = sim_node_op(params, &op);

    return (status != CUDA_SUCCESS) ? status :
           sim_graph_add_node(handle, graph, deps, data, num, op);
}

static CUresult sim_graph_depend(CUgraph handle, const CUgraphNode *from,
                                 const CUgraphNode *to,
                                 const CUgraphEdgeData *data, size_t num,
                                 bool add)
{
    sim_graph_t *graph  = sim_graph_find(handle);
    CUresult     status = CUDA_SUCCESS;
    size_t       i, at;

    if ((graph == NULL) || ((num > 0) && ((from == NULL) || (to == NULL)))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (i = 0; (status == CUDA_SUCCESS) && (i < num); ++i) {
        sim_node_t *a = sim_node_find(from[i]);
        sim_node_t *b = sim_node_find(to[i]);

        if ((a == NULL) || (b == NULL) || (a == b) || (a->graph != graph) ||
            (b->graph != graph)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        at = sim_edge_index(b, a);
        if ((at < b->num_in) == add) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        status = sim_edge_check(a, b, (data != NULL) ? &data[i] : NULL);
        if (status != CUDA_SUCCESS) {
            break;
        } else if (add) {
            sim_node_depend(b, a, (data != NULL) ? &data[i] : NULL);
        } else {
            b->in[at] = b->in[--b->num_in];
        }
    }
    return status;
}

/* ---------------------------------------------------------- graphs */

static CUresult sim_graph_create(CUgraph *handle, unsigned flags)
{
    if ((handle == NULL) || (flags != 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *handle = sim_graph_new()->handle;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuGraphCreate, (CUgraph *phGraph, unsigned int flags), 0,
          sim_graph_create(phGraph, flags))

static CUresult sim_graph_destroy(CUgraph handle)
{
    sim_graph_t *graph = sim_graph_find(handle);

    if ((graph == NULL) || (graph->owner != NULL) || graph->capturing) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_graph_release(graph);
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuGraphDestroy, (CUgraph hGraph), 0, sim_graph_destroy(hGraph))

static CUresult sim_graph_copy(CUgraph *handle, CUgraph original)
{
    const sim_graph_t *graph = sim_graph_find(original);

    if ((handle == NULL) || (graph == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *handle = sim_graph_clone(graph)->handle;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuGraphClone, (CUgraph *phGraphClone, CUgraph originalGraph), 0,
          sim_graph_copy(phGraphClone, originalGraph))

static CUresult sim_graph_find_in_clone(CUgraphNode *handle,
                                        CUgraphNode original, CUgraph clone)
{
    const sim_node_t  *node  = sim_node_find(original);
    const sim_graph_t *graph = sim_graph_find(clone);
    size_t             i;

    for (i = 0; (node != NULL) && (graph != NULL) && (i < graph->num_nodes);
         ++i) {
        if (graph->nodes[i]->origin == node->uid) {
            *handle = graph->nodes[i]->handle;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}
SIM_ENTRY(cuGraphNodeFindInClone,
          (CUgraphNode *phNode, CUgraphNode hOriginalNode,
           CUgraph hClonedGraph), 0,
          sim_graph_find_in_clone(phNode, hOriginalNode, hClonedGraph))

static CUresult sim_graph_destroy_node(CUgraphNode handle)
{
    sim_node_t  *node = sim_node_find(handle);
    sim_graph_t *graph;
    size_t       i, at;

    if ((node == NULL) || node->graph->capturing) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    graph = node->graph;
    --graph->num_nodes;
    for (i = node->index; i < graph->num_nodes; ++i) {
        graph->nodes[i]        = graph->nodes[i + 1];
        graph->nodes[i]->index = i;
    }
    for (i = 0; i < graph->num_nodes; ++i) {
        sim_node_t *other = graph->nodes[i];

        at = sim_edge_index(other, node);
        if (at < other->num_in) {
            other->in[at] = other->in[--other->num_in];
        }
    }
    sim_node_free(node);
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuGraphDestroyNode, (CUgraphNode hNode), 0,
          sim_graph_destroy_node(hNode))

/* ---------------------------------------------------------- adding */

SIM_ENTRY(cuGraphAddNode,
          (CUgraphNode *phGraphNode, CUgraph hGraph,
           const CUgraphNode *dependencies, size_t numDependencies,
           CUgraphNodeParams *nodeParams), 0,
          sim_graph_add_params(phGraphNode, hGraph, dependencies, NULL,
                               numDependencies, nodeParams))
SIM_ENTRY(cuGraphAddNode_v2,
          (CUgraphNode *phGraphNode, CUgraph hGraph,
           const CUgraphNode *dependencies,
           const CUgraphEdgeData *dependencyData, size_t numDependencies,
           CUgraphNodeParams *nodeParams), 0,
          sim_graph_add_params(phGraphNode, hGraph, dependencies,
                               dependencyData, numDependencies, nodeParams))

static CUgraphNodeParams sim_params_kernel(const CUDA_KERNEL_NODE_PARAMS *p)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

    memcpy(&params.kernel, p, sizeof(*p)); /* v3 has the members of v2 */
    return params;
}

static CUgraphNodeParams sim_params_kernel_v1(
    const CUDA_KERNEL_NODE_PARAMS_v1 *p)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

    memcpy(&params.kernel, p, sizeof(*p)); /* and those of v1 first */
    return params;
}

static CUgraphNodeParams sim_params_copy(const CUDA_MEMCPY3D *copy,
                                         CUcontext ctx)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};

    params.memcpy.copyCtx    = ctx;
    params.memcpy.copyParams = *copy;
    return params;
}

static CUgraphNodeParams sim_params_set(const CUDA_MEMSET_NODE_PARAMS *set,
                                        CUcontext ctx)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};

    memcpy(&params.memset, set, sizeof(*set));
    params.memset.ctx = ctx;
    return params;
}

static CUgraphNodeParams sim_params_host(const CUDA_HOST_NODE_PARAMS *host)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST};

    params.host.fn       = host->fn;
    params.host.userData = host->userData;
    return params;
}

static CUgraphNodeParams sim_params_other(CUgraphNodeType type, void *value)
{
    CUgraphNodeParams params = {.type = type};

    /* Of these kinds each has one handle and nothing else. */
    params.eventRecord.event = value;
    return params;
}

#define SIM_ADD(_params) \
    sim_graph_add_params(phGraphNode, hGraph, dependencies, NULL, \
                         numDependencies, &(CUgraphNodeParams[]){_params}[0])
#define SIM_ADD_IF(_given, _params) \
    (((_given) == NULL) ? CUDA_ERROR_INVALID_VALUE : SIM_ADD(_params))
#define SIM_ADD_ENTRY(_name, _params, _call) \
    SIM_ENTRY(_name, _params, 0, _call)

SIM_ADD_ENTRY(cuGraphAddKernelNode,
              (CUgraphNode *phGraphNode, CUgraph hGraph,
               const CUgraphNode *dependencies, size_t numDependencies,
               const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams),
              SIM_ADD_IF(nodeParams, sim_params_kernel_v1(nodeParams)))
SIM_ADD_ENTRY(cuGraphAddKernelNode_v2,
              (CUgraphNode *phGraphNode, CUgraph hGraph,
               const CUgraphNode *dependencies, size_t numDependencies,
               const CUDA_KERNEL_NODE_PARAMS *nodeParams),
              SIM_ADD_IF(nodeParams, sim_params_kernel(nodeParams)))
SIM_ADD_ENTRY(cuGraphAddMemcpyNode,
              (CUgraphNode *phGraphNode, CUgraph hGraph,
               const CUgraphNode *dependencies, size_t numDependencies,
               const CUDA_MEMCPY3D *copyParams, CUcontext ctx),
              SIM_ADD_IF(copyParams, sim_params_copy(copyParams, ctx)))
SIM_ADD_ENTRY(cuGraphAddMemsetNode,
              (CUgraphNode *phGraphNode, CUgraph hGraph,
               const CUgraphNode *dependencies, size_t numDependencies,
               const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx),
              SIM_ADD_IF(memsetParams, sim_params_set(memsetParams, ctx)))
SIM_ADD_ENTRY(cuGraphAddHostNode,
              (CUgraphNode *phGraphNode, CUgraph hGraph,
               const CUgraphNode *dependencies, size_t numDependencies,
               const CUDA_HOST_NODE_PARAMS *nodeParams),
              SIM_ADD_IF(nodeParams, sim_params_host(nodeParams)))
SIM_ADD_ENTRY(cuGraphAddChildGraphNode,
              (CUgraphNode *phGraphNode, CUgraph hGraph,
               const CUgraphNode *dependencies, size_t numDependencies,
               CUgraph childGraph),
              SIM_ADD(sim_params_other(CU_GRAPH_NODE_TYPE_GRAPH, childGraph)))
SIM_ADD_ENTRY(cuGraphAddEmptyNode,
              (CUgraphNode *phGraphNode, CUgraph hGraph,
               const CUgraphNode *dependencies, size_t numDependencies),
              SIM_ADD(sim_params_other(CU_GRAPH_NODE_TYPE_EMPTY, NULL)))
SIM_ADD_ENTRY(cuGraphAddEventRecordNode,
              (CUgraphNode *phGraphNode, CUgraph hGraph,
               const CUgraphNode *dependencies, size_t numDependencies,
               CUevent event),
              SIM_ADD(sim_params_other(CU_GRAPH_NODE_TYPE_EVENT_RECORD,
                                       event)))
SIM_ADD_ENTRY(cuGraphAddEventWaitNode,
              (CUgraphNode *phGraphNode, CUgraph hGraph,
               const CUgraphNode *dependencies, size_t numDependencies,
               CUevent event),
              SIM_ADD(sim_params_other(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event)))

SIM_ENTRY(cuGraphAddDependencies,
          (CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
           size_t numDependencies), 0,
          sim_graph_depend(hGraph, from, to, NULL, numDependencies, true))
SIM_ENTRY(cuGraphAddDependencies_v2,
          (CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
           const CUgraphEdgeData *edgeData, size_t numDependencies), 0,
          sim_graph_depend(hGraph, from, to, edgeData, numDependencies, true))
SIM_ENTRY(cuGraphRemoveDependencies,
          (CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
           size_t numDependencies), 0,
          sim_graph_depend(hGraph, from, to, NULL, numDependencies, false))
SIM_ENTRY(cuGraphRemoveDependencies_v2,
          (CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
           const CUgraphEdgeData *edgeData, size_t numDependencies), 0,
          sim_graph_depend(hGraph, from, to, edgeData, numDependencies,
                           false))

/* ---------------------------------------------------------- questions */

/* Output of a list: counts always, stores what there is room for. */
typedef struct {
    CUgraphNode     *nodes, *others;
    CUgraphEdgeData *data;
    size_t           max, num;
    bool             is_lossy;
} sim_list_t;

static void sim_list_add(sim_list_t *list, const sim_node_t *node,
                         const sim_node_t *other, const sim_edge_t *edge)
{
    if (list->num < list->max) {
        if (list->nodes != NULL) {
            list->nodes[list->num] = node->handle;
        }
        if (list->others != NULL) {
            list->others[list->num] = other->handle;
        }
        if (list->data != NULL) {
            list->data[list->num] = edge->data;
        }
    }
    if ((edge != NULL) && (list->data == NULL) &&
        !sim_edge_is_full(&edge->data)) {
        list->is_lossy = true;
    }
    ++list->num;
}

static CUresult sim_list_end(const sim_list_t *list, size_t *num)
{
    *num = ((list->nodes == NULL) || (list->num < list->max)) ? list->num :
                                                                list->max;
    return (list->is_lossy && (list->nodes != NULL)) ?
           CUDA_ERROR_LOSSY_QUERY : CUDA_SUCCESS;
}

static CUresult sim_graph_list(CUgraph handle, CUgraphNode *nodes,
                               size_t *num, bool only_roots)
{
    const sim_graph_t *graph = sim_graph_find(handle);
    sim_list_t         list  = {.nodes = nodes};
    size_t             i;

    if ((graph == NULL) || (num == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    list.max = *num;
    for (i = 0; i < graph->num_nodes; ++i) {
        if (!only_roots || (graph->nodes[i]->num_in == 0)) {
            sim_list_add(&list, graph->nodes[i], NULL, NULL);
        }
    }
    return sim_list_end(&list, num);
}
SIM_ENTRY(cuGraphGetNodes,
          (CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes), 0,
          sim_graph_list(hGraph, nodes, numNodes, false))
SIM_ENTRY(cuGraphGetRootNodes,
          (CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes), 0,
          sim_graph_list(hGraph, rootNodes, numRootNodes, true))

static CUresult sim_graph_edges(CUgraph handle, CUgraphNode *from,
                                CUgraphNode *to, CUgraphEdgeData *data,
                                size_t *num)
{
    const sim_graph_t *graph = sim_graph_find(handle);
    sim_list_t         list  = {.nodes = from, .others = to, .data = data};
    size_t             i, k;

    if ((graph == NULL) || (num == NULL) || ((from == NULL) != (to == NULL))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    list.max = *num;
    for (i = 0; i < graph->num_nodes; ++i) {
        const sim_node_t *node = graph->nodes[i];

        for (k = 0; k < node->num_in; ++k) {
            sim_list_add(&list, node->in[k].node, node, &node->in[k]);
        }
    }
    return sim_list_end(&list, num);
}
SIM_ENTRY(cuGraphGetEdges,
          (CUgraph hGraph, CUgraphNode *from, CUgraphNode *to,
           size_t *numEdges), 0,
          sim_graph_edges(hGraph, from, to, NULL, numEdges))
SIM_ENTRY(cuGraphGetEdges_v2,
          (CUgraph hGraph, CUgraphNode *from, CUgraphNode *to,
           CUgraphEdgeData *edgeData, size_t *numEdges), 0,
          sim_graph_edges(hGraph, from, to, edgeData, numEdges))

static CUresult sim_node_before(CUgraphNode handle, CUgraphNode *deps,
                                CUgraphEdgeData *data, size_t *num)
{
    const sim_node_t *node = sim_node_find(handle);
    sim_list_t        list = {.nodes = deps, .data = data};
    size_t            i;

    if ((node == NULL) || (num == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    list.max = *num;
    for (i = 0; i < node->num_in; ++i) {
        sim_list_add(&list, node->in[i].node, NULL, &node->in[i]);
    }
    return sim_list_end(&list, num);
}
SIM_ENTRY(cuGraphNodeGetDependencies,
          (CUgraphNode hNode, CUgraphNode *dependencies,
           size_t *numDependencies), 0,
          sim_node_before(hNode, dependencies, NULL, numDependencies))
SIM_ENTRY(cuGraphNodeGetDependencies_v2,
          (CUgraphNode hNode, CUgraphNode *dependencies,
           CUgraphEdgeData *edgeData, size_t *numDependencies), 0,
          sim_node_before(hNode, dependencies, edgeData, numDependencies))

static CUresult sim_node_after(CUgraphNode handle, CUgraphNode *nodes,
                               CUgraphEdgeData *data, size_t *num)
{
    const sim_node_t *node = sim_node_find(handle);
    sim_list_t        list = {.nodes = nodes, .data = data};
    size_t            i, at;

    if ((node == NULL) || (num == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    list.max = *num;
    for (i = 0; i < node->graph->num_nodes; ++i) {
        const sim_node_t *other = node->graph->nodes[i];

        at = sim_edge_index(other, node);
        if (at < other->num_in) {
            sim_list_add(&list, other, NULL, &other->in[at]);
        }
    }
    return sim_list_end(&list, num);
}
SIM_ENTRY(cuGraphNodeGetDependentNodes,
          (CUgraphNode hNode, CUgraphNode *dependentNodes,
           size_t *numDependentNodes), 0,
          sim_node_after(hNode, dependentNodes, NULL, numDependentNodes))
SIM_ENTRY(cuGraphNodeGetDependentNodes_v2,
          (CUgraphNode hNode, CUgraphNode *dependentNodes,
           CUgraphEdgeData *edgeData, size_t *numDependentNodes), 0,
          sim_node_after(hNode, dependentNodes, edgeData, numDependentNodes))

static CUresult sim_node_get_type(CUgraphNode handle, CUgraphNodeType *type)
{
    const sim_node_t *node = sim_node_find(handle);

    if ((node == NULL) || (type == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *type = sim_node_type(node);
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuGraphNodeGetType, (CUgraphNode hNode, CUgraphNodeType *type), 0,
          sim_node_get_type(hNode, type))

/* ---------------------------------------------------------- get and set */

/* The node if it is of that kind and there is a place to store to. */
static sim_op_t *sim_node_op_of(CUgraphNode handle, sim_op_kind_t kind,
                                const void *place)
{
    const sim_node_t *node = sim_node_find(handle);

    return ((node != NULL) && (place != NULL) && (node->op->kind == kind)) ?
           node->op : NULL;
}

/* Replaces a node's parameters; what was set apart from them stays. */
static CUresult sim_node_set(CUgraphNode handle,
                             const CUgraphNodeParams *params)
{
    sim_node_t *node = sim_node_find(handle);
    sim_op_t   *op;
    CUresult    status;

    if (node == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    status = sim_node_op(params, &op);
    if (status != CUDA_SUCCESS) {
        return status;
    } else if (op->kind != node->op->kind) {
        sim_op_release(op);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (op->kind == SIM_OP_KERNEL) {
        op->kernel.attrs       = node->op->kernel.attrs;
        node->op->kernel.attrs = NULL;
    } else if (op->kind == SIM_OP_CHILD) {
        op->child->owner = node;
    }
    sim_op_release(node->op);
    node->op = op;
    return CUDA_SUCCESS;
}

static CUresult sim_node_get_kernel(CUgraphNode handle,
                                    CUDA_KERNEL_NODE_PARAMS *params)
{
    const sim_op_t *op = sim_node_op_of(handle, SIM_OP_KERNEL, params);

    if (op == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memset(params, 0, sizeof(*params));
    params->func = op->kernel.func_handle;
    params->kern = op->kernel.kern_handle;
    params->ctx  = op->ctx;
    memcpy(&params->gridDimX, op->kernel.grid, sizeof(op->kernel.grid));
    memcpy(&params->blockDimX, op->kernel.block, sizeof(op->kernel.block));
    params->sharedMemBytes = op->kernel.shared;
    params->kernelParams   = op->kernel.params;
    return CUDA_SUCCESS;
}

static CUresult sim_node_get_kernel_v1(CUgraphNode handle,
                                       CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    const sim_op_t         *op = sim_node_op_of(handle, SIM_OP_KERNEL,
                                                params);
    CUDA_KERNEL_NODE_PARAMS full;

    if (op == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    (void)sim_node_get_kernel(handle, &full);
    memcpy(params, &full, sizeof(*params));
    params->func = op->kernel.func->handle;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuGraphKernelNodeGetParams,
          (CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams), 0,
          sim_node_get_kernel_v1(hNode, nodeParams))
SIM_ENTRY(cuGraphKernelNodeGetParams_v2,
          (CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams), 0,
          sim_node_get_kernel(hNode, nodeParams))

#define SIM_SET_IF(_given, _params) \
    (((_given) == NULL) ? CUDA_ERROR_INVALID_VALUE : \
     sim_node_set(hNode, &(CUgraphNodeParams[]){_params}[0]))

SIM_ENTRY(cuGraphKernelNodeSetParams,
          (CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams),
          0, SIM_SET_IF(nodeParams, sim_params_kernel_v1(nodeParams)))
SIM_ENTRY(cuGraphKernelNodeSetParams_v2,
          (CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams), 0,
          SIM_SET_IF(nodeParams, sim_params_kernel(nodeParams)))
SIM_ENTRY(cuGraphNodeSetParams,
          (CUgraphNode hNode, CUgraphNodeParams *nodeParams), 0,
          sim_node_set(hNode, nodeParams))

/* The context of a copy or set node, which the older functions do not give. */
static CUcontext sim_node_get_ctx(CUgraphNode handle)
{
    const sim_node_t *node = sim_node_find(handle);

    return (node != NULL) ? node->op->ctx : NULL;
}

static CUresult sim_node_get_copy(CUgraphNode handle, CUDA_MEMCPY3D *params)
{
    const sim_op_t *op = sim_node_op_of(handle, SIM_OP_COPY, params);

    if (op == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *params = op->copy.desc;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuGraphMemcpyNodeGetParams,
          (CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams), 0,
          sim_node_get_copy(hNode, nodeParams))
SIM_ENTRY(cuGraphMemcpyNodeSetParams,
          (CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams), 0,
          SIM_SET_IF(nodeParams, sim_params_copy(nodeParams,
                                                 sim_node_get_ctx(hNode))))

static CUresult sim_node_get_set(CUgraphNode handle,
                                 CUDA_MEMSET_NODE_PARAMS *params)
{
    const sim_op_t *op = sim_node_op_of(handle, SIM_OP_SET, params);

    if (op == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *params = op->set.params;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuGraphMemsetNodeGetParams,
          (CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams), 0,
          sim_node_get_set(hNode, nodeParams))
SIM_ENTRY(cuGraphMemsetNodeSetParams,
          (CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams), 0,
          SIM_SET_IF(nodeParams, sim_params_set(nodeParams,
                                                sim_node_get_ctx(hNode))))

static CUresult sim_node_get_host(CUgraphNode handle,
                                  CUDA_HOST_NODE_PARAMS *params)
{
    const sim_op_t *op = sim_node_op_of(handle, SIM_OP_HOST, params);

    if (op == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *params = op->host;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuGraphHostNodeGetParams,
          (CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams), 0,
          sim_node_get_host(hNode, nodeParams))
SIM_ENTRY(cuGraphHostNodeSetParams,
          (CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams), 0,
          SIM_SET_IF(nodeParams, sim_params_host(nodeParams)))

static CUresult sim_node_get_child(CUgraphNode handle, CUgraph *graph)
{
    const sim_op_t *op = sim_node_op_of(handle, SIM_OP_CHILD, graph);

    if (op == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *graph = op->child->handle;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuGraphChildGraphNodeGetGraph,
          (CUgraphNode hNode, CUgraph *phGraph), 0,
          sim_node_get_child(hNode, phGraph))

static CUresult sim_node_get_event(CUgraphNode handle, sim_op_kind_t kind,
                                   CUevent *event)
{
    const sim_op_t *op = sim_node_op_of(handle, kind, event);

    if (op == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *event = op->event.handle;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuGraphEventRecordNodeGetEvent,
          (CUgraphNode hNode, CUevent *event_out), 0,
          sim_node_get_event(hNode, SIM_OP_RECORD, event_out))
SIM_ENTRY(cuGraphEventWaitNodeGetEvent,
          (CUgraphNode hNode, CUevent *event_out), 0,
          sim_node_get_event(hNode, SIM_OP_WAIT, event_out))
SIM_ENTRY(cuGraphEventRecordNodeSetEvent, (CUgraphNode hNode, CUevent event),
          0, SIM_SET_IF(event, sim_params_other(
                                   CU_GRAPH_NODE_TYPE_EVENT_RECORD, event)))
SIM_ENTRY(cuGraphEventWaitNodeSetEvent, (CUgraphNode hNode, CUevent event), 0,
          SIM_SET_IF(event, sim_params_other(CU_GRAPH_NODE_TYPE_WAIT_EVENT,
                                             event)))

/* ---------------------------------------------------------- attributes */

static CUresult sim_node_get_attr(CUgraphNode handle, CUkernelNodeAttrID attr,
                                  CUkernelNodeAttrValue *value)
{
    const sim_op_t *op = sim_node_op_of(handle, SIM_OP_KERNEL, value);

    if ((op == NULL) || !sim_attr_is_of_node(attr)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memset(value, 0, sizeof(*value));
    if (op->kernel.attrs != NULL) {
        *value = op->kernel.attrs->value[attr];
    }
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuGraphKernelNodeGetAttribute,
          (CUgraphNode hNode, CUkernelNodeAttrID attr,
           CUkernelNodeAttrValue *value_out), 0,
          sim_node_get_attr(hNode, attr, value_out))

static CUresult sim_node_set_attr(CUgraphNode handle, CUkernelNodeAttrID attr,
                                  const CUkernelNodeAttrValue *value)
{
    sim_op_t   *op    = sim_node_op_of(handle, SIM_OP_KERNEL, value);
    sim_attrs_t attrs = {0};
    CUresult    status;

    if ((op == NULL) || !sim_attr_is_of_node(attr)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (op->kernel.attrs != NULL) {
        attrs = *op->kernel.attrs;
    }
    attrs.value[attr] = *value;
    attrs.mask       |= 1u << attr;
    status            = sim_kernel_check_attrs(&op->kernel, &attrs);
    if (status == CUDA_SUCCESS) {
        free(op->kernel.attrs);
        op->kernel.attrs = sim_copy_of(&attrs, sizeof(attrs));
    }
    return status;
}
SIM_ENTRY(cuGraphKernelNodeSetAttribute,
          (CUgraphNode hNode, CUkernelNodeAttrID attr,
           const CUkernelNodeAttrValue *value), 0,
          sim_node_set_attr(hNode, attr, value))

static CUresult sim_node_copy_attrs(CUgraphNode dst, CUgraphNode src)
{
    sim_op_t       *to   = sim_node_op_of(dst, SIM_OP_KERNEL, dst);
    const sim_op_t *from = sim_node_op_of(src, SIM_OP_KERNEL, src);

    if ((to == NULL) || (from == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if (to != from) {
        free(to->kernel.attrs);
        to->kernel.attrs = (from->kernel.attrs == NULL) ? NULL :
            sim_copy_of(from->kernel.attrs, sizeof(sim_attrs_t));
    }
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuGraphKernelNodeCopyAttributes,
          (CUgraphNode dst, CUgraphNode src), 0,
          sim_node_copy_attrs(dst, src))

/* ---------------------------------------------------------- DOT */

static CUresult sim_graph_dot(CUgraph handle, const char *path)
{
    const sim_graph_t *graph = sim_graph_find(handle);
    FILE              *file;
    size_t             i, k;

    if ((graph == NULL) || (path == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    file = fopen(path, "w");
    if (file == NULL) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    fprintf(file, "digraph graph_%llu {\n", (unsigned long long)graph->uid);
    for (i = 0; i < graph->num_nodes; ++i) {
        const sim_node_t *node = graph->nodes[i];

        fprintf(file, "    n%zu [label=\"%s\"];\n", i,
                (node->op->kind == SIM_OP_KERNEL) ?
                node->op->kernel.func->entry->name : "node");
        for (k = 0; k < node->num_in; ++k) {
            fprintf(file, "    n%zu -> n%zu;\n", node->in[k].node->index, i);
        }
    }
    fprintf(file, "}\n");
    return (fclose(file) == 0) ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}
SIM_ENTRY(cuGraphDebugDotPrint,
          (CUgraph hGraph, const char *path, unsigned int flags), 0,
          ((void)flags, sim_graph_dot(hGraph, path)))
