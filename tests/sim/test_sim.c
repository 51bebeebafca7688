/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proves what other tests rest on: that the simulated driver keeps the order
 * that CUDA promises, keeps no other, and refuses what the real one refuses.
 *
 * Each test runs in a process of its own, this program with the test's name,
 * because seed and injected errors are read once; some for many seeds.
 */
#define _GNU_SOURCE
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "simkernel.h"

#define NUM  256u
#define SIZE (NUM * sizeof(unsigned))

#define CHECK(_condition) \
    do { \
        if (!(_condition)) { \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #_condition); \
            exit(1); \
        } \
    } while (0)

#define CALL(_call) EXPECT(CUDA_SUCCESS, _call)
#define EXPECT(_status, _call) \
    do { \
        CUresult _got = (_call); \
        \
        if (_got != (_status)) { \
            fprintf(stderr, "%s:%d: %s: %d, not %d\n", __FILE__, __LINE__, \
                    #_call, (int)_got, (int)(_status)); \
            exit(1); \
        } \
    } while (0)

CUresult cuSimUnknownWork(CUstream stream, CUdeviceptr address,
                          unsigned value);

/* The first version of an ABI has no declaration in an ordinary program. */
typedef CUresult (*alloc_v1_t)(unsigned *, unsigned);
typedef CUresult (*copy_v1_t)(unsigned, unsigned, unsigned, CUstream);

/* ---------------------------------------------------------- kernels */

static const char ptx[] =
    "//\n.version 7.5 // a comment\n.target sm_75\n.address_size 64\n"
    ".visible .global .align 4 .u32 counter = 7;\n"
    ".global .align 8 .b8 table[16] = {1, 2, 3};\n"
    ".visible .entry fill(\n\t.param .u64 fill_param_0,\n"
    "\t.param .u32 fill_param_1,\n\t.param .u32 fill_param_2\n)\n"
    "{\n.reg .b32 %r<2>;\n{ ret; }\n}\n"
    ".visible .entry scale(.param .u64 .ptr .global .align 16 p,"
    " .param .u32 n, .param .u32 m) .maxntid 512, 1, 1 { ret; }\n"
    ".visible .entry mixed(.param .u8 a, .param .f64 b, .param .u16 c,"
    " .param .align 8 .b8 d[24], .param .u64 out) { ret; }\n"
    ".visible .entry nothing() { ret; }\n"
    ".visible .entry count() { ret; }\n"
    ".visible .entry lost(.param .u64 p) { ret; }\n";

unsigned simg_counter;

void simk_fill(const simk_grid_t *grid, void *const *params);
void simk_scale(const simk_grid_t *grid, void *const *params);
void simk_mixed(const simk_grid_t *grid, void *const *params);
void simk_nothing(const simk_grid_t *grid, void *const *params);
void simk_count(const simk_grid_t *grid, void *const *params);

void simk_fill(const simk_grid_t *grid, void *const *params)
{
    unsigned *place = *(unsigned **)params[0];
    unsigned  num   = *(unsigned *)params[1], i;

    (void)grid;
    for (i = 0; i < num; ++i) {
        place[i] = *(unsigned *)params[2];
    }
}

/* Does not commute with fill, nor with itself for another factor. */
void simk_scale(const simk_grid_t *grid, void *const *params)
{
    unsigned *place = *(unsigned **)params[0];
    unsigned  num   = *(unsigned *)params[1], i;

    (void)grid;
    for (i = 0; i < num; ++i) {
        place[i] = place[i] * *(unsigned *)params[2] + 1;
    }
}

void simk_mixed(const simk_grid_t *grid, void *const *params)
{
    const unsigned char *bytes = params[3];
    double              *out   = *(double **)params[4];

    out[0] = *(unsigned char *)params[0] + *(double *)params[1] +
             *(unsigned short *)params[2] + bytes[0] + bytes[23];
    out[1] = grid->grid[0] * 1000 + grid->block[0] + grid->shared_bytes;
}

void simk_nothing(const simk_grid_t *grid, void *const *params)
{
    (void)grid;
    (void)params;
}

void simk_count(const simk_grid_t *grid, void *const *params)
{
    (void)grid;
    (void)params;
    ++simg_counter;
}

static CUcontext  ctx;
static CUmodule   module;
static CUfunction fill, scale, count;

static void set_up(void)
{
    CALL(cuInit(0));
    CALL(cuDevicePrimaryCtxRetain(&ctx, 0));
    CALL(cuCtxSetCurrent(ctx));
    CALL(cuModuleLoadData(&module, ptx));
    CALL(cuModuleGetFunction(&fill, module, "fill"));
    CALL(cuModuleGetFunction(&scale, module, "scale"));
    CALL(cuModuleGetFunction(&count, module, "count"));
}

static CUresult launch(CUfunction func, CUstream stream, CUdeviceptr place,
                       unsigned num, unsigned value)
{
    void *params[] = {&place, &num, &value};

    return cuLaunchKernel(func, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL);
}

static CUdeviceptr buffer(void)
{
    CUdeviceptr place;

    CALL(cuMemAlloc(&place, SIZE));
    CALL(cuMemsetD32(place, 0, NUM));
    CALL(cuCtxSynchronize());
    return place;
}

static unsigned first_of(CUdeviceptr place)
{
    unsigned value;

    CALL(cuMemcpyDtoH(&value, place, sizeof(value)));
    return value;
}

/* Calls in which the driver may get on with its work, or not. */
static void idle(void)
{
    CUdevice device;
    unsigned i;

    for (i = 0; i < 4; ++i) {
        CALL(cuCtxGetDevice(&device));
    }
}

static CUDA_KERNEL_NODE_PARAMS node_of(CUfunction func, void **params)
{
    CUDA_KERNEL_NODE_PARAMS node = {.func = func, .kernelParams = params};

    node.gridDimX = node.gridDimY = node.gridDimZ = 1;
    node.blockDimX                                = 32;
    node.blockDimY = node.blockDimZ = 1;
    return node;
}

/* ---------------------------------------------------------- order */

static void stream_keeps_its_order(void)
{
    CUdeviceptr place;
    CUstream    stream;
    unsigned    i, wanted = 1, got;

    set_up();
    place = buffer();
    CALL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CALL(launch(fill, stream, place, NUM, 1));
    for (i = 2; i < 40; ++i) {
        CALL(launch(scale, stream, place, NUM, i));
        wanted = wanted * i + 1;
    }
    CALL(cuStreamSynchronize(stream));
    CALL(cuMemcpyDtoH(&got, place + SIZE - 4, 4));
    CHECK(got == wanted);
}

static void legacy_stream_orders_blocking_streams(void)
{
    CUdeviceptr place;
    CUstream    a, b;

    set_up();
    place = buffer();
    CALL(cuStreamCreate(&a, 0));
    CALL(cuStreamCreate(&b, 0));
    CALL(launch(fill, a, place, NUM, 1));
    CALL(launch(scale, NULL, place, NUM, 2));
    CALL(launch(scale, b, place, NUM, 3));
    CALL(cuStreamDestroy(b)); /* its work still counts */
    CALL(launch(scale, CU_STREAM_LEGACY, place, NUM, 5));
    CALL(launch(scale, CU_STREAM_PER_THREAD, place, NUM, 7));
    CALL(launch(scale, NULL, place, NUM, 11));
    CHECK(first_of(place) ==
          (((((1 * 2 + 1) * 3 + 1) * 5 + 1) * 7 + 1) * 11 + 1));
}

static void event_orders_streams(void)
{
    CUdeviceptr place;
    CUstream    a, b;
    CUevent     event;

    set_up();
    place = buffer();
    CALL(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    CALL(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    CALL(cuEventCreate(&event, 0));
    CALL(cuStreamWaitEvent(b, event, 0)); /* never recorded: nothing */
    CALL(launch(fill, a, place, NUM, 1));
    CALL(cuEventRecord(event, a));
    CALL(launch(fill, a, place + 4, 1, 9)); /* after the record */
    CALL(cuStreamWaitEvent(b, event, 0));
    CALL(cuEventDestroy(event));
    CALL(launch(scale, b, place, 1, 3));
    CALL(cuStreamSynchronize(b));
    CALL(cuStreamSynchronize(a));
    CHECK(first_of(place) == 4);
}

/* For some seed the second launch runs first. */
static void unordered_streams(void)
{
    CUdeviceptr place;
    CUstream    a, b;

    set_up();
    place = buffer();
    CALL(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    CALL(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    CALL(launch(fill, a, place, NUM, 1));
    CALL(launch(scale, b, place, NUM, 3));
    CALL(cuCtxSynchronize());
    CHECK(first_of(place) == 4);
}

static void unordered_nonblocking_and_legacy(void)
{
    CUdeviceptr place;
    CUstream    a;

    set_up();
    place = buffer();
    CALL(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    CALL(launch(fill, NULL, place, NUM, 1));
    CALL(launch(scale, a, place, NUM, 3));
    CALL(cuCtxSynchronize());
    CHECK(first_of(place) == 4);
}

/* Reads pinned memory without waiting for the copy into it. */
static void unsynchronised_read(void)
{
    CUdeviceptr place;
    unsigned   *host;
    CUstream    a;

    set_up();
    place = buffer();
    CALL(cuMemAllocHost((void **)&host, SIZE));
    CALL(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    CALL(launch(fill, a, place, NUM, 1));
    CALL(cuMemcpyDtoHAsync(host, place, SIZE, a));
    idle();
    CHECK(host[0] == 1);
}

static void pinned_source_is_read_late(void)
{
    CUdeviceptr place;
    unsigned   *host;

    set_up();
    place = buffer();
    CALL(cuMemAllocHost((void **)&host, SIZE));
    host[0] = 1;
    CALL(cuMemcpyHtoDAsync(place, host, 4, NULL));
    idle();
    host[0] = 2;
    CHECK(first_of(place) == 1);
}

static void unordered_graph_nodes(void)
{
    CUdeviceptr             place;
    CUgraph                 graph;
    CUgraphExec             exec;
    CUgraphNode             node;
    unsigned                num = NUM, one = 1, three = 3;
    void                   *a[] = {&place, &num, &one};
    void                   *b[] = {&place, &num, &three};
    CUDA_KERNEL_NODE_PARAMS params;

    set_up();
    place = buffer();
    CALL(cuGraphCreate(&graph, 0));
    params = node_of(fill, a);
    CALL(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
    params = node_of(scale, b);
    CALL(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
    CALL(cuGraphInstantiate(&exec, graph, 0));
    CALL(cuGraphLaunch(exec, NULL));
    CHECK(first_of(place) == 4);
}

static void free_async_spoils_memory_in_order(void)
{
    CUdeviceptr place, keep;
    unsigned    value;
    CUstream    a;

    set_up();
    CALL(cuStreamCreate(&a, 0));
    CALL(cuMemAllocAsync(&place, SIZE, a));
    CALL(launch(fill, a, place, NUM, 5));
    keep = buffer();
    CALL(cuMemcpyDtoDAsync(keep, place, 4, a));
    CALL(cuMemFreeAsync(place, a));
    CALL(cuStreamSynchronize(a));
    CHECK(first_of(keep) == 5);
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(&value, place, 4));
}

/* ---------------------------------------------------------- copies */

static void pageable_source_is_taken_at_the_call(void)
{
    CUdeviceptr place;
    unsigned    host[NUM], i;

    set_up();
    place = buffer();
    for (i = 0; i < NUM; ++i) {
        host[i] = i + 1;
    }
    CALL(cuMemcpyHtoDAsync(place, host, SIZE, NULL));
    memset(host, 0, sizeof(host));
    CHECK(first_of(place) == 1);
    CALL(cuMemcpyDtoHAsync(host, place, SIZE, NULL)); /* waits */
    CHECK(host[NUM - 1] == NUM);
}

static void copies_of_two_and_three_dimensions(void)
{
    CUDA_MEMCPY2D copy2 = {.Height = 3, .WidthInBytes = 4};
    CUDA_MEMCPY3D copy3 = {.WidthInBytes = 2, .Height = 2, .Depth = 2};
    unsigned char host[64], back[64];
    CUdeviceptr   place;
    size_t        pitch;
    unsigned      i;

    set_up();
    for (i = 0; i < 64; ++i) {
        host[i] = (unsigned char)i;
    }
    CALL(cuMemAllocPitch(&place, &pitch, 16, 8, 4));
    CALL(cuMemsetD2D8(place, pitch, 0xee, 16, 8));
    copy2.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy2.srcHost       = host;
    copy2.srcPitch      = 8;
    copy2.srcXInBytes   = 1;
    copy2.srcY          = 1;
    copy2.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy2.dstDevice     = place;
    copy2.dstPitch      = pitch;
    copy2.dstY          = 2;
    CALL(cuMemcpy2DAsync(&copy2, NULL));
    CALL(cuMemcpyDtoH(back, place + 4 * pitch, 16));
    CHECK((back[0] == 25) && (back[3] == 28) && (back[4] == 0xee));

    copy3.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy3.srcHost       = host;
    copy3.srcPitch      = 4;
    copy3.srcHeight     = 4;
    copy3.srcZ          = 1;
    copy3.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy3.dstDevice     = place;
    copy3.dstPitch      = 2;
    copy3.dstHeight     = 2;
    CALL(cuMemcpy3D(&copy3));
    CALL(cuMemcpyDtoH(back, place, 8));
    CHECK((back[0] == 16) && (back[2] == 20) && (back[4] == 32) &&
          (back[7] == 37));
    copy3.Depth = 2000;
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemcpy3D(&copy3));
}

static void sets_of_all_widths(void)
{
    CUdeviceptr    place;
    unsigned short half[4];

    set_up();
    place = buffer();
    CALL(cuMemsetD8Async(place, 0x11, 8, NULL));
    CALL(cuMemsetD16Async(place + 2, 0x2233, 1, NULL));
    CALL(cuMemsetD2D32Async(place + 4, 8, 0x44556677, 1, 2, NULL));
    CALL(cuMemcpyDtoH(half, place, 8));
    CHECK((half[0] == 0x1111) && (half[1] == 0x2233) && (half[2] == 0x6677));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD16(place + 1, 0, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD8(place, 0, SIZE + 1));
    CALL(cuMemsetD8(place, 0, 0));
}

static void pointers_know_their_kind(void)
{
    unsigned            on_stack, type = 9, managed = 9;
    CUdeviceptr         place;
    void               *pinned;
    CUpointer_attribute ids[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                 CU_POINTER_ATTRIBUTE_IS_MANAGED};
    void               *data[] = {&type, &managed};

    set_up();
    place = buffer();
    CALL(cuMemHostAlloc(&pinned, 64, CU_MEMHOSTALLOC_DEVICEMAP));
    CALL(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                               place + 8));
    CHECK(type == CU_MEMORYTYPE_DEVICE);
    CALL(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                               (CUdeviceptr)(uintptr_t)pinned));
    CHECK(type == CU_MEMORYTYPE_HOST);
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                 (CUdeviceptr)(uintptr_t)&on_stack));
    CALL(cuPointerGetAttributes(2, ids, data,
                                (CUdeviceptr)(uintptr_t)&on_stack));
    CHECK((type == 0) && (managed == 0));
    CALL(cuMemFreeHost(pinned));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFreeHost(pinned));
}

/* ---------------------------------------------------------- launches */

static void parameters_lie_as_in_ptx(void)
{
    CUfunction     mixed;
    unsigned char  a = 1, d[24] = {4, [23] = 5};
    double         b = 2.5, got[2];
    unsigned short c = 3;
    CUdeviceptr    out;
    size_t         offset, size;
    void          *params[] = {&a, &b, &c, d, &out};
    struct {
        unsigned char  a;
        double         b;
        unsigned short c;
        unsigned char  d[24] __attribute__((aligned(8)));
        CUdeviceptr    out;
    } packed = {1, 2.5, 3, {4, [23] = 5}, 0};
    size_t         packed_size = sizeof(packed);
    void          *extra[]     = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed,
                                  CU_LAUNCH_PARAM_BUFFER_SIZE, &packed_size,
                                  CU_LAUNCH_PARAM_END};

    set_up();
    out = packed.out = buffer();
    CALL(cuModuleGetFunction(&mixed, module, "mixed"));
    CALL(cuFuncGetParamInfo(mixed, 3, &offset, &size));
    CHECK((offset == 24) && (size == 24));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuFuncGetParamInfo(mixed, 5, &offset, &size));
    CALL(cuLaunchKernel(mixed, 2, 1, 1, 3, 1, 1, 4, NULL, params, NULL));
    CALL(cuMemcpyDtoH(got, out, sizeof(got)));
    CHECK((got[0] == 15.5) && (got[1] == 2007));
    CALL(cuMemsetD8(out, 0, 16));
    CALL(cuLaunchKernel(mixed, 2, 1, 1, 3, 1, 1, 4, NULL, NULL, extra));
    CALL(cuMemcpyDtoH(got, out, sizeof(got)));
    CHECK(got[0] == 15.5);
    packed_size = 8;
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuLaunchKernel(mixed, 2, 1, 1, 3, 1, 1, 4, NULL, NULL, extra));
}

