/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chunk: ops in a row that are one graph. Nothing that held-back work must
 * not cross was called between them.
 */
#ifndef CGS_CHUNK_H
#define CGS_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "op.h"
#include "stream.h"

/** Streams that one chunk may have. */
#define CGS_MAX_LANES 8

/** Bytes that are counted for what keeps a chunk. */
#define CGS_CHUNK_OVERHEAD 512

/** The ops and their graph. */
typedef struct {
    cgs_op_t    *ops;
    uint32_t    num_ops, capacity;
    CUstream    streams[CGS_MAX_LANES]; /**< in the order of their first ops:
                             the graph is launched on the first. Normalised,
                             never NULL; alive only once a call of this run
                             was made on it */
    cgs_stream_attrs_t attrs[CGS_MAX_LANES]; /**< of the streams */
    uint32_t    num_streams;
    CUcontext   ctx;
    CUdevice    device; /**< of the context */
    cgs_arena_t arena;  /**< what the ops point to */

    cgs_staging_t *staging; /**< for copies from pageable memory, or NULL */
    CUevent     joins[CGS_MAX_LANES]; /**< of ours, where there are several
                                           streams */
    CUgraph     graph;
    CUgraphExec exec;      /**< NULL: not built */
    size_t      device_bytes; /**< that exec took */
    size_t      host_taken, device_taken; /**< from the budget */
    bool        uploaded;  /**< exec is on the device */
    uint32_t    *dirty;    /**< ops that differ from their nodes */
    uint32_t    num_dirty;
    bool        has_events; /**< some op records one */
    bool        all_records; /**< each record of an event has a node */
    uint32_t    num_frees;  /**< ops that are called after the graph */
    uint32_t    num_launches; /**< ops that are kernels */
    uint32_t    failures;  /**< builds and launches that failed */
} cgs_chunk_t;

/** A chunk without ops and streams. @return NULL without memory. */
cgs_chunk_t *cgs_chunk_create(CUcontext ctx, CUdevice device);

/** Add an admitted call as the last op, on one of the chunk's streams.
 *  @return 0, -ENOMEM, or -EDQUOT beyond the budget. */
int cgs_chunk_append(cgs_chunk_t *chunk, const cgs_call_t *call);

/** The lane of a stream, or num_streams if it has none. */
uint32_t cgs_chunk_find_lane(const cgs_chunk_t *chunk, CUstream stream);

/** Give the chunk one more stream; it has room. */
void cgs_chunk_add_lane(cgs_chunk_t *chunk, CUstream stream,
                        const cgs_stream_attrs_t *attrs);

/** How many ops before op `end` an event was last recorded, or 0 if it was
 *  not. */
uint32_t cgs_chunk_find_event(const cgs_chunk_t *chunk, uint32_t end,
                              CUevent event);

/** An op has taken other values: its node, if any, is to be patched. */
static inline void cgs_chunk_touch(cgs_chunk_t *chunk, uint32_t index)
{
    cgs_op_t *op = &chunk->ops[index];

    if (!op->dirty && (op->node != NULL)) {
        op->dirty                        = true;
        chunk->dirty[chunk->num_dirty++] = index;
    }
}

/** The call that an op was taken from; it points into the op. */
void cgs_chunk_recall(const cgs_chunk_t *chunk, uint32_t index,
                      cgs_call_t *call);

/** Keep the first ops alone. The graph, if any, is destroyed. Calls the
 *  driver. */
void cgs_chunk_truncate(cgs_chunk_t *chunk, uint32_t num_ops);

/** A new chunk with the ops from `begin` to before `end`, without a graph. No
 *  wait among them is for a record before `begin`.
 *  @return NULL without memory. */
cgs_chunk_t *cgs_chunk_copy(const cgs_chunk_t *from, uint32_t begin,
                            uint32_t end);

/** Add the ops of another chunk; both have the same context.
 *  @return 0, -ENOMEM or -EDQUOT. */
int cgs_chunk_extend(cgs_chunk_t *chunk, const cgs_chunk_t *from);

/** Look again at the addresses that the nodes would hold, where memory has
 *  changed since. Calls the driver.
 *  @return false if one of them no longer means such memory. */
bool cgs_chunk_refresh(cgs_chunk_t *chunk);

/** Destroy it; may be NULL. Calls the driver. */
void cgs_chunk_destroy(cgs_chunk_t *chunk);

/** Bytes of host memory held, by what keeps the chunk too. */
size_t cgs_chunk_bytes(const cgs_chunk_t *chunk);

#endif
