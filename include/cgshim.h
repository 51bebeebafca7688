/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Steering cgshim from the program that it is preloaded into.
 *
 * The program includes this header and links nothing (-ldl on systems whose
 * libc has a library of its own for it). Each function looks once for the one
 * of the same name that libcgshim.so exports, and calls it; where the library
 * is not preloaded it returns CGSHIM_ERROR_NOT_LOADED (or NULL, or 0) after a
 * load and a branch. So a program built with it runs without cgshim too.
 *
 * Other languages call the exported functions, in Python
 * `ctypes.CDLL(None).cgshim_region_begin(b"step")`.
 *
 * Unless a function says otherwise, it may be called from any thread, with or
 * without a current context and before cuInit; not from a signal handler, nor
 * from a function that the driver calls (cuLaunchHostFunc), as that may not
 * call the driver. It changes no error state of CUDA's. What it writes to the
 * caller's memory is written only where it returns CGSHIM_SUCCESS.
 *
 * C99 and C++, gcc and clang.
 */
#ifndef CGSHIM_H
#define CGSHIM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What came of a call. */
typedef enum {
    CGSHIM_SUCCESS          = 0,
    CGSHIM_ERROR_NOT_LOADED = 1, /**< the library is not preloaded, or this is
                                      the child of a fork after cuInit */
    CGSHIM_ERROR_OFF        = 2, /**< it does nothing in this process
                                      (CGSHIM=off, a driver that is too old),
                                      or does no more as the process ends */
    CGSHIM_ERROR_INVALID    = 3, /**< an argument is NULL, empty or too small */
    CGSHIM_ERROR_UNKNOWN    = 4, /**< there is nothing of that name or number;
                                      cgshim_last_error_text() says what there
                                      is */
    CGSHIM_ERROR_UNBALANCED = 5, /**< the region is not the one that this thread
                                      began last and did not end */
    CGSHIM_ERROR_LIMIT      = 6, /**< too many regions in each other */
    CGSHIM_ERROR_BUSY       = 7, /**< another thread has been at work on the
                                      region for more than a second */
    CGSHIM_ERROR_NO_MEMORY  = 8  /**< the host has none left */
} cgshim_error_t;

/** What a region does now; README, "The report", says more. */
typedef enum {
    CGSHIM_STATE_WARM_UP   = 0, /**< its runs are not yet recorded */
    CGSHIM_STATE_PLAIN     = 1, /**< it has no recording, or no graph by
                                     choice */
    CGSHIM_STATE_RECORDED  = 2, /**< it has a recording and never had a graph */
    CGSHIM_STATE_REPLAYING = 3, /**< it has graphs */
    CGSHIM_STATE_ENDED     = 4  /**< its graphs were destroyed */
} cgshim_state_t;

/** A region. Numbers are those since the program began. */
typedef struct {
    size_t         size;          /**< to be set by the caller:
                                       sizeof(cgshim_region_info_t) */
    cgshim_state_t state;
    const char     *state_text;   /**< the state in a word; there for good */
    const char     *last_fallback; /**< why calls went out one by one, the last
                                       time; NULL: they never did. There for
                                       good */
    uint64_t       runs;          /**< times that it was entered */
    uint64_t       replayed_runs; /**< of these, as recorded from end to end */
    uint64_t       plain_runs;    /**< neither recorded nor compared */
    uint64_t       recordings;    /**< runs in which something was recorded */
    uint64_t       calls;         /**< that put something on a stream */
    uint64_t       swallowed;     /**< of these, done by a graph */
    uint64_t       launches;      /**< of graphs */
    uint64_t       patched;       /**< nodes that were given new parameters */
    uint64_t       variants;      /**< recorded pieces of ways, now */
    uint64_t       chunks;        /**< graphs that these can be, now */
    uint64_t       nodes;         /**< calls that stand in graphs, now */
    uint64_t       host_bytes;    /**< held by the recording, now */
    uint64_t       device_bytes;  /**< held by the graphs, now */
    uint64_t       builds;        /**< of graphs */
    uint64_t       build_ns;      /**< time of all builds, nanoseconds */
} cgshim_region_info_t;

/** Calls in a row that are one graph. */
typedef struct {
    size_t   size;         /**< to be set by the caller */
    void     *graph;       /**< CUgraph, or NULL: not built */
    void     *exec;        /**< CUgraphExec, or NULL: not built */
    uint64_t first_op;     /**< its first call, of those recorded, from 0 */
    uint64_t num_ops;      /**< how many they are */
    uint64_t device_bytes; /**< held by the graph */
} cgshim_chunk_t;