static void bad_launches_are_refused(void)
{
    CUdeviceptr place;
    CUfunction  lost;
    CUstream    stream;
    unsigned    num = 1, value = 1;
    void       *params[] = {&place, &num, &value};

    EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuCtxSynchronize());
    CALL(cuInit(0));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&place, 4));
    set_up();
    place = buffer();
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuLaunchKernel(fill, 0, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuLaunchKernel(fill, 1, 1, 1, 1025, 1, 1, 0, NULL, params, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuLaunchKernel(scale, 1, 1, 1, 513, 1, 1, 0, NULL, params, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 49153, NULL, params, NULL));
    CALL(cuFuncSetAttribute(
        fill, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536));
    CALL(cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 49153, NULL, params, NULL));
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    CALL(cuModuleGetFunction(&lost, module, "lost"));
    EXPECT(CUDA_ERROR_NOT_FOUND,
           cuLaunchKernel(lost, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
    CALL(cuStreamCreate(&stream, 0));
    CALL(cuStreamDestroy(stream));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, launch(fill, stream, place, 1, 1));
    EXPECT(CUDA_ERROR_INVALID_IMAGE, cuModuleLoadData(&module, "nonsense"));
}

static void launch_attributes_are_checked(void)
{
    CUlaunchAttribute attr[2] = {{.id = CU_LAUNCH_ATTRIBUTE_IGNORE}};
    CUlaunchConfig    config  = {.gridDimX = 4, .gridDimY = 1, .gridDimZ = 1,
                                 .blockDimX = 32, .blockDimY = 1,
                                 .blockDimZ = 1, .attrs = attr,
                                 .numAttrs = 2};
    CUdeviceptr       place;
    unsigned          num = 1, value = 8;
    void             *params[] = {&place, &num, &value};

    set_up();
    place       = buffer();
    attr[1].id  = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attr[1].value.clusterDim.x = 2;
    attr[1].value.clusterDim.y = attr[1].value.clusterDim.z = 1;
    CALL(cuLaunchKernelEx(&config, fill, params, NULL));
    CHECK(first_of(place) == 8);
    attr[1].value.clusterDim.x = 3; /* does not divide the grid */
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuLaunchKernelEx(&config, fill, params, NULL));
    attr[1].id = CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY;
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuLaunchKernelEx(&config, fill, params, NULL));
    attr[1].id                                        =
        CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attr[1].value.programmaticStreamSerializationAllowed = 1;
    CALL(cuLaunchKernelEx(&config, fill, params, NULL));
    EXPECT(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
           cuLaunchCooperativeKernel(fill, 100000, 1, 1, 32, 1, 1, 0, NULL,
                                     params));
    CALL(cuLaunchCooperativeKernel(fill, 2, 1, 1, 32, 1, 1, 0, NULL, params));
}

