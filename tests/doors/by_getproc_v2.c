/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door of programs built for CUDA 12 and later, static cudart among them:
 * cuGetProcAddress_v2 with every stream flag, with and without a status, and
 * one name that means several functions.
 */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "door.h"


typedef CUresult (*by_getproc_v2_t)(const char *name, void **function,
                                    int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *status);


enum {
    BY_GETPROC_NO_ANSWER = 99
};


static void *by_getproc_v2_driver;
static by_getproc_v2_t by_getproc_v2;
static cuuint64_t by_getproc_v2_flags;


static void *by_getproc_v2_find(const door_name_t *name)
{
    CUdriverProcAddressQueryResult status;
    void *function = NULL;

    if (by_getproc_v2(name->name, &function, name->version, by_getproc_v2_flags,
                      &status) != CUDA_SUCCESS ||
        status != CU_GET_PROC_ADDRESS_SUCCESS) {
        return NULL;
    }
    return function;
}

static void *by_getproc_v2_find_no_status(const door_name_t *name)
{
    void *function = NULL;

    if (by_getproc_v2(name->name, &function, name->version, by_getproc_v2_flags,
                      NULL) != CUDA_SUCCESS) {
        return NULL;
    }
    return function;
}

/* Which exported symbol an address belongs to. */
static const char *by_getproc_v2_symbol(const char *name, void *function)
{
    static const char *const suffixes[] = {
        "", "_v2", "_v3", "_v4", "_ptsz", "_ptds", "_v2_ptsz", "_v2_ptds",
        "WithFlags"
    };
    static char symbol[100];
    size_t i;

    for (i = 0; i < DOOR_COUNT_OF(suffixes); ++i) {
        snprintf(symbol, sizeof(symbol), "%s%s", name, suffixes[i]);
        if (dlsym(by_getproc_v2_driver, symbol) == function) {
            return symbol;
        }
    }
    return "no exported symbol";
}

static void by_getproc_v2_print(const char *name, int version, cuuint64_t flags)
{
    CUdriverProcAddressQueryResult status =
        (CUdriverProcAddressQueryResult)BY_GETPROC_NO_ANSWER;
    void *function = (void*)&status;
    CUresult result;

    result = by_getproc_v2(name, &function, version, flags, &status);
    printf("%s %d flags %d: result %d, status %d, ", name, version, (int)flags,
           (int)result, (int)status);
    if (function == (void*)&status) {
        printf("untouched\n");
    } else if (function == NULL) {
        printf("missing\n");
    } else {
        printf("%s\n", by_getproc_v2_symbol(name, function));
    }
}

static void by_getproc_v2_print_all(void)
{
    static const cuuint64_t flags[] = {
        CU_GET_PROC_ADDRESS_DEFAULT,
        CU_GET_PROC_ADDRESS_LEGACY_STREAM,
        CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
    };
    static const door_name_t names[] = {
        { NULL, "cuInit", 12000 },
        { NULL, "cuMemcpyDtoDAsync", 2000 },
        { NULL, "cuMemcpyDtoDAsync", 3020 },
        { NULL, "cuMemcpyDtoDAsync", 7000 },
        { NULL, "cuMemcpyDtoDAsync", 13000 },
        { NULL, "cuMemAlloc", 2000 },
        { NULL, "cuMemAlloc", 12000 },
        { NULL, "cuLaunchKernel", 4000 },
        { NULL, "cuLaunchKernel", 12000 },
        { NULL, "cuLaunchKernelEx", 11000 },
        { NULL, "cuLaunchKernelEx", 12000 },
        { NULL, "cuStreamSynchronize", 12000 },
        { NULL, "cuGraphInstantiate", 10000 },
        { NULL, "cuGraphInstantiate", 11000 },
        { NULL, "cuGraphInstantiate", 12000 },
        { NULL, "cuGetProcAddress", 11030 },
        { NULL, "cuGetProcAddress", 12000 },
        { NULL, "cuNoSuchFunction", 12000 },
        { NULL, "getenv", 12000 },
        { NULL, "", 12000 },
        { NULL, "cuMemAlloc_v2", 12000 },
        { NULL, "cuInit", 0 },
        { NULL, "cuLaunchKernel", 1000 }
    };
    size_t i, k;

    for (i = 0; i < DOOR_COUNT_OF(names); ++i) {
        for (k = 0; k < DOOR_COUNT_OF(flags); ++k) {
            by_getproc_v2_print(names[i].name, names[i].version, flags[k]);
        }
    }
}

/* The door leads to itself: what it gives for its own name works as well. */
static void by_getproc_v2_again(void)
{
    CUdriverProcAddressQueryResult status;
    by_getproc_v2_t again = NULL;
    CUresult result;

    result = by_getproc_v2("cuGetProcAddress", (void**)&again, 12000,
                           CU_GET_PROC_ADDRESS_DEFAULT, &status);
    if (result != CUDA_SUCCESS || again == NULL) {
        printf("no cuGetProcAddress by itself\n");
        return;
    }
    by_getproc_v2 = again;
    door_exercise("by itself", by_getproc_v2_find);
}

int main(void)
{
    void *driver = door_open_driver(RTLD_NOW);

    by_getproc_v2_driver    = driver;
    *(void**)&by_getproc_v2 = dlsym(driver, "cuGetProcAddress_v2");
    if (by_getproc_v2 == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return EXIT_FAILURE;
    }
    /* cudart takes its functions before cuInit. */
    by_getproc_v2_print("cuInit", 12000, CU_GET_PROC_ADDRESS_DEFAULT);
    door_init(driver);

    by_getproc_v2_flags = CU_GET_PROC_ADDRESS_DEFAULT;
    door_exercise("default", by_getproc_v2_find);
    door_exercise("no status", by_getproc_v2_find_no_status);
    by_getproc_v2_flags = CU_GET_PROC_ADDRESS_LEGACY_STREAM;
    door_exercise("legacy", by_getproc_v2_find);
    by_getproc_v2_flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    door_exercise("per thread", by_getproc_v2_find);

    by_getproc_v2_print_all();
    printf("no place for the function: %d\n",
           (int)by_getproc_v2("cuInit", NULL, 12000,
                              CU_GET_PROC_ADDRESS_DEFAULT, NULL));
    by_getproc_v2_again();
    return 0;
}
