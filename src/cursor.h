/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cursor of a region's open run: it meets each call, records it or holds
 * it against the recording, and decides what becomes of it.
 *
 * All functions are called under the region's lock.
 */
#ifndef CGS_CURSOR_H
#define CGS_CURSOR_H

#include "op.h"
#include "region.h"

/** What becomes of a call. */
typedef enum {
    CGS_VERDICT_PASS,    /**< the program's own call goes through */
    CGS_VERDICT_WATCH,   /**< it goes through; then cgs_cursor_after() */
    CGS_VERDICT_SWALLOWED /**< it is done or will be: call->result */
} cgs_verdict_t;

/** Set out on a new run; builds the graphs that the recording lacks. */
void cgs_cursor_start(cgs_region_t *region);

/** A call on a stream, in context `ctx`. */
cgs_verdict_t cgs_cursor_before(cgs_region_t *region, cgs_call_t *call,
                                CUcontext ctx);

/** A launch by cuLaunchKernel: hold it back if it is just the next op and not
 *  the last of its chunk. @return whether it was. */
bool cgs_cursor_swallow_launch(cgs_region_t *region,
                               const cgs_launch_shape_t *shape,
                               CUstream stream, void **params, CUcontext ctx);

/** The call was made by the program and gave `result`. */
void cgs_cursor_after(cgs_region_t *region, cgs_call_t *call, CUcontext ctx,
                      CUresult result);

/** The run's own thread makes a call that held-back work must not cross. */
void cgs_cursor_barrier(cgs_region_t *region, const char *reason);

/** Issue what is held back, for a reason that lies outside of the run. */
void cgs_cursor_flush(cgs_region_t *region, const char *reason);

/** Whether the run has just recorded an event: held back, or in the chunk
 *  that is being recorded. Who looks at it cuts the chunk. */
bool cgs_cursor_has_event(cgs_region_t *region, CUevent event);

/** Issue what is held back and let everything else of this run pass. */
void cgs_cursor_go_plain(cgs_region_t *region, const char *reason);

/** The run is over. */
void cgs_cursor_finish(cgs_region_t *region);

#endif
