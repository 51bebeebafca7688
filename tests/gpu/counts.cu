/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts its own launches, copies and sets through the runtime API, so that
 * scripts/gpu-check can hold them against what the shim saw; and every kernel
 * counts itself on the device, so that what ran under the shim can be held
 * against what ran without it.
 *
 * No synchronous copy, set or empty call is made: one call here is one call of
 * the driver. Some passes lie in an NVTX range and some do not. Standard output
 * holds only what must be the same in every run.
 */
#include "gpu_util.h"

#define COUNTS_N       4096u /* elements */
#define COUNTS_BYTES   (COUNTS_N * sizeof(uint32_t))
#define COUNTS_PITCH   256u
#define COUNTS_WIDTH   200u
#define COUNTS_HEIGHT  32u
#define COUNTS_THREADS 256u
#define COUNTS_BLOCKS  (COUNTS_N / COUNTS_THREADS)
#define COUNTS_RANGED  40 /* passes inside the range */
#define COUNTS_BARE    5  /* passes outside of any range, before and after */
#define COUNTS_TRIPLES 12 /* groups of three launches in a pass */

typedef enum {
    COUNTS_FILL,
    COUNTS_ADD,
    COUNTS_MIX,
    COUNTS_NUM_KERNELS
} counts_kernel_t;

static const char *const counts_kernel_names[COUNTS_NUM_KERNELS] = {
    "counts_fill", "counts_add", "counts_mix"
};

typedef struct counts_by_value {
    uint32_t factor;
    uint8_t  shift;
    uint64_t salt;
} counts_by_value_t;

typedef struct counts {
    uint64_t           launches, copies, sets;
    uint64_t           by_kernel[COUNTS_NUM_KERNELS];
    unsigned long long *executed;   /* device, one per kernel */
    uint32_t           *device[3];
    uint32_t           *pinned[3];  /* source, result, counters */
    uint32_t           *pageable[2];
    uint64_t           hash;
    cudaStream_t       stream;
} counts_t;

__device__ static void counts_ran(unsigned long long *executed, int kernel)
{
    if ((blockIdx.x == 0) && (threadIdx.x == 0)) {
        atomicAdd(&executed[kernel], 1ull);
    }
}

/* extern "C": CUPTI and the report name them as they are written here */
extern "C" __global__ void counts_fill(uint32_t *out, uint32_t value,
                                       unsigned long long *executed)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    counts_ran(executed, COUNTS_FILL);
    out[i] += value ^ i;
}

extern "C" __global__ void counts_add(const uint32_t *a, uint32_t *b,
                                      unsigned long long *executed)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    counts_ran(executed, COUNTS_ADD);
    b[i] = b[i] * 3 + a[(i + 1) % COUNTS_N];
}

extern "C" __global__ void counts_mix(uint32_t *a, counts_by_value_t by,
                                      unsigned long long *executed)
{
    uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

    counts_ran(executed, COUNTS_MIX);
    a[i] = (a[i] * by.factor) ^ (a[i] >> by.shift) ^ (uint32_t)(by.salt >> 7);
}

static void counts_launched(counts_t *c, counts_kernel_t kernel)
{
    ++c->launches;
    ++c->by_kernel[kernel];
}

/* One launch by each of the three ways that the runtime API has. */
static void counts_launch(counts_t *c, uint32_t pass, uint32_t index)
{
    uint32_t *from       = c->device[(pass + index) & 1];
    uint32_t *to         = c->device[(pass + index + 1) & 1];
    counts_by_value_t by = { 2 * index + 3, 5, 77ull * pass };
    void *mix_args[]     = { &from, &by, &c->executed };
    void *add_args[]     = { &from, &to, &c->executed };
    cudaLaunchConfig_t config = cudaLaunchConfig_t();

    counts_fill<<<COUNTS_BLOCKS, COUNTS_THREADS, 0, c->stream>>>(
            from, pass * 31 + index, c->executed);
    GPU_CHECK(cudaGetLastError());
    counts_launched(c, COUNTS_FILL);

    GPU_CHECK(cudaLaunchKernel((const void*)counts_mix, dim3(COUNTS_BLOCKS),
                               dim3(COUNTS_THREADS), mix_args, 0, c->stream));
    counts_launched(c, COUNTS_MIX);

    config.gridDim  = dim3(COUNTS_BLOCKS);
    config.blockDim = dim3(COUNTS_THREADS);
    config.stream   = c->stream;
    GPU_CHECK(cudaLaunchKernelExC(&config, (const void*)counts_add, add_args));
    counts_launched(c, COUNTS_ADD);
}

static void counts_sets(counts_t *c, uint32_t pass)
{
    GPU_CHECK(cudaMemsetAsync(c->device[2], (int)(pass & 0xff), COUNTS_BYTES,
                              c->stream));
    ++c->sets;
    GPU_CHECK(cudaMemsetAsync((char*)c->device[2] + 5, 0, 33, c->stream));
    ++c->sets;
    GPU_CHECK(cudaMemset2DAsync(c->device[2], COUNTS_PITCH, 0x5a, COUNTS_WIDTH,
                                COUNTS_HEIGHT, c->stream));
    ++c->sets;
}

