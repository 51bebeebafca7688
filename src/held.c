/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The prefix that is held back is issued from the saved arguments, which are
 * always those of this run.
 */
#include "held.h"

#include "clock.h"
#include "graph.h"
#include "reason.h"
#include "staging.h"
#include "timer.h"
#include "turns.h"
#include "verify.h"

static CUresult issue_ops(cgs_chunk_t *chunk, uint32_t num, CUresult *last)
{
    CUresult       first_error = CUDA_SUCCESS;
    CUresult       result      = CUDA_SUCCESS;
    const cgs_op_t *op;
    uint32_t       i;

    for (i = 0; i < num; ++i) {
        op     = &chunk->ops[i];
        result = cgs_op_kinds[op->kind]->issue(op, chunk->streams[op->lane]);
        if ((i + 1 < num) && (first_error == CUDA_SUCCESS)) {
            first_error = result;
        }
    }
    *last = result;
    return first_error;
}

/* Streams that the first ops of a chunk are on; the others need not be alive
 * in this run. */
static uint32_t count_streams(const cgs_chunk_t *chunk, uint32_t num_ops)
{
    uint32_t i, num = 0;

    for (i = 0; i < num_ops; ++i) {
        num = chunk->ops[i].lane >= num ? chunk->ops[i].lane + 1u : num;
    }
    return num;
}

/* Who sees either has to see in the driver what was issued. */
static void hold_nothing(cgs_region_t *region)
{
    atomic_store_explicit(&region->held_events, false, memory_order_release);
    atomic_store_explicit(&region->held, 0, memory_order_release);
}

void cgs_held_keep_error(cgs_region_t *region, CUresult error)
{
    if ((error != CUDA_SUCCESS) && (region->pending == CUDA_SUCCESS)) {
        region->pending = error;
    }
}

void cgs_held_issue(cgs_region_t *region)
{
    uint32_t    held     = cgs_held(region);
    uint64_t    began_ns = cgs_trace_begin();
    cgs_chunk_t *chunk;
    CUresult    error, last;
    bool        entered;

    if (held == 0) {
        return;
    }
    /* The program may have made another context current since: that is no
     * barrier, but default streams are another context's then. */
    cgs_turns_begin();
    chunk   = cgs_cursor_chunk(region);
    entered = cgs_graph_enter_context(chunk->ctx);
    error   = issue_ops(chunk, held, &last);
    cgs_staging_issued(chunk->staging, chunk->streams,
                       count_streams(chunk, held));
    if (entered) {
        cgs_graph_leave_context();
    }
    cgs_turns_end();
    cgs_held_keep_error(region, error != CUDA_SUCCESS ? error : last);
    region->cursor.through = true;
    hold_nothing(region);
    cgs_trace_slice(CGS_TRACE_ISSUE, region, began_ns, held, 0);
}

/* All of the chunk is held back: launch its graph. */
static cgs_graph_status_t launch(cgs_region_t *region, cgs_chunk_t *chunk,
                                 CUresult *late)
{
    uint64_t           *patched = &region->stats.patched;
    cgs_graph_status_t status;

    if (region->cursor.verifies) {
        return cgs_verify_launch(region, chunk, patched, late);
    }
    cgs_turns_begin();
    status = cgs_graph_launch(chunk, patched, late);
    cgs_turns_end();
    return status;
}

CUresult cgs_held_launch(cgs_region_t *region)
{
    cgs_chunk_t        *chunk   = cgs_cursor_chunk(region);
    uint64_t           before   = region->stats.patched;
    uint64_t           began_ns = cgs_clock_ns();
    CUresult           late     = CUDA_SUCCESS;
    cgs_graph_status_t status   = launch(region, chunk, &late);
    CUresult           error, last;

    if ((status.result == CUDA_SUCCESS) && (chunk->num_frees > 0)) {
        error = cgs_graph_call_frees(chunk);
        late  = late == CUDA_SUCCESS ? error : late;
    }
    hold_nothing(region);
    region->stats.times.graph_ns += cgs_clock_ns() - began_ns;
    if (status.result == CUDA_SUCCESS) {
        region->stats.swallowed          += chunk->num_ops;
        region->stats.swallowed_launches += chunk->num_launches;
        ++region->stats.launches;
        region->cursor.launched              = true;
        region->cursor.variant->launched_run = region->stats.runs;
        region->cursor.variant->patched      = region->stats.patched - before;
        cgs_trace_slice(CGS_TRACE_LAUNCH, region, began_ns, chunk->num_ops,
                        region->stats.patched - before);
        return late;
    }

    cgs_region_fallback(region, cgs_reason_driver(status.function,
                                                  status.result));
    region->cursor.diverged = true;
    cgs_turns_begin();
    error = issue_ops(chunk, chunk->num_ops, &last);
    cgs_staging_issued(chunk->staging, chunk->streams, chunk->num_streams);
    cgs_turns_end();
    cgs_graph_destroy(chunk);
    ++chunk->failures;
    region->recording.has_work = true;
    cgs_held_keep_error(region, error);
    return last;
}

/* The first store of a chunk must be seen by the timer before it sleeps. */
void cgs_held_grow(cgs_region_t *region, bool is_event)
{
    uint32_t num = region->cursor.op;

    if (is_event) {
        atomic_store_explicit(&region->held_events, true,
                              memory_order_relaxed);
    }
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
