/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call that puts work on a stream, as the program makes it (cgs_call_t)
 * and as it was recorded (cgs_op_t).
 *
 * Each kind of op has the same few verbs (cgs_op_kind_t): admit says whether a
 * call can be an op at all, compare holds it against a recorded one, take
 * copies it, issue makes the call again, describe gives the parameters of the
 * graph node. Describe serves building and patching alike. Nothing here knows
 * of regions or threads.
 */
#ifndef CGS_OP_H
#define CGS_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "cgshim.h"
#include "entries.h"
#include "report.h"
#include "staging.h"

/** The legacy default stream, whichever of its names a program uses. */
#define CGS_STREAM_LEGACY ((CUstream)0x1)

typedef enum {
    CGS_OP_KERNEL,
    CGS_OP_COPY,
    CGS_OP_SET,
    CGS_OP_HOST,   /**< a function of the program's, called by the driver */
    CGS_OP_FREE,   /**< stream-ordered; called after the graph */
    CGS_OP_RECORD, /**< of an event */
    CGS_OP_WAIT,   /**< for an event that the same chunk records */
    CGS_OP_NUM_KINDS
} cgs_op_kind_id_t;

/** How a kernel was launched; decides how it is issued again. */
typedef enum {
    CGS_LAUNCH_PLAIN,       /**< cuLaunchKernel */
    CGS_LAUNCH_EX,          /**< cuLaunchKernelEx */
    CGS_LAUNCH_COOPERATIVE  /**< cuLaunchCooperativeKernel */
} cgs_launch_api_t;

/** All of a launch but its arguments. No padding: compared as bytes. */
typedef struct {
    CUfunction function; /**< or a CUkernel, as the driver allows */
    unsigned   grid[3];
    unsigned   block[3];
    unsigned   shared_bytes;
    uint32_t   api;       /**< cgs_launch_api_t */
    uint32_t   num_attrs;
    uint32_t   extra_size; /**< bytes of the `extra` buffer, 0 without */
} cgs_launch_shape_t;

/** Where the bytes of each argument lie. */
typedef struct {
    uint32_t num;
    uint32_t total; /**< bytes of all, from offset 0 */
    bool     is_kernel; /**< the handle is a CUkernel */
    bool     fixed_grid; /**< not every grid can be launched */
    struct {
        uint32_t offset, size;
    } param[];
} cgs_layout_t;

/** Launches of a kernel that the driver is sure to take. */
typedef struct {
    unsigned max_threads;      /**< of a block, where it may be another one
                                    than now; else 0 */
    unsigned max_shared_bytes; /**< dynamic shared memory */
} cgs_function_limits_t;

/** How a copy was called; decides how it is issued again. */
typedef enum {
    CGS_COPY_ANY,  /**< cuMemcpyAsync */
    CGS_COPY_DTOD,
    CGS_COPY_DTOD_SYNC, /**< synchronous in name: the host does not wait */
    CGS_COPY_HTOD,
    CGS_COPY_DTOH,
    CGS_COPY_2D,
    CGS_COPY_3D
} cgs_copy_api_t;

/** One end of a copy. No padding: compared as bytes. */
typedef struct {
    uint64_t address; /**< device or host address, or a CUarray */
    uint64_t type;    /**< CUmemorytype as called; UNIFIED where not said */
    size_t   x_bytes, y, z, lod;
    size_t   pitch, height;
} cgs_copy_end_t;

typedef struct {
    cgs_copy_end_t src, dst;
    size_t         width_bytes, height, depth;
    uint64_t       api; /**< cgs_copy_api_t */
} cgs_copy_t;

typedef struct {
    CUdeviceptr dst;
    size_t      pitch;
    size_t      width, height; /**< in elements; height 1 for a 1-D set */
    unsigned    value;
    uint8_t     element_size;  /**< 1, 2 or 4 bytes */
    uint8_t     is_2d;         /**< called by a 2-D function */
    uint8_t     is_sync;       /**< called by a function without Async */
    uint8_t     reserved;
} cgs_set_t;

/** A call as the program makes it; lives on its stack. */
typedef struct {
    cgs_op_kind_id_t kind;
    CUstream         stream;
    CUdevice         device;   /**< of the current context, for admit */
    bool             refused;  /**< can be no op, whatever it holds */
    bool             admitted; /**< admit said yes */
    const char       *reason;  /**< set with refused, and by admit */
    CUresult         result;   /**< of a swallowed call */
    union {
        struct {
            cgs_launch_shape_t      shape;
            void                    **params;
            const char              *extra;  /**< buffer, or NULL */
            const CUlaunchAttribute *attrs;
            const cgs_layout_t      *layout; /**< set by admit */
        } kernel;
        struct {
            cgs_copy_t   copy;
            CUmemorytype src_type, dst_type; /**< set by admit */
            uint64_t     generation;         /**< set by admit */
        } copy;
        struct {
            cgs_set_t set;
            uint64_t  generation; /**< set by admit */
        } set;
        struct {
            CUhostFn function;
            void     *data;
        } host;
        struct {
            CUdeviceptr address;
            size_t      bytes; /**< of its allocation, set by admit */
        } free;
        struct {
            CUevent  event;
            uint64_t generation; /**< of events, set by admit */
            uint32_t distance;   /**< of a wait: ops back to the record; set
                                      by who appends it */
        } event;
    };
} cgs_call_t;

