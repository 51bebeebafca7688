/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library to preload that counts allocations while a program asks for it.
 * Those that the program or the driver makes itself do not count; what is left
 * is the shim's, and what libc allocates on its behalf.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "allocations.h"


enum {
    ALC_MAX_RANGES = 32
};

#define ALC_EXPORT __attribute__((visibility("default")))


/* libc's own, under names that nobody replaces. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t num, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static struct {
    atomic_bool    is_on;
    atomic_ulong   count;
    _Atomic(void*) first;
    uintptr_t      begin[ALC_MAX_RANGES];   /* of code that does not count */
    uintptr_t      end[ALC_MAX_RANGES];
    unsigned       num;
} alc_state;


static void alc_note(void *caller)
{
    uintptr_t place = (uintptr_t)caller;
    void *none      = NULL;
    unsigned i;

    if (!atomic_load(&alc_state.is_on)) {
        return;
    }
    for (i = 0; i < alc_state.num; ++i) {
        if (place >= alc_state.begin[i] && place < alc_state.end[i]) {
            return;
        }
    }
    atomic_fetch_add(&alc_state.count, 1);
    atomic_compare_exchange_strong(&alc_state.first, &none, caller);
}

ALC_EXPORT void *malloc(size_t size)
{
    alc_note(__builtin_return_address(0));
    return __libc_malloc(size);
}

ALC_EXPORT void *calloc(size_t num, size_t size)
{
    alc_note(__builtin_return_address(0));
    return __libc_calloc(num, size);
}

ALC_EXPORT void *realloc(void *memory, size_t size)
{
    alc_note(__builtin_return_address(0));
    return __libc_realloc(memory, size);
}

ALC_EXPORT void *memalign(size_t alignment, size_t size)
{
    alc_note(__builtin_return_address(0));
    return __libc_memalign(alignment, size);
}

ALC_EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    alc_note(__builtin_return_address(0));
    return __libc_memalign(alignment, size);
}

ALC_EXPORT int posix_memalign(void **memory, size_t alignment, size_t size)
{
    alc_note(__builtin_return_address(0));
    *memory = __libc_memalign(alignment, size);
    return *memory != NULL ? 0 : ENOMEM;
}

/* The program has no name here. */
static int alc_leave_out(struct dl_phdr_info *info, size_t size, void *arg)
{
    unsigned i;

    (void)size;
    (void)arg;
    if (info->dlpi_name[0] != '\0' &&
        strstr(info->dlpi_name, "/libcuda.so") == NULL) {
        return 0;
    }
    for (i = 0; i < info->dlpi_phnum && alc_state.num < ALC_MAX_RANGES; ++i) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type == PT_LOAD && (part->p_flags & PF_X) != 0) {
            alc_state.begin[alc_state.num] = info->dlpi_addr + part->p_vaddr;
            alc_state.end[alc_state.num]   = info->dlpi_addr + part->p_vaddr +
                                             part->p_memsz;
            ++alc_state.num;
        }
    }
    return 0;
}

ALC_EXPORT void alc_begin(void)
{
    alc_state.num = 0;
    dl_iterate_phdr(alc_leave_out, NULL);
    atomic_store(&alc_state.count, 0);
    atomic_store(&alc_state.first, NULL);
    atomic_store(&alc_state.is_on, true);
}

ALC_EXPORT unsigned long alc_end(void)
{
    void *first = atomic_load(&alc_state.first);
    Dl_info info;

    atomic_store(&alc_state.is_on, false);
    if (first != NULL && dladdr(first, &info) != 0) {
        fprintf(stderr, "first allocation: %s+0x%lx\n", info.dli_fname,
                (unsigned long)((uintptr_t)first -
                                (uintptr_t)info.dli_fbase));
    }
    return atomic_load(&alc_state.count);
}
