/* SPDX-License-Identifier: Apache-2.0 */
/* Checked driver calls, the module of kernels, hashes of device memory. */
#include "util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels_ptx.h"


const char *prg_error_name(CUresult result)
{
    const char *name = NULL;

    if (cuGetErrorName(result, &name) != CUDA_SUCCESS || name == NULL) {
        return "unknown error";
    }
    return name;
}

void prg_check(CUresult result, const char *call, const char *file, int line)
{
    const char *base = strrchr(file, '/');

    if (result == CUDA_SUCCESS) {
        return;
    }
    fflush(stdout);
    fprintf(stderr, "%s:%d: %s: %s (%d)\n", base != NULL ? base + 1 : file,
            line, call, prg_error_name(result), (int)result);
    exit(EXIT_FAILURE);
}

void prg_open(prg_context_t *prg)
{
    CUresult result;

    result = cuInit(0);
    if (result == CUDA_ERROR_NO_DEVICE || result == CUDA_ERROR_STUB_LIBRARY) {
        fprintf(stderr, "no CUDA device here: %s\n", prg_error_name(result));
        exit(PRG_EXIT_SKIP);
    }
    PRG_CHECK(result);
    PRG_CHECK(cuDeviceGet(&prg->device, 0));
    PRG_CHECK(cuDevicePrimaryCtxRetain(&prg->context, prg->device));
    PRG_CHECK(cuCtxSetCurrent(prg->context));
    PRG_CHECK(cuModuleLoadData(&prg->module, krn_kernels_ptx));
}

void prg_close(prg_context_t *prg)
{
    PRG_CHECK(cuModuleUnload(prg->module));
    PRG_CHECK(cuCtxSetCurrent(NULL));
    PRG_CHECK(cuDevicePrimaryCtxRelease(prg->device));
}

CUfunction prg_kernel(const prg_context_t *prg, const char *name)
{
    CUfunction kernel = NULL;

    PRG_CHECK(cuModuleGetFunction(&kernel, prg->module, name));
    return kernel;
}

CUresult prg_launch(CUfunction kernel, CUstream stream, unsigned n,
                    void **params)
{
    return cuLaunchKernel(kernel, (n + PRG_BLOCK - 1) / PRG_BLOCK, 1, 1,
                          PRG_BLOCK, 1, 1, 0, stream, params, NULL);
}

CUdeviceptr prg_alloc(const prg_context_t *prg, size_t n, uint32_t value)
{
    CUfunction fill     = prg_kernel(prg, "k_fill");
    uint32_t words      = (uint32_t)n;
    CUdeviceptr address = 0;

    PRG_CHECK(cuMemAlloc(&address, n * sizeof(uint32_t)));
    PRG_LAUNCH(fill, NULL, words, &address, &words, &value);
    PRG_CHECK(cuCtxSynchronize());
    return address;
}

uint64_t prg_hash_host(const void *data, size_t size)
{
    const unsigned char *byte = data;
    uint64_t hash             = 0xcbf29ce484222325u;
    size_t i;

    for (i = 0; i < size; ++i) {
        hash = (hash ^ byte[i]) * 0x100000001b3u;
    }
    return hash;
}

uint64_t prg_hash(CUdeviceptr address, size_t n)
{
    size_t size = n * sizeof(uint32_t);
    void *copy  = malloc(size);
    uint64_t hash;

    if (copy == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(EXIT_FAILURE);
    }
    PRG_CHECK(cuMemcpyDtoH(copy, address, size));
    hash = prg_hash_host(copy, size);
    free(copy);
    return hash;
}

void prg_print_hash(const char *name, CUdeviceptr address, size_t n)
{
    printf("%s %016llx\n", name, (unsigned long long)prg_hash(address, n));
}
