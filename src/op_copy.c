/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous copies as ops: between memory of one device and pinned host
 * memory, in one to three dimensions, and arrays.
 *
 * Pageable memory, managed memory and memory of other devices are barriers:
 * there the host takes part in the copy, or a node could not hold it.
 */
#define _GNU_SOURCE
#include "op.h"

#include <string.h>

/* Host memory that only its owner knows: staged. */
#define PAGEABLE ((CUmemorytype)0)

static void set_end(cgs_copy_end_t *end, CUmemorytype type, uint64_t address)
{
    end->type    = type;
    end->address = address;
}

/* Nothing to copy is no work: such a call leaves no trace in a graph. */
static void refuse_empty(cgs_call_t *call)
{
    const cgs_copy_t *copy = &call->copy.copy;

    if ((copy->width_bytes == 0) || (copy->height == 0) ||
        (copy->depth == 0)) {
        call->refused = true;
        call->reason  = "a copy of no bytes";
    }
}

void cgs_call_copy(cgs_call_t *call, cgs_copy_api_t api, CUmemorytype dst_type,
                   uint64_t dst, CUmemorytype src_type, uint64_t src,
                   size_t bytes)
{
    cgs_copy_t *copy = &call->copy.copy;

    call->kind        = CGS_OP_COPY;
    copy->api         = api;
    copy->width_bytes = bytes;
    copy->height      = 1;
    copy->depth       = 1;
    set_end(&copy->dst, dst_type, dst);
    set_end(&copy->src, src_type, src);
    refuse_empty(call);
}

/* The member that holds an end's address depends on its type. */
static void fill_end(cgs_copy_end_t *end, CUmemorytype type, const void *host,
                     CUdeviceptr device, CUarray array)
{
    switch (type) {
    case CU_MEMORYTYPE_HOST:
        set_end(end, type, (uint64_t)host);
        break;
    case CU_MEMORYTYPE_ARRAY:
        set_end(end, type, (uint64_t)array);
        break;
    default:
        set_end(end, type, device);
        break;
    }
}

void cgs_call_copy_2d(cgs_call_t *call, const CUDA_MEMCPY2D *from)
{
    cgs_copy_t *copy = &call->copy.copy;

    call->kind        = CGS_OP_COPY;
    copy->api         = CGS_COPY_2D;
    copy->width_bytes = from->WidthInBytes;
    copy->height      = from->Height;
    copy->depth       = 1;
    fill_end(&copy->src, from->srcMemoryType, from->srcHost, from->srcDevice,
             from->srcArray);
    copy->src.x_bytes = from->srcXInBytes;
    copy->src.y       = from->srcY;
    copy->src.pitch   = from->srcPitch;
    fill_end(&copy->dst, from->dstMemoryType, from->dstHost, from->dstDevice,
             from->dstArray);
    copy->dst.x_bytes = from->dstXInBytes;
    copy->dst.y       = from->dstY;
    copy->dst.pitch   = from->dstPitch;
    refuse_empty(call);
}

void cgs_call_copy_3d(cgs_call_t *call, const CUDA_MEMCPY3D *from)
{
    cgs_copy_t *copy = &call->copy.copy;

    call->kind        = CGS_OP_COPY;
    copy->api         = CGS_COPY_3D;
    copy->width_bytes = from->WidthInBytes;
    copy->height      = from->Height;
    copy->depth       = from->Depth;
    fill_end(&copy->src, from->srcMemoryType, from->srcHost, from->srcDevice,
             from->srcArray);
    copy->src.x_bytes = from->srcXInBytes;
    copy->src.y       = from->srcY;
    copy->src.z       = from->srcZ;
    copy->src.lod     = from->srcLOD;
    copy->src.pitch   = from->srcPitch;
    copy->src.height  = from->srcHeight;
    fill_end(&copy->dst, from->dstMemoryType, from->dstHost, from->dstDevice,
             from->dstArray);
    copy->dst.x_bytes = from->dstXInBytes;
    copy->dst.y       = from->dstY;
    copy->dst.z       = from->dstZ;
    copy->dst.lod     = from->dstLOD;
    copy->dst.pitch   = from->dstPitch;
    copy->dst.height  = from->dstHeight;
    refuse_empty(call);
}

