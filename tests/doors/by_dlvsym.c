/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The door of programs that look functions up by dlvsym. NVIDIA's driver has
 * symbols without versions, which dlvsym does not find; DOOR_VERSION names the
 * version of a driver that has some.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "door.h"


static void *by_dlvsym_driver;
static const char *by_dlvsym_version;


static void *by_dlvsym_find(const door_name_t *name)
{
    return dlvsym(by_dlvsym_driver, name->exported, by_dlvsym_version);
}

static void by_dlvsym_print(void *handle, const char *name, const char *version)
{
    dlerror();
    door_print_lookup(version, name, dlvsym(handle, name, version));
}

int main(void)
{
    const char *version = getenv("DOOR_VERSION");
    const door_name_t init = { "cuInit", "cuInit", 2000 };
    void *found;

    by_dlvsym_version = version != NULL ? version : "libcuda.so.1";
    by_dlvsym_driver  = door_open_driver(RTLD_NOW);
    door_init(by_dlvsym_driver);

    found = by_dlvsym_find(&init);
    if (found != NULL) {
        printf("the same as by dlsym: %d\n",
               found == dlsym(by_dlvsym_driver, "cuInit"));
        door_exercise("dlvsym", by_dlvsym_find);
    } else if (version != NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return EXIT_FAILURE;
    }

    by_dlvsym_print(by_dlvsym_driver, "cuInit", by_dlvsym_version);
    by_dlvsym_print(by_dlvsym_driver, "cuInit", "NO_VERSION_1");
    by_dlvsym_print(by_dlvsym_driver, "cuNoSuchFunction", by_dlvsym_version);
    by_dlvsym_print(RTLD_DEFAULT, "cuInit", by_dlvsym_version);
    by_dlvsym_print(RTLD_NEXT, "cuInit", by_dlvsym_version);
    by_dlvsym_print(RTLD_DEFAULT, "getenv", "GLIBC_2.2.5");
    by_dlvsym_print(RTLD_DEFAULT, "getenv", "NO_VERSION_1");
    by_dlvsym_print(RTLD_DEFAULT, "cuNoSuchFunction", "NO_VERSION_1");
    return 0;
}