/** Where a buffer lies. */
typedef enum {
    CGSHIM_MEMORY_DEVICE   = 0,
    CGSHIM_MEMORY_HOST     = 1, /**< pinned */
    CGSHIM_MEMORY_MANAGED  = 2,
    CGSHIM_MEMORY_PAGEABLE = 3  /**< the host's, not known to the driver */
} cgshim_memory_t;

/** What a region does with a buffer: bits, together. */
enum {
    CGSHIM_ACCESS_READ    = 1, /**< a copy is from it */
    CGSHIM_ACCESS_WRITTEN = 2, /**< a copy is to it, or a set, or a verified
                                    run was seen to write it */
    CGSHIM_ACCESS_UNKNOWN = 4  /**< a kernel takes an address in it */
};

/** An allocation that a region uses, and the call that uses it first. */
typedef struct {
    size_t          size;   /**< to be set by the caller */
    uint64_t        base;   /**< address of its first byte: a CUdeviceptr, or a
                                 pointer of the host's */
    uint64_t        bytes;  /**< of the allocation; of pageable memory those
                                 that are copied */
    uint64_t        offset; /**< of the address that is used, from the base */
    uint64_t        op;     /**< the call, of those recorded, from 0 */
    const char      *kernel; /**< name of the kernel as the driver has it
                                 (C++ names are mangled), "copy" or "set";
                                 there for good */
    int32_t         argument; /**< of the kernel, from 0; of a copy 0 for where
                                 to and 1 for where from; of a set 0 */
    uint32_t        argument_offset; /**< of the address in that argument,
                                 bytes: not 0 in structures */
    cgshim_memory_t memory;
    uint32_t        access; /**< bits CGSHIM_ACCESS_... */
} cgshim_buffer_t;

/** How many regions that were begun by cgshim_region_begin() may be open in one
 *  thread, one in the other. */
#define CGSHIM_MAX_NESTED 64

/* CGSHIM_DECLARE_ONLY: only declare what the library exports; for itself, and
 * for who links to it. */
#ifdef CGSHIM_DECLARE_ONLY
#define CGSHIM_API_ extern __attribute__((visibility("default")))
#else
#define CGSHIM_API_ static inline
#endif

/**
 * The version of the library.
 *
 * @return A string such as "0.1.0" that is there for good, or NULL where it is
 *         not loaded.
 */
CGSHIM_API_ const char *cgshim_version(void);

/** The same as 10000 * major + 100 * minor + patch, or 0. */
CGSHIM_API_ int cgshim_version_number(void);

/** What an error means, one line. @return A string that is there for good. */
CGSHIM_API_ const char *cgshim_error_text(cgshim_error_t error);

/**
 * What was wrong with the last call of this thread that failed, one line; an
 * unknown name is answered by those that there are.
 *
 * @return A string that is there until a call fails in this thread again; empty
 *         where none has.
 */
CGSHIM_API_ const char *cgshim_last_error_text(void);

/**
 * Begin a run of a region in this thread, as a pushed NVTX range of the domain
 * "cgshim" with this text does: without rules in the environment the region
 * has this name, with rules the first one that matches says which region it
 * is, if any. In a region that is open in this thread already it counts, and
 * does nothing else. A region that is open in another thread goes plain in this
 * one.
 *
 * @param name Up to about 500 bytes; longer ones are never recorded.
 *
 * @return CGSHIM_SUCCESS also where the run goes plain; CGSHIM_ERROR_INVALID,
 *         CGSHIM_ERROR_LIMIT, CGSHIM_ERROR_NOT_LOADED or CGSHIM_ERROR_OFF.
 *         After an error there is nothing to end.
 */
CGSHIM_API_ cgshim_error_t cgshim_region_begin(const char *name);

/**
 * End it, in the same thread. The last one that was begun ends first.
 *
 * @return CGSHIM_SUCCESS, CGSHIM_ERROR_UNBALANCED (nothing was done),
 *         CGSHIM_ERROR_INVALID, CGSHIM_ERROR_NOT_LOADED or CGSHIM_ERROR_OFF.
 */
CGSHIM_API_ cgshim_error_t cgshim_region_end(const char *name);

/**
 * Record a region anew in its next run, whatever it is then: what was recorded
 * goes when that run begins. May wait for a build of the region.
 *
 * @return CGSHIM_SUCCESS, CGSHIM_ERROR_UNKNOWN, CGSHIM_ERROR_INVALID,
 *         CGSHIM_ERROR_NOT_LOADED or CGSHIM_ERROR_OFF.
 */
