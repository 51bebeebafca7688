/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices and contexts of the simulated driver, and each thread's stack of
 * contexts.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Guarded by sim_lock. A primary context keeps its handle for ever. */
static struct {
    sim_ctx_t *primary;
    unsigned   primary_flags;
} sim_devices[SIM_MAX_DEVICES];

static uint64_t sim_last_ctx_id;

CUresult sim_device_check(CUdevice device)
{
    return ((device >= 0) && (device < sim_config()->num_devices)) ?
           CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/* ---------------------------------------------------------- contexts */

static sim_ctx_t *sim_ctx_new(CUdevice device, unsigned flags, bool primary)
{
    sim_ctx_t *ctx = sim_alloc(sizeof(*ctx));

    ctx->device      = device;
    ctx->flags       = flags;
    ctx->primary     = primary;
    ctx->api_version = 3020;
    ctx->handle      = sim_handle_new(SIM_KIND_CTX, ctx);
    return ctx;
}

static void sim_ctx_activate(sim_ctx_t *ctx)
{
    ctx->uid    = ++sim_last_ctx_id;
    ctx->active = true;
    ctx->limits[CU_LIMIT_STACK_SIZE]                       = 1024;
    ctx->limits[CU_LIMIT_PRINTF_FIFO_SIZE]                 = 1 << 20;
    ctx->limits[CU_LIMIT_MALLOC_HEAP_SIZE]                 = 8 << 20;
    ctx->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH]           = 2;
    ctx->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
    ctx->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY]         = 64;
    ctx->limits[CU_LIMIT_PERSISTING_L2_CACHE_SIZE]         = 0;
    ctx->cache_config = CU_FUNC_CACHE_PREFER_NONE;
    ctx->legacy       = sim_stream_make(ctx, 0, 0);
    ctx->legacy->handle = CU_STREAM_LEGACY;
}

/* Ends all that lives in the context, once its work is done. The wait gives
 * the lock up, so this comes before anything is taken apart. */
static void sim_ctx_deactivate(sim_ctx_t *ctx)
{
    size_t i;

    ctx->active = false;
    sim_streams_destroy(ctx);
    sim_modules_destroy(ctx);
    sim_mem_ctx_end(ctx->uid);
    for (i = 0; i < ctx->num_orphans; ++i) {
        sim_task_unref(ctx->orphans[i]);
    }
    free(ctx->orphans);
    ctx->orphans     = NULL;
    ctx->num_orphans = ctx->max_orphans = 0;
    ctx->uid         = 0;
}

sim_ctx_t *sim_ctx_by_uid(uint64_t uid)
{
    size_t i;

    for (i = 0; (uid != 0) && (i < sim_handle_slots(SIM_KIND_CTX)); ++i) {
        sim_ctx_t *ctx = sim_handle_at(SIM_KIND_CTX, i);

        if ((ctx != NULL) && (ctx->uid == uid)) {
            return ctx;
        }
    }
    return NULL;
}

