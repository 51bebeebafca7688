/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver functions that have a meaning of their own here.
 *
 * Each is defined under the exact name that libcuda exports, so the compiler
 * holds its type against cuda.h. A name with _ptsz is the same call where
 * stream 0 means the per-thread default stream. All other functions are
 * entries in assembly; kinds.txt says which is which.
 */
#include "entries.h"

#include <string.h>

#include "barrier.h"
#include "doors.h"
#include "flow.h"
#include "function.h"
#include "life.h"
#include "op.h"
#include "region.h"
#include "stream.h"
#include "thread.h"
#include "turns.h"

#define EXPORT __attribute__((visibility("default")))

#define unlikely(_condition) __builtin_expect(!!(_condition), 0)

/* One name for each default stream. */
static inline CUstream legacy_stream(CUstream stream)
{
    return stream == NULL ? CU_STREAM_LEGACY : stream;
}

static inline CUstream per_thread_stream(CUstream stream)
{
    return stream == NULL ? CU_STREAM_PER_THREAD : stream;
}

/* The handle of the per-thread default stream means another stream in every
 * thread, so nobody else could issue what is held back on it. */
static inline void begin_call(cgs_call_t *call, CUstream stream)
{
    memset(call, 0, sizeof(*call));
    call->stream = stream;
    if (stream == CU_STREAM_PER_THREAD) {
        call->refused = true;
        call->reason  = "the per-thread default stream";
    }
}

/* Around the driver's own function: what it calls back is none of ours. */
static inline void begin_real(void)
{
    ++cgs_self.guard;
    cgs_turns_begin();
}

static inline void end_real(void)
{
    cgs_turns_end();
    --cgs_self.guard;
}

/* Whether marks.c alone would look at the call, and wants to be spared it. */
static inline bool rests(void)
{
    if ((cgs_self.rest == 0) ||
        (__atomic_load_n(&cgs_gate, __ATOMIC_ACQUIRE) != 1)) {
        return false;
    }
    --cgs_self.rest;
    return true;
}

/*
 * Define a function that puts work on a stream.
 *
 *   _name    exported name
 *   _stream  the stream argument, normalised
 *   _args    arguments of the real function, in parentheses
 *   _first   statement before all else, or nothing
 *   _fill    statement that fills in `call`
 *   ...      parameters
 *
 * Where no region is open and nothing is held back, this is a load, a branch
 * and a jump.
 */
#define DEFINE_WORK(_name, _stream, _args, _first, _fill, ...) \
    EXPORT CUresult _name(__VA_ARGS__) \
    { \
        cgs_verdict_t verdict; \
        cgs_call_t    call; \
        CUresult      result; \
        \
        if (!cgs_gate_is_open()) { \
            return CGS_REAL(_name) _args; \
        } \
        _first; \
        if (rests()) { \
            return CGS_REAL(_name) _args; \
        } \
        begin_call(&call, _stream); \
        _fill; \
        verdict = cgs_flow_before(&call); \
        if (verdict == CGS_VERDICT_SWALLOWED) { \
            return call.result; \
        } \
        begin_real(); \
        result = CGS_REAL(_name) _args; \
        end_real(); \
        return cgs_flow_after(&call, verdict, result); \
    }

/* A function and its per-thread twin. */
#define DEFINE_WORK_TWINS(_name, _args, _fill, ...) \
    DEFINE_WORK(_name, legacy_stream(stream), _args, , _fill, __VA_ARGS__) \
    DEFINE_WORK(_name##_ptsz, per_thread_stream(stream), _args, , _fill, \
                __VA_ARGS__)

/* Launches */

static inline void fill_launch(cgs_call_t *call, cgs_launch_api_t api,
                               CUfunction f, unsigned gx, unsigned gy,
                               unsigned gz, unsigned bx, unsigned by,
                               unsigned bz, unsigned shared_bytes,
                               void **params, void **extra)
{
    const unsigned grid[3]  = {gx, gy, gz};
    const unsigned block[3] = {bx, by, bz};

    cgs_call_launch(call, api, f, grid, block, shared_bytes, params, extra,
                    NULL, 0);
}

/* The driver says what is wrong with a configuration that is not there. */
static inline CUstream config_stream(const CUlaunchConfig *config)
{
    return config != NULL ? config->hStream : NULL;
}