CGSHIM_API_ cgshim_error_t cgshim_region_recapture(const char *name);

/**
 * Destroy a region's graphs and recording; it is recorded again when it next
 * runs. Where it is open, in whatever thread, what it holds back is issued and
 * the rest of that run goes plain. May wait for a build of the region.
 *
 * @return As above; CGSHIM_SUCCESS also where it had none.
 */
CGSHIM_API_ cgshim_error_t cgshim_region_destroy(const char *name);

/** The same for all regions.
 *  @return CGSHIM_SUCCESS, CGSHIM_ERROR_NOT_LOADED or CGSHIM_ERROR_OFF. */
CGSHIM_API_ cgshim_error_t cgshim_destroy_all(void);

/** How many regions there are, 0 where the library is not loaded. They become
 *  more while the program runs, never fewer. */
CGSHIM_API_ size_t cgshim_region_count(void);

/**
 * The name of a region.
 *
 * @param index From 0, in the order in which they were first entered.
 *
 * @return A string that is there for good, or NULL: there is no such region.
 */
CGSHIM_API_ const char *cgshim_region_name(size_t index);

/**
 * Ask about a region.
 *
 * @param info Its `size` must be set; filled in.
 *
 * @return CGSHIM_SUCCESS, CGSHIM_ERROR_UNKNOWN, CGSHIM_ERROR_INVALID,
 *         CGSHIM_ERROR_BUSY, CGSHIM_ERROR_NOT_LOADED or CGSHIM_ERROR_OFF.
 */
CGSHIM_API_ cgshim_error_t cgshim_region_info(const char *name,
                                              cgshim_region_info_t *info);

/**
 * The graph of a chunk, for inspection (cuGraphDebugDotPrint, cuGraphGetNodes).
 * It is the library's: not to be changed, launched or destroyed. It may go when
 * the region is next entered or destroyed, and when a module is unloaded.
 *
 * The nodes of the graph have the parameters with which it was built; later
 * ones were given to the exec alone.
 *
 * @param index Of a chunk of the way that the region took last, from 0 in the
 *              order of its calls. Other ways (variants) are not counted.
 * @param chunk Its `size` must be set; filled in.
 *
 * @return As cgshim_region_info(); CGSHIM_ERROR_UNKNOWN also past the last
 *         chunk.
 */
CGSHIM_API_ cgshim_error_t cgshim_region_chunk(const char *name, size_t index,
                                               cgshim_chunk_t *chunk);

/**
 * The allocations that the calls of a region use, on the way that it took last
 * and with the arguments of that run, in the order of first use. Memory is
 * told by its address now: what was freed since is left out, and so are arrays.
 *
 * Nothing says which arguments of a kernel are addresses: each aligned word of
 * eight bytes is one if the driver knows an allocation there. So a number may
 * be taken for one by chance, and addresses that a kernel finds in memory are
 * not seen.
 *
 * @param buffers Array to be filled in, or NULL; the `size` of its first
 *                element must be set.
 * @param count   How many elements it has; set to how many buffers there are,
 *                which may be more.
 *
 * @return As cgshim_region_info(), or CGSHIM_ERROR_NO_MEMORY.
 */
CGSHIM_API_ cgshim_error_t cgshim_region_buffers(const char *name,
                                                 cgshim_buffer_t *buffers,
                                                 size_t *count);

/**
 * The allocation that one call uses; the same view as above.
 *
 * @param kernel   Name of a kernel as the driver has it, "copy" or "set".
 * @param launch   Which call of that name in a run, from 0.
 * @param argument As in cgshim_buffer_t; of a structure the first address.
 * @param buffer   Its `size` must be set; filled in. `op`, `offset` and
 *                 `access` are those of this call.
 *
 * @return As cgshim_region_info(); CGSHIM_ERROR_UNKNOWN also where there is no
 *         such call, or no address in that argument.
 */
CGSHIM_API_ cgshim_error_t cgshim_region_buffer(const char *name,
                                                const char *kernel,
                                                size_t launch, int argument,
                                                cgshim_buffer_t *buffer);

/* What follows is how it is done. */

