/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way kernels.c is written once and compiled twice: by nvcc for the device,
 * and as C into the bodies (simk_NAME) that the simulated driver runs.
 *
 *     KRN_KERNEL(k_name, (type, argument), ...) { the work of one thread }
 *
 * KRN_KERNEL_PHASES is for kernels with barriers of the block: the host runs
 * phase 0 in all threads of a block, then phase 1. No local variable lives over
 * KRN_NEXT_PHASE.
 */
#ifndef KRN_KERNELS_LANG_H
#define KRN_KERNELS_LANG_H

/* KRN_MAP(op, pair, ...) is op(n, pair), op(n - 1, ...), ..., op(1, last). */
#define KRN_MAP(_op, ...) \
    KRN_CAT(KRN_MAP_, KRN_COUNT(__VA_ARGS__))(_op, __VA_ARGS__)
#define KRN_CAT_(_a, _b) _a##_b
#define KRN_CAT(_a, _b)  KRN_CAT_(_a, _b)
#define KRN_COUNT(...) \
    KRN_COUNT_(__VA_ARGS__, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, \
               7, 6, 5, 4, 3, 2, 1, 0)
#define KRN_COUNT_(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, \
                   _14, _15, _16, _17, _18, _19, _20, _n, ...) _n

#define KRN_MAP_1(_op, _p)       _op(1, _p)
#define KRN_MAP_2(_op, _p, ...)  _op(2, _p), KRN_MAP_1(_op, __VA_ARGS__)
#define KRN_MAP_3(_op, _p, ...)  _op(3, _p), KRN_MAP_2(_op, __VA_ARGS__)
#define KRN_MAP_4(_op, _p, ...)  _op(4, _p), KRN_MAP_3(_op, __VA_ARGS__)
#define KRN_MAP_5(_op, _p, ...)  _op(5, _p), KRN_MAP_4(_op, __VA_ARGS__)
#define KRN_MAP_6(_op, _p, ...)  _op(6, _p), KRN_MAP_5(_op, __VA_ARGS__)
#define KRN_MAP_7(_op, _p, ...)  _op(7, _p), KRN_MAP_6(_op, __VA_ARGS__)
#define KRN_MAP_8(_op, _p, ...)  _op(8, _p), KRN_MAP_7(_op, __VA_ARGS__)
#define KRN_MAP_9(_op, _p, ...)  _op(9, _p), KRN_MAP_8(_op, __VA_ARGS__)
#define KRN_MAP_10(_op, _p, ...) _op(10, _p), KRN_MAP_9(_op, __VA_ARGS__)
#define KRN_MAP_11(_op, _p, ...) _op(11, _p), KRN_MAP_10(_op, __VA_ARGS__)
#define KRN_MAP_12(_op, _p, ...) _op(12, _p), KRN_MAP_11(_op, __VA_ARGS__)
#define KRN_MAP_13(_op, _p, ...) _op(13, _p), KRN_MAP_12(_op, __VA_ARGS__)
#define KRN_MAP_14(_op, _p, ...) _op(14, _p), KRN_MAP_13(_op, __VA_ARGS__)
#define KRN_MAP_15(_op, _p, ...) _op(15, _p), KRN_MAP_14(_op, __VA_ARGS__)
#define KRN_MAP_16(_op, _p, ...) _op(16, _p), KRN_MAP_15(_op, __VA_ARGS__)
#define KRN_MAP_17(_op, _p, ...) _op(17, _p), KRN_MAP_16(_op, __VA_ARGS__)
#define KRN_MAP_18(_op, _p, ...) _op(18, _p), KRN_MAP_17(_op, __VA_ARGS__)
#define KRN_MAP_19(_op, _p, ...) _op(19, _p), KRN_MAP_18(_op, __VA_ARGS__)
#define KRN_MAP_20(_op, _p, ...) _op(20, _p), KRN_MAP_19(_op, __VA_ARGS__)

