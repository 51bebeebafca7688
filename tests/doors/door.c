/* SPDX-License-Identifier: Apache-2.0 */
/* The same work for every door, with functions that the door found. */
#include "door.h"

#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <nvtx3/nvToolsExt.h>

#include "../programs/kernels_ptx.h"

#define DOOR_CHECK(_call) door_check(_call, #_call)


enum {
    DOOR_WORDS = 64,
    DOOR_RUNS  = 6,
    DOOR_SKIP  = 77
};


typedef enum door_function {
    DOOR_INIT,
    DOOR_DEVICE_GET,
    DOOR_RETAIN,
    DOOR_RELEASE,
    DOOR_SET_CURRENT,
    DOOR_LOAD,
    DOOR_UNLOAD,
    DOOR_GET_FUNCTION,
    DOOR_ALLOC,
    DOOR_FREE,
    DOOR_STREAM_CREATE,
    DOOR_STREAM_DESTROY,
    DOOR_STREAM_SYNC,
    DOOR_LAUNCH,
    DOOR_SET_ASYNC,
    DOOR_COPY_ASYNC,
    DOOR_COPY_TO_HOST,
    DOOR_LAST
} door_function_t;


static const door_name_t door_names[DOOR_LAST] = {
    [DOOR_INIT]           = { "cuInit", "cuInit", 2000 },
    [DOOR_DEVICE_GET]     = { "cuDeviceGet", "cuDeviceGet", 2000 },
    [DOOR_RETAIN]         = { "cuDevicePrimaryCtxRetain",
                              "cuDevicePrimaryCtxRetain", 7000 },
    [DOOR_RELEASE]        = { "cuDevicePrimaryCtxRelease_v2",
                              "cuDevicePrimaryCtxRelease", 11000 },
    [DOOR_SET_CURRENT]    = { "cuCtxSetCurrent", "cuCtxSetCurrent", 4000 },
    [DOOR_LOAD]           = { "cuModuleLoadData", "cuModuleLoadData", 2000 },
    [DOOR_UNLOAD]         = { "cuModuleUnload", "cuModuleUnload", 2000 },
    [DOOR_GET_FUNCTION]   = { "cuModuleGetFunction", "cuModuleGetFunction",
                              2000 },
    [DOOR_ALLOC]          = { "cuMemAlloc_v2", "cuMemAlloc", 3020 },
    [DOOR_FREE]           = { "cuMemFree_v2", "cuMemFree", 3020 },
    [DOOR_STREAM_CREATE]  = { "cuStreamCreate", "cuStreamCreate", 2000 },
    [DOOR_STREAM_DESTROY] = { "cuStreamDestroy_v2", "cuStreamDestroy", 4000 },
    [DOOR_STREAM_SYNC]    = { "cuStreamSynchronize", "cuStreamSynchronize",
                              7000 },
    [DOOR_LAUNCH]         = { "cuLaunchKernel", "cuLaunchKernel", 7000 },
    [DOOR_SET_ASYNC]      = { "cuMemsetD32Async", "cuMemsetD32Async", 7000 },
    [DOOR_COPY_ASYNC]     = { "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoDAsync",
                              7000 },
    [DOOR_COPY_TO_HOST]   = { "cuMemcpyDtoH_v2", "cuMemcpyDtoH", 7000 }
};


/* The types are those that a program which looks up functions writes down. */
typedef struct door_driver {
    CUresult (*init)(unsigned);
    CUresult (*device_get)(CUdevice *, int);
    CUresult (*retain)(CUcontext *, CUdevice);
    CUresult (*release)(CUdevice);
    CUresult (*set_current)(CUcontext);
    CUresult (*load)(CUmodule *, const void *);
    CUresult (*unload)(CUmodule);
    CUresult (*get_function)(CUfunction *, CUmodule, const char *);
    CUresult (*alloc)(CUdeviceptr *, size_t);
    CUresult (*free)(CUdeviceptr);
    CUresult (*stream_create)(CUstream *, unsigned);
    CUresult (*stream_destroy)(CUstream);
    CUresult (*stream_sync)(CUstream);
    CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned,
                       unsigned, unsigned, unsigned, CUstream, void **,
                       void **);
    CUresult (*set_async)(CUdeviceptr, unsigned, size_t, CUstream);
    CUresult (*copy_async)(CUdeviceptr, CUdeviceptr, size_t, CUstream);
    CUresult (*copy_to_host)(void *, CUdeviceptr, size_t);
} door_driver_t;


static void door_check(CUresult result, const char *call)
{
    if (result != CUDA_SUCCESS) {
        fflush(stdout);
        fprintf(stderr, "%s: error %d\n", call, (int)result);
        exit(EXIT_FAILURE);
    }
}

