/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph and its calls, one after the other, from the same bytes.
 *
 * Nothing is done that could wait for ever: where the device is not idle
 * within a second, a kernel may wait for what the program has yet to do.
 */
#include "verify.h"

#include <pthread.h>
#include <time.h>

#include "clock.h"
#include "log.h"
#include "reason.h"
#include "snapshot.h"
#include "turns.h"

/* The longest wait for the device. */
#define MAX_WAIT_NS 1000000000u
/* Between two looks at it. */
#define LOOK_NS 20000
/* For what is not counted as a call (turns.h) and was on its way. */
#define SETTLE_NS 200000

static const char *const calls_went_on =
    "a call of another thread did not end in a second";
static const char *const busy = "work on the device did not end in a second";

static void sleep_ns(long ns)
{
    struct timespec time = {.tv_nsec = ns};

    nanosleep(&time, NULL);
}

/* Wait until nothing runs in the context.
 * @return NULL, or why that is not known. */
static const char *wait_until_idle(CUcontext ctx)
{
    uint64_t began_ns = cgs_clock_ns();
    CUevent  event    = NULL;
    CUresult result;

    result = CGS_REAL(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING);
    if (result != CUDA_SUCCESS) {
        return cgs_reason_driver("cuEventCreate", result);
    }
    result = CGS_REAL(cuCtxRecordEvent)(ctx, event);
    if (result != CUDA_SUCCESS) {
        CGS_REAL(cuEventDestroy_v2)(event);
        return cgs_reason_driver("cuCtxRecordEvent", result);
    }
    while (((result = CGS_REAL(cuEventQuery)(event)) ==
            CUDA_ERROR_NOT_READY) &&
           (cgs_clock_ns() - began_ns < MAX_WAIT_NS)) {
        sleep_ns(LOOK_NS);
    }
    CGS_REAL(cuEventDestroy_v2)(event);
    return result == CUDA_SUCCESS ? NULL :
           result == CUDA_ERROR_NOT_READY ? busy :
           cgs_reason_driver("cuEventQuery", result);
}

/* Make the calls of the chunk but the frees, which are called once and last. */
static CUresult make_calls(cgs_chunk_t *chunk)
{
    CUresult       error = CUDA_SUCCESS;
    CUresult       result;
    const cgs_op_t *op;

    cgs_staging_issue_again(chunk->staging);
    for (op = chunk->ops; op < chunk->ops + chunk->num_ops; ++op) {
        if (op->kind == CGS_OP_FREE) {
            continue;
        }
        result = cgs_op_kinds[op->kind]->issue(op, chunk->streams[op->lane]);
        error  = error == CUDA_SUCCESS ? result : error;
    }
    cgs_staging_issued(chunk->staging, chunk->streams, chunk->num_streams);
    return error;
}

/* Put everything back and make the calls.
 * @return NULL, or why it is not known what they have left. */
static const char *run_calls(cgs_chunk_t *chunk,
                             const cgs_snapshot_t *snapshot, CUresult *late)
{
    CUresult   result = cgs_snapshot_restore(snapshot);
    const char *why   = wait_until_idle(chunk->ctx);
    CUresult   error;

    if (result != CUDA_SUCCESS) {
        return cgs_reason_driver("cuMemcpyHtoD", result);
    }
    error = make_calls(chunk);
    *late = *late == CUDA_SUCCESS ? error : *late;
    return why != NULL ? why : wait_until_idle(chunk->ctx);
}

static void note_written(cgs_region_t *region, const cgs_snapshot_t *snapshot)
{
    cgs_written_t    *written   = &region->written;
    uint64_t         generation = cgs_memory_generation();
    const cgs_span_t *span;
    uint32_t         i;

    if (written->generation != generation) {
        written->generation = generation;
        written->num        = 0;
    }
    for (span = snapshot->spans; span < snapshot->spans + snapshot->num;
         ++span) {
        for (i = 0; (i < written->num) && (written->base[i] != span->base);
             ++i) {
        }
        if ((i == written->num) && (i < CGS_MAX_WRITTEN) &&
            cgs_snapshot_is_written(snapshot, span)) {
            written->base[written->num++] = span->base;
        }
    }
}

void cgs_verify_mark(const cgs_region_t *region, cgshim_buffer_t *buffer)
{
    const cgs_written_t *written = &region->written;
    uint32_t            i;

    for (i = 0; (written->generation == cgs_memory_generation()) &&
                (i < written->num); ++i) {
        if (written->base[i] == buffer->base) {
            buffer->access |= CGSHIM_ACCESS_WRITTEN;
        }
    }
}

