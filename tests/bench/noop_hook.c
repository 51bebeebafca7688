/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library to preload that does as little as one can that stands between a
 * program and the driver: a call comes in by either door, the exported symbol
 * or cuGetProcAddress, and is jumped on. What the shim costs is measured
 * against it by calls.c.
 *
 * With NOOP_SWALLOW a launch returns CUDA_SUCCESS at once and is not made.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>


#define NOOP_COUNT_OF(_array) (sizeof(_array) / sizeof((_array)[0]))


static struct {
    void *(*dlsym)(void *, const char *);
    __typeof__(&cuGetProcAddress_v2) get_proc_address;
    __typeof__(&cuLaunchKernel)      launch_kernel;
    __typeof__(&cuCtxGetCurrent)     ctx_get_current;
    __typeof__(&cuStreamQuery)       stream_query;
    __typeof__(&cuDriverGetVersion)  driver_get_version;
} noop_real;


/* Where a real function's address is kept, and ours in its place. */
static const struct {
    const char *name;
    void       *real;
    void       *ours;
} noop_hooks[] = {
    { "cuGetProcAddress_v2", &noop_real.get_proc_address,
      (void*)cuGetProcAddress_v2 },
    { "cuLaunchKernel", &noop_real.launch_kernel, (void*)cuLaunchKernel },
    { "cuCtxGetCurrent", &noop_real.ctx_get_current, (void*)cuCtxGetCurrent },
    { "cuStreamQuery", &noop_real.stream_query, (void*)cuStreamQuery },
    { "cuDriverGetVersion", &noop_real.driver_get_version,
      (void*)cuDriverGetVersion },
};


/* Everything is found before main(), so that no call has to look. */
__attribute__((constructor)) static void noop_find(void)
{
    /* x86-64 and arm64 have given dlsym different versions */
    static const char *const versions[] = {
        "GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"
    };
    void *address;
    size_t i;

    for (i = 0; noop_real.dlsym == NULL && i < NOOP_COUNT_OF(versions); ++i) {
        address = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
        memcpy(&noop_real.dlsym, &address, sizeof(address));
    }
    if (noop_real.dlsym == NULL) {
        abort();
    }
    for (i = 0; i < NOOP_COUNT_OF(noop_hooks); ++i) {
        address = noop_real.dlsym(RTLD_NEXT, noop_hooks[i].name);
        memcpy(noop_hooks[i].real, &address, sizeof(address));
    }
}

static void *noop_map(void *address)
{
    size_t i;

    for (i = 0; address != NULL && i < NOOP_COUNT_OF(noop_hooks); ++i) {
        if (memcmp(noop_hooks[i].real, &address, sizeof(address)) == 0) {
            return noop_hooks[i].ours;
        }
    }
    return address;
}

void *dlsym(void *handle, const char *name)
{
    if (noop_real.dlsym == NULL) {
        noop_find(); /* another library's constructor came before ours */
    }
    return noop_map(noop_real.dlsym(handle, name));
}

CUresult cuGetProcAddress_v2(const char *name, void **address, int version,
                             cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    CUresult result = noop_real.get_proc_address(name, address, version, flags,
                                                 status);

    if (result == CUDA_SUCCESS && address != NULL) {
        *address = noop_map(*address);
    }
    return result;
}

CUresult cuLaunchKernel(CUfunction kernel, unsigned grid_x, unsigned grid_y,
                        unsigned grid_z, unsigned block_x, unsigned block_y,
                        unsigned block_z, unsigned shared_bytes,
                        CUstream stream, void **params, void **extra)
{
#ifdef NOOP_SWALLOW
    (void)kernel, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x;
    (void)block_y, (void)block_z, (void)shared_bytes, (void)stream;
    (void)params, (void)extra;
    return CUDA_SUCCESS;
#else
    return noop_real.launch_kernel(kernel, grid_x, grid_y, grid_z, block_x,
                                   block_y, block_z, shared_bytes, stream,
                                   params, extra);
#endif
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    return noop_real.ctx_get_current(context);
}

CUresult cuStreamQuery(CUstream stream)
{
    return noop_real.stream_query(stream);
}

CUresult cuDriverGetVersion(int *version)
{
    return noop_real.driver_get_version(version);
}
