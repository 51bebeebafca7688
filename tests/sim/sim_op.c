/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One piece of work of the simulated device: copying it, releasing it, running
 * it. Shared by streams and graph nodes.
 */
#include "sim.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

sim_op_t *sim_op_new(sim_op_kind_t kind, const sim_ctx_t *ctx)
{
    sim_op_t *op = sim_alloc(sizeof(*op));

    op->kind    = kind;
    op->ctx_uid = (ctx != NULL) ? ctx->uid : 0;
    op->ctx     = (ctx != NULL) ? ctx->handle : NULL;
    return op;
}

static void sim_op_clone_kernel(sim_op_kernel_t *kernel)
{
    const sim_entry_t *entry = kernel->func->entry;
    size_t             i;

    ++kernel->func->refs;
    kernel->args   = sim_copy_of(kernel->args, entry->args_size);
    kernel->params = sim_alloc(entry->num_params * sizeof(void *));
    for (i = 0; i < entry->num_params; ++i) {
        kernel->params[i] = kernel->args + entry->offsets[i];
    }
    if (kernel->attrs != NULL) {
        kernel->attrs = sim_copy_of(kernel->attrs, sizeof(sim_attrs_t));
    }
}

sim_op_t *sim_op_clone(const sim_op_t *op)
{
    sim_op_t *clone = sim_copy_of(op, sizeof(*op));

    switch (op->kind) {
    case SIM_OP_KERNEL:
        sim_op_clone_kernel(&clone->kernel);
        break;
    case SIM_OP_MEMOPS:
        clone->memops.ops = sim_copy_of(op->memops.ops,
                                        op->memops.num *
                                        sizeof(*op->memops.ops));
        break;
    case SIM_OP_CHILD:
        clone->child = sim_graph_clone(op->child);
        break;
    default:
        break;
    }
    return clone;
}

void sim_op_release(sim_op_t *op)
{
    if (op == NULL) {
        return;
    }

    switch (op->kind) {
    case SIM_OP_KERNEL:
        sim_func_unref(op->kernel.func);
        free(op->kernel.args);
        free(op->kernel.params);
        free(op->kernel.attrs);
        break;
    case SIM_OP_COPY:
        free(op->copy.staged);
        break;
    case SIM_OP_MEMOPS:
        free(op->memops.ops);
        break;
    case SIM_OP_CHILD:
        sim_graph_release(op->child);
        break;
    default:
        break;
    }
    free(op);
}

/* ---------------------------------------------------------- running */

/* The words of memory operations are read and written by the host, by kernels
 * and by other tasks at the same time: that is their purpose. */
static uint64_t sim_memop_load(CUdeviceptr address, bool is_64)
{
    return is_64 ?
           __atomic_load_n((uint64_t *)(uintptr_t)address, __ATOMIC_SEQ_CST) :
           __atomic_load_n((uint32_t *)(uintptr_t)address, __ATOMIC_SEQ_CST);
}

static bool sim_memop_is_met(const CUstreamBatchMemOpParams *op)
{
    bool     is_64 = op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64;
    uint64_t value, wanted;

    if (!is_64 && (op->operation != CU_STREAM_MEM_OP_WAIT_VALUE_32)) {
        return true;
    }

    sim_mem_open();
    value = sim_memop_load(op->waitValue.address, is_64);
    sim_mem_close();
    wanted = is_64 ? op->waitValue.value64 : op->waitValue.value;
    switch (op->waitValue.flags & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ:
        return is_64 ? ((int64_t)(value - wanted) >= 0) :
                       ((int32_t)(value - wanted) >= 0);
    case CU_STREAM_WAIT_VALUE_EQ:
        return value == wanted;
    case CU_STREAM_WAIT_VALUE_AND:
        return (value & wanted) != 0;
    default:
        return is_64 ? (~(value | wanted) != 0) :
                       ((uint32_t)~(value | wanted) != 0);
    }
}

bool sim_op_can_run(const sim_op_t *op)
{
    unsigned i;

    if (op->kind != SIM_OP_MEMOPS) {
        return true;
    }
    /* A batch whose later waits are met by its own writes does not happen:
     * each wait of a batch of more than one is a task of its own. */
    for (i = 0; i < op->memops.num; ++i) {
        if (!sim_memop_is_met(&op->memops.ops[i])) {
            return false;
        }
    }
    return true;
}

static void sim_op_run_memops(const sim_op_t *op)
{
    unsigned i;

    for (i = 0; i < op->memops.num; ++i) {
        const CUstreamBatchMemOpParams *one = &op->memops.ops[i];

        if (one->operation == CU_STREAM_MEM_OP_WRITE_VALUE_32) {
            __atomic_store_n((uint32_t *)(uintptr_t)one->writeValue.address,
                             one->writeValue.value, __ATOMIC_SEQ_CST);
        } else if (one->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64) {
            __atomic_store_n((uint64_t *)(uintptr_t)one->writeValue.address,
                             one->writeValue.value64, __ATOMIC_SEQ_CST);
        }
    }
}

