/* SPDX-License-Identifier: Apache-2.0 */
/* dlerror() says after every lookup, found or not, what it says without a tool,
 * and errno is left alone. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

#include "door.h"


static void dlerror_state_print(const char *what)
{
    const char *first  = dlerror();
    const char *second;

    printf("%s: %s", what, first != NULL ? first : "no error");
    second = dlerror();
    printf(", then %s\n", second != NULL ? second : "no error");
}

static void dlerror_state_look(void *handle, const char *good, const char *bad)
{
    void *address;

    dlerror();
    address = dlsym(handle, good);
    dlerror_state_print(address != NULL ? "found" : "not found");
    address = dlsym(handle, bad);
    dlerror_state_print(address != NULL ? "found" : "not found");

    /* An error that nobody asked for, and then a success. */
    (void)dlsym(handle, bad);
    (void)dlsym(handle, good);
    dlerror_state_print("failed and found");
    (void)dlsym(handle, good);
    (void)dlsym(handle, bad);
    dlerror_state_print("found and failed");
    (void)dlvsym(handle, bad, "V_1");
    (void)dlsym(handle, good);
    dlerror_state_print("failed by version and found");

    /* An error of dlopen that a lookup replaces. */
    (void)dlopen("no-such-library.so", RTLD_NOW);
    dlerror_state_print("no library");
    (void)dlopen("no-such-library.so", RTLD_NOW);
    (void)dlsym(handle, good);
    dlerror_state_print("no library and found");

    errno = 4711;
    (void)dlsym(handle, good);
    printf("errno %d\n", errno);
}

int main(void)
{
    void *driver = door_open_driver(RTLD_NOW);
    void *math   = dlopen("libm.so.6", RTLD_NOW);
    void *self   = dlopen(NULL, RTLD_NOW);

    dlerror_state_look(driver, "cuInit", "cuNoSuchFunction");
    dlerror_state_look(driver, "cuLaunchKernel_ptsz", "NoSuchFunction");
    if (math != NULL) {
        dlerror_state_look(math, "cos", "cuInit");
    }
    dlerror_state_look(self, "getenv", "cuNoSuchFunction");
    dlerror_state_look(RTLD_DEFAULT, "getenv", "cuInit");
    dlerror_state_look(RTLD_NEXT, "getenv", "NoSuchFunction");
    return 0;
}
