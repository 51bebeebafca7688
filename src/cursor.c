/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recording and replaying, call by call.
 *
 * Replay: a call that is as the next op is swallowed. When the last op of a
 * segment was swallowed its graph is launched at once. Until then the prefix
 * is held back; whatever makes it impossible to go on issues that prefix in
 * order from the saved arguments, which are always those of this run. Then
 * either the rest of the segment goes `through` (each call passes, still
 * compared), or the recording is cut here and recording goes on in its place.
 */
#include "cursor.h"

#include "builder.h"
#include "flow.h"
#include "graph.h"
#include "life.h"
#include "log.h"
#include "reason.h"
#include "staging.h"
#include "timer.h"

/* Recordings without a full replay after which recording has to wait. */
#define MAX_WASTED 3
/* The longest wait is 2 to the power of this, in runs. */
#define MAX_BACKOFF_SHIFT 10
/* Ops of one recording; a region with more is no region. */
#define MAX_OPS (1u << 22)

static const char *const outside_wait = "a wait for an event of outside";

static cgs_recording_t *recording(cgs_region_t *region)
{
    return cgs_phases_current(&region->phases);
}

static cgs_segment_t *current_segment(cgs_region_t *region)
{
    return &recording(region)->segments[region->cursor.segment];
}

static cgs_segment_t *last_segment(cgs_region_t *region)
{
    return &recording(region)->segments[recording(region)->num_segments - 1];
}

/* At the first op of a segment: will it be launched as a graph? */
static void enter_segment(cgs_region_t *region)
{
    cgs_cursor_t *cursor = &region->cursor;

    cursor->op      = 0;
    cursor->through = (cursor->segment < recording(region)->num_segments) &&
                      (current_segment(region)->exec == NULL);
}

static CUresult issue_ops(cgs_segment_t *segment, uint32_t num,
                          CUresult *last)
{
    CUresult       first_error = CUDA_SUCCESS;
    CUresult       result      = CUDA_SUCCESS;
    const cgs_op_t *op;
    uint32_t       i;

    for (i = 0; i < num; ++i) {
        op     = &segment->ops[i];
        result = cgs_op_kinds[op->kind]->issue(
            op, segment->streams[op->lane]);
        if ((i + 1 < num) && (first_error == CUDA_SUCCESS)) {
            first_error = result;
        }
    }
    *last = result;
    return first_error;
}

/* Streams that the first ops of a segment are on; the others need not be alive
 * in this run. */
static uint32_t count_streams(const cgs_segment_t *segment, uint32_t num_ops)
{
    uint32_t i, num = 0;

    for (i = 0; i < num_ops; ++i) {
        num = segment->ops[i].lane >= num ? segment->ops[i].lane + 1u : num;
    }
    return num;
}

static void hold_nothing(cgs_region_t *region)
{
    atomic_store_explicit(&region->held_events, false, memory_order_relaxed);
    atomic_store_explicit(&region->held, 0, memory_order_release);
}

/* Issue the prefix that is held back, in order. The rest of the segment goes
 * through. */
static void issue_held(cgs_region_t *region)
{
    uint32_t held = atomic_load_explicit(&region->held, memory_order_relaxed);
    CUresult error, last;
    bool     entered;

    if (held == 0) {
        return;
    }
    /* The program may have made another context current since: that is no
     * barrier, but default streams are another context's then. */
    entered = cgs_graph_enter_context(current_segment(region)->ctx);
    error   = issue_ops(current_segment(region), held, &last);
    cgs_staging_issued(current_segment(region)->staging,
                       current_segment(region)->streams,
                       count_streams(current_segment(region), held));
    if (entered) {
        cgs_graph_leave_context();
    }
    if (error == CUDA_SUCCESS) {
        error = last;
    }
    if ((error != CUDA_SUCCESS) && (region->pending == CUDA_SUCCESS)) {
        region->pending = error;
    }
    region->cursor.through = true;
    hold_nothing(region);
}

/* All of the segment is verified: launch it. Returns what the last call is
 * to be answered. */