static inline void refuse(cgs_call_t *call, cgs_op_kind_id_t kind)
{
    call->kind    = kind;
    call->refused = true;
    call->reason  = "a call without its parameters";
}

static inline void fill_launch_ex(cgs_call_t *call,
                                  const CUlaunchConfig *config, CUfunction f,
                                  void **params, void **extra)
{
    unsigned grid[3], block[3];

    if (config == NULL) {
        refuse(call, CGS_OP_KERNEL);
        return;
    }
    grid[0]  = config->gridDimX;
    grid[1]  = config->gridDimY;
    grid[2]  = config->gridDimZ;
    block[0] = config->blockDimX;
    block[1] = config->blockDimY;
    block[2] = config->blockDimZ;
    cgs_call_launch(call, CGS_LAUNCH_EX, f, grid, block,
                    config->sharedMemBytes, params, extra, config->attrs,
                    config->numAttrs);
}

/* Most launches are just the recorded ones: these take a short way. */
static inline bool swallow_launch(CUfunction f, unsigned gx, unsigned gy,
                                  unsigned gz, unsigned bx, unsigned by,
                                  unsigned bz, unsigned shared_bytes,
                                  CUstream stream, void **params, void **extra)
{
    const cgs_launch_shape_t shape = {
        .function     = f,
        .grid         = {gx, gy, gz},
        .block        = {bx, by, bz},
        .shared_bytes = shared_bytes,
        .api          = CGS_LAUNCH_PLAIN,
    };

    return (extra == NULL) && cgs_flow_swallow_launch(&shape, stream, params);
}

#define DEFINE_LAUNCH(_name, _stream) \
    DEFINE_WORK(_name, _stream, \
                (f, gx, gy, gz, bx, by, bz, shared_bytes, stream, params, \
                 extra), \
                if (swallow_launch(f, gx, gy, gz, bx, by, bz, shared_bytes, \
                                   _stream, params, extra)) { \
                    return CUDA_SUCCESS; \
                }, \
                fill_launch(&call, CGS_LAUNCH_PLAIN, f, gx, gy, gz, bx, by, \
                            bz, shared_bytes, params, extra), \
                CUfunction f, unsigned gx, unsigned gy, unsigned gz, \
                unsigned bx, unsigned by, unsigned bz, \
                unsigned shared_bytes, CUstream stream, void **params, \
                void **extra)

DEFINE_LAUNCH(cuLaunchKernel, legacy_stream(stream))
DEFINE_LAUNCH(cuLaunchKernel_ptsz, per_thread_stream(stream))

DEFINE_WORK_TWINS(cuLaunchCooperativeKernel,
                  (f, gx, gy, gz, bx, by, bz, shared_bytes, stream, params),
                  fill_launch(&call, CGS_LAUNCH_COOPERATIVE, f, gx, gy, gz,
                              bx, by, bz, shared_bytes, params, NULL),
                  CUfunction f, unsigned gx, unsigned gy, unsigned gz,
                  unsigned bx, unsigned by, unsigned bz,
                  unsigned shared_bytes, CUstream stream, void **params)

DEFINE_WORK(cuLaunchKernelEx, legacy_stream(config_stream(config)),
            (config, f, params, extra), ,
            fill_launch_ex(&call, config, f, params, extra),
            const CUlaunchConfig *config, CUfunction f, void **params,
            void **extra)
DEFINE_WORK(cuLaunchKernelEx_ptsz, per_thread_stream(config_stream(config)),
            (config, f, params, extra), ,
            fill_launch_ex(&call, config, f, params, extra),
            const CUlaunchConfig *config, CUfunction f, void **params,
            void **extra)

/* Copies */

static inline void fill_copy_2d(cgs_call_t *call, const CUDA_MEMCPY2D *copy)
{
    if (copy == NULL) {
        refuse(call, CGS_OP_COPY);
    } else {
        cgs_call_copy_2d(call, copy);
    }
}

static inline void fill_copy_3d(cgs_call_t *call, const CUDA_MEMCPY3D *copy)
{
    if (copy == NULL) {
        refuse(call, CGS_OP_COPY);
    } else {
        cgs_call_copy_3d(call, copy);
    }
}

DEFINE_WORK_TWINS(cuMemcpyAsync, (dst, src, bytes, stream),
                  cgs_call_copy(&call, CGS_COPY_ANY, CU_MEMORYTYPE_UNIFIED,
                                dst, CU_MEMORYTYPE_UNIFIED, src, bytes),
                  CUdeviceptr dst, CUdeviceptr src, size_t bytes,
                  CUstream stream)