static void note_mistake(cgs_region_t *region, const cgs_chunk_t *chunk,
                         const cgs_snapshot_byte_t *byte)
{
    cgs_mistake_t *mistake = &region->stats.mistake;

    *mistake = (cgs_mistake_t){
        .valid  = true,
        .run    = region->stats.runs,
        .nodes  = chunk->num_ops,
        .base   = byte->span->base,
        .bytes  = byte->span->bytes,
        .offset = byte->offset,
        .op     = byte->span->last_op,
        .kernel = cgs_op_name(&chunk->ops[byte->span->last_op]),
    };
    cgs_log_complain("region %s: run %llu: a graph of %llu calls left other "
                     "bytes than these calls leave; buffer 0x%llx of %llu "
                     "bytes, first at byte %llu, is last taken by call %llu, "
                     "%s; the region is plain from here on", region->name,
                     (unsigned long long)mistake->run,
                     (unsigned long long)mistake->nodes,
                     (unsigned long long)mistake->base,
                     (unsigned long long)mistake->bytes,
                     (unsigned long long)mistake->offset,
                     (unsigned long long)mistake->op, mistake->kernel);
}

/* The graph and its calls left different bytes. If the calls leave others each
 * time, that says nothing. */
static const char *try_calls_again(cgs_region_t *region, cgs_chunk_t *chunk,
                                   cgs_snapshot_t *snapshot,
                                   const cgs_snapshot_byte_t *first,
                                   CUresult *late)
{
    const char          *why = run_calls(chunk, snapshot, late);
    cgs_snapshot_byte_t second;

    if ((why == NULL) &&
        (cgs_snapshot_compare(snapshot, &second) == CUDA_SUCCESS) &&
        (second.span != NULL)) {
        return "its calls leave other bytes each time";
    }
    note_mistake(region, chunk, first);
    return NULL;
}

/* The graph is on its way. @return NULL, or why it cannot be verified. */
static const char *verify(cgs_region_t *region, cgs_chunk_t *chunk,
                          cgs_snapshot_t *snapshot, CUresult *late)
{
    const char          *why = wait_until_idle(chunk->ctx);
    CUresult            result;
    cgs_snapshot_byte_t byte;

    if (why != NULL) {
        return why;
    }
    result = cgs_snapshot_read(snapshot);
    if (result != CUDA_SUCCESS) {
        return cgs_reason_driver("cuMemcpyDtoH", result);
    }
    note_written(region, snapshot);
    why = run_calls(chunk, snapshot, late);
    if (why != NULL) {
        return why;
    }
    result = cgs_snapshot_compare(snapshot, &byte);
    if (result != CUDA_SUCCESS) {
        return cgs_reason_driver("cuMemcpyDtoH", result);
    }
    if (byte.span != NULL) {
        return try_calls_again(region, chunk, snapshot, &byte, late);
    }
    ++region->stats.verified;
    return NULL;
}

static cgs_graph_status_t launch(cgs_region_t *region, cgs_chunk_t *chunk,
                                 uint64_t *patched, CUresult *late)
{
    size_t limit = (size_t)cgs_config_get()->defaults.verify_mb << 20;
    cgs_snapshot_t     snapshot = {0};
    cgs_graph_status_t status;
    const char         *why = cgs_turns_take() ? NULL : calls_went_on;

    if (why == NULL) {
        sleep_ns(SETTLE_NS);
        why = wait_until_idle(chunk->ctx);
    }
    if (why == NULL) {
        why = cgs_snapshot_take(chunk, limit, &snapshot);
    }
    status = cgs_graph_launch(chunk, patched, late);
    if ((status.result == CUDA_SUCCESS) && (why == NULL)) {
        why = verify(region, chunk, &snapshot, late);
    }
    if (why != NULL) {
        cgs_region_leave_unverified(region, why);
    }
    cgs_turns_give();
    cgs_snapshot_release(&snapshot);
    return status;
}

cgs_graph_status_t cgs_verify_launch(cgs_region_t *region, cgs_chunk_t *chunk,
                                     uint64_t *patched, CUresult *late)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    cgs_graph_status_t  status;
    bool                relaxed;
    int                 cancel_state;

    /* A thread that is cancelled here would take the turn with it. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    /* A capture of another thread's is not to be spoiled. */
    relaxed = CGS_REAL(cuThreadExchangeStreamCaptureMode)(&mode) ==
              CUDA_SUCCESS;
    status = launch(region, chunk, patched, late);
    if (relaxed) {
        CGS_REAL(cuThreadExchangeStreamCaptureMode)(&mode);
    }
    pthread_setcancelstate(cancel_state, NULL);
    return status;
}
