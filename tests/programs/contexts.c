/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts that come and go: created, pushed, popped and destroyed around and
 * inside of regions, a thread without any, and the primary context reset.
 */
#include <pthread.h>
#include <stdio.h>

#include <nvtx3/nvToolsExt.h>

#include "kernels_ptx.h"
#include "util.h"


enum {
    CONTEXTS_WORDS = 64,
    CONTEXTS_RUNS  = 4
};


/* What one context holds. */
typedef struct contexts_part {
    CUmodule    module;
    CUstream    stream;
    CUfunction  scale;
    CUfunction  hash;
    CUdeviceptr x;
    uint32_t    n;
} contexts_part_t;


static CUcontext contexts_create(CUdevice device)
{
    CUcontext context;

#if CUDA_VERSION >= 13000
    PRG_CHECK(cuCtxCreate(&context, NULL, 0, device));
#else
    PRG_CHECK(cuCtxCreate(&context, 0, device));
#endif
    return context;
}

static void contexts_part_open(contexts_part_t *part)
{
    part->n = CONTEXTS_WORDS;
    PRG_CHECK(cuModuleLoadData(&part->module, krn_kernels_ptx));
    PRG_CHECK(cuModuleGetFunction(&part->scale, part->module, "k_scale"));
    PRG_CHECK(cuModuleGetFunction(&part->hash, part->module, "k_hash"));
    PRG_CHECK(cuStreamCreate(&part->stream, CU_STREAM_DEFAULT));
    PRG_CHECK(cuMemAlloc(&part->x, part->n * sizeof(uint32_t)));
    PRG_CHECK(cuMemsetD32Async(part->x, 3, part->n, part->stream));
}

static void contexts_part_close(contexts_part_t *part)
{
    PRG_CHECK(cuMemFree(part->x));
    PRG_CHECK(cuStreamDestroy(part->stream));
    PRG_CHECK(cuModuleUnload(part->module));
}

static void contexts_work(contexts_part_t *part, uint32_t value)
{
    PRG_LAUNCH(part->scale, part->stream, part->n, &part->x, &part->n, &value);
    PRG_LAUNCH(part->hash, part->stream, part->n, &part->x, &part->n, &value);
}

static void contexts_region(contexts_part_t *part)
{
    uint32_t run;

    for (run = 0; run < CONTEXTS_RUNS; ++run) {
        nvtxRangePushA("context");
        contexts_work(part, 3);
        contexts_work(part, run);
        contexts_work(part, 4);
        nvtxRangePop();
    }
}

/* The same region in one context after the other; the handles and addresses of
 * a later one may be those of an earlier one. */
static void contexts_own(CUdevice device, int destroy_with_all)
{
    contexts_part_t part;
    CUcontext context, popped;
    unsigned i;

    for (i = 0; i < 3; ++i) {
        context = contexts_create(device);
        contexts_part_open(&part);
        contexts_region(&part);
        PRG_CHECK(cuStreamSynchronize(part.stream));
        prg_print_hash("own", part.x, part.n);
        if (!destroy_with_all) {
            contexts_part_close(&part);
        }
        PRG_CHECK(cuCtxPopCurrent(&popped));
        printf("popped the same: %d\n", popped == context);
        PRG_CHECK(cuCtxDestroy(context));
    }
}

/* Two contexts in one region, changed by push, pop and set. */
static void contexts_between(CUdevice device, CUcontext primary,
                             contexts_part_t *first)
{
    contexts_part_t second;
    CUcontext context, popped;
    unsigned run;

    context = contexts_create(device);
    contexts_part_open(&second);
    PRG_CHECK(cuCtxPopCurrent(&popped));

    for (run = 0; run < 2 * CONTEXTS_RUNS; ++run) {
        nvtxRangePushA("between");
        contexts_work(first, 1);
        PRG_CHECK(cuCtxPushCurrent(context));
        contexts_work(&second, 2);
        contexts_work(&second, run);
        PRG_CHECK(cuCtxPopCurrent(&popped));
        contexts_work(first, 3);
        PRG_CHECK(cuCtxSetCurrent(context));
        contexts_work(&second, 4);
        PRG_CHECK(cuCtxSetCurrent(primary));
        nvtxRangePop();
    }
    PRG_CHECK(cuStreamSynchronize(first->stream));
    prg_print_hash("between first", first->x, first->n);
    PRG_CHECK(cuCtxPushCurrent(context));
    PRG_CHECK(cuStreamSynchronize(second.stream));
    prg_print_hash("between second", second.x, second.n);
    contexts_part_close(&second);
    PRG_CHECK(cuCtxPopCurrent(&popped));
    PRG_CHECK(cuCtxDestroy(context));
}

/* Without a current context a launch into the legacy stream is an error. */
static void *contexts_without(void *arg)
{
    contexts_part_t *part = arg;
    uint32_t value        = 3;
    CUresult result;

    nvtxRangePushA("without");
    result = cuLaunchKernel(part->scale, 1, 1, 1, 64, 1, 1, 0, NULL,
                            (void*[]){ &part->x, &part->n, &value }, NULL);
    printf("without a context: %s\n", prg_error_name(result));
    nvtxRangePop();
    return NULL;
}

static void contexts_thread(contexts_part_t *part)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, contexts_without, part) != 0) {
        perror("pthread_create");
        return;
    }
    pthread_join(thread, NULL);
}

/* All that was made in the primary context is gone, and made again. */
static void contexts_reset(CUdevice device, CUcontext *primary_p)
{
    contexts_part_t part;
    unsigned i;

    for (i = 0; i < 3; ++i) {
        PRG_CHECK(cuDevicePrimaryCtxReset(device));
        PRG_CHECK(cuDevicePrimaryCtxRetain(primary_p, device));
        PRG_CHECK(cuCtxSetCurrent(*primary_p));
        contexts_part_open(&part);
        contexts_region(&part);
        PRG_CHECK(cuStreamSynchronize(part.stream));
        prg_print_hash("reset", part.x, part.n);
        PRG_CHECK(cuCtxSetCurrent(NULL));
        PRG_CHECK(cuDevicePrimaryCtxRelease(device));
    }
}

int main(void)
{
    contexts_part_t part;
    CUcontext primary;
    CUdevice device;
    prg_context_t prg;

    prg_open(&prg);
    device  = prg.device;
    primary = prg.context;
    contexts_part_open(&part);
    contexts_region(&part);
    contexts_own(device, 0);
    PRG_CHECK(cuCtxSetCurrent(primary));
    contexts_own(device, 1);
    PRG_CHECK(cuCtxSetCurrent(primary));
    contexts_between(device, primary, &part);
    contexts_thread(&part);
    contexts_region(&part);
    PRG_CHECK(cuStreamSynchronize(part.stream));
    prg_print_hash("primary", part.x, part.n);
    contexts_part_close(&part);
    prg_close(&prg);
    contexts_reset(device, &primary);
    return 0;
}
