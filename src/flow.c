/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders a thread's call behind what other threads hold back, then hands it
 * to the region that is open in its own thread.
 *
 * Open runs stand in a small array that is read without a lock. A run's
 * `held` count is stored before the swallowed call returns, so a thread that
 * the program has made wait for that call sees it here. A region's lock is
 * taken only by its own thread and by one that must issue what it holds back;
 * nobody holds two of them.
 */
#include "flow.h"

#include <limits.h>
#include <string.h>

#include "barrier.h"
#include "config.h"
#include "doors.h"
#include "graph.h"
#include "life.h"
#include "marks.h"
#include "staging.h"
#include "turns.h"

#define MAX_OPEN 256
/* How long exit waits for a thread that is issuing work. */
#define EXIT_WAIT_MS 1000

__thread cgs_thread_t cgs_self;

cgs_flow_counts_t cgs_flow_counts;
atomic_uint       cgs_flow_waits;

static struct {
    _Atomic(cgs_region_t *) open[MAX_OPEN];
    atomic_uint             limit;     /* slots ever used */
    atomic_uint             num;       /* slots in use */
    atomic_ullong           opened;    /* runs ever shown here */
    atomic_int              capturing; /* captures open in the process */
} flow;

cgs_region_t *cgs_flow_own_region(void)
{
    cgs_region_t *region = cgs_self.region;

    if ((region != NULL) &&
        ((atomic_load_explicit(&region->run_serial, memory_order_relaxed) !=
          cgs_self.run_serial) ||
         (cgs_self.joined && !atomic_load_explicit(&region->busy,
                                                   memory_order_relaxed)))) {
        cgs_self.region = NULL; /* another thread has ended the run */
        return NULL;
    }
    return region;
}

bool cgs_flow_open(cgs_region_t *region)
{
    cgs_region_t *expected;
    unsigned     i, limit;

    for (i = 0; i < MAX_OPEN; ++i) {
        expected = NULL;
        if (!atomic_compare_exchange_strong(&flow.open[i], &expected,
                                            region)) {
            continue;
        }
        limit = atomic_load(&flow.limit);
        while ((limit <= i) &&
               !atomic_compare_exchange_weak(&flow.limit, &limit, i + 1)) {
        }
        atomic_fetch_add(&flow.num, 1);
        atomic_fetch_add_explicit(&flow.opened, 1, memory_order_relaxed);
        return true;
    }
    return false;
}

void cgs_flow_close(cgs_region_t *region)
{
    unsigned i;

    for (i = 0; i < MAX_OPEN; ++i) {
        if (atomic_load_explicit(&flow.open[i], memory_order_relaxed) ==
            region) {
            atomic_store(&flow.open[i], NULL);
            atomic_fetch_sub(&flow.num, 1);
            return;
        }
    }
}

/* The same, and its lock is held; NULL where it ended meanwhile. */
static cgs_region_t *lock_own_region(void)
{
    cgs_region_t *region = cgs_flow_own_region();

    if (region == NULL) {
        return NULL;
    }
    cgs_lock(&region->lock);
    if (cgs_flow_own_region() == NULL) {
        cgs_unlock(&region->lock);
        return NULL;
    }
    return region;
}

/* Issue what a run holds back; its lock is held. */
static void flush_locked(cgs_region_t *region, const char *reason)
{
    ++cgs_self.guard;
    cgs_cursor_flush(region, reason);
    --cgs_self.guard;
}

/* Issue what a run of another thread holds back. Where that thread's run is its
 * own affair such a call ends a chunk, in the recording too. */
static void flush(cgs_region_t *region, const char *reason)
{
    cgs_lock(&region->lock);
    if (region->alone) {
        ++cgs_self.guard;
        cgs_cursor_barrier(region, reason);
        --cgs_self.guard;
    } else {
        flush_locked(region, reason);
    }
    cgs_unlock(&region->lock);
}

/* The thread of the open run has ended: end the run. */
static void end_abandoned(cgs_region_t *region)
{
    if (!cgs_lock_try(&region->lock)) {
        return;
    }
    cgs_cursor_go_plain(region, "its thread ended");
    cgs_unlock(&region->lock);
    atomic_store(&region->abandoned, false);
    cgs_region_leave(region);
}

/*
 * Work on two streams is ordered by the driver where they are the same, and
 * where one of them is the legacy default stream.
 */
