/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream capture: streams whose work becomes nodes of a graph, and the calls
 * that are refused meanwhile.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

struct sim_capture {
    sim_capture_t      *next;
    uint64_t            uid;
    uint64_t            thread; /* uid of the one that began it */
    CUstreamCaptureMode mode;
    bool                is_invalid;
    sim_stream_t       *origin;
    sim_graph_t        *graph;
    CUgraphNode        *shown; /* what cuStreamGetCaptureInfo showed last */
    CUgraphEdgeData    *shown_edges;
};

static sim_capture_t *sim_captures; /* all open ones; guarded by sim_lock */

/* ---------------------------------------------------------- node sets */

void sim_set_clear(sim_node_set_t *set)
{
    free(set->nodes);
    memset(set, 0, sizeof(*set));
}

void sim_set_add(sim_node_set_t *set, sim_node_t *node)
{
    size_t i;

    for (i = 0; i < set->num; ++i) {
        if (set->nodes[i] == node) {
            return;
        }
    }
    set->nodes             = sim_grow(set->nodes, set->num, &set->max,
                                      sizeof(sim_node_t *));
    set->nodes[set->num++] = node;
}

void sim_set_copy(sim_node_set_t *set, const sim_node_set_t *from)
{
    size_t i;

    sim_set_clear(set);
    for (i = 0; i < from->num; ++i) {
        sim_set_add(set, from->nodes[i]);
    }
}

/* ---------------------------------------------------------- life */

static sim_capture_t *sim_capture_find(uint64_t uid)
{
    sim_capture_t *capture;

    for (capture = sim_captures; capture != NULL; capture = capture->next) {
        if (capture->uid == uid) {
            return capture;
        }
    }
    return NULL;
}

/* Takes all streams out of a capture and forgets it. Its graph stays. */
static void sim_capture_close(sim_capture_t *capture)
{
    sim_capture_t **place;
    size_t          i;

    for (i = 0; i < sim_handle_slots(SIM_KIND_CTX); ++i) {
        sim_ctx_t    *ctx = sim_handle_at(SIM_KIND_CTX, i);
        sim_stream_t *stream;

        for (stream = (ctx != NULL) ? ctx->streams : NULL; stream != NULL;
             stream = stream->next) {
            if (stream->capture == capture) {
                stream->capture = NULL;
                sim_set_clear(&stream->tails);
            }
        }
    }
    for (place = &sim_captures; *place != capture; place = &(*place)->next) {
    }
    *place = capture->next;
    free(capture->shown);
    free(capture->shown_edges);
    free(capture);
}

void sim_capture_stream_end(sim_stream_t *stream)
{
    sim_capture_t *capture = stream->capture;

    if (capture == NULL) {
        return;
    }
    capture->is_invalid = true;
    stream->capture     = NULL;
    sim_set_clear(&stream->tails);
    if (capture->origin == stream) {
        capture->graph->capturing = false;
        sim_graph_release(capture->graph);
        sim_capture_close(capture);
    }
}

/* ---------------------------------------------------------- refusing */

