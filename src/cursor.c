/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recording and replaying, call by call.
 *
 * Replay: a call that is as the next op is swallowed. When the last op of a
 * chunk was swallowed its graph is launched at once. Until then the prefix
 * is held back; whatever makes it impossible to go on issues that prefix in
 * order from the saved arguments. Where runs differ, another variant is
 * followed if one fits (branch.c), or else recorded (recorder.c).
 */
#include "cursor.h"

#include <errno.h>
#include <stdlib.h>

#include "branch.h"
#include "builder.h"
#include "clock.h"
#include "divergence.h"
#include "flow.h"
#include "function.h"
#include "graph.h"
#include "held.h"
#include "log.h"
#include "reason.h"
#include "recorder.h"

/* Recordings without a full replay after which recording has to wait. */
#define MAX_WASTED 3
/* The longest wait is 2 to the power of this, in runs. */
#define MAX_BACKOFF_SHIFT 10
/* Runs after a recording that pass before calls are timed, and how many are. */
#define UNTIMED_RUNS 2
#define TIMED_RUNS   4
/* Runs in a row, more of one kind than of the other, that say whether the
 * program waits. */
#define MAX_SYNCED   16
/* Ops of one recording; a region with more is no region. */
#define MAX_OPS (1u << 22)

static const char *const outside_wait = "a wait for an event of outside";

/* Programs that take events from a pool record one event at places that change
 * from run to run; then no record may go without its node. */
static void learn_events(cgs_region_t *region, const cgs_call_t *call)
{
    cgs_chunk_t    *chunk;
    const cgs_op_t *op;

    if ((call->kind != CGS_OP_RECORD) || (region->cursor.variant == NULL)) {
        return;
    }
    chunk = cgs_cursor_chunk(region);
    op    = &chunk->ops[region->cursor.op];
    if ((op->kind == CGS_OP_RECORD) && op->event.is_fixed) {
        region->events_vary = true;
    }
}