static bool interact(const cgs_region_t *region, CUstream stream)
{
    return (stream == CGS_STREAM_LEGACY) ||
           cgs_region_owns_stream(region, stream) ||
           cgs_region_owns_stream(region, CGS_STREAM_LEGACY) ||
           (atomic_load_explicit(&region->num_streams, memory_order_relaxed) ==
            CGS_MAX_STREAMS);
}

/* Before a call of this thread: `stream` is what it looks at, NULL for
 * everything. */
static void flush_others(const cgs_region_t *own, CUstream stream)
{
    unsigned     limit = atomic_load_explicit(&flow.limit,
                                              memory_order_acquire);
    cgs_region_t *region;
    unsigned     i;

    for (i = 0; i < limit; ++i) {
        region = atomic_load_explicit(&flow.open[i], memory_order_acquire);
        if ((region == NULL) || (region == own) ||
            ((atomic_load_explicit(&region->held, memory_order_acquire) ==
              0) &&
             !atomic_load_explicit(&region->records_alone,
                                   memory_order_relaxed))) {
            continue;
        }
        if ((stream == NULL) ||
            interact(region, stream)) {
            flush(region, "another thread's call came in between");
        }
    }
}

/* Where they are not, what those that were open issued must be seen. */
static bool others_are_open(const cgs_region_t *own)
{
    return atomic_load_explicit(&flow.num, memory_order_acquire) >
           (own != NULL);
}

void cgs_flow_issue_at_exit(void)
{
    cgs_region_t *region;

    for (region = cgs_region_first(); region != NULL; region = region->next) {
        if ((atomic_load(&region->held) > 0) &&
            cgs_lock_for(&region->lock, EXIT_WAIT_MS)) {
            flush_locked(region, "the program ended");
            cgs_unlock(&region->lock);
        }
    }
}

/*
 * A run has waited since the look that first saw it hold back just what it
 * does now: while the program goes on calling, its graph is about to go out.
 * With four looks in the time allowed, the third of them issues the work.
 */
static void look_at(cgs_region_t *region, uint64_t now_us)
{
    uint64_t serial = atomic_load(&region->hold_serial);
    unsigned held   = atomic_load(&region->held);
    uint64_t limit  = region->rule->max_defer_us;

    if ((region->seen_serial != serial) || (region->seen_held != held)) {
        region->seen_serial = serial;
        region->seen_held   = held;
        region->seen_us     = now_us;
    } else if (now_us - region->seen_us >= limit / 2) {
        /* A run whose lock is taken is being looked after. */
        if (cgs_lock_try(&region->lock)) {
            flush_locked(region, "work was held back for max_defer_us");
            cgs_unlock(&region->lock);
        }
    }
}

bool cgs_flow_look(uint64_t now_us, cgs_flow_look_t *state)
{
    unsigned     limit = atomic_load(&flow.limit);
    bool         held  = false;
    cgs_region_t *region;
    unsigned     i, quarter;

    state->runs      = atomic_load(&flow.opened);
    state->period_us = UINT_MAX;
    for (i = 0; i < limit; ++i) {
        /* Sequentially consistent, as is all of what the timer sleeps by. */
        region = atomic_load(&flow.open[i]);
        if (region == NULL) {
            continue;
        }
        state->runs += atomic_load(&region->hold_serial) +
                       atomic_load(&region->held);
        quarter      = region->rule->max_defer_us / 4;
        if (quarter < state->period_us) {
            state->period_us = quarter;
        }
        if (atomic_load(&region->held) > 0) {
            held = true;
            look_at(region, now_us);
        }
        if (atomic_load(&region->abandoned)) {
            end_abandoned(region);
        }
    }
    return held;
}

/* Asked again after any call that may have changed the current context. */
static void learn_context(void)
{
    cgs_thread_t *self = &cgs_self;

    if (self->ctx_known) {
        return;
    }
    self->device = -1;
    self->ctx    = NULL;
    if (CGS_REAL(cuCtxGetCurrent)(&self->ctx) != CUDA_SUCCESS) {
        return;
    }
    self->ctx_known = CGS_REAL(cuCtxGetDevice)(&self->device) == CUDA_SUCCESS;
}

/* The run that a call on a stream belongs to: the one that this thread opened,
 * else one that another thread opened and whose ops are on this stream. */
