/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the steps of a random program. Each thread goes through its own; what a
 * step must come after in other threads it waits for, without calling CUDA.
 * Results are kept with their step and printed in order at the end.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <nvtx3/nvToolsExt.h>

#include "kernels.h"
#include "kernels_ptx.h"
#include "random.h"


enum {
    RND_BIG_SHARED = 60000,     /* more than a kernel has without asking */
    RND_FEW_SHARED = 40000,
    RND_PATIENCE_S = 20
};


/* The kernels of one module. */
typedef struct rnd_functions {
    CUfunction axpy, scale, hash, add3, add4, chain, shape, table, turn, copy,
               grid, signal;
} rnd_functions_t;

/* What a host function is given. */
typedef struct rnd_host_cell {
    uint32_t *word;
    uint32_t value;
} rnd_host_cell_t;

struct rnd_run {
    prg_context_t   prg;
    CUmodule        module[2];
    CUlibrary       library;        /* instead of the second module, or NULL */
    rnd_functions_t functions[2];
    bool            has_managed;

    rnd_program_t   *program;
    uint64_t        result[RND_STEPS];
    rnd_host_cell_t cell[RND_STEPS];
    CUstream        stream[RND_LEGACY];
    CUevent         event[RND_EVENTS];
    CUdeviceptr     address[RND_BUFFERS];
    bool            is_pooled[RND_BUFFERS];
    nvtxRangeId_t   range[RND_RANGES];
    bool            is_open[RND_RANGES];

    /* How far the threads are. */
    pthread_mutex_t lock;
    pthread_cond_t  moved;
    unsigned        place[RND_THREADS];
};

/* One thread's way through the steps of a loop. */
typedef struct rnd_thread {
    rnd_run_t *run;
    unsigned  number;
    unsigned  begin, end;
    unsigned  depth;            /* of its ranges */
    pthread_t id;
} rnd_thread_t;


static uint32_t *rnd_host(const rnd_run_t *run, unsigned buffer)
{
    return (uint32_t*)(uintptr_t)run->address[buffer];
}

static CUstream rnd_stream(const rnd_run_t *run, unsigned slot)
{
    return slot == RND_LEGACY     ? NULL :
           slot == RND_PER_THREAD ? CU_STREAM_PER_THREAD : run->stream[slot];
}

/* A kernel of a library does where a function is asked for. */
static CUfunction rnd_function(const rnd_run_t *run, unsigned index,
                               const char *name)
{
    prg_context_t prg = run->prg;
    CUkernel kernel;

    if (index == 0 || run->library == NULL) {
        prg.module = run->module[index];
        return prg_kernel(&prg, name);
    }
    PRG_CHECK(cuLibraryGetKernel(&kernel, run->library, name));
    return (CUfunction)kernel;
}

static void rnd_load(rnd_run_t *run, unsigned index, bool is_library)
{
    rnd_functions_t *f = &run->functions[index];

    if (is_library) {
        PRG_CHECK(cuLibraryLoadData(&run->library, krn_kernels_ptx, NULL, NULL,
                                    0, NULL, NULL, 0));
    } else {
        PRG_CHECK(cuModuleLoadData(&run->module[index], krn_kernels_ptx));
    }
    f->axpy   = rnd_function(run, index, "k_axpy");
    f->scale  = rnd_function(run, index, "k_scale");
    f->hash   = rnd_function(run, index, "k_hash");
    f->add3   = rnd_function(run, index, "k_add3");
    f->add4   = rnd_function(run, index, "k_add4");
    f->chain  = rnd_function(run, index, "k_chain");
    f->shape  = rnd_function(run, index, "k_struct");
    f->table  = rnd_function(run, index, "k_table");
    f->turn   = rnd_function(run, index, "k_turn");
    f->copy   = rnd_function(run, index, "k_copy");
    f->signal = rnd_function(run, index, "k_signal");
    f->grid   = rnd_function(run, index, "k_grid");
}

static void rnd_unload(rnd_run_t *run)
{
    if (run->library != NULL) {
        PRG_CHECK(cuLibraryUnload(run->library));
        run->library = NULL;
    } else {
        PRG_CHECK(cuModuleUnload(run->module[1]));
    }
}

/* How much dynamic shared memory a kernel may have. */
static void rnd_limit(const rnd_run_t *run, int bytes)
{
    CUfunction turn                = run->functions[1].turn;
    CUfunction_attribute attribute =
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;

    if (run->library != NULL) {
        PRG_CHECK(cuKernelSetAttribute(attribute, bytes, (CUkernel)turn,
                                       run->prg.device));
    } else {
        PRG_CHECK(cuFuncSetAttribute(turn, attribute, bytes));
    }
}

