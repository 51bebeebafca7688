/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The global scope has the driver's functions only when the program put them
 * there: RTLD_DEFAULT and dlopen(NULL) answer as they do without a tool that
 * defines the same names, before libcuda is loaded, after it is loaded locally
 * and after it is loaded globally. Not linked to libcuda.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#include "door.h"


static void rtld_default_print(const char *when, void *driver)
{
    static const char *const names[] = {
        "cuInit", "cuLaunchKernel", "cuLaunchKernel_ptsz", "cuMemAlloc_v2",
        "cuGetProcAddress", "cuGetProcAddress_v2", "cuNoSuchFunction", "getenv"
    };
    void *self = dlopen(NULL, RTLD_NOW);
    size_t i;

    printf("%s\n", when);
    for (i = 0; i < DOOR_COUNT_OF(names); ++i) {
        void *in_default, *in_self;

        dlerror();
        in_default = dlsym(RTLD_DEFAULT, names[i]);
        door_print_lookup("default", names[i], in_default);
        in_self = dlsym(self, names[i]);
        door_print_lookup("self", names[i], in_self);
        printf("  same: %d", in_default == in_self);
        if (driver != NULL) {
            printf(", the driver's: %d",
                   in_default == dlsym(driver, names[i]));
        }
        printf("\n");
        dlerror();
    }
    dlclose(self);
}

int main(void)
{
    void *driver;

    rtld_default_print("not loaded", NULL);
    driver = door_open_driver(RTLD_NOW | RTLD_LOCAL);
    rtld_default_print("local", driver);
    door_open_driver(RTLD_NOW | RTLD_GLOBAL);
    rtld_default_print("global", driver);
    return 0;
}