static void counts_copies_in(counts_t *c, uint32_t pass)
{
    uint32_t i;

    for (i = 0; i < COUNTS_N; ++i) {
        c->pinned[0][i]   = pass * 7 + i;
        c->pageable[0][i] = pass * 13 + i * i;
    }
    GPU_CHECK(cudaMemcpyAsync(c->device[0], c->pinned[0], COUNTS_BYTES / 2,
                              cudaMemcpyHostToDevice, c->stream));
    ++c->copies;
    GPU_CHECK(cudaMemcpyAsync(c->device[1], c->pageable[0], COUNTS_BYTES / 4,
                              cudaMemcpyHostToDevice, c->stream));
    ++c->copies;
    /* what was staged may be overwritten once the call is back */
    memset(c->pageable[0], 0xee, COUNTS_BYTES);
    GPU_CHECK(cudaMemcpyAsync(c->device[0] + COUNTS_N / 2, c->device[2],
                              COUNTS_BYTES / 2, cudaMemcpyDeviceToDevice,
                              c->stream));
    ++c->copies;
    GPU_CHECK(cudaMemcpyAsync(c->device[2] + 64, c->device[1], 256,
                              cudaMemcpyDefault, c->stream));
    ++c->copies;
    GPU_CHECK(cudaMemcpy2DAsync(c->device[1], COUNTS_PITCH, c->device[2],
                                COUNTS_PITCH, COUNTS_WIDTH, COUNTS_HEIGHT,
                                cudaMemcpyDeviceToDevice, c->stream));
    ++c->copies;
}

static void counts_copies_out(counts_t *c)
{
    GPU_CHECK(cudaMemcpyAsync(c->pinned[1], c->device[0], COUNTS_BYTES,
                              cudaMemcpyDeviceToHost, c->stream));
    ++c->copies;
    GPU_CHECK(cudaMemcpyAsync(c->pageable[1], c->device[1], COUNTS_BYTES,
                              cudaMemcpyDeviceToHost, c->stream));
    ++c->copies;
}

static void counts_pass(counts_t *c, uint32_t pass, bool ranged)
{
    uint32_t i;

    if (ranged) {
        nvtxRangePushA("counts");
    }
    counts_sets(c, pass);
    counts_copies_in(c, pass);
    for (i = 0; i < COUNTS_TRIPLES; ++i) {
        counts_launch(c, pass, i);
    }
    counts_copies_out(c);
    if (ranged) {
        nvtxRangePop();
    }
    GPU_CHECK(cudaStreamSynchronize(c->stream));
    c->hash = gpu_fnv(c->hash, c->pinned[1], COUNTS_BYTES);
    c->hash = gpu_fnv(c->hash, c->pageable[1], COUNTS_BYTES);
}

static void counts_create(counts_t *c)
{
    int i;

    memset(c, 0, sizeof(*c));
    c->hash = GPU_FNV_START;
    GPU_CHECK(cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking));
    for (i = 0; i < 3; ++i) {
        GPU_CHECK(cudaMalloc((void**)&c->device[i], COUNTS_BYTES));
        GPU_CHECK(cudaMallocHost((void**)&c->pinned[i], COUNTS_BYTES));
        GPU_CHECK(cudaMemsetAsync(c->device[i], 0, COUNTS_BYTES, c->stream));
        ++c->sets;
    }
    for (i = 0; i < 2; ++i) {
        c->pageable[i] = (uint32_t*)malloc(COUNTS_BYTES);
        if (c->pageable[i] == NULL) {
            exit(1);
        }
    }
    GPU_CHECK(cudaMalloc((void**)&c->executed, COUNTS_NUM_KERNELS *
                                               sizeof(*c->executed)));
    GPU_CHECK(cudaMemsetAsync(c->executed, 0, COUNTS_NUM_KERNELS *
                              sizeof(*c->executed), c->stream));
    ++c->sets;
}

/* Prints what ran, and says whether that is what was launched. */
static bool counts_print(counts_t *c)
{
    unsigned long long executed[COUNTS_NUM_KERNELS];
    bool right = true;
    int i;

    GPU_CHECK(cudaMemcpyAsync(c->pinned[2], c->executed, sizeof(executed),
                              cudaMemcpyDeviceToHost, c->stream));
    ++c->copies;
    GPU_CHECK(cudaStreamSynchronize(c->stream));
    memcpy(executed, c->pinned[2], sizeof(executed));
    for (i = 0; i < COUNTS_NUM_KERNELS; ++i) {
        printf("executed %s %llu of %" PRIu64 "\n", counts_kernel_names[i],
               executed[i], c->by_kernel[i]);
        right = right && (executed[i] == c->by_kernel[i]);
    }
    printf("hash %016" PRIx64 "\n", c->hash);
    return right;
}

static void counts_write(const counts_t *c, const char *name)
{
    FILE *json = gpu_json_open(name);

    if (json != NULL) {
        fprintf(json, "{\"launches\": %" PRIu64 ", \"copies\": %" PRIu64
                ", \"sets\": %" PRIu64 ", \"hash\": \"%016" PRIx64 "\"}\n",
                c->launches, c->copies, c->sets, c->hash);
    }
    gpu_json_close(json, name);
}

int main(int argc, char **argv)
{
    const char *json = NULL;
    uint32_t pass    = 0;
    counts_t c;
    bool right;
    int i;

    if ((argc == 3) && !strcmp(argv[1], "--json")) {
        json = argv[2];
    } else if (argc != 1) {
        fprintf(stderr, "usage: %s [--json FILE]\n", argv[0]);
        return 2;
    }
    counts_create(&c);
    for (i = 0; i < COUNTS_BARE; ++i) {
        counts_pass(&c, pass++, false);
    }
    for (i = 0; i < COUNTS_RANGED; ++i) {
        counts_pass(&c, pass++, true);
    }
    for (i = 0; i < COUNTS_BARE; ++i) {
        counts_pass(&c, pass++, false);
    }
    right = counts_print(&c);
    counts_write(&c, json);
    GPU_CHECK(cudaDeviceSynchronize());
    return right ? 0 : 1;
}
