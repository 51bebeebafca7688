/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What CUDA shares with others: semaphores of another API, events of another
 * process, and memory that is mapped by hand.
 */
#include "sim.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ------------------------------------------------- external semaphores */

/* A timeline is a word that only grows; its handle is the word's address. */
static CUresult
sim_semaphore_import(CUexternalSemaphore *semaphore,
                     const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *what)
{
    sim_ctx_t  *ctx;
    CUdeviceptr word;
    CUresult    status = sim_ctx_current(&ctx);

    if (status != CUDA_SUCCESS) {
        return status;
    } else if ((semaphore == NULL) || (what == NULL) ||
               (what->type !=
                CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    status = sim_mem_global(ctx, sizeof(uint64_t), NULL, &word);
    if (status == CUDA_SUCCESS) {
        sim_mem_open();
        memset((void *)word, 0, sizeof(uint64_t));
        sim_mem_close();
        *semaphore = (CUexternalSemaphore)word;
    }
    return status;
}
SIM_ENTRY(cuImportExternalSemaphore,
          (CUexternalSemaphore *extSem_out,
           const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *semHandleDesc), SIM_CTX,
          sim_semaphore_import(extSem_out, semHandleDesc))

static CUresult sim_semaphore_destroy(CUexternalSemaphore semaphore)
{
    sim_mem_global_free((CUdeviceptr)semaphore);
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuDestroyExternalSemaphore, (CUexternalSemaphore extSem), SIM_CTX,
          sim_semaphore_destroy(extSem))

static CUresult
sim_semaphores_signal(const CUexternalSemaphore *semaphores,
                      const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *params,
                      unsigned num, CUstream stream, int twin)
{
    CUresult status = CUDA_SUCCESS;
    unsigned i;

    for (i = 0; (status == CUDA_SUCCESS) && (i < num); ++i) {
        status = sim_memop(stream, twin, CU_STREAM_MEM_OP_WRITE_VALUE_64,
                           (CUdeviceptr)semaphores[i],
                           params[i].params.fence.value, 0);
    }
    return status;
}
SIM_ENTRY_PTSZ(cuSignalExternalSemaphoresAsync,
               (const CUexternalSemaphore *extSemArray,
                const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *paramsArray,
                unsigned int numExtSems, CUstream stream), SIM_CTX,
               sim_semaphores_signal(extSemArray, paramsArray, numExtSems,
                                     stream, twin))

static CUresult
sim_semaphores_wait(const CUexternalSemaphore *semaphores,
                    const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *params,
                    unsigned num, CUstream stream, int twin)
{
    CUresult status = CUDA_SUCCESS;
    unsigned i;

    for (i = 0; (status == CUDA_SUCCESS) && (i < num); ++i) {
        status = sim_memop(stream, twin, CU_STREAM_MEM_OP_WAIT_VALUE_64,
                           (CUdeviceptr)semaphores[i],
                           params[i].params.fence.value,
                           CU_STREAM_WAIT_VALUE_GEQ);
    }
    return status;
}
SIM_ENTRY_PTSZ(cuWaitExternalSemaphoresAsync,
               (const CUexternalSemaphore *extSemArray,
                const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *paramsArray,
                unsigned int numExtSems, CUstream stream), SIM_CTX,
               sim_semaphores_wait(extSemArray, paramsArray, numExtSems,
                                   stream, twin))

/* ------------------------------------------------- another process */

static CUresult sim_ipc_export(CUipcEventHandle *handle, CUevent event_handle)
{
    sim_event_t *event = sim_event_find(event_handle);

    if ((event == NULL) || !(event->flags & CU_EVENT_INTERPROCESS)) {
        return CUDA_ERROR_INVALID_HANDLE;
    } else if (handle == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    memset(handle, 0, sizeof(*handle));
    memcpy(handle->reserved, &event_handle, sizeof(event_handle));
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuIpcGetEventHandle, (CUipcEventHandle *pHandle, CUevent event),
          SIM_CTX, sim_ipc_export(pHandle, event))

/* Plays another process that has opened the event and has a stream wait for
 * it: the name is none of the driver's, so nobody in this process hears of
 * it. */
static CUresult sim_ipc_wait(CUstream stream_handle,
                             const CUipcEventHandle *handle)
{
    CUevent       event_handle;
    sim_event_t  *event;
    sim_stream_t *stream;
    sim_task_t   *task;
    CUresult      status = sim_stream_find(stream_handle, 0, &stream);

    memcpy(&event_handle, handle->reserved, sizeof(event_handle));
    event = sim_event_find(event_handle);
    if ((status != CUDA_SUCCESS) || (event == NULL)) {
        return (status != CUDA_SUCCESS) ? status : CUDA_ERROR_INVALID_HANDLE;
    }
    task = sim_stream_task(stream, NULL);
    sim_task_after(task, event->record);
    sim_task_submit(task);
    sim_task_unref(task);
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cu_sim_other_process_waits(CUstream stream,
                                            const CUipcEventHandle *handle);
SIM_ENTRY(cu_sim_other_process_waits,
          (CUstream stream, const CUipcEventHandle *handle), SIM_CTX,
          sim_ipc_wait(stream, handle))

/* ------------------------------------------------- mapped memory */

enum { SIM_GRANULE = 65536 };

static CUresult sim_vmm_granularity(size_t *granularity)
{
    if (granularity == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *granularity = SIM_GRANULE;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuMemGetAllocationGranularity,
          (size_t *granularity, const CUmemAllocationProp *prop,
           CUmemAllocationGranularity_flags option), 0,
          ((void)prop, (void)option, sim_vmm_granularity(granularity)))

static CUresult sim_vmm_reserve(CUdeviceptr *address, size_t size)
{
    void *start;

    if ((address == NULL) || (size == 0) || (size % SIM_GRANULE != 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    start = mmap(NULL, size, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = (CUdeviceptr)start;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuMemAddressReserve,
          (CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
           unsigned long long flags), 0,
          ((void)alignment, (void)addr, (void)flags,
           sim_vmm_reserve(ptr, size)))
SIM_ENTRY(cuMemAddressFree, (CUdeviceptr ptr, size_t size), 0,
          munmap((void *)ptr, size) == 0 ? CUDA_SUCCESS :
          CUDA_ERROR_INVALID_VALUE)

/* The handle is that of a file without a name. */
static CUresult sim_vmm_create(CUmemGenericAllocationHandle *handle,
                               size_t size)
{
    int file;

    if ((handle == NULL) || (size == 0) || (size % SIM_GRANULE != 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    file = memfd_create("memory", 0);
    if ((file < 0) || (ftruncate(file, (off_t)size) != 0)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *handle = (CUmemGenericAllocationHandle)file;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuMemCreate,
          (CUmemGenericAllocationHandle *handle, size_t size,
           const CUmemAllocationProp *prop, unsigned long long flags), 0,
          ((void)prop, (void)flags, sim_vmm_create(handle, size)))
SIM_ENTRY(cuMemRelease, (CUmemGenericAllocationHandle handle), 0,
          close((int)handle) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE)

static CUresult sim_vmm_map(CUdeviceptr address, size_t size, size_t offset,
                            CUmemGenericAllocationHandle handle)
{
    sim_ctx_t *ctx;
    CUresult   status = sim_ctx_current(&ctx);

    if (status != CUDA_SUCCESS) {
        return status;
    } else if (mmap((void *)address, size, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_FIXED, (int)handle,
                    (off_t)offset) == MAP_FAILED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_mem_map(ctx, address, size);
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuMemMap,
          (CUdeviceptr ptr, size_t size, size_t offset,
           CUmemGenericAllocationHandle handle, unsigned long long flags),
          SIM_CTX, ((void)flags, sim_vmm_map(ptr, size, offset, handle)))

static CUresult sim_vmm_unmap(CUdeviceptr address, size_t size)
{
    if (!sim_mem_unmap(address) ||
        (mmap((void *)address, size, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
              0) == MAP_FAILED)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuMemUnmap, (CUdeviceptr ptr, size_t size), SIM_CTX,
          sim_vmm_unmap(ptr, size))
SIM_ENTRY(cuMemSetAccess,
          (CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc,
           size_t count), SIM_CTX,
          ((void)size, (void)desc, (void)count, sim_mem_find(ptr) != NULL) ?
          CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE)
