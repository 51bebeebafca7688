/* What the steps below are made of. */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>
#include <nvtx3/nvToolsExt.h>

#define CHECK(_call) check(_call, #_call, __LINE__)
#define U32(_value)  (&(uint32_t){ _value })
#define PARAMS(...)  ((void*[]){ __VA_ARGS__ })
#define LAUNCH(_kernel, _stream, ...) \
    CHECK(cuLaunchKernel(_kernel, 1, 1, 1, 64, 1, 1, 0, _stream, \
                         PARAMS(__VA_ARGS__), NULL))
#define POLL(_call) \
    while ((_call) == CUDA_ERROR_NOT_READY) { \
        usleep(20); \
    }


enum {
    WORDS = 64, DEVICE = 6, MANAGED = 9, FLAG = 10, BUFFERS = 12, STREAMS = 6,
    EVENTS = 14
};


/* What is given to launches, kernels and host functions. */
typedef struct shape {
    uint32_t width;
    uint64_t offset;
    double   factor;
    uint8_t  flags[3];
    uint16_t rounds;
} shape_t;

typedef struct table {
    uint32_t word[512];
} table_t;

typedef struct grid {
    unsigned grid[3];
    unsigned block[3];
    unsigned shared_bytes;
} grid_t;

typedef struct cell {
    uint32_t *word;
    uint32_t value;
} cell_t;


static CUdevice     the_device;
static CUcontext    context;
static CUmodule     module[2];
static CUlibrary    library;        /* instead of the second module */
static CUfunction   f[2][NUM_KERNELS];
static CUstream     stream[STREAMS];
static CUevent      event[EVENTS];
static CUdeviceptr  buffer[BUFFERS];    /* device memory, 6 to 8 pinned, 9
                                           managed, 10 and 11 polled */
static bool         is_pooled[BUFFERS];
static bool         has_managed;
static nvtxRangeId_t range[2] __attribute__((unused));
static uint64_t     result[32768];
static unsigned     place[4];       /* how far each thread is */


static inline void check(CUresult status, const char *call, int line)
{
    const char *name = NULL;

    if (status != CUDA_SUCCESS) {
        cuGetErrorName(status, &name);
        fprintf(stderr, "line %d: %s: %s\n", line, call, name);
        exit(EXIT_FAILURE);
    }
}

static inline uint32_t *host(CUdeviceptr address)
{
    return (uint32_t*)(uintptr_t)address;
}

static inline uint64_t hash(const void *data, size_t size)
{
    const unsigned char *byte = data;
    uint64_t sum = 0xcbf29ce484222325u;
    size_t i;

    for (i = 0; i < size; ++i) {
        sum = (sum ^ byte[i]) * 0x100000001b3u;
    }
    return sum;
}

/* Modules */

