/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of memory on the host, compared there: the library brings no kernels
 * of its own.
 */
#include "snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "buffers.h"

/* Bytes that are read at a time. */
#define BLOCK_BYTES ((size_t)1 << 20)
/* What differs is put back in pieces that may hold so many equal bytes. */
#define MAX_GAP 256

/* What the finding of spans keeps track of. */
typedef struct {
    const cgs_chunk_t *chunk;
    cgs_snapshot_t    *snapshot;
    uint32_t          op;
    const char        *refused;
} finder_t;

static cgs_span_t *find_span(const cgs_snapshot_t *snapshot, uint64_t address)
{
    size_t i;

    for (i = 0; i < snapshot->num; ++i) {
        if (address - snapshot->spans[i].base < snapshot->spans[i].bytes) {
            return &snapshot->spans[i];
        }
    }
    return NULL;
}

static void add_span(finder_t *finder, uint64_t base, uint64_t bytes,
                     bool is_host)
{
    cgs_snapshot_t *snapshot = finder->snapshot;
    size_t         capacity  = snapshot->num + snapshot->num / 2 + 8;
    cgs_span_t     *more;

    if (snapshot->num == snapshot->capacity) {
        more = realloc(snapshot->spans, capacity * sizeof(*more));
        if (more == NULL) {
            finder->refused = "out of host memory";
            return;
        }
        snapshot->spans    = more;
        snapshot->capacity = capacity;
    }
    snapshot->spans[snapshot->num++] = (cgs_span_t){
        .base    = base,
        .bytes   = bytes,
        .is_host = is_host,
        .last_op = finder->op,
        .place   = snapshot->bytes,
    };
    snapshot->bytes += bytes;
}

/* Nobody else may write where a copy to the host does; elsewhere on the host
 * the program itself may, at any time. */
static void find_on_host(finder_t *finder, const cgs_op_use_t *use,
                         const cgs_span_t *known)
{
    if (finder->chunk->ops[finder->op].kind != CGS_OP_COPY) {
        finder->refused = "a kernel takes host memory";
    } else if ((known == NULL) || (use->address + use->bytes >
                                   known->base + known->bytes)) {
        add_span(finder, use->address, use->bytes, true);
    }
}

static void find(const cgs_op_use_t *use, void *arg)
{
    finder_t           *finder = arg;
    cgs_span_t         *known  = find_span(finder->snapshot, use->address);
    cgs_buffer_found_t found;
    cgshim_buffer_t    buffer;
    int                device = 0;

    if (known != NULL) {
        known->last_op = finder->op;
    }
    if ((finder->refused != NULL) || use->is_pageable ||
        (use->access == CGSHIM_ACCESS_READ) || (use->address == 0) ||
        ((known != NULL) && !known->is_host)) {
        return;
    }
    found = cgs_buffers_look_up(use->address, finder->chunk->ctx, &buffer,
                                &device);
    if (found == CGS_BUFFER_NONE) {
        return;
    }
    if (found == CGS_BUFFER_UNTOLD) {
        finder->refused = "the driver does not say what memory it uses";
    } else if (buffer.memory == CGSHIM_MEMORY_HOST) {
        find_on_host(finder, use, known);
    } else if (buffer.memory != CGSHIM_MEMORY_DEVICE) {
        finder->refused = "a kernel takes managed memory";
    } else if (device != finder->chunk->device) {
        finder->refused = "a kernel takes memory of another device";
    } else {
        add_span(finder, buffer.base, buffer.bytes, false);
    }
}

/* @return why the op cannot run twice, or NULL. */
static const char *refuse_op(const cgs_op_t *op)
{
    if (op->kind == CGS_OP_HOST) {
        return "a host function would be called twice";
    }
    if ((op->kind == CGS_OP_COPY) &&
        (op->copy.dst_type == CU_MEMORYTYPE_ARRAY)) {
        return "a copy to an array";
    }
    return NULL;
}

static const char *find_spans(const cgs_chunk_t *chunk,
                              cgs_snapshot_t *snapshot)
{
    finder_t            finder = {.chunk = chunk, .snapshot = snapshot};
    const cgs_op_kind_t *kind;

    for (finder.op = 0;
         (finder.op < chunk->num_ops) && (finder.refused == NULL);
         ++finder.op) {
        kind           = cgs_op_kinds[chunk->ops[finder.op].kind];
        finder.refused = refuse_op(&chunk->ops[finder.op]);
        if ((kind->uses != NULL) && (finder.refused == NULL)) {
            kind->uses(&chunk->ops[finder.op], find, &finder);
        }
    }
    return finder.refused;
}

static CUresult read_bytes(const cgs_span_t *span, uint64_t offset, char *to,
                           size_t bytes)
{
    if (span->is_host) {
        memcpy(to, (const char *)(uintptr_t)(span->base + offset), bytes);
        return CUDA_SUCCESS;
    }
    return CGS_REAL(cuMemcpyDtoH_v2)(to, span->base + offset, bytes);
}

static CUresult write_bytes(const cgs_span_t *span, uint64_t offset,
                            const char *from, size_t bytes)
{
    if (span->is_host) {
        memcpy((char *)(uintptr_t)(span->base + offset), from, bytes);
        return CUDA_SUCCESS;
    }
    return CGS_REAL(cuMemcpyHtoD_v2)(span->base + offset, from, bytes);
}

