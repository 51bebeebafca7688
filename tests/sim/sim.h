/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated CUDA driver (libcuda.so.1): what its parts share.
 *
 * It stands in for NVIDIA's driver where there is no GPU. Device memory is
 * host memory, kernels are host functions (simkernel.h), and work is a graph
 * of tasks with exactly the dependencies that CUDA's stream semantics give it.
 * Nothing runs when it is submitted: a seeded scheduler runs ready tasks late
 * and in any order that the dependencies allow, so that a missing dependency
 * shows up as a wrong byte for some seed. A single-threaded program sees the
 * same order each time for one seed.
 *
 * Environment:
 *   SIM_SEED=n            seed of the scheduler (default 1)
 *   SIM_EAGER=1           run all work at once instead (for debugging)
 *   SIM_WORKER=1          a thread that runs ready work now and then, for
 *                         programs that poll memory without calling the driver
 *   SIM_POISON=1          fresh device memory holds bytes that depend on the
 *                         seed (default 0xCD); memory freed by cuMemFreeAsync
 *                         holds 0xDD in any case
 *   SIM_PROTECT=1         device memory can be touched only while a task runs,
 *                         so that a host access to it ends in SIGSEGV
 *   SIM_STRICT=1          abort where a call is given a dead handle, or a graph
 *                         with one is made, sent or launched; no handle is
 *                         given twice then
 *   SIM_FAIL=fn:n[:code][,...]
 *                         the n-th call (from 1) of function fn, named without
 *                         _v2, _ptsz and the like, returns code (default 2) and
 *                         does nothing; fn:n+ means from the n-th call on
 *   SIM_REPORT=file       at exit: lines `call NAME COUNT`, `kernel NAME
 *                         COUNT`, `copy COUNT`, `graphs BYTES`, `set COUNT`, sorted.
 *                         Kernels, copies and sets count when they are
 *                         executed; BYTES is the most device memory that
 *                         executable graphs had at any time. %p in the name is
 *                         the process id
 *   SIM_DRIVER_VERSION=n  what cuDriverGetVersion says (default 13000);
 *                         cuGetProcAddress hides what is newer
 *   SIM_DEVICES=n         number of devices, 1 (default) or 2
 *   SIM_MEMORY_MB=n       memory of a device (default 4096)
 *   SIM_PLANT=patch|drop|swap|noise
 *                         graphs go wrong: a patched kernel node gets another
 *                         byte in its last argument; the kernel node in the
 *                         middle is left out; two kernel nodes, one after the
 *                         other, change places. noise: each kernel leaves
 *                         another byte where its first argument points to
 *   SIM_SELF_DLSYM=1      the driver looks up functions of its own by dlsym on
 *                         its own handle and calls what it gets
 *   SIM_LAUNCH_NS=n       what a call that puts work on a stream takes at least
 *   SIM_STALL_NS=n        a thread that is not the first one is kept so long
 *                         where a launch or a copy begins, as if it had lost
 *                         its processor there
 *   SIM_KERNEL_NS=n       how long a kernel keeps its stream busy; who waits
 *                         for it waits for that too
 *   SIM_EXPORT_TABLE=uuid cuGetExportTable knows this id (32 hex digits)
 *
 * Work still pending when the process exits in an orderly way is completed.
 *
 * One lock, sim_lock in sim_core.c, guards all state. It is not held while a
 * task's work (kernel body, host function, copy) runs, which happens only in
 * sim_enter, sim_leave and the sim_*_wait functions: between those, a
 * function of the driver is atomic.
 */
#ifndef SIM_H
#define SIM_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simkernel.h"

#define SIM_API __attribute__((visibility("default")))
#define SIM_ARRAY_SIZE(_array) (sizeof(_array) / sizeof((_array)[0]))
#define SIM_MAX_DEVICES 2
#define SIM_MAX_ATTR 17u
#define SIM_SHARED_DEFAULT (48u * 1024u)
#define SIM_SHARED_MAX (227u * 1024u)
#define SIM_NUM_SMS 132