static void sim_op_run_kernel(const sim_op_kernel_t *kernel)
{
    static atomic_uint noise;
    const sim_entry_t *entry = kernel->func->entry;
    simk_grid_t        grid;
    uint8_t           *first;

    memcpy(grid.grid, kernel->grid, sizeof(grid.grid));
    memcpy(grid.block, kernel->block, sizeof(grid.block));
    grid.shared_bytes = kernel->shared;
    entry->body(&grid, kernel->params);
    if (sim_is_planted("noise") && (entry->num_params > 0) &&
        (entry->sizes[0] == sizeof(first))) {
        memcpy(&first, kernel->params[0], sizeof(first));
        *first = (uint8_t)atomic_fetch_add(&noise, 1);
    }
}

static void sim_op_run_copy(const sim_op_copy_t *copy)
{
    const CUDA_MEMCPY3D *d = &copy->desc;
    const uint8_t       *src;
    uint8_t             *dst;
    size_t               y, z;

    src = (d->srcMemoryType == CU_MEMORYTYPE_HOST) ?
          d->srcHost : (const void *)(uintptr_t)d->srcDevice;
    dst = (d->dstMemoryType == CU_MEMORYTYPE_HOST) ?
          d->dstHost : (void *)(uintptr_t)d->dstDevice;
    for (z = 0; z < d->Depth; ++z) {
        for (y = 0; y < d->Height; ++y) {
            const uint8_t *from;
            uint8_t       *to;

            from = (copy->staged != NULL) ?
                (const uint8_t *)copy->staged +
                (z * d->Height + y) * d->WidthInBytes :
                src + ((z + d->srcZ) * d->srcHeight + y + d->srcY) *
                d->srcPitch + d->srcXInBytes;
            to = dst + ((z + d->dstZ) * d->dstHeight + y + d->dstY) *
                 d->dstPitch + d->dstXInBytes;
            memmove(to, from, d->WidthInBytes);
        }
    }
}

static void sim_op_run_set(const CUDA_MEMSET_NODE_PARAMS_v1 *set)
{
    size_t x, y;

    for (y = 0; y < set->height; ++y) {
        uint8_t *row = (uint8_t *)(uintptr_t)set->dst + y * set->pitch;

        switch (set->elementSize) {
        case 1:
            memset(row, (int)(set->value & 0xff), set->width);
            break;
        case 2:
            for (x = 0; x < set->width; ++x) {
                ((uint16_t *)(void *)row)[x] = (uint16_t)set->value;
            }
            break;
        default:
            for (x = 0; x < set->width; ++x) {
                ((uint32_t *)(void *)row)[x] = set->value;
            }
            break;
        }
    }
}

void sim_fill_fresh(void *start, size_t size, bool poison)
{
    uint8_t *bytes = start;
    uint64_t state = sim_config()->seed;
    size_t   i;

    if (!poison) {
        memset(start, 0xcd, size);
        return;
    }
    for (i = 0; i < size; ++i) {
        state    = state * 6364136223846793005ull + 1442695040888963407ull;
        bytes[i] = (uint8_t)(state >> 56);
    }
}

void sim_op_run(sim_op_t *op)
{
    switch (op->kind) {
    case SIM_OP_KERNEL:
        sim_op_run_kernel(&op->kernel);
        break;
    case SIM_OP_COPY:
        sim_op_run_copy(&op->copy);
        break;
    case SIM_OP_SET:
        sim_op_run_set(&op->set.params);
        break;
    case SIM_OP_HOST:
        op->host.fn(op->host.userData);
        break;
    case SIM_OP_CALLBACK:
        op->callback.fn(op->callback.stream, CUDA_SUCCESS, op->callback.data);
        break;
    case SIM_OP_MEMOPS:
        sim_op_run_memops(op);
        break;
    case SIM_OP_FILL:
        if (op->fill.poison) {
            sim_fill_fresh(op->fill.start, op->fill.size, true);
        } else {
            memset(op->fill.start, op->fill.byte, op->fill.size);
        }
        break;
    default:
        break;
    }
}

void sim_op_count(const sim_op_t *op)
{
    switch (op->kind) {
    case SIM_OP_KERNEL:
        sim_count_kernel(op->kernel.func->entry->counter);
        break;
    case SIM_OP_COPY:
        sim_count_copy();
        break;
    case SIM_OP_SET:
        sim_count_set();
        break;
    default:
        break;
    }
}