static void module_variables_hold_their_initial_values(void)
{
    CUdeviceptr   place;
    size_t        size;
    unsigned char table[16];
    unsigned      value;

    set_up();
    CALL(cuModuleGetGlobal(&place, &size, module, "table"));
    CHECK(size == 16);
    CALL(cuMemcpyDtoH(table, place, 16));
    CHECK((table[0] == 1) && (table[2] == 3) && (table[15] == 0));
    CALL(cuModuleGetGlobal(&place, &size, module, "counter"));
    CALL(cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    CALL(cuMemcpyDtoH(&value, place, 4));
    CHECK(value == 8);
}

static void kernels_of_libraries(void)
{
    CUlibrary               library;
    CUkernel                kernel;
    CUfunction              func;
    CUdeviceptr             place;
    CUgraph                 graph;
    CUgraphNode             node;
    const char             *name;
    size_t                  offset, size;
    unsigned                num = 1, value = 3;
    void                   *params[] = {&place, &num, &value};
    CUDA_KERNEL_NODE_PARAMS given;

    set_up();
    place = buffer();
    CALL(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    CALL(cuLibraryGetKernel(&kernel, library, "fill"));
    EXPECT(CUDA_ERROR_INVALID_HANDLE,
           cuFuncGetName(&name, (CUfunction)kernel));
    EXPECT(CUDA_ERROR_INVALID_HANDLE,
           cuFuncGetParamInfo((CUfunction)kernel, 0, &offset, &size));
    CALL(cuKernelGetName(&name, kernel));
    CHECK(strcmp(name, "fill") == 0);
    CALL(cuKernelGetParamInfo(kernel, 1, &offset, &size));
    CHECK((offset == 8) && (size == 4));
    CALL(launch((CUfunction)kernel, NULL, place, 1, 3));
    CHECK(first_of(place) == 3);

    CALL(cuGraphCreate(&graph, 0));
    given = node_of((CUfunction)kernel, params);
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuGraphAddKernelNode(&node, graph, NULL, 0, &given));
    given.func = NULL;
    given.kern = kernel;
    CALL(cuGraphAddKernelNode(&node, graph, NULL, 0, &given));
    CALL(cuKernelGetFunction(&func, kernel));
    given      = node_of(func, params);
    CALL(cuGraphAddKernelNode(&node, graph, NULL, 0, &given));
    CALL(cuLibraryUnload(library));
    EXPECT(CUDA_ERROR_INVALID_HANDLE,
           launch((CUfunction)kernel, NULL, place, 1, 3));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, launch(func, NULL, place, 1, 3));
}

