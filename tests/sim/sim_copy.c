/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and sets: what each means for the host (when the source is read, how
 * long the call waits) by the kinds of memory involved.
 */
#include "sim.h"

#include <string.h>

/* ---------------------------------------------------------- checking */

/* One side of a copy: the first and the last byte it touches. */
typedef struct {
    uintptr_t address;
    size_t    x, y, z, pitch, height;
} sim_side_t;

static CUresult sim_side_check(const sim_side_t *side,
                               const CUDA_MEMCPY3D *desc, CUmemorytype type,
                               bool *is_host, int *device)
{
    const sim_mem_t *mem;
    uintptr_t        first;
    size_t           length;

    if (((desc->Height > 1) || (desc->Depth > 1)) &&
        (side->pitch < side->x + desc->WidthInBytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if ((desc->Depth > 1) &&
               (side->height < side->y + desc->Height)) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if (side->address == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }

    first  = side->address + (side->z * side->height + side->y) *
             side->pitch + side->x;
    length = ((desc->Depth - 1) * side->height + desc->Height - 1) *
             side->pitch + desc->WidthInBytes;
    mem    = sim_mem_find(first);
    if (mem == NULL) {
        *is_host = true;
        *device  = -1;
        return (type == CU_MEMORYTYPE_DEVICE) ? CUDA_ERROR_INVALID_VALUE :
                                                CUDA_SUCCESS;
    }
    *is_host = !mem->is_global && ((mem->kind == SIM_MEM_PINNED) ||
                                   (mem->kind == SIM_MEM_REGISTERED));
    *device  = mem->device;
    return (first + length > mem->start + mem->size) ?
           CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static bool sim_copy_type_is_known(CUmemorytype type)
{
    return (type == CU_MEMORYTYPE_HOST) || (type == CU_MEMORYTYPE_DEVICE) ||
           (type == CU_MEMORYTYPE_UNIFIED);
}

static CUresult sim_copy_check(sim_op_copy_t *copy)
{
    const CUDA_MEMCPY3D *d   = &copy->desc;
    sim_side_t           src = {0, d->srcXInBytes, d->srcY, d->srcZ,
                                d->srcPitch, d->srcHeight};
    sim_side_t           dst = {0, d->dstXInBytes, d->dstY, d->dstZ,
                                d->dstPitch, d->dstHeight};
    CUresult             status;

    if (!sim_copy_type_is_known(d->srcMemoryType) ||
        !sim_copy_type_is_known(d->dstMemoryType)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    src.address = (d->srcMemoryType == CU_MEMORYTYPE_HOST) ?
                  (uintptr_t)d->srcHost : (uintptr_t)d->srcDevice;
    dst.address = (d->dstMemoryType == CU_MEMORYTYPE_HOST) ?
                  (uintptr_t)d->dstHost : (uintptr_t)d->dstDevice;
    status = sim_side_check(&src, d, d->srcMemoryType, &copy->src_host,
                            &copy->src_device);
    return (status != CUDA_SUCCESS) ? status :
           sim_side_check(&dst, d, d->dstMemoryType, &copy->dst_host,
                          &copy->dst_device);
}

CUresult sim_copy_op(const CUDA_MEMCPY3D *desc, sim_ctx_t *ctx,
                     sim_op_t **op_p)
{
    sim_op_t *op;
    CUresult  status;

    *op_p = NULL;
    if (desc == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if ((desc->WidthInBytes == 0) || (desc->Height == 0) ||
               (desc->Depth == 0)) {
        return CUDA_SUCCESS;
    }

    op            = sim_op_new(SIM_OP_COPY, ctx);
    op->copy.desc = *desc;
    status        = sim_copy_check(&op->copy);
    if (status != CUDA_SUCCESS) {
        sim_op_release(op);
        return status;
    }
    *op_p = op;
    return CUDA_SUCCESS;
}

/* ---------------------------------------------------------- copying */

/* Takes the source bytes now: the program may change them once the call has
 * returned. */
static void sim_copy_stage(sim_op_copy_t *copy)
{
    const CUDA_MEMCPY3D *d   = &copy->desc;
    const uint8_t       *src = (d->srcMemoryType == CU_MEMORYTYPE_HOST) ?
                               d->srcHost :
                               (const void *)(uintptr_t)d->srcDevice;
    uint8_t             *to;
    size_t               y, z;

    copy->staged = to = sim_alloc(d->WidthInBytes * d->Height * d->Depth);
    for (z = 0; z < d->Depth; ++z) {
        for (y = 0; y < d->Height; ++y) {
            memcpy(to, src + ((z + d->srcZ) * d->srcHeight + y + d->srcY) *
                       d->srcPitch + d->srcXInBytes, d->WidthInBytes);
            to += d->WidthInBytes;
        }
    }
}

static CUresult sim_copy_submit(sim_stream_t *stream, sim_op_t *op, bool sync)
{
    sim_op_copy_t *copy      = &op->copy;
    bool           src_paged = copy->src_device < 0;
    bool           dst_paged = copy->dst_device < 0;
    sim_task_t    *task, *before = NULL;
    CUresult       status;
    bool           wait;

    /* Copies within the device never keep the host waiting; those between two
     * places of the host, and into pageable memory, always do. */
    wait = (copy->src_host && copy->dst_host) || dst_paged ||
           (sync && (copy->src_host || copy->dst_host) && !src_paged);
    if (src_paged && !copy->dst_host && (stream->capture == NULL)) {
        sim_copy_stage(copy);
        if (sync) {
            /* What was there before is waited for, the copy itself is not. */
            status = sim_stream_submit(stream, NULL, &before);
            if (status != CUDA_SUCCESS) {
                sim_op_release(op);
                return status;
            }
        }
    }

    status = sim_stream_submit(stream, op, &task);
    if ((status == CUDA_SUCCESS) && (task != NULL)) {
        if (wait) {
            sim_task_wait(task);
        } else if (before != NULL) {
            sim_task_wait(before);
        }
        sim_task_unref(task);
    }
    sim_task_unref(before);
    return status;
}

static CUresult sim_copy(const CUDA_MEMCPY3D *desc, CUstream handle, int twin,
                         bool sync)
{
    sim_stream_t *stream;
    sim_op_t     *op;
    CUresult      status = sim_stream_find(handle, twin, &stream);

    if (status == CUDA_SUCCESS) {
        status = sim_copy_op(desc, stream->ctx, &op);
    }
    if ((status != CUDA_SUCCESS) || (op == NULL)) {
        return status;
    }
    if (sync) {
        status = sim_capture_check_legacy(stream);
        if (status == CUDA_SUCCESS) {
            status = sim_capture_check_unsafe();
        }
    }
    if (status != CUDA_SUCCESS) {
        sim_op_release(op);
        return status;
    }
    return sim_copy_submit(stream, op, sync);
}

static CUresult sim_copy_linear(CUdeviceptr dst, CUmemorytype dst_type,
                                CUdeviceptr src, CUmemorytype src_type,
                                size_t size, CUstream stream, int twin,
                                bool sync)
{
    CUDA_MEMCPY3D desc = {.WidthInBytes = size, .Height = 1, .Depth = 1};

    desc.srcMemoryType = src_type;
    desc.srcHost       = (const void *)(uintptr_t)src;
    desc.srcDevice     = src;
    desc.dstMemoryType = dst_type;
    desc.dstHost       = (void *)(uintptr_t)dst;
    desc.dstDevice     = dst;
    return sim_copy(&desc, stream, twin, sync);
}

#define SIM_HOST CU_MEMORYTYPE_HOST
#define SIM_DEV  CU_MEMORYTYPE_DEVICE
#define SIM_UNI  CU_MEMORYTYPE_UNIFIED
#define SIM_PTR  (CUdeviceptr)(uintptr_t)

#define SIM_LINEAR(_dst, _dst_type, _src, _src_type, _stream, _sync) \
    sim_copy_linear(SIM_PTR _dst, _dst_type, SIM_PTR _src, _src_type, \
                    ByteCount, _stream, twin, _sync)

SIM_ENTRY_PTDS(cuMemcpy, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount),
               SIM_CTX, SIM_LINEAR(dst, SIM_UNI, src, SIM_UNI, NULL, true))
SIM_ENTRY_PTSZ(cuMemcpyAsync,
               (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount,
                CUstream hStream), SIM_CTX,
               SIM_LINEAR(dst, SIM_UNI, src, SIM_UNI, hStream, false))

/* Each in the ABI with 64-bit addresses and its twin, and in the first. */
#define SIM_LINEAR_ENTRIES(_name, _dst, _dst_type, _src, _src_type, _params, \
                           _params_v1) \
    SIM_ENTRY_PTDS(_name##_v2, _params, SIM_CTX, \
                   SIM_LINEAR(_dst, _dst_type, _src, _src_type, NULL, true)) \
    SIM_ENTRY_TWIN(_name, 0, _params_v1, SIM_CTX, \
                   SIM_LINEAR(_dst, _dst_type, _src, _src_type, NULL, true))

#define SIM_LINEAR_ASYNC(_name, _dst, _dst_type, _src, _src_type, _params, \
                         _params_v1) \
    SIM_ENTRY_PTSZ(_name##_v2, _params, SIM_CTX, \
                   SIM_LINEAR(_dst, _dst_type, _src, _src_type, hStream, \
                              false)) \
    SIM_ENTRY_TWIN(_name, 0, _params_v1, SIM_CTX, \
                   SIM_LINEAR(_dst, _dst_type, _src, _src_type, hStream, \
                              false))

SIM_LINEAR_ENTRIES(cuMemcpyHtoD, dstDevice, SIM_DEV, srcHost, SIM_HOST,
                   (CUdeviceptr dstDevice, const void *srcHost,
                    size_t ByteCount),
                   (CUdeviceptr_v1 dstDevice, const void *srcHost,
                    unsigned int ByteCount))
SIM_LINEAR_ENTRIES(cuMemcpyDtoH, dstHost, SIM_HOST, srcDevice, SIM_DEV,
                   (void *dstHost, CUdeviceptr srcDevice, size_t ByteCount),
                   (void *dstHost, CUdeviceptr_v1 srcDevice,
                    unsigned int ByteCount))
SIM_LINEAR_ENTRIES(cuMemcpyDtoD, dstDevice, SIM_DEV, srcDevice, SIM_DEV,
                   (CUdeviceptr dstDevice, CUdeviceptr srcDevice,
                    size_t ByteCount),
                   (CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice,
                    unsigned int ByteCount))
SIM_LINEAR_ASYNC(cuMemcpyHtoDAsync, dstDevice, SIM_DEV, srcHost, SIM_HOST,
                 (CUdeviceptr dstDevice, const void *srcHost,
                  size_t ByteCount, CUstream hStream),
                 (CUdeviceptr_v1 dstDevice, const void *srcHost,
                  unsigned int ByteCount, CUstream hStream))
SIM_LINEAR_ASYNC(cuMemcpyDtoHAsync, dstHost, SIM_HOST, srcDevice, SIM_DEV,
                 (void *dstHost, CUdeviceptr srcDevice, size_t ByteCount,
                  CUstream hStream),
                 (void *dstHost, CUdeviceptr_v1 srcDevice,
                  unsigned int ByteCount, CUstream hStream))
SIM_LINEAR_ASYNC(cuMemcpyDtoDAsync, dstDevice, SIM_DEV, srcDevice, SIM_DEV,
                 (CUdeviceptr dstDevice, CUdeviceptr srcDevice,
                  size_t ByteCount, CUstream hStream),
                 (CUdeviceptr_v1 dstDevice, CUdeviceptr_v1 srcDevice,
                  unsigned int ByteCount, CUstream hStream))

/* Memory of all contexts is one address space here as on the real device. */
static CUresult sim_copy_peer_linear(CUdeviceptr dst, CUcontext dst_ctx,
                                     CUdeviceptr src, CUcontext src_ctx,
                                     size_t size, CUstream stream, int twin,
                                     bool sync)
{
    sim_ctx_t *ctx;
    CUresult   status = sim_ctx_get(dst_ctx, &ctx);

    if (status == CUDA_SUCCESS) {
        status = sim_ctx_get(src_ctx, &ctx);
    }
    return (status != CUDA_SUCCESS) ? status :
           sim_copy_linear(dst, SIM_DEV, src, SIM_DEV, size, stream, twin,
                           sync);
}
SIM_ENTRY_PTDS(cuMemcpyPeer,
               (CUdeviceptr dstDevice, CUcontext dstContext,
                CUdeviceptr srcDevice, CUcontext srcContext,
                size_t ByteCount), SIM_CTX,
               sim_copy_peer_linear(dstDevice, dstContext, srcDevice,
                                    srcContext, ByteCount, NULL, twin, true))
SIM_ENTRY_PTSZ(cuMemcpyPeerAsync,
               (CUdeviceptr dstDevice, CUcontext dstContext,
                CUdeviceptr srcDevice, CUcontext srcContext,
                size_t ByteCount, CUstream hStream), SIM_CTX,
               sim_copy_peer_linear(dstDevice, dstContext, srcDevice,
                                    srcContext, ByteCount, hStream, twin,
                                    false))

/* ---------------------------------------------------------- 2-D and 3-D */

#define SIM_FIELDS_2D(_to, _from) \
    do { \
        (_to).srcXInBytes   = (_from)->srcXInBytes; \
        (_to).srcY          = (_from)->srcY; \
        (_to).srcMemoryType = (_from)->srcMemoryType; \
        (_to).srcHost       = (_from)->srcHost; \
        (_to).srcDevice     = (_from)->srcDevice; \
        (_to).srcArray      = (_from)->srcArray; \
        (_to).srcPitch      = (_from)->srcPitch; \
        (_to).dstXInBytes   = (_from)->dstXInBytes; \
        (_to).dstY          = (_from)->dstY; \
        (_to).dstMemoryType = (_from)->dstMemoryType; \
        (_to).dstHost       = (_from)->dstHost; \
        (_to).dstDevice     = (_from)->dstDevice; \
        (_to).dstArray      = (_from)->dstArray; \
        (_to).dstPitch      = (_from)->dstPitch; \
        (_to).WidthInBytes  = (_from)->WidthInBytes; \
        (_to).Height        = (_from)->Height; \
    } while (0)

#define SIM_FIELDS_3D(_to, _from) \
    do { \
        SIM_FIELDS_2D(_to, _from); \
        (_to).srcZ      = (_from)->srcZ; \
        (_to).srcLOD    = (_from)->srcLOD; \
        (_to).srcHeight = (_from)->srcHeight; \
        (_to).dstZ      = (_from)->dstZ; \
        (_to).dstLOD    = (_from)->dstLOD; \
        (_to).dstHeight = (_from)->dstHeight; \
        (_to).Depth     = (_from)->Depth; \
    } while (0)

/* A pitch of 0 means rows that follow each other. */
static void sim_copy_default_pitch(CUDA_MEMCPY3D *desc)
{
    if (desc->srcPitch == 0) {
        desc->srcPitch = desc->WidthInBytes;
    }
    if (desc->dstPitch == 0) {
        desc->dstPitch = desc->WidthInBytes;
    }
}

static CUresult sim_copy_2d(const CUDA_MEMCPY2D *copy, CUstream stream,
                            int twin, bool sync)
{
    CUDA_MEMCPY3D desc = {.Depth = 1};

    if (copy == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    SIM_FIELDS_2D(desc, copy);
    sim_copy_default_pitch(&desc);
    return sim_copy(&desc, stream, twin, sync);
}

static CUresult sim_copy_2d_v1(const CUDA_MEMCPY2D_v1 *copy, CUstream stream,
                               int twin, bool sync)
{
    CUDA_MEMCPY3D desc = {.Depth = 1};

    if (copy == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    SIM_FIELDS_2D(desc, copy);
    sim_copy_default_pitch(&desc);
    return sim_copy(&desc, stream, twin, sync);
}

static CUresult sim_copy_3d(const CUDA_MEMCPY3D *copy, CUstream stream,
                            int twin, bool sync)
{
    CUDA_MEMCPY3D desc;

    if ((copy == NULL) || (copy->srcLOD != 0) || (copy->dstLOD != 0) ||
        (copy->reserved0 != NULL) || (copy->reserved1 != NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    desc = *copy;
    sim_copy_default_pitch(&desc);
    return sim_copy(&desc, stream, twin, sync);
}

static CUresult sim_copy_3d_v1(const CUDA_MEMCPY3D_v1 *copy, CUstream stream,
                               int twin, bool sync)
{
    CUDA_MEMCPY3D desc = {0};

    if (copy == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    SIM_FIELDS_3D(desc, copy);
    return sim_copy_3d(&desc, stream, twin, sync);
}

static CUresult sim_copy_peer(const CUDA_MEMCPY3D_PEER *peer,
                              CUDA_MEMCPY3D *desc)
{
    sim_ctx_t *ctx;
    CUresult   status;

    if (peer == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    status = sim_ctx_get(peer->srcContext, &ctx);
    if (status == CUDA_SUCCESS) {
        status = sim_ctx_get(peer->dstContext, &ctx);
    }
    memset(desc, 0, sizeof(*desc));
    SIM_FIELDS_3D(*desc, peer);
    return status;
}

static CUresult sim_copy_3d_peer(const CUDA_MEMCPY3D_PEER *peer,
                                 CUstream stream, int twin, bool sync)
{
    CUDA_MEMCPY3D desc;
    CUresult      status = sim_copy_peer(peer, &desc);

    return (status != CUDA_SUCCESS) ? status :
           sim_copy_3d(&desc, stream, twin, sync);
}

SIM_ENTRY_PTDS(cuMemcpy2D_v2, (const CUDA_MEMCPY2D *pCopy), SIM_CTX,
               sim_copy_2d(pCopy, NULL, twin, true))
SIM_ENTRY_PTDS(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D *pCopy), SIM_CTX,
               sim_copy_2d(pCopy, NULL, twin, true))
SIM_ENTRY_PTSZ(cuMemcpy2DAsync_v2,
               (const CUDA_MEMCPY2D *pCopy, CUstream hStream), SIM_CTX,
               sim_copy_2d(pCopy, hStream, twin, false))
SIM_ENTRY_PTDS(cuMemcpy3D_v2, (const CUDA_MEMCPY3D *pCopy), SIM_CTX,
               sim_copy_3d(pCopy, NULL, twin, true))
SIM_ENTRY_PTSZ(cuMemcpy3DAsync_v2,
               (const CUDA_MEMCPY3D *pCopy, CUstream hStream), SIM_CTX,
               sim_copy_3d(pCopy, hStream, twin, false))
SIM_ENTRY_PTDS(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER *pCopy), SIM_CTX,
               sim_copy_3d_peer(pCopy, NULL, twin, true))
SIM_ENTRY_PTSZ(cuMemcpy3DPeerAsync,
               (const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream), SIM_CTX,
               sim_copy_3d_peer(pCopy, hStream, twin, false))
SIM_ENTRY(cuMemcpy2D, (const CUDA_MEMCPY2D_v1 *pCopy), SIM_CTX,
          sim_copy_2d_v1(pCopy, NULL, 0, true))
SIM_ENTRY(cuMemcpy2DUnaligned, (const CUDA_MEMCPY2D_v1 *pCopy), SIM_CTX,
          sim_copy_2d_v1(pCopy, NULL, 0, true))
SIM_ENTRY(cuMemcpy2DAsync, (const CUDA_MEMCPY2D_v1 *pCopy, CUstream hStream),
          SIM_CTX, sim_copy_2d_v1(pCopy, hStream, 0, false))
SIM_ENTRY(cuMemcpy3D, (const CUDA_MEMCPY3D_v1 *pCopy), SIM_CTX,
          sim_copy_3d_v1(pCopy, NULL, 0, true))
SIM_ENTRY(cuMemcpy3DAsync, (const CUDA_MEMCPY3D_v1 *pCopy, CUstream hStream),
          SIM_CTX, sim_copy_3d_v1(pCopy, hStream, 0, false))

/* ---------------------------------------------------------- sets */

CUresult sim_set_op(const CUDA_MEMSET_NODE_PARAMS_v1 *params, sim_ctx_t *ctx,
                    sim_op_t **op_p)
{
    const sim_mem_t *mem;
    size_t           length;
    sim_op_t        *op;

    *op_p = NULL;
    if ((params->elementSize != 1) && (params->elementSize != 2) &&
        (params->elementSize != 4)) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if ((params->width == 0) || (params->height == 0)) {
        return CUDA_SUCCESS;
    } else if ((params->dst % params->elementSize != 0) ||
               ((params->height > 1) &&
                ((params->pitch < params->width * params->elementSize) ||
                 (params->pitch % params->elementSize != 0)))) {
        return CUDA_ERROR_INVALID_VALUE;
    }

    mem    = sim_mem_find(params->dst);
    length = (params->height - 1) * params->pitch +
             params->width * params->elementSize;
    if ((mem == NULL) || (params->dst + length > mem->start + mem->size)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    op             = sim_op_new(SIM_OP_SET, ctx);
    op->set.params = *params;
    op->set.device = mem->device;
    *op_p          = op;
    return CUDA_SUCCESS;
}

static CUresult sim_set(CUdeviceptr dst, size_t pitch, unsigned value,
                        unsigned element, size_t width, size_t height,
                        CUstream handle, int twin, bool sync)
{
    CUDA_MEMSET_NODE_PARAMS_v1 params = {dst, pitch, value, element, width,
                                         height};
    sim_stream_t              *stream;
    sim_task_t                *task;
    sim_op_t                  *op = NULL;
    const sim_mem_t           *mem;
    bool                       wait;
    CUresult                   status;

    status = sim_stream_find(handle, twin, &stream);
    if (status == CUDA_SUCCESS) {
        status = sim_set_op(&params, stream->ctx, &op);
    }
    if ((status != CUDA_SUCCESS) || (op == NULL)) {
        return status;
    }
    if (sync) {
        status = sim_capture_check_legacy(stream);
        status = (status == CUDA_SUCCESS) ? sim_capture_check_unsafe() :
                                            status;
        if (status != CUDA_SUCCESS) {
            sim_op_release(op);
            return status;
        }
    }

    /* Sets of memory that the host can see are synchronous. */
    mem    = sim_mem_find(dst);
    wait   = sync && (mem != NULL) && (mem->kind != SIM_MEM_DEVICE);
    status = sim_stream_submit(stream, op, &task);
    if ((status == CUDA_SUCCESS) && (task != NULL)) {
        if (wait) {
            sim_task_wait(task);
        }
        sim_task_unref(task);
    }
    return status;
}

#define SIM_SET_ENTRIES(_bits, _type) \
    SIM_ENTRY_PTDS(cuMemsetD##_bits##_v2, \
                   (CUdeviceptr dstDevice, _type value, size_t N), SIM_CTX, \
                   sim_set(dstDevice, 0, value, _bits / 8, N, 1, NULL, twin, \
                           true)) \
    SIM_ENTRY(cuMemsetD##_bits, \
              (CUdeviceptr_v1 dstDevice, _type value, unsigned int N), \
              SIM_CTX, \
              sim_set(dstDevice, 0, value, _bits / 8, N, 1, NULL, 0, true)) \
    SIM_ENTRY_PTSZ(cuMemsetD##_bits##Async, \
                   (CUdeviceptr dstDevice, _type value, size_t N, \
                    CUstream hStream), SIM_CTX, \
                   sim_set(dstDevice, 0, value, _bits / 8, N, 1, hStream, \
                           twin, false)) \
    SIM_ENTRY_PTDS(cuMemsetD2D##_bits##_v2, \
                   (CUdeviceptr dstDevice, size_t dstPitch, _type value, \
                    size_t Width, size_t Height), SIM_CTX, \
                   sim_set(dstDevice, dstPitch, value, _bits / 8, Width, \
                           Height, NULL, twin, true)) \
    SIM_ENTRY(cuMemsetD2D##_bits, \
              (CUdeviceptr_v1 dstDevice, unsigned int dstPitch, _type value, \
               unsigned int Width, unsigned int Height), SIM_CTX, \
              sim_set(dstDevice, dstPitch, value, _bits / 8, Width, Height, \
                      NULL, 0, true)) \
    SIM_ENTRY_PTSZ(cuMemsetD2D##_bits##Async, \
                   (CUdeviceptr dstDevice, size_t dstPitch, _type value, \
                    size_t Width, size_t Height, CUstream hStream), SIM_CTX, \
                   sim_set(dstDevice, dstPitch, value, _bits / 8, Width, \
                           Height, hStream, twin, false))

SIM_SET_ENTRIES(8, unsigned char)
SIM_SET_ENTRIES(16, unsigned short)
SIM_SET_ENTRIES(32, unsigned int)
