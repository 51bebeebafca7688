/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growing and cutting of recordings.
 */
#include "recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "graph.h"

static void release_segment(cgs_segment_t *segment)
{
    cgs_graph_destroy(segment);
    cgs_arena_release(&segment->arena);
    free(segment->ops);
    memset(segment, 0, sizeof(*segment));
}

int cgs_recording_open_segment(cgs_recording_t *recording, CUcontext ctx,
                               CUdevice device)
{
    uint32_t      capacity;
    cgs_segment_t *segments, *segment;

    if (recording->num_segments == recording->capacity) {
        capacity = recording->capacity > 0 ? 2 * recording->capacity : 4;
        segments = realloc(recording->segments, capacity * sizeof(*segments));
        if (segments == NULL) {
            return -ENOMEM;
        }
        recording->segments = segments;
        recording->capacity = capacity;
    }
    segment = &recording->segments[recording->num_segments++];
    memset(segment, 0, sizeof(*segment));
    segment->ctx    = ctx;
    segment->device = device;
    return 0;
}

uint32_t cgs_recording_find_lane(const cgs_segment_t *segment, CUstream stream)
{
    uint32_t lane;

    for (lane = 0; (lane < segment->num_streams) &&
         (segment->streams[lane] != stream); ++lane) {
    }
    return lane;
}

void cgs_recording_add_lane(cgs_recording_t *recording, CUstream stream,
                            const cgs_stream_attrs_t *attrs)
{
    cgs_segment_t *segment = &recording->segments[recording->num_segments - 1];

    segment->streams[segment->num_streams] = stream;
    segment->attrs[segment->num_streams++] = *attrs;
}

uint32_t cgs_recording_find_event(const cgs_segment_t *segment, uint32_t end,
                                  CUevent event)
{
    const cgs_op_t *op;
    uint32_t       distance;

    if (!segment->has_events) {
        return 0;
    }
    for (distance = 1; distance <= end; ++distance) {
        op = &segment->ops[end - distance];
        if ((op->kind == CGS_OP_RECORD) && (op->event.event == event)) {
            return distance;
        }
    }
    return 0;
}

int cgs_recording_append(cgs_recording_t *recording, const cgs_call_t *call)
{
    cgs_segment_t *segment = &recording->segments[recording->num_segments - 1];
    uint32_t      capacity;
    cgs_op_t      *ops, *op;

    if (segment->num_ops == segment->capacity) {
        capacity = segment->capacity > 0 ? 2 * segment->capacity : 16;
        ops      = realloc(segment->ops, capacity * sizeof(*ops));
        if (ops == NULL) {
            return -ENOMEM;
        }
        segment->ops      = ops;
        segment->capacity = capacity;
    }
    op = &segment->ops[segment->num_ops];
    memset(op, 0, sizeof(*op));
    op->kind = call->kind;
    op->lane = cgs_recording_find_lane(segment, call->stream);
    if (cgs_op_kinds[call->kind]->take(op, call, &segment->arena) != 0) {
        return -ENOMEM;
    }
    segment->has_events |= op->kind == CGS_OP_RECORD;
    segment->num_frees  += op->kind == CGS_OP_FREE;
    ++segment->num_ops;
    return 0;
}

/* Streams come in the order of their first ops, so those that are left have
 * the first lanes. The others may be dead by the next launch. */
static void drop_lanes(cgs_segment_t *segment)
{
    uint32_t i, num = 0;

    segment->num_frees = 0;
    for (i = 0; i < segment->num_ops; ++i) {
        segment->num_frees += segment->ops[i].kind == CGS_OP_FREE;
        num = segment->ops[i].lane >= num ? segment->ops[i].lane + 1u : num;
    }
    segment->num_streams = num;
}

void cgs_recording_truncate(cgs_recording_t *recording, uint32_t segment,
                            uint32_t num_ops)
{
    uint32_t keep = num_ops > 0 ? segment + 1 : segment;
    uint32_t i;

    if (num_ops > 0) {
        cgs_graph_destroy(&recording->segments[segment]);
        recording->segments[segment].num_ops = num_ops;
        drop_lanes(&recording->segments[segment]);
    }
    for (i = keep; i < recording->num_segments; ++i) {
        release_segment(&recording->segments[i]);
    }
    if (keep < recording->num_segments) {
        recording->num_segments = keep;
    }
}

int cgs_recording_copy(const cgs_recording_t *from, cgs_recording_t *to)
{
    const cgs_segment_t *segment;
    const cgs_op_t      *op;
    cgs_call_t          call;
    uint32_t            s, i;
    int                 status;

    for (s = 0; s < from->num_segments; ++s) {
        segment = &from->segments[s];
        status  = cgs_recording_open_segment(to, segment->ctx,
                                             segment->device);
        for (i = 0; (i < segment->num_streams) && (status == 0); ++i) {
            cgs_recording_add_lane(to, segment->streams[i],
                                   &segment->attrs[i]);
        }
        if (status == 0) {
            to->segments[s].all_records = segment->all_records;
        }
        for (i = 0; (i < segment->num_ops) && (status == 0); ++i) {
            op          = &segment->ops[i];
            call.kind   = op->kind;
            call.stream = segment->streams[op->lane];
            cgs_op_kinds[op->kind]->recall(op, &call);
            status = cgs_recording_append(to, &call);
        }
        if (status != 0) {
            return status;
        }
    }
    return 0;
}

bool cgs_recording_refresh(cgs_segment_t *segment)
{
    const cgs_op_kind_t *kind;
    uint32_t            i;

    for (i = 0; i < segment->num_ops; ++i) {
        kind = cgs_op_kinds[segment->ops[i].kind];
        if ((kind->refresh != NULL) &&
            !kind->refresh(&segment->ops[i], segment->device)) {
            return false;
        }
    }
    return true;
}

void cgs_recording_release(cgs_recording_t *recording)
{
    cgs_recording_truncate(recording, 0, 0);
    free(recording->segments);
    memset(recording, 0, sizeof(*recording));
}

size_t cgs_recording_bytes(const cgs_recording_t *recording)
{
    size_t   bytes = recording->capacity * sizeof(cgs_segment_t);
    uint32_t i;

    for (i = 0; i < recording->num_segments; ++i) {
        bytes += recording->segments[i].arena.bytes +
                 recording->segments[i].capacity * sizeof(cgs_op_t);
    }
    return bytes;
}