/* ---------------------------------------------------------- host work */

static unsigned host_value;

static void CUDA_CB host_fn(void *data)
{
    CUdeviceptr place;

    host_value = *(unsigned *)data;
    CHECK(cuMemAlloc(&place, 4) == CUDA_ERROR_NOT_PERMITTED);
}

static void CUDA_CB host_callback(CUstream stream, CUresult status,
                                  void *data)
{
    (void)stream;
    CHECK(status == CUDA_SUCCESS);
    *(unsigned *)data = host_value + 1;
}

static void host_functions_run_in_order(void)
{
    unsigned   *pinned;
    CUdeviceptr place;
    unsigned    seen = 0;
    CUstream    stream;

    set_up();
    place = buffer();
    CALL(cuStreamCreate(&stream, 0));
    CALL(cuMemAllocHost((void **)&pinned, 4));
    CALL(launch(fill, stream, place, 1, 6));
    CALL(cuMemcpyDtoHAsync(pinned, place, 4, stream));
    CALL(cuLaunchHostFunc(stream, host_fn, pinned));
    CALL(cuStreamAddCallback(stream, host_callback, &seen, 0));
    CALL(cuStreamSynchronize(stream));
    CHECK((host_value == 6) && (seen == 7));
}

static void memory_operations_wait_and_write(void)
{
    CUdeviceptr place, flag;
    CUstream    a, b;

    set_up();
    place = buffer();
    flag  = buffer();
    CALL(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    CALL(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    CALL(cuStreamWaitValue32(b, flag, 5, CU_STREAM_WAIT_VALUE_EQ));
    CALL(launch(scale, b, place, 1, 3));
    CALL(launch(fill, a, place, 1, 1));
    CALL(cuStreamWriteValue32(a, flag, 5, 0));
    CALL(cuStreamSynchronize(b));
    CHECK(first_of(place) == 4);
    CALL(cuSimUnknownWork(b, place, 77));
    CALL(cuStreamSynchronize(b));
    CHECK(first_of(place) == 77);
}

static void elapsed_time_is_monotone(void)
{
    CUdeviceptr place;
    CUevent     a, b;
    float       ms;

    set_up();
    place = buffer();
    CALL(cuEventCreate(&a, 0));
    CALL(cuEventCreate(&b, 0));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, a, b));
    CALL(cuEventRecord(a, NULL));
    CALL(launch(fill, NULL, place, 1, 1));
    CALL(cuEventRecord(b, NULL));
    CALL(cuEventSynchronize(b));
    CALL(cuEventQuery(a));
    CALL(cuEventElapsedTime(&ms, a, b));
    CHECK(ms > 0);
}

/* ---------------------------------------------------------- graphs */

/* fill 1, then scale by 3 and by 5: 21 */
static void build(CUgraph *graph, CUgraphNode *nodes, CUdeviceptr *place)
{
    static unsigned         num = NUM, values[3] = {1, 3, 5};
    CUDA_KERNEL_NODE_PARAMS params;
    unsigned                i;

    CALL(cuGraphCreate(graph, 0));
    for (i = 0; i < 3; ++i) {
        void *args[] = {place, &num, &values[i]};

        params = node_of((i == 0) ? fill : scale, args);
        CALL(cuGraphAddKernelNode(&nodes[i], *graph,
                                  (i == 0) ? NULL : &nodes[i - 1],
                                  (i == 0) ? 0 : 1, &params));
    }
}

static void graph_runs_in_the_order_of_its_edges(void)
{
    CUdeviceptr place;
    CUgraph     graph;
    CUgraphNode nodes[3], from[4], to[4];
    CUgraphExec exec;
    size_t      num = 4;
    unsigned    i;

    set_up();
    place = buffer();
    build(&graph, nodes, &place);
    CALL(cuGraphGetEdges(graph, from, to, NULL, &num));
    CHECK((num == 2) && (from[0] == nodes[0]) && (to[1] == nodes[2]));
    CALL(cuGraphInstantiate(&exec, graph, 0));
    CALL(cuGraphDestroy(graph));
    for (i = 0; i < 3; ++i) {
        CALL(cuGraphLaunch(exec, NULL));
    }
    CALL(cuGraphExecDestroy(exec)); /* under way */
    CHECK(first_of(place) == 21);
}