/* (type, name) -> type name */
#define KRN_PAIR(_type, _name)  _type _name
#define KRN_DECLARE(_n, _pair)  KRN_PAIR _pair

#ifdef __CUDACC__

#define KRN_KERNEL(_name, ...) \
    extern "C" __global__ void _name(KRN_MAP(KRN_DECLARE, __VA_ARGS__))
#define KRN_KERNEL_PHASES(_name, _phases, ...) KRN_KERNEL(_name, __VA_ARGS__)
#define KRN_KERNEL_VOID(_name) extern "C" __global__ void _name(void)

#define KRN_X                    (blockIdx.x * blockDim.x + threadIdx.x)
#define KRN_Y                    (blockIdx.y * blockDim.y + threadIdx.y)
#define KRN_SIZE_X               (gridDim.x * blockDim.x)
#define KRN_LOCAL_X              (threadIdx.x)
#define KRN_BLOCK_X              (blockDim.x)
#define KRN_GRID(_d)             (gridDim._d)
#define KRN_BLOCK(_d)            (blockDim._d)
#define KRN_INDEX(_d)            (blockIdx._d * blockDim._d + threadIdx._d)
#define KRN_PHASE(_p)
#define KRN_NEXT_PHASE()         __syncthreads()
#define KRN_FENCE_SYSTEM()       __threadfence_system()
#define KRN_SPIN(_ns)            krn_spin(_ns)
#define KRN_SHARED(_type, _name) extern __shared__ _type _name[]
#define KRN_SHARED_BYTES()       krn_shared_bytes()
#define KRN_DEVICE               static __device__
#define KRN_VARIABLE(_name)      (_name)
#define KRN_GLOBAL(_type, _name) extern "C" { __device__ _type _name; }

static __device__ unsigned krn_shared_bytes(void)
{
    unsigned bytes;

    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}

static __device__ uint64_t krn_nanoseconds(void)
{
    uint64_t now;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

static __device__ void krn_spin(uint32_t ns)
{
    uint64_t begin = krn_nanoseconds();

    while (krn_nanoseconds() - begin < ns) {
    }
}

#else

#include <stdlib.h>
#include <string.h>

#include "simkernel.h"


/* The place of one thread in its grid. */
typedef struct krn_thread {
    unsigned grid[3];
    unsigned block[3];
    unsigned block_index[3];
    unsigned index[3];
    unsigned phase;
    unsigned shared_bytes;
    void     *shared;
} krn_thread_t;


typedef void (*krn_thread_body_t)(const krn_thread_t *krn_self,
                                  void *const *krn_params);


static void krn_run_block(krn_thread_t *self, unsigned phases,
                          krn_thread_body_t body, void *const *params)
{
    unsigned x, y, z;

    for (self->phase = 0; self->phase < phases; ++self->phase) {
        for (z = 0; z < self->block[2]; ++z) {
            for (y = 0; y < self->block[1]; ++y) {
                for (x = 0; x < self->block[0]; ++x) {
                    self->index[0] = x;
                    self->index[1] = y;
                    self->index[2] = z;
                    body(self, params);
                }
            }
        }
    }
}

static void krn_run_grid(const simk_grid_t *grid, unsigned phases,
                         krn_thread_body_t body, void *const *params)
{
    krn_thread_t self;
    unsigned x, y, z;

    memset(&self, 0, sizeof(self));
    memcpy(self.grid, grid->grid, sizeof(self.grid));
    memcpy(self.block, grid->block, sizeof(self.block));
    self.shared_bytes = grid->shared_bytes;
    self.shared       = calloc(1, (size_t)grid->shared_bytes + 1);
    if (self.shared == NULL) {
        abort();
    }

    for (z = 0; z < self.grid[2]; ++z) {
        for (y = 0; y < self.grid[1]; ++y) {
            for (x = 0; x < self.grid[0]; ++x) {
                self.block_index[0] = x;
                self.block_index[1] = y;
                self.block_index[2] = z;
                krn_run_block(&self, phases, body, params);
            }
        }
    }

    free(self.shared);
}

/* By memcpy: the driver need not keep a parameter aligned. The counter of
 * KRN_MAP is the distance from the last parameter. */
#define KRN_TYPE(_type, _name) _type
#define KRN_FETCH(_n, _pair) \
    __extension__({ \
        KRN_TYPE _pair krn_value; \
        memcpy(&krn_value, krn_end[-(_n)], sizeof(krn_value)); \
        krn_value; \
    })

#define KRN_BODY(_name, _phases) \
    void simk_##_name(const simk_grid_t *grid, void *const *params); \
    void simk_##_name(const simk_grid_t *grid, void *const *params) \
    { \
        krn_run_grid(grid, _phases, _name##_thread, params); \
    }

#define KRN_KERNEL_PHASES(_name, _phases, ...) \
    static void _name(const krn_thread_t *krn_self, \
                      KRN_MAP(KRN_DECLARE, __VA_ARGS__)); \
    static void _name##_thread(const krn_thread_t *krn_self, \
                               void *const *krn_params) \
    { \
        void *const *krn_end = krn_params + KRN_COUNT(__VA_ARGS__); \
        _name(krn_self, KRN_MAP(KRN_FETCH, __VA_ARGS__)); \
    } \
    KRN_BODY(_name, _phases) \
    static void _name(const krn_thread_t *krn_self, \
                      KRN_MAP(KRN_DECLARE, __VA_ARGS__))

#define KRN_KERNEL(_name, ...) KRN_KERNEL_PHASES(_name, 1, __VA_ARGS__)

#define KRN_KERNEL_VOID(_name) \
    static void _name(void); \
    static void _name##_thread(const krn_thread_t *krn_self, \
                               void *const *krn_params) \
    { \
        (void)krn_self; \
        (void)krn_params; \
        _name(); \
    } \
    KRN_BODY(_name, 1) \
    static void _name(void)