/* Cut what is recorded before the cursor and record from here on. */
static void begin_recording_here(cgs_region_t *region)
{
    cgs_recorder_begin(region, (region->rule->variants == 1) ||
                       (region->rule->on_change == CGS_ON_CHANGE_RECAPTURE));
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

/* The recording cannot be kept whole. */
static void abandon_recording(cgs_region_t *region, const char *reason)
{
    cgs_cursor_go_plain(region, reason);
    cgs_recording_release(&region->recording);
    back_off(region);
}

void cgs_cursor_go_plain(cgs_region_t *region, const char *reason)
{
    if (region->cursor.mode == CGS_RUN_PLAIN) {
        return;
    }
    cgs_held_issue(region);
    cgs_recorder_end(region);
    region->cursor.mode     = CGS_RUN_PLAIN;
    region->cursor.diverged = true;
    cgs_region_fallback(region, reason);
}

/* The first call of a chunk names a stream that is alive. What nodes hold may
 * be gone until they are patched: then the first launch sends the graph. */
static void upload(cgs_region_t *region, cgs_chunk_t *chunk)
{
    cgs_graph_status_t status = {.result = CUDA_SUCCESS};

    if (chunk->has_events) {
        cgs_events_hold();
    }
    if ((chunk->has_events && (chunk->num_dirty > 0)) ||
        !cgs_chunk_refresh(chunk)) {
        chunk->uploaded = true;
    } else {
        status = cgs_graph_upload(chunk, chunk->streams[0]);
    }
    if (chunk->has_events) {
        cgs_events_release();
    }
    if (status.result != CUDA_SUCCESS) {
        cgs_region_fallback(region, cgs_reason_driver(status.function,
                                                      status.result));
        cgs_graph_destroy(chunk);
        ++chunk->failures;
        region->recording.has_work = true;
        region->cursor.through     = true;
    }
}

/* The program's own time before a call, the shortest that was seen: pauses for
 * the first run's sake do not come again. */
static void time_call(cgs_region_t *region, cgs_op_t *op)
{
    uint64_t now_ns = cgs_clock_ns();
    uint64_t gap_ns = now_ns - region->cursor.left_ns;

    if ((region->cursor.left_ns != 0) && (gap_ns < op->gap_ns)) {
        op->gap_ns = (uint32_t)gap_ns;
    }
    region->cursor.left_ns = now_ns;
}

/* What the driver took for a call that the program made itself. The first
 * launch of a kernel loads it, and says nothing of the next ones. */
static void time_plain_call(cgs_region_t *region, const cgs_call_t *call)
{
    uint64_t now_ns = cgs_clock_ns();

    if ((call->kind != CGS_OP_KERNEL) ||
        cgs_function_was_recorded(call->kernel.shape.function)) {
        cgs_sample_add(&region->stats.times.plain_calls,
                       now_ns - region->cursor.called_ns);
    }
}

/* The call was as recorded, or has been made the recorded one. */
static cgs_verdict_t accept(cgs_region_t *region, cgs_chunk_t *chunk,
                            cgs_call_t *call)
{
    cgs_cursor_t *cursor = &region->cursor;
    bool         whole;

    if ((cursor->op == 0) && (chunk->exec != NULL) && !chunk->uploaded) {
        upload(region, chunk);
    }
    whole = ++cursor->op == chunk->num_ops;
    if (cursor->timed) {
        time_call(region, &chunk->ops[cursor->op - 1]);
    }
    if (cursor->through) {
        if (whole) {
            cgs_branch_leave(region);
        }
        return CGS_VERDICT_PASS;
    }
    if (whole) {
        call->result    = cgs_held_launch(region);
        cursor->left_ns = cursor->timed ? cgs_clock_ns() : 0;
        cgs_branch_leave(region);
        return CGS_VERDICT_SWALLOWED;
    }
    cgs_held_grow(region, call->kind == CGS_OP_RECORD);
    call->result = CUDA_SUCCESS;
    return CGS_VERDICT_SWALLOWED;
}

/* The call changes values only, or memory that has to be taken. */
static cgs_verdict_t accept_changed(cgs_region_t *region, cgs_chunk_t *chunk,
                                    cgs_call_t *call)
{
    cgs_op_t *op = &chunk->ops[region->cursor.op];

    if (cgs_op_kinds[op->kind]->take(op, call, NULL) != 0) {
        cgs_cursor_barrier(region, "no memory to stage a copy");
        return CGS_VERDICT_PASS;
    }
    cgs_chunk_touch(chunk, region->cursor.op);
    return accept(region, chunk, call);
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
         !cgs_recorder_is_wait_inside(region, cgs_cursor_chunk(region),
                                      region->cursor.op, call, ctx))) {
        cgs_cursor_barrier(region, outside_wait);
        return CGS_VERDICT_PASS;
    }
    cgs_held_issue(region);
    return CGS_VERDICT_WATCH;
}

static cgs_match_t compare(cgs_region_t *region, cgs_call_t *call,
                           CUcontext ctx)
{
    cgs_phases_t *phases;

    if (region->cursor.variant == NULL) {
        return CGS_MATCH_OTHER;
    }
    phases = &region->cursor.variant->phases;
    if ((region->cursor.op == 0) && (phases->num > 1)) {
        cgs_phases_choose(phases, call);
        region->cursor.through = cgs_phases_current(phases)->exec == NULL;
    }
    return cgs_branch_compare(cgs_cursor_chunk(region), region->cursor.op,
                              call, ctx);
}

static cgs_verdict_t replay(cgs_region_t *region, cgs_call_t *call,
                            CUcontext ctx)
{
    cgs_match_t match = compare(region, call, ctx);

    if (__builtin_expect(match == CGS_MATCH_SAME, 1)) {
        return accept(region, cgs_cursor_chunk(region), call);
    }
    if (!cgs_branch_accepts(region, match) &&
        cgs_branch_follow(region, call, ctx)) {
        match = cgs_branch_compare(cgs_cursor_chunk(region),
                                   region->cursor.op, call, ctx);
    }
    if (!cgs_branch_accepts(region, match)) {
        return not_as_recorded(region, call, ctx);
    }
    if (match == CGS_MATCH_SAME) {
        return accept(region, cgs_cursor_chunk(region), call);
    }
    if (match == CGS_MATCH_CHANGED) {
        cgs_divergence_note(region, call);
    }
    return accept_changed(region, cgs_cursor_chunk(region), call);
}