static CUresult read_all(const cgs_snapshot_t *snapshot, char *image)
{
    CUresult result = CUDA_SUCCESS;
    size_t   i;

    for (i = 0; (i < snapshot->num) && (result == CUDA_SUCCESS); ++i) {
        result = read_bytes(&snapshot->spans[i], 0,
                            image + snapshot->spans[i].place,
                            snapshot->spans[i].bytes);
    }
    return result;
}

const char *cgs_snapshot_take(const cgs_chunk_t *chunk, size_t limit,
                              cgs_snapshot_t *snapshot)
{
    const char *refused = find_spans(chunk, snapshot);

    if (refused != NULL) {
        return refused;
    }
    if (snapshot->bytes > (limit > BLOCK_BYTES ? (limit - BLOCK_BYTES) / 2 :
                                                 0)) {
        return "it uses more memory than verify_mb allows to keep";
    }
    snapshot->before = malloc(snapshot->bytes + 1);
    snapshot->after  = malloc(snapshot->bytes + 1);
    snapshot->block  = malloc(BLOCK_BYTES);
    if ((snapshot->before == NULL) || (snapshot->after == NULL) ||
        (snapshot->block == NULL)) {
        return "out of host memory";
    }
    return read_all(snapshot, snapshot->before) == CUDA_SUCCESS ? NULL :
           "the driver does not let its memory be read";
}

CUresult cgs_snapshot_read(cgs_snapshot_t *snapshot)
{
    return read_all(snapshot, snapshot->after);
}

/* The first byte that differs, or `bytes`. */
static size_t first_difference(const char *a, const char *b, size_t bytes)
{
    size_t i = 0;

    while ((i < bytes) && (a[i] == b[i])) {
        ++i;
    }
    return i;
}

/* Read a block again, and keep it in the place of what was read before. */
static CUresult compare_block(cgs_snapshot_t *snapshot, const cgs_span_t *span,
                              uint64_t offset, cgs_snapshot_byte_t *byte)
{
    char     *old   = snapshot->after + span->place + offset;
    size_t   bytes  = span->bytes - offset < BLOCK_BYTES ?
                      span->bytes - offset : BLOCK_BYTES;
    CUresult result = read_bytes(span, offset, snapshot->block, bytes);

    if ((result != CUDA_SUCCESS) ||
        (memcmp(old, snapshot->block, bytes) == 0)) {
        return result;
    }
    if (byte->span == NULL) {
        byte->span   = span;
        byte->offset = offset + first_difference(old, snapshot->block, bytes);
    }
    memcpy(old, snapshot->block, bytes);
    return CUDA_SUCCESS;
}

CUresult cgs_snapshot_compare(cgs_snapshot_t *snapshot,
                              cgs_snapshot_byte_t *byte)
{
    CUresult         result = CUDA_SUCCESS;
    const cgs_span_t *span;
    uint64_t         offset;

    byte->span = NULL;
    for (span = snapshot->spans; span < snapshot->spans + snapshot->num;
         ++span) {
        for (offset = 0;
             (offset < span->bytes) && (result == CUDA_SUCCESS);
             offset += BLOCK_BYTES) {
            result = compare_block(snapshot, span, offset, byte);
        }
    }
    return result;
}

/* Write what the span is to be where that is not what it was. What is the same
 * is not touched: others may have a use for it. */
static CUresult write_span(const cgs_span_t *span, const char *is,
                           const char *was)
{
    CUresult result = CUDA_SUCCESS;
    uint64_t begin, end, i;

    for (begin = 0; (begin < span->bytes) && (result == CUDA_SUCCESS);
         begin = end) {
        begin += first_difference(is + begin, was + begin,
                                  span->bytes - begin);
        end    = begin;
        for (i = begin; (i < span->bytes) && (i - end < MAX_GAP); ++i) {
            end = is[i] != was[i] ? i + 1 : end;
        }
        if (end > begin) {
            result = write_bytes(span, begin, is + begin, end - begin);
        }
    }
    return result;
}

static CUresult write_all(const cgs_snapshot_t *snapshot, const char *is,
                          const char *was)
{
    CUresult         result = CUDA_SUCCESS;
    const cgs_span_t *span;

    for (span = snapshot->spans; (span < snapshot->spans + snapshot->num) &&
                                 (result == CUDA_SUCCESS); ++span) {
        result = write_span(span, is + span->place, was + span->place);
    }
    return result;
}

CUresult cgs_snapshot_restore(const cgs_snapshot_t *snapshot)
{
    CUresult result = write_all(snapshot, snapshot->before, snapshot->after);

    if (result != CUDA_SUCCESS) {
        write_all(snapshot, snapshot->after, snapshot->before);
    }
    return result;
}

bool cgs_snapshot_is_written(const cgs_snapshot_t *snapshot,
                             const cgs_span_t *span)
{
    return memcmp(snapshot->before + span->place,
                  snapshot->after + span->place, span->bytes) != 0;
}

void cgs_snapshot_release(cgs_snapshot_t *snapshot)
{
    free(snapshot->spans);
    free(snapshot->before);
    free(snapshot->after);
    free(snapshot->block);
    *snapshot = (cgs_snapshot_t){0};
}