CUresult sim_ctx_current(sim_ctx_t **ctx_p)
{
    const sim_thread_t *thread = sim_thread();
    sim_ctx_t          *ctx;

    if ((thread->depth == 0) ||
        (thread->stack[thread->depth - 1].handle == NULL)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    ctx = sim_handle_get(SIM_KIND_CTX,
                         thread->stack[thread->depth - 1].handle);
    /* A primary context that was reset and retained again is itself again;
     * another context under a destroyed one's handle is not. */
    if ((ctx == NULL) || !ctx->active ||
        (!ctx->primary &&
         (ctx->uid != thread->stack[thread->depth - 1].uid))) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    *ctx_p = ctx;
    return CUDA_SUCCESS;
}

CUresult sim_ctx_get(CUcontext handle, sim_ctx_t **ctx_p)
{
    sim_ctx_t *ctx;

    if (handle == NULL) {
        return sim_ctx_current(ctx_p);
    }
    ctx = sim_handle_get(SIM_KIND_CTX, handle);
    if (ctx == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    } else if (!ctx->active) {
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    }
    *ctx_p = ctx;
    return CUDA_SUCCESS;
}

static CUresult sim_ctx_push(CUcontext handle)
{
    sim_thread_t *thread = sim_thread();
    sim_ctx_t    *ctx    = sim_handle_get(SIM_KIND_CTX, handle);

    if (ctx == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    } else if (thread->depth == SIM_MAX_STACK) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    thread->stack[thread->depth].handle = handle;
    thread->stack[thread->depth].uid    = ctx->uid;
    ++thread->depth;
    return CUDA_SUCCESS;
}

static CUresult sim_ctx_pop(CUcontext *handle)
{
    sim_thread_t *thread = sim_thread();

    if (thread->depth == 0) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    --thread->depth;
    if (handle != NULL) {
        *handle = thread->stack[thread->depth].handle;
    }
    return CUDA_SUCCESS;
}

/* Replaces the top of the stack; NULL takes it off. */
static CUresult sim_ctx_set(CUcontext handle)
{
    sim_thread_t *thread = sim_thread();

    if (handle == NULL) {
        if (thread->depth > 0) {
            --thread->depth;
        }
        return CUDA_SUCCESS;
    } else if (sim_handle_get(SIM_KIND_CTX, handle) == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (thread->depth > 0) {
        --thread->depth;
    }
    return sim_ctx_push(handle);
}

static CUresult sim_ctx_create(CUcontext *handle, unsigned flags,
                               CUdevice device)
{
    CUresult   status = sim_device_check(device);
    sim_ctx_t *ctx;

    if (status != CUDA_SUCCESS) {
        return status;
    } else if ((handle == NULL) || (flags & ~(unsigned)CU_CTX_FLAGS_MASK)) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if (sim_thread()->depth == SIM_MAX_STACK) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }

    ctx = sim_ctx_new(device, flags, false);
    sim_ctx_activate(ctx);
    *handle = ctx->handle;
    return sim_ctx_push(ctx->handle);
}

static CUresult sim_ctx_destroy(CUcontext handle)
{
    sim_thread_t *thread = sim_thread();
    sim_ctx_t    *ctx    = sim_handle_get(SIM_KIND_CTX, handle);
    uint64_t      uid;

    if ((ctx == NULL) || ctx->primary) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }

    uid = ctx->uid;
    sim_sched_wait(uid);
    ctx = sim_ctx_by_uid(uid);
    if (ctx == NULL) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    sim_ctx_deactivate(ctx);
    if ((thread->depth > 0) &&
        (thread->stack[thread->depth - 1].handle == handle)) {
        --thread->depth;
    }
    sim_handle_free(SIM_KIND_CTX, handle);
    free(ctx);
    return CUDA_SUCCESS;
}

SIM_ENTRY(cuCtxCreate, (CUcontext *pctx, unsigned int flags, CUdevice dev), 0,
          sim_ctx_create(pctx, flags, dev))
SIM_ENTRY(cuCtxCreate_v2, (CUcontext *pctx, unsigned int flags, CUdevice dev),
          0, sim_ctx_create(pctx, flags, dev))
SIM_ENTRY(cuCtxCreate_v3,
          (CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
           unsigned int flags, CUdevice dev), 0,
          ((paramsArray != NULL) || (numParams != 0)) ?
          CUDA_ERROR_NOT_SUPPORTED : sim_ctx_create(pctx, flags, dev))
SIM_ENTRY(cuCtxCreate_v4,
          (CUcontext *pctx, CUctxCreateParams *ctxCreateParams,
           unsigned int flags, CUdevice dev), 0,
          ((ctxCreateParams != NULL) &&
           ((ctxCreateParams->numExecAffinityParams != 0) ||
            (ctxCreateParams->cigParams != NULL))) ?
          CUDA_ERROR_NOT_SUPPORTED : sim_ctx_create(pctx, flags, dev))
SIM_ENTRY(cuCtxDestroy, (CUcontext ctx), 0, sim_ctx_destroy(ctx))
SIM_ENTRY(cuCtxDestroy_v2, (CUcontext ctx), 0, sim_ctx_destroy(ctx))
SIM_ENTRY(cuCtxPushCurrent, (CUcontext ctx), 0, sim_ctx_push(ctx))
SIM_ENTRY(cuCtxPushCurrent_v2, (CUcontext ctx), 0, sim_ctx_push(ctx))
SIM_ENTRY(cuCtxPopCurrent, (CUcontext *pctx), 0, sim_ctx_pop(pctx))
SIM_ENTRY(cuCtxPopCurrent_v2, (CUcontext *pctx), 0, sim_ctx_pop(pctx))
SIM_ENTRY(cuCtxSetCurrent, (CUcontext ctx), 0, sim_ctx_set(ctx))

