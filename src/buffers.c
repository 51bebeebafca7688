/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ops tell what may be addresses, the driver which of them are and of
 * what.
 */
#include "buffers.h"

#include <stdlib.h>
#include <string.h>

#include "graph.h"

/* Who asks, and where the walk stands. */
typedef struct {
    const cgs_walk_t *walk;
    cgs_buffers_t    *buffers;
} collector_t;

typedef struct {
    const cgs_walk_t *walk;
    int              argument;
    cgshim_buffer_t  *buffer;
    bool             found;
} finder_t;

cgs_buffer_found_t cgs_buffers_look_up(uint64_t address, CUcontext ctx,
                                       cgshim_buffer_t *buffer, int *device)
{
    CUdeviceptr begin       = 0;
    size_t      size        = 0;
    unsigned    memory_type = 0;
    int         managed     = 0;
    bool        entered;
    CUresult    result;
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
    };
    void *values[] = {&memory_type, &managed, &begin, &size, device};

    entered = cgs_graph_enter_context(ctx);
    result  = CGS_REAL(cuPointerGetAttributes)(5, attributes, values, address);
    if (entered) {
        cgs_graph_leave_context();
    }
    /* These two may be said of an address that is none. */
    if ((result == CUDA_ERROR_INVALID_VALUE) ||
        (result == CUDA_ERROR_INVALID_CONTEXT) ||
        ((result == CUDA_SUCCESS) && (memory_type == 0))) {
        return CGS_BUFFER_NONE;
    }
    if ((result != CUDA_SUCCESS) || (address < begin) ||
        (address - begin >= size)) {
        return CGS_BUFFER_UNTOLD;
    }
    buffer->base   = begin;
    buffer->bytes  = size;
    buffer->memory = managed ? CGSHIM_MEMORY_MANAGED :
                     memory_type == CU_MEMORYTYPE_HOST ?
                     CGSHIM_MEMORY_HOST : CGSHIM_MEMORY_DEVICE;
    return CGS_BUFFER_FOUND;
}

/* What is used, if it is memory at all. */
static bool resolve(const cgs_op_use_t *use, const cgs_walk_t *walk,
                    cgshim_buffer_t *buffer)
{
    int device;

    *buffer = (cgshim_buffer_t){
        .base            = use->address,
        .bytes           = use->bytes,
        .op              = walk->num - 1,
        .argument        = use->argument,
        .argument_offset = use->offset,
        .memory          = CGSHIM_MEMORY_PAGEABLE,
        .access          = use->access,
    };
    if (!use->is_pageable &&
        ((use->address == 0) ||
         (cgs_buffers_look_up(use->address, walk->chunk->ctx, buffer,
                              &device) != CGS_BUFFER_FOUND))) {
        return false;
    }
    buffer->offset = use->address - buffer->base;
    buffer->kernel = cgs_op_name(walk->op);
    return true;
}

static cgshim_buffer_t *find_known(const cgs_buffers_t *buffers,
                                   uint64_t address)
{
    size_t i;

    for (i = 0; i < buffers->num; ++i) {
        if (address - buffers->buffer[i].base < buffers->buffer[i].bytes) {
            return &buffers->buffer[i];
        }
    }
    return NULL;
}

static void add(cgs_buffers_t *buffers, const cgshim_buffer_t *buffer)
{
    size_t          capacity = buffers->capacity > 0 ? 2 * buffers->capacity :
                                                       16;
    cgshim_buffer_t *more;

    if (buffers->num == buffers->capacity) {
        more = realloc(buffers->buffer, capacity * sizeof(*more));
        if (more == NULL) {
            buffers->failed = true;
            return;
        }
        buffers->buffer   = more;
        buffers->capacity = capacity;
    }
    buffers->buffer[buffers->num++] = *buffer;
}

static void collect(const cgs_op_use_t *use, void *arg)
{
    collector_t     *collector = arg;
    cgshim_buffer_t *known = find_known(collector->buffers, use->address);
    cgshim_buffer_t buffer;

    if (known != NULL) {
        known->access |= use->access;
    } else if (resolve(use, collector->walk, &buffer)) {
        add(collector->buffers, &buffer);
    }
}

void cgs_buffers_collect(const cgs_recording_t *recording,
                         cgs_buffers_t *buffers)
{
    cgs_walk_t          walk = cgs_walk_begin(recording);
    collector_t         collector = {.walk = &walk, .buffers = buffers};
    const cgs_op_kind_t *kind;

    while (cgs_walk_next(&walk)) {
        kind = cgs_op_kinds[walk.op->kind];
        if (kind->uses != NULL) {
            kind->uses(walk.op, collect, &collector);
        }
    }
}

void cgs_buffers_release(cgs_buffers_t *buffers)
{
    free(buffers->buffer);
    *buffers = (cgs_buffers_t){0};
}

static void find(const cgs_op_use_t *use, void *arg)
{
    finder_t *finder = arg;

    if (!finder->found && (use->argument == finder->argument)) {
        finder->found = resolve(use, finder->walk, finder->buffer);
    }
}

/* Go on to the next call of that name. */
static bool next_call(cgs_walk_t *walk, const char *name)
{
    while (cgs_walk_next(walk)) {
        if (!strcmp(cgs_op_name(walk->op), name)) {
            return true;
        }
    }
    return false;
}

bool cgs_buffers_find(const cgs_recording_t *recording, const char *name,
                      size_t which, int argument, cgshim_buffer_t *buffer)
{
    cgs_walk_t          walk   = cgs_walk_begin(recording);
    finder_t            finder = {.walk = &walk, .argument = argument,
                                  .buffer = buffer};
    const cgs_op_kind_t *kind;

    while (next_call(&walk, name)) {
        if (which-- == 0) {
            kind = cgs_op_kinds[walk.op->kind];
            if (kind->uses != NULL) {
                kind->uses(walk.op, find, &finder);
            }
            return finder.found;
        }
    }
    return false;
}

size_t cgs_buffers_count_calls(const cgs_recording_t *recording,
                               const char *name)
{
    cgs_walk_t walk = cgs_walk_begin(recording);
    size_t     num  = 0;

    while (next_call(&walk, name)) {
        ++num;
    }
    return num;
}