DEFINE_WORK_TWINS(cuMemcpyDtoDAsync_v2, (dst, src, bytes, stream),
                  cgs_call_copy(&call, CGS_COPY_DTOD, CU_MEMORYTYPE_DEVICE,
                                dst, CU_MEMORYTYPE_DEVICE, src, bytes),
                  CUdeviceptr dst, CUdeviceptr src, size_t bytes,
                  CUstream stream)

DEFINE_WORK_TWINS(cuMemcpyHtoDAsync_v2, (dst, src, bytes, stream),
                  cgs_call_copy(&call, CGS_COPY_HTOD, CU_MEMORYTYPE_DEVICE,
                                dst, CU_MEMORYTYPE_HOST, (uint64_t)src,
                                bytes),
                  CUdeviceptr dst, const void *src, size_t bytes,
                  CUstream stream)

DEFINE_WORK_TWINS(cuMemcpyDtoHAsync_v2, (dst, src, bytes, stream),
                  cgs_call_copy(&call, CGS_COPY_DTOH, CU_MEMORYTYPE_HOST,
                                (uint64_t)dst, CU_MEMORYTYPE_DEVICE, src,
                                bytes),
                  void *dst, CUdeviceptr src, size_t bytes, CUstream stream)

DEFINE_WORK_TWINS(cuMemcpy2DAsync_v2, (copy, stream),
                  fill_copy_2d(&call, copy),
                  const CUDA_MEMCPY2D *copy, CUstream stream)

DEFINE_WORK_TWINS(cuMemcpy3DAsync_v2, (copy, stream),
                  fill_copy_3d(&call, copy),
                  const CUDA_MEMCPY3D *copy, CUstream stream)

/* Sets */

#define DEFINE_SET(_name, _type, _size) \
    DEFINE_WORK_TWINS(_name, (dst, value, count, stream), \
                      cgs_call_set(&call, dst, 0, value, _size, count, 1, \
                                   false, false), \
                      CUdeviceptr dst, _type value, size_t count, \
                      CUstream stream)
#define DEFINE_SET_2D(_name, _type, _size) \
    DEFINE_WORK_TWINS(_name, (dst, pitch, value, width, height, stream), \
                      cgs_call_set(&call, dst, pitch, value, _size, width, \
                                   height, true, false), \
                      CUdeviceptr dst, size_t pitch, _type value, \
                      size_t width, size_t height, CUstream stream)

DEFINE_SET(cuMemsetD8Async, unsigned char, 1)
DEFINE_SET(cuMemsetD16Async, unsigned short, 2)
DEFINE_SET(cuMemsetD32Async, unsigned, 4)
DEFINE_SET_2D(cuMemsetD2D8Async, unsigned char, 1)
DEFINE_SET_2D(cuMemsetD2D16Async, unsigned short, 2)
DEFINE_SET_2D(cuMemsetD2D32Async, unsigned, 4)

/* Synchronous in name only: on device memory the host does not wait for these,
 * and they go to the default stream. Elsewhere they are barriers. */

#define DEFINE_DEFAULT_STREAM_TWINS(_name, _args, _fill, ...) \
    DEFINE_WORK(_name, CU_STREAM_LEGACY, _args, , _fill, __VA_ARGS__) \
    DEFINE_WORK(_name##_ptds, CU_STREAM_PER_THREAD, _args, , _fill, \
                __VA_ARGS__)

DEFINE_DEFAULT_STREAM_TWINS(cuMemcpyDtoD_v2, (dst, src, bytes),
                            cgs_call_copy(&call, CGS_COPY_DTOD_SYNC,
                                          CU_MEMORYTYPE_DEVICE, dst,
                                          CU_MEMORYTYPE_DEVICE, src, bytes),
                            CUdeviceptr dst, CUdeviceptr src, size_t bytes)

#define DEFINE_SYNC_SET(_name, _type, _size) \
    DEFINE_DEFAULT_STREAM_TWINS(_name, (dst, value, count), \
                                cgs_call_set(&call, dst, 0, value, _size, \
                                             count, 1, false, true), \
                                CUdeviceptr dst, _type value, size_t count)