CUresult sim_capture_check_unsafe(void)
{
    const sim_thread_t *thread = sim_thread();
    sim_capture_t      *capture;
    CUresult            status = CUDA_SUCCESS;

    if (thread->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_SUCCESS;
    }
    for (capture = sim_captures; capture != NULL; capture = capture->next) {
        bool own    = (capture->thread == thread->uid) &&
                      (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED);
        bool global = (thread->capture_mode ==
                       CU_STREAM_CAPTURE_MODE_GLOBAL) &&
                      (capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL);

        if (own || global) {
            capture->is_invalid = true;
            status              = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    return status;
}

CUresult sim_capture_check_legacy(sim_stream_t *stream)
{
    sim_stream_t *other;
    CUresult      status = CUDA_SUCCESS;

    if (stream->ctx->legacy != stream) {
        return CUDA_SUCCESS;
    }
    for (other = stream->ctx->streams; other != NULL; other = other->next) {
        if ((other->capture != NULL) &&
            !(other->flags & CU_STREAM_NON_BLOCKING)) {
            other->capture->is_invalid = true;
            status                     = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    }
    return status;
}

CUresult sim_capture_check_ctx(sim_ctx_t *ctx)
{
    sim_stream_t *stream;
    CUresult      status = CUDA_SUCCESS;

    for (stream = ctx->streams; stream != NULL; stream = stream->next) {
        if (stream->capture != NULL) {
            status = sim_capture_refuse(stream);
        }
    }
    return (status != CUDA_SUCCESS) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED :
                                      sim_capture_check_unsafe();
}

CUresult sim_capture_refuse(sim_stream_t *stream)
{
    stream->capture->is_invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* ---------------------------------------------------------- capturing */

CUresult sim_capture_op(sim_stream_t *stream, sim_op_t *op)
{
    sim_node_t *node;
    size_t      i;

    if (stream->capture->is_invalid) {
        sim_op_release(op);
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    if (op == NULL) {
        return CUDA_SUCCESS;
    }

    node = sim_graph_add(stream->capture->graph, op);
    for (i = 0; i < stream->tails.num; ++i) {
        sim_node_depend(node, stream->tails.nodes[i], NULL);
    }
    sim_set_clear(&stream->tails);
    sim_set_add(&stream->tails, node);
    return CUDA_SUCCESS;
}

CUresult sim_capture_record(sim_stream_t *stream, sim_event_t *event)
{
    if (stream->capture->is_invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    event->capture_uid = stream->capture->uid;
    sim_set_copy(&event->tails, &stream->tails);
    return CUDA_SUCCESS;
}

bool sim_capture_has_event(const sim_event_t *event)
{
    return (event->capture_uid != 0) &&
           (sim_capture_find(event->capture_uid) != NULL);
}

CUresult sim_capture_wait(sim_stream_t *stream, sim_event_t *event)
{
    sim_capture_t *capture = sim_capture_find(event->capture_uid);
    size_t         i;

    if (capture == NULL) {
        if (event->record == NULL) {
            return CUDA_SUCCESS;
        }
        stream->capture->is_invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    } else if (capture->is_invalid ||
               ((stream->capture != NULL) && stream->capture->is_invalid)) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    } else if (stream->ctx->legacy == stream) {
        capture->is_invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    } else if ((stream->capture != NULL) && (stream->capture != capture)) {
        stream->capture->is_invalid = true;
        capture->is_invalid         = true;
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }

    stream->capture = capture;
    for (i = 0; i < event->tails.num; ++i) {
        sim_set_add(&stream->tails, event->tails.nodes[i]);
    }
    return CUDA_SUCCESS;
}

/* ---------------------------------------------------------- entries */

static CUresult sim_capture_begin(CUstream handle, int twin,
                                  CUstreamCaptureMode mode)
{
    sim_stream_t  *stream;
    sim_capture_t *capture;
    CUresult       status = sim_stream_find(handle, twin, &stream);

    if (status != CUDA_SUCCESS) {
        return status;
    } else if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if (stream->ctx->legacy == stream) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    } else if (stream->capture != NULL) {
        stream->capture->is_invalid = true;
        return CUDA_ERROR_ILLEGAL_STATE;
    }

    capture                   = sim_alloc(sizeof(*capture));
    capture->uid              = sim_uid();
    capture->thread           = sim_thread()->uid;
    capture->mode             = mode;
    capture->origin           = stream;
    capture->graph            = sim_graph_new();
    capture->graph->capturing = true;
    capture->next             = sim_captures;
    sim_captures              = capture;
    stream->capture           = capture;
    return CUDA_SUCCESS;
}
SIM_ENTRY_PTSZ(cuStreamBeginCapture, (CUstream hStream), SIM_CTX,
               sim_capture_begin(hStream, twin,
                                 CU_STREAM_CAPTURE_MODE_GLOBAL))
SIM_ENTRY_PTSZ(cuStreamBeginCapture_v2,
               (CUstream hStream, CUstreamCaptureMode mode), SIM_CTX,
               sim_capture_begin(hStream, twin, mode))

static void sim_capture_mark(const sim_node_t *node, bool *seen)
{
    size_t i;

    if (seen[node->index]) {
        return;
    }
    seen[node->index] = true;
    for (i = 0; i < node->num_in; ++i) {
        sim_capture_mark(node->in[i].node, seen);
    }
}

/* Whether all that other streams captured comes before the origin's end. */
static bool sim_capture_is_joined(const sim_capture_t *capture)
{
    bool  *seen = sim_alloc(capture->graph->num_nodes * sizeof(bool));
    bool   ok   = true;
    size_t i, k;

    for (i = 0; i < capture->origin->tails.num; ++i) {
        sim_capture_mark(capture->origin->tails.nodes[i], seen);
    }
    for (i = 0; i < sim_handle_slots(SIM_KIND_CTX); ++i) {
        sim_ctx_t    *ctx = sim_handle_at(SIM_KIND_CTX, i);
        sim_stream_t *stream;

        for (stream = (ctx != NULL) ? ctx->streams : NULL; stream != NULL;
             stream = stream->next) {
            for (k = 0; (stream->capture == capture) &&
                        (k < stream->tails.num); ++k) {
                ok = ok && seen[stream->tails.nodes[k]->index];
            }
        }
    }
    free(seen);
    return ok;
}

static CUresult sim_capture_end(CUstream handle, int twin, CUgraph *graph_p)
{
    sim_stream_t  *stream;
    sim_capture_t *capture;
    sim_graph_t   *graph;
    CUresult       status = sim_stream_find(handle, twin, &stream);

    if (status != CUDA_SUCCESS) {
        return status;
    } else if (graph_p == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    capture = stream->capture;
    if (capture == NULL) {
        return CUDA_ERROR_ILLEGAL_STATE;
    } else if ((capture->thread != sim_thread()->uid) &&
               (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED)) {
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    } else if (capture->origin != stream) {
        capture->is_invalid = true;
        return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    }

    status = capture->is_invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED :
             !sim_capture_is_joined(capture) ?
             CUDA_ERROR_STREAM_CAPTURE_UNJOINED : CUDA_SUCCESS;
    graph            = capture->graph;
    graph->capturing = false;
    sim_capture_close(capture);
    *graph_p = NULL;
    if (status == CUDA_SUCCESS) {
        *graph_p = graph->handle;
    } else {
        sim_graph_release(graph);
    }
    return status;
}
SIM_ENTRY_PTSZ(cuStreamEndCapture, (CUstream hStream, CUgraph *phGraph),
               SIM_CTX, sim_capture_end(hStream, twin, phGraph))

static CUstreamCaptureStatus sim_capture_status(const sim_stream_t *stream)
{
    return (stream->capture == NULL) ? CU_STREAM_CAPTURE_STATUS_NONE :
           stream->capture->is_invalid ?
           CU_STREAM_CAPTURE_STATUS_INVALIDATED :
           CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

/* Looks without touching: the legacy stream says so if it may not be used. */
static CUresult sim_capture_look(CUstream handle, int twin,
                                 sim_stream_t **stream)
{
    sim_stream_t *other;
    CUresult      status = sim_stream_find(handle, twin, stream);

    if ((status != CUDA_SUCCESS) || ((*stream)->ctx->legacy != *stream)) {
        return status;
    }
    for (other = (*stream)->ctx->streams; other != NULL;
         other = other->next) {
        if ((other->capture != NULL) &&
            !(other->flags & CU_STREAM_NON_BLOCKING)) {
            return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    }
    return CUDA_SUCCESS;
}

static CUresult sim_capture_is(CUstream handle, int twin,
                               CUstreamCaptureStatus *out)
{
    sim_stream_t *stream;
    CUresult      status = sim_capture_look(handle, twin, &stream);

    if (status == CUDA_SUCCESS) {
        *out = sim_capture_status(stream);
    }
    return status;
}
SIM_ENTRY_PTSZ(cuStreamIsCapturing,
               (CUstream hStream, CUstreamCaptureStatus *captureStatus),
               SIM_CTX, sim_capture_is(hStream, twin, captureStatus))

/* Where cuStreamGetCaptureInfo stores; all but status may be NULL. */
typedef struct {
    CUstreamCaptureStatus  *status;
    cuuint64_t             *id;
    CUgraph                *graph;
    const CUgraphNode     **deps;
    const CUgraphEdgeData **edges;
    size_t                 *num;
} sim_capture_out_t;

static CUresult sim_capture_info(CUstream handle, int twin,
                                 sim_capture_out_t out)
{
    sim_stream_t  *stream;
    sim_capture_t *capture;
    CUresult       status = sim_capture_look(handle, twin, &stream);
    size_t         i, num;

    if (status != CUDA_SUCCESS) {
        return status;
    } else if (out.status == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out.status = sim_capture_status(stream);
    if (*out.status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
        return CUDA_SUCCESS;
    }

    capture = stream->capture;
    num     = stream->tails.num;
    free(capture->shown);
    free(capture->shown_edges);
    capture->shown       = sim_alloc(num * sizeof(CUgraphNode));
    capture->shown_edges = sim_alloc(num * sizeof(CUgraphEdgeData));
    for (i = 0; i < num; ++i) {
        capture->shown[i] = stream->tails.nodes[i]->handle;
    }
    if (out.id != NULL) {
        *out.id = capture->uid;
    }
    if (out.graph != NULL) {
        *out.graph = capture->graph->handle;
    }
    if (out.deps != NULL) {
        *out.deps = capture->shown;
    }
    if (out.edges != NULL) {
        *out.edges = capture->shown_edges;
    }
    if (out.num != NULL) {
        *out.num = num;
    }
    return CUDA_SUCCESS;
}

SIM_ENTRY_PTSZ(cuStreamGetCaptureInfo,
               (CUstream hStream, CUstreamCaptureStatus *status_out,
                cuuint64_t *id_out), SIM_CTX,
               sim_capture_info(hStream, twin,
                                (sim_capture_out_t){.status = status_out,
                                                    .id     = id_out}))
SIM_ENTRY_PTSZ(cuStreamGetCaptureInfo_v2,
               (CUstream hStream, CUstreamCaptureStatus *status_out,
                cuuint64_t *id_out, CUgraph *graph_out,
                const CUgraphNode **dependencies_out,
                size_t *numDependencies_out), SIM_CTX,
               sim_capture_info(hStream, twin,
                                (sim_capture_out_t){
                                    status_out, id_out, graph_out,
                                    dependencies_out, NULL,
                                    numDependencies_out}))
SIM_ENTRY_PTSZ(cuStreamGetCaptureInfo_v3,
               (CUstream hStream, CUstreamCaptureStatus *status_out,
                cuuint64_t *id_out, CUgraph *graph_out,
                const CUgraphNode **dependencies_out,
                const CUgraphEdgeData **edgeData_out,
                size_t *numDependencies_out), SIM_CTX,
               sim_capture_info(hStream, twin,
                                (sim_capture_out_t){
                                    status_out, id_out, graph_out,
                                    dependencies_out, edgeData_out,
                                    numDependencies_out}))

static CUresult sim_capture_update(CUstream handle, int twin,
                                   const CUgraphNode *deps, size_t num,
                                   unsigned flags)
{
    sim_stream_t *stream;
    CUresult      status = sim_stream_find(handle, twin, &stream);
    size_t        i;

    if (status != CUDA_SUCCESS) {
        return status;
    } else if (stream->capture == NULL) {
        return CUDA_ERROR_ILLEGAL_STATE;
    } else if (((num > 0) && (deps == NULL)) ||
               (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (i = 0; i < num; ++i) {
        sim_node_t *node = sim_node_find(deps[i]);

        if ((node == NULL) || (node->graph != stream->capture->graph)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) {
        sim_set_clear(&stream->tails);
    }
    for (i = 0; i < num; ++i) {
        sim_set_add(&stream->tails, sim_node_find(deps[i]));
    }
    return CUDA_SUCCESS;
}
SIM_ENTRY_PTSZ(cuStreamUpdateCaptureDependencies,
               (CUstream hStream, CUgraphNode *dependencies,
                size_t numDependencies, unsigned int flags), SIM_CTX,
               sim_capture_update(hStream, twin, dependencies,
                                  numDependencies, flags))
SIM_ENTRY_PTSZ(cuStreamUpdateCaptureDependencies_v2,
               (CUstream hStream, CUgraphNode *dependencies,
                const CUgraphEdgeData *dependencyData,
                size_t numDependencies, unsigned int flags), SIM_CTX,
               ((void)dependencyData,
                sim_capture_update(hStream, twin, dependencies,
                                   numDependencies, flags)))

static CUresult sim_capture_exchange(CUstreamCaptureMode *mode)
{
    sim_thread_t       *thread = sim_thread();
    CUstreamCaptureMode old    = thread->capture_mode;

    if ((mode == NULL) ||
        ((unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    thread->capture_mode = *mode;
    *mode                = old;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode *mode), 0,
          sim_capture_exchange(mode))
