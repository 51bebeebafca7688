/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events as ops: recording one is a node that records the program's own event,
 * so that whoever looks at it later sees it; waiting for one that the same
 * chunk records is an edge between two streams of its graph.
 *
 * A wait for any other event is a barrier: what it waits for is outside.
 */
#define _GNU_SOURCE
#include "op.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1 /* else it would end the process */
#include <uthash.h>

#include "thread.h"

/* How long a destruction waits for a graph that is being made: in a callback
 * of a tool, that could be waiting for this thread. */
#define HOLD_MS 1000

static atomic_ullong events_generation;
static cgs_lock_t    events_held;

/* Events that are not as most are. One that was destroyed stays until its
 * handle is made again. */
typedef struct {
    CUevent        event;
    unsigned       flags;
    UT_hash_handle hh;
} special_t;

static struct {
    cgs_lock_t  lock;
    special_t   *all;  /* uthash by event */
    atomic_bool shared; /* some are known to other processes too */
} special;

void cgs_event_created(CUevent event, unsigned flags)
{
    special_t *item;

    flags &= CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    cgs_lock(&special.lock);
    HASH_FIND_PTR(special.all, &event, item);
    if ((item == NULL) && (flags != 0)) {
        item = calloc(1, sizeof(*item));
        if (item != NULL) {
            item->event = event;
            HASH_ADD_PTR(special.all, event, item);
            if (item->hh.tbl == NULL) {
                free(item);
                item = NULL;
            }
        }
    }
    if ((item != NULL) && (flags == 0)) {
        HASH_DEL(special.all, item);
        free(item);
    } else if (item != NULL) {
        item->flags = flags;
    }
    if (flags & CU_EVENT_INTERPROCESS) {
        atomic_store(&special.shared, true);
    }
    cgs_unlock(&special.lock);
}

static unsigned event_flags(CUevent event)
{
    special_t *item;
    unsigned  flags;

    cgs_lock(&special.lock);
    HASH_FIND_PTR(special.all, &event, item);
    flags = item != NULL ? item->flags : 0;
    cgs_unlock(&special.lock);
    return flags;
}

bool cgs_event_has_time(CUevent event)
{
    return !(event_flags(event) & CU_EVENT_DISABLE_TIMING);
}

/* Another process may look at it, and would not be seen. */
static bool is_shared(CUevent event)
{
    return atomic_load_explicit(&special.shared, memory_order_relaxed) &&
           (event_flags(event) & CU_EVENT_INTERPROCESS);
}

void cgs_events_changed(void)
{
    bool locked = cgs_lock_for(&events_held, HOLD_MS);

    atomic_fetch_add_explicit(&events_generation, 1, memory_order_acq_rel);
    if (locked) {
        cgs_unlock(&events_held);
    }
}

void cgs_events_hold(void)
{
    cgs_lock(&events_held);
}

void cgs_events_release(void)
{
    cgs_unlock(&events_held);
}

static uint64_t generation(void)
{
    return atomic_load_explicit(&events_generation, memory_order_acquire);
}

void cgs_call_event(cgs_call_t *call, cgs_op_kind_id_t kind, CUevent event,
                    unsigned flags)
{
    call->kind        = kind;
    call->event.event = event;
    if ((flags != 0) || (event == NULL)) {
        call->refused = true;
        call->reason  = "an event used with flags";
    } else if ((kind == CGS_OP_RECORD) && is_shared(event)) {
        call->refused = true;
        call->reason  = "an event that other processes may wait for";
    }
}

static bool event_admit(cgs_call_t *call)
{
    call->event.generation = generation();
    return true;
}

static int event_take(cgs_op_t *op, const cgs_call_t *call,
                      cgs_arena_t *arena)
{
    op->event.event      = call->event.event;
    op->event.generation = call->event.generation;
    if (arena != NULL) {
        op->event.distance = call->event.distance;
    }
    return 0;
}

static void event_recall(const cgs_op_t *op, cgs_call_t *call)
{
    call->event.event      = op->event.event;
    call->event.generation = op->event.generation;
    call->event.distance   = op->event.distance;
}

static uint64_t event_hash(const cgs_op_t *op, uint64_t hash)
{
    return cgs_op_hash_bytes(&op->event.event, sizeof(op->event.event), hash);
}

static void event_explain(const cgs_op_t *op, const cgs_call_t *call,
                          cgs_divergence_t *divergence)
{
    divergence->what      = "event";
    divergence->size      = sizeof(CUevent);
    divergence->num_bytes = sizeof(CUevent);
    memcpy(divergence->old_bytes, &op->event.event, sizeof(CUevent));
    memcpy(divergence->new_bytes, &call->event.event, sizeof(CUevent));
}

/* A handle that was destroyed meanwhile may be another event: the node is
 * bound again. */
static cgs_match_t record_compare(const cgs_op_t *op, cgs_call_t *call)
{
    event_admit(call);
    if (op->event.is_fixed && (op->event.event != call->event.event)) {
        return CGS_MATCH_OTHER;
    }
    return (op->event.event == call->event.event) &&
           (op->event.generation == call->event.generation) ?
           CGS_MATCH_SAME : CGS_MATCH_CHANGED;
}

static CUresult record_issue(const cgs_op_t *op, CUstream stream)
{
    return CGS_REAL(cuEventRecord)(op->event.event, stream);
}

static void record_describe(const cgs_op_t *op, CUcontext ctx,
                            CUgraphNodeParams *params)
{
    (void)ctx;
    params->type              = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    params->eventRecord.event = op->event.event;
}

static bool record_refresh(cgs_op_t *op, CUdevice device)
{
    (void)device;
    return op->event.generation == generation();
}

/* The edge leads to one record, whatever its event: the wait must be for that
 * event, and no record after it may be of the same one. */
static cgs_match_t wait_compare(const cgs_op_t *op, cgs_call_t *call)
{
    const cgs_op_t *record = op - op->event.distance;
    const cgs_op_t *other;

    event_admit(call);
    if (record->event.event != call->event.event) {
        return CGS_MATCH_OTHER;
    }
    for (other = record + 1; other < op; ++other) {
        if ((other->kind == CGS_OP_RECORD) &&
            (other->event.event == call->event.event)) {
            return CGS_MATCH_OTHER;
        }
    }
    return op->event.event == call->event.event ? CGS_MATCH_SAME :
                                                  CGS_MATCH_CHANGED;
}

static CUresult wait_issue(const cgs_op_t *op, CUstream stream)
{
    return CGS_REAL(cuStreamWaitEvent)(stream, op->event.event, 0);
}

const cgs_op_kind_t cgs_op_record = {
    .name     = "event record",
    .admit    = event_admit,
    .compare  = record_compare,
    .take     = event_take,
    .recall   = event_recall,
    .hash     = event_hash,
    .refresh  = record_refresh,
    .issue    = record_issue,
    .describe = record_describe,
    .explain  = event_explain,
};

const cgs_op_kind_t cgs_op_wait = {
    .name     = "event wait",
    .admit    = event_admit,
    .compare  = wait_compare,
    .take     = event_take,
    .recall   = event_recall,
    .hash     = event_hash,
    .issue    = wait_issue,
    .explain  = event_explain,
};