#define KRN_X \
    (krn_self->block_index[0] * krn_self->block[0] + krn_self->index[0])
#define KRN_Y \
    (krn_self->block_index[1] * krn_self->block[1] + krn_self->index[1])
#define KRN_SIZE_X               (krn_self->grid[0] * krn_self->block[0])
#define KRN_LOCAL_X              (krn_self->index[0])
#define KRN_BLOCK_X              (krn_self->block[0])
#define KRN_GRID(_d)             (krn_self->grid[KRN_DIM_##_d])
#define KRN_BLOCK(_d)            (krn_self->block[KRN_DIM_##_d])
#define KRN_INDEX(_d) \
    (krn_self->block_index[KRN_DIM_##_d] * KRN_BLOCK(_d) + \
     krn_self->index[KRN_DIM_##_d])
#define KRN_DIM_x                0
#define KRN_DIM_y                1
#define KRN_DIM_z                2
#define KRN_SHARED_BYTES()       (krn_self->shared_bytes)
#define KRN_PHASE(_p)            if (krn_self->phase == (_p))
#define KRN_NEXT_PHASE()         (void)0
#ifdef __SANITIZE_THREAD__
/* It knows no fences. */
static int krn_fenced __attribute__((unused));
#define KRN_FENCE_SYSTEM() \
    (void)__atomic_fetch_add(&krn_fenced, 1, __ATOMIC_SEQ_CST)
#else
#define KRN_FENCE_SYSTEM()       __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif
/* Nothing takes long here. */
#define KRN_SPIN(_ns)            (void)(_ns)
#define KRN_SHARED(_type, _name) _type *_name = (_type*)krn_self->shared
#define KRN_DEVICE               static

/* The symbol that the simulated driver takes for the module's variable. */
#define KRN_GLOBAL(_type, _name) \
    extern _type simg_##_name; \
    _type simg_##_name;
#define KRN_VARIABLE(_name)      (simg_##_name)
#endif

/* Any grid covers any length. */
#define KRN_FOR(_i, _n) \
    for (uint32_t _i = KRN_X; _i < (_n); _i += KRN_SIZE_X)

#endif
