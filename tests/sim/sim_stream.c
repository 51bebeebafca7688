/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and events: which task depends on which.
 *
 * Work of a stream follows the stream's earlier work. Work of the legacy
 * stream also follows the work of all blocking streams of its context, and
 * their work follows that of the legacy stream.
 */
#include "sim.h"

#include <stdlib.h>

/* ---------------------------------------------------------- streams */

static bool sim_stream_is_legacy(const sim_stream_t *stream)
{
    return stream->ctx->legacy == stream;
}

static bool sim_stream_is_blocking(const sim_stream_t *stream)
{
    return !sim_stream_is_legacy(stream) &&
           !(stream->flags & CU_STREAM_NON_BLOCKING);
}

sim_stream_t *sim_stream_make(sim_ctx_t *ctx, unsigned flags, int priority)
{
    sim_stream_t *stream = sim_alloc(sizeof(*stream));

    stream->uid      = sim_uid();
    stream->ctx      = ctx;
    stream->flags    = flags;
    stream->priority = priority;
    stream->next     = ctx->streams;
    ctx->streams     = stream;
    return stream;
}

static sim_stream_t *sim_stream_of_thread(sim_ctx_t *ctx)
{
    uint64_t      thread = sim_thread()->uid;
    sim_stream_t *stream;

    for (stream = ctx->streams; stream != NULL; stream = stream->next) {
        if (stream->thread == thread) {
            return stream;
        }
    }
    stream         = sim_stream_make(ctx, 0, 0);
    stream->thread = thread;
    stream->handle = CU_STREAM_PER_THREAD;
    return stream;
}

CUresult sim_stream_find(CUstream handle, int twin, sim_stream_t **stream_p)
{
    sim_ctx_t *ctx;
    CUresult   status;

    if ((uintptr_t)handle > (uintptr_t)CU_STREAM_PER_THREAD) {
        sim_stream_t *stream = sim_handle_get(SIM_KIND_STREAM, handle);

        if (stream == NULL) {
            return CUDA_ERROR_INVALID_HANDLE;
        }
        *stream_p = stream;
        return CUDA_SUCCESS;
    }

    status = sim_ctx_current(&ctx);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    *stream_p = ((handle == CU_STREAM_PER_THREAD) ||
                 ((handle == NULL) && twin)) ?
                sim_stream_of_thread(ctx) : ctx->legacy;
    return CUDA_SUCCESS;
}

/* Takes a stream out of its context; its work goes on. */
static void sim_stream_free(sim_stream_t *stream)
{
    sim_ctx_t     *ctx = stream->ctx;
    sim_stream_t **place;

    sim_capture_stream_end(stream);
    if (ctx->active && sim_stream_is_blocking(stream) &&
        !sim_task_is_done(stream->last)) {
        ctx->orphans = sim_grow(ctx->orphans, ctx->num_orphans,
                                &ctx->max_orphans, sizeof(sim_task_t *));
        ctx->orphans[ctx->num_orphans++] = sim_task_ref(stream->last);
    }

    for (place = &ctx->streams; *place != stream; place = &(*place)->next) {
    }
    *place = stream->next;
    if ((uintptr_t)stream->handle > (uintptr_t)CU_STREAM_PER_THREAD) {
        sim_handle_free(SIM_KIND_STREAM, stream->handle);
    }
    sim_task_unref(stream->last);
    sim_set_clear(&stream->tails);
    free(stream);
}

static void sim_event_free(sim_event_t *event)
{
    sim_handle_free(SIM_KIND_EVENT, event->handle);
    sim_task_unref(event->record);
    sim_set_clear(&event->tails);
    free(event);
}

void sim_streams_destroy(sim_ctx_t *ctx)
{
    size_t i;

    while (ctx->streams != NULL) {
        sim_stream_free(ctx->streams);
    }
    ctx->legacy = NULL;
    for (i = 0; i < sim_handle_slots(SIM_KIND_EVENT); ++i) {
        sim_event_t *event = sim_handle_at(SIM_KIND_EVENT, i);

        if ((event != NULL) && (event->ctx_uid == ctx->uid)) {
            sim_event_free(event);
        }
    }
}

