/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous sets of device memory as ops, in one and two dimensions.
 */
#define _GNU_SOURCE
#include "op.h"

#include <string.h>

void cgs_call_set(cgs_call_t *call, CUdeviceptr dst, size_t pitch,
                  unsigned value, unsigned element_size, size_t width,
                  size_t height, bool is_2d, bool is_sync)
{
    cgs_set_t *set = &call->set.set;

    call->kind        = CGS_OP_SET;
    set->dst          = dst;
    set->pitch        = pitch;
    set->width        = width;
    set->height       = height;
    set->value        = value;
    set->element_size = element_size;
    set->is_2d        = is_2d;
    set->is_sync      = is_sync;
    if ((width == 0) || (height == 0)) {
        call->refused = true;
        call->reason  = "a set of no bytes";
    }
}

static bool set_admit(cgs_call_t *call)
{
    const cgs_set_t *set  = &call->set.set;
    size_t          bytes = set->is_2d ? 0 :
                            set->width > SIZE_MAX / 4 ? SIZE_MAX :
                            set->width * set->element_size;
    CUmemorytype    type;

    call->set.generation = cgs_memory_generation();
    if ((set->dst % set->element_size != 0) ||
        !cgs_memory_type(set->dst, bytes, call->device, &type) ||
        (type != CU_MEMORYTYPE_DEVICE)) {
        call->reason = "a set of memory that is not the device's own";
        return false;
    }
    return true;
}

static cgs_match_t set_compare(const cgs_op_t *op, cgs_call_t *call)
{
    const cgs_set_t *old = &op->set.set;
    const cgs_set_t *now = &call->set.set;

    if (!memcmp(old, now, sizeof(*old)) &&
        (op->set.generation == cgs_memory_generation())) {
        return CGS_MATCH_SAME;
    }
    /* The driver patches sets of one dimension only. */
    if (old->is_2d || now->is_2d || (old->element_size != now->element_size) ||
        (old->is_sync != now->is_sync) || !set_admit(call)) {
        return CGS_MATCH_OTHER;
    }
    return CGS_MATCH_CHANGED;
}

static int set_take(cgs_op_t *op, const cgs_call_t *call, cgs_arena_t *arena)
{
    (void)arena;
    op->set.set        = call->set.set;
    op->set.generation = call->set.generation;
    return 0;
}

static void set_recall(const cgs_op_t *op, cgs_call_t *call)
{
    call->set.set        = op->set.set;
    call->set.generation = op->set.generation;
}

static uint64_t set_hash(const cgs_op_t *op, uint64_t hash)
{
    return cgs_op_hash_bytes(&op->set.set, sizeof(op->set.set), hash);
}

static bool set_refresh(cgs_op_t *op, CUdevice device)
{
    cgs_call_t call = {.kind = CGS_OP_SET, .device = device};

    if (op->set.generation == cgs_memory_generation()) {
        return true;
    }
    call.set.set = op->set.set;
    if (!set_admit(&call)) {
        return false;
    }
    op->set.generation = call.set.generation;
    return true;
}

/* Where it was called by a function without Async, it is issued by that one:
 * it goes to the legacy stream, and the host does not wait for it either. */
static CUresult issue_2d(const cgs_set_t *set, CUstream stream)
{
    switch (set->element_size) {
    case 1:
        return set->is_sync ?
               CGS_REAL(cuMemsetD2D8_v2)(set->dst, set->pitch, set->value,
                                         set->width, set->height) :
               CGS_REAL(cuMemsetD2D8Async)(set->dst, set->pitch, set->value,
                                           set->width, set->height, stream);
    case 2:
        return set->is_sync ?
               CGS_REAL(cuMemsetD2D16_v2)(set->dst, set->pitch, set->value,
                                          set->width, set->height) :
               CGS_REAL(cuMemsetD2D16Async)(set->dst, set->pitch, set->value,
                                            set->width, set->height, stream);
    default:
        return set->is_sync ?
               CGS_REAL(cuMemsetD2D32_v2)(set->dst, set->pitch, set->value,
                                          set->width, set->height) :
               CGS_REAL(cuMemsetD2D32Async)(set->dst, set->pitch, set->value,
                                            set->width, set->height, stream);
    }
}

static CUresult issue_1d(const cgs_set_t *set, CUstream stream)
{
    switch (set->element_size) {
    case 1:
        return set->is_sync ?
               CGS_REAL(cuMemsetD8_v2)(set->dst, set->value, set->width) :
               CGS_REAL(cuMemsetD8Async)(set->dst, set->value, set->width,
                                         stream);
    case 2:
        return set->is_sync ?
               CGS_REAL(cuMemsetD16_v2)(set->dst, set->value, set->width) :
               CGS_REAL(cuMemsetD16Async)(set->dst, set->value, set->width,
                                          stream);
    default:
        return set->is_sync ?
               CGS_REAL(cuMemsetD32_v2)(set->dst, set->value, set->width) :
               CGS_REAL(cuMemsetD32Async)(set->dst, set->value, set->width,
                                          stream);
    }
}

static CUresult set_issue(const cgs_op_t *op, CUstream stream)
{
    return op->set.set.is_2d ? issue_2d(&op->set.set, stream) :
                               issue_1d(&op->set.set, stream);
}

static void set_describe(const cgs_op_t *op, CUcontext ctx,
                         CUgraphNodeParams *params)
{
    const cgs_set_t *set = &op->set.set;

    params->type               = CU_GRAPH_NODE_TYPE_MEMSET;
    params->memset.dst         = set->dst;
    params->memset.pitch       = set->is_2d ? set->pitch : 0;
    params->memset.value       = set->value;
    params->memset.elementSize = set->element_size;
    params->memset.width       = set->width;
    params->memset.height      = set->height;
    params->memset.ctx         = ctx;
}

static void set_uses(const cgs_op_t *op, cgs_op_use_fn_t tell, void *arg)
{
    const cgs_set_t *set = &op->set.set;
    cgs_op_use_t    use  = {
        .address = set->dst,
        .bytes   = set->width * set->element_size +
                   (set->height - 1) * set->pitch,
        .access  = CGSHIM_ACCESS_WRITTEN,
    };

    tell(&use, arg);
}

static void set_explain(const cgs_op_t *op, const cgs_call_t *call,
                        cgs_divergence_t *divergence)
{
    const cgs_set_t *old = &op->set.set;
    const cgs_set_t *now = &call->set.set;
    uint64_t        from, to;

    if (old->dst != now->dst) {
        divergence->what = "destination";
        from             = old->dst;
        to               = now->dst;
    } else if (old->value != now->value) {
        divergence->what = "value";
        from             = old->value;
        to               = now->value;
    } else if (old->width != now->width) {
        divergence->what = "width";
        from             = old->width;
        to               = now->width;
    } else if (memcmp(old, now, sizeof(*old)) != 0) {
        divergence->what = "shape";
        return;
    } else {
        divergence->what = op->set.generation != cgs_memory_generation() ?
                           "memory freed since" : NULL;
        return;
    }
    divergence->size      = sizeof(from);
    divergence->num_bytes = sizeof(from);
    memcpy(divergence->old_bytes, &from, sizeof(from));
    memcpy(divergence->new_bytes, &to, sizeof(to));
}

const cgs_op_kind_t cgs_op_set = {
    .name     = "set",
    .admit    = set_admit,
    .compare  = set_compare,
    .take     = set_take,
    .recall   = set_recall,
    .hash     = set_hash,
    .refresh  = set_refresh,
    .issue    = set_issue,
    .describe = set_describe,
    .uses     = set_uses,
    .explain  = set_explain,
};