static cgs_region_t *find_region(CUstream stream)
{
    cgs_thread_t *self   = &cgs_self;
    cgs_region_t *region = cgs_flow_own_region();
    unsigned     limit, i;

    if (region != NULL) {
        return !self->joined || cgs_region_owns_stream(region, stream) ?
               region : NULL;
    }
    limit = atomic_load_explicit(&flow.limit, memory_order_acquire);
    for (i = 0; i < limit; ++i) {
        region = atomic_load_explicit(&flow.open[i], memory_order_acquire);
        if ((region != NULL) && !region->alone &&
            cgs_region_owns_stream(region, stream)) {
            self->run_serial = atomic_load(&region->run_serial);
            self->region     = region;
            self->joined     = true;
            self->marked     = false;
            self->ctx_known  = false;
            return region;
        }
    }
    return NULL;
}

cgs_verdict_t cgs_flow_before(cgs_call_t *call)
{
    cgs_thread_t  *self = &cgs_self;
    cgs_region_t  *region;
    cgs_verdict_t verdict;
    bool          over;

    if (__builtin_expect(self->guard > 0, 0)) {
        return CGS_VERDICT_PASS;
    }
    if (cgs_marks_are_on()) {
        cgs_marks_before(call);
    }
    region = find_region(call->stream);
    if (region == NULL) {
        if (cgs_config_get()->mode == CGS_MODE_OBSERVE) {
            atomic_fetch_add_explicit(&cgs_flow_counts.calls[call->kind], 1,
                                      memory_order_relaxed);
        }
        /* Events order streams that have nothing else to do with each other. */
        flush_others(NULL, cgs_op_is_event(call->kind) ? NULL : call->stream);
        return CGS_VERDICT_PASS;
    }
    if (__builtin_expect(others_are_open(region), 0)) {
        flush_others(region, cgs_op_is_event(call->kind) ? NULL :
                                                          call->stream);
    }

    ++self->guard;
    learn_context();
    if (__builtin_expect(!self->ctx_known, 0)) {
        /* Nobody could issue it later: not in this context. */
        call->refused = true;
        call->reason  = "the current context is not known";
    }
    call->device = self->device;
    region       = lock_own_region();
    if (__builtin_expect(region == NULL, 0)) {
        --self->guard;
        return CGS_VERDICT_PASS;
    }
    ++region->counts[call->kind];
    if (__builtin_expect(cgs_flow_is_capturing(), 0)) {
        cgs_cursor_go_plain(region, "a stream capture of the program's own");
    }
    verdict = cgs_cursor_before(region, call, self->ctx);
    if (__builtin_expect(region->pending != CUDA_SUCCESS, 0) &&
        (verdict == CGS_VERDICT_SWALLOWED)) {
        call->result    = region->pending;
        region->pending = CUDA_SUCCESS;
    }
    over = cgs_region_is_over(region);
    cgs_unlock(&region->lock);
    --self->guard;
    if (cgs_marks_are_on() &&
        (verdict == CGS_VERDICT_SWALLOWED)) {
        cgs_marks_after(call, over);
    }
    return verdict;
}

bool cgs_flow_swallow_launch(const cgs_launch_shape_t *shape, CUstream stream,
                             void **params)
{
    cgs_thread_t *self    = &cgs_self;
    cgs_region_t *region  = self->region;
    bool         swallows = false;

    if ((region == NULL) || self->joined || (self->guard > 0) ||
        !self->ctx_known ||
        (atomic_load_explicit(&flow.num, memory_order_acquire) != 1) ||
        cgs_flow_is_capturing()) {
        return false;
    }
    cgs_lock(&region->lock);
    if ((atomic_load_explicit(&region->run_serial, memory_order_relaxed) ==
         self->run_serial) && (region->pending == CUDA_SUCCESS)) {
        swallows = cgs_cursor_swallow_launch(region, shape, stream, params,
                                             self->ctx);
        region->counts[CGS_OP_KERNEL] += swallows;
    }
    cgs_unlock(&region->lock);
    return swallows;
}

CUresult cgs_flow_after(cgs_call_t *call, cgs_verdict_t verdict,
                        CUresult result)
{
    cgs_region_t *region;
    bool         over;

    /* A call from inside a driver call of ours, as tools make them from their
     * callbacks: the lock may be this thread's already. */
    if (cgs_self.guard > 0) {
        return result;
    }
    region = lock_own_region();
    if (region == NULL) {
        return result;
    }
    ++cgs_self.guard;
    if (verdict == CGS_VERDICT_WATCH) {
        cgs_cursor_after(region, call, cgs_self.ctx, result);
    }
    if ((region->pending != CUDA_SUCCESS) && (result == CUDA_SUCCESS)) {
        /* Work that was answered with success and then failed is told at the
         * next call, as errors of asynchronous work are. */
        result          = region->pending;
        region->pending = CUDA_SUCCESS;
    }
    over = cgs_region_is_over(region);
    cgs_unlock(&region->lock);
    --cgs_self.guard;
    if (cgs_marks_are_on()) {
        cgs_marks_after(call, over);
    }
    return result;
}

