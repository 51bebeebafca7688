/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run that is not as recorded leaves the old way at some place: what follows
 * is appended to a new variant, which begins with a copy of the calls of the
 * chunk that were still the same. Meanwhile calls are held against the place
 * where the old way goes on after that chunk: when some in a row are its first
 * calls, the new variant leads there, and the rest of the run is replayed.
 */
#include "recorder.h"

#include <errno.h>

#include "branch.h"
#include "held.h"
#include "stream.h"

/* Calls in a row that say that the old way was met again. */
#define REJOIN_CALLS 4

/* The place where the next variant begins. */
static cgs_place_t *take_place(cgs_region_t *region)
{
    cgs_cursor_t *cursor = &region->cursor;
    cgs_place_t  *place  = cursor->place;

    cursor->place = NULL;
    if (place != NULL) {
        return place;
    }
    place = cgs_place_create();
    if (place == NULL) {
        return NULL;
    }
    if (cursor->variant != NULL) {
        cgs_variant_lead(&region->recording, cursor->variant, place);
        cgs_place_release(&region->recording, place);
    } else {
        region->recording.first = place;
    }
    return place;
}

/* Begin a variant with a chunk. What was called before it, if anything, is not
 * known: the variant before no longer goes on without a barrier. */
static bool add_variant(cgs_region_t *region, cgs_chunk_t *chunk)
{
    cgs_cursor_t  *cursor = &region->cursor;
    cgs_variant_t *before = cursor->variant;
    cgs_place_t   *place  = chunk != NULL ? take_place(region) : NULL;
    cgs_variant_t *variant;

    if (place == NULL) {
        cgs_chunk_destroy(chunk);
        return false;
    }
    variant = cgs_recording_add(&region->recording, place, chunk);
    if (variant == NULL) {
        cursor->place = place;
        return false;
    }
    if (before != NULL) {
        before->is_open = false;
    }
    variant->is_raw            = true;
    variant->last_run          = region->stats.runs;
    region->recording.has_work = true;
    cursor->variant            = variant;
    cursor->last               = before != NULL ? before : cursor->last;
    return true;
}

/* No more variants than the rule allows, the new one included. */
static void keep_few(cgs_region_t *region, cgs_place_t *place,
                     const cgs_variant_t *added)
{
    cgs_variant_t *oldest;

    while (place->num + (added == NULL) > region->rule->variants) {
        oldest = cgs_place_oldest(place, added);
        cgs_recording_remove(&region->recording, oldest);
    }
}

void cgs_recorder_end(cgs_region_t *region)
{
    cgs_rejoin_t *rejoin = &region->cursor.rejoin;

    cgs_place_release(&region->recording, rejoin->place);
    *rejoin = (cgs_rejoin_t){0};
}

void cgs_recorder_begin(cgs_region_t *region, bool replace)
{
    cgs_cursor_t  *cursor = &region->cursor;
    cgs_variant_t *old    = cursor->variant;
    cgs_place_t   *place  = cursor->place;
    cgs_chunk_t   *prefix = NULL;

    cursor->mode         = CGS_RUN_RECORD;
    cursor->through      = false;
    cursor->has_recorded = true;
    cursor->left_ns      = 0;
    cursor->variant      = cursor->last;
    cursor->last         = NULL;
    if (old == NULL) {
        cursor->op = 0;
        return;
    }

    cursor->rejoin.place = cgs_place_hold(old->next);
    cursor->rejoin.skip  = cgs_variant_chunk(old)->num_ops - cursor->op;
    if (cursor->op > 0) {
        prefix = cgs_chunk_copy(cgs_variant_chunk(old), 0, cursor->op);
        if (prefix != NULL) {
            prefix->all_records |= region->events_vary;
        }
        if (!add_variant(region, prefix)) {
            cursor->op = 0; /* the calls so far are missing from it */
            cgs_recorder_end(region);
            return;
        }
    }
    if (replace) {
        cgs_recording_remove(&region->recording, old);
    }
    keep_few(region, place, cursor->op > 0 ? cursor->variant : NULL);
}

void cgs_recorder_cut(cgs_region_t *region)
{
    region->cursor.op           = 0;
    region->cursor.rejoin.match = 0;
}

/* Whether a chunk can take a call on one more stream. The legacy stream has
 * edges to all others that nobody says: it stays alone. */
static bool has_room_for(const cgs_region_t *region, const cgs_chunk_t *chunk,
                         CUstream stream)
{
    return (region->rule->streams == CGS_STREAMS_JOIN) &&
           (stream != CGS_STREAM_LEGACY) &&
           (chunk->streams[0] != CGS_STREAM_LEGACY) &&
           (chunk->num_streams < CGS_MAX_LANES);
}

bool cgs_recorder_is_wait_inside(const cgs_region_t *region,
                                 const cgs_chunk_t *chunk, uint32_t end,
                                 cgs_call_t *call, CUcontext ctx)
{
    call->event.distance = cgs_chunk_find_event(chunk, end,
                                                call->event.event);
    return (call->event.distance > 0) && (chunk->ctx == ctx) &&
           ((cgs_chunk_find_lane(chunk, call->stream) < chunk->num_streams) ||
            has_room_for(region, chunk, call->stream));
}