/* Launches */

static void rnd_launch_shape(const rnd_op_t *op, CUfunction shape_kernel,
                             CUstream stream, CUdeviceptr to)
{
    uint32_t n = op->words;
    krn_shape_t shape;

    memset(&shape, 0, sizeof(shape));
    shape.width    = op->value;
    shape.flags[1] = (uint8_t)op->value;
    shape.rounds   = 3;
    PRG_LAUNCH(shape_kernel, stream, n, &to, &shape, &n);
}

static void rnd_launch_table(const rnd_op_t *op, CUfunction table_kernel,
                             CUstream stream, CUdeviceptr to)
{
    uint32_t n = op->words;
    krn_table_t table;
    unsigned i;

    for (i = 0; i < KRN_TABLE_WORDS; ++i) {
        table.word[i] = op->value * (i / 7);
    }
    PRG_LAUNCH(table_kernel, stream, n, &to, &table, &n);
}

static CUresult rnd_launch_turn(const rnd_op_t *op, CUfunction turn,
                                CUstream stream, CUdeviceptr to)
{
    uint32_t n     = op->words;
    unsigned block = n >= 32 ? 32 : 16;

    return cuLaunchKernel(turn, n / block, 1, 1, block, 1, 1,
                          op->kind == RND_TURN_BIG ?
                          RND_BIG_SHARED : block * sizeof(uint32_t),
                          stream, (void*[]){ &to, &n }, NULL);
}

static void rnd_launch_grid(const rnd_op_t *op, CUfunction grid_kernel,
                            CUstream stream, CUdeviceptr to)
{
    rnd_grid_t shape = rnd_grid(op->shape);
    uint32_t n       = op->words;
    void *params[]   = {&to, &n};
    CUlaunchConfig config;

    if (op->kind == RND_GRID) {
        PRG_CHECK(cuLaunchKernel(grid_kernel, shape.grid[0], shape.grid[1],
                                 shape.grid[2], shape.block[0],
                                 shape.block[1], shape.block[2],
                                 shape.shared_bytes, stream, params, NULL));
        return;
    }
    memset(&config, 0, sizeof(config));
    config.gridDimX       = shape.grid[0];
    config.gridDimY       = shape.grid[1];
    config.gridDimZ       = shape.grid[2];
    config.blockDimX      = shape.block[0];
    config.blockDimY      = shape.block[1];
    config.blockDimZ      = shape.block[2];
    config.sharedMemBytes = shape.shared_bytes;
    config.hStream        = stream;
    PRG_CHECK(cuLaunchKernelEx(&config, grid_kernel, params, NULL));
}

static void rnd_launch_extra(const rnd_op_t *op, CUfunction scale,
                             CUstream stream, CUdeviceptr to)
{
    struct {
        CUdeviceptr x;
        uint32_t    n, factor;
    } arguments = {to, op->words, op->value};
    size_t size = sizeof(arguments);
    void *extra[] = {
        CU_LAUNCH_PARAM_BUFFER_POINTER, &arguments,
        CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END
    };

    PRG_CHECK(cuLaunchKernel(scale, 1, 1, 1, op->words, 1, 1, 0, stream, NULL,
                             extra));
}

static void rnd_launch_ex(const rnd_op_t *op, CUfunction scale,
                          CUstream stream, CUdeviceptr to)
{
    uint32_t n     = op->words;
    uint32_t value = op->value;
    CUlaunchAttribute attribute;
    CUlaunchConfig config;

    memset(&attribute, 0, sizeof(attribute));
    attribute.id             = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    attribute.value.priority = -(int)(op->luck % 2);
    memset(&config, 0, sizeof(config));
    config.gridDimX  = config.gridDimY  = config.gridDimZ = 1;
    config.blockDimX = n;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream   = stream;
    config.attrs     = &attribute;
    config.numAttrs  = op->luck % 3 != 0;
    PRG_CHECK(cuLaunchKernelEx(&config, scale, (void*[]){ &to, &n, &value },
                               NULL));
}