typedef struct sim_ctx    sim_ctx_t;
typedef struct sim_stream sim_stream_t;
typedef struct sim_event  sim_event_t;
typedef struct sim_task   sim_task_t;
typedef struct sim_op     sim_op_t;
typedef struct sim_func   sim_func_t;
typedef struct sim_image  sim_image_t;
typedef struct sim_graph  sim_graph_t;
typedef struct sim_node   sim_node_t;
typedef struct sim_exec   sim_exec_t;
typedef struct sim_pool   sim_pool_t;
typedef struct sim_thread sim_thread_t;
typedef struct sim_capture sim_capture_t;

/* ------------------------------------------------- sim_core.c: entries */

/* What an entry needs before its body runs. */
enum {
    SIM_ANYTIME = 1 << 0, /* works before cuInit and during exit */
    SIM_CTX     = 1 << 1, /* needs a current context */
    SIM_UNSAFE  = 1 << 2  /* prohibited while some streams are captured */
};

/* A place for the count of one exported function. */
typedef struct sim_site {
    const char      *name; /* as exported */
    struct sim_site *next;
    struct sim_bare *bare; /* count shared by all versions of a name */
    uint64_t         count;
} sim_site_t;

/* Enters the driver: counts, injects errors, runs some ready tasks. When it
 * succeeds the lock is held and sim_leave must follow. */
CUresult sim_enter(sim_site_t *site, unsigned needs);
CUresult sim_leave(CUresult status);