static CUresult launch_segment(cgs_region_t *region)
{
    cgs_segment_t      *segment = current_segment(region);
    cgs_graph_status_t status;
    CUresult           late = CUDA_SUCCESS;
    CUresult           error, last;

    status = cgs_graph_launch(segment, &region->stats.patched, &late);
    hold_nothing(region);
    if (status.result == CUDA_SUCCESS) {
        region->stats.swallowed += segment->num_ops;
        ++region->stats.launches;
        region->cursor.launched  = true;
        return late;
    }

    cgs_region_fallback(region, cgs_reason_driver(status.function,
                                                  status.result));
    region->cursor.diverged = true;
    error = issue_ops(segment, segment->num_ops, &last);
    cgs_staging_issued(segment->staging, segment->streams,
                       segment->num_streams);
    cgs_graph_destroy(segment);
    ++segment->failures;
    if ((error != CUDA_SUCCESS) && (region->pending == CUDA_SUCCESS)) {
        region->pending = error;
    }
    return last;
}

/* The first call that was not as the op under the cursor; `call` is NULL where
 * the run ended instead. */
static void note_divergence(cgs_region_t *region, const cgs_call_t *call)
{
    cgs_divergence_t *divergence = &region->stats.first_divergence;
    const cgs_op_t   *op         = NULL;

    if (divergence->valid) {
        return;
    }
    if (region->cursor.segment < recording(region)->num_segments) {
        op = &current_segment(region)->ops[region->cursor.op];
    }
    divergence->valid    = true;
    divergence->arg      = -1;
    divergence->run      = region->stats.runs;
    divergence->op_index = region->cursor.calls - (call != NULL);
    divergence->kernel   = op != NULL ? cgs_op_name(op) :
                           cgs_op_call_name(call);
    if (call == NULL) {
        divergence->what = "missing call";
    } else if (op == NULL) {
        divergence->what = "extra call";
    } else if (op->kind != call->kind) {
        divergence->what     = "call";
        divergence->old_text = divergence->kernel;
        divergence->new_text = cgs_op_call_name(call);
    } else {
        cgs_op_kinds[op->kind]->explain(op, call, divergence);
        divergence->what = divergence->what != NULL ? divergence->what :
                           "stream or context";
    }
}

/* The report names the first such call; the log each one. */
static void log_divergence(cgs_region_t *region, const cgs_call_t *call)
{
    const cgs_op_t *op = NULL;

    if (!cgs_log_enabled(CGS_LOG_DEBUG)) {
        return;
    }
    if (region->cursor.segment < recording(region)->num_segments) {
        op = &current_segment(region)->ops[region->cursor.op];
    }
    cgs_log_line(CGS_LOG_DEBUG, "region %s: run %llu, call %llu: recorded %s "
                 "on stream %p, called %s on stream %p%s", region->name,
                 (unsigned long long)region->stats.runs,
                 (unsigned long long)region->cursor.calls,
                 op != NULL ? cgs_op_name(op) : "nothing",
                 op != NULL ?
                 (void *)current_segment(region)->streams[op->lane] : NULL,
                 cgs_op_call_name(call), (void *)call->stream,
                 cgs_self.joined ? " by another thread" : "");
}

/* Programs that take events from a pool record one event at places that change
 * from run to run; then no record may go without its node. */
static void learn_events(cgs_region_t *region, const cgs_call_t *call)
{
    cgs_segment_t *segment;
    cgs_op_t      *op;

    if ((call->kind != CGS_OP_RECORD) ||
        (region->cursor.segment == recording(region)->num_segments)) {
        return;
    }
    segment = current_segment(region);
    op      = &segment->ops[region->cursor.op];
    if ((op->kind == CGS_OP_RECORD) && op->event.is_fixed) {
        region->events_vary  = true;
        segment->all_records = true;
    }
}

/* Cut the recording before the cursor and record from here on. */
static void begin_recording_here(cgs_region_t *region)
{
    cgs_cursor_t *cursor = &region->cursor;

    cgs_phases_collapse(&region->phases);
    cgs_recording_truncate(recording(region), cursor->segment, cursor->op);
    cursor->mode         = CGS_RUN_RECORD;
    cursor->through      = false;
    cursor->has_recorded = true;
}