bool cgs_recorder_has_record(const cgs_region_t *region, cgs_call_t *call,
                             CUcontext ctx)
{
    return (region->cursor.op > 0) &&
           cgs_recorder_is_wait_inside(region, cgs_cursor_chunk(region),
                                       region->cursor.op, call, ctx);
}

static void add_lane(cgs_chunk_t *chunk, CUstream stream)
{
    cgs_stream_attrs_t attrs;

    cgs_stream_ask(stream, &attrs);
    cgs_chunk_add_lane(chunk, stream, &attrs);
}

/* Have the present chunk take the call: it is of the same context, and has the
 * call's stream or room for it. Else a new one begins. */
static bool continue_chunk(cgs_region_t *region, const cgs_call_t *call,
                           CUcontext ctx)
{
    cgs_chunk_t *chunk;

    if (region->cursor.op > 0) {
        chunk = cgs_cursor_chunk(region);
        if (chunk->ctx == ctx) {
            if (cgs_chunk_find_lane(chunk, call->stream) <
                chunk->num_streams) {
                return true;
            }
            if (has_room_for(region, chunk, call->stream)) {
                add_lane(chunk, call->stream);
                return true;
            }
        }
    }
    cgs_recorder_cut(region);
    chunk = cgs_chunk_create(ctx, call->device);
    if (chunk == NULL) {
        return false;
    }
    chunk->all_records = region->events_vary;
    add_lane(chunk, call->stream);
    return add_variant(region, chunk);
}

/* The calls that were found to be the old way's leave the new variant. What is
 * left of it leads on to it; false where nothing is left that could. */
static bool give_back(cgs_region_t *region, uint32_t num)
{
    cgs_cursor_t  *cursor  = &region->cursor;
    cgs_variant_t *variant = cursor->variant;

    if (num > cursor->op) {
        return false;
    }
    if ((num < cursor->op) || (num == 0)) {
        if (num > 0) {
            cgs_chunk_truncate(cgs_cursor_chunk(region), cursor->op - num);
        }
        cgs_variant_lead(&region->recording, variant, cursor->rejoin.place);
        return true;
    }
    if ((cursor->last == NULL) || (variant->place->num > 1)) {
        return false;
    }
    /* With the place that only it led to. */
    cgs_variant_lead(&region->recording, cursor->last, cursor->rejoin.place);
    cursor->variant = cursor->last;
    return true;
}

/* The last calls were the first ones of the place: go on replaying from
 * there. */
static bool rejoin(cgs_region_t *region)
{
    cgs_cursor_t  *cursor  = &region->cursor;
    cgs_place_t   *place   = cursor->rejoin.place;
    cgs_variant_t *variant = place->current;
    uint32_t      match    = cursor->rejoin.match;

    if (!give_back(region, match - 1)) {
        cursor->rejoin.match = 0;
        return false;
    }
    cursor->mode    = CGS_RUN_REPLAY;
    cursor->last    = cursor->variant;
    cursor->place   = place;
    cursor->variant = variant;
    cursor->op      = match;
    cursor->through = true;
    cgs_recorder_end(region);
    if (match == cgs_variant_chunk(variant)->num_ops) {
        cgs_branch_leave(region);
    }
    return true;
}

/* Look whether the call leads back into the old way. Comparing fills in what
 * may not outlast that way: so with a copy. */
static bool meets_old_way(cgs_region_t *region, const cgs_call_t *called,
                          CUcontext ctx)
{
    cgs_rejoin_t      *way = &region->cursor.rejoin;
    cgs_call_t        call = *called;
    cgs_place_t       *next;
    const cgs_chunk_t *chunk;
    uint32_t          wanted;

    if (way->place == NULL) {
        return false;
    }
    if (way->skip > 0) {
        --way->skip;
        return false;
    }
    if (way->place->current == NULL) {
        cgs_recorder_end(region);
        return false;
    }
    chunk  = cgs_variant_chunk(way->place->current);
    wanted = chunk->num_ops < REJOIN_CALLS ? chunk->num_ops : REJOIN_CALLS;
    if (cgs_branch_accepts(region, cgs_branch_compare(chunk, way->match,
                                                      &call, ctx))) {
        ++way->match;
    } else {
        way->match = 0;
    }
    if (way->match == wanted) {
        return rejoin(region);
    }
    if ((++way->waited > chunk->num_ops) && (way->match == 0)) {
        next = cgs_place_hold(way->place->current->next);
        cgs_recorder_end(region);
        way->place = next;
    }
    return false;
}

int cgs_recorder_add(cgs_region_t *region, cgs_call_t *call, CUcontext ctx)
{
    cgs_cursor_t *cursor = &region->cursor;
    cgs_op_t     *op;
    int          status;

    if (meets_old_way(region, call, ctx)) {
        return 0;
    }
    if (!continue_chunk(region, call, ctx)) {
        return -ENOMEM;
    }
    status = cgs_chunk_append(cgs_cursor_chunk(region), call);
    if (status != 0) {
        return status;
    }
    op         = &cgs_cursor_chunk(region)->ops[cursor->op++];
    op->gap_ns = cursor->left_ns == 0 ? 0 :
                 cursor->called_ns - cursor->left_ns < UINT32_MAX ?
                 (uint32_t)(cursor->called_ns - cursor->left_ns) : UINT32_MAX;
    cgs_region_own_stream(region, call->stream);
    cursor->has_recorded = true;
    return 0;
}