static CUresult sim_ctx_get_current(CUcontext *handle)
{
    const sim_thread_t *thread = sim_thread();

    if (handle == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *handle = (thread->depth == 0) ? NULL :
              thread->stack[thread->depth - 1].handle;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuCtxGetCurrent, (CUcontext *pctx), 0, sim_ctx_get_current(pctx))

static CUresult sim_ctx_get_device(CUdevice *device, CUcontext handle)
{
    sim_ctx_t *ctx;
    CUresult   status = sim_ctx_get(handle, &ctx);

    if (status == CUDA_SUCCESS) {
        if (device == NULL) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        *device = ctx->device;
    }
    return status;
}
SIM_ENTRY(cuCtxGetDevice, (CUdevice *device), 0,
          sim_ctx_get_device(device, NULL))
SIM_ENTRY(cuCtxGetDevice_v2, (CUdevice *device, CUcontext ctx), 0,
          sim_ctx_get_device(device, ctx))

static CUresult sim_ctx_get_flags(unsigned *flags)
{
    sim_ctx_t *ctx;
    CUresult   status = sim_ctx_current(&ctx);

    if (status == CUDA_SUCCESS) {
        *flags = ctx->flags;
    }
    return status;
}
SIM_ENTRY(cuCtxGetFlags, (unsigned int *flags), SIM_CTX,
          sim_ctx_get_flags(flags))

static CUresult sim_ctx_set_flags(unsigned flags)
{
    sim_ctx_t *ctx;
    CUresult   status = sim_ctx_current(&ctx);

    if (status == CUDA_SUCCESS) {
        if (flags & ~(unsigned)CU_CTX_FLAGS_MASK) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        ctx->flags = flags;
    }
    return status;
}
SIM_ENTRY(cuCtxSetFlags, (unsigned int flags), SIM_CTX,
          sim_ctx_set_flags(flags))

static CUresult sim_ctx_get_id(CUcontext handle, unsigned long long *id)
{
    sim_ctx_t *ctx;
    CUresult   status = sim_ctx_get(handle, &ctx);

    if (status == CUDA_SUCCESS) {
        *id = ctx->uid;
    }
    return status;
}
SIM_ENTRY(cuCtxGetId, (CUcontext ctx, unsigned long long *ctxId), 0,
          sim_ctx_get_id(ctx, ctxId))

static CUresult sim_ctx_get_version(CUcontext handle, unsigned *version)
{
    sim_ctx_t *ctx;
    CUresult   status = sim_ctx_get(handle, &ctx);

    if (status == CUDA_SUCCESS) {
        *version = ctx->api_version;
    }
    return status;
}
SIM_ENTRY(cuCtxGetApiVersion, (CUcontext ctx, unsigned int *version), 0,
          sim_ctx_get_version(ctx, version))

static CUresult sim_ctx_limit(CUlimit limit, size_t *get, const size_t *set)
{
    sim_ctx_t *ctx;
    CUresult   status = sim_ctx_current(&ctx);

    if (status != CUDA_SUCCESS) {
        return status;
    } else if ((unsigned)limit >= CU_LIMIT_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if (limit > CU_LIMIT_PERSISTING_L2_CACHE_SIZE) {
        return CUDA_ERROR_UNSUPPORTED_LIMIT;
    }
    if (set != NULL) {
        ctx->limits[limit] = *set;
    } else {
        *get = ctx->limits[limit];
    }
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuCtxSetLimit, (CUlimit limit, size_t value), SIM_CTX,
          sim_ctx_limit(limit, NULL, &value))
SIM_ENTRY(cuCtxGetLimit, (size_t *pvalue, CUlimit limit), SIM_CTX,
          sim_ctx_limit(limit, pvalue, NULL))

static CUresult sim_ctx_cache(CUfunc_cache *get, const CUfunc_cache *set)
{
    sim_ctx_t *ctx;
    CUresult   status = sim_ctx_current(&ctx);

    if (status != CUDA_SUCCESS) {
        return status;
    } else if (set != NULL) {
        ctx->cache_config = *set;
    } else {
        *get = ctx->cache_config;
    }
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuCtxGetCacheConfig, (CUfunc_cache *pconfig), SIM_CTX,
          sim_ctx_cache(pconfig, NULL))
SIM_ENTRY(cuCtxSetCacheConfig, (CUfunc_cache config), SIM_CTX,
          sim_ctx_cache(NULL, &config))

static CUresult sim_ctx_priorities(int *least, int *greatest)
{
    if (least != NULL) {
        *least = 0;
    }
    if (greatest != NULL) {
        *greatest = -5;
    }
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuCtxGetStreamPriorityRange,
          (int *leastPriority, int *greatestPriority), SIM_CTX,
          sim_ctx_priorities(leastPriority, greatestPriority))

static CUresult sim_ctx_synchronize(CUcontext handle)
{
    sim_ctx_t *ctx;
    CUresult   status = sim_ctx_get(handle, &ctx);

    if (status != CUDA_SUCCESS) {
        return status;
    }
    status = sim_capture_check_ctx(ctx);
    if (status == CUDA_SUCCESS) {
        sim_sched_wait(ctx->uid);
    }
    return status;
}
SIM_ENTRY(cuCtxSynchronize, (void), SIM_CTX, sim_ctx_synchronize(NULL))
SIM_ENTRY(cuCtxSynchronize_v2, (CUcontext ctx), 0, sim_ctx_synchronize(ctx))

/* ---------------------------------------------------------- primary */

static CUresult sim_primary_retain(CUcontext *handle, CUdevice device)
{
    CUresult    status = sim_device_check(device);
    sim_ctx_t **place;

    if (status != CUDA_SUCCESS) {
        return status;
    } else if (handle == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }

    place = &sim_devices[device].primary;
    if (*place == NULL) {
        *place = sim_ctx_new(device, 0, true);
    }
    if (!(*place)->active) {
        (*place)->flags = sim_devices[device].primary_flags;
        sim_ctx_activate(*place);
    }
    ++(*place)->refs;
    *handle = (*place)->handle;
    return CUDA_SUCCESS;
}

/* Gives up one retain, or all. */
static CUresult sim_primary_release(CUdevice device, bool all)
{
    CUresult   status = sim_device_check(device);
    sim_ctx_t *ctx;
    uint64_t   uid;

    if (status != CUDA_SUCCESS) {
        return status;
    }
    ctx = sim_devices[device].primary;
    if ((ctx == NULL) || !ctx->active) {
        return all ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    }
    if (!all && (ctx->refs > 1)) {
        --ctx->refs;
        return CUDA_SUCCESS;
    }

    uid = ctx->uid;
    sim_sched_wait(uid);
    if (ctx->active && (ctx->uid == uid)) {
        ctx->refs = 0;
        sim_ctx_deactivate(ctx);
    }
    return CUDA_SUCCESS;
}

static CUresult sim_primary_set_flags(CUdevice device, unsigned flags)
{
    CUresult status = sim_device_check(device);

    if (status == CUDA_SUCCESS) {
        if (flags & ~(unsigned)CU_CTX_FLAGS_MASK) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        sim_devices[device].primary_flags = flags;
        if (sim_devices[device].primary != NULL) {
            sim_devices[device].primary->flags = flags;
        }
    }
    return status;
}

static CUresult sim_primary_state(CUdevice device, unsigned *flags,
                                  int *active)
{
    CUresult         status = sim_device_check(device);
    const sim_ctx_t *ctx;

    if (status == CUDA_SUCCESS) {
        ctx = sim_devices[device].primary;
        if (flags != NULL) {
            *flags = sim_devices[device].primary_flags;
        }
        if (active != NULL) {
            *active = (ctx != NULL) && ctx->active;
        }
    }
    return status;
}

SIM_ENTRY(cuDevicePrimaryCtxRetain, (CUcontext *pctx, CUdevice dev), 0,
          sim_primary_retain(pctx, dev))
SIM_ENTRY(cuDevicePrimaryCtxRelease, (CUdevice dev), 0,
          sim_primary_release(dev, false))
SIM_ENTRY(cuDevicePrimaryCtxRelease_v2, (CUdevice dev), 0,
          sim_primary_release(dev, false))
SIM_ENTRY(cuDevicePrimaryCtxReset, (CUdevice dev), 0,
          sim_primary_release(dev, true))
SIM_ENTRY(cuDevicePrimaryCtxReset_v2, (CUdevice dev), 0,
          sim_primary_release(dev, true))
SIM_ENTRY(cuDevicePrimaryCtxSetFlags, (CUdevice dev, unsigned int flags), 0,
          sim_primary_set_flags(dev, flags))
SIM_ENTRY(cuDevicePrimaryCtxSetFlags_v2, (CUdevice dev, unsigned int flags),
          0, sim_primary_set_flags(dev, flags))
SIM_ENTRY(cuDevicePrimaryCtxGetState,
          (CUdevice dev, unsigned int *flags, int *active), 0,
          sim_primary_state(dev, flags, active))

/* ---------------------------------------------------------- devices */

static CUresult sim_device_get(CUdevice *device, int ordinal)
{
    if (device == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if (sim_device_check(ordinal) != CUDA_SUCCESS) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *device = ordinal;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuDeviceGet, (CUdevice *device, int ordinal), 0,
          sim_device_get(device, ordinal))

static CUresult sim_device_count(int *count)
{
    if (count == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *count = sim_config()->num_devices;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuDeviceGetCount, (int *count), 0, sim_device_count(count))

static CUresult sim_device_name(char *name, int length, CUdevice device)
{
    CUresult status = sim_device_check(device);

    if (status == CUDA_SUCCESS) {
        if ((name == NULL) || (length <= 0)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        snprintf(name, (size_t)length, "Simulated GPU");
    }
    return status;
}
SIM_ENTRY(cuDeviceGetName, (char *name, int len, CUdevice dev), 0,
          sim_device_name(name, len, dev))

static CUresult sim_device_uuid(CUuuid *uuid, CUdevice device)
{
    CUresult status = sim_device_check(device);

    if (status == CUDA_SUCCESS) {
        memset(uuid, 0x51, sizeof(*uuid));
        uuid->bytes[15] = (char)device;
    }
    return status;
}
SIM_ENTRY(cuDeviceGetUuid, (CUuuid *uuid, CUdevice dev), 0,
          sim_device_uuid(uuid, dev))
SIM_ENTRY(cuDeviceGetUuid_v2, (CUuuid *uuid, CUdevice dev), 0,
          sim_device_uuid(uuid, dev))

static CUresult sim_device_memory(size_t *bytes, unsigned *bytes_v1,
                                  CUdevice device)
{
    CUresult status = sim_device_check(device);
    size_t   total  = sim_config()->memory;

    if (status == CUDA_SUCCESS) {
        if (bytes != NULL) {
            *bytes = total;
        }
        if (bytes_v1 != NULL) {
            *bytes_v1 = (total > UINT32_MAX) ? UINT32_MAX : (unsigned)total;
        }
    }
    return status;
}
SIM_ENTRY(cuDeviceTotalMem, (unsigned int *bytes, CUdevice dev), 0,
          sim_device_memory(NULL, bytes, dev))
SIM_ENTRY(cuDeviceTotalMem_v2, (size_t *bytes, CUdevice dev), 0,
          sim_device_memory(bytes, NULL, dev))

/* Those that a program may decide by; all others are 0. */
static const struct {
    CUdevice_attribute id;
    int                value;
} sim_device_attrs[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, SIM_SHARED_DEFAULT},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, SIM_NUM_SMS},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 1},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 228 * 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, SIM_SHARED_MAX},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1},
};

