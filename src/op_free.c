/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered frees as ops: held back like work, and called right after the
 * graph that uses the memory. The program cannot use it any more, so that it
 * lives a little longer changes nothing but where the next allocation lies.
 */
#define _GNU_SOURCE
#include "op.h"

#include <string.h>

/* The largest allocation whose end may wait: many of them may wait at once. */
#define MAX_WAITING (16u << 20)

void cgs_call_free(cgs_call_t *call, CUdeviceptr address)
{
    call->kind         = CGS_OP_FREE;
    call->free.address = address;
}

/* Only what the driver will certainly free: an allocation, by its start. */
static bool free_admit(cgs_call_t *call)
{
    CUdeviceptr begin       = 0;
    size_t      size        = 0;
    unsigned    memory_type = 0;
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE,
    };
    void *values[] = {&memory_type, &begin, &size};

    if ((CGS_REAL(cuPointerGetAttributes)(3, attributes, values,
                                          call->free.address) !=
         CUDA_SUCCESS) || (memory_type != CU_MEMORYTYPE_DEVICE) ||
        (begin != call->free.address) || (size > MAX_WAITING)) {
        call->reason = "a free of much memory, or of what is none";
        return false;
    }
    call->free.bytes = size;
    return true;
}

static cgs_match_t free_compare(const cgs_op_t *op, cgs_call_t *call)
{
    if (!free_admit(call)) {
        return CGS_MATCH_OTHER;
    }
    return op->free.address == call->free.address ? CGS_MATCH_SAME :
                                                    CGS_MATCH_CHANGED;
}

static int free_take(cgs_op_t *op, const cgs_call_t *call, cgs_arena_t *arena)
{
    (void)arena;
    op->free.address = call->free.address;
    op->free.bytes   = call->free.bytes;
    return 0;
}

static void free_recall(const cgs_op_t *op, cgs_call_t *call)
{
    call->free.address = op->free.address;
    call->free.bytes   = op->free.bytes;
}

static uint64_t free_hash(const cgs_op_t *op, uint64_t hash)
{
    return cgs_op_hash_bytes(&op->free.address, sizeof(op->free.address),
                             hash);
}

static CUresult free_issue(const cgs_op_t *op, CUstream stream)
{
    cgs_memory_changed();
    return CGS_REAL(cuMemFreeAsync)(op->free.address, stream);
}

static void free_explain(const cgs_op_t *op, const cgs_call_t *call,
                         cgs_divergence_t *divergence)
{
    divergence->what      = "address";
    divergence->size      = sizeof(CUdeviceptr);
    divergence->num_bytes = sizeof(CUdeviceptr);
    memcpy(divergence->old_bytes, &op->free.address, sizeof(CUdeviceptr));
    memcpy(divergence->new_bytes, &call->free.address, sizeof(CUdeviceptr));
}

const cgs_op_kind_t cgs_op_free = {
    .name    = "free",
    .admit   = free_admit,
    .compare = free_compare,
    .take    = free_take,
    .recall  = free_recall,
    .hash    = free_hash,
    .issue   = free_issue,
    .explain = free_explain,
};
