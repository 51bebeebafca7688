/* SPDX-License-Identifier: Apache-2.0 */
/* The door of programs built for CUDA 11.3 to 11.8: cuGetProcAddress without a
 * status. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "door.h"


typedef CUresult (*by_getproc_v1_t)(const char *name, void **function,
                                    int version, cuuint64_t flags);


static by_getproc_v1_t by_getproc_v1;


static void *by_getproc_v1_find(const door_name_t *name)
{
    void *function = NULL;

    if (by_getproc_v1(name->name, &function, name->version,
                      CU_GET_PROC_ADDRESS_DEFAULT) != CUDA_SUCCESS) {
        return NULL;
    }
    return function;
}

static void *by_getproc_v1_find_per_thread(const door_name_t *name)
{
    void *function = NULL;

    if (by_getproc_v1(name->name, &function, name->version,
                      CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) !=
        CUDA_SUCCESS) {
        return NULL;
    }
    return function;
}

static void by_getproc_v1_print(const char *name, int version)
{
    void *function = NULL;
    CUresult result;

    result = by_getproc_v1(name, &function, version,
                           CU_GET_PROC_ADDRESS_DEFAULT);
    printf("%s %d: %d, %s\n", name, version, (int)result,
           function != NULL ? "there" : "missing");
}

int main(void)
{
    void *driver = door_open_driver(RTLD_NOW);

    door_init(driver);
    *(void**)&by_getproc_v1 = dlsym(driver, "cuGetProcAddress");
    if (by_getproc_v1 == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return EXIT_FAILURE;
    }
    door_exercise("legacy", by_getproc_v1_find);
    door_exercise("per thread", by_getproc_v1_find_per_thread);

    by_getproc_v1_print("cuNoSuchFunction", 12000);
    by_getproc_v1_print("", 12000);
    by_getproc_v1_print("cuMemAlloc_v2", 12000);
    by_getproc_v1_print("cuLaunchKernel", 1000);
    by_getproc_v1_print("cuLaunchKernel", 12000);
    by_getproc_v1_print("cuGetProcAddress", 11030);
    printf("no place for the function: %d\n",
           (int)by_getproc_v1("cuInit", NULL, 12000,
                              CU_GET_PROC_ADDRESS_DEFAULT));
    return 0;
}