static void graph_launches_follow_each_other(void)
{
    CUdeviceptr             place;
    CUgraph                 graph;
    CUgraphNode             node;
    CUgraphExec             exec;
    CUstream                streams[4];
    unsigned                i, num = 1, two = 2;
    void                   *args[] = {&place, &num, &two};
    CUDA_KERNEL_NODE_PARAMS params;

    set_up();
    place  = buffer();
    params = node_of(scale, args);
    CALL(cuGraphCreate(&graph, 0));
    CALL(cuGraphAddKernelNode(&node, graph, NULL, 0, &params));
    CALL(cuGraphInstantiate(&exec, graph, 0));
    for (i = 0; i < 4; ++i) {
        unsigned three = i + 2;
        void    *next[] = {&place, &num, &three};

        CALL(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        params = node_of(scale, next);
        CALL(cuGraphExecKernelNodeSetParams(exec, node, &params));
        CALL(cuGraphLaunch(exec, streams[i]));
    }
    CALL(cuCtxSynchronize());
    /* Each launch kept the arguments that were set before it. */
    CHECK(first_of(place) ==
          ((((0 * 2 + 1) * 3 + 1) * 4 + 1) * 5 + 1));
}

static void graph_nodes_of_all_kinds(void)
{
    CUdeviceptr             place, other;
    CUgraph                 graph, child;
    CUgraphNode             nodes[3], last, copy_node, set_node;
    CUgraphExec             exec;
    CUevent                 event;
    CUgraphNodeType         type;
    unsigned                number = 41;
    CUDA_MEMCPY3D           copy = {.WidthInBytes = 4, .Height = 1,
                                    .Depth = 1};
    CUDA_MEMSET_NODE_PARAMS set  = {.value = 9, .elementSize = 4, .width = 1,
                                    .height = 1};
    CUDA_HOST_NODE_PARAMS   host = {host_fn, &number};

    set_up();
    place = buffer();
    other = buffer();
    CALL(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    build(&child, nodes, &place);
    CALL(cuGraphCreate(&graph, 0));
    CALL(cuGraphAddEmptyNode(&last, graph, NULL, 0));
    CALL(cuGraphAddChildGraphNode(&last, graph, &last, 1, child));
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice     = place;
    copy.dstDevice     = other;
    CALL(cuGraphAddMemcpyNode(&copy_node, graph, &last, 1, &copy, ctx));
    set.dst = place;
    CALL(cuGraphAddMemsetNode(&set_node, graph, &copy_node, 1, &set, ctx));
    CALL(cuGraphAddHostNode(&last, graph, &set_node, 1, &host));
    CALL(cuGraphAddEventRecordNode(&last, graph, &last, 1, event));
    CALL(cuGraphAddEventWaitNode(&last, graph, &last, 1, event));
    CALL(cuGraphNodeGetType(last, &type));
    CHECK(type == CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    CALL(cuGraphInstantiate(&exec, graph, 0));
    CALL(cuGraphLaunch(exec, NULL));
    CALL(cuEventSynchronize(event));
    CHECK(host_value == 41);
    CHECK((first_of(other) == 21) && (first_of(place) == 9));

    copy.WidthInBytes = 0;
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuGraphExecMemcpyNodeSetParams(exec, copy_node, &copy, ctx));
    copy.WidthInBytes = 4;
    copy.Height       = 2;
    copy.srcPitch = copy.dstPitch = 4;
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuGraphExecMemcpyNodeSetParams(exec, copy_node, &copy, ctx));
    copy.Height        = 1;
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost       = &number;
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuGraphExecMemcpyNodeSetParams(exec, copy_node, &copy, ctx));
    set.height = 2;
    set.pitch  = 4;
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuGraphExecMemsetNodeSetParams(exec, set_node, &set, ctx));
    set.height = 1;
    set.value  = 10;
    CALL(cuGraphExecMemsetNodeSetParams(exec, set_node, &set, ctx));
    CALL(cuGraphLaunch(exec, NULL));
    CHECK(first_of(place) == 10);
}

static void exec_updates_are_restricted(void)
{
    CUdeviceptr             place;
    CUgraph                 graph, other;
    CUgraphNode             nodes[3];
    CUgraphExec             exec;
    CUcontext               second;
    CUmodule                foreign;
    CUfunction              func;
    CUkernelNodeAttrValue   value = {.cooperative = 1};
    unsigned                num = 1, seven = 7, enabled;
    void                   *args[] = {&place, &num, &seven};
    CUDA_KERNEL_NODE_PARAMS params;
    CUgraphExecUpdateResultInfo info;

    set_up();
    place = buffer();
    build(&graph, nodes, &place);
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuGraphKernelNodeSetAttribute(
               nodes[0],
               CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
               &value));
    CALL(cuGraphInstantiate(&exec, graph, 0));
    params = node_of(fill, args);
    CALL(cuGraphExecKernelNodeSetParams(exec, nodes[2], &params));
    CALL(cuGraphLaunch(exec, NULL));
    CHECK(first_of(place) == 7);
    CALL(cuGraphNodeSetEnabled(exec, nodes[2], 0));
    CALL(cuGraphNodeGetEnabled(exec, nodes[2], &enabled));
    CHECK(enabled == 0);
    CALL(cuGraphLaunch(exec, NULL));
    CHECK(first_of(place) == 4);

    CALL(cuGraphKernelNodeSetAttribute(
        nodes[0], CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
    EXPECT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
           cuGraphExecUpdate(exec, graph, &info));
    CHECK((info.result == CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED) &&
          (info.errorNode == nodes[0]));
    CALL(cuGraphCreate(&other, 0));
    EXPECT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
           cuGraphExecUpdate(exec, other, &info));
    CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);

    CALL(cuCtxCreate(&second, NULL, 0, 0));
    CALL(cuModuleLoadData(&foreign, ptx));
    CALL(cuModuleGetFunction(&func, foreign, "fill"));
    params = node_of(func, args);
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuGraphExecKernelNodeSetParams(exec, nodes[2], &params));
    CALL(cuCtxDestroy(second));
    CALL(cuModuleUnload(module));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuGraphLaunch(exec, NULL));
}

static void executable_graphs_take_device_memory(void)
{
    CUdeviceptr place;
    CUgraph     graph;
    CUgraphNode nodes[3];
    CUgraphExec exec;
    size_t      before, during, after, total;

    set_up();
    place = buffer();
    build(&graph, nodes, &place);
    CALL(cuMemGetInfo(&before, &total));
    CALL(cuGraphInstantiate(&exec, graph, 0));
    CALL(cuMemGetInfo(&during, &total));
    CALL(cuGraphExecDestroy(exec));
    CALL(cuMemGetInfo(&after, &total));
    CHECK((during < before) && (after == before));
}

static void cycles_are_refused(void)
{
    CUdeviceptr place;
    CUgraph     graph;
    CUgraphNode nodes[3];
    CUgraphExec exec;

    set_up();
    place = buffer();
    build(&graph, nodes, &place);
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           cuGraphAddDependencies(graph, &nodes[0], &nodes[1], NULL, 1));
    CALL(cuGraphAddDependencies(graph, &nodes[2], &nodes[0], NULL, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuGraphInstantiate(&exec, graph, 0));
}

/* ---------------------------------------------------------- capture */

