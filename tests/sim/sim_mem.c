/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the simulated driver: device memory and its eager reuse, pinned
 * and registered host memory, pools, and what is known of an address.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SIM_ALIGN    512u
#define SIM_PITCH    512u
#define SIM_LOW_SIZE ((size_t)64 << 20)

/* A freed piece of device memory. */
typedef struct {
    uintptr_t   start;
    size_t      capacity;
    sim_task_t *free_task; /* not done: only its own lane may take it */
    uint64_t    lane;
} sim_block_t;

/* Device memory lies in one reserved range, taken from its front. */
typedef struct {
    uintptr_t    start;
    size_t       size, taken;
    sim_block_t *freed; /* the last one freed is the last one here */
    size_t       num_freed, max_freed;
} sim_arena_t;

struct sim_pool {
    CUmemoryPool handle;
    CUdevice     device;
    uint64_t     threshold;
    uint64_t     used, used_high;
    int          reuse[3];
    bool         is_default;
};

/* All below is guarded by sim_lock. The last arena is for the first version
 * of the ABI, whose addresses have 32 bits. */
static sim_arena_t  sim_arenas[SIM_MAX_DEVICES + 1];
static size_t       sim_used[SIM_MAX_DEVICES];
static sim_mem_t   *sim_mems; /* by address */
static size_t       sim_num_mems, sim_max_mems;
static unsigned     sim_open_count;
static sim_pool_t  *sim_default_pools[SIM_MAX_DEVICES];
static sim_pool_t  *sim_current_pools[SIM_MAX_DEVICES];

/* ---------------------------------------------------------- arenas */