static CUresult rnd_launch(const rnd_run_t *run, const rnd_op_t *op,
                           CUstream stream)
{
    const rnd_functions_t *f = &run->functions[op->module];
    CUdeviceptr to           = run->address[op->to];
    CUdeviceptr a            = run->address[op->from[0]];
    CUdeviceptr b            = run->address[op->from[1]];
    CUdeviceptr c            = run->address[op->from[2]];
    uint32_t n               = op->words;
    uint32_t value           = op->value;

    switch (op->kind) {
    case RND_AXPY:
        PRG_LAUNCH(f->axpy, stream, n, &to, &a, &n, &value);
        break;
    case RND_SCALE:
        PRG_LAUNCH(f->scale, stream, n, &to, &n, &value);
        break;
    case RND_HASH:
        PRG_LAUNCH(f->hash, stream, n, &to, &n, &value);
        break;
    case RND_ADD3:
        PRG_LAUNCH(f->add3, stream, n, &to, &a, &b, &n);
        break;
    case RND_ADD4:
        PRG_LAUNCH(f->add4, stream, n, &to, &a, &b, &c, &n);
        break;
    case RND_CHAIN:
        PRG_LAUNCH(f->chain, stream, 1, &to, &value);
        break;
    case RND_KERNEL_COPY:
        PRG_LAUNCH(f->copy, stream, n, &to, &a, &n);
        break;
    case RND_SET_FLAG:
        PRG_LAUNCH(f->signal, stream, 1, &to, &value);
        break;
    case RND_STRUCT:
        rnd_launch_shape(op, f->shape, stream, to);
        break;
    case RND_TABLE:
        rnd_launch_table(op, f->table, stream, to);
        break;
    case RND_GRID:
    case RND_GRID_EX:
        rnd_launch_grid(op, f->grid, stream, to);
        break;
    case RND_TURN:
    case RND_TURN_BIG:
        return rnd_launch_turn(op, f->turn, stream, to);
    case RND_EXTRA:
        rnd_launch_extra(op, f->scale, stream, to);
        break;
    case RND_EX:
        rnd_launch_ex(op, f->scale, stream, to);
        break;
    case RND_COOPERATIVE:
        PRG_CHECK(cuLaunchCooperativeKernel(
            f->axpy, 1, 1, 1, n, 1, 1, 0, stream,
            (void*[]){ &to, &a, &n, &value }));
        break;
    default:        /* RND_BAD_LAUNCH */
        return cuLaunchKernel(f->scale, 1, 1, 1, 5000, 1, 1, 0, stream,
                              (void*[]){ &to, &n, &value }, NULL);
    }
    return CUDA_SUCCESS;
}

/* Sets and copies */

static void rnd_set(const rnd_run_t *run, const rnd_op_t *op, CUstream stream)
{
    CUdeviceptr to = run->address[op->to];
    size_t n       = op->words;

    switch (op->kind) {
    case RND_SET8:
        PRG_CHECK(cuMemsetD8Async(to, (unsigned char)op->value, n, stream));
        break;
    case RND_SET16:
        PRG_CHECK(cuMemsetD16Async(to, (unsigned short)op->value, n, stream));
        break;
    case RND_SET32:
        PRG_CHECK(cuMemsetD32Async(to, op->value, n, stream));
        break;
    case RND_SET_2D8:
        PRG_CHECK(cuMemsetD2D8Async(to, RND_PITCH, (unsigned char)op->value,
                                    n % 24, 5, stream));
        break;
    case RND_SET_2D32:
        PRG_CHECK(cuMemsetD2D32Async(to, RND_PITCH, op->value, 1 + n % 7, 5,
                                     stream));
        break;
    case RND_SET8_NOW:
        PRG_CHECK(cuMemsetD8(to, (unsigned char)op->value, n));
        break;
    case RND_SET32_NOW:
        PRG_CHECK(cuMemsetD32(to, op->value, n));
        break;
    default:
        PRG_CHECK(cuMemsetD2D32(to, RND_PITCH, op->value, 1 + n % 7, 5));
        break;
    }
}

static void rnd_copy_2d(const rnd_run_t *run, const rnd_op_t *op,
                        CUstream stream)
{
    CUDA_MEMCPY2D copy;

    memset(&copy, 0, sizeof(copy));
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice     = run->address[op->from[0]];
    copy.srcPitch      = RND_PITCH;
    copy.srcY          = op->value % 3;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice     = run->address[op->to];
    copy.dstPitch      = RND_PITCH;
    copy.WidthInBytes  = 4 + op->words % 28;
    copy.Height        = 4;
    PRG_CHECK(op->kind == RND_COPY_2D ? cuMemcpy2DAsync(&copy, stream) :
                                        cuMemcpy2D(&copy));
}