void sim_stream_thread_end(uint64_t thread)
{
    size_t        i;
    sim_stream_t *stream, *next;

    for (i = 0; i < sim_handle_slots(SIM_KIND_CTX); ++i) {
        sim_ctx_t *ctx = sim_handle_at(SIM_KIND_CTX, i);

        for (stream = (ctx != NULL) ? ctx->streams : NULL; stream != NULL;
             stream = next) {
            next = stream->next;
            if (stream->thread == thread) {
                sim_stream_free(stream);
            }
        }
    }
}

/* ---------------------------------------------------------- order */

static void sim_stream_after_blocking(sim_task_t *task, sim_ctx_t *ctx)
{
    sim_stream_t *stream;
    size_t        i;

    for (stream = ctx->streams; stream != NULL; stream = stream->next) {
        if (sim_stream_is_blocking(stream)) {
            sim_task_after(task, stream->last);
        }
    }
    for (i = 0; i < ctx->num_orphans; ++i) {
        sim_task_after(task, ctx->orphans[i]);
        sim_task_unref(ctx->orphans[i]);
    }
    /* Whoever comes later in the legacy stream comes after this task. */
    ctx->num_orphans = 0;
}

sim_task_t *sim_stream_task(sim_stream_t *stream, sim_op_t *op)
{
    sim_task_t *task = sim_task_new(op, stream->ctx->uid, stream->uid);

    sim_task_after(task, stream->last);
    if (sim_stream_is_legacy(stream)) {
        sim_stream_after_blocking(task, stream->ctx);
    } else if (sim_stream_is_blocking(stream)) {
        sim_task_after(task, stream->ctx->legacy->last);
    }
    sim_task_set(&stream->last, task);
    return task;
}

CUresult sim_stream_submit(sim_stream_t *stream, sim_op_t *op,
                           sim_task_t **task_p)
{
    sim_task_t *task;
    CUresult    status;

    if (task_p != NULL) {
        *task_p = NULL;
    }
    if (stream->capture != NULL) {
        return sim_capture_op(stream, op);
    }
    status = sim_capture_check_legacy(stream);
    if (status != CUDA_SUCCESS) {
        sim_op_release(op);
        return status;
    }

    sim_time_submit(stream, op);
    task = sim_stream_task(stream, op);
    sim_task_submit(task);
    if (task_p != NULL) {
        *task_p = task;
    } else {
        sim_task_unref(task);
    }
    return CUDA_SUCCESS;
}

void sim_stream_wait(sim_stream_t *stream)
{
    sim_task_t *join;

    if (!sim_stream_is_legacy(stream)) {
        sim_time_wait(stream);
        if (stream->last != NULL) {
            sim_task_wait(stream->last);
        }
        return;
    }

    sim_time_wait(NULL);
    /* The legacy stream is done when a task in it would be. */
    join = sim_stream_task(stream, NULL);
    sim_task_submit(join);
    sim_task_wait(join);
    sim_task_unref(join);
}