#define DEFINE_SYNC_SET_2D(_name, _type, _size) \
    DEFINE_DEFAULT_STREAM_TWINS(_name, (dst, pitch, value, width, height), \
                                cgs_call_set(&call, dst, pitch, value, _size, \
                                             width, height, true, true), \
                                CUdeviceptr dst, size_t pitch, _type value, \
                                size_t width, size_t height)

DEFINE_SYNC_SET(cuMemsetD8_v2, unsigned char, 1)
DEFINE_SYNC_SET(cuMemsetD16_v2, unsigned short, 2)
DEFINE_SYNC_SET(cuMemsetD32_v2, unsigned, 4)
DEFINE_SYNC_SET_2D(cuMemsetD2D8_v2, unsigned char, 1)
DEFINE_SYNC_SET_2D(cuMemsetD2D16_v2, unsigned short, 2)
DEFINE_SYNC_SET_2D(cuMemsetD2D32_v2, unsigned, 4)

/* Host functions */

DEFINE_WORK_TWINS(cuLaunchHostFunc, (stream, function, data),
                  cgs_call_host(&call, function, data),
                  CUstream stream, CUhostFn function, void *data)

/* Stream-ordered frees. Outside of regions too they end what addresses mean. */

#define DEFINE_FREE(_name, _stream) \
    EXPORT CUresult _name(CUdeviceptr address, CUstream stream) \
    { \
        cgs_call_t    call; \
        cgs_verdict_t verdict; \
        CUresult      result; \
        \
        if (!cgs_gate_is_open()) { \
            cgs_memory_changed(); \
            return CGS_REAL(_name)(address, stream); \
        } \
        begin_call(&call, _stream); \
        cgs_call_free(&call, address); \
        verdict = cgs_flow_before(&call); \
        if (verdict == CGS_VERDICT_SWALLOWED) { \
            return call.result; \
        } \
        cgs_memory_changed(); \
        begin_real(); \
        result = CGS_REAL(_name)(address, stream); \
        end_real(); \
        return cgs_flow_after(&call, verdict, result); \
    }

DEFINE_FREE(cuMemFreeAsync, legacy_stream(stream))
DEFINE_FREE(cuMemFreeAsync_ptsz, per_thread_stream(stream))

/* Events */

DEFINE_WORK_TWINS(cuEventRecord, (event, stream),
                  cgs_call_event(&call, CGS_OP_RECORD, event, 0),
                  CUevent event, CUstream stream)
DEFINE_WORK_TWINS(cuEventRecordWithFlags, (event, stream, flags),
                  cgs_call_event(&call, CGS_OP_RECORD, event, flags),
                  CUevent event, CUstream stream, unsigned flags)
DEFINE_WORK_TWINS(cuStreamWaitEvent, (stream, event, flags),
                  cgs_call_event(&call, CGS_OP_WAIT, event, flags),
                  CUstream stream, CUevent event, unsigned flags)

/* Waiting and asking: issues what is held back on what it looks at. */

#define DEFINE_WAIT(_name, _args, _note, _wait, ...) \
    EXPORT CUresult _name(__VA_ARGS__) \
    { \
        _note; \
        if (cgs_gate_is_open()) { \
            _wait; \
        } \
        return CGS_REAL(_name) _args; \
    }
