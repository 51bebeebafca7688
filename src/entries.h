/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one table of driver functions: an index, a kind and the real function
 * for every name and version that cuda.h declares (entries.def, made by
 * entries.sh), then spare slots for what only a newer driver has.
 */
#ifndef CGS_ENTRIES_H
#define CGS_ENTRIES_H

/* Each name means exactly itself: no macro may turn it into another version
 * or stream flavour. This must come before the first cuda.h. */
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
#include <cudaProfiler.h>

#include "entries-spare.h"

/** What a driver function means; kinds.txt tells which has which. */
typedef enum {
    CGS_KIND_BARRIER, /**< issue what is held back, then run */
    CGS_KIND_PASS,    /**< runs at once */
    CGS_KIND_FREE,    /**< barrier that ends the life of memory */
    CGS_KIND_EVENT,   /**< barrier that ends the life of an event */
    CGS_KIND_DROP,    /**< barrier that ends the life of graphs */
    CGS_KIND_WRAP     /**< has a typed wrapper */
} cgs_kind_t;

/** CGS_INDEX_cuInit and so on: the place of a name in the table. */
enum {
#define CGS_ENTRY(_index, _name, _kind) CGS_INDEX_##_name = _index,
#include "entries.def"
#undef CGS_ENTRY
};

/**
 * The real functions. A slot leads to cgs_door_resolve() until libcuda is
 * known, and to cgs_missing() where the driver lacks the function, so that
 * any of them may be called at any time.
 */
extern void *cgs_real[CGS_NUM_ENTRIES + CGS_NUM_SPARE];

/** The real driver function of that exact name, with its type. What it needs
 *  (the profile's functions do) was written before it was put there. */
#define CGS_REAL(_name) \
    ((__typeof__(&_name))__atomic_load_n(&cgs_real[CGS_INDEX_##_name], \
                                         __ATOMIC_ACQUIRE))

/** Answers CUDA_ERROR_NOT_FOUND to any call. */
void cgs_missing(void);

#endif