static void door_fill(door_driver_t *driver, door_find_t find)
{
    void **slots[DOOR_LAST] = {
        (void**)&driver->init, (void**)&driver->device_get,
        (void**)&driver->retain, (void**)&driver->release,
        (void**)&driver->set_current, (void**)&driver->load,
        (void**)&driver->unload, (void**)&driver->get_function,
        (void**)&driver->alloc, (void**)&driver->free,
        (void**)&driver->stream_create, (void**)&driver->stream_destroy,
        (void**)&driver->stream_sync, (void**)&driver->launch,
        (void**)&driver->set_async, (void**)&driver->copy_async,
        (void**)&driver->copy_to_host
    };
    unsigned i;

    for (i = 0; i < DOOR_LAST; ++i) {
        *slots[i] = find(&door_names[i]);
        if (*slots[i] == NULL) {
            fflush(stdout);
            fprintf(stderr, "no %s\n", door_names[i].exported);
            exit(EXIT_FAILURE);
        }
    }
}

static void door_region(door_driver_t *driver, CUfunction kernel,
                        CUstream stream, CUdeviceptr x, CUdeviceptr y)
{
    uint32_t n     = DOOR_WORDS;
    uint32_t value = 3;
    void *params[] = { &x, &n, &value };
    unsigned run, i;

    for (run = 0; run < DOOR_RUNS; ++run) {
        nvtxRangePushA("door");
        for (i = 0; i < 4; ++i) {
            DOOR_CHECK(driver->launch(kernel, 1, 1, 1, DOOR_WORDS, 1, 1, 0,
                                      stream, params, NULL));
            DOOR_CHECK(driver->copy_async(y + 64 * i, x, 64, stream));
            DOOR_CHECK(driver->set_async(x + 4 * i, run, 1, stream));
        }
        nvtxRangePop();
    }
    DOOR_CHECK(driver->stream_sync(stream));
}

static void door_print(door_driver_t *driver, const char *title, CUdeviceptr x)
{
    uint32_t host[DOOR_WORDS];
    uint64_t hash = 0;
    unsigned i;

    DOOR_CHECK(driver->copy_to_host(host, x, sizeof(host)));
    for (i = 0; i < DOOR_WORDS; ++i) {
        hash = hash * 1099511628211u + host[i];
    }
    printf("%s: %016llx\n", title, (unsigned long long)hash);
}

void door_exercise(const char *title, door_find_t find)
{
    size_t bytes = DOOR_WORDS * sizeof(uint32_t);
    door_driver_t driver;
    CUdevice device;
    CUcontext context;
    CUmodule module;
    CUfunction kernel;
    CUstream stream;
    CUdeviceptr x, y;

    door_fill(&driver, find);
    DOOR_CHECK(driver.init(0));
    DOOR_CHECK(driver.device_get(&device, 0));
    DOOR_CHECK(driver.retain(&context, device));
    DOOR_CHECK(driver.set_current(context));
    DOOR_CHECK(driver.load(&module, krn_kernels_ptx));
    DOOR_CHECK(driver.get_function(&kernel, module, "k_hash"));
    DOOR_CHECK(driver.stream_create(&stream, CU_STREAM_NON_BLOCKING));
    DOOR_CHECK(driver.alloc(&x, bytes));
    DOOR_CHECK(driver.alloc(&y, bytes));
    DOOR_CHECK(driver.set_async(x, 1, DOOR_WORDS, NULL));
    DOOR_CHECK(driver.set_async(y, 2, DOOR_WORDS, NULL));
    DOOR_CHECK(driver.stream_sync(NULL));

    door_region(&driver, kernel, stream, x, y);
    door_region(&driver, kernel, NULL, y, x);
    door_print(&driver, title, x);
    door_print(&driver, title, y);

    DOOR_CHECK(driver.free(y));
    DOOR_CHECK(driver.free(x));
    DOOR_CHECK(driver.stream_destroy(stream));
    DOOR_CHECK(driver.unload(module));
    DOOR_CHECK(driver.set_current(NULL));
    DOOR_CHECK(driver.release(device));
}

void *door_open_driver(int flags)
{
    void *driver = dlopen("libcuda.so.1", flags);

    if (driver == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(DOOR_SKIP);
    }
    return driver;
}

void door_init(void *driver)
{
    CUresult (*init)(unsigned);
    CUresult result;

    *(void**)&init = dlsym(driver, "cuInit");
    if (init == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(EXIT_FAILURE);
    }
    result = init(0);
    if (result == CUDA_ERROR_NO_DEVICE || result == CUDA_ERROR_STUB_LIBRARY) {
        fprintf(stderr, "no CUDA device here\n");
        exit(DOOR_SKIP);
    }
    DOOR_CHECK(result);
}

void door_print_lookup(const char *what, const char *name, void *address)
{
    const char *error = dlerror();

    printf("%s(%s): %s", what, name, address != NULL ? "there" : "missing");
    printf("%s%s\n", error != NULL ? ": " : "", error != NULL ? error : "");
}