#define DEFINE_STREAM_WAIT(_name, _note) \
    DEFINE_WAIT(_name, (handle), _note, \
                cgs_flow_wait_stream(legacy_stream(handle), \
                                     CGS_INDEX_##_name), \
                CUstream handle) \
    DEFINE_WAIT(_name##_ptsz, (handle), _note, \
                cgs_flow_wait_stream(per_thread_stream(handle), \
                                     CGS_INDEX_##_name##_ptsz), \
                CUstream handle)
#define DEFINE_EVENT_WAIT(_name, _note) \
    DEFINE_WAIT(_name, (handle), _note, \
                cgs_flow_wait_event(handle, CGS_INDEX_##_name), \
                CUevent handle)
#define DEFINE_BARRIER_WAIT(_name, _args, ...) \
    DEFINE_WAIT(_name, _args, cgs_flow_note_wait(), \
                cgs_barrier(CGS_INDEX_##_name, CGS_KIND_BARRIER), __VA_ARGS__)

DEFINE_STREAM_WAIT(cuStreamSynchronize, cgs_flow_note_wait())
DEFINE_STREAM_WAIT(cuStreamQuery, )
DEFINE_EVENT_WAIT(cuEventSynchronize, cgs_flow_note_wait())
DEFINE_EVENT_WAIT(cuEventQuery, )
DEFINE_BARRIER_WAIT(cuCtxSynchronize, (), void)
DEFINE_BARRIER_WAIT(cuCtxSynchronize_v2, (ctx), CUcontext ctx)

/* Barriers whose work may not run while a graph is verified. `_note` says that
 * the program waits for the device. */

#define DEFINE_BARRIER(_name, _args, _note, ...) \
    EXPORT CUresult _name(__VA_ARGS__) \
    { \
        CUresult result; \
        \
        _note; \
        if (!cgs_gate_is_open()) { \
            return CGS_REAL(_name) _args; \
        } \
        cgs_barrier(CGS_INDEX_##_name, CGS_KIND_BARRIER); \
        cgs_turns_begin(); \
        result = CGS_REAL(_name) _args; \
        cgs_turns_end(); \
        return result; \
    }
#define DEFINE_BARRIER_TWINS(_name, _twin, _args, _note, ...) \
    DEFINE_BARRIER(_name, _args, _note, __VA_ARGS__) \
    DEFINE_BARRIER(_name##_twin, _args, _note, __VA_ARGS__)

DEFINE_BARRIER_TWINS(cuMemcpyDtoH_v2, _ptds, (dst, src, bytes),
                     cgs_flow_note_wait(), void *dst, CUdeviceptr src,
                     size_t bytes)
DEFINE_BARRIER_TWINS(cuMemcpy, _ptds, (dst, src, bytes), cgs_flow_note_wait(),
                     CUdeviceptr dst, CUdeviceptr src, size_t bytes)
DEFINE_BARRIER_TWINS(cuMemcpyHtoD_v2, _ptds, (dst, src, bytes), ,
                     CUdeviceptr dst, const void *src, size_t bytes)
DEFINE_BARRIER_TWINS(cuMemcpyPeer, _ptds, (dst, dst_ctx, src, src_ctx, bytes),
                     , CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src,
                     CUcontext src_ctx, size_t bytes)
DEFINE_BARRIER_TWINS(cuMemcpy2D_v2, _ptds, (copy), , const CUDA_MEMCPY2D *copy)
DEFINE_BARRIER_TWINS(cuMemcpy2DUnaligned_v2, _ptds, (copy), ,
                     const CUDA_MEMCPY2D *copy)
DEFINE_BARRIER_TWINS(cuMemcpy3D_v2, _ptds, (copy), , const CUDA_MEMCPY3D *copy)
DEFINE_BARRIER_TWINS(cuMemcpyPeerAsync, _ptsz,
                     (dst, dst_ctx, src, src_ctx, bytes, stream), ,
                     CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src,
                     CUcontext src_ctx, size_t bytes, CUstream stream)
DEFINE_BARRIER_TWINS(cuGraphLaunch, _ptsz, (exec, stream), , CUgraphExec exec,
                     CUstream stream)

/* Allocations run at once. Where there is no memory left, the program must not
 * go without what our graphs hold. */

#define DEFINE_ALLOCATION(_name, _args, ...) \
    EXPORT CUresult _name(__VA_ARGS__) \
    { \
        CUresult result = CGS_REAL(_name) _args; \
        \
        if (unlikely(result == CUDA_ERROR_OUT_OF_MEMORY) && \
            cgs_flow_release_memory()) { \
            result = CGS_REAL(_name) _args; \
        } \
        return result; \
    }

DEFINE_ALLOCATION(cuMemAlloc_v2, (address, bytes), CUdeviceptr *address,
                  size_t bytes)
DEFINE_ALLOCATION(cuMemAllocPitch_v2, (address, pitch, width, height, element),
                  CUdeviceptr *address, size_t *pitch, size_t width,
                  size_t height, unsigned element)
DEFINE_ALLOCATION(cuMemAllocManaged, (address, bytes, flags),
                  CUdeviceptr *address, size_t bytes, unsigned flags)
DEFINE_ALLOCATION(cuMemAllocAsync, (address, bytes, stream),
                  CUdeviceptr *address, size_t bytes, CUstream stream)
DEFINE_ALLOCATION(cuMemAllocAsync_ptsz, (address, bytes, stream),
                  CUdeviceptr *address, size_t bytes, CUstream stream)
DEFINE_ALLOCATION(cuMemAllocFromPoolAsync, (address, bytes, pool, stream),
                  CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                  CUstream stream)
DEFINE_ALLOCATION(cuMemAllocFromPoolAsync_ptsz, (address, bytes, pool, stream),
                  CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
                  CUstream stream)
DEFINE_ALLOCATION(cuMemCreate, (handle, bytes, properties, flags),
                  CUmemGenericAllocationHandle *handle, size_t bytes,
                  const CUmemAllocationProp *properties,
                  unsigned long long flags)
DEFINE_ALLOCATION(cuArrayCreate_v2, (array, descriptor), CUarray *array,
                  const CUDA_ARRAY_DESCRIPTOR *descriptor)
DEFINE_ALLOCATION(cuArray3DCreate_v2, (array, descriptor), CUarray *array,
                  const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
DEFINE_ALLOCATION(cuMipmappedArrayCreate, (array, descriptor, levels),
                  CUmipmappedArray *array,
                  const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels)

EXPORT CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    CUresult result = CGS_REAL(cuEventCreate)(event, flags);

    if ((result == CUDA_SUCCESS) && !cgs_life_is_off()) {
        cgs_event_created(*event, flags);
    }
    return result;
}

EXPORT CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
    CUresult result;

    if (cgs_gate_is_open()) {
        cgs_barrier(CGS_INDEX_cuIpcOpenEventHandle, CGS_KIND_BARRIER);
    }
    result = CGS_REAL(cuIpcOpenEventHandle)(event, handle);
    if ((result == CUDA_SUCCESS) && !cgs_life_is_off()) {
        cgs_event_created(*event, CU_EVENT_DISABLE_TIMING |
                                  CU_EVENT_INTERPROCESS);
    }
    return result;
}

/* The current context: no barrier, but known no more. */

EXPORT CUresult cuCtxSetCurrent(CUcontext ctx)
{
    cgs_self.ctx_known = false;
    return CGS_REAL(cuCtxSetCurrent)(ctx);
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
    cgs_self.ctx_known = false;
    return CGS_REAL(cuCtxPushCurrent_v2)(ctx);
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *ctx)
{
    cgs_self.ctx_known = false;
    return CGS_REAL(cuCtxPopCurrent_v2)(ctx);
}

/* Attributes of kernels: nodes hold the values they were built with, so a new
 * value for a kernel in use ends the graphs. Frameworks set the same values
 * before every launch; that costs nothing. */

EXPORT CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute attribute,
                                   int value)
{
    CUresult result;

    if (cgs_life_is_off()) {
        return CGS_REAL(cuFuncSetAttribute)(f, attribute, value);
    }
    if (cgs_function_attribute(f, NULL, attribute, value, -1) ==
        CGS_ATTRIBUTE_IN_USE) {
        cgs_barrier(CGS_INDEX_cuFuncSetAttribute, CGS_KIND_DROP);
    }
    result = CGS_REAL(cuFuncSetAttribute)(f, attribute, value);
    if (result == CUDA_SUCCESS) {
        cgs_function_set_attribute(f, attribute, value, -1);
    }
    return result;
}

EXPORT CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value,
                                     CUkernel kernel, CUdevice device)
{
    CUfunction             handle = (CUfunction)kernel;
    CUfunction             alias  = NULL;
    cgs_attribute_change_t change;
    CUresult               result;

    if (cgs_life_is_off()) {
        return CGS_REAL(cuKernelSetAttribute)(attribute, value, kernel,
                                              device);
    }
    change = cgs_function_attribute(handle, NULL, attribute, value, device);
    if ((change != CGS_ATTRIBUTE_SAME) &&
        (CGS_REAL(cuKernelGetFunction)(&alias, kernel) == CUDA_SUCCESS)) {
        change = cgs_function_attribute(handle, alias, attribute, value,
                                        device);
    }
    if (change == CGS_ATTRIBUTE_IN_USE) {
        cgs_barrier(CGS_INDEX_cuKernelSetAttribute, CGS_KIND_DROP);
    }
    result = CGS_REAL(cuKernelSetAttribute)(attribute, value, kernel, device);
    if (result == CUDA_SUCCESS) {
        if (alias != NULL) {
            cgs_function_link(handle, alias);
        }
        cgs_function_set_attribute(handle, attribute, value, device);
    }
    return result;
}

/* Attributes of streams that nodes hold too. */

#define DEFINE_STREAM_SET_ATTRIBUTE(_name, _get) \
    EXPORT CUresult _name(CUstream stream, CUstreamAttrID id, \
                          const CUstreamAttrValue *value) \
    { \
        CUstreamAttrValue old; \
        size_t            size = cgs_stream_attr_size(id); \
        \
        memset(&old, 0, sizeof(old)); \
        if (!cgs_life_is_off() && (value != NULL) && \
            ((CGS_REAL(_get)(stream, id, &old) != CUDA_SUCCESS) || \
             (memcmp(&old, value, size) != 0))) { \
            cgs_barrier(CGS_INDEX_##_name, \
                        size > 0 ? CGS_KIND_DROP : CGS_KIND_BARRIER); \
        } \
        return CGS_REAL(_name)(stream, id, value); \
    }

DEFINE_STREAM_SET_ATTRIBUTE(cuStreamSetAttribute, cuStreamGetAttribute)
DEFINE_STREAM_SET_ATTRIBUTE(cuStreamSetAttribute_ptsz,
                            cuStreamGetAttribute_ptsz)

/* Captures of the program's own: everything passes while one is open. */

#define DEFINE_BEGIN_CAPTURE(_name, _args, ...) \
    EXPORT CUresult _name(__VA_ARGS__) \
    { \
        CUresult result; \
        \
        cgs_flow_capture(1); \
        cgs_barrier(CGS_INDEX_##_name, CGS_KIND_BARRIER); \
        result = CGS_REAL(_name) _args; \
        if (result != CUDA_SUCCESS) { \
            cgs_flow_capture(-1); \
        } \
        return result; \
    }

DEFINE_BEGIN_CAPTURE(cuStreamBeginCapture, (stream), CUstream stream)
DEFINE_BEGIN_CAPTURE(cuStreamBeginCapture_ptsz, (stream), CUstream stream)
DEFINE_BEGIN_CAPTURE(cuStreamBeginCapture_v2, (stream, mode), CUstream stream,
                     CUstreamCaptureMode mode)
DEFINE_BEGIN_CAPTURE(cuStreamBeginCapture_v2_ptsz, (stream, mode),
                     CUstream stream, CUstreamCaptureMode mode)
DEFINE_BEGIN_CAPTURE(cuStreamBeginCaptureToGraph,
                     (stream, graph, dependencies, edges, num, mode),
                     CUstream stream, CUgraph graph,
                     const CUgraphNode *dependencies,
                     const CUgraphEdgeData *edges, size_t num,
                     CUstreamCaptureMode mode)
DEFINE_BEGIN_CAPTURE(cuStreamBeginCaptureToGraph_ptsz,
                     (stream, graph, dependencies, edges, num, mode),
                     CUstream stream, CUgraph graph,
                     const CUgraphNode *dependencies,
                     const CUgraphEdgeData *edges, size_t num,
                     CUstreamCaptureMode mode)

/* These end the capture; other errors say that there was none to end. */
static CUresult end_capture(CUresult result)
{
    if ((result == CUDA_SUCCESS) ||
        (result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) ||
        (result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED)) {
        cgs_flow_capture(-1);
    }
    return result;
}

EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    return end_capture(CGS_REAL(cuStreamEndCapture)(stream, graph));
}

EXPORT CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph *graph)
{
    return end_capture(CGS_REAL(cuStreamEndCapture_ptsz)(stream, graph));
}

/* The third door, and the beginning. */

EXPORT CUresult cuGetProcAddress(const char *symbol, void **pfn, int version,
                                 cuuint64_t flags)
{
    CUresult result = CGS_REAL(cuGetProcAddress)(symbol, pfn, version, flags);

    if ((result == CUDA_SUCCESS) && (pfn != NULL)) {
        *pfn = cgs_door_map(*pfn, symbol);
    }
    return result;
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn,
                                    int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *status)
{
    CUresult result = CGS_REAL(cuGetProcAddress_v2)(symbol, pfn, version,
                                                    flags, status);

    if ((result == CUDA_SUCCESS) && (pfn != NULL)) {
        *pfn = cgs_door_map(*pfn, symbol);
    }
    return result;
}

EXPORT CUresult cuInit(unsigned flags)
{
    CUresult result = CGS_REAL(cuInit)(flags);

    if (result == CUDA_SUCCESS) {
        cgs_life_driver_ready();
    }
    return result;
}
