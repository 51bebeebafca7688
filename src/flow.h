/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of a call that has come in while something is open: past the
 * held-back work of other threads, then to the region of its own thread.
 */
#ifndef CGS_FLOW_H
#define CGS_FLOW_H

#include <stdatomic.h>

#include "cursor.h"
#include "op.h"
#include "region.h"

/** Calls seen outside regions too, where they are counted (observe mode). */
typedef struct {
    atomic_ullong calls[CGS_OP_NUM_KINDS];
} cgs_flow_counts_t;

extern cgs_flow_counts_t cgs_flow_counts;

/** The region whose run is open in this thread, or NULL. */
cgs_region_t *cgs_flow_own_region(void);

/** A call that puts work on a stream.
 *  @return What to do; where SWALLOWED, call->result is the answer. */
cgs_verdict_t cgs_flow_before(cgs_call_t *call);

/** A launch by cuLaunchKernel that is just the next one recorded, and not the
 *  last of its chunk: it is held back.
 *  @return false where it is not: cgs_flow_before() has the word. */
bool cgs_flow_swallow_launch(const cgs_launch_shape_t *shape, CUstream stream,
                             void **params);

/** The program's own call gave `result`.
 *  @return The answer for the program. */
CUresult cgs_flow_after(cgs_call_t *call, cgs_verdict_t verdict,
                        CUresult result);

/** Times that the program has waited for the device: another number after
 *  each. Who asks whether it is done may do something else meanwhile. */
extern atomic_uint cgs_flow_waits;

/** It does so. Any thread; of two at a time one counts. */
static inline void cgs_flow_note_wait(void)
{
    atomic_store_explicit(&cgs_flow_waits, 1 +
                          atomic_load_explicit(&cgs_flow_waits,
                                               memory_order_relaxed),
                          memory_order_relaxed);
}

/** Before a call that waits for a stream or an event, or asks after it: issue
 *  what is held back on it, and no more. `index` is the call's entry. @{ */
void cgs_flow_wait_stream(CUstream stream, unsigned index);
void cgs_flow_wait_event(CUevent event, unsigned index);
/** @} */

/** The program's allocation found no memory: give back what the graphs hold.
 *  @return whether it is worth another try. */
bool cgs_flow_release_memory(void);

/** Show a region's open run to the other threads' calls.
 *  @return false if too many are open. */
bool cgs_flow_open(cgs_region_t *region);
void cgs_flow_close(cgs_region_t *region);

/** Issue everything that any thread holds back, at exit: waits for no thread
 *  for long. */
void cgs_flow_issue_at_exit(void);

/** What the timer keeps between two looks; zero at first. */
typedef struct {
    uint64_t runs;      /**< changes while regions come and go */
    unsigned period_us; /**< look again after this time */
} cgs_flow_look_t;

/**
 * Issue what has been held back for too long. The timer's alone.
 *
 * @param now_us Time of a clock that only goes forward, in microseconds.
 *
 * @return Whether anything is held back.
 */
bool cgs_flow_look(uint64_t now_us, cgs_flow_look_t *state);

/** The program began or ended a stream capture: everything passes meanwhile. */
void cgs_flow_capture(int delta);
bool cgs_flow_is_capturing(void);

#endif