static inline const char *cgshim_text_of_(cgshim_error_t error)
{
    switch (error) {
    case CGSHIM_SUCCESS:
        return "success";
    case CGSHIM_ERROR_NOT_LOADED:
        return "cgshim is not loaded into this process";
    case CGSHIM_ERROR_OFF:
        return "cgshim does nothing in this process";
    case CGSHIM_ERROR_INVALID:
        return "an argument is not valid";
    case CGSHIM_ERROR_UNKNOWN:
        return "there is nothing of that name or number";
    case CGSHIM_ERROR_UNBALANCED:
        return "the region is not the one that this thread began last";
    case CGSHIM_ERROR_LIMIT:
        return "too many regions in each other";
    case CGSHIM_ERROR_BUSY:
        return "another thread is at work on the region";
    case CGSHIM_ERROR_NO_MEMORY:
        return "out of host memory";
    }
    return "an error that is not known";
}

#ifdef __cplusplus
}
#endif

#ifndef CGSHIM_DECLARE_ONLY

#include <dlfcn.h>
#include <string.h>

/* The exported function, or NULL. What is remembered is its address, or that of
 * the memory itself where there is none. */
static inline void *cgshim_find_(void **found, const char *name)
{
    void *function = __atomic_load_n(found, __ATOMIC_RELAXED);

    if (__builtin_expect(function == NULL, 0)) {
        /* RTLD_DEFAULT, which needs _GNU_SOURCE */
        function = dlsym((void *)0, name);
        if (function == NULL) {
            (void)dlerror();
            function = (void *)found;
        }
        __atomic_store_n(found, function, __ATOMIC_RELAXED);
    }
    return function == (void *)found ? NULL : function;
}

#define CGSHIM_FORWARD_(_result, _name, _parameters, _arguments, _absent) \
    static inline _result _name _parameters \
    { \
        static void *found; \
        _result (*function) _parameters; \
        void *address = cgshim_find_(&found, #_name); \
        \
        if (address == NULL) { \
            return _absent; \
        } \
        memcpy(&function, &address, sizeof(function)); \
        return function _arguments; \
    }

CGSHIM_FORWARD_(const char *, cgshim_version, (void), (), NULL)
CGSHIM_FORWARD_(int, cgshim_version_number, (void), (), 0)
CGSHIM_FORWARD_(const char *, cgshim_error_text, (cgshim_error_t error),
                (error), cgshim_text_of_(error))
CGSHIM_FORWARD_(const char *, cgshim_last_error_text, (void), (),
                cgshim_text_of_(CGSHIM_ERROR_NOT_LOADED))
CGSHIM_FORWARD_(cgshim_error_t, cgshim_region_begin, (const char *name),
                (name), CGSHIM_ERROR_NOT_LOADED)
CGSHIM_FORWARD_(cgshim_error_t, cgshim_region_end, (const char *name),
                (name), CGSHIM_ERROR_NOT_LOADED)
CGSHIM_FORWARD_(cgshim_error_t, cgshim_region_recapture, (const char *name),
                (name), CGSHIM_ERROR_NOT_LOADED)
CGSHIM_FORWARD_(cgshim_error_t, cgshim_region_destroy, (const char *name),
                (name), CGSHIM_ERROR_NOT_LOADED)
CGSHIM_FORWARD_(cgshim_error_t, cgshim_destroy_all, (void), (),
                CGSHIM_ERROR_NOT_LOADED)
CGSHIM_FORWARD_(size_t, cgshim_region_count, (void), (), 0)
CGSHIM_FORWARD_(const char *, cgshim_region_name, (size_t index), (index),
                NULL)
CGSHIM_FORWARD_(cgshim_error_t, cgshim_region_info,
                (const char *name, cgshim_region_info_t *info), (name, info),
                CGSHIM_ERROR_NOT_LOADED)
CGSHIM_FORWARD_(cgshim_error_t, cgshim_region_chunk,
                (const char *name, size_t index, cgshim_chunk_t *chunk),
                (name, index, chunk), CGSHIM_ERROR_NOT_LOADED)
CGSHIM_FORWARD_(cgshim_error_t, cgshim_region_buffers,
                (const char *name, cgshim_buffer_t *buffers, size_t *count),
                (name, buffers, count), CGSHIM_ERROR_NOT_LOADED)
CGSHIM_FORWARD_(cgshim_error_t, cgshim_region_buffer,
                (const char *name, const char *kernel, size_t launch,
                 int argument, cgshim_buffer_t *buffer),
                (name, kernel, launch, argument, buffer),
                CGSHIM_ERROR_NOT_LOADED)

#undef CGSHIM_FORWARD_

#endif /* CGSHIM_DECLARE_ONLY */

#undef CGSHIM_API_

#endif