static bool sim_stream_is_done(const sim_stream_t *stream)
{
    const sim_stream_t *other;
    size_t              i;

    if (!sim_task_is_done(stream->last)) {
        return false;
    } else if (!sim_stream_is_legacy(stream)) {
        return true;
    }
    for (other = stream->ctx->streams; other != NULL; other = other->next) {
        if (sim_stream_is_blocking(other) && !sim_task_is_done(other->last)) {
            return false;
        }
    }
    for (i = 0; i < stream->ctx->num_orphans; ++i) {
        if (!sim_task_is_done(stream->ctx->orphans[i])) {
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------- entries */

static CUresult sim_stream_create(CUstream *handle, unsigned flags,
                                  int priority)
{
    sim_ctx_t    *ctx;
    sim_stream_t *stream;
    CUresult      status = sim_ctx_current(&ctx);

    if (status != CUDA_SUCCESS) {
        return status;
    } else if ((handle == NULL) ||
               (flags & ~(unsigned)CU_STREAM_NON_BLOCKING)) {
        return CUDA_ERROR_INVALID_VALUE;
    }

    priority       = (priority > 0) ? 0 : (priority < -5) ? -5 : priority;
    stream         = sim_stream_make(ctx, flags, priority);
    stream->handle = sim_handle_new(SIM_KIND_STREAM, stream);
    *handle        = stream->handle;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuStreamCreate, (CUstream *phStream, unsigned int Flags), SIM_CTX,
          sim_stream_create(phStream, Flags, 0))
SIM_ENTRY(cuStreamCreateWithPriority,
          (CUstream *phStream, unsigned int flags, int priority), SIM_CTX,
          sim_stream_create(phStream, flags, priority))

static CUresult sim_stream_destroy(CUstream handle)
{
    sim_stream_t *stream = sim_handle_get(SIM_KIND_STREAM, handle);

    if (stream == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    sim_stream_free(stream);
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuStreamDestroy, (CUstream hStream), 0, sim_stream_destroy(hStream))
SIM_ENTRY(cuStreamDestroy_v2, (CUstream hStream), 0,
          sim_stream_destroy(hStream))

/* The stream, if the host may look at its progress now. */
static CUresult sim_stream_look(CUstream handle, int twin,
                                sim_stream_t **stream)
{
    CUresult status = sim_stream_find(handle, twin, stream);

    if (status != CUDA_SUCCESS) {
        return status;
    } else if ((*stream)->capture != NULL) {
        return sim_capture_refuse(*stream);
    }
    status = sim_capture_check_legacy(*stream);
    return (status != CUDA_SUCCESS) ? status : sim_capture_check_unsafe();
}

static CUresult sim_stream_query(CUstream handle, int twin)
{
    sim_stream_t *stream;
    CUresult      status = sim_stream_look(handle, twin, &stream);

    if (status != CUDA_SUCCESS) {
        return status;
    }
    return sim_stream_is_done(stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
SIM_ENTRY_PTSZ(cuStreamQuery, (CUstream hStream), SIM_CTX,
               sim_stream_query(hStream, twin))

static CUresult sim_stream_synchronize(CUstream handle, int twin)
{
    sim_stream_t *stream;
    CUresult      status = sim_stream_look(handle, twin, &stream);

    if (status == CUDA_SUCCESS) {
        sim_stream_wait(stream);
    }
    return status;
}
SIM_ENTRY_PTSZ(cuStreamSynchronize, (CUstream hStream), SIM_CTX,
               sim_stream_synchronize(hStream, twin))

/* What can be asked of a stream. */
typedef struct {
    int                *priority;
    unsigned           *flags;
    unsigned long long *id;
    CUcontext          *ctx;
    CUdevice           *device;
} sim_stream_ask_t;

static CUresult sim_stream_ask(CUstream handle, int twin,
                               sim_stream_ask_t ask)
{
    sim_stream_t *stream;
    CUresult      status = sim_stream_find(handle, twin, &stream);

    if (status != CUDA_SUCCESS) {
        return status;
    }
    if (ask.priority != NULL) {
        *ask.priority = stream->priority;
    }
    if (ask.flags != NULL) {
        *ask.flags = stream->flags;
    }
    if (ask.id != NULL) {
        *ask.id = stream->uid;
    }
    if (ask.ctx != NULL) {
        *ask.ctx = stream->ctx->handle;
    }
    if (ask.device != NULL) {
        *ask.device = stream->ctx->device;
    }
    return CUDA_SUCCESS;
}

#define SIM_ASK(_member, _place) \
    sim_stream_ask(hStream, twin, (sim_stream_ask_t){._member = _place})

SIM_ENTRY_PTSZ(cuStreamGetPriority, (CUstream hStream, int *priority), 0,
               SIM_ASK(priority, priority))
SIM_ENTRY_PTSZ(cuStreamGetFlags, (CUstream hStream, unsigned int *flags), 0,
               SIM_ASK(flags, flags))
SIM_ENTRY_PTSZ(cuStreamGetId,
               (CUstream hStream, unsigned long long *streamId), 0,
               SIM_ASK(id, streamId))
SIM_ENTRY_PTSZ(cuStreamGetCtx, (CUstream hStream, CUcontext *pctx), 0,
               SIM_ASK(ctx, pctx))
SIM_ENTRY_PTSZ(cuStreamGetDevice, (CUstream hStream, CUdevice *device), 0,
               SIM_ASK(device, device))

static CUresult sim_stream_ask_green(CUstream hStream, int twin,
                                     CUcontext *ctx, CUgreenCtx *green)
{
    if (green != NULL) {
        *green = NULL;
    }
    return SIM_ASK(ctx, ctx);
}
SIM_ENTRY_PTSZ(cuStreamGetCtx_v2,
               (CUstream hStream, CUcontext *pCtx, CUgreenCtx *pGreenCtx), 0,
               sim_stream_ask_green(hStream, twin, pCtx, pGreenCtx))

static bool sim_stream_attr_is_known(CUstreamAttrID attr)
{
    return (attr == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW) ||
           (attr == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY) ||
           (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY) ||
           (attr == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) ||
           (attr == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN);
}

static CUresult sim_stream_attr(CUstream handle, int twin,
                                CUstreamAttrID attr, CUstreamAttrValue *get,
                                const CUstreamAttrValue *set)
{
    sim_stream_t *stream;
    CUresult      status = sim_stream_find(handle, twin, &stream);

    if (status != CUDA_SUCCESS) {
        return status;
    } else if (!sim_stream_attr_is_known(attr) ||
               ((get == NULL) && (set == NULL))) {
        return CUDA_ERROR_INVALID_VALUE;
    }

    if (set != NULL) {
        stream->attrs.value[attr] = *set;
        stream->attrs.mask       |= 1u << attr;
        if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
            stream->priority = set->priority;
        }
    } else {
        *get = stream->attrs.value[attr];
        if (attr == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
            get->priority = stream->priority;
        }
    }
    return CUDA_SUCCESS;
}
SIM_ENTRY_PTSZ(cuStreamGetAttribute,
               (CUstream hStream, CUstreamAttrID attr,
                CUstreamAttrValue *value), 0,
               sim_stream_attr(hStream, twin, attr, value, NULL))
SIM_ENTRY_PTSZ(cuStreamSetAttribute,
               (CUstream hStream, CUstreamAttrID attr,
                const CUstreamAttrValue *value), 0,
               sim_stream_attr(hStream, twin, attr, NULL, value))

static CUresult sim_stream_copy_attrs(CUstream to, CUstream from, int twin)
{
    sim_stream_t *dst, *src;
    CUresult      status = sim_stream_find(to, twin, &dst);

    if (status == CUDA_SUCCESS) {
        status = sim_stream_find(from, twin, &src);
    }
    if (status == CUDA_SUCCESS) {
        dst->attrs = src->attrs;
    }
    return status;
}
SIM_ENTRY_PTSZ(cuStreamCopyAttributes, (CUstream dst, CUstream src), 0,
               sim_stream_copy_attrs(dst, src, twin))

static CUresult sim_stream_callback(CUstream handle, int twin,
                                    CUstreamCallback fn, void *data,
                                    unsigned flags)
{
    sim_stream_t *stream;
    sim_op_t     *op;
    CUresult      status = sim_stream_find(handle, twin, &stream);

    if (status != CUDA_SUCCESS) {
        return status;
    } else if ((fn == NULL) || (flags != 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if (stream->capture != NULL) {
        return sim_capture_refuse(stream);
    }

    op                  = sim_op_new(SIM_OP_CALLBACK, stream->ctx);
    op->callback.fn     = fn;
    op->callback.stream = handle;
    op->callback.data   = data;
    return sim_stream_submit(stream, op, NULL);
}
SIM_ENTRY_PTSZ(cuStreamAddCallback,
               (CUstream hStream, CUstreamCallback callback, void *userData,
                unsigned int flags), SIM_CTX,
               sim_stream_callback(hStream, twin, callback, userData, flags))

static CUresult sim_stream_host(CUstream handle, int twin, CUhostFn fn,
                                void *data)
{
    sim_stream_t *stream;
    sim_op_t     *op;
    CUresult      status = sim_stream_find(handle, twin, &stream);

    if (status != CUDA_SUCCESS) {
        return status;
    } else if (fn == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    op                = sim_op_new(SIM_OP_HOST, stream->ctx);
    op->host.fn       = fn;
    op->host.userData = data;
    return sim_stream_submit(stream, op, NULL);
}
SIM_ENTRY_PTSZ(cuLaunchHostFunc,
               (CUstream hStream, CUhostFn fn, void *userData), SIM_CTX,
               sim_stream_host(hStream, twin, fn, userData))

/* ---------------------------------------------------------- memory ops */

static CUresult sim_memop_check(const CUstreamBatchMemOpParams *op)
{
    CUdeviceptr address = op->waitValue.address;
    size_t      size;

    switch (op->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        size = 4;
        break;
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        size = 8;
        break;
    case CU_STREAM_MEM_OP_BARRIER:
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return ((address % size != 0) || (sim_mem_find(address) == NULL)) ?
           CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult sim_memops(CUstream handle, int twin, unsigned num,
                           const CUstreamBatchMemOpParams *ops)
{
    sim_stream_t *stream;
    sim_op_t     *op;
    unsigned      i;
    CUresult      status = sim_stream_find(handle, twin, &stream);

    if ((status == CUDA_SUCCESS) && ((ops == NULL) || (num > 256))) {
        status = CUDA_ERROR_INVALID_VALUE;
    }
    for (i = 0; (status == CUDA_SUCCESS) && (i < num); ++i) {
        status = sim_memop_check(&ops[i]);
    }
    /* One task each, so that a later wait does not hold up earlier writes. */
    for (i = 0; (status == CUDA_SUCCESS) && (i < num); ++i) {
        op             = sim_op_new(SIM_OP_MEMOPS, stream->ctx);
        op->memops.num = 1;
        op->memops.ops = sim_copy_of(&ops[i], sizeof(ops[i]));
        status         = sim_stream_submit(stream, op, NULL);
    }
    return status;
}

CUresult sim_memop(CUstream handle, int twin,
                   CUstreamBatchMemOpType operation, CUdeviceptr address,
                   uint64_t value, unsigned flags)
{
    CUstreamBatchMemOpParams op = {.waitValue = {.operation = operation}};

    op.waitValue.address = address;
    op.waitValue.value64 = value;
    op.waitValue.flags   = flags;
    return sim_memops(handle, twin, 1, &op);
}

#define SIM_MEMOP_ENTRY(_name, _type, _operation) \
    SIM_ENTRY_PTSZ(_name, \
                   (CUstream stream, CUdeviceptr addr, _type value, \
                    unsigned int flags), SIM_CTX, \
                   sim_memop(stream, twin, _operation, addr, value, flags))

SIM_MEMOP_ENTRY(cuStreamWriteValue32, cuuint32_t,
                CU_STREAM_MEM_OP_WRITE_VALUE_32)
SIM_MEMOP_ENTRY(cuStreamWriteValue32_v2, cuuint32_t,
                CU_STREAM_MEM_OP_WRITE_VALUE_32)
SIM_MEMOP_ENTRY(cuStreamWaitValue32, cuuint32_t,
                CU_STREAM_MEM_OP_WAIT_VALUE_32)
SIM_MEMOP_ENTRY(cuStreamWaitValue32_v2, cuuint32_t,
                CU_STREAM_MEM_OP_WAIT_VALUE_32)
SIM_MEMOP_ENTRY(cuStreamWriteValue64, cuuint64_t,
                CU_STREAM_MEM_OP_WRITE_VALUE_64)
SIM_MEMOP_ENTRY(cuStreamWriteValue64_v2, cuuint64_t,
                CU_STREAM_MEM_OP_WRITE_VALUE_64)
SIM_MEMOP_ENTRY(cuStreamWaitValue64, cuuint64_t,
                CU_STREAM_MEM_OP_WAIT_VALUE_64)
SIM_MEMOP_ENTRY(cuStreamWaitValue64_v2, cuuint64_t,
                CU_STREAM_MEM_OP_WAIT_VALUE_64)
SIM_ENTRY_PTSZ(cuStreamBatchMemOp,
               (CUstream stream, unsigned int count,
                CUstreamBatchMemOpParams *paramArray, unsigned int flags),
               SIM_CTX, (flags != 0) ? CUDA_ERROR_INVALID_VALUE :
               sim_memops(stream, twin, count, paramArray))
SIM_ENTRY_PTSZ(cuStreamBatchMemOp_v2,
               (CUstream stream, unsigned int count,
                CUstreamBatchMemOpParams *paramArray, unsigned int flags),
               SIM_CTX, (flags != 0) ? CUDA_ERROR_INVALID_VALUE :
               sim_memops(stream, twin, count, paramArray))

/* Plays the function of a newer driver that nobody has heard of. */
CUresult CUDAAPI cuSimUnknownWork(CUstream stream, CUdeviceptr address,
                                  unsigned value);
SIM_ENTRY(cuSimUnknownWork,
          (CUstream stream, CUdeviceptr address, unsigned value), SIM_CTX,
          sim_memop(stream, 0, CU_STREAM_MEM_OP_WRITE_VALUE_32, address,
                    value, 0))

/* ---------------------------------------------------------- events */

sim_event_t *sim_event_find(CUevent handle)
{
    return sim_handle_get(SIM_KIND_EVENT, handle);
}

void sim_event_record(sim_event_t *event, sim_task_t *task)
{
    event->capture_uid = 0;
    sim_set_clear(&event->tails);
    sim_task_set(&event->record, task);
}

static CUresult sim_event_create(CUevent *handle, unsigned flags)
{
    sim_ctx_t   *ctx;
    sim_event_t *event;
    CUresult     status = sim_ctx_current(&ctx);

    if (status != CUDA_SUCCESS) {
        return status;
    } else if ((handle == NULL) ||
               (flags & ~(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING |
                          CU_EVENT_INTERPROCESS)) ||
               ((flags & CU_EVENT_INTERPROCESS) &&
                !(flags & CU_EVENT_DISABLE_TIMING))) {
        return CUDA_ERROR_INVALID_VALUE;
    }

    event          = sim_alloc(sizeof(*event));
    event->uid     = sim_uid();
    event->ctx_uid = ctx->uid;
    event->flags   = flags;
    event->handle  = sim_handle_new(SIM_KIND_EVENT, event);
    *handle        = event->handle;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuEventCreate, (CUevent *phEvent, unsigned int Flags), SIM_CTX,
          sim_event_create(phEvent, Flags))

static CUresult sim_event_destroy(CUevent handle)
{
    sim_event_t *event = sim_event_find(handle);

    if (event == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    sim_event_free(event);
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuEventDestroy, (CUevent hEvent), 0, sim_event_destroy(hEvent))
SIM_ENTRY(cuEventDestroy_v2, (CUevent hEvent), 0, sim_event_destroy(hEvent))

static CUresult sim_event_capture_external(sim_stream_t *stream,
                                           sim_op_kind_t kind,
                                           const sim_event_t *event)
{
    sim_op_t *op = sim_op_new(kind, stream->ctx);

    op->event.handle = event->handle;
    op->event.uid    = event->uid;
    return sim_capture_op(stream, op);
}

static CUresult sim_event_do_record(CUevent handle, CUstream stream_handle,
                                    int twin, unsigned flags)
{
    sim_event_t  *event = sim_event_find(handle);
    sim_stream_t *stream;
    sim_task_t   *task;
    CUresult      status = sim_stream_find(stream_handle, twin, &stream);

    if (status != CUDA_SUCCESS) {
        return status;
    } else if ((event == NULL) || (event->ctx_uid != stream->ctx->uid)) {
        return CUDA_ERROR_INVALID_HANDLE;
    } else if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if (stream->capture != NULL) {
        return (flags & CU_EVENT_RECORD_EXTERNAL) ?
               sim_event_capture_external(stream, SIM_OP_RECORD, event) :
               sim_capture_record(stream, event);
    }

    status = sim_stream_submit(stream, NULL, &task);
    if (status == CUDA_SUCCESS) {
        sim_event_record(event, task);
        sim_task_unref(task);
    }
    return status;
}
SIM_ENTRY_PTSZ(cuEventRecord, (CUevent hEvent, CUstream hStream), SIM_CTX,
               sim_event_do_record(hEvent, hStream, twin, 0))
SIM_ENTRY_PTSZ(cuEventRecordWithFlags,
               (CUevent hEvent, CUstream hStream, unsigned int flags),
               SIM_CTX, sim_event_do_record(hEvent, hStream, twin, flags))

static CUresult sim_event_record_ctx(CUcontext ctx_handle, CUevent handle)
{
    sim_event_t *event = sim_event_find(handle);
    sim_ctx_t   *ctx;
    sim_task_t  *task;
    CUresult     status = sim_ctx_get(ctx_handle, &ctx);

    if (status != CUDA_SUCCESS) {
        return status;
    } else if ((event == NULL) || (event->ctx_uid != ctx->uid)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    status = sim_capture_check_ctx(ctx);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    task = sim_task_new(NULL, ctx->uid, sim_uid());
    sim_task_after_all(task);
    sim_event_record(event, task);
    sim_task_submit(task);
    sim_task_unref(task);
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuCtxRecordEvent, (CUcontext hCtx, CUevent hEvent), 0,
          sim_event_record_ctx(hCtx, hEvent))

static CUresult sim_stream_wait_event(CUstream stream_handle, int twin,
                                      CUevent handle, unsigned flags)
{
    sim_event_t  *event = sim_event_find(handle);
    sim_stream_t *stream;
    sim_task_t   *task;
    CUresult      status = sim_stream_find(stream_handle, twin, &stream);

    if (status != CUDA_SUCCESS) {
        return status;
    } else if (event == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    } else if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if ((stream->capture != NULL) &&
               (flags & CU_EVENT_WAIT_EXTERNAL)) {
        return sim_event_capture_external(stream, SIM_OP_WAIT, event);
    } else if ((stream->capture != NULL) || sim_capture_has_event(event)) {
        return sim_capture_wait(stream, event);
    }

    status = sim_capture_check_legacy(stream);
    if (status == CUDA_SUCCESS) {
        task = sim_stream_task(stream, NULL);
        sim_task_after(task, event->record);
        sim_task_submit(task);
        sim_task_unref(task);
    }
    return status;
}
SIM_ENTRY_PTSZ(cuStreamWaitEvent,
               (CUstream hStream, CUevent hEvent, unsigned int Flags),
               SIM_CTX, sim_stream_wait_event(hStream, twin, hEvent, Flags))

/* The event, if the host may look at it now. */
static CUresult sim_event_look(CUevent handle, sim_event_t **event)
{
    *event = sim_event_find(handle);
    if (*event == NULL) {
        return CUDA_ERROR_INVALID_HANDLE;
    } else if (sim_capture_has_event(*event)) {
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    return sim_capture_check_unsafe();
}

static CUresult sim_event_query(CUevent handle)
{
    sim_event_t *event;
    CUresult     status = sim_event_look(handle, &event);

    if (status != CUDA_SUCCESS) {
        return status;
    }
    return sim_task_is_done(event->record) ? CUDA_SUCCESS :
                                             CUDA_ERROR_NOT_READY;
}
SIM_ENTRY(cuEventQuery, (CUevent hEvent), 0, sim_event_query(hEvent))

static CUresult sim_event_synchronize(CUevent handle)
{
    sim_event_t *event;
    CUresult     status = sim_event_look(handle, &event);

    if ((status == CUDA_SUCCESS) && (event->record != NULL)) {
        sim_task_wait(event->record);
    }
    return status;
}
SIM_ENTRY(cuEventSynchronize, (CUevent hEvent), 0,
          sim_event_synchronize(hEvent))

static CUresult sim_event_elapsed(float *ms, CUevent start, CUevent end)
{
    const sim_event_t *first = sim_event_find(start);
    const sim_event_t *last  = sim_event_find(end);

    if ((first == NULL) || (last == NULL) || (first->record == NULL) ||
        (last->record == NULL) || (first->ctx_uid != last->ctx_uid) ||
        ((first->flags | last->flags) & CU_EVENT_DISABLE_TIMING)) {
        return CUDA_ERROR_INVALID_HANDLE;
    } else if (ms == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if (!sim_task_is_done(first->record) ||
               !sim_task_is_done(last->record)) {
        return CUDA_ERROR_NOT_READY;
    }
    *ms = (float)((double)last->record->done_clock -
                  (double)first->record->done_clock) / 1e6f;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuEventElapsedTime,
          (float *pMilliseconds, CUevent hStart, CUevent hEnd), 0,
          sim_event_elapsed(pMilliseconds, hStart, hEnd))
SIM_ENTRY(cuEventElapsedTime_v2,
          (float *pMilliseconds, CUevent hStart, CUevent hEnd), 0,
          sim_event_elapsed(pMilliseconds, hStart, hEnd))