static CUresult sim_device_attr(int *value, CUdevice_attribute id,
                                CUdevice device)
{
    CUresult status = sim_device_check(device);
    size_t   i;

    if (status != CUDA_SUCCESS) {
        return status;
    } else if ((value == NULL) || ((int)id <= 0) ||
               (id >= CU_DEVICE_ATTRIBUTE_MAX)) {
        return CUDA_ERROR_INVALID_VALUE;
    }

    *value = 0;
    for (i = 0; i < SIM_ARRAY_SIZE(sim_device_attrs); ++i) {
        if (sim_device_attrs[i].id == id) {
            *value = sim_device_attrs[i].value;
        }
    }
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuDeviceGetAttribute,
          (int *pi, CUdevice_attribute attrib, CUdevice dev), 0,
          sim_device_attr(pi, attrib, dev))

static CUresult sim_device_peer(int *can, CUdevice a, CUdevice b)
{
    if ((sim_device_check(a) != CUDA_SUCCESS) ||
        (sim_device_check(b) != CUDA_SUCCESS)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *can = a != b;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuDeviceCanAccessPeer,
          (int *canAccessPeer, CUdevice dev, CUdevice peerDev), 0,
          sim_device_peer(canAccessPeer, dev, peerDev))

static CUresult sim_driver_version(int *version)
{
    if (version == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *version = sim_config()->driver_version;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuDriverGetVersion, (int *driverVersion), SIM_ANYTIME,
          sim_driver_version(driverVersion))
SIM_ENTRY(cuProfilerStart, (void), SIM_CTX, CUDA_SUCCESS)
SIM_ENTRY(cuProfilerStop, (void), SIM_CTX, CUDA_SUCCESS)