static void rnd_copy_3d(const rnd_run_t *run, const rnd_op_t *op,
                        CUstream stream)
{
    CUDA_MEMCPY3D copy;

    memset(&copy, 0, sizeof(copy));
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice     = run->address[op->from[0]];
    copy.srcPitch      = RND_PITCH;
    copy.srcHeight     = 4;
    copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.dstDevice     = run->address[op->to];
    copy.dstPitch      = RND_PITCH;
    copy.dstHeight     = 4;
    copy.WidthInBytes  = 4 + op->words % 28;
    copy.Height        = 3;
    copy.Depth         = 2;
    PRG_CHECK(cuMemcpy3DAsync(&copy, stream));
}

/* From or to memory that is gone when the call has returned. */
static uint64_t rnd_copy_pageable(const rnd_run_t *run, const rnd_op_t *op,
                                  CUstream stream)
{
    size_t bytes = op->words * sizeof(uint32_t);
    uint32_t words[RND_WORDS];
    uint64_t result = 0;
    unsigned i;

    for (i = 0; i < RND_WORDS; ++i) {
        words[i] = op->value + i * i;
    }
    switch (op->kind) {
    case RND_FROM_PAGEABLE:
        PRG_CHECK(cuMemcpyHtoDAsync(run->address[op->to], words, bytes,
                                    stream));
        break;
    case RND_FROM_PAGEABLE_NOW:
        PRG_CHECK(cuMemcpyHtoD(run->address[op->to], words, bytes));
        break;
    case RND_TO_PAGEABLE:
        PRG_CHECK(cuMemcpyDtoHAsync(words, run->address[op->from[0]], bytes,
                                    stream));
        result = prg_hash_host(words, bytes);
        break;
    default:
        PRG_CHECK(cuMemcpyDtoH(words, run->address[op->from[0]], bytes));
        result = prg_hash_host(words, bytes);
        break;
    }
    memset(words, 0, sizeof(words));
    return result;
}

static void rnd_copy(const rnd_run_t *run, const rnd_op_t *op,
                     CUstream stream)
{
    CUdeviceptr to   = run->address[op->to];
    CUdeviceptr from = run->address[op->from[0]];
    size_t bytes     = op->words * sizeof(uint32_t);

    switch (op->kind) {
    case RND_DTOD:
        PRG_CHECK(cuMemcpyDtoDAsync(to, from, bytes, stream));
        break;
    case RND_DTOD_NOW:
        PRG_CHECK(cuMemcpyDtoD(to, from, bytes));
        break;
    case RND_ANY:
        PRG_CHECK(cuMemcpyAsync(to, from, bytes, stream));
        break;
    case RND_ANY_NOW:
        PRG_CHECK(cuMemcpy(to, from, bytes));
        break;
    case RND_FROM_PINNED:
        PRG_CHECK(cuMemcpyHtoDAsync(to, rnd_host(run, op->from[0]), bytes,
                                    stream));
        break;
    default:
        PRG_CHECK(cuMemcpyDtoHAsync(rnd_host(run, op->to), from, bytes,
                                    stream));
        break;
    }
}

/* Host functions */

static void CUDA_CB rnd_mix_words(void *data)
{
    uint32_t *word = data;
    unsigned i;

    for (i = 0; i < RND_WORDS; ++i) {
        word[i] = word[i] * 3 + i;
    }
}

static void CUDA_CB rnd_mix_value(void *data)
{
    const rnd_host_cell_t *cell = data;
    unsigned i;

    for (i = 0; i < RND_WORDS; ++i) {
        cell->word[i] = cell->word[i] * 5 + cell->value;
    }
}

static void CUDA_CB rnd_set_word(void *data)
{
    const rnd_host_cell_t *cell = data;

    __atomic_store_n(cell->word, cell->value, __ATOMIC_RELEASE);
}

static void rnd_launch_host(rnd_run_t *run, const rnd_op_t *op,
                            unsigned index, CUstream stream)
{
    rnd_host_cell_t *cell = &run->cell[index];

    if (op->kind == RND_HOST_MIX) {
        PRG_CHECK(cuLaunchHostFunc(stream, rnd_mix_words,
                                   rnd_host(run, op->to)));
        return;
    }
    cell->word  = rnd_host(run, op->to);
    cell->value = op->value;
    PRG_CHECK(cuLaunchHostFunc(stream, op->kind == RND_HOST_VALUE ?
                               rnd_mix_value : rnd_set_word, cell));
}

