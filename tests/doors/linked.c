/* SPDX-License-Identifier: Apache-2.0 */
/* The door of programs that are linked to libcuda. */
#include <cuda.h>
#include <dlfcn.h>
#include <string.h>

#include "door.h"


typedef struct linked_symbol {
    const char *exported;
    void       *address;
} linked_symbol_t;

#define LINKED_STRING(_name) #_name
/* The header's macros give the name that is linked to: cuMemAlloc_v2. */
#define LINKED_SYMBOL(_name) { LINKED_STRING(_name), (void*)_name }

static void *linked_find(const door_name_t *name)
{
    const linked_symbol_t symbols[] = {
        LINKED_SYMBOL(cuInit),
        LINKED_SYMBOL(cuDeviceGet),
        LINKED_SYMBOL(cuDevicePrimaryCtxRetain),
        LINKED_SYMBOL(cuDevicePrimaryCtxRelease),
        LINKED_SYMBOL(cuCtxSetCurrent),
        LINKED_SYMBOL(cuModuleLoadData),
        LINKED_SYMBOL(cuModuleUnload),
        LINKED_SYMBOL(cuModuleGetFunction),
        LINKED_SYMBOL(cuMemAlloc),
        LINKED_SYMBOL(cuMemFree),
        LINKED_SYMBOL(cuStreamCreate),
        LINKED_SYMBOL(cuStreamDestroy),
        LINKED_SYMBOL(cuStreamSynchronize),
        LINKED_SYMBOL(cuLaunchKernel),
        LINKED_SYMBOL(cuMemsetD32Async),
        LINKED_SYMBOL(cuMemcpyDtoDAsync),
        LINKED_SYMBOL(cuMemcpyDtoH)
    };
    size_t i;

    for (i = 0; i < DOOR_COUNT_OF(symbols); ++i) {
        if (!strcmp(symbols[i].exported, name->exported)) {
            return symbols[i].address;
        }
    }
    return NULL;
}

int main(void)
{
    door_init(door_open_driver(RTLD_NOW));
    door_exercise("linked", linked_find);
    return 0;
}