/** A recorded call; what it points to lies in its recording's arena. */
typedef struct {
    uint8_t     kind;  /**< cgs_op_kind_id_t */
    uint8_t     lane;  /**< which of the chunk's streams */
    bool        dirty; /**< differs from its node */
    uint32_t    gap_ns; /**< the program's own time before the call */
    CUgraphNode node;  /**< in the chunk's graph, or NULL */
    union {
        struct {
            cgs_launch_shape_t shape;
            cgs_layout_t       *layout;
            cgs_function_limits_t limits; /**< of its launches */
            char               *args;      /**< bytes by the layout */
            void               **pointers; /**< to each argument in args */
            CUlaunchAttribute  *attrs;
        } kernel;
        struct {
            cgs_copy_t   copy;
            CUmemorytype src_type, dst_type; /**< what the addresses are */
            uint64_t     generation;         /**< of memory, when looked up */
            cgs_staging_t *staging; /**< of the chunk, or NULL */
            size_t       stage_offset;
            char         *staged;   /**< this run's copy of the source */
        } copy;
        struct {
            cgs_set_t set;
            uint64_t  generation;
        } set;
        struct {
            CUhostFn function;
            void     *data;
        } host;
        struct {
            CUdeviceptr address;
            size_t      bytes; /**< of its allocation */
        } free;
        struct {
            CUevent  event;
            uint64_t generation; /**< of events, when it was last seen alive */
            bool     is_fixed;   /**< of a record: the graph relies on its
                                      being of the same event as others */
            bool     is_earlier; /**< of a record: another one of the same
                                      event follows, so it has no node */
            uint32_t distance;   /**< of a wait: its record is so many ops
                                      before it */
        } event;
    };
} cgs_op_t;

/** Memory that an op uses, or may use. */
typedef struct {
    uint64_t address;
    uint64_t bytes;    /**< from there on; 0 where only the kernel knows */
    unsigned access;   /**< CGSHIM_ACCESS_... */
    bool     is_pageable; /**< the driver knows nothing of it */
    int      argument; /**< of the kernel, the copy or the set, from 0 */
    uint32_t offset;   /**< bytes in the argument before the address */
} cgs_op_use_t;

typedef void (*cgs_op_use_fn_t)(const cgs_op_use_t *use, void *arg);

/** What comparing a call with an op found. */
typedef enum {
    CGS_MATCH_SAME,    /**< nothing differs */
    CGS_MATCH_STAGED,  /**< nothing differs, but memory of the host's must be
                            taken anew each time */
    CGS_MATCH_CHANGED, /**< only what a patch can change */
    CGS_MATCH_OTHER    /**< another shape, or no op at all */
} cgs_match_t;

/** The verbs of a kind. */
typedef struct {
    const char *name; /**< of the kind, for reports */

    /** Whether the call can be an op in the current context; fills what take
     *  and describe need, or sets the reason. Calls the driver. */
    bool (*admit)(cgs_call_t *call);

    /** Hold a call against an op. Allocates nothing. Where the answer is
     *  CHANGED the call has been admitted. */
    cgs_match_t (*compare)(const cgs_op_t *op, cgs_call_t *call);

    /** Copy an admitted call into an op; a new one (`arena` given), or one
     *  that compare found CHANGED (`arena` NULL). @return 0 or -ENOMEM. */
    int (*take)(cgs_op_t *op, const cgs_call_t *call, cgs_arena_t *arena);

    /** Fill in an admitted call that take would copy into this op; it points
     *  into the op. */
    void (*recall)(const cgs_op_t *op, cgs_call_t *call);

    /** Continue a hash with all that a patch can change. */
    uint64_t (*hash)(const cgs_op_t *op, uint64_t hash);

    /** Where memory has changed since, ask again what the op's addresses
     *  are; NULL where a node holds none. Calls the driver.
     *  @return false if they are no longer the same kind of memory. */
    bool (*refresh)(cgs_op_t *op, CUdevice device);

    /** Make the recorded call on a stream. */
    CUresult (*issue)(const cgs_op_t *op, CUstream stream);

    /** Parameters of the op's node in a context. `params` is zeroed before
     *  and points into the op after. NULL where the op is no node. */
    void (*describe)(const cgs_op_t *op, CUcontext ctx,
                     CUgraphNodeParams *params);

    /** Set on a fresh node what its parameters cannot hold; NULL where they
     *  hold all. */
    CUresult (*decorate)(const cgs_op_t *op, CUgraphNode node);

    /** Tell of each address that the op holds, and of each word of a kernel's
     *  arguments that may be one; NULL where it holds none. */
    void (*uses)(const cgs_op_t *op, cgs_op_use_fn_t tell, void *arg);

    /** Say what differs, for the report. Strings are literals or allocated
     *  and live on. Calls the driver for names; where the divergence is to be
     *  brief it does neither. */
    void (*explain)(const cgs_op_t *op, const cgs_call_t *call,
                    cgs_divergence_t *divergence);
} cgs_op_kind_t;