static inline void load(unsigned i, bool as_library)
{
    CUkernel kernel;
    unsigned k;

    if (as_library) {
        CHECK(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    } else {
        CHECK(cuModuleLoadData(&module[i], ptx));
    }
    for (k = 0; k < NUM_KERNELS; ++k) {
        if (as_library) {
            CHECK(cuLibraryGetKernel(&kernel, library, kernel_names[k]));
            f[i][k] = (CUfunction)kernel;
        } else {
            CHECK(cuModuleGetFunction(&f[i][k], module[i], kernel_names[k]));
        }
    }
}

static inline void unload(void)
{
    if (library != NULL) {
        CHECK(cuLibraryUnload(library));
        library = NULL;
    } else {
        CHECK(cuModuleUnload(module[1]));
    }
}

/* How much dynamic shared memory K_TURN may have. */
static inline void limit(int bytes)
{
    CUfunction_attribute attribute =
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;

    if (library != NULL) {
        CHECK(cuKernelSetAttribute(attribute, bytes, (CUkernel)f[1][K_TURN],
                                   the_device));
    } else {
        CHECK(cuFuncSetAttribute(f[1][K_TURN], attribute, bytes));
    }
}

/* Launches */

static inline void launch_shape(CUfunction kernel, CUstream on, CUdeviceptr to,
                                uint32_t value, uint32_t n)
{
    shape_t shape;

    memset(&shape, 0, sizeof(shape));
    shape.width    = value;
    shape.flags[1] = (uint8_t)value;
    shape.rounds   = 3;
    LAUNCH(kernel, on, &to, &shape, &n);
}

static inline void launch_table(CUfunction kernel, CUstream on, CUdeviceptr to,
                                uint32_t value, uint32_t n)
{
    table_t table;
    unsigned i;

    for (i = 0; i < 512; ++i) {
        table.word[i] = value * (i / 7);
    }
    LAUNCH(kernel, on, &to, &table, &n);
}

static inline void launch_grid(CUfunction kernel, CUstream on, CUdeviceptr to,
                               uint32_t n, grid_t grid)
{
    CHECK(cuLaunchKernel(kernel, grid.grid[0], grid.grid[1], grid.grid[2],
                         grid.block[0], grid.block[1], grid.block[2],
                         grid.shared_bytes, on, PARAMS(&to, &n), NULL));
}

static inline void launch_grid_ex(CUfunction kernel, CUstream on,
                                  CUdeviceptr to, uint32_t n, grid_t grid)
{
    CUlaunchConfig config;

    memset(&config, 0, sizeof(config));
    config.gridDimX       = grid.grid[0];
    config.gridDimY       = grid.grid[1];
    config.gridDimZ       = grid.grid[2];
    config.blockDimX      = grid.block[0];
    config.blockDimY      = grid.block[1];
    config.blockDimZ      = grid.block[2];
    config.sharedMemBytes = grid.shared_bytes;
    config.hStream        = on;
    CHECK(cuLaunchKernelEx(&config, kernel, PARAMS(&to, &n), NULL));
}

static inline CUresult launch_turn(CUfunction kernel, CUstream on,
                                   CUdeviceptr to, uint32_t n, unsigned shared)
{
    unsigned block = n >= 32 ? 32 : 16;

    return cuLaunchKernel(kernel, n / block, 1, 1, block, 1, 1,
                          shared > 0 ? shared : block * 4, on,
                          PARAMS(&to, &n), NULL);
}

static inline void launch_extra(CUfunction kernel, CUstream on, CUdeviceptr to,
                                uint32_t n, uint32_t factor)
{
    struct {
        CUdeviceptr x;
        uint32_t    n, factor;
    } arguments   = { to, n, factor };
    size_t size   = sizeof(arguments);
    void *extra[] = {
        CU_LAUNCH_PARAM_BUFFER_POINTER, &arguments,
        CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END
    };

    CHECK(cuLaunchKernel(kernel, 1, 1, 1, n, 1, 1, 0, on, NULL, extra));
}

static inline void launch_ex(CUfunction kernel, CUstream on, CUdeviceptr to,
                             uint32_t n, uint32_t factor, uint32_t luck)
{
    CUlaunchAttribute attribute;
    CUlaunchConfig config;

    memset(&attribute, 0, sizeof(attribute));
    attribute.id             = CU_LAUNCH_ATTRIBUTE_PRIORITY;
    attribute.value.priority = -(int)(luck % 2);
    memset(&config, 0, sizeof(config));
    config.gridDimX  = config.gridDimY  = config.gridDimZ = 1;
    config.blockDimX = n;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream   = on;
    config.attrs     = &attribute;
    config.numAttrs  = luck % 3 != 0;
    CHECK(cuLaunchKernelEx(&config, kernel, PARAMS(&to, &n, &factor), NULL));
}

static inline void capture(CUfunction axpy, CUfunction mix, CUstream on,
                           CUdeviceptr to, CUdeviceptr from, uint32_t n,
                           uint32_t value, CUstreamCaptureMode mode)
{
    CUgraphExec exec;
    CUgraph graph;
    unsigned i;

    CHECK(cuStreamBeginCapture(on, mode));
    LAUNCH(axpy, on, &to, &from, &n, &value);
    LAUNCH(mix, on, &to, &n, &value);
    CHECK(cuStreamEndCapture(on, &graph));
    CHECK(cuGraphInstantiate(&exec, graph, 0));
    for (i = 0; i < 1 + value % 2; ++i) {
        CHECK(cuGraphLaunch(exec, on));
    }
    CHECK(cuGraphExecDestroy(exec));
    CHECK(cuGraphDestroy(graph));
}

/* Copies */

static inline void copy_2d(CUdeviceptr to, CUdeviceptr from, size_t width,
                           size_t row, bool now, CUstream on)
{
    CUDA_MEMCPY2D copy;

    memset(&copy, 0, sizeof(copy));
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcPitch      = copy.dstPitch      = 32;
    copy.srcDevice     = from;
    copy.srcY          = row;
    copy.dstDevice     = to;
    copy.WidthInBytes  = width;
    copy.Height        = 4;
    CHECK(now ? cuMemcpy2D(&copy) : cuMemcpy2DAsync(&copy, on));
}

static inline void copy_3d(CUdeviceptr to, CUdeviceptr from, size_t width,
                           CUstream on)
{
    CUDA_MEMCPY3D copy;

    memset(&copy, 0, sizeof(copy));
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcPitch      = copy.dstPitch      = 32;
    copy.srcHeight     = copy.dstHeight     = 4;
    copy.srcDevice     = from;
    copy.dstDevice     = to;
    copy.WidthInBytes  = width;
    copy.Height        = 3;
    copy.Depth         = 2;
    CHECK(cuMemcpy3DAsync(&copy, on));
}

static inline void from_pageable(CUdeviceptr to, uint32_t value, size_t n,
                                 bool now, CUstream on)
{
    uint32_t words[WORDS];
    unsigned i;

    for (i = 0; i < WORDS; ++i) {
        words[i] = value + i * i;
    }
    CHECK(now ? cuMemcpyHtoD(to, words, n * 4) :
                cuMemcpyHtoDAsync(to, words, n * 4, on));
    memset(words, 0, sizeof(words));
}

static inline uint64_t to_pageable(CUdeviceptr from, size_t n, bool now,
                                   CUstream on)
{
    uint32_t words[WORDS];

    CHECK(now ? cuMemcpyDtoH(words, from, n * 4) :
                cuMemcpyDtoHAsync(words, from, n * 4, on));
    return hash(words, n * 4);
}

/* Host functions */

static inline void CUDA_CB mix_words(void *data)
{
    uint32_t *word = data;
    unsigned i;

    for (i = 0; i < WORDS; ++i) {
        word[i] = word[i] * 3 + i;
    }
}

static inline void CUDA_CB mix_value(void *data)
{
    const cell_t *cell = data;
    unsigned i;

    for (i = 0; i < WORDS; ++i) {
        cell->word[i] = cell->word[i] * 5 + cell->value;
    }
}

static inline void CUDA_CB set_word(void *data)
{
    const cell_t *cell = data;

    __atomic_store_n(cell->word, cell->value, __ATOMIC_RELEASE);
}

/* What the host does and sees */

static inline void poll_flag(CUdeviceptr flag, uint32_t value)
{
    CUcontext current;

    while (__atomic_load_n(host(flag), __ATOMIC_ACQUIRE) != value) {
        CHECK(cuCtxGetCurrent(&current));
    }
}

static inline void add(CUdeviceptr to, uint32_t value)
{
    unsigned i;

    for (i = 0; i < WORDS; ++i) {
        host(to)[i] += value + i;
    }
}

static inline void ask(CUstream on)
{
    CUstreamCaptureStatus status;
    CUcontext current;

    CHECK(cuCtxGetCurrent(&current));
    CHECK(cuStreamIsCapturing(on, &status));
}

static inline uint64_t elapsed(CUevent a, CUevent b)
{
    float ms = 0;

    CHECK(cuEventSynchronize(a));
    CHECK(cuEventSynchronize(b));
    return (uint64_t)cuEventElapsedTime(&ms, a, b);
}

static inline uint64_t look(unsigned buffers)
{
    uint32_t words[WORDS];
    uint64_t sum = 0;
    unsigned i;

    for (i = 0; i < BUFFERS; ++i) {
        if ((buffers & (1u << i)) && i < DEVICE) {
            CHECK(cuMemcpyDtoH(words, buffer[i], sizeof(words)));
            sum = sum * 1099511628211u + hash(words, sizeof(words));
        } else if (buffers & (1u << i)) {
            sum = sum * 1099511628211u + hash(host(buffer[i]), WORDS * 4);
        }
    }
    return sum;
}

/* Memory and events */

static inline void new_event(CUevent *made, uint32_t value)
{
    static const unsigned flags[] = {
        CU_EVENT_DISABLE_TIMING, CU_EVENT_DEFAULT,
        CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING
    };

    CHECK(cuEventCreate(made, flags[value % 3]));
}

static inline void replace(unsigned i, bool in_order, uint32_t value,
                           CUstream on)
{
    size_t bytes = value % 2 ? WORDS * 4 : 4096;

    CHECK(in_order && is_pooled[i] ? cuMemFreeAsync(buffer[i], on) :
                                     cuMemFree(buffer[i]));
    CHECK(in_order ? cuMemAllocAsync(&buffer[i], bytes, on) :
                     cuMemAlloc(&buffer[i], bytes));
    is_pooled[i] = in_order;
    CHECK(cuMemsetD32Async(buffer[i], value, WORDS, on));
}

static inline void make_buffer(unsigned i)
{
    unsigned k;

    is_pooled[i] = false;
    if (i < DEVICE) {
        CHECK(cuMemAlloc(&buffer[i], WORDS * 4));
        LAUNCH(f[0][K_FILL], NULL, &buffer[i], U32(WORDS), U32(i * 1000));
        CHECK(cuCtxSynchronize());
        return;
    }
    if (i == MANAGED && has_managed) {
        CHECK(cuMemAllocManaged(&buffer[i], WORDS * 4, CU_MEM_ATTACH_GLOBAL));
    } else {
        CHECK(cuMemAllocHost((void**)&buffer[i], WORDS * 4));
    }
    for (k = 0; k < WORDS; ++k) {
        host(buffer[i])[k] = i < FLAG ? i * k : 0;
    }
}

/* A program's begin and end */

static inline void begin(const unsigned *stream_flags)
{
    unsigned i;

    for (i = 0; i < STREAMS; ++i) {
        CHECK(cuStreamCreate(&stream[i], stream_flags[i]));
    }
    for (i = 0; i < EVENTS; ++i) {
        new_event(&event[i], i);
    }
    for (i = 0; i < BUFFERS; ++i) {
        make_buffer(i);
    }
    limit(40000);
    memset(place, 0, sizeof(place));
}

static inline void end(void)
{
    unsigned i;

    for (i = 0; i < BUFFERS; ++i) {
        if (i < DEVICE || (i == MANAGED && has_managed)) {
            CHECK(cuMemFree(buffer[i]));
        } else {
            CHECK(cuMemFreeHost(host(buffer[i])));
        }
    }
    for (i = 0; i < EVENTS; ++i) {
        CHECK(cuEventDestroy(event[i]));
    }
    for (i = 0; i < STREAMS; ++i) {
        CHECK(cuStreamDestroy(stream[i]));
    }
}

static inline void open_all(void)
{
    int value = 0;

    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&the_device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, the_device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuDeviceGetAttribute(
        &value, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, the_device));
    has_managed = value != 0;
    load(0, false);
    load(1, false);
}

static inline void close_all(void)
{
    CHECK(cuModuleUnload(module[0]));
    unload();
    CHECK(cuCtxSetCurrent(NULL));
    CHECK(cuDevicePrimaryCtxRelease(the_device));
}

/* Threads */

static pthread_mutex_t lock  = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  moved = PTHREAD_COND_INITIALIZER;

static inline void after(unsigned thread, unsigned number)
{
    pthread_mutex_lock(&lock);
    while (place[thread] < number) {
        pthread_cond_wait(&moved, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static inline void reached(unsigned thread, unsigned number)
{
    pthread_mutex_lock(&lock);
    place[thread] = number;
    pthread_cond_broadcast(&moved);
    pthread_mutex_unlock(&lock);
}

static inline void start(pthread_t *thread, void *(*steps)(void *arg))
{
    if (pthread_create(thread, NULL, steps, NULL) != 0) {
        fprintf(stderr, "no thread\n");
        exit(EXIT_FAILURE);
    }
}
