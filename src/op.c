/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all kinds of op share: the table of kinds, names, and the question
 * what an address is.
 */
#include "op.h"

#include <stdatomic.h>
#include <string.h>

#include "function.h"

const cgs_op_kind_t *const cgs_op_kinds[CGS_OP_NUM_KINDS] = {
    [CGS_OP_KERNEL] = &cgs_op_kernel,
    [CGS_OP_COPY]   = &cgs_op_copy,
    [CGS_OP_SET]    = &cgs_op_set,
    [CGS_OP_HOST]   = &cgs_op_host,
    [CGS_OP_FREE]   = &cgs_op_free,
    [CGS_OP_RECORD] = &cgs_op_record,
    [CGS_OP_WAIT]   = &cgs_op_wait,
};

static atomic_ullong memory_generation;

uint64_t cgs_memory_generation(void)
{
    return atomic_load_explicit(&memory_generation, memory_order_acquire);
}

void cgs_memory_changed(void)
{
    atomic_fetch_add_explicit(&memory_generation, 1, memory_order_acq_rel);
}

bool cgs_memory_type(uint64_t address, size_t bytes, CUdevice device,
                     CUmemorytype *type)
{
    CUdeviceptr begin    = 0;
    size_t   size        = 0;
    unsigned memory_type = 0;
    int      managed     = 0;
    int      ordinal     = -1;
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE,
    };
    void *values[] = {&memory_type, &managed, &ordinal, &begin, &size};

    if ((CGS_REAL(cuPointerGetAttributes)(5, attributes, values, address) !=
         CUDA_SUCCESS) || managed) {
        return false;
    }
    if ((memory_type == CU_MEMORYTYPE_DEVICE) ? (ordinal != device) :
        (memory_type != CU_MEMORYTYPE_HOST)) {
        return false;
    }
    /* A call that the driver refuses must be refused there and then. */
    if ((address < begin) || (address - begin > size) ||
        (bytes > size - (address - begin))) {
        return false;
    }
    *type = (CUmemorytype)memory_type;
    return true;
}

bool cgs_memory_is_pageable(uint64_t address)
{
    unsigned memory_type = 0;
    CUresult result;

    result = CGS_REAL(cuPointerGetAttribute)(
        &memory_type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    return (result == CUDA_ERROR_INVALID_VALUE) ||
           ((result == CUDA_SUCCESS) && (memory_type == 0));
}

/* FNV-1a, eight bytes at a time where there are eight. */
uint64_t cgs_op_hash_bytes(const void *data, size_t size, uint64_t hash)
{
    const unsigned char *bytes = data;
    uint64_t            word;

    for (; size > 0; size -= size < sizeof(word) ? size : sizeof(word)) {
        word = 0;
        memcpy(&word, bytes, size < sizeof(word) ? size : sizeof(word));
        hash   = (hash ^ word) * 0x100000001b3u;
        hash  ^= hash >> 32;
        bytes += sizeof(word);
    }
    return hash;
}

const char *cgs_op_call_name(const cgs_call_t *call)
{
    return call->kind == CGS_OP_KERNEL ?
           cgs_function_name(call->kernel.shape.function) :
           cgs_op_kinds[call->kind]->name;
}

const char *cgs_op_name(const cgs_op_t *op)
{
    return op->kind == CGS_OP_KERNEL ?
           cgs_function_name(op->kernel.shape.function) :
           cgs_op_kinds[op->kind]->name;
}