bool cgs_cursor_swallow_launch(cgs_region_t *region,
                               const cgs_launch_shape_t *shape,
                               CUstream stream, void **params, CUcontext ctx)
{
    cgs_cursor_t      *cursor = &region->cursor;
    const cgs_chunk_t *chunk;
    const cgs_op_t    *op;

    if ((cursor->mode != CGS_RUN_REPLAY) || cursor->through ||
        (cursor->variant == NULL) || (cursor->op == 0) || cursor->timed) {
        return false;
    }
    chunk = cgs_cursor_chunk(region);
    op    = &chunk->ops[cursor->op];
    if ((cursor->op + 1 == chunk->num_ops) || (op->kind != CGS_OP_KERNEL) ||
        (chunk->streams[op->lane] != stream) || (chunk->ctx != ctx) ||
        !cgs_op_is_launch(op, shape, params)) {
        return false;
    }
    ++cursor->calls;
    ++cursor->op;
    atomic_store_explicit(&region->held, cursor->op, memory_order_release);
    return true;
}

/* A call of a plain run that is timed: counted as little as those of runs that
 * the gate lets pass unseen. */
static cgs_verdict_t watch(cgs_region_t *region, const cgs_call_t *call)
{
    --region->counts[call->kind];
    region->cursor.called_ns = cgs_clock_ns();
    return CGS_VERDICT_WATCH;
}