/* The program's own graph. */
static void rnd_capture(const rnd_run_t *run, const rnd_op_t *op,
                        CUstream stream)
{
    static const CUstreamCaptureMode modes[] = {
        CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        CU_STREAM_CAPTURE_MODE_GLOBAL
    };
    const rnd_functions_t *f = &run->functions[0];
    CUdeviceptr to           = run->address[op->to];
    CUdeviceptr from         = run->address[op->from[0]];
    uint32_t n               = op->words;
    uint32_t value           = op->value;
    CUgraphExec exec;
    CUgraph graph;
    unsigned i;

    PRG_CHECK(cuStreamBeginCapture(
        stream, modes[rnd_capture_mode(run->program, op)]));
    PRG_LAUNCH(f->axpy, stream, n, &to, &from, &n, &value);
    PRG_LAUNCH(f->hash, stream, n, &to, &n, &value);
    PRG_CHECK(cuStreamEndCapture(stream, &graph));
    PRG_CHECK(cuGraphInstantiate(&exec, graph, 0));
    for (i = 0; i < 1 + op->value % 2; ++i) {
        PRG_CHECK(cuGraphLaunch(exec, stream));
    }
    PRG_CHECK(cuGraphExecDestroy(exec));
    PRG_CHECK(cuGraphDestroy(graph));
}

/* Waiting */

typedef struct rnd_deadline {
    time_t   begin;
    unsigned tries;
} rnd_deadline_t;

/* Between two looks. */
static void rnd_wait_a_little(rnd_deadline_t *deadline, const rnd_op_t *op)
{
    struct timespec now;

    if (++deadline->tries % 16 != 0) {
        return;
    }
    usleep(20);
    clock_gettime(CLOCK_MONOTONIC, &now);
    deadline->begin = deadline->begin != 0 ? deadline->begin : now.tv_sec;
    if (now.tv_sec > deadline->begin + RND_PATIENCE_S) {
        fprintf(stderr, "waited in vain: %s\n", rnd_kinds[op->kind].text);
        exit(EXIT_FAILURE);
    }
}