static void *sim_arena_map(uintptr_t wish, size_t size)
{
    int protection = sim_config()->protect ? PROT_NONE :
                                             PROT_READ | PROT_WRITE;

    return mmap((void *)wish, size, protection,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/* MAP_32BIT is x86's alone: asks for one place after the other. */
static void *sim_arena_map_low(size_t size)
{
    const uint64_t end = UINT64_C(1) << 32;
    uint64_t       wish;
    void          *start;

    for (wish = end / 4; wish + size <= end; wish += size) {
        start = sim_arena_map(wish, size);
        if ((start == MAP_FAILED) || ((uintptr_t)start + size <= end)) {
            return start;
        }
        munmap(start, size);
    }
    return MAP_FAILED;
}

static CUresult sim_arena_make(sim_arena_t *arena, size_t size, bool low)
{
    void *start = low ? sim_arena_map_low(size) : sim_arena_map(0, size);

    if (start == MAP_FAILED) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    arena->start = (uintptr_t)start;
    arena->size  = size;
    return CUDA_SUCCESS;
}

static void sim_mem_protect(int protection)
{
    size_t last = (size_t)sysconf(_SC_PAGESIZE) - 1;
    size_t i;

    for (i = 0; i < SIM_ARRAY_SIZE(sim_arenas); ++i) {
        if (sim_arenas[i].taken > 0) {
            mprotect((void *)sim_arenas[i].start,
                     (sim_arenas[i].taken + last) & ~last, protection);
        }
    }
}

void sim_mem_open(void)
{
    if (sim_config()->protect && (sim_open_count++ == 0)) {
        sim_mem_protect(PROT_READ | PROT_WRITE);
    }
}

void sim_mem_close(void)
{
    if (sim_config()->protect && (--sim_open_count == 0)) {
        sim_mem_protect(PROT_NONE);
    }
}

/* Takes the block that was freed last of those that fit. */
static bool sim_arena_reuse(sim_arena_t *arena, size_t size, uint64_t lane,
                            bool any, uintptr_t *start, size_t *capacity)
{
    size_t limit = any ? SIZE_MAX : (size < 4096) ? 65536 : size * 16;
    size_t i;

    for (i = arena->num_freed; i-- > 0;) {
        sim_block_t *block = &arena->freed[i];

        if ((block->capacity < size) || (block->capacity > limit) ||
            (!sim_task_is_done(block->free_task) && (block->lane != lane))) {
            continue;
        }
        *start    = block->start;
        *capacity = block->capacity;
        sim_task_unref(block->free_task);
        --arena->num_freed;
        memmove(block, block + 1, (arena->num_freed - i) * sizeof(*block));
        return true;
    }
    return false;
}

static CUresult sim_arena_take(sim_arena_t *arena, size_t size, uint64_t lane,
                               uintptr_t *start, size_t *capacity)
{
    size = (size + SIM_ALIGN - 1) & ~(size_t)(SIM_ALIGN - 1);
    if (sim_arena_reuse(arena, size, lane, false, start, capacity)) {
        return CUDA_SUCCESS;
    } else if (arena->size - arena->taken < size) {
        return sim_arena_reuse(arena, size, lane, true, start, capacity) ?
               CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }

    *start        = arena->start + arena->taken;
    *capacity     = size;
    arena->taken += size;
    if (sim_open_count > 0) {
        sim_mem_protect(PROT_READ | PROT_WRITE);
    }
    return CUDA_SUCCESS;
}

static void sim_arena_give(sim_arena_t *arena, const sim_mem_t *mem,
                           sim_task_t *task, uint64_t lane)
{
    sim_block_t *block;

    arena->freed = sim_grow(arena->freed, arena->num_freed, &arena->max_freed,
                            sizeof(*block));
    block            = &arena->freed[arena->num_freed++];
    block->start     = mem->start;
    block->capacity  = mem->capacity;
    block->free_task = sim_task_ref(task);
    block->lane      = lane;
}

/* ---------------------------------------------------------- addresses */

static size_t sim_mem_index(uintptr_t address)
{
    size_t low = 0, high = sim_num_mems;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (sim_mems[middle].start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low; /* the first that starts after address */
}

const sim_mem_t *sim_mem_find(uintptr_t address)
{
    size_t i = sim_mem_index(address);

    if ((i == 0) ||
        (address - sim_mems[i - 1].start >= sim_mems[i - 1].size)) {
        return NULL;
    }
    return &sim_mems[i - 1];
}

static const sim_mem_t *sim_mem_find_start(uintptr_t address)
{
    const sim_mem_t *mem = sim_mem_find(address);

    return ((mem != NULL) && (mem->start == address)) ? mem : NULL;
}

static void sim_mem_insert(const sim_mem_t *mem)
{
    size_t i = sim_mem_index(mem->start);

    sim_mems = sim_grow(sim_mems, sim_num_mems, &sim_max_mems, sizeof(*mem));
    memmove(&sim_mems[i + 1], &sim_mems[i], (sim_num_mems - i) * sizeof(*mem));
    sim_mems[i] = *mem;
    ++sim_num_mems;
}

static bool sim_mem_is_arena(const sim_mem_t *mem)
{
    return mem->kind == SIM_MEM_DEVICE;
}

/* Forgets an allocation. Its block may be used again at once, or, given a
 * task, after that. */
static void sim_mem_remove(uintptr_t start, sim_task_t *task, uint64_t lane)
{
    size_t       i   = sim_mem_index(start) - 1;
    sim_mem_t    mem = sim_mems[i];
    sim_arena_t *arena;

    --sim_num_mems;
    memmove(&sim_mems[i], &sim_mems[i + 1], (sim_num_mems - i) * sizeof(mem));
    if (mem.kind != SIM_MEM_REGISTERED) {
        sim_pool_t *pool = sim_handle_get(SIM_KIND_POOL, mem.pool);

        if (pool != NULL) {
            pool->used -= mem.size;
        }
    }
    if (mem.is_mapped) {
        return;
    } else if (sim_mem_is_arena(&mem)) {
        sim_used[mem.device] -= mem.capacity;
        arena = &sim_arenas[mem.is_low ? SIM_MAX_DEVICES : mem.device];
        sim_arena_give(arena, &mem, task, lane);
    } else if (mem.kind != SIM_MEM_REGISTERED) {
        free((void *)mem.start);
    }
}

void sim_mem_ctx_end(uint64_t ctx_uid)
{
    size_t i;

    for (i = sim_num_mems; i-- > 0;) {
        if ((sim_mems[i].ctx_uid == ctx_uid) && !sim_mems[i].is_global) {
            sim_mem_remove(sim_mems[i].start, NULL, 0);
        }
    }
}

/* ---------------------------------------------------------- allocating */

static sim_mem_t sim_mem_describe(sim_ctx_t *ctx, sim_mem_kind_t kind,
                                  size_t size)
{
    sim_mem_t mem = {.kind = kind, .size = size, .capacity = size};

    mem.device  = ctx->device;
    mem.ctx     = ctx->handle;
    mem.ctx_uid = ctx->uid;
    mem.id      = sim_uid();
    return mem;
}

/* Device memory, contents not set. */
static CUresult sim_mem_take(sim_mem_t *mem, uint64_t lane)
{
    sim_arena_t *arena;
    CUresult     status = CUDA_SUCCESS;

    arena = &sim_arenas[mem->is_low ? SIM_MAX_DEVICES : mem->device];
    if (arena->start == 0) {
        status = sim_arena_make(arena, mem->is_low ? SIM_LOW_SIZE :
                                sim_config()->memory, mem->is_low);
    }
    if ((status == CUDA_SUCCESS) &&
        (mem->size > sim_config()->memory - sim_used[mem->device])) {
        status = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (status == CUDA_SUCCESS) {
        status = sim_arena_take(arena, mem->size, lane, &mem->start,
                                &mem->capacity);
    }
    if (status == CUDA_SUCCESS) {
        sim_used[mem->device] += mem->capacity;
        sim_mem_insert(mem);
    }
    return status;
}

CUresult sim_mem_reserve(CUdevice device, size_t size)
{
    if (size > sim_config()->memory - sim_used[device]) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sim_used[device] += size;
    return CUDA_SUCCESS;
}

void sim_mem_unreserve(CUdevice device, size_t size)
{
    sim_used[device] -= size;
}

static CUresult sim_mem_alloc(CUdeviceptr *address, size_t size, bool low)
{
    sim_ctx_t *ctx;
    sim_mem_t  mem;
    CUresult   status = sim_ctx_current(&ctx);

    if (status != CUDA_SUCCESS) {
        return status;
    } else if ((address == NULL) || (size == 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }

    mem        = sim_mem_describe(ctx, SIM_MEM_DEVICE, size);
    mem.is_low = low;
    status     = sim_mem_take(&mem, 0);
    if (status == CUDA_SUCCESS) {
        sim_mem_open();
        sim_fill_fresh((void *)mem.start, mem.size, sim_config()->poison);
        sim_mem_close();
        *address = mem.start;
    }
    return status;
}
SIM_ENTRY(cuMemAlloc_v2, (CUdeviceptr *dptr, size_t bytesize),
          SIM_CTX | SIM_UNSAFE, sim_mem_alloc(dptr, bytesize, false))

static CUresult sim_mem_alloc_v1(CUdeviceptr_v1 *address, unsigned size)
{
    CUdeviceptr wide;
    CUresult    status = sim_mem_alloc(&wide, size, true);

    if (status == CUDA_SUCCESS) {
        *address = (CUdeviceptr_v1)wide;
    }
    return status;
}
SIM_ENTRY(cuMemAlloc, (CUdeviceptr_v1 *dptr, unsigned int bytesize),
          SIM_CTX | SIM_UNSAFE, sim_mem_alloc_v1(dptr, bytesize))

static CUresult sim_mem_alloc_pitch(CUdeviceptr *address, size_t *pitch,
                                    size_t width, size_t height,
                                    unsigned element, bool low)
{
    CUresult status;
    size_t   row;

    if ((address == NULL) || (pitch == NULL) || (width == 0) ||
        (height == 0) ||
        ((element != 4) && (element != 8) && (element != 16))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    row    = (width + SIM_PITCH - 1) & ~(size_t)(SIM_PITCH - 1);
    status = sim_mem_alloc(address, row * height, low);
    if (status == CUDA_SUCCESS) {
        *pitch = row;
    }
    return status;
}
SIM_ENTRY(cuMemAllocPitch_v2,
          (CUdeviceptr *dptr, size_t *pPitch, size_t WidthInBytes,
           size_t Height, unsigned int ElementSizeBytes),
          SIM_CTX | SIM_UNSAFE,
          sim_mem_alloc_pitch(dptr, pPitch, WidthInBytes, Height,
                              ElementSizeBytes, false))

static CUresult sim_mem_alloc_pitch_v1(CUdeviceptr_v1 *address,
                                       unsigned *pitch, unsigned width,
                                       unsigned height, unsigned element)
{
    CUdeviceptr wide;
    size_t      row;
    CUresult    status;

    status = sim_mem_alloc_pitch(&wide, &row, width, height, element, true);
    if (status == CUDA_SUCCESS) {
        *address = (CUdeviceptr_v1)wide;
        *pitch   = (unsigned)row;
    }
    return status;
}
SIM_ENTRY(cuMemAllocPitch,
          (CUdeviceptr_v1 *dptr, unsigned int *pPitch,
           unsigned int WidthInBytes, unsigned int Height,
           unsigned int ElementSizeBytes), SIM_CTX | SIM_UNSAFE,
          sim_mem_alloc_pitch_v1(dptr, pPitch, WidthInBytes, Height,
                                 ElementSizeBytes))

static CUresult sim_mem_free(CUdeviceptr address)
{
    const sim_mem_t *mem = sim_mem_find_start(address);
    uint64_t         id, ctx_uid;

    if (address == 0) {
        return CUDA_SUCCESS;
    } else if ((mem == NULL) || mem->is_global ||
               ((mem->kind != SIM_MEM_DEVICE) &&
                (mem->kind != SIM_MEM_MANAGED))) {
        return CUDA_ERROR_INVALID_VALUE;
    }

    id      = mem->id;
    ctx_uid = mem->ctx_uid;
    sim_sched_wait(ctx_uid);
    mem = sim_mem_find_start(address);
    if ((mem == NULL) || (mem->id != id)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_mem_remove(address, NULL, 0);
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuMemFree, (CUdeviceptr_v1 dptr), SIM_UNSAFE, sim_mem_free(dptr))
SIM_ENTRY(cuMemFree_v2, (CUdeviceptr dptr), SIM_UNSAFE, sim_mem_free(dptr))

void sim_mem_map(sim_ctx_t *ctx, CUdeviceptr address, size_t size)
{
    sim_mem_t mem = sim_mem_describe(ctx, SIM_MEM_DEVICE, size);

    mem.start     = address;
    mem.is_mapped = true;
    sim_mem_insert(&mem);
}

bool sim_mem_unmap(CUdeviceptr address)
{
    const sim_mem_t *mem = sim_mem_find_start(address);

    if ((mem == NULL) || !mem->is_mapped) {
        return false;
    }
    sim_mem_remove(address, NULL, 0);
    return true;
}

CUresult sim_mem_global(sim_ctx_t *ctx, size_t size, void *place,
                        CUdeviceptr *address)
{
    sim_mem_t mem = sim_mem_describe(ctx, SIM_MEM_DEVICE, size);
    CUresult  status;

    mem.is_global = true;
    if (place != NULL) {
        /* The program's own variable: several modules may share it. */
        mem.kind  = SIM_MEM_REGISTERED;
        mem.start = (uintptr_t)place;
        mem.refs  = 1;
        if (sim_mem_find_start(mem.start) == NULL) {
            sim_mem_insert(&mem);
        } else {
            ++sim_mems[sim_mem_index(mem.start) - 1].refs;
        }
        *address = mem.start;
        return CUDA_SUCCESS;
    }
    status = sim_mem_take(&mem, 0);
    if (status == CUDA_SUCCESS) {
        *address = mem.start;
    }
    return status;
}

void sim_mem_global_free(CUdeviceptr address)
{
    const sim_mem_t *mem = sim_mem_find_start(address);

    if ((mem == NULL) || !mem->is_global) {
        return;
    } else if (mem->refs > 1) {
        --sim_mems[sim_mem_index(address) - 1].refs;
    } else {
        sim_mem_remove(address, NULL, 0);
    }
}

/* ---------------------------------------------------------- host memory */

static CUresult sim_host_alloc(void **place, size_t size, sim_mem_kind_t kind,
                               unsigned flags)
{
    sim_ctx_t *ctx;
    sim_mem_t  mem;
    void      *start;
    CUresult   status = sim_ctx_current(&ctx);

    if (status != CUDA_SUCCESS) {
        return status;
    } else if ((place == NULL) || (size == 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if (posix_memalign(&start, 4096, size) != 0) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }

    memset(start, 0, size);
    mem       = sim_mem_describe(ctx, kind, size);
    mem.flags = flags;
    mem.start = (uintptr_t)start;
    sim_mem_insert(&mem);
    *place = start;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuMemAllocHost, (void **pp, unsigned int bytesize),
          SIM_CTX | SIM_UNSAFE,
          sim_host_alloc(pp, bytesize, SIM_MEM_PINNED, 0))
SIM_ENTRY(cuMemAllocHost_v2, (void **pp, size_t bytesize),
          SIM_CTX | SIM_UNSAFE,
          sim_host_alloc(pp, bytesize, SIM_MEM_PINNED, 0))
SIM_ENTRY(cuMemHostAlloc, (void **pp, size_t bytesize, unsigned int Flags),
          SIM_CTX | SIM_UNSAFE,
          (Flags > 7) ? CUDA_ERROR_INVALID_VALUE :
          sim_host_alloc(pp, bytesize, SIM_MEM_PINNED, Flags))

static CUresult sim_managed_alloc(CUdeviceptr *address, size_t size,
                                  unsigned flags)
{
    void    *start;
    CUresult status;

    if ((address == NULL) || ((flags != CU_MEM_ATTACH_GLOBAL) &&
                              (flags != CU_MEM_ATTACH_HOST))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    status = sim_host_alloc(&start, size, SIM_MEM_MANAGED, flags);
    if (status == CUDA_SUCCESS) {
        *address = (uintptr_t)start;
    }
    return status;
}
SIM_ENTRY(cuMemAllocManaged,
          (CUdeviceptr *dptr, size_t bytesize, unsigned int flags),
          SIM_CTX | SIM_UNSAFE, sim_managed_alloc(dptr, bytesize, flags))

/* Ends host memory of a kind, after the work that may use it. */
static CUresult sim_host_end(void *place, sim_mem_kind_t kind,
                             CUresult otherwise)
{
    const sim_mem_t *mem = sim_mem_find_start((uintptr_t)place);
    uint64_t         id;

    if ((mem == NULL) || (mem->kind != kind) || mem->is_global) {
        return otherwise;
    }
    id = mem->id;
    sim_sched_wait(mem->ctx_uid);
    mem = sim_mem_find_start((uintptr_t)place);
    if ((mem == NULL) || (mem->id != id)) {
        return otherwise;
    }
    sim_mem_remove((uintptr_t)place, NULL, 0);
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuMemFreeHost, (void *p), SIM_UNSAFE,
          sim_host_end(p, SIM_MEM_PINNED, CUDA_ERROR_INVALID_VALUE))
SIM_ENTRY(cuMemHostUnregister, (void *p), SIM_UNSAFE,
          sim_host_end(p, SIM_MEM_REGISTERED,
                       CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED))

static CUresult sim_host_register(void *place, size_t size, unsigned flags)
{
    sim_ctx_t *ctx;
    sim_mem_t  mem;
    size_t     next;
    CUresult   status = sim_ctx_current(&ctx);

    if (status != CUDA_SUCCESS) {
        return status;
    } else if ((place == NULL) || (size == 0) || (flags > 15)) {
        return CUDA_ERROR_INVALID_VALUE;
    }

    next = sim_mem_index((uintptr_t)place);
    if ((sim_mem_find((uintptr_t)place) != NULL) ||
        ((next < sim_num_mems) &&
         (sim_mems[next].start < (uintptr_t)place + size))) {
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    mem       = sim_mem_describe(ctx, SIM_MEM_REGISTERED, size);
    mem.flags = flags;
    mem.start = (uintptr_t)place;
    sim_mem_insert(&mem);
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuMemHostRegister, (void *p, size_t bytesize, unsigned int Flags),
          SIM_CTX | SIM_UNSAFE, sim_host_register(p, bytesize, Flags))
SIM_ENTRY(cuMemHostRegister_v2,
          (void *p, size_t bytesize, unsigned int Flags),
          SIM_CTX | SIM_UNSAFE, sim_host_register(p, bytesize, Flags))

static bool sim_mem_is_pinned(const sim_mem_t *mem)
{
    return (mem != NULL) && ((mem->kind == SIM_MEM_PINNED) ||
                             (mem->kind == SIM_MEM_REGISTERED));
}

static CUresult sim_host_pointer(CUdeviceptr *address, void *place,
                                 unsigned flags)
{
    if ((address == NULL) || (flags != 0) ||
        !sim_mem_is_pinned(sim_mem_find((uintptr_t)place))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *address = (uintptr_t)place;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuMemHostGetDevicePointer_v2,
          (CUdeviceptr *pdptr, void *p, unsigned int Flags), SIM_CTX,
          sim_host_pointer(pdptr, p, Flags))

static CUresult sim_host_flags(unsigned *flags, void *place)
{
    const sim_mem_t *mem = sim_mem_find((uintptr_t)place);

    if ((flags == NULL) || !sim_mem_is_pinned(mem)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = mem->flags;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuMemHostGetFlags, (unsigned int *pFlags, void *p), SIM_CTX,
          sim_host_flags(pFlags, p))

/* ---------------------------------------------------------- questions */

static CUresult sim_mem_info(size_t *unused, size_t *total)
{
    sim_ctx_t *ctx;
    CUresult   status = sim_ctx_current(&ctx);

    if (status == CUDA_SUCCESS) {
        if (unused != NULL) {
            *unused = sim_config()->memory - sim_used[ctx->device];
        }
        if (total != NULL) {
            *total = sim_config()->memory;
        }
    }
    return status;
}
SIM_ENTRY(cuMemGetInfo_v2, (size_t *free, size_t *total), SIM_CTX,
          sim_mem_info(free, total))

static CUresult sim_mem_info_v1(unsigned *unused, unsigned *total)
{
    size_t   wide[2];
    CUresult status = sim_mem_info(&wide[0], &wide[1]);

    if (status == CUDA_SUCCESS) {
        *unused = (wide[0] > UINT32_MAX) ? UINT32_MAX : (unsigned)wide[0];
        *total  = (wide[1] > UINT32_MAX) ? UINT32_MAX : (unsigned)wide[1];
    }
    return status;
}
SIM_ENTRY(cuMemGetInfo, (unsigned int *free, unsigned int *total), SIM_CTX,
          sim_mem_info_v1(free, total))

static CUresult sim_mem_range(CUdeviceptr *base, size_t *size,
                              CUdeviceptr address)
{
    const sim_mem_t *mem = sim_mem_find(address);

    if (mem == NULL) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (base != NULL) {
        *base = mem->start;
    }
    if (size != NULL) {
        *size = mem->size;
    }
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuMemGetAddressRange_v2,
          (CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr), SIM_CTX,
          sim_mem_range(pbase, psize, dptr))

static CUresult sim_mem_range_v1(CUdeviceptr_v1 *base, unsigned *size,
                                 CUdeviceptr_v1 address)
{
    CUdeviceptr wide_base;
    size_t      wide_size;
    CUresult    status = sim_mem_range(&wide_base, &wide_size, address);

    if (status == CUDA_SUCCESS) {
        *base = (CUdeviceptr_v1)wide_base;
        *size = (unsigned)wide_size;
    }
    return status;
}
SIM_ENTRY(cuMemGetAddressRange,
          (CUdeviceptr_v1 *pbase, unsigned int *psize, CUdeviceptr_v1 dptr),
          SIM_CTX, sim_mem_range_v1(pbase, psize, dptr))

/* Stores an attribute. A NULL mem, an address unknown to the driver, leaves
 * zeroes and answers INVALID_VALUE. */
static CUresult sim_pointer_attr(void *data, CUpointer_attribute id,
                                 const sim_mem_t *mem, CUdeviceptr address)
{
    bool known   = mem != NULL;
    bool on_host = known && (mem->kind != SIM_MEM_DEVICE);

    switch (id) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = known ? mem->ctx : NULL;
        break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = !known ? 0 :
            sim_mem_is_pinned(mem) && !mem->is_global ?
            CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = known ? address : 0;
        break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *(void **)data = on_host ? (void *)(uintptr_t)address : NULL;
        return on_host ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(unsigned *)data = 0;
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        *(unsigned long long *)data = known ? mem->id : 0;
        break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)data = known && (mem->kind == SIM_MEM_MANAGED);
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = known ? mem->device : -2;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
        *(CUdeviceptr *)data = known ? mem->start : 0;
        break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
        *(size_t *)data = known ? mem->size : 0;
        break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(int *)data = known;
        break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *(CUmemoryPool *)data = known ? mem->pool : NULL;
        break;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        *(int *)data = known ? 3 : 0;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
SIM_ENTRY(cuPointerGetAttribute,
          (void *data, CUpointer_attribute attribute, CUdeviceptr ptr),
          SIM_CTX, (data == NULL) ? CUDA_ERROR_INVALID_VALUE :
          sim_pointer_attr(data, attribute, sim_mem_find(ptr), ptr))

/* Unlike the singular, does not mind an address it does not know. */
static CUresult sim_pointer_attrs(unsigned num, CUpointer_attribute *ids,
                                  void **data, CUdeviceptr address)
{
    unsigned i;

    if ((ids == NULL) || (data == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (i = 0; i < num; ++i) {
        (void)sim_pointer_attr(data[i], ids[i], sim_mem_find(address),
                               address);
    }
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuPointerGetAttributes,
          (unsigned int numAttributes, CUpointer_attribute *attributes,
           void **data, CUdeviceptr ptr), SIM_CTX,
          sim_pointer_attrs(numAttributes, attributes, data, ptr))

/* ---------------------------------------------------------- pools */

static sim_pool_t *sim_pool_new(CUdevice device)
{
    sim_pool_t *pool = sim_alloc(sizeof(*pool));

    pool->device   = device;
    pool->reuse[0] = pool->reuse[1] = pool->reuse[2] = 1;
    pool->handle   = sim_handle_new(SIM_KIND_POOL, pool);
    return pool;
}

static sim_pool_t *sim_pool_of_device(CUdevice device)
{
    if (sim_default_pools[device] == NULL) {
        sim_default_pools[device]             = sim_pool_new(device);
        sim_default_pools[device]->is_default = true;
    }
    return sim_default_pools[device];
}

static sim_pool_t *sim_pool_current(CUdevice device)
{
    return (sim_current_pools[device] != NULL) ? sim_current_pools[device] :
                                                 sim_pool_of_device(device);
}

static CUresult sim_pool_ask(CUmemoryPool *handle, CUdevice device,
                             bool current)
{
    CUresult status = sim_device_check(device);

    if (status == CUDA_SUCCESS) {
        *handle = current ? sim_pool_current(device)->handle :
                            sim_pool_of_device(device)->handle;
    }
    return status;
}
SIM_ENTRY(cuDeviceGetDefaultMemPool, (CUmemoryPool *pool_out, CUdevice dev),
          0, sim_pool_ask(pool_out, dev, false))
SIM_ENTRY(cuDeviceGetMemPool, (CUmemoryPool *pool, CUdevice dev), 0,
          sim_pool_ask(pool, dev, true))

static CUresult sim_pool_set_current(CUdevice device, CUmemoryPool handle)
{
    sim_pool_t *pool   = sim_handle_get(SIM_KIND_POOL, handle);
    CUresult    status = sim_device_check(device);

    if (status == CUDA_SUCCESS) {
        if ((pool == NULL) || (pool->device != device)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        sim_current_pools[device] = pool;
    }
    return status;
}
SIM_ENTRY(cuDeviceSetMemPool, (CUdevice dev, CUmemoryPool pool), 0,
          sim_pool_set_current(dev, pool))

static CUresult sim_pool_create(CUmemoryPool *handle,
                                const CUmemPoolProps *props)
{
    if ((handle == NULL) || (props == NULL) ||
        (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) ||
        (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE)) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if (sim_device_check(props->location.id) != CUDA_SUCCESS) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    *handle = sim_pool_new(props->location.id)->handle;
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuMemPoolCreate,
          (CUmemoryPool *pool, const CUmemPoolProps *poolProps), 0,
          sim_pool_create(pool, poolProps))

static CUresult sim_pool_destroy(CUmemoryPool handle)
{
    sim_pool_t *pool = sim_handle_get(SIM_KIND_POOL, handle);

    if ((pool == NULL) || pool->is_default) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (sim_current_pools[pool->device] == pool) {
        sim_current_pools[pool->device] = NULL;
    }
    sim_handle_free(SIM_KIND_POOL, handle);
    free(pool);
    return CUDA_SUCCESS;
}
SIM_ENTRY(cuMemPoolDestroy, (CUmemoryPool pool), 0, sim_pool_destroy(pool))

static CUresult sim_pool_trim(CUmemoryPool handle)
{
    return (sim_handle_get(SIM_KIND_POOL, handle) == NULL) ?
           CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
SIM_ENTRY(cuMemPoolTrimTo, (CUmemoryPool pool, size_t minBytesToKeep), 0,
          ((void)minBytesToKeep, sim_pool_trim(pool)))

static CUresult sim_pool_attr(CUmemoryPool handle, CUmemPool_attribute id,
                              void *value, bool set)
{
    sim_pool_t *pool = sim_handle_get(SIM_KIND_POOL, handle);

    if ((pool == NULL) || (value == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch (id) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        if (set) {
            pool->reuse[id - 1] = *(int *)value;
        } else {
            *(int *)value = pool->reuse[id - 1];
        }
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        if (set) {
            pool->threshold = *(cuuint64_t *)value;
        } else {
            *(cuuint64_t *)value = pool->threshold;
        }
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (set) {
            pool->used_high = pool->used;
        } else {
            *(cuuint64_t *)value = pool->used_high;
        }
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        if (set) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        *(cuuint64_t *)value = pool->used;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}
SIM_ENTRY(cuMemPoolSetAttribute,
          (CUmemoryPool pool, CUmemPool_attribute attr, void *value), 0,
          sim_pool_attr(pool, attr, value, true))
SIM_ENTRY(cuMemPoolGetAttribute,
          (CUmemoryPool pool, CUmemPool_attribute attr, void *value), 0,
          sim_pool_attr(pool, attr, value, false))

static CUresult sim_pool_alloc(CUdeviceptr *address, size_t size,
                               CUmemoryPool handle, CUstream stream_handle,
                               int twin)
{
    sim_stream_t *stream;
    sim_pool_t   *pool;
    sim_op_t     *op;
    sim_mem_t     mem;
    CUresult      status = sim_stream_find(stream_handle, twin, &stream);

    if (status != CUDA_SUCCESS) {
        return status;
    }
    pool = (handle == NULL) ? sim_pool_current(stream->ctx->device) :
                              sim_handle_get(SIM_KIND_POOL, handle);
    if ((address == NULL) || (size == 0) || (pool == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if (stream->capture != NULL) {
        /* Graphs that own memory are not simulated. */
        return sim_capture_refuse(stream);
    }

    status = sim_capture_check_legacy(stream);
    if (status == CUDA_SUCCESS) {
        mem          = sim_mem_describe(stream->ctx, SIM_MEM_DEVICE, size);
        mem.is_async = true;
        mem.pool     = pool->handle;
        mem.device   = pool->device;
        status       = sim_mem_take(&mem, stream->uid);
    }
    if (status != CUDA_SUCCESS) {
        return status;
    }
    pool->used      += size;
    pool->used_high  = (pool->used > pool->used_high) ? pool->used :
                                                        pool->used_high;
    op              = sim_op_new(SIM_OP_FILL, stream->ctx);
    op->fill.start  = (void *)mem.start;
    op->fill.size   = size;
    op->fill.byte   = 0xcd;
    op->fill.poison = sim_config()->poison;
    *address        = mem.start;
    return sim_stream_submit(stream, op, NULL);
}
SIM_ENTRY_PTSZ(cuMemAllocAsync,
               (CUdeviceptr *dptr, size_t bytesize, CUstream hStream),
               SIM_CTX, sim_pool_alloc(dptr, bytesize, NULL, hStream, twin))
SIM_ENTRY_PTSZ(cuMemAllocFromPoolAsync,
               (CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
                CUstream hStream), SIM_CTX,
               (pool == NULL) ? CUDA_ERROR_INVALID_VALUE :
               sim_pool_alloc(dptr, bytesize, pool, hStream, twin))

static CUresult sim_pool_free(CUdeviceptr address, CUstream handle, int twin)
{
    const sim_mem_t *mem = sim_mem_find_start(address);
    sim_stream_t    *stream;
    sim_op_t        *op;
    sim_task_t      *task;
    CUresult         status = sim_stream_find(handle, twin, &stream);

    if (status != CUDA_SUCCESS) {
        return status;
    } else if ((mem == NULL) || (mem->kind != SIM_MEM_DEVICE) ||
               mem->is_global) {
        return CUDA_ERROR_INVALID_VALUE;
    } else if (stream->capture != NULL) {
        return sim_capture_refuse(stream);
    }

    op             = sim_op_new(SIM_OP_FILL, stream->ctx);
    op->fill.start = (void *)mem->start;
    op->fill.size  = mem->capacity;
    op->fill.byte  = 0xdd;
    status         = sim_stream_submit(stream, op, &task);
    if (status == CUDA_SUCCESS) {
        sim_mem_remove(address, task, stream->uid);
        sim_task_unref(task);
    }
    return status;
}
SIM_ENTRY_PTSZ(cuMemFreeAsync, (CUdeviceptr dptr, CUstream hStream), SIM_CTX,
               sim_pool_free(dptr, hStream, twin))