static void capture_makes_nodes_and_edges(void)
{
    CUdeviceptr           place, other;
    CUstream              a, b;
    CUevent               fork, join;
    CUgraph               graph;
    CUgraphExec           exec;
    CUstreamCaptureStatus state;
    size_t                num = 0;

    set_up();
    place = buffer();
    other = buffer();
    CALL(cuStreamCreate(&a, 0));
    CALL(cuStreamCreate(&b, 0));
    CALL(cuEventCreate(&fork, 0));
    CALL(cuEventCreate(&join, 0));
    CALL(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CALL(launch(fill, a, place, NUM, 1));
    CALL(cuEventRecord(fork, a));
    CALL(cuStreamWaitEvent(b, fork, 0));
    CALL(cuStreamIsCapturing(b, &state));
    CHECK(state == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CALL(launch(scale, a, place, NUM, 3));
    CALL(launch(fill, b, other, NUM, 5));
    EXPECT(CUDA_ERROR_CAPTURED_EVENT, cuEventQuery(fork));
    CALL(cuEventRecord(join, b));
    CALL(cuStreamWaitEvent(a, join, 0));
    CALL(cuMemcpyDtoDAsync(other, place, 4, a));
    CALL(cuStreamEndCapture(a, &graph));
    CALL(cuGraphGetEdges(graph, NULL, NULL, NULL, &num));
    CHECK(num == 4);
    CHECK(first_of(place) == 0); /* nothing has run */
    CALL(cuGraphInstantiate(&exec, graph, 0));
    CALL(cuGraphLaunch(exec, a));
    CHECK(first_of(other) == 4);
}

static void capture_refuses_unsafe_calls(void)
{
    CUdeviceptr         place;
    CUstream            a, b;
    CUgraph             graph, empty;
    CUgraphExec         exec;
    CUevent             event;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

    set_up();
    place = buffer();
    CALL(cuStreamCreate(&a, 0));
    CALL(cuStreamCreate(&b, 0));
    CALL(cuEventCreate(&event, 0));
    CALL(cuGraphCreate(&empty, 0));
    CALL(cuEventRecord(event, b));

    CALL(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuMemAlloc(&place, 4));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
           launch(fill, a, place, 1, 1));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
           cuStreamEndCapture(a, &graph));

    CALL(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
           cuGraphInstantiate(&exec, empty, 0));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
           cuStreamEndCapture(a, &graph));

    CALL(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
           launch(fill, NULL, place, 1, 1));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
           cuStreamEndCapture(a, &graph));

    CALL(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuStreamSynchronize(a));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
           cuStreamEndCapture(a, &graph));

    CALL(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
           cuStreamWaitEvent(a, event, 0));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
           cuStreamEndCapture(a, &graph));

    /* A relaxed thread may, and the capture lives on. */
    CALL(cuThreadExchangeStreamCaptureMode(&mode));
    CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
    CALL(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    CALL(cuMemAlloc(&place, 4));
    CALL(cuGraphInstantiate(&exec, empty, 0));
    CALL(cuEventRecord(event, a));
    CALL(cuStreamWaitEvent(b, event, 0));
    CALL(launch(fill, b, place, 1, 1));
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
           cuStreamEndCapture(a, &graph));
    EXPECT(CUDA_ERROR_ILLEGAL_STATE, cuStreamEndCapture(a, &graph));
}

static void *capture_other_thread(void *arg)
{
    CUdeviceptr place;

    CALL(cuCtxSetCurrent(ctx));
    EXPECT(*(CUresult *)arg, cuMemAlloc(&place, 4));
    return NULL;
}

static void capture_of_a_thread_leaves_others_alone(void)
{
    CUstream  a;
    CUgraph   graph;
    pthread_t thread;
    CUresult  wanted = CUDA_SUCCESS;

    set_up();
    CALL(cuStreamCreate(&a, 0));
    CALL(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    pthread_create(&thread, NULL, capture_other_thread, &wanted);
    pthread_join(thread, NULL);
    CALL(cuStreamEndCapture(a, &graph));
    CALL(cuStreamBeginCapture(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    wanted = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    pthread_create(&thread, NULL, capture_other_thread, &wanted);
    pthread_join(thread, NULL);
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
           cuStreamEndCapture(a, &graph));
}

/* ---------------------------------------------------------- handles */

static void values_are_used_again_at_once(void)
{
    CUdeviceptr a, b, c;
    CUstream    s, t;
    CUevent     e, f;
    CUmodule    m, n;
    CUfunction  g, h;
    CUgraph     graph, again;
    CUcontext   x, y;

    set_up();
    CALL(cuMemAlloc(&a, 1000));
    CALL(cuMemAlloc(&b, 1000));
    CALL(cuMemFree(a));
    CALL(cuMemFree(b));
    CALL(cuMemAlloc(&c, 900));
    CHECK(c == b);
    CALL(cuMemAlloc(&c, 900));
    CHECK(c == a);
    CALL(cuStreamCreate(&s, 0));
    CALL(cuStreamDestroy(s));
    CALL(cuStreamCreate(&t, 0));
    CHECK(s == t);
    CALL(cuEventCreate(&e, 0));
    CALL(cuEventDestroy(e));
    CALL(cuEventCreate(&f, 0));
    CHECK(e == f);
    CALL(cuModuleLoadData(&m, ptx));
    CALL(cuModuleGetFunction(&g, m, "fill"));
    CALL(cuModuleUnload(m));
    CALL(cuModuleLoadData(&n, ptx));
    CALL(cuModuleGetFunction(&h, n, "scale"));
    CHECK((m == n) && (g == h));
    CALL(cuGraphCreate(&graph, 0));
    CALL(cuGraphDestroy(graph));
    CALL(cuGraphCreate(&again, 0));
    CHECK(graph == again);
    CALL(cuCtxCreate(&x, NULL, 0, 0));
    CALL(cuCtxDestroy(x));
    CALL(cuCtxCreate(&y, NULL, 0, 0));
    CHECK(x == y);
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy((CUstream)e));
}

static void contexts_end_what_they_hold(void)
{
    CUcontext   own, now;
    CUstream    stream;
    CUevent     event;
    CUdeviceptr place;
    CUdevice    device;
    int         active;
    unsigned    flags;

    set_up();
    CALL(cuCtxCreate(&own, NULL, 0, 0));
    CALL(cuStreamCreate(&stream, 0));
    CALL(cuEventCreate(&event, 0));
    CALL(cuMemAlloc(&place, 4));
    CALL(cuMemsetD32Async(place, 1, 1, stream));
    CALL(cuCtxDestroy(own));
    CALL(cuCtxGetCurrent(&now));
    CHECK(now == ctx);
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuStreamDestroy(stream));
    EXPECT(CUDA_ERROR_INVALID_HANDLE, cuEventDestroy(event));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree(place));

    place = buffer();
    CALL(cuDevicePrimaryCtxReset(0));
    EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemsetD32(place, 1, 1));
    CALL(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(active == 0);
    CALL(cuDevicePrimaryCtxRetain(&now, 0));
    CHECK(now == ctx);
    CALL(cuCtxGetDevice(&device));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemsetD32(place, 1, 1));
    CALL(cuCtxPopCurrent(&now));
    EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxPopCurrent(&now));
}

/* ---------------------------------------------------------- threads */

static void *thread_main(void *arg)
{
    CUdeviceptr place;
    unsigned    i, wanted = 1, id = *(unsigned *)arg;

    CALL(cuCtxSetCurrent(ctx));
    place = buffer();
    for (i = 0; i < 100; ++i) {
        CALL(launch(i ? scale : fill, CU_STREAM_PER_THREAD, place, NUM,
                    i ? i + id : 1));
        wanted = i ? wanted * (i + id) + 1 : 1;
        if (i % 10 == 9) {
            unsigned value;

            CALL(cuMemcpyDtoHAsync(&value, place, 4, CU_STREAM_PER_THREAD));
            CHECK(value == wanted);
        }
    }
    CALL(cuMemFree(place));
    return NULL;
}

static void threads_work_at_once(void)
{
    pthread_t threads[4];
    unsigned  ids[4], i;

    set_up();
    for (i = 0; i < 4; ++i) {
        ids[i] = i;
        pthread_create(&threads[i], NULL, thread_main, &ids[i]);
    }
    for (i = 0; i < 4; ++i) {
        pthread_join(threads[i], NULL);
    }
}