/* What the end really is; false where that is nothing a node can copy. */
static bool resolve_end(const cgs_copy_end_t *end, size_t bytes,
                        CUdevice device, CUmemorytype *type)
{
    CUmemorytype found;

    if (end->type == CU_MEMORYTYPE_ARRAY) {
        *type = CU_MEMORYTYPE_ARRAY;
        return true;
    }
    if (!cgs_memory_type(end->address, bytes, device, &found) ||
        ((end->type != CU_MEMORYTYPE_UNIFIED) && (end->type != found))) {
        return false;
    }
    *type = found;
    return true;
}

/* The driver patches copies of one dimension only. */
static bool is_patchable(const cgs_copy_t *copy)
{
    return (copy->api != CGS_COPY_2D) && (copy->api != CGS_COPY_3D);
}

/* Only where the program says that it is host memory: any other address that
 * the driver does not know may be no memory at all. */
static bool resolve_source(const cgs_copy_t *copy, size_t bytes,
                           CUdevice device, CUmemorytype *type)
{
    if (resolve_end(&copy->src, bytes, device, type)) {
        return true;
    }
    *type = PAGEABLE;
    return (copy->api == CGS_COPY_HTOD) && (bytes <= CGS_MAX_STAGED) &&
           cgs_memory_is_pageable(copy->src.address);
}

size_t cgs_op_staged_bytes(const cgs_op_t *op)
{
    return (op->kind == CGS_OP_COPY) && (op->copy.src_type == PAGEABLE) ?
           op->copy.copy.width_bytes : 0;
}

static bool copy_admit(cgs_call_t *call)
{
    const cgs_copy_t *copy = &call->copy.copy;
    size_t           bytes = is_patchable(copy) ? copy->width_bytes : 0;

    /* Before the question, so that memory that changes meanwhile is asked
     * about again. */
    call->copy.generation = cgs_memory_generation();
    if (!resolve_source(copy, bytes, call->device, &call->copy.src_type) ||
        !resolve_end(&copy->dst, bytes, call->device,
                     &call->copy.dst_type)) {
        call->reason = "a copy with memory that is pageable, managed or of "
                       "another device";
        return false;
    }
    if ((call->copy.src_type == CU_MEMORYTYPE_HOST) &&
        (call->copy.dst_type == CU_MEMORYTYPE_HOST)) {
        call->reason = "a copy from host to host memory";
        return false;
    }
    return true;
}

static cgs_match_t copy_compare(const cgs_op_t *op, cgs_call_t *call)
{
    const cgs_copy_t *old  = &op->copy.copy;
    const cgs_copy_t *now  = &call->copy.copy;
    bool             equal = !memcmp(old, now, sizeof(*old));

    if (equal && (op->copy.generation == cgs_memory_generation()) &&
        (op->copy.src_type != PAGEABLE)) {
        return CGS_MATCH_SAME;
    }
    if (!is_patchable(old) || (old->api != now->api) || !copy_admit(call) ||
        (call->copy.src_type != op->copy.src_type) ||
        (call->copy.dst_type != op->copy.dst_type) ||
        ((op->copy.src_type == PAGEABLE) &&
         (old->width_bytes != now->width_bytes))) {
        return CGS_MATCH_OTHER;
    }
    /* Where the source lies is of no concern: what counts is in it. */
    return (op->copy.src_type == PAGEABLE) &&
           (old->dst.address == now->dst.address) ? CGS_MATCH_STAGED :
                                                    CGS_MATCH_CHANGED;
}

/* Copy the source: the program may use it again once the call returns. */
static int stage(cgs_op_t *op)
{
    char *memory = cgs_staging_memory(op->copy.staging);

    if (memory == NULL) {
        return -1;
    }
    op->copy.staged = memory + op->copy.stage_offset;
    memcpy(op->copy.staged, (const void *)op->copy.copy.src.address,
           op->copy.copy.width_bytes);
    return 0;
}

static int copy_take(cgs_op_t *op, const cgs_call_t *call, cgs_arena_t *arena)
{
    (void)arena;
    op->copy.copy       = call->copy.copy;
    op->copy.src_type   = call->copy.src_type;
    op->copy.dst_type   = call->copy.dst_type;
    op->copy.generation = call->copy.generation;
    return op->copy.staging != NULL ? stage(op) : 0;
}

static void copy_recall(const cgs_op_t *op, cgs_call_t *call)
{
    call->copy.copy       = op->copy.copy;
    call->copy.src_type   = op->copy.src_type;
    call->copy.dst_type   = op->copy.dst_type;
    call->copy.generation = op->copy.generation;
}

static uint64_t copy_hash(const cgs_op_t *op, uint64_t hash)
{
    return cgs_op_hash_bytes(&op->copy.copy, sizeof(op->copy.copy), hash);
}