/* Not all that ends graphs does: modules and attributes leave memory alone. */
static bool ends_context(const char *function)
{
    return !strncmp(function, "cuCtxD", 6) ||
           !strncmp(function, "cuDevicePrimaryCtxRe", 20) ||
           !strncmp(function, "cuGreenCtxD", 11);
}

void cgs_barrier(unsigned index, cgs_kind_t kind)
{
    cgs_thread_t *self = &cgs_self;
    cgs_region_t *region;

    if ((self->guard > 0) || cgs_life_is_child()) {
        return;
    }
    cgs_turns_wait();
    if (cgs_marks_are_on()) {
        cgs_marks_barrier(index);
    }
    region = lock_own_region();
    if (region != NULL) {
        ++self->guard;
        cgs_cursor_barrier(region, cgs_door_name(index));
        cgs_unlock(&region->lock);
        --self->guard;
    }
    if (others_are_open(region)) {
        flush_others(region, NULL);
    }
    self->ctx_known = false;

    if (kind == CGS_KIND_FREE) {
        cgs_memory_changed();
    } else if (kind == CGS_KIND_EVENT) {
        cgs_events_changed();
    } else if (kind == CGS_KIND_DROP) {
        cgs_memory_changed();
        cgs_region_destroy_all(cgs_door_name(index));
        if (ends_context(cgs_door_name(index))) {
            ++self->guard;
            cgs_staging_forget_all();
            --self->guard;
        }
    }
}

void cgs_flow_wait_stream(CUstream stream, unsigned index)
{
    cgs_thread_t *self = &cgs_self;
    cgs_region_t *region;

    if ((self->guard > 0) || cgs_life_is_child()) {
        return;
    }
    cgs_turns_wait();
    if (cgs_marks_are_on()) {
        cgs_marks_barrier(index);
    }
    region = lock_own_region();
    if (region != NULL) {
        ++self->guard;
        if (interact(region, stream)) {
            cgs_cursor_barrier(region, cgs_door_name(index));
        }
        cgs_unlock(&region->lock);
        --self->guard;
    }
    if (others_are_open(region)) {
        flush_others(region, stream);
    }
}

/* An event is none of a run's business unless the run recorded it and has not
 * issued that yet; what else it stands for was issued before it was. */
static void flush_event(cgs_region_t *region, CUevent event)
{
    cgs_lock(&region->lock);
    if (cgs_cursor_has_event(region, event)) {
        flush_locked(region, "another thread's call came in between");
    }
    cgs_unlock(&region->lock);
}

void cgs_flow_wait_event(CUevent event, unsigned index)
{
    cgs_thread_t *self = &cgs_self;
    cgs_region_t *region, *other;
    unsigned     limit, i;

    if ((self->guard > 0) || cgs_life_is_child()) {
        return;
    }
    cgs_turns_wait();
    if (cgs_marks_are_on()) {
        cgs_marks_barrier(index);
    }
    region = lock_own_region();
    if (region != NULL) {
        ++self->guard;
        if (cgs_cursor_has_event(region, event)) {
            cgs_cursor_barrier(region, cgs_door_name(index));
        }
        cgs_unlock(&region->lock);
        --self->guard;
    }
    limit = atomic_load_explicit(&flow.limit, memory_order_acquire);
    for (i = 0; others_are_open(region) && (i < limit); ++i) {
        other = atomic_load_explicit(&flow.open[i], memory_order_acquire);
        if ((other != NULL) && (other != region) &&
            (atomic_load_explicit(&other->held, memory_order_acquire) > 0) &&
            atomic_load_explicit(&other->held_events, memory_order_acquire)) {
            flush_event(other, event);
        }
    }
}

bool cgs_flow_release_memory(void)
{
    if ((cgs_self.guard > 0) || cgs_life_is_off() || cgs_flow_is_capturing() ||
        !cgs_region_give_up_memory("the program ran out of device memory")) {
        return false;
    }
    /* Graphs that were running are freed when they have ended. */
    ++cgs_self.guard;
    CGS_REAL(cuCtxSynchronize)();
    --cgs_self.guard;
    return true;
}

void cgs_flow_capture(int delta)
{
    atomic_fetch_add(&flow.capturing, delta);
}

bool cgs_flow_is_capturing(void)
{
    return atomic_load_explicit(&flow.capturing, memory_order_acquire) > 0;
}