static void child_of_fork_has_no_driver(void)
{
    int   state;
    pid_t child;

    set_up();
    child = fork();
    if (child == 0) {
        const char *name = NULL;

        CALL(cuGetErrorName(CUDA_ERROR_UNKNOWN, &name));
        CHECK(strcmp(name, "CUDA_ERROR_UNKNOWN") == 0);
        EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuInit(0));
        EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuCtxSynchronize());
        exit(0); /* the handlers of the parent's driver do nothing here */
    }
    CHECK(waitpid(child, &state, 0) == child);
    CHECK(state == 0);
    CALL(cuCtxSynchronize());
}

static void check_deinitialized(void)
{
    CUdeviceptr place;

    if (cuMemAlloc(&place, 4) != CUDA_ERROR_DEINITIALIZED) {
        _exit(1);
    }
}

static void exit_ends_the_driver(void)
{
    atexit(check_deinitialized); /* runs after the driver's own */
    set_up();
    CALL(launch(fill, NULL, buffer(), NUM, 1));
}

static void CUDA_CB exit_fn(void *data)
{
    exit(*(int *)data);
}

static void host_function_may_exit(void)
{
    static int status = 0;

    set_up();
    CALL(cuLaunchHostFunc(NULL, exit_fn, &status));
    cuCtxSynchronize();
    sleep(60);
    _exit(1);
}

static void worker_runs_without_calls(void)
{
    volatile unsigned *mapped;
    CUdeviceptr        place;
    unsigned           i;

    setenv("SIM_WORKER", "1", 1);
    set_up();
    CALL(cuMemHostAlloc((void **)&mapped, 4, CU_MEMHOSTALLOC_DEVICEMAP));
    CALL(cuMemHostGetDevicePointer(&place, (void *)mapped, 0));
    CALL(cuStreamWriteValue32(NULL, place, 3, 0));
    for (i = 0; (i < 5000) &&
                (__atomic_load_n(mapped, __ATOMIC_SEQ_CST) != 3); ++i) {
        usleep(1000);
    }
    CHECK(*mapped == 3);
}

/* ---------------------------------------------------------- doors */

static void versions_choose_the_abi(void)
{
    CUdriverProcAddressQueryResult result;
    void                          *self = dlopen(NULL, RTLD_LAZY);
    void                          *fn;

#define SYMBOL(_name) dlsym(self, _name)
    CALL(cuGetProcAddress("cuMemcpyDtoDAsync", &fn, 2000, 0, NULL));
    CHECK(fn == SYMBOL("cuMemcpyDtoDAsync"));
    CALL(cuGetProcAddress("cuMemcpyDtoDAsync", &fn, 12000,
                          CU_GET_PROC_ADDRESS_LEGACY_STREAM, &result));
    CHECK((fn == SYMBOL("cuMemcpyDtoDAsync_v2")) &&
          (result == CU_GET_PROC_ADDRESS_SUCCESS));
    CALL(cuGetProcAddress("cuMemcpyDtoDAsync", &fn, 12000,
                          CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                          NULL));
    CHECK(fn == SYMBOL("cuMemcpyDtoDAsync_v2_ptsz"));
    CALL(cuGetProcAddress("cuMemAlloc", &fn, 12000,
                          CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
                          NULL));
    CHECK(fn == SYMBOL("cuMemAlloc_v2"));
    CALL(cuGetProcAddress("cuGraphInstantiate", &fn, 11000, 0, NULL));
    CHECK(fn == SYMBOL("cuGraphInstantiate_v2"));
    CALL(cuGetProcAddress("cuGetProcAddress", &fn, 12000, 0, NULL));
    CHECK(fn == SYMBOL("cuGetProcAddress_v2"));
    CALL(cuGetProcAddress("cuNoSuchThing", &fn, 12000, 0, &result));
    CHECK((fn == NULL) && (result == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND));
    CALL(cuGetProcAddress("cuLaunchKernelEx", &fn, 11000, 0, &result));
    CHECK((fn == NULL) &&
          (result == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT));
    fn = SYMBOL("cuGetProcAddress");
    EXPECT(CUDA_ERROR_NOT_FOUND,
           ((CUresult(*)(const char *, void **, int, cuuint64_t))fn)(
               "cuNoSuchThing", &fn, 12000, 0));
#undef SYMBOL
    dlclose(self);
}

static void first_abi_works(void)
{
    alloc_v1_t alloc;
    copy_v1_t  copy;
    unsigned   a, b;

    set_up();
    CALL(cuGetProcAddress("cuMemAlloc", (void **)&alloc, 2000, 0, NULL));
    CALL(cuGetProcAddress("cuMemcpyDtoDAsync", (void **)&copy, 2000, 0,
                          NULL));
    CALL(alloc(&a, 64));
    CALL(alloc(&b, 64));
    CALL(launch(fill, NULL, a, 4, 12));
    CALL(copy(b, a, 16, NULL));
    CHECK(first_of(b) == 12);
}

static void older_drivers_hide_newer_functions(void)
{
    CUdriverProcAddressQueryResult result;
    void                          *fn;
    int                            version;

    setenv("SIM_DRIVER_VERSION", "11040", 1);
    CALL(cuDriverGetVersion(&version));
    CHECK(version == 11040);
    CALL(cuGetProcAddress("cuLaunchKernelEx", &fn, 13000, 0, &result));
    CHECK((fn == NULL) && (result == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND));
}

static void errors_are_injected_at_the_nth_call(void)
{
    CUdeviceptr place;
    CUstream    stream;

    setenv("SIM_FAIL", "cuMemAlloc:2:700,cuStreamCreate:1,cuCtxSetLimit:2+:1",
           1);
    set_up();
    CALL(cuMemAlloc(&place, 4));
    EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, cuMemAlloc(&place, 4));
    CALL(cuMemAlloc(&place, 4));
    EXPECT(CUDA_ERROR_OUT_OF_MEMORY, cuStreamCreate(&stream, 0));
    CALL(cuStreamCreate(&stream, 0));
    CALL(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1));
    EXPECT(CUDA_ERROR_INVALID_VALUE, cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 1));
}

static void driver_looks_itself_up(void)
{
    CUdeviceptr place;
    void       *fn;

    setenv("SIM_SELF_DLSYM", "1", 1);
    set_up();
    place = buffer();
    CALL(launch(fill, NULL, place, 1, 2));
    CHECK(first_of(place) == 2);
    CALL(cuGetProcAddress("cuMemAlloc", &fn, 12000, 0, NULL));
    CHECK(fn != NULL);
}

/* Run with SIM_REPORT by report_counts_executions. */
static void make_report(void)
{
    CUdeviceptr place;
    CUgraph     graph;
    CUgraphNode nodes[3];
    CUgraphExec exec;

    set_up();
    place = buffer();
    build(&graph, nodes, &place);
    CALL(cuGraphInstantiate(&exec, graph, 0));
    CALL(cuGraphLaunch(exec, NULL));
    CALL(cuGraphLaunch(exec, NULL));
    CALL(launch(fill, NULL, place, 1, 1));
}

