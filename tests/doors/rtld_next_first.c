/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first library of the chain: weak functions that look the next one up by
 * RTLD_NEXT, as frameworks' own wrappers do. Were the lookup made on behalf of
 * another library, the next one after that library could be this one again, and
 * the call would never end.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "rtld_next.h"


typedef int (*chain_function_t)(void);


int chain_calls;


static int chain_forward(const char *name)
{
    chain_function_t next;

    if (++chain_calls > 100) {
        printf("%s: the next library's is this one\n", name);
        exit(EXIT_FAILURE);
    }
    *(void**)&next = dlsym(RTLD_NEXT, name);
    if (next == NULL) {
        printf("%s: %s\n", name, dlerror());
        exit(EXIT_FAILURE);
    }
    return next() + 1;
}

__attribute__((weak)) int chain_value(void)
{
    return chain_forward("chain_value");
}

__attribute__((weak)) int cuChainValue(void)
{
    return chain_forward("cuChainValue");
}

__attribute__((weak)) int cuchain_value(void)
{
    return chain_forward("cuchain_value");
}

int chain_driver_version(void)
{
    int (*next)(int *);
    int version = -1;

    *(void**)&next = dlsym(RTLD_NEXT, "cuDriverGetVersion");
    if (next == NULL || next(&version) != 0) {
        return -1;
    }
    return version;
}

int chain_synchronize(void *stream)
{
    int (*next)(void *);

    *(void**)&next = dlsym(RTLD_NEXT, "cuStreamSynchronize");
    return next != NULL ? next(stream) : -1;
}