cgs_verdict_t cgs_cursor_before(cgs_region_t *region, cgs_call_t *call,
                                CUcontext ctx)
{
    cgs_cursor_t *cursor = &region->cursor;

    ++cursor->calls;
    if (cursor->mode == CGS_RUN_PLAIN) {
        return cursor->watches && !cgs_flow_is_capturing() ?
               watch(region, call) : CGS_VERDICT_PASS;
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
    cursor->called_ns = cgs_clock_ns();
    return CGS_VERDICT_WATCH;
}

static void record(cgs_region_t *region, cgs_call_t *call, CUcontext ctx)
{
    int status;

    if (!admit(call)) {
        cgs_cursor_barrier(region, call->reason);
        return;
    }
    if ((call->kind == CGS_OP_WAIT) &&
        !cgs_recorder_has_record(region, call, ctx)) {
        cgs_cursor_barrier(region, outside_wait);
        return;
    }
    if (region->cursor.calls > MAX_OPS) {
        abandon_recording(region, "it has too many calls");
        return;
    }
    status = cgs_recorder_add(region, call, ctx);
    if (status != 0) {
        region->wants_memory |= status == -EDQUOT;
        abandon_recording(region, status == -EDQUOT ? cgs_no_budget :
                                  "out of host memory");
    }
}

void cgs_cursor_after(cgs_region_t *region, cgs_call_t *call, CUcontext ctx,
                      CUresult result)
{
    cgs_cursor_t *cursor = &region->cursor;

    if ((cursor->called_ns != 0) && (result == CUDA_SUCCESS)) {
        time_plain_call(region, call);
    }
    if (result != CUDA_SUCCESS) {
        /* No work was put on the stream. To a recording that is a barrier;
         * a replay goes on as if the call had not been. */
        if (cursor->mode == CGS_RUN_RECORD) {
            cgs_cursor_barrier(region, "a call that failed");
        }
        return;
    }
    if (cursor->mode == CGS_RUN_REPLAY) {
        cgs_divergence_note(region, call);
        cgs_divergence_log(region, call);
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
        cgs_held_issue(region);
        begin_recording_here(region);
    }
    if (cursor->mode == CGS_RUN_RECORD) {
        record(region, call, ctx);
        cursor->left_ns = cgs_clock_ns();
    }
    cursor->called_ns = 0;
}

/* The run has come to a point where nothing may be held back. If a variant ends
 * here, it is whole. Its context need not be the current one any more.
 * @return false if none does. */
static bool end_chunk_here(cgs_region_t *region)
{
    CUresult error;
    bool     entered;

    if (!cgs_branch_follow(region, NULL, NULL)) {
        return false;
    }
    if (cgs_held(region) > 0) {
        entered = cgs_graph_enter_context(cgs_cursor_chunk(region)->ctx);
        error   = cgs_held_launch(region);
        if (entered) {
            cgs_graph_leave_context();
        }
        cgs_held_keep_error(region, error);
    }
    cgs_branch_leave(region);
    return true;
}

void cgs_cursor_barrier(cgs_region_t *region, const char *reason)
{
    cgs_cursor_t *cursor = &region->cursor;

    ++region->stats.barriers;
    cgs_trace_mark(CGS_TRACE_BARRIER, region, reason, 0);
    if (cursor->mode == CGS_RUN_RECORD) {
        cgs_region_cut(region, reason);
        cgs_recorder_cut(region);
        return;
    }
    if ((cursor->mode != CGS_RUN_REPLAY) || (cgs_held(region) == 0) ||
        end_chunk_here(region)) {
        return;
    }

    /* A barrier that was not there when this was recorded. */
    cgs_held_issue(region);
    cursor->diverged = true;
    cgs_region_fallback(region, cgs_reason_join("a cut that was not recorded:",
                                                reason));
    if (cursor->may_record) {
        begin_recording_here(region);
        cgs_recorder_cut(region);
    }
}

bool cgs_cursor_has_event(cgs_region_t *region, CUevent event)
{
    uint32_t held = cgs_held(region);

    if (region->cursor.mode == CGS_RUN_RECORD) {
        return (region->cursor.op > 0) &&
               (cgs_chunk_find_event(cgs_cursor_chunk(region),
                                     region->cursor.op, event) > 0);
    }
    return (held > 0) &&
           (cgs_chunk_find_event(cgs_cursor_chunk(region), held, event) > 0);
}

void cgs_cursor_flush(cgs_region_t *region, const char *reason)
{
    if (cgs_held(region) == 0) {
        return;
    }
    cgs_held_issue(region);
    region->cursor.diverged = true;
    cgs_region_fallback(region, reason);
}

/* A run that stopped inside a chunk: it was recorded longer than it is. */
static void finish_replay(cgs_region_t *region)
{
    cgs_cursor_t *cursor = &region->cursor;

    if ((cgs_held(region) == 0) || end_chunk_here(region)) {
        return;
    }
    cgs_divergence_note(region, NULL);
    cgs_held_issue(region);
    cursor->diverged = true;
    cgs_region_fallback(region, "it ended before the recording did");
    if (cursor->may_record) {
        begin_recording_here(region);
    }
}

/* The variants that this run passed learn from how they had to be patched. */
static void learn_phases(cgs_region_t *region)
{
    uint64_t      run    = region->stats.runs;
    cgs_place_t   *place = region->recording.first;
    cgs_variant_t *variant;

    while ((place != NULL) && (place->current != NULL) &&
           (place->current->last_run == run)) {
        variant = place->current;
        place   = variant->next;
        if ((variant->launched_run == run) &&
            cgs_phases_learn(&variant->phases, variant->patched)) {
            region->recording.has_work = true;
        }
    }
}

static cgs_path_t path_of(const cgs_region_t *region, cgs_run_mode_t mode)
{
    const cgs_cursor_t *cursor = &region->cursor;

    if (cursor->has_recorded || cursor->verifies ||
        (region->stats.builds != cursor->builds_before)) {
        return CGS_PATH_NONE;
    }
    if ((mode == CGS_RUN_PLAIN) && !cursor->diverged) {
        return CGS_PATH_PLAIN;
    }
    if (!cursor->launched) {
        return CGS_PATH_FUTILE;
    }
    if (cursor->diverged || cursor->moved) {
        return CGS_PATH_VARIANT;
    }
    return region->stats.patched > cursor->patched_before ?
           CGS_PATH_PATCHED : CGS_PATH_EXACT;
}

/* Whether the program has waited for the device since the last run. */
static void learn_pace(cgs_region_t *region)
{
    cgs_pace_t *pace = &region->pace;
    unsigned   waits = atomic_load_explicit(&cgs_flow_waits,
                                            memory_order_relaxed);
    bool       synced = waits != pace->waits;

    pace->waits = waits;
    if (region->stats.runs > 1) {
        pace->synced += synced ? pace->synced < MAX_SYNCED :
                        -(pace->synced > -MAX_SYNCED);
    }
}

/* What the first runs said of the program's pace may have been wrong. */
static void plan_again(cgs_region_t *region)
{
    cgs_pace_t *pace  = &region->pace;
    uint64_t   run    = region->stats.runs;
    bool       synced = pace->synced >= 0;
    bool       timed  = run == pace->timed_run + TIMED_RUNS;

    if (!pace->is_planned || (region->rule->chunk != CGS_CHUNK_AUTO) ||
        (!timed && ((synced == pace->for_synced) ||
                    (abs(pace->synced) < MAX_SYNCED)))) {
        return;
    }
    pace->for_synced = synced;
    cgs_builder_plan_again(region);
}

static void note_recording(cgs_region_t *region)
{
    ++region->stats.recordings;
    region->stats.destroyed = false;
    region->pace.timed_run  = region->stats.runs + UNTIMED_RUNS;
    back_off(region);
    cgs_trace_mark(CGS_TRACE_RECORDED, region, NULL,
                   region->recording.num_variants);
    cgs_log_often(CGS_LOG_INFO, "region %s: run %llu recorded, %u variants in "
                  "all", region->name, (unsigned long long)region->stats.runs,
                  region->recording.num_variants);
}

void cgs_cursor_finish(cgs_region_t *region)
{
    cgs_cursor_t *cursor = &region->cursor;

    if (cursor->mode == CGS_RUN_REPLAY) {
        finish_replay(region);
    }
    cgs_recorder_end(region);
    region->stats.calls += cursor->watches ? 0 : cursor->calls;
    if (cursor->has_recorded && (cursor->mode != CGS_RUN_PLAIN)) {
        note_recording(region);
    } else if (cursor->launched && !cursor->diverged) {
        ++region->stats.replayed_runs;
        region->wasted = 0;
    }
    if ((region->rule->on_change == CGS_ON_CHANGE_PATCH) &&
        (region->stats.patched != cursor->patched_before) &&
        !cursor->diverged) {
        learn_phases(region);
    }
    if ((region->stats.runs > 1) && (cursor->mode != CGS_RUN_PLAIN) &&
        !cgs_flow_is_capturing()) {
        plan_again(region);
        cgs_builder_run(region);
    }
    cgs_gate_leave(&region->gate, path_of(region, cursor->mode));
    cgs_trace_run_ends(region);
    cursor->mode = CGS_RUN_PLAIN;
}

void cgs_cursor_start(cgs_region_t *region)
{
    cgs_cursor_t *cursor = &region->cursor;

    *cursor = (cgs_cursor_t){.mode = CGS_RUN_PLAIN};
    ++region->stats.runs;
    cursor->may_record     = region->stats.runs >= region->record_run;
    cursor->patched_before = region->stats.patched;
    cursor->builds_before  = region->stats.builds;
    cursor->timed          = (region->rule->chunk == CGS_CHUNK_AUTO) &&
                             (region->stats.runs >= region->pace.timed_run) &&
                             (region->stats.runs < region->pace.timed_run +
                              TIMED_RUNS);
    learn_pace(region);

    if (region->stats.runs <= region->rule->warmup) {
        ++region->stats.plain_runs;
        return;
    }
    if (region->watch) {
        region->watch   = false;
        cursor->watches = true;
        ++region->stats.plain_runs;
        ++region->stats.unseen_runs;
        cgs_region_fallback(region, cgs_by_gate);
        cgs_times_watch(&region->stats.times);
        return;
    }
    if (region->recapture) {
        region->recapture  = false;
        cursor->may_record = true;
        cgs_recording_release(&region->recording);
    }
    if (cgs_flow_is_capturing()) {
        ++region->stats.plain_runs;
        cgs_region_fallback(region, "a stream capture of the program's own");
    } else if (region->stats.mistake.valid) {
        ++region->stats.plain_runs;
        cgs_region_fallback(region, "a graph left other bytes than its calls");
    } else if (!cgs_recording_is_empty(&region->recording)) {
        cgs_builder_run(region);
        cursor->mode       = CGS_RUN_REPLAY;
        /* What was found by itself is found anew where it has changed. */
        cursor->may_record &= !region->alone;
        cursor->verifies   = (region->rule->verify > 0) &&
                             (++region->replays % region->rule->verify == 0);
        cursor->is_watched = cgs_changes_start(&region->stats.changes);
        cgs_branch_enter(region, region->recording.first);
    } else if (cursor->may_record) {
        cgs_region_disown_streams(region);
        cgs_recording_release(&region->recording);
        cursor->mode = CGS_RUN_RECORD;
        atomic_store_explicit(&region->records_alone, region->alone,
                              memory_order_relaxed);
    } else {
        ++region->stats.plain_runs;
        cgs_region_fallback(region, "recordings did not last, so the next "
                            "one waits");
    }
}
