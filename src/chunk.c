/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growing, cutting and copying of chunks.
 */
#include "chunk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "budget.h"
#include "graph.h"

cgs_chunk_t *cgs_chunk_create(CUcontext ctx, CUdevice device)
{
    cgs_chunk_t *chunk = calloc(1, sizeof(*chunk));

    if (chunk != NULL) {
        chunk->ctx    = ctx;
        chunk->device = device;
    }
    return chunk;
}

void cgs_chunk_destroy(cgs_chunk_t *chunk)
{
    if (chunk == NULL) {
        return;
    }
    cgs_graph_destroy(chunk);
    cgs_arena_release(&chunk->arena);
    cgs_budget_give(chunk->host_taken);
    free(chunk->ops);
    free(chunk);
}

uint32_t cgs_chunk_find_lane(const cgs_chunk_t *chunk, CUstream stream)
{
    uint32_t lane;

    for (lane = 0; (lane < chunk->num_streams) &&
         (chunk->streams[lane] != stream); ++lane) {
    }
    return lane;
}

void cgs_chunk_add_lane(cgs_chunk_t *chunk, CUstream stream,
                        const cgs_stream_attrs_t *attrs)
{
    chunk->streams[chunk->num_streams] = stream;
    chunk->attrs[chunk->num_streams++] = *attrs;
}

uint32_t cgs_chunk_find_event(const cgs_chunk_t *chunk, uint32_t end,
                              CUevent event)
{
    const cgs_op_t *op;
    uint32_t       distance;

    if (!chunk->has_events) {
        return 0;
    }
    for (distance = 1; distance <= end; ++distance) {
        op = &chunk->ops[end - distance];
        if ((op->kind == CGS_OP_RECORD) && (op->event.event == event)) {
            return distance;
        }
    }
    return 0;
}

static int reserve(cgs_chunk_t *chunk, uint32_t capacity)
{
    cgs_op_t *ops = realloc(chunk->ops, capacity * sizeof(*ops));

    if (ops == NULL) {
        return -ENOMEM;
    }
    chunk->ops      = ops;
    chunk->capacity = capacity;
    return 0;
}

/* What the chunk has grown by. */
static int pay(cgs_chunk_t *chunk)
{
    size_t bytes = cgs_chunk_bytes(chunk);

    if (bytes > chunk->host_taken) {
        if (!cgs_budget_take(bytes - chunk->host_taken)) {
            return -EDQUOT;
        }
        chunk->host_taken = bytes;
    }
    return 0;
}

int cgs_chunk_append(cgs_chunk_t *chunk, const cgs_call_t *call)
{
    cgs_op_t *op;

    if ((chunk->num_ops == chunk->capacity) &&
        (reserve(chunk, chunk->capacity > 0 ? 2 * chunk->capacity : 16) !=
         0)) {
        return -ENOMEM;
    }
    op = &chunk->ops[chunk->num_ops];
    memset(op, 0, sizeof(*op));
    op->kind = call->kind;
    op->lane = cgs_chunk_find_lane(chunk, call->stream);
    if (cgs_op_kinds[call->kind]->take(op, call, &chunk->arena) != 0) {
        return -ENOMEM;
    }
    if (pay(chunk) != 0) {
        return -EDQUOT;
    }
    chunk->has_events   |= op->kind == CGS_OP_RECORD;
    chunk->num_frees    += op->kind == CGS_OP_FREE;
    chunk->num_launches += op->kind == CGS_OP_KERNEL;
    ++chunk->num_ops;
    return 0;
}

void cgs_chunk_recall(const cgs_chunk_t *chunk, uint32_t index,
                      cgs_call_t *call)
{
    const cgs_op_t *op = &chunk->ops[index];

    *call = (cgs_call_t){
        .kind     = op->kind,
        .stream   = chunk->streams[op->lane],
        .device   = chunk->device,
        .admitted = true,
    };
    cgs_op_kinds[op->kind]->recall(op, call);
}

/* Streams come in the order of their first ops, so those that are left have
 * the first lanes. The others may be dead by the next launch. */
static void drop_lanes(cgs_chunk_t *chunk)
{
    uint32_t i, num = 0;

    chunk->num_frees    = 0;
    chunk->num_launches = 0;
    for (i = 0; i < chunk->num_ops; ++i) {
        chunk->num_frees    += chunk->ops[i].kind == CGS_OP_FREE;
        chunk->num_launches += chunk->ops[i].kind == CGS_OP_KERNEL;
        num = chunk->ops[i].lane >= num ? chunk->ops[i].lane + 1u : num;
    }
    chunk->num_streams = num;
}

void cgs_chunk_truncate(cgs_chunk_t *chunk, uint32_t num_ops)
{
    cgs_graph_destroy(chunk);
    chunk->num_ops = num_ops;
    drop_lanes(chunk);
}

static int copy_op(const cgs_chunk_t *from, uint32_t index, cgs_chunk_t *to)
{
    uint32_t   lane = from->ops[index].lane;
    cgs_call_t call;
    int        status;

    cgs_chunk_recall(from, index, &call);
    if (cgs_chunk_find_lane(to, call.stream) == to->num_streams) {
        cgs_chunk_add_lane(to, call.stream, &from->attrs[lane]);
    }
    status = cgs_chunk_append(to, &call);
    if (status == 0) {
        to->ops[to->num_ops - 1].gap_ns = from->ops[index].gap_ns;
    }
    return status;
}

cgs_chunk_t *cgs_chunk_copy(const cgs_chunk_t *from, uint32_t begin,
                            uint32_t end)
{
    cgs_chunk_t *to = cgs_chunk_create(from->ctx, from->device);
    uint32_t    i;

    if ((to == NULL) || (reserve(to, end > begin ? end - begin : 1) != 0)) {
        cgs_chunk_destroy(to);
        return NULL;
    }
    to->all_records = from->all_records;
    for (i = begin; i < end; ++i) {
        if (copy_op(from, i, to) != 0) {
            cgs_chunk_destroy(to);
            return NULL;
        }
    }
    return to;
}

int cgs_chunk_extend(cgs_chunk_t *chunk, const cgs_chunk_t *from)
{
    int      status = 0;
    uint32_t i;

    chunk->all_records |= from->all_records;
    for (i = 0; (i < from->num_ops) && (status == 0); ++i) {
        status = copy_op(from, i, chunk);
    }
    return status;
}

bool cgs_chunk_refresh(cgs_chunk_t *chunk)
{
    const cgs_op_kind_t *kind;
    uint32_t            i;

    for (i = 0; i < chunk->num_ops; ++i) {
        kind = cgs_op_kinds[chunk->ops[i].kind];
        if ((kind->refresh != NULL) &&
            !kind->refresh(&chunk->ops[i], chunk->device)) {
            return false;
        }
    }
    return true;
}

size_t cgs_chunk_bytes(const cgs_chunk_t *chunk)
{
    return CGS_CHUNK_OVERHEAD + sizeof(*chunk) + chunk->arena.bytes +
           chunk->capacity * sizeof(cgs_op_t);
}
