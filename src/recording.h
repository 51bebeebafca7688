/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One recorded way through a region: segments of ops, cut where the program
 * made a call that held-back work must not cross.
 */
#ifndef CGS_RECORDING_H
#define CGS_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arena.h"
#include "op.h"
#include "stream.h"

/** Streams that one segment may have. */
#define CGS_MAX_LANES 8

/** The ops between two barriers, and their graph. */
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
    bool        uploaded;  /**< exec is on the device */
    uint32_t    *dirty;    /**< ops that differ from their nodes */
    uint32_t    num_dirty;
    bool        has_events; /**< some op records one */
    bool        all_records; /**< each record of an event has a node */
    uint32_t    num_frees;  /**< ops that are called after the graph */
    uint32_t    failures;  /**< builds and launches that failed */
} cgs_segment_t;

/** Owned by its region, under the region's lock. */
typedef struct {
    cgs_segment_t *segments;
    uint32_t      num_segments, capacity;
} cgs_recording_t;

/** Add an admitted call as the last op of the last segment, on one of its
 *  streams. @return 0 or -ENOMEM. */
int cgs_recording_append(cgs_recording_t *recording, const cgs_call_t *call);

/** Begin a segment without streams; ops are appended to it.
 *  @return 0 or -ENOMEM. */
int cgs_recording_open_segment(cgs_recording_t *recording, CUcontext ctx,
                               CUdevice device);

/** The lane of a stream in a segment, or num_streams if it has none. */
uint32_t cgs_recording_find_lane(const cgs_segment_t *segment,
                                 CUstream stream);

/** Give the last segment one more stream; it has room. */
void cgs_recording_add_lane(cgs_recording_t *recording, CUstream stream,
                            const cgs_stream_attrs_t *attrs);

/** How many ops before op `end` of a segment an event was last recorded in it,
 *  or 0 if it was not. */
uint32_t cgs_recording_find_event(const cgs_segment_t *segment, uint32_t end,
                                  CUevent event);

/** Keep the first `num_ops` ops of a segment and nothing after them. The
 *  segment's graph, if any, is destroyed. Calls the driver. */
void cgs_recording_truncate(cgs_recording_t *recording, uint32_t segment,
                            uint32_t num_ops);

/** Copy the ops of a recording, without its graphs, into an empty one.
 *  @return 0 or -ENOMEM, with part of them copied. */
int cgs_recording_copy(const cgs_recording_t *from, cgs_recording_t *to);

/** Look again at the addresses that a segment's nodes would hold, where memory
 *  has changed since. Calls the driver.
 *  @return false if one of them no longer means such memory. */
bool cgs_recording_refresh(cgs_segment_t *segment);

/** Destroy all. Calls the driver. */
void cgs_recording_release(cgs_recording_t *recording);

/** Bytes of host memory held. */
size_t cgs_recording_bytes(const cgs_recording_t *recording);

#endif
