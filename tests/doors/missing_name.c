/* SPDX-License-Identifier: Apache-2.0 */
/* Names that the driver lacks stay missing through every door, with the error
 * text that the program gets without any tool. */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "door.h"


static void missing_by_dl(const char *what, void *handle, const char *name)
{
    dlerror();
    door_print_lookup(what, name, dlsym(handle, name));
    door_print_lookup("versioned", name, dlvsym(handle, name, "V_1"));
}

static void missing_by_getproc(void *driver, const char *name)
{
    CUresult (*v1)(const char *, void **, int, cuuint64_t);
    CUresult (*v2)(const char *, void **, int, cuuint64_t,
                   CUdriverProcAddressQueryResult *);
    CUdriverProcAddressQueryResult status =
        CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    void *function = NULL;
    CUresult result;

    *(void**)&v1 = dlsym(driver, "cuGetProcAddress");
    *(void**)&v2 = dlsym(driver, "cuGetProcAddress_v2");
    if (v1 != NULL) {
        result = v1(name, &function, 13000, 0);
        printf("v1(%s): %d, %s\n", name, (int)result,
               function != NULL ? "there" : "missing");
    }
    if (v2 != NULL) {
        function = NULL;
        result   = v2(name, &function, 13000, 0, &status);
        printf("v2(%s): %d, status %d, %s\n", name, (int)result, (int)status,
               function != NULL ? "there" : "missing");
    }
}

int main(void)
{
    static const char *const names[] = {
        "cuNoSuchFunction", "cuInit_v9", "cuLaunchKernel_ptsz_v2", "cu", "cuda",
        "cudaMalloc", "cUInit", "cuinit", "NoSuchFunction", "",
        /* of the shim's, and no business of a program */
        "InitializeInjectionNvtx3", "cgs_config_get"
    };
    void *driver = door_open_driver(RTLD_NOW);
    void *self   = dlopen(NULL, RTLD_NOW);
    size_t i;

    door_init(driver);
    for (i = 0; i < DOOR_COUNT_OF(names); ++i) {
        missing_by_dl("driver", driver, names[i]);
        missing_by_dl("default", RTLD_DEFAULT, names[i]);
        missing_by_dl("next", RTLD_NEXT, names[i]);
        missing_by_dl("self", self, names[i]);
        missing_by_getproc(driver, names[i]);
    }
    return 0;
}