static void rnd_poll_stream(const rnd_op_t *op, CUstream stream)
{
    rnd_deadline_t deadline = {0, 0};
    CUresult result;

    while ((result = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY) {
        rnd_wait_a_little(&deadline, op);
    }
    PRG_CHECK(result);
}

static void rnd_poll_event(const rnd_op_t *op, CUevent event)
{
    rnd_deadline_t deadline = {0, 0};
    CUresult result;

    while ((result = cuEventQuery(event)) == CUDA_ERROR_NOT_READY) {
        rnd_wait_a_little(&deadline, op);
    }
    PRG_CHECK(result);
}

/* The one call looks at no work; the simulated driver works when called. */
static void rnd_poll_flag(const rnd_run_t *run, const rnd_op_t *op)
{
    rnd_deadline_t deadline = {0, 0};
    CUcontext context;

    while (__atomic_load_n(rnd_host(run, op->to), __ATOMIC_ACQUIRE) !=
           op->value) {
        PRG_CHECK(cuCtxGetCurrent(&context));
        rnd_wait_a_little(&deadline, op);
    }
}

static uint64_t rnd_elapsed(CUevent a, CUevent b)
{
    float ms = 0;

    PRG_CHECK(cuEventSynchronize(a));
    PRG_CHECK(cuEventSynchronize(b));
    return (uint64_t)cuEventElapsedTime(&ms, a, b);
}

static uint64_t rnd_look(const rnd_run_t *run, const rnd_step_t *step)
{
    uint64_t hash = 0;
    unsigned i;

    for (i = 0; i < RND_BUFFERS; ++i) {
        if (step->look & (1u << i)) {
            hash = hash * 1099511628211u +
                   (i < RND_PINNED ? prg_hash(run->address[i], RND_WORDS) :
                    prg_hash_host(rnd_host(run, i), RND_BYTES));
        }
    }
    return hash;
}

static void rnd_sync(const rnd_run_t *run, const rnd_op_t *op, CUstream stream)
{
    CUstreamCaptureStatus status;
    CUcontext context;
    unsigned i;

    switch (op->kind) {
    case RND_EVENT_SYNC:
        PRG_CHECK(cuEventSynchronize(run->event[op->event[0]]));
        break;
    case RND_EVENT_POLL:
        rnd_poll_event(op, run->event[op->event[0]]);
        break;
    case RND_STREAM_SYNC:
        PRG_CHECK(cuStreamSynchronize(stream));
        break;
    case RND_STREAM_POLL:
        rnd_poll_stream(op, stream);
        break;
    case RND_STREAM_QUERY:
        (void)cuStreamQuery(stream);
        break;
    case RND_POLL_FLAG:
        rnd_poll_flag(run, op);
        break;
    case RND_PINNED_WRITE:
        for (i = 0; i < RND_WORDS; ++i) {
            rnd_host(run, op->to)[i] += op->value + i;
        }
        break;
    case RND_ASK:
        PRG_CHECK(cuCtxGetCurrent(&context));
        PRG_CHECK(cuStreamIsCapturing(stream, &status));
        break;
    default:        /* RND_CONTEXT_SYNC, RND_DUMP */
        PRG_CHECK(cuCtxSynchronize());
        break;
    }
}

/* Events and lives */

static void rnd_new_event(rnd_run_t *run, unsigned index, uint32_t value)
{
    static const unsigned flags[] = {
        CU_EVENT_DISABLE_TIMING, CU_EVENT_DEFAULT,
        CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING
    };

    PRG_CHECK(cuEventCreate(&run->event[index], flags[value % 3]));
}

static uint64_t rnd_event(rnd_run_t *run, const rnd_op_t *op, CUstream stream)
{
    CUevent event = run->event[op->event[0]];

    switch (op->kind) {
    case RND_RECORD:
        PRG_CHECK(cuEventRecord(event, stream));
        break;
    case RND_WAIT:
        PRG_CHECK(cuStreamWaitEvent(stream, event, 0));
        break;
    case RND_EVENT_QUERY:
        (void)cuEventQuery(event);
        break;
    case RND_EVENT_ANEW:
        PRG_CHECK(cuEventDestroy(event));
        rnd_new_event(run, op->event[0], op->value);
        break;
    default:
        return rnd_elapsed(event, run->event[op->event[1]]);
    }
    return 0;
}

static void rnd_replace(rnd_run_t *run, const rnd_op_t *op, CUstream stream)
{
    CUdeviceptr *address = &run->address[op->to];
    size_t bytes         = op->value % 2 ? RND_BYTES : 4096;

    /* Only pooled memory may be freed in stream order. */
    if (op->kind == RND_REPLACE || !run->is_pooled[op->to]) {
        PRG_CHECK(cuMemFree(*address));
    } else {
        PRG_CHECK(cuMemFreeAsync(*address, stream));
    }
    run->is_pooled[op->to] = op->kind == RND_REPLACE_ASYNC;
    if (run->is_pooled[op->to]) {
        PRG_CHECK(cuMemAllocAsync(address, bytes, stream));
    } else {
        PRG_CHECK(cuMemAlloc(address, bytes));
    }
    PRG_CHECK(cuMemsetD32Async(*address, op->value, RND_WORDS, stream));
}

static void rnd_live(rnd_run_t *run, const rnd_op_t *op, CUstream stream)
{
    switch (op->kind) {
    case RND_REPLACE:
    case RND_REPLACE_ASYNC:
        rnd_replace(run, op, stream);
        break;
    case RND_STREAM_ANEW:
        PRG_CHECK(cuStreamDestroy(stream));
        PRG_CHECK(cuStreamCreateWithPriority(
            &run->stream[op->slot], op->value % 2 ? CU_STREAM_NON_BLOCKING :
            CU_STREAM_DEFAULT, -(int)(op->value / 2 % 2)));
        break;
    case RND_MODULE_ANEW:
        rnd_unload(run);
        rnd_load(run, 1, op->value % 2);
        break;
    case RND_FUNCTION_LIMIT:
        rnd_limit(run, op->value % 2 ? RND_BIG_SHARED : RND_FEW_SHARED);
        break;
    default:
        rnd_capture(run, op, stream);
        break;
    }
}

static void rnd_edge(rnd_thread_t *thread, const rnd_op_t *op, unsigned index,
                     CUstream stream)
{
    rnd_run_t *run = thread->run;
    char name[64];

    rnd_range_name(run->program, op->name, name, sizeof(name));
    switch (op->kind) {
    case RND_PUSH:
        nvtxRangePushA(name);
        ++thread->depth;
        break;
    case RND_POP:
        nvtxRangePop();
        thread->depth -= thread->depth > 0;
        break;
    case RND_PAUSE:
        usleep(100 + op->value);
        break;
    case RND_START:
        run->range[op->range]   = nvtxRangeStartA(name);
        run->is_open[op->range] = true;
        break;
    case RND_END:
        nvtxRangeEnd(run->range[op->range]);
        run->is_open[op->range] = false;
        break;
    case RND_SET_FLAG:
#if !defined(__SANITIZE_THREAD__)   /* does not know kernels' stores */
        PRG_CHECK(rnd_launch(run, op, stream));
        break;
#endif
    case RND_SET_FLAG_HOST:
        rnd_launch_host(run, op, index, stream);
        break;
    default:
        rnd_sync(run, op, stream);
        break;
    }
}

static uint64_t rnd_work(rnd_run_t *run, const rnd_op_t *op, unsigned index,
                         CUstream stream)
{
    switch (op->kind) {
    case RND_SET8:
    case RND_SET16:
    case RND_SET32:
    case RND_SET_2D8:
    case RND_SET_2D32:
    case RND_SET8_NOW:
    case RND_SET32_NOW:
    case RND_SET_2D_NOW:
        rnd_set(run, op, stream);
        break;
    case RND_COPY_2D:
    case RND_COPY_2D_NOW:
        rnd_copy_2d(run, op, stream);
        break;
    case RND_COPY_3D:
        rnd_copy_3d(run, op, stream);
        break;
    case RND_FROM_PAGEABLE:
    case RND_TO_PAGEABLE:
    case RND_FROM_PAGEABLE_NOW:
    case RND_TO_PAGEABLE_NOW:
        return rnd_copy_pageable(run, op, stream);
    case RND_HOST_MIX:
    case RND_HOST_VALUE:
        rnd_launch_host(run, op, index, stream);
        break;
    default:
        rnd_copy(run, op, stream);
        break;
    }
    return 0;
}

static void rnd_make_step(rnd_thread_t *thread, unsigned index)
{
    rnd_run_t *run         = thread->run;
    const rnd_step_t *step = &run->program->step[index];
    const rnd_op_t *op     = &step->op;
    CUstream stream        = rnd_kinds[op->kind].flags & RND_ON_STREAM ?
                             rnd_stream(run, op->slot) : NULL;
    uint64_t result        = 0;

    switch (rnd_kinds[op->kind].group) {
    case RND_LAUNCHES:
        result = rnd_launch(run, op, stream);
        break;
    case RND_WORK:
        result = rnd_work(run, op, index, stream);
        break;
    case RND_EVENT_CALLS:
        result = rnd_event(run, op, stream);
        break;
    case RND_SYNCS:
        rnd_sync(run, op, stream);
        break;
    case RND_LIVES:
        rnd_live(run, op, stream);
        break;
    default:
        rnd_edge(thread, op, index, stream);
        break;
    }
    run->result[index] = step->look != 0 ? rnd_look(run, step) : result;
}

/* Threads */

static void rnd_wait_for_others(rnd_run_t *run, const rnd_step_t *step)
{
    unsigned i;

    pthread_mutex_lock(&run->lock);
    for (i = 0; i < RND_THREADS; ++i) {
        while (run->place[i] < step->after[i]) {
            pthread_cond_wait(&run->moved, &run->lock);
        }
    }
    pthread_mutex_unlock(&run->lock);
}

static void rnd_move_on(rnd_run_t *run, const rnd_step_t *step)
{
    pthread_mutex_lock(&run->lock);
    run->place[step->op.thread] = step->place;
    pthread_cond_broadcast(&run->moved);
    pthread_mutex_unlock(&run->lock);
}

static void *rnd_thread(void *arg)
{
    rnd_thread_t *thread = arg;
    rnd_run_t *run       = thread->run;
    const rnd_step_t *step;
    unsigned i;

    PRG_CHECK(cuCtxSetCurrent(run->prg.context));
    for (i = thread->begin; i < thread->end; ++i) {
        step = &run->program->step[i];
        if (step->op.thread == thread->number) {
            rnd_wait_for_others(run, step);
            rnd_make_step(thread, i);
            rnd_move_on(run, step);
        }
    }
    while (thread->depth > 0 &&
           (thread->number == 0 || !run->program->leaves_open)) {
        nvtxRangePop();
        --thread->depth;
    }
    return NULL;
}

static void rnd_run_loop(rnd_run_t *run, unsigned begin, unsigned end)
{
    rnd_thread_t thread[RND_THREADS];
    unsigned num = run->program->num_threads;
    unsigned i;

    for (i = 0; i < num; ++i) {
        thread[i] = (rnd_thread_t){.run = run, .number = i, .begin = begin,
                                   .end = end};
    }
    for (i = 1; i < num; ++i) {
        if (pthread_create(&thread[i].id, NULL, rnd_thread, &thread[i]) != 0) {
            fprintf(stderr, "no thread\n");
            exit(EXIT_FAILURE);
        }
    }
    rnd_thread(&thread[0]);
    for (i = 1; i < num; ++i) {
        pthread_join(thread[i].id, NULL);
    }
}

/* A program's beginning and end */

static void rnd_begin(rnd_run_t *run, rnd_program_t *program)
{
    unsigned i, k;

    run->program = program;
    for (i = 0; i < RND_LEGACY; ++i) {
        PRG_CHECK(cuStreamCreate(&run->stream[i], program->stream_flags[i]));
    }
    for (i = 0; i < RND_EVENTS; ++i) {
        rnd_new_event(run, i, i);
    }
    for (i = 0; i < RND_BUFFERS; ++i) {
        run->is_pooled[i] = false;
        if (i < RND_PINNED) {
            run->address[i] = prg_alloc(&run->prg, RND_WORDS, i * 1000);
            continue;
        }
        if (i == RND_MANAGED && run->has_managed) {
            PRG_CHECK(cuMemAllocManaged(&run->address[i], RND_BYTES,
                                        CU_MEM_ATTACH_GLOBAL));
        } else {
            PRG_CHECK(cuMemAllocHost((void**)&run->address[i], RND_BYTES));
        }
        for (k = 0; k < RND_WORDS; ++k) {
            rnd_host(run, i)[k] = i < RND_FLAG ? i * k : 0;
        }
    }
    rnd_limit(run, RND_FEW_SHARED);
    memset(run->place, 0, sizeof(run->place));
    memset(run->result, 0, sizeof(run->result));
}

static void rnd_end(rnd_run_t *run)
{
    unsigned i;

    for (i = 0; i < RND_RANGES; ++i) {
        if (run->is_open[i]) {
            nvtxRangeEnd(run->range[i]);
            run->is_open[i] = false;
        }
    }
    for (i = 0; i < RND_BUFFERS; ++i) {
        if (i < RND_PINNED || (i == RND_MANAGED && run->has_managed)) {
            PRG_CHECK(cuMemFree(run->address[i]));
        } else {
            PRG_CHECK(cuMemFreeHost(rnd_host(run, i)));
        }
    }
    for (i = 0; i < RND_EVENTS; ++i) {
        PRG_CHECK(cuEventDestroy(run->event[i]));
    }
    for (i = 0; i < RND_LEGACY; ++i) {
        PRG_CHECK(cuStreamDestroy(run->stream[i]));
    }
}

static void rnd_print(const rnd_run_t *run)
{
    const rnd_program_t *p = run->program;
    const rnd_step_t *step;
    unsigned i;

    printf("seed %llu: %u threads, %u operations, %u steps\n",
           (unsigned long long)p->seed, p->num_threads, p->num_ops,
           p->num_steps);
    for (i = 0; i < p->num_steps; ++i) {
        step = &p->step[i];
        if (step->look != 0 || rnd_kinds[step->op.kind].flags & RND_RESULT) {
            printf("%u %016llx\n", i, (unsigned long long)run->result[i]);
        }
    }
    fflush(stdout);
}

rnd_run_t *rnd_open(void)
{
    rnd_run_t *run = calloc(1, sizeof(*run));
    int value      = 0;

    if (run == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(EXIT_FAILURE);
    }
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->moved, NULL);
    prg_open(&run->prg);
    /* Else the host must not touch it while any kernel runs. */
    PRG_CHECK(cuDeviceGetAttribute(
        &value, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
        run->prg.device));
    run->has_managed = value != 0;
    rnd_load(run, 0, false);
    rnd_load(run, 1, false);
    return run;
}

void rnd_run(rnd_run_t *run, rnd_program_t *program)
{
    unsigned begin = 0;
    unsigned loop;

    rnd_begin(run, program);
    for (loop = 0; loop <= program->num_loops; ++loop) {
        rnd_run_loop(run, begin, program->loop_end[loop]);
        begin = program->loop_end[loop];
    }
    rnd_end(run);
    rnd_print(run);
}

void rnd_close(rnd_run_t *run)
{
    PRG_CHECK(cuModuleUnload(run->module[0]));
    rnd_unload(run);
    prg_close(&run->prg);
    pthread_cond_destroy(&run->moved);
    pthread_mutex_destroy(&run->lock);
    free(run);
}