#define SIM_ENTRY(_name, _params, _needs, _call) \
    SIM_API CUresult CUDAAPI _name _params \
    { \
        static sim_site_t site = {.name = #_name}; \
        CUresult          status; \
        \
        status = sim_enter(&site, _needs); \
        return (status == CUDA_SUCCESS) ? sim_leave(_call) : status; \
    }

/* Both twins of a function. In _call, twin is 1 in the one where stream 0
 * means the thread's own stream. */
#define SIM_ENTRY_TWINS(_name, _suffix, _params, _needs, _call) \
    SIM_ENTRY_TWIN(_name, 0, _params, _needs, _call) \
    SIM_ENTRY_TWIN(_name##_suffix, 1, _params, _needs, _call)

#define SIM_ENTRY_TWIN(_name, _twin, _params, _needs, _call) \
    SIM_API CUresult CUDAAPI _name _params \
    { \
        static sim_site_t site = {.name = #_name}; \
        const int         twin = _twin; \
        CUresult          status; \
        \
        (void)twin; \
        status = sim_enter(&site, _needs); \
        return (status == CUDA_SUCCESS) ? sim_leave(_call) : status; \
    }

#define SIM_ENTRY_PTSZ(_name, _params, _needs, _call) \
    SIM_ENTRY_TWINS(_name, _ptsz, _params, _needs, _call)
#define SIM_ENTRY_PTDS(_name, _params, _needs, _call) \
    SIM_ENTRY_TWINS(_name, _ptds, _params, _needs, _call)

/* What the environment says, read once. */
typedef struct {
    uint64_t    seed;
    bool        eager, worker, poison, protect, self_dlsym;
    int         driver_version;
    int         num_devices;
    size_t      memory;
    uint64_t    launch_ns, kernel_ns, stall_ns;
    const char *report;
    const char *export_table;
    const char *plant;
} sim_config_t;

const sim_config_t *sim_config(void);
bool sim_is_planted(const char *what); /* SIM_PLANT says so */

void *sim_alloc(size_t size); /* zeroed; ends the process if none is left */
void *sim_copy_of(const void *data, size_t size);
/* Makes room for one more element of an array. */
void *sim_grow(void *array, size_t num, size_t *max, size_t element);
uint64_t sim_uid(void); /* unique in the process, never 0 */
uint32_t sim_random(uint32_t below);

/* fn or, under SIM_SELF_DLSYM, what a look-up of its name in the driver itself
 * finds. Without the lock: dlsym may be somebody else's. */
void *sim_self(const char *name, void *fn);

void sim_lock_take(void);
void sim_lock_drop(void);
/* Waits at most ms milliseconds for a task to complete. */
void sim_lock_wait(unsigned ms);
void sim_lock_wake(void);

void sim_count_copy(void);
void sim_count_set(void);
typedef struct sim_counter sim_counter_t;
sim_counter_t *sim_count_kernel_get(const char *name);
void sim_count_kernel(sim_counter_t *counter);

/* Handles. A value that was freed last is the next one given out. */
typedef enum {
    SIM_KIND_CTX,
    SIM_KIND_STREAM,
    SIM_KIND_EVENT,
    SIM_KIND_MODULE,
    SIM_KIND_FUNC,
    SIM_KIND_LIBRARY,
    SIM_KIND_KERNEL,
    SIM_KIND_GRAPH,
    SIM_KIND_NODE,
    SIM_KIND_EXEC,
    SIM_KIND_POOL,
    SIM_KIND_LAST
} sim_kind_t;

void *sim_handle_new(sim_kind_t kind, void *object);
void *sim_handle_get(sim_kind_t kind, const void *handle);
/* Where the driver is strict, ends the process. */
void sim_handle_is_dead(const char *what);
void sim_handle_free(sim_kind_t kind, const void *handle);
size_t sim_handle_slots(sim_kind_t kind);
void *sim_handle_at(sim_kind_t kind, size_t slot); /* NULL: free slot */

/* Per-thread state. */
#define SIM_MAX_STACK 64
struct sim_thread {
    struct {
        CUcontext handle;
        uint64_t  uid;
    } stack[SIM_MAX_STACK];
    unsigned            depth;
    CUstreamCaptureMode capture_mode;
    bool                is_callback;
    uint64_t            uid;
};

sim_thread_t *sim_thread(void);

/* ------------------------------------------------- sim_time.c */

/* A call begins and ends, work is put on a stream, somebody has waited for a
 * stream, or for all where it is NULL. With the lock. */
void sim_time_enter(const char *name);
void sim_time_leave(void);
void sim_time_stall(uint64_t stall_ns, const char *name); /* without lock */
void sim_time_submit(sim_stream_t *stream, const sim_op_t *op);
void sim_time_wait(const sim_stream_t *stream);

/* ------------------------------------------------- sim_sched.c: tasks */

typedef enum {
    SIM_TASK_WAITING,
    SIM_TASK_READY,
    SIM_TASK_RUNNING,
    SIM_TASK_DONE
} sim_task_state_t;

struct sim_task {
    unsigned         refs;
    sim_task_state_t state;
    unsigned         num_waits; /* unfinished tasks before this one */
    sim_task_t     **after;     /* tasks that wait for this one */
    size_t           num_after, max_after;
    size_t           ready_index;
    sim_task_t      *older, *newer; /* all unfinished tasks, by submission */
    uint64_t         id;
    uint64_t         ctx_uid;
    uint64_t         lane;       /* the stream's uid, or a branch's */
    uint64_t         done_clock; /* virtual nanoseconds */
    sim_op_t        *op;         /* owned; NULL does nothing */
};

sim_task_t *sim_task_new(sim_op_t *op, uint64_t ctx_uid, uint64_t lane);
void sim_task_after(sim_task_t *task, sim_task_t *earlier);
/* After all that was submitted to its context. */
void sim_task_after_all(sim_task_t *task);
void sim_task_submit(sim_task_t *task);
sim_task_t *sim_task_ref(sim_task_t *task);
void sim_task_unref(sim_task_t *task);
/* Replaces *place by task, with references. */
void sim_task_set(sim_task_t **place, sim_task_t *task);
bool sim_task_is_done(const sim_task_t *task); /* NULL is done */
void sim_task_wait(sim_task_t *task);
/* Waits for all work of a context that was submitted before, 0: of all. */
void sim_sched_wait(uint64_t ctx_uid);
void sim_sched_step(void);  /* perhaps runs some tasks, by the seed */
void sim_sched_drain(void); /* runs all tasks that can run */
void sim_sched_start(void);
void sim_sched_stop(void);

/* ------------------------------------------------- sim_op.c: work */

typedef enum {
    SIM_OP_EMPTY,
    SIM_OP_KERNEL,
    SIM_OP_COPY,
    SIM_OP_SET,
    SIM_OP_HOST,
    SIM_OP_CALLBACK,
    SIM_OP_RECORD,
    SIM_OP_WAIT,
    SIM_OP_MEMOPS,
    SIM_OP_CHILD,
    SIM_OP_FILL
} sim_op_kind_t;

/* Launch attributes, by their number. */
typedef struct {
    uint32_t               mask;
    CUlaunchAttributeValue value[SIM_MAX_ATTR];
} sim_attrs_t;

typedef struct {
    sim_func_t   *func; /* a reference */
    CUfunction    func_handle; /* as given; one of these two is set */
    CUkernel      kern_handle;
    unsigned      grid[3], block[3], shared;
    uint8_t      *args;
    void        **params; /* into args */
    sim_attrs_t  *attrs;  /* NULL: none */
} sim_op_kernel_t;

typedef struct {
    CUDA_MEMCPY3D desc;     /* as given */
    void         *staged;   /* source bytes taken at the call, or NULL */
    bool          src_host, dst_host;
    int           src_device, dst_device; /* -1: pageable */
} sim_op_copy_t;

typedef struct {
    CUDA_MEMSET_NODE_PARAMS_v1 params;
    int                        device;
} sim_op_set_t;

struct sim_op {
    sim_op_kind_t kind;
    uint64_t      ctx_uid;
    CUcontext     ctx;
    union {
        sim_op_kernel_t kernel;
        sim_op_copy_t   copy;
        sim_op_set_t    set;
        CUDA_HOST_NODE_PARAMS host;
        struct {
            CUstreamCallback fn;
            CUstream         stream;
            void            *data;
        } callback;
        struct {
            CUevent  handle;
            uint64_t uid;
        } event;
        struct {
            CUstreamBatchMemOpParams *ops;
            unsigned                  num;
        } memops;
        sim_graph_t *child;
        struct {
            void   *start;
            size_t  size;
            uint8_t byte;
            bool    poison; /* bytes from the seed instead */
        } fill;
    };
};

sim_op_t *sim_op_new(sim_op_kind_t kind, const sim_ctx_t *ctx);
sim_op_t *sim_op_clone(const sim_op_t *op);
void sim_op_release(sim_op_t *op);
bool sim_op_can_run(const sim_op_t *op);
void sim_op_run(sim_op_t *op);         /* without the lock */
void sim_op_count(const sim_op_t *op); /* with the lock, once run */
void sim_fill_fresh(void *start, size_t size, bool poison);

/* ------------------------------------------------- sim_ctx.c */

struct sim_ctx {
    CUcontext     handle;
    uint64_t      uid; /* changes with each reset */
    CUdevice      device;
    unsigned      flags;
    unsigned      api_version;
    bool          primary, active;
    unsigned      refs; /* of a primary context */
    size_t        limits[CU_LIMIT_MAX];
    CUfunc_cache  cache_config;
    sim_stream_t *streams; /* all, the legacy one included */
    sim_stream_t *legacy;
    sim_task_t  **orphans; /* last work of destroyed blocking streams */
    size_t        num_orphans, max_orphans;
};

/* The current context. Status when there is none, or none that lives. */
CUresult sim_ctx_current(sim_ctx_t **ctx);
CUresult sim_ctx_get(CUcontext handle, sim_ctx_t **ctx); /* NULL: current */
sim_ctx_t *sim_ctx_by_uid(uint64_t uid);
CUresult sim_device_check(CUdevice device);

/* ------------------------------------------------- sim_stream.c */

typedef struct {
    sim_node_t **nodes;
    size_t       num, max;
} sim_node_set_t;

struct sim_stream {
    CUstream        handle;
    uint64_t        uid;
    sim_ctx_t      *ctx;
    sim_stream_t   *next; /* in the context */
    unsigned        flags;
    int             priority;
    uint64_t        thread; /* uid of the owner of a per-thread stream */
    sim_task_t     *last;
    sim_attrs_t     attrs;
    sim_capture_t  *capture;
    sim_node_set_t  tails; /* captured: what the next node depends on */
    uint64_t        busy_until; /* sim_time.c's */
};

struct sim_event {
    CUevent         handle;
    uint64_t        uid;
    uint64_t        ctx_uid;
    unsigned        flags;
    sim_task_t     *record; /* the last one, NULL: none */
    uint64_t        capture_uid;
    sim_node_set_t  tails;
};

CUresult sim_stream_find(CUstream handle, int twin, sim_stream_t **stream);
sim_event_t *sim_event_find(CUevent handle);
/* A task after all that the stream semantics put before it; becomes the
 * stream's last task. Not yet submitted. */
sim_task_t *sim_stream_task(sim_stream_t *stream, sim_op_t *op);
/* Enqueues an operation (consumed), or adds it to the capture. *task, if asked
 * for, is a reference, NULL when captured. */
CUresult sim_stream_submit(sim_stream_t *stream, sim_op_t *op,
                           sim_task_t **task);
/* Waits for what the stream holds; its legacy relations included. */
void sim_stream_wait(sim_stream_t *stream);
void sim_stream_thread_end(uint64_t thread);
void sim_streams_destroy(sim_ctx_t *ctx);
sim_stream_t *sim_stream_make(sim_ctx_t *ctx, unsigned flags, int priority);
void sim_event_record(sim_event_t *event, sim_task_t *task);
CUresult sim_memop(CUstream handle, int twin,
                   CUstreamBatchMemOpType operation, CUdeviceptr address,
                   uint64_t value, unsigned flags);

/* ------------------------------------------------- sim_mem.c */

typedef enum {
    SIM_MEM_PAGEABLE,
    SIM_MEM_DEVICE,
    SIM_MEM_PINNED,
    SIM_MEM_REGISTERED,
    SIM_MEM_MANAGED
} sim_mem_kind_t;

typedef struct {
    uintptr_t      start;
    size_t         size;     /* as asked for */
    size_t         capacity; /* of the block */
    sim_mem_kind_t kind;
    bool           is_async, is_global, is_low, is_mapped;
    unsigned       refs; /* of a global: modules that hold it */
    unsigned       flags;
    CUdevice       device;
    CUcontext      ctx;
    uint64_t       ctx_uid;
    uint64_t       id;
    CUmemoryPool   pool;
} sim_mem_t;

/* The allocation that holds address, or NULL. Valid until the lock drops. */
const sim_mem_t *sim_mem_find(uintptr_t address);
CUresult sim_mem_global(sim_ctx_t *ctx, size_t size, void *place,
                        CUdeviceptr *address);
void sim_mem_global_free(CUdeviceptr address);
/* Memory that is mapped by hand, from its address on. */
void sim_mem_map(sim_ctx_t *ctx, CUdeviceptr address, size_t size);
bool sim_mem_unmap(CUdeviceptr address);
void sim_mem_ctx_end(uint64_t ctx_uid);
/* Device memory that the driver itself takes, for executable graphs. */
CUresult sim_mem_reserve(CUdevice device, size_t size);
void sim_mem_unreserve(CUdevice device, size_t size);
/* Makes device memory reachable while a task runs (SIM_PROTECT). */
void sim_mem_open(void);
void sim_mem_close(void);

/* ------------------------------------------------- sim_copy.c */

/* Checks a copy and makes an operation of it. *op is NULL for no bytes. */
CUresult sim_copy_op(const CUDA_MEMCPY3D *desc, sim_ctx_t *ctx,
                     sim_op_t **op);
CUresult sim_set_op(const CUDA_MEMSET_NODE_PARAMS_v1 *params, sim_ctx_t *ctx,
                    sim_op_t **op);

/* ------------------------------------------------- sim_ptx.c, sim_module.c */

typedef struct {
    char          *name;
    size_t        *offsets, *sizes;
    size_t         num_params, max_params;
    size_t         args_size;
    unsigned       max_threads;
    simk_body_t    body; /* NULL: the program has none */
    sim_counter_t *counter;
} sim_entry_t;

typedef struct {
    char    *name;
    size_t   size, align;
    uint8_t *initial;
    void    *place; /* the program's simg_ symbol or NULL */
} sim_var_t;

struct sim_image {
    unsigned     refs;
    sim_entry_t *entries;
    size_t       num_entries, max_entries;
    sim_var_t   *vars;
    size_t       num_vars, max_vars;
};

CUresult sim_ptx_parse(const char *text, sim_image_t **image);
void sim_image_unref(sim_image_t *image);

struct sim_func {
    unsigned     refs;
    bool         dead; /* its module was unloaded */
    CUfunction   handle;
    CUmodule     module;
    uint64_t     ctx_uid;
    CUcontext    ctx;
    sim_image_t *image;
    sim_entry_t *entry;
    int          attrs[CU_FUNC_ATTRIBUTE_MAX];
};

void sim_func_unref(sim_func_t *func);
/* The function behind a CUfunction or, if any_kind, a CUkernel in ctx. */
CUresult sim_func_find(CUfunction handle, bool any_kind, sim_ctx_t *ctx,
                       sim_func_t **func);
CUresult sim_func_of_kernel(CUkernel handle, sim_ctx_t *ctx,
                            sim_func_t **func);
bool sim_kernel_exists(const void *handle);
void sim_modules_destroy(sim_ctx_t *ctx);

/* ------------------------------------------------- sim_launch.c */

/* Checks a launch and makes an operation of it, arguments copied. */
CUresult sim_kernel_op(const CUDA_KERNEL_NODE_PARAMS_v3 *params,
                       sim_ctx_t *ctx, bool is_node,
                       const sim_attrs_t *attrs, sim_op_t **op);
bool sim_attr_is_of_node(CUlaunchAttributeID id);
CUresult sim_kernel_check_attrs(const sim_op_kernel_t *kernel,
                                const sim_attrs_t *attrs);

/* ------------------------------------------------- sim_graph.c, sim_exec.c */

/* The most device memory that all executable graphs have had, in bytes. */
size_t sim_exec_most(void);

typedef struct {
    sim_node_t     *node;
    CUgraphEdgeData data;
} sim_edge_t;

struct sim_node {
    CUgraphNode  handle;
    uint64_t     uid;
    uint64_t     origin; /* uid of the node it was cloned from, or its own */
    sim_graph_t *graph;
    sim_op_t    *op;
    sim_edge_t  *in;
    size_t       num_in, max_in;
    size_t       index; /* in the graph */
};

struct sim_graph {
    CUgraph      handle;
    uint64_t     uid;
    sim_node_t **nodes;
    size_t       num_nodes, max_nodes;
    sim_node_t  *owner;     /* of a child graph */
    bool         capturing; /* not yet the program's to destroy */
};

sim_graph_t *sim_graph_new(void);
void sim_graph_release(sim_graph_t *graph);
sim_graph_t *sim_graph_clone(const sim_graph_t *graph);
sim_node_t *sim_graph_add(sim_graph_t *graph, sim_op_t *op);
void sim_node_depend(sim_node_t *node, sim_node_t *earlier,
                     const CUgraphEdgeData *data);
sim_graph_t *sim_graph_find(CUgraph handle);
sim_node_t *sim_node_find(CUgraphNode handle);
CUgraphNodeType sim_node_type(const sim_node_t *node);
/* Makes an operation from the parameters of any kind of node. */
CUresult sim_node_op(const CUgraphNodeParams *params, sim_op_t **op);
/* Nodes of a graph, each after all that it depends on; NULL: a cycle. */
sim_node_t **sim_graph_order(const sim_graph_t *graph);

/* ------------------------------------------------- sim_capture.c */

CUresult sim_capture_check_unsafe(void);
CUresult sim_capture_check_legacy(sim_stream_t *stream);
CUresult sim_capture_check_ctx(sim_ctx_t *ctx);
CUresult sim_capture_refuse(sim_stream_t *stream); /* and invalidate */
CUresult sim_capture_op(sim_stream_t *stream, sim_op_t *op);
CUresult sim_capture_record(sim_stream_t *stream, sim_event_t *event);
CUresult sim_capture_wait(sim_stream_t *stream, sim_event_t *event);
bool sim_capture_has_event(const sim_event_t *event);
void sim_capture_stream_end(sim_stream_t *stream);
void sim_set_clear(sim_node_set_t *set);
void sim_set_add(sim_node_set_t *set, sim_node_t *node);
void sim_set_copy(sim_node_set_t *set, const sim_node_set_t *from);

#endif