static bool copy_refresh(cgs_op_t *op, CUdevice device)
{
    cgs_call_t call = {.kind = CGS_OP_COPY, .device = device};

    if (op->copy.generation == cgs_memory_generation()) {
        return true;
    }
    call.copy.copy = op->copy.copy;
    if (!copy_admit(&call) || (call.copy.src_type != op->copy.src_type) ||
        (call.copy.dst_type != op->copy.dst_type)) {
        return false;
    }
    op->copy.generation = call.copy.generation;
    return true;
}

static void describe_copy(const cgs_copy_t *copy, CUmemorytype src_type,
                          CUmemorytype dst_type, CUDA_MEMCPY3D *to)
{
    bool flat = is_patchable(copy);

    memset(to, 0, sizeof(*to));
    to->srcXInBytes   = copy->src.x_bytes;
    to->srcY          = copy->src.y;
    to->srcZ          = copy->src.z;
    to->srcLOD        = copy->src.lod;
    to->srcMemoryType = src_type;
    to->srcHost       = src_type == CU_MEMORYTYPE_HOST ?
                        (const void *)copy->src.address : NULL;
    to->srcDevice     = (src_type == CU_MEMORYTYPE_DEVICE) ||
                        (src_type == CU_MEMORYTYPE_UNIFIED) ?
                        copy->src.address : 0;
    to->srcArray      = src_type == CU_MEMORYTYPE_ARRAY ?
                        (CUarray)copy->src.address : NULL;
    to->srcPitch      = flat ? copy->width_bytes : copy->src.pitch;
    to->srcHeight     = flat ? 1 : copy->src.height;
    to->dstXInBytes   = copy->dst.x_bytes;
    to->dstY          = copy->dst.y;
    to->dstZ          = copy->dst.z;
    to->dstLOD        = copy->dst.lod;
    to->dstMemoryType = dst_type;
    to->dstHost       = dst_type == CU_MEMORYTYPE_HOST ?
                        (void *)copy->dst.address : NULL;
    to->dstDevice     = (dst_type == CU_MEMORYTYPE_DEVICE) ||
                        (dst_type == CU_MEMORYTYPE_UNIFIED) ?
                        copy->dst.address : 0;
    to->dstArray      = dst_type == CU_MEMORYTYPE_ARRAY ?
                        (CUarray)copy->dst.address : NULL;
    to->dstPitch      = flat ? copy->width_bytes : copy->dst.pitch;
    to->dstHeight     = flat ? 1 : copy->dst.height;
    to->WidthInBytes  = copy->width_bytes;
    to->Height        = copy->height;
    to->Depth         = copy->depth;
}

static CUresult issue_2d(const CUDA_MEMCPY3D *from, CUstream stream)
{
    CUDA_MEMCPY2D copy = {
        .srcXInBytes = from->srcXInBytes, .srcY = from->srcY,
        .srcMemoryType = from->srcMemoryType, .srcHost = from->srcHost,
        .srcDevice = from->srcDevice, .srcArray = from->srcArray,
        .srcPitch = from->srcPitch, .dstXInBytes = from->dstXInBytes,
        .dstY = from->dstY, .dstMemoryType = from->dstMemoryType,
        .dstHost = from->dstHost, .dstDevice = from->dstDevice,
        .dstArray = from->dstArray, .dstPitch = from->dstPitch,
        .WidthInBytes = from->WidthInBytes, .Height = from->Height,
    };

    return CGS_REAL(cuMemcpy2DAsync_v2)(&copy, stream);
}

static CUresult copy_issue(const cgs_op_t *op, CUstream stream)
{
    const cgs_copy_t *copy = &op->copy.copy;
    CUDA_MEMCPY3D    params;

    if (op->copy.staging != NULL) {
        return CGS_REAL(cuMemcpyHtoDAsync_v2)(
            copy->dst.address, op->copy.staged, copy->width_bytes, stream);
    }
    switch ((cgs_copy_api_t)copy->api) {
    case CGS_COPY_ANY:
        return CGS_REAL(cuMemcpyAsync)(copy->dst.address, copy->src.address,
                                       copy->width_bytes, stream);
    case CGS_COPY_DTOD:
        return CGS_REAL(cuMemcpyDtoDAsync_v2)(
            copy->dst.address, copy->src.address, copy->width_bytes, stream);
    case CGS_COPY_DTOD_SYNC:
        return CGS_REAL(cuMemcpyDtoD_v2)(copy->dst.address, copy->src.address,
                                         copy->width_bytes);
    case CGS_COPY_HTOD:
        return CGS_REAL(cuMemcpyHtoDAsync_v2)(
            copy->dst.address, (const void *)copy->src.address,
            copy->width_bytes, stream);
    case CGS_COPY_DTOH:
        return CGS_REAL(cuMemcpyDtoHAsync_v2)(
            (void *)copy->dst.address, copy->src.address, copy->width_bytes,
            stream);
    default:
        break;
    }

    describe_copy(copy, (CUmemorytype)copy->src.type,
                  (CUmemorytype)copy->dst.type, &params);
    return copy->api == CGS_COPY_2D ? issue_2d(&params, stream) :
           CGS_REAL(cuMemcpy3DAsync_v2)(&params, stream);
}

