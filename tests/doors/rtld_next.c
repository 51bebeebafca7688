/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RTLD_NEXT means "after the library that asks", so whoever stands in between
 * must not become the one that asks. The program is linked to the first
 * library, the second one and libcuda, in this order.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <nvtx3/nvToolsExt.h>

#include "door.h"
#include "rtld_next.h"


/* In the middle of a region, a library waits through what RTLD_NEXT gave it. */
static void rtld_next_wait(void)
{
    CUdevice    device;
    CUcontext   context;
    CUstream    stream;
    CUdeviceptr word;
    unsigned    *host, run;

    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS) {
        exit(77);
    }
    cuDevicePrimaryCtxRetain(&context, device);
    cuCtxSetCurrent(context);
    cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    cuMemAlloc(&word, 4);
    cuMemAllocHost((void**)&host, 4);
    for (run = 1; run < 8; ++run) {
        nvtxRangePushA("waits through RTLD_NEXT");
        cuMemsetD32Async(word, run, 1, stream);
        cuMemcpyDtoHAsync(host, word, 4, stream);
        if (run == 5) {
            printf("waited: %d, ", chain_synchronize(stream));
            printf("%u\n", *host);
        }
        cuMemsetD32Async(word, 0, 1, stream);
        nvtxRangePop();
        cuStreamSynchronize(stream);
        printf("run %u: %u\n", run, *host);
    }
    cuMemFreeHost(host);
    cuMemFree(word);
    cuStreamDestroy(stream);
    cuDevicePrimaryCtxRelease(device);
}

int main(void)
{
    int linked = 0;
    int (*next)(void);

    printf("chain_value %d\n", chain_value());
    printf("cuChainValue %d\n", cuChainValue());
    printf("cuchain_value %d\n", cuchain_value());

    /* From the program itself the next one is the first library's. */
    *(void**)&next = dlsym(RTLD_NEXT, "chain_value");
    printf("next chain_value %d\n", next != NULL ? next() : -1);
    *(void**)&next = dlvsym(RTLD_NEXT, "cuChainValue", "V_1");
    printf("next cuChainValue %d\n", next != NULL ? next() : -1);
    printf("calls %d\n", chain_calls);

    (void)cuDriverGetVersion(&linked);
    printf("the driver's version is the same: %d\n",
           chain_driver_version() == linked);
    dlerror();
    door_print_lookup("next", "getenv", dlsym(RTLD_NEXT, "getenv"));
    door_print_lookup("next", "cuNoSuch", dlsym(RTLD_NEXT, "cuNoSuch"));
    rtld_next_wait();
    return 0;
}
