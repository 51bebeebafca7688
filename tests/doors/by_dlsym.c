/* SPDX-License-Identifier: Apache-2.0 */
/* The door of programs that open libcuda and look its functions up by dlsym,
 * with the driver local to them and then global. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "door.h"


static void *by_dlsym_driver;


static void *by_dlsym_find(const door_name_t *name)
{
    return dlsym(by_dlsym_driver, name->exported);
}

static void *by_dlsym_find_default(const door_name_t *name)
{
    return dlsym(RTLD_DEFAULT, name->exported);
}

int main(void)
{
    by_dlsym_driver = door_open_driver(RTLD_NOW | RTLD_LOCAL);
    door_init(by_dlsym_driver);
    door_exercise("handle", by_dlsym_find);
    door_open_driver(RTLD_NOW | RTLD_GLOBAL);
    door_exercise("default", by_dlsym_find_default);
    return 0;
}