/* The recording cannot be kept whole. */
static void abandon_recording(cgs_region_t *region, const char *reason)
{
    cgs_phases_release(&region->phases);
    cgs_cursor_go_plain(region, reason);
}

void cgs_cursor_go_plain(cgs_region_t *region, const char *reason)
{
    if (region->cursor.mode == CGS_RUN_PLAIN) {
        return;
    }
    issue_held(region);
    if (region->cursor.mode == CGS_RUN_RECORD) {
        /* Half of a run is no recording of it. */
        cgs_phases_release(&region->phases);
    }
    region->cursor.mode     = CGS_RUN_PLAIN;
    region->cursor.diverged = true;
    cgs_region_fallback(region, reason);
}

/* The first call of a segment names a stream that is alive. */
static void upload(cgs_region_t *region, cgs_segment_t *segment)
{
    cgs_graph_status_t status = cgs_graph_upload(segment, segment->streams[0]);

    if (status.result != CUDA_SUCCESS) {
        cgs_region_fallback(region, cgs_reason_driver(status.function,
                                                      status.result));
        cgs_graph_destroy(segment);
        ++segment->failures;
        region->cursor.through = true;
    }
}

/* One more op is held back. The first store of a segment must be seen by the
 * timer before it sleeps. */
static void hold(cgs_region_t *region)
{
    uint32_t num = region->cursor.op;

    if (num > 1) {
        atomic_store_explicit(&region->held, num, memory_order_release);
        return;
    }
    atomic_store_explicit(&region->hold_serial, 1 +
                          atomic_load_explicit(&region->hold_serial,
                                               memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store(&region->held, num);
    cgs_timer_arm();
}

/* The call was as recorded, or has been made the recorded one. */
static cgs_verdict_t accept(cgs_region_t *region, cgs_segment_t *segment,
                            cgs_call_t *call)
{
    cgs_cursor_t *cursor = &region->cursor;
    bool         whole;

    if ((cursor->op == 0) && (segment->exec != NULL) && !segment->uploaded) {
        upload(region, segment);
    }
    whole = ++cursor->op == segment->num_ops;
    if (cursor->through) {
        if (whole) {
            ++cursor->segment;
            enter_segment(region);
        }
        return CGS_VERDICT_PASS;
    }
    if (whole) {
        call->result = launch_segment(region);
        ++cursor->segment;
        enter_segment(region);
        return CGS_VERDICT_SWALLOWED;
    }
    if (call->kind == CGS_OP_RECORD) {
        atomic_store_explicit(&region->held_events, true,
                              memory_order_relaxed);
    }
    hold(region);
    call->result = CUDA_SUCCESS;
    return CGS_VERDICT_SWALLOWED;
}

/* The call changes arguments only, or memory that has to be taken. */
static cgs_verdict_t accept_changed(cgs_region_t *region,
                                    cgs_segment_t *segment, cgs_call_t *call)
{
    cgs_op_t *op = &segment->ops[region->cursor.op];

    if (cgs_op_kinds[op->kind]->take(op, call, NULL) != 0) {
        cgs_cursor_barrier(region, "no memory to stage a copy");
        return CGS_VERDICT_PASS;
    }
    if (!op->dirty && (op->node != NULL)) {
        op->dirty                            = true;
        segment->dirty[segment->num_dirty++] = region->cursor.op;
    }
    return accept(region, segment, call);
}

/* Whether a segment can take a call on one more stream. The legacy stream has
 * edges to all others that nobody says: it stays alone. */
static bool has_room_for(const cgs_region_t *region,
                         const cgs_segment_t *segment, CUstream stream)
{
    return (region->rule->streams == CGS_STREAMS_JOIN) &&
           (stream != CGS_STREAM_LEGACY) &&
           (segment->streams[0] != CGS_STREAM_LEGACY) &&
           (segment->num_streams < CGS_MAX_LANES);
}

/* A wait for an event that its segment records before op `end` is an edge in
 * it. Sets how far back that record is. */
static bool is_wait_inside(const cgs_region_t *region,
                           const cgs_segment_t *segment, uint32_t end,
                           cgs_call_t *call, CUcontext ctx)
{
    call->event.distance = cgs_recording_find_event(segment, end,
                                                    call->event.event);
    return (call->event.distance > 0) && (segment->ctx == ctx) &&
           ((cgs_recording_find_lane(segment, call->stream) <
             segment->num_streams) ||
            has_room_for(region, segment, call->stream));
}

/* Ask once whether the call can be an op: after a free nobody could tell. */
static bool admit(cgs_call_t *call)
{
    call->admitted = call->admitted || cgs_op_kinds[call->kind]->admit(call);
    return call->admitted;
}

/* The call is not the recorded one: it goes out plainly, and what it comes
 * to decides how the run goes on (cgs_cursor_after). */
static cgs_verdict_t not_as_recorded(cgs_region_t *region, cgs_call_t *call,
                                     CUcontext ctx)
{
    if (!admit(call)) {
        cgs_cursor_barrier(region, call->reason);
        return CGS_VERDICT_PASS;
    }
    if ((call->kind == CGS_OP_WAIT) &&
        ((region->cursor.op == 0) ||
         !is_wait_inside(region, current_segment(region), region->cursor.op,
                         call, ctx))) {
        cgs_cursor_barrier(region, outside_wait);
        return CGS_VERDICT_PASS;
    }
    issue_held(region);
    return CGS_VERDICT_WATCH;
}

static cgs_verdict_t replay(cgs_region_t *region, cgs_call_t *call,
                            CUcontext ctx)
{
    cgs_cursor_t  *cursor = &region->cursor;
    cgs_segment_t *segment;
    cgs_op_t      *op;
    cgs_match_t   match;

    if ((cursor->calls == 1) && (region->phases.num > 1)) {
        cgs_phases_choose(&region->phases, call);
        enter_segment(region);
    }
    if (cursor->segment == recording(region)->num_segments) {
        return not_as_recorded(region, call, ctx);
    }
    segment = current_segment(region);
    op      = &segment->ops[cursor->op];
    if ((op->kind != call->kind) ||
        (segment->streams[op->lane] != call->stream) ||
        (segment->ctx != ctx)) {
        return not_as_recorded(region, call, ctx);
    }

    match = cgs_op_kinds[op->kind]->compare(op, call);
    if (match == CGS_MATCH_SAME) {
        return accept(region, segment, call);
    }
    if (match == CGS_MATCH_STAGED) {
        return accept_changed(region, segment, call);
    }
    if ((match == CGS_MATCH_CHANGED) &&
        (region->rule->on_change == CGS_ON_CHANGE_PATCH)) {
        note_divergence(region, call);
        return accept_changed(region, segment, call);
    }
    return not_as_recorded(region, call, ctx);
}

cgs_verdict_t cgs_cursor_before(cgs_region_t *region, cgs_call_t *call,
                                CUcontext ctx)
{
    cgs_cursor_t *cursor = &region->cursor;

    ++cursor->calls;
    if (cursor->mode == CGS_RUN_PLAIN) {
        return CGS_VERDICT_PASS;
    }
    if (call->refused) {
        cgs_cursor_barrier(region, call->reason);
        return CGS_VERDICT_PASS;
    }
    if (cursor->mode == CGS_RUN_REPLAY) {
        return replay(region, call, ctx);
    }
    if ((call->kind == CGS_OP_FREE) && !admit(call)) {
        cgs_cursor_barrier(region, call->reason);
        return CGS_VERDICT_PASS;
    }
    return CGS_VERDICT_WATCH;
}

static void add_lane(cgs_recording_t *recording, CUstream stream)
{
    cgs_stream_attrs_t attrs;

    cgs_stream_ask(stream, &attrs);
    cgs_recording_add_lane(recording, stream, &attrs);
}

/* Have the last segment take the call: it is open, of the same context, and
 * has the call's stream or room for it. Else a new one begins. */
static int continue_segment(cgs_region_t *region, const cgs_call_t *call,
                            CUcontext ctx)
{
    cgs_recording_t *to     = recording(region);
    cgs_segment_t   *last;
    int             status;

    if (region->cursor.op > 0) {
        last = last_segment(region);
        if (last->ctx == ctx) {
            if (cgs_recording_find_lane(last, call->stream) <
                last->num_streams) {
                return 0;
            }
            if (has_room_for(region, last, call->stream)) {
                add_lane(to, call->stream);
                return 0;
            }
        }
    }
    region->cursor.op = 0;
    status = cgs_recording_open_segment(to, ctx, call->device);
    if (status == 0) {
        add_lane(to, call->stream);
        last_segment(region)->all_records = region->events_vary;
    }
    return status;
}

/* While recording, the cursor's op is the length of the open segment, 0 where
 * the next op opens a new one. */
static void record(cgs_region_t *region, cgs_call_t *call, CUcontext ctx)
{
    cgs_cursor_t *cursor = &region->cursor;

    if (!admit(call)) {
        cgs_cursor_barrier(region, call->reason);
        return;
    }
    if ((call->kind == CGS_OP_WAIT) &&
        ((cursor->op == 0) ||
         !is_wait_inside(region, last_segment(region),
                         last_segment(region)->num_ops, call, ctx))) {
        cgs_cursor_barrier(region, outside_wait);
        return;
    }
    if ((cursor->calls > MAX_OPS) ||
        (continue_segment(region, call, ctx) != 0) ||
        (cgs_recording_append(recording(region), call) != 0)) {
        abandon_recording(region, cursor->calls > MAX_OPS ?
                          "it has too many calls" : "out of host memory");
        return;
    }
    cgs_region_own_stream(region, call->stream);
    ++cursor->op;
    cursor->has_recorded = true;
}

void cgs_cursor_after(cgs_region_t *region, cgs_call_t *call, CUcontext ctx,
                      CUresult result)
{
    cgs_cursor_t *cursor = &region->cursor;

    if (result != CUDA_SUCCESS) {
        /* No work was put on the stream. To a recording that is a barrier;
         * a replay goes on as if the call had not been. */
        if (cursor->mode == CGS_RUN_RECORD) {
            cgs_cursor_barrier(region, "a call that failed");
        }
        return;
    }
    if (cursor->mode == CGS_RUN_REPLAY) {
        note_divergence(region, call);
        log_divergence(region, call);
        learn_events(region, call);
        cursor->diverged = true;
        if (!cursor->may_record ||
            (region->rule->on_change == CGS_ON_CHANGE_EAGER)) {
            cgs_cursor_go_plain(region, "a call was not as recorded");
            return;
        }
        cgs_region_fallback(region, "a call was not as recorded");
        /* A call of another thread may have come in between; nothing orders
         * it and this one. */
        issue_held(region);
        begin_recording_here(region);
    }
    if (cursor->mode == CGS_RUN_RECORD) {
        record(region, call, ctx);
    }
}

void cgs_cursor_barrier(cgs_region_t *region, const char *reason)
{
    cgs_cursor_t *cursor = &region->cursor;

    ++region->stats.barriers;
    if (cursor->mode == CGS_RUN_RECORD) {
        cgs_region_cut(region, reason);
        cursor->op = 0;
        return;
    }
    if ((cursor->mode != CGS_RUN_REPLAY) ||
        (atomic_load_explicit(&region->held, memory_order_relaxed) == 0)) {
        return;
    }

    /* A barrier that was not there when this was recorded. */
    issue_held(region);
    cursor->diverged = true;
    cgs_region_fallback(region, cgs_reason_join("a cut that was not recorded:",
                                                reason));
    if (cursor->may_record) {
        begin_recording_here(region);
        cursor->op = 0;
    }
}

bool cgs_cursor_has_event(cgs_region_t *region, CUevent event)
{
    uint32_t held = atomic_load_explicit(&region->held, memory_order_relaxed);

    if (region->cursor.mode == CGS_RUN_RECORD) {
        return (region->cursor.op > 0) &&
               (cgs_recording_find_event(last_segment(region),
                                         last_segment(region)->num_ops,
                                         event) > 0);
    }
    return (held > 0) &&
           (cgs_recording_find_event(current_segment(region), held, event) >
            0);
}

void cgs_cursor_flush(cgs_region_t *region, const char *reason)
{
    if (atomic_load_explicit(&region->held, memory_order_relaxed) == 0) {
        return;
    }
    issue_held(region);
    region->cursor.diverged = true;
    cgs_region_fallback(region, reason);
}

/* A run that stopped inside a segment: it was recorded longer than it is. */
static void finish_replay(cgs_region_t *region)
{
    cgs_cursor_t *cursor = &region->cursor;

    if (atomic_load_explicit(&region->held, memory_order_relaxed) > 0) {
        note_divergence(region, NULL);
        issue_held(region);
        cursor->diverged = true;
        cgs_region_fallback(region, "it ended before the recording did");
        if (cursor->may_record) {
            begin_recording_here(region);
        }
    }
}

/* Recordings that are never replayed cost more than they give. */
static void back_off(cgs_region_t *region)
{
    uint32_t shift;

    ++region->wasted;
    if (region->wasted >= MAX_WASTED) {
        shift = region->wasted - MAX_WASTED + 1;
        shift = shift > MAX_BACKOFF_SHIFT ? MAX_BACKOFF_SHIFT : shift;
        region->record_run = region->stats.runs + 1 + (1ull << shift);
    }
}

void cgs_cursor_finish(cgs_region_t *region)
{
    cgs_cursor_t *cursor = &region->cursor;

    if (cursor->mode == CGS_RUN_REPLAY) {
        finish_replay(region);
    }
    region->stats.calls += cursor->calls;
    if (cursor->has_recorded && (cursor->mode == CGS_RUN_RECORD)) {
        ++region->stats.recordings;
        region->stats.destroyed = false;
        back_off(region);
        cgs_log(CGS_LOG_INFO, "region %s: run %llu recorded, %u segments",
                region->name, (unsigned long long)region->stats.runs,
                recording(region)->num_segments);
    } else if (cursor->launched && !cursor->diverged) {
        ++region->stats.replayed_runs;
        region->wasted = 0;
        if (region->rule->on_change == CGS_ON_CHANGE_PATCH) {
            cgs_phases_learn(&region->phases, region->stats.patched -
                             cursor->patched_before);
        }
    }
    if ((region->stats.runs > 1) && (cursor->mode != CGS_RUN_PLAIN) &&
        !cgs_flow_is_capturing()) {
        cgs_builder_run(region);
    }
    cursor->mode = CGS_RUN_PLAIN;
}

void cgs_cursor_start(cgs_region_t *region)
{
    cgs_cursor_t *cursor = &region->cursor;

    *cursor = (cgs_cursor_t){.mode = CGS_RUN_PLAIN};
    ++region->stats.runs;
    cursor->may_record     = region->stats.runs >= region->record_run;
    cursor->patched_before = region->stats.patched;

    if (region->stats.runs <= region->rule->warmup) {
        ++region->stats.plain_runs;
        return;
    }
    if (region->recapture) {
        region->recapture  = false;
        cursor->may_record = true;
        cgs_phases_release(&region->phases);
    }
    if (cgs_flow_is_capturing()) {
        ++region->stats.plain_runs;
        cgs_region_fallback(region, "a stream capture of the program's own");
    } else if (recording(region)->num_segments > 0) {
        cgs_phases_advance(&region->phases);
        cgs_builder_run(region);
        cursor->mode = CGS_RUN_REPLAY;
        enter_segment(region);
    } else if (cursor->may_record) {
        cgs_region_disown_streams(region);
        cursor->mode = CGS_RUN_RECORD;
    } else {
        ++region->stats.plain_runs;
        cgs_region_fallback(region, "recordings did not last, so the next one waits");
    }
}