static const char *own_path;

static void run_self(const char *name, const char *const *more, int *state)
{
    pid_t child = fork();

    if (child == 0) {
        for (; (more != NULL) && (*more != NULL); more += 2) {
            setenv(more[0], more[1], 1);
        }
        execl(own_path, own_path, name, (char *)NULL);
        _exit(127);
    }
    CHECK(waitpid(child, state, 0) == child);
}

/* Where a failure is expected, only the outcome is of interest. */
static int run_silently(const char *name, const char *const *env)
{
    int state, saved = dup(2);

    CHECK((saved >= 0) && (freopen("/dev/null", "w", stderr) != NULL));
    run_self(name, env, &state);
    fflush(stderr);
    dup2(saved, 2);
    close(saved);
    return state;
}

static void report_counts_executions(void)
{
    char        name[] = "/tmp/test_sim_report_XXXXXX", text[8192];
    int         fd     = mkstemp(name), state;
    const char *env[]  = {"SIM_REPORT", name, NULL};
    ssize_t     length;

    CHECK(fd >= 0);
    run_self("make_report", env, &state);
    length = read(fd, text, sizeof(text) - 1);
    unlink(name);
    CHECK((state == 0) && (length > 0));
    text[length] = '\0';
    CHECK(strstr(text, "call cuGraphLaunch 2\n") != NULL);
    CHECK(strstr(text, "call cuMemAlloc_v2 1\n") != NULL);
    CHECK(strstr(text, "kernel fill 3\nkernel scale 4\nset 1\n") != NULL);
}

static void touch_device_memory(void)
{
    CUdeviceptr place;

    set_up();
    place = buffer();
    printf("%u\n", *(volatile unsigned *)(uintptr_t)place);
}

static void protection_catches_the_host(void)
{
    const char *env[] = {"SIM_PROTECT", "1", NULL};
    int         state;

    state = run_silently("touch_device_memory", env);
    CHECK(state != 0);
    run_self("stream_keeps_its_order", env, &state);
    CHECK(state == 0);
    run_self("graph_nodes_of_all_kinds", env, &state);
    CHECK(state == 0);
}

/* ---------------------------------------------------------- running */

/* What a test is: one process, one for each of many seeds, or a program with
 * a missing dependency, which must be found out by some seed and must pass
 * with another. */
enum { ONCE, SEEDS, RACE, HELPER };

#define TEST(_name, _kind) {#_name, _name, _kind}

static const struct {
    const char *name;
    void      (*fn)(void);
    int         kind;
} tests[] = {
    TEST(stream_keeps_its_order, SEEDS),
    TEST(legacy_stream_orders_blocking_streams, SEEDS),
    TEST(event_orders_streams, SEEDS),
    TEST(unordered_streams, RACE),
    TEST(unordered_nonblocking_and_legacy, RACE),
    TEST(unsynchronised_read, RACE),
    TEST(pinned_source_is_read_late, RACE),
    TEST(unordered_graph_nodes, RACE),
    TEST(free_async_spoils_memory_in_order, SEEDS),
    TEST(pageable_source_is_taken_at_the_call, SEEDS),
    TEST(copies_of_two_and_three_dimensions, SEEDS),
    TEST(sets_of_all_widths, ONCE),
    TEST(pointers_know_their_kind, ONCE),
    TEST(parameters_lie_as_in_ptx, ONCE),
    TEST(bad_launches_are_refused, ONCE),
    TEST(launch_attributes_are_checked, ONCE),
    TEST(module_variables_hold_their_initial_values, SEEDS),
    TEST(kernels_of_libraries, ONCE),
    TEST(host_functions_run_in_order, SEEDS),
    TEST(memory_operations_wait_and_write, SEEDS),
    TEST(elapsed_time_is_monotone, ONCE),
    TEST(graph_runs_in_the_order_of_its_edges, SEEDS),
    TEST(graph_launches_follow_each_other, SEEDS),
    TEST(graph_nodes_of_all_kinds, SEEDS),
    TEST(exec_updates_are_restricted, SEEDS),
    TEST(executable_graphs_take_device_memory, ONCE),
    TEST(cycles_are_refused, ONCE),
    TEST(capture_makes_nodes_and_edges, SEEDS),
    TEST(capture_refuses_unsafe_calls, ONCE),
    TEST(capture_of_a_thread_leaves_others_alone, ONCE),
    TEST(values_are_used_again_at_once, SEEDS),
    TEST(contexts_end_what_they_hold, SEEDS),
    TEST(threads_work_at_once, SEEDS),
    TEST(child_of_fork_has_no_driver, ONCE),
    TEST(exit_ends_the_driver, ONCE),
    TEST(host_function_may_exit, ONCE),
    TEST(worker_runs_without_calls, ONCE),
    TEST(versions_choose_the_abi, ONCE),
    TEST(first_abi_works, ONCE),
    TEST(older_drivers_hide_newer_functions, ONCE),
    TEST(errors_are_injected_at_the_nth_call, ONCE),
    TEST(driver_looks_itself_up, ONCE),
    TEST(make_report, HELPER),
    TEST(report_counts_executions, ONCE),
    TEST(touch_device_memory, HELPER),
    TEST(protection_catches_the_host, ONCE),
};

#define NUM_TESTS (sizeof(tests) / sizeof(tests[0]))
#define NUM_SEEDS 24u

static int run_test(size_t index)
{
    unsigned seeds = (tests[index].kind == ONCE) ? 1 : NUM_SEEDS;
    unsigned seed, passed = 0;
    int      state;

    for (seed = 1; seed <= seeds; ++seed) {
        char        text[16];
        const char *env[] = {"SIM_SEED", text, NULL};

        snprintf(text, sizeof(text), "%u", seed);
        if (tests[index].kind == RACE) {
            state = run_silently(tests[index].name, env);
        } else {
            run_self(tests[index].name, env, &state);
        }
        passed += state == 0;
        if ((state != 0) && (tests[index].kind != RACE)) {
            fprintf(stderr, "%s: seed %u: status %d\n", tests[index].name,
                    seed, state);
        }
    }
    return (tests[index].kind == RACE) ? (passed > 0) && (passed < seeds) :
                                         (passed == seeds);
}

int main(int argc, char **argv)
{
    unsigned passed = 0, failed = 0;
    size_t   i;

    own_path = argv[0];
    for (i = 0; i < NUM_TESTS; ++i) {
        if (argc > 1) {
            if (strcmp(argv[1], tests[i].name) == 0) {
                tests[i].fn();
                return 0;
            }
        } else if (tests[i].kind != HELPER) {
            if (run_test(i)) {
                ++passed;
            } else {
                ++failed;
                printf("failed: %s\n", tests[i].name);
            }
        }
    }
    if (argc > 1) {
        fprintf(stderr, "no test %s\n", argv[1]);
        return 2;
    }
    printf("%u passed, %u failed\n", passed, failed);
    return failed != 0;
}