/** Whether a launch without `extra` is just that of a kernel op. */
bool cgs_op_is_launch(const cgs_op_t *op, const cgs_launch_shape_t *shape,
                      void **params);

extern const cgs_op_kind_t cgs_op_kernel;
extern const cgs_op_kind_t cgs_op_copy;
extern const cgs_op_kind_t cgs_op_set;
extern const cgs_op_kind_t cgs_op_host;
extern const cgs_op_kind_t cgs_op_free;
extern const cgs_op_kind_t cgs_op_record;
extern const cgs_op_kind_t cgs_op_wait;

extern const cgs_op_kind_t *const cgs_op_kinds[CGS_OP_NUM_KINDS];

/** Continue a hash with bytes. */
uint64_t cgs_op_hash_bytes(const void *data, size_t size, uint64_t hash);

/** Name of what a call does, for the report: a kernel's name, or the kind's.
 *  @return A string that lives on. Calls the driver. */
const char *cgs_op_call_name(const cgs_call_t *call);
const char *cgs_op_name(const cgs_op_t *op);

/** Bytes that an op stages in each run, 0 for most. */
size_t cgs_op_staged_bytes(const cgs_op_t *op);

/** Fill in a call that is all zero but for its stream. @{ */
void cgs_call_launch(cgs_call_t *call, cgs_launch_api_t api, CUfunction f,
                     const unsigned grid[3], const unsigned block[3],
                     unsigned shared_bytes, void **params, void **extra,
                     const CUlaunchAttribute *attrs, unsigned num_attrs);
void cgs_call_copy(cgs_call_t *call, cgs_copy_api_t api, CUmemorytype dst_type,
                   uint64_t dst, CUmemorytype src_type, uint64_t src,
                   size_t bytes);
void cgs_call_copy_2d(cgs_call_t *call, const CUDA_MEMCPY2D *copy);
void cgs_call_copy_3d(cgs_call_t *call, const CUDA_MEMCPY3D *copy);
void cgs_call_set(cgs_call_t *call, CUdeviceptr dst, size_t pitch,
                  unsigned value, unsigned element_size, size_t width,
                  size_t height, bool is_2d, bool is_sync);
void cgs_call_host(cgs_call_t *call, CUhostFn function, void *data);
void cgs_call_free(cgs_call_t *call, CUdeviceptr address);
void cgs_call_event(cgs_call_t *call, cgs_op_kind_id_t kind, CUevent event,
                    unsigned flags);
/** @} */

/** Whether the calls of a kind order streams, and do no work themselves. */
static inline bool cgs_op_is_event(unsigned kind)
{
    return (kind == CGS_OP_RECORD) || (kind == CGS_OP_WAIT);
}

/** An event is about to be destroyed: its handle may come to mean another one.
 *  Waits while events are held. */
void cgs_events_changed(void);

/** Have no thread destroy an event until they are released: between the look
 *  whether what nodes hold is alive and the driver's use of it. One thread
 *  holds them at a time. @{ */
void cgs_events_hold(void);
void cgs_events_release(void);
/** @} */

/** An event was made. Any thread. */
void cgs_event_created(CUevent event, unsigned flags);

/** Whether the event may be asked for its time. Any thread. */
bool cgs_event_has_time(CUevent event);

/**
 * What an address is to a copy or a set. Calls the driver.
 *
 * @param address Device or host address.
 * @param bytes   How many from there on must be of the same allocation.
 * @param device  Device that device memory must belong to.
 * @param type    Set to CU_MEMORYTYPE_DEVICE for memory of that device that
 *                is not managed, or to CU_MEMORYTYPE_HOST for pinned memory.
 *
 * @return false where it is neither: the call must be a barrier.
 */
bool cgs_memory_type(uint64_t address, size_t bytes, CUdevice device,
                     CUmemorytype *type);

/** Whether an address is host memory that the driver knows nothing of. */
bool cgs_memory_is_pageable(uint64_t address);

/**
 * Number of the present state of memory: another one after any call that may
 * have ended what an address means. Any thread.
 */
uint64_t cgs_memory_generation(void);
void cgs_memory_changed(void);

#endif