static void copy_describe(const cgs_op_t *op, CUcontext ctx,
                          CUgraphNodeParams *params)
{
    bool staged = op->copy.staging != NULL;

    params->type           = CU_GRAPH_NODE_TYPE_MEMCPY;
    params->memcpy.copyCtx = ctx;
    describe_copy(&op->copy.copy,
                  staged ? CU_MEMORYTYPE_HOST : op->copy.src_type,
                  op->copy.dst_type, &params->memcpy.copyParams);
    if (staged) {
        params->memcpy.copyParams.srcHost = op->copy.staged;
    }
}

/* From the first byte of an end to the last. */
static uint64_t end_bytes(const cgs_copy_t *copy, const cgs_copy_end_t *end)
{
    return copy->width_bytes +
           ((copy->height - 1) + (copy->depth - 1) * end->height) * end->pitch;
}

static void tell_end(const cgs_op_t *op, int argument, cgs_op_use_fn_t tell,
                     void *arg)
{
    const cgs_copy_t     *copy = &op->copy.copy;
    bool                 is_src = argument == 1;
    const cgs_copy_end_t *end = is_src ? &copy->src : &copy->dst;
    CUmemorytype         type = is_src ? op->copy.src_type : op->copy.dst_type;
    cgs_op_use_t         use = {
        .address     = end->address + end->x_bytes +
                       (end->y + end->z * end->height) * end->pitch,
        .bytes       = end_bytes(copy, end),
        .access      = is_src ? CGSHIM_ACCESS_READ : CGSHIM_ACCESS_WRITTEN,
        .is_pageable = type == PAGEABLE,
        .argument    = argument,
    };

    if (type != CU_MEMORYTYPE_ARRAY) {
        tell(&use, arg);
    }
}

static void copy_uses(const cgs_op_t *op, cgs_op_use_fn_t tell, void *arg)
{
    tell_end(op, 0, tell, arg);
    tell_end(op, 1, tell, arg);
}

static void explain_value(const char *what, uint64_t old, uint64_t now,
                          cgs_divergence_t *divergence)
{
    if ((old == now) || (divergence->what != NULL)) {
        return;
    }
    divergence->what      = what;
    divergence->size      = sizeof(old);
    divergence->num_bytes = sizeof(old);
    memcpy(divergence->old_bytes, &old, sizeof(old));
    memcpy(divergence->new_bytes, &now, sizeof(now));
}

static void copy_explain(const cgs_op_t *op, const cgs_call_t *call,
                         cgs_divergence_t *divergence)
{
    const cgs_copy_t *old = &op->copy.copy;
    const cgs_copy_t *now = &call->copy.copy;

    explain_value("way of copying", old->api, now->api, divergence);
    explain_value("destination", old->dst.address, now->dst.address,
                  divergence);
    explain_value("source", old->src.address, now->src.address, divergence);
    explain_value("bytes", old->width_bytes, now->width_bytes, divergence);
    explain_value("height", old->height, now->height, divergence);
    explain_value("depth", old->depth, now->depth, divergence);
    if ((divergence->what == NULL) && (memcmp(old, now, sizeof(*old)) != 0)) {
        divergence->what = "place in memory";
    }
    if ((divergence->what == NULL) &&
        (op->copy.generation != cgs_memory_generation())) {
        divergence->what = "memory freed since";
    }
}

const cgs_op_kind_t cgs_op_copy = {
    .name     = "copy",
    .admit    = copy_admit,
    .compare  = copy_compare,
    .take     = copy_take,
    .recall   = copy_recall,
    .hash     = copy_hash,
    .refresh  = copy_refresh,
    .issue    = copy_issue,
    .describe = copy_describe,
    .uses     = copy_uses,
    .explain  = copy_explain,
};
